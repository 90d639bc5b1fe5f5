"""Ibis' compiler for PostgreSQL, with other SQL for each operation that could fail on a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import ibis.expr.datatypes as types
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from dpframe.engine.backends.ibis_compiler import (
    Sql,
    TotalCompiler,
    Written,
    listed_float,
    pieces,
    raw,
)
from dpframe.engine.backends.postgres import operations as sql
from dpframe.errors import UnsupportedOperation

_SHORT = 80  # an operand of at most this many characters may be repeated


def once(text: str, **operands: Sql | None) -> Sql:
    """SQL of an operation with its operands.
    Each operand is computed once, however often the SQL names it.
    """
    texts = {name: sql_of(operand) for name, operand in operands.items() if operand is not None}
    parts = pieces(text)
    names = parts[1::2]
    if any(len(texts[name]) > _SHORT and names.count(name) > 1 for name in texts):
        inner = ", ".join(f"{operand} AS {name}" for name, operand in texts.items())
        return raw(f"(SELECT {''.join(parts)} FROM (SELECT {inner} OFFSET 0) AS o)")
    return raw("(" + "".join(texts[x] if i % 2 else x for i, x in enumerate(parts)) + ")")


def sql_of(value: Sql) -> str:
    """The SQL of an operand, in brackets unless it is a name or a cast."""
    text = value.sql(PostgresCompiler.dialect, copy=False)
    return text if isinstance(value, (sge.Column, sge.Var, sge.Cast)) else f"({text})"


def bytewise(text: Sql) -> Sql:
    """A text that is compared by its bytes."""
    return raw(f'({sql_of(text)} COLLATE "C")')


def sendable(text: str) -> str:
    """A text that PostgreSQL can hold."""
    if "\0" in text or text.encode("utf-8", "replace").decode() != text:
        raise UnsupportedOperation(
            "PostgreSQL cannot hold a text with a zero byte, or one that is not Unicode: change "
            r"it, as with text.replace('\0', '')."
        )
    return text


# (l, h): every value of a float that is not 0 has a magnitude between 2^l and 2^h
Reach = tuple[int, int]

LEAST, MOST = -1074, 1023  # exponents of the smallest and the largest floats
_ANY: Reach = (LEAST, MOST + 1)
_WHOLE: Reach = (0, 100)  # bounds for a whole number, also for a sum of many


def _both(op: ops.Binary) -> tuple[int, int, int, int]:
    """The reach of the left side, and that of the right one."""
    return *reach(op.left), *reach(op.right)


def reach(op: ops.Value) -> Reach:
    """Exponents (l, h) such that each value of an expression is 0 or has a
    magnitude between 2^l and 2^h.

    The range may be wider than needed. A sum of two floats that are multiples of 2^(l - 52) is a
    multiple of 2^(l - 52) too, so it is 0 or at least 2^(l - 52) in magnitude.
    """
    if op.dtype.is_integer():
        return _WHOLE
    number = listed_float(op)
    if number is not None:
        power = math.frexp(number)[1]
        return _ANY if not math.isfinite(number) else (power - 1, power) if number else (0, 0)
    match type(op).__name__:
        case "Literal" if op.value and math.isfinite(op.value):
            power = math.frexp(op.value)[1]
            return power - 1, power
        case "Literal" if op.value == 0:
            return 0, 0
        case "Cast" if op.arg.dtype.is_integer() or op.arg.dtype.is_boolean():
            return _WHOLE
        case "Alias":
            return reach(op.arg)
        case "Floor":
            return 0, max(reach(op.arg)[1], 0) + 1
        case "Abs" | "Negate":
            return reach(op.arg)
        case "Add" | "Subtract":
            low, high, lower, higher = _both(op)
            return max(min(low, lower) - 52, LEAST), min(max(high, higher) + 1, MOST + 1)
        case "Multiply":
            low, high, lower, higher = _both(op)
            return max(low + lower - 1, LEAST), min(high + higher, MOST + 1)
        case "Divide":
            low, high, lower, higher = _both(op)
            return max(low - higher - 1, LEAST), min(high - lower + 1, MOST + 1)
        case "Clip" if isinstance(op.lower, ops.Literal) and isinstance(op.upper, ops.Literal):
            ends = [
                reach(end)[1]
                for end in (op.lower, op.upper)
                if not end.dtype.is_integer() or end.value
            ]
            return LEAST, max(ends, default=0)
    return _ANY


_DIGITS_OF_WHOLE = 20  # a whole number of 64 bits has fewer digits


class PostgresTotalCompiler(TotalCompiler, PostgresCompiler):
    """Ibis' own compiler, with other SQL for each operation that could fail on a value."""

    title = "PostgreSQL"
    also = frozenset(
        {
            "SQLQueryResult",
            "DatabaseTable",
            "InMemoryTable",
            "UnboundTable",
            "Written",
            "Hash",
            "StringConcat",
        }
    )
    SQL: ClassVar[Mapping[type[ops.Value], str]] = {
        ops.Sqrt: sql.ROOT,
        ops.IsNan: "a = 'NaN'",  # in PostgreSQL NaN is equal to NaN
    }
    bases = "between 1 and 2^100"
    largest_base = 2.0**100

    def cast(self, arg: Sql, to: types.DataType) -> Sql:
        """A cast. PostgreSQL has no unsigned integers, so a cast to one becomes a cast to int64."""
        return super().cast(arg, types.int64 if to.is_unsigned_integer() else to)

    def filled(self, text: str, **operands: Sql) -> Sql:
        """SQL with its operands, each of which is computed once."""
        return once(text, **operands)

    def computed_once(self, rows: sge.Select) -> sge.Select:
        return rows.offset(0, copy=False)

    # Values

    def visit_Written(self, op: Written, *, arg: Sql, text: str, dtype: types.DataType) -> Sql:
        check_held(dtype)
        value = once(text, a=arg)
        return bytewise(value) if dtype.is_string() else self.cast(value, dtype)

    def text(self, value: str) -> Sql:
        return bytewise(sge.Literal.string(sendable(value)))

    def number(self, value: float) -> Sql:
        return raw(sql.literal(value))

    def whole_number(self, value: int) -> Sql:
        return self.cast(raw(str(value)), types.int64)

    def converted(self, op: ops.Cast, arg: Sql, to: types.DataType) -> Sql:
        have = op.arg.dtype
        if have.is_boolean() and to.is_numeric():
            return self.cast(once(sql.FROM_TRUTH, a=arg), to)
        if to.is_string():
            return bytewise(self.cast(arg, to))
        if have.is_string():
            raise UnsupportedOperation(
                f"cast: PostgreSQL's cast of text to {to} could fail on a cell."
            )
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
        raise UnsupportedOperation(
            f"cast: PostgreSQL's cast of {have} to {to} could fail on a cell."
        )

    def real(self, op: ops.Value, value: Sql) -> Sql:
        """The number itself: PostgreSQL takes a whole number for a float beside a float."""
        return value

    def arithmetic(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        if op.dtype.is_string() and sign == "+":
            return self.visit_StringConcat(op, arg=(left, right))
        if not op.dtype.is_floating():
            return self._of_whole(op, sign, left, right)
        low, high, lower, higher = _both(op)
        if sign == "*":
            safe, guarded = low + lower >= LEAST and high + higher < MOST, sql.PRODUCT
        else:
            safe, guarded = max(high, higher) < MOST, sql.SUM.format(sign)
        return once(f"a {sign} b" if safe else guarded, a=left, b=right)

    def _of_whole(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        if not op.dtype.is_integer():
            raise self.refused(f"{sign} on {op.dtype} is refused, because it could fail on a cell.")
        return once(f"a {sign} b", a=self.cast(left, types.int64), b=self.cast(right, types.int64))

    def visit_Divide(self, op: ops.Divide, *, left: Sql, right: Sql) -> Sql:
        if not op.left.dtype.is_floating() or not op.right.dtype.is_floating():
            raise self.refused("only floats are divided; its integer division drops the remainder.")
        low, high, lower, higher = _both(op)
        safe = low - higher > LEAST and high - lower < MOST
        return once("a / NULLIF(b, 0)" if safe else sql.QUOTIENT, a=left, b=right)

    def remainder(self, op: ops.Modulus, left: Sql, right: Sql) -> Sql:
        return once(
            "a % NULLIF(b, 0)", a=self.cast(left, types.int64), b=self.cast(right, types.int64)
        )

    def visit_Negate(self, op: ops.Negate, *, arg: Sql) -> Sql:
        return once("-a", a=arg if op.dtype.is_floating() else self.cast(arg, types.int64))

    def visit_Floor(self, op: ops.Floor, *, arg: Sql) -> Sql:
        whole = once("FLOOR(a)", a=arg)
        return whole if op.dtype.is_floating() else once(sql.TRUNCATED, a=whole)

    def logarithm(self, op: ops.Log, arg: Sql, base: float) -> Sql:
        return once(sql.LOGARITHM.replace("{base}", sql.literal(base)), a=arg)

    def visit_Clip(self, op: ops.Clip, *, arg: Sql, lower: Sql | None, upper: Sql | None) -> Sql:
        """A clip as a CASE, which keeps null: GREATEST and LEAST ignore
        null and would return the limit.
        """
        ends = [("a > c", upper, "c"), ("a < b", lower, "b")]
        cases = " ".join(
            f"WHEN {when} THEN {end}" for when, limit, end in ends if limit is not None
        )
        return once(f"CASE {cases} ELSE a END", a=arg, b=lower, c=upper)

    def not_nan(self, op: ops.SearchedCase, value: Sql) -> Sql:
        return once("NULLIF(a, 'NaN')", a=value)

    # Totals

    def summed(self, op: ops.Sum, arg: Sql) -> Sql:
        """A sum of whole numbers, cast to int64.
        It fits (see `limits`), although PostgreSQL makes it a decimal.
        """
        return self.cast(self.agg.sum(arg, where=None), types.int64)

    def visit_WindowFunction(self, op: ops.WindowFunction, *, func: Sql, **parts: object) -> Sql:
        """A window function.
        The cast around a sum (see `summed`) must stand around the whole window function.
        """
        if not isinstance(func, sge.Cast):
            return super().visit_WindowFunction(op, func=func, **parts)
        return self.cast(super().visit_WindowFunction(op, func=func.this, **parts), types.int64)

    # Texts

    def part_of(self, op: ops.Substring, arg: Sql, first: int, most: int) -> Sql:
        """Characters that PostgreSQL counts from 1. Places before the first one count too."""
        text = sql_of(arg)
        start = first + 1 if first >= 0 else f"LENGTH({text}) - {-first - 1}"
        return bytewise(raw(f"SUBSTR({text}, {start}, {min(most, 2**31 - 2 - first)})"))

    def matches(self, op: ops.RegexSearch, arg: Sql, pattern: str) -> Sql:
        r"""A regular expression. PostgreSQL writes the end of a text as \Z, Ibis as \z."""
        return once("a ~ b", a=arg, b=self.text(pattern.replace(r"\z", r"\Z")))

    def visit_StringConcat(self, op: ops.StringConcat, *, arg: Sequence[Sql]) -> Sql:
        """The concatenation of texts, null where one of them is null."""
        return bytewise(raw(f"({' || '.join(map(sql_of, arg))})"))


def check_held(dtype: types.DataType) -> None:
    """Refuse uint64: PostgreSQL's widest integer has a sign, so a cast could fail on a cell.

    Errors: UnsupportedOperation
    """
    if dtype.is_uint64():
        raise UnsupportedOperation("cast: PostgreSQL has no uint64. Take 'int64', or 'float64'.")
