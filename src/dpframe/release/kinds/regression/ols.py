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
from dpframe.release.shown import Grouped, decimals_by_column, grouped_chart, largest_error, read_look

_DRAWS = 4000
_MOST_SINGULAR = 0.01  # of the matrices that the true one may be; with more, no interval is given
INTERCEPT = "Intercept"


@dataclass(frozen=True, eq=False, repr=False)
class Regression(OfMoments):
    """Coefficients of a linear regression, with intervals for noise and sampling together.

    `release` has the noisy moments, and the squared influences of people on each coefficient. The last column of the
    moments is the outcome. `kinds` maps a column of true and false to its category: column and key.
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
        """Whether the noise leaves something to be said: the columns vary more than the noise of their moments.

        Else every interval is without end. More rows, a larger ε or closer bounds help.
        """
        return bool(np.isfinite(self._draws()[0]).all())

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

        Input:  a dict of lists, or a pandas or Polars table, with the columns of the regression. Values are clipped to
                the bounds, as the rows of the protected table were
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
        """Bars of the coefficients with their 95% intervals for the population (Altair), but for the intercept.

        A coefficient is pale if it is no larger than its margin of error, and if its interval has no end.

        Input:  title: replaces the title, "" for none
        Output: an Altair chart in the look of `Release.plot`
        Errors: UnsupportedOperation without the extra `charts`; InvalidArgument where `title` is no text
        """
        look, outcome = read_look(title, None, None, None), self._moments.names[-1]
        table = self._table(0.05).filter(pl.col("term") != INTERCEPT)
        ends = table.select("term", value="coefficient", lower="low", upper="high")
        error, size = largest_error(), pl.col("value").abs()  # with an error of its size, a coefficient is pale
        errors = ends.with_columns(error=pl.when(error.is_finite()).then(error).otherwise(size))
        grouped = Grouped(("term",), errors, pl.Float64(), "coefficient", sure=False, covers=Covers.POPULATION)
        lines = () if self.is_told else ("The noise hides these coefficients: no interval has an end.",)
        return grouped_chart(grouped, self._heading(f"Coefficients for {outcome}", (*lines, *self._scope)), look)

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
            else "The noise hides these coefficients: no interval has an end. Type closer bounds or a larger ε."
        )
        return f"Released at {self.cost}. {intervals}{self._narrowed}"

    # Numbers

    @property
    def _names(self) -> list[str]:
        return [INTERCEPT, *self._moments.names[:-1]]

    def _in_units(self, numbers: Floats) -> Floats:
        """Coefficients of scaled columns as those of the columns, with the intercept of columns measured from 0."""
        result = numbers @ self._moments.to_units.T
        result[..., 0] += self._moments.middles[-1]
        return np.asarray(result)

    def _draws(self, alpha: float = 0.05) -> Floats:
        """Coefficients of a population that fits the release: noise and sampling are drawn, each by its own law.

        The true moments are the released ones less noise, whose law is public. The coefficients of the population
        differ from those of the table by errors that are about normal. Their variances are those of `sampling_variance`
        from the measured influences of people. Moments that no table can have are left out. Where these are more than
        one in a hundred, nothing is told.
        """
        rng, numbers = np.random.default_rng(0), self.release._numbers
        draws = self._moments.drawn(rng, _DRAWS)
        keep = np.linalg.eigvalsh(draws[:, :-1, :-1]).min(axis=-1) > 0
        if np.mean(~keep) > _MOST_SINGULAR:
            return np.full((1, draws.shape[-1] - 1), math.inf)
        draws = draws[keep]
        solved = np.linalg.solve(draws[:, :-1, :-1], draws[:, :-1, -1, None])[..., 0]
        parts = {**numbers.parts, "rows": np.array([self._moments.rows])}
        variances = [
            sampling_variance(NoisyColumn.of(column, numbers.noise, parts), influence, alpha).item()
            for column, influence in influences_of(numbers.outputs, self._moments)
        ]
        return np.asarray(self._in_units(solved) + rng.normal(size=solved.shape) * np.sqrt(variances))

    def _table(self, alpha: float) -> pl.DataFrame:
        draws, values = self._draws(alpha), np.array(list(self.coefficients.values()))
        if np.isfinite(draws).all():
            low, high = np.quantile(draws, [alpha / 2, 1 - alpha / 2], axis=0)
            quartiles = np.quantile(
                draws, [0.15865, 0.84135], axis=0
            )  # one deviation around the middle of a normal law
            error = (quartiles[1] - quartiles[0]) / 2
            low, high = np.minimum(low, values), np.maximum(high, values)
        else:
            low, high, error = (np.full(len(values), end) for end in (-math.inf, math.inf, math.inf))
        return pl.DataFrame({"term": self._names, "coefficient": values, "std_error": error, "low": low, "high": high})
