"""Ibis' compiler for SQLite, with other SQL for each operation that
could fail on a value or differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import ibis
import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.sqlite import SQLiteCompiler
from ibis.expr import datatypes as types

from dpframe.engine.backends.ibis_compiler import (
    Called,
    Sql,
    TotalCompiler,
    Written,
    raw,
    whole_literal,
)
from dpframe.engine.backends.sqlite.written import flat, float_literal, text_literal
from dpframe.errors import UnsupportedOperation

# A sum in two halves of 32 bits. A window takes the place of the comment.
_OVER = " /*over*/"
_HALVES = "(SUM({0} >> 32){over} * 4294967296 + SUM({0} & 4294967295){over})"
# Whether a text has an end. A part of an empty text is null in SQLite, so no part of one is taken.
_ENDS = """CASE WHEN LENGTH(b) = 0 THEN a IS NOT NULL OR NULL WHEN LENGTH(a) >= LENGTH(b)
THEN SUBSTR(a, LENGTH(a) - LENGTH(b) + 1) = b WHEN a IS NOT NULL THEN 0 END"""


class SqliteTotalCompiler(TotalCompiler, SQLiteCompiler):
    """Ibis' own compiler, with other SQL for each operation that could fail
    on a value, and texts as bytes.
    """

    title = "SQLite"
    also = frozenset(
        {"SQLQueryResult", "DatabaseTable", "Written", "Called", "All", "StringConcat"}
    )
    SQL: ClassVar[Mapping[type[ops.Value], str]] = {
        ops.Negate: "-a",
        ops.Sqrt: "dpframe_root(a)",
        # false: SQLite has null in place of NaN, and a result that would be NaN is null
        ops.IsNan: "a <> a",
        ops.StringLength: "dpframe_length(a)",  # texts are bytes here
        ops.StringContains: "INSTR(a, b) > 0",
        ops.StartsWith: "INSTR(a, b) = 1",
        ops.EndsWith: _ENDS,
    }

    def written(self, rows: ibis.Table) -> str:
        return flat(self.to_sqlglot(rows)).sql(self.dialect)

    # Tables

    def visit_DatabaseTable(
        self,
        op: ops.DatabaseTable,
        *,
        name: str,
        schema: ibis.Schema,
        source: object,
        namespace: ops.Namespace,
    ) -> Sql:
        """The table whose columns Ibis listed.
        Without its schema, a temporary table of that name would be read.
        """
        return sge.table_(
            name, db=namespace.database or "main", catalog=namespace.catalog, quoted=self.quoted
        )

    def visit_SQLQueryResult(
        self, op: ops.SQLQueryResult, *, query: str, schema: ibis.Schema, source: object
    ) -> Sql:
        return sge.Subquery(this=raw(query))

    def computed_once(self, rows: sge.Select) -> sge.Select:
        """With a limit that removes nothing, SQLite computes columns once, and
        does not copy their expressions.

        It copies the expressions of a subquery into the query around it, as often as they are named
        there. After many steps the copies would have no end.
        """
        return rows.limit(-1, copy=False)

    # Values

    def visit_Written(self, op: Written, *, arg: Sql, text: str, dtype: types.DataType) -> Sql:
        return self.filled(text, a=arg)

    def visit_Called(
        self,
        op: Called,
        *,
        name: str,
        options: Sequence[str],
        arg: Sequence[Sql],
        dtype: types.DataType,
    ) -> Sql:
        operands = [*map(self.text, options), *arg]
        return raw(f"dpframe_{name}({', '.join(map(self.sql_of, operands))})")

    def missing(self, dtype: types.DataType) -> Sql:
        return sge.Null()

    def truth(self, value: bool) -> Sql:
        return raw(str(int(value)))

    def text(self, value: str) -> Sql:
        return raw(text_literal(value))

    def number(self, value: float) -> Sql:
        return raw(float_literal(value))

    def converted(self, op: ops.Cast, arg: Sql, to: types.DataType) -> Sql:
        if to.is_uint64():
            raise UnsupportedOperation("cast: SQLite has no uint64. Take 'int64', or 'float64'.")
        return arg if op.arg.dtype.is_null() else super().converted(op, arg, to)

    def to_text(self, op: ops.Cast, arg: Sql) -> Sql:
        if op.arg.dtype.is_boolean():
            # true, false
            return self.filled(
                "CASE WHEN a THEN x'74727565' WHEN NOT a THEN x'66616c7365' END", a=arg
            )
        return self.filled("CAST(CAST(a AS TEXT) AS BLOB)", a=arg)

    def single(self, op: ops.Cast, arg: Sql) -> Sql:
        return self.filled("dpframe_single(a)", a=self.real(op.arg, arg))

    def whole(self, op: ops.Cast, arg: Sql, low: int, high: int) -> Sql:
        return self.filled(f"dpframe_whole(a, {whole_literal(low)}, {high})", a=arg)

    def truth_as_number(self, arg: Sql) -> Sql:
        return arg

    def real(self, op: ops.Value, value: Sql) -> Sql:
        """A number as a float. A column that Ibis takes for floats has no whole numbers here."""
        return (
            value
            if op.dtype.is_floating() or op.dtype.is_null()
            else self.filled("CAST(a AS REAL)", a=value)
        )

    def arithmetic(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        if not op.dtype.is_numeric() or op.dtype.is_decimal():
            raise self.refused(f"{sign} on {op.dtype} is refused: cast to 'int64' or 'float64'.")
        return self.filled(
            f"a {sign} b", a=self.typed(op, op.left, left), b=self.typed(op, op.right, right)
        )

    def visit_Divide(self, op: ops.Divide, *, left: Sql, right: Sql) -> Sql:
        """A quotient of floats: SQLite's division of whole numbers drops the remainder.
        A division by 0 is null.
        """
        return self.filled("a / b", a=self.real(op.left, left), b=self.real(op.right, right))

    def visit_Abs(self, op: ops.Abs, *, arg: Sql) -> Sql:
        """The size of a number.
        SQLite's ABS fails at -2^63, so a whole number is compared with its opposite.
        """
        return self.filled(
            "ABS(a)" if op.dtype.is_floating() else "MAX(a, -a)", a=self.typed(op, op.arg, arg)
        )

    def visit_Floor(self, op: ops.Floor, *, arg: Sql) -> Sql:
        return self.filled(
            "CAST(dpframe_floor(a) AS REAL)" if op.dtype.is_floating() else "dpframe_floor(a)",
            a=arg,
        )

    def logarithm(self, op: ops.Log, arg: Sql, base: float) -> Sql:
        return self.filled("dpframe_logarithm(a, b)", a=arg, b=self.number(base))

    def visit_Clip(self, op: ops.Clip, *, arg: Sql, lower: Sql | None, upper: Sql | None) -> Sql:
        """A clip, null for null: SQLite's MAX and MIN of several
        values are null if one of them is.
        """
        for function, end, limit in (("MAX", op.lower, lower), ("MIN", op.upper, upper)):
            if limit is not None:
                arg = self.filled(f"{function}(a, b)", a=arg, b=self.typed(op, end, limit))
        return arg

    def not_nan(self, op: ops.SearchedCase, value: Sql) -> Sql:
        return value  # SQLite has null in place of NaN

    # Totals

    def summed(self, op: ops.Sum, arg: Sql) -> Sql:
        """A sum of whole numbers in two halves of 32 bits, neither of which
        leaves 64 bits below 2^31 rows.
        """
        return raw(_HALVES.format(self.sql_of(arg), over=_OVER))

    def visit_WindowFunction(
        self, op: ops.WindowFunction, *, func: Sql, group_by: Sequence[Sql], **parts: object
    ) -> Sql:
        """A window function. A sum consists of two, each over the window."""
        if not isinstance(op.func, ops.Sum):
            return super().visit_WindowFunction(op, func=func, group_by=group_by, **parts)
        if op.order_by or not op.group_by:
            raise self.refused("only whole groups are summed in a window.")
        by = ", ".join(map(self.sql_of, group_by))
        return raw(func.name.replace(_OVER, f" OVER (PARTITION BY {by})"))

    def visit_Min(self, op: ops.Min, *, arg: Sql, where: Sql | None) -> Sql:
        return self.agg.min(arg, where=where)

    def visit_Max(self, op: ops.Max, *, arg: Sql, where: Sql | None) -> Sql:
        return self.agg.max(arg, where=where)

    visit_Any, visit_All = visit_Max, visit_Min  # a Boolean is 0 or 1

    # Texts, which are bytes here

    def part_of(self, op: ops.Substring, arg: Sql, first: int, most: int) -> Sql:
        return self.filled(f"dpframe_head(a, {first}, {most})", a=arg)

    def visit_StringConcat(self, op: ops.StringConcat, *, arg: Sequence[Sql]) -> Sql:
        return raw(f"dpframe_joined({', '.join(map(self.sql_of, arg))})")

    def matches(self, op: ops.RegexSearch, arg: Sql, pattern: str) -> Sql:
        r"""A regular expression of Python, which writes the end of a
        text as \Z where Ibis writes \z.
        """
        return self.filled(
            "dpframe_matches(a, b)", a=arg, b=self.text(pattern.replace(r"\z", r"\Z"))
        )
