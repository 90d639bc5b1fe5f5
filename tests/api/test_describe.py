"""`frame.describe`: the table of pandas in one release; its split of the price; what it refuses."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.api.describing import split
from dpframe.release.answer import drawn_table
from dpframe.release.estimators import NoisyColumn, estimator_of
from inside import numbers_of, question_of

ROWS = ["count", "missing", "mean", "std", "min", "25%", "50%", "75%", "max"]
RNG = np.random.default_rng(20)
PEOPLE = pd.DataFrame(
    {
        "user": np.arange(4000) // 2,
        "age": RNG.integers(0, 100, 4000),
        "wage": np.where(RNG.random(4000) < 0.1, np.nan, RNG.uniform(5, 60, 4000)),
        "late": RNG.random(4000) < 0.3,
        "city": "Bonn",
    }
)
BOUNDS = {"age": (0, 120), "wage": (0, 100)}


def protected(table=PEOPLE, epsilon=9.0, **options):
    return dp.protect(table, unit="user", budget=dp.Budget(epsilon=epsilon, delta=1e-3), **options)


def test_a_description_is_one_release_in_the_shape_of_pandas():
    frame = protected()
    out = frame.describe(bounds=BOUNDS, max_rows=2).release(epsilon=1.0)
    assert list(out.table.index) == ROWS
    assert list(out.table.columns) == ["age", "wage"]
    assert (out.table.dtypes == "float64").all()
    assert out.table.loc[["min", "max"]].to_numpy().tolist() == [[0, 0], [120, 100]]
    assert set(ROWS) - {"missing"} == set(PEOPLE[["age", "wage"]].describe().index)
    assert out.cost == frame.budget.spent == dp.Budget(epsilon=1.0).limit
    assert len(frame.budget.history()) == 1
    assert "min and max are the bounds" in repr(out)
    assert "min and max are the bounds" in out.report()


def test_other_kinds_of_tables_have_the_column_statistic():
    for table, kind in (
        (pl.from_pandas(PEOPLE), pl.DataFrame),
        (pa.Table.from_pandas(PEOPLE), pa.Table),
    ):
        out = protected(table).describe(bounds=BOUNDS, max_rows=2).release(epsilon=1.0)
        assert isinstance(out.table, kind)
        assert (out.table if kind is pl.DataFrame else out.to_polars()).columns == [
            "statistic",
            "age",
            "wage",
        ]
        assert out.to_polars()["statistic"].to_list() == ROWS
        assert out.to_csv().splitlines()[0] == "statistic,age,wage"


def test_a_column_that_is_called_statistic_has_another_beside_it():
    table = PEOPLE.rename(columns={"age": "statistic"})
    out = protected(table).describe(bounds={"statistic": (0, 120)}, max_rows=2).release(epsilon=1.0)
    assert out.to_polars().columns == ["statistic_", "statistic"]
    assert list(out.table.columns) == ["statistic"]


def test_with_hardly_any_noise_it_is_the_table_of_pandas():
    with pytest.warns(errors.DpFrameWarning, match="allows"):
        frame = protected(epsilon=1e6)
    out = frame.describe(["late", "age", "wage"], BOUNDS, percentiles=[0.1, 0.5, 0.9], max_rows=2)
    table = out.release(epsilon=1e5).table
    plain = PEOPLE[["age", "wage"]].describe(percentiles=[0.1, 0.5, 0.9])
    assert list(table.index) == [
        "count",
        "missing",
        "mean",
        "std",
        "min",
        "10%",
        "50%",
        "90%",
        "max",
    ]
    for row in ("count", "mean", "std", "10%", "50%", "90%"):
        assert table.loc[row, ["age", "wage"]].to_numpy() == pytest.approx(
            plain.loc[row].to_numpy(), abs=0.6
        ), row
    assert table.loc["missing"].tolist() == [0, 0, PEOPLE["wage"].isna().sum()]
    assert table.loc["mean", "late"] == pytest.approx(PEOPLE["late"].mean(), abs=1e-3)
    assert table.loc[["std", "10%", "90%"], "late"].isna().all()
    assert table.loc[["min", "max"], "late"].tolist() == [0, 1]


def test_errors_have_a_line_for_each_released_number():
    errors_of = protected().describe(bounds=BOUNDS, max_rows=2).release(epsilon=1.0).accuracy()
    assert list(errors_of.columns) == ["statistic", "column", "value", "error", "lower", "upper"]
    assert errors_of[["column", "statistic"]].apply(tuple, axis=1).tolist() == [
        (column, row) for column in BOUNDS for row in ROWS if row not in ("min", "max")
    ]
    assert errors_of[["value", "error", "lower", "upper"]].notna().all(axis=None)
    assert (errors_of["lower"] <= errors_of["value"]).all()


def test_values_that_cannot_be_missing_cost_nothing_and_are_0():
    frame = protected().drop_nulls("age")
    query = frame.describe(bounds={"age": (0, 120)}, max_rows=2)
    assert query.sensitivity["age_missing.rows"] == query.sensitivity["age_count"]
    assert len({id(p) for p in question_of(query).allotments}) == 4  # rows, sum, squares, tree
    errors_of = query.release(epsilon=0.1).accuracy().set_index("statistic")
    assert errors_of.loc["missing", ["value", "error"]].tolist() == [0, 0]


def test_one_name_gives_one_answer():
    frame = protected()
    query = frame.describe(bounds=BOUNDS, max_rows=2)
    first, again = (query.release(epsilon=0.5, name="people") for _ in range(2))
    assert first.table.equals(again.table)
    assert frame.budget.spent.epsilon == 0.5


def test_the_pair_of_one_column_and_bounds_that_are_known():
    frame = protected()
    one = frame.describe("age", (0, 120), max_rows=2).release(epsilon=0.5)
    assert one.table.loc["max", "age"] == 120
    clipped = (
        frame.select("age", "late").clip("age", 0, 99).describe(max_rows=2).release(epsilon=0.5)
    )
    assert clipped.table.loc["max"].tolist() == [99, 1]
    values = PEOPLE["age"].dp.describe(
        bounds=(0, 120), unit=dp.Rows(2), budget=dp.Budget(epsilon=1.0), epsilon=0.5
    )
    assert list(values.table.index) == ROWS
    assert PEOPLE.dp.describe(
        bounds=BOUNDS, unit="user", max_rows=2, budget=dp.Budget(epsilon=1.0), epsilon=0.5
    ).table.shape == (9, 2)


def test_bounds_and_limits_are_chosen_inside():
    frame = protected()
    query = frame.select("age", "wage", "late").describe(bounds=dp.Auto(0.2), limits=dp.Auto())
    # all columns share the part for bounds
    assert question_of(query).chosen_share == Fraction(3, 10)
    out = query.release(epsilon=5.0)
    low, high = out.table.loc[["min", "max"], "age"]
    assert low < 50 < high
    assert out.table.loc[["min", "max"], "late"].tolist() == [0, 1]
    mixed = frame.describe(bounds={"age": dp.Auto(), "wage": (0, 100)}, max_rows=2).release(
        epsilon=2.0
    )
    assert mixed.table.loc["max", "wage"] == 100


def test_files_have_the_names_of_the_statistics(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    out = protected().describe(bounds=BOUNDS, max_rows=2).release(epsilon=1.0)
    out.to_excel(tmp_path / "people.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "people.xlsx")["table"]
    assert [row[0].value for row in sheet.iter_rows()] == [None, *ROWS]
    assert "<th>25%</th>" in out.to_html()
    page = out._repr_html_()
    assert all(f">{row}</td>" in page for row in ROWS)
    assert "± " in page


def test_missing_values_are_within_their_error_as_often_as_said():
    """One in a million runs fails: 400 draws of a miss of at most 5%, with a
    control whose noise is doubled.
    """
    query = protected(PEOPLE.head(40)).describe(bounds=BOUNDS, max_rows=2)
    ask, plan = question_of(query), query._noise_plan({"epsilon": 1.0}, "auto")
    from dpframe import engine

    raw, column = engine.totals(ask, 1), ask.outputs[8]
    error = estimator_of(column).expected_error(NoisyColumn.of(column, plan), 0.05, None)
    truth = PEOPLE.head(40)["wage"].isna().sum()
    off = np.abs([drawn_table(ask, plan, raw)[0]["wage_missing"][0] - truth for _ in range(400)])
    limit = 20 + 4.75 * math.sqrt(400 * 0.05 * 0.95)  # one-sided, 1e-6
    assert (off > error).sum() <= limit
    assert (2 * off > error).sum() > limit


def test_the_split_is_the_one_with_the_least_errors():
    """Shift any weight by a tenth: the sum of the logarithms of all cells'
    errors grows, for Laplace noise.
    """

    def errors_of(weights, columns, quantiles):
        rows, values, sums, squares, quantile = (float(x) for x in weights)
        whole = rows + columns * (values + sums + squares + quantile * quantiles)
        r, c, s, q, t = (whole / x for x in (rows, values, sums, squares, quantile * quantiles))
        cells = [
            c**2,
            r**2 + c**2,
            s**2 + c**2 / 4,
            q**2 / 4 + s**2 + ((1 / 4 - 1 / 9 + 1 / 2) * c) ** 2,
        ]
        return columns * (sum(map(math.log, cells)) / 2 + quantiles * math.log(t))

    for columns, quantiles in ((1, 3), (4, 3), (10, 1)):
        best = tuple(vars(split([False] * columns, quantiles)).values())
        least = errors_of(best, columns, quantiles)
        for place in range(4):
            for factor in (Fraction(9, 10), Fraction(11, 10)):
                other = [x * factor if i == place else x for i, x in enumerate(best)]
                assert errors_of(other, columns, quantiles) > least
        assert errors_of([1, 1, 1, 1, Fraction(1, quantiles)], columns, quantiles) > least + 0.1


def test_each_total_has_its_weight():
    query = protected().describe(bounds=BOUNDS, max_rows=2)
    weights = split([False, False], 3)
    shares = {p.names[0]: p.share for p in question_of(query).allotments}
    assert shares["age_count"] == shares["wage_count"] == weights.values
    assert shares["age_missing.rows"] == weights.rows
    assert shares["age_mean.sum"] == weights.sums
    assert shares["age_std.squares"] == weights.squares
    assert shares["age_25%"] == 3


REFUSED = {
    "no bounds": (
        lambda f: f.describe(),
        errors.MissingBounds,
        r"'user': \(0, 100\)|'age': \(0, 100\), 'wage'",
    ),
    "bounds of one": (
        lambda f: f.describe(["age", "wage"], {"age": (0, 9)}),
        errors.MissingBounds,
        r"\{'wage': \(0",
    ),
    "a text": (lambda f: f.describe("city", (0, 1)), errors.WrongType, "n_unique"),
    "a text and a number": (
        lambda f: f.describe(["age", "city"]),
        errors.WrongType,
        r"describe\(\['age'\], \.\.\.\)",
    ),
    "twice": (lambda f: f.describe(["age", "age"], BOUNDS), errors.InvalidArgument, "each once"),
    "another column": (lambda f: f.describe("age", BOUNDS), errors.UnknownColumn, "'wage'"),
    "no column": (lambda f: f.describe(bounds={"x": (0, 1)}), errors.UnknownColumn, "'x'"),
    "a pair of several": (
        lambda f: f.describe(["age", "wage"], (0, 1)),
        errors.InvalidBounds,
        "'wage': ",
    ),
    "extremes": (
        lambda f: f.describe(bounds=BOUNDS, percentiles=[0, 0.5]),
        errors.InvalidArgument,
        "min and max",
    ),
    "no list": (
        lambda f: f.describe(bounds=BOUNDS, percentiles=0.5),
        errors.InvalidArgument,
        "list",
    ),
    "no limit": (lambda f: f.describe(bounds=BOUNDS), errors.UnboundedContribution, "max_rows=20"),
    "an unknown argument": (
        lambda f: f.describe(include="all"),
        errors.WrongCall,
        r"describe\(bounds=",
    ),
    "intervals": (
        lambda f: f.describe(bounds=BOUNDS, max_rows=2).release(epsilon=1, ci=0.95),
        errors.UnsupportedOperation,
        "accuracy",
    ),
    "the population": (
        lambda f: f.describe(bounds=BOUNDS, max_rows=2).release(epsilon=1, covers="population"),
        errors.UnsupportedOperation,
        "missing",
    ),
    "a chart": (
        lambda f: f.describe(bounds=BOUNDS, max_rows=2).release(epsilon=1).plot(),
        errors.UnsupportedOperation,
        r"\.table",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line_to_type(name):
    ask, error, words = REFUSED[name]
    frame = protected()
    with pytest.raises(error, match=words):
        ask(frame)
    assert frame.budget.spent.epsilon == (1 if name == "a chart" else 0)


def test_the_shown_numbers_are_worked_out_once():
    """Every cell of a description reads them: worked out for each, a description
    grew with its columns squared.
    """
    frame = dp.protect(
        pl.DataFrame({"u": [1, 2], "x": [0.0, 1.0]}), unit="u", budget=dp.Budget(epsilon=1)
    )
    numbers = numbers_of(frame.describe("x", bounds=(0, 1), max_rows=1).release(epsilon=1))
    assert numbers.shown is numbers.shown
