"""Linear regression by least squares, from noisy second moments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.engine import Kind, as_kind
from dpframe.errors import InvalidArgument
from dpframe.plan import REGRESSION, Covers, Derivation, render_html
from dpframe.release.answer import influences_of
from dpframe.release.estimators import NoisyColumn, sampling_variance
from dpframe.release.kinds.regression.matrices import OfMoments
from dpframe.release.shown import (
    Grouped,
    decimals_by_column,
    grouped_chart,
    largest_error,
    read_look,
)

_DRAWS = 4000
_ONE_DEVIATION = (0.15865, 0.84135)  # ranks one deviation around the middle of a normal law
INTERCEPT = "Intercept"


@dataclass(frozen=True, eq=False, repr=False)
class Regression(OfMoments):
    """Coefficients of a linear regression, with intervals for noise and sampling together.

    `release` has the noisy moments, and the squared influences of people on each coefficient. The
    last column of the moments is the outcome. `kinds` maps a column of true and false to its
    category: column and key.
    """

    _habits = REGRESSION
    _what = "each coefficient"

    _kinds: dict[str, tuple[str, Any]]
    _bounds: dict[str, tuple[float, float]]

    @property
    def coefficients(self) -> dict[str, float]:
        """Each coefficient by its name, in the unit of the outcome over that of the column."""
        numbers = self._in_units(self._moments.inverse() @ self._moments.matrix[:-1, -1])
        return dict(zip(self._names, map(float, numbers), strict=True))

    @property
    def is_told(self) -> bool:
        """Whether the noise leaves something to be said:
        the columns vary more than the noise of their moments.

        Else every 95% interval is without end. More rows, a larger ε or closer bounds help.
        """
        return bool(self._table(0.05)["std_error"].is_finite().all())

    def _in_kind(self, kind: Kind) -> Any:
        return self._noted(as_kind(self._table(0.05), kind), kind)

    @property
    def _decimals(self) -> Mapping[str, int]:
        margins = (2 * self._table(0.05)["std_error"]).to_list()
        places = decimals_by_column({"coefficient": margins})["coefficient"]
        return dict.fromkeys(("coefficient", "std_error", "low", "high"), places)

    def accuracy(self, alpha: float = 0.05) -> Any:
        """The table of coefficients, with intervals that miss with probability alpha."""
        return as_kind(self._table(alpha), self._kind)

    def predict(self, rows: Any) -> Floats:
        """The outcome that the coefficients give for rows of a public table: one number for each.

        Input:  a dict of lists, or a pandas or Polars table, with the columns of the regression.
                Values are clipped to the bounds, as the rows of the protected table were
        Errors: InvalidArgument where a column is missing
        """
        result: Floats | None = None
        for name, weight in self.coefficients.items():
            if name == INTERCEPT:
                continue
            column, key = self._kinds.get(name, (name, None))
            try:
                values = rows[column]
            except Exception:
                raise InvalidArgument(f"predict: the rows need the column {column!r}.") from None
            if name in self._kinds:
                part = np.array([1.0 if value == key else 0.0 for value in values])
            else:
                part = np.clip(np.asarray(values, float), *self._bounds[name])
            result = weight * part if result is None else result + weight * part
        assert result is not None
        return np.asarray(result + self.coefficients[INTERCEPT])

    def explain(self) -> Derivation:
        """The derivation of the moments: every step, and how far one unit moves each of them."""
        return self.derivation

    def plot(self, title: str | None = None) -> Any:
        """Bars of the coefficients with their 95% intervals for the population
        (Altair), but for the intercept.

        A coefficient is pale if it is no larger than its margin of error, and if its interval has
        no end.

        Input:  title: replaces the title, "" for none
        Output: an Altair chart in the look of `Release.plot`
        Errors: UnsupportedOperation without the extra `charts`; InvalidArgument where `title` is no
                text
        """
        look, outcome = read_look(title, None, None, None), self._moments.names[-1]
        table = self._table(0.05).filter(pl.col("term") != INTERCEPT)
        ends = table.select("term", value="coefficient", lower="low", upper="high")
        # with an error of its size, a coefficient is pale
        error, size = largest_error(), pl.col("value").abs()
        errors = ends.with_columns(error=pl.when(error.is_finite()).then(error).otherwise(size))
        grouped = Grouped(
            ("term",), errors, pl.Float64(), "coefficient", sure=False, covers=Covers.POPULATION
        )
        lines = (
            () if self.is_told else ("The noise hides these coefficients: no interval has an end.",)
        )
        return grouped_chart(
            grouped, self._heading(f"Coefficients for {outcome}", (*lines, *self._scope)), look
        )

    def _repr_html_(self) -> str:
        table = self._table(0.05)
        said = f"<p>{escape(self._caption)}{self._notes_html}</p>"
        return f"<div class='dpframe'>{render_html(table.columns, table.rows(), '.4g')}{said}</div>"

    @property
    def _words(self) -> str:
        return f"{self.table}\n\n{self._caption}"

    @property
    def _caption(self) -> str:
        """The price, and the meaning of the intervals."""
        intervals = (
            "low and high are a 95% interval for the population: noise and sampling together."
            if self.is_told
            else "The noise hides these coefficients: no interval has an end. Type closer bounds "
            "or a larger ε."
        )
        return f"Released at {self.cost}. {intervals}{self._narrowed}"

    # Numbers

    @property
    def _names(self) -> list[str]:
        return [INTERCEPT, *self._moments.names[:-1]]

    def _in_units(self, numbers: Floats) -> Floats:
        """Coefficients of scaled columns as those of the columns, with the
        intercept of columns measured from 0.
        """
        result = numbers @ self._moments.to_units.T
        result[..., 0] += self._moments.middles[-1]
        return np.asarray(result)

    def _draws(self, alpha: float = 0.05) -> Floats:
        """Coefficients of a population that fits the release:
        noise and sampling are drawn, each by its own law.

        The true moments are the released ones less noise, whose law is public. The coefficients of
        the population differ from those of the table by errors that are about normal. Their
        variances are those of `sampling_variance` from the measured influences of people; where
        drawn inputs vary less than the released ones, errors are larger by as much. A draw in which
        inputs do not vary says nothing: half of these draws count as -∞ and half as ∞.

        Bound:  they only widen the intervals, and where they are a part alpha of all draws,
                intervals have no end. No finite interval would be right there. Let an input be a +
                t·z, and the outcome b·z and an error. Its slope is b/t. For small t the input
                hardly varies, so the moments are those of a constant input, but for less than the
                noise; and t may be as small as one likes, whatever the bounds of the columns are
        Source: Gleser, Hwang 1987, Annals of Statistics 15, pages 1351 to 1362: an interval that
                holds a ratio with a probability of 1 - alpha wherever its divisor may be near 0 has
                no end with some probability
        """
        rng, numbers, moments = np.random.default_rng(0), self.release._numbers, self._moments
        draws = moments.drawn(rng, _DRAWS)
        told = np.linalg.eigvalsh(draws[:, :-1, :-1]).min(axis=-1) > 0
        kept = draws[told]
        inverses = np.linalg.inv(kept[:, :-1, :-1])
        solved = (inverses @ kept[:, :-1, -1, None])[..., 0]
        parts = {**numbers.parts, "rows": np.array([moments.rows])}
        variances = [
            sampling_variance(NoisyColumn.of(column, numbers.noise, parts), influence, alpha).item()
            for column, influence in influences_of(numbers.outputs, moments)
        ]
        lengths = [
            np.einsum("ij,...jk,ik->...i", moments.to_units, one, moments.to_units)
            for one in (inverses, moments.inverse())
        ]
        errors = (
            rng.normal(size=solved.shape)
            * np.sqrt(variances)
            * np.maximum(lengths[0] / lengths[1], 1.0)
        )
        signs = np.where(np.arange(np.count_nonzero(~told)) % 2, 1.0, -1.0)[:, None]
        return np.concatenate(
            [
                self._in_units(solved) + errors,
                np.full((len(signs), solved.shape[-1]), math.inf) * signs,
            ]
        )

    def _table(self, alpha: float) -> pl.DataFrame:
        draws, values = self._draws(alpha), np.array(list(self.coefficients.values()))
        low = np.quantile(draws, alpha / 2, axis=0, method="lower")
        high = np.quantile(draws, 1 - alpha / 2, axis=0, method="higher")
        first, last = np.quantile(draws, _ONE_DEVIATION, axis=0, method="nearest")
        with np.errstate(invalid="ignore"):
            error = np.where(np.isfinite(low) & np.isfinite(high), (last - first) / 2, math.inf)
        low, high = np.minimum(low, values), np.maximum(high, values)
        return pl.DataFrame(
            {
                "term": self._names,
                "coefficient": values,
                "std_error": error,
                "low": low,
                "high": high,
            }
        )
