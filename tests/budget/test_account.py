"""Budgets: exact prices, refusals that change nothing, one unit and relation, threads."""

import math
import pickle
import random
import re
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.budget import Budget, Loss, read_delta, read_epsilon
from dpframe.budget.losses import GRID, MOST, number_of
from dpframe.errors import (
    BudgetExceeded,
    BudgetMismatch,
    InvalidArgument,
    InvalidPrice,
    UnsupportedOperation,
)


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


@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), float("inf"), -float("inf"), "1", None, True, [1], 1e-13, 1j]
)
def test_a_price_that_cannot_be_is_refused(bad):
    with pytest.raises(InvalidPrice):
        read_epsilon(bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2, float("nan"), "0", True, 1e-19])
def test_a_delta_that_cannot_be_is_refused(bad):
    with pytest.raises(InvalidPrice):
        read_delta(bad)


def test_charges_round_up_and_limits_round_down():
    odd, room = Fraction(1, 1009), Fraction(1, 10**40)
    charged, in_rho, limit = (
        Loss.charged(odd, odd),
        Loss.charged_rho(odd, odd),
        Loss.limit(odd, odd),
    )
    for up in (charged.exact_epsilon, charged.exact_delta, in_rho.exact_rho, in_rho.exact_delta):
        assert odd < up < odd + room
    for down in (limit.exact_epsilon, limit.exact_delta, Loss.limit_rho(odd, odd).exact_rho):
        assert odd - room < down < odd


PRICES = st.one_of(
    st.floats(1e-12, 1e30),
    st.decimals("1e-12", "1e6", allow_nan=False, places=20),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.fractions(Fraction(1, 10**6), 1000, max_denominator=10**9),
)


@given(st.lists(PRICES, min_size=1, max_size=30), PRICES)
def test_sums_are_exact_and_bounded_and_limits_hold(prices, limit):
    """Every charge covers its price, every sum is a multiple of 1/GRID,
    and no sum is above the limit.
    """
    budget = Budget(epsilon=limit)
    granted = Fraction(0)
    for price in prices:
        number = read_epsilon(price)
        charge = Loss.charged(number, Fraction(0))
        assert number <= charge.exact_epsilon < number + Fraction(1, 10**40)
        if not isinstance(price, Fraction) or number.denominator <= 1000:
            assert charge.exact_epsilon == number
        try:
            budget.charge(charge, "a", "count()")
            granted += number
        except BudgetExceeded:
            assert granted + number > read_epsilon(limit) - Fraction(31, 10**40)
    assert granted <= budget.spent.exact_epsilon <= read_epsilon(limit)
    assert GRID % budget.spent.exact_epsilon.denominator == 0
    left = budget.remaining
    assert number_of(left.epsilon) <= left.exact_epsilon
    assert number_of(budget.spent.epsilon) >= budget.spent.exact_epsilon


@pytest.mark.parametrize(
    ("price", "times", "limit"),
    [
        (1 / 3, 3, 1),
        (Fraction(1, 3), 3, 1),
        (Fraction(1, 7), 7, 1.0),
        (Decimal("0.1"), 10, Decimal(1)),
        (1 / 7, 7, 1),
        (1 / 11, 11, 1),
        (np.float64(1 / 49), 49, 1.0),
        (1e-6 / 11, 11, 1e-6),
        (Fraction(1, 997), 997, 1),
        (Fraction(1, 3000), 3000, 1),
        (1e-12, 10, 1e-11),
        (np.float64(1 / 3), 3, 1),
    ],
)
def test_parts_of_a_budget_fit(price, times, limit):
    for budget, price_of in ((Budget(epsilon=limit), "epsilon"), (Budget(rho=limit), "rho")):
        number = read_epsilon(price)
        each = (
            Loss.charged(number, Fraction(0))
            if price_of == "epsilon"
            else Loss.charged_rho(number, Fraction(0))
        )
        for _ in range(times):
            budget.charge(each, "a", "count()")
        with pytest.raises(BudgetExceeded):
            budget.charge(each, "a", "count()")


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.long)])
def test_every_part_of_a_thousand_or_fewer_fits(step):
    """Each k / n as a float is charged as that fraction, so n of them are k,
    and k / n and (n - k) / n are 1.
    """
    for n in range(1, 1001):
        for k in (1, *range(2, n, step), n - 1, n, n + 1, 3 * n - 1):
            if k:
                each = Loss.charged(read_epsilon(k / n), Fraction(0)).exact_epsilon
                assert each.numerator * n == k * each.denominator


@pytest.mark.parametrize("zeros", range(13))
def test_parts_of_small_prices_fit(zeros):
    """Those of δ, mostly: 1e-6 / 7 is charged seven times from 1e-6."""
    for n in range(1, 1001, 3):
        price = float(f"1e-{zeros}") / n
        assert read_delta(min(price, 0.5), "delta") == min(
            Fraction(1, n * 10**zeros), Fraction(1, 2)
        )


def test_a_float_stands_for_a_number_beside_it():
    """A decimal of up to 12 digits is itself, whatever fraction is near;
    above 2^30 every float is its decimal.
    """
    draw = random.Random(5)
    for _ in range(3000):
        value = math.ldexp(draw.random(), draw.randint(-60, 60))
        read = number_of(value)
        assert abs(read - Fraction(value)) <= Fraction(value) / 2**51
        digits = draw.randint(1, 12)
        typed = Decimal(draw.randrange(10 ** (digits - 1), 10**digits)).scaleb(draw.randint(-24, 3))
        assert number_of(float(typed)) == Fraction(typed)
    assert number_of(2**30 + 1 / 3) == Fraction(repr(2**30 + 1 / 3))
    assert number_of(1e23) == 10**23
    assert number_of(-1 / 3) == Fraction(-1, 3)
    for near in (1 / 3 - 2**-52, 1 / 3 + 2**-52, 0.333333333333333):
        assert number_of(near) == Fraction(repr(near))


def test_what_is_charged_for_a_float_is_what_its_noise_is_calibrated_to():
    """1/11 as a float is less than its shortest decimal, 2/3 more:
    the scale is that of the fraction, rounded up.
    """
    for n in (3, 7, 11, 49, 997):
        budget = Budget(epsilon=1)
        out = (
            pl.DataFrame({"id": [1, 2, 3]})
            .dp(unit="id", budget=budget)
            .count_units()
            .release(epsilon=1 / n)
        )
        assert budget.spent.exact_epsilon == Fraction(1, n)
        assert out.noise["scale"].to_list() == [float(n)]


# too few units: it is about the price
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_thirds_of_a_budget_are_released():
    """What a user types: three times 1/3 of 1, in ε, and of δ beside it."""
    rows = pl.DataFrame({"id": [1, 2, 3], "city": ["a", "b", "a"]})
    for third in (1 / 3, Fraction(1, 3)):
        budget = Budget(epsilon=1, delta=Fraction(1, 10**6))
        frame = rows.dp(unit="id", budget=budget).group_by("city", max_groups=1)
        for _ in range(3):
            frame.count_units().release(epsilon=third, delta=Fraction(1, 3 * 10**6))
        assert budget.remaining.delta == 0
        assert budget.remaining == Loss(0, 0)
        with pytest.raises(BudgetExceeded, match=r"Nothing was (spent|charged)"):
            frame.count_units().release(epsilon=1e-12, delta=1e-9)


def test_noise_is_calibrated_to_what_is_charged():
    budget = Budget(epsilon=1)
    out = (
        pl.DataFrame({"id": [1, 2, 3]})
        .dp(unit="id", budget=budget)
        .count_units()
        .release(epsilon=Fraction(1, 3))
    )
    assert budget.spent.exact_epsilon == Fraction(1, 3)
    assert out.noise["scale"].to_list() == [3.0]


def test_what_is_shown_is_never_more_than_is_left_nor_less_than_was_spent():
    budget = Budget(epsilon=1)
    budget.charge(Loss.charged(Fraction(1, 3), Fraction(0)), "a", "count()")
    assert str(budget.remaining) == "ε = 0.666666"
    assert str(budget.spent) == "ε = 0.333334"
    assert budget.remaining.epsilon == 0.6666666666666666
    assert budget.spent.epsilon == 1 / 3
    assert str(Budget(epsilon=0.1).remaining) == "ε = 0.1"


@pytest.mark.parametrize(
    "bad",
    [
        Decimal("1e-999999999"),
        Decimal("1e999999999"),
        Fraction(1, 10**2000),
        Decimal("0.1" + "3" * 5000),
        MOST * 10,
    ],
)
def test_numbers_that_are_too_long_are_refused_at_once(bad):
    with pytest.raises(InvalidPrice):
        read_epsilon(bad)


def test_the_sum_of_charges_is_the_exact_sum():
    draw = random.Random(7)
    prices = [Fraction(draw.randrange(1, 10**15), 10**15) for _ in range(2000)]
    total = sum((Loss.charged(p, Fraction(0)) for p in prices), Loss(0, 0))
    assert total.exact_epsilon == sum(prices)


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
    epsilon, delta = map(
        float, re.findall(r"left is epsilon=(.*), delta=(.*)\.$", str(caught.value))[0]
    )
    budget.charge(loss(epsilon, delta), "a", "count()")
    assert budget.remaining <= loss(1e-12, 1e-18)


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


def test_a_release_without_a_name_that_was_answered_is_not_pending():
    """A budget in memory keeps no table of it."""
    budget = Budget(epsilon=1)
    receipt = budget.charge(loss(0.1), "unit 'id'", "count()")
    budget.store(receipt, b"table", {"releases": []})
    with pytest.raises(InvalidArgument, match="is not pending"):
        budget.resolve(receipt.number)
