"""Row expressions, as they are typed."""

from dpframe.plan.expressions.expression import Expr, Then, When, col, lit, output_name, when
from dpframe.plan.expressions.foreign import PolarsAggregate, read_aggregates, read_polars
from dpframe.plan.expressions.namespaces import CalendarNamespace, Pieces, TextNamespace

__all__ = [
    "CalendarNamespace",
    "Expr",
    "Pieces",
    "PolarsAggregate",
    "TextNamespace",
    "Then",
    "When",
    "col",
    "lit",
    "output_name",
    "read_aggregates",
    "read_polars",
    "when",
]
