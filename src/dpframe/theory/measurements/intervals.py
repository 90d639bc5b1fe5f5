"""The exponential mechanism over the intervals between the records: a quantile without a list of candidates."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument, MissingBounds
from dpframe.noise import ball, bits, precision, uniform_index
from dpframe.noise import uniform_ball as interval_of
from dpframe.theory.calls import ordered
from dpframe.theory.exact import exact
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Measurement
from dpframe.theory.measurements.grid_noise import checked_scale
from dpframe.theory.measurements.noise import number_domain
from dpframe.theory.spaces import Domain, MaxDivergence, Metric
from dpframe.theory.vectors import dataset

__all__ = ["interval_choice"]

_POINTS = 32  # There are at most 2^32 candidates between the bounds.


@ordered
def interval_choice(input_domain: Domain, input_metric: Metric, alpha: Any, scale: Any) -> Measurement:
    """A quantile by the exponential mechanism over all points between the bounds.

    Input:  vectors of numbers within the domain's bounds; alpha = a/b in [0, 1], as in `quantile_scores`; scale > 0
            (records): a point whose rank error is larger by `scale` records is e times less likely
    Output: a number of the domain's type, a multiple of a power of two. The candidates are at most 2^32 points between
            the bounds, which depend on the bounds alone. All points between two neighbouring records have one score. So
            an interval is drawn first, by its number of points and its score, and then a point in it
    Bound:  ε = 2·c/(b·scale), where scores (units of 1/b) change by at most c: `statistics.rank_scores`. The
            probability of a point is proportional to exp(score/(b·scale)), so this weight and the sum of all weights
            each change by a factor of at most e^(ε/2)
    Source: McSherry and Talwar 2007, theorem 6; Smith 2011, STOC, for intervals
    Errors: MissingBounds; InvalidArgument; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import AtomDomain, SymmetricDistance, VectorDomain
    >>> ages = VectorDomain(AtomDomain(float, bounds=(0, 100)))
    >>> interval_choice(ages, SymmetricDistance(), alpha=0.5, scale=1.0).map(1)
    1.0
    """
    domain, relation = dataset(input_domain, input_metric, "interval_choice")
    atom = number_domain(domain, "interval_choice")
    if atom.bounds is None:
        raise MissingBounds(
            f"interval_choice: the records have no bounds ({atom!r}). Bound them: clamp(domain, metric, bounds=...)."
        )
    rank, width = exact(alpha, "alpha"), checked_scale(scale)
    if not 0 <= rank <= 1 or rank.denominator > 10**6:
        raise InvalidArgument(f"interval_choice: alpha={alpha!r} is a fraction from 0 to 1 with a short decimal.")
    lower, upper = (Fraction(b) for b in atom.bounds)
    step = _step(upper - lower, atom.is_float)
    first, last = math.ceil(lower / step), math.floor(upper / step)
    if first > last:
        first = last = math.floor(lower / step)
    units = 1 / (rank.denominator * width)

    def run(values: Any) -> Any:
        entries = values.tolist() if hasattr(values, "tolist") else list(values)
        starts, scores = _regions([Fraction(v) / step for v in entries], first, last, rank)
        counts = [b - a for a, b in zip(starts, [*starts[1:], last + 1], strict=True)]
        best = max(scores)
        place = _weighted(counts, [(best - s) * units for s in scores])
        index = starts[place] + int(uniform_index(counts[place], 1)[0])
        point = index * step
        return float(point) if atom.is_float else int(point)

    return Measurement(
        domain,
        input_metric,
        MaxDivergence(),
        run,
        lambda d_in: 2 * statistics.rank_scores(d_in, rank, relation, domain.size) * units,
    )


def _step(width: Fraction, is_float: bool) -> Fraction:
    """The smallest power of two with at most 2^32 points between the bounds; at least 1 for integers."""
    exponent = 0 if not width else math.frexp(float(width))[1] - _POINTS + 1
    if not is_float:
        exponent = max(0, exponent)
    return Fraction(2) ** max(exponent, -1074)


def _regions(places: list[Fraction], first: int, last: int, rank: Fraction) -> tuple[list[int], list[int]]:
    """The points at which the score changes, from the first point on, and the score from each of them on.

    A record lies above the points before its ceiling, and below those after its floor.
    """
    a, b = rank.as_integer_ratio()
    floors = np.sort(np.array([math.floor(p) for p in places], dtype=object))
    ceilings = np.sort(np.array([math.ceil(p) for p in places], dtype=object))
    turns = {first, *(int(f) + 1 for f in floors), *(int(c) for c in ceilings)}
    starts = sorted(t for t in turns if first <= t <= last)
    below = np.searchsorted(floors, np.array(starts, dtype=object), side="left")
    above = len(places) - np.searchsorted(ceilings, np.array(starts, dtype=object), side="right")
    return starts, [-abs((b - a) * int(low) - a * int(high)) for low, high in zip(below, above, strict=True)]


def _weighted(counts: list[int], gaps: list[Fraction]) -> int:
    """An index with probability exactly proportional to count·exp(-gap). Bits are drawn until the index is certain."""
    fraction_bits, count = int(bits.random_words(1)[0]), 64
    while True:
        with precision(2 * count + 64):
            sums, total = [], ball(0)
            for number, gap in zip(counts, gaps, strict=True):
                total = total + number * (-ball(gap)).exp()
                sums.append(total)
            aim = interval_of(fraction_bits, count) * total
            for place, bound in enumerate(sums):
                if aim < bound:
                    return place
                if not aim >= bound:
                    break
            else:
                return len(counts) - 1
        fraction_bits, count = fraction_bits << 64 | int(bits.random_words(1)[0]), count + 64
