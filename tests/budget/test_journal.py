"""The file of a ledger alone holds every charge:
kills, lost journals, half-written copies, and ledgers in WAL mode.
"""

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from fractions import Fraction

import pytest

from dpframe import errors
from dpframe.budget import Ledger, Loss
from dpframe.budget.ledger.schema import FORMAT

WHO = "unit 'id', add-remove"
TENTH = Loss.charged(Fraction(1, 10), Fraction(0))


def paid(budget, data=b"table", **options):
    budget.store(budget.charge(TENTH, WHO, "count()", **options), data, {"releases": []})


def told(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [connection.execute(text).fetchall() for text in statements][-1]
    finally:
        connection.close()


def spent_by(path, name, limit=100):
    """What a copy says was spent before one more charge; None if it is refused."""
    try:
        budget = Ledger(path).budget(name, epsilon=limit)
        spent = budget.spent.exact_epsilon
        budget.charge(TENTH, WHO, "count()")
    except errors.LedgerError:
        return None
    return spent


# Copies of the file alone


@pytest.mark.parametrize("beside", [None, b"no journal"])
def test_answers_are_not_forgotten_when_side_files_go_and_the_process_is_killed(tmp_path, beside):
    """Whatever lies beside the file of an open ledger is removed after each answer, or replaced."""
    path, seen = tmp_path / "a.sqlite", tmp_path / "seen"
    code = f"""
import dpframe as dp, os, pathlib, signal
from fractions import Fraction
from dpframe.budget import Loss
budget = dp.Ledger({str(path)!r}).budget("b", epsilon=1)
for number in range(1, 11):
    loss = Loss.charged(Fraction(1, 10), Fraction(0))
    budget.store(budget.charge(loss, {WHO!r}, "count()"), b"", {{}})
    pathlib.Path({str(seen)!r}).write_text(str(number))
    for end in ("-wal", "-shm", "-journal"):
        beside = pathlib.Path({str(path)!r} + end)
        beside.unlink(missing_ok=True)
        if {beside!r} is not None and number > 4:
            beside.write_bytes({beside!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    granted = Fraction(seen.read_text()) / 10
    assert granted >= (1 if beside is None else Fraction(1, 2))
    if beside is not None:
        with pytest.raises(errors.LedgerDamaged, match="remove that file"):
            Ledger(path)
        os.remove(f"{path}-wal")
    budget = Ledger(path).budget("b", epsilon=1)
    assert granted <= budget.spent.exact_epsilon <= 1
    while budget.spent.exact_epsilon < 1:
        paid(budget)
    with pytest.raises(errors.BudgetExceeded):
        paid(budget)
    Ledger(path).verify()


def test_a_copy_of_the_file_of_an_open_ledger_is_the_whole_ledger(tmp_path):
    path, copy = tmp_path / "a.sqlite", tmp_path / "copy.sqlite"
    ledger = Ledger(path)
    budget = ledger.budget("b", epsilon=100)
    for number in range(1, 20):
        paid(budget)
        assert os.listdir(tmp_path).count("a.sqlite") == len(
            [n for n in os.listdir(tmp_path) if n[:8] == "a.sqlite"]
        )
        shutil.copy(path, copy)
        assert Ledger(copy).budget("b").spent.exact_epsilon == Fraction(number, 10)
        assert Ledger(copy).verify() == {"b": 2 * number + 1}


def images(path, budgets, allowances):
    """The bytes of a ledger before and after each of many
    transactions, and what was spent by then.
    """
    ledger = Ledger(path)
    kept = [ledger.budget(f"b{i}", epsilon=100) for i in range(budgets)]
    nightly = [
        budget.allocate(nights=2, epsilon=Fraction(1, 2), name="n") for budget in kept[:allowances]
    ]
    names, first = itertools.count(), kept[0]
    for turn in range(40):
        before, spent = path.read_bytes(), first.spent.exact_epsilon
        budget = kept[turn % budgets]
        if nightly and turn % 3 == 1:
            nightly[turn % allowances].charge(
                Loss.charged(Fraction(1, 10**6), Fraction(0)), WHO, "count()"
            )
        elif turn % 3 == 2:
            budget.charge(
                TENTH,
                WHO,
                "count() " * 40,
                name=f"{turn * 7 % 10}{next(names)}" * 9,
                plan={"turn": turn},
            )
        else:
            budget.store(budget.charge(TENTH, WHO, "count()"), bytes(turn * 150), {"releases": []})
        yield before, path.read_bytes(), spent


def mixed(before, after, chosen, size):
    """A file in which a part of the changed pages has been written, in order or not."""
    pages = [
        bytearray(after if i in chosen else before)[i * size : (i + 1) * size]
        for i in range(len(after) // size)
    ]
    return b"".join(pages)


def half_written(before, after, size=4096):
    """What a kill without a journal, or a copy beside a writer, may leave
    of the pages of one transaction.
    """
    changed = [
        i
        for i in range(len(after) // size)
        if before[i * size : (i + 1) * size] != after[i * size : (i + 1) * size]
    ]
    for cut in range(len(changed) + 1):
        for chosen in (set(changed[:cut]), set(changed[cut:])):
            yield mixed(before, after, chosen, size)
    for page in changed:
        yield mixed(before, after, {page}, size)
        yield after[: page * size]
        yield after[: page * size + size // 2]
        yield mixed(before, after, set(changed) - {page}, size)


def hold_half_written(tmp_path, budgets, allowances, every):
    """No half-written file forgets a charge that was granted before:
    it is refused, or it knows at least as much.
    """
    outcomes, copy = [], tmp_path / "copy" / "a.sqlite"
    copy.parent.mkdir()
    for before, after, spent in itertools.islice(
        images(tmp_path / "a.sqlite", budgets, allowances), 0, None, every
    ):
        for image in half_written(before, after):
            copy.write_bytes(image)
            said = spent_by(copy, "b0")
            assert said is None or said >= spent, (said, spent)
            outcomes.append(said is None)
            for part in copy.parent.iterdir():
                part.unlink()
    assert outcomes.count(True) > len(outcomes) / 5  # some are whole: the state before, or after
    return len(outcomes)


def test_a_half_written_file_forgets_nothing(tmp_path):
    assert hold_half_written(tmp_path, budgets=3, allowances=2, every=7) > 60


@pytest.mark.long
@pytest.mark.parametrize(("budgets", "allowances"), [(1, 1), (3, 2), (17, 5)])
def test_half_written_files_at_length(tmp_path, budgets, allowances):
    assert hold_half_written(tmp_path, budgets, allowances, every=1) > 400


def test_an_index_that_lost_entries_is_noticed_when_the_budget_is_opened(tmp_path):
    """The entries of an allowance are found by an index.
    Where it is half-written, they would be spent again.
    """
    path = tmp_path / "a.sqlite"
    budget = Ledger(path).budget("b", epsilon=100)
    paid(budget)
    for index in ("dpframe_entries_about", "dpframe_entries_name"):
        shutil.copy(path, tmp_path / "copy.sqlite")
        columns = told(path, f"SELECT sql FROM sqlite_master WHERE name = '{index}'")[0][
            0
        ].partition(" ON ")[2]
        told(
            tmp_path / "copy.sqlite",
            f"DROP INDEX {index}",
            f"CREATE INDEX {index} ON {columns} WHERE number < 3",
        )
        told(
            tmp_path / "copy.sqlite",
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = replace(sql, ' WHERE number < 3', '') WHERE name = "
            f"'{index}'",
        )
        with pytest.raises(errors.LedgerDamaged, match="half-written"):
            Ledger(tmp_path / "copy.sqlite").budget("b")
        with pytest.raises(errors.LedgerDamaged, match="SQLite says"):
            Ledger(tmp_path / "copy.sqlite").verify()


def hold_copies_of_kills(spenders, tmp_path, kills):
    """After a kill: with its journal a copy knows every charge that was seen;
    without, it does or is refused.
    """
    path = tmp_path / "study.sqlite"
    said = spenders("copies", path, tmp_path / "seen", kills)
    assert said["integrity"] == ["ok"]
    copies = [copy for copy in tmp_path.glob("*.copy") if int(copy.name.split(".")[3])]
    for copy in copies:
        seen = Fraction(copy.name.split(".")[3]) / 1000
        alone = tmp_path / "alone.sqlite"
        shutil.copy(copy, alone)
        forgotten = spent_by(alone, "killed", 10**6)
        assert forgotten is None or forgotten >= seen
        alone.unlink()
        known = Ledger(copy)
        assert known.budget("killed").spent.exact_epsilon >= seen
        known.verify()
    return len(copies), sum(os.path.exists(f"{copy}-journal") for copy in copies)


def test_copies_after_kills_forget_nothing(spenders, tmp_path):
    # the last has charges that were seen
    assert hold_copies_of_kills(spenders, tmp_path, 6)[0] >= 1


@pytest.mark.long
def test_copies_after_many_kills_forget_nothing(spenders, tmp_path):
    assert hold_copies_of_kills(spenders, tmp_path, 200)[0] > 100


@pytest.mark.parametrize("copies", [3, pytest.param(8, marks=pytest.mark.long)])
def test_copies_beside_a_writer_forget_nothing(tmp_path, copies):
    """Copies of a file while another process charges:
    each knows what was granted before it began, or is refused.

    Readers of the file itself wait for the writer, and are no trouble to it.
    """
    path, seen = tmp_path / "a.sqlite", tmp_path / "seen"
    Ledger(path).budget("killed", epsilon=10**6, caps={"month": 10**6})
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import spenders; "
        "spenders.until_killed"
    )
    writer = subprocess.Popen([sys.executable, "-c", f"{code}({str(path)!r}, {str(seen)!r})"])
    try:
        for number in range(copies):
            while not seen.exists() or len(seen.read_bytes().splitlines()) < number * 2:
                assert writer.poll() is None
            granted = len(seen.read_bytes().splitlines())
            copy = tmp_path / f"{number}.sqlite"
            shutil.copy(path, copy)
            said = spent_by(copy, "killed", 10**6)
            assert said is None or said >= Fraction(granted, 1000)
            assert Ledger(path).verify()["killed"] > 2 * granted
    finally:
        writer.kill()
        writer.wait()


# What is missing is not made anew


@pytest.mark.parametrize("content", [b"", b"\0" * 4096])
def test_an_empty_file_is_no_new_ledger(tmp_path, content):
    (tmp_path / "a.sqlite").write_bytes(content)
    with pytest.raises(errors.LedgerError):
        Ledger(tmp_path / "a.sqlite")


def test_a_file_of_another_program_is_left_as_it_is(tmp_path):
    path = tmp_path / "notes.sqlite"
    told(path, "PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)")
    with pytest.raises(errors.LedgerError):
        Ledger(path)
    assert told(path, "PRAGMA journal_mode") == [("wal",)]
    assert told(path, "SELECT name FROM sqlite_master") == [("notes",)]


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_file_that_was_removed_beside_its_journal_is_not_made_anew(tmp_path, end):
    (tmp_path / f"a.sqlite{end}").write_bytes(b"left")
    with pytest.raises(errors.LedgerDamaged, match="no new ledger is made"):
        Ledger(tmp_path / "a.sqlite")
    assert not (tmp_path / "a.sqlite").exists()


@pytest.mark.parametrize("table", ["ledger", "budgets", "entries", "data"])
def test_a_table_that_was_removed_is_not_made_anew(place, table):
    import sqlalchemy as sa

    budget = Ledger(place).budget("b", epsilon=1)
    paid(budget)
    engine = sa.create_engine(place if "://" in place else f"sqlite:///{place}")
    with engine.begin() as connection:
        connection.execute(sa.text(f"DROP TABLE dpframe_{table}"))
    with pytest.raises(errors.LedgerDamaged, match=f"no table 'dpframe_{table}' any more"):
        Ledger(place)
    engine.dispose()


def test_a_budget_whose_row_was_removed_is_not_made_anew(place):
    import sqlalchemy as sa

    paid(Ledger(place).budget("b", epsilon=1))
    engine = sa.create_engine(place if "://" in place else f"sqlite:///{place}")
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM dpframe_budgets"))
    engine.dispose()
    with pytest.raises(errors.LedgerDamaged, match="not made anew"):
        Ledger(place).budget("b", epsilon=1)


@pytest.mark.parametrize("lost", ["number > 0", "number = 3"])
def test_a_budget_whose_entries_were_removed_is_not_read(place, lost):
    """Also where none is left. Whoever opens it, and asks for what is left of it, is refused."""
    import sqlalchemy as sa

    paid(Ledger(place).budget("b", epsilon=1))
    engine = sa.create_engine(place if "://" in place else f"sqlite:///{place}")
    with engine.begin() as connection:
        connection.execute(sa.text(f"DELETE FROM dpframe_entries WHERE {lost}"))
    engine.dispose()
    for read in (lambda: Ledger(place).budget("b"), lambda: Ledger(place).budgets()):
        with pytest.raises(errors.LedgerDamaged, match="does not name the last"):
            read()


def test_many_processes_make_one_ledger(tmp_path):
    code = f"import dpframe as dp; print(dp.Ledger({str(tmp_path / 'a.sqlite')!r})._store.id)"
    jobs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert len({job.communicate()[0] for job in jobs}) == 1
    assert os.listdir(tmp_path) == ["a.sqlite"]


# WAL mode


@pytest.fixture
def logged(tmp_path, as_of_format):
    """A ledger as format 3 left it after a kill: one charge in the
    file, and a later one in its log.
    """
    folder = tmp_path / "logged"
    folder.mkdir()
    path, later = folder / "a.sqlite", tmp_path / "later.sqlite"
    budget = Ledger(path).budget("b", epsilon=1)
    paid(budget)
    shutil.copy(path, later)
    paid(Ledger(later).budget("b"))
    for file in (path, later):
        told(file, *as_of_format(3))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("ATTACH ? AS later", (str(later),))
    for table in ("budgets", "entries", "data"):
        connection.execute(
            f"INSERT OR REPLACE INTO dpframe_{table} SELECT * FROM later.dpframe_{table}"
        )
    shutil.copytree(folder, tmp_path / "killed")
    connection.close()
    return tmp_path / "killed" / "a.sqlite"


def test_a_ledger_in_wal_mode_is_brought_forward_with_its_log(logged):
    assert Ledger(logged).budget("b").spent.exact_epsilon == Fraction(2, 10)
    assert told(logged, "PRAGMA journal_mode") == [("delete",)]
    assert told(logged, "SELECT format FROM dpframe_ledger") == [(FORMAT,)]
    assert os.listdir(logged.parent) == ["a.sqlite"]
    assert Ledger(logged).verify() == {"b": 5}


def test_a_ledger_in_wal_mode_without_its_log_is_refused_with_the_line(logged):
    for end in ("-wal", "-shm"):
        os.remove(f"{logged}{end}")
    for _ in range(2):
        with pytest.raises(errors.LedgerDamaged, match="put it back") as refused:
            Ledger(logged)
    line = str(refused.value).partition("python -c ")[2]
    subprocess.run(f"{sys.executable} -c {line}", shell=True, check=True)
    assert Ledger(logged).budget("b").spent.exact_epsilon == Fraction(1, 10)


def test_processes_bring_a_ledger_out_of_wal_mode_together(logged):
    code = f"import dpframe as dp; print(dp.Ledger({str(logged)!r}).verify())"
    jobs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert {job.communicate()[0] for job in jobs} <= {"{'b': 5}\n", ""}
    assert Ledger(logged).verify() == {"b": 5}


def test_a_log_of_earlier_days_is_not_put_on_a_ledger_that_went_on(logged, tmp_path):
    """SQLite would take it for the latest charges: 0.2 spent where 0.5 were."""
    shutil.copytree(logged.parent, tmp_path / "earlier")
    budget = Ledger(logged).budget("b")
    for _ in range(3):
        paid(budget)
    shutil.copy(tmp_path / "earlier" / "a.sqlite-wal", f"{logged}-wal")
    with pytest.raises(errors.LedgerError):
        paid(budget)
    with pytest.raises(errors.LedgerDamaged, match="remove that file"):
        Ledger(logged)
    os.remove(f"{logged}-wal")
    assert Ledger(logged).budget("b").spent.exact_epsilon == Fraction(5, 10)


def test_no_charge_is_written_to_a_log_that_another_program_asks_for(tmp_path):
    path = tmp_path / "a.sqlite"
    budget = Ledger(path).budget("b", epsilon=1)
    told(path, "PRAGMA journal_mode = WAL")
    with pytest.raises(errors.LedgerUnavailable, match="journal mode"):
        paid(budget)
    again = Ledger(path).budget("b")
    paid(again)
    paid(budget)
    assert told(path, "PRAGMA journal_mode") == [("delete",)]
    assert again.spent.exact_epsilon == Fraction(2, 10)
