"""Choices among candidates: quantiles, distances to their intervals, and most frequent values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.arrays import Array, Integers, PlaceCounts
from dpframe.noise import uniform_index
from dpframe.plan import FEW, Total
from dpframe.release.pricing import Noise
from dpframe.theory.formulas.error import distances
from dpframe.theory.formulas.loss import extreme_targets, fade, rank_prior, rank_terms, reach_change

_LARGEST = 2**61
# candidates, of all groups of a piece: arrays of this size stay in the processor's cache
_CELLS = 2**16
_PUBLIC = 256  # parts of the bounds in which public rows are added, where there are many candidates
Choose = Callable[..., Integers]  # of scores and a rate, and of copies


def chosen(noise: Noise, counts: PlaceCounts) -> Integers:
    """The chosen candidate of each group; with several rounds, one group after the other.

    Input:  the choice with its scale; the rows at each candidate, of shape (groups, candidates)
    """
    total, choose = noise.total, noise.choice.choose
    if total.values:
        rate = 1 / Fraction(noise.scale)
        pieces = [
            most_frequent(piece, rate, total.rounds, choose) for _, piece in counts.pieces(_CELLS)
        ]
    elif counts.shape[1] <= FEW:
        rate = _rate(noise)
        pieces = [
            choose(rank_scores(total, piece, rate), rate) for _, piece in counts.pieces(_CELLS)
        ]
    else:
        pieces = [
            in_list(total, first, runs, _rate(noise), choose)
            for _, first, runs in counts.runs(_CELLS, _edges(counts.shape[1]))
        ]
    return np.concatenate([np.zeros(0, np.int64), *pieces])


def reached(noise: Noise, counts: PlaceCounts, places: Integers) -> tuple[Integers, ...]:
    """The first and the last candidate of each interval, at the confidence of the total.

    Input:  as in `chosen`; places: the chosen candidates
    Bound:  see `theory.formulas.error.quantile_interval.margin`
    """
    total = noise.total
    assert total.ci is not None
    assert total.rank is not None
    steps, last = np.array(distances(counts.shape[1])), counts.shape[1] - 1
    rate = _rate(noise) * rank_terms(total.rank)[0] / reach_change(total.rank)
    a_row = reach_change(total.rank) << total.fraction
    scales = noise.choice.margin(len(steps), 1 - total.ci)
    target = math.ceil(scales / rate) + a_row
    if target > _LARGEST:  # more rows than any table has
        return np.zeros_like(places), np.full_like(places, last)
    took = steps[noise.choice.choose(reach_scores(total, counts, places, target), rate)]
    return np.maximum(places - took, 0), np.minimum(places + took, last)


def in_list(
    total: Total, first: Integers, runs: Integers, rate: Fraction, choose: Choose
) -> Integers:
    """The number of the chosen candidate of each group, where there are many.

    Input:  first, runs: where runs of candidates begin, and their rows; see `PlaceCounts.runs`. No
            edge of the public rows is inside of a run
    Bound:  all candidates of a run have one score, since none of them has a row, or it is one
            candidate. So the choice among runs, each for its copies, and then of one place in that
            part of the list, is a choice among all candidates in the list of `Candidates`, with
            their copies: the law whose price is `rank_scale`. The list depends on the bounds alone.
            Where the runs begin depends on the rows, and is not released
    """
    candidates = total.candidates
    assert candidates is not None
    after = np.hstack([first[:, 1:], np.full((len(first), 1), candidates.count)])
    copies = candidates.listed(first, after)
    cells = np.searchsorted(_edges(candidates.count), first, side="right") - 1
    at = choose(rank_scores(total, runs, rate, cells), rate, copies)[:, None]
    start, end, many = (
        np.take_along_axis(table, at, axis=1)[:, 0] for table in (first, after, copies)
    )
    return candidates.picked(start, end, uniform_index(many, len(many)))


def _edges(candidates: int) -> Integers:
    """The candidates at which public rows are added, where there are many candidates."""
    return np.arange(_PUBLIC) * candidates // _PUBLIC


def _rate(noise: Noise) -> Fraction:
    """The rate of a choice, per score unit of a rank."""
    assert noise.total.rank is not None
    return 1 / (Fraction(noise.scale) * rank_terms(noise.total.rank)[1])


def _upto(total: Total, counts: Array) -> Array:
    """Rows at or below each candidate; as Python integers if a score could leave int64."""
    assert total.rank is not None
    largest = float(counts.sum(axis=1, dtype=np.float64).max(initial=0)) * rank_terms(total.rank)[1]
    return np.asarray(np.cumsum(counts, axis=1, dtype=np.int64 if largest < 2.0**60 else object))


def _scores(worse: Array) -> Integers:
    """Scores, at best 0, from how much worse each is. A cut at a constant moves none by more."""
    return np.asarray(-np.clip(worse, 0, _LARGEST).astype(np.int64))


def most_frequent(counts: Array, rate: Fraction, rounds: int, choose: Choose) -> Integers:
    """Candidates by their rows, each among those not chosen yet; see `count_scale`."""
    candidates = np.tile(np.arange(counts.shape[1]), (len(counts), 1))
    places = []
    for _ in range(rounds):
        place = choose(np.take_along_axis(counts, candidates, axis=1), rate)[:, None]
        places.append(np.take_along_axis(candidates, place, axis=1))
        rest = np.arange(candidates.shape[1]) != place
        candidates = candidates[rest].reshape(len(candidates), -1)
    return np.concatenate(places, axis=1).ravel()


def rank_scores(
    total: Total, counts: Array, rate: Fraction, cells: Integers | None = None
) -> Integers:
    """Scores, at best 0, of how well each candidate splits a group's rows and the public rows.

    Input:  counts: the rows at each candidate, or in each run of candidates, of shape (groups,
            any); cells: for each run the number of the part of the bounds that it is in, of _PUBLIC
            parts; None for one candidate in each
    Bound:  see `theory.formulas.loss.quantile_selection`
    """
    assert total.rank is not None
    upto = _upto(total, counts)
    group_rows = upto[:, -1:]
    below = np.concatenate([np.zeros_like(group_rows), upto[:, :-1]], axis=1)
    above, since = group_rows - upto, group_rows - below
    if total.rank in (0, 1):
        outside, inside = (below, upto) if total.rank == 0 else (above, since)
        listed = counts.shape[1]
        if cells is not None and total.candidates is not None:
            listed = total.candidates.copies
        most, tangents = extreme_targets(listed, rate, 2**total.fraction)
        target = np.minimum(group_rows, most)
        for power, constant in enumerate(tangents):
            target = np.minimum(target, (group_rows >> power) + constant)
        return _scores(np.maximum(2 * outside - target, target - 2 * inside))
    part, whole = (fade(total.rank) * term for term in total.rank.as_integer_ratio())
    low, high = (whole - part) * below - part * since, part * above - (whole - part) * upto
    many = counts.shape[1] if cells is None else _PUBLIC
    cells = np.arange(many)[None] if cells is None else cells
    public = _public(total.rank, many, rate, group_rows)
    rows = np.arange(len(counts))[:, None]
    return _scores(np.maximum(low + public[rows, cells], high - public[rows, cells + 1]))


def _public(rank: Fraction, candidates: int, rate: Fraction, group_rows: Array) -> Array:
    """Public rows at each border between candidates, (groups, candidates + 1): `rank_prior`."""
    places, turns = _prior(rank, candidates, rate)
    # then products stay below 2^61
    rows = np.minimum(group_rows, _LARGEST // max(int(np.abs(turns).max()), 1))
    left = np.maximum(np.abs(places) - np.abs(turns) * rows // candidates, 0)
    return np.asarray(np.sign(places) * left)


@lru_cache(maxsize=16)
def _prior(rank: Fraction, candidates: int, rate: Fraction) -> Integers:
    """The constants of `rank_prior`, kept since many pieces of one release need them."""
    constants = np.array(rank_prior(rank, candidates, rate), np.int64).T.copy()
    constants.flags.writeable = False
    return constants


def reach_scores(total: Total, counts: PlaceCounts, places: Integers, target: int) -> Integers:
    """Scores, at best 0, of how well each distance from the chosen places reaches `target`.

    See `theory.formulas.error.quantile_interval.margin`, whose f is `spare`, in score units.
    """
    assert total.rank is not None
    part, whole = total.rank.as_integer_ratio()
    steps, last = np.array(distances(counts.shape[1])), counts.shape[1] - 1
    first, final = np.maximum(places[:, None] - steps, 0), np.minimum(places[:, None] + steps, last)
    below, until, rows = (
        counts.upto(at) for at in (first - 1, final, np.full((len(places), 1), last))
    )
    if float(rows.max(initial=0)) * whole >= 2.0**60:
        below, until, rows = (table.astype(object) for table in (below, until, rows))
    before_first = np.where(first > 0, part * rows - whole * below, _LARGEST)
    spare = np.minimum(before_first, np.where(final < last, whole * until - part * rows, _LARGEST))
    before = np.hstack([np.full((len(places), 1), -_LARGEST), spare[:, :-1]])
    return _scores(np.maximum(before - target, target - spare))
