"""One compiler for every engine. A question becomes rows, partials, limits and integer totals, all in narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import polars as pl

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages import (
    Partial,
    among,
    candidate_number,
    distinct,
    enforced,
    group_names,
    keyed,
    listed_only,
    lower,
    multiplied,
    partial_bits,
    partials,
    row_integer,
    sifted,
    spread,
    unit_names,
    weighted_keys,
)
from dpframe.plan import Question, Total, TotalKind

__all__ = ["HIGH", "Compiled", "compiled", "counted", "split_bits"]

HIGH = "x"  # suffix of the high part of a total that is added in two parts
_ROOM = 27  # bits of a partial: 2^36 partials of this size have a sum that fits in int64


@dataclass(frozen=True)
class Compiled:
    """Lazy frames of totals.

    `main` has the group columns, and columns t0, t1, … for the additive totals of `question.allotments`.

    `apart` has one frame for each total that is not additive, under the number of that total:

    - distinct values: the group columns and their number "t". Where only a part of the units is read, the frame holds
      the distinct pairs of group and value instead;
    - ranks and trees: the group columns, the number "b" of the candidate, and the number of rows "t".

    `parts` has the numbers whose sums are in `main`, one column for each additive total, with the name in `names`: a
    row for each unit and group; without units, for each row.
    """

    main: Frame
    apart: dict[int, Frame]
    parts: Frame
    names: dict[int, str]


def split_bits(total: Total) -> int:
    """Number of low bits that are summed in a column of their own, so that no sum wraps; 0 for a small partial."""
    bits = partial_bits(total)
    return 0 if bits <= _ROOM else (bits + 1) // 2


def compiled(
    question: Question,
    salt: int,
    *,
    empty: bool = False,
    whole: bool = True,
    in_play: pl.DataFrame | None = None,
) -> Compiled:
    """Lazy frames of the totals of a question.

    Input:  salt: 64 bits, for the choice of groups; empty: whether the tables are taken without their rows; whole:
            whether the rows are those of all units, so that distinct values can be counted; in_play: the keys that
            units spread their weight over, as the engine holds them, in a question that is answered in rounds
    """
    totals = {i: p.total for i, p in enumerate(question.read)}
    columns = {i: Partial(m, f"q{i}", f"m{i}") for i, m in totals.items() if m.additive}
    units, groups = unit_names(question.table), group_names(question)
    live = {column.id for column in question.group_columns} | {
        column.id for m in totals.values() for column in m.columns
    }
    rows = keyed(question, lower(question.step, live, empty=empty))
    alone, every = not question.aggregates, question.keys is None or question.keys.rows is None
    if units and every:  # otherwise some of these rows belong to groups that are not listed
        rows = sifted(rows, units, groups, question.limits, question.cells, salt, alone=alone)
    if not all(total.additive for total in totals.values()):  # then `main` is not the only frame made from the rows
        rows = backend_of(rows).shared(rows)
    if units:
        additive = list(columns.values())
        weights = listed_only(question, partials(_integers(rows, columns), units, groups, additive))
        weights = enforced(
            weights, units, groups, totals.values(), additive, question.limits, question.cells, salt, alone=alone
        )
        if question.in_rounds:
            (one,) = columns.values()
            weights = weighted_keys(weights, units, groups, one.units, question.unit_limits.groups("keys"), in_play)
        parts, names = weights, {i: p.units for i, p in columns.items()}
    else:
        rows, weights = listed_only(question, rows), None
        by_key = {p.total.key: p.rows for p in columns.values()}
        parts = multiplied(_integers(rows, columns, every=True), by_key, list(columns.values()))
        names = {i: p.rows for i, p in columns.items()}
    main = _totals(parts, groups, {i: (name, totals[i]) for i, name in names.items()})
    apart = {}
    for i, total in totals.items():
        if total.kind in (TotalKind.RANKS, TotalKind.TREE):
            assert total.candidates is not None
            number = candidate_number(total, total.candidates, backend_of(rows))
            candidates = rows.with_columns(number.alias("b"))
            apart[i] = _ranks(candidates, weights, units, groups)
        elif total.kind == TotalKind.MODES:
            apart[i] = _ranks(among(rows, total), weights, units, groups)
        elif total.kind == TotalKind.DISTINCT:
            pairs = _distinct(question, rows, weights, total, units, groups, salt)
            apart[i] = counted(pairs, groups) if whole else pairs
    return Compiled(main, apart, parts, names)


def _integers(rows: Frame, columns: dict[int, Partial], *, every: bool = False) -> Frame:
    """Add to the rows the integer of each additive total. With `every`, a count of rows gets a column of ones too."""
    plain = [p for p in columns.values() if p.total.moment is None]
    integers = [row_integer(p.total).alias(p.rows) for p in plain if p.total.column or every]
    return rows.with_columns(*integers) if integers else rows


# Stage 4: totals


def _totals(frame: Frame, groups: Sequence[str], columns: dict[int, tuple[str, Total]]) -> Frame:
    """Integer sums per group. A wide partial is summed in two halves; `totals.joined` puts the halves together."""
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
    sums = sums or [nw.len().alias("t")]  # without an additive total, the frame still lists the groups
    return frame.group_by(*groups).agg(*sums) if groups else frame.select(*sums)


def _ranks(candidates: Frame, weights: Frame | None, units: Sequence[str], groups: Sequence[str]) -> Frame:
    """Weighted rows per group and candidate.

    An engine may read the source once for the weights and once again for the candidates. A source with random numbers
    in it then gives two different tables. In both cases the shares of one unit in one group must add up to at most its
    weight. So a row's share is the weight divided by the number of the unit's rows: the larger of the numbers in the
    two readings.
    """
    if weights is None:
        return candidates.group_by(*groups, "b").agg(nw.len().cast(nw.Int64).alias("t"))
    per_unit = candidates.group_by(*units, *groups, "b").agg(nw.len().cast(nw.Int64).alias("d"))
    parts = per_unit.join(weights.select(*units, *groups, "n", "w"), on=[*units, *groups], how="inner")
    if not backend_of(parts).reads_once:
        parts = parts.with_columns(nw.col("d").sum().over(*units, *groups).cast(nw.Int64).alias("s"))
        parts = parts.with_columns(
            nw.when(nw.col("s") > nw.col("n")).then(nw.col("s")).otherwise(nw.col("n")).alias("n")
        )
    shares = parts.with_columns(spread(backend_of(parts), "d").alias("e"))
    return shares.group_by(*groups, "b").agg(nw.col("e").sum().alias("t"))


def _distinct(
    question: Question,
    rows: Frame,
    weights: Frame | None,
    total: Total,
    units: Sequence[str],
    groups: Sequence[str],
    salt: int,
) -> Frame:
    """The distinct pairs of group and value, after each unit's pairs are limited."""
    assert total.column is not None
    value = total.column.id
    pairs = rows.filter(~nw.col(value).is_null()).select(*units, *groups, value).unique()
    if weights is None:
        return pairs
    pairs = pairs.join(weights.select(*units, *groups), on=[*units, *groups], how="semi")
    return distinct(pairs, units, groups, value, question.limits, salt).select(*groups, value).unique()


def counted(pairs: Frame, groups: Sequence[str]) -> Frame:
    """Number of pairs in each group."""
    count = nw.len().cast(nw.Int64).alias("t")
    return pairs.group_by(*groups).agg(count) if groups else pairs.select(count)
