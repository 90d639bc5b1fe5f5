"""A ledger on PostgreSQL in a bad world: settings of the role, policies, triggers,
killed processes and connections.
"""

import json
import time
import unicodedata
from fractions import Fraction

import pytest

from dpframe import errors
from dpframe.budget import Ledger, Loss, account
from dpframe.budget.ledger import verify
from inside import book_of

sa = pytest.importorskip("sqlalchemy")
pytest.importorskip("psycopg")
WHO = "unit 'id', add-remove"
MILLI = Loss.charged(Fraction(1, 1000), Fraction(0))


def paid(budget, **options):
    receipt = budget.charge(MILLI, WHO, "count()", **options)
    budget.store(receipt, b"table", {"releases": []})
    return receipt


@pytest.fixture
def admin(postgres):
    """Run statements as the owner of the database;
    what they set of roles is taken back after the test.
    """
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")

    def run(*statements):
        with engine.connect() as connection:
            answers = [connection.exec_driver_sql(text) for text in statements]
            return answers[-1].fetchall() if answers[-1].returns_rows else None

    yield run
    run("ALTER ROLE dpframe RESET ALL", "ALTER DATABASE postgres RESET ALL")
    run("DROP SCHEMA IF EXISTS study CASCADE")
    engine.dispose()


@pytest.fixture
def clerk(postgres, admin):
    """The URL of a role that owns nothing, with the rights that a ledger needs."""
    Ledger(postgres).budget("visits", epsilon=1)
    admin("DROP ROLE IF EXISTS clerk", "CREATE ROLE clerk LOGIN")
    admin(
        *(
            f"GRANT SELECT, INSERT, UPDATE ON dpframe_{t} TO clerk"
            for t in ("ledger", "budgets", "entries", "data")
        )
    )
    yield postgres.replace("dpframe@", "clerk@")
    admin("DROP OWNED BY clerk", "DROP ROLE clerk")


# Settings


@pytest.mark.one_in(3)
@pytest.mark.parametrize("level", ["serializable", "repeatable read", "read committed"])
def test_processes_cannot_overspend_whatever_the_isolation_level(spenders, postgres, admin, level):
    admin(f"ALTER ROLE dpframe SET default_transaction_isolation = '{level}'")
    said = spenders("spend", postgres, 4, 15, 4)
    assert said["errors"] == []
    assert Fraction(said["spent"]) == Fraction(said["granted"]) <= 4
    assert said["refused"] > 0


def settings_within(budget, *names):
    """What a locked transaction of the ledger runs under."""
    with book_of(budget)._store.transaction(write=True) as connection:
        return [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]


def test_a_commit_waits_for_the_disk_whatever_the_role_says(postgres, admin):
    admin(
        "ALTER ROLE dpframe SET synchronous_commit = off",
        "ALTER DATABASE postgres SET synchronous_commit = off",
    )
    budget = Ledger(postgres, timeout=7).budget("visits", epsilon=1)
    names = ("synchronous_commit", "row_security", "lock_timeout", "transaction_isolation")
    assert settings_within(budget, *names) == ["on", "off", "7s", "read committed"]
    # A pooler hands on a session that another client has set.
    with book_of(budget)._store.engine.connect() as connection:
        connection.exec_driver_sql("SET synchronous_commit = off")
        connection.commit()
    assert settings_within(budget, "synchronous_commit") == ["on"]


@pytest.mark.parametrize(
    "setting",
    ["default_transaction_read_only = on", "statement_timeout = 1", "search_path = nowhere"],
)
def test_settings_under_which_nothing_can_be_kept_are_typed_refusals(postgres, admin, setting):
    budget = Ledger(postgres).budget("visits", epsilon=1)
    admin(f"ALTER ROLE dpframe SET {setting}", "ALTER TABLE dpframe_entries ADD COLUMN x text")
    if "timeout" in setting:
        admin(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM "
            "pg_sleep(5); RETURN NEW; END'",
            "CREATE TRIGGER slow BEFORE INSERT ON dpframe_entries FOR EACH ROW EXECUTE FUNCTION "
            "slow()",
        )
    book_of(budget)._store.engine.dispose()
    if "search_path" in setting:
        paid(budget)  # an open ledger stays with its schema
        with pytest.raises(errors.LedgerError):
            Ledger(postgres)
    else:
        with pytest.raises(errors.LedgerUnavailable, match="Nothing is released"):
            paid(budget)
    admin("ALTER ROLE dpframe RESET ALL", "DROP FUNCTION IF EXISTS slow CASCADE")
    assert Ledger(postgres).budget("visits").spent.epsilon in (0.0, 0.001)
    Ledger(postgres).verify()


def test_an_idle_transaction_that_is_ended_by_the_server_releases_nothing(postgres, admin):
    admin("ALTER ROLE dpframe SET idle_in_transaction_session_timeout = 400")
    budget = Ledger(postgres).budget("visits", epsilon=1)

    def idle():
        with book_of(budget).write() as page:
            time.sleep(1)
            page.append("charge", {"loss": {}}, account.now())

    with pytest.raises(errors.LedgerUnavailable):
        idle()
    admin("ALTER ROLE dpframe RESET ALL")
    assert Ledger(postgres).verify() == {"visits": 1}


# Schemas


def test_a_table_of_the_same_name_elsewhere_is_not_taken_for_the_ledger_s(postgres, admin):
    """An open ledger stays in its schema: neither a schema put before it nor a
    temporary table takes its place.
    """
    budget = Ledger(postgres).budget("visits", epsilon=1)
    paid(budget)
    admin(
        "CREATE SCHEMA study",
        *(
            f"CREATE TABLE study.dpframe_{t} (LIKE public.dpframe_{t} INCLUDING ALL)"
            for t in ("budgets", "entries")
        ),
        "INSERT INTO study.dpframe_budgets SELECT * FROM public.dpframe_budgets",
        "INSERT INTO study.dpframe_entries SELECT * FROM public.dpframe_entries",
        "ALTER ROLE dpframe SET search_path = study, public",
    )
    book_of(budget)._store.engine.dispose()
    paid(budget)
    with book_of(budget)._store.engine.connect() as connection:
        connection.exec_driver_sql(
            "CREATE TEMP TABLE dpframe_budgets AS SELECT * FROM public.dpframe_budgets"
        )
        connection.exec_driver_sql(
            "CREATE TEMP TABLE dpframe_entries AS SELECT * FROM public.dpframe_entries"
        )
        connection.commit()
    paid(budget)
    assert admin("SELECT count(*) FROM public.dpframe_entries WHERE kind = 'charge'") == [(3,)]
    assert admin("SELECT count(*) FROM study.dpframe_entries WHERE kind = 'charge'") == [(1,)]
    # found where its ledger is, not where the path begins
    assert Ledger(postgres).verify() == {"visits": 7}


def test_two_schemas_are_two_ledgers(postgres, admin):
    admin("CREATE SCHEMA study")
    elsewhere = f"{postgres}&options=-csearch_path%3Dstudy"
    one = Ledger(postgres).budget("visits", epsilon=1)
    other = Ledger(elsewhere).budget("visits", epsilon=2)
    paid(one)
    assert (one.spent.epsilon, other.spent.epsilon) == (0.001, 0.0)
    assert Ledger(elsewhere).budget("visits").limit.epsilon == 2
    assert admin("SELECT count(*) FROM study.dpframe_budgets") == [(1,)]


@pytest.mark.parametrize("change", ["ALTER TABLE dpframe_entries SET UNLOGGED", "CREATE VIEW"])
def test_tables_that_lose_rows_in_a_crash_are_refused(postgres, admin, change):
    Ledger(postgres).budget("visits", epsilon=1)
    if change == "CREATE VIEW":
        admin(
            "ALTER TABLE dpframe_data RENAME TO kept",
            "CREATE VIEW dpframe_data AS SELECT * FROM kept",
        )
    else:
        admin(change)
    try:
        with pytest.raises(errors.LedgerError, match="Nothing is released"):
            Ledger(postgres)
    finally:
        if change == "CREATE VIEW":
            admin("DROP VIEW dpframe_data", "ALTER TABLE kept RENAME TO dpframe_data")


# Rows that are dropped, changed or hidden

RETURNS = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS '{}'"
SPOILS = {
    "an entry is dropped": ("BEFORE INSERT ON dpframe_entries", "BEGIN RETURN NULL; END"),
    "a table is dropped": ("BEFORE INSERT ON dpframe_data", "BEGIN RETURN NULL; END"),
    "the sum does not move": ("BEFORE UPDATE ON dpframe_budgets", "BEGIN RETURN NULL; END"),
    "the sum stays": (
        "BEFORE UPDATE ON dpframe_budgets",
        "BEGIN NEW.spent := OLD.spent; RETURN NEW; END",
    ),
    "the sum is put back": (
        "AFTER UPDATE OF head ON dpframe_budgets",
        "BEGIN UPDATE dpframe_budgets SET spent = OLD.spent WHERE name = OLD.name; "
        "RETURN NULL; END",
    ),
    "an entry is taken out": (
        "AFTER INSERT ON dpframe_entries",
        "BEGIN DELETE FROM dpframe_entries; RETURN NULL; END",
    ),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_trigger_that_spoils_what_is_written_releases_nothing(postgres, admin, spoil):
    budget = Ledger(postgres).budget("visits", epsilon=1)
    paid(budget)
    when, what = SPOILS[spoil]
    admin(
        RETURNS.format(what), f"CREATE TRIGGER spoil {when} FOR EACH ROW EXECUTE FUNCTION spoil()"
    )
    try:
        for each in (budget, Ledger(postgres).budget("visits")):
            with pytest.raises(errors.LedgerDamaged, match="does not store the new rows"):
                paid(each)
    finally:
        admin("DROP FUNCTION spoil CASCADE")
    paid(budget)
    Ledger(postgres).verify()


@pytest.mark.parametrize(
    "rule", ["INSERT TO dpframe_entries", "UPDATE TO dpframe_budgets", "INSERT TO dpframe_data"]
)
def test_a_rule_that_drops_rows_releases_nothing(postgres, admin, rule):
    budget = Ledger(postgres).budget("visits", epsilon=1)
    admin(f"CREATE RULE spoil AS ON {rule} DO INSTEAD NOTHING")
    with pytest.raises(errors.LedgerDamaged, match="does not store the new rows"):
        paid(budget)


@pytest.mark.parametrize("table", ["budgets", "entries", "data", "ledger"])
def test_rows_that_a_policy_hides_release_nothing(clerk, postgres, admin, table):
    """Hidden entries would let a name be drawn again, and a hidden budget be made anew."""
    budget = Ledger(clerk).budget("visits", epsilon=1)
    paid(budget, name="daily", plan={})
    admin(f"ALTER TABLE dpframe_{table} ENABLE ROW LEVEL SECURITY")
    admin(f"CREATE POLICY hides ON dpframe_{table} USING (false) WITH CHECK (true)")
    asked = {"name": "daily", "plan": {}}
    use = (
        (lambda: Ledger(clerk))
        if table == "ledger"
        else (lambda: budget.charge(MILLI, WHO, "count()", **asked))
    )
    with pytest.raises(errors.LedgerUnavailable, match="row-level security"):
        use()
    assert Ledger(postgres).budget("visits").spent.epsilon == 0.001


@pytest.mark.parametrize(
    "right", ["UPDATE ON dpframe_budgets", "INSERT ON dpframe_entries", "SELECT ON dpframe_entries"]
)
def test_a_role_without_rights_releases_nothing(clerk, postgres, admin, right):
    budget = Ledger(clerk).budget("visits", epsilon=1)
    paid(budget)
    admin(f"REVOKE {right} FROM clerk")
    with pytest.raises(errors.LedgerUnavailable, match="permission denied"):
        paid(budget, name="a", plan={})
    assert Ledger(postgres).budget("visits").spent.epsilon == 0.001
    Ledger(postgres).verify()


# Killed


def test_a_connection_that_is_dropped_in_the_transaction_releases_nothing(postgres, admin):
    everybody = "SELECT pid FROM pg_stat_activity WHERE usename = 'dpframe'"
    # of other tests, and of this one's administrator
    others = ", ".join(str(pid) for (pid,) in admin(everybody))
    budget = Ledger(postgres).budget("visits", epsilon=1)
    paid(budget)
    kill = f"SELECT pg_terminate_backend(pid) FROM ({everybody} AND pid NOT IN ({others})) AS ours"

    def dropped():
        with book_of(budget).write() as page:
            page.spent = page.spent + MILLI
            page.append("charge", {"loss": {}}, account.now())
            admin(kill)

    with pytest.raises(errors.LedgerUnavailable, match="Nothing is released"):
        dropped()
    assert budget.spent.epsilon == 0.001
    assert Ledger(postgres).verify() == {"visits": 3}
    admin(kill)  # an idle connection: the next charge opens another
    paid(budget)


def test_killed_processes_lose_budget_at_most(spenders, postgres, tmp_path):
    """SIGKILL in the middle: what anybody saw was charged and
    stored, and the lock is free again.
    """
    seen = tmp_path / "seen"
    said = spenders("kills", postgres, seen, 6)
    budget = Ledger(postgres).budget("killed")
    history = {charge.number: charge.status for charge in budget.history()}
    numbers = [int(line) for line in seen.read_text().split()]
    assert said["kills"] >= 6
    assert len(set(numbers)) == len(numbers) > 6
    assert all(history[number] == "released" for number in numbers)
    assert budget.spent.exact_epsilon == Fraction(len(history), 1000)
    paid(budget)
    Ledger(postgres).verify()


def test_an_older_dump_is_noticed_by_who_opened_the_ledger(postgres, admin):
    """A dump put back between opening and the first charge:
    the process knows the entries that are gone.
    """
    paid(Ledger(postgres).budget("visits", epsilon=1))
    dump = [
        json.dumps([list(map(str, row)) for row in admin(f"TABLE dpframe_{t}")])
        for t in ("budgets", "entries")
    ]
    admin("CREATE SCHEMA study")
    for table in ("budgets", "entries", "data"):
        admin(f"CREATE TABLE study.{table} AS TABLE dpframe_{table}")
    paid(Ledger(postgres).budget("visits"))
    budget = Ledger(postgres).budget("visits")  # and has charged nothing yet
    for table in ("budgets", "entries", "data"):
        admin(
            f"TRUNCATE dpframe_{table}", f"INSERT INTO dpframe_{table} SELECT * FROM study.{table}"
        )
    again = [
        json.dumps([list(map(str, row)) for row in admin(f"TABLE dpframe_{t}")])
        for t in ("budgets", "entries")
    ]
    assert again == dump
    with pytest.raises(errors.LedgerDamaged, match="older copy"):
        paid(budget)


# Verification


def test_verify_finds_what_was_changed_on_a_server_and_no_charge_in_between(
    postgres, admin, tmp_path, monkeypatch
):
    ledger, other = (Ledger(postgres, witness=tmp_path / "witness.sqlite") for _ in range(2))
    paid(ledger.budget("visits", epsilon=1))
    compared, budget = verify._unwitnessed, other.budget("visits")

    def charging(*arguments):
        monkeypatch.setattr(verify, "_unwitnessed", compared)
        paid(budget)
        return compared(*arguments)

    monkeypatch.setattr(verify, "_unwitnessed", charging)
    assert ledger.verify() == {"visits": 5}
    for change, words in (
        ("UPDATE dpframe_budgets SET spent = 'nothing'", "none that dpframe writes"),
        ("UPDATE dpframe_budgets SET subject = NULL", "its row is about None"),
        ("DELETE FROM dpframe_budgets", "there are entries of it, and no row"),
    ):
        admin(change)
        with pytest.raises(errors.LedgerDamaged, match=words):
            ledger.verify()


# Names


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", ["été", "日本 😀", "a'b\"c;--", "%s %(b)s", "x" * 3000, "=cmd() | \\ `"]
)
def test_names_of_any_letters(place, name):
    budget = Ledger(place).budget(name, epsilon=1)
    paid(budget, name=name, plan={"p": name})
    assert (
        Ledger(place).budget(name).charge(MILLI, WHO, "count()", name=name, plan={"p": name}).stored
        is not None
    )
    assert Ledger(place).budgets() == [name]
    assert Ledger(place).verify() == {name: 3}
    assert unicodedata.normalize("NFD", "é") not in Ledger(place).budgets()


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x\udfff", "", " \t"])
def test_names_that_no_database_keeps_are_refused(place, name):
    ledger = Ledger(place)
    with pytest.raises(errors.InvalidArgument):
        ledger.budget(name, epsilon=1)
    budget = ledger.budget("visits", epsilon=1)
    with pytest.raises(errors.InvalidArgument):
        budget.charge(MILLI, WHO, "count()", name=name)
    assert budget.spent.epsilon == 0
