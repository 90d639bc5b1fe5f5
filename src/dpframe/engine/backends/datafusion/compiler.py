"""Ibis' compiler for DataFusion, with a function of dpframe for each operation that could fail on a value or differ."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import ibis.expr.operations as ops
import ibis.expr.rules as rules
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.datafusion import DataFusionCompiler
from ibis.common.typing import VarTuple
from ibis.expr import datatypes as types

from dpframe.engine.backends.datafusion.functions import arrow_type
from dpframe.engine.backends.written import is_not_nan, listed_float
from dpframe.errors import UnsupportedOperation

_TABLES = """Select Filter Project Aggregate JoinChain JoinLink JoinTable JoinReference SelfReference CTE Union Limit
Distinct DropColumns DropNull FillNull Opened InMemoryTable DummyTable"""
_VALUES = """Field Literal Alias Called Cast Add Subtract Multiply Divide Modulus Floor Abs Sqrt Log Negate
Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan InValues
Coalesce Greatest Least Clip IfElse SearchedCase Count CountStar CountDistinct Sum Min Max Any All
WindowFunction WindowBoundary RowNumber MinRank SortKey
StringLength StringContains StartsWith EndsWith Substring RegexSearch"""
_DEEPEST = 150  # subqueries within each other; between 200 and 250 of them DataFusion's planner leaves its stack
_TOTAL = frozenset(f"{_TABLES} {_VALUES}".split())  # the operations that no cell makes fail, as they are written here


class Called(ops.Value):  # type: ignore[misc]
    """A call of one of dpframe's functions, by its name, with constants and any number of columns."""

    name: str
    options: Any
    arg: VarTuple[ops.Value]
    dtype: types.DataType
    shape = rules.shape_like("arg")


class Function(NamedTuple):
    """What DataFusion calls: one of dpframe's functions, its constants, and the Arrow types of operands and result."""

    name: str
    options: Any
    inputs: tuple[pa.DataType, ...]
    output: pa.DataType


class Opened(ops.SQLQueryResult):  # type: ignore[misc]
    """The user's table, as a query in the user's session, with the types that DataFusion has for its columns."""

    types: Any


class Compiler(DataFusionCompiler):  # type: ignore[misc]
    """Ibis' own compiler, with calls of dpframe's functions. It lists the calls and the tables of its query."""

    UNSUPPORTED_OPS: tuple[Any, ...] = ()  # for these and the next, Ibis would replace the methods below
    SIMPLE_OPS: ClassVar[dict[Any, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Function, str] = {}  # with the name under which the query calls it
        self.tables: dict[Any, str] = {}  # with the name under which the query reads it

    def visit_node(self, op: Any, **parts: Any) -> Any:
        name = type(op).__name__
        if name not in _TOTAL:
            raise UnsupportedOperation(
                f"DataFusion: {name} is refused, because it could fail on a cell. Take these steps in DataFusion, "
                "before dp.protect(...)."
            )
        return super().visit_node(op, **parts)

    def written(self, rows: Any) -> str:
        """The SQL of a query. Errors: UnsupportedOperation where it nests so deeply that DataFusion may crash."""
        query = self.to_sqlglot(rows)
        if nesting(query) > _DEEPEST:
            raise UnsupportedOperation(
                f"DataFusion: this question has {_DEEPEST} subqueries within each other or more, and DataFusion would "
                "crash on many more. Take some of its steps in DataFusion, before dp.protect(...)."
            )
        text: str = query.sql(self.dialect)
        return text

    # Tables

    def visit_Opened(self, op: Any, **parts: Any) -> Any:
        return self._table(op)

    def visit_InMemoryTable(self, op: Any, **parts: Any) -> Any:
        return self._table(op)

    def _table(self, op: Any) -> Any:
        return sge.Table(this=sg.to_identifier(self.tables.setdefault(op, f"table_{len(self.tables)}"), quoted=True))

    # Calls

    def visit_Called(self, op: Any, *, name: str, options: Any, arg: Any, dtype: Any) -> Any:
        inputs = [options[0]] if name == "held" else [arrow_type(operand.dtype) for operand in op.arg]
        return self._called(Function(name, options, tuple(inputs), arrow_type(dtype)), arg)

    def _called(self, function: Function, operands: Any) -> Any:
        name = self.calls.setdefault(function, f"dpframe_{len(self.calls)}")
        return sge.Anonymous(this=name, expressions=list(operands))

    def _call(self, name: str, dtype: Any, *operands: tuple[Any, Any], options: tuple[Any, ...] = ()) -> Any:
        """A call with operands, each an operation and its SQL."""
        inputs = tuple(arrow_type(op.dtype) for op, _ in operands)
        return self._called(Function(name, options, inputs, arrow_type(dtype)), [sql for _, sql in operands])

    def _call_on_floats(self, name: str, *operands: tuple[Any, Any], options: tuple[Any, ...] = ()) -> Any:
        """A call whose operands and result are floats."""
        function = Function(name, options, (pa.float64(),) * len(operands), pa.float64())
        return self._called(function, [self._real(op, sql) for op, sql in operands])

    def _real(self, op: Any, value: Any) -> Any:
        """A number as a float. A cast of 64 bits to a float cannot fail."""
        return value if op.dtype.is_floating() else self.cast(value, types.float64)

    # Values

    def visit_Literal(self, op: Any, *, value: Any, dtype: Any) -> Any:
        if value is None:
            return sge.Null() if dtype.is_null() else self.cast(sge.Null(), _inner(dtype))
        if dtype.is_boolean():
            return sge.Boolean(this=bool(value))
        if dtype.is_string():
            return sge.convert(_sendable(value))
        if dtype.is_floating() or dtype.is_decimal():
            return self._float(float(value))
        if not dtype.is_integer():
            raise UnsupportedOperation(f"DataFusion: a constant of type {dtype} is refused: give a number or a text.")
        if not -(2**63) <= value < 2**63:
            raise UnsupportedOperation(f"DataFusion: {value} leaves 64 bits. Give a float, such as {float(value)!r}.")
        return sge.Var(this=f"({value})" if value > -(2**63) else "(-9223372036854775807 - 1)")

    def _float(self, value: float) -> Any:
        """A float constant, as the cast of a text: a setting of the session cannot make it a decimal."""
        return self.cast(sge.convert(repr(value + 0.0)), types.float64)

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:
        have, number = op.arg.dtype, listed_float(op)
        if number is not None:
            return self._float(number)
        if have.is_null():
            return self.cast(arg, _inner(to))
        if to.is_uint64():
            raise UnsupportedOperation("cast: DataFusion's uint64 is not held. Take 'int64', or 'float64'.")
        if have == to or (have.is_string() and to.is_string()):
            return arg
        if to.is_string() and (have.is_boolean() or have.is_integer()):
            return self._call("text", types.string, (op.arg, arg))
        if have.is_string() or not (have.is_numeric() or have.is_boolean()):
            raise UnsupportedOperation(
                f"cast: DataFusion's cast of {have} to {to} could fail on a cell: cast it before."
            )
        if to.is_float32() and not have.is_float32():
            return self._call_on_floats("single", (op.arg, arg))
        if to.is_floating():
            return self._call("real", types.float64, (op.arg, arg)) if have.is_boolean() else self._real(op.arg, arg)
        if to.is_decimal() and have.is_integer():
            return arg  # whole numbers of 64 bits compare exactly
        if to.is_integer() and not have.is_decimal():
            low, high = to.bounds
            if have.is_boolean():
                return self.cast(arg, types.int64)
            if have.is_integer() and low <= have.bounds.lower and have.bounds.upper <= high:
                return arg
            return self._call("whole", types.int64, (op.arg, arg), options=(low, high))
        raise UnsupportedOperation(
            f"cast: DataFusion's cast of {have} to {to} is refused: cast to 'int64' or 'float64'."
        )

    def visit_Add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._arithmetic(op, "add", sge.Add, left, right)

    def visit_Subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._arithmetic(op, "subtract", sge.Sub, left, right)

    def visit_Multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._arithmetic(op, "multiply", sge.Mul, left, right)

    def _arithmetic(self, op: Any, name: str, sign: Any, left: Any, right: Any) -> Any:
        """Whole numbers wrap in DataFusion. Floats are computed by dpframe's function."""
        if op.dtype.is_floating():
            return self._call_on_floats(name, (op.left, left), (op.right, right))
        if not op.dtype.is_integer():
            raise UnsupportedOperation(f"DataFusion: {name} on {op.dtype} is refused: cast to 'int64' or 'float64'.")
        return sge.Paren(this=sign(this=_paren(left), expression=_paren(right)))

    def visit_Divide(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._call_on_floats("divide", (op.left, left), (op.right, right))

    def visit_Modulus(self, op: Any, *, left: Any, right: Any) -> Any:
        if not op.dtype.is_integer():
            raise UnsupportedOperation("DataFusion: a remainder is only taken of whole numbers: cast to 'int64'.")
        return self._call("remainder", types.int64, (op.left, left), (op.right, right))

    def visit_Equals(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.EQ, left, right)

    def visit_NotEquals(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.NEQ, left, right)

    def visit_Less(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.LT, left, right)

    def visit_LessEqual(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.LTE, left, right)

    def visit_Greater(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.GT, left, right)

    def visit_GreaterEqual(self, op: Any, *, left: Any, right: Any) -> Any:
        return self._compared(op, sge.GTE, left, right)

    def _compared(self, op: Any, sign: Any, left: Any, right: Any) -> Any:
        """A comparison. A whole number is compared with a float as a float, as on other engines."""
        if op.left.dtype.is_floating() or op.right.dtype.is_floating():
            left, right = self._real(op.left, left), self._real(op.right, right)
        return sge.Paren(this=sign(this=_paren(left), expression=_paren(right)))

    def visit_Negate(self, op: Any, *, arg: Any) -> Any:
        if op.dtype.is_floating():
            return self._call_on_floats("negate", (op.arg, arg))
        return sge.Paren(this=sge.Sub(this=sge.convert(0), expression=_paren(arg)))

    def visit_Abs(self, op: Any, *, arg: Any) -> Any:
        real = op.dtype.is_floating()
        return (
            self._call_on_floats("size_real", (op.arg, arg)) if real else self._call("size", types.int64, (op.arg, arg))
        )

    def visit_Floor(self, op: Any, *, arg: Any) -> Any:
        if op.dtype.is_floating():
            return self._call_on_floats("floor_real", (op.arg, arg))
        return self._call("floor", types.int64, (op.arg, arg))

    def visit_Sqrt(self, op: Any, *, arg: Any) -> Any:
        return self._call_on_floats("root", (op.arg, arg))

    def visit_Log(self, op: Any, *, arg: Any, base: Any) -> Any:
        if not isinstance(op.base, ops.Literal) or not op.base.value > 1:
            raise UnsupportedOperation("DataFusion: the base of a logarithm must be a constant above 1.")
        return self._call_on_floats("logarithm", (op.arg, arg), options=(float(op.base.value),))

    def visit_Clip(self, op: Any, *, arg: Any, lower: Any, upper: Any) -> Any:
        operands = [
            (op.arg, arg),
            *((end, sql) for end, sql in ((op.lower, lower), (op.upper, upper)) if end is not None),
        ]
        there = (op.lower is not None, op.upper is not None)
        if op.dtype.is_floating():
            return self._call_on_floats("clip_real", *operands, options=there)
        return self._call("clip", types.int64, *operands, options=there)

    def visit_IsNan(self, op: Any, *, arg: Any) -> Any:
        return self._call("is_nan", types.boolean, (op.arg, arg))

    def visit_SearchedCase(self, op: Any, *, cases: Any, results: Any, default: Any) -> Any:
        if is_not_nan(op):
            return self._call_on_floats("not_nan", (op.results[0], results[0]))
        reals = [self._as(op, value, sql) for value, sql in zip(op.results, results, strict=True)]
        return super().visit_SearchedCase(op, cases=cases, results=reals, default=self._as(op, op.default, default))

    def visit_IfElse(self, op: Any, *, bool_expr: Any, true_expr: Any, false_null_expr: Any) -> Any:
        yes, no = self._as(op, op.true_expr, true_expr), self._as(op, op.false_null_expr, false_null_expr)
        return super().visit_IfElse(op, bool_expr=bool_expr, true_expr=yes, false_null_expr=no)

    def visit_Coalesce(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Coalesce(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    def visit_Greatest(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Greatest(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    def visit_Least(self, op: Any, *, arg: Any) -> Any:
        return super().visit_Least(op, arg=[self._as(op, v, sql) for v, sql in zip(op.arg, arg, strict=True)])

    def _as(self, op: Any, value: Any, sql: Any) -> Any:
        """One of several results, in the type of all of them."""
        if value.dtype.is_null():
            return self.cast(sql, _inner(op.dtype))
        return self._real(value, sql) if op.dtype.is_floating() else sql

    # Totals

    def visit_Sum(self, op: Any, *, arg: Any, where: Any) -> Any:
        """A sum of whole numbers, which is exact; it fits in 64 bits (see `limits`)."""
        if where is not None or not op.arg.dtype.is_integer():
            raise UnsupportedOperation("DataFusion: only whole numbers are summed, because their sums are exact.")
        return self.f.sum(arg)

    def visit_Min(self, op: Any, *, arg: Any, where: Any) -> Any:
        return self._extreme(op, self.f.min, arg, where)

    def visit_Max(self, op: Any, *, arg: Any, where: Any) -> Any:
        return self._extreme(op, self.f.max, arg, where)

    def _extreme(self, op: Any, name: Any, arg: Any, where: Any) -> Any:
        """The least or largest value. Of floats it is that of whole numbers in the same order.

        In DataFusion the least of a group of infinities alone is the largest float that is no infinity.
        """
        if where is not None:
            raise UnsupportedOperation("DataFusion: a least or largest value is taken of all rows: filter them first.")
        return self._unranked(name(self._call("rank", types.int64, (op.arg, arg)))) if _ranked(op) else name(arg)

    def _unranked(self, value: Any) -> Any:
        return self._called(Function("unrank", (), (pa.int64(),), pa.float64()), [value])

    def visit_WindowFunction(self, op: Any, *, func: Any, **parts: Any) -> Any:
        """A window function. DataFusion counts rows and ranks in whole numbers without a sign."""
        if _ranked(op.func):  # the window is of the whole numbers
            (inner,) = func.expressions
            return self._unranked(super().visit_WindowFunction(op, func=inner, **parts))
        value = super().visit_WindowFunction(op, func=func, **parts)
        return self.cast(value, types.int64) if op.dtype.is_integer() else value

    # Texts

    def visit_StringLength(self, op: Any, *, arg: Any) -> Any:
        return self._call("length", types.int64, (op.arg, arg))

    def visit_StringContains(self, op: Any, *, haystack: Any, needle: Any) -> Any:
        return self._call("contains", types.boolean, (op.haystack, haystack), (op.needle, needle))

    def visit_StartsWith(self, op: Any, *, arg: Any, start: Any) -> Any:
        return self._call("starts", types.boolean, (op.arg, arg), (op.start, start))

    def visit_EndsWith(self, op: Any, *, arg: Any, end: Any) -> Any:
        return self._call("ends", types.boolean, (op.arg, arg), (op.end, end))

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
        first, most = _constant(op.start), _constant(op.length)
        if first is None or most is None or first < 0 or most < 0:
            raise UnsupportedOperation(
                "DataFusion: the start and length of a part of a text must be constants from 0 on."
            )
        return self._call("head", types.string, (op.arg, arg), options=(first, most))

    def visit_RegexSearch(self, op: Any, *, arg: Any, pattern: Any) -> Any:
        assert isinstance(op.pattern, ops.Literal)
        return self._call("matches", types.boolean, (op.arg, arg), options=(str(op.pattern.value),))


def nesting(query: Any) -> int:
    """The most subqueries within each other, through those that have a name."""
    known: dict[str, int] = {}
    deepest = 0
    for name, body in [*((cte.alias, cte.this) for cte in query.ctes), ("", query)]:
        deepest, pending = 0, [(body, 0)]
        while pending:
            part, depth = pending.pop()
            depth += isinstance(part, sge.Select) + (known.get(part.name, 0) if isinstance(part, sge.Table) else 0)
            deepest = max(deepest, depth)
            pending += [(inner, depth) for inner in part.iter_expressions() if not isinstance(inner, sge.With)]
        known[name] = deepest
    return deepest


def _ranked(op: Any) -> bool:
    """Whether an operation is the least or largest of floats."""
    return isinstance(op, (ops.Min, ops.Max)) and bool(op.dtype.is_floating())


def _inner(dtype: Any) -> Any:
    """The type in which DataFusion has a column of a type of Ibis."""
    if dtype.is_floating():
        return types.float64
    return dtype if dtype.is_string() or dtype.is_boolean() else types.int64


def _paren(value: Any) -> Any:
    return value if isinstance(value, (sge.Column, sge.Paren, sge.Var)) else sge.Paren(this=value)


def _sendable(text: str) -> str:
    """A text that DataFusion can hold."""
    if text.encode("utf-8", "replace").decode() != text:
        raise UnsupportedOperation("DataFusion cannot hold a text that is not Unicode: change it.")
    return text


def _constant(op: Any) -> int | None:
    """The value of an integer constant, or of a difference of two; None for another expression."""
    if isinstance(op, ops.Subtract):
        left, right = _constant(op.left), _constant(op.right)
        return None if left is None or right is None else left - right
    return int(op.value) if isinstance(op, ops.Literal) and op.dtype.is_integer() else None
