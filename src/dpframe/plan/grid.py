"""Numbers as integers: the grid that a column's values are put on, chosen from its bounds alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.plan.columns import Bounds

__all__ = ["FRACTION_BITS", "UNIT_GRID", "ValueGrid", "grid_for", "room"]

FRACTION_BITS = 20  # bits below the grid step in every total whose rows have weights
_VALUE_BITS = 24  # for floats: relative steps of 6e-8, far below any noise
_WHOLE_BITS = 26  # integers with up to this many bits are on a grid of step 1
_PRODUCT_BITS = 42  # value bits plus limit bits: with FRACTION_BITS they fill 62 bits


@dataclass(frozen=True)
class ValueGrid:
    """A column's value is `centre + step · integer`, with the integer in [lower, upper].

    `step` is a power of two; `centre` is a multiple of it (0 unless the column is centred for a mean).
    """

    step: Fraction
    centre: Fraction
    lower: int
    upper: int

    @property
    def magnitude(self) -> int:
        """The largest absolute value of an integer on the grid."""
        return max(abs(self.lower), abs(self.upper))


UNIT_GRID = ValueGrid(Fraction(1), Fraction(0), 0, 1)


def room(limit: int) -> int:
    """Bits that a value may have when up to `limit` of them, with fraction bits, must stay inside 62 bits."""
    return _PRODUCT_BITS - (limit - 1).bit_length()


def grid_for(bounds: Bounds, *, whole: bool, centred: bool, limit: int) -> ValueGrid:
    """The grid for values in `bounds`, from the bounds alone.

    Input:  bounds (column unit); whole: the column holds integers; centred: measure from the middle (for means);
            limit: the most rows of one unit that are added into one cell (count)
    Output: a ValueGrid whose points lie inside the bounds, exact
    Bound:  |centre + step · integer| never leaves the bounds (shrunk inward), and limit · magnitude stays below 2^42,
            so that with 20 fraction bits nothing wraps in int64
    Source: Mironov 2012 and Casacuberta et al. 2022 (arXiv:2207.10635) say why no float is summed
    Errors: none here; bounds are checked when given

    >>> grid_for(Bounds(0, 100), whole=False, centred=False, limit=1)
    ValueGrid(step=Fraction(1, 131072), centre=Fraction(0, 1), lower=0, upper=13107200)
    >>> grid_for(Bounds(50, 100), whole=True, centred=True, limit=20)
    ValueGrid(step=Fraction(1, 1), centre=Fraction(75, 1), lower=-25, upper=25)
    """
    low, high = Fraction(bounds.lower), Fraction(bounds.upper)
    middle = (low + high) / 2 if centred else Fraction(0)
    reach = max(abs(low - middle), abs(high - middle))
    space = room(limit)
    step = Fraction(1)
    if not whole or reach > 2 ** min(_WHOLE_BITS, space):
        power = min(max(min(_VALUE_BITS, space) - _ceil_log2(reach), -1000), 1000)
        step = Fraction(2) ** -power
    centre = math.floor(middle / step) * step
    lower, upper = math.ceil((low - centre) / step), math.floor((high - centre) / step)
    if lower > upper:  # no grid point is inside: take the one beside, on the side of the centre
        lower = upper = lower if lower <= 0 else upper
    return ValueGrid(step, centre, lower, upper)


def _ceil_log2(value: Fraction) -> int:
    """Smallest integer e with value <= 2^e; 0 for zero."""
    if value == 0:
        return 0
    power = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while Fraction(2) ** power < value:
        power += 1
    return power
