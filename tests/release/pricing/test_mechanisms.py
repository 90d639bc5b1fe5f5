"""Every mechanism that adds noise has a law that intervals know, and every kind of noise has one that it buys."""

from inspect import isabstract

import pytest

from dpframe.release.pricing import AddsNoise, Gaussian, KNorm, NoiseKind, NoNoise
from dpframe.release.pricing.mechanisms import Laplace, LaplaceNoise


def _below(kind):
    return [kind, *(deeper for below in kind.__subclasses__() for deeper in _below(below))]


MECHANISMS = [kind for kind in _below(AddsNoise) if not isabstract(kind)]


@pytest.mark.parametrize("kind", MECHANISMS)
def test_intervals_know_the_law_of_every_noise(kind):
    """Estimators take noise that is not Gaussian for Laplace noise: a third law needs branches in them.

    K-norm noise is bought for counts and sums that are released as they are, whose interval asks the mechanism itself.
    """
    assert issubclass(kind, (Gaussian, LaplaceNoise, KNorm, NoNoise)), kind


def test_a_mechanism_must_say_its_own_tail():
    class Staircase(AddsNoise):
        def draw(self, size):
            raise NotImplementedError

    assert isabstract(Staircase)
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
