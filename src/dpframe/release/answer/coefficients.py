"""Influences of people on the coefficients of a regression; see `release.estimators.influence`.

With the moments G of the inputs, those c of inputs and outcome, and b = G⁻¹·c, a row with the inputs x and the outcome
y moves b by G⁻¹·x·(y - x·b). Over the rows of a person this is a weighted sum of the person's own moments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dpframe.plan import Formula, ReleasedColumn
from dpframe.release.answer.moments import Moments
from dpframe.release.estimators import Influence
from dpframe.release.pricing import NoisePlan

__all__ = ["coefficient_influences", "influences_of"]


def coefficient_influences(
    outputs: Sequence[ReleasedColumn], plan: NoisePlan, long: pl.DataFrame
) -> list[tuple[ReleasedColumn, Influence]]:
    """A column for each coefficient, with its influences; empty for a question that is no regression."""
    regressors = outputs[0].regressors if outputs else None
    if regressors is None:
        return []
    return influences_of(outputs, Moments.read(long, outputs, plan, dict(regressors.among), regressors.same))


def influences_of(outputs: Sequence[ReleasedColumn], moments: Moments) -> list[tuple[ReleasedColumn, Influence]]:
    """As `coefficient_influences`, from moments that have been read."""
    regressors = outputs[0].regressors
    assert regressors is not None
    inverse, matrix = moments.inverse(), moments.matrix
    residual = np.append(-inverse @ matrix[:-1, -1], 1.0)
    limits = outputs[0].moments[0][1].moment
    assert limits is not None
    result = []
    for term, row, pair in zip(regressors.terms, moments.to_units @ inverse, outputs[0].moments, strict=True):
        whole = np.zeros_like(matrix)
        whole[:-1] = np.outer(row, residual)
        upper = np.triu(whole) + np.tril(whole, -1).T
        weights = {name: np.array([value]) for name, value in moments.derivatives(upper).items()}
        largest = limits.most_rows * np.abs(row).sum() * np.abs(residual).sum()
        column = ReleasedColumn(term, Formula.SUM, regressors.entries, False, moments=(pair,))
        result.append((column, Influence(weights, np.array([largest]))))
    return result
