"""A series that a part of a budget pays for: its price, and that of a night that is
measured again, are the part's.
"""

import csv
import json

import polars as pl
import pytest

import dpframe as dp
from dpframe import dpframe_check, engine, errors
from dpframe.budget.allowance.pace import AllowanceRecord

NIGHTS = [f"2026-03-{night:02d}" for night in range(1, 7)]
ROWS = pl.DataFrame({"id": range(60), "night": [NIGHTS[i % 6] for i in range(60)]})
PARTS = {  # the limit of the budget, the part, and the price of the series
    "pure": ({"epsilon": 9}, {"name": "bo", "epsilon": 3}, {"epsilon": 1}),
    "gaussian": (
        {"epsilon": 9, "delta": 1e-4},
        {"name": "bo", "epsilon": 3, "delta": 1e-5},
        {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"},
    ),
    "rho": ({"rho": 1}, {"name": "bo", "rho": 0.5}, {"rho": 0.1}),
    "nights": ({"epsilon": 9}, {"nights": 2, "epsilon": 6}, {"epsilon": 1}),
    "nights in rho": (
        {"epsilon": 9, "delta": 1e-4},
        {"nights": 90, "epsilon": 8, "delta": 1e-5},
        {"rho": 0.002},
    ),
}


def asked(account):
    return dp.protect(ROWS, unit="id", budget=account).count(max_rows=1)


def killed(monkeypatch, series, account, night):
    with monkeypatch.context() as patch:
        patch.setattr(engine, "totals", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            series.add(asked(account), night)


def amount(loss):
    return loss.exact_epsilon if loss.exact_rho is None else loss.exact_rho


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_pays_for_all_of_a_series_whoever_reopens_it(tmp_path, monkeypatch, kind):
    limit, taken, price = PARTS[kind]
    ledger = dp.Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", **limit)
    part = budget.for_spender("bo").allocate(**taken)
    paid, left = budget.spent, amount(part.remaining)
    series = part.series("s", every="1d", horizon=6, unit_periods=1, on="night", **price)
    outs = [series.add(asked(part), night) for night in NIGHTS[:2]]
    own = amount(part.spent)
    assert own == amount(budget.history()[1].price) > 0
    killed(monkeypatch, series, part, NIGHTS[2])
    again = budget.series("s", on="night").add(asked(budget), NIGHTS[2], on_pending="retry")
    assert amount(part.spent) == own + amount(again.cost) == left - amount(part.remaining)
    assert amount(again.cost) > 0
    assert budget.spent == paid, "nothing of it is paid by the budget itself"
    # What is said of it:
    lines = budget.history()
    assert [(line.name, line.status, line.paid_by) for line in lines[1:]] == [
        ("series s", "open", 2),
        *((f"s {night}", "released", 3) for night in NIGHTS[:2]),
        (f"s {NIGHTS[2]}", "lost", 3),
        (f"s {NIGHTS[2]}", "released", 2),
    ]
    assert [(line.name, line.status) for line in part.history()] == [
        (line.name, line.status) for line in lines[1:]
    ]
    assert {line.spender for line in lines} == {"bo"}
    rows = list(csv.DictReader(ledger.export("csv").splitlines()))
    assert [row["paid_by"] for row in rows] == ["", "2", "3", "3", "3", "2"]
    prices = [float(row["rho"] or row["epsilon"]) for row in rows]
    assert prices[1:] == pytest.approx([float(own), 0, 0, 0, float(amount(again.cost))])
    assert f"series s: {lines[1].price} paid" in repr(budget.forecast())
    certificate = json.loads(json.dumps(outs[1].certificate()))
    check = dpframe_check.Check(
        certificate, json.loads(ledger.export("json")), outs[1].to_csv().encode()
    )
    assert check.verdict == "PROVED", check.text
    assert ledger.verify() == {"b": len(budget.entries())}


def test_a_closed_part_has_its_rest_back_and_pays_for_no_night_again(tmp_path, monkeypatch):
    ledger = dp.Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=4)
    part = budget.allocate(name="bo", epsilon=3)
    series = part.series("s", every="1d", horizon=6, unit_periods=1, on="night", epsilon=1)
    series.add(asked(part), NIGHTS[0])
    killed(monkeypatch, series, part, NIGHTS[1])
    assert part.close().epsilon == 2
    assert budget.remaining.epsilon == 3
    with pytest.raises(errors.BudgetExceeded, match="this allowance was closed"):
        series.add(asked(part), NIGHTS[1], on_pending="retry")
    assert series.add(asked(part), NIGHTS[2]).cost.epsilon == 0, "it was paid before"
    assert ledger.verify() == {"b": len(budget.entries())}


def test_what_a_part_has_not_is_refused_and_verify_sees_what_is_left_out(tmp_path, monkeypatch):
    """The negative control: were nights that are measured again not
    counted, verify would find it.
    """
    ledger = dp.Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=9)
    part = budget.allocate(name="bo", epsilon=1.2)
    before = budget.entries()
    with pytest.raises(errors.BudgetExceeded, match=r"ε = 1\.2 is left of this allowance"):
        part.series("t", every="1d", horizon=6, unit_periods=1, on="night", epsilon=1.3).add(
            asked(part), NIGHTS[0]
        )
    assert budget.entries() == before
    series = part.series("s", every="1d", horizon=6, unit_periods=1, on="night", epsilon=1)
    series.add(asked(part), NIGHTS[0])
    killed(monkeypatch, series, part, NIGHTS[1])
    with pytest.raises(errors.BudgetExceeded, match=r"ε = 0\.2 is left of this allowance"):
        series.add(asked(part), NIGHTS[1], on_pending="retry")
    ledger.verify()
    monkeypatch.setattr(AllowanceRecord, "check", lambda *_: None)
    series.add(asked(part), NIGHTS[1], on_pending="retry")
    with pytest.raises(errors.LedgerDamaged, match="more than the allowance of charge 2 was spent"):
        ledger.verify()


def test_a_copy_that_is_adopted_measures_no_night_of_it_for_nothing(tmp_path):
    ledger = dp.Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=9)
    part = budget.allocate(name="bo", epsilon=3)
    series = part.series("s", every="1d", horizon=6, unit_periods=1, on="night", epsilon=1)
    series.add(asked(part), NIGHTS[0])
    ledger.backup(tmp_path / "copy.sqlite")
    series.add(asked(part), NIGHTS[1])
    ledger.close()
    said = {"by": "Ada", "why": "the disk broke", "lost": {"b": 0.001}}
    again = dp.Ledger.restore(tmp_path / "copy.sqlite", tmp_path / "b.sqlite", **said).budget("b")
    bo = again.allocate(name="bo")
    with pytest.raises(errors.ReleasePending, match="goes on from an older copy"):
        bo.series("s", on="night").add(asked(bo), NIGHTS[1])
    out = bo.series("s", on="night").add(asked(bo), NIGHTS[1], on_pending="retry")
    assert bo.spent.exact_epsilon == 1 + out.cost.exact_epsilon > 1
