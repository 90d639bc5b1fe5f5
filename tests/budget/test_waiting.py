"""`on_pending="wait"`: what another process is at work on is waited for, and
what was killed is paid again.
"""

import datetime as dt
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import processes
from dpframe.release import paying

ROWS = pl.DataFrame({"user": [1, 1, 2]})
AT_WORK = """
import sys
import dpframe as dp
import polars as pl

def announced(event):
    if event.what == "charged":
        print("charged", flush=True)
        sys.stdin.readline()

dp.on_release(announced)
budget = dp.Ledger(sys.argv[1]).budget("visits")
rows = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=budget)
out = rows.count(max_rows=2).release(epsilon=0.25, name="night", on_pending=sys.argv[2])
print(out.value, flush=True)
"""


@pytest.fixture
def ledger(place, monkeypatch):
    monkeypatch.setattr(processes, "_PAUSE", 0.05)
    ledger = dp.Ledger(place)
    ledger.budget("visits", epsilon=1.0)
    return ledger


@pytest.fixture
def started(ledger):
    """Starts a process that releases, and stops behind its charge until it gets a line."""
    children = []

    def start(on_pending="refuse"):
        command = [sys.executable, "-c", AT_WORK, str(ledger.where), on_pending]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        children.append(subprocess.Popen(command, **pipes))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


def released(ledger, on_pending="wait"):
    rows = ROWS.dp(unit="user", budget=ledger.budget("visits"))
    return rows.count(max_rows=2).release(epsilon=0.25, name="night", on_pending=on_pending)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::dpframe.errors.StoredAnswerWarning")
def test_who_waits_gets_the_answer_of_the_other_process(ledger, started):
    child, answers = started(), []
    assert child.stdout.readline() == "charged\n"
    with pytest.raises(
        errors.ReleasePending, match="That process runs: on_pending='wait' waits"
    ) as refused:
        released(ledger, "refuse")
    assert refused.value.runs
    waiting = threading.Thread(target=lambda: answers.append(released(ledger).value))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    out, _ = child.communicate("go\n")
    waiting.join(60)
    assert answers == [int(out)]
    assert [charge.status for charge in ledger.budget("visits").history()] == ["released"]


def test_what_was_killed_is_paid_again(ledger, started):
    child = started()
    child.stdout.readline()
    child.kill()
    child.wait()
    with pytest.raises(errors.ReleasePending, match="runs no more, so it was killed") as refused:
        released(ledger, "refuse")
    assert refused.value.runs is False
    assert released(ledger).value is not None
    assert [charge.status for charge in ledger.budget("visits").history()] == ["lost", "released"]
    ledger.verify()


@pytest.mark.long
def test_of_two_who_wait_for_one_that_was_killed_one_pays(ledger, started):
    child = started()
    child.stdout.readline()
    both = [started("wait"), started("wait")]
    child.kill()
    child.wait()
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = [
        out.removeprefix("charged\n") for out, _ in (one.communicate(timeout=120) for one in both)
    ]
    assert answers[0] == answers[1]
    assert [charge.status for charge in ledger.budget("visits").history()] == ["lost", "released"]


def test_nobody_waits_for_this_process(ledger):
    zero, said = dp.budget.Loss.none(), ("unit 'user', add-remove", "count()")
    ledger.budget("visits").charge(zero, *said, name="night", plan={})
    with pytest.raises(errors.ReleasePending, match="This process charged it"):
        ledger.budget("visits").charge(zero, *said, name="night", plan={}, wait=True)


@pytest.mark.parametrize("stopped", ["by a person", "by a ledger that cannot be written"])
def test_of_work_that_was_stopped_this_process_knows_that_it_ended(stopped, ledger, monkeypatch):
    """A notebook's kernel and a worker of many jobs stay alive: whoever waits there pays again."""
    budget = ledger.budget("visits")
    with monkeypatch.context() as patch:
        if stopped == "by a person":
            patch.setattr(
                paying.engine, "sealed", lambda answer: (_ for _ in ()).throw(KeyboardInterrupt)
            )
        else:
            unavailable = errors.LedgerUnavailable("It cannot be used.")
            patch.setattr(type(budget), "store", lambda *_: (_ for _ in ()).throw(unavailable))
        with pytest.raises((KeyboardInterrupt, errors.LedgerUnavailable)) as said:
            released(ledger)
    assert isinstance(said.value, KeyboardInterrupt) or "It was charged before that" in str(
        said.value
    )
    with pytest.raises(
        errors.ReleasePending, match=r"Its work was stopped here: on_pending='wait'"
    ) as pending:
        released(ledger, on_pending="refuse")
    assert pending.value.runs is False
    spent = budget.spent.epsilon
    released(ledger, on_pending="wait")
    assert budget.spent.epsilon == 2 * spent


@pytest.mark.long
def test_nobody_waits_for_another_machine(ledger, started, monkeypatch):
    child = started()
    child.stdout.readline()
    monkeypatch.setattr(processes.socket, "gethostname", lambda: "elsewhere")
    with pytest.raises(
        errors.ReleasePending, match=r"running elsewhere.*'.*' --budget visits night --by NAME"
    ) as no:
        released(ledger)
    assert no.value.runs is None


@pytest.mark.long
def test_a_process_that_has_the_number_by_chance_is_none(ledger, started, monkeypatch):
    child = started()
    child.stdout.readline()
    later = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1)
    monkeypatch.setattr(processes, "_began", lambda _: later)
    assert released(ledger).value is not None
    assert [charge.status for charge in ledger.budget("visits").history()] == ["lost", "released"]


@pytest.mark.long
def test_when_a_process_began(started):
    if not Path("/proc/stat").exists():
        pytest.skip("this system does not say when a process began")
    before = dt.datetime.now(dt.UTC)
    child = started()
    child.stdout.readline()
    margin = dt.timedelta(seconds=5)
    assert before - margin <= processes._began(child.pid) <= dt.datetime.now(dt.UTC) + margin
