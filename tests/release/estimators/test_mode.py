"""The most frequent of listed values: what is chosen, how often, and what that costs."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import engine, errors
from dpframe.noise import permute_and_flip
from dpframe.release.answer.selection import most_frequent
from dpframe.theory.formulas.loss import choices_rho, fewer_rows
from inside import question_of
from prices import Price, noise_plan, priced
from tiers import in_turn

CERTAIN = 1e9
VALUES = (0, 1, 2)
SCHEMA = {"u": pl.Int64, "g": pl.Int64, "x": pl.Int64}


def protect(rows, **options):
    return dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e12, delta=0.5), **options)


# The law


def first_law(scores, rate):
    """Permute-and-flip by its definition: every order, each candidate
    accepted with its probability.
    """
    accept = [math.exp(-rate * (max(scores) - s)) for s in scores]
    law = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        alive = 1.0
        for i in order:
            law[i] += alive * accept[i] / len(orders)
            alive *= 1 - accept[i]
    return law


def law(scores, rate, rounds):
    """The probability of each tuple of choices, one after the other."""
    if not rounds:
        return {(): 1.0}
    found = {}
    for i, chance in enumerate(first_law(scores, rate)):
        rest = [s for j, s in enumerate(scores) if j != i]
        for later, other in law(rest, rate, rounds - 1).items():
            found[(i, *(j + (j >= i) for j in later))] = chance * other
    return found


def released_law(units, question, relation):
    """The exact law of a release at ε = 1, through the engine and the noise plan."""
    rows = [(i, *row) for i, owned in enumerate(units) for row in owned]
    frame = dp.protect(pl.DataFrame(rows, SCHEMA, orient="row"), unit="u", neighbors=relation)
    query = question(frame)
    (drawn,) = noise_plan(question_of(query), Price(Fraction(1), Fraction(0))).noises
    (counts,) = engine.totals(question_of(query), 1).values
    laws = [
        law(row.tolist(), 1 / drawn.scale, drawn.allotment.total.rounds)
        for row in np.asarray(counts)
    ]
    return {
        outcome: math.prod(each[part] for each, part in zip(laws, outcome, strict=True))
        for outcome in itertools.product(*laws)
    }


def shapes(groups, values, most):
    places = list(itertools.product(groups, values))
    return [
        rows
        for size in range(most + 1)
        for rows in itertools.combinations_with_replacement(places, size)
    ]


QUESTIONS = {
    "alone": (lambda f: f.mode("x", VALUES, max_rows=1), shapes([0], VALUES, 1), 3),
    "two rows": (lambda f: f.mode("x", (0, 1), max_rows=2), shapes([0], (0, 1), 2), 3),
    "too many rows": (lambda f: f.mode("x", (0, 1), max_rows=2), shapes([0], (0, 1), 3)[-4:], 2),
    "top two": (lambda f: f.top_k("x", 2, VALUES, max_rows=1), shapes([0], VALUES, 1), 2),
    "all of three": (lambda f: f.top_k("x", 3, VALUES, max_rows=1), shapes([0], VALUES, 1), 2),
    "groups": (
        lambda f: f.group_by("g", keys=[0, 1], max_groups=2, max_rows_per_group=1).mode(
            "x", (0, 1)
        ),
        [rows for rows in shapes((0, 1), (0, 1), 2) if len({g for g, _ in rows}) == len(rows)],
        2,
    ),
    "rows in groups": (
        lambda f: f.group_by("g", keys=[0, 1], max_groups=2, max_rows_per_group=2, max_rows=2).mode(
            "x", (0, 1)
        ),
        shapes((0, 1), (0, 1), 2),
        2,
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "relation"), in_turn(QUESTIONS, ["add-remove", "replace"]))
def test_choices_on_every_small_table_are_as_private_as_charged(name, relation):
    """All tables of a few units, all neighbours: the exact log ratio of each
    outcome is at most ε, and reaches it.
    """
    question, owned, most = QUESTIONS[name]
    laws = {}

    def found(units):
        key = tuple(sorted(units))
        if key not in laws:
            laws[key] = released_law(key, question, relation)
        return laws[key]

    worst = 0.0
    for size in range(most):
        for others in itertools.combinations_with_replacement(owned, size):
            for one in owned:
                rivals = [None] if relation == "add-remove" else owned
                for other in rivals:
                    mine, theirs = (
                        found((*others, one)),
                        found(others if other is None else (*others, other)),
                    )
                    worst = max(worst, *(abs(math.log(mine[o] / theirs[o])) for o in mine))
    assert worst <= 1 + 1e-9
    # Rounds share ε, and the worst outcome of one is not that of the next.
    assert worst >= {"top two": 0.6, "all of three": 0.4, "too many rows": 0.6, "alone": 0.9}.get(
        name, 0.999
    )


def test_counts_are_not_charged_twice_for_moving_both_ways():
    """Under replace scores go up and down; charged by the range, not by twice
    the largest change of two rows.
    """
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [0]}), unit="u", neighbors="replace")
    (drawn,) = noise_plan(
        question_of(frame.mode("x", VALUES, max_rows=3)), Price(Fraction(1), Fraction(0))
    ).noises
    assert drawn.scale * float(drawn.allotment.total.unit) == 6


def test_half_the_scale_would_not_be_private():
    """Negative control, on the table of the tight case."""
    tie, apart = (law(scores, 2.0, 1) for scores in ([1, 1], [0, 1]))
    assert math.log(tie[(0,)] / apart[(0,)]) > 1.9


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_what_is_drawn_has_that_law(rounds, chi_square_of):
    scores, rate = [4, 2, 3], Fraction(1, 2)
    drawn = most_frequent(
        np.tile(np.array(scores), (60_000, 1)), rate, rounds, permute_and_flip
    ).reshape(-1, rounds)
    assert chi_square_of(drawn, law(scores, float(rate), rounds)) > 1e-8
    assert chi_square_of(drawn, law(scores, 0.7, rounds)) < 1e-8


@pytest.fixture
def chi_square_of():
    def of(drawn, expected):
        outcomes, counts = np.unique(drawn, axis=0, return_counts=True)
        seen = dict(zip(map(tuple, outcomes.tolist()), counts.tolist(), strict=True))
        assert set(seen) <= set(expected)
        return stats.chisquare(
            [seen.get(o, 0) for o in expected], [len(drawn) * p for p in expected.values()]
        ).pvalue

    return of


@pytest.mark.parametrize("scores", [[9, 4], [9, 4, 4, 4, 4], [9, 8, 3, 0, 0, 9]])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_error_in_rows_is_exceeded_no_more_often_than_stated(scores, alpha):
    rate = 0.5
    error = fewer_rows(1 / rate, len(scores), alpha)
    beyond = sum(p for (i,), p in law(scores, rate, 1).items() if max(scores) - scores[i] > error)
    assert beyond <= alpha
    exact = law([50, 50 - error], rate, 1)[(1,)]
    assert len(scores) > 2 or not error or exact == pytest.approx(alpha)


# The answer

UNLIKE = ("day", "yes")
DAY = dt.datetime(2024, 5, 1)
COLUMNS = {
    "text": (["b", "a", "b", "c", None], ["c", "b", "a"], "b", pl.String),
    "category": (["b", "a", "b", "c", None], ["c", "b", "a"], "b", pl.Categorical),
    "enum": (["hi", "lo", "hi", "hi", "lo"], None, "hi", pl.Enum(["lo", "mid", "hi"])),
    "yes": ([True, False, True, True, None], None, True, pl.Boolean),
    "whole": ([7, 7, 200, None, 7], [200, 7], 7, pl.UInt8),
    "real": ([0.1, -0.0, 0.0, 0.1, -0.0], [0.1, 0], 0.0, pl.Float32),
    "day": ([DAY, DAY, None, DAY, DAY], [dt.date(2020, 1, 1), DAY.date()], DAY.date(), pl.Date),
    "when": ([DAY] * 5, [DAY, dt.datetime(2020, 1, 1)], DAY, pl.Datetime("ns")),
    "long": (
        [dt.timedelta(1)] * 4 + [None],
        [dt.timedelta(0), dt.timedelta(1)],
        dt.timedelta(1),
        pl.Duration("ms"),
    ),
    "null": (["b", None, None, None, "c"], ["b", None, "c"], None, pl.String),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "kind"),
    # pandas has no type of its own for dates, nor for booleans of which some are missing
    sorted(
        set(itertools.product(COLUMNS, ["polars", "lazy", "pandas", "pyarrow"]))
        - {(n, "pandas") for n in UNLIKE}
    ),
)
def test_the_most_frequent_value_keeps_its_type(name, kind):
    values, keys, want, dtype = COLUMNS[name]
    series = pl.Series("x", values).cast(dtype)
    frame = pl.DataFrame({"u": range(5), "g": ["a"] * 5, "x": series})
    # a dictionary there, whose values are no public keys
    if name == "enum" and kind in ("pandas", "pyarrow"):
        keys = ["lo", "hi"]
    brought = {"lazy": frame.lazy, "pandas": frame.to_pandas, "pyarrow": frame.to_arrow}.get(
        kind, lambda: frame
    )()
    asked = protect(brought)
    out = asked.mode("x", keys, max_rows=1).release(epsilon=CERTAIN)
    if dtype != pl.Categorical and kind in ("polars", "lazy"):
        assert out.to_polars().schema["x"] == dtype
    assert out.value == want
    grouped = asked.group_by("g", keys=["z", "a"], max_groups=1, max_rows_per_group=1).mode(
        "x", keys
    )
    assert grouped.release(epsilon=CERTAIN).to_polars()["x"].to_list()[1] == want
    again = (
        asked.group_by("g", max_groups=1, max_rows_per_group=1)
        .mode("x", keys)
        .release(epsilon=CERTAIN, delta=0.1)
    )
    assert again.to_polars()["x"].to_list() == [want]


def test_rows_are_weighted_and_others_are_not_looked_at():
    """One unit with nine rows of b counts twice; rows that are not listed
    leave the choice to the others.
    """
    rows = {"u": [1] * 9 + [2, 3, 4, 5, 6, 7], "x": ["b"] * 9 + ["a"] * 3 + ["z"] * 3}
    frame = protect(pl.DataFrame(rows))
    assert frame.mode("x", ["b", "a"], max_rows=2).release(epsilon=CERTAIN).value == "a"
    assert frame.mode("x", ["b", "a"], max_rows=9).release(epsilon=CERTAIN).value == "b"
    assert (
        frame.cut("u", [0, 1, 9], ["one", "more"], into="y")
        .mode("y", max_rows=1)
        .release(epsilon=9)
        .value
        == "more"
    )


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_the_first_k_come_in_order(kind):
    frame = pl.DataFrame(
        {"u": range(60), "g": ["p", "q"] * 30, "x": ["a"] * 10 + ["b"] * 20 + ["c"] * 30}
    )
    asked = protect(frame if kind == "polars" else frame.to_pandas())
    keys = ["a", "b", "c", "d"]
    out = asked.top_k("x", 3, keys, max_rows=1).release(epsilon=CERTAIN)
    assert out.to_polars().rows() == [(1, "c"), (2, "b"), (3, "a")]
    assert type(out.table).__module__.startswith(kind)
    assert out.accuracy()["error"].max() == pytest.approx(fewer_rows(3e-9, 4, 0.05))
    with pytest.raises(errors.UnsupportedOperation):
        _ = out.value
    by = asked.group_by("g", keys=["q", "p", "none"], max_groups=1, max_rows_per_group=1).top_k(
        "x", 2, keys
    )
    table = by.release(epsilon=CERTAIN).to_polars()
    assert table.columns == ["g", "rank", "x"]
    assert table.rows()[:4] == [("q", 1, "c"), ("q", 2, "b"), ("p", 1, "c"), ("p", 2, "b")]
    assert table.height == 6
    assert len(set(table["x"][4:])) == 2
    one = asked.top_k("x", 1, keys, max_rows=1).release(epsilon=CERTAIN)
    assert (one.to_polars().columns, one.to_polars().rows(), one.value) == (
        ["rank", "x"],
        [(1, "c")],
        "c",
    )
    by = asked.group_by("g", keys=["q", "p"], max_groups=1, max_rows_per_group=1)
    table = by.top_k("x", 1, keys).release(epsilon=CERTAIN).to_polars()
    assert (table.columns, table.rows()) == (["g", "rank", "x"], [("q", 1, "c"), ("p", 1, "c")])
    assert by.mode("x", keys).release(epsilon=CERTAIN).to_polars().columns == ["g", "x"]


def test_a_column_named_rank_is_told_apart():
    frame = protect(pl.DataFrame({"u": [1, 2], "rank": ["a", "b"]}))
    assert frame.top_k("rank", 2, ["a", "b"], max_rows=1).release(epsilon=1).table.columns == [
        "rank_",
        "rank",
    ]


def test_everything_a_release_can_do():
    frame = protect(
        pl.DataFrame({"u": range(60), "g": ["p", "q"] * 30, "x": ["a"] * 20 + ["b"] * 40})
    )
    query = frame.group_by("g", keys=["p", "q"], max_groups=1, max_rows_per_group=2).agg(
        n=dp.count(), m=dp.mode("x", ["a", "b"], share=2)
    )
    assert "one of 2 listed values" in str(query.explain())
    assert query.sensitivity["m"].l1 == 2
    expected = query.accuracy(epsilon=3)
    assert expected["error"][1] == pytest.approx(fewer_rows(1.0, 2, 0.05))
    assert query.epsilon_for(error=2.3, column="m") == pytest.approx(3.0, rel=0.02)
    out = query.release(epsilon=60)
    assert out.table["m"].to_list() == ["b", "b"]
    seen = out.accuracy().filter(pl.col("column") == "m")
    assert seen["value"].to_list() == seen["lower"].to_list() == [None, None]
    assert seen["error"].to_list() == [pytest.approx(fewer_rows(0.05, 2, 0.05))] * 2
    assert out.with_ci().table.columns == ["g", "n", "n_low", "n_high", "m"]
    assert "fewer rows" in out.report()
    assert "b" in out._repr_html_()
    assert out.suppress(below=1e9).table["m"].to_list() == [None, None]
    assert out.noise["mechanism"].to_list()[1] == "permute_and_flip"
    assert out.plot("n") is not None
    with pytest.raises(errors.UnsupportedOperation, match="selected values"):
        out.plot("m")
    alone = frame.mode("x", ["a", "b"], max_rows=1).release(epsilon=1)
    with pytest.raises(errors.UnsupportedOperation, match="count"):
        alone.suppress(below=3)
    assert frame.agg(m=dp.mode("x", ["a", "b"]), limits=dp.Auto()).release(epsilon=50).value == "b"


# The price


def test_rounds_are_cheaper_in_rho_than_one_choice_of_their_price():
    frame = protect(pl.DataFrame({"u": [1], "x": ["a"]}))
    query = frame.top_k("x", 3, list("abcd"), max_rows=1)
    plan = priced(question_of(query), "rho", epsilon=1)
    assert Fraction(plan.cost.rho) >= choices_rho(3, Fraction(1)) > plan.cost.rho * (1 - 1e-9)
    assert choices_rho(3, Fraction(1)) < choices_rho(1, Fraction(1)) / 2
    bought = priced(question_of(query), "rho", rho=plan.cost.rho)
    # whose ρ is a quarter of that of permute-and-flip
    assert bought.noises[0].label == "exponential"
    assert bought.noises[0].scale == pytest.approx(plan.noises[0].scale / 2, rel=0.01)


@pytest.mark.parametrize("accountant", ["basic", "pld"])
def test_choices_in_a_batch(accountant):
    budget = dp.Budget(epsilon=40, delta=0.1, accountant=accountant)
    frame = dp.protect(
        pl.DataFrame({"u": range(90), "x": ["a"] * 10 + ["b"] * 80}), unit="u", budget=budget
    )
    asks = [frame.top_k("x", 2, ["a", "b"], max_rows=1), frame.mode("x", ["a", "b"], max_rows=1)]
    plan = budget.plan(asks, epsilon=30, delta=1e-6)
    assert plan.noise["scale"][0] <= 2 / 15 * (1 + 1e-9)
    first, second = plan.release()
    assert first.table["x"].to_list() == ["b", "a"]
    assert second.value == "b"


def test_a_name_stands_for_the_listed_values(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=9)
    frame = dp.protect(
        pl.DataFrame({"u": range(9), "x": list("aabbbbcca")}), unit="u", budget=budget
    )
    first = frame.top_k("x", 2, list("abc"), max_rows=1).release(epsilon=1, name="top")
    again = frame.top_k("x", 2, list("abc"), max_rows=1).release(epsilon=1, name="top")
    assert first.table.rows() == again.table.rows()
    assert again.table.columns == ["rank", "x"]
    assert budget.spent.epsilon == 1
    for keys, most in ((list("abd"), 2), (list("abc"), 3)):
        with pytest.raises(errors.ReleaseMismatch):
            frame.top_k("x", most, keys, max_rows=1).release(epsilon=1, name="top")


def test_declared_rows_and_one_liners():
    table = pd.DataFrame({"x": ["a"] * 5 + ["b"] * 50})
    asked = dp.protect(table, unit=dp.Rows(2), budget=dp.Budget(epsilon=99))
    assert asked.mode("x", ["a", "b"]).sensitivity["x"].l1 == 2
    assert asked.mode("x", ["a", "b"]).release(epsilon=50).value == "b"
    once = {"unit": dp.Rows(1), "budget": dp.Budget(epsilon=99), "epsilon": 40}
    assert table.dp.mode("x", ["a", "b"], **once).value == "b"
    assert table.dp.top_k("x", 2, ["a", "b"], **once).table["x"].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda f: f.mode("x", max_rows=1), errors.InvalidArgument, r"mode\('x', keys=\[...\]\)"),
        (lambda f: f.mode("x", "ab", max_rows=1), errors.InvalidArgument, "list"),
        (lambda f: f.mode("x", {"x": ["a"]}, max_rows=1), errors.InvalidArgument, "list"),
        (lambda f: f.mode("x", [], max_rows=1), errors.InvalidArgument, "no key"),
        (lambda f: f.mode("x", ["a", "a"], max_rows=1), errors.InvalidArgument, "twice"),
        (lambda f: f.mode("x", [1], max_rows=1), errors.WrongType, "integer"),
        (
            lambda f: f.mode("x", ["a", "b"]),
            errors.UnboundedContribution,
            r"mode\('x', max_rows=20\)",
        ),
        (lambda f: f.mode("y", ["a"]), errors.UnknownColumn, "'y'"),
        (lambda f: f.top_k("x", 3, ["a", "b"], max_rows=1), errors.InvalidArgument, "only 2"),
        (lambda f: f.top_k("x", 0, ["a", "b"], max_rows=1), errors.InvalidArgument, "k"),
        (lambda f: f.top_k("x", True, ["a", "b"], max_rows=1), errors.InvalidArgument, "k"),
        (lambda f: f.per_unit(m=dp.mode("x", ["a"])), errors.UnsupportedOperation, "per_unit"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(ask, error, words):
    frame = protect(pl.DataFrame({"u": [1], "x": ["a"]}))
    with pytest.raises(error, match=words):
        ask(frame)
