"""Tails and quantiles of sums of independent noises, for errors of ratios and totals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.noise import halved, rounded_reach

_LONGEST = 2**20
_NODES = 12  # of a mean over a Gamma law
# The smallest ratio of two scales; a scale that is nearer to a smaller one is raised to this ratio.
_APART = 1 + 1e-3
_FURTHER = 1 + 1e-2  # where a normal error is beside them: its tails are read from a table


def gaussian_sum_reaches(size: Floats, deviations: Sequence[Floats], alpha: float) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of independent normal noises.

    Input:  size and standard deviations >= 0 (any one unit), arrays of one shape; alpha in (0, 1)
    Output: array of that shape
    Bound:  X is normal with the root of the summed squares as its standard deviation
    Source: textbook
    Errors: none here

    >>> gaussian_sum_reaches(
    ...     np.array([9.79, 9.81]), [np.array([3.0, 3.0]), np.array([4.0, 4.0])], 0.05
    ... )
    array([ True, False])
    """
    width = np.zeros_like(size, np.float64)
    for deviation in deviations:
        width = np.hypot(width, deviation)  # not the root of squares, which may be beyond floats
    return np.asarray((size <= 0) | (size < width * NormalDist().inv_cdf(1 - alpha / 2)))


def laplace_sum_reaches(
    size: Floats, scales: Sequence[Floats], alpha: float, whole: tuple[Floats, float] | None = None
) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of independent Laplace
    noises, of which one may be discrete.

    Input:  size and scales >= 0 (any one unit), arrays of one shape; alpha in (0, 1); whole: (step,
            scale) of a noise that is step · K, with K discrete Laplace of that scale (in steps)
    Output: array of that shape. It errs on the side of True, for sizes up to 0.2% above the exact
            limit
    Bound:  for different scales b_i, P[|X| >= t] = Σ A_i e^(-t/b_i) with A_i = Π_(j≠i) b_i² / (b_i²
            - b_j²), from the partial fractions of the characteristic function Π 1 / (1 + b_i²s²).
            The probability grows with every scale (each noise is symmetric and unimodal). So where
            two scales are too close for these differences, the larger one is raised. With the
            additional noise step · K, X is the mixture with weights A_i of the distributions of Z_i
            + step · K: see `_with_steps`
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3; the sums are
            ours
    Errors: none here

    >>> laplace_sum_reaches(np.array([2.99, 3.0]), [np.ones(2), np.zeros(2)], 0.05)
    array([ True, False])
    """
    # Scales in units of the largest one, in increasing order.
    size = np.asarray(size, np.float64)
    steps = np.zeros_like(size) if whole is None else whole[0]
    largest = np.maximum(np.max(scales, axis=0), 1e-12 * steps)
    unit = np.where(largest > 0, largest, 1.0)
    ordered = _in_order([np.maximum(scale, largest * 1e-12) / unit for scale in scales], _APART)
    tail = np.zeros_like(size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for weight, scale in zip(_weights(ordered), ordered, strict=True):
            t = np.maximum(size, 0.0) / unit / scale
            tail += weight * (
                np.exp(-t) if whole is None else _with_steps(t, steps / unit / scale, whole[1])
            )
    return np.asarray((size <= 0) | ((tail > alpha) & (largest > 0)))


def _weights(scales: Sequence[Floats]) -> list[Floats]:
    """Weight of each Laplace noise in the tail of a sum: partial fractions of its transform."""
    squares = [scale**2 for scale in scales]
    weights = []
    for i, own in enumerate(squares):
        weight = np.ones_like(own)
        for square in squares[:i] + squares[i + 1 :]:
            weight = weight * own / (own - square)
        weights.append(weight)
    return weights


def _in_order(scales: Sequence[Floats], apart: float) -> list[Floats]:
    """Arrays with the smallest numbers in the first of them, and so on, each at least
    `apart` times the one before: for two or three arrays quicker than a sort.
    """
    ordered = list(scales)
    for last in range(len(ordered) - 1, 0, -1):
        for i in range(last):
            ordered[i], ordered[i + 1] = (
                np.minimum(ordered[i], ordered[i + 1]),
                np.maximum(ordered[i], ordered[i + 1]),
            )
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * apart)
    return ordered


def normal_laplace_reaches(
    size: Floats, scales: Sequence[Floats], deviation: Floats, alpha: float
) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of independent
    Laplace noises and one normal error.

    Input:  size, scales and the standard deviation >= 0 (any one unit), arrays of one shape; alpha
            in (0, 1)
    Output: array of that shape; True where a size is within 2% of the smallest one for which it is
            False
    Bound:  a sum of Laplace noises has the tail Σ A_i e^(-t/b_i): see `laplace_sum_reaches`. It is
            a mixture, with weights of either sign, of Laplace laws, and convolution with a normal
            law is linear. So P[|X| >= t] = Σ A_i P[|G + L_i| >= t], and for one Laplace noise P[G +
            L > t] = Φ(-t/s) + e^(r²/2 - t/b) Φ(t/s - r) / 2 - e^(r²/2 + t/b) Φ(-t/s - r) / 2 with s
            the standard deviation and r = s/b
    Source: Reed 2006, "The Normal-Laplace distribution and its relatives"; the sums are ours
    Errors: none here

    >>> normal_laplace_reaches(np.array([1.95, 1.97]), [np.full(2, 1e-6)], np.ones(2), 0.05)
    array([ True, False])
    """
    tail = _normal_laplaces_tail(np.maximum(np.asarray(size, np.float64), 0.0), scales, deviation)
    return np.asarray(
        (size <= 0) | ((tail > alpha) & (np.maximum(np.max(scales, axis=0), deviation) > 0))
    )


def _normal_laplaces_tail(size: Floats, scales: Sequence[Floats], deviation: Floats) -> Floats:
    """P[|X| >= size] for a sum X of independent Laplace noises and one normal error."""
    deviation = np.asarray(deviation, np.float64)
    largest = np.maximum(np.max(scales, axis=0), 1e-9 * deviation)
    unit = np.where(largest > 0, largest, 1.0)
    ordered = _in_order([np.maximum(scale / unit, 1e-9) for scale in scales], _FURTHER)
    tail = np.zeros_like(size)
    for weight, scale in zip(_weights(ordered), ordered, strict=True):
        tail += weight * _normal_laplace_tail(size / unit / scale, deviation / unit / scale)
    return tail


def _normal_laplace_tail(t: Floats, deviation: Floats) -> Floats:
    """P[|G + L| >= t] for Laplace L of scale 1 and normal G."""
    small = deviation < 1e-6
    s = np.where(small, 1.0, deviation)
    root = math.sqrt(2)
    near = np.exp(-np.minimum((t / s) ** 2 / 2, 700.0))
    away, towards = (t / s + s) / root, (s - t / s) / root
    first = np.where(
        towards >= 0,
        near * _scaled_erfc(np.maximum(towards, 0.0)),
        2 * np.exp(np.minimum(s**2 / 2 - t, 0.0)) - near * _scaled_erfc(np.maximum(-towards, 0.0)),
    )
    both = near * _scaled_erfc(t / s / root) + first / 2 - near * _scaled_erfc(away) / 2
    return np.asarray(np.where(small, np.exp(-np.minimum(t, 700.0)), both))


def mixed_normal_reaches(
    size: Floats, scales: Sequence[Floats], normal: Floats, mixed: Floats, order: int, alpha: float
) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of Laplace noises, a normal error,
    and a normal one of random size.

    Input:  size, scales and standard deviations >= 0, arrays of one shape; mixed: the standard
            deviation of R·G, with R of a Gamma law of this whole `order` and G normal; alpha in (0,
            1)
    Output: array of that shape
    Bound:  given R the sum is one of `normal_laplace_reaches`. Its tail is averaged over R by
            Gauss's quadrature, with 12 places that are exact for polynomials in R up to degree 23
    Source: Golub, Welsch 1969, for the places and weights
    Errors: none here

    >>> mixed_normal_reaches(np.array([2.07, 2.08]), [], np.zeros(2), np.ones(2), 5, 0.05)
    array([ True, False])
    """
    radii, weights = _gamma_places(order)
    size, tail = np.maximum(np.asarray(size, np.float64), 0.0), np.zeros(np.shape(size))
    for radius, weight in zip(radii, weights, strict=True):
        deviation = np.hypot(normal, mixed * radius)
        if scales:
            tail += weight * _normal_laplaces_tail(size, scales, deviation)
        else:
            ratio = np.divide(
                size, deviation * math.sqrt(2), out=np.full_like(size, 30.0), where=deviation > 0
            )
            tail += weight * np.exp(-(np.minimum(ratio, 27.0) ** 2)) * _scaled_erfc(ratio)
    return np.asarray((size <= 0) | (tail > alpha))


@cache
def _gamma_places(order: int) -> tuple[Floats, Floats]:
    """Places and weights for means of functions of a Gamma variable with mean square 1."""
    steps = np.arange(_NODES)
    beside = np.sqrt(steps[1:] * (steps[1:] + order - 1.0))
    places, vectors = np.linalg.eigh(
        np.diag(2.0 * steps + order) + np.diag(beside, 1) + np.diag(beside, -1)
    )
    return places / math.sqrt(order * (order + 1.0)), vectors[0] ** 2


@cache
def mixed_normal_error(order: int, alpha: float) -> float:
    """The e that a normal number of random size exceeds; see `mixed_normal_reaches`.

    Output: in standard deviations

    >>> round(mixed_normal_error(10**6, 0.05), 3)
    1.96
    """
    one = np.ones(1)
    _, error = halved(
        lambda x: not mixed_normal_reaches(x * one, [], 0 * one, one, order, alpha), 0.0, 64.0, 50
    )
    return error


# x / (1 + x) for the values of x in a table of e^(x²) · erfc(x)
_PLACES = np.linspace(0.0, 1.0, 20001)[:-1]


def _scaled_erfc(x: Floats) -> Floats:
    """e^(x²) · erfc(x) for x >= 0, between the values of a table, to about 1e-9."""
    return np.asarray(np.interp(x / (1 + x), _PLACES, _table(), right=0.0))


@cache
def _table() -> Floats:
    """e^(x²) · erfc(x), to about 1e-14 of itself.

    Bound:  below 1 the power series of erf. Above, the trapezoidal rule for ∫ e^(-t²) / (t² + x²)
            dt = π erfc(x) e^(x²) / x with steps h, whose error is the residue at the pole, 2 e^(x²)
            / (1 - e^(2πx/h)), and e^(-π²/h²)
    Source: Chiarella, Reichel 1968, Mathematics of Computation 22; Matta, Reichel 1971, ibid. 25
    """
    x, step = _PLACES / (1 - _PLACES), 0.5
    low, high = np.minimum(x, 1.0), np.maximum(x, 1.0)
    term, series = low.copy(), low.copy()
    for n in range(1, 22):
        term = -term * low**2 / n
        series += term / (2 * n + 1)
    below = np.exp(low**2) * (1 - 2 / math.sqrt(math.pi) * series)
    total = 1 / high**2 + sum(
        2 * math.exp(-((n * step) ** 2)) / ((n * step) ** 2 + high**2) for n in range(1, 14)
    )
    capped = np.minimum(high, math.pi / step)
    pole = np.where(
        high < math.pi / step, 2 * np.exp(capped**2) / -np.expm1(2 * math.pi * capped / step), 0.0
    )
    return np.asarray(np.where(x < 1, below, step * high / math.pi * total + pole))


def _with_steps(t: Floats, step: Floats, scale: float) -> Floats:
    """P[|Z + step · K| >= t] for Laplace Z of scale 1 and discrete Laplace K of this scale.

    P[|Z + u| >= t] is e^-t cosh u where |u| <= t, else 1 - e^-|u| sinh t. With P[K = k] = p·a^|k|,
    a = e^(-1/scale), p = (1 - a) / (1 + a), the sum over k consists of four geometric series, up to
    and above k = ⌊t / step⌋.
    """
    step = np.maximum(step, 1e-12 * np.maximum(t, 1.0))
    last = np.floor(t / step)
    rate, p = 1 / scale, math.tanh(1 / (2 * scale))
    both, beyond = -rate - step, (last + 1) * -rate
    outside = -np.expm1(both)
    inside = p * (np.exp(-t) + _series(step - rate, last, t) + _series(both, last, t))
    far = 2 * np.exp(beyond) / (1 + math.exp(-rate))
    return np.asarray(
        inside + far - p * (np.exp(t + (last + 1) * both) - np.exp((last + 1) * both - t)) / outside
    )


def _series(log: Floats, last: Floats, t: Floats) -> Floats:
    """e^-t · Σ_(k=1..last) e^(k·log), for a logarithm of either sign."""
    slope = np.maximum(np.abs(log), 1e-12)
    first = np.where(log > 0, last, 1.0) * log
    return np.asarray(np.exp(first - t) * np.expm1(-last * slope) / np.expm1(-slope))


def laplaces_tail(scales: Sequence[float], reach: float) -> float:
    """P[X >= reach] for a sum X of independent Laplace noises, for reach >= 0;
    at most 0.4% above the exact number.

    Input:  scales > 0 of few noises; reach (the same unit)
    Bound:  as in `laplace_sum_reaches`: half of P[|X| >= reach], with equal scales moved apart by
            0.1%
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3

    >>> round(laplaces_tail([1.0], 2.0), 6), round(laplaces_tail([1.0, 1.0], 0.0), 6)
    (0.067668, 0.5)
    """
    ordered = sorted(scale for scale in scales if scale > max(scales) * 1e-9)
    for i in range(1, len(ordered)):
        ordered[i] = max(ordered[i], ordered[i - 1] * _APART)
    weights = [math.prod(b**2 / (b**2 - c**2) for c in ordered if c != b) for b in ordered]
    return (
        math.fsum(weight * math.exp(-reach / b) for weight, b in zip(weights, ordered, strict=True))
        / 2
    )


def laplaces_error(scales: Sequence[float], alpha: float, moved: float, *, per: int = 1) -> int:
    """The e that a rounded sum of independent Laplace noises exceeds with probability <= alpha.

    Input:  scales (grid units); alpha in (0, 1); moved: the largest move by rounding to the grid;
            per: how many grid units make 1. If it is above 1, the released number is rounded half
            up to a multiple of `per`
    Output: e, in units of `per`
    Bound:  see `laplaces_tail`. With `per` above 1, as in `rounded_reach`: tails are convex, so the
            worst case is that the number before the noise is a multiple of `per` or one grid unit
            beside the middle
    Source: as `laplaces_tail`
    Errors: none here

    >>> laplaces_error([20.0, 20.0], 0.05, 1.0), laplaces_error([20.0], 0.05, 0.5)
    (83, 60)
    """
    return error_of_tail(
        lambda reach: laplaces_tail(scales, max(reach - moved, 0.0)), alpha, per=per
    )


def error_of_tail(
    tail: Callable[[int], float], alpha: float, *, per: int = 1, start: int = 0
) -> int:
    """The e that whole, symmetric noise exceeds with probability at most alpha.

    Input:  tail(k): P[noise >= k], which is convex for k >= 0; alpha in (0, 1); per: see
            `laplaces_error`; start: where the search begins
    Output: e, in units of `per`
    """
    return rounded_reach(lambda near, far: tail(near) + tail(far) <= alpha, per, start)


def laplace_total_error(scale: float, number: int, alpha: float) -> float:
    """Smallest e with P[|X| > e] <= alpha for a sum X of Laplace noises of one scale.

    Input:  scale > 0 (any unit); number of noises, at least 1; alpha in (0, 1)
    Output: e (same unit), rounded up in the ninth digit
    Bound:  X is the difference of two Gamma variables of shape n, and for scale 1 P[X > t] =
            Σ_(j<n) C(n-1+j, j) 2^-(n+j) Q(n-j, t), with Q(m, t) = e^-t Σ_(i<m) t^i / i!
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3; the sum is its
            density, integrated
    Errors: none here

    >>> round(laplace_total_error(1.0, 1, 0.05), 4), round(laplace_total_error(1.0, 2, 0.05), 4)
    (2.9957, 4.113)
    """
    j = np.arange(number)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * number)))])
    weights = np.exp(
        factorials[number - 1 + j]
        - factorials[number - 1]
        - factorials[j]
        - (number + j) * math.log(2)
    )

    def tail(t: float) -> float:
        terms = np.exp(j * math.log(t) - t - factorials[j])
        return 2 * float(weights @ np.cumsum(terms)[::-1])

    low, high = 0.0, 1.0
    while tail(high) > alpha:
        low, high = high, 2 * high
    return halved(lambda t: tail(t) <= alpha, low, high)[1] * scale * (1 + 1e-9)


def whole_total_error(scale: float, number: int, alpha: float, *, discrete: bool) -> int | None:
    """Least integer e with P[|X| > e] <= alpha for a sum X of integer Laplace noises of one scale.

    Input:  scale > 0; number of noises; alpha in (0, 1); discrete: True for discrete Laplace
            noises, False for real noises that are each rounded to the nearest integer
    Output: e; None if the distribution is too wide to tabulate (rounding to integers then hardly
            matters)
    Bound:  with a = e^(-1/scale) the characteristic functions of one noise are (1 - a)² / (1 - 2a
            cos s + a²) and 1 - √a + (1 - a)·√a·(cos s - a) / (1 - 2a cos s + a²). The distribution
            of the sum is the inverse transform of the n-th power, on a circle so long that values
            beyond it have probability below 1e-12
    Source: textbook
    Errors: none here

    >>> (
    ...     whole_total_error(1.0, 1, 0.05, discrete=True),
    ...     whole_total_error(1.0, 4, 0.05, discrete=True),
    ... )
    (3, 5)
    """
    length = 2 ** math.ceil(math.log2(4 * (laplace_total_error(scale, number, 1e-12) + number)))
    if length > _LONGEST:
        return None
    a, cosine = math.exp(-1 / scale), np.cos(2 * math.pi * np.arange(length // 2 + 1) / length)
    below = 1 - 2 * a * cosine + a**2
    fractional = (1 - a) * math.sqrt(a) * (cosine - a) / below
    single = (1 - a) ** 2 / below if discrete else 1 - math.sqrt(a) + fractional
    law = np.fft.irfft(single**number, length)[: length // 2]
    within = law[0] + 2 * np.concatenate([[0.0], np.cumsum(law[1:])])
    return int(np.argmax(within >= 1 - alpha + 1e-11))


def normal_error(deviation: float, alpha: float) -> float:
    """Smallest e with P[|X| > e] <= alpha for a normal X of mean 0.

    >>> round(normal_error(1.0, 0.05), 4)
    1.96
    """
    return deviation * NormalDist().inv_cdf(1 - alpha / 2)


def unimodal_error(deviation: float, alpha: float) -> float:
    """An e with P[|X| > e] <= alpha for any X that is symmetric about 0 and has one mode.

    Input:  the standard deviation of X (any unit); alpha in (0, 1)
    Output: e (same unit)
    Bound:  P[|X| > k·deviation] is at most 4 / 9k² where k² >= 4/3, and 1 - k/√3 below that. A sum
            of independent Laplace noises, each multiplied by a constant, is symmetric with one mode
    Source: Gauss 1823, "Theoria combinationis observationum"; Wintner 1938, for sums
    Errors: none here

    >>> round(unimodal_error(1.0, 0.05), 4)
    2.9814
    """
    k = 2 / (3 * math.sqrt(alpha)) if alpha <= 1 / 3 else math.sqrt(3) * (1 - alpha)
    return deviation * k


def log_concave_error(deviation: float, alpha: float) -> float:
    """An e with P[|X| > e] <= alpha for any X that is symmetric about 0
    and has a log-concave density.

    Input:  the standard deviation σ of X (any unit); alpha in (0, 1)
    Output: e (same unit), no larger than that of `unimodal_error`
    Bound:  let S(x) = P[|X| > x]. It is log-concave with S(0) = 1, so if S(e) = alpha, S(x) is at
            least alpha^(x/e) up to e. Hence σ² = ∫ 2x S(x) dx is at least 2e²(1 - alpha(1 + L)) /
            L² with L = log(1/alpha), and e is at most σ L / √(2(1 - alpha(1 + L))). A sum of
            independent Laplace noises, each multiplied by a constant, is symmetric and log-concave
    Source: Barlow and Marshall 1964, doi:10.1214/aoms/1177703281, for monotone hazard rates;
            Prékopa 1973, for sums
    Errors: none here

    >>> round(log_concave_error(1.0, 0.05), 4)
    2.368
    """
    rate = -math.log(alpha)
    return min(
        deviation * rate / math.sqrt(2 * (1 - alpha * (1 + rate))), unimodal_error(deviation, alpha)
    )
