"""`Release.nonnegative`, `round`, `suppress` and `shrink`:
released numbers that are changed without new noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.engine import Table_co
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Covers, ReleasedColumn
from dpframe.release.accuracy import (
    check_column,
)
from dpframe.release.answer import (
    Numbers,
    Suppression,
    check_limit_of_numbers,
    compared_groups,
    has_noisy_differences,
    is_total,
    known_nonnegative,
    nonnegative,
    read_base,
    read_suppression,
    shrunk_numbers,
)
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.released import Released
from dpframe.release.shown.report import APART, CHANGED_ALONE, CHANGES, NOTHING_TO_CHANGE
from dpframe.usage import warn

_MOVED = (
    "shrink(): {names} of each group moved towards the value that all groups have in "
    "common{alike}. Its intervals are right on average over groups, not for each group by itself."
)
_ALIKE = ", as far as is right where small groups are as near to it as large ones"
_STILL = (
    "shrink(): {names} stayed as released; fewer than four groups say too little of each other."
)
_NOISY = (
    "The noise of {names} is larger than what most groups differ by; out.shrink() moves them "
    "together, for free."
)


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Released[Table_co]):
    """A release whose numbers can be changed without new noise."""

    _numbers: Numbers
    # the number of tables that were released together and agree where they share columns
    _set: int = 1

    def shrink(self, column: str | None = None, *, alike: bool = False) -> Self:
        """Means, rates and variances of groups, moved towards their common
        value by how noisy they are; free.

        With 40 shops, ε small and 20 sales in each, the noise of a shop's mean is larger than what
        shops differ by. Then the mean of all shops says more of one shop than its own noisy mean
        does. Each mean moves towards the mean of all groups. How far follows from the noise of the
        group, and from how far groups lie apart beyond it. Groups with many rows hardly move. By
        default a group also moves no farther than what keeps the error over all groups from
        growing, whatever the truth is: a group with far more noise than all others then hardly
        moves either. The error of one group that is truly different may be larger. The release that
        this is called on keeps its numbers.

        Input:  column: one released mean, variance, standard deviation or geometric mean; by
                default all of them. alike: whether you know that small groups lie as near to the
                common value as large ones do, which noise hides. Then small groups move as far as
                their noise says; where it is not so, errors may grow
        Output: a release with these columns shrunk. Its intervals, in `accuracy` and `with_ci`, are
                right on average over groups: at 95%, those of about 95 in 100 groups hold the
                number without noise. They do not promise that for one group that was picked because
                it stands out. Fewer than four groups do not move
        Bound:  none is needed: it is post-processing. It reads the noisy sums and counts that were
                released, the scales of their noise, and the bounds: no row
        Source: Tan 2015, Bernoulli 21(1); Efron, Morris 1973, JASA 68, for `alike`; Armstrong,
                Kolesár, Plagborg-Møller 2022, Econometrica 90(6), for the intervals. See
                `dpframe.theory.formulas.error.shrinkage`
        Errors: UnsupportedOperation where no column can be meant, and beside suppressed groups;
                InvalidArgument for a column that was not released

        >>> import polars as pl, dpframe as dp
        >>> table = pl.DataFrame({"shop": list("abcd"), "price": [1.0, 2.0, 3.0, 4.0]})
        >>> frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("shop", keys=list("abcd")).agg(
        ...     price=dp.mean("price", bounds=(0, 10))
        ... )
        >>> query.release(epsilon=0.5).shrink().table.columns
        ['shop', 'price']
        """
        numbers: Numbers = self._numbers
        shrinkable = _shrinkable(numbers, column)
        compared = {output.name: compared_groups(numbers, output) for output in shrinkable}
        moved = {name: groups for name, groups in compared.items() if groups is not None}
        still = [name for name in compared if name not in moved and name not in numbers.shrunk]
        words = (
            [_MOVED.format(names=", ".join(moved), alike=_ALIKE if alike else "")] if moved else []
        )
        words += [_STILL.format(names=", ".join(still))] if still else []
        numbers = shrunk_numbers(numbers, moved, alike=alike)
        return replace(self, _numbers=numbers, _steps=(*self._steps, *words))

    @property
    def _noisy(self) -> list[str]:
        """A sentence for columns whose groups differ by less than their
        noise, where shrinking is offered.
        """
        if self._numbers.covers is Covers.POPULATION or self._numbers.hidden.any():
            return []
        names = [
            output.name
            for output in self._numbers.outputs
            if has_noisy_differences(self._numbers, output)
        ]
        return [_NOISY.format(names=", ".join(names))] if names else []

    def nonnegative(self) -> Self:
        """Remove negative numbers from counts, and from sums of nonnegative values.
        It is post-processing and free.

        Output: a release with the nearest table (least squares) that has no negative number and
                keeps the total. A crosstab also keeps its row and column totals (totals below 0
                become 0); if cells are missing, only its total. In columns that do not add up, each
                negative number becomes 0. Numbers may no longer be whole: see `round`
        Bound:  no row is read: see `dpframe.release.answer.postprocess.nonnegative`. Small cells
                become smaller by the amount that lifts the negative ones, so totals stay unbiased
        Warns:  DpFrameWarning for one of several marginals or levels, which then no longer agrees
                with the others
        Errors: UnsupportedOperation if the release has no such column; for a level of a hierarchy
                that was suppressed

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> bool((query.release(epsilon=0.5).nonnegative().table["count"] >= 0).all())
        True
        """
        return self._adjusted(
            lambda numbers: numbers.lift(nonnegative), known_nonnegative, "nonnegative"
        )

    def round(self, base: int = 1) -> Self:
        """Round counts and sums to integers, or multiples of 5 or 10, that still add up.
        It is free.

        Input:  base: of which whole number they become multiples: `round(5)`. Decimals are rounded
                in the table
        Output: a release in which each cell becomes one of its two neighbouring multiples, and so
                do the total and, in a crosstab, the subtotals and the row and column totals. Means,
                quantiles and other columns do not change. Intervals stay those of the numbers as
                drawn, so that they may lie beside a rounded number. Of several such steps the
                coarsest applies. It comes to the same before and after `suppress` and
                `nonnegative`. Beside suppressed numbers, groups without margins are rounded each by
                itself; in a table that protects hidden numbers, intervals are those of the rounded
                ones, wider by the base
        Bound:  no row is read: see `dpframe.release.answer.rounding.rounded_table`; beside hidden
                numbers see `Numbers.moved`
        Warns:  DpFrameWarning for one of several marginals or levels, which then no longer agrees
                with the others
        Errors: UnsupportedOperation as for `nonnegative`, and if a number does not fit in a 64-bit
                integer; InvalidArgument for another base, and beside suppressed numbers if the base
                is not below their limit

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> bool((out.round(5).table["count"] % 5 == 0).all())
        True
        """
        multiple = read_base(base)
        if self._numbers.protects:
            check_limit_of_numbers(self._numbers.below or 0.0, multiple, secondary=True)
        outputs, long = self._numbers.outputs, self._numbers.long
        totals = [
            long.get_column(o.name).cast(pl.Float64).abs().max() for o in outputs if is_total(o)
        ]
        if any(isinstance(most, float) and most >= 2.0**62 for most in totals):
            raise UnsupportedOperation(
                "round(): a number of this release does not fit in a 64-bit integer."
            )
        return self._adjusted(lambda numbers: numbers.round(multiple), is_total, "round", multiple)

    def suppress(
        self,
        below: float,
        marker: str | tuple[str, str] | None = None,
        *,
        secondary: bool | None = None,
    ) -> Self:
        """Replace the numbers of small groups by null. It is post-processing and free.

        Input:  below: a number above 0. It is compared with the first count of the release; if
                there is no count, with the noisy number of values of its first mean, otherwise with
                its first column of numbers; marker: the text that stands for them in CSV, Excel,
                LaTeX and HTML, such as "<10"; a pair has a second text for numbers that are hidden
                with them, "*" by default; secondary: whether other numbers are hidden too, so that
                no hidden number can be pinned down: see Bound. By default it is True for a crosstab
                with margins or shares, unless other tables of its release show its margins too
        Output: a release in which groups and margins with a smaller number are null. The other
                margins still include the suppressed groups. Of several such steps the strictest
                applies. Privacy does not need this step, since the numbers are noisy; it hides
                groups whose numbers are mostly noise. In a crosstab with margins a single hidden
                cell of a row is the margin less the others; `secondary` hides more, the smallest
                numbers that are enough. Of numbers that were rounded to 5 or 10, the limit has to
                be above that, and is compared with the rounded numbers. After `nonnegative()` it
                also leaves out intervals and what limits leave out, since they would tell the
                numbers before that step; `out.accuracy()` before `suppress` has them.
                `nonnegative()` and `round()` after `suppress` change hidden numbers too, as before
                it: publish one of both tables
        Bound:  with `secondary`, readers who know the limit, the marks, and that numbers are whole
                and not negative (where they are) find no hidden cell, subtotal or margin within
                less than half of the limit: the largest and the smallest value that it may have are
                at least below // 2 apart, and at least 1; below / 2 where numbers are not whole.
                For means, this holds for their counts. If two marks would tell more, all hidden
                numbers have the second one. What other tables say is not looked at. See
                `dpframe.release.answer.suppression`
        Errors: InvalidArgument; UnsupportedOperation if no number was released

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> out.suppress(below=1e9).table["count"].to_list()
        [None, None]
        >>> print(out.suppress(below=1e9, marker="few").to_csv())
        city,count
        Bonn,few
        Kiel,few
        <BLANKLINE>
        """
        layout = self._numbers.layout
        sums = self._set == 1 and bool(layout.margins or layout.normalize)
        step = read_suppression(below, marker, secondary, sums=sums)
        self._check_hiding(step)
        numbers = self._numbers.suppress(step)
        return replace(self, _numbers=numbers, _steps=(*self._steps, step.sentence))

    def _check_hiding(self, step: Suppression) -> None:
        """Refuse to hide where there are no numbers, or where other tables tell what is hidden.
        Errors: UnsupportedOperation; InvalidArgument if the limit is not above the rounding's base.
        """
        check_limit_of_numbers(step.below, self._numbers.base, secondary=step.secondary)
        # or there is none at all
        if all(not estimator_of(output).is_number for output in self._numbers.outputs):
            raise UnsupportedOperation(
                "suppress(): this release has no count; release one beside it: n=dp.count()."
            )
        if step.secondary and self._set > 1:
            raise UnsupportedOperation(
                "suppress(secondary=True): other tables of this release show the margins of this "
                "one, and what they show is not looked at. Leave secondary= out, or release one "
                "table by itself: crosstab(...)."
                if self._numbers.noise.fitted_tables == "marginals"
                else "suppress(secondary=True): other levels of this release show sums of this "
                "one. Hide numbers of all levels together: out.suppress(below=..., "
                "secondary=True)."
            )

    def _adjusted(
        self,
        change: Callable[[Numbers], Numbers],
        applies: Callable[[ReleasedColumn], bool],
        verb: str,
        base: int = 1,
    ) -> Self:
        outputs = [output for output in self._numbers.outputs if applies(output)]
        if not outputs:
            raise UnsupportedOperation(NOTHING_TO_CHANGE[verb])
        if self._numbers.hidden_together is not None:
            raise UnsupportedOperation(
                f"{verb}(): other levels show sums of the hidden numbers of this one. Change all "
                f"of them together, before they are hidden: out.{verb}().suppress(below=...)."
            )
        changes = CHANGES[verb] if base == 1 else f"multiples of {base} that still add up"
        sentences = [f"{verb}(): {changes} ({', '.join(output.name for output in outputs)})"]
        if self._set > 1 and APART not in self._steps:
            warn(
                CHANGED_ALONE.format(
                    verb=verb, number=self._set, tables=self._numbers.noise.fitted_tables
                )
            )
            sentences.append(APART)
        return replace(self, _numbers=change(self._numbers), _steps=(*self._steps, *sentences))


def _shrinkable(numbers: Numbers, column: str | None) -> list[ReleasedColumn]:
    """The columns that `shrink` moves. Errors: as there."""
    if numbers.covers is Covers.POPULATION:
        raise UnsupportedOperation(
            "shrink(): its intervals are about the noise alone, and those of this release are "
            "about the population. Release with covers='noise' to shrink."
        )
    if numbers.hidden.any():
        raise UnsupportedOperation(
            "shrink(): the common value is that of hidden groups too, and readers could learn "
            "these from it. Type shrink() before suppress()."
        )
    check_column(column, [output.name for output in numbers.outputs], "shrink")
    meant = [o for o in numbers.outputs if column in (None, o.name) and estimator_of(o).shrinks]
    if not meant or not numbers.by:
        raise UnsupportedOperation(
            "shrink(): this release has no groups."
            if meant
            else "shrink(): moves means, variances, standard deviations and geometric means of "
            "groups, and there is none here. Counts and sums stay as they are."
        )
    return meant
