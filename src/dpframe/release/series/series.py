"""A series: totals of periods that follow one another, kept for years, with running totals and windows."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dpframe.budget import Budget, Entry, Loss, Receipt, Terms
from dpframe.engine import sealed
from dpframe.errors import InvalidArgument, LedgerUnavailable, UnsupportedOperation
from dpframe.plan import Question, check_choice
from dpframe.release.accuracy import check_alpha
from dpframe.release.failing import recorded
from dpframe.release.run import subject_of, told
from dpframe.release.series.answer import Measured, measured, packed_blocks, unpacked_blocks
from dpframe.release.series.calendar import Calendar
from dpframe.release.series.estimates import Estimates, running, windows
from dpframe.release.series.noise import Person, SeriesNoise
from dpframe.release.series.numbers import SeriesNumbers
from dpframe.release.series.progress import Block, Overtaken, Place, Progress
from dpframe.release.series.questions import (
    Asked,
    check_enforced,
    check_kind,
    check_same,
    described_question,
    read_query,
    validated,
)
from dpframe.release.series.settings import Settings, kept, opening_plan

__all__ = ["Series"]

_TURNS = 100  # attempts to add a period while others add theirs
_LOG = logging.getLogger("dpframe")


@dataclass(frozen=True)
class _Opened:
    """A series as it is in the ledger: the charge that paid for it, and what was kept with it."""

    entry: Entry
    noise: SeriesNoise
    calendar: Calendar

    @classmethod
    def of(cls, entry: Entry) -> _Opened:
        said, plan = entry.body["opens"], entry.body["plan"]["series"]
        calendar = Calendar.read(plan["every"], said["start"])
        return cls(entry, SeriesNoise.from_json(said), calendar)

    @property
    def said(self) -> Any:
        return self.entry.body["opens"]

    @cached_property
    def settings(self) -> Settings:
        """As it was typed."""
        return Settings.from_plan(self.entry.body["plan"]["series"])


class Series:
    """Noisy totals of each period, of running totals and of windows, consistent with one another.

    Made by `budget.series(...)`. `add` measures a period; `total`, `window` and `table` read what was published, and
    cost nothing. What it knows is in the ledger: the noisy totals that were published, and nothing else.
    """

    def __init__(self, budget: Budget, name: str, settings: Settings | None, start: object, on: str | None) -> None:
        self._budget, self._name, self._settings, self._start, self._on = budget, name, settings, start, on
        self._read: dict[int, Measured] = {}  # what was published, by the number of its charge: it never changes

    # Adding

    def add(self, query: Any, period: object, *, on_pending: str = "refuse") -> SeriesNumbers:
        """Measure a period, and the blocks that end with it; for a period that was added before, the stored answer.

        Input:  query: about the rows of this period, or about all rows where `on=` names the column that says in which
                period a row is, or a function that gives the query for a period, as text: `lambda night: ...`. With
                one of the latter two, the rows of earlier periods are read again, see `reads`; period: when it begins,
                "2026-11-21"; on_pending: "retry" measures a period again whose answer was lost, and pays for that
        Output: the number of this period, as it is estimated now
        Bound:  over the whole horizon, the loss that the series was opened with, which is charged when its first
                period is added: see `explain`
        Errors: those of a release, which spend nothing; ReleasePending where the period was charged and never stored
        """
        check_choice(on_pending, ("refuse", "retry"), "on_pending")
        asked = self._asked(query)
        opened = self._opened_for(asked, period)
        number = opened.calendar.number(period)
        opened.noise.shapes.part_of(number)
        for _ in range(_TURNS):
            try:
                receipt = self._added(opened, asked, number, retry=on_pending == "retry")
            except Overtaken:
                continue
            return self._shown(opened, number, receipt)
        raise LedgerUnavailable(f"{self._name!r}: others add periods all the time. Nothing was spent. Try again.")

    def _asked(self, query: Any) -> Asked:
        return Asked(query, self._on, lambda given: read_query(given, self._budget))

    def reads(self, period: object) -> list[str]:
        """The periods whose rows are read when a period is added now: itself, and those in blocks that end with it.

        With `enforce`, also all that were added before, for whose rows they have.
        """
        opened = self._opened()
        number, progress = opened.calendar.number(period), self._progress(opened)
        blocks = progress.measured_by(number, opened.noise.shapes)
        read = {one for block in blocks for one in block.periods}
        read |= {one for period in list(read) for one in progress.before(period)} if opened.settings.enforce else set()
        return [opened.calendar.label(one) for one in sorted(read)]

    def _opened_for(self, asked: Asked, period: object) -> _Opened:
        """The series in the ledger, opened with its first period. Errors: those of a release."""
        entry = self._entry()
        settings = self._settings if self._settings is not None else Settings.from_plan(_series_plan(entry, self._name))
        start = entry.body["opens"]["start"] if entry is not None else period if self._start is None else self._start
        calendar = Calendar.read(settings.every, start)
        if entry is not None and self._start is not None and Calendar.read(settings.every, self._start) != calendar:
            raise InvalidArgument(f"start: series {self._name!r} began with {calendar.label(0)}.")
        question = asked.of(calendar, calendar.number(period))
        check_kind(question)
        if settings.enforce:
            check_enforced(question, alone=asked.alone)
        validated(question)
        plan = opening_plan(settings, question, alone=asked.alone)
        if entry is not None and entry.body["plan"] == plan:
            return _Opened.of(entry)
        loss, said = kept(self._name, settings, question, self._budget, calendar.start, alone=asked.alone)
        query = f"series {self._name!r}: every {settings.every}"
        opened = self._budget.open(loss, subject_of(question), query, name=_opening(self._name), plan=plan, opens=said)
        _LOG.info("series %r is open: %s for all of its periods", self._name, loss)
        return _Opened.of(opened)

    def _added(self, opened: _Opened, asked: Asked, number: int, *, retry: bool) -> Receipt:
        """Charge a period and measure it. Errors: Overtaken where others were faster; those of a release."""
        progress, label = self._progress(opened), opened.calendar.label(number)
        blocks = progress.measured_by(number, opened.noise.shapes)
        first = asked.of(opened.calendar, number)
        questions = {number: first}
        if number not in progress.added or retry:
            questions = self._questions(opened, asked, progress, blocks, {number: first})
        inside = f" and {len(blocks) - 1} blocks that end with it" if len(blocks) > 1 else ""
        receipt = self._budget.charge(
            Loss.none(in_rho=self._budget.terms is Terms.RHO),
            subject_of(first),
            f"{self._name}: {label}{inside}",
            name=f"{self._name} {label}",
            plan={"series": self._name, "period": label},
            retry=retry,
            within=self._place(opened, progress, number, first, blocks),
        )
        if receipt.stored is not None:
            return receipt
        answer = recorded(
            self._budget, receipt, lambda: sealed(lambda: measured(questions.__getitem__, blocks, opened.noise))
        )
        said = {"period": label, "drawn": dt.datetime.now(dt.UTC).isoformat()}
        self._budget.store(receipt, packed_blocks(answer), {"series": self._name, **said})
        return receipt

    def _place(
        self, opened: _Opened, progress: Progress, number: int, question: Question, blocks: tuple[Block, ...]
    ) -> Place:
        """The place of a period among those that were added, and the blocks that are measured with it."""
        settings = opened.settings
        sizes = [(block.part, block.level, len(block.periods)) for block in blocks]

        def cost() -> Loss:
            person = Person.of(question, settings.periods)
            return opened.noise.again(person, sizes, settings.price(self._budget.terms))

        return Place(opened.entry.number, progress.line, number, blocks, cost)

    def _questions(
        self, opened: _Opened, asked: Asked, progress: Progress, blocks: tuple[Block, ...], first: dict[int, Question]
    ) -> dict[int, Question]:
        """The questions of the periods of some blocks; `first` is that of the period that is added.

        Where `unit_periods` is enforced, each is of the units that have few periods before it.
        Errors: ReleaseMismatch, those of a query
        """
        (number,), inside = first, {one for block in blocks for one in block.periods}
        settings = opened.settings
        before = {one: progress.before(one) for one in inside} if settings.enforce else {}
        read = inside | {e for earlier in before.values() for e in earlier}
        each = first | self._earlier(opened, asked, read - {number}, first[number], inside)
        made = {one: each[one] for one in inside}
        for one, earlier in before.items():
            made[one] = asked.first(opened.calendar, each[one], {e: each[e] for e in earlier}, settings.periods)
        if before:
            validated(made[number])
        return made

    def _earlier(
        self, opened: _Opened, asked: Asked, periods: set[int], first: Question, measured: set[int]
    ) -> dict[int, Question]:
        """The questions of earlier periods, which are like the first; those that are measured are validated.

        Errors: ReleaseMismatch, those of a query
        """
        made, described = {}, described_question(first)
        for one in sorted(periods):
            made[one] = asked.of(opened.calendar, one)
            if callable(asked.query):
                check_same(described, made[one], opened.calendar.label(one))
                if one in measured:
                    validated(made[one])
        return made

    def _shown(self, opened: _Opened, number: int, receipt: Receipt) -> SeriesNumbers:
        """The number of a period that was added."""
        label = opened.calendar.label(number)
        stored = told(receipt, f"{self._name} {label}").get("stored", "")
        if not stored and not receipt.again:
            _LOG.info("%s %s: added, nothing charged beside the price of the series", self._name, label)
        estimates = self._estimates(opened)
        weights = (np.array(estimates.periods)[None] == number).astype(np.float64)
        return self._numbers(opened, estimates, f"{self._name}, {label}", weights, cost=receipt.loss, stored=stored)

    # Reading

    def total(self, alpha: float = 0.05) -> SeriesNumbers:
        """The running total of all periods that were added, with its error. Free."""
        opened = self._opened()
        estimates = self._estimates(opened)
        number = len(estimates.periods)
        return self._numbers(opened, estimates, f"{self._name}: total of {number} periods", np.ones((1, number)), alpha)

    def window(self, length: str, alpha: float = 0.05) -> SeriesNumbers:
        """The total of the last periods, such as "7d", up to the latest that was added, with its error. Free."""
        opened = self._opened()
        number, estimates = opened.calendar.window(length), self._estimates(opened)
        title = f"{self._name}: {length} up to {opened.calendar.label(estimates.periods[-1])}"
        return self._numbers(opened, estimates, title, windows(estimates.periods, number)[-1:], alpha)

    def table(self, window: str | Sequence[str] = (), alpha: float = 0.05) -> SeriesNumbers:
        """A row for each period and group: its number, the running total, windows such as "7d"; with errors. Free.

        All follow from the same estimates, so numbers of periods add up to totals and windows.
        """
        if not isinstance(window, (str, list, tuple)):
            raise InvalidArgument("series.table: window= is a length such as '7d', or a list of them.")
        opened, lengths = self._opened(), [window] if isinstance(window, str) else list(window)
        estimates, columns = self._estimates(opened), {}
        columns[""] = np.eye(len(estimates.periods))
        columns["_total"] = running(estimates.periods)
        for length in lengths:
            columns[f"_{length}"] = windows(estimates.periods, opened.calendar.window(length))
        labels = [opened.calendar.moment(period) for period in estimates.periods]
        parts = [
            self._long(opened, estimates, weights, alpha, suffix, labels if not suffix else None)
            for suffix, weights in columns.items()
        ]
        width = -2 * len(opened.said["outputs"])
        long = pl.concat([parts[0], *(part.select(part.columns[width:]) for part in parts[1:])], how="horizontal")
        return self._presented(
            opened, f"{self._name}: {len(labels)} periods", long, _period=long.columns[0], _alpha=alpha
        )

    def explain(self, query: Any = None, period: object = None) -> str:
        """The derivation: what one unit can change in a period, and what is promised over the whole horizon.

        Input:  query and period, as in `add`, for a series that has no period yet
        """
        if query is None:
            said = self._opened().said
            return "\n\n".join([said["derivation"], *said["words"]])
        settings = self._settings
        if settings is None or period is None:
            raise InvalidArgument("series.explain(query, period): as in add, and with the price of the series.")
        asked = self._asked(query)
        calendar = Calendar.read(settings.every, period if self._start is None else self._start)
        question = asked.of(calendar, calendar.number(period))
        check_kind(question)
        if settings.enforce:
            check_enforced(question, alone=asked.alone)
        _, said = kept(self._name, settings, question, self._budget, calendar.start, alone=asked.alone)
        return "\n\n".join([said["derivation"], *said["words"]])

    # What is in the ledger

    def _entry(self) -> Entry | None:
        entries = self._budget.entries()
        return next((e for e in entries if e.kind == "charge" and e.name == _opening(self._name)), None)

    def _opened(self) -> _Opened:
        entry = self._entry()
        if entry is None:
            raise UnsupportedOperation(f"Series {self._name!r} has no period yet: series.add(query, period='...').")
        return _Opened.of(entry)

    def _lines(self, opened: _Opened) -> list[Entry]:
        return [e for e in self._budget.entries() if e.kind == "charge" and e.about == opened.entry.number]

    def _progress(self, opened: _Opened) -> Progress:
        return Progress.of(self._lines(opened))

    def _estimates(self, opened: _Opened) -> Estimates:
        lines, tables = self._lines(opened), self._budget.tables(opened.entry.number)
        self._read |= {number: unpacked_blocks(data) for number, data in tables.items() if number not in self._read}
        answers = {e.body["within"]["period"]: self._read[e.number] for e in lines if e.number in tables}
        if not answers:
            raise UnsupportedOperation(f"Series {self._name!r} has no period that was stored yet.")
        return Estimates(Progress.of(lines).blocks, answers, opened.noise)

    # As tables

    def _long(
        self,
        opened: _Opened,
        estimates: Estimates,
        weights: np.ndarray,
        alpha: float,
        suffix: str = "",
        labels: Sequence[dt.datetime] | None = None,
    ) -> pl.DataFrame:
        """Weighted sums of the periods' estimates: a row for each sum and group."""
        keys = next(iter(estimates.answers.values())).keys
        groups = max(keys.height, 1)
        parts: list[pl.DataFrame] = []
        if labels is not None:
            parts.append(_column(opened.calendar, labels, keys.columns, groups))
        if keys.height:
            parts.append(pl.concat([keys] * len(weights)))
        check_alpha(alpha)
        for output in opened.said["outputs"]:
            numerator, denominator = map(int, f"{output['unit']}/1".split("/")[:2])
            unit = numerator / denominator
            values = weights @ estimates.each(output["total"]) * unit
            deviations = estimates.deviations(output["total"], weights) * unit
            errors = np.repeat([estimates.error(float(one), alpha) for one in deviations], groups)
            name = f"{output['name']}{suffix}"
            parts.append(pl.DataFrame({name: values.ravel(), f"{name}_error": errors}))
        return pl.concat(parts, how="horizontal")

    def _numbers(
        self,
        opened: _Opened,
        estimates: Estimates,
        title: str,
        weights: np.ndarray,
        alpha: float = 0.05,
        **more: Any,
    ) -> SeriesNumbers:
        return self._presented(opened, title, self._long(opened, estimates, weights, alpha), **more)

    def _presented(self, opened: _Opened, title: str, long: pl.DataFrame, **more: Any) -> SeriesNumbers:
        said = opened.said
        names = tuple(output["name"] for output in said["outputs"])
        return SeriesNumbers(title, said["statement"], long, said["kind"], names, **more)

    def __repr__(self) -> str:
        entry = self._entry()
        if entry is None:
            return f"Series {self._name!r}: no period yet."
        opened = _Opened.of(entry)
        return f"Series {self._name!r}: {len(self._progress(opened).added)} periods. " + " ".join(opened.said["words"])


def _column(calendar: Calendar, begins: Sequence[dt.datetime], keys: Sequence[str], groups: int) -> pl.DataFrame:
    """The column of periods: days, or times where they begin at other times than midnight."""
    repeated = [moment for moment in begins for _ in range(groups)]
    days = calendar.every % dt.timedelta(days=1) == dt.timedelta(0) and calendar.start.time() == dt.time()
    moments = pl.Series("period" if "period" not in keys else "period_", repeated, dtype=pl.Datetime("us"))
    return (moments.cast(pl.Date) if days else moments).to_frame()


def _opening(name: str) -> str:
    """What the charge that pays for a series is called."""
    return f"series {name}"


def _series_plan(entry: Entry | None, name: str) -> Any:
    if entry is None:
        raise InvalidArgument(
            f"There is no series {name!r} yet: budget.series({name!r}, every='1d', horizon=365, epsilon=1.0, "
            "unit_periods=1) opens it."
        )
    return entry.body["plan"]["series"]
