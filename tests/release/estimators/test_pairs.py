"""Statistics of two columns: how far one unit moves their sums, what is
released, and how far off it may be.

Every group has noise of its own, so 2,000 groups are 2,000 releases; a coverage is false where an
exact bound says so, which for a right one has probability 1e-8.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.trials import at_least
from dpframe.errors import InvalidArgument, InvalidBounds, UnknownColumn, WrongType
from dpframe.release.estimators import correlation
from inside import numbers_of, question_of
from strategies import answer

GROUPS = 2000
CERTAIN = 1e12
BOTH = {"x": (0, 100), "y": (-5, 10)}
RNG = np.random.default_rng(7)
X = np.round(RNG.uniform(0, 100, 300), 1)
Y = np.round(np.clip(X / 20 + RNG.normal(0, 2, 300), -5, 10), 2)
W = np.round(RNG.uniform(0, 4, 300), 1)
QUESTIONS = {
    "cov": (dp.cov("x", "y", BOTH), float(np.cov(X, Y)[0, 1])),
    "corr": (dp.corr("x", "y", BOTH), float(np.corrcoef(X, Y)[0, 1])),
    "weighted": (
        dp.mean("x", (0, 100), weights="w", weight_bounds=(0, 4)),
        float((X * W).sum() / W.sum()),
    ),
    "ratio": (dp.ratio(dp.sum("x", (0, 100)), dp.sum("w", (0, 4))), float(X.sum() / W.sum())),
}


def grouped(groups, **asked):
    """The same 300 rows in each group, one from each unit."""
    columns = {name: np.tile(values, groups) for name, values in (("x", X), ("y", Y), ("w", W))}
    rows = pl.DataFrame({"g": np.repeat(np.arange(groups), len(X)), **columns})
    frame = dp.protect(
        rows.with_row_index("id"), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.1)
    )
    return frame.group_by("g", keys=list(range(groups)), max_groups=1, max_rows_per_group=1).agg(
        **asked
    )


def missed_too_often(held):
    """Whether the share of misses is surely above one in twenty."""
    return at_least(int(np.sum(~np.asarray(held))), len(held), 1e-8) > 0.05


# How far one unit moves the totals


@pytest.mark.one_in(4)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_moves_the_totals_by_no_more_than_claimed_and_by_that_much(name, relation, rows):
    """Rows at the ends, in the middle, beyond them and missing, up to one too many:
    the largest change is the claim.

    The fraction bits and a step of the grid are all that is between them, so half of the claim
    would be broken.
    """
    schema = {"u": pl.Int64, "x": pl.Float64, "y": pl.Float64, "w": pl.Float64}
    fixed = [(1, 3.0, 2.0, 1.0), (2, 50.0, -4.0, 0.0)]

    def totals(values):
        frame = pl.DataFrame([*fixed, *((3, *row) for row in values)], schema, orient="row")
        query = dp.protect(frame, unit="u", neighbors=relation).agg(
            a=QUESTIONS[name][0], max_rows=rows
        )
        return query, [part[()] for part in answer(query)]

    kinds = [
        (x, y, y) for x, y in itertools.product([-1e9, 50.0, 1e9, None], [-1e9, 2.5, 1e9, None])
    ]
    units = [(row,) * n for n in range(rows + 2) for row in kinds]
    measures = question_of(totals([])[0]).read
    answers = [totals(values)[1] for values in units]
    others = answers if relation == "replace" else answers[:1]
    for place, allotment in enumerate(measures):
        changes = [abs(a[place] - b[place]) for a in answers for b in others]
        assert max(changes) <= allotment.total.sensitivity.l1
        assert max(changes) >= allotment.total.sensitivity.l1 * (1 - 1e-6)


def test_the_claim_of_a_product_is_that_of_both_half_widths():
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0], "y": [1.0]}), unit="u")
    query = query.agg(c=dp.corr("x", "y", {"x": (-2, 6), "y": (0, 10)}), max_rows=3)
    assert {name: total.l1 for name, total in query.sensitivity.items()} == {
        "c.sum": 12, "c.sum_beside": 15, "c.products": 60, "c.squares": 24, 
        "c.squares_beside": 37.5, "c.count": 3,
    }  # fmt: skip


# What is released


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_noise_it_is_the_statistic(name):
    aggregate, true = QUESTIONS[name]
    assert grouped(3, a=aggregate).release(epsilon=CERTAIN).table["a"].to_list() == pytest.approx(
        [true] * 3, rel=1e-5
    )


def test_a_row_counts_where_both_columns_have_a_value():
    rows = pl.DataFrame(
        {"u": range(6), "x": [1, None, 3, 4, 9, 2], "y": [2.0, 5.0, None, 1.0, 7.0, 3.0]}
    )
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e15))
    both, ends = rows.drop_nulls(), {"x": (0, 9), "y": (0, 9)}
    out = frame.agg(
        max_rows=1,
        c=dp.cov("x", "y", ends),
        r=dp.corr("y", "x", ends),
        m=dp.mean("x", (0, 9), weights="y", weight_bounds=(0, 9)),
        s=dp.ratio(dp.sum("x", (0, 9)), dp.sum("y", (0, 9))),
    )
    x, y = both["x"].to_numpy(), both["y"].to_numpy()
    expected = (np.cov(x, y)[0, 1], np.corrcoef(x, y)[0, 1], (x * y).sum() / y.sum(), 19 / 18)
    assert out.release(epsilon=CERTAIN).table.row(0) == pytest.approx(expected, rel=1e-5)


def test_totals_are_shared_where_no_value_can_be_missing():
    rows = pl.DataFrame({"u": [1, 2], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    frame = dp.protect(rows, unit="u").drop_nulls("x", "y")
    query = frame.agg(
        max_rows=1, r=dp.corr("x", "y", BOTH), c=dp.cov("x", "y", BOTH), v=dp.var("x", (0, 100))
    )
    assert len(question_of(query).allotments) == 6


def test_nothing_counted_is_a_number_inside_the_bounds():
    rows = pl.DataFrame(
        {"u": [1], "x": [None], "y": [None], "w": [None]}, dict.fromkeys("uxyw", pl.Float64)
    )
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e15))
    out = frame.agg(
        max_rows=1, **{name: QUESTIONS[name][0] for name in ("cov", "corr", "weighted")}
    )
    row = out.release(epsilon=CERTAIN).table.row(0)
    assert row[:2] == pytest.approx((0, 0), abs=1e-3)
    assert 0 <= row[2] <= 100  # a quotient of noises


def test_a_ratio_over_what_may_be_nothing_has_no_end_to_its_interval():
    errors = grouped(5, a=QUESTIONS["ratio"][0]).release(epsilon=1e-4).accuracy()
    assert np.isinf(errors["upper"].to_numpy()).any()
    assert np.isfinite(errors["value"].to_numpy()).all()


# How far off


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_intervals_hold_as_often_as_stated_and_are_not_wide(name, noise):
    aggregate, true = QUESTIONS[name]
    out = grouped(GROUPS, a=aggregate).release(epsilon=3, delta=1e-6, noise=noise).accuracy()
    held = ((out["lower"] <= true + 1e-4) & (true - 1e-4 <= out["upper"])).to_numpy()
    assert not missed_too_often(held)
    tightest = np.quantile(np.abs(out["value"].to_numpy() - true), 0.95)
    assert np.median((out["upper"] - out["lower"]).to_numpy()) / 2 <= 1.5 * tightest


@pytest.mark.parametrize("name", ["cov", "weighted", "ratio"])
def test_errors_before_a_release_hold(name):
    aggregate, true = QUESTIONS[name]
    query = grouped(GROUPS, a=aggregate)
    stated = query.accuracy(epsilon=3, assume_rows=len(X))["error"].item()
    assert not missed_too_often(
        np.abs(query.release(epsilon=3).table["a"].to_numpy() - true) <= stated + 1e-4
    )


@pytest.mark.long
def test_intervals_of_a_higher_price_are_caught():
    """The negative control: noise ten times as large as stated misses too often."""
    for aggregate, true in QUESTIONS.values():
        wide, narrow = (
            grouped(GROUPS, a=aggregate).release(epsilon=epsilon).accuracy() for epsilon in (3, 30)
        )
        half = float((narrow["upper"] - narrow["lower"]).mean()) / 2
        assert missed_too_often(np.abs(wide["value"].to_numpy() - true) <= half)


# What is refused


def test_what_cannot_be_is_refused_with_the_line_to_type():
    frame = dp.protect(
        pl.DataFrame({"u": [1], "x": [1.0], "y": [1.0]}).with_columns(day=pl.date(2020, 1, 1)),
        unit="u",
    )
    refused = {
        (InvalidArgument, "dp.var"): lambda: dp.cov("x", "x", BOTH),
        (InvalidArgument, "ddof= is 0 or 1"): lambda: dp.cov("x", "y", BOTH, ddof=2),
        (InvalidBounds, "bounds= is a dict"): lambda: dp.corr("x", "y", (0, 1)),
        (UnknownColumn, "neither"): lambda: dp.corr("x", "y", {"z": (0, 1)}),
        (InvalidArgument, "give two sums"): lambda: dp.ratio(dp.count(), dp.sum("x")),
        (InvalidArgument, "another column"): lambda: dp.mean("x", (0, 1), weights="x"),
        (InvalidArgument, "go with a column"): lambda: dp.mean("x", (0, 1), weight_bounds=(0, 1)),
    }
    asked = {
        (InvalidBounds, "narrow=True"): dp.cov("x", "y", {"x": dp.Auto(), "y": (0, 1)}),
        (InvalidBounds, "1e130 apart"): dp.cov("x", "y", {"x": (0, 1e200), "y": (0, 1e200)}),
        (InvalidBounds, "from 0 on"): dp.ratio(dp.sum("x", (0, 1)), dp.sum("y", (-1, 1))),
        (InvalidArgument, "same one"): dp.ratio(dp.sum("x", (0, 1)), dp.sum("x", (0, 1))),
        (InvalidBounds, "0 or more"): dp.mean("x", (0, 1), weights="y", weight_bounds=(-1, 1)),
        (WrongType, "needs numbers"): dp.corr("x", "day", {"x": (0, 1), "day": (0, 1)}),
    }
    for (error, words), call in refused.items():
        with pytest.raises(error, match=words):
            call()
    for (error, words), aggregate in asked.items():
        with pytest.raises(error, match=words):
            frame.agg(a=aggregate, max_rows=1)


@pytest.mark.parametrize(("singular", "narrow"), [(0.0, True), (0.03, True), (0.06, False)])
def test_draws_without_a_variance_widen_a_correlation_and_hide_it_where_they_are_many(
    monkeypatch, singular, narrow
):
    """Of 4,000 draws without noise, some have a variance below 0;
    at 5% more than a part of 0.05 leaves nothing.
    """
    draw = np.random.default_rng(12)
    x = draw.uniform(-1, 1, 500)
    rows = pl.DataFrame(
        {"u": np.arange(500), "x": x, "y": np.clip(0.6 * x + draw.normal(0, 0.3, 500), -1, 1)}
    )
    with pytest.warns(dp.errors.DpFrameWarning):
        frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e9))
    out = frame.agg(r=dp.corr("x", "y", bounds={"x": (-1, 1), "y": (-1, 1)}), max_rows=1)
    numbers = numbers_of(out.release(epsilon=1e8, covers="population"))
    (output,) = numbers.outputs
    squares = numbers.noise.of(output.totals[3][1])

    def noises(several, rng, times):
        numbers = [round(singular * times) if of is squares else 0 for of in several]
        return [np.where(np.arange(times) < number, 1e6, 0.0) for number in numbers]

    monkeypatch.setattr(correlation, "simulated", noises)
    (low,), (high,) = correlation._drawn_ends(numbers.noisy(output), 0.05, np.array([0.01]))
    expected = np.corrcoef(rows["x"], rows["y"])[0, 1]
    if narrow:
        assert low == pytest.approx(expected, abs=0.05)
        assert high == pytest.approx(expected, abs=0.05)
    else:
        assert (low, high) == (-1.0, 1.0)
