"""Columns with limits of their own: each total is what it is in a question of this
column alone, on every engine.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as engines
from dpframe.errors import (
    InvalidArgument,
    ReleaseMismatch,
    UnboundedContribution,
    UnsupportedOperation,
)
from dpframe.plan import Covers
from inside import numbers_of, question_of

GROUPS = {"max_groups": 2, "max_rows_per_group": 3}
KEYS = ["a", "b", "c", "d", "e"]
_BOUNDS = {"bounds": (0, 9)}
COLUMNS = {
    "n": (dp.count, [], {}, {"max_rows": 9, "max_groups": 4}),
    "k": (dp.count_units, [], {}, {"max_groups": 1}),
    "m": (dp.mean, ["x"], _BOUNDS, {"max_rows": 1}),
    "v": (dp.var, ["x"], _BOUNDS, {"max_rows": 1}),
    "s": (dp.sum, ["x"], _BOUNDS, {"max_rows_per_group": 1}),
    "d": (dp.n_unique, ["x"], {}, {"max_rows": 3}),
    "q": (dp.median, ["x"], _BOUNDS, {"max_rows": 2}),
    "w": (dp.mode, ["c"], {"keys": ["a", "b"]}, {"max_groups": 3}),
}


def table(units=40, seed=5):
    rng = random.Random(seed)
    rows = [
        {"u": unit, "c": rng.choice(KEYS), "x": rng.choice([0.5, 2.0, 7.25, None])}
        for unit in range(units)
        for _ in range(rng.choice([1, 2, 5, 12]))
    ]
    return pl.DataFrame(rows, {"u": pl.Int64, "c": pl.String, "x": pl.Float64})


TABLE = table()


def named_totals(query, salt=11):
    """The exact totals of a question by their names, as far as its groups reach."""
    raw, read = engines.totals(question_of(query), salt), question_of(query).read
    return {
        name: values for paid, values in zip(read, raw.values, strict=True) for name in paid.names
    }, raw.keys


def own(name, limited=True):
    make, arguments, options, limits = COLUMNS[name]
    return make(*arguments, **options, **(limits if limited else {}))


@pytest.mark.spark
@pytest.mark.one_in(4)
def test_a_column_has_the_totals_of_a_question_of_its_own(engine):
    frame = dp.protect(engine(TABLE), unit="u")
    together = frame.group_by("c", keys=KEYS, **GROUPS).agg(
        base=dp.count(), **{name: own(name) for name in COLUMNS}
    )
    totals, _ = named_totals(together)
    names = list(COLUMNS) if engine.name not in ("spark", "postgres") else ["n", "m", "d", "q"]
    for name in names:
        alone = frame.group_by("c", keys=KEYS, **{**GROUPS, **COLUMNS[name][3]}).agg(
            **{name: own(name, limited=False)}
        )
        for total, values in named_totals(alone)[0].items():
            assert np.array_equal(values, totals[total]), (name, total)
        sensitivity = alone.sensitivity
        assert {total: together.sensitivity[total] for total in sensitivity} == sensitivity
    assert np.array_equal(
        named_totals(frame.group_by("c", keys=KEYS, **GROUPS).count())[0]["count"], totals["base"]
    )


@pytest.mark.one_in(3)
def test_groups_that_only_a_column_reaches_are_not_found(engine):
    """A unit with five groups keeps one by the limits of the question,
    and five by those of the column.
    """
    rows = pl.DataFrame({"u": [1] * 5, "c": KEYS})
    frame = dp.protect(engine(rows), unit="u")
    query = frame.group_by("c", max_groups=1).agg(
        k=dp.count_units(), n=dp.count(max_groups=5, max_rows_per_group=1)
    )
    totals, keys = named_totals(query)
    assert keys.height == 1
    assert totals["k"].tolist() == [1]
    assert query.sensitivity["n"].l0 == 5


@pytest.mark.one_in(3)
def test_columns_without_groups(engine):
    frame = dp.protect(engine(pl.DataFrame({"u": [1] * 7 + [2], "x": [1.0] * 8})), unit="u")
    query = frame.agg(
        n=dp.count(max_rows=5), s=dp.sum("x", bounds=(0, 3), max_rows=2), k=dp.count_units()
    )
    totals, _ = named_totals(query)
    unit = {name: paid.total.unit for paid in question_of(query).read for name in paid.names}
    assert {name: int(totals[name][0]) * unit[name] for name in ("n", "s", "k")} == {
        "n": 6,
        "s": 3,
        "k": 2,
    }


@pytest.mark.parametrize("covers", list(Covers))
def test_columns_with_equal_limits_share_their_totals(covers):
    frame = dp.protect(TABLE.drop_nulls(), unit="u").drop_nulls("x")
    groups = frame.group_by("c", keys=KEYS, max_rows=4)
    query = groups.agg(
        a=dp.mean("x", **_BOUNDS, max_rows=2),
        b=dp.sum("x", **_BOUNDS, max_rows=2),
        n=dp.count(max_rows=2),
    )
    names = [paid.names for paid in question_of(query).covering(covers).allotments]
    assert ("a.count", "n") in names
    default = groups.agg(
        a=dp.mean("x", **_BOUNDS), b=dp.mean("x", **_BOUNDS, max_rows=4), n=dp.count(max_rows=4)
    )
    assert [paid.names for paid in question_of(default).allotments] == [
        ("a.sum", "b.sum"),
        ("a.count", "b.count", "n"),
    ]
    assert all(paid.total.limits is None for paid in question_of(default).allotments)


def test_a_limit_of_an_earlier_step_holds_for_each_column():
    query = (
        dp.protect(TABLE, unit="u")
        .bound(max_rows=3)
        .agg(n=dp.count(max_rows=50), k=dp.count(max_rows=2))
    )
    assert {name: bound.l1 for name, bound in query.sensitivity.items()} == {"n": 3, "k": 2}


def test_what_a_limit_of_a_column_cannot_be():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=9))
    rows = dp.protect(TABLE.drop("u"), unit=dp.Rows(2))
    cases = [
        (UnsupportedOperation, "dp.Rows", lambda: rows.agg(n=dp.count(max_rows=1))),
        (
            UnsupportedOperation,
            "other=",
            lambda: frame.group_by("c", max_rows=2, other="z").agg(n=dp.count(max_rows=1)),
        ),
        (InvalidArgument, "Type max_rows=5", lambda: frame.agg(n=dp.count(max_groups=2))),
        (InvalidArgument, "limits a unit", lambda: frame.per_unit(n=dp.count(max_rows=2))),
        (
            InvalidArgument,
            "same limits",
            lambda: dp.ratio(dp.sum("x", **_BOUNDS, max_rows=2), dp.sum("x", (0, 1))),
        ),
        (InvalidArgument, "limits=dp.Auto", lambda: dp.count(max_rows=dp.Auto())),
        (
            InvalidArgument,
            "each column has limits of its own",
            lambda: frame.group_by("c", keys=KEYS, limits=dp.Auto()).agg(n=dp.count(max_rows=2)),
        ),
        (
            UnboundedContribution,
            "max_groups",
            lambda: frame.group_by("c").agg(n=dp.count(max_rows=2)),
        ),
        (
            UnsupportedOperation,
            "limits of its own",
            lambda: frame.agg(n=dp.count(max_rows=2)).tune({"max_rows": [1]}, epsilon=0.1),
        ),
    ]
    for error, words, call in cases:
        with pytest.raises(error, match=words):
            call()


def test_explanation_and_report_state_each_limit():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=9))
    query = frame.group_by("c", keys=KEYS, max_rows=4).agg(
        n=dp.count(), m=dp.mean("x", **_BOUNDS, max_rows=1)
    )
    words = (
        "at most 4 groups, at most 4 rows in all: enforced here by weights; for m: at most 1 "
        "group, at most 1 row in"
    )
    for text in (str(query.explain()), str(query.release(epsilon=1.0).report())):
        assert words in text
        assert "m=mean('x', bounds=(0, 9), max_rows=1)" in text
    assert repr(dp.mean("x", max_rows=2, share=3)) == "dp.mean('x', max_rows=2, share=3)"


def test_a_name_stands_for_the_limits_of_each_column():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=9))
    first = frame.agg(n=dp.count(max_rows=2)).release(epsilon=1.0, name="once")
    assert frame.agg(n=dp.count(max_rows=2)).release(epsilon=1.0, name="once").value == first.value
    with pytest.raises(ReleaseMismatch):
        frame.agg(n=dp.count(max_rows=3)).release(epsilon=1.0, name="once")
    with pytest.raises(ReleaseMismatch):
        frame.agg(n=dp.count(), max_rows=2).release(epsilon=1.0, name="once")


def test_chosen_limits_leave_those_of_a_column():
    frame = dp.protect(table(200), unit="u", budget=dp.Budget(epsilon=99))
    groups = frame.group_by("c", keys=[*KEYS, *map(str, range(9))], limits=dp.Auto())
    out = groups.agg(
        m=dp.mean("x", **_BOUNDS, max_rows=2), s=dp.sum("x", **_BOUNDS, max_rows=2), n=dp.count()
    ).release(epsilon=9.0)
    (m, s, n) = numbers_of(out).outputs
    assert m.totals[0][1].limits.max_rows == s.totals[0][1].limits.max_rows == 2
    assert numbers_of(out).factor_of(s) == 1
    assert n.totals[0][1].limits is None


def test_a_difference_of_groups_knows_whether_people_are_in_both():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=9))
    out = (
        frame.group_by("c", keys=KEYS, max_rows=4)
        .agg(a=dp.count(max_groups=1), b=dp.count())
        .release(epsilon=1.0)
    )
    first, second = numbers_of(out).outputs
    assert numbers_of(out).apart(first)
    assert not numbers_of(out).apart(second)
    assert replace(numbers_of(out), unit_limits=first.totals[0][1].limits).apart(second)
