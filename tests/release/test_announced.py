"""Log records and callbacks of releases: budget, name, price and time, and never data."""

import datetime as dt
import json
import logging

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.noise import bits
from dpframe.testing import Words

CELLS = ["Rosebud", "Xanadu"]
ROWS = pl.DataFrame({"id": [1, 1, 2], "place": [*CELLS, CELLS[0]], "x": [1.0, 2.0, 31337.0]})


@pytest.fixture
def seen():
    events = []
    stop = dp.on_release(events.append)
    yield events
    stop()


def test_a_series_is_told_at_its_whole_price(tmp_path, seen, caplog):
    """So the prices that were told add up to what was spent. Its nights have none."""
    budget = dp.Ledger(tmp_path / "a.sqlite").budget("visits", epsilon=1)
    asked(budget).release(epsilon=0.25)
    caplog.clear()  # of the warning of a new budget
    with caplog.at_level("INFO", logger="dpframe"):
        for night in ("2026-03-01", "2026-03-02", "2026-03-02"):
            series = budget.series(
                "s", every="1d", horizon=3, epsilon=0.5, unit_periods=1, start="2026-03-01"
            )
            series.add(asked(budget), night)
    charged = [event for event in seen if event.what == "charged"]
    assert [(event.name, event.price.epsilon) for event in charged[1:]] == [
        ("series s", 0.5),
        ("s 2026-03-01", 0),
        ("s 2026-03-02", 0),
    ]
    assert sum(event.price.epsilon for event in charged) == budget.spent.epsilon
    assert (
        caplog.records[0].getMessage() == "visits, series s: charged ε = 0.5 for all of its periods"
    )


def asked(budget, rows=ROWS):
    return dp.protect(rows, unit="id", budget=budget, max_rows=2).sum("x", bounds=(0, 100))


def test_each_step_is_told(tmp_path, seen, caplog):
    budget = dp.Ledger(tmp_path / "a.sqlite").budget("visits", epsilon=1)
    caplog.clear()
    with caplog.at_level("INFO", logger="dpframe"):
        for _ in range(2):
            asked(budget).release(epsilon=0.25, name="a")
        asked(dp.Budget(rho=1)).release(rho=0.5)
    whats = ["charged", "released", "stored", "charged", "released"]
    assert [event.what for event in seen] == whats
    assert [record.dpframe["what"] for record in caplog.records] == whats
    assert [(event.budget, event.name) for event in seen] == [("visits", "a")] * 3 + [
        (None, None)
    ] * 2
    assert [event.seconds is None for event in seen] == [True, False, True, True, False]
    first, *_, last = (json.loads(json.dumps(record.dpframe)) for record in caplog.records)
    assert (first["price"], first["number"]) == ({"epsilon": 0.25, "delta": 0.0}, 2)
    assert last["price"] == {"rho": 0.5, "delta": 0.0}
    assert caplog.messages[0] == "visits, a: charged ε = 0.25"


def test_each_step_tells_its_time_and_who_spends(seen, caplog):
    """What is told of who spends is that of the history, for a
    budget, a part of it, and a series.
    """
    budget = dp.Budget(epsilon=2)
    bo = budget.for_spender("bo")
    for account in (bo, bo.allocate(name="bo", epsilon=0.5), budget):
        asked(account).release(epsilon=0.125)
    with caplog.at_level("INFO", logger="dpframe"):
        asked(budget).release(epsilon=0.125, name="a", spender="ana")
        asked(bo).release(epsilon=0.125, name="a")
        with pytest.raises(errors.BudgetExceeded):
            asked(bo).release(epsilon=9)
        strict = ROWS.lazy().with_columns(x=pl.col("place").cast(pl.Int64))
        with pytest.raises(errors.EngineError):
            asked(bo, strict).release(epsilon=0.125)
    series = bo.series("s", every="1d", horizon=3, epsilon=0.5, unit_periods=1, start="2026-03-01")
    series.add(asked(bo), "2026-03-01")
    spenders = {line.number: line.spender for line in budget.history()} | {0: "bo"}
    assert [event.spender for event in seen] == [spenders[event.number] for event in seen]
    assert {event.what for event in seen} == {"charged", "released", "stored", "refused", "failed"}
    times = [event.when for event in seen]
    assert times == sorted(times)
    charges = {line.number: line.when for line in budget.history()}
    assert all(charges.get(event.number, event.when) <= event.when for event in seen)
    told = [json.loads(json.dumps(record.dpframe)) for record in caplog.records]
    assert [line["spender"] for line in told] == ["ana", "ana", "ana", "bo", "bo", "bo"]
    assert all(dt.datetime.fromisoformat(line["when"]).tzinfo == dt.UTC for line in told)


def test_failures_are_told_and_hold_no_data(seen, caplog):
    strict = ROWS.lazy().with_columns(y=pl.col("place").cast(pl.Int64))
    query = dp.protect(strict, unit="id", budget=dp.Budget(epsilon=1), max_rows=2).sum(
        "y", bounds=(0, 100)
    )
    with caplog.at_level("DEBUG", logger="dpframe"), pytest.raises(errors.EngineError):
        query.release(epsilon=0.25, name="b")
    assert [event.what for event in seen] == ["charged", "failed"]
    words = caplog.text + str([vars(record) for record in caplog.records]) + str(seen)
    assert not any(cell in words for cell in (*CELLS, "31337"))


def test_a_callback_that_fails_changes_nothing(caplog):
    def fails(event):
        raise ZeroDivisionError

    stops = [dp.on_release(fails), dp.on_release(fails)]
    with caplog.at_level("ERROR", logger="dpframe"):
        out = asked(dp.Budget(epsilon=1)).release(epsilon=0.25)
    assert out.cost.epsilon == 0.25
    assert len(caplog.records) == 4
    for stop in stops:
        stop()
        stop()
    caplog.clear()
    asked(dp.Budget(epsilon=1)).release(epsilon=0.25)
    assert caplog.records == []
    with pytest.raises(errors.InvalidArgument, match="on_release"):
        dp.on_release("print")


def test_series_allowances_and_tune_are_told(seen):
    budget = dp.Budget(epsilon=4, delta=1e-6)
    night = budget.allocate(nights=3, epsilon=1)
    asked(night).release(epsilon=0.25)
    series = budget.series("daily", every="1d", epsilon=1, unit_periods=1)
    count = dp.protect(ROWS, unit="id", budget=budget).count(max_rows=2)
    series.add(count, period="2026-01-01")
    count.tune({"max_rows": [1, 2]}, epsilon=0.1)
    assert [event.what for event in seen] == [
        "charged",
        "released",
        "charged",
        *["charged", "released"] * 2,
    ]
    assert [event.name for event in seen][2:5] == ["series daily", *["daily 2026-01-01"] * 2]


def test_nothing_is_logged_where_nobody_configured_it(capfd):
    asked(dp.Budget(epsilon=1)).release(epsilon=0.25)
    assert logging.getLogger("dpframe").level == logging.NOTSET
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", ["callback", "handler"])
def test_noise_that_a_callback_fixes_is_not_that_of_the_release(tmp_path, way):
    """What is called after the charge changes nothing of the release, which is paid and stored."""
    entered = []

    def fix(*_):
        entered.append(bits._source.set(Words("fixed")))

    budget, handler = (
        dp.Ledger(tmp_path / "a.sqlite").budget("visits", epsilon=1),
        logging.Handler(),
    )
    handler.emit = fix
    stop = (
        dp.on_release(fix)
        if way == "callback"
        else lambda: dp.release.announced.LOG.removeHandler(handler)
    )
    if way == "handler":
        dp.release.announced.LOG.addHandler(handler)
        dp.release.announced.LOG.setLevel("INFO")
    try:
        numbers = {asked(budget).release(epsilon=0.25).value for _ in range(4)}
    finally:
        stop()
        dp.release.announced.LOG.setLevel(logging.NOTSET)
    assert len(entered) == 8
    assert len(numbers) > 1
    assert [line.status for line in budget.history()] == ["released"] * 4


def test_a_refusal_is_told_before_a_row_is_read(tmp_path, seen, caplog):
    """The tables are neighbours with cells on which a release fails;
    what is told of a refusal is the same.
    """
    told = []
    for place in ("1", *CELLS):
        ledger = dp.Ledger(tmp_path / f"{place}.sqlite")
        budget = ledger.budget("visits", epsilon=1, caps=dp.Caps(release=0.75))
        rows = pl.LazyFrame({"id": [1], "place": [place]}).with_columns(
            y=pl.col("place").cast(pl.Int64)
        )
        query = dp.protect(rows, unit="id", budget=budget, max_rows=2).sum("y", bounds=(0, 100))
        seen.clear()
        caplog.clear()
        with caplog.at_level("INFO", logger="dpframe"):
            for epsilon in (0.8, 2):
                with pytest.raises(errors.BudgetExceeded):
                    query.release(epsilon=epsilon, name="a")
            budget.charge(
                dp.budget.Loss.none(), "unit 'id', add-remove", "count()", name="b", plan={}
            )
            with pytest.raises(errors.ReleaseMismatch):
                query.release(epsilon=0.1, name="b")
        timeless = [event._replace(when=None) for event in seen]
        told.append((timeless, caplog.messages, [record.levelname for record in caplog.records]))
    assert told[0] == told[1] == told[2]
    events, messages, levels = told[0]
    assert [(event.what, event.refusal, event.number) for event in events] == [
        ("refused", "CapExceeded", 0),
        ("refused", "BudgetExceeded", 0),
        ("refused", "ReleaseMismatch", 0),
    ]
    assert messages[0] == "visits, a: refused ε = 0.8: CapExceeded"
    assert set(levels) == {"WARNING"}
    assert budget.failures == (0, 0)
