"""Ibis tables: one expression, which Ibis writes in the SQL of the database that the table is in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache
from typing import Any

import ibis
import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends.base import Frame
from dpframe.engine.backends.sql import SqlBackend, our_names, plain_table, schema_of
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan.columns import Facts
from dpframe.plan.types import kind

__all__ = ["BACKEND"]

_PARTS = {
    "year": lambda x: x.year(),
    "month": lambda x: x.month(),
    "day": lambda x: x.day(),
    "weekday": lambda x: x.day_of_week.index() + 1,
    "ordinal_day": lambda x: x.day_of_year(),
    "hour": lambda x: x.hour(),
    "minute": lambda x: x.minute(),
}

_TRYING = ("TRY_CAST", "SAFE_CAST", "accurateCastOrNull")  # what databases call a cast that cannot fail

_LOOSE = "its collation does not tell all texts apart: give the column one that compares bytes"
# Texts of which some collation or other takes two for one: by case, accent, form, space, width or letter.
_APART = ("a", "A", "\u00e1", "a\u0301", "a ", "a\u00ad", "\uff41", "ss", "\u00df")


class _Ibis(SqlBackend):
    name = "ibis"

    # Tables

    def adopt(self, table: Any) -> Data | None:
        if not isinstance(table, ibis.Table):
            return None
        types = dict(nw.from_native(table).collect_schema())
        names = our_names(types)
        held = {name: types[name] for name in names}
        loose = dict.fromkeys(_loose(table, [name for name, dtype in held.items() if kind(dtype) == "string"]), _LOOSE)

        def scan(wanted: Sequence[str], *, empty: bool = False) -> Any:
            columns = {names[name]: _held(table[name], types[name]) for name in wanted}
            return table.select(**(columns or {"s": ibis.literal(1)}))

        return Data("pandas", schema_of(self, held, loose), scan, True, self.name, names)

    def fetch(self, table: Any) -> pl.DataFrame:
        return _read(table)

    def together(self, first: Any, second: Any) -> bool:
        backends, _ = first.join(second, ibis.literal(True))._find_backends()
        return len(backends) <= 1

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        made: Frame = nw.from_native(ibis.memtable(plain_table(self, table).to_arrow()))
        return made

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        return [_read(frame.to_native()) for frame in frames]

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        return [_read(frame.to_native().limit(0)) for frame in frames]

    # Columns

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """The database's own hash of one text that begins with the salt."""
        rows = frame.to_native()
        return _with(rows, _joined(rows, columns, str(salt)).hash(), into)

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        rows = frame.to_native()
        return _with(rows, _joined(rows, columns, salt).hexdigest("md5"), into)

    def parsed(self, frame: Frame, column: str, dtype: DType, into: str) -> Frame:
        rows = frame.to_native()
        _check_tries(rows)
        text = rows[column]
        if isinstance(dtype, nw.Date):
            made = _held(text.try_cast("date"), dtype)
        elif isinstance(dtype, nw.Datetime):
            made = _held(text.left(26).try_cast("timestamp(6)"), dtype)
        else:
            made = text.try_cast("float64" if kind(dtype) == "float" else str(dtype).lower())
        return _with(rows, made, into)

    def part(self, frame: Frame, column: str, dtype: DType, part: str, into: str) -> Frame:
        if kind(dtype) == "datetime":
            frame = frame.with_columns(self._microseconds(nw.col(column), dtype).alias(column))
        rows = frame.to_native()
        if kind(dtype) == "date":
            value = ibis.date(1970, 1, 1) + rows[column].as_interval("D")
        else:
            value = ibis.timestamp(1970, 1, 1, 0, 0, 0) + rows[column].as_interval("us")
        made = value.strftime("%Y-%m-%d") if part == "text" else _PARTS[part](value).cast("int64")
        return _with(rows, made, into)

    def real(self, value: float) -> nw.Expr:
        """Ibis writes 0.5 as it is, which SQL takes for a decimal: its products are other numbers, and overflow."""
        return nw.lit(repr(value)).cast(nw.Float64)

    def moment(self, value: nw.Expr, facts: Facts) -> nw.Expr:
        """Ibis compares no unsigned number with one that has a sign; as decimals they compare exactly."""
        unsigned = facts.dtype.is_unsigned_integer()
        return value.cast(nw.Decimal(20, 0)) if unsigned else super().moment(value, facts)

    def reason_against(self, dtype: DType) -> str:
        if getattr(dtype, "time_zone", None) is not None:
            return "databases do not agree on zones: make it UTC without a zone before it comes to dpframe"
        return super().reason_against(dtype)


def _held(value: Any, dtype: DType) -> Any:
    """A column of the user's as it is held: a time as its ticks, a text as text."""
    family = kind(dtype)
    if BACKEND.reason_against(dtype):  # of which nothing can be asked but whether there is a value
        return value
    if family == "date":
        inside = value.between(ibis.date(1, 1, 1), ibis.date(9999, 12, 31))
        return ibis.cases((inside, value.delta(ibis.date(1970, 1, 1), unit="day")))
    if family == "datetime":
        first, last = ibis.literal(dt.datetime(1, 1, 1)), ibis.literal(dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
        since = value.delta(ibis.timestamp(1970, 1, 1, 0, 0, 0), unit="microsecond")
        return ibis.cases((value.between(first, last), since))
    return value.cast("string") if family == "string" else value


def _loose(table: Any, texts: Sequence[str]) -> list[str]:
    """The columns of text in which the database takes some different texts for one; no row is read.

    There "bonn" and "BONN" would make one group, and the spelling of one unit could be the key that is shown.
    """
    backends, _ = table._find_backends()
    if not texts or not backends:  # a table without a database cannot be read
        return []
    columns = {f"c{i}": table[name].cast("string") for i, name in enumerate(texts)}
    none = table.filter(ibis.literal(False)).select(**columns)
    every = none.union(ibis.memtable(dict.fromkeys(columns, _APART)))
    pairs = every.cross_join(every.view().rename({f"{name}d": name for name in columns}))
    distinct = {name: pairs[name].nunique() for name in columns}  # which not all databases find as they find groups
    equal = {f"{name}d": (pairs[name] == pairs[f"{name}d"]).cast("int64").sum() for name in columns}
    try:
        (found,) = _read(pairs.aggregate(**distinct, **equal)).rows(named=True)
    except Exception:  # a database that cannot say so is not believed
        found = dict.fromkeys(distinct, 0)
    apart = len(_APART)
    return [x for name, x in zip(columns, texts, strict=True) if found[name] < apart or found[f"{name}d"] > apart]


def _check_tries(rows: Any) -> None:
    """Refuses a database where Ibis writes no cast that is null where a text is no number: it would fail on a cell.

    That would be after the charge, and tell that there is such a cell. Errors: UnsupportedOperation.
    """
    backends, _ = rows._find_backends()
    if backends and not _tries(backends[0].name):
        raise UnsupportedOperation(
            f"cast: Ibis has no cast of text for {backends[0].name} that gives null where a text is no number, date or "
            "time, so one cell could make the query fail. Make it one there before it is protected."
        )


@cache
def _tries(dialect: str) -> bool:
    """Whether the SQL of a database has a cast that cannot fail, and Ibis writes it. No dialect: that is not known."""
    text = ibis.table({"s": "string"}, name="t").s
    try:
        written = [str(ibis.to_sql(text.try_cast(to), dialect=dialect)) for to in ("int64", "date")]
    except Exception:  # Ibis has no such dialect, or no such cast there
        return False
    return all(any(word in sql for word in _TRYING) for sql in written)


def _joined(rows: Any, columns: Sequence[str], salt: str) -> Any:
    """The values of some columns as one text that no other values have."""
    text = ibis.literal(salt)
    for column in columns:
        value = rows[column].cast("string")
        text = text + " " + value.length().cast("string") + " " + value
    return text


def _with(rows: Any, made: Any, into: str) -> Frame:
    """A frame with a column that the database computes."""
    frame: Frame = nw.from_native(rows.mutate(**{into: made}))
    return frame


def _read(rows: Any) -> pl.DataFrame:
    found = pl.from_arrow(rows.to_pyarrow())
    assert isinstance(found, pl.DataFrame)
    return found


BACKEND = _Ibis()
