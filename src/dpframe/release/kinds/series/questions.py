"""The question of each period: from a query about one period or about all rows, or
from a function of the period.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from dpframe import engine
from dpframe.arrays import ranges
from dpframe.budget import fingerprint
from dpframe.errors import (
    BudgetMismatch,
    InvalidArgument,
    ReleaseMismatch,
    UnsupportedOperation,
    WrongType,
    kind_of,
)
from dpframe.fields import FieldDict, Fields
from dpframe.plan import (
    Hierarchy,
    Intervals,
    Keys,
    Kind,
    Marginals,
    Question,
    col,
    described,
    kind,
    lit,
)
from dpframe.plan.steps import (
    ApartByPeriod,
    Cut,
    Filter,
    FirstPeriods,
    Step,
    exchanged,
    lineage,
    source_of,
    sources_of,
)
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.usage import Hints

# what a step does whose rows come from one row each
_OF_ONE_ROW = ("source", "rewrite", "filter", "join_public")


@dataclass(frozen=True)
class PeriodQuery(Hints):
    """The argument of `series.add`: a query about one period's rows or about all
    rows, or a function of the period.

    `on` is the column with the time of a row. Without `on` and without a function, the query is
    about the rows of the period that is added.
    """

    query: Any
    on: str | None
    question_of: Callable[[Any], Question]

    @property
    def alone(self) -> bool:
        """Whether the rows of earlier periods are not available."""
        return self.on is None and not callable(self.query)

    def of(self, calendar: Calendar, period: int) -> Question:
        """The question of one period.
        Errors: InvalidArgument, WrongType, UnsupportedOperation; those of a query.
        """
        query = self._called(calendar.label(period)) if callable(self.query) else self.query
        question = self.question_of(query)
        if self.on is None or callable(self.query):
            return question
        return replace(question, step=_only(question.step, self.on, calendar, period))

    def first(
        self, calendar: Calendar, question: Question, earlier: Mapping[int, Question], most: int
    ) -> Question:
        """The question of one period, about units with rows in fewer than
        `most` of the periods before it.

        Input:  question; earlier: the questions of the periods that were added before it, by
                number; most (periods)
        Bound:  see `dpframe.plan.steps.FirstPeriods`
        """
        if len(earlier) < most:
            return question
        listed = (
            tuple(zip(question.by, question.keys.levels, strict=True))
            if question.keys is not None
            else ()
        )
        steps, each = tuple(past.step for past in earlier.values()), ""
        if (
            self.on is not None
            and not callable(self.query)
            and self._days_apart(calendar, question)
        ):
            days, each = _spans(sorted(earlier)), self.on
            whole = self.question_of(self.query).step
            steps = (
                exchanged(
                    whole,
                    lambda source: Filter(source, _within(source, self.on or "", calendar, days)),
                ),
            )
        return replace(question, step=FirstPeriods(question.step, steps, most, each, listed))

    def together(
        self, calendar: Calendar, question: Question, periods: Sequence[int]
    ) -> Question | None:
        """One question that reads several periods in one pass;
        None where each is a question of its own.

        Input:  question: that of one of the periods; periods: their numbers, in order
        Output: the question by period, whose units are pairs of a unit and a period; see
                `ApartByPeriod`
        Bound:  its totals in a period are those of the question of that period: every step makes
                each row of one row, the column `on` is as it was in the source, and limits are
                enforced for each unit and period. The totals have the same integers: of one unit,
                on one grid, of columns with the same domains
        """
        if self.on is None or callable(self.query) or len(periods) < 2:
            return None
        step = self.question_of(self.query).step
        table, source = step.table, source_of(step)
        of, column = source.table.columns[self.on], table.columns.get(self.on)
        plain = all(one.effect in _OF_ONE_ROW and not one.others for one in lineage(step))
        if not plain or column is None or column.id != of.id or column.is_unit:
            return None
        name, spans = self.on, _spans(periods)
        step = exchanged(step, lambda s: Filter(s, _within(s, self.on or "", calendar, spans)))
        labels: list[Any] = [calendar.label(period) for period in periods]
        if isinstance(of.domain.dtype, nw.Enum) and not set(labels) <= set(
            of.domain.dtype.categories
        ):
            return None
        if of.domain.kind is Kind.DATE and calendar.is_daily:
            labels = [calendar.moment(period).date() for period in periods]
        elif of.domain.kind is not Kind.STRING:
            taken = {*table.columns, *question.by, *(output for output, _ in question.aggregates)}
            while name in taken:
                name += "_"
            starts = sorted({*periods, *(period + 1 for period in periods)})
            edges = [_typed(calendar.moment(start), of.domain.kind) for start in starts]
            step = Cut(
                step,
                self.on,
                Intervals.of(edges, [*map(calendar.label, starts[:-1])], right=False),
                name,
            )
        if name in question.by:
            return None
        limits = question.limits if question.by else replace(question.limits, max_groups=1)
        made = replace(
            question,
            step=ApartByPeriod(step, name) if table.unit else step,
            by=(name, *question.by),
            keys=_by_period(labels, question.keys),
            given=limits if table.unit else question.given,
        )
        return made if _added_up(made) == _added_up(question) else None

    def _days_apart(self, calendar: Calendar, question: Question) -> bool:
        """Whether each value of the column `on` is one period:
        the column is unchanged, and holds days or texts.

        Then a single reading of the table counts the periods of each unit, since every row after
        the steps is made of one row. A step that brings in other rows of the unit, of whatever day,
        could remove a row that has a period.
        """
        assert self.on is not None
        if any(step.others for step in lineage(question.step)):
            return False
        before = source_of(question.step).table.columns[self.on]
        after = question.step.table.columns.get(self.on)
        if after is None or after.id != before.id:
            return False
        return before.domain.kind is Kind.STRING or (
            before.domain.kind is Kind.DATE and calendar.is_daily
        )

    def _called(self, label: str) -> Any:
        """The query that the function returns for a period.
        Errors: InvalidArgument if it takes no argument.
        """
        if _takes_one(self.query):
            return self.query(label)
        raise InvalidArgument(
            "series.add: the function must take one argument, the period as a text such as "
            "'2026-11-21', and return a query."
        )


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument."""
    try:
        inspect.signature(function).bind("")
    except (TypeError, ValueError):
        return False
    return not isinstance(function, type)


def _added_up(question: Question) -> list[Any]:
    """The integers of a question's totals, apart from its groups:
    each total, its grid, and its limits.
    """
    return [(p.total.key, p.total.grid, p.total.unit, p.total.limits) for p in question.read]


def _by_period(labels: Sequence[Any], keys: Keys | None) -> Keys:
    """The keys of a question, in each of some periods."""
    if keys is None or keys.rows is None:
        return Keys((tuple(labels), *(keys.levels if keys is not None else ())))
    return Keys.of_rows([(label, *row) for label in labels for row in keys.rows])


def _spans(periods: Sequence[int]) -> list[tuple[int, int]]:
    """Periods as spans: the first period of each span and the period after its last."""
    return [(first, last + 1) for first, last in ranges(periods)]


def _typed(moment: dt.datetime, kind: Kind) -> dt.date:
    """The begin of a period as a column of dates or times holds it."""
    return moment.date() if kind is Kind.DATE else moment


def _within(source: Any, on: str, calendar: Calendar, spans: list[tuple[int, int]]) -> Any:
    """The condition that the time of a row is in some of the spans."""
    kind = source.table.columns[on].domain.kind
    if kind is Kind.STRING:
        return col(on).is_in(
            [calendar.label(period) for first, end in spans for period in range(first, end)]
        )
    conditions = [
        (col(on) >= lit(_typed(calendar.moment(first), kind)))
        & (col(on) < lit(_typed(calendar.moment(end), kind)))
        for first, end in spans
    ]
    either = conditions[0]
    for condition in conditions[1:]:
        either |= condition
    return either


def check_enforced(question: Question, *, alone: bool) -> None:
    """Check that the periods of each unit can be counted. Errors: UnsupportedOperation."""
    if alone:
        raise UnsupportedOperation(
            "series.add: enforce=True counts the earlier periods in which a unit has rows, so it "
            "must read their rows. Give a function of the period, series.add(lambda night: ..., "
            "period=...), or a table with all periods and on=."
        )
    if not question.table.unit:
        raise UnsupportedOperation(
            "series.add: enforce=True needs a column that identifies units, and dp.Rows(k) has "
            "none. Protect the table with unit='...'."
        )


def _only(step: Step, on: str, calendar: Calendar, period: int) -> Step:
    """A plan about the rows of one period."""
    if len(sources_of(step)) > 1:
        raise UnsupportedOperation(
            "series.add: this question is about several protected tables, and on= names a column "
            "of one table. Give a function of the period that filters each of them: "
            "series.add(lambda day: ..., period='...')."
        )
    column = source_of(step).table.column(on, "budget.series(on=...)")
    dtype = column.domain.dtype
    begins, ends = calendar.moment(period), calendar.moment(period + 1)
    if kind(dtype) is Kind.STRING:
        return exchanged(
            step, lambda source: Filter(source, col(on) == lit(calendar.label(period)))
        )
    if kind(dtype) is Kind.DATE:
        if begins.time() != dt.time() or ends.time() != dt.time():
            raise WrongType(
                f"on={on!r} holds dates, but periods do not begin at midnight. Give a column of "
                "times, or periods of whole days."
            )
    elif kind(dtype) is not Kind.DATETIME:
        raise WrongType(
            f"on={on!r} must be a column of dates, of times, or of texts such as '2026-11-21'."
        )
    return exchanged(
        step, lambda source: Filter(source, _within(source, on, calendar, [(period, period + 1)]))
    )


def check_kind(question: Question) -> None:
    """Check that a question asks for counts and sums in listed groups.
    Errors: UnsupportedOperation.
    """
    if isinstance(question, (Hierarchy, Marginals)) or not question.layout.is_long:
        raise UnsupportedOperation(
            "series.add: a series has counts and sums by group_by(..., keys=[...]), not "
            "crosstabs, marginals or hierarchies."
        )
    if question.private_keys or question.other is not None:
        raise UnsupportedOperation(
            f"series.add: list the keys of {', '.join(map(repr, question.by))}, group_by(..., "
            "keys=[...]); keys from the data would differ from period to period."
        )
    if question.undecided:
        raise UnsupportedOperation(
            "series.add: give limits and bounds as numbers; dp.Auto() would choose other ones in "
            "each period."
        )
    simple = [
        not output.derived
        and output.dtype is None
        and all(m.additive and not m.chosen for _, m in output.totals)
        for output in question.outputs
    ]
    if not simple or not all(simple):
        raise UnsupportedOperation(
            "series.add: a series adds up counts and sums of numbers: dp.count(), "
            "dp.count_units(), dp.sum('spend', bounds=(0, 100)). For a mean, divide a sum by a "
            "count."
        )


def described_question(question: Question) -> FieldDict:
    """The part of a question that all periods of a series share, as JSON:
    unit, neighbours, columns and groups.
    """
    table = described(question)["table"]
    return {
        "unit": table["unit"],
        "neighbors": table["neighbors"],
        "ask": described(question)["ask"],
    }


def check_same(first: Fields, question: Question, label: str) -> None:
    """Check that another period has the question of the first one. Errors: ReleaseMismatch."""
    if described_question(question) != first:
        raise ReleaseMismatch(
            f"series.add: for {label} the function returns another question than for the period "
            "that is added. All periods of a series must have one question. Nothing was spent."
        )


def asked_as(question: Question) -> str:
    """A fingerprint of the question of one period with all of its steps; see `check_asked`."""
    return fingerprint({**described_question(question), "steps": described(question)["steps"]})


def check_asked(question: Question, asked: str, label: str) -> None:
    """Check that a period that was added before has the question with which it was added.

    Input:  the question that the period has now; asked: the fingerprint that the ledger has of its
            question then, "" if an earlier version of dpframe added it; label: the period
    Bound:  whose periods are used up is computed from the rows of earlier periods. By this check
            each reading of a period, at any level and in any process, has the steps of every other
            reading of it. So its units are those that were counted in it, and
            `dpframe.plan.steps.FirstPeriods` counts the same periods each time, whatever steps the
            periods have. Equal fingerprints stand for equal steps: a description has every value of
            a step, with lists of more than 100 values and public tables as 64 bits of their SHA-256
    Errors: ReleaseMismatch
    """
    if asked_as(question) != asked:
        now = (
            "now has another question"
            if asked
            else "was added by a version that stored no question"
        )
        raise ReleaseMismatch(
            "series.add: enforce=True counts a unit's periods by the questions with which periods "
            f"were added, and {label} {now}. Give a function that returns for each period its own "
            "question, with all of its steps: series.add(lambda day: ..., period='...'); or open "
            "another series. Nothing was spent."
        )


def corrected(label: str) -> ReleaseMismatch:
    """The refusal where the rows of a period that was added before have another label by now.

    A unit that was counted there, and is no longer in its rows, would be counted once more.
    """
    return ReleaseMismatch(
        "series.add: enforce=True counts a unit's periods by the rows with which periods were "
        f"added, and those of {label} have another label by now. Nothing was spent. Give the "
        "function the rows of before for that period, and correct it beside the series, by a "
        "release of its own; or open another series. Files that were only copied have their label "
        "again with their times of before (cp -p, touch -d)."
    )


def read_query(query: Any, budget: Any) -> Question:
    """The question of a query that a budget pays for. Errors: InvalidArgument, BudgetMismatch."""
    question = getattr(query, "_question", None)
    if not isinstance(question, Question):
        raise InvalidArgument(
            "series.add takes a query, such as frame.count(max_rows=1), or a function from a "
            f"period to a query, not {kind_of(query)}."
        )
    if query._budget not in (None, budget):
        raise BudgetMismatch("series.add: this query is paid from another budget than the series.")
    return question


def validated(question: Question) -> None:
    """Run a question on an empty table, so that it cannot fail on types after the charge.
    Errors: EngineError.
    """
    engine.check_unchanged(question.step)
    engine.validate(question)
