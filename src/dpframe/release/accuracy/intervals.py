"""The interval of each released number, and tables with its two ends."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.plan import Covers, ReleasedColumn
from dpframe.release.accuracy.interval_columns import interval_column, low_and_high
from dpframe.release.accuracy.picked import alpha_of_each, picked_from, with_rare_groups
from dpframe.release.answer import Numbers, known_nonnegative, rounding_of, shrunk_interval
from dpframe.release.estimators import estimator_of

_COUNTED = ("rows", "values", "units")  # totals that serve as the number of values of a quantile


def intervals(
    numbers: Numbers,
    output: ReleasedColumn,
    alpha: float,
    rows: float | None = None,
    covers: Covers | None = None,
) -> tuple[Floats, Floats]:
    """Intervals that hold each true number of a column with probability 1 - alpha; NaN if there is none.

    There is none either beside hidden numbers that it would tell: see `Numbers.veiled`.

    Where the largest numbers were picked, all intervals hold together: see `release.accuracy.picked.alpha_of_each`.

    Input:  rows: how many values each group has, if the release does not say; covers: what they are about, by default
            what the release covers
    """
    if not estimator_of(output).is_number or numbers.veiled:
        return np.full(numbers.long.height, np.nan), np.full(numbers.long.height, np.nan)
    value = numbers.drawn.get_column(output.name).cast(pl.Float64).to_numpy()
    values = _rows_of(numbers, output) if rows is None else np.full(len(value), rows)
    factor = numbers.factor_of(output)
    estimator = estimator_of(output)
    groups = picked_from(numbers)
    alpha = alpha_of_each(alpha, groups) if groups else alpha
    if (covers or numbers.covers) is Covers.POPULATION:
        low, high = estimator.population(output, numbers.noise, alpha, value, numbers.parts)
        return known(numbers, output, low), known(numbers, output, high)
    low, high = estimator.interval(output, numbers.noise, alpha, value / factor, numbers.parts, values)
    if groups:
        low = with_rare_groups(numbers, output, value, low, high)
    if factor > 1:
        low, high = low * factor - rounding_of(output), high * factor + rounding_of(output)
    if output.name in numbers.shrunk:
        low, high = (
            np.append(ends, old[len(ends) :])
            for ends, old in zip(shrunk_interval(numbers, output, alpha), (low, high), strict=True)
        )
    rest = numbers.noise.collected
    if rest is not None:  # the last row has noise of its own
        parts = {name: totals[-1:] for name, totals in numbers.parts.items()}
        (low[-1],), (high[-1],) = estimator_of(output).interval(output, rest, alpha, value[-1:], parts, None)
    return known(numbers, output, low), known(numbers, output, high)


def known(numbers: Numbers, output: ReleasedColumn, ends: Floats) -> Floats:
    """Ends of intervals, cut at 0 if post-processing has removed negative numbers."""
    return np.maximum(ends, 0.0) if numbers.lifted and known_nonnegative(output) else ends


def with_intervals(numbers: Numbers, alpha: float) -> pl.DataFrame:
    """The shown table with the two ends beside each number, in its column's type."""
    table, columns = numbers.shown, list(numbers.by)
    for output in numbers.outputs:
        if not estimator_of(output).is_number:
            columns.append(output.name)
            continue
        low, high = intervals(numbers, output, alpha)
        names, whole = low_and_high(output, numbers.covers), table.schema[output.name].is_integer()
        ends = (
            interval_column(output, low, names[0], whole=whole, upper=False),
            interval_column(output, high, names[1], whole=whole, upper=True),
        )
        table = table.with_columns(
            pl.when(pl.col(output.name).is_not_null()).then(column).alias(column.name) for column in ends
        )
        columns += [output.name, *names]
    return table.select(columns)


def _rows_of(numbers: Numbers, output: ReleasedColumn) -> Floats | None:
    """The number of values in each group, as released: values of this column, else rows, else units.

    It is None for a minimum or maximum, since values are rarely spread evenly there.
    """
    column = output.totals[0][1].column
    if output.totals[0][1].rank in (0, 1):
        return None
    best, rows = 4, None
    for other in numbers.outputs:
        name, total = other.totals[-1]
        if total.kind not in _COUNTED:
            continue
        same = total.column is not None and column is not None and total.column.id == column.id
        place = 0 if same else _COUNTED.index(total.kind) + 1
        if place < best:
            values = numbers.drawn[other.name].cast(pl.Float64).to_numpy() / numbers.factor_of(other)
            best, rows = place, numbers.parts[name] if len(other.totals) > 1 else values
    return rows
