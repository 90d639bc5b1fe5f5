"""The noise of the levels of a hierarchy, before and after they are fitted to each other."""

from __future__ import annotations

import math

from dpframe.plan import Hierarchy
from dpframe.release.pricing.noise import NoisePlan

__all__ = ["level_variances", "log_noise_of_levels"]


def level_variances(question_names: tuple[str, ...], plan: NoisePlan) -> list[float]:
    """The variance of the noise of each level (squared column unit), infinite for a level that is not measured."""
    by_name = {noise.allotment.names[0]: noise.deviation**2 for noise in plan.noises}
    return [by_name.get(name, math.inf) for name in question_names]


def log_noise_of_levels(question: Hierarchy, plan: NoisePlan) -> float:
    """Sum over the levels of the logarithm of the mean variance of their fitted nodes; smaller is better."""
    tree = question.levels
    variances = level_variances(tree.names, plan)
    if not all(variances):
        return 0.0  # No unit can change any number.
    return math.fsum(math.log(float(level.mean())) for level in tree.shape.variances(variances))
