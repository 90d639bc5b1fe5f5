"""What happens to a ledger in a bad world: killed processes, full disks, files
that are gone, replaced or old.
"""

import datetime as dt
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, Loss, account
from dpframe.budget.ledger.sqlite_file import REMOTE, filesystem_of
from postgres_server import as_nobody, folder_for, restarting_server, server_programs, why_not

MILLI = Loss.charged(Fraction(1, 1000), Fraction(0))
WHO = "unit 'id', add-remove"


def paid(budget, **options):
    receipt = budget.charge(MILLI, WHO, "count()", **options)
    budget.store(receipt, b"table", {"releases": []})
    return receipt


def copied(path, into):
    """Everything of a ledger, as a backup takes it while nobody writes."""
    into.mkdir(exist_ok=True)
    for part in path.parent.glob(path.name + "*"):
        shutil.copy(part, into / part.name)


def put_back(path, backup):
    for part in path.parent.glob(path.name + "*"):
        part.unlink()
    for part in backup.iterdir():
        shutil.copy(part, path.parent / part.name)


# Killed


def _hold_kills(spenders, tmp_path, kills):
    """After each kill the file is sound, and whatever anyone saw was charged and stored before."""
    path, seen = tmp_path / "study.sqlite", tmp_path / "seen"
    said = spenders("kills", path, seen, kills)
    assert said["integrity"] == ["ok"]
    assert said["kills"] >= kills
    ledger = Ledger(path)
    assert ledger.verify()["killed"] > kills
    history = {charge.number: charge.status for charge in ledger.budget("killed").history()}
    numbers = [int(line) for line in seen.read_text().split()]
    assert len(numbers) > kills
    assert all(history[number] == "released" for number in numbers)
    assert len(set(numbers)) == len(numbers)
    assert sum(status == "pending" for status in history.values()) <= said["kills"]
    paid(ledger.budget("killed"))


def test_a_killed_process_loses_budget_at_most(spenders, tmp_path):
    _hold_kills(spenders, tmp_path, 10)


@pytest.mark.long
def test_killed_processes_at_length(spenders, tmp_path):
    _hold_kills(spenders, tmp_path, 300)


def test_a_release_that_fails_after_it_was_paid_is_recorded(tmp_path):
    def broken(batch):
        raise RuntimeError("cell 4711")

    rows = (
        pl.DataFrame({"id": [1, 2, 3]})
        .lazy()
        .map_batches(broken, schema={"id": pl.Int64}, validate_output_schema=False)
    )
    budget = Ledger(tmp_path / "study.sqlite").budget("visits", epsilon=1)
    query = rows.dp(unit="id", budget=budget).count_units()
    with pytest.raises(errors.EngineError):
        query.release(epsilon=0.5, name="daily")
    assert [(c.name, c.status) for c in budget.history()] == [("daily", "failed")]
    assert budget.failures == (1, 1)
    with pytest.raises(errors.ReleasePending, match="failed after that"):
        query.release(epsilon=0.5, name="daily")
    assert budget.remaining.epsilon == 0.5


# Full, read-only


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_a_typed_refusal(tmp_path):
    """The file may not grow: the kernel refuses the write, as on a full disk."""
    code = f"""
import resource, signal
from fractions import Fraction
import dpframe as dp
from dpframe.budget import Ledger, Loss, account
budget = Ledger({str(tmp_path / "study.sqlite")!r}).budget("visits", epsilon=1000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
granted = 0
try:
    for _ in range(500):
        loss = Loss.charged(Fraction(1, 1000), Fraction(0))
        budget.store(budget.charge(loss, {WHO!r}, "count()"), b"x" * 500, {{}})
        granted += 1
except dp.errors.LedgerUnavailable as error:
    print(granted, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Nothing is released" in done.stdout, done.stderr
    granted = int(done.stdout.split()[0])
    assert granted > 0
    ledger = Ledger(tmp_path / "study.sqlite")
    assert ledger.verify()["visits"] >= granted * 2 + 1
    paid(ledger.budget("visits"))  # and goes on when there is room again


@pytest.mark.skipif(sys.platform == "win32", reason="users and permissions are POSIX")
def test_a_read_only_ledger_releases_nothing(tmp_path):
    folder = folder_for(as_nobody())
    try:
        path = folder / "study.sqlite"
        ledger = Ledger(path)
        ledger.budget("visits", epsilon=1)
        ledger.close()
        path.chmod(0o444)
        folder.chmod(0o555)
        code = f"""
import os
import dpframe as dp
other = dp.Ledger({str(tmp_path / "other.sqlite")!r})  # imports what nobody may not be able to read
other.budget("visits", epsilon=1).charge(dp.budget.Loss(1, 0), "u", "q")
if os.getuid() == 0:  # whom permissions do not bind
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    dp.Ledger({str(path)!r}).budget("visits", epsilon=1).charge(dp.budget.Loss(0, 0), "u", "q")
except dp.errors.LedgerUnavailable as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "cannot be used" in done.stdout, done.stderr
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="users and permissions are POSIX")
def test_a_folder_that_becomes_read_only_loses_nothing(tmp_path):
    """Between two charges, and between a charge and its answer:
    both are refused, and go on when it can be written.
    """
    folder = folder_for(as_nobody())
    try:
        code = f"""
import os
from fractions import Fraction
import dpframe as dp
from dpframe.budget import Ledger, Loss, account
price = Loss.charged(Fraction(1, 4), Fraction(0))
ledger = Ledger({str(folder / "study.sqlite")!r})
budget = ledger.budget("visits", epsilon=1)
budget.store(budget.charge(price, {WHO!r}, "q"), b"", {{"releases": []}})
running = budget.charge(price, {WHO!r}, "q", name="running", plan={{}})
os.chmod({str(folder)!r}, 0o555)
if os.getuid() == 0:  # whom permissions do not bind
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
stored = {{"releases": []}}
calls = (lambda: budget.charge(price, {WHO!r}, "q"), lambda: budget.store(running, b"", stored))
for call in calls:
    try:
        call()
    except dp.errors.LedgerUnavailable as error:
        print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.count("Nothing is released") == 2, done.stdout + done.stderr
        folder.chmod(0o755)
        ledger = Ledger(folder / "study.sqlite")
        ledger.verify()
        budget = ledger.budget("visits")
        assert [(line.status, line.name) for line in budget.history()] == [
            ("released", None),
            ("pending", "running"),
        ]
        assert budget.spent.epsilon == 0.5
        paid(budget)
        ledger.close()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def test_a_clock_that_is_set_back_by_a_year_begins_nothing_anew(
    request, tmp_path, monkeypatch, store
):
    """Neither a day of a cap nor a night of an allowance; what runs is stored;
    it goes on with the right clock.
    """
    place = tmp_path / "a.sqlite" if store == "sqlite" else request.getfixturevalue("postgres")
    ledger = Ledger(place)
    budget = ledger.budget("visits", epsilon=10, caps={"day": 0.5})
    nightly = budget.allocate(nights=10, epsilon=1)
    price = Loss.charged(Fraction(1, 10), Fraction(0))
    running = nightly.charge(price, WHO, "count()")
    right = account.now
    monkeypatch.setattr(account, "now", lambda: right() - dt.timedelta(days=365))
    before = budget.entries()
    for call in (
        lambda: budget.charge(price, WHO, "count()"),
        lambda: nightly.charge(price, WHO, "count()"),
        lambda: budget.allocate(nights=10, epsilon=1, name="another"),
        lambda: Ledger(place).budget("visits").charge(price, WHO, "count()"),
    ):
        with pytest.raises(
            (errors.LedgerUnavailable, errors.BudgetExceeded), match=r"clock|first night begins"
        ):
            call()
    with pytest.raises(
        (errors.LedgerUnavailable, errors.BudgetExceeded), match=r"clock|begins|begun"
    ):
        nightly.close()
    assert budget.entries() == before
    nightly.store(running, b"", {"releases": []})
    forward = Ledger(place, clock_skew=dt.timedelta(days=400)).budget("visits")
    forward.charge(Loss.charged(Fraction(2, 5), Fraction(0)), WHO, "count()")
    with pytest.raises(errors.CapExceeded):  # the day is the later one, which was seen
        forward.charge(price, WHO, "count()")
    monkeypatch.undo()
    with pytest.raises(errors.CapExceeded):
        budget.charge(price, WHO, "count()")
    with pytest.raises(errors.BudgetExceeded, match="this night"):
        nightly.charge(price, WHO, "count()")
    ledger.verify()


@pytest.mark.long
def test_a_server_that_crashes_while_it_is_charged_loses_nothing(tmp_path):
    """Every charge that was confirmed is there; of the others each is refused,
    and at most itself was charged.
    """
    if why_not() is not None:
        pytest.skip(why_not())
    with restarting_server(server_programs()) as (url, restart):
        ledger = Ledger(url)
        budget = ledger.budget("visits", epsilon=1000)
        pending = budget.charge(
            Loss.charged(Fraction(1), Fraction(0)), WHO, "count()", name="running", plan={}
        )
        granted, refused, stop = [], [], threading.Event()

        def spend():
            while not stop.is_set():
                try:
                    receipt = budget.charge(
                        Loss.charged(Fraction(1, 1000), Fraction(0)), WHO, "count()"
                    )
                    granted.append(receipt.number)
                except Exception as error:
                    refused.append(error)
                    time.sleep(0.05)

        threads = [threading.Thread(target=spend) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = len(granted)
            while len(granted) < before + 5:
                time.sleep(0.01)
            restart()
        before = len(granted)
        while len(granted) < before + 5:
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        assert refused
        assert {type(error) for error in refused} == {errors.LedgerUnavailable}
        charged = [line.number for line in budget.history() if line.name is None]
        assert set(granted) <= set(charged)
        assert len(granted) == len(set(granted))
        assert len(charged) - len(granted) <= len(refused)
        assert budget.spent.exact_epsilon == 1 + Fraction(len(charged), 1000)
        budget.store(pending, b"the answer", {"releases": []})
        ledger.verify()
        ledger.close()


def test_what_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "notes.sqlite").write_text(
        "this is a text, and no database at all, whatever its name says"
    )
    with pytest.raises(errors.LedgerUnavailable):
        Ledger(tmp_path / "notes.sqlite")
    with pytest.raises(errors.LedgerUnavailable, match="Make the folder first"):
        Ledger(tmp_path / "no" / "such" / "folder.sqlite")
    with pytest.raises(errors.LedgerUnavailable, match="There is no ledger"):
        Ledger(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_lock_that_is_held_too_long_is_a_typed_refusal(tmp_path):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path, timeout=0.1).budget("visits", epsilon=1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.LedgerUnavailable, match="locked"):
        paid(budget)
    holder.execute("ROLLBACK")
    holder.close()
    paid(budget)


def test_a_server_that_is_gone_is_a_typed_refusal():
    pytest.importorskip("psycopg")
    with pytest.raises(errors.LedgerUnavailable, match="cannot be used") as caught:
        Ledger("postgresql+psycopg://nobody:secret@/none?host=/nowhere")
    assert "secret" not in str(caught.value)


# Gone, replaced, old


def test_a_file_that_is_gone_releases_nothing(tmp_path):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    paid(budget)
    path.rename(tmp_path / "elsewhere.sqlite")
    frame = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=budget)
    with pytest.raises(errors.LedgerUnavailable, match="gone"):
        frame.count_units().release(epsilon=0.1)
    (tmp_path / "elsewhere.sqlite").rename(path)
    frame.count_units().release(epsilon=0.1)


def test_a_file_that_was_replaced_releases_nothing(tmp_path):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    paid(budget)
    other = Ledger(
        tmp_path / "other" if (tmp_path / "other").mkdir() else tmp_path / "other" / "x.sqlite"
    )
    other.budget("visits", epsilon=1)
    other.close()
    os.replace(tmp_path / "other" / "x.sqlite", path)
    with pytest.raises(errors.LedgerDamaged, match="replaced"):
        paid(budget)


def test_an_older_copy_in_place_is_noticed_by_who_saw_the_newer(tmp_path):
    path = tmp_path / "study.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("visits", epsilon=1)
    paid(budget)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    paid(budget)
    # What an older copy says, written into the very file.
    connection.execute("DELETE FROM dpframe_entries WHERE number > 3")
    state = connection.execute("SELECT hash FROM dpframe_entries WHERE number = 3").fetchone()[0]
    connection.execute("UPDATE dpframe_budgets SET number = 3, head = ?", (state,))
    connection.close()
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(budget)


@pytest.fixture
def witnessed(tmp_path):
    """A ledger with a witness elsewhere, and a way to open it."""
    (tmp_path / "ledger").mkdir()
    (tmp_path / "witness").mkdir()
    path, witness = tmp_path / "ledger" / "study.sqlite", tmp_path / "witness" / "seen.sqlite"
    return path, lambda **options: Ledger(path, witness=witness, **options)


def test_an_older_copy_is_noticed_by_the_witness(witnessed, tmp_path):
    path, opened = witnessed
    ledger = opened()
    paid(ledger.budget("visits", epsilon=1))
    ledger.close()
    copied(path, tmp_path / "backup")
    again = opened()
    paid(again.budget("visits"))
    again.close()
    put_back(path, tmp_path / "backup")
    old = opened()
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(old.budget("visits"))
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        old.verify()
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=old.budget("visits"))


def test_an_older_copy_that_went_on_is_noticed_too(witnessed, tmp_path):
    """The copy has as many entries as the witness saw, but others."""
    path, opened = witnessed
    ledger = opened()
    paid(ledger.budget("visits", epsilon=1))
    ledger.close()
    copied(path, tmp_path / "backup")
    again = opened()
    paid(again.budget("visits"))
    again.close()
    put_back(path, tmp_path / "backup")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE dpframe_ledger SET witnessed = 0")
    connection.commit()
    connection.close()
    alone = Ledger(path)
    for _ in range(5):
        paid(alone.budget("visits"))
    alone.close()
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(opened().budget("visits"))


def test_a_ledger_made_anew_is_noticed_by_the_witness(witnessed):
    path, opened = witnessed
    ledger = opened()
    paid(ledger.budget("visits", epsilon=1))
    ledger.close()
    for part in path.parent.glob("study*"):
        part.unlink()
    with pytest.raises(errors.LedgerDamaged, match="no new ledger is made"):
        opened()
    Ledger(path).close()
    with pytest.raises(errors.LedgerDamaged, match="another ledger"):
        opened()


def test_a_witness_cannot_be_left_out_or_lost(witnessed, tmp_path):
    path, opened = witnessed
    paid(opened().budget("visits", epsilon=1))
    with pytest.raises(errors.LedgerDamaged, match="witness="):
        Ledger(path)
    with pytest.raises(errors.InvalidArgument, match="folder or below it"):
        Ledger(tmp_path / "ledger" / "other.sqlite", witness=tmp_path / "ledger" / "witness")
    ledger = opened()
    budget = ledger.budget("visits")
    shutil.rmtree(tmp_path / "witness")
    with pytest.raises(errors.LedgerUnavailable, match="witness"):
        paid(budget)


def test_a_witness_that_is_missing_is_not_made_anew(witnessed, tmp_path):
    """An older copy put back and the witness deleted:
    nothing is released, and the message says how to go on.
    """
    path, opened = witnessed
    budget = opened().budget("visits", epsilon=1)
    for _ in range(3):
        paid(budget)
        if not (tmp_path / "backup").exists():
            copied(path, tmp_path / "backup")
    put_back(path, tmp_path / "backup")
    witness = tmp_path / "witness" / "seen.sqlite"
    kept = witness.read_bytes()
    witness.unlink()
    for _ in range(2):
        with pytest.raises(errors.LedgerDamaged, match="new_witness=True"):
            opened()
    assert not witness.exists()
    witness.write_bytes(b"")
    with pytest.raises(errors.LedgerDamaged, match="new_witness=True"):
        opened()
    witness.write_bytes(kept)
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(opened().budget("visits"))
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(opened(new_witness=True).budget("visits"))


def test_the_witness_of_another_ledger_is_not_taken(witnessed, tmp_path):
    path, opened = witnessed
    paid(opened().budget("visits", epsilon=1))
    other = tmp_path / "witness" / "other.sqlite"
    (tmp_path / "other").mkdir()
    paid(Ledger(tmp_path / "other" / "b.sqlite", witness=other).budget("visits", epsilon=1))
    with pytest.raises(errors.LedgerDamaged, match="that of another ledger"):
        Ledger(path, witness=other)
    anew = tmp_path / "witness" / "anew.sqlite"
    with pytest.raises(errors.LedgerDamaged, match="made anew"):
        Ledger(path, witness=anew)
    # one witness may serve two ledgers
    paid(Ledger(path, witness=other, new_witness=True).budget("visits"))
    paid(Ledger(path, witness=other).budget("visits"))
    with pytest.raises(errors.LedgerDamaged, match="this is not the one"):
        opened()  # the first one has not seen the last charges


def test_a_witness_that_is_replaced_under_an_open_ledger_is_noticed(witnessed, tmp_path):
    _, opened = witnessed
    budget, witness = opened().budget("visits", epsilon=1), tmp_path / "witness" / "seen.sqlite"
    paid(budget)
    other = tmp_path / "other.sqlite"
    (tmp_path / "other").mkdir()
    Ledger(tmp_path / "other" / "b.sqlite", witness=other).budget("visits", epsilon=1)
    os.replace(other, witness)
    with pytest.raises(errors.LedgerUnavailable, match="replaced by another"):
        paid(budget)
    with pytest.raises(errors.LedgerDamaged, match="this is not the one"):
        opened()


def test_a_witness_knows_all_budgets_of_the_ledger_that_it_is_given_to(tmp_path):
    """What was spent before a ledger had a witness is seen from the first opening on."""
    (tmp_path / "ledger").mkdir()
    path = tmp_path / "ledger" / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    paid(budget)
    copied(path, tmp_path / "backup")
    paid(budget)
    Ledger(path, witness=tmp_path / "seen").close()
    put_back(path, tmp_path / "backup")
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(Ledger(path, witness=tmp_path / "seen").budget("visits"))


def test_a_ledger_without_a_budget_is_known_to_its_witness_too(witnessed):
    path, opened = witnessed
    opened().close()
    path.unlink()
    with pytest.raises(errors.LedgerDamaged, match="no new ledger is made"):
        opened()


def test_a_witness_of_an_earlier_version_is_taken_over(witnessed, tmp_path, as_of_format):
    """It recorded no id. One that has never seen the ledger is refused all the same."""
    path, opened = witnessed
    paid(opened().budget("visits", epsilon=1))
    for file, changes in (
        (path, as_of_format(3)),
        (
            tmp_path / "witness" / "seen.sqlite",
            ("DROP TABLE witness", "DELETE FROM seen WHERE budget = ''"),
        ),
    ):
        connection = sqlite3.connect(file, isolation_level=None)
        for change in changes:
            connection.execute(change)
        connection.close()
    with pytest.raises(errors.LedgerDamaged, match="this is not the one"):
        Ledger(path, witness=tmp_path / "witness" / "anew.sqlite")
    with pytest.raises(errors.LedgerDamaged, match="has a witness"):
        Ledger(path)
    paid(opened().budget("visits"))
    paid(opened().budget("visits"))
    assert opened().verify() == {"visits": 7}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://nobody@/none?host=/nowhere&password=s3cr3t",
        "postgresql+psycopg://nobody:s3cr3t@/none?host=/nowhere",
        "postgresql+psycopg://nobody@/none?host=/nowhere&sslpassword=s3cr3t&sslmode=disable",
        "postgresql+psycopg://nobody@/none?host=/nowhere&token=s3cr3t",
        "postgresql+psycopg://nobody:s3cr3t@localhost:s3cr3t/none",
        "postgresql+psycopg:/nobody:s3cr3t@localhost/none",
        "postgresql+psycopg://nobody@/none?host=/nowhere&options=-c&connect_timeout=s3cr3t",
        "postgres://nobody:s3cr3t@localhost/none",
    ],
)
def test_no_password_of_a_url_is_shown(url, capsys):
    from dpframe.__main__ import main

    pytest.importorskip("psycopg")
    with pytest.raises(errors.DpFrameError) as refused:
        Ledger(url)
    shown, problem = [str(refused.value)], refused.value
    while problem is not None:
        shown.append(repr(problem))
        problem = problem.__cause__ or problem.__context__
    assert main(["ledger", "show", url]) == 1
    assert not [text for text in (*shown, *capsys.readouterr()) if "s3cr3t" in text]


def test_a_server_has_a_witness_too(postgres, tmp_path):
    """A database that is restored from a backup has lost charges."""
    import sqlalchemy as sa

    url, witness = (
        postgres.replace("dpframe@", "dpframe:secret@") + "&sslpassword=secret",
        tmp_path / "seen.sqlite",
    )
    budget = Ledger(url, witness=witness).budget("visits", epsilon=1)
    paid(budget)
    paid(budget)
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        head = connection.execute(
            sa.text("SELECT hash FROM dpframe_entries WHERE number = 3")
        ).scalar()
        connection.execute(sa.text("DELETE FROM dpframe_entries WHERE number > 3"))
        connection.execute(
            sa.text("UPDATE dpframe_budgets SET number = 3, head = :head"), {"head": head}
        )
    engine.dispose()
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(Ledger(url, witness=witness).budget("visits"))
    assert b"secret" not in witness.read_bytes()


def test_a_driver_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(errors.UnsupportedOperation, match="postgres"):
        Ledger("postgresql+psycopg://me@/study")


def test_a_network_drive_is_refused(tmp_path, monkeypatch):
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /data\\040room rw shared:4 - nfs4 "
        "server:/x rw\n"
    )
    assert filesystem_of(Path("/data room/a/study.sqlite"), mounts) == "nfs4"
    assert filesystem_of(Path("/data/study.sqlite"), mounts) == "ext4"
    assert filesystem_of(Path("/data room/study.sqlite"), "") == ""
    assert {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"} <= REMOTE
    monkeypatch.setattr("dpframe.budget.ledger.sqlite_file.filesystem_of", lambda path: "nfs4")
    with pytest.raises(errors.LedgerUnavailable, match="network drive"):
        dp.Ledger(tmp_path / "study.sqlite")
    assert not (tmp_path / "study.sqlite").exists()
