"""A table under a policy file: every public verb refuses what would weaken the
file, and no way leads around it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
import itertools

import duckdb
import ibis
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.accessors import FrameAccessor, SeriesAccessor
from dpframe.api.hierarchy import HierarchyQuery
from dpframe.api.marginals import MarginalsQuery
from dpframe.api.regression import MomentsQuery
from dpframe.api.synthesis import SynthesisQuery
from dpframe.errors import (
    CapExceeded,
    DpFrameError,
    MissingBounds,
    PolicyExceeded,
    UnsupportedOperation,
)
from dpframe.release import Batch, Series
from inside import question_of, step_of

DAYS = [dt.date(2026, 1, 1 + i) for i in range(4)]
TABLE = pl.DataFrame(
    {
        "user": [1, 1, 2, 3],
        "city": ["Bonn", "Kiel", "Bonn", "Ulm"],
        "sex": ["f", "f", "m", "x"],
        "spend": [3.0, 4.0, 500.0, -1.0],
        "hours": [1, 2, 3, 400],
        "day": DAYS,
    }
)
MOST = {"max_rows": 4, "max_groups": 2, "max_rows_per_group": 2}
FILE = """
unit = "user"
neighbors = "add-remove"
max_rows = 4
max_groups = 2
max_rows_per_group = 2
min_units = 5
[bounds]
spend = [0, 100]
hours = [0, 60]
day = [2026-01-01, 2026-01-03]
[keys]
city = ["Bonn", "Kiel"]
sex = ["f", "m"]
[because]
spend = "the till takes no more"
[caps]
release = {epsilon = 2, delta = 1e-6}
"""


@pytest.fixture
def file(tmp_path):
    return written(tmp_path)


def written(folder, text=FILE):
    path = folder / "visits.toml"
    path.write_text(text)
    return path


def under(file, table=TABLE, **said):
    return dp.protect(table, policy=file, budget=dp.Budget(epsilon=9.0, delta=1e-4), **said)


# Every argument of every public verb

# Arguments that a policy file has an entry for: at most as wide as the file, and wider, which must
# be refused.
WIDER = {
    "max_rows": 5,
    "max_groups": 3,
    "max_rows_per_group": 3,
    "min_units": 4,
    "unit_bounds": (0, 401),
    "weight_bounds": (0, 61),
    "lower": -1,
    "upper": 101,
    "grid": {"max_rows": [1, 5]},
}
TOO_WIDE = {  # bounds and keys in each form that a verb takes
    "bounds": lambda typed: {**typed, "spend": (0, 101)} if isinstance(typed, dict) else (-1, 50),
    "keys": lambda typed: (
        {**typed, "city": ["Bonn", "Ulm"]}
        if isinstance(typed, dict)
        else [*typed, type(typed[0])(["Ulm", "f"])]
        if not isinstance(typed[0], str)
        else [*typed, "Ulm"]
    ),
    "by": lambda typed: {**typed, "sex": ["q"]} if isinstance(typed, dict) else typed,
}
# Arguments without an entry. A new one is decided here: does it widen what a file locks?
FREE = {
    "names columns": "column columns index x y values by into on names unnamed formula for_model "
    "nulls weights top bottom",
    "a price, which caps limit": "epsilon delta rho alpha error assume_rows ci at share shares "
    "price",
    "how noise is drawn, named or shown": "noise name refresh on_pending data covers fill options "
    "args title width height",
    "what is asked of values that are clipped already": "points q k ddof percentiles aggfunc "
    "workload rows margins normalize subtotals underflow overflow bins labels right "
    "include_lowest narrow other named aggregates features conditions equal per_unit",
    "a step on cells that are clipped already": "value dtype how",
    "an upper bound stays: see test_limits_that_are_chosen": "limits",
    "a table that the caller made up": "table",
    "what makes an expression, or a frame of several": "budget value scaled separator weeks days "
    "hours minutes seconds condition frames",
    "what was charged already": "period query length window",
    "who says that they spend, and why they ask again, which nothing proves": (
        "spender purpose supersedes because"
    ),
    "no table, but a file to label, a function to call or memory to take": "path key callback gib",
}
FREE_NAMES = {name for names in FREE.values() for name in names.split()}
NONE = {
    "acknowledge_failures",
    "answer",
    "kept",
    "charge",
    "entries",
    "fail",
    "forecast",
    "history",
    "one_by_one",
    "kept_in",
    "open",
    "partition",
}
NONE |= {
    "resolve",
    "store",
    "tables",
    "allocate",
    "series",
    "plan",
    "for_spender",
    "check_subject",
    "each",
    "part",
    "sizes",
}  # of a budget, which holds no table
CLASSES = (
    dp.PrivateFrame,
    dp.PrivateGroupBy,
    dp.Query,
    MomentsQuery,
    SynthesisQuery,
    MarginalsQuery,
    HierarchyQuery,
    Batch,
    Series,
)


def arguments(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "_")]


def verbs(kind):
    return [
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))
    ]


FUNCTIONS = [name for name in dp.__all__ if inspect.isfunction(getattr(dp, name))]
STATISTICS = [
    name for name in FUNCTIONS if "share" in arguments(getattr(dp, name)) and name != "Auto"
]


def undecided(kinds):
    """Public arguments that are neither an entry of a policy file nor known to be free."""
    every = [
        (f"{kind.__name__}.{verb}", getattr(kind, verb)) for kind in kinds for verb in verbs(kind)
    ]
    every += [(f"dp.{name}", getattr(dp, name)) for name in FUNCTIONS if name != "protect"]
    return {
        f"{title}: {name}"
        for title, made in every
        for name in arguments(made)
        if name not in FREE_NAMES | LOCKED
    }


LOCKED = {*WIDER, *TOO_WIDE}


def test_every_public_argument_is_decided():
    assert not undecided(CLASSES)
    entries = {
        name for name in arguments(dp.protect) if name not in ("frame", "budget", "data", "policy")
    }
    assert entries <= LOCKED | {"unit", "neighbors", "people"}
    assert set(verbs(dp.Budget)) <= NONE, "does a new verb of a budget take a table?"


def test_a_new_argument_is_noticed():
    class Sub(dp.PrivateFrame):
        def mean_of_all(self, most_rows):
            return most_rows

    assert undecided([Sub]) == {"Sub.mean_of_all: most_rows"}


ROWS = {"max_rows": 3}
EACH = {"max_rows": 3, "max_groups": 1, "max_rows_per_group": 1}
SPEND = {"column": "spend", "bounds": (1, 50)}
BOTH = {"bounds": {"spend": (0, 50), "hours": (0, 9)}}
KEYS = {"keys": {"city": ["Bonn"], "sex": ["f"]}}
BOUNDED = (
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
OF_COLUMNS = {  # statistics, as functions and methods, with every argument that a file may lock
    **{verb: [SPEND] for verb in BOUNDED},
    "quantile": [{**SPEND, "q": 0.5}],
    "cdf": [{**SPEND, "points": [5]}],
    "count": [{"column": "spend"}],
    "count_units": [{}],
    "n_unique": [{"column": "city"}],
    "mode": [{"column": "city", "keys": ["Bonn"]}],
}
OF_COLUMNS["sum"] = [SPEND, {"column": "spend", "unit_bounds": (0, 300)}]
OF_COLUMNS["mean"] = [SPEND, {**SPEND, "weights": "hours", "weight_bounds": (0, 9)}]
FRAME = {
    **{
        v: [{**a, **({} if v == "count_units" else ROWS)} for a in typed]
        for v, typed in OF_COLUMNS.items()
    },
    "agg": [{**ROWS, "n": dp.count()}],
    "bound": [ROWS],
    "clip": [{"column": "spend", "lower": 1, "upper": 50}],
    "cov": [{"columns": ["spend", "hours"], **BOTH, **ROWS}],
    "corr": [{"columns": ["spend", "hours"], **BOTH, **ROWS}],
    "crosstab": [
        {
            "index": "city",
            "columns": "sex",
            "values": "spend",
            "aggfunc": "sum",
            "bounds": (0, 50),
            **KEYS,
            **EACH,
        },
        {"index": "when", "columns": "sex", "min_units": 6, **EACH},
    ],
    "describe": [{"columns": ["spend", "hours"], **BOTH, **ROWS}],
    "group_by": [
        {"by": "city", "keys": ["Bonn"], **EACH},
        {"by": ("city", "sex"), "keys": [("Bonn", "f")], **EACH},
        {"by": "when", "min_units": 6, **EACH},
    ],
    "hierarchy": [
        {"columns": ["city"], "keys": ["Bonn"], "by": {"sex": ["f"]}, **EACH},
        {
            "columns": ["city"],
            "keys": ["Bonn"],
            "values": "spend",
            "aggfunc": "sum",
            "bounds": (0, 50),
            **EACH,
        },
    ],
    "histogram": [
        {"column": "city", "keys": ["Bonn"], **EACH},
        {"column": "when", "min_units": 6, **EACH},
    ],
    "marginals": [{"columns": ["city", "sex"], **KEYS, **ROWS}],
    "ols": [
        {"y": "spend", "x": ["hours", "city"], **BOTH, "keys": {"city": ["Bonn", "Kiel"]}, **ROWS}
    ],
    "partition": [{"by": "city", "keys": ["Bonn"], "max_groups": 1}],
    "synthesize": [
        {
            "columns": ["city", "spend"],
            "keys": {"city": ["Bonn"]},
            "bounds": {"spend": (0, 50)},
            "rows": 5,
            **ROWS,
        }
    ],
    "top_k": [
        {"column": "city", "k": 1, "keys": ["Bonn"], **ROWS},
        {"column": "when", "k": 1, "min_units": 6, **EACH},
    ],
}
GROUPS = {**OF_COLUMNS, "top_k": [{"column": "city", "k": 1, "keys": ["Bonn"]}]}
PAIRS = {"x": "spend", "y": "hours", **BOTH}
GROUPS |= {verb: [PAIRS] for verb in ("cov", "corr")}
ALONE = {**{verb: [{**a, **EACH} for a in typed] for verb, typed in OF_COLUMNS.items()}}
ALONE |= {verb: [{**PAIRS, **EACH}] for verb in ("cov", "corr")}
ALONE["ratio"] = [{"top": dp.sum("spend"), "bottom": dp.sum("hours"), **EACH}]


FRAME["groupby"] = FRAME["group_by"]


def asked(method, typed):
    """A call of `group_by` and `agg`, whose columns are typed without names."""
    typed = dict(typed)
    by = typed.pop("by", None) if method.__name__ in ("group_by", "groupby") else None
    return method(*([by] if isinstance(by, str) else by or ()), **typed)


def widened(typed):
    """The same call, once for each argument that a file locks, with
    that argument wider than the file.
    """
    for name, value in typed.items():
        if name in WIDER:
            yield name, {**typed, name: WIDER[name]}
        elif (
            name in TOO_WIDE
            and (wide := TOO_WIDE[name](value)) != value
            and not isinstance(value, str)
        ):
            yield name, {**typed, name: wide}


def frame_of(file):
    """A table under the file, with a column that the file says nothing of: its keys are found."""
    return under(file).with_columns(when=dp.col("day").cast("string"))


def held(ask, calls, kind, verb):
    """A call within the file is answered, and each wider one refused;
    every lockable argument of a verb is tried.
    """
    tried = set()
    for typed in calls:
        asked(ask, typed)
        for name, wide in widened(typed):
            with pytest.raises(PolicyExceeded, match=r"visits\.toml"):
                asked(ask, wide)
            tried.add(name)
    has = set(arguments(getattr(kind, verb) if kind is not dp else ask)) & (LOCKED - {"by"})
    assert tried >= has, (verb, has - tried)


@pytest.mark.parametrize("verb", [v for v in verbs(dp.PrivateFrame) if v in FRAME])
def test_every_verb_of_a_frame_refuses_what_is_wider(verb, file):
    held(getattr(frame_of(file), verb), FRAME[verb], dp.PrivateFrame, verb)


@pytest.mark.parametrize("verb", [v for v in verbs(dp.PrivateGroupBy) if v in GROUPS])
def test_every_verb_of_groups_refuses_what_is_wider(verb, file):
    held(getattr(frame_of(file).group_by("sex"), verb), GROUPS[verb], dp.PrivateGroupBy, verb)


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_refuses_what_is_wider(name, file):
    groups = frame_of(file).group_by("sex")
    held(lambda **typed: groups.agg(a=getattr(dp, name)(**typed)), ALONE[name], dp, name)
    for typed in ALONE[name]:
        for _, wide in widened(typed):
            with pytest.raises(PolicyExceeded):
                groups.agg(a=getattr(dp, name)(**wide))


def test_every_verb_with_a_lockable_argument_is_tried():
    def lockable(kind):
        return {
            verb for verb in verbs(kind) if set(arguments(getattr(kind, verb))) & (LOCKED - {"by"})
        }

    assert lockable(dp.PrivateFrame) <= FRAME.keys()
    assert lockable(dp.PrivateGroupBy) <= GROUPS.keys()
    assert set(STATISTICS) <= ALONE.keys()
    assert lockable(dp.Query) == {"tune"}


@pytest.mark.parametrize("verb", verbs(FrameAccessor))
def test_every_verb_of_the_accessor_refuses_what_is_wider(verb, file):
    for typed in FRAME[verb]:
        for _, wide in widened(
            {key: value for key, value in typed.items() if "when" not in typed.values()}
        ):
            with pytest.raises(PolicyExceeded):
                getattr(TABLE.dp, verb)(
                    **wide, policy=file, budget=dp.Budget(epsilon=1.0), epsilon=0.1
                )


def test_the_accessors_take_a_policy(file, tmp_path):
    budget = {"budget": dp.Budget(epsilon=1.0), "policy": file}
    assert TABLE.to_pandas().dp(**budget).sum("spend").sensitivity["spend"].l1 == 400
    assert TABLE.dp.sum("spend", epsilon=0.1, **budget).table.columns == ["spend"]
    (tmp_path / "one.toml").write_text('unit = "user"\nmax_rows = 2\n[bounds]\nspend = [0, 10]')
    typed = {"unit": TABLE["user"], "policy": tmp_path / "one.toml"}
    assert TABLE["spend"].dp(**typed).sum().sensitivity["spend"].l1 == 20
    for verb in verbs(SeriesAccessor):
        assert "options" in arguments(getattr(SeriesAccessor, verb))
    with pytest.raises(PolicyExceeded):
        TABLE["spend"].dp.sum(bounds=(0, 11), budget=budget["budget"], epsilon=0.1, **typed)


@pytest.mark.parametrize(
    "said",
    [
        {"max_rows": 5},
        {"max_groups": 3},
        {"max_rows_per_group": 3},
        {"min_units": 4},
        {"bounds": {"spend": (0, 101)}},
        {"bounds": {"day": (DAYS[0], DAYS[3])}},
        {"keys": {"city": ["Bonn", "Ulm"]}},
        {"unit": "city"},
        {"unit": ("user", "city")},
        {"unit": dp.Rows(1)},
        {"neighbors": "replace"},
    ],
    ids=str,
)
def test_protect_refuses_what_is_wider(said, file):
    with pytest.raises(PolicyExceeded, match=r"visits\.toml"):
        under(file, **said)


def test_the_file_may_say_what_people_are_called(tmp_path):
    file = written(tmp_path, f'people = "visitors"\n{FILE}')
    assert (
        step_of(under(file)).table.people
        == step_of(under(file, people="visitors")).table.people
        == "visitors"
    )
    with pytest.raises(PolicyExceeded, match=r"people= is not that of visits\.toml"):
        under(file, people="patients")


def test_what_is_stricter_is_taken(file):
    frame = under(
        file,
        unit=["user"],
        neighbors="add-remove",
        max_rows=3,
        min_units=9,
        bounds={"spend": (0, 10)},
    )
    assert frame.sum("spend").sensitivity["spend"].l1 == 30
    # the file allows this
    assert frame.sum("spend", bounds=(0, 100), max_rows=4).sensitivity["spend"].l1 == 400
    assert frame.sum("spend", bounds=(0, 5), max_rows=1).sensitivity["spend"].l1 == 5
    assert step_of(frame).table.min_units == 9
    assert question_of(
        under(file, keys={"city": ["Kiel"]}).group_by("city").count()
    ).keys.levels == (("Kiel",),)
    with pytest.raises(PolicyExceeded):
        frame.sum("spend", max_rows=5)


def test_a_frame_under_a_policy_is_not_protected_again(file):
    for policy in (None, file):
        with pytest.raises(DpFrameError, match="protected already"):
            dp.protect(under(file), policy=policy)


def test_a_price_above_the_cap_of_one_release_spends_nothing(file):
    frame = under(file)
    queries = [
        lambda **p: frame.count().release(**p),
        lambda **p: frame.marginals(["city", "sex"]).release(**p, delta=1e-9),
        lambda **p: frame.hierarchy(["city"], ["Bonn"]).release(**p),
        lambda **p: frame.synthesize(["city"], rows=5).release(**p, delta=1e-9),
        lambda **p: frame.cov(["spend", "hours"]).release(**p),
        lambda **p: frame.group_by("city").count().tune({"max_rows": [1, 2]}, **p, at=1.0),
        lambda **p: frame.partition("city", ["Bonn"])["Bonn"].count().release(**p),
        lambda **p: frame.budget.plan([frame.count(), frame.count_units()], **p).release(),
        lambda **p: frame.budget.series("s", every="1d", horizon=3, unit_periods=3, **p).add(
            frame.filter(dp.col("day") == DAYS[0]).count(), "2026-01-01"
        ),
    ]
    for ask in queries:
        before = frame.budget.spent
        with pytest.raises(
            PolicyExceeded, match=r"visits.toml allows ε = 2, δ = 1e-06 for one release"
        ):
            ask(epsilon=2.1)
        assert frame.budget.spent == before
        ask(epsilon=0.1)
    with pytest.raises(PolicyExceeded):
        frame.count().release(epsilon=0.1, delta=1e-5, noise="gaussian")
    ledgers = dp.protect(TABLE, policy=file, budget=dp.Budget(rho=5.0, delta=1e-3)).count()
    ledgers.release(rho=0.01)
    with pytest.raises(PolicyExceeded, match="which is ε ="):
        ledgers.release(rho=0.5)


# Ways around

WILD = 50  # rows of one unit, each beyond every bound and in a city that is not listed


def wild(unit):
    rows = {
        "user": [unit] * WILD,
        "spend": [1e6] * WILD,
        "hours": [10**6] * WILD,
        "sex": ["f"] * WILD,
    }
    rows |= {"city": ["Bonn", "Ulm"] * (WILD // 2), "day": [dt.date(2099, 1, 1)] * WILD}
    return pl.DataFrame(rows).select(TABLE.columns)


ROUTES = {
    "as it is": lambda f: f.with_columns(x=dp.col("spend")),
    "rename": lambda f: f.rename({"spend": "x", "city": "town"}),
    "rename over": lambda f: (
        f.drop("hours").rename({"spend": "hours"}).with_columns(x=dp.col("hours"))
    ),
    "cast there and back": lambda f: (
        f.cast("hours", "string").cast("hours", "int64").rename({"hours": "x"})
    ),
    "cast": lambda f: f.cast("hours", "float64").rename({"hours": "x"}),
    "rewritten over": lambda f: f.with_columns(spend=dp.col("spend") + 0).rename({"spend": "x"}),
    "clip after": lambda f: (
        f.clip("spend", lower=0).clip("spend", upper=10**9).rename({"spend": "x"})
    ),
    "fill_null": lambda f: f.fill_null("spend", 7).fill_null("city", "Ulm").rename({"spend": "x"}),
    "when": lambda f: f.with_columns(
        x=dp.when(~(dp.col("spend") <= 100)).then(10**6).otherwise(dp.col("spend"))
    ),
    "filter": lambda f: f.filter(dp.col("spend") <= 100).rename({"spend": "x"}),
    "drop_nulls": lambda f: f.drop_nulls("spend").rename({"spend": "x"}),
    "select": lambda f: f.select("user", "spend", "sex").rename({"spend": "x"}),
    "bound": lambda f: f.bound(limits=dp.Auto()).bound(max_rows=4).rename({"spend": "x"}),
    "join public": lambda f: f.join({"sex": ["f", "f", "m"], "b": [1, 2, 3]}, on="sex").rename(
        {"spend": "x"}
    ),
    "join protected": lambda f: f.select("user", "city").join(
        f.select("user", "spend").rename({"spend": "x"}), on="user"
    ),
    "join another": lambda f: (
        f.select("user", "city")
        .join(another(f).select("user", "spend"), on="user")
        .rename({"spend": "x"})
    ),
    "join to another": lambda f: (
        another(f).select("user").join(f, on="user").rename({"spend": "x"})
    ),
    "concat": lambda f: dp.concat([f, f.filter(dp.col("hours") > 1), f]).rename({"spend": "x"}),
    "partition": lambda f: f.partition("sex", ["f", "m"])["f"].rename({"spend": "x"}),
    "per_unit sum": lambda f: f.per_unit(x=dp.sum("spend")),
    "per_unit sum of units": lambda f: f.per_unit(x=dp.sum("spend", unit_bounds=(0, 400))),
    "per_unit count": lambda f: f.per_unit(n=dp.count()).with_columns(x=dp.col("n") * 100),
    "per_unit values": lambda f: f.per_unit(n=dp.count("spend")).with_columns(x=dp.col("n") * 100),
    "per_unit different": lambda f: f.per_unit(n=dp.n_unique("hours")).with_columns(
        x=dp.col("n") * 100
    ),
    "per_unit last": lambda f: f.per_unit(x=dp.last("spend", by="day")),
    "per_unit max": lambda f: f.per_unit(x=dp.max("spend")),
    "cut": lambda f: (
        f.cut("spend", [0, 100, 10**9], labels=["in", "out"], include_lowest=True, into="c")
        .filter(dp.col("c") == "out")
        .rename({"spend": "x"})
    ),
}


def another(frame):
    """Another table of the same people, of which no file says anything."""
    return dp.protect(pl.concat([TABLE, wild(9)]), unit="user", budget=frame.budget)


def totals(query):
    """The exact totals of a question about its own tables (column unit)."""
    question = question_of(query)
    found = engine.totals(question, 0)
    return {
        name: sum(int(value) for value in values) * allotment.total.unit
        for allotment, values in zip(question.read, found.values, strict=True)
        for name in allotment.names
    }


# The table of which no file says anything keeps its own values: only its rows are limited by the
# join.
OPEN = {"join another"}


@pytest.mark.parametrize("route", ROUTES)
def test_no_way_leads_around_a_policy(route, file, monkeypatch):
    """One unit moves counts by at most 4 rows, and sums by 4 times 100,
    whatever is typed after the file.

    `when` writes a number of the analyst's: the rows beyond the bounds, which it would tell, are
    not there any more.
    """
    sums = []
    for table in (TABLE, pl.concat([TABLE, wild(9)])):
        frame = ROUTES[route](under(file, table))
        if step_of(frame).table.limits.auto is not None:
            return
        try:
            sums.append(totals(frame.agg(n=dp.count(), x=dp.sum("x", bounds=(0, 10**9)))))
        except PolicyExceeded:  # a column that the file still knows
            sums.append(totals(frame.agg(n=dp.count(), x=dp.sum("x"))))
    without, with_unit = sums
    assert abs(with_unit["n"] - without["n"]) <= 4
    most = 4 * (10**9 if route in OPEN else 100)
    assert 0 <= with_unit["x"] - without["x"] <= most + 1e-3, (route, with_unit, without)


@pytest.mark.parametrize("route", [route for route in ROUTES if "per_unit" not in route])
def test_a_unit_of_a_policy_keeps_its_limits_on_every_way(route, file):
    frame = ROUTES[route](under(file))
    assert [lock.file for lock in step_of(frame).table.locks] == ["visits.toml"]
    limits = step_of(frame).table.limits
    assert (limits.max_rows, limits.max_groups, limits.max_rows_per_group) <= (4, 2, 2)
    assert step_of(frame).table.min_units == 5
    for name, wide in (("max_rows", 5), ("max_groups", 3), ("max_rows_per_group", 3)):
        with pytest.raises(PolicyExceeded):
            frame.group_by("x", **{name: wide})


def test_a_table_without_a_policy_is_moved_farther(file):
    """The control: without the file the same unit moves the same sums by a million for each row."""
    plain = [
        totals(
            dp.protect(table, unit="user").agg(
                n=dp.count(), x=dp.sum("spend", bounds=(0, 10**9)), max_rows=WILD
            )
        )
        for table in (TABLE, pl.concat([TABLE, wild(9)]))
    ]
    assert plain[1]["x"] - plain[0]["x"] >= 10**6


def test_keys_that_are_not_listed_are_missing_on_every_way(file):
    table = pl.concat([TABLE, wild(9)])
    frame = under(file, table)
    for way in (
        frame.rename({"city": "c"}),
        frame.with_columns(c=dp.col("city")),
        frame.cast("city", "string").rename({"city": "c"}),
        frame.with_columns(c=dp.col("city").str.to_lowercase().str.to_uppercase()),
        dp.concat([frame, frame]).with_columns(c=dp.col("city").str.slice(0, 9)),
    ):
        assert totals(way.filter(dp.col("c").str.starts_with("U")).count()) == {"count": 0}
        assert totals(way.filter(dp.col("c").is_null()).count())["count"] > 0
    found = under(file, table).with_columns(c=dp.col("city") + "!").group_by("c").count()
    assert set(engine.totals(question_of(found), 0).keys["c"]) <= {"Bonn!", "Kiel!"}


def test_limits_that_are_chosen_stay_within_the_file(file):
    frame = under(file)
    for query in (
        frame.count(limits=dp.Auto()),
        frame.bound(limits=dp.Auto()).count(),
        frame.group_by("city", limits=dp.Auto()).count(),
    ):
        question = question_of(query)
        for chosen in itertools.product([1, 50], [1, 9], [1, 9]):
            limits = question.with_limits(type(question.limits)(*chosen)).limits
            assert limits.max_rows <= 4
            assert (limits.max_groups or 1) <= 2
            assert (limits.max_rows_per_group or 1) <= 2


def test_a_total_of_a_unit_needs_bounds_where_rows_are_locked(file):
    table = TABLE.with_columns(other=pl.col("spend"))
    frame = under(file, table)
    with pytest.raises(MissingBounds, match="needs the bounds of each"):
        frame.per_unit(t=dp.sum("other"))
    with pytest.raises(PolicyExceeded, match="beside bounds= of each row"):
        frame.sum("other", unit_bounds=(0, 10))
    assert frame.per_unit(t=dp.sum("other", bounds=(0, 7))).sum("t").sensitivity["t"].l1 == 28


def test_two_files_hold_together(file, tmp_path):
    other = tmp_path / "people.toml"
    other.write_text('unit = "user"\nmax_rows = 3\nmin_units = 9\n[bounds]\nborn = [1900, 2020]')
    visits = under(file)
    people = dp.protect(
        pl.DataFrame({"user": [1, 2], "born": [1990, 9999]}),
        policy=dp.Policy(other),
        budget=visits.budget,
    )
    joined = visits.join(people, on="user")
    assert [lock.file for lock in step_of(joined).table.locks] == ["visits.toml", "people.toml"]
    assert joined.count().sensitivity["count"].l1 == 3
    assert step_of(joined).table.min_units == 9
    for ask in (lambda: joined.count(max_rows=4), lambda: joined.max("born", bounds=(0, 3000))):
        with pytest.raises(PolicyExceeded, match=r"people\.toml"):
            ask()
    out = joined.sum("born").release(0.1)
    assert [policy["file"] for policy in out.report().to_dict()["policies"]] == [
        "visits.toml",
        "people.toml",
    ]


ENGINES = {
    "pandas": lambda: TABLE.to_pandas(),
    "Arrow": lambda: TABLE.to_arrow(),
    "lazy": lambda: TABLE.lazy(),
    "DuckDB": lambda: duckdb.connect().from_arrow(TABLE.to_arrow()),
    "Ibis": lambda: ibis.memtable(TABLE.to_arrow()),
    "categories": lambda: TABLE.to_pandas().astype({"city": "category"}),
    "enum": lambda: TABLE.with_columns(pl.col("city").cast(pl.Enum(["Ulm", "Kiel", "Bonn"]))),
    "datetimes": lambda: TABLE.with_columns(pl.col("day").cast(pl.Datetime("ms"))),
    "small numbers": lambda: TABLE.with_columns(
        pl.col("hours").cast(pl.Int16), pl.col("spend").cast(pl.Float32)
    ),
}


@pytest.mark.parametrize("name", ENGINES)
def test_cells_are_the_same_in_every_type(name, file):
    frame = under(file, ENGINES[name]())
    query = frame.group_by("city").agg(n=dp.count(), s=dp.sum("spend"), h=dp.sum("hours"))
    plain = under(file).group_by("city").agg(n=dp.count(), s=dp.sum("spend"), h=dp.sum("hours"))
    assert {k: float(v) for k, v in totals(query).items()} == {
        k: float(v) for k, v in totals(plain).items()
    }


def test_a_unit_without_a_column_has_no_limits_to_lock(tmp_path):
    text = "unit = {rows = 2}\n[bounds]\nspend = [0, 9]"
    frame = under(written(tmp_path, text))
    assert frame.sum("spend").sensitivity["spend"].l1 == 18
    with pytest.raises(PolicyExceeded):
        under(written(tmp_path, text), unit=dp.Rows(1))
    with pytest.raises(UnsupportedOperation, match="without an identifier column"):
        under(written(tmp_path, f"max_rows = 3\n{text}"))


# Caps that the budget holds

CAPPED = (
    FILE + "spender = {epsilon = 0.5}\nday = {epsilon = 0.8}\nmonth = {epsilon = 5, delta = 1e-5}\n"
)


def books(tmp_path):
    yield dp.Budget(epsilon=9.0, delta=1e-4), lambda: None
    ledger = dp.Ledger(tmp_path / "ledger.sqlite")
    yield ledger.budget("b", epsilon=9.0, delta=1e-4), ledger.verify


def test_the_budget_takes_over_the_caps_of_a_file(tmp_path):
    file = written(tmp_path, CAPPED)
    for budget, verified in books(tmp_path):
        count = dp.protect(TABLE, policy=file, budget=budget).count()
        with pytest.raises(DpFrameError, match="spender='ana'"):
            count.release(0.1)
        count.release(0.3, spender="ana")
        with pytest.raises(CapExceeded, match=r"'ana' is .*ε = 0\.5"):
            count.release(0.3, spender="ana")
        count.release(0.3, spender="ben")
        with pytest.raises(CapExceeded, match=r"cap of a day is .*ε = 0\.8"):
            count.release(0.3, spender="cyd")
        assert {cap.cap for cap in budget.caps} == {"spender", "day", "month"}
        # the caps stay with the budget: a table that is protected without the file does not get
        # around them
        with pytest.raises(CapExceeded):
            dp.protect(TABLE, unit="user", budget=budget).count(max_rows=2).release(
                0.3, spender="dan"
            )
        assert sum(entry.kind == "caps" for entry in budget.entries()) == 1
        (tmp_path / "wider.toml").write_text(CAPPED.replace("0.8", "8"))
        with pytest.raises(CapExceeded):  # another file widens nothing
            dp.protect(TABLE, policy=tmp_path / "wider.toml", budget=budget).count().release(
                0.3, spender="eve"
            )
        verified()


def test_stricter_caps_of_a_budget_stay(tmp_path):
    file = written(tmp_path, CAPPED)
    budget = dp.Budget(epsilon=9.0, delta=1e-4, caps={"day": 0.2, "week": 3})
    count = dp.protect(TABLE, policy=file, budget=budget).count()
    with pytest.raises(CapExceeded, match=r"cap of a day is .*ε = 0\.2"):
        count.release(0.3, spender="ana")
    count.release(0.2, spender="ana")
    assert {cap.cap: cap.most for cap in budget.caps}["week"] == "ε = 3"


def test_caps_in_epsilon_are_refused_by_a_budget_in_rho(tmp_path):
    budget = dp.Budget(rho=1.0, delta=1e-4, caps={"day": {"rho": 0.9}})
    with pytest.raises(UnsupportedOperation, match="this budget counts in ρ"):
        dp.protect(TABLE, policy=written(tmp_path, CAPPED), budget=budget).count().release(
            rho=0.001, spender="ana"
        )


# What a ledger, a report and a name keep of a file


def test_the_hash_is_in_every_report_and_entry(file, tmp_path):
    said = hashlib.sha256(file.read_bytes()).hexdigest()
    assert dp.Policy(file).sha256 == said
    ledger = dp.Ledger(tmp_path / "ledger.sqlite")
    frame = dp.protect(
        TABLE, policy=file, budget=ledger.budget("b", epsilon=9.0, delta=1e-4), data="2026-01"
    )
    query = frame.group_by("city").agg(n=dp.count(), s=dp.sum("spend"))
    assert said in str(query.explain())
    assert (
        "declared by visits.toml: max_rows, max_groups, max_rows_per_group, keys of 'city', "
        "bounds of 'spend'" in str(query.explain())
    )
    out = query.release(0.1, name="n")
    assert said in str(out.report())
    assert out.report().to_dict()["policies"][0]["sha256"] == said
    assert "spend: the till takes no more" in out.report().to_html()
    frame.budget.plan([query, frame.count()], epsilon=0.1).release()
    query.tune({"max_rows": [1, 2]}, epsilon=0.1, at=1.0)
    frame.partition("city", ["Bonn"])["Bonn"].count().release(0.1)
    series = frame.budget.series("s", every="1d", horizon=3, unit_periods=3, epsilon=0.1)
    series.add(frame.filter(dp.col("day") == DAYS[0]).count(), "2026-01-01")
    charges = [entry for entry in frame.budget.entries() if entry.kind == "charge"]
    assert len(charges) == 6
    for entry in charges:
        assert [policy["sha256"] for policy in entry.body["policies"]] == [said]
    assert all(said in line.policies[0] for line in frame.budget.history())
    again = dp.protect(TABLE, policy=file, budget=frame.budget, data="2026-01").group_by("city")
    assert (
        again.agg(n=dp.count(), s=dp.sum("spend")).release(0.1, name="n").report().items["stored"]
    )
    file.write_text(FILE + "# another file\n")
    with pytest.raises(DpFrameError, match="another release"):
        dp.protect(TABLE, policy=file, budget=frame.budget, data="2026-01").group_by("city").agg(
            n=dp.count(), s=dp.sum("spend")
        ).release(0.1, name="n")
    ledger.verify()
