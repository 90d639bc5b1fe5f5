"""A mean is the ratio of a noisy sum and count, drawn to the middle of its
bounds where noise is all there is.

Every group has noise of its own, so 2,000 groups are 2,000 releases; a coverage is false where an
exact bound says so, which for a right one has probability 1e-8.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.trials import at_least
from dpframe.release.estimators import mean_of
from inside import numbers_of, question_of

GROUPS = 2000
CERTAIN = 1e12


def asked(values, **options):
    """Means by group, each group with the same few values, one from each unit."""
    rows = pl.DataFrame(
        {
            "g": np.repeat(np.arange(GROUPS), len(values)),
            "x": np.tile(np.array(values, float), GROUPS),
        }
    )
    frame = dp.protect(
        rows.with_row_index("id"), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.1)
    )
    groups = frame.group_by("g", keys=list(range(GROUPS)), max_groups=1, max_rows_per_group=1)
    return groups.agg(mean=dp.mean("x", bounds=(0, 100)), **options)


def missed_too_often(held, alpha):
    """Whether the share of misses is surely above alpha."""
    return at_least(int(np.sum(~np.asarray(held))), GROUPS, 1e-8) > alpha


def root_mean_square(values):
    return math.sqrt(float(np.mean(np.square(values))))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("rows", "worse"), [(1, 0.75), (4, 0.9), (20, 1.05), (400, 1.01)])
def test_it_has_a_smaller_error_than_the_ratio_and_the_same_where_many_are_counted(
    noise, rows, worse
):
    out = asked([70.0] * rows).release(epsilon=1, delta=1e-6, noise=noise)
    total, count = (numbers_of(out).parts[f"mean.{part}"] for part in ("sum", "count"))
    ratio = np.clip(50 + total / np.maximum(count, 1), 0, 100)
    assert root_mean_square(out.table["mean"].to_numpy() - 70) <= worse * root_mean_square(
        ratio - 70
    )
    if rows == 400:
        assert np.abs(out.table["mean"].to_numpy() - ratio).max() < 0.5


def test_with_the_count_known_the_error_is_never_above_the_ratios():
    """Exact arithmetic of `mean_of`: mean square errors from the two moments of the noise."""
    output = question_of(asked([1.0])).outputs[0]
    for size in (0.5, 1.0, 30.0, 1000.0):
        for deviation in (1.0, 50.0, 1e4):
            for middle in (-50.0, -10.0, 0.0, 49.0):
                pulled = size + (deviation / 50) ** 2 / size
                found = mean_of(output, np.array([1e-3]), np.array([size]), deviation) - 50
                assert found == pytest.approx(1e-3 / pulled, rel=1e-6, abs=1e-9)
                bias = middle * size / pulled - middle
                assert (deviation / pulled) ** 2 + bias**2 <= (deviation / size) ** 2 * (1 + 1e-12)


def test_nothing_counted_is_the_middle_and_no_noise_is_the_ratio():
    output = question_of(asked([1.0])).outputs[0]
    assert mean_of(output, np.array([-300.0, 8.0]), np.array([0.0, -5.0]), 10.0).tolist() == [
        50.0,
        50.0,
    ]
    assert mean_of(output, np.array([3.0]), np.array([0.0]), 0.0).tolist() == [50.0]
    assert mean_of(output, np.array([3.0, 1e9]), np.array([2.0, 1.0]), 0.0).tolist() == [
        51.5,
        100.0,
    ]
    assert (
        np.abs(
            asked([10.0, 20.0, 60.0]).release(epsilon=CERTAIN).table["mean"].to_numpy() - 30
        ).max()
        < 1e-5
    )


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [0, 3, 12])
def test_intervals_of_few_values_hold_as_often_as_stated_and_hold_what_is_released(noise, rows):
    made = asked([95.0] * rows).release(epsilon=1, delta=1e-6, noise=noise)
    for alpha in (0.05, 0.5, 0.9):
        found = made.accuracy(alpha=alpha)
        assert ((found["lower"] <= found["value"]) & (found["value"] <= found["upper"])).all()
        held = (found["lower"] <= 95) & (found["upper"] >= 95 - 1e-4)
        assert not rows or not missed_too_often(held, alpha)


@pytest.mark.filterwarnings("ignore:With .* rows in a group")  # that is what few are
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("rows", "value"), [(2, 100.0), (8, 100.0), (30, 0.0), (30, 60.0), (100, 100.0)]
)
def test_errors_stated_before_a_release_hold_for_few_values_too(noise, rows, value):
    """At the ends of the bounds, where the pull to the middle is strongest."""
    query = asked([value] * rows)
    made = query.release(epsilon=1, delta=1e-6, noise=noise).table["mean"].to_numpy()
    for alpha in (0.5, 0.05, 0.001):
        error = query.accuracy(epsilon=1, delta=1e-6, noise=noise, alpha=alpha, assume_rows=rows)[
            "error"
        ].item()
        assert not missed_too_often(np.abs(made - value) <= error + 1e-4, alpha)
    assert np.mean(np.abs(made - value) <= error / 40) < 0.999  # the negative control


def test_means_of_several_groups_are_made_the_same_way():
    rows = pl.DataFrame(
        {"id": range(40), "g": ["a", "b"] * 20, "h": ["c", "d"] * 20, "x": [90.0] * 40}
    )
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=1e15))
    keys = {"g": ["a", "b", "e"], "h": ["c", "d"]}
    table = frame.crosstab(
        "g", "h", values="x", aggfunc="mean", keys=keys, margins=True, max_rows=1, bounds=(0, 100)
    )
    found = table.release(epsilon=0.05).accuracy(alpha=0.9)
    assert ((found["lower"] <= found["value"]) & (found["value"] <= found["upper"])).all()
    exact = table.release(epsilon=CERTAIN).accuracy().filter(pl.col("g") == "All")
    assert np.abs(exact["value"].to_numpy() - 90).max() < 1e-5
