"""A released hierarchy: every level as a table, with numbers that add up from level to level."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, cast

import numpy as np
import polars as pl

from dpframe.arrays import Floats, Integers
from dpframe.budget import Loss
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.plan import HIERARCHY, Derivation, Hints, ReleasedColumn, Tree
from dpframe.release.accuracy import check_alpha, read_ci
from dpframe.release.answer import (
    SMALL,
    Reader,
    Suppression,
    hidden_in_tree,
    keys_beside,
    known_nonnegative,
    read_suppression,
)
from dpframe.release.kinds.hierarchy.agreeing import Agreeing, nonnegative_levels, on_grid, whole_levels
from dpframe.release.kinds.hierarchy.chart import drawn_level, labelled
from dpframe.release.kinds.hierarchy.errors import level_errors, level_variances
from dpframe.release.kinds.hierarchy.exports import HierarchyExports
from dpframe.release.pricing import NoisePlan
from dpframe.release.shown import (
    Grouped,
    Report,
    as_text,
    grouped_chart,
    heading_of,
    in_words,
    noise_table,
    read_look,
    title_of,
)
from dpframe.safe_text import visible
from dpframe.usage import RELEASED, explains

__all__ = ["HierarchyRelease"]


@explains("out.{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class HierarchyRelease(HierarchyExports, Hints, Mapping[str, Any], Generic[Table_co]):
    """A released hierarchy: a mapping from the names of its levels to tables, from "total" down to the leaves.

    `out["district"]` is a table of the kind that was protected, with a row for each district. `out.table` has the
    leaves. The numbers of children add up to the number of their parent exactly, also as floats. `nonnegative` and
    `round` change all levels together, so that they still add up. `cost` is the loss that was charged once for all.

    >>> import polars as pl, dpframe as dp
    >>> people = pl.DataFrame({"region": ["n", "n", "s"], "town": ["Kiel", "Husum", "Ulm"]})
    >>> towns = pl.DataFrame({"region": ["n", "n", "s", "s"], "town": ["Kiel", "Husum", "Ulm", "Aalen"]})
    >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
    >>> out = frame.hierarchy(["region", "town"], keys=towns).release(epsilon=0.5)
    >>> out.levels, out["town"].columns
    (('total', 'region', 'town'), ['region', 'town', 'count'])
    >>> bool(out["region"]["count"].sum() == out["total"]["count"].item())
    True
    """

    _habits = HIERARCHY

    cost: Loss
    derivation: Derivation
    _tree: Tree
    _outputs: tuple[ReleasedColumn, ...]
    _leaf_keys: pl.DataFrame
    _noise: NoisePlan
    _drawn: pl.DataFrame
    _kind: Kind
    when: dt.datetime | None
    _statement: Mapping[str, Any]
    _value: str = "count"
    _steps: tuple[str, ...] = ()
    _changed: Agreeing | None = None
    _lifted: bool = False  # whether negative numbers were removed, so that intervals end at 0
    _ci: float | None = None
    _suppression: Suppression | None = None

    # The tables

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, from the top: "total", then the columns of the tree."""
        return self._tree.names

    @property
    def table(self) -> Table_co:
        """The table of the leaves, in the kind of table that was protected."""
        return cast("Table_co", self[self.levels[-1]])

    def __getitem__(self, level: str) -> Any:
        """The table of a level, in the kind of table that was protected. Errors: UnknownColumn."""
        return as_kind(self._polars(self._place(level)), self._kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def _place(self, level: object) -> int:
        if level not in self.levels:
            raise UnknownColumn(f"hierarchy: there is no level {level!r}. Levels: {', '.join(self.levels)}.")
        return self.levels.index(str(level))

    def _keys(self, level: int) -> pl.DataFrame:
        """The keys of a level's table, a row for each node and crossed key."""
        cells = self._tree.cells
        rows = (self._tree.first_leaves[level][:, None] * cells + np.arange(cells)).ravel()
        return self._leaf_keys[rows].select(self._tree.by(level))

    def _polars(self, level: int) -> pl.DataFrame:
        """A level as a Polars table, with the ends of its intervals if they are shown."""
        columns = [self._series(level)]
        if self._ci is not None:
            lower, upper = (pl.Series(end, nan_to_null=True) for end in self._ends(level, 1 - self._ci))
            if self._numbers.exponent == 0:
                lower, upper = (end.cast(pl.Int64) for end in (lower.floor(), upper.ceil()))
            columns += [lower.alias(f"{self._value}_low"), upper.alias(f"{self._value}_high")]
        return pl.concat([self._keys(level), pl.DataFrame(columns)], how="horizontal")

    def _series(self, level: int) -> pl.Series:
        """The numbers of a level as they are shown: whole ones as integers, suppressed ones as null."""
        numbers = self._numbers
        if numbers.exponent == 0:
            series = pl.Series(self._value, numbers.levels[level].ravel(), dtype=pl.Int64)
        else:
            series = pl.Series(self._value, numbers.floats(level).ravel())
        if self._hidden is None:
            return series
        shown = pl.Series(self._hidden[level].ravel() == 0)
        return pl.select(pl.when(shown).then(series).alias(self._value)).to_series()

    @cached_property
    def _fitted(self) -> Agreeing:
        """The least-squares estimates of all nodes, as they were released: they add up exactly."""
        shape, noisy = self._tree.shape, []
        by_level = {int(level): part["value"].to_numpy() for (level,), part in self._drawn.group_by("level")}
        for level, size in enumerate(shape.sizes):
            values = by_level.get(level, np.zeros(0))
            noisy.append(values.reshape(size, self._tree.cells) if len(values) else np.zeros((size, self._tree.cells)))
        return on_grid(shape, shape.estimates(noisy, self._variances))

    @cached_property
    def _variances(self) -> list[float]:
        """The variance of the noise of each level; ones where no unit can change a number."""
        variances = level_variances(self.levels, self._noise)
        return variances if all(variances) else [1.0] * len(variances)

    @property
    def _numbers(self) -> Agreeing:
        return self._fitted if self._changed is None else self._changed

    # Post-processing

    def nonnegative(self) -> HierarchyRelease[Table_co]:
        """Remove negative numbers from every level, from the top down; children still add up. It is free.

        Output: a release in which the total is kept (or is 0), and the children of each node are the nearest numbers
                that are not negative and add up to the node's new number. Numbers may no longer be whole: see `round`
        Bound:  no row is read: see `dpframe.release.kinds.hierarchy.agreeing.nonnegative_levels`
        Source: InfTDA, Boninsegna and Silvestri 2024, arXiv:2412.09256, for the way from the top down
        Errors: UnsupportedOperation for sums of values that may be negative
        """
        if not known_nonnegative(self._outputs[-1]):
            raise UnsupportedOperation("nonnegative(): these are sums of values that may be negative: see bounds=.")
        shape, numbers = self._tree.shape, self._numbers
        values = nonnegative_levels(shape, [numbers.floats(level) for level in range(len(self.levels))])
        sentence = "nonnegative(): the nearest numbers that are not negative, from the top down; levels still add up."
        changed = on_grid(shape, values)
        return replace(self, _changed=changed, _lifted=True, _steps=(*self._steps, sentence))

    def round(self) -> HierarchyRelease[Table_co]:
        """Round the numbers of every level to integers that still add up. It is free.

        Output: a release in which each number becomes one of its two neighbouring integers, and children add up
        Bound:  no row is read: see `dpframe.release.kinds.hierarchy.agreeing.whole_levels`
        """
        sentence = "round(): integers that still add up from level to level."
        changed = whole_levels(self._tree.shape, self._numbers)
        if changed.exponent > 0:
            raise UnsupportedOperation("round(): these numbers are so large that they are whole already.")
        return replace(self, _changed=changed, _steps=(*self._steps, sentence))

    def suppress(
        self, below: float, marker: str | tuple[str, str] | None = None, *, secondary: bool = False
    ) -> HierarchyRelease[Table_co]:
        """Replace small numbers by null. It is post-processing and free.

        Input:  below: a number above 0: smaller ones are hidden; marker: the text that stands for them in files, such
                as "<10"; a pair has a second text for numbers that are hidden with them; secondary: whether others are
                hidden too, so that each hidden number can have values that are half of the limit apart, whatever all
                levels say together; see `Release.suppress`
        Output: a release in which these numbers are null, on every level. Of several such steps the strictest applies.
                After `nonnegative()`, a release with secondary=True has no intervals
        Bound:  what is hidden follows from the released numbers: see `dpframe.release.answer.suppression`
        """
        step = read_suppression(below, marker, secondary)
        return replace(self, _suppression=step.after(self._suppression), _steps=(*self._steps, step.sentence))

    @cached_property
    def _hidden(self) -> list[Integers] | None:
        """Why numbers of each level are not shown, by the codes of `release.answer.suppression`; None if all are."""
        if self._suppression is None:
            return None
        numbers, below = self._numbers, self._suppression.below
        values = [numbers.floats(level) for level in range(len(self.levels))]
        if not self._suppression.secondary:
            return [np.where(level < below, SMALL, 0) for level in values]
        reader = Reader(below, 0.0 if self._lifted else -math.inf, whole=numbers.exponent == 0)
        return hidden_in_tree(self._tree.shape, values, reader)

    @property
    def _veiled(self) -> bool:
        """Whether intervals would tell what is hidden: see `dpframe.release.answer.numbers`."""
        return self._lifted and self._suppression is not None and self._suppression.secondary

    # Errors

    def with_ci(self, ci: float = 0.95) -> HierarchyRelease[Table_co]:
        """Add the ends of a confidence interval beside each number, such as `count_low` and `count_high`. It is free.

        Each interval holds the number of its node without noise with probability ci; see `accuracy`.
        """
        ends = {f"{self._value}_low", f"{self._value}_high"}
        if clash := ends & {*self._tree.columns, *self._tree.crossed}:
            name = min(clash)
            raise InvalidArgument(f"with_ci: there is a key column {name!r}; rename({{{name!r}: 'key'}}) it before.")
        return replace(self, _ci=read_ci(ci))

    def accuracy(self, alpha: float = 0.05) -> Table_co:
        """One row per number of every level: level, keys, value, error, lower, upper.

        Input:  alpha: the probability of a larger error
        Output: keys as text, and "" for levels below; the interval of the fitted number, around the estimate as it was
                released. After `nonnegative()` its part below 0 is left out. The error is the largest distance from the
                value to an end of its interval
        Bound:  each interval holds its node's number without noise, under the limits and bounds, with probability
                1 - alpha; all of them together hold less often. With Gaussian noise an estimate is normal with the
                variance of `dpframe.theory.formulas.hierarchies.Levels.variances`. With Laplace noise it is a sum of
                independent Laplace noises, and the bound of `log_concave_error` holds. Rounding of the noise is added
        """
        alpha = check_alpha(alpha)
        beside = dict(
            zip(
                (*self._tree.columns, *self._tree.crossed),
                keys_beside((*self._tree.columns, *self._tree.crossed)),
                strict=True,
            )
        )
        parts = []
        for level, name in enumerate(self.levels):
            value, (lower, upper) = self._series(level).cast(pl.Float64), self._ends(level, alpha)
            keys = self._keys(level)
            block = pl.DataFrame({"value": value, "lower": lower, "upper": upper}).with_columns(
                pl.col("lower", "upper").fill_nan(None)
            )
            texts = [
                (
                    as_text(keys[column]) if column in keys.columns else pl.Series([""] * block.height, dtype=pl.String)
                ).alias(new)
                for column, new in beside.items()
            ]
            names = pl.Series(self._level_name, [name]).new_from_index(0, block.height)
            parts.append(pl.DataFrame([names, *texts, *block.get_columns()]))
        long = pl.concat(parts)
        error = pl.max_horizontal(pl.col("value") - pl.col("lower"), pl.col("upper") - pl.col("value"))
        error = pl.when(pl.col("value").is_not_null()).then(error).alias("error")
        table = long.select(self._level_name, *beside.values(), "value", error, "lower", "upper")
        return cast("Table_co", as_kind(table, self._kind))

    def _ends(self, level: int, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the intervals of a level's numbers; NaN for suppressed ones, and where they would tell these."""
        middle = self._fitted.floats(level)
        error = level_errors(self._tree.shape, self._noise, self._variances, alpha)[level][:, None]
        error = error + 2.0**self._fitted.exponent * 2  # what the grid of exact sums moves
        lower, upper = middle - error, middle + error
        if self._lifted:
            lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        if self._hidden is not None:
            told = (self._hidden[level] == 0) & (not self._veiled)
            lower, upper = (np.where(told, end, math.nan) for end in (lower, upper))
        return lower.ravel(), upper.ravel()

    @property
    def noise(self) -> Table_co:
        """One row per measured level: column, aggregate, mechanism, scale (column unit), threshold."""
        return cast("Table_co", as_kind(noise_table(self._outputs, self._noise), self._kind))

    def plot(
        self,
        level: str | None = None,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        sort: str | None = None,
    ) -> Any:
        """A chart of one level with 95% margins of error (Altair), as `Release.plot` draws it; no row is read for it.

        Input:  level: its name, by default the lowest level with at most 25 numbers; the others as for `Release.plot`
        Output: an Altair chart; bars are in the order of the tree, or sorted with sort=. If two nodes have one key, the
                keys above them are part of their labels
        Errors: UnknownColumn for a level that there is not; UnsupportedOperation for "total", which is one number, and
                without the extra `charts`; InvalidArgument
        """
        place, look = (
            drawn_level(self._tree) if level is None else self._place(level),
            read_look(title, width, height, sort),
        )
        if not self._tree.by(place):
            raise UnsupportedOperation("plot(): the total is one number: type out['total'], or plot a level below it.")
        by, keys = labelled(self._tree, place, self._keys(place))
        value, (lower, upper) = self._series(place).cast(pl.Float64), self._ends(place, 0.05)
        numbers = pl.DataFrame({"value": value, "lower": lower, "upper": upper}).fill_nan(None)
        error = pl.max_horizontal(pl.col("value") - pl.col("lower"), pl.col("upper") - pl.col("value"))
        error = pl.when(pl.col("value").is_not_null()).then(error).alias("error")
        numbers = numbers.select(pl.lit(self._value).alias("column"), "value", error, "lower", "upper")
        errors = pl.concat([keys.rename(dict(zip(by, keys_beside(by), strict=True))), numbers], how="horizontal")
        words = in_words(self.derivation, self._value)
        heading = heading_of(title_of(self.derivation, words, by), self.cost, self._statement, self._steps)
        return grouped_chart(Grouped(by, errors, self._series(place).dtype, words), heading, look)

    # In words

    def report(self) -> Report:
        """The privacy statement of all levels together: prints as text, shows as HTML, `to_json()` for machines."""
        steps = {"post_processing": list(self._steps)} if self._steps else {}
        errors = level_errors(self._tree.shape, self._noise, self._variances, 0.05)
        words = tuple((name, f"± {float(error.max()):,.4g}") for name, error in zip(self.levels, errors, strict=True))
        return Report({**self._statement, **steps}, words)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} ({size:,})" for name, size in zip(self.levels, self._tree.shape.sizes, strict=True))
        sentence = (
            f"A hierarchy of {len(self)} levels: {sizes}.\n\nReleased at {self.cost}. Read one: out[{self.levels[1]!r}]"
        )
        stored = [self._statement["stored"]] if "stored" in self._statement else []
        return visible("\n".join([sentence, *stored]), keep="\n")
