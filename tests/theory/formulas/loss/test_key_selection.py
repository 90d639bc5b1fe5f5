"""Selection of keys by noisy thresholds, at once and in rounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import stats

from dpframe import errors
from dpframe.theory import gaussian_delta, gaussian_scale
from dpframe.theory import threshold as threshold_for
from dpframe.theory.formulas.loss import (
    ROUNDS,
    calibration,
    dropped_below,
    round_thresholds,
    threshold_beside_noise,
)
from dpframe.theory.formulas.sensitivity import MOST_KEYS, key_weights, spread_weight

EPSILON, DELTA = 0.5, 0.05


def law(units, scale, least):
    """Of one group: hidden, or a noisy number from `least` on;
    a group without units is not there.
    """
    values = np.arange(least, least + int(14 * scale) + 40)
    if units == 0:
        return np.concatenate([[1.0], np.zeros(len(values))])
    shown = stats.norm.cdf(values + 0.5, units, scale) - stats.norm.cdf(values - 0.5, units, scale)
    return np.concatenate([[stats.norm.cdf(least - 0.5, units, scale)], shown])


def worst(scale, least, changes):
    """The largest divergence, both ways: one unit in two groups comes (+1), leaves
    (-1), or moves from one to one.
    """
    sizes = range(least + 4)
    laws = [law(n, scale, least) for n in range(least + 6)]
    found = 0.0
    for before in itertools.product(sizes, repeat=len(changes)):
        after = [n + d for n, d in zip(before, changes, strict=True)]
        if min(after) < 0:
            continue
        p, q = (np.multiply.outer(*[laws[n] for n in side]) for side in (before, after))
        found = max(
            found, *(np.maximum(x - math.exp(EPSILON) * y, 0).sum() for x, y in ((p, q), (q, p)))
        )
    return found


@pytest.mark.parametrize("changes", [(1, 1), (1, -1)])
def test_noise_and_threshold_together_are_within_delta(changes):
    """Both keep nearly all of δ; a threshold that is lower by two is
    not paid for (negative control).
    """
    scale = gaussian_scale(l2_squared=2, epsilon=EPSILON, delta=DELTA * 19 / 20)
    least = threshold_beside_noise(
        DELTA, EPSILON, 2, scale, 1, lambda j: math.sqrt(min(j, 2)) / scale
    )
    assert DELTA / 3 < worst(scale, least, changes) <= DELTA
    if changes == (1, 1):
        assert worst(scale, least - 2, changes) > DELTA


@pytest.mark.parametrize("groups", [1, 2, 5, 64, 65, 300])
def test_it_is_never_below_the_threshold_of_all_of_delta_and_hardly_above(groups):
    scale = gaussian_scale(l2_squared=groups, epsilon=1, delta=1e-6 * 19 / 20)
    least = threshold_beside_noise(1e-6, 1, groups, scale, 1, lambda j: math.sqrt(j) / scale)
    alone = threshold_for(1e-6, groups, "gaussian", scale)
    assert alone <= least <= alone * 1.02 + 1
    halves = threshold_for(
        5e-7, groups, "gaussian", gaussian_scale(l2_squared=groups, epsilon=1, delta=5e-7)
    )
    assert least < 0.97 * halves


def test_there_is_none_where_the_noise_takes_all_of_delta_or_a_unit_may_put_all_into_one_group():
    scale = gaussian_scale(l2_squared=100, epsilon=1, delta=1e-6)
    assert threshold_beside_noise(1e-7, 1, 100, scale, 1, lambda j: math.sqrt(j) / scale) is None
    scale = gaussian_scale(l2_squared=100, epsilon=1, delta=0.95e-6)
    wide = threshold_beside_noise(1e-6, 1, 100, scale, 1, lambda j: math.sqrt(100) / scale)
    assert wide is None or wide > threshold_for(1e-6, 100, "gaussian", scale)


ONE = 2**20


@pytest.fixture(autouse=True)
def _precise():
    kept, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = kept


def ball(number):
    return arb(fmpq(*Fraction(number).as_integer_ratio()))


def chance(thresholds, keys, scale, one):
    """The chance that some of `keys` new keys passes in some round, where each has
    the weight `one` in each round.
    """
    total = arb(0)
    for j, threshold in enumerate(thresholds, 1):
        # each of j noises is rounded by at most 1/2
        reach = ball(Fraction(threshold) - j * one - Fraction(j, 2))
        tail = (reach / (ball(scale) * arb(2 * j).sqrt())).erfc() / 2
        total += 1 - (1 - tail) ** keys
    return total


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("keys", [1, 3, 100])
@pytest.mark.parametrize(("scale", "one"), [(11.5 * ONE, ONE), (0.7, 1), (40.0, 3)])
def test_new_keys_pass_with_at_most_delta_and_lower_thresholds_would_not_do(
    delta, keys, scale, one
):
    thresholds = round_thresholds(delta, keys, 8, scale, one)
    assert chance(thresholds, keys, scale, one) <= ball(delta)
    lower = [threshold - max(2, round(scale / 20)) for threshold in thresholds]
    assert chance(lower, keys, scale, one) > ball(delta)


def test_one_round_is_the_threshold_of_one_noisy_number():
    assert round_thresholds(1e-6, 5, 1, 9.0, 2) == (
        calibration.threshold(1e-6, 5, "gaussian", 9.0, 2),
    )


def test_parts_of_delta_double_from_round_to_round():
    parts = [Fraction(1, 10**6) * 2**j / 7 for j in range(3)]
    alone = [
        calibration.threshold(part, 5, "gaussian", 9.0 * math.sqrt(j), 2 * j)
        for j, part in enumerate(parts, 1)
    ]
    assert [
        t - j // 2 for j, t in enumerate(round_thresholds(Fraction(1, 10**6), 5, 3, 9.0, 2), 1)
    ] == alone


@pytest.mark.parametrize(
    ("delta", "keys", "rounds"), [(0, 1, 1), (1, 1, 1), (0.1, 0, 1), (0.1, 1, 0)]
)
def test_what_does_not_fit_is_refused(delta, keys, rounds):
    with pytest.raises((errors.InvalidPrice, errors.InvalidArgument)):
        round_thresholds(delta, keys, rounds, 1.0, 1)


def test_weights_never_reach_beyond_a_length_of_one():
    bound = key_weights(MOST_KEYS, ONE)
    for keys in range(1, MOST_KEYS + 1):
        weight = spread_weight(keys, ONE)
        assert keys * weight**2 <= bound.l2_squared == ONE**2 < keys * (weight + 1) ** 2
        assert keys * weight <= bound.exact_l1
        assert weight <= bound.exact_linf == ONE
    assert bound.l0 == MOST_KEYS


@pytest.mark.parametrize(("keys", "one"), [(0, 5), (1, 0), (-3, 5)])
def test_weights_of_nothing_are_refused(keys, one):
    with pytest.raises(errors.InvalidArgument):
        spread_weight(keys, one)
    with pytest.raises(errors.InvalidArgument):
        key_weights(0, 5)


def test_a_key_leaves_when_it_is_far_behind_on_the_way_to_the_last_threshold():
    thresholds = [9, 9, 9, 9, 9, 9, 9, 800]
    assert [dropped_below(thresholds, number) for number in range(7)] == [
        20,
        60,
        120,
        200,
        300,
        420,
        560,
    ]
    assert dropped_below([50, 100], 0) == 10
    assert dropped_below([50], 0) == 40


class Stopped:
    """The rounds, played with real noise for two keys of one unit;
    `shared` other units have the first key.
    """

    def __init__(self, shared, joins, scale, thresholds):
        self.shared, self.joins, self.scale, self.thresholds = shared, joins, scale, thresholds

    def play(self, draw, times):
        """Which of the two keys comes out, as 0 to 3, for many plays at once."""
        sums, out = np.zeros((times, 2)), np.zeros((times, 2), bool)
        live = np.tile([self.shared > 0, self.joins], (times, 1)) | [True, False]
        for number, threshold in enumerate(self.thresholds):
            t = live.sum(axis=1, keepdims=True)
            weights = np.where(live, self.joins / np.sqrt(np.maximum(t, 1)), 0.0)
            weights[:, 0] += np.where(live[:, 0], self.shared, 0.0)
            sums += weights + draw.normal(0, self.scale, (times, 2))
            passed = live & (sums >= threshold)
            out |= passed
            live &= ~passed & (
                sums >= dropped_below([t * 1000 for t in self.thresholds], number) / 1000
            )
        return out[:, 0] + 2 * out[:, 1]


@pytest.mark.parametrize("shared", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 6))])
def test_the_loss_of_whole_rounds_is_within_the_claim(shared):
    """Plays on each of two neighbours: an event is chosen on one half,
    and tested on the other at 1e-7.

    The negative control has a sixth of the noise and of the thresholds.
    """
    epsilon, delta, rounds, times = 1.0, 0.05, 4, 250_000 if shared == 1 else 1_000_000
    scale = calibration.gaussian_scale(l2_squared=rounds, epsilon=epsilon, delta=delta / 2)
    thresholds = [t / 1000 for t in round_thresholds(delta / 2, 2, rounds, scale * 1000, 1000)]
    draw = np.random.default_rng(shared)

    def excess(scale, thresholds):
        laws = []
        for joins in (False, True):
            game = Stopped(shared, joins, scale, thresholds)
            laws.append(
                [np.bincount(game.play(draw, times), minlength=4) / times for _ in range(2)]
            )
        worst = -1.0
        for first, second in (laws, laws[::-1]):
            event = first[0] > math.exp(epsilon) * second[0]
            p, q = first[1][event].sum(), second[1][event].sum()
            slack = 5.4 * (math.sqrt(p / times) + math.exp(epsilon) * math.sqrt(q / times))
            worst = max(worst, p - math.exp(epsilon) * q - slack)
        return worst

    assert excess(scale, thresholds) <= delta
    assert excess(scale / 6, [t / 6 for t in thresholds]) > delta
    assert gaussian_delta(epsilon, math.sqrt(rounds) / scale) <= delta / 2 * (1 + 1e-9)
    assert ROUNDS == 8
