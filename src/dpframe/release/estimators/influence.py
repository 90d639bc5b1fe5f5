"""Influences: how far each person moves a statistic, and the sampling
variance that follows from it.

A statistic is a function of noisy totals T_1, …, T_p. Let g_j be its derivative for T_j, and let a
person add P_j to T_j. The person moves the statistic by about ψ = Σ g_j·P_j. For people who are
drawn at random, the variance of the statistic is about Σ ψ² over them, whatever the rows of one
person have in common (Cochran 1977, "Sampling Techniques", chapters 6 and 9; Liang, Zeger 1986,
Biometrika 73, for clusters). Sums of ψ are 0 for a statistic of degree 0, such as a ratio, so
nothing is taken from Σ ψ².

The derivatives are those at the noisy totals, which are drawn first. One more noisy number per
group is Σ ψ²/c², where c is the largest influence that the bounds and limits allow. So no influence
is clipped, whatever the values are. A smaller c would have less noise; but it must be found without
the values. Several times the spread that normal values have is too small where most values are zero
and few are large: then few people have most of Σ ψ², and intervals are too narrow, the more so the
less noise there is. What follows from noisy totals has no privacy cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.plan import INFLUENCE_MOST, ReleasedColumn, Total
from dpframe.release.pricing import Noise, NoisePlan
from dpframe.theory.formulas.error import variance_allowance

Parts = Mapping[str, Floats]  # noisy totals under a derived column, by name (column unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyColumn(ReleasedColumn):
    """A released column with the noise of its totals, and the totals as they were drawn."""

    plan: NoisePlan
    parts: Parts = field(default_factory=dict)

    @classmethod
    def of(cls, output: ReleasedColumn, plan: NoisePlan, parts: Parts | None = None) -> NoisyColumn:
        """A released column with its noise."""
        own = {part.name: getattr(output, part.name) for part in fields(ReleasedColumn)}
        return cls(**own, plan=plan, parts=parts or {})

    def __getitem__(self, name: str) -> Floats:
        """A noisy total by its name (column unit)."""
        return self.parts[name]

    def noise(self, total: Total) -> Noise:
        """The noise of a total."""
        return self.plan.of(total)


@dataclass(frozen=True)
class Influence:
    """Derivatives of a statistic, by the name of a total, one number per group.

    `most` is the largest influence of a person that bounds and limits allow (unit of the
    statistic). With n rows of k that the limits allow, it is at most n/k of that.
    """

    weights: Mapping[str, Floats]
    most: Floats

    @property
    def clip(self) -> Floats:
        """Divisor of an influence: the largest one, or 1 where it is not known to be above 0."""
        return np.where(np.isfinite(self.most) & (self.most > 0), self.most, 1.0)


@dataclass(frozen=True)
class Sampled:
    """A noisy sampling variance for each group (square of the unit of the statistic).

    `value` is as released, and may be below 0. `scale` is that of Laplace noise with the variance
    of the noise in it. `known` is the variance of the noise in the statistic itself.
    """

    value: Floats
    scale: Floats
    known: Floats

    def upper(self, alpha: float) -> Floats:
        """The variance with its allowance, at least 0: see `variance_allowance`."""
        ratio = np.divide(
            self.known, self.scale, out=np.full_like(self.scale, np.inf), where=self.scale > 0
        )
        return np.asarray(
            np.maximum(self.value + variance_allowance(ratio, alpha) * self.scale, 0.0)
        )


def influence_moment(output: ReleasedColumn) -> tuple[str, Total] | None:
    """The name and total of a column's squared influences; None where it has none."""
    return next(
        ((name, total) for name, total in adaptive_moments(output) if not total.between_groups),
        None,
    )


def adaptive_moments(output: ReleasedColumn) -> list[tuple[str, Total]]:
    """The names and totals of a column's products of influences, which are read
    after its noisy totals are drawn.
    """
    return [(name, total) for name, total in output.moments if total.of_influence]


def reach_of(output: ReleasedColumn, total: Total) -> tuple[float, float]:
    """The smallest and largest value that one person adds to a total in a group,
    under the limits (column unit).
    """
    moment = adaptive_moments(output)[0][1].moment
    assert moment is not None
    rows = 1 if total.of_units else moment.most_rows
    low, high = (rows * float(end) for end in total.grid.ends)
    return min(low, 0.0), max(high, 0.0)


def influence_weights(output: ReleasedColumn, total: Total, influence: Influence) -> Integers:
    """The whole numbers by which the engine multiplies partials, of shape (groups, totals).

    A weight is g/c in units of the lifted partials, times 2^40, so that an influence of c becomes
    `INFLUENCE_MOST`. Weights that are too large for this are cut by the engine.
    """
    assert total.moment is not None
    columns = []
    for (name, part), lift in zip(output.totals, total.moment.lifts, strict=True):
        worth = influence.weights[name] * float(part.unit) / influence.clip
        columns.append(
            np.clip(
                np.nan_to_num(worth * 2.0**-lift * INFLUENCE_MOST * 2.0**24), -(2.0**30), 2.0**30
            )
        )
    return np.rint(np.array(columns)).T.astype(np.int64)


def sampling_variance(output: NoisyColumn, influence: Influence, alpha: float) -> Floats:
    """Σ ψ² over people with its allowance (square of the unit of the
    statistic): see `variance_allowance`.
    """
    return sampled_influence(output, influence).upper(alpha)


def sampled_influence(output: NoisyColumn, influence: Influence) -> Sampled:
    """Σ ψ² over people as released, with its noise."""
    squared = influence_moment(output)
    assert squared is not None
    name, total = squared
    square, moment = influence.clip**2, total.moment
    assert moment is not None
    value, deviation = output[name], output.noise(total).deviation
    if moment.counts is not None:  # half of the largest square was taken away for each row
        rows, count = output.totals[-1]
        per_row = float(
            moment.slope * total.unit * Fraction(2**count.fraction, 2**moment.rows_shift)
        )
        value = value + per_row * output[rows]
        deviation = float(np.hypot(deviation, per_row * output.noise(count).deviation))
    return Sampled(
        value * square, square * deviation / np.sqrt(2), _noise_variance(output, influence)
    )


def covariances(output: NoisyColumn, influence: Influence) -> tuple[Floats, Floats]:
    """Σ ψ·ψ' over people for each two groups, and the scale of Laplace noise with
    the variance of the noise in it.

    Input:  a column whose release paid for them
    Output: two symmetric matrices of shape (groups, groups) (square of the unit of the statistic),
            with 0 where a group meets itself
    """
    pairs = [(name, total) for name, total in output.moments if total.between_groups]
    number = len(pairs) + 1
    values, scales = np.zeros((number, number)), np.zeros((number, number))
    for name, total in pairs:
        assert total.moment is not None
        place, clip = total.moment.place, influence.clip
        worth = clip[:place] * clip[place]
        values[:place, place] = values[place, :place] = output[name][:place] * worth
        scales[:place, place] = scales[place, :place] = (
            output.noise(total).deviation / np.sqrt(2) * worth
        )
    return values, scales


def _noise_variance(output: NoisyColumn, influence: Influence) -> Floats:
    """The variance that the noise of the totals gives to the statistic."""
    terms = [
        (influence.weights[name] * output.noise(total).deviation) ** 2
        for name, total in output.totals
    ]
    return np.asarray(np.sum(terms, axis=0))
