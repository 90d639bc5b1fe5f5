"""Expressions of Polars, read node by node as expressions of ours:
`pl.col("age") >= 18` wherever `dp.col` stands.

What is read is the JSON that Polars 1.30 to 2 writes of an expression. A node that has no
counterpart here is refused. Constants are computed by Polars itself.
"""

from __future__ import annotations

import io
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, NamedTuple

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.fields import Fields
from dpframe.plan.expressions.choices import case, coalesced
from dpframe.plan.hints import CALENDAR, EXPRESSION, TEXT
from dpframe.plan.nodes import Call, Node
from dpframe.plan.operations import TOTALS

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
    "Xor": operator.xor,
    "EqValidity": lambda x, y: x.eq_missing(y),
    "NotEqValidity": lambda x, y: x.ne_missing(y),
}
_ALL = {"Boolean.AllHorizontal": operator.and_, "Boolean.AnyHorizontal": operator.or_}
_BY_CONSTANT = {"FloorDivide": operator.floordiv, "Modulus": operator.mod}

# Functions without arguments: what Polars calls them, and what they are called here.
_PLAIN = {
    **{
        "Abs": "abs",
        "Sign": "sign",
        "Exp": "exp",
        "Log1p": "log1p",
        "Floor": "floor",
        "Ceil": "ceil",
    },
    **{"Pow.Sqrt": "sqrt", "Negate": "__neg__", "Boolean.Not": "__invert__"},
    **{"Boolean.IsNull": "is_null", "Boolean.IsNotNull": "is_not_null"},
    **{"StringExpr.Lowercase": "str.to_lowercase", "StringExpr.Uppercase": "str.to_uppercase"},
    **{"StringExpr.LenChars": "str.len_chars", "TemporalExpr.WeekDay": "dt.weekday"},
    "TemporalExpr.OrdinalDay": "dt.ordinal_day",
    "TemporalExpr.MonthStart": "dt.month_start",
    "TemporalExpr.MonthEnd": "dt.month_end",
    **{
        f"TemporalExpr.{name.title()}": f"dt.{name}"
        for name in ("year", "quarter", "month", "week", "day", "date")
    },
    **{f"TemporalExpr.{name.title()}": f"dt.{name}" for name in ("hour", "minute", "second")},
}
_ENDS = {"": "", "Start": "_start", "End": "_end"}
# Functions whose arguments after the first are constants, and none of whose options matters.
_LISTED = {
    **{"Pow.Generic": "pow", "FillNull": "fill_null", "TemporalExpr.Truncate": "dt.truncate"},
    **{"StringExpr.StartsWith": "str.starts_with", "StringExpr.EndsWith": "str.ends_with"},
    **{"StringExpr.Slice": "str.slice", "StringExpr.Head": "str.head"},
    **{
        "StringExpr.Tail": "str.tail",
        "StringExpr.ZFill": "str.zfill",
        "TemporalExpr.OffsetBy": "dt.offset_by",
    },
    **{f"StringExpr.StripChars{ends}": f"str.strip_chars{sign}" for ends, sign in _ENDS.items()},
    **{"StringExpr.StripPrefix": "str.strip_prefix", "StringExpr.StripSuffix": "str.strip_suffix"},
    "ListExpr.Get": "get",
}


# how many arguments are lists of values
_LISTS = {"Boolean.IsIn": 1, "Replace": 2, "ReplaceStrict": 2}


class PolarsReader(NamedTuple):
    """Reads expressions of Polars with ours: `dp.col`, `dp.lit`, and `Expr` of a node."""

    col: Callable[[str], Any]
    lit: Callable[[Any], Any]
    expr: Callable[[Node], Any]

    def read(self, expr: pl.Expr) -> Any:
        """An expression of ours that is written like one of Polars, with its name.
        Errors: UnsupportedOperation.
        """
        name = expr.meta.output_name(raise_if_undetermined=False)
        result = self.tree(tree_of(expr))
        return result if name is None else result.alias(name)

    def tree(self, tree: Tree) -> Any:
        """An expression from its tree. Errors: UnsupportedOperation."""
        with suppress(RecursionError):
            return self._read(tree)
        raise _too_deep()

    def _read(self, tree: Tree) -> Any:
        """An expression; the pieces of a text on the way to one of them."""
        match tree:
            case {"Column": str(name)}:
                return self.col(name)
            case {"Literal": _}:
                return self.lit(constant_of(tree))
            case {"Alias": [inner, _]}:
                return self._read(inner)
            case {"BinaryExpr": {"left": left, "op": str(sign), "right": right}}:
                return self._signed(sign, left, right)
            case {"Cast": {"expr": inner, "dtype": _}}:
                return (
                    self.lit(constant_of(tree))
                    if _is_constant(inner)
                    else self._read(inner).cast(_dtype(tree))
                )
            case {"Function": {"input": [{"Ternary": choice}, filler], "function": "FillNull"}} if (
                _fills_nan(choice, filler)
            ):
                return self._read(choice["truthy"]).fill_null(constant_of(filler))
            case {"Ternary": {"truthy": filled} as choice} if _fills_nan(
                choice, _filler_of(filled)
            ):
                return self._read(filled)
            case {"Ternary": {"predicate": condition, "truthy": yes, "falsy": no}}:
                return self._choice([(condition, yes)], no)
            case {"Function": _} if _is_constant(tree):
                return self.lit(constant_of(tree))
            case {"Function": {"input": [first, *rest], "function": function}}:
                name, options = called(function)
                return self._function(name, options, self._read(first), rest)
            case {"Agg": _} | "Len":
                raise UnsupportedOperation(
                    "A row expression reads one row; aggregates have bounds and a name: "
                    "agg(n=dp.count(), m=dp.mean('x', bounds=(0, 100)))."
                )
        name = next(iter(tree)) if isinstance(tree, dict) and tree else "a part"
        raise _unknown(_method(name), name)

    def _choice(self, branches: list[tuple[Tree, Tree]], other: Tree) -> Any:
        """The conditions of a chain, in turn."""
        while isinstance(other, dict) and "Ternary" in other:
            inner = other["Ternary"]
            branches, other = [*branches, (inner["predicate"], inner["truthy"])], inner["falsy"]
        read = [
            (self._read(condition)._node, self._read(value)._node) for condition, value in branches
        ]
        return self.expr(case(read, self._read(other)._node))

    def _signed(self, sign: str, left: Tree, right: Tree) -> Any:
        if sign in _BY_CONSTANT:
            return _BY_CONSTANT[sign](
                self._read(left), constant_of(right) if _is_constant(right) else self._read(right)
            )
        if sign not in _SIGNS:
            raise _unknown(sign)
        return _SIGNS[sign](self._read(left), self._read(right))

    def _function(self, name: str, options: Fields, value: Any, rest: Sequence[Tree]) -> Any:
        if name in ("Coalesce", "StringExpr.ConcatHorizontal"):
            nodes = [value._node, *(self._read(tree)._node for tree in rest)]
            if name == "Coalesce":
                return self.expr(coalesced(nodes))
            if not options.get("ignore_nulls"):
                return self.expr(
                    Call("concat_str", tuple(nodes), (("separator", options["delimiter"]),))
                )
        if name in _ALL:
            return reduce(_ALL[name], map(self._read, rest), value)
        if name in _PLAIN and not rest:
            return operator.attrgetter(_PLAIN[name])(value)()
        if name in _LISTED:
            return operator.attrgetter(_LISTED[name])(value)(*map(constant_of, rest))
        if not all(map(_is_constant, rest)):
            raise _unknown(f"{_method(name)} of several columns", name)
        several = _LISTS.get(name, 0)
        read = [
            (_several_constants if i < several else constant_of)(tree)
            for i, tree in enumerate(rest)
        ]
        return _optional(name, options, value, read)


def tree_of(expr: pl.Expr) -> Tree:
    """An expression as Polars writes it down. Errors: UnsupportedOperation."""
    try:
        return json.loads(expr.meta.serialize(format="json"))
    except RecursionError:
        problem = _too_deep()
    except Exception:  # of a Python function, for example, which Polars cannot write down
        problem = _unknown("a Python function")
    raise problem


def _fills_nan(choice: Tree, filler: Tree | None) -> bool:
    """Whether a choice is `fill_nan` of the value for nulls. Both are missing here."""
    match choice["predicate"]:
        case {
            "BinaryExpr": {"left": {"Function": {"function": {"Boolean": "IsNotNan"}}}, "op": "Or"}
        }:
            value = choice["falsy"]
            return (
                filler is not None
                and _is_constant(value)
                and constant_of(value) == constant_of(filler)
            )
    return False


def _filler_of(tree: Tree) -> Tree | None:
    """The constant of a `fill_null`; None for another expression."""
    match tree:
        case {"Function": {"input": [_, filler], "function": "FillNull"}} if _is_constant(filler):
            return filler
    return None


def _too_deep() -> UnsupportedOperation:
    return UnsupportedOperation(
        "This Polars expression has too many operations within each other to be read, as a sum of "
        "hundreds of columns has. Type it with dp.col('x'), whose chains may have thousands of "
        "terms."
    )


def _unknown(what: str, name: str = "") -> UnsupportedOperation:
    """The refusal of a part of an expression. Input: name: of the function, with its family."""
    advice = _TABLES.get(name.partition(".")[0], EXPRESSION).get(_method(name))
    return UnsupportedOperation(
        f"Of this Polars expression, {what} has no counterpart among row expressions. "
        + (
            advice
            or "If it reads one row alone, compute the column before: "
            "dp.protect(table.with_columns(y=...), unit='user_id'). A column that is made of "
            "other people's rows is not protected by their limits."
        )
    )


def _method(name: str) -> str:
    """The method of Polars for a function: `is_nan` of `Boolean.IsNan`."""
    family, _, own = name.partition(".")
    return snake(
        (own if own and (family.endswith("Expr") or family in _FAMILIES) else family).partition(
            "."
        )[0]
    )


def snake(name: str) -> str:
    """A name of Polars' Rust code as Python has it: `n_unique` of `NUnique`."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


_TABLES = {"StringExpr": TEXT, "TemporalExpr": CALENDAR}
_FAMILIES = ("Boolean", "Pow", "Trigonometry", "Random")


def called(function: Tree) -> tuple[str, Fields]:
    """A function's name, with its family before it, and its options."""
    parts: list[str] = []
    while isinstance(function, dict) and len(function) == 1 and next(iter(function))[:1].isupper():
        ((name, function),) = function.items()
        parts.append(name)
    if isinstance(function, str):
        parts.append(function)
    return ".".join(parts), function if isinstance(function, dict) else {"flag": function}


def _optional(name: str, options: Fields, value: Any, rest: list[Any]) -> Any:
    """Functions whose options matter; with options that are not known they are refused."""
    match name, dict(options), rest:
        case "Log", {"base": base}, []:
            return value.log(base)
        case "Log", _, [base]:
            return value.log(base)
        case "Round", {"decimals": decimals, **mode}, [] if (
            mode.get("mode", "HalfToEven") == "HalfToEven"
        ):
            return value.round(decimals)
        case "Clip", {"has_min": low, "has_max": high}, ends:
            return value.clip(ends[0] if low else None, ends[-1] if high else None)
        case "Boolean.IsIn", {"nulls_equal": True}, _:
            raise _unknown("is_in(nulls_equal=True)")
        case "Boolean.IsIn", _, [values]:
            return value.is_in(values)
        case "Boolean.IsBetween", {"closed": str(closed)}, [low, high]:
            return value.is_between(low, high, closed.lower())
        case "StringExpr.Contains", {"literal": literal}, [text]:
            return value.str.contains(_of_ascii(text, literal), literal=literal, regex=not literal)
        case "StringExpr.CountMatches", {"flag": bool(literal)}, [text]:
            return value.str.count_matches(
                _of_ascii(text, literal), literal=literal, regex=not literal
            )
        case "StringExpr.Extract", {"flag": int(group)}, [text]:
            return value.str.extract(_of_ascii(text), group)
        case "StringExpr.Replace", {"literal": literal, "n": n}, [old, new]:
            return value.str.replace(
                _of_ascii(old, literal), new, literal=literal, regex=not literal, n=n
            )
        case "TemporalExpr.ConvertTimeZone", {"inner": zone} | {"flag": zone}, []:
            return value.dt.convert_time_zone(zone)
        case "TemporalExpr.ReplaceTimeZone", {"flag": [zone, "Raise" | "Null"]}, ["raise" | "null"]:
            return value.dt.replace_time_zone(zone["inner"] if isinstance(zone, dict) else zone)
        case "StringExpr.Strptime", _, _ if (found := _strptime(options)) is not None:
            return getattr(value.str, found[0])(found[1])
        case "Replace", _, [old, new]:
            return value.replace(_pairs(old, new))
        case "ReplaceStrict", _, [old, new, *default]:
            return value.replace_strict(_pairs(old, new), default=[*default, None][0])
        case str(), {"fractional": False} | {"flag": str()}, [] if name.startswith(
            "TemporalExpr.Total"
        ):
            unit = name.removeprefix("TemporalExpr.Total").lower()
            if unit in TOTALS.values():
                return getattr(value.dt, f"total_{unit}")()
        case "StringExpr.Split", {"flag": False}, [by]:  # not inclusive
            return value.str.split(by, literal=True)
    raise _unknown(f"{_method(name)}, as it is asked," if name else "a function", name)


def _of_ascii(pattern: Any, literal: bool = False) -> Any:
    r"""A pattern that has no \w or \b: in Polars these are about the letters of all scripts."""
    if not literal and isinstance(pattern, str) and re.search(r"(?<!\\)(\\\\)*\\[wWb]", pattern):
        raise UnsupportedOperation(
            rf"Of this Polars expression, the pattern {pattern!r} has \w or \b, which are about "
            "the letters of all scripts in Polars and those of ASCII here. Type the letters that "
            "are meant, as in [A-Za-z0-9_], or the same with dp.col('x') and regex=True, if "
            "letters of ASCII are meant."
        )
    return pattern


def _pairs(old: list[Any], new: list[Any]) -> dict[Any, Any]:
    """New values by old ones; one value may take the place of several."""
    if len(new) not in (1, len(old)):
        raise _unknown("a list of other values that is not as long as the first")
    return dict(zip(old, new if len(new) == len(old) else new * len(old), strict=True))


def _strptime(options: Fields) -> tuple[str, str | None] | None:
    """The method that reads a text as a date or time, and its format; None for another type."""
    match options:
        # the second is Polars 1.30
        case {"flag": [{"Literal": dtype} | dtype, {"format": form, "exact": True}]}:
            if dtype == "Date":
                return "to_date", form
            if dtype == {"Datetime": ["Microseconds", None]}:
                return "to_datetime", form
    return None


def _is_constant(tree: Tree) -> bool:
    match tree:
        case {"Literal": _}:
            return True
        case {"Alias": [inner, _]} | {"Cast": {"expr": inner}}:
            return _is_constant(inner)
        case {
            "Function": {
                "input": [inner, how],
                "function": {"TemporalExpr": {"ReplaceTimeZone": _}},
            }
        }:
            # so Polars 1.30 writes a time with a zone
            return (
                _is_constant(inner)
                and _is_constant(how)
                and constant_of(how) in ("earliest", "latest")
            )
    return False


def constant_of(tree: Tree) -> Any:
    """The value of a node that reads no column, as Polars computes it.

    A series of several values is refused: it is a column of another table, and its cells are for no
    message.
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
    expr = expression_of(tree)
    with suppress(pl.exceptions.PolarsError):  # a time that its zone leaves out, for example
        return pl.select(expr).to_series()
    raise _unknown("a constant that Polars cannot compute")


def _dtype(tree: Tree) -> Any:
    """The type that a cast is to, by that of a constant that is cast so."""
    one = {"Cast": {**tree["Cast"], "expr": {"Literal": {"Dyn": {"Int": 1}}}}}
    return next(iter(pl.LazyFrame().select(expression_of(one)).collect_schema().values()))


def expression_of(tree: Tree) -> pl.Expr:
    """A node as Polars reads it again, which some versions do not do with every constant."""
    try:
        read = pl.Expr.deserialize(io.StringIO(json.dumps(_with_ticks(tree))), format="json")
    except pl.exceptions.PolarsError:
        read = None
    if read is None:
        raise _unknown("a constant")
    return read


def _with_ticks(tree: Tree) -> Tree:
    """A tree with times as ticks that are cast: Polars 1.30 cannot read the times it writes."""
    match tree:
        case {"Literal": {"Scalar": {"dtype": dtype, "value": {"DatetimeOwned": [ticks, *_]}}}}:
            number = {"Literal": {"Scalar": {"dtype": "Int64", "value": {"Int64": ticks}}}}
            return {"Cast": {"expr": number, "dtype": dtype, "options": "Strict"}}
        case {"Literal": _}:
            return tree
        case dict():
            return {key: _with_ticks(inner) for key, inner in tree.items()}
        case list():
            return [_with_ticks(inner) for inner in tree]
    return tree
