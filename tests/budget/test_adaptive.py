"""The account of a budget in (ε, δ): its exact loss under every
adaptive choice, and what it accepts.
"""

import functools
import itertools
import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget import Budget, Ledger, Loss, Normal
from dpframe.budget.accountants import Basic
from dpframe.budget.adaptive import SPLITS, GaussianDp
from dpframe.budget.entries import loss_of, texts_of
from dpframe.budget.parts import PartName, opened, raised
from dpframe.errors import BudgetExceeded, BudgetMismatch, InvalidPrice, UnsupportedOperation
from dpframe.release.pricing import log_noise
from dpframe.theory import gaussian_delta
from dpframe.theory.formulas.loss import (
    gdp_in_proportion,
    gdp_to_epsilon,
    gdp_to_pure,
    gdp_within,
    pure_to_gdp,
    range_to_gdp,
)

PHI = NormalDist().cdf
WHO = "unit 'id', add-remove"


# Mechanisms of few outcomes, each a list of (P, Q) for two neighbours


def response(epsilon):
    """Randomized response of ε."""
    chance = 1 / (1 + math.exp(-epsilon))
    return [(chance, 1 - chance), (1 - chance, chance)]


def binned(mu):
    """A Gaussian mechanism whose answer is rounded to bins."""
    ends = [-math.inf, *(x / 2 + mu / 2 for x in range(-2, 8)), math.inf]
    return [(PHI(b - mu) - PHI(a - mu), PHI(b) - PHI(a)) for a, b in itertools.pairwise(ends)]


def leak(delta):
    """Nothing, or with probability δ which of the tables it is."""
    return [(delta, 0.0), (0.0, delta), (1 - delta, 1 - delta)]


def worst(mechanisms, take, start, epsilon, depth):
    """The largest P(E) - e^ε·Q(E) over every way to choose mechanisms from the
    answers so far, and every event E.

    take(state, i) is the account's state after mechanism i, or None if it refuses it.
    """

    @functools.cache
    def value(state, counts, left):
        p = q = 1.0
        for mechanism, times in zip(mechanisms, counts, strict=True):
            for (in_p, in_q), number in zip(mechanism, times, strict=True):
                p, q = p * in_p**number, q * in_q**number
        best = max(0.0, p - math.exp(epsilon) * q)
        if not left or not p:
            return best
        for i, mechanism in enumerate(mechanisms):
            after = take(state, i)
            if after is None:
                continue
            total = 0.0
            for place, (in_p, _) in enumerate(mechanism):
                if in_p:
                    times = [list(own) for own in counts]
                    times[i][place] += 1
                    total += value(after, tuple(map(tuple, times)), left - 1)
            best = max(best, total)
        return best

    return value(start, tuple((0,) * len(mechanism) for mechanism in mechanisms), depth)


LIMIT = Loss.limit(Fraction(1), Fraction(1, 20))


def taking(prices, limit=LIMIT):
    """The account's own decision, for prices with what is known of each."""
    account = GaussianDp()

    def take(state, i):
        price, normal = prices[i]
        total = account.total([state, account.charged(state, price, limit, normal)])
        return total if account.allows(total, limit) else None

    return take


def gaussian(square, delta=Fraction(0)):
    """A price in ρ of Gaussian noise with this μ²."""
    return Loss.charged_rho(square / 2, delta), Normal(square)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("parts", [4, 6])
@pytest.mark.parametrize("share", [Fraction(1, 8), Fraction(1, 4)])
def test_no_adaptive_choice_gets_more_than_the_limit(parts, share, turned):
    """Gaussian noise, randomized response and a leak, in every order
    that the answers may call for.
    """
    square, epsilon, delta = (
        gdp_within(Fraction(1), Fraction(3, 80)) / parts,
        Fraction(1, 3),
        share * Fraction(1, 20),
    )
    mechanisms = [binned(float(square) ** 0.5), response(float(epsilon)), leak(float(delta))]
    if turned:
        mechanisms = [[(q, p) for p, q in mechanism] for mechanism in mechanisms]
    tiny = Fraction(1, 10**9)
    prices = [
        gaussian(square),
        (Loss.charged(epsilon, Fraction(0)), None),
        (Loss.charged(tiny, delta), None),
    ]
    loss = worst(mechanisms, taking(prices), GaussianDp().total([]), 1.0, 5)
    assert 0.01 < loss <= 0.05


def test_the_union_of_two_accounts_that_both_use_delta_gets_more():
    """Negative control: go on while prices add up to (ε, δ), or while μ² is
    within (ε, δ), each with all of δ.
    """
    epsilon, delta = LIMIT.exact_epsilon, LIMIT.exact_delta
    most = gdp_within(epsilon, delta)
    square, used = most / 4, delta * Fraction(19, 20)
    facts = [
        (gdp_to_epsilon(square, delta / 20), delta / 20, square, False),
        (Fraction(0), used, Fraction(0), True),
    ]

    def take(state, i):
        total = tuple(a + b for a, b in zip(state, facts[i], strict=True))
        return (
            total
            if (total[0] <= epsilon and total[1] <= delta) or (total[2] <= most and not total[3])
            else None
        )

    mechanisms = [binned(float(square) ** 0.5), leak(float(used))]
    assert worst(mechanisms, take, (Fraction(0), Fraction(0), Fraction(0), 0), 1.0, 5) > 1.2 * 0.05


def leaking(mechanism, delta):
    """A mechanism that tells with probability δ which of the tables it is."""
    return [*((p * (1 - delta), q * (1 - delta)) for p, q in mechanism), (delta, 0.0), (0.0, delta)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_no_adaptive_choice_among_parts_and_the_whole_table_gets_more(seed):
    """Three releases about a unit, some of them about its part, and two about
    another part, which only count.
    """
    draw, account = random.Random(seed), GaussianDp()
    limit = Loss.limit(Fraction(draw.choice([1, 2, "1/2"])), Fraction(1, 20))
    prices, mechanisms = [], []
    for _ in range(5):
        epsilon = limit.exact_epsilon * Fraction(draw.choice([1, 2, 3, 6, 9]), 10)
        square = (limit.exact_epsilon * Fraction(draw.randint(1, 12), 10)) ** 2 / 4
        delta, keys = limit.exact_delta * Fraction(draw.randint(1, 16), 20), draw.random() < 0.5
        if draw.random() < 0.5:
            prices.append((Loss.charged(epsilon, delta if keys else Fraction(0)), None))
            mechanisms.append(response(float(epsilon)))
        else:
            typed = Loss.charged(
                gdp_to_epsilon(square, limit.exact_delta / 20), limit.exact_delta / 20
            )
            rho = Loss.charged_rho(square / 2, delta if keys else Fraction(0))
            prices.append(
                (typed if draw.random() < 0.5 and not keys else rho, Normal(square, keys))
            )
            mechanisms.append(binned(float(square) ** 0.5))
        mechanisms[-1] = leaking(mechanisms[-1], float(delta)) if keys else mechanisms[-1]
    places = [draw.choice([None, "a"]) for _ in range(3)] + ["b", "b"]
    mechanisms[3:] = [[(1.0, 1.0)]] * 2

    @functools.cache
    def take(state, i):
        total, parts = state[0], json.loads(state[1])
        counted = account.charged(total, prices[i][0], limit, prices[i][1])
        if places[i] is not None:
            counted, parts = raised(parts, PartName("p", places[i]), counted)
        total = account.total([total, counted])
        return (total, json.dumps(parts, sort_keys=True)) if account.allows(total, limit) else None

    start = account.total([]), json.dumps(opened({}, "p", 1, ""))
    for turned in (mechanisms, [[(q, p) for p, q in mechanism] for mechanism in mechanisms]):
        assert worst(turned, take, start, float(limit.exact_epsilon), 3) <= 0.05


def excess(epsilon, square, ratio):
    """The largest P(E) - e^ε·Q(E) that Gaussian mechanisms of this μ² reach from a
    log ratio of P to Q, for P = 1.
    """
    mu, rest = math.sqrt(square), epsilon - ratio
    return PHI(mu / 2 - rest / mu) - math.exp(rest) * PHI(-mu / 2 - rest / mu)


@pytest.mark.parametrize(("number", "reached"), [(5, 1.71e-6), (20, 1.39e-6), (100, 1.18e-6)])
def test_no_account_accepts_all_that_adds_up_and_more(number, reached):
    """After one of k Gaussian mechanisms that together meet (1, 1e-6):
    the rest of them, or all that still adds up.
    """
    square = float(gdp_within(Fraction(1), Fraction(1, 10**6)))
    one, own = square / number, 1e-8
    first = gdp_to_epsilon(Fraction(one), Fraction(own))
    left, step, better, rest = 1e-6 - own, 1e-3, 0.0, 0.0
    for place in range(-9000, 9000):
        chance = NormalDist().pdf(place * step) * step
        ratio = one / 2 + math.sqrt(one) * place * step
        adding = left + (1 - left) * max(0.0, 1 - math.exp(min(float(first) - ratio, 0.0)))
        squares = excess(1.0, square - one, ratio)
        better, rest = better + chance * max(adding, squares), rest + chance * squares
    assert rest == pytest.approx(1e-6, rel=1e-4)
    assert better > reached


@pytest.mark.one_in(2)
@pytest.mark.parametrize("turned", [False, True])
def test_the_sums_begin_anew_after_prices_that_added_up(turned):
    """First prices that add up, in ε or in δ, then whatever helps most:
    squares, a pure release, or a leak.
    """
    square = gdp_within(Fraction(2, 3), Fraction(3, 160)) / 3
    mechanisms = [response(1 / 3), leak(1 / 80), binned(float(square) ** 0.5)]
    if turned:
        mechanisms = [[(q, p) for p, q in mechanism] for mechanism in mechanisms]
    prices = [(Loss.charged(Fraction(1, 3), Fraction(0)), None)]
    prices += [(Loss.charged(Fraction(1, 10**9), Fraction(1, 80)), None), gaussian(square)]
    account = GaussianDp()
    begun = account.total([account.charged(account.total([]), prices[0][0], LIMIT)])
    assert begun.split is None
    shared = account.charged(begun, prices[2][0], LIMIT, prices[2][1])
    assert shared.before == prices[0][0]
    assert 0.025 < worst(mechanisms, taking(prices), account.total([]), 1.0, 4) <= 0.05


def test_to_begin_anew_with_all_of_epsilon_gets_more():
    """Negative control: after a pure release, all of δ for keys, or two sums that
    take no notice of the release.
    """
    square = gdp_within(Fraction(1), Fraction(1, 20))

    def take(state, i):
        pure, leaks, squares = (n + (i == place) for place, n in enumerate(state))
        return (
            (pure, leaks, squares)
            if pure <= 1 and leaks <= 1 and squares <= 2 and not (leaks and squares)
            else None
        )

    mechanisms = [response(0.5), leak(1 / 20), binned(math.sqrt(square / 2))]
    assert worst(mechanisms, take, (0, 0, 0), 1.0, 4) > 1.2 * 0.05


# Conversions


def test_the_square_of_a_choice_covers_every_law_on_an_interval():
    """Both ends of an interval of log ratios, wherever it lies around 0, and the
    exponential mechanism on scores.
    """
    for width in (1e-3, 0.1, 1.0, 3.0, 10.0):
        square = float(range_to_gdp(Fraction(width) ** 2 / 8))
        for place in range(1, 200):
            top = width * place / 200
            q = -math.expm1(top - width) / (math.exp(top) - math.exp(top - width))
            p = q * math.exp(top)
            if q > 1e-12 and p < 1 - 1e-12:
                assert NormalDist().inv_cdf(p) - NormalDist().inv_cdf(q) <= math.sqrt(square) + 1e-9
    draw = random.Random(0)
    for _ in range(200):
        width, scores = (
            draw.choice([0.1, 1.0, 4.0]),
            [draw.uniform(0, 3) for _ in range(draw.choice([2, 3, 7]))],
        )
        moved = [score + draw.choice([0, width]) for score in scores]
        weights = [[math.exp(score) for score in one] for one in (scores, moved)]
        p, q = ([weight / sum(one) for weight in one] for one in weights)
        mu = math.sqrt(float(range_to_gdp(Fraction(width) ** 2 / 8)))
        for epsilon in (0.0, width / 7, width / 2, width * 0.9):
            for one, other in ((p, q), (q, p)):
                delta = sum(
                    max(0.0, a - math.exp(epsilon) * b) for a, b in zip(one, other, strict=True)
                )
                assert delta <= gaussian_delta(epsilon, mu) + 1e-12
    assert range_to_gdp(Fraction(1)) < 4 * pure_to_gdp(Fraction(1)) < range_to_gdp(Fraction(4))


@pytest.mark.parametrize(
    "epsilon", ["1/1000000", "1/100", "1/10", "1", "3", "20", "99", "101", "1000"]
)
def test_the_square_of_a_pure_mechanism_covers_randomized_response(epsilon):
    """At every ε' the exact δ of randomized response, the worst ε-private
    mechanism, is at most that of μ.
    """
    pure = Fraction(epsilon)
    square = pure_to_gdp(pure)
    assert gdp_to_pure(square) <= pure
    assert pure_to_gdp(gdp_to_pure(square)) <= square
    if pure > 20:
        assert square <= 8 * pure
        return
    chance = 1 / (1 + math.exp(-float(pure)))
    for part in range(20):
        own = float(pure) * part / 20
        exact = chance - math.exp(own) * (1 - chance)
        assert exact <= gaussian_delta(own, math.sqrt(float(square))) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (5, 1e-3)])
def test_the_square_within_a_limit_is_that_of_dp_accounting_from_below(epsilon, delta):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    square = gdp_within(Fraction(epsilon), Fraction(delta))
    for parts in (1, 10):
        one = pld.from_gaussian_mechanism(
            math.sqrt(parts / square), value_discretization_interval=1e-4
        )
        theirs = one.self_compose(parts).get_delta_for_epsilon(epsilon)
        assert theirs == pytest.approx(delta, rel=5e-3)
    assert gaussian_delta(Fraction(epsilon), Fraction(math.sqrt(float(square)))) <= delta * (
        1 + 1e-9
    )
    assert (
        gaussian_delta(Fraction(epsilon), Fraction(math.sqrt(float(square) * (1 + 1e-6)))) > delta
    )


@pytest.mark.parametrize("square", ["1/10000000000", "1/100", "1", "50"])
def test_the_epsilon_in_proportion_keeps_its_delta(square):
    rate = Fraction(1, 10**7)
    epsilon = gdp_in_proportion(Fraction(square), rate)
    assert gaussian_delta(epsilon, math.sqrt(Fraction(square))) <= rate * epsilon
    assert gaussian_delta(
        epsilon * Fraction(999, 1000), math.sqrt(Fraction(square))
    ) > rate * epsilon * Fraction(999, 1000)


# What is accepted


def mixed(budget):
    """A question of each kind."""
    frame, box = visits(budget), {"bounds": (0, 10), "max_rows": 2}
    columns = {
        "n": dp.count(),
        "m": dp.mean("x", bounds=(0, 10)),
        "h": dp.median("x", bounds=(0, 10)),
    }
    found = frame.group_by("c", max_groups=2, max_rows=1)
    questions = [
        frame.count_units(),
        frame.sum("x", **box),
        frame.mean("x", **box),
        frame.median("x", **box),
    ]
    return [
        *questions,
        found.count(),
        frame.agg(**columns, max_rows=2),
        frame.quantile("x", [0.1, 0.9], **box),
    ]


@pytest.mark.parametrize("number", [1, 2, 5, 9, 10, 14, 20, 100])
def test_a_share_never_buys_more_noise_than_adding_up(number):
    """Of counts, sums, means, medians, quantiles, found keys and all of them:
    the noise, beside that of ε/k and δ/k.
    """
    one, other = (Budget(epsilon=1, delta=1e-6, accountant=name) for name in ("gdp", "basic"))
    for own, basic in zip(mixed(one), mixed(other), strict=True):
        noise = [
            log_noise(query._noise_plan({"share": 1 / number}, "auto")) for query in (own, basic)
        ]
        assert noise[0] <= noise[1] + 0.02


def test_prices_that_add_up_decide_nothing():
    """Twenty releases of ε = 0.05 all fit; after ten of them, shares of 0.01 begin
    the two sums with what is left.
    """
    budget = Budget(epsilon=1, delta=1e-6)
    query = visits(budget).count_units()
    for _ in range(10):
        query.release(epsilon=0.05)
    assert budget.standing.more == 10
    assert budget.part(Fraction(1, 2)) == Loss.limit(Fraction(1, 2), Fraction(1, 2 * 10**6))
    square = gdp_within(Fraction(1, 2), Fraction(3, 4 * 10**6))
    assert budget.part(Fraction(1, 100)).exact_rho == pytest.approx(float(square) / 100, rel=1e-9)
    query.release(share=0.01)
    assert budget.standing.more == 49
    for _ in range(49):
        query.release(share=0.01)
    with pytest.raises(BudgetExceeded):
        query.release(share=0.01)
    typed = Budget(epsilon=1, delta=1e-6)
    for _ in range(20):
        visits(typed).count_units().release(epsilon=0.05)
    with pytest.raises(BudgetExceeded):
        visits(typed).count_units().release(epsilon=0.05)


def test_sums_of_an_older_ledger_go_on():
    """A split of 1 was written while prices added up;
    without `before`, the sums began with all of the limit.
    """
    old = {"epsilon": "1/10", "delta": "0/1", "rho": None, "mu_squared": "1/64", "split": "1/1"}
    account, limit, own = GaussianDp(), Loss.limit(Fraction(1), Fraction(1, 10**6)), loss_of(old)
    assert own.split is None
    shared = account.charged(
        own, *gaussian(Fraction(1, 1000))[:1], limit, gaussian(Fraction(1, 1000))[1]
    )
    assert (shared.split, shared.before.exact_epsilon) == (Fraction(1, 4), Fraction(1, 10))
    assert loss_of(texts_of(own + shared)) == own + shared
    begun = loss_of({**old, "split": "1/4"})
    most = gdp_within(Fraction(1), Fraction(3, 4 * 10**6))
    assert account.shown(begun, limit).epsilon == 0.1
    assert account.part(begun, Fraction(1, 100), limit).exact_epsilon == Fraction(1, 100)
    assert account.allows(replace(begun, exact_epsilon=Fraction(2), mu_squared=most), limit)
    assert not account.allows(replace(begun, exact_epsilon=Fraction(2), mu_squared=most * 2), limit)


def visits(budget):
    return pl.DataFrame({"u": [1, 1, 2], "c": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}).dp(
        unit="u", budget=budget
    )


@pytest.mark.parametrize("number", [1, 2, 5, 8, 9, 20, 100, 1000])
def test_equal_shares_have_hardly_more_noise_than_the_best_account_and_all_fit(number):
    """The best of basic composition of discrete Laplace noise and of
    Gaussian privacy with all of δ.
    """
    budget = Budget(epsilon=1, delta=1e-6)
    best = min(
        math.sqrt(2) * number, math.sqrt(number / gdp_within(Fraction(1), Fraction(1, 10**6)))
    )
    query = visits(budget).count_units()
    (noise,) = query.release(share=1 / number).noise.iter_rows(named=True)
    deviation = noise["scale"] * (1.0 if noise["mechanism"] == "gaussian" else math.sqrt(2))
    assert deviation <= 1.02 * best
    account, limit = GaussianDp(), budget.limit
    total, price = account.total([]), budget.part(Fraction(1, number))
    for _ in range(number):
        price = account.part(total, Fraction(1, number), limit)
        known = None if price.exact_rho is None else Normal(2 * price.exact_rho, keys=True)
        total = account.total([total, account.charged(total, price, limit, known)])
        assert account.allows(total, limit)
    assert account.more(total, price, limit, known) == 0


@pytest.mark.parametrize("seed", range(30))
def test_shares_that_add_up_to_the_budget_are_accepted_in_any_order(seed):
    draw, limit, account = (
        random.Random(seed),
        Loss.limit(Fraction(1), Fraction(1, 10**6)),
        GaussianDp(),
    )
    cuts = sorted(draw.sample(range(1, 200), draw.choice([1, 3, 9, 30])))
    shares = [Fraction(b - a, 200) for a, b in itertools.pairwise([0, *cuts, 200])]
    total = account.total([])
    for share in shares:
        price = account.part(total, share, limit)
        if price.exact_rho is not None:
            known = Normal(2 * price.exact_rho, keys=draw.random() < 0.5)
        else:  # pure noise, or Gaussian noise of this (ε, δ)
            square = gdp_within(price.exact_epsilon, price.exact_delta)
            known = draw.choice([None, Normal(square), Normal(square, keys=True)])
            price = (
                price
                if draw.random() < 0.5 or known
                else Loss.charged(price.exact_epsilon, Fraction(0))
            )
        total = account.total([total, account.charged(total, price, limit, known)])
        assert account.allows(total, limit)


def spent(prices, limit):
    """How many of these prices are accepted, one after another, until one is refused."""
    account = GaussianDp()
    total = account.total([])
    for number, (price, known) in enumerate(prices):
        total = account.total([total, account.charged(total, price, limit, known)])
        if not account.allows(total, limit):
            return number
    return len(prices)


def divided(draw, number):
    parts = [draw.random() ** 3 + 1e-3 for _ in range(number)]
    return [Fraction(math.floor(10**9 * part / sum(parts)), 10**9) for part in parts]


@pytest.mark.parametrize("seed", range(40))
def test_what_prices_add_up_to_is_accepted(seed):
    """Pure prices; Gaussian prices; and equal prices of any one kind:
    all that basic composition accepts.
    """
    draw = random.Random(seed)
    limit = Loss.limit(
        Fraction(draw.choice([1, "1/2", 3, 8])), Fraction(draw.choice(["1/1000", "1/1000000"]))
    )
    number = draw.choice([1, 2, 3, 7, 20])
    epsilons, deltas = divided(draw, number), divided(draw, number)
    pure = [(Loss.charged(limit.exact_epsilon * part, Fraction(0)), None) for part in epsilons]
    assert spent(pure, limit) == number
    equal = Loss.charged(limit.exact_epsilon / number, limit.exact_delta / number)
    square = gdp_within(equal.exact_epsilon, equal.exact_delta)
    for known in (None, Normal(square), Normal(square, keys=True)):
        assert spent([(equal, known)] * number, limit) == number
    amounts = [
        Loss.charged(limit.exact_epsilon * e, limit.exact_delta * d)
        for e, d in zip(epsilons, deltas, strict=True)
    ]
    prices = [
        (p, Normal(gdp_within(p.exact_epsilon, p.exact_delta))) for p in amounts if p.exact_delta
    ]
    assert Basic().allows(Basic().total(price for price, _ in prices), limit)
    assert spent(prices, limit) == len(prices)


@pytest.mark.parametrize("seed", range(40))
def test_mixed_prices_are_accepted_but_for_the_last_part(seed):
    """Pure, Gaussian and found keys in any order: with 0.8 of ε, and keys with at most
    3/16 of δ, nothing is refused.

    That is the corner in which prices alone accept more: the last fifth of ε beside Gaussian noise,
    more δ for keys.
    """
    draw, limit = random.Random(seed), Loss.limit(Fraction(1), Fraction(1, 10**6))
    prices = []
    for part in divided(draw, draw.choice([2, 5, 12])):
        epsilon, delta = part * Fraction(8, 10), part * limit.exact_delta
        kind = draw.choice(["pure", "gaussian", "keys"]) if prices else "pure"
        if kind == "pure":
            prices.append((Loss.charged(epsilon, Fraction(0)), None))
        elif kind == "gaussian" and part > Fraction(1, 10**4):
            prices.append((Loss.charged(epsilon, delta), Normal(gdp_within(epsilon, delta))))
        else:
            prices.append((Loss.charged(epsilon, delta * Fraction(3, 16)), None))
    assert spent(prices, limit) == len(prices)


@pytest.mark.parametrize("seed", range(10))
def test_the_number_of_releases_that_still_fit_is_right(seed):
    draw, limit, account = (
        random.Random(seed),
        Loss.limit(Fraction(1), Fraction(1, 10**6)),
        GaussianDp(),
    )
    square = gdp_within(Fraction(1), Fraction(1, 10**6)) / draw.choice([5, 12, 40])
    kinds = [gaussian(square), (Loss.charged(Fraction(1, 11), Fraction(0)), None)]
    kinds.append((Loss.charged(Fraction(1, 30), Fraction(1, 10**8)), None))
    total = account.total([])
    for number in range(4):
        price, known = draw.choice(kinds if number else kinds[:1])
        total = account.total([total, account.charged(total, price, limit, known)])
        assert account.allows(total, limit)
    said = account.more(total, price, limit, known)
    for _ in range(said):
        total = account.total([total, account.charged(total, price, limit, known)])
        assert account.allows(total, limit)
    assert not account.allows(
        account.total([total, account.charged(total, price, limit, known)]), limit
    )


def test_a_first_release_may_take_everything():
    for price in (
        Loss.charged(Fraction(1), Fraction(1, 10**6)),
        Loss.charged(Fraction(1), Fraction(0)),
    ):
        for known in (
            None,
            Normal(gdp_within(Fraction(1), Fraction(1, 10**6))),
            Normal(Fraction(1), keys=True),
        ):
            budget = Budget(epsilon=1, delta=1e-6)
            budget.charge(price, WHO, "count()", normal=known)
            with pytest.raises(BudgetExceeded):
                budget.charge(Loss.charged(Fraction(1, 10), Fraction(1, 10**7)), WHO, "count()")


def test_a_split_is_chosen_once_and_from_the_first_release():
    """Ten releases that find keys at a tenth of δ each all fit; after them nothing does."""
    account, limit = GaussianDp(), Loss.limit(Fraction(1), Fraction(1, 10**6))
    price = Loss.charged(Fraction(1, 10), Fraction(1, 10**7))
    first = account.charged(account.total([]), price, limit)
    assert first.split is None
    assert account.charged(account.total([first]), price, limit).split is None
    assert spent([(price, None)] * 11, limit) == 10


# Budgets, ledgers, parts


@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_every_price_is_taken_and_keeps_its_meaning():
    budget = Budget(epsilon=1, delta=1e-6)
    frame = visits(budget)
    frame.count_units().release(epsilon=0.1)
    frame.count_units().release(rho=1e-5, name="by ρ")
    frame.median("x", bounds=(0, 10), max_rows=1).release(epsilon=0.05, delta=1e-8)
    frame.median("x", bounds=(0, 10), max_rows=1).release(rho=1e-6)
    frame.group_by("c", max_groups=1, max_rows=1).count().release(epsilon=0.05, delta=1e-8)
    frame.group_by("c", max_groups=1, max_rows=1).count().release(share=0.02)
    assert budget.accountant == "gdp"
    lines = budget.history()
    assert [line.epsilon for line in lines[:1]] == [0.1]
    assert (lines[1].rho, lines[4].delta) == (1e-5, 1e-8)
    assert budget.spent.epsilon < 0.5
    assert budget.spent.delta <= 1e-6
    assert "adding up prices" in budget.standing.words or budget.standing.simple == budget.spent


def test_a_hundred_gaussian_counts_that_add_up_to_ten_fit():
    budget = Budget(epsilon=1, delta=1e-6)
    query = visits(budget).count_units()
    for _ in range(90):
        query.release(epsilon=0.1, delta=1e-7, noise="gaussian")
    assert budget.spent.epsilon < 1
    assert budget.standing.simple.epsilon > 8
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        query.release(epsilon=0.9)


def test_a_plan_of_equal_releases_is_accepted_and_takes_all():
    for number in (1, 4, 30):
        budget = Budget(epsilon=1, delta=1e-6)
        query = visits(budget).count_units()
        query.release(epsilon=0.01)
        price = budget.plan(n=number)
        typed = {"epsilon": price.epsilon} if price.rho is None else {"rho": price.rho}
        for _ in range(number):
            query.release(**typed)
        with pytest.raises(BudgetExceeded):
            query.release(**typed)
    assert Budget(epsilon=1).plan(n=4).epsilon == 0.25
    assert Budget(rho=1).plan(n=4).rho == 0.25


def known(budget):
    """What the last charge says is known of the release besides its price."""
    said = budget.entries()[-2].body.get("normal")
    return said and Fraction(said["mu_squared"])


def test_the_square_of_a_release_is_that_of_all_its_noise():
    """Two Gaussian columns, one mechanism of (ε, δ):
    the δ of their μ at ε is δ, from below and closely.
    """
    budget = Budget(epsilon=5, delta=1e-5)
    frame = visits(budget)
    sums = {"n": dp.count(), "x": dp.sum("x", (0, 10))}
    frame.agg(**sums, max_rows=2).release(epsilon=0.3, delta=1e-7, noise="gaussian")
    assert 0.9999e-7 < gaussian_delta(Fraction(3, 10), math.sqrt(known(budget))) < 1.0001e-7
    frame.agg(**sums, max_rows=2).release(epsilon=0.3, noise="laplace")
    assert float(known(budget)) == pytest.approx(
        2 * float(pure_to_gdp(Fraction(15, 100))), rel=1e-9
    )
    for ask in (
        frame.agg(**sums, max_rows=2),
        frame.median("x", (0, 10), max_rows=2),
        frame.agg(**sums, max_rows=2),
    ):
        out = ask.release(rho=0.001)
        assert known(budget) <= 2 * math.pi * Fraction(out.cost.rho) * (1 + 1e-6) * 2
    frame.group_by("c", keys=["a", "b"], limits=dp.Auto()).count().release(epsilon=0.3)
    assert not known(budget)


def test_a_share_is_a_price_by_itself():
    query = visits(Budget(epsilon=1)).count_units()
    assert query.release(share=0.5).cost.epsilon == 0.5
    assert query.accuracy(share=0.5)["scale"].to_list() == [2.0]
    table = pl.DataFrame({"u": [1, 2]})
    assert table.dp.count_units(unit="u", budget=Budget(epsilon=1), share=0.25).cost.epsilon == 0.25
    for typed in ({"epsilon": 1}, {"delta": 1e-6}, {"rho": 1}):
        with pytest.raises(InvalidPrice, match="by itself"):
            query.release(share=0.1, **typed)
    with pytest.raises(InvalidPrice, match="at most 1"):
        query.release(share=1.5)
    with pytest.raises(InvalidPrice):
        Budget(epsilon=1, accountant="gdp")


def test_the_share_for_an_error_is_the_smallest_one():
    query = visits(Budget(epsilon=1, delta=1e-6)).count_units()
    share = query.epsilon_for(error=100, share=True)
    assert (
        query.accuracy(share=share)["error"][0]
        <= 100
        < query.accuracy(share=share * 0.99)["error"][0]
    )
    with pytest.raises(UnsupportedOperation, match="whole budget"):
        query.epsilon_for(error=0.5, share=True)


def test_a_ledger_keeps_the_account_a_budget_was_made_with(place):
    ledger = Ledger(place)
    for number, accountant in enumerate(("basic", "gdp", None)):
        name = f"visits {number}"
        budget = ledger.budget(name, epsilon=1, delta=1e-6, accountant=accountant)
        again = Ledger(place).budget(name, epsilon=1, delta=1e-6)
        assert again.accountant == budget.accountant == (accountant or "gdp")
    with pytest.raises(BudgetMismatch):
        ledger.budget("visits 0", epsilon=1, delta=1e-6, accountant="gdp")
    budget = ledger.budget("visits 2")
    query = visits(budget).count_units()
    first = query.release(share=0.01, name="first")
    query.release(epsilon=0.2)
    visits(budget).count_units().release(epsilon=0.1, delta=1e-7, noise="gaussian")
    again = Ledger(place).budget("visits 2")
    assert (again.spent, again.remaining, again.standing) == (
        budget.spent,
        budget.remaining,
        budget.standing,
    )
    assert again.history() == budget.history()
    stored = query.release(share=0.01, name="first")
    assert stored.table.equals(first.table)
    assert (stored.cost, stored.noise.rows()) == (first.cost, first.noise.rows())
    assert ledger.verify() == Ledger(place).verify()


def _hold_processes(spenders, place, processes, spends, fit):
    said = spenders("squares", place, processes, spends, fit)
    assert said == {"errors": [], "granted": fit, "entries": fit + 1, "more": 0}


@pytest.mark.one_in(2)
def test_processes_that_count_squares_cannot_overspend(spenders, place):
    _hold_processes(spenders, place, 4, 10, 30)


@pytest.mark.long
def test_many_processes_that_count_squares_cannot_overspend(spenders, place):
    _hold_processes(spenders, place, 16, 20, 200)


def test_parts_of_a_table_cost_as_much_as_the_most_expensive_one():
    budget = Budget(epsilon=1, delta=1e-6)
    name, _ = budget.partition({"by": "c"}, 1)
    square = gdp_within(Fraction(1), Fraction(3, 4 * 10**6)) * (1 - Fraction(1, 10**9)) / 20
    price, known = gaussian(square)
    for key in "abc":
        for _ in range(20):
            budget.charge(price, WHO, "count()", normal=known, part=PartName(name, key))
    with pytest.raises(BudgetExceeded):
        budget.charge(price, WHO, "count()", normal=known, part=PartName(name, "a"))


def spent_beside_another_part(rho="0.024"):
    """Of a partition, one part spends nearly all ε, keys take all δ, and
    another part asks for Gaussian noise.
    """
    budget = Budget(epsilon=1, delta=1e-6)
    rows = pl.DataFrame({"u": [1, 2, 3, 4] * 5, "g": ["a", "b"] * 10, "w": ["s", "t"] * 10})
    frame = dp.protect(rows, unit="u", budget=budget)
    first, second = frame.partition("g", keys=["a", "b"], max_groups=1).values()
    first.count(max_rows=1).release(epsilon=Fraction("0.999"))
    keys = frame.group_by("w", max_groups=1).count_units()
    with pytest.warns(dp.errors.DpFrameWarning):
        keys.release(epsilon=1e-6, delta=1e-6, noise="laplace")
    second.count(max_rows=1).release(rho=Fraction(rho))


def test_noise_whose_delta_does_not_fit_is_not_free_for_another_part():
    """The unit of the second part would have δ of the keys, and more
    of the Gaussian noise at ε = 1.
    """
    with pytest.raises(BudgetExceeded):
        spent_beside_another_part()


def test_the_sum_of_epsilon_is_given_up_for_every_part():
    """Whatever another part has spent: the sum of ε does not hold any more once the
    δ of a release was not counted.
    """
    limit, account = Loss.limit(Fraction(1), Fraction(1, 10**6)), GaussianDp()
    for split, before in itertools.product(
        SPLITS, (Loss.none(), Loss(Fraction(3, 5), Fraction(1, 10**7)))
    ):
        delta = before.exact_delta + split * (limit - before).exact_delta
        spent = Loss(
            before.exact_epsilon, delta, mu_squared=Fraction(0), split=split, before=before
        )
        item = account.charged(
            spent, Loss.charged_rho(Fraction(1, 50), Fraction(0)), limit, Normal(Fraction(1, 25))
        )
        assert item.exact_epsilon > limit.exact_epsilon
