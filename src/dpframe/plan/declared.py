"""Declarations of a table, which stand in for arguments that a question does not type.

Neighbours: those of the question.
Changes:  nothing that a question is made of but its arguments. A declared limit, bound or list of
            keys is put where the argument was left out, before the question is made; the question
            is then the one in which a person typed it. Its sensitivity, noise, price, name and
            charge are those of that question.
Bound:  that of the typed question. Its limits are enforced on the rows that reach it, its bounds by
            clipping, its keys by leaving out other rows. So nothing is assumed of the rows, and it
            does not matter whether they keep what was declared, or which step came between.
Source:     `dpframe.theory.formulas.sensitivity`, for the typed question.

What is typed takes the place of what is declared, argument by argument; it may be wider, unless a
policy file locks the entry: then it is refused here. (`dpframe.plan.steps.rewrites.UnderPolicy`
says why nothing that is not refused here weakens the file.) `frame.bound(...)` is typed too.
`limits=dp.Auto()` takes the place of all declared limits. A declared fact of a column belongs to
one version of it: a step that writes the column drops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from dpframe.errors import InvalidArgument, MissingBounds, PolicyExceeded
from dpframe.plan.columns import Auto, Bounds, Column, ColumnDefaults, Limits, Lock, Table
from dpframe.plan.scalars import listed, moment
from dpframe.plan.statistics import Aggregate, Count, CountDistinct, Sum
from dpframe.plan.totals import in_ticks
from dpframe.plan.types import TIMES, Kind

# the arguments of a statistic that may be declared: which argument names their column, and what
# they are
_OF = {
    "bounds": ("column", "bounds"),
    "keys": ("column", "keys"),
    "bounds_beside": ("beside", "bounds"),
    "weight_bounds": ("weights", "bounds"),
}


@dataclass(frozen=True)
class Declared:
    """Declarations of a table: limits of one unit, bounds and keys of
    columns, least units of a group.
    """

    limits: Limits = field(default_factory=Limits)
    columns: Mapping[str, ColumnDefaults] = field(default_factory=dict)
    min_units: int | None = None

    def arguments(self, *, short: bool = False) -> str:
        """The arguments as they were typed, each after a comma;
        with `short`, long lists are cut.
        """
        bounds = {
            name: tuple(d.bounds) if isinstance(d.bounds, Bounds) else d.bounds
            for name, d in self.columns.items()
            if d.bounds is not None
        }
        keys = [
            f"{name!r}: {listed(d.keys) if short else list(d.keys)}"
            for name, d in self.columns.items()
            if d.keys is not None
        ]
        parts = [
            self.limits.typed,
            f"bounds={bounds}" if bounds else "",
            f"keys={{{', '.join(keys)}}}" if keys else "",
        ]
        parts.append(f"min_units={self.min_units}" if self.min_units else "")
        return "".join(f", {part}" for part in parts if part)


def limits_of(typed: Limits, table: Table, *, groups: bool = False) -> Limits:
    """The limits of a question: the typed ones, and the declared ones in
    place of those that were not typed.

    Input:  groups: whether the question takes limits on groups; else only rows have a limit

    >>> from dpframe.plan.columns import Auto
    >>> table = Table({}, (), "add-remove", defaults=Limits(max_rows=20, max_groups=3))
    >>> limits_of(Limits(max_rows=50), table, groups=True).typed, limits_of(Limits(), table).typed
    ('max_rows=50, max_groups=3', 'max_rows=20')
    >>> limits_of(Limits(auto=Auto()), table).typed
    ''
    """
    check_limits(typed, table)
    if typed.auto is not None:
        return typed
    return typed.or_else(table.defaults if groups else Limits(table.defaults.max_rows))


def completed(aggregate: Aggregate, table: Table, *, chosen: bool = True) -> Aggregate:
    """A statistic with the declared bounds and keys of its columns in
    place of those that were not typed.

    Input:  chosen: whether a release may choose bounds, as dp.Auto() declares
    Errors: PolicyExceeded for what was typed beyond a policy file
    """
    check_limits(aggregate.limits, table, aggregate.limited)
    check_unit_bounds(aggregate, table)
    parts = {
        name: completed(getattr(aggregate, name), table)
        for name in ("top", "bottom")
        if hasattr(aggregate, name)
    }
    if getattr(aggregate, "unit_bounds", None) is None:
        for argument, (of, fact) in _OF.items():
            name = getattr(aggregate, of, None)
            column = None if name is None else table.columns.get(name)
            if column is not None and getattr(aggregate, argument, table) is None:
                declared = getattr(column.defaults, fact)
                if chosen or not isinstance(declared, Auto):
                    parts[argument] = declared
            elif column is not None:
                typed = getattr(aggregate, argument, None)
                check_fact(column, fact, typed, f"{aggregate.typed}: {fact} of {name!r}")
    return replace(aggregate, **parts) if parts else aggregate  # type: ignore[arg-type]


def facts_of(aggregate: Aggregate, table: Table) -> Iterator[tuple[str, str]]:
    """The bounds and keys of a statistic that are as declared:
    by which line, and in words, `bounds of 'spend'`.
    """
    for name, value, fact in used_by(aggregate):
        if (
            fact != "unit_bounds"
            and name in table.columns
            and value == getattr(table.columns[name].defaults, fact)
        ):
            yield table.columns[name].defaults.origin_of(fact), f"{fact} of {name!r}"


def used_by(aggregate: Aggregate) -> Iterator[tuple[Any, object, str]]:
    """The bounds and keys of a statistic: of which column, the value, and
    "bounds", "unit_bounds" or "keys".
    """
    for part in ("top", "bottom"):
        if hasattr(aggregate, part):
            yield from used_by(getattr(aggregate, part))
    for name, (of, fact) in {**_OF, "unit_bounds": ("column", "unit_bounds")}.items():
        if getattr(aggregate, name, None) is not None:
            yield getattr(aggregate, of, None), getattr(aggregate, name), fact
    yield from ((name, bounds, "bounds") for name, bounds in getattr(aggregate, "among", ()))


def min_units_of(typed: int | None, table: Table, *, found: bool, call: str) -> int | None:
    """The fewest units of a group of a question: the typed number, or else the declared one.

    Input:  found: whether groups are found in the data. Of listed groups, which are all released,
            nothing is declared
    Errors: InvalidArgument for a number that was typed with listed keys
    """
    if not found and typed is not None:
        raise InvalidArgument(
            f"{call}: min_units= is about keys that are found in the data, and listed keys are all "
            "released. Leave it out, and hide small numbers after the release, for free: "
            f"release(...).suppress(below={typed})."
        )
    for lock in table.locks:
        if typed is not None and typed < (lock.min_units or 1):
            raise PolicyExceeded(
                f"{call}: min_units={typed} is below min_units={lock.min_units} of {lock.file}, "
                "which no call may lower. Leave it out, or type a larger one."
            )
    return table.min_units if found and typed is None else typed


# What a policy file locks


def check_limits(typed: Limits, table: Table, call: str = "") -> None:
    """Refuse limits on one unit that are wider than those of a policy file.
    Errors: PolicyExceeded.
    """
    for lock in table.locks:
        for name, most in vars(lock.limits).items():
            limit = getattr(typed, name)
            if most is not None and limit is not None and limit > most:
                raise PolicyExceeded(
                    f"{call}{call and ': '}{name}={limit} is above {name}={most} of {lock.file}, "
                    "which no call may widen. Leave it out, or type a smaller one."
                )


def check_fact(column: Column | None, fact: str, typed: Any, call: str) -> None:
    """Refuse bounds that reach beyond those of a policy file, and keys that it does not list.

    Input:  fact: "bounds" or "keys"; typed: Bounds or dp.Auto, or a list of keys; None if nothing
            was typed
    Errors: PolicyExceeded, which shows no cell: bounds and keys are typed, and those of the file
            are public
    """
    if column is None or typed is None or fact not in column.defaults.locked:
        return
    assert column.defaults.file is not None
    said, file = getattr(column.defaults.file, fact), column.defaults.file.origin
    if isinstance(typed, Bounds):
        (low, high), (least, most) = (in_ticks(bounds, column, call) for bounds in (typed, said))
        if low < least or high > most:
            raise PolicyExceeded(
                f"{call} reach beyond those of {file}, {said}, which no call may widen. Leave them "
                "out, or type narrower ones."
            )
    elif fact == "keys" and (odd := [key for key in typed if key not in said]):
        raise PolicyExceeded(
            f"{call}: {file} does not list {listed(odd)}, and no call may add keys. Leave keys= "
            f"out, or list some of {listed(said)}."
        )


def check_levels(
    table: Table, by: Sequence[str], levels: Sequence[Sequence[Any]], call: str
) -> None:
    """Refuse listed groups whose keys a policy file does not list. Errors: PolicyExceeded."""
    for name, level in zip(by, levels, strict=True):
        check_fact(table.columns.get(name), "keys", level, f"{call}: keys of {name!r}")


def _most_rows(table: Table) -> tuple[int, str] | None:
    """The fewest rows of one unit that a policy file lets count, and the file."""
    return min(
        ((lock.limits.max_rows, lock.file) for lock in table.locks if lock.limits.max_rows),
        default=None,
    )


def _most_in_total(name: str, bounds: Any, table: Table, rows: int) -> Bounds | None:
    """The total of so many values that lie within bounds, and within those of their
    column; None if these are open.
    """
    domain = table.column(name, "sum").domain
    ends: Any = bounds if isinstance(bounds, Bounds) else domain.bounds
    if ends is None:
        return Bounds(0, rows) if domain.kind == Kind.BOOLEAN else None
    times = domain.kind in TIMES and ends is domain.bounds
    low: Any
    high: Any
    low, high = (moment(end, domain.dtype) for end in ends) if times else ends
    zero = low - low
    return Bounds(min(low, zero) * rows, max(high, zero) * rows)


def check_unit_bounds(aggregate: Aggregate, table: Table) -> None:
    """Refuse bounds of one unit's total that more rows than a policy file allows would fill.
    Errors: PolicyExceeded.
    """
    ends, rows = getattr(aggregate, "unit_bounds", None), _most_rows(table)
    if not isinstance(aggregate, Sum) or ends is None or rows is None or not table.unit:
        return
    most = _most_in_total(aggregate.column, aggregate.bounds, table, rows[0])
    if most is None or ends.lower < most.lower or ends.upper > most.upper:
        within = (
            f"within {most}, which is {rows[0]} rows at their bounds"
            if most
            else "beside bounds= of each row"
        )
        raise PolicyExceeded(
            f"{aggregate.typed}: {rows[1]} lets {rows[0]} rows of one unit count. Type "
            f"unit_bounds= {within}; or leave it out."
        )


def within_rows(
    features: Iterable[tuple[str, Aggregate]], table: Table
) -> Iterator[tuple[str, Any, Any]]:
    """The features of a unit that more rows than a policy file allows could move, and
    the ends that they are held to.

    Bound:  a number of rows, or of values, counts as the most rows at most; a sum as that of so
            many rows at their bounds. Other features are one value, or a mean of values, whatever
            the number of rows
    Errors: MissingBounds for a sum of values without bounds
    """
    rows = _most_rows(table)
    for name, feature in features if rows is not None else ():
        assert rows is not None
        match feature:
            case Count() | CountDistinct():
                yield name, 0, rows[0]
            case Sum():
                most = _most_in_total(feature.column, feature.bounds, table, rows[0])
                if most is None:
                    raise MissingBounds(
                        f"per_unit({name}={feature.typed}): {rows[1]} lets {rows[0]} rows of one "
                        "unit count, so a sum over its rows needs the bounds of each: "
                        f"dp.sum({feature.column!r}, bounds=(0, 100))."
                    )
                yield name, *most


def locks_of(tables: Sequence[Table]) -> tuple[Lock, ...]:
    """The policy files of several tables, each once."""
    locks: list[Lock] = []
    for table in tables:
        locks += [lock for lock in table.locks if lock not in locks]
    return tuple(locks)


def in_all(tables: Sequence[Table]) -> Limits:
    """The limits that several tables declare alike."""
    return reduce(_alike, (table.defaults for table in tables))


def _alike(first: Limits, second: Limits) -> Limits:
    return Limits(
        **{name: limit for name, limit in vars(first).items() if limit == getattr(second, name)}
    )


def most_of(tables: Iterable[Table]) -> int | None:
    """The largest of the least numbers of units that some tables declare."""
    return max((table.min_units for table in tables if table.min_units), default=None)


def beside(first: Table, second: Table) -> Limits:
    """The declared limits of one table that hold for its join with another:
    where the other has one row of a unit.

    Each row of the join is then one row of the first, or of the second. Where both may have several
    rows of a unit, the join may have their product, of which nothing is declared.
    """
    for one, many in ((second, first), (first, second)):
        if one.single or one.defaults.max_rows == 1:
            return many.defaults
    return Limits()


def columns_in_all(tables: Sequence[Table]) -> dict[str, ColumnDefaults]:
    """Declarations of each column that several tables with the same columns have alike."""
    return {
        name: _shared(table.columns[name].defaults for table in tables)
        for name in tables[0].columns
    }


def _shared(defaults: Iterable[ColumnDefaults]) -> ColumnDefaults:
    first, *others = defaults
    return ColumnDefaults(
        first.bounds if all(other.bounds == first.bounds for other in others) else None,
        first.keys if all(other.keys == first.keys for other in others) else None,
        first.origin,
        *((first.file, first.locked) if all(other == first for other in others) else ()),
    )
