"""What a release gives back: the user's kind of table, in the layout
asked for, that never changes.
"""

import pickle
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.errors import UnsupportedOperation
from inside import question_of

ROWS = {
    "id": [1, 1, 2, 3, 4, 5],
    "sex": ["f", "f", "m", "m", "f", "m"],
    "job": ["x", "y", "x", "x", "z", None],
    "age": [20, 30, 40, 50, 60, 70],
}
KEYS = {"sex": ["f", "m"], "job": ["z", "y", "x"]}
MAKE = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "lazy": (pl.LazyFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
}
CERTAIN = 1e9  # so large a price that the noise is zero but for a chance below 1e-400


@pytest.fixture(params=MAKE)
def engine(request):
    return request.param


def protect(engine, rows=ROWS, **options):
    return dp.protect(
        MAKE[engine][0](rows), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5), **options
    )


def test_the_same_kind_comes_back(engine):
    out = (
        protect(engine)
        .group_by("sex", keys=["f", "m"], max_groups=1)
        .agg(n=dp.count_units())
        .release(epsilon=CERTAIN)
    )
    assert type(out.table) is MAKE[engine][1]
    assert out.to_polars().rows() == [("f", 2), ("m", 3)]
    assert out.to_pandas()["n"].dtype == np.int64
    assert out.to_arrow().column_names == ["sex", "n"]


def test_a_crosstab_has_the_shape_of_pandas(engine):
    query = protect(engine).crosstab(
        "sex", "job", keys=KEYS, margins=True, max_groups=2, max_rows_per_group=1
    )
    out = query.release(epsilon=CERTAIN)
    raw = pd.DataFrame(ROWS)
    expected = pd.crosstab(raw["sex"], raw["job"], margins=True).reindex(
        columns=["z", "y", "x", "All"]
    )
    got = out.to_pandas()
    assert got.index.name == "sex"
    assert got.columns.name == "job"
    pd.testing.assert_frame_equal(
        got, expected, check_dtype=False, check_index_type=False, check_column_type=False
    )
    wide = out.to_polars()
    assert wide.columns == ["sex", "z", "y", "x", "All"]
    assert wide.row(-1) == ("All", 1, 1, 3, 5)


def test_several_keys_down_and_across():
    frame = protect("pandas").cut("age", [0, 35, 100], into="band")
    out = frame.crosstab(["sex", "band"], "job", keys=KEYS, max_rows=2).release(epsilon=CERTAIN)
    assert out.table.index.names == ["sex", "band"]
    assert out.table.shape == (4, 3)
    assert out.table.loc[("f", "(0, 35]"), "x"] == 1
    turned = frame.crosstab("job", ["sex", "band"], keys=KEYS, max_rows=2).release(epsilon=CERTAIN)
    assert turned.table.columns.names == ["sex", "band"]
    assert (turned.table.to_numpy() == out.table.to_numpy().T).all()
    assert turned.to_polars().columns[1] == "f, (0, 35]"


def test_a_histogram_counts_as_numpy_does(engine):
    edges = [20, 30, 50, 70]
    out = (
        protect(engine)
        .histogram("age", bins=edges, max_groups=2, max_rows_per_group=2)
        .release(epsilon=CERTAIN)
    )
    assert out.to_polars()["count"].to_list() == np.histogram(ROWS["age"], edges)[0].tolist()
    assert out.to_polars()["age"].to_list() == ["[20, 30)", "[30, 50)", "[50, 70]"]


def test_a_value_is_one_number_and_a_table_has_none(engine):
    out = protect(engine).sum("age", bounds=(0, 100), max_rows=2).release(epsilon=CERTAIN)
    assert out.value == 270
    assert isinstance(out.value, int)
    with pytest.raises(UnsupportedOperation, match="table"):
        _ = (
            protect(engine)
            .agg(a=dp.count_units(), b=dp.count(), max_rows=3)
            .release(epsilon=CERTAIN)
            .value
        )


def test_reading_again_never_draws_again():
    out = (
        protect("polars")
        .group_by("sex", keys=["f", "m"], max_groups=1)
        .count_units()
        .release(epsilon=0.5)
    )
    first = out.table
    assert all(out.table.equals(first) for _ in range(5))
    assert out.to_polars().equals(first)


def test_a_release_is_plain_data_that_can_be_kept():
    out = (
        protect("pandas")
        .agg(n=dp.count(), mean=dp.mean("age", bounds=(0, 100)), max_rows=2)
        .release(epsilon=1)
    )
    again = pickle.loads(pickle.dumps(out))
    pd.testing.assert_frame_equal(again.table, out.table)
    assert again.cost == out.cost
    assert again.report() == out.report()
    assert b"70" not in pickle.dumps(out.table.drop(columns=["n", "mean"]))


def test_means_are_kept_inside_their_bounds_and_centred():
    frame = protect("polars")
    query = frame.mean("age", bounds=(50, 60), max_rows=2)
    means = [query.release(epsilon=0.01, fill=True).value for _ in range(60)]
    assert all(50 <= mean <= 60 for mean in means)
    assert len(set(means)) > 2
    exact = frame.mean("age", bounds=(0, 100), max_rows=2).release(epsilon=CERTAIN).value
    assert exact == pytest.approx(45.0, abs=1e-6)


def test_the_error_of_a_count_is_that_of_its_noise():
    out = protect("polars").count_units().release(epsilon=0.1)
    errors = out.accuracy(alpha=0.05)
    assert errors.columns == ["column", "value", "error", "lower", "upper"]
    # P[|X| > 30] = 2 e^-3.1 / (1 + e^-0.1) = 0.0473, and above 0.05 at 29
    assert errors["error"].item() == 30
    assert out.noise.columns == ["column", "aggregate", "mechanism", "scale", "threshold"]
    assert out.noise.row(0) == ("count_units", "count", "discrete_laplace", 10.0, None)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("down", "across", "beside"),
    [
        ("value", "error", ("value_key", "error_key")),
        ("column", "lower", ("column_key", "lower_key")),
        ("upper", "upper_key", ("upper_key_", "upper_key")),
        ("", "count", ("", "count")),
    ],
)
def test_keys_may_have_any_name_that_the_tables_about_them_have(down, across, beside, tmp_path):
    rows = {
        "id": range(40),
        down: ["a", "b"] * 20,
        across: ["x", "x", "x", "y"] * 10,
        "age": [30] * 40,
    }
    frame = dp.protect(pl.DataFrame(rows), unit="id", budget=dp.Budget(epsilon=1e9, delta=0.5))
    keys, limit = {down: ["a", "b"], across: ["x", "y"]}, {"max_rows": 1}
    counts = {("a", "x"): 20.0, ("b", "x"): 10.0, ("b", "y"): 10.0}
    for query in (
        frame.group_by(down, across, keys=keys, **limit).agg(
            n=dp.count(), age=dp.mean("age", bounds=(0, 60))
        ),
        frame.crosstab(
            down, across, "age", "mean", bounds=(0, 60), keys=keys, margins=True, **limit
        ),
        frame.group_by(down, across, other=("-", "-"), max_groups=1, **limit).agg(n=dp.count()),
    ):
        out = query.release(epsilon=400, delta=1e-3)
        errors = out.accuracy()
        assert errors.columns == [*beside, "column", "value", "error", "lower", "upper"]
        found = {row[:2]: row[3] for row in errors.filter(pl.col("column") == "n").iter_rows()}
        assert {key: found.get(key, count) for key, count in counts.items()} == counts
        for read in (repr, out.__class__._repr_html_, lambda made: str(made.report())):
            assert read(out)
        if find_spec("altair") is not None:
            assert out.plot().to_dict()
        out.to_parquet(tmp_path / "out.parquet")
    if "count" not in keys:
        tables = frame.marginals([down, across], [(down, across), (across,)], keys=keys, **limit)
        assert tables.release(epsilon=400, delta=1e-3).accuracy().columns[:2] == list(beside)


def test_a_released_column_may_have_no_name():
    units = protect("polars").per_unit(**{"": dp.mean("age")})
    out = units.mean("", bounds=(0, 90)).release(epsilon=CERTAIN)
    assert out.accuracy().row(0)[0] == ""
    assert round(out.value) == 49
    assert out.with_ci(0.95).table.columns == ["", "_low", "_high"]


def test_everything_shown_is_public():
    frame = protect("pandas")
    out = (
        frame.group_by("sex", keys=["f", "m"], max_groups=1, max_rows=2)
        .agg(n=dp.count())
        .release(epsilon=1)
    )
    for text in (repr(out), out._repr_html_(), out.report()):
        assert "Traceback" not in text
    assert "ε = 1" in out.report()
    assert "enforced" in out.report()


@pytest.mark.parametrize("ddof", [0, 1])
def test_spread_is_that_of_pandas(ddof, engine):
    frame = protect(engine).group_by("sex", keys=["f", "m"], max_groups=2, max_rows_per_group=2)
    query = frame.agg(
        v=dp.var("age", (0, 100), ddof=ddof),
        d=dp.std("age", (0, 100), ddof=ddof),
        m=dp.mean("age", (0, 100)),
    )
    assert set(query.sensitivity) == {
        f"{c}.{p}" for c in "vd" for p in ("sum", "squares", "count")
    } | {
        "m.sum",
        "m.count",
    }
    assert len(question_of(query).allotments) == 3  # the three totals serve all three columns
    out = query.release(epsilon=CERTAIN).to_polars()
    ages = pd.DataFrame(ROWS).groupby("sex")["age"]
    assert out["v"].to_list() == pytest.approx(ages.var(ddof=ddof).tolist(), rel=1e-4)
    assert out["d"].to_list() == pytest.approx(ages.std(ddof=ddof).tolist(), rel=1e-4)


def test_squares_cost_half_of_the_largest_square():
    bound = protect("polars").var("age", bounds=(50, 70), max_rows=3).sensitivity["age.squares"]
    assert bound.l1 == pytest.approx(3 * 10**2 / 2)
