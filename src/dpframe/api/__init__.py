"""Classes that users call: protected frames and queries.
The functions of statistics are in `statistics`.
"""

from dpframe.api.automatic import Auto
from dpframe.api.declaring import Declarations, protect
from dpframe.api.frame import PrivateFrame
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.query import Query
from dpframe.api.settings import set_budget, set_memory
from dpframe.api.several import concat

__all__ = [
    "Auto",
    "Declarations",
    "PrivateFrame",
    "PrivateGroupBy",
    "Query",
    "concat",
    "protect",
    "set_budget",
    "set_memory",
]
