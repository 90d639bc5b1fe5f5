"""The noise of the levels of a hierarchy, before and after they are fitted to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpframe.plan import Hierarchy
from dpframe.release.pricing import Fitted, NoisePlan
from dpframe.theory.formulas.hierarchies import Levels


def level_variances(names: Sequence[str], plan: NoisePlan) -> list[float]:
    """The variance of the noise of each level (squared column unit), infinite for a level that is not measured."""
    by_name = {noise.allotment.names[0]: noise.deviation**2 for noise in plan.noises}
    return [by_name.get(name, math.inf) for name in names]


def log_noise_of_levels(question: Hierarchy, plan: NoisePlan) -> float:
    """Sum over the levels of the logarithm of the mean variance of their fitted nodes; smaller is better."""
    variances = level_variances(question.levels.names, plan)
    if not all(variances):
        return 0.0  # No unit can change any number.
    return math.fsum(math.log(float(level.mean())) for level in question.levels.shape.variances(variances))


def fitted_levels(tree: Levels, plan: NoisePlan, variances: Sequence[float]) -> list[Fitted]:
    """The noise of each node's estimate (column unit), by level.

    Input:  variances of the noise of the levels, infinite for levels that are not measured (squared column unit)
    Bound:  an estimate is a weighted sum of the noises of all nodes. Real normal noises give a normal sum of the exact
            variance. Real Laplace noises give a symmetric, log-concave sum, see `log_concave_error`. A noise that is
            drawn is a real one, moved by at most half a step of its grid. Discrete Laplace noise is the difference of
            the floors of two exponential numbers, so it is moved by at most one step. `Levels.reach` is how far the
            movements of all nodes together move an estimate
    """
    if all(noise.exact for noise in plan.noises):
        return [Fitted(0.0 * level, 0.0 * level) for level in tree.variances(variances)]
    normal = not any(noise.added.laplaces for noise in plan.noises)
    step = max(float(noise.allotment.total.unit) * noise.added.moved for noise in plan.noises)
    reach = tree.reach(variances, [step] * len(variances))
    return [Fitted(level**0.5, moved, normal) for level, moved in zip(tree.variances(variances), reach, strict=True)]
