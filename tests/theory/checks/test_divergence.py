"""Divergences of finite, discrete and continuous distributions, against
closed forms and against the maps.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dpframe.theory as t
from dpframe import errors


def test_laplace_sums_of_the_seed():
    u, v = stats.laplace(37, 25), stats.laplace(25, 25)
    assert t.max_divergence(u, v) == pytest.approx(0.48, rel=1e-12)
    assert t.max_divergence(v, u) == pytest.approx(0.48, rel=1e-12)
    for interval in ((40, 80), (20, 30), (-50, 0), (100, 400)):
        assert abs(t.max_divergence(u, v, over=interval)) <= 0.48 + 1e-12
    assert t.max_divergence(u, v, over=(40, 80)) == pytest.approx(0.48, rel=1e-9)
    # With 12 replaced by 100 the same interval tells the two apart.
    far = stats.laplace(125, 25)
    assert t.max_divergence(far, v, over=(100, 150)) > 2
    assert t.max_divergence(far, v) == pytest.approx(4, rel=1e-12)
    assert t.max_divergence(u, v, over=[(-50, 0), (40, 80)]) < t.max_divergence(u, v, over=(40, 80))


def test_no_interval_exceeds_the_largest(rng):
    for p, q in (
        (stats.laplace(1, 2), stats.laplace(0, 2)),
        (stats.norm(0, 1), stats.norm(0.5, 2)),
    ):
        bound = t.max_divergence(p, q)
        for _ in range(300):
            a, b = sorted(rng.normal(0, 6, 2))
            assert t.max_divergence(p, q, over=(a, b)) <= bound + 1e-9


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (stats.norm(0, 1), stats.norm(1, 1), math.inf),
        (stats.norm(0, 1), stats.norm(0, 1), 0),
        (stats.norm(0, 1), stats.norm(0, 2), math.log(2)),
        (stats.norm(0, 2), stats.norm(0, 1), math.inf),
        (stats.norm(0, 1), stats.norm(1, 2), math.log(2) + 1 / 6),
        (stats.laplace(0, 1), stats.laplace(2, 4), math.log(4) + 0.5),
        (stats.laplace(0, 2), stats.laplace(0, 1), math.inf),
        (stats.logistic(0), stats.logistic(1), 1.0),
        (stats.uniform(0, 1), stats.uniform(0, 2), math.log(2)),
        (stats.uniform(0, 2), stats.uniform(0, 1), math.inf),
        (stats.expon(), stats.expon(scale=2), math.log(2)),
        (stats.expon(scale=2), stats.expon(), math.inf),
        (stats.norm(), stats.laplace(), 0.5 + math.log(2 / math.sqrt(2 * math.pi))),
        (stats.laplace(), stats.norm(), math.inf),
        (
            stats.norm(scale=10),
            stats.laplace(scale=0.1),
            5000 + math.log(0.2 / (10 * math.sqrt(2 * math.pi))),
        ),
        (stats.t(3), stats.t(4), math.inf),
        (stats.cauchy(1), stats.cauchy(0), math.log((3 + math.sqrt(5)) / 2)),
    ],
)
def test_continuous(p, q, expected):
    assert t.max_divergence(p, q) == pytest.approx(expected, rel=1e-7)


def test_discrete_laplace_is_its_map():
    m = t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), scale=2)
    for shift in (1, 2, 5):
        p, q = stats.dlaplace(0.5, loc=shift), stats.dlaplace(0.5)
        assert t.max_divergence(p, q) == pytest.approx(m.map(shift), rel=1e-9)
    assert t.max_divergence(
        stats.dlaplace(0.5, loc=1), stats.dlaplace(0.5), over=range(1, 200)
    ) == pytest.approx(0.5)


def test_finite_over_all_sets_is_the_largest_over_each():
    p, q = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.1, "b": 0.6, "c": 0.3}
    sets = [s for r in (1, 2, 3) for s in itertools.combinations("abc", r)]
    largest = max(t.max_divergence(p, q, over=set(s)) for s in sets)
    assert (
        t.max_divergence(p, q)
        == pytest.approx(largest, rel=1e-12)
        == pytest.approx(math.log(2), rel=1e-12)
    )
    assert t.max_divergence(p, q, over=lambda k: k != "b") == pytest.approx(
        math.log(0.7 / 0.4), rel=1e-12
    )
    assert t.max_divergence(p, q, over="a") == pytest.approx(math.log(2), rel=1e-12)
    assert t.max_divergence({"a": 1.0}, {"b": 1.0}) == math.inf
    assert t.max_divergence({"a": 1.0}, {"b": 1.0}, over="b") == -math.inf
    assert t.max_divergence(np.array([0.5, 0.5]), [0.5, 0.5]) == 0
    assert t.max_divergence(stats.binom(3, 0.5), stats.binom(3, 0.25)) == pytest.approx(math.log(8))


def test_other_divergences():
    p, q = stats.norm(1, 1), stats.norm(0, 1)
    exact = t.gaussian(
        t.AtomDomain(float), t.AbsoluteDistance(), 1, output_measure=t.SmoothedMaxDivergence()
    ).map(1)
    for epsilon in (0.0, 0.5, 2.0):
        assert t.hockey_stick_divergence(p, q, epsilon) == pytest.approx(
            exact.delta(epsilon), rel=1e-6
        )
    assert t.renyi_divergence(p, q, 4) == pytest.approx(2.0, rel=1e-8)
    assert t.renyi_divergence([0.5, 0.5], [0.25, 0.75], 2) == pytest.approx(math.log(4 / 3))
    assert t.renyi_divergence([0.5, 0.5], [1.0, 0.0], 2) == math.inf
    assert t.hockey_stick_divergence([0.75, 0.25], [0.25, 0.75], math.log(3)) == pytest.approx(
        0, abs=1e-15
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.max_divergence({"a": 0.5}, {"a": 1.0}),
        lambda: t.max_divergence([1.5, -0.5], [0.5, 0.5]),
        lambda: t.max_divergence([], []),
        lambda: t.max_divergence("ab", "ab"),
        lambda: t.max_divergence([1.0], stats.norm()),
        lambda: t.max_divergence(stats.norm(), stats.norm(), over=(2, 1)),
        lambda: t.max_divergence(stats.norm(), stats.norm(), over=[]),
        lambda: t.max_divergence(stats.norm(), stats.norm(), over=[(0, 2), (1, 3)]),
        lambda: t.hockey_stick_divergence([1.0], [1.0], -1),
        lambda: t.renyi_divergence([1.0], [1.0], 1),
    ],
)
def test_what_is_no_distribution(make):
    with pytest.raises(errors.InvalidArgument):
        make()


@pytest.mark.parametrize(("scale", "shift"), [(1, 1), (0.5, 3), (0.1, 5), (3, 7)])
def test_discrete_tails_that_underflow_are_no_infinite_ratios(scale, shift):
    p, q = stats.dlaplace(1 / scale), stats.dlaplace(1 / scale, loc=shift)
    assert t.max_divergence(p, q) == pytest.approx(shift / scale, rel=1e-9)
    assert t.max_divergence(q, p) == pytest.approx(shift / scale, rel=1e-9)
    assert t.renyi_divergence(p, q, 64) == pytest.approx(
        t.discrete_laplace_renyi(64, shift, scale), rel=1e-8
    )
    assert t.hockey_stick_divergence(p, q, 0.5) == pytest.approx(
        t.discrete_laplace_delta(0.5, shift, scale), rel=1e-8
    )


def test_a_finite_support_against_an_infinite_one():
    assert t.max_divergence(stats.poisson(3), stats.binom(10, 0.3)) == math.inf
    assert t.max_divergence(stats.binom(10, 0.3), stats.poisson(3)) < math.inf


@pytest.mark.parametrize("scale", [0.5, 1, 4])
def test_hockey_stick_of_laplace_distributions(scale):
    p, q = stats.laplace(0, scale), stats.laplace(1, scale)
    for epsilon in (0, 0.1, 0.3, 1, 1.9, 3):
        true = t.laplace_delta(epsilon, 1, scale)
        assert t.hockey_stick_divergence(p, q, epsilon) == pytest.approx(true, rel=1e-9, abs=1e-15)
        assert t.hockey_stick_divergence(q, p, epsilon) == pytest.approx(true, rel=1e-9, abs=1e-15)


# Densities that are NaN far out


class _Torn:
    """A Laplace law, as scipy's frozen ones, whose density is NaN beyond a point."""

    def __init__(self, edge, scale=1.0, side=1):
        self.law, self.edge, self.side = stats.laplace(scale=scale), edge, side

    def __getattr__(self, name):
        if name == "dist":
            raise AttributeError(name)
        return getattr(self.law, name)

    def logpdf(self, x):
        density = -np.abs(x) / self.law.kwds["scale"] - math.log(2 * self.law.kwds["scale"])
        return np.where(self.side * np.asarray(x) > self.edge, np.nan, density)


@pytest.mark.parametrize("edge", [25.0, 60.0, 500.0])
@pytest.mark.parametrize("side", [1, -1])
def test_a_density_that_is_nan_far_out_is_no_obstacle_where_the_ratio_falls(edge, side):
    p, q = _Torn(edge, 1.0, side), stats.laplace(scale=2.0)
    # the largest ratio is at 0
    assert t.max_divergence(p, q) == pytest.approx(math.log(2), rel=1e-9)
    assert t.max_divergence(stats.laplace(scale=1.0), _Torn(edge, 2.0, side)) == pytest.approx(
        math.log(2), rel=1e-9
    )


@pytest.mark.parametrize("edge", [-1.0, 3.0, 25.0, 60.0])
def test_a_density_that_is_nan_where_the_ratio_rises_is_a_typed_error(edge):
    for p, q in (
        (_Torn(edge, 2.0), stats.laplace(scale=1.0)),
        (stats.laplace(scale=2.0), _Torn(edge, 1.0)),
    ):
        with pytest.raises(errors.UnsupportedOperation, match="NaN"):
            t.max_divergence(p, q)
        within = math.log(math.expm1(-0.5) / math.expm1(-1))
        assert t.max_divergence(p, q, over=(-1, 1)) == pytest.approx(within, rel=1e-12)
