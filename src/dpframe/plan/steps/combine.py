"""Steps that make rows from several rows or several tables, and what one unit has after them.

Every row of a result belongs to one unit. It is computed from that unit's rows and public tables,
and from nothing else. So a unit that joins, leaves or changes its rows changes only its own rows of
the result. There may be many of these; the limits that the question enforces bound their effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation, WrongType
from dpframe.fields import Fields, Names, Word
from dpframe.plan import declared
from dpframe.plan.columns import (
    Bounds,
    Column,
    ColumnDefaults,
    ColumnDomain,
    Limits,
    Possible,
    Table,
)
from dpframe.plan.scalars import Scalar
from dpframe.plan.steps.basic import MOST, Bound, Step, lineage, source_of, sources_of
from dpframe.plan.steps.rewrites import UnderPolicy
from dpframe.plan.types import Kind, is_wide, kind, show


class How(Word):
    """Whether a join keeps rows without a match."""

    INNER = "inner"
    LEFT = "left"


def _typed(whose: str, on: Sequence[str], how: How) -> str:
    """A join as it is typed."""
    return f"join({whose} table, on={(on[0] if len(on) == 1 else list(on))!r}, how={how!r})"


def key_types(
    here: Sequence[ColumnDomain], there: Sequence[ColumnDomain], on: Sequence[str], call: str
) -> tuple[DType, ...]:
    """The types in which the columns of a join are compared, or a typed error.

    Whole numbers are compared as Int64, or as UInt64 where both are; other numbers as Float64. So a
    pandas column that is float because of a null still finds its keys; -0.0 equals 0.0. Times are
    compared only if their types are equal.
    """
    types: list[DType] = []
    for first, second, name in zip(here, there, on, strict=True):
        kinds, both = {kind(first.dtype), kind(second.dtype)}, (first.dtype, second.dtype)
        wide = [dtype in (nw.Int128, nw.UInt128) for dtype in both]
        if all(wide) or (any(wide) and kinds != {Kind.INTEGER}):
            raise WrongType(
                f"{call}: {name!r} is of type {show(first.dtype)} here and {show(second.dtype)} "
                "there; numbers of 128 bits are no keys of a join. Cast them, as in "
                f".cast({name!r}, 'int64')."
            )
        if all(dtype == nw.UInt64 for dtype in both):
            types.append(nw.UInt64())
        elif kinds == {Kind.INTEGER}:
            types.append(nw.Int64())
        elif kinds <= {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}:
            types.append(nw.Float64())
        elif kinds == {Kind.STRING}:
            types.append(nw.String())
        elif len(kinds) == 1 and Kind.OTHER not in kinds and first.dtype == second.dtype:
            types.append(first.dtype)
        else:
            raise WrongType(
                f"{call}: {name!r} is of type {show(first.dtype)} here and {show(second.dtype)} "
                f"there; cast one of them so that they can be equal, as in .cast({name!r}, "
                "'string')."
            )
    return tuple(types)


def _unique(on: Sequence[str], call: str) -> None:
    if not on or len(set(on)) != len(on):
        raise InvalidArgument(f"{call}: on= names at least one column, and none twice.")


def _limits(*plans: Step, single: bool) -> Limits:
    """The limits that some plans state, and one row per unit if the table is `single`."""
    limits = Limits(max_rows=1) if single else Limits()
    for step in plans:
        for earlier in lineage(step):
            limits = (
                limits.and_also(earlier.limits)
                if isinstance(earlier, (Bound, UnderPolicy))
                else limits
            )
            limits = limits.and_also(_limits(*earlier.others, single=False))
    return limits


@dataclass(frozen=True, eq=False)
class Join(Step):
    """Each row with the rows of a public table that have its key.
    With "left", rows without a match stay too.

    Neighbours: tables that differ in the rows of one unit; the public table is the same for both
    Changes:  the rows that come from that unit's rows: at most `most` from each. `most` is the
                largest number of public rows with one key, at least 1
    Bound:  with an identifier, the limits, enforced on the rows that come out; with `dp.Rows(k)`, k
            · most rows
    Why:  a row of the result is one row of the protected table and public values, so it belongs to
                that row's unit. A missing key equals no key
    Source:  McSherry 2009, "Privacy integrated queries", section 3.6, for joins whose fan-out is
             bounded

    What the public columns hold is public too: their ends, and their different values, are
    `declared`, as bounds and keys of a protected table may be.
    """

    effect = "join_public"

    before: Step
    public: Any = field(repr=False)  # a table of the engine, whose schema and rows are public
    on: Names
    how: How
    most: int
    content: str  # tells two public tables apart
    declared: Mapping[str, tuple[Bounds | None, tuple[Scalar, ...] | None]] = field(
        default_factory=dict, repr=False
    )

    @property
    def effect_facts(self) -> Fields:
        return {"most": max(self.most, 1), "how": self.how}

    @property
    def call(self) -> str:
        """The name of the call in errors."""
        return f"join(on={list(self.on)!r})"

    @cached_property
    def brought(self) -> dict[str, ColumnDomain]:
        """The columns of the public table that are joined to the rows.
        A row without a match has null in them.
        """
        domains = {name: domain for name, domain in self.public.schema if name not in self.on}
        listed = {name: keys for name, (_, keys) in self.declared.items() if keys is not None}
        possible = {
            name: Possible.listed(keys, "what the public table has")
            for name, keys in listed.items()
        }
        return {
            name: replace(d, nullable=True, possible=possible.get(name))
            for name, d in domains.items()
        }

    @cached_property
    def keys(self) -> tuple[DType, ...]:
        """The types in which keys are compared."""
        table, there = self.before.table, dict(self.public.schema)
        _unique(self.on, self.call)
        for name in self.on:
            if name not in there:
                raise UnknownColumn(
                    f"{self.call}: the public table has no column {name!r}. Columns: "
                    f"{', '.join(there)}."
                )
        here = [table.column(name, self.call).domain for name in self.on]
        for name, domain in zip(self.on, here, strict=True):
            values = self.declared.get(name, (None, None))[1]
            possible = domain.possible
            if values and possible is not None and not any(map(possible.holds, values)):
                raise InvalidArgument(
                    f"{self.call}: no row can have a key that the public table has in {name!r}, so "
                    f"nothing would be joined. Give the public table {possible.give}."
                )
        return key_types(here, [there[name] for name in self.on], self.on, self.call)

    @cached_property
    def table(self) -> Table:
        _ = self.keys
        table = self.before.table
        if both := [name for name in self.brought if name in table.columns]:
            raise InvalidArgument(
                f"{self.call}: both tables have a column {both[0]!r}; rename or drop it in one of "
                "them first."
            )
        single = table.single and self.most <= 1
        limits = table.limits if self.most <= 1 else _limits(self.before, single=single)
        rows = table.declared and table.declared * max(self.most, 1)
        if rows is not None and rows > MOST:
            raise UnsupportedOperation(
                f"{self.call}: one key has {self.most} public rows, and one person would have too "
                "many to bound."
            )
        everyone = table.everyone and self.how is How.LEFT
        table = replace(table, single=single, everyone=everyone, limits=limits, declared=rows)
        table = table.with_versions(self.brought.items())
        facts = {name: fact for name, fact in self.declared.items() if name in self.brought}
        return table.with_defaults(
            {name: ColumnDefaults(*fact, self.typed) for name, fact in facts.items()}
        )

    @property
    def typed(self) -> str:
        return _typed("public", self.on, self.how)


# Several protected tables of the same units

_JOINED = (
    " The join makes a row of each two rows of a unit, so what one table declares is not enough. "
    "If the other one has one row for each unit, say so where it is protected: dp.protect(..., "
    "max_rows=1)."
)


def same_units(first: Step, second: Step, call: str) -> tuple[DType | None, ...]:
    """The types in which the identifiers of two plans are compared;
    None if they need no conversion.

    Two different identifiers must stay different, or rows of one unit would go to another. So whole
    numbers are compared as whole numbers, texts as texts, and nothing is rounded. Errors:
    UnsupportedOperation, WrongType
    """
    one, two = source_of(first), source_of(second)
    if not first.table.unit or not second.table.unit:
        raise UnsupportedOperation(
            f"{call}: with dp.Rows(k) nobody can tell which rows of two tables are one person's. "
            "Protect both with unit='...'."
        )
    if one.unit != two.unit:
        raise UnsupportedOperation(
            f"{call}: the tables have different units, {one.unit} and {two.unit}. Name the "
            "identifying columns alike before the tables are protected."
        )
    if one.people != two.people:
        raise UnsupportedOperation(
            f"{call}: the tables have units of different names, people={one.people!r} and "
            f"people={two.people!r}. If they are the same people, protect both with the same "
            "people=."
        )
    if one.relation != two.relation:
        raise UnsupportedOperation(
            f"{call}: one table has neighbors={one.relation!r}, the other {two.relation!r}; they "
            "must be the same."
        )
    types: list[DType | None] = []
    for mine, theirs in zip(first.table.unit, second.table.unit, strict=True):
        a, b = mine.domain.dtype, theirs.domain.dtype
        wide = any(is_wide(x) for x in (a, b))
        # Older versions of narwhals do not tell the scale of a decimal, and 1.0 is not 1.00.
        comparable = kind(a) != Kind.DECIMAL or hasattr(a, "scale")
        if (a == b and comparable) or (kind(a), kind(b)) == (Kind.STRING, Kind.STRING):
            types.append(None)
        elif (kind(a), kind(b)) == (Kind.INTEGER, Kind.INTEGER) and not wide:
            types.append(nw.Int64())
        else:
            raise WrongType(
                f"{call}: the unit is of type {show(a)} in one table and {show(b)} in the other; "
                "give it the same type before the tables are protected."
            )
    return tuple(types)


def common_units(first: Step, others: Iterable[Step], call: str) -> tuple[DType | None, ...]:
    """The types in which the identifiers of several plans are compared; see `same_units`."""
    pairs = [same_units(first, other, call) for other in others]
    return tuple(
        next((t for t in types if t is not None), None) for types in zip(*pairs, strict=True)
    )


@dataclass(frozen=True, eq=False)
class JoinProtected(Step):
    """Each row with the rows of its unit in another protected table for
    which the other keys agree too.

    Neighbours: one unit's rows join, leave or are exchanged in both tables at once
    Changes:    the rows that come from that unit's rows, any number of them
    Bound:      the limits, enforced on the rows that come out
    Why:  the identifier is among the keys, so a row of the result is made of two rows of one unit
    Source:     the definition of user-level neighbours

    Declared limits stay where one of the tables has one row of a unit: see
    `dpframe.plan.declared.beside`. What is declared of columns stays.
    """

    effect = "join_units"

    before: Step
    other: Step
    on: Names
    how: How

    @property
    def others(self) -> tuple[Step, ...]:
        return (self.other,)

    def with_others(self, others: list[Step]) -> Step:
        return replace(self, other=others[0])

    @property
    def call(self) -> str:
        """The name of the call in errors."""
        return f"join(on={list(self.on)!r})"

    @cached_property
    def units(self) -> tuple[DType | None, ...]:
        """The types in which identifiers are compared."""
        types, (here, there) = (
            same_units(self.before, self.other, self.call),
            (self.before.table, self.other.table),
        )
        _unique(self.on, self.call)
        mine = [here.column(name, self.call).id for name in self.on]
        theirs = [there.column(name, f"{self.call}: the other table").id for name in self.on]
        pairs = set(zip(mine, theirs, strict=True))
        if any((a.id, b.id) not in pairs for a, b in zip(here.unit, there.unit, strict=True)):
            names = ", ".join(map(repr, source_of(self.before).unit))  # type: ignore[arg-type]
            raise UnsupportedOperation(
                f"{self.call}: on= must hold the columns that identify the unit, {names}, or a row "
                "would be made of two people's and have no owner."
            )
        return types

    @property
    def _nobody_leaves(self) -> bool:
        """Whether each unit that both tables have keeps a row, and the
        other table has the same units.
        """
        sources, more = sources_of(self.before), sources_of(self.other)
        same = all(any(source is mine for mine in sources) for source in more)
        return same and (self.how is How.LEFT or (not self.besides and len(sources) == len(more)))

    @property
    def effect_facts(self) -> Fields:
        return {"how": self.how, "keeps_units": self._nobody_leaves}

    @cached_property
    def besides(self) -> Names:
        """The keys that do not identify the unit."""
        _ = self.units
        return tuple(name for name in self.on if not self.before.table.columns[name].is_unit)

    @cached_property
    def keys(self) -> tuple[DType, ...]:
        """The types in which the other keys are compared."""
        here, there = (
            [t.columns[n].domain for n in self.besides]
            for t in (self.before.table, self.other.table)
        )
        return key_types(here, there, self.besides, self.call)

    @cached_property
    def brought(self) -> dict[str, Column]:
        """The columns of the other table that are joined to the rows."""
        return {
            name: column for name, column in self.other.table.columns.items() if name not in self.on
        }

    @cached_property
    def table(self) -> Table:
        _ = self.keys
        here, there = self.before.table, self.other.table
        if both := [name for name in self.brought if name in here.columns]:
            raise InvalidArgument(
                f"{self.call}: both tables have a column {both[0]!r}; rename or drop it in one of "
                "them first."
            )
        single = here.single and there.single
        everyone = (
            here.everyone and self._nobody_leaves and (self.how is How.LEFT or there.everyone)
        )
        defaults = declared.beside(here, there)
        lost = not defaults.typed and (here.defaults.typed or there.defaults.typed)
        table = replace(
            here,
            single=single,
            everyone=everyone,
            limits=_limits(self.before, self.other, single=single),
            defaults=defaults,
            undeclared=_JOINED if lost else here.undeclared or there.undeclared,
            min_units=declared.most_of((here, there)),
            locks=declared.locks_of((here, there)),
        )
        missing = self.how is How.LEFT
        return table.with_versions(
            (name, replace(c.domain, nullable=c.domain.nullable or missing))
            for name, c in self.brought.items()
        ).with_defaults({name: c.defaults for name, c in self.brought.items()})

    @property
    def typed(self) -> str:
        return _typed("protected", self.on, self.how)


@dataclass(frozen=True, eq=False)
class Concat(Step):
    """The rows of several protected tables, one below the other.

    Neighbours: one unit's rows join, leave or are exchanged in all tables at once
    Changes:    that unit's rows, of all tables together
    Bound:  the limits, enforced on the rows of the result: a unit with rows in every table keeps no
                more rows than a unit with rows in one table
    Why:        a row of the result is one row of one table, and keeps its identifier
    Source:     the definition of user-level neighbours

    What the tables declare alike stays declared.
    """

    effect = "concat"

    before: Step
    more: tuple[Step, ...]

    @property
    def others(self) -> tuple[Step, ...]:
        return self.more

    def with_others(self, others: list[Step]) -> Step:
        return replace(self, more=tuple(others))

    @property
    def parts(self) -> tuple[Step, ...]:
        """All of the tables."""
        return (self.before, *self.more)

    @cached_property
    def units(self) -> tuple[DType | None, ...]:
        """The types in which identifiers are held; None if they need no conversion."""
        return common_units(self.before, self.more, "concat")

    @cached_property
    def table(self) -> Table:
        _ = self.units
        tables = [step.table for step in self.parts]
        first = tables[0]
        for table in tables[1:]:
            if set(table.columns) != set(first.columns):
                odd = sorted(set(table.columns) ^ set(first.columns))[0]
                raise InvalidArgument(
                    f"concat: the tables have the same columns, but {odd!r} is not in all; select "
                    "first."
                )
            roles = {name: _role(first, first.columns[name]) for name in first.columns}
            if any(_role(table, table.columns[name]) != role for name, role in roles.items()):
                raise UnsupportedOperation(
                    "concat: the columns that identify the unit must have the same names."
                )
        domains = {
            name: _joint([t.columns[name].domain for t in tables], name) for name in first.columns
        }
        base = Table(
            {},
            (),
            first.relation,
            everyone=all(t.everyone for t in tables),
            defaults=declared.in_all(tables),
        )
        limits, least = _limits(*self.parts, single=False), declared.most_of(tables)
        result = replace(
            base, limits=limits, min_units=least, locks=declared.locks_of(tables)
        ).with_versions(domains.items())
        result = result.with_defaults(declared.columns_in_all(tables))
        columns, units = dict(result.columns), []
        for i, unit in enumerate(first.unit):
            name = next((n for n, c in first.columns.items() if c.id == unit.id), None)
            domain = (
                columns[name].domain if name else _joint([t.unit[i].domain for t in tables], "unit")
            )
            column = Column(
                columns[name].id if name else f"v{result.versions + i}", domain, is_unit=True
            )
            units.append(column)
            if name:
                columns[name] = column
        return replace(
            result, columns=columns, unit=tuple(units), versions=result.versions + len(units)
        )

    @property
    def typed(self) -> str:
        return f"concat([{', '.join(['protected table'] * len(self.parts))}])"


def _role(table: Table, column: Column) -> int | None:
    """The place of a column among the identifying ones; None for others."""
    return next((i for i, unit in enumerate(table.unit) if unit.id == column.id), None)


def _joint(domain: Sequence[ColumnDomain], name: str) -> ColumnDomain:
    """The domain of the values of several columns together."""
    types, kinds = [f.dtype for f in domain], {f.kind for f in domain}
    keys = domain[0].keys if all(f.keys == domain[0].keys for f in domain) else None
    nullable = any(f.nullable for f in domain)
    if all(dtype == types[0] for dtype in types):
        dtype = types[0]
    elif kinds == {Kind.STRING}:
        dtype, keys = nw.String(), None
    elif kinds == {Kind.INTEGER}:
        dtype = nw.Int64()
        nullable = nullable or any(is_wide(t) for t in types)
    elif kinds <= {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL}:
        dtype = nw.Float64()
    else:
        raise WrongType(
            f"concat: {name!r} is of types {' and '.join(sorted({show(t) for t in types}))}. "
            f"Cast it first, as in .cast({name!r}, 'string')."
        )
    ends = [f.bounds for f in domain if f.bounds is not None]
    bounds = None
    if len(ends) == len(domain):
        bounds = Bounds(min(b.lower for b in ends), max(b.upper for b in ends))
        bounds = (
            Bounds(float(bounds.lower), float(bounds.upper))
            if kind(dtype) == Kind.FLOAT
            else bounds
        )
    known = [f.possible for f in domain if f.possible is not None]
    possible = (
        known[0].either(*known[1:]) if len(known) == len(domain) and dtype == types[0] else None
    )
    clipped = next((f.clipped for f in domain if f.clipped), "")
    return ColumnDomain(
        dtype, nullable, bounds, keys, domain[0].origin if bounds or keys else "", possible, clipped
    )
