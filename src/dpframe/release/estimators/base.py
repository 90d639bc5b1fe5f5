"""The estimator of a statistic: its value from noisy totals, its interval, and its expected error.

A released column is post-processing of noisy totals, so nothing here has a privacy cost. Each
statistic is one file with one `Estimator`, which is registered in this room's `__init__`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.plan import TICKS, Formula, ReleasedColumn, Total, time_unit
from dpframe.release.estimators.binned_values import BinnedValues
from dpframe.release.estimators.influence import Influence, NoisyColumn, Sampled, sampled_influence
from dpframe.theory.formulas.error import (
    average_critical,
    group_spread,
    safe_moves,
    shrunk_differences,
)

_MOST_ROWS = 2**50  # of a group; no table has as many

Interval = tuple[Floats, Floats]
Noisy = Mapping[tuple[object, ...], Any]  # noisy totals by the key of their total


@dataclass(frozen=True)
class Compared:
    """A statistic of each group as its difference from a common value,
    with the noise of that difference.

    `differences` are n · (value of the group - common) with noise of the standard `deviations`;
    `numbers` are the noisy n. The released value is `targets` + `differences` · `slopes`, inside
    `low` and `high`, the ends of what the statistic can be: so `targets` are what would be released
    without noise if all groups had the common value. `half` is the largest standard deviation of
    what it is a mean of. `heavy` says whether some noise is Laplace noise.
    """

    common: float
    differences: Floats
    numbers: Floats
    deviations: Floats
    targets: Floats
    slopes: Floats
    low: float
    high: float
    half: float
    heavy: bool

    def shrunk(self, *, alike: bool = False) -> Shrunk:
        """The statistic of each group, moved towards the common value.

        Input:  alike: whether small groups are as near to the common value as large ones. Then each
                group moves as far as its noise says, else as far as no truth makes the error over
                all groups larger: see `safe_moves`
        Bound:  let r = n · slope, and w the share of the distance to the target that remains. A
                group's error is then w·slope·noise + (target - common) - (1 - w·r)·(m - common),
                which `biases` are about

        Squares are taken in units of the largest difference, so that they are floats whatever the
        bounds are.
        """
        most = max(self.high - self.common, self.common - self.low)
        unit = most or 1.0
        differences, variances = self.differences / unit, (self.deviations / unit) ** 2
        spread = group_spread(differences, self.numbers, variances, most / unit, self.half / unit)
        if alike:
            moved, deviations, biases = shrunk_differences(
                differences, self.numbers, variances, spread
            )
            values = np.clip(self.common + moved * unit, self.low, self.high)
        else:
            raw = np.clip(self.targets + self.differences * self.slopes, self.low, self.high)
            apart, inside = (raw - self.targets) / unit, (self.low < raw) & (raw < self.high)
            stay = 1 - safe_moves(apart, variances * self.slopes**2, spread.between, inside)
            values, deviations = (
                self.targets + stay * apart * unit,
                np.sqrt(variances) * self.slopes * stay,
            )
            sizes = np.maximum(self.numbers, 0.0)
            pulls = (1 - stay * sizes * self.slopes) * np.sqrt(spread.of_groups(sizes))
            biases = np.hypot((self.targets - self.common) / unit, pulls)
        return Shrunk(
            values,
            deviations * unit,
            np.minimum(biases * unit, most),
            self.low,
            self.high,
            self.heavy,
        )


@dataclass(frozen=True)
class Shrunk:
    """Shrunk values of a statistic, the standard deviations of their noise, and the
    roots of their expected bias².
    """

    values: Floats
    deviations: Floats
    biases: Floats
    low: float
    high: float
    heavy: bool

    def interval(self, alpha: float) -> tuple[Floats, Floats]:
        """Intervals of which a share of at most alpha misses, on average over
        groups; see `average_critical`.
        """
        surely = self.deviations > 0
        ratios = (
            np.divide(self.biases, self.deviations, out=np.zeros_like(self.biases), where=surely)
            ** 2
        )
        reach = average_critical(ratios, alpha, heavy=self.heavy) * self.deviations
        # Chebyshev, where all of the error is bias
        reach = np.where(surely, reach, self.biases / np.sqrt(alpha))
        return np.maximum(self.values - reach, self.low), np.minimum(self.values + reach, self.high)


class Estimator(ABC):
    """One statistic.

    `adds_up` says whether the number of several groups together is the sum of their numbers, so
    that it has margins. `is_number` says whether the statistic is a number, which has an interval
    and can be charted. `shrinks` says whether groups can be `compared`, so that their values can be
    moved towards a common one; `compares`, whether the difference of two groups has an interval.
    Which statistics have a `population` interval is the list of `dpframe.plan.has_population`:
    others are refused before a release.
    """

    adds_up: ClassVar[bool] = False
    is_number: ClassVar[bool] = True
    shrinks: ClassVar[bool] = False
    compares: ClassVar[bool] = False

    @abstractmethod
    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        """The released column (column unit), one value per group."""

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The interval of each group that holds the number without
        noise with probability 1 - alpha.

        Input:  the released numbers; the noisy totals that they follow from; rows: how many values
                each group has, None if unknown
        Output: the two ends, one number per group, in the unit of `numbers`: for a time its ticks
        """
        return np.full(numbers.shape, math.nan), np.full(numbers.shape, math.nan)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The least and the largest number that the statistic can be, of each
        group; None where nothing holds it.

        Output: in the unit of the released numbers: for a time its ticks
        """
        return None

    def holds_all(self, output: NoisyColumn, interval: tuple[Any, Any]) -> Booleans:
        """Of which groups an interval holds every number that the
        statistic can be, up to rounding.
        """
        widest = self.widest(output)
        if widest is None:
            return np.zeros(np.shape(interval[0]), np.bool_)
        least, most = np.broadcast_arrays(*widest)
        rounding = np.where(np.isfinite(most - least), 1e-9 * (most - least), 0.0)
        return np.asarray(
            (interval[0] <= least + rounding) & (interval[1] >= most - rounding) & (least < most)
        )

    @property
    def has_population(self) -> bool:
        """Whether there is an interval that covers the sampling of people too."""
        return type(self).population is not Estimator.population

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The interval of each group that covers noise and the sampling of people,
        with probability about 1 - alpha.

        Input:  as `interval`; the noisy totals also hold the second moments of the column
        Output: as `interval`
        """
        raise NotImplementedError

    def influence(self, output: NoisyColumn) -> Influence:
        """The influence of each person on the statistic, where an
        interval for the population needs it.
        """
        raise NotImplementedError

    def sampled(self, output: NoisyColumn, numbers: Floats) -> Sampled:
        """The sampling variance of the statistic as released: here from squared influences.
        Input: as `population`.
        """
        return sampled_influence(output, self.influence(output))

    def per_influence(self, numbers: Floats) -> Floats:
        """Change of the released number of each group when the
        statistic of `influence` grows by 1.
        """
        return np.ones_like(numbers)

    def compared(self, output: NoisyColumn) -> Compared | None:
        """The groups beside the value that they have in common;
        None for a statistic that cannot be shrunk.
        """
        return None

    def from_ratio(self, output: NoisyColumn, ratios: Floats) -> Floats:
        """The statistic (column unit) from the ratio that `compared` is about."""
        return ratios

    @abstractmethod
    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """An error that is exceeded with probability at most alpha, before a release
        (unit of the released column).

        Input:  rows: how many values each group is assumed to have; None without an assumption
        Output: the error; None if it depends on the data and rows is None
        """

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """The error of one constant, the middle of what the bounds allow, whatever the values are.

        Output: here that of a number which may lie anywhere between the bounds; None where no
                bounds hold it
        """
        return None if output.bounds is None else half_width(output) * output.ticks

    def useful_from(self, output: NoisyColumn, alpha: float) -> int | None:
        """The least number of rows in a group from which `expected_error`
        is below that of one constant.

        Where the error does not depend on rows, the constant is 0, and a total of fewer rows is
        below the error even if each has the largest value. Elsewhere it is the middle of what the
        bounds allow: see `constant_error`.

        Output: rows (units or distinct values, where the column counts these); None where no number
                of rows is known
        """
        error = self.expected_error(output, alpha, None)
        if error is not None:
            most = self.reach(output) * output.ticks
            return whole_rows(error / most) if most else None
        constant = self.constant_error(output)
        return (
            None
            if constant is None
            else _least_rows(lambda rows: self._is_below(constant, output, alpha, rows))
        )

    def _is_below(self, constant: float, output: NoisyColumn, alpha: float, rows: int) -> bool:
        error = self.expected_error(output, alpha, float(rows))
        return error is not None and error < constant

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        """An error for each pair of bounds that dp.Auto() may choose,
        from clipping and noise together.

        Input:  values: cases of what the column may hold; low, high: pairs of its edges, by number;
                noise: standard deviation of a total's noise, divided by its sensitivity and by the
                number of units, in each case
        Output: cases by pairs (unit of the statistic); None where bounds do not matter, or are
                refused as dp.Auto()
        """
        return None

    def reach(self, output: ReleasedColumn) -> float:
        """The unit in which dp.Auto() compares errors:
        here half the width of the bounds, or 1 without bounds.
        """
        return 1.0 if output.bounds is None else half_width(output) * output.ticks


def whole_rows(rows: float) -> int | None:
    """A number of rows, rounded up; None if it is above 2^50, which no table has.

    >>> whole_rows(11.2), whole_rows(2.0**63)
    (12, None)
    """
    return math.ceil(rows) if rows <= _MOST_ROWS else None


def _least_rows(is_enough: Callable[[int], bool]) -> int | None:
    """The least number of rows that is enough, where more rows are enough
    too; None if 2^50 are too few.
    """
    powers = (2**power for power in range(_MOST_ROWS.bit_length()))
    most = next((rows for rows in powers if is_enough(rows)), None)
    return (
        None
        if most is None
        else bisect_left(range(most), True, lo=max(most // 2, 1), key=is_enough)
    )


def widened(ends: Iterable[Floats], numbers: Floats, times: float = 1) -> Interval:
    """The two ends, multiplied, and further out where the released numbers are outside of them."""
    low, high = ends
    return np.minimum(low * times, numbers), np.maximum(high * times, numbers)


def real(total: Total, noisy: Noisy) -> Any:
    """A noisy total in the column's unit."""
    return noisy[total.key].astype(np.float64) * float(total.unit)


def shown(output: ReleasedColumn, values: Any) -> Any:
    """Numbers rounded to int64; for times, to ticks that Python and pandas can show."""
    longest = 9.2e18
    if output.dtype is not None:
        longest = min(86_399_999_800_000.0 * TICKS[time_unit(output.dtype)], longest)
    return np.clip(np.rint(values), -longest, longest).astype(np.int64)


def in_ticks(output: ReleasedColumn, values: Any) -> Any:
    """Released times as whole ticks of their type, inside their bounds and inside
    what Python and pandas can show.
    """
    whole = shown(output, values * output.ticks)
    if output.bounds is None or output.formula is Formula.STD:
        return whole
    return np.clip(
        whole, int(output.bounds.lower) * output.ticks, int(output.bounds.upper) * output.ticks
    )


def bounds_of(output: ReleasedColumn) -> tuple[float, float]:
    """A column's bounds in the unit of its released numbers: for a time its ticks."""
    low, high = output.ends
    return low * output.ticks, high * output.ticks


def half_width(output: ReleasedColumn) -> float:
    """Half the width of a column's bounds (column unit)."""
    assert output.bounds is not None
    return float(Fraction(output.bounds.upper) - Fraction(output.bounds.lower)) / 2
