"""Arguments about the cells of a histogram or a crosstab, read and checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from dpframe.api.arguments import Pair
from dpframe.api.statistics import counts, moments
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Aggregate, Intervals, Question, check_choice, number


def intervals_of(bins: Sequence[Any], underflow: bool, overflow: bool, call: str) -> Intervals:
    """The intervals of a histogram, with one below the edges (`underflow`) and one above (`overflow`)."""
    if not isinstance(underflow, bool) or not isinstance(overflow, bool):
        raise InvalidArgument(f"{call}: underflow= and overflow= are True or False.")
    inner = Intervals.of(bins, right=False, closed_ends=not overflow, call=call)
    if not underflow and not overflow:
        return inner
    first, last = inner.edges[0], inner.edges[-1]
    if not isinstance(first, (int, float)):
        raise InvalidArgument(f"{call}: underflow= and overflow= go with bins of numbers.")
    edges, labels = inner.edges, inner.labels
    if underflow:
        edges, labels = (-math.inf, *edges), (f"< {number(first)}", *labels)
    if overflow:
        edges, labels = (*edges, math.inf), (*labels, f"≥ {number(last)}")
    return Intervals(edges, labels, right=False, closed_ends=True)


def parts_of(normalize: object) -> Literal["", "index", "columns", "all"]:
    """What each cell is divided by, from `normalize=` as in `pd.crosstab`."""
    if normalize is False:
        return ""
    for names, part in ((("index", 0), "index"), (("columns", 1), "columns"), (("all", True), "all")):
        if any(type(normalize) is type(x) and normalize == x for x in names):
            return part  # type: ignore[return-value]
    raise InvalidArgument("crosstab: normalize= is 'index', 'columns', 'all' or False.")


def cell_of(values: str | None, aggfunc: str, bounds: Pair | None, verb: str = "crosstab") -> Aggregate:
    """The aggregate of each cell of a crosstab."""
    check_choice(aggfunc, ("count", "sum", "mean"), f"{verb}: aggfunc")
    if aggfunc == "count":
        if bounds is not None:
            raise InvalidArgument(f"{verb}: bounds= go with aggfunc='sum' or 'mean'; a count needs none.")
        return counts.count(values)
    if values is None:
        raise InvalidArgument(f"{verb}: name the column to take the {aggfunc} of: values='spend'.")
    return moments.sum(values, bounds) if aggfunc == "sum" else moments.mean(values, bounds)


def check_cells(question: Question, asked: str, *, summed: bool) -> None:
    """Refuse a crosstab whose cells are times, or whose sums would leave out suppressed cells.

    Input:  the question; the aggregate as it is typed in agg(...); whether cells are added up
    Errors: UnsupportedOperation
    """
    if question.outputs[0].dtype is not None:
        by = ", ".join(map(repr, question.by))
        raise UnsupportedOperation(f"crosstab: its cells are numbers; for times: group_by({by}, ...).agg({asked}).")
    if summed and question.private_keys:
        raise UnsupportedOperation(
            "crosstab: margins of cells found in the data would leave out the suppressed ones; list keys={...}."
        )
