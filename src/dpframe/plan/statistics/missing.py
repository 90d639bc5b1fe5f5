"""How many values of a column are missing: the rows less the values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.plan.statistics.base import Aggregate, Formula, ReleasedColumn
from dpframe.plan.totals import Total, row_total, value_total
from dpframe.plan.unit_limits import UnitLimits

__all__ = ["Missing"]


@dataclass(frozen=True, repr=False)
class Missing(Aggregate):
    """Rows in which a column has no value: a number of rows, less a number of values.

    `share` is the weight of the rows, which the columns of one table share, and `values` that of the values. Where no
    value can be missing, both are one total, and the difference is 0.
    """

    column: str = ""
    values: Fraction = Fraction(1)

    @property
    def typed(self) -> str:
        return f"missing({self.column!r})"

    @property
    def words(self) -> str:
        return f"number of missing values of {self.column}"

    def weight(self, total: Total) -> Fraction:
        return self.share if total.column is None else self.values

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = unit_limits.table.column(self.column, self.typed)
        rows, values = row_total(unit_limits, self.typed), value_total(column, unit_limits, self.typed)
        return ReleasedColumn(name, Formula.MISSING, ((f"{name}.rows", rows), (f"{name}.values", values)))
