"""Privacy profiles: all pairs (ε, δ) of a mechanism, and of several mechanisms together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.theory.exact import exact, limit, root_above
from dpframe.theory.formulas.loss import loss as privacy


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

    Input:  profiles: one and any number without loss, or several of Gaussian noise
    Output: the exact profile, since the squares of μ add up
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 2
    Errors: UnsupportedOperation for a mix
    """
    losses = [p for p in profiles if p is not NOTHING]
    if len(losses) <= 1:
        return losses[0] if losses else NOTHING
    squares = [p.mu_squared for p in losses if p.mu_squared is not None]
    if len(squares) < len(losses):
        raise UnsupportedOperation(
            "Profiles add up for Gaussian noise alone. Fix a δ for each measurement with "
            "fix_delta(measurement, delta), or compose before zcdp_to_approx."
        )
    return gaussian_profile(sum(squares, Fraction(0)))
