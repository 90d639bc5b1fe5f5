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
        kept = sum(
            p
            for x, p in chances.items()
            if (value + x <= threshold if negate else value + x >= threshold)
        )
        assert kept <= m.map((1, abs(value), abs(value)))[1] * (1 + 1e-12)
        if (value < 0) == negate:
            assert kept == pytest.approx(m.map((1, abs(value), abs(value)))[1], rel=1e-12)


def test_what_is_kept_is_on_the_right_side():
    """400 draws of each: every shown value is on its side;
    a key at the threshold is shown about every other time.
    """
    for make, metric in (
        (t.laplace_threshold, t.L01InfDistance()),
        (t.gaussian_threshold, t.L02InfDistance()),
    ):
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


# Canonical noise


def tulap(x, b, q):
    """The distribution function of the (truncated) Tulap law, by its formula."""

    def whole(x):
        k = np.rint(x)
        lower = b ** (-k) / (1 + b) * (b + (x - k + 0.5) * (1 - b))
        upper = 1 - b**k / (1 + b) * (b + (k - x + 0.5) * (1 - b))
        return np.where(k <= 0, lower, upper)

    return np.clip((whole(x) - q / 2) / (1 - q), 0, 1)


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


def test_masses_of_events():
    assert t.event_mass({"a": 0.5, "b": 0.5}, {"a"}) == 0.5
    assert t.event_mass([0.25, 0.25, 0.5], lambda k: k > 0) == 0.75
    assert t.event_mass(stats.norm(), (-1.959963984540054, 1.959963984540054)) == pytest.approx(
        0.95, rel=1e-12
    )
    assert t.event_mass(stats.binom(10, 0.5), {5}) == pytest.approx(252 / 1024, rel=1e-12)
    assert t.zcdp_to_epsilon(t.rho_within(1, 1e-6), 1e-6) <= 1


# The k best


@pytest.mark.parametrize(
    ("measure", "loss"),
    [(t.MaxDivergence(), 4), (t.ZeroConcentratedDivergence(), 1)],
    ids=["pure", "zcdp"],
)
def test_the_k_best(measure, loss):
    m = t.noisy_top_k(
        t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), 2, 1.0, output_measure=measure
    )
    assert m.map(1) == loss
    assert m([0, 0, 100, 200]) == [3, 2]
    assert m([7]) == [0]
    assert sorted(m([5, 5])) == [0, 1]
    for k in (0, 1.5, True):
        with pytest.raises(errors.InvalidArgument):
            t.noisy_top_k(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), k, 1.0)


def test_the_second_best_has_its_law():
    """Exponential mechanism in two rounds over three scores;
    4,000 draws, chi-square, false alarm 1e-7.
    """
    zcdp = t.ZeroConcentratedDivergence()
    m = t.noisy_top_k(
        t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), 2, 1.0, output_measure=zcdp
    )
    weights = [1.0, math.exp(1), math.exp(2)]
    pairs = list(itertools.permutations(range(3), 2))
    law = [weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i]) for i, j in pairs]
    drawn = [tuple(m([0, 1, 2])) for _ in range(4000)]
    counts = [drawn.count(pair) for pair in pairs]
    assert stats.chisquare(counts, [4000 * p for p in law]).pvalue > 1e-7
    assert stats.chisquare(counts, [4000 / 6] * 6).pvalue < 1e-7
