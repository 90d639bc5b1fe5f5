"""The steps of a plan that read one row: what each does to the domain and to one unit's rows.

Every step here is stable. Each row of its result comes from one row and belongs to that row's unit,
and no row gives two rows. So limits of a unit are enforced on the rows that reach the question,
wherever the limits were typed. With `dp.Rows(k)` the declared number of rows still holds. There is
no step that is not stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

from dpframe.errors import InvalidArgument, UnsupportedOperation, WrongType
from dpframe.plan import nodes
from dpframe.plan.bins import Intervals
from dpframe.plan.columns import ColumnDomain, Limits, Table
from dpframe.plan.declared import Declared, check_limits
from dpframe.plan.expressions import Expr
from dpframe.plan.scalars import listed
from dpframe.plan.types import Kind, show
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import Hints, read_whole

Effect = Literal["source", "rewrite", "filter", "join_public", "join_units", "concat", "per_unit"]
# limits up to here leave room for every intermediate integer (see engine/stages/limits.py)
MOST = 2**31 - 1


def check_limit(value: object, name: str) -> int:
    """A limit as a whole number between 1 and 2^31 - 1, or a typed error."""
    return read_whole(value, 1, MOST, f"{name} must be a whole number from 1 to {MOST}.")


@dataclass(frozen=True)
class Rows(Hints):
    """The unit of a table without identifiers: one person has at most `max_rows` rows in it.

    This is a declaration. The data cannot confirm it, and the release is private only if it is
    true.

    >>> Rows(3)
    Rows(max_rows=3)
    """

    max_rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_rows", check_limit(self.max_rows, "dp.Rows(k): k"))

    @property
    def typed(self) -> str:
        """As the user typed it."""
        return f"dp.Rows({self.max_rows})"


def typed_unit(unit: object) -> str:
    """A unit as the user typed it: a declared limit, a column, or several."""
    match unit:
        case Rows():
            return unit.typed
        case (name,):
            return repr(name)
    return repr(unit)


@dataclass(frozen=True, eq=False)
class Step:
    """One line of a plan.
    `table` is the domain of the table after it, and `effect` what it does to rows.
    """

    effect: ClassVar[Effect] = "rewrite"  # each row becomes one row of the same unit

    @property
    def effect_facts(self) -> Mapping[str, Any]:
        """Further fields of a certificate about the effect of the step on rows."""
        return {}

    @property
    def parent(self) -> Step | None:
        """The step before; None at the source."""
        return getattr(self, "before", None)

    @property
    def others(self) -> tuple[Step, ...]:
        """The last steps of other plans that this step joins or concatenates."""
        return ()

    def with_others(self, others: list[Step]) -> Step:
        """The step with other plans in place of `others`."""
        return self

    @cached_property
    def table(self) -> Table:
        """Domain and contribution after this step."""
        raise NotImplementedError

    @cached_property
    def depth(self) -> int:
        """The number of steps that follow each other, from the source to this one."""
        return 1 + max(
            (step.depth for step in (self.parent, *self.others) if step is not None), default=0
        )

    @cached_property
    def size(self) -> int:
        """The number of steps, those of other plans as often as they are read."""
        return 1 + sum(step.size for step in (self.parent, *self.others) if step is not None)

    @property
    def typed(self) -> str:
        """The line as the user typed it."""
        raise NotImplementedError

    @property
    def shown(self) -> str:
        """The line for people to read: long lists are cut."""
        return self.typed


@dataclass(frozen=True, eq=False)
class Source(Step):
    """The protected table itself.

    Neighbours: under "add-remove" all rows of one unit join or leave. Under "replace" one unit's
                rows are exchanged for another unit's. With `Rows(k)` a unit is any set of at most k
                rows. What is `declared` says nothing of them: see `dpframe.plan.declared`
    """

    effect = "source"

    data: Any = field(repr=False)
    schema: tuple[tuple[str, ColumnDomain], ...]
    unit: tuple[str, ...] | Rows
    relation: Relation
    origin: Any = None  # what data= said: which rows these are, for the name of a release
    declared: Declared = Declared()  # noqa: RUF009  (it is frozen)
    people: str | None = None

    @cached_property
    def table(self) -> Table:
        if isinstance(self.unit, Rows):
            if self.declared.limits != Limits():
                raise UnsupportedOperation(
                    f"{self.declared.limits.typed}: without an identifier column nobody can tell "
                    f"whose rows to limit; {self.unit.typed} is the limit. Protect the table with "
                    "unit='...' to enforce one."
                )
            rows = self.unit.max_rows
            table = Table(
                {}, (), self.relation, rows, single=rows == 1, min_units=self.declared.min_units
            )
            table = replace(table, people=self.people)
            return table.with_versions(self.schema).with_defaults(self.declared.columns)
        table = Table(
            {}, (), self.relation, defaults=self.declared.limits, min_units=self.declared.min_units
        )
        table = table.with_versions(self.schema).with_defaults(self.declared.columns)
        columns = dict(table.columns)
        for name in self.unit:
            column = table.column(name, "unit=")
            if column.kind == Kind.OTHER:
                raise WrongType(
                    f"unit={name!r}: a column of type {show(column.domain.dtype)} cannot identify "
                    "a unit."
                )
            columns[name] = replace(column, is_unit=True)
        unit = tuple(columns[name] for name in self.unit)
        return replace(table, columns=columns, unit=unit, people=self.people)

    @property
    def typed(self) -> str:
        return self._line(short=False)

    @property
    def shown(self) -> str:
        return self._line(short=True)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify the unit; none where a limit on rows is declared instead."""
        return () if isinstance(self.unit, Rows) else self.unit

    def _line(self, *, short: bool) -> str:
        unit = typed_unit(self.unit)
        people = "" if self.people is None else f", people={self.people!r}"
        return (
            f"dp(unit={unit}{people}, "
            f"neighbors={self.relation!r}{self.declared.arguments(short=short)})"
        )


def not_the_unit(table: Table, name: str, call: str) -> None:
    """Refuse to write a column that identifies the unit. Errors: UnsupportedOperation."""
    column = table.columns.get(name)
    if column is not None and column.is_unit:
        raise UnsupportedOperation(
            f"{call}: {name!r} says whose row it is, and may not be rewritten. Give the new values "
            "another name."
        )


@dataclass(frozen=True, eq=False)
class Filter(Step):
    """Keep the rows where a condition holds (not where it is false or null).

    Rows only leave, so no unit has more rows than before. Under "replace" a unit may now have no
    row.
    """

    effect = "filter"

    before: Step
    condition: Expr

    @cached_property
    def table(self) -> Table:
        domain = nodes.domain(self.condition._node, self.before.table, "filter")
        if domain.kind != Kind.BOOLEAN:
            raise WrongType(
                f"filter: the condition is of type {show(domain.dtype)}; it must be true or false "
                "in each row, as in filter(dp.col('x') == 'yes')."
            )
        return replace(self.before.table, everyone=False)

    @property
    def typed(self) -> str:
        return f"filter({nodes.text(self.condition._node)})"

    @property
    def shown(self) -> str:
        return f"filter({nodes.text(self.condition._node, short=True)})"


@dataclass(frozen=True, eq=False)
class _OfColumns(Step):
    """A step that names columns and nothing else."""

    verb: ClassVar[str]

    before: Step
    names: tuple[str, ...]

    @property
    def typed(self) -> str:
        return f"{self.verb}({', '.join(map(repr, self.names))})"


@dataclass(frozen=True, eq=False)
class Select(_OfColumns):
    """Keep some columns, in this order. The unit's identifier travels on, hidden."""

    verb = "select"

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        if len(set(self.names)) != len(self.names):
            raise InvalidArgument("select: a column is named twice.")
        return replace(table, columns={name: table.column(name, "select") for name in self.names})


@dataclass(frozen=True, eq=False)
class Drop(_OfColumns):
    """Leave out some columns. The unit's identifier travels on, hidden."""

    verb = "drop"

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        for name in self.names:
            table.column(name, "drop")
        return replace(
            table, columns={n: c for n, c in table.columns.items() if n not in self.names}
        )


@dataclass(frozen=True, eq=False)
class Rename(Step):
    """Other names for the same versions of columns: domains stay with the values."""

    before: Step
    names: Mapping[str, str]

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        for old, new in self.names.items():
            table.column(old, "rename")
            if not isinstance(new, str) or not new:
                raise InvalidArgument("rename: a new name is a text that is not empty.")
        after = [self.names.get(name, name) for name in table.columns]
        if len(set(after)) != len(after):
            raise InvalidArgument("rename: two columns would have the same name.")
        return replace(table, columns=dict(zip(after, table.columns.values(), strict=True)))

    @property
    def typed(self) -> str:
        return f"rename({dict(self.names)!r})"


@dataclass(frozen=True, eq=False)
class DropNulls(_OfColumns):
    """Drop the rows in which one of the columns is missing (null or NaN).

    Rows only leave. Values do not change, so the versions stay; no value of these columns is
    missing any more.
    """

    effect, verb = "filter", "drop_nulls"

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        columns = dict(table.columns)
        for name in self.names:
            column = table.column(name, "drop_nulls")
            if column.kind == Kind.OTHER:
                raise WrongType(
                    f"drop_nulls({name!r}): a column of type {show(column.domain.dtype)} cannot be "
                    "read."
                )
            columns[name] = replace(column, domain=replace(column.domain, nullable=False))
        return replace(table, columns=columns, everyone=False)


@dataclass(frozen=True, eq=False)
class Cut(Step):
    """Put a number into one of the labelled intervals; outside all of them it is null.
    The labels are public keys.
    """

    before: Step
    name: str
    intervals: Intervals
    into: str

    @cached_property
    def table(self) -> Table:
        table, call = self.before.table, f"cut({self.name!r})"
        not_the_unit(table, self.into, call)
        self.intervals.edges_of(table.column(self.name, call).domain.dtype, call)
        clipped = table.column(self.name, call).domain.clipped
        return table.with_versions(
            [(self.into, replace(self.intervals.domain(self.shown), clipped=clipped))]
        )

    @property
    def typed(self) -> str:
        return f"cut({self.name!r}, {list(self.intervals.edges)!r})"

    @property
    def shown(self) -> str:
        return f"cut({self.name!r}, {listed(self.intervals.edges)})"


@dataclass(frozen=True, eq=False)
class Bound(Step):
    """A limit for every later question, beside earlier limits;
    it is enforced on the rows that reach the question.

    It takes the place of the declared limit; dp.Auto() takes the place of all declared limits.
    """

    before: Step
    limits: Limits

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        check_limits(self.limits, table, "bound")
        if not table.unit:
            raise UnsupportedOperation(
                "bound: without an identifier column nobody can tell whose rows to limit; "
                "dp.Rows(k) is the limit. Protect the table with unit='...' to enforce one."
            )
        rows, auto = self.limits.max_rows, self.limits.auto
        defaults = (
            Limits() if auto else replace(table.defaults, max_rows=None) if rows else table.defaults
        )
        return replace(table, limits=table.limits.and_also(self.limits), defaults=defaults)

    @property
    def typed(self) -> str:
        arguments = [
            f"{name}={value}" for name, value in vars(self.limits).items() if isinstance(value, int)
        ]
        if self.limits.auto is not None:
            arguments.append(f"limits={self.limits.auto.typed}")
        return f"bound({', '.join(arguments)})"


def lineage(step: Step) -> Iterable[Step]:
    """The steps of a plan, from the source on; of joined plans, those of the first one."""
    steps = [step]
    while (before := steps[-1].parent) is not None:
        steps.append(before)
    return reversed(steps)


def rebased(step: Step, data: Any) -> Step:
    """A plan on other rows. Errors: UnsupportedOperation for a plan of several tables."""
    sources = sources_of(step)
    if len(sources) > 1:
        raise UnsupportedOperation(
            "A question about several protected tables cannot be asked of one made-up table."
        )
    return exchanged(step, lambda source: replace(source, data=data))


def exchanged(step: Step, other: Callable[[Source], Step]) -> Step:
    """A plan from other sources with the same columns, or from steps on them.
    Each source has one in its place.
    """
    others = {id(source): other(source) for source in sources_of(step)}

    def made(step: Step) -> Step:
        if isinstance(step, Source):
            return others[id(step)]
        assert step.parent is not None
        return replace(
            step.with_others([made(more) for more in step.others]), **{"before": made(step.parent)}
        )

    return made(step)


def source_of(step: Step) -> Source:
    """The protected table at the start of a plan; of joined plans, that of the first one."""
    first = next(iter(lineage(step)))
    assert isinstance(first, Source)
    return first


def sources_of(step: Step) -> list[Source]:
    """Every protected table of a plan, once, that of the first plan before the others."""
    seen: dict[int, Step] = {}
    pending = [step]
    while pending:
        last = pending.pop()
        if id(last) not in seen:
            seen[id(last)] = last
            pending += [*reversed(last.others), *([] if last.parent is None else [last.parent])]
    return [one for one in seen.values() if isinstance(one, Source)]
