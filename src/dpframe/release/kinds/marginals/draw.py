"""Noisy interactions of marginals: how they are drawn, and the noise that the
tables estimated from them have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.arrays import Integers
from dpframe.noise import contrasts, rounded_contrasts
from dpframe.plan import COUNT, Allotment, Marginals, Tables
from dpframe.release.answer.joint_tables import summed
from dpframe.release.pricing import Fitted, Gaussian, Noise, NoisePlan
from dpframe.theory.formulas.error import Attributes, cell_variance, rounding_reach


def drawn_interactions(
    question: Marginals, plan: NoisePlan, tables: Sequence[Integers]
) -> pl.DataFrame:
    """The noisy contrasts of every interaction in one table:
    `part` (its position in the plan) and `value` (rows).

    Input:  the question, its noise, and its raw tables, which do not leave this function
    Bound:  integer contrasts of integer totals, plus the rounded contrasts of real normal noise of
            the planned deviation: see `theory.formulas.error.marginals`
    """
    columns, smallest = [], _smallest(question, tables)
    for number, (part, mechanism) in enumerate(measured_parts(question.tables, plan).items()):
        # the proof is for normal noise, and that is what is drawn
        assert isinstance(mechanism.mechanism, Gaussian)
        exact = contrasts(_summed(question, tables, smallest[frozenset(part)], part))
        noise = rounded_contrasts(mechanism.scale, [question.tables.sizes[i] for i in part])
        noisy = exact + noise if noise.dtype != object else exact.astype(object) + noise
        values = np.asarray(noisy, np.float64).ravel() * float(mechanism.total.unit)
        columns.append(
            pl.DataFrame({"part": np.full(values.size, number, np.int32), "value": values})
        )
    return pl.concat(columns)


def exact_interactions(
    question: Marginals, tables: Sequence[Integers]
) -> list[dict[Any, Fraction]]:
    """Every interaction D_B v_B without noise (rows), by key.
    Only tests and audits call it, on artificial tables.
    """
    interactions, smallest = [], _smallest(question, tables)
    for allotment in question.allotments:
        part = question.tables.part(allotment.total.among)
        centred = np.asarray(
            _summed(question, tables, smallest[frozenset(part)], part).astype(object)
            * allotment.total.unit
        )
        for axis in range(centred.ndim):
            centred = centred - centred.sum(axis=axis, keepdims=True) / centred.shape[axis]
        keys = (
            [
                key[0] if len(key) == 1 else key
                for key in engine.marginal_keys(question, part).rows()
            ]
            if part
            else [()]
        )
        interactions.append(dict(zip(keys, np.ravel(centred).tolist(), strict=True)))
    return interactions


def measured_parts(tables: Tables, plan: NoisePlan) -> dict[Attributes, Noise]:
    """The sets of columns whose interactions are measured, with their
    noise, in the order of the plan.
    """
    return {tables.part(noise.total.among): noise for noise in plan.noises}


def _smallest(question: Marginals, tables: Sequence[Integers]) -> dict[frozenset[int], int]:
    """The number of the smallest table that has some columns, for all
    sets of columns that a table has.
    """
    numbers: dict[frozenset[int], int] = {}
    for number in sorted(range(len(tables)), key=lambda number: tables[number].size):
        table = question.workload[number]
        for size in range(len(table) + 1):
            for part in combinations(table, size):
                numbers.setdefault(frozenset(part), number)
    return numbers


def _summed(
    question: Marginals, tables: Sequence[Integers], number: int, part: Attributes
) -> Integers:
    """A raw marginal, summed from the table with this number."""
    return summed(tables[number], question.workload[number], part)


def interaction_variances(tables: Tables, plan: NoisePlan) -> dict[Attributes, float]:
    """The variance σ_B² of the noise of each interaction (rows²)."""
    return {part: noise.deviation**2 for part, noise in measured_parts(tables, plan).items()}


def table_noise(
    tables: Tables, plan: NoisePlan, variances: Mapping[Attributes, float], table: Attributes
) -> NoisePlan:
    """The noise of the cells of one marginal, and of its margins in a crosstab.

    Input:  the tables, their noise and the variances of their interactions; the columns of the
            marginal
    Bound:  cells are normal with the variance of `theory.formulas.error.marginals.cell_variance`,
            up to the rounding of contrasts to their grid. The margins of a marginal are marginals
            themselves
    """
    ((_, total),) = tables.output(table).totals
    unit, parts = float(total.unit), {}
    for name, part in (("cell", table), ("row", table[:-1]), ("column", table[-1:]), ("total", ())):
        deviation = math.sqrt(cell_variance(part, tables.sizes, variances))
        parts[name] = Fitted(deviation, rounding_reach(part, tables.sizes) * unit)
    allotment = Allotment((COUNT,), total, Fraction(1))
    return NoisePlan(
        (Noise(allotment, Gaussian(float(parts["cell"].deviation) / unit)),),
        None,
        None,
        plan.cost,
        fitted=parts,
    )
