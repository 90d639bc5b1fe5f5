"""Rounds: how far one unit moves the scores of a choice, and that the
settings keep the model small.
"""

from fractions import Fraction

import numpy as np
import pytest

from dpframe.release.kinds.synthesis.model import tree_cells
from dpframe.release.kinds.synthesis.rounds import (
    Exact,
    RoundSettings,
    _choose,
    _Purse,
    measured_and_fitted,
)
from dpframe.release.pricing import Exponential


class Even:
    """A model that expects ten rows in each cell of any table."""

    rows = 40.0
    settings = RoundSettings()

    def table(self, part):
        return np.full((2, 2), 0.25)

    def doubt(self, part):
        return 0.0


def choice(tables, weights, unit, monkeypatch):
    """The scores of a choice, its rate, and what it cost."""
    seen = []
    monkeypatch.setattr(
        Exponential,
        "choose",
        lambda self, scores, rate: seen.append((scores, rate)) or np.array([0]),
    )
    purse = _Purse(Fraction(1))
    exact = Exact(lambda part: tables[part], 0, unit, unit**2)
    _choose(exact, list(tables), weights, Even(), Fraction(1, 2), purse)
    ((scores, rate),) = seen
    return scores[0].astype(object), rate, 1 - purse.left


@pytest.mark.parametrize("weight", [1, 3, 8])
def test_one_unit_moves_scores_within_the_range_that_is_paid(weight, monkeypatch):
    """Its three rows leave a cell that has too many, in one table, and
    one that has too few, in another.
    """
    parts, weights, unit = [(0, 1), (0, 2), (1, 2)], {(0, 1): weight, (0, 2): weight, (1, 2): 1}, 3
    here = {part: np.array([[20, 20], [5, 5]]) for part in parts}
    there = {part: table.copy() for part, table in here.items()}
    there[0, 1][0, 0] -= unit
    there[0, 2][1, 1] -= unit
    there[1, 2][0, 1] -= unit
    (one, rate, cost), (other, same_rate, same_cost) = (
        choice(tables, weights, unit, monkeypatch) for tables in (here, there)
    )
    moved = one - other
    assert (rate, cost) == (same_rate, same_cost)
    assert (rate * (max(moved) - min(moved))) ** 2 / 8 == cost, "all that is paid for, and no more"


def test_scores_beyond_the_largest_integers_are_cut_and_not_wrapped(monkeypatch):
    tables = {(0, 1): np.full((2, 2), 2**59), (0, 2): np.zeros((2, 2), np.int64)}
    scores, _, _ = choice(tables, {(0, 1): 8, (0, 2): 8}, 1, monkeypatch)
    assert scores[0] > scores[1]
    assert scores[0] == 2**61


def test_models_stay_within_their_cells():
    draw, sizes = np.random.default_rng(1), (6, 5, 7, 6, 5, 6)
    codes = np.stack([draw.integers(0, size, 4000) for size in sizes], axis=1)
    codes[:, 1:4] = (codes[:, :1] + draw.integers(0, 2, (4000, 3))) % 5

    def read(part):
        table = np.zeros([sizes[i] for i in part], np.int64)
        np.add.at(table, tuple(codes[:, i] for i in part), 1)
        return table

    settings = RoundSettings(cells=2000)
    parts = {(i, j): 2 for i in range(6) for j in range(i)}
    parts = {tuple(sorted(part)): weight for part, weight in parts.items()}
    measured, fit = measured_and_fitted(
        Exact(read, 0, 1, 1), sizes, parts, Fraction(50), draw, settings
    )
    assert len(measured) > 12
    assert tree_cells([one.part for one in measured], sizes) <= 2000
    assert sum(table.size for table in fit.beliefs.tables) <= 2000


def test_named_tables_are_measured_before_any_is_chosen_as_far_as_the_model_allows():
    """The two columns of each are independent, so that no choice would take them.
    All costs stay within the price.
    """
    draw, sizes, rho = np.random.default_rng(1), (4, 4, 4, 4, 5), Fraction(1, 1000)
    codes = np.stack([draw.integers(0, size, 500) for size in sizes], axis=1)

    def read(part):
        table = np.zeros([sizes[i] for i in part], np.int64)
        np.add.at(table, tuple(codes[:, i] for i in part), 1)
        return table

    named, large = [(0, 1), (2, 4)], (0, 1, 2, 3)
    weights = dict.fromkeys([*named, large], 1)
    exact = Exact(read, 0, 3, 9)
    measured, _ = measured_and_fitted(
        exact,
        sizes,
        weights,
        rho,
        draw,
        RoundSettings(cells=200),
        named=[named[0], large, named[1]],
    )
    assert [one.part for one in measured[5:7]] == named
    assert large not in [one.part for one in measured]
    each = [Fraction(exact.l2_squared) / (2 * Fraction(one.deviation) ** 2) for one in measured]
    assert each[5] == each[6]
    assert abs(each[5] / rho - Fraction(3, 4) / 2 / 3) < Fraction(1, 10**6)
    assert sum(each) <= rho


@pytest.mark.parametrize(("rows", "share"), [(300, Fraction(7, 10)), (60_000, Fraction(1, 4))])
def test_small_data_pay_more_for_single_columns_and_never_more_than_the_price(rows, share):
    draw, sizes, rho = np.random.default_rng(1), (4, 4, 4, 4), Fraction(1, 500)
    codes = np.stack([draw.integers(0, size, rows) for size in sizes], axis=1)

    def read(part):
        table = np.zeros([sizes[i] for i in part], np.int64)
        np.add.at(table, tuple(codes[:, i] for i in part), 1)
        return table

    weights = {(i, j): 1 for j in range(4) for i in range(j)}
    measured, _ = measured_and_fitted(Exact(read, 0, 1, 1), sizes, weights, rho, draw)
    each = [1 / (2 * Fraction(one.deviation) ** 2) for one in measured]
    alone = sum(cost for one, cost in zip(measured, each, strict=True) if len(one.part) == 1)
    assert abs(alone / rho - share) < Fraction(1, 10**6)
    assert sum(each) <= rho
