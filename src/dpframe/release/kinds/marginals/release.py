"""Marginals as a kind of answer: noisy interactions, and the
tables that are estimated from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.arrays import Array, Floats
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnknownColumn
from dpframe.fields import Names
from dpframe.plan import COUNT, MARGINALS, Marginals, Tables, titled
from dpframe.release.accuracy import check_alpha
from dpframe.release.answer import (
    JointTables,
    Numbers,
    family_of,
    joint_nonnegative,
    joint_whole,
    keys_beside,
    read_base,
)
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.marginals.draw import (
    drawn_interactions,
    interaction_variances,
    measured_parts,
    table_noise,
)
from dpframe.release.pricing import NoisePlan, Price, check_shared
from dpframe.release.shown import Record
from dpframe.release.shown.crosstab import ALL, unlike, with_every_key
from dpframe.release.shown.error_tables import errors_together, largest_errors, noise_table
from dpframe.release.shown.release import Release
from dpframe.release.shown.released import Released
from dpframe.release.stored import Answer
from dpframe.theory.formulas.error import Attributes, marginal
from dpframe.usage import RELEASED, explains

_SHOWN = 6  # the largest number of tables in a notebook


@explains("out.{}({})", RELEASED)
@dataclass(frozen=True, eq=False, repr=False)
class MarginalsRelease(Released[Table_co], Mapping[Names, Release[Table_co]]):
    """Released marginals: a mapping from columns to tables that agree wherever they share columns.

    `out["a", "b"]` is a `Release`, here a crosstab with its margins. There is one for every set of
    columns that a table of the workload has, in any order, down to `out["a"]` and the total,
    `out[()]`. Iterating yields the columns of the tables of the question. `nonnegative` and `round`
    change all tables together, so that they still agree. If one table is changed alone,
    `out["a", "b"].round()`, it no longer agrees; it warns of that, and its report says so.
    `out.table` and files have all tables of the question in one: keys as text, and "All" in columns
    that a table does not have; an Excel file has a sheet for each. `cost` is the loss that was
    charged once for all of them.

    >>> import polars as pl, dpframe as dp
    >>> people = pl.DataFrame(
    ...     {"smokes": [True, False], "drives": [True, True], "old": [False, True]}
    ... )
    >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0, delta=1e-6))
    >>> out = frame.marginals(["smokes", "drives", "old"]).release(epsilon=0.5, delta=1e-6)
    >>> list(out)
    [('smokes', 'drives'), ('smokes', 'old'), ('drives', 'old')]
    >>> out["old", "smokes"].table.columns
    ['old', 'False', 'True', 'All']
    """

    _habits = MARGINALS

    _tables: Tables
    _keys: tuple[pl.DataFrame, ...]
    _noise: NoisePlan
    _drawn: pl.DataFrame
    _changed: JointTables | None = None
    _lifted: bool = False  # whether negative numbers were removed
    _whole: JointTables | None = None  # the rounded tables, which are multiples of the base
    _base: int = 1

    _numbered = True

    # The tables

    def __getitem__(self, columns: str | Names) -> Release[Table_co]:
        """One table.
        Errors: UnknownColumn; InvalidArgument if no released table has all of these columns.
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        for name in names:
            if name not in self._tables.by:
                raise UnknownColumn(
                    f"marginals: there is no column {name!r}. Columns: "
                    f"{', '.join(self._tables.by)}."
                )
        table = self._tables.part(names)
        if len(set(table)) != len(table) or not any(
            set(table) <= set(listed) for listed in self._tables.workload
        ):
            raise InvalidArgument(
                f"marginals: no table of this release has {' and '.join(map(repr, names))} "
                f"together; there are {', '.join(titled(listed) for listed in self)}."
            )
        return self._table(table)

    def __contains__(self, columns: object) -> bool:
        names = (columns,) if isinstance(columns, str) else columns
        return isinstance(names, tuple) and any(set(names) <= set(one) for one in self)

    def __iter__(self) -> Iterator[Names]:
        return iter(self._tables.named)

    def __len__(self) -> int:
        return len(self._tables.workload)

    def _table(self, table: Attributes) -> Release[Table_co]:
        tables = self._tables
        names, outputs = tables.names(table), (tables.output(table),)
        states = [self._shown(table), self._values(table), self._estimate(table)]
        long, exact, drawn = (pl.DataFrame({COUNT: values.ravel()}) for values in states)
        if table:
            keys = self._keys[table[0]]
            for i in table[1:]:
                keys = keys.join(self._keys[i], how="cross", maintain_order="left_right")
            long, exact, drawn = (
                pl.concat([keys, numbers], how="horizontal") for numbers in (long, exact, drawn)
            )
        noise = table_noise(tables, self._noise, self._variances, table)
        alone = (
            self._whole is not None
            and len(tables.workload) == 1
            and set(table) == set(tables.workload[0])
        )
        numbers = Numbers(
            long,
            names,
            outputs,
            noise,
            tables.layout(table),
            before=None if self._changed is None and self._whole is None else drawn,
            lifted=self._lifted,
            base=self._base,
            unrounded=exact if alone else None,
        )
        others = (
            len(tables.workload) - 1
            if set(table) in map(set, tables.workload)
            else len(tables.workload)
        )
        return Release(self._record, numbers, 1 + others, _steps=self._steps)

    def _values(self, table: Attributes) -> Array:
        """The numbers of a table before they are rounded."""
        return self._estimate(table) if self._changed is None else _in_order(self._changed, table)

    def _shown(self, table: Attributes) -> Array:
        """The numbers of a table as they are shown."""
        return self._values(table) if self._whole is None else _in_order(self._whole, table)

    # Post-processing

    def nonnegative(self) -> MarginalsRelease[Table_co]:
        """Remove negative numbers from all tables together; wherever tables share
        columns they still agree. It is free.

        Output: a release whose tables have no negative number. The total is kept (or is 0). First
                what tables share, such as the counts of single columns, becomes the nearest
                nonnegative numbers that add up; then each table, with these sums. Numbers may no
                longer be whole: see `round`
        Bound:  no row is read, and there is no table of all columns: see
                `dpframe.release.answer.joint_tables`
        Errors: UnsupportedOperation if a table shares three margins or more with others, as all
                triples of four columns do: there may be no such numbers

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame(
        ...     {"smokes": [True, False], "drives": [True, True], "old": [False, True]}
        ... )
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0, delta=1e-6))
        >>> out = (
        ...     frame.marginals(["smokes", "drives", "old"])
        ...     .release(epsilon=0.5, delta=1e-6)
        ...     .nonnegative()
        ...     .round()
        ... )
        >>> out["smokes", "old"].table["All"].to_list() == out["smokes", "drives"].table[
        ...     "All"
        ... ].to_list()
        True
        """
        family = family_of(self._tables.workload, "nonnegative", self._title)
        changed = joint_nonnegative(family, lambda part: np.asarray(self._values(part), np.float64))
        sentence = (
            "nonnegative(): numbers without negative ones near those of all tables, which still "
            "agree."
        )
        return replace(
            self,
            _changed=changed,
            _lifted=True,
            _whole=None,
            _base=1,
            _steps=(*self._steps, sentence),
        )

    def round(self, base: int = 1) -> MarginalsRelease[Table_co]:
        """Round all tables together to integers that add up, and agree wherever
        tables share columns. It is free.

        Input:  base: of which whole number they become multiples: `round(5)`
        Output: a release of whole numbers; after `nonnegative()` none is negative. What tables
                share is rounded first. Then each table is moved to these sums by least squares and
                rounded, so that a number may differ from the one before by a little more than 1
        Bound:  no row is read: see `dpframe.release.answer.joint_tables`
        Errors: as `nonnegative`
        """
        family = family_of(self._tables.workload, "round", self._title)
        positive = all(bool(np.min(self._values(part)) >= 0) for part in family)
        multiple = read_base(base)
        changed = joint_whole(
            family, lambda part: np.asarray(self._values(part)) / multiple, positive=positive
        )
        changed = replace(
            changed, tables={part: table * multiple for part, table in changed.tables.items()}
        )
        numbers = "integers" if multiple == 1 else f"multiples of {multiple}"
        sentence = f"round(): {numbers} that add up, and agree wherever tables share columns."
        return replace(self, _whole=changed, _base=multiple, _steps=(*self._steps, sentence))

    def _title(self, part: Attributes) -> str:
        return titled(self._tables.names(part))

    @cached_property
    def _variances(self) -> dict[Attributes, float]:
        return interaction_variances(self._tables, self._noise)

    @cached_property
    def _contrasts(self) -> dict[Attributes, Floats]:
        parts = zip(
            measured_parts(self._tables, self._noise), self._drawn.partition_by("part"), strict=True
        )
        return {
            part: values.get_column("value")
            .to_numpy()
            .reshape([self._tables.sizes[i] - 1 for i in part])
            for part, values in parts
        }

    def _estimate(self, table: Attributes) -> Floats:
        ordered = tuple(sorted(table))
        values = marginal(ordered, self._tables.sizes, self._contrasts)
        return values.transpose([ordered.index(i) for i in table])

    def _in_kind(self, kind: Kind) -> Any:
        return as_kind(
            self._together([self[names]._numbers.long for names in self], self._tables.by), kind
        )

    def _sheets(self) -> dict[str, tuple[Any, bool]]:
        return {titled(names): (self[names]._marked("pandas"), len(names) > 1) for names in self}

    def _together(self, tables: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
        """Tables with some of the columns `by`, concatenated; keys become text."""
        levels = zip(by, self._tables.levels, strict=True)
        every = {name: unlike(ALL, {str(key) for key in level}) for name, level in levels}
        return pl.concat([with_every_key(table, every) for table in tables])

    # Noise and errors

    @property
    def noise(self) -> Any:
        """One row per measured interaction: column, aggregate,
        mechanism, scale (rows), threshold.
        """
        return as_kind(noise_table((), self._noise), self._kind)

    def accuracy(self, alpha: float = 0.05) -> Any:
        """One row per number of every table, in the form of `Release.accuracy`; keys as in `table`.

        Each error holds for its own number with probability 1 - alpha; all of them together hold
        less often.
        """
        alpha = check_alpha(alpha)
        cells = errors_together([self[names]._numbers for names in self], self._tables.by, alpha)
        return as_kind(self._together(cells, keys_beside(self._tables.by)), self._kind)

    def _margins(self) -> list[tuple[str, str]]:
        errors = [(titled(names), largest_errors(self[names]._numbers)[0][1]) for names in self]
        return [(name, f"± {error:,.4g}") for name, error in errors]

    @property
    def _words(self) -> str:
        tables = ", ".join(titled(names) for names in self)
        word = "marginal" if len(self) == 1 else "marginals"
        return (
            f"{len(self)} {word}: {tables}.\n\nReleased at {self.cost}. Read one: "
            f"out[{next(iter(self))!r}]"
        )

    def _repr_html_(self) -> str:
        tables = "".join(self[names]._table_html() for names in list(self)[:_SHOWN])
        more = f"<p>… and {len(self) - _SHOWN} more tables.</p>" if len(self) > _SHOWN else ""
        sentence = (
            f"All released together at {self.cost}. In small type: 95% margins of error of the "
            "noise."
        )
        return f"<div class='dpframe'>{tables}{more}<p>{sentence}{self._notes_html}</p></div>"


def _in_order(tables: JointTables, table: Attributes) -> Array:
    """A table with its columns in the order in which they are named."""
    ordered = tuple(sorted(table))
    values = tables.floats(ordered) if tables.bits else tables.integers(ordered)
    return values.transpose([ordered.index(i) for i in table])


# The kind of answer


class MarginalsAnswer(AnswerKind[Marginals]):
    """Many tables that agree wherever they share columns."""

    alone = "marginals share their noise; release them by themselves."

    def validate(self, question: Marginals) -> None:
        """Run the queries of all tables on a table without rows."""
        engine.validate_marginals(question)

    def queries(self, question: Marginals) -> list[Any]:
        """One query for all tables, or one for each."""
        return engine.empty_sums(question)

    def noise(self, question: Marginals, price: Price) -> NoisePlan:
        """Gaussian noise for each interaction: the only kind with a proof."""
        check_shared(question, price.noise)
        return price.gaussian("marginals are").plan(question)

    def answer(self, question: Marginals, plan: NoisePlan, salt: int) -> Answer:
        """The noisy interactions."""
        return Answer(
            drawn_interactions(question, plan, engine.marginal_totals(question, salt)), {}
        )

    def facts(self, question: Marginals) -> Mapping[str, Any]:
        """The number of tables that were charged together."""
        return {"batch": len(question.workload)}

    def released(
        self, question: Marginals, plan: NoisePlan, answer: Answer, record: Record
    ) -> MarginalsRelease[Any]:
        """A `MarginalsRelease`."""
        keys = tuple(engine.marginal_keys(question, (i,)) for i in range(len(question.by)))
        return MarginalsRelease(record, question.tables, keys, plan, answer.long)
