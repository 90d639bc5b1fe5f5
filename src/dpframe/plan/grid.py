"""Grids chosen from bounds alone: integers for values and for products of sums,
and the candidates of a quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Array, Integers
from dpframe.plan.columns import Bounds
from dpframe.theory.exact import ceil_log2

FRACTION_BITS = 20  # bits below the grid step in every total whose rows have weights
_VALUE_BITS = 24  # for floats: relative steps of 6e-8, far below any noise
_WHOLE_BITS = 26  # integers with up to this many bits are on a grid of step 1
_PRODUCT_BITS = 42  # value bits plus limit bits: with FRACTION_BITS they fill 62 bits
FEW = 1024  # so many candidates are few: the leaves of a tree, and integers that are all candidates
_MOST = 2**22  # candidates of a quantile
_ROUNDEST = 100  # round numbers of one kind among the candidates, at least
_LATTICE_BITS = 50  # bits of a scaled distance: twice the distance, times 1,023, is below 2^61


@dataclass(frozen=True)
class ValueGrid:
    """A column's value is `centre + step · integer`, with the integer in [lower, upper].

    `step` is a power of two; `centre` is a multiple of it (0 unless the column is centred for a
    mean). The step is at most 1 only for a column of whole numbers that the grid holds exactly, and
    for floats.
    """

    step: Fraction
    centre: Fraction
    lower: int
    upper: int

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The values (column unit) of the smallest and of the largest integer."""
        return self.centre + self.lower * self.step, self.centre + self.upper * self.step

    @property
    def magnitude(self) -> int:
        """The largest absolute value of an integer on the grid."""
        return max(abs(self.lower), abs(self.upper))


UNIT_GRID = ValueGrid(Fraction(1), Fraction(0), 0, 1)


def room(limit: int) -> int:
    """Bits that a value may have when up to `limit` of them, with fraction
    bits, must stay inside 62 bits.
    """
    return _PRODUCT_BITS - (limit - 1).bit_length()


def grid_for(bounds: Bounds, *, whole: bool, centred: bool, limit: int) -> ValueGrid:
    """The grid for values in `bounds`, from the bounds alone.

    Input:  bounds (column unit); whole: the column holds integers; centred: measure from the middle
            (for means); limit: the most rows of one unit that are added into one cell (count)
    Output: a ValueGrid whose points lie inside the bounds, exact
    Bound:  |centre + step · integer| never leaves the bounds (shrunk inward), and limit · magnitude
            stays below 2^42, so that with 20 fraction bits nothing wraps in int64. A centred grid
            is as narrow as the bounds allow. Whole numbers from a to b have the middle (a + b)/2,
            which is half a number where b - a is odd. They are then measured in half units: the
            number x is the integer 2x - (a + b), which lies in [a - b, b - a], and is worth 1/2. So
            a row moves a sum by at most (b - a)/2, and a condition by 1/2. Measured from ⌊(a +
            b)/2⌋ it would be (b - a + 1)/2, and 1. Bounds that are no whole numbers are first moved
            inward to a and b
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
        power = min(max(min(_VALUE_BITS, space) - ceil_log2(reach), -1000), 1000)
        step = Fraction(2) ** -power
    centre = math.floor(middle / step) * step
    lower, upper = math.ceil((low - centre) / step), math.floor((high - centre) / step)
    if lower > upper:  # no grid point is inside: take the one beside, on the side of the centre
        lower = upper = lower if lower <= 0 else upper
    return ValueGrid(step, centre, lower, upper)


@dataclass(frozen=True)
class Candidates:
    """The values among which a quantile is chosen, from `lower` to `upper`
    (column unit); `count` of them.

    They are multiples of `step`, from `start` times the step on, and the bounds, if these are no
    multiples. Where there are few candidates, and in a tree, there is no `start`: they are `lower`,
    `lower + step`, ….

    Rounder numbers weigh more. `rounder` has growing numbers, from 1 on, of which each divides the
    next. For each of them that divides its multiple of the step, a candidate stands in the list
    that many times, and for 1 four times. So each kind of round numbers has about a quarter of the
    weight of all numbers, and a value of many rows that is a round number is chosen before the
    values beside it, of which no row has any. The list is public.

    The nearest candidate is computed in integers, so that all engines agree on ties. One
    subtraction of floats gives the distance of a value from `lower`. The distance is then
    multiplied by a power of two, which is exact. After this scaling the last candidate is at a
    whole number of about 2^50 (less where there are many candidates), the `extent`. All further
    arithmetic is on integers.
    """

    lower: float
    upper: float
    step: Fraction
    count: int
    whole: bool
    start: int | None = None
    rounder: tuple[int, ...] = (1,)

    @classmethod
    def leaves(cls, bounds: Bounds, *, whole: bool) -> Candidates:
        """Every integer between the bounds, if the column holds integers and
        there are few; else 1,024 points.
        """
        lower, width = float(bounds.lower), float(Fraction(bounds.upper) - Fraction(bounds.lower))
        if width == 0:
            return cls(lower, lower, Fraction(1), 1, whole)
        if whole and width < FEW:
            return cls(lower, lower + int(width), Fraction(1), int(width) + 1, whole)
        step = width / (FEW - 1)
        return cls(lower, lower + (FEW - 1) * step, Fraction(step), FEW, whole)

    @classmethod
    def between(cls, bounds: Bounds, *, whole: bool, second: int | None = None) -> Candidates:
        """Every integer between the bounds, if the column holds integers and there are
        few; else multiples of a step.

        Input:  bounds (column unit); whole: the column holds integers; second: how many of them a
                second has, in a column of times; 0 in one of dates; None in others
        Output: the step is the smallest of 1 or 5 times a power of ten, or of seconds, minutes,
                hours and days in a column of times, that leaves at most 2^22 candidates. It is at
                least 1 in a column of integers
        Bound:  public: it depends on the bounds and the type alone

        >>> found = Candidates.between(Bounds(0, 100), whole=False)
        >>> found.step, found.count, found.rounder
        (Fraction(1, 20000), 2000001, (1, 2, 20, 200, 2000, 20000))
        >>> Candidates.between(Bounds(0, 20_000), whole=True).step
        Fraction(1, 1)
        """
        low, high = Fraction(bounds.lower), Fraction(bounds.upper)
        if low == high or (whole and high - low < FEW):
            return cls.leaves(bounds, whole=whole)
        if whole:
            low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
        low, high = Fraction(float(low)), Fraction(float(high))
        steps, round_steps = _ladder(
            max((high - low) / (_MOST - 2), Fraction(1 if whole else 0)), second
        )
        step = steps[0]
        start = math.floor(low / step)
        count = math.ceil(high / step) - start + 1
        times = [int(large / step) for large in round_steps if large > step]
        return cls(
            float(low),
            float(high),
            step,
            count,
            whole,
            start,
            (1, *(n for n in times if count // n >= _ROUNDEST)),
        )

    @property
    def fits(self) -> bool:
        """Whether each candidate, which is a float, is a whole number
        of 64 bits once it is rounded.
        """
        return self.lower >= -(2.0**63) and self.upper < 2.0**63

    def points(self, numbers: Any) -> Any:
        """The values of candidates by their numbers (column unit)."""
        first, times, parts, last = (
            self.start,
            self.step.numerator,
            self.step.denominator,
            max(self.count - 1, 1),
        )
        if first is None:
            points = self.lower + numbers * float(self.step)
        elif (abs(first) + self.count) * times < 2**53 and parts < 10**300:
            points = (first + numbers) * times / parts  # one division, which rounds to nearest
        else:
            points = self.lower + (numbers / last * float(self.step * last) - float(self._shift))
        # To NumPy 1 what is divided by a number beyond 64 bits is a Python object.
        return np.clip(np.asarray(points, np.float64), self.lower, self.upper)

    @property
    def _shift(self) -> Fraction:
        """Distance of `lower` from the multiple of the step below it that
        the first candidate stands for.
        """
        return Fraction(0) if self.start is None else Fraction(self.lower) - self.start * self.step

    @property
    def copies(self) -> int:
        """Number of entries of all candidates together in the list."""
        return int(self.listed(np.array([0]), np.array([self.count]))[0])

    def listed(self, first: Integers, after: Integers) -> Integers:
        """Number of entries in the list of the candidates from number
        `first` to before number `after`.
        """
        return np.asarray(
            sum(_copies(times) * self._multiples(times, first, after) for times in self.rounder)
        )

    def picked(self, first: Integers, after: Integers, places: Integers) -> Integers:
        """The number of a candidate, by its place in that part of the list.

        >>> found, one = Candidates.between(Bounds(0, 20_000), whole=True), np.array([7])
        >>> (
        ...     [
        ...         int(found.picked(one, one + 5, np.array([place]))[0])
        ...         for place in (0, 3, 4, 19, 20, 29)
        ...     ],
        ...     found.rounder,
        ... )
        ([7, 7, 8, 11, 10, 10], (1, 10, 100))
        """
        numbers = np.zeros_like(first)
        for times in self.rounder:
            here = _copies(times) * self._multiples(times, first, after)
            multiple = -(-(first + self._turn) // times) + places // _copies(times)
            numbers = np.where(
                (places >= 0) & (places < here), multiple * times - self._turn, numbers
            )
            places = np.where(places >= 0, places - here, places)
        return numbers

    def _multiples(self, times: int, first: Integers, after: Integers) -> Integers:
        """Number of candidates from `first` to before `after` that stand
        for a multiple of so many steps.
        """
        return (after - 1 + self._turn) // times - (first - 1 + self._turn) // times

    @property
    def _turn(self) -> int:
        """The `start` as far as it decides which candidates are rounder."""
        return (self.start or 0) % self.rounder[-1]

    @property
    def power(self) -> int:
        """The exponent of the power of two that scales distances, so that the
        last candidate is at about 2^50.
        """
        width, most = (
            self.step * (self.count - 1),
            min(_LATTICE_BITS, 60 - (self.count - 1).bit_length()),
        )
        return (
            most - (width.numerator.bit_length() - width.denominator.bit_length()) if width else 0
        )

    @property
    def extent(self) -> int:
        """The scaled distance between the first candidate and the last, as a whole
        number below 2^51; 0 for one value.

        >>> Candidates.between(Bounds(0, 10), whole=True).extent == 10 * 2**47
        True
        """
        return round(self.step * (self.count - 1) * Fraction(2) ** self.power)

    @property
    def quotient(self) -> tuple[int, int, int]:
        """Whole numbers a, b and c: a value at the scaled distance d is nearest to
        the candidate ⌊(a·d + b) / c⌋.

        A distance is below 2^51, and below 2^61 over the number of candidates, so that a·d + b
        stays below 2^63.
        """
        last, shift = self.count - 1, round(self._shift * Fraction(2) ** self.power)
        return 2 * last, self.extent + 2 * last * shift, 2 * self.extent

    def nearest(self, value: float) -> int:
        """The number of the candidate nearest to a value, as every engine computes it.
        Of two, it is the greater.

        Input:  value, finite or infinite (column unit)
        Output: an integer in [0, count)
        Bound:  the candidate is within half a step of the value, but for a part of 2^-14 of a step
                and the rounding of the subtraction (2^-38 where there are at most 1,024
                candidates); it depends on this value alone

        >>> [
        ...     Candidates.between(Bounds(0, 10), whole=True).nearest(x)
        ...     for x in (-math.inf, 0.49, 0.5, 7.0, math.inf)
        ... ]
        [0, 0, 1, 7, 10]
        """
        if not self.extent:
            return 0
        inside = min(max(value, self.lower), self.upper) - self.lower
        times, add, whole = self.quotient
        distance = math.floor(Fraction(inside) * Fraction(2) ** self.power)
        return min((times * distance + add) // whole, self.count - 1)

    def around(self, first: Integers, last: Integers) -> tuple[Array, ...]:
        """The smallest and largest value whose nearest candidate is from
        `first` to `last` (column unit).

        A value is within half a step of its nearest candidate, but for the rounding of floats. For
        a column of whole numbers the two ends are whole numbers.
        """
        largest = max(abs(self.lower), abs(self.upper))
        exact = self.whole and self.step == 1 and largest < 2**52
        beside = 0.501 * float(self.step) + (0.0 if exact else 2 * math.ulp(largest))
        low, high = self.points(first) - beside, self.points(last) + beside
        return (np.ceil(low), np.floor(high)) if self.whole else (low, high)


def _copies(times: int) -> int:
    """Number of entries of a candidate of a kind in the list:
    four for a number that need not be round.
    """
    return 4 if times == 1 else times


def _ladder(least: Fraction, second: int | None) -> tuple[list[Fraction], list[Fraction]]:
    """Steps of at least `least` that candidates may be apart, and
    those of round numbers; both grow.
    """
    tens = math.floor(math.log10(least.numerator) - math.log10(least.denominator))
    powers = [Fraction(10) ** power for power in range(tens - 1, tens + 12)]
    steps, round_steps = (
        sorted(powers + [5 * power for power in powers]),
        powers if second is None else [],
    )
    if second:
        day = 86_400 * second
        short = [10**power for power in range(10) if 10**power < second]
        clock = [second * seconds for seconds in (1, 10, 60, 600, 3600)]
        steps = round_steps = [
            Fraction(ticks) for ticks in (*short, *clock, *(day * 10**power for power in range(9)))
        ]
    return [step for step in steps if step >= least], round_steps


class Product(StrEnum):
    """A product of a unit's sum x and its rows n that a second
    moment adds up; see `plan.moments`.
    """

    SQUARE = "square"
    CROSS = "cross"
    SPREAD = "spread"
    ROW_SPREAD = "row_spread"
    INFLUENCE = "influence"
    BETWEEN = "between"


@dataclass(frozen=True)
class UnitMoment:
    """The products of one unit's partials, in integers.

    `sums` and `counts` are the keys of the totals whose partials are multiplied. The unit's sum
    becomes x = ⌊(2·⌊S / 2^pre⌋ - tilt·n·2^lift) / 2^shift⌋ in [-most, most], and its rows become n
    = ⌊N / 2^rows_shift⌋ in [0, most_rows]. `slope` is what each n takes away from a square, and
    `cap` is the largest size of a product for each n.

    The influence of a unit is a weighted sum of its partials: those of the totals `parts`, each
    multiplied by 2^lift of `lifts` (divided where that is negative), so that it is below 2^24. It
    is clipped to [-most, most] and squared. The weights are not part of the question. They are made
    of the noisy totals, which are drawn first. Where there are `counts`, the unit's rows become n =
    ⌊N / 2^rows_shift⌋ in [0, most_counted], n times `slope` is taken from the square, and the
    result is clipped to [-cap·n, cap·n].

    For BETWEEN, the influences of a unit on two groups are multiplied: that on the group number
    `place` of `groups` listed ones, and that on each group before it. The product is clipped to
    [-cap, cap]. A unit is in at most `most_groups` of all groups, and in at most `others` of those
    before the one at the place if it is in that one.
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
    # of a coefficient, where several influences are made of the same totals; or of a group
    place: int = 0
    most_counted: int = 0
    groups: int = 0
    most_groups: int = 0
    others: int = 0
    # the largest sum of the sizes of one unit's products, if that is known
    in_all: int | None = None
    # whether one row is exchanged for one row, so that one product is for another
    one_row: bool = False
