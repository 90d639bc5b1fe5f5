"""The base of the methods of statistics: a protected frame, and its groups.

Each statistic is a function and two methods, which stand in one file of this folder. The methods of
a frame take the limit on rows, and those of groups take none. The accessor `df.dp` has the methods
of frames: see `dpframe.accessors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Self, TypedDict, Unpack

from dpframe import engine
from dpframe.api.arguments import Columns, RowLimits, read_name, read_row_limits, read_several
from dpframe.api.query import Query
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnknownColumn
from dpframe.plan import Aggregate, Aggregates, Key, Keys, Layout, Limits, Question, Table, examples
from dpframe.plan.declared import completed, limits_of, min_units_of
from dpframe.plan.steps import Step
from dpframe.release import Account
from dpframe.usage import Examples, Hints, NoNumber


class Cells(TypedDict, total=False):
    """The statistic of the cells of a question's table, as `Question` has it."""

    layout: Layout
    other: Key | None
    min_units: int | None


class AskedFrame(NoNumber, Hints, Generic[Table_co]):
    """A protected frame: a plan step and what pays."""

    __slots__ = ("_budget", "_step")
    _instead = (
        "A protected frame is not a number. Compute columns in a step, "
        "with_columns(double=dp.col('wage') * 2), and ask for a number: mean('wage', bounds=(0, "
        "100), max_rows=5).release(epsilon=0.1).value."
    )

    def __init__(self, step: Step, budget: Account | None) -> None:
        _ = step.table  # refuse now what cannot be
        engine.check_supported(step)
        self._step, self._budget = step, budget

    def _examples(self) -> Examples:
        return examples(self._step.table)

    def _then(self, step: Step) -> Self:
        return type(self)(step, self._budget)

    def _only(self, column: object, verb: str) -> str:
        if column is not None:
            return read_name(column, verb)
        names = [name for name, c in self._step.table.columns.items() if not c.is_unit]
        if len(names) != 1:
            raise InvalidArgument(
                f"{verb}: name a column; there are {', '.join(map(repr, names))}."
            )
        return names[0]

    def _ask(
        self,
        statistic: Callable[..., Aggregate],
        column: Columns | None,
        *typed: object,
        limits: RowLimits,
        also: str = "",
        **named: object,
    ) -> Query[Table_co]:
        """A statistic of a column, of several, or of the only one there is;
        `also` is what else was typed.
        """
        verb, read = statistic.__name__, read_row_limits(**limits)
        if (names := read_several(column, verb, self._step.table.columns)) is not None:
            also = also or ("..., " if any(x is not None for x in typed) else "")
            line = f"{verb}([{', '.join(map(repr, names))}], {also}{{limit}})"
            return self._query(_each(statistic, names, typed, named), read, verb=line)
        name = self._only(column, verb)
        aggregate = statistic(name, *typed, **named)
        return self._one(
            name, aggregate, read, f"{verb}({name!r}, {also}{{limit}})" if also else None
        )

    def _one(
        self, name: str, aggregate: Aggregate, limits: Limits, line: str | None = None
    ) -> Query[Table_co]:
        verb = f"{aggregate.typed[:-1]}{'' if aggregate.typed.endswith('()') else ', '}{{limit}})"
        return self._query(((name, aggregate),), limits, verb=line or verb)

    def _query(
        self,
        aggregates: Aggregates,
        limits: Limits,
        *,
        verb: str,
        by: tuple[str, ...] = (),
        keys: Keys | None = None,
        **cells: Unpack[Cells],
    ) -> Query[Table_co]:
        table = self._step.table
        limits, columns = limits_of(limits, table, groups=bool(by)), _columns(aggregates, table)
        found, call = bool(by) and keys is None, verb.partition("(")[0]
        cells["min_units"] = min_units_of(cells.get("min_units"), table, found=found, call=call)
        return Query(
            Question(self._step, by, keys, limits, columns, verb=verb, **cells), self._budget
        )


class AskedGroups(NoNumber, Hints, Generic[Table_co]):
    """Groups of a protected frame: a question without aggregates, what pays,
    and which columns are keys now.
    """

    __slots__ = ("_budget", "_groups", "_written")
    _instead = (
        "Groups are not numbers. Ask them: .mean('wage', bounds=(0, "
        "100)).release(epsilon=0.1).table."
    )

    def __init__(
        self, groups: Question, budget: Account | None, written: frozenset[str] = frozenset()
    ) -> None:
        """`groups` is a question without aggregates; `written` are columns
        whose values a key has replaced.
        """
        # columns, keys and the limit are checked here
        _ = replace(groups.unit_limits, what="groups").groups
        self._groups, self._budget, self._written = groups, budget, written

    def _examples(self) -> Examples:
        return examples(self._groups.step.table)

    def _ask(
        self, statistic: Callable[..., Aggregate], column: Columns, *typed: object, **named: object
    ) -> Query[Table_co]:
        """A statistic of a column, or of several."""
        verb = statistic.__name__
        if (
            names := read_several(column, verb, self._groups.table.columns, self._groups.by)
        ) is not None:
            return self._query(_each(statistic, names, typed, named))
        name = read_name(column, verb)
        return self._query(((name, statistic(name, *typed, **named)),))

    def _query(self, aggregates: Aggregates) -> Query[Table_co]:
        for _, aggregate in aggregates:
            name = getattr(aggregate, "column", None)
            if name in self._written:
                raise InvalidArgument(
                    f"{aggregate.typed}: the keys are written into {name!r}, in place of its "
                    f"values. Give the keys another name: group_by((...).alias('{name}_key'), ...)."
                )
        return Query(
            replace(self._groups, aggregates=_columns(aggregates, self._groups.table)), self._budget
        )


def _each(
    statistic: Callable[..., Aggregate],
    names: Sequence[str],
    typed: Sequence[object],
    named: Mapping[str, object],
) -> Aggregates:
    """A statistic of each of several columns. An argument that is a dict has the columns' own."""
    for argument in (*typed, *named.values()):
        if isinstance(argument, Mapping) and (
            other := [name for name in argument if name not in names]
        ):
            raise UnknownColumn(
                f"{statistic.__name__}: a dict names {other[0]!r}, which is not asked about."
            )

    def own(argument: object, name: str) -> object:
        return argument.get(name) if isinstance(argument, Mapping) else argument

    return tuple(
        (
            name,
            statistic(
                name,
                *(own(x, name) for x in typed),
                **{key: own(x, name) for key, x in named.items()},
            ),
        )
        for name in names
    )


def _columns(aggregates: Iterable[tuple[str, Aggregate]], table: Table) -> Aggregates:
    """The released columns that statistics ask for, with what the table
    declares where nothing was typed.
    """
    columns = (part for name, aggregate in aggregates for part in aggregate.columns(name))
    return tuple((name, completed(aggregate, table)) for name, aggregate in columns)
