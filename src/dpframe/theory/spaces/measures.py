"""Measures of privacy loss (pure, zero-concentrated, Rényi, profiles, approximate),
and when one is at most another.

A loss is a number (ε or ρ), a curve, or a pair with a δ. `below(a, b)` is the partial order: it is
True if every mechanism with the loss a also has the loss b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.theory.exact import Joint, exact, limit, root_above, upward
from dpframe.theory.formulas.loss import loss as privacy

Loss = Any  # of a measure: a number, a curve or profile, or a pair with δ; exact, or as it is shown


def probability(value: object, name: str = "delta") -> Fraction:
    """An exact number in [0, 1]. Errors: InvalidArgument outside it."""
    delta = limit(value, name)
    if not 0 <= delta <= 1:
        raise InvalidArgument(f"{name}={value!r}: a probability lies between 0 and 1.")
    return delta


class PrivacyProfile:
    """All pairs (ε, δ) that a mechanism satisfies:
    `delta(epsilon)` and `epsilon(delta)`, both rounded up.

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
        """The smallest known ε at this δ in [0, 1]; infinite when there is none.
        Errors: InvalidArgument.
        """
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
    """The exact privacy profile of Gaussian noise, for the square of its L2
    distance in units of the noise.

    >>> round(gaussian_profile(Fraction(1)).epsilon(delta=1e-6), 4)
    4.8866
    """
    if mu_squared == 0:
        return NOTHING
    # Not rounded to a float, so that a scale that was solved for (ε, δ) passes its check.
    mu = root_above(mu_squared)
    return PrivacyProfile(
        lambda epsilon: privacy.gaussian_delta(exact(epsilon, "epsilon"), mu),
        lambda delta: (
            math.inf if delta == 0 else privacy.gaussian_epsilon(exact(delta, "delta"), mu)
        ),
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


class Measure:
    """A distance between output distributions. Two measures of the same kind are equal.

    >>> MaxDivergence() == MaxDivergence(), MaxDivergence().below(0.5, 1.0)
    (True, True)
    """

    def parse(self, loss: object, name: str = "d_out") -> Loss:
        """The exact form of a loss that a caller passes.
        Errors: InvalidArgument for a loss of another kind.
        """
        raise NotImplementedError

    def show(self, loss: Loss) -> Loss:
        """The exact loss as a number (or a tuple of numbers), rounded up."""
        raise NotImplementedError

    def below(self, loss: object, other: object) -> bool:
        """Whether a loss is at most another, under this measure's partial order."""
        return bool(self.parse(loss) <= self.parse(other))

    def add(self, losses: Sequence[object]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        raise NotImplementedError


class _Scalar(Measure):
    letter = "loss"

    def parse(self, loss: object, name: str = "d_out") -> Fraction | float:
        match loss:
            case tuple() | list():
                raise InvalidArgument(
                    f"{name}={loss!r}: a loss of {self!r} is one number {self.letter}."
                )
            case float() if loss == math.inf:
                return math.inf
        value = limit(loss, f"{name}: a loss of {self!r}")
        if value < 0:
            raise InvalidArgument(f"{name}={loss!r}: {self.letter} is at least 0.")
        return value

    def show(self, loss: Fraction | float) -> float:
        return loss if isinstance(loss, float) else upward(Fraction(loss))

    def add(self, losses: Sequence[object]) -> Fraction | float:
        parts = [self.parse(loss) for loss in losses]
        return math.inf if math.inf in parts else sum((Fraction(p) for p in parts), Fraction(0))


@dataclass(frozen=True)
class MaxDivergence(_Scalar):
    """Pure differential privacy: a loss is ε, the largest |ln P[S]/Q[S]| over events S.

    >>> MaxDivergence().below(0.48, 0.5)
    True
    """

    letter = "ε"


@dataclass(frozen=True)
class ZeroConcentratedDivergence(_Scalar):
    """Zero-concentrated differential privacy (Bun and Steinke 2016):
    a loss is ρ, with Rényi divergence at most ρ·α.

    >>> import dpframe.theory as t
    >>> t.gaussian(t.AtomDomain(int), t.AbsoluteDistance(), scale=5.0).map(1)  # ρ
    0.02
    """

    letter = "ρ"


class RenyiCurve:
    """A Rényi loss at every order: callable, α (above 1) to ε (rounded up).

    >>> RenyiCurve(lambda order: 0.5 * order)(4)
    2.0
    """

    def __init__(self, function: Callable[[float], float]) -> None:
        self._function = function

    def __call__(self, alpha: float) -> float:
        """ε at this order. Errors: InvalidArgument for an order that is not above 1."""
        if not exact(alpha, "alpha") > 1:
            raise InvalidArgument(f"alpha={alpha!r}: a Rényi order is above 1.")
        return float(self._function(alpha))

    def __repr__(self) -> str:
        return f"RenyiCurve(2 → {self(2.0):.6g}, 8 → {self(8.0):.6g}, 64 → {self(64.0):.6g})"


@dataclass(frozen=True)
class RenyiDivergence(Measure):
    """Rényi differential privacy (Mironov 2017): a loss is ε at the order `alpha`, or a
    `RenyiCurve` when it is None.

    A curve can be compared with a mapping {α: ε} of the orders that matter.

    >>> RenyiDivergence().below(RenyiCurve(lambda a: 0.5 * a), {2: 1.0, 8: 4.0})
    True
    """

    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None and not exact(self.alpha, "alpha") > 1:
            raise InvalidArgument(f"alpha={self.alpha!r}: a Rényi order is above 1.")

    def parse(self, loss: object, name: str = "d_out") -> Loss:
        """The exact form of a loss that a person gave.
        Errors: InvalidArgument when it is of the wrong kind.
        """
        if self.alpha is not None:
            return _Scalar.parse(ZeroConcentratedDivergence(), loss, name)
        if isinstance(loss, RenyiCurve | Mapping):
            return loss
        if callable(loss):
            return RenyiCurve(loss)
        raise InvalidArgument(
            f"{name}={loss!r}: a loss of {self!r} is a function of the order, or a mapping {{α: "
            "ε}."
        )

    def show(self, loss: Loss) -> Loss:
        """The exact form as numbers that are never below it."""
        return loss if isinstance(loss, RenyiCurve | float) else upward(Fraction(loss))

    def below(self, loss: object, other: object) -> bool:
        """Whether a loss is at most another: at the order alpha;
        for a curve, at every order of the mapping `other`.
        """
        mine, bound = self.parse(loss), self.parse(other)
        if self.alpha is not None:
            return bool(mine <= bound)
        if not isinstance(bound, Mapping):
            raise UnsupportedOperation(
                "Two Rényi curves cannot be compared at every order: give a mapping {α: ε} of the "
                "orders that matter."
            )
        return all(mine(a) <= e for a, e in bound.items())

    def add(self, losses: Sequence[Loss]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        if self.alpha is not None:
            return _Scalar.add(ZeroConcentratedDivergence(), losses)
        curves = list(losses)

        def total(alpha: float) -> float:
            return upward(sum((Fraction(c(alpha)) for c in curves), Fraction(0)))

        return RenyiCurve(total)


@dataclass(frozen=True)
class SmoothedMaxDivergence(Measure):
    """A privacy profile: for each ε the δ, the largest P[S] - e^ε·Q[S] over events S.

    A profile is compared with a pair (ε, δ), or a list of pairs, that it must satisfy.

    >>> import dpframe.theory as t
    >>> space = t.AtomDomain(int), t.AbsoluteDistance()
    >>> noise = t.gaussian(*space, scale=5.0, output_measure=t.SmoothedMaxDivergence())
    >>> noise.check(1, (1.0, 1e-6)), noise.check(1, (0.5, 1e-6))
    (True, False)
    """

    def parse(self, loss: object, name: str = "d_out") -> Loss:
        """The exact form of a loss that a person gave.
        Errors: InvalidArgument when it is of the wrong kind.
        """
        pairs: Sequence[object] = [None]
        match loss:
            case PrivacyProfile():
                return loss
            case tuple((first, _)) if not isinstance(first, tuple):
                pairs = [loss]
            case list() | tuple():
                pairs = loss
        if all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
            return [_pair(MaxDivergence(), p, name) for p in pairs]
        raise InvalidArgument(
            f"{name}={loss!r}: a loss of {self!r} is a PrivacyProfile, or a pair (ε, δ) to satisfy."
        )

    def show(self, loss: Loss) -> Loss:
        """The exact form as numbers that are never below it."""
        return loss

    def below(self, loss: object, other: object) -> bool:
        """Whether the profile satisfies every pair (ε, δ) of `other`."""
        mine, pairs = self.parse(loss), self.parse(other)
        if not isinstance(mine, PrivacyProfile) or isinstance(pairs, PrivacyProfile):
            raise UnsupportedOperation(
                "A profile is compared with pairs: give a pair (ε, δ), or a list of pairs."
            )
        return all(limit(mine.delta(e), "δ") <= d for e, d in pairs)

    def add(self, losses: Sequence[object]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        return composed([self.parse(loss) for loss in losses])


def _pair(inner: Measure, loss: object, name: str) -> tuple[Loss, Fraction]:
    if not isinstance(loss, tuple | list) or len(loss) != 2:
        raise InvalidArgument(
            f"{name}={loss!r}: a loss of {Approximate(inner)!r} is a pair (loss, δ)."
        )
    return inner.parse(loss[0], f"{name}[0]"), probability(loss[1], f"{name}[1]: δ")


@dataclass(frozen=True)
class Approximate(Measure):
    """The inner measure, except with probability δ:
    a loss is the pair (inner loss, δ), ordered part by part.

    >>> measure = Approximate(MaxDivergence())
    >>> measure.below((1.0, 1e-6), (1.5, 1e-6)), measure.below((1.0, 1e-6), (1.5, 1e-7))
    (True, False)
    """

    inner_measure: Measure = MaxDivergence()

    def __post_init__(self) -> None:
        if not isinstance(self.inner_measure, Measure) or isinstance(
            self.inner_measure, Approximate
        ):
            raise InvalidArgument(
                f"Approximate({self.inner_measure!r}): give a measure that has no δ of its own."
            )

    def parse(self, loss: object, name: str = "d_out") -> tuple[Loss, Fraction]:
        """The exact form of a loss that a person gave.
        Errors: InvalidArgument when it is of the wrong kind.
        """
        if (
            isinstance(self.inner_measure, SmoothedMaxDivergence)
            and isinstance(loss, tuple)
            and len(loss) == 2
        ):
            inner = loss[0] if isinstance(loss[0], PrivacyProfile) else [self._epsilon(loss, name)]
            return inner, probability(loss[1], f"{name}[1]: δ")
        return _pair(self.inner_measure, loss, name)

    def _epsilon(self, loss: tuple[Loss, Loss], name: str) -> Fraction | float:
        return MaxDivergence().parse(loss[0], f"{name}[0]")

    def show(self, loss: Loss) -> Joint:
        """The exact form as numbers that are never below it."""
        return Joint(
            (
                self.inner_measure.show(loss[0]),
                loss[1] if isinstance(loss[1], float) else upward(loss[1]),
            )
        )

    def below(self, loss: object, other: object) -> bool:
        """Whether both parts are at most the other's; for a profile with a δ,
        whether their sum satisfies (ε, δ).
        """
        mine, bound = self.parse(loss), self.parse(other)
        match mine[0], bound[0]:
            case PrivacyProfile(), PrivacyProfile():
                return SmoothedMaxDivergence().below(mine[0], bound[0])
            case PrivacyProfile() as profile, epsilons:
                return bool(limit(profile.delta(epsilons[0]), "δ") + mine[1] <= bound[1])
        return self.inner_measure.below(mine[0], bound[0]) and mine[1] <= bound[1]

    def add(self, losses: Sequence[object]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        parts = [self.parse(loss) for loss in losses]
        return self.inner_measure.add([p[0] for p in parts]), min(
            Fraction(1), sum((p[1] for p in parts), Fraction(0))
        )
