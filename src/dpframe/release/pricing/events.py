"""The mechanisms of a release in the words of Google's dp-accounting, for a ledger's export."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.release.pricing.calibrate import Drawn, NoisePlan

__all__ = ["UNNAMED", "events_of"]

UNNAMED: dict[str, Any] = {"class_name": "UnsupportedDpEvent", "fields": {}}


def events_of(plan: NoisePlan) -> list[dict[str, Any]]:
    """One event for each noisy measure, a pair's on its sum; "UnsupportedDpEvent" where dp-accounting has no name."""
    return [_event(drawn) for drawn in plan.drawn]


def _event(drawn: Drawn) -> dict[str, Any]:
    bound, scale = drawn.paid.measure.sensitivity, Fraction(drawn.scale)
    paired = drawn.family == "paired_laplace"
    if drawn.family == "none" or (paired and drawn.paid.beside is None):
        return {"class_name": "NoOpDpEvent", "fields": {}}
    if (
        drawn.family == "laplace" or paired
    ):  # of both, twice l1 over twice the scale: see `theory.formulas.sensitivity.pairs`
        return {"class_name": "LaplaceDpEvent", "fields": {"noise_multiplier": float(scale / bound.exact_l1)}}
    if drawn.family == "gaussian":
        return {"class_name": "GaussianDpEvent", "fields": {"noise_multiplier": float(scale) / bound.l2}}
    if drawn.family == "discrete_laplace":
        fields = {"noise_parameter": float(1 / scale), "sensitivity": int(bound.exact_l1)}
        return {"class_name": "DiscreteLaplaceDpEvent", "fields": fields}
    return UNNAMED
