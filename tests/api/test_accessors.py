"""The `.dp` accessor: a door on frames and series of pandas and Polars, and one-liners."""

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors

ROWS = {"id": [1, 1, 2], "city": ["a", "b", "a"], "spend": [1.5, 250.0, None]}
CERTAIN = 1e9


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def table(request):
    return request.param(ROWS)


@pytest.fixture
def budget():
    return dp.Budget(epsilon=1e12, delta=1e-3)


def test_calling_protects(table, budget):
    frame = table.dp(unit="id", budget=budget)
    assert isinstance(frame, dp.PrivateFrame)
    assert frame.columns == ["id", "city", "spend"]
    assert frame.unit == ("id",)
    assert frame.neighbors == "add-remove"
    assert "protect the table with .dp(unit='user_id'" in repr(table.dp)


def test_one_liners_release_at_once(table, budget):
    once = {"unit": "id", "budget": budget, "epsilon": CERTAIN}
    assert table.dp.count(max_rows=9, **once).value == 3
    assert table.dp.count("spend", max_rows=9, **once).value == 2
    assert table.dp.count_units(**once).value == 2
    assert table.dp.sum("spend", bounds=(0, 100), max_rows=2, **once).value == pytest.approx(
        101.5, abs=1e-3
    )
    assert table.dp.sum("spend", unit_bounds=(0, 100), **once).value == pytest.approx(100, abs=1e-3)
    assert table.dp.mean("spend", bounds=(0, 100), max_rows=2, **once).value == pytest.approx(
        50.75, abs=1e-3
    )
    out = table.dp.agg(
        n=dp.count(), s=dp.sum("spend", bounds=(0, 100)), max_rows=2, **once
    ).to_polars()
    assert out.columns == ["n", "s"]
    assert table.dp.histogram("spend", bins=[0, 10, 300], max_rows=2, **once).to_polars()[
        "count"
    ].to_list() == [1, 1]
    assert table.dp.histogram("city", keys=["a", "b"], max_rows=2, **once).to_polars()[
        "count"
    ].to_list() == [2, 1]
    tree = table.dp.hierarchy(
        ["city", "spend"], [("a", 1.5), ("b", 250.0), ("b", 3.0)], max_rows=2, **once
    )
    assert tree.nonnegative().round().to_polars("city")["count"].to_list() == [1, 1]
    assert len(budget.history()) == 10


def test_every_asking_verb_is_a_one_liner(table, budget):
    once = {"unit": "id", "budget": budget, "max_rows": 2, "epsilon": CERTAIN}
    assert table.dp.n_unique("city", **once).value == 2
    spread = {"bounds": (0, 300), **once}
    assert table.dp.var("spend", **spread).value == pytest.approx(124.25**2 * 2, rel=1e-3)
    assert table.dp.std("spend", ddof=0, **spread).value == pytest.approx(124.25, rel=1e-3)
    assert table.dp.skew("spend", **spread).value == pytest.approx(0, abs=1e-3)
    assert table.dp.geometric_mean("spend", bounds=(1, 300), **once).value == pytest.approx(
        19.36, abs=0.1
    )
    assert table.dp.min("spend", **spread).value == pytest.approx(1.5, abs=0.3)
    assert table.dp.max("spend", **spread).value == pytest.approx(250, abs=0.3)
    assert 1 <= table.dp.median("spend", **spread).value <= 251
    both = table.dp.quantile("spend", [0.25, 0.75], **spread).to_polars()
    assert both.columns == ["spend_0.25", "spend_0.75"]
    verbs = {name for name in dir(dp.PrivateGroupBy) if not name.startswith("_")}
    verbs -= {"agg", "keys"}  # tested above; of groups only
    assert verbs <= set(dir(table.dp))


def test_a_one_liner_is_paid_for_or_refused(table):
    with pytest.raises(errors.BudgetRequired):
        table.dp.count_units(unit="id", epsilon=1)
    with pytest.raises(errors.InvalidPrice):
        table.dp.count_units(unit="id", budget=dp.Budget(epsilon=1))
    with pytest.raises(errors.InvalidArgument, match="unit="):
        table.dp.count_units(epsilon=1)


@pytest.mark.parametrize("make", [pd.Series, lambda v, name: pl.Series(name, v)])
def test_a_series_has_a_door_too(make, budget):
    values, ids = make(ROWS["spend"], name="spend"), make(ROWS["id"], name="id")
    one = values.dp.sum(bounds=(0, 100), unit=dp.Rows(1), budget=budget, epsilon=CERTAIN)
    assert one.value == pytest.approx(101.5, abs=1e-3)
    budget = dp.Budget(epsilon=1e12)
    frame = values.dp(unit=ids, budget=budget)
    assert frame.columns == ["spend", "id"]
    assert frame.sum(unit_bounds=(0, 100)).release(epsilon=CERTAIN).value == pytest.approx(
        100, abs=1e-3
    )
    assert frame.mean(bounds=(0, 100), max_rows=2).release(epsilon=CERTAIN).value == pytest.approx(
        50.75, abs=1e-3
    )
    for bad in ("id", ids[:2], [1, 1, 2]):
        with pytest.raises(errors.InvalidArgument, match="series"):
            values.dp(unit=bad)


def test_a_nameless_series_is_called_value(budget):
    assert pl.Series([1, 2]).dp(unit=dp.Rows(1), budget=budget).columns == ["value"]
    assert pd.Series([1, 2]).dp(unit=dp.Rows(1), budget=budget).columns == ["value"]


def test_the_accessor_holds_no_state(table):
    assert vars(table.dp).keys() == {"_native"}


def test_expressions_of_polars_are_left_alone():
    assert not hasattr(pl.Expr, "dp")
