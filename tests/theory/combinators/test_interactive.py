"""Odometer and filter: what they accept, over each measure, and that the
account of a budget is one of them.
"""

import math
import random
import threading
from contextlib import suppress
from fractions import Fraction

import pytest

import dpframe.theory as t
from dpframe.budget import Loss, Normal
from dpframe.budget.adaptive import GaussianDp
from dpframe.errors import BudgetExceeded, DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory import gaussian_delta
from dpframe.theory.formulas.loss import TwoSums

SPACE = t.AtomDomain(int), t.AbsoluteDistance()
LAPLACE = t.laplace(*SPACE, scale=10)
SMOOTH = t.SmoothedMaxDivergence()
APPROXIMATE = t.Approximate(t.MaxDivergence())


def normal(scale):
    return t.gaussian(*SPACE, scale=scale, output_measure=SMOOTH)


def given(measure, loss):
    """A measurement that says nothing, and claims this loss for a distance of 1."""
    return t.Measurement(
        *SPACE, measure, lambda data: 0, lambda d_in: loss if d_in else measure.add([])
    )


@pytest.mark.parametrize(
    ("measure", "one", "limit"),
    [
        (t.MaxDivergence(), Fraction(1, 10), 1),
        (t.ZeroConcentratedDivergence(), Fraction(1, 10), 1),
        (t.RenyiDivergence(4.0), Fraction(1, 10), 1),
        (
            t.RenyiDivergence(),
            t.RenyiCurve(lambda alpha: alpha / 10),
            {2: 2.0 + 1e-9, 8: 8.0 + 1e-9},
        ),
        (APPROXIMATE, (Fraction(1, 100), Fraction(1, 10**7)), (1, 1e-6)),
        (
            t.Approximate(t.ZeroConcentratedDivergence()),
            (Fraction(1, 10), Fraction(1, 10**9)),
            (1, 1e-6),
        ),
    ],
)
def test_a_filter_takes_ten_tenths_and_an_odometer_says_so(measure, one, limit):
    counter, limited = (
        t.odometer(*SPACE, measure),
        t.privacy_filter(t.odometer(*SPACE, measure), 1, limit),
    )
    open_ended, asked = counter(3), limited(3)
    for _ in range(10):
        assert asked.ask(given(measure, one)) == open_ended.ask(given(measure, one)) == 0
    assert measure.below(measure.add([one] * 10), limit)
    with pytest.raises(BudgetExceeded, match="not run"):
        asked.ask(given(measure, one))
    open_ended.ask(given(measure, one))
    assert not measure.below(open_ended.map(1), limit)
    assert limited.check(1, limit)


def test_what_is_refused_is_not_run_and_costs_nothing():
    ran = []
    costly = t.Measurement(*SPACE, t.MaxDivergence(), ran.append, lambda d_in: Fraction(2))
    asked = t.privacy_filter(t.odometer(*SPACE, t.MaxDivergence()), 1, 1)(3)
    with pytest.raises(BudgetExceeded):
        asked.ask(costly)
    assert (ran, asked.map(1)) == ([], 0.0)
    asked.ask(LAPLACE)
    assert asked.map(1) == 0.1
    infinite = given(t.MaxDivergence(), math.inf)
    with pytest.raises(BudgetExceeded):
        asked.ask(infinite)
    with pytest.raises(BudgetExceeded):
        t.privacy_filter(t.odometer(*SPACE, SMOOTH), 1, (1, 1e-6))(3).ask(infinite)


def test_threads_cannot_ask_more_than_fits():
    asked, answers = t.privacy_filter(t.odometer(*SPACE, t.MaxDivergence()), 1, 1)(3), []

    def ask():
        for _ in range(5):
            try:
                answers.append(asked.ask(LAPLACE))
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 10


def test_a_filter_is_a_measurement_that_another_one_asks():
    measure = t.MaxDivergence()
    inner = t.privacy_filter(t.odometer(*SPACE, measure), 1, 0.3)
    asked = t.privacy_filter(t.odometer(*SPACE, measure), 1, 1)(3)
    parts = [asked.ask(inner) for _ in range(3)]
    for part in parts:
        for _ in range(3):
            part.ask(LAPLACE)
    with pytest.raises(BudgetExceeded):
        parts[0].ask(LAPLACE)
    asked.ask(LAPLACE)
    with pytest.raises(BudgetExceeded):
        asked.ask(LAPLACE)
    whole = t.compose([inner, inner, LAPLACE])
    assert whole.map(1) == 0.7
    with pytest.raises(InvalidArgument, match="up to d_in=1"):
        inner.map(2)


def test_profiles_have_a_filter_for_gaussian_noise_alone():
    """Squares go on where ε would not; a profile of another law is refused with the reason."""
    limited = t.privacy_filter(t.odometer(*SPACE, SMOOTH), 1, (1, 1e-6))
    asked, count, square = limited(3), 0, 0.0
    with suppress(BudgetExceeded):
        while True:
            asked.ask(normal(40.0))
            count, square = count + 1, square + 1 / 1600
    assert limited.output_measure == APPROXIMATE
    assert (
        gaussian_delta(1, math.sqrt(square))
        <= 0.75e-6
        < gaussian_delta(1, math.sqrt(square + 1 / 1600))
    )
    assert asked.map(1).mu_squared == Fraction(count, 1600)
    mixed = limited(3)
    mixed.ask(LAPLACE)
    mixed.ask(given(APPROXIMATE, (Fraction(1, 10), Fraction(1, 10**8))))
    mixed.ask(normal(40.0))
    with pytest.raises(InvalidArgument, match="several measures"):
        mixed.map(1)
    with pytest.raises(InvalidArgument, match="Gaussian noise"):
        mixed.ask(given(SMOOTH, t.PrivacyProfile(lambda epsilon: 1e-9)))


@pytest.mark.parametrize("seed", range(12))
def test_a_budget_counts_as_the_filter_does(seed):
    """The same prices in any order: each is accepted by both or refused by both."""
    draw, account, limit = (
        random.Random(seed),
        GaussianDp(),
        Loss.limit(Fraction(1), Fraction(1, 10**6)),
    )
    total = Loss(
        Fraction(0), Fraction(0), mu_squared=Fraction(0), split=Fraction(1, 4), before=Loss.none()
    )
    asked = t.privacy_filter(t.odometer(*SPACE, SMOOTH), 1, (1, 1e-6))(3)
    for _ in range(40):
        epsilon, delta = Fraction(draw.randint(1, 40), 400), Fraction(draw.randint(1, 9), 10**8)
        square = Fraction(1, draw.randint(100, 4000))
        profile = t.gaussian(*SPACE, scale=1.0, output_measure=SMOOTH).map(1)
        profile.mu_squared = square
        price, known, question = draw.choice(
            [
                (Loss.charged(epsilon, Fraction(0)), None, given(t.MaxDivergence(), epsilon)),
                (Loss.charged(epsilon, delta), None, given(APPROXIMATE, (epsilon, delta))),
                (Loss.charged_rho(square / 2, Fraction(0)), Normal(square), given(SMOOTH, profile)),
                (
                    Loss.charged_rho(square / 2, delta),
                    Normal(square, keys=True),
                    given(t.Approximate(SMOOTH), (profile, delta)),
                ),
            ]
        )
        after = account.total([total, account.charged(total, price, limit, known)])
        if account.allows(after, limit):
            asked.ask(question)
            total = after
        else:
            with pytest.raises(BudgetExceeded):
                asked.ask(question)


def test_refusals():
    space = t.AtomDomain(float), t.AbsoluteDistance()
    counter = t.odometer(*SPACE, t.MaxDivergence())
    with pytest.raises(DomainMismatch):
        counter(3).ask(t.laplace(t.AtomDomain(int, bounds=(0, 1)), t.AbsoluteDistance(), scale=1))
    with pytest.raises(MetricMismatch, match="convert"):
        counter(3).ask(t.gaussian(*SPACE, scale=1))
    with pytest.raises(MetricMismatch):
        counter(3).ask(
            t.Measurement(SPACE[0], t.DiscreteDistance(), t.MaxDivergence(), abs, lambda d: 1)
        )
    with pytest.raises(InvalidArgument):
        counter(3).ask(abs)
    with pytest.raises(InvalidArgument):
        counter("three")
    for wrong in ((abs, space[1], t.MaxDivergence()), (*SPACE, abs)):
        with pytest.raises(InvalidArgument):
            t.odometer(*wrong)
    for d_out, split in (((1, 0), 0.25), ((0, 1e-6), 0.25), ((1, 1e-6), 1), (1, 0.25)):
        with pytest.raises(InvalidArgument):
            t.privacy_filter(t.odometer(*SPACE, SMOOTH), 1, d_out, split=split)
    assert TwoSums(Fraction(1), Fraction(1, 10**6), Fraction(1, 4)).keys == Fraction(3, 16 * 10**6)
