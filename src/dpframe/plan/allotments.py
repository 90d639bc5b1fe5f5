"""The noisy totals of a question with their names and their parts of the price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.errors import UnsupportedOperation
from dpframe.plan.statistics import ReleasedColumn
from dpframe.plan.totals import Total
from dpframe.theory.formulas.error import margin_shares
from dpframe.theory.formulas.sensitivity import OneSigned, Relation, merged


@dataclass(frozen=True)
class Allotment:
    """A total, its names in the released table, and its weight when the price is split.

    `share` is the weight where ρ is split. `pure` is the weight where ε is split over Laplace noise, if that weight
    differs. A total of weight 0 is not measured. A `hidden` total only finds the keys: its number is not released. A
    sum with a count `beside` it may be measured as a pair with that count, for the price of both: see
    `theory.formulas.sensitivity.pairs`. The number of `rows` that both are about may be measured with them: then
    `joint` is how far one unit moves all three, see `joint_l1` there. `columns` is how many released columns follow
    from the total. It is a fraction if a column needs several totals. `one_signed` is set if each unit adds numbers of
    one sign to listed groups, and the released table is about single groups: cells may then share a part of their
    noise.
    """

    names: tuple[str, ...]
    total: Total
    share: Fraction
    pure: Fraction | None = None
    hidden: bool = False
    beside: Allotment | None = None
    rows: Allotment | None = None
    sum: Allotment | None = None
    joint: Fraction = Fraction(0)
    columns: Fraction = Fraction(1)
    one_signed: OneSigned | None = None

    @property
    def weight(self) -> int:
        """The weight of the count in the pair: the largest value, in units of the sum for one unit of the count."""
        assert self.beside is not None
        return self.total.grid.magnitude << (self.total.fraction - self.beside.total.fraction)

    @property
    def epsilon_share(self) -> Fraction:
        """The weight if ε is split."""
        return self.share if self.pure is None else self.pure

    def and_also(self, other: Allotment) -> Allotment:
        """One total for the columns of both allotments."""
        names, share = (*self.names, *other.names), max(self.share, other.share)
        return replace(self, names=names, share=share, columns=self.columns + other.columns)


def one_signed_of_single_groups(
    read: tuple[Allotment, ...], outputs: Iterable[ReleasedColumn], cells: int, relation: Relation
) -> tuple[Allotment, ...]:
    """The totals of a long table with listed groups, each with its `one_signed` if it has one.

    A total that is released as it is, as a count or a sum, has it. The count under a mean has none: what follows from
    several totals, and `shrink()`, take the noises of different groups for independent.
    """
    if cells < 2:
        return read
    vector = OneSigned(cells, 2 if relation == "replace" else 1)
    apart = {total.key for output in outputs if not output.single for _, total in output.totals}
    return tuple(replace(p, one_signed=vector) if p.total.one_signed and p.total.key not in apart else p for p in read)


def with_margins(read: tuple[Allotment, ...], shape: tuple[int, int]) -> tuple[Allotment, ...]:
    """The cells and the margins, each with its part of the price. The parts follow from the table's shape alone.

    All cells of a unit may fall into one row, column or the total: see
    `theory.formulas.sensitivity.grouped.merged`.
    """
    if len(read) != 1:
        raise UnsupportedOperation("crosstab: margins='measured' is for counts and sums; means have none.")
    (cells,) = read
    bound = cells.total.sensitivity
    if not bound.l0:
        return read
    ratio = bound.exact_l1**2 / bound.l2_squared
    normal, pure = (margin_shares(*shape, ratio, family) for family in ("gaussian", "laplace"))
    number = {"rows": shape[0], "columns": shape[1], "total": 1}
    margins = [
        Allotment(
            tuple(f"{name}.{source}" for name in cells.names),
            replace(cells.total, merged=source, sensitivity=merged(bound, number[source])),
            normal[source],
            pure[source],
        )
        for source in ("rows", "columns", "total")
        if normal[source] or pure[source]
    ]
    return (replace(cells, share=normal["cells"], pure=pure["cells"]), *margins)
