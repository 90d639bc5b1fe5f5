"""Shares, moving averages, changes and index numbers of a release:
their values, their coverage, and refusals.
"""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.accuracy import Combinations
from inside import numbers_of

DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in range(10)]
RNG = np.random.default_rng(1)
TABLE = pl.DataFrame({"id": np.arange(2000) // 4, "n": RNG.integers(0, 10, 2000)}).unique()
TABLE = TABLE.with_columns(
    day=pl.Series([DAYS[n] for n in TABLE["n"]]), part=pl.col("n") // 5, x=pl.col("n") / 10
)
LIMITS = {"max_groups": 4, "max_rows_per_group": 1}
KINDS = {
    "laplace": {"epsilon": 0.7, "noise": "laplace"},
    "little": {"epsilon": 8.0, "noise": "laplace"},
    "gaussian": {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    "elliptic": {"epsilon": 1.0, "delta": 1e-6, "noise": "elliptic"},
    "k-norm": {"epsilon": 0.7, "noise": "k-norm"},
}
CERTAIN = {"epsilon": 1e9, "noise": "laplace"}


def frame(kind=pl.DataFrame, **budget):
    return dp.protect(
        kind(TABLE), unit="id", budget=dp.Budget(**({"epsilon": 1e13, "delta": 0.5} | budget))
    )


def days(price=CERTAIN, kind=pl.DataFrame, **asked):
    return (
        frame(kind)
        .group_by("day", keys=DAYS, **LIMITS)
        .agg(**(asked or {"n": dp.count()}))
        .release(**price)
    )


def parts(price=CERTAIN):
    return (
        frame()
        .group_by("part", "n", keys=[(n // 5, n) for n in range(10)], **LIMITS)
        .count()
        .release(**price)
    )


def test_values_are_those_of_pandas():
    out, counts = days(kind=pl.DataFrame.to_pandas), TABLE.to_pandas().groupby("day").size()
    counts = counts.reindex(pd.to_datetime(DAYS))
    for got, theirs in (
        (out.share(), counts / counts.sum()),
        (out.rolling(3).mean(), counts.rolling(3).mean()),
        (out.rolling(4).sum(), counts.rolling(4).sum()),
        (out.diff(), counts.diff()),
        (out.diff(3), counts.diff(3)),
        (out.pct_change(), counts.pct_change()),
        (out.rebase("2026-01-03"), 100 * counts / counts.iloc[2]),
        (out.rebase(pd.Timestamp(DAYS[2]), to=1), counts / counts.iloc[2]),
    ):
        name = got.to_polars().columns[1]
        np.testing.assert_allclose(got.table[name].to_numpy(), theirs.to_numpy())
        assert got.cost == out.cost


def test_groups_of_other_keys_have_periods_of_their_own():
    rows = TABLE.with_columns(sex=pl.col("id") % 2)
    keys = [(day, sex) for sex in (1, 0) for day in DAYS[::-1]]
    asked = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=1e13)).group_by(
        "day", "sex", keys=keys, **LIMITS
    )
    out = asked.count().release(**CERTAIN)
    theirs = rows.to_pandas().groupby(["sex", "day"]).size().groupby("sex").diff()
    for row in out.diff().to_polars().iter_rows(named=True):
        expected = theirs[row["sex"], pd.Timestamp(row["day"])]
        assert row["diff"] == (None if np.isnan(expected) else expected)
    within = out.share(within="sex").to_polars()
    assert within.group_by("sex").agg(pl.col("share").sum())["share"].to_list() == pytest.approx(
        [1, 1]
    )
    with pytest.raises(InvalidArgument, match="on='part'"):
        parts().diff()
    assert parts().diff(on="n").to_polars()["diff"].null_count() == 2


ALL = np.arange(10)
COMBINED = {
    "share": lambda found: found.quotients(ALL, np.tile(ALL, (10, 1))),
    "share of a part": lambda found: found.quotients(ALL[:5], np.tile(ALL[:5], (5, 1))),
    "moving average": lambda found: found.sums(
        np.lib.stride_tricks.sliding_window_view(ALL, 3), np.full(3, 1 / 3)
    ),
    "moving sum": lambda found: found.sums(
        np.lib.stride_tricks.sliding_window_view(ALL, 5), np.ones(5)
    ),
    "change": lambda found: found.sums(np.column_stack([ALL[1:], ALL[:-1]]), np.array([1.0, -1.0])),
    "relative change": lambda found: found.quotients(ALL[1:], ALL[:-1, None]),
}


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "laplace" else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS],
)
def test_intervals_hold_in_at_least_94_of_100_repeats(kind):
    """A thousand draws of the noise of a release, the same in each run;
    the control is half of each interval.
    """
    out, truth = days(KINDS[kind]), days().table["n"].cast(pl.Float64)
    (output,) = numbers_of(out).outputs
    held, half, repeats = dict.fromkeys(COMBINED, 0.0), [], 1000
    exact = {
        name: ask(Combinations(numbers_of(days()), output, 0.05))[0]
        for name, ask in COMBINED.items()
    }
    mechanism = numbers_of(out).noise.of(output.totals[0][1]).mechanism
    with dp.testing.fixed_noise(f"combinations, {kind}"):
        for _ in range(repeats):
            noisy = numbers_of(out).long.with_columns(
                n=(truth + np.array(mechanism.draw(10), float)).cast(pl.Int64)
            )
            found = Combinations(replace(numbers_of(out), long=noisy), output, 0.05)
            for name, ask in COMBINED.items():
                value, low, high = ask(found)
                held[name] += (
                    np.mean((low - 1e-9 <= exact[name]) & (exact[name] <= high + 1e-9)) / repeats
                )
                half.append(np.mean(np.abs(value - exact[name]) <= (high - low) / 4))
    assert min(held.values()) >= 0.94, held
    assert np.mean(half) < 0.94


def test_shared_noise_makes_changes_surer_and_sums_less_sure():
    shared, alone = days(KINDS["elliptic"]), days(KINDS["gaussian"])
    for out in (shared, alone):
        error = out.accuracy()["error"][0]
        length = [
            float(np.ptp(t.to_polars().row(-1)[-2:])) / 2 / error
            for t in (out.diff(), out.rolling(9).mean())
        ]
        if out is alone:
            assert length == pytest.approx([2**0.5, 1 / 3], rel=0.05)
        else:
            assert length[0] < 1.4
            assert length[1] > 0.4


def test_means_move_too_and_missing_numbers_leave_gaps():
    out = days(KINDS["laplace"], m=dp.mean("x", bounds=(0, 1)), n=dp.count())
    moving = out.rolling(2, "m").mean().to_polars()
    assert moving["rolling_mean"].null_count() == 1
    assert (moving["rolling_mean_low"] < moving["rolling_mean"]).sum() == 9
    assert days().rolling(2).mean().to_polars()["rolling_mean_low"].drop_nulls().len() == 9
    shown = days().suppress(below=float(days().table["n"].min()) + 0.5)
    gaps = shown.rolling(2).mean().to_polars()
    assert gaps["rolling_mean"].null_count() == gaps["rolling_mean_low"].null_count() >= 2


def test_a_divisor_that_noise_hides_gives_no_share():
    empty = (
        frame()
        .filter(dp.col("n") > 10)
        .group_by("day", keys=DAYS, **LIMITS)
        .count()
        .release(epsilon=0.01)
    )
    for table in (empty.share().to_polars(), empty.rebase(DAYS[0]).to_polars()):
        assert table.drop("day").null_count().row(0) == (10, 10, 10)


def test_what_does_not_follow_is_refused():
    out = days()
    hidden = out.suppress(below=float(out.table["n"].max()) - 1)
    found = frame().group_by("n", **LIMITS).count().release(epsilon=1, delta=1e-3)
    crosstab = (
        frame().crosstab("part", "n", keys={"part": [0], "n": [1]}, **LIMITS).release(epsilon=1)
    )
    means = days(m=dp.mean("x", bounds=(0, 1)))
    for call, error, words in (
        (hidden.share, UnsupportedOperation, "before suppress"),
        (found.share, UnsupportedOperation, "listed groups"),
        (means.share, UnsupportedOperation, "counts and sums"),
        (means.pct_change, UnsupportedOperation, r"diff\(\)"),
        (crosstab.share, UnsupportedOperation, "group_by"),
        (lambda: out.share(within="day"), InvalidArgument, "not all"),
        (lambda: out.rolling(0), InvalidArgument, r"rolling\(7\)"),
        (lambda: out.rolling(2, on="x"), InvalidArgument, "on="),
        (lambda: out.diff(1.5), InvalidArgument, "periods="),
        (lambda: out.rebase("2020-01-01"), InvalidArgument, "among the keys"),
        (lambda: out.rebase(DAYS[0], to=-1), InvalidArgument, "to="),
        (
            lambda: frame().count(max_rows=1).release(epsilon=1).diff(),
            UnsupportedOperation,
            "groups",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


def test_what_follows_is_a_release_with_files_a_report_and_a_chart():
    moving = days(KINDS["gaussian"]).rolling(3).mean()
    assert "Moving average of 3 periods: number of rows by day" in str(moving)
    assert "rolling_mean" in moving.report()
    assert moving.to_csv().splitlines()[0] == "day,rolling_mean,rolling_mean_low,rolling_mean_high"
    chart = moving.plot(width=400).to_dict()
    assert (
        chart["title"]["text"] == ["Moving average of 3 periods:", "number of rows by day"]
        or chart["title"]["text"]
    )
    rows = pl.DataFrame({"value": ["a", "b"] * 50, "share": ["x", "y"] * 50})
    keyed = dp.protect(rows, unit=dp.Rows(1), budget=dp.Budget(epsilon=9))
    out = keyed.group_by("value", "share", keys=[("a", "x"), ("b", "y")]).count().release(epsilon=1)
    assert out.share().table.columns == ["value", "share", "share_", "share__low", "share__high"]
    assert out.share().plot().to_dict()
