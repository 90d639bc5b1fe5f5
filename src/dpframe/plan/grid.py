"""Grids chosen from bounds alone: integers for values and for products of sums, and the candidates of a quantile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.plan.columns import Bounds

FRACTION_BITS = 20  # bits below the grid step in every total whose rows have weights
_VALUE_BITS = 24  # for floats: relative steps of 6e-8, far below any noise
_WHOLE_BITS = 26  # integers with up to this many bits are on a grid of step 1
_PRODUCT_BITS = 42  # value bits plus limit bits: with FRACTION_BITS they fill 62 bits
_CANDIDATES = 1024
_LATTICE_BITS = 50  # bits of a scaled distance: twice the distance, times 1,023, is below 2^61


@dataclass(frozen=True)
class ValueGrid:
    """A column's value is `centre + step · integer`, with the integer in [lower, upper].

    `step` is a power of two; `centre` is a multiple of it (0 unless the column is centred for a mean). The step is at
    most 1 only for a column of whole numbers that the grid holds exactly, and for floats.
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
            so that with 20 fraction bits nothing wraps in int64.
            A centred grid is as narrow as the bounds allow. Whole numbers from a to b have the middle (a + b)/2, which
            is half a number where b - a is odd. They are then measured in half units: the number x is the integer
            2x - (a + b), which lies in [a - b, b - a], and is worth 1/2. So a row moves a sum by at most (b - a)/2,
            and a condition by 1/2. Measured from ⌊(a + b)/2⌋ it would be (b - a + 1)/2, and 1. Bounds that are no whole
            numbers are first moved inward to a and b
    Source: Mironov 2012 and Casacuberta et al. 2022 (arXiv:2207.10635) say why no float is summed
    Errors: none here; bounds are checked when given

    >>> grid_for(Bounds(0, 100), whole=False, centred=False, limit=1)
    ValueGrid(step=Fraction(1, 131072), centre=Fraction(0, 1), lower=0, upper=13107200)
    >>> grid_for(Bounds(50, 100), whole=True, centred=True, limit=20)
    ValueGrid(step=Fraction(1, 1), centre=Fraction(75, 1), lower=-25, upper=25)
    >>> grid_for(Bounds(0, 1), whole=True, centred=True, limit=1)
    ValueGrid(step=Fraction(1, 2), centre=Fraction(1, 2), lower=-1, upper=1)
    """
    low, high = Fraction(bounds.lower), Fraction(bounds.upper)
    if whole and math.ceil(low) <= math.floor(high):
        low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
    middle = (low + high) / 2 if centred else Fraction(0)
    reach = max(abs(low - middle), abs(high - middle))
    space = room(limit)
    step = Fraction(1, 2) if whole and middle.denominator == 2 else Fraction(1)
    if not whole or reach > 2**_WHOLE_BITS or reach > step * 2**space:
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


@dataclass(frozen=True)
class Candidates:
    """The values among which a quantile is chosen: `lower`, `lower + step`, …, `count` of them (column unit).

    The nearest candidate is computed in integers, so that all engines agree on ties. One subtraction of floats gives
    the distance of a value from `lower`. The distance is then multiplied by a power of two, which is exact. After this
    scaling the last candidate is at a whole number of about 2^50, the `extent`. All further arithmetic is on integers.
    """

    lower: float
    step: float
    count: int
    whole: bool

    @classmethod
    def between(cls, bounds: Bounds, *, whole: bool) -> Candidates:
        """Every integer between the bounds, if the column holds integers and there are few; else 1,024 points."""
        lower, width = float(bounds.lower), float(Fraction(bounds.upper) - Fraction(bounds.lower))
        if width == 0:
            return cls(lower, 1.0, 1, whole)
        if whole and width < _CANDIDATES:
            return cls(lower, 1.0, int(width) + 1, whole)
        return cls(lower, width / (_CANDIDATES - 1), _CANDIDATES, whole)

    @property
    def fits(self) -> bool:
        """Whether each candidate, which is a float, is a whole number of 64 bits once it is rounded."""
        return self.lower >= -(2.0**63) and self.point(self.count - 1) < 2.0**63

    def point(self, number: int) -> float:
        """The value of a candidate (column unit)."""
        return self.lower + number * self.step

    @property
    def power(self) -> int:
        """The exponent of the power of two that scales distances, so that the last candidate is at about 2^50."""
        width = Fraction(self.step) * (self.count - 1)
        return _LATTICE_BITS - (width.numerator.bit_length() - width.denominator.bit_length()) if width else 0

    @property
    def extent(self) -> int:
        """The scaled distance between the first candidate and the last, as a whole number below 2^51; 0 for one value.

        >>> Candidates(0.0, 1.0, 11, True).extent == 10 * 2**47
        True
        """
        return round(Fraction(self.step) * (self.count - 1) * Fraction(2) ** self.power)

    def nearest(self, value: float) -> int:
        """The number of the candidate nearest to a value, as every engine computes it. Of two, it is the greater.

        Input:  value, finite or infinite (column unit)
        Output: an integer in [0, count)
        Bound:  the candidate is within half a step of the value, but for 2^-38 of a step and the rounding of the
                subtraction; it depends on this value alone

        >>> [Candidates(0.0, 1.0, 11, False).nearest(x) for x in (-math.inf, 0.49, 0.5, 7.0, math.inf)]
        [0, 0, 1, 7, 10]
        """
        last = self.count - 1
        if not self.extent:
            return 0
        inside = min(max(value, self.lower), self.point(last)) - self.lower
        distance = math.floor(Fraction(inside) * Fraction(2) ** self.power)
        return min((2 * last * distance + self.extent) // (2 * self.extent), last)

    def around(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """The smallest and largest value whose nearest candidate is from `first` to `last` (column unit).

        A value is within half a step of its nearest candidate, but for the rounding of floats. For a column of whole
        numbers the two ends are whole numbers.
        """
        largest = max(abs(self.lower), abs(self.point(self.count - 1)))
        exact = self.whole and self.step == 1 and largest < 2**52
        beside = 0.501 * self.step + (0.0 if exact else 2 * math.ulp(largest))
        low, high = self.lower + first * self.step - beside, self.lower + last * self.step + beside
        return (np.ceil(low), np.floor(high)) if self.whole else (low, high)


class Product(StrEnum):
    """Which product of a unit's sum x and its rows n a second moment adds up; see `plan.moments`."""

    SQUARE = "square"
    CROSS = "cross"
    SPREAD = "spread"
    ROW_SPREAD = "row_spread"
    INFLUENCE = "influence"
    BETWEEN = "between"


@dataclass(frozen=True)
class Moment:
    """How the products of one unit's partials are made, in integers.

    `sums` and `counts` are the keys of the totals whose partials are multiplied. The unit's sum becomes x = ⌊(2·⌊S /
    2^pre⌋ - tilt·n·2^lift) / 2^shift⌋ in [-most, most], and its rows become n = ⌊N / 2^rows_shift⌋ in [0, most_rows].
    `slope` is what each n takes away from a square, and `cap` is the largest size of a product for each n.

    The influence of a unit is a weighted sum of its partials: those of the totals `parts`, each multiplied by 2^lift of
    `lifts` (divided where that is negative), so that it is below 2^24. It is clipped to [-most, most] and squared. The
    weights are not part of the question. They are made of the noisy totals, which are drawn first. Where there are
    `counts`, the unit's rows become n = ⌊N / 2^rows_shift⌋ in [0, most_counted], n times `slope` is taken from the
    square, and the result is clipped to [-cap·n, cap·n].

    For BETWEEN, the influences of a unit on two groups are multiplied: that on the group number `place` of `groups`
    listed ones, and that on each group before it. The product is clipped to [-cap, cap]. A unit is in at most
    `most_groups` of all groups, and in at most `others` of those before the one at the place if it is in that one.
    """

    product: Product
    sums: tuple[object, ...] | None
    counts: tuple[object, ...] | None
    pre: int = 0
    shift: int = 0
    tilt: int = 0
    lift: int = 0
    rows_shift: int = 0
    most: int = 0
    most_rows: int = 0
    slope: int = 0
    cap: int = 0
    parts: tuple[tuple[object, ...], ...] = ()
    lifts: tuple[int, ...] = ()
    place: int = 0  # of a coefficient, where several influences are made of the same totals; or of a group
    most_counted: int = 0
    groups: int = 0
    most_groups: int = 0
    others: int = 0
    in_all: int | None = None  # the largest sum of the sizes of one unit's products, if that is known
    one_row: bool = False  # whether one row is exchanged for one row, so that one product is for another
