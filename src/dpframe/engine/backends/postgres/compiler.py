"""Ibis' compiler for PostgreSQL, with other SQL for each operation that could fail on a value."""

from __future__ import annotations

from typing import Any

import ibis.expr.datatypes as types
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from dpframe.engine.backends.postgres import operations as sql
from dpframe.engine.backends.postgres.reach import LEAST, MOST, reach
from dpframe.engine.backends.postgres.written import bytewise, once, raw, sendable, sql_of
from dpframe.engine.backends.written import is_not_nan, listed_float
from dpframe.errors import UnsupportedOperation

_TABLES = """Select Filter Project Aggregate JoinChain JoinLink JoinTable JoinReference SelfReference CTE Union Limit
Distinct DropColumns DropNull FillNull SQLQueryResult DatabaseTable InMemoryTable DummyTable UnboundTable"""
_VALUES = """Field Literal Alias Written Cast Add Subtract Multiply Divide Modulus Floor Abs Sqrt Log Negate
Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan InValues
Coalesce Greatest Least Clip IfElse SearchedCase Count CountStar CountDistinct Sum Min Max Any
WindowFunction WindowBoundary RowNumber MinRank SortKey Hash
StringLength StringContains StartsWith EndsWith Substring StringConcat RegexSearch"""
_TOTAL = frozenset(f"{_TABLES} {_VALUES}".split())  # the operations that no cell makes fail, with the SQL written here


_LARGEST_BASE = 2.0**100  # upper limit for the base of a logarithm
_DIGITS_OF_WHOLE = 20  # a whole number of 64 bits has fewer digits


class Compiler(PostgresCompiler):  # type: ignore[misc]
    """Ibis' own compiler, with other SQL for each operation that could fail on a value."""

    def visit_node(self, op: Any, **parts: Any) -> Any:
        name = type(op).__name__
        if name not in _TOTAL:
            raise UnsupportedOperation(f"PostgreSQL: {name} is refused, because it could fail on a cell.")
        return super().visit_node(op, **parts)

    def cast(self, arg: Any, to: Any) -> Any:
        """A cast. PostgreSQL has no unsigned integers, so a cast to one becomes a cast to int64."""
        return super().cast(arg, types.int64 if to.is_unsigned_integer() else to)

    # Tables

    def visit_Select(self, op: Any, **parts: Any) -> Any:
        """With OFFSET 0, columns are computed once, even if several expressions of the query around them read them."""
        rows = super().visit_Select(op, **parts)
        has_expressions = not all(isinstance(value, ops.Field) for value in op.selections.values())
        return rows.offset(0, copy=False) if has_expressions and isinstance(rows, sge.Select) else rows

    # Values

    def visit_Written(self, op: Any, *, arg: Any, text: str, dtype: Any) -> Any:
        check_held(dtype)
        value = once(text, a=arg)
        return bytewise(value) if dtype.is_string() else self.cast(value, dtype)

    def visit_Literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        if value is None:
            return self.cast(sge.Null(), dtype) if not dtype.is_null() else sge.Null()
        if dtype.is_boolean():
            return sge.Boolean(this=bool(value))
        if dtype.is_string():
            return bytewise(sge.convert(sendable(value)))
        if dtype.is_floating():
            return raw(sql.literal(value))
        return self.cast(sge.convert(value), types.int64 if dtype.is_integer() else dtype)

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        have, number = op.arg.dtype, listed_float(op)
        if number is not None:
            return raw(sql.literal(number))
        if have.is_boolean() and to.is_numeric():
            return self.cast(once(sql.FROM_TRUTH, a=arg), to)
        if to.is_string():
            return bytewise(self.cast(arg, to))
        if have.is_string():
            raise UnsupportedOperation(f"cast: PostgreSQL's cast of text to {to} could fail on a cell.")
        if have.is_decimal() and to.is_floating():
            return once(sql.FROM_DECIMAL, a=arg)
        if to.is_float32() and not have.is_float32():
            return once(sql.SINGLE, a=arg)
        check_held(to)
        if to.is_decimal() and have.is_integer() and to.precision - to.scale >= _DIGITS_OF_WHOLE:
            return self.cast(arg, to)
        if to.is_integer():
            wide = once(sql.TRUNCATED, a=arg) if have.is_floating() else arg
            low, high = to.bounds
            if have.is_integer() and low <= have.bounds.lower and have.bounds.upper <= high:
                return self.cast(arg, to)
            return self.cast(once(f"CASE WHEN a BETWEEN {low} AND {high} THEN a END", a=wide), to)
        if to.is_floating() and (have.is_integer() or have.is_floating()):
            return self.cast(arg, to)
        raise UnsupportedOperation(f"cast: PostgreSQL's cast of {have} to {to} could fail on a cell.")

    def visit_Add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._sum(op, left, right, "+")

    def visit_Subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._sum(op, left, right, "-")

    def visit_Multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        if not op.dtype.is_floating():
            return self._plain(op, "*", left, right)
        (low, high), (lower, higher) = reach(op.left), reach(op.right)
        safe = low + lower >= LEAST and high + higher < MOST
        return once("a * b" if safe else sql.PRODUCT, a=left, b=right)

    def visit_Divide(self, op: Any, *, left: Any, right: Any) -> Any:
        if not op.left.dtype.is_floating() or not op.right.dtype.is_floating():
            raise UnsupportedOperation("PostgreSQL: only floats are divided; its integer division drops the remainder.")
        (low, high), (lower, higher) = reach(op.left), reach(op.right)
        safe = low - higher > LEAST and high - lower < MOST
        return once("a / NULLIF(b, 0)" if safe else sql.QUOTIENT, a=left, b=right)

    def visit_Modulus(self, op: Any, *, left: Any, right: Any) -> Any:
        if not op.dtype.is_integer():
            raise UnsupportedOperation("PostgreSQL: a remainder is only taken of whole numbers.")
        return once("a % NULLIF(b, 0)", a=self.cast(left, types.int64), b=self.cast(right, types.int64))

    def visit_Negate(self, op: Any, *, arg: Any) -> Any:
        return once("-a", a=arg if op.dtype.is_floating() else self.cast(arg, types.int64))

    def visit_Floor(self, op: Any, *, arg: Any) -> Any:
        whole = once("FLOOR(a)", a=arg)
        return whole if op.dtype.is_floating() else once(sql.TRUNCATED, a=whole)

    def visit_Sqrt(self, op: Any, *, arg: Any) -> Any:
        return once(sql.ROOT, a=arg)

    def visit_Log(self, op: Any, *, arg: Any, base: Any) -> Any:
        if not isinstance(op.base, ops.Literal) or not 1 < op.base.value < _LARGEST_BASE:
            raise UnsupportedOperation("PostgreSQL: the base of a logarithm must be a constant between 1 and 2^100.")
        return once(sql.LOGARITHM.replace("{base}", sql.literal(float(op.base.value))), a=arg)

    def visit_Clip(self, op: Any, *, arg: Any, lower: Any, upper: Any) -> Any:
        """A clip as a CASE, which keeps null: GREATEST and LEAST ignore null and would return the limit."""
        ends = [("a > c", upper, "c"), ("a < b", lower, "b")]
        cases = " ".join(f"WHEN {when} THEN {end}" for when, limit, end in ends if limit is not None)
        return once(f"CASE {cases} ELSE a END", a=arg, b=lower, c=upper)

    def visit_IsNan(self, op: Any, *, arg: Any) -> Any:
        return once("a = 'NaN'", a=arg)  # in PostgreSQL NaN is equal to NaN

    def visit_SearchedCase(self, op: Any, *, cases: Any, results: Any, default: Any) -> Any:
        if is_not_nan(op):
            return once("NULLIF(a, 'NaN')", a=results[0])
        return super().visit_SearchedCase(op, cases=cases, results=results, default=default)

    def visit_Sum(self, op: Any, *, arg: Any, where: Any) -> Any:
        """A sum of whole numbers, cast to int64. It fits (see `limits`), although PostgreSQL makes it a decimal."""
        if not op.arg.dtype.is_integer():
            raise UnsupportedOperation("PostgreSQL: only whole numbers are summed, because their sums are exact.")
        return self.cast(super().visit_Sum(op, arg=arg, where=where), types.int64)

    def visit_WindowFunction(self, op: Any, *, func: Any, **parts: Any) -> Any:
        """A window function. The cast around a sum (see `visit_Sum`) must stand around the whole window function."""
        if not isinstance(func, sge.Cast):
            return super().visit_WindowFunction(op, func=func, **parts)
        return self.cast(super().visit_WindowFunction(op, func=func.this, **parts), types.int64)

    # Texts

    def visit_RegexSearch(self, op: Any, *, arg: Any, pattern: Any) -> Any:
        r"""A regular expression. PostgreSQL writes the end of a text as \Z, Ibis as \z."""
        assert isinstance(op.pattern, ops.Literal)
        regex = str(op.pattern.value).replace(r"\z", r"\Z").replace("'", "''")
        return raw(f"({sql_of(arg)} ~ '{regex}')")

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
        first, most = _constant(op.start), _constant(op.length)
        if first is None or most is None or first < 0 or most < 0:
            raise UnsupportedOperation(
                "PostgreSQL: the start and length of a part of a text must be constants from 0 on."
            )
        return bytewise(raw(f"SUBSTR({sql_of(arg)}, {first + 1}, {min(most, 2**31 - 2 - first)})"))

    def visit_StringConcat(self, op: Any, *, arg: Any) -> Any:
        """The concatenation of texts, null where one of them is null."""
        return bytewise(raw(f"({' || '.join(map(sql_of, arg))})"))

    # Shared by several operations

    def _plain(self, op: Any, sign: str, left: Any, right: Any) -> Any:
        if not op.dtype.is_integer():
            raise UnsupportedOperation(f"PostgreSQL: {sign} on {op.dtype} is refused, because it could fail on a cell.")
        return once(f"a {sign} b", a=self.cast(left, types.int64), b=self.cast(right, types.int64))

    def _sum(self, op: Any, left: Any, right: Any, sign: str) -> Any:
        if op.dtype.is_string() and sign == "+":
            return self.visit_StringConcat(op, arg=(left, right))
        if not op.dtype.is_floating():
            return self._plain(op, sign, left, right)
        safe = max(reach(op.left)[1], reach(op.right)[1]) < MOST
        return once(f"a {sign} b" if safe else sql.SUM.format(sign), a=left, b=right)


def check_held(dtype: Any) -> None:
    """Refuse uint64: PostgreSQL's widest integer has a sign, so a cast could fail on a cell.

    Errors: UnsupportedOperation
    """
    if dtype.is_uint64():
        raise UnsupportedOperation("cast: PostgreSQL has no uint64. Take 'int64', or 'float64'.")


def _constant(op: Any) -> int | None:
    """The value of an integer constant, or of a difference of two; None for another expression."""
    if isinstance(op, ops.Subtract):
        left, right = _constant(op.left), _constant(op.right)
        return None if left is None or right is None else left - right
    return int(op.value) if isinstance(op, ops.Literal) and op.dtype.is_integer() else None
