"""Budgets: exact prices, refusals that change nothing, one unit and relation, threads."""

import pickle
import random
import re
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpframe.budget import Budget, Loss
from dpframe.budget.losses import DELTA_UNIT, EPSILON_UNIT, read_delta, read_epsilon
from dpframe.errors import BudgetExceeded, BudgetMismatch, InvalidPrice, UnsupportedOperation


def loss(epsilon: object, delta: object = 0) -> Loss:
    return Loss.charged(read_epsilon(epsilon), read_delta(delta))


def test_ten_spends_of_a_tenth_are_one():
    budget = Budget(epsilon=1)
    for _ in range(10):
        budget.charge(loss(0.1), "unit 'id'", "count()")
    assert budget.spent.epsilon == 1
    assert budget.remaining == Loss(0, 0)
    with pytest.raises(BudgetExceeded):
        budget.charge(loss(1e-12), "unit 'id'", "count()")


@pytest.mark.parametrize("value", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_price_is_the_decimal_that_was_typed(value):
    assert read_epsilon(value) == Fraction(1, 10)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), -float("inf"), "1", None, True, [1], 1e-13, 1j])
def test_a_price_that_cannot_be_is_refused(bad):
    with pytest.raises(InvalidPrice):
        read_epsilon(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2, float("nan"), "0", True, 1e-19])
def test_a_delta_that_cannot_be_is_refused(bad):
    with pytest.raises(InvalidPrice):
        read_delta(bad)


def test_charges_round_up_and_limits_round_down():
    third = Fraction(1, 3)
    assert Loss.charged(third, third).epsilon_units * EPSILON_UNIT > third
    assert Loss.charged(third, third).delta_units * DELTA_UNIT > third
    assert Loss.limit(third, third).epsilon_units * EPSILON_UNIT < third


def test_the_sum_of_charges_covers_the_exact_sum_and_hardly_more():
    draw = random.Random(7)
    prices = [Fraction(draw.randrange(1, 10**15), 10**15) for _ in range(2000)]
    total = sum((Loss.charged(p, Fraction(0)) for p in prices), Loss(0, 0))
    exact = sum(prices)
    assert exact <= total.epsilon_units * EPSILON_UNIT <= exact + 2000 * EPSILON_UNIT


def test_a_refusal_changes_nothing():
    budget = Budget(epsilon=1, delta=1e-6)
    budget.charge(loss(0.4, 1e-7), "a", "count()")
    before = budget.spent, budget.history()
    for refused in (loss(0.7), loss(0.1, 1e-6), loss(5, 0.5)):
        with pytest.raises(BudgetExceeded, match="Nothing was spent"):
            budget.charge(refused, "a", "sum()")
    with pytest.raises(BudgetMismatch):
        budget.charge(loss(0.1), "b", "count()")
    assert (budget.spent, budget.history()) == before


def test_what_is_left_can_be_copied_from_the_refusal():
    budget = Budget(epsilon=1, delta=1e-6)
    budget.charge(loss(1 / 3, 1e-7 / 3), "a", "count()")
    with pytest.raises(BudgetExceeded) as caught:
        budget.charge(loss(1), "a", "count()")
    epsilon, delta = map(float, re.findall(r"left is epsilon=(.*), delta=(.*)\.$", str(caught.value))[0])
    budget.charge(loss(epsilon, delta), "a", "count()")
    assert budget.remaining == Loss(0, 0)


def test_a_refused_first_charge_does_not_bind():
    budget = Budget(epsilon=1)
    with pytest.raises(BudgetExceeded):
        budget.charge(loss(2), "a", "count()")
    budget.charge(loss(1), "b", "count()")
    assert budget.remaining == Loss(0, 0)


def test_losses_are_only_partly_ordered():
    small, large = loss(1.0, 1e-7), loss(1.5, 1e-6)
    assert small <= large
    assert not loss(1.5, 1e-7) <= loss(1.0, 1e-6)
    assert not loss(1.0, 1e-6) <= loss(1.5, 1e-7)


def test_threads_cannot_overspend():
    budget = Budget(epsilon=1)
    granted = []

    def spend() -> None:
        for _ in range(50):
            try:
                budget.charge(loss(0.01), "a", "count()")
                granted.append(1)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100 == len(budget.history())


def test_a_budget_cannot_be_copied_so_that_it_is_spent_twice():
    with pytest.raises(UnsupportedOperation):
        pickle.dumps(Budget(epsilon=1))


def test_a_budget_needs_a_limit_in_its_own_terms():
    with pytest.raises(InvalidPrice):
        Budget()
    with pytest.raises(UnsupportedOperation):
        Budget(epsilon=1, rho=0.1)
    with pytest.raises(UnsupportedOperation):
        Budget(epsilon=1, accountant="advanced")
