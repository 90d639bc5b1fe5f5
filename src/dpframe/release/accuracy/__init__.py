"""How far a released number may be from the number without noise, before and after the release, at a confidence.

A number stands for the one that the release would have without its noise: of the rows under the stated limits and
bounds. What limits and bounds leave out is not in the error. The error of each statistic is in `release.estimators`.
"""

from dpframe.release.accuracy.arguments import check_alpha, check_column, check_rows
from dpframe.release.accuracy.interval_columns import check_ci, read_ci
from dpframe.release.accuracy.intervals import intervals, known, with_intervals

__all__ = ["check_alpha", "check_ci", "check_column", "check_rows", "intervals", "known", "read_ci", "with_intervals"]
