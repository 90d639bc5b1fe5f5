"""`Release.plot`: the released numbers as bars, lines or shaded cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Formula, ReleasedColumn
from dpframe.release.accuracy import (
    check_column,
)
from dpframe.release.answer import (
    Numbers,
    known_nonnegative,
)
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.charts import (
    Grouped,
    Look,
    grouped_chart,
    heatmap,
    in_words,
    read_look,
    title_of,
)
from dpframe.release.shown.crosstab import (
    Crosstab,
    unlike,
)
from dpframe.release.shown.error_tables import crosstab, error_table
from dpframe.release.shown.left_out import scope
from dpframe.release.shown.released import Released


class Draws(Released[Table_co]):
    """A release of numbers that can be drawn."""

    _numbers: Numbers

    def plot(
        self,
        column: str | None = None,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        sort: str | None = None,
        label: str | None = None,
        kind: str | None = None,
    ) -> Any:
        """A chart of the released numbers with their 95% margins of error (Altair); no row is read.

        Groups are bars with whiskers: horizontal bars for names, vertical bars for bins and
        numbers. Dates and bins of dates are lines in a band; a crosstab has shaded cells. With two
        keys, one of them becomes colours if it has at most six values. A number that is no larger
        than its margin of error is pale, in a crosstab hatched. Values that are dates or times are
        points, since a bar would need a zero. If there are more groups than fit into 800 pixels,
        the largest are shown, and the subtitle says how many are not.

        Several quantiles of one column are drawn together, unless `column` names one of them.

        Input:  column: which released column, by default the first; label: the numbers in your
                words, such as "people per day", for the title and the axis; kind: "heatmap" for a
                row of shaded cells for each group with all released columns, as of a cohort table;
                title: in place of that from the question, "" for none; width, height: size of the
                picture (pixels; for a crosstab the largest size); sort: "keys" for the order of the
                table, or "descending", "ascending"
        Output: an Altair chart for light and dark pages, which a notebook shows and
                `.save("chart.png")` writes
        Errors: UnsupportedOperation without the extra `charts`, for a single number, and if no
                group was released; InvalidArgument for other columns and arguments
        """
        numbers, look = self._usual, read_look(title, width, height, sort, label)
        names = self._drawable(column)
        if kind is not None:
            return self._heatmap(kind, look, label)
        output_shown = _of_numbers(numbers, column or names[0])
        covers = numbers.covers_of(output_shown)
        words = label or in_words(self.derivation, output_shown.name)
        question_title = title_of(self.derivation, words, numbers.by, numbers.layout.normalize)
        lines = [*self._said(column=output_shown.name), *self._unseen]
        heading = self._heading(question_title, lines)
        grid = crosstab(numbers, 0.05)
        if grid is not None:
            signed, parts = not known_nonnegative(output_shown), bool(numbers.layout.normalize)
            grid = grid.in_percent() if parts else grid
            return heatmap(grid, words, heading, look, signed=signed, covers=covers)
        errors, by = error_table(numbers, 0.05), numbers.by
        ranks = self._quantiles(output_shown) if column is None else {}
        if ranks:
            words = label or f"Quantiles of {output_shown.name.rpartition('_')[0]}"
            heading = self._heading(title_of(self.derivation, words, by), lines)
            errors, by = _by_rank(errors, by, ranks)
        else:
            errors = errors.filter(pl.col("column") == output_shown.name)
        collected, sure = numbers.noise.collected is not None, output_shown.name not in self._likely
        dtype = numbers.shown.schema[output_shown.name]
        grouped = Grouped(by, errors, dtype, words, rest=collected, sure=sure, covers=covers)
        return grouped_chart(grouped, heading, look)

    @property
    def _usual(self) -> Numbers:
        """The numbers with the intervals that people expect:
        those of rates are for the population if this is free.

        The noise of a rate may be a tenth of the sampling error, and its margin would be read as
        the whole error.
        """
        numbers = self._numbers
        return numbers if numbers.usual else replace(numbers, usual=True)

    def _said(self, ci: float | None = None, column: str | None = None) -> list[str]:
        """The coverage of a confidence's intervals, if some are shown, and
        the losses by limits and bounds.
        """
        covered = scope(self._numbers, ci, self._statement.get("left_out", ()), column)
        return covered + self._left_out(column)

    def _drawable(self, column: str | None) -> list[str]:
        """The names of the released columns. Errors: where there is nothing to draw, see `plot`."""
        numbers = self._numbers
        names = [output.name for output in numbers.outputs]
        check_column(column, names, "plot")
        if not numbers.by:
            instead = ".table" if numbers.layout.is_description or len(names) != 1 else ".value"
            raise UnsupportedOperation(
                f"plot(): this release has no groups, so there is no chart: type {instead}"
            )
        if not names:
            raise UnsupportedOperation(
                "plot(): this release has keys alone, so there are no numbers to draw."
            )
        return names

    @property
    def _likely(self) -> list[str]:
        """The quantiles whose margins of error are not proved; see `accuracy`."""
        quantities = ((output.name, output.total) for output in self._numbers.outputs)
        return [name for name, m in quantities if m.between and not m.surely(0.05)]

    @property
    def _unseen(self) -> list[str]:
        """A sentence for each column whose bounds `dp.Auto` could not choose."""
        return [
            f"Bounds of {column!r} could not be chosen surely, noise hides most values; they are "
            f"{ends}: see report()."
            for column, ends in self._statement.get("chosen", {}).get("unseen", {}).items()
        ]

    def _quantiles(self, output: ReleasedColumn) -> dict[str, str]:
        """The names of the quantiles of a column, and the rank of each as text;
        none where there is one alone.
        """
        total = output.total
        if output.rank is None or total.column is None:
            return {}
        same = [
            o
            for o in self._numbers.outputs
            if o.rank is not None and o.total.column == total.column
        ]
        return (
            {o.name: f"{float(o.rank):g}" for o in same if o.rank is not None}
            if len(same) > 1
            else {}
        )

    def _heatmap(self, kind: str, look: Look, label: str | None) -> Any:
        """The released columns beside one another, for each group a row of shaded cells."""
        numbers = self._usual
        outputs = [o for o in numbers.outputs if estimator_of(o).is_number and o.dtype is None]
        # counts would have another scale
        outputs = [o for o in outputs if o.formula is Formula.MEAN] or outputs
        if (
            not isinstance(kind, str)
            or kind != "heatmap"
            or not numbers.layout.is_long
            or not outputs
        ):
            raise InvalidArgument(
                "plot: kind='heatmap' is for numbers of groups, a column for each number."
            )
        kinds = {numbers.covers_of(output) for output in outputs}
        if len(kinds) > 1:  # one picture has intervals of one kind
            numbers, kinds = replace(numbers, usual=False), {numbers.covers}
        errors, height = error_table(numbers, 0.05), numbers.long.height
        tables = [errors.filter(pl.col("column") == output.name) for output in outputs]
        values = np.array([table["value"].to_list() for table in tables], np.object_).T
        lower, upper = (
            np.column_stack([table[end].fill_null(np.nan).to_numpy() for table in tables])
            for end in ("lower", "upper")
        )
        rows, columns = (
            numbers.long.select(numbers.by).rows(),
            [(output.name,) for output in outputs],
        )
        sizes = height, len(outputs)
        grid = Crosstab(numbers.by, ("",), rows, columns, values, lower, upper, sizes, whole=False)
        words = label or "Released numbers"
        named = words if label or len(outputs) > 3 else ", ".join(output.name for output in outputs)
        heading = self._heading(title_of(self.derivation, named, numbers.by), self._said())
        signed = not all(_never_negative(output) for output in outputs)
        return heatmap(grid, words, heading, look, signed=signed, covers=kinds.pop())


def _of_numbers(numbers: Numbers, name: str) -> ReleasedColumn:
    """The released column of this name. Errors: UnsupportedOperation if its values are selected."""
    (output,) = [output for output in numbers.outputs if output.name == name]
    if not estimator_of(output).is_number:
        raise UnsupportedOperation(f"plot(): {name!r} holds selected values, not numbers to draw.")
    return output


def _by_rank(
    errors: pl.DataFrame, by: tuple[str, ...], ranks: Mapping[str, str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The errors of some quantiles, with their rank as one more key; and all keys."""
    name = unlike("quantile", set(by))
    errors = errors.filter(pl.col("column").is_in(list(ranks)))
    rank = errors["column"].replace_strict(ranks, return_dtype=pl.String).alias(name)
    return errors.insert_column(len(by), rank), (*by, name)


def _never_negative(output: ReleasedColumn) -> bool:
    """Whether no number of a column can be negative without noise."""
    return known_nonnegative(output) or (output.bounds is not None and output.bounds.lower >= 0)
