"""Expressions of Polars, read node by node as expressions of ours: `pl.col("age") >= 18` wherever `dp.col` stands.

What is read is the JSON that Polars 1.30 to 2 writes of an expression. A node that has no counterpart here is refused.
Constants are computed by Polars itself.
"""

from __future__ import annotations

import io
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.errors import UnsupportedOperation

if TYPE_CHECKING:
    from dpframe.plan.expressions.expression import Expr

Tree = Any  # of JSON

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "Plus": operator.add,
    "Minus": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "TrueDivide": operator.truediv,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtEq": operator.le,
    "Gt": operator.gt,
    "GtEq": operator.ge,
    "And": operator.and_,
    "LogicalAnd": operator.and_,
    "Or": operator.or_,
    "LogicalOr": operator.or_,
}
_ALL = {"Boolean.AllHorizontal": operator.and_, "Boolean.AnyHorizontal": operator.or_}
_BY_CONSTANT = {"FloorDivide": operator.floordiv, "Modulus": operator.mod}

# Functions without arguments: what Polars calls them, and what they are called here.
_PLAIN = {
    **{"Abs": "abs", "Sign": "sign", "Exp": "exp", "Log1p": "log1p", "Floor": "floor", "Ceil": "ceil"},
    **{"Pow.Sqrt": "sqrt", "Negate": "__neg__", "Boolean.Not": "__invert__"},
    **{"Boolean.IsNull": "is_null", "Boolean.IsNotNull": "is_not_null"},
    **{"StringExpr.Lowercase": "str.to_lowercase", "StringExpr.Uppercase": "str.to_uppercase"},
    **{"StringExpr.LenChars": "str.len_chars", "TemporalExpr.WeekDay": "dt.weekday"},
    "TemporalExpr.OrdinalDay": "dt.ordinal_day",
    "TemporalExpr.MonthStart": "dt.month_start",
    **{f"TemporalExpr.{name.title()}": f"dt.{name}" for name in ("year", "month", "day", "hour", "minute", "date")},
    **{f"TemporalExpr.{name.title()}": f"dt.{name}" for name in ("week", "quarter")},
}
# Functions whose arguments after the first are constants, and none of whose options matters.
_LISTED = {
    **{"Pow.Generic": "pow", "FillNull": "fill_null", "TemporalExpr.Truncate": "dt.truncate"},
    **{"StringExpr.StartsWith": "str.starts_with", "StringExpr.EndsWith": "str.ends_with"},
    **{"StringExpr.Slice": "str.slice", "StringExpr.Head": "str.head"},
    "ListExpr.Get": "get",
}


def read_polars(expr: pl.Expr) -> Expr:
    """An expression of ours that is written like one of Polars, with its name. Errors: UnsupportedOperation."""
    with suppress(RecursionError):
        tree = _tree(expr)
        name = polars_name(tree)
        result: Expr = _read(tree)
        return result if name is None else result.alias(name)
    raise _too_deep()


_BOUNDED = ("mean", "sum", "median", "quantile", "min", "max", "std", "var")


@dataclass(frozen=True)
class PolarsAggregate:
    """An aggregate of Polars: the statistic of ours, what it is of (None for rows), its bounds, options and name."""

    verb: str
    of: Expr | None
    bounds: tuple[Any, Any] | None
    options: Mapping[str, Any]
    name: str


def read_aggregates(expr: pl.Expr) -> list[PolarsAggregate]:
    """The aggregates that one of Polars stands for, one for each of its columns. Errors: UnsupportedOperation.

    `clip` with both ends, last before the aggregate, is read as bounds, and `filter` as null in the other rows.
    """
    with suppress(RecursionError):
        return _aggregates(_tree(expr))
    raise _too_deep()


def _aggregates(tree: Tree) -> list[PolarsAggregate]:
    name = None
    while isinstance(tree, dict) and "Alias" in tree:
        tree, name = tree["Alias"][0], name or tree["Alias"][1]
    if tree == "Len":
        return [PolarsAggregate("count", None, None, {}, name or "len")]
    verb, inner, options = _aggregate(tree)
    read = [_of_column(verb, one, options, name) for one in _columns(inner)]
    if name is not None and len(read) > 1:
        raise UnsupportedOperation(f"alias({name!r}): this aggregate has several columns. Type one for each.")
    return read


def _aggregate(tree: Tree) -> tuple[str, Tree, dict[str, Any]]:
    """The statistic, what it is of, and its options. Polars 1.30 writes some of them otherwise than 2 does."""
    agg = tree.get("Agg") if isinstance(tree, dict) else None
    word, inside = next(iter(agg.items())) if agg else ("", tree)
    match word, inside:
        case "Quantile", {"expr": inner, "quantile": rank}:
            return "quantile", inner, {"q": _constant(rank)}
        case "", {"Function": {"input": [inner, rank], "function": {"Quantile": _}}}:
            return "quantile", inner, {"q": _constant(rank)}
        case "Std" | "Var", [inner, ddof]:
            return word.lower(), inner, {"ddof": ddof}
        case "Count", [inner, nulls] | {"input": inner, "include_nulls": nulls}:
            return "len" if nulls else "count", inner, {}
        case "Min" | "Max", {"input": inner}:
            return word.lower(), inner, {}
        case "Mean" | "Sum" | "Median", inner:
            return word.lower(), inner, {}
        case "NUnique", inner:
            return "n_unique", inner, {}
    raise UnsupportedOperation(
        "Of Polars' aggregates, these are read: mean, sum, len, count, n_unique, min, max, median, quantile, std and "
        "var of a row expression, with filter before them, and pl.len(). Type another one as a statistic of dpframe, "
        "such as agg(m=dp.mean('x', bounds=(0, 100))), and compute with the released numbers."
    )


def _columns(tree: Tree) -> list[Tree]:
    """A row expression for each of the columns that `pl.col("x", "y")` names in it."""
    return [_with_column(tree, name) for name in dict.fromkeys(_several(tree))] or [tree]


def _several(tree: Tree) -> Iterator[str]:
    """The names in `pl.col("x", "y")`."""
    match tree:
        case {"Selector": {"ByName": {"names": [*names]}}} | {"Columns": [*names]}:
            yield from names
        case dict() | list():
            for inner in tree.values() if isinstance(tree, dict) else tree:
                yield from _several(inner)


def _with_column(tree: Tree, name: str) -> Tree:
    """An expression with one column in place of several."""
    match tree:
        case {"Selector": {"ByName": _}} | {"Columns": _}:
            return {"Column": name}
        case dict():
            return {key: _with_column(inner, name) for key, inner in tree.items()}
        case list():
            return [_with_column(inner, name) for inner in tree]
    return tree


def _of_column(verb: str, tree: Tree, options: Mapping[str, Any], name: str | None) -> PolarsAggregate:
    from dpframe.plan.expressions.expression import lit, output_name

    conditions: list[Expr] = []
    bounds = None
    while True:
        match tree:
            case {"Filter": {"input": inner, "by": condition}}:
                conditions, tree = [*conditions, _read(condition)], inner
            case {"Function": {"input": [inner], "function": "DropNulls"}} if verb != "len":
                tree = inner
            case {"Function": {"input": [inner, *ends], "function": {"Clip": _}}} if (
                len(ends) == 2 and verb in _BOUNDED and bounds is None
            ):
                bounds, tree = (_constant(ends[0]), _constant(ends[1])), inner
            case _:
                break
    value = _read(tree)
    name = name or output_name(value, "agg")
    if verb == "len":
        verb, value = "count", lit(1) if conditions else None
    for condition in conditions:
        value = _choice(condition, value, None)
    return PolarsAggregate(verb, value, bounds, options, name)


def polars_name(tree: Tree) -> str | None:
    """The last name that an expression was given; None for the name of its column."""
    return str(tree["Alias"][1]) if isinstance(tree, dict) and "Alias" in tree else None


def _tree(expr: pl.Expr) -> Tree:
    try:
        return json.loads(expr.meta.serialize(format="json"))
    except RecursionError:
        raise
    except Exception:  # of a Python function, for example, which Polars cannot write down
        tree = None
    if tree is None:
        raise _unknown("a Python function")
    return tree


def _too_deep() -> UnsupportedOperation:
    return UnsupportedOperation(
        "This Polars expression has too many operations within each other to be read, as a sum of hundreds of columns "
        "has. Type it with dp.col('x'), whose chains may have thousands of terms."
    )


def _unknown(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"Of this Polars expression, {what} has no counterpart among row expressions. Type it with dp.col('x'), whose "
        "methods have Polars' names, as in dp.col('x').log(); or compute the column before dp.protect(...)."
    )


def _read(tree: Tree) -> Any:
    """An expression; the pieces of a text on the way to one of them."""
    from dpframe.plan.expressions.expression import Expr, col, lit  # which imports this module

    assert Expr is not None
    match tree:
        case {"Column": str(name)}:
            return col(name)
        case {"Literal": _}:
            return lit(_constant(tree))
        case {"Alias": [inner, _]}:
            return _read(inner)
        case {"BinaryExpr": {"left": left, "op": str(sign), "right": right}}:
            return _signed(sign, left, right)
        case {"Cast": {"expr": inner, "dtype": _}}:
            return lit(_constant(tree)) if _is_constant(inner) else _read(inner).cast(_dtype(tree))
        case {"Ternary": {"predicate": condition, "truthy": yes, "falsy": no}}:
            return _choice(*map(_read, (condition, yes, no)))
        case {"Function": {"input": [first, *rest], "function": function}}:
            name, options = _called(function)
            return _function(name, options, _read(first), rest)
        case {"Agg": _} | "Len":
            raise UnsupportedOperation(
                "A row expression reads one row; aggregates have bounds and a name: agg(n=dp.count(), "
                "m=dp.mean('x', bounds=(0, 100)))."
            )
    raise _unknown(next(iter(tree)) if isinstance(tree, dict) and tree else "a part")


def _signed(sign: str, left: Tree, right: Tree) -> Any:
    if sign in _BY_CONSTANT:
        return _BY_CONSTANT[sign](_read(left), _constant(right))
    if sign not in _SIGNS:
        raise _unknown(sign)
    return _SIGNS[sign](_read(left), _read(right))


def _choice(condition: Any, yes: Any, no: Any) -> Any:
    from dpframe.plan.expressions.expression import when

    return when(condition).then(yes).otherwise(no)


def _called(function: Tree) -> tuple[str, Mapping[str, Any]]:
    """A function's name, with its family before it, and its options."""
    parts: list[str] = []
    while isinstance(function, dict) and len(function) == 1 and next(iter(function))[:1].isupper():
        ((name, function),) = function.items()
        parts.append(name)
    if isinstance(function, str):
        parts.append(function)
    return ".".join(parts), function if isinstance(function, dict) else {"flag": function}


def _function(name: str, options: Mapping[str, Any], value: Any, rest: Sequence[Tree]) -> Any:
    if name in _ALL:
        return reduce(_ALL[name], map(_read, rest), value)
    if name in _PLAIN and not rest:
        return operator.attrgetter(_PLAIN[name])(value)()
    if name in _LISTED:
        return operator.attrgetter(_LISTED[name])(value)(*map(_constant, rest))
    read = _several_constants if name == "Boolean.IsIn" else _constant
    return _optional(name, options, value, [read(tree) for tree in rest])


def _optional(name: str, options: Mapping[str, Any], value: Any, rest: list[Any]) -> Any:
    """Functions whose options matter; with others than those that are known here they are refused."""
    match name, dict(options), rest:
        case "Log", {"base": base}, []:
            return value.log(base)
        case "Log", _, [base]:
            return value.log(base)
        case "Round", {"decimals": decimals, **mode}, [] if mode.get("mode", "HalfToEven") == "HalfToEven":
            return value.round(decimals)
        case "Clip", {"has_min": low, "has_max": high}, ends:
            return value.clip(ends[0] if low else None, ends[-1] if high else None)
        case "Boolean.IsIn", {"nulls_equal": True}, _:
            raise _unknown("is_in(nulls_equal=True)")
        case "Boolean.IsIn", _, [values]:
            return value.is_in(values)
        case "Boolean.IsBetween", {"closed": "Both"}, [low, high]:
            return value.is_between(low, high)
        case "StringExpr.Contains", {"literal": literal}, [text]:
            return value.str.contains(text, literal=literal)
        case "StringExpr.Replace", {"literal": literal, "n": n}, [old, new]:
            return value.str.replace(old, new, literal=literal, n=n)
        case "StringExpr.Split", {"flag": False}, [by]:  # not inclusive
            return value.str.split(by, literal=True)
    raise _unknown(f"{name.rpartition('.')[2]}, as it is asked," if name else "a function")


def _is_constant(tree: Tree) -> bool:
    match tree:
        case {"Literal": _}:
            return True
        case {"Alias": [inner, _]} | {"Cast": {"expr": inner}}:
            return _is_constant(inner)
    return False


def _constant(tree: Tree) -> Any:
    """The value of a node that reads no column, as Polars computes it.

    A series of several values is refused: it is a column of another table, and its cells are for no message.
    """
    values = _computed(tree)
    if len(values) != 1:
        raise _unknown("a series of values")
    value = values[0]
    return value.to_list() if isinstance(value, pl.Series) else value


def _several_constants(tree: Tree) -> list[Any]:
    """The values of a constant list, or of a series."""
    values = _computed(tree)
    return list(values[0] if values.dtype.is_nested() else values)


def _computed(tree: Tree) -> pl.Series:
    if not _is_constant(tree):
        raise _unknown("an argument that is no constant")
    return pl.select(_expression(tree)).to_series()


def _dtype(tree: Tree) -> Any:
    """The type that a cast is to, by that of a constant that is cast so."""
    one = {"Cast": {**tree["Cast"], "expr": {"Literal": {"Dyn": {"Int": 1}}}}}
    return next(iter(pl.LazyFrame().select(_expression(one)).collect_schema().values()))


def _expression(tree: Tree) -> pl.Expr:
    """A node as Polars reads it again, which some versions do not do with every constant."""
    try:
        read = pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")
    except pl.exceptions.PolarsError:
        read = None
    if read is None:
        raise _unknown("a constant")
    return read
