"""The operations in which the databases of Ibis differ, with the SQL that Ibis writes by default.

The SQL that Ibis writes can fail on a cell in some databases. A database in which a cell could make
this SQL fail has a module of its own with another `Dialect`, and a line in `_DIALECTS`. Before a
table of any other database is protected, dpframe runs tests there on numbers and texts of its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any
from uuid import uuid4

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import polars as pl
from ibis.expr.datatypes import DataType
from narwhals.dtypes import DType

from dpframe.engine.backends.base import (
    Cased,
    CellFunction,
    Parsed,
    Part,
    Piece,
    Replaced,
    Stripped,
)
from dpframe.engine.backends.ibis_checks import (
    check_apart,
    check_numbers,
    check_operations,
    check_tries,
    database_of,
    fetched,
    loose,
)
from dpframe.engine.backends.sql import microseconds_in
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, Pattern, Task, kind

# From Ibis' name of a database to the module of its dialect, in this folder.
_DIALECTS: Mapping[str, str] = {
    "postgres": "postgres",
    "sqlite": "sqlite",
    "datafusion": "datafusion",
}

_PARTS = {
    "year": lambda x: x.year(),
    "month": lambda x: x.month(),
    "day": lambda x: x.day(),
    "weekday": lambda x: x.day_of_week.index() + 1,
    "ordinal_day": lambda x: x.day_of_year(),
    "hour": lambda x: x.hour(),
    "minute": lambda x: x.minute(),
}

_BROUGHT = "dpframe_"  # the names of public tables in a database begin with it
_IN_IBIS: Mapping[type, tuple[str, str]] = {
    Replaced: ("str.replace", "table.s.replace('a', 'b')"),
    Piece: ("str.split", "table.s.split(',')[0]"),
    Stripped: ("str.strip_chars", "table.s.strip()"),
}
_UNTRIED = (
    "{}: nobody has tried it on this database. Change the texts before they come to dpframe: "
    "table.mutate(s={})."
)


def forgotten(rows: ibis.Table, drop: Callable[[str], object]) -> None:
    """Remove from the database the public tables of a query that dpframe
    brought there; Ibis would keep them.

    Input:  drop: what removes a table, by its name
    """
    for table in rows.op().find(ops.InMemoryTable):
        if table.name.startswith(_BROUGHT):
            database_of(rows)._memtables.discard(table)
            with suppress(Exception):
                drop(table.name)


class Dialect:
    """The operations in which databases differ.
    Values are Ibis expressions, and no cell makes one of them fail.
    """

    def opened(self, table: ibis.Table) -> ibis.Table:
        """The user's table in a form in which the user's own steps keep
        their meaning under our compiler.
        """
        return table

    def against(self, table: ibis.Table, types: Mapping[str, DType]) -> dict[str, str]:
        """For each column that cannot be held for another reason than its type, that reason.
        No row is read.

        Errors: UnsupportedOperation where the table as a whole cannot be held
        """
        check_operations(table)
        check_numbers(table)
        unsafe = loose(table, [name for name, dtype in types.items() if kind(dtype) == Kind.STRING])
        schema = table.schema()
        return unsafe | {name: _wide(name) for name in types if has_many_digits(schema[name])}

    def types(self, table: ibis.Table) -> dict[str, DType]:
        """The types of the columns as narwhals has them;
        Unknown where narwhals has no such type.
        """
        return {name: _type_of(name, dtype) for name, dtype in table.schema().items()}

    def stated(self, table: ibis.Table) -> dict[str, str]:
        """The types of the columns that the user's steps begin with, as the database states them.
        No row is read.
        """
        sources = table.op().find((ops.DatabaseTable, ops.SQLQueryResult))
        return {
            name if len(sources) == 1 else f"{name} of {source.name}": dtype
            for source in sources
            for name, dtype in self.types_of(database_of(table), source).items()
        }

    def types_of(
        self, backend: Any, source: ops.DatabaseTable | ops.SQLQueryResult
    ) -> dict[str, str]:
        """The types of the columns of a table, a view or a query,
        as the database states them now.
        """
        if isinstance(source, ops.SQLQueryResult):
            schema = backend.sql(source.query).schema()
        else:
            schema = backend.get_schema(
                source.name, catalog=source.namespace.catalog, database=source.namespace.database
            )
        return {name: str(dtype) for name, dtype in schema.items()}

    def held(self, value: ibis.Value, dtype: DType) -> ibis.Value:
        """A column of the user's in the form in which dpframe holds it:
        a time as its ticks, a text as text.
        """
        return _held(value, dtype)

    def brought(self, beside: ibis.Table, table: pl.DataFrame) -> ibis.Table:
        """A public table, as an Ibis table that can be joined to the rows `beside`."""
        data = ibis.memtable(table.to_arrow()).op()
        return data.copy(name=f"{_BROUGHT}{uuid4().hex}").to_expr()

    def brings_keys(self, rows: ibis.Table) -> bool:
        """See `SqlBackend`."""
        return False

    def one_of(self, value: ibis.Value, values: pl.Series) -> ibis.Value:
        """Whether a column is equal to one of many constants;
        None where Ibis' own `isin` is to compare.
        """
        return None

    def bytewise(self, rows: ibis.Table) -> bool:
        """Whether texts are held as their bytes: they are not, so the database
        must tell different texts apart.

        Errors: UnsupportedOperation where it takes some different texts for equal
        """
        check_apart(rows)
        return False

    def decimal(self, value: nw.Expr) -> nw.Expr:
        """A decimal as a float, by way of its text: some databases round twice in a direct cast."""
        return value.cast(nw.String).cast(nw.Float64)

    def keyed_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        """64 bits that depend on the salt and the values:
        the database's own hash of a text that contains them.
        """
        return _joined(rows, columns, salt).hash()

    def stable_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        """A hash that does not change with the version of the database."""
        return self.digest(_joined(rows, columns, salt))

    def digest(self, text: ibis.Value) -> ibis.Value:
        """A digest of a text, as a text."""
        return text.hexdigest("md5")

    def apply(self, value: ibis.Value, function: CellFunction) -> ibis.Value:
        """The result of a function of the cells of a column; see `Backend`.

        Errors: UnsupportedOperation for a function that nobody has tried on this database
        """
        match function:
            case Parsed(dtype):
                return _parsed(value, dtype)
            case Part(dtype, part):
                return _part(value, dtype, part)
            case Cased():
                raise UnsupportedOperation(
                    "str.to_lowercase and str.to_uppercase: databases disagree on which letters "
                    "have another case. Change the texts before dp.protect(...), as in "
                    "table.mutate(s=table.s.lower())."
                )
        raise UnsupportedOperation(_UNTRIED.format(*_IN_IBIS[type(function)]))

    def against_search(self, task: Task, pattern: Pattern) -> str:
        """Why a pattern is not searched in this database, or an empty text."""
        return "nobody has tried it in this database"

    def ending(self, value: ibis.Value, offset: int, length: int) -> ibis.Value:
        """Characters of a text from a place at its end on."""
        return ops.Substring(value, offset, length).to_expr()

    def settled(self, rows: ibis.Table) -> ibis.Table:
        """The rows behind a step that the database's planner does not look
        through; see `Backend.settled`.
        """
        return rows

    def planned(self, rows: ibis.Table) -> pl.DataFrame:
        """The table of a query with LIMIT 0."""
        return self.read(rows.limit(0))

    def try_threads(self, rows: ibis.Table) -> None:
        """A small computation in the threads of the database, if it runs
        in this process; see `Backend`.
        """
        self.planned(rows)

    def read(self, rows: ibis.Table) -> pl.DataFrame:
        """The rows of a query.
        Booleans travel as numbers, as some settings give them a type that Arrow lacks.
        """
        truths = [name for name, dtype in rows.schema().items() if dtype.is_boolean()]
        table = fetched(
            rows.mutate(**{name: rows[name].ifelse(1, 0) for name in truths}) if truths else rows
        )
        return table.with_columns(pl.col(name).cast(pl.Boolean) for name in truths)


def dialect_of(rows: ibis.Table) -> Dialect:
    """The dialect of the database that an Ibis table is in."""
    backends, _ = rows._find_backends()
    name = _DIALECTS.get(backends[0].name) if len(backends) == 1 else None
    if name is None:
        return _PLAIN
    return import_module(f"dpframe.engine.backends.{name}").DIALECT


def _type_of(name: str, dtype: DataType) -> DType:
    """The narwhals type of an Ibis type; Unknown for a decimal of more than 38
    digits, at which narwhals fails.
    """
    try:
        narwhals_type: DType = nw.from_native(ibis.table({name: dtype})).collect_schema()[name]
    except ValueError:
        return nw.Unknown()
    return narwhals_type


def has_many_digits(dtype: DataType) -> bool:
    """Whether a type of Ibis is a decimal of more than 38 digits,
    for which narwhals has no type.
    """
    return bool(dtype.is_decimal() and (dtype.precision or 0) > 38)


def _wide(name: str) -> str:
    return (
        "decimals have 38 digits at most: cast it before dp.protect, "
        f"table.mutate(x=table[{name!r}].cast('float64'))"
    )


def _held(value: ibis.Value, dtype: DType) -> ibis.Value:
    """See `Dialect.held`.

    A whole number has 64 bits: Ibis states 8 bits with a sign for the result of `coalesce` of an
    unsigned number of 8 bits and 0, and could not read 255 from it.
    """
    family = kind(dtype)
    if family == Kind.INTEGER and not (value.type().is_int64() or value.type().is_uint64()):
        return value.cast("int64")
    if family == Kind.DATE:
        inside = value.between(ibis.date(1, 1, 1), ibis.date(9999, 12, 31))
        return ibis.cases((inside, value.delta(ibis.date(1970, 1, 1), unit="day")))
    if family == Kind.DATETIME:
        first, last = (
            ibis.literal(dt.datetime(1, 1, 1)),
            ibis.literal(dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        )
        since = value.delta(ibis.timestamp(1970, 1, 1, 0, 0, 0), unit="microsecond")
        return ibis.cases((value.between(first, last), since))
    return value.cast("string") if family == Kind.STRING else value


def microseconds_of(value: ibis.Value, dtype: DType) -> ibis.Value:
    """A time in microseconds, from its ticks."""
    scale = microseconds_in(dtype)
    return value if scale == 1 else value * scale


def _parsed(text: ibis.Value, dtype: DType) -> ibis.Value:
    check_tries(text)
    match dtype:
        case nw.Date():
            return _held(text.try_cast("date"), dtype)
        case nw.Datetime():
            return _held(text.left(26).try_cast("timestamp(6)"), dtype)
    return text.try_cast("float64" if kind(dtype) == Kind.FLOAT else str(dtype).lower())


def _part(value: ibis.Value, dtype: DType, part: str) -> ibis.Value:
    if kind(dtype) == Kind.DATE:
        value = ibis.date(1970, 1, 1) + value.as_interval("D")
    else:
        value = ibis.timestamp(1970, 1, 1, 0, 0, 0) + microseconds_of(value, dtype).as_interval(
            "us"
        )
    return value.strftime("%Y-%m-%d") if part == "text" else _PARTS[part](value).cast("int64")


def _joined(rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
    """The values of some columns as one text. Different values give different texts."""
    text = ibis.literal(salt)
    for column in columns:
        value = rows[column].cast("string")
        text = text + " " + value.length().cast("string") + " " + value
    return text


_PLAIN = Dialect()
