"""Every claim of a question against every small table and every neighbour of it.

Twelve kinds of rows (unit A, B or nobody × group x or y × value -1 or 3), all 1,820 tables of up to
four rows, every removal of one unit and every exchange of one for another; chains of up to two
frame operations (three in the long tier), all aggregates, three kinds of groups, and `dp.Rows(k)`.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import batches
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.api import Query
from dpframe.errors import DpFrameError
from dpframe.noise import bits
from dpframe.plan import Bounds, Covers, Hierarchy, Limits
from dpframe.plan.columns import ColumnDefaults, Lock
from dpframe.plan.statistics import Missing
from dpframe.plan.steps.rewrites import UnderPolicy
from dpframe.release.answer.draw import margin_totals
from dpframe.theory.formulas.sensitivity import grouped as sensitivity
from dpframe.theory.formulas.sensitivity.sum_and_count import paired_l1
from inside import question_of, step_of
from statistics_table import shapes

UNIT = ("t", "u")
BUDGET = dp.Budget(epsilon=1e9, delta=0.5)


def _ids(frame):
    """The identifiers, and the table's number where the frame has one."""
    return [name for name in ("t", "u") if name in frame.columns]


OPERATIONS = {
    "filter": lambda f: f.filter(dp.col("v") > 0),
    "filter group": lambda f: f.filter(dp.col("g") == "x"),
    "with_columns": lambda f: f.with_columns(v=dp.col("v") * 2 - 1, i=dp.col("i") + 1),
    "made null": lambda f: f.with_columns(
        v=dp.when(dp.col("v") > 0).then(dp.col("v")), i=dp.when(dp.col("v") > 0).then(dp.col("i"))
    ),
    "rewritten group": lambda f: f.with_columns(
        g=dp.when(dp.col("v") > 0).then(dp.lit("x")).otherwise(dp.col("g"))
    ),
    "select": lambda f: f.select(*_ids(f), "g", "v", "i"),
    "drop": lambda f: f.drop("u"),
    "rename": lambda f: f.rename({"v": "w", "g": "v"}).rename({"v": "g", "w": "v"}),
    "clip": lambda f: f.clip("v", 0, 2).clip("i", 0, 2),
    "fill_null": lambda f: f.fill_null({"v": 1, "g": "y"}),
    "drop_nulls": lambda f: f.drop_nulls("v"),
    "cast": lambda f: f.cast({"v": "int8", "i": "int16"}),
    "cut": lambda f: f.cut("v", [-5, 0, 5], labels=["x", "y"], into="g"),
    "bound": lambda f: f.bound(max_rows=2),
    "join one to many": lambda f: (
        f.join({"g": ["x", "x", "y"], "b": [1, 2, 3]}, on="g")
        .with_columns(v=dp.col("v") + dp.col("b"))
        .drop("b")
    ),
    "join left": lambda f: (
        f.join({"g": ["x"], "b": [2.0]}, on="g", how="left").with_columns(v=dp.col("b")).drop("b")
    ),
    "join protected": lambda f: (
        f.join(f.per_unit(b=dp.sum("v", bounds=(-1, 3))), on=_ids(f))
        .with_columns(v=dp.col("b"))
        .drop("b")
    ),
    "concat": lambda f: dp.concat([f, f.filter(dp.col("g") == "x")]),
    "per_unit": lambda f: f.per_unit(
        v=dp.sum("v", bounds=(-1, 3)), i=dp.count(), g=dp.last("g", by="v")
    ),
    "partition": lambda f: f.partition("g", ["x", "y"])["x"],
}
LIMITS = [
    {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 3},
    {"max_groups": 1, "max_rows_per_group": 2},
    {"max_rows": 2},
    {"max_groups": 2, "max_rows_per_group": 1},
    {"max_groups": 1, "max_rows": 3},
    {"max_groups": 2, "max_rows_per_group": 3, "max_rows": 4},
]
AGGREGATES = {
    "n": dp.count(),
    "nv": dp.count("v"),
    "nothing": Missing(Fraction(1), "v"),
    "units": dp.count_units(),
    "s": dp.sum("v", bounds=(-1, 3)),
    "narrow": dp.sum("v", bounds=(1, 2)),
    "each": dp.sum("v", unit_bounds=(-2, 4)),
    "m": dp.mean("v", bounds=(-1, 3)),
    "odd": dp.mean("i", bounds=(0, 3)),
    "sd": dp.std("v", bounds=(0, 3)),
    **shapes("v", (-1, 3)),
    "both": dp.cov("v", "i", bounds={"v": (-1, 3), "i": (-1, 7)}),
    "together": dp.corr("v", "i", bounds={"v": (-1, 3), "i": (-1, 7)}),
    "weighted": dp.mean("v", bounds=(-1, 3), weights="i", weight_bounds=(0, 7)),
    "over": dp.ratio(dp.sum("v", bounds=(-1, 3)), dp.sum("i", bounds=(0, 7))),
    "geometric": dp.geometric_mean("v", bounds=(1, 3)),
    "different": dp.n_unique("v"),
    "low": dp.min("i", bounds=(-1, 3)),
    "middle": dp.median("i", bounds=(-1, 3)),
    "upper": dp.quantile("i", 0.75, bounds=(-1, 3)),
    "high": dp.max("i", bounds=(-1, 3)),
    "common": dp.mode("i", keys=[-1, 3, 7]),
    "upto": dp.cdf("i", [0, 2], bounds=(-1, 3)),
}
UNTYPED = {  # statistics of a table that declares what they do not say
    "n": dp.count(),
    "units": dp.count_units(),
    "s": dp.sum("v"),
    "m": dp.mean("v"),
    "odd": dp.mean("i"),
    "sd": dp.std("v"),
    "both": dp.cov("v", "i"),
    "weighted": dp.mean("v", weights="i"),
    "over": dp.ratio(dp.sum("v"), dp.sum("i")),
    "middle": dp.median("i"),
    "common": dp.mode("i"),
    "upto": dp.cdf("i", [0, 2]),
}
DECLARED = {"bounds": {"v": (-1, 3), "i": (0, 7)}, "keys": {"i": [-1, 3, 7]}}
OWN = [
    {"max_rows": 1},
    {"max_rows_per_group": 1},
    {"max_groups": 1},
    {"max_rows": 4, "max_groups": 2},
    {},
]
POPULATION = (  # those with second moments
    *("n", "nv", "units", "s", "narrow", "each", "m", "odd"),
    *("sd", "both", "together", "weighted", "over"),
)


def with_own_limits(aggregate, **limits):
    """An aggregate under limits of its own, as `dp.mean("v", max_rows=1)` has them."""
    own = {"limits": Limits(**limits)}
    parts = {
        "parts": tuple((n, replace(part, **own)) for n, part in getattr(aggregate, "parts", ()))
    }
    return replace(aggregate, **own, **{name: value for name, value in parts.items() if value})


def each_with_own_limits(aggregates, limits, ungrouped=False):
    """Aggregates with limits of their own in turn, two with the same, and the
    first three beside one without.
    """
    turns = itertools.cycle(OWN[OWN.index(limits) :] + OWN[: OWN.index(limits)])
    own = {}
    for (name, aggregate), turn in zip(aggregates.items(), turns, strict=False):
        turn = {key: limit for key, limit in turn.items() if key == "max_rows" or not ungrouped}
        own[name] = with_own_limits(aggregate, **turn)
    return own | {f"{name} by default": aggregates[name] for name in ("n", "s", "m")}


def governed(frame, limits):
    """A table under a policy file with these limits, with the bounds and keys of `DECLARED`."""
    said = {}
    for name, (low, high) in DECLARED["bounds"].items():
        inside = tuple(key for key in DECLARED["keys"].get(name, ()) if low <= key <= high)
        said[name] = ColumnDefaults(Bounds(low, high), inside or None)
    said["g"] = ColumnDefaults(keys=("x", "y"))
    said = {name: own._replace(file=own, locked=("bounds", "keys")) for name, own in said.items()}
    keys = {name: own.keys for name, own in said.items() if own.keys}
    ends = {name: own.bounds for name, own in said.items() if own.bounds}
    return frame._then(
        UnderPolicy(step_of(frame), Lock("a.toml", "0" * 64, Limits(**limits)), ends, keys, said)
    )


# a tree whose nodes have different numbers of children
LEAVES = [("x", -1), ("x", 3), ("x", 7), ("y", 3)]


def asked(steps, form, limits, unit, relation, rows=None, budget=BUDGET):
    """A question after some steps, or None where it is refused.
    A declared form types no limits, bounds or keys.
    """
    rows = batches.frame() if rows is None else rows
    aggregates = AGGREGATES
    if isinstance(unit, dp.Rows):
        limits, aggregates = {}, {name: made for name, made in AGGREGATES.items() if name != "each"}
    said, locked = {}, form.startswith("policy")
    if locked:
        locked, limits, aggregates, form = limits, {}, UNTYPED, form.removeprefix("policy ")
    if form.startswith("declared"):
        said, limits, aggregates, form = (
            {**limits, **DECLARED},
            {},
            UNTYPED,
            form.removeprefix("declared "),
        )
        if form == "listed":
            said["keys"] = {**said["keys"], "g": ["x", "y"]}
    frame = dp.protect(rows, unit=unit, neighbors=relation, budget=budget, **said)
    frame = governed(frame, locked) if locked else frame
    try:
        for step in steps:
            frame = OPERATIONS[step](frame)
        if form in ("own", "own found", "own alone", "own population"):
            aggregates = {
                name: made
                for name, made in aggregates.items()
                if name in POPULATION or form[4:] != "population"
            }
            aggregates = each_with_own_limits(
                aggregates, OWN[len(limits)], ungrouped=form == "own alone"
            )
        if form == "own alone":
            return frame.agg(**aggregates, max_rows=3)
        if form == "own population":
            query = frame.group_by("g", keys=["x", "y"], **limits).agg(**aggregates)
            return Query(question_of(query).covering(Covers.POPULATION), budget)
        if form == "alone":
            return frame.agg(
                **aggregates, **({"max_rows": limits.get("max_rows", 3)} if limits else {})
            )
        if form == "crosstab":
            keys = {"g": ["x", "y"], "i": [-1, 3]}
            return frame.crosstab("g", "i", keys=keys, margins="measured", **limits)
        if form.startswith("hierarchy"):
            sums = (
                {"values": "v", "aggfunc": "sum", "bounds": (-1, 3)}
                if form.endswith("sums")
                else {}
            )
            return frame.hierarchy(["g", "i"], keys=LEAVES, **sums, **limits)
        if form == "population":
            plain = {name: aggregates[name] for name in aggregates if name in POPULATION}
            query = frame.group_by("g", keys=["x", "y"], **limits).agg(**plain)
            return Query(question_of(query).covering(Covers.POPULATION), budget)
        if form == "largest":
            return frame.top_k("g", 1, **limits)
        keys = (
            None
            if said or locked or form in ("found", "own found")
            else ["x", "y"]
            if relation == "replace"
            else ["x", "y", "z"]
        )
        return frame.group_by("g", keys=keys, **limits).agg(**aggregates)
    except DpFrameError:
        return None


def in_both(here, there, values, counted):
    """Pairs of tables, and their totals in the groups that are in both tables of a
    pair by the count that decides.

    A group that is in one table of a pair alone is released with a probability that δ pays for. In
    another table it may have rows under the limits of a column, though none under those of the
    question: it is no group there.
    """
    both = (counted[here] > 0) & (counted[there] > 0)
    pairs = {
        key: np.concatenate(
            [
                np.where(both.reshape(*both.shape, *[1] * (x.ndim - 2)), x[at], 0)
                for at in (here, there)
            ]
        )
        for key, x in values.items()
    }
    first = np.arange(len(here))
    return first, first + len(here), pairs


def level_totals(ask, leaves, groups):
    """The exact totals of every level of every table, by the level's
    name, added up one leaf at a time.
    """
    bits, tree = ask.bits - ask.read[0].total.fraction, ask.levels
    found = {}
    for level, name in enumerate(tree.names):
        nodes = list(dict.fromkeys(key[:level] for key in ask.keys))
        found[name] = np.zeros((len(leaves), len(nodes)), leaves.dtype)
        for place, group in enumerate(groups):
            found[name][:, nodes.index(group[:level])] += leaves[:, place] << bits
    return found


class Tally:
    """What was held against what: violations, claims that were reached, questions refused."""

    def __init__(self):
        self.claims, self.tight, self.questions, self.refused, self.broken = (
            Counter(),
            Counter(),
            0,
            [],
            [],
        )

    def hold(self, query, relation, declared=None, salt=1, told=""):
        """Hold one question against every pair."""
        self.questions += 1
        ask = question_of(query)
        read, groups = batches.totals(ask, len(batches.universe()), salt, weighed=True)
        here, there = batches.neighbours(relation, declared).T
        values = dict(zip((paid.total.key for paid in ask.read), read, strict=True))
        if ask.private_keys and any(paid.total.limits for paid in ask.read):
            here, there, values = in_both(here, there, values, values[ask.threshold.key])
        for paid in ask.allotments:
            claim, measure = paid.total.sensitivity, paid.total
            if measure.values:
                counts = values[measure.key]
                found = {
                    "mode l1": (batches.mode_cost(counts[there] - counts[here]), claim.exact_l1)
                }
            elif measure.rank is not None:
                counts = batches.scores(measure, values[measure.key])
                found = {
                    "rank l1": (
                        batches.rank_cost(measure, counts[there] - counts[here]),
                        claim.exact_l1,
                    )
                }
                if 0 < measure.rank < 1:
                    scores = batches.all_reach_scores(measure, values[measure.key])
                    found["reach l1"] = (
                        batches.reach_cost(measure, scores[there] - scores[here]),
                        claim.exact_l1,
                    )
            elif measure.is_tree:
                found = batches.tree_sizes(measure, values[measure.key], here, there)
            else:
                cells = values.get(measure.key)
                if isinstance(ask, Hierarchy):
                    cells = level_totals(ask, read[0], groups)[paid.names[0]]
                elif measure.follows is not None:
                    cells = measure.added_up(*(values[total.key] for total in measure.follows))
                elif cells is None:  # a margin of a crosstab, made of its cells
                    cells = np.array(
                        [margin_totals(measure.merged, row, ask.shape) for row in read[0]]
                    )
                l0, l1, l2, linf = batches.reached(cells[there] - cells[here])
                found = {
                    "l0": (l0, claim.l0),
                    "l1": (l1, claim.exact_l1),
                    "l2": (l2, claim.l2_squared),
                    "linf": (linf, claim.exact_linf),
                }
                shown = query.sensitivity[paid.names[0]]
                assert shown == claim.scaled(measure.unit)
                # a sum and its count, measured as a pair: see
                # `theory.formulas.sensitivity.pairs.paired_l1`
                if paid.beside is not None:
                    count = paid.weight * values[paid.beside.total.key]
                    both = np.concatenate([count + cells, count - cells], axis=1)
                    found["pair l1"] = (
                        batches.reached(both[there] - both[here])[1],
                        paired_l1(claim),
                    )
                    if paid.rows is not None:  # and the rows without a value: see `joint_l1` there
                        ones = 2 ** (paid.beside.total.fraction - paid.rows.total.fraction)
                        missing = 2 * (paid.weight * ones * values[paid.rows.total.key] - count)
                        three = np.concatenate([both, missing], axis=1)
                        largest = batches.reached(three[there] - three[here])[1]
                        found["joint l1"] = (largest, 2 * paid.weight * paid.joint)
            self._count(told, paid.names, found)
        for names, found in self._in_step(ask, values, here, there):
            self._count(told, names, found)

    def _in_step(self, ask, values, here, there):
        """How far one unit moves totals that may share one noise, in the sizes of a
        row: see `theory.joint_scale`.
        """
        sets = {}
        for paid in ask.allotments:
            if paid.in_step is not None:
                sets.setdefault((paid.in_step.under, paid.in_step.rows), []).append(paid)
        for (_, rows), members in sets.items():
            moves = []
            for paid in members:
                total = paid.total
                cells = (
                    total.added_up(*(values[t.key] for t in total.follows))
                    if total.follows
                    else values[total.key]
                )
                moves.append((cells[there] - cells[here]).astype(float) / paid.in_step.size)
            up, down = (
                np.max([*moves, 0 * moves[0]], axis=0),
                np.max([-one for one in (*moves, 0 * moves[0])], axis=0),
            )
            found = {"cube": (np.maximum(up, down).sum(axis=1).max(), float(rows) * (1 + 1e-9))}
            signs = [paid.in_step.sign for paid in members]
            if all(signs):
                signed = [one * sign for one, sign in zip(moves, signs, strict=True)]
                both = np.max([*signed, 0 * up], axis=0) + np.max(
                    [-one for one in (*signed, 0 * up)], axis=0
                )
                found["window"] = (
                    both.sum(axis=1).max(),
                    float(rows) * members[0].in_step.vectors * (1 + 1e-9),
                )
            yield [name for paid in members for name in paid.names], found

    def _count(self, told, names, found):
        for norm, (reached, claimed) in found.items():
            self.claims[norm] += 1
            self.tight[norm] += reached == claimed
            if reached > claimed:
                self.broken.append((told, names, norm, reached, claimed))

    def __str__(self):
        shares = ", ".join(f"{norm} {self.tight[norm]}/{self.claims[norm]}" for norm in self.claims)
        return f"{self.questions} questions, {len(self.broken)} violations; reached: {shares}"


FORMS = [
    "listed",
    "found",
    "alone",
    "listed rows",
    "found rows",
    "alone rows",
    "crosstab",
    "population",
]
FORMS += ["declared listed", "declared found", "declared alone", "declared listed rows"]
FORMS += ["own", "own found", "own alone", "own population"]
FORMS += ["hierarchy", "hierarchy of sums", "hierarchy rows", "largest"]


def drawn(rng, chain, relation):
    """One question about a chain: its form, limits and unit at random; None where it is refused."""
    form = rng.choice(FORMS)
    unit = (
        dp.Rows(1 if relation == "replace" else rng.choice([1, 2]))
        if form.endswith("rows")
        else UNIT
    )
    limits, form = rng.choice(LIMITS), form.removesuffix(" rows")
    told = f"{' → '.join(chain) or 'nothing'}: {form}, {limits}, {relation}, {unit}"
    return asked(chain, form, limits, unit, relation), unit, told, (form, limits)


def run(chains, relations, seed):
    """Questions about each chain, each held against every pair of neighbours
    under one of the relations in turn.
    """
    rng, tally, turn = random.Random(seed), Tally(), itertools.cycle(relations)
    for chain in chains:
        for relation in itertools.islice(turn, 1 if len(chain) > 1 else 2):
            for _ in range(6):  # a form may be refused: another one is not
                query, unit, told, _ = drawn(rng, chain, relation)
                if query is not None:
                    tally.hold(
                        query, relation, getattr(unit, "max_rows", None), rng.getrandbits(64), told
                    )
                    break
            else:
                tally.refused.append(told)
    return tally


def chains(*sizes):
    return [chain for size in sizes for chain in itertools.product(OPERATIONS, repeat=size)]


# so that several processes can share the work; each has every operation, because 19 and 20 share no
# divisor
PARTS = 19


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
def test_no_claim_is_exceeded_after_any_two_operations(part, capsys):
    mine = chains(0, 1, 2)[part::PARTS]
    tally = run(mine, ["add-remove", "replace"], f"any two {part}")
    with capsys.disabled():
        print(f"\n  exhaustive neighbours, part {part}: {tally}")
    assert not tally.broken
    assert tally.questions + len(tally.refused) == len(mine) + sum(len(chain) < 2 for chain in mine)
    assert len(tally.refused) < len(mine) / 4, tally.refused


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("form", ["own", "own found", "own alone", "own population"])
def test_no_claim_of_columns_with_limits_of_their_own_is_exceeded(form, relation):
    tally = Tally()
    for limits in LIMITS[:3]:
        query = asked((), form, limits, UNIT, relation)
        tally.hold(query, relation, told=f"{form} {limits} {relation}")
    assert not tally.broken
    # so the claims are hardly larger than they need to be
    assert tally.tight["l1"] > tally.claims["l1"] / 3


@pytest.mark.long
def test_no_claim_is_exceeded_after_any_three_operations(capsys):
    """Of 8,000 chains each 17th, which has every operation in every place,
    because 17 and 20 share no divisor.
    """
    tally = run(chains(3)[::17], ["add-remove", "replace"], "any three")
    with capsys.disabled():
        print(f"\n  exhaustive neighbours, three operations: {tally}")
    assert not tally.broken


def test_keys_in_rounds_move_by_no_more_than_a_weight_of_one(capsys):
    """Keys alone without a limit, after every operation that leaves units to a table."""
    tally = Tally()
    for chain in chains(0, 1):
        try:
            frame = dp.protect(batches.frame(), unit=UNIT, budget=BUDGET)
            for step in chain:
                frame = OPERATIONS[step](frame)
            query = frame.group_by("g").keys()
        except DpFrameError:
            continue
        if question_of(query).in_rounds:
            tally.hold(query, "add-remove", told=f"{chain}: in rounds")
    with capsys.disabled():
        print(f"\n  keys in rounds: {tally}")
    assert not tally.broken
    assert tally.questions > 5
    assert tally.tight["l2"] == tally.claims["l2"]


def test_a_claim_that_is_too_small_is_found(monkeypatch):
    real = sensitivity.change
    monkeypatch.setattr(
        sensitivity, "change", lambda *, groups, **rest: real(groups=max(groups - 1, 1), **rest)
    )
    tally = Tally()
    tally.hold(asked([], "listed", LIMITS[0], UNIT, "add-remove"), "add-remove")
    assert {norm for _, _, norm, _, _ in tally.broken} >= {"l0", "l1", "l2"}


def alike(monkeypatch, questions, seed):
    """Ask questions of all tables together, and of some of them alone."""
    monkeypatch.setattr(bits, "random_salt", lambda: "ab" * 16)  # the salt of partitions
    rng, held = random.Random(seed), 0
    many = batches.frame()
    while held < questions:
        chain = tuple(rng.choices(list(OPERATIONS), k=rng.choice([0, 1, 2])))
        query, unit, told, (form, limits) = drawn(rng, chain, "add-remove")
        if query is None:
            continue
        salt = rng.getrandbits(64)
        found, groups = batches.totals(question_of(query), len(batches.universe()), salt)
        for number in rng.sample(range(len(batches.universe())), 4):
            rows = many.filter(pl.col("t") == number).drop("t")
            one = asked(
                chain, form, limits, unit if isinstance(unit, dp.Rows) else "u", "add-remove", rows
            )
            raw = engine.totals(question_of(one), salt)
            at = [groups.index(key) for key in (raw.keys.rows() if question_of(one).by else [()])]
            for mine, theirs in zip(raw.values, found, strict=True):
                expected = np.zeros_like(theirs[number])
                expected[at] = mine
                assert np.array_equal(expected, theirs[number]), (told, number)
        held += 1


def test_tables_asked_together_answer_as_they_do_alone(monkeypatch):
    alike(monkeypatch, 6, "alone")


@pytest.mark.long
def test_tables_asked_together_answer_as_they_do_alone_at_length(monkeypatch):
    alike(monkeypatch, 80, "alone at length")


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_claim_of_a_table_under_a_policy_is_exceeded_after_any_operation(relation, capsys):
    """Nothing is typed after the file; what its bounds and keys leave of the
    cells is known after any operation.
    """
    tally, forms = Tally(), itertools.cycle(["policy listed", "policy alone", "policy found"])
    for chain, form, limits in zip([(), *chains(1)], forms, itertools.cycle(LIMITS), strict=False):
        query = asked(chain, form, limits, UNIT, relation)
        if query is None:
            tally.refused.append(chain)
        else:
            tally.hold(query, relation, told=f"{chain}: {form}, {limits}")
    with capsys.disabled():
        print(f"\n  a table under a policy, {relation}: {tally}; refused: {tally.refused}")
    assert not tally.broken
    assert tally.questions >= 9


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_claim_of_a_declared_table_is_exceeded_after_any_operation(relation, capsys):
    """Limits, bounds and keys that are declared once;
    a step that rewrites a column leaves its statistics refused.
    """
    tally, forms = Tally(), itertools.cycle(["declared listed", "declared found", "declared alone"])
    for chain, form, limits in zip([(), *chains(1)], forms, itertools.cycle(LIMITS), strict=False):
        query = asked(chain, form, limits, UNIT, relation)
        if query is None:
            tally.refused.append(chain)
        else:
            tally.hold(query, relation, told=f"{chain}: {form}, {limits}")
    with capsys.disabled():
        print(f"\n  a declared table, {relation}: {tally}; refused: {tally.refused}")
    assert not tally.broken
    assert tally.questions >= 8
    assert ("with_columns",) in tally.refused


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_level_of_a_hierarchy_moves_by_more_than_is_claimed(relation, capsys):
    """Counts and sums under every limit, and with declared rows;
    claims of counts are reached by some neighbours.
    """
    tally = Tally()
    for form in ("hierarchy", "hierarchy of sums"):
        for limits in LIMITS:
            tally.hold(asked([], form, limits, UNIT, relation), relation, told=f"{form}, {limits}")
    for rows in (1, 2):
        declared = asked([], "hierarchy", {}, dp.Rows(rows), relation)
        tally.hold(declared, relation, rows, told=f"dp.Rows({rows})")
    with capsys.disabled():
        print(f"\n  levels of a hierarchy, {relation}: {tally}")
    assert not tally.broken
    assert all(tally.tight[norm] > tally.claims[norm] / 4 for norm in ("l1", "l2", "linf"))
