"""Shrinking released means and variances of groups: post-processing of noisy totals that were released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.answer.numbers import Numbers
from dpframe.release.estimators import Compared, estimator_of, in_ticks

_GROUPS = 4  # James and Stein's gain needs four groups where their common value is estimated too


def compared_groups(numbers: Numbers, output: ReleasedColumn) -> Compared | None:
    """The groups beside their common value; None for a column or a number of groups that cannot be shrunk.

    The row that collects suppressed groups has noise of its own, and is no group.
    """
    parts = _parts(numbers)
    if output.name in numbers.shrunk or len(next(iter(parts.values()), ())) < _GROUPS:
        return None
    return estimator_of(output).compared(output, numbers.noise, parts)


def has_noisy_differences(numbers: Numbers, output: ReleasedColumn) -> bool:
    """Whether the noise of at least half of the groups is larger than what their values differ by."""
    compared = compared_groups(numbers, output)
    if compared is None:
        return False
    shrunk = compared.shrunk()
    return bool(np.median(shrunk.biases) > np.median(shrunk.deviations))


def shrunk_numbers(numbers: Numbers, compared: Mapping[str, Compared]) -> Numbers:
    """The numbers with some columns shrunk.

    Bound:  none is needed: `compared` follows from noisy totals, their noise and public bounds. No row is read
    """
    changed, shrunk, parts = numbers.long, dict(numbers.shrunk), _parts(numbers)
    for output in numbers.outputs:
        if output.name not in compared:
            continue
        shrunk[output.name] = compared[output.name].shrunk()
        column = numbers.long.get_column(output.name)
        values = estimator_of(output).from_ratio(output, shrunk[output.name].values, parts)
        moved = values if output.dtype is None else in_ticks(output, values)
        whole = column.to_physical().to_numpy().copy()
        whole[: len(moved)] = moved
        changed = changed.with_columns(pl.Series(output.name, whole).cast(column.dtype))
    return replace(numbers, long=changed, before=numbers.drawn, shrunk=shrunk)


def shrunk_interval(numbers: Numbers, output: ReleasedColumn, alpha: float) -> tuple[Floats, Floats]:
    """Intervals of a shrunk column, right on average over groups (unit of the column, times in ticks)."""
    parts, estimator = _parts(numbers), estimator_of(output)
    low, high = (
        estimator.from_ratio(output, end, parts) * output.ticks for end in numbers.shrunk[output.name].interval(alpha)
    )
    values = numbers.long.get_column(output.name).to_physical().cast(pl.Float64).to_numpy()[: len(low)]
    return np.minimum(low, values), np.maximum(high, values)  # a time was rounded to a whole tick


def _parts(numbers: Numbers) -> Mapping[str, Floats]:
    """The noisy totals of groups, without the row that collects suppressed groups."""
    if numbers.noise.collected is None:
        return numbers.parts
    return {name: totals[:-1] for name, totals in numbers.parts.items()}
