"""Roles of PostgreSQL, with the grants of the documentation: who makes budgets, and who spends what."""

import re
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from dpframe import errors
from dpframe.budget import Ledger, Loss
from postgres_server import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "team.md"
WHO = "unit 'id', add-remove"
SAID = {"by": "Ada", "why": "the disk broke"}


def run(url, script):
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in filter(str.strip, script.split(";")):
                connection.execute(sa.text(statement))
    finally:
        engine.dispose()


def clean(url):
    run(url, "DROP SCHEMA IF EXISTS privacy CASCADE")
    for role in ("ana", "bo", "spenders", "steward"):
        run(url, f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def urls(postgres_server):
    """The URL of each role, after both scripts of the page."""
    roles, grants = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    clean(postgres_server)
    run(postgres_server, roles)
    urls = {name: postgres_server.replace("dpframe@", f"{name}@") for name in ("steward", "ana", "bo")}
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
    out = pl.DataFrame({"id": [1, 2]}).dp(unit="id", budget=budget).count_units().release(epsilon=0.5, name="people")
    with pytest.raises(errors.BudgetMismatch, match="'ana' spends here, and spender='bo' was typed"):
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
        with pytest.raises((errors.LedgerUnavailable, errors.UnsupportedOperation), match=r"permission|may not make"):
            call()
        assert Ledger(urls["steward"]).budgets() == ["orders"]
        assert opened(urls, "steward").entries() == before
    if who == "ana":
        pay(opened(urls, "bo"))


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
    own.transfer("ana", epsilon=0.5)
    pay(ana.allocate(name="ana"), "1.5")
    for name in ("ana", "bo"):  # nobody took it, so everybody may spend it
        pay(free[name].allocate(name="all"))
    with pytest.raises(errors.CapExceeded):
        ana.allocate(name="more", epsilon=3)
    steward.allocate(name="bo").close()
    assert {name: loss.epsilon for name, loss in steward.spenders.items()} == {"bo": 0.1, "ana": 1.5}
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
    """The next charge is refused, and a release that runs is neither stored nor shown. Nothing else is lost."""
    budget = opened(urls, "ana")
    pay(budget)
    running = budget.charge(Loss.charged(Fraction(1), Fraction(0)), WHO, "count()", name="running", plan={})
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
    run(postgres_server, "ALTER ROLE ana SET search_path = privacy, public; GRANT CREATE ON SCHEMA public TO ana")
    run(postgres_server, "REVOKE USAGE ON SCHEMA privacy FROM spenders")
    try:
        with pytest.raises(errors.LedgerUnavailable, match="may not use the schema 'privacy'"):
            Ledger(urls["ana"]).budget("orders", epsilon=10)
    finally:
        run(postgres_server, "REVOKE CREATE ON SCHEMA public FROM ana")
