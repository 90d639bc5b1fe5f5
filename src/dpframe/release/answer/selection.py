"""Choices among candidates: quantiles, distances from them to the ends of their intervals, and most frequent values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import PlaceCounts
from dpframe.plan import Total
from dpframe.release.pricing import Noise
from dpframe.theory.formulas.error import distances
from dpframe.theory.formulas.loss import rank_prior, rank_terms

_LARGEST = 2**61
_CELLS = 2**16  # candidates, of all groups of a piece: arrays of this size stay in the processor's cache
Choose = Callable[[NDArray[Any], Fraction], NDArray[np.int64]]


def chosen(noise: Noise, counts: PlaceCounts) -> NDArray[np.int64]:
    """The number of the chosen candidate of each group; with several rounds, one group after the other.

    Input:  the choice with its scale; the rows at each candidate, of shape (groups, candidates)
    """
    total, choose = noise.allotment.total, noise.choice.choose
    if total.values:
        rate = 1 / Fraction(noise.scale)
        pieces = [most_frequent(piece, rate, total.rounds, choose) for _, piece in counts.pieces(_CELLS)]
    else:
        rate = _rate(noise)
        pieces = [choose(rank_scores(total, piece, rate), rate) for _, piece in counts.pieces(_CELLS)]
    return np.concatenate([np.zeros(0, np.int64), *pieces])


def reached(noise: Noise, counts: PlaceCounts, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The first and the last candidate of each quantile's interval, at the confidence `ci` of the total.

    Input:  as in `chosen`; places: the chosen candidates
    Bound:  see `theory.formulas.error.quantile_interval.margin`
    """
    total = noise.allotment.total
    assert total.ci is not None
    assert total.rank is not None
    rate, steps, last = _rate(noise), np.array(distances(counts.shape[1])), counts.shape[1] - 1
    a_row = rank_terms(total.rank)[0] << total.fraction
    scales = noise.choice.margin(len(steps), 1 - total.ci)
    target = math.ceil(scales / rate) + a_row
    if target > _LARGEST:  # more rows than any table has
        return np.zeros_like(places), np.full_like(places, last)
    took = np.zeros_like(places)
    for at, piece in counts.pieces(_CELLS):
        took[at] = steps[noise.choice.choose(reach_scores(total, piece, places[at], target), rate)]
    return np.maximum(places - took, 0), np.minimum(places + took, last)


def _rate(noise: Noise) -> Fraction:
    """The rate of a choice, per score unit of a rank."""
    assert noise.allotment.total.rank is not None
    return 1 / (Fraction(noise.scale) * rank_terms(noise.allotment.total.rank)[1])


def _upto(total: Total, counts: NDArray[Any]) -> NDArray[Any]:
    """Rows at or below each candidate; as Python integers if a score could leave int64."""
    assert total.rank is not None
    largest = float(counts.sum(axis=1, dtype=np.float64).max(initial=0)) * rank_terms(total.rank)[1]
    return np.asarray(np.cumsum(counts, axis=1, dtype=np.int64 if largest < 2.0**60 else object))


def _scores(worse: NDArray[Any]) -> NDArray[np.int64]:
    """Scores, at best 0, from how much worse each candidate is. A cut at a constant moves none by more."""
    return np.asarray(-np.clip(worse, 0, _LARGEST).astype(np.int64))


def most_frequent(counts: NDArray[Any], rate: Fraction, rounds: int, choose: Choose) -> NDArray[np.int64]:
    """Candidates by their rows, one after the other, each among those not chosen yet; see `count_scale`."""
    candidates = np.tile(np.arange(counts.shape[1]), (len(counts), 1))
    places = []
    for _ in range(rounds):
        place = choose(np.take_along_axis(counts, candidates, axis=1), rate)[:, None]
        places.append(np.take_along_axis(candidates, place, axis=1))
        rest = np.arange(candidates.shape[1]) != place
        candidates = candidates[rest].reshape(len(candidates), -1)
    return np.concatenate(places, axis=1).ravel()


def rank_scores(total: Total, counts: NDArray[Any], rate: Fraction) -> NDArray[np.int64]:
    """Scores, at best 0, of how well each candidate splits a group's rows and the public rows.

    See `theory.formulas.loss.quantile_selection`.
    """
    assert total.rank is not None
    upto = _upto(total, counts)
    group_rows = upto[:, -1:]
    below = np.concatenate([np.zeros_like(group_rows), upto[:, :-1]], axis=1)
    above, since = group_rows - upto, group_rows - below
    if total.rank in (0, 1):
        reach = min(max(math.ceil(math.log(counts.shape[1] + 1) / rate), 2**total.fraction), _LARGEST)
        outside, inside = (below, upto) if total.rank == 0 else (above, since)
        target = np.minimum(reach, group_rows)
        return _scores(np.maximum(2 * outside - target, target - 2 * inside))
    part, whole = total.rank.as_integer_ratio()
    low, high = (whole - part) * below - part * since, part * above - (whole - part) * upto
    low_prior, high_prior = _prior(total.rank, counts.shape[1], rate)
    return _scores(np.maximum(low + low_prior, high + high_prior))


@lru_cache(maxsize=16)
def _prior(rank: Fraction, candidates: int, rate: Fraction) -> NDArray[np.int64]:
    """The constants of `rank_prior`, kept since many pieces of one release need them."""
    constants = np.array(rank_prior(rank, candidates, rate), np.int64).T.copy()
    constants.flags.writeable = False
    return constants


def reach_scores(total: Total, counts: NDArray[Any], places: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """Scores, at best 0, of how well each distance from the chosen candidates reaches `target` score units.

    See `theory.formulas.error.quantile_interval.margin`, whose f is `spare`, in score units.
    """
    assert total.rank is not None
    part, whole = total.rank.as_integer_ratio()
    upto, steps, last = _upto(total, counts), np.array(distances(counts.shape[1])), counts.shape[1] - 1
    at_rank = part * upto[:, -1:]
    first, final = np.maximum(places[:, None] - steps, 0), np.minimum(places[:, None] + steps, last)
    below = np.take_along_axis(upto, np.maximum(first - 1, 0), axis=1)
    until = np.take_along_axis(upto, final, axis=1)
    before_first = np.where(first > 0, at_rank - whole * below, _LARGEST)
    spare = np.minimum(before_first, np.where(final < last, whole * until - at_rank, _LARGEST))
    before = np.hstack([np.full((len(places), 1), -_LARGEST), spare[:, :-1]])
    return _scores(np.maximum(before - target, target - spare))
