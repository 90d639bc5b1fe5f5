"""The discrete Gaussian of Canonne, Kamath and Steinke 2020 (arXiv:2004.00010). Queries do not use it.

Queries use rounded real Gaussian noise (`gaussian`), which has the privacy profile of the analytic Gaussian mechanism.
The profile of the discrete Gaussian is slightly worse, and `dpframe.theory` has a formula for it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import WideIntegers
from dpframe.errors import InvalidArgument
from dpframe.noise.arguments import check_scale, check_size
from dpframe.noise.bernoulli import flips
from dpframe.noise.inversion import UNIT, fit
from dpframe.noise.laplace import discrete_laplace

__all__ = ["discrete_gaussian"]


def discrete_gaussian(scale: float, size: int) -> WideIntegers:
    """Discrete Gaussian noise: P[X = x] ∝ exp(-x²/(2·scale²)) on the integers.

    Input:  scale, a float from 2^-100 to 2^62; size draws
    Output: independent integers; int64, or Python integers (dtype object) where some draw does not fit
    Law:    exact. A discrete Laplace draw Y of scale t = ⌊scale⌋ + 1 is kept with probability
            exp(-(|Y| - scale²/t)²/(2·scale²)), by exact coins; about one in 1.3 to 1.5 draws is kept
    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 3
    Errors: InvalidArgument for a scale that is not between 2^-100 and 2^62

    >>> discrete_gaussian(3.0, 4).shape
    (4,)
    """
    count = check_size(size)
    sigma = check_scale(scale, count)
    if not isinstance(sigma, float) or not 2.0**-100 <= sigma <= 2.0**62:
        raise InvalidArgument("discrete_gaussian: give one scale between 2^-100 and 2^62.")
    laplace_scale = float(int(sigma) + 1) if sigma < 2.0**52 else sigma
    variance, width = Fraction(sigma) ** 2, Fraction(laplace_scale)
    centre, spread = float(variance / width), float(2 * variance)
    batches: list[NDArray[Any]] = []
    missing = count
    while missing > 0:
        proposals = discrete_laplace(laplace_scale, missing + missing // 2 + 8)
        magnitude = np.abs(proposals).astype(np.float64)
        # |Y| and the centre have two roundings each, and the difference has one; then come the square and the quotient.
        away = np.abs(magnitude - centre)
        slip = 4 * UNIT * (magnitude + centre)
        error = (2 * away + slip) * slip / spread + 8 * UNIT * away * away / spread

        def exact(i: int, proposals: WideIntegers = proposals) -> Fraction:
            return (abs(int(proposals[i])) - variance / width) ** 2 / (2 * variance)

        batch = proposals[flips(away * away / spread, error, exact)][:missing]
        batches.append(batch)
        missing -= len(batch)
    whole: NDArray[Any] = np.concatenate([np.empty(0, np.int64), *batches])
    return fit(whole) if whole.dtype == object else whole
