"""Noise on whole arrays: rounded once, of the law of single numbers,
for every type and every step.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpframe.theory as t
from dpframe.noise import bits
from dpframe.theory.measurements import grid_noise
from dpframe.theory.measurements.grid_noise import Additive

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
LAW = {"laplace": grid_noise.LAPLACE, "gaussian": grid_noise.GAUSSIAN}
LAWS = list(LAW)
VECTOR = {"laplace": t.L1Distance(), "gaussian": t.L2Distance()}


def measure(law, kind, scale, size, **options):
    return getattr(t, law)(t.VectorDomain(t.AtomDomain(kind), size), VECTOR[law], scale, **options)


def fixed(seed):
    rng = np.random.default_rng(seed)
    return bits.substitute(lambda count: rng.integers(0, 2**64, count, dtype=np.uint64))


# Sums of floats


def triples(count, seed=3):
    """Three floats of very different and of nearly opposite sizes, the second a
    multiple of what bounds the third.
    """
    rng = np.random.default_rng(seed)
    second = np.ldexp(rng.integers(-(2**37), 2**37, count).astype(float), 10)
    third = np.ldexp(rng.integers(-(2**31), 2**31, count).astype(float), -21)
    first = rng.integers(-(2**53), 2**53, count).astype(float) * 2.0 ** rng.integers(-21, 12, count)
    near = rng.random(count) < 0.5
    first[near] = -(second + third)[near] * (1 + rng.integers(-4, 5, near.sum()) * 2.0**-52)
    first = np.ldexp(np.rint(np.ldexp(first, 21)), -21)
    return first, second, third


def test_three_floats_are_added_with_one_rounding():
    first, second, third = triples(20_000)
    # Ties of the exact sum, which two roundings decide wrongly: 2^53 + 1 - 2^-21 and its like.
    first = np.append(first, [2.0**53, 2.0**53, -(2.0**53), 2.0**52 + 1])
    second = np.append(second, [1024.0, 0.0, -1024.0, 0.0])
    third = np.append(third, [1 - 2.0**-21, 1 + 2.0**-21, 1.0, 0.5])
    exact = [float(sum(map(Fraction, terms))) for terms in zip(first, second, third, strict=True)]
    summed = grid_noise._nearest_sum(first.copy(), second.copy(), third.copy())
    assert summed.tolist() == exact
    assert (first + (second + third)).tolist() != exact  # negative control


# Floats


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 1e6, 1e-30])
@pytest.mark.parametrize("granularity", [None, 2.0**-20, 2.0**3, 2.0**60])
def test_releases_are_the_floats_next_to_an_exact_sum(law, scale, granularity):
    """The three terms add up to the value plus noise on the grid;
    the release is the float next to it.
    """
    rng = np.random.default_rng(11)
    noise = Additive(
        LAW[law],
        Fraction(repr(scale)),
        t.AtomDomain(float),
        granularity and Fraction(granularity),
    )
    values = np.concatenate(
        [rng.standard_cauchy(300) * 10.0 ** rng.integers(-40, 40, 300), [0.0, 5e-324, -1e300]]
    )
    with fixed(2), np.errstate(all="ignore"):
        terms = grid_noise._terms(noise, values)
        exact = [sum(map(Fraction, parts)) for parts in zip(*terms, strict=True)]
    with fixed(2):
        released = grid_noise.noisy_array(noise, values)
    assert all((e / noise.step).denominator == 1 for e in exact)
    assert released.tolist() == [float(e) for e in exact]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("granularity", [None, 2.0**-10])
def test_arrays_and_single_numbers_get_the_same_noise(law, granularity):
    """Values on the grid: with equal random words, an array is what exact
    arithmetic on single numbers gives.
    """
    values = np.random.default_rng(4).integers(-1000, 1000, 400) / 4
    noise = Additive(
        LAW[law], Fraction(3), t.AtomDomain(float), granularity and Fraction(granularity)
    )
    with fixed(9):
        one_by_one = noise.release(noise.noisy(values.tolist()))
    with fixed(9):
        assert grid_noise.noisy_array(noise, values).tolist() == one_by_one


@pytest.mark.one_in(3)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("value", [0.0, 3.7, 1e-25, -1e-300, 2.0**-63, 12345.678])
def test_the_law_whatever_the_value(law, kind, value):
    """Kolmogorov-Smirnov at 20,000 draws; false alarm 1e-7.
    Negative control: another scale and centre.
    """
    size = 20_000
    value = float(kind(value))
    released = measure(law, kind, 2.5, size)(np.full(size, value, kind))
    assert released.dtype == kind
    rest = (released.astype(float) - value) / 2.5
    cdf = (stats.laplace if law == "laplace" else stats.norm).cdf
    assert stats.kstest(rest, cdf).pvalue > 1e-7
    assert stats.kstest(rest * 1.1 + 0.1, cdf).pvalue < 1e-7


@pytest.mark.parametrize("law", LAWS)
def test_values_between_grid_points_move_the_rounding(law):
    """With equal words, half a step more in the value moves half of the draws by a
    step: nothing is rounded before.
    """
    noise = Additive(LAW[law], Fraction(1), t.AtomDomain(float), None)
    step = float(noise.step)
    with fixed(6), np.errstate(all="ignore"):
        low = grid_noise._terms(noise, np.full(4000, step * 2.0**-40))
    with fixed(6), np.errstate(all="ignore"):
        high = grid_noise._terms(noise, np.full(4000, step * 0.499))
    sums = [
        [sum(map(Fraction, parts)) / noise.step for parts in zip(*terms, strict=True)]
        for terms in (low, high)
    ]
    moved = [int(b - a) for a, b in zip(*sums, strict=True)]
    assert set(moved) == {0, 1}
    assert abs(sum(moved) - 2000) < 6 * math.sqrt(1000)  # false alarm 2e-9


def test_infinities_stay_and_the_others_are_noisy():
    values = np.array([math.inf, 0.0, -math.inf, 1.0])
    released = measure("laplace", float, 1.0, 4)(values)
    assert released[0] == math.inf
    assert released[2] == -math.inf
    assert np.isfinite(released[[1, 3]]).all()


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-280, 1e270, 1e300])
@pytest.mark.parametrize("law", LAWS)
def test_extreme_scales(law, scale):
    """Kolmogorov-Smirnov at 2,000 draws; false alarm 1e-7."""
    released = measure(law, float, scale, 2000)(np.zeros(2000))
    cdf = (stats.laplace if law == "laplace" else stats.norm).cdf
    assert stats.kstest(np.clip(released / scale, -1e300, 1e300), cdf).pvalue > 1e-7


def test_whole_numbers_too_large_for_a_float_are_not_rounded_before_the_noise():
    values = [2**60 + 1, 2**60 + 3]
    released = measure("laplace", float, 1e-3, 2)(values)
    assert all(abs(r - v) <= 256 for r, v in zip(released, values, strict=True))
    assert (
        grid_noise._exact_array(
            Additive(LAW["laplace"], Fraction(1), t.AtomDomain(float), None), values
        )
        is None
    )
    assert (
        grid_noise._exact_array(
            Additive(LAW["laplace"], Fraction(1), t.AtomDomain(float), None), [1, 2.5]
        )
        is not None
    )


def test_a_float32_domain_does_not_round_wider_floats_before_the_noise():
    """16777217 and 16777219 are 2 apart, and 4 apart as float32:
    their noisy values are 2 apart on average.

    False alarm below 1e-9: 6 standard deviations of a mean of 20,000.
    """
    size = 20_000
    noise = Additive(LAW["laplace"], Fraction(3), t.AtomDomain(np.float32), None)
    means = []
    for value in (16777217.0, 16777219.0):
        with np.errstate(all="ignore"):
            terms = grid_noise._terms(noise, grid_noise._exact_array(noise, np.full(size, value)))
        means.append(np.mean(terms[0] - 16777216) + np.mean(terms[1] + terms[2]))
    assert abs(means[1] - means[0] - 2) < 6 * 3 * math.sqrt(2) * math.sqrt(2 / size)


# Integers


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("granularity", [None, 1, 4, 2.0**20, 2.0**70])
@pytest.mark.parametrize("law", LAWS)
def test_integers_are_held_within_their_type(kind, granularity, law):
    info = np.iinfo(kind)
    rng = np.random.default_rng(8)
    values = rng.integers(info.min, info.max, 200, dtype=kind, endpoint=True)
    values[:4] = [info.min, info.max, info.min + 1, info.max - 1]
    noise = Additive(
        LAW[law], Fraction(50), t.AtomDomain(kind), granularity and Fraction(granularity)
    )
    for scale in (
        Fraction(1, 2),
        Fraction(50),
        Fraction(2) ** 40,
        Fraction(2) ** 62,
        Fraction(2) ** 70,
    ):
        noise = Additive(LAW[law], scale, t.AtomDomain(kind), granularity and Fraction(granularity))
        with fixed(5):
            exact = noise.release(noise.noisy(values.tolist()))
        with fixed(5):
            released = grid_noise.noisy_array(noise, values)
        assert released.tolist() == exact
        assert released.dtype == kind


@pytest.mark.parametrize("scale", [0.7, 4.0])
def test_integers_get_discrete_laplace_noise(scale):
    """A chi-square test at 300,000 draws; false alarm 1e-7.
    It misses the control, 3 parts in 100 more, less often.
    """
    size = 300_000
    released = measure("laplace", int, scale, size)(np.full(size, 7)) - 7

    def pvalue(width):
        edges = np.arange(-int(4 * scale) - 1, int(4 * scale) + 2)
        law = stats.dlaplace(1 / width)
        chances = np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
        counts = np.diff(
            np.concatenate([[0], np.searchsorted(np.sort(released), edges, side="right"), [size]])
        )
        return stats.chisquare(counts, chances * size).pvalue

    assert pvalue(scale) > 1e-7
    assert pvalue(scale * 1.03) < 1e-7


# The shape that the caller gave


@pytest.mark.parametrize("kind", [int, float, np.float32, np.uint8])
def test_lists_series_and_arrays(kind):
    pd = pytest.importorskip("pandas")
    m = measure("laplace", kind, 1.0, 3)
    array = np.array([1, 2, 3], dtype=t.AtomDomain(kind).dtype)
    assert isinstance(m(array.tolist()), list)
    assert isinstance(m(array), np.ndarray)
    assert len(m(pd.Series(array))) == 3
    assert all(t.AtomDomain(kind).member(v) for v in m(array.tolist()))


@pytest.mark.parametrize("size", [0, 1, 5, (1 << 14) + 3])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", [int, float])
def test_every_length(size, law, kind):
    m = getattr(t, law)(t.VectorDomain(t.AtomDomain(kind)), VECTOR[law], 1.0)
    assert len(m([0] * size)) == size
