"""Expected error of a question under limits, from noisy histograms of its units:
bias, noise and suppression together.

The error is the root mean square, over all groups, of the released number less the true one. A
suppressed group counts as a total of 0, and as a mean in the middle of the bounds.
`benchmarks/auto.py` measures errors in this way.

The model of units: they are ordered by their rows, and their numbers of groups and largest groups
have the same order. Inside a unit, the sizes of groups follow a power law that fits both. Units in
all groups have as many rows in each, and units in one group are where the histogram of keys says.
Groups that are not listed have several cases, from it. The result is a guess that only choices rest
on; no bound rests on it. The number of different values (`dp.n_unique`) among rows has another
model: see `dpframe.release.auto.distinct_values`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import NormalDist
from types import MappingProxyType

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import Allotment, Formula, Limits, Question, ReleasedColumn, Total
from dpframe.release.answer import RemainingRows, is_scaled, is_scaled_by
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.size_histograms import Groups, laplace_below, normal_below
from dpframe.release.auto.unit_sizes import WEIGHTS, UnitSizes
from dpframe.release.estimators import estimator_of
from dpframe.release.pricing import Noise, NoiseKind, NoisePlan, Price, shared_part
from dpframe.theory.formulas.sensitivity import Contribution, Sensitivity, row_counts, unit_counts

Key = tuple[object, ...]  # of a total
# quantiles of a unit's groups, from the smallest to the largest
_INSIDE: Floats = (np.arange(8) + 0.5) / 8
_FEWEST = 0.01  # part of the units that are in one group: of fewer, no shares are known
_BLOCKS = 9  # of groups that have about equally many rows
# deviations, of equal weight
_OFF: Floats = np.array([NormalDist().inv_cdf((i + 0.5) / 7) for i in range(7)])
# squared distance of a suppressed mean from the middle (half widths of the bounds)
_FAR = MODEL.typical_value**2


@dataclass(frozen=True)
class _RowsUnderLimits:
    """Rows, and presences of units in groups, that remain under limits, and all
    of them (`of_`), for each case.

    `even`: the rows of each that are equally many in all groups; 0 where that is not known.
    `heaped`: where a limit on rows per group that is to be chosen removes rows, the root mean
    square over groups of what they lose if all people have most rows in the same group, the next
    most in the same group, and so on. Without that, 30 uneven groups had four times the error that
    was expected.
    """

    rows: Floats
    of_rows: Floats
    presences: Floats
    of_presences: Floats
    even: Floats
    of_even: Floats
    heaped: Floats | None = None


@dataclass(frozen=True)
class _Offer:
    """A question with limits; for each kind of noise, the plan and each total's
    noise relative to its sensitivity.
    """

    question: Question
    noise: list[tuple[NoiseKind, NoisePlan, dict[Key, float]]]


@dataclass(frozen=True)
class Judged:
    """Limits with one kind of noise; geometric means of errors:
    of columns in each case, of each column over cases.
    """

    limits: Limits
    own: Mapping[str, Limits]
    noise: NoiseKind
    cases: Floats
    errors: Mapping[str, float]


class Expected:
    """Expected errors of a question's columns, for any limits.

    Input:  question, with limits to be chosen; unit_sizes; price: what its answer may cost.
            Independent noise is proportional to sensitivity, so plans of each kind are made once
            for each number of groups. Noise that groups share is a part of it, see `shared_part`.
            choosing: whether a limit is chosen by the errors
    """

    def __init__(
        self, question: Question, unit_sizes: UnitSizes, price: Price, *, choosing: bool = True
    ) -> None:
        self._choosing, self.question, self.unit_sizes = choosing, question, unit_sizes
        self._typed_limits = replace(question.typed_limits, auto=None)
        self._price, self._offers = price, dict[tuple[int, bool, frozenset[str]], _Offer]()
        self.kept, self._bound = cache(self._kept), cache(self._sensitivity)
        self._parts = dict[tuple[Key, Sensitivity, NoiseKind], float]()

    # Noise

    def _offer(self, limits: Limits, apart: frozenset[str]) -> _Offer:
        """The noise plans for a number of groups of a unit;
        one row per group and more rows have different totals.

        The columns `apart` have limits of their own, so they share no total with others.
        """
        single = 1 in (limits.max_rows, limits.max_rows_per_group)
        at = _within(self.question, limits)[0] if self.question.private_keys or self._chooses else 1
        if (at, single, apart) not in self._offers:
            trial = (Limits(at, at, 1) if single else Limits(2 * at, at, 2)).and_also(
                self._typed_limits
            )
            other = Limits(2 * at, at, 2) if single else Limits(at, at, 1)
            question = under_chosen(self.question, trial, dict.fromkeys(apart, other))
            pairs = zip(question.aggregates, question.outputs, strict=True)
            own = {
                total.key: one.limits.or_else(trial)
                for (_, one), output in pairs
                for _, total in output.totals
            }
            noise = [
                (
                    kind,
                    plan,
                    {
                        n.total.key: self._factor(n, own.get(n.total.key, trial))
                        for n in plan.noises
                    },
                )
                for kind, plan in self._price.plans(question).items()
            ]
            self._offers[at, single, apart] = _Offer(question, noise)
        return self._offers[at, single, apart]

    @cached_property
    def _chooses(self) -> bool:
        """Whether a total is a choice. Its mechanism depends on the number of groups."""
        return any(allotment.total.chosen for allotment in self.question.allotments)

    def _factor(self, noise: Noise, limits: Limits) -> float:
        """Standard deviation of a total's noise, relative to its sensitivity."""
        total, size = noise.total, self._size(noise, limits)
        deviation = noise.deviation / float(total.unit)
        return (
            deviation / (float(total.grid.magnitude or 1) * 2**total.fraction * size)
            if size
            else 0.0
        )

    def _shared(self, allotment: Allotment, limits: Limits, kind: NoiseKind) -> float:
        """Factor of a total's noise where groups share noise; plans have independent noise."""
        if allotment.one_signed is None:
            return 1.0
        bound = self._bound(*_within(self.question, limits), allotment.total.of_units)
        key = allotment.total.key, bound, kind
        if key not in self._parts:
            self._parts[key] = shared_part(
                allotment, bound, normal=kind.normal, noise=self._price.noise
            )
        return self._parts[key]

    def _size(self, noise: Noise, limits: Limits) -> float:
        bound = self._bound(*_within(self.question, limits), noise.total.of_units)
        return noise.mechanism.length(bound)

    def _sensitivity(self, groups: int, per_group: int, rows: int, by_units: bool) -> Sensitivity:
        relation, cells = self.question.table.relation, self.question.cells
        if by_units:
            return unit_counts(groups, relation, cells)
        return row_counts(Contribution(groups, per_group, rows), relation, cells)

    # Bias

    @cached_property
    def _cells(self) -> Floats:
        """Rows of a unit in representative groups: cases by units by groups."""
        size, groups, peaks = self.unit_sizes.sizes
        power = np.clip(peaks * groups / size - 1, 0.0, 50.0)
        cells = peaks[..., None] * _INSIDE ** power[..., None]
        return np.asarray(cells * (size / groups / cells.mean(axis=-1))[..., None])

    @property
    def _heaps(self) -> bool:
        """Whether limits on rows per group are to be chosen, in listed groups."""
        return (
            self._choosing
            and self.question.cells is not None
            and self._typed_limits.max_rows_per_group is None
        )

    def _kept(self, limits: Limits) -> _RowsUnderLimits:
        """Rows that remain after each unit's limits are applied, in total and per group."""
        most, per_group, rows = (float(x) for x in _within(self.question, limits))
        size, groups, _ = self.unit_sizes.sizes
        units = self.unit_sizes.rows.masses.sum(axis=1)
        if not self.question.by:
            kept_rows, all_rows = (
                np.minimum(size, most) @ WEIGHTS * units for most in (rows, np.inf)
            )
            return _RowsUnderLimits(kept_rows, all_rows, units, units, kept_rows, all_rows)
        cells, present = self._cells, WEIGHTS * units[:, None] * groups
        weights = present[..., None] / len(_INSIDE)
        here = np.minimum(1.0, most / groups)[..., None]  # the part of a unit's groups that is kept
        part = np.minimum(cells, per_group)
        kind = part.mean(axis=-1, keepdims=True) * groups[..., None] * here
        counting = part * np.minimum(1.0, rows / kind) * here
        kept_rows, all_rows = (
            (counting * weights).sum(axis=(-2, -1)),
            (cells * weights).sum(axis=(-2, -1)),
        )
        if self.question.cells is not None and (most, per_group) == (
            min(rows, self.question.cells),
            rows,
        ):
            # sizes of groups say nothing about a limit on rows in all
            seen = self.unit_sizes.seen_rows
            kept_rows, all_rows = (np.minimum(seen, x) @ WEIGHTS * units for x in (rows, np.inf))
        even, of_even = (
            ((x * weights).sum(axis=-1) * self._evenly).sum(axis=-1) for x in (counting, cells)
        )
        heaped = (
            self._heaped((cells - counting) * weights) if self._heaps and per_group < rows else None
        )
        there, of_there = (present * here[..., 0]).sum(axis=-1), present.sum(axis=-1)
        return _RowsUnderLimits(kept_rows, all_rows, there, of_there, even, of_even, heaped)

    def _heaped(self, lost: Floats) -> Floats:
        """Root mean square over groups of rows lost there, in each case, if all units
        have the same order of groups.

        Input:  lost: rows of all units like one, in an eighth of their groups (cases by units by
                eighths)
        """
        ends, parts = self._order
        here = (lost.reshape(len(lost), 1, -1) @ parts.reshape(len(parts), -1, parts.shape[-1]))[
            :, 0
        ]
        return np.asarray(np.sqrt((here**2 / np.diff(ends)).sum(axis=-1) / ends[-1]))

    @cached_property
    def _order(self) -> tuple[Floats, Floats]:
        """Listed groups from the one with most rows on, in blocks;
        and the part of each eighth that is in each block.

        The first of a unit's groups are the first for all.
        """
        number = float(self.question.cells or 1)
        ends = np.unique(np.concatenate([[0.0], np.rint(np.geomspace(1.0, number, _BLOCKS))]))
        groups, eighths = (
            self.unit_sizes.sizes[1][..., None, None],
            np.arange(len(_INSIDE), 0, -1)[:, None],
        )
        first, last = (groups * at / len(_INSIDE) for at in (eighths - 1, eighths))
        inside = np.minimum(last, ends[1:]) - np.maximum(first, ends[:-1])
        return ends, np.asarray(np.maximum(inside, 0.0) / (last - first))

    def left(self, limits: Limits, under_limits: _RowsUnderLimits) -> RemainingRows | None:
        """The rows that limits keep and all rows, if numbers are corrected for removed rows."""
        if not is_scaled_by(self.question, limits):
            return None
        rows = self.unit_sizes.rows
        return RemainingRows(under_limits.rows, under_limits.of_rows, rows.odds, rows.unsure)

    # Errors

    def judged(
        self, limits: Limits, own: Mapping[str, Limits] = MappingProxyType({})
    ) -> list[Judged]:
        """The expected errors of limits, with each kind of noise.

        Input:  limits; own: those of the columns that are to have limits of their own, by name
        """
        under_limits, offer = self.kept(limits), self._offer(limits, frozenset(own))
        remaining = self.left(limits, under_limits)
        factor, odds = 1.0 if remaining is None else remaining.before, self.unit_sizes.rows.odds
        of_columns = {
            name: own.get(name, one.limits).or_else(limits)
            for name, one in self.question.aggregates
        }
        kept = {name: self.kept(of_column) for name, of_column in of_columns.items()}
        sizes = {
            total.key: of_columns[output.name]
            for output in offer.question.outputs
            for _, total in output.totals
        }
        options, doubt = [], 1.0 if limits.max_rows_per_group is None else MODEL.further_limit
        for kind, plan, factors in offer.noise:
            noise = {
                key: factors[key] * self._size(n, at) * self._shared(n.allotment, at, kind)
                for n in plan.noises
                for key in (n.total.key,)
                for at in (sizes.get(key, limits),)
            }
            suppression = self._suppression(plan, under_limits)
            cases = {
                o.name: self._error(o, noise, kept[o.name], suppression, factor)
                for o in offer.question.outputs
            }
            # A column that is exact leaves the others to decide.
            columns = np.array(np.broadcast_arrays(odds, *cases.values())[1:]) + 1e-12
            errors = {
                o.name: float(np.prod(cases[o.name] ** odds)) * estimator_of(o).reach(o)
                for o in offer.question.outputs
            }
            options.append(
                Judged(limits, own, kind, np.exp(np.log(columns).mean(axis=0)) * doubt, errors)
            )
        return options

    def least(self, options: Sequence[Judged]) -> Judged:
        """The option with the least expected square of its error, relative
        to the best option of each case.

        Noise may look like one unit with a billion rows. In that case all errors are large, and
        their ratios tell how much a choice loses. With the geometric mean of errors in place of
        squares, counts on 46 panels had 1.39 times the error of the best limits in hindsight, and
        1.27 times with squares.

        Of options that are about equal the one with the fewest rows is taken.
        """
        errors = np.array([option.cases for option in options])
        squares = (errors / errors.min(axis=0)) ** 2 @ self.unit_sizes.rows.odds
        ties = [
            option
            for option, square in zip(options, squares, strict=True)
            if square <= MODEL.tie * squares.min()
        ]
        return min(ties, key=lambda option: _within(self.question, option.limits)[2])

    def _suppression(self, plan: NoisePlan, under_limits: _RowsUnderLimits) -> Floats:
        """Probability that each group is suppressed, in each case, by the
        rule for keys found in the data.

        The optimal rule is approximated by a threshold on the units with Laplace noise of its
        scale; the difference is as small as δ. The number of units in a group is inferred from its
        share of rows. The inference is exact if each unit is in one group or in all groups; else it
        is a lognormal guess.
        """
        if plan.threshold is None or plan.decided_by is None:
            return np.zeros(1)
        noise, step = (
            plan.of(plan.decided_by.total),
            float(plan.decided_by.total.sensitivity.exact_linf),
        )
        units = under_limits.presences[:, None] * self._presences
        off = np.exp(np.sqrt(self._mixing * (1 - self._mixing))[:, None, None] * _OFF)
        reach = (plan.threshold - 0.5 - step * units[..., None] * off) / noise.scale
        chance = normal_below(reach) if noise.adds and noise.added.normal else laplace_below(reach)
        return np.asarray(chance.mean(axis=-1))

    def _error(
        self,
        output: ReleasedColumn,
        noise: Mapping[Key, float],
        under_limits: _RowsUnderLimits,
        suppression: Floats,
        factor: float,
    ) -> Floats:
        """Root mean square error of a column over its groups in each case, in
        units of its largest row value.

        A suppressed group counts as a total of 0, and as a mean in the middle of the bounds.
        `factor` corrects counts and sums for removed rows.
        """
        spread = [noise[total.key] for _, total in output.totals]
        shares = self._groups.shares()
        lost = self._shares(
            under_limits.of_even - under_limits.even, under_limits.of_rows - under_limits.rows
        )
        if estimator_of(output).adds_up:
            counted = output.total
            shortfall, there = under_limits.of_rows - under_limits.rows, under_limits.of_rows
            if counted.of_units:
                shortfall, there = (
                    under_limits.of_presences - under_limits.presences,
                    under_limits.of_presences,
                )
                lost = shares
            if counted.of_different_values:
                shortfall, there = self._values(counted, under_limits)
                lost = shares
            scale = factor if is_scaled(output) else 1.0
            if scale > 1:  # remaining bias: the factor is not that of this case, and groups differ
                shortfall = np.hypot(
                    there - scale * under_limits.rows, MODEL.unlike_groups * shortfall
                )
            weigh = 1.0 if output.formula is Formula.COUNT else MODEL.typical_value
            bias = shortfall[:, None] * lost
            if under_limits.heaped is not None and not (
                counted.of_units or counted.of_different_values
            ):
                bias = np.maximum(bias, under_limits.heaped[:, None])
            bias = weigh * bias
            noisy = (scale * spread[0]) ** 2
            squares = suppression * (weigh * there[:, None] * shares) ** 2 + (1 - suppression) * (
                bias**2 + noisy
            )
        else:
            squares = suppression * _FAR + (1 - suppression) * self._squares_of_mean(
                spread, under_limits
            )
        return np.asarray(np.sqrt(self._groups.mean(squares)))

    def _squares_of_mean(self, spread: Sequence[float], under_limits: _RowsUnderLimits) -> Floats:
        """Squared errors of a mean that is not suppressed, from noise of
        this spread and from removed rows.
        """
        weight = under_limits.rows[:, None] * self._shares(under_limits.even, under_limits.rows)
        count = (MODEL.typical_value if len(spread) > 1 else 1.0) * spread[-1]
        both = math.hypot(max(spread[:-1], default=0.0), count)
        ratio = (both / np.maximum(weight, 1e-9)) ** 2
        # a mean of noise is shrunk to the middle, where a suppressed mean is assumed
        ratio /= 1 + ratio / _FAR
        there, here = (
            x[:, None] * self._presences
            for x in (under_limits.of_presences, under_limits.presences)
        )
        away = np.clip(1 / np.maximum(here, 1.0) - 1 / np.maximum(there, 1.0), 0.0, 1.0)
        sampling = MODEL.between_units**2 * away
        all_rows = under_limits.of_rows[:, None] * self._shares(
            under_limits.of_even, under_limits.of_rows
        )
        fewer = np.clip(1 / np.maximum(weight, 1.0) - 1 / np.maximum(all_rows, 1.0), 0.0, 1.0)
        sampling += MODEL.within_unit**2 * fewer
        return np.minimum(ratio + sampling, _FAR)

    def _values(self, total: Total, under_limits: _RowsUnderLimits) -> tuple[Floats, Floats]:
        """Number of different values that limits remove, and of all
        different values, in each case.
        """
        assert total.column is not None
        sharing = self.unit_sizes.values.get(total.column.id)
        if sharing is None:  # before any number of them is seen, each row has its own
            return under_limits.of_rows - under_limits.rows, under_limits.of_rows
        there = sharing.found(under_limits.of_rows)
        return there - sharing.found(under_limits.rows), there

    # Groups

    @cached_property
    def _groups(self) -> Groups:
        """The groups as measured; or two kinds of groups, with the
        unevenness of `MODEL.uneven_groups`.
        """
        if self.unit_sizes.keys is not None:
            return self.unit_sizes.keys
        number = float(self.question.cells or max(self.unit_sizes.sizes[1].max(), 1.0))
        half = 0.0 if number <= 1 else math.sqrt(MODEL.uneven_groups**2 - 1)
        return Groups(np.array([[1 - half, 1 + half]]), np.full((1, 2), number / 2))

    @cached_property
    def _evenly(self) -> Floats:
        """The part of each unit's rows that is equally many in all groups (cases by
        units); 0 if no groups were seen.

        A unit with n rows of which p are in one group is in n / p groups at least. With probability
        (n / p - 1) / (groups - 1) it is taken to be in all groups alike, and else in one. That is
        right for one group and for all.
        """
        size, _, peaks = self.unit_sizes.sizes
        if self.unit_sizes.keys is None or self.unit_sizes.peaks is None:
            return np.zeros_like(size)
        return np.asarray(
            np.clip(
                (size / peaks - 1) / np.maximum(self._groups.number[:, None] - 1, 1.0), 0.0, 1.0
            )
        )

    @cached_property
    def _uneven(self) -> Floats:
        """The share of each group in the rows of units that are in one group.

        In the histogram of keys each unit counts once, so that of units in all groups is taken from
        each group.
        """
        even = (self._evenly @ WEIGHTS)[:, None]
        rest = np.maximum(self._groups.shares() - even / self._groups.number[:, None], 0.0)
        here = (rest * self._groups.each).sum(axis=1, keepdims=True)
        return np.where(here > _FEWEST, rest / np.maximum(here, _FEWEST), self._groups.shares())

    def _shares(self, even: Floats, rows: Floats) -> Floats:
        """The share of each group in rows of which some are equally
        many in all groups, in each case.

        Where people with many rows are in all groups, limits on rows make groups uneven: of 4,500
        people in 32 years, half of whom have one row, one year has 45 rows of these and 1,400 of
        the others. With the same shares under all limits, a mean by year took one row of each
        person, at twice the error.
        """
        part = np.clip(even / np.maximum(rows, 1e-9), 0.0, 1.0)[:, None]
        return np.asarray(part / self._groups.number[:, None] + (1 - part) * self._uneven)

    @cached_property
    def _mixing(self) -> Floats:
        """Evenness of groups if a unit has equal weight in each of its groups:
        1 if all units are in all groups.
        """
        groups = self.unit_sizes.sizes[1] @ WEIGHTS
        return np.asarray(
            np.clip((groups - 1) / np.maximum(self._groups.number - 1, 1.0), 0.0, 1.0)
        )

    @cached_property
    def _presences(self) -> Floats:
        """The share of each group in all presences of units."""
        return self._groups.shares(self._mixing)


def under_chosen(question: Question, limits: Limits, own: Mapping[str, Limits]) -> Question:
    """The question under limits that were chosen, some columns by name under limits of their own.

    Without groups, these are limits on rows in all alone. Both are put in at once: a question in
    which every column has limits of its own has nothing left to choose.
    """
    alone = {name: one if question.by else Limits(one.max_rows) for name, one in own.items()}
    pairs = (
        (name, replace(one, limits=alone.get(name, one.limits)))
        for name, one in question.aggregates
    )
    return replace(question, chosen=limits, aggregates=tuple(pairs))


def _within(question: Question, limits: Limits) -> tuple[int, int, int]:
    """Groups, rows per group and rows of one unit, made consistent as a question does it."""
    cells = 1 if not question.by else question.cells
    rows = limits.max_rows or (limits.max_groups or cells or 1) * (limits.max_rows_per_group or 1)
    groups = min(x for x in (limits.max_groups, rows, cells) if x is not None)
    per_group = min(limits.max_rows_per_group or rows, rows)
    return groups, per_group, min(rows, groups * per_group)
