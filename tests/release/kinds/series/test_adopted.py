"""A series in a copy that is adopted: nights that were measured after the copy are
never measured again for nothing.
"""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from dpframe import testing
from dpframe.audit.replaying import given, loss
from dpframe.budget import Ledger
from dpframe.errors import BudgetExceeded, ReleasePending
from dpframe.release.kinds.series.progress import Place

SAID = {"by": "Ada", "why": "the disk broke"}
NIGHTS = [f"2026-03-{night:02d}" for night in range(1, 7)]
REST = [(unit, night) for unit in range(5) for night in NIGHTS[:2]]
PRICES = {
    "pure": ({"epsilon": 9}, {"epsilon": 1}),
    "gaussian": ({"epsilon": 9, "delta": 1e-3}, {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"}),
    "rho": ({"rho": 5}, {"rho": 0.1}),
}


def series_of(ledger, price="pure"):
    """The series "s" of the budget "b" of a ledger, and this budget."""
    limit, paid = PRICES[price]
    budget = ledger.budget("b", **limit)
    return budget.series(
        "s", every="1d", horizon=6, unit_periods=1, on="night", start=NIGHTS[0], **paid
    ), budget


def add(ledger, night, price="pure", rows=REST, **options):
    """A night, from the budget "b" of a ledger."""
    series, budget = series_of(ledger, price)
    table = pl.DataFrame(rows, {"u": pl.Int64, "night": pl.String}, orient="row")
    return series.add(
        dp.protect(table, unit="u", budget=budget, max_rows=1).count(), night, **options
    )


def lose(ledger, folder, price="pure", rows=REST, **options):
    """Two nights, a backup, two more, and the ledger that goes on from the backup."""
    for night in NIGHTS[:2]:
        add(ledger, night, price, rows)
    ledger.backup(folder / "copy.sqlite")
    told = []
    stop = dp.on_release(
        lambda event: told.append(event.price) if event.what == "charged" else None
    )
    for night in NIGHTS[2:4]:
        add(ledger, night, price, rows)
    stop()
    ledger.close()
    (folder / "a.sqlite").unlink()
    logged = float(sum(one.epsilon if one.rho is None else one.rho for one in told))
    options = {"lost": {"b": logged}, **options}
    return Ledger.restore(folder / "copy.sqlite", folder / "a.sqlite", **SAID, **options)


def refused(ledger, night, **options):
    before = ledger.budget("b").spent
    with pytest.raises(
        ReleasePending, match=r"on_pending='retry' measures it and pays for it, [ερ] = [0-9.]+;"
    ):
        add(ledger, night, **options)
    assert ledger.budget("b").spent == before


@pytest.mark.parametrize("watched", [False, True])
def test_a_night_that_may_have_been_measured_is_paid(tmp_path, watched):
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    witness = {"witness": tmp_path / "far" / "w.sqlite"} if watched else {}
    again = lose(Ledger(tmp_path / "near" / "a.sqlite", **witness), tmp_path / "near", **witness)
    spent = again.budget("b").spent
    assert add(again, NIGHTS[1]).cost.epsilon == 0  # it is in the copy
    refused(again, NIGHTS[2])
    refused(again, NIGHTS[5])  # nobody knows that it was not measured
    out = add(again, NIGHTS[2], on_pending="retry")
    assert out.cost.epsilon > 0
    assert again.budget("b").spent == spent + out.cost
    assert out.certificate()["composition"]["rule"] == "measured_again"
    assert add(again, NIGHTS[2]).value == out.value
    assert again.budget("b").spent == spent + out.cost
    assert [line.status for line in again.budget("b").history() if line.name == "series s"] == [
        "open"
    ]
    assert "3 periods. It goes on from an older copy" in repr(series_of(again)[0])
    again.verify()
    again.close()
    once_more = Ledger.adopt(tmp_path / "near" / "a.sqlite", lost={"b": 0}, **SAID, **witness)
    once_more.verify()
    refused(once_more, NIGHTS[3])


def test_who_says_that_nothing_was_released_goes_on_as_before(tmp_path):
    again = lose(Ledger(tmp_path / "a.sqlite"), tmp_path, lost="none")
    assert "older copy" not in repr(series_of(again)[0])
    spent = again.budget("b").spent
    assert add(again, NIGHTS[2]).cost.epsilon == 0
    assert again.budget("b").spent == spent


def test_a_copy_that_lacks_nothing_by_its_witness_goes_on_as_before(tmp_path):
    (tmp_path / "near").mkdir()
    place, witness = tmp_path / "near" / "a.sqlite", {"witness": tmp_path / "w.sqlite"}
    ledger = Ledger(place, **witness)
    add(ledger, NIGHTS[0])
    ledger.backup(tmp_path / "copy.sqlite")
    ledger.close()
    place.unlink()
    again = Ledger.restore(tmp_path / "copy.sqlite", place, lost={"b": 0.5}, **SAID, **witness)
    assert add(again, NIGHTS[1]).cost.epsilon == 0


def test_nothing_is_measured_where_all_is_lost(tmp_path):
    again = lose(Ledger(tmp_path / "a.sqlite"), tmp_path, lost="all")
    with pytest.raises(BudgetExceeded):
        add(again, NIGHTS[2], on_pending="retry")


def test_allowances_and_releases_of_such_names_go_on(tmp_path):
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("b", epsilon=9)
    frame = dp.protect(pl.DataFrame({"u": [1, 2]}), unit="u", budget=budget)
    frame.count_units().release(epsilon=0.5, name="series of mine")
    budget.allocate(name="bo", epsilon=1)
    again = lose(ledger, tmp_path)
    mine = dp.protect(
        pl.DataFrame({"u": [1, 2]}), unit="u", budget=again.budget("b").allocate(name="bo")
    )
    assert mine.count_units().release(epsilon=0.5).cost.epsilon == 0.5
    assert again.budget("b").answer("series of mine").cost.epsilon == 0.5


# What the answers of both histories cost together


def told(folder, rows, price):
    """The answers of two nights, of two that are lost, and of these two
    again; and what was charged for all.
    """
    folder.mkdir()
    with given(5) as said:
        again = lose(testing.ledger(folder / "a.sqlite"), folder, price, rows)
        for night in NIGHTS[2:4]:
            add(again, night, price, rows, on_pending="retry")
    charged = again.budget("b").spent
    again.close()
    return said, charged


def used(folder, price):
    """The exact loss of all answers for one person in the third night,
    as a part of what was charged.
    """
    (one, charged), (other, _) = (
        told(folder / str(len(rows)), rows, price) for rows in (REST, [*REST, (77, NIGHTS[2])])
    )
    if price == "rho":
        return loss(one, other, "rho", 0.0) / charged.rho
    return loss(one, other, "epsilon", charged.delta) / charged.epsilon


@pytest.mark.parametrize(
    "price", ["pure", *(pytest.param(one, marks=pytest.mark.long) for one in ("gaussian", "rho"))]
)
def test_all_answers_before_and_after_the_copy_cost_at_most_what_is_charged(tmp_path, price):
    assert 0.4 < used(tmp_path, price) <= 1 + 1e-9


@pytest.mark.parametrize("price", ["pure", pytest.param("rho", marks=pytest.mark.long)])
def test_measured_for_nothing_they_would_cost_more(tmp_path, price, monkeypatch):
    monkeypatch.setattr(Place, "may_repeat", lambda *_: False)
    assert used(tmp_path, price) > 1.2
