"""Counts and sums that are scaled up by what limits of dp.Auto leave out."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.plan import Limits
from dpframe.release.answer import RemainingRows, is_scaled_by
from dpframe.release.answer.upscaling import _product
from inside import question_of

GROUPS = list(range(20))


@pytest.fixture(scope="module")
def table():
    """3,000 units, a few of which have most of the rows."""
    draw = np.random.default_rng(3)
    rows = np.ceil(draw.lognormal(2.0, 1.5, 3000)).astype(int)
    ids = np.repeat(np.arange(3000), rows)
    columns = {"id": ids, "g": draw.integers(0, 20, len(ids)), "h": draw.integers(0, 3, len(ids))}
    return pl.DataFrame({**columns, "x": draw.uniform(1, 5, len(ids))})


@pytest.fixture
def apart(table):
    """People with all their rows in one group each, so that a limit on all
    rows is the one that is chosen.
    """
    return table.with_columns(g=pl.col("id") % len(GROUPS))


def protect(table):
    return dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9, delta=0.9))


def grouped(table, **options):
    return protect(table).group_by("g", **{"keys": GROUPS, "limits": dp.Auto(), **options})


def factor_of(out):
    return out.report().items["chosen"]["scaled"]


# The factor


def left(*ratios, rows=1000.0, odds=None):
    kept = np.full(len(ratios), rows) if np.isscalar(rows) else np.array(rows)
    each = np.full(len(ratios), 1 / len(ratios)) if odds is None else np.array(odds)
    return RemainingRows(kept, kept * np.array(ratios), each)


def least_squares(parts, odds):
    """The factor by brute force."""
    factors = np.linspace(1, 5, 40_001)
    off = [np.dot(odds, (1 - factor * np.array(parts)) ** 2) for factor in factors]
    return float(factors[np.argmin(off)])


def test_it_is_the_least_squares_ratio_over_what_the_histograms_leave_open():
    ratios = (1.1, 1.5, 1.2)
    for odds in ([1 / 3] * 3, [0.1, 0.8, 0.1]):
        exact = least_squares([1 / ratio for ratio in ratios], odds)
        assert left(*ratios, odds=odds).before == pytest.approx(exact, abs=2e-4)
    assert left(*ratios).factor(1000.0, 10.0) == pytest.approx(
        least_squares([1 / r for r in ratios], [1] * 3), abs=1e-3
    )


def test_a_case_with_a_billion_rows_hardly_counts():
    assert left(1.2, 1.2, 1.2, 1e9).before == pytest.approx(1.2, abs=1e-6)
    assert left(8.0, 8.0).before == 4.0


def test_cases_that_make_other_totals_than_were_seen_do_not_count():
    cases = left(1.1, 1.3, 1.6, rows=[1000.0, 2000.0, 4000.0])
    assert cases.before > 1.2
    assert cases.factor(1000.0, 10.0) == pytest.approx(1.1)
    assert cases.factor(4000.0, 10.0) == pytest.approx(1.6)


def test_noise_that_may_move_every_case_does_not_single_one_out():
    """Of few units, a total above all cases says that there are more units,
    and hardly which case is right.
    """
    rows, ratios, odds = (
        [2000.0, 2500.0, 3000.0, 3400.0],
        [1.05, 1.06, 1.05, 5.0],
        [0.33, 0.33, 0.32, 0.02],
    )
    sure, unsure = (
        replace(left(*ratios, rows=rows, odds=odds), unsure=unsure) for unsure in (0.0, 0.2)
    )
    assert unsure.before <= unsure.factor(3600.0, 100.0) < 1.1
    assert sure.factor(3600.0, 100.0) > 2  # control


def test_a_small_factor_is_none():
    assert left(1.0, 1.008, 1.0).factor(1000.0, 10.0) == 1.0
    assert left(0.9, 0.9).factor(1000.0, 10.0) == 1.0  # nothing is scaled down


@pytest.mark.parametrize("total", [-1e9, 0.0, 1.0, 1e18])
@pytest.mark.parametrize("deviation", [0.0, 1e-9, 1e12])
def test_it_is_a_number_whatever_was_seen(total, deviation):
    for cases in (left(1.1, 1.5), left(1e9, 2e9, rows=1e-12), left(1.1, 1.5, rows=[0.0, 1e15])):
        assert 1 <= cases.factor(total, deviation) < np.inf


def output_of(table, aggregate):
    (output,) = question_of(grouped(table).agg(y=aggregate)).outputs
    return output


def test_whole_numbers_and_times_stay_what_they_are_and_can_be_shown(table):
    count, total = output_of(table, dp.count()), output_of(table, dp.sum("x", bounds=(0, 5)))
    assert _product(count, pl.Series([10, -3, 0]), 1.26).to_list() == [13, -4, 0]
    assert _product(count, pl.Series([2**63 - 1, -(2**63)]), 1.5).abs().min() > 2**62
    assert _product(total, pl.Series([1.5]), 1.2).to_list() == pytest.approx([1.8])
    waits = table.with_columns(x=pl.duration(seconds=pl.col("x"), time_unit="ms"))
    day = dt.timedelta(days=1)
    times = output_of(waits, dp.sum("x", bounds=(0 * day, day)))
    longest = 999_999_000 * 86_400_000
    made = _product(times, pl.Series([10_000, longest]).cast(pl.Duration("ms")), 1.5)
    assert made.dtype == pl.Duration("ms")
    assert made[0] == dt.timedelta(seconds=15)
    assert 999_999_000 * day < made[1] < dt.timedelta.max


# What it is good for


@pytest.mark.long
@pytest.mark.usefixtures("same_noise")
def test_numbers_are_nearer_to_those_of_all_rows(apart):
    truth = apart.group_by("g").agg(n=pl.len(), s=pl.col("x").sum()).sort("g")
    off = {}
    for said in (True, False):
        query = grouped(apart, limits=dp.Auto(scaled=said)).agg(
            n=dp.count(), s=dp.sum("x", bounds=(0, 5))
        )
        outs = [query.release(epsilon=1).table for _ in range(12)]
        for name in ("n", "s"):
            squares = [(out[name].to_numpy() - truth[name].to_numpy()) ** 2 for out in outs]
            off[said, name] = float(np.sqrt(np.mean(squares)))
    assert off[True, "n"] < 0.9 * off[False, "n"]  # about half
    assert off[True, "s"] < 0.9 * off[False, "s"]


def test_where_limits_leave_nothing_out_nothing_is_scaled(table):
    out = grouped(table).count().release(epsilon=1e5)
    # limits on rows per group have no factor
    assert out.report().items["chosen"].get("scaled", 1.0) == 1.0
    assert out.table["count"].to_list() == table.group_by("g").len().sort("g")["len"].to_list()


# What it multiplies


@pytest.mark.usefixtures("same_noise")
def test_counts_and_sums_are_multiplied_and_their_margins_with_them(table):
    asked = {"n": dp.count(), "s": dp.sum("x", bounds=(0, 5)), "m": dp.mean("x", bounds=(0, 5))}
    out = grouped(table).agg(**asked).release(epsilon=1)
    factor, limits = factor_of(out), out.report().items["chosen"]["limits"]
    assert factor > 1.05
    fixed = protect(table).group_by("g", keys=GROUPS, **limits).agg(**asked)
    plain = {row[0]: row[4] for row in fixed.accuracy(epsilon=0.9).rows()}
    errors_ = {row[1]: row[3] for row in out.accuracy().rows()}
    assert errors_["n"] == pytest.approx(factor * plain["n"] + 0.5)
    assert errors_["s"] == pytest.approx(factor * plain["s"])
    assert out.table["m"].mean() == pytest.approx(3.0, abs=0.5)
    assert f"Multiplied by {factor:g}: n, s." in str(out.report())


@pytest.mark.long
@pytest.mark.usefixtures("same_noise")
def test_an_interval_holds_the_limited_number_times_the_factor(apart):
    held, query = [], grouped(apart).count()
    for _ in range(60):
        out = query.release(epsilon=1, ci=0.9)
        limits = out.report().items["chosen"]["limits"]
        if "scaled" not in out.report().items["chosen"]:  # limits on rows per group
            continue
        limited = protect(apart).group_by("g", keys=GROUPS, **limits).count().release(epsilon=1e5)
        exact, rounded = limited.table["count"].to_numpy() * factor_of(out), 0.5 * factor_of(out)
        low, high = (out.table[f"count_{end}"].to_numpy() for end in ("low", "high"))
        held.append((low - rounded <= exact) & (exact <= high + rounded))
    assert len(held) > 30
    assert 0.87 < np.mean(held) < 0.95


@pytest.mark.long
@pytest.mark.usefixtures("same_noise")
def test_the_interval_of_a_median_is_that_of_the_rows_that_were_counted(table):
    query = grouped(table).agg(n=dp.count(), m=dp.median("x", bounds=(1, 5)))
    outs = [query.release(epsilon=0.5) for _ in range(20)]
    out = max(outs, key=factor_of)
    assert factor_of(out) > 1.2
    group, shown = out.table.filter(pl.col("n") > 0).select("g", "n").row(0)
    told = out.accuracy().filter((pl.col("g") == group) & (pl.col("column") == "m"))
    same = out.accuracy(assume_rows=shown / factor_of(out)).filter(
        (pl.col("g") == group) & (pl.col("column") == "m")
    )
    assert told["error"].item() == pytest.approx(same["error"].item(), rel=0.05)


@pytest.mark.usefixtures("same_noise")
def test_margins_of_a_crosstab_are_sums_of_cells_and_their_errors_are_multiplied(table):
    query = protect(table).crosstab(
        "g", "h", keys={"g": GROUPS, "h": [0, 1, 2]}, margins=True, limits=dp.Auto()
    )
    out = query.release(epsilon=1)
    factor, wide = factor_of(out), out.to_pandas()
    assert factor > 1.05
    assert (wide.loc["All"].iloc[:-1] == wide.iloc[:-1, :-1].sum()).all()
    found = out.accuracy().filter((pl.col("g") == "All") & (pl.col("h") == "All"))["error"].item()
    most = out.report().items["chosen"]["limits"]["max_rows"]
    fixed = protect(table).crosstab(
        "g", "h", keys={"g": GROUPS, "h": [0, 1, 2]}, margins=True, max_rows=most
    )
    plain = (
        fixed.release(epsilon=0.9)
        .accuracy()
        .filter((pl.col("g") == "All") & (pl.col("h") == "All"))["error"]
        .item()
    )
    assert found == pytest.approx(factor * plain + 60 / 2, rel=0.01)


@pytest.mark.usefixtures("same_noise")
def test_a_stored_table_is_multiplied_once(table, tmp_path):
    def ask():
        budget = dp.testing.ledger(tmp_path / "a.sqlite").budget("b", epsilon=10, delta=1e-6)
        frame = dp.protect(table, unit="id", budget=budget)
        return (
            frame.group_by("g", keys=GROUPS, limits=dp.Auto())
            .agg(n=dp.count())
            .release(epsilon=1, noise="laplace", name="n by g")
        )

    first, again = ask(), ask()
    assert factor_of(first) == factor_of(again) > 1.05
    assert first.table.equals(again.table)
    assert first.accuracy().equals(again.accuracy())


@pytest.mark.usefixtures("same_noise")
def test_steps_after_it_take_the_numbers_as_they_are(table):
    out = grouped(table).agg(n=dp.count()).release(epsilon=1)
    small = out.suppress(below=out.table["n"].median()).table["n"]
    assert small.null_count() == 10
    assert out.nonnegative().table["n"].sum() == pytest.approx(out.table["n"].sum())
    assert isinstance(out.to_pandas(), pd.DataFrame)


# Where it does not


def undecided(table, **options):
    return question_of(grouped(table, **options).agg(n=dp.count()))


def test_only_in_groups_where_rows_in_all_are_limited_and_their_number_is_released(table):
    ask = undecided(table)
    assert is_scaled_by(ask, Limits(5, None, None))
    assert not is_scaled_by(ask, Limits(5, 2, None))
    assert not is_scaled_by(ask, Limits(5, None, 2))
    assert not is_scaled_by(undecided(table, limits=dp.Auto(scaled=False)), Limits(5, None, None))
    assert not is_scaled_by(undecided(table, max_groups=3), Limits(5, 3, None))
    assert not is_scaled_by(undecided(table, max_rows=5), Limits(5, None, None))
    assert not is_scaled_by(undecided(table, keys=None), Limits(5, None, None))
    assert not is_scaled_by(undecided(table, keys=GROUPS[:1]), Limits(5, None, None))
    assert not is_scaled_by(
        question_of(protect(table).count(limits=dp.Auto())), Limits(5, None, None)
    )
    frame = protect(table).group_by("g", keys=GROUPS, limits=dp.Auto())
    bounds = (0, 5)
    for asked in (
        frame.sum("x", bounds),
        frame.mean("x", bounds),
        frame.count_units(),
        frame.median("x", bounds),
    ):
        assert not is_scaled_by(question_of(asked), Limits(5, None, None))


def test_the_derivation_says_before_a_release_what_may_be_scaled(table):
    asked = {"n": dp.count(), "s": dp.sum("x", bounds=(0, 5)), "m": dp.mean("x", bounds=(0, 5))}
    query = grouped(table).agg(**asked)
    assert "n, s may be multiplied by one factor for all groups, at most 4" in str(query.explain())
    assert "n, s may be multiplied" in query.explain()._repr_html_()
    # its report says what was done
    assert "multiplied" not in str(query.release(epsilon=1).derivation)
    frame = protect(table).group_by("g", keys=GROUPS, limits=dp.Auto())
    for other in (
        grouped(table, limits=dp.Auto(scaled=False)).count(),
        grouped(table, limits=None, max_rows=5).count(),
        grouped(table, max_rows=5).count(),
        grouped(table, keys=GROUPS[:1]).count(),
        grouped(table, keys=None).count(),
        protect(table).count(limits=dp.Auto()),
        frame.sum("x", (0, 5)),
        frame.mean("x", (0, 5)),
        frame.agg(n=dp.count(), u=dp.count_units()),  # by units, so that groups are limited
    ):
        assert "multiplied" not in str(other.explain())


@pytest.mark.usefixtures("same_noise")
def test_beside_a_count_of_units_nothing_is_scaled(table):
    outs = [
        grouped(table).agg(n=dp.count(), u=dp.count_units()).release(epsilon=1) for _ in range(2)
    ]
    assert all("scaled" not in out.report().items["chosen"] for out in outs)


@pytest.mark.usefixtures("same_noise")
def test_what_is_typed_is_what_is_done(table):
    assert repr(dp.Auto(scaled=False)) == "dp.Auto(scaled=False)"
    assert repr(dp.Auto(0.2, scaled=False)) == "dp.Auto(0.2, scaled=False)"
    out = grouped(table, limits=dp.Auto(scaled=False)).agg(n=dp.count()).release(epsilon=1)
    assert "scaled" not in out.report().items["chosen"]
    assert "Multiplied" not in str(out.report())
    with pytest.raises(errors.InvalidArgument, match="True or False"):
        dp.Auto(scaled="no")
