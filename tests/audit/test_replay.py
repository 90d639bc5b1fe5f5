"""Replay for users: a release that costs what it says passes, and the kinds of bugs
that libraries shipped do not.

The toy library below has the kinds of mistakes of arXiv:2602.17454 and of other published reports:
they are in the glue between a question and its noise. Its noise is that of `dpframe.noise`, and
each mistake is one changed line.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from plants import changed

import dpframe as dp
from dpframe import noise
from dpframe.audit import replaying
from dpframe.release.answer import selection
from dpframe.theory import gaussian_scale

KEYS = ["a", "b", "c"]


def table(seed, units=6):
    rng = random.Random(seed)
    rows = [
        (u, rng.choice(KEYS), rng.choice([-60.0, 3.0, 40.0, 90.0]))
        for u in range(units)
        for _ in range(4)
    ]
    return pl.DataFrame(
        rows, schema={"user": pl.Int64, "key": pl.String, "x": pl.Float64}, orient="row"
    )


def pairs(exchange=False):
    heavy = pl.DataFrame(
        {"user": [7] * 9, "key": ["a"] * 5 + ["b"] * 4, "x": [500.0] * 9}, schema=table(0).schema
    )
    new = pl.DataFrame({"user": [8], "key": ["d"], "x": [None]}, schema=table(0).schema)
    for seed in range(2):
        here = table(seed)
        yield here, pl.concat([here, heavy])
        yield pl.concat([here, heavy]), here
        yield here, pl.concat([here, new])


# The toy library: one row of a user counts for each key, at most `LIMIT` rows in all, values
# between 0 and 100.

LIMIT, LOW, HIGH = 2, 0.0, 100.0


@dataclass
class Answer:
    """What anybody may see, and what it is said to cost."""

    shown: Any
    cost: tuple[float, float]


def kept(rows, limit=LIMIT):
    """At most so many rows of each user: the first by value, so that the
    order of rows decides nothing.
    """
    return (
        rows.sort("user", "key", "x", nulls_last=True)
        .group_by("user", maintain_order=True)
        .head(limit)
    )


def counts(rows, keys=KEYS):
    return np.array([rows.filter(pl.col("key") == key).height for key in keys], np.int64)


def sums(rows, low=LOW, high=HIGH):
    return np.array([int(rows["x"].fill_null(0.0).clip(low, high).sum())], np.int64)


def added(exact, scale, law="discrete_laplace"):
    return exact + getattr(noise, law)(scale, len(exact))


def count(rows, epsilon=1.0):
    return Answer(added(counts(kept(rows)), LIMIT / epsilon), (epsilon, 0.0))


def total(rows, epsilon=1.0):
    return Answer(added(sums(kept(rows)), LIMIT * HIGH / epsilon), (epsilon, 0.0))


def average(rows, epsilon=1.0):
    limited = kept(rows)
    top = added(sums(limited), 2 * LIMIT * HIGH / epsilon)
    return Answer((top, added(counts(limited, KEYS), 2 * LIMIT / epsilon)), (epsilon, 0.0))


def best(rows, epsilon=1.0):
    place = noise.permute_and_flip(
        counts(kept(rows))[None], Fraction(1, 2 * LIMIT) * Fraction(epsilon)
    )
    return Answer(int(place[0]), (epsilon, 0.0))


def normal(rows, epsilon=1.0, delta=1e-6):

    return Answer(
        added(counts(kept(rows)), gaussian_scale(LIMIT, epsilon, delta), "rounded_gaussian"),
        (epsilon, delta),
    )


RIGHT = {"count": count, "total": total, "average": average, "best": best, "normal": normal}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_passes(name):
    dp.audit.assert_private(RIGHT[name], pairs())


def no_limit(rows):
    return Answer(added(counts(rows), LIMIT), (1.0, 0.0))


def clip_then_the_raw_column(rows):
    _ = rows["x"].clip(LOW, HIGH)
    return Answer(added(sums(kept(rows), -1e9, 1e9), LIMIT * HIGH), (1.0, 0.0))


def clip_of_the_total(rows):
    """The total is clipped, and not each value: one user moves it from one end to the other."""
    exact = np.array([int(np.clip(rows["x"].fill_null(0.0).sum(), 0, 10 * HIGH))])
    return Answer(added(exact, LIMIT * HIGH), (1.0, 0.0))


def bounds_before_a_rewrite(rows):
    """The limit is enforced, then a join doubles the rows."""
    limited = kept(rows)
    return Answer(added(counts(pl.concat([limited, limited])), LIMIT), (1.0, 0.0))


def sensitivity_of_the_lower_bound(rows):
    return Answer(added(sums(kept(rows), 10.0, HIGH), LIMIT * 10.0), (1.0, 0.0))


def an_average_pays_for_one_of_two(rows):
    limited = kept(rows)
    return Answer((added(sums(limited), LIMIT * HIGH), added(counts(limited), LIMIT)), (1.0, 0.0))


def no_bounds_no_noise(rows):
    return Answer(sums(kept(rows)), (1.0, 0.0))


def one_draw_for_all_keys(rows):
    return Answer(counts(kept(rows)) + noise.discrete_laplace(LIMIT, 1), (1.0, 0.0))


def fresh_noise_at_each_reading(rows):
    exact = counts(kept(rows))
    return Answer([added(exact, LIMIT) for _ in range(3)], (1.0, 0.0))


def keys_of_the_data(rows):
    keys = rows["key"].unique().sort().to_list()
    return Answer(added(counts(kept(rows), keys), LIMIT), (1.0, 0.0))


def bounds_of_the_data(rows):
    high = rows["x"].max()
    return Answer(added(sums(kept(rows), 0, high), LIMIT * high), (1.0, 0.0))


def codes_in_order_of_appearance(rows):
    return Answer(
        (added(counts(kept(rows)), LIMIT), rows["key"].unique(maintain_order=True).to_list()),
        (1.0, 0.0),
    )


def a_size_that_nothing_checks(rows):
    """The mean of a declared number of rows: it is divided by the rows that there are."""
    exact = np.array([int(sums(rows)[0] * 10 / rows.height)])
    return Answer(added(exact, 10 * LIMIT * HIGH / 1000), (1.0, 0.0))


def a_choice_for_a_quarter(rows):
    place = noise.permute_and_flip(counts(kept(rows))[None], Fraction(2, LIMIT))
    return Answer(int(place[0]), (0.25, 0.0))


def classical_noise_above_one(rows):
    epsilon, delta = 8.0, 1e-2
    scale = LIMIT * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return Answer(added(counts(kept(rows)), scale, "rounded_gaussian"), (epsilon, delta))


def a_failure_tells(rows):
    missing = rows["x"].null_count()
    return Answer(
        (added(counts(kept(rows)), LIMIT), "a cell failed to parse" if missing else ""), (1.0, 0.0)
    )


BUGS = [
    no_limit,
    clip_then_the_raw_column,
    clip_of_the_total,
    bounds_before_a_rewrite,
    sensitivity_of_the_lower_bound,
    an_average_pays_for_one_of_two,
    no_bounds_no_noise,
    one_draw_for_all_keys,
    fresh_noise_at_each_reading,
    keys_of_the_data,
    bounds_of_the_data,
    codes_in_order_of_appearance,
    a_size_that_nothing_checks,
    a_choice_for_a_quarter,
    classical_noise_above_one,
    a_failure_tells,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_published_kind_of_bug_is_caught(bug):
    with pytest.raises(AssertionError, match="Not private on pair"):
        dp.audit.assert_private(bug, pairs())


# Releases of frames


def asked(rows, **price):
    frame = rows.dp(unit="user", budget=dp.Budget(epsilon=9, delta=1e-3))
    grouped = frame.group_by("key", keys=KEYS, max_groups=2, max_rows_per_group=2)
    return grouped.agg(n=dp.count(), m=dp.mean("x", (0, 100)), q=dp.median("x", (0, 100))).release(
        **price
    )


@pytest.mark.parametrize(
    "price", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}]
)
def test_a_release_of_a_frame(price):
    found = [dp.audit.replay(lambda rows: asked(rows, **price), *pair) for pair in pairs()]
    assert all(one.private for one in found), [str(one) for one in found if not one.private]
    assert max(one.loss for one in found) > 0.5
    assert {one.charged for one in found} == {1.0}


def test_several_releases_and_a_batch():
    def both(rows):
        budget = dp.Budget(epsilon=9)
        frame = rows.dp(unit="user", budget=budget)
        plan = budget.plan([frame.count_units(), frame.count(max_rows=2)], epsilon=1.0)
        return [*plan.release(), frame.count(max_rows=1).release(epsilon=0.5)]

    found = dp.audit.replay(both, *next(pairs()))
    assert found.private
    assert found.charged == 1.5
    assert found.loss == pytest.approx(1.5)
    assert found.answers == 3


def test_groups_that_are_found_are_not_replayed():
    def found(rows):
        frame = rows.dp(unit="user", budget=dp.Budget(epsilon=9, delta=0.1))
        return (
            frame.group_by("key", max_groups=1, max_rows_per_group=1)
            .count()
            .release(epsilon=1.0, delta=0.05)
        )

    here = table(0)
    new = pl.DataFrame({"user": [8], "key": ["d"], "x": [1.0]}, schema=here.schema)
    assert not dp.audit.replay(found, here, pl.concat([here, new])).private


def test_a_result_without_a_cost():
    with pytest.raises(dp.errors.InvalidArgument, match="cost"):
        dp.audit.replay(lambda rows: 1, table(0), table(1))


# Long lists of candidates, and bugs in replay itself


def _many(table, rank=0.5, **price):
    frame = table.dp(unit="user", budget=dp.Budget(epsilon=100, delta=1e-3))
    return frame.quantile("x", rank, (0, 100), max_rows=3).release(**(price or {"epsilon": 1.0}))


@pytest.mark.parametrize("rank", [0, 0.25, 0.5, 1])
def test_a_choice_among_many_candidates_is_replayed_as_it_is_made(rank):
    """There are millions of candidates between these bounds, in runs
    that begin where the rows are.
    """
    here = pl.DataFrame({"user": [1, 1, 1, 2, 2, 3], "x": [3.25, 41.5, 77.125, 8.0, 60.5, 99.875]})
    for other in (here.filter(pl.col("user") != unit) for unit in (1, 2, 3)):
        found = dp.audit.replay(lambda rows: _many(rows, rank), here, other)
        assert (found.told, found.answers, found.private) == ("", 1, True)
        assert found.loss > 0
    most = [
        dp.audit.replay(
            lambda rows: _many(rows, rank), here, here.filter(pl.col("user") != 1), seed=s
        )
        for s in (0, 1)
    ]
    assert most[0].loss == most[1].loss, "the loss is of the scores, whatever was chosen"


def test_a_choice_by_scores_that_count_too_many_rows_is_caught():
    here = pl.DataFrame({"user": [1] * 3 + [2] * 3, "x": [3.0, 4.0, 5.0, 60.0, 70.0, 80.0]})
    with changed(selection.rank_scores, "_scores(np.maximum(low", "_scores(9 * np.maximum(low"):
        assert not dp.audit.replay(_many, here, here.filter(pl.col("user") == 1)).private


def _lossy():
    """Releases whose loss is known to the last digit:
    counts, sums, a choice among many candidates.
    """
    here = pl.DataFrame({"user": [1, 1, 2, 2], "x": [3.0, 4.0, 60.0, 80.0]})
    other = here.filter(pl.col("user") == 2)

    def frame(rows):
        return rows.dp(unit="user", budget=dp.Budget(epsilon=100))

    count = dp.audit.replay(
        lambda rows: frame(rows).count(max_rows=2).release(epsilon=0.5), here, other
    )
    total = dp.audit.replay(
        lambda rows: frame(rows).sum("x", (0, 8), max_rows=2).release(epsilon=1.0), here, other
    )
    ranks = [dp.audit.replay(lambda rows, r=rank: _many(rows, r), here, other) for rank in (0.5, 1)]
    batch = dp.audit.replay(lambda rows: [_many(rows), _many(rows, 0)], here, other)
    return [count, total, *ranks, batch]


PLANTED = {  # in the rewriting of replay itself
    "scores apart at the first candidate alone": (
        replaying.Replayed.moved,
        "np.ptp((one - two).astype(np.float64)) / self.scale",
        "abs(float((one - two)[0])) / self.scale",
    ),
    "runs of one table alone": (replaying.Replayed.moved, "np.union1d(*pair)", "pair[0][:1]"),
    "the first run for each candidate": (
        replaying.Replayed._at,
        "np.searchsorted(first, these, side='right') - 1",
        "0 * np.searchsorted(first, these, side='right')",
    ),
    "runs that are taken for candidates": (
        replaying._given_choice,
        "firsts=said.firsts",
        "firsts=None",
    ),
    "half of the distance": (replaying.Replayed.moved, "/ self.scale\n", "/ self.scale / 2\n"),
    "the first answer alone": (
        replaying.loss,
        "for a, b in second if a.family not in",
        "for a, b in second[:1] if a.family not in",
    ),
    "an answer that depends on the rows": (
        replaying._Given.__radd__,
        "np.asarray(rng.integers(-100, 1000, exact.shape))",
        "exact + np.asarray(rng.integers(-100, 1000, exact.shape))",
    ),
}


def test_what_is_planted_in_replay_is_noticed_by_known_losses():
    right = _lossy()
    assert [one.private for one in right] == [True] * 5
    assert [one.loss for one in right[:2]] == [0.5, 7 / 16]
    for name, plant in PLANTED.items():
        with changed(*plant):
            try:
                wrong = _lossy()
            except Exception:  # what does not run at all is noticed
                continue
        assert wrong != right, name


@pytest.mark.parametrize("seed", range(4))
def test_a_choice_among_many_candidates_is_given_one_that_there_is(seed):
    """Runs of candidates are padded to one length with runs of
    none, which differ between tables.
    """

    def release(rows):
        budget = dp.Budget(epsilon=2)
        groups = dp.protect(rows, unit="user", budget=budget).group_by(
            "key", keys=KEYS, max_rows=40
        )
        return groups.agg(q=dp.median("x", bounds=(-100, 100))).release(epsilon=1)

    numbers = [0.137 * n for n in range(600)]
    spread = pl.DataFrame({"user": [7] * 600, "key": ["a"] * 600, "x": numbers})
    found = dp.audit.replay(release, table(0), pl.concat([table(0), spread]), seed=seed)
    assert found.private, found
    assert found.loss > 0.1
