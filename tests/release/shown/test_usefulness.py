"""A release that is no better than one constant says so; one that is better says nothing."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import dpframe as dp

KEYS = list(range(10))


def table(sizes):
    return pl.DataFrame({"g": np.repeat(KEYS, sizes), "x": np.full(sum(sizes), 50.0)})


def release(sizes, epsilon, **asked):
    frame = table(sizes).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=10))
    return frame.group_by("g", keys=KEYS).agg(**asked).release(epsilon=epsilon)


def told(out):
    """Whether it is told, and that each place tells it."""
    places = [str(out), out._repr_html_(), str(out.report())]
    causes = ("constant for all groups", "0 would be about as exact", "is about 0 within its noise")
    said = {any(words in place for words in causes) for place in places}
    assert len(said) == 1
    assert ("mostly_noise" in out.report().to_dict()) == said.copy().pop()
    return said.pop()


def test_groups_that_differ_by_less_than_the_noise():
    """The noise has a deviation of 141 and groups differ by 3:
    the variance of ten groups is nearly never twice its.
    """
    shares = [told(release([100 + i for i in KEYS], 0.01, n=dp.count())) for _ in range(30)]
    assert np.mean(shares) > 0.4  # about 0.93 is expected


def test_groups_that_differ_by_more_than_the_noise():
    assert not any(told(release([100 * (i + 1) for i in KEYS], 1, n=dp.count())) for _ in range(20))


def test_one_number():
    frame = table([1] * 10).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=10))
    assert sum(told(frame.count().release(epsilon=0.001)) for _ in range(20)) > 3
    assert not told(frame.count().release(epsilon=5))


@pytest.mark.parametrize("epsilon", [0.0001, 5])
def test_a_mean_that_may_be_anything(epsilon):
    outs = [release([30] * 10, epsilon, m=dp.mean("x", bounds=(0, 100))) for _ in range(6)]
    assert any("m: missing" in str(out) for out in outs) == (epsilon < 1)


def test_names_and_prices_and_no_cell():
    out = release([100] * 10, 0.0001, n=dp.count(), s=dp.sum("x", bounds=(0, 100)))
    for words in out.report().to_dict().get("mostly_noise", []):
        assert words.split(":")[0] in {"n", "s", "n, s"}
        assert "50" not in words


def test_choices_and_no_groups_say_nothing():
    frame = table([5] * 10).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=10, delta=1e-6))
    assert (
        "mostly_noise" not in frame.mode("g", keys=KEYS).release(epsilon=0.001).report().to_dict()
    )
    with pytest.warns(dp.errors.DpFrameWarning):
        out = frame.group_by("g").count().release(epsilon=0.001, delta=1e-9)
    assert "mostly_noise" not in out.report().to_dict()


def test_numbers_whose_squares_are_beyond_all_floats():
    told(release([5] * 10, 1, q=dp.median("x", bounds=(-1e270, 5))))  # it raises no warning
    out = [release([5] * 10, 1, s=dp.sum("x", bounds=(-1e200, 1e200))) for _ in range(8)]
    assert any(map(told, out))  # noise alone is told in 94 of 100 releases


BOTH = ("listed keys occurs", "filters and joins compare")


@pytest.mark.parametrize("statistic", ["count", "sum"])
@pytest.mark.parametrize("number", [1, 3, 10])
def test_groups_that_are_all_about_0_name_both_causes(statistic, number):
    """Keys of another letter case have no rows.
    A release that is 0 within its noise cannot know, and says both.
    """
    people = pl.DataFrame({"city": ["Bonn"] * 500, "x": [1.0] * 500}).dp(
        unit=dp.Rows(1), budget=dp.Budget(epsilon=10)
    )
    asked = {"count": dp.count(), "sum": dp.sum("x", bounds=(0, 1))}[statistic]
    others = [f"ulm{i}" for i in range(number)]
    empty = [
        people.group_by("city", keys=others).agg(m=asked).release(epsilon=0.1) for _ in range(10)
    ]
    told = [all(words in str(out) for words in BOTH) for out in empty]
    assert sum(told) >= 3  # each with 0.9 or more, so fewer in less than 1e-6 of all runs
    some = people.group_by("city", keys=["Bonn", *others]).agg(m=asked).release(epsilon=5)
    assert not any(words in str(some) for words in BOTH)
    json = next(out for out, said in zip(empty, told, strict=True) if said).report().to_dict()
    assert any(BOTH[0] in words for words in json["mostly_noise"])


def test_midnights_of_a_column_of_times_are_named():
    times = [dt.datetime(2026, 1, 1, hour) for hour in range(24)] * 20
    people = pl.DataFrame({"when": times}).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=10))
    days = [dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 3)]
    outs = [people.group_by("when", keys=days).count().release(epsilon=0.1) for _ in range(10)]
    assert any("day=dp.col('when').dt.date()" in str(out) for out in outs)


def test_a_missing_mean_of_every_group_names_both_causes_too():
    people = pl.DataFrame({"city": ["Bonn"] * 50, "x": [1.0] * 50}).dp(
        unit=dp.Rows(1), budget=dp.Budget(epsilon=10)
    )
    out = (
        people.group_by("city", keys=["bonn", "ulm"])
        .mean("x", bounds=(0, 1))
        .release(epsilon=0.001)
    )
    assert out.to_polars()["x"].null_count() < 2 or BOTH[0] in str(out)
    assert out.to_polars()["x"].null_count() == 2 or BOTH[0] not in str(out)
