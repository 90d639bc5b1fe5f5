"""Curves that fit a noisy histogram: the number of units at each node, drawn
from the posterior of a model.

Few units have the most rows, and noise drowns their counts; but they matter. So a histogram is not
read bin by bin, but as a hidden Markov chain along its nodes. At each node the curve is at one of
several levels, a constant factor apart. From one node to the next it moves by a whole number of
levels, similar to its last move: curves bend slowly. It begins somewhere, may end anywhere (a
survey has no sixth wave), and rarely jumps. For sizes it may also come again after a gap (most
people come once, and some every day). The observation is the level, with the variation of whole
units and Laplace noise.

Source: the recursions forward and the draws backward are those of Carter and Kohn 1994, "On Gibbs
        sampling for state
space models", section 2, for finitely many states. The weights of begin, end, jump and bend are
guesses that hardly matter: a factor of three in any of them moves the errors that follow by a few
percent. No bound rests on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.release.auto.model import MODEL

_LEAST = 0.5  # units: the lowest level above nobody
_STEP = 0.4  # between levels, in their logarithm
_MOVES: Integers = np.arange(-7, 8)
_NEVER = 1e-250  # least relative likelihood of a level, so that not all states of a node vanish
_EXACT = 0.1  # units: a scale at which counts leave no doubt
_YET, _AWAY, _OVER = -3, -2, -1  # the last states of a chain: nobody yet, for a while, any more


def draw_curves(
    counts: Floats,
    scale: float,
    number: int,
    *,
    begin: float = MODEL.curve_begin,
    again: float = 0.0,
    once: float = MODEL.curve_end,
) -> Floats:
    """Curves (number by nodes) of the units at each node, given noisy counts of at least one unit.

    Input:  scale: of the Laplace noise of the counts (units); begin: how likely a curve does so at
            each node; again: how likely one that has ended comes again after a gap; once: how
            likely one ends after the first node
    Output: curves that equal the counts where noise leaves no doubt; equal counts give equal curves
    """
    chain = _Chain.over(counts, max(scale, _EXACT), begin, again, once)
    curves = chain.levels[chain.drawn(number)]
    spread = _variance(curves)
    return np.maximum(curves + spread / (spread + 2 * scale**2) * (counts - curves), 0.0)


def left_open(masses: Floats, scale: float) -> Floats:
    """Variance of the number of units at each node, given a count with Laplace noise of a scale."""
    spread, noise = _variance(masses), 2 * scale**2
    return spread * noise / np.maximum(spread + noise, 1e-300)


def nobody_there(counts: Floats, scale: float) -> float:
    """The posterior probability that no unit is at any node; the prior is about one half.

    If there is no unit, this is below x with a probability of at most 3x. For then the likelihood
    ratio of "some units" to "none" is 1 on average, and Markov's inequality applies.
    """
    return float(_Chain.over(counts, max(scale, _EXACT), 1 / len(counts)).forward[-1, _YET])


def _variance(level: Floats) -> Floats:
    """The variance of a count around its level."""
    return level + (MODEL.curve_rough * level) ** 2


@dataclass(frozen=True)
class _Chain:
    """The steps between states, and the probability of each state at each node,
    given the counts up to that node.

    The states are all pairs of a level and the move that led to it, level by level, and three of
    nobody.
    """

    levels: Floats
    step: Floats  # states by states: the probability of the second, given the first
    first: Floats  # that from the first node to the second
    forward: Floats  # nodes by states

    @classmethod
    def over(
        cls,
        counts: Floats,
        scale: float,
        begin: float = MODEL.curve_begin,
        again: float = 0.0,
        once: float = MODEL.curve_end,
    ) -> _Chain:
        highest = max(float(np.cumsum(counts).max()), 0.0) + 10 * scale
        rungs = max(math.ceil(math.log(highest / _LEAST) / _STEP), len(_MOVES))
        levels = np.concatenate([[0.0], _LEAST * np.exp(_STEP * np.arange(rungs))])
        width = np.sqrt(scale**2 + _variance(levels) / 2)
        nats = -np.abs(counts[:, None] - levels) / width - np.log(width)
        likely = np.maximum(np.exp(nats - nats.max(axis=1, keepdims=True)), _NEVER)
        step = _steps(levels[1:] >= max(MODEL.back_scales * scale, MODEL.back_units), begin, again)
        first = _ending(step, once)
        forward, now = np.zeros((len(counts), len(step))), np.eye(len(step))[_YET]
        for node, weights in enumerate(likely):
            seen = np.append(np.repeat(weights[1:], len(_MOVES)), weights[[0, 0, 0]])
            now = now @ (first if node == 1 else step) * seen
            forward[node] = now = now / now.sum()
        return cls(levels, step, first, forward)

    def drawn(self, number: int) -> Integers:
        """Places in `levels` of curves with a unit or more (number by nodes), drawn
        from the last node to the first.
        """
        draw = np.random.default_rng(1)  # not noise: the curves follow from the counts
        places = np.append(np.repeat(np.arange(1, len(self.levels)), len(_MOVES)), [0, 0, 0])
        curves, later = np.zeros((number, len(self.forward)), np.int64), np.zeros(number, np.int64)
        ahead = np.ones((1, len(self.step)))  # how likely each state leads to a later one
        ahead[:, _YET] = 0.0
        for node in reversed(range(len(self.forward))):
            cumulative = np.cumsum(self.forward[node] * ahead, axis=1)
            at = draw.random(number) * cumulative[later, -1]
            states = np.minimum((cumulative[later] <= at[:, None]).sum(axis=1), len(places) - 1)
            curves[:, node] = places[states]
            states, later = np.unique(states, return_inverse=True)
            ahead = (self.first if node == 1 else self.step).T[states]
        return curves


def _ending(step: Floats, once: float) -> Floats:
    """The likelihoods of a step where a curve ends with probability `once`, or as often as before
    if that is more.
    """
    result, here = step.copy(), len(step) - 3
    ends = step[:here, here:].sum(axis=1, keepdims=True)
    more = np.maximum(ends, once)
    result[:here, :here] *= (1 - more) / np.maximum(1 - ends, 1e-300)
    result[:here, here:] *= more / ends
    return result


def _steps(high: Booleans, begin: float, again: float) -> Floats:
    """Likelihood of each state after each one.
    A curve that comes again does so at one of the `high` levels.
    """
    rungs, moves = len(high), len(_MOVES)
    here, stays = rungs * moves, 1 - MODEL.curve_end - MODEL.curve_jump
    transitions = np.exp(-np.abs(_MOVES[:, None] - _MOVES) / MODEL.curve_bend)
    transitions *= stays / transitions.sum(axis=1, keepdims=True)
    fresh = np.exp(-np.abs(_MOVES) / MODEL.curve_new)
    fresh /= fresh.sum()
    anywhere = np.tile(fresh / rungs, rungs)
    step = np.zeros((here + 3, here + 3))
    between = np.zeros((rungs, moves, rungs, moves))
    for new, move in enumerate(_MOVES):
        origin = np.arange(max(-move, 0), min(rungs, rungs - move))
        between[origin, :, origin + move, new] = transitions[:, new]
    step[:here, :here] = between.reshape(here, here) + MODEL.curve_jump * anywhere
    # it ends, as it does anywhere, or by a move below or above all levels
    falls = 1 - step[:here].sum(axis=1)
    step[:here, _AWAY], step[:here, _OVER] = again * falls, (1 - again) * falls
    step[_YET, :here], step[_YET, _YET] = begin * anywhere, 1 - begin
    step[_AWAY, :here] = (
        MODEL.curve_back * np.repeat(high / high.sum(), moves) * np.tile(fresh, rungs)
    )
    step[_AWAY, _AWAY], step[_OVER, _OVER] = 1 - MODEL.curve_back, 1.0
    return step
