"""Kept plans: the totals are those of a plan that is compiled for one question, and a plan holds no row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as room
from dpframe.engine import prepared
from dpframe.errors import EngineError


def table(seed=1, rows=400):
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "u": draw.integers(0, 60, rows),
            "g": draw.choice(["a", "b", "c", None], rows).tolist(),
            "x": draw.normal(size=rows) * 3,
        },
        schema_overrides={"g": pl.String},
    )


def questions(frame):
    """Questions with and without groups, limits that choose groups, ranks, distinct values and steps."""
    groups = frame.group_by("g", keys=["a", "b", "c"], max_groups=1, max_rows_per_group=2)
    found = frame.group_by("g", max_groups=2, max_rows=3)
    steps = frame.filter(dp.col("x") > -2).with_columns(y=dp.col("x") * 2).fill_null("g", "none").rename({"x": "z"})
    return [
        frame.count(max_rows=3),
        frame.agg(m=dp.mean("x", bounds=(-2, 2)), q=dp.median("x", bounds=(-2, 2)), max_rows=2),
        groups.agg(n=dp.count(), d=dp.n_unique("x"), own=dp.count(max_rows=4)),
        found.agg(n=dp.count(), v=dp.var("x", bounds=(-2, 2))),
        steps.group_by("g", keys=["a", "none"], max_rows=3).agg(s=dp.sum("y", bounds=(-1, 9))),
        frame.histogram("x", [-3, 0, 3], max_rows=2, max_groups=1),
    ]


def totals_of(query, salt):
    raw = room.totals(query._question, salt)
    order = [str(row) for row in raw.keys.rows()]
    return order, [np.asarray(value).tolist() for value in raw.values]


@pytest.mark.parametrize("few", [0, 2**16])  # with Polars' optimizer, and without it
@pytest.mark.parametrize("convert", [lambda rows: rows, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_a_kept_plan_has_the_totals_of_a_new_one(convert, few, monkeypatch):
    """A lazy table has no kept plan."""
    monkeypatch.setattr(prepared, "_FEW", few)
    for seed in (1, 2):  # the second table runs on the plans of the first
        rows = table(seed)
        kept, new = (questions(dp.protect(one, unit="u")) for one in (convert(rows), rows.lazy()))
        for one, other in zip(kept, new, strict=True):
            assert prepared._small_table(one._question) is not None
            assert prepared._small_table(other._question) is None
            for salt in (3, 4):
                assert totals_of(one, salt) == totals_of(other, salt)


def test_plans_of_many_listed_groups_are_not_kept():
    """To compare their keys takes as long as to compile."""
    rows = pl.DataFrame({"u": [1, 2], "k": [1, 2]})
    few, many = (
        dp.protect(rows, unit="u").group_by("k", keys=range(size), max_groups=1, max_rows=1).count()
        for size in (prepared._GROUPS, prepared._GROUPS + 1)
    )
    assert prepared._small_table(few._question) is not None
    assert prepared._small_table(many._question) is None


def plans():
    return [plan for kept in prepared._plans.values() for plan in kept]


def with_type(query, dtype, *, empty_too):
    """The question over a table whose column x is read in another type than its schema says."""
    source = query._question.step

    def scan(names, *, empty=False):
        rows = source.data.scan(names, empty=empty)
        return rows.with_columns(pl.col("x").cast(dtype)) if "x" in names and (empty_too or not empty) else rows

    return replace(query._question, step=replace(source, data=replace(source.data, scan=scan)))


def test_a_plan_is_not_used_for_columns_of_other_types():
    """Descriptions may be equal where Polars holds the columns in other types; the plans are not."""
    query = dp.protect(table(), unit="u").sum("x", bounds=(0, 5), max_rows=2)
    other = with_type(query, pl.Float32, empty_too=True)
    prepared.forget()
    expected = room.totals(query._question, 1).values[0].tolist()
    assert prepared._key(other) == prepared._key(query._question)
    assert [plan.fits(query._question) for plan in plans()] == [True]
    assert [plan.fits(other) for plan in plans()] == [False]
    room.totals(other, 1)
    assert len(plans()) == 2
    assert room.totals(query._question, 1).values[0].tolist() == expected


def test_rows_of_other_types_than_the_table_said_are_read_without_a_plan():
    query = dp.protect(table(), unit="u").sum("x", bounds=(0, 5), max_rows=2)
    strange = with_type(query, pl.Float32, empty_too=False)
    prepared.forget()
    with prepared.kept(strange) as plan:
        assert plan.tables(strange, 0) is None
        assert plan.tables(query._question, 0) is not None
    assert room.totals(strange, 0).values[0].shape == (1,)


def test_categories_of_a_type_are_those_of_its_plan():
    """Tables that differ in the categories of an Enum alone have plans of their own."""
    prepared.forget()
    for categories in (["a", "b"], ["b", "a"], ["a", "b", "c"]):
        rows = table().with_columns(pl.when(pl.col("g") != "c").then("g").cast(pl.Enum(categories)).alias("g"))
        query = dp.protect(rows, unit="u").group_by("g", max_groups=1, max_rows=1).count()
        keys = room.totals(query._question, 0).keys
        assert keys.get_column("g").cast(pl.String).to_list() == categories
    assert len(plans()) == 3


def test_a_plan_holds_no_row_after_it_ran():
    for query in questions(dp.protect(table(), unit="u")):
        room.totals(query._question, 1)
    assert all(not plan._rows for plans in prepared._plans.values() for plan in plans)


def test_a_question_is_validated_once(monkeypatch):
    runs = []
    original = prepared.Plan.tables

    def counted(self, question, salt, *, empty=False):
        runs.append(empty)
        return original(self, question, salt, empty=empty)

    monkeypatch.setattr(prepared.Plan, "tables", counted)
    prepared._plans.clear()
    frame = dp.protect(table(), unit="u", budget=dp.Budget(epsilon=10))
    for _ in range(3):
        frame.sum("x", bounds=(0, 1), max_rows=2).release(epsilon=1)
    assert runs == [True, False, False, False]
    other = dp.protect(table(5).with_columns(pl.col("x").cast(pl.Float32)), unit="u", budget=dp.Budget(epsilon=10))
    other.sum("x", bounds=(0, 1), max_rows=2).release(epsilon=1)
    assert runs[4:] == [True, False]


def test_a_plan_that_failed_is_not_kept(monkeypatch):
    def broken(question, frames, **options):
        raise RuntimeError("a cell")

    frame = dp.protect(table(), unit="u", budget=dp.Budget(epsilon=10))
    query = frame.mean("x", bounds=(0, 1), max_rows=7)
    prepared._plans.clear()
    monkeypatch.setattr(prepared, "collected", broken)
    with pytest.raises(EngineError):
        query.release(epsilon=1)
    assert not any(prepared._plans.values())
    assert frame.budget.spent.epsilon == 0


def test_threads_use_plans_of_their_own():
    """The tables of several threads differ, and each has the total of its own table."""
    tables = [table(seed, rows=300 + 50 * seed) for seed in range(6)]
    queries = [dp.protect(rows, unit=dp.Rows(1)).count() for rows in tables]

    def repeated(i):
        return [int(room.totals(queries[i]._question, 0).values[0][0]) for _ in range(10)]

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(repeated, range(6)))
    assert results == [[rows.height] * 10 for rows in tables]


def test_few_plans_are_kept():
    frame = dp.protect(table(), unit="u")
    for limit in range(1, prepared._MOST + 20):
        room.totals(frame.count(max_rows=limit)._question, 0)
    assert len(prepared._plans) <= prepared._MOST
