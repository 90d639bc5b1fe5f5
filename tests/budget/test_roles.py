"""Roles of PostgreSQL, with the grants of the documentation:
who makes budgets, and who spends what.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from dpframe import errors
from dpframe.budget import Ledger, Loss, account
from dpframe.budget.entries import Failures
from inside import book_of
from postgres_server import why_not

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "team.md"
WHO = "unit 'id', add-remove"
SAID = {"by": "Ada", "why": "the disk broke"}


def run(url, script):
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execution_options(no_parameters=True).exec_driver_sql(script)
    finally:
        engine.dispose()


def clean(url):
    run(url, "DROP SCHEMA IF EXISTS privacy CASCADE")
    for role in ("ana", "bo", "spenders", "steward"):
        run(url, f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def urls(postgres_server):
    """The URL of each role, after both scripts of the page."""
    roles, grants, _ = re.findall(r"```postgresql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    clean(postgres_server)
    run(postgres_server, roles)
    urls = {
        name: postgres_server.replace("dpframe@", f"{name}@") for name in ("steward", "ana", "bo")
    }
    ledger = Ledger(urls["steward"])
    ledger.budget("orders", epsilon=10, caps={"spender": 4})
    ledger.close()
    run(urls["steward"], grants)
    yield {**urls, "grants": grants}
    clean(postgres_server)


def opened(urls, who, **options):
    return Ledger(urls[who]).budget("orders", **options)


def pay(purse, epsilon="1/10", **options):
    receipt = purse.charge(Loss.charged(Fraction(epsilon), Fraction(0)), WHO, "count()", **options)
    purse.store(receipt, b"table", {"releases": []})


def test_a_spender_is_whom_the_database_names(urls):
    budget = opened(urls, "ana")
    out = (
        pl.DataFrame({"id": [1, 2]})
        .dp(unit="id", budget=budget)
        .count_units()
        .release(epsilon=0.5, name="people")
    )
    with pytest.raises(
        errors.BudgetMismatch, match="'ana' spends here, and spender='bo' was typed"
    ):
        pay(opened(urls, "ana", spender="bo"))
    pay(opened(urls, "ana", spender="ana"))
    with pytest.raises(errors.CapExceeded, match="'ana'"):
        pay(budget, "4")
    pay(opened(urls, "steward", spender="bo"), "1")  # in the name of another
    assert {name: loss.epsilon for name, loss in budget.spenders.items()} == {"ana": 0.6, "bo": 1}
    assert budget.history()[0].by == "ana"
    assert opened(urls, "bo").answer("people").to_polars().equals(out.to_polars())
    Ledger(urls["steward"]).verify()
    Ledger(urls["bo"]).verify()


def test_nobody_looks_at_failures_in_the_name_of_another(urls):
    steward, ana, bo = (opened(urls, name) for name in ("steward", "ana", "bo"))
    charge = Loss.charged(Fraction(1, 10), Fraction(0)), WHO, "count()"
    for name in ("one", "two", "three"):
        bo.charge(*charge, name=name, plan={})
    bo.fail(bo.charge(*charge))
    for call in (lambda: ana.acknowledge_failures(by="bo"), lambda: ana.resolve("one", by="bo")):
        with pytest.raises(errors.BudgetMismatch, match="'ana' is here, and by='bo' was typed"):
            call()
    ana.acknowledge_failures()
    ana.resolve("one")
    ana.charge(*charge, name="two", plan={}, retry=True)
    steward.resolve("three", by="bo")
    looked = [entry for entry in steward.entries() if entry.kind in ("acknowledgement", "lost")]
    assert [entry.body["by"] for entry in looked] == ["ana", "ana", "ana", "bo"]


@pytest.mark.parametrize("who", ["ana", pytest.param("steward", marks=pytest.mark.long)])
def test_who_makes_budgets(urls, tmp_path, who):
    ledger = Ledger(urls[who])
    calls = [
        lambda: ledger.budget("mine", epsilon=100),
        lambda: ledger.change_caps("orders", {"spender": 100}, by="Ana"),
        lambda: Ledger.adopt(urls[who], lost="none", **SAID),
        lambda: Ledger.migrate(urls[who], tmp_path / "a.sqlite"),
    ]
    before = opened(urls, "steward").entries()
    for call in calls:
        if who == "steward":
            call()
            continue
        with pytest.raises(
            (errors.LedgerUnavailable, errors.UnsupportedOperation),
            match=r"permission|may not (make|write)",
        ):
            call()
        assert Ledger(urls["steward"]).budgets() == ["orders"]
        assert opened(urls, "steward").entries() == before
    if who == "ana":
        pay(opened(urls, "bo"))


def add(part, night, **settings):
    """A night of the series "s", which a part pays for."""
    rows = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=part)
    part.series("s", **settings).add(rows.count_units(), night)


NIGHTS = {"every": "1d", "horizon": 9, "unit_periods": 1, "epsilon": 0.25}


def test_only_its_holder_spends_a_part(urls):
    steward, ana, bo = (opened(urls, name) for name in ("steward", "ana", "bo"))
    steward.for_spender("bo").allocate(name="bo", epsilon=1)
    ana.allocate(name="ana", epsilon=1)
    free = {name: Ledger(urls[name]).budget("free", epsilon=1) for name in ("steward", "ana", "bo")}
    free["steward"].allocate(name="all", epsilon=1)
    before = steward.entries()
    theirs = ana.allocate(name="bo")
    for call in (lambda: pay(theirs), lambda: theirs.transfer("ana", epsilon=0.5), theirs.close):
        with pytest.raises(errors.BudgetMismatch, match=r"that of 'bo'.*'ana' spends here"):
            call()
    assert steward.entries() == before
    own = bo.allocate(name="bo")
    pay(own)
    add(own, "2026-01-01", **NIGHTS)
    with pytest.raises(errors.BudgetMismatch, match=r"that of 'bo'.*'ana' spends here"):
        add(theirs, "2026-01-02")
    own.transfer("ana", epsilon=0.5)
    pay(ana.allocate(name="ana"), "1.5")
    for name in ("ana", "bo"):  # nobody took it, so everybody may spend it
        pay(free[name].allocate(name="all"))
    with pytest.raises(errors.CapExceeded):
        ana.allocate(name="more", epsilon=3)
    steward.allocate(name="bo").close()
    assert {name: loss.epsilon for name, loss in steward.spenders.items()} == {
        "bo": 0.35,
        "ana": 1.5,
    }
    Ledger(urls["steward"]).verify()


@pytest.mark.parametrize(
    "revoke",
    [
        "REVOKE UPDATE ON privacy.dpframe_budgets FROM spenders",
        *(
            pytest.param(revoke, marks=pytest.mark.long)
            for revoke in (
                "REVOKE INSERT ON privacy.dpframe_entries FROM spenders",
                "REVOKE USAGE ON SCHEMA privacy FROM spenders",
                "REVOKE spenders FROM ana",
            )
        ),
    ],
)
def test_a_role_that_is_revoked_between_two_charges(urls, postgres_server, revoke):
    """The next charge is refused, and a release that runs is neither stored nor shown.
    Nothing else is lost.
    """
    budget = opened(urls, "ana")
    pay(budget)
    running = budget.charge(
        Loss.charged(Fraction(1), Fraction(0)), WHO, "count()", name="running", plan={}
    )
    run(postgres_server, revoke)
    before = opened(urls, "steward").entries()
    for call in (
        lambda: pay(budget),
        lambda: budget.store(running, b"", {"releases": []}),
        lambda: pay(Ledger(urls["ana"]).budget("orders", epsilon=10)),
    ):
        with pytest.raises(errors.LedgerUnavailable, match=r"permission denied|does not exist"):
            call()
    assert opened(urls, "steward").entries() == before
    run(urls["steward"], urls["grants"])
    run(postgres_server, "GRANT spenders TO ana")
    budget.store(running, b"the answer", {"releases": []})
    assert [line.status for line in opened(urls, "steward").history()] == ["released", "released"]
    assert opened(urls, "steward").spent.epsilon == 1.1
    Ledger(urls["steward"]).verify()


@pytest.mark.long
def test_no_second_ledger_is_made_where_the_first_one_may_not_be_used(urls, postgres_server):
    run(
        postgres_server,
        "ALTER ROLE ana SET search_path = privacy, public; GRANT CREATE ON SCHEMA public TO ana",
    )
    run(postgres_server, "REVOKE USAGE ON SCHEMA privacy FROM spenders")
    try:
        with pytest.raises(errors.LedgerUnavailable, match="may not use the schema 'privacy'"):
            Ledger(urls["ana"]).budget("orders", epsilon=10)
    finally:
        run(postgres_server, "REVOKE CREATE ON SCHEMA public FROM ana")


# What a spender writes who does not call dpframe as it is


TAKEN = Loss.charged(Fraction(1, 10), Fraction(0)), WHO, "count()"


def written(urls, monkeypatch, who):
    """A budget and its shares, for a spender whose dpframe does not ask the database who is here.

    The spender has the same name on this machine, which says who acts where the database is not
    asked.
    """
    monkeypatch.setattr("dpframe.budget.names.user_name", lambda: who)
    monkeypatch.setattr(
        "dpframe.budget.ledger.postgres.PostgresStore.role", lambda self, connection: None
    )
    return opened(urls, who)


def refusal(call, *arguments):
    """The words of the database or of the ledger; "" for what is accepted."""
    try:
        call(*arguments)
    except (errors.LedgerUnavailable, psycopg.Error) as error:
        return str(error)
    return ""


def nameless(budget, kind, body):
    """Write an entry that says nobody's name."""
    with book_of(budget).write() as page:
        page.failures = Failures(page.failures.failed, 0)
        page.append(kind, body, account.now())


ATTACKS = {
    "charges in another's name": lambda budget, url: pay(budget.for_spender("bo")),
    "charges in nobody's name": lambda budget, url: pay(Ledger(url).budget("free")),
    "spends another's share": lambda budget, url: pay(
        budget.for_spender("ana").allocate(name="bo")
    ),
    "spends another's share as them": lambda budget, url: pay(
        budget.for_spender("bo").allocate(name="bo")
    ),
    "adds a night that another's share pays": lambda budget, url: add(
        budget.for_spender("ana").allocate(name="bo"), "2026-01-02"
    ),
    "moves another's share": lambda budget, url: (
        budget.for_spender("bo").allocate(name="bo").transfer("ana", 0.5)
    ),
    "closes another's share": lambda budget, url: (
        budget.for_spender("bo").allocate(name="bo").close()
    ),
    "takes a share for another": lambda budget, url: budget.for_spender("bo").allocate(
        name="more", epsilon=1
    ),
    "stores another's answer": lambda budget, url: budget.store(
        RUNNING[0], b"forged", {"releases": []}
    ),
    "fails another's release": lambda budget, url: budget.fail(RUNNING[0]),
    "marks as lost in another's name": lambda budget, url: budget.resolve("running", by="bo"),
    "looks at failures in another's name": lambda budget, url: budget.acknowledge_failures("bo"),
    "looks at failures in nobody's name": lambda budget, url: nameless(
        budget, "acknowledgement", {"failures": 1, "failed": 1}
    ),
    "marks as lost in nobody's name": lambda budget, url: nameless(
        budget, "lost", {"about": RUNNING[0].number}
    ),
    "changes caps": lambda budget, url: Ledger(url).change_caps(
        "orders", {"spender": 100}, by="Ana"
    ),
    "adopts": lambda budget, url: Ledger.adopt(url, lost="all", **SAID),
    "makes a budget": lambda budget, url: Ledger(url).budget("mine", epsilon=100),
}
RUNNING = []


def test_another_dpframe_writes_nothing_that_is_not_its_users(urls, monkeypatch):
    """The database refuses each entry that this user may not write, whatever program sends it."""
    steward, bo = opened(urls, "steward"), opened(urls, "bo")
    add(bo.allocate(name="bo", epsilon=1), "2026-01-01", **NIGHTS)
    opened(urls, "ana").allocate(name="ana", epsilon=1)
    Ledger(urls["steward"]).budget("free", epsilon=1)
    RUNNING[:] = [bo.charge(*TAKEN, name="running", plan={})]
    bo.fail(bo.charge(*TAKEN))
    before = steward.entries()
    budget = written(urls, monkeypatch, "ana")
    for attack, run_it in ATTACKS.items():
        said = refusal(run_it, budget, urls["ana"])
        assert re.search("may not write this|permission denied", said), attack
        assert steward.entries() == before, attack
    mine = budget.for_spender("ana")
    pay(mine)
    mine.allocate(name="ana").transfer("bo", epsilon=0.5)
    monkeypatch.undo()
    bo.store(RUNNING[0], b"the answer", {"releases": []})
    Ledger(urls["steward"]).verify()


REFUSED = [
    "DELETE FROM dpframe_entries",
    "UPDATE dpframe_entries SET body = '{}'",
    "DELETE FROM dpframe_data",
    "UPDATE dpframe_data SET data = ''",
    "DELETE FROM dpframe_budgets",
    "UPDATE dpframe_budgets SET allowed = '{}'",
    "UPDATE dpframe_budgets SET name = 'other'",
    "INSERT INTO dpframe_budgets SELECT * FROM dpframe_budgets",
    "UPDATE dpframe_ledger SET format = -5",
    "DELETE FROM dpframe_ledger",
    "TRUNCATE dpframe_entries",
    "DROP TABLE dpframe_entries",
    "ALTER TABLE dpframe_entries DISABLE TRIGGER own_entry",
    "DROP TRIGGER own_entry ON dpframe_entries",
    "SET session_replication_role = replica",
    "CREATE OR REPLACE FUNCTION own_entry() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN "
    "NEW; END'",
    "CREATE TABLE dpframe_more ()",
    "SET ROLE steward",
    "SET SESSION AUTHORIZATION steward",
    "DO 'BEGIN LOCK TABLE dpframe_budgets IN ACCESS EXCLUSIVE MODE; END'",
]
NAMED = {  # what only `verify` sees, with its words
    "UPDATE dpframe_budgets SET spent = "
    '\'{"delta":"0/1","epsilon":"0/1","rho":null}\'': "charges add up to",
    "UPDATE dpframe_budgets SET caps = NULL": "sums of its caps",
    "UPDATE dpframe_budgets SET caps = replace(caps, '4/1', '9/1')": "sums of its caps",
    "UPDATE dpframe_budgets SET failures = 5": "numbers of failures",
    "UPDATE dpframe_budgets SET acknowledged = 5": "numbers of failures",
    "UPDATE dpframe_budgets SET subject = 'another'": "its row is about 'another'",
    "UPDATE dpframe_budgets SET at = '2020-01-01T00:00:00.000000+00:00'": "the time in its row",
    "UPDATE dpframe_budgets SET parts = '{\"a\": {}}'": "a value in its row",
    "INSERT INTO dpframe_data VALUES ('orders', 99, '')": "a table of charge 99",
    "INSERT INTO dpframe_entries VALUES "
    "('none',1,'charge','','{\"by\":\"ana\",\"spender\":\"ana\"}','')": "'none'",
}


def test_plain_sql_is_refused_or_named(urls):
    """The database refuses a statement, or `verify` names what it changed."""
    budget = opened(urls, "ana")
    pay(budget)
    before = budget.entries()
    with psycopg.connect(urls["ana"].replace("+psycopg", ""), autocommit=True) as plain:
        for statement in REFUSED:
            assert re.search(
                "permission denied|must be owner", refusal(plain.execute, statement)
            ), statement
        for statement, words in NAMED.items():
            with psycopg.connect(
                urls["steward"].replace("+psycopg", ""), autocommit=True
            ) as steward:
                steward.execute("CREATE TABLE kept AS TABLE dpframe_budgets")
                plain.execute(statement)
                with pytest.raises(errors.LedgerDamaged, match=words):
                    Ledger(urls["bo"]).verify()
                steward.execute("TRUNCATE dpframe_budgets")
                steward.execute("INSERT INTO dpframe_budgets TABLE kept")
                steward.execute("DROP TABLE kept")
                steward.execute("DELETE FROM dpframe_data WHERE number = 99")
                steward.execute("DELETE FROM dpframe_entries WHERE budget = 'none'")
    assert budget.entries() == before
    Ledger(urls["steward"]).verify()


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT 1 FROM dpframe_budgets FOR UPDATE",
        pytest.param("SELECT pg_advisory_lock(7305242117)", marks=pytest.mark.long),
    ],
)
def test_a_lock_that_is_held_is_refused_in_time_and_the_page_says_by_whom(
    urls, postgres_server, lock
):
    who = re.findall(r"```postgresql\n(.*?)```", PAGE.read_text(), re.DOTALL)[-1]
    with psycopg.connect(urls["ana"].replace("+psycopg", "")) as plain:
        plain.execute(lock)
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(lambda: pay(Ledger(urls["bo"], timeout=3).budget("orders")))
            named = []
            with psycopg.connect(
                postgres_server.replace("+psycopg", ""), autocommit=True
            ) as on_call:
                while not named and not waits.done():
                    named = on_call.execute(who).fetchall()
            with pytest.raises(
                errors.LedgerUnavailable, match=r"lock timeout.*Nothing is released"
            ):
                waits.result()
    assert [row[1] for row in named] == ["ana"]
    pay(opened(urls, "bo"))


ANEW = "DROP SCHEMA privacy CASCADE; CREATE SCHEMA privacy AUTHORIZATION steward"


@pytest.mark.parametrize("way", ["restore", pytest.param("migrate", marks=pytest.mark.long)])
def test_grants_are_given_again_in_a_new_place(urls, way, tmp_path, postgres_server):
    """A copy has the rows and no rights: spenders are refused until the steward ran the second
    script of the page again, and then have those that they had, the trigger too.
    """
    pay(opened(urls, "ana"))
    ledger, backup = Ledger(urls["steward"]), tmp_path / "b.sqlite"
    if way == "restore":
        ledger.backup(backup)
    else:
        Ledger.migrate(urls["steward"], backup)
    ledger.close()
    run(postgres_server, ANEW)
    for make in (
        lambda: Ledger.restore(backup, urls["ana"], lost="none", **SAID),
        lambda: Ledger.migrate(backup, urls["ana"]),
    ):
        with pytest.raises(errors.LedgerError):
            make()
    if way == "restore":
        Ledger.restore(backup, urls["steward"], lost="none", **SAID).close()
    else:
        assert Ledger.migrate(backup, urls["steward"]) == {"orders": 3}
    with pytest.raises(errors.LedgerUnavailable, match="permission denied"):
        opened(urls, "ana")
    run(urls["steward"], urls["grants"])
    for _ in range(2):
        run(urls["steward"], urls["grants"])  # as often as one likes
    pay(opened(urls, "ana"))
    assert {line.spender for line in opened(urls, "ana").history() if line.spender} == {"ana"}
    with pytest.raises(errors.UnsupportedOperation, match="may not make budgets"):
        Ledger(urls["ana"]).budget("more", epsilon=1, create=True)
    forged = "INSERT INTO dpframe_entries VALUES ('orders',99,'charge','','{\"by\":\"bo\"}','')"
    with pytest.raises(sa.exc.ProgrammingError, match="ana may not write this charge"):
        run(urls["ana"], forged)
    Ledger(urls["steward"]).verify()


def test_a_witness_beside_roles(urls, tmp_path, postgres_server):
    """The steward gives a ledger its witness, and all who charge open it with this one file. Then
    an older copy that is put into the place of the ledger is noticed, and grants do not hide it.
    """
    witness, other = tmp_path / "a.witness", tmp_path / "b.witness"
    with pytest.raises(errors.LedgerUnavailable, match="permission denied"):
        Ledger(urls["ana"], witness=witness)
    steward = Ledger(urls["steward"], witness=witness, new_witness=witness.exists())
    steward.backup(tmp_path / "b.sqlite")
    pay(Ledger(urls["ana"], witness=witness).budget("orders"))
    for wrong in ({}, {"witness": other}):
        with pytest.raises(errors.LedgerDamaged, match="witness"):
            Ledger(urls["ana"], **wrong)
    steward.close()
    run(postgres_server, ANEW)
    for create in (True, False):  # nobody makes a new one in its place
        with pytest.raises(errors.LedgerError):
            Ledger(urls["steward"], witness=witness, create=create)
    said = {"witness": witness, **SAID}
    with pytest.raises(errors.LedgerDamaged, match="this copy has"):
        Ledger.restore(tmp_path / "b.sqlite", urls["steward"], **said)
    again = Ledger.restore(tmp_path / "b.sqlite", urls["steward"], lost={"orders": 0.1}, **said)
    run(urls["steward"], urls["grants"])
    pay(Ledger(urls["ana"], witness=witness).budget("orders"))
    assert again.budget("orders").spent.epsilon == pytest.approx(0.2)
    assert again.verify()
