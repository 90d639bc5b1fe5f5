"""Failures after the charge: recorded before anybody sees them, shown, and
after two of them acknowledged.
"""

import json
import sqlite3
import threading
from fractions import Fraction

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.__main__ import main
from dpframe.budget import Budget, Ledger, Loss
from dpframe.noise import bits
from inside import book_of

WHO = "unit 'id', add-remove"
TINY = Loss.charged(Fraction(1, 10**9), Fraction(0))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def budget(request, tmp_path):
    if request.param == "memory":
        return Budget(epsilon=3, delta=1e-3)
    place = (
        tmp_path / "study.sqlite"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )
    return Ledger(place).budget("visits", epsilon=3, delta=1e-3)


def strict(budget, *words):
    """A lazy frame with a cast of the user's own, which fails on a cell that is no number."""
    rows = {
        "id": range(len(words)),
        "x": words,
        "g": ["a", "b"] * (len(words) // 2) + ["a"] * (len(words) % 2),
    }
    return pl.LazyFrame(rows).with_columns(pl.col("x").cast(pl.Int64)).dp(unit="id", budget=budget)


def relation(budget, *words):
    table = duckdb.connect()
    table.execute("CREATE TABLE t (id INTEGER, x TEXT)")
    table.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(words)))
    return dp.protect(
        table.sql("SELECT id, CAST(x AS INTEGER) AS x FROM t"), unit="id", budget=budget
    )


def summed(frame, **options):
    return frame.sum("x", bounds=(0, 9), max_rows=1).release(epsilon=1e-9, **options)


AFTERWARDS = {  # what a release does with its answer before it is stored, each by its module
    "packed": "dpframe.release.run",
    "charged_facts": "dpframe.release.run",
    "ran_by": "dpframe.release.run",
    "shown_of": "dpframe.release.run",
    "packed_blocks": "dpframe.release.kinds.series.series",
    "certified_period": "dpframe.release.kinds.series.series",
    "expected_errors": "dpframe.release.tune",
}


@pytest.mark.parametrize("step", AFTERWARDS)
def test_what_fails_after_rows_were_read_is_a_failure_without_a_cell(monkeypatch, step):
    """An answer that cannot be described, packed or certified is recorded as failed,
    and its error shows no number.
    """

    def broken(*_, **__):
        raise ValueError("the cell 'x7'")

    budget = Budget(epsilon=9)
    frame = dp.protect(
        pl.DataFrame({"id": [1, 2], "x": [3.0, 4.0]}), unit="id", budget=budget, max_rows=1
    )
    series = budget.series("daily", every="1d", horizon=9, epsilon=1, unit_periods=1)
    series.add(frame.count(), period="2026-01-01")
    question = frame.mean("x", bounds=(0, 9))
    asked = {
        "dpframe.release.run": lambda: question.release(epsilon=1, name="mean"),
        "dpframe.release.kinds.series.series": lambda: series.add(
            frame.count(), period="2026-01-02"
        ),
        "dpframe.release.tune": lambda: frame.count(max_rows=2).tune(
            {"max_rows": [1, 2]}, epsilon=1, at=1
        ),
    }[AFTERWARDS[step]]
    before = len(budget.history())
    monkeypatch.setattr(f"{AFTERWARDS[step]}.{step}", broken)
    with pytest.raises(errors.EngineError) as raised:
        asked()
    assert "x7" not in str(raised.value)
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert [line.status for line in budget.history()[before:]] == ["failed"]
    assert budget.failures == (1, 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("made", [strict, relation])
def test_a_cell_is_asked_for_twice_and_then_no_more(budget, made):
    """Whether somebody's cell is a text is one bit for each failing
    release: two are had for 1e-9 each.
    """
    frame, sound = made(budget, "1", "x"), made(budget, "1", "2")
    for count in (1, 2):
        with pytest.raises(errors.EngineError):
            summed(frame)
        assert budget.failures == (count, count)
    spent, entries = budget.spent, book_of(budget).entries()
    for other in (frame, sound):
        with pytest.raises(
            errors.FailuresUnacknowledged,
            match=r"Nothing was spent.*budget\.acknowledge_failures\(\)",
        ):
            summed(other)
    assert (budget.spent, book_of(budget).entries()) == (spent, entries)
    assert budget.acknowledge_failures(by="Ada") == 2
    assert budget.failures == (2, 0)
    summed(sound)
    assert [c.status for c in budget.history()] == ["failed", "failed", "released"]
    assert budget.acknowledge_failures() == 0


def test_failures_of_all_spenders_count_together(budget):
    """Under other names, from a part or a series, nobody has more bits than two; the refusal names
    the line to type, and the history who failed.
    """
    bo = budget.for_spender("bo").allocate(name="bo", epsilon=1, delta=1e-6)
    series = budget.series("s", every="1d", horizon=3, epsilon=0.1, unit_periods=1)
    for account in (bo, budget.for_spender("ana")):
        with pytest.raises(errors.EngineError):
            summed(strict(account, "1", "x"))
    spent, entries = budget.spent, book_of(budget).entries()
    sound = strict(budget.for_spender("cy"), "1", "2")
    for call in (
        lambda: summed(sound),
        lambda: summed(strict(bo, "1", "2")),
        lambda: series.add(strict(budget, "1", "2").count(max_rows=1), "2026-01-01"),
        lambda: budget.for_spender("cy").allocate(name="cy", epsilon=0.5),
    ):
        with pytest.raises(errors.FailuresUnacknowledged, match="by whoever spends") as refused:
            call()
    command = "python -m dpframe ledger acknowledge"
    assert (command in str(refused.value)) == (budget.name is not None)
    assert (budget.spent, book_of(budget).entries()) == (spent, entries)
    failed = [line.spender for line in budget.history() if line.status == "failed"]
    assert failed == ["bo", "ana"]
    budget.for_spender("cy").acknowledge_failures()  # whoever may charge it
    summed(sound)


def test_an_acknowledgement_is_an_entry(budget):
    for _ in range(2):
        budget.fail(budget.charge(TINY, WHO, "count()"))
    budget.acknowledge_failures(by="Ada")
    budget.fail(budget.charge(TINY, WHO, "count()"))
    budget.acknowledge_failures()
    entries = [e for e in book_of(budget).entries() if e.kind == "acknowledgement"]
    assert [(e.body["failures"], e.body["failed"]) for e in entries] == [(2, 2), (1, 3)]
    assert entries[0].body["by"] == "Ada"
    assert entries[1].body["by"]
    assert entries[0].when.tzinfo is not None
    with pytest.raises(errors.InvalidArgument, match="by="):
        budget.acknowledge_failures(by=" ")


def test_every_later_statement_says_it(budget):
    sound, frame = strict(budget, "1", "2"), strict(budget, "1", "x")
    before = summed(sound).report()
    with pytest.raises(errors.EngineError):
        summed(frame)
    one = summed(sound).report()
    budget.acknowledge_failures()
    with pytest.raises(errors.EngineError):
        summed(frame)
    after = summed(sound).report()
    assert "failed after the charge" not in before
    assert "One earlier release from this budget failed after the charge (0 acknowledged)" in one
    assert "2 earlier releases from this budget failed after the charge (1 acknowledged)" in after
    assert "2 earlier releases from this budget failed" in after.to_html()
    assert json.loads(after.to_json())["budget"]["failures"] == {"failed": 2, "unacknowledged": 1}
    assert json.loads(before.to_json())["budget"]["failures"] == {"failed": 0, "unacknowledged": 0}


def test_a_stored_answer_is_given_whatever_failed(budget):
    sound, frame = strict(budget, "1", "2"), strict(budget, "1", "x")
    first = summed(sound, name="sum").value
    for _ in range(2):
        with pytest.raises(errors.EngineError):
            summed(frame)
    assert summed(sound, name="sum").value == first
    with pytest.raises(errors.FailuresUnacknowledged):
        summed(sound, name="sum", refresh=True)


def test_a_failed_name_is_paid_again_or_not_at_all(budget):
    sound, frame = strict(budget, "1", "2"), strict(budget, "1", "x")
    with pytest.raises(errors.EngineError):
        summed(frame, name="sum")
    with pytest.raises(
        errors.ReleasePending, match=r"failed after that.*refresh=True.* again costs ε = "
    ):
        summed(sound, name="sum")
    value = summed(sound, name="sum", refresh=True).value
    assert summed(sound, name="sum").value == value
    assert [c.status for c in budget.history()] == ["failed", "released"]


PATHS = {
    "release": lambda f: summed(f),
    "auto": lambda f: (
        f.group_by("g", keys=["a", "b"], limits=dp.Auto())
        .sum("x", bounds=(0, 9))
        .release(epsilon=1)
    ),
    "tune": lambda f: (
        f.filter(dp.col("x") > 0)
        .sum("x", bounds=(0, 9), max_rows=1)
        .tune({"max_rows": [1, 2]}, epsilon=0.1, at=1)
    ),
    "batch": lambda f: f.budget.plan([f.sum("x", bounds=(0, 9), max_rows=1)], epsilon=1).release(),
    "marginals": lambda f: f.marginals(
        ["x", "g"], keys={"x": [1, 2], "g": ["a", "b"]}, max_rows=1
    ).release(epsilon=1, delta=1e-6),
    "hierarchy": lambda f: f.hierarchy(
        ["g", "x"], [("a", 1), ("a", 2), ("b", 1)], max_rows=1
    ).release(epsilon=1),
    "partition": lambda f: summed(f.partition("x", [1, 2], max_groups=1)[1]),
    "keys": lambda f: f.group_by("x", max_groups=1).keys().release(epsilon=1, delta=1e-6),
    "crosstab": lambda f: f.crosstab(
        "x", "g", keys={"x": [1], "g": ["a", "b"]}, margins="measured", max_rows=1
    ).release(epsilon=1),
}


# too few units: it is about what fails
@pytest.mark.filterwarnings("ignore:The released table is empty")
@pytest.mark.parametrize("path", PATHS)
def test_every_way_to_release_records_it(path):
    budget = Budget(epsilon=10, delta=1e-3)
    PATHS[path](strict(budget, "1", "2"))
    assert budget.failures == (0, 0)
    for count in (1, 2):
        with pytest.raises(errors.EngineError):
            PATHS[path](strict(budget, "1", "x"))
        assert budget.failures == (count, count)
        assert budget.history()[-1].status == "failed"
    with pytest.raises(errors.FailuresUnacknowledged):
        PATHS[path](strict(budget, "1", "2"))


def test_a_one_liner_records_it():
    budget = Budget(epsilon=1)
    rows = pl.LazyFrame({"id": [1, 2], "x": ["1", "x"]}).with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(errors.EngineError):
        rows.dp.sum("x", bounds=(0, 9), unit="id", budget=budget, max_rows=1, epsilon=0.1)
    assert budget.failures == (1, 1)


@pytest.mark.parametrize("error", [MemoryError, KeyError, RecursionError])
@pytest.mark.parametrize("place", ["engine", "noise"])
def test_an_error_of_any_kind_is_recorded(monkeypatch, error, place):
    def broken(*_):
        raise error

    budget = Budget(epsilon=1)
    query = pl.DataFrame({"id": [1]}).dp(unit="id", budget=budget).count_units()
    owner, name = (engine, "totals") if place == "engine" else (bits, "random_words")
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(errors.EngineError):  # its own words are withheld, whatever raised it
        query.release(epsilon=0.1)
    assert budget.failures == (1, 1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_pending_and_no_failure(monkeypatch, stop):
    """A person stopped it, as a kill does; no cell can."""

    def stopped(*_):
        raise stop

    budget = Budget(epsilon=1)
    query = pl.DataFrame({"id": [1]}).dp(unit="id", budget=budget).count_units()
    monkeypatch.setattr(engine, "totals", stopped)
    with pytest.raises(stop):
        query.release(epsilon=0.1)
    assert budget.failures == (0, 0)
    assert [c.status for c in budget.history()] == ["pending"]


def test_a_failure_that_cannot_be_recorded_looks_like_a_table_that_cannot_be_stored(
    tmp_path, monkeypatch
):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    totals, seen = engine.totals, []

    def gone(*args):
        path.rename(tmp_path / "elsewhere.sqlite")
        return totals(*args)

    monkeypatch.setattr(engine, "totals", gone)
    for words in (["1", "2"], ["1", "x"]):
        with pytest.raises(errors.LedgerError) as caught:
            summed(strict(budget, *words))
        seen.append(
            (
                type(caught.value),
                str(caught.value),
                caught.value.__context__,
                caught.value.__cause__,
            )
        )
        (tmp_path / "elsewhere.sqlite").rename(path)
    assert seen[0] == seen[1]


def test_threads_see_each_others_failures(budget):
    """Sixteen threads that fail one after another:
    each that saw two errors is refused, and none is lost.
    """
    ended = []

    def ask():
        for _ in range(3):
            try:
                receipt = budget.charge(TINY, WHO, "count()")
            except errors.FailuresUnacknowledged:
                ended.append("refused")
                return
            budget.fail(receipt)
            ended.append("failed")

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = ended.count("failed")
    # each thread has at most one charge under way when the second failure is recorded
    assert 2 <= failed <= 16 + 1
    assert budget.failures == (failed, failed)
    assert len(budget.history()) == failed


def test_processes_share_the_count(tmp_path):
    path = tmp_path / "study.sqlite"
    one, other = (Ledger(path).budget("visits", epsilon=1) for _ in range(2))
    one.fail(one.charge(TINY, WHO, "count()"))
    other.fail(other.charge(TINY, WHO, "count()"))
    for budget in (one, other):
        with pytest.raises(errors.FailuresUnacknowledged):
            budget.charge(TINY, WHO, "count()")
    other.acknowledge_failures()
    one.charge(TINY, WHO, "count()")
    assert Ledger(path).verify() == {"visits": 7}


def test_the_command_line_shows_failures(tmp_path, capsys):
    path = str(tmp_path / "study.sqlite")
    ledger = Ledger(path)
    budget = ledger.budget("visits", epsilon=1)
    budget.fail(budget.charge(TINY, WHO, "count()"))
    assert main(["ledger", "show", path]) == 0
    shown = capsys.readouterr().out
    assert "1 failed after the charge, 1 not acknowledged" in shown
    assert "  failed  " in shown
    assert ",failed," in ledger.export("csv")
    assert [e["kind"] for e in json.loads(ledger.export("json"))["visits"]["entries"]] == [
        "open",
        "charge",
        "failure",
    ]
    assert main(["ledger", "verify", path]) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE dpframe_budgets SET acknowledged = 1", "of failures"),
        ("UPDATE dpframe_budgets SET failures = 0", "of failures"),
        ("DELETE FROM dpframe_entries WHERE kind = 'failure'", "is missing"),
    ],
)
def test_verify_finds_a_failure_that_was_taken_back(tmp_path, change, words):
    path = tmp_path / "study.sqlite"
    budget = Ledger(path).budget("visits", epsilon=1)
    budget.fail(budget.charge(TINY, WHO, "count()"))
    budget.charge(TINY, WHO, "count()")
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(errors.LedgerDamaged, match=words):
        Ledger(path).verify()
