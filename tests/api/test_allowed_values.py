"""Refusals that name what is allowed: each named value is taken, and each kind
of value that is taken is named.
"""

import contextlib
import datetime as dt
import re

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError
from dpframe.plan import Covers

TABLE = pl.DataFrame(
    {"u": [1, 2, 3], "g": ["a", "b", "c"], "v": [1.0, 2, 3], "t": [dt.datetime(2026, 1, 1)] * 3}
)
KEYS = {"g": ["a", "b", "c"], "v": [1.0, 2.0]}


def budget():
    return dp.Budget(epsilon=9.0, delta=1e-3)


def frame(**how):
    return dp.protect(TABLE, unit="u", budget=budget(), **how)


def crosstab(**how):
    return frame().crosstab("g", "v", keys=KEYS, max_rows=1, **how)


def series(every, **how):
    return budget().series("nights", every, horizon=9, epsilon=0.1, start="2026-01-01", **how)


CALLS = {
    "every": lambda v: series(v),
    "per": lambda v: budget().allocate(epsilon=0.1, name="bo", nights=3, per=v),
    "dt.truncate": lambda v: dp.col("t").dt.truncate(v),
    "dt.offset_by": lambda v: dp.col("t").dt.offset_by(v),
    "closed": lambda v: dp.col("v").is_between(0, 1, closed=v),
    "aggfunc": lambda v: crosstab(
        aggfunc=v, **({} if "count" in v else {"values": "v", "bounds": (0, 3)})
    ),
    "normalize": lambda v: crosstab(normalize=v),
    "margins": lambda v: crosstab(margins=v),
    "workload": lambda v: frame().marginals(["g", "v"], v, keys=KEYS, max_rows=1),
    "noise": lambda v: frame().count(max_rows=1).accuracy(epsilon=1.0, delta=1e-6, noise=v),
    "covers": lambda v: frame().mean("v", bounds=(0, 3), max_rows=1).release(epsilon=1.0, covers=v),
    "on_pending": lambda v: crosstab().release(epsilon=0.1, on_pending=v),
    "accountant": lambda v: dp.Budget(
        **({"rho": 1.0} if v == "zcdp" else {"epsilon": 1.0, "delta": 1e-6}), accountant=v
    ),
    "neighbors": lambda v: frame(neighbors=v),
    "cast": lambda v: frame().cast("g", v),
    "how": lambda v: frame().join(pl.DataFrame({"g": ["a"]}), on="g", how=v),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_every_named_value_is_taken(name):
    call = CALLS[name]
    with pytest.raises(DpFrameError) as refused:
        call("nonsense")
    said = str(refused.value)
    text = said.replace("nonsense", "")
    named = re.findall(r"A type is one of (.*), not", text)
    named = (
        named[0].split(", ")
        if named
        else [value for value in re.findall(r"'([\w. +-]+)'", text) if value not in "abv"]
    )
    assert named
    for value in named:
        with contextlib.suppress(DpFrameError):  # for another reason
            call(value)
            continue
        with pytest.raises(DpFrameError) as another:
            call(value)
        assert str(another.value) != said.replace("nonsense", value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("every", ["hours", "days", "weeks", "months", "1mo"]),
        ("per", ["hours", "days", "weeks", "months", "1mo"]),
        (
            "dt.truncate",
            ["weeks", "months", "quarters", "years", "days", "hours", "minutes", "seconds"],
        ),
        ("covers", [covers.value for covers in Covers]),
        ("noise", ["auto", "laplace", "gaussian", "elliptic", "k-norm"]),
        ("accountant", ["basic", "zcdp", "pld", "gdp"]),
        ("neighbors", ["add-remove", "replace"]),
        ("aggfunc", ["count", "count_units", "sum", "mean", "median", "dp.quantile"]),
        ("normalize", ["index", "columns", "all", "False"]),
    ],
)
def test_every_kind_of_value_that_is_taken_is_named(name, words):
    with pytest.raises(DpFrameError) as refused:
        CALLS[name]("nonsense")
    assert [word for word in words if word not in str(refused.value)] == []
