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
from dpframe.release.auto.clipping_bounds import fewest_people
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.noisy_histograms import Seen, check_auto
from dpframe.release.auto.posterior import draw_curves
from dpframe.release.auto.size_histograms import SizePosterior, laplace_below

__all__ = [
    "MODEL",
    "Seen",
    "SizePosterior",
    "check_auto",
    "check_choice",
    "choose",
    "draw_curves",
    "expected_errors",
    "fewest_people",
    "judged_by",
    "laplace_below",
    "read_people",
    "restored",
    "try_people",
]
