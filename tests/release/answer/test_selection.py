"""Choices by the exponential mechanism: when they are made, what they
cost, and what is said of them.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.arrays import PlaceCounts
from dpframe.noise.bits import substitute
from dpframe.plan import Bounds, Candidates
from dpframe.release.answer import selection as choices
from dpframe.release.answer.selection import rank_scores
from dpframe.release.pricing import choice_mechanisms
from dpframe.release.pricing.bought_noise import choice_for_rho, choice_of, epsilon_for_rho
from dpframe.theory import gaussian_delta, rho_within, zcdp_to_epsilon
from dpframe.theory.formulas.error.quantile_interval import choice_chances
from dpframe.theory.formulas.loss import (
    count_scale_rho,
    fewer_rows,
    rank_scale,
    rank_scale_rho,
    rank_terms,
)
from dpframe.theory.formulas.sensitivity import Sensitivity
from inside import question_of
from places import place_counts
from prices import Price, noise_plan, priced
from tiers import in_turn

SCHEMA = {"id": pl.Int64, "g": pl.Int64, "x": pl.Float64}


def asked(groups=20, rows=5, budget=None, **aggregates):
    frame = dp.protect(
        pl.DataFrame(schema=SCHEMA), unit="id", budget=budget or dp.Budget(epsilon=9, delta=0.5)
    )
    aggregates = aggregates or {"m": dp.median("x", (0, 1))}
    query = frame.group_by("g", keys=list(range(50)), max_groups=groups, max_rows_per_group=rows)
    return query.agg(**aggregates)


def plan_of(query, epsilon=1, delta=1e-6, noise="auto"):
    return noise_plan(question_of(query), Price(Fraction(epsilon), Fraction(delta)), noise)


# What one unit moves, in Rényi divergence


def divergence(order, p, q):
    """Of order `order` of p from q, both given by logarithms."""
    terms = order * p + (1 - order) * q
    return (np.log(np.exp(terms - terms.max()).sum()) + terms.max()) / (order - 1)


def law(scores, rate):
    """The logarithms of the chances of the exponential mechanism."""
    logs = rate * scores.astype(float)
    return logs - np.log(np.exp(logs - logs.max()).sum()) - logs.max()


@pytest.mark.parametrize(
    "rank", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(0), Fraction(1)]
)
def test_a_row_costs_no_more_than_its_part_of_rho(rank):
    """All tables of up to three rows at each of four places, against
    those with one and two rows more.
    """
    measure = type("M", (), {"rank": rank, "fraction": 0})()
    scale = Fraction(3)
    rate = 1 / (scale * rank_terms(rank)[1])
    worst = 0.0
    for counts in itertools.product(range(3), repeat=4):
        base = law(rank_scores(measure, np.array([counts]), rate)[0], float(rate))
        for places in [(a,) for a in range(4)] + list(
            itertools.combinations_with_replacement(range(4), 2)
        ):
            more = np.array(counts)
            for place in places:
                more[place] += 1
            there = law(rank_scores(measure, np.array([more]), rate)[0], float(rate))
            moved = Sensitivity.of(
                l0=1, l1=len(places), l2_squared=len(places) ** 2, linf=len(places)
            )
            change, units = rank_terms(rank)
            rho = (Fraction(change, units) / scale) ** 2 * moved.l2_squared / 2
            assert float(rank_scale_rho(rank, moved, rho)) == pytest.approx(float(scale))
            for order in (1.01, 2, 7, 40):
                for one, other in ((base, there), (there, base)):
                    worst = max(worst, divergence(order, one, other) / (order * float(rho)))
    assert 0.15 < worst <= 1 + 1e-9


def test_a_row_at_a_value_costs_no_more_than_its_part_of_rho():
    """Here candidates move by 0 or c, so that the bound is nearly reached by two candidates."""
    scale, worst = Fraction(5), 0.0
    for counts in itertools.product(range(4), repeat=3):
        for more in itertools.product(range(3), repeat=3):
            c = sum(more)
            if not c:
                continue
            rho = Fraction(c, 1) ** 2 / (8 * scale**2)
            moved = Sensitivity.of(l0=1, l1=c, l2_squared=c**2, linf=c)
            assert float(count_scale_rho(moved, 1, rho)) == pytest.approx(float(scale))
            here, there = (
                law(np.array(rows), 1 / float(scale)) for rows in (counts, np.add(counts, more))
            )
            for order in (1.01, 2, 7):
                for one, other in ((here, there), (there, here)):
                    worst = max(worst, divergence(order, one, other) / (order * float(rho)))
    assert 0.95 < worst <= 1 + 1e-9


class More(Exception):  # noqa: N818
    """A choice is asked for that is not scripted."""


def law_of(drawn, counts, monkeypatch):
    """The log chances of every way the choices of one group can fall, by the scores
    and rates that are really given.
    """
    found, scripts, every = [], [()], np.arange(len(counts))
    counts = PlaceCounts(np.zeros_like(every), every, counts, (1, len(every)))
    while scripts:
        script = scripts.pop()
        left, logs = list(script), []

        def mechanism(scores, rate, script=script, left=left, logs=logs):
            chances = law(scores[0], float(rate))
            if not left:
                scripts.extend((*script, pick) for pick in range(len(chances)))
                raise More
            logs.append(chances[left[0]])
            return np.array([left.pop(0)])

        monkeypatch.setattr(choice_mechanisms, "exponential_choice", mechanism)
        try:
            places = choices.chosen(drawn, counts)
            if drawn.allotment.total.ci is not None:
                choices.reached(drawn, counts, places)
        except More:
            continue
        found.append(sum(logs))
    return np.array(found)


LIMITS = [
    {"max_groups": 2, "max_rows_per_group": 1},
    {"max_groups": 1, "max_rows_per_group": 3},
    {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 3},
    {"max_rows": 2},
]
ASKED = {
    "median": lambda groups: groups.agg(m=dp.median("x", (0, 2))),
    "median, ci": lambda groups: groups.agg(m=dp.median("x", (0, 2)))._with_ci(0.9),
    "quantile": lambda groups: groups.agg(m=dp.quantile("x", 0.9, (0, 2))),
    "min": lambda groups: groups.agg(m=dp.min("x", (0, 2))),
    "max": lambda groups: groups.agg(m=dp.max("x", (0, 2))),
    "mode": lambda groups: groups.agg(m=dp.mode("x", keys=[0, 1, 2])),
    "top_k": lambda groups: groups.top_k("x", 2, keys=[0, 1, 2]),
    "two": lambda groups: groups.agg(m=dp.median("x", (0, 2)), t=dp.mode("x", keys=[0, 1])),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("kind", "relation"), in_turn(ASKED, ["add-remove", "replace"]))
def test_small_tables_are_as_private_as_charged(kind, relation, monkeypatch):
    """Of two groups, from the rows to the rates; at half of the scales a
    most frequent value would not be.
    """
    draw, worst = random.Random(f"{kind}, {relation}"), 0.0

    def some_rows(most):
        value, group = draw.choice([0, 2]), draw.randrange(2)
        return [
            (draw.choice([group, 1 - group]), draw.choice([value, value, 1]))
            for _ in range(draw.randint(1, most))
        ]

    for limits, rho in itertools.product(LIMITS, (0.02, 0.5)):
        for _ in range(6):
            others = {unit: some_rows(3) for unit in range(2, 2 + draw.choice([0, 0, 1, 4]))}
            sides = [
                {1: some_rows(4), **others},
                {1: some_rows(4), **others} if relation == "replace" else others,
            ]
            totals = []
            for side in sides:
                rows = [(unit, *row) for unit, rows in side.items() for row in rows]
                table = pl.DataFrame(rows, schema={**SCHEMA, "x": pl.Int64}, orient="row")
                frame = dp.protect(table, unit="id", budget=dp.Budget(rho=9), neighbors=relation)
                ask = question_of(ASKED[kind](frame.group_by("g", keys=[0, 1], **limits)))
                totals.append(engine.totals(ask, 7).values)
            plan = priced(ask, "rho", rho=rho)
            losses = dict.fromkeys(
                [(order, way) for order in (1.01, 3, 30) for way in (1, -1)], 0.0
            )
            for drawn, here, there in zip(plan.noises, *totals, strict=True):
                assert drawn.label == "exponential"
                for group in range(2):
                    pair = [
                        law_of(drawn, np.asarray(counts)[group], monkeypatch)
                        for counts in (here, there)
                    ]
                    for order, way in losses:
                        losses[order, way] += divergence(order, *pair[::way])
            worst = max(
                worst, *(loss / (order * plan.cost.rho) for (order, _), loss in losses.items())
            )
    assert (0.26 if kind == "mode" else 0.02) < worst <= 1 + 1e-9


# Many candidates


MANY = {
    "whole": Candidates.between(Bounds(0, 2000), whole=True),
    "parts": replace(
        Candidates.between(Bounds(0.3, 7), whole=False), step=Fraction(1, 200), count=1342, start=60
    ),
}
ENDS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(0), Fraction(1)]


def many_places(candidates, places):
    """A group with a row at each of some places."""
    counts = np.bincount(places, minlength=candidates.count)[None]
    return type("M", (), {"candidates": candidates, "fraction": 0})(), counts


@pytest.mark.parametrize("rank", ENDS)
@pytest.mark.parametrize("name", MANY)
def test_a_run_stands_for_its_candidates_and_no_others(name, rank):
    """Scores, copies and what is picked, beside the list of all candidates with theirs."""
    candidates, draw = MANY[name], np.random.default_rng(2)
    cells = (
        np.searchsorted(choices._edges(candidates.count), np.arange(candidates.count), side="right")
        - 1
    )
    copies = np.array(
        [
            sum(4 if t == 1 else t for t in candidates.rounder if (candidates.start + i) % t == 0)
            for i in range(candidates.count)
        ]
    )
    for size in (0, 1, 2, 7, 60):
        measure, counts = many_places(candidates, draw.integers(0, candidates.count, size))
        measure.rank, rate, asked = rank, Fraction(1, 150), []

        def choose(scores, rate, many, asked=asked):
            asked.append((scores, many))
            return np.array([0])

        for _, first, runs in place_counts(counts).runs(2**16, choices._edges(candidates.count)):
            picked = choices.in_list(measure, first, runs, rate, choose)
            ((scores, many),) = asked
            after = np.append(first[0, 1:], candidates.count)
            every = rank_scores(measure, counts, rate, cells[None])[0]
            for run, (start, end) in enumerate(zip(first[0], after, strict=True)):
                assert set(every[start:end]) == {scores[0, run]}
                assert copies[start:end].sum() == many[0, run]
            assert after[0] > picked[0] >= 0
            assert first[0, 0] == 0


def chances(scores, copies, rate, flipped):
    """The law of a choice from a list with copies, for the candidates."""
    gaps = float(rate) * (scores.max() - scores).astype(float)
    if flipped:
        return choice_chances(gaps, copies.astype(float))
    weights = np.exp(-gaps) * copies
    return weights / weights.sum()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("flipped", "rank"), in_turn([True, False], ENDS))
def test_a_row_among_many_candidates_costs_no_more_than_its_price(flipped, rank):
    """All tables of up to two rows at some places, against those with one row more; and large
    groups, whose public rows fade. Half of the price would not be enough.
    """
    candidates, one, worst = MANY["whole"], Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1), 0.0
    scale = rank_scale(rank, one, Fraction(1))
    rate = 1 / (scale * rank_terms(rank)[1])
    cells = (
        np.searchsorted(choices._edges(candidates.count), np.arange(candidates.count), side="right")
        - 1
    )[None]
    copies = candidates.listed(np.arange(candidates.count), np.arange(candidates.count) + 1)
    places = [0, 1, 999, 1001, 2000]
    tables = [(), *((p,) for p in places), *itertools.combinations_with_replacement(places, 2)]
    tables += [(p,) * 40 + (q,) * 60 for p, q in itertools.combinations_with_replacement(places, 2)]
    for table in tables:
        laws = []
        for rows in (table, *((*table, more) for more in places)):
            measure, counts = many_places(candidates, np.array(rows, np.int64))
            measure.rank = rank
            laws.append(
                np.log(chances(rank_scores(measure, counts, rate, cells)[0], copies, rate, flipped))
            )
        worst = max(worst, *(np.abs(law - laws[0]).max() for law in laws[1:]))
    assert 0.55 < worst <= 1 + 1e-6


# When it is made


def test_in_many_groups_of_one_unit_a_delta_buys_less_noise():
    pure, plan = plan_of(asked(), delta=0), plan_of(asked())
    assert [d.label for d in plan.noises] == ["exponential"]
    assert [d.label for d in pure.noises] == ["permute_and_flip"]
    assert 1.9 < pure.noises[0].scale / plan.noises[0].scale < 2.05
    assert plan.cost.delta == pytest.approx(1e-6)
    bound = plan.noises[0].allotment.total.sensitivity
    # a row moves scores by half a row
    rho = bound.l2_squared / Fraction(plan.noises[0].scale) ** 2 / 8
    assert zcdp_to_epsilon(rho, Fraction(1, 10**6)) <= 1


@pytest.mark.parametrize("options", [{"groups": 1}, {"groups": 5}])
def test_in_few_groups_it_is_permute_and_flip_and_costs_no_delta(options):
    plan = plan_of(asked(**options))
    assert [d.label for d in plan.noises] == ["permute_and_flip"]
    assert plan.cost.delta == 0


@pytest.mark.parametrize("number", [2, 9])
def test_of_two_mechanisms_that_with_the_smaller_stated_error_is_taken(number):
    """At the same scale permute-and-flip misses the most frequent value by less, and needs no δ."""
    query = asked(groups=6, rows=1, m=dp.mode("g", keys=list(range(number))))
    flipped = plan_of(query, delta=0).noises[0].scale
    plan = plan_of(query)
    scale = choice_for_rho(
        plan.noises[0].allotment, rho_within(Fraction(1), Fraction(1, 10**6))
    ).scale
    assert 0.9 < scale / flipped < 1
    assert fewer_rows(flipped, number, 0.05) < fewer_rows(scale, number, 0.05, exponential=True)
    assert [d.label for d in plan.noises] == ["permute_and_flip"]
    assert plan.cost.delta == 0

    frame = dp.protect(pl.DataFrame(schema=SCHEMA), unit="id", budget=dp.Budget(rho=9))
    measure = question_of(frame.mode("g", keys=list(range(number)), max_rows=1))
    for rho in (0.01, 0.1, 1, 2, 4, 9):
        (drawn,) = priced(measure, "rho", rho=rho).noises
        errors = [
            fewer_rows(other.scale, number, 0.05, exponential=other.label == "exponential")
            for other in (
                choice_for_rho(drawn.allotment, Fraction(rho)),
                choice_of(drawn.allotment, epsilon_for_rho(Fraction(rho))),
            )
        ]
        assert drawn.label == ("exponential" if errors[0] < errors[1] else "permute_and_flip")


def test_laplace_noise_that_is_asked_for_stays_pure():
    plan = plan_of(asked(n=dp.count(), m=dp.median("x", (0, 1))), noise="laplace")
    assert [d.label for d in plan.noises] == ["discrete_laplace", "permute_and_flip"]
    assert plan.cost.delta == 0


def test_counts_and_choices_share_one_rho():
    """Beside Gaussian noise, squares add up too: each has √2 more noise
    than alone, not twice as much.
    """
    both, alone = (
        plan_of(asked(n=dp.count(), m=dp.median("x", (0, 1))), noise="gaussian"),
        plan_of(asked()),
    )
    assert [d.label for d in both.noises] == ["gaussian", "exponential"]
    assert both.noises[1].scale / alone.noises[0].scale == pytest.approx(math.sqrt(2), rel=1e-6)
    rho = Fraction(0)
    change, units = rank_terms(Fraction(1, 2))
    for drawn, weight in zip(both.noises, (2, 2 / Fraction(change, units) ** 2), strict=True):
        rho += drawn.allotment.total.sensitivity.l2_squared / (weight * Fraction(drawn.scale) ** 2)
    assert zcdp_to_epsilon(rho, Fraction(1, 10**6)) <= 1
    assert zcdp_to_epsilon(rho * Fraction(1001, 1000), Fraction(1, 10**6)) > 1


def test_keys_found_in_the_data_have_the_other_half_of_delta():
    frame = dp.protect(
        pl.DataFrame(schema=SCHEMA), unit="id", budget=dp.Budget(epsilon=9, delta=0.5)
    )
    query = frame.group_by("g", max_groups=20, max_rows_per_group=5).agg(m=dp.median("x", (0, 1)))
    plan = plan_of(query)
    (choice,) = (d for d in plan.noises if d.allotment.total.chosen)
    assert choice.label == "exponential"
    assert plan.cost.epsilon == 1
    assert plan.cost.delta == pytest.approx(1e-6)
    rho = choice.allotment.total.sensitivity.l2_squared / Fraction(choice.scale) ** 2 / 8
    assert zcdp_to_epsilon(rho, Fraction(1, 2 * 10**6)) < 1  # and the keys' noise has its part


def test_in_rho_it_has_half_the_scale_of_permute_and_flip_and_less_in_many_groups():
    frame = dp.protect(pl.DataFrame(schema=SCHEMA), unit="id", budget=dp.Budget(rho=9))
    (drawn,) = priced(question_of(frame.median("x", (0, 1), max_rows=1)), "rho", rho=0.01).noises
    assert drawn.label == "exponential"
    assert drawn.scale * float(drawn.allotment.total.unit) == pytest.approx(
        33 / 64 / math.sqrt(0.02)
    )
    (grouped,) = priced(question_of(asked(groups=16, rows=1)), "rho", rho=0.01).noises
    assert grouped.scale == pytest.approx(4 * drawn.scale)
    (dear,) = priced(question_of(frame.median("x", (0, 1), max_rows=1)), "rho", rho=40).noises
    assert dear.label == "permute_and_flip"


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 1e-6), (1e-4, 1e-9), (30, 0.5), (1, 0.5), (1e-12, 1e-6)]
)
def test_the_rho_of_a_price_is_the_largest(epsilon, delta):
    rho = rho_within(Fraction(epsilon), Fraction(delta))
    assert (
        zcdp_to_epsilon(rho, Fraction(delta))
        <= epsilon
        < zcdp_to_epsilon(rho * Fraction(10001, 10000), Fraction(delta))
    )


# What comes out


def spread(groups=1500, each=20, rows=40, seed=1):
    """Units in `each` groups; every group has the same values, in two
    clusters with nothing between them.
    """
    draw = np.random.default_rng(seed)
    g = np.repeat(np.arange(groups), rows)
    x = np.tile(
        np.concatenate([np.linspace(0, 30, rows // 2), np.linspace(70, 100, rows // 2)]), groups
    )
    order = draw.permutation(groups)  # a unit is in `each` different groups
    unit = (order[g] // each) * rows + np.tile(np.arange(rows), groups)
    table = pl.DataFrame({"id": unit, "g": g, "x": x})
    assert table.group_by("id").agg(pl.col("g").n_unique())["g"].max() <= each
    return dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9, delta=0.9))


def test_intervals_hold_in_a_gap_and_nearly_miss():
    """False alarms below 1e-6: at most binomial with 0.1 of 1,500 groups."""
    frame = spread()
    query = frame.group_by("g", keys=list(range(1500)), max_groups=20, max_rows_per_group=1)
    out = query.agg(m=dp.median("x", (0, 100))).release(epsilon=10, delta=1e-6, ci=0.9, fill=True)
    assert out.noise["mechanism"].item() == "exponential"
    missed = ((out.table["m_low"] > 30) | (out.table["m_high"] < 70)).mean()
    assert missed <= 0.1 + 5.5 * math.sqrt(0.1 * 0.9 / 1500)
    close = out.table.filter((pl.col("m") < 31) | (pl.col("m") > 69))
    assert close.height > 20
    assert missed > 0.01


def test_stated_errors_hold_for_even_values():
    """What `accuracy` says of the exponential mechanism: even values miss it as often as stated."""
    groups, rows = 1500, 400
    table = pl.DataFrame(
        {
            "id": np.tile(np.arange(rows), groups)
            + np.repeat(np.arange(groups) // 20, rows) * rows,
            "g": np.repeat(np.arange(groups), rows),
            "x": np.tile((np.arange(rows) + 0.5) / rows * 100, groups),
        }
    )
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9, delta=0.9))
    query = frame.group_by("g", keys=list(range(groups)), max_groups=20, max_rows_per_group=1)
    query = query.agg(m=dp.median("x", (0, 100)))
    out = query.release(epsilon=3, delta=1e-6)
    assert out.noise["mechanism"].item() == "exponential"
    stated = query.accuracy(epsilon=3, delta=1e-6, assume_rows=rows)["error"].item()
    assert stated < 40
    missed = ((out.table["m"] - 50).abs() > stated).mean()
    assert missed <= 0.05 + 5.5 * math.sqrt(0.05 * 0.95 / groups)


def test_the_most_frequent_value_of_many_groups():
    table = pl.DataFrame(
        {"id": range(4000), "g": [i % 20 for i in range(4000)], "x": ["a", "b", "a", "c"] * 1000}
    )
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=99, delta=0.5))
    query = frame.group_by("g", keys=list(range(20)), max_groups=20, max_rows_per_group=1).agg(
        top=dp.mode("x", keys=["a", "b", "c"])
    )
    out = query.release(epsilon=20, delta=1e-6)
    assert out.noise["mechanism"].item() == "exponential"
    assert set(out.table["top"].to_list()) <= {"a", "b", "c"}
    assert "one that is worse by `scale` rows" in out.report()
    fewer = query.accuracy(epsilon=20, delta=1e-6)["error"].item()
    assert fewer == pytest.approx(out.noise["scale"].item() * math.log(2 * 0.95 / 0.05))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("accountant", ["basic", "pld"])
def test_in_a_batch_all_queries_share_one_rho(accountant):
    if accountant == "pld":
        pytest.importorskip("dp_accounting")
    budget = dp.Budget(epsilon=9, delta=0.5, accountant=accountant)
    queries = [
        asked(budget=budget, n=dp.count()),
        asked(budget=budget),
        asked(budget=budget, q=dp.quantile("x", 0.9, (0, 1))),
    ]
    batch = budget.plan(queries, epsilon=1, delta=1e-6)
    assert batch.noise["mechanism"].to_list() == ["elliptic", "exponential", "exponential"]
    assert (batch.cost.epsilon, batch.cost.delta) == (1.0, 1e-6)
    alone = plan_of(asked()).noises[0]
    assert batch.noise["scale"][1] == pytest.approx(
        alone.scale * float(alone.allotment.total.unit) * math.sqrt(3), rel=1e-6
    )
    assert (
        budget.plan(queries, epsilon=1, delta=1e-6, noise="laplace").noise["mechanism"][1]
        == "permute_and_flip"
    )


def test_groups_are_chosen_in_pieces_that_do_not_change_the_choice(monkeypatch):
    """With replayed random words, pieces of any size give one choice;
    dense arrays of all groups are never made.
    """
    draw = np.random.default_rng(5)
    dense = draw.integers(0, 3, (50, 6)) * draw.integers(0, 2, (50, 6)) << 20
    groups, at = np.nonzero(dense)
    counts = PlaceCounts(groups, at, dense[groups, at], dense.shape)
    assert np.array_equal(np.asarray(counts), dense)
    words, found = draw.integers(0, 2**64, 10**4, dtype=np.uint64), []
    query = dp.protect(pl.DataFrame({"x": [1]}), unit=dp.Rows(1)).median("x", (0, 5))
    (drawn,) = noise_plan(question_of(query), Price(Fraction(1), Fraction(0))).noises
    for cells in (6, 40, 1000):
        source = iter(words)
        monkeypatch.setattr(choices, "_CELLS", cells)
        with substitute(lambda size, source=source: np.fromiter(source, np.uint64, size)):
            found.append(choices.chosen(drawn, counts))
    assert all(np.array_equal(places, found[0]) for places in found)
    assert len(np.unique(found[0])) > 3


@pytest.mark.parametrize("rows", [1, 2])
def test_a_choice_of_a_share_is_within_its_square(rows):
    """Every small table and every neighbour: δ at each ε of the choice is at most
    that of Gaussian noise of its μ².
    """
    budget = dp.Budget(epsilon=8, delta=1e-3)
    frame = dp.protect(pl.DataFrame(schema=SCHEMA), unit="id", budget=budget)
    query = frame.mode("g", keys=[0, 1, 2], max_rows=rows)
    (choice,) = query._noise_plan({"share": 0.02}, "auto").noises
    assert choice.label == "exponential"
    mu, reached = math.sqrt(choice.mu_squared), 0.0
    scale = choice.scale * rows / float(choice.allotment.total.sensitivity.l1)  # in rows
    moves = [move for move in itertools.product(range(rows + 1), repeat=3) if sum(move) <= rows]
    for counts, move in itertools.product(itertools.product(range(4), repeat=3), moves):
        laws = []
        for table in (counts, [a + b for a, b in zip(counts, move, strict=True)]):
            weights = [math.exp(count / scale) for count in table]
            laws.append([weight / sum(weights) for weight in weights])
        for epsilon in (0.0, 0.05, 0.2, 0.5):
            for p, q in (laws, laws[::-1]):
                delta = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))
                assert delta <= gaussian_delta(epsilon, mu) + 1e-12
                reached = max(reached, delta / gaussian_delta(epsilon, mu))
    assert reached > 0.9
