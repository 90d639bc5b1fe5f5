"""Clipping bounds: what two noisy histograms say of the values, and which pair of edges is the best for an answer."""

import datetime as dt
import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import EXPONENTS
from dpframe.release.auto.clipping_bounds import _best, _rounded
from dpframe.release.auto.posterior import nobody_there
from dpframe.release.auto.value_histograms import (
    Scales,
    _numbers,
    _reconciliation,
    find_scales,
    read_values,
    somebody_between,
)
from dpframe.release.estimators import BinnedValues
from prices import offer

pytestmark = pytest.mark.usefixtures("same_noise")  # bounds are good nearly always: at times noise far out is a value
WIDE = len(EXPONENTS)


def magnitudes(values):
    """The first histogram, of values without noise."""
    return np.bincount(_numbers(np.asarray(values, float)), minlength=2 * WIDE + 1).astype(float)


def noise(seed, scale, size):
    return np.random.default_rng(seed).laplace(0, scale, size)


# What histograms say


def test_noise_alone_is_nobody_and_a_crowd_is_not():
    """By Markov's inequality nobody is less likely than e^-8 once in 1,000 times, and in fact much less often."""
    for seed in range(40):
        counts = noise(seed, 20, WIDE)
        assert nobody_there(counts, 20) > np.exp(-8)
        counts[[130, 131]] += 600  # control: 60 scales
        assert nobody_there(counts, 20) < np.exp(-20)


@pytest.mark.parametrize("whole", [False, True])
def test_noise_alone_has_no_scale(whole):
    found = [find_scales(noise(seed, 20, 2 * WIDE + 1), 20, whole=whole) for seed in range(40)]
    assert sum(scales.seen for scales in found) <= 12  # each is a false alarm with a probability of about a tenth
    assert all(len(scales.edges) >= 2 and (np.diff(scales.edges) > 0).all() for scales in found)


def test_edges_are_around_the_values():
    draw = np.random.default_rng(1)
    for values, whole in (
        (draw.lognormal(3, 1, 5000), False),
        (-draw.lognormal(-30, 1, 5000), False),
        (draw.normal(0, 1, 5000), False),
        (draw.integers(1, 6, 5000), True),
        (draw.integers(10**17, 10**18, 5000), True),
    ):
        scales = find_scales(magnitudes(values) + noise(2, 20, 2 * WIDE + 1), 20, whole=whole)
        low, high = np.quantile(values, [0.01, 0.99])
        assert scales.edges[0] <= low < high <= scales.edges[-1]
        assert scales.edges[-1] <= max(64 * high, -low) or high < 0
        assert (0.0 in scales.edges) == (low < 0 < high)
        assert not whole or (scales.edges == np.rint(scales.edges)).all()


def test_histograms_agree_as_least_squares_says():
    """Parts 5, 6 and 7 of what the first counts as 24 are 18: a quarter of the difference each, and it keeps one."""
    edges, first = np.array([1.0, 4 / 3, 5 / 3, 2.0, 4.0]), np.zeros(2 * WIDE + 1)
    ones, twos = WIDE - EXPONENTS[0] + 1, WIDE - EXPONENTS[0] + 2
    first[[ones, twos]] = 24.0, 8.0
    counts = np.array([3.0, 5.0, 6.0, 7.0, 10.0, 2.0])
    made = _reconciliation(counts, Scales(edges, first, (1.0, 0.0), True, False))
    assert made.tolist() == [3.0, 6.5, 7.5, 8.5, 9.0, 2.0]
    parts = np.vstack([np.eye(3), np.ones(3)])
    assert made[1:4] == pytest.approx(np.linalg.lstsq(parts, np.array([5.0, 6.0, 7.0, 24.0]), rcond=None)[0])


@pytest.mark.parametrize("values", [[-1, -2, -2, -8], [1, 2, 2, 8], [0, 1, -1, 4], [-5, -5, 3, 0]])
@pytest.mark.parametrize("whole", [False, True])
def test_both_histograms_have_the_same_bins(values, whole):
    """Without noise they agree, also where values are powers of two, and where zero is a bin by itself."""
    values = np.repeat(np.array(values) / (1 if whole else 4), 1000)
    scales = find_scales(magnitudes(values), 0.01, whole=whole)
    counts = np.bincount(np.searchsorted(scales.edges, values, side="right"), minlength=len(scales.edges) + 1)
    assert (_reconciliation(counts.astype(float), scales) == counts).all()
    if values.min() > 0:  # control: bins that had their upper edge would not
        counts = np.bincount(np.searchsorted(scales.edges, values), minlength=len(scales.edges) + 1)
        assert (_reconciliation(counts.astype(float), scales) != counts).any()


def test_cases_hold_the_truth_between_them():
    draw = np.random.default_rng(3)
    for seed, values in enumerate((draw.lognormal(3, 1, 5000), draw.normal(0, 1, 5000), -draw.exponential(1, 5000))):
        scales = find_scales(magnitudes(values) + noise(seed, 20, 2 * WIDE + 1), 20, whole=False)
        truth = np.bincount(np.searchsorted(scales.edges, values, side="right"), minlength=len(scales.edges) + 1)
        cases = read_values(truth + noise(9 + seed, 20, len(truth)), 20, scales)
        below, reached = np.cumsum(truth)[:-1], np.cumsum(cases, axis=1)[:, :-1]
        room = 5 * 20 * np.sqrt(2 * len(truth))  # noise of all bins together has a fifth of it
        assert (reached.min(axis=0) <= below + room).all()
        assert (reached.max(axis=0) >= below - room).all()
        assert cases.sum(axis=1) == pytest.approx(np.full(len(cases), 5000.0), rel=0.2)
        assert not (reached[:, ::-1].min(axis=0) <= below + room).all()  # control: the other way round they do not


# What is chosen


def frame_of(values):
    return dp.protect(
        pl.DataFrame({"id": range(len(values)), "x": values}), unit="id", budget=dp.Budget(epsilon=1e6, delta=0.5)
    )


def chosen(values, verb, epsilon=40.0, **options):
    """Bounds as chosen by two histograms of ε = 2 each, whose noise is half a unit."""
    out = getattr(frame_of(values), verb)("x", bounds=dp.Auto(), max_rows=1, **options).release(epsilon=epsilon)
    return out.report().items["chosen"]["bounds"]["x"], out.value


DRAW = np.random.default_rng(7)


@pytest.fixture
def draw():
    return np.random.default_rng(7)


@pytest.mark.parametrize("verb", ["mean", "std", "median"])
@pytest.mark.parametrize(
    "values",
    [DRAW.uniform(50, 60, 4000), DRAW.integers(1900, 2021, 4000), DRAW.integers(10**15, 10**15 + 10**13, 4000)],
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
    assert low == 1
    assert high in (5, 6, 7, 8)  # noise of half a unit may be taken for a unit or two
    assert found == pytest.approx(3, abs=0.15)


def test_minus_one_is_not_minus_two():
    (low, high), found = chosen(np.full(4000, -1), "sum")
    assert -4 <= low < high <= 1
    assert found == pytest.approx(-4000, abs=200)


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


def test_medians_of_groups_need_nearly_all(draw):
    values = np.concatenate([draw.uniform(10, 11, 2000), draw.uniform(30, 31, 2000)])
    table = pl.DataFrame({"id": range(4000), "g": np.repeat([0, 1], 2000), "x": values})
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=100))
    out = frame.group_by("g", keys=[0, 1], max_rows=1).median("x", bounds=dp.Auto()).release(epsilon=40)
    assert out.table.sort("g").to_series(1).to_list() == pytest.approx([10.5, 30.5], abs=0.5)


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


@pytest.mark.parametrize("bins", [1, 2, 7, 64, 200])
def test_noise_alone_is_rarely_somebody(bins):
    """Of 400 draws 4 are at most expected; 20 and more have a probability of 3e-8."""
    alarms = sum(somebody_between(noise(seed, 20, bins + 2), 20) for seed in range(400))
    assert alarms < 20
    outside = np.concatenate([[1e6], noise(1, 20, bins), [1e6]])
    assert not somebody_between(outside, 20)  # who is beyond the edges is not between them
    crowd = np.zeros(bins + 2)
    crowd[1:-1] = 800 / bins + 60  # control: at least 43 scales in all
    assert somebody_between(crowd, 20)


def test_a_crowd_that_is_spread_over_many_bins_is_seen_too():
    """Five scales are no sign of anybody in one of 64 bins, where noise alone has as many in some."""
    counts = np.zeros(66)
    counts[11:27] = 100.0
    assert somebody_between(counts, 20)
    counts[12:27] = 0.0
    assert not somebody_between(counts, 20)


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
def test_where_noise_hides_everybody_the_type_says_the_bounds_and_the_release_says_that(dtype, ends):
    frame = frame_of(pl.Series([1, 2, 3], dtype=pl.Int8).cast(dtype))
    out = frame.median("x", bounds=dp.Auto(), max_rows=1).release(epsilon=0.01)
    if not dtype.is_temporal():
        assert tuple(out._numbers.outputs[0].bounds) == ends
    report = out.report()
    for shown in (str(report), report.to_html()):
        assert "none could be chosen" in shown
        assert "dp.Auto(share=0.3)" in shown
    unseen = json.loads(report.to_json())["chosen"]["unseen"]
    assert list(unseen) == ["x"]
    assert not dtype.is_temporal() or [end[:10] for end in unseen["x"].split(" ")[1:] if "-" in end] == list(ends)
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


def test_three_hundred_people_have_bounds_around_them_or_are_told_that_they_have_none(draw):
    """Without the rule a third of such releases chose [0, 1], or less, and did not say so."""
    outside = 0
    for _ in range(20):
        values = draw.lognormal(np.log(36_000), 0.6, 300)
        out = frame_of(values).mean("x", bounds=dp.Auto(), max_rows=1).release(epsilon=1)
        low, high = out.report().items["chosen"]["bounds"]["x"]
        outside += "unseen" not in out.report().items["chosen"] and not low <= np.median(values) <= high
    assert outside == 0


@pytest.mark.parametrize(
    ("low", "high", "ends"), [(6e-27, 40.0, (0, 40)), (-1e-13, 2.0, (0, 2)), (-9.0, -1e-30, (-9, 0))]
)
def test_an_end_that_is_nearly_zero_is_zero(low, high, ends):
    edges = np.array([low, high])
    values = BinnedValues.of(edges, np.ones((1, 3)), 1.0, whole=False)
    assert tuple(_rounded(values, 0, 1)) == ends
    small = BinnedValues.of(np.array([1e-30, 4e-30]), np.ones((1, 3)), 1.0, whole=False)  # control: small values stay
    assert 0 < _rounded(small, 0, 1).lower < 2e-30


@pytest.mark.parametrize("verb", ["mean", "sum", "var", "std", "median"])
def test_values_that_no_float_adds_up_have_bounds_too(verb):
    """Around a middle of 2^100 the edges near 2^-100 are one float, so that an error may be none at all."""
    edges = 2.0 ** np.array([-100, -99, 100, 101])
    parts = np.array([[0, 1.0, 0, 0, 0], [0, 0.5, 0, 0.5, 0]])
    ask = getattr(frame_of(np.zeros(1)), verb)("x", bounds=dp.Auto(), max_rows=1)._question
    values = BinnedValues(edges, parts, np.array([400.0, 400.0]), 1.0, False)
    price = offer("epsilon", Fraction(1), Fraction(0), "auto")
    found = _best(ask, ask.table.columns["x"], values, price)
    assert found.lower < found.upper
