"""Errors of cells and margins of a crosstab with measured margins."""

from __future__ import annotations

import math
from typing import Literal

from dpframe.plan import ReleasedColumn
from dpframe.release.pricing import DiscreteLaplace, Gaussian, Noise, NoisePlan
from dpframe.theory.formulas.error import Source, estimators, sum_error

__all__ = ["error_of_part", "source_of", "variances"]

Margin = Literal["cell", "row", "column", "total"]


def error_of_part(output: ReleasedColumn, plan: NoisePlan, part: Margin, alpha: float) -> float:
    """Error of a cell or margin of a reconciled table, exceeded with probability at most alpha (column unit).

    Bound:  a sum of independent noises with the coefficients of `estimators`; see `sum_error`. Rounding a noise to its
            grid counts as a normal noise of variance 1/4 step². Rounding to whole numbers that add up counts as one of
            variance 1/3
    """
    if plan.parts is not None:
        deviation, rounding = plan.parts[part]
        return sum_error(deviation**2, [], alpha) + rounding
    assert plan.shape is not None
    terms = getattr(estimators(*plan.shape, variances(plan)), part)
    sources = _sources(plan)
    normal, scales = (1 / 3 if output.whole else 0.0), []
    for weight, source, number in terms:
        if source not in sources or not number:
            continue
        noise = sources[source]
        unit = float(noise.allotment.total.unit)
        if isinstance(noise.mechanism, Gaussian):
            normal += number * (weight * noise.scale * unit) ** 2
        else:
            scales.append((abs(weight) * noise.scale * unit, number))
        if not isinstance(noise.mechanism, DiscreteLaplace):
            normal += number * (weight * unit) ** 2 / 4
    error = sum_error(normal, scales, alpha)
    whole = output.whole and not output.totals[0][1].fraction
    return float(math.floor(error)) if whole else error  # between two whole numbers


def source_of(noise: Noise) -> Source:
    """The source of a noise: cells, or one of the margins."""
    return noise.allotment.total.merged or "cells"


def _sources(plan: NoisePlan) -> dict[Source, Noise]:
    return {source_of(noise): noise for noise in plan.noises}


def variances(plan: NoisePlan) -> dict[Source, float]:
    """The variance of the noise of each source."""
    return {source: noise.deviation**2 for source, noise in _sources(plan).items()}
