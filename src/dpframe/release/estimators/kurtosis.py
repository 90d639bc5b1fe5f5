"""Kurtosis: the fourth central moment over the squared variance, less that of a normal law."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe.release.estimators.skew import StandardizedEstimator


class KurtosisEstimator(StandardizedEstimator):
    """The fourth central moment over the squared variance, less 3."""

    power = 4
    normal = 3.0

    def range(self, number: Any) -> tuple[Any, Any]:
        """Between -2, where half of the values are the one and half the other of two, and (n² - 3n + 3)/(n - 1) - 3.

        The latter is that of n values of which all but one are equal.

        Source: Dalén 1987, Statistics and Probability Letters 5, for the largest; Pearson 1916 for the least
        """
        least = np.full_like(np.asarray(number, np.float64), 1.0)
        most = np.maximum((number**2 - 3 * number + 3) / np.maximum(number - 1.0, 1.0), least)
        return least - self.normal, most - self.normal
