"""Row expressions, as they are typed."""

from dpframe.plan.expressions.expression import Expr, Then, When, col, lit, output_name, read_polars, when
from dpframe.plan.expressions.foreign import is_len
from dpframe.plan.expressions.namespaces import CalendarNamespace, Pieces, TextNamespace

__all__ = [
    "CalendarNamespace",
    "Expr",
    "Pieces",
    "TextNamespace",
    "Then",
    "When",
    "col",
    "is_len",
    "lit",
    "output_name",
    "read_polars",
    "when",
]
