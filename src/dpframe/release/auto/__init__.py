"""Private choice of limits and clipping bounds inside a release: `dp.Auto()`."""

from dpframe.release.auto.choice import (
    check_choice,
    choose,
    expected_errors,
    judged_by,
    read_people,
    restored,
    try_people,
)
from dpframe.release.auto.left_out import Seen, left_out
from dpframe.release.auto.noisy_histograms import check_auto

__all__ = [
    "Seen",
    "check_auto",
    "check_choice",
    "choose",
    "expected_errors",
    "judged_by",
    "left_out",
    "read_people",
    "restored",
    "try_people",
]
