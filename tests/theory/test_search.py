"""Search finds the last argument that holds, to the last bit."""

import math

import pytest

import dpframe.theory as t
from dpframe import errors

ABSOLUTE = t.AbsoluteDistance()


@pytest.mark.parametrize("at", [-1000, -5, 0, 5, 12345])
def test_integers(at):
    for kind in ({"T": int}, {"bounds": (-20000, 20000)}):
        assert t.binary_search(lambda x: x <= at, **kind) == at
        assert t.binary_search(lambda x: x >= at, **kind) == at


def test_floats():
    assert t.binary_search(lambda x: x <= math.pi) == math.pi
    assert t.binary_search(lambda x: x >= 1e-9, T=float) == 1e-9
    assert t.binary_search(lambda x: x <= -2.5) == -2.5
    assert t.binary_search(lambda x: x * x <= 2, bounds=(0.0, 2.0)) ** 2 <= 2


def test_parameters():
    assert (
        t.binary_search_param(lambda s: t.laplace(t.AtomDomain(float), ABSOLUTE, s), 12, 0.48)
        == 25.0
    )
    scale = t.binary_search_param(lambda s: t.gaussian(t.AtomDomain(float), ABSOLUTE, s), 1, 0.1)
    assert scale == pytest.approx(math.sqrt(5), rel=1e-15)

    def approximate(s):
        return t.fix_delta(t.zcdp_to_approx(t.gaussian(t.AtomDomain(float), ABSOLUTE, s)), 1e-5)

    scale = t.binary_search_param(approximate, 1.0, (1.0, 1e-5))
    assert approximate(scale).check(1, (1.0, 1e-5))
    assert not approximate(math.nextafter(scale, 0)).check(1, (1.0, 1e-5))


def test_the_type_is_inferred_from_what_is_accepted():
    symmetric = t.SymmetricDistance()

    def total(b):
        return t.sum(t.VectorDomain(t.AtomDomain(int, bounds=(-b, b)), 1000), symmetric)

    def mean_of(n):
        return t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(-20.0, 20.0)), n), symmetric)

    def mean_within(b):
        return t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(-b, b)), 1000), symmetric)

    assert t.binary_search_param(total, 2, 100) == 50
    assert t.binary_search_param(mean_of, 2, 1.0) == 40
    assert t.binary_search_param(mean_within, 2, 1.0) == 500.0
    assert (
        t.binary_search_param(
            lambda p: t.randomized_response(prob=p), 1, math.log(3), bounds=(0.5, 0.99)
        )
        == 0.75
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.binary_search(lambda x: True, bounds=(0, 1)),
        lambda: t.binary_search(lambda x: False, T=int),
        lambda: t.binary_search(lambda x: True, T=str),
        lambda: t.binary_search(lambda x: x > 0, bounds=(1, 0)),
        lambda: t.binary_search(lambda x: x > 0, bounds=(0, math.inf)),
        lambda: t.binary_search(lambda x: x > 0, bounds=3, T=int),
    ],
)
def test_what_cannot_be_found(make):
    with pytest.raises(errors.InvalidArgument):
        make()
