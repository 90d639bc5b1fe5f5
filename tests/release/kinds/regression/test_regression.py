"""Linear regressions and matrices of covariances:
what is measured, what is released, and how far off it may be.
"""

from __future__ import annotations

import itertools
import math
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.trials import at_least
from dpframe.errors import (
    InvalidArgument,
    InvalidBounds,
    MissingBounds,
    UnboundedContribution,
    UnknownAttribute,
    UnsupportedOperation,
)
from dpframe.release.answer import nearest_psd

CERTAIN = 1e12
BOUNDS = {"x": (0, 100), "y": (-60, 170)}
TRUE = np.array([20.0, 0.5, 3.0])


def rows_of(rng, people=2000, each=1):
    """An outcome that depends on a number and on a condition, with errors that do not."""
    size = people * each
    x, z = rng.uniform(0, 100, size), rng.integers(0, 2, size).astype(bool)
    y = TRUE[0] + TRUE[1] * x + TRUE[2] * z + rng.normal(0, 15, size)
    kinds = np.array(["a", "b", "c"])[rng.integers(0, 3, size)]
    return pl.DataFrame(
        {"u": np.repeat(np.arange(people), each), "x": x, "y": y, "z": z, "r": kinds}
    )


ROWS = rows_of(np.random.default_rng(3))


def protected(rows=ROWS):
    return dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e15))


def asked(rows=ROWS, each=1):
    return protected(rows).ols(y="y", x=["x", "z"], bounds=BOUNDS, max_rows=each)


def design(rows, *columns):
    return np.column_stack([np.ones(rows.height), *columns]).astype(float)


# What is measured


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_one_unit_moves_each_moment_by_no_more_than_claimed(relation):
    def totals(values):
        fixed = [(1, 3.0, 2.0, "a"), (2, 50.0, -4.0, "b")]
        schema = {"u": pl.Int64, "x": pl.Float64, "y": pl.Float64, "r": pl.String}
        table = pl.DataFrame([*fixed, *((3, *row) for row in values)], schema, orient="row")
        frame = dp.protect(table, unit="u", neighbors=relation)
        keys = {"r": ["a", "b", "c"]}
        query = frame.ols(y="y", x=["x", "r"], bounds=BOUNDS, keys=keys, max_rows=2)._query
        return query, {name: part[()] for name, part in query.exact_totals(table).items()}

    kinds = list(itertools.product([-1e9, 1e9], [-1e9, 1e9], "abc"))
    kinds += [(50.0, 55.0, "b"), (None, 1e9, "a"), (1e9, -1e9, "elsewhere")]
    answers = [totals(())[1], *(totals((row,) * n)[1] for n in (1, 2, 3) for row in kinds)]
    others = answers if relation == "replace" else answers[:1]
    claims = totals([])[0].sensitivity
    for name, claim in claims.items():
        if name.endswith(".influence"):  # these have weights of their own: see test_influence
            continue
        most = max(abs(a[name] - b[name]) for a in answers for b in others)
        assert claim.l1 * (1 - 1e-6) <= most <= claim.l1


def test_moments_that_follow_from_others_are_not_measured():
    query = protected().ols(
        y="y", x=["x", "r"], bounds=BOUNDS, keys={"r": ["a", "b", "c"]}, max_rows=1
    )
    influences = [f"{name}.influence" for name in ("Intercept", "x", "r[b]", "r[c]")]
    assert list(query.sensitivity) == [
        "rows", *influences, "x", "r[b]", "r[c]", "y", "x·x", "x·r[b]", "x·r[c]", "x·y",
        "r[b]·y", "r[c]·y", "y·y",
    ]  # fmt: skip


# What is released


def test_without_noise_it_is_least_squares_with_categories_and_without_missing_rows():
    rows = ROWS.with_columns(x=pl.when(pl.col("x") > 95).then(None).otherwise(pl.col("x")))
    query = protected(rows).ols(
        y="y", x=["x", "r"], bounds=BOUNDS, keys={"r": ["c", "a"]}, max_rows=1
    )
    out, kept = query.release(epsilon=CERTAIN), rows.drop_nulls().filter(pl.col("r") != "b")
    expected = np.linalg.lstsq(design(kept, kept["x"], kept["r"] == "a"), kept["y"], rcond=None)[0]
    assert list(out.coefficients) == ["Intercept", "x", "r[a]"]
    assert list(out.coefficients.values()) == pytest.approx(list(expected), rel=1e-4)
    guesses = out.predict({"x": [0, 50, 1e9], "r": ["c", "a", "a"]})
    slopes = [[1, 0, 0], [1, 50, 1], [1, 100, 1]]
    assert guesses == pytest.approx(np.array(slopes) @ expected, rel=1e-4)


def test_standard_errors_are_those_of_least_squares_where_there_is_no_noise():
    x = design(ROWS, ROWS["x"], ROWS["z"])
    residual = ROWS["y"].to_numpy() - x @ np.linalg.lstsq(x, ROWS["y"], rcond=None)[0]
    errors = np.sqrt(residual @ residual / (len(x) - 3) * np.diag(np.linalg.inv(x.T @ x)))
    assert asked().release(epsilon=CERTAIN).table["std_error"].to_numpy() == pytest.approx(
        errors, rel=0.1
    )


def test_standard_errors_know_that_rows_of_one_person_are_alike():
    rng, people, each = np.random.default_rng(4), 1500, 4
    x, common = rng.uniform(0, 100, people), rng.normal(0, 15, people)
    y = 20 + 0.5 * np.repeat(x, each) + np.repeat(common, each) + rng.normal(0, 5, people * each)
    rows = pl.DataFrame({"u": np.repeat(np.arange(people), each), "x": np.repeat(x, each), "y": y})
    out = protected(rows).ols(y="y", x=["x"], bounds=BOUNDS, max_rows=each).release(epsilon=CERTAIN)
    design_of = design(rows, rows["x"])
    inverse = np.linalg.inv(design_of.T @ design_of)
    residual = y - design_of @ (inverse @ design_of.T @ y)
    moved = ((design_of * residual[:, None]) @ inverse).reshape(people, each, 2).sum(axis=1)
    assert out.table["std_error"].to_numpy() == pytest.approx(
        np.sqrt((moved**2).sum(axis=0)), rel=0.1
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_matrices_have_the_shape_of_pandas(kind):
    names, bounds = ["x", "y", "z"], {"x": (0, 100), "y": (-60, 170)}
    plain = ROWS.select(pl.col(names).cast(pl.Float64)).to_pandas()
    frame = protected(ROWS.to_pandas() if kind == "pandas" else ROWS)
    for verb in ("cov", "corr"):
        out = getattr(frame, verb)(names, bounds, max_rows=1).release(epsilon=CERTAIN)
        expected = getattr(plain, verb)()
        assert out.values == pytest.approx(expected.to_numpy(), abs=1e-3)
        table = (
            out.table
            if kind == "pandas"
            else out.table.to_pandas().set_index("column").rename_axis(None)
        )
        pd.testing.assert_frame_equal(table, expected, atol=1e-3, rtol=1e-3)


def test_a_released_matrix_is_positive_semidefinite_however_noisy():
    query = protected(ROWS[:30]).cov(["x", "y", "z"], BOUNDS, max_rows=1)
    for _ in range(8):
        values = query.release(epsilon=0.5).fill().values
        assert np.linalg.eigvalsh(values).min() >= -1e-9 * np.abs(values).max()
    assert nearest_psd(np.diag([1.0, -2.0])) == pytest.approx(np.diag([1.0, 0.0]))


def test_a_matrix_shows_what_noise_hides_where_fill_is_asked_with_the_price():
    query = protected(ROWS[:30]).corr(["x", "y"], BOUNDS, max_rows=1)
    assert np.isnan(query.release(epsilon=0.01).values).any()
    assert not np.isnan(query.release(epsilon=0.01, fill=True).values).any()


# How far off


@pytest.mark.parametrize(
    ("each", "epsilon", "delta", "repeats"),
    [
        pytest.param(1, 4.0, None, 60, marks=pytest.mark.long),
        pytest.param(1, 2.0, 1e-6, 60, marks=pytest.mark.long),
        pytest.param(3, 4.0, None, 60, marks=pytest.mark.long),
        (3, 4.0, None, 10),
    ],
)
def test_intervals_hold_the_population_as_often_as_stated(each, epsilon, delta, repeats):
    """Tables are drawn afresh; a coverage is false where an exact bound
    says so, with probability 1e-8.
    """
    rng, held = np.random.default_rng(11), []
    for _ in range(repeats):
        table = asked(rows_of(rng, 800, each), each).release(epsilon=epsilon, delta=delta).table
        held.append((table["low"].to_numpy() <= TRUE) & (table["high"].to_numpy() >= TRUE))
    for misses in (~np.array(held)).sum(axis=0):
        assert at_least(int(misses), len(held), 1e-8) <= 0.05


@pytest.mark.long
def test_intervals_without_the_noise_are_caught():
    """The negative control: intervals of least squares alone miss
    too often where there is noise.
    """
    rng, held = np.random.default_rng(12), []
    for _ in range(60):
        rows = rows_of(rng, 800)
        noisy, plain = (asked(rows).release(epsilon=epsilon).table for epsilon in (1.0, CERTAIN))
        half = ((plain["high"] - plain["low"]) / 2).to_numpy()
        held.append(np.abs(noisy["coefficient"].to_numpy() - TRUE) <= half)
    assert at_least(int((~np.array(held)).sum(axis=0).max()), len(held), 1e-8) > 0.05


def test_where_the_noise_is_too_large_no_interval_has_an_end():
    out = asked(ROWS[:50]).release(epsilon=0.01)
    assert not out.is_told
    assert "no interval has an end" in repr(out)
    assert out.table["high"].to_list() == [math.inf] * 3
    assert np.isfinite(out.table["coefficient"].to_numpy()).all()


def test_intervals_have_ends_just_where_inputs_vary_more_than_the_noise_at_their_level():
    """Half of the draws of moments in which inputs do not vary are beyond either
    end: a part of alpha has no end.
    """
    rng, told = np.random.default_rng(3), []
    x, z = rng.uniform(0, 1, (2, 40))
    frame = dp.protect(
        pl.DataFrame({"u": np.arange(40), "x": x, "y": (x + z) / 2}),
        unit="u",
        budget=dp.Budget(epsilon=99),
    )
    for _ in range(5):
        out = frame.ols(y="y", x="x", bounds={"x": (0, 1), "y": (0, 1)}, max_rows=1).release(
            epsilon=1.0
        )
        drawn = out._moments.drawn(np.random.default_rng(0), 4000)
        hidden = np.mean(np.linalg.eigvalsh(drawn[:, :-1, :-1]).min(axis=-1) <= 0)
        for alpha in (0.01, 0.05, 0.3):
            ends = out.accuracy(alpha)[["low", "high"]].to_numpy()
            assert np.isfinite(ends).all() == (hidden < alpha - 1e-3) or abs(hidden - alpha) < 2e-3
            told.append(np.isfinite(ends).all())
        assert out.is_told == told[-2]
    assert any(told)


# How answers look


def test_one_input_may_be_typed_without_a_list():
    one = protected().ols(y="y", x="x", bounds=BOUNDS, max_rows=1).release(epsilon=CERTAIN)
    assert list(one.coefficients) == ["Intercept", "x"]


def test_answers_are_shown_with_their_cost_and_what_their_intervals_are_about():
    model = asked().release(epsilon=CERTAIN)
    matrix = protected().corr(["x", "y"], BOUNDS, max_rows=1).release(epsilon=CERTAIN)
    for text in (repr(model), model._repr_html_()):
        assert "coefficient" in text
        assert "interval for the population" in text
        assert f"{model.cost}" in text
    for text in (repr(matrix), matrix._repr_html_()):
        assert f"{matrix.cost}. Intervals: .accuracy()" in text
    for answer, name, line in ((model, "summary", ".table"), (matrix, "with_ci", ".accuracy()")):
        with pytest.raises(UnknownAttribute, match=re.escape(line)):
            getattr(answer, name)


def test_the_picture_has_the_look_of_other_charts_and_coefficients_without_an_interval_are_pale():
    pytest.importorskip("altair")
    certain, hidden = asked().release(epsilon=CERTAIN), asked().release(epsilon=1e-6)
    chart = certain.plot().to_dict()
    assert chart["title"]["text"] == ["Coefficients for y"]
    assert f"Released at {certain.cost}; protected: unit 'u'." in chart["title"]["subtitle"]
    assert chart["background"] == "transparent"
    assert {mark["key0"] for mark in marks(certain)} == set(certain.coefficients) - {"Intercept"}
    assert [mark["noise"] for mark in marks(certain)] == [False] * len(marks(certain))
    assert not hidden.is_told
    assert all(mark["noise"] and mark["lower"] is None for mark in marks(hidden))
    assert certain.plot(title="Mine").to_dict()["title"]["text"] == ["Mine"]
    with pytest.raises(InvalidArgument, match="title="):
        certain.plot(title=3)


def marks(model):
    """The rows of data of a regression's chart."""
    (rows,) = model.plot().to_dict()["datasets"].values()
    return rows


# What is refused


def test_what_cannot_be_is_refused_with_the_line_to_type():
    frame = protected()
    refused = [
        (InvalidArgument, "give a formula, or y=", lambda: frame.ols(y="y", max_rows=1)),
        (
            InvalidArgument,
            "each once",
            lambda: frame.ols(y="y", x=["y"], bounds=BOUNDS, max_rows=1),
        ),
        (
            InvalidArgument,
            "two keys",
            lambda: frame.ols(y="y", x=["r"], keys={"r": ["a"]}, max_rows=1),
        ),
        (
            InvalidArgument,
            "for categories",
            lambda: frame.ols(y="y", x=["x"], keys={"r": ["a", "b"]}, max_rows=1),
        ),
        (
            MissingBounds,
            "could be anything",
            lambda: frame.ols(y="y", x=["x"], bounds={"x": (0, 1)}, max_rows=1),
        ),
        (
            MissingBounds,
            "list its keys: keys=",
            lambda: frame.ols(y="y", x=["r"], bounds={"y": (0, 1)}, max_rows=1),
        ),
        (
            InvalidArgument,
            "category has keys=",
            lambda: frame.ols(y="y", x=["r"], bounds=BOUNDS, max_rows=1),
        ),
        (
            InvalidArgument,
            "no column of numbers",
            lambda: frame.cov(["x", "y"], {"z": (0, 1)}, max_rows=1),
        ),
        (
            InvalidBounds,
            r"bounds=\{'x': \(0, 100\), 'y': \(0, 1\)\}, narrow=True\.$",
            lambda: frame.corr(["x", "y"], {"x": dp.Auto(), "y": (0, 1)}, max_rows=1),
        ),
        (
            InvalidBounds,
            r"bounds=\{'x': \(0, 100\), 'y': \(0, 100\)\}, narrow=True\.$",
            lambda: frame.ols("y ~ x", bounds=dp.Auto(), max_rows=1),
        ),
        (InvalidArgument, "list of columns", lambda: frame.corr("x", max_rows=1)),
        (InvalidArgument, "two different", lambda: frame.corr(["x"], max_rows=1)),
        (
            MissingBounds,
            r"bounds=\{'x': \(0, 100\), 'y': \(0, 1\)\}",
            lambda: frame.cov(["x", "y"], {"y": (0, 1)}),
        ),
        (UnboundedContribution, r"^cov: .*max_rows=20\)\.$", lambda: frame.cov(["x", "y"], BOUNDS)),
        (
            UnboundedContribution,
            r"^ols: .*max_rows=20\)\.$",
            lambda: frame.ols(y="y", x=["x"], bounds=BOUNDS),
        ),
        (InvalidArgument, "intervals already", lambda: asked().release(epsilon=1.0, ci=0.9)),
        (UnsupportedOperation, "pickled", lambda: pickle.dumps(asked())),
        (
            InvalidArgument,
            "need the column 'x'",
            lambda: asked().release(epsilon=CERTAIN).predict({"z": [True]}),
        ),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()


def test_formulas_are_outcomes_columns_and_categories():
    pytest.importorskip("formulaic")
    frame, keys = protected(), {"r": ["a", "b", "c"]}
    out = frame.ols("y ~ x + C(r)", bounds=BOUNDS, keys=keys, max_rows=1).release(epsilon=CERTAIN)
    assert list(out.coefficients) == ["Intercept", "x", "r[b]", "r[c]"]
    for formula in (
        "y ~ x + np.log(x)",
        "y ~ x - 1",
        "y ~ x:z",
        "log(y) ~ x",
        "y ~ poly(x, 2)",
        "x",
        "y ~ (",
    ):
        with pytest.raises(UnsupportedOperation, match="Make other terms columns first"):
            frame.ols(formula, bounds=BOUNDS, max_rows=1)


ASKED_BEFORE = {
    "corr": lambda frame, bounds: frame.corr(["x", "y"], bounds=bounds),
    "cov": lambda frame, bounds: frame.cov(["x", "y"], bounds=bounds),
    "ols": lambda frame, bounds: frame.ols(y="y", x=["x"], bounds=bounds),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("verb", ASKED_BEFORE)
@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_the_error_of_what_is_asked_is_said_before_it_is_paid(verb, kind):
    """Even values without relation: of 30 releases, fewer than 21 within a 95%
    error have a chance below 1e-6.
    """
    rng, bounds = np.random.default_rng(2), {"x": (0, 10), "y": (-50, 50)}
    rows = pl.DataFrame({"x": rng.uniform(0, 10, 2_000), "y": rng.uniform(-50, 50, 2_000)})
    table = rows if kind == "polars" else rows.to_pandas()
    query = ASKED_BEFORE[verb](
        dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000)), bounds
    )
    told = pl.DataFrame(query.accuracy(epsilon=1.0, assume_rows=2_000))
    name = {"corr": "corr of x and y", "cov": "cov of x and y", "ols": "coefficient of x"}[verb]
    error = told.filter(pl.col("column") == name)["error"].item()
    assert "if values fill the bounds evenly" in told["aggregate"][0]
    assert query.accuracy(epsilon=1.0)["error"][0] in (None, pytest.approx(math.nan, nan_ok=True))
    assert len(query.accuracy(epsilon=[0.5, 1.0], assume_rows=2_000)) == 2 * told.height

    def number(out):
        return out.coefficients["x"] if verb == "ols" else out.fill().values[0, 1]

    exact, found = (
        number(query.release(epsilon=300)),
        [number(query.release(epsilon=1.0)) for _ in range(30)],
    )
    assert sum(abs(one - exact) <= error for one in found) >= 21
    assert max(abs(one - exact) for one in found) > error / 10, "no error that is far too large"
