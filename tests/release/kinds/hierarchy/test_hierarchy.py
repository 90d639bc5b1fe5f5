"""Hierarchies: exact below the noise, sums exact above it, priced, named,
exported, and as noisy as stated.
"""

import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    DeltaRequired,
    InvalidArgument,
    MissingBounds,
    UnboundedContribution,
    UnknownColumn,
    UnsupportedOperation,
    WrongCall,
    WrongType,
)
from dpframe.release.pricing import mechanisms
from dpframe.theory import empirical_sensitivity
from strategies import bring

TOWNS = pl.DataFrame(
    {
        "region": ["n", "s", "n", "n", "s", "o"],
        "district": ["a", "a", "b", "a", "c", "d"],
        "town": ["Kiel", "Kiel", "Husum", "Plön", "Ulm", "Jena"],
    }
)
LEVELS = ["region", "district", "town"]
SEX = {"sex": ["f", "m"]}


def people(rows=400, seed=0, units=None):
    rng = np.random.default_rng(seed)
    at = TOWNS[rng.integers(0, 5, rows).tolist()]  # nobody lives in Jena
    who = rng.integers(0, units, rows) if units else np.arange(rows)
    return at.with_columns(
        pl.Series("u", who),
        pl.Series("sex", rng.choice(["f", "m", "x"], rows)),
        pl.Series("wage", rng.integers(-3, 12, rows)),
    ).with_columns(
        pl.when(pl.col("wage") == 0).then(pl.lit("Bern")).otherwise(pl.col("town")).alias("town")
    )


def query(table=None, unit="u", budget=None, neighbors="add-remove", **more):
    frame = dp.protect(
        people() if table is None else table,
        unit=unit,
        neighbors=neighbors,
        budget=budget or dp.Budget(epsilon=1e6, delta=0.1),
    )
    limits = {} if isinstance(unit, dp.Rows) or "max_groups" in more else {"max_rows": 1}
    return frame.hierarchy(LEVELS, TOWNS, **{**limits, **more})


@pytest.fixture
def silent(monkeypatch):
    """The same releases without noise."""
    for name in ("rounded_laplace", "discrete_laplace", "rounded_gaussian"):
        monkeypatch.setattr(mechanisms, name, lambda scale, size: np.zeros(size, np.int64))


def listed(table):
    return table.join(TOWNS, on=LEVELS, how="semi")


@pytest.mark.parametrize(
    "price", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}]
)
def test_below_the_noise_every_level_is_a_group_by(silent, kind, price):
    out = query(bring(people(), kind), by=SEX).release(**price)
    rows = listed(people()).filter(pl.col("sex").is_in(["f", "m"]))
    for level, name in enumerate(("total", *LEVELS)):
        by = [*LEVELS[:level], "sex"]
        found = out.to_polars(name)
        assert found.columns == [*by, "count"]
        assert (
            found.height == TOWNS.select(LEVELS[:level]).unique().height * 2
            if level
            else found.height == 2
        )
        expected = rows.group_by(by).len()
        both = found.join(expected, on=by, how="left").with_columns(pl.col("len").fill_null(0))
        assert np.allclose(both["count"], both["len"], rtol=0, atol=1e-4)


def test_sums_and_counts_of_a_column(silent):
    rows = listed(people(units=90, seed=3))
    out = query(
        people(units=90, seed=3),
        values="wage",
        aggfunc="sum",
        bounds=(0, 5),
        max_groups=5,
        max_rows_per_group=99,
    ).release(epsilon=1.0)
    expected = rows.group_by("region").agg(pl.col("wage").clip(0, 5).sum())
    both = out.to_polars("region").join(expected, on="region", how="left")
    assert np.allclose(both["wage"], both["wage_right"].fill_null(0), rtol=0, atol=1e-3)
    assert out.levels == ("total", *LEVELS)
    counted = query(values="wage").release(epsilon=1.0)
    assert counted["total"].value == pytest.approx(listed(people()).height, abs=1e-3)


def test_one_table_per_level_in_the_order_of_the_tree():
    out = query(people().to_pandas()).release(epsilon=0.5)
    assert list(out) == ["total", *LEVELS]
    assert len(out) == 4
    assert isinstance(out["region"].table, pd.DataFrame)
    assert out["region"].table["region"].tolist() == ["n", "s", "o"]
    assert out["district"].table.values[:, :2].tolist() == [
        ["n", "a"],
        ["n", "b"],
        ["s", "a"],
        ["s", "c"],
        ["o", "d"],
    ]
    assert out.table["town"].tolist() == ["Kiel", "Plön", "Husum", "Kiel", "Ulm", "Jena"]
    with pytest.raises(UnknownColumn, match="Levels: total, region, district, town"):
        out["country"]


@pytest.mark.parametrize(
    "verb", ["", "nonnegative", "round", "nonnegative round", "round nonnegative"]
)
@pytest.mark.parametrize("sums", [False, True])
def test_levels_add_up_exactly(verb, sums):
    more = {"values": "wage", "aggfunc": "sum", "bounds": (0, 9.7)} if sums else {}
    out = query(people(60), by=SEX, **more).release(epsilon=0.2)
    for name in verb.split():
        out = getattr(out, name)()
    value = "wage" if sums else "count"
    for upper, by in (("district", LEVELS[:2]), ("region", LEVELS[:1]), ("total", [])):
        added = out["town"].table.group_by(*by, "sex", maintain_order=True).agg(pl.col(value).sum())
        assert added.sort(*by, "sex").equals(out[upper].table.sort(*by, "sex"))
    if "nonnegative" in verb:
        assert all(out[level].table[value].min() >= 0 for level in out)
    if verb.endswith("round"):
        assert all(out[level].table[value].dtype == pl.Int64 for level in out)


@pytest.mark.parametrize(
    ("price", "times"),
    [
        ({"epsilon": 1.0}, 40),
        pytest.param({"epsilon": 1.0}, 400, marks=pytest.mark.long),
        pytest.param(
            {"epsilon": 1.0, "delta": 1e-5, "noise": "gaussian"}, 400, marks=pytest.mark.long
        ),
    ],
)
def test_intervals_hold_and_errors_are_those_that_were_told(price, times):
    """False alarms: below 1e-7. Of 400 intervals at 95%, fewer than 350 hold with
    probability 1e-8; of 40, 26 or fewer with 1e-9, for each of 15 numbers. The variances of
    400 numbers are within 36% but for 1e-7."""
    table = people(300)
    exact = {}
    for level, name in enumerate(("total", *LEVELS)):
        rows = listed(table)
        by = LEVELS[:level]
        exact[name] = {
            row[:-1]: row[-1]
            for row in (rows.group_by(by).len().rows() if by else [(rows.height,)])
        }
    asked = query(table)
    held, squares, told = {}, {}, {}
    for _ in range(times):
        out = asked.release(**price)
        for row in out.accuracy().iter_rows(named=True):
            key = tuple(row[name] for name in LEVELS if row[name])
            truth = exact[row["level"]].get(key, 0)
            at = row["level"], key
            held[at] = held.get(at, 0) + (row["lower"] <= truth <= row["upper"])
            squares[at] = squares.get(at, 0.0) + (row["value"] - truth) ** 2 / times
    assert len(held) == 1 + 3 + 5 + 6
    assert min(held.values()) >= (350 if times == 400 else 27)
    if "delta" in price:
        told = {at: (row_error / 1.96) ** 2 for at, row_error in errors_of(out).items()}
        ratios = [squares[at] / told[at] for at in squares]
        # chi-squared with 400 degrees of freedom, per number
        assert 0.64 < min(ratios) <= max(ratios) < 1.4


def errors_of(out):
    return {
        (row["level"], tuple(row[name] for name in LEVELS if row[name])): row["error"]
        for row in out.accuracy().iter_rows(named=True)
    }


def test_errors_are_known_before_a_release():
    asked = query()
    before = asked.accuracy(epsilon=0.5, delta=1e-6, noise="gaussian")
    out = asked.release(epsilon=0.5, delta=1e-6, noise="gaussian")
    after = out.accuracy().group_by("level", maintain_order=True).agg(pl.col("error").max())
    assert before["column"].to_list() == after["level"].to_list() == ["total", *LEVELS]
    assert np.allclose(before["error"], after["error"], rtol=1e-6, atol=1e-4)
    assert asked.epsilon_for(error=20, column="region") < asked.epsilon_for(
        error=10, column="region"
    )
    assert "Shares of ρ" in str(asked.explain())
    assert set(asked.sensitivity) == {"total", *LEVELS}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_neighbours_are_farther_apart_than_the_claim(relation):
    asked = dp.protect(
        pl.DataFrame({"u": [1], "g": ["x"], "i": [1]}), unit="u", neighbors=relation
    ).hierarchy(["g", "i"], [("x", 1), ("x", 2), ("y", 1)], max_groups=2, max_rows_per_group=2)
    cells = {
        1: ["x1", "x2"] * 3,
        2: ["x1", "y1"],
        3: ["x1", "x2", "y1", "z1"] * 2,
        4: ["y1"] * 5,
        5: ["z1"],
    }
    rows = [(u, cell[0], int(cell[1])) for u, places in cells.items() for cell in places]
    table = pl.DataFrame(rows, ["u", "g", "i"], orient="row")
    found = empirical_sensitivity(asked, table, 3)
    for name, bound in asked.sensitivity.items():
        assert all(
            getattr(found[name], norm) <= getattr(bound, norm)
            for norm in ("l0", "l1", "l2", "linf")
        )


def test_a_price_buys_the_noise_that_is_charged():
    budget = dp.Budget(epsilon=3.0, delta=1e-5)
    pure = query(budget=budget).release(epsilon=1.0)
    shares = 1 / pure.noise["scale"].to_numpy()
    assert shares.sum() == pytest.approx(1.0)
    assert (pure.cost.epsilon, pure.cost.delta) == (1.0, 0.0)
    normal = query(budget=budget).release(epsilon=1.0, delta=1e-6, noise="gaussian")
    assert (normal.cost.epsilon, normal.cost.delta) == (1.0, 1e-6)
    rho = query(budget=dp.Budget(rho=1.0)).release(rho=0.5, noise="gaussian")
    assert (1 / (2 * rho.noise["scale"].to_numpy() ** 2)).sum() == pytest.approx(0.5)
    assert query(budget=dp.Budget(rho=9.0)).release(epsilon=0.5).cost.rho > 0


def test_typed_shares_are_taken_and_a_level_with_none_is_the_sum_of_its_children():
    asked = query(shares={"total": 0, "region": 1, "district": 0, "town": 3})
    out = asked.release(epsilon=1.0)
    assert out.noise["column"].to_list() == ["region", "town"]
    assert out.noise["scale"].to_list() == pytest.approx([4.0, 4 / 3])
    for wrong in (
        {"total": 1},
        {"total": 1, "region": 1, "district": 1, "town": 0},
        5,
        {**dict.fromkeys(["total", *LEVELS], 1), "x": 1},
    ):
        with pytest.raises(InvalidArgument, match="shares="):
            query(shares=wrong)
    with pytest.raises(InvalidArgument, match="share="):
        query(shares={"total": -1, "region": 1, "district": 0, "town": 3})


def test_one_person_weighs_once_in_every_level(silent):
    table = pl.DataFrame(
        {"u": [1] * 6, "region": ["n"] * 6, "district": ["a"] * 6, "town": ["Kiel", "Plön"] * 3}
    )
    out = query(table, max_rows=2).release(epsilon=1.0)
    assert [float(out[level].table["count"].sum()) for level in out] == pytest.approx(
        [2.0] * 4, abs=1e-4
    )


def test_the_stored_answer_of_a_name_is_the_first_one(tmp_path):
    budget = dp.Ledger(tmp_path / "l.sqlite").budget("b", epsilon=1.0)
    first, second = (query(budget=budget).release(epsilon=0.5, name="tree") for _ in range(2))
    assert first.table.equals(second.table)
    assert "Stored answer" in repr(second)
    with pytest.raises(dp.errors.ReleaseMismatch):
        query(budget=budget, by=SEX).release(epsilon=0.5, name="tree")


def test_all_levels_are_written_to_files(tmp_path):
    out = query(by=SEX).release(epsilon=1.0).nonnegative().round().with_ci(0.9)
    together = out.to_polars()
    assert together.columns == ["level", *LEVELS, "sex", "count", "count_low", "count_high"]
    assert together.height == 2 * (1 + 3 + 5 + 6)
    assert out.to_csv(level="region").splitlines()[0] == "region,sex,count,count_low,count_high"
    out.to_csv(tmp_path / "a.csv")
    assert pl.read_csv(tmp_path / "a.csv").height == together.height
    out.to_parquet(tmp_path / "a.parquet", "town")
    assert pl.read_parquet(tmp_path / "a.parquet").columns == [
        *LEVELS,
        "sex",
        "count",
        "count_low",
        "count_high",
    ]
    out.to_excel(tmp_path / "a.xlsx")
    sheets = pd.read_excel(tmp_path / "a.xlsx", sheet_name=None)
    assert list(sheets) == ["1 total", "2 region", "3 district", "4 town", "privacy"]
    assert sheets["2 region"].columns.tolist() == [
        "region",
        "sex",
        "count",
        "count_low",
        "count_high",
    ]
    assert "town" in out.to_html(level="town")
    assert "tabular" in out.to_latex(level="region")
    assert out.to_pandas("region").shape == (6, 5)
    assert out.to_arrow().num_rows == together.height
    assert "region" in out._repr_html_()
    assert json.loads(out.report().to_json())["post_processing"]


def test_intervals_of_whole_numbers_are_whole_and_end_at_0():
    out = query(people(10)).release(epsilon=0.1).nonnegative().round().with_ci()
    for level in out:
        table = out[level].table
        assert table["count_low"].dtype == table["count_high"].dtype == pl.Int64
        assert (table["count_low"] >= 0).all()
        assert (table["count_high"] >= table["count_low"]).all()


def test_what_cannot_be_is_refused_with_a_line_to_type():
    frame = dp.protect(people(), unit="u", budget=dp.Budget(epsilon=1.0))
    with pytest.raises(UnsupportedOperation, match="the tree is public"):
        frame.hierarchy(LEVELS, None, max_rows=1)
    with pytest.raises(
        UnboundedContribution, match=r"'town'\], keys=\.\.\., max_groups=3, .*=2\)\.$"
    ):
        frame.hierarchy(LEVELS, TOWNS)
    with pytest.raises(InvalidArgument, match="twice"):
        frame.hierarchy(["region", "region"], TOWNS, max_rows=1)
    with pytest.raises(InvalidArgument, match="name the levels"):
        frame.hierarchy([], TOWNS, max_rows=1)
    with pytest.raises(InvalidArgument, match="'town'"):
        frame.hierarchy(LEVELS, TOWNS.drop("town"), max_rows=1)
    with pytest.raises(InvalidArgument, match="by= lists the keys of 'sex'"):
        frame.hierarchy(LEVELS, TOWNS, by=["sex"], max_rows=1)
    with pytest.raises(InvalidArgument, match="hierarchy: aggfunc"):
        frame.hierarchy(LEVELS, TOWNS, "wage", "mean", max_rows=1)
    with pytest.raises(InvalidArgument, match="bounds="):
        frame.hierarchy(LEVELS, TOWNS, bounds=(0, 1), max_rows=1)
    with pytest.raises(MissingBounds):
        frame.hierarchy(LEVELS, TOWNS, "wage", "sum", max_rows=1)
    with pytest.raises(UnsupportedOperation, match=r"dp.Auto\(\)"):
        frame.hierarchy(LEVELS, TOWNS, "wage", "sum", bounds=dp.Auto(), max_rows=1)
    with pytest.raises(UnknownColumn):
        frame.hierarchy(["region", "nothing"], TOWNS, max_rows=1)
    with pytest.raises(WrongType):
        frame.hierarchy(["region"], [1, 2], max_rows=1)
    asked = frame.hierarchy(LEVELS, TOWNS, max_rows=1)
    with pytest.raises(UnsupportedOperation, match="covers="):
        asked.release(epsilon=0.1, covers="population")
    with pytest.raises(UnsupportedOperation, match="tune"):
        asked.tune({"max_rows": [1]}, epsilon=0.1)
    with pytest.raises(UnsupportedOperation, match="by itself"):
        frame.budget.plan([asked], epsilon=0.1)
    with pytest.raises(DeltaRequired):
        asked.release(epsilon=0.1, noise="gaussian")
    negative = frame.hierarchy(LEVELS, TOWNS, "wage", "sum", bounds=(-1, 1), max_rows=1).release(
        epsilon=0.1
    )
    with pytest.raises(UnsupportedOperation, match="may be negative"):
        negative.nonnegative()
    assert frame.budget.spent.epsilon == pytest.approx(0.1)


def test_numbers_that_nobody_can_change_have_no_noise():
    out = query(values="wage", aggfunc="sum", bounds=(0, 0)).release(epsilon=0.5)
    assert out.cost.epsilon == 0
    assert not any(out["town"].table["wage"])
    assert out.accuracy()["error"].max() < 1e-4


def test_a_key_that_is_null_and_a_level_that_is_called_total(silent):
    table = pl.DataFrame({"total": ["a", "a", None], "b": [1, None, None]})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=9))
    out = frame.hierarchy(["total", "b"], [("a", 1), ("a", None), (None, None), (None, 1)]).release(
        epsilon=1
    )
    assert out.levels == ("total_", "total", "b")
    assert out["total"].table.rows() == [
        ("a", pytest.approx(2, abs=1e-4)),
        (None, pytest.approx(1, abs=1e-4)),
    ]
    assert [round(n) for n in out.table["count"]] == [1, 1, 1, 0]


def test_a_call_that_does_not_fit_names_the_line_to_type():
    out = query().release(epsilon=1.0)
    for call, line in (
        (lambda: out.round(5, 1), r"out\.round\("),
        (lambda: out.nonnegative(1), "nonnegative"),
    ):
        with pytest.raises(WrongCall, match=line):
            call()


def test_a_level_is_drawn_with_its_margins_of_error():
    out = query().release(epsilon=0.5)
    chart = out.plot().to_dict()
    shown = str(chart)
    assert "n, b, Husum" in shown, "two towns are called Kiel, so the keys above stand before"
    assert "Number of rows by region, district, town" in shown
    assert "95% margins of error" in shown
    assert "Kiel" not in str(out.plot("district").to_dict())
    crossed = query(by=SEX).release(epsilon=0.5).plot("region", title="Mine").to_dict()
    assert "Mine" in str(crossed)
    hidden = out.nonnegative().round().suppress(below=40, secondary=True)
    assert "Suppressed" in str(hidden.plot("town").to_dict())
    hours = [dt.timedelta(hours=1), dt.timedelta(hours=2)]
    table = pl.DataFrame({"region": ["a", "b"], "stay": hours})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=9))
    twice = frame.hierarchy(
        ["region", "stay"], [("a", hours[0]), ("a", hours[1]), ("b", hours[0])]
    ).release(epsilon=1)
    assert "a, 1:00:00" in str(twice.plot("stay").to_dict()), "both regions have stays of an hour"
    with pytest.raises(UnsupportedOperation, match=r"out\['total'\]"):
        out.plot("total")
    with pytest.raises(UnknownColumn, match="Levels: total, region"):
        out.plot("city")


def test_noise_is_fresh_for_every_node():
    out = query(people(0)).release(epsilon=0.01, delta=1e-6, noise="gaussian")
    assert (
        len({round(x, 6) for level in out for x in out[level].table["count"]}) == 1 + 3 + 5 + 6 - 5
    )  # five have only one child
    assert math.isfinite(out["total"].value)


def test_columns_with_the_names_of_a_table_of_errors_are_renamed():
    table = pl.DataFrame({"level": ["a", "b"], "value": ["x", "y"]})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=9))
    out = frame.hierarchy(["level", "value"], [("a", "x"), ("b", "y")]).release(epsilon=1).with_ci()
    assert out.accuracy().columns == [
        "level_",
        "level",
        "value_key",
        "value",
        "error",
        "lower",
        "upper",
    ]
    assert out.to_polars().columns == [
        "level_",
        "level",
        "value",
        "count",
        "count_low",
        "count_high",
    ]
    assert "level_" in out.to_csv()


def test_each_level_is_a_release_with_the_numbers_and_errors_of_the_whole(tmp_path):
    """The same rows, ends and marks as in the table of all levels;
    for counts and sums, Laplace and normal noise.
    """
    sums = {"values": "wage", "aggfunc": "sum", "bounds": (0, 9.7)}
    for more, price in (
        ({}, {"epsilon": 0.5}),
        (sums, {"epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"}),
    ):
        drawn = query(by=SEX, **more).release(**price)
        for out in (
            drawn,
            drawn.nonnegative(),
            drawn.nonnegative().round(),
            drawn.round().suppress(40, ("<", "*"), secondary=True),
        ):
            errors, together = out.accuracy(), out.with_ci().to_polars()
            for level in out:
                own, by = out[level], out.to_polars(level).columns[:-1]
                assert isinstance(own, dp.Release)
                assert (
                    own.accuracy()
                    .drop("column")
                    .equals(
                        errors.filter(pl.col("level") == level).select(
                            *by, "value", "error", "lower", "upper"
                        )
                    )
                )
                told = own.with_ci().table
                assert told.equals(out.with_ci()[level].table)
                assert told.drop(by).equals(
                    together.filter(pl.col("level") == level).select(told.drop(by).columns)
                )
                assert own.to_csv() == out.to_csv(level=level)
                assert own.cost == out.cost
                assert own.report().to_dict()["guarantee"] == out.report().to_dict()["guarantee"]
        drawn["region"].to_excel(tmp_path / "region.xlsx")
        assert drawn["region"].plot().to_dict()
    assert float(query().release(epsilon=0.5)["total"]) > 0


def test_a_level_that_is_changed_alone_says_so_and_what_needs_the_whole_is_refused():
    out = query().release(epsilon=0.5)
    with pytest.warns(
        dp.errors.DpFrameWarning, match=r"round\(\): this is one of 4 levels that agree"
    ):
        alone = out["region"].round()
    assert "It no longer agrees" in str(alone.report())
    with pytest.raises(
        UnsupportedOperation, match=r"out\.suppress\(below=\.\.\., secondary=True\)"
    ):
        out["region"].suppress(5, secondary=True)
    hidden = out.round().suppress(60, "<60", secondary=True)
    for change in (hidden["town"].nonnegative, hidden["town"].round):
        with pytest.raises(UnsupportedOperation, match="before they are hidden"):
            change()
    assert (
        hidden["town"].suppress(90).table["count"].null_count()
        >= hidden["town"].table["count"].null_count()
        > 0
    )
    with pytest.raises(UnsupportedOperation, match=r"group_by\('region'\)"):
        out["region"].difference("n", "s")
    with pytest.raises(InvalidArgument, match=r"\.table\['region'\]"):
        out["region"]["region"]
