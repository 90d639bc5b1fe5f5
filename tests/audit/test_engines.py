"""Engines against each other: random frames with special values, the same integers from each."""

from __future__ import annotations

import random

import batches
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError, EngineError
from strategies import SCHEMA, as_frame, bring, random_plan, random_question, random_rows

EACH = 100  # frames that are asked the same question at once
EVERY = ("polars", "lazy", "pyarrow", "pandas")


def frames(rng):
    """A hundred random frames in one, told apart by a column "t"."""
    parts = [as_frame(random_rows(rng, units=3, most=4)).select(pl.lit(t).alias("t"), pl.all()) for t in range(EACH)]
    return pl.concat(parts).cast({"t": pl.Int64, "level": pl.String})  # only Polars has Enums, which bring their keys


def answers(rows, kind, plan, question, unit, salt):
    """The exact totals from one engine; None where the question is refused, "error" where the engine cannot run it."""
    try:
        query = question(plan(dp.protect(bring(rows, kind), unit=unit)))
    except DpFrameError:
        return None
    try:
        return batches.totals(query._ask, EACH, salt)
    except EngineError:
        return "error"


def same(one, other):
    if other is None or isinstance(other, str):
        return False
    return one[1] == other[1] and all(np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True))


def hold(seed, number):
    """Ask until so many frames were compared on every engine."""
    rng, compared, drawn = random.Random(seed), 0, 0
    while compared < number:
        drawn += 1
        assert drawn < 6 * number // EACH + 20, "nearly every question is refused"
        rows, plan = frames(rng), random_plan(rng)
        unit = rng.choice([("t", "u"), ("t", "u", "w"), dp.Rows(2)])
        question, salt = random_question(rng, limited=not isinstance(unit, dp.Rows)), rng.getrandbits(64)
        first = answers(rows, EVERY[0], plan, question, unit, salt)
        if first is None or first == "error":
            continue
        for kind in EVERY[1:]:
            assert same(first, answers(rows, kind, plan, question, unit, salt)), (kind, seed, drawn)
        compared += EACH
    return compared


def test_engines_agree_on_5000_random_frames():
    assert hold("engines", 5000) == 5000


@pytest.mark.long
def test_engines_agree_on_50000_random_frames():
    hold("engines at length", 50_000)


def test_an_engine_that_differs_is_noticed(monkeypatch):
    rng = random.Random("control")
    rows = frames(rng)
    ask = lambda f: f.agg(s=dp.sum("x", bounds=(-3, 10)), max_rows=3)  # noqa: E731
    right = answers(rows, "polars", lambda f: f, ask, ("t", "u"), 1)
    other = rows.with_columns(pl.col("x") + 2**-20)
    assert set(SCHEMA) <= set(rows.columns)
    assert not same(right, answers(other, "pyarrow", lambda f: f, ask, ("t", "u"), 1))
