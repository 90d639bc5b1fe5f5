"""Composition against all outcomes, closed forms and edges."""

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from flint import ctx

from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import composition as maps
from dpframe.theory.formulas.loss.loss import gaussian_rho


def brute_composition(epsilons, epsilon):
    """δ of randomized responses over all outcomes."""
    total = 0.0
    for signs in product((1, -1), repeat=len(epsilons)):
        loss = sum(sign * e for sign, e in zip(signs, epsilons, strict=True))
        weight = math.prod(1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, epsilons, strict=True))
        total += weight * max(0.0, 1 - math.exp(epsilon - loss))
    return total


@pytest.mark.parametrize("epsilons", [[0.5], [1, 1], [0.1, 0.7, 0.3], [0.2] * 8, [0.1, 0.2, 0.3, 0.4, 0.55, 0.6]])
def test_composition_is_the_worst_case_over_all_outcomes(epsilons):
    for epsilon in (0, 0.1, 0.5, 1.0, sum(epsilons)):
        delta = maps.composition_delta([(e, 0) for e in epsilons], epsilon)
        assert delta == pytest.approx(brute_composition(epsilons, epsilon), rel=1e-9, abs=1e-15)


def test_composition_in_the_closed_form_of_kairouz_and_others():
    k, e = 30, 0.1
    for i in range(k // 2):
        due = (
            sum(math.comb(k, j) * (math.exp((k - j) * e) - math.exp((k - 2 * i + j) * e)) for j in range(i))
            / (1 + math.exp(e)) ** k
        )
        level = Fraction(1, 10) * (k - 2 * i)
        assert maps.composition_delta([(Fraction(1, 10), 0)] * k, level) == pytest.approx(due, rel=1e-6, abs=1e-15)


def test_the_smallest_epsilon_meets_its_delta_and_nothing_smaller_does():
    for losses in ([(0.1, 0)] * 40, [(0.3, 1e-8), (0.2, 1e-9), (0.7, 0)], [(1, 0)], [(0.25, 1e-7)] * 3):
        for delta in (1e-6, 1e-3, 0.2):
            epsilon = maps.composition_epsilon(losses, delta)
            assert epsilon <= maps.basic_composition(losses)[0]
            assert maps.composition_delta(losses, epsilon) <= delta * (1 + 1e-12)
            if epsilon > 0:
                assert maps.composition_delta(losses, epsilon * (1 - 1e-6)) > delta


@pytest.mark.long
def test_many_different_losses_get_a_valid_bound():
    rng = random.Random(6)
    losses = [(rng.uniform(0.01, 0.2), 0) for _ in range(60)]
    epsilon = maps.composition_epsilon(losses, 1e-6)
    # Rounding each ε up costs little: below the basic sum, above what equal losses of the same total would cost.
    mean = sum(e for e, _ in losses) / 60
    assert (
        maps.composition_epsilon([(mean, 0)] * 60, 1e-6)
        < epsilon
        < 1.05 * maps.composition_epsilon([(math.sqrt(sum(e * e for e, _ in losses) / 60), 0)] * 60, 1e-6)
    )
    exact_atoms = [e for e, _ in losses[:10]]
    rounded = maps._loss_atoms([Fraction(e) for e in exact_atoms], limit=200)
    with ctx.workprec(200):
        coarse = sum(float((mass * max(0.0, 1 - math.exp(0.4 - float(level)))).mid()) for level, mass in rounded)
    assert coarse >= brute_composition(exact_atoms, 0.4) * (1 - 1e-12)


def test_composition_edges():
    assert maps.composition_epsilon([], 0.1) == maps.composition_delta([], 0) == 0
    assert maps.composition_epsilon([(0, 0)] * 3, 1e-9) == 0
    assert maps.composition_epsilon([(0.5, 0), (0.25, 0)], 0) == 0.75
    assert maps.composition_delta([(1, 1)], 5) == 1
    assert maps.basic_composition([]) == (0, 0)
    assert maps.basic_composition([(Fraction(1, 10), Fraction(1, 10**6))] * 10) == (1.0, 1e-5)
    with pytest.raises(InvalidPrice, match="delta"):
        maps.composition_epsilon([(1, 0.1)], 0.05)


def test_groups_of_units():
    assert maps.group_privacy(0.5, 0, 3) == (1.5, 0)
    epsilon, delta = maps.group_privacy(0.5, 1e-6, 3)
    assert epsilon == 1.5
    assert delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-12)
    assert maps.group_privacy(0, 0.25, 3) == (0, 0.75)
    assert maps.group_privacy(1, 0.25, 1) == (1, 0.25)
    assert maps.group_privacy(5, 0.25, 9)[1] == 1
    assert maps.group_privacy_rho(0.1, 3) == 0.9 or maps.group_privacy_rho(Fraction(1, 10), 3) == 0.9
    # A Gaussian moved by twice the distance.
    assert maps.group_privacy_rho(gaussian_rho(1, 1), 2) == gaussian_rho(2, 1)


def test_sampling_amplifies():
    epsilon, delta = maps.amplification_by_sampling(1, 1e-6, 10, 100)
    assert epsilon == pytest.approx(math.log1p(0.1 * (math.e - 1)), rel=1e-14)
    assert delta == pytest.approx(1e-7)
    assert maps.amplification_by_sampling(1, 0.5, 0, 10) == (0, 0)
    assert maps.amplification_by_sampling(Fraction(1, 10), 0, 7, 7) == (0.1, 0)
    with pytest.raises(InvalidArgument, match="at most"):
        maps.amplification_by_sampling(1, 0, 11, 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.basic_composition([(1, 2)]),
        lambda: maps.group_privacy(-1, 0, 2),
        lambda: maps.group_privacy_rho(None, 2),
    ],
)
def test_prices_that_are_no_prices_are_refused(call):
    with pytest.raises(InvalidPrice):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: maps.group_privacy(1, 0, 0),
        lambda: maps.amplification_by_sampling(1, 0, -1, 10),
    ],
)
def test_arguments_that_make_no_sense_are_refused(call):
    with pytest.raises(InvalidArgument):
        call()
