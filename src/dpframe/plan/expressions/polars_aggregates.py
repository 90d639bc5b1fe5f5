"""Aggregates of Polars in `agg(...)`: `pl.col("spend").clip(0, 100).mean()` as a mean of a column with bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.plan.expressions.expression import POLARS, Expr, lit, output_name
from dpframe.plan.expressions.foreign import Tree, constant_of, tree_of
from dpframe.plan.expressions.functions import when

BOUNDED = ("mean", "sum", "median", "quantile", "min", "max", "std", "var")


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
    tree, name = tree_of(expr), None
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
    name = name or output_name(value, "agg")
    if verb == "len":
        verb, value = "count", lit(1) if conditions else None
    for condition in conditions:
        value = when(condition).then(value)
    return PolarsAggregate(verb, value, bounds, options, name)
