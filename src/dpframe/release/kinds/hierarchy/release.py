"""A released hierarchy: every level as a table, with numbers that add up from level to level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dpframe.engine import Table_co, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import HIERARCHY, Tree
from dpframe.release.accuracy import check_alpha, read_ci
from dpframe.release.answer import keys_beside, known_nonnegative, read_suppression
from dpframe.release.kinds.hierarchy.agreeing import nonnegative_levels, on_grid, whole_levels
from dpframe.release.kinds.hierarchy.errors import level_errors
from dpframe.release.kinds.hierarchy.level_tables import LevelTables
from dpframe.release.shown import (
    Grouped,
    as_text,
    grouped_chart,
    in_words,
    largest_error,
    noise_table,
    read_look,
    title_of,
)
from dpframe.usage import RELEASED, explains

_MOST = 25  # the largest number of bars of the level that is drawn if none is typed


@explains("out.{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class HierarchyRelease(LevelTables[Table_co], Mapping[str, Any]):
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
        alpha, keys = check_alpha(alpha), (*self._tree.columns, *self._tree.crossed)
        names = dict(zip(keys, keys_beside(keys), strict=True))
        tables = [
            pl.concat([self._keys(level).rename(names, strict=False), self._errors(level, alpha)], how="horizontal")
            for level in range(len(self))
        ]
        table: Table_co = as_kind(self._together(tables, list(names.values())), self._kind)
        return table

    def _errors(self, level: int, alpha: float) -> pl.DataFrame:
        """The numbers of a level with their errors: value, error, lower, upper."""
        lower, upper = (pl.Series(end, nan_to_null=True) for end in self._ends(level, alpha))
        numbers = pl.DataFrame({"value": self._series(level).cast(pl.Float64), "lower": lower, "upper": upper})
        return numbers.select("value", largest_error(), "lower", "upper")

    @property
    def noise(self) -> Table_co:
        """One row per measured level: column, aggregate, mechanism, scale (column unit), threshold."""
        table: Table_co = as_kind(noise_table(self._outputs, self._noise), self._kind)
        return table

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
        place = _drawn_level(self._tree) if level is None else self._place(level)
        look = read_look(title, width, height, sort)
        if not self._tree.by(place):
            raise UnsupportedOperation("plot(): the total is one number: type out['total'], or plot a level below it.")
        by, keys = _labelled(self._tree, place, self._keys(place))
        named = keys.rename(dict(zip(by, keys_beside(by), strict=True)))
        numbers = self._errors(place, 0.05).insert_column(0, pl.Series("column", [self._value] * keys.height))
        errors = pl.concat([named, numbers], how="horizontal")
        words = in_words(self.derivation, self._value)
        heading = self._heading(title_of(self.derivation, words, by))
        return grouped_chart(Grouped(by, errors, self._series(place).dtype, words), heading, look)

    # In words

    def _margins(self) -> list[tuple[str, str]]:
        errors = level_errors(self._tree.shape, self._noise, self._variances, 0.05)
        return [(name, f"± {float(error.max()):,.4g}") for name, error in zip(self.levels, errors, strict=True)]

    @property
    def _words(self) -> str:
        sizes = ", ".join(f"{name} ({size:,})" for name, size in zip(self.levels, self._tree.shape.sizes, strict=True))
        return (
            f"A hierarchy of {len(self)} levels: {sizes}.\n\nReleased at {self.cost}. Read one: out[{self.levels[1]!r}]"
        )


def _drawn_level(tree: Tree) -> int:
    """The place of the lowest level with at most 25 numbers, or of the level below the root."""
    fitting = [level for level in range(1, len(tree.names)) if tree.shape.sizes[level] * tree.cells <= _MOST]
    return fitting[-1] if fitting else 1


def _labelled(tree: Tree, level: int, keys: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame]:
    """One column with a label for each node, and the crossed columns.

    The label is the node's own key. If two nodes of the level have one key, such as two towns of one name, the keys
    above it stand before it.

    Input:  keys: a row for each number of the level, as `Tree.by` orders its columns
    """
    columns = tree.columns[:level]
    crossed = [pl.col(name) for name in tree.crossed]
    if level <= 1 or keys[columns[-1]].n_unique() == tree.shape.sizes[level]:
        return (columns[-1], *tree.crossed), keys.select(pl.col(columns[-1]), *crossed)
    texts = pl.concat_str([as_text(keys[name]).fill_null("null") for name in columns], separator=", ")
    name = ", ".join(columns)
    return (name, *tree.crossed), keys.select(texts.alias(name), *crossed)
