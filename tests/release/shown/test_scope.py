"""A release says what its intervals cover, and what limits leave out."""

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import UnsupportedOperation

pytestmark = pytest.mark.usefixtures("same_noise")

CITIES = ["Bonn", "Kiel"]


def visits(people=400, rows=1, rate=0.3, seed=1):
    draw = np.random.default_rng(seed)
    ids = np.repeat(np.arange(people), rows)
    bought = draw.random(len(ids)) < rate
    return pl.DataFrame({"id": ids, "city": [CITIES[i % 2] for i in ids], "bought": bought, "x": draw.random(len(ids))})


def protected(table, unit="id", **declared):
    return dp.protect(table, unit=unit, budget=dp.Budget(epsilon=9.0), bounds={"x": (0, 1)}, **declared)


def test_it_says_what_intervals_cover_and_what_limits_leave_out():
    out = protected(visits(), max_rows=1).agg(n=dp.count(), x=dp.mean("x")).release(0.5)
    assert "What max_rows=1 leaves out of n is unknown." in repr(out)
    assert "intervals cover" not in repr(out)
    assert "95% intervals cover noise alone, not the sampling of people" in repr(out.with_ci())
    assert "90% intervals cover noise alone" in out.with_ci(0.9)._repr_html_()


@pytest.mark.parametrize("unit", [dp.Rows(1), "id"])
def test_nothing_is_said_where_nothing_is_left_out(unit):
    frame = protected(visits(), unit)
    query = frame.count() if unit != "id" else frame.count_units()
    assert "leaves out" not in repr(query.release(0.5))
    assert "leaves out" not in repr(protected(visits(), max_rows=1).mean("x").release(0.5))


def test_limits_of_a_column_are_named_with_it():
    query = protected(visits(), max_rows=1).agg(n=dp.count(), s=dp.sum("x", max_rows=3))
    text = repr(query.release(0.5))
    assert "What max_rows=1 leaves out of n is unknown." in text
    assert "What max_rows=3 leaves out of s is unknown." in text


def test_what_chosen_limits_leave_out_is_estimated():
    frame = protected(visits(people=1000, rows=3))
    text = repr(frame.agg(n=dp.count(), limits=dp.Auto()).release(2.0))
    assert "n: limits leave out likely" in text or "n: nothing is left out" in text
    assert "is unknown" not in text


def test_the_pandas_table_carries_the_sentences():
    table = protected(visits().to_pandas(), max_rows=1).count().release(0.5).table
    assert table.attrs["dpframe"].startswith("Released at ε = 0.5.")
    assert table.attrs["dpframe"].endswith("What max_rows=1 leaves out of count is unknown.")


def test_the_picture_says_so_too():
    pytest.importorskip("altair")
    out = protected(visits(), max_rows=1, keys={"city": CITIES}).group_by("city").count().release(0.5)
    assert "What max_rows=1 leaves out of count is unknown." in str(out.plot().to_dict()["title"])


# Intervals for the population after the release


def test_rates_and_people_have_intervals_for_the_population_at_no_price():
    frame = protected(visits(), max_rows=1, keys={"city": CITIES})
    query = frame.group_by("city").agg(u=dp.count_units(), r=dp.mean("bought"))
    out = query.release(0.5)
    assert query.release(0.5, covers="population").noise.equals(out.noise)
    wide, narrow = out.with_ci(covers="population").table, out.with_ci().table
    assert (wide["r_population_low"] < narrow["r_low"]).all()
    assert (wide["u_population_high"] > narrow["u_high"]).all()
    assert out.with_ci(covers="population").with_ci(covers="noise").table.equals(narrow)


def test_where_people_may_differ_by_more_it_is_refused():
    frame = protected(visits(), max_rows=1)
    for query in (frame.mean("x"), frame.median("x"), frame.sum("x"), frame.mean("bought", max_rows=2)):
        with pytest.raises(UnsupportedOperation, match="covers='population'"):
            query.release(0.1).with_ci(covers="population")


@pytest.mark.parametrize("rows", [1, 3])
def test_intervals_of_a_rate_hold_however_many_rows_people_have(rows):
    """With one row 95%, and with three, whose mean counts, more. Noise and tables are the same each time."""
    held = 0
    for seed in range(60):
        query = protected(visits(rows=rows, seed=seed), max_rows=1).mean("bought")
        row = query.release(1.0).with_ci(covers="population").table.row(0, named=True)
        held += row["bought_population_low"] <= 0.3 <= row["bought_population_high"]
    assert held >= 54
    assert rows > 1 or held < 60
