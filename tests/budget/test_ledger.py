"""The ledger: budgets that are reopened, shared by threads, forks and processes, and checked."""

import copy
import datetime as dt
import gc
import itertools
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import warnings
from fractions import Fraction

import polars as pl
import pytest
import sqlalchemy as sa

import dpframe as dp
from dpframe import errors
from dpframe.budget import Budget, Ledger, Loss, account, read_delta, read_epsilon
from dpframe.budget.ledger import book, verify
from inside import book_of

WHO = "unit 'id', add-remove"


def loss(epsilon, delta=0):
    return Loss.charged(read_epsilon(epsilon), read_delta(delta))


def paid(budget, epsilon, data=b"table", **options):
    receipt = budget.charge(loss(epsilon), WHO, "count()", **options)
    budget.store(receipt, data, {"releases": []})
    return receipt


# Opening


def test_a_budget_is_there_after_a_restart(place):
    budget = Ledger(place).budget("visits", epsilon=2, delta=1e-6)
    for _ in range(10):
        paid(budget, 0.1)
    again = Ledger(place).budget("visits", epsilon=2, delta=1e-6)
    assert again.spent.epsilon == 1
    assert again.remaining == loss(1, 1e-6)
    assert Ledger(place).budget("visits").limit == again.limit
    assert Ledger(place).budgets() == ["visits"]
    with pytest.raises(errors.BudgetExceeded, match="Nothing was spent"):
        paid(again, 1.1)
    assert again.history() == budget.history()
    assert len(again.history()) == 10


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 3, "delta": 1e-6},
        {"epsilon": 2},
        {"epsilon": 2, "delta": 1e-6, "accountant": "pld"},
        {"rho": 2},
    ],
)
def test_a_budget_is_reopened_with_its_own_limit_only(place, other):
    Ledger(place).budget("visits", epsilon=2, delta=1e-6)
    with pytest.raises(errors.BudgetMismatch, match="cannot be changed"):
        Ledger(place).budget("visits", **other)
    assert Ledger(place).budget("visits").limit == loss(2, 1e-6)


def test_a_new_budget_needs_a_limit_and_a_name(tmp_path):
    ledger = Ledger(tmp_path / "a.sqlite")
    with pytest.raises(errors.InvalidPrice, match="To make it, give its limit"):
        ledger.budget("visits")
    with pytest.raises(errors.InvalidArgument):
        ledger.budget("", epsilon=1)
    with pytest.raises(errors.InvalidArgument, match="postgresql"):
        Ledger("mysql://nowhere/x")
    assert ledger.budgets() == []


def test_importing_dpframe_does_not_import_sqlalchemy():
    code = (
        "import dpframe, sys; raise SystemExit('sqlalchemy' in sys.modules or 'dp_accounting' in "
        "sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_budget_of_a_ledger_can_go_to_another_process(place):
    budget = Ledger(place).budget("visits", epsilon=1)
    paid(pickle.loads(pickle.dumps(budget)), 0.5)
    paid(copy.copy(budget), 0.25)
    assert budget.remaining.epsilon == 0.25


def test_a_budget_in_memory_is_not_spent_by_a_fork():
    budget = Budget(epsilon=1)
    child = os.fork()
    if child == 0:
        try:
            budget.charge(loss(0.5), WHO, "count()")
        except errors.UnsupportedOperation:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# Spending


def test_refusals_change_nothing(place):
    budget = Ledger(place).budget("visits", epsilon=1, delta=1e-6)
    paid(budget, 0.4)
    before = budget.spent, budget.history(), book_of(budget).entries()
    for refused in (loss(0.7), loss(0.1, 1e-5), loss(5)):
        with pytest.raises(errors.BudgetExceeded):
            budget.charge(refused, WHO, "sum()")
    with pytest.raises(errors.BudgetMismatch):
        budget.charge(loss(0.1), "unit 'house', add-remove", "sum()")
    with pytest.raises(errors.InvalidArgument):
        budget.charge(loss(0.1), WHO, "sum()", name=" ")
    with pytest.raises(errors.InvalidArgument):
        budget.charge(loss(0.1), WHO, "sum()", refresh=True)
    assert (budget.spent, budget.history(), book_of(budget).entries()) == before


def test_a_name_is_paid_once(place):
    budget = Ledger(place).budget("visits", epsilon=1)
    first = paid(budget, 0.25, b"drawn once", name="daily", plan={"by": ["city"]})
    again = (
        Ledger(place)
        .budget("visits")
        .charge(loss(0.25), WHO, "count()", name="daily", plan={"by": ["city"]})
    )
    assert again.stored.data == b"drawn once"
    assert again.number == first.number
    assert budget.spent.epsilon == 0.25
    with pytest.raises(errors.ReleaseMismatch, match=r"by\[0\]: city, town"):
        budget.charge(loss(0.25), WHO, "count()", name="daily", plan={"by": ["town"]})
    with pytest.raises(errors.ReleaseMismatch):
        budget.charge(loss(0.25), WHO, "count()", name="daily", plan={"by": ["town"]}, refresh=True)
    paid(budget, 0.25, b"drawn twice", name="daily", plan={"by": ["city"]}, refresh=True)
    assert (
        budget.charge(loss(0.25), WHO, "count()", name="daily", plan={"by": ["city"]}).stored.data
        == b"drawn twice"
    )
    assert budget.spent.epsilon == 0.5
    assert [c.status for c in budget.history()] == ["released", "released"]


def test_a_pending_name_refuses_a_second_caller_until_it_is_refreshed(place):
    budget = Ledger(place).budget("visits", epsilon=1)
    budget.charge(loss(0.25), WHO, "count()", name="daily", plan={})
    with pytest.raises(errors.ReleasePending, match="refresh=True"):
        Ledger(place).budget("visits").charge(loss(0.25), WHO, "count()", name="daily", plan={})
    assert budget.spent.epsilon == 0.25
    assert [c.status for c in budget.history()] == ["pending"]
    paid(budget, 0.25, name="daily", plan={}, refresh=True)
    assert budget.charge(loss(0.25), WHO, "count()", name="daily", plan={}).stored is not None
    assert [c.status for c in budget.history()] == ["pending", "released"]


def test_a_budget_in_memory_keeps_names_too():
    budget = Budget(epsilon=1)
    paid(budget, 0.25, b"x", name="daily", plan={})
    assert budget.charge(loss(0.25), WHO, "count()", name="daily", plan={}).stored.data == b"x"
    assert budget.spent.epsilon == 0.25


def test_threads_cannot_overspend(place):
    budget = Ledger(place).budget("visits", epsilon=1)
    granted = []

    def spend():
        for _ in range(20):
            try:
                paid(budget, 0.01)
                granted.append(1)
            except errors.BudgetExceeded:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100 == len(budget.history())
    assert budget.remaining == loss(1) - loss(1)
    Ledger(place).verify()


def _hold_processes(spenders, place, processes, spends, cap):
    said = spenders("spend", place, processes, spends, cap)
    assert said["errors"] == []
    granted = Fraction(said["granted"])
    assert granted <= cap
    assert Fraction(said["spent"]) == granted
    assert said["refused"] > 0
    assert said["charges"] + said["refused"] == processes * spends
    assert said["entries"] == said["charges"] + 1
    return said


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing says which files are open")
def test_a_ledger_that_nobody_has_any_more_is_closed(tmp_path):
    def is_open():
        paths = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return any(
            os.readlink(path).startswith(str(tmp_path)) for path in paths if os.path.islink(path)
        )

    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
    ledger = Ledger(tmp_path / "here" / "a.sqlite", witness=tmp_path / "elsewhere" / "w")
    ledger.budget("b", epsilon=1).charge(
        Loss.charged(Fraction(1, 2), Fraction(0)), "unit 'id', add-remove", "q"
    )
    ledger.backup(tmp_path / "here" / "b.sqlite")
    assert is_open()
    gc.collect()  # what other tests have left
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        del ledger
        gc.collect()
    assert not is_open()
    assert not said, "Python 3.13 warns of a connection that is not closed"


@pytest.mark.one_in(2)
def test_processes_cannot_overspend(spenders, place):
    """Forked children that inherit an open ledger; the cap is reached on the way."""
    _hold_processes(spenders, place, 8, 25, 20)


@pytest.mark.long
def test_many_processes_cannot_overspend(spenders, place):
    _hold_processes(spenders, place, 32, 250, 1000)


def test_random_splits_are_exact():
    _hold_splits(10_000)


@pytest.mark.long
def test_a_million_random_splits_are_exact():
    _hold_splits(1_000_000)


def _hold_splits(number):
    """A budget of 1 split at random: charges add up to it."""
    import random

    draw = random.Random(number)
    cuts = sorted({draw.randrange(1, 10**15) for _ in range(number - 1)} | {0, 10**15})
    charged = Loss(0, 0)
    for low, high in itertools.pairwise(cuts):
        charged += Loss.charged(Fraction(high - low, 10**15), Fraction(0))
    assert charged == Loss(1, 0)


# Checking


def rows_of(path, change, *values):
    connection = sqlite3.connect(path)
    connection.execute(change, values)
    connection.commit()
    connection.close()


CHANGES = [
    (
        "UPDATE dpframe_entries SET body = replace(body, '1/10', '1/100') WHERE number = 2",
        "entry 2 was changed",
    ),
    (
        "UPDATE dpframe_entries SET at = '2020-01-01T00:00:00+00:00' WHERE number = 4",
        "entry 4 was changed",
    ),
    ("DELETE FROM dpframe_entries WHERE number = 4", "entry 4 is missing"),
    ("DELETE FROM dpframe_entries WHERE number > 3", "without an entry"),
    ("UPDATE dpframe_budgets SET spent = replace(spent, '3/10', '0/1')", "add up to"),
    ("UPDATE dpframe_budgets SET allowed = replace(allowed, '1/1', '9/1')", "limit"),
    ("UPDATE dpframe_data SET data = x'00' WHERE number = 4", "table of charge 4 was changed"),
    ("DELETE FROM dpframe_data WHERE number = 6", "table of charge 6 was changed"),
    ("UPDATE dpframe_entries SET name = 'other' WHERE number = 6", "another name"),
    ("UPDATE dpframe_entries SET about = 4 WHERE number = 7", "another name"),
    (
        "UPDATE dpframe_entries SET body = replace(body, ':', ': ') WHERE number = 2",
        "entry 2 was changed",
    ),
    ("UPDATE dpframe_entries SET body = substr(body, 2) WHERE number = 5", "entry 5 was changed"),
    (
        "UPDATE dpframe_entries SET body = replace(body, '{', '{\"about\":1,') WHERE number = 3",
        "entry 3 was changed",
    ),
    ("UPDATE dpframe_budgets SET failures = 2, acknowledged = 2", "of failures"),
    ("UPDATE dpframe_budgets SET subject = 'unit ''clinic'', add-remove'", "its row is about"),
    ("UPDATE dpframe_budgets SET subject = NULL", "its row is about None"),
    ("UPDATE dpframe_budgets SET at = '2000-01-01T00:00:00.000000+00:00'", "the time in its row"),
    ("UPDATE dpframe_budgets SET spent = 'nothing'", "none that dpframe writes"),
    ("UPDATE dpframe_budgets SET parts = '[]'", "none that dpframe writes"),
    ("UPDATE dpframe_budgets SET failures = 'none'", "none that dpframe writes"),
    ("UPDATE dpframe_entries SET at = x'00' WHERE number = 2", "none that dpframe writes"),
    ("UPDATE dpframe_data SET data = 'text' WHERE number = 4", "table of charge 4 was changed"),
    ("DELETE FROM dpframe_budgets", "there are entries of it, and no row"),
    (
        "UPDATE dpframe_budgets SET name = 'visitors'",
        "'visits': there are entries of it, and no row",
    ),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_verify_finds_what_was_changed(tmp_path, change, words):
    path = tmp_path / "study.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("visits", epsilon=1)
    for i in range(3):
        paid(budget, 0.1, name=f"release {i}", plan={})
    assert ledger.verify() == {"visits": 7}
    rows_of(path, change)
    with pytest.raises(errors.LedgerDamaged, match=words):
        Ledger(path).verify()


@pytest.mark.parametrize(
    ("column", "value"), [("spent", "nothing"), ("parts", "[]"), ("failures", "?"), ("at", "now")]
)
def test_a_value_that_cannot_be_read_refuses_charges(tmp_path, column, value):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    rows_of(path, f"UPDATE dpframe_budgets SET {column} = ?", value)
    with pytest.raises(errors.LedgerDamaged, match="a value that dpframe does not write"):
        paid(budget, 0.1)
    rows_of(path, "UPDATE dpframe_budgets SET allowed = 'all'")
    with pytest.raises(errors.LedgerDamaged, match="a value that dpframe does not write"):
        Ledger(path).budget("visits")


@pytest.mark.parametrize(
    "change",
    [
        "dpframe_data SET data = (SELECT data FROM dpframe_data WHERE number = 4) WHERE number = 2",
        "dpframe_data SET data = substr(data, 1, 20)",
        "dpframe_data SET data = 'text'",
        "dpframe_entries SET body = replace(body, '\"about\":2', '\"about\":4') WHERE number = 3",
        "dpframe_entries SET body = '{}' WHERE number = 3",
        "dpframe_entries SET body = '[' WHERE number = 3",
    ],
)
def test_a_stored_table_that_was_changed_is_not_shown(tmp_path, change):
    """The table of another question would be shown under this name, or
    would fail while it is unpacked.
    """
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    rows = pl.DataFrame({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    frame = dp.protect(rows, unit="u", budget=budget)
    query = frame.count_units()
    first = query.release(epsilon=0.1, name="people")
    frame.sum("x", bounds=(0, 5), max_rows=1).release(epsilon=0.1, name="sum")
    assert query.release(epsilon=0.1, name="people").value == first.value
    rows_of(path, f"UPDATE {change}")
    with pytest.raises(errors.LedgerDamaged, match=r"not the one that was released|does not write"):
        query.release(epsilon=0.1, name="people")


def test_a_table_of_a_series_that_was_changed_is_not_shown(tmp_path):
    path, days = tmp_path / "study.sqlite", [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
    rows = pl.DataFrame({"u": [1, 2, 3], "day": [days[0], days[1], days[1]]})

    def opened():
        budget = Ledger(path).budget("visits", epsilon=2)
        typed = {"every": "1d", "horizon": 10, "epsilon": 1.0, "unit_periods": 1}
        return dp.protect(rows, unit="u", budget=budget), budget.series("people", on="day", **typed)

    frame, series = opened()
    for day in days:
        series.add(frame.count_units(), period=day)
    assert opened()[1].table().table.height == 2
    opened()[0].sum("u", bounds=(0, 5), max_rows=1).release(epsilon=0.1, name="sum")
    rows_of(
        path,
        "UPDATE dpframe_data SET data = (SELECT data FROM dpframe_data ORDER BY number DESC "
        "LIMIT 1)",
    )
    with pytest.raises(errors.LedgerDamaged, match="not the one that was released"):
        opened()[1].table()


def test_a_format_that_is_no_number_is_refused(tmp_path):
    path = tmp_path / "study.sqlite"
    Ledger(path).close()
    rows_of(path, "UPDATE dpframe_ledger SET format = 'three'")
    with pytest.raises(errors.LedgerDamaged, match="no number of its format"):
        Ledger(path)


def test_verify_finds_budgets_that_were_exchanged(tmp_path):
    """Two budgets whose names are exchanged in every table: each has the limit of the other."""
    path = tmp_path / "study.sqlite"
    ledger = Ledger(path)
    paid(ledger.budget("pilot", epsilon=9), 0.1)
    paid(ledger.budget("study", epsilon=1), 0.1)
    for old, new in (("pilot", "-"), ("study", "pilot"), ("-", "study")):
        rows_of(path, "UPDATE dpframe_budgets SET name = ? WHERE name = ?", new, old)
        for table in ("dpframe_entries", "dpframe_data"):
            rows_of(path, f"UPDATE {table} SET budget = ? WHERE budget = ?", new, old)
    with pytest.raises(
        errors.LedgerDamaged, match="'study': its entries are those of the budget 'pilot'"
    ):
        Ledger(path).verify()


def test_a_witness_knows_budgets_that_were_removed_as_a_whole(tmp_path):
    path, witness = tmp_path / "ledger" / "study.sqlite", tmp_path / "elsewhere" / "witness.sqlite"
    path.parent.mkdir()
    witness.parent.mkdir()
    ledger = Ledger(path, witness=witness)
    paid(ledger.budget("visits", epsilon=1), 0.1)
    assert ledger.verify() == {"visits": 3}
    for table, name in (("budgets", "name"), ("entries", "budget"), ("data", "budget")):
        rows_of(path, f"DELETE FROM dpframe_{table} WHERE {name} = 'visits'")
    with pytest.raises(errors.LedgerDamaged, match="'visits': the witness knows it, and no row"):
        Ledger(path, witness=witness).verify()


def test_a_charge_while_a_ledger_is_verified_is_no_damage(tmp_path, monkeypatch):
    path, witness = tmp_path / "ledger" / "study.sqlite", tmp_path / "elsewhere" / "witness.sqlite"
    path.parent.mkdir()
    witness.parent.mkdir()
    ledger, other = Ledger(path, witness=witness), Ledger(path, witness=witness)
    paid(ledger.budget("visits", epsilon=1), 0.1)
    read, budget = verify._read_all, other.budget("visits")

    def charging(*arguments):
        monkeypatch.setattr(verify, "_read_all", read)
        paid(budget, 0.1)
        return read(*arguments)

    monkeypatch.setattr(verify, "_read_all", charging)
    assert ledger.verify() == {"visits": 3}
    assert ledger.verify() == {"visits": 5}


def test_an_entry_of_a_release_is_short_and_its_statement_is_read_again(tmp_path):
    """Most words of a statement are the same in all releases; entries hold them compressed."""
    ledger = Ledger(tmp_path / "study.sqlite")
    budget, rows = (
        ledger.budget("visits", epsilon=1),
        pl.DataFrame({"id": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0]}),
    )
    query = rows.dp(unit="id", budget=budget).group_by(
        "g", keys=["a", "b"], max_groups=1, max_rows_per_group=2
    )
    out = query.agg(n=dp.count(), m=dp.mean("x", bounds=(0, 9))).release(epsilon=0.5, name="visits")
    entries = ledger.entries("visits")
    assert sum(len(json.dumps(entry.body)) for entry in entries) / len(entries) < 1600
    (result,) = (
        line
        for line in json.loads(ledger.export())["visits"]["entries"]
        if line["kind"] == "result"
    )
    assert len(json.dumps(result["statement"])) > 2500
    assert result["statement"]["releases"][0]["guarantee"] == out.report().to_dict()["guarantee"]
    again = query.agg(n=dp.count(), m=dp.mean("x", bounds=(0, 9))).release(
        epsilon=0.5, name="visits"
    )
    assert again.report().to_dict().items() >= out.report().to_dict().items()


def test_export_and_command_line(tmp_path, capsys):
    from dpframe.__main__ import main

    path = str(tmp_path / "study.sqlite")
    assert main(["ledger", "show", path]) == 1
    assert "no ledger" in capsys.readouterr().err
    ledger = Ledger(path)
    assert main(["ledger", "show", path]) == 0
    budget = ledger.budget("visits", epsilon=1)
    paid(budget, 0.25, name="=cmd()", plan={})
    budget.charge(loss(0.5), WHO, "sum('spend')")
    assert main(["ledger", "show", path]) == 0
    shown = capsys.readouterr().out
    assert "ε = 0.75 spent of ε = 1, ε = 0.25 left" in shown
    assert "pending" in shown
    assert main(["ledger", "verify", path]) == 0
    assert "visits: 4 entries" in capsys.readouterr().out
    for form in ("json", "csv", "dp_accounting"):
        assert main(["ledger", "export", "--format", form, path]) == 0
    assert "'=cmd()" in ledger.export("csv")
    exported = json.loads(ledger.export("json"))["visits"]
    assert exported["remaining"] == {"epsilon": 0.25, "delta": 0.0}
    assert [e["kind"] for e in exported["entries"]] == ["open", "charge", "result", "charge"]
    rows_of(path, "UPDATE dpframe_budgets SET spent = replace(spent, '3/4', '1/4')")
    assert main(["ledger", "verify", path]) == 1
    assert "add up" in capsys.readouterr().err
    with pytest.raises(errors.InvalidArgument, match="csv"):
        ledger.export("xml")


def test_an_export_of_what_is_new(tmp_path, monkeypatch):
    """Two budgets, an entry an hour; `since` takes a time in UTC or in another zone."""
    hour = [0]

    def now():
        hour[0] += 1
        return dt.datetime(2026, 1, 1, hour[0], tzinfo=dt.UTC)

    monkeypatch.setattr(account, "now", now)
    ledger = Ledger(tmp_path / "a.sqlite", clock_skew=dt.timedelta(1))
    for name in ("north", "south"):
        paid(ledger.budget(name, epsilon=1, create=True), 0.1, name="nightly", plan={})
    every = [json.loads(line) for line in ledger.export("jsonl").splitlines()]
    assert [line["kind"] for line in every] == ["open", "charge", "result"] * 2
    for since in (every[3]["at"], dt.datetime.fromisoformat(every[3]["at"]), every[3]["at"][:19]):
        new = [json.loads(line) for line in ledger.export("jsonl", since).splitlines()]
        assert new == every[3:]
        assert {line["budget"] for line in new} == {"south"}
        assert json.loads(ledger.export("json", since))["north"]["entries"] == []
        assert [line.split(",")[0] for line in ledger.export("csv", since).splitlines()] == [
            "budget",
            "south",
        ]
    shifted = (
        dt.datetime.fromisoformat(every[3]["at"])
        .astimezone(dt.timezone(dt.timedelta(hours=5)))
        .isoformat()
    )
    assert len(ledger.export("jsonl", shifted).splitlines()) == 3
    assert ledger.export("jsonl", "2027-01-01") == ""
    read = []
    entry_of = book.entry_of
    monkeypatch.setattr(book, "entry_of", lambda row: read.append(row.number) or entry_of(row))
    ledger.export("csv", every[4]["at"])
    assert read == [2, 3]  # nothing of the older budget, nor what is older in this one
    hour[0] = 2  # another clock: what is written next is older than what is there
    paid(ledger.budget("south"), 0.1)
    assert [
        json.loads(line)["number"] for line in ledger.export("jsonl", every[4]["at"]).splitlines()
    ] == [2, 3]
    assert len(ledger.export("jsonl", "2026-01-01T03:00").splitlines()) == 6
    for wrong in ("yesterday", 2026, dt.date(2026, 1, 1), "0001-01-01T00:00+14:00"):
        with pytest.raises(errors.InvalidArgument, match="since= is a time"):
            ledger.export(since=wrong)


def test_the_clock_may_not_be_far_behind_the_last_entry(place, monkeypatch):
    budget = Ledger(place).budget("visits", epsilon=1)
    paid(budget, 0.1)
    today = account.now()
    monkeypatch.setattr(account, "now", lambda: today - dt.timedelta(minutes=5))
    paid(budget, 0.1)  # clocks of two machines differ a little
    monkeypatch.setattr(account, "now", lambda: today - dt.timedelta(days=1))
    with pytest.raises(errors.LedgerUnavailable, match="clock"):
        paid(budget, 0.1)
    assert budget.spent.epsilon == 0.2
    paid(Ledger(place, clock_skew=dt.timedelta(days=2)).budget("visits"), 0.1)
    monkeypatch.setattr(account, "now", lambda: today + dt.timedelta(days=400))
    paid(budget, 0.1)
    assert Ledger(place).verify() == {"visits": 9}


def test_a_clock_that_was_once_years_ahead_does_not_stop_a_ledger(place, monkeypatch):
    """The message has the line that fits, and after one charge with
    it the ledger goes on without.
    """
    today = account.now()
    monkeypatch.setattr(account, "now", lambda: today + dt.timedelta(days=3650))
    paid(Ledger(place).budget("visits", epsilon=1), 0.1)
    monkeypatch.setattr(account, "now", lambda: today)
    budget = Ledger(place).budget("visits")
    with pytest.raises(errors.LedgerUnavailable, match="clock_skew") as refused:
        paid(budget, 0.1)
    days = int(str(refused.value).partition("timedelta(")[2].partition(")")[0])
    paid(Ledger(place, clock_skew=dt.timedelta(days)).budget("visits"), 0.1)
    paid(budget, 0.1)
    assert Ledger(place).verify() == {"visits": 7}
    monkeypatch.setattr(account, "now", lambda: today - dt.timedelta(days=1))
    with pytest.raises(errors.LedgerUnavailable, match="clock"):
        paid(budget, 0.1)


# Names that look alike

CAFE = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
ALIKE = [
    ("cafe\N{COMBINING ACUTE ACCENT}", CAFE),
    *(
        (name, "visits")
        for name in ("visits ", " visits", "visits\t", "visits\n", "\N{NO-BREAK SPACE}visits")
    ),
    *(
        (f"vis{letter}its", "visits")
        for letter in "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u2066\ufe0f\u034f\u3164\u2800\x07"
    ),
    *(
        (name, "all visits")
        for name in ("all  visits", "all\N{NO-BREAK SPACE}visits", "all\nvisits", "all\u3000visits")
    ),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("other", "name"), ALIKE)
def test_names_that_look_alike_are_one_name_or_refused(tmp_path, other, name):
    """Of a budget, a release, a batch, a series and an allowance, in memory and in a ledger."""
    ledger = Ledger(tmp_path / "study.sqlite")
    kept = ledger.budget(name, epsilon=2)
    with pytest.raises(errors.InvalidArgument) as refused:
        ledger.budget(other, epsilon=2)
    assert repr(name) in str(refused.value)
    assert ledger.budgets() == [name]
    for budget in (kept, Budget(epsilon=2)):
        frame = dp.protect(
            pl.DataFrame({"u": [1, 2], "day": [dt.date(2026, 1, 1)] * 2}), unit="u", budget=budget
        )
        query, day = frame.count_units(), dt.date(2026, 1, 1)
        series = {"every": "1d", "horizon": 9, "epsilon": 0.1, "unit_periods": 1}
        asked = {
            "release": lambda text: query.release(epsilon=0.1, name=text),  # noqa: B023 (called in this turn)
            "batch": lambda text: budget.plan([query], epsilon=0.1).release(name=text),  # noqa: B023
            "series": lambda text: budget.series(text, **series).add(query, period=day),  # noqa: B023
            "allowance": lambda text: budget.allocate(nights=3, epsilon=0.1, name=text),  # noqa: B023
        }
        for what, ask in asked.items():
            ask(f"{what} {name}")
            spent, entries = budget.spent, len(budget.entries())
            with pytest.raises(errors.InvalidArgument, match="looks like"):
                ask(f"{what} {other}")
            assert (budget.spent, len(budget.entries())) == (spent, entries)


def test_a_name_that_an_earlier_version_allowed_is_still_opened(tmp_path):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    paid(budget, 0.1)
    for table, column in (("budgets", "name"), ("entries", "budget"), ("data", "budget")):
        rows_of(path, f"UPDATE dpframe_{table} SET {column} = 'visits '")
    assert Ledger(path).budget("visits ").spent.epsilon == 0.1


# Units


def test_a_budget_of_another_unit_says_how_to_name_the_same_people_alike(tmp_path):
    """A second budget would double ε: the message advises the rename, in the
    columns of both tables, and it works.
    """
    budget = Budget(epsilon=1)
    dp.protect(
        pl.DataFrame({"user_id": [1, 2]}), unit="user_id", budget=budget
    ).count_units().release(epsilon=0.25)
    orders = pl.DataFrame({"customer": [1, 2]})
    with pytest.raises(errors.BudgetMismatch) as refused:
        dp.protect(orders, unit="customer", budget=budget).count_units().release(epsilon=0.25)
    said = str(refused.value)
    assert "table.rename({'customer': 'user_id'})" in said
    assert "one budget for each" not in said
    renamed = orders.rename({"customer": "user_id"})
    dp.protect(renamed, unit="user_id", budget=budget).count_units().release(epsilon=0.25)
    assert budget.spent.epsilon == 0.5
    with pytest.raises(errors.BudgetMismatch, match="neighbors='add-remove'"):
        dp.protect(
            renamed, unit="user_id", budget=budget, neighbors="replace"
        ).count_units().release(epsilon=0.25)
    with pytest.raises(errors.BudgetMismatch, match="the same unit, unit 'user_id'"):
        dp.protect(renamed, unit=dp.Rows(2), budget=budget).count_units().release(epsilon=0.25)


def test_a_new_budget_is_told_with_the_place_of_its_ledger(place, caplog, tmp_path, monkeypatch):
    """Once, by whoever made it: as a warning, which a job that opens its ledger never gives."""
    monkeypatch.chdir(tmp_path)
    where = place if "://" in place else "study.sqlite"
    for _ in range(2):
        Ledger(where).budget("visits", epsilon=1)
        Ledger(where).budget("visits")
    whole = f"ledger '{tmp_path}/study.sqlite'" if where == "study.sqlite" else "schema 'public'"
    (line,) = [record for record in caplog.records if record.name == "dpframe"]
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith("visits: a new budget of ε = 1, in the ledger ")
    assert whole in line.getMessage()
    assert line.getMessage().endswith("which is new too")
    assert (line.dpframe["what"], line.dpframe["limit"]) == ("made", {"epsilon": 1.0, "delta": 0.0})


def test_a_job_makes_no_ledger_and_no_budget(place, tmp_path, monkeypatch, caplog):
    """In another folder, or with another search_path, what only opens is
    refused, and nothing is made there.
    """
    Ledger(place).budget("visits", epsilon=1)
    elsewhere = "study.sqlite"
    if "://" in place:
        with Ledger(place)._store.transaction(write=True) as connection:
            connection.exec_driver_sql("CREATE SCHEMA elsewhere")
        url = sa.make_url(place).update_query_dict({"options": "-csearch_path=elsewhere"})
        elsewhere = url.render_as_string(hide_password=False)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    caplog.clear()
    for budget in (
        lambda ledger: ledger.budget("visits"),
        lambda ledger: ledger.budget("visits", epsilon=1),
    ):
        with pytest.raises(errors.LedgerUnavailable, match="There is no ledger"):
            budget(Ledger(elsewhere, create=False))
    assert list((tmp_path / "other").iterdir()) == []
    assert caplog.records == []
    # what the jobs of old pages did: no longer in silence
    Ledger(elsewhere).budget("visits", epsilon=1)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "which is new too" in caplog.text
    assert (
        "schema 'elsewhere'" if "://" in place else str(tmp_path / "other" / "study.sqlite")
    ) in caplog.text
    with pytest.raises(errors.InvalidPrice, match="There is no budget"):
        Ledger(elsewhere, create=False).budget("vacancies")


def test_a_name_that_is_nearly_that_of_a_budget_is_refused(place):
    """`create=True` makes it all the same, and a name that is there is
    opened whatever others are called.
    """
    ledger = Ledger(place)
    ledger.budget("orders", epsilon=1)
    for slip in ("ordres", "order", "Orders", "orders.", "ordders", "or-ders"):
        with pytest.raises(errors.BudgetMismatch, match="create=True") as refused:
            ledger.budget(slip, epsilon=1)
        assert "'orders'" in str(refused.value)
    assert ledger.budgets() == ["orders"]
    for other in ("visits", "orders 2026", "orders 2027", "a", "b"):
        ledger.budget(other, epsilon=1)
    ledger.budget("ordres", epsilon=1, create=True)
    assert ledger.budget("ordres").limit == ledger.budget("orders").limit


def test_a_second_budget_about_the_same_units_warns_where_a_table_is_protected(place):
    ledger, table = Ledger(place), pl.DataFrame({"id": [1, 2], "house": [1, 1]})
    first, second = ledger.budget("visits", epsilon=1), ledger.budget("deaths", epsilon=1)
    table.dp(unit="id", budget=first).count_units().release(epsilon=0.1)
    for again in ({"unit": "id"}, {"unit": "id", "neighbors": "replace"}):
        with pytest.warns(errors.DpFrameWarning, match="another budget about unit 'id'.*'visits'"):
            table.dp(**again, budget=second)
    table.dp(unit="house", budget=second).count_units().release(epsilon=0.1)
    table.dp(unit="id", budget=first).count_units().release(epsilon=0.1)


def test_tables_that_name_the_same_people_are_paid_from_one_budget(place):
    """It covers a person of all of them; other people, and the column alone, are other units."""
    budget = Ledger(place).budget("b", epsilon=1)
    patients, visits = pl.DataFrame({"pid": [1, 2]}), pl.DataFrame({"patient_id": [1, 1, 2]})
    for _ in range(2):
        patients.dp(unit="pid", people="patients", budget=budget).count_units().release(
            epsilon=0.25
        )
        visits.dp(unit="patient_id", people="patients", budget=budget).count(max_rows=2).release(
            epsilon=0.25
        )
    assert budget.spent.epsilon == 1
    assert {entry.body["subject"] for entry in budget.entries() if entry.kind == "charge"} == {
        "person of 'patients', add-remove"
    }
    for other in ({}, {"people": "doctors"}, {"people": "patients", "neighbors": "replace"}):
        with pytest.raises(
            errors.BudgetMismatch, match=r"where this table is protected|same relation"
        ):
            visits.dp(unit="patient_id", budget=budget, **other).count_units().release(epsilon=0.1)
    for nothing in ("", 3):
        with pytest.raises(errors.InvalidArgument, match="people="):
            visits.dp(unit="patient_id", people=nothing)
    alike = patients.dp(unit="pid", people="patients")
    with pytest.raises(errors.UnsupportedOperation, match="same people="):
        alike.join(patients.dp(unit="pid"), on="pid")
