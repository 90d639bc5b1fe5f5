"""Groups compared with the value that they have in common: what shrinking a statistic starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats
from dpframe.theory.formulas.error import average_critical, group_spread, shrunk_differences


@dataclass(frozen=True)
class Compared:
    """A statistic of each group as its difference from a common value, with the noise of that difference.

    `differences` are n · (value of the group - common) with noise of the standard `deviations`; `numbers` are the noisy
    n. `low` and `high` are the ends of what the statistic can be, and `half` is the largest standard deviation of
    what it is a mean of. `heavy` says whether some noise is Laplace noise.
    """

    common: float
    differences: Floats
    numbers: Floats
    deviations: Floats
    low: float
    high: float
    half: float
    heavy: bool

    def shrunk(self) -> Shrunk:
        """The statistic of each group, moved towards the common value.

        Squares are taken in units of the largest difference, so that they are floats whatever the bounds are.
        """
        most = max(self.high - self.common, self.common - self.low)
        unit = most or 1.0
        differences, variances = self.differences / unit, (self.deviations / unit) ** 2
        spread = group_spread(differences, self.numbers, variances, most / unit, self.half / unit)
        moved, deviations, biases = shrunk_differences(differences, self.numbers, variances, spread)
        values = np.clip(self.common + moved * unit, self.low, self.high)
        return Shrunk(values, deviations * unit, np.minimum(biases * unit, most), self.low, self.high, self.heavy)


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
