"""The question: groups, limits and aggregates on top of a plan, resolved into
the noisy totals that it needs.

Neighbouring tables differ in the rows of one unit. Limits are enforced, or with `dp.Rows(k)`
declared. They bound the unit's part of every total, and this bound gives the sensitivity of the
total. The formulas are in `dpframe.theory.formulas.sensitivity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpframe.errors import DpFrameError, InvalidArgument, UnsupportedOperation, WrongType
from dpframe.fields import FieldDict, Fields
from dpframe.plan.allotments import (
    Allotment,
    added_up,
    check_apart,
    moved_in_step,
    one_signed_of_single_groups,
    sums_of_pairs,
    with_margins,
    with_pairs,
    with_rows,
)
from dpframe.plan.columns import Auto, Bounds, Column, Limits, Table, check_names, shares_of_bounds
from dpframe.plan.keys import Key, Keys, check_key
from dpframe.plan.layout import Layout, measured_shape
from dpframe.plan.moments import Covers, is_sampled, share_of, with_moments
from dpframe.plan.statistics import (
    Aggregate,
    Aggregates,
    Formula,
    Mode,
    ReleasedColumn,
    cut_at_points,
)
from dpframe.plan.steps import Step
from dpframe.plan.totals import Total, units_total, weights_total
from dpframe.plan.types import Kind, show
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import MOST_KEYS, Relation, Sensitivity


@dataclass(frozen=True, eq=False)
class Question:
    """A question: aggregates of the groups of a plan's table.
    Everything is checked when the question is made.
    """

    step: Step
    by: tuple[str, ...]
    keys: Keys | None
    given: Limits
    aggregates: Aggregates
    layout: Layout = Layout()  # noqa: RUF009  (it is frozen)
    chosen: Limits | None = None  # the limits that dp.Auto chose inside the release
    verb: str = ""  # the call, with a place for limits: "group_by('city', {limit})"
    other: Key | None = None  # the key of the row that collects suppressed groups
    ci: float | None = None  # the confidence of quantiles' intervals, if these are paid for
    # what intervals are about; the sampling of people may need second moments
    covers: Covers = Covers.NOISE
    # of keys found in the data: a group of fewer units is not released
    min_units: int | None = None

    def __post_init__(self) -> None:
        check_names(name for name, _ in self.aggregates)
        _ = self.read, self.ends  # every refusal comes now, not at release
        check_apart(self.allotments)

    def apart(self) -> Question:
        """The question with totals of its own: a batch in which it is
        listed twice has noise for each.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update({part.name: getattr(self, part.name) for part in fields(self)})
        return copy

    @property
    def tables_asked(self) -> Fields:
        """Fields that a question about several tables adds to the description
        of a question, by name; no data.
        """
        return {}

    @property
    def limits_groups(self) -> bool:
        """Whether a limit on groups restricts what one unit can have here."""
        return bool(self.by)

    @property
    def tables_in_words(self) -> str:
        """The released tables and their parts of the price, in words; empty for a single table."""
        return ""

    @property
    def table(self) -> Table:
        """The domain of the rows that reach the question."""
        return self.step.table

    @cached_property
    def group_columns(self) -> tuple[Column, ...]:
        """The columns that make the groups."""
        columns = []
        for name in self.by:
            column = self.table.column(name, "group_by")
            if column.kind == Kind.OTHER:
                raise WrongType(
                    f"group_by({name!r}): a column of type {show(column.domain.dtype)} cannot be a "
                    "key."
                )
            check_key(column.domain.dtype, name, f"group_by({name!r})")
            columns.append(column)
        if len(set(self.by)) != len(self.by):
            raise InvalidArgument("group_by: a column is named twice.")
        unit_ids = {column.id for column in self.table.unit}
        if unit_ids and unit_ids <= {column.id for column in columns}:
            raise UnsupportedOperation(
                f"group_by({', '.join(map(repr, self.by))}): each group would be one unit, and its "
                "row would be about one person. Group by something that people share."
            )
        return tuple(columns)

    @property
    def private_keys(self) -> bool:
        """Whether groups are found in the data. Each group must then pass a threshold."""
        return bool(self.by) and self.keys is None

    @property
    def only_in_both(self) -> frozenset[str]:
        """The totals whose sensitivity is about groups that both neighbouring tables have.

        These are totals of columns with limits of their own, in groups that are found in the data.
        Which groups a table has follows from the limits of the grouping. A group of one table alone
        is an event of keys: it has one unit, so it is shown with probability δ at most. A column
        with wider limits may count other units there.
        """
        found = self.read if self.private_keys else ()
        return frozenset(
            name for paid in found if paid.total.limits is not None for name in paid.names
        )

    @property
    def typed_limits(self) -> Limits:
        """The limits on one unit that were typed, in earlier steps and here."""
        return self.table.limits.and_also(self.given)

    @property
    def stated_limits(self) -> Limits:
        """The limits on one unit that were typed or chosen."""
        return self.typed_limits.and_also(self.chosen or Limits())

    @property
    def in_rounds(self) -> bool:
        """Whether keys alone are found in rounds, by weights:
        where no limit says how many groups a unit may have.
        """
        alone = (
            self.private_keys
            and not self.aggregates
            and self.other is None
            and bool(self.table.unit)
        )
        return (
            alone and self.stated_limits == Limits() and self.table.relation == Relation.ADD_REMOVE
        )

    @cached_property
    def limits(self) -> Limits:
        """The limits of one unit: those of earlier steps, those typed here,
        and those that follow from them.
        """
        return self._consistent(self._default_limits)

    def limits_of(self, own: Limits) -> Limits:
        """The limits of one unit for a column that may have some of its own.

        Errors: UnsupportedOperation where columns cannot have their own; InvalidArgument for groups
                that are not there
        """
        if own == Limits():
            return self.limits
        if not self.by and own != Limits(own.max_rows):
            raise InvalidArgument(
                f"{own.typed}: there are no groups here, so a column has rows in all. Type "
                "max_rows=5."
            )
        if self.other is not None:
            raise UnsupportedOperation(
                f"{own.typed}: with other=, all columns have the limits of group_by(...)."
            )
        return self._consistent(
            own.or_else(self._default_limits).and_also(replace(self.table.limits, auto=None))
        )

    @property
    def _default_limits(self) -> Limits:
        """The limits that were typed or chosen; until they are chosen, the strictest."""
        limits = self.stated_limits
        if self.auto:
            return Limits(
                limits.max_rows or 1, limits.max_groups or 1, limits.max_rows_per_group or 1
            )
        return limits

    def _consistent(self, limits: Limits) -> Limits:
        """Limits, and those that follow from them.
        Errors: UnsupportedOperation where they cannot be enforced.
        """
        cells = self.cells
        if self.table.declared is not None:
            if self.given != Limits() or any(
                aggregate.limits != Limits() for _, aggregate in self.aggregates
            ):
                raise UnsupportedOperation(
                    f"{self.verb.replace('{limit}', '...')}: without an identifier column nobody "
                    f"can tell whose rows to limit; dp.Rows({self.table.declared}) is the limit. "
                    "Protect the table with unit='...' to enforce one."
                )
            limits = Limits(self.table.declared, self.table.declared, self.table.declared)
        groups = (
            1
            if not self.by
            else limits.max_groups
            if limits.max_groups is not None
            else limits.max_rows
        )
        if self.in_rounds:
            groups = MOST_KEYS
        if groups is not None and limits.max_rows is not None:
            groups = min(groups, limits.max_rows)
        if groups is not None and cells is not None:
            groups = min(groups, cells)
        return Limits(limits.max_rows, groups, limits.max_rows_per_group if self.by else None)

    @property
    def auto(self) -> Auto | None:
        """The dp.Auto that chooses limits; None if there is none, or it has chosen them."""
        return self.typed_limits.auto if self.chosen is None else None

    @cached_property
    def open_bounds(self) -> Mapping[str, Auto]:
        """The columns whose bounds the release is to choose, with
        the share of the price for each.
        """
        typed = [
            (getattr(a, "column", None), getattr(a, "bounds", None)) for _, a in self.aggregates
        ]
        return shares_of_bounds(
            [(name, auto) for name, auto in typed if name is not None and isinstance(auto, Auto)]
        )

    @property
    def limits_share(self) -> Fraction:
        """The part of the price that pays for the choice of limits;
        0 if the release is to choose none.
        """
        if self.auto is None:
            return Fraction(0)
        counted = all(output.formula in (Formula.COUNT, Formula.SUM) for output in self.outputs)
        return self.auto.share_of(self.cells) if counted else self.auto.share

    @property
    def chosen_share(self) -> Fraction:
        """The part of the price that pays for all limits and bounds
        that the release is to choose.
        """
        return sum(
            (auto.share for auto in self.open_bounds.values()), self.limits_share + self.narrowing
        )

    @property
    def narrowing(self) -> Fraction:
        """The part of the price that pays for narrower bounds;
        0 if the typed ones are to be used.
        """
        return max((aggregate.narrowing for _, aggregate in self.aggregates), default=Fraction(0))

    @cached_property
    def ends(self) -> Mapping[str, Bounds]:
        """The columns whose bounds the release is to narrow, with their bounds.

        Errors: UnsupportedOperation beside dp.Auto(); InvalidArgument for a column that has other
                bounds elsewhere
        """
        if not self.narrowing:
            return {}
        asked = zip(self.aggregates, self.outputs, strict=True)
        narrow = [
            (one, ends) for (_, one), output in asked if one.narrowing for ends in one.ends(output)
        ]
        if self.auto is not None or self.open_bounds:
            raise UnsupportedOperation(
                f"{narrow[0][0].typed}: narrow=True narrows typed bounds under typed limits, and "
                "dp.Auto() chooses limits or bounds in this question. Ask it in two questions, or "
                "type limits and bounds."
            )
        ends = dict[str, Bounds]()
        for one, (name, bounds) in narrow:
            if ends.setdefault(name, bounds) != bounds:
                raise InvalidArgument(
                    f"{one.typed}: narrow=True narrows the bounds of {name!r} once for all "
                    "columns, and they are others elsewhere in this question. Type the same "
                    "bounds."
                )
        return ends

    @property
    def undecided(self) -> bool:
        """Whether the release is to choose limits or bounds."""
        return self.auto is not None or bool(self.open_bounds) or self.narrowing > 0

    def with_bounds(self, bounds: Mapping[str, Bounds]) -> Question:
        """The question with bounds of columns in place of dp.Auto(); times are given as times."""
        return replace(
            self, aggregates=tuple((name, a.within(bounds)) for name, a in self.aggregates)
        )

    def with_ci(self, ci: float | None) -> Question:
        """The question with intervals of its quantiles, which share their price;
        itself if no quantile can have one.

        A minimum or maximum has no interval: values beyond it may lie anywhere up to the bound, at
        any price.
        """
        paying = any(m.between for output in self.outputs for _, m in output.totals)
        return replace(self, ci=ci) if paying else self

    def with_limits(self, limits: Limits) -> Question:
        """The question with the limits that the release chose, inside those that were typed."""
        return replace(self, chosen=limits)

    @property
    def cells(self) -> int | None:
        """Number of groups of the table; None if they are not listed."""
        return 1 if not self.by else None if self.keys is None else self.keys.size

    @cached_property
    def unit_limits(self) -> UnitLimits:
        """The table, groups and limits that an aggregate resolves its totals with."""
        return self._under(self.limits)

    def limits_on(self, total: Total) -> FieldDict:
        """Certified facts behind a total's sensitivity:
        limits of one unit, and the number of entries.
        """
        under, moment = self._under(total.limits or self.limits), total.moment
        if moment is not None:
            groups = moment.others if total.between_groups else max(moment.most_groups, 1)
            return {
                "limits": {"groups": groups},
                "cells": moment.place if total.between_groups else self.cells,
            }
        if total.of_units:
            return {"limits": {"groups": under.groups}, "cells": self.cells}
        return {"limits": under.contribution.to_json(), "cells": self.cells}

    @property
    def takes_auto(self) -> bool:
        """Whether the verb takes limits=dp.Auto(), so that an error may say so."""
        return not self.layout.measured

    def _under(self, limits: Limits) -> UnitLimits:
        """The table and groups with some limits."""
        _ = self.group_columns
        return UnitLimits(
            self.table,
            self.by,
            self.cells,
            limits.max_groups,
            limits.max_rows_per_group,
            limits.max_rows,
            self.verb or "{limit}",
            self.verb,
            self.auto is None and 1 in (limits.max_rows, limits.max_rows_per_group),
            choosable=self.takes_auto,
            ci=self.ci,
        )

    @cached_property
    def outputs(self) -> tuple[ReleasedColumn, ...]:
        """The released columns."""
        for name, _ in self.aggregates:
            if name in self.by:
                raise InvalidArgument(
                    f"The result would have two columns {name!r}; name one of them otherwise: "
                    f".agg(total_{name}=...) after group_by, or rename({{{name!r}: '{name}_key'}}) "
                    "before."
                )
        asked = list(zip(self.aggregates, self._limited, strict=True))
        outputs = cut_at_points(
            [
                aggregate.output(name, limits).under(own)
                for (name, aggregate), (own, limits) in asked
            ]
        )
        if self.covers is not Covers.NOISE:
            self._check_population()
            return tuple(
                with_moments(output, limits).under(own)
                for output, (_, (own, limits)) in zip(outputs, asked, strict=True)
            )
        if self.other is not None or self.undecided:
            return outputs
        under = [(aggregate, limits) for (_, aggregate), (_, limits) in asked]
        return sums_of_pairs(outputs, under, listed=self.keys is not None)

    @cached_property
    def sampled(self) -> frozenset[str]:
        """The released columns whose intervals for the population
        need no totals beside their own.
        """
        try:
            self._check_population()
        except DpFrameError:  # this question has no such intervals
            return frozenset()
        asked = zip(self.aggregates, self._limited, strict=True)
        limited = (
            (aggregate.output(name, limits), limits) for (name, aggregate), (_, limits) in asked
        )
        return frozenset(output.name for output, limits in limited if is_sampled(output, limits))

    @cached_property
    def _limited(self) -> tuple[tuple[Limits | None, UnitLimits], ...]:
        """Limits of each column's own, None for those of the question;
        and the limits behind its totals.

        Bound:  a column's totals are computed under its limits alone, as in a question of this
                column by itself. So neighbouring tables move each total as far as in that question.
                Totals with other limits are other totals (`Total.key`) with noise of their own, and
                their prices add up. In groups that are found in the data, the limits of the
                question decide which groups appear: see `dpframe.engine.compile.compiled`
        """
        if (
            self.auto
            and not self.private_keys
            and self.aggregates
            and all(a.limits.typed for _, a in self.aggregates)
        ):
            raise InvalidArgument(
                "limits=dp.Auto(): each column has limits of its own. Leave limits= out."
            )

        def limited(aggregate: Aggregate) -> tuple[Limits | None, UnitLimits]:
            limits, apart = self.limits_of(aggregate.limits), self.auto and aggregate.limits.typed
            own = None if limits == self.limits and not apart else limits
            return own, replace(self._under(limits), what=aggregate.typed)

        return tuple(limited(aggregate) for _, aggregate in self.aggregates)

    def _check_population(self) -> None:
        """Errors: UnsupportedOperation where no interval for the population
        is known, with the line to type.
        """
        what = "covers='population'"
        if (self.table.declared or 1) > 1:
            raise UnsupportedOperation(
                f"{what}: with dp.Rows({self.table.declared}) nobody can tell which rows are one "
                "person's, and people are the sample. Protect the table with unit='...'."
            )
        if self.undecided or self.table.limits.auto is not None:
            chooser = "narrow=True" if self.narrowing else "dp.Auto()"
            raise UnsupportedOperation(
                f"{what}: {chooser} cannot choose limits or bounds for it; type them."
            )
        if self.other is not None:
            raise UnsupportedOperation(
                f"{what}: a person may be in several suppressed groups; leave other= out."
            )
        if self.layout.largest is not None:
            raise UnsupportedOperation(
                f"{what}: the largest numbers were picked by their noise, and only intervals of "
                "noise correct for that. Leave covers= out."
            )
        if self.layout.margins or self.layout.measured or self.layout.normalize:
            raise UnsupportedOperation(
                f"{what}: margins and parts of a crosstab have intervals of their noise alone; "
                "leave margins= and normalize= out."
            )

    def covering(self, covers: Covers) -> Question:
        """The question with intervals that cover this;
        refused where no interval for the population is known.
        """
        return self if covers is self.covers else replace(self, covers=covers)

    @cached_property
    def threshold(self) -> Total | None:
        """The number of units that decides which groups are released; None if groups are listed.

        A released number of units may also decide, unless suppressed groups are added up: see
        `theory.formulas.loss.key_selection.rest_scale`.
        """
        if not self.private_keys:
            return None
        if self.in_rounds:
            return weights_total()
        return replace(
            units_total(replace(self.unit_limits, what="keys found in the data")),
            finds=self.other is not None,
        )

    @cached_property
    def allotments(self) -> tuple[Allotment, ...]:
        """The different noisy totals. A count that several columns share is one total."""
        shares: dict[tuple[object, ...], Allotment] = {}
        for output, (_, aggregate) in zip(self.outputs, self.aggregates, strict=True):
            part = Fraction(1, max(1, sum(total.sensitivity.l0 > 0 for _, total in output.totals)))
            asked = [
                Allotment((name,), total, aggregate.weight(total), columns=part)
                for name, total in output.totals
            ]
            for name, total in output.moments:
                asked.append(
                    Allotment(
                        (name,), total, aggregate.share * share_of(total), columns=Fraction(0)
                    )
                )
            for new in asked:
                old = shares.get(new.total.key)
                shares[new.total.key] = new if old is None else old.and_also(new)
        if self.threshold is not None and self.threshold.key not in shares:
            names_in_use = {
                name for allotment in shares.values() for name in allotment.names
            } | set(self.by)
            name = (
                "weights"
                if self.in_rounds
                else "units"
                if "units" not in names_in_use
                else "units of the keys"
            )
            shares[self.threshold.key] = Allotment(
                (name,), self.threshold, Fraction(1), hidden=True
            )
        if self.shape is not None:
            return with_margins(tuple(shares.values()), self.shape)
        read = with_pairs(
            shares, self.outputs, None if self.threshold is None else self.threshold.key
        )
        if (
            self.cells
            and self.layout.is_long
            and self.covers is Covers.NOISE
            and not self.open_bounds
        ):
            read = one_signed_of_single_groups(read, self.outputs, self.cells, self.table.relation)
        if not self.layout.is_crosstab and not self.undecided and self.other is None:
            read = moved_in_step(
                read, zip(self.outputs, self._limited, strict=True), self.threshold
            )
        if self.other is not None:
            return (*read, *self._rest_totals(read))
        return with_rows(read, zip(self.outputs, self._limited, strict=True), self.threshold)

    def with_followed(self, values: Sequence[Any]) -> list[tuple[Allotment, Any]]:
        """Each total that rows are `read` for with its exact values, and each
        that follows from two of them.
        """
        read = list(zip(self.read, values, strict=True))
        exact = {allotment.total.key: one for allotment, one in read}
        for allotment in self.allotments:
            if allotment.total.follows is not None:
                both = (exact[total.key].astype(object) for total in allotment.total.follows)
                read.append((allotment, allotment.total.added_up(*both)))
        return read

    def _rest_totals(self, read: tuple[Allotment, ...]) -> list[Allotment]:
        """The totals of all suppressed groups together.

        What a unit adds is either in a released group or in these totals. So these totals take no
        part of the price.
        """
        for (_, aggregate), output in zip(self.aggregates, self.outputs, strict=True):
            if not all(total.additive for _, total in output.totals):
                raise UnsupportedOperation(
                    f"{aggregate.typed}: other= adds up suppressed groups, and this is no sum over "
                    "rows. Leave other= out, or ask for counts, sums, means and variances."
                )
        return added_up(read)

    @property
    def rounds(self) -> int:
        """Number of rows of each group in the released table: more than one for top_k."""
        return max((m.rounds for output in self.outputs for _, m in output.totals), default=1)

    @property
    def row_names(self) -> tuple[str, ...]:
        """The key columns of the released table: the groups, and for top_k the rank of a value."""
        if not any(
            isinstance(aggregate, Mode) and aggregate.most for _, aggregate in self.aggregates
        ):
            return self.by
        place = "rank"
        while place in (*self.by, *(output.name for output in self.outputs)):
            place += "_"
        return (*self.by, place)

    @cached_property
    def read(self) -> tuple[Allotment, ...]:
        """The noisy totals that rows are read for.
        Margins, suppressed groups and some sums follow from these.
        """
        return tuple(
            p
            for p in self.allotments
            if not (p.total.merged or p.total.collects or p.total.follows)
        )

    @cached_property
    def shape(self) -> tuple[int, int] | None:
        """Numbers of keys down and across a crosstab whose margins are
        measured; None for other questions.
        """
        if not self.layout.measured:
            return None
        if self.undecided or self.table.limits.auto is not None:
            raise UnsupportedOperation(
                "crosstab: dp.Auto() cannot choose limits or bounds for margins='measured'; type "
                "them."
            )
        return measured_shape(self.by, self.keys, self.layout)

    @property
    def sensitivity(self) -> Mapping[str, Sensitivity]:
        """For each noisy total, how far one unit moves it (column unit)."""
        return {
            name: p.total.sensitivity.scaled(p.total.unit)
            for p in self.allotments
            for name in p.names
        }
