"""Intervals for means, variances and standard deviations: what is made of a noisy sum and a noisy count.

Write S + z and N = n + w for the noisy sum and count, Q + y for the noisy sum of squares, all measured as the totals
are; m = S/n, q = Q/n, and V = q - m² for the variance. The noises are independent, but for z and w of a pair (see
`_scales`), and these identities are exact:

- N · (released mean - m) = z - m·w
- N · (released variance - V) = y - 2m·z + (2m² - q)·w - N · (released mean - m)²

So the values of m that fit what was released are those for which z - m·w is as large as N·|released - m| with
probability at least alpha: a set that holds the true one with probability 1 - alpha (Fieller 1954). The size of a sum
of symmetric log-concave noises is, at each probability, a norm of their scales (Meyer and Reisner 1991; Bobkov 2010),
hence convex in m; so going away from the released value one leaves the set once at most, and bisection finds where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.plan import Measure, Output
from dpframe.release.pricing import Drawn, NoisePlan
from dpframe.theory.formulas.error import gaussian_sum_reaches, laplace_sum_reaches, sum_error

__all__ = ["expected_ratio_error", "merged_mean_interval", "ratio_interval"]

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]
Parts = Mapping[str, Floats]
_ASIDE = 1 / 50  # of alpha, for each of the two small terms of a variance
_HALVINGS = 40


def ratio_interval(output: Output, noise: NoisePlan, alpha: float, parts: Parts) -> Interval:
    """Where the mean, variance or standard deviation without noise is, with probability 1 - alpha (column unit).

    Input:  parts: the noisy totals under the column, by name (column unit)
    Output: two arrays, one number per group, inside what the bounds allow; all of that where fewer than one value was
            counted
    """
    low, high = (
        _mean(output, noise, alpha, parts) if output.formula == "mean" else _variance(output, noise, alpha, parts)
    )
    return (np.sqrt(low), np.sqrt(high)) if output.formula == "std" else (low, high)


def _mean(output: Output, noise: NoisePlan, alpha: float, parts: Parts) -> Interval:
    """The set of Fieller, inside the bounds."""
    assert output.bounds is not None
    (name, total), (size, count) = output.measures[0], output.measures[-1]
    number, centre = parts[size], float(total.grid.centre)
    released = parts[name] / np.maximum(number, 1.0)

    def fits(mean: Floats) -> NDArray[np.bool_]:
        terms = [(np.ones_like(mean), noise.of(total)), (np.abs(mean), noise.of(count))]
        return _reaches(np.abs(released - mean) * number, terms, alpha) | (number < 1)

    least, most = (float(Fraction(end) - total.grid.centre) for end in output.bounds)
    low, high = (np.clip(_farthest(fits, released, end), least, most) for end in (least, most))
    return low + centre, high + centre


def merged_mean_interval(
    output: Output, noise: NoisePlan, alpha: float, total: float, number: float, groups: int
) -> tuple[float, float]:
    """Where the mean over several groups without noise is, with probability 1 - alpha (column unit).

    Input:  total, number: the sum and the count over these groups, as released (column unit); how many groups they are
    Output: the two ends, inside the bounds; all of that where fewer than one value was counted
    Bound:  the set of Fieller for sums of noises: see `sum_error`. Its error is convex in the mean (for each s the
            logarithm of Chernoff's bound is, and so is the least over s of a perspective of it), so going away from the
            released value one leaves the set once at most, or is in it at the end. Rounding counts as in `error_of_sum`
    """
    assert output.bounds is not None
    (_, summed), (_, counted) = output.measures[0], output.measures[-1]
    centre = float(summed.grid.centre)
    least, most = (float(Fraction(end) - summed.grid.centre) for end in output.bounds)
    if number < 1:
        return least + centre, most + centre
    released = total / number

    def fits(means: Floats) -> NDArray[np.bool_]:
        (mean,) = means
        normal, real = 0.0, []
        for weight, drawn in ((1.0, noise.of(summed)), (abs(mean), noise.of(counted))):
            unit = weight * float(drawn.paid.measure.unit)
            if drawn.family == "gaussian":
                normal += groups * (drawn.scale * unit) ** 2
            elif drawn.family != "none":
                real.append((np.array([unit]), drawn))
            normal += groups * (unit * drawn.rounding) ** 2
        laplace = [(scale.item(), groups) for scale in _scales(real)]
        return np.array([abs(released - mean) * number < sum_error(normal, laplace, alpha)])

    ends = (_farthest(fits, np.array([released]), end).item() for end in (least, most))
    low, high = (min(max(end, least), most) + centre for end in ends)
    return low, high


def _variance(output: Output, noise: NoisePlan, alpha: float, parts: Parts) -> Interval:
    """The variances that fit, with the mean anywhere in its own set and the divisor in its own.

    With probability 1 - alpha/50 the mean is in its set, which bounds (released - m)² and the weights of z and w; with
    ddof=1 likewise the count, for n / (n - 1). The rest of alpha is for y - 2m·z + (2m² - q)·w.
    """
    (name, total), (squares, square), (size, count) = output.measures
    number, half = parts[size], _half_width(output)
    shift = float(total.grid.centre - square.about)  # the sum is measured from here, the squares from the middle
    held = float(square.grid.centre)
    near, far = (end - float(square.about) for end in _mean(output, noise, alpha * _ASIDE, parts))
    released = parts[name] / np.maximum(number, 1.0) + shift
    off = np.maximum(np.abs(released - near), np.abs(far - released)) ** 2
    widest = np.maximum(np.abs(near), np.abs(far))
    closest = np.where(near * far <= 0, 0.0, np.minimum(np.abs(near), np.abs(far)))
    spread = held + parts[squares] / np.maximum(number, 1.0) - released**2
    rest = alpha * (1 - _ASIDE * (2 if output.ddof else 1))

    def fits(variance: Floats) -> NDArray[np.bool_]:
        weight = np.maximum(np.abs(widest**2 - variance + held), np.abs(closest**2 - variance + held))
        weight = weight + 2 * widest * abs(shift)
        terms = [(np.ones_like(weight), noise.of(square)), (2 * widest, noise.of(total)), (weight, noise.of(count))]
        size = np.where(variance > spread, variance - spread - off, spread - variance) * number
        return _reaches(size, terms, rest) | (number < 1)

    low, high = (np.clip(_farthest(fits, spread, end), 0.0, half**2) for end in (0.0, half**2))
    if not output.ddof:
        return low, high
    error = noise.of(count).error(alpha * _ASIDE)
    least, most = _divisors(number - error, number + error)
    return np.where(number < 1, 0.0, low * least), np.where(number < 1, 2.0, most) * high


def expected_ratio_error(output: Output, noise: NoisePlan, alpha: float, rows: float) -> float:
    """An error that is exceeded with probability at most alpha, whatever the values in their bounds are (column unit).

    Input:  rows: how many values there are
    Bound:  with n values known and N = n + w, |released mean - m| > e needs z - (m + e)·w > e·n or
            -z + (m - e)·w > e·n, and |m| is at most half the width of the bounds, h; likewise for a variance with
            2|m| <= 2h and |2m² - q| <= 3h²/2. A mean is drawn to the middle by c/N, c = (σ/h)² (see `mean_of`): then
            it is z - (m + e)·w > e·n + (m + e)·c/N, so that c·(h - e)/N at most comes to its help, nothing if e >= h.
            With probability 1 - alpha/50, N is at least n less its error at alpha/50. A standard deviation is off by at
            most the root of what the variance is off by, and by as much where values hardly differ: after a release it
            is often far better known
    """
    half = _half_width(output)
    total, count = output.measures[0][1], output.measures[-1][1]
    aside = alpha if output.formula == "mean" else alpha * _ASIDE
    mean = _expected(noise, [(1.0, total)], count, half, rows, aside, 2 * half)
    if output.formula == "mean":
        least = rows - noise.of(count).error(alpha * _ASIDE)
        if least <= 0 or not half:
            return max(mean, half)
        pull = (noise.of(total).deviation / half) ** 2 / least
        drawn = _expected(noise, [(1.0, total)], count, half, rows, alpha * (1 - _ASIDE), 2 * half, pull)
        return min(drawn, max(mean, half))
    terms = [(1.0, output.measures[1][1]), (2 * half, total)]
    rest = alpha * (1 - _ASIDE * (2 if output.ddof else 1))
    variance = min(_expected(noise, terms, count, 1.5 * half**2, rows, rest, half**2) + mean**2, half**2)
    if output.ddof:
        error = noise.of(count).error(alpha * _ASIDE)
        least, most = (float(x) for x in _divisors(np.array(rows - error), np.array(rows + error)))
        variance = min(variance * most + half**2 * (most - least), half**2 * most)
    return float(np.sqrt(variance)) if output.formula == "std" else variance


def _expected(
    noise: NoisePlan,
    terms: Sequence[tuple[float, Measure]],
    count: Measure,
    weight: float,
    rows: float,
    alpha: float,
    most: float,
    pull: float = 0.0,
) -> float:
    """The largest e, up to `most`, that noises of these weights reach with probability alpha, with a pull to help."""

    def fits(error: Floats) -> NDArray[np.bool_]:
        fixed = [(np.full_like(error, x), noise.of(measure)) for x, measure in terms]
        size = error * rows - pull * np.maximum(weight - error, 0.0)
        return _reaches(size, [*fixed, (weight + error, noise.of(count))], alpha)

    return _farthest(fits, np.zeros(1), most).item()


def _reaches(size: Floats, terms: Sequence[tuple[Floats, Drawn]], alpha: float) -> NDArray[np.bool_]:
    """Whether noises of these weights add up to such a size with probability above alpha.

    A discrete Laplace count is taken as it is. Another integer noise is a real one that is rounded by at most half a
    step of its grid (see `Drawn.rounding`), or smaller than that in distribution.
    """
    found = [(weight * float(d.paid.measure.unit), d) for weight, d in terms if d.family != "none"]
    if any(d.family == "gaussian" for _, d in found):
        rounding = sum((weight / 2 for weight, _ in found), np.zeros_like(size))
        return gaussian_sum_reaches(size - rounding, [weight * d.scale for weight, d in found], alpha)
    whole = None
    if found and found[-1][1].family == "discrete_laplace":
        weight, last = found.pop()
        whole = weight, last.scale
    rounding = sum((weight * max(d.rounding, 0.5) for weight, d in found), np.zeros_like(size))
    return laplace_sum_reaches(size - rounding, _scales(found) or [np.zeros_like(size)], alpha, whole)


def _scales(found: Sequence[tuple[Floats, Drawn]]) -> list[Floats]:
    """Scales of the independent Laplace noises that make up noises of these weights (in units of each measure).

    A sum and a count that are a pair have two noises in common, one of them with the other sign; so with the scales a
    and b there are two, of the scales a + b and |a - b|, whatever the signs of the weights. The law is symmetric in
    each weight and log-concave, so that its quantiles are a norm of the weights here too. A count whose sum is not
    there has two of its own, b and b.
    """
    alone = [weight * d.scale for weight, d in found if d.family != "paired_laplace"]
    paired = [weight * d.scale for weight, d in found if d.family == "paired_laplace"]
    if not paired:
        return alone
    first, second = paired if len(paired) == 2 else (paired[0], np.zeros_like(paired[0]))
    return [*alone, first + second, np.abs(first - second)]


def _farthest(fits: Callable[[Floats], NDArray[np.bool_]], start: Floats, end: float) -> Floats:
    """How far from start, where it fits, one can go towards the end: the end, or a place that no longer fits."""
    inside, outside = np.array(start, np.float64), np.full_like(start, end, np.float64)
    all_of_it = fits(outside)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        yes = fits(middle)
        inside, outside = np.where(yes, middle, inside), np.where(yes, outside, middle)
    return np.where(all_of_it, end, outside)


def _divisors(low: Floats, high: Floats) -> Interval:
    """The least and the largest n / max(n - 1, 1) for n from low to high, and at least 1."""
    low, high = np.maximum(low, 1.0), np.maximum(high, 1.0)
    at_low, at_high = low / np.maximum(low - 1, 1.0), high / np.maximum(high - 1, 1.0)
    most = np.where((low <= 2) & (high >= 2), 2.0, np.maximum(at_low, at_high))
    return np.minimum(at_low, at_high), most


def _half_width(output: Output) -> float:
    assert output.bounds is not None
    return float(Fraction(output.bounds.upper) - Fraction(output.bounds.lower)) / 2
