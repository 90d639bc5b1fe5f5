"""Made-up tables of any kind: their rows, units and neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import narwhals as nw
import polars as pl

from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation, kind_of
from dpframe.plan.steps import Rows
from dpframe.theory.checks import Counts, Universe
from dpframe.theory.formulas.sensitivity import Relation

_KINDS = (nw.Implementation.PANDAS, nw.Implementation.POLARS, nw.Implementation.PYARROW)
Unit = str | tuple[str, ...] | list[str] | Rows
Table = Any  # of pandas, Polars or PyArrow
Owner = tuple[object, ...]  # the identifiers of one unit


def neighbours(table: Table, unit: Unit, *, exchange: Table = None) -> Iterator[Table]:
    """Every table that differs from this one in the rows of one unit.

    Input:  table: pandas DataFrame, Polars DataFrame or LazyFrame (which is collected), PyArrow
            Table, made up; unit as in `dpframe.protect`; exchange: a table of the same kind and
            columns, whose units take the place of one
    Output: tables of the same kind. Without exchange ("add-remove"): each unit's rows are gone,
            once; with `dp.Rows(k)` each set of 1 to k rows. With exchange ("replace"): each unit's
            rows are gone, and those of one unit of exchange, which is not among the others, stand
            at the end; with `dp.Rows(k)` sets of 1 to k rows of each. Rows without a unit stay
    Errors: InvalidArgument, UnknownColumn, UnsupportedOperation

    >>> import polars as pl
    >>> visits = pl.DataFrame({"user": [1, 1, 2, None], "spend": [3, 4, 5, 6]})
    >>> [rest["spend"].to_list() for rest in neighbours(visits, "user")]
    [[5, 6], [3, 4, 6]]
    >>> [other["spend"].to_list() for other in neighbours(visits, "user", exchange=visits)]
    [[5, 6, 3, 4], [3, 4, 6, 5]]
    """
    table = eager(table)
    height = len(owners_of(table, unit))
    sets = _sets(table, unit)
    if exchange is None:
        for _, leaving in sets:
            yield taken(table, _without(height, leaving))
        return
    others = eager(exchange)
    arriving = _sets(others, unit)
    here = {owner for owner, _ in sets if owner is not None}
    for owner, leaving in sets:
        rest = taken(table, _without(height, leaving))
        for newcomer, come in arriving:
            if owner is None or newcomer == owner or newcomer not in here:
                yield joined(rest, taken(others, come))


def _without(height: int, leaving: Sequence[int]) -> list[int]:
    rest = set(range(height)) - set(leaving)
    return sorted(rest)


def _sets(table: Table, unit: Unit) -> list[tuple[Owner | None, list[int]]]:
    """The sets of rows of one unit: its own, or with `dp.Rows(k)` any 1 to k rows."""
    owners = owners_of(table, unit)
    if isinstance(unit, Rows):
        sizes = range(1, min(unit.max_rows, len(owners)) + 1)
        return [
            (None, list(rows)) for size in sizes for rows in combinations(range(len(owners)), size)
        ]
    places: dict[Owner, list[int]] = {}
    for place, owner in enumerate(owners):
        if owner is not None:
            places.setdefault(owner, []).append(place)
    return list(places.items())


def owners_of(table: Table, unit: Unit) -> list[Owner | None]:
    """The unit of each row; None for a row without one, and for all rows with `dp.Rows(k)`."""
    names: list[str] = []
    match unit:
        case Rows():
            return [None] * len(table)
        case str():
            names = [unit]
        case tuple() | list():
            names = list(unit)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgument("unit= is the name of a column, a tuple of names, or dp.Rows(k).")
    frame = _frame(table)
    for name in names:
        if name not in frame.columns:
            have = ", ".join(map(str, frame.columns))
            raise UnknownColumn(f"unit={name!r}: there is no such column. Columns: {have}.")
    rows = zip(*(frame[name].to_list() for name in names), strict=True)
    return [None if any(_missing(part) for part in row) else row for row in rows]


def _missing(value: object) -> bool:
    return value is None or bool(value != value) or type(value).__name__ in ("NAType", "NaTType")


# Kinds of tables


def eager(table: Table) -> Table:
    """The table itself; a lazy one collected. Errors: UnsupportedOperation for what is no table."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and frame.implementation in _KINDS:
        return table
    raise UnsupportedOperation(
        "dpframe.audit takes pandas DataFrames, Polars DataFrames and LazyFrames and PyArrow "
        f"Tables, not {kind_of(table)}."
    )


def _frame(table: Table) -> nw.DataFrame[Any]:
    return nw.from_native(table, eager_only=True)


def taken(table: Table, places: Sequence[int]) -> Table:
    """Some rows of a table by their numbers, in this order; a number may repeat."""
    return nw.maybe_reset_index(_frame(table)[list(places)]).to_native()


def joined(first: Table, second: Table) -> Table:
    """The rows of two tables of one kind, one below the other. Errors: InvalidArgument."""
    both = [_frame(first), _frame(second)]
    if type(first) is not type(second) or both[0].columns != both[1].columns:
        raise InvalidArgument(
            "exchange= is a table of the same kind, with the same columns in the same order."
        )
    return nw.maybe_reset_index(nw.concat(both)).to_native()


def multisets(kinds: int, size: int) -> list[Counts]:
    """Every table of up to `size` rows, as how often each kind of row occurs.

    >>> multisets(2, 2)
    [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    """
    tables = [(0,) * kinds]
    for rows in range(1, size + 1):
        tables += Universe.of(range(kinds), rows, replacement=True)
    return tables


def pairs(
    tables: Sequence[Counts],
    owners: Sequence[Owner | None],
    relation: str,
    max_rows: int | None = None,
) -> Iterator[tuple[int, int]]:
    """Every two of the tables that are neighbours, as their numbers.

    Input:  tables: all up to some size, as `multisets` gives them; owners: the unit of each kind of
            row, None for a row without a unit; max_rows: with `dp.Rows(k)` the k, in place of
            owners
    Output: under add-remove (without the unit, with it); under replace two tables that each have
            one unit more than the same rest
    Bound:  complete: two neighbours have a common rest, and every rest is one of the tables

    >>> list(pairs(multisets(2, 1), [("a",), ("b",)], "replace"))
    [(1, 2)]
    """
    numbers = {counts: i for i, counts in enumerate(tables)}
    same_rest: dict[int, list[int]] = {}
    for i, counts in enumerate(tables):
        for rest in _rests(counts, owners, max_rows):
            same_rest.setdefault(numbers[rest], []).append(i)
    for rest_number, members in same_rest.items():
        yield from (
            combinations(members, 2)
            if relation == Relation.REPLACE
            else ((rest_number, i) for i in members)
        )


def _rests(
    counts: Counts, owners: Sequence[Owner | None], max_rows: int | None
) -> Iterator[Counts]:
    """The rest of a table without one unit, for each of its units."""
    if max_rows is not None:
        for leaving in product(*(range(count + 1) for count in counts)):
            if 1 <= sum(leaving) <= max_rows:
                yield tuple(count - less for count, less in zip(counts, leaving, strict=True))
        return
    present = dict.fromkeys(
        o for o, count in zip(owners, counts, strict=True) if count and o is not None
    )
    for owner in present:
        yield tuple(
            0 if whose == owner else count for count, whose in zip(counts, owners, strict=True)
        )
