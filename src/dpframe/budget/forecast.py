"""How long a budget lasts: what was spent day by day, and what is planned or to be expected from here on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

from dpframe.budget import account
from dpframe.budget.account import Budget
from dpframe.budget.allowance import Pace, losses_of
from dpframe.budget.entries import Entry, loss_of
from dpframe.budget.losses import Loss
from dpframe.budget.verbs import drawn, offered

__all__ = ["Forecast", "forecast"]

_DAY = dt.timedelta(days=1)
_LONGEST = 3660  # days of a forecast
_RECENT = 30  # days of which the mean is taken
SCHEMA = {
    "of": pl.String,
    "day": pl.Date,
    "spent": pl.Float64,
    "total": pl.Float64,
    "limit": pl.Float64,
    "kind": pl.String,
}


@dataclass(frozen=True, repr=False)
class Forecast:
    """How long a budget and its allowances last.

    `table` has a row for each day: of what ("budget", or the name of an allowance), what was or is to be spent on that
    day and in total (ε or ρ), the limit, and the kind: "spent", "planned" by an allowance, or "expected" by the mean of
    the last days. `words` are a sentence for each; `lasts` the last day that is paid for, None where there is no end
    in ten years.
    """

    table: pl.DataFrame
    words: tuple[str, ...]
    lasts: dict[str, dt.date | None]

    def plot(self) -> Any:
        """A chart (Altair): what was spent and what will be, day by day, up to the limit."""
        return drawn("forecast chart")(self)

    def __repr__(self) -> str:
        return "\n".join(self.words)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self.words)


def _size(loss: Loss) -> float:
    """ε or ρ as a float."""
    return float(loss.exact_epsilon if loss.exact_rho is None else loss.exact_rho)


@offered("forecast")
def forecast(budget: Budget) -> Forecast:
    """The forecast of a budget; see `Budget.forecast`."""
    entries, limit, at = budget.entries(), budget.limit, account.now()
    charges = [entry for entry in entries if entry.kind == "charge"]
    paid = [(entry.when, _size(loss_of(entry.body["loss"])), "opens" in entry.body) for entry in charges]
    rows, words, last = _expected(paid, limit, at)
    lasts = {"budget": last}
    told = [words]
    for opened in charges:
        if "opens" not in opened.body:
            continue
        lines = [entry for entry in charges if entry.about == opened.number]
        if "nights" in opened.body["opens"]:
            more, words, last = _planned(opened, lines, at)
            rows += more
            lasts[opened.name or ""] = last
        else:
            words = f"{opened.name}: {loss_of(opened.body['loss'])} paid for all of its periods, {len(lines)} added."
        told.append(words)
    return Forecast(pl.DataFrame(rows, SCHEMA, orient="row"), tuple(told), lasts)


def _by_day(paid: Sequence[tuple[dt.datetime, float]]) -> dict[dt.date, float]:
    days: dict[dt.date, float] = {}
    for when, size in paid:
        days[when.date()] = days.get(when.date(), 0.0) + size
    return days


def _days(of: str, days: dict[dt.date, float], limit: float, until: dt.date) -> list[tuple[Any, ...]]:
    """A row for each day from the first on."""
    rows: list[tuple[Any, ...]] = []
    total = 0.0
    day = min(days, default=until)
    while day <= until and len(rows) < _LONGEST:
        total += days.get(day, 0.0)
        rows.append((of, day, days.get(day, 0.0), total, limit, "spent"))
        day += _DAY
    return rows


def _expected(
    paid: Sequence[tuple[dt.datetime, float, bool]], limit: Loss, now: dt.datetime
) -> tuple[list[tuple[Any, ...]], str, dt.date | None]:
    """Of a budget without a schedule: as in the last days, on average, but for what is paid once for many periods."""
    today, most = now.date(), _size(limit)
    rows = _days("budget", _by_day([(when, size) for when, size, _ in paid]), most, today) if paid else []
    often = _by_day([(when, size) for when, size, once in paid if not once])
    spent, recent = (rows[-1][3] if rows else 0.0), rows[-_RECENT:]
    mean = sum(often.get(row[1], 0.0) for row in recent) / len(recent) if recent else 0.0
    sign = "ε" if limit.exact_rho is None else "ρ"
    left = most - spent
    said = f"budget: {sign} = {spent:.4g} of {most:.4g} spent, {left:.4g} left"
    if not mean:
        return rows, f"{said}; nothing was spent bit by bit in the last days.", None
    number = int(left / mean + 1e-9)
    for ahead in range(1, min(number, _LONGEST) + 1):
        rows.append(("budget", today + ahead * _DAY, mean, spent + ahead * mean, most, "expected"))
    if not number:
        return rows, f"{said}; {mean:.4g} was spent a day, so it does not last another day.", today
    over = f"the mean of the last {len(recent)} days" if len(recent) > 1 else "as on the first day"
    pace = f"at {mean:.4g} a day, {over}"
    if number > _LONGEST:
        return rows, f"{said}; {pace}, it lasts more than ten years.", None
    last = today + number * _DAY
    return rows, f"{said}; {pace}, it lasts until {last}.", last


def _planned(
    opened: Entry, lines: Sequence[Entry], now: dt.datetime
) -> tuple[list[tuple[Any, ...]], str, dt.date | None]:
    """Of an allowance: a part for each night that is to come."""
    pace, of = Pace.of(opened), opened.name or ""
    losses = losses_of(list(lines))
    paid = [(line.when, _size(loss)) for line, (_, loss) in zip(lines, losses, strict=True)]
    most, share, night = _size(pace.limit), _size(pace.share), pace.night(now)
    rows = _days(of, _by_day(paid), most, now.date()) if paid else []
    total = sum(size for _, size in paid)
    first = max(night + 1, 0)
    for ahead in range(first, min(pace.nights, first + _LONGEST)):
        total += share
        rows.append((of, pace.begins(ahead).date(), share, total, most, "planned"))
    last = pace.begins(pace.nights - 1).date()
    left, tonight = max(pace.nights - max(night, 0), 0), pace.left(losses, night)
    words = (
        f"{of}: {pace.nights} nights from {pace.begins(0).date()} to {last}, {pace.share} each; {left} nights "
        f"are left, and {tonight} of this one."
    )
    return rows, words, last
