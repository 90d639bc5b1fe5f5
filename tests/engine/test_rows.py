"""Intervals against pandas and numpy, cell by cell."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from strategies import answer, bring

VALUES = [
    0.0,
    1.0,
    2.5,
    5.0,
    10.0,
    -1.0,
    11.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    4.999999999999999,
    5.000000000000001,
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "edges", [[0, 10], [0, 1, 2.5, 5, 10], [-1.5, -0.0, 5], list(range(-200, 201))]
)
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("lowest", [True, False])
def test_cut_is_that_of_pandas(kind, edges, right, lowest):
    rng = random.Random(1)
    values = [
        *VALUES,
        *(rng.uniform(-3, 12) for _ in range(30)),
        *(float(rng.randint(-3, 12)) for _ in range(30)),
    ]
    labels = [f"bin {i}" for i in range(len(edges) - 1)]
    frame = bring(pl.DataFrame({"u": range(len(values)), "x": values}), kind)
    cut = dp.protect(frame, unit="u").cut("x", edges, labels, right=right, include_lowest=lowest)
    (counted,) = answer(cut.group_by("x", max_groups=1).count_units())
    if right:
        theirs = pd.cut(pd.Series(values), edges, labels=labels, right=True, include_lowest=lowest)
        # pandas moves the lowest edge by a thousandth; a value in between is not in our interval,
        # and none is here.
    else:
        theirs = pd.cut(pd.Series(values), edges, labels=labels, right=False)
        if lowest:
            theirs[pd.Series(values) == edges[-1]] = labels[-1]
    expected = theirs.value_counts()
    assert counted == {(label,): int(expected[label]) for label in labels}


@pytest.mark.parametrize("edges", [[0, 10], [0, 1, 2.5, 5, 10], [-1.5, -0.0, 5]])
def test_histogram_is_that_of_numpy(kind, edges):
    values = VALUES * 2
    frame = bring(pl.DataFrame({"u": range(len(values)), "x": values}), kind)
    (counted,) = answer(dp.protect(frame, unit="u").histogram("x", bins=edges, max_rows=1))
    finite = [v for v in values if np.isfinite(v)]
    assert list(counted.values()) == np.histogram(finite, edges)[0].tolist()


def test_crosstab_is_that_of_pandas_where_no_limit_binds(kind):
    rng = random.Random(2)
    rows = [(rng.randrange(9), rng.choice("abc"), rng.choice(["x", "y"])) for _ in range(200)]
    frame = pl.DataFrame(rows, {"u": pl.Int64, "a": pl.String, "b": pl.String}, orient="row")
    query = dp.protect(bring(frame, kind), unit="u").crosstab(
        "a", "b", keys={"a": list("abc"), "b": ["x", "y"]}, max_rows=200
    )
    theirs = pd.crosstab(frame.to_pandas()["a"], frame.to_pandas()["b"])
    assert answer(query)[0] == {(a, b): int(theirs.loc[a, b]) * 2**20 for a in "abc" for b in "xy"}
