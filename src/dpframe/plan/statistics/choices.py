"""Quantiles, distribution functions and most frequent values: their noisy totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.plan.columns import Auto, Bounds
from dpframe.plan.grid import FEW
from dpframe.plan.keys import check_key, read_keys
from dpframe.plan.scalars import Scalar
from dpframe.plan.statistics.base import Aggregate, Formula, ReleasedColumn, time_type, typed_bounds
from dpframe.plan.totals import (
    bounds_of,
    candidates_of,
    in_ticks,
    mode_total,
    number_column,
    rank_total,
    readable_column,
    tree_total,
)
from dpframe.plan.types import TIMES
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.rank_trees import tree_is_better


@dataclass(frozen=True, repr=False)
class Quantile(Aggregate):
    """The value that a part q of the rows does not exceed:
    0 is the minimum, 1/2 the median, 1 the maximum.

    `beside` has all ranks between 0 and 1 that are asked together with this one. If a tree serves
    them better than one choice for each, they follow from one tree.
    """

    column: str = ""
    q: Fraction = Fraction(1, 2)
    bounds: Bounds | Auto | None = None
    verb: str = "quantile"
    beside: tuple[Fraction, ...] = ()

    @property
    def typed(self) -> str:
        q = f", {float(self.q):g}" if self.verb == "quantile" else ""
        return f"{self.verb}({self.column!r}{q}{typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        named = {Fraction(0): "minimum", Fraction(1, 2): "median", Fraction(1): "maximum"}
        return f"{named.get(self.q, f'quantile {float(self.q):g}')} of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, *TIMES)
        bounds = bounds_of(column, self.bounds, self.column, unit_limits)
        candidates = candidates_of(column, bounds, unit_limits)
        if self.q in self.beside and tree_is_better(self.beside, min(candidates.count, FEW)):
            total = tree_total(column, bounds, unit_limits)
        else:
            total = rank_total(column, bounds, self.q, unit_limits)
        whole = candidates.whole and (candidates.fits or time_type(column) is not None)
        return ReleasedColumn(
            name,
            Formula.QUANTILE,
            ((name, total),),
            whole,
            bounds,
            dtype=time_type(column),
            rank=self.q,
        )


@dataclass(frozen=True, repr=False)
class Cdf(Aggregate):
    """The part of a column's values that are at most a point.
    All points of one question share one measurement.
    """

    column: str = ""
    point: Scalar = 0
    bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        return f"cdf({self.column!r}, points=[{self.point}]{typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        return f"part of {self.column} up to {self.point}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if isinstance(self.bounds, Auto):
            raise InvalidBounds(
                f"cdf({self.column!r}): bounds that are chosen from the data may leave points out. "
                "Type bounds=(low, high) that hold all points, such as (0, 100)."
            )
        column = number_column(self.column, unit_limits, *TIMES)
        bounds = bounds_of(column, self.bounds, self.column, unit_limits)
        point = in_ticks(Bounds(self.point, self.point), column, self.typed).lower  # type: ignore[arg-type]
        if not bounds.lower <= point <= bounds.upper:
            raise InvalidBounds(
                f"cdf({self.column!r}): points lie between the bounds, outside of which all values "
                f"are clipped. Type points=[{self.point}] with bounds that hold them."
            )
        total = tree_total(column, bounds, unit_limits)
        return ReleasedColumn(
            name, Formula.CDF, ((name, total),), False, bounds, point=float(point)
        )


def cut_at_points(outputs: Sequence[ReleasedColumn]) -> tuple[ReleasedColumn, ...]:
    """The released columns.
    A tree from which only distribution functions follow is cut at their points.

    Input:  columns, of which some may follow from a `tree_total`
    Output: for each such tree, one over the parts between all points that are asked of it, so that
            no row is on the wrong side of a point. A point that is the upper bound, or above, has
            all rows below it and needs no cut. A tree that quantiles follow from, too, stays as it
            is, so that they share its price
    Bound:  that of `tree_total`: it holds for any blocks that divide the rows. The points are
            public
    """
    asked: dict[object, list[ReleasedColumn]] = {}
    for output in outputs:
        asked.setdefault(output.total.key, []).append(output)
    cut = {}
    for key, columns in asked.items():
        (total, bounds), points = (
            (columns[0].total, columns[0].bounds),
            [column.point for column in columns],
        )
        if total.is_tree and bounds is not None and None not in points:
            cuts = sorted({point for point in points if point is not None and point < bounds.upper})
            cut[key] = replace(total, candidates=None, cuts=tuple(cuts))
    return tuple(
        replace(output, totals=((output.totals[0][0], cut[output.total.key]),))
        if output.total.key in cut
        else output
        for output in outputs
    )


@dataclass(frozen=True, repr=False)
class Mode(Aggregate):
    """The most frequent of the listed values of a column;
    with `most`, the `most` most frequent ones, in order.
    """

    column: str = ""
    keys: tuple[Scalar | None, ...] | None = None
    most: int | None = None

    @property
    def typed(self) -> str:
        return (
            f"mode({self.column!r})"
            if self.most is None
            else f"top_k({self.column!r}, {self.most})"
        )

    @property
    def words(self) -> str:
        most = "most frequent value" if self.most is None else f"{self.most} most frequent values"
        return f"{most} of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = readable_column(self.column, unit_limits)
        check_key(column.domain.dtype, self.column, self.typed)
        keys = read_keys(self.keys, (self.column,), (column.domain,), self.typed)
        if keys is None:
            raise InvalidArgument(
                f"{self.typed}: list the values to choose from, without looking at the data: "
                f"{self.typed[:-1]}, keys=[...]). Where nobody can list them, "
                f"frame.top_k({self.column!r}, {self.most or 1}, max_groups=5, "
                "max_rows_per_group=1) finds the most frequent ones of a whole table, with a δ. "
                "Or find them first: found = "
                f"group_by({self.column!r}).keys().release(epsilon=0.1, delta=1e-6), then "
                f"{self.typed[:-1]}, keys=list(found.table[{self.column!r}]))."
            )
        (values,) = keys.levels
        if self.most is not None and self.most > len(values):
            raise InvalidArgument(f"{self.typed}: only {len(values)} values are listed.")
        total = mode_total(column, values, self.most or 1, unit_limits)
        return ReleasedColumn(name, Formula.MODE, ((name, total),), whole=False)
