"""`budget.series(...)`: open a series, or reopen it by its name."""

from __future__ import annotations

from typing import Any

from dpframe.budget import Budget
from dpframe.errors import InvalidArgument
from dpframe.plan import check_names
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.release.kinds.series.series import Series
from dpframe.release.kinds.series.settings import Settings
from dpframe.usage import body_of, check_flags


@body_of(Budget.series)
def open_series(
    budget: Budget,
    name: str,
    every: str | None,
    horizon: int | None,
    *,
    unit_periods: int | None,
    enforce: bool,
    start: Any,
    on: str | None,
    noise: str,
    **price: Any,
) -> Series:
    """A series of a budget; see `Budget.series`."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise InvalidArgument("budget.series: give a name, such as budget.series('signups', every='1d', ...).")
    if on is not None:
        if not isinstance(on, str) or not on:
            raise InvalidArgument("budget.series: on= is the name of the column with the time of a row: on='day'.")
        check_names([on])
    check_flags("budget.series: enforce= is True or False.", enforce)
    typed = [every, horizon, unit_periods, enforce or None, *price.values()]
    if all(argument is None for argument in typed) and noise == "auto":
        return Series(budget, name, None, start, on)
    length = "1d" if every is None else every
    if start is not None:
        Calendar.read(length, start)
    settings = Settings.read(budget.terms, length, horizon, unit_periods, noise, enforce=enforce, **price)
    return Series(budget, name, settings, start, on)
