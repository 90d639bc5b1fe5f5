"""Intervals for the population: noise and the sampling of people together.

The people of a table are taken as a random sample of a large population, each with all their rows.
A released total has two errors, noise and sampling, and they are independent. The sampling error is
a sum over people. So it is about normal (central limit theorem), with the variance that
`dpframe.plan.moments` explains. This variance is not known; a noisy one is. So something is added
to it, such that intervals still hold their number often enough: see
`dpframe.theory.formulas.error.variance_allowance`.

A value fits the release if noise and a normal error of that deviation together reach its distance
from the released number with probability at least alpha. Where the variance follows from the value
itself, it is that of the value which is tried: p·(1 - p)·n for a rate (Wilson 1927, JASA 22), the
number itself for a count of people. For a mean m, the distance from the released mean is added to
what people differ by, so that few people get wide intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import Product, ReleasedColumn, Total, UnitMoment
from dpframe.release.estimators.base import Interval
from dpframe.release.estimators.fieller import Terms, farthest, reaches
from dpframe.release.estimators.influence import (
    Influence,
    NoisyColumn,
    Sampled,
    adaptive_moments,
    influence_moment,
    sampled_influence,
)


def mean_population(output: NoisyColumn, alpha: float) -> Interval:
    """The means that fit, inside the bounds (column unit)."""
    (name, total), (size, count) = output.totals
    number, grid = output[size], total.grid
    least, most = output.ends_from(grid.centre)
    ratio = _centred(output)
    ones, zeros = np.ones_like(number), np.zeros_like(number)
    people = np.maximum(
        Sampled(number, _scale([(ones, output.noise(count))]), zeros).upper(alpha), 1.0
    )
    ends = [float(end * grid.step) for end in (grid.lower, grid.upper)]
    variance, rows = _mean_variance(output, ratio)

    known = zeros if variance is None else variance.upper(alpha)

    def fits(mean: Floats) -> Booleans:
        if variance is None:
            sampled = people * np.maximum((ends[1] - mean) * (mean - ends[0]), 0.0)
        else:
            sampled = known + (mean - ratio) ** 2 * rows * people
        terms = [(ones, output.noise(total)), (np.abs(mean), output.noise(count))]
        return reaches(np.abs(output[name] - mean * number), terms, alpha, np.sqrt(sampled)) | (
            number < 1
        )

    low, high = (np.clip(farthest(fits, ratio, end), least, most) for end in (least, most))
    return low + float(grid.centre), high + float(grid.centre)


def _centred(output: NoisyColumn) -> Floats:
    """The distance of a mean from the centre of its grid, by the noisy totals,
    inside the bounds (column unit).
    """
    (name, total), (size, _) = output.totals
    least, most = output.ends_from(total.grid.centre)
    return np.clip(output[name] / np.maximum(output[size], 1.0), least, most)


def mean_influence(output: NoisyColumn) -> Influence:
    """(S_u - d·N_u) / n of a person, with d the distance of the mean from the
    middle; it is largest at a bound.
    """
    (name, total), (size, _) = output.totals
    distance, number = _centred(output), np.maximum(output[size], 1.0)
    ends = [
        np.abs(float(end * total.grid.step) - distance)
        for end in (total.grid.lower, total.grid.upper)
    ]
    moment = adaptive_moments(output)[0][1].moment
    assert moment is not None
    largest = moment.most_rows * np.maximum(*ends) / number
    return Influence({name: 1 / number, size: -distance / number}, largest)


def sampled_mean(output: NoisyColumn) -> Sampled:
    """The sampling variance of a mean, as released; of a rate p, p·(1 - p)/n."""
    (_, total), (size, count) = output.totals
    ratio, number = _centred(output), np.maximum(output[size], 1.0)
    variance, _ = _mean_variance(output, ratio)
    if variance is None:
        low, high = (float(end * total.grid.step) for end in (total.grid.lower, total.grid.upper))
        of_rate = np.maximum((high - ratio) * (ratio - low), 0.0) / number
        known = (
            _variance([(np.ones_like(ratio), output.noise(total)), (ratio, output.noise(count))])
            / number**2
        )
        return Sampled(of_rate, np.zeros_like(ratio), known)
    return Sampled(*(part / number**2 for part in (variance.value, variance.scale, variance.known)))


def _mean_variance(output: NoisyColumn, ratio: Floats) -> tuple[Sampled | None, float]:
    """Σ (S - d·N)² over people as released, None for a rate, and the
    largest number of rows of a person.

    It is A - 2d·B + d²·C in the noisy totals that are released; see `dpframe.plan.moments`. Their
    noises are added with the weights that they have in it.
    """
    (name, total), (size, count) = output.totals
    squared = influence_moment(output)
    if squared is not None and squared[1].moment is not None:
        of_mean, whole = (
            sampled_influence(output, mean_influence(output)),
            np.maximum(output[size], 1.0),
        )
        sums = Sampled(*(part * whole**2 for part in (of_mean.value, of_mean.scale, of_mean.known)))
        return sums, squared[1].moment.most_rows
    moments = _by_product(output)
    if Product.SQUARE not in moments:
        return None, 1.0
    key, square, how = moments[Product.SQUARE]
    number, middle = output[size], how.tilt * float(total.grid.step) / 2
    rows = how.most_rows * 2.0**how.rows_shift / 2.0**count.fraction
    per_row = float(how.slope * square.unit * Fraction(2**count.fraction, 2**how.rows_shift))
    d, ones = ratio - middle, np.ones_like(ratio)
    value = (
        output[key]
        + per_row * number
        - 2 * d * rows * (output[name] - middle * number)
        + d**2 * rows * number
    )
    terms = [
        (ones, output.noise(square)),
        (2 * d * rows, output.noise(total)),
        (per_row + d**2 * rows + 2 * d * rows * middle, output.noise(count)),
    ]
    if Product.CROSS in moments:
        (cross_key, cross, _), (spread_key, spread, _) = (
            moments[Product.CROSS],
            moments[Product.ROW_SPREAD],
        )
        value = value + 2 * d * output[cross_key] - d**2 * output[spread_key]
        terms += [(2 * d, output.noise(cross)), (d**2, output.noise(spread))]
    known = _variance([(ones, output.noise(total)), (ratio, output.noise(count))])
    return Sampled(value, _scale(terms), known), rows


def total_population(output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
    """The counts or sums that fit."""
    total = output.total
    noise, sampled_people = output.noise(total), _total_variance(output, numbers)
    variance = None if sampled_people is None else sampled_people.upper(alpha)
    rounding = 0.5 if output.whole and total.fraction else 0.0
    largest = max(float(np.max(numbers if variance is None else variance, initial=0.0)), 0.0)
    farthest_away = 20 * (
        noise.error(alpha / 10) + (math.sqrt(largest) + 10.0) * math.sqrt(1 - math.log10(alpha))
    )

    def fits(error: Floats, side: float) -> Booleans:
        sampled = np.maximum(numbers + side * error, 0.0) if variance is None else variance
        return reaches(error - rounding, [(np.ones_like(error), noise)], alpha, np.sqrt(sampled))

    low, high = (
        farthest(partial(fits, side=side), np.zeros_like(numbers), farthest_away)
        for side in (-1.0, 1.0)
    )
    return numbers - low, numbers + high


def sampled_total(output: NoisyColumn, numbers: Floats) -> Sampled:
    """The sampling variance of a count or sum, as released; of a number of people, that number."""
    total = output.total
    variance = _total_variance(output, numbers)
    known = _variance([(np.ones_like(numbers), output.noise(total))])
    return (
        Sampled(np.maximum(numbers, 0.0), np.zeros_like(numbers), known)
        if variance is None
        else variance
    )


def _total_variance(output: NoisyColumn, numbers: Floats) -> Sampled | None:
    """Σ S² over people as released; None where it is the total itself,
    since each person counts as 0 or 1.
    """
    moments = _by_product(output)
    if not moments:
        return None
    ((_, total),), ((key, moment, _),) = output.totals, moments.values()
    how, ones = moment.moment, np.ones_like(numbers)
    assert how is not None
    known = _variance([(ones, output.noise(total))])
    if how.product is Product.SQUARE:
        return Sampled(output[key], _scale([(ones, output.noise(moment))]), known)
    if how.product is Product.ROW_SPREAD:
        most = how.most_rows * 2.0**how.rows_shift / 2.0**total.fraction
    else:
        most = how.most * math.sqrt(moment.unit)
    terms = [(ones, output.noise(moment)), (most * ones, output.noise(total))]
    return Sampled(most * numbers - output[key], _scale(terms), known)


def _by_product(output: ReleasedColumn) -> Mapping[Product, tuple[str, Total, UnitMoment]]:
    """The second moments of a column that are read with its totals, by what they multiply."""
    moments = [(name, m, m.moment) for name, m in output.moments if not m.of_influence]
    return {how.product: (name, m, how) for name, m, how in moments if how is not None}


def _variance(terms: Terms) -> Floats:
    """The variance of a weighted sum of noises.
    It is also that of a pair, whose noises have opposite signs once.
    """
    return np.asarray(sum((weight * noise.deviation) ** 2 for weight, noise in terms))


def _scale(terms: Terms) -> Floats:
    """The scale of Laplace noise with the variance of a weighted sum of noises."""
    return np.asarray(np.sqrt(_variance(terms) / 2))
