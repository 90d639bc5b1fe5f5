"""A release: plain, materialised data. Reading it again draws no new noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NoReturn

import polars as pl

from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan import RELEASE, Covers, read_covers
from dpframe.release.accuracy import (
    check_alpha,
    check_ci,
    check_rows,
    low_and_high,
    read_ci,
    with_intervals,
)
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.changes import Changes
from dpframe.release.shown.charts import (
    decimals,
    decimals_by_column,
    margin,
)
from dpframe.release.shown.crosstab import (
    BOUNDS_SHOWN,
    described,
    described_errors,
    described_table,
    errors_across,
    laid_out,
)
from dpframe.release.shown.derived import Derives
from dpframe.release.shown.error_tables import (
    crosstab,
    decimals_of,
    error_table,
    largest_errors,
    missing_shares,
    noise_table,
)
from dpframe.release.shown.files import in_decimals, in_iso
from dpframe.release.shown.html_tables import grid_html, long_html
from dpframe.release.shown.left_out import labels_of_coverage, margins_words, with_left_out
from dpframe.release.shown.pictures import Draws
from dpframe.release.shown.sdmx import write_sdmx
from dpframe.release.shown.usefulness import hidden_words, mostly_noise
from dpframe.usage import RELEASED, NoNumber, explains

_VEILED = (
    "No intervals: they are about the numbers before nonnegative(), and would tell hidden ones. "
    "Those of the release itself are in its accuracy()."
)
_SHARES = {
    "": "",
    "index": " as a share of the row",
    "columns": " as a share of the column",
    "all": " as a share of all",
}


@explains(".{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class Release(NoNumber, Changes[Table_co], Derives[Table_co], Draws[Table_co]):
    """A released table with its cost and its errors.

    `table` is the user's kind of table: pandas for pandas, Polars for Polars, PyArrow for PyArrow;
    type checkers know it too, as `Release[pd.DataFrame]`. `value` is the number of an ungrouped
    release of one column. `cost` is the loss that was charged. `when` is the time (UTC) at which
    the noise was drawn; for the stored answer of a name it may be long ago. `nonnegative`, `round`,
    `shrink` and `suppress` return a changed release without new noise, for free.
    """

    _habits = RELEASE
    _instead = "A release is not a number: type .value, or .table where it has several."

    _ci: float | None = None  # the confidence of the interval columns, if they are shown

    def _advice(self, name: str) -> str:
        return (
            f" Type .table[{name!r}]."
            if name in self._numbers.shown.columns
            else super()._advice(name)
        )

    # The data

    @property
    def value(self) -> Any:
        """The released number, if there is only one; None where noise hides it, see `fill`.

        Errors: UnsupportedOperation if there are several

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> type(frame.count(max_rows=2).release(epsilon=0.5).value)
        <class 'int'>
        """
        numbers = self._numbers
        if (
            len(numbers.by) > numbers.ranked
            or len(numbers.outputs) != 1
            or numbers.shown.height != 1
        ):
            raise UnsupportedOperation(
                "This release has more than one number; read its table: .table"
            )
        return numbers.shown[numbers.outputs[0].name].item()

    def __float__(self) -> float:
        """`float(out)` is the released number; see `value`."""
        return float(self._known)

    def __int__(self) -> int:
        return int(self._known)

    @property
    def _known(self) -> Any:
        """The released number. Errors: UnsupportedOperation where it is missing."""
        if self.value is None:
            raise UnsupportedOperation(f"The number is {hidden_words('', self._numbers.covers)}")
        return self.value

    def __getitem__(self, key: object) -> NoReturn:
        typed = repr(key) if isinstance(key, str) else "..."
        raise InvalidArgument(f"A release is not the table itself: type .table[{typed}].")

    def _in_kind(self, kind: Kind) -> Any:
        if self._numbers.layout.is_description:
            table = described(self._numbers, kind)
        else:
            long = (
                self._numbers.shown
                if self._ci is None
                else with_intervals(self._numbers, 1 - self._ci)
            )
            grid = crosstab(self._numbers)
            table = laid_out(long, kind, None if grid is None else replace(grid, marks=None))
        return self._noted(table, kind)

    def _marked(self, kind: Kind) -> Any:
        """The table as it is written to files: with marks in place of
        suppressed numbers, if marks were typed.
        """
        marks, grid, places = self._numbers.marks, crosstab(self._numbers), self._decimals
        if grid is not None:
            return laid_out(
                self._numbers.shown, kind, grid.rounded(next(iter(places.values()), None))
            )
        if self._numbers.layout.is_description:
            return super()._marked(kind)
        table = in_decimals(self._in_kind("polars"), places)
        if marks is None:
            return as_kind(table, kind)
        names = [output.name for output in self._numbers.outputs]
        if kind == "pandas":  # where numbers stay numbers beside marks
            cells = as_kind(table, kind)
            return cells.assign(
                **{name: cells[name].astype(object).where(marks == "", marks) for name in names}
            )
        mark = pl.Series(marks)
        texts = [
            pl.when(mark != "").then(mark).otherwise(in_iso(table[name])).alias(name)
            for name in names
        ]
        return as_kind(table.with_columns(texts), kind)

    @property
    def _decimals(self) -> Mapping[str, int]:
        numbers = self._numbers
        if numbers.layout.is_description:
            return decimals_by_column(errors_across(numbers, error_table(numbers, 0.05)))
        grid = crosstab(numbers)
        if grid is not None:
            places = decimals_of(numbers)
            return {
                name: places
                for name in laid_out(numbers.shown, "polars", grid).columns
                if name not in grid.down
            }
        errors = error_table(numbers, 0.05)
        found = dict(
            errors.group_by("column")
            .agg(pl.col("error").filter(pl.col("error") > 0).min())
            .iter_rows()
        )
        types = {output.name: numbers.shown.schema[output.name] for output in numbers.outputs}
        told = [
            o for o in numbers.outputs if types[o.name].is_numeric() or types[o.name].is_temporal()
        ]
        whole = {name for name, dtype in types.items() if dtype.is_integer()}
        places_of = {
            o.name: 0 if o.name in whole else decimals(found.get(o.name), types[o.name])
            for o in told
        }
        ends = {end: places_of[o.name] for o in told for end in low_and_high(o, numbers.covers)}
        return places_of | ends

    @property
    def _row_keys(self) -> tuple[str, ...]:
        return tuple(name for name in self._numbers.by if name not in self._numbers.layout.across)

    @property
    def _nulls(self) -> list[str]:
        step = self._numbers.suppression
        return ["", *(step.marks if step is not None and step.marks is not None else ())]

    def to_sdmx(self, path: Any = None, *, structure: str = "DPFRAME:TABLE(1.0.0)") -> str | None:
        """The released numbers in SDMX-CSV 2.0: a text, or a file if there is a path.

        Each number has a line: the keys as dimensions ("_T" for a total, TIME_PERIOD for the only
        date), MEASURE with the column's name, OBS_VALUE, LOWER and UPPER for its 95% interval,
        DECIMALS, OBS_STATUS ("A" normal, "Q" suppressed, "M" missing), and CONF_STATUS ("F" free,
        "C" confidential, "D" hidden to protect another).

        Input:  path: the file; structure: the data flow that these dimensions are of, as
                AGENCY:ID(VERSION)
        Source: SDMX 3.0, section "SDMX-CSV"; code lists CL_OBS_STATUS and CL_CONF_STATUS of SDMX
        Errors: InvalidArgument for another structure

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> print(out.to_sdmx().splitlines()[0])
        STRUCTURE,STRUCTURE_ID,ACTION,CITY,MEASURE,OBS_VALUE,LOWER,UPPER,DECIMALS,OBS_STATUS,CONF_STATUS
        """
        return write_sdmx([self._numbers], path, structure)

    @property
    def _indexed(self) -> bool:
        return not self._numbers.layout.is_long

    def _sheets(self) -> dict[str, tuple[Any, bool]]:
        sheets = super()._sheets()
        if self._numbers.layout.is_crosstab:
            places = decimals_of(self._numbers)
            names = {"value": "value", "error": "error", "lower": "x_low", "upper": "x_high"}
            errors = error_table(self._numbers, 0.05).rename(names)
            errors = in_decimals(errors, dict.fromkeys(names.values(), places)).rename(
                {v: k for k, v in names.items()}
            )
            sheets["95% intervals"] = as_kind(errors, "pandas"), False
        return sheets

    @property
    def _hides(self) -> bool:
        empty = any(cells.any() for cells in self._numbers.empty.values())
        return self._numbers.below is not None or empty or missing_shares(self._numbers)[0] > 0

    # Intervals beside the numbers

    def _of_noise_alone(self) -> Release[Table_co]:
        """The release with intervals and comparisons of rates that are about
        the noise alone, as was typed.
        """
        return replace(self, _numbers=replace(self._numbers, noise_alone=True))

    def with_ci(self, ci: float = 0.95, covers: str | None = None) -> Release[Table_co]:
        """Add the ends of a confidence interval beside each number: `n_low` and
        `n_high` beside `n`. It is free.

        A quantile has an interval only if it was released with one, `release(..., ci=0.95)`; it is
        shown at that confidence or below.

        Input:  ci: the probability with which each interval holds its number, such as 0.95; covers:
                "population" for the number of the population that these people are drawn from,
                "noise" for the number without noise, by default what was released, and the
                population for rates of people with one row in a group. Numbers of people and such
                rates have both; others what `release(..., covers=...)` asked for. The names say
                "population" where that was typed: `n_population_low`
        Output: a release whose table has the ends: integers beside integers, times beside times;
                means and quantiles stay inside their bounds. They are the intervals of `accuracy`
                that cover the same, see there
        Errors: InvalidArgument for a ci that is not a probability, or if a column of the release
                has such a name already; UnsupportedOperation for a crosstab, whose intervals are in
                `accuracy()`, and for a quantile whose interval was not paid for

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> query.release(epsilon=0.5).with_ci(0.95).table.columns
        ['city', 'count', 'count_low', 'count_high']
        """
        numbers, confidence = self._usual if covers is None else self._numbers, read_ci(ci)
        if covers is not None and read_covers(covers) is Covers.NOISE:
            numbers = replace(numbers, noise_alone=True)
        if covers is not None and (wanted := read_covers(covers)) is not numbers.covers:
            unknown = [
                o.name
                for o in numbers.outputs
                if o.name not in numbers.sampled or numbers.factor_of(o) != 1
            ]
            if wanted is Covers.POPULATION and unknown:
                raise UnsupportedOperation(
                    "with_ci(): what was released does not say how far people differ in "
                    f"{', '.join(unknown)}. Ask for it in the release: release(..., ci=0.95, "
                    "covers='population')."
                )
            numbers = replace(numbers, covers=wanted)
        check_ci(confidence, numbers.by, numbers.outputs, numbers.layout, numbers.covers)
        return replace(self, _ci=confidence, _numbers=numbers)

    # Post-processing

    def fill(self) -> Release[Table_co]:
        """Show the numbers that are missing because noise hides them, as they were drawn.
        It is free.

        A number is missing (null) where its 95% interval for the noise holds every value that it
        could have, such as the mean of a group without rows: a number in its place would be read as
        one. The repr and the report say how many are missing. Minima, maxima and quantiles that
        nothing says the number of values of are always shown.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"spend": [3.0, 4.0]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> with dp.testing.fixed_noise(
        ...     1
        ... ):  # the same noise in each run: some noise makes two rows look like many
        ...     out = frame.mean("spend", bounds=(0, 1000)).release(epsilon=0.01)
        >>> out.value is None, out.fill().value is None
        (True, False)
        """
        return replace(self, _numbers=replace(self._numbers, filled=True))

    # How exact it is

    @property
    def noise(self) -> Table_co:
        """One row per noisy total: column, aggregate, mechanism, scale
        (column unit) and threshold (units).

        The scale is that of the noise as it was drawn; if `dp.Auto` scaled a number up, its noise
        was scaled too. A key is released if its noisy number of units is at least the threshold.
        With "truncated_geometric", the optimal rule, the threshold is the number of units at which
        a key is released with probability 1/2. With "paired_laplace", a sum and the count of its
        values each have the sum of two independent Laplace noises of the scale; both columns have
        the same two noises. So the standard deviation is twice the scale. With "joint_laplace", a
        number of rows beside such a pair has these two noises and a third one. "window" and "cube"
        are noises that the numbers of a group share. "gaussian_rounds" has this scale in each
        round, and the threshold is on the mean after the last round. "permute_and_flip" and
        "exponential" choose among candidates; one that is worse by `scale` rows is e times less
        likely.
        """
        table: Table_co = as_kind(
            noise_table(self._numbers.outputs, self._numbers.noise), self._kind
        )
        return table

    def accuracy(self, alpha: float = 0.05, *, assume_rows: int | None = None) -> Table_co:
        """One row per group and released column: the value, and the error that
        holds with probability 1 - alpha.

        Input:  alpha: the probability of a larger error; assume_rows: how many values each group
                has, for quantiles
        Output: the keys, then column, value, error, lower, upper (each in the column's unit, times
                in ticks). A key with one of these names is renamed to `value_key`. The interval is
                that of the numbers as drawn; after `nonnegative()` its part below 0 is left out.
                The error is the largest distance from the value to an end of the interval. Margins
                of a crosstab follow its cells, with "All" for the key; their error is at most the
                sum of the cells' errors. A description has a column `statistic` first. Where
                `dp.Auto` chose limits or bounds, there are `left_out`, `left_out_lower` and
                `left_out_upper` too: what these leave out of each count and sum, with a 95%
                interval whatever alpha is (column unit). It is null where nothing says it, which is
                unknown and not 0: for other statistics, and margins. After scaling it is what is
                still left out, and may be negative. These intervals rest on a model of units, and
                hold nothing of a few units with far more rows than all others, whom the noise
                hides: see `dpframe.release.left_out`. The report says how many these may be. What
                typed limits and bounds leave out is unknown
        Bound:  the interval holds the number that the release would have without its noise, under
                the stated limits and bounds, times the factor by which `dp.Auto` scaled it. This is
                proved for counts, sums, means, variances and standard deviations. It is also proved
                for a quantile of `release(..., ci=0.95)` if alpha is at least 1 - ci: half of the
                price was spent on its interval (`dpframe.theory.formulas.error.quantile_interval`).
                Any other quantile is accurate in rank only. The error of its value depends on how
                densely values lie around it. Its interval assumes that they lie at least as densely
                as on average between the quantile and either bound. This holds if values become
                rarer towards the bounds; it does not hold in a gap between two clusters. The number
                of values is assume_rows, or otherwise a count of the same release. If there is
                none, or if it is too small, and for a minimum or maximum, the interval is that of
                the bounds. A most frequent value has no interval. Its error is a number of rows:
                how many rows fewer it may have than the true most frequent value (of those not yet
                listed). Groups whose keys come from the data are shown because their noisy counts
                were large; the interval does not correct for that, but for `top_k` without keys=,
                where all intervals hold together. If `dp.Auto` could not choose bounds, which the
                report says, the error is that of values clipped to the bounds that it used

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
        errors = error_table(self._numbers, check_alpha(alpha), rows)
        errors = with_left_out(self._numbers, errors)
        if self._numbers.layout.is_description:
            errors = described_errors(self._numbers, errors)
        table: Table_co = as_kind(errors, self._kind)
        return table

    # In words

    def _stated(self) -> Fields:
        stated: FieldDict = {}
        if doubts := mostly_noise(self._numbers):
            stated["mostly_noise"] = doubts
        about = labels_of_coverage(self._numbers)
        if about != Covers.NOISE.label(0.95) or "intervals" in self._statement:
            stated["intervals"] = about
        if self._about_bounds:
            stated["shown"] = self._about_bounds
        return stated

    @property
    def _margins_are(self) -> str:
        return margins_words(self._numbers)

    def _margins(self) -> list[tuple[str, str]]:
        part = _SHARES[self._numbers.layout.normalize]
        return [
            (f"{name}{part}", self._error_words(name, error))
            for name, error in largest_errors(self._numbers)
        ]

    def _error_words(self, name: str, error: float) -> str:
        if name in self._chosen:
            return f"{error:,.4g} fewer rows"
        dtype = self._numbers.shown.schema[name]
        size = margin(error, dtype) if dtype.is_temporal() else f"{error:,.4g}"
        return f"± {size}{', likely' if name in self._likely else ''}"

    @property
    def _chosen(self) -> list[str]:
        """The columns of selected values (such as a most frequent value),
        which have no margin of error.
        """
        return [
            output.name for output in self._numbers.outputs if not estimator_of(output).is_number
        ]

    @property
    def _words(self) -> str:
        return f"{self.table}\n\nReleased at {self.cost}."

    @property
    def _notes(self) -> list[str]:
        return [*super()._notes, *self._unseen, *self._about_bounds, *mostly_noise(self._numbers)]

    @property
    def _footnotes(self) -> list[str]:
        return [*super()._footnotes, *([_VEILED] if self._numbers.veiled else [])]

    @property
    def _scope(self) -> list[str]:
        """The coverage of the shown intervals, and the losses by limits and bounds."""
        return self._said(self._ci)

    @property
    def _about_bounds(self) -> list[str]:
        """The sentence of a description about its rows "min" and "max"."""
        return [BOUNDS_SHOWN] if self._numbers.layout.is_description else []

    def _table_html(self) -> str:
        grid = crosstab(self._numbers, 0.05)
        if grid is not None:
            return grid_html(grid)
        outputs, height, errors = (
            self._numbers.outputs,
            self._numbers.long.height,
            error_table(self._numbers, 0.05),
        )
        if self._numbers.layout.is_description:
            table = described_table(self._numbers)
            return long_html(table, errors_across(self._numbers, errors), table.columns[:1])
        by_name = {
            o.name: errors["error"][i * height : (i + 1) * height].to_list()
            for i, o in enumerate(outputs)
        }
        marks = None if self._numbers.suppression is None else self._numbers.suppression.marks
        return long_html(
            self._numbers.shown, by_name, [*self._numbers.by, *self._chosen], marks and marks[0]
        )

    def _repr_html_(self) -> str:
        before = (*super()._notes, *self._unseen, *self._about_bounds)
        notes = (*before, *self._steps, *self._noisy, *mostly_noise(self._numbers))
        steps, names = "".join(f"<br>{escape(note)}" for note in notes), ", ".join(self._likely)
        likely = f"; those of {names} are likely, release(..., ci=0.95) proves" if names else ""
        sentence, numbers = f"Released at {escape(str(self.cost))}.", self._numbers
        if len(self._chosen) < len(numbers.outputs):
            sentence += f" In small type: 95% margins of error {self._margins_are}{escape(likely)}."
        return f"<div class='dpframe'>{self._table_html()}<p>{sentence}{steps}</p></div>"
