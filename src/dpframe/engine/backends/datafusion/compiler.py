"""Ibis' compiler for DataFusion, with a function of dpframe for each operation that
could fail on a value or differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import ibis.expr.operations as ops
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.datafusion import DataFusionCompiler
from ibis.expr import datatypes as types
from ibis.expr import types as ir

from dpframe.engine.backends.datafusion.functions import arrow_type
from dpframe.engine.backends.ibis_compiler import Called, Sql, TotalCompiler
from dpframe.errors import UnsupportedOperation

Operand = tuple[ops.Value, Sql]  # an operation and its SQL
_NAMES = {"+": "add", "-": "subtract", "*": "multiply"}
# subqueries within each other; between 200 and 250 of them DataFusion's planner leaves its stack
_DEEPEST = 150


class Function(NamedTuple):
    """A call of one of dpframe's functions in DataFusion, its constants, and the
    Arrow types of operands and result.
    """

    name: str
    options: tuple[object, ...]
    inputs: tuple[pa.DataType, ...]
    output: pa.DataType


class Opened(ops.SQLQueryResult):
    """The user's table, as a query in the user's session, with the types that
    DataFusion has for its columns.
    """

    types: tuple[tuple[str, pa.DataType], ...]


class DataFusionTotalCompiler(TotalCompiler, DataFusionCompiler):
    """Ibis' own compiler, with calls of dpframe's functions.
    It lists the calls and the tables of its query.
    """

    title = "DataFusion"
    also = frozenset({"Opened", "InMemoryTable", "Called", "All", "StringConcat"})
    bare = (sge.Column, sge.Paren, sge.Var)
    SQL: ClassVar[Mapping[type[ops.Value], str]] = {  # the names of functions
        ops.Divide: "divide",
        ops.Abs: "size",
        ops.Floor: "floor",
        ops.Sqrt: "root",
        ops.IsNan: "is_nan",
        ops.StringLength: "length",
        ops.StringContains: "contains",
        ops.StartsWith: "starts",
        ops.EndsWith: "ends",
    }

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Function, str] = {}  # with the name under which the query calls it
        self.tables: dict[ops.Relation, str] = {}  # with the name under which the query reads it

    def written(self, rows: ir.Expr) -> str:
        """The SQL of a query.
        Errors: UnsupportedOperation where it nests so deeply that DataFusion may crash.
        """
        query = self.to_sqlglot(rows)
        if nesting(query) > _DEEPEST:
            raise UnsupportedOperation(
                f"DataFusion: this question has {_DEEPEST} subqueries within each other or more, "
                "and DataFusion would crash on many more. Take some of its steps in DataFusion, "
                "before dp.protect(...)."
            )
        text: str = query.sql(self.dialect)
        return text

    # Tables

    def visit_Opened(self, op: ops.Relation, **parts: object) -> Sql:
        return sge.Table(
            this=sg.to_identifier(
                self.tables.setdefault(op, f"table_{len(self.tables)}"), quoted=True
            )
        )

    visit_InMemoryTable = visit_Opened

    # Calls

    def visit_Called(
        self,
        op: Called,
        *,
        name: str,
        options: tuple[object, ...],
        arg: Sequence[Sql],
        dtype: types.DataType,
    ) -> Sql:
        inputs = options if name == "held" else [arrow_type(operand.dtype) for operand in op.arg]
        return self._called(Function(name, options, tuple(inputs), arrow_type(dtype)), arg)

    def _called(self, function: Function, operands: Sequence[Sql]) -> Sql:
        name = self.calls.setdefault(function, f"dpframe_{len(self.calls)}")
        return sge.Anonymous(this=name, expressions=list(operands))

    def _call(
        self, name: str, dtype: types.DataType, *operands: Operand, options: tuple[object, ...] = ()
    ) -> Sql:
        """A call with operands.
        Where the result is a float, they are floats, and the function is that of floats.
        """
        inputs = tuple(arrow_type(op.dtype) for op, _ in operands)
        if not dtype.is_floating():
            return self._called(
                Function(name, options, inputs, arrow_type(dtype)), [sql for _, sql in operands]
            )
        function = Function(f"{name}_real", options, (pa.float64(),) * len(operands), pa.float64())
        return self._called(function, [self.real(op, sql) for op, sql in operands])

    def line(self, op: ops.Value, text: str, operands: Sequence[Sql]) -> Sql:
        return self._call(text, op.dtype, *zip(op.args, operands, strict=True))

    # Constants

    def type_of(self, dtype: types.DataType) -> types.DataType:
        if dtype.is_floating():
            return types.float64
        return dtype if dtype.is_string() or dtype.is_boolean() else types.int64

    def text(self, value: str) -> Sql:
        if value.encode("utf-8", "replace").decode() != value:
            raise UnsupportedOperation(
                "DataFusion cannot hold a text that is not Unicode: change it."
            )
        return sge.Literal.string(value)

    def number(self, value: float) -> Sql:
        """A float constant, as the cast of a text: a setting of the
        session cannot make it a decimal.
        """
        return self.cast(sge.convert(repr(value + 0.0)), types.float64)

    # Casts

    def converted(self, op: ops.Cast, arg: Sql, to: types.DataType) -> Sql:
        have = op.arg.dtype
        if have.is_null():
            return self.cast(arg, self.type_of(to))
        if to.is_uint64():
            raise UnsupportedOperation(
                "cast: DataFusion's uint64 is not held. Take 'int64', or 'float64'."
            )
        if have.is_boolean() and to.is_float64():
            return self._called(Function("truth_real", (), (pa.bool_(),), pa.float64()), [arg])
        return super().converted(op, arg, to)

    def to_text(self, op: ops.Cast, arg: Sql) -> Sql:
        return self._call("text", types.string, (op.arg, arg))

    def single(self, op: ops.Cast, arg: Sql) -> Sql:
        return self._call("single", types.float64, (op.arg, arg))

    def whole(self, op: ops.Cast, arg: Sql, low: int, high: int) -> Sql:
        return self._call("whole", types.int64, (op.arg, arg), options=(low, high))

    # Numbers

    def arithmetic(self, op: ops.Binary, sign: str, left: Sql, right: Sql) -> Sql:
        """Whole numbers wrap in DataFusion. Floats are computed by dpframe's function."""
        if op.dtype.is_floating():
            return self._call(_NAMES[sign], op.dtype, (op.left, left), (op.right, right))
        if not op.dtype.is_integer():
            raise self.refused(
                f"{_NAMES[sign]} on {op.dtype} is refused: cast to 'int64' or 'float64'."
            )
        return self.filled(f"a {sign} b", a=left, b=right)

    def remainder(self, op: ops.Modulus, left: Sql, right: Sql) -> Sql:
        return self._call("remainder", types.int64, (op.left, left), (op.right, right))

    def visit_Negate(self, op: ops.Negate, *, arg: Sql) -> Sql:
        real = op.dtype.is_floating()
        return (
            self._call("negate", op.dtype, (op.arg, arg)) if real else self.filled("0 - a", a=arg)
        )

    def logarithm(self, op: ops.Log, arg: Sql, base: float) -> Sql:
        return self._call("logarithm", types.float64, (op.arg, arg), options=(base,))

    def visit_Clip(self, op: ops.Clip, *, arg: Sql, lower: Sql | None, upper: Sql | None) -> Sql:
        ends = [
            (end, sql) for end, sql in ((op.lower, lower), (op.upper, upper)) if sql is not None
        ]
        return self._call(
            "clip", op.dtype, (op.arg, arg), *ends, options=(lower is not None, upper is not None)
        )

    def not_nan(self, op: ops.SearchedCase, value: Sql) -> Sql:
        return self._call("not_nan", types.float64, (op.results[0], value))

    def typed(self, op: ops.Value, value: ops.Value, sql: Sql) -> Sql:
        """One of several results, in the type of all of them."""
        return (
            self.cast(sql, self.type_of(op.dtype))
            if value.dtype.is_null()
            else super().typed(op, value, sql)
        )

    # Totals

    def summed(self, op: ops.Sum, arg: Sql) -> Sql:
        """A sum of whole numbers, which is exact; it fits in 64 bits (see `limits`)."""
        return self.f.sum(arg)

    def visit_Min(self, op: ops.Min | ops.Max, *, arg: Sql, where: Sql | None) -> Sql:
        """The least or largest value. Of floats it is that of whole numbers in the same order.

        In DataFusion the least of a group of infinities alone is the largest float that is no
        infinity.
        """
        if where is not None:
            raise self.refused("a least or largest value is taken of all rows: filter them first.")
        extreme = self.f.min if isinstance(op, ops.Min) else self.f.max
        return (
            self._unranked(extreme(self._call("rank", types.int64, (op.arg, arg))))
            if _ranked(op)
            else extreme(arg)
        )

    visit_Max = visit_Min

    def _unranked(self, value: Sql) -> Sql:
        return self._called(Function("unrank", (), (pa.int64(),), pa.float64()), [value])

    def visit_WindowFunction(self, op: ops.WindowFunction, *, func: Sql, **parts: object) -> Sql:
        """A window function. DataFusion counts rows and ranks in whole numbers without a sign."""
        if _ranked(op.func):  # the window is of the whole numbers
            (inner,) = func.expressions
            return self._unranked(super().visit_WindowFunction(op, func=inner, **parts))
        value = super().visit_WindowFunction(op, func=func, **parts)
        return self.cast(value, types.int64) if op.dtype.is_integer() else value

    # Texts

    def part_of(self, op: ops.Substring, arg: Sql, first: int, most: int) -> Sql:
        return self._call("head", types.string, (op.arg, arg), options=(first, most))

    def visit_StringConcat(self, op: ops.StringConcat, *, arg: Sequence[Sql]) -> Sql:
        return self._call("joined", types.string, *zip(op.arg, arg, strict=True))

    def matches(self, op: ops.RegexSearch, arg: Sql, pattern: str) -> Sql:
        return self._call("matches", types.boolean, (op.arg, arg), options=(pattern,))


def nesting(query: sge.Query) -> int:
    """The most subqueries within each other, through those that have a name."""
    known: dict[str, int] = {}
    deepest = 0
    for name, body in [*((cte.alias, cte.this) for cte in query.ctes), ("", query)]:
        deepest, pending = 0, [(body, 0)]
        while pending:
            part, depth = pending.pop()
            match part:
                case sge.Select():
                    depth += 1
                case sge.Table():
                    depth += known.get(part.name, 0)
            deepest = max(deepest, depth)
            pending += [
                (inner, depth)
                for inner in part.iter_expressions()
                if not isinstance(inner, sge.With)
            ]
        known[name] = deepest
    return deepest


def _ranked(op: ops.Value) -> bool:
    """Whether an operation is the least or largest of floats."""
    return isinstance(op, (ops.Min, ops.Max)) and bool(op.dtype.is_floating())
