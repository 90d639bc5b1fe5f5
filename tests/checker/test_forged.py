"""Certificates that somebody wrote by hand, whose claims are false. Each was PROVED by an earlier checker."""

import copy
import json

import pytest

from dpframe import dpframe_check as check

LIMITS = {"groups": 2, "rows_per_group": 1, "rows": 2}
QUESTION = {
    "steps": [{"step": "source"}],
    "contribution": {"rows": None, "exactly_one": False},
    "by": ["g"],
    "cells": 3,
    "limits": LIMITS,
}
HONEST = {
    "certificate": 1,
    "relation": "add-remove",
    "unit": {"columns": ["u"]},
    "questions": [QUESTION],
    "totals": [],
    "mechanisms": [],
    "keys": [],
    "composition": {"rule": "epsilon"},
    "charge": {"epsilon": "1/1", "delta": "0/1"},
}


def _total(kind="rows", name="t0", **facts):
    return {"id": name, "question": 0, "kind": kind, "cells": 3, "fraction": 0, "sensitivity": {}, **facts}


def _noise(name, *measures, law="laplace", **loss):
    return {"id": name, "law": law, "measures": [_measure(*m) for m in measures], "loss": loss}


def _measure(of, scale):
    return {"of": of if isinstance(of, dict) else {of: 1}, "scale": scale}


def _forged(totals, mechanisms, **more):
    return {**copy.deepcopy(HONEST), "totals": totals, "mechanisms": mechanisms, **more}


def _verdict(certificate):
    return check.Check(json.loads(json.dumps(certificate))).verdict


ROWS, LAPLACE = _total(), _noise("m0", ("t0", "2/1"), epsilon="1/1")
FOUND = {**QUESTION, "cells": None}
OPEN = _total(cells=None)
RULE = {"question": 0, "by": "t0", "mechanism": "m0", "least": 0, "delta": "1/1000000"}
OPTIMAL = {**RULE, "rule": "optimal", "start": "1/10000000"}
CHOSEN = {"id": "m0", "law": "truncated_geometric", "of": "t0", "scale": "2/1", "loss": {"epsilon": "1/1"}}
ONE_ROW = {
    "relation": "replace",
    "unit": {"rows": 1},
    "questions": [{**QUESTION, "contribution": {"rows": 1, "exactly_one": True}, "by": [], "cells": 1}],
}
SUM = _total("sum", "s", range=[0, 1], column="x")
PAIR = [({"t0": 1, "s": 1}, "4/1"), ({"t0": 1, "s": -1}, "4/1")]
KEYS = _total("key_weights", cells=None, most=1, one=1000)
NOTHING = {"composition": {"rule": "nothing"}, "charge": {"epsilon": "0/1", "delta": "0/1"}}
BESIDE = {
    "questions": [FOUND],
    "keys": [
        {
            **RULE,
            "rule": "threshold",
            "threshold": 1000,
            "alone": {"groups": 2, "most": 1, "total": 2, "each": 1},
            "delta": None,
        }
    ],
    "composition": {"rule": "threshold_beside_noise", "epsilon": "1/1"},
    "charge": {"epsilon": "1/1", "delta": "1/1000"},
}
NORMAL = _noise("m0", ("t0", "20/1"), law="gaussian", mu_squared="1/200")


def _quantile(scale, epsilon):
    return [
        {
            "id": "m0",
            "law": "permute_and_flip",
            "of": "t0",
            "scale": scale,
            "number": 1,
            "rank": "1/2",
            "fade": 32,
            "loss": {"epsilon": epsilon},
        }
    ]


PROVED = {
    "one total": _forged([ROWS], [LAPLACE]),
    "a pair": _forged([ROWS, SUM], [_noise("m0", *PAIR, epsilon="1/1")]),
    "the optimal rule": _forged(
        [OPEN], [CHOSEN], questions=[FOUND], keys=[OPTIMAL], charge={"epsilon": "1/1", "delta": "1/1000000"}
    ),
    "a threshold beside noise": _forged([OPEN], [NORMAL], **BESIDE),
    "a quantile": _forged([_total("choice")], _quantile("33/16", "1/1")),
    "exactly one row": _forged([_total(cells=1, one_row=True)], [], **ONE_ROW, **NOTHING),
}

FORGED = {
    "two mechanisms of one id": _forged([ROWS], [LAPLACE, LAPLACE]),
    "two totals of one id": _forged(
        [ROWS, {**ROWS, "limits": {**LIMITS, "groups": 1, "rows": 1}}],
        [_noise("m0", ("t0", "1/1"), epsilon="1/1")],
    ),
    "negative limits": _forged(
        [ROWS],
        [_noise("m0", ("t0", "1/100"), epsilon="0/1")],
        questions=[{**QUESTION, "limits": {**LIMITS, "groups": -1}}],
    ),
    "a negative number of rows": _forged(
        [ROWS],
        [_noise("m0", ("t0", "2/1"), epsilon="0/1")],
        unit={"rows": -2},
        questions=[{**QUESTION, "contribution": {"rows": -2, "exactly_one": False}}],
        charge={"epsilon": "0/1", "delta": "0/1"},
    ),
    "a negative histogram pays for another": _forged(
        [ROWS, _total("histogram", "t1", most=-2)],
        [LAPLACE, _noise("m1", ("t1", "6/1"), epsilon="0/1")],
        charge={"epsilon": "0/1", "delta": "0/1"},
    ),
    "a negative scale": _forged(
        [OPEN],
        [{**CHOSEN, "scale": "-2/1"}],
        questions=[FOUND],
        keys=[OPTIMAL],
        charge={"epsilon": "0/1", "delta": "1/1000000"},
    ),
    "a negative chance": _forged(
        [OPEN], [CHOSEN], questions=[FOUND], keys=[{**OPTIMAL, "start": "-1/1", "delta": "0/1"}]
    ),
    "an optimal rule that nobody counts": _forged([ROWS], [CHOSEN]),
    "an optimal rule for a threshold": _forged(
        [OPEN], [LAPLACE], questions=[FOUND], keys=[OPTIMAL], charge={"epsilon": "1/1", "delta": "1/1000000"}
    ),
    "one rule for two questions": _forged(
        [OPEN], [CHOSEN], questions=[FOUND, FOUND], keys=[OPTIMAL], charge={"epsilon": "1/1", "delta": "1/1000000"}
    ),
    "keys by a total of another question": _forged(
        [_total(cells=None, question=1)],
        [CHOSEN],
        questions=[FOUND, {**FOUND, "limits": {**LIMITS, "groups": 1}}],
        keys=[OPTIMAL, {**OPTIMAL, "question": 1}],
        charge={"epsilon": "1/1", "delta": "1/100000"},
    ),
    "no noise on an interaction": _forged(
        [_total("interaction", levels=[2, 2], cells=4)], [_noise("m0", ("t0", "1/1"), law="none", epsilon="0/1")]
    ),
    "laplace noise on an interaction": _forged(
        [_total("interaction", levels=[2, 2], cells=4)], [_noise("m0", ("t0", "1/100"), epsilon="0/1")]
    ),
    "an interaction merged and shown": _forged(
        [_total("interaction", levels=[2, 2], cells=4), _total("merged", "t1", of="t0", cells=1)],
        [_noise("m0", ("t0", "10/1"), law="gaussian", rho="1/1")],
        composition={"rule": "rho", "rho": "1/1"},
        charge={"rho": "1/1", "delta": "0/1"},
    ),
    "levels of what has none": _forged(
        [_total(levels=[3], cells=1)],
        [_noise("m0", ("t0", "1/1"), epsilon="1/1")],
    ),
    "a root with one leaf": _forged(
        [_total(leaves=1, cells=1, limits_of_leaves=LIMITS)], [_noise("m0", ("t0", "1/1"), epsilon="2/1")]
    ),
    "exactly one row, and different values": _forged(
        [_total("distinct", cells=1, one_row=True, column="x", nullable=False)], [], **ONE_ROW, **NOTHING
    ),
    "exactly one row, in a tree": _forged([_total("tree", cells=1, one_row=True)], [], **ONE_ROW, **NOTHING),
    "exactly one value, which may be missing": _forged(
        [_total("values", cells=1, range=[0, 1], one_row=True, column="x")], [], **ONE_ROW, **NOTHING
    ),
    "a pair measured twice": _forged(
        [ROWS, SUM], [_noise("m0", *PAIR, *[(of, "1/10") for of, _ in PAIR][::-1], *PAIR, epsilon="1/1")]
    ),
    "a pair with two differences": _forged([ROWS, SUM], [_noise("m0", *PAIR, PAIR[1], epsilon="1/1")]),
    "a total named as a place": _forged(
        [_total(name="1"), _total(name="2")],
        [_noise("m0", ("1", "1/100"), ({"1": 1, "2": 1}, "4/1"), epsilon="1/1")],
    ),
    "two rests beside their total": _forged(
        [ROWS, _total("rest", "r", of="t0", cells=1), _total("rest", "q", of="t0", cells=1)],
        [_noise("m0", ("t0", "2/1"), ("r", "2/1"), ("q", "2/1"), epsilon="1/1")],
    ),
    "two rests beside their total, and normal noise": _forged(
        [ROWS, _total("rest", "r", of="t0", cells=1), _total("rest", "q", of="t0", cells=1)],
        [
            _noise("m0", ("t0", "2/1"), ("q", "1/1"), ("r", "40/1"), law="gaussian", rho="1/1"),
        ],
        composition={"rule": "rho", "rho": "1/1"},
        charge={"rho": "1/1", "delta": "0/1"},
    ),
    "a total that is said to follow": _forged([ROWS, _total(name="t1", of=["t0"])], [{**LAPLACE, "gives": ["t1"]}]),
    "rounds beside a threshold": _forged(
        [OPEN, _total("key_weights", "w", cells=None, most=1, one=1000)],
        [
            NORMAL,
            {
                "id": "m1",
                "law": "gaussian_rounds",
                "of": "w",
                "scale": "1/1",
                "thresholds": [10000],
                "loss": {"mu_squared": "1000000/1"},
            },
        ],
        **BESIDE,
    ),
    "a charge in ρ beside one in ε": _forged(
        [ROWS], [LAPLACE], charge={"epsilon": "1/1", "rho": "1/1000000", "delta": "0/1"}
    ),
    "public rows that nobody counts": _forged([_total("choice")], _quantile("2/1", "1/1")),
    "keys by k-norm noise": _forged(
        [OPEN],
        [_noise("m0", ("t0", "1/1"), law="k_norm", epsilon="1/1")],
        questions=[FOUND],
        keys=[
            {
                **RULE,
                "rule": "threshold",
                "threshold": 20,
                "alone": {"groups": 2, "most": 1, "total": 2, "each": 1},
            }
        ],
        charge={"epsilon": "1/1", "delta": "1/1000000"},
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_what_they_are_forged_from_is_proved(name):
    assert _verdict(PROVED[name]) == "PROVED"


@pytest.mark.parametrize("name", FORGED)
def test_false_claims_are_not_proved(name):
    assert _verdict(FORGED[name]) != "PROVED"


HUGE = {
    "a fraction": _forged([_total(fraction=10**12)], [LAPLACE]),
    "keys of a unit": _forged([{**KEYS, "most": 10**12}], [], questions=[FOUND]),
    "groups of a unit": _forged(
        [OPEN],
        [NORMAL],
        **{**BESIDE, "questions": [{**FOUND, "limits": dict.fromkeys(LIMITS, 10**12)}]},
    ),
    "a loss": _forged(
        [ROWS],
        [_noise("m0", ("t0", f"1/{10**30}"), epsilon=f"{10**31}/1", rho=f"{10**31}/1", mu_squared=f"{10**32}/1")],
        charge={"epsilon": f"{10**31}/1", "delta": "0/1"},
    ),
    "an ε of normal noise": _forged(
        [ROWS],
        [_noise("m0", ("t0", "1/1"), law="gaussian", mu_squared="2/1")],
        composition={"rule": "gaussian", "epsilon": f"{10**15}/1", "delta": "1/2"},
        charge={"epsilon": f"{10**15}/1", "delta": "1/2"},
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_numbers_have_a_verdict_at_once(name):
    assert _verdict(HUGE[name]) in ("REFUSED", "UNKNOWN")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PROVED["one total"])[:-1] + ', "charge": {"epsilon": "1/1", "delta": "0/1"}}',
        "[" * 100_000,
        "null",
    ],
    ids=["a name twice", "too deep", "nothing"],
)
def test_texts_that_readers_may_read_differently_cannot_be_read(text, tmp_path, capsys):
    (tmp_path / "a.json").write_text(text)
    assert check.main([str(tmp_path / "a.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_ledger_of_nothing_is_no_ledger(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(PROVED["one total"]))
    (tmp_path / "b.json").write_text("null")
    assert check.main([str(tmp_path / "a.json")]) == 0
    assert check.main([str(tmp_path / "a.json"), "--ledger", str(tmp_path / "b.json")]) == 2


def test_numbers_that_are_none_are_refused(tmp_path):
    for word in ("NaN", "Infinity", "-Infinity"):
        text = json.dumps(PROVED["one total"]).replace('"rows_per_group": 1', f'"rows_per_group": {word}')
        (tmp_path / "a.json").write_text(text)
        assert check.main([str(tmp_path / "a.json")]) == 1
