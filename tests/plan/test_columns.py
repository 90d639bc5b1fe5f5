"""Facts belong to a version of a column: a step that writes drops or re-derives
them, and the names may go round.
"""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    DpFrameError,
    InvalidArgument,
    MissingBounds,
    UnboundedContribution,
    UnsupportedOperation,
)
from dpframe.plan import Bounds
from inside import question_of, step_of


@pytest.fixture
def frame():
    table = pl.DataFrame(
        {
            "u": [1],
            "a": [1],
            "x": [1.0],
            "city": ["b"],
            "level": pl.Series(["low"], dtype=pl.Enum(["low", "high"])),
        }
    )
    return dp.protect(table, unit="u").clip("x", 0, 10).clip("a", -3, 7)


def known(frame, name):
    return step_of(frame).table.columns[name].domain


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda f: f.with_columns(x=dp.col("city").str.len_chars()),
        lambda f: f.rename({"x": "old"}).with_columns(x=dp.col("city").cast("float64")),
        lambda f: f.cast("x", "float32"),
        lambda f: f.drop("x").with_columns(x=dp.col("city").str.len_chars()),
        lambda f: f.with_columns(y=dp.col("city").cast("int64")).rename({"x": "z", "y": "x"}),
        lambda f: f.with_columns(x=dp.col("x") / dp.col("a")),
        lambda f: f.with_columns(
            x=dp.when(dp.col("a") > 0).then(dp.col("x")).otherwise(dp.col("city").str.len_chars())
        ),
    ],
)
def test_old_bounds_never_reach_new_values(frame, rewrite):
    assert known(rewrite(frame), "x").bounds is None
    with pytest.raises(MissingBounds):
        rewrite(frame).sum("x", max_rows=2)


@pytest.mark.parametrize(
    ("made", "bounds"),
    [
        (lambda c: c("x") * 2, (0, 20)),
        (lambda c: c("x") - c("a"), (-7, 13)),
        (lambda c: c("a") * c("a"), (-21, 49)),
        (lambda c: -c("a"), (-7, 3)),
        (lambda c: c("a").abs(), (0, 7)),
        (lambda c: c("a") % 5, (0, 4)),
        (lambda c: c("a") // 2, (-2, 3)),
        (lambda c: c("x").fill_null(50), (0, 50)),
        (lambda c: c("x").clip(2, 50), (2, 10)),
        (lambda c: c("x").cast("int8"), (0, 10)),
        (lambda c: c("x") > 3, (0, 1)),
        (lambda c: dp.when(c("a") > 0).then(c("x")).otherwise(-4), (-4, 10)),
        (lambda c: c("x") / (c("a").abs() + 1), (0, 10)),
    ],
)
def test_bounds_are_derived_anew(frame, made, bounds):
    assert known(frame.with_columns(y=made(dp.col)), "y").bounds == Bounds(*bounds)


def test_names_may_change_places_and_facts_stay_with_the_values(frame):
    swapped = frame.rename({"a": "x", "x": "a"})
    assert known(swapped, "x").bounds == Bounds(-3, 7)
    assert known(swapped, "a").bounds == Bounds(0, 10)


@pytest.mark.parametrize(
    ("step", "nullable"),
    [
        (lambda f: f, True),
        (lambda f: f.fill_null("x", 5), False),
        (lambda f: f.drop_nulls("x"), False),
        (lambda f: f.fill_null("x", 5).with_columns(x=dp.col("x") * 2), True),
        (lambda f: f.fill_null("x", 5).cast("x", "int8"), False),
        (
            lambda f: (
                f.fill_null("x", 5)
                .with_columns(x=dp.col("x") * 100)
                .fill_null("x", 0)
                .cast("x", "int8")
            ),
            True,
        ),
        (lambda f: f.fill_null("x", 5).cast("x", "float32"), True),
        (
            lambda f: f.fill_null("x", 5).with_columns(
                x=dp.when(dp.col("a") > 0).then(dp.col("x"))
            ),
            True,
        ),
        (lambda f: f.fill_null("x", 5).with_columns(x=(dp.col("x") - 1).sqrt()), True),
        (lambda f: f.fill_null("x", 5).with_columns(x=1 / dp.col("x")), True),
        (lambda f: f.fill_null("city", "1").with_columns(x=dp.col("city").cast("int8")), True),
        (lambda f: f.drop_nulls("x").cut("x", [0, 5, 10], into="x"), True),
    ],
)
def test_what_can_be_missing_is_followed(frame, step, nullable):
    assert known(step(frame), "x").nullable is nullable


@pytest.mark.parametrize(
    ("step", "keys"),
    [
        (lambda f: f, ("low", "high")),
        (lambda f: f.fill_null("level", "none"), ("low", "high", "none")),
        (lambda f: f.with_columns(level=dp.col("level").str.to_uppercase()), None),
        (
            lambda f: f.with_columns(
                level=dp.when(dp.col("a") > 0).then(dp.col("level")).otherwise("new")
            ),
            None,
        ),
        (lambda f: f.with_columns(level=dp.col("city")), None),
        (lambda f: f.rename({"city": "level", "level": "city"}), None),
        (lambda f: f.cast("level", pl.Enum(["low", "x"])), ("low", "x")),
        (lambda f: f.cut("x", [0, 5, 10], into="level"), ("(0, 5]", "(5, 10]")),
        (lambda f: f.filter(dp.col("level") == "low"), ("low", "high")),
    ],
)
def test_public_keys_are_those_of_the_values(frame, step, keys):
    assert known(step(frame), "level").keys == keys
    if keys is None:
        assert question_of(step(frame).group_by("level", max_groups=1).count_units()).private_keys


def test_the_unit_travels_hidden_and_is_not_rewritten(frame):
    for rewrite in (
        lambda f: f.with_columns(u=dp.lit(1)),
        lambda f: f.fill_null("u", 1),
        lambda f: f.clip("u", 0, 1),
        lambda f: f.cast("u", "int8"),
        lambda f: f.cut("x", [0, 1], into="u"),
        lambda f: f.rename({"u": "id"}).with_columns(id=dp.lit(1)),
    ):
        with pytest.raises(UnsupportedOperation):
            rewrite(frame)
    hidden = frame.drop("u")
    assert "u" not in hidden.columns
    with pytest.raises(UnboundedContribution):
        hidden.sum("x")
    assert hidden.with_columns(u=dp.lit(1)).count(max_rows=2).sensitivity["count"].l1 == 2


def test_limits_of_every_line_hold_at_once(frame):
    bounded = frame.bound(max_rows=5).filter(dp.col("a") > 0).bound(max_rows=3)
    assert bounded.count(max_rows=9).sensitivity["count"].l1 == 3
    assert bounded.count(max_rows=2).sensitivity["count"].l1 == 2
    assert bounded.group_by("city", max_groups=9).count_units().sensitivity["count_units"].l0 == 3


def test_numbers_of_common_questions(frame):
    groups = frame.group_by(
        "city", keys=list("abcdefgh"), max_rows=4, max_rows_per_group=2, max_groups=3
    )
    claims = groups.agg(n=dp.count(), s=dp.sum("x", bounds=(-3, 10))).sensitivity
    assert (claims["n"].l0, claims["n"].l1, claims["n"].linf) == (3, 4, 2)
    assert claims["n"].l2_squared == 8
    whole = dp.protect(pl.DataFrame({"u": [1], "g": ["a"], "x": [1]}), unit="u").group_by(
        "g", keys=list("abcdefgh"), max_rows=4, max_rows_per_group=2, max_groups=3
    )
    total = whole.sum("x", bounds=(-3, 10)).sensitivity["x"]
    assert (total.l0, total.l1, total.l2_squared, total.linf) == (3, 40, 800, 20)


@pytest.mark.parametrize("rows", [1, 3])
def test_declared_rows_are_not_limited(rows):
    frame = dp.protect(pl.DataFrame({"g": ["a"], "x": [1.0]}), unit=dp.Rows(rows))
    assert frame.group_by("g").count_units().sensitivity["count_units"].l1 == rows
    for refused in (
        lambda: frame.bound(max_rows=1),
        lambda: frame.count(max_rows=1),
        lambda: frame.group_by("g", max_groups=1),
        lambda: frame.sum("x", unit_bounds=(0, 1)),
    ):
        with pytest.raises(DpFrameError):
            refused()


# no engine takes it as a text: each failed on it in its own way, some of them after the charge
HALF = "a\ud800"
TYPED = {
    "a literal": lambda f: f.filter(dp.col("s") == HALF),
    "a list": lambda f: f.filter(dp.col("s").is_in(["a", HALF])),
    "a branch": lambda f: f.with_columns(z=dp.when(dp.col("x") > 0).then(HALF).otherwise("b")),
    "a constant": lambda f: f.with_columns(z=HALF),
    "a piece": lambda f: f.filter(dp.col("s").str.contains(HALF)),
    "in place of null": lambda f: f.fill_null("s", HALF),
    "a label": lambda f: f.cut("x", [0, 1, 2], labels=["b", HALF]),
    "a key": lambda f: f.group_by("s", keys=["a", HALF]).count(),
    "one of two keys": lambda f: f.group_by("s", "x", keys=[("a", 1), (HALF, 2)]).count(),
    "a value to choose": lambda f: f.mode("s", keys=["a", HALF]),
    "the key of a part": lambda f: f.partition("s", keys=["a", HALF]),
    "a new column": lambda f: f.with_columns(**{HALF: dp.col("x")}),
    "a new name": lambda f: f.rename({"s": HALF}),
    "a column of labels": lambda f: f.cut("x", [0, 1, 2], into=HALF),
    "a released column": lambda f: f.agg(**{HALF: dp.count()}),
}


@pytest.mark.parametrize(
    "what", ["a new column", "a new name", "a column of labels", "a released column"]
)
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_a_name_with_a_zero_byte_is_refused_where_it_is_typed(monkeypatch, what, kind):
    """The released table of pandas was made after the charge, and Rust panicked."""
    monkeypatch.setitem(globals(), "HALF", "a\0b")
    frame = dp.protect(
        kind({"s": ["a", "b"], "x": [1, 2]}), unit=dp.Rows(1), budget=dp.Budget(epsilon=1)
    )
    with pytest.raises(InvalidArgument, match="zero byte in its name"):
        TYPED[what](frame)
    with pytest.raises(InvalidArgument, match="zero byte in its name"):
        dp.protect(kind({"s\0": ["a", "b"], "x": [1, 2]}), unit=dp.Rows(1))


@pytest.mark.parametrize("what", TYPED)
def test_a_text_that_is_no_unicode_is_refused_where_it_is_typed(what):
    frame = dp.protect(
        pl.DataFrame({"s": ["a", "b"], "x": [1, 2]}), unit=dp.Rows(1), budget=dp.Budget(epsilon=1)
    )
    with pytest.raises(InvalidArgument, match=r"'\\ud800' is half of a pair"):
        TYPED[what](frame)


def test_keys_with_a_zone_at_the_first_and_last_year_are_refused_by_name():
    rows = pl.DataFrame({"u": [1], "t": [dt.datetime(2026, 1, 1)]}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC")
    )
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1))
    for edge in (dt.datetime.min, dt.datetime.max):
        for hours in (-12, 0, 14):
            key = edge.replace(tzinfo=dt.timezone(dt.timedelta(hours=hours)))
            with pytest.raises(dp.errors.WrongType, match="outside of the column's type"):
                frame.group_by("t", keys=[key], max_groups=1)
