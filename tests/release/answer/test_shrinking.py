"""`Release.shrink`: smaller errors, intervals that are right on average over
groups, and no row that is read.
"""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.errors import InvalidArgument, UnsupportedOperation
from inside import numbers_of

SHOPS = list(range(30))


def sales(between=1.0, rows=200, seed=5):
    """Sales of shops whose mean prices differ by `between`, one row a
    person, and the truth of each shop.
    """
    draw = np.random.default_rng(seed)
    shop = np.repeat(SHOPS, rows)
    level = 50 + draw.normal(0, between, len(SHOPS))
    table = pl.DataFrame(
        {"shop": shop, "price": np.clip(level[shop] + draw.normal(0, 8, len(shop)), 0, 100)}
    )
    truth = table.group_by("shop").agg(
        m=pl.col("price").mean(), v=pl.col("price").var(), s=pl.col("price").std()
    ).sort("shop")  # fmt: skip
    return table, truth


def question(table, **asked):
    asked = asked or {"m": dp.mean("price", bounds=(0, 100))}
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(rho=200))
    return frame.group_by("shop", keys=SHOPS).agg(**asked)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_errors_are_smaller_and_intervals_hold_on_average(noise):
    """Of 40 releases with 30 groups each: 1,200 intervals;
    a share of 0.95 would fall to 0.92 once in a million.
    """
    table, truth = sales()
    raw, moved, held = [], [], []
    for _ in range(40):
        out = question(table).release(rho=0.02, noise=noise)
        small = out.shrink()
        raw.append(np.mean((out.table["m"] - truth["m"]).to_numpy() ** 2))
        moved.append(np.mean((small.table["m"] - truth["m"]).to_numpy() ** 2))
        errors = small.accuracy()
        held.append(((errors["lower"] <= truth["m"]) & (truth["m"] <= errors["upper"])).mean())
    assert np.mean(moved) < 0.5 * np.mean(raw)
    assert np.mean(held) > 0.92


@pytest.mark.parametrize(("name", "statistic"), [("v", dp.var), ("s", dp.std)])
def test_variances_shrink_too(name, statistic):
    table, truth = sales()
    query = question(table, **{name: statistic("price", bounds=(0, 100))})
    outs = [query.release(rho=0.02) for _ in range(15)]
    errors = [
        np.mean([np.mean((one.table[name] - truth[name]).to_numpy() ** 2) for one in made])
        for made in (outs, [out.shrink() for out in outs])
    ]
    assert errors[1] < 0.4 * errors[0]
    shares = []
    for out in outs:
        ends = out.shrink().accuracy()
        shares.append(((ends["lower"] <= truth[name]) & (truth[name] <= ends["upper"])).mean())
    assert np.mean(shares) > 0.9


def test_small_groups_that_truly_differ_are_not_worse_unless_they_are_said_to_be_alike():
    """One shop of 60 people is unlike 29 shops of 1,000.
    Its noise hides that, so `alike=True` moves it away.
    """
    sizes = np.where(np.array(SHOPS) == 0, 60, 1000)
    table = pl.DataFrame({"shop": np.repeat(SHOPS, sizes)}).with_columns(
        price=pl.when(pl.col("shop") == 0).then(90.0).otherwise(50 + pl.col("shop") / 30)
    )
    truth = table.group_by("shop").agg(pl.col("price").mean()).sort("shop")["price"].to_numpy()
    outs = [question(table).release(epsilon=0.1) for _ in range(12)]
    made = outs, [out.shrink() for out in outs], [out.shrink(alike=True) for out in outs]
    raw, safe, alike = (
        np.mean([(one.fill().table["m"].to_numpy() - truth) ** 2 for one in some]) for some in made
    )
    assert safe < 1.05**2 * raw
    assert alike > 1.2**2 * raw


def test_groups_that_truly_differ_hardly_move():
    table, truth = sales(between=15, rows=2000)
    out = question(table).release(rho=5)
    shift = (out.shrink().table["m"] - out.table["m"]).abs().max()
    error = (out.table["m"] - truth["m"]).abs().max()
    assert shift < 3 * error
    assert shift < 0.3


def test_no_row_is_read_and_the_first_release_stays(monkeypatch):
    table, _ = sales()
    out = question(table).release(rho=0.02)
    before = out.table

    def forbidden(*_args, **_kwargs):
        raise AssertionError("rows were read")

    for name in ("compute", "measure", "totals", "run"):
        monkeypatch.setattr(engine, name, forbidden, raising=False)
    monkeypatch.setattr(pl.LazyFrame, "collect", forbidden)
    numbers = numbers_of(out.shrink()).long
    monkeypatch.undo()
    assert out.table.equals(before)
    assert not numbers.equals(before)


def test_it_follows_from_what_was_released_alone():
    """Two tables that differ in every row; with the noisy totals of one,
    the answer is that of this one.
    """
    first, second = (question(sales(between=b, seed=b)[0]).release(rho=0.02) for b in (1, 9))
    from dataclasses import replace

    moved = replace(second, _numbers=numbers_of(first)).shrink()
    assert numbers_of(moved).long.equals(numbers_of(first.shrink()).long)


def test_counts_stay_and_times_are_times():
    table = sales()[0].with_columns(day=dt.date(2024, 3, 1) + pl.duration(days=pl.col("shop") % 3))
    query = question(
        table, n=dp.count(), day=dp.mean("day", bounds=(dt.date(2024, 1, 1), dt.date(2024, 12, 31)))
    )
    out = query.release(rho=0.05)
    moved = out.shrink().with_ci(0.9).table
    assert moved["n"].equals(out.table["n"])
    assert moved.schema["day"] == out.table.schema["day"]
    assert ((moved["day_low"] <= moved["day"]) & (moved["day"] <= moved["day_high"])).all()
    assert moved["day"].n_unique() <= out.table["day"].n_unique()


def test_the_row_of_suppressed_groups_is_no_group():
    table = sales()[0]
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=5, delta=1e-6))
    query = frame.group_by("shop", other=-1).agg(m=dp.mean("price", bounds=(0, 100)))
    out = query.release(epsilon=1, delta=1e-7)
    moved = out.shrink()
    assert moved.table["m"][-1] == out.table["m"][-1]
    assert moved.accuracy().select("lower", "upper").row(-1) == out.accuracy().select(
        "lower", "upper"
    ).row(-1)


def test_a_crosstab_of_means():
    table = sales()[0].with_columns(half=pl.col("price") > 50)
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(rho=5))
    keys = {"shop": SHOPS, "half": [False, True]}
    out = frame.crosstab(
        "shop", "half", keys=keys, values="price", aggfunc="mean", bounds=(0, 100)
    ).release(rho=0.02)
    assert out.shrink().table.shape == out.table.shape


def test_it_is_said_where_it_helps_and_where_it_was_done():
    # a shop's noise is ± 30 or so
    noisy = (question(sales(between=0)[0]).release(rho=0.0005) for _ in range(8))
    # nearly always the first
    out = next(out for out in noisy if "out.shrink()" in out._repr_html_())
    moved = out.shrink()
    assert "out.shrink()" not in moved._repr_html_()
    assert "right on average over groups" in str(moved.report())
    assert moved.shrink().table.equals(moved.table)  # once is enough
    clear = question(sales(between=15, rows=2000)[0]).release(rho=50)
    assert "out.shrink()" not in clear._repr_html_()


def test_what_cannot_shrink_is_refused_or_stays():
    table, _ = sales()
    counts = question(table, n=dp.count()).release(rho=0.1)
    with pytest.raises(UnsupportedOperation, match="Counts and sums stay as they are"):
        counts.shrink()
    with pytest.raises(InvalidArgument, match="there is no column 'm'; columns are n"):
        counts.shrink("m")
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(rho=5))
    with pytest.raises(UnsupportedOperation, match="has no groups"):
        frame.agg(m=dp.mean("price", bounds=(0, 100))).release(rho=0.1).shrink()
    few = (
        frame.group_by("shop", keys=[1, 2, 3])
        .agg(m=dp.mean("price", bounds=(0, 100)))
        .release(rho=0.01)
    )
    assert few.shrink().table.equals(few.table)
    assert "fewer than four groups" in str(few.shrink().report())


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("statistic", "bounds"),
    [
        (dp.mean, (1e-300, 2e-300)),
        (dp.mean, (-1e269, 1e269)),
        (dp.var, (0, 1e-134)),
        (dp.std, (0, 1e134)),
        (dp.mean, (5, 5)),
    ],
)
@pytest.mark.parametrize("epsilon", [1e-12, 1, 100])
def test_no_square_is_beyond_floats_whatever_the_bounds_are(statistic, bounds, epsilon):
    low, high = bounds
    table = pl.DataFrame(
        {"shop": [0, 1, 2, 3, 4] * 40, "price": np.linspace(low / 2, high / 2, 200) * 2}
    )
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=100))
    query = frame.group_by("shop", keys=[0, 1, 2, 3, 4]).agg(v=statistic("price", bounds=bounds))
    out = query.release(epsilon=epsilon)
    small = out.shrink()
    assert small.table["v"].is_finite().all()
    assert small.accuracy()["error"].is_finite().all()
    for one in (out, small):
        assert "nan" not in one._repr_html_().lower()
