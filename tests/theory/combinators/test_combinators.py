"""Composition, parallel composition, conversions, sampling."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors
from dpframe.theory.formulas.loss import loss as privacy

FLOAT = t.AtomDomain(float), t.AbsoluteDistance()


def laplace(scale):
    return t.laplace(*FLOAT, scale)


def gaussian(scale):
    return t.gaussian(*FLOAT, scale)


def test_sequential_composition():
    both = t.compose(laplace(1), laplace(2))
    assert both.map(1) == 1.5
    assert len(both(3.0)) == 2
    assert t.compose([laplace(10)] * 10).map(1) == 1.0
    assert t.compose([gaussian(1), gaussian(2)]).map(1) == 0.625
    nested = t.compose([t.compose([laplace(2), laplace(200)]), both])
    assert nested.map(1) == 2.005
    fixed = t.fix_delta(t.zcdp_to_approx(gaussian(1)), 1e-7)
    epsilon, delta = t.compose([fixed] * 2).map(1)
    assert epsilon == pytest.approx(2 * fixed.map(1)[0], rel=1e-15)
    assert delta == 2e-7


def test_composition_over_a_shared_dataset():
    ints = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()
    count = t.count(*ints)
    clamp = t.clamp(*ints, bounds=(0, 10))
    total = clamp >> t.sum(*clamp.output_space)
    answers = t.compose(
        count >> t.laplace(*count.output_space, 2), total >> t.laplace(*total.output_space, 2)
    )
    assert answers.map(3) == 16.5
    assert answers.check(1, 5.5)
    assert len(answers([22, 12])) == 2


def test_composition_refuses_what_does_not_fit():
    with pytest.raises(
        errors.MetricMismatch, match=r"MaxDivergence\(\).*ZeroConcentratedDivergence\(\)"
    ):
        t.compose(laplace(1), gaussian(1))
    with pytest.raises(errors.DomainMismatch):
        t.compose(laplace(1), t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), 1))
    with pytest.raises(errors.MetricMismatch):
        t.compose(laplace(1), t.laplace(t.VectorDomain(t.AtomDomain(int)), t.L1Distance(), 1))
    for nothing in ([], [3], [laplace(1), 3]):
        with pytest.raises(errors.InvalidArgument):
            t.compose(nothing)


def dataset_count(scale):
    count = t.count(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance())
    return count >> t.laplace(*count.output_space, scale)


def test_parallel_composition():
    parts = t.parallel([dataset_count(2), dataset_count(4), dataset_count(1)])
    assert parts.map(1) == 1
    assert parts.map(3) == 3
    assert len(parts([[1, 2], [], [3]])) == 3
    by = t.parallel([dataset_count(2)] * 3, by=lambda v: v % 3)
    assert by.map(1) == 0.5
    assert by.input_domain == t.VectorDomain(t.AtomDomain(int))
    assert len(by(list(range(9)))) == 3
    assert len(by(np.arange(9))) == 3
    with pytest.raises(errors.InvalidArgument):
        parts([[1], [2]])


def test_parallel_split_counts_every_record_once():
    exact = t.Measurement(
        t.VectorDomain(t.AtomDomain(int)),
        t.SymmetricDistance(),
        t.MaxDivergence(),
        len,
        lambda d_in: d_in,
    )
    assert t.parallel([exact] * 3, by=lambda v: v % 4)(list(range(12))) == [3, 3, 3]


def test_parallel_takes_the_worst_split():
    # A loss that grows slower than d_in is worst when the records are spread over the parts.
    root = t.Measurement(
        t.VectorDomain(t.AtomDomain(int)),
        t.SymmetricDistance(),
        t.MaxDivergence(),
        len,
        lambda d_in: math.sqrt(d_in),
    )
    assert t.parallel([root] * 2).map(2) == 2
    assert t.parallel([root] * 2).map(3) == pytest.approx(1 + math.sqrt(2))
    keys = t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance())
    noisy = keys >> t.laplace_threshold(*keys.output_space, scale=1, threshold=20)
    epsilon, delta = t.parallel([noisy] * 2).map(1)
    assert (epsilon, delta) == noisy.map(1)


def test_parallel_refuses():
    changes = t.count(t.VectorDomain(t.AtomDomain(int)), t.ChangeOneDistance())
    with pytest.raises(errors.MetricMismatch):
        t.parallel([changes >> t.laplace(*changes.output_space, 1)])
    sized = t.count(t.VectorDomain(t.AtomDomain(int), 3), t.SymmetricDistance())
    with pytest.raises(errors.DomainMismatch):
        t.parallel([sized >> t.laplace(*sized.output_space, 1)])
    curve = t.count(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance())
    with pytest.raises(errors.InvalidArgument):
        t.parallel(
            [curve >> t.gaussian(*curve.output_space, 1, output_measure=t.RenyiDivergence())]
        ).map(1)


def test_conversions():
    assert t.pure_to_approx(laplace(2)).map(1) == (0.5, 0.0)
    assert t.pure_to_zcdp(laplace(1)).map(1) == pytest.approx(math.tanh(0.5), rel=1e-14)
    assert t.pure_to_zcdp(laplace(1)).map(1) < 0.5
    mixed = t.compose(t.pure_to_zcdp(laplace(10)), gaussian(10))
    assert mixed.map(1) == pytest.approx(0.1 * math.tanh(0.05) + 0.005, rel=1e-14)
    for wrong in (
        lambda: t.pure_to_zcdp(gaussian(1)),
        lambda: t.zcdp_to_approx(laplace(1)),
        lambda: t.fix_delta(gaussian(1), 0.1),
    ):
        with pytest.raises(errors.MetricMismatch):
            wrong()
    with pytest.raises(errors.InvalidArgument):
        t.zcdp_to_approx("gaussian")
    for delta in (-0.1, 1.5, math.nan, "x"):
        with pytest.raises(errors.InvalidArgument):
            t.fix_delta(t.zcdp_to_approx(gaussian(1)), delta)


def test_conversions_of_numbers():
    assert t.pure_to_zcdp(1.0) == privacy.pure_to_zcdp(1)
    assert t.zcdp_to_approx(0.5).epsilon(1e-6) == privacy.zcdp_to_epsilon(0.5, Fraction(1, 10**6))
    assert t.fix_delta(t.zcdp_to_approx(0.5), 1e-6) == (t.zcdp_to_approx(0.5).epsilon(1e-6), 1e-6)
    for bad in (
        lambda: t.zcdp_to_approx(-1),
        lambda: t.pure_to_zcdp(math.nan),
        lambda: t.pure_to_zcdp(-1.0),
    ):
        with pytest.raises(errors.InvalidArgument):
            bad()


def test_profile_figures():
    # Figures of other libraries' tests, by the bound of Canonne, Kamath and Steinke.
    profile = t.zcdp_to_approx(gaussian(4)).map(1)
    assert profile.epsilon(1e-3) <= 0.6880024554878086
    assert profile.epsilon(1e-3) == pytest.approx(0.6880024554878085, rel=1e-12)
    assert profile.delta(0) == pytest.approx(0.1508457845622862, rel=1e-12)
    assert profile.epsilon(0) == math.inf
    assert profile.epsilon(1) == 0
    assert t.zcdp_to_approx(gaussian(4)).map(0).epsilon(0) == 0
    assert t.fix_delta(t.zcdp_to_approx(gaussian(10.5)), 1e-6).check(1, (0.6, 1e-6))


def test_a_threshold_uses_part_of_delta():
    space = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L02InfDistance()
    m = t.zcdp_to_approx(t.gaussian_threshold(*space, scale=2, threshold=12))
    profile, spent = m.map((1, 1, 1))
    assert t.fix_delta(m, 1e-6).map((1, 1, 1)) == (
        pytest.approx(profile.epsilon(1e-6 - spent), rel=1e-9),
        1e-6,
    )
    assert t.fix_delta(m, 1e-9).map((1, 1, 1))[0] == math.inf, "the threshold alone uses more"
    assert m.check((1, 1, 1), (profile.epsilon(1e-6), 1e-6 + spent * 1.01))
    assert not m.check((1, 1, 1), (profile.epsilon(1e-6), 1e-6))
