"""A hierarchy as a kind of answer: every level as a release, with numbers
that add up from level to level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from typing import Any

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.arrays import Integers
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.fields import Names
from dpframe.plan import HIERARCHY, Hierarchy, ReleasedColumn, Tree
from dpframe.release.accuracy import check_alpha, read_ci
from dpframe.release.answer import (
    SMALL,
    Numbers,
    Reader,
    Suppression,
    check_limit_of_numbers,
    hidden_in_tree,
    keys_beside,
    known_nonnegative,
    read_base,
    read_suppression,
)
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.hierarchy.agreeing import (
    Agreeing,
    nonnegative_levels,
    on_grid,
    whole_levels,
)
from dpframe.release.kinds.hierarchy.draw import (
    drawn_levels,
    fitted_levels,
    level_variances,
    log_noise_of_levels,
)
from dpframe.release.pricing import Fitted, NoisePlan, Price
from dpframe.release.shown import (
    Grouped,
    Record,
    Release,
    Released,
    as_text,
    error_table,
    errors_together,
    grouped_chart,
    in_words,
    noise_table,
    read_look,
    title_of,
    unlike,
    with_every_key,
    write_sdmx,
)
from dpframe.release.stored import Answer
from dpframe.usage import RELEASED, explains

_MOST = 25  # the largest number of bars of the level that is drawn if none is typed
_SHOWN = 12  # rows of a level in a notebook


@explains("out.{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class HierarchyRelease(Released[Table_co], Mapping[str, Release[Table_co]]):
    """A released hierarchy: a mapping from the names of its levels to releases,
    from "total" down to the leaves.

    `out["district"]` is a `Release` with a row for each district; `out["total"].value` is the
    total. `out.table` has the leaves. The numbers of children add up to the number of their parent
    exactly, also as floats. `nonnegative`, `round` and `suppress` change all levels together, so
    that they still add up. If one level is changed alone, `out["district"].round()`, it no longer
    agrees; it warns of that, and its report says so. Files have all levels in one table, or the one
    of `level=`. `cost` is the loss that was charged once for all.

    >>> import polars as pl, dpframe as dp
    >>> people = pl.DataFrame({"region": ["n", "n", "s"], "town": ["Kiel", "Husum", "Ulm"]})
    >>> towns = pl.DataFrame(
    ...     {"region": ["n", "n", "s", "s"], "town": ["Kiel", "Husum", "Ulm", "Aalen"]}
    ... )
    >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
    >>> out = frame.hierarchy(["region", "town"], keys=towns).release(epsilon=0.5)
    >>> out.levels, out["town"].table.columns
    (('total', 'region', 'town'), ['region', 'town', 'count'])
    >>> bool(out["region"].table["count"].sum() == out["total"].value)
    True
    """

    _habits = HIERARCHY

    _tree: Tree
    _outputs: tuple[ReleasedColumn, ...]
    _leaf_keys: pl.DataFrame
    _noise: NoisePlan
    _drawn: pl.DataFrame
    _value: str = "count"
    _changed: Agreeing | None = None
    _base: int = 1  # numbers are multiples of it, if they were rounded
    _exact: Agreeing | None = None  # the numbers before they were rounded
    _lifted: bool = False  # whether negative numbers were removed, so that intervals end at 0
    _ci: float | None = None
    _suppression: Suppression | None = None

    _numbered = True

    # Levels

    @property
    def levels(self) -> Names:
        """The names of the levels, from the top: "total", then the columns of the tree."""
        return self._tree.names

    @property
    def table(self) -> Table_co:
        """The table of the leaves, in the kind of table that was protected."""
        return self[self.levels[-1]].table

    def __getitem__(self, level: str) -> Release[Table_co]:
        """One level. Errors: UnknownColumn."""
        place = self._place(level)
        numbers = Numbers(
            self._long(place, self._numbers),
            self._tree.by(place),
            (replace(self._outputs[place], name=self._value),),
            self._noise_of(place),
            before=None if self._changed is None else self._long(place, self._fitted),
            lifted=self._lifted,
            base=self._base,
            unrounded=None if self._exact is None else self._long(place, self._exact),
            suppression=self._suppression,
            hidden_together=None if self._hidden is None else self._hidden[place].ravel(),
        )
        return Release(self._record, numbers, len(self), self._ci, _steps=self._steps)

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def _place(self, level: object) -> int:
        if level not in self.levels:
            raise UnknownColumn(
                f"hierarchy: there is no level {level!r}. Levels: {', '.join(self.levels)}."
            )
        return self.levels.index(str(level))

    def _keys(self, level: int) -> pl.DataFrame:
        """The keys of a level's table, a row for each node and crossed key."""
        cells = self._tree.cells
        rows = (self._tree.first_leaves[level][:, None] * cells + np.arange(cells)).ravel()
        return self._leaf_keys[rows].select(self._tree.by(level))

    def _long(self, level: int, numbers: Agreeing) -> pl.DataFrame:
        """The table of a level: its keys, and its numbers, which are
        integers where they are whole.
        """
        values = numbers.levels[level] if numbers.exponent == 0 else numbers.floats(level)
        return pl.concat(
            [self._keys(level), pl.DataFrame({self._value: values.ravel()})], how="horizontal"
        )

    def _noise_of(self, level: int) -> NoisePlan:
        """The level's own noise, if it is measured, and the errors of its
        numbers after all levels were fitted.
        """
        # what the grid of exact sums moves
        fitted, grid = self._errors[level], 2.0**self._fitted.exponent * 2
        cells = self._tree.cells
        moved = np.repeat(fitted.moved + grid, cells)
        parts = {"cell": Fitted(np.repeat(fitted.deviation, cells), moved, fitted.normal)}
        own = tuple(
            noise for noise in self._noise.noises if noise.allotment.names == (self.levels[level],)
        )
        return replace(self._noise, noises=own, fitted=parts)

    @cached_property
    def _errors(self) -> list[Fitted]:
        return fitted_levels(self._tree.shape, self._noise, self._variances)

    @cached_property
    def _fitted(self) -> Agreeing:
        """The least-squares estimates of all nodes, as they were released: they add up exactly."""
        shape, noisy = self._tree.shape, []
        by_level = {
            int(level): part["value"].to_numpy() for (level,), part in self._drawn.group_by("level")
        }
        for level, size in enumerate(shape.sizes):
            values = by_level.get(level, np.zeros(0))
            noisy.append(
                values.reshape(size, self._tree.cells)
                if len(values)
                else np.zeros((size, self._tree.cells))
            )
        return on_grid(shape, shape.estimates(noisy, self._variances))

    @cached_property
    def _variances(self) -> list[float]:
        """The variance of the noise of each level; ones where no unit can change a number."""
        variances = level_variances(self.levels, self._noise)
        return variances if all(variances) else [1.0] * len(variances)

    @property
    def _numbers(self) -> Agreeing:
        return self._fitted if self._changed is None else self._changed

    @cached_property
    def _hidden(self) -> list[Integers] | None:
        """Why numbers of each level are not shown, by the codes of
        `release.answer.suppression`; None if all are.
        """
        if self._suppression is None:
            return None
        numbers, below = self._numbers, self._suppression.below
        values = [numbers.floats(level) for level in range(len(self.levels))]
        if not self._suppression.secondary:
            return [np.where(level < below, SMALL, 0) for level in values]
        reader = Reader(
            below, 0.0 if self._lifted else -math.inf, whole=numbers.exponent == 0
        ).in_base(self._base)
        return hidden_in_tree(self._tree.shape, [level / self._base for level in values], reader)

    # All levels together, or one

    def _in_kind(self, kind: Kind) -> Any:
        return as_kind(
            self._together([self[level]._in_kind("polars") for level in self], self._by), kind
        )

    def _marked(self, kind: Kind) -> Any:
        return as_kind(
            self._together([self[level]._marked("polars") for level in self], self._by), kind
        )

    @property
    def _by(self) -> Names:
        return (*self._tree.columns, *self._tree.crossed)

    def _together(self, tables: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
        """Tables of all levels in one: `level` first, keys as text, and ""
        in the columns of lower levels.
        """
        name = unlike("level", {*self._by, self._value})
        full = [with_every_key(table, dict.fromkeys(by, "")) for table in tables]
        levels = zip(self.levels, full, strict=True)
        return pl.concat(
            [table.select(pl.lit(level).alias(name), pl.all()) for level, table in levels]
        )

    def to_polars(self, level: str | None = None) -> pl.DataFrame:
        """A level, or all of them in one table: `level` first, keys as text, and ""
        in the columns of lower levels.
        """
        return super().to_polars() if level is None else self[level].to_polars()

    def to_pandas(self, level: str | None = None) -> Any:
        """A level, or all of them in one pandas table; see `to_polars`."""
        return super().to_pandas() if level is None else self[level].to_pandas()

    def to_arrow(self, level: str | None = None) -> Any:
        """A level, or all of them in one PyArrow table; see `to_polars`."""
        return super().to_arrow() if level is None else self[level].to_arrow()

    def to_csv(
        self,
        path: Any = None,
        level: str | None = None,
        *,
        certificate: bool = False,
        metadata: bool = False,
        notes: bool = False,
    ) -> str | None:
        """A level, or all of them together, as CSV: a text, or a file if
        there is a path; see `to_polars`.

        Input:  path: the file; without one, the text is returned; level: its name; certificate:
                whether the certificate is written beside the file, as `table.csv.certificate.json`;
                metadata, notes: see `Release.to_csv`
        """
        if level is not None:
            return self[level].to_csv(path, certificate=certificate, metadata=metadata, notes=notes)
        return super().to_csv(path, certificate=certificate, metadata=metadata, notes=notes)

    def to_parquet(self, path: Any, level: str | None = None) -> None:
        """A level, or all of them together, as a Parquet file: see `Release.to_parquet`.
        Input: path, of the file.
        """
        super().to_parquet(path) if level is None else self[level].to_parquet(path)

    def to_latex(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in LaTeX.
        For path and options see `Release.to_latex`.
        """
        return (
            super().to_latex(path, **options)
            if level is None
            else self[level].to_latex(path, **options)
        )

    def to_html(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in plain HTML.
        For path and options see `Release.to_html`.
        """
        return (
            super().to_html(path, **options)
            if level is None
            else self[level].to_html(path, **options)
        )

    def _sheets(self) -> dict[str, tuple[Any, bool]]:
        return {name: (self[name]._to_text(), False) for name in self}

    @property
    def _decimals(self) -> Mapping[str, int]:
        places = [self[name]._decimals for name in self]
        return {self._value: min(own.get(self._value, 0) for own in places)}

    @property
    def _row_keys(self) -> Names:
        return ("level", *self._by)

    @property
    def _hides(self) -> bool:
        return self._suppression is not None

    def to_sdmx(
        self, path: Any = None, level: str | None = None, *, structure: str = "DPFRAME:TABLE(1.0.0)"
    ) -> str | None:
        """A level, or all of them together, in SDMX-CSV 2.0: see `Release.to_sdmx`.

        A number of a higher level has the code "_T", for a total, in the dimensions of the levels
        below it.

        Input:  path: the file; level: its name; structure: the data flow, as AGENCY:ID(VERSION)
        Errors: InvalidArgument for another structure
        """
        if level is not None:
            return self[level].to_sdmx(path, structure=structure)
        return write_sdmx([self[name]._numbers for name in self], path, structure)

    def _repr_html_(self) -> str:
        parts = []
        for name in self:
            table = self[name]._marked("polars")
            short = as_kind(table.head(_SHOWN), "pandas").to_html(index=False, border=0)
            more = (
                f"<p>… and {table.height - _SHOWN:,} more rows.</p>"
                if table.height > _SHOWN
                else ""
            )
            parts.append(f"<p><b>{escape(name)}</b></p>{short}{more}")
        sentence = (
            f"All levels released together at {self.cost}; they add up. Errors: .accuracy(), "
            ".with_ci()."
        )
        return (
            "<div "
            f"class='dpframe'>{''.join(parts)}<p>{escape(sentence)}{self._notes_html}</p></div>"
        )

    # Post-processing

    def nonnegative(self) -> HierarchyRelease[Table_co]:
        """Remove negative numbers from every level, from the top down; children still add up.
        It is free.

        Output: a release in which the total is kept (or is 0), and the children of each node are
                the nearest numbers that are not negative and add up to the node's new number.
                Numbers may no longer be whole: see `round`
        Bound:  no row is read: see `dpframe.release.kinds.hierarchy.agreeing.nonnegative_levels`
        Source: InfTDA, Boninsegna and Silvestri 2024, arXiv:2412.09256, for the way from the top
                down
        Errors: UnsupportedOperation for sums of values that may be negative
        """
        if not known_nonnegative(self._outputs[-1]):
            raise UnsupportedOperation(
                "nonnegative(): these are sums of values that may be negative: see bounds=."
            )
        shape, numbers = self._tree.shape, self._numbers
        values = nonnegative_levels(
            shape, [numbers.floats(level) for level in range(len(self.levels))]
        )
        sentence = (
            "nonnegative(): the nearest numbers that are not negative, from the top down; levels "
            "still add up."
        )
        changed = on_grid(shape, values)
        return replace(
            self,
            _changed=changed,
            _lifted=True,
            _base=1,
            _exact=None,
            _steps=(*self._steps, sentence),
        )

    def round(self, base: int = 1) -> HierarchyRelease[Table_co]:
        """Round the numbers of every level to integers, or multiples of 5 or 10, that still add up.
        It is free.

        Input:  base: of which whole number they become multiples: `round(5)`
        Output: a release in which each number becomes one of its two neighbouring multiples, and
                children add up. Beside protected hidden numbers, intervals are those of the rounded
                numbers, wider by the base
        Bound:  no row is read: see `dpframe.release.kinds.hierarchy.agreeing.whole_levels`
        """
        multiple = read_base(base)
        step = self._suppression
        if step is not None:
            check_limit_of_numbers(step.below, multiple, secondary=step.secondary)
        numbers = "integers" if multiple == 1 else f"multiples of {multiple}"
        sentence = f"round(): {numbers} that still add up from level to level."
        changed = whole_levels(self._tree.shape, self._numbers, multiple)
        if changed.exponent > 0:
            raise UnsupportedOperation(
                "round(): these numbers are so large that they are whole already."
            )
        return replace(
            self,
            _changed=changed,
            _base=multiple,
            _exact=self._numbers,
            _steps=(*self._steps, sentence),
        )

    def suppress(
        self,
        below: float,
        marker: str | tuple[str, str] | None = None,
        *,
        secondary: bool | None = None,
    ) -> HierarchyRelease[Table_co]:
        """Replace small numbers by null. It is post-processing and free.

        Input:  below: a number above 0: smaller ones are hidden; marker: the text that stands for
                them in files, such as "<10"; a pair has a second text for numbers that are hidden
                with them; secondary: whether others are hidden too, so that each hidden number can
                have values that are half of the limit apart, whatever all levels say together, as
                they are by default; see `Release.suppress`
        Output: a release in which these numbers are null, on every level. Of several such steps the
                strictest applies. After `nonnegative()`, a release with secondary=True has no
                intervals
        Bound:  what is hidden follows from the released numbers: see
                `dpframe.release.answer.suppression`
        """
        step = read_suppression(below, marker, secondary, sums=True)
        check_limit_of_numbers(step.below, self._base, secondary=step.secondary)
        return replace(
            self, _suppression=step.after(self._suppression), _steps=(*self._steps, step.sentence)
        )

    # Errors

    def with_ci(self, ci: float = 0.95) -> HierarchyRelease[Table_co]:
        """Add the ends of a confidence interval beside each number, such as `count_low` and
        `count_high`. It is free.

        Each interval holds the number of its node without noise with probability ci; see
        `accuracy`.
        """
        ends = {f"{self._value}_low", f"{self._value}_high"}
        if clash := ends & {*self._by}:
            name = min(clash)
            raise InvalidArgument(
                f"with_ci: there is a key column {name!r}; rename({{{name!r}: 'key'}}) it before."
            )
        return replace(self, _ci=read_ci(ci))

    def accuracy(self, alpha: float = 0.05) -> Table_co:
        """One row per number of every level: level, keys, value, error, lower, upper.

        Input:  alpha: the probability of a larger error
        Output: keys as text, and "" for levels below; the interval of the fitted number, around the
                estimate as it was released. After `nonnegative()` its part below 0 is left out. The
                error is the largest distance from the value to an end of its interval
        Bound:  each interval holds its node's number without noise, under the limits and bounds,
                with probability 1 - alpha; all of them together hold less often. With Gaussian
                noise an estimate is normal with the variance of
                `dpframe.theory.formulas.trees.Levels.variances`. With Laplace noise it is a sum of
                independent Laplace noises, and the bound of `log_concave_error` holds. Rounding of
                the noise is added
        """
        tables = errors_together(
            [self[level]._numbers for level in self], self._by, check_alpha(alpha)
        )
        errors = [table.drop("column") for table in tables]
        table: Table_co = as_kind(self._together(errors, keys_beside(self._by)), self._kind)
        return table

    @property
    def noise(self) -> Table_co:
        """One row per measured level: column, aggregate, mechanism,
        scale (column unit), threshold.
        """
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
        label: str | None = None,
    ) -> Any:
        """A chart of one level with 95% margins of error (Altair), as `Release.plot`
        draws it; no row is read for it.

        Input:  level: its name, by default the lowest level with at most 25 numbers; title, width,
                height, sort, label: as for `Release.plot`
        Output: an Altair chart; bars are in the order of the tree, or sorted with sort=. If two
                nodes have one key, the keys above them are part of their labels
        Errors: UnknownColumn for a level that there is not; UnsupportedOperation for "total", which
                is one number, and without the extra `charts`; InvalidArgument
        """
        place = _drawn_level(self._tree) if level is None else self._place(level)
        look = read_look(title, width, height, sort, label)
        if not self._tree.by(place):
            raise UnsupportedOperation(
                "plot(): the total is one number: type out['total'].value, or plot another level."
            )
        by, keys = _labelled(self._tree, place, self._keys(place))
        named = keys.rename(dict(zip(by, keys_beside(by), strict=True)))
        numbers = self[self.levels[place]]._numbers
        errors = error_table(numbers, 0.05).select("column", "value", "error", "lower", "upper")
        errors = pl.concat([named, errors], how="horizontal")
        words = look.words or in_words(self.derivation, self._value)
        heading = self._heading(title_of(self.derivation, words, by), self._scope)
        return grouped_chart(
            Grouped(by, errors, numbers.shown.schema[self._value], words), heading, look
        )

    # In words

    def _margins(self) -> list[tuple[str, str]]:
        errors = [float(np.max(level.error(0.05))) for level in self._errors]
        return [(name, f"± {error:,.4g}") for name, error in zip(self.levels, errors, strict=True)]

    @property
    def _words(self) -> str:
        sizes = ", ".join(
            f"{name} ({size:,})"
            for name, size in zip(self.levels, self._tree.shape.sizes, strict=True)
        )
        return (
            f"A hierarchy of {len(self)} levels: {sizes}.\n\nReleased at {self.cost}. Read one: "
            f"out[{self.levels[1]!r}]"
        )


def _drawn_level(tree: Tree) -> int:
    """The place of the lowest level with at most 25 numbers, or of the level below the root."""
    fitting = [
        level
        for level in range(1, len(tree.names))
        if tree.shape.sizes[level] * tree.cells <= _MOST
    ]
    return fitting[-1] if fitting else 1


def _labelled(tree: Tree, level: int, keys: pl.DataFrame) -> tuple[Names, pl.DataFrame]:
    """One column with a label for each node, and the crossed columns.

    The label is the node's own key. If two nodes of the level have one key, such as two towns of
    one name, the keys above it stand before it.

    Input:  keys: a row for each number of the level, as `Tree.by` orders its columns
    """
    columns = tree.columns[:level]
    crossed = [pl.col(name) for name in tree.crossed]
    if level <= 1 or keys[columns[-1]].n_unique() == tree.shape.sizes[level]:
        return (columns[-1], *tree.crossed), keys.select(pl.col(columns[-1]), *crossed)
    texts = pl.concat_str(
        [as_text(keys[name]).fill_null("null") for name in columns], separator=", "
    )
    name = ", ".join(columns)
    return (name, *tree.crossed), keys.select(texts.alias(name), *crossed)


# The kind of answer


class HierarchyAnswer(AnswerKind[Hierarchy]):
    """One table for each level of a tree, which add up."""

    alone = "the levels of a hierarchy share their price; release it by itself."

    def noise(self, question: Hierarchy, price: Price) -> NoisePlan:
        """The noise of each level.
        Of several ways to spend the price, the one whose fitted levels have the least.
        """
        return price.plan(question, partial(log_noise_of_levels, question))

    def answer(self, question: Hierarchy, plan: NoisePlan, salt: int) -> Answer:
        """The noisy totals of all levels."""
        return Answer(drawn_levels(question, plan, engine.totals(question, salt)), {})

    def released(
        self, question: Hierarchy, plan: NoisePlan, answer: Answer, record: Record
    ) -> HierarchyRelease[Any]:
        """A `HierarchyRelease`."""
        keys, (value, _) = engine.listed_keys(question), question.aggregates[0]
        return HierarchyRelease(
            record, question.levels, question.outputs, keys, plan, answer.long, value
        )
