"""Rényi curves to (ε, δ), several profiles together, several units at once, Poisson samples."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpframe.theory as t

FLOAT = t.AtomDomain(float), t.AbsoluteDistance()
SMOOTH = t.SmoothedMaxDivergence()
INTS = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()


def gauss(scale):
    return t.gaussian(*FLOAT, scale, output_measure=SMOOTH)


def laplace(scale):
    return t.laplace(*FLOAT, scale, output_measure=SMOOTH)


# Rényi curves


# Profiles together


def test_gaussians_compose_exactly():
    both = t.compose([gauss(3.0), gauss(4.0)])
    one = gauss(2.4)  # 1/3² + 1/4² = 1/2.4²
    for epsilon in (0.1, 1.0, 3.0):
        assert both.map(1).delta(epsilon) == one.map(1).delta(epsilon)
    assert both.map(1).mu_squared == Fraction(25, 144)
    assert len(both(0.0)) == 2


@pytest.mark.parametrize("epsilon", [0.5, *(pytest.param(e, marks=pytest.mark.long) for e in (0.0, 1.0, 2.5))])
def test_a_mix_is_composed_by_privacy_loss_distributions(epsilon):
    """Against dp_accounting's own distributions of the two mechanisms, on a grid of 1e-4."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    ours = t.compose([laplace(1.0), gauss(2.0), laplace(4.0)]).map(1)
    parts = [
        pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-4),
        pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-4),
        pld.from_laplace_mechanism(4.0, value_discretization_interval=1e-4),
    ]
    theirs = parts[0].compose(parts[1]).compose(parts[2])
    assert ours.delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3, abs=1e-9)
    delta = ours.delta(epsilon)
    assert ours.epsilon(delta * 1.001) <= epsilon + 1e-3


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_two_laplace_noises_together_are_never_below_the_truth(scale):
    """The exact δ of two, by integrating one over the loss of the other; 2,000 points of a midpoint rule."""
    pytest.importorskip("dp_accounting")
    ours = t.compose([laplace(scale), laplace(scale)]).map(1)
    epsilon0 = 1 / scale
    for epsilon in (0.0, epsilon0 / 2, epsilon0, 1.5 * epsilon0):
        # The loss is ε0 with chance 1/2, -ε0 with chance e^-ε0/2, and between them of density e^((ℓ-ε0)/2)/4.
        middle = (np.arange(20_000) + 0.5) / 20_000 * 2 * epsilon0 - epsilon0
        weight = np.exp((middle - epsilon0) / 2) / 4 * (2 * epsilon0 / 20_000)

        def tail(level):
            return np.where(level >= epsilon0, 0.0, np.where(level <= -epsilon0, -np.expm1(level), 0.0)) + np.where(
                np.abs(level) < epsilon0, -np.expm1((level - epsilon0) / 2), 0.0
            )

        truth = 0.5 * tail(np.array(epsilon - epsilon0)) + math.exp(-epsilon0) / 2 * tail(np.array(epsilon + epsilon0))
        truth += (weight * tail(epsilon - middle)).sum()
        assert ours.delta(epsilon) >= truth * (1 - 1e-5)
        assert ours.delta(epsilon) == pytest.approx(float(truth), rel=5e-3, abs=1e-9)


def test_a_profile_that_keeps_a_delta_is_composed():
    """Laplace noise that fails with chance 1e-4: the δ of two is at least 1 - (1 - 1e-4)², and hardly more at ε = 2."""
    pytest.importorskip("dp_accounting")
    space = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()
    leaky = t.PrivacyProfile(lambda epsilon: 1e-4 + (1 - 1e-4) * t.laplace_delta(epsilon, 1, 1))
    m = t.Measurement(*space, SMOOTH, lambda x: 0, lambda d_in: leaky)
    both = t.compose([m, m]).map(1)
    assert 1 - (1 - 1e-4) ** 2 <= both.delta(2.0) <= 1.01 * (1 - (1 - 1e-4) ** 2)
    none = t.Measurement(*space, SMOOTH, lambda x: 0, lambda d_in: t.PrivacyProfile(lambda epsilon: 1.0))
    assert t.compose([m, none]).map(1).delta(5.0) == 1


def test_nothing_and_everything_compose():
    assert t.compose([gauss(1.0), laplace(1.0)]).map(0).delta(0.0) == 0
    assert t.compose([gauss(1.0), gauss(1.0)]).map(0).epsilon(0.5) == 0


# Several units


# Poisson samples


def mixture(law, data, q):
    """The law of an answer on a Poisson sample: a mapping from answers to exact chances."""
    out = {}
    for kept in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod((q if k else 1 - q for k in kept), start=1.0)
        for answer, p in law([v for v, k in zip(data, kept, strict=True) if k]).items():
            out[answer] = out.get(answer, 0.0) + chance * p
    return out


def clipped_geometric(total, scale, low=-30, high=30):
    """Discrete Laplace noise on a total, clipped: the law as a table."""
    a = math.exp(-1 / scale)
    table = {}
    for x in range(low - 200, high + 201):
        table[min(max(x, low), high)] = table.get(min(max(x, low), high), 0.0) + (1 - a) / (1 + a) * a ** abs(x - total)
    return table
