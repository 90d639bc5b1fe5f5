"""Forecasts of a budget: the loss that was spent on each day, and the loss that is
planned or expected for later.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, TypeVar

import polars as pl

from dpframe.budget import account
from dpframe.budget.allowance.pace import AllowanceRecord
from dpframe.budget.entries import Entry, loss_of, price_of, readable
from dpframe.budget.losses import Loss
from dpframe.budget.periods_of_time import NamedPeriod
from dpframe.safe_text import visible
from dpframe.usage import declared

_DAY = dt.timedelta(days=1)
_LONGEST = 3660  # the longest forecast (days)
_RECENT = 30  # the number of last days, or named periods, over which spending is averaged
SCHEMA = {
    "of": pl.String,
    "day": pl.Date,
    "spent": pl.Float64,
    "total": pl.Float64,
    "limit": pl.Float64,
    "kind": pl.String,
}


class Payment(NamedTuple):
    """A charge: its time, its part of the limit, its name, and `once`:
    whether it is no regular spending.

    It pays once for many periods, was itself paid in advance, was counted as lost with a copy, or
    is a move of parts: what a closed part returns to the budget is a negative one.
    """

    when: dt.datetime
    size: float
    once: bool
    name: str | None


@dataclass(frozen=True, repr=False)
class Forecast:
    """Forecast of a budget and its allowances: how long they last.

    `table` has a row for each day: `of` ("budget", or the name of an allowance), `spent` on that
    day and in `total` (ε or ρ; less what closed allowances returned), the `limit`, and the `kind`:
    "spent", "planned" by an allowance, or "expected" by the mean of the last days. `words` has a
    sentence for each. `lasts` has the last day that is paid for, or None if there is no end within
    ten years.
    """

    table: pl.DataFrame
    words: tuple[str, ...]
    lasts: dict[str, dt.date | None]

    @declared
    def plot(self) -> Any:
        """A chart (Altair) of the spent and the expected loss, day by day, up to the limit."""

    def __repr__(self) -> str:
        return "\n".join(map(visible, self.words))

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in self.words)


def forecast(budget: account.BudgetAccount) -> Forecast:
    """The forecast of a budget; see `Budget.forecast`."""
    limit, at = budget.limit, account.now()
    charged: list[tuple[dt.datetime, Loss, bool, str | None]] = []
    openings: list[Entry] = []
    under: dict[int, list[Entry]] = {}
    payers: dict[int, int] = {}  # the allowance of each series that one paid for
    with readable(budget.name):
        for entry in budget.one_by_one():
            if entry.is_charge:
                once = entry.opens is not None or entry.about is not None or "adopted" in entry.body
                charged.append((entry.when, loss_of(entry.body["loss"]), once, entry.name))
            if entry.is_transfer:  # what a closed part returned is less than nothing
                charged.append((entry.when, loss_of(entry.body["loss"]), True, None))
            if entry.opens is not None:
                openings.append(entry)
                payers |= {} if entry.about is None else {entry.number: entry.about}
            if entry.about is not None and entry.is_member_of(entry.about):
                under.setdefault(entry.about, []).append(entry)
                if entry.about in payers:  # a period of a series that an allowance paid for
                    under.setdefault(payers[entry.about], []).append(entry)
    sizes = budget.sizes([loss for _, loss, _, _ in charged])
    paid = [
        Payment(when, size, once, name)
        for (when, _, once, name), size in zip(charged, sizes, strict=True)
    ]
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
            price = opening.part or price_of(opening.body)
            words = f"{opening.name}: {price} paid for all of its periods, {len(lines)} added."
        sentences.append(words)
    return Forecast(pl.DataFrame(rows, SCHEMA, orient="row"), tuple(sentences), lasts)


_Key = TypeVar("_Key")


def _by_day(payments: Sequence[tuple[dt.datetime, float]]) -> dict[dt.date, float]:
    return _by_date((when.date(), size) for when, size in payments)


def _by_date(payments: Iterable[tuple[_Key, float]]) -> dict[_Key, float]:
    days: dict[_Key, float] = {}
    for day, size in payments:
        days[day] = days.get(day, 0.0) + size
    return days


def _days(
    of: str, days: dict[dt.date, float], limit: float, until: dt.date
) -> list[tuple[Any, ...]]:
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
    """Rows and sentence for a budget without a schedule:
    spending goes on at the mean of the last days.

    Charges that are no regular spending are left out of the mean, see `Payment`.
    """
    today, most = now.date(), float(limit.exact_size)
    rows = (
        _days("budget", _by_day([(paid.when, paid.size) for paid in payments]), most, today)
        if payments
        else []
    )
    total = rows[-1][3] if rows else 0.0
    pace = _pace([paid for paid in payments if not paid.once], today)
    sign = "ε" if limit.exact_rho is None else "ρ"
    remaining = most - total
    words = f"budget: {sign} = {total:.4g} of {most:.4g} spent, {remaining:.4g} left"
    if pace is None:
        return rows, f"{words}; there were no regular charges in the last days.", None
    number, word = int(remaining / pace.mean + 1e-9), pace.until.word
    for day, size in pace.ahead(min(number, _LONGEST), today).items():
        total += size
        rows.append(("budget", day, size, total, most, "expected"))
    if not number:
        sentence = (
            f"{words}; {pace.mean:.4g} was spent {_A[word]}, so it does not last another {word}."
        )
        return rows, sentence, pace.day(0, today)
    said = f"at {pace.mean:.4g} {_A[word]}, {pace.words}"
    last = pace.day(number, today)
    if last is None:
        return rows, f"{words}; {said}, it lasts more than ten years.", None
    more = "" if word == "day" else f"{number:,} more {word}{'s' if number > 1 else ''}, "
    return rows, f"{words}; {said}, it lasts {more}until {last}.", last


_A = {"hour": "an hour"} | {
    word: f"a {word}" for word in ("day", "week", "month", "quarter", "year")
}


@dataclass(frozen=True)
class _Pace:
    """The loss of a period, as the mean of the last ones, in words, and the last of these."""

    mean: float
    words: str
    until: NamedPeriod

    def day(self, number: int, today: dt.date) -> dt.date | None:
        """The last day of a later period; None more than ten years ahead of today."""
        try:
            day = NamedPeriod(self.until.word, self.until.number + number).last
        except (OverflowError, ValueError):
            return None
        return None if (day - today).days > _LONGEST else day

    def ahead(self, number: int, today: dt.date) -> dict[dt.date, float]:
        """The expected loss of each day of the next periods.
        A period that is over is paid for tomorrow.
        """
        days: dict[dt.date, float] = {}
        for later in range(1, number + 1):
            day = self.day(later, today)
            if day is None:
                break
            day = max(day, today + _DAY)
            days[day] = days.get(day, 0.0) + self.mean
        return days


def _pace(payments: Sequence[Payment], today: dt.date) -> _Pace | None:
    """The pace of spending; None without payments in the last days.

    If most releases have the period of their rows in their name, such as "visits 2026-11-27" or
    "visits 2026-03", these periods are counted: a job that made up for twelve months in one morning
    spent what twelve months cost, and goes on with the month after them. What else was paid since
    the first of them was charged is spread over them.
    """
    named = [NamedPeriod.of(paid.name) for paid in payments]
    word, times = next(
        iter(Counter(period.word for period in named if period is not None).most_common(1)),
        ("day", 0),
    )
    of, others = "", list[Payment]()
    if 2 * times > len(payments):
        of, known = "named ", []
        for period, paid in zip(named, payments, strict=True):
            if period is not None and period.word == word:
                known.append((period.number, paid))
            else:
                others.append(paid)
        sizes = _by_date((place, paid.size) for place, paid in known)
        until = max(sizes)
        begun = min(paid.when for place, paid in known if place > until - _RECENT)
        others = [paid for paid in others if paid.when >= begun]
    else:
        word, until = "day", today.toordinal()
        sizes = _by_date((paid.when.date().toordinal(), paid.size) for paid in payments)
    if not sizes:
        return None
    first = max(min(sizes), until - (_RECENT - 1))
    number = until - first + 1
    mean = (
        sum(size for period, size in sizes.items() if first <= period <= until)
        + sum(paid.size for paid in others)
    ) / number
    if not mean:
        return None
    alone = (
        f"as on the {'named' if of else 'first'} day"
        if word == "day"
        else f"as in the named {word}"
    )
    said = f"the mean of the last {number} {of}{word}s" if number > 1 else alone
    return _Pace(mean, said, NamedPeriod(word, until))


def _planned(
    opening: Entry, lines: Sequence[Entry], now: dt.datetime
) -> tuple[list[tuple[Any, ...]], str, dt.date | None]:
    """Rows and sentence for an allowance: each later night spends its share."""
    record, of = AllowanceRecord.of(opening, lines), opening.name or ""
    pace = record.pace
    paid = [line for line in lines if line.is_charge and not line.gives]
    payments = [
        (line.when, float(loss.exact_size))
        for line, (_, loss) in zip(paid, record.releases, strict=True)
    ]
    most, share, night = (
        float(record.limit.exact_size),
        float(pace.share.exact_size),
        pace.night(now),
    )
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
        f"{of}: {pace.nights} {pace.word}s from {pace.day(0)} to {last}, {pace.share} each; "
        f"{nights_left} {pace.word}s are left, and {tonight} of this {pace.word}."
    )
    return rows, words, last
