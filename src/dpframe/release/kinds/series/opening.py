"""A series in the ledger, and a period that is added to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpframe.budget import Entry, Loss, Terms
from dpframe.fields import Fields
from dpframe.plan import Question
from dpframe.plan.steps import sources_of
from dpframe.release.kinds.series.answer import Reading
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.release.kinds.series.noise import SeriesNoise
from dpframe.release.kinds.series.progress import Block, Place, Progress
from dpframe.release.kinds.series.questions import (
    PeriodQuery,
    asked_as,
    check_asked,
    check_same,
    corrected,
    described_question,
    validated,
)
from dpframe.release.kinds.series.settings import Settings
from dpframe.release.kinds.series.unit_change import UnitChange
from dpframe.release.paying import Account, described_origin, under_policy


@dataclass(frozen=True)
class Opening:
    """A series in the ledger: the charge that paid for it, with its noise and its calendar."""

    entry: Entry
    noise: SeriesNoise
    calendar: Calendar

    @classmethod
    def of(cls, entry: Entry) -> Opening:
        """The series that a charge paid for."""
        record, plan = entry.body["opens"], entry.body["plan"]["series"]
        calendar = Calendar.read(plan["every"], record["start"])
        return cls(entry, SeriesNoise.from_json(record), calendar)

    @property
    def record(self) -> Any:
        """The stored form of the series."""
        return self.entry.body["opens"]

    @cached_property
    def settings(self) -> Settings:
        """The arguments with which the series was opened."""
        return Settings.from_plan(self.entry.body["plan"]["series"])


@dataclass(frozen=True)
class Night:
    """A period that is added: its question, and the change of one unit that the
    noise of the series was bought for.
    """

    opening: Opening
    source: PeriodQuery
    number: int
    question: Question
    bought: UnitChange

    def hold(self, questions: Mapping[int, Question]) -> None:
        """Check that the noise of the series is enough for the questions of some
        periods; see `UnitChange.hold`.
        """
        for period, question in questions.items():
            self.bought.hold(
                question, self.opening.calendar.label(period), self.opening.record.get("limits", ())
            )

    def place(self, progress: Progress, blocks: tuple[Block, ...], budget: Account) -> Place:
        """The place of the period in its series for the charge,
        with the blocks that it measures.
        """
        settings, noise = self.opening.settings, self.opening.noise
        asked = asked_as(self.question) if settings.enforce else ""

        def hold(price: Loss) -> None:
            """The cap of one release holds for what is measured again."""
            under_policy([self.question], budget, price)

        cost = noise.again(self.bought, blocks, settings.price(budget.terms))
        return Place(
            self.opening.entry, progress.line, self.number, blocks, cost, hold, asked, self.labels
        )

    @property
    def labels(self) -> Sequence[Fields]:
        """Labels of the rows of the period; see `_labels`."""
        return _labels(self.question)

    @cached_property
    def _each(self) -> dict[int, Question]:
        """The questions of periods that were worked out."""
        return {self.number: self.question}

    def _of(self, period: int) -> Question:
        if period not in self._each:
            self._each[period] = self.source.of(self.opening.calendar, period)
        return self._each[period]

    def _corrected(self, progress: Progress, periods: Iterable[int]) -> frozenset[int]:
        """Earlier periods whose rows have another label by now than when they were added.

        A table with all periods has one label for all of them, which says nothing of one of them.
        """
        if not callable(self.source.query):
            return frozenset()
        had = {period: progress.data.get(period, ()) for period in periods}
        now = {period: _labels(self._of(period)) for period, labels in had.items() if labels}
        return frozenset(
            period for period, labels in now.items() if labels not in ((), had[period], self.labels)
        )

    def measured(self, progress: Progress) -> tuple[Block, ...]:
        """The blocks that the period measures, without periods that were corrected meanwhile."""
        blocks = progress.measured_by(self.number, self.opening.noise.shapes)
        if self.number in progress.answered:
            return blocks
        inside = {period for block in blocks for period in block.periods} - {self.number}
        return progress.without(blocks, self._corrected(progress, inside))

    def changed(self, kept: Entry, terms: Terms) -> str:
        """What is to be said of a stored answer whose rows may be others by now;
        empty if their label is the same.

        Input:  kept: the charge of the answer; terms of the budget
        Bound:  nothing is read. The labels are public, and were typed or are those of files. A
                correction is not measured in the series: later sums have the rows of before too, so
                estimates would subtract what was never added, and the price of the series covers
                one measurement of each period
        """
        before, name = kept.within.get("data", ()), kept.name
        if before and before == self.labels:
            return ""
        if not (before and self.labels):
            return (
                f"series.add: {name!r} is a stored answer, and no row was read. If the rows are "
                "others by now, it is not about them, and nothing tells. Say which rows a table "
                "has, dp.protect(..., data='2026-01'), and a change is told."
            )
        was, now = (
            ", ".join(str(label[""]) for label in labels) for labels in (before, self.labels)
        )
        noise = self.opening.noise
        weights = noise.shapes.parts[part := noise.shapes.part_of(self.number)].weights[:1]
        alone = Block(part, 0, self.number, (self.number,), weights)
        price = noise.again(self.bought, (alone,), self.opening.settings.price(terms))
        typed = f"epsilon={price.epsilon:.3g}" if price.rho is None else f"rho={price.rho:.3g}"
        typed += f", delta={price.delta:g}" if price.delta else ""
        return (
            f"series.add: {name!r} is a stored answer, and its rows have another label by now "
            f"(before: {was}; now: {now}). A period is measured once, so the series stays about "
            f"the rows of before. A correction is a release of its own, about {price} for no more "
            f"noise than a period: query.release({typed}, name={f'{name}, corrected'!r}, "
            f"supersedes={name!r}, because='...')."
        )

    def readings(self, progress: Progress, blocks: tuple[Block, ...]) -> list[Reading]:
        """Readings for some blocks: all of their periods in one pass where that
        is possible, or each in its own.

        The questions of the periods are held to the noise. In one pass they are that of this period
        with another time, and time is of no column that is added up. Errors: ReleaseMismatch, those
        of a query
        """
        periods = sorted({period for block in blocks for period in block.periods})
        together = self.source.together(self.opening.calendar, self.question, periods)
        if together is None or self.opening.settings.enforce:
            return [
                Reading(question, (period,))
                for period, question in self._questions(progress, blocks).items()
            ]
        validated(together)
        return [Reading(together, periods)]

    def _questions(self, progress: Progress, blocks: tuple[Block, ...]) -> dict[int, Question]:
        """The questions of the periods of some blocks, each worked out once,
        checked, and held to the noise.

        With `enforce` each question is about units with rows in fewer than `unit_periods` periods
        before its period.
        Errors: ReleaseMismatch, those of a query
        """
        calendar, enforce = self.opening.calendar, self.opening.settings.enforce
        inside = {past for block in blocks for past in block.periods}
        before = {period: progress.before(period) for period in inside} if enforce else {}
        each, described = {self.number: self.question}, described_question(self.question)
        for period in sorted(inside.union(*before.values()) - {self.number}):
            each[period] = self._of(period)
            if callable(self.source.query):
                check_same(described, each[period], calendar.label(period))
                if period in inside:
                    validated(each[period])
        if enforce:
            for period in each.keys() & progress.asked.keys():
                check_asked(each[period], progress.asked[period], calendar.label(period))
            if changed := self._corrected(progress, each.keys() - {self.number}):
                raise corrected(calendar.label(min(changed)))
        questions = {period: each[period] for period in inside}
        for period, earlier in before.items():
            past_questions = {past: each[past] for past in earlier}
            questions[period] = self.source.first(
                calendar, each[period], past_questions, self.bought.periods
            )
        if before:
            validated(questions[self.number])
        self.hold(questions)
        return questions


def _labels(question: Question) -> Sequence[Fields]:
    """Labels of the rows of a period, from `data=` or from files; () where
    one of its tables has none.
    """
    said: Sequence[Fields] = described_origin(question).get("data", ())
    return said if len(said) == len(sources_of(question.step)) else ()
