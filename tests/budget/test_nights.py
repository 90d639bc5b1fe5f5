"""A series in a ledger: killed at random points, on two machines at
once, in threads, and opened again.
"""

import contextlib
import datetime as dt
import json
import random
import shutil
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa

import dpframe as dp
import machines
from dpframe import errors
from dpframe.budget import Ledger
from dpframe.dpframe_check import Check
from dpframe.release.kinds.series import series as module
from nights import label, opened, query_of

SCRIPT = Path(__file__).parents[1] / "nights.py"
MACHINES = SCRIPT.with_name("machines.py")


def blocks(budget):
    """What each night measured, as the ledger has it: the last charge of each."""
    lines = [e for e in budget.entries() if e.kind == "charge" and "within" in e.body]
    return {e.body["within"]["period"]: e.body["within"]["blocks"] for e in lines}


def killed_series(place, folder, nights, kills):
    """Run the job until all nights are there and it was killed so often."""
    command = [sys.executable, str(SCRIPT), place, str(folder), str(nights), str(kills)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3000)
    return json.loads(done.stdout)


def hold(place, folder, nights, kills):
    """The killed series is that of a run that was never killed, and
    whatever was paid again was said.
    """
    said = killed_series(place, folder, nights, kills)
    assert said["killed"] >= kills
    ledger = Ledger(place)
    budget, series = opened(place)
    ledger.verify()
    lines = [line for line in budget.history() if line.status != "open"]
    (opening,) = (line.number for line in budget.history() if line.status == "open")
    assert [line.paid_by for line in lines] == [None if line.epsilon else opening for line in lines]
    unpaid = sum(line.epsilon for line in budget.history() if line.paid_by is None)
    assert budget.spent.epsilon == pytest.approx(unpaid, rel=1e-12), "prices add up"
    released = [line.name for line in lines if line.status == "released"]
    assert sorted(released) == [f"signups {label(night)}" for night in range(nights)], (
        "one answer for each night"
    )
    assert {line.status for line in lines} <= {"released", "lost"}
    # Never killed, elsewhere:
    other = dp.Budget(epsilon=10_000)
    calm = other.series(
        "signups", every="1d", horizon=60, epsilon=2.0, unit_periods=1, start="2026-01-01"
    )
    for night in range(nights):
        calm.add(query_of(other), label(night))
    assert blocks(budget) == blocks(other)
    assert series.table().to_polars().columns == calm.table().to_polars().columns
    assert (
        series.table()
        .to_polars()["count_units_error"]
        .equals(calm.table().to_polars()["count_units_error"])
    )
    # What was paid: the series once, and each night that was measured again, which the log says.
    again = [line for line in lines if line.epsilon > 0]
    lost = [line for line in lines if line.status == "lost"]
    assert len(again) == len(lost)
    assert budget.spent.exact_epsilon == 2 + sum(
        (Fraction(repr(line.epsilon)) for line in again), Fraction(0)
    )
    told = (folder / "said").read_text()
    # one that was killed again never came to say so
    assert told.count("measured again, which costs") <= len(again)
    finished = [line for line in again if line.status == "released"]
    assert told.count("measured again, which costs") >= len(finished) - 1
    totals = np.cumsum([int(label(n)[5:7]) * 31 + int(label(n)[8:10]) for n in range(nights)])
    assert abs(series.total().value - totals[-1]) < 60 * nights**0.5, (
        "the totals are those of the rows"
    )
    return said | {"again": len(again)}


def test_a_job_that_is_killed_has_the_series_of_one_that_was_not(tmp_path):
    hold(str(tmp_path / "study.sqlite"), tmp_path, 3, 4)


@pytest.mark.long
def test_a_job_that_is_killed_at_two_hundred_points_over_sixty_nights(place, tmp_path, capsys):
    said = hold(place, tmp_path, 60, 200)
    with capsys.disabled():
        print(f"\n  {said}")
    assert said["again"] > 10, "no kill came between a charge and its answer"


# Two at once


def test_two_machines_on_one_night_one_wins_and_the_other_is_told(place, monkeypatch):
    budget, series = opened(place)
    series.add(query_of(budget), label(0))
    inside, go, won = threading.Event(), threading.Event(), []
    drawn = module.measured

    def slow(*arguments):
        inside.set()
        assert go.wait(60)
        return drawn(*arguments)

    monkeypatch.setattr(module, "measured", slow)
    first = threading.Thread(
        target=lambda: won.append(series.add(query_of(budget), label(1)).value)
    )
    first.start()
    assert inside.wait(60)
    elsewhere, other = opened(place)
    with pytest.raises(errors.ReleasePending, match=r"running elsewhere.*on_pending='retry'"):
        other.add(query_of(elsewhere), label(1))
    go.set()
    first.join()
    assert other.add(query_of(elsewhere), label(1)).value == won[0]
    assert budget.spent.epsilon == 2
    Ledger(place).verify()


def test_two_machines_on_two_nights_do_not_measure_one_block_twice(place, monkeypatch):
    """Another night comes between looking at the series and paying: it is looked at again."""
    budget, series = opened(place)
    for night in range(3):
        series.add(query_of(budget), label(night))
    elsewhere, other = opened(place)
    turns, charge = [], type(budget).charge

    def overtaken(self, *arguments, **said):
        if not turns:
            turns.append(1)
            with monkeypatch.context() as patch:
                patch.setattr(type(budget), "charge", charge)
                other.add(query_of(elsewhere), label(20))
        return charge(self, *arguments, **said)

    monkeypatch.setattr(type(budget), "charge", overtaken)
    series.add(query_of(budget), label(3))
    made = [tuple(block[:3]) for of in blocks(budget).values() for block in of]
    assert len(made) == len(set(made)), "a block was measured twice"
    assert turns == [1]
    Ledger(place).verify()


def test_threads_add_nights_together(place):
    budget, series = opened(place)
    series.add(query_of(budget), label(0))
    failed = []

    def work(nights):
        mine, own = opened(place)
        try:
            for night in nights:
                own.add(query_of(mine), label(night))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(range(first, 13, 3),)) for first in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert series.table().to_polars().height == 13
    made = [tuple(block[:3]) for of in blocks(budget).values() for block in of]
    assert len(made) == len(set(made))


@pytest.mark.parametrize("enforce", [False, pytest.param(True, marks=pytest.mark.long)])
def test_two_machines_that_open_one_series_hold_every_night_to_the_one_that_paid(place, enforce):
    """Each asks all nights in an order of its own, with a small and a large
    limit: no person is counted twice.
    """
    days = [dt.date(2026, 1, 1 + night) for night in range(6)]
    rows, wrong, started = (
        pl.DataFrame({"id": [*range(20)] * 6, "day": sorted(days * 20)}),
        [],
        threading.Barrier(3),
    )

    def machine(seed):
        rng, budget = random.Random(seed), Ledger(place).budget("job", epsilon=1e7)
        said = {
            "every": "1d",
            "horizon": 6,
            "epsilon": 1e5,
            "unit_periods": 1,
            "on": "day",
            "start": days[0],
        }
        series = budget.series("s", **said, enforce=enforce)
        frame = dp.protect(rows, unit="id", budget=budget)
        started.wait(60)
        for day in rng.sample(days, 6):
            for most in rng.sample([1, 5], 2):
                while True:
                    try:
                        series.add(frame.bound(max_rows=most).count(), day)
                    except errors.ReleasePending:  # the other machine is at it
                        continue
                    except errors.ReleaseMismatch:
                        pass
                    except BaseException as error:
                        wrong.append(error)
                    break

    threads = [threading.Thread(target=machine, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    budget = Ledger(place).budget("job")
    made = [tuple(block[:3]) for of in blocks(budget).values() for block in of]
    assert len(made) == len(set(made)), "a block was measured twice"
    assert budget.spent.epsilon == 1e5
    (paid,) = [entry.body["opens"]["limits"] for entry in budget.entries() if "opens" in entry.body]
    asked = {
        entry.body["within"].get("asked") for entry in budget.entries() if "within" in entry.body
    }
    assert paid in (["bound(max_rows=1)"], ["bound(max_rows=5)"])
    nights = len(blocks(budget))
    assert len(asked) == (nights if enforce else 1), (
        "the question of each night has the filter of that night"
    )
    assert round(budget.series("s", on="day").total().value) == 20 * (1 if enforce else nights)
    Ledger(place).verify()


SAID = {
    "pure": {"epsilon": 2.0, "unit_periods": 1},
    "weighted": {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian", "unit_periods": 3},
    "enforced": {"epsilon": 2.0, "unit_periods": 2, "enforce": True},
}


@pytest.mark.long
@pytest.mark.parametrize("said", SAID)
def test_processes_that_race_and_are_killed_give_each_night_one_answer(
    place, tmp_path, said, capsys
):
    machines.opened(place, **SAID[said])
    command = [
        sys.executable,
        "-W",
        "ignore",
        MACHINES,
        place,
        tmp_path,
        json.dumps(SAID[said]),
        "12",
    ]
    subprocess.run([*map(str, command)], check=True, timeout=3000)
    attempts = machines.attempts(tmp_path)
    kinds = Counter(one["said"] for one in attempts)
    with capsys.disabled():
        print(f"\n  {said}: {dict(kinds)}")
    allowed = {
        "answer",
        "InvalidArgument",
        "ReleaseMismatch",
        "ReleasePending",
        "ReleaseLost",
        "UnsupportedOperation",
    }
    assert kinds.keys() <= allowed, [one for one in attempts if one["said"] not in allowed][:3]
    hold_one_answer_for_each_night(
        place, [one for one in attempts if one["said"] == "answer"], **SAID[said]
    )


def hold_one_answer_for_each_night(place, answers, **said):
    """What was given is what the ledger has, and what was paid is what
    it says; each certificate holds.
    """
    given = defaultdict(set)
    for one in answers:
        # the estimate, which later nights make better: `answer` is what was measured
        one["certificate"].pop("table")
        given[one["night"]].add(json.dumps(one["certificate"], sort_keys=True))
    assert given.keys() == set(range(machines.HORIZON))
    assert all(len(each) == 1 for each in given.values()), "two answers of one night"
    budget, _ = machines.opened(place, **said)
    ledger = Ledger(place)
    ledger.verify()
    written = json.loads(ledger.export("json"))
    entries = budget.entries()
    (paid,) = [entry for entry in entries if "opens" in entry.body]
    lost = {entry.about for entry in entries if entry.kind == "lost"}
    of_night = defaultdict(list)
    for entry in entries:
        if "within" in entry.body:
            of_night[entry.body["within"]["period"]].append(entry)
    again = 0.0
    for night, lines in of_night.items():
        assert {line.number for line in lines[:-1]} <= lost, (
            "a night was measured again beside its answer"
        )
        certificate = json.loads(next(iter(given[night])))
        assert certificate["ledger"]["line"] == lines[-1].number
        found = Check(certificate, written)
        assert found.verdict == ("PROVED" if len(lines) == 1 else "UNKNOWN"), (
            found.refused,
            found.unknown,
        )
        assert len({json.dumps(line.body["within"]["blocks"]) for line in lines}) == 1
    for line in budget.history():
        if line.status != "open":
            again += line.epsilon
            assert line.status in ("released", "lost")
    assert budget.spent.epsilon == pytest.approx(said["epsilon"] + again, rel=1e-12)
    made = [tuple(block[:3]) for of in blocks(budget).values() for block in of]
    assert len(made) == len(set(made)), "a block was measured twice"
    limits = paid.body["opens"]["limits"]
    assert limits in (["bound(max_rows=1)"], ["bound(max_rows=5)"])


@contextlib.contextmanager
def copied(place, folder):
    """A copy of a ledger as it is now, on another machine:
    of the file, or of the whole database.
    """
    if not place.startswith("postgresql"):
        shutil.copy(place, folder / "copy.sqlite")
        yield str(folder / "copy.sqlite")
        return
    with database(place, "copied", sa.engine.make_url(place).database) as copy:
        yield copy


@contextlib.contextmanager
def database(server, name, of="template0"):
    """A new database, as a copy of another one, whose connections are ended for that."""
    address = sa.engine.make_url(server)
    engine = sa.create_engine(
        address.set(database="template1"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        end = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :of")
        connection.execute(end, {"of": of})
        connection.execute(sa.text(f"CREATE DATABASE {name} TEMPLATE {of}"))
    try:
        yield address.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()


@pytest.fixture
def own(place):
    """A place of this test alone: it ends all connections of its database."""
    with (
        database(place, "original")
        if place.startswith("postgresql")
        else contextlib.nullcontext(place) as where
    ):
        yield where


@pytest.mark.long
@pytest.mark.parametrize("first", ["original", "copy"])
def test_a_copy_of_a_ledger_gives_no_second_answer_of_a_night(
    own, tmp_path, tmp_path_factory, first
):
    """With one witness, whichever of the two goes on, the other is
    refused and has spent nothing.
    """
    witness = tmp_path_factory.mktemp("elsewhere") / "witness"

    def machine(where):
        budget = Ledger(where, witness=witness).budget("job", epsilon=10)
        said = {
            "every": "1d",
            "horizon": 60,
            "epsilon": 2.0,
            "unit_periods": 1,
            "start": "2026-01-01",
        }
        return budget, budget.series("signups", **said)

    budget, series = machine(own)
    series.add(query_of(budget), label(0))
    budget, series = None, None
    with copied(own, tmp_path) as copy:
        goes_on, stays = (own, copy) if first == "original" else (copy, own)
        budget, series = machine(goes_on)
        value = series.add(query_of(budget), label(1)).value
        with pytest.raises(errors.LedgerError):
            machine(stays)
        assert series.add(query_of(budget), label(1)).value == value
        assert budget.spent.epsilon == 2
        Ledger(goes_on, witness=witness).verify()
        budget, series = None, None


def test_a_series_is_opened_again_by_its_name(place):
    budget, series = opened(place)
    series.add(query_of(budget), label(0))
    reopened = Ledger(place).budget("job")
    again = reopened.series("signups")
    assert again.total().value == series.total().value
    again.add(query_of(reopened), label(1))
    assert again.table().to_polars().height == 2
    assert "unit_periods=1" in again.explain()
    other = reopened.series("signups", every="1d", horizon=60, epsilon=2.0, unit_periods=2)
    with pytest.raises(errors.ReleaseMismatch, match="unit_periods: 1, 2"):
        other.add(query_of(reopened), label(2))
    with pytest.raises(errors.InvalidArgument, match="no series 'others'"):
        reopened.series("others").add(query_of(reopened), label(2))
    with pytest.raises(errors.InvalidArgument, match="began with 2026-01-01"):
        reopened.series("signups", start="2025-01-01").add(query_of(reopened), label(2))


@pytest.mark.one_in(2)
def test_what_is_stored_of_a_block_is_not_the_sum_of_what_is_stored_of_its_nights(place):
    """Each block has noise of its own, and no raw total is kept to make the next one of."""
    budget = Ledger(place).budget("job", epsilon=1)
    series = budget.series(
        "signups", every="1d", horizon=60, epsilon=0.1, unit_periods=1, start="2026-01-01"
    )
    rows = pl.DataFrame({"id": range(1000)})
    for night in range(30):
        series.add(lambda _: dp.protect(rows, unit="id", budget=budget).count_units(), label(night))
    answers = [module.unpacked_blocks(data) for data in budget.tables(2).values()]
    values = [int(total[0]) for answer in answers for (total,) in answer.values]
    made = [block for of in blocks(budget).values() for block in of]
    sizes = [sum(last - first + 1 for first, last in block[3]) for block in made]
    off = np.array(values) - 1000 * np.array(sizes)
    assert max(sizes) > 5
    assert np.abs(off).max() < 20 * 36, "farther than 36 scales, once in 10^15"
    assert (off == 0).mean() < 0.5
    assert len(set(off.tolist())) > 10
