"""A ledger that is replaced under whoever reads it: whatever reads it refuses, as a charge does.

The class is every public verb that reads a ledger × every way in which its file or its rows can be
replaced.
"""

import shutil
import sqlite3
import subprocess
import sys
import threading
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.__main__ import main
from dpframe.budget import Allowance, Budget, Ledger, Loss
from put_back import put_over

WHO = "unit 'id', add-remove"
LOSS = Loss.charged(Fraction(1, 10), Fraction(0))


def paid(budget, **options):
    receipt = budget.charge(LOSS, WHO, "count()", **options)
    budget.store(receipt, b"table", {"releases": []})


def rows(budget):
    return dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=budget, max_rows=1)


class Opened:
    """A ledger that is open, with a budget, a share of it, an answer and a
    series, all of which were read.
    """

    def __init__(self, place, **options):
        self.ledger = Ledger(place, **options)
        self.budget = self.ledger.budget("visits", epsilon=20, caps={"day": 19})
        self.share = self.budget.allocate(name="bo", epsilon=1)
        self.other = self.budget.allocate(name="ana", epsilon=1)
        self.series = self.budget.series("daily", every="1d", horizon=9, epsilon=1, unit_periods=1)
        if self.budget.protects is None:
            rows(self.budget).count().release(epsilon=0.1, name="rows")
            self.series.add(rows(self.budget).count(), period="2026-01-01")
            paid(self.share)
            self.budget.charge(LOSS, WHO, "count()", name="pending", plan={})


# What each public name does where it reads a ledger; all others are in `NO_READING`.
BUDGET = {
    "acknowledge_failures": lambda o: o.budget.acknowledge_failures(by="Ada"),
    "allocate": lambda o: o.budget.allocate(name="bo"),
    "answer": lambda o: o.budget.answer("rows"),
    "caps": lambda o: o.budget.caps,
    "charge": lambda o: o.budget.charge(LOSS, WHO, "count()"),
    "each": lambda o: o.budget.each(2),
    "entries": lambda o: o.budget.entries(),
    "failures": lambda o: o.budget.failures,
    "forecast": lambda o: o.budget.forecast(),
    "history": lambda o: o.budget.history(),
    "kept": lambda o: o.budget.kept("rows"),
    "one_by_one": lambda o: list(o.budget.one_by_one()),
    "open": lambda o: o.budget.open(LOSS, WHO, "later", name="later", plan={}, opens={}),
    "part": lambda o: o.budget.part(Fraction(1, 10)),
    "partition": lambda o: o.budget.partition({"by": "id"}, 1),
    "plan": lambda o: o.budget.plan(n=2),
    "protects": lambda o: o.budget.protects,
    "remaining": lambda o: o.budget.remaining,
    "resolve": lambda o: o.budget.resolve("pending", by="Ada"),
    "series": lambda o: o.budget.series("daily").total(),
    "sizes": lambda o: o.budget.sizes([LOSS]),
    "spenders": lambda o: o.budget.spenders,
    "spent": lambda o: o.budget.spent,
    "standing": lambda o: o.budget.standing,
    "tables": lambda o: o.budget.tables(2),
}
SHARE = {
    "charge": lambda o: o.share.charge(LOSS, WHO, "count()"),
    "close": lambda o: o.share.close(),
    "entries": lambda o: o.share.entries(),
    "failures": lambda o: o.share.failures,
    "forecast": lambda o: o.share.forecast(),
    "history": lambda o: o.share.history(),
    "limit": lambda o: o.share.limit,
    "open": lambda o: o.share.open(LOSS, WHO, "later", name="later", plan={}, opens={}),
    "remaining": lambda o: o.share.remaining,
    "series": lambda o: o.share.series("daily").total(),
    "spent": lambda o: o.share.spent,
    "tables": lambda o: o.share.tables(2),
    "tonight": lambda o: o.share.tonight,
    "transfer": lambda o: o.share.transfer("ana", epsilon=0.1),
}
SERIES = {
    "add": lambda o: o.series.add(rows(o.budget).count(), period="2026-01-02"),
    "explain": lambda o: o.series.explain(),
    "reads": lambda o: o.series.reads("2026-01-03"),
    "table": lambda o: o.series.table(),
    "total": lambda o: o.series.total(),
    "window": lambda o: o.series.window("2d"),
}
LEDGER = {
    "backup": lambda o: o.ledger.backup(o.aside / "backup.sqlite"),
    "budget": lambda o: o.ledger.budget("visits"),
    "a new budget": lambda o: o.ledger.budget("new", epsilon=1),
    "budgets": lambda o: o.ledger.budgets(),
    "change_caps": lambda o: o.ledger.change_caps("visits", {"day": 5}, by="Ada"),
    "entries": lambda o: o.ledger.entries("visits"),
    "export": lambda o: o.ledger.export("jsonl"),
    "resolve": lambda o: o.ledger.resolve("visits", "pending", by="Ada"),
    "verify": lambda o: o.ledger.verify(),
}
READS = {
    f"{of}.{name}": ask
    for of, verbs in {"budget": BUDGET, "share": SHARE, "series": SERIES, "ledger": LEDGER}.items()
    for name, ask in verbs.items()
} | {
    "repr": lambda o: repr(o.budget),
    "repr of a share": lambda o: repr(o.share),
    "repr of a series": lambda o: repr(o.series),
}
NO_READING = {
    Budget: {"accountant", "limit", "name", "terms", "spender", "for_spender", "kept_in", "whole"}
    | {"check_subject"}  # it is said at the charge
    | {"store", "fail"},  # they need a charge, which is refused
    Allowance: {
        "accountant",
        "name",
        "pace",
        "part",
        "share",
        "terms",
        "spender",
        "for_spender",
        "check_subject",
        "store",
        "fail",
        "whole",
        "paying",  # it reads by `entries`
    },
    # static; see below
    Ledger: {"close", "is_test", "mark_for_tests", "where"} | {"adopt", "migrate", "restore"},
}


@pytest.mark.parametrize(
    ("kind", "verbs"), [(Budget, BUDGET), (Allowance, SHARE), (Ledger, LEDGER)]
)
def test_the_class_has_every_public_verb(kind, verbs):
    public = {name for name in dir(kind) if not name.startswith("_")}
    assert public - set(verbs) == NO_READING[kind]


CHARGED_ELSEWHERE = """
import sys
from fractions import Fraction
from dpframe.budget import Ledger, Loss
budget = Ledger(sys.argv[1]).budget("visits")
for number in range(int(sys.argv[2])):
    budget.charge(Loss.charged(Fraction(1, 10), Fraction(0)), "unit 'id', add-remove", "count()")
"""


def charged_elsewhere(path, number):
    subprocess.run([sys.executable, "-c", CHARGED_ELSEWHERE, str(path), str(number)], check=True)


def edited(path, *changes):
    connection = sqlite3.connect(path)
    with connection:
        for change in changes:
            connection.execute(change)
    connection.close()


def renamed(folder, path):
    shutil.copy(folder / "old", folder / "new")
    (folder / "new").replace(path)


WAYS = {
    "an older copy over the file": lambda folder, path: put_over(folder / "old", path),
    "another branch of it": lambda folder, path: put_over(folder / "branch", path),
    "an older copy renamed": renamed,
    "another ledger with such budgets": lambda folder, path: put_over(folder / "like", path),
    "another ledger": lambda folder, path: put_over(folder / "foreign", path),
    "its last entry alone is lost": lambda _, path: edited(
        path, "DELETE FROM dpframe_entries WHERE number = (SELECT max(number) FROM dpframe_entries)"
    ),
    "its row alone is older": lambda folder, path: edited(
        path,
        f"ATTACH '{folder / 'old'}' AS old",
        "UPDATE dpframe_budgets SET (number, head, spent) = (SELECT number, head, spent FROM "
        "old.dpframe_budgets)",
    ),
    "it is removed": lambda _, path: path.unlink(),
    "it is empty": lambda _, path: path.write_bytes(b""),
    "half of it": lambda _, path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "another file": lambda _, path: path.write_bytes(b"no ledger" * 1000),
    "moved": lambda folder, path: Ledger.migrate(path, folder / "moved.sqlite"),
}


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """A ledger that was read, and copies of other states and of other
    ledgers, to be copied by each test.
    """
    folder = tmp_path_factory.mktemp("beside")
    Opened(folder / "like.sqlite").ledger.close()
    Ledger(folder / "foreign.sqlite").budget("others", epsilon=1)
    opened = Opened(folder / "a.sqlite")
    shutil.copy(folder / "a.sqlite", folder / "old")
    shutil.copy(folder / "a.sqlite", folder / "branch.sqlite")
    charged_elsewhere(folder / "branch.sqlite", 3)
    paid(opened.budget)
    paid(opened.budget)
    opened.ledger.close()
    for name in ("like", "foreign", "branch"):
        shutil.move(folder / f"{name}.sqlite", folder / name)
    return folder


@pytest.fixture
def opened(beside, tmp_path):
    shutil.copytree(beside, tmp_path, dirs_exist_ok=True)
    opened = Opened(tmp_path / "a.sqlite")
    opened.budget.history()
    opened.aside = tmp_path
    return opened


def silent(opened, reads=READS):
    """The verbs that read a ledger without a refusal."""
    answered = []
    for name, ask in reads.items():
        try:
            ask(opened)
        except errors.LedgerError:
            continue
        answered.append(name)
    return answered


def test_all_verbs_answer_while_nothing_is_replaced(opened):
    reads = {name: ask for name, ask in READS.items() if name != "share.close"}
    assert silent(opened, {name: ask for name, ask in reads.items() if "resolve" not in name}) == [
        name for name in reads if "resolve" not in name
    ]
    opened.ledger.resolve("visits", "pending", by="Ada")
    opened.share.close()


@pytest.mark.parametrize("way", WAYS)
def test_whatever_reads_an_open_ledger_refuses_one_that_was_replaced(opened, way):
    WAYS[way](opened.aside, opened.aside / "a.sqlite")
    assert silent(opened) == []
    assert not (opened.aside / "backup.sqlite").exists()


# A witness, where the ledger is opened anew

COMMANDS = (
    "show",
    "verify",
    "export",
    "report",
    "forecast",
    "caps",
    "backup",
    "resolve",
    "acknowledge",
)


@pytest.fixture
def watched(tmp_path):
    """A ledger with a witness, its state before the last charges,
    and another branch of that state.
    """
    (here := tmp_path / "here").mkdir()
    path, witness = here / "a.sqlite", tmp_path / "witness"
    opened = Opened(path, witness=witness)
    shutil.copy(path, tmp_path / "old")
    shutil.copy(witness, tmp_path / "old witness")
    paid(opened.budget)
    shutil.copy(path, tmp_path / "latest")
    shutil.copy(witness, tmp_path / "latest witness")
    shutil.copy(tmp_path / "old", path)
    shutil.copy(tmp_path / "old witness", witness)
    branch = Ledger(path, witness=witness).budget("visits")
    for _ in range(3):
        paid(branch)
    shutil.copy(path, tmp_path / "branch")
    shutil.copy(tmp_path / "latest", path)
    shutil.copy(tmp_path / "latest witness", witness)
    return path, witness, tmp_path


@pytest.mark.parametrize("state", ["old", "branch"])
def test_whatever_reads_a_ledger_that_its_witness_knows_better_refuses(watched, state):
    path, witness, folder = watched
    shutil.copy(folder / state, path)
    opened = Opened.__new__(Opened)
    opened.ledger, opened.aside = Ledger(path, witness=witness), folder
    assert silent(opened, LEDGER) == []
    with pytest.raises(errors.LedgerDamaged):
        Ledger.migrate(path, folder / "here" / "new.sqlite", witness=witness)
    more = {"backup": [str(folder / "backup")], "resolve": ["pending"]}
    for command in COMMANDS:
        assert (
            main(["ledger", command, str(path), "--witness", str(witness), *more.get(command, [])])
            == 1
        ), command
    assert not (folder / "backup").exists()


@pytest.mark.parametrize("state", ["old", "branch"])
def test_whatever_reads_an_open_ledger_with_a_witness_refuses(watched, state):
    path, witness, folder = watched
    opened = Opened(path, witness=witness)
    opened.aside = folder
    put_over(folder / state, path)
    assert silent(opened) == []


def test_a_witness_that_is_older_or_lost_is_noticed_by_whoever_reads(watched):
    path, witness, folder = watched
    opened = Opened(path, witness=witness)
    put_over(folder / "old witness", witness)
    opened.budget.history()  # the ledger has all that it knows, and goes on
    paid(opened.budget)
    witness.unlink()
    opened.aside = folder
    assert (
        silent(opened, {name: ask for name, ask in READS.items() if name != "ledger.verify"}) == []
    )


@pytest.mark.parametrize("with_witness", [pytest.param(False, marks=pytest.mark.long), True])
def test_who_reads_while_others_charge_is_not_refused(place, tmp_path, with_witness):
    (tmp_path / "elsewhere").mkdir()
    options = {"witness": tmp_path.parent / f"{tmp_path.name}.witness"} if with_witness else {}
    ledger, ends = Ledger(place, **options), []
    ledger.budget("visits", epsilon=1000)

    def charge():
        try:
            budget = Ledger(place, **options).budget("visits")
            for _ in range(40):
                paid(budget)
        except Exception as end:
            ends.append(end)

    threads = [threading.Thread(target=charge) for _ in range(2)]
    for thread in threads:
        thread.start()
    budget, lengths = ledger.budget("visits"), []
    while any(thread.is_alive() for thread in threads):
        lengths.append(len(budget.history()))
        _ = budget.remaining, ledger.budgets()
    assert ends == []
    assert lengths == sorted(lengths)
    assert len(budget.history()) == 80


# PostgreSQL

TABLES = ("dpframe_ledger", "dpframe_budgets", "dpframe_entries", "dpframe_data")


def run(ledger, *statements):
    with ledger._store.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def restored(of="old"):
    return (
        *(f"DELETE FROM {table}" for table in reversed(TABLES)),
        *(f"INSERT INTO {table} SELECT * FROM {of}_{table}" for table in TABLES),
    )


DUMPS = {
    "an older dump": restored(),
    "its last entry alone is lost": (
        "DELETE FROM dpframe_entries WHERE kind = 'result' AND number > 9",
    ),
    "its row alone is older": (
        "UPDATE dpframe_budgets b SET (number, head) = (SELECT number, head FROM "
        "old_dpframe_budgets o WHERE o.name = b.name)",
    ),
    "another ledger": (*restored(), "UPDATE dpframe_ledger SET id = 'another'"),
    "all rows are gone": restored()[: len(TABLES)],
    "its tables are gone": tuple(f"DROP TABLE {table}" for table in TABLES),
}


@pytest.mark.parametrize("way", DUMPS)
def test_whatever_reads_an_open_database_refuses_rows_that_were_put_back(postgres, tmp_path, way):
    opened = Opened(postgres)
    opened.aside = tmp_path
    run(opened.ledger, *(f"CREATE TABLE old_{table} AS SELECT * FROM {table}" for table in TABLES))
    paid(opened.budget)
    run(opened.ledger, *DUMPS[way])
    assert silent(opened) == []
