"""What a table declares once: a question that leaves it out is the
question in which a person types it.
"""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import usage
from dpframe.errors import (
    DpFrameError,
    InvalidArgument,
    InvalidBounds,
    MissingBounds,
    UnboundedContribution,
    UnknownColumn,
    UnsupportedOperation,
    WrongCall,
    WrongType,
)
from dpframe.plan import described
from inside import question_of, step_of

DAYS = [dt.date(2026, 1, 1 + i) for i in range(4)]
TABLE = pl.DataFrame(
    {
        "user": [1, 1, 2, 3],
        "city": ["Bonn", "Kiel", "Bonn", "Ulm"],
        "sex": ["f", "f", "m", "m"],
        "spend": [3.0, 4.0, 500.0, -1.0],
        "hours": [1, 2, 3, 400],
        "day": DAYS,
    }
)
LIMITS = {"max_rows": 5, "max_groups": 3, "max_rows_per_group": 2}
BOUNDS = {"spend": (1, 100), "hours": (0, 60), "day": (DAYS[0], DAYS[2])}
KEYS = {"city": ["Bonn", "Kiel"], "sex": ["f", "m", None]}
ROWS = {"max_rows": 5}


def plain(**said):
    return dp.protect(TABLE, unit="user", budget=dp.Budget(epsilon=1e3, delta=0.01), **said)


def declared(**said):
    return plain(**{**LIMITS, "bounds": BOUNDS, "keys": KEYS, **said})


def question(query):
    return question_of(getattr(query, "_query", query))


def same(short, typed):
    """Whether two questions are one: every argument, every step and every total."""
    one, other = question(short), question(typed)
    assert described(one)["ask"] == described(other)["ask"]
    assert described(one)["steps"] == described(other)["steps"]
    assert [(a.names, a.total.key, a.share) for a in one.allotments] == [
        (a.names, a.total.key, a.share) for a in other.allotments
    ]
    assert one.sensitivity == other.sensitivity
    assert one.limits == other.limits


def by(frame, name):
    return frame.group_by(name, keys=KEYS[name], **LIMITS)


def by_city(frame):
    return by(frame, "city")


SPEND, HOURS, DAY = ({"bounds": BOUNDS[name]} for name in ("spend", "hours", "day"))
BOTH = {"bounds": {name: BOUNDS[name] for name in ("spend", "hours")}}
ONE = {  # statistics of a column: as a method of a declared frame, and what a plain frame must type
    "count": ({"column": "spend"}, {}),
    "n_unique": ({"column": "city"}, {}),
    "mode": ({"column": "city"}, {"keys": KEYS["city"]}),
    "top_k": ({"column": "city", "k": 1}, {"keys": KEYS["city"]}),
    "quantile": ({"column": "spend", "q": 0.25}, SPEND),
    "cdf": ({"column": "spend", "points": [5, 50]}, SPEND),
    **{
        verb: ({"column": "spend"}, SPEND)
        for verb in (
            "sum",
            "mean",
            "var",
            "std",
            "skew",
            "kurtosis",
            "geometric_mean",
            "median",
            "min",
            "max",
        )
    },
}
WHOLE = {  # other questions about the whole table, and aggregates of two columns
    "count_units": (
        lambda f: f.count_units(),
        lambda f: f.agg(count_units=dp.count_units(), **ROWS),
    ),
    "mean of times": (lambda f: f.mean("day"), lambda f: f.mean("day", **DAY, **ROWS)),
    "agg": (
        lambda f: f.agg(n=dp.count(), m=dp.mean("spend")),
        lambda f: f.agg(n=dp.count(), m=dp.mean("spend", **SPEND), **ROWS),
    ),
    "weights": (
        lambda f: f.mean("spend", weights="hours"),
        lambda f: f.mean("spend", **SPEND, weights="hours", weight_bounds=BOUNDS["hours"], **ROWS),
    ),
    "several quantiles": (
        lambda f: f.quantile("spend", [0.25, 0.75]),
        lambda f: f.quantile("spend", [0.25, 0.75], **SPEND, **ROWS),
    ),
    "histogram": (
        lambda f: f.histogram("city"),
        lambda f: f.histogram("city", keys=KEYS["city"], **LIMITS),
    ),
    "histogram of bins": (
        lambda f: f.histogram("hours", bins=[0, 9]),
        lambda f: f.histogram("hours", bins=[0, 9], **LIMITS),
    ),
    "crosstab": (
        lambda f: f.crosstab("city", "sex", "spend", "sum"),
        lambda f: f.crosstab("city", "sex", "spend", "sum", keys=KEYS, **SPEND, **LIMITS),
    ),
    "describe": (
        lambda f: f.describe(["spend"]),
        lambda f: f.describe(["spend"], BOUNDS["spend"], **ROWS),
    ),
    "marginals": (
        lambda f: f.marginals(["city", "sex"]),
        lambda f: f.marginals(["city", "sex"], keys=KEYS, **ROWS),
    ),
    "hierarchy": (
        lambda f: f.hierarchy(["sex"], ["f", "m"], "spend", "sum", by="city"),
        lambda f: f.hierarchy(
            ["sex"], ["f", "m"], "spend", "sum", by={"city": KEYS["city"]}, **SPEND, **LIMITS
        ),
    ),
    "synthesize": (
        lambda f: f.synthesize(["city", "sex", "hours"]),
        lambda f: f.synthesize(
            ["city", "sex", "hours"], keys=KEYS, bounds={"hours": (0, 60)}, **ROWS
        ),
    ),
    "cov": (
        lambda f: f.cov(["spend", "hours"]),
        lambda f: f.cov(["spend", "hours"], **BOTH, **ROWS),
    ),
    "corr": (
        lambda f: f.corr(["spend", "hours"]),
        lambda f: f.corr(["spend", "hours"], **BOTH, **ROWS),
    ),
    "ols": (
        lambda f: f.ols(y="spend", x=["hours", "city"]),
        lambda f: f.ols(
            y="spend", x=["hours", "city"], keys={"city": KEYS["city"]}, **BOTH, **ROWS
        ),
    ),
    "ols by formula": (
        lambda f: f.ols("spend ~ hours + C(city)"),
        lambda f: f.ols("spend ~ hours + C(city)", keys={"city": KEYS["city"]}, **BOTH, **ROWS),
    ),
}
GROUPED = {  # of groups alone
    "ratio": (
        lambda g: g.agg(r=dp.ratio(dp.sum("spend"), dp.sum("hours"))),
        lambda g: g.agg(r=dp.ratio(dp.sum("spend", **SPEND), dp.sum("hours", **HOURS))),
    ),
    "cov": (lambda g: g.cov("spend", "hours"), lambda g: g.cov("spend", "hours", **BOTH)),
    "corr": (lambda g: g.corr("spend", "hours"), lambda g: g.corr("spend", "hours", **BOTH)),
    "own limits": (
        lambda g: g.agg(n=dp.count(max_rows=1), m=dp.mean("spend", max_groups=1)),
        lambda g: g.agg(n=dp.count(max_rows=1), m=dp.mean("spend", **SPEND, max_groups=1)),
    ),
    "a total of each unit": (
        lambda g: g.sum("spend", unit_bounds=(0, 9)),
        lambda g: g.sum("spend", unit_bounds=(0, 9)),
    ),
    "count_units": (lambda g: g.count_units(), lambda g: g.count_units()),
}


@pytest.mark.parametrize("verb", ONE)
def test_a_statistic_of_a_declared_table_is_the_typed_one(verb):
    arguments, typed = ONE[verb]
    same(
        getattr(declared(), verb)(**arguments), getattr(plain(), verb)(**arguments, **typed, **ROWS)
    )
    name = "sex" if arguments["column"] == "city" else "city"
    same(
        getattr(declared().group_by(name), verb)(**arguments),
        getattr(by(plain(), name), verb)(**arguments, **typed),
    )


@pytest.mark.parametrize("name", WHOLE)
def test_a_question_about_a_declared_table_is_the_typed_one(name):
    if name == "ols by formula":
        pytest.importorskip("formulaic")
    short, typed = WHOLE[name]
    same(short(declared()), typed(plain()))


@pytest.mark.parametrize("name", GROUPED)
def test_groups_of_a_declared_table_are_the_typed_ones(name):
    short, typed = GROUPED[name]
    same(short(declared().group_by("city")), typed(by_city(plain())))


def test_every_verb_is_tried():
    verbs = {
        verb for verb in {**usage.ARGUMENTS, **usage.MATRICES} if hasattr(dp.PrivateFrame, verb)
    }
    assert verbs <= {*ONE, *WHOLE}
    methods = {verb for verb in usage.ARGUMENTS if hasattr(dp.PrivateGroupBy, verb)}
    assert methods <= {*ONE, *GROUPED}


def test_keys_that_are_found_have_the_declared_limits():
    same(declared(keys=None).group_by("city").count(), plain().group_by("city", **LIMITS).count())
    same(declared(keys=None).top_k("city", 2), plain().top_k("city", 2, **LIMITS))
    keys = declared(keys=None).group_by("city").keys()
    same(keys, plain().group_by("city", **LIMITS).keys())
    assert not question(keys).in_rounds


def test_a_release_of_the_short_question_has_the_noise_of_the_typed_one():
    short = declared().group_by("city").mean("spend").release(0.5)
    typed = by_city(plain()).mean("spend", bounds=(1, 100)).release(0.5)
    assert short.noise.equals(typed.noise)
    assert short.cost == typed.cost
    assert short.table.columns == ["city", "spend"]


def test_a_name_stands_for_what_is_declared(tmp_path):
    """The same name with a wider declared limit is another question, also where
    nothing that was typed differs.
    """
    budget = dp.Ledger(tmp_path / "ledger.sqlite").budget("b", epsilon=9.0)
    said = {"unit": "user", "budget": budget, "data": "2026-01"}
    first = dp.protect(TABLE, **said, max_rows=2).count().release(1.0, name="n")
    assert first.value == dp.protect(TABLE, **said).count(max_rows=2).release(1.0, name="n").value
    with pytest.raises(DpFrameError):
        dp.protect(TABLE, **said, max_rows=9).count().release(1.0, name="n")
    bounds = [dp.protect(TABLE, **said, max_rows=2, bounds={"spend": (0, high)}) for high in (1, 9)]
    bounds[0].sum("spend").release(1.0, name="s")
    with pytest.raises(DpFrameError):
        bounds[1].sum("spend").release(1.0, name="s")
    keys = [
        dp.protect(TABLE, **said, max_rows=2, keys={"city": listed})
        for listed in (["Bonn"], ["Bonn", "Ulm"])
    ]
    keys[0].mode("city").release(1.0, name="m")
    with pytest.raises(DpFrameError):
        keys[1].mode("city").release(1.0, name="m")


# The fewest units of a group


def test_groups_that_are_found_have_the_declared_number_of_units():
    said = {"min_units": 20, "keys": None}
    for short, typed in (
        (
            lambda f: f.group_by("city").count(),
            lambda f: f.group_by("city", **LIMITS, min_units=20).count(),
        ),
        (lambda f: f.histogram("city"), lambda f: f.histogram("city", **LIMITS, min_units=20)),
        (lambda f: f.top_k("city", 2), lambda f: f.top_k("city", 2, **LIMITS, min_units=20)),
        (
            lambda f: f.crosstab("city", "sex"),
            lambda f: f.crosstab("city", "sex", **LIMITS, min_units=20),
        ),
    ):
        same(short(declared(**said)), typed(plain()))
        assert described(question(short(declared(**said)))) != described(
            question(short(declared(keys=None)))
        )
        assert "fewer than 20 units" in short(declared(**said)).explain().keys
    assert question(declared(**said).group_by("city", min_units=3).count()).min_units == 3
    assert "declared by dp(...): max_rows, max_groups, max_rows_per_group, min_units" in str(
        declared(**said).group_by("city").count().explain()
    )
    assert (
        question(dp.protect(TABLE, unit=dp.Rows(2), min_units=9).group_by("city").count()).min_units
        == 9
    )


def test_listed_groups_are_all_released():
    same(declared(min_units=20).group_by("city").count(), by_city(plain()).count())
    for ask in (
        lambda f: f.group_by("city", min_units=20),
        lambda f: f.histogram("city", min_units=20),
        lambda f: f.top_k("city", 1, min_units=20),
        lambda f: f.crosstab("city", "sex", min_units=20),
    ):
        with pytest.raises(InvalidArgument, match=r"suppress\(below=20\)"):
            ask(declared())


def test_keys_that_are_found_by_weights_have_no_number_of_units():
    for frame, said in ((plain(min_units=20), {}), (plain(), {"min_units": 20})):
        with pytest.raises(UnsupportedOperation, match=r"max_groups=3\).keys\(\)"):
            frame.group_by("city", **said).keys()
    assert question(plain(min_units=20).group_by("city", max_groups=2).keys()).min_units == 20


def test_tables_together_have_the_larger_number_of_units():
    budget = dp.Budget(epsilon=1.0)
    one, other, none = (
        dp.protect(TABLE, unit="user", budget=budget, min_units=n) for n in (5, 9, None)
    )
    assert step_of(dp.concat([one, other, none])).table.min_units == 9
    renamed = one.select("user", "sex").rename({"sex": "s"})
    assert step_of(none.join(renamed, on="user")).table.min_units == 5


# What is typed


def test_what_is_typed_takes_the_place_of_what_is_declared_narrower_and_wider():
    frame = declared()
    for rows, high in ((1, 9), (50, 1000)):
        same(
            frame.sum("spend", (0, high), max_rows=rows),
            plain().sum("spend", (0, high), max_rows=rows),
        )
        typed = {**LIMITS, "max_rows_per_group": rows}
        same(
            frame.group_by("city", keys=["Ulm"], max_rows_per_group=rows).sum("spend", (0, high)),
            plain().group_by("city", keys=["Ulm"], **typed).sum("spend", (0, high)),
        )
    same(frame.histogram("city", keys=["Ulm"]), plain().histogram("city", keys=["Ulm"], **LIMITS))
    same(
        frame.describe(bounds={"spend": (0, 9), "hours": (0, 60)}),
        plain().describe(bounds={"spend": (0, 9), "hours": (0, 60)}, **ROWS),
    )
    one = {"spend": (0, 9)}
    same(
        frame.cov(["spend", "hours"], one),
        plain().cov(["spend", "hours"], {**BOTH["bounds"], **one}, **ROWS),
    )
    half = frame.crosstab("city", "sex", keys={"sex": ["f"]})
    same(half, plain().crosstab("city", "sex", keys={"city": KEYS["city"], "sex": ["f"]}, **LIMITS))
    bins = frame.synthesize(["city", "hours"], bins={"hours": [0, 9, 60]})
    typed = plain().synthesize(
        ["city", "hours"], bins={"hours": [0, 9, 60]}, keys={"city": KEYS["city"]}, **ROWS
    )
    same(bins, typed)


def test_auto_takes_the_place_of_declared_limits_and_bounds():
    auto, keys = {"limits": dp.Auto()}, {"keys": KEYS["city"]}
    same_asked(
        declared().group_by("city", **auto).count(),
        plain().group_by("city", **keys, **auto).count(),
    )
    same_asked(declared().bound(**auto).count(), plain().bound(**auto).count())
    same_asked(
        declared().mean("spend", bounds=dp.Auto()), plain().mean("spend", bounds=dp.Auto(), **ROWS)
    )
    assert question(declared().describe(["spend"], dp.Auto())).open_bounds.keys() == {"spend"}


def same_asked(short, typed):
    assert described(question(short)) == {
        **described(question(typed)),
        "steps": described(question(short))["steps"],
    }
    assert question(short).undecided


def test_a_bound_is_typed_too():
    frame = declared()
    assert frame.bound(max_rows=2).count().sensitivity["count"].l1 == 2
    assert frame.bound(max_rows=50).count().sensitivity["count"].l1 == 50
    assert frame.bound(max_rows=50).group_by("city").count().sensitivity["count"].l0 == 2
    assert frame.bound(max_rows=3).count(max_rows=9).sensitivity["count"].l1 == 3


# Which version of a column


KEEPS = {
    "filter": lambda f: f.filter(dp.col("spend") > 0),
    "with_columns": lambda f: f.with_columns(other=dp.col("spend") * 2),
    "select": lambda f: f.select("spend", "city"),
    "drop": lambda f: f.drop("sex"),
    "drop_nulls": lambda f: f.drop_nulls("spend"),
    "rename": lambda f: f.rename({"spend": "x", "city": "spend"}).rename(
        {"spend": "city", "x": "spend"}
    ),
    "join": lambda f: f.join({"city": ["Bonn"], "sea": [False]}, on="city"),
    "join one to many": lambda f: f.join(
        {"city": ["Bonn", "Bonn"], "sea": [False, True]}, on="city"
    ),
    "join people": lambda f: f.join(people(f), on="user"),
    "join to people": lambda f: people(f).join(f, on="user", how="left"),
    "concat": lambda f: dp.concat([f, f.filter(dp.col("hours") > 1)]),
    "partition": lambda f: f.partition("sex", ["f"])["f"],
    "cut": lambda f: f.cut("hours", [0, 9], into="slot"),
    "bound": lambda f: f.bound(max_rows=4),
}


def people(frame):
    return dp.protect(
        pl.DataFrame({"user": [1, 2], "born": [1990, 1980]}),
        unit="user",
        budget=frame.budget,
        max_rows=1,
    )


@pytest.mark.parametrize("step", KEEPS.values(), ids=KEEPS)
def test_what_is_declared_stays_with_the_version_of_a_column(step):
    after = step(declared()).group_by("city").mean("spend")
    assert question(after).limits == question(by_city(step(plain())).mean("spend", **SPEND)).limits
    assert question(after).outputs[0].bounds == (1, 100)
    assert [list(level) for level in question(after).keys.levels] == [["Bonn", "Kiel"]]


REWRITES = {
    "with_columns": lambda f: f.with_columns(spend=dp.col("spend") + 0, city=dp.lit("Bonn")),
    "cast": lambda f: f.cast({"spend": "float32", "city": "string"}),
    "fill_null": lambda f: f.fill_null({"spend": 0, "city": "(none)"}),
    "rename over": lambda f: (
        f.with_columns(s=dp.col("hours") * 1, c=dp.lit("a"))
        .drop("spend", "city")
        .rename({"s": "spend", "c": "city"})
    ),
    "cut": lambda f: f.cut("hours", [0, 1, 2], into="city").with_columns(spend=dp.col("hours") * 1),
    "per_unit": lambda f: f.per_unit(spend=dp.sum("spend"), city=dp.count()),
}


@pytest.mark.parametrize("step", REWRITES.values(), ids=REWRITES)
def test_what_is_declared_does_not_reach_new_values(step):
    after = step(declared())
    assert all(
        step_of(after).table.columns[name].defaults[:2] == (None, None)
        for name in ("spend", "city")
    )
    with pytest.raises(MissingBounds):
        after.sum("spend")


def test_features_of_units_read_declared_bounds_and_picks_keep_what_is_declared():
    features = {
        "total": dp.sum("spend"),
        "m": dp.mean("spend"),
        "home": dp.last("city", by="hours"),
    }
    short = declared().per_unit(**features)
    typed = plain().per_unit(
        total=dp.sum("spend", **SPEND), m=dp.mean("spend", **SPEND), home=features["home"]
    )
    same(short.mean("m"), typed.mean("m", **ROWS))
    same(
        short.group_by("home").mean("m"),
        typed.group_by("home", keys=KEYS["city"], **LIMITS).mean("m"),
    )
    # a person has one row, whatever was declared
    assert short.group_by("home").count().sensitivity["count"].l1 == 1
    whole = declared().per_unit(total=dp.sum("spend", unit_bounds=(0, 50)))
    same(
        whole.mean("total"),
        plain().per_unit(total=dp.sum("spend", unit_bounds=(0, 50))).mean("total", **ROWS),
    )


def test_tables_together_have_what_they_declare_alike():
    budget = dp.Budget(epsilon=1.0)
    one, other = (
        dp.protect(
            TABLE,
            unit="user",
            budget=budget,
            max_rows=5,
            max_groups=groups,
            bounds={"spend": (1, high)},
        )
        for groups, high in ((2, 10), (3, 20))
    )
    both = dp.concat([one, other])
    assert both.count().sensitivity["count"].l1 == 5
    with pytest.raises(MissingBounds):
        both.mean("spend")
    assert step_of(both).table.defaults.max_groups is None
    undeclared = dp.protect(TABLE, unit="user", budget=budget)
    with pytest.raises(UnboundedContribution):
        dp.concat([one, undeclared]).count()


def test_a_join_of_tables_with_many_rows_of_a_unit_declares_no_limit():
    frame = declared(keys=None)
    other = dp.protect(
        pl.DataFrame({"user": [1], "calls": [2]}),
        unit="user",
        budget=frame.budget,
        max_rows=5,
        bounds={"calls": (0, 9)},
    )
    joined = frame.join(other, on="user")
    with pytest.raises(UnboundedContribution):
        joined.count()
    assert joined.sum("calls", max_rows=2).sensitivity["calls"].l1 == 18  # bounds belong to columns
    features = other.per_unit(calls=dp.count())
    assert frame.join(features, on="user").count().sensitivity["count"].l1 == 5


def test_a_table_of_people():
    frame = plain(max_rows=1)
    assert frame.count().sensitivity["count"].l1 == 1
    assert frame.group_by("city").count().sensitivity["count"].l1 == 1
    table = step_of(frame).table
    assert not table.single  # it is enforced, and no promise of the data


def test_a_partition_takes_declared_keys_and_not_declared_limits():
    frame = declared()
    assert list(frame.partition("city")) == KEYS["city"]
    frame.partition("city")["Bonn"].count().release(1.0)
    assert frame.budget.spent.epsilon == 1.0
    with pytest.raises(InvalidArgument):
        plain().partition("city")


# What is refused


REFUSED = [
    ({"bounds": {"nope": (0, 1)}}, UnknownColumn, "there is no column 'nope'"),
    ({"keys": {"nope": ["a"]}}, UnknownColumn, "there is no column 'nope'"),
    ({"bounds": {"spend": (1, 0)}}, InvalidBounds, "spend"),
    ({"bounds": {"city": dp.Auto()}}, WrongType, "not a column of type String"),
    ({"bounds": {"spend": None}}, InvalidBounds, r"\(0, 100\)"),
    ({"bounds": {"city": (0, 1)}}, WrongType, "not a column of type String"),
    ({"bounds": {"day": (0, 1)}}, WrongType, "day"),
    ({"bounds": {"spend": DAYS[:2]}}, WrongType, "spend"),
    ({"bounds": (0, 1)}, InvalidArgument, "dict"),
    ({"keys": {"city": []}}, InvalidArgument, "city"),
    ({"keys": {"city": ["a", "a"]}}, InvalidArgument, "twice"),
    ({"keys": {"city": [1]}}, WrongType, "city"),
    ({"keys": {"city": None}}, InvalidArgument, r"keys=\{'city': \[...\]\}"),
    ({"keys": ["a"]}, InvalidArgument, "dict"),
    ({"max_rows": 0}, InvalidArgument, "max_rows"),
    ({"max_groups": dp.Auto()}, InvalidArgument, r"limits=dp.Auto\(\)"),
    ({"max_rows": dp.Auto()}, InvalidArgument, r"dp\(\.\.\.\)\.bound\(limits=dp.Auto\(\)\)"),
    (
        {"keys": {("city", "spend"): [("a", 1)]}},
        InvalidArgument,
        r"group_by\('city', 'spend', keys=\.\.\.\)",
    ),
    ({"max_row": 1}, WrongCall, "max_row"),
    ({"min_units": 0}, InvalidArgument, "min_units"),
    ({"min_units": 2.5}, InvalidArgument, "min_units"),
    ({"limits": dp.Auto()}, WrongCall, "limits"),
]


@pytest.mark.parametrize(("said", "error", "words"), REFUSED)
def test_a_declaration_that_cannot_be_is_refused(said, error, words):
    for protect in (
        lambda: dp.protect(TABLE, unit="user", **said),
        lambda: TABLE.dp(unit="user", **said),
    ):
        with pytest.raises(error, match=words) as caught:
            protect()
        assert "500" not in str(caught.value)


def test_without_identifiers_bounds_and_keys_are_declared_and_limits_are_not():
    frame = dp.protect(TABLE, unit=dp.Rows(2), bounds=BOUNDS, keys=KEYS)
    typed = dp.protect(TABLE, unit=dp.Rows(2))
    same(
        frame.group_by("city").sum("spend"),
        typed.group_by("city", keys=KEYS["city"]).sum("spend", **SPEND),
    )
    with pytest.raises(UnsupportedOperation, match=r"max_rows=3.*dp.Rows\(2\) is the limit"):
        dp.protect(TABLE, unit=dp.Rows(2), max_rows=3)


# Every kind of table, and what people read


def test_accessors_declare_too():
    for table in (TABLE, TABLE.to_pandas(), TABLE.lazy()):
        frame = table.dp(unit="user", **LIMITS, bounds={"spend": (1, 100)}, keys={"city": ["Bonn"]})
        assert frame.group_by("city").sum("spend").sensitivity["spend"].l1 == 200
    column = pd.Series([1.0, 2.0], name="x").dp(unit=dp.Rows(1), bounds={"x": (0, 9)})
    assert column.sum().sensitivity["x"].l1 == 9
    frame = declared()
    # a release at once declares nothing: its arguments are those of the question
    with pytest.raises(MissingBounds):
        TABLE.dp.sum("spend", unit="user", max_rows=1, budget=frame.budget, epsilon=1.0)


def test_explain_and_report_say_what_is_declared_and_where():
    frame = declared()
    query = frame.group_by("city", max_groups=2).agg(
        m=dp.mean("spend"), h=dp.sum("hours", bounds=(0, 9))
    )
    (first, *_), (_, limits, _) = query.explain().steps
    assert (
        "max_rows=5, max_groups=3, max_rows_per_group=2, bounds={'spend': (1, 100), 'hours': (0, "
        "60)" in first
    )
    assert "keys={'city': ['Bonn', 'Kiel'], 'sex': ['f', 'm', None]}" in first
    said = "; declared by dp(...): max_rows, max_rows_per_group, keys of 'city', bounds of 'spend'"
    assert limits.endswith(said)
    assert said in str(query.release(1.0).report())
    assert "2 declared keys" in repr(frame)
    assert "clipped to [1, 100] where it is asked" in repr(frame)
    assert "at most 5 rows in all, unless a question types others" in repr(frame)
    assert "declared" not in str(plain().count(max_rows=1).explain())


def test_a_wider_table_of_keys_may_repeat_them_and_a_table_of_keys_alone_may_not():
    places = pl.DataFrame({"city": ["Bonn", "Bonn", "Kiel"], "sex": ["f", "m", "f"]})
    same(plain().group_by("city", keys=places, **LIMITS).count(), by_city(plain()).count())
    for wrong in (places.select("city"), ["Bonn", "Bonn", "Kiel"], {"city": ["Bonn", "Bonn"]}):
        with pytest.raises(InvalidArgument, match="twice"):
            plain().group_by("city", keys=wrong, **LIMITS)


def test_categories_of_an_enum_are_keys_and_those_of_a_categorical_are_not():
    """An Enum's categories are in the schema.
    Those of a Categorical are made of the data as a rule.
    """
    enum = pl.Enum(["Kiel", "Bonn", "Ulm"])
    listed = dp.protect(TABLE.with_columns(pl.col("city").cast(enum)), unit="user", **LIMITS)
    assert question(listed.group_by("city").count()).keys.levels == (("Kiel", "Bonn", "Ulm"),)
    some = dp.protect(
        TABLE.with_columns(pl.col("city").cast(enum)),
        unit="user",
        keys={"city": ["Bonn"]},
        **LIMITS,
    )
    assert question(some.group_by("city").count()).keys.levels == (("Bonn",),)
    kinds = (
        TABLE.with_columns(pl.col("city").cast(pl.Categorical)),
        TABLE.to_pandas().astype({"city": pd.CategoricalDtype(["Kiel", "Bonn", "Ulm"])}),
        TABLE.to_arrow().set_column(
            1, "city", TABLE.to_arrow()["city"].combine_chunks().dictionary_encode()
        ),
    )
    for table in kinds:
        frame = dp.protect(table, unit="user", **LIMITS)
        assert question(frame.group_by("city").count()).keys is None


# Public tables

REGIONS = pl.DataFrame(
    {
        "city": ["Bonn", "Kiel", "Ulm"],
        "region": ["west", "north", None],
        "code": [7, 3, 7],
        "area": [1.5, float("inf"), 4.0],
        "since": DAYS[:3],
        "sea": [False, True, False],
        "name": ["one"] * 3,
        "flat": [2.0] * 3,
    }
)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_public_table_brings_its_keys_and_bounds(how):
    """What a question types no others for; typed ones take their place.
    Null is none of the keys.
    """
    frame, typed = (f.join(REGIONS, on="city", how=how) for f in (declared(), plain()))
    for by, keys in (
        ("region", ["west", "north"]),
        ("code", [7, 3]),
        ("since", DAYS[:3]),
        ("name", ["one"]),
    ):
        same(frame.group_by(by).count(), typed.group_by(by, keys=keys, **LIMITS).count())
    for column, bounds in (("area", (1.5, 4.0)), ("code", (3, 7)), ("since", (DAYS[0], DAYS[2]))):
        same(frame.mean(column), typed.mean(column, bounds=bounds, **ROWS))
        assert question(frame.mean(column, bounds=bounds)).open_bounds == {}
    same(frame.sum("area", bounds=(0, 100)), typed.sum("area", bounds=(0, 100), **ROWS))
    with pytest.raises(MissingBounds):
        frame.mean("flat")
    line = f"declared by join(public table, on='city', how={how!r}): keys of 'region'"
    assert line in str(frame.group_by("region").count().explain())


def test_a_column_of_a_public_table_with_many_values_has_no_keys():
    many = pl.DataFrame(
        {"city": [f"{i}" for i in range(1001)], "place": [f"{i}" for i in range(1001)]}
    )
    for table, keys in ((many, None), (many.head(1000), 1000)):
        found = question(declared().join(table, on="city").group_by("place").count()).keys
        assert (found and found.size) == keys


def test_what_a_public_table_brings_does_not_reach_new_values():
    frame = (
        declared()
        .join(REGIONS, on="city")
        .with_columns(code=dp.col("code") + 0, region=dp.lit("x"))
    )
    with pytest.raises(MissingBounds):
        frame.mean("code")
    assert question(frame.group_by("region").count()).keys is None


def test_dates_that_python_does_not_have_are_no_keys_of_a_public_table():
    # in the year 10000, before the year 1
    far = pl.Series([2932897, -800000, 3], dtype=pl.Int32).cast(pl.Date)
    joined = plain().join(pl.DataFrame({"city": ["Bonn", "Kiel", "Ulm"], "opened": far}), on="city")
    keys = (
        joined.group_by("opened", max_groups=1, max_rows_per_group=1)
        .count()
        .release(epsilon=1)
        .table["opened"]
    )
    assert keys.to_list() == [dt.date(1970, 1, 4)]


def test_rows_that_no_declared_key_has_count_under_one_name():
    """Declared keys may be left out, and the file of a policy may list
    them; the rest is one group more.
    """
    rows = pl.DataFrame({"user": [1, 2, 3], "city": ["a", "b", None]})
    frame = rows.dp(
        unit="user", max_rows=1, max_groups=1, keys={"city": ["a"]}, budget=dp.Budget(epsilon=1e9)
    )
    typed = frame.group_by("city", keys=["a"], other="rest").count()
    assert question(typed).keys == question(frame.group_by("city", other="rest").count()).keys
    out = frame.group_by("city", other="rest").count().release(epsilon=1e6)
    assert out.table.rows() == [("a", 1), ("rest", 2)]


CHOSEN = {
    "sum": lambda f, **b: f.sum("spend", **b),
    "mean": lambda f, **b: f.mean("spend", **b),
    "several": lambda f, **b: f.mean(["spend", "items"], **b),
    "median": lambda f, **b: f.median("spend", **b),
    "std": lambda f, **b: f.std("spend", **b),
    "agg": lambda f, **b: f.agg(a=dp.mean("spend", **b), b=dp.sum("items", **b)),
    "groups": lambda f, **b: f.group_by("city", keys=["a"], max_groups=1).sum("spend", **b),
}
MANY = pl.DataFrame(
    {"user": [1, 2, 3], "spend": [1.0, 2.0, 3.0], "items": [1, 2, 3], "city": ["a", "b", "a"]}
)


@pytest.mark.parametrize("name", CHOSEN)
def test_bounds_that_each_release_chooses_are_declared_as_typed(name):
    auto = {"spend": dp.Auto(), "items": dp.Auto()}
    declared, typed = (
        MANY.dp(unit="user", budget=dp.Budget(epsilon=9), max_rows=1, **b)
        for b in ({"bounds": auto}, {})
    )
    short, long = CHOSEN[name](declared), CHOSEN[name](typed, bounds=dp.Auto())
    assert question_of(short).aggregates == question_of(long).aggregates
    assert short.release(epsilon=1.0).table.shape == long.release(epsilon=1.0).table.shape
    assert "dp.Auto()" in str(short.explain())
    assert (
        CHOSEN[name](declared, bounds=(0, 9)).sensitivity
        == CHOSEN[name](typed, bounds=(0, 9)).sensitivity
    )


def test_where_no_bounds_are_chosen_declared_ones_are_none():
    frame = MANY.dp(unit="user", max_rows=1, bounds={"spend": dp.Auto(), "items": dp.Auto()})
    assert "each release chooses" in str(frame)
    assert "bounds" not in str(step_of(frame.per_unit(total=dp.sum("spend"))).typed)
    for ask in (
        lambda: frame.corr(["spend", "items"]),
        lambda: frame.skew("spend"),
        lambda: frame.cdf("spend", [1]),
    ):
        with pytest.raises(InvalidBounds):
            ask()
