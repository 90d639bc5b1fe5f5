"""Margins that are measured too: their noise, and the table that agrees best with all that was measured."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpframe.plan import Output
from dpframe.release.answer.postprocess import rounded
from dpframe.release.pricing import Drawn, NoisePlan
from dpframe.theory.formulas.error import Source, estimators, fitted, sum_error

__all__ = ["error_of_part", "margin_totals", "reconciled"]

Part = Literal["cell", "row", "column", "total"]
Floats = NDArray[np.float64]


def margin_totals(source: Source, totals: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Exact sums of raw cells, as Python integers: a margin merges cells. Not private."""
    table = totals.astype(object).reshape(shape)
    if source == "total":
        return np.array([table.sum()], dtype=object)
    return np.asarray(table.sum(axis=1 if source == "rows" else 0))


def reconciled(output: Output, plan: NoisePlan, noisy: dict[Source, Floats]) -> NDArray[Any]:
    """The released cells, in the order of groups: weighted least squares over cells and margins; post-processing.

    Input:  noisy cells and margins (column unit). Bound: see `theory.formulas.error.margins.estimators`; whole numbers are then
            rounded so that they still add up
    """
    assert plan.shape is not None
    cells = noisy["cells"].reshape(plan.shape)
    table = fitted(cells, _variances(plan), {s: values for s, values in noisy.items() if s != "cells"})
    return np.asarray(rounded(table) if output.whole else table).ravel()


def error_of_part(output: Output, plan: NoisePlan, part: Part, alpha: float) -> float:
    """Error of a cell or margin of a reconciled table, exceeded with probability at most alpha (column unit).

    Bound:  a sum of independent noises with the coefficients of `estimators`; see `sum_error`. Rounding a noise to its
            grid counts as a normal part of variance 1/4 step², rounding whole numbers so that they add up as one of 1/3
    """
    if plan.known is not None:
        deviation, rounding = plan.known[part]
        return sum_error(deviation**2, [], alpha) + rounding
    assert plan.shape is not None
    terms = getattr(estimators(*plan.shape, _variances(plan)), part)
    sources = _sources(plan)
    normal, scales = (1 / 3 if output.whole else 0.0), []
    for weight, source, number in terms:
        if source not in sources or not number:
            continue
        drawn = sources[source]
        unit = float(drawn.paid.measure.unit)
        if drawn.family == "gaussian":
            normal += number * (weight * drawn.scale * unit) ** 2
        else:
            scales.append((abs(weight) * drawn.scale * unit, number))
        normal += number * (weight * unit) ** 2 / 4 * (drawn.family != "discrete_laplace")
    error = sum_error(normal, scales, alpha)
    whole = output.whole and not output.measures[0][1].fraction
    return float(math.floor(error)) if whole else error  # between two whole numbers


def _source(drawn: Drawn) -> Source:
    return drawn.paid.measure.merged or "cells"


def _sources(plan: NoisePlan) -> dict[Source, Drawn]:
    return {_source(drawn): drawn for drawn in plan.drawn}


def _variances(plan: NoisePlan) -> dict[Source, float]:
    return {source: drawn.deviation**2 for source, drawn in _sources(plan).items()}
