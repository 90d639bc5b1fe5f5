"""Estimates of the rows and values that limits and bounds of dp.Auto leave out,
from the histograms it paid for.

The noisy histogram of sizes counts units by their number of rows. `draw_curves` draws curves that
fit it. Each curve is one case: it says how many units have how many rows. A limit of K rows leaves
n - K rows out of each unit with n > K rows. The interval rests on this model of curves. How often
it holds on real panels is measured in `benchmarks/left_out.py`.

One case is in no interval: a few units with far more rows than all others. What hides one unit
hides its rows. An interval that held them in 95 of 100 tables would tell that they are there, or be
as wide without them. So each line says how many units may be hidden in this way: see `_hidden`.

Within a case, three facts need no model:

- Let a unit have n rows under a limit that keeps k(n) of them, with values of mean v. It brings
  v·k(n) to the released sum S, and v·(n - k(n)) is left out. With v in [L, U] and Σ v·k = S, what
  is left out is largest where the units with the most rows have the largest values, as far as S
  allows (a fractional knapsack: Dantzig 1957), and smallest where the units with the fewest rows
  have them. A count of one group is a sum of values 0 and 1: in the group or not.
- Between two nodes of the histogram a unit counts at both, by how near it is. n - min(n, K) is
  convex, so the sum over nodes is at least the sum over units. For the lower end it is replaced by
  two functions below it that are linear between nodes.
- Values beyond chosen bounds are seen in the noisy histogram of values, in which each unit counts
  once. Each unit has from 1 to K rows that count.

Bound:  none is needed: all of it follows from noisy histograms and released numbers
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.engine import NODES
from dpframe.fields import FieldDict
from dpframe.plan import Formula, Limits, Question, ReleasedColumn, Total, TotalKind
from dpframe.release.answer import floats_of, is_scaled, left_out_names
from dpframe.release.auto import MODEL, Seen, SizePosterior, draw_curves, laplace_below
from dpframe.release.estimators import BinnedValues
from dpframe.release.pricing import NoisePlan

_NODES = NODES.astype(np.float64)
_CASES = 256
# Of the cases: lower end, estimate, upper end. A law of sizes is a guess, so the ends are further
# out than 2.5%. With 1.5% on either side, intervals of one of six panels held in 92% of 400
# releases.
_TAILS = (0.005, 0.5, 0.99)
_SURE = 0.02  # how often a released number may be further from the number without noise
_GUESSED = 0.05  # relative error of the number of rows that count, as a case predicts it
_GRID = 200  # of released numbers, where there are more groups
_HALF = 0.5  # probability that there are units after the end of a curve
_STEEPEST = 2.8  # fall of a curve from one node to the next, in its logarithm: seven levels of 0.4
_SUMMED = (TotalKind.ROWS, TotalKind.VALUES, TotalKind.SUM)
Ends = tuple[Floats, Floats, Floats]  # estimate, lower end, upper end


def left_out(
    question: Question,
    plan: NoisePlan,
    seen: Seen,
    long: pl.DataFrame,
    parts: Mapping[str, Floats],
    factor: float,
) -> tuple[dict[str, Floats], list[FieldDict]]:
    """The part of each released count and sum that limits and bounds of `dp.Auto` leave out.

    Input:  the question with its limits and bounds; its noise; the histograms; the released table,
            and the noisy totals of derived columns; the factor by which counts and sums were scaled
    Output: two things. First, for each row of the table the estimate and the ends of a 95%
            interval, named by `left_out_names` (column unit). If counts were scaled up by a factor,
            the estimate is about what the scaled number still lacks, and may be negative. Second, a
            line for each column about all groups together, as JSON; its `estimate` is None where
            nothing is known. There is no error. `hidden` is how many units with far more rows or
            far larger values than all others may be in none of the intervals
    """
    columns, lines = dict[str, Floats](), list[FieldDict]()
    units = {name: _Units.read(*histogram) for name, histogram in seen.sizes.items()}
    counted = _counted(question, plan, long, parts, factor)
    if "rows" in units and counted is not None:
        units["rows"] = units["rows"].with_total(question.stated_limits, *counted)
    for output in question.outputs:
        if output.formula not in (Formula.COUNT, Formula.SUM):
            continue
        # limits that were typed for this column alone
        if any(total.limits is not None for _, total in output.totals):
            lines.append({"column": output.name, "estimate": None})
            continue
        numbers = long.get_column(output.name).to_physical().cast(pl.Float64).to_numpy()
        times = factor if is_scaled(output) else 1.0
        part = _LeftOutPart(question, output, numbers / times, _error(plan, output), times)
        ends, whole = _together(
            part, part.of_limits(units, seen.values), part.of_bounds(seen.values, units)
        )
        columns |= dict(zip(left_out_names(output.name), ends, strict=True))
        lines.append({"column": output.name, **_line(part, whole, seen)})
    return columns, lines


def _counted(
    question: Question,
    plan: NoisePlan,
    long: pl.DataFrame,
    parts: Mapping[str, Floats],
    factor: float,
) -> tuple[float, float] | None:
    """The released number of rows that count, in all groups together,
    and the deviation of its noise.

    None where no count of rows was released, where groups were suppressed, or where rows are not
    limited in all alone.
    """
    limits = question.stated_limits
    if question.private_keys or limits.max_rows is None:
        return None
    if limits.max_rows_per_group is not None or (limits.max_groups or math.inf) < (
        question.cells or 1
    ):
        return None
    for output in question.outputs:
        for name, total in output.totals:
            if total.kind is TotalKind.ROWS and total.limits is None:
                rows = parts.get(name)
                rows = floats_of(long, name) / factor if rows is None else rows
                return float(rows.sum()), plan.of(total).deviation_of_sum(len(rows))
    return None


def _error(plan: NoisePlan, output: ReleasedColumn) -> float:
    """Largest move of a number by its noise, in all but 2 of 100 cases (column unit)."""
    noise = plan.of(output.total)
    return 0.0 if noise.exact else noise.error(_SURE)


def _line(part: _LeftOutPart, whole: Ends, seen: Seen) -> FieldDict:
    """A column's line about all groups together: what is left out, and which
    part of the number without limits.
    """
    estimate, lower, upper = (float(end[0]) for end in whole)
    if math.isnan(estimate):
        return {"estimate": None}
    line: FieldDict = {"estimate": estimate, "lower": lower, "upper": upper}
    kept = float(part.numbers.sum()) * part.factor
    if part.ends[0] >= 0 and kept + estimate > 0:
        line["parts"] = [
            min(max(x / max(kept + x, 1e-9), -1.0), 1.0) for x in (estimate, lower, upper)
        ]
    return {
        **line,
        "limits": bool(seen.sizes),
        "bounds": part.column in seen.values,
        "hidden": _hidden(part, seen),
    }


def _hidden(part: _LeftOutPart, seen: Seen) -> int:
    """Most units with far more rows, or far larger values, than all others that noise may hide.

    A curve comes again after a gap where a count is high enough (`MODEL.back_scales`). Units of one
    size may be at two nodes, and noise may make each count smaller. Values far away are seen where
    one bin is high enough.
    """
    least = [
        2 * (max(MODEL.back_scales * scale, MODEL.back_units) + MODEL.hidden_scales * scale)
        for _, scale in seen.sizes.values()
    ]
    binned = seen.values.get(part.column) if part.column is not None else None
    return math.ceil(
        max(
            [
                *least,
                *(
                    []
                    if binned is None
                    else [(MODEL.clear_bin + MODEL.hidden_scales) * binned.scale]
                ),
            ],
            default=0.0,
        )
    )


def _together(
    part: _LeftOutPart, limits: tuple[Ends, Ends], bounds: tuple[Ends, Ends]
) -> tuple[Ends, Ends]:
    """Both parts added, less what scaling has put back: for each group, and for all together."""
    back = part.factor - 1

    def added(place: int, number: Floats, error: float) -> Ends:
        estimate, lower, upper = (a + b for a, b in zip(limits[place], bounds[place], strict=True))
        return (
            estimate - back * number,
            lower - back * (number + error),
            upper - back * (number - error),
        )

    sums = part.numbers.sum(keepdims=True)
    return added(0, part.numbers, part.error), added(1, sums, part.error * len(part.numbers) ** 0.5)


@dataclass(frozen=True)
class _Units(SizePosterior):
    """Cases of units by size, that also differ by what noise leaves open at each node."""

    @classmethod
    def read(cls, counts: Floats, scale: float) -> _Units:
        """Cases that fit a noisy histogram, whose Laplace noise has this scale (units)."""
        curves = draw_curves(counts, scale, _CASES, again=MODEL.curve_again)
        odds = np.clip(curves.sum(axis=1) / (MODEL.sure_units * max(scale, 1e-9)), 1e-3, 1.0) ** 2
        spread = curves + (MODEL.curve_rough * curves) ** 2
        spread = spread * 2 * scale**2 / np.maximum(spread + 2 * scale**2, 1e-300)
        draw = np.random.default_rng(1)  # not noise: the cases follow from the counts
        masses = np.maximum(curves + np.sqrt(spread) * draw.standard_normal(curves.shape), 0.0)
        masses[:, 1:] += _after_the_end(curves, counts, max(scale, 1e-9), draw)
        return cls(masses, odds / odds.sum())

    def with_total(self, limits: Limits, rows: float, deviation: float) -> _Units:
        """The cases, more likely where they predict the released number of rows that
        count; as `RemainingRows.factor`.

        Input:  limits: on rows in all; rows: as released; deviation: that of its noise (rows)
        """
        predicted = self.masses @ np.minimum(_NODES, limits.max_rows or math.inf)
        spread = np.hypot(deviation, _GUESSED * predicted) + 1e-9
        likely = -(((rows - predicted) / spread) ** 2) / 2 - np.log(spread)
        odds = self.odds * np.maximum(np.exp(likely - likely.max()), 1e-12)
        return replace(self, odds=odds / odds.sum())

    def at(self, samples: Floats, tail: float) -> Floats:
        """A quantile over cases of samples (cases by any number of columns)."""
        order = np.argsort(samples, axis=0, kind="stable")
        cumulative = np.cumsum(self.odds[order], axis=0)
        places = np.minimum((cumulative < tail).sum(axis=0), len(samples) - 1)
        return np.asarray(
            np.take_along_axis(samples, order, axis=0)[places, np.arange(samples.shape[1])]
        )


def _after_the_end(
    curves: Floats, counts: Floats, scale: float, draw: np.random.Generator
) -> Floats:
    """Units at the node after a curve's last one, in each case:
    fewer than a curve's steepest fall leaves there.

    A curve falls by at most e^2.8 from one node to the next. If it seems to end, up to that part of
    its last node may be at the next one. In half of the cases there are some, whose number is drawn
    by the likelihood of the noisy count. (Of 1,228 baseball players 608 were in three decades and
    23 in four. Noise of scale 10 makes that look like none.)
    """
    most = np.where(curves[:, 1:] == 0, curves[:, :-1] * math.exp(-_STEEPEST), 0.0)
    below, above = (laplace_below(x - counts[1:], scale) for x in (np.zeros_like(most), most))
    at = np.clip(below + (above - below) * draw.random(most.shape), 1e-12, 1 - 1e-12)
    noise = np.where(at < 0.5, np.log(2 * at), -np.log(2 * (1 - at)))
    return np.where(
        draw.random(most.shape) < _HALF, np.clip(counts[1:] + scale * noise, 0.0, most), 0.0
    )


@dataclass(frozen=True)
class _Kept:
    """Rows of a unit (or groups, where units are counted) that limits keep, at
    each node: at most, and at least.
    """

    most: Floats
    least: Floats

    @classmethod
    def of_rows(cls, limits: Limits, cells: float) -> _Kept:
        """Rows that limits keep of a unit with n rows.

        Bound:  with limits on groups or on rows in each, it depends on how the rows are spread. At
                most all limits together leave n rows; at least as many are kept as of one group, or
                of n groups
        """
        rows, groups, each = (
            math.inf if x is None else x
            for x in (limits.max_rows, limits.max_groups, limits.max_rows_per_group)
        )
        groups = math.inf if groups >= cells else groups
        most = np.minimum(
            _NODES, min(rows, groups * each if math.isfinite(groups * each) else math.inf)
        )
        return cls(most, np.minimum(_NODES, min(rows, groups, each)))

    def lower(self, masses: Floats) -> Floats:
        """Rows that are left out in each case, at least:
        the larger of two sums over functions that are below.
        """
        limit, later = float(self.most.max()), _NODES - self.most
        # the last node up to the limit
        last = int(np.searchsorted(_NODES, limit, side="right")) - 1
        tilted = np.where(np.arange(len(_NODES)) >= last, _NODES - limit, 0.0)
        if limit > _NODES[last]:
            later[last + 1 : last + 2] = 0.0
        return np.maximum(np.maximum(masses @ tilted, masses @ later), 0.0)


@dataclass(frozen=True)
class _LeftOutPart:
    """A released count or sum before it was scaled, with what is to be known of its rows."""

    question: Question
    output: ReleasedColumn
    numbers: Floats
    error: float
    factor: float

    @property
    def total(self) -> Total:
        """The noisy total that it is."""
        return self.output.total

    @property
    def column(self) -> str | None:
        """The identifier of the column that is summed."""
        return None if self.total.column is None else self.total.column.id

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The bounds of what one row adds to all groups together."""
        total = self.total
        if total.kind is not TotalKind.SUM:
            return (1.0, 1.0) if total.kind is not TotalKind.VALUES else (0.0, 1.0)
        low, high = self._clipped
        missing = total.nullable
        return (min(low, 0.0), max(high, 0.0)) if missing else (low, high)

    def nothing(self, value: float = 0.0) -> tuple[Ends, Ends]:
        """One number for each group and for all together."""
        each, whole = np.full(len(self.numbers), value), np.full(1, value)
        return (each, each, each), (whole, whole, whole)

    # Limits

    def of_limits(
        self, units: Mapping[str, _Units], values: Mapping[str, BinnedValues]
    ) -> tuple[Ends, Ends]:
        """Part that limits leave out; NaN where no histogram says it.

        Where `dp.Auto` chose the bounds of a sum alone, what typed limits leave out is no part of
        the answer.
        """
        cells = math.inf if self.question.cells is None else float(self.question.cells)
        if self.question.table.declared is not None or self.question.table.single:
            return self.nothing()  # nothing is enforced, or there is one row
        if self.total.kind is TotalKind.UNITS:
            groups = float(self.question.limits.max_groups or cells)
            if groups >= cells:
                return self.nothing()
            if "groups" in units:
                return self._beyond(units["groups"], _Kept(*[np.minimum(_NODES, groups)] * 2))
        if self.total.kind in _SUMMED and "rows" in units:
            return self._beyond(units["rows"], _Kept.of_rows(self.question.stated_limits, cells))
        bounds_alone = (
            self.question.chosen is None
            and self.total.kind is TotalKind.SUM
            and self.column in values
        )
        return self.nothing(0.0 if bounds_alone else math.nan)

    def _beyond(self, units: _Units, kept: _Kept) -> tuple[Ends, Ends]:
        """Part left out of units beyond the limits, for each group and for all together."""
        low, high = self.ends
        grouped = bool(self.question.by)
        sums = self.numbers.sum(keepdims=True)
        spread = self.error * len(self.numbers) ** 0.5
        whole = _knapsack(units, kept, sums, spread, low, high)
        if not grouped:
            return whole, whole
        return _knapsack(
            units, kept, self.numbers, self.error, min(low, 0.0), max(high, 0.0)
        ), whole

    # Bounds

    def of_bounds(
        self, values: Mapping[str, BinnedValues], units: Mapping[str, _Units]
    ) -> tuple[Ends, Ends]:
        """Part that chosen bounds leave out of the rows that count."""
        binned = None if self.column is None else values.get(self.column)
        if self.total.kind is not TotalKind.SUM or binned is None:
            return self.nothing()
        low, high = self._clipped
        above = binned.parts @ np.maximum(binned.middles - high, 0.0) * binned.units
        below = binned.parts @ np.maximum(low - binned.middles, 0.0) * binned.units
        least, likely, most = self._rows_each(units)
        hidden = MODEL.hidden_scales * binned.scale  # units at twice the bound, or at 0
        up, down = np.quantile(above, _TAILS), np.quantile(below, _TAILS)
        estimate = likely * (up[1] - down[1])
        lower = least * up[0] - most * (down[2] + hidden * abs(low))
        upper = most * (up[2] + hidden * abs(high)) - least * down[0]
        whole = (
            np.array([estimate]),
            np.array([min(lower, estimate)]),
            np.array([max(upper, estimate)]),
        )
        if not self.question.by:
            return whole, whole
        sizes = np.abs(self.numbers)
        shares = sizes / max(float(sizes.sum()), 1e-300)
        each = (
            shares * estimate,
            np.full(len(shares), min(lower, 0.0)),
            np.full(len(shares), max(upper, 0.0)),
        )
        return each, whole

    @property
    def _clipped(self) -> tuple[float, float]:
        low, high = map(float, self.total.grid.ends)
        return low, high

    def _rows_each(self, units: Mapping[str, _Units]) -> tuple[float, float, float]:
        """Rows of a unit that count: at least, on average, at most."""
        declared = self.question.table.declared
        if declared is not None:
            # each row has its part of a unit's weight
            return float(declared), float(declared), float(declared)
        most = float(self.question.unit_limits.contribution.rows)
        if "rows" not in units:
            return 1.0, math.sqrt(most), most
        cases = units["rows"].masses
        mean = np.median((cases @ np.minimum(_NODES, most)) / np.maximum(cases.sum(axis=1), 1.0))
        return 1.0, float(np.clip(mean, 1.0, most)), most


def _knapsack(
    units: _Units, kept: _Kept, numbers: Floats, error: float, low: float, high: float
) -> Ends:
    """Part left out of each of some sums, if the mean of each unit's
    values is between `low` and `high`.

    Input:  numbers: released sums; error: of each (column unit)
    Output: estimate, lower and upper end of each (column unit)
    """
    if len(numbers) > _GRID:
        grid = np.quantile(numbers, np.linspace(0, 1, _GRID))
        estimate, lower, upper = _knapsack(units, kept, grid, error, low, high)
        above = np.minimum(np.searchsorted(grid, numbers), _GRID - 1)
        below = np.maximum(np.searchsorted(grid, numbers, side="right") - 1, 0)
        return np.interp(numbers, grid, estimate), lower[below], upper[above]
    masses = units.masses
    lost = masses @ (_NODES - kept.least)
    least, counted = kept.lower(masses), np.maximum(masses @ ((kept.most + kept.least) / 2), 1e-9)
    middle = ((least if kept.most is kept.least else masses @ (_NODES - kept.most)) + lost) / 2
    if low == high:
        samples = [low * x[:, None] + np.zeros(len(numbers)) for x in (least, middle, lost)]
    else:
        few = _filled(masses, kept.most, numbers - error, (low, high), first=1)
        many = _filled(masses, kept.least, numbers + error, (low, high), first=-1)
        scale = least / np.maximum(masses @ (_NODES - kept.most), 1e-9)
        mean = np.clip(numbers / counted[:, None], low, high)
        samples = [np.where(few > 0, few * scale[:, None], few), mean * middle[:, None], many]
    lower, estimate, upper = (units.at(x, tail) for x, tail in zip(samples, _TAILS, strict=True))
    return estimate, np.minimum(lower, estimate), np.maximum(upper, estimate)


def _filled(
    masses: Floats, kept: Floats, numbers: Floats, ends: tuple[float, float], *, first: int
) -> Floats:
    """The smallest (first = 1) or largest (first = -1) sum that may be left out beside
    each number: cases by numbers.

    Values are at the upper end for units with the fewest (or the most) rows, as far as the number
    goes, and at the lower end for the others.
    """
    low, high = ends
    nothing = np.zeros((len(masses), 1))
    counted, lost = (
        np.hstack([nothing, np.cumsum((masses * rows)[:, ::first], axis=1)])
        for rows in (kept, _NODES - kept)
    )
    most = counted[:, -1:]
    filled = np.clip((numbers - low * most) / (high - low), 0.0, most)
    beside = np.array([np.interp(*case) for case in zip(filled, counted, lost, strict=True)])
    return np.asarray(low * lost[:, -1:] + (high - low) * beside)
