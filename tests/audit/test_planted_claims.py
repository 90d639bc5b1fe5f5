"""Each planted bug of the audit, held against the checker:
where a certificate shows it, the checker refuses it.
"""

import polars as pl
import pytest
from plants import _function, changed
from test_plants import PLANTS

import dpframe as dp
from dpframe import dpframe_check
from dpframe.errors import DpFrameError

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.long]
CITIES = ["Bonn", "Kiel", "Ulm"]
TABLE = pl.DataFrame(
    {
        "u": [1, 1, 2, 2, 3, 4],
        "city": ["Bonn", "Kiel", "Bonn", "Bonn", "Kiel", "Ulm"],
        "x": [1.0, None, 3.0, 4.0, 9.0, 2.0],
        "k": [1, 2, 3, 4, 5, 6],
        "yes": [True, False, True, True, False, True],
    }
)
LISTED = {"keys": CITIES, "max_groups": 2, "max_rows_per_group": 2}
CELLS = {"city": CITIES, "yes": [True, False]}
LEAVES = [(city, yes) for city in CITIES for yes in (True, False)]
AREAS = pl.DataFrame({"city": ["Bonn", "Bonn", "Kiel"], "area": [1, 2, 3]})
PRICES = {
    "ε": {"epsilon": 1.0},
    "large ε": {"epsilon": 30.0, "delta": 1e-6, "noise": "gaussian"},
    "δ": {"epsilon": 1.0, "delta": 1e-6},
    "σ": {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    "ρ": {"rho": 0.5, "delta": 1e-6},
}
ONE, REPLACED = {}, {"neighbors": "replace"}
ASKED = {
    "counts": (
        lambda f: f.group_by("city", **LISTED).agg(n=dp.count(), s=dp.sum("x", (0, 5))),
        "ε σ",
        ONE,
    ),
    "exchanged": (
        lambda f: f.group_by("city", **LISTED).agg(n=dp.count(), m=dp.mean("x", (0, 5))),
        "ε ρ",
        REPLACED,
    ),
    "both signs": (
        lambda f: f.group_by("city", keys=CITIES, max_groups=3, max_rows_per_group=1).agg(
            s=dp.sum("k", (-2, 5))
        ),
        "σ ρ",
        ONE,
    ),
    "three limits": (
        lambda f: f.group_by("city", **LISTED, max_rows=3).agg(
            n=dp.count(), m=dp.mean("x", (0, 5))
        ),
        "ε δ",
        ONE,
    ),
    "large": (
        lambda f: f.group_by("city", **LISTED).agg(n=dp.count(), m=dp.mean("x", (0, 5))),
        "large",
        ONE,
    ),
    "moments": (lambda f: f.agg(v=dp.var("x", (0, 5), max_rows=2)), "ρ", ONE),
    "choices": (
        lambda f: f.group_by("city", **LISTED).agg(q=dp.median("x", (0, 5)), m=dp.mode("yes")),
        "ε ρ δ σ",
        ONE,
    ),
    "many choices": (
        lambda f: f.group_by(
            "city", keys=list("abcdefghij"), max_groups=9, max_rows_per_group=3
        ).median("x", (0, 1)),
        "δ",
        ONE,
    ),
    "top": (lambda f: f.top_k("city", 2, keys=CITIES, max_rows=2), "ρ ε", ONE),
    "tree": (lambda f: f.quantile("x", [0.1, 0.5, 0.9], (0, 5), max_rows=2), "ε δ", REPLACED),
    "found": (lambda f: f.group_by("city", max_groups=2, max_rows_per_group=2).count(), "δ σ", ONE),
    "of many units": (
        lambda f: f.group_by("city", max_groups=2, max_rows_per_group=2, min_units=3).agg(
            n=dp.count_units()
        ),
        "δ ρ",
        ONE,
    ),
    "suppressed": (
        lambda f: f.group_by("city", max_groups=2, max_rows_per_group=2, other="rest").agg(
            m=dp.mean("x", (0, 5))
        ),
        "δ",
        ONE,
    ),
    "keys": (lambda f: f.group_by("city").keys(), "δ", ONE),
    "margins": (
        lambda f: f.crosstab(
            "city",
            "yes",
            keys=CELLS,
            margins="measured",
            max_groups=2,
            max_rows_per_group=2,
            max_rows=3,
        ),
        "ε σ",
        ONE,
    ),
    "opposite signs": (
        lambda f: f.group_by("city", **LISTED).agg(n=dp.count(), s=dp.sum("k", (-5, 0))),
        "ε",
        ONE,
    ),
    "hierarchy": (
        lambda f: f.hierarchy(["city", "yes"], keys=LEAVES, max_groups=2, max_rows_per_group=1),
        "ε",
        ONE,
    ),
    "marginals": (
        lambda f: f.marginals(["city", "yes"], "2-way", keys=CELLS, max_rows=3),
        "δ",
        REPLACED,
    ),
    "shared noise": (
        lambda f: f.group_by("city", keys=CITIES, max_groups=3, max_rows_per_group=1).count(),
        "ε σ ρ",
        ONE,
    ),
    "in one window": (
        lambda f: f.group_by("city", keys=CITIES, max_groups=3, max_rows_per_group=2).count(),
        "ε",
        REPLACED,
    ),
    "a filter": (
        lambda f: f.filter(dp.col("k") > 2).sum("k", (0, 6)),
        "ε",
        {"unit": dp.Rows(1), **REPLACED},
    ),
    "a join": (lambda f: f.join(AREAS, on="city").sum("area", (0, 3)), "ε", {"unit": dp.Rows(1)}),
    "found by rows": (lambda f: f.group_by("city").count(), "δ", {"unit": dp.Rows(5)}),
    "a batch": (lambda f: [f.count(max_rows=2), f.count_units()], "ε ρ", ONE),
    "own limits": (
        lambda f: f.group_by("city", **LISTED).agg(
            n=dp.count(), m=dp.mean("x", (0, 5), max_rows=1)
        ),
        "ε",
        ONE,
    ),
    "the population": (
        lambda f: f.group_by("city", **LISTED).agg(m=dp.mean("x", (0, 5))),
        "ε",
        REPLACED,
    ),
}
OPTIONS = {"the population": {"covers": "population"}}
CASES = [
    (name, price)
    for name, (_, prices, _) in ASKED.items()
    for price in prices.replace("large ε", "large").split()
]


def certified(name, price):
    """What is claimed of a question at a price; the error, where a bug makes it one."""
    ask, _, about = ASKED[name]
    paid = PRICES["large ε" if price == "large" else price]
    limit = {"rho": 1e6} if "rho" in paid else {"epsilon": 1e6}
    budget = dp.Budget(**limit, delta=0.1)
    frame = dp.protect(TABLE, **{"unit": "u", **about}, budget=budget)
    query = ask(frame)
    if name == "a batch":
        certificate = budget.plan(query, **paid).release()[0].certificate()
    else:
        query = query._with_ci(0.9) if name == "choices" and price == "ρ" else query
        certificate = query.release(**paid, **OPTIONS.get(name, {})).certificate()
    return {
        key: value
        for key, value in certificate.items()
        if key not in ("answer", "ledger", "table", "drawn")
    }


def verdicts(honest):
    """Of each question whose certificate is another one than it was: the verdict, or the error."""
    found = {}
    for case, before in honest.items():
        try:
            now = certified(*case)
        except (DpFrameError, ValueError) as error:
            found[case] = type(error).__name__
            continue
        if now != before:
            found[case] = dpframe_check.Check(now).verdict
    return found


@pytest.fixture(scope="module")
def honest():
    made = {case: certified(*case) for case in CASES}
    assert {dpframe_check.Check(one).verdict for one in made.values()} == {"PROVED"}
    return made


ROOMS = tuple(
    f"dpframe.{room}"
    for room in ("plan", "theory", "release.pricing", "release.kinds", "release.batch")
)
IN_ROOMS = [plant for plant in PLANTS if _function(plant.thing).__module__.startswith(ROOMS)]
NO_SIGN = {  # why a certificate does not show a bug of these rooms
    "what is drawn or read, which is assumed to be as the certificate says": [
        "public rows are rounded down, so that some count for half a row more",
        "own noise without the shared noise",
        "one noise for all nodes of a level",
        "one noise for all keys of a round",
        "a rewritten column keeps its bounds",
        "a rewritten column keeps what was declared of it",
        "the bounds of a policy file do not reach the cells",
        "the keys of a policy file do not reach the cells",
        "a conversion that fails is said not to",
        "squared influences are larger than is claimed",
        "a type that pandas has not makes keys",
        "a candidate of a quantile fits in 64 bits",
    ],
    "which limits hold: those that are stated do, though others were asked for": [
        "the limits of the question are claimed for a column with other ones",
        "a join of two tables has the declared limits of one",
        "declared limits take the place of typed ones",
        "the limits of a policy file are not enforced",
        "tables together lose the limits of a policy file",
        "a limit wider than a policy file is taken",
        "bounds wider than those of a policy file are taken",
        "a feature of a unit counts more rows than a policy file lets count",
        "a total of a unit is of more rows than a policy file lets count",
    ],
    "no claim is false: the noise is larger, or there is a refusal less": [
        "the middle of whole numbers is rounded down",
        "what cannot run is paid for",
    ],
    "no answer at all: an error, before the charge": [
        "one noise for totals of different rows",
    ],
    "spread and sums of accounts that no short question has": [
        "a unit has rows in all of its groups but one",
        "squares of μ are within all of δ, beside keys that have a part of it",
        "keys take the δ of the sum of squares",
    ],
    "rounds of synthetic rows, which are UNKNOWN": [
        "synthetic rows: a unit that is exchanged moves a table twice",
        "synthetic rows that are linked: the rows of a unit move its cells by their number",
        "synthetic rows: a choice is paid for the heaviest candidate",
        "synthetic rows: a choice is paid",
        "synthetic rows: a table is paid",
        "synthetic rows come from noisy tables",
    ],
}
UNSEEN = {name for names in NO_SIGN.values() for name in names}


def test_the_list_is_that_of_the_plants():
    """Other rooms read rows, draw noise, keep books and lay out tables:
    no certificate depends on what they do.
    """
    assert {plant.name for plant in IN_ROOMS} >= UNSEEN
    assert len(UNSEEN) == sum(map(len, NO_SIGN.values()))


@pytest.mark.parametrize("plant", IN_ROOMS, ids=lambda plant: plant.name)
def test_a_bug_that_makes_a_claim_false_is_refused(plant, honest):
    with changed(plant.thing, plant.old, plant.new):
        found = verdicts(honest)
    assert ("REFUSED" in found.values()) == (plant.name not in UNSEEN), found


def test_a_bug_of_another_room_does_not_change_a_certificate(honest):
    for plant in PLANTS[::9]:
        if plant not in IN_ROOMS and ".engine." in _function(plant.thing).__module__:
            with changed(plant.thing, plant.old, plant.new):
                assert set(verdicts({case: honest[case] for case in [*honest][:3]}).values()) <= {
                    "EngineError"
                }
