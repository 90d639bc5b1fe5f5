"""Python's operators and other libraries' names on every public object:
an answer, or a typed error with a line.
"""

from __future__ import annotations

import operator

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError, InvalidArgument, UnknownAttribute
from statistics_table import statistics

TABLE = pl.DataFrame(
    {
        "user": [1, 1, 2],
        "city": ["Bonn", "Kiel", "Ulm"],
        "spend": [1.0, 2.0, 3.0],
        "age": [20, 30, 40],
    }
)
BUDGET = dp.Budget(epsilon=9)
FRAME = TABLE.dp(
    unit="user",
    budget=BUDGET,
    max_rows=2,
    bounds={"spend": (0, 9), "age": (0, 99)},
    keys={"city": ["Bonn"]},
)
AGGREGATES = {
    name: one.aggregate()
    for name, one in statistics("spend", "age", ("city", ["Bonn"]), (0.0, 9.0), (0.0, 99.0)).items()
    if name != "top_k"
}
OBJECTS = {
    **AGGREGATES,
    "named": dp.count().alias("n"),
    "expression": dp.col("spend"),
    "condition": dp.col("spend") > 1,
    "when": dp.when(dp.col("spend") > 1),
    "frame": FRAME,
    "groups": FRAME.group_by("city"),
    "query": FRAME.count(),
    "release": FRAME.group_by("city").mean("spend").release(epsilon=1.0),
    "number": FRAME.count().release(epsilon=1.0),
    "report": FRAME.count().release(epsilon=1.0).report(),
    "budget": BUDGET,
}
ONE = [
    operator.neg,
    operator.pos,
    operator.invert,
    abs,
    round,
    len,
    float,
    int,
    list,
    operator.itemgetter(0),
]
ONE += [operator.itemgetter("spend"), operator.itemgetter(["spend"]), lambda x: divmod(x, 2)]
TWO = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
TWO += [
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.matmul,
]


@pytest.mark.parametrize("name", [name for name in OBJECTS if name in AGGREGATES])
def test_an_operator_on_an_aggregate_names_what_to_type(name):
    one = OBJECTS[name]
    asked = [lambda op=op: op(one) for op in ONE]
    asked += [
        lambda op=op, x=x: op(one, x)
        for op in TWO
        for x in (2, 0.5, one, dp.count(), dp.col("age"))
    ]
    asked += [lambda op=op: op(2, one) for op in TWO]
    for ask in asked:
        with pytest.raises(DpFrameError) as refused:
            ask()
        assert "dp." in str(refused.value) or "(" in str(refused.value)


def raised(ask):
    """The error that a call ends in, or None."""
    try:
        ask()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", ["expression", "condition", "frame", "groups", "query"])
def test_an_operator_on_what_is_no_number_gives_an_answer_or_a_typed_error(name):
    """A protected table has no `float()`, which would be a door;
    that of an expression is Python's own too.
    """
    one = OBJECTS[name]
    asked = [lambda op=op: op(one) for op in ONE if op not in (float, int)]
    asked += [lambda op=op, x=x: op(one, x) for op in TWO for x in (2, one)]
    errors = [raised(ask) for ask in asked]
    if name in ("expression", "condition"):  # `len`, `@` and `divmod` are Python's own there
        assert errors.count(None) > 3
        assert all(
            isinstance(error, DpFrameError | TypeError) for error in errors if error is not None
        )
    else:
        assert all(isinstance(error, DpFrameError) for error in errors)


NAMES = sorted(
    {
        name
        for kind in (pl.Expr, pl.DataFrame, pd.Series, pd.DataFrame)
        for name in dir(kind)
        if not name.startswith("_") and name not in ("dp", "ddp")
    }
)


@pytest.mark.parametrize("name", OBJECTS)
def test_a_name_of_another_library_is_there_or_answered(name):
    """Every public name of Polars' and pandas' objects, on each public object of ours."""
    errors = {other: raised(lambda other=other: getattr(OBJECTS[name], other)) for other in NAMES}
    absent = {other: error for other, error in errors.items() if isinstance(error, AttributeError)}
    assert len(absent) > 20
    assert all(
        isinstance(error, UnknownAttribute) and other in str(error)
        for other, error in absent.items()
    )
    assert all(error is None or isinstance(error, DpFrameError) for error in errors.values())


def test_the_ratio_of_two_sums_is_told_in_the_users_own_columns():
    with pytest.raises(InvalidArgument, match=r"dp\.ratio\(dp\.sum\('spend'\), dp\.sum\('age'\)\)"):
        dp.sum("spend") / dp.sum("age")
    with pytest.raises(InvalidArgument, match=r"dp\.ratio\(dp\.sum\('spend', .*dp\.sum\('age', "):
        dp.ratio("spend", "age")
    with pytest.raises(InvalidArgument, match=r"dp\.mean\('spend'\)"):
        dp.ratio(dp.sum("spend"), dp.count())
    with pytest.raises(InvalidArgument, match=r"dp\.sum\('age', unit_bounds="):
        dp.mean("age", unit_bounds=(0, 10))
    with pytest.raises(UnknownAttribute, match="per_unit"):
        dp.min("age").over("city")


def test_the_words_of_a_named_aggregation_are_told():
    with pytest.raises(InvalidArgument, match=r"agg\(spend_max=\('spend', 'max'\)\)"):
        FRAME.agg(("spend", "max"))
    with pytest.raises(InvalidArgument, match=r"agg\(\{'spend': \['mean'\]\}\)"):
        FRAME.agg("spend")
    with pytest.raises(InvalidArgument, match=r"agg\(dp\.sum\('spend'\)\)"):
        FRAME.select(dp.sum("spend"))


def test_a_join_says_why_a_declared_limit_does_not_hold():
    other = TABLE.select("user", z="age").dp(unit="user", budget=BUDGET)
    with pytest.raises(DpFrameError, match=r"two rows of a unit.*max_rows=1"):
        FRAME.join(other, on="user").count()
    single = TABLE.select("user", z="age").unique("user").dp(unit="user", budget=BUDGET, max_rows=1)
    assert FRAME.join(single, on="user").count().release(epsilon=0.1).value is not None


def test_completion_shows_what_is_typed():
    shown = {name for name in dir(BUDGET) if not name.startswith("_")}
    assert {"plan", "series", "spent", "remaining", "history", "allocate"} <= shown
    assert not shown & {
        "charge",
        "check_subject",
        "store",
        "fail",
        "kept_in",
        "open",
        "partition",
        "sizes",
    }
