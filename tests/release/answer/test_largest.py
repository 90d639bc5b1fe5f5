"""The most frequent values that nobody listed:
which rows are kept, what they cost, and what their intervals hold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import errors
from dpframe.release.accuracy import intervals
from dpframe.release.answer import GROUPS_FOUND, largest_groups
from dpframe.release.pricing import Gaussian
from inside import numbers_of

UNITS = [500, 400, 300, 200, 100, 1]
CERTAIN = {"epsilon": 50.0, "delta": 1e-6}


def table(sizes=UNITS):
    """One row for each unit, whose word is that of its group."""
    words = [f"w{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return pl.DataFrame({"u": range(len(words)), "word": words, "count": words})


def protected(rows=None, **more):
    return dp.protect(
        table() if rows is None else rows,
        unit="u",
        budget=dp.Budget(epsilon=1e6, delta=0.9),
        **more,
    )


def test_the_largest_come_first_with_their_counts_and_a_rare_value_does_not_come_out():
    out = protected().top_k("word", 3, max_rows=1).release(**CERTAIN)
    assert out.table.columns == ["word", "count"]
    assert out.table["word"].to_list() == ["w0", "w1", "w2"]
    assert out.table["count"].to_list() == pytest.approx([500, 400, 300], abs=5)
    assert "Groups that were found: 5." in out.report()


def test_fewer_are_found_than_asked_for_and_the_report_says_so():
    out = protected().top_k("word", 9, max_rows=1).release(**CERTAIN)
    assert out.table["word"].to_list() == ["w0", "w1", "w2", "w3", "w4"]
    assert "Groups that were found: 5, fewer than the 9 that were asked for." in out.report()


@pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")  # no key comes out
def test_nothing_is_found_among_rare_values():
    out = (
        protected(table([1, 1]))
        .top_k("word", 9, max_rows=1)
        .release(epsilon=1.0, delta=1e-6, ci=0.9)
    )
    assert out.table.rows() == []
    assert out.table.columns == ["word", "count", "count_low", "count_high"]
    assert "Groups that were found: 0, fewer than the 9" in out.report()


@pytest.mark.parametrize(
    "limits", [{"max_rows": 1}, {"max_groups": 2, "max_rows_per_group": 3}, {"max_rows": 4}]
)
def test_it_is_the_question_by_groups_at_its_price(limits):
    frame, price = protected(), {"epsilon": 1.0, "delta": 1e-6}
    one, other = frame.top_k("word", 3, **limits), frame.group_by("word", **limits).count()
    assert one.sensitivity == other.sensitivity
    out, plain = one.release(**price), other.release(**price)
    assert out.noise.rows() == plain.noise.rows()
    assert out.cost == plain.cost


def test_limits_that_are_chosen_and_a_column_of_the_name():
    out = protected().top_k("count", 2, limits=dp.Auto()).release(epsilon=500.0, delta=1e-6)
    assert out.table.columns == ["count", "count_"]
    assert out.table["count"].to_list() == ["w0", "w1"]
    assert {"left_out", "lower"} <= set(out.accuracy().columns)


def test_types_that_list_their_values_are_chosen_among_them():
    rows = table().with_columns(pl.col("word").cast(pl.Enum([f"w{i}" for i in range(9)])))
    out = protected(rows).top_k("word", 2, max_rows=1).release(epsilon=50.0)
    assert out.table.rows() == [(1, "w0"), (2, "w1")]
    with pytest.raises(
        errors.InvalidArgument, match="max_groups=2 is for values that nobody listed"
    ):
        protected(rows).top_k("word", 2, max_groups=2)


def test_in_one_line_in_a_batch_and_under_a_name():
    rows = table().to_pandas()
    once = {"unit": "u", "budget": dp.Budget(epsilon=60, delta=1e-5)}
    out = rows.dp.top_k("word", 2, max_groups=1, max_rows_per_group=1, **once, **CERTAIN)
    assert out.table["word"].tolist() == ["w0", "w1"]
    frame = protected()
    asks = [frame.top_k("word", 2, max_rows=1), frame.count(max_rows=1)]
    assert frame.budget.plan(asks, **CERTAIN).release()[0].table.height == 2
    first, again = (
        frame.top_k("word", 2, max_rows=1).release(**CERTAIN, name="top") for _ in range(2)
    )
    assert first.table.equals(again.table)
    assert first.accuracy().equals(again.accuracy())
    with pytest.raises(errors.DpFrameError, match="top"):
        frame.top_k("word", 3, max_rows=1).release(**CERTAIN, name="top")


def test_intervals_for_the_population_are_refused():
    with pytest.raises(errors.UnsupportedOperation, match="picked by their noise"):
        protected().top_k("word", 2, max_rows=1).release(**CERTAIN, covers="population")


def test_equal_counts_keep_the_order_of_the_table_and_parts_go_along():
    question = SimpleNamespace(layout=dp.plan.Layout(largest=3), aggregates=(("n", None),))
    shown = pl.DataFrame({"g": list("abcd"), "n": [2, 3, 2, 3]})
    kept, parts = largest_groups(question, shown, {"p": np.arange(4.0)})
    assert kept.rows() == [("b", 3), ("d", 3), ("a", 2)]
    assert parts["p"].tolist() == [1.0, 3.0, 0.0]
    assert parts[GROUPS_FOUND].tolist() == [4.0, 4.0, 4.0]


# Intervals: the exact probability that a count is found and missed, over its law


def law(mechanism, reach=600):
    """The probability of each integer of noise."""
    noise = np.arange(-reach, reach + 1)
    if isinstance(mechanism, Gaussian):
        ends = stats.norm.cdf((np.arange(-reach, reach + 2) - 0.5) / mechanism.scale)
        return noise, np.diff(ends)
    ratio = math.exp(-1 / mechanism.scale)
    return noise, (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise)


def released(noise, found):
    """A release of one number that finds its own keys, with so many groups
    found; output, threshold and law.
    """
    out = protected().top_k("word", 3, max_rows=1).release(epsilon=1.0, delta=1e-4, noise=noise)
    numbers = numbers_of(out)
    return numbers, numbers.noise.threshold, law(numbers.noise.noises[0].mechanism)


def worst_miss(noise, found, alpha=0.05):
    """The largest part of alpha / found that a group uses:
    P[found and missed] / P[found], for all true counts.
    """
    numbers, threshold, (draws, chance) = released(noise, found)
    worst = 0.0
    for count in {
        1,
        2,
        threshold // 2,
        *range(threshold - 9, threshold + 9),
        2 * threshold,
        3 * threshold,
    }:
        values = count + draws
        rows = pl.DataFrame({"word": ["w"] * len(values), "count": values})
        many = replace(numbers, long=rows, parts={GROUPS_FOUND: np.full(len(values), float(found))})
        low, high = intervals(many, many.outputs[0], alpha)
        shown = values >= threshold
        missed = shown & ((count < low) | (count > high))
        worst = max(worst, chance[missed].sum() / chance[shown].sum() / (alpha / found))
    return worst


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("found", [1, 40])
def test_each_found_group_is_missed_with_its_part_of_alpha(noise, found):
    assert 0.1 < worst_miss(noise, found) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("with_rare_groups", lambda numbers, output, value, low, high: low),
        ("alpha_of_each", lambda alpha, groups: alpha),
    ],
)
def test_intervals_of_single_counts_would_miss_too_often(name, wrong, monkeypatch):
    monkeypatch.setitem(intervals.__globals__, name, wrong)
    assert worst_miss("gaussian", 40) > 1.5
