"""Ledgers under forks: a process whose threads charge is forked all the time;
forks charge, fork and are killed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dpframe import errors
from dpframe.budget import Budget, Ledger, Loss
from dpframe.budget.ledger import unforked
from inside import book_of

WHO, TENTH = "unit 'id', add-remove", Loss.charged(Fraction(1, 10), Fraction(0))
PROGRAM = Path(__file__).parent / "forking.py"


@pytest.fixture
def elsewhere(tmp_path_factory):
    """A folder that is not the ledger's, for its witness."""
    return tmp_path_factory.mktemp("elsewhere")


def hold(place, folder, forks, spends, limit):
    """Nobody waits forever, nothing that was stored is lost, nothing is spent
    twice, and the limit and caps hold.
    """
    command = [
        sys.executable,
        "-W",
        "ignore",
        PROGRAM,
        place,
        folder,
        *map(str, (forks, spends, limit)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout)
    assert said["failed"] == said["errors"] == [], done.stderr[-4000:]
    lines = [line.split() for line in (folder / "seen").read_text().splitlines()]
    history = {int(number): line for number, line in said["history"].items()}
    prices = {number: Fraction(price) for number, (_, _, price) in history.items()}
    assert len({number for number, _, _ in lines}) == len(lines) > forks, (
        "a charge was granted twice"
    )
    for number, name, price in lines:
        assert history[int(number)][:2] == ["released", name]
        assert prices[int(number)] == Fraction(price)
    assert Fraction(said["spent"]) == sum(prices.values()) <= limit
    for name, spent in said["spenders"].items():
        of_name = sum(prices[number] for number, (_, by, _) in history.items() if by == name)
        assert Fraction(spent) == of_name <= Fraction(limit) / 2
    pending = [line for line in history.values() if line[0] != "released"]
    assert len(pending) <= 3 * said["killed"], "one for each thread of a process that was killed"
    assert said["verified"] == 1 + 2 * len(history) - len(pending)
    return said


def test_forks_of_a_process_whose_threads_charge(tmp_path, elsewhere):
    hold(tmp_path / "a.sqlite", elsewhere, 5, 4, 0.4)


@pytest.mark.long
@pytest.mark.parametrize("limit", [2, 1000])
def test_many_forks_of_a_process_whose_threads_charge(place, elsewhere, limit):
    said = hold(place, elsewhere, 25, 10, limit)  # the server of the tests has 150 connections
    assert said["killed"] == 5


def outcome_of_a_fork(work):
    """The exit code of a child that does some work:
    0, 7 where the ledger refuses it, and 1 for any other error.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(120)
            work()
            code = 0
        except (errors.LedgerError, errors.UnsupportedOperation):
            code = 7
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# of Python 3.12, about forks of processes with threads
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("patience", [60, 0])
@pytest.mark.parametrize("held", ["ledger", "witness"])
def test_a_fork_comes_before_a_transaction_or_after_it(
    tmp_path, elsewhere, monkeypatch, patience, held
):
    """It waits for one of another thread.
    If that takes too long, the fork is told so at once, and charges nothing.
    """
    monkeypatch.setattr(unforked, "PATIENCE", patience)
    ledger = Ledger(tmp_path / "a.sqlite", witness=elsewhere / "witness", timeout=5)
    budget, inside, ended = ledger.budget("visits", epsilon=1), threading.Event(), threading.Event()

    def charge():
        budget.charge(TENTH, WHO, "count()")

    def hold_open():
        begun = book_of(budget).write() if held == "ledger" else ledger._witness._open()
        with begun:
            inside.set()
            ended.wait(0.5 if patience else 30)

    thread = threading.Thread(target=hold_open)
    thread.start()
    assert inside.wait(30)
    assert outcome_of_a_fork(charge) == (0 if patience else 7)
    ended.set()
    thread.join()
    charge()
    assert outcome_of_a_fork(charge) == 0, "a later fork is not told of it"
    assert budget.spent.exact_epsilon == Fraction(3 if patience else 2, 10)
    ledger.verify()


@pytest.mark.parametrize(
    "kept", ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.long)]
)
def test_of_a_process_and_its_fork_one_stores_the_answer_of_a_charge(request, tmp_path, kept):
    """Both go on with one charge, and would draw two noises for it:
    nobody sees what is not stored.
    """
    place = request.getfixturevalue("postgres") if kept == "postgres" else tmp_path / "a.sqlite"
    budget = Budget(epsilon=1) if kept == "memory" else Ledger(place).budget("visits", epsilon=1)
    receipt = budget.charge(TENTH, WHO, "count()")

    def store():
        budget.store(receipt, b"table", {"releases": []})

    if kept == "memory":
        assert outcome_of_a_fork(store) == 7
        store()
    else:
        assert outcome_of_a_fork(store) == 0
        with pytest.raises(errors.LedgerError):
            store()
    assert [(line.status, line.epsilon) for line in budget.history()] == [("released", 0.1)]
