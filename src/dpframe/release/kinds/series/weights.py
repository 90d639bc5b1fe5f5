"""The weights with which a night measures its own period and those before it,
and the errors that they leave.

A night publishes its weighted sum with fresh noise. So nothing is kept in secret, and nothing but
published sums is needed later: all periods' totals follow from the sums, one period after the
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpframe.theory.formulas.sensitivity import weighted_square

# the weight of a night's own period: weights are integers, so that the sums of integers are
# integers
_ONE = 256
REACH = 90  # the number of periods in a sum, which are those that a night reads
LONGEST = 1024  # for more periods, blocks have a more exact running total
_PARTS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)  # of the first earlier period, in fortieths
_POWERS = (0, 2, 3, 4, 5, 6, 7, 8, 10)  # by which the weights of earlier periods fall, in tenths
# periods of the windows whose errors choose the weights, beside the running total
_WINDOWS = (1, 7, 30)
# the largest error of a running total that is accepted for more exact windows, over the smallest
# one
_SLACK = 1.18

Floats = NDArray[np.float64]


def chosen_weights(length: int, periods: int) -> tuple[int, ...]:
    """The weights of a horizon, by lag: of a night's own period, of the one that
    was added before it, and so on.

    Input:  length: number of periods of the horizon; periods: the largest number of periods of one
            unit
    Output: falling integers above 0. They are 256, and 256 · part / lag^power for a part and a
            power. Of all that are tried, and whose running total is within 1.18 of the smallest
            error, those with the smallest geometric mean of the errors of a night, of windows of 7
            and 30 periods, and of the running total
    Source: a factorisation of the matrix of running totals into lower triangles, of which the right
            one has equal diagonals: Fichtenberger, Henzinger, Upadhyay 2023, arXiv:2202.11205,
            whose weights fall with the square root of the lag; in bands, Kalinin, Lampert 2024,
            arXiv:2405.13763. The power and the first part are free here, because a night and a week
            count too

    >>> chosen_weights(365, 1)[:4], len(chosen_weights(365, 1))
    ((256, 102, 68, 53), 90)
    """
    tried = [(weights, _noise(weights, length, periods)) for weights in _tried(min(length, REACH))]
    most = _SLACK * min(made[-1] for _, made in tried)
    near = [
        (math.fsum(map(math.log, made)), weights) for weights, made in tried if made[-1] <= most
    ]
    return min(near)[1]


def _tried(reach: int) -> Iterator[tuple[int, ...]]:
    yield (_ONE,)
    for part in _PARTS[1:]:
        for power in _POWERS:
            falling = (round(_ONE * part / 40 / lag ** (power / 10)) for lag in range(1, reach))
            yield (_ONE, *filter(None, falling))


def _noise(weights: Sequence[int], length: int, periods: int) -> list[float]:
    """The errors if the sums of all nights together have the price of one."""
    deviation = math.sqrt(weighted_square(weights, min(periods, length)))
    return [deviation * error for error in errors(weights, length)]


def errors(weights: Sequence[int], length: int) -> list[float]:
    """Root mean square errors of a night, of windows of 7 and 30 periods, and of the running total.

    Input:  weights: by lag; length: number of periods, each added in its turn
    Output: means over the nights of the horizon, in units of the noise of one sum. A window that is
            as long as the horizon is left out
    Bound:  exact. The total of a period is Σ c_j · sum_{t-j}, where the power series of c is the
            inverse of that of the weights
    """
    each = inverse(weights, length)
    sums, squares = np.cumsum(each), []
    for window in (*(window for window in _WINDOWS if window < length), length):
        parts = sums.copy()
        parts[window:] -= sums[:-window]
        last = window - 1 if window < length else 0  # windows begin when they are full
        squares.append(float(np.cumsum(parts**2)[last:].mean()))
    return [math.sqrt(square) for square in squares]


def inverse(weights: Sequence[int], length: int) -> Floats:
    """The first `length` coefficients of 1 / Σ weights_j z^j, by Newton's method:
    each step doubles their number.
    """
    padded = np.zeros(length)
    padded[: len(weights)] = weights[:length]
    known = np.array([1 / padded[0]])
    while len(known) < length:
        size = min(2 * len(known), length)
        more = np.convolve(np.convolve(padded[:size], known)[:size], known)[:size]
        known = np.append(2 * known, np.zeros(size - len(known))) - more
    return known
