"""Noise on numbers: the maps, the law of what is drawn, and the
rounding that is or is not charged.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpframe.theory as t
from dpframe import errors
from dpframe.noise.bits import substitute
from dpframe.theory.exact import limit
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.measurements import grid_noise
from dpframe.theory.measurements.grid_noise import Additive

INTEGERS = [int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [float, np.float64, np.float32]
ABSOLUTE = t.AbsoluteDistance()
LAW = {"laplace": grid_noise.LAPLACE, "gaussian": grid_noise.GAUSSIAN}


@pytest.mark.parametrize("kind", INTEGERS + FLOATS)
@pytest.mark.parametrize("make", [t.laplace, t.gaussian])
def test_every_type_as_number_and_as_vector(make, kind):
    one = make(t.AtomDomain(kind), ABSOLUTE, scale=2)
    vector = t.L1Distance() if make is t.laplace else t.L2Distance()
    many = make(t.VectorDomain(t.AtomDomain(kind), size=3), vector, scale=2)
    expected = 0.5 if make is t.laplace else 0.125
    assert one.map(1) == many.map(1) == expected
    assert one.input_domain.member(one(7))
    assert many.input_domain.member(many([1, 2, 3]))
    assert isinstance(many(np.array([1, 2, 3], dtype=kind)), np.ndarray)
    assert make(t.VectorDomain(t.AtomDomain(kind), 3), vector, 2)(
        np.array([1, 2, 3], dtype=kind)
    ).dtype == np.dtype(kind)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_stay_within_their_type(kind):
    noisy = t.laplace(t.VectorDomain(t.AtomDomain(kind)), t.L1Distance(), scale=1e6)
    info = np.iinfo(kind)
    drawn = noisy([int(info.max)] * 50 + [int(info.min)] * 50)
    assert int(info.min) <= min(drawn)
    assert max(drawn) <= int(info.max)


def test_laplace_figures():
    float_laplace = t.laplace(t.AtomDomain(float), ABSOLUTE, scale=25.0)
    assert float_laplace.map(12) == 0.48
    assert float_laplace.check(12, 0.48)
    assert float_laplace.map(0.1) == 0.004
    # Decimals as typed: three tenths at scale 1 cost three tenths, though 0.1 + 0.2 in floats is
    # above 0.3.
    assert t.laplace(t.AtomDomain(float), ABSOLUTE, scale=1.0).check(0.3, 0.3)
    assert t.laplace(t.AtomDomain(float), ABSOLUTE, scale=0.1).map(0.3) == 3.0
    # Rounded up where no float is exact.
    assert Fraction(repr(t.laplace(t.AtomDomain(float), ABSOLUTE, scale=3).map(1))) >= Fraction(
        1, 3
    )


@pytest.mark.parametrize("k", [-10, -3, 0, 2])
@pytest.mark.parametrize("kind", FLOATS)
def test_granularity_is_charged(kind, k):
    step = 2.0**k
    one = t.laplace(t.AtomDomain(kind), ABSOLUTE, scale=1.0, granularity=step)
    assert one.map(1) == 1 + step
    many = t.laplace(
        t.VectorDomain(t.AtomDomain(kind), size=4), t.L1Distance(), scale=1.0, granularity=step
    )
    assert many.map(1) == 1 + 4 * step
    gauss = t.gaussian(
        t.VectorDomain(t.AtomDomain(kind), size=4), t.L2Distance(), scale=1.0, granularity=step
    )
    assert gauss.map(1) == (1 + 2 * step) ** 2 / 2
    drawn = [one(0.3) for _ in range(20)]
    assert all((v / step).is_integer() for v in drawn)


def test_granularity_of_the_documented_figure():
    assert (
        t.laplace(t.AtomDomain(float), ABSOLUTE, scale=1.0, granularity=2.0**-10).map(1)
        == 1.0009765625
    )


def test_granularity_of_integers():
    assert t.laplace(t.AtomDomain(int), ABSOLUTE, 1, granularity=1).map(1) == 1
    coarse = t.laplace(t.AtomDomain(int), ABSOLUTE, 8, granularity=4)
    assert coarse.map(4) == 1
    assert all(coarse(5) % 4 == 0 for _ in range(20))


def test_an_irrational_charge_is_rounded_up():
    m = t.gaussian(t.VectorDomain(t.AtomDomain(float), size=3), t.L2Distance(), 1, granularity=1)
    true = (1 + math.sqrt(3)) ** 2 / 2
    assert true * (1 - 1e-15) <= m.map(1) <= true * (1 + 1e-15)


def test_gaussian_figures():
    m = t.gaussian(t.AtomDomain(float), ABSOLUTE, scale=1.5)
    assert m.map(1) == pytest.approx(2 / 9, rel=1e-15)
    assert m.map(1) >= Fraction(2, 9)
    assert t.gaussian(t.AtomDomain(int), ABSOLUTE, scale=2).check(1, 0.125)
    assert not t.gaussian(t.AtomDomain(int), ABSOLUTE, scale=2).check(1, 0.124)


def test_gaussian_in_other_measures():
    exact = t.gaussian(t.AtomDomain(float), ABSOLUTE, 4, output_measure=t.SmoothedMaxDivergence())
    profile = exact.map(1)
    assert profile.delta(0) == pytest.approx(2 * stats.norm.cdf(1 / 8) - 1, rel=1e-12)
    assert profile.epsilon(profile.delta(0.5)) == pytest.approx(0.5, rel=1e-9)
    assert profile.epsilon(0) == math.inf
    assert exact.check(1, (0.5, profile.delta(0.5)))
    assert not exact.check(1, (0.49, profile.delta(0.5)))
    assert exact.map(0).delta(0) == 0
    # The exact profile is below every one that follows from ρ.
    through_rho = t.zcdp_to_approx(t.gaussian(t.AtomDomain(float), ABSOLUTE, 4)).map(1)
    for epsilon in (0, 0.1, 0.5, 1, 2):
        assert profile.delta(epsilon) < through_rho.delta(epsilon)
    with pytest.raises(errors.InvalidArgument):
        t.gaussian(t.AtomDomain(float), ABSOLUTE, 4, output_measure=t.MaxDivergence())


def test_laplace_in_zcdp():
    real = t.laplace(
        t.AtomDomain(float), ABSOLUTE, 1, output_measure=t.ZeroConcentratedDivergence()
    )
    whole = t.laplace(t.AtomDomain(int), ABSOLUTE, 1, output_measure=t.ZeroConcentratedDivergence())
    assert real.map(1) == pytest.approx(math.exp(-1), rel=1e-12)
    assert whole.map(1) == pytest.approx(math.tanh(0.5), rel=1e-12)
    with pytest.raises(errors.InvalidArgument):
        t.laplace(t.AtomDomain(float), ABSOLUTE, 1, output_measure=t.Approximate())
    vector = t.VectorDomain(t.AtomDomain(int))
    with pytest.raises(
        errors.InvalidArgument, match="on VectorDomain"
    ):  # how the loss spreads over entries is not proven
        t.laplace(vector, t.L1Distance(), 1, output_measure=t.SmoothedMaxDivergence())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", [float, np.float32, int, np.uint8])
@pytest.mark.parametrize(("scale", "d_in"), [(1, 1), (2, 1), (0.5, 3), (3, 7)])
def test_laplace_profile_and_renyi_are_those_of_the_law(kind, scale, d_in):
    """Held against the divergences of the two output distributions, measured."""
    p, q = (
        f(d_in) for f in ((lambda d: stats.laplace(0, scale)), (lambda d: stats.laplace(d, scale)))
    )
    if np.dtype(kind).kind in "iu":
        p, q = stats.dlaplace(1 / scale), stats.dlaplace(1 / scale, loc=d_in)
    profile = t.laplace(
        t.AtomDomain(kind), ABSOLUTE, scale, output_measure=t.SmoothedMaxDivergence()
    ).map(d_in)
    for epsilon in (0, 0.1, 0.5, 1, 2.9):
        assert profile.delta(epsilon) == pytest.approx(
            t.hockey_stick_divergence(p, q, epsilon), rel=1e-8, abs=1e-14
        )
    assert profile.epsilon(0) == pytest.approx(d_in / scale, rel=1e-14)
    assert profile.delta(profile.epsilon(0.01)) <= 0.01
    assert profile.delta(profile.epsilon(0.01) * (1 - 1e-9)) > 0.01 or profile.epsilon(0.01) == 0
    curve = t.laplace(t.AtomDomain(kind), ABSOLUTE, scale, output_measure=t.RenyiDivergence()).map(
        d_in
    )
    for order in (1.5, 2, 8):
        assert curve(order) == pytest.approx(t.renyi_divergence(p, q, order), rel=1e-8)
        at_one = t.laplace(
            t.AtomDomain(kind), ABSOLUTE, scale, output_measure=t.RenyiDivergence(order)
        )
        assert at_one.map(d_in) == curve(order)
        assert at_one.map(0) == 0
    assert profile.delta(0.1) <= t.fix_delta(profile, profile.delta(0.1))[1]


@pytest.mark.parametrize("kind", [float, int])
def test_laplace_renyi_of_a_vector_is_that_of_one_entry_at_worst(kind):
    domain = t.VectorDomain(t.AtomDomain(kind), size=3)
    curve = t.laplace(domain, t.L1Distance(), 2, output_measure=t.RenyiDivergence()).map(5)
    single = t.laplace(t.AtomDomain(kind), ABSOLUTE, 2, output_measure=t.RenyiDivergence())
    for order in (1.1, 2, 30):
        assert curve(order) == single.map(5)(order)
        for split in ((1, 4, 0), (2, 2, 1), (1, 1, 3)):
            assert sum(single.map(d)(order) for d in split) <= curve(order)


def test_laplace_profile_with_granularity():
    step = 2.0**-10
    real = t.laplace(
        t.AtomDomain(float), ABSOLUTE, 1, granularity=step, output_measure=t.SmoothedMaxDivergence()
    )
    assert real.map(1).delta(0.5) == pytest.approx(-math.expm1((0.5 - 1 - step) / 2), rel=1e-12)
    whole = t.laplace(
        t.AtomDomain(int), ABSOLUTE, 8, granularity=4, output_measure=t.SmoothedMaxDivergence()
    )
    two = t.laplace(t.AtomDomain(int), ABSOLUTE, 2, output_measure=t.SmoothedMaxDivergence())
    assert whole.map(5).delta(0.25) == two.map(2).delta(0.25)


@pytest.mark.parametrize(
    ("kind", "law", "value"),
    [
        (float, "laplace", 3.7),
        (np.float32, "gaussian", 3.5),
        (float, "laplace", 1e-25),
        (float, "gaussian", 1e-25),
    ],
)
def test_floats_get_exactly_this_noise(kind, law, value):
    """Kolmogorov-Smirnov at 20,000 draws; false alarm 1e-7.
    The tiny values have bits below the grid.
    """
    make = t.laplace if law == "laplace" else t.gaussian
    size = 20_000 if value > 1 else 2_000
    metric = t.L1Distance() if law == "laplace" else t.L2Distance()
    drawn = make(t.VectorDomain(t.AtomDomain(kind), size), metric, scale=2.5)([kind(value)] * size)
    law_of = stats.laplace(value, 2.5) if law == "laplace" else stats.norm(value, 2.5)
    assert stats.kstest(drawn, law_of.cdf).pvalue > 1e-7
    assert (
        stats.kstest(drawn, type(law_of.dist)().freeze(value + 0.3, 2.5).cdf).pvalue < 1e-3
        or size < 20_000
    )


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_two_ways_to_draw_agree(law):
    """The rare path (a value with bits below the grid) has the law of the
    common one, shifted by those bits.
    """
    noise = Additive(LAW[law], Fraction(1), t.AtomDomain(float), None)
    below = float(noise.step) / 4
    rare = np.array(noise.noisy([below] * 3000), dtype=float) * float(noise.step)
    assert (
        stats.kstest(rare, (stats.laplace if law == "laplace" else stats.norm)().cdf).pvalue > 1e-7
    )


def test_the_rare_path_rounds_where_it_should():
    """With all random bits fixed, x + Z is rounded to the grid:
    half a step more in x moves half of the draws.
    """
    noise = Additive(LAW["laplace"], Fraction(1), t.AtomDomain(float), None)
    step = float(noise.step)
    rng = np.random.default_rng(7)
    moved = 0
    for _ in range(200):
        words = rng.integers(0, 2**64, 64, dtype=np.uint64)

        def fixed(words=words):
            queue = iter(words)
            return lambda count: np.array([next(queue) for _ in range(count)], dtype=np.uint64)

        with substitute(fixed()):
            noise.sampler()(noise.sampler_scale, 0)
            low = noise.noisy([step * 2.0**-40])[0]
        with substitute(fixed()):
            high = noise.noisy([step / 2])[0]
        assert high - low in (0, 1)
        moved += high - low
    assert 50 < moved < 150


def test_infinities_stay():
    noisy = t.laplace(t.VectorDomain(t.AtomDomain(float), size=2), t.L1Distance(), 1)(
        [math.inf, 0.0]
    )
    assert noisy[0] == math.inf
    assert math.isfinite(noisy[1])
    assert t.laplace(t.AtomDomain(float), ABSOLUTE, 1)(-math.inf) == -math.inf


def test_extreme_numbers():
    assert abs(t.laplace(t.AtomDomain(float), ABSOLUTE, 1e-300)(1e300)) == 1e300
    assert t.laplace(t.AtomDomain(float), ABSOLUTE, 1e300)(0.0) != 0
    assert t.gaussian(t.AtomDomain(float), ABSOLUTE, 1.0)(5e-324) != 5e-324
    assert abs(t.laplace(t.AtomDomain(np.float32), ABSOLUTE, 1e38)(3e38)) <= float(
        np.finfo(np.float32).max
    )


@pytest.mark.parametrize("make", [t.laplace, t.gaussian])
@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, "1", None, True, (1,)])
def test_scales_that_cannot_be(make, scale):
    with pytest.raises(errors.InvalidArgument):
        make(t.AtomDomain(float), ABSOLUTE, scale)


@pytest.mark.parametrize("make", [t.laplace, t.gaussian])
@pytest.mark.parametrize("kind", FLOATS)
def test_every_power_of_two_is_a_granularity(kind, make):
    for k in (*range(-1074, 1024, 37), -1073, -24, -10, 0, 1, 23, 24, 52, 53, 60, 61, 1023):
        m = make(t.AtomDomain(kind), ABSOLUTE, scale=1.0, granularity=2.0**k)
        step = Fraction(2) ** k
        # finer steps than that of the noise ask for no rounding
        charged = 1 + (step if k >= -61 else 0)
        reached = charged if make is t.laplace else charged**2 / 2
        if k < 500:
            assert reached <= limit(m.map(1), "loss") <= reached * (1 + Fraction(1, 2**50))
    for step in (2**20, Fraction(1, 2**24), np.float64(2.0**-24), np.float32(2.0**-24), 2.0**-1074):
        assert t.laplace(t.AtomDomain(kind), ABSOLUTE, 1, granularity=step).map(0) == 0


@pytest.mark.parametrize("k", [-1074, -61, -24, 0, 60])
def test_releases_lie_on_the_grid_that_was_asked_for(k):
    noisy = t.laplace(t.AtomDomain(float), ABSOLUTE, scale=2.0**10, granularity=2.0**k)
    assert all(
        (Fraction(noisy(v)) / Fraction(2) ** k).denominator == 1
        for v in (0.1, 1e-300, -3.75, 2.0**70)
    )


@pytest.mark.parametrize(
    "granularity", [0, -1, 3, 0.1, math.nextafter(2.0**-24, 1), math.nan, math.inf, "a"]
)
def test_granularities_that_cannot_be(granularity):
    with pytest.raises(errors.InvalidArgument):
        t.laplace(t.AtomDomain(float), ABSOLUTE, 1, granularity=granularity)


@pytest.mark.parametrize(
    ("domain", "metric", "error"),
    [
        (t.AtomDomain(str), ABSOLUTE, errors.DomainMismatch),
        (t.AtomDomain(bool), ABSOLUTE, errors.DomainMismatch),
        (t.AtomDomain(float, nan=True), ABSOLUTE, errors.DomainMismatch),
        (t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L1Distance(), errors.DomainMismatch),
        (t.AtomDomain(int), t.L1Distance(), errors.MetricMismatch),
        (t.VectorDomain(t.AtomDomain(int)), ABSOLUTE, errors.MetricMismatch),
        (t.VectorDomain(t.AtomDomain(int)), t.L2Distance(), errors.MetricMismatch),
    ],
)
def test_laplace_refuses_what_it_cannot_hide(domain, metric, error):
    with pytest.raises(error):
        t.laplace(domain, metric, 1)


def test_a_grid_that_does_not_suit_the_scale_is_refused():
    with pytest.raises(errors.InvalidArgument, match="too large or too small"):
        t.laplace(t.AtomDomain(float), ABSOLUTE, 10**400)
    with pytest.raises(errors.InvalidArgument):
        t.laplace(t.AtomDomain(int), ABSOLUTE, 1, granularity=0.5)
    with pytest.raises(errors.DomainMismatch, match="public"):
        t.laplace(t.VectorDomain(t.AtomDomain(float)), t.L1Distance(), 4, granularity=2)
    with pytest.raises(errors.DomainMismatch, match="public"):
        t.gaussian(t.VectorDomain(t.AtomDomain(float)), t.L2Distance(), 4, granularity=2.0**-10)
    with pytest.raises(errors.DomainMismatch, match="public"):
        t.gaussian(t.VectorDomain(t.AtomDomain(float)), t.L2Distance(), 4, granularity=2)


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_the_length_of_a_vector_may_be_private(kind):
    domain = t.VectorDomain(t.AtomDomain(kind))
    assert t.laplace(domain, t.L1Distance(), 4).map(3) == 0.75
    assert t.gaussian(domain, t.L2Distance(), 3).map(3) == 0.5
    assert len(t.laplace(domain, t.L1Distance(), 4)([1, 2, 3])) == 3
    assert (
        t.laplace(domain, t.L1Distance(), 4, granularity=2.0**-100 if kind in FLOATS else 1).map(3)
        == 0.75
    )
    # Vectors of different length are infinitely far apart in either metric: nothing is promised for
    # them.
    assert t.L1Distance().distance([1, 2], [1]) == t.L2Distance().distance([1, 2], [1]) == math.inf


def test_integers_that_differ_pay_for_their_rounding():
    """At most l1 integers differ, so a coarse grid needs no public length;
    held against all small vectors.
    """
    for granularity, size in ((2, None), (4, None), (4, 2), (4, 50)):
        domain = t.VectorDomain(t.AtomDomain(int), size)
        one = t.laplace(domain, t.L1Distance(), 1, granularity=granularity)
        two = t.gaussian(domain, t.L2Distance(), 1, granularity=granularity)
        rounded = {v: math.floor(v / granularity + 0.5) * granularity for v in range(-6, 7)}
        for a, b in itertools.product(itertools.product(range(-3, 4), repeat=2), repeat=2):
            l1, l2 = (metric.distance(a, b) for metric in (t.L1Distance(), t.L2Distance()))
            moved = [abs(rounded[x] - rounded[y]) for x, y in zip(a, b, strict=True)]
            assert sum(moved) <= one.map(l1)
            assert Fraction(sum(m * m for m in moved), 2) <= limit(
                two.map(math.nextafter(l2, 9)), "ρ"
            )
    assert (
        t.laplace(t.VectorDomain(t.AtomDomain(int)), t.L1Distance(), 1, granularity=4).map(3) == 15
    )


def test_exact_losses_are_those_of_the_shared_formulas():
    for l1, scale in ((1, 3), (7, 11), (12, 25)):
        m = t.laplace(t.AtomDomain(float), ABSOLUTE, scale)
        assert m.map(l1) == pytest.approx(privacy.laplace_epsilon(l1, scale), rel=1e-15)
        g = t.gaussian(t.AtomDomain(float), ABSOLUTE, scale)
        assert g.map(l1) == pytest.approx(privacy.gaussian_rho(l1, scale), rel=1e-15)


# Randomized response and selection


def test_randomized_response_figures():
    four = t.randomized_response(["A", "B", "C", "D"], prob=0.75)
    assert four.check(1, math.log(9.0))
    assert not four.check(1, math.log(8.999))
    two = t.randomized_response(t.AtomDomain(bool), t.DiscreteDistance(), prob=0.75)
    assert two.check(1, math.log(3.0))
    assert not two.check(1, math.log(2.999))
    assert two.map(0) == 0
    assert t.randomized_response(t.AtomDomain(bool), t.DiscreteDistance(), 0.5).map(1) == 0
    assert t.randomized_response(prob=0.75)(True) in (True, False)
    space = t.AtomDomain(str), t.DiscreteDistance()
    for m in (
        t.randomized_response(*space, prob=0.75, categories=["A", "B", "C", "D"]),
        t.randomized_response(*space, 0.75, ["A", "B", "C", "D"]),
        t.randomized_response(*space, ["A", "B", "C", "D"], 0.75),
    ):
        assert m.map(1) == four.map(1)


def test_randomized_response_answers():
    """20,000 answers; each count within 6 standard deviations (false alarm below 1e-8)."""
    m = t.randomized_response(["a", "b", "c"], prob=0.6)
    answers = [m("b") for _ in range(20_000)]
    for category, chance in (("a", 0.2), ("b", 0.6), ("c", 0.2)):
        assert abs(answers.count(category) - 20_000 * chance) < 6 * math.sqrt(
            20_000 * chance * (1 - chance)
        )
    strangers = [m("x") for _ in range(3_000)]
    assert all(abs(strangers.count(c) - 1000) < 160 for c in "abc")


def test_randomized_response_is_what_it_says():
    # The distributions of the answers, held against the map by max_divergence.
    p, q = {"a": 0.6, "b": 0.2, "c": 0.2}, {"a": 0.2, "b": 0.6, "c": 0.2}
    m = t.randomized_response(["a", "b", "c"], prob=0.6)
    assert t.max_divergence(p, q) == pytest.approx(m.map(1), rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.randomized_response(["a"], prob=0.7),
        lambda: t.randomized_response(["a", "a"], prob=0.7),
        lambda: t.randomized_response(["a", "b"], prob=0.4),
        lambda: t.randomized_response(["a", "b"], prob=1.0),
        lambda: t.randomized_response(["a", "b"]),
        lambda: t.randomized_response(["a", "b"], prob=math.nan),
        lambda: t.randomized_response(t.AtomDomain(str), t.DiscreteDistance(), 0.7),
        lambda: t.randomized_response("ab", prob=0.7),
    ],
)
def test_randomized_response_refuses(make):
    with pytest.raises(errors.InvalidArgument):
        make()


def test_randomized_response_wants_its_space():
    with pytest.raises(errors.MetricMismatch):
        t.randomized_response(t.AtomDomain(bool), ABSOLUTE, 0.7)
    with pytest.raises(errors.DomainMismatch):
        t.randomized_response(
            t.VectorDomain(t.AtomDomain(bool)), t.DiscreteDistance(), 0.7, [True, False]
        )
    with pytest.raises(errors.DomainMismatch):
        t.randomized_response(t.AtomDomain(int), t.DiscreteDistance(), 0.7, ["a", "b"])


@pytest.mark.parametrize("kind", [int, np.uint8, float])
def test_noisy_max(kind):
    space = t.VectorDomain(t.AtomDomain(kind)), t.LinfDistance()
    assert t.noisy_max(*space, scale=1.0).map(1) == 2
    assert t.noisy_max(space[0], t.LinfDistance(monotonic=True), scale=1.0).map(1) == 1
    rho = t.noisy_max(*space, scale=1.0, output_measure=t.ZeroConcentratedDivergence())
    assert rho.map(1) == 0.5
    assert {rho([0, 0, 20, 90]) for _ in range(30)} == {3}
    assert {t.noisy_max(*space, scale=1.0)([0, 0, 20, 90]) for _ in range(30)} == {3}
    for measure in (t.MaxDivergence(), t.ZeroConcentratedDivergence()):
        least = t.noisy_max(*space, scale=1.0, negate=True, output_measure=measure)
        assert {least([90, 0, 90, 90]) for _ in range(30)} == {1}
        if kind is int:
            assert least([0, 2**63 - 1, -(2**63)]) == 2


@pytest.mark.parametrize("kind", [int, float])
def test_noisy_max_is_permute_and_flip(kind):
    """Two candidates, the worse by x scales: it is chosen with probability exp(-x)/2.
    6 standard deviations.
    """
    choose = t.noisy_max(t.VectorDomain(t.AtomDomain(kind)), t.LinfDistance(), scale=2)
    worse = sum(choose([kind(3), kind(1)]) for _ in range(4000))
    chance = math.exp(-1) / 2
    assert abs(worse - 4000 * chance) < 6 * math.sqrt(4000 * chance * (1 - chance))


@pytest.mark.parametrize("kind", [int, float])
def test_noisy_max_in_zcdp_is_the_exponential_mechanism(kind):
    """Two candidates, the worse by one scale: chosen with probability 1/(1+e).
    6 standard deviations of 4000 draws.
    """
    choose = t.noisy_max(
        t.VectorDomain(t.AtomDomain(kind)),
        t.LinfDistance(),
        scale=2,
        output_measure=t.ZeroConcentratedDivergence(),
    )
    worse = sum(choose([kind(3), kind(1)]) for _ in range(4000))
    chance = 1 / (1 + math.e)
    assert abs(worse - 4000 * chance) < 6 * math.sqrt(4000 * chance * (1 - chance))
    # ρ = ε²/8 against the Rényi divergences of neighbours, scores moving by 1 in opposite
    # directions.
    for scores in ([3, 1, 0], [0, 0, 0], [5, 5, -2]):
        p, q = (
            np.exp(np.array(s) / 2) for s in (scores, [scores[0] - 1, *(s + 1 for s in scores[1:])])
        )
        for order in (1.01, 2, 16):
            loss = t.renyi_divergence(p / p.sum(), q / q.sum(), order)
            assert loss <= choose.map(1) * order


def test_noisy_max_refuses():
    space = t.VectorDomain(t.AtomDomain(int)), t.LinfDistance()
    with pytest.raises(errors.MetricMismatch):
        t.noisy_max(space[0], t.L1Distance(), 1)
    with pytest.raises(errors.DomainMismatch):
        t.noisy_max(t.AtomDomain(int), t.LinfDistance(), 1)
    for bad in (0, -1, math.nan, t.MaxDivergence()):
        with pytest.raises(errors.InvalidArgument):
            t.noisy_max(*space, bad)
    with pytest.raises(errors.InvalidArgument):
        t.noisy_max(*space, 1)([])
    with pytest.raises(errors.InvalidArgument):
        t.noisy_max(*space, 1, output_measure=t.SmoothedMaxDivergence())
