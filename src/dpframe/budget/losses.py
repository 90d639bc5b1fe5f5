"""Prices and losses as exact numbers: the typed price calibrates the noise
and is charged without rounding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpframe.errors import InvalidPrice, kind_of
from dpframe.fields import Word


class Terms(Word):
    """The unit in which a budget counts losses, besides δ: ε, or the
    ρ of zero-concentrated privacy.

    A budget whose account takes prices in both has EITHER.
    """

    EPSILON = "epsilon"
    RHO = "rho"
    EITHER = "either"

    @property
    def sign(self) -> str:
        """The Greek letter, for messages and tables."""
        return "ρ" if self is Terms.RHO else "ε"


# The smallest prices. In ledgers of format 1, charges were rounded up to whole multiples of these.
EPSILON_UNIT = Fraction(1, 10**12)
RHO_UNIT = Fraction(1, 10**12)
DELTA_UNIT = Fraction(1, 10**18)
MOST = Fraction(10**30)  # the largest ε and ρ: far beyond use, and far below the largest float
# Every float between the smallest and the largest price is a decimal of fewer than 40 places.
DECIMALS = 10**40
# a charge is a multiple of 1/GRID, and so are all sums of charges
GRID = DECIMALS * math.lcm(*range(1, 1001))
_DIGITS = 1000
_PARTS = 1000  # a price typed as a float may be so many parts of a whole, in its first digits
_LARGE = 2.0**30  # from here on, more than one fraction of so many parts may be near a float
_NEAR = Fraction(1, 2**51)  # how near, as a part of the float


def typed_number(value: object, name: str) -> Fraction:
    """The number as it was typed: 0.1 is one tenth, not the binary float next to
    it; see `number_of` for floats.

    A `Fraction` and a `Decimal` are themselves.
    """
    if (
        type(value).__module__ == "numpy"
        and hasattr(value, "item")
        and getattr(value, "ndim", 1) == 0
    ):
        value = value.item()
    match value:
        case int() | Fraction() if not isinstance(value, bool):
            number = Fraction(value)
        case float() if math.isfinite(value):
            number = number_of(float(value))
        case Decimal() if value.is_finite():
            if value and abs(value.adjusted()) > _DIGITS:
                raise InvalidPrice(f"{name} is far too large or too small; such as {name}=0.1.")
            number = Fraction(value)
        case float() | Decimal():
            raise InvalidPrice(f"{name} must be finite.")
        case _:
            raise InvalidPrice(
                f"{name} must be a number, such as {name}=0.1; it is {kind_of(value)}."
            )
    if max(abs(number.numerator), number.denominator) > 10**_DIGITS:
        raise InvalidPrice(f"{name} has more than {_DIGITS} digits; round it, such as {name}=0.1.")
    return number


def written_number(value: object, name: str) -> str:
    """A price as a ledger writes it under a name: what was typed, a
    float by its shortest decimal.
    """
    number = typed_number(value, name)
    return str(Fraction(repr(float(number))) if isinstance(value, float) else number)


@lru_cache(1024, typed=True)
def number_of(value: float) -> Fraction:
    """The number that a float stands for: a fraction in few parts, such as
    1/11, or else its shortest decimal.

    Input:  value, a finite float
    Output: below 2^30, the fraction p / (q·10^k) with q ≤ 1000 that differs from the float by at
            most 2^-51 of it, if there is one. k is the number of zeros before the first digit: 3
            for 0.0034. Four operations on floats lead no further away, so that 0.1 / 3 is 1/30.
            Otherwise the shortest decimal that rounds to the float
    Bound:  There is at most one such fraction: two of them differ by at least 1 / (1000·999·10^k),
            which is more than 2^-50 of a float below 2^30, and of one below 10·10^-k. A decimal of
            up to 12 digits, from its first one on, is read as itself. Below 10^a, it differs from
            any other such fraction by at least 10^(a-15), which is more than 2^-51 + 2^-53 of 10^a.
            So n charges of k / n are k exactly, for n ≤ 1000, since `Loss` adds fractions. Privacy
            does not rest on how a float is read. The noise is calibrated to the number that it is
            read as, and this number is charged. So the loss is at most what is charged, whatever
            was typed.

    >>> number_of(1 / 11), number_of(0.1), number_of(1e-6 / 7) * 7 == Fraction(1, 10**6)
    (Fraction(1, 11), Fraction(1, 10), True)
    >>> number_of(0.0909090909091)
    Fraction(909090909091, 10000000000000)
    """
    shortest = Fraction(repr(value))
    if not 0 < abs(value) < _LARGE:
        return shortest
    scale = 10 ** max(0, -Decimal(repr(value)).adjusted())
    exact = Fraction(value)
    near = (exact * scale).limit_denominator(_PARTS) / scale
    return near if abs(near - exact) <= abs(exact) * _NEAR else shortest


def read_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """A price ε > 0, exact. Errors: InvalidPrice."""
    price = typed_number(value, name)
    if price <= 0:
        raise InvalidPrice(
            f"{name} must be above 0; a smaller {name} is more private, and 1 is a common limit."
        )
    if price < EPSILON_UNIT:
        raise InvalidPrice(f"{name} must be at least 1e-12, the smallest price there is.")
    if price > MOST:
        raise InvalidPrice(f"{name} must be at most 1e30, which is no privacy at all.")
    return price


def read_rho(value: object) -> Fraction:
    """A price ρ > 0 of zero-concentrated privacy, exact. Errors: InvalidPrice."""
    return read_epsilon(value, "rho")


def read_delta(value: object, name: str = "delta") -> Fraction:
    """A price 0 <= δ < 1, exact; None is 0. Errors: InvalidPrice."""
    price = Fraction(0) if value is None else typed_number(value, name)
    if not 0 <= price < 1:
        raise InvalidPrice(
            f"{name} must be at least 0 and below 1. Choose it far below 1 / number of units, such "
            f"as {name}=1e-6."
        )
    if 0 < price < DELTA_UNIT:
        raise InvalidPrice(f"{name} must be 0 or at least 1e-18, the smallest price there is.")
    return price


def kept(number: Fraction, round_off: Callable[[Fraction], int]) -> Fraction:
    """The number itself if it is a multiple of 1/GRID;
    otherwise the number rounded to 40 decimals.
    """
    return (
        number
        if GRID % number.denominator == 0
        else Fraction(round_off(number * DECIMALS), DECIMALS)
    )


def _as_float(number: Fraction, *, down: bool) -> float:
    """The nearest float that, read as a price, is not above the number
    (`down`), or not below it (otherwise).
    """
    near = float(number)
    while number_of(near) > number if down else number_of(near) < number:
        near = math.nextafter(near, -math.inf if down else math.inf)
    return near


def _in_short(number: Fraction, *, down: bool) -> str:
    """The number as text with six digits, rounded down (`down`) or up (otherwise)."""
    six = Context(prec=6, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{float(six.divide(Decimal(number.numerator), Decimal(number.denominator))):g}"


@dataclass(frozen=True, order=False)
class Loss:
    """A privacy loss, (ε, δ) or (ρ, δ), in exact numbers.

    `exact_rho` is None for a loss that is not counted in ρ. `mu_squared`, `split`, what was spent
    `before` it, and `simple`, the sum of prices, belong to the account "gdp", see
    `dpframe.budget.adaptive`; elsewhere they are None. As a float and as text, a loss is rounded up
    in the last digit shown. A limit, or the part of a limit that is not spent, has `left=True` and
    is rounded down.

    Every charge is a multiple of 1/GRID. A decimal of up to 40 places, a fraction with a
    denominator up to 1,000, and a product of two of these are charged exactly; any other number is
    rounded up to 40 decimals. Sums are multiples of 1/GRID too. So they stay exact and have at most
    about 500 digits, for any number of charges.

    >>> Loss.charged(Fraction("0.1"), Fraction("1e-7"))
    Loss(epsilon=0.1, delta=1e-07)
    >>> sum([Loss.charged(Fraction(1, 3), Fraction(0))] * 3, Loss.none()) == Loss.charged(
    ...     Fraction(1), Fraction(0)
    ... )
    True
    >>> Loss.charged_rho(Fraction("0.02"), Fraction(0))
    Loss(rho=0.02, delta=0.0)
    >>> Loss.limit(Fraction(1), Fraction(0)) - Loss.charged(Fraction(1, 3), Fraction(0))
    Loss(epsilon=0.6666666666666666, delta=0.0)
    """

    exact_epsilon: Fraction
    exact_delta: Fraction
    exact_rho: Fraction | None = None
    left: bool = field(default=False, compare=False)
    mu_squared: Fraction | None = None
    split: Fraction | None = None
    before: Loss | None = None
    simple: Loss | None = None

    @classmethod
    def none(cls, *, in_rho: bool = False) -> Loss:
        """No loss."""
        return cls(Fraction(0), Fraction(0), Fraction(0) if in_rho else None)

    @classmethod
    def charged(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """The loss for a price: the price itself, or slightly more if
        it is not a multiple of 1/GRID.
        """
        return cls(kept(epsilon, math.ceil), kept(delta, math.ceil))

    @classmethod
    def charged_rho(cls, rho: Fraction, delta: Fraction) -> Loss:
        """The loss for a price in ρ: the price itself, or slightly more if
        it is not a multiple of 1/GRID.
        """
        return cls(Fraction(0), kept(delta, math.ceil), kept(rho, math.ceil))

    @classmethod
    def limit(cls, epsilon: Fraction, delta: Fraction) -> Loss:
        """The loss that a limit allows: the limit itself, or slightly less if
        it is not a multiple of 1/GRID.
        """
        return cls(kept(epsilon, math.floor), kept(delta, math.floor), left=True)

    @classmethod
    def limit_rho(cls, rho: Fraction, delta: Fraction) -> Loss:
        """The loss that a limit on ρ allows: the limit itself, or slightly less if
        it is not a multiple of 1/GRID.
        """
        return cls(Fraction(0), kept(delta, math.floor), kept(rho, math.floor), left=True)

    def share(self, part: Fraction) -> Loss:
        """A part of a limit, rounded down."""
        if self.exact_rho is not None:
            return Loss.limit_rho(self.exact_rho * part, self.exact_delta * part)
        return Loss.limit(self.exact_epsilon * part, self.exact_delta * part)

    @property
    def epsilon(self) -> float:
        """ε as a float."""
        return _as_float(self.exact_epsilon, down=self.left)

    @property
    def delta(self) -> float:
        """δ as a float."""
        return _as_float(self.exact_delta, down=self.left)

    @property
    def rho(self) -> float | None:
        """ρ as a float; None for a loss in ε."""
        return None if self.exact_rho is None else _as_float(self.exact_rho, down=self.left)

    @property
    def exact_size(self) -> Fraction:
        """Its ε or ρ."""
        return self.exact_epsilon if self.exact_rho is None else self.exact_rho

    def __add__(self, other: Loss) -> Loss:
        return self.joined(other, operator.add)

    def __sub__(self, other: Loss) -> Loss:
        """The part of this loss that remains after another loss;
        it is rounded down when it is shown.
        """
        return replace(self.joined(other, operator.sub), left=True)

    def joined(self, other: Loss, function: Callable[[Fraction, Fraction], Fraction]) -> Loss:
        """A function of ε, δ, ρ and μ² of two losses, each by itself;
        None is 0 where the other loss has a number.
        """
        both_none = self.simple is None and other.simple is None

        def both(own: Fraction | None, its: Fraction | None) -> Fraction | None:
            return (
                None
                if own is None and its is None
                else function(own or Fraction(0), its or Fraction(0))
            )

        return Loss(
            function(self.exact_epsilon, other.exact_epsilon),
            function(self.exact_delta, other.exact_delta),
            both(self.exact_rho, other.exact_rho),
            mu_squared=both(self.mu_squared, other.mu_squared),
            split=other.split if self.split is None else self.split,
            before=other.before if self.split is None else self.before,
            simple=None
            if both_none
            else (self.simple or Loss.none()).joined(other.simple or Loss.none(), function),
        )

    def __le__(self, other: Loss) -> bool:
        """Whether ε, ρ and δ are each at most those of the other loss.
        Two losses may be incomparable.
        """
        return (
            self.exact_epsilon <= other.exact_epsilon
            and self.exact_delta <= other.exact_delta
            and self._rho <= other._rho
        )

    @property
    def _rho(self) -> Fraction:
        return self.exact_rho or Fraction(0)

    def __str__(self) -> str:
        main = (
            f"{'ε' if self.exact_rho is None else 'ρ'} = "
            f"{_in_short(self.exact_size, down=self.left)}"
        )
        return main + (
            f", δ = {_in_short(self.exact_delta, down=self.left)}" if self.exact_delta else ""
        )

    @property
    def typed(self) -> str:
        """The loss in the form in which a price is typed, with every digit."""
        main = f"epsilon={self.epsilon!r}" if self.rho is None else f"rho={self.rho!r}"
        return f"{main}, delta={self.delta!r}"

    def __repr__(self) -> str:
        return f"Loss({self.typed})"
