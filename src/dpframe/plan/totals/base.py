"""The noisy totals of a question: how each is added up, and how far one unit moves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from dpframe.fields import Word
from dpframe.plan.columns import Bounds, Column, Limits
from dpframe.plan.grid import Candidates, Product, UnitMoment, ValueGrid
from dpframe.plan.scalars import Scalar
from dpframe.plan.types import TIMES, Kind
from dpframe.theory.formulas.sensitivity import Sensitivity


def is_whole(column: Column) -> bool:
    """Whether a column's values are whole numbers inside the engine."""
    return column.kind in (Kind.INTEGER, Kind.BOOLEAN, *TIMES)


class TotalKind(Word):
    """The way in which a total is added up: see `Total`."""

    ROWS = "rows"
    VALUES = "values"
    UNITS = "units"
    SUM = "sum"
    PRODUCT = "product"
    LOG = "log"
    KEY_WEIGHTS = "key_weights"
    UNIT_SUM = "unit_sum"
    DISTINCT = "distinct"
    RANKS = "ranks"
    MODES = "modes"
    TREE = "tree"
    INTERACTION = "interaction"
    MOMENT = "moment"


@dataclass(frozen=True)
class ComputedTerm:
    """A computed term of a row before it is added up, in words:
    a formula of `column` and `about`; a noun.
    """

    formula: str
    noun: str


_POWERS = {2: ("²", "squares"), 3: ("³", "cubes"), 4: ("⁴", "fourth powers")}


@dataclass(frozen=True)
class Factor:
    """One factor of a product: a column's value, clipped to `bounds` and
    measured from `about` (column unit).
    """

    column: Column
    bounds: Bounds
    about: Fraction

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest distance from `about`."""
        return Fraction(self.bounds.lower) - self.about, Fraction(self.bounds.upper) - self.about


def is_power(factors: Sequence[Factor]) -> bool:
    """Whether a product is a power: whether all of its factors are alike."""
    return len({(factor.column.id, factor.bounds, factor.about) for factor in factors}) == 1


def noun_of(factors: Sequence[Factor]) -> str:
    """The plural of a product: a power of one factor, such as "squares", or "products"."""
    return _POWERS[len(factors)][1] if is_power(factors) else "products"


@dataclass(frozen=True)
class Total:
    """One number for each group that noise is added to, or a tree of them, or scores
    by which a candidate is chosen.

    `kind` says how it is made, of which `column` on which `grid`; it carries `fraction` bits below
    the grid step. `sensitivity` is in units of that integer; `unit` is what one of it is worth
    (column unit; 1 for "log", which adds the natural logarithm; for "product" that of its
    `factors`, multiplied, which are all alike in a power). Only rows in which the `present` columns
    have values are added up. `limits` are those of one unit, where its column has limits of its
    own; else they are those of the question. "distinct" is the number of different values; "ranks"
    chooses the candidate that has a `rank` part of the rows below it, and its sensitivity is that
    of the rows per group; with `ci` also how far from it the quantile may be, at that confidence.
    "tree" is the number of rows in each block of a tree over the candidates, or over the parts that
    the `cuts` divide all values into; its sensitivity is that of one level. "modes" chooses the
    most frequent of the listed `values`, or the first of them, in as many `rounds`.
    """

    kind: TotalKind
    column: Column | None
    grid: ValueGrid
    fraction: int
    sensitivity: Sensitivity
    candidates: Candidates | None = None
    # of a tree without candidates, whose leaves are the values between these points
    cuts: tuple[float, ...] = ()
    rank: Fraction | None = None
    ci: float | None = None
    values: tuple[Scalar | None, ...] = ()
    rounds: int = 1
    # the margin of a crosstab whose cells it adds up
    merged: Literal["", "rows", "columns", "total"] = ""
    collects: bool = False  # it adds up the suppressed groups
    finds: bool = False  # it decides which groups are released, and is not released itself
    among: tuple[str, ...] = ()  # the columns of the interaction, in a release of many marginals
    moment: UnitMoment | None = None  # how products of partials are made, for a second moment
    factors: tuple[Factor, ...] = ()  # what a product is of
    # other columns whose value must not be missing in a row that is added up
    present: tuple[Column, ...] = ()
    limits: Limits | None = None  # its own limits on one unit; None for those of the question
    # the sum of a mean and the count that it follows from: `total_of_pair`
    follows: tuple[Total, Total] | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns whose values are read for it."""
        own = () if self.column is None else (self.column,)
        return (*own, *(factor.column for factor in self.factors), *self.present)

    @property
    def about(self) -> Fraction:
        """The place from which the values of a product's first column are
        measured (column unit); else 0.
        """
        return self.factors[0].about if self.factors else Fraction(0)

    @property
    def is_exact(self) -> bool:
        """Whether values inside the bounds are added as they are:
        whole numbers that are on the grid.
        """
        return self.column is not None and is_whole(self.column) and self.grid.step <= 1

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, or of values that are not missing."""
        return self.kind in (TotalKind.ROWS, TotalKind.VALUES)

    @property
    def additive(self) -> bool:
        """Whether it is a sum over units. One pass over the rows adds up all of these totals."""
        return self.kind not in (
            TotalKind.DISTINCT,
            TotalKind.RANKS,
            TotalKind.MODES,
            TotalKind.TREE,
        )

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree of rows over candidates, see `theory.formulas.rank_trees`."""
        return self.kind == TotalKind.TREE

    @property
    def group_square(self) -> Fraction:
        """The largest sum of squared changes in one group; a tree's is that of one level.

        In a tree one unit's rows may leave a block of at most linf rows, and another's enter one.
        """
        return self.sensitivity.exact_linf**2 * (2 if self.is_tree else 1)

    @property
    def of_units(self) -> bool:
        """Whether each unit brings one number to a group, however many rows it has there."""
        return self.kind in (TotalKind.UNITS, TotalKind.UNIT_SUM, TotalKind.KEY_WEIGHTS)

    @property
    def of_different_values(self) -> bool:
        """Whether it is a number of different values."""
        return self.kind == TotalKind.DISTINCT

    @property
    def sums_rows(self) -> bool:
        """Whether the integers of a unit's rows in a group are added up:
        not for plain counts, and not for products.
        """
        single = (
            TotalKind.ROWS,
            TotalKind.UNITS,
            TotalKind.KEY_WEIGHTS,
            TotalKind.INTERACTION,
            TotalKind.MOMENT,
        )
        return self.additive and self.kind not in single

    @property
    def weighs_rows(self) -> bool:
        """Whether the limits on rows weigh each row, so that it needs the
        weight of a unit's rows in a group.
        """
        return not self.of_units and not self.of_different_values and self.moment is None

    @property
    def of_influence(self) -> bool:
        """Whether it adds up products of influences, which are read
        after the noisy totals are drawn.
        """
        return self.moment is not None and self.moment.product in (
            Product.INFLUENCE,
            Product.BETWEEN,
        )

    @property
    def between_groups(self) -> bool:
        """Whether it adds up products of the influences of one unit on two groups."""
        return self.moment is not None and self.moment.product is Product.BETWEEN

    @property
    def one_signed(self) -> bool:
        """Whether no unit adds a negative number to any group, or none a positive one.

        A count adds at least 0. Values that are clipped to bounds of one sign are made integers of
        that sign, and the weights that enforce the limits are not negative. A missing value adds 0.
        """
        if self.kind in (TotalKind.ROWS, TotalKind.VALUES, TotalKind.UNITS):
            return True
        # which rounds twice
        sums = self.kind in (TotalKind.SUM, TotalKind.UNIT_SUM) and not self.follows
        return sums and not self.grid.lower < 0 < self.grid.upper

    @property
    def multiplies(self) -> bool:
        """Whether it adds up products of different values, and not powers of one."""
        return bool(self.factors) and not is_power(self.factors)

    @property
    def computed(self) -> ComputedTerm | None:
        """The computed term of a row before it is added up;
        None where the value itself is added.
        """
        if self.kind is TotalKind.LOG:
            return ComputedTerm("log({column})", "logarithms")
        if not self.factors:
            return None
        sign = (
            "({column} - {about})" + _POWERS[len(self.factors)][0]
            if not self.multiplies
            else "{column}"
        )
        return ComputedTerm(sign, noun_of(self.factors))

    @property
    def chosen(self) -> bool:
        """Whether it is a choice among candidates, and not a number that noise is added to."""
        return self.kind in (TotalKind.RANKS, TotalKind.MODES)

    @property
    def choices(self) -> int:
        """Number of choices in each group, one after the other, for equal parts of the price."""
        return self.rounds if self.ci is None else 2

    @property
    def between(self) -> bool:
        """Whether it is a quantile strictly between the minimum and the maximum.
        Only these can have an interval.
        """
        return self.rank is not None and 0 < self.rank < 1

    def surely(self, alpha: float) -> bool:
        """Whether the release paid for an interval that misses with at most this probability."""
        return self.ci is not None and alpha >= (1 - self.ci) * (1 - 1e-9)  # 1 - 0.95 is above 0.05

    @property
    def width(self) -> int | None:
        """Number of candidates to choose from; None for a number."""
        if self.candidates is not None or self.is_tree:
            return len(self.cuts) + 1 if self.candidates is None else self.candidates.count
        return len(self.values) or None

    @property
    def nullable(self) -> bool:
        """Whether values of its column may be missing."""
        return self.column is not None and self.column.domain.nullable

    def reads(self, column: Column) -> bool:
        """Whether it adds up the values of a column."""
        return self.column is not None and self.column.id == column.id

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Two totals with the same key are the same total, and are paid for once."""
        column = self.column.id if self.column else None
        others = tuple((factor.column.id, factor.bounds, factor.about) for factor in self.factors)
        part = (
            self.merged,
            self.collects,
            self.finds,
            self.among,
            self.moment,
            others,
            frozenset(c.id for c in self.present),
            self.limits,
            self.follows and tuple(total.key for total in self.follows),
        )
        return (self.kind, column, self.grid, self.choice, part)

    def added_up(self, sums: Any, counts: Any) -> Any:
        """The sum that `follows` from sums S and counts V:
        S + c · V, with c the middle of the bounds in units of S.
        """
        assert self.follows is not None
        total, count = self.follows
        return (
            sums
            + (int(total.grid.centre / total.grid.step) << (total.fraction - count.fraction))
            * counts
        )

    @property
    def choice(self) -> tuple[object, ...]:
        """The candidates, and which of them is chosen; empty for a number."""
        return (self.candidates, self.cuts, self.rank, self.ci, self.values, self.rounds)

    @property
    def per_one(self) -> int:
        """Number of units of the integer that make 1, for whole numbers."""
        return max(1, self.unit.denominator)

    @property
    def unit(self) -> Fraction:
        """The value of one unit of the integer (column unit)."""
        return self.grid.step / Fraction(2**self.fraction)
