"""Figures of the newer maps against arithmetic at 400 bits:
never below the truth, and hardly above it.
"""

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
    """Whether a claimed float is at least the truth, and above it
    by no more than this part of it.
    """
    reached = exact(limit(claim, "claim"))
    return bool(reached >= truth) and bool(reached <= truth * (1 + arb(above)))


@pytest.mark.parametrize("threshold", [-3, 0, 4, 60])
@pytest.mark.parametrize("scale", [Fraction(1, 2), 3])
def test_thresholds_on_either_side(threshold, scale):
    m = t.laplace_threshold(*COUNTS, scale=scale, threshold=threshold, negate=False)
    with ctx.workprec(400):
        a, k = (-1 / exact(scale)).exp(), threshold - 1
        tail = a**k / (1 + a) if k >= 1 else 1 - a ** (1 - k) / (1 + a)
        assert holds(m.map((1, 1, 1))[1], tail)
        assert holds(m.map((3, 3, 1))[1], 1 - (1 - tail) ** 3)
