"""Exact answers, golden outputs, one pipeline on several engines, and the fixtures of pytest."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors, testing

REAL = pl.DataFrame(
    {"user": [1], "city": ["Bonn"], "spend": [0.5], "age": [3], "day": [dt.date(2026, 1, 1)]}
)
MADE_UP = pl.DataFrame(
    {
        "user": [1, 2, 3, 4, 5, 5],
        "city": ["Bonn", "Bonn", "Bonn", "Kiel", "Kiel", "Bonn"],
        "spend": [10.0, 20.0, 90.0, 40.0, 60.0, 20.0],
        "age": [30, 41, 52, 63, 74, 74],
        "day": [dt.date(2026, 1, 1 + i) for i in range(6)],
    }
)


@pytest.fixture
def people():
    budget = dp.Budget(epsilon=1.0, delta=1e-6)
    frame = dp.protect(REAL, unit="user", budget=budget, max_rows=2, max_groups=2)
    yield frame
    assert budget.history() == []  # nothing is charged to it


def listed(frame):
    return frame.group_by("city", keys=["Bonn", "Kiel"])


MEDIANS = [["Bonn", 41.0], ["Kiel", 63.0]]
QUESTIONS = {
    "count": (lambda f: f.count(), [[6]]),
    "units": (lambda f: f.n_unique("user"), [[5]]),
    "sum": (lambda f: f.sum("spend", bounds=(0, 100)), [[240.0]]),
    "clipped": (lambda f: f.sum("spend", bounds=(0, 50)), [[190.0]]),
    "mean": (lambda f: f.mean("age", bounds=(0, 100)), [[334 / 6]]),
    "median": (lambda f: f.filter(dp.col("age") < 60).median("spend", bounds=(0, 100)), [[20.0]]),
    "counts": (lambda f: listed(f).count(), [["Bonn", 4], ["Kiel", 2]]),
    "medians": (
        lambda f: listed(f.filter(dp.col("user") < 5)).median("age", bounds=(0, 100)),
        MEDIANS,
    ),
    "found": (lambda f: f.group_by("city").count(), [["Bonn", 4], ["Kiel", 2]]),
    "filtered": (lambda f: f.filter(dp.col("age") > 50).count(), [[4]]),
    "top": (lambda f: f.top_k("city", k=1, keys=["Bonn", "Kiel", "Ulm"]), [[1, "Bonn"]]),
    "keys": (lambda f: f.group_by("city").keys(), [["Bonn"], ["Kiel"]]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_exact(people, name):
    ask, expected = QUESTIONS[name]
    for table in (MADE_UP, MADE_UP.to_pandas()):
        rows = testing.exact(ask(people), table).to_polars().rows()
        assert len(rows) == len(expected)
        for row, cells in zip(rows, expected, strict=True):
            texts, numbers = (
                [cell for cell in cells if isinstance(cell, str) is kind] for kind in (True, False)
            )
            assert [cell for cell in row if isinstance(cell, str)] == texts
            assert [cell for cell in row if not isinstance(cell, str)] == pytest.approx(
                numbers, abs=100 / 1023 if "median" in name else 1e-6
            )


def test_an_exact_answer_says_that_it_protects_nobody(people):
    assert "protects nobody" in testing.exact(people.count(), MADE_UP).report()


def test_an_exact_answer_is_under_a_policy_and_not_under_its_caps(tmp_path):
    """No price of a test is that of an answer on real rows:
    neither its release, nor its month, nor its spender.
    """
    cap = "{epsilon = 0.5, delta = 0}"
    caps = "".join(f"{name} = {cap}\n" for name in ("release", "spender", "month"))
    (tmp_path / "p.toml").write_text(f'unit = "user"\nmax_rows = 1\n[caps]\n{caps}')
    frame = dp.protect(
        REAL, policy=tmp_path / "p.toml", budget=dp.Budget(epsilon=1.0), data="people"
    )
    assert testing.exact(frame.filter(dp.col("age") > 0).count(), MADE_UP).value == 5
    with pytest.raises(errors.PolicyExceeded):
        frame.count().release(epsilon=0.6)


@pytest.mark.parametrize("name", ["counts", "sum", "medians", "found"])
def test_exact_agrees_with_the_totals(people, name):
    """On random tables: what `exact` says of counts and sums is what `exact_totals` says."""
    draw = np.random.default_rng(3)
    for _ in range(3):
        n = int(draw.integers(1, 30))
        table = pl.DataFrame(
            {
                "user": draw.permutation(n),
                "city": draw.choice(["Bonn", "Kiel", "Ulm"], n),
                "spend": draw.integers(-50, 150, n).astype(float),
                "age": draw.integers(0, 100, n),
                "day": [dt.date(2026, 1, 1)] * n,
            }
        )
        if name in ("counts", "found"):
            out = testing.exact(QUESTIONS[name][0](people), table).to_polars()
            counted = (
                table.group_by("city").len().filter(pl.col("city").is_in(out["city"].implode()))
            )
            assert {row for row in out.rows() if row[1]} == set(counted.rows())
            assert name == "counts" or out["city"].n_unique() == table["city"].n_unique()
        if name == "sum":
            total = testing.exact(QUESTIONS[name][0](people), table).value
            assert total == pytest.approx(table["spend"].clip(0, 100).sum(), abs=1e-5)
        if name == "medians":
            out = testing.exact(listed(people).median("age", bounds=(0, 100)), table).to_polars()
            for city, middle in out.rows():
                ages = table.filter(pl.col("city") == city)["age"].sort().to_list()
                if ages:
                    assert ages[(len(ages) - 1) // 2] - 0.1 <= middle <= ages[len(ages) // 2] + 0.1


def test_what_is_no_question_is_refused(people):
    with pytest.raises(errors.InvalidArgument, match="a question and a table"):
        testing.exact(people, MADE_UP)
    with pytest.raises(errors.DpFrameError):
        testing.exact(people.count(), "table.csv")


# One pipeline on several engines


def pipeline(table):
    frame = dp.protect(table, unit="user", budget=testing.budget(), max_rows=2, max_groups=2)
    return (
        listed(frame)
        .agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 100)))
        .release(epsilon=1.0)
    )


def test_a_pipeline_is_the_same_on_engines():
    engines = ["polars", "polars-lazy", "pandas", "pyarrow", "duckdb", "dask"]
    out = testing.assert_same_on(engines, pipeline, MADE_UP.drop("day"))
    assert out.table.shape == (2, 3)


def test_a_pipeline_that_differs_is_named():
    calls = []

    def other(table):
        calls.append(table)
        return pipeline(table.head(2) if len(calls) > 1 else table)

    with pytest.raises(AssertionError, match="polars and pandas give other tables"):
        testing.assert_same_on(["polars", "pandas"], other, MADE_UP.drop("day"))
    for engines in ("polars", [], ["oracle"]):
        with pytest.raises(errors.InvalidArgument, match="assert_same_on"):
            testing.assert_same_on(engines, pipeline, MADE_UP)


# Golden outputs, and pytest


def test_golden_outputs(tmp_path, monkeypatch, dp_noise):
    monkeypatch.delenv("DPFRAME_REWRITE", raising=False)
    out, path = pipeline(MADE_UP), tmp_path / "visits.csv"
    with pytest.raises(AssertionError, match="There is no"):
        testing.assert_golden(out, path)
    testing.assert_golden(out, path, rewrite=True)
    testing.assert_golden(out, path)
    with pytest.raises(AssertionError, match="line 2 was"):
        testing.assert_golden(pipeline(MADE_UP), path)  # the next noise
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:2]))
    with pytest.raises(AssertionError, match="has 2 lines, and the table 3"):
        testing.assert_golden(out, path)
    monkeypatch.setenv("DPFRAME_REWRITE", "1")
    testing.assert_golden(out, path)
    assert path.read_text().splitlines() == lines


def test_the_fixtures(dp_budget, dp_ledger, dp_noise):
    frame = dp.protect(
        MADE_UP, unit="user", budget=dp_ledger.budget("visits", epsilon=1), max_rows=2
    )
    drawn = dp_noise.drawn
    frame.count().release(epsilon=0.5)
    assert dp_noise.drawn > drawn
    assert dp_budget.limit.epsilon == 100
