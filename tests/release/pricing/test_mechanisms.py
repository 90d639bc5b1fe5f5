"""Every mechanism that adds noise says its own law, and every kind
of noise has one that it buys.
"""

from inspect import isabstract

import pytest

from dpframe.errors import UnsupportedOperation
from dpframe.release.pricing import AddsNoise, KNorm, Laplace, NoiseKind, NoNoise


def _below(kind):
    return [kind, *(deeper for below in kind.__subclasses__() for deeper in _below(below))]


MECHANISMS = [kind for kind in _below(AddsNoise) if not isabstract(kind)]


@pytest.mark.parametrize("kind", MECHANISMS)
def test_the_noises_that_stand_for_a_law_have_its_variance(kind):
    """Intervals of several totals add up normal and Laplace noises, of
    which the real noise is the sum.

    K-norm noise is bought for counts and sums that are released as they are, whose interval asks
    the mechanism itself.
    """
    mechanism = kind(scale=2.0)
    if kind is KNorm or kind.together:
        with pytest.raises(UnsupportedOperation, match="not added up"):
            _ = mechanism.laplaces
        return
    variance = sum(one**2 for one in mechanism.normals) + sum(
        2 * one**2 for one in mechanism.laplaces
    )
    assert variance == pytest.approx(mechanism.deviation**2)
    assert mechanism.normal == bool(mechanism.normals)
    assert mechanism.exact == (variance == 0)


@pytest.mark.parametrize("missing", ["draw", "tail", "laplaces"])
def test_a_mechanism_must_say_its_own_law(missing):
    methods = {"draw": Laplace.draw, "tail": Laplace.tail, "laplaces": Laplace.laplaces}
    assert not isabstract(type("Staircase", (AddsNoise,), methods))
    del methods[missing]
    assert isabstract(type("Staircase", (AddsNoise,), methods))
    assert not isabstract(Laplace)


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("reach", [-3.0, 0.0, 0.5, 40.0])
def test_tails_fall_and_are_symmetric(kind, reach):
    mechanism = kind(scale=2.0)
    assert mechanism.tail(reach) >= mechanism.tail(reach + 0.1)
    if kind is not NoNoise:
        assert mechanism.tail(reach) + mechanism.tail(-reach) == pytest.approx(1)


def test_a_kind_of_noise_allows_itself_alone():
    named = [kind for kind in NoiseKind if kind is not NoiseKind.AUTO]
    for kind in named:
        assert [other for other in named if kind.allows(other)] == [kind]
        assert NoiseKind.AUTO.allows(kind)
