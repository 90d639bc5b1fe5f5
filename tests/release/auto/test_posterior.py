"""Curves drawn from noisy histograms: right where noise is small, spread out where
it is not, the same each time.
"""

import numpy as np
import pytest

from dpframe.engine import NODES
from dpframe.release.auto import MODEL, draw_curves
from dpframe.release.auto.posterior import _MOVES, _Chain
from dpframe.release.auto.size_histograms import quantiles, read_spread

NODE = NODES.astype(float)
SHAPES = {
    "one bin": np.eye(68)[5] * 4000,
    "a hard end": np.where(np.arange(68) < 12, 900.0, 0),
    "a bell": 300 * np.exp(-(((np.arange(68) - 20) / 4) ** 2)),
    "a long tail": 2000 * np.exp(-np.arange(68) / 3),
    "two heaps": np.where(np.isin(np.arange(68), [2, 3, 30, 31]), 700.0, 0),
}


def noisy(counts, scale, seed=0):
    return counts + np.random.default_rng(seed).laplace(0, scale, len(counts))


@pytest.mark.parametrize("name", SHAPES)
def test_where_noise_is_small_the_curves_are_the_counts(name):
    counts = np.rint(SHAPES[name])
    curves = draw_curves(noisy(counts, 0.02), 0.02, 50)
    assert np.abs(curves - counts).max() < 1  # a draw of 50 scales has probability e^-50


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_curves_hold_the_truth_between_them(name, seed):
    """How many units are beyond each node is seldom outside of what the curves
    leave open, widened by a half.
    """
    counts, scale = SHAPES[name], 10.0
    curves = draw_curves(noisy(counts, scale, seed), scale, 200)
    beyond, truth = (np.cumsum(x[..., ::-1], axis=-1)[..., ::-1] for x in (curves, counts))
    low, high = beyond.min(axis=0), beyond.max(axis=0)
    assert (truth >= low / 1.5 - 3 * scale).all()
    assert (truth <= high * 1.5 + 3 * scale).all()
    # Noise far out is not taken for people: of 50 empty nodes it is 700 in sum or so, up or down.
    assert np.median(beyond[:, 45]) < 3 * scale


def test_curves_follow_from_the_counts_alone():
    counts = noisy(SHAPES["a bell"], 10)
    assert np.array_equal(draw_curves(counts, 10, 40), draw_curves(counts, 10, 40))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize(
    "counts", [np.zeros(68), np.full(68, -3.0), np.full(68, 1e9), np.eye(68)[67], np.arange(68.0)]
)
def test_whatever_the_counts_there_are_curves(counts, scale):
    curves = draw_curves(counts, scale, 20)
    assert np.isfinite(curves).all()
    assert (curves >= 0).all()
    spread = read_spread(counts, scale, NODE)
    assert spread.odds.sum() == pytest.approx(1)
    assert np.isfinite(spread.masses).all()
    assert spread.units >= 1


# a sign's powers of two and their ends; twice as many as there are
@pytest.mark.parametrize("nodes", [203, 402])
def test_heaps_far_apart_and_hardly_any_noise(nodes):
    counts = np.zeros(nodes)
    counts[[0, 1, -2, -1]] = 1e6
    curves = draw_curves(counts, 0.05, 20)
    assert np.isfinite(curves).all()
    assert np.abs(curves - counts).max() < 1 or nodes > 203


def test_few_with_many_rows_are_seen_behind_many_with_few():
    counts, scale = np.zeros(len(NODES)), 10.0
    counts[2], counts[19], counts[20] = 2850.0, 96.0, 62.0
    behind = [_behind(read_spread(noisy(counts, scale, seed), scale, NODE)) for seed in range(10)]
    assert 50 < np.median(behind) < 300  # 158; next to none where nobody comes again
    counts[19:21] = 0
    nobody = [_behind(read_spread(noisy(counts, scale, seed), scale, NODE)) for seed in range(10)]
    assert np.median(nobody) < 5  # control: noise is not taken for them


def _behind(spread):
    return float((spread.odds @ spread.masses)[5:].sum())


@pytest.mark.parametrize(
    ("counts", "scale", "again", "once", "node"),
    [
        ([0.0, 30.0, 12.0, 0.0], 8.0, 0.0, 0.0, 2),
        ([0.0, 30.0, 12.0, 0.0], 8.0, 0.3, 0.0, 2),
        ([60.0, 0.0, 0.0, 0.0, 25.0], 4.0, 0.05, 0.0, 2),
        ([60.0, 0.0, 0.0, 0.0, 25.0], 4.0, 0.3, 0.5, 4),
        ([60.0, 0.0, 25.0, 0.0, 0.0], 4.0, 0.3, 0.0, 1),
        ([60.0, 9.0, 0.0, 0.0, 0.0], 8.0, 0.0, 0.5, 1),
    ],
)
def test_draws_are_as_likely_as_the_chain_says(counts, scale, again, once, node):
    """Drawn states at a node in the middle, beside the product of what is known
    before and after it by brute force.
    """
    chain = _Chain.over(np.array(counts), scale, again=again, once=once)
    levels = chain.drawn(20_000)
    exact = _marginal(chain, np.array(counts), scale, (again, once), node)
    drawn = np.bincount(levels[:, node], minlength=len(chain.levels)) / len(levels)
    # of 25 levels, by chance 1e-6
    assert np.abs(drawn - exact).max() < 5.5 * 0.5 / np.sqrt(len(levels))
    assert np.abs(np.roll(drawn, 1) - exact).max() > 0.05  # control: the levels are told apart


def _marginal(chain, counts, scale, likely_ends, node):
    """How likely each level is at a node, given all counts and that there is
    somebody: every path, step by step.
    """
    (again, once), levels, moves = likely_ends, chain.levels, len(_MOVES)
    rungs = len(levels) - 1
    size = rungs * moves + 3  # and nobody yet, nobody for a while, nobody any more
    before, away, after = size - 3, size - 2, size - 1
    step, gone, stays = (
        np.zeros((size, size)),
        np.zeros(size),
        1 - MODEL.curve_end - MODEL.curve_jump,
    )
    step[before, before], step[away, away], step[after, after] = (
        1 - MODEL.curve_begin,
        1 - MODEL.curve_back,
        1,
    )
    gone[[away, after]] = again, 1 - again
    high = levels >= max(MODEL.back_scales * scale, MODEL.back_units)
    fresh = (
        np.exp(-np.abs(_MOVES) / MODEL.curve_new) / np.exp(-np.abs(_MOVES) / MODEL.curve_new).sum()
    )
    for level in range(1, rungs + 1):
        for new in range(moves):
            to = (level - 1) * moves + new
            step[before, to] = MODEL.curve_begin * fresh[new] / rungs
            step[away, to] = MODEL.curve_back * fresh[new] * high[level] / high.sum()
        for move in range(moves):
            at = (level - 1) * moves + move
            bend = np.exp(-np.abs(_MOVES - _MOVES[move]) / MODEL.curve_bend)
            step[at, :before] += MODEL.curve_jump * np.tile(fresh / rungs, rungs)
            step[at] += MODEL.curve_end * gone
            for new, moved in enumerate(stays * bend / bend.sum()):
                to = level + _MOVES[new]
                step[at] += moved * (
                    np.eye(size)[(to - 1) * moves + new] if 1 <= to <= rungs else gone
                )
    assert np.allclose(step.sum(axis=1), 1)
    assert np.allclose(step, chain.step)
    wide = np.sqrt(scale**2 + (levels + (MODEL.curve_rough * levels) ** 2) / 2)
    of_levels = np.exp(-np.abs(counts[:, None] - levels) / wide) / wide
    likely = np.column_stack([np.repeat(of_levels[:, 1:], moves, axis=1), *[of_levels[:, 0]] * 3])
    first = step.copy()  # a curve at the first node ends with probability `once` at least
    for at in range(before):
        ends = step[at, before:].sum()
        first[at, :before] *= (1 - max(ends, once)) / (1 - ends)
        first[at, before:] *= max(ends, once) / ends
    steps = [step, first, *[step] * (len(counts) - 2)]
    state, ahead = np.eye(size)[before], []
    for one, weights in zip(steps, likely, strict=True):
        state = state @ one * weights
        ahead.append(state)
    behind = np.ones(size)
    behind[before] = 0  # there is somebody
    for one, weights in zip(steps[:node:-1], likely[:node:-1], strict=True):
        behind = one @ (weights * behind)
    both = ahead[node] * behind / (ahead[node] @ behind)
    return np.concatenate([[both[before:].sum()], both[:before].reshape(rungs, moves).sum(axis=1)])


def test_a_spread_orders_its_cases():
    counts, scale = SHAPES["a bell"], 10.0
    spread = read_spread(noisy(counts, scale), scale, NODE)
    # noise of 68 bins has a deviation of 12 scales
    assert spread.units == pytest.approx(counts.sum(), abs=20 * scale)
    assert (np.diff(spread.masses @ NODE) >= 0).all()  # from few rows to many
    assert quantiles(counts, NODE, np.array([0.5]))[0] == NODE[20]
