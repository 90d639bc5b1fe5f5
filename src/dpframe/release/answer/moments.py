"""The noisy moments of several columns, and moments that the true ones may be.

Every column is measured from the middle of its bounds, in units of half their width: it lies in
[-1, 1]. The matrix has a first row and column for the constant 1. All of this is post-processing of
one release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.random import Generator

from dpframe.arrays import Floats
from dpframe.fields import Names
from dpframe.plan import Bounds, Formula, ReleasedColumn
from dpframe.release.estimators import Influence
from dpframe.release.pricing import Noise, NoisePlan, simulated

# scales of the noise: P(|Laplace noise| > 4 scales) = e^-4 = 0.018, half of it on either side
_HELD_BACK = 4.0
# an entry of a matrix, and the entries of the first row from which it follows, with their weights
Follows = tuple[int, int, tuple[tuple[int, float], ...]]


@dataclass(frozen=True)
class Moments:
    """Noisy sums of products of columns, with the noise of each.

    `matrix` has sums of products, and `noises` the noise of each entry by its place. `scales` are
    those of Laplace noise of its deviation, or deviations of normal noise. `starts` says how much
    of the noise of the number of rows is in an entry too: sums are measured from the centres of
    their grids, which the number of rows corrects. Entries that follow from others have no noise of
    their own: `follows` maps such an entry to weights of entries of the first row.
    """

    names: Names
    middles: Floats
    halves: Floats
    matrix: Floats
    scales: Floats
    starts: Floats
    noises: Mapping[tuple[int, int], Noise]
    follows: tuple[Follows, ...]

    @classmethod
    def read(
        cls,
        long: pl.DataFrame,
        outputs: Sequence[ReleasedColumn],
        plan: NoisePlan,
        bounds: Mapping[str, Bounds],
        same: Sequence[Names],
    ) -> Moments:
        """The moments of a release whose columns are `Moment`
        aggregates, named by "·" between columns.

        Input:  the released table, its columns and its noise; bounds of each column; same: groups
                of columns of which a row has at most one true, the others false
        """
        names = tuple(bounds)
        size = len(names) + 1
        middles = np.array([(b.lower + b.upper) / 2 for b in bounds.values()], float)
        halves = np.array([(b.upper - b.lower) / 2 or 1.0 for b in bounds.values()], float)
        (matrix, scales, starts), noises = np.zeros((3, size, size)), dict[tuple[int, int], Noise]()
        places = _places(names)
        count = float(long["rows"][0])
        for output in outputs:
            total = output.total
            i, j = places[output.name]
            noise = noises[i, j] = plan.of(total)
            worth = _worth(halves, i, j)
            starts[i, j] = _start(float(total.grid.centre), middles, i, j) / worth
            matrix[i, j] = float(long[output.name][0]) / worth + starts[i, j] * count
            scales[i, j] = noise.deviation / worth / (1 if noise.added.normal else math.sqrt(2))
        follows = tuple(_follow(places, same))
        filled = _filled(matrix, follows)
        return cls(names, middles, halves, filled, scales, starts, noises, follows)

    @property
    def rows(self) -> float:
        """The noisy number of rows, at least 1."""
        return max(float(self.matrix[0, 0]), 1.0)

    @property
    def ridge(self) -> float:
        """A typical size of the noise in one entry of the moments, below which
        columns do not count as varying.
        """
        used = self.scales[self.scales > 0]
        return float(np.median(used)) if len(used) else 0.0

    def inverse(self) -> Floats:
        """The inverse of the moments of the inputs; directions that vary
        less than the noise are held back.

        The eigenvalues are raised to four scales of the noise, which Laplace noise exceeds in one
        of 100 cases: where they are below it, intervals are wide or have no end. Where all are
        larger than it, this changes nothing.
        """
        values, vectors = np.linalg.eigh(self.matrix[:-1, :-1])
        return np.asarray(
            (vectors / np.maximum(values, max(_HELD_BACK * self.ridge, 1e-9))) @ vectors.T
        )

    @property
    def to_units(self) -> Floats:
        """The matrix by which coefficients of scaled columns become those of the
        columns, but for the middle of y.
        """
        size = len(self.names)
        matrix = np.zeros((size, size))
        matrix[0, 0] = self.halves[-1]
        for i in range(1, size):
            matrix[i, i] = self.halves[-1] / self.halves[i - 1]
            matrix[0, i] = -matrix[i, i] * self.middles[i - 1]
        return matrix

    def derivatives(self, weights: Floats) -> dict[str, float]:
        """Derivatives of Σ weights · matrix (upper half) by each released moment, by
        its name (unit of that moment).

        Entries that follow from others give their weight to these.
        """
        upper = weights.copy()
        for i, j, others in self.follows:
            for k, weight in others:
                upper[0, k] += upper[i, j] * weight
        derived = {(i, j) for i, j, _ in self.follows}
        places = {
            name: place for name, place in _places(self.names).items() if place not in derived
        }
        result = {
            name: float(upper[i, j]) / _worth(self.halves, i, j) for name, (i, j) in places.items()
        }
        result["rows"] += sum(float(upper[i, j] * self.starts[i, j]) for i, j in places.values())
        return result

    def drawn(self, rng: Generator, times: int) -> Floats:
        """Matrices that the true one may be: the released one less noise
        of its own law, `times` of them.
        """
        noise, places = np.zeros((times, *self.scales.shape)), list(self.noises)
        for (i, j), drawn in zip(
            places, simulated(list(self.noises.values()), rng, times), strict=True
        ):
            noise[:, i, j] = drawn / _worth(self.halves, i, j)
        noise = noise + self.starts * noise[:, :1, :1]
        return _filled(np.triu(self.matrix) - noise, self.follows)


def _places(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Row and column of each moment in the matrix, by its name."""
    places = {"rows": (0, 0)} | {name: (0, i + 1) for i, name in enumerate(names)}
    return places | {
        f"{a}·{b}": (i + 1, j + 1)
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i <= j
    }


def _worth(halves: Floats, i: int, j: int) -> float:
    """Worth of one unit of a scaled moment (product of the column units)."""
    return float(np.prod([halves[k - 1] for k in (i, j) if k]))


def _start(centre: float, middles: Floats, i: int, j: int) -> float:
    """Number that each row adds to a sum, whatever its values are,
    because the grid has another centre.
    """
    if i == j == 0:
        return 0.0
    return centre - middles[j - 1] if i == 0 else centre


def _follow(places: Mapping[str, tuple[int, int]], same: Sequence[Names]) -> list[Follows]:
    """Entries of columns of true and false, measured from 1/2 in units of 1/2: squares are 1.

    Of two columns that are not true together, (2d - 1)(2e - 1) = 1 - 2d - 2e = -(2d - 1) - (2e - 1)
    - 1.
    """
    entries: list[Follows] = []
    for group in same:
        numbers = [places[name][1] for name in group]
        entries += [(i, i, ((0, 1.0),)) for i in numbers]
        entries += [
            (i, j, ((0, -1.0), (i, -1.0), (j, -1.0))) for i in numbers for j in numbers if i < j
        ]
    return entries


def _filled(upper: Floats, follows: Sequence[Follows]) -> Floats:
    """Symmetric matrices from their upper halves, with the entries that follow from others."""
    for i, j, weights in follows:
        upper[..., i, j] = sum(weight * upper[..., 0, k] for k, weight in weights)
    upper = np.triu(upper)
    return np.asarray(upper + np.swapaxes(np.triu(upper, 1), -1, -2))


def nearest_psd(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix in Frobenius norm:
    eigenvalues below 0 are raised to it.

    Source: Higham 1988, Linear Algebra and its Applications 103
    """
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((nearest + nearest.T) / 2)  # products of floats may differ in the last digit


# Influences of people on the coefficients of a regression; see `release.estimators.influence`


def coefficient_influences(
    outputs: Sequence[ReleasedColumn], plan: NoisePlan, long: pl.DataFrame
) -> list[tuple[ReleasedColumn, Influence]]:
    """A column for each coefficient of a regression, with its
    influences; empty for any other question.
    """
    regressors = outputs[0].regressors if outputs else None
    if regressors is None:
        return []
    return influences_of(
        outputs, Moments.read(long, outputs, plan, dict(regressors.among), regressors.same)
    )


def influences_of(
    outputs: Sequence[ReleasedColumn], moments: Moments
) -> list[tuple[ReleasedColumn, Influence]]:
    """As `coefficient_influences`, from moments that have been read.

    With the moments G of the inputs, those c of inputs and outcome, and b = G⁻¹·c, a row with the
    inputs x and the outcome y moves b by G⁻¹·x·(y - x·b). Over the rows of a person this is a
    weighted sum of the person's own moments.
    """
    regressors = outputs[0].regressors
    assert regressors is not None
    inverse, matrix = moments.inverse(), moments.matrix
    residual = np.append(-inverse @ matrix[:-1, -1], 1.0)
    limits = outputs[0].moments[0][1].moment
    assert limits is not None
    result = []
    for term, row, pair in zip(
        regressors.terms, moments.to_units @ inverse, outputs[0].moments, strict=True
    ):
        whole = np.zeros_like(matrix)
        whole[:-1] = np.outer(row, residual)
        upper = np.triu(whole) + np.tril(whole, -1).T
        weights = {name: np.array([value]) for name, value in moments.derivatives(upper).items()}
        largest = limits.most_rows * np.abs(row).sum() * np.abs(residual).sum()
        column = ReleasedColumn(term, Formula.SUM, regressors.entries, False, moments=(pair,))
        result.append((column, Influence(weights, np.array([largest]))))
    return result
