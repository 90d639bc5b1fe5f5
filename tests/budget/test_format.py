"""A ledger that an earlier version wrote, as SQL (`format-1.sql`): opened, verified and continued by this one."""

import sqlite3
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from dpframe import errors
from dpframe.budget import Ledger, Loss
from dpframe.budget.ledger.tables import FORMAT
from dpframe.budget.parts import PartName

OLD = Path(__file__).parent / "format-1.sql"
WHO = "unit 'id', add-remove"


@pytest.fixture
def old(tmp_path):
    """The ledger as the earlier version left it: limits and charges in whole units of 1e-12 and 1e-18."""
    path = tmp_path / "study.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(OLD.read_text())
    connection.close()
    return path


def told(path, question):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def test_an_old_ledger_is_opened_and_verified(old):
    before = told(old, "SELECT budget, number, at, body, hash FROM dpframe_entries ORDER BY budget, number")
    ledger = Ledger(old)
    assert ledger.verify() == {"parts": 4, "squares": 3, "visits": 6}
    visits = ledger.budget("visits")
    assert visits.spent.exact_epsilon == Fraction("0.683333333334")
    assert visits.spent.exact_delta == Fraction(33333333334, 10**18)
    assert ledger.budget("squares").spent.exact_rho == Fraction("0.142857142858")
    assert ledger.budget("parts").spent.exact_epsilon == Fraction(1, 2)
    assert [c.status for c in visits.history()] == ["released", "pending", "released"]
    assert visits.failures == (0, 0)
    assert told(old, "SELECT format FROM dpframe_ledger") == [(FORMAT,)]
    assert told(old, "SELECT budget, number, at, body, hash FROM dpframe_entries ORDER BY budget, number") == before
    for form in ("json", "csv", "dp_accounting"):
        assert ledger.export(form)


def test_an_old_ledger_goes_on(old):
    """Names are found, charges are added exactly, and old and new entries are one chain."""
    budget = Ledger(old).budget("visits", epsilon=1, delta=1e-6)
    rows = pl.DataFrame({"id": [7, 8, 9, 10]}).dp(unit="id", budget=budget)
    again = rows.count_units().release(epsilon=0.25, name="people")
    assert again.report().items["drawn"] == "2026-11-22T05:40:24.189557+00:00"
    assert budget.spent.exact_epsilon == Fraction("0.683333333334")
    budget.charge(Loss.charged(Fraction(1, 7), Fraction(0)), WHO, "count()")
    assert budget.spent.exact_epsilon == Fraction("0.683333333334") + Fraction(1, 7)
    parts = Ledger(old).budget("parts")
    (partition,) = [entry.body["partition"] for entry in parts._book.entries() if entry.kind == "partition"]
    other = PartName(partition, "'b'")
    parts.charge(Loss.charged(Fraction(1, 4), Fraction(0)), WHO, "count()", part=other)  # as much as the first part
    assert parts.spent.exact_epsilon == Fraction(1, 2)
    parts.charge(Loss.charged(Fraction(1, 3), Fraction(0)), WHO, "count()", part=other)
    assert parts.spent.exact_epsilon == 2 * (Fraction(1, 4) + Fraction(1, 3))
    assert Ledger(old).verify() == {"parts": 6, "squares": 3, "visits": 7}


def test_an_old_limit_is_still_its_own(old, tmp_path):
    """A limit of more than twelve places was rounded down; whoever types it again means the same one."""
    connection = sqlite3.connect(old)
    connection.execute("UPDATE dpframe_budgets SET allowed = replace(allowed, '1000000000000', '1333333333333')")
    connection.commit()
    connection.close()
    assert Ledger(old).budget("visits", epsilon=4 / 3, delta=1e-6 + 333333333333e-18).accountant == "basic"
    with pytest.raises(errors.BudgetMismatch):
        Ledger(old).budget("visits", epsilon=1.3333333333, delta=1e-6)
    budget = Ledger(tmp_path / "new.sqlite").budget("visits", epsilon=4 / 3)
    assert budget.limit.exact_epsilon == Fraction(4, 3)
    with pytest.raises(errors.BudgetMismatch):
        Ledger(tmp_path / "new.sqlite").budget("visits", epsilon=1.333333333333)


def test_a_limit_that_was_read_as_a_decimal_is_still_its_own(tmp_path):
    """Until now 4/3 as a float was 1.3333333333333333: a budget of this limit is opened by it, and is not raised."""
    path = tmp_path / "study.sqlite"
    Ledger(path).budget("visits", epsilon=Fraction("1.3333333333333333"), delta=Fraction("3.3333333333333335e-7"))
    budget = Ledger(path).budget("visits", epsilon=4 / 3, delta=1e-6 / 3)
    assert budget.limit.exact_epsilon == Fraction("1.3333333333333333")
    assert budget.limit.exact_delta == Fraction("3.3333333333333335e-7")
    with pytest.raises(errors.BudgetMismatch):
        Ledger(path).budget("visits", epsilon=1.333333333333, delta=1e-6 / 3)


def test_a_price_under_a_name_is_written_as_it_was(old, tmp_path):
    """By the shortest decimal of a float, so that a name that was charged before is found again."""
    budget = Ledger(tmp_path / "new.sqlite").budget("visits", epsilon=1)
    frame = pl.DataFrame({"id": [7, 8, 9, 10]}).dp(unit="id", budget=budget)
    frame.count_units().release(epsilon=1 / 11, name="people")
    (charge,) = [entry for entry in budget._book.entries() if entry.kind == "charge"]
    assert charge.body["plan"]["price"] == {"epsilon": "9090909090909091/100000000000000000"}
    assert charge.body["loss"]["epsilon"] == "1/11"
    frame.count_units().release(epsilon=1 / 11, name="people")
    assert budget.spent.exact_epsilon == Fraction(1, 11)


def test_two_processes_bring_a_ledger_forward_once(old):
    import threading

    opened = []
    threads = [threading.Thread(target=lambda: opened.append(Ledger(old).verify())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [{"parts": 4, "squares": 3, "visits": 6}] * 6


def test_a_ledger_of_the_format_before_is_brought_forward(old):
    """Format 2 has these tables too, and statements in words."""
    Ledger(old).close()
    connection = sqlite3.connect(old)
    connection.execute("UPDATE dpframe_ledger SET format = 2")
    connection.execute("ALTER TABLE dpframe_ledger DROP COLUMN witness")
    connection.commit()
    connection.close()
    assert Ledger(old).verify() == {"parts": 4, "squares": 3, "visits": 6}
    assert told(old, "SELECT format FROM dpframe_ledger") == [(FORMAT,)]


def test_a_ledger_of_a_later_version_is_refused(old):
    Ledger(old).close()
    connection = sqlite3.connect(old)
    connection.execute("UPDATE dpframe_ledger SET format = ?", (FORMAT + 1,))
    connection.commit()
    connection.close()
    with pytest.raises(errors.LedgerUnavailable, match="later version"):
        Ledger(old)


def test_an_old_ledger_on_a_server_is_brought_forward(postgres):
    """The same tables and rows, without the columns of this format."""
    import sqlalchemy as sa

    Ledger(postgres).budget("visits", epsilon=1)
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE dpframe_budgets DROP COLUMN failures, DROP COLUMN acknowledged"))
        connection.execute(sa.text("ALTER TABLE dpframe_ledger DROP COLUMN witness"))
        connection.execute(sa.text("UPDATE dpframe_ledger SET format = 1"))
    engine.dispose()
    budget = Ledger(postgres).budget("visits", epsilon=1)
    budget.fail(budget.charge(Loss.charged(Fraction(1, 3), Fraction(0)), WHO, "count()"))
    assert budget.failures == (1, 1)
    assert Ledger(postgres).verify() == {"visits": 3}
