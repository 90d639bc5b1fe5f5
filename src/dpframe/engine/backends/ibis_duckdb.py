"""DuckDB through Ibis: texts are held as their bytes, and sums are read in 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature

import ibis
import ibis.expr.datatypes as datatypes
import ibis.expr.operations as ops
import polars as pl
import sqlglot.expressions as sge
from narwhals.dtypes import DType

from dpframe.engine.attended import attended
from dpframe.engine.backends.base import Cased, CellFunction, Piece, Replaced, Stripped
from dpframe.engine.backends.duckdb import INFINITE, MAGNITUDE, check_macros, check_statistics
from dpframe.engine.backends.ibis_checks import database_of
from dpframe.engine.backends.ibis_dialect import Dialect, forgotten
from dpframe.engine.backends.sql import MOST_ROWS
from dpframe.engine.letters import ALIKE, letters
from dpframe.plan import Ends, Kind, Pattern, Search, Task, kind


def _function(name: str, *types: str) -> Callable[..., ibis.Value]:
    """A function of the database, by its name, the types of its arguments and, at last, that of its result."""

    def column() -> ibis.Value:
        raise NotImplementedError

    given = [Parameter(f"a{i}", Parameter.POSITIONAL_ONLY) for i in range(len(types) - 1)]
    column.__signature__ = Signature(given)  # type: ignore[attr-defined]
    *arguments, result = map(ibis.dtype, types)
    return ibis.udf.scalar.builtin(column, name=name, signature=(tuple(arguments), result))


_PIECE = _function("split_part", "string", "string", "int64", "string")
_TRIMMED = {
    ends: _function(name, "string", "string", "string")
    for ends, name in ((Ends.BOTH, "trim"), (Ends.START, "ltrim"), (Ends.END, "rtrim"))
}
_STARTS = _function("prefix", "string", "string", "boolean")
_ENDS = _function("suffix", "string", "string", "boolean")
_MATCHES_WHOLE = _function("regexp_full_match", "string", "string", "boolean")
_EXTRACTED = _function("regexp_extract", "string", "string", "int32", "string")
_ALL = _function("regexp_extract_all", "string", "string", "array<string>")
_FIRST_REPLACED = _function("regexp_replace", "string", "string", "string", "string")
_REPLACED = _function("regexp_replace", "string", "string", "string", "string", "string")
_ENCODED, _DECODED = _function("encode", "string", "binary"), _function("decode", "binary", "string")
_TRIED = _function("try", "string", "string")
_BITS = datatypes.Unknown(raw_type=sge.DataType(this=sge.DataType.Type.BIT))


def _text(value: str) -> ibis.Value:
    """A text that stands in a query, by its bytes: SQL has no zero byte."""
    return _DECODED(ibis.literal(value.encode(), "binary"))


# From DuckDB 2.0.1 on, `contains`, `starts_with`, `strpos` and `regexp_matches` follow the collation of a text. Ibis
# writes no COLLATE, so here are other functions, which read its bytes.


def _contains(value: ibis.Value, literal: str) -> ibis.Value:
    """Whether a text has a literal text, which is not empty."""
    return value.replace(_text(literal), _text("")).length() < value.length()


def _matches(value: ibis.Value, pattern: str) -> ibis.Value:
    """Whether a text has a part of a pattern."""
    return _MATCHES_WHOLE(value, _text(f"(?s:.*)(?:{pattern})(?s:.*)"))


class _DuckDBDialect(Dialect):
    collates = True

    def against_search(self, task: Task, pattern: Pattern) -> str:
        return ""

    def against(self, table: ibis.Table, types: Mapping[str, DType]) -> dict[str, str]:
        """A column of a type that dpframe does not read can be read as text, after a cast by the user."""
        _check_macros(table)
        check_statistics(types.values())
        odd = [name for name, dtype in types.items() if kind(dtype) == Kind.OTHER]
        line = "dpframe does not read it: cast it before, table.mutate(x=table[{!r}].cast('string'))"
        return {name: line.format(name) for name in odd}

    def settled(self, rows: ibis.Table) -> ibis.Table:
        return rows.limit(MOST_ROWS)

    def rank(self, rows: ibis.Table, hashes: str, units: Sequence[str]) -> ibis.Value:
        """The number of the unit's hashes that are not higher, in one window.

        The rank that narwhals writes has a window for ties too, which has no order. DuckDB makes a join of such a
        window, with the rows on both sides. A query with several of them then has so many copies of the expressions of
        the rows that its planner does not end.
        """
        window = ibis.range_window(preceding=None, following=0, group_by=list(units), order_by=hashes)
        return rows[hashes].count().over(window)

    def planned(self, rows: ibis.Table) -> pl.DataFrame:
        _check_macros(rows)
        return super().planned(rows)

    def held(self, value: ibis.Value, dtype: DType) -> ibis.Value:
        """A text as its bytes, null where they are not UTF-8; a number in the type that Ibis states, null for NaN."""
        if kind(dtype) == Kind.INTEGER:
            return super().held(_as_said(value), dtype)
        if kind(dtype) == Kind.FLOAT:
            return _number(_as_said(value))
        if kind(dtype) != Kind.STRING:
            return super().held(value, dtype)
        return _ENCODED(_TRIED(_DECODED(_ENCODED(value.cast("string")))))

    def brings_keys(self, rows: ibis.Table) -> bool:
        return True

    def bytewise(self, rows: ibis.Table) -> bool:
        return True

    def to_bytes(self, value: ibis.Value) -> ibis.Value:
        return _ENCODED(value)

    def to_text(self, value: ibis.Value) -> ibis.Value:
        return _DECODED(value)

    def located(self, value: ibis.Value, literal: str, place: str) -> ibis.Value:
        match place:
            case "contains" if literal:
                return _contains(value, literal)
            case "matches":
                return _matches(value, literal)
            case "ends_with":
                return _ENDS(value, _text(literal))
        return _STARTS(value, _text(literal))

    def apply(self, value: ibis.Value, function: CellFunction) -> ibis.Value:
        """As `sql_of` of `duckdb`, in Ibis' expressions."""
        match function:
            case Cased(capital):
                own = value.upper().replace("ẞ", "ß") if capital else value.lower()
                return _matches(value, ALIKE).ifelse(own, value.translate(*letters(capital=capital)))
            case Replaced(old, new, every):
                have, want = _text(old), _text(new)
                if every:
                    return value.replace(have, want)
                before = _PIECE(value, have, 1)
                changed = before + want + value.substr(before.length() + len(old))
                return _contains(value, old).ifelse(changed, value)
            case Piece(by, index):  # there if the text has enough separators before it, counted by what is lost
                separator = _text(by)
                many = (value.length() - value.replace(separator, _text("")).length()) // len(by)
                number = ibis.literal(index + 1, "int64") if index >= 0 else many + (index + 2)
                least = index if index >= 0 else -index - 1
                return ibis.cases((many >= least, _PIECE(value, separator, number)))
            case Stripped(characters, ends):
                return _TRIMMED[ends](value, _text(characters))
            case Search():
                return _searched(value, function)
        return super().apply(value, function)

    def ending(self, value: ibis.Value, offset: int, length: int) -> ibis.Value:
        start = value.length() + offset
        return value.substr(ibis.greatest(start, 0), ibis.greatest(ibis.least(start, 0) + length, 0))

    def read(self, rows: ibis.Table) -> pl.DataFrame:
        """The rows of a query, with sums cast to 64 bits.

        DuckDB's sums have 128 bits, and with one setting they have a type that Arrow lacks. Their values fit in 64
        bits. Ibis believes that they have 64 bits and would leave out a direct cast, so they are cast to a decimal
        first. No table of ours stays in the connection.
        """
        types = rows.schema().items()
        sums = {name: rows[name].cast("decimal(38, 0)").cast("int64") for name, dtype in types if dtype.is_int64()}
        try:
            narrow, read = rows.mutate(**sums) if sums else rows, super().read
            return attended(lambda: read(narrow), database_of(rows).con.interrupt)
        finally:
            forgotten(rows, database_of(rows).con.unregister)


def _check_macros(rows: ibis.Table) -> None:
    backend = database_of(rows)
    if backend is not None:
        check_macros(lambda sql: [name for (name,) in backend.raw_sql(sql).fetchall()])


def _searched(value: ibis.Value, search: Search) -> ibis.Value:
    written = search.pattern.written(r"\b")
    pattern = _text(written)
    match search.task:
        case Task.EXTRACT:
            return ibis.cases((_matches(value, written), _EXTRACTED(value, pattern, search.group)))
        case Task.COUNT:
            return _ALL(value, pattern).length().cast("int64")
        case Task.REPLACE:
            return _FIRST_REPLACED(value, pattern, _text(search.value))
        case Task.REPLACE_ALL:
            return _REPLACED(value, pattern, _text(search.value), ibis.literal("g"))
    return _matches(value, written)


def _number(value: ibis.Value) -> ibis.Value:
    """A float, null where it is NaN by its bits: see `check_statistics` of `duckdb`."""
    bits = value.cast("float64").cast(_BITS).cast("int64")
    return ibis.cases(((bits & ibis.literal(MAGNITUDE)) <= ibis.literal(INFINITE), value))


def _as_said(value: ibis.Value) -> ibis.Value:
    """A column of numbers, cast to the type that Ibis states for it; null where a number does not fit.

    Ibis states the types of a table's own columns correctly. For computed columns it may be wrong: it states 64 bits
    for a sum of whole numbers, to which DuckDB gives 128, and a float for a product with 0.5, to which DuckDB gives a
    decimal. Products of decimals fail where they are too long.
    """
    if isinstance(value.op().rel, (ops.DatabaseTable, ops.InMemoryTable)):
        return value
    if value.type().is_integer():
        return value.try_cast("decimal(38, 0)").try_cast(value.type())
    return value * ibis.literal("1.0").cast("float64")


DIALECT = _DuckDBDialect()
