"""Synthetic rows as one question: the columns with their keys, the tables that may
be measured, and their weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import UnboundedContribution, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan.allotments import Allotment
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID
from dpframe.plan.scalars import counted
from dpframe.plan.statistics import ReleasedColumn
from dpframe.plan.tables.marginals import Marginals
from dpframe.plan.totals import Total, TotalKind
from dpframe.plan.types import Kind, kind
from dpframe.plan.unit_limits import unit_in_quotes
from dpframe.theory.formulas.error import Attributes
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity

LARGEST_TABLE = 2**16  # cells of a table that is measured
_TARGET = 4  # how much more a table counts that has the column to be predicted


@dataclass(frozen=True)
class SyntheticColumn:
    """A column of the synthetic frame.

    `dtype` is its type. Where it has bins, its values are drawn evenly between the ends of a bin:
    `lows` and `highs`, both included, in the unit in which the engine holds the column (ticks for
    times). Else its keys are its values. `own` is its type in the user's table, where that says
    more and the column was not rewritten. `precision` is the column of the question that says how
    finely each value is given: 0 for the first of `precisions`, and so on.
    """

    name: str
    dtype: DType
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    own: Any = None
    precision: str | None = None

    @property
    def precisions(self) -> tuple[Any, ...]:
        """Precisions of the values, from coarse to fine: windows of time, or decimals.
        Finer values come last.
        """
        return precisions(self.dtype)


def precisions(dtype: DType) -> tuple[Any, ...]:
    """Precisions that the values of a type may have; empty for a type of which this is not asked.

    >>> import narwhals as nw
    >>> precisions(nw.Date()), precisions(nw.Float64()), precisions(nw.Int64())
    (('1mo',), (0, 1, 2, 3, 4), ())
    """
    match kind(dtype):
        case Kind.DATE:
            return ("1mo",)
        case Kind.DATETIME:
            return ("1mo", "1d", "1h", "1m", "1s")
        case Kind.DURATION:
            return ("1d", "1h", "1m", "1s")
        case Kind.FLOAT | Kind.DECIMAL:
            return (0, 1, 2, 3, 4)
    return ()


@dataclass(frozen=True)
class LinkedRows:
    """The rows of synthetic units.

    `rows` is the column of the question with the number of rows of a row's unit. `ids` are the
    columns that say whose row it is. Columns in `same` have one value in all rows of a unit.
    """

    rows: str
    ids: tuple[SyntheticColumn, ...]
    same: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Synthesis(Marginals):
    """Synthetic rows from noisy tables of sets of columns that are chosen
    in rounds, inside the release.

    `workload` are the sets of columns whose tables shall be right; they and their subsets are the
    candidates. `named` are those of two or more columns that were typed one by one, and are
    measured before any is chosen. `columns` are those of the rows, in order; `target` is the column
    that a model shall predict; `rows` the number of rows, None for the noisy one; `linked` says how
    rows belong to units, and is None where each row stands alone. At most `max_rows` rows of one
    unit count; a unit with more has a smaller weight on each.

    Two kinds of columns are added to those of the rows. All are computed from rows of one unit, so
    the bound of `one_table` holds for their tables too:

    - how finely a value is given, from its own row;
    - the number of rows of a row's unit, at most `max_rows`, from the unit's rows alone. A unit
      with k rows moves one cell of the table of this column, by k rows, and no other cell: the
      histogram of rows per unit, in rows.
    """

    columns: tuple[SyntheticColumn, ...] = ()
    named: tuple[Attributes, ...] = ()
    target: str | None = None
    rows: int | None = None
    linked: LinkedRows | None = None

    @cached_property
    def hints(self) -> Attributes:
        """The columns that say how finely values are given. Each is measured alone."""
        names = {column.precision for column in self.columns}
        return tuple(i for i, name in enumerate(self.by) if name in names)

    @property
    def tables_in_words(self) -> str:
        """The making of synthetic rows, in words."""
        rows = "the noisy number of rows" if self.rows is None else f"{self.rows:,}"
        target = (
            ""
            if self.target is None
            else f" Tables that have {self.target!r} count four times as much."
        )
        added = (
            f" How finely values are given is measured for {counted(len(self.hints), 'column')}."
            * bool(self.hints)
        )
        named = f" Then {counted(len(self.named), 'table')} that workload= names." * bool(
            self.named
        )
        if self.linked is not None:
            added += (
                " The number of rows of a unit is one more column, so synthetic rows are linked "
                "by unit."
            )
        return (
            f"Keys are public: {len(self.columns)} columns with their listed keys, whatever the "
            "data holds. A row counts if it has a listed key in every column. First the table of "
            f"each column is measured.{added}{named} Then, in rounds, one of "
            f"{len(self.candidates)} tables of some columns is chosen by the exponential "
            f"mechanism, and measured with Gaussian noise; all costs add up.{target} Synthetic "
            f"rows are drawn from a model of the noisy tables. Their number: {rows}."
        )

    @property
    def tables_asked(self) -> Fields:
        """The part of a question's description that is about its tables; no data."""
        linked = {} if self.linked is None else {"per_unit": list(self.linked.same)}
        named = (
            {"measured_first": [list(self.tables.names(part)) for part in self.named]}
            if self.named
            else {}
        )
        return {**super().tables_asked, **named, "rows": self.rows, "target": self.target, **linked}

    @cached_property
    def one_table(self) -> Total:
        """The total of any one table of rows by some of the columns, as one unit moves it.

        Bound:  the weights of a unit add up to K = max_rows at most, whatever cells its rows are
                in: in L1 a table moves by K. In L2 it moves by K at most, where all rows are in one
                cell. When a unit is exchanged, weights a leave and b enter, both nonnegative: |a -
                b|₁ <= 2K, and |a - b|² = |a|² + |b|² - 2⟨a, b⟩ <= 2K²
        """
        rows = self.limits.max_rows
        if rows is None:
            raise UnboundedContribution(
                f"synthesize: one {unit_in_quotes(self.table)} may have any number of rows, so no "
                "finite noise hides it. Say how many: synthesize(..., max_rows=1)."
            )
        times = 1 if self.table.relation == Relation.ADD_REMOVE else 2
        bound = Sensitivity.of(
            l0=times * rows, l1=times * rows, l2_squared=times * rows**2, linf=rows
        )
        bits = FRACTION_BITS if self.table.unit else 0
        return Total(TotalKind.ROWS, None, UNIT_GRID, bits, bound.scaled(2**bits))

    @cached_property
    def allotments(self) -> tuple[Allotment, ...]:
        """The one allotment: all tables, whichever are chosen, have one bound."""
        _ = self.group_columns
        if self.auto is not None:
            raise UnsupportedOperation(
                "synthesize: dp.Auto() cannot choose the limit; type it, such as max_rows=1."
            )
        return (Allotment(("each table",), self.one_table, Fraction(1)),)

    def limits_on(self, total: Total) -> FieldDict:
        """The limit on rows, for any of the tables that are measured in rounds."""
        return {"kind": "rounds", "limits": {"rows": self.limits.max_rows}, "cells": self.cells}

    @property
    def read(self) -> tuple[Allotment, ...]:
        """The one total that rows are read for: the weights of rows by all columns.
        Every table is a sum of it.
        """
        return self.allotments

    @cached_property
    def outputs(self) -> tuple[ReleasedColumn, ...]:
        """No columns of numbers: rows are released."""
        return ()

    @cached_property
    def candidates(self) -> Mapping[Attributes, int]:
        """The sets of columns that may be measured, with whole weights:
        how many columns it shares with the workload.

        A set that has the column to be predicted counts four times as much.
        """
        smaller = {
            part
            for table in self.workload
            for n in range(1, len(table) + 1)
            for part in combinations(table, n)
        }
        sizes = self.tables.sizes
        small = [part for part in smaller if math.prod(sizes[i] for i in part) <= LARGEST_TABLE]
        shared = {
            part: sum(len(set(part) & set(table)) for table in self.workload) for part in small
        }
        place = None if self.target is None else self.by.index(self.target)
        unit = math.gcd(*shared.values())
        return {
            part: shared[part] // unit * (_TARGET if place in part else 1)
            for part in sorted(shared)
        }
