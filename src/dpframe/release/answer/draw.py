"""From raw totals to a released table: noise, thresholds and choices, then post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine import Totals, polars_dtype
from dpframe.noise import keep_at_least
from dpframe.plan import Key, Question, ReleasedColumn
from dpframe.release.answer.measured_margins import margin_totals, reconciled
from dpframe.release.answer.selection import chosen, reached
from dpframe.release.estimators import Noisy, end_names, estimator_of, in_ticks, real, source_of
from dpframe.release.pricing import AddsNoise, Noise, NoisePlan, TruncatedGeometric

__all__ = ["Parts", "drawn_table", "plus"]

Parts = dict[str, NDArray[np.float64]]
_LARGEST = 2**61


def drawn_table(ask: Question, plan: NoisePlan, raw: Totals) -> tuple[pl.DataFrame, Parts]:
    """The released long table, and what is noisy beside it: totals under derived columns, ends (column unit).

    Input:  the ask, its noise, its raw totals
    Bound:  each additive total is an integer, moved by at most its sensitivity, plus integer noise of the planned
            scale, or a pair of such (`_paired`); each rank is a choice by the planned mechanism at the planned rate,
            and so is a distance between it and its ends; groups found in the data pass the planned threshold or rule
            first. What follows is post-processing
    """
    keys = raw.keys
    margins = [noise for noise in plan.noises if noise.paid.measure.merged]
    rest = [noise for noise in plan.noises if noise.paid.measure.collects]
    read = (noise for noise in plan.noises if not noise.paid.measure.merged and not noise.paid.measure.collects)
    pairs = list(zip(read, raw.values, strict=True))
    noisy = _with_noise([(noise, totals) for noise, totals in pairs if noise.adds])
    choices = {noise: counts for noise, counts in pairs if noise.paid.measure.chosen}
    if plan.decided_by is not None:
        exact = {noise.paid.measure.key: totals for noise, totals in pairs}
        kept = _kept(plan, noisy, exact)
        if ask.other is not None:
            label = _label(ask.other, keys)
            kept &= ~_is_label(label, keys)
        keys = keys.filter(pl.Series(kept))
        noisy = {key: values[kept] for key, values in noisy.items()}
        choices = {noise: counts[kept] for noise, counts in choices.items()}
        if ask.other is not None:
            keys = pl.concat([keys, label])
            noisy |= _with_rest(rest, exact, ~kept, noisy)
    noisy |= {noise.paid.measure.key: chosen(noise, counts) for noise, counts in choices.items()}
    if plan.shape is not None and margins:
        for noise in margins:
            totals = margin_totals(source_of(noise), raw.values[0], plan.shape)
            noisy[noise.paid.measure.key] = plus(totals, _drawn(noise, len(totals)))
        return _agreed(ask, plan, keys, noisy), {}
    table, parts = _columns(ask, plan, keys, noisy)
    return table, parts | _ends(choices, noisy)


def _agreed(ask: Question, plan: NoisePlan, keys: pl.DataFrame, noisy: Noisy) -> pl.DataFrame:
    """The table of a crosstab whose margins were measured too."""
    (output,) = ask.outputs
    measured = {source_of(noise): real(noise.paid.measure, noisy) for noise in plan.noises}
    return keys.with_columns(_column(output, reconciled(output, plan, measured)))


def _columns(ask: Question, plan: NoisePlan, keys: pl.DataFrame, noisy: Noisy) -> tuple[pl.DataFrame, Parts]:
    if ask.rounds > 1:
        rows = pl.Series(np.repeat(np.arange(max(keys.height, not ask.by)), ask.rounds))
        places = pl.Series(ask.row_names[-1], np.tile(np.arange(1, ask.rounds + 1), len(rows) // ask.rounds))
        keys = keys[rows].with_columns(places) if ask.by else places.to_frame()
    columns = [_column(o, estimator_of(o).value(o, noisy, plan)) for o in ask.outputs]
    parts = {name: real(m, noisy) for o in ask.outputs for name, m in o.measures if o.derived}
    return keys.with_columns(columns) if ask.row_names else pl.DataFrame({c.name: c for c in columns}), parts


def _ends(choices: Mapping[Noise, Any], noisy: Noisy) -> Parts:
    """Between what quantiles are, where that was paid for: two ends of each (column unit), by `end_names`."""
    parts: Parts = {}
    for noise, counts in choices.items():
        measure = noise.paid.measure
        if measure.ci is not None and measure.candidates is not None:
            ends = measure.candidates.around(*reached(noise, counts, noisy[measure.key]))  # once for all names
            for name in noise.paid.names:
                parts |= dict(zip(end_names(name), ends, strict=True))
    return parts


def _column(output: ReleasedColumn, values: Any) -> pl.Series:
    """Released numbers as a column, times as times, listed values as those of their column."""
    ((_, measure), *_) = output.measures
    if measure.values and measure.column is not None:
        dtype = polars_dtype(measure.column.facts.dtype)
        return pl.Series(output.name, list(measure.values), dtype=dtype, strict=False).gather(values)
    if output.dtype is not None:
        return pl.Series(output.name, in_ticks(output, values), dtype=pl.Int64).cast(polars_dtype(output.dtype))
    return pl.Series(output.name, values, dtype=pl.Int64 if output.whole else pl.Float64)


# Noise


def _kept(plan: NoisePlan, noisy: Noisy, raw: Noisy) -> NDArray[np.bool_]:
    """Which groups found in the data are released: by their noisy number of units, or by the optimal rule."""
    assert plan.decided_by is not None
    assert plan.threshold is not None
    key = plan.decided_by.measure.key
    if plan.start is None:
        return keep_at_least(noisy[key], plan.threshold)
    mechanism = plan.of(plan.decided_by.measure).mechanism
    assert isinstance(mechanism, TruncatedGeometric)
    return mechanism.keep(raw[key], plan.start)


def _with_noise(totals: Sequence[tuple[Noise, Any]]) -> dict[Any, Any]:
    """Noisy totals by their key, each with its own noise, or with that of a pair."""
    alone = [(noise, total) for noise, total in totals if not noise.paired]
    noisy = {noise.paid.measure.key: plus(total, _drawn(noise, len(total))) for noise, total in alone}
    for noise, total in totals:
        if noise.paired and noise.paid.beside is not None:
            (count,) = (other for beside, other in totals if beside.paid is noise.paid.beside)
            noisy |= _paired(noise, total, count)
    return noisy


def _drawn(noise: Noise, size: int) -> Any:
    """Fresh noise for every group of a total, listed groups without rows included."""
    assert isinstance(noise.mechanism, AddsNoise)
    return noise.mechanism.draw(size)


def plus(totals: Any, noise: Any) -> Any:
    """The exact sum: as int64 where that surely fits, as Python integers where not."""
    if totals.dtype == object or noise.dtype == object or _large(totals) or _large(noise):
        return totals.astype(object) + noise.astype(object)
    return totals.astype(np.int64) + noise


def _paired(noise: Noise, total: Any, count: Any) -> dict[Any, Any]:
    """A noisy sum and a noisy count from weight · count + sum and weight · count - sum with noise; see `pair_scale`."""
    assert noise.paid.beside is not None
    weight = noise.paid.weight
    wide = count.dtype == object or weight * int(np.abs(count).max(initial=0)) >= _LARGEST
    counted = (count.astype(object) if wide else count.astype(np.int64)) * weight
    up, down = (plus(plus(counted, part), _drawn(noise, len(total))) for part in (total, -total))
    return {
        noise.paid.measure.key: _nearest(plus(up, -down), 2),
        noise.paid.beside.measure.key: _nearest(plus(up, down), 2 * weight),
    }


def _nearest(values: Any, divisor: int) -> Any:
    """Quotients rounded to the nearest integer, half to even, so that they are right on average."""
    if divisor >= _LARGEST:
        values = values.astype(object)
    whole = values // divisor
    twice = 2 * (values - whole * divisor)
    return whole + ((twice > divisor) | ((twice == divisor) & (whole % 2 == 1)))


def _large(values: Any) -> bool:
    return bool(len(values)) and max(int(values.max()), -int(values.min())) >= _LARGEST


# What is suppressed


def _label(other: Key, keys: pl.DataFrame) -> pl.DataFrame:
    """The key of the row that collects suppressed groups."""
    parts = {name: [part] for name, part in zip(keys.columns, other, strict=True)}
    return pl.DataFrame(parts, schema=keys.schema)


def _is_label(label: pl.DataFrame, keys: pl.DataFrame) -> NDArray[np.bool_]:
    """Groups whose key is that label: they are always in its row. A null in it is no key that is found in the data."""
    same = [pl.col(name) == pl.lit(label.get_column(name)).first() for name in keys.columns]
    return keys.select(pl.all_horizontal(same).fill_null(False)).to_series().to_numpy()


def _with_rest(rest: Sequence[Noise], exact: Noisy, hidden: NDArray[np.bool_], noisy: Noisy) -> dict[Any, Any]:
    """Noisy totals of the released groups, and at the end that of all the others together, with noise of its own."""
    totals, cells = [], {}
    for noise in rest:
        key = cells[noise.paid.measure.key] = replace(noise.paid.measure, collects=False).key
        total = np.array([sum(exact[key][hidden].tolist())], dtype=object)
        totals.append((noise, total if _large(total) else total.astype(np.int64)))
    return {cells[key]: np.concatenate([noisy[cells[key]], value]) for key, value in _with_noise(totals).items()}
