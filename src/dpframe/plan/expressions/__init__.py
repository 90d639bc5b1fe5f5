"""Row expressions, as they are typed."""

from dpframe.plan.expressions.expression import Expr, Then, When, col, lit, when
from dpframe.plan.expressions.namespaces import CalendarNamespace, Pieces, TextNamespace

__all__ = ["CalendarNamespace", "Expr", "Pieces", "TextNamespace", "Then", "When", "col", "lit", "when"]
