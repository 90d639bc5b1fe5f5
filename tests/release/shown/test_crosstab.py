"""Crosstabs and histograms against those of pandas and NumPy, cell by cell,
with noise that is surely zero.
"""

import functools
import re
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    InvalidArgument,
    MissingBounds,
    UnboundedContribution,
    UnsupportedOperation,
    WrongType,
)
from dpframe.release.shown.crosstab import _labels
from dpframe.release.shown.error_tables import crosstab
from inside import numbers_of

RNG = np.random.default_rng(66)
CERTAIN = 1e9  # so large a price that the noise is zero but for a chance below 1e-400
SIZE = 400
RAW = pd.DataFrame(
    {
        "id": range(SIZE),
        "job": RNG.choice(["clerk", "nurse", "smith", None], SIZE),
        "sex": RNG.choice(["f", "m"], SIZE),
        "town": RNG.choice(["a", "b", "c"], SIZE),
        "pay": RNG.choice([10, 20, 35], SIZE),
        "hours": np.where(RNG.random(SIZE) < 0.1, np.nan, RNG.integers(0, 81, SIZE) / 2),
    }
)
KEYS = {"job": ["smith", "clerk", "pilot", "nurse"], "sex": ["f", "m"], "town": ["c", "a", "b"]}
KINDS = {"pandas": pd.DataFrame, "polars": pl.from_pandas}


def release(index, columns, kind="pandas", keys=KEYS, epsilon=CERTAIN, **options):
    budget = dp.Budget(epsilon=1e12, delta=0.5)
    names = {*np.atleast_1d(index), *np.atleast_1d(columns)}
    keys = {name: levels for name, levels in keys.items() if name in names}
    frame = dp.protect(KINDS[kind](RAW), unit="id", budget=budget)
    return frame.crosstab(index, columns, keys=keys, max_rows=1, **options).release(epsilon=epsilon)


def expected(index, columns, down, across, fill=0, **options):
    """What pandas says, with keys that nobody has, in the order listed."""
    values = options.pop("values", None)
    raw = (
        RAW
        if values is None
        else RAW[RAW[values].notna()]
        if options["aggfunc"] == "count"
        else RAW
    )
    given = {} if values is None else {"values": raw[values]}
    table = pd.crosstab(raw[index], raw[columns], **given, **options)
    rows = [*down, "All"] if "All" in table.index else down
    names = [*across, "All"] if "All" in table.columns else across
    return table.reindex(index=rows, columns=names, fill_value=fill)


def same(got, theirs, **options):
    np.testing.assert_allclose(got.to_numpy(dtype=float), theirs.to_numpy(dtype=float), **options)
    assert [str(x) for x in got.index] == [str(x) for x in theirs.index]
    assert [str(x) for x in got.columns] == [str(x) for x in theirs.columns]
    assert (got.index.name, got.columns.name) == (theirs.index.name, theirs.columns.name)


@pytest.mark.parametrize("margins", [False, True])
def test_counts_with_nulls_and_keys_that_nobody_has(margins):
    out = release("job", "sex", margins=margins)
    same(out.table, expected("job", "sex", KEYS["job"], KEYS["sex"], margins=margins))
    assert set(map(str, out.table.dtypes)) == {"int64"}


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("normalize", ["index", "columns", "all"])
def test_parts_of_rows_columns_and_all(normalize, margins):
    out = release("town", "sex", normalize=normalize, margins=margins)
    same(
        out.table,
        expected("town", "sex", KEYS["town"], KEYS["sex"], normalize=normalize, margins=margins),
    )
    assert out.to_polars().to_numpy()[:, 1:].astype(float).sum() == pytest.approx(
        out.table.to_numpy().sum()
    )


def test_parts_of_nothing_are_null():
    out = release("job", "sex", normalize="index")
    assert out.table.loc["pilot"].isna().all()
    assert out.table.drop("pilot").sum(axis=1).tolist() == pytest.approx([1, 1, 1])
    for said, meant in ((0, "index"), (1, "columns"), (True, "all")):
        other = release("job", "sex", normalize=said).table
        pd.testing.assert_frame_equal(other, release("job", "sex", normalize=meant).table)


@pytest.mark.parametrize("aggfunc", ["sum", "mean", "count"])
@pytest.mark.parametrize("values", ["pay", "hours"])
def test_weighted_tables(aggfunc, values):
    bounds = {} if aggfunc == "count" else {"bounds": (0, 40)}
    out = release("town", "sex", values=values, aggfunc=aggfunc, margins=True, **bounds)
    theirs = expected(
        "town", "sex", KEYS["town"], KEYS["sex"], values=values, aggfunc=aggfunc, margins=True
    )
    same(out.table, theirs, rtol=1e-5)
    assert out.to_polars().columns == ["town", "f", "m", "All"]
    assert out.to_polars().shape == (4, 4)


def test_several_keys_and_one_element_axes():
    keys = {**KEYS, "sex": ["m"]}
    out = release(["town", "job"], "sex", keys=keys, margins=True)
    assert out.table.index.names == ["town", "job"]
    assert out.table.shape == (13, 2)
    assert out.table.loc[("All", ""), "All"] == out.table["m"].iloc[:-1].sum()
    one = release("town", "sex", keys={"town": ["b"], "sex": ["m"]}, margins=True)
    number = int(((RAW["town"] == "b") & (RAW["sex"] == "m")).sum())
    assert (one.table.to_numpy() == number).all()
    assert one.table.shape == (2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_come_before_parts(kind):
    """Of 42 cells that nobody is in none is negative with a chance of 3e-9;
    a column's total is with one of 1e-14.
    """
    keys = {**KEYS, "job": [*KEYS["job"], *map(str, range(20))]}
    out = release("job", "sex", kind, keys, normalize="columns", epsilon=0.5)
    assert out.to_pandas().min().min() < 0
    table = out.nonnegative().to_pandas()
    assert table.min().min() >= 0
    assert table.sum().tolist() == pytest.approx([1, 1])
    cells = release("job", "sex", kind, epsilon=CERTAIN, normalize="all", margins=True).suppress(
        below=1
    )
    assert cells.to_pandas().loc["pilot"].isna().all()


def test_a_page_of_a_crosstab_marks_its_cells_once(monkeypatch):
    """A page of 1,000 columns asks 50,000 times for them."""
    from dpframe.release.shown import crosstab as room

    made, plain = [], room.Crosstab.marked.func
    marked = functools.cached_property(lambda grid: made.append(grid) or plain(grid))
    marked.__set_name__(room.Crosstab, "marked")
    monkeypatch.setattr(room.Crosstab, "marked", marked)
    frame = dp.protect(
        pl.DataFrame({"id": [1], "a": [0], "b": [0]}), unit="id", budget=dp.Budget(epsilon=9)
    )
    keys = {"a": range(4), "b": range(3)}
    out = frame.crosstab("a", "b", keys=keys, max_groups=1, max_rows_per_group=1).release(epsilon=1)
    assert out.suppress(below=1)._repr_html_()
    assert len(made) == 1


@pytest.mark.long
def test_the_error_of_a_part_holds():
    """At 90%, 200 releases of 6 parts: more than 190 misses have a chance below 1e-6
    where at most 120 are expected.
    """
    truth = expected("town", "sex", KEYS["town"], KEYS["sex"], normalize="index").to_numpy()
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1e6))
    keys = {name: KEYS[name] for name in ("town", "sex")}
    query, missed = frame.crosstab("town", "sex", keys=keys, max_rows=1, normalize="index"), 0
    for _ in range(200):
        grid = crosstab(numbers_of(query.release(epsilon=0.2)), 0.1)
        missed += (np.abs(grid.numbers - truth) > grid.errors).sum()
    assert missed <= 190


@pytest.mark.parametrize(
    ("under", "over"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_bins_beyond_the_edges_only_when_asked(under, over):
    rows = {"id": range(9), "x": [-np.inf, -1.0, 0.0, 5.0, 10.0, 10.5, 20.0, np.inf, None]}
    frame = dp.protect(pl.DataFrame(rows), unit="id", budget=dp.Budget(epsilon=1e12))
    query = frame.histogram("x", bins=[0, 10, 20], underflow=under, overflow=over, max_rows=1)
    table = query.release(epsilon=CERTAIN).table
    middle = [("[0, 10)", 2), ("[10, 20)", 2) if over else ("[10, 20]", 3)]
    assert table.rows() == [("< 0", 2)] * under + middle + [("≥ 20", 2)] * over


REGIONS = [
    (region, town, sex)
    for region, towns in (("n", "ab"), ("s", "c"))
    for town in towns
    for sex in "fm"
]


def regional(kind="pandas", epsilon=CERTAIN, **options):
    raw = RAW.assign(region=np.where(RAW["town"] == "c", "s", "n"))
    frame = dp.protect(KINDS[kind](raw), unit="id", budget=dp.Budget(epsilon=1e12))
    asked = {"keys": REGIONS, "max_rows": 1, "margins": True, "subtotals": True, **options}
    return raw, frame.crosstab(["region", "town"], "sex", **asked).release(epsilon=epsilon)


@pytest.mark.parametrize(
    "options", [{}, {"values": "pay", "aggfunc": "sum"}, {"values": "pay", "aggfunc": "mean"}]
)
def test_a_subtotal_follows_the_rows_that_it_adds_up(options):
    asked = options | ({"bounds": (0, 40)} if options else {})
    raw, out = regional(**asked)
    table = out.table
    assert table.index.tolist() == [
        ("n", "a"),
        ("n", "b"),
        ("n", "All"),
        ("s", "c"),
        ("s", "All"),
        ("All", ""),
    ]
    given = {"values": raw["pay"], **{"aggfunc": options["aggfunc"]}} if options else {}
    theirs = pd.crosstab(raw["region"], raw["sex"], margins=True, **given)
    np.testing.assert_allclose(
        table.xs("All", level="town").to_numpy(float), theirs.loc[["n", "s"]].to_numpy(float)
    )
    assert regional("polars", **asked)[1].table["town"].to_list() == [
        "a",
        "b",
        "All",
        "c",
        "All",
        "",
    ]
    lines = out.to_csv().splitlines()
    assert lines[3].startswith("n,All,")
    assert lines[-1].startswith("All,")


def test_subtotals_have_the_errors_of_sums():
    _, out = regional(epsilon=1)
    errors = out.accuracy().set_index(["region", "town", "sex"])["error"]
    cell, part, row, everything = (
        errors[at]
        for at in (("n", "a", "f"), ("n", "All", "f"), ("n", "a", "All"), ("All", "", "All"))
    )
    assert cell < part == row < everything
    assert errors["s", "All", "f"] == cell  # the sum of one row


def test_subtotals_tell_nothing_about_hidden_numbers():
    """Of a region's rows and its subtotal none is hidden alone, in each column.
    For widths see `test_suppression`.
    """
    _, out = regional()
    limit = int(out.table.iloc[0, 0]) + 1
    hidden = out.suppress(limit).table.isna()
    assert hidden.to_numpy().any()
    for region in "ns":
        rows = hidden.loc[region]
        assert (rows.sum() != 1).all()
    plain = out.suppress(limit, "small", secondary=False)
    assert plain.table.isna().to_numpy().tolist() == (out.table < limit).to_numpy().tolist()
    assert "small" in plain.to_csv()
    assert set(out.plot().to_dict()["layer"][0]["encoding"]["y"]["sort"]) >= {"n, All", "s, All"}


def test_cells_of_people_and_of_medians():
    raw = pd.concat([RAW, RAW])
    frame = dp.protect(raw, unit="id", budget=dp.Budget(epsilon=1e12))
    keys = {"town": KEYS["town"], "sex": KEYS["sex"]}
    people = frame.crosstab(
        "town", "sex", aggfunc="count_units", keys=keys, max_groups=1, margins=True
    )
    same(
        people.release(epsilon=CERTAIN).table,
        expected("town", "sex", KEYS["town"], KEYS["sex"], margins=True),
    )
    asked = {"keys": keys, "max_rows": 2}
    for median in (
        {"values": "pay", "aggfunc": "median", "bounds": (0, 40)},
        {"aggfunc": dp.median("pay", bounds=(0, 40))},
    ):
        got = frame.crosstab("town", "sex", **median, **asked).release(epsilon=CERTAIN).table
        theirs = pd.crosstab(raw["town"], raw["sex"], values=raw["pay"], aggfunc="median")
        np.testing.assert_allclose(got.to_numpy(), theirs.loc[KEYS["town"]].to_numpy(), atol=0.1)
    spread = (
        frame.crosstab("town", "sex", aggfunc=dp.std("pay", bounds=(0, 40)), **asked)
        .release(epsilon=CERTAIN)
        .table
    )
    assert (spread.to_numpy() > 5).all()


def test_the_line_to_type_has_the_columns_as_they_were_typed():
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1))
    with pytest.raises(
        UnboundedContribution, match=re.escape("crosstab(['town', 'job'], 'sex', keys=..., ")
    ):
        _ = frame.crosstab(["town", "job"], "sex", keys=[("a", "clerk", "f")]).sensitivity


def test_margins_that_no_cells_add_up_to_are_refused():
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1))
    keys = {"town": ["a", "b"], "sex": ["f"]}
    for options, words in (
        ({"aggfunc": "count_units", "max_groups": 2, "margins": True}, "max_groups=1"),
        ({"aggfunc": "count_units", "max_groups": 2, "normalize": "all"}, "max_groups=1"),
        ({"aggfunc": dp.median("pay", bounds=(0, 40)), "max_rows": 1, "margins": True}, "group_by"),
        ({"aggfunc": dp.mode("job", keys=["clerk"]), "max_rows": 1}, "cells are numbers"),
        ({"aggfunc": dp.n_unique("job"), "max_rows": 1, "margins": True}, "does not follow"),
    ):
        with pytest.raises(UnsupportedOperation, match=words):
            frame.crosstab("town", "sex", keys=keys, **options)
    for options, words in (
        ({"aggfunc": dp.median("pay", bounds=(0, 40)), "values": "pay"}, "itself"),
        ({"aggfunc": dp.quantile("pay", [0.1, 0.9], bounds=(0, 40))}, "one statistic"),
        ({"aggfunc": "count_units", "values": "pay"}, "people"),
        ({"margins": True, "subtotals": True}, "two or more columns down"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            frame.crosstab("town", "sex", keys=keys, max_rows=1, **options)


def test_what_is_asked_wrongly_is_refused_at_the_call():
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1))
    keys = {"town": ["a"], "sex": ["f"]}

    def ask(**options):
        return frame.crosstab("town", "sex", keys=keys, max_rows=1, **options)

    for options in (
        {"aggfunc": "max"},
        {"aggfunc": "sum"},
        {"normalize": "rows"},
        {"bounds": (0, 1)},
        {"normalize": 2},
    ):
        with pytest.raises(InvalidArgument):
            ask(**options)
    with pytest.raises(MissingBounds):
        ask(values="pay", aggfunc="sum")
    with pytest.raises(WrongType):
        ask(values="job", aggfunc="mean", bounds=(0, 1))
    with pytest.raises(UnsupportedOperation, match="means have none"):
        ask(values="pay", aggfunc="mean", bounds=(0, 1), normalize="all")
    with pytest.raises(UnsupportedOperation, match="found in the data"):
        frame.crosstab("town", "sex", max_rows=1, normalize="all")
    for options in ({"underflow": True, "keys": [1]}, {"bins": [0, 1], "overflow": "yes"}):
        with pytest.raises(InvalidArgument, match="flow"):
            frame.histogram("pay", max_rows=1, **options)


@pytest.mark.parametrize(
    "options", [{"margins": True}, {"margins": "measured", "noise": "gaussian"}]
)
def test_missing_is_a_key_like_any_other_where_it_is_listed(options):
    price = {"epsilon": CERTAIN, "delta": 1e-3, "noise": options.get("noise", "auto")}
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5))
    keys = {"job": ["pilot", None, "clerk", "nurse", "smith"], "sex": ["f", "m"]}
    out = frame.crosstab("job", "sex", keys=keys, margins=options["margins"], max_rows=1).release(
        **price
    )
    theirs = pd.crosstab(RAW["job"].fillna("none"), RAW["sex"], margins=True)
    theirs = theirs.reindex(["pilot", "none", "clerk", "nurse", "smith", "All"], fill_value=0)
    np.testing.assert_array_equal(out.to_pandas().to_numpy(), theirs.to_numpy())


def test_columns_that_would_look_alike_are_told_apart_without_comparing_all_of_them():
    keys = [("a", 1), ("a, 1",), ("city",), (None,), ("null",), ("null_",)]
    assert _labels(keys, {"city"}) == ["a, 1", "a, 1_", "city_", "null", "null_", "null__"]
    began = time.process_time()
    labels = _labels([(number,) for number in range(40_000)], {"city"})
    assert labels == [str(number) for number in range(40_000)]
    assert time.process_time() - began < 5  # comparing all of them takes half a minute


@pytest.mark.long
def test_the_interval_of_a_mean_over_several_cells_holds():
    """At 90%, 25 releases: more than 15 misses of one of 12 margins have a chance below 1e-8."""
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5))
    keys = {name: KEYS[name] for name in ("sex", "town")}
    asked = {
        "values": "pay",
        "aggfunc": "mean",
        "bounds": (0, 40),
        "keys": keys,
        "margins": True,
        "max_rows": 1,
    }
    query = frame.crosstab("sex", "town", **asked)
    truth = pd.crosstab(RAW["sex"], RAW["town"], values=RAW["pay"], aggfunc="mean", margins=True)
    for noise in ("laplace", "gaussian"):
        missed, widths = np.zeros(6), []
        for _ in range(25):
            errors = query.release(epsilon=2, delta=1e-6, noise=noise).accuracy(alpha=0.1)
            margins = errors[(errors["sex"] == "All") | (errors["town"] == "All")]
            assert len(margins) == 6
            true = np.array([truth.loc[row.sex, row.town] for row in margins.itertuples()])
            assert (
                (margins["lower"] <= margins["value"]) & (margins["value"] <= margins["upper"])
            ).all()
            missed += ((true < margins["lower"]) | (true > margins["upper"])).to_numpy()
            widths.append(margins["error"].to_numpy())
        assert (missed <= 15).all()
        cells = errors[(errors["sex"] != "All") & (errors["town"] != "All")]["error"]
        # the mean of all is better known than that of a cell
        assert np.mean(widths, axis=0)[-1] < cells.mean()
    exact = query.release(epsilon=CERTAIN, noise="laplace").accuracy()
    assert exact["error"].max() < 1e-3


def test_times_are_no_cells_of_a_crosstab():
    days = RAW.assign(day=pd.Timestamp("2020-01-01"))
    frame = dp.protect(days, unit="id")
    keys = {name: KEYS[name] for name in ("sex", "town")}
    bounds = (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01"))
    with pytest.raises(UnsupportedOperation, match="group_by"):
        frame.crosstab(
            "sex", "town", values="day", aggfunc="mean", bounds=bounds, keys=keys, max_rows=1
        )


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Datetime("us")])
def test_a_key_is_written_alike_in_the_table_and_beside_the_errors_of_cells_and_margins(kind):
    keys = pl.Series("b", [0, 1]).cast(kind).to_list()
    rows = pl.DataFrame({"u": range(4), "a": ["x", "x", "y", "y"], "b": [*keys, *keys]})
    frame = rows.dp(unit="u", budget=dp.Budget(epsilon=1))
    asked = frame.crosstab("a", "b", keys={"a": ["x", "y"], "b": keys}, max_rows=1, margins=True)
    out = asked.release(epsilon=1)
    assert set(out.accuracy()["b"]) == set(out.table.columns) - {"a"} == {*map(str, keys), "All"}
