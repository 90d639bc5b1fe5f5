"""Certificates that somebody wrote by hand, whose claims are false.
Each was PROVED by an earlier checker.
"""

import copy
import json
from fractions import Fraction

import pytest

import dpframe.theory as t
from dpframe import dpframe_check as check
from dpframe.errors import DpFrameError

LIMITS = {"groups": 2, "rows_per_group": 1, "rows": 2}
QUESTION = {
    "steps": [{"step": "source"}],
    "contribution": {"rows": None, "exactly_one": False},
    "by": ["g"],
    "cells": 3,
    "limits": LIMITS,
    "own_limits": [],
}
HONEST = {
    "certificate": 3,
    "relation": "add-remove",
    "unit": {"columns": ["u"]},
    "questions": [QUESTION],
    "totals": [],
    "mechanisms": [],
    "composition": {"rule": "epsilon"},
    "charge": {"epsilon": "1/1", "delta": "0/1"},
}


def _total(kind="rows", name="t0", **facts):
    return {
        "id": name,
        "question": 0,
        "kind": kind,
        "cells": 3,
        "fraction": 0,
        "sensitivity": {},
        **facts,
    }


def _noise(name, of, scale, law="laplace", more=None, **loss):
    return {"id": name, "law": law, "of": of.split(), "scale": scale, **(more or {}), "loss": loss}


def _forged(totals, mechanisms, **more):
    return {**copy.deepcopy(HONEST), "totals": totals, "mechanisms": mechanisms, **more}


def _verdict(certificate):
    return check.Check(json.loads(json.dumps(certificate))).verdict


ROWS, LAPLACE = _total(), _noise("m0", "t0", "2/1", epsilon="1/1")
FOUND = {**QUESTION, "cells": None}
OPEN = _total("units", cells=None)
FINDS = {"least": 0, "delta": "1/1000000"}
OPTIMAL = {**FINDS, "start": "1/10000000"}
CHOSEN = _noise("m0", "t0", "2/1", "truncated_geometric", {"finds": OPTIMAL}, epsilon="1/1")
KEYS_FOUND = {"questions": [FOUND], "charge": {"epsilon": "1/1", "delta": "1/1000000"}}
ONE_ROW = {
    "relation": "replace",
    "unit": {"rows": 1},
    "questions": [
        {**QUESTION, "contribution": {"rows": 1, "exactly_one": True}, "by": [], "cells": 1}
    ],
}
SUM = _total("sum", "s", range=[0, 1], present=["x"], fraction=20)
PAIR = _noise("m0", "s t0", f"{2**22 + 16}/1", more={"weight": 1}, epsilon="1/1")
KEYS = _total("key_weights", cells=None, most=1, one=1000)
FREE = {"epsilon": "0/1", "delta": "0/1"}
IN_RHO = {"composition": {"rule": "rho"}, "charge": {"rho": "1/1", "delta": "0/1"}}
BESIDE = {
    "questions": [FOUND],
    "composition": {"rule": "threshold_beside_noise", "epsilon": "1/1", "delta": "1/1000"},
    "charge": {"epsilon": "1/1", "delta": "1/1000"},
}
THRESHOLD = {"finds": {"least": 0, "delta": None, "threshold": 1000}}
NORMAL = _noise("m0", "t0", "20/1", "gaussian", THRESHOLD, mu_squared="1/200")
PRODUCTS = _total(
    "unit_products",
    "p",
    range=[0, 9],
    factor={"of": "t0", "times": 3, "scale": "1/1", "off": 0},
    sensitivity={"l1": "6/1"},
)
ON_BOTH = [_noise("m0", "t0", "4/1", epsilon="1/2"), _noise("m1", "p", "12/1", epsilon="1/2")]
NIGHT = {
    "kind": "blocks",
    "of": "t0",
    "cells": None,
    "fraction": 0,
    "question": 0,
    "periods": 2,
    "size": 1,
    "span": [0, 9],
    "bought": ["2/1", "2/1", "1/1", "1/1"],
    "sensitivity": {"l1": "4/1"},
}
NIGHTS = [ROWS, {**NIGHT, "id": "b"}, {**NIGHT, "id": "c", "span": [9, 12]}]
ON_NIGHTS = [_noise("m0", "b", "4/1", epsilon="1/1"), _noise("m1", "c", "4/1", epsilon="1/1")]


def _quantile(scale, epsilon):
    return [
        _noise(
            "m0",
            "t0",
            scale,
            "permute_and_flip",
            {"number": 1, "rank": "1/2", "fade": 32},
            epsilon=epsilon,
        )
    ]


PROVED = {
    "one total": _forged([ROWS], [LAPLACE]),
    "a pair": _forged([ROWS, SUM], [PAIR]),
    "a pair and missing values": _forged(
        [ROWS, SUM, _total("values", "v", range=[0, 1], present=["x"], fraction=20)],
        [{**PAIR, "of": ["s", "v", "t0"], "missing": f"{2**21 + 8}/1"}],
    ),
    "the optimal rule": _forged([OPEN], [CHOSEN], **KEYS_FOUND),
    "a threshold beside noise": _forged([OPEN], [NORMAL], **BESIDE),
    "a quantile": _forged([_total("choice")], _quantile("33/16", "1/1")),
    "exactly one row": _forged([_total(cells=1, one_row=True)], [], **ONE_ROW, charge=FREE),
    "limits of a column": _forged(
        [{**ROWS, "own_limits": 0, "limits": {"groups": 1}}],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
        questions=[{**QUESTION, "own_limits": [{"limits": {**LIMITS, "groups": 1}}]}],
    ),
    "products with a factor": _forged([ROWS, PRODUCTS], ON_BOTH),
    "nights": _forged(NIGHTS, ON_NIGHTS),
}

FORGED = {
    "two mechanisms of one id": _forged([ROWS], [LAPLACE, LAPLACE]),
    "two totals of one id": _forged(
        [ROWS, {**ROWS, "limits": {**LIMITS, "groups": 1, "rows": 1}}],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
    ),
    "negative limits": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/100", epsilon="0/1")],
        questions=[{**QUESTION, "limits": {**LIMITS, "groups": -1}}],
    ),
    "a negative number of rows": _forged(
        [ROWS],
        [_noise("m0", "t0", "2/1", epsilon="0/1")],
        unit={"rows": -2},
        questions=[{**QUESTION, "contribution": {"rows": -2, "exactly_one": False}}],
        charge=FREE,
    ),
    "a negative histogram pays for another": _forged(
        [ROWS, _total("histogram", "t1", most=-2)],
        [LAPLACE, _noise("m1", "t1", "6/1", epsilon="0/1")],
        charge=FREE,
    ),
    "a negative scale": _forged(
        [OPEN], [{**CHOSEN, "scale": "-2/1"}], questions=[FOUND], charge=KEYS_FOUND["charge"]
    ),
    "a negative scale of a rest": _forged([ROWS], [{**LAPLACE, "rest": "-100/1"}]),
    "a negative chance": _forged(
        [OPEN],
        [{**CHOSEN, "finds": {**OPTIMAL, "start": "-1/1", "delta": "0/1"}}],
        questions=[FOUND],
    ),
    "an optimal rule that nobody counts": _forged(
        [ROWS], [_noise("m0", "t0", "2/1", "truncated_geometric", epsilon="1/1")]
    ),
    "an optimal rule for a threshold": _forged(
        [OPEN], [{**LAPLACE, "finds": OPTIMAL}], **KEYS_FOUND
    ),
    "one rule for two questions": _forged(
        [OPEN], [CHOSEN], **{**KEYS_FOUND, "questions": [FOUND, FOUND]}
    ),
    "two rules for one question": _forged([OPEN], [CHOSEN, {**CHOSEN, "id": "m1"}], **KEYS_FOUND),
    "keys by a total of another question": _forged(
        [_total(cells=None, question=1)],
        [CHOSEN],
        questions=[FOUND, {**FOUND, "limits": {**LIMITS, "groups": 1}}],
        charge={"epsilon": "1/1", "delta": "1/100000"},
    ),
    "no noise on an interaction": _forged(
        [_total("interaction", levels=[2, 2], cells=4)],
        [_noise("m0", "t0", "1/1", "none", epsilon="0/1")],
    ),
    "laplace noise on an interaction": _forged(
        [_total("interaction", levels=[2, 2], cells=4)],
        [_noise("m0", "t0", "1/100", epsilon="0/1")],
    ),
    "an interaction merged and shown": _forged(
        [_total("interaction", levels=[2, 2], cells=4), _total("merged", "t1", of="t0", cells=1)],
        [_noise("m0", "t0", "10/1", "gaussian", rho="1/1")],
        **IN_RHO,
    ),
    "levels of what has none": _forged(
        [_total(levels=[3], cells=1)], [_noise("m0", "t0", "1/1", epsilon="1/1")]
    ),
    "a root with one leaf": _forged(
        [_total(leaves=1, cells=1)], [_noise("m0", "t0", "1/1", epsilon="2/1")]
    ),
    "exactly one row, and different values": _forged(
        [_total("distinct", cells=1, one_row=True, column="x", nullable=False)],
        [],
        **ONE_ROW,
        charge=FREE,
    ),
    "exactly one row, in a tree": _forged(
        [_total("tree", cells=1, one_row=True)], [], **ONE_ROW, charge=FREE
    ),
    "exactly one value, which may be missing": _forged(
        [_total("values", cells=1, range=[0, 1], one_row=True, column="x")],
        [],
        **ONE_ROW,
        charge=FREE,
    ),
    "a pair that is no pair": _forged([ROWS, SUM], [{**PAIR, "of": ["t0", "s"]}]),
    "a pair of two groupings": _forged(
        [ROWS, {**SUM, "question": 1}], [PAIR], questions=[QUESTION, {**QUESTION, "by": ["h"]}]
    ),
    "a pair of too large a weight": _forged([ROWS, SUM], [{**PAIR, "weight": 2**21}]),
    "a pair beside missing values of another column": _forged(
        [ROWS, SUM, _total("values", "v", range=[0, 1], present=["y"])],
        [{**PAIR, "of": ["s", "v", "t0"], "missing": "2/1"}],
    ),
    "a pair of a small weight and missing values": _forged(
        [ROWS, {**SUM, "range": [0, 2]}, _total("values", "v", range=[0, 1], present=["x"])],
        [{**PAIR, "of": ["s", "v", "t0"], "missing": "2/1"}],
    ),
    "a pair by normal noise": _forged(
        [ROWS, SUM], [_noise("m0", "s t0", "2/1", "gaussian", {"weight": 1}, rho="1/1")], **IN_RHO
    ),
    "keys of a second question, whose chance nobody counts": _forged(
        [OPEN, {**OPEN, "id": "t1", "question": 1}],
        [
            NORMAL,
            _noise(
                "m1",
                "t1",
                "2/1",
                more={"finds": {**THRESHOLD["finds"], "threshold": 1}},
                epsilon="1/1",
            ),
        ],
        **{**BESIDE, "questions": [FOUND, FOUND], "charge": {"epsilon": "2/1", "delta": "1/1000"}},
    ),
    "rounds of what is no weight of keys": _forged(
        [{**OPEN, "one": 1, "most": 1}],
        [
            _noise(
                "m0",
                "t0",
                "100/1",
                "gaussian_rounds",
                {"thresholds": [800], "finds": FINDS},
                rho="1/4",
            )
        ],
        questions=[{**FOUND, "limits": {"groups": 2, "rows_per_group": 50, "rows": None}}],
        composition={"rule": "rho"},
        charge={"rho": "1/4", "delta": FINDS["delta"]},
    ),
    "leaves of groups that are found": _forged(
        [_total(cells=1, leaves=1)],
        [
            _noise(
                "m0",
                "t0",
                "3/1",
                more={"finds": {"least": 0, "delta": "1/1000", "threshold": 100}},
                epsilon="1/1",
            )
        ],
        questions=[{**FOUND, "limits": {"groups": 2, "rows_per_group": 3, "rows": None}}],
        charge={"epsilon": "1/1", "delta": "1/1000"},
    ),
    "a sum without noise, of rounded numbers": _forged(
        [SUM, ROWS, _total("sum", "p", shift=1, range=[0, 0], fraction=10)],
        [
            *(_noise(f"m{i}", of, "4/1", epsilon="1/2") for i, of in enumerate(["s", "t0"])),
            _noise("m2", "p", "1/1", "none", epsilon="0/1"),
        ],
    ),
    "a sum of rounded numbers that do not count as such": _forged(
        [_total("sum", "s", shift=1, range=[0, 1], fraction=10)],
        [_noise("m0", "s", "2048/1", epsilon="1/1")],
    ),
    "a small weight of an interaction": _forged(
        [_total("interaction", levels=[2, 2], cells=4, one=1, most=1)],
        [_noise("m0", "t0", "4/1", epsilon="1/1")],
    ),
    "an order beside a δ that nobody counts": _forged(
        [OPEN],
        [{**NORMAL, "scale": "1/1"}],
        **{**BESIDE, "composition": {**BESIDE["composition"], "order": "1000/1"}},
    ),
    "a rule whose parts are missing": _forged([ROWS], [LAPLACE], composition={"rule": "gaussian"}),
    "a part of δ below 0 pays for keys": _forged(
        [OPEN],
        [
            _noise(
                "m0",
                "t0",
                "2/1",
                more={"finds": {**FINDS, "delta": "1/2", "threshold": 3}},
                rho="1/1",
            )
        ],
        questions=[FOUND],
        composition={"rule": "rho", "delta": "-1/2"},
        charge={"rho": "1/1", "delta": "0/1"},
    ),
    "a part of ε below 0": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/5", epsilon="10/1")],
        composition={"rule": "gaussian", "epsilon": "-10/1", "delta": "0/1"},
        charge=FREE,
    ),
    "a square below 0 pays for another": _forged(
        [ROWS, _total("sum", "s", range=[0, 0])],
        [
            _noise("m0", "t0", "1/10", "gaussian"),
            _noise("m1", "s", "1/1", "none", mu_squared="-100000/1"),
        ],
        composition={"rule": "mu_squared"},
        charge={"rho": "0/1", "delta": "0/1"},
    ),
    "a factor of a negative scale": _forged(
        [
            ROWS,
            {
                **PRODUCTS,
                "range": [0, 1000],
                "factor": {**PRODUCTS["factor"], "scale": "-100/1"},
                "sensitivity": {},
            },
        ],
        [_noise("m0", "t0", "1/100", epsilon="200/1"), _noise("m1", "p", "3/1")],
        charge=FREE,
    ),
    "rounds of keys with a least number": _forged(
        [KEYS],
        [
            _noise(
                "m0",
                "t0",
                "1000/1",
                "gaussian_rounds",
                {"thresholds": [8000], "finds": {**FINDS, "least": 9000}},
            )
        ],
        questions=[FOUND],
        composition={"rule": "rho"},
        charge={"rho": "1/2", "delta": FINDS["delta"]},
    ),
    "a rest beside noise that groups share": _forged(
        [ROWS],
        [_noise("m0", "t0", "10/1", "gaussian", {"common": "1/1", "rest": "1/1000000"})],
        **IN_RHO,
    ),
    "a number of rows in other units than its values": _forged(
        [
            ROWS,
            _total("sum", "s", range=[0, 1], fraction=10, present=["x"]),
            _total("values", "v", range=[0, 1], fraction=10, present=["x"]),
        ],
        [_noise("m0", "s v t0", "6144/1", more={"weight": 1, "missing": "3072/1"})],
        questions=[{**QUESTION, "limits": {"groups": 2, "rows_per_group": 2, "rows": 3}}],
        charge={"epsilon": "101/100", "delta": "0/1"},
    ),
    "a histogram beside a threshold on few groups": _forged(
        [_total("units", cells=None), _total("histogram", "h", cells=1, most=1)],
        [
            _noise(
                "m0",
                "t0",
                "40/1",
                "gaussian",
                {"finds": {"least": 0, "delta": None, "threshold": 122}},
            ),
            _noise("m1", "h", "5/2", "gaussian"),
        ],
        questions=[{**FOUND, "limits": {"groups": 1, "rows_per_group": 1, "rows": 1}}],
        composition={**BESIDE["composition"], "delta": "27/20000"},
        charge={"epsilon": "1/1", "delta": "27/20000"},
    ),
    "a rest that costs nothing": _forged([ROWS], [{**LAPLACE, "rest": "1/1"}]),
    "a rest of what decides": _forged(
        [OPEN], [{**LAPLACE, "rest": "2/1", "finds": {**FINDS, "threshold": 100}}], **KEYS_FOUND
    ),
    "a rest beside normal noise": _forged(
        [ROWS], [_noise("m0", "t0", "2/1", "gaussian", {"rest": "1/1"}, rho="1/4")], **IN_RHO
    ),
    "a rest of a law that has none": _forged(
        [ROWS], [_noise("m0", "t0", "1/1", "k_norm", {"rest": "1/9"}, epsilon="1/1")]
    ),
    "noise that is shared by laplace": _forged([ROWS], [{**LAPLACE, "common": "9/1"}]),
    "a total that is said to follow": _forged([ROWS, _total(name="t1", of=["t0"])], [LAPLACE]),
    "rounds beside a threshold": _forged(
        [OPEN, _total("key_weights", "w", cells=None, most=1, one=1000)],
        [
            NORMAL,
            _noise(
                "m1",
                "w",
                "1/1",
                "gaussian_rounds",
                {"thresholds": [10000], "finds": FINDS},
                mu_squared="1000000/1",
            ),
        ],
        **BESIDE,
    ),
    "noise of another question beside a threshold": _forged(
        [OPEN, _total(name="t1", question=1)],
        [NORMAL, _noise("m1", "t1", "20/1", "gaussian", mu_squared="1/200")],
        **{**BESIDE, "questions": [FOUND, QUESTION]},
    ),
    "a charge in ρ beside one in ε": _forged(
        [ROWS], [LAPLACE], charge={"epsilon": "1/1", "rho": "1/1000000", "delta": "0/1"}
    ),
    "public rows that nobody counts": _forged([_total("choice")], _quantile("2/1", "1/1")),
    "keys by k-norm noise": _forged(
        [OPEN],
        [_noise("m0", "t0", "1/1", "k_norm", {"finds": {**FINDS, "threshold": 20}}, epsilon="1/1")],
        **KEYS_FOUND,
    ),
    "limits that are no column's own": _forged(
        [{**ROWS, "limits": {"groups": 1, "rows_per_group": 1, "rows": 1}}],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
    ),
    "limits of a column that are not there": _forged([{**ROWS, "own_limits": 0}], [LAPLACE]),
    "limits of a column, from the end": _forged(
        [{**ROWS, "own_limits": -1}],
        [LAPLACE],
        questions=[{**QUESTION, "own_limits": [{"limits": LIMITS}]}],
    ),
    "limits of a column that it does not keep": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
        questions=[{**QUESTION, "own_limits": [{"limits": {**LIMITS, "groups": 1}}]}],
    ),
    "products without a factor": _forged([ROWS, {**PRODUCTS, "factor": None}], ON_BOTH),
    "products with a sum of their own": _forged(
        [ROWS, {**PRODUCTS, "factor": None, "most": 6}], ON_BOTH
    ),
    "products with a factor of other rows": _forged(
        [{**ROWS, "own_limits": 0}, PRODUCTS],
        ON_BOTH,
        questions=[{**QUESTION, "own_limits": [{"limits": {**LIMITS, "groups": 1}}]}],
    ),
    "products with a negative factor": _forged(
        [ROWS, {**PRODUCTS, "factor": {**PRODUCTS["factor"], "times": -3}}], ON_BOTH
    ),
    "products with a factor that is no number of rows": _forged(
        [_total("units"), PRODUCTS],
        ON_BOTH,
        questions=[{**QUESTION, "limits": {**LIMITS, "rows_per_group": 2}}],
    ),
    "products with groups before that are not there": _forged(
        [_total("unit_products", before=3, range=[-1, 1])],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
    ),
    "nights of one time, twice": _forged([*NIGHTS[:2], {**NIGHTS[2], "span": [5, 12]}], ON_NIGHTS),
    "nights of no time": _forged([*NIGHTS[:2], {**NIGHTS[2], "span": [12, 9]}], ON_NIGHTS),
    "nights of less than a night": _forged(
        [ROWS, {**NIGHTS[1], "bought": ["2/1", "1/1", "1/1", "1/1"], "sensitivity": {}}],
        ON_NIGHTS[:1],
    ),
    "a night of larger numbers than was bought": _forged(
        [
            {**SUM, "id": "t0", "range": [0, 2]},
            {**NIGHTS[1], "bought": ["2/1", "4/1", "1/1", "2/1"]},
        ],
        ON_NIGHTS[:1],
    ),
    "nights in fewer periods than they have": _forged(
        [ROWS, {**NIGHTS[1], "periods": 9}], ON_NIGHTS[:1]
    ),
    "nights of one entry": _forged(
        [ROWS, {**NIGHTS[1], "cells": 1, "sensitivity": {"l1": "1/1"}}],
        [_noise("m0", "b", "1/1", epsilon="1/1")],
    ),
    "weighted nights of one entry": _forged(
        [
            ROWS,
            {**NIGHTS[1], "size": 2, "weights": [2, 1], "cells": 1, "sensitivity": {"l1": "3/1"}},
        ],
        [_noise("m0", "b", "3/1", epsilon="1/1")],
    ),
    "a tree of one block": _forged(
        [_total("tree", cells=1, sensitivity={"l1": "1/1"})],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
        relation="replace",
        questions=[
            {
                **QUESTION,
                "by": [],
                "cells": 1,
                "limits": {"groups": 1, "rows_per_group": 1, "rows": 1},
            }
        ],
    ),
    "a night beside its blocks": _forged(
        NIGHTS, [*ON_NIGHTS, _noise("m2", "t0", "9/1", epsilon="2/9")]
    ),
}


def _of(cells, **limits):
    """A question with this many groups, or with these limits."""
    return {**QUESTION, "cells": cells, "limits": {**LIMITS, **limits}}


SHIFTED = _total("sum", "s", range=[0, 1], fraction=4, shift=9)
SIGNED = _total("sum", "s", range=[-1, 1])
NO_GROUPS = {"questions": [_of(0)], "charge": FREE}
IN_ONE = {"questions": [{**_of(1, rows_per_group=2), "by": []}]}
PUBLIC = {"step": "join_public", "how": "inner"}
JOINED = [{"step": "source"}, {"step": "per_unit"}]
FORGED |= {  # with several facts changed at once
    "rows of parts without a fraction": _forged(
        [ROWS],
        [_noise("m0", "t0", "3/1", epsilon="1/1")],
        questions=[_of(3, groups=2, rows_per_group=2, rows=3)],
    ),
    "a sum of rounded parts": _forged(
        [_total("sum", range=[0, 9], shift=-1000000)], [_noise("m0", "t0", "18/1", epsilon="1/1")]
    ),
    "one noise for groups and for nodes above them": _forged(
        [ROWS, _total(name="t1", leaves=2)],
        [_noise("m0", "t0 t1", "1/1", "cube", {"factors": [1, 1]}, epsilon="1/1")],
        questions=[{**QUESTION, "limits": dict.fromkeys(LIMITS, 1)}],
    ),
    "a number of groups below 0 pays for another": _forged(
        [ROWS, _total(name="t1", cells=None, question=1)],
        [_noise("m0", "t0", "1/10", "gaussian"), _noise("m1", "t1", "1/100", "gaussian")],
        questions=[QUESTION, _of(-1)],
        composition={"rule": "rho"},
        charge={"rho": "0/1", "delta": "0/1"},
    ),
    "an interaction in no groups": _forged(
        [_total("interaction", levels=[2, 2], cells=4)], [], **NO_GROUPS
    ),
    "a tree in no groups": _forged([_total("tree", cells=None)], [], **NO_GROUPS),
    "parts of a series with other numbers of periods": _forged(
        [ROWS, NIGHTS[1], {**NIGHTS[2], "periods": 1, "sensitivity": {}}],
        [_noise("m0", "b", "4/1", epsilon="1/1"), _noise("m1", "c", "2/1", epsilon="1/1")],
    ),
    "levels of a series with other numbers of periods": _forged(
        [ROWS, NIGHTS[1], {**NIGHTS[1], "id": "c", "periods": 1, "sensitivity": {}}],
        [_noise("m0", "b", "8/1", epsilon="1/2"), _noise("m1", "c", "4/1", epsilon="1/2")],
    ),
    "nights without weights": _forged(
        [ROWS, {**NIGHTS[1], "size": 2, "weights": [], "sensitivity": {}}],
        [_noise("m0", "b", "1/9", epsilon="0/1")],
    ),
    "nights whose weights rise": _forged(
        [ROWS, {**NIGHTS[1], "size": 2, "periods": 1, "weights": [1, 9], "sensitivity": {}}],
        [_noise("m0", "b", "20/1", epsilon="1/1")],
    ),
    "one noise for rounded sums, in all groups": _forged(
        [SHIFTED], [_noise("m0", "s", "44/1", "k_norm", epsilon="1/1")]
    ),
    "one noise for rounded sums, in one group": _forged(
        [{**SHIFTED, "cells": 1}],
        [_noise("m0", "s", "60/1", "window", {"factors": [1]}, epsilon="1/1")],
        **IN_ONE,
    ),
    "noise that groups share, on rounded sums": _forged(
        [SHIFTED],
        [_noise("m0", "s", "100/1", "gaussian", {"common": "1000/1"}, rho="1/1")],
        **IN_RHO,
    ),
    "a pair of a rounded sum and missing values": _forged(
        [
            {**ROWS, "fraction": 4},
            {**SHIFTED, "present": ["x"]},
            _total("values", "v", fraction=4, present=["x"]),
        ],
        [_noise("m0", "s v t0", "72/1", more={"weight": 1, "missing": "36/1"}, epsilon="1/1")],
    ),
    "noise that groups share, on numbers of both signs": _forged(
        [SIGNED], [_noise("m0", "s", "1/1", "gaussian", {"common": "1000/1"}, rho="3/5")], **IN_RHO
    ),
    "one noise for numbers of both signs": _forged(
        [SIGNED], [_noise("m0", "s", "1/1", "k_norm", epsilon="1/1")]
    ),
    "one window for numbers of both signs": _forged(
        [SIGNED], [_noise("m0", "s", "2/1", "window", {"factors": [1]}, epsilon="1/1")]
    ),
    "one noise for groups in any number": _forged(
        [OPEN, {**OPEN, "id": "t1"}],
        [CHOSEN, _noise("m1", "t1", "1/1", "k_norm", epsilon="1/1")],
        **{**KEYS_FOUND, "charge": {"epsilon": "2/1", "delta": "1/1000000"}},
    ),
    "a quantile whose public rows never fade": _forged(
        [_total("choice")],
        [
            _noise(
                "m0", "t0", "2/1", "permute_and_flip", {"number": 1, "rank": "1/2"}, epsilon="1/1"
            )
        ],
    ),
    "a choice by numbers of rows": _forged(
        [ROWS],
        [_noise("m0", "t0", "2/1", "permute_and_flip", {"number": 1, "rank": None}, epsilon="1/1")],
        relation="replace",
        questions=[{**_of(1), "by": []}],
    ),
    "no choice at all": _forged(
        [_total("choice")],
        [_noise("m0", "t0", "1/9", "permute_and_flip", {"number": 0, "rank": None}, epsilon="0/1")],
        charge=FREE,
    ),
    "fewer choices than none pay for another": _forged(
        [_total("choice"), _total("choice", "t1")],
        [
            _noise(
                "m0", "t0", "1/1", "permute_and_flip", {"number": 2, "rank": None}, epsilon="4/1"
            ),
            _noise(
                "m1", "t1", "1/1", "permute_and_flip", {"number": -2, "rank": None}, epsilon="-4/1"
            ),
        ],
        charge=FREE,
    ),
    "keys by groups of stricter limits": _forged(
        [{**OPEN, "own_limits": 0}],
        [
            _noise(
                "m0",
                "t0",
                "1/1",
                more={"finds": {"least": 0, "delta": "1/1000", "threshold": 9}},
                epsilon="1/1",
            )
        ],
        questions=[
            {
                **FOUND,
                "limits": dict.fromkeys(LIMITS, 99),
                "own_limits": [{"limits": {**LIMITS, "groups": 1}}],
            }
        ],
        charge={"epsilon": "1/1", "delta": "1/1000"},
    ),
    "keys by different values, some of which are missing": _forged(
        [_total("distinct", cells=None)],
        [
            _noise(
                "m0",
                "t0",
                "99/1",
                more={"finds": {"least": 0, "delta": "39/100", "threshold": 99}},
                epsilon="2/99",
            )
        ],
        questions=[{**FOUND, "limits": {"groups": 2, "rows_per_group": 2, "rows": 2}}],
        charge={"epsilon": "1/1", "delta": "39/100"},
    ),
    "exactly one row where units may have more": _forged(
        [_total(cells=1, one_row=True)],
        [],
        relation="replace",
        questions=[{**_of(1), "by": []}],
        charge=FREE,
    ),
    "exactly one row that may be missing": _forged(
        [_total("sum", cells=1, range=[9, 9], one_row=True, nullable=True)],
        [],
        **ONE_ROW,
        charge=FREE,
    ),
    "windows on other rows": _forged(
        [_total(own_limits=0), {**SUM, "range": [0, 1]}],
        [_noise("m0", "t0 s", "1/1", "window", {"factors": [1, 1]}, epsilon="1/1")],
        questions=[{**QUESTION, "own_limits": [{"limits": {**LIMITS, "groups": 1}}]}],
    ),
    "a window of units and of rows": _forged(
        [_total("units"), _total(name="t1")],
        [_noise("m0", "t0 t1", "2/1", "window", {"factors": [1, 1]}, epsilon="1/1")],
        questions=[_of(3, rows_per_group=5, rows=10)],
    ),
    "rounds whose chance is too small": _forged(
        [KEYS],
        [_noise("m0", "t0", "1000/1", "gaussian_rounds", {"thresholds": [1001], "finds": FINDS})],
        questions=[FOUND],
        composition={"rule": "rho"},
        charge={"rho": "1/2", "delta": FINDS["delta"]},
    ),
    "shared noise under replace": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/1", "gaussian", {"common": "1000/1"}, rho="9/10")],
        **{**IN_RHO, "charge": {"rho": "9/10", "delta": "0/1"}},
        relation="replace",
    ),
    "two entries of one unit in a merged tree": _forged(
        [
            _total("tree", cells=None),
            _total("merged", "m", of="t0", cells=9, sensitivity={"l0": 1}),
        ],
        [_noise("m0", "t0", "10/1", epsilon="1/2"), _noise("m1", "m", "10/1", epsilon="1/2")],
        questions=[_of(3, groups=1, rows_per_group=5, rows=5)],
    ),
    "a fraction that is none": _forged([{**ROWS, "fraction": True}], [LAPLACE]),
    "a range from a larger to a smaller number": _forged(
        [{**SUM, "range": [1, -1]}], [_noise("m0", "s", "2/1", epsilon="0/1")], charge=FREE
    ),
    "a window of numbers of rows that are said to be 0": _forged(
        [{**ROWS, "range": [0, 0]}],
        [_noise("m0", "t0", "1/9", "window", {"factors": [1]}, epsilon="0/1")],
        charge=FREE,
    ),
    "no unit": _forged([ROWS], [LAPLACE], unit={"columns": None}),
    "a sum without its range": _forged(
        [{k: v for k, v in SUM.items() if k != "range"}], [], charge=FREE
    ),
}
# What a chain takes as it stands: claims of sensitivities, and what follows from steps.
ALONE = {
    "people of a table that has no ids": _forged(
        [_total("units", cells=3)],
        [_noise("m0", "t0", "3/1", epsilon="1/1")],
        unit={"rows": 3},
        questions=[{**QUESTION, "contribution": {"rows": 3, "exactly_one": False}}],
    ),
    "entries of a tree that are said to be few": _forged(
        [_total("tree", cells=None, sensitivity={"l0": 1})],
        [_noise("m0", "t0", "5/1", epsilon="1/1")],
        questions=[_of(3, groups=1, rows_per_group=5, rows=5)],
    ),
    "a join of tables that are not all of one row": _forged(
        [_total(cells=1)],
        [_noise("m0", "t0", "1/1", epsilon="1/1")],
        questions=[
            {
                **_of(1, groups=None, rows_per_group=None, rows=None),
                "steps": [
                    *JOINED,
                    {
                        "step": "join_units",
                        "how": "inner",
                        "keeps_units": False,
                        "others": [JOINED, JOINED[:1]],
                    },
                ],
                "contribution": {"rows": 1, "exactly_one": False},
            }
        ],
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_what_they_are_forged_from_is_proved(name):
    assert _verdict(PROVED[name]) == "PROVED"


@pytest.mark.parametrize("name", [*FORGED, *ALONE])
def test_false_claims_are_not_proved(name):
    assert _verdict({**FORGED, **ALONE}[name]) != "PROVED"


def _with_limits(certificate):
    """With the limits and ranges that a chain is made of: those of its questions."""
    made = json.loads(json.dumps(certificate))
    for total in made["totals"]:
        question = made["questions"][total["question"]]
        own = dict(question["limits"])
        if total.get("own_limits") in range(len(question["own_limits"])):
            own = question["own_limits"][total["own_limits"]]["limits"]
        rows = min(
            x for x in (own["rows"], question["contribution"]["rows"], 10**9) if x is not None
        )
        groups = min(x for x in (own["groups"], rows, question["cells"]) if x is not None)
        each = min(own["rows_per_group"], rows)
        total.setdefault(
            "limits", {"groups": groups, "rows_per_group": each, "rows": min(rows, groups * each)}
        )
        total.setdefault("range", [1, 1] if total["kind"] == "rows" else [0, 1])
    return made


def _holds(certificate):
    """Whether the framework has a chain for it, and one that costs no more than the charge."""
    try:
        loss = t.from_certificate(_with_limits(certificate)).map(1)
    except DpFrameError:
        return False
    loss, delta = loss if isinstance(loss, tuple) else (loss, 0)
    charge, more = certificate["charge"], 1 + Fraction(1, 10**9)
    charged = Fraction(charge.get("rho") or charge["epsilon"])
    return loss <= charged * more and delta <= Fraction(charge["delta"]) * more


# of which some have limits that are none, or no noise
NO_CHAIN = {"exactly one row", "limits of a column", "nights"}


@pytest.mark.parametrize("name", sorted(PROVED.keys() - NO_CHAIN))
def test_the_framework_has_a_chain_for_what_they_are_forged_from(name):
    assert _holds(PROVED[name])


@pytest.mark.parametrize("name", FORGED)
def test_the_framework_has_no_chain_for_false_claims(name):
    assert not _holds(FORGED[name])


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
        [
            _noise(
                "m0",
                "t0",
                f"1/{10**30}",
                epsilon=f"{10**31}/1",
                rho=f"{10**31}/1",
                mu_squared=f"{10**32}/1",
            )
        ],
        charge={"epsilon": f"{10**31}/1", "delta": "0/1"},
    ),
    "levels of an interaction": _forged(
        [_total("interaction", levels=[10**100 + i for i in range(10**4)])], []
    ),
    "weights of nights": _forged(
        [ROWS, {**NIGHTS[1], "size": 3000, "periods": 3000, "weights": [*range(3000, 0, -1)]}],
        ON_NIGHTS[:1],
    ),
    "public rows": _forged(
        [ROWS],
        [LAPLACE],
        unit={"rows": 1},
        questions=[
            {**QUESTION, "steps": [{"step": "source"}, *[{**PUBLIC, "most": 10**500}] * 300]}
        ],
    ),
    "scales of many mechanisms": _forged(
        [ROWS],
        [
            {**LAPLACE, "id": f"m{i}", "scale": f"{10**500 + i}/{10**500 - 2 * i - 1}"}
            for i in range(1000)
        ],
    ),
    "a threshold beside noise": _forged(
        [OPEN],
        [
            _noise(
                "m0",
                "t0",
                "20/1",
                "gaussian",
                {"finds": {**THRESHOLD["finds"], "threshold": 10**9}},
            )
        ],
        **{
            **BESIDE,
            "questions": [_of(None, groups=200)],
            "charge": {"epsilon": "1/2", "delta": "1/1000"},
        },
    ),
    "full groups": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/1", "gaussian", {"rest": "1/9"})],
        questions=[{**_of(None, groups=10**9, rows=10**9), "cells": 10**9}],
        **IN_RHO,
    ),
    "rounds": _forged(
        [KEYS],
        [
            _noise(
                "m0",
                "t0",
                "1000/1",
                "gaussian_rounds",
                {"thresholds": [9000] * 10**5, "finds": FINDS},
            )
        ],
        questions=[FOUND],
        composition={"rule": "rho"},
        charge={"rho": "1/2", "delta": FINDS["delta"]},
    ),
    "an ε of normal noise": _forged(
        [ROWS],
        [_noise("m0", "t0", "1/1", "gaussian", mu_squared="2/1")],
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


@pytest.mark.parametrize("name", ["t0\n\nPROVED\n", "\x1b[2J", "\ud800"])
def test_names_cannot_write_a_verdict(name, tmp_path, capsys):
    """An id may be any text. It takes no line of its own, moves no cursor, and can be printed."""
    (tmp_path / "a.json").write_text(json.dumps(_forged([_total(name=name)], [])))
    assert check.main([str(tmp_path / "a.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.isprintable() or line == "PROVED"] == []


def test_a_tiny_chance_is_shown():
    """Its fraction has more digits than Python writes."""
    keys = {**KEYS_FOUND, "charge": {"epsilon": "1/1", "delta": "1/1000000"}}
    finds = {"finds": {**FINDS, "threshold": 20_000}}
    assert (
        _verdict(_forged([OPEN], [_noise("m0", "t0", "2/1", more=finds, epsilon="1/1")], **keys))
        == "PROVED"
    )


def test_a_ledger_of_nothing_is_no_ledger(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(PROVED["one total"]))
    (tmp_path / "b.json").write_text("null")
    assert check.main([str(tmp_path / "a.json")]) == 0
    assert check.main([str(tmp_path / "a.json"), "--ledger", str(tmp_path / "b.json")]) == 2


def test_numbers_that_are_none_are_refused(tmp_path):
    for word in ("NaN", "Infinity", "-Infinity"):
        text = json.dumps(PROVED["one total"]).replace(
            '"rows_per_group": 1', f'"rows_per_group": {word}'
        )
        (tmp_path / "a.json").write_text(text)
        assert check.main([str(tmp_path / "a.json")]) == 1
