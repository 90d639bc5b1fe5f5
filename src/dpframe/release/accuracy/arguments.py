"""Arguments of errors and intervals, read and checked once."""

from __future__ import annotations

from dpframe.errors import InvalidArgument
from dpframe.plan import real

__all__ = ["check_alpha", "check_rows"]


def check_alpha(alpha: object) -> float:
    """The probability that an interval misses, strictly between 0 and 1. Errors: InvalidArgument."""
    missing = real(alpha)
    if missing is None or not 0 < missing < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(missing)


def check_rows(rows: object) -> float:
    """A number of rows per group to assume. Errors: InvalidArgument."""
    number = real(rows)
    if number is None or not 0 < number <= 2**63:
        raise InvalidArgument("assume_rows= is a number of rows above 0.")
    return float(number)
