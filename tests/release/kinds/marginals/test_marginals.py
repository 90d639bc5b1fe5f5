"""Many marginals in one release: exact below the noise, consistent, priced, named,
exported, and as noisy as stated.
"""

import json
import math
import pickle
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    DeltaRequired,
    DpFrameWarning,
    InvalidArgument,
    UnboundedContribution,
    UnknownColumn,
    UnsupportedOperation,
)
from dpframe.release.kinds.marginals import draw as module
from dpframe.theory import empirical_sensitivity, gaussian_delta
from inside import numbers_of, question_of
from prices import noise_plan, read_price
from strategies import bring

KEYS = {"a": [0, 1, 2, 7], "b": ["x", "y", None], "c": [False, True], "one": ["only"]}
COLUMNS = list(KEYS)
PRICE = {"epsilon": 1.0, "delta": 1e-6}


def people(rows=400, seed=0, units=None):
    rng = np.random.default_rng(seed)
    table = {
        "u": rng.integers(0, units, rows).tolist() if units else list(range(rows)),
        "a": rng.integers(0, 4, rows).tolist(),  # 3 is not listed, 7 is not there
        "b": [["x", "y", "other", None][i] for i in rng.integers(0, 4, rows)],
        "c": [[False, True, None][i] for i in rng.choice(3, rows, p=[0.5, 0.4, 0.1])],
        "one": ["only"] * rows,
    }
    return pl.DataFrame(
        table,
        schema_overrides={
            "u": pl.Int64,
            "a": pl.Int64,
            "b": pl.String,
            "c": pl.Boolean,
            "one": pl.String,
        },
    )


def query(
    table,
    unit="u",
    workload="2-way",
    max_rows=1,
    columns=COLUMNS,
    neighbors="add-remove",
    budget=None,
):
    keys = {name: KEYS[name] for name in columns}
    limits = {} if isinstance(unit, dp.Rows) else {"max_rows": max_rows}
    frame = dp.protect(
        table, unit=unit, neighbors=neighbors, budget=budget or dp.Budget(epsilon=1e6, delta=0.1)
    )
    return frame.marginals(columns, workload, keys=keys, **limits)


@pytest.fixture
def silent(monkeypatch):
    """The same release without noise."""
    monkeypatch.setattr(
        module,
        "rounded_contrasts",
        lambda scale, shape: np.zeros([m - 1 for m in shape], dtype=np.int64),
    )


def listed(table):
    """The rows that count: those whose keys are all listed."""
    kept = table.filter(
        pl.col("a").is_in([0, 1, 2, 7]), pl.col("b").is_in(["x", "y"]) | pl.col("b").is_null()
    )
    return kept.filter(pl.col("c").is_not_null())


# What is counted


def test_below_the_noise_every_table_is_the_crosstab_of_pandas(silent, kind):
    table = people()
    out = query(bring(table, kind)).release(**PRICE)
    rows = listed(table).to_pandas().astype({"b": object}).fillna({"b": "none"})
    for down, across in combinations(COLUMNS, 2):
        expected = pd.crosstab(rows[down], rows[across])
        found = out[down, across].to_polars()
        levels = [["none" if key is None else key for key in KEYS[name]] for name in (down, across)]
        full = expected.reindex(index=levels[0], columns=levels[1], fill_value=0).to_numpy()
        inner = found.to_numpy()[:-1, 1:-1].astype(float)
        assert np.allclose(inner, full, rtol=0, atol=1e-6)
        assert np.allclose(
            found.to_numpy()[-1, 1:-1].astype(float), full.sum(axis=0), rtol=0, atol=1e-6
        )
        assert np.allclose(
            found.to_numpy()[:-1, -1].astype(float), full.sum(axis=1), rtol=0, atol=1e-6
        )
    assert math.isclose(out[()].value, len(rows), abs_tol=1e-6)


def test_tables_of_any_number_of_columns_come_from_one_release(silent):
    table = people()
    out = query(table, workload=[("a", "b", "c"), ("one",)]).release(**PRICE)
    rows = listed(table)
    assert list(out) == [("a", "b", "c"), ("one",)]
    assert len(out) == 2
    assert ("c", "a") in out
    assert ("a", "one") not in out
    for names in [("c", "a"), ("b",), ("b", "c", "a")]:
        expected = {key: len(group) for key, group in rows.group_by(*names)}
        cells = (
            out[names].accuracy().filter(~pl.any_horizontal(pl.col(names).cast(pl.String) == "All"))
        )
        for row in cells.iter_rows(named=True):
            key = tuple(
                next(
                    k
                    for k in KEYS[n]
                    if (k if k is None else str(k).lower())
                    == (row[n] if row[n] is None else str(row[n]).lower())
                )
                for n in names
            )
            assert math.isclose(row["value"], expected.get(key, 0), abs_tol=1e-6)
    assert out["c", "a"].table.columns == ["c", "0", "1", "2", "7", "All"]
    assert out["a"].table["a"].to_list() == KEYS["a"]


def test_one_unit_s_rows_weigh_as_many_as_its_limit_together_in_every_table(silent):
    table = pl.DataFrame(
        {"u": [1] * 10 + [2], "a": [0] * 4 + [1] * 4 + [3] * 2 + [0], "c": [True] * 11}
    )
    columns = ["a", "c"]
    out = query(table, columns=columns, max_rows=2).release(**PRICE)
    # Eight listed rows in two cells, each cut to two, weigh two together: one in each. The other
    # unit has one.
    assert np.allclose(out["a"].table["count"], [2, 1, 0, 0], rtol=0, atol=1e-5)
    assert math.isclose(out[()].value, 3, abs_tol=1e-5)


@pytest.mark.parametrize("unit", ["u", dp.Rows(1)])
def test_a_table_without_rows_and_one_without_units_are_released_too(silent, unit):
    table = people(0)
    out = query(table, unit=unit).release(**PRICE)
    assert out["a", "b"].table["All"].abs().max() == 0


def test_the_product_of_all_columns_is_never_built():
    columns = {f"c{i}": pl.Series([k % 9 for k in range(50)]) for i in range(12)}
    frame = pl.DataFrame(columns).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=9, delta=1e-3))
    out = frame.marginals(list(columns), keys={name: range(9) for name in columns}).release(**PRICE)
    assert len(out) == 66
    assert out.table.height == 66 * 81


def test_columns_that_bring_their_keys_need_no_list(silent):
    table = pl.DataFrame(
        {
            "u": [1, 2, 3, 3],
            "age": [5, 25, 70, 999],
            "level": ["low", "high", "low", "low"],
            "c": [True, False, True, None],
        },
        schema_overrides={"level": pl.Enum(["low", "mid", "high"])},
    )
    frame = table.dp(unit="u", budget=dp.Budget(epsilon=9, delta=1e-3)).cut("age", [0, 18, 65, 120])
    out = frame.marginals(["age", "level", "c"], max_rows=1).release(**PRICE)
    found = out["level", "age"].table
    assert found["level"].to_list() == ["low", "mid", "high", "All"]
    assert np.allclose(
        found.to_numpy()[:3, 1:].astype(float),
        [[1, 0, 1, 2], [0, 0, 0, 0], [0, 1, 0, 1]],
        atol=1e-9,
    )
    assert out["age"].table["age"].to_list() == ["(0, 18]", "(18, 65]", "(65, 120]"]


# Privacy: distances on neighbouring tables against the claim


def cost_of_change(asked, before, after):
    """μ² of the step from one table to another at the planned noise."""
    plan = noise_plan(question_of(asked), read_price(1, 1e-6))
    one, two = asked.exact_totals(before), asked.exact_totals(after)
    total = Fraction(0)
    for drawn in plan.noises:
        (name,) = drawn.allotment.names
        scale = Fraction(drawn.scale) * drawn.allotment.total.unit
        total += sum((one[name][key] - two[name][key]) ** 2 for key in one[name]) / scale**2
    return float(total), plan


def claimed(plan):
    return float(
        sum(d.allotment.total.sensitivity.l2_squared / Fraction(d.scale) ** 2 for d in plan.noises)
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("max_rows", [1, 3])
def test_one_unit_moves_no_table_further_than_claimed(neighbors, max_rows):
    rng = np.random.default_rng(5)
    largest = 0.0
    for seed in range(12):
        table = people(60, seed, units=12)
        asked = query(
            table,
            max_rows=max_rows,
            neighbors=neighbors,
            workload=[("a", "b"), ("b", "c"), ("one",)],
        )
        gone = table.filter(pl.col("u") != int(rng.integers(12)))
        if neighbors == "replace":
            others = people(int(rng.integers(1, 9)), seed + 100).with_columns(
                u=pl.lit(99, pl.Int64)
            )
            gone = pl.concat([gone, others])
        cost, plan = cost_of_change(asked, table, gone)
        assert cost <= claimed(plan) * (1 + 1e-12)
        largest = max(largest, cost / claimed(plan))
    assert largest > 0.1


@pytest.mark.parametrize("unit", ["u", dp.Rows(3)])
def test_the_claim_is_attained_by_a_unit_with_all_its_rows_in_one_cell(unit):
    table = people(40)
    more = pl.concat(
        [
            table,
            pl.DataFrame(
                {"u": [77] * 3, "a": [1] * 3, "b": ["x"] * 3, "c": [True] * 3, "one": ["only"] * 3}
            ),
        ]
    )
    cost, plan = cost_of_change(query(table, unit=unit, max_rows=3), table, more)
    assert math.isclose(cost, claimed(plan), rel_tol=1e-5 if unit == "u" else 1e-12)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_sensitivity_of_each_interaction_is_found_by_brute_force(neighbors):
    universe = pd.DataFrame({"a": [0, 0, 1, 7], "c": [True, False, True, True]})
    asked = query(
        universe, unit=dp.Rows(1), columns=["a", "c"], workload="2-way", neighbors=neighbors
    )
    found = empirical_sensitivity(asked, universe, 2, neighbors=neighbors)
    for name, bound in asked.sensitivity.items():
        attained = (
            name != "total" or neighbors == "add-remove"
        )  # replacing one listed row by another leaves their number
        assert found[name].l2 == pytest.approx(bound.l2 if attained else 0, rel=1e-9)
        assert found[name].l1 <= bound.l1 * (1 + 1e-9)
        assert found[name].linf <= bound.linf * (1 + 1e-9)


def test_the_noise_of_all_interactions_together_has_the_profile_that_was_paid_for():
    plan = noise_plan(question_of(query(people(5), max_rows=2)), read_price(1, 1e-6))
    delta = gaussian_delta(1, math.sqrt(claimed(plan)))
    assert 0.999e-6 < delta <= 1e-6 * (1 + 1e-9)


# Prices


def test_without_a_delta_the_line_to_type_is_named():
    asked = query(people(5))
    with pytest.raises(DeltaRequired, match=r"delta=1e-6"):
        asked.release(epsilon=1)
    with pytest.raises(DeltaRequired):
        asked.accuracy(epsilon=1)
    with pytest.raises(UnsupportedOperation, match="Gaussian"):
        asked.release(epsilon=1, delta=1e-6, noise="laplace")


def test_a_price_in_rho_is_charged_as_it_is_said():
    budget = dp.Budget(rho=1.0, delta=1e-6)
    asked = query(people(50), budget=budget)
    out = asked.release(rho=0.25)
    assert float(budget.spent.rho) == 0.25
    assert out.cost.rho == 0.25
    scales = out._noise.noises
    rho = sum(
        d.allotment.total.sensitivity.l2_squared / (2 * Fraction(d.scale) ** 2) for d in scales
    )
    assert Fraction(2499999, 10**7) < rho <= Fraction(1, 4)
    with pytest.raises(UnsupportedOperation, match="rho"):
        asked.release(epsilon=0.1)


def test_the_charge_is_the_price_and_a_refusal_spends_nothing():
    budget = dp.Budget(epsilon=1.5, delta=1e-5, accountant="basic")
    asked = query(people(50), budget=budget)
    asked.release(**PRICE)
    assert (budget.spent.epsilon, budget.spent.delta) == (1.0, 1e-6)
    with pytest.raises(dp.errors.BudgetExceeded):
        asked.release(**PRICE)
    assert budget.spent.epsilon == 1.0


def test_a_name_gives_the_stored_tables_and_another_workload_is_another_question(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget(
        "people", epsilon=3, delta=1e-5, accountant="basic"
    )
    first = query(people(50), budget=budget).release(**PRICE, name="tables")
    again = query(people(50), budget=budget).release(**PRICE, name="tables")
    assert first.table.equals(again.table)
    assert first["a", "b"].table.equals(again["a", "b"].table)
    assert budget.spent.epsilon == 1.0
    with pytest.raises(dp.errors.ReleaseMismatch):
        query(people(50), budget=budget, workload="1-way").release(**PRICE, name="tables")


def test_marginals_are_no_part_of_a_batch():
    budget = dp.Budget(epsilon=3, delta=1e-5)
    with pytest.raises(UnsupportedOperation, match="by themselves"):
        budget.plan([query(people(5), budget=budget)], epsilon=1, delta=1e-6)


# Refusals


def test_what_is_missing_is_named():
    frame = people(5).dp(unit="u")
    with pytest.raises(UnboundedContribution, match="max_rows=1"):
        frame.marginals(["a", "c"], keys={"a": [0, 1]})
    with pytest.raises(InvalidArgument, match="'b'"):
        frame.marginals(["a", "b"], keys={"a": [0, 1]}, max_rows=1)
    with pytest.raises(UnsupportedOperation, match="keys="):
        frame.marginals(["a", "b"], max_rows=1)
    with pytest.raises(UnsupportedOperation, match="dict of lists"):
        frame.marginals(["a", "b"], keys=[(0, "x")], max_rows=1)
    with pytest.raises(UnsupportedOperation, match="each group"):
        frame.marginals(["u", "c"], keys={"u": [1]}, max_rows=1)
    with pytest.raises(UnsupportedOperation, match="is the limit"):
        people(5).dp(unit=dp.Rows(2)).marginals(["a", "c"], keys={"a": [0, 1]}, max_rows=1)
    with pytest.raises(UnsupportedOperation, match="Auto"):
        frame.bound(limits=dp.Auto()).marginals(["a", "c"], keys={"a": [0, 1]}, max_rows=1)


@pytest.mark.parametrize(
    "workload",
    [
        "3-way",
        "0-way",
        "two",
        "-way",
        2,
        [],
        [()],
        [("a", "a")],
        [("a", "z")],
        [("a", "c"), ("c", "a")],
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(workload):
    with pytest.raises(InvalidArgument, match="marginals"):
        people(5).dp(unit="u").marginals(["a", "c"], workload, keys={"a": [0, 1]}, max_rows=1)


def test_tables_that_were_not_released_are_named_as_such():
    out = query(people(20), workload=[("a", "b")]).release(**PRICE)
    with pytest.raises(UnknownColumn, match="'z'"):
        out["a", "z"]
    with pytest.raises(InvalidArgument, match="a × b"):
        out["a", "a"]


# Errors


def standardized(out, table, names):
    """Squared errors of a table's cells over their stated variance."""
    errors = out[names].accuracy(alpha=0.05)
    cells = errors.filter(~pl.any_horizontal(pl.col(names).cast(pl.String) == "All"))
    truth = {key: len(group) for key, group in listed(table).group_by(*names)}
    sigma = cells["error"][0] / 1.959964
    return [
        (
            row["value"]
            - truth.get(
                tuple(
                    None
                    if row[n] is None
                    else type(KEYS[n][0])(row[n] if n != "c" else row[n] == "True")
                    for n in names
                ),
                0,
            )
        )
        ** 2
        / sigma**2
        for row in cells.iter_rows(named=True)
    ]


def mean_squares(releases, *tables):
    """For each release the mean of the squared errors of each
    table's cells, over what is stated.
    """
    table = people(200)
    asked = query(table)
    outs = (asked.release(**PRICE) for _ in range(releases))
    return np.array(
        [[np.mean(standardized(out, table, names)) for names in tables] for out in outs]
    )


@pytest.mark.long
def test_the_error_of_every_cell_is_the_one_that_is_stated():
    found = mean_squares(80, ("a", "b"))[:, 0]
    spread = found.std(ddof=1) / math.sqrt(len(found))
    # a false alarm in 10^7, with room for a t distribution
    assert abs(found.mean() - 1) / spread < 6
    # half the scale is seen: 13 is expected, 6 deviations above
    assert (found.mean() - 0.25) / spread > 6


@pytest.mark.long
def test_the_variance_of_every_marginal_is_the_closed_form():
    tables = list(combinations(COLUMNS, 2))
    squares = mean_squares(2000, *tables)
    found, spread = squares.mean(axis=0), squares.std(axis=0, ddof=1) / math.sqrt(len(squares))
    # by chance once in 10^7
    assert (np.abs(found - 1) < 6 * spread).all(), dict(zip(tables, found, strict=True))
    assert spread.max() < 0.05


def test_margins_of_a_table_have_the_errors_of_the_smaller_tables():
    out = query(people(100)).release(**PRICE)
    whole = out["a", "b"].accuracy()
    for row in whole.iter_rows(named=True):
        names = tuple(n for n in ("a", "b") if row[n] != "All")
        if len(names) == 1:
            other = out[names].accuracy()["error"][0]
            assert math.isclose(row["error"], other, rel_tol=1e-12)
        if not names:
            assert math.isclose(row["error"], out[()].accuracy()["error"][0], rel_tol=1e-12)


def test_the_error_before_is_the_error_after_and_the_price_for_an_error_is_found():
    asked = query(people(100))
    before = dict(asked.accuracy(**PRICE).select("column", "error").iter_rows())
    out = asked.release(**PRICE)
    assert math.isclose(before["a × b"], out["a", "b"].accuracy()["error"][0], rel_tol=1e-12)
    epsilon = asked.epsilon_for(20, delta=1e-6)
    assert max(asked.accuracy(epsilon, 1e-6)["error"]) <= 20
    assert max(asked.accuracy(epsilon * 0.999, 1e-6)["error"]) > 20


def test_tables_agree_on_every_margin_they_share():
    out = query(people(200), workload="3-way").release(**PRICE)
    for one, other in combinations(out, 2):
        shared = tuple(sorted(set(one) & set(other)))
        for table in (one, other):
            summed = (
                numbers_of(out[table])
                .long.group_by(*shared, maintain_order=True)
                .agg(pl.col("count").sum())
            )
            joined = summed.join(numbers_of(out[shared]).long, on=shared, nulls_equal=True)
            assert np.allclose(joined["count"], joined["count_right"], rtol=0, atol=1e-6)
            assert joined.height == numbers_of(out[shared]).long.height


# Ready to publish


def test_each_table_is_a_release_like_any_other():
    out = query(people(300)).release(**PRICE)
    one = out["a", "b"]
    assert isinstance(one, dp.Release)
    with pytest.warns(DpFrameWarning):
        steps = one.nonnegative().round().suppress(below=1)
    assert steps.to_polars().columns == ["a", "x", "y", "null", "All"]
    assert "All" in one.to_csv()
    assert "charged once for 6 queries released together" in str(one.report())
    assert one.cost == out.cost
    pytest.importorskip("altair")
    assert one.plot().to_dict()
    assert out["a"].plot().to_dict()


def test_a_table_that_is_changed_by_itself_says_that_it_no_longer_agrees_with_the_others():
    out = query(people(300)).release(**PRICE)
    one = out["a", "b"]
    for verb in ("nonnegative", "round"):
        with pytest.warns(
            DpFrameWarning, match=rf"{verb}\(\): this is one of 6 marginals"
        ) as warned:
            changed = getattr(one, verb)()
        assert [x.filename for x in warned] == [__file__]
        assert "no longer agrees with the other tables" in str(changed.report())
        assert "no longer agrees with the other tables" in changed.report().to_html()
        assert "no longer agrees with the other tables" in changed._repr_html_()
        assert "no longer agrees with the other tables" in changed.report().to_json()
        assert "no longer agrees" not in str(one.report())
        again = changed.round()  # warnings are errors here: it is said once of a table
        assert str(again.report()).count("no longer agrees") == 1
    one.suppress(below=1)  # what is not shown still agrees


def test_a_table_that_was_released_alone_agrees_with_itself():
    out = query(people(300), workload=[("a", "b")], columns=["a", "b"]).release(**PRICE)
    assert "no longer agrees" not in str(out["a", "b"].nonnegative().round().report())


def test_what_was_released_can_be_sent_on_and_holds_no_rows():
    out = query(people(300)).release(**PRICE)
    again = pickle.loads(pickle.dumps(out))
    assert again.table.equals(out.table)
    assert again["b", "a"].table.equals(out["b", "a"].table)
    assert len(pickle.dumps(query(people(30_000)).release(**PRICE))) < 16_000


def test_all_tables_together_are_one_long_table_in_the_kind_that_was_protected(kind):
    out = query(bring(people(50), kind)).release(**PRICE)
    assert type(out.table).__module__.split(".")[0] == {"lazy": "polars"}.get(
        kind.split("-")[0], kind.split("-")[0]
    )
    table = out.to_polars()
    assert table.columns == [*COLUMNS, "count"]
    assert table.height == sum(len(KEYS[a]) * len(KEYS[b]) for a, b in combinations(COLUMNS, 2))
    assert table.filter(pl.col("a") != "All", pl.col("b").ne_missing("All")).height == 12


def test_exports_hold_the_statement(tmp_path):
    out = query(people(50)).release(**PRICE)
    out.to_csv(tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv").height == out.to_polars().height
    out.to_parquet(tmp_path / "t.parquet")
    said = json.loads(pl.read_parquet_metadata(tmp_path / "t.parquet")["dpframe.privacy_statement"])
    assert said["guarantee"]["epsilon"] == 1.0
    assert {row["aggregate"] for row in said["mechanisms"]} == {"interaction"}
    assert out.report().to_json()
    assert "a × b" in out._repr_html_() or "<table>" in out._repr_html_()
    pytest.importorskip("openpyxl")
    out.to_excel(tmp_path / "t.xlsx")
    sheets = pd.read_excel(tmp_path / "t.xlsx", sheet_name=None)
    assert next(iter(sheets)) == "1 a × b"
    assert list(sheets)[-1] == "privacy"
    assert len(sheets) == len(out) + 1


def test_the_derivation_says_where_the_price_goes():
    asked = query(people(5))
    text = str(asked.explain())
    assert "6 tables" in text
    assert "at most 1 row: enforced here by weights" in text
    assert "rows by a × b, without what its margins say" in text
    assert set(asked.sensitivity) >= {"total", "a", "a × b"}
    assert "one" not in asked.sensitivity  # a column with one key has nothing of its own
    assert "a × b" in repr(asked)


def test_the_one_liner_releases_at_once():
    out = people(30).dp.marginals(
        ["a", "c"],
        keys={"a": [0, 1]},
        unit="u",
        max_rows=1,
        budget=dp.Budget(epsilon=1, delta=1e-6),
        **PRICE,
    )
    assert out["a", "c"].table.shape == (3, 4)
