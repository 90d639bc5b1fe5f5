"""From the raw totals of leaves to the noisy totals of all levels, and how noisy these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import WideIntegers
from dpframe.engine import Totals
from dpframe.plan import Hierarchy
from dpframe.release.answer import plus
from dpframe.release.pricing import Fitted, NoisePlan
from dpframe.theory.formulas.trees import Levels


def drawn_levels(question: Hierarchy, plan: NoisePlan, raw: Totals) -> pl.DataFrame:
    """The noisy totals of all nodes in one table: `level` (its place from the
    root) and `value` (column unit).

    Input:  the question, its noise, and the raw totals of its leaves, which do not leave this
            function
    Bound:  each measured level is a vector of integers that one unit moves by at most the level's
            sensitivity (`Hierarchy.bounds`), plus fresh integer noise of the planned scale for
            every node and crossed key. Levels without a part of the price are left out
    """
    totals, columns = _levels(question, raw), []
    by_name = {noise.allotment.names[0]: noise for noise in plan.noises}
    for level, (name, exact) in enumerate(zip(question.levels.names, totals, strict=True)):
        noise = by_name.get(name)
        if noise is None:
            continue
        noisy = plus(exact.ravel(), noise.added.draw(exact.size))
        values = np.asarray(noisy, np.float64) * float(noise.total.unit)
        columns.append(
            pl.DataFrame({"level": np.full(values.size, level, np.int32), "value": values})
        )
    return pl.concat(columns)


def exact_levels(
    question: Hierarchy, raw: Totals, keys: pl.DataFrame
) -> Mapping[str, Mapping[Any, Fraction]]:
    """The totals of every level without noise, by key.
    Only tests and audits call it, on artificial tables.
    """
    tree, unit = question.levels, question.allotments[-1].total.unit
    result = {}
    for level, (name, exact) in enumerate(zip(tree.names, _levels(question, raw), strict=True)):
        rows = (tree.first_leaves[level][:, None] * tree.cells + np.arange(tree.cells)).ravel()
        by = tree.by(level)
        nodes = keys[rows].select(by).rows() if by else [()]
        labels = [node[0] if len(node) == 1 else node for node in nodes]
        result[name] = {
            label: int(value) * unit
            for label, value in zip(labels, exact.ravel().tolist(), strict=True)
        }
    return result


def _levels(question: Hierarchy, raw: Totals) -> list[WideIntegers]:
    """The raw totals of every level: nodes by crossed keys, in units of the levels' totals."""
    tree, (leaves,) = question.levels, raw.values
    bits = question.bits - question.read[0].total.fraction
    if bits:
        small = leaves.dtype != object and int(np.abs(leaves).max(initial=0)) < 2 ** (62 - bits)
        leaves = (leaves if small else leaves.astype(object)) * 2**bits
    return tree.shape.totals(leaves.reshape(-1, tree.cells))


# How noisy the levels are


def level_variances(names: Sequence[str], plan: NoisePlan) -> list[float]:
    """The variance of the noise of each level (squared column unit), infinite
    for a level that is not measured.
    """
    by_name = {noise.allotment.names[0]: noise.deviation**2 for noise in plan.noises}
    return [by_name.get(name, math.inf) for name in names]


def log_noise_of_levels(question: Hierarchy, plan: NoisePlan) -> float:
    """Sum over the levels of the logarithm of the mean variance of their
    fitted nodes; smaller is better.
    """
    variances = level_variances(question.levels.names, plan)
    if not all(variances):
        return 0.0  # No unit can change any number.
    return math.fsum(
        math.log(float(level.mean())) for level in question.levels.shape.variances(variances)
    )


def fitted_levels(tree: Levels, plan: NoisePlan, variances: Sequence[float]) -> list[Fitted]:
    """The noise of each node's estimate (column unit), by level.

    Input:  variances of the noise of the levels, infinite for levels that are not measured (squared
            column unit)
    Bound:  an estimate is a weighted sum of the noises of all nodes. Real normal noises give a
            normal sum of the exact variance. Real Laplace noises give a symmetric, log-concave sum,
            see `log_concave_error`. A noise that is drawn is a real one, moved by at most half a
            step of its grid. Discrete Laplace noise is the difference of the floors of two
            exponential numbers, so it is moved by at most one step. `Levels.reach` is how far the
            movements of all nodes together move an estimate
    """
    if all(noise.exact for noise in plan.noises):
        return [Fitted(0.0 * level, 0.0 * level) for level in tree.variances(variances)]
    normal = not any(noise.added.laplaces for noise in plan.noises)
    step = max(float(noise.total.unit) * noise.added.moved for noise in plan.noises)
    reach = tree.reach(variances, [step] * len(variances))
    return [
        Fitted(level**0.5, moved, normal)
        for level, moved in zip(tree.variances(variances), reach, strict=True)
    ]
