"""The move of a period's totals by one unit, which decides the noise of a
series and binds later questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.errors import ReleaseMismatch
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Allotment, Question, number
from dpframe.plan.steps import exchanged
from dpframe.theory.formulas.sensitivity import (
    Relation,
    Sensitivity,
    period_totals,
    weighted_totals,
)

_NUMBERS = ("l0", "exact_l1", "l2_squared", "exact_linf")


@dataclass(frozen=True)
class TotalChange:
    """The change that one unit can make to one total of one period,
    in units of the total's integer.

    `names` are the columns that the total is released as, and `unit` is the value of one of its
    integer (column unit). `one` is the sensitivity if a unit joins or leaves. `swing` is the
    largest difference between two units' entries. `lower` is the smallest entry, so that
    `lower + swing` is the largest; None if an earlier version did not store it.
    """

    names: tuple[str, ...]
    unit: Fraction
    one: Sensitivity
    swing: Fraction
    lower: Fraction | None = None

    @classmethod
    def of(cls, allotment: Allotment, joining: Allotment) -> TotalChange:
        """The change of a total, from the total of the same question
        under the relation "add-remove".
        """
        unit, total = allotment.total.unit, joining.total
        one = total.sensitivity.scaled(total.unit / unit)
        # a unit without rows adds 0
        lower, upper = min(total.grid.lower, 0), max(total.grid.upper, 0)
        largest = max(-lower, upper)
        size = one.exact_linf / largest if largest else Fraction(0)
        return cls(allotment.names, unit, one, size * (upper - lower), size * lower)

    @classmethod
    def from_json(cls, fields: Fields) -> TotalChange:
        """The change from its stored form."""
        one = Sensitivity(fields["l0"], *(Fraction(fields[name]) for name in _NUMBERS[1:]))
        lower = Fraction(fields["lower"]) if "lower" in fields else None
        return cls(
            tuple(fields["names"]), Fraction(fields["unit"]), one, Fraction(fields["swing"]), lower
        )

    def has_inside(self, other: TotalChange, *, alike: bool) -> bool:
        """Whether all entries of another change are between the ends of this one.

        Neither has larger entries. Input: alike: whether the bounds are the same, which decides if
        no end was stored
        """
        if self.swing == 2 * self.one.exact_linf:
            return True
        if self.lower is None or other.lower is None:
            return alike
        return self.lower <= other.lower and other.lower + other.swing <= self.lower + self.swing

    def to_json(self) -> FieldDict:
        """The stored form of the change. Fractions are texts."""
        one = {"l0": self.one.l0, **{name: str(getattr(self.one, name)) for name in _NUMBERS[1:]}}
        ends = {
            "swing": str(self.swing),
            **({} if self.lower is None else {"lower": str(self.lower)}),
        }
        return {"names": list(self.names), "unit": str(self.unit), **one, **ends}


@dataclass(frozen=True)
class UnitChange:
    """The change that one unit can make over a series:
    to each total of a period, in how many periods, how related.
    """

    totals: tuple[TotalChange, ...]
    periods: int
    relation: Relation

    @classmethod
    def of(cls, question: Question, periods: int) -> UnitChange:
        """The change for the question of one period, for a unit in at most `periods` periods."""
        joining = replace(
            question,
            step=exchanged(
                question.step, lambda source: replace(source, relation=Relation.ADD_REMOVE)
            ),
        )
        pairs = zip(question.allotments, joining.allotments, strict=True)
        return cls(tuple(TotalChange.of(*pair) for pair in pairs), periods, question.table.relation)

    @property
    def ones(self) -> tuple[Sensitivity, ...]:
        """The sensitivities of the totals of one period if a unit joins or leaves."""
        return tuple(total.one for total in self.totals)

    def over(self, total: int, size: int, periods: int | None = None) -> Sensitivity:
        """The sensitivity of a total over blocks of at most `size` periods, for a
        unit in at most `periods` of them.
        """
        often, change = self.periods if periods is None else periods, self.totals[total]
        return period_totals(
            change.one, change.swing, periods=often, size=size, relation=self.relation
        )

    def weighted(
        self, total: int, weights: Sequence[int], nights: int | None = None
    ) -> Sensitivity:
        """The sensitivity of weighted sums of a total, of one night or
        of all; see `weighted_totals`.
        """
        one, swing = self.totals[total].one, self.totals[total].swing
        return weighted_totals(
            one, swing, weights=weights, periods=self.periods, relation=self.relation, nights=nights
        )

    def hold(self, question: Question, label: str, had: Sequence[str]) -> None:
        """Refuse a question of a period that one unit may change by more than the
        noise of the series was bought for.

        Input:  self: what the noise was bought for; question: that of a period, worked out now;
                    label: its period; had: the lines that set the limits of the first period, see
                    `limits_typed`
        Neighbours: histories that differ in all rows of one unit, in at most `periods` periods,
                    which are present or absent ("add-remove") or exchanged for another unit's
                    ("replace")
        Bound:  a period of an accepted question has the same totals in the same units, and a unit
                    moves each of them by a vector whose l0, l1 and largest entry are at most those
                    of `self`. Where units are exchanged, all entries are also between the same two
                    ends. Else one period could have a large entry of one unit, another period a
                    small one of the other unit, and a block their difference. So every block has at
                    most the sensitivity `self.over`, and the sums of all nights together have at
                    most `self.weighted`, for which their noise was calibrated, whatever the
                    question of each of their periods is at each reading. This holds for every
                    answer before it, so the losses add up to at most the price if each question is
                    chosen because of the answers so far
        Why:  `over` is a sum over periods of bounds of one period (`period_totals`,
                    `weighted_totals`) and grows. Noise is added to integers, so it is worth as much
                    as one unit of the integer: a total on another grid would have another noise,
                    and no exact sum with the other periods of its block
        Source:  Dwork, Rothblum, Vadhan 2010, doi:10.1109/FOCS.2010.12, for Laplace noise; Smith,
                    Thakurta 2022, arXiv:2210.17520, and Feldman, Zrnic 2021, arXiv:2008.11193, for
                    Gaussian noise whose questions are chosen as answers come, under a fixed sum of
                    squares
        Errors:     ReleaseMismatch, before anything is read or charged
        """
        now = UnitChange.of(question, self.periods)
        has = limits_typed(question)
        clips = [{line for line in lines if line.startswith("clip(")} for lines in (had, has)]
        problem = self._problem(now, alike=clips[0] == clips[1])
        if not problem:
            return
        before, after = (
            [line for line in one if line not in other] for one, other in ((had, has), (has, had))
        )
        line = (
            f"Type {', '.join(before)}, or"
            if before
            else "Give it the type and limits of the first period, or"
        )
        words = (
            f" The series began with {', '.join(before)}, and this is {', '.join(after)}."
            if before
            else ""
        )
        raise ReleaseMismatch(
            "series.add: the noise of this series was bought for its first period, and for "
            f"{label} {problem}.{words} {line} open another series for this question. Nothing was "
            "spent."
        )

    def _problem(self, now: UnitChange, *, alike: bool) -> str:
        """The difference for which another question is refused, in words; empty if there is none.

        Input:  alike: whether the bounds of columns are those of the first period
        """
        if [total.names for total in self.totals] != [total.names for total in now.totals] or (
            self.relation != now.relation
        ):
            return "there are other noisy totals"
        for i, (bought, total) in enumerate(zip(self.totals, now.totals, strict=True)):
            name = ", ".join(map(repr, total.names))
            if bought.unit != total.unit:
                return f"{name} is added up in steps of {total.unit} instead of {bought.unit}"
            most, here = (
                self.over(i, 1, 1).scaled(bought.unit),
                now.over(i, 1, 1).scaled(bought.unit),
            )
            larger = [
                f"{part.removeprefix('exact_')} {number(float(getattr(here, part)))}, not "
                f"{number(float(getattr(most, part)))}"
                for part in ("l0", "exact_l1", "exact_linf")
                if getattr(here, part) > getattr(most, part)
            ]
            if larger:
                return f"one unit may change {name} by more: {'; '.join(larger)}"
            if self.relation == Relation.REPLACE and not bought.has_inside(total, alike=alike):
                return f"{name} of one unit may be on the other side of 0"
        return ""


def limits_typed(question: Question) -> list[str]:
    """The limits on one unit and the bounds of columns in a
    question, as lines that a person types.
    """
    table, limits = question.table, question.limits
    kept = limits if question.by else replace(limits, max_groups=None)
    lines = [f"dp.Rows({table.declared})"] if table.declared is not None else []
    lines += [f"bound({kept.typed})"] if table.declared is None and kept.typed else []
    columns = {
        total.column
        for allotment in question.allotments
        for total in [allotment.total]
        if total.column
    }
    for name, column in table.columns.items():
        if column in columns and column.domain.bounds is not None:
            lower, upper = column.domain.bounds
            lines.append(f"clip({name!r}, {number(lower)}, {number(upper)})")
    return lines
