"""Noise whose entries are correlated: a shared part, one window, contrasts."""

import itertools
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpframe import noise
from dpframe.errors import InvalidArgument
from dpframe.noise import bits, contrasts, correlated, rounded_contrasts, rounded_gaussian
from dpframe.noise.gaussian import normal_pairs

# so many that an independent sum, 0.87 times as wide, is noticed: p-values around 1e-28
DRAWS = 24_000
ALARM = 1e-7
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def draws():
    """Two cells of many tables, with own deviation 30 and shared deviation 20."""
    return np.array([noise.shared_gaussian(30.0, 20.0, 2) for _ in range(DRAWS)])


def fit(values, deviation):
    """The p-value of normal values of this deviation:
    of a Kolmogorov-Smirnov test of continuous spread.
    """
    spread = values + np.random.default_rng(1).uniform(-0.5, 0.5, len(values))
    return stats.kstest(spread / deviation, "norm").pvalue


def test_a_cell_and_the_sum_and_difference_of_two_have_their_laws(draws):
    """False alarms: 3e-7.
    Rounding adds at most 1/12 to a variance of 1,300, which the test cannot see.
    """
    one, other = draws.T
    assert fit(one, np.hypot(30, 20)) > ALARM
    assert fit(one - other, 30 * np.sqrt(2)) > ALARM
    assert fit(one + other, np.sqrt(2 * 900 + 4 * 400)) > ALARM


def test_another_share_is_noticed(draws):
    one, other = draws.T
    independent = np.hypot(30, 20) * np.sqrt(2)
    assert fit(one - other, independent) < ALARM
    assert fit(one + other, independent) < ALARM
    assert fit(one, 30) < ALARM


def test_differences_and_sums_are_independent(draws, chi_square):
    one, other = draws.T
    rough = [
        np.searchsorted(np.quantile(x, [0.25, 0.5, 0.75]), x) for x in (one - other, one + other)
    ]
    joint = np.bincount(4 * rough[0] + rough[1], minlength=16)
    share = [np.bincount(x, minlength=4) / DRAWS for x in rough]
    assert chi_square(joint, np.outer(*share).ravel()) > ALARM


def test_small_noise_is_rounded_once():
    """Own and shared noise of 1/4 would both be 0 after rounding;
    their sum is above 1/2 in 8% of draws.
    """
    draws = noise.shared_gaussian(0.25, 0.25, 1)
    assert draws.dtype == np.int64
    ones = sum(int(noise.shared_gaussian(0.25, 0.25, 1)[0] != 0) for _ in range(2000))
    assert stats.binomtest(ones, 2000, 2 * stats.norm.sf(0.5 / np.hypot(0.25, 0.25))).pvalue > ALARM


def test_large_noise_does_not_wrap():
    # At 2^70 all three would fit into 64 bits in 6 of 1,000 runs; at 2^90 they do with a chance of
    # 6e-9.
    draws = noise.shared_gaussian(2.0**50, 2.0**90, 3)
    assert draws.dtype == object
    assert max(abs(int(x - draws[0])) for x in draws) < 2**54
    assert noise.shared_gaussian(2.0**50, 2.0**45, 3).dtype == np.int64


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan])
def test_deviations_are_positive_and_finite(wrong):
    with pytest.raises(InvalidArgument):
        noise.shared_gaussian(wrong, 1.0, 2)
    with pytest.raises(InvalidArgument):
        noise.shared_gaussian(1.0, wrong, 2)


# Window noise


def norm(vector):
    """The largest positive entry plus the largest negative one, without its sign."""
    return max(0, *vector) + max(0, *(-x for x in vector))


def masses(cells, scale, reach):
    """The law of window noise, from its definition, on all vectors with entries up to `reach`."""
    vectors = list(itertools.product(range(-reach, reach + 1), repeat=cells))
    weights = np.exp([-norm(vector) / scale for vector in vectors])
    return vectors, weights / weights.sum()


@pytest.mark.parametrize(
    ("cells", "scale"),
    [(2, 0.8), pytest.param(1, 1.3, marks=LONG), pytest.param(3, 0.6, marks=LONG)],
)
def test_windows_have_the_joint_law_of_the_norm(cells, scale, chi_square):
    """All vectors with entries up to 4, the others in one bin.
    Negative controls: another scale, and Laplace noise.

    The larger scale has a chance of 1e-13 or less to pass: one cell shows less of it than two, so
    it has 5,000 draws.
    """
    vectors, law = masses(cells, scale, 24 if cells < 3 else 10)
    number = {vector: i for i, vector in enumerate(vectors) if max(map(abs, vector)) <= 4}
    bins = {vector: i for i, vector in enumerate(number)}
    counts = np.zeros(len(bins) + 1)
    for _ in range(5000 if cells == 1 else 2500):
        counts[bins.get(tuple(noise.window_noise(scale, cells).tolist()), -1)] += 1

    def fit(law):
        chances = np.array([*(law[i] for i in number.values()), 0.0])
        chances[-1] = 1 - chances.sum()
        return chi_square(counts, chances)

    assert fit(law) > ALARM
    assert fit(masses(cells, scale * 1.25, 24 if cells < 3 else 10)[1]) < ALARM
    if cells > 1:
        laplace = np.exp([-sum(map(abs, vector)) / scale for vector in vectors])
        assert fit(laplace / laplace.sum()) < ALARM


@pytest.mark.parametrize(("cells", "scale"), [(1, 1.0), (2, 1.5), (3, 0.7)])
def test_the_tail_of_a_cell_is_that_of_the_norm(cells, scale):
    vectors, law = masses(cells, scale, 30 if cells < 3 else 14)
    first = np.array([vector[0] for vector in vectors])
    for k in (-2, 0, 1, 2, 5):
        with noise.precision(128):
            tail = float(noise.window_tail(cells, Fraction(scale), k))
        assert tail == pytest.approx(law[first >= k].sum(), abs=1e-6)


@pytest.mark.parametrize(
    ("cells", "scale"), [(24, 1.0), (24, 3.0 * 2**20), (365, 0.4), (24, 2.0**61)]
)
def test_windows_for_many_cells_have_their_spread(cells, scale):
    """The mean of 200 lengths L is within 6 of its standard errors of its
    expectation, about (d + 2) scales.
    """
    lengths = np.array([correlated._length(cells + 1, scale) for _ in range(200)], float)
    expected = scale * (cells + 2)
    assert abs(lengths.mean() - expected) < 6 * scale * np.sqrt(cells + 2) / np.sqrt(200) + 1
    assert (
        abs(lengths.mean() - expected * 1.1) > 6 * scale * np.sqrt(cells + 2) / np.sqrt(200)
        or cells < 100
    )
    vector = noise.window_noise(scale, cells)
    assert vector.shape == (cells,)
    assert int(max(vector)) - int(min(vector)) < max(lengths) * 3
    assert vector.dtype == (object if scale > 2**60 else np.int64)


def test_small_scales_have_no_noise():
    assert not noise.window_noise(0.01, 5).any()


def test_places_in_a_large_window_are_uniform(chi_square):
    for choices in (7, 2**40 + 1, 3 * 2**70):
        (draws,) = correlated._uniform([choices], 20_000).tolist()
        assert min(draws) >= 0
        assert max(draws) < choices
        counts = np.bincount([draw * 7 // choices for draw in draws], minlength=7)
        assert chi_square(counts, np.full(7, 1 / 7)) > ALARM
        lowest = np.bincount([draw % 7 for draw in draws], minlength=7)
        assert chi_square(lowest, np.full(7, 1 / 7)) > ALARM


MIDDLE = 1 << 63
SHAPES = [(), (2,), (5,), (3, 4), (2, 3, 2)]


def spelled(words, shape, scale, more=8):
    """Every contrast, from words that go on as MIDDLE, MIDDLE, … for ever."""
    half = len(words) // 2
    with ctx.workprec(2000):
        pairs = []
        for radius, angle in zip(words[:half], words[half:], strict=True):
            known = (1 << 64) - 1 - radius if radius >= MIDDLE else radius
            turn = angle - (1 << 64) if angle >= MIDDLE else angle
            for _ in range(more):
                known, turn = known << 64 | MIDDLE, turn << 64 | MIDDLE
            v, w = ((arb(x) + arb(0.5)) / arb(2) ** (63 + 64 * more) for x in (known, turn))
            length = (-2 * v.log()).sqrt()
            pairs.append((length * w.cos_pi(), length * w.sin_pi()))
        normals = [first for first, _ in pairs] + [second for _, second in pairs]
        result = {}
        for at in product(*(range(m - 1) for m in shape)):
            total = arb(0)
            for corner in product((0, 1), repeat=len(shape)):
                place = 0
                for m, index, other in zip(shape, at, corner, strict=True):
                    place = place * m + (index + 1) * other
                total += (-1) ** sum(corner) * normals[place]
            result[at] = int((total * arb(scale) + arb(0.5)).floor().unique_fmpz())
    return result


def ending_in_middle(words):
    queue = list(words)

    def source(count):
        return np.array([queue.pop(0) if queue else MIDDLE for _ in range(count)], np.uint64)

    return bits.substitute(source)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.3, 1000.0, 2.0**30, 2.0**58, 2.0**90])
def test_every_contrast_is_the_rounded_difference_of_the_real_normals(scale, shape, real_words):
    words = real_words(2 * ((math.prod(shape) + 1) // 2))
    with ending_in_middle(words):
        drawn = rounded_contrasts(scale, shape)
    assert drawn.shape == tuple(m - 1 for m in shape)
    expected = spelled(words, shape, scale)
    assert {at: int(drawn[at]) for at in expected} == expected


def test_a_contrast_next_to_a_rounding_boundary_is_decided_by_ball_arithmetic(
    real_words, monkeypatch
):
    words = real_words(4)
    first, second, _ = normal_pairs(np.array(words[:2], np.uint64), np.array(words[2:], np.uint64))
    near = abs(1000.5 / float(contrasts(np.concatenate([first, second]).reshape(2, 2))[0, 0]))
    decided = []
    exact = correlated._Exact.contrast
    monkeypatch.setattr(
        correlated._Exact, "contrast", lambda self, at: decided.append(at) or exact(self, at)
    )
    for scale in (math.nextafter(near, 0), near, math.nextafter(near, math.inf)):
        with ending_in_middle(words):
            found = int(rounded_contrasts(scale, (2, 2))[0, 0])
        assert found == spelled(words, (2, 2), scale)[0, 0]
    assert decided == [(0, 0)] * 3


def test_bits_that_were_drawn_for_one_contrast_stay_with_its_normals(real_words):
    # Contrasts of three cells all use the first normal: at this scale each needs its further bits.
    words = real_words(4)
    with ending_in_middle(words), bits.record() as drawn:
        rounded_contrasts(2.0**90, (3,))
    assert sum(map(len, drawn)) == 4 + 4  # 64 more of each of the two pairs, once


@pytest.mark.parametrize("error", [-1.0, 0.0, math.inf, math.nan])
def test_a_scale_that_is_no_positive_number_is_refused(error):
    with pytest.raises(InvalidArgument):
        rounded_contrasts(error, (2, 2))


TIMES = 20_000
CHANCE = 5.0  # standard deviations: a false alarm in 1.7 million


def share_of_zeros(draw):
    return sum(int(draw() == 0) for _ in range(TIMES)) / TIMES


def test_the_law_is_that_of_the_rounded_difference_and_not_of_a_difference_of_rounded_normals():
    sigma = 0.3  # of each of four normals: their contrast has twice that
    expected = math.erf(0.5 / (2 * sigma * math.sqrt(2)))
    far = CHANCE * math.sqrt(expected * (1 - expected) / TIMES)
    assert abs(share_of_zeros(lambda: rounded_contrasts(sigma, (2, 2))[0, 0]) - expected) < far
    four = rounded_gaussian(sigma, 4 * TIMES).reshape(TIMES, 4) @ np.array([1, -1, -1, 1])
    assert abs((four == 0).mean() - expected) > far  # the negative control


def test_the_covariance_is_that_of_the_contrasts():
    shape, sigma, draws = (3, 3), 50.0, 4000
    table = np.array([rounded_contrasts(sigma, shape).ravel() for _ in range(draws)], float)
    one = np.array([[1, -1, 0], [1, 0, -1]])
    both = np.kron(one, one)
    expected = sigma**2 * both @ both.T
    found = table.T @ table / draws
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + expected**2)
    # 10 entries, 5.5 deviations each
    assert (np.abs(found - expected) < 5.5 * scale / math.sqrt(draws)).all()
    # independence fails
    assert (np.abs(found - np.diag(np.diag(expected))) > 5.5 * scale / math.sqrt(draws)).any()


# Windows and cubes of a wide law, many at once


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scale", [8.0, 2.0**20, 2.0**75])
@pytest.mark.parametrize(
    ("law", "order"), [(correlated.window_noises, 2), (correlated.cube_noises, 1)]
)
def test_many_vectors_have_the_law_of_one(law, order, scale, chi_square):
    """Of cubes, max |z| has about a Gamma law; of windows, max z+ + max z-.
    Both against the exact sums at scale 8.
    """
    vectors = law(scale, 2, 20_000)
    assert vectors.shape == (20_000, 2)
    lengths = np.maximum(np.abs(vectors).max(axis=1), 0)
    if order == 2:
        lengths = np.maximum(vectors.max(axis=1), 0) + np.maximum((-vectors).max(axis=1), 0)
    far = np.array([length // int(2 * scale) for length in lengths.tolist()]).clip(max=4)
    if scale == 8.0:  # how many vectors of two numbers have this length
        number = lambda n: 8 * n or 1 if order == 1 else (6 * n or 1)  # noqa: E731
        weights = np.array([number(n) * np.exp(-n / scale) for n in range(1000)])
        chances = np.add.reduceat(weights, [0, 16, 32, 48, 64]) / weights.sum()
    else:  # Gamma(2): P[X >= x] = (1 + x)·e^-x
        tails = np.array([(1 + x) * np.exp(-x) for x in (0, 2, 4, 6, 8)] + [0.0])
        chances = tails[:-1] - tails[1:]
    assert chi_square(np.bincount(far, minlength=5), chances) > ALARM
    assert abs(np.mean([np.sign(x) for x in vectors[:, 0].tolist()])) < 6 / math.sqrt(20_000)
