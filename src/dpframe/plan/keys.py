"""Public keys: the groups that the user listed.
They appear in the released table whatever the data holds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan.columns import ColumnDomain, Table
from dpframe.plan.scalars import (
    GIVE,
    Scalar,
    check_scalar,
    check_text,
    in_order,
    listed,
    moment,
    number,
    ticks,
)
from dpframe.plan.types import TIMES, Kind, integer_range, kind, show, time_unit, zone_of
from dpframe.usage import is_list, warn

_LIBRARIES = {
    "pandas": "pandas",
    "polars": "Polars",
    "numpy": "NumPy",
    "pyarrow": "PyArrow",
    "modin": "Modin",
}
_WORDS = {"ndarray": "array"}


def warn_of_computed_keys(keys: object, asked: str) -> None:
    """Warn of keys in a column or array of a dataframe library, alone or in a dict.
    A list, tuple or range is public.

    Input:  keys as they were typed; asked, the verb with its columns
    Bound:  nothing is read: the types of what was typed decide. Keys that were computed from the
            protected column show which values it has, also those that one unit alone has, and no
            noise hides that
    Warns:  DpFrameWarning, once for a call

    A public dataframe is a list of keys, and no warning. An index of times with a fixed step, as
    `pd.date_range` makes it, is a range.
    """
    listed = keys.items() if isinstance(keys, Mapping) else [(None, keys)]
    for name, values in listed:
        if _is_column(values) and getattr(values, "freq", None) is None:
            of = "" if name is None else f" of {name!r}"
            warn(
                f"{asked}: the keys{of} are {_described(values)}. If they were computed from the "
                "protected column, the table shows which values it has, and no noise hides that. "
                "If they are public, type them as a list: keys=['Bonn', 'Kiel'], or "
                "keys=list(...). Keys that only the data tell are found by group_by without "
                "keys=, and release(epsilon=1.0, delta=1e-6)."
            )
            return


def warn_of_computed_bounds(bounds: object, asked: str) -> None:
    """Warn of bounds in a column or array, or of NumPy's numbers, as
    `df["wage"].max()` gives them in pandas.

    Input:  bounds as they were typed: a pair, or anything; asked, the verb with its column
    Bound:  nothing is read. Bounds that were computed from the protected column are values of
            single units
    Warns:  DpFrameWarning, once for a call
    """
    ends = (
        [bounds]
        if _is_column(bounds)
        else list(bounds)
        if isinstance(bounds, (tuple, list))
        else []
    )
    computed = next((end for end in ends if _is_number(end) or _is_column(end)), None)
    if computed is not None:
        what = f"are {_described(computed)}" if _is_column(computed) else "hold a number of NumPy"
        warn(
            f"{asked}: the bounds {what}. If they were computed from the protected column, as "
            "df['x'].max() is, they are values of single units, and no noise hides them. If they "
            "are public, type them as numbers: bounds=(0, 100). Bounds that only the data tell "
            "are chosen privately inside the release: bounds=dp.Auto()."
        )


def warn_of_public_units(other: object, table: Table, on: Iterable[str]) -> None:
    """Warn of a table that is joined as public on the columns that identify the unit:
    it may have a row for each unit.

    Input:  other: the table as it was typed; table: the protected one; on: columns that both have
    Bound:  nothing is read: the names and the type of what was typed decide. Only `table` is
            protected by the join
    Warns:  DpFrameWarning; a dict of columns is typed by hand, and no warning
    """
    ids = {column.id for column in table.unit}
    if (
        not ids
        or isinstance(other, Mapping)
        or not ids <= {table.column(name, "join").id for name in on}
    ):
        return
    warn(
        "join: on= holds the columns that identify the unit, and the other table is taken as "
        "public: no noise hides its rows. If it tells about single units, protect it too: "
        "join(other.dp(unit=..., budget=budget), on=...), with the unit and the budget of this "
        "table. If it is public, give it as a dict of columns."
    )


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _is_number(value: object) -> bool:
    """Whether a value is a number of NumPy. Its times are typed, as Python's are."""
    return isinstance(value, (np.integer, np.floating)) and not isinstance(value, np.timedelta64)


def _is_column(value: Any) -> bool:
    """Whether a value is a series, an index or an array of a dataframe library, and no table."""
    listed = (
        _library(value) in _LIBRARIES
        and isinstance(value, Iterable)
        and not hasattr(value, "columns")
    )
    return listed and getattr(value, "ndim", 1) == 1


def _described(value: object) -> str:
    library, name = _LIBRARIES[_library(value)], type(value).__name__
    word = _WORDS.get(name, name)
    return f"{'an' if library[0] in 'aeiou' else 'a'} {library} {word}"


Key = tuple[Scalar | None, ...]


@dataclass(frozen=True)
class Keys:
    """The listed groups of some columns: every combination of `levels`, or exactly `rows`."""

    levels: tuple[tuple[Scalar | None, ...], ...]
    rows: tuple[Key, ...] | None = None

    @property
    def typed(self) -> str:
        """The name of the keys in a description; the keys themselves stand beside it."""
        return "listed"

    @cached_property
    def nullable(self) -> tuple[bool, ...]:
        """For each column, whether null is one of its keys."""
        return tuple(None in level for level in self.levels)

    @property
    def size(self) -> int:
        """Number of groups."""
        return math.prod(map(len, self.levels)) if self.rows is None else len(self.rows)

    def __iter__(self) -> Any:
        return iter(product(*self.levels) if self.rows is None else self.rows)

    @classmethod
    def of_rows(cls, rows: Sequence[Key]) -> Keys:
        """Exactly these combinations."""
        levels = tuple(tuple(dict.fromkeys(values)) for values in zip(*rows, strict=True))
        return cls(levels, tuple(rows))


def read_keys(
    keys: object, by: Sequence[str], domain: Sequence[ColumnDomain], call: str
) -> Keys | None:
    """The public keys of a grouping: the typed ones, and those of columns whose type fixes them.

    Input:  keys: None, a list (one column), a dict of lists (every combination), a list of tuples,
            or a public dataframe with the grouping's columns; by, domain: names and domains of the
            grouping's columns
    Output: Keys, or None when some column has no listed keys, so that groups must pass a threshold
    Warns:  DpFrameWarning for keys whose type shows that they were computed; see
            `warn_of_computed_keys`
    Errors: InvalidArgument or WrongType for keys that are empty, listed twice, or not of the
            column's type
    """
    groups = _read(keys, by, domain, call)
    warn_of_computed_keys(keys, call)
    return groups


def _read(
    keys: object, by: Sequence[str], domain: Sequence[ColumnDomain], call: str
) -> Keys | None:
    own_keys = [_own_keys(f) for f in domain]
    if keys is None:
        return (
            Keys(tuple(k for k in own_keys if k is not None))
            if all(k is not None for k in own_keys)
            else None
        )
    if hasattr(keys, "columns") and not isinstance(keys, Mapping):
        keys = _frame_rows(keys, by, call)
    if isinstance(keys, Mapping):
        if extra := [name for name in keys if name not in by]:
            raise InvalidArgument(f"{call}: keys= names {extra[0]!r}, which is not grouped by.")
        levels = []
        for name, fact, own in zip(by, domain, own_keys, strict=True):
            level = _level(keys[name], fact, name, call) if name in keys else own
            if level is None:
                raise InvalidArgument(
                    f"{call}: keys= lists no keys for {name!r}; give a list for each column."
                )
            levels.append(level)
        return Keys(tuple(levels))
    if len(by) == 1:
        return Keys((_level(keys, domain[0], by[0], call),))
    return Keys.of_rows(_rows(keys, by, domain, call))


def read_other(label: object, by: Sequence[str], domain: Sequence[ColumnDomain], call: str) -> Key:
    """The key of the row that collects suppressed groups:
    one value for all columns, or a tuple with one for each.

    Output: a value of each column's type, or null
    Errors: WrongType for one that the column cannot hold; InvalidArgument for a tuple of another
            length
    """
    parts = tuple(label) if isinstance(label, (tuple, list)) else (label,) * len(by)
    if len(parts) != len(by):
        raise InvalidArgument(
            f"{call}: other= is one value, or a tuple with one for each of {', '.join(by)}."
        )
    return tuple(
        _label(part, fact, name, call) for part, fact, name in zip(parts, domain, by, strict=True)
    )


def _label(part: object, domain: ColumnDomain, name: str, call: str) -> Scalar | None:
    try:
        return _key(part, domain, name, call)
    except WrongType:
        pass
    raise WrongType(
        f"{call}: other= is no value of {name!r} ({show(domain.dtype)}). Give one, such as "
        "other=-1 for numbers, or a tuple with one for each column, in which None stands for null."
    )


def _own_keys(domain: ColumnDomain) -> tuple[Scalar | None, ...] | None:
    return (False, True) if domain.keys is None and domain.kind == Kind.BOOLEAN else domain.keys


def _level(values: object, domain: ColumnDomain, name: str, call: str) -> tuple[Scalar | None, ...]:
    if not is_list(values):
        raise InvalidArgument(
            f"{call}: the keys of {name!r} are a list of values, such as ['a', 'b']."
        )
    level = _column(tuple(in_order(values)), domain, name, call)
    if not level:
        raise InvalidArgument(f"{call}: keys= lists no key for {name!r}.")
    if len(set(level)) != len(level):
        raise InvalidArgument(f"{call}: keys= lists a key of {name!r} twice.")
    return level


def _column(
    values: tuple[Any, ...], domain: ColumnDomain, name: str, call: str
) -> tuple[Scalar | None, ...]:
    """The keys of one column, of which each is a value that some row may have.
    Errors: InvalidArgument, WrongType.
    """
    level, possible = _level_of(values, domain, name, call), domain.possible
    because = f" after {domain.origin}" if domain.origin else ""
    if domain.bounds is not None and not _all_within(level, domain):
        low, high = _ends(domain)
        listed = (
            f", such as keys={{{name!r}: range({low}, {high + 1})}}" if isinstance(low, int) else ""
        )
        raise InvalidArgument(
            f"{call}: {name!r} is from {number(low)} to {number(high)}{because}, and some of its "
            f"keys lie outside, where no row is. List keys from {number(low)} to "
            f"{number(high)}{listed}."
        )
    if possible is not None and not all(key is None or possible.holds(key) for key in level):
        raise InvalidArgument(
            f"{call}: no row can have some of the keys that are listed for {name!r}{because}. List "
            f"{possible.give}."
        )
    return level


def _ends(domain: ColumnDomain) -> tuple[Any, Any]:
    assert domain.bounds is not None
    low, high = domain.bounds
    if domain.kind in TIMES:
        return moment(low, domain.dtype), moment(high, domain.dtype)
    return (int(low), int(high)) if domain.kind == Kind.INTEGER else (low, high)


def _all_within(level: Sequence[Scalar | None], domain: ColumnDomain) -> bool:
    """Whether keys lie within the bounds of their column;
    those of true and false do, as they are.
    """
    listed: list[Any] = [key for key in level if key is not None]
    if not listed or domain.kind == Kind.BOOLEAN or domain.bounds is None:
        return True
    ends = [min(listed), max(listed)]
    if domain.kind in TIMES:
        ends = [ticks(end, domain.dtype, "keys") for end in ends]
    return bool(domain.bounds.lower <= ends[0] and ends[1] <= domain.bounds.upper)


def _level_of(
    values: tuple[Any, ...], domain: ColumnDomain, name: str, call: str
) -> tuple[Scalar | None, ...]:
    """The keys of one column; plain integers and texts, of which there may be
    millions, are checked together.
    """
    types, family = set(map(type, values)), domain.kind
    if types == {str} and family == Kind.STRING and domain.dtype != nw.Enum:
        texts: tuple[str, ...] = values
        check_text("".join(texts), f"{call}: keys of {name!r}")
        return texts
    if types == {int} and family == Kind.INTEGER:
        first, last = integer_range(domain.dtype)
        whole: tuple[int, ...] = values
        if max(first, -(2**63)) <= min(whole) and max(whole) <= min(last, 2**64 - 1):
            return whole
    return tuple(_key(value, domain, name, call) for value in values)


def _key(value: object, domain: ColumnDomain, name: str, call: str) -> Scalar | None:
    if (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in (
        "NAType",
        "NaTType",
    ):
        return None
    value = check_scalar(value, domain.dtype, f"{call}: keys of {name!r}")
    if value is None:
        return None
    family = domain.kind
    match value:
        case int() | float() | Decimal() if family == Kind.INTEGER:
            if value != int(value):
                raise WrongType(f"{call}: keys of {name!r} must be whole numbers.")
            first, last = integer_range(domain.dtype)
            if not first <= int(value) <= last:
                raise WrongType(
                    f"{call}: a key of {name!r} is not of its type, {show(domain.dtype)}."
                )
            return int(value)
        case int() | float() | Decimal() if family.real:
            return float(np.float32(value) if domain.dtype == nw.Float32 else value) + 0.0
    if family == Kind.OTHER:
        raise WrongType(f"{call}: a column of type {show(domain.dtype)} has no keys.")
    match value:
        case dt.datetime() if (value.tzinfo is None) != (zone_of(domain.dtype) is None):
            raise WrongType(
                f"{call}: keys of {name!r} must have a time zone just where the column has one."
            )
        case dt.datetime():
            _check_moment(value, domain.dtype, f"{call}: a key of {name!r}")
    if isinstance(domain.dtype, nw.Enum) and value not in domain.dtype.categories:
        raise WrongType(
            f"{call}: a key of {name!r} is not one of its Enum's categories, so no row has it. "
            f"Give some of {listed(domain.dtype.categories)}."
        )
    return value


def _check_moment(value: dt.datetime, dtype: Any, what: str) -> None:
    """Refuse a time that the column cannot hold: one that its clock skips,
    or one between two of its ticks.
    """
    if (value.tzinfo is not None and not 1 < value.year < 9999) or (
        time_unit(dtype) == "ns" and not 1678 <= value.year <= 2261
    ):
        raise WrongType(
            f"{what} is outside of the column's type, {show(dtype)}. Give {GIVE[kind(dtype)]}."
        )
    if value.tzinfo is not None:
        back = value.astimezone(dt.UTC).astimezone(value.tzinfo).replace(tzinfo=None)
        if back != value.replace(tzinfo=None):
            raise WrongType(
                f"{what} is a time that its time zone skips. Give it in UTC: "
                "tzinfo=datetime.timezone.utc."
            )
    if time_unit(dtype) in ("ms", "s") and value.microsecond % 1000:
        raise WrongType(
            f"{what} is finer than the column's type, {show(dtype)}. Give {GIVE[kind(dtype)]}."
        )


def _rows(
    keys: object, by: Sequence[str], domain: Sequence[ColumnDomain], call: str
) -> tuple[Key, ...]:
    if not is_list(keys):
        raise InvalidArgument(
            f"{call}: keys= is a dict of lists, a list of tuples or a public dataframe."
        )
    tuples = in_order(keys)
    if not all(isinstance(row, (tuple, list)) and len(row) == len(by) for row in tuples):
        raise InvalidArgument(
            f"{call}: each key of keys= is a tuple of {len(by)} values, for {', '.join(by)}."
        )
    columns = [
        _column(v, f, n, call)
        for v, f, n in zip(zip(*tuples, strict=True), domain, by, strict=False)
    ]
    rows = list(zip(*columns, strict=True))
    if not rows or len(set(rows)) != len(rows):
        raise InvalidArgument(
            f"{call}: keys= lists {'a combination twice' if rows else 'nothing'}."
        )
    return tuple(rows)


def _frame_rows(frame: Any, by: Sequence[str], call: str) -> object:
    """The rows of a public dataframe, in the order of the grouping's columns;
    of one with other columns each key once.

    A frame of these columns alone is a list of keys, and a key that it lists twice is refused as in
    a list.
    """
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        table = None
    if table is None:
        raise InvalidArgument(f"{call}: keys= takes an eager dataframe; collect a lazy one first.")
    if missing := [name for name in by if name not in table.columns]:
        raise InvalidArgument(f"{call}: the dataframe given as keys= has no column {missing[0]!r}.")
    wide = len(table.columns) > len(set(by))
    rows = list(
        (table.select(*by).unique(maintain_order=True) if wide else table.select(*by)).iter_rows()
    )
    return [row[0] for row in rows] if len(by) == 1 else rows


def check_key(dtype: DType, name: str, what: str) -> None:
    """Refuse a key column of 128-bit integers: no released table can hold them,
    since pandas has no type for them.

    The type alone decides, never a cell. In DuckDB, sums of whole numbers have this type (HUGEINT).
    It is allowed for values, units and conditions. Errors: WrongType
    """
    if dtype in (nw.Int128, nw.UInt128):
        raise WrongType(
            f"{what}: a column of type {show(dtype)} cannot be a key, since a released table holds "
            f"whole numbers of 64 bits at most. First: .cast({name!r}, 'int64'), which is null "
            "where a number does not fit."
        )
