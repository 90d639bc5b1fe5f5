"""How each statistic follows from noisy totals, with its interval and its expected error."""

from dpframe.release.estimators.fieller import (
    expected_ratio_error,
    merged_mean_interval,
    ratio_interval,
)
from dpframe.release.estimators.formulas import (
    Noisy,
    in_ticks,
    mean_of,
    real,
    released,
    shown,
)

__all__ = [
    "Noisy",
    "expected_ratio_error",
    "in_ticks",
    "mean_of",
    "merged_mean_interval",
    "ratio_interval",
    "real",
    "released",
    "shown",
]
