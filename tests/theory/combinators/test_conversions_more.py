"""Rényi curves to (ε, δ), several profiles together, several units at once, Poisson samples."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import dpframe.theory as t
from dpframe import errors
from dpframe.theory.exact import limit

FLOAT = t.AtomDomain(float), t.AbsoluteDistance()
SMOOTH = t.SmoothedMaxDivergence()
INTS = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()


def gauss(scale):
    return t.gaussian(*FLOAT, scale, output_measure=SMOOTH)


def laplace(scale):
    return t.laplace(*FLOAT, scale, output_measure=SMOOTH)


# Rényi curves


@pytest.mark.parametrize("rho", [0.01, 0.5, 3])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_a_straight_curve_is_what_zcdp_gives(rho, delta):
    curve = t.RenyiCurve(lambda order: rho * order)
    assert t.renyi_to_approx(curve).epsilon(delta) == pytest.approx(t.zcdp_to_epsilon(rho, delta), rel=1e-6)
    assert t.renyi_to_epsilon(curve, delta) >= t.zcdp_to_epsilon(rho, delta) * (1 - 1e-9)
    assert t.renyi_to_approx(curve).delta(1.5) == pytest.approx(t.zcdp_to_delta(rho, 1.5), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_a_renyi_conversion_is_never_below_the_bound_of_its_order(epsilon):
    """400 bits: the δ is that of one order, and no order of a fine grid is much better."""
    curve = t.laplace(*FLOAT, 1.0, output_measure=t.RenyiDivergence()).map(2)
    reached = t.renyi_to_delta(curve, epsilon)
    with ctx.workprec(400):
        best = arb(2)
        for k in range(1, 400):
            alpha = 1 + Fraction(k, 7)
            order, loss = arb(alpha.numerator) / alpha.denominator, arb(curve(float(alpha)))
            bound = ((order - 1) * (loss - arb(epsilon))).exp() / (order - 1) * (1 - 1 / order) ** order
            best = bound if bound < best else best
        assert reached <= min(1.0, float(best.upper()) * (1 + 1e-9))
    assert reached >= t.laplace_delta(epsilon, 2, 1)  # the exact profile of this noise


def test_a_measurement_is_converted():
    m = t.renyi_to_approx(t.compose([t.laplace(*FLOAT, 10.0, output_measure=t.RenyiDivergence())] * 10))
    assert m.output_measure == SMOOTH
    assert t.fix_delta(m, 1e-3).map(1)[0] < 1
    for wrong in (laplace(1.0), t.laplace(*FLOAT, 1.0), 3):
        with pytest.raises(errors.DpFrameError):
            t.renyi_to_approx(wrong)


@pytest.mark.long
def test_renyi_against_dp_accounting():
    """dp_accounting's optimal conversion of the same curve, at the orders it tries, is never better."""
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = np.concatenate([1 + np.arange(1, 1000) / 100, np.arange(11, 512)])
    for scale, count in ((1.0, 1), (10.0, 100), (4.0, 30)):
        accountant = rdp.RdpAccountant(orders)
        import dp_accounting

        accountant.compose(dp_accounting.GaussianDpEvent(scale), count)
        ours = t.renyi_to_epsilon(t.RenyiCurve(lambda a, s=scale, c=count: c * a / (2 * s * s)), 1e-6)
        assert ours <= accountant.get_epsilon(1e-6) * (1 + 1e-9)
        assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


# Profiles together


def test_gaussians_compose_exactly():
    both = t.compose([gauss(3.0), gauss(4.0)])
    one = gauss(2.4)  # 1/3² + 1/4² = 1/2.4²
    for epsilon in (0.1, 1.0, 3.0):
        assert both.map(1).delta(epsilon) == one.map(1).delta(epsilon)
    assert both.map(1).mu_squared == Fraction(25, 144)
    assert len(both(0.0)) == 2


@pytest.mark.parametrize("epsilon", [0.5, *(pytest.param(e, marks=pytest.mark.long) for e in (0.0, 1.0, 2.5))])
def test_a_mix_is_composed_by_privacy_loss_distributions(epsilon):
    """Against dp_accounting's own distributions of the two mechanisms, on a grid of 1e-4."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    ours = t.compose([laplace(1.0), gauss(2.0), laplace(4.0)]).map(1)
    parts = [
        pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-4),
        pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-4),
        pld.from_laplace_mechanism(4.0, value_discretization_interval=1e-4),
    ]
    theirs = parts[0].compose(parts[1]).compose(parts[2])
    assert ours.delta(epsilon) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3, abs=1e-9)
    delta = ours.delta(epsilon)
    assert ours.epsilon(delta * 1.001) <= epsilon + 1e-3


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_two_laplace_noises_together_are_never_below_the_truth(scale):
    """The exact δ of two, by integrating one over the loss of the other; 2,000 points of a midpoint rule."""
    pytest.importorskip("dp_accounting")
    ours = t.compose([laplace(scale), laplace(scale)]).map(1)
    epsilon0 = 1 / scale
    for epsilon in (0.0, epsilon0 / 2, epsilon0, 1.5 * epsilon0):
        # The loss is ε0 with chance 1/2, -ε0 with chance e^-ε0/2, and between them of density e^((ℓ-ε0)/2)/4.
        middle = (np.arange(20_000) + 0.5) / 20_000 * 2 * epsilon0 - epsilon0
        weight = np.exp((middle - epsilon0) / 2) / 4 * (2 * epsilon0 / 20_000)

        def tail(level):
            return np.where(level >= epsilon0, 0.0, np.where(level <= -epsilon0, -np.expm1(level), 0.0)) + np.where(
                np.abs(level) < epsilon0, -np.expm1((level - epsilon0) / 2), 0.0
            )

        truth = 0.5 * tail(np.array(epsilon - epsilon0)) + math.exp(-epsilon0) / 2 * tail(np.array(epsilon + epsilon0))
        truth += (weight * tail(epsilon - middle)).sum()
        assert ours.delta(epsilon) >= truth * (1 - 1e-5)
        assert ours.delta(epsilon) == pytest.approx(float(truth), rel=5e-3, abs=1e-9)


def test_a_profile_that_keeps_a_delta_is_composed():
    """Laplace noise that fails with chance 1e-4: the δ of two is at least 1 - (1 - 1e-4)², and hardly more at ε = 2."""
    pytest.importorskip("dp_accounting")
    space = t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()
    leaky = t.PrivacyProfile(lambda epsilon: 1e-4 + (1 - 1e-4) * t.laplace_delta(epsilon, 1, 1))
    m = t.Measurement(*space, SMOOTH, lambda x: 0, lambda d_in: leaky)
    both = t.compose([m, m]).map(1)
    assert 1 - (1 - 1e-4) ** 2 <= both.delta(2.0) <= 1.01 * (1 - (1 - 1e-4) ** 2)
    none = t.Measurement(*space, SMOOTH, lambda x: 0, lambda d_in: t.PrivacyProfile(lambda epsilon: 1.0))
    assert t.compose([m, none]).map(1).delta(5.0) == 1


def test_nothing_and_everything_compose():
    assert t.compose([gauss(1.0), laplace(1.0)]).map(0).delta(0.0) == 0
    assert t.compose([gauss(1.0), gauss(1.0)]).map(0).epsilon(0.5) == 0


# Several units


def test_several_units():
    assert t.for_several_units((0.5, 0), 4) == (2.0, 0.0)
    profile = gauss(2.0).map(1)
    assert t.for_several_units(profile, 3).delta(1.0) == gauss(2.0).map(3).delta(1.0)
    for size in (1, 2, 3, 5):
        one, many = laplace(4.0).map(1), laplace(4.0).map(size)
        grown = t.for_several_units(one, size)
        for epsilon in (0.0, 0.05, 0.2, 0.5, 1.0):
            assert grown.delta(epsilon) >= many.delta(epsilon) * (1 - 1e-12)
        curve = t.laplace(*FLOAT, 4.0, output_measure=t.RenyiDivergence())
        for order in (1.5, 2.0, 8.0):
            assert t.for_several_units(curve.map(1), size)(order) >= curve.map(size)(order) * (1 - 1e-12)
        straight = t.for_several_units(t.RenyiCurve(lambda order: 0.5 * order), size)(4.0)
        assert size**2 * 2.0 <= straight <= 1.5 * size**2 * 2.0
    for wrong in (lambda: t.for_several_units(1.0, 0), lambda: t.for_several_units(-1.0, 2)):
        with pytest.raises(errors.DpFrameError):
            wrong()


# Poisson samples


def mixture(law, data, q):
    """The law of an answer on a Poisson sample: a mapping from answers to exact chances."""
    out = {}
    for kept in itertools.product((0, 1), repeat=len(data)):
        chance = math.prod((q if k else 1 - q for k in kept), start=1.0)
        for answer, p in law([v for v, k in zip(data, kept, strict=True) if k]).items():
            out[answer] = out.get(answer, 0.0) + chance * p
    return out


def clipped_geometric(total, scale, low=-30, high=30):
    """Discrete Laplace noise on a total, clipped: the law as a table."""
    a = math.exp(-1 / scale)
    table = {}
    for x in range(low - 200, high + 201):
        table[min(max(x, low), high)] = table.get(min(max(x, low), high), 0.0) + (1 - a) / (1 + a) * a ** abs(x - total)
    return table


@pytest.mark.parametrize("q", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_poisson_samples_by_brute_force(q, relation):
    """Every dataset of up to 3 bits and every neighbour: the divergence of the exact laws is within the claim."""
    domain = t.VectorDomain(t.AtomDomain(int, bounds=(-1, 1)))
    total = t.sum(domain, t.SymmetricDistance())
    noisy = total >> t.laplace(*total.output_space, scale=2.0)
    metric = t.ChangeOneDistance() if relation == "replace" else None
    m = t.poisson_sample(noisy, q, input_metric=metric)
    reached = {1: 0.0, 2: 0.0}
    datasets = [c for n in range(4) for c in itertools.combinations_with_replacement((-1, 0, 1), n)]
    laws = {d: mixture(lambda rows: clipped_geometric(sum(rows), 2.0), d, q) for d in datasets}
    for a, b in itertools.permutations(datasets, 2):
        distance = m.input_metric.distance(a, b)
        if distance in reached:
            reached[distance] = max(reached[distance], t.max_divergence(laws[a], laws[b]))
    for distance, divergence in reached.items():
        assert divergence <= m.map(distance) * (1 + 1e-9)
        assert divergence > 0.4 * m.map(distance)  # the claim is no idle one
    if q == 1:
        assert m.map(1) == pytest.approx(noisy.map(2 if relation == "replace" else 1), rel=1e-15)


def test_poisson_figures():
    count = t.count(*INTS)
    noisy = count >> t.laplace(*count.output_space, scale=1.0)
    assert t.poisson_sample(noisy, 0.1).map(1) == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-15)
    both = t.poisson_sample(noisy, 0.1).map(2)
    assert both <= 2 * t.poisson_sample(noisy, 0.1).map(1) * (1 + 1e-15)
    approx = t.poisson_sample(t.fix_delta(t.zcdp_to_approx(count >> t.gaussian(*count.output_space, 2.0)), 1e-5), 0.25)
    assert approx.map(1)[1] == pytest.approx(0.25e-5, rel=1e-12)
    assert t.poisson_sample(noisy, 0.5).map(0) == 0
    assert isinstance(t.poisson_sample(noisy, 0.5)([1, 2, 3]), int)
    assert isinstance(t.poisson_sample(noisy, 0.5)(np.array([1, 2, 3])), int)


@pytest.mark.parametrize("q", [0.01, 0.2, 0.7])
def test_poisson_profiles_against_dp_accounting(q):
    """The profile of sampled Gaussian noise: dp_accounting's, for add and for remove, is never above ours."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    count = t.count(*INTS)
    m = t.poisson_sample(count >> t.gaussian(*count.output_space, 2.0, output_measure=SMOOTH), q)
    theirs = pld.from_gaussian_mechanism(2.0, sampling_prob=q, value_discretization_interval=1e-4)
    for epsilon in (0.1, 0.3, 1.0):
        ours = m.map(1).delta(epsilon)
        assert ours >= theirs.get_delta_for_epsilon(epsilon) * (1 - 1e-3) - 1e-10
        assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=5e-3, abs=1e-8)
        assert limit(ours, "δ") >= 0


def test_poisson_refuses():
    count = t.count(*INTS)
    noisy = count >> t.laplace(*count.output_space, scale=1.0)
    sized = t.count(t.VectorDomain(t.AtomDomain(int), size=3), t.SymmetricDistance())
    replaced = t.count(t.VectorDomain(t.AtomDomain(int)), t.ChangeOneDistance())
    for wrong in (
        lambda: t.poisson_sample(noisy, 0),
        lambda: t.poisson_sample(noisy, 1.5),
        lambda: t.poisson_sample(sized >> t.laplace(*sized.output_space, scale=1.0), 0.5),
        lambda: t.poisson_sample(replaced >> t.laplace(*replaced.output_space, scale=1.0), 0.5),
        lambda: t.poisson_sample(noisy, 0.5, input_metric=t.AbsoluteDistance()),
        lambda: t.poisson_sample(t.laplace(*FLOAT, 1.0), 0.5),
        lambda: t.poisson_sample(t.pure_to_zcdp(noisy), 0.5),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()
