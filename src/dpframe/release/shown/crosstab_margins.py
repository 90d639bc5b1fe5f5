"""A release as a crosstab: its margins, and the interval of each number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.plan import Formula, ReleasedColumn
from dpframe.release.accuracy import intervals, known
from dpframe.release.answer import Numbers, keys_beside, rounding_of
from dpframe.release.estimators import error_of_part, error_of_sum, mean_of, merged_mean_interval
from dpframe.release.shown.crosstab import Crosstab, Merged, grid_of


def crosstab(numbers: Numbers, alpha: float | None = None) -> Crosstab | None:
    """The crosstab of a release, with intervals at 1 - alpha if alpha is not None; None for a long table."""
    if numbers.layout.is_long or numbers.layout.is_description:
        return None
    (output,) = numbers.outputs
    sure = None if alpha is None else alpha / 2 if numbers.layout.normalize else alpha
    whole, ends = numbers.long.schema[output.name].is_integer(), _ends(numbers, output, sure)
    values = np.array(numbers.shown.get_column(output.name).to_list(), np.object_)
    merged = _merged(numbers, output, sure, *ends)
    hidden = None if numbers.hidden_grid is None else numbers.hidden_grid[0] > 0
    grid = grid_of(numbers.long, numbers.by, numbers.layout, (values, *ends), merged, hidden, whole=whole)
    marks = numbers.marks
    return grid if marks is None else replace(grid, marks=marks[: len(grid.rows), : len(grid.columns)])


def margin_errors(numbers: Numbers, alpha: float) -> pl.DataFrame:
    """One row per margin: the keys as text, with the names of `keys_beside`, column, value, lower, upper."""
    grid = crosstab(numbers, alpha)
    assert grid is not None
    by, (height, width) = keys_beside(numbers.by), grid.sizes
    margins = [*((i, width) for i in range(height)), *((height, j) for j in range(width + 1))]
    order = [(*grid.down, *grid.across).index(name) for name in numbers.by]
    keys = [[(*grid.rows[i], *grid.columns[j])[part] for part in order] for i, j in margins]
    at = tuple(np.array(margins).T)
    numbers_and_ends = {"value": grid.numbers[at], "lower": grid.lower[at], "upper": grid.upper[at]}
    return pl.DataFrame(
        {
            **{name: [None if key[n] is None else str(key[n]) for key in keys] for n, name in enumerate(by)},
            "column": [numbers.outputs[0].name] * len(keys),
            **{name: pl.Series(ends).fill_nan(None) for name, ends in numbers_and_ends.items()},
        },
        schema_overrides=dict.fromkeys(by, pl.String),
    )


def _ends(numbers: Numbers, output: ReleasedColumn, alpha: float | None) -> tuple[Floats, Floats]:
    if alpha is None:
        return np.full(numbers.long.height, np.nan), np.full(numbers.long.height, np.nan)
    return intervals(numbers, output, alpha)


def _merged(numbers: Numbers, output: ReleasedColumn, alpha: float | None, lower: Floats, upper: Floats) -> Merged:
    """The function from some groups to their margin: a count, a sum or a mean over all of them, with its interval."""
    values = numbers.long.get_column(output.name)
    before = numbers.drawn.get_column(output.name).to_numpy()  # the numbers without post-processing
    sizes: dict[tuple[int, bool], float] = {}

    def merged(at: NDArray[Any]) -> tuple[int | float | None, float, float]:
        cells = values[at].to_list()
        if len(cells) == 1:
            return cells[0], lower[at].item(), upper[at].item()
        value = _mean_of(numbers, output, at) if output.formula is Formula.MEAN else sum(cells)
        if alpha is None or numbers.veiled:
            return value, math.nan, math.nan
        if output.formula is Formula.MEAN:
            sum_name, number = (float(numbers.parts[name][at].sum()) for name, _ in output.totals)
            low, high = merged_mean_interval(output, numbers.noise, alpha, sum_name, number, len(at))
            return value, min(low, value), max(high, value)
        kind = len(at), bool(at[1] == at[0] + 1)  # The cells of one row are adjacent in the long table.
        if kind not in sizes:
            sizes[kind] = _margin_error(numbers, output, alpha, *kind)
        middle, size = float(before[at].sum()), sizes[kind]
        low, high = known(numbers, output, np.array([middle - size, middle + size])).tolist()
        return value, low, high

    return merged


def _mean_of(numbers: Numbers, output: ReleasedColumn, at: NDArray[Any]) -> float:
    """The mean over several groups, from their noisy sums and counts."""
    (sum_name, total), (count, _) = output.totals
    deviation = numbers.noise.of(total).deviation * math.sqrt(len(at))
    return float(mean_of(output, numbers.parts[sum_name][at].sum(), numbers.parts[count][at].sum(), deviation))


def _margin_error(numbers: Numbers, output: ReleasedColumn, alpha: float, number: int, in_a_row: bool) -> float:
    if not numbers.noise.reconciled:
        error, factor = error_of_sum(output, numbers.noise, alpha, number), numbers.factor_of(output)
        return error if factor == 1 else error * factor + rounding_of(output) * number
    part: Literal["cell", "row", "column", "total"] = (
        "total" if number == numbers.long.height else "row" if in_a_row else "column"
    )
    return float(error_of_part(output, numbers.noise, part, alpha))
