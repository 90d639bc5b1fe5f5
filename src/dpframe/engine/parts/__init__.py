"""A query that runs on parts of the units, whose integer totals are added."""

from dpframe.engine.parts.buckets import (
    added,
)
from dpframe.engine.parts.sums import (
    Sums,
    planned,
)

__all__ = [
    "Sums",
    "added",
    "planned",
]
