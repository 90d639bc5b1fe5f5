"""Keys, canonical noise, choices over intervals, thresholds of either sign: laws against claims."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpframe.theory as t
from dpframe import errors

COUNTS = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L01InfDistance()


# Thresholds of either sign


@pytest.mark.parametrize("threshold", [-6, -1, 0, 1, 3])
@pytest.mark.parametrize("negate", [False, True])
def test_a_threshold_may_lie_on_the_other_side_of_zero(threshold, negate):
    """δ against the exact law of one key that only one of two neighbours has."""
    m = t.laplace_threshold(*COUNTS, scale=2.0, threshold=threshold, negate=negate)
    a = math.exp(-0.5)
    chances = {x: (1 - a) / (1 + a) * a ** abs(x) for x in range(-400, 401)}
    for value in (1, 2, -1, -2):
        kept = sum(p for x, p in chances.items() if (value + x <= threshold if negate else value + x >= threshold))
        assert kept <= m.map((1, abs(value), abs(value)))[1] * (1 + 1e-12)
        if (value < 0) == negate:
            assert kept == pytest.approx(m.map((1, abs(value), abs(value)))[1], rel=1e-12)


def test_what_is_kept_is_on_the_right_side():
    """400 draws of each: every shown value is on its side; a key at the threshold is shown about every other time."""
    for make, metric in ((t.laplace_threshold, t.L01InfDistance()), (t.gaussian_threshold, t.L02InfDistance())):
        for kind in (int, float):
            space = t.MapDomain(t.AtomDomain(str), t.AtomDomain(kind)), metric
            up = make(*space, scale=1.0, threshold=-3, negate=False)
            down = make(*space, scale=1.0, threshold=3, negate=True)
            shown = [up({"a": kind(-3), "b": kind(50)}) for _ in range(200)]
            assert all("b" in s and all(v >= -3 for v in s.values()) for s in shown)
            assert 40 < sum("a" in s for s in shown) < 190  # false alarm below 1e-9
            hidden = [down({"a": kind(3), "b": kind(50)}) for _ in range(200)]
            assert all("b" not in s and all(v <= 3 for v in s.values()) for s in hidden)


def test_thresholds_for_a_large_delta_can_be_used():
    for delta in (0.6, 0.9, 0.99):
        lowest = t.threshold(delta, 1, "discrete_laplace", 10.0)
        m = t.laplace_threshold(*COUNTS, scale=10.0, threshold=lowest, negate=False)
        assert m.map((1, 1, 1))[1] <= delta
        lower = t.laplace_threshold(*COUNTS, scale=10.0, threshold=lowest - 1, negate=False)
        assert lower.map((1, 1, 1))[1] > delta
    assert t.threshold(0.99, 1, "discrete_laplace", 10.0) < 0
    with pytest.raises(errors.InvalidArgument):
        t.laplace_threshold(*COUNTS, scale=1.0, threshold=1, negate="no")


# Keys


@pytest.mark.parametrize("pre_threshold", [1, 4])
@pytest.mark.parametrize("groups", [1, 3])
def test_keys_are_kept_as_often_as_is_said(groups, pre_threshold):
    """20,000 keys of each size: within 6 standard deviations (false alarm below 1e-8)."""
    rule = t.KeySelection(1.0, 0.05, groups=groups, pre_threshold=pre_threshold)
    for units in (0, 1, 2, 3, 5, 8, 12, 30):
        chance = rule.keep_probability(units)
        kept = int(rule.keep(np.full(20_000, units)).sum())
        assert abs(kept - 20_000 * chance) <= 6 * math.sqrt(20_000 * chance * (1 - chance)) + 1e-9
    assert rule.keep_probability(pre_threshold - 1) == 0
    assert rule.keep_probability(pre_threshold) == pytest.approx(-math.expm1(math.log1p(-0.05) / groups), rel=1e-12)
    assert rule.keep_probability(10**6) == 1


@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("pre_threshold", [1, 3])
def test_select_keys_is_as_private_as_it_says(units, pre_threshold):
    """The law of one key at every pair of counts that differ by the units: its divergence is within the claim."""
    m = t.select_keys(*COUNTS, epsilon=0.7, delta=1e-2, pre_threshold=pre_threshold)
    rule = t.KeySelection(0.7, 1e-2, pre_threshold=pre_threshold)
    epsilon, delta = m.map((1, units, units))
    for n in range(40):
        chances = [rule.keep_probability(n), rule.keep_probability(n + units)]
        for p, q in itertools.permutations(chances):
            pairs = [1 - p, p], [1 - q, q]
            assert t.hockey_stick_divergence(*pairs, epsilon) <= delta * (1 + 1e-9)
    assert m.check((1, 1, 1), (0.7, 1e-2))
    three = t.select_keys(*COUNTS, epsilon=0.6, delta=1e-3, groups=3)
    assert three.check((3, 3, 1), (0.6, 1e-3))
    assert three.map((1, 1, 1))[0] == pytest.approx(0.2)


def test_select_keys_shows_keys_in_an_order_of_their_own():
    m = t.select_keys(*COUNTS, epsilon=1.0, delta=1e-3)
    assert m({"b": 1000, "a": 1000, "c": 0, "d": -5}) == m({"a": 1000, "d": -5, "b": 1000}) == ["a", "b"]
    for wrong in (
        lambda: t.select_keys(*COUNTS, epsilon=0, delta=0.1),
        lambda: t.select_keys(*COUNTS, epsilon=1, delta=0),
        lambda: t.select_keys(*COUNTS, epsilon=1, delta=0.1, groups=0),
        lambda: t.select_keys(*COUNTS, epsilon=1, delta=0.1, pre_threshold=0),
        lambda: t.select_keys(COUNTS[0], t.L1Distance(), epsilon=1, delta=0.1),
        lambda: t.select_keys(t.MapDomain(t.AtomDomain(str), t.AtomDomain(float)), COUNTS[1], 1, 0.1),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()


@pytest.mark.parametrize(("law", "make"), [("laplace", t.laplace_threshold), ("gaussian", t.gaussian_threshold)])
def test_threshold_keep_probabilities(law, make):
    """1,000 draws: within 6 standard deviations (false alarm below 3e-7, where few are kept)."""
    space = COUNTS if law == "laplace" else (COUNTS[0], t.L02InfDistance())
    m = make(*space, scale=2.0, threshold=6)
    for units in (1, 4, 6, 9):
        chance = t.threshold_keep_probability(units, 2.0, 6, law)
        kept = sum(bool(m({"a": units})) for _ in range(1000))
        assert abs(kept - 1000 * chance) <= 6 * math.sqrt(1000 * chance * (1 - chance))
    assert t.threshold_keep_probability(3, 2.0, 6, law, pre_threshold=4) == 0
    assert t.threshold_keep_probability(5, 2.0, 6, law, 3) == t.threshold_keep_probability(3, 2.0, 6, law)


# Canonical noise


def tulap(x, b, q):
    """The distribution function of the (truncated) Tulap law, by its formula."""

    def whole(x):
        k = np.rint(x)
        lower = b ** (-k) / (1 + b) * (b + (x - k + 0.5) * (1 - b))
        upper = 1 - b**k / (1 + b) * (b + (k - x + 0.5) * (1 - b))
        return np.where(k <= 0, lower, upper)

    return np.clip((whole(x) - q / 2) / (1 - q), 0, 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("delta", [0, 1e-6, 0.05])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_canonical_noise_has_its_law(epsilon, delta):
    """Kolmogorov-Smirnov at 1,500 draws; false alarm 1e-7, with another ε as the negative control."""
    m = t.canonical_noise(t.AtomDomain(float), t.AbsoluteDistance(), d_in=2.0, d_out=(epsilon, delta))
    drawn = (np.array([m(5.0) for _ in range(1500)]) - 5) / 2
    b = math.exp(-epsilon)
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    assert stats.kstest(drawn, lambda x: tulap(x, b, q)).pvalue > 1e-7
    assert stats.kstest(drawn * 2, lambda x: tulap(x, b, q)).pvalue < 1e-7


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_canonical_noise_is_as_private_as_it_says_and_no_more(epsilon, delta):
    """The divergence of the law and its shift, on the cells between the points where the density changes."""
    b = math.exp(-epsilon)
    q = 2 * delta * b / (1 - b + 2 * delta * b)
    for shift in (0.5, 1.0):
        edges = np.unique(np.concatenate([np.linspace(-60, 60, 24_001), np.arange(-60, 60) + 0.5]))
        p = np.diff(tulap(edges, b, q), prepend=0, append=1)
        other = np.diff(tulap(edges - shift, b, q), prepend=0, append=1)
        reached = np.maximum(p - math.exp(epsilon) * other, 0).sum()
        assert reached <= delta + 1e-9
        if shift == 1.0:
            assert reached >= delta * (1 - 1e-2) - 1e-9
    m = t.canonical_noise(t.AtomDomain(float), t.AbsoluteDistance(), 1.0, (epsilon, delta))
    assert m.map(1.0) == (epsilon, delta)
    assert m.map(2.0)[0] == pytest.approx(2 * epsilon)
    assert m.map(0) == (0, 0)


def test_canonical_noise_refuses():
    space = t.AtomDomain(float), t.AbsoluteDistance()
    for wrong in (
        lambda: t.canonical_noise(*space, 0, (1, 0)),
        lambda: t.canonical_noise(*space, 1, (0, 0.1)),
        lambda: t.canonical_noise(*space, 1, (1, 1)),
        lambda: t.canonical_noise(*space, 1, 1),
        lambda: t.canonical_noise(t.AtomDomain(int), space[1], 1, (1, 0)),
        lambda: t.canonical_noise(space[0], t.L1Distance(), 1, (1, 0)),
        lambda: t.canonical_noise(t.AtomDomain(float, nan=True), space[1], 1, (1, 0)),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()
    assert t.canonical_noise(*space, 1, (1, 0))(math.inf) == math.inf


# Choices over intervals


def exact_law(values, low, high, alpha, scale):
    """The chance of every whole number, by the definition of the exponential mechanism."""
    a, b = Fraction(alpha).limit_denominator(100).as_integer_ratio()
    weights = {}
    for c in range(low, high + 1):
        score = -abs((b - a) * sum(v < c for v in values) - a * sum(v > c for v in values))
        weights[c] = math.exp(score / (b * scale))
    total = sum(weights.values())
    return {c: w / total for c, w in weights.items()}


@pytest.mark.parametrize("alpha", [0.25, 1.0])
def test_interval_choices_have_their_law(alpha):
    """A chi-square test at 3,000 draws; false alarm 1e-7, with another scale as the negative control."""
    domain = t.VectorDomain(t.AtomDomain(int, bounds=(0, 9)))
    m = t.interval_choice(domain, t.SymmetricDistance(), alpha, scale=1.0)
    values = [1, 1, 2, 6, 9]
    counts = np.bincount([m(values) for _ in range(3000)], minlength=10)

    def pvalue(scale):
        law = exact_law(values, 0, 9, alpha, scale)
        return stats.chisquare(counts, [3000 * law[c] for c in range(10)]).pvalue

    assert pvalue(1.0) > 1e-7
    assert pvalue(1.6) < 1e-7


@pytest.mark.parametrize("alpha", [0.25, 0.5])
def test_interval_choices_by_brute_force(alpha):
    """The exact laws of all neighbours of up to 3 records from 0 to 3."""
    for metric in (t.SymmetricDistance(), t.ChangeOneDistance()):
        domain = t.VectorDomain(t.AtomDomain(int, bounds=(0, 3)))
        m = t.interval_choice(domain, metric, alpha, scale=1.0)
        datasets = [c for n in range(4) for c in itertools.combinations_with_replacement(range(4), n)]
        worst = 0.0
        for a, b in itertools.permutations(datasets, 2):
            if metric.distance(a, b) == 1:
                worst = max(worst, t.max_divergence(exact_law(a, 0, 3, alpha, 1), exact_law(b, 0, 3, alpha, 1)))
        assert worst <= m.map(1) * (1 + 1e-12)
        assert worst > 0.3 * m.map(1)


def test_interval_choices_of_floats():
    domain = t.VectorDomain(t.AtomDomain(float, bounds=(0, 100)))
    m = t.interval_choice(domain, t.SymmetricDistance(), 0.5, scale=0.5)
    values = np.random.default_rng(1).normal(40, 5, 400).clip(0, 100)
    released = [m(values) for _ in range(30)]
    assert all(abs(v - np.median(values)) < 5 for v in released)  # 5 are some 100 ranks, 200 scales
    assert all((Fraction(v) / Fraction(2) ** -25).denominator == 1 for v in released)
    assert 0 <= m([]) <= 100
    with pytest.raises(errors.MissingBounds):
        t.interval_choice(t.VectorDomain(t.AtomDomain(float)), t.SymmetricDistance(), 0.5, 1.0)
    with pytest.raises(errors.InvalidArgument):
        t.interval_choice(domain, t.SymmetricDistance(), 1.5, 1.0)


def test_masses_of_events():
    assert t.event_mass({"a": 0.5, "b": 0.5}, {"a"}) == 0.5
    assert t.event_mass([0.25, 0.25, 0.5], lambda k: k > 0) == 0.75
    assert t.event_mass(stats.norm(), (-1.959963984540054, 1.959963984540054)) == pytest.approx(0.95, rel=1e-12)
    assert t.event_mass(stats.binom(10, 0.5), {5}) == pytest.approx(252 / 1024, rel=1e-12)
    assert t.zcdp_to_epsilon(t.rho_within(1, 1e-6), 1e-6) <= 1


# The k best


@pytest.mark.parametrize(
    ("measure", "loss"), [(t.MaxDivergence(), 4), (t.ZeroConcentratedDivergence(), 1)], ids=["pure", "zcdp"]
)
def test_the_k_best(measure, loss):
    m = t.noisy_top_k(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), 2, 1.0, output_measure=measure)
    assert m.map(1) == loss
    assert m([0, 0, 100, 200]) == [3, 2]
    assert m([7]) == [0]
    assert sorted(m([5, 5])) == [0, 1]
    for k in (0, 1.5, True):
        with pytest.raises(errors.InvalidArgument):
            t.noisy_top_k(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), k, 1.0)


def test_the_second_best_has_its_law():
    """Exponential mechanism in two rounds over three scores; 4,000 draws, chi-square, false alarm 1e-7."""
    zcdp = t.ZeroConcentratedDivergence()
    m = t.noisy_top_k(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), 2, 1.0, output_measure=zcdp)
    weights = [1.0, math.exp(1), math.exp(2)]
    pairs = list(itertools.permutations(range(3), 2))
    law = [weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i]) for i, j in pairs]
    drawn = [tuple(m([0, 1, 2])) for _ in range(4000)]
    counts = [drawn.count(pair) for pair in pairs]
    assert stats.chisquare(counts, [4000 * p for p in law]).pvalue > 1e-7
    assert stats.chisquare(counts, [4000 / 6] * 6).pvalue < 1e-7
