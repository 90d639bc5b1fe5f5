"""Calibration against arithmetic at 200 bits and more:
never below the truth, at most 1e-9 above it.
"""

import math
import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import calibration as maps
from dpframe.theory.formulas.loss import curves, window
from dpframe.theory.formulas.loss import loss as privacy

FAMILIES = ["laplace", "discrete_laplace", "gaussian"]


def exact(x):
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def any_number(rng, low, high):
    """A float, an integer or a fraction in the range."""
    x = log_uniform(rng, low, high)
    kind = rng.random()
    if kind < 0.5:
        return x
    if kind < 0.75 and x >= 1:
        return int(x)
    return Fraction(repr(float(f"{x:.3g}")))


def profile(epsilon, mu):
    a, b = (
        (exact(epsilon) / mu - mu / 2) / arb(2).sqrt(),
        (exact(epsilon) / mu + mu / 2) / arb(2).sqrt(),
    )
    return (a.erfc() - exact(epsilon).exp() * b.erfc()) / 2


def tail(family, scale, k):
    """P[noise ≥ k], written down again."""
    s = exact(scale)
    if family == "gaussian":
        return ((arb(k) - arb(0.5)) / (s * arb(2).sqrt())).erfc() / 2
    if family == "laplace":
        half = (-abs(arb(k) - arb(0.5)) / s).exp() / 2
        return half if k >= 1 else 1 - half
    a = (-1 / s).exp()
    return a**k / (1 + a) if k >= 1 else 1 - a ** (1 - k) / (1 + a)


def check_laplace(rng):
    l1, epsilon = any_number(rng, 1e-6, 1e12), any_number(rng, 1e-6, 1e3)
    scale, truth = Fraction(maps.laplace_scale(l1, epsilon)), Fraction(l1) / Fraction(epsilon)
    assert truth <= scale <= truth * (1 + Fraction(1, 10**9))
    assert Fraction(math.nextafter(float(scale), 0)) < truth


def check_rho(rng):
    square, rho = any_number(rng, 1e-6, 1e12), any_number(rng, 1e-9, 1e3)
    sigma, truth = (
        Fraction(maps.gaussian_scale_rho(l2_squared=square, rho=rho)),
        Fraction(square) / (2 * Fraction(rho)),
    )
    assert truth <= sigma**2 <= truth * (1 + Fraction(1, 10**9))
    assert Fraction(math.nextafter(float(sigma), 0)) ** 2 < truth


def check_laplace_rho(rng):
    l1, rho = any_number(rng, 1e-6, 1e12), any_number(rng, 1e-9, 1e3)
    scale = maps.laplace_scale_rho(l1, rho)
    with ctx.workprec(200):
        for s, cheap in ((arb(scale), True), (arb(scale) * (1 - arb(1e-9)), False)):
            epsilon = exact(l1) / s
            assert (epsilon + (-epsilon).expm1() <= exact(rho)) is cheap


def check_gaussian(rng):
    square, epsilon = any_number(rng, 1e-6, 1e12), any_number(rng, 1e-4, 50)
    delta = any_number(rng, 1e-15, 0.3)
    sigma = maps.gaussian_scale(l2_squared=square, epsilon=epsilon, delta=delta)
    with ctx.workprec(200):
        root = exact(square).sqrt()
        assert profile(epsilon, root / sigma) <= exact(delta)
        assert profile(epsilon, root / (arb(sigma) * (1 - arb(1e-9)))) > exact(delta)


def check_threshold(rng):
    family, scale = rng.choice(FAMILIES), any_number(rng, 0.05, 1e9)
    delta, groups, step = (
        any_number(rng, 1e-15, 0.9),
        rng.choice([1, 2, 5, 100, 10**6]),
        rng.choice([1, 1, 3, 1000]),
    )
    found = maps.threshold(delta, groups, family, scale, step)
    with ctx.workprec(300):
        assert 1 - (1 - tail(family, scale, found - step)) ** groups <= exact(delta)
        assert 1 - (1 - tail(family, scale, found - step - 1)) ** groups > exact(delta)


def check_error(rng):
    family, scale, alpha = (
        rng.choice(FAMILIES),
        any_number(rng, 1e-2, 1e12),
        any_number(rng, 1e-12, 0.95),
    )
    error = maps.noise_error(family, scale, alpha)
    with ctx.workprec(300):
        assert 2 * tail(family, scale, error + 1) <= exact(alpha)
        assert error == 0 or 2 * tail(family, scale, error) > exact(alpha)


CHECKS = [
    check_laplace,
    check_rho,
    check_laplace_rho,
    check_gaussian,
    check_threshold,
    check_error,
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("check", CHECKS)
def test_random_points(check):
    rng = random.Random(check.__name__)
    for _ in range(1_000):
        check(rng)


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS)
def test_a_hundred_thousand_random_points(check):
    rng = random.Random(check.__name__ + " at length")
    for _ in range(100_000):
        check(rng)


def test_the_analytic_calibration_beats_the_way_through_rho():
    assert round(maps.gaussian_scale(1, 1, Fraction(1, 10**6)), 2) == 4.22
    rho = 0.0243  # the largest with zcdp_to_epsilon(ρ, 1e-6) ≤ 1
    assert privacy.zcdp_to_epsilon(rho, 1e-6) < 1 < privacy.zcdp_to_epsilon(rho * 1.01, 1e-6)
    assert round(maps.gaussian_scale_rho(1, rho), 2) > 4.5


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (0, 1e-7),
        (1e-9, 1e-9),
        (500, 1e-6),
        (1, 1e-300),
        (1, Fraction(1, 10**400)),
        (1, 0.999),
        (1e-3, 0.5),
        (1e4, 0.9),
    ],
)
def test_extreme_prices(epsilon, delta):
    sigma = maps.gaussian_scale(1, epsilon, delta)
    with ctx.workprec(2000):
        assert profile(epsilon, 1 / arb(sigma)) <= exact(delta)
        assert profile(epsilon, 1 / (arb(sigma) * (1 - arb(1e-9)))) > exact(delta)


def test_the_precision_that_a_user_sets_changes_nothing():
    def figures():
        return (
            maps.gaussian_scale(
                l2_squared=Fraction(1, 3), epsilon=Fraction(1, 10), delta=Fraction(1, 10**6)
            ),
            maps.laplace_scale_rho(1, Fraction(1, 3)),
            maps.threshold(Fraction(1, 10**7), 3, "gaussian", Fraction(10, 3)),
            privacy.gaussian_epsilon(Fraction(1, 10**6), Fraction(1, 3)),
            privacy.zcdp_to_epsilon(Fraction(1, 3), Fraction(1, 10**6)),
            privacy.zcdp_to_delta(Fraction(1, 3), Fraction(7, 3)),
            window._error.__wrapped__(24, Fraction(10, 3), Fraction(1, 20), 1),
            curves.laplace_renyi(Fraction(7, 3), 1, Fraction(10, 3)),
        )

    due = figures()
    for precision in (2, 20, 1000):
        with ctx.workprec(precision):
            assert figures() == due


def test_forward_and_inverse_agree():
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)):
        mu = privacy.gaussian_mu([1], [maps.gaussian_scale(1, epsilon, delta)])
        assert privacy.gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-9)
        assert privacy.gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
    assert privacy.gaussian_rho(1, maps.gaussian_scale_rho(1, Fraction(1, 10))) <= 0.1


def test_several_columns_are_one_mechanism():
    squares, shares = [1, 8, Fraction(9, 2), 100], [1, 2, 1, 4]
    sigmas = maps.gaussian_scales(squares, shares, Fraction(1, 2), Fraction(1, 10**7))
    mu = privacy.gaussian_mu(squares, sigmas)
    alone = maps.gaussian_scale(1, Fraction(1, 2), Fraction(1, 10**7))
    assert Fraction(mu) <= 1 / Fraction(alone) * (1 + Fraction(1, 10**15))
    assert privacy.gaussian_delta(Fraction(1, 2), mu) <= 1e-7 * (1 + 1e-12)
    parts = [float(square) / sigma**2 for square, sigma in zip(squares, sigmas, strict=True)]
    assert [part / parts[0] for part in parts] == pytest.approx(shares)
    # One column has all of it, and shares count only in proportion.
    (single,) = maps.gaussian_scales([4], [0.3], 1, 1e-6)
    assert single == pytest.approx(maps.gaussian_scale(2, 1, 1e-6), rel=1e-14)
    assert maps.gaussian_scales([0, 1], [1, 1], 1, 1e-6)[0] == 0


def test_together_the_columns_are_never_over_the_price():
    rng = random.Random(11)
    for _ in range(300):
        count = rng.randint(1, 6)
        squares = [any_number(rng, 1e-3, 1e6) for _ in range(count)]
        shares = [any_number(rng, 0.1, 10) for _ in range(count)]
        epsilon, delta = any_number(rng, 1e-2, 10), any_number(rng, 1e-12, 1e-2)
        sigmas = maps.gaussian_scales(squares, shares, epsilon, delta)
        with ctx.workprec(200):
            square = sum(
                (exact(a) / exact(s) ** 2 for a, s in zip(squares, sigmas, strict=True)), arb(0)
            )
            assert profile(epsilon, square.sqrt()) <= exact(delta)
            assert profile(epsilon, square.sqrt() * (1 + arb(1e-9))) > exact(delta)


def test_a_threshold_charges_for_the_value_it_keeps():
    # Noise of scale 1 at T = 10: P[noise ≥ 9] = 9.0219e-05, so that a δ between this and P[noise ≥
    # 10] needs T = 11.
    assert maps.threshold(9.03e-5, 1, "discrete_laplace", 1) == 10
    assert maps.threshold(9.02e-5, 1, "discrete_laplace", 1) == 11
    assert maps.threshold(9.03e-5, 1, "discrete_laplace", 1, step=4) == 13


def test_thresholds_rise_with_groups_and_scale_and_may_be_negative():
    found = [maps.threshold(1e-6, groups, "laplace", 10) for groups in (1, 2, 10, 1000)]
    assert found == sorted(set(found))
    assert maps.threshold(0.999, 1, "gaussian", 50) < 0


def test_no_sensitivity_needs_no_noise():
    assert (
        maps.laplace_scale(0, 1)
        == maps.gaussian_scale_rho(0, 1)
        == maps.gaussian_scale(0, 1, 1e-6)
        == 0
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.laplace_scale(1, 0),
        lambda: maps.laplace_scale(1, -1),
        lambda: maps.laplace_scale(1, float("nan")),
        lambda: maps.gaussian_scale_rho(1, 0),
        lambda: maps.gaussian_scale(1, 1, 0),
        lambda: maps.gaussian_scale(1, 1, 1),
        lambda: maps.gaussian_scale(1, float("inf"), 0.1),
        lambda: maps.gaussian_scale(1, "1", 0.1),
        lambda: maps.threshold(0, 1, "laplace", 1),
        lambda: maps.noise_error("laplace", 1, 0),
    ],
)
def test_prices_that_are_no_prices_are_refused(call):
    with pytest.raises(InvalidPrice):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.laplace_scale(-1, 1),
        lambda: maps.gaussian_scale(-1, 1, 0.1),
        lambda: maps.gaussian_scales([1], [1, 1], 1, 0.1),
        lambda: maps.gaussian_scales([1, 1], [1, 0], 1, 0.1),
        lambda: maps.threshold(0.1, 0, "laplace", 1),
        lambda: maps.threshold(0.1, 1, "cauchy", 1),
        lambda: maps.threshold(0.1, 1, "laplace", 0),
        lambda: maps.threshold(0.1, 1, "laplace", 1, step=0),
        lambda: maps.noise_error("laplace", -1, 0.1),
    ],
)
def test_arguments_that_make_no_sense_are_refused(call):
    with pytest.raises(InvalidArgument):
        call()


def test_a_length_cannot_be_taken_for_its_square():
    """Ten times the length needs ten times the scale; the square is taken by name only."""
    for l2 in (1, 10, Fraction(1, 10)):
        assert maps.gaussian_scale(l2, 1, 1e-6) == maps.gaussian_scale(
            l2_squared=Fraction(l2) ** 2, epsilon=1, delta=1e-6
        )
        assert maps.gaussian_scale(l2, 1, 1e-6) == pytest.approx(
            l2 * maps.gaussian_scale(1, 1, 1e-6), rel=1e-15
        )
        assert maps.gaussian_scale_rho(l2, 0.5) == maps.gaussian_scale_rho(
            l2_squared=Fraction(l2) ** 2, rho=0.5
        )
    for wrong in (
        lambda: maps.gaussian_scale(1, 1, 1e-6, l2_squared=1),
        lambda: maps.gaussian_scale(epsilon=1, delta=1e-6),
        lambda: maps.gaussian_scale(1),
        lambda: maps.gaussian_scale_rho(rho=1),
        lambda: maps.gaussian_scale_rho(-1, 1),
    ):
        with pytest.raises((InvalidArgument, InvalidPrice)):
            wrong()
