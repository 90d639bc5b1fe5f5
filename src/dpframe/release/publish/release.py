"""What a release gives back: plain, materialised data. Reading it again never draws again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Generic, NoReturn

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.budget import Loss
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import RELEASE, Derivation, Hints, ReleasedColumn, real
from dpframe.release.accuracy import check_alpha, check_ci, check_column, check_rows, read_ci, with_intervals
from dpframe.release.answer import Numbers, is_total, known_nonnegative, nonnegative, rounded
from dpframe.release.estimators import estimator_of
from dpframe.release.publish.charts import Grouped, grouped_chart, heatmap, margin, read_look
from dpframe.release.publish.crosstab import laid_out
from dpframe.release.publish.error_tables import error_table, largest_errors, noise_table
from dpframe.release.publish.files import check_installed, grid_html, long_html, write_excel, write_parquet
from dpframe.release.publish.heading import heading_of, in_words, title_of
from dpframe.release.publish.margins import crosstab
from dpframe.release.publish.report import APART, CHANGEABLE, CHANGED_ALONE, CHANGES, Report
from dpframe.usage import RELEASED, explains, warn

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Release"]


@explains(".{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class Release(Hints, Generic[Table_co]):
    """A released table, what it cost, and how exact it is.

    `table` is the user's kind of table: pandas for pandas, Polars for Polars, PyArrow for PyArrow; type checkers know
    it too, as `Release[pd.DataFrame]`. `value` is the one
    number of an ungrouped release of one column. `cost` is the loss that was charged, `when` the time (UTC) at which
    the noise was drawn: long ago for the stored answer of a name. `nonnegative`, `round` and `suppress` give another
    release of the same draw, for free.
    """

    _habits = RELEASE

    cost: Loss
    derivation: Derivation
    _numbers: Numbers
    _kind: Kind
    when: dt.datetime | None = None
    _statement: Mapping[str, Any] = field(default_factory=dict)
    _steps: tuple[str, ...] = ()  # post-processing, in words
    _set: int = 1  # how many tables were released together, to agree where they share columns
    _ci: float | None = None  # the confidence of the interval columns, where they are shown

    # The data

    @property
    def table(self) -> Table_co:
        """The released table, in the layout that was asked for, and in the kind of table that was protected.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> dict(query.release(epsilon=0.5).table.schema)
        {'city': String, 'count': Int64}
        """
        return self._laid_out(self._kind)  # type: ignore[no-any-return]

    @property
    def value(self) -> Any:
        """The one released number.

        Errors: UnsupportedOperation when there are several

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> type(frame.count(max_rows=2).release(epsilon=0.5).value)
        <class 'int'>
        """
        if self._numbers.by or len(self._numbers.outputs) != 1:
            raise UnsupportedOperation("This release has more than one number; read its table: .table")
        return self._numbers.shown.item()

    def __float__(self) -> float:
        """`float(out)` is the one released number; see `value`."""
        return float(self.value)

    def __getitem__(self, asked: object) -> NoReturn:
        said = repr(asked) if isinstance(asked, str) else "..."
        raise InvalidArgument(f"A release is not the table itself: type .table[{said}].")

    def to_polars(self) -> pl.DataFrame:
        """The released table as a Polars DataFrame."""
        return self._laid_out("polars")  # type: ignore[no-any-return]

    def to_pandas(self) -> pd.DataFrame:
        """The released table as a pandas DataFrame."""
        return self._laid_out("pandas")  # type: ignore[no-any-return]

    def to_arrow(self) -> Any:
        """The released table as a PyArrow Table."""
        return self._laid_out("pyarrow")

    def _laid_out(self, kind: Kind) -> Any:
        table = self._numbers.shown if self._ci is None else with_intervals(self._numbers, 1 - self._ci)
        return laid_out(table, kind, crosstab(self._numbers))

    # Intervals beside the numbers

    def with_ci(self, ci: float = 0.95) -> Release[Table_co]:
        """The same release with the ends of an interval beside each number: `n_low` and `n_high` beside `n`; free.

        A quantile has one where the release was asked for it, `release(..., ci=0.95)`, at that confidence or below.

        Input:  ci: the probability with which each interval holds what it is about, such as 0.95
        Output: a release whose table has them: integers beside integers, times beside times; means and quantiles stay
                inside their bounds. They are those of `accuracy`, whose docstring says what they are about
        Errors: InvalidArgument for a ci that is no probability, or a column of the release that has such a name
                already; UnsupportedOperation for a crosstab, which has them in `accuracy()`, and for a quantile whose
                interval was not paid for

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> query.release(epsilon=0.5).with_ci(0.95).table.columns
        ['city', 'count', 'count_low', 'count_high']
        """
        known, wanted = self._numbers, read_ci(ci)
        check_ci(wanted, known.by, known.outputs, known.layout)
        return replace(self, _ci=wanted)

    # Post-processing

    def nonnegative(self) -> Release[Table_co]:
        """Counts, and sums of values that cannot be negative, without negative numbers: post-processing, free.

        Output: a release whose table is the nearest one, in squares, that is nowhere negative and has the same total;
                a crosstab keeps its row and column totals too (those below 0 become 0), and an incomplete one its
                total. Numbers of different values are each moved to 0. Whole numbers no longer are: see `round`
        Bound:  none is needed, nothing is read: see `dpframe.release.answer.postprocess.nonnegative`. A small cell is
                moved down by what lifts the negative ones, so that totals keep having no bias
        Warns:  DpFrameWarning for one of several marginals, which no longer agrees with the others
        Errors: UnsupportedOperation where no column can be meant

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> bool((query.release(epsilon=0.5).nonnegative().table["count"] >= 0).all())
        True
        """
        return self._adjusted(nonnegative, known_nonnegative, "nonnegative", pl.Float64())

    def round(self) -> Release[Table_co]:
        """Counts and sums as integers that still add up: post-processing, free.

        Output: a release in which each cell goes to one of the two integers next to it, and so do the total and, in a
                crosstab, the row and column totals. Means and the like stay as they are
        Bound:  none is needed, nothing is read: see `dpframe.release.answer.postprocess.rounded`
        Warns:  DpFrameWarning for one of several marginals, which no longer agrees with the others
        Errors: UnsupportedOperation where no column can be meant, or where a number has no place among 64-bit integers
        """
        outputs, long = self._numbers.outputs, self._numbers.long
        totals = [long.get_column(o.name).cast(pl.Float64).abs().max() for o in outputs if is_total(o)]
        if any(isinstance(most, float) and most >= 2.0**62 for most in totals):
            raise UnsupportedOperation("round(): a number here is beyond 64-bit integers.")
        return self._adjusted(rounded, is_total, "round", pl.Int64())

    def suppress(self, below: float) -> Release[Table_co]:
        """Groups in which fewer than this were counted, as null: post-processing, free, for the reader's sake.

        Input:  below: a number above 0. It is compared with the first count of the release; where there is none, with
                the noisy number of values under its first mean, else with its first column of numbers
        Output: a release in which these groups are null, and so are margins that are below themselves; the other
                margins still count what is suppressed. Of several such steps the strictest holds. Privacy does not ask
                for this: the numbers are noisy already
        Errors: InvalidArgument; UnsupportedOperation where no number was released

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> out.suppress(below=1e9).table["count"].to_list()
        [None, None]
        """
        least = real(below)
        if least is None or not 0 < least <= 1e300:
            raise InvalidArgument("suppress(below=): a number above 0, such as suppress(below=10).")
        if all(not estimator_of(output).is_number for output in self._numbers.outputs):  # or there is none at all
            raise UnsupportedOperation("suppress(): this release has no count; ask for one beside: n=dp.count().")
        said = f"suppress(below={least:g}): groups with fewer are not shown; margins count them."
        strictest = max(float(least), self._numbers.below or 0.0)
        return replace(self, _numbers=replace(self._numbers, below=strictest), _steps=(*self._steps, said))

    def _adjusted(
        self,
        change: Callable[[Floats], np.ndarray],
        meant: Callable[[ReleasedColumn], bool],
        verb: str,
        dtype: pl.DataType,
    ) -> Release[Table_co]:
        chosen = [output for output in self._numbers.outputs if meant(output)]
        if not chosen:
            raise UnsupportedOperation(
                f"{verb}(): this release has no {CHANGEABLE[verb]}, so there is nothing to change."
            )
        said = [f"{verb}(): {CHANGES[verb]} ({', '.join(output.name for output in chosen)})"]
        if self._set > 1 and APART not in self._steps:
            warn(CHANGED_ALONE.format(verb=verb, number=self._set))
            said.append(APART)
        numbers = self._numbers.changed(chosen, change, dtype)
        numbers = replace(numbers, lifted=numbers.lifted or verb == "nonnegative")
        return replace(self, _numbers=numbers, _steps=(*self._steps, *said))

    # How exact it is

    @property
    def noise(self) -> Table_co:
        """One row per released measure: column, aggregate, mechanism, scale (column unit) and threshold (units).

        It is the noise as it was drawn; where `dp.Auto` scaled a number, it was multiplied with it.
        The threshold is what a noisy number of units must reach for its key to be released; with "truncated_geometric",
        the optimal rule, the number of units at which a key is as likely released as not. With "paired_laplace", on a
        sum and the count of its values, there are two independent Laplace noises of the scale (the same two on both,
        one with the other sign), so that the standard deviation is twice the scale. With "permute_and_flip" and
        "exponential", which choose a quantile or a most frequent value among candidates, one that is worse by `scale`
        rows is e times rarer.
        """
        return as_kind(noise_table(self._numbers.outputs, self._numbers.noise), self._kind)  # type: ignore[no-any-return]

    def accuracy(self, alpha: float = 0.05, *, assume_rows: int | None = None) -> Table_co:
        """One row per group and released column: the value, and an error that it is within with probability 1 - alpha.

        Input:  alpha: the probability of a larger error; assume_rows: how many values each group has, for quantiles
        Output: the keys, then column, value, error, lower, upper (each in the column's unit, times in ticks). A key
                that has one of these names is called `value_key`. The interval is that of the numbers as drawn
                (without what is below 0, where post-processing says so); the error is the largest distance from the
                value to its ends. Margins of a crosstab follow its cells, with "All" for the key; their error is at
                most the sum of the cells'
        Bound:  the interval holds the number that the release would have without its noise, under the stated limits and
                bounds, times the factor by which `dp.Auto` scaled it. That is proved for counts, sums, means, variances
                and standard deviations. It is proved for a quantile of `release(..., ci=0.95)` where alpha is at least
                1 - ci: its interval was chosen from the data, for half of its price
                (`dpframe.theory.formulas.error.quantile_interval`). Any other quantile is right in rank. How far off
                its value is depends on how densely values lie around it. Its interval takes them to lie at least as
                densely as on average between it and either bound. That is so where values become rarer towards the
                bounds, and not in a gap between two clusters. The number of values is assume_rows, else a count of the
                same release. Where there is none, or too small a one, and for a minimum or maximum, the interval is
                that of the bounds. A most frequent value has no interval. Its error is a number of rows: how many fewer
                than the truly most frequent one (of those not yet listed) it may have. Groups that were found in the
                data are shown because their noisy counts were large; the interval does not undo that. Where `dp.Auto`
                could not choose bounds, which the report says, the error is that of values clipped to those it took

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> errors = query.release(epsilon=0.5).accuracy()
        >>> errors.columns
        ['city', 'column', 'value', 'error', 'lower', 'upper']
        >>> errors["error"].to_list()  # rows, in 95 of 100 releases
        [12.0, 12.0]
        """
        rows = None if assume_rows is None else check_rows(assume_rows)
        return as_kind(error_table(self._numbers, check_alpha(alpha), rows), self._kind)  # type: ignore[no-any-return]

    # In words

    def report(self) -> Report:
        """The privacy statement of this release: prints as text, shows as HTML, `to_json()` for machines.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> print(str(query.release(epsilon=0.5).report()).splitlines()[3])
        Privacy loss: ε = 0.5: pure differential privacy (ε).
        """
        steps = {"post_processing": list(self._steps)} if self._steps else {}
        errors = largest_errors(self._numbers, 0.05)
        return Report({**self._statement, **steps}, tuple((name, self._error_words(name, e)) for name, e in errors))

    def _error_words(self, name: str, error: float) -> str:
        if name in self._chosen:
            return f"{error:,.4g} fewer rows"
        dtype = self._numbers.shown.schema[name]
        size = margin(error, dtype) if dtype.is_temporal() else f"{error:,.4g}"
        return f"± {size}{', likely' if name in self._likely else ''}"

    @property
    def _chosen(self) -> list[str]:
        """The columns that hold listed values, which have no margin of error."""
        return [output.name for output in self._numbers.outputs if not estimator_of(output).is_number]

    @property
    def _likely(self) -> list[str]:
        """The quantiles whose margins of error are not proved; see `accuracy`."""
        found = ((output.name, output.totals[0][1]) for output in self._numbers.outputs)
        return [name for name, m in found if m.between and not m.surely(0.05)]

    def __repr__(self) -> str:
        return "\n".join([f"{self.table}\n\nReleased at {self.cost}.", *self._from_store, *self._unseen])

    @property
    def _from_store(self) -> list[str]:
        """That the answer came from the store, where it did."""
        return [self._statement["stored"]] if "stored" in self._statement else []

    @property
    def _unseen(self) -> list[str]:
        """What is to be told of columns whose bounds were to be chosen, and could not be."""
        return [
            f"Bounds of {column!r} could not be chosen, noise hides most values; they are {ends}: see report()."
            for column, ends in self._statement.get("chosen", {}).get("unseen", {}).items()
        ]

    def _table_html(self) -> str:
        grid = crosstab(self._numbers, 0.05)
        if grid is not None:
            return grid_html(grid)
        outputs, height, errors = self._numbers.outputs, self._numbers.long.height, error_table(self._numbers, 0.05)
        found = {o.name: errors["error"][i * height : (i + 1) * height].to_list() for i, o in enumerate(outputs)}
        return long_html(self._numbers.shown, found, [*self._numbers.by, *self._chosen])

    def _repr_html_(self) -> str:
        steps = "".join(f"<br>{escape(step)}" for step in (*self._from_store, *self._unseen, *self._steps))
        likely = (
            f"; those of {', '.join(self._likely)} are likely, release(..., ci=0.95) proves" if self._likely else ""
        )
        said = f"Released at {escape(str(self.cost))}."
        if len(self._chosen) < len(self._numbers.outputs):
            said += f" In small type: 95% margins of error{escape(likely)}."
        return f"<div class='dpframe'>{self._table_html()}<p>{said}{steps}</p></div>"

    def plot(
        self,
        column: str | None = None,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        sort: str | None = None,
    ) -> Any:
        """A chart of the released numbers with their 95% margins of error (Altair); no row is read for it.

        Bars with whiskers for groups, lying for names and standing for bins and numbers; lines in a band for dates, and
        for bins of dates; shaded cells for a crosstab. With two keys, one of them becomes colours where it has at most
        six values. What is no larger than its margin of error is pale, in a crosstab hatched. Values that are dates or
        times are points, since they have no zero for a bar to start at. Of more groups than fit into 800 pixels the
        largest are shown, and the subtitle says how many are not.

        Input:  column: which released column, by default the first; title: in place of the one that is made from the
                question, "" for none; width, height: of the picture (pixels; of a crosstab at most so many); sort:
                "keys" for the order of the table, "descending" or "ascending" for that of the numbers
        Output: an Altair chart, which a notebook shows and `.save("chart.png")` writes; it has no background, and its
                texts can be read on light and dark pages
        Errors: UnsupportedOperation without the extra `charts`, for one number, and where no group was released;
                InvalidArgument for a column that was not released, and other values of the arguments
        """
        numbers, look = self._numbers, read_look(title, width, height, sort)
        names = [output.name for output in numbers.outputs]
        check_column(column, names, "plot")
        if not numbers.by:
            raise UnsupportedOperation("plot(): this release is not grouped, and a number is no picture: .value")
        if not names:
            raise UnsupportedOperation("plot(): keys alone have no height.")
        (chosen,) = [output for output in numbers.outputs if output.name == (column or names[0])]
        if not estimator_of(chosen).is_number:
            raise UnsupportedOperation(f"plot(): {chosen.name!r} holds chosen values, which have no height.")
        words = in_words(self.derivation, chosen.name)
        asked = title_of(self.derivation, words, numbers.by, numbers.layout.normalize)
        heading = heading_of(asked, self.cost, self._statement, self._steps, self._unseen)
        grid = crosstab(numbers, 0.05)
        if grid is not None:
            signed, parts = not known_nonnegative(chosen), bool(numbers.layout.normalize)
            return heatmap(grid, words, heading, look, signed=signed, parts=parts)
        errors = error_table(numbers, 0.05).filter(pl.col("column") == chosen.name)
        rest, sure = numbers.noise.collected is not None, chosen.name not in self._likely
        dtype = numbers.shown.schema[chosen.name]
        return grouped_chart(Grouped(numbers.by, errors, dtype, words, rest=rest, sure=sure), heading, look)

    # Out

    def to_csv(self, path: Any = None) -> str | None:
        """The released table as CSV: a text, or a file where a path is given. A crosstab has one line of names.

        Durations are written as in ISO 8601: PT5H is five hours.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> out.to_csv().splitlines()[0]
        'city,count'
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

        Excel has no zones: a time with one is written as text, in ISO 8601. Durations are in hours, minutes, seconds.

        Errors: UnsupportedOperation without it
        """
        write_excel({"table": (self.to_pandas(), self._numbers.layout.form == "crosstab")}, path, self.report())

    def to_latex(self, **options: Any) -> str:
        """The released table in LaTeX, by pandas: `DataFrame.to_latex(**options)`; needs the extra `latex`.

        Errors: UnsupportedOperation without it
        """
        check_installed("jinja2", "to_latex() needs Jinja2", "latex")
        options.setdefault("index", self._numbers.layout.form == "crosstab")
        return self._to_text().to_latex(**options)  # type: ignore[no-any-return]

    def to_html(self, **options: Any) -> str:
        """The released table in plain HTML, by pandas: `DataFrame.to_html(**options)`."""
        options.setdefault("index", self._numbers.layout.form == "crosstab")
        return self._to_text().to_html(**options)  # type: ignore[no-any-return]

    def _to_text(self) -> Any:
        """The pandas table with an empty text where a number is suppressed."""
        table = self.to_pandas()
        return table.astype(object).where(table.notna(), "") if self._numbers.below is not None else table
