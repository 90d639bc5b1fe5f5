"""Privacy profiles: all pairs (ε, δ) of a mechanism, and of several mechanisms together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.theory.exact import exact, limit, root_above
from dpframe.theory.formulas.loss import loss as privacy

_POINTS = 1500  # number of grid points of a profile on either side of ε = 0
_FAR = 1024.0  # an ε so large that it means no privacy
_SLACK = 1e-11  # δ reserved for the rounding errors of the Fourier transforms of dp-accounting


def probability(value: object, name: str = "delta") -> Fraction:
    """An exact number in [0, 1]. Errors: InvalidArgument outside it."""
    delta = limit(value, name)
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"{name}={value!r}: a probability lies between 0 and 1.")
    return delta


class PrivacyProfile:
    """All pairs (ε, δ) that a mechanism satisfies: `delta(epsilon)` and `epsilon(delta)`, both rounded up.

    For Gaussian noise, whose profiles compose exactly, `mu_squared` is the square of μ.

    >>> PrivacyProfile(delta=lambda epsilon: 0.5).delta(epsilon=1.0)
    0.5
    """

    def __init__(
        self,
        delta: Callable[[float | Fraction], float],
        epsilon: Callable[[float], float] | None = None,
        label: str = "",
        mu_squared: Fraction | None = None,
    ) -> None:
        self._delta = delta
        self._epsilon = epsilon
        self._label = label
        self.mu_squared = mu_squared

    def delta(self, epsilon: float | Fraction) -> float:
        """The smallest known δ at this ε >= 0. Errors: InvalidArgument."""
        if epsilon == math.inf and isinstance(epsilon, float):
            return 0.0
        if exact(epsilon, "epsilon") < 0:
            raise InvalidArgument(f"epsilon={epsilon!r}: ε is at least 0.")
        return min(1.0, float(self._delta(epsilon)))

    def epsilon(self, delta: float) -> float:
        """The smallest known ε at this δ in [0, 1]; infinite when there is none. Errors: InvalidArgument."""
        probability(delta)
        if delta == 1:
            return 0.0
        if self._epsilon is not None:
            return float(self._epsilon(delta))
        return self._searched(float(delta))

    def _searched(self, delta: float) -> float:
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e6:
                return math.inf
        low = 0.0
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def __repr__(self) -> str:
        return f"PrivacyProfile({self._label or 'ε ↔ δ'})"


NOTHING = PrivacyProfile(lambda epsilon: 0.0, lambda delta: 0.0, "no loss", Fraction(0))


def gaussian_profile(mu_squared: Fraction) -> PrivacyProfile:
    """The exact privacy profile of Gaussian noise, for the square of its L2 distance in units of the noise.

    >>> round(gaussian_profile(Fraction(1)).epsilon(delta=1e-6), 4)
    4.8866
    """
    if mu_squared == 0:
        return NOTHING
    mu = root_above(mu_squared)  # Not rounded to a float, so that a scale that was solved for (ε, δ) passes its check.
    return PrivacyProfile(
        lambda epsilon: privacy.gaussian_delta(exact(epsilon, "epsilon"), mu),
        lambda delta: math.inf if delta == 0 else privacy.gaussian_epsilon(exact(delta, "delta"), mu),
        f"Gaussian, μ={float(mu):.6g}",
        mu_squared,
    )


def composed(profiles: Sequence[PrivacyProfile]) -> PrivacyProfile:
    """The profile of several mechanisms that run on the same data.

    Input:  profiles, each an upper bound on δ at every ε >= 0 in both directions between neighbours
    Output: a profile; if all noise is Gaussian it is exact, since the squares of μ add up. Otherwise it is computed
            from privacy loss distributions
    Bound:  let h be a profile, continued to negative ε by h(-ε) = 1 - e^-ε + e^-ε·h(ε), which bounds the divergence in
            the other direction. The true divergence is convex in e^ε and below h at each point of a grid. So it is
            below the largest convex function that is not above h at these points. The loss distribution that
            interpolates this convex function dominates the mechanism. Dominating distributions compose by convolution
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 2, for Gaussians; Zhu, Dong, Wang 2022, arXiv:2106.08567,
            for domination; Doroshenko et al. 2022, arXiv:2207.04380, for joining the dots
    Errors: UnsupportedOperation for a mix where dp-accounting is not installed
    """
    losses = [p for p in profiles if p is not NOTHING]
    if len(losses) <= 1:
        return losses[0] if losses else NOTHING
    if all(p.mu_squared is not None for p in losses):
        return gaussian_profile(sum((p.mu_squared for p in losses if p.mu_squared is not None), Fraction(0)))
    pmf = _connect_the_dots()
    ends = [_end(p) for p in losses]
    if any(math.isinf(e) for e in ends):
        return PrivacyProfile(lambda epsilon: 1.0, lambda delta: math.inf, "no privacy")
    step = max(ends) / _POINTS
    total = None
    for profile, end in zip(losses, ends, strict=True):
        places, deltas = _dots(profile, math.ceil(end / step), step)
        distribution = pmf(step, places, deltas).to_dense_pmf()
        total = distribution if total is None else total.compose(distribution)
    assert total is not None
    slack = _SLACK * len(losses)
    final = total

    def delta_at(epsilon: float | Fraction) -> float:
        return min(1.0, float(final.get_delta_for_epsilon(float(exact(epsilon, "epsilon")))) * (1 + 1e-9) + slack)

    def epsilon_at(delta: float) -> float:
        allowed = (delta - slack) / (1 + 1e-9)
        return float(final.get_epsilon_for_delta(allowed)) if allowed > 0 else math.inf

    return PrivacyProfile(delta_at, epsilon_at, f"{len(losses)} mechanisms")


def _end(profile: PrivacyProfile) -> float:
    """An ε beyond which δ hardly decreases; infinite if there is no privacy."""
    least = profile.delta(_FAR)
    if least > 1 - 1e-9:
        return math.inf
    end = 1.0
    while profile.delta(end) > least + 1e-14:
        end *= 2
    low = 0.0
    for _ in range(8):
        middle = (low + end) / 2
        low, end = (middle, end) if profile.delta(middle) > least + 1e-14 else (low, middle)
    return end


def _dots(profile: PrivacyProfile, count: int, step: float) -> tuple[Integers, Floats]:
    """The grid points, and the values of the largest convex function of e^ε that is not above the profile there."""
    positive = np.array([profile.delta(k * step) for k in range(count + 1)])
    ratios = np.exp(-step * np.arange(count + 1))
    negative = 1 - ratios + ratios * positive
    places, heights = np.arange(-count, count + 1), np.concatenate([negative[:0:-1], positive])
    across = np.exp(step * places)
    hull: list[int] = []
    for i in range(len(places)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            slope = (heights[i] - heights[a]) / (across[i] - across[a])
            if heights[b] <= heights[a] + slope * (across[b] - across[a]):
                break
            hull.pop()
        hull.append(i)
    return places, np.interp(across, across[hull], heights[hull])


def _connect_the_dots() -> Any:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        pld_pmf = None
    if pld_pmf is None:
        raise UnsupportedOperation(
            "Composing different privacy profiles needs dp-accounting: pip install dp-accounting. Without it, fix a δ "
            "for each measurement with fix_delta(measurement, delta), or compose before zcdp_to_approx."
        )
    return pld_pmf.create_pmf_pessimistic_connect_dots
