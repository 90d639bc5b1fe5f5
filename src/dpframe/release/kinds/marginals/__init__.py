"""Many marginals in one release: noisy interactions, and tables that
agree wherever they share columns.
"""

from dpframe.release.kinds.marginals.draw import (
    drawn_interactions,
    exact_interactions,
    interaction_variances,
    table_noise,
)
from dpframe.release.kinds.marginals.release import MarginalsRelease

__all__ = [
    "MarginalsRelease",
    "drawn_interactions",
    "exact_interactions",
    "interaction_variances",
    "table_noise",
]
