"""DuckDB through Ibis: texts are held as their bytes, and sums are read in 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ibis
import ibis.expr.operations as ops
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends.duckdb import check_macros
from dpframe.engine.backends.ibis import Dialect
from dpframe.engine.letters import ALIKE, letters
from dpframe.plan import Kind, kind

__all__ = ["DIALECT"]


def _function(name: str, source: str, target: str) -> Callable[[Any], Any]:
    """A function that the database has under a name."""

    def column(value: Any) -> Any:
        raise NotImplementedError

    signature = (ibis.dtype(source),), ibis.dtype(target)
    function: Callable[[Any], Any] = ibis.udf.scalar.builtin(column, name=name, signature=signature)
    return function


def _split_part(value: Any, by: Any, number: Any) -> Any:
    raise NotImplementedError


_PIECE = ibis.udf.scalar.builtin(
    _split_part,
    name="split_part",
    signature=((ibis.dtype("string"), ibis.dtype("string"), ibis.dtype("int64")), ibis.dtype("string")),
)
_ENCODED, _DECODED = _function("encode", "string", "binary"), _function("decode", "binary", "string")
_TRIED = _function("try", "string", "string")


def _text(value: str) -> Any:
    """A text that stands in a query, by its bytes: SQL has no zero byte."""
    return _DECODED(ibis.literal(value.encode(), "binary"))


class _DuckDBDialect(Dialect):
    def against(self, table: Any, types: Mapping[str, DType]) -> dict[str, str]:
        """Nothing: floats do not fail there, and no collation says how bytes compare."""
        _check_macros(table)
        return {}

    def planned(self, rows: Any) -> pl.DataFrame:
        _check_macros(rows)
        return super().planned(rows)

    def held(self, value: Any, dtype: DType) -> Any:
        """A text as its bytes, null in place of what is no Unicode; a number that a query computes, as Ibis says."""
        if kind(dtype) in (Kind.INTEGER, Kind.FLOAT):
            return _as_said(value)
        if kind(dtype) != Kind.STRING:
            return super().held(value, dtype)
        return _ENCODED(_TRIED(_DECODED(_ENCODED(value.cast("string")))))

    def bytewise(self, rows: Any) -> bool:
        return True

    def to_bytes(self, value: Any) -> Any:
        return _ENCODED(value)

    def to_text(self, value: Any) -> Any:
        return _DECODED(value)

    def cased(self, value: Any, *, capital: bool) -> Any:
        """As DuckDB's own relations have it."""
        own = value.upper().replace("ẞ", "ß") if capital else value.lower()
        return value.re_search(ALIKE).ifelse(own, value.translate(*letters(capital=capital)))

    def replaced(self, value: Any, old: str, new: str, *, every: bool) -> Any:
        have, want = _text(old), _text(new)
        if every:
            return value.replace(have, want)
        place = value.find(have)
        return (place >= 0).ifelse(value.left(place) + want + value.substr(place + len(old)), value)

    def piece(self, value: Any, by: str, index: int) -> Any:
        """A piece is there if the text has enough separators before it, which are counted by what is lost."""
        separator = _text(by)
        many = (value.length() - value.replace(separator, _text("")).length()) // len(by)
        number = ibis.literal(index + 1, "int64") if index >= 0 else many + (index + 2)
        least = index if index >= 0 else -index - 1
        return ibis.cases((many >= least, _PIECE(value, separator, number)))

    def read(self, rows: Any) -> pl.DataFrame:
        """DuckDB makes sums in 128 bits, which Ibis takes for 64, and by a setting they are a type that Arrow lacks.

        They fit in 64 bits. They are cast by way of a type that Ibis does not take for theirs.
        """
        types = rows.schema().items()
        sums = {name: rows[name].cast("decimal(38, 0)").cast("int64") for name, dtype in types if dtype.is_int64()}
        return super().read(rows.mutate(**sums) if sums else rows)


def _check_macros(rows: Any) -> None:
    backends, _ = rows._find_backends()
    if len(backends) == 1:
        check_macros(lambda sql: [name for (name,) in backends[0].raw_sql(sql).fetchall()])


def _as_said(value: Any) -> Any:
    """A column of numbers in the type that Ibis says it has, null where it does not fit.

    Ibis says of a sum of whole numbers that it has 64 bits, where DuckDB makes 128; and of a product with 0.5 that it
    is a float, where DuckDB makes a decimal, whose products fail where they are too long. Of a table's own columns it
    says what they are.
    """
    if isinstance(value.op().rel, (ops.DatabaseTable, ops.InMemoryTable)):
        return value
    if value.type().is_integer():
        return value.try_cast("decimal(38, 0)").try_cast(value.type())
    return value * ibis.literal("1.0").cast("float64")


DIALECT = _DuckDBDialect()
