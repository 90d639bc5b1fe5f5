"""What a noisy histogram says of those it counted: how many there are at each node, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.release.curves import draw_curves

__all__ = ["Spread", "quantiles", "read_spread"]

Floats = NDArray[np.float64]

_DRAWN = 192  # curves
_CASES = 16  # that stand for them
_FEW = 30.0  # units beside the scale of the noise: who has fewer asks for no histogram


@dataclass(frozen=True)
class Spread:
    """How many units are at each node, in several cases; each case has its probability."""

    masses: Floats  # cases by nodes
    odds: Floats

    @property
    def units(self) -> float:
        """How many units there are."""
        return float(max(self.odds @ self.masses.sum(axis=1), 1.0))


def read_spread(counts: Floats, scale: float, nodes: Floats) -> Spread:
    """The cases that a noisy histogram over growing nodes leaves open, from few rows to many.

    Input:  scale: of its Laplace noise (units)
    """
    curves = draw_curves(counts, scale, _DRAWN)
    curves = curves[np.argsort(curves @ nodes, kind="stable")]
    weights = np.clip(curves.sum(axis=1) / (_FEW * scale), 1e-3, 1.0) ** 2
    case = np.minimum((np.cumsum(weights) - weights / 2) / weights.sum() * _CASES, _CASES - 1).astype(int)
    cases = [case == i for i in np.unique(case)]
    odds = np.array([weights[i].sum() for i in cases])
    masses = np.array([weights[i] @ curves[i] for i in cases]) / odds[:, None]
    return Spread(masses, odds / odds.sum())


def quantiles(masses: Floats, nodes: Floats, at: Floats) -> Floats:
    """The nodes at which parts `at` of the units are reached."""
    parts = np.cumsum(masses) / max(float(masses.sum()), 1e-300)
    return nodes[np.minimum(np.searchsorted(parts, at), len(nodes) - 1)]
