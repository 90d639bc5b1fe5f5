"""Intervals for the population: noise and the sampling of people together.

The people of a table are taken as a random sample of a large population, each with all their rows. A released total has
two errors, noise and sampling, and they are independent. The sampling error is a sum over people. So it is about normal
(central limit theorem), with the variance that `dpframe.plan.moments` explains. This variance is not known; a noisy one
is. So a tenth of alpha is spent on an upper end of it, and the rest on the error itself.

A value fits the release if noise and a normal error of that deviation together reach its distance from the released
number with probability at least alpha. Where the variance follows from the value itself, it is that of the value which
is tried: p·(1 - p)·n for a rate (Wilson 1927, JASA 22), the number itself for a count of people. For a mean m, the
distance from the released mean is added to what people differ by, so that few people get wide intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.plan import Moment, Product, ReleasedColumn, Total
from dpframe.release.estimators.base import Interval, Parts
from dpframe.release.estimators.fieller import Terms, farthest, reaches
from dpframe.release.pricing import AddsNoise, NoisePlan

__all__ = ["mean_population", "total_population"]

SPENT = 1 / 10  # of alpha, on the upper end of a variance


def mean_population(output: ReleasedColumn, plan: NoisePlan, alpha: float, parts: Parts) -> Interval:
    """The means that fit, inside the bounds (column unit)."""
    assert output.bounds is not None
    (name, total), (size, count) = output.totals
    number, grid = parts[size], total.grid
    least, most = (float(Fraction(end) - grid.centre) for end in output.bounds)
    ratio = np.clip(parts[name] / np.maximum(number, 1.0), least, most)
    people = np.maximum(number + _reach([(np.ones_like(number), plan.of(count))], alpha * SPENT), 1.0)
    ends = [float(end * grid.step) for end in (grid.lower, grid.upper)]
    variance, rows = _mean_variance(output, plan, alpha * SPENT, parts, ratio)

    def fits(mean: Floats) -> NDArray[np.bool_]:
        if variance is None:
            sampled = people * np.maximum((ends[1] - mean) * (mean - ends[0]), 0.0)
        else:
            sampled = variance + (mean - ratio) ** 2 * rows * people
        terms = [(np.ones_like(mean), plan.of(total)), (np.abs(mean), plan.of(count))]
        size = np.abs(parts[name] - mean * number)
        return reaches(size, terms, alpha * (1 - SPENT), np.sqrt(sampled)) | (number < 1)

    low, high = (np.clip(farthest(fits, ratio, end), least, most) for end in (least, most))
    return low + float(grid.centre), high + float(grid.centre)


def _mean_variance(
    output: ReleasedColumn, plan: NoisePlan, alpha: float, parts: Parts, ratio: Floats
) -> tuple[Floats | None, float]:
    """The upper end of Σ (S - d·N)² over people, None for a rate, and the largest number of rows of a person.

    It is A - 2d·B + d²·C in the noisy totals that are released; see `dpframe.plan.moments`. Their noises are added with
    the weights that they have in it.
    """
    (name, total), (size, count) = output.totals
    moments = _by_product(output)
    if Product.SQUARE not in moments:
        return None, 1.0
    key, square, how = moments[Product.SQUARE]
    number, middle = parts[size], how.tilt * float(total.grid.step) / 2
    rows = how.most_rows * 2.0**how.rows_shift / 2.0**count.fraction
    per_row = float(how.slope * square.unit * Fraction(2**count.fraction, 2**how.rows_shift))
    d = ratio - middle
    value = parts[key] + per_row * number - 2 * d * rows * (parts[name] - middle * number) + d**2 * rows * number
    terms = [
        (np.ones_like(d), plan.of(square)),
        (2 * np.abs(d) * rows, plan.of(total)),
        (np.abs(per_row + d**2 * rows + 2 * d * rows * middle), plan.of(count)),
    ]
    if Product.CROSS in moments:
        (cross_key, cross, _), (spread_key, spread, _) = moments[Product.CROSS], moments[Product.ROW_SPREAD]
        value = value + 2 * d * parts[cross_key] - d**2 * parts[spread_key]
        terms[1:1] = [(2 * np.abs(d), plan.of(cross)), (d**2, plan.of(spread))]
    return np.maximum(value + _reach(terms, alpha), 0.0), rows


def total_population(output: ReleasedColumn, plan: NoisePlan, alpha: float, numbers: Floats, parts: Parts) -> Interval:
    """The counts or sums that fit."""
    ((_, total),) = output.totals
    noise = plan.of(total)
    variance = _total_variance(output, plan, alpha * SPENT, numbers, parts)
    rounding = 0.5 if output.whole and total.fraction else 0.0
    largest = numbers if variance is None else variance
    room = noise.error(alpha / 10) + math.sqrt(max(float(np.max(largest, initial=0.0)), 0.0)) + 10.0
    error = [_farthest_total(noise, variance, numbers, rounding, alpha, side, 20 * room) for side in (-1.0, 1.0)]
    return numbers - error[0], numbers + error[1]


def _farthest_total(
    noise: object, variance: Floats | None, numbers: Floats, rounding: float, alpha: float, side: float, end: float
) -> Floats:
    """How far from the released total a total on one side still fits it."""

    def fits(error: Floats) -> NDArray[np.bool_]:
        sampled = np.maximum(numbers + side * error, 0.0) if variance is None else variance
        terms: Terms = [(np.ones_like(error), noise)]  # type: ignore[list-item]
        rest = alpha if variance is None else alpha * (1 - SPENT)
        return reaches(error - rounding, terms, rest, np.sqrt(sampled))

    return farthest(fits, np.zeros_like(numbers), end)


def _total_variance(
    output: ReleasedColumn, plan: NoisePlan, alpha: float, numbers: Floats, parts: Parts
) -> Floats | None:
    """The upper end of Σ S² over people; None where it is the total itself, since each person counts as 0 or 1."""
    if not output.moments:
        return None
    ((_, total),) = output.totals
    ((key, moment),) = output.moments
    how = moment.moment
    assert how is not None
    ones = np.ones_like(numbers)
    if how.product is Product.SQUARE:
        return np.maximum(parts[key] + _reach([(ones, plan.of(moment))], alpha), 0.0)
    if how.product is Product.ROW_SPREAD:
        most = how.most_rows * 2.0**how.rows_shift / 2.0**total.fraction
    else:
        most = how.most * math.sqrt(moment.unit)
    terms = [(ones, plan.of(moment)), (most * ones, plan.of(total))]
    return np.maximum(most * numbers - parts[key] + _reach(terms, alpha), 0.0)


def _by_product(output: ReleasedColumn) -> Mapping[Product, tuple[str, Total, Moment]]:
    return {m.moment.product: (name, m, m.moment) for name, m in output.moments if m.moment is not None}


def _reach(terms: Sequence[tuple[Floats, object]], alpha: float) -> Floats:
    """What a weighted sum of noises exceeds with probability at most alpha, on one side."""
    weighted: Terms = terms  # type: ignore[assignment]
    end = np.zeros_like(terms[0][0])
    for weight, noise in weighted:
        assert isinstance(noise.mechanism, AddsNoise)
        end = end + weight * noise.error(min(2 * alpha, 0.5) / len(terms))
    if not end.any():
        return end

    def fits(part: Floats) -> NDArray[np.bool_]:
        return reaches(part * end, weighted, min(2 * alpha, 0.5))

    return end * np.where(end > 0, farthest(fits, np.zeros_like(end), 1.0), 0.0)
