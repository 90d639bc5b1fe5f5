"""What a budget says of its limit: a warning where it promises little, once;
and that it is spent, when it is.
"""

import math
import warnings

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget import Loss, typed_number
from dpframe.budget.exceeded import warn_of_weak
from dpframe.errors import BudgetExceeded, DeltaRequired, DpFrameWarning, InvalidArgument

TABLE = pl.DataFrame({"user": [1, 2, 3], "city": ["Bonn", "Kiel", "Kiel"]})


def said_of(make):
    """The words of every warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(w.category is DpFrameWarning for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ({"epsilon": 10}, []),
        ({"epsilon": 10.001}, ["Type a smaller limit: dp.Budget(epsilon=1.0)."]),
        (
            {"epsilon": 30, "delta": 1e-9},
            ["Type a smaller limit: dp.Budget(epsilon=1.0, delta=1e-09)."],
        ),
        ({"epsilon": 1, "delta": 0.001}, []),
        (
            {"epsilon": 1, "delta": 0.0011},
            ["Type a smaller δ: dp.Budget(epsilon=1.0, delta=1e-06)."],
        ),
        (
            {"epsilon": 11, "delta": 0.5},
            ["dp.Budget(epsilon=1.0, delta=1e-06).", "dp.Budget(epsilon=1.0, delta=1e-06)."],
        ),
        ({"epsilon": 1, "delta": 1e-4, "min_units": 10_000}, []),
        (
            {"epsilon": 1, "delta": 1.1e-4, "min_units": 10_000},
            ["dp.Budget(epsilon=1.0, delta=1e-06)."],
        ),
        (
            {"epsilon": 1, "delta": 1e-6, "min_units": 10**7},
            ["dp.Budget(epsilon=1.0, delta=1e-09)."],
        ),
        # a small number of units does not excuse a large δ
        ({"epsilon": 1, "delta": 1e-3, "min_units": 2}, []),
        ({"epsilon": 1, "delta": 0.4, "min_units": 2}, ["above 1/1000"]),
        ({"rho": 1.1}, []),
        ({"rho": 1.6}, ["dp.Budget(rho=0.02)."]),
        ({"rho": 0.1, "delta": 0.01}, ["dp.Budget(rho=0.02, delta=1e-06)."]),
        ({"epsilon": 100, "accountant": "pld"}, ["ε = 100"]),
    ],
)
def test_a_limit_that_promises_little_warns_with_the_line_to_type(limit, named):
    words = said_of(lambda: dp.Budget(**limit))
    assert len(words) == len(named)
    assert all(name in word for name, word in zip(named, words, strict=True))


def test_a_limit_in_rho_is_held_against_the_epsilon_that_it_implies():
    for rho in (1.1, 1.6):
        # a bound, the exact one is less
        epsilon = dp.Budget(rho=rho).limit.rho + 2 * math.sqrt(rho * math.log(1e6))
        assert bool(said_of(lambda rho=rho: dp.Budget(rho=rho))) == (epsilon > 10.9)


def test_what_is_to_be_typed_does_not_warn():
    for limit in (
        {"epsilon": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-9, "min_units": 10**7},
        {"rho": 0.02},
    ):
        assert not said_of(lambda limit=limit: dp.Budget(**limit))


def test_it_is_said_where_the_budget_is_made_and_never_where_it_is_used():
    with pytest.warns(DpFrameWarning, match="This budget allows ε = 100 in all") as caught:
        budget = dp.Budget(epsilon=100, delta=1e-6)
    assert caught[0].filename == __file__
    frame = dp.protect(TABLE, unit="user", budget=budget)
    query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=1).count_units()

    def use():
        query.accuracy(epsilon=40)
        query.release(epsilon=40)
        dp.protect(TABLE, unit="user", budget=budget).count_units().release(epsilon=20)
        assert budget.remaining.epsilon == 40

    assert not said_of(use)


def test_a_loop_that_makes_budgets_says_it_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()  # what a script has: Python shows a warning once for each line
        warnings.simplefilter("default", DpFrameWarning)
        for _ in range(5):
            dp.Budget(epsilon=100)
    assert len(caught) == 1


def test_a_ledger_says_it_when_a_budget_is_made_and_not_when_it_is_opened_again(tmp_path):
    path = tmp_path / "study.sqlite"
    with pytest.warns(
        DpFrameWarning, match=r"Type a smaller limit: ledger\.budget\('a', epsilon=1\.0\)\."
    ):
        dp.Ledger(path).budget("a", epsilon=50)
    assert not said_of(lambda: dp.Ledger(path).budget("a", epsilon=50))
    assert not said_of(lambda: dp.Ledger(path).budget("a"))
    with pytest.warns(
        DpFrameWarning, match=r"above 1/20000, .*ledger\.budget\('b', epsilon=1\.0, delta=1e-07\)"
    ):
        dp.Ledger(path).budget("b", epsilon=1, delta=1e-4, min_units=20_000)


def test_a_warning_that_is_an_error_makes_no_budget(tmp_path):
    ledger = dp.Ledger(tmp_path / "study.sqlite")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpFrameWarning)
        with pytest.raises(DpFrameWarning):
            ledger.budget("a", epsilon=50)
    assert ledger.budgets() == []


@pytest.mark.parametrize(
    "least", [0, -1, 1.5, True, "many", float("nan"), 10**16, pytest.param(10**5000, id="huge")]
)
def test_a_number_of_units_is_a_whole_number(least, tmp_path):
    for make in (dp.Budget, lambda **limit: dp.Ledger(tmp_path / "a.sqlite").budget("a", **limit)):
        with pytest.raises(InvalidArgument, match="min_units="):
            make(epsilon=1, min_units=least)


def test_enormous_limits_are_said_in_few_words():
    limit = Loss.limit(typed_number(10**30, "epsilon"), typed_number(0.999, "delta"))
    assert all(
        len(word) < 400 for word in said_of(lambda: warn_of_weak(limit, None, "dp.Budget({})"))
    )


# What is left


def query_of(**limit):
    frame = dp.protect(TABLE, unit="user", budget=dp.Budget(**limit))
    return frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=1).count_units()


@pytest.mark.parametrize("terms", ["epsilon", "rho"])
def test_a_spent_budget_says_that_it_is_spent(terms):
    query = query_of(**{terms: 0.5})
    query.release(**{terms: 0.5}, name="first")
    with pytest.raises(BudgetExceeded, match="is spent: nothing is left") as refused:
        query.release(**{terms: 0.1})
    assert "Ask for less" not in str(refused.value)
    query.release(**{terms: 0.5}, name="first")  # as the message says, for free


def test_a_budget_that_is_not_spent_says_what_is_left():
    query = query_of(epsilon=1)
    query.release(epsilon=0.5)
    with pytest.raises(
        BudgetExceeded, match=r"Ask for less; what is left is epsilon=0\.5, delta=0\.0\."
    ):
        query.release(epsilon=0.6)


def test_a_budget_whose_delta_is_spent_says_so():
    frame = dp.protect(TABLE, unit="user", budget=dp.Budget(epsilon=1, delta=1e-6))
    found = frame.group_by("city", max_groups=1, other="(other)").count_units()
    found.release(epsilon=0.25, delta=1e-6)
    with pytest.raises(
        BudgetExceeded, match=r"budget's δ is spent: list the keys.*what is left is epsilon=0\.75\."
    ):
        found.release(epsilon=0.25, delta=1e-9)
    with pytest.raises(DeltaRequired):
        found.release(epsilon=0.25)
    frame.group_by("city", keys=["Bonn"], max_groups=1).count_units().release(epsilon=0.75)
