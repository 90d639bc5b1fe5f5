"""Groups compared with the value that they have in common: what shrinking a statistic starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats
from dpframe.theory.formulas.error import average_critical, group_spread, shrunk_differences

__all__ = ["Compared", "Shrunk"]


@dataclass(frozen=True)
class Compared:
    """A statistic of each group as its difference from a common value, with the noise of that difference.

    `differences` are n · (value of the group - common) with noise, whose variances are `variances`; `numbers` are the
    noisy n. `low` and `high` are the ends of what the statistic can be, and `half` is the largest standard deviation of
    what it is a mean of. `heavy` says whether some noise is Laplace noise.
    """

    common: float
    differences: Floats
    numbers: Floats
    variances: Floats
    low: float
    high: float
    half: float
    heavy: bool

    def shrunk(self) -> Shrunk:
        """The statistic of each group, moved towards the common value."""
        most = max(self.high - self.common, self.common - self.low)
        spread = group_spread(self.differences, self.numbers, self.variances, most, self.half)
        moved, deviations, biases = shrunk_differences(self.differences, self.numbers, self.variances, spread)
        values = np.clip(self.common + moved, self.low, self.high)
        return Shrunk(values, deviations, np.minimum(biases, most), self.low, self.high, self.heavy)


@dataclass(frozen=True)
class Shrunk:
    """Shrunk values of a statistic, the standard deviations of their noise, and the roots of their expected bias²."""

    values: Floats
    deviations: Floats
    biases: Floats
    low: float
    high: float
    heavy: bool

    def interval(self, alpha: float) -> tuple[Floats, Floats]:
        """Intervals of which a share of at most alpha misses, on average over groups; see `average_critical`."""
        surely = self.deviations > 0
        ratios = np.divide(self.biases, self.deviations, out=np.zeros_like(self.biases), where=surely) ** 2
        reach = average_critical(ratios, alpha, heavy=self.heavy) * self.deviations
        reach = np.where(surely, reach, self.biases / np.sqrt(alpha))  # Chebyshev, where all of the error is bias
        return np.maximum(self.values - reach, self.low), np.minimum(self.values + reach, self.high)
