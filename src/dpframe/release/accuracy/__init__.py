"""Errors and intervals: how far a released number may be from the number
without noise, at a confidence.

The number without noise is that of the rows under the stated limits and bounds. So rows and values
that limits and bounds remove are not in the error. The error of each statistic is in
`release.estimators`.
"""

from dpframe.release.accuracy.combinations import Combinations, half_step, quotient_ends
from dpframe.release.accuracy.group_differences import Differences, holm
from dpframe.release.accuracy.independence import Independence, independence
from dpframe.release.accuracy.intervals import (
    check_alpha,
    check_ci,
    check_column,
    check_rows,
    intervals,
    known,
    low_and_high,
    read_ci,
    with_intervals,
)

__all__ = [
    "Combinations",
    "Differences",
    "Independence",
    "check_alpha",
    "check_ci",
    "check_column",
    "check_rows",
    "half_step",
    "holm",
    "independence",
    "intervals",
    "known",
    "low_and_high",
    "quotient_ends",
    "read_ci",
    "with_intervals",
]
