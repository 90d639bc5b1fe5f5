"""Figures of the newer maps against arithmetic at 400 bits: never below the truth, and hardly above it."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

import dpframe.theory as t
from dpframe.theory.exact import limit

INTS = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()
COUNTS = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L01InfDistance()


def exact(x):
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def holds(claim, truth, above=1e-13):
    """Whether a claimed float is at least the truth, and above it by no more than this part of it."""
    reached = exact(limit(claim, "claim"))
    return bool(reached >= truth) and bool(reached <= truth * (1 + arb(above)))


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 10), Fraction(2, 3)])
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 20])
@pytest.mark.parametrize("places", [1, 3])
def test_poisson_samples(rate, scale, places):
    count = t.count(*INTS)
    m = t.poisson_sample(count >> t.laplace(*count.output_space, scale), rate)
    with ctx.workprec(400):
        epsilon = exact(1 / Fraction(scale))
        steps = places * (1 + exact(rate) * epsilon.expm1()).log()
        met = 1 - (1 - exact(rate)) ** places
        once = (1 + met * (places * epsilon).expm1()).log()
        assert holds(m.map(places), once if once < steps else steps)


@pytest.mark.parametrize("order", [1.25, 2.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_one_order_of_a_renyi_curve(order, delta):
    """A curve that is finite at one order only: the conversion is that of this order, rounded up."""
    curve = t.RenyiCurve(lambda alpha: 0.75 * order if alpha == order else math.inf)
    with ctx.workprec(400):
        alpha = exact(order)
        truth = exact(0.75 * order) - (exact(delta).log() + alpha.log()) / (alpha - 1) + (1 - 1 / alpha).log()
        if order in (1.25, 2.0):  # of the orders that are tried
            assert holds(t.renyi_to_epsilon(curve, delta), truth)
        else:
            assert t.renyi_to_epsilon(curve, delta) == math.inf


@pytest.mark.parametrize("threshold", [-3, 0, 4, 60])
@pytest.mark.parametrize("scale", [Fraction(1, 2), 3])
def test_thresholds_on_either_side(threshold, scale):
    m = t.laplace_threshold(*COUNTS, scale=scale, threshold=threshold, negate=False)
    with ctx.workprec(400):
        a, k = (-1 / exact(scale)).exp(), threshold - 1
        tail = a**k / (1 + a) if k >= 1 else 1 - a ** (1 - k) / (1 + a)
        assert holds(m.map((1, 1, 1))[1], tail)
        assert holds(m.map((3, 3, 1))[1], 1 - (1 - tail) ** 3)
        assert holds(t.threshold_keep_probability(1, scale, threshold), tail)


@pytest.mark.parametrize("units", [1, 2, 5])
def test_keys(units):
    m = t.select_keys(*COUNTS, epsilon=Fraction(1, 2), delta=Fraction(1, 10**6))
    epsilon, delta = m.map((1, units, units))
    with ctx.workprec(400):
        rate = exact(Fraction(1, 2))
        truth = exact(Fraction(1, 10**6)) * (units * rate).expm1() / rate.expm1()
    assert epsilon == units / 2
    assert float(truth.mid()) * (1 - 1e-12) <= delta <= float(truth.mid()) * (1 + 1e-12)


@pytest.mark.parametrize("steps", [2, 7])
def test_canonical_noise_for_several_steps(steps):
    m = t.canonical_noise(t.AtomDomain(float), t.AbsoluteDistance(), 1.0, (0.25, 1e-6))
    with ctx.workprec(400):
        rate = exact(Fraction(1, 4))
        assert holds(m.map(steps)[1], exact(Fraction(1, 10**6)) * (steps * rate).expm1() / rate.expm1())


def test_trees_of_irrational_lengths():
    m = t.tree(t.VectorDomain(t.AtomDomain(int), size=8), t.L2Distance())
    with ctx.workprec(400):
        for length in (1, 2, 3):
            assert holds(m.map(length), length * exact(15).sqrt(), 1e-15)
