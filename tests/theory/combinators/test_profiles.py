"""Several profiles together."""

from fractions import Fraction

import pytest

import dpframe.theory as t
from dpframe import errors

FLOAT = t.AtomDomain(float), t.AbsoluteDistance()
SMOOTH = t.SmoothedMaxDivergence()
INTS = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()


def gauss(scale):
    return t.gaussian(*FLOAT, scale, output_measure=SMOOTH)


def laplace(scale):
    return t.laplace(*FLOAT, scale, output_measure=SMOOTH)


def test_gaussians_compose_exactly():
    both = t.compose([gauss(3.0), gauss(4.0)])
    one = gauss(2.4)  # 1/3² + 1/4² = 1/2.4²
    for epsilon in (0.1, 1.0, 3.0):
        assert both.map(1).delta(epsilon) == one.map(1).delta(epsilon)
    assert both.map(1).mu_squared == Fraction(25, 144)
    assert len(both(0.0)) == 2


def test_a_mix_has_no_profile():
    with pytest.raises(errors.UnsupportedOperation, match="fix_delta"):
        t.compose([laplace(1.0), gauss(2.0)]).map(1)


def test_nothing_and_everything_compose():
    assert t.compose([gauss(1.0), laplace(1.0)]).map(0).delta(0.0) == 0
    assert t.compose([gauss(1.0), gauss(1.0)]).map(0).epsilon(0.5) == 0
