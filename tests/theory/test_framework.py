"""Chaining, maps, checks, and what is refused."""

import math
from fractions import Fraction

import pytest

import dpframe.theory as t
from dpframe import errors

INTS = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()


def clamped_sum(bounds=(0, 12)):
    clamp = t.clamp(*INTS, bounds=bounds)
    return clamp >> t.sum(*clamp.output_space)


def test_chain_runs_both_and_maps_through():
    noisy = clamped_sum() >> t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), scale=25.0)
    assert clamped_sum()([100, 10, 8, 7]) == 37
    assert noisy.map(1) == 0.48
    assert noisy.check(1, 0.48)
    assert not noisy.check(1, 0.4799)
    assert noisy.map(2) == 0.96
    assert isinstance(noisy([12, 10, 8, 7]), int)
    assert noisy.output_measure == t.MaxDivergence()
    assert (noisy.input_domain, noisy.input_metric) == INTS


def test_chain_is_associative():
    clamp = t.clamp(*INTS, bounds=(0, 12))
    total = t.sum(*clamp.output_space)
    noise = t.laplace(*total.output_space, scale=25)
    assert ((clamp >> total) >> noise).map(3) == (clamp >> (total >> noise)).map(3) == 1.44


def test_nothing_is_rounded_between_the_parts():
    # √2·3 in the middle of a chain: the ρ at its end is exactly 9.
    cells = t.histogram(
        t.VectorDomain(t.AtomDomain(str)),
        t.ChangeOneDistance(),
        ["a"],
        output_metric=t.L2Distance(),
    )
    assert (cells >> t.gaussian(*cells.output_space, scale=1)).map(3) == 9.0
    # Thirds: 1/3 of 3 is 1, not the next float up.
    third = t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1)), 3), t.ChangeOneDistance())
    assert third.map(1) >= Fraction(1, 3)
    assert (third >> t.laplace(*third.output_space, scale=1)).check(3, 1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (clamped_sum(), t.laplace(t.AtomDomain(float), t.AbsoluteDistance(), 1)),
        (
            t.clamp(*INTS, bounds=(0, 12)),
            t.sum(t.VectorDomain(t.AtomDomain(int, bounds=(0, 10))), t.SymmetricDistance()),
        ),
        (
            t.clamp(*INTS, bounds=(0, 12)),
            t.clamp(t.VectorDomain(t.AtomDomain(int), 5), t.SymmetricDistance(), (0, 9)),
        ),
        (
            t.count_by(*INTS),
            t.laplace_threshold(
                t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L01InfDistance(), 1, 9
            ),
        ),
        (
            t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance()),
            t.laplace_threshold(
                t.MapDomain(t.AtomDomain(str), t.AtomDomain(float)), t.L01InfDistance(), 1, 9
            ),
        ),
    ],
)
def test_domain_mismatch_shows_both_sides(left, right):
    with pytest.raises(errors.DomainMismatch) as caught:
        left >> right
    assert repr(left.output_domain) in str(caught.value)
    assert repr(right.input_domain) in str(caught.value)


def test_metric_mismatch_shows_both_sides():
    clamp = t.clamp(*INTS, bounds=(0, 12))
    changes = t.sum(clamp.output_domain, t.ChangeOneDistance())
    with pytest.raises(
        errors.MetricMismatch, match=r"SymmetricDistance\(\).*ChangeOneDistance\(\)"
    ):
        clamp >> changes
    cells = t.histogram(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance(), ["a"])
    with pytest.raises(errors.MetricMismatch, match=r"L1Distance\(\).*L2Distance\(\)"):
        cells >> t.gaussian(cells.output_domain, t.L2Distance(), 1)


def test_narrower_outputs_fit_wider_inputs():
    clamp = t.clamp(*INTS, bounds=(0, 12))
    again = t.clamp(*INTS, bounds=(3, 5))
    assert (clamp >> again)([1, 9]) == [3, 5]
    sized = t.resize(*INTS, size=3, constant=0)
    assert (sized >> t.count(*INTS))([1]) == 3


def test_postprocessing_is_free():
    noisy = clamped_sum() >> t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), scale=25.0)
    positive = noisy >> (lambda v: max(v, 0))
    assert positive.map(1) == noisy.map(1)
    assert positive([1]) >= 0
    # The function of a transformation may follow as well, and a chain of two measurements is
    # explained.
    assert (noisy >> t.clamp(*INTS, bounds=(0, 1)).function.__call__).map(1) == 0.48
    with pytest.raises(errors.InvalidArgument, match="compose"):
        noisy >> noisy
    with pytest.raises(TypeError):
        noisy >> 3
    with pytest.raises(TypeError):
        clamped_sum() >> 3


def test_members_only():
    with pytest.raises(errors.InvalidArgument, match="not a member"):
        clamped_sum()([1.5])
    with pytest.raises(errors.InvalidArgument, match="not a member"):
        clamped_sum().invoke("abc")
    sized = t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1)), 3), t.ChangeOneDistance())
    with pytest.raises(errors.InvalidArgument, match="size=3"):
        sized([0.5, 0.5])
    with pytest.raises(errors.InvalidArgument):
        sized([0.5, 0.5, 2.0])
    # The message names the domain, and no value of the data.
    with pytest.raises(errors.InvalidArgument) as caught:
        sized([0.123456, 0.5, 2.0])
    assert "0.123456" not in str(caught.value)


@pytest.mark.parametrize("d_in", [-1, 1.5, math.nan, math.inf, "1", None, (1, 1), True, [1]])
def test_distances_of_the_wrong_kind_are_refused(d_in):
    with pytest.raises(errors.InvalidArgument):
        clamped_sum().map(d_in)


@pytest.mark.parametrize("d_in", [-1, math.nan, math.inf, "1", None, (1, 1), True])
def test_lengths_of_the_wrong_kind_are_refused(d_in):
    with pytest.raises(errors.InvalidArgument):
        t.laplace(t.AtomDomain(float), t.AbsoluteDistance(), 1).map(d_in)


@pytest.mark.parametrize(
    "d_in", [1, (1, 1), (1, 1, 1, 1), (-1, 1, 1), (1.5, 1, 1), (1, math.nan, 1), (1, 1, -1), "abc"]
)
def test_triples_of_the_wrong_kind_are_refused(d_in):
    space = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L01InfDistance()
    with pytest.raises(errors.InvalidArgument):
        t.laplace_threshold(*space, 1, 10).map(d_in)


@pytest.mark.parametrize("d_out", [-1, math.nan, "1", (1, 1e-6), None])
def test_losses_of_the_wrong_kind_are_refused(d_out):
    with pytest.raises(errors.InvalidArgument):
        t.laplace(t.AtomDomain(float), t.AbsoluteDistance(), 1).check(1, d_out)


def test_zero_distance_costs_nothing():
    assert clamped_sum().map(0) == 0
    assert t.laplace(t.AtomDomain(float), t.AbsoluteDistance(), 1, granularity=0.5).map(0) == 0
    assert t.gaussian(t.AtomDomain(float), t.AbsoluteDistance(), 1).map(0) == 0
    space = t.MapDomain(t.AtomDomain(str), t.AtomDomain(float))
    assert t.laplace_threshold(space, t.L01InfDistance(), 1, 10, granularity=1).map((0, 0, 0)) == (
        0,
        0,
    )


def test_a_transformation_of_ones_own():
    double = t.Transformation(*INTS, *INTS, lambda x: [*x, *x], lambda d_in: 2 * d_in)
    assert double([1, 2]) == [1, 2, 1, 2]
    assert double.map(3) == 6
    noisy = t.Measurement(
        *INTS, t.Approximate(t.MaxDivergence()), len, lambda d_in: (d_in * 0.1, 1e-6)
    )
    assert noisy.map(3) == (0.30000000000000004, 1e-6)
    assert (double >> noisy).map(1) == (0.2, 1e-6)
    assert noisy.check(1, (0.1, 1e-6))
    for bad in (
        lambda: t.Transformation("x", t.SymmetricDistance(), *INTS, len, len),
        lambda: t.Transformation(INTS[0], "x", *INTS, len, len),
        lambda: t.Transformation(*INTS, "x", t.SymmetricDistance(), len, len),
        lambda: t.Transformation(*INTS, INTS[0], "x", len, len),
        lambda: t.Transformation(*INTS, *INTS, 3, len),
        lambda: t.Measurement(*INTS, "x", len, len),
    ):
        with pytest.raises(errors.InvalidArgument):
            bad()


def test_reprs_say_what_goes_in_and_out():
    assert repr(clamped_sum()) == (
        "Transformation(VectorDomain(AtomDomain(int)), SymmetricDistance() → AtomDomain(int), "
        "AbsoluteDistance())"
    )
    noisy = clamped_sum() >> t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), 1)
    assert (
        repr(noisy)
        == "Measurement(VectorDomain(AtomDomain(int)), SymmetricDistance() → MaxDivergence())"
    )
