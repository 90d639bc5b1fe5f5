"""A ledger of an earlier version: that of the format before is brought
forward, an older one is refused.
"""

import sqlite3
import threading
from fractions import Fraction

import polars as pl
import pytest

from dpframe import errors
from dpframe.budget import Ledger, Loss
from dpframe.budget.ledger.schema import EARLIEST, FORMAT
from inside import book_of

WHO = "unit 'id', add-remove"


def as_of(path, changes):
    """A ledger with two budgets and a released table, as an earlier format left it."""
    ledger = Ledger(path)
    frame = pl.DataFrame({"id": [7, 8, 9]}).dp(unit="id", budget=ledger.budget("visits", epsilon=1))
    frame.count_units().release(epsilon=0.25, name="people")
    ledger.budget("squares", rho=0.5).charge(
        Loss.charged_rho(Fraction(1, 7), Fraction(0)), WHO, "count()"
    )
    ledger.close()
    connection = sqlite3.connect(path)
    for change in changes:
        connection.execute(change)
    connection.commit()
    connection.close()
    return path


@pytest.fixture(params=range(EARLIEST, FORMAT))
def old(request, tmp_path, as_of_format):
    return as_of(tmp_path / "study.sqlite", as_of_format(request.param))


def told(path, question):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def test_an_old_ledger_is_opened_verified_and_goes_on(old):
    """Names are found, charges are added exactly, and old and new entries are one chain."""
    before = told(
        old, "SELECT budget, number, at, body, hash FROM dpframe_entries ORDER BY budget, number"
    )
    ledger = Ledger(old)
    assert ledger.verify() == {"squares": 2, "visits": 3}
    assert told(old, "SELECT format FROM dpframe_ledger") == [(FORMAT,)]
    assert (
        told(
            old,
            "SELECT budget, number, at, body, hash FROM dpframe_entries ORDER BY budget, number",
        )
        == before
    )
    budget = ledger.budget("visits", epsilon=1)
    pl.DataFrame({"id": [7, 8, 9]}).dp(unit="id", budget=budget).count_units().release(
        epsilon=0.25, name="people"
    )
    assert budget.spent.exact_epsilon == Fraction(1, 4)
    budget.charge(Loss.charged(Fraction(1, 7), Fraction(0)), WHO, "count()")
    assert Ledger(old).budget("visits").spent.exact_epsilon == Fraction(1, 4) + Fraction(1, 7)
    assert Ledger(old).verify() == {"squares": 2, "visits": 4}


@pytest.mark.parametrize("earlier", range(1, EARLIEST))
def test_a_ledger_that_no_published_version_wrote_is_refused_and_unchanged(
    tmp_path, as_of_format, earlier
):
    path = as_of(tmp_path / "study.sqlite", as_of_format(earlier))
    before = path.read_bytes()
    with pytest.raises(errors.LedgerUnavailable, match="never published"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_limit_that_was_read_as_a_decimal_is_still_its_own(tmp_path):
    """Until now 4/3 as a float was 1.3333333333333333:
    a budget of this limit is opened by it, and is not raised.
    """
    path = tmp_path / "study.sqlite"
    Ledger(path).budget(
        "visits", epsilon=Fraction("1.3333333333333333"), delta=Fraction("3.3333333333333335e-7")
    )
    budget = Ledger(path).budget("visits", epsilon=4 / 3, delta=1e-6 / 3)
    assert budget.limit.exact_epsilon == Fraction("1.3333333333333333")
    assert budget.limit.exact_delta == Fraction("3.3333333333333335e-7")
    with pytest.raises(errors.BudgetMismatch):
        Ledger(path).budget("visits", epsilon=1.333333333333, delta=1e-6 / 3)


def test_a_price_under_a_name_is_written_as_it_was(tmp_path):
    """By the shortest decimal of a float, so that a name that was charged before is found again."""
    budget = Ledger(tmp_path / "new.sqlite").budget("visits", epsilon=1)
    frame = pl.DataFrame({"id": [7, 8, 9, 10]}).dp(unit="id", budget=budget)
    frame.count_units().release(epsilon=1 / 11, name="people")
    (charge,) = [entry for entry in book_of(budget).entries() if entry.kind == "charge"]
    assert charge.body["plan"]["price"] == {"epsilon": "9090909090909091/100000000000000000"}
    assert charge.body["loss"]["epsilon"] == "1/11"
    frame.count_units().release(epsilon=1 / 11, name="people")
    assert budget.spent.exact_epsilon == Fraction(1, 11)


def test_several_threads_bring_a_ledger_forward_once(old):
    opened = []
    threads = [
        threading.Thread(target=lambda: opened.append(Ledger(old).verify())) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [{"squares": 2, "visits": 3}] * 6


def test_a_ledger_of_a_later_version_is_refused(old):
    Ledger(old).close()
    connection = sqlite3.connect(old)
    connection.execute("UPDATE dpframe_ledger SET format = ?", (FORMAT + 1,))
    connection.commit()
    connection.close()
    with pytest.raises(errors.LedgerUnavailable, match="later version"):
        Ledger(old)


@pytest.mark.parametrize("earlier", range(EARLIEST, FORMAT))
def test_an_old_ledger_on_a_server_is_brought_forward(postgres, as_of_format, earlier):
    """The same tables and rows, without the columns of this format."""
    import sqlalchemy as sa

    Ledger(postgres).budget("visits", epsilon=1)
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        for change in as_of_format(earlier):
            connection.execute(sa.text(change))
    engine.dispose()
    budget = Ledger(postgres).budget("visits", epsilon=1)
    budget.fail(budget.charge(Loss.charged(Fraction(1, 3), Fraction(0)), WHO, "count()"))
    assert budget.failures == (1, 1)
    assert Ledger(postgres).verify() == {"visits": 3}
