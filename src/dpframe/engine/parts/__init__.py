"""Queries that run on one part of the units after another.
The integer totals of the parts are added.
"""

from dpframe.engine.parts.buckets import (
    added,
    set_most,
)
from dpframe.engine.parts.sums import (
    Sums,
    planned,
)

__all__ = [
    "Sums",
    "added",
    "planned",
    "set_most",
]
