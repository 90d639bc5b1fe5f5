"""Aggregates of Polars in `agg(...)`: `pl.col("spend").clip(0, 100).mean()` as
a mean of a column with bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl

from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan.expressions.expression import POLARS, Expr, lit, output_name
from dpframe.plan.expressions.foreign import (
    Tree,
    called,
    constant_of,
    expression_of,
    snake,
    tree_of,
)
from dpframe.plan.expressions.functions import when

BOUNDED = ("mean", "sum", "median", "quantile", "min", "max", "std", "var", "skew", "kurtosis")
_READ = (
    "mean, sum, len, count, null_count, n_unique, min, max, median, quantile, std, var, skew, "
    "kurtosis, corr and cov"
)
_SIGNS = {"Plus": "+", "Minus": "-", "Multiply": "*", "Divide": "/", "TrueDivide": "/"}
_NO_ROW = (
    "Rows are not shown. One value of each unit is per_unit(y=dp.first('x', by='when')), to ask "
    "about then"
)
_AFTER = (
    "Release first, and compute with the released table: agg(y=dp.mean('x', bounds=(0, 100))), "
    "then out.table"
)
_LINES = {  # what to type in the place of a word of Polars; 'x' stands for the column
    **dict.fromkeys(
        ("any", "all", "has_nulls"), "Count the rows: agg(n=dp.sum('x')) of a condition"
    ),
    **dict.fromkeys(
        ("first", "last", "item", "implode", "head", "tail", "slice", "gather", "get"), _NO_ROW
    ),
    **dict.fromkeys(
        ("arg_max", "arg_min", "arg_sort"), "Type agg(y=dp.max('x', bounds=(0, 100))) for the value"
    ),
    **dict.fromkeys(
        ("mode", "top_k", "bottom_k"),
        "Type agg(y=dp.mode('x', keys=[...])), or frame.top_k('x', 3)",
    ),
    **dict.fromkeys(
        ("value_counts", "unique", "unique_counts"), "Type frame.group_by('x', keys=[...]).count()"
    ),
    "hist": "Type frame.histogram('x', bins=[0, 10, 20])",
    "product": "Type agg(y=dp.geometric_mean('x', bounds=(1, 100))), the root of the product",
    "over": "Type frame.group_by('city', keys=[...]).agg(y=dp.mean('x', bounds=(0, 100)))",
    "/": "Type agg(y=dp.ratio(dp.sum('wage', bounds=(0, 100)), dp.sum('hours', bounds=(0, 60)))), "
    "or compute with two released columns",
}


class Schema(NamedTuple):
    """The public columns that `pl.all()` and `polars.selectors` are
    resolved on: Polars' types, by name.

    No selector means a column in `but`: those that identify the unit, and the keys of groups. A
    name may.
    """

    types: Fields
    but: frozenset[str]

    def meant(self, tree: Tree) -> list[str]:
        """The columns that a selector means; no row is read.
        Errors: UnknownColumn for a name that there is not.
        """
        try:
            names = (
                pl.LazyFrame(schema=self.types).select(expression_of(tree)).collect_schema().names()
            )
        except pl.exceptions.PolarsError:
            names = None
        if names is None:
            raise UnknownColumn(
                f"A selector names a column that is not there. Columns: {', '.join(self.types)}."
            )
        return [name for name in names if name not in self.but]


@dataclass(frozen=True)
class PolarsAggregate:
    """An aggregate of Polars: the statistic of ours, what it is of (None for
    rows), its bounds, options and name.

    `column` is the column whose values these are, all or those that a filter leaves; None where
    they are computed.
    """

    verb: str
    of: Expr | None
    bounds: tuple[Any, Any] | None
    options: Fields
    name: str
    column: str | None = None


def read_aggregates(expr: pl.Expr, schema: Schema) -> list[PolarsAggregate]:
    """The aggregates that one of Polars stands for, one for each of its columns.
    Errors: UnsupportedOperation.

    `clip` with both ends, last before the aggregate, is read as bounds, and `filter` as null in the
    other rows.

    """
    tree, name, around = tree_of(expr), None, ("", "")
    while True:
        match tree:
            case {"Alias": [inner, alias]}:
                tree, name = inner, name or alias
            case {"RenameAlias": {"function": {"Suffix": str(text)}, "expr": inner}}:
                tree, around = inner, (around[0], text + around[1])
            case {"RenameAlias": {"function": {"Prefix": str(text)}, "expr": inner}}:
                tree, around = inner, (around[0] + text, around[1])
            case _:
                break
    if tree == "Len":
        return [PolarsAggregate("count", None, None, {}, name or "len")]
    if (pair := _pair(tree)) is not None:
        return [replace(pair, name=name or pair.name)]
    verb, inner, options = _aggregate(tree)
    if around == ("", "") and name is None:
        name = expr.meta.output_name(raise_if_undetermined=False)
        # a pattern is a column to Polars 1.30
        name = None if name is None or _is_pattern(name) else name
    read = [_of_column(verb, one, options, name) for one in _columns(inner, schema)]
    if name is not None and len(read) > 1:
        raise UnsupportedOperation(
            f"alias({name!r}): this aggregate has several columns. Type one for each."
        )
    return [replace(one, name=f"{around[0]}{one.name}{around[1]}") for one in read]


def selected(expr: pl.Expr, schema: Schema) -> list[str] | None:
    """The columns that `pl.col("x")`, `pl.col("x", "y")`, `pl.all()` or a selector
    means; None for what computes.
    """
    tree = tree_of(expr)
    names = _meant(tree, schema)
    return (
        [tree["Column"]] if names is None and isinstance(tree, dict) and "Column" in tree else names
    )


def _pair(tree: Tree) -> PolarsAggregate | None:
    """A covariance or correlation of two columns."""
    match tree:
        case {
            "Function": {
                "input": [{"Column": str(x)}, {"Column": str(y)}],
                "function": {"Correlation": options},
            }
        }:
            match options["method"]:
                case "Pearson":
                    return PolarsAggregate("corr", None, None, {"x": x, "y": y}, x)
                case {"Covariance": ddof}:
                    return PolarsAggregate("cov", None, None, {"x": x, "y": y, "ddof": ddof}, x)
    return None


def _aggregate(tree: Tree) -> tuple[str, Tree, FieldDict]:
    """The statistic, what it is of, and its options.
    Polars 1.30 writes some of them otherwise than 2 does.
    """
    agg = tree.get("Agg") if isinstance(tree, dict) else None
    word, inside = next(iter(agg.items())) if agg else ("", tree)
    match word, inside:
        case "Quantile", {"expr": inner, "quantile": rank}:
            return "quantile", inner, {"q": constant_of(rank)}
        case "", {"Function": {"input": [inner, rank], "function": {"Quantile": _}}}:
            return "quantile", inner, {"q": constant_of(rank)}
        case "Std" | "Var", [inner, ddof]:
            return word.lower(), inner, {"ddof": ddof}
        case "Count", [inner, nulls] | {"input": inner, "include_nulls": nulls}:
            return "len" if nulls else "count", inner, {}
        case "Min" | "Max", {"input": inner}:
            return word.lower(), inner, {}
        case "Mean" | "Sum" | "Median", inner:
            return word.lower(), inner, {}
        case ("NUnique", inner) | (
            "",
            {"Function": {"input": [inner], "function": "ApproxNUnique"}},
        ):
            return "n_unique", inner, {}
        case "", {"Function": {"input": [inner], "function": {"Skew": True}}}:
            return "skew", inner, {}
        case "", {"Function": {"input": [inner], "function": {"Kurtosis": [True, True]}}}:
            return "kurtosis", inner, {}
        case "", {"Function": {"input": [inner], "function": "NullCount"}}:
            return "sum", {"Function": {"input": [inner], "function": {"Boolean": "IsNull"}}}, {}
    raise _refused(tree)


def _refused(tree: Tree) -> UnsupportedOperation:
    """The refusal of an aggregate, with its word in Polars and the line to type."""
    word, inner = _word(tree)
    column = next(_named(tree), "x")
    if word == "":
        return UnsupportedOperation(
            f"agg: {column!r} alone is a value of each row. Type what is asked of it, "
            f"pl.col({column!r}).clip(0, 100).mean(), or frame.select({column!r}) for the column."
        )
    line = _LINES.get(
        word, _AFTER if _word(inner)[0] else f"Type agg(y=dp.mean({column!r}, bounds=(0, 100)))"
    )
    line = line.replace("'x'", repr(column))
    return UnsupportedOperation(
        f"agg: {word!r} of Polars is not read. {line}. Of Polars' aggregates, {_READ} "
        "are read, with clip and filter before them."
    )


def _word(tree: Tree) -> tuple[str, Tree]:
    """The name that Polars has for the outermost operation, and its
    operand; an empty text for a column.
    """
    match tree:
        case {"Agg": agg}:
            ((name, inner),) = agg.items()
        case {"Function": {"input": [inner, *_], "function": function}}:
            name = called(function)[0].rpartition(".")[2]
        case {"BinaryExpr": {"left": inner, "op": str(sign)}}:
            return _SIGNS.get(sign, snake(sign)), inner
        case {"Over": {"function": inner}} | {"Window": {"function": inner}}:
            name = "Over"
        case {"Cast": {"expr": inner}}:
            name = "Cast"
        case {"Column": _} | {"Selector": _} | {"Columns": _} | "Wildcard":
            return "", None
        case dict() if tree:
            name, inner = next(iter(tree)), None
        case _:
            name, inner = "a part", None
    return snake(name), inner


def _named(tree: Tree) -> Iterator[str]:
    """The columns of an expression."""
    match tree:
        case {"Column": str(name)}:
            yield name
        case dict():
            yield from _named([*tree.values()])
        case list():
            for inner in tree:
                yield from _named(inner)


def _columns(tree: Tree, schema: Schema) -> list[Tree]:
    """A row expression for each of the columns that
    `pl.col("x", "y")` or a selector names in it.
    """
    meant = list(_meanings(tree, schema))
    names = dict.fromkeys(name for listed in meant for name in listed)
    if meant and not names:
        raise UnknownColumn(
            f"agg: the selector means no column. Columns: {', '.join(schema.types)}."
        )
    return [_with_column(tree, name, schema) for name in names] or [tree]


def _meanings(tree: Tree, schema: Schema) -> Iterator[list[str]]:
    """The columns that each selector in an expression means."""
    if (names := _meant(tree, schema)) is not None:
        yield names
        return
    match tree:
        case {"Literal": _} | {"Column": _}:
            pass
        case dict():
            yield from _meanings([*tree.values()], schema)
        case list():
            for inner in tree:
                yield from _meanings(inner, schema)


def _meant(tree: Tree, schema: Schema) -> list[str] | None:
    """The columns of a node that means several by their names, or by the public
    schema; None for another node.
    """
    match tree:
        case {"Selector": {"ByName": {"names": [*names]}}} | {"Columns": [*names]}:
            return names
        case "Wildcard" | {"Selector": _} | {"DtypeColumn": _} | {"Exclude": _} | {"Nth": _}:
            return schema.meant(tree)
        case {"Column": str(name)} if _is_pattern(name):
            return schema.meant(tree)
    return None


def _is_pattern(name: str) -> bool:
    return name.startswith("^") and name.endswith("$")


def _with_column(tree: Tree, name: str, schema: Schema) -> Tree:
    """An expression with one column in place of several."""
    if _meant(tree, schema) is not None:
        return {"Column": name}
    match tree:
        case {"Literal": _} | {"Column": _}:
            return tree
        case dict():
            return {key: _with_column(inner, name, schema) for key, inner in tree.items()}
        case list():
            return [_with_column(inner, name, schema) for inner in tree]
    return tree


def _of_column(verb: str, tree: Tree, options: Fields, name: str | None) -> PolarsAggregate:
    conditions: list[Expr] = []
    bounds = None
    while True:
        match tree:
            case {"Filter": {"input": inner, "by": condition}}:
                conditions, tree = [*conditions, POLARS.tree(condition)], inner
            case {"Function": {"input": [inner], "function": "DropNulls"}} if verb != "len":
                tree = inner
            case {"Function": {"input": [inner, *ends], "function": {"Clip": _}}} if (
                len(ends) == 2 and verb in BOUNDED and bounds is None
            ):
                bounds, tree = (constant_of(ends[0]), constant_of(ends[1])), inner
            case _:
                break
    value = POLARS.tree(tree)
    name, column = name or output_name(value, "agg"), value._node.column
    if verb == "len":
        verb, value = "count", lit(1) if conditions else None
    for condition in conditions:
        value = when(condition).then(value)
    return PolarsAggregate(verb, value, bounds, options, name, column)
