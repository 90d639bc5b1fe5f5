"""Caps: they hold under every store, price and clock, and only refuse."""

import csv
import datetime as dt
import json
import math
import os
import pickle
import socket
import sqlite3
import zoneinfo
from fractions import Fraction
from itertools import pairwise

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, Loss, Periods, account, user_name
from dpframe.budget.caps import CapSums, begun
from dpframe.release.shown import charge_rows
from dpframe.theory import zcdp_to_epsilon

WHO = "unit 'id', add-remove"
MARCH = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def eps(price, delta=0):
    return Loss.charged(Fraction(str(price)), Fraction(str(delta)))


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""
    here = [MARCH]
    monkeypatch.setattr(account, "now", lambda: here[0])
    return lambda *parts: here.__setitem__(0, dt.datetime(*parts, tzinfo=dt.UTC))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def made(request, tmp_path):
    """A function that makes a budget in each kind of store."""
    if request.param == "memory":
        return lambda caps, **limit: dp.Budget(**limit or {"epsilon": 10, "delta": 1e-3}, caps=caps)
    place = (
        tmp_path / "a.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres")
    )
    ledger = Ledger(place, clock_skew=dt.timedelta(days=900))
    return lambda caps, **limit: ledger.budget(
        "b", **limit or {"epsilon": 10, "delta": 1e-3}, caps=caps
    )


def paid(budget, price=0.4, who=None, **options):
    spent_by = budget if who is None else budget.for_spender(who)
    return spent_by.charge(eps(price), WHO, "count()", **options)


def spent(budget):
    return {(cap.cap, cap.spender): cap.spent.exact_epsilon for cap in budget.caps}


def test_each_cap_refuses_by_itself_and_a_refusal_changes_nothing(made, clock):
    """To the very end of the cap, and not beyond it by the smallest price."""
    del clock
    budget = made(dp.Caps(release=0.5, spender=0.8, day=1))
    with pytest.raises(errors.CapExceeded, match=r"cap of one release is ε = 0\.5") as refused:
        paid(budget, "0.500000000001", "ana")
    assert (refused.value.cap, refused.value.frees) == ("release", None)
    paid(budget, 0.5, "ana")
    paid(budget, 0.3, "ana")
    with pytest.raises(
        errors.CapExceeded, match=r"cap of the spender 'ana' .* fits under every cap now: nothing"
    ):
        paid(budget, 1e-12, "ana")
    with pytest.raises(
        errors.CapExceeded, match=r"cap of a day .* anew at 2026-03-02 00:00 UTC.* epsilon=0\.2"
    ) as refused:
        paid(budget, 0.3, "bob")
    assert refused.value.spent == eps(0.8)
    paid(budget, 0.2, "bob")
    assert spent(budget) == {
        ("release", None): 0,
        ("spender", "ana"): Fraction(8, 10),
        ("spender", "bob"): Fraction(2, 10),
        ("day", None): 1,
    }
    assert budget.spent == eps(1)
    assert [line.spender for line in budget.history()] == ["ana", "ana", "bob"]


def test_where_spenders_have_a_cap_a_release_says_who_spends(made):
    budget = made({"spender": 1})
    with pytest.raises(errors.InvalidArgument, match=r"says who spends.*spender='ana'"):
        paid(budget)
    paid(budget.for_spender("ana"))
    assert spent(budget) == {("spender", "ana"): Fraction(4, 10)}


@pytest.mark.parametrize(
    ("cap", "zone", "last", "first"),
    [
        ("day", "UTC", (2026, 3, 1, 23, 59, 59), (2026, 3, 2)),
        ("day", "Europe/Vienna", (2026, 3, 28, 22, 59), (2026, 3, 28, 23)),
        ("day", "Europe/Vienna", (2026, 3, 29, 21, 59), (2026, 3, 29, 22)),  # a day of 23 hours
        ("day", "Europe/Vienna", (2026, 10, 25, 22, 59), (2026, 10, 25, 23)),  # of 25
        # whose midnight is skipped
        ("day", "America/Sao_Paulo", (2018, 11, 4, 2, 59), (2018, 11, 4, 3)),
        # after which a day is skipped
        ("day", "Pacific/Apia", (2011, 12, 30, 9, 59), (2011, 12, 30, 10)),
        ("week", "UTC", (2026, 3, 1, 23, 59), (2026, 3, 2)),  # a Sunday
        ("week", "Asia/Tokyo", (2026, 12, 31, 23), (2027, 1, 3, 15)),
        ("month", "UTC", (2024, 2, 29, 23, 59), (2024, 3, 1)),
        ("month", "UTC", (2026, 2, 28, 23, 59), (2026, 3, 1)),
        ("month", "UTC", (2026, 12, 31, 23, 59), (2027, 1, 1)),
        ("month", "America/New_York", (2026, 4, 1, 3, 59), (2026, 4, 1, 4)),
        ("month", "Pacific/Kiritimati", (2026, 1, 31, 9, 59), (2026, 1, 31, 10)),
    ],
)
def test_a_period_ends_with_the_calendar_of_its_zone(clock, cap, zone, last, first):
    clock(*last)
    budget = dp.Budget(epsilon=10, caps={cap: 1, "zone": zone})
    paid(budget, 0.8)
    with pytest.raises(errors.CapExceeded) as refused:
        paid(budget)
    assert refused.value.frees == dt.datetime(*first, tzinfo=dt.UTC)
    clock(*first)
    paid(budget, 0.8)
    assert spent(budget) == {(cap, None): Fraction(8, 10)}


def test_a_clock_that_is_set_back_begins_no_period_anew(made, clock):
    budget = made({"day": 1, "week": 2, "month": 3})
    for day in (9, 10):
        clock(2026, 3, day)
        paid(budget, 1)
    for back in ((2026, 3, 9), (2026, 3, 2), (2026, 2, 1), (2025, 3, 10)):
        clock(*back)
        with pytest.raises(errors.CapExceeded) as refused:
            paid(budget, 0.1)
        assert refused.value.frees == dt.datetime(2026, 3, 11, tzinfo=dt.UTC)
    clock(2026, 3, 16)
    paid(budget, 1)
    with pytest.raises(errors.CapExceeded, match="cap of a month"):
        paid(budget, 0.1)


def test_prices_are_added_up_in_their_own_units(made):
    """δ has a cap where it is named, and a price in ρ none where ε has one."""
    budget = made({"day": {"epsilon": 2, "delta": 1e-6}, "month": {"epsilon": 9}})
    budget.charge(eps(1, 1e-6), WHO, "count()")
    with pytest.raises(errors.CapExceeded, match=r"cap of a day .* epsilon=1\.0, delta=0\.0"):
        budget.charge(eps("0.1", "1e-18"), WHO, "count()")
    budget.charge(eps(1), WHO, "count()")
    sums = CapSums.of(begun({"zone": "UTC", "day": {"epsilon": "2/1"}}), Loss.none(), MARCH)
    rho = Loss.charged_rho(Fraction(1, 100), Fraction(0))
    assert sums.exceeded(rho, rho) == ["day"]
    assert sums.exceeded(eps(2), eps(2)) == []


def test_a_budget_in_rho_has_caps_in_rho(made):
    budget = made({"day": 0.5}, rho=2)
    budget.charge(Loss.charged_rho(Fraction(1, 2), Fraction(0)), WHO, "count()")
    with pytest.raises(errors.CapExceeded, match=r"cap of a day is ρ = 0\.5"):
        budget.charge(Loss.charged_rho(Fraction(1, 10), Fraction(0)), WHO, "count()")


def test_parts_and_nights_count_at_their_own_price_and_stored_answers_for_nobody(clock):
    del clock
    budget = dp.Budget(epsilon=10, delta=1e-6, caps={"day": 1})
    frame = pl.DataFrame({"id": [1, 2], "region": ["n", "s"]}).dp(unit="id", budget=budget)
    for part in frame.partition("region", keys=["n", "s"]).values():
        part.count_units().release(epsilon=0.3)
    assert budget.spent == eps(0.3)
    assert spent(budget) == {("day", None): Fraction(6, 10)}
    nightly = budget.allocate(nights=10, epsilon=5, delta=1e-7)
    assert (nightly.accountant, spent(budget)) == ("basic", {("day", None): Fraction(6, 10)})
    night = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=nightly)
    for _ in range(2):
        night.count_units().release(epsilon=0.3, name="tonight")
    assert spent(budget) == {("day", None): Fraction(9, 10)}
    with pytest.raises(errors.CapExceeded):
        night.count_units().release(epsilon=0.15)
    with pytest.raises(errors.CapExceeded):
        budget.plan([frame.count_units()], epsilon=0.2).release()


def test_a_series_counts_once(clock):
    del clock
    budget = dp.Budget(epsilon=10, caps={"day": 1})
    frame = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=budget)
    series = budget.series("visits", "1d", horizon=4, epsilon=0.9, unit_periods=4)
    for day in (1, 2):
        series.add(frame.count_units(), period=f"2026-03-0{day}")
    assert spent(budget) == {("day", None): Fraction(9, 10)}


def test_a_share_counts_under_a_cap_of_epsilon(made):
    """A price in ρ, in a budget that takes both, as the ε that it implies at the
    budget's δ; with a cap of ρ as ρ.
    """
    budget = made({"day": 0.5, "spender": 0.3}, epsilon=10, delta=1e-6)
    query = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=budget).count_units()
    out = query.release(share=0.001, spender="ana")
    one = zcdp_to_epsilon(Fraction(out.cost.rho), Fraction(1, 10**6))
    assert spent(budget)["day", None] == pytest.approx(one, rel=1e-9)
    assert budget.caps[0].spent.rho is None
    assert "ρ" not in str(budget.caps[0])
    number = math.floor(0.3 / one)
    for _ in range(number - 1):
        query.release(share=0.001, spender="ana")
    with pytest.raises(errors.CapExceeded, match="cap of the spender 'ana'"):
        query.release(share=0.001, spender="ana")
    with pytest.raises(errors.CapExceeded, match="cap of a day"):
        query.release(share=0.3, spender="bob")
    query.release(epsilon=0.1, spender="bob")
    assert spent(budget)["spender", "bob"] == Fraction(1, 10)
    in_rho = dp.Budget(epsilon=10, delta=1e-6, caps={"day": {"rho": 1}})
    in_rho.charge(Loss.charged_rho(Fraction(1, 1000), Fraction(0)), WHO, "count()")
    assert in_rho.caps[0].spent == Loss.charged_rho(Fraction(1, 1000), Fraction(0))
    with pytest.raises(errors.CapExceeded):
        in_rho.charge(eps("0.1"), WHO, "count()")


def test_an_allowance_counts_for_the_spender_who_takes_it(made, clock):
    """In full and at once, so that nobody locks more than the cap;
    what it pays for counts under all other caps.
    """
    del clock
    budget = made({"spender": 1, "day": 0.4, "release": 0.3})
    table = pl.DataFrame({"id": [1, 2]})
    with pytest.raises(errors.InvalidArgument, match="who takes it"):
        budget.allocate(nights=10, epsilon=0.5)
    with pytest.raises(errors.CapExceeded, match="cap of the spender 'ana'"):
        budget.for_spender("ana").allocate(nights=10, epsilon=1.5)
    nightly = budget.for_spender("ana").allocate(nights=2, epsilon=0.8)
    assert spent(budget) == {
        ("spender", "ana"): Fraction(4, 5),
        ("day", None): 0,
        ("release", None): 0,
    }
    with pytest.raises(errors.CapExceeded, match="cap of the spender 'ana'"):
        budget.for_spender("ana").allocate(nights=10, epsilon=0.3, name="more")
    night = table.dp(unit="id", budget=nightly).count_units()
    with pytest.raises(errors.CapExceeded, match="cap of one release"):
        night.release(epsilon=0.35)
    for spender in ("ana", "bob"):
        night.release(epsilon=0.2, spender=spender)
    assert spent(budget)["spender", "ana"] == Fraction(4, 5)
    assert spent(budget)["spender", "bob"] == 0
    with pytest.raises(errors.CapExceeded, match="cap of a day"):
        table.dp(unit="id", budget=budget).count_units().release(epsilon=0.1, spender="bob")


def test_an_allowance_that_nobody_took_counts_when_it_is_spent(tmp_path, clock):
    """One that was made before spenders had a cap."""
    del clock
    ledger = Ledger(tmp_path / "a.sqlite")
    nightly = ledger.budget("b", epsilon=10).allocate(nights=2, epsilon=4)
    ledger.change_caps("b", {"spender": 1}, by="Ada")
    night = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=nightly).count_units()
    night.release(epsilon=0.6, spender="ana")
    with pytest.raises(errors.CapExceeded):
        night.release(epsilon=0.6, spender="ana")
    assert ledger.verify() == {"b": 5}


def test_series_and_tuning_are_under_caps(made, clock):
    """A series at its whole price, where it is opened; a tuning at its own;
    dp.Auto and a batch as they are charged.
    """
    del clock
    budget = made({"release": 0.5, "day": 1, "spender": 0.8})
    table = pl.DataFrame({"id": [1, 2, 3], "g": ["a", "b", "a"]})

    def visits(paid_by):
        return table.dp(unit="id", budget=paid_by).count(max_rows=1)

    def opened(paid_by, epsilon):
        series = paid_by.series("visits", "1d", horizon=4, epsilon=epsilon, unit_periods=4)
        return series.add(visits(paid_by), period="2026-03-01")

    ana, bob = budget.for_spender("ana"), budget.for_spender("bob")
    with pytest.raises(errors.CapExceeded, match="one release"):
        opened(ana, 0.6)
    with pytest.raises(errors.InvalidArgument, match="who takes it"):
        opened(budget, 0.5)
    opened(ana, 0.5)
    ana.series("visits").add(visits(ana), period="2026-03-02")
    assert spent(budget)["spender", "ana"] == spent(budget)["day", None] == Fraction(1, 2)
    auto = (
        table.dp(unit="id", budget=budget).group_by("g", keys=["a", "b"], limits=dp.Auto()).count()
    )
    with pytest.raises(errors.CapExceeded, match="spender 'ana'"):
        auto.release(epsilon=0.4, spender="ana")
    auto.release(epsilon=0.2, spender="ana")
    with pytest.raises(errors.InvalidArgument, match="who spends"):
        visits(budget).tune({"max_rows": [1, 2]}, epsilon=0.1)
    with pytest.raises(errors.CapExceeded, match="spender 'ana'"):
        visits(ana).tune({"max_rows": [1, 2]}, epsilon=0.2)
    visits(bob).tune({"max_rows": [1, 2]}, epsilon=0.1)
    with pytest.raises(errors.CapExceeded, match="cap of a day"):
        budget.plan([visits(budget)], epsilon=0.4).release(spender="bob")
    assert spent(budget)["day", None] == Fraction(8, 10)


def test_caps_by_the_command_line(tmp_path, capsys):
    from dpframe.__main__ import main

    path = str(tmp_path / "a.sqlite")
    ledger = Ledger(path)
    ledger.budget("b", epsilon=10, delta=1e-6)
    ask = ["ledger", "caps", path]
    assert main(ask) == 0
    assert "has no caps" in capsys.readouterr().out
    assert main([*ask, "--day", "1", "--zone", "Europe/Vienna", "--by", "Ada"]) == 0
    ledger.change_caps(
        "b", {"day": {"epsilon": 1, "delta": 1e-7}, "zone": "Europe/Vienna"}, by="Ada"
    )
    assert main([*ask, "--day", "2", "--release", "0.5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(cap["cap"], cap["most"]) for cap in said["caps"]] == [
        ("release", "ε = 0.5"),
        ("day", "ε = 2, δ = 1e-07"),
    ]
    last = ledger.entries("b")[-1]
    assert (last.kind, last.body["caps"]["zone"]) == ("caps", "Europe/Vienna")
    assert main([*ask, "--day", "-1"]) == 1
    assert main(["ledger", "caps", path, "--budget", "c", "--day", "1"]) == 1
    assert ledger.verify()["b"] == 4


def set_clock(clock, at):
    clock(at.year, at.month, at.day, at.hour, at.minute)


def midnight(zone, year, month):
    """When a month begins in a zone, found hour by hour in UTC, without
    a rule of the calendar of caps.
    """
    at = dt.datetime(year, month, 1, tzinfo=dt.UTC) - dt.timedelta(days=2)
    while (at.astimezone(zone).year, at.astimezone(zone).month) < (year, month):
        at += dt.timedelta(minutes=15)
    return at


@pytest.mark.parametrize(
    ("zone", "year"),
    [
        ("UTC", 2026),
        ("Europe/Vienna", 2026),
        ("America/New_York", 2026),
        ("Asia/Kathmandu", 2026),
        ("Pacific/Kiritimati", 2026),
        ("America/Asuncion", 2023),  # its first of October began at one o'clock
    ],
)
def test_months_end_where_the_clocks_of_a_zone_say(clock, zone, year):
    """Through a year with both changes of the clocks:
    a cap refuses until the last quarter of an hour, then frees.
    """
    here, quarter = zoneinfo.ZoneInfo(zone), dt.timedelta(minutes=15)
    for month in range(1, 13):
        first = midnight(here, year + month // 12, month % 12 + 1)
        budget = dp.Budget(epsilon=100, caps={"month": 1, "zone": zone})
        set_clock(clock, first - dt.timedelta(days=20))
        paid(budget, 1)
        set_clock(clock, first - quarter)
        with pytest.raises(errors.CapExceeded, match=f"{first:%Y-%m-%d %H:%M} UTC"):
            paid(budget, 0.5)
        set_clock(clock, first)
        paid(budget, 1)
        assert spent(budget) == {("month", None): 1}


def test_caps_are_fixed_when_a_budget_is_made_and_changed_by_a_verb_that_is_recorded(
    tmp_path, clock
):
    path = tmp_path / "a.sqlite"
    caps = dp.Caps(day=1, zone="Europe/Vienna")
    budget = Ledger(path).budget("b", epsilon=10, caps=caps)
    paid(budget, 1)
    for other in (
        dp.Caps(day=2, zone="Europe/Vienna"),
        {"day": 0.5, "zone": "Europe/Vienna"},
        dp.Caps(day=1),
    ):
        with pytest.raises(errors.BudgetMismatch, match="change_caps"):
            Ledger(path).budget("b", caps=other)
    for again in (None, caps, {"day": 1.0, "zone": "Europe/Vienna"}):
        with pytest.raises(errors.CapExceeded):
            paid(Ledger(path).budget("b", epsilon=10, caps=again))
    with pytest.raises(errors.UnsupportedOperation, match="zone"):
        Ledger(path).change_caps("b", {"day": 2}, by="Ada")
    Ledger(path).change_caps("b", {"day": 2, "zone": "Europe/Vienna"}, by="Ada")
    paid(budget, 1)  # an object that was made before the change; what was spent today still counts
    with pytest.raises(errors.CapExceeded):
        paid(budget, 0.1)
    entry = Ledger(path).entries("b")[2]
    assert (entry.kind, entry.body["by"], entry.body["caps"]["day"]) == (
        "caps",
        "Ada",
        {"epsilon": "2/1"},
    )
    Ledger(path).change_caps("b", {"month": 2, "zone": "Europe/Vienna"}, by="Ada")
    clock(2026, 3, 5)
    with pytest.raises(errors.CapExceeded, match="cap of a month"):
        paid(budget, 0.1)
    assert Ledger(path).verify() == {"b": 5}


def test_caps_of_a_budget_that_had_none_count_from_their_change_on(tmp_path):
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=10)
    paid(budget, 1, "ana")
    with pytest.raises(errors.BudgetMismatch):
        ledger.budget("b", caps={"day": 1})
    ledger.change_caps("b", {"spender": 1.5, "day": 1}, by="Ada")
    paid(budget, 0.5, "ana")
    with pytest.raises(errors.CapExceeded, match="spender 'ana'"):
        paid(budget, 0.1, "ana")
    assert ledger.verify() == {"b": 4}


def test_a_clock_that_was_too_far_ahead_is_put_right_by_a_change(tmp_path, clock):
    ledger = Ledger(tmp_path / "a.sqlite", clock_skew=dt.timedelta(days=9000))
    budget = ledger.budget("b", epsilon=10, caps={"day": 1})
    clock(2030, 1, 1)
    paid(budget, 0.8)
    clock(2026, 3, 1)
    ledger.change_caps("b", {"day": 1}, by="Ada")
    with pytest.raises(errors.CapExceeded):
        paid(budget)  # its sum is kept today
    clock(2026, 3, 2)
    paid(budget)
    assert ledger.verify() == {"b": 4}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE dpframe_budgets SET caps = NULL",
        "UPDATE dpframe_budgets SET caps = replace(caps, '2/5', '0/1')",
        "UPDATE dpframe_budgets SET caps = replace(caps, '1/1', '9/1')",
        "UPDATE dpframe_entries SET spender = 'eve'",
    ],
)
def test_caps_that_were_changed_by_hand_are_found(tmp_path, change):
    path = tmp_path / "a.sqlite"
    paid(Ledger(path).budget("b", epsilon=10, caps={"day": 1, "spender": 1}), who="ana")
    assert Ledger(path).verify() == {"b": 2}
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(errors.LedgerDamaged):
        Ledger(path).verify()


@pytest.mark.parametrize(
    "caps",
    [{}, {"hour": 1}, {"day": 0}, {"day": -1}, {"day": "1"}, {"day": {}}, {"day": {"delta": 1e-6}}, 
     {"day": float("nan")},
     {"day": 1, "zone": "Mars/Base"}, {"day": 1, "zone": "../../etc/passwd"},
     {"day": 1, "zone": None}, 1, "day=1",
     {"day": {"ε": 1}}, {"day": True}],
)  # fmt: skip
def test_caps_that_mean_nothing_are_refused(caps):
    with pytest.raises(errors.InvalidArgument):
        dp.Budget(epsilon=1, caps=caps)


@pytest.mark.parametrize("spender", ["", " ", 3, "a\0", "ana ", "an\u200ba"])
def test_a_spender_is_a_plain_text(spender):
    with pytest.raises(errors.InvalidArgument):
        dp.Budget(epsilon=1).for_spender(spender)


def test_a_release_says_who_spends_and_the_ledger_shows_it(tmp_path, capsys):
    from dpframe.__main__ import main
    from dpframe.release.shown import ledger_page

    path = tmp_path / "a.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("b", epsilon=10, caps={"spender": 1, "day": 2})
    table = pl.DataFrame({"id": [1, 2]})
    table.dp(unit="id", budget=budget).count_units().release(epsilon=0.25, spender="ana")
    table.dp.count_units(unit="id", budget=budget, epsilon=0.5, spender="bob")
    again = ledger.budget("b", spender="bob")
    table.dp(unit="id", budget=again.allocate(nights=1, epsilon=0.5)).count_units().release(
        epsilon=0.5
    )
    assert main(["ledger", "show", str(path)]) == 0
    for shown in (capsys.readouterr().out, ledger_page(ledger)):
        for words in ("ana", "bob", "ε = 0.25", "ε = 1", "of a day", "begins anew"):
            assert words in shown
    assert json.loads(ledger.export())["b"]["entries"][0]["caps"]["spender"] == {"epsilon": "1/1"}
    assert ledger.verify() == {"b": 8}


@pytest.mark.long
@pytest.mark.parametrize(("store", "spends"), [("sqlite", 10), ("postgres", 25)])
def test_parts_of_three_spenders_hold_for_16_processes(request, tmp_path, spenders, store, spends):
    """They pay and move parts at once: nothing is lost, nothing is spent
    twice, and what is left is returned.
    """
    place = tmp_path / "study.sqlite" if store == "sqlite" else request.getfixturevalue("postgres")
    said = spenders("shares", place, 16, spends)
    assert said["errors"] == []
    assert said["moved"] > 0
    assert Fraction(said["limits"]) == 3
    assert (
        sum(map(Fraction, said["parts"].values()))
        == Fraction(said["granted"])
        == Fraction(said["spent"])
    )
    assert said["spenders"] == said["parts"]


@pytest.mark.one_in(2)
def test_caps_hold_for_16_processes(spenders, place):
    done = spenders("capped", place, 16, 12)
    assert done["errors"] == []
    granted, killed = Fraction(done["granted"]), Fraction(done["killed"])
    assert granted + killed == Fraction(done["month"]) == Fraction(done["spent"]) <= Fraction(9, 10)
    assert granted > Fraction(8, 10)
    assert killed > 0
    assert max(map(Fraction, done["spenders"].values())) <= Fraction(1, 2)
    assert done["refused"] > 0


@pytest.mark.long
def test_caps_hold_where_some_of_16_processes_are_killed(spenders, place):
    """Every second one is killed while the others spend; a charge is in all sums or in none."""
    done = spenders("among", place, 16, 30)
    assert done["errors"] == []
    assert done["kills"] == 8
    assert (
        Fraction(done["granted"])
        <= Fraction(done["month"])
        == Fraction(done["spent"])
        <= Fraction(15, 100)
    )
    assert sum(map(Fraction, done["spenders"].values())) == Fraction(done["month"])
    assert max(map(Fraction, done["spenders"].values())) <= Fraction(1, 10)
    assert done["refused"] > 0


def test_caps_hold_where_processes_are_killed(spenders, tmp_path):
    done = spenders("kills", tmp_path / "a.sqlite", tmp_path / "seen", 12)
    assert done["integrity"] == ["ok"]
    ledger = Ledger(tmp_path / "a.sqlite")
    ledger.verify()
    budget = ledger.budget("killed")
    (day,) = [cap for cap in budget.caps if cap.cap == "month"]
    assert day.spent == budget.spent


def test_the_price_of_a_charge_does_not_grow_with_the_entries(tmp_path):
    """SQLite's own count of its steps: after 100,000 charges it
    takes as many as after a thousand.
    """
    from dpframe.budget import canonical
    from dpframe.budget.entries import chained

    path = tmp_path / "a.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("b", epsilon=10**6, caps={"spender": 10**5, "month": 10**6})
    for who in ("ana", "bob"):
        paid(budget, 1, who)
    rows = sqlite3.connect(path)
    (number, at, body, head) = rows.execute(
        "SELECT number, at, body, hash FROM dpframe_entries ORDER BY number DESC LIMIT 1"
    ).fetchone()

    def longer(until):
        nonlocal number, head
        lines = []
        text = canonical(
            {**json.loads(body), "spender": "ana", "by_spender": json.loads(body)["by_spender"]}
        )
        while number < until:
            head, number = chained(head, number + 1, "charge", at, text), number + 1
            lines.append(("b", number, "charge", at, text, head, "ana"))
        columns = "(budget, number, kind, at, body, hash, spender)"
        rows.executemany(
            f"INSERT INTO dpframe_entries {columns} VALUES (?, ?, ?, ?, ?, ?, ?)", lines
        )
        rows.execute("UPDATE dpframe_budgets SET number = ?, head = ?", (number, head))
        rows.commit()

    def steps():
        seen = [0]

        def count():
            seen[0] += 1

        import sqlalchemy as sa

        engine = ledger._store.engine

        def counted(connection, *_):
            connection.connection.driver_connection.set_progress_handler(count, 1)

        sa.event.listen(engine, "begin", counted)
        paid(budget, 1e-6, "ana")
        paid(budget, 1e-6, "bob")
        sa.event.remove(engine, "begin", counted)
        return seen[0]

    longer(1000)
    paid(budget, 1e-6, "ana")
    few = steps()
    number, head = rows.execute("SELECT number, head FROM dpframe_budgets").fetchone()
    longer(100_000)
    paid(budget, 1e-6, "ana")
    assert 0 < steps() <= 2 * few
    rows.close()


def test_a_batch_and_a_pickled_budget_keep_their_spender(tmp_path):
    import pickle

    budget = Ledger(tmp_path / "a.sqlite").budget(
        "b", epsilon=10, caps={"spender": 1}, spender="bob"
    )
    frame = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=budget)
    budget.plan([frame.count_units()], epsilon=0.25).release(spender="ana")
    paid(pickle.loads(pickle.dumps(budget.for_spender("cleo"))), 0.5)
    paid(pickle.loads(pickle.dumps(budget)), 0.125)
    assert {who: float(spent.exact_epsilon) for who, spent in budget.spenders.items()} == {
        "ana": 0.25,
        "cleo": 0.5,
        "bob": 0.125,
    }


# Periods of an allowance


@pytest.mark.parametrize(
    ("start", "per", "zone", "begin"),
    [
        ((2026, 1, 31), "1mo", None, [(2026, 1, 31), (2026, 2, 28), (2026, 3, 31), (2026, 4, 30)]),
        ((2024, 1, 30), "1mo", None, [(2024, 1, 30), (2024, 2, 29), (2024, 3, 30)]),
        (
            (2024, 2, 29),
            "12mo",
            None,
            [(2024, 2, 29), (2025, 2, 28), (2026, 2, 28), (2027, 2, 28), (2028, 2, 29)],
        ),
        (
            (2026, 2, 28, 23),
            "1mo",
            "Europe/Vienna",
            [(2026, 2, 28, 23), (2026, 3, 31, 22), (2026, 4, 30, 22)],
        ),
        (
            (2026, 3, 27, 23),
            "1d",
            "Europe/Vienna",
            [(2026, 3, 27, 23), (2026, 3, 28, 23), (2026, 3, 29, 22)],
        ),
        ((2026, 10, 23, 22), "1w", "Europe/Vienna", [(2026, 10, 23, 22), (2026, 10, 30, 23)]),
        ((2026, 3, 27), "12h", "Europe/Vienna", [(2026, 3, 27), (2026, 3, 27, 12), (2026, 3, 28)]),
    ],
)
def test_periods_begin_where_the_calendar_says(start, per, zone, begin):
    periods = Periods.of(dt.datetime(*start, tzinfo=dt.UTC), per, zone)
    begin = [dt.datetime(*parts, tzinfo=dt.UTC) for parts in begin]
    assert [periods.begins(number) for number in range(len(begin))] == begin
    moment = dt.timedelta(microseconds=1)
    for number, (first, following) in enumerate(pairwise(begin)):
        assert {periods.number(first), periods.number(following - moment)} == {number}
    assert periods.number(begin[0] - moment) == -1


def test_an_allowance_of_calendar_months(tmp_path, clock):
    clock(2026, 1, 20)
    ledger = Ledger(tmp_path / "a.sqlite")
    months = ledger.budget("b", epsilon=12).allocate(
        "1mo", periods=12, epsilon=12, zone="Europe/Vienna"
    )
    assert months.pace.begins(0) == dt.datetime(2025, 12, 31, 23, tzinfo=dt.UTC)
    assert months.share == eps(1)
    months.charge(eps(1), WHO, "count()")
    clock(2026, 1, 31, 22, 59)
    with pytest.raises(errors.BudgetExceeded, match="next month begins at 2026-01-31 23:00 UTC"):
        months.charge(eps("0.1"), WHO, "count()")
    clock(2026, 1, 31, 23)
    months.charge(eps(1), WHO, "count()")
    again = (
        Ledger(tmp_path / "a.sqlite")
        .budget("b")
        .allocate("1mo", 12, epsilon=12, zone="Europe/Vienna")
    )
    assert again.spent == eps(2)
    assert "12 months from 2026-01-01 to 2026-12-01" in repr(months.forecast())


def under_a_policy(budget, price, caps):
    policy = {"file": "p.toml", "sha256": "0" * 64, "caps": caps}
    return budget.charge(eps(price), WHO, "q", policies=[policy])


def test_the_caps_of_a_policy_let_nothing_through_that_was_refused(made):
    budget = made({"day": {"rho": 0.001}})
    for _ in range(2):
        with pytest.raises(errors.CapExceeded):
            paid(budget, 0.5)
        with pytest.raises(errors.CapExceeded):
            under_a_policy(budget, 0.1, {"day": {"epsilon": 0.9}})
        with pytest.raises(errors.CapExceeded):
            budget.charge(Loss.charged_rho(Fraction(1, 10**4), Fraction(0)), WHO, "q", policies=[
                {"file": "p.toml", "sha256": "0" * 64, "caps": {"day": {"epsilon": 0.9}}}
            ])  # fmt: skip
    assert budget.spent.epsilon == 0


def test_a_refused_release_changes_no_caps(made):
    budget = made(dp.Caps(day=50))
    with pytest.raises(errors.BudgetExceeded):
        under_a_policy(budget, 20, {"day": {"epsilon": 30}})
    assert "caps" not in [entry.kind for entry in budget.entries()]


def test_a_policy_on_a_clock_that_is_set_back_begins_no_day_anew(made, clock):
    budget = made(dp.Caps(day=1))
    paid(budget, 0.9)
    clock(2026, 2, 28, 12)
    under_a_policy(budget, 0.05, {"day": {"epsilon": 0.99}})
    clock(2026, 3, 1, 13)
    with pytest.raises(errors.CapExceeded):
        paid(budget, 0.5)


def test_a_charge_says_who_what_for_and_where(tmp_path):
    """By default the user of the machine; in the history, the export and,
    where it is pending, on the page.
    """
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=10)
    paid(budget, 1)
    paid(ledger.budget("b", spender="ana", purpose="the monthly report"), 1)
    paid(pickle.loads(pickle.dumps(budget.for_spender("bob", "a try"))).for_spender("eve"), 1)
    lines = ledger.budget("b").history()
    assert [line.by for line in lines] == [user_name(), "ana", "eve"]
    assert [line.spender for line in lines] == [None, "ana", "eve"]
    assert [line.purpose for line in lines] == [None, "the monthly report", "a try"]
    assert {(line.host, line.process) for line in lines} == {(socket.gethostname(), os.getpid())}
    shown, table = charge_rows(lines)
    assert shown[-2:] == ("spender", "purpose")
    assert table[1][3] == f"pending: ana on {socket.gethostname()}, process {os.getpid()}"
    rows = list(csv.DictReader(ledger.export("csv").splitlines()))
    assert [row["purpose"] for row in rows] == ["", "the monthly report", "a try"]
    assert rows[0]["process"] == str(os.getpid())
    for wrong in ("", 3, "a\0"):
        with pytest.raises(errors.InvalidArgument, match="purpose="):
            ledger.budget("b", purpose=wrong)
    budget.for_spender("bob").allocate(name="bob", epsilon=1).close()
    # the steward
    assert [(line.spender, line.by) for line in budget.history()[3:]] == [("bob", user_name())] * 2
    assert ledger.verify() == {"b": 7}


def test_prices_add_up(tmp_path, clock):
    """A release that an allowance pays for has its own price, and
    the number of the line that paid.
    """
    del clock
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=10)
    paid(budget, 1)
    nightly = budget.allocate(nights=2, epsilon=4)
    for price in (0.25, 0.5):
        paid(nightly, price)
    lines = budget.history()
    assert [(line.epsilon, line.paid_by) for line in lines] == [
        (1, None),
        (4, None),
        (0.25, 3),
        (0.5, 3),
    ]
    assert sum(line.epsilon for line in lines if line.paid_by is None) == budget.spent.epsilon
    assert sum(line.epsilon for line in lines if line.paid_by == 3) == nightly.spent.epsilon
    rows = list(csv.DictReader(ledger.export("csv").splitlines()))
    assert [(row["epsilon"], row["paid_by"]) for row in rows] == [
        ("1.0", ""),
        ("4.0", ""),
        ("0.25", "3"),
        ("0.5", "3"),
    ]


def test_a_release_says_what_it_is_for(tmp_path):
    """Beside who pays; what a budget was opened for holds where a release says nothing."""
    budget = Ledger(tmp_path / "a.sqlite").budget(
        "visits", epsilon=2, spender="ana", purpose="the monthly report"
    )
    frame = dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=budget)
    query = frame.count_units()
    query.release(epsilon=0.25)
    query.release(epsilon=0.25, purpose="a paper")
    query.release(epsilon=0.25, spender="bo")
    budget.plan([query], epsilon=0.25).release(purpose="a batch")
    said = [(line.spender, line.purpose) for line in budget.history()]
    assert said == [
        ("ana", "the monthly report"),
        ("ana", "a paper"),
        ("bo", "the monthly report"),
        ("ana", "a batch"),
    ]
    with pytest.raises(errors.InvalidArgument, match="purpose="):
        query.release(epsilon=0.25, purpose="")


def test_what_is_paid_in_advance_says_who_and_what_for_of_all_that_it_pays_for(tmp_path):
    """Of parts, with and without nights, and of series:
    also where somebody else opens them again by their name.
    """
    ledger = Ledger(tmp_path / "a.sqlite")
    ana, nobody = (
        ledger.budget("visits", epsilon=9, spender="ana", purpose="the report"),
        ledger.budget("visits"),
    )

    def asked(account):
        return dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=account).count_units()

    for part in (ana.allocate(name="bo", epsilon=2), ana.allocate(nights=2, epsilon=2)):
        again = nobody.allocate(name=part._opening.name.removeprefix("allowance "))
        asked(again).release(epsilon=0.25)
        asked(again).release(epsilon=0.25, spender="bo", purpose="a paper")
    ana.series("signups", every="1d", horizon=9, epsilon=1, unit_periods=1).add(
        asked(ana), "2026-01-01"
    )
    nobody.series("signups").add(asked(nobody), "2026-01-02")
    nobody.for_spender("cy", "a check").series("signups").add(asked(None), "2026-01-03")
    asked(nobody).release(epsilon=0.25)
    opened = {line.number for line in nobody.history() if line.status == "open"}
    lines = [
        (line.spender, line.by, line.purpose)
        for line in nobody.history()
        if line.number not in opened
    ]
    anas, bos = ("ana", "ana", "the report"), ("bo", "bo", "a paper")
    assert lines == [
        anas,
        bos,
        anas,
        bos,
        anas,
        anas,
        ("cy", "cy", "a check"),
        (None, user_name(), None),
    ]
    assert ledger.verify() == {"visits": 20}
