"""Joins compared with a nested loop, and their totals on neighbouring tables."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.stages import lower
from dpframe.errors import (
    DpFrameError,
    EngineError,
    InvalidArgument,
    UnknownColumn,
    UnsupportedOperation,
    WrongType,
)
from inside import question_of, step_of
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
    """The rows of a protected frame that the test made, in any order."""
    table = step_of(frame).table
    ids = [table.columns[name].id for name in names]
    return Counter(lower(step_of(frame), set(ids)).to_native().select(ids).collect().rows())


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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_join_is_that_of_a_nested_loop(kind, how):
    rng = random.Random(f"{kind} {how}")
    for _ in range(8):
        rows, public = random_rows(rng, most=3), regions(rng)
        frame = dp.protect(bring(as_frame(rows), kind), unit="u")
        joined = frame.join(
            bring(public, rng.choice(["polars", "lazy", "pyarrow"])), on="city", how=how
        )
        expected = Counter()
        for row in rows:
            found = [
                there
                for there in public.rows()
                if row[0] is not None and row[4] is not None and there[0] == row[4]
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
    days = pl.DataFrame(
        {"day": [*DAYS, DAYS[0], None], "pop": [1, 2, None, 4, 5]},
        {"day": pl.Date, "pop": pl.Int64},
    )
    numbers = pl.DataFrame({"a": [0.0, 1.0, 1.0, 5.0, 100.0], "pop": [1, 2, 3, 4, 5]})
    return {"city": regions(rng), "day": days, "a": numbers}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows_as_unit", [False, True])
def test_one_unit_moves_totals_of_a_join_by_no_more_than_claimed(kind, relation, rows_as_unit):
    rng, held, drawn = random.Random(f"{kind} {relation} {rows_as_unit}"), 0, 0
    while held < 4:
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
            other += (
                rows_of_unit(rng, rng.choice([1, 77]), rng.randint(1, 9))
                if relation == "replace"
                else []
            )
        try:
            query, neighbour = (
                question(
                    after(
                        _joined(
                            before(dp.protect(bring(as_frame(r), kind), **whose)), public, how, on
                        )
                    )
                )
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
    units = dp.protect(frame.with_columns(u=pl.col("x")), unit="u").per_unit(
        g=dp.min("x"), n=dp.count()
    )
    assert units.join({"g": [1, 2], "w": [1, 2]}, on="g").count().sensitivity["count"].l1 == 1
    with pytest.raises(dp.errors.UnboundedContribution):
        units.join({"g": [1, 1], "w": [1, 2]}, on="g").count()
    bounded = units.bound(max_rows=5).join({"g": [1, 1], "w": [1, 2]}, on="g")
    assert bounded.count().sensitivity["count"].l1 == 5


def test_the_fan_out_is_that_of_keys_as_they_are_compared():
    """Two integers that are equal as floats, and two texts of one
    category: each row matches both.
    """
    public = pl.DataFrame({"k": [2**53, 2**53 + 1], "w": [1, 2]})
    rows = dp.protect(pl.DataFrame({"k": [2.0**53]}), unit=dp.Rows(1)).join(public, on="k")
    assert rows.count().sensitivity["count"].l1 == 2
    assert answer(rows.count())[0] == {(): 2}
    zeros = dp.protect(pl.DataFrame({"k": [0.0, -0.0]}), unit=dp.Rows(1)).join(
        {"k": [0.0, -0.0], "w": [1, 2]}, on="k"
    )
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
    (
        pl.Datetime("us"),
        pl.Datetime("us"),
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)],
        True,
    ),
    (
        pl.Datetime("us"),
        pl.Datetime("ms"),
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)],
        False,
    ),
    (pl.Datetime("us"), pl.Datetime("us", "UTC"), None, False),
    (pl.Int64, pl.String, None, False),
    (pl.Boolean, pl.Int64, None, False),
    (pl.List(pl.Int64), pl.List(pl.Int64), None, False),
]


@pytest.mark.parametrize(("mine", "theirs", "keys", "meet"), PAIRS)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_which_types_meet(mine, theirs, keys, meet, how):
    frame = pl.DataFrame(
        {"u": [1, 2, 3], "k": pl.Series([*(keys or [None] * 2), None], dtype=mine)}
    )
    public = pl.DataFrame(
        {"k": pl.Series([*(keys or [None] * 2), None], dtype=theirs), "w": [10, 20, 30]}
    )
    private = dp.protect(frame, unit="u")
    if not meet:
        with pytest.raises(DpFrameError, match="'k'"):
            private.join(public, on="k", how=how)
        return
    expected = Counter([(1, 10), (2, 20)] + ([(3, None)] if how == "left" else []))
    assert rows_of(private.join(public, on="k", how=how), "u", "w") == expected


def test_what_is_known_of_public_columns_follows_their_types():
    public = pl.DataFrame(
        {
            "city": ["Bonn"],
            "size": pl.Series(["small"], dtype=pl.Enum(["small", "large"])),
            "sea": [True],
            "pop": [300],
        }
    )
    frame = dp.protect(as_frame([]), unit="u").join(public, on="city")
    facts = {name: column.domain for name, column in step_of(frame).table.columns.items()}
    assert facts["size"].keys == ("small", "large")
    assert facts["sea"].bounds == (0, 1)
    assert (facts["pop"].bounds, facts["pop"].nullable) == (None, True)
    with pytest.raises(dp.errors.MissingBounds):
        frame.sum("pop", max_rows=1)
    by = frame.group_by("size", max_groups=1, max_rows_per_group=1).count().release
    assert question_of(by.__self__).keys.size == 2


def test_several_keys_and_the_unit_among_them(kind):
    rows = [
        (1, None, 5, 1.0, "Bonn", "low", True, DAYS[0]),
        (2, None, 6, 2.0, "Bonn", "mid", True, DAYS[0]),
    ]
    private = dp.protect(bring(as_frame(rows), kind), unit="u")
    public = {"city": ["Bonn", "Bonn"], "level": ["low", "high"], "pop": [7, 8]}
    assert rows_of(private.join(public, on=["city", "level"], how="left"), "u", "pop") == Counter(
        [(1, 7), (2, None)]
    )
    assert rows_of(private.join({"u": [1, 3], "pop": [7, 8]}, on="u"), "u", "pop") == Counter(
        [(1, 7)]
    )


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
        dp.protect(rows, unit="u", budget=budget)
        .join({"city": ["Bonn"], "pop": [size]}, on="city")
        .count(max_rows=2)
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
        out = (
            frame.join(sizes, on="city")
            .group_by("size", max_groups=3, max_rows_per_group=2)
            .count()
        )
        assert out.release(epsilon=1).to_polars()["size"].to_list() == LEVELS


# Another protected table of the same units


TYPES = {"u": pl.Int64, "city": pl.String, "y": pl.Float64, "flag": pl.Boolean}


def others(rng, units=5):
    """A second table about the units, with units that the first one lacks
    and rows without an identifier.
    """
    rows = [
        (
            rng.choice([None, *range(units + 2)]),
            rng.choice([*CITIES, None]),
            rng.choice([None, rng.gauss(0, 5)]),
            None,
        )
        for _ in range(rng.randint(0, 12))
    ]
    return [(*row[:3], rng.choice([True, False, None])) for row in rows]


def second(rows, kind="polars"):
    frame = pl.DataFrame(rows, TYPES, orient="row")
    if kind == "pandas":
        return frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    return bring(frame, kind) if kind != "polars" else frame


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("on", ["u", ["u", "city"]])
def test_a_join_of_protected_tables_is_that_of_a_nested_loop(kind, how, on):
    rng = random.Random(f"{kind} {how} {on}")
    for _ in range(4):
        rows, more = random_rows(rng, most=3), others(rng)
        left, right = (
            dp.protect(bring(as_frame(rows), kind), unit="u"),
            dp.protect(second(more, kind), unit="u"),
        )
        right = right if on != "u" else right.rename({"city": "place"})
        expected = Counter()
        for row in rows:
            if row[0] is None:
                continue
            found = [
                m
                for m in more
                if m[0] == row[0] and (on == "u" or (m[1] is not None and m[1] == row[4]))
            ]
            found = found or ([(None,) * 4] if how == "left" else [])
            expected.update((row[0], row[4], m[2], m[3]) for m in found)
        assert rows_of(left.join(right, on=on, how=how), "u", "city", "y", "flag") == expected


def _both(rows, more, kind, whose, form, plans):
    """Two tables that are joined, in one of several ways."""
    budget = dp.Budget(epsilon=1, delta=1e-6)
    left = plans[0](dp.protect(bring(as_frame(rows), kind), budget=budget, **whose))
    if form == "features":
        units = dp.protect(bring(as_frame(rows), kind), budget=budget, **whose).per_unit(
            k=dp.count(), z=dp.mean("x")
        )
        return left.join(units, on="u", how="left")
    if form == "concat":
        right = plans[1](dp.protect(bring(as_frame(more), kind), budget=budget, **whose))
        shared = [name for name in left.columns if name in right.columns]
        return dp.concat([left.select(shared), right.select(shared), left.select(shared)])
    right = dp.protect(second(more, kind), budget=budget, **whose)
    right = right if form.endswith("city") else right.rename({"city": "place"})
    return left.join(right, on=["u", "city"] if form.endswith("city") else "u", how=form.split()[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("form", ["inner", "left", "left city", "features", "concat"])
def test_one_unit_of_two_tables_moves_totals_by_no_more_than_claimed(kind, relation, form):
    rng, held, drawn = random.Random(f"{kind} {relation} {form}"), 0, 0
    while held < 2:
        drawn += 1
        assert drawn < 80
        plans = random_plan(rng), random_plan(rng), random_plan(rng)
        question, rows = random_question(rng), random_rows(rng, most=4)
        more = others(rng) if form != "concat" else random_rows(rng, most=4)
        other, other_more = ([row for row in table if row[0] != 1] for table in (rows, more))
        if relation == "replace":
            mine = rows_of_unit(rng, 77, rng.randint(0, 6))
            extra = (
                rows_of_unit(rng, 77, rng.randint(0, 6))
                if form == "concat"
                else [(77, "Bonn", 3.0, True)] * rng.randint(0, 6)
            )
            other, other_more = other + mine, other_more + extra
        whose = {"unit": "u", "neighbors": relation}
        try:
            query, neighbour = (
                question(plans[2](_both(one, two, kind, whose, form, plans)))
                for one, two in ((rows, more), (other, other_more))
            )
            answer(query)
        except (DpFrameError, EngineError):
            continue
        check_claims(query, neighbour, salt=rng.getrandbits(64))
        held += 1


def test_a_unit_that_only_the_other_table_knows_may_vanish():
    """Exchanging a unit exchanges one row for one row only if every unit surely has a row."""
    budget = dp.Budget(epsilon=1)
    whose = {"unit": "u", "neighbors": "replace", "budget": budget}
    visits = dp.protect(pl.DataFrame({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0]}), **whose)
    people = dp.protect(pl.DataFrame({"u": [1, 3], "age": [5, 6]}), **whose)
    one, two = visits.per_unit(n=dp.count()), people.per_unit(m=dp.count())
    assert one.join(two, on="u", how="left").count().sensitivity["count"].l1 == 1
    assert one.join(two, on="u").count().sensitivity["count"].l1 == 1
    same = visits.per_unit(total=dp.sum("x"))
    assert one.join(same, on="u").count().sensitivity["count"].l1 == 0
    assert one.join(same, on="u", how="left").count().sensitivity["count"].l1 == 0
    assert one.join(same.filter(dp.col("total") > 1), on="u").count().sensitivity["count"].l1 == 1
    assert dp.concat([visits, visits]).per_unit(n=dp.count()).count().sensitivity["count"].l1 == 0
    half = visits.filter(dp.col("x") > 1)
    assert dp.concat([visits, half]).per_unit(n=dp.count()).count().sensitivity["count"].l1 == 1


def test_limits_are_enforced_after_the_join_and_nothing_is_multiplied():
    budget = dp.Budget(epsilon=1)
    visits = dp.protect(pl.DataFrame({"u": [1] * 4, "x": [1.0] * 4}), unit="u", budget=budget)
    orders = dp.protect(pl.DataFrame({"u": [1] * 5, "y": [1.0] * 5}), unit="u", budget=budget)
    joined = visits.bound(max_rows=9).join(orders, on="u")
    assert answer(joined.count())[0] == {(): 9}
    assert joined.count().sensitivity["count"].l1 == 9
    assert joined.count(max_rows=3).sensitivity["count"].l1 == 3
    with pytest.raises(dp.errors.UnboundedContribution):
        visits.join(orders, on="u").count()
    with pytest.raises(dp.errors.UnboundedContribution):
        visits.per_unit(n=dp.count()).join(orders, on="u").count()
    features = visits.per_unit(n=dp.count()).join(orders.per_unit(m=dp.count()), on="u")
    assert features.count().sensitivity["count"].l1 == 1
    both = dp.concat([visits, orders.rename({"y": "x"})])
    assert answer(both.count(max_rows=20))[0] == {(): 9}
    assert answer(both.count(max_rows=6))[0] == {(): 6}
    assert both.count(max_rows=6).sensitivity["count"].l1 == 6
    shown = str(joined.count().explain())
    assert "· dp(unit='u'" in shown
    assert "join(protected table, on='u', how='inner')" in shown


def test_a_bigger_joined_self_keeps_units_apart(kind):
    """Each visit beside its unit's total: the sum of squares by another way."""
    frame = pl.DataFrame({"u": [1, 1, 2, 3], "x": [1.0, 2.0, 3.0, 4.0]})
    table = frame.to_pandas() if kind == "pandas" else bring(frame, kind)
    visits = dp.protect(table, unit="u")
    joined = visits.join(visits.per_unit(total=dp.sum("x")), on="u").with_columns(
        z=dp.col("x") * dp.col("total")
    )
    assert rows_of(joined, "u", "z") == Counter([(1, 3.0), (1, 6.0), (2, 9.0), (3, 16.0)])
    joined = visits.drop("u")
    with pytest.raises(UnknownColumn):
        joined.join(visits.per_unit(total=dp.sum("x")), on="u")


@pytest.mark.parametrize(
    ("mine", "theirs", "meet"),
    [
        (pl.Int64, pl.Int32, True),
        (pl.UInt8, pl.Int64, True),
        (pl.UInt64, pl.UInt64, True),
        (pl.String, pl.Categorical, True),
        (pl.Int64, pl.UInt64, False),
        (pl.Int64, pl.Float64, False),
        (pl.Int64, pl.String, False),
        (pl.Float32, pl.Float64, False),
    ],
)
def test_identifiers_meet_only_where_none_is_rounded(mine, theirs, meet):
    ids = ["7", "8"] if mine == pl.String else [7, 8]
    left = dp.protect(pl.DataFrame({"u": pl.Series(ids, dtype=mine), "x": [1, 2]}), unit="u")
    other = pl.DataFrame({"u": pl.Series(["7", "9"]).cast(theirs), "y": [3, 4]})
    right = dp.protect(other, unit="u")
    if not meet:
        for ask in (
            lambda: left.join(right, on="u"),
            lambda: dp.concat([left, right.rename({"y": "x"})]),
        ):
            with pytest.raises(WrongType, match="unit"):
                ask()
        return
    assert rows_of(left.join(right, on="u"), "x", "y") == Counter([(1, 3)])
    both = dp.concat([left, right.rename({"y": "x"})])
    assert rows_of(both, "x") == Counter([(1,), (2,), (3,), (4,)])
    assert answer(both.count_units())[0] == {(): 3}


def test_a_composite_unit_must_be_named_whole():
    budget = dp.Budget(epsilon=1)
    left, right = (
        dp.protect(
            pl.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "x"], name: [1, 2, 3]}),
            unit=("a", "b"),
            budget=budget,
        )
        for name in ("p", "q")
    )
    assert rows_of(left.join(right, on=["b", "a"]), "p", "q") == Counter([(1, 1), (2, 2), (3, 3)])
    for on in ("a", "b"):
        with pytest.raises(UnsupportedOperation, match="identify"):
            left.join(right, on=on)
    swapped = right.rename({"a": "b", "b": "a"})
    with pytest.raises(UnsupportedOperation, match="identify"):
        left.join(swapped, on=["a", "b"])
    hidden = dp.concat([left.select("p"), right.select("q").rename({"q": "p"})])
    assert answer(hidden.count_units())[0] == {(): 3}
    with pytest.raises(UnsupportedOperation, match="same names"):
        dp.concat([left.drop("p"), swapped.drop("q")])


def test_refusals_of_several_protected_tables():
    frame, budget = pl.DataFrame({"u": [1], "v": [1], "x": [1.0]}), dp.Budget(epsilon=1)
    here = dp.protect(frame, unit="u", budget=budget)
    there = {
        "rows": (dp.protect(frame, unit=dp.Rows(1), budget=budget), UnsupportedOperation),
        "unit": (dp.protect(frame, unit="v", budget=budget), UnsupportedOperation),
        "relation": (
            dp.protect(frame, unit="u", budget=budget, neighbors="replace"),
            UnsupportedOperation,
        ),
        "budget": (
            dp.protect(frame, unit="u", budget=dp.Budget(epsilon=1)),
            dp.errors.BudgetMismatch,
        ),
        "none": (dp.protect(frame, unit="u"), dp.errors.BudgetMismatch),
    }
    for other, error in there.values():
        for first, next_ in ((here, other), (other, here)):
            with pytest.raises(error):
                dp.concat([first, next_])
            with pytest.raises(error):
                first.join(
                    next_.rename({"x": "y"}).drop("v") if "v" in next_.columns else next_, on="u"
                )
    with pytest.raises(InvalidArgument, match="'x'"):
        here.join(here.drop("v"), on="u")
    for frames in ([], [1], "ab", [here, frame], None):
        with pytest.raises(InvalidArgument):
            dp.concat(frames)
    with pytest.raises(InvalidArgument, match="'x'"):
        dp.concat([here, here.drop("x")])
    with pytest.raises(WrongType, match="'x'"):
        dp.concat([here, here.with_columns(x="text")])
    assert dp.concat([here]) is here


def test_what_is_known_of_columns_one_below_the_other():
    frame = dp.protect(as_frame([]), unit="u")
    first = frame.clip("a", 0, 5).clip("x", 0, 1).fill_null("x", 0.5)
    made = dp.concat(
        [first, frame.clip("a", 3, 9).cast("x", "int8").clip("x", -2, 0).fill_null("x", 0)]
    )
    facts = {name: column.domain for name, column in step_of(made).table.columns.items()}
    assert facts["a"].bounds == (0, 9)
    assert (facts["x"].bounds, str(facts["x"].dtype), facts["x"].nullable) == (
        (-2, 1),
        "Float64",
        False,
    )
    assert facts["level"].keys == tuple(LEVELS)
    cut = dp.concat([frame.cut("x", [0, 1], into="level"), frame])
    assert step_of(cut).table.columns["level"].domain.keys is None
    with pytest.raises(UnsupportedOperation, match="one unit"):
        made.group_by("u", max_groups=1)


def test_releases_about_several_tables_are_charged_and_named_once():
    budget = dp.Budget(epsilon=1)
    visits, orders = (
        dp.protect(pl.DataFrame({"u": [1, 2], name: [1.0, 2.0]}), unit="u", budget=budget)
        for name in ("x", "y")
    )
    query = visits.join(orders, on="u").sum("y", bounds=(0, 3), max_rows=4)
    first = query.release(epsilon=0.25, name="joined")
    assert query.release(epsilon=0.25, name="joined").value == first.value
    assert budget.spent.epsilon == 0.25
    with pytest.raises(dp.errors.ReleaseMismatch):
        visits.join(orders.clip("y", 0, 1), on="u").sum("y", bounds=(0, 3), max_rows=4).release(
            epsilon=0.25, name="joined"
        )
    dp.concat([visits, orders.rename({"y": "x"})]).count_units().release(epsilon=0.25)
    with pytest.raises(UnsupportedOperation, match="made-up"):
        query.exact_totals(pl.DataFrame({"u": [1], "x": [1.0]}))
    own = visits.join(visits.per_unit(n=dp.count()), on="u").count(max_rows=5)
    assert own.exact_totals(pl.DataFrame({"u": [1, 1], "x": [1.0, 2.0]})) == {"count": {(): 2}}


def test_decimal_identifiers_of_different_scales_are_no_identifiers_of_the_same_units():
    """Compared as texts, 1.0 and 1.00 differ: one person counted as two units,
    each with the full contribution.
    """
    budget = dp.Budget(epsilon=1)
    one, two = (
        pl.DataFrame({"u": ["1.0", "2.0"], "x": [1, 2]}, schema={"u": pl.String, "x": pl.Int64})
        .with_columns(pl.col("u").cast(pl.Decimal(10, scale)))
        .dp(unit="u", budget=budget)
        for scale in (1, 2)
    )
    with pytest.raises(WrongType, match="of type Decimal"):
        dp.concat([one, two]).count_units()
    with pytest.raises(WrongType, match="of type Decimal"):
        one.join(two.rename({"x": "y"}), on="u")
