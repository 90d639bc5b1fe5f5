"""How far the selected candidate may be from the best one, for permute-and-flip and the exponential mechanism."""

from __future__ import annotations

import numpy as np

from dpframe.arrays import Floats

__all__ = ["choice_chances", "choice_error"]


def choice_chances(gaps: Floats) -> Floats:
    """The probability with which permute-and-flip selects each candidate.

    Input:  gaps: rate · (best score - score) of each candidate, at least 0, 0 for the best
    Output: probabilities that add up to 1
    Bound:  the selected candidate has the largest E_i - gap_i with E_i exponential. With p_i = e^-gap_i and u = e^-y,
            P[E_i - gap_i <= y] = 1 - p_i·u for y >= 0. So candidate i is selected with probability p_i times the
            integral over u from 0 to 1 of Π_(j≠i) (1 - p_j·u), computed by the Gauss-Legendre rule on intervals whose
            lengths halve towards 0
    Source: Ding et al. 2021, arXiv:2105.07260, for the exponential noises; the integral is ours
    Errors: none here

    >>> choice_chances(np.array([0.0, 0.0])).round(6)
    array([0.5, 0.5])
    """
    p = np.exp(-np.asarray(gaps, np.float64))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(12, -1, -1)])
    u = ((edges[1:] + edges[:-1])[:, None] / 2 + np.diff(edges)[:, None] / 2 * nodes).ravel()
    weights = (np.diff(edges)[:, None] / 2 * weights).ravel()
    factors = 1 - p * u[:, None]
    product = np.exp(np.log(factors).sum(axis=1))
    chances = p * ((weights * product) @ (1 / factors))
    return np.asarray(chances / chances.sum())


def choice_error(gaps: Floats, distances: Floats, alpha: float, *, exponential: bool = False) -> float:
    """The smallest distance that the selected candidate exceeds with probability at most alpha.

    Input:  gaps as in `choice_chances`; the distance of each candidate from the best one (any unit); alpha in (0, 1);
            exponential: True for the exponential mechanism, False for permute-and-flip
    Output: one of the distances (same unit)
    Errors: none here

    >>> choice_error(np.array([0.0, 1.0, 9.0]), np.array([0.0, 1.0, 2.0]), 0.05)
    1.0
    """
    order = np.argsort(distances, kind="stable")
    weights = np.exp(-np.asarray(gaps, np.float64))
    chances = weights / weights.sum() if exponential else choice_chances(gaps)
    nearer = np.cumsum(chances[order])
    return float(distances[order][min(int(np.searchsorted(nearer, 1 - alpha)), len(order) - 1)])
