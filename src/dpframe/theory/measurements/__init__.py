"""Measurements: functions that add noise or choose at random, each with a bound on the privacy loss."""

from dpframe.theory.measurements.canonical import canonical_noise
from dpframe.theory.measurements.choices import (
    noisy_max,
    noisy_top_k,
    randomized_response,
)
from dpframe.theory.measurements.grid_noise import (
    checked_scale,
)
from dpframe.theory.measurements.intervals import interval_choice
from dpframe.theory.measurements.keys import KeySelection, select_keys, threshold_keep_probability
from dpframe.theory.measurements.noise import (
    gaussian,
    laplace,
)
from dpframe.theory.measurements.thresholds import (
    gaussian_threshold,
    laplace_threshold,
)

__all__ = [
    "KeySelection",
    "canonical_noise",
    "checked_scale",
    "gaussian",
    "gaussian_threshold",
    "interval_choice",
    "laplace",
    "laplace_threshold",
    "noisy_max",
    "noisy_top_k",
    "randomized_response",
    "select_keys",
    "threshold_keep_probability",
]
