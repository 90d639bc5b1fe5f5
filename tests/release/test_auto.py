"""Limits chosen inside the release: what it costs, what it reads, how good it is, what one unit can move."""

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.engine import EDGES


def panel(seed, units=2000, groups=10):
    draw = np.random.default_rng(seed)
    rows = np.ceil(draw.lognormal(2.0, 1.2, units)).astype(int)
    ids = np.repeat(np.arange(units), rows)
    return pl.DataFrame({"id": ids, "g": draw.integers(0, groups, len(ids)), "x": draw.uniform(1, 5, len(ids))})


@pytest.fixture(scope="module")
def table():
    return panel(1)


def protect(table, epsilon=1e6, **options):
    return dp.protect(table, unit="id", budget=dp.Budget(epsilon=epsilon, delta=0.9), **options)


def error(frame, truth, **limits):
    query = frame.group_by("g", keys=list(range(10)), **limits).count()
    squares = [np.mean((query.release(epsilon=1).table["count"].to_numpy() - truth) ** 2) for _ in range(15)]
    return float(np.sqrt(np.mean(squares)))


def test_chosen_limits_are_nearly_as_good_as_the_best_in_hindsight(table):
    frame, truth = protect(table), table.group_by("g").len().sort("g")["len"].to_numpy()
    best = min(error(frame, truth, max_rows=k) for k in (4, 8, 16, 32, 64, 128, 256))
    chosen = error(frame, truth, limits=dp.Auto())
    assert chosen < 2 * best  # about 1.1; twice as much would take a choice four times too high or too low
    assert chosen < error(frame, truth, max_groups=3, max_rows_per_group=2) / 3


def test_everything_asked_for_is_paid_once_and_no_more(table):
    frame = protect(table, epsilon=1.0)
    out = frame.group_by("g", keys=[0, 1], limits=dp.Auto(share=0.25)).agg(n=dp.count()).release(epsilon=1.0)
    assert out.cost.epsilon == 1.0
    assert frame.budget.remaining.epsilon == 0
    (row,) = out.noise.rows()
    bound = out.derivation.measures[0]
    assert row[3] == pytest.approx(float(bound[4]) / 0.75)  # the answer has what the choice left
    assert "enforced here" in out.derivation.steps[-1][1]


def test_a_choice_that_was_made_is_the_most_there_can_be(table):
    frame = protect(table)
    q = frame.group_by("g", keys=[0, 1, 2], max_rows=3, limits=dp.Auto()).count()
    assert float(q.release(epsilon=5).derivation.measures[0][4]) <= 3
    q = frame.bound(limits=dp.Auto()).sum("x", bounds=(1, 5))
    assert q.release(epsilon=5).value > 0


def test_thresholded_keys_and_means_too(table):
    q = protect(table).group_by("g", limits=dp.Auto()).agg(n=dp.count(), m=dp.mean("x", bounds=(1, 5)))
    out = q.release(epsilon=3, delta=1e-6).table
    assert out["g"].to_list() == list(range(10))
    assert out["m"].to_list() == pytest.approx([3.0] * 10, abs=0.5)


@pytest.mark.parametrize("unit", range(6))
def test_one_unit_moves_one_bucket_of_each_histogram(unit):
    draw = np.random.default_rng(unit)
    table = pl.DataFrame({"id": draw.integers(0, 6, 80), "g": draw.integers(0, 5, 80)})
    asks = [
        dp.protect(t, unit="id").group_by("g", keys=[0, 1, 2], limits=dp.Auto()).count()._ask
        for t in (table, table.filter(pl.col("id") != unit))
    ]
    whole, less = (engine.profile(ask) for ask in asks)
    for name in ("rows", "groups", "rows_per_group"):
        moved = getattr(whole, name) - getattr(less, name)
        assert np.abs(moved).sum() <= 1
        assert len(moved) == len(EDGES)
    listed = table.filter(pl.col("g") < 3)
    sizes = listed.group_by("id").len()["len"].to_numpy()
    assert whole.rows.tolist() == np.bincount(np.ceil(np.log2(sizes)).astype(int), minlength=len(EDGES)).tolist()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_it_never_fails_on_data(rows):
    frame = protect(
        pl.DataFrame({"id": [1] * rows, "g": [0] * rows, "x": [1.0] * rows}, schema={"id": int, "g": int, "x": float})
    )
    for query in (
        frame.group_by("g", keys=[0, 1], limits=dp.Auto()).count(),
        frame.group_by("g", limits=dp.Auto()).mean("x", bounds=(0, 1)),
        frame.bound(limits=dp.Auto()).median("x", bounds=(0, 1)),
    ):
        query.release(epsilon=0.01, delta=1e-9)


def test_before_the_release_limits_are_not_known(table):
    query = protect(table).group_by("g", keys=[0], limits=dp.Auto()).count()
    assert "chosen privately" in str(query.explain())
    for ask in (lambda: query.sensitivity, lambda: query.accuracy(epsilon=1), lambda: query.epsilon_for(1.0)):
        with pytest.raises(errors.UnsupportedOperation, match=r"dp\.Auto"):
            ask()


@pytest.mark.parametrize("bad", [0, 1, -1, "x", None, True, 2])
def test_a_share_is_a_part(bad):
    with pytest.raises(errors.InvalidArgument):
        dp.Auto(share=bad)


def test_where_nobody_can_be_told_apart_nothing_can_be_chosen(table):
    with pytest.raises(errors.UnsupportedOperation, match=r"dp\.Rows"):
        dp.protect(table, unit=dp.Rows(1)).group_by("g", keys=[0], limits=dp.Auto()).count()
    with pytest.raises(errors.InvalidArgument, match="limits="):
        protect(table).group_by("g", keys=[0], limits=3)


def test_a_named_release_keeps_the_limits_it_chose(table, tmp_path):
    def ask():
        budget = dp.Ledger(tmp_path / "study.sqlite").budget("auto", epsilon=2.0)
        frame = dp.protect(table, unit="id", budget=budget)
        return frame.group_by("g", keys=[0, 1], limits=dp.Auto()).count().release(epsilon=1.0, name="by g"), budget

    (first, _), (again, budget) = ask(), ask()
    assert first.table.equals(again.table)
    assert first.derivation.measures == again.derivation.measures
    assert budget.spent.epsilon == 1.0
