"""A policy file holds on every engine: hostile cells are moved or null before
any step, and totals are Polars'.
"""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from questions import TABLE, exact

POLICY = """
unit = "u"
max_rows = 9
max_groups = 4
[bounds]
a = [-3, 8]
i = [-5, 1000000]
x = [-2.5, 127.5]
y = [0, 3]
d = [-1, 1]
day = [2020-01-01, 2021-01-01]
time = [2020-01-01T00:00:00, 2021-01-01T00:00:00]
[keys]
city = ["Bonn", "Düren", ""]
s = "texts.csv"
yes = [true]
n = "numbers.parquet"
"""
c = dp.col
QUESTIONS = {
    "sums": lambda f: f.agg(max_rows=9, **{name: dp.sum(name) for name in "aixyd"}),
    "sums of columns that are made of them": lambda f: f.with_columns(
        **{n: c(n) * 2 for n in "aixy"}
    ).agg(max_rows=9, **{name: dp.sum(name, bounds=(-(2**31), 2**31)) for name in "aixy"}),
    "nobody is beyond": lambda f: f.filter(
        ~(c("a") <= 8) | ~(c("x") <= 127.5) | ~(c("i") >= -5) | ~(c("y") <= 3) | ~(c("d") <= 1)
    ).count(max_rows=9),
    "days and times": lambda f: f.with_columns(
        p=c("day").dt.year(), q=c("time").dt.ordinal_day()
    ).agg(
        max_rows=9,
        p=dp.sum("p", bounds=(0, 3000)),
        q=dp.sum("q", bounds=(0, 400)),
        n=dp.count("day"),
        t=dp.count("time"),
    ),
    "keys": lambda f: f.group_by("city", max_groups=4, max_rows=9).count(),
    "keys of files": lambda f: f.group_by("s", "n", max_groups=4, max_rows=9).count(),
    "all other keys": lambda f: f.group_by("city", other="else", max_groups=4, max_rows=9).count(),
    "all but some of the keys": lambda f: f.group_by(
        "city", "yes", keys={"city": ["Bonn"]}, other=("else", None), max_groups=4, max_rows=9
    ).count(),
    "other keys are missing": lambda f: f.with_columns(
        m=c("s").is_null(), o=c("city").is_null(), k=c("yes")
    ).agg(max_rows=9, m=dp.sum("m"), o=dp.sum("o"), k=dp.count("k"), n=dp.sum("n", bounds=(-9, 9))),
    "of a unit": lambda f: f.per_unit(t=dp.sum("x", bounds=(-2.5, 127.5)), k=dp.count()).agg(
        max_rows=1, t=dp.sum("t", bounds=(-99, 999)), k=dp.sum("k", bounds=(0, 99))
    ),
    "casts": lambda f: f.cast({"x": "int64", "city": "string"}).agg(
        max_rows=9, x=dp.sum("x", bounds=(-999, 999))
    ),
}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    (folder / "texts.csv").write_text('s\nabc\n"x y"\n5\n')
    TABLE.select("n").unique().sort("n").head(2).write_parquet(folder / "numbers.parquet")
    path = folder / "visits.toml"
    path.write_text(POLICY)
    return dp.Policy(path)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_policy_holds_on_every_engine(engine, name, policy):
    ask = QUESTIONS[name]
    query, same = (ask(dp.protect(table, policy=policy)) for table in (engine(TABLE), TABLE))
    assert exact(query) == exact(same)
    assert query.sensitivity == same.sensitivity


def test_what_these_questions_find_differs_without_the_policy(policy):
    for name in (
        "sums of columns that are made of them",
        "nobody is beyond",
        "other keys are missing",
    ):
        ask = QUESTIONS[name]
        assert exact(ask(dp.protect(TABLE, policy=policy))) != exact(
            ask(dp.protect(TABLE, unit="u"))
        )


def test_other_counts_what_the_file_does_not_list_and_no_call_lists_more(policy):
    """Cells that the file does not list are missing before any step, and rows
    without a key are in `other=` too.
    """
    rows = dp.protect(TABLE.with_columns(u=pl.int_range(pl.len())), policy=policy)
    listed = {"Bonn": 0, "Düren": 0, "": 0, "else": 0}
    for city in TABLE["city"]:
        listed[city if city in listed else "else"] += 1
    (groups,) = exact(
        rows.group_by("city", other="else", max_groups=1, max_rows=1).count()
    ).values()
    assert {key: count for (key,), count in groups.items()} == listed
    (fewer,) = exact(
        rows.group_by("city", keys=["Bonn"], other="else", max_groups=1, max_rows=1).count()
    ).values()
    assert fewer == {("Bonn",): listed["Bonn"], ("else",): sum(listed.values()) - listed["Bonn"]}
    with pytest.raises(errors.PolicyExceeded, match="no call may add keys"):
        rows.group_by("city", keys=["Bonn", "Kiel"], other="else", max_groups=2)
