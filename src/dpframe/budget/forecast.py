"""How long a budget lasts: the loss that was spent on each day, and the loss that is planned or expected for later."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import polars as pl

from dpframe.budget import account
from dpframe.budget.account import Budget
from dpframe.budget.allowance import Record
from dpframe.budget.entries import Entry, loss_of, price_of
from dpframe.budget.losses import Loss
from dpframe.budget.verbs import offered, registered
from dpframe.safe_text import visible

_DAY = dt.timedelta(days=1)
_LONGEST = 3660  # the longest forecast (days)
_RECENT = 30  # the number of last days over which spending is averaged
_DATE = re.compile(r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
SCHEMA = {
    "of": pl.String,
    "day": pl.Date,
    "spent": pl.Float64,
    "total": pl.Float64,
    "limit": pl.Float64,
    "kind": pl.String,
}


class Payment(NamedTuple):
    """A charge: its time, its part of the limit, whether it pays once for many periods, and its name."""

    when: dt.datetime
    size: float
    once: bool
    name: str | None


@dataclass(frozen=True, repr=False)
class Forecast:
    """How long a budget and its allowances last.

    `table` has a row for each day: `of` ("budget", or the name of an allowance), `spent` on that day and in `total` (ε
    or ρ), the `limit`, and the `kind`: "spent", "planned" by an allowance, or "expected" by the mean of the last days.
    `words` has a sentence for each. `lasts` has the last day that is paid for, or None if there is no end within ten
    years.
    """

    table: pl.DataFrame
    words: tuple[str, ...]
    lasts: dict[str, dt.date | None]

    def plot(self) -> Any:
        """A chart (Altair) of the spent and the expected loss, day by day, up to the limit."""
        return registered("forecast chart")(self)

    def __repr__(self) -> str:
        return "\n".join(map(visible, self.words))

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self.words)


def _size(loss: Loss) -> float:
    """ε or ρ as a float."""
    return float(loss.exact_epsilon if loss.exact_rho is None else loss.exact_rho)


@offered("forecast")
def forecast(budget: Budget) -> Forecast:
    """The forecast of a budget; see `Budget.forecast`."""
    limit, at = budget.limit, account.now()
    charged: list[tuple[dt.datetime, Loss, bool, str | None]] = []
    openings: list[Entry] = []
    under: dict[int, list[Entry]] = {}
    for entry in budget.one_by_one():
        if entry.is_charge:
            charged.append((entry.when, loss_of(entry.body["loss"]), entry.opens is not None, entry.name))
        if entry.opens is not None:
            openings.append(entry)
        if entry.about is not None and entry.is_member_of(entry.about):
            under.setdefault(entry.about, []).append(entry)
    sizes = budget.sizes([loss for _, loss, _, _ in charged])
    paid = [Payment(when, size, once, name) for (when, _, once, name), size in zip(charged, sizes, strict=True)]
    rows, words, last = _expected(paid, limit, at)
    lasts = {"budget": last}
    sentences = [words]
    for opening in openings:
        lines = under.get(opening.number, [])
        if opening.allowance is not None:
            more, words, last = _planned(opening, lines, at)
            rows += more
            lasts[opening.name or ""] = last
        else:
            words = f"{opening.name}: {price_of(opening.body)} paid for all of its periods, {len(lines)} added."
        sentences.append(words)
    return Forecast(pl.DataFrame(rows, SCHEMA, orient="row"), tuple(sentences), lasts)


def _by_day(payments: Sequence[tuple[dt.datetime, float]]) -> dict[dt.date, float]:
    return _by_date((when.date(), size) for when, size in payments)


def _by_date(payments: Iterable[tuple[dt.date, float]]) -> dict[dt.date, float]:
    days: dict[dt.date, float] = {}
    for day, size in payments:
        days[day] = days.get(day, 0.0) + size
    return days


def _days(of: str, days: dict[dt.date, float], limit: float, until: dt.date) -> list[tuple[Any, ...]]:
    """A row for each day, from the first day with a payment until `until`."""
    rows: list[tuple[Any, ...]] = []
    total = 0.0
    day = min(days, default=until)
    while day <= until and len(rows) < _LONGEST:
        total += days.get(day, 0.0)
        rows.append((of, day, days.get(day, 0.0), total, limit, "spent"))
        day += _DAY
    return rows


def _expected(
    payments: Sequence[Payment], limit: Loss, now: dt.datetime
) -> tuple[list[tuple[Any, ...]], str, dt.date | None]:
    """Rows and sentence for a budget without a schedule: spending goes on at the mean of the last days.

    Charges that pay once for many periods are left out of the mean.
    """
    today, most = now.date(), _size(limit)
    rows = _days("budget", _by_day([(paid.when, paid.size) for paid in payments]), most, today) if payments else []
    total = rows[-1][3] if rows else 0.0
    mean, over = _pace([paid for paid in payments if not paid.once], today)
    sign = "ε" if limit.exact_rho is None else "ρ"
    remaining = most - total
    words = f"budget: {sign} = {total:.4g} of {most:.4g} spent, {remaining:.4g} left"
    if not mean:
        return rows, f"{words}; there were no regular charges in the last days.", None
    number = int(remaining / mean + 1e-9)
    for ahead in range(1, min(number, _LONGEST) + 1):
        rows.append(("budget", today + ahead * _DAY, mean, total + ahead * mean, most, "expected"))
    if not number:
        return rows, f"{words}; {mean:.4g} was spent a day, so it does not last another day.", today
    pace = f"at {mean:.4g} a day, {over}"
    if number > _LONGEST:
        return rows, f"{words}; {pace}, it lasts more than ten years.", None
    last = today + number * _DAY
    return rows, f"{words}; {pace}, it lasts until {last}.", last


def _pace(payments: Sequence[Payment], today: dt.date) -> tuple[float, str]:
    """What was spent on a day, as the mean of the last days, in words.

    If each release has the date of its rows in its name, such as "visits 2026-11-27", the days are these: a job that
    made up for thirty nights in one morning spent what thirty nights cost.
    """
    named = [_dated(paid.name) for paid in payments]
    known = [day for day in named if day is not None]
    if payments and len(known) == len(payments):
        days, until, of = _by_date(zip(known, (paid.size for paid in payments), strict=True)), max(known), "named days"
    else:
        days, until, of = _by_day([(paid.when, paid.size) for paid in payments]), today, "days"
    if not days:
        return 0.0, ""
    first = max(min(days), until - (_RECENT - 1) * _DAY)
    number = (until - first).days + 1
    mean = sum(size for day, size in days.items() if first <= day <= until) / number
    return (
        mean,
        f"the mean of the last {number} {of}"
        if number > 1
        else f"as on the {'first' if of == 'days' else 'named'} day",
    )


def _dated(name: str | None) -> dt.date | None:
    """The one date in a name, if there is one."""
    texts = _DATE.findall(name or "")
    try:
        return dt.date.fromisoformat(texts[0]) if len(texts) == 1 else None
    except ValueError:
        return None


def _planned(
    opening: Entry, lines: Sequence[Entry], now: dt.datetime
) -> tuple[list[tuple[Any, ...]], str, dt.date | None]:
    """Rows and sentence for an allowance: each later night spends its share."""
    record, of = Record(opening, lines), opening.name or ""
    pace = record.pace
    paid = [line for line in lines if line.is_charge and not line.gives]
    payments = [(line.when, _size(loss)) for line, (_, loss) in zip(paid, record.releases, strict=True)]
    most, share, night = _size(record.limit), _size(pace.share), pace.night(now)
    rows = _days(of, _by_day(payments), most, now.date()) if payments else []
    if record.closed is not None:
        return rows, f"{of}: closed on {record.closed.date()}, {record.spent} spent.", None
    if pace.endless:
        return rows, f"{of}: {record.limit}, of which {record.left(night)} is left.", None
    total = sum(size for _, size in payments)
    first = max(night + 1, 0)
    for ahead in range(first, min(pace.nights, first + _LONGEST)):
        total += share
        rows.append((of, pace.day(ahead), share, total, most, "planned"))
    last = pace.day(pace.nights - 1)
    nights_left, tonight = max(pace.nights - max(night, 0), 0), record.left(night)
    words = (
        f"{of}: {pace.nights} {pace.word}s from {pace.day(0)} to {last}, {pace.share} each; {nights_left} {pace.word}s "
        f"are left, and {tonight} of this {pace.word}."
    )
    return rows, words, last
