"""Releases of two stages, and of numbers that hang together, held against the ε that
was claimed by what comes out.

The histograms of `dp.Auto` are audited one by one with 200,000 draws of each of two neighbouring
tables, and whole releases that choose limits with what an adversary would see who saw the histogram
too: more than is released. Tables of margins and marginals are many draws for one reading of the
rows. The false-alarm rate is 1e-6 for each.
"""

import contextlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.audit import audit
from dpframe.audit.trials import at_least
from dpframe.plan import Limits
from dpframe.plan.steps import source_of
from dpframe.release.answer import drawn_table
from dpframe.release.auto import Seen, SizePosterior, noisy_histograms
from dpframe.release.auto import choice as auto
from dpframe.release.auto.error_model import Judged
from dpframe.release.auto.noisy_histograms import noisy_histogram
from dpframe.release.kinds.marginals import drawn_interactions
from dpframe.release.pricing import NoiseKind
from inside import question_of
from prices import offer, priced

DRAWS = 200_000
# The rows of three people, and those of one who joins them, or takes the place of another who would
# join.
REST, ONE, OTHER = [(0, 0, 1.0), (1, 1, 2.0), (1, 0, 9.0)], [(7, 1, 15.0)] * 8, [(7, 0, -2.0)]


def table(rows):
    return pl.DataFrame(rows, {"u": pl.Int64, "g": pl.Int64, "x": pl.Float64}, orient="row")


def pair(relation):
    return table(REST + ONE), table(REST + (OTHER if relation == "replace" else []))


def asked(rows, relation):
    frame = dp.protect(rows, unit="u", neighbors=relation)
    return question_of(
        frame.group_by("g", keys=[0, 1], limits=dp.Auto()).agg(
            s=dp.sum("x", bounds=(-5, 5)), n=dp.count()
        )
    )


# Histograms

HISTOGRAMS = {
    "rows": lambda ask: engine.size_profile(ask, ["rows"])["rows"],
    "rows per group": lambda ask: engine.size_profile(ask, ["rows_per_group"])["rows_per_group"],
    "keys": engine.key_profile,
    "magnitudes": lambda ask: engine.magnitude_profile(ask, ask.table.columns["x"]),
    "values": lambda ask: engine.value_profile(ask, ask.table.columns["x"], [-1.0, 0.0, 4.0]),
}


def likelier(histogram, relation, price):
    """How much likelier noisy histograms are from the first table than from the
    second: all there is to learn.
    """
    counts = [HISTOGRAMS[histogram](asked(rows, relation)) for rows in pair(relation)]
    moved = np.flatnonzero(counts[0] != counts[1])
    first, second = (c[moved] / engine.ONE for c in counts)

    def release(rows):
        ask = asked(rows, relation)
        exact = HISTOGRAMS[histogram](ask)[moved]
        noisy, scale = noisy_histogram(price, ask, np.tile(exact, DRAWS), Seen())
        noisy = noisy.reshape(DRAWS, len(moved))
        return ((np.abs(noisy - second) - np.abs(noisy - first)) / scale).sum(axis=1)

    return audit(release, *pair(relation), float(price.amount), 0.0, DRAWS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("histogram", HISTOGRAMS)
def test_no_histogram_tells_more_than_it_costs(histogram, relation):
    result = likelier(histogram, relation, offer("epsilon", Fraction(1), Fraction(0), "auto"))
    assert result.holds, result.verdict
    assert result.lower > 0.8, "the audit has no power here"


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_histogram_with_too_little_noise_is_found(relation, monkeypatch):
    scale = noisy_histograms.histogram_scale
    monkeypatch.setattr(
        noisy_histograms, "histogram_scale", lambda price, relation: 0.8 * scale(price, relation)
    )
    assert not likelier("rows", relation, offer("epsilon", Fraction(1), Fraction(0), "auto")).holds


# Two stages


@contextlib.contextmanager
def remembered():
    """Tables are read once; the noise of each release is its own.
    Limits follow from the noisy histogram at a glance.

    Gives the noisy histograms, one after the other.
    """
    seen, known = [], {}

    def once(read, about):
        def reading(ask, *args, **said):
            key = (
                id(source_of(ask.step)),
                read.__name__,
                about(ask, *args),
                said.get("empty", False),
            )
            if key not in known:
                known[key] = read(ask, *args, **said)
            return known[key]

        return reading

    def spread(counts, scale, nodes):
        seen.append(counts)
        return SizePosterior(counts.clip(0)[None], np.ones(1))

    def best(ask, rest, people):
        many = people.rows.masses[0][list(engine.NODES).index(8)] > 0.5
        return Judged(
            Limits(8 if many else 1), {}, NoiseKind.LAPLACE, np.ones(1), {"count": 1.0}
        ), None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            engine, "size_profile", once(engine.size_profile, lambda _, sizes: tuple(sizes))
        )
        patch.setattr(engine, "totals", once(engine.totals, lambda ask, _: ask.limits))
        patch.setattr(engine, "validate", lambda _: None)
        patch.setattr(auto, "read_spread", spread)
        patch.setattr(auto, "_best", best)
        yield seen


def staged(trials, epsilon=2.0):
    """Whole releases that choose limits: how much likelier the noisy histogram and
    the answer are from one table.
    """
    tables, budget = pair("add-remove"), dp.Budget(epsilon=1e9)
    queries = [
        dp.protect(rows, unit="u", budget=budget).count(limits=dp.Auto(share=0.5))
        for rows in tables
    ]
    at = list(engine.NODES).index(8)
    counted = {1: (3, 2), 8: (11, 3)}  # rows of the two tables, under either limit
    with remembered() as seen:

        def release(query):
            out, noisy = query.release(epsilon=epsilon), seen.pop()[at]
            limit = 8 if noisy > 0.5 else 1
            first, second = counted[limit]
            return (
                abs(noisy)
                - abs(noisy - 1)
                + (abs(out.value - second) - abs(out.value - first)) / limit
            )

        return audit(release, *queries, epsilon, 0.0, trials)


@pytest.mark.long
def test_limits_and_the_answer_under_them_tell_no_more_than_both_cost():
    result = staged(1_500)
    assert result.holds, result.verdict
    assert result.lower > 0.4, "the audit has no power here"


@pytest.mark.long
def test_limits_and_the_answer_under_them_tell_no_more_than_both_cost_at_length():
    result = staged(12_000)
    assert result.holds, result.verdict
    assert result.lower > 1.5, "the audit has no power here"


@pytest.mark.long
def test_an_answer_that_has_the_whole_price_is_found(monkeypatch):
    restored = auto.restored
    whole = lambda ask, said, price: restored(ask, said, replace(price, amount=2 * price.amount))  # noqa: E731
    monkeypatch.setattr(auto, "restored", whole)
    assert not staged(12_000).holds


def test_who_is_alone_in_a_group_is_shown_no_more_often_than_delta_allows_where_limits_are_chosen():
    groups = 30_000
    frame = dp.protect(
        pl.DataFrame({"u": range(groups), "g": range(groups)}), unit="u", budget=dp.Budget(9, 0.1)
    )
    found = (
        frame.group_by("g", limits=dp.Auto()).count().release(epsilon=2.0, delta=0.01).table.height
    )
    assert 0 < at_least(found, groups, 1e-6) <= 0.01


# Numbers that hang together

KEYS = {"g": [0, 1], "x": [1.0, 2.0]}
PRICE = {"epsilon": 4.0, "delta": 1e-3}
TABLES = [table([*REST, *[(7, 1, 1.0)] * 2]), table(REST)]


def plan_of(query):
    return question_of(query), priced(question_of(query), "epsilon", **PRICE, noise="gaussian")


def scaled_by(noise, part):
    """The noise of a total at a part of its scale."""
    return replace(noise, mechanism=replace(noise.mechanism, scale=noise.scale * part))


def margins(trials, part=1.0):
    """A crosstab with measured margins, as much as it tells:
    least squares lose nothing of the normals they are of.
    """
    apart = np.array([[0, 0], [2, 0]])

    def release(rows):
        frame = dp.protect(rows, unit="u")
        ask, plan = plan_of(frame.crosstab("g", "x", keys=KEYS, margins="measured", max_rows=2))
        noise = {d.allotment.total.merged or "cells": d.scale for d in plan.noises}
        assert len(noise) == 4
        plan = replace(plan, noises=tuple(scaled_by(d, part) for d in plan.noises))
        raw = engine.totals(ask, 1)
        found = np.array(
            [drawn_table(ask, plan, raw)[0]["count"].to_numpy() for _ in range(trials)]
        ).reshape(-1, 2, 2)
        sums = {"cells": lambda t: t, "rows": lambda t: t.sum(-1), "columns": lambda t: t.sum(-2)}
        sums["total"] = lambda t: t.sum((-2, -1))[..., None]
        told = (
            (sums[k](found) * sums[k](apart)).reshape(trials, -1).sum(1) / s**2
            for k, s in noise.items()
        )
        return sum(told)

    return audit(release, *TABLES, **PRICE, trials=trials)


def marginals(trials, part=1.0):
    """Interactions of two columns of two keys: one number each, with noise of its own."""

    def release(rows):
        ask, plan = plan_of(
            dp.protect(rows, unit="u").marginals(["g", "x"], "2-way", keys=KEYS, max_rows=2)
        )
        plan = replace(plan, noises=tuple(scaled_by(d, part) for d in plan.noises))
        raw = engine.marginal_totals(ask, 1)
        return np.array(
            [drawn_interactions(ask, plan, raw)["value"].to_numpy() for _ in range(trials)]
        )

    return audit(release, *TABLES, **PRICE, trials=trials)


@pytest.mark.long
@pytest.mark.parametrize("release", [margins, marginals])
def test_tables_and_their_margins_tell_no_more_than_they_cost(release):
    result = release(2_500)
    assert result.holds, result.verdict
    assert result.lower > 0.4, "the audit has no power here"
    assert not release(2_500, part=0.15).holds


@pytest.mark.long
@pytest.mark.parametrize("release", [margins, marginals])
def test_tables_and_their_margins_tell_no_more_than_they_cost_at_length(release):
    result = release(100_000)
    assert result.holds, result.verdict
    assert result.lower > 2, "the audit has no power here"
