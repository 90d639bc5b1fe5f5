"""`Release.difference`, `compare` and `independence`: groups of a release beside each other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from dpframe.engine import Table_co, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Covers, Formula, ReleasedColumn, alike
from dpframe.release.accuracy import (
    Differences,
    Independence,
    check_alpha,
    check_column,
    holm,
    independence,
)
from dpframe.release.answer import Numbers, floats_of, table_of
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.crosstab import label_of
from dpframe.release.shown.released import Released
from dpframe.usage import in_tuple

_NOT = "; not what limits and bounds leave out"
_SCALARS = (str, bool, int, float, Decimal, dt.date, dt.timedelta, type(None))


class Compares(Released[Table_co]):
    """A release whose groups can be compared."""

    _numbers: Numbers
    _set: int

    @property
    def covers(self) -> str:
        """The errors that all intervals of this release count: "noise" or
        "population"; see `Query.release`.
        """
        kinds = {self._numbers.covers_of(output) for output in self._numbers.outputs}
        return str(kinds.pop().value if len(kinds) == 1 else self._numbers.covers.value)

    def difference(
        self, first: Any, second: Any, column: str | None = None, alpha: float = 0.05
    ) -> Any:
        """The difference between two groups of this release, with an interval and a p-value; free.

        Input:  first, second: the keys of two groups, such as "treated" and "control"; with several
                key columns a tuple each, in the order of the table; column: which released count,
                sum, mean, variance, standard deviation or geometric mean, by default the first of
                these; alpha: the probability that the interval misses
        Output: one row: group, reference, column, estimate (first - second), lower, upper (column
                unit, times in ticks), covers. A release with covers="population" has p_value too:
                of the test that the population's difference is 0. So have rates of people with one
                row in a group, unless the release was asked for covers="noise". Else the interval
                is about the noise alone, and there is no p-value: readers take a p-value for a
                statement about the population
        Bound:  groups have independent noises, so the intervals of both groups are combined (Zou,
                Donner 2008). Where one person may be in both groups, the covariance of the two is
                part of a release for the population with at most five listed groups, and the
                interval follows from it. Else the interval holds for any correlation, and is up to
                1.4 times as wide
        Errors: InvalidArgument for what is no group or column; UnsupportedOperation where no
                interval is known

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame({"arm": ["treated", "control"] * 50, "ill": [True, False] * 50})
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("arm", keys=["treated", "control"]).agg(ill=dp.mean("ill"))
        >>> out = query.release(epsilon=1.0, covers="population")
        >>> out.difference("treated", "control").columns
        ['group', 'reference', 'column', 'estimate', 'lower', 'upper', 'p_value', 'covers']
        """
        level, output = check_alpha(alpha), self._comparable(column, "difference")
        groups = [self._place(key, "difference") for key in (first, second)]
        if groups[0] == groups[1]:
            raise InvalidArgument("difference: these are one group; name two.")
        between = self._between(output, groups[:1], groups[1:])
        return self._noted(as_kind(self._rows(between, level, level), self._kind), self._kind)

    def compare(self, reference: Any, column: str | None = None, alpha: float = 0.05) -> Any:
        """Every other group of this release beside a reference, corrected for
        the number of comparisons; free.

        Input:  as `difference`; reference: the key of one group, such as "control"
        Output: one row for each other group, as `difference` gives it. The intervals hold all
                differences together with probability 1 - alpha (Bonferroni). With
                covers="population" there is p_holm beside p_value: the p-value after Holm's
                correction. To call every group with p_holm <= 0.05 different is wrong about any of
                them in at most 5 of 100 releases
        Source: Holm 1979; Bonferroni
        Errors: as `difference`; InvalidArgument where there is no other group

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame({"arm": ["a", "b", "control"] * 50})
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> out = frame.histogram("arm", keys=["a", "b", "control"]).release(epsilon=1.0)
        >>> out.compare(reference="control")["covers"].to_list()
        ['noise only', 'noise only']
        """
        level, output = check_alpha(alpha), self._comparable(column, "compare")
        place = self._place(reference, "compare")
        others = [
            i
            for i in range(self._numbers.long.height)
            if i != place and not self._numbers.hidden[i]
        ]
        if not others:
            raise InvalidArgument("compare: there is no other group to compare with the reference.")
        between = self._between(output, others, [place] * len(others))
        rows = self._rows(between, level, level / len(others), corrected=True)
        return self._noted(as_kind(rows, self._kind), self._kind)

    def independence(self) -> Independence:
        """Whether the keys down and across a released crosstab are independent:
        a χ² test that knows the noise; free.

        Output: `statistic`, `p_value`, `degrees` of freedom and how many `tables` were simulated.
                The p-value counts noise and the sampling of people. The usual χ² test would take
                noise for dependence
        Bound:  see `dpframe.release.accuracy.independence`: tables of independent people with fresh
                noise are drawn from the fitted null. The test takes each person for one in one
                cell. Where a person may be in several cells, the cells of one person depend on each
                other, and the test is refused. With limits of one row in one group a person with
                several rows counts once, in one of their cells at random
        Source: Gaboardi, Lim, Rogers, Vadhan 2016, arXiv:1602.03090; Wang, Lee, Kifer 2015,
                arXiv:1511.03376
        Errors: UnsupportedOperation where this is no crosstab of counts with listed keys and one
                cell for each person

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame(
        ...     {"city": ["Bonn", "Kiel"] * 50, "smokes": [True, True, False, False] * 25}
        ... )
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> out = frame.crosstab("city", "smokes", keys={"city": ["Bonn", "Kiel"]}).release(
        ...     epsilon=1.0
        ... )
        >>> 0 < out.independence().p_value <= 1
        True
        """
        numbers = self._numbers
        _check_cells(numbers)
        ((name, total),) = numbers.outputs[0].totals
        down = [key for key in numbers.by if key not in numbers.layout.across]
        counts = floats_of(numbers.drawn, name)
        grid = table_of(
            counts, numbers.long.select(down), numbers.long.select(numbers.layout.across)
        )
        if numbers.noise.decided_by is not None or grid is None:
            raise UnsupportedOperation(
                "independence(): cells that are found in the data are those with many people; "
                "list keys={'a': [...], 'b': [...]}."
            )
        if min(grid[0].shape) < 2:
            raise UnsupportedOperation("independence(): the table needs two rows and two columns.")
        return independence(grid[0], numbers.noise.of(total))

    def _between(
        self, output: ReleasedColumn, first: Sequence[int], second: Sequence[int]
    ) -> Differences:
        """The differences of the numbers as they were drawn, whatever post-processing made of them.

        Rates of people cover the population where their release has what that needs for free.
        """
        numbers = self._numbers
        covers = Covers.POPULATION if numbers.is_free_rate(output) else numbers.covers
        drawn = replace(
            numbers, long=numbers.drawn, before=None, lifted=False, suppression=None, covers=covers
        )
        return Differences(drawn, output, first, second, self._numbers.apart(output))

    def _comparable(self, column: str | None, verb: str) -> ReleasedColumn:
        numbers = self._numbers
        check_column(column, [output.name for output in numbers.outputs], verb)
        compared = [output for output in numbers.outputs if estimator_of(output).compares]
        if (
            not numbers.by
            or not compared
            or len(numbers.by) != len(numbers.long.columns) - len(numbers.outputs)
        ):
            raise UnsupportedOperation(
                f"{verb}(): compares groups by their counts, sums, means or variances, and there "
                "are none in this release."
            )
        if numbers.veiled or numbers.moved:
            raise UnsupportedOperation(
                f"{verb}(): compares the numbers before "
                f"{'nonnegative' if numbers.veiled else 'round'}(), and readers could learn hidden "
                "numbers from these. Compare before suppress(secondary=True)."
            )
        output = (
            compared[0] if column is None else next(o for o in numbers.outputs if o.name == column)
        )
        if output not in compared:
            raise UnsupportedOperation(
                f"{verb}(): {output.name!r} has no interval that differences could be made of."
            )
        if output.name in numbers.shrunk:
            raise UnsupportedOperation(
                f"{verb}(): intervals of shrunk groups are right on average over groups, not for "
                "two that are picked. Compare the release that shrink() was called on."
            )
        if self._set > 1 and numbers.layout.is_long:
            raise UnsupportedOperation(
                f"{verb}(): tables that were fitted to each other have noises that depend on each "
                f"other. Ask for this one by itself: group_by({', '.join(map(repr, numbers.by))})."
            )
        if numbers.noise.reconciled or numbers.layout.normalize:
            raise UnsupportedOperation(
                f"{verb}(): cells that are fitted to margins, or parts of them, have noises that "
                "depend on each other. Ask for the crosstab with margins=False and "
                "normalize=False."
            )
        return output

    def _place(self, key: Any, verb: str) -> int:
        """The row of a group. Errors: InvalidArgument."""
        numbers = self._numbers
        parts = in_tuple(key)
        example = "a tuple of keys" if len(numbers.by) > 1 else "a key"
        if len(parts) != len(numbers.by) or not all(isinstance(part, _SCALARS) for part in parts):
            raise InvalidArgument(
                f"{verb}: name a group by {example}, one for each of {', '.join(numbers.by)}."
            )
        rows = numbers.long.select(numbers.by).rows()
        for i, row in enumerate(rows):
            if all(map(alike, row, parts)):
                if numbers.hidden[i]:
                    raise InvalidArgument(
                        f"{verb}: this group is suppressed; compare before suppress(below=...)."
                    )
                return i
        raise InvalidArgument(
            f"{verb}: there is no such group in this release; its groups are the rows of .table."
        )

    def _rows(
        self, between: Differences, alpha: float, each: float, *, corrected: bool = False
    ) -> pl.DataFrame:
        labels = [label_of(row) for row in self._numbers.long.select(self._numbers.by).rows()]
        low, high = between.interval(each)
        columns: dict[str, Any] = {
            "group": [labels[i] for i in between.first],
            "reference": [labels[i] for i in between.second],
            "column": [between.output.name] * len(between.first),
            "estimate": between.estimates,
            "lower": low,
            "upper": high,
        }
        covers = between.numbers.covers
        if covers is Covers.POPULATION:
            columns["p_value"] = between.p_values
            if corrected:
                columns["p_holm"] = holm(np.asarray(columns["p_value"]))
        label = covers.label(1 - alpha) + (", all together" if corrected and len(low) > 1 else "")
        label = label if covers is Covers.POPULATION else "noise only"
        label += _NOT if self._left_out(between.output.name) else ""
        return pl.DataFrame({**columns, "covers": [label] * len(low)})


def _check_cells(numbers: Numbers) -> None:
    """Refuse a test of independence without one cell for each person, and noise that is its own.
    Errors: UnsupportedOperation.
    """
    if not numbers.layout.is_crosstab or numbers.outputs[0].formula is not Formula.COUNT:
        raise UnsupportedOperation(
            "independence(): this is no crosstab of counts: frame.crosstab('a', 'b')."
        )
    if numbers.hidden.any():
        raise UnsupportedOperation(
            "independence(): the test reads hidden numbers too, and readers could learn these "
            "from it. Test before suppress()."
        )
    if numbers.noise.reconciled or numbers.factor != 1:
        raise UnsupportedOperation(
            "independence(): cells that were fitted to margins or scaled up have another noise. "
            "Ask for the crosstab with margins=True or False, and with typed limits."
        )
    limits = numbers.unit_limits
    once = 1 in (limits.max_rows_per_group, limits.max_rows)
    if not once or not numbers.apart(numbers.outputs[0]):
        raise UnsupportedOperation(
            "independence(): one person may be in several cells, which then depend on each other. "
            "Count each person in one cell: crosstab(..., max_groups=1, max_rows_per_group=1)."
        )
