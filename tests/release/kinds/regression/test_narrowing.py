"""Narrower bounds of a regression: what is measured for them, what they
are, and what is said of them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.dpframe_check import Check
from dpframe.engine import ONE
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.auto import Seen, narrowing
from dpframe.release.pricing import EpsilonPrice
from inside import question_of, statement_of

CERTAIN = 1e12
BOUNDS = {"x": (0, 1000), "y": (-3000, 3000), "n": (0, 100)}


def rows_of(people=600, seed=5):
    """Values in a small part of their bounds: x is 300 ± 40, y is 2·x ± 100, n is 12 ± 3."""
    rng = np.random.default_rng(seed)
    x = rng.normal(300, 40, people)
    whole = np.clip(np.rint(rng.normal(12, 3, people)), 0, 100).astype(int)
    y = 2 * x + 20 * whole + rng.normal(0, 100, people)
    return pl.DataFrame({"u": np.arange(people), "x": x, "n": whole, "y": y})


ROWS = rows_of()


def asked(rows=ROWS, narrow=True, inputs=("x", "n"), budget=None, **more):
    frame = dp.protect(rows, unit="u", budget=budget or dp.Budget(epsilon=1e12, delta=0.1), **more)
    bounds = {name: BOUNDS[name] for name in (*inputs, "y")}
    return frame.ols(y="y", x=list(inputs), bounds=bounds, max_rows=2, narrow=narrow)


def histograms(patch, query):
    """The histograms that a narrowing release of ε = 3 reads:
    the numbers before noise, and the scale of the noise.
    """
    read, real, question = (
        [],
        narrowing.noisy_histogram,
        question_of(getattr(query, "_query", query)),
    )
    price = EpsilonPrice(Fraction(3), Fraction(0))

    def noted(part, question, counts, seen):
        noisy = real(part, question, counts, seen)
        read.append((counts, seen.reads[-1].scale))
        return noisy

    with patch.context() as inside:
        inside.setattr(narrowing, "noisy_histogram", noted)
        narrowing.narrowed(question, price, price.part(1 - question.chosen_share), Seen())
    return read


# What is measured


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asks", ["ols", "corr", "agg"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_unit_moves_each_histogram_by_no_more_than_its_noise_pays_for(
    monkeypatch, asks, relation
):
    """On all neighbours: each histogram moves by at most its scale times its
    part of ε, and by as much at most.
    """
    kinds = [(-1e9, 0, 1e9), (300.0, None, 7.0), (1e9, 100, -1e9)]
    fixed, schema = (
        [(1, 3.0, 2, 2.0), (2, 50.0, 7, -4.0)],
        {"u": pl.Int64, "x": float, "n": pl.Int64, "y": float},
    )
    mixed = [(3, 3.0, 2, 2.0), (3, 900.0, 90, 2000.0), (3, None, 50, None)]
    owns = [[*((3, *row),) * times] for times in (1, 3) for row in kinds]
    tables = [pl.DataFrame([*fixed, *own], schema, orient="row") for own in (*owns, mixed, [])]
    answers, scales = [], set()
    for table in tables:
        made = {"ols": asked, "corr": partial(matrix, "corr"), "agg": pairs}[asks]
        query = made(table, neighbors=relation)
        read = histograms(monkeypatch, query)
        answers.append([counts for counts, _ in read])
        scales |= {scale for _, scale in read}
    (scale,), columns = scales, 2 if asks == "agg" else 3
    part = 3.0 * float(narrowing.NARROWING) / columns
    assert {len(read) for read in answers} == {columns}
    for place in range(columns):
        others = answers if relation == "replace" else answers[-1:]
        moves = [np.abs(a[place] - b[place]).sum() for a in answers for b in others]
        assert max(moves) == pytest.approx(scale * part, rel=1e-5)
        assert max(moves) <= scale * part


def test_the_parts_of_the_price_add_up_to_it(monkeypatch):
    read = histograms(monkeypatch, asked())
    paid = sum(ONE / scale for _, scale in read)
    assert len(read) == 3
    assert paid == pytest.approx(3.0 * float(narrowing.NARROWING))
    assert paid <= 3.0 * float(narrowing.NARROWING)
    assert asked().release(epsilon=2.0).cost.epsilon == 2.0


# What the bounds are


# chosen bounds are good nearly always: at times noise far out is a value
@pytest.mark.usefixtures("same_noise")
def test_the_outcome_and_inputs_are_clipped_near_their_values():
    (low, high), (first, last), (least, most) = (
        asked().release(epsilon=40.0)._bounds[name] for name in "xyn"
    )
    assert 0 < low < 200 < 400 < high < 600
    assert -500 < first < 700 < 1000 < last < 2000
    assert 0 <= least < 6 < 18 < most < 50
    assert least == int(least)
    assert most == int(most)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, CERTAIN])
@pytest.mark.parametrize(
    "rows", [ROWS.clear(), ROWS[:1], ROWS.with_columns(x=pl.lit(None, float)), ROWS]
)
def test_bounds_are_inside_the_typed_ones_whatever_the_rows_are(rows, epsilon):
    out = asked(rows).release(epsilon=epsilon)
    for name, (low, high) in out._bounds.items():
        assert BOUNDS[name][0] <= low < high <= BOUNDS[name][1]
    assert np.isfinite(out.table["coefficient"].to_numpy()).all()


def test_with_many_people_nothing_is_clipped():
    narrow, typed = (asked(narrow=wanted).release(epsilon=CERTAIN) for wanted in (True, False))
    assert narrow._bounds == typed._bounds
    assert list(narrow.coefficients.values()) == pytest.approx(
        list(typed.coefficients.values()), rel=1e-3
    )


def test_true_and_false_are_not_narrowed():
    rows = ROWS.with_columns(z=pl.col("x") > 300)
    out = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e9)).ols(
        y="y", x=["z"], bounds={"y": BOUNDS["y"]}, max_rows=1, narrow=True
    )
    assert out.release(epsilon=10.0)._bounds["z"] == (0.0, 1.0)


@pytest.mark.long
def test_coefficients_have_less_than_half_the_error():
    """Errors fall to about a sixth, here of 30 releases each:
    that half is not reached by chance is beyond 1e-9.
    """
    true = np.linalg.lstsq(
        np.column_stack([np.ones(600), ROWS["x"], ROWS["n"]]), ROWS["y"], rcond=None
    )[0]
    errors = []
    for wanted in (False, True):
        query = asked(narrow=wanted)
        values = np.array(
            [list(query.release(epsilon=8.0).coefficients.values()) for _ in range(30)]
        )
        errors.append(np.sqrt(np.median((values[:, 1] - true[1]) ** 2)))
    assert errors[1] < errors[0] / 2


def test_bounds_that_floats_hardly_tell_apart_stay_as_they_are():
    rows = ROWS.with_columns(x=pl.lit(1e15))
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e9))
    typed = {"x": (1e15, 1e15 + 1), "y": BOUNDS["y"]}
    out = frame.ols(y="y", x="x", bounds=typed, max_rows=1, narrow=True).release(epsilon=10.0)
    assert out._bounds["x"] == typed["x"]


# Matrices

MATRICES = ("cov", "corr")


def matrix(verb, rows=ROWS, narrow=True, budget=None, **more):
    frame = dp.protect(rows, unit="u", budget=budget or dp.Budget(epsilon=1e12, delta=0.1), **more)
    return getattr(frame, verb)(["x", "n", "y"], BOUNDS, max_rows=2, narrow=narrow)


@pytest.mark.usefixtures("same_noise")  # at times noise far out leaves a column its typed bounds
@pytest.mark.parametrize("verb", [pytest.param("cov", marks=pytest.mark.long), "corr"])
def test_a_matrix_inside_narrower_bounds_is_that_of_the_values(verb):
    budget = dp.Budget(epsilon=1e6)
    out = matrix(verb, budget=budget).release(epsilon=400.0, name="one")
    true = ROWS.select("x", "n", "y").to_pandas()
    expected = getattr(true, verb)().to_numpy()
    assert out.values == pytest.approx(expected, rel=0.1, abs=0.1 if verb == "corr" else 20)
    bounds = statement_of(out)["chosen"]["bounds"]
    assert all(
        BOUNDS[name][0] <= low < high <= BOUNDS[name][1] for name, (low, high) in bounds.items()
    )
    assert bounds["x"][1] - bounds["x"][0] < 1000
    assert "bounds that the release narrowed: x from " in repr(out)
    again = matrix(verb, budget=budget).release(epsilon=400.0, name="one")
    assert (again.values == out.values).all()
    assert budget.spent.epsilon == 400.0
    # the noise of this test is fixed
    real = {name: said for name, said in out.certificate().items() if name != "test"}
    assert Check(real).verdict == "PROVED"


@pytest.mark.parametrize("verb", MATRICES)
def test_a_matrix_without_room_is_refused(verb):
    frame = dp.protect(
        ROWS.with_columns(z=pl.col("x") > 300), unit="u", budget=dp.Budget(epsilon=1.0)
    )
    with pytest.raises(InvalidArgument, match="no column here has room"):
        getattr(frame, verb)(["z", "n"], {"n": (0, 90.5)}, max_rows=1, narrow=True)
    with pytest.raises(InvalidArgument, match="narrow= is True or False"):
        matrix(verb, narrow=1)


# Pairs beside other statistics


def pairs(rows=ROWS, narrow=True, budget=None, by=None, **more):
    frame = dp.protect(rows, unit="u", budget=budget or dp.Budget(epsilon=1e12, delta=0.1), **more)
    asked_of = {
        "count": dp.count(),
        "r": dp.corr("x", "y", {"x": BOUNDS["x"], "y": BOUNDS["y"]}, narrow=narrow),
        "m": dp.mean("x", BOUNDS["x"]),
    }
    if by is None:
        return frame.agg(**asked_of, max_rows=2)
    return frame.group_by(by, keys=[False, True], max_groups=1, max_rows_per_group=2).agg(
        **asked_of
    )


@pytest.mark.usefixtures("same_noise")  # at times noise far out leaves a column its typed bounds
@pytest.mark.parametrize("by", [None, pytest.param("g", marks=pytest.mark.long)])
def test_pairs_inside_narrower_bounds_are_those_of_the_values(by):
    """Also by group, and beside statistics that keep their bounds;
    the parts of the price add up to it.
    """
    rows, budget = ROWS.with_columns(g=pl.col("x") * 7 % 1 < 0.5), dp.Budget(epsilon=1e6)
    out = pairs(rows, budget=budget, by=by).release(epsilon=100.0, name="one")
    true = [ROWS] if by is None else [rows.filter(~pl.col("g")), rows.filter("g")]
    assert out.table["r"].to_list() == pytest.approx(
        [part.select(pl.corr("x", "y")).item() for part in true], abs=0.1
    )
    assert out.table["m"].to_list() == pytest.approx([part["x"].mean() for part in true], rel=0.05)
    bounds = statement_of(out)["chosen"]["bounds"]
    assert all(
        BOUNDS[name][0] <= low < high <= BOUNDS[name][1] for name, (low, high) in bounds.items()
    )
    assert bounds["x"][1] - bounds["x"][0] < 1000
    assert "Narrower bounds, for ε = 20: x from " in str(out.report())
    assert "x beyond [0, 1000]" in repr(out)
    again = pairs(rows, budget=budget, by=by).release(epsilon=100.0, name="one")
    assert again.table.equals(out.table)
    assert budget.spent.epsilon == 100.0
    # the noise of this test is fixed
    real = {name: said for name, said in out.certificate().items() if name != "test"}
    assert Check(real).verdict == "PROVED"


@pytest.mark.long
def test_pairs_take_declared_bounds_and_those_of_clipped_columns():
    declared = dp.protect(ROWS, unit="u", budget=dp.Budget(epsilon=1e6), bounds={"x": BOUNDS["x"]})
    frame = declared.clip("y", *BOUNDS["y"])
    out = frame.agg(r=dp.corr("x", "y", narrow=True), max_rows=1).release(epsilon=400.0)
    bounds = statement_of(out)["chosen"]["bounds"]
    assert all(
        BOUNDS[name][0] <= low < high <= BOUNDS[name][1] for name, (low, high) in bounds.items()
    )


def test_pairs_that_cannot_be_narrowed_are_refused():
    frame = dp.protect(
        ROWS.with_columns(z=pl.col("x") > 300), unit="u", budget=dp.Budget(epsilon=1.0)
    )
    both = {"x": BOUNDS["x"], "y": BOUNDS["y"]}
    pair = dp.corr("x", "y", both, narrow=True)
    with pytest.raises(InvalidArgument, match="no column here has room"):
        frame.agg(r=dp.corr("z", "n", {"n": (0, 90.5)}, narrow=True), max_rows=1)
    with pytest.raises(
        UnsupportedOperation, match=r"dp.Auto\(\) chooses limits or bounds in this question"
    ):
        frame.agg(r=pair, limits=dp.Auto())
    with pytest.raises(
        UnsupportedOperation, match=r"dp.Auto\(\) chooses limits or bounds in this question"
    ):
        frame.agg(r=pair, m=dp.mean("n", bounds=dp.Auto()), max_rows=1)
    with pytest.raises(InvalidArgument, match="Type the same bounds"):
        frame.agg(r=pair, c=dp.cov("x", "y", both | {"x": (0, 10)}, narrow=True), max_rows=1)
    with pytest.raises(UnsupportedOperation, match="narrow=True cannot choose"):
        frame.agg(r=pair, max_rows=1).release(epsilon=0.1, covers="population")
    with pytest.raises(UnsupportedOperation, match="narrow=True chooses bounds inside the release"):
        frame.agg(r=pair, max_rows=1).accuracy(epsilon=0.1)
    for statistic in (dp.cov, dp.corr):
        with pytest.raises(InvalidArgument, match="narrow= is True or False"):
            statistic("x", "y", both, narrow=1)


# What is said and refused


def test_bounds_of_which_none_can_be_narrower_are_refused_before_anything_is_paid():
    budget = dp.Budget(epsilon=1.0)
    rows = ROWS.with_columns(z=pl.col("x") > 300, c=pl.lit("a"))
    frame = dp.protect(rows, unit="u", budget=budget)
    typed = {"bounds": {"n": (0, 90.5)}, "keys": {"c": ["a", "b"]}, "max_rows": 1}
    frame.ols(y="n", x=["z", "c"], **typed)
    with pytest.raises(InvalidArgument, match="no column here has room"):
        frame.ols(y="n", x=["z", "c"], **typed, narrow=True)
    frame.ols(y="n", x=["z", "c"], **typed | {"bounds": {"n": (0, 90)}}, narrow=True).release(
        epsilon=1.0
    )
    assert budget.spent.epsilon == 1.0


@pytest.mark.usefixtures("same_noise")  # at times noise far out leaves a column its typed bounds
def test_what_was_narrowed_is_said_and_stored():
    budget = dp.Budget(epsilon=10.0)
    out = asked(budget=budget).release(epsilon=4.0, name="slopes")
    again = asked(budget=budget).release(epsilon=4.0, name="slopes")
    assert out._bounds == again._bounds
    assert out.coefficients == again.coefficients
    assert budget.spent.epsilon == 4.0
    assert "bounds that the release narrowed: x from " in repr(out)
    assert "Narrower bounds, for ε = 0.8: x from " in str(out.report())
    assert "for 20% of the price" in str(asked().explain())
    assert "narrow=True" in str(asked().explain())


def test_what_cannot_be_is_refused_before_anything_is_paid():
    budget = dp.Budget(rho=1.0)
    query = asked(budget=budget)
    with pytest.raises(UnsupportedOperation, match="rho"):
        query.release(epsilon=0.1)
    assert budget.spent.rho == 0
    assert query.release(rho=0.5).cost.rho == 0.5
    for call in (lambda: query.accuracy(rho=0.1), lambda: query.sensitivity):
        with pytest.raises(
            UnsupportedOperation, match="narrow=True chooses bounds inside the release"
        ):
            call()
    with pytest.raises(InvalidArgument, match="narrow= is True or False"):
        asked(narrow="yes")
