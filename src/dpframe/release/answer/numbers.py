"""Released numbers, as drawn and after post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.plan import Covers, Formula, Layout, Limits, ReleasedColumn
from dpframe.release.answer.hidden_tables import hidden_in_table
from dpframe.release.answer.postprocess import (
    adds_up,
    floats_of,
    is_total,
    known_nonnegative,
    spread,
    table_of,
)
from dpframe.release.answer.rounding import rounded, rounded_table
from dpframe.release.answer.suppression import OTHER, SMALL, Reader, Suppression
from dpframe.release.answer.table_lines import with_margins
from dpframe.release.answer.upscaling import is_scaled
from dpframe.release.estimators import Compared, NoisyColumn, Shrunk, estimator_of, in_ticks
from dpframe.release.pricing import NoisePlan

COUNTED = ("rows", "values", "units")  # totals that serve as the number of values of a quantile
# what chosen limits leave out: estimate and interval
LEFT_OUT = ("left_out", "left_out_lower", "left_out_upper")
# the columns of `Release.accuracy` beside the keys
_ERRORS = ("column", "value", "error", "lower", "upper", *LEFT_OUT)


def left_out_names(name: str) -> tuple[str, str, str]:
    """The names among the `parts` of an answer of what is left out of a column:
    estimate, lower and upper end.

    >>> left_out_names("n")
    ('n.left_out', 'n.left_out_lower', 'n.left_out_upper')
    """
    estimate, lower, upper = (f"{name}.{what}" for what in LEFT_OUT)
    return estimate, lower, upper


def keys_beside(by: Sequence[str]) -> tuple[str, ...]:
    """The keys as a table of errors names them: "value" becomes
    `value_key` beside a column "value".

    >>> keys_beside(["city", "value"])
    ('city', 'value_key')
    """
    names: list[str] = []
    for name in by:
        beside = f"{name}_key" if name in _ERRORS else name
        while name in _ERRORS and beside in (*by, *names):
            beside += "_"
        names.append(beside)
    return tuple(names)


@dataclass(frozen=True, eq=False, repr=False)
class Numbers:
    """The numbers of a release, one row per group, with the noise that is in them.

    `long` has the keys `by` and a column for each of the `outputs`. `parts` are the noisy totals of
    derived columns (column unit). `before` is the table as drawn, if post-processing has changed
    it. `lifted` says whether post-processing has removed negative numbers. Counts and sums are
    multiples of `base`, if they were rounded; `unrounded` is the table before that step. What is
    not shown follows from `suppression`. Counts and sums have been multiplied by `factor`: see
    `release.answer.upscaling`. `shrunk` has the columns that were moved towards a common value: see
    `shrunk_numbers`. Intervals are about what it `covers`; those of the columns in `sampled` may be
    about the population, and those of rates are where intervals are `usual`, unless `noise_alone`
    was typed. Numbers that say nothing are missing, unless it is `filled`: see `says_nothing`.
    `unit_limits` are the limits on one unit. If it is `ranked`, the last of the keys is the rank of
    a value. If tables were suppressed together, `hidden_together` has the codes of this one.
    """

    long: pl.DataFrame
    by: tuple[str, ...]
    outputs: tuple[ReleasedColumn, ...]
    noise: NoisePlan
    layout: Layout = field(default_factory=Layout)
    parts: Mapping[str, Floats] = field(default_factory=dict)
    before: pl.DataFrame | None = None
    lifted: bool = False
    base: int = 1
    unrounded: pl.DataFrame | None = None
    suppression: Suppression | None = None
    factor: float = 1.0
    shrunk: Mapping[str, Shrunk] = field(default_factory=dict)
    covers: Covers = Covers.NOISE
    unit_limits: Limits = field(default_factory=Limits)
    ranked: bool = False
    filled: bool = False
    sampled: frozenset[str] = frozenset()
    noise_alone: bool = False
    usual: bool = False
    hidden_together: Integers | None = None

    def apart(self, output: ReleasedColumn) -> bool:
        """Whether each unit is in at most one group, as far as a released column reads it."""
        limits = output.total.limits or self.unit_limits
        return 1 in (limits.max_groups, limits.max_rows)

    def is_free_rate(self, output: ReleasedColumn) -> bool:
        """Whether a column is a rate of people whose intervals are for the
        population, at no price, by default.
        """
        free = (
            output.formula is Formula.MEAN
            and output.name in self.sampled
            and output.name not in self.shrunk
        )
        return free and not self.noise_alone

    def covers_of(self, output: ReleasedColumn) -> Covers:
        """The coverage of the intervals of a column; see `usual`."""
        return Covers.POPULATION if self.usual and self.is_free_rate(output) else self.covers

    def factor_of(self, output: ReleasedColumn) -> float:
        """The factor by which the numbers of a column have been multiplied."""
        return self.factor if is_scaled(output) else 1.0

    @property
    def drawn(self) -> pl.DataFrame:
        """The long table as it was drawn (and multiplied)."""
        return self.long if self.before is None else self.before

    @cached_property
    def shown(self) -> pl.DataFrame:
        """The long table, with null for suppressed groups and for numbers that say nothing."""
        missing = {output.name: self.hidden | self.empty[output.name] for output in self.outputs}
        return self.long.with_columns(
            pl.when(pl.Series(~cells)).then(pl.col(name)).alias(name)
            for name, cells in missing.items()
            if cells.any()
        )

    @cached_property
    def empty(self) -> Mapping[str, Booleans]:
        """The numbers of each column that are missing because they say nothing;
        none where the table is `filled`.
        """
        none = np.zeros(self.long.height, np.bool_)
        return {
            output.name: none if self.filled else self.says_nothing(output)
            for output in self.outputs
        }

    def says_nothing(self, output: ReleasedColumn) -> Booleans:
        """Of which groups nothing is told of the number:
        the 95% interval that is shown holds whatever it could be.

        That is the interval of the noise, or of noise and sampling where it covers the population.
        An example is the mean of a group without rows: it lies near the middle of its bounds. If a
        quantile has an interval that was paid for at a lower confidence, that one decides. If its
        interval is neither paid for nor follows from a number of rows, it is shown. Of a shrunk
        column, the interval after shrinking decides.

        Bound:  none is needed: it follows from the released numbers and their noise
        """
        estimator, rows, total = estimator_of(output), self.rows_of(output), output.total
        unknown = (
            output.formula is Formula.QUANTILE
            and not total.is_tree
            and rows is None
            and total.ci is None
        )
        if unknown or not estimator.is_number:
            return np.zeros(self.long.height, np.bool_)
        numbers = floats_of(self.drawn, output.name)
        alpha = 0.05 if total.ci is None else max(0.05, 1 - total.ci)
        noisy = self.noisy(output)
        people = self.covers_of(output) is Covers.POPULATION
        ends = (
            estimator.population(noisy, alpha, numbers)
            if people
            else estimator.interval(noisy, alpha, numbers, rows)
        )
        missing = estimator.holds_all(noisy, ends)
        if output.name in self.shrunk:
            groups, ends = _groups(self, output), shrunk_interval(self, output, alpha)
            missing[: len(ends[0])] = estimator.holds_all(groups, ends)
        rest = self.interval_of_rest(output, alpha)
        if rest is not None:  # it is not shrunk
            missing[-1:] = estimator.holds_all(*rest)
        return missing

    def noisy(self, output: ReleasedColumn) -> NoisyColumn:
        """A released column with its noise and its noisy totals."""
        return NoisyColumn.of(output, self.noise, self.parts)

    def interval_of_rest(
        self, output: ReleasedColumn, alpha: float
    ) -> tuple[NoisyColumn, tuple[Floats, Floats]] | None:
        """The last row, where it collects suppressed groups with noise of its own,
        with its totals and its interval.
        """
        rest = self.noise.collected
        if rest is None:
            return None
        value = self.drawn.get_column(output.name)[-1:].cast(pl.Float64).to_numpy()
        noisy = NoisyColumn.of(
            output, rest, {name: totals[-1:] for name, totals in self.parts.items()}
        )
        return noisy, estimator_of(output).interval(noisy, alpha, value, None)

    def rows_of(self, output: ReleasedColumn) -> Floats | None:
        """The number of values in each group, as released:
        values of this column, else rows, else units.

        It is None for a minimum or maximum, since values are rarely spread evenly there.
        """
        column = output.total.column
        if output.total.rank in (0, 1):
            return None
        best, rows = 4, None
        for other in self.outputs:
            name, total = other.totals[-1]
            if total.kind not in COUNTED:
                continue
            same = column is not None and total.reads(column)
            place = 0 if same else COUNTED.index(total.kind) + 1
            if place < best:
                values = floats_of(self.drawn, other.name) / self.factor_of(other)
                best, rows = place, self.parts[name] if len(other.totals) > 1 else values
        return rows

    @property
    def below(self) -> float | None:
        """Smaller numbers are not shown; None if all are."""
        return None if self.suppression is None else self.suppression.below

    @cached_property
    def hidden(self) -> Booleans:
        """Groups that are not shown: the small ones, and those that are hidden with them."""
        if self.suppression is None:
            return np.zeros(self.long.height, np.bool_)
        if self.hidden_grid is not None:
            codes, places = self.hidden_grid
            return np.asarray(codes[:, :-1].ravel()[places] > 0)
        small = np.asarray(self.counted < self.suppression.below)
        return small if self.hidden_together is None else small | (self.hidden_together > 0)

    @cached_property
    def hidden_grid(self) -> tuple[Integers, Integers] | None:
        """Why cells and margins of a crosstab are hidden, and the place of
        each group; None for other tables.

        Subtotals and margins are in more rows and one column more: see `with_margins`. The codes
        are those of `release.answer.suppression`. Only a crosstab with margins or shares says how
        its cells add up.
        """
        if self.suppression is None or not self.layout.is_crosstab:
            return None
        cells, places = self._spread(self.counted)
        if self.protects:
            return hidden_in_table(cells / self.base, self.reader, self._groups), places
        return np.where(
            with_margins(cells, self._groups) < self.suppression.below, SMALL, 0
        ), places

    def _spread(self, values: Floats) -> tuple[Floats, Integers]:
        """Values of groups as the cells of a crosstab, NaN where there
        is none, and the place of each.
        """
        return spread(values, self.long.select(self._down), self.long.select(self.layout.across))

    @property
    def _down(self) -> list[str]:
        return [name for name in self.by if name not in self.layout.across]

    @property
    def _groups(self) -> Integers | None:
        """For each row of a crosstab the number of its subtotal, from 0; None without subtotals."""
        if not self.layout.subtotals:
            return None
        first = [row[0] for row in self.long.select(self._down).unique(maintain_order=True).rows()]
        number = {key: place for place, key in enumerate(dict.fromkeys(first))}
        return np.array([number[key] for key in first], np.int64)

    @property
    def protects(self) -> bool:
        """Whether more is hidden than small numbers, because the
        table says how its cells add up.
        """
        shares = (
            bool(self.layout.margins or self.layout.normalize) or self.hidden_together is not None
        )
        return self.suppression is not None and self.suppression.secondary and shares

    @property
    def reader(self) -> Reader:
        """The knowledge that readers of a suppressed table have of its hidden numbers."""
        assert self.suppression is not None
        output = self._counting
        if output is None:  # the noisy counts of a mean, which no step changes
            return Reader(self.suppression.below, -math.inf, whole=False)
        floor = 0.0 if self.lifted and known_nonnegative(output) else -math.inf
        known = Reader(
            self.suppression.below, floor, whole=self.long.schema[output.name].is_integer()
        )
        return known.in_base(self.base)

    @property
    def veiled(self) -> bool:
        """Whether intervals would tell what is hidden:
        they are about the numbers before `nonnegative`.

        The numbers of a line before and after it differ by what was added to its negative cells.
        From the shown numbers of all lines, before and after, one may compute which hidden cells
        had been negative, and are 0.
        """
        return self.lifted and self.protects

    @property
    def moved(self) -> float:
        """Largest distance of a protected table's numbers from those before
        rounding, which nobody may see; else 0.

        Which of two multiples a shown number becomes depends on hidden ones: 42 may become 45.
        Intervals and differences of this table are therefore those of the rounded numbers, wider by
        this.

        Bound:  let a reader know the steps and the limit, and let t be any table of multiples, not
                negative after `nonnegative`, that agrees with what is shown, and of which the same
                is hidden. Numbers drawn as t are lifted to t, rounded to t, and published as the
                same table. So a reader excludes none of these t, and rounding tells nothing beyond
                the sums and multiples that `Reader` knows
        """
        if self.unrounded is None or not self.protects:
            return 0.0
        same = self.base == 1 and all(
            self.unrounded.schema[o.name].is_integer() for o in self.outputs if is_total(o)
        )
        return 0.0 if same else float(self.base)

    @property
    def marks(self) -> np.ndarray | None:
        """The texts that stand for hidden numbers of groups;
        None if no text was typed, or nothing is suppressed.
        """
        if self.suppression is None or self.suppression.marks is None:
            return None
        small, other = self.suppression.marks
        shown = np.where(self.hidden, small, "")
        return (
            shown
            if self.hidden_together is None
            else np.where(self.hidden_together == OTHER, other, shown)
        )

    @property
    def _counting(self) -> ReleasedColumn | None:
        """The column that says how large a group is: a count, else the first
        number; None for the count of a mean.
        """
        for output in self.outputs:
            if output.formula is Formula.COUNT:
                return output
        if any(len(output.totals) > 1 for output in self.outputs):
            return None
        return next(output for output in self.outputs if estimator_of(output).is_number)

    @property
    def counted(self) -> Floats:
        """The count of each group, as released: a count column, else the count of
        a mean, else the first number.
        """
        output = self._counting
        if output is None:
            return next(
                self.parts[output.totals[-1][0]]
                for output in self.outputs
                if len(output.totals) > 1
            )
        return floats_of(self.long, output.name)

    def lift(self, change: Callable[[Floats], Floats]) -> Numbers:
        """The numbers without negative ones: as a table if they add up, else number by number."""
        long = self.long if self.unrounded is None else self.unrounded
        if long.height:
            columns = [
                pl.Series(o.name, self._lifted(o, long, change))
                for o in self.outputs
                if known_nonnegative(o)
            ]
            long = long.with_columns(columns)
        unrounded = None if self.unrounded is None else long
        return replace(
            self, long=long, before=self.drawn, unrounded=unrounded, lifted=True
        )._rounded()

    def _lifted(
        self, output: ReleasedColumn, long: pl.DataFrame, change: Callable[[Floats], Floats]
    ) -> Floats:
        values = floats_of(long, output.name)
        if not adds_up(output):
            return np.array([change(np.array([[value]])).item() for value in values])
        if self.layout.is_crosstab:
            grid = table_of(
                values, self.long.select(self._down), self.long.select(self.layout.across)
            )
            if grid is not None:
                table, places = grid
                return np.asarray(change(table).ravel()[places])
        return np.asarray(change(values[None])[0])

    def round(self, base: int) -> Numbers:
        """The numbers with counts and sums rounded; of several such steps the coarsest applies."""
        unrounded = self.long if self.unrounded is None else self.unrounded
        return replace(
            self, before=self.drawn, unrounded=unrounded, base=max(base, self.base)
        )._rounded()

    def suppress(self, step: Suppression) -> Numbers:
        """The numbers of which small ones are hidden; of several
        such steps the strictest applies.
        """
        return replace(self, suppression=step.after(self.suppression))._rounded()

    def _rounded(self) -> Numbers:
        """The numbers rounded from those before, as a table if they add up;
        unchanged if they are not to be rounded.
        """
        exact = self.unrounded
        if exact is None:
            return self
        columns = [
            pl.Series(o.name, self._new_values(o, exact), dtype=pl.Int64())
            for o in self.outputs
            if is_total(o)
        ]
        return replace(self, long=exact.with_columns(columns if exact.height else []))

    def _new_values(self, output: ReleasedColumn, exact: pl.DataFrame) -> Integers:
        """Rounded numbers of a column, each by itself where no margin
        is shown and others are hidden.
        """
        values, crosstab = floats_of(exact, output.name), self.layout.is_crosstab
        sums = self.suppression is None or self.layout.margins or self.layout.normalize
        if not adds_up(output) or not sums:
            return np.array(
                [rounded(np.array([[value]]), self.base).item() for value in values], np.int64
            )
        if not crosstab:
            return np.asarray(rounded(values[None], self.base)[0])
        cells, places = self._spread(values)
        return np.asarray(rounded_table(cells, self.base, self._groups).ravel()[places])


# Shrinking

_GROUPS = 4  # James and Stein's gain needs four groups where their common value is estimated too


def compared_groups(numbers: Numbers, output: ReleasedColumn) -> Compared | None:
    """The groups beside their common value; None for a column or a number
    of groups that cannot be shrunk.

    The row that collects suppressed groups has noise of its own, and is no group.
    """
    groups = _groups(numbers, output)
    if output.name in numbers.shrunk or len(next(iter(groups.parts.values()), ())) < _GROUPS:
        return None
    return estimator_of(output).compared(groups)


def has_noisy_differences(numbers: Numbers, output: ReleasedColumn) -> bool:
    """Whether the noise of at least half of the groups is larger
    than what their values differ by.
    """
    compared = compared_groups(numbers, output)
    if compared is None:
        return False
    shrunk = compared.shrunk()
    return bool(np.median(shrunk.biases) > np.median(shrunk.deviations))


def shrunk_numbers(numbers: Numbers, compared: Mapping[str, Compared], *, alike: bool) -> Numbers:
    """The numbers with some columns shrunk; `alike` as in `Compared.shrunk`.

    Bound:  none is needed: `compared` follows from noisy totals, their noise and public bounds. No
            row is read
    """
    changed, shrunk = numbers.long, dict(numbers.shrunk)
    for output in numbers.outputs:
        if output.name not in compared:
            continue
        shrunk[output.name] = compared[output.name].shrunk(alike=alike)
        column = numbers.long.get_column(output.name)
        values = estimator_of(output).from_ratio(
            _groups(numbers, output), shrunk[output.name].values
        )
        moved = values if output.dtype is None else in_ticks(output, values)
        whole = column.to_physical().to_numpy().copy()
        whole[: len(moved)] = moved
        changed = changed.with_columns(pl.Series(output.name, whole).cast(column.dtype))
    return replace(numbers, long=changed, before=numbers.drawn, shrunk=shrunk)


def shrunk_interval(
    numbers: Numbers, output: ReleasedColumn, alpha: float
) -> tuple[Floats, Floats]:
    """Intervals of a shrunk column, right on average over groups (unit
    of the column, times in ticks).
    """
    groups, estimator = _groups(numbers, output), estimator_of(output)
    low, high = (
        estimator.from_ratio(groups, end) * output.ticks
        for end in numbers.shrunk[output.name].interval(alpha)
    )
    values = (
        numbers.long.get_column(output.name).to_physical().cast(pl.Float64).to_numpy()[: len(low)]
    )
    return np.minimum(low, values), np.maximum(high, values)  # a time was rounded to a whole tick


def _groups(numbers: Numbers, output: ReleasedColumn) -> NoisyColumn:
    """A column with the noisy totals of groups, without the row that collects suppressed groups."""
    last = None if numbers.noise.collected is None else -1
    return NoisyColumn.of(
        output, numbers.noise, {name: totals[:last] for name, totals in numbers.parts.items()}
    )
