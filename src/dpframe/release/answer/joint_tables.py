"""Many tables of one release made nonnegative, or whole, together:
wherever they share columns they still agree.

Tables are arrays with an axis for each of their attributes. They share margins: the intersections
of their sets of attributes, and the intersections of these. All of these sets are the `family`,
which has no table of all attributes in it. Sets are taken in turn, the smallest first. The numbers
of a set must add up to those of all smaller sets inside it; it is enough to look at the largest of
these, its `margins`:

- no margin or one: each slice is changed by itself, so that it adds up to its margin;
- two margins S and T: for each key of the attributes that both have, the sums over the attributes
  of neither are a table of two sides, whose row sums and column sums are given. Nonnegative numbers
  with given sums always exist, and integers if the sums are integers (the matrix of such sums is
  totally unimodular); the remaining attributes then have one margin;
- three margins or more: there may be no such numbers, even if all margins agree. That is refused.

Two tables of two columns each share single columns, so a workload of pairs never meets the third
case.

Nothing here reads rows or draws noise: it is post-processing.

Source: Hoffman and Kruskal 1956, for integers; Cox 1987, doi:10.1080/01621459.1987.10478456, for
        controlled rounding.
That a set of margins need not come from a table: Vlach 1986, doi:10.1016/0166-218X(86)90044-X
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.errors import UnsupportedOperation
from dpframe.release.answer.postprocess import nearest_table, nearest_with_sums
from dpframe.release.answer.rounding import rounded

Attributes = tuple[int, ...]
Numbers = TypeVar("Numbers", Floats, Integers)
_BITS = 20  # numbers that are not whole are multiples of 2^-20


def summed(values: Numbers, part: Attributes, to: Attributes) -> Numbers:
    """The table of the attributes `to`, added up from a table of more attributes."""
    return np.asarray(values.sum(axis=tuple(axis for axis, i in enumerate(part) if i not in to)))


@dataclass(frozen=True, eq=False)
class JointTables:
    """Integers for each set of a family, in units of 2^-bits;
    they agree wherever sets share attributes.
    """

    tables: Mapping[Attributes, Integers]
    bits: int

    def integers(self, part: Attributes) -> Integers:
        """The numbers of any subset of a set of the family, summed from the smallest such set."""
        above = min(
            (one for one in self.tables if set(part) <= set(one)),
            key=lambda one: self.tables[one].size,
        )
        return summed(self.tables[above], above, part)

    def floats(self, part: Attributes) -> Floats:
        """These numbers as floats."""
        return np.ldexp(self.integers(part).astype(np.float64), -self.bits)


def family_of(
    workload: Sequence[Attributes], verb: str, titles: Callable[[Attributes], str]
) -> list[Attributes]:
    """All intersections of a workload's tables, the smallest first.

    Errors: UnsupportedOperation if a table has three margins or more

    >>> family_of([(0, 1), (1, 2)], "round", str)
    [(), (1,), (0, 1), (1, 2)]
    """
    family: set[Attributes] = {()}
    new: set[Attributes] = {tuple(sorted(table)) for table in workload}
    while new - family:
        family |= new
        new = {tuple(sorted(set(one) & set(other))) for one, other in combinations(family, 2)}
    ordered = sorted(family, key=lambda part: (len(part), part))
    for part in ordered:
        inside = margins_of(part, ordered)
        if len(inside) > 2:
            named = ", ".join(map(titles, inside))
            raise UnsupportedOperation(
                f"{verb}(): the table {titles(part)} shares {len(inside)} margins with other "
                f"tables ({named}). Numbers that fit all of them need not exist. Release pairs of "
                "columns, workload='2-way', or tables that share at most two margins each; or "
                "change one table by itself, out['a', 'b']."
            )
    return ordered


def margins_of(part: Attributes, family: Sequence[Attributes]) -> list[Attributes]:
    """The largest sets of the family inside a set, but itself."""
    return largest(one for one in family if set(one) < set(part))


def largest(parts: Iterable[Attributes]) -> list[Attributes]:
    """The sets that are no part of another, each once, in their order."""
    every = list(dict.fromkeys(parts))
    return [part for part in every if not any(set(part) < set(other) for other in every)]


def joint_nonnegative(
    family: Sequence[Attributes], estimate: Callable[[Attributes], Floats]
) -> JointTables:
    """Numbers without negative ones near the estimates, set by set: see above.

    Input:  estimate: the numbers of each set of the family
    Bound:  each set is the nearest one (least squares) that is not negative and has the margins
            that were computed before, up to the grid of 2^-20; the total is kept, or 0
    """
    tables: dict[Attributes, Integers] = {}
    for part in family:
        values = np.asarray(estimate(part), np.float64)
        if not part:
            tables[part] = np.rint(np.maximum(values, 0.0) * 2**_BITS).astype(np.int64)
        else:
            tables[part] = _fitted(
                part, values * 2.0**_BITS, margins_of(part, family), tables, positive=True
            )
    return JointTables(tables, _BITS)


def joint_whole(
    family: Sequence[Attributes], estimate: Callable[[Attributes], Floats], *, positive: bool
) -> JointTables:
    """Integers near the estimates, set by set; nonnegative if the estimates are, `positive`.

    Bound:  a set is first moved to the integer margins that were computed before, by least squares,
            and then rounded: a number becomes one of its two neighbouring integers, and sums do not
            change
    """
    tables: dict[Attributes, Integers] = {}
    for part in family:
        values = np.asarray(estimate(part), np.float64)
        if not part:
            tables[part] = np.rint(values).astype(np.int64)
            continue
        fine = {one: table << _BITS for one, table in tables.items()}
        moved = _fitted(
            part, values * 2.0**_BITS, margins_of(part, family), fine, positive=positive
        )
        tables[part] = _rounded(part, moved, margins_of(part, family))
    return JointTables(tables, 0)


def _fitted(
    part: Attributes,
    values: Floats,
    margins: list[Attributes],
    tables: Mapping[Attributes, Integers],
    *,
    positive: bool,
) -> Integers:
    """Integers near real numbers whose margins are given integers; not negative if `positive`."""
    first, second = margins[0], margins[-1]
    union = tuple(sorted({*first, *second}))
    if len(margins) == 1:
        return _in_slices(part, values, first, tables[first], positive=positive)
    both = [i for i in first if i in second]
    rows, columns = ([i for i in one if i not in both] for one in (first, second))
    grids, back = _in_blocks(summed(values, part, union), union, both, rows, columns)
    right, _ = _in_blocks(tables[first], first, both, rows)
    below, _ = _in_blocks(tables[second], second, both, columns)
    table = back(
        np.stack(
            [_with_sums(*one, positive=positive) for one in zip(grids, right, below, strict=True)]
        )
    )
    return table if union == part else _in_slices(part, values, union, table, positive=positive)


def _in_blocks(
    table: Numbers, part: Attributes, *blocks: Sequence[int]
) -> tuple[Numbers, Callable[[Integers], Integers]]:
    """A table with an axis for each block of its attributes, and the function that undoes this."""
    order = [i for block in blocks for i in block]
    turned = table.transpose([part.index(i) for i in order])
    sizes = [math.prod(table.shape[part.index(i)] for i in block) for block in blocks]
    places = [order.index(i) for i in part]
    return turned.reshape(sizes), lambda whole: whole.reshape(turned.shape).transpose(places)


def _in_slices(
    part: Attributes, values: Floats, margin: Attributes, sums: Integers, *, positive: bool
) -> Integers:
    """Integers near real numbers; each slice of one margin's key adds up to its given integer."""
    lines, back = _in_blocks(values, part, margin, [i for i in part if i not in margin])
    return back(_with_totals(lines, sums.reshape(-1), positive=positive))


def _with_totals(lines: Floats, totals: Integers, *, positive: bool) -> Integers:
    """Integers near lines of real numbers, of which each adds up to its given integer."""
    whole = np.rint(nearest_with_sums(lines, totals.astype(np.float64), positive=positive)).astype(
        np.int64
    )
    for line, short in zip(whole, totals - whole.sum(axis=1), strict=True):
        _spread(line, int(short), positive=positive)
    return whole


def _spread(line: Integers, short: int, *, positive: bool) -> None:
    """Add to the largest numbers of a line, in place, until it adds up;
    numbers stay nonnegative if `positive`.
    """
    while short:
        at = int(np.argmax(line))
        step = max(short, -int(line[at])) if positive else short
        line[at] += step
        short -= step


def _with_sums(cells: Floats, right: Integers, below: Integers, *, positive: bool) -> Integers:
    """Integers near a table of real numbers, with given sums of rows and columns."""
    rows, columns = right.astype(np.float64), below.astype(np.float64)
    if positive:
        table = nearest_table(cells, rows, columns)
    else:
        table = nearest_with_sums(cells, rows, positive=False)
        table = nearest_with_sums(table.T, columns, positive=False).T
    whole = np.rint(table).astype(np.int64)
    _settle(whole, right, below, positive=positive)
    return whole


def _settle(table: Integers, right: Integers, below: Integers, *, positive: bool) -> None:
    """Change a table of integers in place until its rows and columns have
    given sums, whose totals are equal.
    """
    rows, columns = right - table.sum(axis=1), below - table.sum(axis=0)
    while rows.any() or columns.any():
        i, j = int(np.argmax(rows)), int(np.argmax(columns))
        if rows[i] > 0 and columns[j] > 0:  # both fall short
            step = int(min(rows[i], columns[j]))
        elif rows[i] > 0:
            _even_out(table, rows, i, positive=positive)
            continue
        elif columns[j] > 0:
            _even_out(table.T, columns, j, positive=positive)
            continue
        else:  # both have too much
            i, j = int(np.argmin(rows)), int(np.argmin(columns))
            if positive and table[i, j] <= 0:
                _make_room(table, i, j, int(min(-rows[i], -columns[j])))
            step = -int(min(-rows[i], -columns[j], table[i, j] if positive else -rows[i]))
        table[i, j] += step
        rows[i] -= step
        columns[j] -= step


def _even_out(table: Integers, short: Integers, i: int, *, positive: bool) -> None:
    """Add to a row that falls short, in place, what the row with too much has
    in the column where it has most.
    """
    k = int(np.argmin(short))
    j = int(np.argmax(table[k]))
    step = int(min(short[i], -short[k], table[k, j] if positive else short[i]))
    table[k, j] -= step
    table[i, j] += step
    short[i] -= step
    short[k] += step


def _make_room(table: Integers, i: int, j: int, most: int) -> None:
    """Make a cell of a row and a column with too much larger than 0, by `most`
    if possible, with all sums kept.
    """
    other_row, other_column = int(np.argmax(table[:, j])), int(np.argmax(table[i]))
    step = int(min(most, table[other_row, j], table[i, other_column]))
    table[i, j] += step
    table[other_row, other_column] += step
    table[other_row, j] -= step
    table[i, other_column] -= step


def _rounded(part: Attributes, fine: Integers, margins: list[Attributes]) -> Integers:
    """Integers near numbers in units of 2^-20 whose margins are integers; margins do not change."""
    values, first, second = np.ldexp(fine.astype(np.float64), -_BITS), margins[0], margins[-1]
    both, rest = (
        [i for i in first if i in second],
        [i for i in part if i not in first and i not in second],
    )
    if len(margins) == 1:
        lines, back = _in_blocks(values, part, first, rest)
        return back(np.stack([rounded(line[None])[0] for line in lines]))
    rows, columns = ([i for i in one if i not in both] for one in (first, second))
    grids, back = _in_blocks(values, part, both, rows, columns, rest)
    whole = np.stack([rounded(grid.sum(axis=2)) for grid in grids])
    if rest:
        fine_lines = np.rint(np.ldexp(grids.reshape(-1, grids.shape[3]), _BITS))
        settled = _with_totals(
            fine_lines, whole.reshape(-1) << _BITS, positive=bool(fine_lines.min() >= 0)
        )
        whole = np.stack(
            [rounded(np.ldexp(line.astype(np.float64), -_BITS)[None])[0] for line in settled]
        )
    return back(whole)
