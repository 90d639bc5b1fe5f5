"""Curves that fit a noisy histogram: the number of units at each node, drawn from the posterior of a model.

Few units have the most rows, and noise drowns their counts; but they matter. So a histogram is not read bin by bin, but
as a hidden Markov chain along its nodes. At each node the curve is at one of several levels, a constant factor apart.
From one node to the next it moves by a whole number of levels, similar to its last move: curves bend slowly. It begins
somewhere, may end anywhere (a survey has no sixth wave), and rarely jumps. For sizes it may also come again after a gap
(most people come once, and some every day). The observation is the level, with the variation of whole units and Laplace
noise.

Source: the recursions forward and the draws backward are those of Carter and Kohn 1994, "On Gibbs sampling for state
space models", section 2, for finitely many states. The weights of begin, end, jump and bend are guesses that hardly
matter: a factor of three in any of them moves the errors that follow by a few percent. No bound rests on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.release.auto.model import MODEL

__all__ = ["draw_curves", "nobody_there"]


_LEAST = 0.5  # units: the lowest level above nobody
_STEP = 0.4  # between levels, in their logarithm
_MOVES: Integers = np.arange(-7, 8)
_NEVER = 1e-250  # least relative likelihood of a level, so that not all states of a node vanish
_EXACT = 0.1  # units: a scale at which counts leave no doubt


def draw_curves(
    counts: Floats,
    scale: float,
    number: int,
    *,
    begin: float = MODEL.curve_begin,
    again: float = 0.0,
) -> Floats:
    """Curves (number by nodes) of the units at each node, given noisy counts of at least one unit.

    Input:  scale: of the Laplace noise of the counts (units); begin: how likely a curve does so at each node; again:
            how likely one that has ended comes again after a gap
    Output: curves that equal the counts where noise leaves no doubt; equal counts give equal curves
    """
    chain = _Chain.over(counts, max(scale, _EXACT), begin, again)
    curves = chain.levels[_backward(chain, _forward(chain), number)]
    spread = _variance(curves)
    return np.maximum(curves + spread / (spread + 2 * scale**2) * (counts - curves), 0.0)


def nobody_there(counts: Floats, scale: float) -> float:
    """The posterior probability that no unit is at any node; the prior is about one half.

    If there is no unit, this is below x with a probability of at most 3x. For then the likelihood ratio of "some units"
    to "none" is 1 on average, and Markov's inequality applies.
    """
    return float(_forward(_Chain.over(counts, max(scale, _EXACT), 1 / len(counts))).before[-1])


def _variance(level: Floats) -> Floats:
    """The variance of a count around its level."""
    return level + (MODEL.curve_rough * level) ** 2


@dataclass(frozen=True)
class _Chain:
    """The likelihoods at each node, and the transitions of a curve from one node to the next.

    A state is a level and the move that led to it. Level 0 means no units: not yet, for a while, or not any more.
    """

    levels: Floats
    likely: Floats  # nodes by levels: the counts, given the level
    transitions: Floats  # moves by moves: the next, given the last
    origin: Integers  # levels by moves: the level from which that move leads to this one, 0 where there is none
    fresh: Floats  # moves: where a curve begins or has jumped, for each level
    falls: Floats  # levels by moves: a curve that moved so last ends here, as it does anywhere, or by falling to nobody
    begin: float  # how likely a curve begins at a node
    again: float  # how likely it comes again
    returns: Floats  # levels by moves: where it does

    @classmethod
    def over(
        cls,
        counts: Floats,
        scale: float,
        begin: float = MODEL.curve_begin,
        again: float = 0.0,
    ) -> _Chain:
        highest = max(float(np.cumsum(counts).max()), 0.0) + 10 * scale
        rungs = max(math.ceil(math.log(highest / _LEAST) / _STEP), len(_MOVES))
        levels = np.concatenate([[0.0], _LEAST * np.exp(_STEP * np.arange(rungs))])
        width = np.sqrt(scale**2 + _variance(levels) / 2)
        nats = -np.abs(counts[:, None] - levels) / width - np.log(width)
        transitions = np.exp(-np.abs(_MOVES[:, None] - _MOVES) / MODEL.curve_bend)
        transitions /= transitions.sum(axis=1, keepdims=True)
        fresh = np.exp(-np.abs(_MOVES) / MODEL.curve_new)
        at = np.arange(len(levels))[:, None]
        origin, target = at - _MOVES, at + _MOVES
        origin[(origin < 1) | (origin >= len(levels)) | (at < 1)] = 0
        outside = ((target < 1) | (target >= len(levels))).astype(np.float64)
        falls = MODEL.curve_end + (1 - MODEL.curve_end - MODEL.curve_jump) * outside @ transitions.T
        falls[0] = 0.0
        likely = np.maximum(np.exp(nats - nats.max(axis=1, keepdims=True)), _NEVER)
        fresh /= fresh.sum()
        high = levels >= max(MODEL.back_scales * scale, MODEL.back_units)
        returns = high[:, None] / high.sum() * fresh
        return cls(levels, likely, transitions, origin, fresh / rungs, falls, begin, again, returns)


@dataclass(frozen=True)
class _Filtered:
    """The probability of each state at each node, given the counts up to that node."""

    there: Floats  # nodes by levels by moves
    before: Floats  # nodes: nobody yet
    after: Floats  # nodes: nobody any more
    away: Floats  # nodes: nobody for a while


def _forward(chain: _Chain) -> _Filtered:
    nodes, shape = len(chain.likely), chain.origin.shape
    there, before, after, away = np.zeros((nodes, *shape)), np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    moves, stays = np.arange(shape[1]), 1 - MODEL.curve_end - MODEL.curve_jump
    now, waiting, over, gap = np.zeros(shape), 1.0, 0.0, 0.0
    for node, likely in enumerate(chain.likely):
        fallen = float((now * chain.falls).sum())
        arrivals = np.where(chain.origin > 0, (now @ chain.transitions)[chain.origin, moves], 0.0) * stays
        arrivals[1:] += (waiting * chain.begin + float(now.sum()) * MODEL.curve_jump) * chain.fresh
        arrivals += gap * MODEL.curve_back * chain.returns
        now, waiting = arrivals * likely[:, None], waiting * (1 - chain.begin) * likely[0]
        over = (over + fallen * (1 - chain.again)) * likely[0]
        gap = (gap * (1 - MODEL.curve_back) + fallen * chain.again) * likely[0]
        total = float(now.sum()) + waiting + over + gap
        now, waiting, over, gap = now / total, waiting / total, over / total, gap / total
        there[node], before[node], after[node], away[node] = now, waiting, over, gap
    return _Filtered(there, before, after, away)


def _backward(chain: _Chain, forward: _Filtered, number: int) -> Integers:
    """Levels (number by nodes) of curves, drawn from the last node to the first."""
    draw = np.random.default_rng(1)  # not noise: the curves follow from the counts
    nodes, (_, moves), stays = len(chain.likely), chain.origin.shape, 1 - MODEL.curve_end - MODEL.curve_jump

    def states(weights: Floats, many: int) -> tuple[Integers, Integers]:
        cumulative = np.cumsum(weights.ravel())
        at = np.minimum(np.searchsorted(cumulative, draw.random(many) * cumulative[-1]), weights.size - 1)
        return at // moves, at % moves

    curves = np.zeros((number, nodes), np.int64)
    level, move = np.zeros(number, np.int64), np.zeros(number, np.int64)
    last = draw.random(number) * (1 - forward.before[-1])  # there was somebody
    over = last < forward.after[-1]  # nobody any more
    gap = ~over & (last < forward.after[-1] + forward.away[-1])  # nobody for a while
    level[~over & ~gap], move[~over & ~gap] = states(forward.there[-1], int((~over & ~gap).sum()))
    curves[:, -1] = level
    for node in range(nodes - 2, -1, -1):
        there, now = forward.there[node], float(forward.there[node].sum())
        up, ending = np.flatnonzero(level > 0), there * chain.falls
        for absent, part, stay in (
            (over, 1 - chain.again, forward.after[node]),
            (gap, chain.again, forward.away[node] * (1 - MODEL.curve_back)),
        ):
            nobody, fell = np.flatnonzero(absent), float(ending.sum()) * part
            here = nobody[draw.random(len(nobody)) * (fell + stay) < fell]
            level[here], move[here] = states(ending, len(here))
            absent[here] = False
        if len(up):
            fresh = chain.fresh[move[up]]
            origin = chain.origin[level[up], move[up]]
            by_move = there[origin] * chain.transitions[:, move[up]].T * stays * (origin > 0)[:, None]
            begins, jumps = forward.before[node] * chain.begin * fresh, now * MODEL.curve_jump * fresh
            returns = forward.away[node] * MODEL.curve_back * chain.returns[level[up], move[up]]
            cumulative = np.cumsum(np.column_stack([by_move, jumps, begins, returns]), axis=1)
            pick = (cumulative < (draw.random(len(up)) * cumulative[:, -1])[:, None]).sum(axis=1)
            level[up], move[up] = np.where(pick < moves, origin, 0), np.minimum(pick, moves - 1)
            leapt = up[pick == moves]
            level[leapt], move[leapt] = states(there, len(leapt))
            gap[up[pick == moves + 2]] = True
        curves[:, node] = level
    return curves
