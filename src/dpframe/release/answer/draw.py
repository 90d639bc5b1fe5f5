"""From raw totals to a released table: noise, thresholds and choices, then post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import Array, Booleans, Floats, Integers, PlaceCounts, WideIntegers
from dpframe.engine import Totals, polars_dtype
from dpframe.noise import fit, keep_at_least
from dpframe.plan import Allotment, Key, Question, ReleasedColumn, Total
from dpframe.release.answer.moments import coefficient_influences
from dpframe.release.answer.rounding import rounded
from dpframe.release.answer.selection import chosen, reached
from dpframe.release.estimators import (
    Influence,
    Noisy,
    NoisyColumn,
    adaptive_moments,
    end_names,
    estimator_of,
    in_ticks,
    influence_weights,
    real,
    source_of,
    tree_ends,
    variances,
)
from dpframe.release.pricing import JointNoise, Laplace, Noise, NoisePlan, TruncatedGeometric
from dpframe.theory.formulas.error import Source, fitted
from dpframe.theory.formulas.rank_trees import FittedRanks

_LARGEST = 2**61

TotalKey = tuple[object, ...]  # see `Total.key`
# of a pair: weight · count + sum, and weight · count - sum
Ends = tuple[WideIntegers, WideIntegers]


def drawn_table(
    question: Question, plan: NoisePlan, raw: Totals
) -> tuple[pl.DataFrame, dict[str, Floats]]:
    """The released long table, and noisy numbers beside it:
    totals of derived columns, ends of intervals (column unit).

    Input:  the question, its noise, its raw totals
    Bound:  each additive total is an integer, moved by at most its sensitivity, plus integer noise
            of the planned scale; or it is part of a pair (`_pair_totals`). Each rank, and each
            distance from a rank to the ends of its interval, is a choice by the planned mechanism
            at the planned rate. The nodes of a tree have noise of their level's scale
            (`fitted_tree`). Groups found in the data pass the planned threshold or rule first.
            Influences are drawn by `drawn_influences`. All else is post-processing
    """
    keys = raw.keys
    margins = [noise for noise in plan.noises if noise.total.merged]
    rest = [noise for noise in plan.noises if noise.total.collects]
    noises = {noise.total.key: noise for noise in plan.noises}
    pairs = [
        (noises[allotment.total.key], values)
        for allotment, values in question.with_followed(raw.values)
    ]
    noisy = _with_noise(
        [
            (n, totals)
            for n, totals in pairs
            if n.adds and n.tree is None and not n.total.of_influence
        ]
    )
    choices = {noise: counts for noise, counts in pairs if isinstance(counts, PlaceCounts)}
    if plan.decided_by is not None:
        exact = {noise.total.key: totals for noise, totals in pairs}
        keep = _keep(plan, noisy, exact)
        if question.other is not None:
            label = _label(question.other, keys)
            keep &= ~_is_label(label, keys)
        keys = keys.filter(pl.Series(keep))
        noisy = {key: values[keep] for key, values in noisy.items()}
        choices = {noise: counts[keep] for noise, counts in choices.items()}
        if question.other is not None:
            keys = pl.concat([keys, label])
            noisy |= _with_rest(rest, exact, ~keep, noisy)
    for noise, counts in choices.items():
        choose = chosen if noise.tree is None else fitted_tree
        noisy[noise.total.key] = choose(noise, counts)
    if plan.shape is not None and margins:
        for noise in margins:
            totals = margin_totals(source_of(noise), raw.values[0], plan.shape)
            noisy[noise.total.key] = plus(totals, _fresh_noise(noise, len(totals)))
        return _crosstab(question, plan, keys, noisy), {}
    table, parts = _columns(question, plan, keys, noisy)
    for output in question.outputs:
        if output.total.is_tree:
            parts |= tree_ends(output, noisy)
    return table, parts | _ends(choices, noisy)


def drawn_influences(
    question: Question,
    plan: NoisePlan,
    first: tuple[pl.DataFrame, dict[str, Floats]],
    raw: Totals,
    read: Callable[[tuple[pl.DataFrame, Mapping[int, Integers]]], Totals],
) -> dict[str, Floats]:
    """Noisy sums of products of influences, for the groups of a released table:
    one more reading, with public weights.

    Input:  the released table and its noisy totals; the raw totals of the first reading; read: the
            second reading
    Output: for each total of influences, one number per group (squared clips)
    Bound:  the weights follow from the released table and its noisy totals alone. A unit adds to
            each of its groups an integer in [0, 2^32], whatever the weights are; noise of the
            planned scale is added. See `dpframe.plan.influence_total`, and
            `dpframe.plan.between_totals` for products of two groups
    """
    table, _ = first
    moments = _moved(question, plan, first)
    if not moments or (question.by and not table.height):
        return {name: np.zeros(table.height) for _, _, name, _ in moments}
    held = _released_of(raw, table, question.by)
    numbers = {p.total.key: i for i, p in enumerate(question.read)}
    weights = {
        numbers[total.key]: influence_weights(o, total, influence)
        for o, influence, _, total in moments
    }
    second = read((held, weights))
    noisy = {}
    for _, _, name, total in moments:
        exact = second.values[numbers[total.key]]
        if question.by:
            exact = aligned(second.held, exact, held)
        values = plus(exact, _fresh_noise(plan.of(total), len(exact)))
        noisy[name] = real(total, {total.key: values})
    return noisy


def _moved(
    question: Question, plan: NoisePlan, first: tuple[pl.DataFrame, dict[str, Floats]]
) -> list[tuple[ReleasedColumn, Influence, str, Total]]:
    """The columns that have influences, these, and the name and total of each product."""
    table, parts = first
    columns = [o for o in question.outputs if adaptive_moments(o)]
    pairs = coefficient_influences(question.outputs, plan, table) or [
        (o, estimator_of(o).influence(NoisyColumn.of(o, plan, parts))) for o in columns
    ]
    return [
        (o, influence, name, total) for o, influence in pairs for name, total in adaptive_moments(o)
    ]


def _released_of(raw: Totals, table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The groups of a released table as the engine holds them, in its order."""
    if not by or raw.held.height == table.height:
        return raw.held
    places = raw.keys.with_row_index("place of a key").join(
        table, on=list(by), how="semi", nulls_equal=True
    )
    return raw.held[places.get_column("place of a key").sort()]


def aligned(held: pl.DataFrame, values: WideIntegers, wanted: pl.DataFrame) -> WideIntegers:
    """Numbers of groups in the wanted order; 0 for one that a second reading does not find."""
    table = held.with_columns(pl.Series("value of a key", values))
    joined = wanted.join(table, on=wanted.columns, how="left", maintain_order="left")
    return joined.get_column("value of a key").fill_null(0).to_numpy()


def fitted_tree(noise: Noise, counts: PlaceCounts) -> FittedRanks:
    """The fit of a tree of noisy counts; see `theory.formulas.rank_trees`.

    Input:  the noise of a tree; the rows at each candidate, of shape (groups, candidates)
    Bound:  each node of each measured level has fresh noise of the level's scale. The fit is
            post-processing
    """
    tree, mechanism = noise.tree, noise.added
    assert tree is not None
    noisy: list[np.ndarray] = []
    for level, (exact, part) in enumerate(
        zip(tree.levels(np.asarray(counts)), tree.parts, strict=True)
    ):
        if part:
            noises = replace(mechanism, scale=tree.scale_of(level, mechanism.scale)).draw(
                exact.size
            )
            noisy.append(plus(exact.ravel(), noises).reshape(exact.shape))
        else:
            noisy.append(np.zeros(exact.shape))
    return tree.fitted(noisy, float(noise.total.unit), mechanism.variance, counts.shape[1])


def _crosstab(
    question: Question, plan: NoisePlan, keys: pl.DataFrame, noisy: Noisy
) -> pl.DataFrame:
    """The table of a crosstab with measured margins."""
    (output,) = question.outputs
    sources = {source_of(noise): real(noise.total, noisy) for noise in plan.noises}
    return keys.with_columns(_column(output, reconciled(output, plan, sources)))


def margin_totals(source: Source, totals: WideIntegers, shape: tuple[int, int]) -> WideIntegers:
    """Exact sums of raw cells in a margin, as Python integers. Not private."""
    table = totals.astype(object).reshape(shape)
    if source == "total":
        return np.array([table.sum()], dtype=object)
    return np.asarray(table.sum(axis=1 if source == "rows" else 0))


def reconciled(output: ReleasedColumn, plan: NoisePlan, noisy: dict[Source, Floats]) -> Array:
    """The released cells, in the order of groups: weighted least squares over
    cells and margins; post-processing.

    Input:  noisy cells and margins (column unit)
    Bound:  see `theory.formulas.error.margin_estimates.estimators`; whole numbers are then rounded
            so that they still add up
    """
    assert plan.shape is not None
    cells = noisy["cells"].reshape(plan.shape)
    table = fitted(
        cells, variances(plan), {s: values for s, values in noisy.items() if s != "cells"}
    )
    return np.asarray(rounded(table) if output.whole else table).ravel()


def _columns(
    question: Question, plan: NoisePlan, keys: pl.DataFrame, noisy: Noisy
) -> tuple[pl.DataFrame, dict[str, Floats]]:
    if question.row_names != question.by:
        rows = pl.Series(np.repeat(np.arange(max(keys.height, not question.by)), question.rounds))
        places = pl.Series(
            question.row_names[-1],
            np.tile(np.arange(1, question.rounds + 1), len(rows) // question.rounds),
        )
        keys = keys[rows].with_columns(places) if question.by else places.to_frame()
    columns = [
        _column(o, estimator_of(o).value(NoisyColumn.of(o, plan), noisy)) for o in question.outputs
    ]
    parts = {name: real(m, noisy) for o in question.outputs for name, m in o.totals if o.derived}
    parts |= {
        name: real(m, noisy)
        for o in question.outputs
        for name, m in o.moments
        if not m.of_influence
    }
    return keys.hstack(columns) if question.row_names else pl.DataFrame(
        {c.name: c for c in columns}
    ), parts


def _ends(choices: Mapping[Noise, PlaceCounts], noisy: Noisy) -> dict[str, Floats]:
    """The two ends of each quantile's interval, if paid for (column unit), by `end_names`."""
    parts: dict[str, Floats] = {}
    for noise, counts in choices.items():
        total = noise.total
        if total.ci is not None and total.candidates is not None:
            ends = total.candidates.around(
                *reached(noise, counts, noisy[total.key])
            )  # one choice for all names of the total
            for name in noise.allotment.names:
                parts |= dict(zip(end_names(name), ends, strict=True))
    return parts


def _column(output: ReleasedColumn, values: Any) -> pl.Series:
    """Released numbers as a column: times as times, choices as the listed values."""
    ((_, total), *_) = output.totals
    if total.values and total.column is not None:
        dtype = polars_dtype(total.column.domain.dtype)
        return pl.Series(output.name, list(total.values), dtype=dtype, strict=False).gather(values)
    if output.dtype is not None:
        return pl.Series(output.name, in_ticks(output, values), dtype=pl.Int64).cast(
            polars_dtype(output.dtype)
        )
    return pl.Series(output.name, values, dtype=pl.Int64 if output.whole else pl.Float64)


# Noise


def _keep(plan: NoisePlan, noisy: Noisy, raw: Noisy) -> Booleans:
    """Groups found in the data that are released: by noisy units, or by the optimal rule.

    Bound: groups that are too small for `min_units=` are none, see
           `release.pricing.keys.least_number`
    """
    assert plan.decided_by is not None
    assert plan.threshold is not None
    key = plan.decided_by.total.key
    if plan.start is None:
        kept = keep_at_least(noisy[key], plan.threshold)
        return kept & keep_at_least(raw[key], plan.least + 1) if plan.least else kept
    mechanism = plan.of(plan.decided_by.total).mechanism
    assert isinstance(mechanism, TruncatedGeometric)
    return mechanism.keep(raw[key] - plan.least, plan.start)


def _with_noise(totals: Sequence[tuple[Noise, WideIntegers]]) -> dict[TotalKey, Any]:
    """Noisy totals by their key, each with its own noise or that of its pair."""
    alone = [
        (n, total)
        for n, total in totals
        if not (n.paired or n.mechanism.joined or n.mechanism.together)
    ]
    noisy = {
        noise.total.key: plus(total, _fresh_noise(noise, len(total))) for noise, total in alone
    }
    noisy |= _with_joint_noise(
        [(n.mechanism, n, total) for n, total in totals if isinstance(n.mechanism, JointNoise)]
    )
    exact = {id(noise.allotment): values for noise, values in totals}
    laws = {id(noise.allotment): noise.mechanism for noise, _ in totals}
    for noise, total in totals:
        pair, count = noise.allotment, noise.allotment.beside
        if not noise.paired or count is None:
            continue
        ends = _noisy_ends(noise, total, exact[id(count)])
        noisy |= _pair_totals(noise, ends)
        law = laws.get(id(pair.rows))
        if pair.rows is not None and law is not None and law.joined:
            missing = plus(_times(exact[id(pair.rows)], 2 ** _bits(pair)), -exact[id(count)])
            missing = plus(missing, Laplace(law.scale * 2 ** _bits(pair)).draw(len(missing)))
            noisy[pair.rows.total.key] = _nearest(
                plus(noisy[count.total.key], missing), 2 ** _bits(pair)
            )
        if pair.sum is not None and id(pair.sum) in laws and laws[id(pair.sum)].joined:
            noisy[pair.sum.total.key] = _sum_of_pair(pair, ends)
    return noisy


def _with_joint_noise(
    totals: Sequence[tuple[JointNoise, Noise, WideIntegers]],
) -> dict[TotalKey, Any]:
    """Noisy totals that share a noise in each group: see `theory.formulas.loss.joint_scale`."""
    sets: dict[str, list[tuple[JointNoise, Noise, WideIntegers]]] = {}
    for member in totals:
        sets.setdefault(member[0].first, []).append(member)
    noisy = {}
    for members in sets.values():
        (law, _, first), *_ = members
        assert len(members) == law.cells
        exact = np.stack([total.astype(object) * own.factor for own, _, total in members], axis=1)
        vectors = plus(exact, law.drawn(law.steps, law.cells, len(first)))
        for place, (own, noise, _) in enumerate(members):
            up = vectors[:, place] if own.factor > 0 else -vectors[:, place]
            noisy[noise.total.key] = fit(_nearest(up, abs(own.factor)).astype(object))
    return noisy


def _bits(pair: Allotment) -> int:
    """Number of fraction bits that the count of a pair has beyond the number of rows beside it."""
    assert pair.beside is not None
    assert pair.rows is not None
    return pair.beside.total.fraction - pair.rows.total.fraction


def _sum_of_pair(pair: Allotment, ends: Ends) -> WideIntegers:
    """A noisy S + c·V from noisy h·V + S and h·V - S:
    h + c times the first less h - c times the second, over 2h.
    """
    assert pair.sum is not None
    weight, centre = pair.weight, pair.sum.total.added_up(0, 1)
    common = math.gcd(weight + centre, weight - centre, 2 * weight)
    up, down, whole = (part // common for part in (weight + centre, weight - centre, 2 * weight))
    return _nearest(plus(_times(ends[0], up), -_times(ends[1], down)), whole)


def _fresh_noise(noise: Noise, size: int) -> WideIntegers:
    """Fresh noise for every group of a total, also for listed groups without rows."""
    return noise.added.draw(size)


def plus(totals: WideIntegers, noise: WideIntegers) -> WideIntegers:
    """The exact sum: as int64 if it surely fits, else as Python integers."""
    wide = totals.dtype == object or noise.dtype == object or _large(totals) or _large(noise)
    kind = object if wide else np.int64
    total: WideIntegers = totals.astype(kind, copy=False) + noise.astype(kind, copy=False)
    return total


def _noisy_ends(noise: Noise, total: WideIntegers, count: WideIntegers) -> Ends:
    """Weight · count + sum and weight · count - sum, each with noise; see `pair_scale`."""
    product = _times(count, noise.allotment.weight)
    up, down = (
        plus(plus(product, part), _fresh_noise(noise, len(total))) for part in (total, -total)
    )
    return up, down


def _pair_totals(noise: Noise, ends: Ends) -> dict[TotalKey, WideIntegers]:
    """A noisy sum and a noisy count from their two noisy ends."""
    (up, down), pair = ends, noise.allotment
    assert pair.beside is not None
    return {
        pair.total.key: _nearest(plus(up, -down), 2),
        pair.beside.total.key: _nearest(plus(up, down), 2 * pair.weight),
    }


def _times(values: WideIntegers, factor: int) -> WideIntegers:
    """The exact product: as int64 if it surely fits, else as Python integers."""
    wide = values.dtype == object or factor * int(np.abs(values).max(initial=0)) >= _LARGEST
    return (values.astype(object) if wide else values.astype(np.int64)) * factor


def _nearest(values: WideIntegers, divisor: int) -> WideIntegers:
    """Quotients rounded to the nearest integer, half to even, so that rounding has no bias."""
    if divisor >= _LARGEST:
        values = values.astype(object)
    whole = values // divisor
    twice = 2 * (values - whole * divisor)
    nearest: WideIntegers = whole + ((twice > divisor) | ((twice == divisor) & (whole % 2 == 1)))
    return nearest


def _large(values: WideIntegers) -> bool:
    return bool(len(values)) and max(int(values.max()), -int(values.min())) >= _LARGEST


# What is suppressed


def _label(other: Key, keys: pl.DataFrame) -> pl.DataFrame:
    """The key of the row that collects suppressed groups."""
    parts = {name: [part] for name, part in zip(keys.columns, other, strict=True)}
    return pl.DataFrame(parts, schema=keys.schema)


def _is_label(label: pl.DataFrame, keys: pl.DataFrame) -> Booleans:
    """Groups whose key is that label: they are part of its row. A null matches no group."""
    same = [pl.col(name) == pl.lit(label.get_column(name)).first() for name in keys.columns]
    return keys.select(pl.all_horizontal(same).fill_null(False)).to_series().to_numpy()


def _with_rest(
    rest: Sequence[Noise], exact: Noisy, in_rest: Booleans, noisy: Noisy
) -> dict[TotalKey, Any]:
    """Noisy totals of the released groups, then one of all others, with its own noise."""
    totals, cells = [], {}
    for noise in rest:
        key = cells[noise.total.key] = replace(noise.total, collects=False).key
        total = np.array([sum(exact[key][in_rest].tolist())], dtype=object)
        totals.append((noise, total if _large(total) else total.astype(np.int64)))
    return {
        cells[key]: np.concatenate([noisy[cells[key]], value])
        for key, value in _with_noise(totals).items()
    }
