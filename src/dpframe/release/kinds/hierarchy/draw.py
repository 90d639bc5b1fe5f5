"""From the raw totals of leaves to the noisy totals of all levels."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import WideIntegers
from dpframe.engine import Totals
from dpframe.plan import Hierarchy
from dpframe.release.answer import plus
from dpframe.release.pricing import NoisePlan


def drawn_levels(question: Hierarchy, plan: NoisePlan, raw: Totals) -> pl.DataFrame:
    """The noisy totals of all nodes in one table: `level` (its place from the root) and `value` (column unit).

    Input:  the question, its noise, and the raw totals of its leaves, which do not leave this function
    Bound:  each measured level is a vector of integers that one unit moves by at most the level's sensitivity
            (`Hierarchy.bounds`), plus fresh integer noise of the planned scale for every node and crossed key. Levels
            without a part of the price are left out
    """
    totals, columns = _levels(question, raw), []
    by_name = {noise.allotment.names[0]: noise for noise in plan.noises}
    for level, (name, exact) in enumerate(zip(question.levels.names, totals, strict=True)):
        noise = by_name.get(name)
        if noise is None:
            continue
        noisy = plus(exact.ravel(), noise.added.draw(exact.size))
        values = np.asarray(noisy, np.float64) * float(noise.allotment.total.unit)
        columns.append(pl.DataFrame({"level": np.full(values.size, level, np.int32), "value": values}))
    return pl.concat(columns)


def exact_levels(question: Hierarchy, raw: Totals, keys: pl.DataFrame) -> Mapping[str, Mapping[Any, Fraction]]:
    """The totals of every level without noise, by key. Only tests and audits call it, on artificial tables."""
    tree, unit = question.levels, question.allotments[-1].total.unit
    result = {}
    for level, (name, exact) in enumerate(zip(tree.names, _levels(question, raw), strict=True)):
        rows = (tree.first_leaves[level][:, None] * tree.cells + np.arange(tree.cells)).ravel()
        by = tree.by(level)
        nodes = keys[rows].select(by).rows() if by else [()]
        labels = [node[0] if len(node) == 1 else node for node in nodes]
        result[name] = {label: int(value) * unit for label, value in zip(labels, exact.ravel().tolist(), strict=True)}
    return result


def _levels(question: Hierarchy, raw: Totals) -> list[WideIntegers]:
    """The raw totals of every level: nodes by crossed keys, in units of the levels' totals."""
    tree, (leaves,) = question.levels, raw.values
    bits = question.bits - question.read[0].total.fraction
    if bits:
        small = leaves.dtype != object and int(np.abs(leaves).max(initial=0)) < 2 ** (62 - bits)
        leaves = (leaves if small else leaves.astype(object)) * 2**bits
    return tree.shape.totals(leaves.reshape(-1, tree.cells))
