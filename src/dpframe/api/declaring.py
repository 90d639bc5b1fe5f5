"""`dp.protect`: whose rows they are, what pays for releases, and what the table declares once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

from dpframe import engine
from dpframe.api.arguments import (
    OwnLimits,
    Pair,
    read_bounds,
    read_limits,
    read_mapping,
    read_min_units,
    read_names,
)
from dpframe.api.frame import PrivateFrame
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.settings import check_budget, check_subject
from dpframe.budget import is_text
from dpframe.errors import (
    InvalidArgument,
    InvalidBounds,
    UnknownColumn,
    UnsupportedOperation,
    WrongType,
)
from dpframe.plan import (
    TIMES,
    Auto,
    Bounds,
    Kind,
    Limits,
    Table,
    Unread,
    check_choice,
    kind,
    read_keys,
    show,
)
from dpframe.plan.columns import Column, ColumnDefaults
from dpframe.plan.declared import Declared, check_fact, check_limits, min_units_of
from dpframe.plan.policy import Policy
from dpframe.plan.steps import Rows, Source
from dpframe.plan.steps.rewrites import UnderPolicy
from dpframe.plan.totals import in_ticks
from dpframe.release import subject_words
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import explained

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Declarations(OwnLimits, total=False):
    """Declarations of a table: limits on one unit, bounds and public keys of
    columns, least units of a group.
    """

    bounds: Mapping[str, Pair] | None
    keys: Mapping[str, Sequence[Any]] | None
    min_units: int | None
    people: str | None


Unit = str | tuple[str, ...] | list[str] | Rows | None


# What type checkers know: the kind of table that a release gives back. At run time there is one
# function, the last one.
@overload
def protect(
    frame: pd.DataFrame,
    unit: Unit = None,
    budget: Any = None,
    neighbors: str | None = None,
    data: Any = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    **declared: Unpack[Declarations],
) -> PrivateFrame[pd.DataFrame]: ...
@overload
def protect(
    frame: pl.DataFrame | pl.LazyFrame,
    unit: Unit = None,
    budget: Any = None,
    neighbors: str | None = None,
    data: Any = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    **declared: Unpack[Declarations],
) -> PrivateFrame[pl.DataFrame]: ...
@overload
def protect(
    frame: Any,
    unit: Unit = None,
    budget: Any = None,
    neighbors: str | None = None,
    data: Any = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    **declared: Unpack[Declarations],
) -> PrivateFrame[Any]: ...
@explained
def protect(
    frame: Any,
    unit: Unit = None,
    budget: Any = None,
    neighbors: str | None = None,
    data: Any = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    **declared: Unpack[Declarations],
) -> PrivateFrame[Any]:
    """Protect a table: from here on every answer about it is differentially private.

    Input:  frame: pandas or Modin DataFrame, Polars DataFrame or LazyFrame, PyArrow Table, Dask
            DataFrame, DuckDB relation, Ibis table or Spark DataFrame. Rows of a database stay
            there: only exact totals come back. A lazy table or a query is read at each release, and
            must give the same rows each time; with a `limit` without an order it may not. unit: the
            column, or tuple of columns, that says whose row it is; or `dp.Rows(k)` if no column
            does and one person has at most k rows; budget: what releases are paid from; neighbors:
            "add-remove" (one unit joins or leaves; the default) or "replace" (one unit's rows are
            exchanged for another's, "bounded DP"); data: a label of these rows, so that a name is
            never answered for other rows: a text or a date such as "2026-01", or the `pathlib.Path`
            of their file, which a lazy Polars table brings. policy: a `dp.Policy`, or the path of
            its file, which says the other arguments; what is typed may only be stricter. Declared
            once for every question: max_rows, max_groups, max_rows_per_group, limits on one unit
            (counts), as in `group_by`; bounds: a dict from columns to pairs (column unit), or to
            dp.Auto(), which has each release choose them; keys: a dict from columns to lists,
            chosen without looking at the data; min_units: the fewest units of a group whose key is
            found in the data; people: a name for the units, such as "patients", where several
            tables have them under other names of the column; one budget then pays for all. In each
            table the unit must be a patient, not a visit
    Output: PrivateFrame, which never changes, without rows whose unit is null; as from `df.dp(...)`
    Bound:  a question enforces each declared limit, bound and list of keys that it does not type,
            so rows need not keep them: see `dpframe.plan.declared`, and for a policy
            `dpframe.plan.steps.rewrites.UnderPolicy`. Releases from one budget are about
            neighbouring collections of tables: one unit's rows in all tables that name these people
            join, leave or are exchanged at once. Each reads rows of this unit, so prices add up
    Warns:  DpFrameWarning when another budget of the same ledger is about the same units
    Errors: BudgetMismatch for a budget about units of another name; InvalidArgument, UnknownColumn,
            WrongType, UnsupportedOperation, PolicyExceeded; nothing of the table is read

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]})
    >>> frame = dp.protect(visits, unit="user", budget=dp.Budget(epsilon=1.0))
    >>> frame.columns, frame.unit
    (['user', 'spend'], ('user',))
    >>> out = frame.sum("spend", bounds=(0, 10), max_rows=2).release(epsilon=0.5)
    >>> out.table.shape, frame.budget.remaining
    ((1, 1), Loss(epsilon=0.5, delta=0.0))
    >>> declared = dp.protect(visits, unit="user", max_rows=2, bounds={"spend": (0, 10)})
    >>> declared.sum("spend").sensitivity["spend"].l1
    20
    """
    people = read_people(declared.pop("people", None))
    file = None if policy is None else Policy.read(policy)
    if file is not None:
        unit, neighbors, people = file.whose(unit, neighbors, people)
    source = replace(_source(frame, unit, neighbors, data), people=people)
    typed, account = _declared(source.table, **declared), check_budget(budget)
    step = replace(source, declared=typed) if file is None else _governed(source, file, typed)
    check_subject(account, subject_words(step.table))
    return PrivateFrame(step, account)


def read_people(people: object) -> str | None:
    """The name of the units, as typed. Errors: InvalidArgument."""
    if people is None or is_text(people):
        return people
    raise InvalidArgument(
        "people= is a name for the units of several tables, such as people='patients'."
    )


def _governed(source: Source, file: Policy, typed: Declared) -> UnderPolicy:
    """A table under a policy file, with what was typed beside it.
    Errors: PolicyExceeded, those of `protect`.
    """
    table, lock, call = source.table, file.lock(), f"{file.name}: "
    if (
        isinstance(source.unit, Rows)
        and (said_limits := lock.limits.or_else(lock.defaults)) != Limits()
    ):
        raise UnsupportedOperation(
            f"{call}{said_limits.typed}: without an identifier column nobody can tell whose rows "
            f"to limit; {source.unit.typed} is the limit. Leave the limits out of the file, or "
            "name the column in unit."
        )
    said: dict[str, ColumnDefaults] = {}
    for name in dict.fromkeys((*file.bounds, *file.keys)):
        column = table.column(name, f"{call}[bounds] and [keys]")
        ends, listed = file.bounds.get(name), file.keys.get(name)
        said[name] = ColumnDefaults(
            None if ends is None else _bounds(column, name, tuple(ends.value), call),
            None
            if listed is None
            else _keys(column, name, listed.value.of(column.domain, call), call),
            file.name,
            locked=tuple(
                fact
                for fact, entry in zip(_FACTS, (ends, listed), strict=True)
                if entry and not entry.default
            ),
        )
    columns: dict[str, ColumnDefaults] = {}
    for name, own in said.items():
        was = typed.columns.get(name, ColumnDefaults())
        column = replace(table.columns[name], defaults=ColumnDefaults(file=own, locked=own.locked))
        check_fact(column, "bounds", was.bounds, f"protect: bounds of {name!r}")
        check_fact(column, "keys", was.keys, f"protect: keys of {name!r}")
        bounds, keys = was.bounds or own.bounds, was.keys or own.keys
        columns[name] = ColumnDefaults(bounds, keys, file=own, locked=own.locked)
    governed = Table({}, (), source.relation, locks=(lock,))
    check_limits(typed.limits, governed, "protect")
    least = min_units_of(typed.min_units, governed, found=True, call="protect")
    locked = {
        fact: {n: getattr(own, fact) for n, own in said.items() if fact in own.locked}
        for fact in _FACTS
    }
    return UnderPolicy(
        replace(source, declared=replace(typed, min_units=least)),
        lock,
        locked["bounds"],
        locked["keys"],
        columns,
    )


_FACTS = ("bounds", "keys")


def _source(frame: Any, unit: Unit, neighbors: str | None, data: Any) -> Source:
    """The table of whose rows a plan is, with its unit. Errors: those of `protect`."""
    if isinstance(frame, (PrivateFrame, PrivateGroupBy)):
        raise InvalidArgument("This frame is protected already.")
    neighbors = Relation.ADD_REMOVE if neighbors is None else neighbors
    check_choice(neighbors, tuple(Relation), "neighbors")
    held, origin = engine.adopt(frame), engine.read_origin(data)
    match unit:
        case None | str("") | []:
            raise InvalidArgument(
                "Say whose privacy is at stake: dp(unit='user_id') names the column that "
                "identifies a person; dp(unit=dp.Rows(1)) says that there is none and that one "
                "person has at most one row."
            )
        case Rows():
            whose: tuple[str, ...] | Rows = unit
        case _:
            whose = read_names([unit], "unit=", held.columns)
            if len(set(whose)) != len(whose):
                raise InvalidArgument("unit=: a column is named twice.")
    source = Source(held, held.schema, whose, Relation(neighbors), origin)
    try:
        _ = source.table
    except UnknownColumn as error:
        pandas = held.kind == "pandas" and held.engine == "polars"
        hint = " If it is the index of a pandas table, call reset_index() first." if pandas else ""
        unread = [
            f" {name!r} is {show(domain.dtype)}."
            for name, domain in held.schema
            if isinstance(domain.dtype, Unread)
        ]
        message = f"{error}{hint}{''.join(unread[:1])}"
    else:
        return source
    raise UnknownColumn(message)


def _declared(
    table: Table,
    bounds: object = None,
    keys: object = None,
    min_units: object = None,
    **limits: Any,
) -> Declared:
    """The declarations of a table, checked. Errors: those of `protect`."""
    ends = {} if bounds is None else read_mapping(bounds, "protect: bounds=")
    together = (
        [name for name in keys if isinstance(name, tuple)] if isinstance(keys, Mapping) else []
    )
    lists = {} if keys is None or together else read_mapping(keys, "protect: keys=")
    if any(isinstance(limit, Auto) for limit in limits.values()):
        raise InvalidArgument(
            "protect: a declared limit is a whole number. To have limits chosen inside each "
            "release, type dp(...).bound(limits=dp.Auto())."
        )
    if together:
        names = ", ".join(map(repr, together[0]))
        raise InvalidArgument(
            "protect: keys= has lists of single columns. Combinations of keys are typed in a "
            f"question, as a list of tuples or a public table: group_by({names}, keys=...)."
        )
    columns = {
        name: ColumnDefaults(
            _bounds(table.column(name, "protect: bounds="), name, ends[name])
            if name in ends
            else None,
            _keys(table.column(name, "protect: keys="), name, lists[name])
            if name in lists
            else None,
        )
        for name in dict.fromkeys((*ends, *lists))
    }
    return Declared(read_limits(**limits), columns, read_min_units(min_units))


def _bounds(column: Column, name: str, typed: object, where: str = "protect: ") -> Bounds | Auto:
    """Declared bounds, as they were typed, or dp.Auto(). Errors: InvalidBounds, WrongType."""
    call, family = f"{where}bounds of {name!r}", kind(column.domain.dtype)
    if family not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, *TIMES):
        raise WrongType(
            f"{call}: numbers and times have bounds, not a column of type "
            f"{show(column.domain.dtype)}."
        )
    bounds = read_bounds(typed, call)
    if bounds is None:
        raise InvalidBounds(f"{call}: type a pair, such as (0, 100), or dp.Auto().")
    if isinstance(bounds, Bounds):
        in_ticks(bounds, column, call)
    return bounds


def _keys(column: Column, name: str, typed: object, where: str = "protect: ") -> tuple[Any, ...]:
    """Declared keys. Errors: InvalidArgument, WrongType."""
    read = (
        None
        if typed is None
        else read_keys(typed, (name,), (column.domain,), f"{where}keys of {name!r}")
    )
    if read is None:
        raise InvalidArgument(f"protect: list the keys of {name!r}, keys={{{name!r}: [...]}}.")
    return read.levels[0]
