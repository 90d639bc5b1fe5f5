"""What the account of (ε, δ) accepted, composed exactly at 400 bits, is within the
limit: prices of every kind, mixed.

A release is replaced by the worst mechanism that its price and its μ² allow: Gaussian noise of this
μ², randomized response, a choice on both ends of its interval of log ratios, a leak of its δ. Log
ratios of the pure ones are added up on a grid that is exact, since each is a multiple of one ε.
"""

import math
import random
from collections import defaultdict
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from dpframe.budget import Budget, Loss, Normal
from dpframe.budget.adaptive import GaussianDp
from dpframe.budget.parts import PartName
from dpframe.errors import BudgetExceeded
from dpframe.theory.formulas.loss import gdp_to_epsilon, gdp_within, range_to_gdp

WHO = "unit 'id', add-remove"
STEP = Fraction(1, 400)  # log ratios of pure mechanisms are multiples of this


def exact(x):
    return arb(fmpq(Fraction(x).numerator, Fraction(x).denominator))


def normal_mass(z):
    return (-z / arb(2).sqrt()).erfc() / 2


def over(epsilon, square, ratio):
    """P - e^ε·Q beyond it, of Gaussian noise of this μ² after log ratios that
    add up to `ratio`, for a P of 1.
    """
    rest = exact(epsilon) - ratio
    if not square:
        gain = 1 - rest.exp()
        return gain if gain > 0 else arb(0)
    mu = exact(square).sqrt()
    return normal_mass(mu / 2 - rest / mu) - rest.exp() * normal_mass(-mu / 2 - rest / mu)


def true_delta(epsilon, responses, square, leaks):
    """δ at ε of randomized responses (top, bottom of their log ratios, in steps),
    Gaussian noise and leaks, exactly.
    """
    with ctx.workprec(400):
        laws = {0: arb(1)}
        for high, low in responses:  # P/Q is e^high with P-mass p, or e^-low
            up, down = exact(high * STEP).exp(), exact(-low * STEP).exp()
            q = (1 - down) / (up - down)
            after = defaultdict(lambda: arb(0))
            for ratio, mass in laws.items():
                after[ratio + high] += mass * q * up
                after[ratio - low] += mass * (1 - q) * down
            laws = after
        rest = sum(
            (mass * over(epsilon, square, exact(ratio * STEP)) for ratio, mass in laws.items()),
            arb(0),
        )
        kept = arb(1)
        for leak in leaks:
            kept *= 1 - exact(leak)
        return 1 - kept + kept * rest


def drawn(draw, limit):
    """A price, what is known besides, and the worst mechanism:
    responses, μ² of Gaussian noise, a leak.
    """
    kind, steps = (
        draw.choice(["pure", "normal", "keys", "normal keys", "choice", "rho"]),
        draw.randint(1, 40),
    )
    epsilon, delta = steps * STEP, limit.exact_delta * Fraction(draw.randint(1, 30), 200)
    square = Fraction(draw.randint(1, 60), 10**4)
    match kind:
        case "pure":
            return (
                Loss.charged(epsilon, Fraction(0)),
                None,
                [(steps, steps)],
                Fraction(0),
                Fraction(0),
            )
        case "normal":
            slack = Fraction(1, 10**8)
            price = Loss.charged(max(gdp_to_epsilon(square, slack), STEP), slack)
            return price, Normal(square), [], square, Fraction(0)
        case "keys":
            return Loss.charged(epsilon, delta), None, [(steps, steps)], Fraction(0), delta
        case "normal keys":
            return Loss.charged_rho(square / 2, delta), Normal(square, keys=True), [], square, delta
        case "choice":
            square, low = (
                range_to_gdp((2 * epsilon) ** 2 / 8),
                draw.randint(1, 2 * steps - 1) if steps > 1 else 1,
            )
            return (
                Loss.charged_rho(square / 2, Fraction(0)),
                Normal(square),
                [(2 * steps - low, low)],
                Fraction(0),
                0,
            )
    return Loss.charged_rho(square / 2, Fraction(0)), None, [], square, Fraction(0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(48))
@pytest.mark.parametrize("turned", [False, True])
def test_prices_of_every_kind_in_any_order_are_within_the_limit(seed, turned):
    draw = random.Random(seed)
    limit = Loss.limit(
        Fraction(draw.choice([1, "1/2", 2])), Fraction(draw.choice(["1/1000000", "1/1000", "1/20"]))
    )
    account, refused = GaussianDp(), 0
    total, responses, square, leaks = account.total([]), [], Fraction(0), []
    # few of them come nearest to the limit
    palette = [drawn(draw, limit) for _ in range(draw.choice([1, 2, 3, 40]))]
    while refused < 6 and len(responses) < 60 and len(leaks) < 200:
        price, known, more, own, leak = draw.choice(palette)
        after = account.total([total, account.charged(total, price, limit, known)])
        if not account.allows(after, limit):
            refused += 1
            continue
        total, square = after, square + own
        responses += [(low, high) if turned else (high, low) for high, low in more]
        leaks += [leak] if leak else []
    delta = true_delta(limit.exact_epsilon, responses, square, leaks)
    assert delta < exact(limit.exact_delta)


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_a_partition_and_the_whole_table(seed):
    """Releases about parts, the whole table, an allowance and found keys in any
    order: the loss of a unit in a part.
    """
    draw, budget = random.Random(seed), Budget(epsilon=1, delta=1e-6)
    name, _ = budget.partition({"by": "c"}, 1)
    units = {key: ([], Fraction(0), []) for key in "abc"}
    refused = 0
    while refused < 8 and len(budget.entries()) < 120:
        price, known, more, own, leak = drawn(draw, budget.limit)
        about = draw.choice(["a", "b", "c", None])
        try:
            part = None if about is None else PartName(name, about)
            budget.charge(price, WHO, "count()", normal=known, part=part)
        except BudgetExceeded:
            refused += 1
            continue
        for key in "abc" if about is None else about:
            responses, square, leaks = units[key]
            units[key] = responses + more, square + own, leaks + ([leak] if leak else [])
    for responses, square, leaks in units.values():
        assert true_delta(1, responses[:80], square, leaks) < exact("1/1000000")


def test_shares_are_as_tight_as_they_are_said_to_be():
    """A hundred shares of counts: the exact δ is 3/4 of the limit, where a
    quarter of it is kept for keys.
    """
    budget = Budget(epsilon=1, delta=1e-6)
    square = 2 * budget.part(Fraction(1, 100)).exact_rho * 100
    with ctx.workprec(400):
        delta = over(Fraction(1), square, arb(0))
    assert exact("74999/100000000000") < delta < exact("75/100000000")
    assert math.isclose(
        float(square), float(gdp_within(Fraction(1), Fraction(3, 4 * 10**6))), rel_tol=1e-9
    )
