"""Tuning: it pays for its histograms alone, agrees with what is released,
and refuses what it cannot say.
"""

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from panels import error, panel, protect


@pytest.fixture(scope="module")
def table():
    return panel(1)


@pytest.fixture(scope="module")
def spread_out():
    """1,000 units, each with three rows in each of 12 groups."""
    return pl.DataFrame(
        {"id": np.repeat(np.arange(1000), 36), "g": np.tile(np.repeat(np.arange(12), 3), 1000)}
    )


@pytest.mark.usefixtures("same_noise")
def test_tune_knows_that_units_are_in_several_groups(spread_out):
    query = (
        protect(spread_out).group_by("g", keys=list(range(12)), limits=dp.Auto()).agg(n=dp.count())
    )
    for grid in (
        {"max_rows": [1, 6, 12], "max_rows_per_group": [1, 2]},
        {"max_rows": [36], "max_groups": [3, 6]},
    ):
        for *limits, expected in query.tune(grid, epsilon=20).rows():
            most = dict(zip(grid, limits, strict=True))
            per_group, groups = most.get("max_rows_per_group", 3), most.get("max_groups", 12)
            missed = 3000 - 1000 * min(most["max_rows"], groups * per_group) / 12
            assert missed < expected < 1.6 * missed, most


def test_tune_pays_for_its_histograms_alone_and_agrees_with_what_is_released(table):
    frame = protect(table, epsilon=25.0)
    query = frame.group_by("g", keys=list(range(10)), max_rows=1).count()
    grid = {"max_rows": [1, 10, 60, 1000], "max_groups": [2, None]}
    tuned = query.tune(grid, epsilon=20.0, at=1.0)
    assert frame.budget.spent.epsilon == 20.0
    assert tuned.columns == ["max_rows", "max_groups", "count_error"]
    assert tuned.height == 8
    truth = table.group_by("g").len().sort("g")["len"].to_numpy()
    for rows, groups, expected in tuned.rows():
        limits = {"max_rows": rows, "max_groups": groups or 10}
        # 0.88 to 1.38 with deviations below 0.07 at this price (at ε = 2 they are 0.2): ten
        # deviations from either end.
        assert 0.5 < expected / error(protect(table), truth, **limits) < 2
    best = tuned.sort("count_error").row(0)
    assert best[:2] == (60, None)


def test_tune_is_a_release_with_a_name(tmp_path, table):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("auto", epsilon=1.0)
    query = (
        dp.protect(table.to_pandas(), unit="id", budget=budget)
        .group_by("g", keys=[0], limits=dp.Auto())
        .count()
    )
    first, again = (query.tune({"max_rows": [1, 2]}, epsilon=0.5, name="tuned") for _ in range(2))
    assert type(first).__module__.startswith("pandas")
    assert first.equals(again)
    assert budget.spent.epsilon == 0.5
    with pytest.raises(errors.ReleaseMismatch):
        query.tune({"max_rows": [1, 3]}, epsilon=0.5, name="tuned")


@pytest.mark.parametrize(
    "grid", [{}, None, {"rows": [1]}, {"max_rows": []}, {"max_rows": 3}, {"max_rows": [0]}]
)
def test_tune_takes_lists_of_limits(table, grid):
    frame = protect(table, epsilon=1.0)
    with pytest.raises(errors.InvalidArgument):
        frame.group_by("g", keys=[0], max_rows=1).count().tune(grid, epsilon=0.1)
    assert frame.budget.spent.epsilon == 0


def test_tune_refuses_what_it_cannot_say(table):
    frame = protect(table, epsilon=1.0)
    for ask in (
        lambda: frame.mean("x", bounds=dp.Auto(), max_rows=2).tune({"max_rows": [1]}, epsilon=0.1),
        lambda: (
            frame.group_by("g", max_groups=1, max_rows=1)
            .count()
            .tune({"max_rows": [1]}, epsilon=0.1)
        ),
        lambda: (
            dp.protect(table, unit=dp.Rows(2), budget=frame.budget)
            .count()
            .tune({"max_rows": [1]}, epsilon=0.1)
        ),
        lambda: frame.count(max_rows=1).tune({"max_rows": [1]}, rho=0.1),
        lambda: frame.count(max_rows=1).tune({"max_rows": [1]}),
    ):
        with pytest.raises(errors.DpFrameError):
            ask()
    assert frame.budget.spent.epsilon == 0
