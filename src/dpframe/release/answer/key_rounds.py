"""Keys found in rounds, from weights that each unit spreads over its keys that are still in play."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from dpframe.arrays import WideIntegers
from dpframe.engine import Totals
from dpframe.noise import keep_at_least
from dpframe.release.answer.draw import aligned, plus
from dpframe.release.pricing import GaussianRounds, NoisePlan
from dpframe.theory.formulas.loss import dropped_below

__all__ = ["keys_in_rounds"]


def keys_in_rounds(plan: NoisePlan, read: Callable[[pl.DataFrame | None], Totals]) -> pl.DataFrame:
    """The released keys, in the order of the first reading.

    Input:  the noise and thresholds; read(in_play): the exact weights of the keys in play, where None stands for all
    Bound:  see `formulas.loss.key_selection.round_thresholds`. Which keys are in play is a function of noisy sums.
            The noise of each round is fresh, for every key in play. A key that no unit has is never a candidate
    """
    (noise,) = plan.noises
    mechanism = noise.mechanism
    assert isinstance(mechanism, GaussianRounds)
    first = read(None)
    keys, held, weights = first.keys, first.held, first.values[0]
    places = np.arange(keys.height)  # of the keys in play, among all keys
    sums: WideIntegers = np.zeros(keys.height, np.int64)
    released = np.zeros(keys.height, np.bool_)
    for number, threshold in enumerate(mechanism.thresholds):
        if number:
            again = read(held[places])
            weights = aligned(again.held, again.values[0], held[places])
        sums = plus(plus(sums, weights), mechanism.draw(len(places)))
        passed = keep_at_least(sums, threshold)
        released[places[passed]] = True
        stay = ~passed & keep_at_least(sums, dropped_below(mechanism.thresholds, number))
        places, sums = places[stay], sums[stay]
        if not len(places):
            break
    return keys.filter(pl.Series(released))
