"""Budgets that last: a part for each night, tomorrow's never today, carried
over where that was asked for.
"""

import datetime as dt
import math
import random
import re
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, Loss, account
from dpframe.theory import zcdp_to_epsilon
from inside import book_of

START = dt.datetime(2026, 11, 21, 22, 0, tzinfo=dt.UTC)
WHO = "unit 'id', add-remove"


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    time = [START]
    monkeypatch.setattr(account, "now", lambda: time[0])

    def forward(**by):
        time[0] += dt.timedelta(**by)

    return forward


def pay(allowance, epsilon, **options):
    receipt = allowance.charge(
        Loss.charged(Fraction(epsilon), Fraction(0)), WHO, "count()", **options
    )
    allowance.store(receipt, b"table", {"releases": []})
    return receipt


def test_tomorrow_s_part_is_refused_today(place, clock):
    budget = Ledger(place).budget("visits", epsilon=2)
    nightly = budget.allocate(per="night", nights=4, epsilon=1)
    assert (budget.spent.epsilon, nightly.share.epsilon) == (1.0, 0.25)
    pay(nightly, "0.25")
    with pytest.raises(
        errors.BudgetExceeded,
        match=r"ε = 0 is left of this night's part.*begins at 2026-11-22 00:00",
    ):
        pay(nightly, "1e-9")
    clock(hours=2)
    pay(nightly, "0.2")
    assert nightly.tonight.epsilon == 0.05
    with pytest.raises(errors.BudgetExceeded):
        pay(nightly, "0.1")
    clock(days=1)
    assert nightly.tonight.epsilon == 0.25
    clock(days=2)
    with pytest.raises(
        errors.BudgetExceeded, match="the last of 4 nights ended at 2026-11-25 00:00"
    ):
        pay(nightly, "1e-9")
    assert (budget.spent.epsilon, nightly.spent.epsilon) == (1.0, 0.45)
    assert [line.price.epsilon for line in nightly.history()] == [0.25, 0.2]
    again = Ledger(place).budget("visits").allocate(per="night", nights=4, epsilon=1)
    assert again.remaining == nightly.remaining
    Ledger(place).verify()


def test_what_a_night_leaves_is_carried_over_where_that_was_asked_for(place, clock):
    nightly = Ledger(place).budget("visits", epsilon=2).allocate(nights=4, epsilon=1, carry=True)
    clock(days=2)
    assert nightly.tonight.epsilon == 0.75
    pay(nightly, "0.7")
    with pytest.raises(errors.BudgetExceeded):
        pay(nightly, "0.1")
    clock(days=9)
    assert nightly.tonight.epsilon == 0.3
    pay(nightly, "0.3")
    with pytest.raises(errors.BudgetExceeded):
        pay(nightly, "1e-9")


def test_at_a_delta_nights_are_counted_in_rho_where_that_is_tighter(clock):
    many = dp.Budget(epsilon=2, delta=1e-6).allocate(nights=90, epsilon=2, delta=1e-6)
    assert many.accountant == "zcdp"
    assert zcdp_to_epsilon(many.limit.rho, 1e-6) <= 2
    assert 1 / math.sqrt(2 * many.share.rho) < 0.4 * math.sqrt(2) * 90 / 2, (
        "less than half the noise of a 90th of ε"
    )
    few = dp.Budget(epsilon=2, delta=1e-6).allocate(nights=2, epsilon=2, delta=1e-6)
    assert few.accountant == "basic"
    assert dp.Budget(rho=1).allocate(nights=10, rho=0.5).share.rho == 0.05


def test_a_release_is_paid_by_its_night(tmp_path, clock):
    budget = Ledger(tmp_path / "study.sqlite").budget("visits", epsilon=2, delta=1e-6)
    nightly = budget.allocate(nights=90, epsilon=2, delta=1e-6)
    query = pl.DataFrame({"id": [1, 2, 3]}).dp(unit="id", budget=nightly).count_units()
    out = query.release(rho=nightly.share.rho, name="2026-11-21")
    assert query.release(rho=nightly.share.rho, name="2026-11-21").value == out.value
    with pytest.raises(errors.BudgetExceeded, match="this night"):
        query.release(rho=nightly.share.rho)
    assert budget.remaining.epsilon == 0
    assert budget.history()[-1].status == "released"


def test_an_allowance_is_paid_once_and_stands_for_one_schedule(place, clock):
    budget = Ledger(place).budget("visits", epsilon=2)
    for _ in range(3):
        budget.allocate(nights=4, epsilon=1)
    assert budget.spent.epsilon == 1
    stands = r"(?s)^The part 'nightly' stands: Allowance\(ε = 1 over 4 nights .*spent ε = 0\)\. .*"
    for said, differs in (
        ({"nights": 5, "epsilon": 1}, r"nights: 4, 5\n"),
        ({"nights": 4, "epsilon": 0.5}, r"price\.epsilon: 1, 1/2\n"),
    ):
        with pytest.raises(errors.ReleaseMismatch, match=stands + differs) as refused:
            budget.allocate(**said)
        (line,) = re.findall(r"budget(\.\S+) opens it as it stands", str(refused.value))
        assert eval(f"budget{line}").limit.epsilon == 1
    with pytest.raises(errors.BudgetExceeded):
        budget.allocate(nights=4, epsilon=1.5, name="another")
    pay(budget.allocate(nights=4, epsilon=1), "0.1")
    with pytest.raises(errors.BudgetMismatch):
        budget.charge(
            Loss.charged(Fraction(1, 10), Fraction(0)), "unit 'other', add-remove", "count()"
        )


@pytest.mark.parametrize(
    "asked",
    [
        {"nights": 0, "epsilon": 1},
        {"nights": None, "epsilon": 1},
        {"nights": 2, "epsilon": None},
        {"nights": 2, "rho": 1},
        {"nights": 2, "epsilon": 1, "per": "year"},
        {"nights": 2, "epsilon": 1, "per": "0mo"},
        {"nights": 2, "epsilon": 1, "per": "999999mo"},
        {"nights": 2, "epsilon": 1, "periods": 2},
        {"periods": 0, "epsilon": 1},
        {"nights": 2, "epsilon": 1, "zone": "Mars/Base"},
        {"nights": 2, "epsilon": 1, "carry": 1},
        {"nights": 2, "epsilon": 1, "start": "soon"},
        {"nights": 2, "epsilon": 1, "name": ""},
    ],
)
def test_what_is_no_schedule_is_refused_and_spends_nothing(asked):
    budget = dp.Budget(epsilon=2)
    with pytest.raises(errors.InvalidArgument):
        budget.allocate(**asked)
    assert budget.spent.epsilon == 0


def test_no_schedule_of_charges_exceeds_a_night_or_the_limit(clock):
    """A random year of charges, with and without carrying over."""
    rng = random.Random(1)
    for carry in (False, True):
        nightly = dp.Budget(epsilon=1).allocate(nights=20, epsilon=1, carry=carry)
        spent = {}
        for _ in range(300):
            clock(hours=rng.choice([1, 2, 5]))
            night = nightly.pace.night(account.now())
            price = Fraction(rng.randint(1, 40), 1000)
            try:
                pay(nightly, price)
            except errors.BudgetExceeded:
                continue
            spent[night] = spent.get(night, 0) + price
            assert all(0 <= one < (20 if not carry else 10**6) for one in spent)
            share = Fraction(1, 20)
            allowed = min(night + 1, 20) * share if carry else share
            assert (sum(spent.values()) if carry else spent[night]) <= allowed
        assert sum(spent.values()) <= 1
        clock(days=-60)


def test_a_changed_allowance_is_found_by_verify(tmp_path, clock):
    """A ledger in which more than an allowance was spent does not add up."""
    ledger = Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget("visits", epsilon=2)
    nightly = budget.allocate(nights=1, epsilon=1)
    with book_of(budget).write() as page:
        loss = {"epsilon": "2/1", "delta": "0/1", "rho": None}
        none = {"epsilon": "0/1", "delta": "0/1", "rho": None}
        body = {
            "loss": none,
            "about": nightly._opening.number,
            "within": {"loss": loss, "night": 0},
            "name": None,
        }
        page.append("charge", body, account.now())
    with pytest.raises(errors.LedgerDamaged, match="more than the allowance"):
        ledger.verify()


# Forecasts


def test_a_forecast_says_how_long_a_budget_lasts(clock):
    budget = dp.Budget(epsilon=2)
    assert "there were no regular charges" in str(budget.forecast())
    for _ in range(4):
        receipt = budget.charge(Loss.charged(Fraction(1, 4), Fraction(0)), WHO, "count()")
        budget.store(receipt, b"", {})
        clock(days=1)
    clock(days=-1)
    told = budget.forecast()
    assert told.lasts == {"budget": dt.date(2026, 11, 28)}
    assert str(told) == (
        "budget: ε = 1 of 2 spent, 1 left; at 0.25 a day, the mean of the last 4 days, it lasts "
        "until 2026-11-28."
    )
    assert told.table.get_column("total").max() == 2
    budget.charge(Loss.charged(Fraction(4, 5), Fraction(0)), WHO, "count()")
    assert "it does not last another day" in str(budget.forecast())
    assert told.table.group_by("kind").len().sort("kind").rows() == [("expected", 4), ("spent", 4)]


def test_a_forecast_of_an_allowance_follows_its_schedule(clock):
    budget = dp.Budget(epsilon=2)
    nightly = budget.allocate(nights=10, epsilon=1)
    pay(nightly, "0.1")
    told = budget.forecast()
    assert told.lasts["allowance nightly"] == dt.date(2026, 11, 30)
    assert "10 nights from 2026-11-21 to 2026-11-30" in str(told)
    planned = told.table.filter(pl.col("kind") == "planned")
    assert planned.height == 9
    assert planned.get_column("total").max() == pytest.approx(1)
    chart = told.plot().to_dict()
    assert {row["kind"] for row in next(iter(chart["datasets"].values()))} == {"spent", "planned"}


@pytest.mark.parametrize("per", ["1h", "1d", "999999w"])
def test_nights_near_the_first_and_last_year_are_refused_by_name_before_anything_is_paid(per):
    east, west = (dt.timezone(dt.timedelta(hours=hours)) for hours in (14, -12))
    for start in (
        dt.date.max,
        dt.datetime.min,
        dt.datetime.min.replace(tzinfo=east),
        dt.datetime.max.replace(tzinfo=west),
    ):
        for nights in (1, 100_000):
            budget = dp.Budget(epsilon=2)
            try:
                nightly = budget.allocate(per=per, nights=nights, epsilon=1, start=start)
            except errors.InvalidArgument:
                assert budget.history() == []
            else:
                assert per != "999999w"
                assert "Allowance" in repr(nightly)
                assert "nights" in repr(budget.forecast())


def test_a_part_without_nights_is_spent_at_any_time_and_reopened_by_its_name(clock, tmp_path):
    """Shares of a team: each is a part of one budget, charged in
    advance, that no other name can spend.
    """
    ledger = dp.Ledger(tmp_path / "team.sqlite", clock_skew=dt.timedelta(days=900))
    budget = ledger.budget("team", epsilon=2)
    bo = budget.allocate(name="bo", epsilon=1)
    with pytest.raises(errors.InvalidArgument, match="name='bo'"):
        budget.allocate(epsilon=0.5)
    assert repr(bo) == "Allowance(ε = 1; spent ε = 0)"
    table = pl.DataFrame({"id": [1, 2]})
    table.dp(unit="id", budget=bo).count_units().release(epsilon=0.4)
    clock(days=400)
    again = (
        dp.Ledger(tmp_path / "team.sqlite", clock_skew=dt.timedelta(days=900))
        .budget("team")
        .allocate(name="bo")
    )
    table.dp(unit="id", budget=again).count_units().release(epsilon=0.5)
    assert again.spent.epsilon == bo.spent.epsilon == 0.9
    with pytest.raises(
        errors.BudgetExceeded, match=r"ε = 0\.1 is left of this allowance, which is ε = 1\."
    ):
        table.dp(unit="id", budget=again).count_units().release(epsilon=0.2)
    with pytest.raises(errors.InvalidPrice):
        budget.allocate(name="cy")
    with pytest.raises(errors.BudgetExceeded):
        budget.allocate(name="cy", epsilon=1.5)
    assert budget.allocate(name="bo", epsilon=1).spent.epsilon == 0.9
    nights = budget.allocate(nights=10, epsilon=0.5)
    assert budget.allocate(name="nightly").limit == nights.limit
    assert any("bo: ε = 1, of which ε = 0.1 is left." in line for line in budget.forecast().words)
    assert budget.forecast().lasts["allowance bo"] is None
    assert ledger.verify() == {"team": 7}


@pytest.mark.parametrize(
    "dated", [{"per": "1mo"}, {"start": "2026-01-01"}, {"zone": "Europe/Vienna"}, {"carry": True}]
)
def test_a_length_without_a_number_is_no_part_without_nights(dated):
    with pytest.raises(errors.InvalidArgument, match="number of nights"):
        dp.Budget(epsilon=1).allocate(name="bo", epsilon=0.5, **dated)
