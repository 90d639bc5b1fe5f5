"""Measured margins of a crosstab: their exact sums, and the cells that fit cells and margins best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.answer.postprocess import rounded
from dpframe.release.estimators import variances
from dpframe.release.pricing import NoisePlan
from dpframe.theory.formulas.error import Source, fitted

__all__ = ["margin_totals", "reconciled"]


def margin_totals(source: Source, totals: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Exact sums of raw cells in a margin, as Python integers. Not private."""
    table = totals.astype(object).reshape(shape)
    if source == "total":
        return np.array([table.sum()], dtype=object)
    return np.asarray(table.sum(axis=1 if source == "rows" else 0))


def reconciled(output: ReleasedColumn, plan: NoisePlan, noisy: dict[Source, Floats]) -> NDArray[Any]:
    """The released cells, in the order of groups: weighted least squares over cells and margins; post-processing.

    Input:  noisy cells and margins (column unit). Bound: see `margin_estimates.estimators`; whole numbers
            are then rounded so that they still add up
    """
    assert plan.shape is not None
    cells = noisy["cells"].reshape(plan.shape)
    table = fitted(cells, variances(plan), {s: values for s, values in noisy.items() if s != "cells"})
    return np.asarray(rounded(table) if output.whole else table).ravel()
