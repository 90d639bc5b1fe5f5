"""`Release.shrink`: values of groups moved towards what they have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from dpframe.engine import Table_co
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Covers
from dpframe.release.accuracy import check_column
from dpframe.release.answer import Numbers, compared_groups, has_noisy_differences, shrunk_numbers
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.released import Released

_MOVED = (
    "shrink(): {names} of each group moved towards the value that all groups have in common. Its intervals are right "
    "on average over groups, not for each group by itself."
)
_STILL = "shrink(): {names} stayed as released; fewer than four groups say too little of each other."
_NOISY = "The noise of {names} is larger than what most groups differ by; out.shrink() moves them together, for free."


@dataclass(frozen=True, eq=False, repr=False)
class Shrinks(Released[Table_co]):
    """A release whose values of groups can be shrunk."""

    _numbers: Numbers

    def shrink(self, column: str | None = None) -> Self:
        """Means, rates and variances of groups, moved towards their common value by how noisy they are; free.

        With 40 shops, ε small and 20 sales in each, the noise of a shop's mean is larger than what shops differ by.
        Then the mean of all shops says more of one shop than its own noisy mean does. Each mean moves towards the mean
        of all groups. How far follows from the noise of the group, and from how far groups lie apart beyond it. Groups
        with many rows hardly move. The error over all groups is smaller as a rule; that of one group that is
        truly different may be larger. The release that this is called on keeps its numbers.

        Input:  column: one released mean, variance, standard deviation or geometric mean; by default all of them
        Output: a release with these columns shrunk. Its intervals, in `accuracy` and `with_ci`, are right on average
                over groups: at 95%, those of about 95 in 100 groups hold the number without noise. They do not promise
                that for one group that was picked because it stands out. Fewer than four groups do not move
        Bound:  none is needed: it is post-processing. It reads the noisy sums and counts that were released, the scales
                of their noise, and the bounds: no row
        Source: Efron, Morris 1973, JASA 68; Armstrong, Kolesár, Plagborg-Møller 2022, Econometrica 90(6), for the
                intervals. See `dpframe.theory.formulas.error.shrinkage`
        Errors: UnsupportedOperation where no column can be meant; InvalidArgument for a column that was not released

        >>> import polars as pl, dpframe as dp
        >>> table = pl.DataFrame({"shop": list("abcd"), "price": [1.0, 2.0, 3.0, 4.0]})
        >>> frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("shop", keys=list("abcd")).agg(price=dp.mean("price", bounds=(0, 10)))
        >>> query.release(epsilon=0.5).shrink().table.columns
        ['shop', 'price']
        """
        numbers: Numbers = self._numbers
        if numbers.covers is Covers.POPULATION:
            raise UnsupportedOperation(
                "shrink(): its intervals are about the noise alone, and those of this release are about the "
                "population. Release with covers='noise' to shrink."
            )
        check_column(column, [output.name for output in numbers.outputs], "shrink")
        meant = [o for o in numbers.outputs if column in (None, o.name) and estimator_of(o).shrinks]
        if not meant or not numbers.by:
            raise UnsupportedOperation(
                "shrink(): this release has no groups."
                if meant
                else "shrink(): moves means, variances, standard "
                "deviations and geometric means of groups, and there is none here. Counts and sums stay as they are."
            )
        compared = {output.name: compared_groups(numbers, output) for output in meant}
        moved = {name: groups for name, groups in compared.items() if groups is not None}
        still = [name for name in compared if name not in moved and name not in numbers.shrunk]
        words = [_MOVED.format(names=", ".join(moved))] if moved else []
        words += [_STILL.format(names=", ".join(still))] if still else []
        numbers = shrunk_numbers(numbers, moved)
        return replace(self, _numbers=numbers, _steps=(*self._steps, *words))

    @property
    def _noisy(self) -> list[str]:
        """A sentence for columns whose groups differ by less than their noise, where shrinking is offered."""
        if self._numbers.covers is Covers.POPULATION:
            return []
        names = [output.name for output in self._numbers.outputs if has_noisy_differences(self._numbers, output)]
        return [_NOISY.format(names=", ".join(names))] if names else []
