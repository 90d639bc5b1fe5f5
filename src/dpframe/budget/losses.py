"""Prices and losses: exact decimals from what the user typed, whole units in the account."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpframe.errors import InvalidPrice

__all__ = ["DELTA_UNIT", "EPSILON_UNIT", "Loss", "read_delta", "read_epsilon"]

EPSILON_UNIT = Fraction(1, 10**12)
DELTA_UNIT = Fraction(1, 10**18)


def _exact(value: object, name: str) -> Fraction:
    """The number as it was typed: 0.1 is one tenth, not the binary float next to it."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, Fraction)):
        raise InvalidPrice(f"{name} must be a number, such as {name}=0.1; it is a {type(value).__name__}.")
    if not isinstance(value, Fraction) and not math.isfinite(value):
        raise InvalidPrice(f"{name} must be finite.")
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def read_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """A price ε > 0, exact. Errors: InvalidPrice."""
    exact = _exact(value, name)
    if exact <= 0:
        raise InvalidPrice(f"{name} must be above 0; smaller is more private, and 1 is a common limit.")
    if exact < EPSILON_UNIT:
        raise InvalidPrice(f"{name} must be at least 1e-12, the smallest amount that is accounted.")
    return exact


def read_delta(value: object, name: str = "delta") -> Fraction:
    """A price 0 <= δ < 1, exact; None is 0. Errors: InvalidPrice."""
    exact = Fraction(0) if value is None else _exact(value, name)
    if not 0 <= exact < 1:
        raise InvalidPrice(f"{name} must be from 0 up to, but not, 1; far below 1 / number of units, such as 1e-6.")
    if 0 < exact < DELTA_UNIT:
        raise InvalidPrice(f"{name} must be 0 or at least 1e-18, the smallest amount that is accounted.")
    return exact


@dataclass(frozen=True, order=False)
class Loss:
    """A privacy loss (ε, δ), held in whole units of 1e-12 and 1e-18.

    >>> Loss.charged(Fraction("0.1"), Fraction("1e-7"))
    Loss(epsilon=0.1, delta=1e-07)
    >>> sum([Loss.charged(Fraction("0.1"), Fraction(0))] * 10, Loss(0, 0)).epsilon
    1.0
    """

    epsilon_units: int
    delta_units: int

    @classmethod
    def charged(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """What a price costs: rounded up to whole units."""
        return cls(math.ceil(epsilon / EPSILON_UNIT), math.ceil(delta / DELTA_UNIT))

    @classmethod
    def limit(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """What a limit allows: rounded down to whole units."""
        return cls(math.floor(epsilon / EPSILON_UNIT), math.floor(delta / DELTA_UNIT))

    @property
    def epsilon(self) -> float:
        """ε, as the float nearest to the exact decimal."""
        return float(self.epsilon_units * EPSILON_UNIT)

    @property
    def delta(self) -> float:
        """δ, as the float nearest to the exact decimal."""
        return float(self.delta_units * DELTA_UNIT)

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.epsilon_units + other.epsilon_units, self.delta_units + other.delta_units)

    def __sub__(self, other: Loss) -> Loss:
        return Loss(self.epsilon_units - other.epsilon_units, self.delta_units - other.delta_units)

    def __le__(self, other: Loss) -> bool:
        """Within: no more ε and no more δ. Two losses may be incomparable."""
        return self.epsilon_units <= other.epsilon_units and self.delta_units <= other.delta_units

    def __str__(self) -> str:
        return f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta_units else "")

    def __repr__(self) -> str:
        return f"Loss(epsilon={self.epsilon!r}, delta={self.delta!r})"
