"""The framework's chain of a certificate costs what the tracker charged, for
every question that the tests know.
"""

import copy
import json
import random
from fractions import Fraction

import pytest

import dpframe as dp
import dpframe.theory as t
import walk
from dpframe import errors
from dpframe.errors import DpFrameError
from dpframe.release import run
from dpframe.theory.certificates import _Steps, number

pytestmark = pytest.mark.filterwarnings("ignore")
PRICES = {
    "either": ({"epsilon": 1e6, "delta": 0.1}, {"epsilon": 1.0, "delta": 1e-6}),
    "epsilon": ({"epsilon": 1e6, "accountant": "basic"}, {"epsilon": 1.0}),
    "rho": ({"rho": 1e6, "delta": 0.1}, {"rho": 0.5, "delta": 1e-6}),
}
TABLE = walk.plain()
NO_CHAIN = {"table_rounds"}  # laws that have none; a release of synthetic rows has this one alone


def certificates(monkeypatch, name, relation, price):
    """The certificates of all releases of one question of the walk."""
    limit, paid = PRICES[price]
    made, releasing = [], run._release
    monkeypatch.setattr(run, "_release", lambda *args: made.append(releasing(*args)) or made[-1])
    monkeypatch.setattr(walk, "PRICE", paid)
    cell = walk.Cell(TABLE)
    cell.budget, frame = dp.Budget(**limit), cell.frame
    cell.frame = lambda unit="u", **options: frame(unit, **{"neighbors": relation, **options})
    try:
        walk._release(walk.CELLS[name](cell))
    except DpFrameError:
        assert not made
    # others say how an answer is shown
    filed = [out for out in made if out._record.filed.certificate is not None]
    assert bool(filed) == bool(made)
    return [json.loads(json.dumps(out.certificate())) for out in filed]


def loss_of(charge):
    return number(charge.get("rho") or charge["epsilon"]), number(charge["delta"])


def pair(loss):
    return loss if isinstance(loss, tuple) else (loss, 0)


CASES = [
    (name, relation, price)
    for name in walk.CELLS
    for relation in ("add-remove", "replace")
    for price in PRICES
]


@pytest.mark.one_in(43)
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_chain_costs_what_was_charged(monkeypatch, case):
    for certificate in certificates(monkeypatch, *case):
        if {one["law"] for one in certificate["mechanisms"]} & NO_CHAIN:
            with pytest.raises(errors.UnsupportedOperation, match="table_rounds"):
                t.from_certificate(certificate)
            continue
        loss, delta = pair(t.from_certificate(certificate).map(1))
        charged, slack = loss_of(certificate["charge"])
        assert loss <= charged * (1 + Fraction(1, 10**12))  # the chain rounds floats up
        assert delta <= slack * (1 + Fraction(1, 10**12))
        chain = _Steps(certificate)
        for total in certificate["totals"]:
            bound = chain.sensitivity(total["id"])
            derived = {
                "l0": bound.l0,
                "l1": bound.exact_l1,
                "l2_squared": bound.l2_squared,
                "linf": bound.exact_linf,
            }
            for name, claim in total["sensitivity"].items():
                assert derived[name] == (claim if name == "l0" else number(claim)), (
                    total["kind"],
                    name,
                )


GROUPS = (
    "groups: mean",
    "groups: quantile",
    "groups: count_units",
    "keys: enum",
    "elliptic",
    "k norm",
    "tables: sums",
)


@pytest.mark.parametrize("name", GROUPS)
def test_a_larger_limit_or_less_noise_costs_more(monkeypatch, name):
    """A changed fact changes the chain's loss: all that the claim rests on is read."""
    certificate = certificates(monkeypatch, name, "add-remove", "either")[0]
    before, slack = pair(t.from_certificate(certificate).map(1))
    for total in certificate["totals"]:
        for limit in total.get("limits", {}):
            changed = copy.deepcopy(certificate)
            del changed["questions"]  # whose limits these have to be
            for one in changed["totals"]:
                if "limits" in one:
                    one["limits"][limit] *= 3
                    one["cells"] = None if one["cells"] is None else 9 * one["cells"]
            try:
                now = pair(t.from_certificate(changed).map(1))
            # refused, as a row may weigh less than 1 under these limits
            except errors.InvalidArgument:
                continue
            assert now >= (before, slack)
    for place, mechanism in enumerate(certificate["mechanisms"]):
        changed = copy.deepcopy(certificate)
        value = number(mechanism["scale"]) / 2
        changed["mechanisms"][place]["scale"] = f"{value.numerator}/{value.denominator}"
        assert pair(t.from_certificate(changed).map(1)) > (before, slack), mechanism["law"]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("rank", [0, 0.25, 0.5, 1])
def test_a_choice_costs_all_of_its_price(rank, price, relation):
    """The scores of the claim are those that are chosen by:
    what public rows add to a row's change is in it.
    """
    limit, paid = PRICES[price]
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(**limit), neighbors=relation)
    asked = frame.group_by("city", keys=["Bonn", "Celle"], max_groups=2, max_rows_per_group=3)
    certificate = asked.quantile("x", rank, (0, 10)).release(**paid).certificate()
    (choice,) = certificate["mechanisms"]
    assert ("fade" in choice) == (0 < rank < 1)
    loss, _ = pair(t.from_certificate(certificate).map(1))
    assert 1 - 1e-9 < loss / loss_of(certificate["charge"])[0] <= 1 + 1e-12


def test_it_has_no_rows():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=1))
    chain = t.from_certificate(frame.count(max_rows=2).release(epsilon=0.5).certificate())
    assert chain.map(1) == 0.5
    assert chain.map(2) == 1.0
    with pytest.raises(errors.UnsupportedOperation, match="no rows"):
        chain.function([(1,)])


@pytest.mark.parametrize(
    "made", [{}, {"relation": "replace"}, [], None, {"relation": "replace", "totals": [{}]}]
)
def test_what_is_no_certificate(made):
    with pytest.raises(errors.InvalidArgument, match="no certificate"):
        t.from_certificate(made)


def test_units_that_are_exchanged():
    metric, rng = t.ExchangedUnitDistance(), random.Random(1)
    table = [(u, rng.random()) for u in range(5)]
    assert metric.distance(table, table[1:]) == float("inf")
    assert metric.distance(table, [(9, 0.5), *table[1:]]) == 1
    assert metric.distance(table, [(0, 0.5), (9, 1.0), *table[2:]]) == 2
