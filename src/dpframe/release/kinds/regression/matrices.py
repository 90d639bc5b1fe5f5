"""Matrices of the second moments of a release and of their functions, in the shape of pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, ClassVar

import numpy as np
import polars as pl

from dpframe.arrays import Booleans, Floats
from dpframe.engine import Kind, as_kind
from dpframe.plan import MATRIX, Bounds, Covers, beyond_words, render_html
from dpframe.release.answer import Moments, Numbers, nearest_psd
from dpframe.release.shown import (
    MISSING,
    Release,
    Released,
    Report,
    decimals_by_column,
    hidden_words,
)


def moments_of(
    numbers: Numbers, bounds: Mapping[str, Bounds], same: Sequence[tuple[str, ...]]
) -> Moments:
    """The moments of released numbers, see `Moments.read`."""
    return Moments.read(numbers.long, numbers.outputs, numbers.noise, bounds, same)


@dataclass(frozen=True, eq=False, repr=False)
class OfMoments(Released[Any]):
    """A matrix or regression that follows from noisy moments. `release` has these moments."""

    release: Release[Any]
    _moments: Moments

    def report(self) -> Report:
        """The report of the release of moments."""
        said = self.release.report()
        return Report(
            {**said.items, **({"beyond": self._scope} if self._scope else {})}, said.errors
        )

    _what: ClassVar[str]  # the released numbers, in words

    def _left_out(self, column: str | None = None) -> list[str]:
        return beyond_words(
            replace(one, column=self._what, total=False) for one in self.derivation.beyond[:1]
        )

    @property
    def _narrowed(self) -> str:
        """The bounds that the release narrowed, in words; nothing where it used the typed ones."""
        chosen = self._statement.get("chosen", {}).get("bounds", {})
        columns = [f"{name} from {low:g} to {high:g}" for name, (low, high) in chosen.items()]
        clipped = f" Values were clipped to bounds that the release narrowed: {'; '.join(columns)}."
        return (
            f"{clipped} All numbers and intervals are those of clipped values." if columns else ""
        )


_DRAWS = 2000
_NEARLY = 1e-9  # of a range; more than the errors of floats


@dataclass(frozen=True, eq=False, repr=False)
class MatrixRelease(OfMoments):
    """A released matrix of covariances or correlations.
    `release` has the noisy moments that it follows from.
    """

    _habits = MATRIX
    _what = "the matrix"

    _corr: bool
    _filled: bool = False

    @property
    def values(self) -> Floats:
        """The matrix: positive semidefinite, the nearest one in Frobenius
        norm to that of the noisy moments.

        This is post-processing. Columns are scaled by half the width of their bounds before it, so
        that no unit counts for more. A number is NaN where its 95% interval holds everything that
        it could be: `fill` shows it.
        """
        return self._all if self._filled else np.where(self._missing, np.nan, self._all)

    def fill(self) -> MatrixRelease:
        """The matrix with the numbers that are missing because noise hides
        them, as they were drawn; free.
        """
        return replace(self, _filled=True)

    @cached_property
    def _all(self) -> Floats:
        return _matrix(self._moments.matrix, self._moments, self._corr, project=True)

    @cached_property
    def _drawn(self) -> Floats:
        """Matrices that the true one may be."""
        draws = self._moments.drawn(np.random.default_rng(0), _DRAWS)
        return np.array([_matrix(one, self._moments, self._corr, project=False) for one in draws])

    def _ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the interval of each entry."""
        low, high = np.nanquantile(self._drawn, [alpha / 2, 1 - alpha / 2], axis=0)
        return np.minimum(low, self._all), np.maximum(high, self._all)

    @cached_property
    def _missing(self) -> Booleans:
        """Entries that could be anything: correlations from -1 to 1, or
        covariances as large as the bounds allow.
        """
        halves, (low, high) = self._moments.halves, self._ends(0.05)
        most = (
            np.ones_like(low)
            if self._corr
            else np.outer(halves, halves) * _divisor(self._moments.matrix)
        )
        least = -most if self._corr else np.where(np.eye(len(halves)) > 0, 0.0, -most)
        return np.asarray((low <= least + _NEARLY * most) & (high >= most * (1 - _NEARLY)))

    @property
    def _notes(self) -> list[str]:
        names = self._moments.names
        pairs = [
            f"{names[i]} and {names[j]}"
            for i, j in zip(*np.nonzero(np.triu(self._missing)), strict=True)
        ]
        missing = (
            []
            if self._filled or not pairs
            else [f"{', '.join(pairs)}: {hidden_words('', Covers.NOISE)}"]
        )
        return [*super()._notes, *missing]

    def _in_kind(self, kind: Kind) -> Any:
        """As pandas shows it: a row and a column for each column.
        Other kinds of tables name the row in "column".
        """
        names = list(self._moments.names)
        columns = {"column": names, **dict(zip(names, self.values.T, strict=True))}
        table = as_kind(pl.DataFrame(columns).fill_nan(None), kind)
        return (
            self._noted(table.set_index("column").rename_axis(None), kind)
            if kind == "pandas"
            else table
        )

    @property
    def _decimals(self) -> Mapping[str, int]:
        low, high = self._ends(0.05)
        errors = np.maximum(high - self._all, self._all - low)
        return decimals_by_column(dict(zip(self._moments.names, errors.T.tolist(), strict=True)))

    @property
    def _indexed(self) -> bool:
        return True

    def accuracy(self, alpha: float = 0.05) -> Any:
        """One row for each pair: value, error, lower, upper, of the noise alone.

        The ends are quantiles of matrices that the true one may be: the noisy moments less noise of
        their own law, which is public. They do not say how far the people in the table are from
        others.
        """
        names, (low, high), values = self._moments.names, self._ends(alpha), self.values
        at = np.triu_indices(len(names), k=int(self._corr))
        columns = {
            "value": values,
            "error": np.maximum(high - values, values - low),
            "lower": low,
            "upper": high,
        }
        pairs = {
            name: [names[i] for i in axis]
            for name, axis in zip(("column", "beside"), at, strict=True)
        }
        table = pl.DataFrame(pairs | {name: one[at] for name, one in columns.items()})
        return as_kind(table.fill_nan(None), self._kind)

    def _repr_html_(self) -> str:
        names = self._moments.names
        rows = [
            (name, *(MISSING if np.isnan(x) else f"{x:.4g}" for x in row))
            for name, row in zip(names, self.values, strict=True)
        ]
        said = f"{escape(self._narrowed)}{self._notes_html}"
        last = f"<p>Released at {escape(str(self.cost))}. Intervals: .accuracy(){said}</p>"
        return f"<div class='dpframe'>{render_html(('', *names), rows)}{last}</div>"

    @property
    def _words(self) -> str:
        title = (
            f"{'Correlations' if self._corr else 'Covariances'} of {', '.join(self._moments.names)}"
        )
        return (
            f"{title}\n{self.table}\n\nReleased at {self.cost}. Intervals: "
            f".accuracy(){self._narrowed}"
        )


def _divisor(matrix: Floats) -> float:
    """The noisy number of rows over one less."""
    rows = max(float(matrix[0, 0]), 2.0)
    return rows / (rows - 1)


def _matrix(matrix: Floats, moments: Moments, corr: bool, *, project: bool) -> Floats:
    """Covariances with divisor n - 1, or correlations, from a matrix of moments."""
    rows = max(float(matrix[0, 0]), 2.0)
    means = matrix[0, 1:] / rows
    inner = matrix[1:, 1:] / rows - np.outer(means, means)
    if project:
        inner = nearest_psd(inner)
    if not corr:
        return np.asarray(inner * np.outer(moments.halves, moments.halves) * _divisor(matrix))
    spread = np.sqrt(np.maximum(np.diag(inner), 1e-12))
    scaled = np.clip(inner / np.outer(spread, spread), -1.0, 1.0)
    np.fill_diagonal(scaled, 1.0)
    return np.asarray(scaled)
