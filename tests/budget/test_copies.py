"""Backups, moves and copies that are adopted: nothing is lost, spent
twice, or accepted in silence.
"""

import datetime as dt
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from fractions import Fraction

import pytest

import dpframe as dp
from dpframe import errors
from dpframe.__main__ import main
from dpframe.budget import Ledger, Loss
from dpframe.budget.ledger import copies
from dpframe.theory import zcdp_to_epsilon
from put_back import put_over

WHO = "unit 'id', add-remove"
SAID = {"by": "Ada", "why": "the disk broke"}


def cost(epsilon="1/10", delta=0):
    return Loss.charged(Fraction(epsilon), Fraction(delta))


def paid(budget, price=None, data=b"table", **options):
    options |= {"plan": {}} if "name" in options else {}
    receipt = budget.charge(cost() if price is None else price, WHO, "count()", **options)
    budget.store(receipt, data, {"releases": []})


@pytest.fixture
def places(tmp_path, postgres):
    """A place for a ledger and another one, of both kinds."""

    def of(kind, name):
        (tmp_path / name).mkdir(exist_ok=True)
        return postgres if kind == "postgres" else str(tmp_path / name / "a.sqlite")

    return of


def filled(place, **options):
    """A ledger with a budget of each account, an allowance, a
    failure, a pending charge and a cap.
    """
    ledger = Ledger(place, **options)
    budget = ledger.budget("visits", epsilon=5, caps={"day": 4})
    for number in range(4):
        paid(budget, name=f"visits {number}", data=bytes([number]) * 3000)
    night = budget.allocate(nights=5, epsilon=1)
    paid(night, cost("1/100"))
    budget.fail(budget.charge(cost(), WHO, "count()"))
    budget.charge(cost(), WHO, "count()", name="pending", plan={})
    paid(ledger.budget("orders", epsilon=2, delta=1e-6))
    paid(ledger.budget("rows", rho=0.5), Loss.charged_rho(Fraction(1, 100), Fraction(0)))
    return ledger


def content(place):
    """All that a ledger says of its budgets."""
    ledger = Ledger(place)
    return {
        name: (ledger.budget(name).spent, ledger.budget(name).history())
        for name in ledger.budgets()
    }


def stored(place, name):
    """The bytes that are stored under a name, which cost nothing."""
    receipt = Ledger(place).budget("visits").charge(cost(), WHO, "count()", name=name, plan={})
    return receipt.stored.data


# Backups


@pytest.mark.parametrize(
    ("kind", "other"), [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite")]
)
def test_a_backup_that_is_restored_is_the_whole_ledger(places, kind, other):
    place, copy, new = places(kind, "study"), places("sqlite", "monday"), places(other, "new")
    ledger = filled(place)
    before = content(place)
    assert ledger.backup(copy) == ledger.verify()
    with pytest.raises(errors.LedgerUnavailable, match="is a backup"):
        Ledger(copy)
    with pytest.raises(errors.LedgerUnavailable, match="already"):
        ledger.backup(copy)
    if kind == "postgres" or other == "sqlite":
        Ledger.restore(copy, new, lost="none", **SAID)
        for name, (spent, history) in content(new).items():
            assert (spent, history[:-1]) == before[name]
            assert "adopted by Ada: the disk broke" in history[-1].query
            assert (history[-1].status, history[-1].epsilon) == ("lost", 0)
        assert stored(new, "visits 2") == bytes([2]) * 3000
        Ledger(new).verify()


def test_a_copy_says_what_was_lost_or_is_not_adopted(tmp_path):
    ledger = filled(tmp_path / "a.sqlite")
    ledger.backup(tmp_path / "b.sqlite")
    paid(ledger.budget("visits"))
    for lost, kind in (
        (None, errors.LedgerDamaged),
        ("some", errors.InvalidArgument),
        ({"visits": 1}, errors.InvalidArgument),
        ({"visits": (1, 0, 0), "orders": 0, "rows": 0}, errors.InvalidArgument),
        ({"visits": "1", "orders": 0, "rows": 0}, errors.InvalidPrice),
        ({"visits": 1, "orders": 0, "rows": 0, "nobody": 1}, errors.InvalidArgument),
        ({"visits": -1, "orders": 0, "rows": 0}, errors.InvalidPrice),
        *(
            ({"visits": missing, "orders": 0, "rows": 0}, errors.InvalidPrice)
            for missing in (None, "", False)
        ),
        ({"visits": 1, "orders": 0, "rows": None}, errors.InvalidPrice),
    ):
        with pytest.raises(kind):
            Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost=lost, **SAID)
        assert not (tmp_path / "c.sqlite").exists()
    with pytest.raises(errors.InvalidArgument, match="by="):
        Ledger.restore(tmp_path / "b.sqlite", tmp_path / "d.sqlite", lost="none", by="", why="x")
    # set aside, as long as nobody says more
    for path in (tmp_path / "b.sqlite", tmp_path / "d.sqlite"):
        with pytest.raises(errors.LedgerUnavailable, match="is a backup"):
            Ledger(path)
    lost = {"visits": 0.5, "orders": (0.25, 1e-7), "rows": 0.125}
    again = Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost=lost, **SAID)
    assert again.budget("visits").spent.epsilon == pytest.approx(0.6 + 1 + 0.5)
    assert again.budget("rows").spent.rho == pytest.approx(0.01 + 0.125)
    assert again.budget("orders").standing.simple.epsilon == pytest.approx(0.35)
    assert again.budget("orders").standing.simple.delta == pytest.approx(1e-7)
    again.verify()


@pytest.mark.parametrize("lost", ["none", {"visits": 0.1}])
@pytest.mark.parametrize("looked", [False, True])
def test_failures_of_a_copy_go_on_counting(tmp_path, lost, looked):
    """Those that nobody has looked at count after the adoption too;
    what was lost is counted as lost alone.
    """
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("visits", epsilon=5)
    budget.fail(budget.charge(cost(), WHO, "count()"))
    if looked:
        budget.acknowledge_failures("Bo")
    ledger.backup(tmp_path / "copy.sqlite")
    budget.fail(budget.charge(cost(), WHO, "count()"))  # lost with the ledger
    ledger.close()
    (tmp_path / "a.sqlite").unlink()
    again = Ledger.restore(tmp_path / "copy.sqlite", tmp_path / "a.sqlite", lost=lost, **SAID)
    budget, before = again.budget("visits"), 0 if looked else 1
    assert budget.failures == (1, before)
    assert [line.status for line in budget.history()] == ["failed", "lost"]
    for number in range(before, 2):
        assert budget.failures.unacknowledged == number
        budget.fail(budget.charge(cost(), WHO, "count()"))
    with pytest.raises(errors.FailuresUnacknowledged, match="2 releases failed"):
        budget.charge(cost(), WHO, "count()")
    again.verify()
    again.close()
    # which acknowledges none of them
    once_more = Ledger.adopt(tmp_path / "a.sqlite", lost=lost, **SAID)
    with pytest.raises(errors.FailuresUnacknowledged, match="2 releases failed"):
        once_more.budget("visits").charge(cost(), WHO, "count()")
    assert once_more.budget("visits").acknowledge_failures("Ada") == 2
    paid(once_more.budget("visits"))
    assert once_more.budget("visits").failures == (3 if looked else 2, 0)
    once_more.verify()


def test_all_lost_leaves_nothing_to_spend(tmp_path):
    """Neither releases, nor allowances, nor parts, whichever account counts."""
    ledger = filled(tmp_path / "a.sqlite")
    visits = ledger.budget("visits")
    partition, _ = visits.partition({"by": "city"}, 1)
    part = dp.budget.parts.PartName(partition, "Bonn")
    visits.charge(cost("1/2"), WHO, "count()", part=part)
    ledger.backup(tmp_path / "b.sqlite")
    again = Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost="all", **SAID)
    tiny, budget = cost(Fraction(1, 10**9)), again.budget("visits")
    for spend in (
        lambda: budget.charge(tiny, WHO, "count()"),
        lambda: budget.charge(tiny, WHO, "count()", part=part),
        lambda: budget.allocate(nights=5, epsilon=1).charge(tiny, WHO, "count()"),
        lambda: again.budget("orders").charge(tiny, WHO, "count()"),
        lambda: again.budget("orders").charge(cost(0, Fraction(1, 10**12)), WHO, "count()"),
        lambda: again.budget("rows").charge(
            Loss.charged_rho(Fraction(1, 10**9), Fraction(0)), WHO, "count()"
        ),
    ):
        with pytest.raises(errors.BudgetExceeded):
            spend()
    assert budget.charge(cost(), WHO, "count()", name="visits 1", plan={}).stored is not None
    again.verify()
    assert main(["ledger", "show", str(tmp_path / "c.sqlite")]) == 0
    assert main(["ledger", "report", str(tmp_path / "c.sqlite")]) == 0


# The witness


def test_prices_in_rho_are_not_taken_for_an_epsilon(tmp_path, capsys):
    """share= buys releases of a budget in ε and δ in ρ, where that has less noise.
    A ρ = 0.01 is about ε = 0.7.
    """
    place, copy, more = tmp_path / "a.sqlite", tmp_path / "copy.sqlite", Fraction(1, 100)
    for name, limit in (("both", {"delta": 1e-5}), ("pure", {})):
        budget = Ledger(place).budget(name, epsilon=5, **limit)
        paid(budget)
    Ledger(place).backup(tmp_path / "early.sqlite")
    paid(Ledger(place).budget("both"), Loss.charged_rho(more, Fraction(0)))
    Ledger(place).backup(copy)
    for typed in (0.01, (0.01, 0), (0.01, 1e-7)):
        with pytest.raises(errors.InvalidArgument, match="a ρ is no ε"):
            Ledger.restore(copy, tmp_path / "b.sqlite", lost={"both": typed, "pure": 0}, **SAID)
    for typed in ({"both": (0, 0, 0, 0), "pure": 0}, {"both": (0, 0, 0), "pure": (0, 0, 0.01)}):
        with pytest.raises(errors.InvalidArgument, match=r"or \(ε, δ, ρ\)"):
            Ledger.restore(copy, tmp_path / "b.sqlite", lost=typed, **SAID)
    before = Ledger(place).budget("both").spent
    again = Ledger.restore(
        copy, tmp_path / "b.sqlite", lost={"both": (0.5, 1e-7, 0.01), "pure": 0.25}, **SAID
    )
    slack = 1e-5 / 8
    least = 0.5 + zcdp_to_epsilon(more, slack)
    assert again.budget("both").spent.epsilon - before.epsilon == pytest.approx(least)
    assert again.budget("both").spent.delta - before.delta == pytest.approx(1e-7 + slack)
    assert again.budget("pure").spent.epsilon == pytest.approx(0.35)
    again.verify()
    early = Ledger.restore(
        tmp_path / "early.sqlite", tmp_path / "c.sqlite", lost={"both": 0.5, "pure": 0}, **SAID
    )
    assert early.budget("both").spent.epsilon == pytest.approx(0.6)
    why = ("--by", "Ada", "--why", "the disk broke")
    lost = ("--lost", "both=0,0,0.01", "--lost", "pure=0")
    assert main(["ledger", "restore", str(copy), str(tmp_path / "d.sqlite"), *why, *lost]) == 0
    assert Ledger(tmp_path / "d.sqlite").budget(
        "both"
    ).spent.epsilon - before.epsilon == pytest.approx(least - 0.5)


def rho_of(allowance):
    """The most that may be spent of an allowance now, as a price."""
    return Loss.charged_rho(allowance.tonight.exact_rho, Fraction(0))


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("lost", ["logged", "none"])
def test_what_was_lost_of_an_allowance_in_rho_is_not_spent_again(
    tmp_path, monkeypatch, carry, lost
):
    """The logs have prices in ρ, and what is typed for a budget in ε is ε: ρ =
    0.008 is far more than ε = 0.008.
    """
    place, day = tmp_path / "a.sqlite", dt.timedelta(days=1)
    start = dt.datetime.now(dt.UTC) - 5 * day
    nights = {"nights": 90, "epsilon": 1, "delta": 1e-6, "carry": carry, "start": start.date()}
    allowance = Ledger(place).budget("visits", epsilon=2, delta=1e-5).allocate(**nights)
    whole, released = allowance.limit.exact_rho, [rho_of(allowance)]
    Ledger(place).backup(tmp_path / "copy.sqlite")
    paid(allowance, released[0])
    place.unlink()
    typed = {"visits": released[0].rho} if lost == "logged" else lost
    again = Ledger.restore(tmp_path / "copy.sqlite", place, lost=typed, **SAID)
    allowance = again.budget("visits").allocate(**nights)
    assert bool(allowance.tonight.exact_rho) == (lost == "none")
    for night in (1, 84):
        monkeypatch.setattr(
            "dpframe.budget.account.now", lambda night=night: dt.datetime.now(dt.UTC) + night * day
        )
        released.append(rho_of(allowance))
        paid(allowance, released[-1])
    assert (sum(one.exact_rho for one in released) <= whole) == (lost == "logged" or not carry)
    assert allowance.close() == Loss.none()
    again.verify()


@pytest.fixture
def watched(tmp_path):
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
    return tmp_path / "here" / "a.sqlite", tmp_path / "elsewhere" / "a.witness"


def test_a_witness_says_whether_entries_are_missing(watched, tmp_path):
    place, witness = watched
    ledger = filled(place, witness=witness)
    ledger.backup(tmp_path / "b.sqlite")
    shutil.move(place, tmp_path / "broken")
    # nothing is missing
    again = Ledger.restore(tmp_path / "b.sqlite", place, witness=witness, **SAID)
    paid(again.budget("visits"))
    again.close()
    shutil.move(place, tmp_path / "latest")
    with pytest.raises(
        errors.LedgerDamaged, match=r"witness knows \d+ entries of 'visits', and this copy has \d+"
    ):
        Ledger.restore(tmp_path / "b.sqlite", place, witness=witness, **SAID)
    with pytest.raises(errors.InvalidArgument, match="visits"):
        Ledger.restore(tmp_path / "b.sqlite", place, witness=witness, lost={"orders": 1}, **SAID)
    assert not place.exists()
    again = Ledger.restore(
        tmp_path / "b.sqlite", place, witness=witness, lost={"visits": 0.1}, **SAID
    )
    assert again.budget("visits").spent.epsilon == pytest.approx(0.6 + 1 + 0.1)
    paid(again.budget("visits"))
    assert again.verify()["visits"] > 0
    again.close()
    # what was thought lost is there again: it is another branch now
    for other in ("latest", "broken"):
        shutil.copy(tmp_path / other, place)
        with pytest.raises(errors.LedgerDamaged):
            paid(Ledger(place, witness=witness).budget("visits"))


@pytest.mark.parametrize("kind", ["missing", "of another ledger", "made anew"])
def test_a_witness_that_does_not_know_is_no_evidence(watched, tmp_path, kind):
    place, witness = watched
    filled(place, witness=witness).backup(tmp_path / "b.sqlite")
    witness.unlink()
    if kind == "of another ledger":
        filled(tmp_path / "here" / "other.sqlite", witness=witness)
    if kind == "made anew":
        sqlite3.connect(witness).execute("CREATE TABLE seen (x)")
    new = tmp_path / "here" / "new.sqlite"
    with pytest.raises(errors.LedgerError):
        Ledger.restore(tmp_path / "b.sqlite", new, witness=witness, **SAID)
    if kind == "missing":
        again = Ledger.restore(tmp_path / "b.sqlite", new, witness=witness, lost="all", **SAID)
        again.close()
        with pytest.raises(errors.LedgerDamaged, match="has a witness"):
            Ledger(new)


def test_a_budget_that_no_copy_has_is_never_made_anew(watched, tmp_path):
    place, witness = watched
    ledger = Ledger(place, witness=witness)
    paid(ledger.budget("visits", epsilon=1))
    ledger.backup(tmp_path / "b.sqlite")
    paid(ledger.budget("later", epsilon=1))
    ledger.close()
    place.unlink()
    with pytest.raises(errors.LedgerDamaged, match="'later', and this copy has 0"):
        Ledger.restore(tmp_path / "b.sqlite", place, witness=witness, **SAID)
    again = Ledger.restore(tmp_path / "b.sqlite", place, witness=witness, lost="none", **SAID)
    again.verify()
    with pytest.raises(errors.LedgerDamaged):
        paid(again.budget("later", epsilon=1))


@pytest.fixture
def put_back(watched, tmp_path):
    """A ledger whose file was put back as it was before the last charge, and its witness."""
    place, witness = watched
    ledger = filled(place, witness=witness)
    shutil.copy(place, tmp_path / "old")
    paid(ledger.budget("visits"))
    ledger.close()
    shutil.copy(tmp_path / "old", place)
    return place, witness


def test_an_old_file_that_was_put_back_is_adopted_where_it_is(put_back):
    place, witness = put_back
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(Ledger(place, witness=witness).budget("visits"))
    again = Ledger.adopt(place, witness=witness, lost={"visits": 0.1}, **SAID)
    paid(again.budget("visits"))
    again.verify()


# A move


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("sqlite", "postgres"),
        ("postgres", "sqlite"),
        pytest.param("sqlite", "sqlite", marks=pytest.mark.long),
    ],
)
def test_a_moved_ledger_is_charged_in_one_place(places, kind, other, watched):
    place, new = places(kind, "study"), places(other, "new")
    witness = watched[1]
    ledger = filled(place, witness=witness)
    running, before = ledger.budget("visits"), ledger.verify()
    pending = running.charge(cost(), WHO, "count()")
    history = running.history()
    assert Ledger.migrate(place, new, witness=witness) == {**before, "visits": before["visits"] + 1}
    for spend in (
        lambda: paid(running),
        lambda: running.store(pending, b"", {"releases": []}),
        lambda: running.fail(pending),
    ):
        with pytest.raises(errors.LedgerUnavailable, match="moved"):
            spend()
    with pytest.raises(errors.LedgerUnavailable, match="moved"):
        ledger.budget("another", epsilon=1)
    with pytest.raises(errors.LedgerUnavailable, match="moved to"):
        Ledger(place, witness=witness)
    with pytest.raises(errors.LedgerUnavailable, match="already"):
        Ledger.migrate(place, new, witness=witness)
    moved = Ledger(new, witness=witness)
    assert moved.budget("visits").history() == history
    paid(moved.budget("visits"))
    moved.verify()


@pytest.mark.parametrize("stopped_before_the_end", [False, True])
def test_a_ledger_in_the_place_of_one_that_was_just_moved_is_refused(
    tmp_path, watched, stopped_before_the_end
):
    """Nobody has opened the new place, and the witness knows it."""
    place, witness = watched
    new, other = tmp_path / "new" / "a.sqlite", tmp_path / "other.sqlite"
    new.parent.mkdir()
    filled(place, witness=witness)
    Ledger.migrate(place, new, witness=witness)
    if stopped_before_the_end:  # it is called again, and ends
        with closing(sqlite3.connect(new)) as connection, connection:
            connection.execute("UPDATE dpframe_ledger SET format = -format")
        with closing(sqlite3.connect(witness)) as connection, connection:
            connection.execute("UPDATE seen SET place = 'before'")
        Ledger.migrate(place, new, witness=witness)
    filled(other).close()
    held = new.read_bytes()
    new.write_bytes(other.read_bytes())
    with pytest.raises(errors.LedgerDamaged, match="The witness knows"):
        Ledger(new, witness=witness)
    new.unlink()
    with pytest.raises(errors.LedgerDamaged, match="The witness knows"):
        Ledger(new, witness=witness)
    new.write_bytes(held)
    paid(Ledger(new, witness=witness).budget("visits"))


def stopped(monkeypatch, name):
    """The next call of a function of this room is where the process ends."""

    def end(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(copies, name, end)


@pytest.mark.parametrize("other", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "step", ["_copy", "_copy_part", "_check_begun", "_copy_rows", "checked", "LedgerPage"]
)
def test_a_move_that_is_stopped_goes_on(places, monkeypatch, step, other):
    place, new = places("sqlite", "study"), places(other, "new")
    budget = filled(place).budget("visits")
    with monkeypatch.context() as patch:
        stopped(patch, step)
        with pytest.raises(KeyboardInterrupt):
            Ledger.migrate(place, new)
    paid(budget)  # the old one goes on
    with pytest.raises(errors.LedgerError):
        Ledger(new, create=False)
    history = budget.history()
    Ledger.migrate(place, new)
    assert Ledger(new).budget("visits").history() == history
    with pytest.raises(errors.LedgerUnavailable):
        paid(budget)


def test_a_move_that_is_stopped_at_its_last_step_goes_on(tmp_path):
    """The old ledger is set aside, and the new one not yet open:
    nobody can charge, and the same call opens it.
    """
    place, new = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    history = filled(place).budget("visits").history()
    Ledger.migrate(place, new)
    connection = sqlite3.connect(new, isolation_level=None)
    connection.execute("UPDATE dpframe_ledger SET format = -format")
    connection.close()
    with pytest.raises(errors.LedgerUnavailable):
        Ledger.migrate(place, tmp_path / "c.sqlite")
    Ledger.migrate(place, new)
    assert Ledger(new).budget("visits").history() == history


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
@pytest.mark.parametrize("aside", [False, True])
def test_a_ledger_is_not_moved_onto_itself(places, tmp_path, kind, aside):
    """Whatever the place is called, and nobody waits for the lock that the move itself holds."""
    place = places(kind, "study")
    filled(place)
    names = [place]
    if kind == "sqlite":
        (tmp_path / "link").symlink_to(tmp_path / "study")
        names += [tmp_path / "study" / "a.sqlite", tmp_path / "link" / "a.sqlite"]
    else:
        names += [f"{place}&application_name=another"]
    if aside:
        Ledger.migrate(place, places("sqlite", "elsewhere"))
    for name in names:
        with pytest.raises(errors.LedgerUnavailable, match="already"):
            Ledger.migrate(place, name)
    if not aside:
        paid(Ledger(place).budget("visits"))


def test_a_ledger_that_was_moved_is_not_adopted_as_if_nothing_was_spent_since(tmp_path, watched):
    """It goes on in the new place, so both would be spent in full."""
    place, new = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    filled(place)
    Ledger.migrate(place, new)
    some = {"visits": 0.1, "orders": 0.1, "rows": 0.1}
    for call in (
        lambda lost: Ledger.adopt(place, lost=lost, **SAID),
        lambda lost: Ledger.restore(place, tmp_path / "c.sqlite", lost=lost, **SAID),
    ):
        for lost in ("none", dict.fromkeys(some, 0), some | {"rows": 0}):
            with pytest.raises(errors.LedgerDamaged, match=r"was moved to .*b\.sqlite"):
                call(lost)
            with pytest.raises(errors.LedgerUnavailable):
                Ledger(place)
        (tmp_path / "c.sqlite").unlink(missing_ok=True)
    paid(Ledger.adopt(place, lost=some, **SAID).budget("visits"))

    place, witness = watched
    filled(place, witness=witness)
    new = place.with_name("new.sqlite")
    Ledger.migrate(place, new, witness=witness)
    again = Ledger.adopt(
        place, witness=witness, **SAID
    )  # it knows that nothing was spent in the new place, and never will
    paid(again.budget("visits"))
    with pytest.raises(errors.LedgerDamaged):
        paid(Ledger(new, witness=witness).budget("visits"))
    again.verify()


def test_without_a_witness_a_new_budget_may_be_one_that_was_lost(tmp_path):
    ledger = filled(tmp_path / "a.sqlite")
    ledger.backup(tmp_path / "b.sqlite")
    paid(ledger.budget("later", epsilon=1))
    again = Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost="none", **SAID)
    with pytest.raises(
        errors.BudgetMismatch, match="no witness knew whether a budget 'later' was made after it"
    ):
        again.budget("later", epsilon=1)
    assert again.budgets() == ["orders", "rows", "visits"]
    paid(again.budget("visits", epsilon=5))
    paid(again.budget("later", epsilon=1, create=True))
    paid(again.budget("later", epsilon=1))
    Ledger(tmp_path / "d.sqlite").backup(tmp_path / "empty.sqlite")
    with pytest.raises(errors.LedgerUnavailable, match="no budget"):
        Ledger.restore(tmp_path / "empty.sqlite", tmp_path / "e.sqlite", lost="none", **SAID)


def test_what_is_no_beginning_of_a_move_is_left_alone(tmp_path):
    place, new = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    filled(place)
    filled(new)
    (tmp_path / "text").write_text("no ledger")
    for target in (new, tmp_path / "text"):
        with pytest.raises(errors.LedgerUnavailable, match="already"):
            Ledger.migrate(place, target)
    paid(Ledger(place).budget("visits"))
    paid(Ledger(new).budget("visits"))
    assert (tmp_path / "text").read_text() == "no ledger"


def test_an_older_copy_is_not_moved(put_back, tmp_path):
    place, witness = put_back
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        Ledger.migrate(place, tmp_path / "here" / "new.sqlite", witness=witness)


def test_a_copy_that_was_changed_is_not_restored(tmp_path):
    filled(tmp_path / "a.sqlite").backup(tmp_path / "b.sqlite")
    connection = sqlite3.connect(tmp_path / "b.sqlite", isolation_level=None)
    connection.execute(
        "UPDATE dpframe_entries SET body = replace(body, '1/10', '1/99') WHERE number = 2"
    )
    connection.close()
    with pytest.raises(errors.LedgerDamaged, match="does not add up"):
        Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost="none", **SAID)
    assert not (tmp_path / "c.sqlite").exists()


# Faults

FULL = """
import resource, sys
from dpframe import errors
from dpframe.budget import Ledger
# no file may grow beyond this, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
place, copy, folder = sys.argv[1:]
said = {"by": "Ada", "why": "the disk broke"}
for call in (
    lambda: Ledger(place).backup(f"{folder}/b"),
    lambda: Ledger.migrate(place, f"{folder}/m"),
    lambda: Ledger.restore(copy, f"{folder}/r", lost="all", **said),
    lambda: Ledger.adopt(copy, lost="all", **said),
):
    try:
        call()
    except errors.LedgerUnavailable as error:
        print(error)
"""


@pytest.mark.long
def test_a_full_disk_leaves_what_was_there(tmp_path):
    place, copy, folder = tmp_path / "a.sqlite", tmp_path / "b.sqlite", tmp_path / "full"
    folder.mkdir()
    ledger = filled(place)
    ledger.backup(copy)
    said = subprocess.run(
        [sys.executable, "-c", FULL, place, copy, folder],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert len(said.stdout.splitlines()) >= 3, said.stdout
    assert list(folder.iterdir()) == []
    paid(ledger.budget("visits"))
    ledger.verify()


def test_a_backup_that_was_copied_half_way_is_refused_or_whole(tmp_path):
    copy, whole = tmp_path / "b.sqlite", filled(tmp_path / "a.sqlite").backup(tmp_path / "b.sqlite")
    image, outcomes = copy.read_bytes(), []
    for number, cut in enumerate([*range(0, len(image), len(image) // 12), len(image)]):
        for kind, damaged in (
            ("cut", image[:cut]),
            ("zeros", image[:cut] + bytes(len(image) - cut)),
        ):
            half, new = tmp_path / f"half{kind}{number}", tmp_path / f"new{kind}{number}"
            half.write_bytes(damaged)
            try:
                again = Ledger.restore(half, new, lost="none", **SAID)
            except errors.LedgerError:
                outcomes.append(False)
                continue
            assert {name: entries - 2 for name, entries in again.verify().items()} == whole
            outcomes.append(True)
    assert outcomes[-2:] == [True, True]
    assert outcomes.count(False) > 20


def test_a_clock_that_was_set_back_is_noticed(tmp_path, monkeypatch):
    filled(tmp_path / "a.sqlite").backup(tmp_path / "b.sqlite")
    right = dp.budget.account.now
    monkeypatch.setattr(dp.budget.account, "now", lambda: right() - dt.timedelta(365))
    with pytest.raises(errors.LedgerUnavailable, match="clock"):
        Ledger.restore(tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost="none", **SAID)
    with pytest.raises(errors.LedgerUnavailable, match="is a backup"):
        Ledger(tmp_path / "c.sqlite")
    monkeypatch.undo()
    Ledger.adopt(tmp_path / "c.sqlite", lost="none", **SAID).verify()


# While others charge

CHARGING = """
import sys
import time
from fractions import Fraction
from dpframe import errors
from dpframe.budget import Ledger, Loss
ledger = Ledger(sys.argv[1])
budget = ledger.budget("busy", epsilon=10**6)
with open(sys.argv[2], "a") as seen:
    while True:
        try:
            loss = Loss.charged(Fraction(1, 1000), Fraction(0))
            receipt = budget.charge(loss, "unit 'id', add-remove", "count()")
            budget.store(receipt, bytes(500), {"releases": []})
        except errors.LedgerUnavailable as error:
            assert "moved" in str(error), error
            break
        seen.write("x"); seen.flush()
        # without a pause SQLite hands its lock to some processes alone on a busy machine
        time.sleep(0.02)
"""


def charging(place, seen, many):
    """Processes that charge until their ledger is moved, once each of them has begun."""
    Ledger(place).budget("busy", epsilon=10**6)
    jobs = [
        subprocess.Popen([sys.executable, "-c", CHARGING, place, f"{seen}{i}"]) for i in range(many)
    ]
    while not all(
        os.path.exists(f"{seen}{i}") and os.path.getsize(f"{seen}{i}") > 2 for i in range(many)
    ):
        assert all(job.poll() is None for job in jobs)
        time.sleep(0.05)
    return jobs


def test_nothing_is_lost_by_a_move_while_threads_charge(tmp_path):
    place, new = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    filled(place)
    ends, seen, stop = [], [], threading.Event()

    def charge():
        try:
            # a thread that begins late finds that the ledger was moved
            budget = Ledger(place).budget("visits")
            # without a pause SQLite hands its lock to these two alone on a busy machine
            while not stop.wait(0.02):
                paid(budget, cost("1/10000"))
                seen.append(1)
        except Exception as end:
            ends.append(end)

    threads = [threading.Thread(target=charge) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        while len(seen) < 5 and not ends:
            time.sleep(0.01)
        Ledger.migrate(place, new)
        while len(ends) < 2 and any(thread.is_alive() for thread in threads):
            time.sleep(0.01)
    finally:
        stop.set()
    for thread in threads:
        thread.join()
    assert ["moved" in str(end) for end in ends] == [True, True], ends
    moved = Ledger(new)
    released = [
        line
        for line in moved.budget("visits").history()
        if line.status == "released" and not line.name
    ]
    assert len(released) == len(seen) + 1  # and that of the allowance
    moved.verify()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "other"), [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite")]
)
def test_nothing_is_lost_by_a_move_while_processes_charge(places, tmp_path, kind, other):
    place, new, seen = places(kind, "study"), places(other, "new"), tmp_path / "seen"
    jobs = charging(place, seen, 2)
    Ledger.migrate(place, new)
    assert [job.wait(120) for job in jobs] == [0, 0]
    released = sum(line.status == "released" for line in Ledger(new).budget("busy").history())
    assert released == sum(os.path.getsize(f"{seen}{i}") for i in range(2))
    Ledger(new).verify()


def hold_backups_of_kills(spenders, tmp_path, place, kills):
    """A backup that was taken while a process charged holds all that
    was seen before, and restores.
    """
    said = spenders("backups", place, tmp_path / "seen", kills)
    assert said["integrity"] == ["ok"]
    copies = list(tmp_path.glob("*.backup"))
    for copy in copies:
        connection = sqlite3.connect(copy)
        (results,) = connection.execute(
            "SELECT count(*) FROM dpframe_entries WHERE kind = 'result'"
        ).fetchone()
        connection.close()
        assert results >= int(copy.name.split(".")[1])
    for number, copy in enumerate(copies[:: max(len(copies) // 10, 1)]):
        seen = int(copy.name.split(".")[1])
        again = Ledger.restore(copy, tmp_path / f"new{number}.sqlite", lost="all", **SAID)
        for name in again.budgets():
            assert sum(line.status == "released" for line in again.budget(name).history()) >= seen
        again.verify()
        again.close()
    Ledger(place).verify()
    return len(copies)


def test_backups_beside_kills_hold_what_was_seen_before(spenders, tmp_path):
    assert hold_backups_of_kills(spenders, tmp_path, tmp_path / "a.sqlite", 2) >= 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_backups_beside_200_kills_hold_what_was_seen_before(spenders, places, tmp_path, kind):
    assert hold_backups_of_kills(spenders, tmp_path, places(kind, "study"), 200) >= 40


# The command line


def said(capsys, *words):
    """What a command prints as JSON, and its exit code."""
    code = main(["ledger", *map(str, words), "--json"])
    return json.loads(capsys.readouterr().out), code


def test_copies_from_the_command_line(tmp_path, capsys):
    place, copy, new = (tmp_path / name for name in ("a.sqlite", "b.sqlite", "c.sqlite"))
    filled(place)
    entries, code = said(capsys, "backup", place, copy)
    assert (entries["entries"]["rows"], code) == (3, 0)
    assert said(capsys, "check", copy) == (entries, 0)
    why = ("--by", "Ada", "--why", "the disk broke")
    for lost in (
        (),
        ("--lost", "all", "--lost", "none"),
        ("--lost", "visits=1", "--lost", "visits=1"),
    ):
        answer, code = said(capsys, "restore", copy, new, *why, *lost)
        assert (code, "message" in answer) == (1, True)
    lost = ("--lost", "visits=0.5", "--lost", "orders=0.1,1e-7", "--lost", "rows=0")
    answer, code = said(capsys, "restore", copy, new, *why, *lost)
    assert (answer["budgets"]["visits"]["spent"]["epsilon"], code) == (pytest.approx(2.1), 0)
    (_, code), moved = said(capsys, "migrate", new, tmp_path / "d.sqlite"), tmp_path / "d.sqlite"
    assert code == 0
    assert said(capsys, "show", new)[0]["error"] == "LedgerUnavailable"
    assert said(capsys, "verify", moved)[1] == 0
    # both go on: this is what `adopt` is asked for
    assert said(capsys, "adopt", new, *why, "--lost", "all")[1] == 0


# Copies that are put back while the ledger is open


CHARGED_ELSEWHERE = """
import sys
from fractions import Fraction
from dpframe.budget import Ledger, Loss
budget = Ledger(sys.argv[1]).budget("visits")
for number in range(int(sys.argv[2])):
    loss = Loss.charged(Fraction(1, 10), Fraction(0))
    charged = budget.charge(loss, "unit 'id', add-remove", "count()")
    budget.store(charged, b"table", {"releases": []})
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_copy_that_was_put_over_an_open_ledger_is_refused(tmp_path, others, reopened):
    """Also where others charged it since, so that SQLite's counter of changes is
    the one that this process knows.

    Its charges would be written over those of the others otherwise. What this process has seen is
    not forgotten when a budget is opened once more.
    """
    path, copy = tmp_path / "a.sqlite", tmp_path / "copy"
    ledger = Ledger(path)
    budget = ledger.budget("visits", epsilon=5)
    paid(budget)
    copy.write_bytes(path.read_bytes())
    paid(budget)
    put_over(copy, path)
    if others:
        subprocess.run(
            [sys.executable, "-c", CHARGED_ELSEWHERE, str(path), str(others)], check=True
        )
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(ledger.budget("visits") if reopened else budget)
    assert Ledger(path).verify() == {"visits": 3 + 2 * others}
    others_of_it = (
        ledger.verify,
        lambda: ledger.backup(tmp_path / "backup"),
        lambda: ledger.budget("new", epsilon=1),
        lambda: ledger.change_caps("visits", {"day": 1}, by="Ada"),
    )
    for ask in others_of_it:
        with pytest.raises(errors.LedgerDamaged, match="older copy"):
            ask()
    assert not (tmp_path / "backup").exists()


def test_a_copy_from_before_a_move_is_refused_by_who_saw_the_move(tmp_path):
    path = tmp_path / "a.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("visits", epsilon=5)
    paid(budget)
    (tmp_path / "copy").write_bytes(path.read_bytes())
    Ledger.migrate(path, tmp_path / "b.sqlite")
    with pytest.raises(errors.LedgerUnavailable, match="moved"):
        paid(budget)
    put_over(tmp_path / "copy", path)
    for ask in (lambda: paid(budget), lambda: paid(ledger.budget("visits"))):
        with pytest.raises(errors.LedgerDamaged, match="older copy"):
            ask()


def test_rows_that_were_put_back_in_an_open_database_are_refused(postgres):
    """As after a restore of an older dump, to which the pool of
    connections connects again by itself.
    """
    ledger, tables = Ledger(postgres), ("dpframe_budgets", "dpframe_entries", "dpframe_data")
    budget = ledger.budget("visits", epsilon=5)
    paid(budget)
    with ledger._store.engine.begin() as connection:
        for table in tables:
            connection.exec_driver_sql(f"CREATE TABLE old_{table} AS SELECT * FROM {table}")
    paid(budget)
    with ledger._store.engine.begin() as connection:
        for table in reversed(tables):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        for table in tables:
            connection.exec_driver_sql(f"INSERT INTO {table} SELECT * FROM old_{table}")
    for once in (lambda: paid(budget), lambda: paid(ledger.budget("visits")), ledger.verify):
        with pytest.raises(errors.LedgerDamaged, match="older copy"):
            once()
    paid(Ledger(postgres).budget("visits"))  # it never saw the later entries, and has no witness
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(budget)
