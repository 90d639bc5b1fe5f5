"""A release as a crosstab: what cells make together, with the interval of each number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from dpframe.plan.measures import Output
from dpframe.release.accuracy import error_of_sum
from dpframe.release.formulas import mean_of
from dpframe.release.intervals import intervals, known
from dpframe.release.layout import Grid, Number, Read, grid_of
from dpframe.release.numbers import Numbers
from dpframe.release.ratios import merged_mean_interval
from dpframe.release.reconcile import error_of_part

__all__ = ["crosstab", "margin_errors"]


def crosstab(numbers: Numbers, alpha: float | None = None) -> Grid | None:
    """The crosstab, with intervals where alpha says how sure they are to be; None for a long table."""
    if numbers.layout.form == "long":
        return None
    (output,) = numbers.outputs
    sure = None if alpha is None else alpha / 2 if numbers.layout.normalize else alpha
    whole = numbers.long.schema[output.name].is_integer()
    return grid_of(numbers.long, numbers.by, numbers.layout, _reader(numbers, output, sure), whole=whole)


def margin_errors(numbers: Numbers, alpha: float) -> pl.DataFrame:
    """One row per margin: the keys as text, column, value, lower, upper."""
    grid = crosstab(numbers, alpha)
    assert grid is not None
    height, width = grid.sizes
    rows = []
    for i, down in enumerate(grid.rows):
        for j, across in enumerate(grid.columns):
            cell = grid.cells[i][j]
            if (i == height or j == width) and cell is not None:
                names = dict(zip((*grid.down, *grid.across), (*down, *across), strict=True))
                texts = [None if names[name] is None else str(names[name]) for name in numbers.by]
                rows.append((*texts, numbers.outputs[0].name, cell.value, cell.lower, cell.upper))
    schema = {**dict.fromkeys(numbers.by, pl.String), "column": pl.String}
    return pl.DataFrame(
        rows, {**schema, **dict.fromkeys(("value", "lower", "upper"), pl.Float64)}, strict=False, orient="row"
    )


def _reader(numbers: Numbers, output: Output, alpha: float | None) -> Read:
    """What groups make together: a count, a sum or a mean over all of them."""
    values, counted = numbers.long.get_column(output.name).to_list(), numbers.counted
    lower, upper = (None, None) if alpha is None else intervals(numbers, output, alpha)
    drawn = numbers.drawn.get_column(output.name).to_numpy()
    sizes: dict[tuple[int, bool], float] = {}

    def read(groups: Sequence[int]) -> Number:
        at = list(groups)
        if numbers.below is not None and float(counted[at].sum()) < numbers.below:
            return Number(None)
        if len(at) == 1:
            value = values[at[0]]
        else:
            value = _mean_of(numbers, output, at) if output.formula == "mean" else sum(values[i] for i in at)
        if alpha is None or lower is None or upper is None:
            return Number(value)
        if len(at) == 1:
            return Number(value, *(None if np.isnan(x[at[0]]) else float(x[at[0]]) for x in (lower, upper)))
        if output.formula == "mean":
            total, number = (float(numbers.parts[name][at].sum()) for name, _ in output.measures)
            low, high = merged_mean_interval(output, numbers.noise, alpha, total, number, len(at))
            return Number(value, min(low, value), max(high, value))
        kind = len(at), at[1] == at[0] + 1  # columns of one row follow one another
        if kind not in sizes:
            sizes[kind] = _margin_error(numbers, output, alpha, *kind)
        middle, size = float(drawn[at].sum()), sizes[kind]
        ends = middle - size, middle + size
        return Number(value, *(known(numbers, output, np.array(ends)).tolist()))

    return read


def _mean_of(numbers: Numbers, output: Output, at: list[int]) -> float:
    """The mean over several groups, from their noisy sums and counts."""
    (total, measure), (count, _) = output.measures
    deviation = numbers.noise.of(measure).deviation * math.sqrt(len(at))
    return float(mean_of(output, numbers.parts[total][at].sum(), numbers.parts[count][at].sum(), deviation))


def _margin_error(numbers: Numbers, output: Output, alpha: float, number: int, in_a_row: bool) -> float:
    if not numbers.noise.reconciled:
        return error_of_sum(output, numbers.noise, alpha, number)
    part = "total" if number == numbers.long.height else "row" if in_a_row else "column"
    return error_of_part(output, numbers.noise, part, alpha)  # type: ignore[arg-type]
