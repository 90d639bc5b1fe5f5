"""The first and last value of a unit, for `per_unit` alone."""

from __future__ import annotations

from fractions import Fraction

from dpframe.api.arguments import read_name
from dpframe.plan import Aggregate
from dpframe.plan.steps import Pick
from dpframe.usage import statistic

__all__ = ["first", "last"]


@statistic("'city', by='when'")
def first(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's first row by another column; for `per_unit` only.

    Input:  by: a number, a time or a text; rows in which it is missing do not count. Of several first rows the smallest
            value is taken (missing only if all are missing), so the order of rows never matters
    Output: column unit
    Errors: UnsupportedOperation anywhere else, because that row is one person's

    >>> first("shop", by="when").typed
    "first('shop', by='when')"
    """
    return _pick(column, by, "first")


@statistic("'city', by='when'")
def last(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's last row by another column; see `first`.

    >>> last("shop", by="when").typed
    "last('shop', by='when')"
    """
    return _pick(column, by, "last")


def _pick(column: str, by: str, verb: str) -> Aggregate:
    name = read_name(column, verb)
    return Pick(Fraction(1), name, read_name(by, f"{verb}({name!r}): by="), verb == "last")
