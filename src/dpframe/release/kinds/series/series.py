"""A series: noisy totals of consecutive periods, with running totals and windows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dpframe.budget import Allowance, Budget, Entry, Loss, Receipt, Terms
from dpframe.errors import (
    InvalidArgument,
    LedgerUnavailable,
    StoredAnswerWarning,
    UnsupportedOperation,
)
from dpframe.fields import Fields
from dpframe.plan import check_names
from dpframe.release.accuracy import check_alpha
from dpframe.release.announced import announce
from dpframe.release.certificate import charged_facts
from dpframe.release.kinds.series.answer import Measured, measured, packed_blocks, unpacked_blocks
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.release.kinds.series.certificate import certified_period
from dpframe.release.kinds.series.estimates import Estimates, running, windows
from dpframe.release.kinds.series.noise import SeriesNoise
from dpframe.release.kinds.series.numbers import SeriesNumbers
from dpframe.release.kinds.series.opening import Night, Opening
from dpframe.release.kinds.series.progress import Overtaken, Progress
from dpframe.release.kinds.series.questions import (
    PeriodQuery,
    check_enforced,
    check_kind,
    read_query,
    validated,
)
from dpframe.release.kinds.series.settings import Settings, bought, kept, opening_plan
from dpframe.release.paying import (
    Naming,
    charged,
    read_pending,
    recorded,
    subject_of,
    told,
    under_policy,
)
from dpframe.release.shown import fixed_words
from dpframe.usage import Hints, body_of, check_flags, warn

_TURNS = 100  # attempts to add a period while other processes add periods


class Series(Hints):
    """Noisy totals of each period, of running totals and of windows, consistent with one another.

    `budget.series(...)` returns it. `add` measures a period. `total`, `window` and `table` read
    published numbers and cost nothing. Its only state are the published noisy totals in the ledger.
    """

    def __init__(
        self,
        budget: Budget | Allowance,
        name: str,
        settings: Settings | None,
        start: object,
        on: str | None,
    ) -> None:
        self._typed = self._budget = budget  # the second one is what pays, once the series is open
        self._name, self._settings, self._start, self._on = name, settings, start, on
        # published answers by the number of their charge; they never change
        self._read: dict[int, Measured] = {}

    # Adding

    def add(self, query: Any, period: object, *, on_pending: str = "refuse") -> SeriesNumbers:
        """Measure a period and the blocks that end with it.
        A period that was added before returns its stored answer.

        Input:  query: a query about the rows of this period; or, if `on=` names the column with the
                time of a row, a query about all rows; or a function from a period (a text) to a
                query: `lambda night: ...`. The latter two read the rows of earlier periods again,
                see `reads`; period: the start of the period, "2026-11-21"; on_pending: "retry"
                measures a period again if its answer was lost, and pays for that beside the series,
                with its whole δ once more: `explain` says how much; also one that may have been
                measured after the copy of the ledger from which the series goes on; "wait" waits
                for another process of this machine that is at work on it, and measures it again if
                that was killed
        Output: the current estimate of the number of this period
        Warns:  StoredAnswerWarning for a stored answer whose rows have another label by now, or no
                label; it says how to correct a period
        Bound:  the loss of the series, for the whole horizon. It is charged when the first period
                is added: see `explain`
        Errors: those of a release, which spend nothing; ReleasePending if the period was charged
                but never stored, or may have been
        """
        pending = read_pending(on_pending)
        night = self._night(self._source(query), period)
        for _ in range(_TURNS):
            try:
                added = self._added(night, pending)
            except Overtaken:
                continue
            return self._shown(night, *added)
        raise LedgerUnavailable(
            f"{self._name!r}: other processes added periods at each of {_TURNS} attempts. Nothing "
            "was spent. Try again."
        )

    def _source(self, query: Any) -> PeriodQuery:
        return PeriodQuery(query, self._on, lambda argument: read_query(argument, self._typed))

    def reads(self, period: object) -> list[str]:
        """The periods whose rows are read if a period is added now:
        itself, and those in blocks that end with it.

        Input:  period: its start, "2026-11-21"

        With `enforce` these are also all periods that were added before, because it counts each
        unit's periods.
        """
        opening = self._opened()
        number, progress = opening.calendar.number(period), self._progress(opening)
        blocks = progress.measured_by(number, opening.noise.shapes)
        periods = {past for block in blocks for past in block.periods}
        if opening.settings.enforce:
            periods |= {past for later in list(periods) for past in progress.before(later)}
        return [opening.calendar.label(past) for past in sorted(periods)]

    def _night(self, source: PeriodQuery, period: object) -> Night:
        """A period with its question, which is held to the noise of the series.
        The first period opens the series.

        Errors: those of a release; ReleaseMismatch
        """
        entry = self._entry()
        settings = (
            self._settings
            if self._settings is not None
            else Settings.from_plan(_series_plan(entry, self._name))
        )
        start = (
            entry.body["opens"]["start"]
            if entry is not None
            else period
            if self._start is None
            else self._start
        )
        calendar = Calendar.read(settings.every, start)
        if (
            entry is not None
            and self._start is not None
            and Calendar.read(settings.every, self._start) != calendar
        ):
            raise InvalidArgument(f"start: series {self._name!r} began with {calendar.label(0)}.")
        question = source.of(calendar, calendar.number(period))
        check_kind(question)
        if settings.enforce:
            check_enforced(question, alone=source.alone)
        validated(question)
        plan = opening_plan(settings, question, alone=source.alone)
        if entry is None or entry.body["plan"] != plan:
            loss, opens = kept(
                self._name, settings, question, self._budget, calendar.start, alone=source.alone
            )
            # refused before it is paid
            SeriesNoise.from_json(opens).shapes.part_of(calendar.number(period))
            query, name = f"series {self._name!r}: every {settings.every}", _opening(self._name)
            files = under_policy([question], self._budget, loss)
            entry = self._budget.open(
                loss, subject_of(question), query, name=name, plan=plan, opens=opens, **files
            )
            receipt = Receipt(
                entry.number, entry.when, loss, self._budget.remaining, spender=entry.spender
            )
            announce(
                "charged", self._budget, receipt, name, f"charged {loss} for all of its periods"
            )
        self._budget = Allowance.paying(self._budget, entry)  # perhaps another process opened it
        opening = Opening.of(entry)
        number, terms = opening.calendar.number(period), self._budget.terms
        opening.noise.shapes.part_of(number)
        paid_for = bought(opening.record, opening.settings, question, terms, alone=source.alone)
        night = Night(opening, source, number, question, paid_for)
        night.hold({number: question})
        return night

    def _added(self, night: Night, pending: Naming) -> tuple[Receipt, Fields]:
        """Charge a period and measure it. Output: the charge, and what is stored with the answer.

        Errors: Overtaken if another process was faster; those of a release
        """
        opening, number = night.opening, night.number
        progress, label = self._progress(opening), opening.calendar.label(number)
        blocks = night.measured(progress)
        readings = [] if number in progress.answered else night.readings(progress, blocks)
        inside = f" and {len(blocks) - 1} blocks that end with it" if len(blocks) > 1 else ""
        receipt = charged(
            self._budget,
            Loss.none(in_rho=self._budget.terms is Terms.RHO),
            subject_of(night.question),
            f"{self._name}: {label}{inside}",
            name=f"{self._name} {label}",
            plan={"series": self._name, "period": label},
            retry=pending.get("retry", False),
            wait=pending.get("wait", False),
            within=night.place(progress, blocks, self._budget),
            **under_policy([night.question], self._budget, Loss.none()),
        )
        if receipt.stored is not None:
            return receipt, receipt.stored.statement

        def answer() -> tuple[None, bytes, Fields]:
            data = packed_blocks(measured(readings, blocks, opening.noise))
            details = {"period": label, "drawn": dt.datetime.now(dt.UTC).isoformat()}
            return (
                None,
                data,
                {
                    "series": self._name,
                    **details,
                    "certificate": self._certified(night, receipt, data),
                },
            )

        questions = [reading.question for reading in readings]
        _, stored = recorded(self._budget, receipt, f"{self._name} {label}", questions, answer)
        return receipt, stored.statement

    def _certified(self, night: Night, receipt: Receipt, data: bytes) -> Fields:
        """The certificate of a period: its ledger entry is that of the charge for
        all periods, its line its own.
        """
        opening, terms = night.opening, self._budget.terms
        cost = opening.settings.price(terms).loss(delta=opening.noise.normal)
        made = certified_period(
            night.question, night.bought, opening.noise, cost, again=receipt.again
        )
        (before,) = self._budget.entries(number=opening.entry.number - 1)
        paid = replace(receipt, number=opening.entry.number, hash=opening.entry.hash)
        paid = replace(paid, previous=before.hash)
        entry = charged_facts(paid, self._budget.accountant, opening.entry.name, data)
        return {**made, **entry, "ledger": {**entry["ledger"], "line": receipt.number}}

    def _shown(self, night: Night, receipt: Receipt, filed: Fields) -> SeriesNumbers:
        """The number of a period that was added. Input: filed: what is stored with its answer.

        Warns:  StoredAnswerWarning where nothing says that its rows are those of a stored answer
        """
        opening, number = night.opening, night.number
        label = opening.calendar.label(number)
        origin = told(self._budget, receipt, f"{self._name} {label}").get("stored", "")
        if origin:
            origin += self._changed(night, receipt)
        estimates = self._estimates(opening)
        weights = (np.array(estimates.periods)[None] == number).astype(np.float64)
        title = f"{self._name}, {label}"
        return self._numbers(
            opening, estimates, title, weights, cost=receipt.loss, stored=origin, _filed=filed
        )

    def _changed(self, night: Night, receipt: Receipt) -> str:
        """What a stored answer says of rows that may be others by now."""
        (kept,) = self._budget.entries(number=receipt.number)
        words = night.changed(kept, self._budget.terms)
        later = (
            [line.name for line in self._budget.history() if line.supersedes == kept.name]
            if words
            else []
        )
        if later:
            return f" {later[-1]!r} has taken the place of this period."
        if words:
            warn(words, StoredAnswerWarning)
        return " Its rows may be others by now." if words else ""

    # Reading

    def total(self, alpha: float = 0.05) -> SeriesNumbers:
        """The running total of all periods that were added, with its error. Free.

        Input:  alpha: the probability that the noise exceeds the error, by default 0.05
        """
        opening = self._opened()
        estimates = self._estimates(opening)
        number = len(estimates.periods)
        return self._numbers(
            opening,
            estimates,
            f"{self._name}: total of {number} periods",
            np.ones((1, number)),
            alpha,
        )

    def window(self, length: str, alpha: float = 0.05) -> SeriesNumbers:
        """The total of the last periods, such as "7d", up to the latest
        added period, with its error. Free.

        Input:  length: of the window, such as "7d"; alpha: as in `total`
        """
        opening = self._opened()
        number, estimates = opening.calendar.window(length), self._estimates(opening)
        title = f"{self._name}: {length} up to {opening.calendar.label(estimates.periods[-1])}"
        weights = windows(estimates.periods, number)[-1:]
        said = opening.calendar.short_windows([length], estimates.periods, latest=True)
        return self._numbers(opening, estimates, title, weights, alpha, said=said)

    def table(self, window: str | Sequence[str] = (), alpha: float = 0.05) -> SeriesNumbers:
        """A row for each period and group: its number, the running total, windows
        such as "7d"; with errors. Free.

        Input:  window: the length of a window, such as "7d", or a list of lengths; alpha: as in
                `total`

        All numbers follow from one set of estimates, so numbers of periods add up to totals and
        windows.
        """
        match window:
            case str():
                lengths = [window]
            case list() | tuple():
                lengths = list(window)
            case _:
                raise InvalidArgument(
                    "series.table: window= is a length such as '7d', or a list of lengths."
                )
        opening = self._opened()
        estimates, columns = self._estimates(opening), {}
        columns[""] = np.eye(len(estimates.periods))
        columns["_total"] = running(estimates.periods)
        for length in lengths:
            columns[f"_{length}"] = windows(estimates.periods, opening.calendar.window(length))
        labels = [opening.calendar.moment(period) for period in estimates.periods]
        parts = [
            self._long(opening, estimates, weights, alpha, suffix, labels if not suffix else None)
            for suffix, weights in columns.items()
        ]
        width = -2 * len(opening.record["outputs"])
        long = pl.concat(
            [parts[0], *(part.select(part.columns[width:]) for part in parts[1:])], how="horizontal"
        )
        title = f"{self._name}: {len(labels)} periods"
        said = opening.calendar.short_windows(lengths, estimates.periods)
        return self._presented(
            opening, title, long, said=said, _period=long.columns[0], _alpha=alpha
        )

    def explain(self, query: Any = None, period: object = None) -> str:
        """The derivation of the sensitivities of a period, and the privacy
        guarantee over the whole horizon.

        Input:  query and period, as in `add`, for a series that has no period yet
        """
        if query is None:
            record = self._opened().record
            return "\n\n".join([record["derivation"], *record["words"]])
        settings = self._settings
        if settings is None or period is None:
            raise InvalidArgument(
                "series.explain(query, period) needs both arguments, as add does, and a series "
                "with its price: budget.series('...', epsilon=1.0, unit_periods=1)."
            )
        source = self._source(query)
        calendar = Calendar.read(settings.every, period if self._start is None else self._start)
        question = source.of(calendar, calendar.number(period))
        check_kind(question)
        if settings.enforce:
            check_enforced(question, alone=source.alone)
        _, record = kept(
            self._name, settings, question, self._budget, calendar.start, alone=source.alone
        )
        return "\n\n".join([record["derivation"], *record["words"]])

    # State in the ledger

    def _entry(self) -> Entry | None:
        entry = next(
            (e for e in self._budget.entries(_opening(self._name)) if e.opens is not None), None
        )
        if entry is not None:
            self._budget = Allowance.paying(self._budget, entry)
        return entry

    def _opened(self) -> Opening:
        entry = self._entry()
        if entry is None:
            raise UnsupportedOperation(
                f"Series {self._name!r} has no period yet. Add one: series.add(query, "
                "period='...'). What it will promise, before that: series.explain(query, "
                "period='...')."
            )
        return Opening.of(entry)

    def _progress(self, opening: Opening) -> Progress:
        return Progress.of(self._budget.entries(under=opening.entry.number), opening.entry.number)

    def _estimates(self, opening: Opening) -> Estimates:
        progress, tables = self._progress(opening), self._budget.tables(opening.entry.number)
        self._read |= {
            number: unpacked_blocks(data)
            for number, data in tables.items()
            if number not in self._read
        }
        answers = {
            period: self._read[line] for line, period in progress.lines.items() if line in tables
        }
        if not answers:
            raise UnsupportedOperation(f"Series {self._name!r} has no stored period yet.")
        return Estimates(progress.blocks, answers, opening.noise)

    # Tables

    def _long(
        self,
        opening: Opening,
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
            parts.append(_column(opening.calendar, labels, keys.columns, groups))
        if keys.height:
            parts.append(pl.concat([keys] * len(weights)))
        check_alpha(alpha)
        for output in opening.record["outputs"]:
            numerator, denominator = map(int, f"{output['unit']}/1".split("/")[:2])
            unit = numerator / denominator
            values = weights @ estimates.each(output["total"]) * unit
            deviations = estimates.deviations(output["total"], weights)
            errors = np.repeat(
                [estimates.error(float(deviation), alpha) * unit for deviation in deviations],
                groups,
            )
            name = f"{output['name']}{suffix}"
            parts.append(pl.DataFrame({name: values.ravel(), f"{name}_error": errors}))
        return pl.concat(parts, how="horizontal")

    def _numbers(
        self,
        opening: Opening,
        estimates: Estimates,
        title: str,
        weights: np.ndarray,
        alpha: float = 0.05,
        **more: Any,
    ) -> SeriesNumbers:
        long = self._long(opening, estimates, weights, alpha)
        return self._presented(opening, title, long, **more)

    def _presented(
        self,
        opening: Opening,
        title: str,
        long: pl.DataFrame,
        said: Sequence[str] = (),
        **more: Any,
    ) -> SeriesNumbers:
        record, statement = opening.record, opening.record["statement"]
        if said:
            statement = {**statement, "beyond": [*statement.get("beyond", []), *said]}
        names = tuple(output["name"] for output in record["outputs"])
        tests = fixed_words(fixed=self._progress(opening).fixed or "test" in statement)
        return SeriesNumbers(title, {**tests, **statement}, long, record["kind"], names, **more)

    def __repr__(self) -> str:
        entry = self._entry()
        if entry is None:
            return f"Series {self._name!r}: no period yet."
        opening = Opening.of(entry)
        progress, words = self._progress(opening), " ".join(opening.record["words"])
        if progress.fixed:
            words = f"{words} {fixed_words(fixed=True)['test']}"
        if progress.copied:
            words = (
                "It goes on from an older copy of its ledger: periods that it does not have may "
                f"have been measured, and are paid with on_pending='retry'. {words}"
            )
        return f"Series {self._name!r}: {len(progress.added)} periods. {words}"


def _column(
    calendar: Calendar, begins: Sequence[dt.datetime], keys: Sequence[str], groups: int
) -> pl.DataFrame:
    """The column of periods: days, or times if periods do not begin at midnight."""
    repeated = [moment for moment in begins for _ in range(groups)]
    moments = pl.Series(
        "period" if "period" not in keys else "period_", repeated, dtype=pl.Datetime("us")
    )
    return (moments.cast(pl.Date) if calendar.at_midnight else moments).to_frame()


def _opening(name: str) -> str:
    """The name of the charge that pays for a series."""
    return f"series {name}"


def _series_plan(entry: Entry | None, name: str) -> Any:
    if entry is None:
        raise InvalidArgument(
            f"There is no series {name!r} yet: budget.series({name!r}, every='1d', horizon=365, "
            "epsilon=1.0, unit_periods=1) opens it."
        )
    return entry.body["plan"]["series"]


@body_of(Budget.series)
def open_series(
    budget: Budget | Allowance,
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
        raise InvalidArgument(
            "budget.series: give a name, such as budget.series('signups', every='1d', ...)."
        )
    if on is not None:
        if not isinstance(on, str) or not on:
            raise InvalidArgument(
                "budget.series: on= is the name of the column with the time of a row: on='day'."
            )
        check_names([on])
    check_flags("budget.series: enforce= is True or False.", enforce)
    typed = [every, horizon, unit_periods, enforce or None, *price.values()]
    if all(argument is None for argument in typed) and noise == "auto":
        return Series(budget, name, None, start, on)
    length = "1d" if every is None else every
    if start is not None:
        Calendar.read(length, start)
    settings = Settings.read(
        budget.terms, length, horizon, unit_periods, noise, enforce=enforce, **price
    )
    return Series(budget, name, settings, start, on)
