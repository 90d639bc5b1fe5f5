"""Errors of a privately selected candidate, in ranks and in the column's unit."""

from __future__ import annotations

import math

import numpy as np

from dpframe.arrays import Floats
from dpframe.theory.formulas.loss import fewer_rows


def distances(candidates: int) -> tuple[int, ...]:
    """The candidate distances, in places (steps between candidates):
    from 0 to all, with two per doubling.

    Input:  candidates: the number of places from which the quantile was selected
    Output: increasing, from 0 to candidates - 1
    Bound:  public: they depend on the bounds alone

    >>> distances(10)
    (0, 1, 2, 3, 4, 6, 8, 9)
    """
    last = candidates - 1
    octaves = [0, *(2**i * part // 2 for i in range(last.bit_length() + 1) for part in (2, 3))]
    return (*sorted({d for d in octaves if d < last}), last) if last else (0,)


def margin(number: int, alpha: float, *, exponential: bool = False) -> float:
    """The slack t, in rows, so that a distance that is too short is selected
    with probability at most alpha.

    Input:  number of distances; alpha in (0, 1); exponential: True for the exponential mechanism,
            False for permute-and-flip
    Output: t, in scales of the selection (see `quantile_selection.rank_scale`): `fewer_rows` for
            that many candidates
    Bound:  let v be the place of the released quantile and n the number of rows of its group. L(x)
            of these rows are
            below the place x, and M(x) are not above it. The slack of a distance d is q·n - L(v -
            d) rows below v and M(v + d) - q·n rows above v; on a side where d reaches the first or
            last place, the slack is unlimited. Let f(d) be the smaller slack of the two sides. It
            grows with d. Let Q be a quantile of rank q: any value with at least q·n rows not above
            it and at most q·n rows below it. If Q is further than d from v, then f(d) <= 0. For if
            Q > v + d, the rows not above v + d are below Q, so M(v + d) <= q·n. And if Q < v - d,
            the rows not above Q are below v - d, so L(v - d) >= q·n. Pandas and Polars compute Q
            from the sorted rows next to the position 1 + q·(n - 1). If that Q is further than d
            from v, then M(v + d) <= 1 + q·(n - 1), or L(v - d) >= q·(n - 1), so f(d) <= c with c =
            max(q, 1 - q) rows. Let d' be the distance before d. The score of d is minus the largest
            of f(d') - c - t, c + t - f(d) and 0; for the first distance there is no f(d'). So the
            first distance with a slack of c + t is the best, with score 0. A distance that is too
            short has a score of at most -t. With t as in `quantile_selection.fewer_rows`, one of
            these is selected with probability at most alpha. This holds for every v, so for the
            released one.
            Privacy: a row that enters or leaves changes q·n - L by q or by 1 - q, up or down, and M
                     - q·n likewise. So
            it changes f, a minimum of the two, and each score, a maximum of these, by at most
            max(q, 1 - q). A score of the quantile itself changes by as much, so its scale and its
            proof apply (`quantile_selection.rank_scale`). v is released first, so the two
            selections compose sequentially
    Source: McKenna and Sheldon 2020, arXiv:2010.12603, and Ding et al. 2021, arXiv:2105.07260, for
            the choice; the scores are ours
    Errors: none here

    >>> margin(1, 0.05), round(margin(23, 0.05), 4)
    (0.0, 5.3936)
    """
    return fewer_rows(1.0, number, alpha, exponential=exponential)


def choice_chances(gaps: Floats, many: Floats | float = 1.0) -> Floats:
    """The probability with which permute-and-flip selects each candidate, or
    one of many with the same score.

    Input:  gaps: rate · (best score - score) of each candidate, at least 0, 0 for the best; many:
            how many candidates have each of these scores
    Output: probabilities that add up to 1
    Bound:  the selected candidate has the largest E_i - gap_i with E_i exponential. With p_i =
            e^-gap_i and u = e^-y, P[E_i - gap_i <= y] = 1 - p_i·u for y >= 0. So candidate i is
            selected with probability p_i times the integral over u from 0 to 1 of Π_(j≠i) (1 -
            p_j·u), computed by the Gauss-Legendre rule on intervals whose lengths halve towards 0,
            to the reciprocal of the number of candidates
    Source: Ding et al. 2021, arXiv:2105.07260, for the exponential noises; the integral is ours
    Errors: none here

    >>> choice_chances(np.array([0.0, 0.0])).round(6)
    array([0.5, 0.5])
    """
    p, number = np.exp(-np.asarray(gaps, np.float64)), np.broadcast_to(many, np.shape(gaps))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    halves = max(math.ceil(math.log2(number.sum())), 12)
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(halves, -1, -1)])
    u = ((edges[1:] + edges[:-1])[:, None] / 2 + np.diff(edges)[:, None] / 2 * nodes).ravel()
    weights = (np.diff(edges)[:, None] / 2 * weights).ravel()
    factors = 1 - p * u[:, None]
    product = np.exp(np.log(factors) @ number)
    chances = number * p * ((weights * product) @ (1 / factors))
    return np.asarray(chances / chances.sum())


def choice_error(
    gaps: Floats,
    distances: Floats,
    alpha: float,
    *,
    exponential: bool = False,
    many: Floats | float = 1.0,
) -> float:
    """The smallest distance that the selected candidate exceeds with probability at most alpha.

    Input:  gaps and many as in `choice_chances`; the distance of each candidate from the best one
            (any unit); alpha in (0, 1); exponential: True for the exponential mechanism, False for
            permute-and-flip
    Output: one of the distances (same unit)
    Errors: none here

    >>> choice_error(np.array([0.0, 1.0, 9.0]), np.array([0.0, 1.0, 2.0]), 0.05)
    1.0
    """
    order = np.argsort(distances, kind="stable")
    weights = np.exp(-np.asarray(gaps, np.float64)) * many
    chances = weights / weights.sum() if exponential else choice_chances(gaps, many)
    nearer = np.cumsum(chances[order])
    return float(distances[order][min(int(np.searchsorted(nearer, 1 - alpha)), len(order) - 1)])
