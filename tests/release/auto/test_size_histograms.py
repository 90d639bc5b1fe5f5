"""Sizes of units and of groups, as they are read from noisy histograms:
near the truth, and never failing.
"""

import numpy as np
import pytest

import dpframe as dp
from dpframe.engine import NODES
from dpframe.release.auto.choice import _key_groups
from dpframe.release.auto.size_histograms import SizePosterior, read_groups, read_spread
from dpframe.release.auto.unit_sizes import UnitSizes
from inside import question_of
from panels import panel, protect


def test_a_noisy_histogram_is_read_near_the_truth():
    draw = np.random.default_rng(1)
    sizes = np.minimum(np.ceil(draw.lognormal(2, 1, 3000)), NODES[-1])
    counts = np.bincount(np.searchsorted(NODES, sizes), minlength=len(NODES))
    for _ in range(20):
        spread = read_spread(counts + draw.laplace(0, 10, len(NODES)), 10.0, NODES.astype(float))
        assert spread.units == pytest.approx(3000, rel=0.15)
        mean = spread.odds @ (spread.masses @ np.minimum(NODES, 50)) / spread.units
        assert mean == pytest.approx(np.minimum(sizes, 50).mean(), rel=0.25)
        top = NODES[np.flatnonzero(spread.odds @ (spread.masses > 2) > 0.5)[-1]]
        assert 20 <= top <= 2000


def test_noise_alone_is_hardly_anybody():
    draw = np.random.default_rng(1)
    for _ in range(50):
        spread = read_spread(draw.laplace(0, 10, len(NODES)), 10.0, NODES.astype(float))
        assert spread.units < 250  # the noise of all nodes together has a deviation of 117


@pytest.mark.parametrize("truth", [np.full(40, 200.0), np.linspace(20, 380, 40)])
def test_noise_does_not_make_listed_groups_uneven(truth):
    ask = question_of(
        protect(panel(1, 50)).group_by("g", keys=list(range(40)), limits=dp.Auto()).count()
    )
    scale, draw = 40.0, np.random.default_rng(1)
    noisy = [truth + draw.laplace(0, scale, len(truth)) for _ in range(200)]
    people = UnitSizes(read_spread(np.zeros(len(NODES)), 1.0, NODES.astype(float)))
    found = [_key_groups(ask, counts, scale, people).sizes[0] for counts in noisy]
    assert np.mean(np.std(found, axis=1)) == pytest.approx(truth.std(), abs=12)
    assert np.mean(np.std(noisy, axis=1)) > truth.std() + 12  # as they are, they are too uneven


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", [[200.0] * 12, [900.0, 700, 500, 300, 200, 100, 80, 60, 50, 40]])
# the same noise each time the test runs
def test_groups_that_nobody_listed_are_read_near_the_truth(sizes):
    draw, scale = np.random.default_rng(1), 30.0
    for _ in range(20):
        counts = np.zeros(256)
        np.add.at(counts, draw.integers(0, 256, len(sizes)), sizes)
        noisy = counts + draw.laplace(0, scale, 256)
        groups = read_groups(noisy, scale, sum(sizes), 1, 16)
        assert len(sizes) / 3 < np.median(groups.number) < 3 * len(sizes)
        assert np.mean((groups.sizes * groups.each).sum(axis=1)) == pytest.approx(
            sum(sizes), rel=0.6
        )
        assert np.mean(groups.sizes[:, :3], axis=0) == pytest.approx(
            np.sort(noisy)[::-1][:3], abs=5 * scale
        )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
@pytest.mark.parametrize("count", [-1e15, 0.0, 3.0, 1e15])
@pytest.mark.parametrize(("units", "least"), [(1.0, 1.0), (1.0, 1.2), (1e12, 1e9), (5.0, 70_000.0)])
def test_groups_are_read_from_any_histogram(scale, count, units, least):
    for counts in (np.full(256, count), np.where(np.arange(256) == 7, count, 0.0)):
        groups = read_groups(counts, scale, units, least, 3)
        assert np.all(groups.number >= 1)
        assert np.all(np.isfinite(groups.shares()))
        assert (groups.shares() * groups.each).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("units", [1.0, 1e12])
@pytest.mark.parametrize("counts", [np.zeros(64), np.full(64, -5.0), np.full(64, 1e9)])
def test_groups_are_read_whatever_is_there(units, counts):
    for scale in (1e-6, 1.0, 1e7):
        groups = read_groups(counts, scale, units, 3.0, 4)
        assert np.isfinite(groups.sizes).all()
        assert (groups.number >= 1).all()


def test_the_number_of_units_is_as_unsure_as_noise_makes_it():
    draw = np.random.default_rng(1)
    counts = np.bincount(np.searchsorted(NODES, draw.integers(7, 90, 130)), minlength=len(NODES))
    found = [
        read_spread(counts + draw.laplace(0, 5, len(NODES)), 5.0, NODES.astype(float))
        for _ in range(20)
    ]
    off = np.sqrt(np.mean([(one.units / 130 - 1) ** 2 for one in found]))
    assert off / 3 < np.mean([one.unsure for one in found]) < 3 * off
    assert read_spread(counts.astype(float), 1e-3, NODES.astype(float)).unsure < 0.01


@pytest.mark.parametrize(("scale", "least", "most"), [(33.0, 0.3, 0.7), (0.01, 0.0, 0.0)])
def test_numbers_of_people_match_as_nearly_as_noise_lets_them(scale, least, most):
    """Of 316 people, 240 are seen with one row in each group. Noise of 33 may hide the others
    there. Without noise they have two rows, as a tenth of the cases say.
    """
    rows, peaks = np.zeros((48, len(NODES))), np.zeros((2, len(NODES)))
    rows[:, np.searchsorted(NODES, 23)] = 316
    peaks[:, 0], peaks[1, 1] = 240, 76
    people = UnitSizes(
        SizePosterior(rows, np.full(48, 1 / 48), scale / 4),
        peaks=SizePosterior(peaks, np.array([0.9, 0.1]), scale),
        cells=24.0,
    )
    once = (people.sizes[2] == 1.0).all(axis=1).mean()
    assert least <= once <= most
