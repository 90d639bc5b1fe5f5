"""How far off the fitted numbers of a hierarchy may be."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.arrays import Floats
from dpframe.release.pricing import NoisePlan
from dpframe.theory.formulas.error import log_concave_error, normal_error
from dpframe.theory.formulas.hierarchies import Levels

__all__ = ["level_errors"]


def level_errors(tree: Levels, plan: NoisePlan, variances: Sequence[float], alpha: float) -> list[Floats]:
    """The error of each node's estimate that is exceeded with probability at most alpha (column unit), by level.

    Input:  variances of the noise of the levels, infinite for levels that are not measured (squared column unit)
    Bound:  an estimate is a weighted sum of the noises of all nodes. Real normal noises give a normal sum of the exact
            variance. Real Laplace noises give a symmetric, log-concave sum, see `log_concave_error`. A noise that is
            drawn is a real one, moved by at most half a step of its grid. Discrete Laplace noise is the difference of
            the floors of two exponential numbers, so it is moved by at most one step. `Levels.reach` is how far the
            movements of all nodes together move an estimate
    """
    if all(noise.exact for noise in plan.noises):
        return [0.0 * level for level in tree.variances(variances)]
    error = log_concave_error if any(noise.added.laplaces for noise in plan.noises) else normal_error
    step = max(float(noise.allotment.total.unit) * noise.added.moved for noise in plan.noises)
    reach = tree.reach(variances, [step] * len(variances))
    times = error(1.0, alpha)
    return [times * level**0.5 + moved for level, moved in zip(tree.variances(variances), reach, strict=True)]
