"""A number that the noise hides altogether is missing, and is not shown as a number."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.accuracy import intervals
from dpframe.release.estimators import estimator_of
from inside import numbers_of
from statistics_table import statistics

pytestmark = pytest.mark.usefixtures("same_noise")  # the noise of an empty group may look like rows

BOUNDS = {"x": (0, 10), "y": (1, 8)}
ROWS = pl.DataFrame(
    {
        "id": range(3000),
        "x": [float(i % 11) for i in range(3000)],
        "y": [1.0 + i % 7 for i in range(3000)],
        "g": "full",
    }
)
STATISTICS = {
    "mean": dp.mean("x"),
    "median": dp.median("x"),
    "var": dp.var("x"),
    "std": dp.std("x"),
    "cov": dp.cov("x", "y"),
    "corr": dp.corr("x", "y"),
    "skew": dp.skew("x"),
    "kurtosis": dp.kurtosis("x"),
    "ratio": dp.ratio(dp.sum("x"), dp.sum("y")),
    "weighted": dp.mean("x", weights="y"),
    "geometric": dp.geometric_mean("y"),
}


def asked(rows=ROWS, **statistics):
    budget = dp.Budget(epsilon=1e6)
    frame = dp.protect(
        rows, unit="id", budget=budget, max_rows=1, bounds=BOUNDS, keys={"g": ["full", "empty"]}
    )
    return frame.group_by("g").agg(n=dp.count(), **statistics)


@pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_number_of_a_group_without_rows_is_missing(statistic):
    """Where its noise looks like rows, as it does in one of 20
    releases, another release is taken.
    """
    releases = [asked(s=STATISTICS[statistic]).release(epsilon=2.5) for _ in range(3)]
    assert all(out.table["s"][0] is not None for out in releases)
    assert sum(out.table["s"][1] is None for out in releases) >= 2
    out = next(out for out in releases if out.table["s"][1] is None)
    assert "s: missing in 1 of 2 groups" in repr(out)
    assert out.fill().table["s"].is_not_null().all()
    assert "missing" not in repr(out.fill())


def test_its_interval_still_says_that_anything_fits():
    out = asked(s=dp.mean("x")).release(epsilon=50.0, ci=0.95)
    empty = out.table.row(1, named=True)
    assert (empty["s"], empty["s_low"], empty["s_high"]) == (None, 0.0, 10.0)
    errors = (
        out.accuracy()
        .filter((pl.col("g") == "empty") & (pl.col("column") == "s"))
        .row(0, named=True)
    )
    assert (errors["value"], errors["error"], errors["lower"], errors["upper"]) == (
        None,
        None,
        0.0,
        10.0,
    )
    assert (
        out.suppress(below=10).accuracy().filter(pl.col("g") == "empty")["lower"].null_count() == 2
    )


def test_what_nothing_says_the_reach_of_is_shown():
    rows = ROWS.clear()
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=10.0), max_rows=1, bounds=BOUNDS)
    for query in (frame.median("x"), frame.min("x"), frame.max("x"), frame.sum("x"), frame.count()):
        assert query.release(epsilon=0.1).value is not None


def test_what_was_shrunk_is_shown():
    groups = [f"g{i}" for i in range(40)]
    rows = ROWS.with_columns(g=pl.Series([groups[i % 39] for i in range(3000)]))
    frame = dp.protect(
        rows,
        unit="id",
        budget=dp.Budget(epsilon=10.0),
        max_rows=1,
        bounds=BOUNDS,
        keys={"g": groups},
    )
    out = frame.group_by("g").mean("x").release(epsilon=1.0)
    assert out.table["x"][-1] is None
    assert out.shrink().table["x"].null_count() == 0


def test_what_shrinking_leaves_hidden_is_missing():
    """Bars of 0.5 from 0 to 1 stood in front of all rates that are known."""
    groups = [f"g{i}" for i in range(12)]
    rows = pl.DataFrame({"id": range(3000), "g": [groups[i % 6] for i in range(3000)]})
    rows = rows.with_columns(x=pl.int_range(pl.len()) // 6 % 5 < pl.int_range(pl.len()) % 6)
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=10.0), max_rows=1)
    out = frame.group_by("g", keys=groups).mean("x").release(epsilon=1.0, covers="noise").shrink()
    ends = out.accuracy().select("lower", "upper").to_numpy()
    hidden = (ends[:, 0] <= 0) & (ends[:, 1] >= 1)
    assert 0 < hidden.sum() <= 6
    assert out.table["x"].is_null().to_list() == hidden.tolist()
    assert "missing in" in repr(out)
    assert out.fill().table["x"].null_count() == 0


def test_a_crosstab_of_means_leaves_out_cells_and_margins():
    frame = dp.protect(
        ROWS.with_columns(h=pl.lit("a")),
        unit="id",
        budget=dp.Budget(epsilon=1e6),
        max_rows=1,
        bounds=BOUNDS,
        keys={"g": ["full", "empty"], "h": ["a", "b"]},
    )
    query = frame.crosstab("g", "h", values="x", aggfunc="mean", margins=True)
    out = query.release(epsilon=50.0)
    table = out.to_pandas()
    assert table.loc["full", ["a", "All"]].notna().all()
    assert table.loc["empty"].isna().all()
    assert table["b"].isna().all()
    assert np.isfinite(out.fill().to_pandas().to_numpy(dtype=float)).all()


def test_one_missing_number_is_no_number():
    frame = dp.protect(
        ROWS.clear(), unit="id", budget=dp.Budget(epsilon=10.0), max_rows=1, bounds=BOUNDS
    )
    out = frame.mean("x").release(epsilon=0.1)
    assert out.value is None
    with pytest.raises(UnsupportedOperation, match=r"any possible value fits.*\.fill\(\)"):
        float(out)
    assert 0 <= float(out.fill()) <= 10


def test_files_have_an_empty_cell(tmp_path):
    out = asked(s=dp.mean("x")).release(epsilon=50.0)
    assert out.to_csv().splitlines()[2].endswith(",")
    out.to_excel(tmp_path / "a.xlsx")
    assert pd.read_excel(tmp_path / "a.xlsx", sheet_name="table", na_values="\N{EN DASH}")[
        "s"
    ].isna().tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize("ask", ["hierarchy", "marginals"])
def test_kinds_that_hide_no_number_take_fill(ask):
    frame = dp.protect(
        pl.DataFrame({"city": ["Bonn", "Kiel"], "yes": [True, False]}),
        unit=dp.Rows(1),
        budget=dp.Budget(epsilon=1, delta=1e-3),
    )
    keys = {"city": ["Bonn", "Kiel"], "yes": [True, False]}
    query = (
        frame.hierarchy(["city"], keys["city"])
        if ask == "hierarchy"
        else frame.marginals(list(keys), "1-way", keys=keys)
    )
    query.release(0.1, 1e-6, fill=True)
    with pytest.raises(InvalidArgument, match="fill= is True or False"):
        query.release(0.1, 1e-6, fill=1)
    assert len(frame.budget.history()) == 1


_NUMBERS = {
    name: one
    for name, one in statistics("x", "y", ("g", ["a"]), (0, 100), (0, 10)).items()
    if one.verb not in ("mode", "min", "max", "n_unique") and "unit_bounds" not in one.arguments
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("covers", ["noise", "population"])
@pytest.mark.parametrize(
    "name",
    [n if i % 3 == 0 else pytest.param(n, marks=pytest.mark.long) for i, n in enumerate(_NUMBERS)],
)
def test_a_number_is_missing_where_the_interval_beside_it_holds_all_that_it_could_be(name, covers):
    """Groups from none to 3,000 people, at four prices: both sides of the rule occur."""
    rng, groups = np.random.default_rng(5), np.repeat(list("bcd"), [3, 60, 3_000])
    x = rng.uniform(5, 95, len(groups))
    rows = pl.DataFrame(
        {"g": groups, "x": x, "y": np.clip(x / 12 + rng.normal(0, 1, len(x)), 0, 10)}
    )
    frame, seen = dp.protect(rows, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000)), set()
    for epsilon in (0.05, 0.3, 2.0, 8.0):
        query = frame.group_by("g", keys=list("abcd")).agg(s=_NUMBERS[name].aggregate())
        try:
            out = query.release(epsilon=epsilon, ci=0.95, covers=covers)
        except UnsupportedOperation:
            assert covers == "population"
            return
        numbers = numbers_of(out)
        for output in numbers.outputs:
            low, high = intervals(numbers, output, 0.05)
            least = estimator_of(output).holds_all(numbers.noisy(output), (low, high))
            missing = numbers.shown[output.name].is_null().to_list()
            assert missing == least.tolist(), output.name
            assert out.fill().to_polars()[output.name].null_count() == 0
            assert any("missing" in note for note in out._notes) == any(
                numbers.shown.null_count().row(0)
            )
            seen |= set(missing)
            if any(missing) and not all(missing):
                groups = [row["label"] for row in _drawn(out.plot(output.name, sort="descending"))]
                assert set(groups) <= set(numbers.long.filter(~pl.Series(missing))["g"])
    assert False in seen


def _drawn(chart):
    data = chart.to_dict()
    rows = [row for rows in data.get("datasets", {}).values() for row in rows]
    return [
        row
        for row in rows or data["data"]["values"]
        if row.get("value") is not None and "label" in row
    ]


@pytest.mark.parametrize("verb", ["corr", "cov"])
def test_entries_of_a_matrix_that_could_be_anything_are_missing(verb):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 4_000)
    rows = pl.DataFrame({"x": x, "y": 1 - x, "z": 50 + rng.normal(0, 0.1, 4_000)})
    frame = dp.protect(rows, unit=dp.Rows(1), budget=dp.Budget(epsilon=20))
    bounds, seen = {"x": (0, 1), "y": (0, 1), "z": (0, 100)}, set()
    for epsilon in (1.0, 1.0, 1.0, 0.0005, 0.0005):
        out = getattr(frame, verb)(["x", "y", "z"], bounds=bounds).release(epsilon=epsilon)
        errors, filled = out.accuracy(), out.fill()
        assert (
            filled.accuracy()["value"].null_count()
            == filled.to_polars().null_count().sum_horizontal().item()
            == 0
        )
        lost = errors.filter(pl.col("value").is_null())
        told = "".join(
            f"{a} and {b}, " for a, b in lost.select("column", "beside").rows()
        ).removesuffix(", ")
        for text in (repr(out), out._repr_html_()):
            assert (f"{told}: missing, since noise hides it" in text) == bool(told)
        assert ("–" in out._repr_html_()) == bool(told)
        if verb == "corr":
            wide = (errors["lower"] <= -1) & (errors["upper"] >= 1)
            assert errors["value"].is_null().to_list() == wide.to_list()
        seen |= set(errors["value"].is_null())
    assert seen == {False, True}
