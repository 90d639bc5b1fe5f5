"""`dp.Auto` on every small table and every neighbour of it, and games in which
whole releases are told apart.

Every table is released once with each set of answers, which is given (`dpframe.audit.replaying`).
So of each pair of neighbours all that can be seen must be the same, and the exact loss of the
answers is at most the charge, also where numbers share one noise. The games see what anybody sees
of a release, with fresh noise, of the worst neighbours that were found. Their bound on ε is wrong
once in a million.
"""

from __future__ import annotations

import polars as pl
import pytest
from test_transcripts import seen

import dpframe as dp
from dpframe.audit import audit
from dpframe.audit.neighbouring import multisets, pairs
from dpframe.audit.replaying import given, loss
from inside import statement_of

SCHEMA = {"u": pl.String, "g": pl.String, "x": pl.Float64}
KINDS = {  # how many rows of a kind there are, if there are any
    ("A", "x", 9.0): 9,
    ("A", "y", -3.0): 9,
    ("B", "x", -3.0): 9,
    ("B", "y", 9.0): 9,
    ("C", "x", 1e6): 1,
    (None, "x", 9.0): 9,
}
OWNERS = [(unit,) if unit else None for unit, *_ in KINDS]
TABLES = multisets(len(KINDS), 3)
SHARED = {"n": dp.count(), "s": dp.sum("x", bounds=(-3, 9)), "v": dp.count("x")}
QUESTIONS = {
    "limits": lambda f: f.count(limits=dp.Auto(0.5)),
    "limits of a sum": lambda f: f.sum("x", bounds=(-3, 9), limits=dp.Auto(0.5)),
    "bounds": lambda f: f.sum("x", bounds=dp.Auto(0.5), max_rows=3),
    "bounds of a mean": lambda f: f.mean("x", bounds=dp.Auto(0.5), max_rows=3),
    "both": lambda f: f.sum("x", bounds=dp.Auto(0.3), limits=dp.Auto(0.3)),
    "grouped": lambda f: f.group_by("g", keys=["x", "y"], limits=dp.Auto(0.5)).agg(
        n=dp.count(), s=dp.sum("x", bounds=(-3, 9))
    ),
    "grouped, both": lambda f: f.group_by("g", keys=["x", "y"], limits=dp.Auto(0.3)).agg(
        n=dp.count_units(), s=dp.sum("x", bounds=dp.Auto(0.3))
    ),
    "shared noise": lambda f: f.agg(**SHARED, limits=dp.Auto(0.5)),
    "shared noise of groups": lambda f: f.group_by("g", keys=list("xyz"), limits=dp.Auto(0.5)).agg(
        **SHARED
    ),
    "shared noise, bounds": lambda f: f.agg(
        n=dp.count(), s=dp.sum("x", bounds=dp.Auto(0.5)), max_rows=3
    ),
}
EPSILON = 2.0


def table(counts):
    """The table of a multiset: each kind of row as many times as it says."""
    rows = [
        kind
        for (kind, rows), count in zip(KINDS.items(), counts, strict=True)
        for _ in range(count * rows)
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def transcript(ask, rows, relation, seed, *, choosing):
    with given(seed, choosing=choosing) as said:
        budget = dp.Budget(epsilon=100, accountant="basic")
        out = ask(dp.protect(rows, unit="u", neighbors=relation, budget=budget)).release(
            epsilon=EPSILON
        )
        return seen(out), said


def largest(name, relation, seed, *, choosing=False):
    """The largest part of the charge that two neighbours use, of all small tables."""
    released = [
        transcript(QUESTIONS[name], table(t), relation, seed, choosing=choosing) for t in TABLES
    ]
    most = 0.0
    for i, j in pairs(TABLES, OWNERS, relation):
        (here, one), (there, other) = released[i], released[j]
        assert here == there, (name, relation, seed, TABLES[i], TABLES[j])
        used = loss(one, other, "epsilon", 0.0)
        assert used <= EPSILON * (1 + 1e-9), (name, relation, seed, TABLES[i], TABLES[j], used)
        most = max(most, used / EPSILON)
    return most


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_small_table_and_neighbour_cost_more_than_the_charge(name, relation):
    # of 0.3 to 0.5, which choices cost
    assert largest(name, relation, seed=0) > 0.4, "the check has no power here"


def test_a_small_table_and_its_neighbours():
    """One of these in the quick tier, of fewer tables."""
    rows = [
        transcript(QUESTIONS["shared noise"], table(t), "add-remove", 0, choosing=False)
        for t in TABLES[:7]
    ]
    assert all(one[0] == rows[0][0] for one in rows)
    used = [loss(rows[0][1], other, "epsilon", 0.0) for _, other in rows[1:]]
    assert 0.7 * EPSILON < max(used) <= EPSILON * (1 + 1e-9)


# Games

# at an end of whatever bounds are chosen
ONE, MANY = [("A", "x", 1e300)] * 40, [("B", "y", -1e300)] * 40
FEW = [(unit, "x", 0.0) for unit in "CDEFGHIJ"]
MORE = [(f"unit {i}", "x", 0.0) for i in range(22)]  # about as many as a found key needs
GAMES = {
    "limits": lambda f: f.count(limits=dp.Auto(0.5)),
    "bounds": lambda f: f.sum("x", bounds=dp.Auto(0.5), max_rows=1),
    "both": lambda f: f.sum("x", bounds=dp.Auto(0.3), limits=dp.Auto(0.3)),
    "grouped": lambda f: f.group_by("g", keys=["x"], limits=dp.Auto(0.5)).agg(
        n=dp.count(), u=dp.count_units()
    ),
    "found": lambda f: f.group_by("g", limits=dp.Auto(0.5)).count(),
}
DELTA = {"found": 1e-3}


def told(out, name):
    """What tells most: the number, without the factor for what limits leave out,
    in the most that one unit adds.
    """
    chosen = statement_of(out)["chosen"]
    limits, bounds = chosen.get("limits", {}), chosen.get("bounds", {}).get("x", (1.0, 1.0))
    most = min(limits.get("max_rows", 40), limits.get("max_rows_per_group", 40)) if limits else 1
    if name in ("grouped", "found"):
        value = {row[0]: row[1] for row in out.table.rows()}.get("x", -10.0 * most)
    else:
        value = out.table.row(0)[0]
    return value / chosen.get("scaled", 1.0) / (most * max(map(abs, bounds)))


def game(name, relation, trials, *, claim=4.0):
    """Whole releases of the worst neighbours, at ε = 4:
    40 rows of one unit, or none or other ones in their place.
    """
    ask, delta, budget = GAMES[name], DELTA.get(name, 0.0), dp.Budget(epsilon=1e9, delta=1 - 1e-9)
    others = MORE if name == "found" else FEW
    tables = [others + ONE, others + (MANY if relation == "replace" else [])]
    queries = [
        ask(
            dp.protect(
                pl.DataFrame(rows, SCHEMA, orient="row"),
                unit="u",
                neighbors=relation,
                budget=budget,
            )
        )
        for rows in tables
    ]
    release = lambda query: told(query.release(epsilon=4.0, delta=delta or None), name)  # noqa: E731
    return audit(release, *queries, claim, delta, trials)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The released table is empty")
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", GAMES)
def test_whole_releases_are_not_told_apart_better_than_is_claimed(name, relation):
    result = game(name, relation, 250)
    assert result.holds, result.verdict


@pytest.mark.long
def test_a_game_sees_a_claim_that_is_too_low():
    assert not game("limits", "add-remove", 250, claim=0.2).holds
