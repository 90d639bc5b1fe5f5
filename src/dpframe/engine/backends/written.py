"""Operations of Ibis with SQL of our own, for the databases that have a compiler of their own here."""

from __future__ import annotations

from typing import Any

import ibis
import ibis.expr.datatypes as types
import ibis.expr.operations as ops
import ibis.expr.rules as rules


class Written(ops.Value):  # type: ignore[misc]
    """An Ibis operation with SQL of our own, which cannot fail. The SQL calls its operand `a`."""

    arg: ops.Value
    text: str
    dtype: types.DataType
    shape = rules.shape_like("arg")


def written(value: Any, text: str, dtype: str) -> Any:
    """An Ibis column that the compiler writes as this SQL, with the value in place of `a`."""
    return Written(value.op(), text, ibis.dtype(dtype)).to_expr()


def listed_float(op: Any) -> float | None:
    """The value of a float constant, which arrives as the cast of a text literal; None for another expression."""
    if not isinstance(op, ops.Cast) or not isinstance(op.arg, ops.Literal) or not op.arg.dtype.is_string():
        return None
    return float(op.arg.value) if op.to.is_float64() and op.arg.value is not None else None


def is_not_nan(op: Any) -> bool:
    """Whether a CASE is the expression for "null in place of NaN" as narwhals writes it (see `not_nan`)."""
    if len(op.cases) != 1 or not isinstance(op.cases[0], ops.Not):
        return False
    if not isinstance(op.default, ops.Literal) or op.default.value is not None:
        return False
    test = op.cases[0].arg
    return isinstance(test, ops.IfElse) and test.false_null_expr == ops.IsNan(op.results[0])
