"""The base of the compilers and dialects of SQLite, DataFusion and
PostgreSQL, whose SQL no cell makes fail.

An operation that is not on the list is refused before the charge, because its SQL could fail on a
cell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import ClassVar

import ibis
import ibis.expr.datatypes as types
import ibis.expr.operations as ops
import ibis.expr.rules as rules
import narwhals as nw
import polars as pl
import sqlglot.expressions as sge
from ibis.backends import BaseBackend
from ibis.backends.sql.compilers.base import SQLGlotCompiler
from ibis.common.typing import VarTuple

from dpframe.engine.backends.base import Cell
from dpframe.engine.backends.ibis_checks import database_of
from dpframe.engine.backends.ibis_dialect import Dialect
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Pattern, Task

Sql = sge.Expression  # what Ibis compiles an operation to

_TABLES = """Select Filter Project Aggregate JoinChain JoinLink JoinTable JoinReference
SelfReference CTE Union Limit Distinct DropColumns DropNull FillNull DummyTable"""
_VALUES = """Field Literal Alias Cast Add Subtract Multiply Divide Modulus Floor Abs Sqrt Log Negate
Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan InValues
Coalesce Greatest Least Clip IfElse SearchedCase Count CountStar CountDistinct Sum Min Max Any
WindowFunction WindowBoundary RowNumber MinRank SortKey
StringLength StringContains StartsWith EndsWith Substring RegexSearch"""
# the operations that no cell makes fail, with the SQL written here
_TOTAL = frozenset(f"{_TABLES} {_VALUES}".split())
_SIGNS = {ops.Add: "+", ops.Subtract: "-", ops.Multiply: "*"}
_COMPARISONS = {
    ops.Equals: "=",
    ops.NotEquals: "<>",
    ops.Less: "<",
    ops.LessEqual: "<=",
    ops.Greater: ">",
    ops.GreaterEqual: ">=",
}
_OPERANDS = re.compile(r"(?<![\w'\"])([abc])(?![\w'\"])")
_CALL = re.compile(r"\w+\([^()]*\)")


# Operations of our own


class Written(ops.Value):
    """An Ibis operation with SQL of our own, which cannot fail. The SQL calls its operand `a`."""

    arg: ops.Value
    text: str
    dtype: types.DataType
    shape = rules.shape_like("arg")


class Called(ops.Value):
    """A call of one of dpframe's functions, by its name, with
    constants and any number of columns.
    """

    name: str
    options: VarTuple[object]
    arg: VarTuple[ops.Value]
    dtype: types.DataType
    shape = rules.shape_like("arg")


def written(value: ibis.Value, text: str, dtype: str) -> ibis.Value:
    """An Ibis column that the compiler writes as this SQL, with the value in place of `a`."""
    return Written(value.op(), text, ibis.dtype(dtype)).to_expr()


def called(name: str, columns: Sequence[ibis.Value], dtype: str, *options: object) -> ibis.Value:
    """An Ibis column that one of dpframe's functions computes of others."""
    return Called(
        name, options, tuple(column.op() for column in columns), ibis.dtype(dtype)
    ).to_expr()


# SQL with operands


def raw(text: str) -> sge.Var:
    """SQL text as a node of sqlglot, which writes it unchanged."""
    return sge.Var(this=text)


@cache
def pieces(text: str) -> Sequence[str]:
    """SQL in pieces: text, the name of an operand, text, …."""
    return _OPERANDS.split(" ".join(text.split()))


def whole_literal(value: int) -> str:
    """SQL of a whole number of 64 bits.
    A database would read 9223372036854775808, without its sign, as a float.
    """
    return f"({value})" if value > -(2**63) else "(-9223372036854775807 - 1)"


class TotalCompiler(SQLGlotCompiler):
    """A compiler of operations that no cell makes fail.
    It stands before that of Ibis among the bases of a database's.

    An operation is written by its line in `SQL`, or by a method, here or in a subclass, or as Ibis
    writes it.
    """

    title: ClassVar[str]
    also: ClassVar[frozenset[str]]  # operations that this database has besides the list
    SQL: ClassVar[Mapping[type[ops.Value], str]]  # of the operands a, b and c
    UNSUPPORTED_OPS = ()  # for these and the next, Ibis would replace the methods below
    SIMPLE_OPS: ClassVar[dict[type[ops.Value], str]] = {}
    bare: ClassVar[tuple[type[Sql], ...]] = (sge.Column, sge.Var)  # operands that need no brackets
    bases = "above 1"  # of a logarithm, in words
    largest_base = math.inf

    def visit_node(self, op: ops.Node, **parts: Sql) -> Sql:
        kind = type(op)
        if kind.__name__ not in _TOTAL and kind.__name__ not in self.also:
            raise self.refused(
                f"{kind.__name__} is refused, because it could fail on a cell. Take these steps in "
                "the database, before dp.protect(...)."
            )
        if kind in _SIGNS:
            return self.arithmetic(op, _SIGNS[kind], **parts)
        if kind in _COMPARISONS:
            return self.compared(op, _COMPARISONS[kind], **parts)
        if kind in self.SQL:
            return self.line(op, self.SQL[kind], list(parts.values()))
        return super().visit_node(op, **parts)

    def written(self, rows: ibis.Table) -> str:
        """The SQL of a query."""
        return self.to_sqlglot(rows).sql(self.dialect)

    def refused(self, why: str) -> UnsupportedOperation:
        """The error of an operation that this database does not have."""
        return UnsupportedOperation(f"{self.title}: {why}")

    # SQL of operands

    def sql_of(self, value: Sql) -> str:
        """The SQL of an operand, in brackets where it needs them."""
        text = value.sql(self.dialect, copy=False)
        return text if isinstance(value, self.bare) else f"({text})"

    def filled(self, text: str, **operands: Sql) -> Sql:
        """SQL with its operands a, b and c, in brackets. The SQL should name each operand once."""
        inner = "".join(
            self.sql_of(operands[x]) if i % 2 else x for i, x in enumerate(pieces(text))
        )
        return raw(inner if _CALL.fullmatch(text) else f"({inner})")

    def line(self, op: ops.Value, text: str, operands: Sequence[Sql]) -> Sql:
        """An operation by its line in `SQL`."""
        return self.filled(text, **dict(zip("abc", operands, strict=False)))

    # Tables

    def visit_Select(self, op: ops.Select, **parts: Sql) -> Sql:
        rows = super().visit_Select(op, **parts)
        computes = not all(isinstance(value, ops.Field) for value in op.selections.values())
        return self.computed_once(rows) if computes and isinstance(rows, sge.Select) else rows

    def computed_once(self, rows: sge.Select) -> sge.Select:
        """A subquery whose columns are computed once, even if several expressions of
        the query around it read them.
        """
        return rows

    # Constants

    def visit_Literal(
        self, op: ops.Literal, *, value: int | float | str | None, dtype: types.DataType
    ) -> Sql:
        if value is None:
            return self.missing(dtype)
        if isinstance(value, str):
            return self.text(value)
        if dtype.is_boolean():
            return self.truth(bool(value))
        if dtype.is_floating() or dtype.is_decimal():
            return self.number(float(value))
        if not dtype.is_integer():
            raise self.refused(f"a constant of type {dtype} is refused: give a number or a text.")
        if not -(2**63) <= value < 2**63:
            raise self.refused(f"{value} leaves 64 bits. Give a float, such as {float(value)!r}.")
        return self.whole_number(int(value))

    def missing(self, dtype: types.DataType) -> Sql:
        """Null, in a type."""
        return sge.Null() if dtype.is_null() else self.cast(sge.Null(), self.type_of(dtype))

    def type_of(self, dtype: types.DataType) -> types.DataType:
        """The type in which the database holds a column of a type of Ibis."""
        return dtype

    def truth(self, value: bool) -> Sql:
        """A Boolean."""
        return sge.Boolean(this=value)

    def text(self, value: str) -> Sql:
        """A text. Errors: UnsupportedOperation for one that the database cannot hold."""
        raise NotImplementedError

    def number(self, value: float) -> Sql:
        """A float, exactly."""
        raise NotImplementedError

    def whole_number(self, value: int) -> Sql:
        """A whole number of 64 bits."""
        return raw(whole_literal(value))

    # Casts

    def visit_Cast(self, op: ops.Cast, *, arg: Sql, to: types.DataType) -> Sql:
        number = listed_float(op)
        return self.converted(op, arg, to) if number is None else self.number(number)

    def converted(self, op: ops.Cast, arg: Sql, to: types.DataType) -> Sql:
        """A cast that gives null where a number does not fit."""
        have = op.arg.dtype
        if have == to or (have.is_string() and to.is_string()):
            return arg
        if to.is_string() and (have.is_boolean() or have.is_integer()):
            return self.to_text(op, arg)
        if have.is_string() or not (have.is_numeric() or have.is_boolean()):
            raise UnsupportedOperation(
                f"cast: {self.title}'s cast of {have} to {to} could fail on a cell: cast it before."
            )
        if to.is_floating():
            return (
                self.single(op, arg)
                if to.is_float32() and not have.is_float32()
                else self.real(op.arg, arg)
            )
        if to.is_decimal() and have.is_integer():
            return arg  # whole numbers of 64 bits compare exactly
        if not to.is_integer() or have.is_decimal():
            raise UnsupportedOperation(
                f"cast: {self.title}'s cast of {have} to {to} is refused: cast to 'int64' or "
                "'float64'."
            )
        if have.is_boolean():
            return self.truth_as_number(arg)
        low, high = to.bounds
        fits = have.is_integer() and low <= have.bounds.lower and have.bounds.upper <= high
        return arg if fits else self.whole(op, arg, low, high)

    def to_text(self, op: ops.Cast, arg: Sql) -> Sql:
        """A Boolean or a whole number as a text."""
        raise NotImplementedError

    def single(self, op: ops.Cast, arg: Sql) -> Sql:
        """A number rounded to 32 bits."""
        raise NotImplementedError

    def whole(self, op: ops.Cast, arg: Sql, low: int, high: int) -> Sql:
        """A number without its fraction, null where it leaves the range."""
        raise NotImplementedError

    def truth_as_number(self, arg: Sql) -> Sql:
        """A Boolean as 0 or 1."""
        return self.cast(arg, types.int64)

    def real(self, op: ops.Value, value: Sql) -> Sql:
        """A number as a float. A cast of 64 bits to a float cannot fail."""
        return value if op.dtype.is_floating() else self.cast(value, types.float64)

    # Numbers

    def arithmetic(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        """A sum, a difference or a product."""
        raise NotImplementedError

    def compared(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        """A comparison. A whole number is compared with a float as a float, as on other engines."""
        if op.left.dtype.is_floating() or op.right.dtype.is_floating():
            left, right = self.real(op.left, left), self.real(op.right, right)
        return self.filled(f"a {sign} b", a=left, b=right)

    def visit_Modulus(self, op: ops.Modulus, *, left: Sql, right: Sql) -> Sql:
        if not op.dtype.is_integer():
            raise self.refused("a remainder is only taken of whole numbers: cast to 'int64'.")
        return self.remainder(op, left, right)

    def remainder(self, op: ops.Modulus, left: Sql, right: Sql) -> Sql:
        """The remainder of whole numbers, with the sign of the first one;
        null where the other one is 0.
        """
        return self.filled("a % b", a=left, b=right)

    def visit_Log(self, op: ops.Log, *, arg: Sql, base: Sql) -> Sql:
        if not isinstance(op.base, ops.Literal) or not 1 < op.base.value < self.largest_base:
            raise self.refused(f"the base of a logarithm must be a constant {self.bases}.")
        return self.logarithm(op, arg, float(op.base.value))

    def logarithm(self, op: ops.Log, arg: Sql, base: float) -> Sql:
        """A logarithm; null where the number is not above 0."""
        raise NotImplementedError

    # One of several results, each in the type of all of them

    def visit_SearchedCase(
        self, op: ops.SearchedCase, *, cases: Sequence[Sql], results: Sequence[Sql], default: Sql
    ) -> Sql:
        if is_not_nan(op):
            return self.not_nan(op, results[0])
        return super().visit_SearchedCase(
            op,
            cases=cases,
            results=self.alike(op, op.results, results),
            default=self.typed(op, op.default, default),
        )

    def visit_IfElse(
        self, op: ops.IfElse, *, bool_expr: Sql, true_expr: Sql, false_null_expr: Sql
    ) -> Sql:
        yes, no = (
            self.typed(op, op.true_expr, true_expr),
            self.typed(op, op.false_null_expr, false_null_expr),
        )
        return self.filled("CASE WHEN a THEN b ELSE c END", a=bool_expr, b=yes, c=no)

    def visit_Coalesce(self, op: ops.Coalesce, *, arg: Sequence[Sql]) -> Sql:
        return super().visit_Coalesce(op, arg=self.alike(op, op.arg, arg))

    def visit_Greatest(self, op: ops.Greatest, *, arg: Sequence[Sql]) -> Sql:
        return super().visit_Greatest(op, arg=self.alike(op, op.arg, arg))

    def visit_Least(self, op: ops.Least, *, arg: Sequence[Sql]) -> Sql:
        return super().visit_Least(op, arg=self.alike(op, op.arg, arg))

    def alike(
        self, op: ops.Value, values: Sequence[ops.Value], several: Sequence[Sql]
    ) -> list[Sql]:
        """Several results in the type of all of them."""
        return [self.typed(op, value, sql) for value, sql in zip(values, several, strict=True)]

    def typed(self, op: ops.Value, value: ops.Value, sql: Sql) -> Sql:
        """One of several results, as a float where the result is a float."""
        return self.real(value, sql) if op.dtype.is_floating() else sql

    def not_nan(self, op: ops.SearchedCase, value: Sql) -> Sql:
        """A float, null where it is NaN."""
        raise NotImplementedError

    # Totals

    def visit_Sum(self, op: ops.Sum, *, arg: Sql, where: Sql | None) -> Sql:
        if where is not None or not op.arg.dtype.is_integer():
            raise self.refused("only whole numbers are summed, because their sums are exact.")
        return self.summed(op, arg)

    def summed(self, op: ops.Sum, arg: Sql) -> Sql:
        """A sum of whole numbers, in 64 bits."""
        raise NotImplementedError

    # Texts

    def visit_Substring(
        self, op: ops.Substring, *, arg: Sql, start: Sql, length: Sql | None
    ) -> Sql:
        first, most = _constant(op.start), _constant(op.length)
        if first is None or most is None or most < 0:
            raise self.refused(
                "the start and length of a part of a text must be constants, as in str.slice(0, 3)."
            )
        return self.part_of(op, arg, first, most)

    def part_of(self, op: ops.Substring, arg: Sql, first: int, most: int) -> Sql:
        """The characters of a text from a place on, counted from 0, or from -1 at the end."""
        raise NotImplementedError

    def visit_RegexSearch(self, op: ops.RegexSearch, *, arg: Sql, pattern: Sql) -> Sql:
        assert isinstance(op.pattern, ops.Literal)
        return self.matches(op, arg, str(op.pattern.value))

    def matches(self, op: ops.RegexSearch, arg: Sql, pattern: str) -> Sql:
        r"""Whether a text has a part of the pattern, in which Ibis
        writes the end of a text as \z.
        """
        raise NotImplementedError


def _constant(op: ops.Value | None) -> int | None:
    """The value of an integer constant, or of a difference of two; None for another expression."""
    match op:
        case ops.Subtract():
            left, right = _constant(op.left), _constant(op.right)
            return None if left is None or right is None else left - right
        case ops.Literal() if op.dtype.is_integer():
            return int(op.value)
    return None


def listed_float(op: ops.Value) -> float | None:
    """The value of a float constant, which arrives as the cast of a text
    literal; None for another expression.
    """
    match op:
        case ops.Cast(arg=ops.Literal(value=str(digits))) if (
            op.to.is_float64() and op.arg.dtype.is_string()
        ):
            return float(digits)
    return None


def is_not_nan(op: ops.SearchedCase) -> bool:
    """Whether a CASE is the expression for "null in place of NaN" as
    narwhals writes it (see `not_nan`).
    """
    match op.cases, op.default:
        case [ops.Not(arg=ops.IfElse() as test)], ops.Literal(value=None):
            return test.false_null_expr == ops.IsNan(op.results[0])
    return False


# The dialect that a compiler belongs to


class CompiledDialect(Dialect):
    """The dialect of a database whose queries are written by a compiler of ours,
    which is derived from that of Ibis.
    """

    integers: str  # whose integers a public number does not fit, in words

    def alone(self, backend: BaseBackend) -> AbstractContextManager[None]:
        """Use the connection of Ibis' backend for this thread alone."""
        return nullcontext()

    def opened(self, table: ibis.Table) -> ibis.Table:
        """The user's table with the user's own steps as a finished SQL query, as Ibis writes it."""
        backend = database_of(table)
        if backend is None or isinstance(table.op(), ops.DatabaseTable):
            return table
        with self.alone(backend):
            backend._run_pre_execute_hooks(table)
        return ops.SQLQueryResult(str(backend.compile(table)), table.schema(), backend).to_expr()

    def bytewise(self, rows: ibis.Table) -> bool:
        """Texts stay texts for Ibis: the compiler sees to it that
        they are compared by their bytes.
        """
        return False

    def against_search(self, task: Task, pattern: Pattern) -> str:
        """Patterns are searched by functions of ours, unless a dialect says something else."""
        return ""

    def decimal(self, value: nw.Expr) -> nw.Expr:
        """A cast to float, which rounds once."""
        return value.cast(nw.Float64)

    def check_large(self, table: pl.DataFrame) -> None:
        """Refuse a public table with numbers that do not fit. Errors: UnsupportedOperation."""
        for name, dtype in table.schema.items():
            if dtype == pl.UInt64 and (table.get_column(name) >= 2**63).any():
                raise UnsupportedOperation(
                    f"join: the public column {name!r} has numbers of 2^63 or more, and "
                    f"{self.integers} are smaller. Cast the column to pl.Float64."
                )

    def brought(self, beside: ibis.Table, table: pl.DataFrame) -> ibis.Table:
        self.check_large(table)
        return super().brought(beside, table)


def table_of(rows: ibis.Table, values: Sequence[Sequence[Cell]]) -> pl.DataFrame:
    """The rows of a query, of which a driver of Python gave the cells,
    in the types that Ibis states.
    """
    columns = zip(*values, strict=True) if values else iter([()] * len(rows.columns))
    schema = rows.schema().items()
    return pl.DataFrame(
        [_column(name, cells, dtype) for (name, dtype), cells in zip(schema, columns, strict=True)]
    )


def _column(name: str, cells: Iterable[Cell], dtype: types.DataType) -> pl.Series:
    read: tuple[Callable[..., object], type[pl.DataType]] = _as_text, pl.String
    if dtype.is_boolean():
        read = bool, pl.Boolean
    elif dtype.is_integer():
        read = int, pl.Int64
    elif dtype.is_floating() or dtype.is_decimal():
        read = float, pl.Float64
    of_cell, held = read
    return pl.Series(name, [None if cell is None else of_cell(cell) for cell in cells], held)


def _as_text(cell: Cell) -> object:
    return cell.decode() if isinstance(cell, bytes) else cell
