"""Totals are looked up by name, so no column may have the name of another one's part."""

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument
from dpframe.plan import Covers
from inside import question_of
from statistics_table import statistics

ROWS = pl.DataFrame(
    {"id": range(40), "g": ["a", "b"] * 20, "h": ["p", "q"] * 20, "x": [1.0] * 40, "y": [2.0] * 40},
)
FRAME = dp.protect(ROWS, "id", max_rows=2, budget=dp.Budget(epsilon=1e6, delta=0.5))
FIRST = statistics("x", "y", ("h", ["p"]), (0, 10), (0, 3))
QUESTIONS = {
    "alone": FRAME.agg,
    "listed": FRAME.group_by("g", keys=["a", "b"], max_groups=1).agg,
    "found": FRAME.group_by("g", max_groups=1).agg,
    "collected": FRAME.group_by("g", keys=["a"], other="rest", max_groups=1).agg,
}


def beside(columns, name):
    """A second column for a question, whose totals are no others' totals."""
    return {**columns, name: dp.sum("y", bounds=(-7, 5))}


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("statistic", FIRST.values(), ids=FIRST)
def test_a_column_with_the_name_of_a_part_of_another_is_refused(statistic, asked):
    columns = {"n": statistic.aggregate()}
    try:
        made = asked(**beside(columns, "apart"))
    except dp.errors.UnsupportedOperation:
        return  # this statistic is not asked for in this way
    names = {name for one in question_of(made).allotments for name in one.names}
    assert {"apart"} <= names - set(question_of(made).by)
    for name in (name for name in names if name.startswith("n.")):
        with pytest.raises(InvalidArgument, match=rf"{name}'.*agg"):
            asked(**beside(columns, name))


@pytest.mark.parametrize("statistic", FIRST.values(), ids=FIRST)
def test_a_column_with_the_name_of_a_second_moment_is_refused_with_intervals_for_the_population(
    statistic,
):
    columns, asked = {"n": statistic.aggregate()}, QUESTIONS["listed"]
    try:
        made = question_of(asked(**columns)).covering(Covers.POPULATION)
    except dp.errors.UnsupportedOperation:
        return
    alone = {name for one in question_of(asked(**columns)).allotments for name in one.names}
    for name in {name for one in made.allotments for name in one.names} - alone:
        with pytest.raises(InvalidArgument, match=rf"{name}'.*agg"):
            question_of(asked(**beside(columns, name))).covering(Covers.POPULATION)


@pytest.mark.parametrize("part", ["rows", "columns", "total"])
def test_parts_of_crosstabs_and_columns_of_marginals_are_told_apart(part):
    columns = {"g": f"count.{part}", "h": part}
    frame, keys = FRAME.rename(columns), {columns["g"]: ["a", "b"], part: ["p", "q"]}
    crosstab = frame.crosstab(*keys, keys=keys, max_groups=1, margins="measured")
    assert len(crosstab.sensitivity) == 4
    if part == "total":
        with pytest.raises(InvalidArgument, match=r"'total'.*rename"):
            frame.marginals([*keys], [(part,), tuple(keys)], keys=keys, max_rows=1)


def test_the_number_that_finds_keys_has_another_name_than_columns():
    columns = {"units": dp.sum("y", bounds=(0, 5)), "units of the keys": dp.sum("x", bounds=(0, 5))}
    found = FRAME.group_by("g", max_groups=1)
    assert list(found.agg(units=columns["units"]).sensitivity) == ["units", "units of the keys"]
    with pytest.raises(InvalidArgument, match="units of the keys"):
        found.agg(**columns)
