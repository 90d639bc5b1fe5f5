"""Ibis' compiler for SQLite, with other SQL for each operation that could fail on a value or differ."""

from __future__ import annotations

from typing import Any, ClassVar

import ibis.expr.operations as ops
import ibis.expr.rules as rules
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.sqlite import SQLiteCompiler
from ibis.common.typing import VarTuple
from ibis.expr import datatypes as types

from dpframe.engine.backends.sqlite.written import (
    call,
    filled,
    flat,
    float_literal,
    integer_literal,
    raw,
    sql_of,
    text_literal,
)
from dpframe.engine.backends.written import is_not_nan, listed_float
from dpframe.errors import UnsupportedOperation

_TABLES = """Select Filter Project Aggregate JoinChain JoinLink JoinTable JoinReference SelfReference CTE Union Limit
Distinct DropColumns DropNull FillNull SQLQueryResult DatabaseTable DummyTable"""
_VALUES = """Field Literal Alias Written Called Cast Add Subtract Multiply Divide Modulus Floor Abs Sqrt Log Negate
Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan InValues
Coalesce Greatest Least Clip IfElse SearchedCase Count CountStar CountDistinct Sum Min Max Any All
WindowFunction WindowBoundary RowNumber MinRank SortKey
StringLength StringContains StartsWith EndsWith Substring RegexSearch"""
_TOTAL = frozenset(f"{_TABLES} {_VALUES}".split())  # the operations that no cell makes fail, with the SQL written here


# A sum in two halves of 32 bits. A window takes the place of the comment.
_OVER = " /*over*/"
_HALVES = "(SUM({0} >> 32){over} * 4294967296 + SUM({0} & 4294967295){over})"


class Called(ops.Value):  # type: ignore[misc]
    """A call of one of dpframe's functions with a constant and any number of columns."""

    name: str
    salt: str
    arg: VarTuple[ops.Value]
    dtype: types.DataType
    shape = rules.shape_like("arg")


class Compiler(SQLiteCompiler):  # type: ignore[misc]
    """Ibis' own compiler, with other SQL for each operation that could fail on a value, and texts as bytes."""

    UNSUPPORTED_OPS: tuple[Any, ...] = ()  # for these and the next, Ibis would replace the methods below
    SIMPLE_OPS: ClassVar[dict[Any, str]] = {}

    def visit_node(self, op: Any, **parts: Any) -> Any:
        name = type(op).__name__
        if name not in _TOTAL:
            raise UnsupportedOperation(
                f"SQLite: {name} is refused, because it could fail on a cell. Take these steps in the database, before "
                "dp.protect(...)."
            )
        return super().visit_node(op, **parts)

    def written(self, rows: Any) -> str:
        """The SQL of a query."""
        text: str = flat(self.to_sqlglot(rows)).sql(self.dialect)
        return text

    # Tables

    def visit_DatabaseTable(self, op: Any, *, name: str, schema: Any, source: Any, namespace: Any) -> Any:
        """The table whose columns Ibis listed. Without its schema, a temporary table of that name would be read."""
        return sge.table_(name, db=namespace.database or "main", catalog=namespace.catalog, quoted=self.quoted)

    def visit_SQLQueryResult(self, op: Any, *, query: str, schema: Any, source: Any) -> Any:
        return sge.Subquery(this=raw(query))

    def visit_Select(self, op: Any, **parts: Any) -> Any:
        """With a limit that removes nothing, SQLite computes columns once, and does not copy their expressions.

        It copies the expressions of a subquery into the query around it, as often as they are named there. After many
        steps the copies would have no end.
        """
        rows = super().visit_Select(op, **parts)
        has_expressions = not all(isinstance(value, ops.Field) for value in op.selections.values())
        return rows.limit(-1, copy=False) if has_expressions and isinstance(rows, sge.Select) else rows

    # Values

    def visit_Written(self, op: Any, *, arg: Any, text: str, dtype: Any) -> Any:
        return filled(text, a=arg)

    def visit_Called(self, op: Any, *, name: str, salt: str, arg: Any, dtype: Any) -> Any:
        return call(name, text_literal(salt), *arg)

    def visit_Literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        if value is None:
            return sge.Null()
        if dtype.is_boolean():
            return raw(str(int(value)))
        if dtype.is_string():
            return text_literal(value)
        if dtype.is_floating() or dtype.is_decimal():
            return raw(float_literal(float(value)))
        if not dtype.is_integer():
            raise UnsupportedOperation(f"SQLite: a constant of type {dtype} is refused: give a number or a text.")
        if not -(2**63) <= value < 2**63:
            raise UnsupportedOperation(f"SQLite: {value} leaves 64 bits. Give a float, such as {float(value)!r}.")
        return raw(integer_literal(value))

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        have, number = op.arg.dtype, listed_float(op)
        if number is not None:
            return raw(float_literal(number))
        if to.is_uint64():
            raise UnsupportedOperation("cast: SQLite has no uint64. Take 'int64', or 'float64'.")
        if have == to or have.is_null() or (have.is_string() and to.is_string()):
            return arg
        if to.is_string() and have.is_boolean():
            return filled("CASE WHEN a THEN x'74727565' WHEN NOT a THEN x'66616c7365' END", a=arg)  # true, false
        if to.is_string() and have.is_integer():
            return filled("CAST(CAST(a AS TEXT) AS BLOB)", a=arg)
        if have.is_string() or not (have.is_numeric() or have.is_boolean()):
            raise UnsupportedOperation(f"cast: SQLite's cast of {have} to {to} could fail on a cell: cast it before.")
        if to.is_float32() and not have.is_float32():
            return call("single", _real(op.arg, arg))
        if to.is_floating():
            return _real(op.arg, arg)
        if to.is_decimal() and have.is_integer():
            return arg  # whole numbers of 64 bits compare exactly
        if to.is_integer() and not have.is_decimal():
            low, high = to.bounds
            if have.is_boolean() or (have.is_integer() and low <= have.bounds.lower and have.bounds.upper <= high):
                return arg
            return call(
                "whole", arg, raw(f"({low})" if low > -(2**63) else "(-9223372036854775807 - 1)"), raw(str(high))
            )
        raise UnsupportedOperation(f"cast: SQLite's cast of {have} to {to} is refused: cast to 'int64' or 'float64'.")

    def visit_Add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, "+", left, right)

    def visit_Subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, "-", left, right)

    def visit_Multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._binary(op, "*", left, right)

    def visit_Divide(self, op: Any, *, left: Any, right: Any) -> Any:
        """A quotient of floats: SQLite's division of whole numbers drops the remainder. A division by 0 is null."""
        return filled("a / b", a=_real(op.left, left), b=_real(op.right, right))

    def visit_Modulus(self, op: Any, *, left: Any, right: Any) -> Any:
        if not op.dtype.is_integer():
            raise UnsupportedOperation("SQLite: a remainder is only taken of whole numbers: cast to 'int64'.")
        return filled("a % b", a=left, b=right)

    def visit_Equals(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, "=", left, right)

    def visit_NotEquals(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, "<>", left, right)

    def visit_Less(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, "<", left, right)

    def visit_LessEqual(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, "<=", left, right)

    def visit_Greater(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, ">", left, right)

    def visit_GreaterEqual(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, ">=", left, right)

    def visit_Negate(self, op: Any, *, arg: Any) -> Any:
        return filled("-a", a=arg)

    def visit_Abs(self, op: Any, *, arg: Any) -> Any:
        """The size of a number. SQLite's ABS fails at -2^63, so a whole number is compared with its opposite."""
        return filled("ABS(a)", a=_real(op.arg, arg)) if op.dtype.is_floating() else filled("MAX(a, -a)", a=arg)

    def visit_Floor(self, op: Any, *, arg: Any) -> Any:
        whole = call("floor", arg)
        return filled("CAST(a AS REAL)", a=whole) if op.dtype.is_floating() else whole

    def visit_Sqrt(self, op: Any, *, arg: Any) -> Any:
        return call("root", arg)

    def visit_Log(self, op: Any, *, arg: Any, base: Any) -> Any:
        if not isinstance(op.base, ops.Literal) or not op.base.value > 1:
            raise UnsupportedOperation("SQLite: the base of a logarithm must be a constant above 1.")
        return call("logarithm", arg, base)

    def visit_Clip(self, op: Any, *, arg: Any, lower: Any, upper: Any) -> Any:
        """A clip, null for null: SQLite's MAX and MIN of several values are null if one of them is."""
        real = op.dtype.is_floating()
        for function, end, limit in (("MAX", op.lower, lower), ("MIN", op.upper, upper)):
            if limit is not None:
                arg = filled(f"{function}(a, b)", a=arg, b=_real(end, limit) if real else limit)
        return arg

    def visit_IsNan(self, op: Any, *, arg: Any) -> Any:
        """False: SQLite has null in place of NaN, and a result that would be NaN is null."""
        return filled("a <> a", a=arg)

    def visit_SearchedCase(self, op: Any, *, cases: Any, results: Any, default: Any) -> Any:
        if is_not_nan(op):
            return results[0]  # SQLite has null in place of NaN
        reals = [self._as(op, value, sql) for value, sql in zip(op.results, results, strict=True)]
        return super().visit_SearchedCase(op, cases=cases, results=reals, default=self._as(op, op.default, default))

    def visit_IfElse(self, op: Any, *, bool_expr: Any, true_expr: Any, false_null_expr: Any) -> Any:
        yes, no = self._as(op, op.true_expr, true_expr), self._as(op, op.false_null_expr, false_null_expr)
        return raw(f"(CASE WHEN {sql_of(bool_expr)} THEN {sql_of(yes)} ELSE {sql_of(no)} END)")

    def visit_Coalesce(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Coalesce(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    def visit_Greatest(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Greatest(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    def visit_Least(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Least(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    # Totals

    def visit_Sum(self, op: Any, *, arg: Any, where: Any) -> Any:
        """A sum of whole numbers in two halves of 32 bits, neither of which leaves 64 bits below 2^31 rows."""
        if where is not None or not (op.arg.dtype.is_integer() or op.arg.dtype.is_boolean()):
            raise UnsupportedOperation("SQLite: only whole numbers are summed, because their sums are exact.")
        return raw(_HALVES.format(sql_of(arg), over=_OVER))

    def visit_WindowFunction(self, op: Any, *, func: Any, **parts: Any) -> Any:
        """A window function. A sum consists of two, each over the window."""
        if not isinstance(op.func, ops.Sum):
            return super().visit_WindowFunction(op, func=func, **parts)
        if op.order_by or not op.group_by:
            raise UnsupportedOperation("SQLite: only whole groups are summed in a window.")
        by = ", ".join(sql_of(value) for value in parts["group_by"])
        return raw(func.name.replace(_OVER, f" OVER (PARTITION BY {by})"))

    def visit_Min(self, op: Any, *, arg: Any, where: Any) -> Any:
        return self.agg.min(arg, where=where)

    def visit_Max(self, op: Any, *, arg: Any, where: Any) -> Any:
        return self.agg.max(arg, where=where)

    visit_Any, visit_All = visit_Max, visit_Min  # noqa: N815 - a Boolean is 0 or 1

    # Texts, which are bytes here

    def visit_StringLength(self, op: Any, *, arg: Any) -> Any:
        return call("length", arg)

    def visit_StringContains(self, op: Any, *, haystack: Any, needle: Any) -> Any:
        return filled("INSTR(a, b) > 0", a=haystack, b=needle)

    def visit_StartsWith(self, op: Any, *, arg: Any, start: Any) -> Any:
        return filled("INSTR(a, b) = 1", a=arg, b=start)

    def visit_EndsWith(self, op: Any, *, arg: Any, end: Any) -> Any:
        """Whether a text has an end. A part of an empty text is null in SQLite, so no part of one is taken."""
        return filled(
            "CASE WHEN LENGTH(b) = 0 THEN a IS NOT NULL OR NULL WHEN LENGTH(a) >= LENGTH(b) "
            "THEN SUBSTR(a, LENGTH(a) - LENGTH(b) + 1) = b WHEN a IS NOT NULL THEN 0 END",
            a=arg,
            b=end,
        )

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
        first, most = _constant(op.start), _constant(op.length)
        if first is None or most is None or first < 0 or most < 0:
            raise UnsupportedOperation("SQLite: the start and length of a part of a text must be constants from 0 on.")
        return call("head", arg, raw(str(first)), raw(str(most)))

    def visit_RegexSearch(self, op: Any, *, arg: Any, pattern: Any) -> Any:
        r"""A regular expression of Python, which writes the end of a text as \Z where Ibis writes \z."""
        assert isinstance(op.pattern, ops.Literal)
        return call("matches", arg, text_literal(str(op.pattern.value).replace(r"\z", r"\Z")))

    # Shared by several operations

    def _binary(self, op: Any, sign: str, left: Any, right: Any) -> Any:
        if not op.dtype.is_numeric() or op.dtype.is_decimal():
            raise UnsupportedOperation(f"SQLite: {sign} on {op.dtype} is refused: cast to 'int64' or 'float64'.")
        real = op.dtype.is_floating()
        return filled(
            f"a {sign} b", a=_real(op.left, left) if real else left, b=_real(op.right, right) if real else right
        )

    def _compared(self, op: Any, sign: str, left: Any, right: Any) -> Any:
        """A comparison. Of a whole number and a float, other engines compare the floats, and SQLite the numbers."""
        real = op.left.dtype.is_floating() or op.right.dtype.is_floating()
        return filled(
            f"a {sign} b", a=_real(op.left, left) if real else left, b=_real(op.right, right) if real else right
        )

    def _as(self, op: Any, value: Any, sql: Any) -> Any:
        """One of several results, as a float where the result is a float."""
        return _real(value, sql) if op.dtype.is_floating() else sql


def _real(op: Any, value: Any) -> Any:
    """A number as a float. A column that Ibis takes for floats has no whole numbers here."""
    return value if op.dtype.is_floating() or op.dtype.is_null() else filled("CAST(a AS REAL)", a=value)


def _constant(op: Any) -> int | None:
    """The value of an integer constant, or of a difference of two; None for another expression."""
    if isinstance(op, ops.Subtract):
        left, right = _constant(op.left), _constant(op.right)
        return None if left is None or right is None else left - right
    return int(op.value) if isinstance(op, ops.Literal) and op.dtype.is_integer() else None
