"""A release that is no better than one constant says so; one that is better says nothing."""

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
    said = {"constant for all groups" in place or "0 would be about as exact" in place for place in places}
    assert len(said) == 1
    assert ("mostly_noise" in out.report().to_dict()) == said.copy().pop()
    return said.pop()


def test_groups_that_differ_by_less_than_the_noise():
    """The noise has a deviation of 141 and groups differ by 3: the variance of ten groups is nearly never twice its."""
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
    assert "mostly_noise" not in frame.mode("g", keys=KEYS).release(epsilon=0.001).report().to_dict()
    with pytest.warns(dp.errors.DpFrameWarning):
        out = frame.group_by("g").count().release(epsilon=0.001, delta=1e-9)
    assert "mostly_noise" not in out.report().to_dict()


def test_numbers_whose_squares_are_beyond_all_floats():
    told(release([5] * 10, 1, q=dp.median("x", bounds=(-1e270, 5))))  # it raises no warning
    out = [release([5] * 10, 1, s=dp.sum("x", bounds=(-1e200, 1e200))) for _ in range(8)]
    assert any(map(told, out))  # noise alone is told in 94 of 100 releases
