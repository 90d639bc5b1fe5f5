"""What becomes of null among keys and values is said before a
release, in its report, and is true.
"""

import numpy as np
import polars as pl
import pytest

import dpframe as dp

CITIES = ["Bonn", "Kiel"]
ROWS = pl.DataFrame(
    {
        "u": range(12),
        "city": ["Bonn", "Kiel", None] * 4,
        "sex": ["f", None] * 6,
        "x": [1.0, float("nan"), 3.0] * 4,
    }
)
LEAVES = pl.DataFrame({"sex": ["f", "f"], "city": CITIES})
ONE = {"max_groups": 1, "max_rows_per_group": 1}

# By name: a question whose keys leave null out, and the columns of these keys.
LEFT_OUT = {
    "found": (lambda f: f.group_by("city", **ONE).count(), ["city"]),
    "two found": (
        lambda f: f.group_by("city", "sex", **ONE).mean("x", bounds=(0, 9)),
        ["city", "sex"],
    ),
    "found numbers": (lambda f: f.group_by("x", **ONE).count(), ["x"]),
    "other": (lambda f: f.group_by("city", other="(other)", **ONE).count(), ["city"]),
    "keys alone": (lambda f: f.group_by("city", max_groups=1).keys(), ["city"]),
    "keys in rounds": (lambda f: f.group_by("city").keys(), ["city"]),
    "most frequent": (lambda f: f.top_k("city", 2, max_rows=1), ["city"]),
    "bars that are found": (lambda f: f.histogram("city", max_rows=1), ["city"]),
    "cells that are found": (lambda f: f.crosstab("city", "sex", max_rows=1), ["city", "sex"]),
    "large groups": (lambda f: f.group_by("city", min_units=3, **ONE).count(), ["city"]),
    "listed": (lambda f: f.group_by("city", keys=CITIES, **ONE).count(), ["city"]),
    "own limits": (
        lambda f: f.group_by("city", **ONE).agg(n=dp.count(), m=dp.count("x", max_groups=1)),
        ["city"],
    ),
    "bars": (lambda f: f.histogram("city", keys=CITIES, max_rows=1), ["city"]),
    "crosstab": (
        lambda f: f.crosstab("city", "sex", keys={"city": CITIES, "sex": ["f"]}, max_rows=1),
        ["city", "sex"],
    ),
    "marginals": (
        lambda f: f.marginals(
            ["city", "sex"], "2-way", keys={"city": CITIES, "sex": ["f"]}, max_rows=1
        ),
        ["city", "sex"],
    ),
    "hierarchy": (lambda f: f.hierarchy(["sex", "city"], keys=LEAVES, max_rows=1), ["sex", "city"]),
    "synthetic": (
        lambda f: f.synthesize(
            ["city", "x"], keys={"city": CITIES}, bounds={"x": (0, 9)}, max_rows=1
        ),
        ["city", "x"],
    ),
}


def protected(rows=ROWS):
    return dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1000, delta=1e-3))


@pytest.mark.parametrize("name", LEFT_OUT)
def test_rows_without_a_key_are_said_to_be_left_out(name):
    ask, columns = LEFT_OUT[name]
    said = f"in {' or '.join(map(repr, columns))} do not count."
    assert said in ask(protected()).explain().keys
    assert "do not count" not in ask(protected().drop_nulls(columns)).explain().keys
    assert ("null or NaN" in ask(protected()).explain().keys) == ("x" in columns)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_report_says_it_too(name):
    ask, columns = LEFT_OUT[name]
    out = ask(protected()).release(epsilon=50, delta=1e-6)
    assert f"in {' or '.join(map(repr, columns))} do not count." in str(out.report())


@pytest.mark.parametrize(
    "name", [n for n in LEFT_OUT if n not in ("keys in rounds", "hierarchy", "synthetic")]
)
def test_it_is_true(name):
    """The totals of a table are those of the table without the rows that are said not to count."""
    ask, columns = LEFT_OUT[name]
    whole = ROWS.drop_nulls(columns).filter(pl.col("x").is_not_nan() | pl.lit("x" not in columns))
    totals = [ask(protected()).exact_totals(rows) for rows in (ROWS, whole)]
    assert totals[0].keys() == totals[1].keys()
    for measure, total in totals[0].items():
        assert (
            total == totals[1][measure]
            if not isinstance(total, np.ndarray)
            else (total == totals[1][measure]).all()
        )


def test_rows_outside_of_bins_are_said_to_be_left_out():
    rows = ROWS.with_columns(x=pl.col("u") * 1.0)
    for query in (
        protected(rows).histogram("x", bins=[0, 2, 5], max_rows=1),
        protected(rows).drop_nulls().cut("x", [0, 2, 5]).group_by("x", **ONE).count(),
    ):
        assert "Rows without a value in the bins of 'x' do not count." in query.explain().keys
    (counted,) = (
        protected(rows).histogram("x", bins=[0, 2, 5], max_rows=1).exact_totals(rows).values()
    )
    assert sum(counted.values()) == 6


def test_listed_null_counts():
    for keys in ([*CITIES, None], {"city": [*CITIES, None]}):
        query = protected().group_by("city", keys=keys, **ONE).count()
        assert "do not count" not in query.explain().keys
        assert query.release(epsilon=500).table["count"].to_list() == pytest.approx(
            [4, 4, 4], abs=1
        )


def test_null_is_no_value():
    """Distinct values, the most frequent listed ones, and descriptions."""
    frame = protected()
    assert "null is none of them" in str(frame.n_unique("city", max_rows=1).explain())
    assert "null is none of them" not in str(
        frame.drop_nulls("city").n_unique("city", max_rows=1).explain()
    )
    for query in (
        frame.mode("city", keys=CITIES, max_rows=1),
        frame.top_k("city", 2, keys=CITIES, max_rows=1),
    ):
        assert "listed values, null is none" in str(query.explain())
    assert "null is none" not in str(frame.mode("city", keys=[*CITIES, None], max_rows=1).explain())
    description = frame.describe(bounds={"x": (0, 9)}, max_rows=1)
    assert (
        "Null and NaN count as missing, and are in no other number." in description.explain().keys
    )
    table = description.release(epsilon=900).table
    assert table.filter(pl.col("statistic") == "missing")["x"].item() == pytest.approx(4, abs=1)
