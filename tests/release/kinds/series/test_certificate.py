"""The certificates of the periods of a series:
PROVED by the checker, with the noise that was bought once.
"""

import copy
import datetime as dt
import json

import polars as pl
import pytest

import dpframe as dp
from dpframe import dpframe_check, errors
from dpframe.budget import Ledger, canonical

DAYS = [dt.date(2026, 11, 1) + dt.timedelta(days=night) for night in range(3)]
ROWS = pl.DataFrame(
    {
        "id": range(90),
        "day": [DAYS[i % 3] for i in range(90)],
        "city": ["a" if i % 4 else "b" for i in range(90)],
        "x": [i % 5 for i in range(90)],
    }
)
PRICES = {
    "epsilon": ({"epsilon": 10.0}, {"epsilon": 1.0}),
    "gaussian": (
        {"epsilon": 10.0, "delta": 1e-3},
        {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    ),
    "rho": ({"rho": 10.0}, {"rho": 0.1}),
}
LENGTHS = {
    "a horizon": {"horizon": 60, "unit_periods": 1},
    "no end": {"horizon": None, "unit_periods": 3},
    "enforced": {"horizon": 20, "unit_periods": 2, "enforce": True},
}


def grouped(frame):
    asked = frame.group_by("city", keys=["a", "b"], max_groups=1, max_rows_per_group=3)
    return asked.agg(n=dp.count(), s=dp.sum("x", (0, 4)), u=dp.count_units())


def opened(path, price="epsilon", length="a horizon", rows=ROWS, relation="add-remove"):
    limit, paid = PRICES[price]
    ledger = Ledger(path / "study.sqlite")
    budget = ledger.budget("b", **limit)
    series = budget.series("signups", every="1d", on="day", **paid, **LENGTHS[length])
    return ledger, dp.protect(rows, unit="id", budget=budget, neighbors=relation), series


def _stopped(*args):
    raise KeyboardInterrupt


def checked(certificate, *more):
    return dpframe_check.Check(json.loads(json.dumps(certificate)), *more)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.one_in(3)
def test_each_period_is_proved_with_its_ledger_and_its_table(tmp_path, price, length, relation):
    ledger, frame, series = opened(tmp_path, price, length, relation=relation)
    for day in DAYS:
        out = series.add(grouped(frame), day)
        found = checked(out.certificate(), json.loads(ledger.export("json")), out.to_csv().encode())
        assert (found.verdict, found.refused, found.unknown) == ("PROVED", [], [])
        again = series.add(grouped(frame), day)
        assert again.certificate() == out.certificate()
    assert {total["kind"] for total in out.certificate()["totals"]} == {
        "rows",
        "sum",
        "units",
        "blocks",
    }


def test_a_period_that_asks_for_less_is_proved_and_for_more_refused(tmp_path):
    _, frame, series = opened(tmp_path)
    first = series.add(grouped(frame), DAYS[0]).certificate()
    less = series.add(grouped(frame.clip("x", 0, 3)), DAYS[1]).certificate()
    assert checked(less).verdict == "PROVED"
    places = {total["id"]: place for place, total in enumerate(first["totals"])}
    for place, total in enumerate(first["totals"]):
        if total["kind"] == "sum":
            changed = copy.deepcopy(first)
            changed["totals"][place] |= {"range": [0, 2 * total["range"][1]], "sensitivity": {}}
            del changed["totals"][place]["grid"]
            assert checked(changed).verdict == "REFUSED"
        if total["kind"] == "blocks":
            for field, value in (
                ("periods", 2),
                ("of", "t9"),
                ("bought", ["0/1"] * 4),
                ("span", [60, 60]),
            ):
                changed = copy.deepcopy(first)
                changed["totals"][places[total["id"]]][field] = value
                assert checked(changed).verdict == "REFUSED", field


def test_weights_that_do_not_lead_to_the_claim_are_refused(tmp_path):
    _, frame, series = opened(tmp_path, "rho")
    first = series.add(grouped(frame), DAYS[0]).certificate()
    place = next(i for i, total in enumerate(first["totals"]) if total["kind"] == "blocks")
    weights = first["totals"][place]["weights"]
    for changed in (
        [2 * weight for weight in weights],
        weights[:-1],
        weights[::-1],
        [0] * len(weights),
        "256",
    ):
        made = copy.deepcopy(first)
        made["totals"][place]["weights"] = changed
        assert checked(made).verdict == "REFUSED", changed


def test_a_neighbour_has_the_same_certificate(tmp_path):
    stated = []
    for place, rows in enumerate((ROWS, ROWS.filter(pl.col("id") != 7))):
        (tmp_path / str(place)).mkdir()
        _, frame, series = opened(tmp_path / str(place), rows=rows)
        certificate = series.add(grouped(frame), DAYS[0]).certificate()
        stated.append(
            {
                k: v
                for k, v in certificate.items()
                if k not in ("answer", "drawn", "table", "ledger")
            }
        )
    assert canonical(stated[0]) == canonical(stated[1])


def test_a_period_that_is_measured_twice_is_unknown(tmp_path, monkeypatch):
    _, frame, series = opened(tmp_path)
    with monkeypatch.context() as lost:
        lost.setattr(dp.Budget, "store", _stopped)
        with pytest.raises(KeyboardInterrupt):
            series.add(grouped(frame), DAYS[0])
    found = checked(series.add(grouped(frame), DAYS[0], on_pending="retry").certificate())
    assert (found.verdict, found.refused) == ("UNKNOWN", [])
    assert "measured_again" in found.unknown[0]


def test_totals_and_windows_name_where_certificates_are(tmp_path):
    _, frame, series = opened(tmp_path)
    series.add(grouped(frame), DAYS[0])
    with pytest.raises(errors.UnsupportedOperation, match=r"series\.add"):
        series.total().certificate()
