"""Clipping bounds: what two noisy histograms say of the values, and which pair of
edges is the best for an answer.
"""

import datetime as dt
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.engine import EXPONENTS
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Bounds
from dpframe.release.auto import MODEL, Seen, tails
from dpframe.release.auto.clipping_bounds import (
    _are_many,
    _best,
    _most_inside,
    _rounded,
    fewest_people,
)
from dpframe.release.auto.posterior import nobody_there
from dpframe.release.auto.tails import Bins, draw_tail, tail_start
from dpframe.release.auto.value_histograms import (
    between,
    edges_around,
    most_values,
    near,
    powers_of_eight,
    powers_of_two,
    read_values,
)
from dpframe.release.estimators import BinnedValues
from inside import numbers_of, question_of
from prices import offer

# bounds are good nearly always: at times noise far out is a value
pytestmark = pytest.mark.usefixtures("same_noise")
WIDE = len(EXPONENTS)


def magnitudes(values):
    """The first histogram, of values without noise."""
    values = np.asarray(values, float)
    power = np.clip(np.frexp(values)[1], EXPONENTS[0] + 1, EXPONENTS[-1] + 1) - EXPONENTS[0]
    return np.bincount(WIDE + (np.sign(values) * power).astype(int), minlength=2 * WIDE + 1).astype(
        float
    )


def octaves(values, seed=2, scale=20.0, *, whole=False):
    return powers_of_two(magnitudes(values) + noise(seed, scale, 2 * WIDE + 1), scale, whole=whole)


def counted(values, edges, seed=9, scale=20.0):
    """The second histogram, with noise."""
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    return between(edges, counts + noise(seed, scale, len(edges) + 1), scale)


def noise(seed, scale, size):
    return np.random.default_rng(seed).laplace(0, scale, size)


# What histograms say


def test_noise_alone_is_nobody_and_a_crowd_is_not():
    """By Markov's inequality nobody is less likely than e^-8 once in 1,000
    times, and in fact much less often.
    """
    for seed in range(40):
        counts = noise(seed, 20, WIDE)
        assert nobody_there(counts, 20) > np.exp(-8)
        counts[[130, 131]] += 600  # control: 60 scales
        assert nobody_there(counts, 20) < np.exp(-20)


@pytest.mark.parametrize("whole", [False, True])
def test_noise_alone_shows_no_values(whole):
    """Each sign is taken for somebody with a probability of at most 3·e^-9, so
    that of 80 one or more are in 3%.
    """
    shown = [
        most_values(octaves([], seed, whole=whole), doubt=MODEL.sure_first) for seed in range(40)
    ]
    assert sum(most is not None for most in shown) <= 1


COLUMNS = (
    (lambda draw: draw.lognormal(3, 1, 5000), False),
    (lambda draw: -draw.lognormal(-30, 1, 5000), False),
    (lambda draw: draw.normal(0, 1, 5000), False),
    (lambda draw: draw.integers(1, 6, 5000), True),
    (lambda draw: draw.integers(10**17, 10**18, 5000), True),
)


@pytest.mark.parametrize(("column", "whole"), COLUMNS)
def test_edges_are_around_the_values(column, whole):
    values = column(np.random.default_rng(1))
    low, high, scales = most_values(octaves(values, whole=whole), doubt=MODEL.sure_first)
    assert np.mean((low <= values) & (values < high)) >= 0.45
    assert 0.4 * 250 < scales < 1.2 * 250
    edges = edges_around(low, high, scales, whole=whole)
    assert edges[0] <= np.quantile(values, 0.01) < np.quantile(values, 0.99) <= edges[-1]
    assert np.count_nonzero((edges >= low) & (edges <= high)) > 3
    assert 0 in edges
    assert not whole or (edges == np.rint(edges)).all()


def test_three_hundred_people_in_many_octaves_are_seen_in_powers_of_eight(draw):
    """In bins of one octave each noise hides them;
    a power of eight has three octaves at the noise of one.
    """
    values, fine, coarse = draw.lognormal(8, 2, 300), 0, 0
    for seed in range(20):
        fine += most_values(octaves(values, seed, 16.0), doubt=MODEL.sure_first) is not None
        bins = counted(values, powers_of_eight(whole=False), seed, 9.0)
        most = most_values(bins, doubt=MODEL.empty_side)
        coarse += most is not None and most[0] <= np.median(values) < most[1]
        if most is not None:
            assert 4 < len(near(bins, *most[:2]).counts) < 16
    assert coarse == 20
    assert fine < 10


# Tails

LAWS = {
    "exponential": lambda draw: draw.exponential(1, 30_000),
    "power": lambda draw: draw.pareto(1.5, 30_000),
    "lognormal": lambda draw: draw.lognormal(0, 1, 30_000),
    "normal": lambda draw: np.abs(draw.normal(0, 1, 30_000)),
    "uniform": lambda draw: draw.random(30_000),
}


@pytest.mark.parametrize("law", LAWS)
def test_cases_hold_the_truth_of_tails_that_noise_hides(law, draw):
    """The 32nd largest of 30,000 values is within a factor of two, where
    noise has a scale of 20 units.
    """
    values = LAWS[law](draw)
    edges = edges_around(0.25, 1.0, 1000.0, whole=False)
    cases = read_values(octaves(values), counted(values, edges), 0.25, 1.0, whole=False)
    beyond = np.cumsum(cases.parts[:, ::-1], axis=1)[:, ::-1][:, 1:] * cases.units[:, None]
    reached = np.array([cases.edges[np.flatnonzero(case >= 32)[-1]] for case in beyond])
    truth = np.sort(values)[-32]
    assert np.quantile(reached, 0.02) <= truth <= 1.2 * np.quantile(reached, 0.98)
    assert 0.5 < np.median(reached) / truth < 2
    assert cases.units.mean() == pytest.approx(30_000, rel=0.1)


def test_a_tail_may_end_at_zero():
    """Nobody is below zero, where the law alone expects some; the bins beyond tell it."""
    begins = np.array([1.0, 2.0, 4.0])
    bins = Bins(begins, np.array([2.0, 4.0, np.inf]), np.array([300.0, 0.0, 0.0]), np.full(3, 10.0))
    at, units = tail_start(bins)
    assert (at, units[0] < 300 < units[1]) == (0, True)
    points, draw = np.array([1.0, 1.5, 2.0, 3.0]), np.random.default_rng(1)
    ending = draw_tail(bins, 2.0, units, points, math.inf, draw)
    assert np.mean(ending[:, 2:].sum(axis=1) == 0) > 0.5
    # control: there is somebody
    bins = Bins(begins, bins.ends, np.array([300.0, 300.0, 300.0]), bins.scales)
    assert (
        draw_tail(bins, 2.0, tail_start(bins)[1], points, math.inf, draw)[:, 2:].sum(axis=1) > 0
    ).all()


def _beyond_1994():
    """The part of 3,000 years from 1940 to 2009 above 1994, as a
    histogram with two bins of years says.
    """
    edges = np.append(0.0, 1938 + 36.5 * np.arange(-20, 21))
    counts = np.zeros(len(edges) + 1)
    counts[[21, 22, 23]] = 3, 1500, 1500
    bins = Bins(
        np.append(-math.inf, edges), np.append(edges, math.inf), counts, np.full(len(counts), 7.0)
    )
    octaves = powers_of_two(magnitudes(np.full(3000, 1970)), 13.0, whole=True)
    values = read_values(octaves, bins, 1024.0, 2048.0, whole=True)
    return float((values.parts @ (values.ends[1:] > 1995)).mean())


def test_a_wide_bin_with_nothing_beyond_is_not_all_at_its_start(monkeypatch):
    """Values become rarer outward. So a tail is not far denser than the bin before it.
    The noise is not drawn here.
    """
    assert _beyond_1994() > 0.04  # 15 of 70 years are
    monkeypatch.setattr(tails, "MODEL", replace(MODEL, tail_denser=math.inf))
    assert _beyond_1994() < 0.01


def _one_row_each(values):
    table = pl.DataFrame({"u": range(len(values)), "x": values})
    return dp.protect(table, unit="u", budget=dp.Budget(epsilon=1.0))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rank", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("draw", [np.random.default_rng(2).normal, np.random.default_rng(3).random])
def test_right_quantiles_are_no_guess(rank, draw):
    """The noisy count of 3,000 people is 30 scales above its limit."""
    values = draw(size=3000)
    out = _one_row_each(values).quantile("x", rank, bounds=dp.Auto(), max_rows=1).release(epsilon=1)
    assert "unseen" not in out.report().items["chosen"]
    assert out.value == pytest.approx(np.quantile(values, rank), abs=0.1)


def test_a_median_of_few_people_is_a_guess():
    out = (
        _one_row_each(np.random.default_rng(4).normal(size=30))
        .median("x", bounds=dp.Auto(), max_rows=1)
        .release(epsilon=1)
    )
    assert "unseen" in out.report().items["chosen"]


def _heaped(counts, scale=20.0):
    """How many of the cases have somebody in the bins from 16 on, far
    beyond the values of the others.
    """
    bins = Bins(
        2.0 ** np.arange(6), np.append(2.0 ** np.arange(1, 6), np.inf), counts, np.full(6, scale)
    )
    at, units = tail_start(bins)
    assert at == 0
    cases = draw_tail(
        bins, math.inf, units, 2.0 ** np.arange(6), math.inf, np.random.default_rng(1)
    )
    return np.mean(cases[:, 4:].sum(axis=1) > 0)


def test_a_heap_far_out_is_seen_as_far_as_noise_allows(monkeypatch):
    """Units after a gap fit no tail.
    One of 10 scales is surely a heap, one of 6 may be, and one of 1 is noise.
    """
    seen = [_heaped(np.array([900.0, 0, 0, 0, heap, 0])) for heap in (200.0, 120.0, 20.0)]
    assert seen[0] > 0.95 > seen[1] > 0.05 > seen[2]
    # control: without heaps, noise explains it
    monkeypatch.setattr(tails, "MODEL", replace(MODEL, curve_again=0.0))
    assert _heaped(np.array([900.0, 0, 0, 0, 100.0, 0])) < 0.05


def test_several_heaps_in_narrow_bins_are_seen(monkeypatch):
    """Whole multiples of 317: heaps with gaps between, each in a bin that is
    far narrower than its distance.
    """
    edges = np.append(0.0, 32.0 * np.arange(1, 65))
    counts = np.zeros(len(edges) + 1)
    counts[np.searchsorted(edges, 317 * np.arange(6), side="right")] = 650, 320, 123, 90, 80, 70
    bins = Bins(
        np.append(-math.inf, edges), np.append(edges, math.inf), counts, np.full(len(counts), 7.0)
    )
    octaves = powers_of_two(
        magnitudes(np.repeat(317 * np.arange(6), [650, 320, 123, 90, 80, 70])), 13.0, whole=False
    )

    def beyond():
        values = read_values(octaves, bins, 0.0, 2048.0, whole=False)
        return (values.parts * values.units[:, None]) @ (values.ends[1:] > 1400)

    assert np.mean(beyond() > 30) > 0.9  # 70 are
    monkeypatch.setattr(tails, "MODEL", replace(MODEL, curve_again=0.0))  # control: no law has gaps
    assert np.mean(beyond() > 30) < 0.9


@pytest.mark.parametrize(("scales", "parts"), [(0.0, 2), (41.0, 12), (200.0, 50), (4100.0, 64)])
def test_noise_hides_no_part_of_an_even_range(scales, parts):
    """The largest noise is below the units of a part of half of them, in 99 of 100
    cases; one part more is too many.
    """
    edges = edges_around(0.0, 1.0, scales, whole=False)
    assert np.count_nonzero((edges >= 0) & (edges < 1)) == parts
    if parts < 64 and scales:
        noises = np.random.default_rng(1).laplace(size=(100_000, parts + 1)).max(axis=1)
        assert np.mean(noises > 2 * scales / parts) < MODEL.false_alarm * 1.1
        assert np.mean(noises > 2 * scales / (parts + 1)) > MODEL.false_alarm * 0.9


@pytest.mark.parametrize("people", [300, 3000])
def test_a_narrow_range_in_a_wide_octave_is_found(people):
    """Years from 1940 to 2009 are in the octave from 1024 to 2048, and the bounds
    do not become as wide as that.
    """
    values = np.random.default_rng(6).integers(1940, 2010, people)
    out = _one_row_each(values).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=1)
    low, high = out.report().items["chosen"]["bounds"]["x"]
    assert 70 / 2 < high - low < 1024 / 3


# What is chosen


def frame_of(values):
    return dp.protect(
        pl.DataFrame({"id": range(len(values)), "x": values}),
        unit="id",
        budget=dp.Budget(epsilon=1e6, delta=0.5),
    )


def chosen(values, verb, epsilon=40.0, **options):
    """Bounds as chosen by two histograms of ε = 2 each, whose noise is half a unit."""
    out = getattr(frame_of(values), verb)("x", bounds=dp.Auto(), max_rows=1, **options).release(
        epsilon=epsilon
    )
    return out.report().items["chosen"]["bounds"]["x"], out.value


DRAW = np.random.default_rng(7)


@pytest.fixture
def draw():
    return np.random.default_rng(7)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("verb", ["mean", "std", "median"])
@pytest.mark.parametrize(
    "values",
    [
        DRAW.uniform(50, 60, 4000),
        DRAW.integers(1900, 2021, 4000),
        DRAW.integers(10**15, 10**15 + 10**13, 4000),
    ],
    ids=["floats", "years", "ticks"],
)
def test_bounds_of_values_far_from_zero_are_near_them(values, verb):
    (low, high), found = chosen(values, verb)
    width = float(values.max() - values.min())
    room = max(2 * width, 2.0 ** np.floor(np.log2(values.max())) / 8)  # a bin or two
    assert values.min() - room <= low < high <= values.max() + room
    assert found == pytest.approx(getattr(pl.Series(values), verb)(), abs=width / 5)


def test_many_zeros_hide_nobody(draw):
    values = np.where(draw.random(4000) < 0.6, 0.0, draw.lognormal(4, 1, 4000))
    for verb in ("sum", "mean"):
        (low, high), found = chosen(values, verb)
        assert -1 <= low <= 1
        assert np.quantile(values, 0.98) <= high <= 8 * values.max()
        assert found == pytest.approx(getattr(values, verb)(), rel=0.1)


def test_both_signs_are_seen(draw):
    values = draw.normal(0, 1, 4000)
    for verb in ("sum", "mean", "std"):
        (low, high), _ = chosen(values, verb)
        assert -9 <= low <= -2
        assert 2 <= high <= 9


def test_whole_numbers_have_whole_bounds(draw):
    (low, high), found = chosen(draw.integers(1, 6, 4000), "mean")
    assert low in (0, 1)
    assert high in (5, 6, 7, 8)  # noise of half a unit may be taken for a unit or two
    assert found == pytest.approx(3, abs=0.15)


def test_minus_one_is_not_minus_two():
    for verb in ("mean", "std"):
        (low, high), found = chosen(np.full(4000, -1), verb)
        assert -3 <= low <= -1 <= high <= 1  # [-64, -1] where -1 is looked for below -1
        assert found == pytest.approx(-1 if verb == "mean" else 0, abs=0.1)


@pytest.mark.parametrize("powers", [2, 8])
def test_bins_of_whole_numbers_hold_what_they_say(powers):
    """A bin of powers of two holds its end towards zero, and a bin between edges its lower end."""
    values = np.array([-65, -64, -8, -7, -2, -1, 0, 1, 2, 7, 8, 64, 10**6])
    for one in values:
        edges = powers_of_eight(whole=True)
        bins = (
            octaves([one], scale=1e-9, whole=True)
            if powers == 2
            else counted([one], edges, scale=1e-9)
        )
        at = int(np.argmax(bins.counts))
        assert np.sign(at - len(bins.counts) // 2) == np.sign(one)
        assert one == 0 or bins.begins[at] <= one < bins.ends[at]
    begins, ends = bins.begins[1:-1], bins.ends[1:-1]
    # none is empty
    assert all(np.floor(high) > low for low, high in zip(begins, ends, strict=True) if low or high)


def test_bounds_of_equal_values_hold_them(draw):
    """The standard deviation is 0, which bounds beside the values say
    too: they were [14, 15] for fives.
    """
    edges = np.arange(-20.0, 40.0)
    cases = np.zeros((8, 61))
    cases[:, 25] = 30_000  # [4, 5)
    cases += draw.poisson(0.2, cases.shape)
    ask = question_of(frame_of(np.zeros(1)).std("x", bounds=dp.Auto(), max_rows=1))
    values = BinnedValues.of(edges, cases, 10.0, whole=False)
    assert edges[values.middle - 1] == 4
    bounds = _best(
        ask, ask.table.columns["x"], values, offer("epsilon", Fraction(1), Fraction(0), "auto")
    )
    assert bounds.lower <= 4.5 <= bounds.upper


def test_two_heaps_are_seen(draw):
    values = np.concatenate([draw.normal(10, 1, 2000), draw.normal(1000, 50, 2000)])
    (low, high), _ = chosen(values, "std")
    assert low <= 10
    assert 1050 <= high <= 5000


def test_a_median_needs_no_more_than_the_values_around_it(draw):
    values = draw.lognormal(3, 1, 4000)
    (low, high), found = chosen(values, "median")
    assert low < np.median(values) < high < np.quantile(values, 0.9)
    assert found == pytest.approx(np.median(values), rel=0.1)


def _law(values, low, high, rank, scale):
    """The mean distance from a quantile, of a choice on a fine grid."""
    points = np.linspace(low, high, 200_001)
    below = (
        np.interp(points, values.ends, np.append(0, np.cumsum(values.parts[0]))) * values.units[0]
    )
    weights = np.exp(-np.abs(below - rank * values.units[0]) / scale)
    at = np.interp(rank, np.append(0, np.cumsum(values.parts[0])), values.ends)
    return np.average(np.abs(points - at), weights=weights)


@pytest.mark.parametrize("rank", [0.5, 0.9])
def test_the_error_of_a_choice_is_that_of_its_law(rank):
    """Bins stand for their middles, so it is off by a part of a bin."""
    edges = np.append(np.linspace(0, 10, 101), [20, 100, 1000])
    parts = np.append(np.append(0, np.full(100, 2.0)), [0, 0, 0, 0])[None]
    values = BinnedValues.of(edges, parts, 1.0, whole=False)
    pairs = [(0, 100), (0, 101), (0, 102), (0, 103), (30, 103), (60, 100)]
    low, high = np.array(pairs).T
    found = values.chosen_away(low, high, np.array([rank * 200]), 3.0)[0]
    for error, (first, last) in zip(found, pairs, strict=True):
        assert error == pytest.approx(
            _law(values, edges[first], edges[last], rank, 3.0), rel=0.02, abs=0.05
        )


def test_few_people_beyond_a_quantile_make_wide_bounds_bad():
    """At ε = 1 the 9th decile of 200 people was any number up to far
    bounds in half of the releases.
    """
    edges = np.append(np.linspace(0, 1, 21), 2.0 ** np.arange(1, 20))
    ask = question_of(frame_of(np.zeros(1)).quantile("x", 0.9, bounds=dp.Auto(), max_rows=1))
    price, widths = offer("epsilon", Fraction(1), Fraction(0), "auto"), []
    for people in (200, 20_000):
        cases = np.zeros((1, len(edges) + 1))
        cases[:, 1:21] = people / 20
        values = BinnedValues.of(edges, cases, people / 200, whole=False)
        bounds = _best(ask, ask.table.columns["x"], values, price)
        assert bounds.upper < 4
        wide = values.chosen_away(
            np.array([0]), np.array([len(edges) - 1]), np.array([0.9 * people]), 2.4
        )
        widths.append(float(wide[0, 0]))
    assert widths[0] > 100 * widths[1]  # control: many people do not need narrow bounds


def test_medians_of_groups_need_nearly_all(draw):
    values = np.concatenate([draw.uniform(10, 11, 2000), draw.uniform(30, 31, 2000)])
    table = pl.DataFrame({"id": range(4000), "g": np.repeat([0, 1], 2000), "x": values})
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=100))
    out = (
        frame.group_by("g", keys=[0, 1], max_rows=1)
        .median("x", bounds=dp.Auto())
        .release(epsilon=40)
    )
    assert out.table.sort("g").to_series(1).to_list() == pytest.approx([10.5, 30.5], abs=0.5)


def test_medians_of_groups_of_few_people_have_bounds_near_the_values(draw):
    """Noise in far bins was taken for the values of a group."""
    values = draw.lognormal(6.7, 0.5, 600)
    table = pl.DataFrame({"id": range(600), "g": np.arange(600) % 2, "x": values})
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=100))
    query = frame.group_by("g", keys=[0, 1], max_rows=1).median("x", bounds=dp.Auto())
    widths = [
        np.ptp(query.release(epsilon=1).report().items["chosen"]["bounds"]["x"]) for _ in range(3)
    ]
    assert np.median(widths) < 2 * values.max()


def test_largest_and_smallest_values_are_inside(draw):
    values = draw.uniform(20, 90, 4000)
    for verb in ("min", "max"):
        (low, high), found = chosen(values, verb)
        assert found == pytest.approx(getattr(values, verb)(), abs=3)
        assert low < found + 1
        assert high > found - 1


def test_times_have_bounds_near_them(draw):
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(x)) for x in draw.integers(0, 500, 4000)]
    frame = frame_of(days)
    out = frame.median("x", bounds=dp.Auto(), max_rows=1).release(epsilon=40)
    assert abs(out.value - dt.date(2020, 9, 7)).days < 40


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        (pl.Float64, (-1e6, 1e6)),
        (pl.Int64, (-1_000_000, 1_000_000)),
        (pl.UInt32, (0, 1_000_000)),
        (pl.Int8, (-128, 127)),
        (pl.UInt16, (0, 65535)),
        (pl.Date, ("1900-01-01", "2099-12-31")),
        (pl.Datetime("ms"), ("1900-01-01", "2099-12-31")),
    ],
)
def test_where_noise_hides_everybody_the_type_says_the_bounds_and_the_release_says_that(
    dtype, ends
):
    frame = frame_of(pl.Series([1, 2, 3], dtype=pl.Int8).cast(dtype))
    out = frame.median("x", bounds=dp.Auto(), max_rows=1).release(epsilon=0.01)
    if not dtype.is_temporal():
        assert tuple(numbers_of(out).outputs[0].bounds) == ends
    report = out.report()
    for shown in (str(report), report.to_html()):
        assert "none could be chosen" in shown
        assert "dp.Auto(share=0.4)" in shown
    unseen = json.loads(report.to_json())["chosen"]["unseen"]
    assert list(unseen) == ["x"]
    assert not dtype.is_temporal() or [
        end[:10] for end in unseen["x"].split(" ")[1:] if "-" in end
    ] == list(ends)
    for shown in (repr(out), out._repr_html_()):
        assert "could not be chosen" in shown


def test_zeros_alone_are_values():
    out = frame_of(np.zeros(4000)).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=4)
    assert out.report().items["chosen"]["bounds"]["x"] == [0, 1]
    assert "unseen" not in out.report().items["chosen"]


def test_known_bounds_are_the_default():
    frame = frame_of(np.ones(3)).clip("x", 0, 7)
    out = frame.mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=0.01)
    assert out.report().items["chosen"]["unseen"] == {"x": "from 0 to 7"}


def test_what_was_chosen_is_not_called_a_default():
    out = frame_of(np.full(4000, 42.0)).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=4)
    assert "unseen" not in out.report().items["chosen"]
    assert "could not be chosen" not in repr(out)


@pytest.mark.long
def test_three_hundred_people_have_bounds_around_them_or_are_told_that_they_have_none(draw):
    """Without the rule a third of such releases chose [0, 1], or less, and did not say so."""
    outside = 0
    for _ in range(20):
        values = draw.lognormal(np.log(36_000), 0.6, 300)
        out = frame_of(values).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=1)
        low, high = out.report().items["chosen"]["bounds"]["x"]
        outside += (
            "unseen" not in out.report().items["chosen"] and not low <= np.median(values) <= high
        )
    assert outside == 0


HIDDEN = {  # where most values are, noise hides; some others are seen
    "zeros beside many scales": lambda draw: np.where(
        draw.random(300) < 0.4, 0.0, np.exp(draw.uniform(0, 40, 300))
    ),
    "ones beside many scales": lambda draw: np.where(
        draw.random(300) < 0.4, 1.0, np.exp(draw.uniform(3, 60, 300))
    ),
    "both signs": lambda draw: np.where(
        draw.random(300) < 0.4, -5.0, np.exp(draw.uniform(3, 60, 300))
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "zeros beside many scales" else pytest.param(name, marks=pytest.mark.long)
        for name in HIDDEN
    ],
)
def test_bounds_hold_the_median_or_are_told_to_be_none(name, draw):
    """Each run is wrong with a probability of 1% at most, and of 20 more
    than five are with one of 4e-8.
    """
    outside = 0
    for _ in range(20):
        values = HIDDEN[name](draw)
        out = frame_of(values).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=2)
        low, high = out.report().items["chosen"]["bounds"]["x"]
        outside += (
            "unseen" not in out.report().items["chosen"] and not low <= np.median(values) <= high
        )
    assert outside <= 5


def test_half_of_the_units_inside_are_not_most():
    """Of 400 answers 4 are at most expected to be wrong; 20 and more have a probability of 3e-8."""
    price = offer("epsilon", Fraction(1, 30), Fraction(0), "auto")
    for beyond, wrong in ((300, range(20)), (0, range(390, 401))):
        frame = frame_of(np.append(np.full(300, 5.0), np.full(beyond, 1e6)))
        ask = question_of(frame.mean("x", bounds=dp.Auto(), max_rows=1))
        column = ask.table.columns["x"]
        raw = engine.value_profile(ask, column, [0.0, 10.0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "value_profile", lambda *_, raw=raw: raw)
            sure = sum(
                _most_inside(ask, column, price, Bounds(0, 10), None, Seen()) for _ in range(400)
            )
        assert sure in wrong


def test_as_many_people_as_are_said_before_have_sure_bounds_in_half_of_the_releases():
    """Of 400 answers 200 are expected; fewer than 140 or more than 260 have one of 1e-9."""
    price = offer("epsilon", Fraction(8, 9), Fraction(0), "auto")
    ask = frame_of(np.ones(1)).mean("x", bounds=dp.Auto(), max_rows=1)
    people = fewest_people(question_of(ask), price)
    with pytest.raises(UnsupportedOperation, match=f"At this price {people} people"):
        ask.accuracy(epsilon=8 / 9)
    for times, least, most in ((1, 140, 260), (2, 380, 400)):
        question = question_of(
            frame_of(np.full(times * people, 5.0)).mean("x", bounds=dp.Auto(), max_rows=1)
        )
        third, column = price.part(Fraction(3, 80)), question.table.columns["x"]
        raw = engine.value_profile(question, column, [0.0, 10.0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "value_profile", lambda *_, raw=raw: raw)
            between = Bounds(0, 10)
            sure = [
                _most_inside(question, column, third, between, None, Seen()) for _ in range(400)
            ]
        assert least <= sum(sure) <= most


@pytest.mark.parametrize(
    ("low", "high", "scales", "many"),
    [
        (8.0, 4096.0, 42.6, True),
        (-7.0, 512.0, 41.5, True),
        (0.0, 512.0, 9.0, True),
        (-2e31, -1.0, 6.5, False),
        (2**-6, 2.1e6, 16.5, False),
        (262_144.0, 9.2e18, 8.13, False),
    ],
)
def test_a_wide_range_needs_more_units(low, high, scales, many):
    """The ranges of a first look at 300 and 100 people;
    in the last three noise stood for the far end.
    """
    assert _are_many(low, high, scales) is many


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(6e-27, 40.0, (0, 40)), (-1e-13, 2.0, (0, 2)), (-9.0, -1e-30, (-9, 0))],
)
def test_an_end_that_is_nearly_zero_is_zero(low, high, ends):
    edges = np.array([low, high])
    values = BinnedValues.of(edges, np.ones((1, 3)), 1.0, whole=False)
    assert tuple(_rounded(values, 0, 1)) == ends
    # control: small values stay
    small = BinnedValues.of(np.array([1e-30, 4e-30]), np.ones((1, 3)), 1.0, whole=False)
    assert 0 < _rounded(small, 0, 1).lower < 2e-30


@pytest.mark.parametrize("verb", ["mean", "sum", "var", "std", "median"])
def test_values_that_no_float_adds_up_have_bounds_too(verb):
    """Around a middle of 2^100 the edges near 2^-100 are one float, so
    that an error may be none at all.
    """
    edges = 2.0 ** np.array([-100, -99, 100, 101])
    parts = np.array([[0, 1.0, 0, 0, 0], [0, 0.5, 0, 0.5, 0]])
    ask = question_of(getattr(frame_of(np.zeros(1)), verb)("x", bounds=dp.Auto(), max_rows=1))
    values = BinnedValues(edges, parts, np.array([400.0, 400.0]), 1.0, False)
    price = offer("epsilon", Fraction(1), Fraction(0), "auto")
    found = _best(ask, ask.table.columns["x"], values, price)
    assert found.lower < found.upper


EXTREMES = {
    "beyond all bins": [1e308, -1e308, 1e300],
    "infinities": [math.inf, -math.inf, math.nan],
    "all zero but one": [0.0] * 20 + [5e-324],
    "one value": [3.5],
    "tiny": [1e-320] * 40,
    "huge and alike": [1e30] * 40,
    "every size": [10.0**power for power in range(-300, 300, 7)],
    "no value": [math.nan] * 5,
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("epsilon", [0.05, 100])
@pytest.mark.parametrize("name", EXTREMES)
def test_bounds_are_chosen_whatever_the_values_are(name, epsilon):
    """An error here is an error after the charge, which a cell causes."""
    table = pl.DataFrame({"x": pl.Series(EXTREMES[name], dtype=pl.Float64)})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    for aggregate in (dp.sum, dp.std):
        released = frame.agg(y=aggregate("x", bounds=dp.Auto())).release(epsilon=epsilon)
        low, high = released.report().to_dict()["chosen"]["bounds"]["x"]
        assert math.isfinite(low)
        assert math.isfinite(high)
        assert low <= high
