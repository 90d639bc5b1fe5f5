"""How far a released number may be from the number without noise."""

from dpframe.release.accuracy.errors import (
    check_alpha,
    check_rows,
    error_of_sum,
    expected_error,
    rows_fewer,
)
from dpframe.release.accuracy.interval_columns import (
    check_ci,
    read_ci,
)
from dpframe.release.accuracy.intervals import (
    intervals,
    known,
    with_intervals,
)

__all__ = [
    "check_alpha",
    "check_ci",
    "check_rows",
    "error_of_sum",
    "expected_error",
    "intervals",
    "known",
    "read_ci",
    "rows_fewer",
    "with_intervals",
]
