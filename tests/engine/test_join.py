"""Joins against a nested loop, and against their neighbours."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.rows import lower
from dpframe.errors import DpFrameError, EngineError, InvalidArgument, UnknownColumn, UnsupportedOperation, WrongType
from strategies import (
    CITIES,
    DAYS,
    LEVELS,
    answer,
    as_frame,
    bring,
    check_claims,
    random_plan,
    random_question,
    random_rows,
    rows_of_unit,
)


def rows_of(frame: dp.PrivateFrame, *names: str) -> Counter:
    """The rows of a protected frame of the test's own, in no order."""
    table = frame._step.table
    ids = [table.columns[name].id for name in names]
    return Counter(lower(frame._step, set(ids)).to_native().select(ids).collect().rows())


def regions(rng, most=3):
    """A public table with up to `most` rows for each city, some cities missing, some keys null."""
    rows = [
        (city, rng.randint(-5, 5), rng.choice(["n", "s", None]))
        for city in [*CITIES, "Nowhere", None]
        for _ in range(rng.randint(0, most))
    ]
    rng.shuffle(rows)
    return pl.DataFrame(rows, {"city": pl.String, "pop": pl.Int64, "side": pl.String}, orient="row")


# A public table


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_join_is_that_of_a_nested_loop(kind, how):
    rng = random.Random(f"{kind} {how}")
    for _ in range(8):
        rows, public = random_rows(rng, most=3), regions(rng)
        frame = dp.protect(bring(as_frame(rows), kind), unit="u")
        joined = frame.join(bring(public, rng.choice(["polars", "lazy", "pyarrow"])), on="city", how=how)
        expected = Counter()
        for row in rows:
            found = [
                there for there in public.rows() if row[0] is not None and row[4] is not None and there[0] == row[4]
            ]
            if how == "left" and row[0] is not None and not found:
                found = [(None, None, None)]
            expected.update((row[0], row[4], there[1], there[2]) for there in found)
        assert rows_of(joined, "u", "city", "pop", "side") == expected
        assert rows_of(joined, "u") == Counter((u,) for u, *_ in expected.elements())


def _joined(frame, public, how, on):
    if on not in frame.columns or "pop" in frame.columns:
        return frame
    try:
        return frame.join(public, on=on, how=how)
    except WrongType:
        return frame


def _publics(rng):
    days = pl.DataFrame({"day": [*DAYS, DAYS[0], None], "pop": [1, 2, None, 4, 5]}, {"day": pl.Date, "pop": pl.Int64})
    numbers = pl.DataFrame({"a": [0.0, 1.0, 1.0, 5.0, 100.0], "pop": [1, 2, 3, 4, 5]})
    return {"city": regions(rng), "day": days, "a": numbers}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows_as_unit", [False, True])
def test_one_unit_moves_totals_of_a_join_by_no_more_than_claimed(kind, relation, rows_as_unit):
    rng, held, drawn = random.Random(f"{kind} {relation} {rows_as_unit}"), 0, 0
    while held < 10:
        drawn += 1
        assert drawn < 150
        rows, question = random_rows(rng, most=4), random_question(rng, limited=not rows_as_unit)
        before, after, how = random_plan(rng), random_plan(rng), rng.choice(["inner", "left"])
        on, k = rng.choice(["city", "city", "day", "a"]), rng.choice([1, 1, 2, 4])
        public = _publics(rng)[on]
        whose = {"unit": dp.Rows(k) if rows_as_unit else "u", "neighbors": relation}
        if rows_as_unit:
            rng.shuffle(rows)
            other = rows[k:] + (rows_of_unit(rng, 9, k) if relation == "replace" else [])
        else:
            other = [row for row in rows if row[0] != 1]
            other += rows_of_unit(rng, rng.choice([1, 77]), rng.randint(1, 9)) if relation == "replace" else []
        try:
            query, neighbour = (
                question(after(_joined(before(dp.protect(bring(as_frame(r), kind), **whose)), public, how, on)))
                for r in (rows, other)
            )
            answer(query)
        except (DpFrameError, EngineError):
            continue
        check_claims(query, neighbour, salt=rng.getrandbits(64))
        held += 1


def test_declared_rows_are_multiplied_by_the_fan_out_and_it_is_reached():
    public = pl.DataFrame({"g": ["a", "a", "a", "b", None, None, None, None], "w": range(8)})
    frame = pl.DataFrame({"g": ["a", "a", "b", None], "x": [10.0, 10.0, 10.0, 10.0]})
    for how in ("inner", "left"):
        ask = lambda rows, how=how: (  # noqa: E731
            dp.protect(frame[rows], unit=dp.Rows(2))
            .join(public, on="g", how=how)
            .agg(n=dp.count(), s=dp.sum("x", bounds=(0, 10)))
        )
        query = ask([0, 1, 2, 3])
        assert {name: s.l1 for name, s in query.sensitivity.items()} == {"n": 6, "s": 60}
        for measured, claim in check_claims(query, ask([2, 3])):
            assert measured.l1 == claim.exact_l1
        assert "at most 6 rows, declared by dp.Rows(2), times 3 by join" in str(query.explain())
        assert "one person with at most 2 rows" in str(query.explain())


def test_one_public_row_per_key_multiplies_nothing():
    public = {"g": ["a", "b", None, None], "w": [1, 2, 3, 4]}
    frame = pl.DataFrame({"g": ["a", "c", None], "x": [1, 2, 3]})
    rows = dp.protect(frame, unit=dp.Rows(1), neighbors="replace")
    assert rows.join(public, on="g", how="left").count().sensitivity["count"].l1 == 0
    assert rows.join(public, on="g").count().sensitivity["count"].l1 == 1
    assert rows.join({"g": ["a", "a"]}, on="g", how="left").count().sensitivity["count"].l1 == 2
    assert (
        rows.join(pl.DataFrame(schema={"g": pl.String, "w": pl.Int64}), on="g", how="left")
        .count()
        .sensitivity["count"]
        .l1
        == 0
    )
    units = dp.protect(frame.with_columns(u=pl.col("x")), unit="u").per_unit(g=dp.min("x"), n=dp.count())
    assert units.join({"g": [1, 2], "w": [1, 2]}, on="g").count().sensitivity["count"].l1 == 1
    with pytest.raises(dp.errors.UnboundedContribution):
        units.join({"g": [1, 1], "w": [1, 2]}, on="g").count()
    bounded = units.bound(max_rows=5).join({"g": [1, 1], "w": [1, 2]}, on="g")
    assert bounded.count().sensitivity["count"].l1 == 5


def test_the_fan_out_is_that_of_keys_as_they_are_compared():
    """Two whole numbers that are one float, two texts of one category: each meets both."""
    public = pl.DataFrame({"k": [2**53, 2**53 + 1], "w": [1, 2]})
    rows = dp.protect(pl.DataFrame({"k": [2.0**53]}), unit=dp.Rows(1)).join(public, on="k")
    assert rows.count().sensitivity["count"].l1 == 2
    assert answer(rows.count())[0] == {(): 2}
    zeros = dp.protect(pl.DataFrame({"k": [0.0, -0.0]}), unit=dp.Rows(1)).join({"k": [0.0, -0.0], "w": [1, 2]}, on="k")
    assert zeros.count().sensitivity["count"].l1 == 2
    assert answer(zeros.count())[0] == {(): 4}


def test_a_public_table_that_changes_later_is_the_one_that_was_checked():
    values = np.array([1, 2, 3, 4])
    public = pd.DataFrame({"k": values, "w": [1.0, 2.0, 3.0, 4.0]}, copy=False)
    shared = pl.DataFrame({"k": values, "w": [1, 2, 3, 4]})
    private = dp.protect(pl.DataFrame({"k": [1, 1, 2]}), unit=dp.Rows(1))
    queries = [private.join(table, on="k").count() for table in (public, shared)]
    values[:] = 1
    public.loc[:, "k"] = 1
    for query in queries:
        assert query.sensitivity["count"].l1 == 1
        assert answer(query)[0] == {(): 3}


PAIRS = [
    (pl.Int8, pl.UInt64, [1, 2], True),
    (pl.Float64, pl.Int32, [1, 2], True),
    (pl.UInt64, pl.Int64, [1, 2**63 - 1], True),
    (pl.String, pl.Categorical, ["a", "b"], True),
    (pl.Enum(["a", "b"]), pl.String, ["a", "b"], True),
    (pl.Boolean, pl.Boolean, [True, False], True),
    (pl.Date, pl.Date, [dt.date(2020, 1, 1), dt.date(2020, 1, 2)], True),
    (pl.Datetime("us"), pl.Datetime("us"), [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)], True),
    (pl.Datetime("us"), pl.Datetime("ms"), [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)], False),
    (pl.Datetime("us"), pl.Datetime("us", "UTC"), None, False),
    (pl.Int64, pl.String, None, False),
    (pl.Boolean, pl.Int64, None, False),
    (pl.List(pl.Int64), pl.List(pl.Int64), None, False),
]


@pytest.mark.parametrize(("mine", "theirs", "keys", "meet"), PAIRS)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_which_types_meet(mine, theirs, keys, meet, how):
    frame = pl.DataFrame({"u": [1, 2, 3], "k": pl.Series([*(keys or [None] * 2), None], dtype=mine)})
    public = pl.DataFrame({"k": pl.Series([*(keys or [None] * 2), None], dtype=theirs), "w": [10, 20, 30]})
    private = dp.protect(frame, unit="u")
    if not meet:
        with pytest.raises(DpFrameError, match="'k'"):
            private.join(public, on="k", how=how)
        return
    expected = Counter([(1, 10), (2, 20)] + ([(3, None)] if how == "left" else []))
    assert rows_of(private.join(public, on="k", how=how), "u", "w") == expected


def test_what_is_known_of_public_columns_follows_their_types():
    public = pl.DataFrame(
        {"city": ["Bonn"], "size": pl.Series(["small"], dtype=pl.Enum(["small", "large"])), "sea": [True], "pop": [300]}
    )
    frame = dp.protect(as_frame([]), unit="u").join(public, on="city")
    facts = {name: column.facts for name, column in frame._step.table.columns.items()}
    assert facts["size"].keys == ("small", "large")
    assert facts["sea"].bounds == (0, 1)
    assert (facts["pop"].bounds, facts["pop"].nullable) == (None, True)
    with pytest.raises(dp.errors.MissingBounds):
        frame.sum("pop", max_rows=1)
    by = frame.group_by("size", max_groups=1, max_rows_per_group=1).count().release
    assert by.__self__._ask.keys.size == 2


def test_several_keys_and_the_unit_among_them(kind):
    rows = [(1, None, 5, 1.0, "Bonn", "low", True, DAYS[0]), (2, None, 6, 2.0, "Bonn", "mid", True, DAYS[0])]
    private = dp.protect(bring(as_frame(rows), kind), unit="u")
    public = {"city": ["Bonn", "Bonn"], "level": ["low", "high"], "pop": [7, 8]}
    assert rows_of(private.join(public, on=["city", "level"], how="left"), "u", "pop") == Counter([(1, 7), (2, None)])
    assert rows_of(private.join({"u": [1, 3], "pop": [7, 8]}, on="u"), "u", "pop") == Counter([(1, 7)])


def test_refusals_of_a_public_join():
    frame = dp.protect(as_frame([]), unit="u")
    public = {"city": ["Bonn"], "pop": [3]}
    for bad in ({"on": "nothing"}, {"on": "pop"}, {"on": "a"}):
        with pytest.raises(UnknownColumn):
            frame.join(public, **bad)
    with pytest.raises(InvalidArgument, match="'x'"):
        frame.join({"city": ["Bonn"], "x": [3]}, on="city")
    for bad in ({"on": "city", "how": "outer"}, {"on": []}, {"on": ["city", "city"]}, {"on": 3}):
        with pytest.raises(InvalidArgument):
            frame.join(public, **bad)
    with pytest.raises(InvalidArgument, match="one length"):
        frame.join({"city": ["Bonn", "Kiel"], "pop": [3]}, on="city")
    for other in ([1, 2], "table", None):
        with pytest.raises(UnsupportedOperation):
            frame.join(other, on="city")
    wide = pl.DataFrame({"city": ["Bonn"] * 2})
    with pytest.raises(UnsupportedOperation, match="too many"):
        dp.protect(as_frame([]), unit=dp.Rows(2**31 - 1)).join(wide, on="city")


def test_a_named_release_knows_its_public_table():
    rows = as_frame(random_rows(random.Random(4)))
    budget = dp.Budget(epsilon=10)
    joined = [
        dp.protect(rows, unit="u", budget=budget).join({"city": ["Bonn"], "pop": [size]}, on="city").count(max_rows=2)
        for size in (3, 3, 4)
    ]
    first = joined[0].release(epsilon=1, name="joined")
    assert joined[1].release(epsilon=1, name="joined").value == first.value
    assert budget.spent.epsilon == 1
    with pytest.raises(dp.errors.ReleaseMismatch):
        joined[2].release(epsilon=1, name="joined")


def test_levels_of_a_join_are_released_whatever_the_data_holds(kind):
    sizes = pl.DataFrame({"city": CITIES[:3], "size": pl.Series(LEVELS, dtype=pl.Enum(LEVELS))})
    for rows in ([], random_rows(random.Random(5))):
        frame = dp.protect(bring(as_frame(rows), kind), unit="u", budget=dp.Budget(epsilon=1))
        out = frame.join(sizes, on="city").group_by("size", max_groups=3, max_rows_per_group=2).count()
        assert out.release(epsilon=1).to_polars()["size"].to_list() == LEVELS
