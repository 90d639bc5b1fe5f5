"""One compiler for every engine.
A question becomes rows, partials, limits and integer totals, all in narwhals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from dpframe.arrays import Integers
from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages import (
    AT_PLACE,
    BEFORE_PLACE,
    Choice,
    Partial,
    among,
    distinct,
    enforced,
    group_names,
    kept_partials,
    keyed,
    listed_only,
    lower,
    multiplied,
    partial_bits,
    partials,
    placed,
    row_integers,
    sifted,
    unit_names,
    weight_name,
    weighted_keys,
    weighted_rows,
)
from dpframe.plan import Limits, Question, Total, TotalKind

HIGH = "x"  # suffix of the high part of a total that is added in two parts
_RANKED = (TotalKind.RANKS, TotalKind.TREE, TotalKind.MODES)
_ROOM = 27  # bits of a partial: 2^36 partials of this size have a sum that fits in int64


@dataclass(frozen=True)
class Compiled:
    """Lazy frames of totals.

    `mains` has a frame for each set of limits that some totals are under, those of the question
    first. Each has the group columns, and columns t0, t1, … for the additive totals of
    `question.allotments` under these limits.

    `apart` has one frame for each total that is not additive, under the number of that total:

    - distinct values: the group columns and their number "t". Where only a part of the units is
      read, the frame holds the distinct pairs of group and value instead;
    - ranks and trees: the group columns, the number "b" of the candidate, and the number of rows
      "t".

    `parts` has the numbers whose sums are in `main`, one column for each additive total, with the
    name in `names`: a row for each unit and group; without units, for each row.
    """

    mains: tuple[Frame, ...]
    apart: dict[int, Frame]
    parts: Frame
    names: dict[int, str]

    @property
    def main(self) -> Frame:
        """The frame of a question whose totals are all under the same limits."""
        (frame,) = self.mains
        return frame


def split_bits(total: Total) -> int:
    """Number of low bits that are summed in a column of their own, so that no
    sum wraps; 0 for a small partial.
    """
    bits = partial_bits(total)
    return 0 if bits <= _ROOM else (bits + 1) // 2


def compiled(
    question: Question,
    salt: int,
    *,
    empty: bool = False,
    whole: bool = True,
    in_play: pl.DataFrame | None = None,
    weights: pl.DataFrame | None = None,
) -> Compiled:
    """Lazy frames of the totals of a question.

    Input:  salt: 64 bits, for the choice of groups; empty: whether the tables are taken without
            their rows; whole: whether the rows are those of all units, so that distinct values can
            be counted; in_play: the keys that units spread their weight over, as the engine holds
            them, in a question that is answered in rounds; weights: see `influence_weights`
    Bound:  a total is added up from the partials under its own limits, so one unit's part of it is
            what it is in a question of this total alone with these limits. Groups that are found in
            the data are those of the first frame, which holds the threshold's total under the
            limits of the question. A group in which units are under the limits of another column
            alone has no row there, and is not released: it would otherwise have a chance to pass
            the threshold that δ does not pay for
    """
    totals = {i: p.total for i, p in enumerate(question.read)}
    columns = {i: Partial(m, f"q{i}", f"m{i}") for i, m in totals.items() if m.additive}
    units, groups = unit_names(question.table), group_names(question)
    read = {column.id for total in totals.values() for column in total.columns}
    read |= {column.id for column in question.group_columns}
    rows = keyed(question, lower(question.step, read, empty=empty))
    every = question.keys is None or question.keys.rows is None
    additive = all(total.additive for total in totals.values())
    at_once = _kept_at_once(question, rows, columns, salt) if every and additive else None
    # otherwise some of these rows belong to groups that are not listed
    if units and every and at_once is None:
        rows = sifted(rows, _choice(question, _widest(_passes(question)), salt))
    if not additive:  # then more than one frame is made from the rows
        rows = backend_of(rows).shared(rows)
    limited: Mapping[Limits, Frame | None]
    if units:
        gathered = rows if additive else backend_of(rows).gathered(rows, units)
        limited = _limited(question, gathered, columns, salt, weights, at_once)
        if not additive:  # each total apart reads the weights of the units
            limited = {limits: backend_of(frame).shared(frame) for limits, frame in limited.items()}
        if question.in_rounds:
            ((limits, one),) = limited.items()
            assert one is not None
            keys_in_all, weights_of = question.unit_limits.groups, columns[0].units
            kept = weighted_keys(one, units, groups, weights_of, keys_in_all, in_play)
            limited = {limits: kept}
        frames = [frame for frame in limited.values() if frame is not None]
        mains = _mains(question, dict(zip(limited, frames, strict=True)), columns)
        parts, names = (frames or [rows])[0], {i: p.units for i, p in columns.items()}
    else:
        rows, limited = listed_only(question, rows), {question.limits: None}
        by_key = {p.total.key: p.rows for p in columns.values()}
        plain = _integers(rows, columns, every=True)
        parts = multiplied(plain, by_key, list(columns.values()), groups, weights)
        names = {i: p.rows for i, p in columns.items()}
        mains = [_totals(parts, groups, {i: (name, totals[i]) for i, name in names.items()})]
    apart = _apart(question, rows, limited, salt, whole=whole)
    return Compiled(tuple(mains), apart, parts, names)


def _apart(
    question: Question,
    rows: Frame,
    limited: Mapping[Limits, Frame | None],
    salt: int,
    *,
    whole: bool,
) -> dict[int, Frame]:
    """The frames of the totals that are no sums: ranks, trees, modes and distinct values."""
    groups = group_names(question)
    apart = {}
    for i, total in enumerate(p.total for p in question.read):
        limits = total.limits or question.limits
        if total.kind in (TotalKind.RANKS, TotalKind.TREE):
            apart[i] = _ranks(
                placed(rows, total), limited.get(limits), question, _choice(question, limits, salt)
            )
        elif total.kind == TotalKind.MODES:
            apart[i] = _ranks(
                among(rows, total), limited.get(limits), question, _choice(question, limits, salt)
            )
        elif total.kind == TotalKind.DISTINCT:
            pairs = _distinct(rows, limited[limits], total, _choice(question, limits, salt))
            apart[i] = counted(pairs, groups) if whole else pairs
    return apart


# Stages 2 and 3: partials and limits


def _limited(
    question: Question,
    rows: Frame,
    columns: dict[int, Partial],
    salt: int,
    weights: pl.DataFrame | None,
    at_once: Frame | None,
) -> dict[Limits, Frame]:
    """For each set of limits, the partials under these limits, with the
    partials of the totals that have them.

    Totals with equal limits share them, and all sets of limits share the partials without limits.
    One salt chooses the groups under all limits, so a unit keeps the groups that it would keep in a
    question with these limits alone.
    """
    totals, passes, frame = (
        [p.total for p in question.read],
        _passes_of_partials(question, rows),
        at_once,
    )
    if not passes:
        return {}
    if frame is None:
        units, groups = unit_names(question.table), group_names(question)
        frame = listed_only(
            question, partials(_integers(rows, columns), units, groups, list(columns.values()))
        )
    frame = backend_of(frame).shared(frame) if len(passes) > 1 else frame
    frames = {}
    chosen = at_once is not None
    for limits in passes:
        under = [total for total in totals if (total.limits or question.limits) == limits]
        additive = [p for p in columns.values() if (p.total.limits or question.limits) == limits]
        choice = _choice(question, limits, salt)
        frames[limits] = enforced(frame, choice, under, additive, chosen=chosen, weights=weights)
    return frames


def _kept_at_once(
    question: Question, rows: Frame, columns: dict[int, Partial], salt: int
) -> Frame | None:
    """The partials of the groups that units keep, where all totals are under one set
    of limits; see `kept_partials`.
    """
    passes = _passes(question)
    choice = _choice(question, passes[0], salt)
    sorts = choice.most is not None and backend_of(rows).keeps_by_sorting
    if not choice.units or len(passes) > 1 or not sorts:
        return None
    return kept_partials(_integers(rows, columns), choice, list(columns.values()))


def _choice(question: Question, limits: Limits, salt: int) -> Choice:
    """The groups that units keep under some limits."""
    units, groups = unit_names(question.table), group_names(question)
    return Choice(units, groups, limits, question.cells, salt, alone=not question.aggregates)


def _passes(question: Question) -> list[Limits]:
    """The different limits of a question's totals; those of the question first."""
    totals = [p.total for p in question.read]
    passes = dict.fromkeys(total.limits or question.limits for total in totals)
    return sorted(passes, key=lambda limits: limits != question.limits) or [question.limits]


def is_salted(question: Question) -> bool:
    """Whether the salt may stand in the frames: units keep some of their groups,
    or of their distinct values, by a hash.
    """
    chooses = any(_choice(question, limits, 0).most is not None for limits in _passes(question))
    return chooses or any(p.total.kind == TotalKind.DISTINCT for p in question.read)


def _passes_of_partials(question: Question, rows: Frame) -> list[Limits]:
    """The limits under which partials are read: all but those of ranks alone,
    where rows are weighed themselves.

    Where a question finds its groups, they are those of the partials under its own limits.
    """
    if not backend_of(rows).keeps_by_windows:
        return _passes(question)
    totals = [p.total for p in question.read]
    read = {total.limits or question.limits for total in totals if total.kind not in _RANKED}
    finds = question.keys is None and bool(question.by)
    read |= {question.limits} if finds or not totals else set()
    return [limits for limits in _passes(question) if limits in read]


def _widest(passes: Sequence[Limits]) -> Limits:
    """The limits among several that leave a unit the most groups."""
    return max(
        passes, key=lambda limits: math.inf if limits.max_groups is None else limits.max_groups
    )


def _mains(
    question: Question, limited: Mapping[Limits, Frame], columns: dict[int, Partial]
) -> list[Frame]:
    """For each set of limits that additive totals are under, the frame of these totals.

    Without additive totals there is one frame where it finds the groups, and none where they are
    listed.
    """
    groups = group_names(question)
    finds = bool(groups) and question.keys is None
    mains: list[Frame] = []
    for limits, frame in limited.items():
        under = {i: p for i, p in columns.items() if (p.total.limits or question.limits) == limits}
        if under or (not columns and not mains and finds):
            mains.append(_totals(frame, groups, {i: (p.units, p.total) for i, p in under.items()}))
    return mains


def influence_weights(
    question: Question, held: pl.DataFrame, weights: Mapping[int, Integers]
) -> pl.DataFrame:
    """The public table of the weights of influences, for `compiled`.

    Input:  held: the groups as the engine holds them; weights: for each total of influences, by its
            number in `question.read`, whole numbers of at most 2^30 in size, of shape (groups,
            parts)
    Output: the groups, a column for each weight, and for each total of products between groups one
            more, with the role of the group in it
    """
    name = "m{}" if unit_names(question.table) else "q{}"
    columns = [
        pl.Series(weight_name(name.format(i), part), column, dtype=pl.Int64)
        for i, table in weights.items()
        for part, column in enumerate(np.clip(table, -(2**30), 2**30).T)
    ]
    for i in weights:
        moment = question.read[i].total.moment
        if moment is not None and moment.groups:
            numbers = np.arange(held.height) % moment.groups
            roles = np.where(
                numbers == moment.place, AT_PLACE, np.where(numbers < moment.place, BEFORE_PLACE, 0)
            )
            columns.append(
                pl.Series(weight_name(name.format(i), len(moment.parts)), roles, dtype=pl.Int64)
            )
    return held.with_columns(columns) if held.width else pl.DataFrame(columns)


def _integers(rows: Frame, columns: dict[int, Partial], *, every: bool = False) -> Frame:
    """Add to the rows the integer of each additive total. With `every`, a count of
    rows gets a column of ones too.
    """
    plain = [p for p in columns.values() if p.total.moment is None]
    return row_integers(rows, {p.rows: p.total for p in plain if p.total.column or every})


# Stage 4: totals


def _totals(frame: Frame, groups: Sequence[str], columns: dict[int, tuple[str, Total]]) -> Frame:
    """Integer sums per group.
    A wide partial is summed in two halves; `totals.joined` puts the halves together.
    """
    high, sums, engine = [], [], backend_of(frame)
    for i, (name, total) in columns.items():
        value, low = nw.col(name), split_bits(total)
        if low:
            above = f"t{i}{HIGH}"
            high.append(engine.quotient(value, 2**low).alias(above))
            sums.append(nw.col(above).sum().fill_null(0))
            value = value - nw.col(above) * 2**low
        sums.append(value.sum().fill_null(0).alias(f"t{i}"))
    frame = frame.with_columns(*high) if high else frame
    # without an additive total, the frame still lists the groups
    sums = sums or [nw.len().alias("t")]
    return frame.group_by(*groups).agg(*sums) if groups else frame.select(*sums)


def _ranks(rows: Frame, weights: Frame | None, question: Question, choice: Choice) -> Frame:
    """Weighted rows per group and candidate.

    Input:  rows: all rows, with the number "b" of the candidate, -1 where there is none; weights:
            the partials of the units; None without units, or where the engine weighs the rows
            themselves
    """
    units, groups = choice.units, choice.groups
    candidates, engine = rows.select(*units, *groups, "b"), backend_of(rows)
    if not units:
        return engine.added(candidates, [*groups, "b"], {}, "t")
    if engine.keeps_by_windows:
        candidates = weighted_rows(listed_only(question, candidates), choice)
    elif weights is not None:
        names = [*units, *groups]
        candidates = candidates.join(weights.select(*names, "n", "w"), on=names, how="inner")
    parts = engine.added(candidates, [*units, *groups, "b", "n", "w"], {}, "d")
    if not (engine.reads_once or engine.keeps_by_windows):
        parts = _within_both(parts, [*units, *groups])
    return engine.added(engine.spread(parts, "e"), [*groups, "b"], {"t": "e"})


def _within_both(parts: Frame, names: Sequence[str]) -> Frame:
    """Numbers of rows "n" for an engine that may read the source once for the
    weights and once for the candidates.

    A source with random numbers in it then gives two different tables. In both cases the shares of
    one unit in one group must add up to at most its weight. So a row's share is the weight divided
    by the number of the unit's rows: the larger of the numbers in the two readings.
    """
    parts = parts.with_columns(nw.col("d").sum().over(*names).cast(nw.Int64).alias("s"))
    larger = nw.when(nw.col("s") > nw.col("n")).then(nw.col("s")).otherwise(nw.col("n"))
    return parts.with_columns(larger.alias("n"))


def _distinct(rows: Frame, weights: Frame | None, total: Total, choice: Choice) -> Frame:
    """The distinct pairs of group and value, after each unit's pairs are limited."""
    assert total.column is not None
    units, groups, value, engine = choice.units, choice.groups, total.column.id, backend_of(rows)
    pairs = engine.unique(rows.filter(~nw.col(value).is_null()).select(*units, *groups, value))
    if weights is None:
        return pairs
    pairs = pairs.join(weights.select(*units, *groups), on=[*units, *groups], how="semi")
    return engine.unique(distinct(pairs, choice, value).select(*groups, value))


def counted(pairs: Frame, groups: Sequence[str]) -> Frame:
    """Number of pairs in each group."""
    return backend_of(pairs).added(pairs, groups, {}, "t")
