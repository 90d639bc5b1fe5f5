"""Several quantiles and distribution functions from one tree:
values, errors, intervals, names and refusals.
"""

import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from inside import question_of

CERTAIN = 1e9
NINE = [i / 10 for i in range(1, 10)]
DAY = dt.date(2024, 1, 1)


def protect(rows, **options):
    return dp.protect(
        pl.DataFrame(rows), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5), **options
    )


@pytest.fixture(scope="module")
def table():
    draw, size = np.random.default_rng(3), 4000
    return {
        "id": np.arange(size),
        "g": draw.choice(["a", "b"], size),
        "x": draw.gamma(2.0, 20.0, size),
        "n": draw.integers(0, 50, size),
        "day": [DAY + dt.timedelta(days=int(day)) for day in draw.integers(0, 200, size)],
    }


@pytest.fixture(scope="module")
def frame(table):
    return protect(table)


@pytest.mark.parametrize(
    "price", [{"epsilon": CERTAIN}, {"epsilon": CERTAIN, "delta": 1e-6, "noise": "gaussian"}]
)
def test_quantiles_by_group_are_those_of_the_rows(frame, table, price):
    groups = frame.group_by("g", keys=["a", "b", "z"], max_groups=1, max_rows_per_group=1)
    out = groups.agg(
        x=dp.quantile("x", NINE, bounds=(0, 200)),
        n=dp.quantile("n", NINE, bounds=(0, 49)),
        day=dp.quantile("day", NINE, bounds=(DAY, dt.date(2024, 12, 31))),
    ).release(**price)
    rows = pl.DataFrame(table)
    for key in ("a", "b"):
        mine, theirs = out.table.filter(pl.col("g") == key), rows.filter(pl.col("g") == key)
        for q in NINE:
            assert mine[f"x_{q:g}"].item() == pytest.approx(theirs["x"].quantile(q), abs=1.0)
            assert mine[f"n_{q:g}"].item() == pytest.approx(theirs["n"].quantile(q), abs=1)
            near = theirs["day"].cast(pl.Int32).quantile(q)
            assert mine[f"day_{q:g}"].cast(pl.Int32).item() == pytest.approx(near, abs=1)
    assert out.table.schema["day_0.5"] == pl.Date


def test_a_distribution_function_is_that_of_the_rows(frame, table):
    bounds = (DAY, dt.date(2024, 12, 31))
    points = [DAY, dt.date(2024, 3, 1), dt.date(2024, 12, 31)]
    out = frame.agg(
        x=dp.cdf("x", [10, 40.5, 200], bounds=(0, 200)),
        n=dp.cdf("n", [0, 10, 49], bounds=(0, 49)),
        day=dp.cdf("day", points, bounds=bounds),
        max_rows=1,
    ).release(epsilon=CERTAIN)
    (row,) = out.table.to_dicts()
    for point in (10, 40.5, 200):
        assert row[f"x_{point:g}"] == pytest.approx(np.mean(table["x"] <= point), abs=2e-3)
    for point in (0, 10, 49):
        assert row[f"n_{point}"] == pytest.approx(np.mean(table["n"] <= point), abs=1e-5)
    for point in points:
        assert row[f"day_{point}"] == pytest.approx(
            np.mean([day <= point for day in table["day"]]), abs=1e-5
        )


def test_points_are_measured_where_they_are_asked(table):
    """Also for whole numbers that are floats, of which no part may
    be on the wrong side of a point.
    """
    held = pl.DataFrame(table).with_columns(n=pl.col("n").cast(pl.Float64))
    query = protect(held).agg(
        c=dp.cdf("n", [10, 20.5, 49], bounds=(0, 49)), d=dp.cdf("n", [0, 30], (0, 49)), max_rows=1
    )
    (paid,) = question_of(query).allotments
    assert paid.total.cuts == (0.0, 10.0, 20.5, 30.0)
    (counts,) = engine.totals(question_of(query), 1).values
    n = held["n"].to_numpy()
    edges = [-np.inf, 0, 10, 20.5, 30, np.inf]
    want = [np.sum((n > low) & (n <= high)) for low, high in itertools.pairwise(edges)]
    assert (np.asarray(counts) >> paid.total.fraction).tolist() == [want]
    row = query.release(epsilon=CERTAIN).table.row(0, named=True)
    assert row == pytest.approx(
        {name: np.mean(n <= float(name.split("_")[1])) for name in row}, abs=1e-6
    )
    assert row["c_49"] == 1


def test_a_share_has_the_noise_of_a_few_numbers(table):
    """A tree of 1,024 values is off by 7 rows at ε = 1."""
    query = protect(table).cdf("x", [10, 20, 50], bounds=(0, 200), max_rows=1)
    true = [np.mean(table["x"] <= point) for point in (10, 20, 50)]
    off = [np.subtract(query.release(epsilon=1).table.row(0), true) for _ in range(20)]
    assert np.sqrt(np.mean(np.square(off))) * len(table["x"]) < 3  # 1.3 in the mean


def test_a_group_that_noise_hides_has_the_shares_of_values_that_are_spread_evenly(table):
    empty = protect(pl.DataFrame(table).head(0)).cdf("x", [50, 100], bounds=(0, 200), max_rows=1)
    found = [empty.release(epsilon=0.1).table.row(0) for _ in range(20)]
    assert (0.25, 0.5) in found  # half of the time there is nobody: none in 20 once in 10^6


def mean_rank_error(values, ranks, releases, mechanism):
    """The mean over releases and ranks of the distance in ranks, on values of a lognormal law."""
    frame = dp.protect(
        pl.DataFrame({"id": np.arange(len(values)), "x": values}),
        unit="id",
        budget=dp.Budget(epsilon=1e6),
    )
    query, ordered = (
        frame.quantile("x", ranks, bounds=(0, 200), max_rows=1),
        np.sort(np.clip(values, 0, 200)),
    )
    found = []
    for _ in range(releases):
        out = query.release(epsilon=1.0)
        assert set(out.noise["mechanism"]) == {mechanism}
        row = np.ravel(out.table.row(0))
        assert (np.diff(row) >= 0).all()
        low, high = (np.searchsorted(ordered, row, side=side) for side in ("left", "right"))
        target = np.array(ranks) * len(ordered)
        found.append(np.mean(np.maximum(np.maximum(low - target, target - high), 0)))
    return float(np.mean(found))


@pytest.mark.filterwarnings("ignore:This budget allows")
@pytest.mark.parametrize(("number", "most"), [(4, 20), (9, 25), (99, 25)])
def test_ranks_are_as_near_as_promised(number, most):
    """10,000 lognormal values at ε = 1.
    Means of ten releases are near 8, with standard deviations below 1.
    """
    values = np.random.default_rng(9).lognormal(3.0, 1.0, 10_000)
    ranks = [(i + 1) / (number + 1) for i in range(number)]
    assert mean_rank_error(values, ranks, 10, "laplace_tree") < most


def test_a_list_of_one_and_the_extremes_are_chosen_as_before(frame):
    out = frame.quantile("x", [0.5], bounds=(0, 200), max_rows=1).release(epsilon=1)
    assert out.noise["mechanism"].to_list() == ["permute_and_flip"]
    out = frame.quantile("x", [0, 0.25, 0.75, 1], bounds=(0, 200), max_rows=1).release(epsilon=1)
    kinds = dict(zip(out.noise["column"], out.noise["mechanism"], strict=True))
    assert kinds["x_0"] == kinds["x_1"] == "permute_and_flip"
    assert kinds["x_0.25"] == kinds["x_0.75"] == "laplace_tree"


def test_quantiles_and_shares_of_one_column_are_paid_for_once(frame):
    asked = {
        "q": dp.quantile("x", NINE, bounds=(0, 200)),
        "c": dp.cdf("x", [10, 20], bounds=(0, 200)),
    }
    query = frame.agg(**asked, max_rows=1)
    assert len(question_of(query).allotments) == 1
    assert query.accuracy(epsilon=1.0)["scale"].unique().to_list() == [1.0]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("limits", [{"max_rows": 1}, {"max_rows": 3}])
def test_the_noise_is_that_of_one_number(table, relation, limits):
    query = protect(table, neighbors=relation).quantile("x", NINE, bounds=(0, 200), **limits)
    (size,) = {query.sensitivity[name].l1 for name in query.sensitivity}
    assert size == limits["max_rows"] * (2 if relation == "replace" else 1)


def test_intervals_are_free_and_wider_at_higher_confidence(frame):
    query = frame.quantile("x", NINE, bounds=(0, 200), max_rows=1)
    out = query.release(epsilon=1.0)
    assert (
        out.noise["scale"].to_list() == query.release(epsilon=1.0, ci=0.95).noise["scale"].to_list()
    )
    narrow, wide, widest = (out.accuracy(alpha=alpha) for alpha in (0.2, 0.01, 1e-5))
    for one, other in ((narrow, wide), (wide, widest)):
        assert (other["lower"] <= one["lower"]).all()
        assert (other["upper"] >= one["upper"]).all()
    assert (widest["lower"] == 0).all()
    assert (widest["upper"] == 200).all()
    assert out.with_ci(0.9).table.columns[:3] == ["x_0.1", "x_0.1_low", "x_0.1_high"]
    assert "likely" not in str(out.report())


def test_the_expected_error_is_known_before(frame):
    query = frame.quantile("x", NINE, bounds=(0, 200), max_rows=1)
    assert query.accuracy(epsilon=1.0)["error"].null_count() == len(NINE)
    near, far = (
        query.accuracy(epsilon=1.0, assume_rows=rows)["error"].max() for rows in (100_000, 1000)
    )
    assert 0.2 < near < far < 20
    assert query.epsilon_for(error=1.0, assume_rows=4000) > 0.5


# chosen bounds are good nearly always: at times noise far out is a value
@pytest.mark.usefixtures("same_noise")
def test_found_keys_and_bounds_that_are_chosen(frame):
    found = frame.group_by("g", max_groups=1, max_rows_per_group=1).quantile(
        "x", NINE, bounds=(0, 200)
    )
    for price in (
        {"epsilon": 2.0, "delta": 1e-5},
        {"epsilon": 2.0, "delta": 1e-5, "noise": "gaussian"},
    ):
        assert found.release(**price).table["g"].to_list() == ["a", "b"]
    out = frame.quantile("x", NINE, bounds=dp.Auto(), max_rows=1).release(epsilon=5.0)
    assert 20 < out.table["x_0.5"].item() < 50


def test_a_stored_release_has_its_intervals(frame, tmp_path):
    query = dp.protect(
        pl.DataFrame({"id": [1, 2], "x": [1.0, 2.0]}), unit="id", budget=dp.Budget(epsilon=2.0)
    )
    asked = query.quantile("x", NINE, bounds=(0, 9), max_rows=1)
    first = asked.release(epsilon=1.0, name="once")
    again = asked.release(epsilon=1.0, name="once")
    assert again.accuracy().equals(first.accuracy())


@pytest.mark.parametrize(
    ("points", "bounds", "error", "words"),
    [
        ([], (0, 9), errors.InvalidArgument, "at least one point"),
        ("12", (0, 9), errors.InvalidArgument, "list of values"),
        ([1, 1.0], (0, 9), errors.InvalidArgument, "different"),
        ([True], (0, 9), errors.InvalidArgument, "numbers or times"),
        ([10], (0, 9), errors.InvalidBounds, "between the bounds"),
        ([1], dp.Auto(), errors.InvalidBounds, "Type bounds"),
        ([DAY], (0, 9), errors.WrongType, "numbers"),
        ([1], None, errors.MissingBounds, "bounds"),
    ],
)
def test_points_that_cannot_be_are_refused(frame, points, bounds, error, words):
    with pytest.raises(error, match=words):
        frame.cdf("x", points, bounds, max_rows=1)


def test_a_list_of_ranks_is_refused_where_one_column_has_room(frame):
    with pytest.raises(errors.DpFrameError):
        frame.per_unit(x=dp.quantile("x", NINE, bounds=(0, 9)))
    with pytest.raises(errors.InvalidArgument, match="different numbers"):
        dp.quantile("x", [0.5, 0.5], bounds=(0, 1))
