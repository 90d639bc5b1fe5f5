"""Prices and losses: exact decimals from what the user typed, whole units in the account."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpframe.errors import InvalidPrice, kind_of

__all__ = ["DELTA_UNIT", "EPSILON_UNIT", "RHO_UNIT", "Loss", "exact", "read_delta", "read_epsilon", "read_rho"]

EPSILON_UNIT = Fraction(1, 10**12)
RHO_UNIT = Fraction(1, 10**12)
DELTA_UNIT = Fraction(1, 10**18)
MOST = Fraction(10**30)  # of ε and ρ: far beyond use, and far from what a float cannot hold


def exact(value: object, name: str) -> Fraction:
    """The number as it was typed: 0.1 is one tenth, not the binary float next to it."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, Fraction)):
        raise InvalidPrice(f"{name} must be a number, such as {name}=0.1; it is {kind_of(value)}.")
    known = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or math.isfinite(value)
    if not known:
        raise InvalidPrice(f"{name} must be finite.")
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def read_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """A price ε > 0, exact. Errors: InvalidPrice."""
    price = exact(value, name)
    if price <= 0:
        raise InvalidPrice(f"{name} must be above 0; smaller is more private, and 1 is a common limit.")
    if price < EPSILON_UNIT:
        raise InvalidPrice(f"{name} must be at least 1e-12, the smallest amount that is accounted.")
    if price > MOST:
        raise InvalidPrice(f"{name} must be at most 1e30, which is no privacy at all.")
    return price


def read_rho(value: object) -> Fraction:
    """A price ρ > 0 of zero-concentrated privacy, exact. Errors: InvalidPrice."""
    return read_epsilon(value, "rho")


def read_delta(value: object, name: str = "delta") -> Fraction:
    """A price 0 <= δ < 1, exact; None is 0. Errors: InvalidPrice."""
    price = Fraction(0) if value is None else exact(value, name)
    if not 0 <= price < 1:
        raise InvalidPrice(f"{name} must be from 0 up to, but not, 1; far below 1 / number of units, such as 1e-6.")
    if 0 < price < DELTA_UNIT:
        raise InvalidPrice(f"{name} must be 0 or at least 1e-18, the smallest amount that is accounted.")
    return price


@dataclass(frozen=True, order=False)
class Loss:
    """A privacy loss, (ε, δ) or (ρ, δ), held in whole units of 1e-12 for ε and ρ and 1e-18 for δ.

    `rho_units` is None for a loss that is not counted in ρ.

    >>> Loss.charged(Fraction("0.1"), Fraction("1e-7"))
    Loss(epsilon=0.1, delta=1e-07)
    >>> sum([Loss.charged(Fraction("0.1"), Fraction(0))] * 10, Loss(0, 0)).epsilon
    1.0
    >>> Loss.charged_rho(Fraction("0.02"), Fraction(0))
    Loss(rho=0.02, delta=0.0)
    """

    epsilon_units: int
    delta_units: int
    rho_units: int | None = None

    @classmethod
    def charged(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """What a price costs: rounded up to whole units."""
        return cls(math.ceil(epsilon / EPSILON_UNIT), math.ceil(delta / DELTA_UNIT))

    @classmethod
    def charged_rho(cls, rho: Fraction, delta: Fraction) -> Loss:
        """What a price in ρ costs: rounded up to whole units."""
        return cls(0, math.ceil(delta / DELTA_UNIT), math.ceil(rho / RHO_UNIT))

    @classmethod
    def limit(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """What a limit allows: rounded down to whole units."""
        return cls(math.floor(epsilon / EPSILON_UNIT), math.floor(delta / DELTA_UNIT))

    @classmethod
    def limit_rho(cls, rho: Fraction, delta: Fraction) -> Loss:
        """What a limit on ρ allows: rounded down to whole units."""
        return cls(0, math.floor(delta / DELTA_UNIT), math.floor(rho / RHO_UNIT))

    @property
    def epsilon(self) -> float:
        """ε, as the float nearest to the exact decimal."""
        return float(self.epsilon_units * EPSILON_UNIT)

    @property
    def delta(self) -> float:
        """δ, as the float nearest to the exact decimal."""
        return float(self.delta_units * DELTA_UNIT)

    @property
    def rho(self) -> float | None:
        """ρ, as the float nearest to the exact decimal; None for a loss in ε."""
        return None if self.rho_units is None else float(self.rho_units * RHO_UNIT)

    def __add__(self, other: Loss) -> Loss:
        rho = None if self.rho_units is None and other.rho_units is None else self._rho + other._rho
        return Loss(self.epsilon_units + other.epsilon_units, self.delta_units + other.delta_units, rho)

    def __sub__(self, other: Loss) -> Loss:
        rho = None if self.rho_units is None and other.rho_units is None else self._rho - other._rho
        return Loss(self.epsilon_units - other.epsilon_units, self.delta_units - other.delta_units, rho)

    def __le__(self, other: Loss) -> bool:
        """Within: no more ε, no more ρ and no more δ. Two losses may be incomparable."""
        return (
            self.epsilon_units <= other.epsilon_units
            and self.delta_units <= other.delta_units
            and self._rho <= other._rho
        )

    @property
    def _rho(self) -> int:
        return self.rho_units or 0

    def __str__(self) -> str:
        main = f"ε = {self.epsilon:g}" if self.rho is None else f"ρ = {self.rho:g}"
        return main + (f", δ = {self.delta:g}" if self.delta_units else "")

    @property
    def typed(self) -> str:
        """As a price is typed, with every digit."""
        main = f"epsilon={self.epsilon!r}" if self.rho is None else f"rho={self.rho!r}"
        return f"{main}, delta={self.delta!r}"

    def __repr__(self) -> str:
        return f"Loss({self.typed})"
