"""Measures of privacy loss (pure, zero-concentrated, Rényi, approximate), and when one loss is at most another.

A loss is a number (ε or ρ), a curve, or a pair with a δ. `below(a, b)` is the partial order: it is True if every
mechanism with the loss a also has the loss b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.theory.exact import Joint, exact, limit, upward
from dpframe.theory.spaces.profiles import PrivacyProfile, composed, probability

Loss = Any  # of a measure: a number, a curve or profile, or a pair with δ; exact, or as it is shown


class Measure:
    """A distance between output distributions. Two measures of the same kind are equal.

    >>> MaxDivergence() == MaxDivergence(), MaxDivergence().below(0.5, 1.0)
    (True, True)
    """

    def parse(self, loss: object, name: str = "d_out") -> Loss:
        """The exact form of a loss that a caller passes. Errors: InvalidArgument for a loss of another kind."""
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
        if isinstance(loss, tuple | list):
            raise InvalidArgument(f"{name}={loss!r}: a loss of {self!r} is one number {self.letter}.")
        if isinstance(loss, float) and loss == math.inf:
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
    """Zero-concentrated differential privacy (Bun and Steinke 2016): a loss is ρ, with Rényi divergence at most ρ·α.

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
    """Rényi differential privacy (Mironov 2017): a loss is ε at the order `alpha`, or a `RenyiCurve` when it is None.

    A curve can be compared with a mapping {α: ε} of the orders that matter.

    >>> RenyiDivergence().below(RenyiCurve(lambda a: 0.5 * a), {2: 1.0, 8: 4.0})
    True
    """

    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None and not exact(self.alpha, "alpha") > 1:
            raise InvalidArgument(f"alpha={self.alpha!r}: a Rényi order is above 1.")

    def parse(self, loss: object, name: str = "d_out") -> Loss:
        """The exact form of a loss that a person gave. Errors: InvalidArgument when it is of the wrong kind."""
        if self.alpha is not None:
            return _Scalar.parse(ZeroConcentratedDivergence(), loss, name)
        if isinstance(loss, RenyiCurve | Mapping):
            return loss
        if callable(loss):
            return RenyiCurve(loss)
        raise InvalidArgument(f"{name}={loss!r}: a loss of {self!r} is a function of the order, or a mapping {{α: ε}}.")

    def show(self, loss: Loss) -> Loss:
        """The exact form as numbers that are never below it."""
        return loss if isinstance(loss, RenyiCurve | float) else upward(Fraction(loss))

    def below(self, loss: object, other: object) -> bool:
        """Whether a loss is at most another: at the order alpha; for a curve, at every order of the mapping `other`."""
        mine, bound = self.parse(loss), self.parse(other)
        if self.alpha is not None:
            return bool(mine <= bound)
        if not isinstance(bound, Mapping):
            raise UnsupportedOperation(
                "Two Rényi curves cannot be compared at every order: give a mapping {α: ε} of the orders that matter."
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
        """The exact form of a loss that a person gave. Errors: InvalidArgument when it is of the wrong kind."""
        if isinstance(loss, PrivacyProfile):
            return loss
        pairs = [loss] if isinstance(loss, tuple) and len(loss) == 2 and not isinstance(loss[0], tuple) else loss
        if isinstance(pairs, list | tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
            return [_pair(MaxDivergence(), p, name) for p in pairs]
        raise InvalidArgument(f"{name}={loss!r}: a loss of {self!r} is a PrivacyProfile, or a pair (ε, δ) to satisfy.")

    def show(self, loss: Loss) -> Loss:
        """The exact form as numbers that are never below it."""
        return loss

    def below(self, loss: object, other: object) -> bool:
        """Whether the profile satisfies every pair (ε, δ) of `other`."""
        mine, pairs = self.parse(loss), self.parse(other)
        if not isinstance(mine, PrivacyProfile) or isinstance(pairs, PrivacyProfile):
            raise UnsupportedOperation("A profile is compared with pairs: give a pair (ε, δ), or a list of pairs.")
        return all(limit(mine.delta(e), "δ") <= d for e, d in pairs)

    def add(self, losses: Sequence[object]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        return composed([self.parse(loss) for loss in losses])


def _pair(inner: Measure, loss: object, name: str) -> tuple[Loss, Fraction]:
    if not isinstance(loss, tuple | list) or len(loss) != 2:
        raise InvalidArgument(f"{name}={loss!r}: a loss of {Approximate(inner)!r} is a pair (loss, δ).")
    return inner.parse(loss[0], f"{name}[0]"), probability(loss[1], f"{name}[1]: δ")


@dataclass(frozen=True)
class Approximate(Measure):
    """The inner measure, except with probability δ: a loss is the pair (inner loss, δ), ordered part by part.

    >>> measure = Approximate(MaxDivergence())
    >>> measure.below((1.0, 1e-6), (1.5, 1e-6)), measure.below((1.0, 1e-6), (1.5, 1e-7))
    (True, False)
    """

    inner_measure: Measure = MaxDivergence()

    def __post_init__(self) -> None:
        if not isinstance(self.inner_measure, Measure) or isinstance(self.inner_measure, Approximate):
            raise InvalidArgument(f"Approximate({self.inner_measure!r}): give a measure that has no δ of its own.")

    def parse(self, loss: object, name: str = "d_out") -> tuple[Loss, Fraction]:
        """The exact form of a loss that a person gave. Errors: InvalidArgument when it is of the wrong kind."""
        if isinstance(self.inner_measure, SmoothedMaxDivergence) and isinstance(loss, tuple) and len(loss) == 2:
            inner = loss[0] if isinstance(loss[0], PrivacyProfile) else [self._epsilon(loss, name)]
            return inner, probability(loss[1], f"{name}[1]: δ")
        return _pair(self.inner_measure, loss, name)

    def _epsilon(self, loss: tuple[Loss, Loss], name: str) -> Fraction | float:
        return MaxDivergence().parse(loss[0], f"{name}[0]")

    def show(self, loss: Loss) -> Joint:
        """The exact form as numbers that are never below it."""
        return Joint((self.inner_measure.show(loss[0]), loss[1] if isinstance(loss[1], float) else upward(loss[1])))

    def below(self, loss: object, other: object) -> bool:
        """Whether both parts are at most the other's; for a profile with a δ, whether their sum satisfies (ε, δ)."""
        mine, bound = self.parse(loss), self.parse(other)
        if isinstance(mine[0], PrivacyProfile):
            if isinstance(bound[0], PrivacyProfile):
                return SmoothedMaxDivergence().below(mine[0], bound[0])
            delta = limit(mine[0].delta(bound[0][0]), "δ") + mine[1]
            return bool(delta <= bound[1])
        return self.inner_measure.below(mine[0], bound[0]) and mine[1] <= bound[1]

    def add(self, losses: Sequence[object]) -> Loss:
        """The loss of running several mechanisms on the same data, in exact form."""
        parts = [self.parse(loss) for loss in losses]
        return self.inner_measure.add([p[0] for p in parts]), min(Fraction(1), sum((p[1] for p in parts), Fraction(0)))
