"""Hierarchies: noisy levels of a tree, their fit, what keeps sums
exact, and what people read of them.
"""

from dpframe.release.kinds.hierarchy.draw import (
    exact_levels,
    fitted_levels,
    level_variances,
)
from dpframe.release.kinds.hierarchy.release import HierarchyRelease

__all__ = ["HierarchyRelease", "exact_levels", "fitted_levels", "level_variances"]
