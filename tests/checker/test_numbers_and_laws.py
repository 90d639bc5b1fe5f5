"""The checker's bounds lie beyond the numbers of ball arithmetic;
its laws hold against densities added up here.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from dpframe import dpframe_check as check

RNG = random.Random(1)


def _ball(x):
    return arb(fmpq(x.numerator, x.denominator))


def _some(top, bottoms, n, low=0):
    return [Fraction(RNG.randint(low, top), RNG.choice(bottoms)) for _ in range(n)]


NUMBERS = {
    "exp": (
        check.exp,
        lambda x: x.exp(),
        [*_some(10**5, [7, 999, 10**6], 20, -(10**5)), Fraction(0), Fraction(1)],
    ),
    "log": (
        check.log,
        lambda x: x.log(),
        [
            *_some(10**9, [7, 999, 10**12], 20, 1),
            Fraction(1),
            Fraction(1, 10**400),
            Fraction(10**350),
        ],
    ),
    "root": (
        check.root,
        lambda x: x.sqrt(),
        [*_some(10**12, [1, 7, 10**9], 20), Fraction(0), Fraction(4), Fraction(1, 10**60)],
    ),
    "normal_tail": (
        check.normal_tail,
        lambda x: (x / arb(2).sqrt()).erfc() / 2,
        [
            *_some(10**4, [900, 1234, 10**4], 20, -(10**4)),
            Fraction(0),
            Fraction(3),
            Fraction(299, 100),
            Fraction(300),
        ],
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_bounds_are_on_both_sides_of_the_number_and_near(name):
    function, exact, xs = NUMBERS[name]
    before, ctx.prec = ctx.prec, 600
    try:
        for x in xs:
            low, high, truth = function(check.DOWN, x), function(check.UP, x), exact(_ball(x))
            assert _ball(low) <= truth or _ball(low).overlaps(truth), (name, x)
            assert _ball(high) >= truth or _ball(high).overlaps(truth), (name, x)
            assert high - low <= max(abs(high), Fraction(1, 2**40)) / 10**24, (name, x)
    finally:
        ctx.prec = before


def _normal_above(x):
    return (x / arb(2).sqrt()).erfc() / 2


def _delta(mu_squared, epsilon):
    mu, epsilon = _ball(mu_squared).sqrt(), _ball(epsilon)
    return _normal_above(epsilon / mu - mu / 2) - epsilon.exp() * _normal_above(
        epsilon / mu + mu / 2
    )


def _rho(epsilon, law):
    e = _ball(epsilon)
    return e - 1 + (-e).exp() if law == "laplace" else e * (e / 2).tanh()


def _epsilon_of_rho(rho, order, delta):
    rho, order, delta = map(_ball, (rho, order, delta))
    return order * rho + (1 - 1 / order).log() - (delta.log() + order.log()) / (order - 1)


def _tail(law, scale, least):
    b = _ball(scale)
    if law == "discrete_laplace":
        return (-least / b).exp() / (1 + (-1 / b).exp())
    reached = (least - arb(1) / 2) / b
    return _normal_above(reached) if law == "gaussian" else (-reached).exp() / 2


LAWS = {
    "normal delta": (
        check.normal_delta,
        _delta,
        [_some(400, [7, 30, 99], 30, 1), _some(900, [70, 99], 30, 1)],
    ),
    "rho": (
        lambda *x: check.pure(*x)["rho"],
        _rho,
        [_some(400, [7, 99], 30, 1), ["laplace", "permute_and_flip"] * 15],
    ),
    "epsilon": (
        check.rho_to_epsilon,
        _epsilon_of_rho,
        [_some(99, [7, 99], 30, 1), _some(900, [7, 99], 30, 100), _some(9, [10, 10**8], 30, 1)],
    ),
    "tail": (
        check.noise_tail,
        _tail,
        [["discrete_laplace", "laplace", "gaussian"] * 10, _some(90, [7], 30, 1), range(1, 31)],
    ),
    "power": (
        lambda x, n: -check.power(x, n),
        lambda x, n: -(_ball(x) ** n),
        [[x / 1000 for x in _some(999, [1], 30, 1)], [*range(20), *range(500, 510)]],
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_bounded_from_above(name):
    """By little: the bound is above the number, but by less than 10^-24."""
    bound, exact, arguments = LAWS[name]
    before, ctx.prec = ctx.prec, 1200
    try:
        for x in zip(*arguments, strict=True):
            found, truth = bound(*x), exact(*x)
            assert _ball(Fraction(found)) >= truth or _ball(Fraction(found)).overlaps(truth), x
            assert _ball(Fraction(found)) - truth < arb(10) ** -24, x
    finally:
        ctx.prec = before


def test_pi_is_between_its_ends():
    before, ctx.prec = ctx.prec, 600
    try:
        assert _ball(check.PI_DOWN) < arb.pi() < _ball(check.PI_UP)
    finally:
        ctx.prec = before


def _normal_upper(x):
    return math.erfc(x / math.sqrt(2)) / 2


@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [
        (Fraction(1, 4), Fraction(1)),
        (Fraction(1), Fraction(1, 2)),
        (Fraction(3), Fraction(2)),
        (Fraction(2), Fraction(0)),
    ],
)
def test_delta_of_normal_noise_is_the_distance_of_the_densities(mu, epsilon):
    z = np.linspace(-30, 30, 2_000_001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    shifted = np.exp(-((z - float(mu)) ** 2) / 2) / math.sqrt(2 * math.pi)
    distance = np.maximum(shifted - math.exp(float(epsilon)) * density, 0).sum() * (z[1] - z[0])
    assert float(check.normal_delta(mu * mu, epsilon)) == pytest.approx(distance, rel=1e-6)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(8)]
)
def test_rho_bounds_every_renyi_divergence(epsilon):
    e, z = float(epsilon), np.linspace(-60, 60, 1_200_001)
    flip = np.array([0, e]) - math.log(1 + math.exp(e))
    laplace = [np.log((z[1] - z[0]) / 2) - np.abs(z), np.log((z[1] - z[0]) / 2) - np.abs(z - e)]
    for law, (p, q) in {"laplace": laplace, "discrete_laplace": [flip, flip[::-1]]}.items():
        rho, found = float(check.pure(epsilon, law)["rho"]), []
        for order in (1.001, 1.5, 2, 4, 16):
            terms = order * p + (1 - order) * q
            total = terms.max() + math.log(np.exp(np.maximum(terms - terms.max(), -600)).sum())
            found.append(total / (order - 1) / order)
        assert max(found) <= rho + 1e-5, (law, found, rho)
        assert max(found) >= rho * 0.99 - 1e-5, "the bound is reached near order 1"


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(4), Fraction(150)])
def test_gaussian_privacy_of_pure_privacy_is_just_enough(epsilon):
    low, high = Fraction(0), Fraction(8) * epsilon
    for _ in range(30):  # the least μ² that passes
        middle = (low + high) / 2
        low, high = (low, middle) if check.pure_is_gaussian(epsilon, middle) else (middle, high)
    corner = 1 / (1 + math.exp(float(epsilon)))
    assert _normal_upper(math.sqrt(float(high)) / 2) == pytest.approx(corner, rel=1e-5)
    # no test tells randomized response better than the normal pair does, at any ε' below ε
    if epsilon < 10:
        for part in (Fraction(0), epsilon / 3, epsilon * Fraction(9, 10)):
            response = (math.exp(float(epsilon)) - math.exp(float(part))) / (
                1 + math.exp(float(epsilon))
            )
            assert response <= float(check.normal_delta(high, part)) + 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(200, 7)])
@pytest.mark.parametrize("least", [-2, 0, 1, 4, 40])
def test_tails_of_rounded_noise(scale, least):
    b, z = float(scale), np.arange(-5000, 5001)
    discrete = np.exp(np.maximum(-np.abs(z) / b, -600))
    laplace = np.exp(-(np.maximum(z, 0.5) - 0.5) / b) / 2  # P[round(Z) ≥ z] for z of at least 1
    truth = {
        "discrete_laplace": discrete[z >= least].sum() / discrete.sum(),
        "laplace": laplace[z == least].item(),
        "gaussian": _normal_upper((least - 0.5) / b),
    }
    for law, tail in truth.items():
        found = float(check.noise_tail(law, scale, least))
        assert found >= tail * (1 - 1e-12)
        assert least < 1 or found == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize(
    ("rho", "delta"), [(Fraction(1, 100), Fraction(1, 10**6)), (Fraction(1, 2), Fraction(1, 10**3))]
)
def test_epsilon_of_rho_is_no_less_than_that_of_normal_noise(rho, delta):
    for order in (Fraction(3, 2), Fraction(4), Fraction(40)):
        epsilon = check.rho_to_epsilon(rho, order, delta)
        assert check.normal_delta(2 * rho, max(epsilon, Fraction(0))) <= delta


def _flips(scores, scale):
    """Exact probabilities of permute-and-flip: candidates in random order, each
    is taken with e^(score - best).
    """
    chances, best = [Fraction(0)] * len(scores), max(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for i in order:
            taken = math.exp((scores[i] - best) / scale)
            chances[i] += left * taken / math.factorial(len(scores))
            left *= 1 - taken
    return [float(chance) for chance in chances]


def _exponential(scores, scale):
    weights = [math.exp(score / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def _score(counts, i, rank, fade=None):
    """How far the rows below and above candidate i are from their shares; or its number of rows.

    With `fade`, two public rows are at the ends, and a part 1/fade of one leaves for each row.
    """
    if fade is not None:
        public = max(Fraction(2) - Fraction(sum(counts), fade), Fraction(0)) / 2
        counts = [counts[0] + public, *counts[1:-1], counts[-1] + public]
    if rank is None:
        return counts[i]
    a, b = rank.numerator, rank.denominator
    below, at, above = sum(counts[:i]), counts[i], sum(counts[i + 1 :])
    return -max((b - a) * below - a * (above + at), a * above - (b - a) * (below + at), 0) / b


@pytest.mark.parametrize("fade", [None, 1, 2])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), None])
def test_choices_cost_what_is_said_on_all_small_tables(rank, fade):
    """One row joins or leaves one of three places; scale 2 rows."""
    moved, scale = check.Reach(1, 1, 1, 1), Fraction(2)
    stated = {
        "scale": "2/1",
        "number": 1,
        "rank": None if rank is None else f"{rank.numerator}/{rank.denominator}",
        "fade": fade,
    }
    pure = check.choice_cost({**stated, "law": "permute_and_flip"}, moved)["epsilon"]
    rho = check.choice_cost({**stated, "law": "exponential"}, moved)["rho"]
    worst, worst_rho = 0.0, 0.0
    for counts in itertools.product(range(4), repeat=3):
        for place in range(3):
            more = [n + (i == place) for i, n in enumerate(counts)]
            one, other = (
                [_score(c, i, rank, fade if rank else None) for i in range(3)]
                for c in (counts, more)
            )
            for p, q in zip(_flips(one, float(scale)), _flips(other, float(scale)), strict=True):
                worst = max(worst, abs(math.log(p / q)))
            p, q = (np.array(_exponential(scores, float(scale))) for scores in (one, other))
            for a in (1.001, 2, 8):
                worst_rho = max(worst_rho, math.log((p**a * q ** (1 - a)).sum()) / (a - 1) / a)
    assert worst <= float(pure) + 1e-12
    assert worst_rho <= float(rho) + 1e-12
    assert worst >= float(pure) / 3, "the bound is of the right size"
