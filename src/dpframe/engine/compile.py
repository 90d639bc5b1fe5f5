"""One compiler for every engine: an ask becomes rows, partials, limits and integer totals, written once in narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw

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
    partial_bits,
    partials,
    row_integer,
    sifted,
    spread,
    unit_names,
)
from dpframe.plan import Question, Total, TotalKind

__all__ = ["HIGH", "Compiled", "compiled", "counted", "split_bits"]

HIGH = "x"  # suffix of the high part of a total that is added in two parts
_ROOM = 27  # bits of a partial that 2^36 of can be added in int64


@dataclass(frozen=True)
class Compiled:
    """Lazy frames of totals.

    `main` has the group columns, and t0, t1, … for the additive totals of `question.allotments`. `apart` has, by the
    number of a total, a frame of its own: group columns and "t" for distinct values, or the distinct pairs of group and
    value where only a part of the units is read; group columns, candidate number "b" and "t" for ranks.
    """

    main: Frame
    apart: dict[int, Frame]


def split_bits(total: Total) -> int:
    """Low bits that are added apart so that no sum wraps; 0 when the whole partial is small."""
    bits = partial_bits(total)
    return 0 if bits <= _ROOM else (bits + 1) // 2


def compiled(question: Question, salt: int, *, empty: bool = False, whole: bool = True) -> Compiled:
    """The totals of an ask, with a 64-bit salt for the choice of groups; or of its table without rows, or in part."""
    totals = {i: p.total for i, p in enumerate(question.read)}
    columns = {i: Partial(m, f"q{i}", f"m{i}") for i, m in totals.items() if m.additive}
    units, groups = unit_names(question.table), group_names(question)
    live = {column.id for column in question.group_columns} | {m.column.id for m in totals.values() if m.column}
    rows = keyed(question, lower(question.step, live, empty=empty))
    if not all(total.additive for total in totals.values()):  # other frames than `main` are made of them too
        rows = backend_of(rows).shared(rows)
    if units:
        integer_rows = _integers(rows, columns)
        if (
            question.keys is None or question.keys.rows is None
        ):  # else some of these rows are still of groups not listed
            integer_rows = sifted(
                integer_rows, units, groups, question.limits, question.cells, salt, alone=not question.aggregates
            )
        weights = listed_only(question, partials(integer_rows, units, groups, list(columns.values())))
        additive, alone = list(columns.values()), not question.aggregates
        weights = enforced(
            weights, units, groups, totals.values(), additive, question.limits, question.cells, salt, alone=alone
        )
        main = _totals(weights, groups, {i: (p.units, p.total) for i, p in columns.items()})
    else:
        rows, weights = listed_only(question, rows), None
        main = _totals(_integers(rows, columns, every=True), groups, {i: (p.rows, p.total) for i, p in columns.items()})
    apart = {}
    for i, total in totals.items():
        if total.kind == TotalKind.RANKS:
            assert total.candidates is not None
            number = candidate_number(total, total.candidates, backend_of(rows))
            candidates = rows.with_columns(number.alias("b"))
            apart[i] = _ranks(candidates, weights, units, groups)
        elif total.kind == TotalKind.MODES:
            apart[i] = _ranks(among(rows, total), weights, units, groups)
        elif total.kind == TotalKind.DISTINCT:
            pairs = _distinct(question, rows, weights, total, units, groups, salt)
            apart[i] = counted(pairs, groups) if whole else pairs
    return Compiled(main, apart)


def _integers(rows: Frame, columns: dict[int, Partial], *, every: bool = False) -> Frame:
    """Rows with the integer of each additive total; where no unit limits follow, rows count as 1."""
    integers = [row_integer(p.total).alias(p.rows) for p in columns.values() if p.total.column or every]
    return rows.with_columns(*integers) if integers else rows


# Stage 4: totals


def _totals(frame: Frame, groups: Sequence[str], columns: dict[int, tuple[str, Total]]) -> Frame:
    """Integer sums per group; a wide partial is added in two halves, put together after."""
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
    sums = sums or [nw.len().alias("t")]  # the groups themselves, when every total stands apart
    return frame.group_by(*groups).agg(*sums) if groups else frame.select(*sums)


def _ranks(candidates: Frame, weights: Frame | None, units: Sequence[str], groups: Sequence[str]) -> Frame:
    """Weighted rows per group and candidate.

    The weights come from another reading of the rows, which a source with random numbers in it makes another table of.
    Whatever was read, the parts of a unit in a group must be together at most its weight. So they are parts of as many
    rows as there are in this reading, where those are more.
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
    """The distinct pairs of group and value, of those that each unit may bring."""
    assert total.column is not None
    value = total.column.id
    pairs = rows.filter(~nw.col(value).is_null()).select(*units, *groups, value).unique()
    if weights is None:
        return pairs
    pairs = pairs.join(weights.select(*units, *groups), on=[*units, *groups], how="semi")
    return distinct(pairs, units, groups, value, question.limits, salt).select(*groups, value).unique()


def counted(pairs: Frame, groups: Sequence[str]) -> Frame:
    """Pairs per group."""
    count = nw.len().cast(nw.Int64).alias("t")
    return pairs.group_by(*groups).agg(count) if groups else pairs.select(count)
