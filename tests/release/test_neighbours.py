"""Every claim of a question against the truth:
change one unit, measure how far the totals before noise move.
"""

from __future__ import annotations

import random

import narwhals as nw
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.errors import DpFrameError, EngineError
from inside import question_of
from strategies import (
    CITIES,
    answer,
    as_frame,
    bring,
    check_claims,
    distance,
    hashed_by,
    random_plan,
    random_question,
    random_rows,
    rows_of_unit,
)
from tiers import in_turn

# Random plans and questions for each neighbour relation. The kinds of tables differ in how they are
# brought, and then they are one: the long tier asks as many of each.
CASES = 24
FEWER = {"pandas": 8, "lazy": 8, "pyarrow": 8}


def _asked(frame, plan, question, **whose):
    """The question on a frame, or None when it is refused."""
    try:
        return question(plan(dp.protect(frame, **whose)))
    except DpFrameError:
        return None


def _answerable(query):
    """Whether the engine can run it; where not, that must show on a table
    without rows, before it is paid.
    """
    if query is None:
        return False
    try:
        answer(query)
    except EngineError:
        with pytest.raises(EngineError):
            engine.validate(question_of(query))
        return False
    return True


def _without(rows, unit):
    return [row for row in rows if row[0] != unit]


def _hold(kind, seed, unit, relation, cases=CASES):
    """Draw questions until enough were held against neighbours;
    most of those drawn must be answerable.
    """
    rng, held, drawn = random.Random(seed), 0, 0
    while held < cases:
        drawn += 1
        assert drawn < 4 * cases, (
            "nearly every question is refused: the test no longer tests anything"
        )
        rows, plan, question = random_rows(rng), random_plan(rng), random_question(rng)
        query = _asked(bring(as_frame(rows), kind), plan, question, unit=unit, neighbors=relation)
        if not _answerable(query):
            continue
        gone = rng.randrange(5)
        other = _without(rows, gone)
        if relation == "replace":
            other = other + rows_of_unit(rng, rng.choice([gone, 77]), rng.randint(1, 25))
        rng.shuffle(other)
        neighbour = _asked(
            bring(as_frame(other), kind), plan, question, unit=unit, neighbors=relation
        )
        check_claims(query, neighbour, salt=rng.getrandbits(64))
        held += 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_unit_moves_totals_by_no_more_than_claimed(kind, relation):
    _hold(kind, f"{kind} {relation}", "u", relation, FEWER.get(kind, CASES))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_composite_unit_moves_totals_by_no_more_than_claimed(relation):
    _hold("polars", f"composite {relation}", ("u", "w"), relation, CASES // 2)


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("brought", FEWER)
def test_one_unit_moves_totals_by_no_more_than_claimed_however_they_are_brought(brought, relation):
    _hold(brought, f"{brought} {relation} at length", "u", relation, 200)


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("seed", range(24))
def test_one_unit_moves_totals_by_no_more_than_claimed_at_length(relation, seed):
    _hold("polars", f"long {seed}", "u", relation, 500)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("cases", [2, pytest.param(40, marks=pytest.mark.long)])
def test_one_unit_moves_totals_by_no_more_than_claimed_on_datafusion(relation, cases):
    pytest.importorskip("ibis.backends.datafusion")
    _hold("datafusion", f"datafusion {relation}", "u", relation, cases)


# Without identifiers


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_declared_rows_move_totals_by_no_more_than_claimed(kind, relation):
    rng, held, drawn = random.Random(f"rows {kind} {relation}"), 0, 0
    while held < FEWER.get(kind, CASES):
        drawn += 1
        assert drawn < 6 * CASES
        k, rows, plan = (
            rng.choice([1, 1, 2, 4]),
            random_rows(rng, units=3, most=4),
            random_plan(rng),
        )
        question = random_question(rng, limited=False)
        query = _asked(
            bring(as_frame(rows), kind), plan, question, unit=dp.Rows(k), neighbors=relation
        )
        if not _answerable(query):
            continue
        rng.shuffle(rows)
        other = rows[k:] if relation == "add-remove" else rows[k:] + rows_of_unit(rng, 9, k)
        neighbour = _asked(
            bring(as_frame(other), kind), plan, question, unit=dp.Rows(k), neighbors=relation
        )
        check_claims(query, neighbour)
        held += 1


PREPARED = ["nothing", "fill_null", "filter", "drop_nulls", "clip", "cast", "case"]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("prepare", "bounds"), in_turn(PREPARED, [(5, 10), (-3, 10), (-9, -4)]))
def test_bounded_dp_tightens_only_while_each_row_surely_counts(prepare, bounds):
    steps = {
        "nothing": lambda f: f,
        "fill_null": lambda f: f.fill_null("x", 6),
        "filter": lambda f: f.fill_null("x", 6).filter(dp.col("yes")),
        "drop_nulls": lambda f: f.drop_nulls("x"),
        "clip": lambda f: f.fill_null("x", 6).clip("x", -100, 100),
        "cast": lambda f: f.fill_null("x", 6).cast("x", "int8"),
        "case": lambda f: f.fill_null("x", 6).with_columns(
            x=dp.when(dp.col("yes")).then(dp.col("x"))
        ),
    }
    rng = random.Random(f"{prepare} {bounds}")
    reached = 0
    for _ in range(30):
        rows = random_rows(rng, units=2, most=3)
        other = rows[1:] + rows_of_unit(rng, 9, 1)
        queries = [
            steps[prepare](dp.protect(as_frame(r), unit=dp.Rows(1), neighbors="replace")).agg(
                n=dp.count(),
                nx=dp.count("x"),
                s=dp.sum("x", bounds=bounds),
                m=dp.mean("x", bounds=bounds),
            )
            for r in (rows, other)
        ]
        held = check_claims(*queries)
        reached += held[2][0].linf == held[2][1].exact_linf if prepare == "fill_null" else 1
    tight = queries[0].sensitivity["s"].l1 == bounds[1] - bounds[0]
    assert tight == (prepare in ("fill_null", "clip") or bounds == (-3, 10))
    assert (queries[0].sensitivity["n"].l1 == 0) == (prepare not in ("filter", "drop_nulls"))
    assert reached


# Hashes


def _constant(frame, columns, salt, into):
    return frame.with_columns(nw.lit(7).alias(into))


def _by_group(frame, columns, salt, into):
    return frame.with_columns(nw.col(columns[-1]).cast(nw.String).str.len_chars().alias(into))


def _by_unit(frame, columns, salt, into):
    return frame.with_columns((nw.col(columns[0]).cast(nw.Int64) % 2).alias(into))


def _two_values(frame, columns, salt, into):
    return frame.with_columns(nw.col(columns[-1]).is_null().cast(nw.Int64).alias(into))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("hashed", [_constant, _by_group, _by_unit, _two_values])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_claim_rests_on_the_hash(monkeypatch, hashed, relation):
    hashed_by(monkeypatch, hashed)
    _hold("polars", f"{hashed.__name__} {relation}", "u", relation, 12)


def test_equal_hashes_cost_groups_and_nothing_else(monkeypatch):
    rows = [(1, None, 1, 1.0, city, None, None, None) for city in CITIES[:3]] + [
        (2, None, 1, 1.0, "Bonn", *[None] * 3)
    ]
    frame = dp.protect(as_frame(rows), unit="u")
    ask = frame.group_by("city", keys=CITIES[:3], max_groups=2).count_units()
    assert sum(answer(ask)[0].values()) == 3
    hashed_by(monkeypatch, _constant)
    assert answer(ask)[0] == {("Aachen",): 0, ("Bonn",): 1, ("Celle",): 0}


def test_groups_are_chosen_anew_with_each_salt_and_for_each_unit():
    frame = pl.DataFrame({"u": [u for u in range(40) for _ in range(4)], "g": [0, 1, 2, 3] * 40})
    ask = dp.protect(frame, unit="u").group_by("g", keys=[0, 1, 2, 3], max_groups=1).count_units()
    seen = {tuple(answer(ask, salt)[0].values()) for salt in range(30)}
    assert len(seen) > 20
    for counts in seen:
        assert sum(counts) == 40
        assert max(counts) < 40  # not the same group for everyone
    # With 30 · 40 choices each group has 300 ± 15 of them; 6 standard deviations: false alarm below
    # 1e-8.
    for group in range(4):
        assert (
            abs(sum(counts[group] for counts in seen) / len(seen) - 10)
            < 6 * 2.74 / len(seen) ** 0.5
        )


# Reached


def _heavy(groups, rows, value=10.0):
    """A unit with some rows in each of some groups, all of one value."""
    return pl.DataFrame(
        {
            "u": ["heavy"] * (groups * rows),
            "g": list(range(groups)) * rows,
            "x": [value] * (groups * rows),
        },
        {"u": pl.String, "g": pl.Int64, "x": pl.Float64},
    )


def _swap(groups, rows, value):
    """A unit of the same shape in other groups."""
    return _heavy(groups, rows, value).with_columns(pl.col("g") + 100, pl.lit("other").alias("u"))


LIMITS = [(4, 2, 3), (6, 2, 3), (7, 3, 3), (5, 1, 9), (1, 1, 1), (9, 4, 2), (3, 7, 7), (10, 3, 4)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("rows", "per_group", "groups"), LIMITS)
@pytest.mark.parametrize("bounds", [(-3, 10), (-10, 3), (0, 5)])
def test_each_bound_is_reached_when_a_unit_leaves(rows, per_group, groups, bounds):
    keys = [*range(12)]
    ask = lambda frame: (  # noqa: E731
        dp.protect(frame, unit="u")
        .group_by("g", keys=keys, max_rows=rows, max_rows_per_group=per_group, max_groups=groups)
        .agg(
            n=dp.count(),
            s=dp.sum("x", bounds=bounds),
            t=dp.sum("x", unit_bounds=bounds),
            m=dp.count_units(),
        )
    )
    far = max(bounds, key=abs)
    shapes = [_heavy(many, deep, far) for many, deep in ((9, 1), (1, 9), (9, 9))]
    # The vertex where l2 is largest: as many full groups as fit, and one for the rest.
    whole, rest = divmod(min(rows, per_group * groups), per_group)
    shapes.append(
        pl.concat(
            [
                _heavy(whole, per_group, far),
                _heavy(1, rest, far).with_columns(pl.lit(11).cast(pl.Int64).alias("g")),
            ]
        )
    )
    best = _best(ask, shapes, [_heavy(0, 0)] * len(shapes))
    for measured, claim in best:
        assert measured == (claim.l0, claim.exact_l1, claim.l2_squared, claim.exact_linf)


@pytest.mark.parametrize(("rows", "per_group", "groups"), LIMITS)
def test_each_bound_is_reached_when_a_unit_takes_the_place_of_another(rows, per_group, groups):
    keys = [*range(12), *range(100, 112)]
    ask = lambda frame: (  # noqa: E731
        dp.protect(frame, unit="u", neighbors="replace")
        .group_by("g", keys=keys, max_rows=rows, max_rows_per_group=per_group, max_groups=groups)
        .agg(
            n=dp.count(),
            s=dp.sum("x", bounds=(0, 10)),
            signed=dp.sum("x", bounds=(-3, 10)),
            m=dp.count_units(),
        )
    )
    shapes = [_heavy(many, deep) for many, deep in ((9, 1), (1, 9), (9, 9))]
    others = [_swap(many, deep, 10.0) for many, deep in ((9, 1), (1, 9), (9, 9))]
    whole, rest = divmod(min(rows, per_group * groups), per_group)
    corner = pl.concat([_heavy(whole, per_group), _heavy(1, rest).with_columns(pl.col("g") + 11)])
    shapes += [corner, _heavy(1, per_group, 10.0)]
    others += [
        corner.with_columns(pl.col("g") + 100),
        _heavy(1, per_group, -10.0).with_columns(u=pl.lit("other")),
    ]
    best = _best(ask, shapes, others)
    # With one row in a group the rows are the units, and are measured once.
    names = ["n", "s", "signed", "m"] if min(rows, per_group) > 1 else ["n", "s", "signed"]
    for name, (measured, claim) in zip(names, best, strict=True):
        assert measured[0] == claim.l0, name
        assert measured[1] == claim.exact_l1, name
        assert measured[3] == claim.exact_linf, name
        # Where two rests do not make one entry, or entries have a sign, the claimed l2 is a bound
        # and not a maximum.
        if rest == 0 and name != "signed":
            assert measured[2] == claim.l2_squared, name


def _best(ask, shapes, others):
    """For each measure the largest distance in each norm over
    pairs of neighbours, and the claim.
    """
    best = None
    for shape, other in zip(shapes, others, strict=True):
        held = check_claims(ask(shape), ask(other))
        mine = [(d.l0, d.l1, d.l2_squared, d.linf) for d, _ in held]
        best = (
            mine
            if best is None
            else [tuple(map(max, a, b)) for a, b in zip(best, mine, strict=True)]
        )
    return list(zip(best, [claim for _, claim in held], strict=True))


def test_each_bound_of_declared_rows_is_reached():
    frame = pl.DataFrame({"g": [0, 0, 0, 1, 2], "x": [10.0, 10.0, 10.0, 10.0, -3.0]})
    ask = lambda rows: (  # noqa: E731
        dp.protect(frame[rows], unit=dp.Rows(3))
        .group_by("g", keys=[0, 1, 2])
        .agg(n=dp.count(), s=dp.sum("x", bounds=(-3, 10)))
    )
    whole = ask([0, 1, 2, 3, 4])
    same, spread = check_claims(whole, ask([3, 4])), check_claims(whole, ask([0, 1]))
    for heaped, (_, claim) in zip(same, same, strict=True):
        assert heaped[0].l1 == claim.exact_l1
        assert heaped[0].l2_squared == claim.l2_squared
        assert heaped[0].linf == claim.exact_linf
    assert spread[0][0].l0 == spread[0][1].l0 == 3


# What does not move anything


@pytest.mark.one_in(2)
def test_rows_of_nobody_do_not_count(kind):
    rng = random.Random(kind)
    for _ in range(15):
        rows, plan, question = random_rows(rng), random_plan(rng), random_question(rng)
        query = _asked(bring(as_frame(rows), kind), plan, question, unit="u")
        if _answerable(query):
            more = rows + rows_of_unit(rng, None, 20)
            assert answer(query) == answer(
                _asked(bring(as_frame(more), kind), plan, question, unit="u")
            )


@pytest.mark.one_in(2)
def test_the_order_of_rows_does_not_matter(kind):
    rng = random.Random(f"order {kind}")
    for _ in range(12):
        rows, plan, question = random_rows(rng), random_plan(rng), random_question(rng)
        query = _asked(bring(as_frame(rows), kind), plan, question, unit="u")
        if _answerable(query):
            mixed = rng.sample(rows, len(rows))
            assert answer(query, 5) == answer(
                _asked(bring(as_frame(mixed), kind), plan, question, unit="u"), 5
            )


def test_units_add_up():
    """Each unit's part depends on nobody else: the totals of a table are
    the sum of those of its units.
    """
    rng, held = random.Random("sum"), 0
    while held < 15:
        rows, plan, question = random_rows(rng, units=3), random_plan(rng), random_question(rng)
        whole = _asked(as_frame(rows), plan, question, unit="u")
        if not _answerable(whole):
            continue
        alone = [[r for r in rows if r[0] == u] for u in range(3)]
        parts = [answer(_asked(as_frame(r), plan, question, unit="u"), 3) for r in alone]
        for i, total in enumerate(answer(whole, 3)):
            added = {
                key: sum(part[i].get(key, 0) for part in parts)
                for key in set().union(*(p[i] for p in parts))
            }
            assert distance(total, added).l1 == 0
        held += 1
