"""Questions that are answered with several tables:
marginals, hierarchies, and the tables behind synthetic rows.
"""

from dpframe.plan.tables.hierarchy import (
    Hierarchy,
    Tree,
    tree_of,
)
from dpframe.plan.tables.marginals import (
    COUNT,
    Marginals,
    Tables,
    titled,
)
from dpframe.plan.tables.synthesis import (
    LinkedRows,
    Synthesis,
    SyntheticColumn,
)

__all__ = [
    "COUNT",
    "Hierarchy",
    "LinkedRows",
    "Marginals",
    "Synthesis",
    "SyntheticColumn",
    "Tables",
    "Tree",
    "titled",
    "tree_of",
]
