"""Tables about the accuracy of a release: errors of numbers and
margins, and the noise of each total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from dpframe.arrays import Array, Booleans, Floats, Integers
from dpframe.fields import FieldDict
from dpframe.plan import Covers, Formula, ReleasedColumn
from dpframe.release.accuracy import half_step, intervals, known
from dpframe.release.answer import Numbers, keys_beside, known_nonnegative, rounding_of
from dpframe.release.estimators import (
    error_of_part,
    error_of_sum,
    estimator_of,
    mean_of,
    merged_mean_interval,
    rows_fewer,
)
from dpframe.release.pricing import NoisePlan
from dpframe.release.shown.charts import decimals
from dpframe.release.shown.crosstab import Crosstab, Merged, ShareError, as_text, grid_of


def crosstab(numbers: Numbers, alpha: float | None = None) -> Crosstab | None:
    """The crosstab of a release, with intervals at 1 - alpha if alpha is
    not None; None for a long table.

    Shares whose 95% interval holds every share that there may be are missing, unless the numbers
    are filled.
    """
    if numbers.layout.is_long or numbers.layout.is_description:
        return None
    grid, codes = _grid(numbers, alpha), _codes(numbers)
    if numbers.layout.normalize and not numbers.filled:
        gone, values = _open_ended(numbers), grid.values.copy()
        values[gone] = None
        lower, upper = np.where(gone, np.nan, grid.lower), np.where(gone, np.nan, grid.upper)
        grid = replace(grid, values=values, lower=lower, upper=upper)
    if codes is None or numbers.suppression is None or numbers.suppression.marks is None:
        return grid
    marks = np.array([None, *numbers.suppression.marks], object)[codes]
    return replace(grid, marks=marks[: len(grid.rows), : len(grid.columns)])


_ROUNDING = 1e-12  # the error of a share that has none, such as that of the total in itself


def _codes(numbers: Numbers) -> Integers | None:
    """Why cells and margins of a crosstab are hidden; None if none is."""
    return None if numbers.hidden_grid is None else numbers.hidden_grid[0]


def _grid(numbers: Numbers, alpha: float | None, *, public: bool = False) -> Crosstab:
    """The crosstab of a release without marks, with all shares that its margins allow.

    If it is `public`, intervals are around the numbers after post-processing: for how exact they
    are, in a table that must not show the numbers before.
    """
    (output,) = numbers.outputs
    long, by, layout, codes = numbers.long, numbers.by, numbers.layout, _codes(numbers)
    values, share = (
        np.array(numbers.shown.get_column(output.name).to_list(), np.object_),
        _share_error(numbers),
    )
    if public:
        numbers = replace(numbers, before=None, lifted=False)
    # intervals of shares are cut at the ends of shares, and not before
    elif share is not None and not numbers.veiled:
        numbers = replace(numbers, lifted=False)
    ends, hidden = _ends(numbers, output, alpha), None if codes is None else codes > 0
    merged, whole = _merged(numbers, output, alpha, *ends), long.schema[output.name].is_integer()
    return grid_of(long, by, layout, (values, *ends), merged, hidden, whole=whole, share=share)


def _share_error(numbers: Numbers) -> ShareError | None:
    """Facts for intervals of shares; None for a table of no shares."""
    if not numbers.layout.normalize:
        return None
    (output,) = numbers.outputs
    return ShareError(half_step(numbers, output), numbers.moved, known_nonnegative(output))


def _open_ended(numbers: Numbers) -> Booleans:
    """Shares of a crosstab that say nothing: a 95% interval holds every share that there may be."""
    share = _share_error(numbers)
    if share is None or numbers.filled:
        return np.zeros((1, 1), np.bool_)
    grid, (least, most) = _grid(numbers, 0.05, public=numbers.veiled), share.ends
    return np.asarray((grid.lower <= least) & (grid.upper >= most))


def missing_shares(numbers: Numbers) -> tuple[int, int]:
    """Number of shares of a crosstab that are missing because they
    say nothing, and number of all.
    """
    missing = _open_ended(numbers)
    return int(missing.sum()), missing.size


def decimals_of(numbers: Numbers) -> int:
    """The decimals of the numbers of a crosstab: two digits of the smallest
    margin of error, shown or not.
    """
    grid = _grid(numbers, 0.05, public=numbers.veiled)
    return (
        0
        if grid.whole
        else decimals(np.min(grid.errors, where=grid.errors > _ROUNDING, initial=np.inf).item())
    )


def margins_at(grid: Crosstab) -> list[tuple[int, int]]:
    """The places of margins in a grid: those of its rows, then those below it."""
    (height, width), below = grid.sizes, range(grid.sizes[0], len(grid.rows))
    beside = [(i, j) for i in range(height) for j in range(width, len(grid.columns))]
    return beside + [(i, j) for i in below for j in range(len(grid.columns))]


def margin_errors(numbers: Numbers, alpha: float) -> pl.DataFrame:
    """One row per margin: the keys as text, with the names of
    `keys_beside`, column, value, lower, upper.
    """
    grid = crosstab(numbers, alpha)
    assert grid is not None
    by, margins = keys_beside(numbers.by), margins_at(grid)
    order = [(*grid.down, *grid.across).index(name) for name in numbers.by]
    keys = [[(*grid.rows[i], *grid.columns[j])[part] for part in order] for i, j in margins]
    at = tuple(np.array(margins, np.int64).reshape(-1, 2).T)
    numbers_and_ends = {"value": grid.numbers[at], "lower": grid.lower[at], "upper": grid.upper[at]}
    return pl.DataFrame(
        {
            **{
                name: [None if key[n] is None else str(key[n]) for key in keys]
                for n, name in enumerate(by)
            },
            "column": [numbers.outputs[0].name] * len(keys),
            **{name: pl.Series(ends).fill_nan(None) for name, ends in numbers_and_ends.items()},
        },
        schema_overrides=dict.fromkeys(by, pl.String),
    )


def _ends(numbers: Numbers, output: ReleasedColumn, alpha: float | None) -> tuple[Floats, Floats]:
    if alpha is None:
        return np.full(numbers.long.height, np.nan), np.full(numbers.long.height, np.nan)
    return intervals(numbers, output, alpha)


def _merged(
    numbers: Numbers, output: ReleasedColumn, alpha: float | None, lower: Floats, upper: Floats
) -> Merged:
    """The function from some groups to their margin:
    a count, a sum or a mean over all of them, with its interval.
    """
    values = numbers.long.get_column(output.name)
    before = numbers.drawn.get_column(output.name).to_numpy()  # the numbers without post-processing
    sizes: dict[tuple[int, bool], float] = {}

    def merged(at: Array) -> tuple[int | float | None, float, float]:
        cells = values[at].to_list()
        if len(cells) == 1:
            missing = bool(numbers.empty[output.name][at].item())
            return None if missing else cells[0], lower[at].item(), upper[at].item()
        if output.formula is Formula.MEAN:
            return _merged_mean(numbers, output, alpha, at)
        value = sum(cells)
        if alpha is None or numbers.veiled:
            return value, math.nan, math.nan
        # The cells of one row are adjacent in the long table.
        kind = len(at), bool(at[1] == at[0] + 1)
        if kind not in sizes:
            sizes[kind] = _margin_error(numbers, output, alpha, *kind)
        middle, size = (
            float((values if numbers.moved else before)[at].sum()),
            sizes[kind] + numbers.moved,
        )
        low, high = known(numbers, output, np.array([middle - size, middle + size])).tolist()
        return value, low, high

    return merged


def _merged_mean(
    numbers: Numbers, output: ReleasedColumn, alpha: float | None, at: Array
) -> tuple[float | None, float, float]:
    """The mean over several groups, from their noisy sums and counts, with its
    interval; None where it says nothing.
    """
    deviation = numbers.noise.of(output.total).deviation * math.sqrt(len(at))
    total, number = (float(numbers.parts[name][at].sum()) for name, _ in output.totals)
    value = float(mean_of(output, np.float64(total), np.float64(number), deviation))

    def ends(alpha: float) -> tuple[float, float]:
        low, high = merged_mean_interval(numbers.noisy(output), alpha, total, number, len(at))
        return min(low, value), max(high, value)

    missing = not numbers.filled and bool(
        estimator_of(output).holds_all(numbers.noisy(output), ends(0.05))
    )
    shown = None if missing else value
    return (shown, math.nan, math.nan) if alpha is None or numbers.veiled else (shown, *ends(alpha))


def _margin_error(
    numbers: Numbers, output: ReleasedColumn, alpha: float, number: int, in_a_row: bool
) -> float:
    if not numbers.noise.reconciled:
        error, factor = (
            error_of_sum(numbers.noisy(output), alpha, number),
            numbers.factor_of(output),
        )
        return error if factor == 1 else error * factor + rounding_of(output) * number
    part: Literal["cell", "row", "column", "total"] = (
        "total" if number == numbers.long.height else "row" if in_a_row else "column"
    )
    return float(error_of_part(numbers.noisy(output), part, alpha))


_KEPT: WeakKeyDictionary[Numbers, dict[tuple[float, float | None], pl.DataFrame]] = (
    WeakKeyDictionary()
)


def error_table(numbers: Numbers, alpha: float, rows: float | None = None) -> pl.DataFrame:
    """One row per group and released column: the keys, column, value, error, lower,
    upper; see `Release.accuracy`.

    The keys come first, with the names of `keys_beside`. A table is kept as long as its numbers,
    which never change: the statement, the page and the chart of a release all read the table at
    95%.
    """
    tables = _KEPT.setdefault(numbers, {})
    if (alpha, rows) not in tables:
        tables[alpha, rows] = _error_table(numbers, alpha, rows)
    return tables[alpha, rows]


def _error_table(numbers: Numbers, alpha: float, rows: float | None) -> pl.DataFrame:
    """The table of `error_table`, computed."""
    parts, by = [], keys_beside(numbers.by)
    keys = numbers.long.select(
        pl.col(old).alias(new) for old, new in zip(numbers.by, by, strict=True)
    )
    for output in numbers.outputs:
        value, (lower, upper) = (
            _floats(numbers.shown.get_column(output.name)),
            intervals(numbers, output, alpha, rows),
        )
        if numbers.layout.normalize:
            value, lower, upper = _shares(numbers, alpha)
        ends = {
            name: np.where(numbers.hidden, np.nan, end)
            for name, end in (("lower", lower), ("upper", upper))
        }
        # also where no group was found
        named = pl.repeat(output.name, len(value), dtype=pl.String, eager=True)
        block = pl.DataFrame({"column": named, "value": value, **ends})
        parts.append(pl.concat([keys, block], how="horizontal") if by else block)
    if not parts:  # The release has keys alone.
        parts = [keys.clear().with_columns(column=pl.lit(""), value=0.0, lower=0.0, upper=0.0)]
    long = pl.concat(parts).with_columns(pl.col("lower", "upper").fill_nan(None))
    if numbers.layout.margins:
        long = pl.concat(
            [long.with_columns(as_text(long[name]) for name in by), margin_errors(numbers, alpha)]
        )
    error = largest_error()
    for output in numbers.outputs:
        if not estimator_of(output).is_number:
            fewer = rows_fewer(numbers.noisy(output), alpha)
            error = pl.when(pl.col("column") == output.name).then(fewer).otherwise(error)
    labels = {output.name: numbers.covers_of(output) for output in numbers.outputs}
    words = pl.col("column").replace_strict(
        {name: covers.label(1 - alpha) for name, covers in labels.items()}
    )
    label = [words.alias("covers")] if Covers.POPULATION in labels.values() else []
    return long.select(*by, "column", "value", error.alias("error"), "lower", "upper", *label)


def _shares(numbers: Numbers, alpha: float) -> tuple[pl.Series, Floats, Floats]:
    """The shares of the cells of a crosstab in the order of the long table,
    with the ends of their intervals.
    """
    grid = crosstab(numbers, alpha)
    assert grid is not None
    keys = [{key: place for place, key in enumerate(lines)} for lines in (grid.rows, grid.columns)]
    lines = [numbers.long.select(names).rows() for names in (grid.down, grid.across)]
    at = tuple(
        np.array([places[key] for key in own], np.int64)
        for places, own in zip(keys, lines, strict=True)
    )
    return pl.Series(grid.numbers[at]).fill_nan(None), grid.lower[at], grid.upper[at]


def errors_together(
    tables: Sequence[Numbers], by: Sequence[str], alpha: float
) -> list[pl.DataFrame]:
    """The errors of the numbers of several tables without margins;
    keys are named as beside all of the columns `by`.
    """
    beside, errors = dict(zip(by, keys_beside(by), strict=True)), []
    for numbers in tables:
        names = zip(keys_beside(numbers.by), numbers.by, strict=True)
        own = error_table(numbers, alpha).head(numbers.long.height)
        errors.append(own.rename({name: beside[key] for name, key in names}))
    return errors


def largest_error() -> pl.Expr:
    """The largest distance from the value to an end of its
    interval; null for a suppressed value.
    """
    error = pl.max_horizontal(pl.col("value") - pl.col("lower"), pl.col("upper") - pl.col("value"))
    return pl.when(pl.col("value").is_not_null()).then(error).alias("error")


def largest_errors(numbers: Numbers) -> list[tuple[str, float]]:
    """The largest error of each released column, at 95%; those without a known one are left out."""
    errors = (
        error_table(numbers, 0.05)
        .group_by("column", maintain_order=True)
        .agg(pl.col("error").max())
    )
    return [(name, error) for name, error in errors.iter_rows() if error is not None]


def _floats(column: pl.Series) -> pl.Series:
    """A released column as floats; a column of texts becomes null."""
    if column.dtype in (pl.String, pl.Enum):
        return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    return column.cast(pl.Float64)


def noise_table(outputs: tuple[ReleasedColumn, ...], plan: NoisePlan) -> pl.DataFrame:
    """One row per name of a total: column, aggregate, mechanism, scale
    (column unit), threshold (units).
    """
    schema = {
        "column": pl.String,
        "aggregate": pl.String,
        "mechanism": pl.String,
        "scale": pl.Float64,
    }
    return pl.DataFrame(noise_rows(outputs, plan), schema={**schema, "threshold": pl.Int64})


def noise_rows(outputs: tuple[ReleasedColumn, ...], plan: NoisePlan) -> list[FieldDict]:
    """The rows of `noise_table`, by the names of its columns."""
    formulas = {name: output.formula.value for output in outputs for name, _ in output.totals}
    rows: list[FieldDict] = []
    for noise in plan.noises:
        unit = float(noise.total.unit)
        for name in noise.allotment.names:
            output_name = name.removesuffix(".other") if noise.total.collects else name
            aggregate = formulas.get(output_name, noise.total.kind)
            decides = plan.threshold if plan.decided_by is noise.allotment else None
            about = {"column": name, "aggregate": str(aggregate), "mechanism": noise.label}
            rows.append({**about, "scale": float(noise.scale * unit), "threshold": decides})
    return rows
