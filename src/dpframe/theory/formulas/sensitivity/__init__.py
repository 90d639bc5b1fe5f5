"""Distances by which one unit can move a total:
grouped tables, whole vectors, and a sum beside a count.
"""

from dpframe.theory.formulas.sensitivity.grouped import (
    MOST_KEYS,
    Contribution,
    Relation,
    Sensitivity,
    key_weights,
    merged,
    node_limits,
    row_counts,
    row_places,
    row_sums,
    spread_weight,
    unit_counts,
)
from dpframe.theory.formulas.sensitivity.one_signed import (
    OneSigned,
    SharedNoise,
    best_shared_noise,
    shared_noise_square,
)
from dpframe.theory.formulas.sensitivity.periods import (
    period_totals,
    weighted_square,
    weighted_totals,
)
from dpframe.theory.formulas.sensitivity.sum_and_count import (
    joint_l1,
    pair_gains,
    pair_scale,
    paired_error,
    rounding,
)
from dpframe.theory.formulas.sensitivity.vectors import (
    tight_l1,
    tight_l2,
)

__all__ = [
    "MOST_KEYS",
    "Contribution",
    "OneSigned",
    "Relation",
    "Sensitivity",
    "SharedNoise",
    "best_shared_noise",
    "joint_l1",
    "key_weights",
    "merged",
    "node_limits",
    "pair_gains",
    "pair_scale",
    "paired_error",
    "period_totals",
    "rounding",
    "row_counts",
    "row_places",
    "row_sums",
    "shared_noise_square",
    "spread_weight",
    "tight_l1",
    "tight_l2",
    "unit_counts",
    "weighted_square",
    "weighted_totals",
]
