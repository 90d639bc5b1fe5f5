"""Engines against each other: random frames with special values, the same integers from each."""

from __future__ import annotations

import functools
import random

import batches
import narwhals as nw
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.engine.backends import backend_of
from dpframe.errors import DpFrameError, EngineError
from inside import question_of
from strategies import SCHEMA, as_frame, bring, hashed_by, random_plan, random_question, random_rows

EACH = 100  # frames that are asked the same question at once
EVERY = ("polars", "lazy", "pyarrow", "pandas")
ELSEWHERE = ("duckdb", "ibis")  # where they live; Spark is compared in tests/engine


def frames(rng):
    """A hundred random frames in one, told apart by a column "t"."""
    parts = [
        as_frame(random_rows(rng, units=3, most=4)).select(pl.lit(t).alias("t"), pl.all())
        for t in range(EACH)
    ]
    # only Polars has Enums, which bring their keys
    return pl.concat(parts).cast({"t": pl.Int64, "level": pl.String})


@functools.cache
def connection(kind):
    """A database in memory, if there is one."""
    return (
        pytest.importorskip("duckdb").connect()
        if kind == "duckdb"
        else pytest.importorskip("ibis").duckdb.connect()
    )


def brought(rows, kind):
    """The frame as a user of one engine holds it."""
    if kind not in ELSEWHERE:
        return bring(rows, kind)
    held = connection(kind)
    database = held if kind == "duckdb" else held.con
    database.register("brought", rows.to_arrow())
    database.execute("CREATE OR REPLACE TABLE held AS SELECT * FROM brought")
    return held.table("held")


def poor_hash(frame, columns, salt, into):
    """The same on every engine, which the engines' own are not;
    ties are many, and part of the rule.
    """
    made = nw.lit(salt % 7)
    # a text as it is held there
    for name in [name for name in columns if frame.collect_schema()[name] == nw.Binary]:
        frame = backend_of(frame).to_text(frame, name, f"{name}text")
    schema = frame.collect_schema()
    for prime, name in zip((3, 5, 11, 13, 17), columns, strict=False):
        dtype = schema[name]
        if dtype in (nw.String, nw.Binary):
            value = (
                nw.col(name if dtype == nw.String else f"{name}text").str.len_chars().cast(nw.Int64)
            )
        elif dtype.is_integer() and name.startswith("u"):
            value = nw.col(name).cast(nw.Int64) * nw.col(name).cast(nw.Int64)
        else:  # times are held differently
            continue
        made = made + prime * value.fill_null(4)
    return frame.with_columns((made % 97).cast(nw.UInt64).alias(into))


def answers(rows, kind, plan, question, unit, salt):
    """The exact totals from one engine; None where the question is refused, "error"
    where the engine cannot run it.
    """
    try:
        query = question(plan(dp.protect(brought(rows, kind), unit=unit)))
    except DpFrameError:
        return None
    try:
        return batches.totals(question_of(query), EACH, salt)
    except EngineError:
        with pytest.raises(EngineError):
            engine.validate(question_of(query))
        return "error"


def same(one, other):
    if other is None or isinstance(other, str):
        return False
    return one[1] == other[1] and all(
        np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True)
    )


def hold(seed, number):
    """Ask until so many frames were compared on every engine."""
    rng, compared, drawn, refused = random.Random(seed), 0, 0, 0
    while compared < number:
        drawn += 1
        assert drawn < 6 * number // EACH + 20, "nearly every question is refused"
        rows, plan = frames(rng), random_plan(rng)
        unit = rng.choice([("t", "u"), ("t", "u", "w"), dp.Rows(2)])
        question, salt = (
            random_question(rng, limited=not isinstance(unit, dp.Rows)),
            rng.getrandbits(64),
        )
        first = answers(rows, EVERY[0], plan, question, unit, salt)
        if first is None or first == "error":
            continue
        for kind in EVERY[1:]:
            assert same(first, answers(rows, kind, plan, question, unit, salt)), (kind, seed, drawn)
        with pytest.MonkeyPatch.context() as patch:
            hashed_by(patch, poor_hash, "polars", *ELSEWHERE)
            first = answers(rows, EVERY[0], plan, question, unit, salt)
            for kind in ELSEWHERE:
                found = answers(rows, kind, plan, question, unit, salt)
                # refused, in words; on a table without rows too
                if found is None or found == "error":
                    refused += 1
                    continue
                assert same(first, found), (kind, seed, drawn)
        compared += EACH
    assert refused <= compared / EACH / 2, "elsewhere, too much is refused"
    return compared


@pytest.mark.parametrize("number", [200, pytest.param(6000, marks=pytest.mark.long)])
def test_engines_agree_on_random_frames(number):
    assert hold("engines", number) == number


def test_an_engine_that_differs_is_noticed(monkeypatch):
    rng = random.Random("control")
    rows = frames(rng)
    ask = lambda f: f.agg(s=dp.sum("x", bounds=(-3, 10)), max_rows=3)  # noqa: E731
    right = answers(rows, "polars", lambda f: f, ask, ("t", "u"), 1)
    other = rows.with_columns(pl.col("x") + 2**-20)
    assert set(SCHEMA) <= set(rows.columns)
    assert not same(right, answers(other, "pyarrow", lambda f: f, ask, ("t", "u"), 1))
