"""A question about many marginals at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from dpframe import engine
from dpframe.api.arguments import Options, read_names
from dpframe.api.query import Query
from dpframe.api.statistics.counts import count
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Keys, Limits, Marginals, titled
from dpframe.plan.declared import limits_of
from dpframe.plan.steps import Step
from dpframe.release.accuracy import check_alpha
from dpframe.release.estimators import whole_rows
from dpframe.release.kinds.marginals import (
    MarginalsRelease,
    exact_interactions,
    interaction_variances,
    table_noise,
)
from dpframe.release.pricing import Fitted, NoisePlan
from dpframe.theory.formulas.error import Attributes


class TablesQuery(Query[Table_co]):
    """Several tables that are fitted to each other and have not been released."""

    __slots__ = ()

    @abstractmethod
    def _fitted(self, plan: NoisePlan) -> Sequence[tuple[str, float | None, Fitted]]:
        """The mechanism and scale of each table, and the noise of its numbers after the fit."""

    def _error_rows(
        self,
        price: Mapping[str, float | None],
        alpha: float,
        noise: str,
        rows: int | None,
        of: str | None = None,
    ) -> list[tuple[Any, ...]]:
        """One row per table: the error is that of its number with the largest one."""
        alpha, fitted = check_alpha(alpha), self._fitted(self._noise_plan(price, noise))
        return [
            (output.name, output.formula.value, label, scale, float(np.max(table.error(alpha))))
            for output, (label, scale, table) in zip(self._question.outputs, fitted, strict=True)
            if of in (None, output.name)
        ]

    def _useful_from(
        self, price: Mapping[str, float | None], alpha: float, noise: str
    ) -> list[int | None]:
        """Of counts: a smaller one is below its error."""
        return [whole_rows(row[-1]) for row in self._error_rows(price, alpha, noise, None)]


class MarginalsQuery(TablesQuery[Table_co]):
    """Marginals that have not been released. Nothing has been read and nothing paid."""

    __slots__ = ()
    _question: Marginals

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, Fraction]]:
        """The interactions that are measured, without noise, on a table that you
        made up; see `Query.exact_totals`.
        """
        question: Marginals = self._asked_of(engine.adopt(table))
        interactions = exact_interactions(question, engine.marginal_totals(question, 0))
        return {
            allotment.names[0]: values
            for allotment, values in zip(question.allotments, interactions, strict=True)
        }

    def _fitted(self, plan: NoisePlan) -> Sequence[tuple[str, float | None, Fitted]]:
        tables = self._question.tables
        variances = interaction_variances(tables, plan)
        plans = [table_noise(tables, plan, variances, table) for table in tables.workload]
        return [(one.noises[0].label, one.noises[0].deviation, one.fitted["cell"]) for one in plans]

    def release(  # type: ignore[override]
        self, epsilon: float | None = None, delta: float | None = None, **options: Unpack[Options]
    ) -> MarginalsRelease[Table_co]:
        """Pay, read the rows, draw the noise, and give the tables back; see `Query.release`.

        Output: MarginalsRelease: a table for each set of columns, `out["a", "b"]`
        """
        if options.get("ci") is not None:
            raise UnsupportedOperation(
                "ci=: the intervals of marginals are in out.accuracy(), out['a', 'b'].accuracy()."
            )
        if options.get("covers", "noise") != "noise":
            raise UnsupportedOperation(
                "covers=: marginals have intervals of their noise alone. Release one table by "
                "itself: crosstab(...)."
            )
        return super().release(epsilon, delta, **options)  # type: ignore[return-value]


def workload_of(
    workload: object, columns: tuple[str, ...], verb: str = "marginals"
) -> tuple[Attributes, ...]:
    """The sets of columns that are released: "1-way", "2-way" and so on,
    or a list of tuples of columns.
    """
    example = (
        "workload= is '1-way', '2-way' and so on, or a list of tuples of columns, such as [('a', "
        "'b'), ('a',)]."
    )
    if isinstance(workload, str):
        number = workload.removesuffix("-way")
        if not number.isdecimal() or workload == number or not 1 <= int(number) <= len(columns):
            raise InvalidArgument(f"{verb}: {example} There are {len(columns)} columns.")
        return tuple(combinations(range(len(columns)), int(number)))
    if not isinstance(workload, Sequence) or not workload:
        raise InvalidArgument(f"{verb}: {example}")
    tables: dict[frozenset[str], Attributes] = {}
    for one in workload:
        names = read_names([one], f"{verb}: workload=", columns)
        if not names or len(set(names)) != len(names) or not set(names) <= set(columns):
            raise InvalidArgument(
                f"{verb}: each table of workload= has different columns of {', '.join(columns)}."
            )
        if frozenset(names) in tables:
            raise InvalidArgument(f"{verb}: workload= has {titled(names)} twice.")
        tables[frozenset(names)] = tuple(sorted(columns.index(name) for name in names))
    return tuple(tables.values())


def listed_levels(keys: Keys | None, columns: Sequence[str]) -> Keys:
    """The listed keys of each column."""
    if keys is None:
        raise UnsupportedOperation(
            "marginals: tables that agree need the keys of every column: "
            f"keys={{{columns[0]!r}: [...], ...}}, an Enum or Boolean column, or cut()."
        )
    if keys.rows is not None:
        raise UnsupportedOperation(
            "marginals: keys= is a dict of lists, one for each column: keys={'a': [...], ...}."
        )
    return keys


def marginals_of(
    step: Step, columns: Sequence[str], keys: Keys, workload: Sequence[Attributes], limits: Limits
) -> Marginals:
    """The question of these tables, about the columns that some table has."""
    places = sorted({i for table in workload for i in table})
    names = tuple(columns[i] for i in places)
    return Marginals(
        step,
        names,
        Keys(tuple(keys.levels[i] for i in places)),
        limits_of(limits, step.table),
        (("count", count()),),
        verb=f"marginals([{', '.join(map(repr, names))}], {{limit}})",
        workload=tuple(tuple(places.index(i) for i in table) for table in workload),
    )
