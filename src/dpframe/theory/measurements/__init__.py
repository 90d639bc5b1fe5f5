"""Measurements: functions that add noise or choose at random, each
with a bound on the privacy loss.
"""

from dpframe.theory.measurements.additive_noise import (
    gaussian,
    laplace,
)
from dpframe.theory.measurements.selections import (
    noisy_max,
    noisy_top_k,
    randomized_response,
)
from dpframe.theory.measurements.thresholds import (
    gaussian_threshold,
    laplace_threshold,
)

__all__ = [
    "gaussian",
    "gaussian_threshold",
    "laplace",
    "laplace_threshold",
    "noisy_max",
    "noisy_top_k",
    "randomized_response",
]
