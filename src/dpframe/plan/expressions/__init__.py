"""Row expressions, as they are typed."""

from dpframe.plan.expressions.composed import composed
from dpframe.plan.expressions.expression import Expr, col, lit, output_name, read_polars
from dpframe.plan.expressions.foreign import is_len
from dpframe.plan.expressions.functions import Then, When, coalesce, concat_str, duration, when
from dpframe.plan.expressions.namespaces import CalendarNamespace, Pieces, TextNamespace

__all__ = [
    "CalendarNamespace",
    "Expr",
    "Pieces",
    "TextNamespace",
    "Then",
    "When",
    "coalesce",
    "col",
    "composed",
    "concat_str",
    "duration",
    "is_len",
    "lit",
    "output_name",
    "read_polars",
    "when",
]
