"""Measurements: functions that add noise or choose at random, each with a bound on the privacy loss."""

from dpframe.theory.measurements.additive_noise import (
    gaussian,
    laplace,
)
from dpframe.theory.measurements.canonical import canonical_noise
from dpframe.theory.measurements.grid_noise import (
    checked_scale,
)
from dpframe.theory.measurements.selections import (
    interval_choice,
    noisy_max,
    noisy_top_k,
    randomized_response,
)
from dpframe.theory.measurements.thresholds import (
    KeySelection,
    gaussian_threshold,
    laplace_threshold,
    select_keys,
    threshold_keep_probability,
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
