"""What a release gives back: plain, materialised data. Reading it again never draws again."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.budget.losses import Loss
from dpframe.engine.tables import Kind, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.ask import Layout
from dpframe.plan.explain import Derivation
from dpframe.plan.habits import RELEASE, Habits
from dpframe.plan.measures import Output
from dpframe.release.accuracy import check_alpha, check_rows, error_of_sum, interval_of, rows_fewer
from dpframe.release.calibrate import NoisePlan
from dpframe.release.charts import bars, heatmap
from dpframe.release.columns import check_ci, interval_column, low_and_high
from dpframe.release.export import grid_html, long_html, write_excel, write_parquet
from dpframe.release.formulas import mean_of
from dpframe.release.layout import Grid, Number, Read, grid_of, laid_out
from dpframe.release.postprocess import adds_up, is_total, known_nonnegative, nonnegative, rounded, table_of
from dpframe.release.ratios import merged_mean_interval
from dpframe.release.reconcile import error_of_part
from dpframe.release.statement import Report

__all__ = ["Release", "noise_table"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Release(Habits):
    """A released table, what it cost, and how exact it is.

    `table` is the user's kind of table: pandas for pandas, Polars for Polars, PyArrow for PyArrow. `value` is the one
    number of an ungrouped release of one column. `cost` is the loss that was charged, `when` the time (UTC) at which
    the noise was drawn: long ago for the stored answer of a name. `nonnegative`, `round` and `suppress` give another
    release of the same draw, for free.
    """

    _habits = RELEASE

    cost: Loss
    derivation: Derivation
    _long: pl.DataFrame
    _by: tuple[str, ...]
    _outputs: tuple[Output, ...]
    _noise: NoisePlan
    _kind: Kind
    _layout: Layout = field(default_factory=Layout)
    _parts: Mapping[str, np.ndarray] = field(default_factory=dict)  # the noisy totals under derived columns
    when: dt.datetime | None = None
    _statement: Mapping[str, Any] = field(default_factory=dict)
    _drawn: pl.DataFrame | None = None  # the long table as it was drawn, where post-processing has changed it
    _steps: tuple[str, ...] = ()  # post-processing, in words
    _below: float | None = None  # groups with fewer are suppressed
    _ci: float | None = None  # the confidence of the interval columns, where they are shown

    # The data

    @property
    def table(self) -> Any:
        """The released table, in the layout that was asked for."""
        return self._laid_out(self._kind)

    @property
    def value(self) -> Any:
        """The one released number. Errors: UnsupportedOperation when there are several."""
        if self._by or len(self._outputs) != 1:
            raise UnsupportedOperation("This release has more than one number; read its table: .table")
        return self._shown().item()

    def __float__(self) -> float:
        """`float(out)` is the one released number; see `value`."""
        return float(self.value)

    def __getitem__(self, asked: object) -> NoReturn:
        said = repr(asked) if isinstance(asked, str) else "..."
        raise InvalidArgument(f"A release is not the table itself: type .table[{said}].")

    def to_polars(self) -> pl.DataFrame:
        """The released table as a Polars DataFrame."""
        return self._laid_out("polars")  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """The released table as a pandas DataFrame."""
        return self._laid_out("pandas")

    def to_arrow(self) -> Any:
        """The released table as a PyArrow Table."""
        return self._laid_out("pyarrow")

    def _laid_out(self, kind: Kind) -> Any:
        table = self._shown() if self._ci is None else self._with_intervals(1 - self._ci)
        return laid_out(table, kind, self._grid())

    def _shown(self) -> pl.DataFrame:
        """The long table with suppressed groups as null."""
        if self._below is None:
            return self._long
        hidden = pl.Series(self._decider() < self._below)
        return self._long.with_columns(
            pl.when(~hidden).then(pl.col(output.name)).alias(output.name) for output in self._outputs
        )

    def _grid(self, alpha: float | None = None) -> Grid | None:
        """The crosstab, with intervals where alpha says how sure they are to be; None for a long table."""
        if self._layout.form == "long":
            return None
        (output,) = self._outputs
        sure = None if alpha is None else alpha / 2 if self._layout.normalize else alpha
        whole = self._long.schema[output.name].is_integer()
        return grid_of(self._long, self._by, self._layout, self._reader(output, sure), whole=whole)

    def _reader(self, output: Output, alpha: float | None) -> Read:
        """What groups make together: a count, a sum or a mean over all of them."""
        values, decider = self._long.get_column(output.name).to_list(), self._decider()
        lower, upper = (None, None) if alpha is None else self._interval(output, alpha)
        drawn = (self._long if self._drawn is None else self._drawn).get_column(output.name).to_numpy()
        sizes: dict[tuple[int, bool], float] = {}

        def read(groups: Sequence[int]) -> Number:
            at = list(groups)
            if self._below is not None and float(decider[at].sum()) < self._below:
                return Number(None)
            if len(at) == 1:
                value = values[at[0]]
            else:
                value = self._mean_of(output, at) if output.formula == "mean" else sum(values[i] for i in at)
            if alpha is None or lower is None or upper is None:
                return Number(value)
            if len(at) == 1:
                return Number(value, *(None if np.isnan(x[at[0]]) else float(x[at[0]]) for x in (lower, upper)))
            if output.formula == "mean":
                total, number = (float(self._parts[name][at].sum()) for name, _ in output.measures)
                low, high = merged_mean_interval(output, self._noise, alpha, total, number, len(at))
                return Number(value, min(low, value), max(high, value))
            kind = len(at), at[1] == at[0] + 1  # columns of one row follow one another
            if kind not in sizes:
                sizes[kind] = self._margin_error(output, alpha, *kind)
            middle, size = float(drawn[at].sum()), sizes[kind]
            ends = middle - size, middle + size
            return Number(value, *(self._known(output, np.array(ends)).tolist()))

        return read

    def _mean_of(self, output: Output, at: list[int]) -> float:
        """The mean over several groups, from their noisy sums and counts."""
        (total, measure), (count, _) = output.measures
        deviation = self._noise.of(measure).deviation * math.sqrt(len(at))
        return float(mean_of(output, self._parts[total][at].sum(), self._parts[count][at].sum(), deviation))

    def _margin_error(self, output: Output, alpha: float, number: int, in_a_row: bool) -> float:
        if not self._noise.reconciled:
            return error_of_sum(output, self._noise, alpha, number)
        part = "total" if number == self._long.height else "row" if in_a_row else "column"
        return error_of_part(output, self._noise, part, alpha)  # type: ignore[arg-type]

    # Intervals beside the numbers

    def with_ci(self, ci: float = 0.95) -> Release:
        """The same release with the ends of an interval beside each number: `n_low` and `n_high` beside `n`; free.

        Input:  ci: the probability with which each interval holds what it is about, such as 0.95
        Output: a release whose table has them: integers beside integers, times beside times; means and quantiles stay
                inside their bounds. They are those of `accuracy`, whose docstring says what they are about
        Errors: InvalidArgument for a ci that is no probability, or a column of the release that has such a name
                already; UnsupportedOperation for a crosstab, which has them in `accuracy()`
        """
        return replace(self, _ci=check_ci(ci, self._by, self._outputs, self._layout))

    def _with_intervals(self, alpha: float) -> pl.DataFrame:
        table, columns = self._shown(), list(self._by)
        for output in self._outputs:
            if output.formula == "mode":
                columns.append(output.name)
                continue
            low, high = self._interval(output, alpha)
            names = low_and_high(output)
            known = (
                interval_column(output, low, names[0], upper=False),
                interval_column(output, high, names[1], upper=True),
            )
            table = table.with_columns(
                pl.when(pl.col(output.name).is_not_null()).then(column).alias(column.name) for column in known
            )
            columns += [output.name, *names]
        return table.select(columns)

    # Post-processing

    def nonnegative(self) -> Release:
        """Counts, and sums of values that cannot be negative, without negative numbers: post-processing, free.

        Output: a release whose table is the nearest one, in squares, that is nowhere negative and has the same total;
                a crosstab keeps its row and column totals too (those below 0 become 0), and an incomplete one its
                total. Numbers of different values are each moved to 0. Whole numbers no longer are: see `round`
        Bound:  none is needed, nothing is read: see `dpframe.release.postprocess.nonnegative`. A small cell is moved
                down by what lifts the negative ones, so that totals keep having no bias
        Errors: UnsupportedOperation where no column can be meant
        """
        return self._adjusted(nonnegative, known_nonnegative, "nonnegative", pl.Float64())

    def round(self) -> Release:
        """Counts and sums as integers that still add up: post-processing, free.

        Output: a release in which each cell goes to one of the two integers next to it, and so do the total and, in a
                crosstab, the row and column totals. Means and the like stay as they are
        Bound:  none is needed, nothing is read: see `dpframe.release.postprocess.rounded`
        Errors: UnsupportedOperation where no column can be meant, or where a number has no place among 64-bit integers
        """
        totals = [self._long.get_column(o.name).cast(pl.Float64).abs().max() for o in self._outputs if is_total(o)]
        if any(isinstance(most, float) and most >= 2.0**62 for most in totals):
            raise UnsupportedOperation("round(): a number here is beyond 64-bit integers.")
        return self._adjusted(rounded, is_total, "round", pl.Int64())

    def suppress(self, below: float) -> Release:
        """Groups in which fewer than this were counted, as null: post-processing, free, for the reader's sake.

        Input:  below: a number above 0. It is compared with the first count of the release; where there is none, with
                the noisy number of values under its first mean, else with its first column of numbers
        Output: a release in which these groups are null, and so are margins that are below themselves; the other
                margins still count what is suppressed. Privacy does not ask for this: the numbers are noisy already
        Errors: InvalidArgument; UnsupportedOperation where no number was released
        """
        if isinstance(below, bool) or not isinstance(below, (int, float)) or not 0 < below <= 1e300:
            raise InvalidArgument("suppress(below=): a number above 0, such as suppress(below=10).")
        if all(output.formula == "mode" for output in self._outputs):  # or there is none at all
            raise UnsupportedOperation("suppress(): this release has no count; ask for one beside: n=dp.count().")
        said = f"suppress(below={below:g}): groups with fewer are not shown; margins count them."
        return replace(self, _below=float(below), _steps=(*self._steps, said))

    def _adjusted(
        self, change: Callable[[Floats], np.ndarray], meant: Callable[[Output], bool], verb: str, dtype: pl.DataType
    ) -> Release:
        chosen = [output for output in self._outputs if meant(output)]
        if not chosen:
            raise UnsupportedOperation(f"{verb}(): this release has no {_MEANT[verb]}, so there is nothing to change.")
        columns = [
            pl.Series(output.name, self._changed(output, change), dtype=dtype) for output in chosen if self._long.height
        ]
        drawn = self._long if self._drawn is None else self._drawn
        said = f"{verb}(): {_SAID[verb]} ({', '.join(output.name for output in chosen)})"
        return replace(self, _long=self._long.with_columns(columns), _drawn=drawn, _steps=(*self._steps, said))

    def _changed(self, output: Output, change: Callable[[Floats], np.ndarray]) -> np.ndarray:
        values = self._long.get_column(output.name).cast(pl.Float64).to_numpy()
        if not adds_up(output):
            return np.array([change(np.array([[value]])).item() for value in values])
        if self._layout.form == "crosstab":
            down = [name for name in self._by if name not in self._layout.across]
            found = table_of(values, self._long.select(down).rows(), self._long.select(self._layout.across).rows())
            if found is not None:
                table, places = found
                return np.asarray(change(table).ravel()[places])
        return np.asarray(change(values[None])[0])

    def _decider(self) -> Floats:
        """How many were counted in each group, as far as the release says."""
        for output in self._outputs:
            if output.formula == "count":
                return self._long.get_column(output.name).cast(pl.Float64).to_numpy()
        for output in self._outputs:
            if len(output.measures) > 1:
                return self._parts[output.measures[-1][0]]
        first = next(output for output in self._outputs if output.formula != "mode")
        return self._long.get_column(first.name).cast(pl.Float64).to_numpy()

    # How exact it is

    @property
    def noise(self) -> Any:
        """One row per released measure: column, aggregate, mechanism, scale (column unit) and threshold (units).

        The threshold is what a noisy number of units must reach for its key to be released; with "truncated_geometric",
        the optimal rule, the number of units at which a key is as likely released as not. With "paired_laplace", on a
        sum and the count of its values, there are two independent Laplace noises of the scale (the same two on both,
        one with the other sign), so that the standard deviation is twice the scale.
        """
        return as_kind(noise_table(self._outputs, self._noise), self._kind)

    def accuracy(self, alpha: float = 0.05, *, assume_rows: int | None = None) -> Any:
        """One row per group and released column: the value, and an error that it is within with probability 1 - alpha.

        Input:  alpha: the probability of a larger error; assume_rows: how many values each group has, for quantiles
        Output: the keys, then column, value, error, lower, upper (each in the column's unit, times in ticks). The
                interval is that of the numbers as drawn (without what is below 0, where post-processing says so); the
                error is the largest distance from the value to its ends. Margins of a crosstab follow its cells, with
                "All" for the key; their error is at most the sum of the cells'
        Bound:  the error is the noise's: the interval holds the number that the release would have without its noise,
                under the stated limits and bounds. For counts, sums, means, variances and standard deviations that is
                proved. A quantile is right in rank, and how far that is in value depends on how densely values lie
                around it: its interval takes them to lie at least as densely as they do on average between it and
                either of its bounds, which is so where they become rarer towards the bounds, and not in a gap between
                two clusters. It takes their number from assume_rows, else from a count in the same release; where
                there is none, or the number is so small that the choice may be beyond all values, and for a minimum or
                maximum, it is all that is known: the bounds. A most frequent value has no interval; its error is a
                number of rows: how many fewer than the truly most frequent one (of those not yet listed) it may have.
                Groups that were found in the data are shown because their noisy counts were large, which the interval
                does not undo
        """
        rows = None if assume_rows is None else check_rows(assume_rows)
        return as_kind(self._errors(check_alpha(alpha), rows), self._kind)

    def _errors(self, alpha: float, rows: float | None = None) -> pl.DataFrame:
        parts = []
        for output in self._outputs:
            value = _numbers(self._shown().get_column(output.name))
            lower, upper = self._interval(output, alpha, rows)
            keys = self._long.select(self._by)
            known = pl.DataFrame({"column": [output.name] * len(value), "value": value, "lower": lower, "upper": upper})
            parts.append(pl.concat([keys, known], how="horizontal") if self._by else known)
        if not parts:  # keys alone
            parts = [self._long.clear().with_columns(column=pl.lit(""), value=0.0, lower=0.0, upper=0.0)]
        long = pl.concat(parts).with_columns(pl.col("lower", "upper").fill_nan(None))
        if self._layout.margins and not self._layout.normalize:
            long = pl.concat([long.with_columns(pl.col(self._by).cast(pl.String)), self._margin_errors(alpha)])
        error = pl.max_horizontal(pl.col("value") - pl.col("lower"), pl.col("upper") - pl.col("value"))
        error = pl.when(pl.col("value").is_not_null()).then(error)
        for output in self._outputs:
            if output.formula == "mode":
                fewer = rows_fewer(output, self._noise, alpha)
                error = pl.when(pl.col("column") == output.name).then(fewer).otherwise(error)
        error = error.alias("error")
        return long.select(*self._by, "column", "value", error, "lower", "upper")

    def _margin_errors(self, alpha: float) -> pl.DataFrame:
        grid = self._grid(alpha)
        assert grid is not None
        height, width = grid.sizes
        rows = []
        for i, down in enumerate(grid.rows):
            for j, across in enumerate(grid.columns):
                cell = grid.cells[i][j]
                if (i == height or j == width) and cell is not None:
                    names = dict(zip((*grid.down, *grid.across), (*down, *across), strict=True))
                    texts = [None if names[name] is None else str(names[name]) for name in self._by]
                    rows.append((*texts, self._outputs[0].name, cell.value, cell.lower, cell.upper))
        schema = {**dict.fromkeys(self._by, pl.String), "column": pl.String}
        return pl.DataFrame(
            rows, {**schema, **dict.fromkeys(("value", "lower", "upper"), pl.Float64)}, strict=False, orient="row"
        )

    def _interval(self, output: Output, alpha: float, rows: float | None = None) -> tuple[Floats, Floats]:
        """Where each true number is with probability 1 - alpha; NaN where nothing is known."""
        if output.formula == "mode":
            return np.full(self._long.height, np.nan), np.full(self._long.height, np.nan)
        drawn = (self._long if self._drawn is None else self._drawn).get_column(output.name)
        value = drawn.cast(pl.Float64).to_numpy()
        known = self._rows_of(output) if rows is None else np.full(len(value), rows)
        low, high = interval_of(output, self._noise, alpha, value, self._parts, known)
        rest = self._noise.collected
        if rest is not None:  # the last row has noise of its own
            parts = {name: totals[-1:] for name, totals in self._parts.items()}
            (low[-1],), (high[-1],) = interval_of(output, rest, alpha, value[-1:], parts, None)
        return self._known(output, low), self._known(output, high)

    def _rows_of(self, output: Output) -> Floats | None:
        """How many values each group has, as far as the release says: of this column, else rows, else units.

        None for a minimum or maximum: values are rarely spread evenly there.
        """
        column = output.measures[0][1].column
        if output.measures[0][1].rank in (0, 1):
            return None
        drawn = self._long if self._drawn is None else self._drawn
        best, counted = 4, None
        for name, measure in (other.measures[-1] for other in self._outputs):
            if measure.total not in _COUNTED:
                continue
            same = measure.column is not None and column is not None and measure.column.id == column.id
            place = 0 if same else _COUNTED.index(measure.total) + 1
            if place < best:
                counts = self._parts[name] if name in self._parts else drawn[name].cast(pl.Float64).to_numpy()
                best, counted = place, counts
        return counted

    def _known(self, output: Output, ends: Floats) -> Floats:
        return np.maximum(ends, 0.0) if self._drawn is not None and known_nonnegative(output) else ends

    # In words

    def report(self) -> Report:
        """The privacy statement of this release: prints as text, shows as HTML, `to_json()` for machines."""
        steps = {"post_processing": list(self._steps)} if self._steps else {}
        modes = {output.name for output in self._outputs if output.formula == "mode"}
        errors = ((n, f"{e:,.4g} fewer rows" if n in modes else f"± {e:,.4g}") for n, e in self._half_widths())
        return Report({**self._statement, **steps}, tuple(errors))

    def __repr__(self) -> str:
        return f"{self.table}\n\nReleased at {self.cost}."

    def _table_html(self) -> str:
        grid = self._grid(0.05)
        if grid is not None:
            return grid_html(grid)
        errors, height = self._errors(0.05), self._long.height
        found = {o.name: errors["error"][i * height : (i + 1) * height].to_list() for i, o in enumerate(self._outputs)}
        modes = [output.name for output in self._outputs if output.formula == "mode"]
        return long_html(self._shown(), found, [*self._by, *modes])

    def _repr_html_(self) -> str:
        steps = "".join(f"<br>{escape(step)}" for step in self._steps)
        said = f"Released at {escape(str(self.cost))}. In small type: 95% margins of error."
        return f"<div class='dpframe'>{self._table_html()}<p>{said}{steps}</p></div>"

    def plot(self, column: str | None = None) -> Any:
        """A chart (Altair): bars with 95% margins of error for groups and bins, shaded cells for a crosstab.

        Input:  column: which released column, by default the first
        Output: an Altair chart, which a notebook shows and `.save("chart.png")` writes
        Errors: UnsupportedOperation without the extra `charts`, for one number, and for more groups than can be seen;
                InvalidArgument for a column that was not released
        """
        names = [output.name for output in self._outputs]
        if column is not None and column not in names:
            raise InvalidArgument(f"plot: there is no column {column!r}; columns are {', '.join(names)}.")
        if not self._by:
            raise UnsupportedOperation("plot(): this release is not grouped, and a number is no picture: .value")
        grid = self._grid(0.05)
        if grid is not None:
            part = {"": "", "index": ", part of its row", "columns": ", part of its column", "all": ", part of all"}
            return heatmap(grid, f"{names[0]}{part[self._layout.normalize]}, ± 95% margin of error")
        if not names:
            raise UnsupportedOperation("plot(): keys alone have no height.")
        chosen = column or names[0]
        if any(output.name == chosen and output.formula == "mode" for output in self._outputs):
            raise UnsupportedOperation(f"plot(): {chosen!r} holds chosen values, which have no height.")
        return bars(self._errors(0.05).filter(pl.col("column") == chosen), self._by, chosen)

    # Out

    def to_csv(self, path: Any = None) -> str | None:
        """The released table as CSV: a text, or a file where a path is given. A crosstab has one line of names.

        Durations are written as in ISO 8601: PT5H is five hours.
        """
        table = self.to_polars().with_columns(pl.selectors.duration().dt.to_string("iso"))
        if path is None:
            return table.write_csv()
        table.write_csv(path)
        return None

    def to_parquet(self, path: Any) -> None:
        """The released table as a Parquet file, with the privacy statement as JSON in its metadata.

        It is under the key `dpframe.privacy_statement`: `pyarrow.parquet.read_schema(path).metadata`.
        """
        write_parquet(self.to_arrow(), path, self.report().to_dict())

    def to_excel(self, path: Any) -> None:
        """The released table as an Excel file, with the privacy statement on a second sheet; needs the extra `excel`.

        Errors: UnsupportedOperation without it
        """
        write_excel({"table": (self.to_pandas(), self._layout.form == "crosstab")}, path, self.report())

    def to_latex(self, **options: Any) -> str:
        """The released table in LaTeX, by pandas: `DataFrame.to_latex(**options)`."""
        options.setdefault("index", self._layout.form == "crosstab")
        return self._to_text().to_latex(**options)  # type: ignore[no-any-return]

    def to_html(self, **options: Any) -> str:
        """The released table in plain HTML, by pandas: `DataFrame.to_html(**options)`."""
        options.setdefault("index", self._layout.form == "crosstab")
        return self._to_text().to_html(**options)  # type: ignore[no-any-return]

    def _to_text(self) -> Any:
        """The pandas table with an empty text where a number is suppressed."""
        table = self.to_pandas()
        return table.astype(object).where(table.notna(), "") if self._below is not None else table

    def _half_widths(self) -> list[tuple[str, float]]:
        errors = self._errors(0.05).group_by("column", maintain_order=True).agg(pl.col("error").max())
        return [(name, error) for name, error in errors.iter_rows() if error is not None]


_COUNTED = ("rows", "values", "units")  # what stands for the number of values under a quantile
_MEANT = {"nonnegative": "counts, nor sums of values that cannot be negative", "round": "counts or sums"}
_SAID = {
    "nonnegative": "the nearest table without negative numbers that keeps its totals",
    "round": "integers that still add up",
}


def _numbers(column: pl.Series) -> pl.Series:
    """A released column as floats, null where it holds texts."""
    if column.dtype in (pl.String, pl.Enum):
        return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    return column.cast(pl.Float64)


def noise_table(outputs: tuple[Output, ...], noise: NoisePlan) -> pl.DataFrame:
    """One row per name of a measure: column, aggregate, mechanism, scale (column unit), threshold (units)."""
    formulas = {name: output.formula for output in outputs for name, _ in output.measures}
    rows = []
    for drawn in noise.drawn:
        unit = float(drawn.paid.measure.unit)
        for name in drawn.paid.names:
            meant = name.removesuffix(".other") if drawn.paid.measure.collects else name
            aggregate = formulas.get(meant, drawn.paid.measure.total)
            decides = noise.threshold if noise.decided_by is drawn.paid else None
            rows.append((name, aggregate, drawn.family, drawn.scale * unit, decides))
    schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String, "scale": pl.Float64}
    return pl.DataFrame(rows, schema={**schema, "threshold": pl.Int64}, orient="row")
