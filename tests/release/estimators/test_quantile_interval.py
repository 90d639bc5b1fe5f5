"""Intervals of quantiles that are paid for: they hold whatever the
values are, and cost what is said.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import BudgetExceeded, InvalidArgument, ReleaseMismatch, UnsupportedOperation
from dpframe.plan import Bounds, Candidates
from dpframe.release.answer.selection import rank_scores, reach_scores
from dpframe.theory.formulas.error import distances, margin
from dpframe.theory.formulas.loss import rank_terms, reach_change
from inside import numbers_of
from places import place_counts
from tiers import in_turn

GROUPS, ROWS = 1000, 100
U = (np.arange(ROWS) + 0.5) / ROWS
SHAPES = {
    "even": 100 * U,
    "bell": np.clip(50 + 8 * np.log(U / (1 - U)), 0, 100),
    "gap": np.concatenate([40 * U[: ROWS // 2], 100 - 40 * U[: ROWS // 2]]),
    "cliff": np.concatenate([np.full(ROWS // 2, 3.0), np.full(ROWS // 2, 97.0)]),
    "atoms": np.repeat([0.0, 50.0, 100.0, 50.0], ROWS // 4),
    "one": np.full(ROWS, 37.125),
    "heavy": 100 * U**8,
}


def protect(rows, budget=None):
    return dp.protect(
        pl.DataFrame(rows), unit="id", budget=budget or dp.Budget(epsilon=1e9, delta=0.5)
    )


def many(x):
    """The same values in each of many groups."""
    rows = {
        "id": range(GROUPS * ROWS),
        "g": np.repeat(np.arange(GROUPS), ROWS),
        "x": np.tile(x, GROUPS),
    }
    return protect(rows).group_by("g", keys=list(range(GROUPS)), max_groups=1, max_rows_per_group=1)


def missed(table, x, q):
    """How often a true quantile, by any of the usual rules, is outside of its interval."""
    ends = [np.quantile(x, q, method=rule) for rule in ("inverted_cdf", "linear", "higher")]
    low, high = table["x_low"].to_numpy(), table["x_high"].to_numpy()
    return np.mean((low > min(ends) + 1e-9) | (high < max(ends) - 1e-9))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("shape", "q", "epsilon"), in_turn(SHAPES, [0.05, 0.5, 0.75], [0.05, 2.0]))
def test_intervals_hold_whatever_the_values_are(shape, q, epsilon):
    """False alarms: below 1e-6, as the number that are missed is at most binomial with 0.1."""
    x = SHAPES[shape]
    table = many(x).quantile("x", q, (0, 100)).release(epsilon=epsilon, ci=0.9).table
    assert table.columns == ["g", "x", "x_low", "x_high"]
    assert missed(table, x, q) <= 0.1 + 5.5 * math.sqrt(0.1 * 0.9 / GROUPS)
    assert (table["x_low"] <= table["x"]).all()
    assert (table["x"] <= table["x_high"]).all()
    assert table["x_low"].min() >= 0
    assert table["x_high"].max() <= 100


def test_what_is_expected_of_even_values_does_not_hold_in_a_gap():
    """The negative control: the interval that is not paid for.
    And the one that is paid for is nearly tight there.
    """
    asked, x = many(SHAPES["cliff"]).quantile("x", 0.5, (0, 100)), SHAPES["cliff"]
    likely = asked.release(epsilon=2).accuracy(alpha=0.1, assume_rows=ROWS)
    assert missed(likely.rename({"lower": "x_low", "upper": "x_high"}), x, 0.5) > 0.5
    # 0.055; below with probability 1e-9
    assert missed(asked.release(epsilon=2, ci=0.9).table, x, 0.5) > 0.015


@pytest.mark.parametrize("rule", ["linear", "nearest", "higher", "lower"])
def test_they_hold_for_the_rules_that_read_between_two_rows(rule):
    """With 11 rows pandas' first quartile is at the place 3.5, and here there is nothing.
    False alarms: below 1e-6.
    """
    x = np.array([0.0] * 3 + [100.0] * 8)
    rows = {
        "id": range(11 * GROUPS),
        "g": np.repeat(np.arange(GROUPS), 11),
        "x": np.tile(x, GROUPS),
    }
    grouped = protect(rows).group_by(
        "g", keys=list(range(GROUPS)), max_groups=1, max_rows_per_group=1
    )
    true = np.quantile(x, 0.25, method=rule)
    for epsilon in (2, 40):
        table = grouped.quantile("x", 0.25, (0, 100)).release(epsilon=epsilon, ci=0.9).table
        wrong = ((table["x_low"] > true) | (table["x_high"] < true)).mean()
        assert wrong <= 0.1 + 5.5 * math.sqrt(0.1 * 0.9 / GROUPS)


def test_they_are_narrow_where_values_are_many():
    found = {
        name: many(x).median("x", (0, 100)).release(epsilon=20, ci=0.95).table
        for name, x in SHAPES.items()
    }
    wide = {name: (table["x_high"] - table["x_low"]).median() for name, table in found.items()}
    assert wide["one"] < 0.2
    assert wide["atoms"] < 0.2
    assert wide["even"] < 5
    assert wide["cliff"] > 50


def test_a_side_that_ends_at_a_bound_needs_no_rows():
    """Of 100 rows 5 are below, fewer than the margin; there is nothing beyond 0."""
    table = many(20 * U).quantile("x", 0.05, (0, 100)).release(epsilon=2, ci=0.95).table
    assert (table["x_high"] - table["x_low"]).median() < 20


# The scores


def held(rank, counts, needed=3):
    """The scores of all distances from each place."""
    measure = type("M", (), {"rank": rank, "fraction": 0})()
    places = np.arange(len(counts))
    return reach_scores(measure, place_counts(np.tile(counts, (len(counts), 1))), places, needed)


@pytest.mark.parametrize(
    "rank", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 10**6)]
)
def test_one_row_moves_a_score_by_no_more_than_claimed_and_by_that_much(rank):
    change = reach_change(rank)
    seen = 0
    for counts in itertools.product(range(4), repeat=4):
        base = held(rank, counts)
        for place in range(4):
            more = np.array(counts) + (np.arange(4) == place)
            seen = max(seen, int(np.abs(held(rank, more) - base).max()))
    assert seen == change


@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_too_short_a_distance_is_worse_by_the_margin_and_one_is_best(rank):
    a, b = rank.as_integer_ratio()
    steps = np.array(distances(5))
    for counts in itertools.product(range(3), repeat=5):
        if not any(counts):
            continue
        total, upto = sum(counts), np.cumsum(counts)
        below = upto - np.array(counts)
        true = [v for v in range(5) if b * upto[v] >= a * total and b * below[v] <= a * total]
        for needed in (1, 4, 50):
            scores = held(rank, counts, needed)
            assert (scores.max(axis=1) == 0).all()
            for place, step in itertools.product(range(5), range(len(steps))):
                if any(abs(v - place) > steps[step] for v in true):
                    assert scores[place, step] <= -needed


def test_scores_do_not_wrap_however_many_rows():
    for needed in (3, 2**61):
        assert (held(Fraction(999, 1000), [2**60, 2**60, 2**60], needed) <= 0).all()


@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(333, 1000), Fraction(999_999, 10**6)])
def test_a_row_moves_a_score_by_no_more_among_very_many(rank):
    """A billion rows of a group and more, with their fraction bits:
    the scores are beyond 64 bits.
    """
    measure = type("M", (), {"rank": rank, "fraction": 20})()
    change, whole = rank_terms(rank)
    for size in (2**59 // whole, 2**60 // whole, 2**62 // whole):
        base = np.array([[size // 2, size // 2, size]])
        for place in range(3):
            more = base + (np.arange(3) == place) * 2**20
            choice, reach = (
                np.abs(one - other).max()
                for one, other in (
                    [rank_scores(measure, rows, Fraction(1, 10**9)) for rows in (base, more)],
                    [
                        reach_scores(measure, place_counts(rows), np.array([1]), 1000)
                        for rows in (base, more)
                    ],
                )
            )
            assert choice <= change * 2**20
            assert reach <= reach_change(rank) * 2**20


@pytest.mark.parametrize("count", [1, 2, 3, 17, 1024])
def test_distances_go_from_none_to_all_and_hardly_leave_any_out(count):
    found = distances(count)
    assert found[0] == 0
    assert found[-1] == count - 1
    assert all(b <= max(a + 1, 1.5 * a) for a, b in itertools.pairwise(found))
    assert sorted(set(found)) == list(found)


def test_the_margin_is_that_of_the_worst_scores():
    """All but one too short, each by the margin: by chance one of them is taken
    a little less often than alpha.
    """
    for number, alpha in ((2, 0.05), (23, 0.05), (23, 0.3)):
        p = math.exp(-margin(number, alpha))
        u = (np.arange(200_000) + 0.5) / 200_000
        # see `choice_chances`: of the best, with no gap
        wrong = 1 - np.mean((1 - p * u) ** (number - 1))
        assert 0.8 * alpha < wrong <= alpha * (1 + 1e-9)


# What is read as a candidate


@pytest.mark.parametrize(
    ("low", "high", "whole"),
    [
        (0.0, 100.0, False),
        (-3.0, 7.0, True),
        (0, 1500, True),
        (0, 10**6, True),
        (1e15, 1e15 + 1, False),
        (2**62, 2**62 + 1000, True),
    ],
)
def test_a_value_is_between_the_ends_of_the_candidate_it_is_read_as(low, high, whole):
    between = Candidates.between(Bounds(low, high), whole=whole)
    draw = np.random.default_rng(1)
    x = np.concatenate(
        [
            draw.uniform(low, high, 2000),
            [low, high],
            low + (np.arange(1023) + 0.5) * (high - low) / 1023,
        ]
    )
    x = np.clip(np.rint(x) if whole else x, low, high)
    place = np.array([between.nearest(value) for value in x.tolist()])
    first, last = between.around(place, place)
    assert (first <= x).all()
    assert (x <= last).all()
    assert (last - first).max() <= 1.1 * float(between.step) + 4 * math.ulp(high)


def test_whole_numbers_are_between_whole_ends_that_may_be_them():
    """Of 0 to 10 million every fifth is a candidate: 8 to 12 are read as 10, and no other."""
    rows = {"id": range(500), "x": [8] * 500}
    out = protect(rows).median("x", (0, 10**7), max_rows=1).release(epsilon=1e4, ci=0.95)
    assert out.table.row(0) == (10, 8, 12)


# What it costs


PANEL = {
    "id": [i // 4 for i in range(400)],
    "g": ["a", "b"] * 200,
    "x": [float(i % 50) for i in range(400)],
}


def asked(budget=None, **options):
    options.setdefault("keys", ["a", "b"])
    return protect(PANEL, budget).group_by("g", max_groups=2, max_rows_per_group=2, **options)


@pytest.mark.filterwarnings("ignore:With .* rows in a group")  # 200 are few here
def test_a_quantile_pays_for_its_interval_and_nothing_else_does():
    budget = dp.Budget(epsilon=1.0)
    query = asked(budget).agg(n=dp.count(), m=dp.median("x", (0, 50)), low=dp.min("x", (0, 50)))
    with pytest.raises(BudgetExceeded):
        query.release(epsilon=1.01, ci=0.95)
    plain, sure = (query.accuracy(epsilon=1.0, assume_rows=200, ci=ci) for ci in (None, 0.95))
    assert sure["scale"].to_list() == [
        s * k for s, k in zip(plain["scale"], (1, 2, 1), strict=True)
    ]
    out = query.release(epsilon=1.0, ci=0.95)
    assert out.cost.epsilon == 1.0
    assert budget.remaining.epsilon == 0.0
    assert out.noise["scale"].to_list() == sure["scale"].to_list()
    assert "a distance that reaches the true one (ci=0.95)" in out.report()
    assert (out.table["low_low"] == 0).all()
    assert (out.table["low_high"] == 50).all()


def test_both_choices_together_cost_the_part_of_the_price():
    """Scores of both move by at most `rank_terms` for each row:
    2 · rate · change · l1, twice, is ε.
    """
    query = asked().median("x", (0, 50))
    out = query.release(epsilon=1.0, ci=0.95)
    (drawn,) = numbers_of(out).noise.noises
    change, per_row = rank_terms(Fraction(1, 2))
    rate = 1 / (Fraction(drawn.scale) * per_row)
    one = 2 * rate * change * drawn.allotment.total.sensitivity.exact_l1
    assert 0.999999 < 2 * one <= 1


def test_in_rho_it_is_two_choices():
    budget = dp.Budget(rho=0.5)
    query = protect(PANEL, budget).median("x", (0, 50), max_rows=4)
    plain, sure = query.release(rho=0.2), query.release(rho=0.2, ci=0.95)
    ratio = sure.noise["scale"].item() / plain.noise["scale"].item()
    assert 1.4 < ratio < 1.5  # ρ of small choices is as ε²: two of them have √2 more noise than one
    assert budget.remaining.rho == pytest.approx(0.1)
    assert sure.table.columns == ["x", "x_low", "x_high"]


@pytest.mark.parametrize("accountant", ["basic", "pld"])
def test_a_batch_has_intervals_too(accountant):
    if accountant == "pld":
        pytest.importorskip("dp_accounting")
    budget = dp.Budget(epsilon=2.0, delta=1e-6, accountant=accountant)
    frame = asked(budget)
    batch = budget.plan(
        [frame.median("x", (0, 50)), frame.count()], epsilon=1.0, delta=1e-6, ci=0.9
    )
    median, count = batch.release()
    assert median.table.columns == ["g", "x", "x_low", "x_high"]
    assert count.table.columns[1:] == ["count", "count_low", "count_high"]
    with pytest.raises(InvalidArgument, match="ci="):
        budget.plan([frame.count()], epsilon=0.5, ci=95)


# What one sees


def test_without_its_price_there_is_no_interval_beside_a_quantile():
    out = asked().agg(n=dp.count(), m=dp.median("x", (0, 50))).release(epsilon=1)
    with pytest.raises(UnsupportedOperation, match=r"'m'.*release\(\.\.\., ci=0\.95\)"):
        out.with_ci(0.95)
    assert out.accuracy().height == 4
    sure = asked().agg(n=dp.count(), m=dp.median("x", (0, 50))).release(epsilon=1, ci=0.9)
    assert sure.with_ci(0.5).table["m_low"].equals(sure.table["m_low"])
    with pytest.raises(UnsupportedOperation, match=r"'m'.*and was at ci=0\.9: .*ci=0\.99"):
        sure.with_ci(0.99)


def test_accuracy_shows_what_was_paid_for():
    out = asked().agg(m=dp.median("x", (0, 50))).release(epsilon=1, ci=0.95)
    for alpha in (0.05, 0.2):
        stated = out.accuracy(alpha)
        assert stated["lower"].to_list() == out.table["m_low"].to_list()
        assert stated["upper"].to_list() == out.table["m_high"].to_list()
    beyond = out.accuracy(0.01)
    assert beyond["lower"].to_list() == [0.0, 0.0]


def test_a_higher_confidence_than_was_paid_for_has_no_narrower_interval():
    out = many(SHAPES["cliff"]).agg(m=dp.median("x", (0, 100))).release(epsilon=20, ci=0.9)
    paid, likely = (out.accuracy(alpha, assume_rows=10**6) for alpha in (0.1, 0.05))
    assert (likely["lower"] <= paid["lower"]).all()
    assert (likely["upper"] >= paid["upper"]).all()
    assert likely["error"].median() > 10


def test_a_name_stands_for_the_interval_too(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("medians", epsilon=2.0)
    query = asked(budget).median("x", (0, 50))
    first = query.release(epsilon=1.0, ci=0.95, name="medians")
    again = query.release(epsilon=1.0, ci=0.95, name="medians")
    assert again.table.equals(first.table)
    assert budget.remaining.epsilon == 1.0
    with pytest.raises(ReleaseMismatch, match="ci"):
        query.release(epsilon=1.0, name="medians")
    count = asked(budget).count()
    assert count.release(epsilon=0.5, name="counts").table.equals(
        count.release(epsilon=0.5, name="counts", ci=0.9).table.drop("count_low", "count_high")
    )


@pytest.mark.usefixtures("same_noise")
def test_times_and_whole_numbers_keep_their_type():
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 300) for i in range(400)]
    rows = pd.DataFrame({"id": range(400), "day": days, "k": [i % 9 for i in range(400)]})
    rows["day"] = pd.to_datetime(rows["day"])
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=99))
    bounds = (dt.datetime(2020, 1, 1), dt.datetime(2020, 12, 31))
    out = frame.bound(max_rows=1).agg(
        day=dp.median("day", bounds), k=dp.quantile("k", 0.25, (0, 8))
    )
    table = out.release(epsilon=20, ci=0.95).table
    assert str(table["day_low"].dtype) == str(table["day"].dtype)
    assert table["k_low"].dtype == table["k_high"].dtype == "int64"
    assert table["day_low"].item() <= rows["day"].median() <= table["day_high"].item()
    assert table["k_low"].item() <= 2 <= table["k_high"].item()


def test_keys_found_in_the_data_and_chosen_bounds_have_intervals_too():
    out = asked(keys=None).agg(m=dp.median("x", (0, 50))).release(epsilon=50, delta=1e-3, ci=0.95)
    assert out.table["g"].to_list() == ["a", "b"]
    assert out.table.columns == ["g", "m", "m_low", "m_high"]
    out = asked().agg(m=dp.median("x", dp.Auto())).release(epsilon=50, ci=0.95)
    assert out.table.columns == ["g", "m", "m_low", "m_high"]


def test_a_group_without_rows_and_one_value_between_bounds():
    out = (
        asked(keys=["a", "z"]).agg(m=dp.median("x", (0, 50))).release(epsilon=20, ci=1 - 1e-9).table
    )
    assert out.filter(pl.col("g") == "z").select("m_low", "m_high").row(0) == (0.0, 50.0)
    same = asked().agg(m=dp.median("x", (7, 7))).release(epsilon=1, ci=0.95).table
    assert same["m_low"].to_list() == same["m_high"].to_list() == [7.0, 7.0]


def test_margins_that_are_not_proved_say_so():
    query = asked().agg(n=dp.count(), m=dp.median("x", (0, 50)))
    likely, sure = query.release(epsilon=1), query.release(epsilon=1, ci=0.95)
    assert ", likely" in dict(likely.report().errors)["m"]
    assert "likely" not in dict(likely.report().errors)["n"] + str(sure.report())
    assert "those of m are likely" in likely._repr_html_()
    assert "likely" not in sure._repr_html_()
