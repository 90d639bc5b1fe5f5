"""The noisy totals of a question with their names and their parts of the price."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.columns import Limits
from dpframe.plan.statistics import Aggregate, Mean, ReleasedColumn, Sum
from dpframe.plan.totals import Total, TotalKind, row_total, total_of_pair
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.error import margin_shares
from dpframe.theory.formulas.sensitivity import (
    Contribution,
    OneSigned,
    Relation,
    joint_l1,
    merged,
    pair_gains,
    row_places,
)

TotalKey = tuple[object, ...]  # see `Total.key`


@dataclass(frozen=True)
class InStep:
    """Public facts of totals that one unit moves in step, so that they may share their noise.

    Each row of a unit moves a total by at most `size`, in units of its integer, and all rows of the
    units in which tables differ have at most the weight `rows`, over all groups. In a table without
    groups, `size` is how far the whole table moves, and `rows` is 1. Totals `under` the same limits
    have the same rows. The `sign` is 1 or -1 for a total that is released as it is, to which a unit
    adds numbers of that sign alone, else 0. For noise from windows, each of `vectors` units counts.
    """

    size: int
    rows: Fraction
    under: object
    sign: int
    vectors: int = 1


@dataclass(frozen=True)
class Allotment:
    """A total, its names in the released table, and its weight when the price is split.

    `share` is the weight where ρ is split. `pure` is the weight where ε is split over Laplace
    noise, if that weight differs. A total of weight 0 is not measured. A `hidden` total only finds
    the keys: its number is not released. A sum with a count `beside` it may be measured as a pair
    with that count, for the price of both: see `theory.formulas.sensitivity.pairs`. The number of
    `rows` that both are about may be measured with them: then `joint` is how far one unit moves all
    three, see `joint_l1` there. `columns` is how many released columns follow from the total. It is
    a fraction if a column needs several totals. `one_signed` is set if each unit adds numbers of
    one sign to listed groups, and the released table is about single groups: cells may then share a
    part of their noise. `in_step` is set if a total may share its noise with other totals of the
    same group.
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
    in_step: InStep | None = None

    @property
    def weight(self) -> int:
        """The weight of the count in the pair: the largest value, in units of the
        sum for one unit of the count.
        """
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

    A total that is released as it is, as a count or a sum, has it. The count under a mean has none:
    what follows from several totals, and `shrink()`, take the noises of different groups for
    independent.
    """
    if cells < 2:
        return read
    vector = OneSigned(cells, 2 if relation == Relation.REPLACE else 1)
    apart = {total.key for output in outputs if not output.single for _, total in output.totals}
    return tuple(
        replace(p, one_signed=vector) if p.total.one_signed and p.total.key not in apart else p
        for p in read
    )


def check_apart(allotments: Iterable[Allotment]) -> None:
    """Check that no name is that of two totals, or twice that of one:
    sensitivities and errors are looked up by it.

    Errors: InvalidArgument where a column has the name of a part of another, such as 'n.sum' beside
            the mean 'n'
    """
    seen: set[str] = set()
    for name in (name for allotment in allotments for name in allotment.names):
        if name in seen:
            raise InvalidArgument(
                f"Two totals would have the name {name!r}: parts are named after their columns, as "
                "in 'n.sum', and tables after their keys, as in 'a × b'. Name one otherwise, with "
                f"agg(**{{'{name}_': ...}}) or rename({{{name!r}: '{name}_'}}) before."
            )
        seen.add(name)


def in_step(total: Total, unit_limits: UnitLimits, *, alone: bool) -> InStep | None:
    """Facts of a total that totals with one noise need; None for one that cannot share its noise.

    Bound:  in a table without groups, neighbouring tables differ in a total by at most its linf,
            whatever moves it. In groups, a unit whose rows weigh w in a group moves a total there
            by at most size·w. A number of rows, or of values, moves by at most w. Values, products
            and logarithms are clipped to the ends of a grid, added up over the unit's rows, and
            multiplied by w over the number of rows, rounded toward 0 and clipped to w times these
            ends. w follows from the number of the unit's rows in its groups, whichever total is
            added up. The w of one unit add up to at most its limit on rows. A number of units, and
            a sum of one clipped number for each unit, move by at most `size` in each of the unit's
            groups
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_places`, for one unit and for two
    """
    sign = (-1 if total.grid.lower < 0 else 1) if alone and total.one_signed else 0
    if unit_limits.cells == 1:
        size, vectors = (
            total.sensitivity.exact_linf,
            2 if unit_limits.table.relation == Relation.REPLACE else 1,
        )
        return (
            InStep(math.ceil(size), Fraction(1), None, sign, vectors)
            if total.kind in (*_OF_ROWS, *_OF_UNITS)
            else None
        )
    of_units = total.kind in _OF_UNITS
    if (
        total.follows is not None
        or not (of_units or total.kind in _OF_ROWS)
        or not total.grid.magnitude
    ):
        return None
    groups = unit_limits.groups
    limits = Contribution(groups, 1, groups) if of_units else unit_limits.contribution
    rows = row_places(limits, unit_limits.table.relation, unit_limits.cells).exact_l1
    return InStep(total.grid.magnitude << total.fraction, rows, (of_units, total.limits), sign)


def moved_in_step(
    read: tuple[Allotment, ...],
    outputs: Iterable[tuple[ReleasedColumn, tuple[object, UnitLimits]]],
    finds: Total | None,
) -> tuple[Allotment, ...]:
    """The totals, each with its `in_step` if it may share its noise with others of its group.

    Input:  the totals; the released columns with the limits of each; the number that finds the
            keys, which has noise of its own
    """
    limited, apart = dict[TotalKey, UnitLimits](), set() if finds is None else {finds.key}
    several = set[TotalKey]()
    for output, (_, limits) in outputs:
        limited |= {total.key: limits for _, total in output.totals}
        several |= set() if output.single else {total.key for _, total in output.totals}
    new = {
        p.total.key: replace(
            p, in_step=in_step(p.total, limited[p.total.key], alone=p.total.key not in several)
        )
        for p in read
        if p.total.key in limited and p.total.key not in apart and p.total.sensitivity.l0
    }
    pairs = {
        key: replace(p, beside=new.get(p.beside.total.key, p.beside))
        for key, p in new.items()
        if p.beside is not None
    }
    return tuple((new | pairs).get(p.total.key, p) for p in read)


_OF_ROWS = (TotalKind.ROWS, TotalKind.VALUES, TotalKind.SUM, TotalKind.PRODUCT, TotalKind.LOG)
_OF_UNITS = (TotalKind.UNITS, TotalKind.UNIT_SUM)


def sums_of_pairs(
    outputs: Sequence[ReleasedColumn],
    asked: Sequence[tuple[Aggregate, UnitLimits]],
    *,
    listed: bool,
) -> tuple[ReleasedColumn, ...]:
    """The released columns.
    A sum beside a mean of the same values is the sum and the count of the mean, added up.

    So all three share one price: see `theory.formulas.sensitivity.pairs`. Where a unit may be in
    several listed groups, the groups of a sum by itself may share noise, so it stays by itself.

    Input:  the columns as they are asked for; of each its aggregate with its limits; listed:
            whether keys are
    """
    together, means = list(outputs), dict[object, tuple[Total, Total]]()
    for (aggregate, _), output in zip(asked, outputs, strict=True):
        if isinstance(aggregate, Mean) and output.totals[-1][1].sensitivity.l0:
            (_, total), *_, (_, count) = output.totals
            means[aggregate.column, aggregate.bounds, total.limits] = total, count
    for i, (aggregate, unit_limits) in enumerate(asked):
        if not isinstance(aggregate, Sum) or aggregate.unit_bounds is not None:
            continue
        ((name, total),) = outputs[i].totals
        pair = means.get((aggregate.column, aggregate.bounds, total.limits))
        if pair is not None and not (listed and total.sensitivity.l0 > 1):
            together[i] = replace(outputs[i], totals=((name, total_of_pair(*pair, unit_limits)),))
    return tuple(together)


def with_pairs(
    read: Mapping[TotalKey, Allotment], outputs: Iterable[ReleasedColumn], finds: TotalKey | None
) -> tuple[Allotment, ...]:
    """Sums measured from the middle of their bounds, each as a pair with
    its count if that has less noise.

    A count is in at most one pair, with the first sum that gains from it. A count that finds the
    keys is in no pair. A ratio of sums has no count, so it is no pair either.
    """
    by_key, partners = dict(read), set[TotalKey]()
    for output in outputs:
        if not output.derived or not output.totals[-1][1].counts_rows:
            continue
        numerator, count = (by_key[output.totals[i][1].key] for i in (0, -1))
        deciding = finds == count.total.key
        movable = numerator.total.sensitivity.l0 and count.total.sensitivity.l0
        counted = numerator.total.counts_rows  # rows less values are no mean
        if counted or deciding or not movable or {numerator.total.key, count.total.key} & partners:
            continue
        pair, shares = (
            replace(numerator, beside=count),
            (numerator.epsilon_share, count.epsilon_share),
        )
        sizes = numerator.total.sensitivity, count.total.sensitivity
        if pair_gains(*sizes, pair.weight, shares, mean_only=len(count.names) == 1):
            by_key[numerator.total.key] = pair
            partners |= {numerator.total.key, count.total.key}
    return tuple(by_key.values())


def added_up(read: Iterable[Allotment]) -> list[Allotment]:
    """The totals of all suppressed groups together. They take no part of the price."""
    rest = {
        allotment.total.key: Allotment(
            tuple(f"{name}.other" for name in allotment.names),
            replace(
                allotment.total, collects=True, sensitivity=merged(allotment.total.sensitivity, 1)
            ),
            Fraction(0),
            columns=allotment.columns,
        )
        for allotment in read
        if not allotment.hidden
    }
    for allotment in read:
        if allotment.beside is not None:
            rest[allotment.total.key] = replace(
                rest[allotment.total.key], beside=rest[allotment.beside.total.key]
            )
    return list(rest.values())


def with_margins(read: tuple[Allotment, ...], shape: tuple[int, int]) -> tuple[Allotment, ...]:
    """The cells and the margins, each with its part of the price.
    The parts follow from the table's shape alone.

    All cells of a unit may fall into one row, column or the total: see
    `theory.formulas.sensitivity.grouped.merged`.
    """
    if len(read) != 1:
        raise UnsupportedOperation(
            "crosstab: margins='measured' is for counts and sums; means have none."
        )
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


def with_rows(
    read: tuple[Allotment, ...],
    outputs: Iterable[tuple[ReleasedColumn, tuple[Limits | None, UnitLimits]]],
    threshold: Total | None,
) -> tuple[Allotment, ...]:
    """Pairs of a sum and a count of values, with what may share their price beside them.

    That is a sum that follows from the pair, and for the first pair also the number of rows. The
    latter must be released as it is. A number that finds the keys, or that another statistic needs,
    is measured by itself.
    """
    limited, by_key = list(outputs), {allotment.total.key: allotment for allotment in read}
    apart = {total.key for output, _ in limited if not output.single for _, total in output.totals}
    apart |= {threshold.key} if threshold is not None else set()
    for output, (_, unit_limits) in limited:
        pair = by_key[output.total.key]
        count = (
            pair.beside.total
            if pair.beside is not None and pair.rows is None and pair.sum is None
            else None
        )
        if count is None:
            continue
        following = (p for p in read if p.total.follows == (pair.total, count))
        pair = by_key[pair.total.key] = replace(pair, sum=next(following, None))
        key = replace(row_total(unit_limits), limits=count.limits).key
        rows = by_key.get(key)
        if (
            rows is None
            or key in apart
            or not rows.total.sensitivity.l0
            or count.kind is not TotalKind.VALUES
        ):
            continue
        if count.columns == (pair.total.column,):
            limits, one_row = unit_limits.contribution, Fraction(2**count.fraction)
            moved = joint_l1(limits, unit_limits.table.relation, one_row, unit_limits.cells)
            by_key[pair.total.key] = replace(pair, rows=rows, joint=moved)
            apart.add(key)
    return tuple(by_key.values())
