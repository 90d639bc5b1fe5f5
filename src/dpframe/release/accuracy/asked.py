"""Arguments of errors and intervals, read and checked once."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.errors import InvalidArgument, kind_of
from dpframe.plan import real


def check_alpha(alpha: object) -> float:
    """The probability that an interval misses, strictly between 0 and 1. Errors: InvalidArgument."""
    missing = real(alpha)
    if missing is None or not 0 < missing < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(missing)


def read_ci(ci: object) -> float:
    """A confidence as typed. Errors: InvalidArgument."""
    confidence = real(ci)
    if confidence is None or not 0 < confidence < 1:
        raise InvalidArgument("ci= is a probability between 0 and 1; ci=0.95 gives intervals of 95% confidence.")
    return float(confidence)


def check_rows(rows: object) -> float:
    """A number of rows per group to assume. Errors: InvalidArgument."""
    number = real(rows)
    if number is None or not 0 < number <= 2**63:
        raise InvalidArgument("assume_rows= is a number of rows above 0.")
    return float(number)


def check_column(column: object, names: Sequence[str], asked: str) -> None:
    """A released column by its name, or None for what is meant by default. Errors: InvalidArgument."""
    if column is not None and (not isinstance(column, str) or column not in names):
        said = repr(column) if isinstance(column, str) else f"that is {kind_of(column)}"
        raise InvalidArgument(f"{asked}: there is no column {said}; columns are {', '.join(names)}.")
