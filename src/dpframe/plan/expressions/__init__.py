"""Row expressions, as they are typed."""

from dpframe.plan.expressions.composed import composed
from dpframe.plan.expressions.expression import Expr, lit, output_name, read_polars
from dpframe.plan.expressions.expression import columns as col
from dpframe.plan.expressions.functions import Then, When, coalesce, concat_str, duration, when
from dpframe.plan.expressions.namespaces import CalendarNamespace, Pieces, TextNamespace
from dpframe.plan.expressions.polars_aggregates import (
    PolarsAggregate,
    Schema,
    read_aggregates,
    selected,
)

__all__ = [
    "CalendarNamespace",
    "Expr",
    "Pieces",
    "PolarsAggregate",
    "Schema",
    "TextNamespace",
    "Then",
    "When",
    "coalesce",
    "col",
    "composed",
    "concat_str",
    "duration",
    "lit",
    "output_name",
    "read_aggregates",
    "read_polars",
    "selected",
    "when",
]
