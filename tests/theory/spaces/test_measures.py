"""Losses and their partial order."""

import math

import pytest

import dpframe.theory as t
from dpframe import errors

APPROX = t.Approximate(t.MaxDivergence())


def test_pairs_are_ordered_part_by_part():
    # The source document calls (1.5, 1e-6) and (1.0, 1e-7) incomparable. They are not: whoever
    # satisfies (1.0, 1e-7) satisfies (1.5, 1e-6), since both parts are smaller. Incomparable are
    # (1.5, 1e-7) and (1.0, 1e-6).
    assert APPROX.below((1.0, 1e-7), (1.5, 1e-6))
    assert APPROX.below((1.0, 1e-6), (1.5, 1e-6))
    assert not APPROX.below((1.5, 1e-6), (1.0, 1e-6))
    assert not APPROX.below((1.5, 1e-7), (1.0, 1e-6))
    assert not APPROX.below((1.0, 1e-6), (1.5, 1e-7))
    assert APPROX.below((1.5, 1e-6), (1.5, 1e-6))


def test_decimals_are_read_as_typed():
    assert t.MaxDivergence().below(0.1 + 0.2, 0.30000000000000004)
    m = t.compose([t.laplace(t.AtomDomain(float), t.AbsoluteDistance(), 10)] * 3)
    assert m.map(1) == 0.3
    assert m.check(1, 0.3)


def test_measures_are_equal_by_kind():
    assert t.MaxDivergence() == t.MaxDivergence()
    assert t.MaxDivergence() != "MaxDivergence()"
    assert APPROX.inner_measure == t.MaxDivergence()
    assert t.Approximate(t.ZeroConcentratedDivergence()) != APPROX
    with pytest.raises(errors.InvalidArgument):
        t.Approximate(APPROX)
    with pytest.raises(errors.InvalidArgument):
        t.Approximate("max divergence")


def test_profiles():
    profile = t.PrivacyProfile(lambda epsilon: math.exp(-epsilon))
    assert profile.delta(0) == 1
    assert profile.delta(math.inf) == 0
    assert profile.epsilon(1) == 0
    assert profile.epsilon(math.exp(-2)) == pytest.approx(2, rel=1e-12)
    for bad in (
        lambda: profile.delta(-1),
        lambda: profile.epsilon(-0.1),
        lambda: profile.epsilon(1.1),
    ):
        with pytest.raises(errors.InvalidArgument):
            bad()
    smooth = t.SmoothedMaxDivergence()
    assert smooth.below(profile, (1.0, 0.4))
    assert not smooth.below(profile, (1.0, 0.3))
    assert smooth.below(profile, [(1.0, 0.4), (2.0, 0.2)])
    with pytest.raises(errors.UnsupportedOperation):
        smooth.below(profile, profile)
    assert smooth.add([profile]) is profile
    with pytest.raises(errors.InvalidArgument):
        smooth.below(profile, 3)


def test_renyi():
    space = t.AtomDomain(float), t.AbsoluteDistance()
    curve = t.gaussian(*space, 1, output_measure=t.RenyiDivergence()).map(1)
    assert [curve(a) for a in (2, 4, 1.5)] == [1.0, 2.0, 0.75]
    at = t.gaussian(*space, 1, output_measure=t.RenyiDivergence(4))
    assert at.map(1) == 2.0
    assert at.check(1, 2.0)
    twice = t.compose([t.gaussian(*space, 1, output_measure=t.RenyiDivergence())] * 2)
    assert twice.map(1)(2) == 2.0
    assert twice.check(1, {2: 2.0, 8: 8.0})
    assert not twice.check(1, {2: 1.9})
    with pytest.raises(errors.UnsupportedOperation):
        twice.check(1, curve)
    for bad in (lambda: t.RenyiDivergence(1), lambda: curve(1), lambda: twice.check(1, 3)):
        with pytest.raises(errors.InvalidArgument):
            bad()


@pytest.mark.parametrize(
    "loss", [(1.0, -1e-9), (1.0, 1.5), (-1.0, 0.1), (1.0,), 1.0, (1.0, math.nan), "ab", (1, 1, 1)]
)
def test_losses_that_cannot_be(loss):
    with pytest.raises(errors.InvalidArgument):
        APPROX.below((1.0, 1e-6), loss)
