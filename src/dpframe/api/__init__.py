"""What users call: protected frames, aggregates, queries."""

from dpframe.api.frame import PrivateFrame, protect
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.query import Query
from dpframe.api.settings import set_budget

__all__ = ["PrivateFrame", "PrivateGroupBy", "Query", "protect", "set_budget"]
