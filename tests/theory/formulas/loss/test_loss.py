"""Privacy maps against definitions: hockey-stick and Rényi divergences, brute
force, and 200-bit arithmetic.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import loss as maps


def exact(x):
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def holds(figure, truth, above=1e-9):
    """Never below the truth, and at most 1e-9 above it (relatively, or
    absolutely for figures above 1).
    """
    if figure == 1:  # the largest probability
        return truth > 1 - arb(above)
    return exact(figure) >= truth and exact(figure) <= truth * (1 + arb(above)) + arb(2) ** -1073


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


# Laplace


def test_an_exact_decimal_is_returned_as_it_prints():
    assert maps.laplace_epsilon(12, 25) == 0.48
    assert maps.laplace_epsilon(Fraction(1, 10), 1) == 0.1
    assert Fraction(maps.laplace_epsilon(1, 3)) >= Fraction(1, 3)
    assert maps.laplace_epsilon(0, 3) == 0


def test_exact_losses_round_to_the_published_ones():
    for length, scale in itertools.product((1, 3, 7), (1, 10, 0.3)):
        laplace = maps.laplace_loss(Fraction(length), Fraction(scale))
        gaussian = maps.gaussian_loss(Fraction(length), Fraction(scale))
        assert float(laplace) == pytest.approx(maps.laplace_epsilon(length, scale), rel=1e-15)
        assert float(gaussian) == pytest.approx(maps.gaussian_rho(length, scale), rel=1e-15)


def test_laplace_rho_is_the_smallest_with_its_renyi_divergence():
    for epsilon in (0.01, 0.5, 1.0, 3.0, 10.0):
        rho = maps.laplace_rho(epsilon, 1)
        for order in np.exp(np.linspace(-9, 7, 200)) + 1:
            first = math.log(order / (2 * order - 1)) + (order - 1) * epsilon
            second = math.log((order - 1) / (2 * order - 1)) - order * epsilon
            divergence = np.logaddexp(first, second) / (order - 1)
            assert divergence <= order * rho * (1 + 1e-9) + 1e-11
        kullback_leibler = epsilon + math.exp(-epsilon) - 1
        assert rho == pytest.approx(kullback_leibler, rel=1e-11)
        assert rho < maps.pure_to_zcdp(epsilon) < epsilon**2 / 2


def test_pure_privacy_costs_what_randomized_response_costs():
    for epsilon in (0.01, 0.5, 1.0, 3.0, 10.0):
        rho = maps.pure_to_zcdp(epsilon)
        p = 1 / (1 + math.exp(-epsilon))
        for order in np.exp(np.linspace(-9, 5, 200)) + 1:
            first = order * math.log(p) + (1 - order) * math.log1p(-p)
            second = order * math.log1p(-p) + (1 - order) * math.log(p)
            assert np.logaddexp(first, second) / (order - 1) <= order * rho * (1 + 1e-9) + 1e-11
        assert rho == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-14)


# Gaussian


def test_the_gaussian_profile_is_the_hockey_stick_divergence():
    x = np.linspace(-14, 18, 2_000_001)
    for epsilon, mu in ((0.0, 0.3), (0.5, 1.0), (1.0, 0.24), (3.0, 2.0)):
        p, q = np.exp(-((x - mu) ** 2) / 2), np.exp(-(x**2) / 2)
        delta = (
            np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        )
        assert maps.gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)


def profile(epsilon, mu):
    a, b = (
        (exact(epsilon) / mu - mu / 2) / arb(2).sqrt(),
        (exact(epsilon) / mu + mu / 2) / arb(2).sqrt(),
    )
    return (a.erfc() - exact(epsilon).exp() * b.erfc()) / 2


def test_gaussian_figures_are_certified():
    rng = random.Random(4)
    for _ in range(2000):
        epsilon, mu = log_uniform(rng, 1e-4, 30), log_uniform(rng, 1e-3, 20)
        delta = log_uniform(rng, 1e-20, 0.5)
        with ctx.workprec(400):
            assert holds(maps.gaussian_delta(epsilon, mu), profile(epsilon, arb(mu)))
            found = maps.gaussian_epsilon(delta, mu)
            assert profile(found, arb(mu)) <= delta
            if found > 0:
                assert profile(found * (1 - 1e-9), arb(mu)) > delta


def test_gaussian_edges():
    assert maps.gaussian_delta(1, 0) == maps.gaussian_epsilon(0.1, 0) == 0
    assert maps.gaussian_epsilon(0.5, 0.1) == 0
    assert maps.gaussian_delta(0, 100) == 1
    assert maps.gaussian_delta(1000, 1) == 5e-324  # rounded up, never 0
    assert maps.gaussian_mu([1, 4], [1, 2]) == pytest.approx(math.sqrt(2))
    assert maps.gaussian_mu([], []) == 0
    assert maps.gaussian_rho(3, 2) == 1.125
    # One column or the same split in four: one mechanism.
    assert maps.gaussian_mu([1] * 4, [2] * 4) == maps.gaussian_mu([4], [2]) == 1


# Thresholds, with the figures of the public documents


def test_threshold_figures():
    assert noise.laplace_tail(1, 19) == pytest.approx(2.801398224505647e-09, rel=1e-14)
    assert noise.gaussian_tail(1, 19) == pytest.approx(8.5e-81, rel=0.01)
    tail = noise.laplace_tail(1, Fraction(19_999, 1000))
    assert maps.threshold_delta(tail, 100) == pytest.approx(1.0316078580263621e-07, rel=1e-12)
    assert maps.threshold_delta(noise.family_tail("discrete_laplace", 1, 9), 1) == pytest.approx(
        9.0219e-05, rel=1e-4
    )
    # Charging "> T" for a rule that keeps "= T" too would claim e times less.
    assert noise.family_tail("discrete_laplace", 1, 10) == pytest.approx(
        3.319000812207484e-05, rel=1e-12
    )


def test_threshold_delta_is_certified():
    rng = random.Random(5)
    for _ in range(1000):
        tail, groups = log_uniform(rng, 1e-30, 0.9), rng.choice([1, 2, 7, 1000, 10**6])
        with ctx.workprec(2000):
            truth = 1 - (1 - arb(tail)) ** groups
            assert holds(maps.threshold_delta(tail, groups), truth)
    assert maps.threshold_delta(0.5, 0) == maps.threshold_delta(0, 9) == 0
    assert maps.threshold_delta(1, 3) == 1


# Zero-concentrated privacy


def test_conversions_from_zcdp_are_as_tight_as_the_best_order():
    orders = 1 + np.exp(np.linspace(-6, 9, 4001))
    for rho in (1e-4, 0.01, 0.5, 3.0):
        for delta in (1e-12, 1e-6, 0.01):
            bound = (
                orders * rho
                + (math.log(1 / delta) - np.log(orders)) / (orders - 1)
                + np.log1p(-1 / orders)
            )
            epsilon = maps.zcdp_to_epsilon(rho, delta)
            assert max(0, bound.min()) * (1 - 1e-4) <= epsilon <= max(0, bound.min()) * (1 + 1e-9)
            if epsilon > 0:
                assert maps.zcdp_to_delta(rho, epsilon) == pytest.approx(delta, rel=1e-6)


def test_a_gaussian_never_exceeds_what_its_rho_allows():
    for mu in (0.05, 0.3, 1.0, 4.0):
        for epsilon in (0.1, 1.0, 5.0):
            assert maps.gaussian_delta(epsilon, mu) <= maps.zcdp_to_delta(
                maps.gaussian_rho(mu, 1), epsilon
            )
        for delta in (1e-9, 1e-3):
            assert maps.gaussian_epsilon(delta, mu) <= maps.zcdp_to_epsilon(
                maps.gaussian_rho(mu, 1), delta
            )


def test_documented_conversions_are_not_exceeded():
    # (ρ, δ) = (0.5, 8.5e-81) and (0.00005·..., ...) of thresholded Gaussians at the δ that the
    # document converts with.
    assert maps.zcdp_to_epsilon(0.5, 2.801398224505647e-09) <= 6.3035767282855915 * 1.001
    assert maps.gaussian_epsilon(2.801398224505647e-09, 1) < 6.3035767282855915


def test_zcdp_edges():
    assert maps.zcdp_to_epsilon(0, 1e-6) == maps.zcdp_to_delta(0, 1) == 0
    assert maps.zcdp_to_delta(100, 0.1) == 1
    assert maps.zcdp_to_epsilon(1e-12, 0.5) == 0
    assert maps.zcdp_to_epsilon(0.5, Fraction(1, 10**400)) > 40


BAD_PRICES = [
    lambda: maps.gaussian_delta(-1, 1),
    lambda: maps.gaussian_delta(float("nan"), 1),
    lambda: maps.gaussian_epsilon(0, 1),
    lambda: maps.gaussian_epsilon(1, 1),
    lambda: maps.gaussian_epsilon("0.1", 1),
    lambda: maps.zcdp_to_epsilon(-1, 0.1),
    lambda: maps.zcdp_to_delta(1, float("inf")),
    lambda: maps.pure_to_zcdp(True),
    lambda: maps.threshold_delta(1.5, 1),
]
BAD_ARGUMENTS = [
    lambda: maps.laplace_epsilon(-1, 1),
    lambda: maps.laplace_epsilon(1, 0),
    lambda: maps.laplace_rho(1, -1),
    lambda: maps.gaussian_rho(1, float("inf")),
    lambda: maps.gaussian_mu([1], [1, 2]),
    lambda: maps.threshold_delta(0.1, -1),
    lambda: maps.threshold_delta(0.1, 1.5),
]


@pytest.mark.parametrize("call", BAD_PRICES)
def test_prices_that_are_no_prices_are_refused(call):
    with pytest.raises(InvalidPrice):
        call()


@pytest.mark.parametrize("call", BAD_ARGUMENTS)
def test_arguments_that_make_no_sense_are_refused(call):
    with pytest.raises(InvalidArgument):
        call()


# Randomized response


def test_response_epsilon():
    assert maps.response_epsilon(Fraction(3, 4), 2) == pytest.approx(math.log(3), rel=1e-15)
    assert maps.response_epsilon(Fraction(1, 2), 2) == 0
