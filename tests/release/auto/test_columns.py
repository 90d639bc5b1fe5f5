"""`dp.Auto` chooses limits for each column where that is expected to be better, and states them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.plan import Limits
from dpframe.release.auto import choice
from inside import numbers_of, question_of
from panels import panel, protect

KEYS = list(range(4))


def people(units=4000, seed=3):
    """People with 1 to 200 rows each, whose own rows are alike."""
    draw = np.random.default_rng(seed)
    rows = np.ceil(draw.lognormal(2.5, 1.2, units)).clip(1, 200).astype(int)
    ids = np.repeat(np.arange(units), rows)
    return pl.DataFrame(
        {"id": ids, "g": draw.integers(0, 4, len(ids)), "x": draw.uniform(0, 5, units)[ids]}
    )


@pytest.fixture(scope="module")
def frame():
    return protect(people())


def chosen(query, **price):
    return query.release(**{"epsilon": 1.0, **price}).report().to_dict()["chosen"]


# limits are chosen with noise, and no law says how often a choice is bad
@pytest.mark.usefixtures("same_noise")
def test_a_mean_has_lower_limits_than_a_count_beside_it(frame):
    query = frame.group_by("g", keys=KEYS, limits=dp.Auto()).agg(
        n=dp.count(), m=dp.mean("x", bounds=(0, 5))
    )
    # in 60 releases, at most 32 for the mean, 128 or more for rows
    for statement in (chosen(query) for _ in range(3)):
        assert statement["limits_of_columns"]["m"]["max_rows"] < statement["limits"]["max_rows"]
        assert "; for m: at most" in statement["reason"][0]


def test_a_release_that_is_read_again_has_the_limits_of_its_columns(frame):
    query = frame.group_by("g", keys=KEYS, limits=dp.Auto()).agg(
        n=dp.count(), m=dp.mean("x", bounds=(0, 5))
    )
    first = query.release(epsilon=1.0, name="twice")
    again = query.release(epsilon=1.0, name="twice")
    assert again.table.equals(first.table)
    assert str(again.derivation) == str(first.derivation)
    limits = [[total.limits for _, total in output.totals] for output in numbers_of(first).outputs]
    assert [
        [total.limits for _, total in output.totals] for output in numbers_of(again).outputs
    ] == limits


def test_one_column_of_values_and_sums_alone_share_their_limits():
    rows = protect(panel(1, units=300)).with_columns(y=dp.col("x"))
    groups = rows.group_by("g", keys=list(range(10)), limits=dp.Auto())
    bounds = {"bounds": (1, 5)}
    cases = {
        (): groups.agg(m=dp.mean("x", **bounds), s=dp.std("x", **bounds)),
        (("m", "v"),): groups.agg(m=dp.mean("x", **bounds), v=dp.var("x", **bounds), n=dp.count()),
        (("a",), ("b",)): groups.agg(a=dp.mean("x", **bounds), b=dp.median("y", **bounds)),
        (("a",),): groups.agg(
            a=dp.mean("x", **bounds), b=dp.median("y", **bounds, max_rows=3), n=dp.count()
        ),
    }
    for names, query in cases.items():
        assert tuple(map(tuple, choice._columns_apart(question_of(query)))) == names
    assert (
        choice._columns_apart(question_of(groups.agg(n=dp.count(), s=dp.sum("x", **bounds)))) == []
    )


def test_with_limits_of_their_own_columns_are_what_they_are_in_a_question_with_these_limits(frame):
    query = frame.group_by("g", keys=KEYS, limits=dp.Auto()).agg(
        n=dp.count(), m=dp.mean("x", bounds=(0, 5))
    )
    made = choice.under_chosen(question_of(query), Limits(30), {"m": Limits(2)})
    typed = frame.group_by("g", keys=KEYS, max_rows=30).agg(
        n=dp.count(), m=dp.mean("x", bounds=(0, 5), max_rows=2)
    )
    assert made.sensitivity == question_of(typed).sensitivity


def test_every_column_may_get_limits_of_its_own(frame):
    """Some choices, by noise, were refused after the charge:
    with such limits for all columns nothing is to choose.
    """
    bounds = {"bounds": (0, 5)}
    twice = frame.with_columns(y=dp.col("x"))
    for groups, by in ((twice, False), (twice.group_by("g", keys=KEYS, limits=dp.Auto()), True)):
        asked = {"a": dp.mean("x", **bounds), "b": dp.median("y", **bounds)}
        query = groups.agg(**asked) if by else groups.agg(**asked, limits=dp.Auto())
        made = choice.under_chosen(question_of(query), Limits(30), {"a": Limits(2), "b": Limits(3)})
        asked = {"a": dp.mean("x", **bounds, max_rows=2), "b": dp.median("y", **bounds, max_rows=3)}
        typed = (
            twice.group_by("g", keys=KEYS, max_rows=30).agg(**asked) if by else twice.agg(**asked)
        )
        assert made.sensitivity == question_of(typed).sensitivity
