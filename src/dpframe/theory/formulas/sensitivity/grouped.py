"""Distances by which one unit moves the totals of a grouped table:
the formulas behind every bound in dpframe.

One unit adds a vector to a grouped total, with one entry per group. The limits say that at most
`groups` entries are not zero, that each entry is at most `cell` in absolute value, and that the
absolute values add up to at most `total`. All formulas below follow from these three numbers and
from the neighbour relation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.fields import Word
from dpframe.noise import float_up, root_up


class Relation(Word):
    """The relation of two neighbouring tables: one unit joins or leaves, or its
    rows are exchanged for another's.
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


def _number(value: Fraction) -> int | float:
    """An exact rational number for display: an int if it is whole,
    otherwise a float that is not below it.
    """
    return value.numerator if value.denominator == 1 else float_up(value)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of one column of totals between neighbouring tables.

    `l0` counts the cells that change, `l1` is the sum of the absolute changes, `l2` their Euclidean
    length and `linf` the largest of them; the last three are in units of the column. The numbers
    are stored exactly. `l1`, `l2` and `linf` return an int if the number is whole, otherwise a
    float that is never below the exact value.

    >>> Sensitivity.of(l0=3, l1=4, l2_squared=8, linf=2)
    Sensitivity(l0=3, l1=4, l2=2.8284271247461903, linf=2)
    """

    l0: int
    exact_l1: Fraction
    l2_squared: Fraction
    exact_linf: Fraction

    @classmethod
    def of(
        cls, *, l0: int, l1: Fraction | int, l2_squared: Fraction | int, linf: Fraction | int
    ) -> Sensitivity:
        """Build a sensitivity from exact numbers. For l2 pass its square, which is rational."""
        return cls(l0, Fraction(l1), Fraction(l2_squared), Fraction(linf))

    @property
    def l1(self) -> int | float:
        """Sum of the changes over all cells (column unit), never below the exact value."""
        return _number(self.exact_l1)

    @property
    def linf(self) -> int | float:
        """Largest change of one cell (column unit), never below the exact value."""
        return _number(self.exact_linf)

    @property
    def l2(self) -> int | float:
        """Euclidean length of the change (column unit), never below the exact value."""
        near = root_up(self.l2_squared)
        return int(near) if near.is_integer() and Fraction(near) ** 2 == self.l2_squared else near

    def scaled(self, factor: Fraction | int) -> Sensitivity:
        """The sensitivity in another unit: l1, l2 and linf are multiplied by a factor > 0."""
        factor = Fraction(factor)
        return Sensitivity(
            self.l0, self.exact_l1 * factor, self.l2_squared * factor**2, self.exact_linf * factor
        )

    def __repr__(self) -> str:
        return f"Sensitivity(l0={self.l0}, l1={self.l1}, l2={self.l2}, linf={self.linf})"


@dataclass(frozen=True, slots=True)
class Contribution:
    """Limits of one unit in a grouped table: the number of groups, of rows in
    each group, and of rows in all.

    All three are counts, at least 1. The constructor makes them consistent: `groups` is at most
    `rows`, and `rows` is at most `groups` times `rows_per_group`.

    >>> Contribution(groups=9, rows_per_group=2, rows=4)
    Contribution(groups=4, rows_per_group=2, rows=4)
    """

    groups: int
    rows_per_group: int
    rows: int

    def __post_init__(self) -> None:
        if min(self.groups, self.rows_per_group, self.rows) < 1:
            raise InvalidArgument("Contribution limits are whole numbers of at least 1.")
        groups, per_group = min(self.groups, self.rows), min(self.rows_per_group, self.rows)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "rows_per_group", per_group)
        object.__setattr__(self, "rows", min(self.rows, groups * per_group))

    def to_json(self) -> dict[str, int]:
        """The limits by their names."""
        return {"groups": self.groups, "rows_per_group": self.rows_per_group, "rows": self.rows}


def change(
    *,
    groups: int,
    total: Fraction | int,
    cell: Fraction | int,
    swing: Fraction | int,
    relation: Relation,
    cells: int | None = None,
) -> Sensitivity:
    """Sensitivity of a vector of totals to the entries of one unit.

    Input:  groups: the largest number of entries of one unit that are not zero; cell: the largest
            absolute entry; total: the largest sum of absolute entries; swing: the largest
            difference between two units' entries in one cell; cells: how many cells the table has,
            None if this is not public. total, cell and swing are in the column's unit
    Output: Sensitivity, exact
    Bound:  under add-remove the change is one unit's vector, so l0 = min(groups, cells), linf =
            cell, l1 = min(total, l0·cell). Under replace it is the difference of two units'
            vectors, so l0 and total double, and an entry changes by at most swing. In both cases
            the sum of squares is convex, so under Σ|x| ≤ l1 and |x| ≤ linf it is largest at a
            vertex: q = ⌊l1/linf⌋ entries are linf, one is the remainder r = l1 - q·linf, and l2² =
            q·linf² + r²
    Source: Desfontaines et al. 2023, arXiv:2307.08616, for l1 and l2 of bounded contributions; the
            vertex argument for all three limits at once is ours
    Errors: none here; the limits are checked at birth

    >>> change(groups=3, total=4, cell=2, swing=2, relation="add-remove")
    Sensitivity(l0=3, l1=4, l2=2.8284271247461903, linf=2)
    """
    if relation == Relation.REPLACE:
        groups, total, largest = 2 * groups, 2 * Fraction(total), Fraction(swing)
    else:
        total, largest = Fraction(total), Fraction(cell)
    l0 = groups if cells is None else min(groups, cells)
    l1 = min(total, l0 * largest)
    if l1 == 0:
        return Sensitivity.of(l0=0, l1=0, l2_squared=0, linf=0)
    q = l1 // largest
    remainder = l1 - q * largest
    return Sensitivity.of(l0=l0, l1=l1, l2_squared=q * largest**2 + remainder**2, linf=largest)


def row_places(limits: Contribution, relation: Relation, cells: int | None = None) -> Sensitivity:
    """Sensitivity of the number of rows per group and place.
    Places divide a column's range; quantiles depend on them.

    Input:  limits of one unit (counts); cells: number of groups in the table, None when unknown
    Output: Sensitivity (rows), exact, of the rows per group and place together
    Bound:  under add-remove as in `row_counts`. Under replace one unit's rows may leave one place
            of a group and the other unit's rows may enter another place of it. The group's number
            of rows then need not change, and yet 2·rows_per_group of its rows have changed
    Source: `change`
    Errors: none here

    >>> row_counts(Contribution(groups=1, rows_per_group=3, rows=3), "replace", cells=1).l1
    3
    >>> row_places(Contribution(groups=1, rows_per_group=3, rows=3), "replace", cells=1).l1
    6
    """
    k = limits.rows_per_group
    return change(
        groups=limits.groups, total=limits.rows, cell=k, swing=2 * k, relation=relation, cells=cells
    )


def _size(lower: Fraction | int, upper: Fraction | int) -> Fraction:
    """Largest absolute value in an interval."""
    return max(abs(Fraction(lower)), abs(Fraction(upper)))


def _width(lower: Fraction | int, upper: Fraction | int) -> Fraction:
    """Width of the smallest interval that holds lower, upper and 0; a unit without rows adds 0."""
    return max(Fraction(upper), Fraction(0)) - min(Fraction(lower), Fraction(0))


def row_counts(limits: Contribution, relation: Relation, cells: int | None = None) -> Sensitivity:
    """Sensitivity of the number of rows per group.

    Input:  limits of one unit (counts); cells: number of groups in the table, None when unknown
    Output: Sensitivity (rows), exact
    Bound:  each row adds 1 to one cell; two units' counts in one cell differ by at most
            rows_per_group
    Source: `change`
    Errors: none here

    >>> row_counts(Contribution(groups=3, rows_per_group=2, rows=4), "add-remove")
    Sensitivity(l0=3, l1=4, l2=2.8284271247461903, linf=2)
    """
    k = limits.rows_per_group
    return change(
        groups=limits.groups, total=limits.rows, cell=k, swing=k, relation=relation, cells=cells
    )


def row_sums(
    limits: Contribution,
    lower: Fraction | int,
    upper: Fraction | int,
    relation: Relation,
    cells: int | None = None,
) -> Sensitivity:
    """Sensitivity of the per-group sum of a column whose rows lie in [lower, upper].

    Input:  limits of one unit (counts); lower <= upper (column unit); cells as in `row_counts`
    Output: Sensitivity (column unit), exact
    Bound:  each row adds at most max(|lower|, |upper|); a unit's sum in one cell lies between
            rows_per_group·min(lower, 0) and rows_per_group·max(upper, 0), so two units differ by at
            most the width
    Source: `change`
    Errors: none here

    >>> row_sums(Contribution(groups=3, rows_per_group=2, rows=4), -3, 10, "add-remove")
    Sensitivity(l0=3, l1=40, l2=28.284271247461902, linf=20)
    """
    k, size, width = limits.rows_per_group, _size(lower, upper), _width(lower, upper)
    return change(
        groups=limits.groups,
        total=limits.rows * size,
        cell=k * size,
        swing=k * width,
        relation=relation,
        cells=cells,
    )


def unit_counts(groups: int, relation: Relation, cells: int | None = None) -> Sensitivity:
    """Sensitivity of the number of distinct units per group, when one unit
    is in at most `groups` groups.

    >>> unit_counts(4, "add-remove")
    Sensitivity(l0=4, l1=4, l2=2, linf=1)
    """
    return change(groups=groups, total=groups, cell=1, swing=1, relation=relation, cells=cells)


def unit_sums(
    groups: int,
    lower: Fraction | int,
    upper: Fraction | int,
    relation: Relation,
    cells: int | None = None,
) -> Sensitivity:
    """Sensitivity of per-group sums of unit totals, each unit's total per
    group clamped to [lower, upper].

    Input:  groups of one unit (count); lower <= upper (column unit); cells as in `row_counts`
    Output: Sensitivity (column unit), exact
    Bound:  each of the groups moves by at most one clamped total; a unit without rows in a group
            adds 0 there
    Source: Wilson et al. 2019, arXiv:1909.01917, for the clamped total per unit; `change`
    Errors: none here

    >>> unit_sums(4, 0, 100, "add-remove")
    Sensitivity(l0=4, l1=400, l2=200, linf=100)
    """
    size, width = _size(lower, upper), _width(lower, upper)
    return change(
        groups=groups, total=groups * size, cell=size, swing=width, relation=relation, cells=cells
    )


def unit_products(
    limits: Contribution,
    lower: Fraction | int,
    upper: Fraction | int,
    relation: Relation,
    cells: int | None = None,
    total: Fraction | int | None = None,
) -> Sensitivity:
    """Sensitivity of per-group sums of one product for each unit:
    its squared sum, or its sum times its rows.

    Input:  limits of one unit (counts); lower <= 0 <= upper: the range of one unit's product in one
            group; total: the largest sum of the sizes of one unit's products over all groups, None
            where only the range is known (unit of the product); cells as in `row_counts`
    Output: Sensitivity (unit of the product), exact
    Bound:  a product is made of the partials of one unit in one group, and of nothing else. A unit
            that joins adds its
            own products and changes no other unit's. So each of its at most `groups` cells moves by
            at most max(-lower, upper), and under replace by at most upper - lower, since a unit
            without rows there has product
            0. For |S_g| <= n_g·h with Σ n_g <= K and n_g <= k, Σ S_g² <= k·h²·Σ n_g <= K·k·h²,
               which is such a total
    Source: `change`; the totals are ours
    Errors: none here

    >>> unit_products(Contribution(groups=3, rows_per_group=2, rows=4), 0, 4, "add-remove", total=8)
    Sensitivity(l0=3, l1=8, l2=5.656854249492381, linf=4)
    """
    size = _size(lower, upper)
    most = limits.groups * size if total is None else min(limits.groups * size, Fraction(total))
    swing = _width(lower, upper)
    return change(
        groups=limits.groups, total=most, cell=size, swing=swing, relation=relation, cells=cells
    )


def merged(sensitivity: Sensitivity, cells: int | None = None) -> Sensitivity:
    """Sensitivity after cells are added together (a margin, an "other" bucket).

    Input:  sensitivity of the cells; cells: the number of cells after adding
    Output: Sensitivity (same unit), exact
    Bound:  all groups of a unit may fall into one merged cell, so linf = l2 = l1. Which cells are
            merged may depend on what was released before. For example, the groups that a threshold
            suppressed may be added up: once the keys are released, the total of all other groups is
            a fixed question, and a group that only one of two neighbouring tables has counts as 0
            in the other. The two releases compose sequentially (see `key_selection.rest_scale` for
            a case in which the second release needs no budget of its own)
    Source: Dwork and Roth 2014, theorem 3.16 and appendix B, for adaptive composition; the bound is
            the triangle inequality
    Errors: none here

    >>> merged(Sensitivity.of(l0=3, l1=4, l2_squared=8, linf=2), cells=1)
    Sensitivity(l0=1, l1=4, l2=4, linf=4)
    """
    l0 = sensitivity.l0 if cells is None else min(sensitivity.l0, cells)
    l1 = sensitivity.exact_l1
    return Sensitivity.of(l0=l0, l1=l1, l2_squared=l1**2, linf=l1)


def node_limits(limits: Contribution, groups: int) -> Contribution:
    """Limits of one unit in a table whose cells are each the sum of at most
    `groups` cells of a finer table.

    Input:  limits of one unit in the finer table (counts); groups: the most cells that are added to
            one, at least 1
    Output: limits on the coarser table, for `row_counts` and `row_sums`
    Bound:  a unit has rows in at most limits.groups cells of the finer table, so in at most as many
            of the coarser one. Of these, at most min(limits.groups, groups) are in one coarser
            cell, with at most rows_per_group each; and all its rows together are at most
            limits.rows. Which finer cells are added must be public. Every bound on the coarser
            table follows from these three numbers, under either relation
    Source: ours; `merged` is the bound if all cells may be added to one
    Errors: none here

    A person with at most 3 communes, 2 rows in each and 4 in all; a district has 2 communes at
    most:

    >>> node_limits(Contribution(groups=3, rows_per_group=2, rows=4), 2)
    Contribution(groups=3, rows_per_group=4, rows=4)
    """
    return Contribution(
        limits.groups, limits.rows_per_group * min(limits.groups, groups), limits.rows
    )


def one_row_sum(lower: Fraction | int, upper: Fraction | int) -> Sensitivity:
    """Sensitivity of an ungrouped sum when neighbours exchange one row for one row (bounded DP).

    Input:  lower <= upper (column unit); every unit must have exactly one row, and its value must
            not be missing
    Output: Sensitivity (column unit), exact; with lower = upper = 1 it is the row count, which
            cannot change
    Bound:  one value in [lower, upper] replaces another, so the sum changes by at most upper -
            lower
    Source: Dwork and Roth 2014, section 2; the bound needs the condition that no value is missing
    Errors: none here

    >>> one_row_sum(5, 10)
    Sensitivity(l0=1, l1=5, l2=5, linf=5)
    >>> one_row_sum(1, 1).l1
    0
    """
    width = Fraction(upper) - Fraction(lower)
    return change(
        groups=1, total=width, cell=width, swing=width, relation=Relation.ADD_REMOVE, cells=1
    )


MOST_KEYS = 100
"""Keys that one unit keeps where nobody typed a limit. More keys cost a higher threshold, by
simulation: with Zipf words, ratings and routes 100 finds at most 7% fewer than the best of 30, 100,
300 and 1,000. Where lists are long, 30 finds half."""


def spread_weight(keys: int, one: int) -> int:
    """The weight that a unit with this many keys gives to each of them, in parts of `one`.

    Input:  keys >= 1; one: the integer that stands for the weight 1
    Output: ⌊√(one²/keys)⌋, an integer
    Bound:  keys · weight² <= one², exactly, since the root is rounded down
    Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020, arXiv:2002.09745, weighted
            Gaussian
    Errors: InvalidArgument for less than one key, or a weight below 1

    >>> spread_weight(4, 1000), spread_weight(2, 1000)
    (500, 707)
    """
    if keys < 1 or one < 1:
        raise InvalidArgument(f"keys={keys!r}, one={one!r}: both are whole numbers of at least 1.")
    return math.isqrt(one * one // keys)


def key_weights(most: int, one: int) -> Sensitivity:
    """The distance by which one unit moves the keys' weights when it joins or
    leaves, whatever its keys are.

    Input:  most: keys that one unit keeps at most; one: the integer that stands for the weight 1
    Output: l0, l1, l2, linf, in parts of `one`
    Bound:  a unit with t keys adds `spread_weight(t)` to each of them and 0 elsewhere. So l1 is the
            largest t · weight(t), the square of l2 the largest t · weight(t)² <= one², and linf the
            weight of a single key
    Source: as `spread_weight`
    Errors: as `spread_weight`

    >>> key_weights(4, 1000)
    Sensitivity(l0=4, l1=2000, l2=1000, linf=1000)
    """
    weights = [(t, spread_weight(t, one)) for t in range(1, most + 1)]
    if not weights:
        raise InvalidArgument(f"most={most!r}: a unit keeps at least 1 key.")
    lengths = {
        "l1": max(t * w for t, w in weights),
        "l2_squared": max(t * w * w for t, w in weights),
    }
    return Sensitivity.of(l0=most, linf=one, **lengths)
