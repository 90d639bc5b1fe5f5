"""The model of noisy tables: without noise it is the law of largest entropy, and
noisy tables agree after the fit.
"""

from itertools import combinations

import numpy as np
import pytest

from dpframe.release.kinds.synthesis.fit import MeasuredTable, agreed, fitted, together
from dpframe.release.kinds.synthesis.model import drawn_rows, summed

SIZES = (2, 3, 4, 3)


def joint(seed=1):
    values = np.random.default_rng(seed).gamma(0.8, size=SIZES)
    return values / values.sum()


def tables(parts, rows=10_000.0, deviation=1.0, noise=0.0):
    draw, law = np.random.default_rng(7), joint()
    exact = {part: rows * summed(law, tuple(range(len(SIZES))), part) for part in parts}
    return [
        MeasuredTable(p, t + noise * draw.normal(size=t.shape), deviation) for p, t in exact.items()
    ]


def closed_form(parts):
    """The law of largest entropy with these tables, by scaling a whole table again and again."""
    law, values = joint(), np.full(SIZES, 1 / np.prod(SIZES))
    for _ in range(400):
        for part in parts:
            away = tuple(i for i in range(len(SIZES)) if i not in part)
            values = (
                values * law.sum(axis=away, keepdims=True) / values.sum(axis=away, keepdims=True)
            )
    return values


@pytest.mark.parametrize(
    "parts",
    [[(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (0, 2), (3,)], [(0, 1, 2), (2, 3), (1, 3)]],
    ids=str,
)
def test_without_noise_the_model_is_the_law_of_largest_entropy(parts):
    fit = fitted(SIZES, tables(parts), 400)
    expected = closed_form(parts)
    for clique, table in zip(fit.beliefs.tree.cliques, fit.beliefs.tables, strict=True):
        assert np.abs(table - summed(expected, (0, 1, 2, 3), clique)).sum() < 0.02
    assert fit.rows == pytest.approx(10_000)


def test_cliques_agree_on_what_they_share():
    fit = fitted(SIZES, tables([(0, 1), (1, 2), (2, 3)], noise=30), 5)
    for i, (parent, separator) in enumerate(
        zip(fit.beliefs.tree.parents, fit.beliefs.tree.separators, strict=True)
    ):
        if parent >= 0:
            here = summed(fit.beliefs.tables[i], fit.beliefs.tree.cliques[i], separator)
            there = summed(fit.beliefs.tables[parent], fit.beliefs.tree.cliques[parent], separator)
            assert np.allclose(here, there, atol=1e-12)


def test_noisy_tables_agree_and_are_never_negative():
    made = agreed(tables([(0, 1), (1, 2), (0, 2), (3,)], deviation=5.0, noise=5.0), SIZES)
    assert all(values.min() > 0 for values in made.values())
    for one, other in combinations(made, 2):
        shared = tuple(sorted(set(one) & set(other)))
        apart = summed(made[one], one, shared) - summed(made[other], other, shared)
        assert np.abs(apart).sum() < 0.01 * 10_000


def test_agreed_tables_are_nearer_to_the_truth_than_each_alone():
    parts = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)]
    noisy, exact = (
        tables(parts, deviation=40.0, noise=40.0),
        {one.part: one.values for one in tables(parts)},
    )
    made = agreed(noisy, SIZES)
    before = sum(((one.values - exact[one.part]) ** 2).sum() for one in noisy)
    after = sum(((made[part] - exact[part]) ** 2).sum() for part in parts)
    assert after < 0.8 * before


def test_two_tables_of_the_same_columns_are_one_by_their_precision():
    (one,) = together(
        [
            MeasuredTable((0,), np.array([0.0, 0.0]), 1.0),
            MeasuredTable((0,), np.array([5.0, 10.0]), 2.0),
        ]
    )
    assert np.allclose(one.values, [1.0, 2.0])
    assert one.deviation == pytest.approx((1 + 1 / 4) ** -0.5)


@pytest.mark.parametrize("seed", range(10))
def test_tables_that_cannot_be_met_together_leave_probabilities(seed):
    draw = np.random.default_rng(seed)
    parts = [*combinations(range(4), 2), (0, 1, 2)]
    wild = [MeasuredTable(p, 1000 * draw.normal(size=[SIZES[i] for i in p]), 3.0) for p in parts]
    fit = fitted(SIZES, wild, 30)
    for table in fit.beliefs.tables:
        assert np.isfinite(table).all()
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)


@pytest.mark.parametrize("given", [{0: 1}, {3: 0}, {1: 1, 3: 1}, {0: 0, 1: 1, 2: 0, 3: 1}])
def test_rows_with_a_given_key_have_the_conditional_distribution(given):
    parts = [(0, 1), (1, 2), (2, 3)]
    fit, model = fitted(SIZES, tables(parts), 200), closed_form(parts)
    held = np.zeros_like(model)
    cells = tuple(given.get(i, slice(None)) for i in range(len(SIZES)))
    held[cells] = model[cells]
    codes = drawn_rows(fit.beliefs.given(given), 20_000, np.random.default_rng(3))
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(codes.T), 1)
    assert np.abs(counts / len(codes) - held / held.sum()).sum() < 0.05


def test_rows_are_nearer_to_the_model_than_independent_ones():
    parts = [(0, 1), (1, 2), (2, 3)]
    fit = fitted(SIZES, tables(parts), 50)
    model = closed_form(parts)

    def off(evenly):
        codes = drawn_rows(fit.beliefs, 4000, np.random.default_rng(3), evenly=evenly)
        counts = np.zeros(SIZES)
        np.add.at(counts, tuple(codes.T), 1)
        return np.abs(counts / len(codes) - model).sum()

    assert off(evenly=True) < 0.7 * off(evenly=False)
    assert drawn_rows(fit.beliefs, 0, np.random.default_rng(3)).shape == (0, 4)


def pair(strength, deviation, seed):
    """Noisy tables of two columns, alone and together: 1,000 rows, of which a part is alike."""
    draw = np.random.default_rng(seed)
    one, other = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.2, 0.1, 0.1])
    law = (1 - strength) * np.outer(one, other)
    law[0, 0] += strength
    exact = {(0,): law.sum(axis=1), (1,): law.sum(axis=0), (0, 1): law}
    noisy = [
        MeasuredTable(part, 1000 * t + deviation[len(part)] * draw.normal(size=t.shape), d)
        for part, t in exact.items()
        for d in [deviation[len(part)]]
    ]
    return noisy, 1000 * law


def test_what_noise_may_have_made_of_two_columns_leaves_them_independent():
    """On average over 50 tables. Kept as it is, noise would be 12 · 40 · 0.8 = 380 rows in L1."""
    off = []
    for seed in range(50):
        noisy, exact = pair(0.0, {1: 3.0, 2: 40.0}, seed)
        off.append(np.abs(agreed(noisy, (3, 4))[0, 1] - exact).sum())
    assert np.mean(off) < 110


def test_what_is_clear_of_two_columns_is_kept():
    noisy, exact = pair(0.4, {1: 3.0, 2: 3.0}, 1)
    assert np.abs(agreed(noisy, (3, 4))[0, 1] - exact).sum() < 12 * 3


def test_a_very_noisy_table_does_not_move_the_columns_that_it_has():
    """Its negative cells become 0, which adds to the others. It weighs as little as it knows."""
    noisy, exact = pair(0.0, {1: 2.0, 2: 500.0}, 2)
    made = agreed(noisy, (3, 4))[0, 1]
    assert np.abs(made.sum(axis=1) - exact.sum(axis=1)).sum() < 15
    assert np.abs(made.sum(axis=0) - exact.sum(axis=0)).sum() < 15
