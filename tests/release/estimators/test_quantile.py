"""Quantiles, extremes and distinct values: what they are, what they
cost, and what one unit can move.
"""

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.plan import Candidates
from dpframe.release.answer.selection import _public, rank_scores, reach_scores
from dpframe.theory.formulas.loss import PRIOR, fade, rank_prior, rank_terms, reach_change
from dpframe.theory.formulas.loss.quantile_selection import FADING
from inside import question_of, step_of
from places import place_counts
from prices import Price, noise_plan
from tiers import in_turn

CERTAIN = 1e9


def protect(rows, **options):
    return dp.protect(
        pl.DataFrame(rows), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5), **options
    )


@pytest.fixture
def frame():
    draw = np.random.default_rng(3)
    size = 3000
    return protect(
        {
            "id": draw.integers(0, 700, size),
            "g": draw.choice(["a", "b"], size),
            "x": draw.gamma(2.0, 20.0, size),
            "n": draw.integers(0, 50, size),
        }
    )


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.9])
def test_quantiles_are_those_of_polars_up_to_the_grid_of_candidates(frame, q):
    grouped = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=100)
    raw = step_of(frame).data.scan(["g", "x", "n"]).collect()
    for column, reach, slack in (("x", (0, 200), 200 / 1023 + 0.5), ("n", (0, 49), 1)):
        got = grouped.quantile(column, q, reach).release(epsilon=CERTAIN).table[column].to_list()
        want = raw.group_by("g").agg(pl.col(column).quantile(q)).sort("g")[column].to_list()
        assert got == pytest.approx(want, abs=slack)


def test_extremes_are_near_the_ends(frame):
    out = frame.agg(
        low=dp.min("n", (-100, 100)), high=dp.max("n", (-100, 100)), max_rows=50
    ).release(epsilon=CERTAIN)
    assert out.table.row(0) == (0, 49)
    near = [frame.max("n", (-1000, 1000), max_rows=10).release(epsilon=5).value for _ in range(40)]
    assert 30 < np.median(near) < 60  # one in five is far above, wherever up to 1000


def test_several_quantiles_are_named_by_rank(frame):
    query = frame.quantile("x", [0.25, 0.75], (0, 200), max_rows=5)
    assert set(query.sensitivity) == {"x_0.25", "x_0.75"}
    assert query.release(epsilon=1).table.columns == ["x_0.25", "x_0.75"]


def test_a_grouped_median_costs_l1_not_groups_times_rows(frame):
    grouped = frame.group_by("g", keys=["a", "b", *list("cdefghij")], max_groups=10, max_rows=10)
    noise = grouped.median("x", (0, 100)).release(epsilon=1).noise
    assert noise["scale"].item() == pytest.approx(10.0 * (1 + 1 / FADING))
    assert noise["mechanism"].item() == "permute_and_flip"


@pytest.mark.parametrize(
    "rank",
    [
        *(
            Fraction(0),
            Fraction(1),
            Fraction(1, 2),
            Fraction(1, 4),
            Fraction(9, 10),
            Fraction(1, 3),
        ),
        *(Fraction(1, 10**6), Fraction(999_999, 10**6)),
    ],
)
def test_one_row_moves_a_score_by_no_more_than_claimed_and_by_that_much(rank):
    measure = type("M", (), {"rank": rank, "fraction": 0})()
    change, _ = rank_terms(rank)
    seen = 0
    for counts in itertools.product(range(4), repeat=4):
        base = rank_scores(measure, np.array([counts]), Fraction(1, 3))
        for place in range(4):
            more = list(counts)
            more[place] += 1
            seen = max(
                seen,
                int(np.abs(rank_scores(measure, np.array([more]), Fraction(1, 3)) - base).max()),
            )
    # what public rows add, at most
    public = 0 if rank in (0, 1) else 1 - reach_change(rank) + rank.denominator
    assert change - public <= seen <= change
    assert rank != Fraction(1, 2) or seen == change


@pytest.mark.parametrize("rank", [Fraction(999, 1000), Fraction(1, 10**6)])
def test_scores_do_not_wrap_however_many_rows(rank):
    measure = type("M", (), {"rank": rank, "fraction": 0})()
    scores = rank_scores(measure, np.array([[2**60, 2**60, 2**60]]), Fraction(1))
    assert (scores <= 0).all()


def test_a_rank_near_an_end_is_not_the_extreme():
    """Ten of 40,000 values on either side are a part of 0.00025."""
    rows = {"id": range(40_000), "x": [0.0] * 10 + [500.0] * 39_980 + [1000.0] * 10}
    query = protect(rows).quantile("x", [0.0002, 0.0003, 0.9997, 0.9998], (0, 1023), max_rows=1)
    assert query.release(epsilon=CERTAIN).table.row(0) == pytest.approx(
        (0.0, 500.0, 500.0, 1000.0), abs=0.5
    )


@pytest.mark.parametrize(
    ("q", "said"), [(1e-7, "min("), (1 - 1e-9, "max("), (np.float32(1e-8), "min(")]
)
def test_a_rank_that_would_be_an_extreme_says_which_to_type(frame, q, said):
    with pytest.raises(errors.InvalidArgument, match="six decimals") as caught:
        frame.quantile("x", q, (0, 1), max_rows=1)
    assert said in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_group_with_hardly_a_row_has_a_quantile_near_that_part_of_its_bounds(q):
    """Without public rows it is anywhere: standard deviation 289 from 500.
    False alarms: below 1e-6.
    """
    frame = protect({"id": [1], "g": [0], "x": [0.0]})
    grouped = frame.group_by("g", keys=list(range(2000)), max_groups=1, max_rows_per_group=1)
    got = grouped.quantile("x", q, (0, 1000)).release(epsilon=1).table["x"].to_numpy()
    places = np.arange(1024) / 1023 * 1000
    away = np.abs(places / 1000 - q)
    gaps = np.exp(-PRIOR * away)  # what each candidate's chance is about in proportion to
    assert abs(got.mean() - np.average(places, weights=gaps)) < 30
    assert np.sqrt(np.mean((got - 1000 * q) ** 2)) < 230
    lowest = protect({"id": [1], "x": [0.0]}).agg(low=dp.min("x", (0, 1000)), max_rows=1)
    # an extreme has none
    assert np.std([lowest.release(epsilon=1e-3).value for _ in range(200)]) > 230


@pytest.mark.parametrize(
    "rank", [Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(999, 1000)]
)
@pytest.mark.parametrize("rate", [Fraction(1, 10**30), Fraction(1, 7), Fraction(10**9)])
def test_public_rows_score_as_rows_that_are_spread_evenly(rank, rate):
    count = 12
    a, b = rank.as_integer_ratio()
    each = PRIOR / rate / b / count  # score units of a row, for each candidate
    borders = rank_prior(rank, count, rate)
    for i, (before, after) in enumerate(itertools.pairwise(borders)):
        low = (b - a) * i * each - a * (count - i) * each
        high = a * (count - i - 1) * each - (b - a) * (i + 1) * each
        for got, want in ((before[0], low), (-after[0], high)):
            assert got == max(min(int(want), 2**60), -(2**60))  # rounded toward 0
    assert all(abs(turn) <= count * max(a, b - a) for _, turn in borders)


@pytest.mark.parametrize("rank", [Fraction(1, 10), Fraction(1, 2), Fraction(2, 3)])
def test_public_rows_are_fewer_by_one_for_each_few_rows_and_none_in_large_groups(rank):
    """A row, or several at once, changes what they add by no more than a
    part 1/FADING of its own change.
    """
    scale = Fraction(5)
    rate, many = 1 / (scale * rank_terms(rank)[1]), 12
    sizes = np.arange(0, 2 * PRIOR * fade(rank) * 5, 7)[:, None]
    public = _public(rank, many, rate, sizes)
    for step in (1, 3):
        moved = np.abs(public[step:] - public[:-step]).max()
        assert moved <= 7 * step * reach_change(rank)
        assert moved >= 0.9 * 7 * step * reach_change(rank) * (many - 1) / many * (
            rank == Fraction(1, 2)
        )
    assert not public[sizes[:, 0] >= PRIOR * fade(rank) * 5].any()
    half = _public(rank, many, rate, np.array([[PRIOR * fade(rank) * 5 // 2]]))
    assert np.abs(2 * half - public[:1]).max() <= 2 * many


@pytest.mark.parametrize("rank", [Fraction(k, 40) for k in range(1, 40)] + [Fraction(1, 10**6)])
def test_fading_costs_at_most_its_part_of_the_price_and_as_much_as_it_may(rank):
    change, units = rank_terms(rank)
    alone = Fraction(reach_change(rank), rank.denominator)
    assert alone < Fraction(change, units) <= alone * (1 + Fraction(1, FADING))
    faster = fade(rank) - 1  # public rows cannot leave sooner at this price
    assert faster == 0 or min(rank, 1 - rank) / faster > alone / FADING


RANKS = [
    Fraction(0),
    Fraction(1, 10),
    Fraction(1, 4),
    Fraction(1, 3),
    Fraction(1, 2),
    Fraction(4, 5),
    Fraction(1),
]


@pytest.mark.parametrize("fraction", [0, 20])
@pytest.mark.parametrize("rank", RANKS)
def test_the_best_candidates_are_the_quantiles_of_the_rows_and_no_others(rank, fraction):
    """Where choices are certain. All tables of up to three rows at each of four candidates."""
    measure = type("M", (), {"rank": rank, "fraction": fraction})()
    tables = np.array(list(itertools.product(range(4), repeat=4)))
    scores = rank_scores(measure, tables << fraction, Fraction(10**9))
    upto = tables.cumsum(axis=1)
    at_rank = upto[:, -1:] * float(rank)
    quantiles = (upto - tables <= at_rank + 1e-9) & (at_rank <= upto + 1e-9)
    if rank in (0, 1):  # an extreme is a value of a row, where there are rows
        quantiles &= (tables > 0) | (upto[:, -1:] == 0)
    assert ((scores == scores.max(axis=1, keepdims=True)) == quantiles).all()


@pytest.mark.parametrize(
    "rate", [Fraction(1, 10**30), Fraction(1, 7), Fraction(3), Fraction(10**9)]
)
@pytest.mark.parametrize("rank", RANKS)
def test_scores_of_a_table_in_a_mirror_are_the_scores_in_a_mirror(rank, rate):
    measure, mirrored = (type("M", (), {"rank": q, "fraction": 0})() for q in (rank, 1 - rank))
    tables = np.array(list(itertools.product(range(4), repeat=4)))
    assert (
        rank_scores(measure, tables, rate) == rank_scores(mirrored, tables[:, ::-1], rate)[:, ::-1]
    ).all()
    if 0 < rank < 1:
        for place in range(4):
            places = np.full(len(tables), place)
            there = reach_scores(mirrored, place_counts(tables[:, ::-1]), 3 - places, 5)
            assert (reach_scores(measure, place_counts(tables), places, 5) == there).all()


@pytest.mark.parametrize("bounds", [(0, 10), (1, 5), (0, 100), (-100, 5), (2, 4)])
@pytest.mark.parametrize("unit", ["id", dp.Rows(1)], ids=str)
def test_the_median_of_one_to_five_is_three(unit, bounds):
    """Also by groups, with limits of its own, with an interval, and beside other ranks."""
    groups = list(range(40))
    rows = {"id": range(200), "g": np.repeat(groups, 5), "x": [1, 2, 3, 4, 5] * 40}
    frame = dp.protect(pl.DataFrame(rows), unit=unit, budget=dp.Budget(epsilon=1e6, delta=0.5))
    own = {"max_rows": 1} if unit == "id" else {}
    limits = {"max_groups": 1, "max_rows_per_group": 1} if own else {}
    query = frame.group_by("g", keys=groups, **limits).agg(
        m=dp.median("x", bounds=bounds, **own), q=dp.quantile("x", [0.3, 0.7], bounds=bounds)
    )
    found = [query.release(epsilon=3e3).table]
    found.append(
        frame.group_by("g", keys=groups, **limits)
        .median("x", bounds)
        .release(epsilon=1e3, ci=0.9)
        .table
    )
    assert {value for table in found for value in table[table.columns[1]].to_list()} == {3}
    low, high = (min(max(value, bounds[0]), bounds[1]) for value in (2, 4))
    assert set(found[0].select("q_0.3", "q_0.7").rows()) == {(low, high)}


def test_weighted_ranks_of_one_unit_stay_within_its_limits():
    draw = np.random.default_rng(5)
    for trial in range(30):
        size = int(draw.integers(1, 60))
        rows = {
            "id": draw.integers(0, 3, size),
            "g": draw.integers(0, 4, size),
            "x": draw.integers(0, 9, size),
        }
        rows["x"] = [None if v == 8 else int(v) for v in rows["x"]]
        limits = {
            "max_groups": int(draw.integers(1, 5)),
            "max_rows_per_group": int(draw.integers(1, 6)),
        }
        if trial % 2:
            limits["max_rows"] = int(draw.integers(1, 12))
        tables = [pl.DataFrame(rows), pl.DataFrame(rows).filter(pl.col("id") != 0)]
        results = []
        for table in tables:
            query = dp.protect(table, unit="id").group_by("g", keys=[0, 1, 2, 3], **limits)
            ask = question_of(
                query.agg(m=dp.median("x", (0, 8)), u=dp.n_unique("x"), n=dp.count("x"))
            )
            results.append(engine.totals(ask, trial).values)
        for paid, whole, less in zip(ask.allotments, *results, strict=True):
            moved = np.abs(np.asarray(whole) - np.asarray(less)).reshape(4, -1).sum(axis=1)
            bound = paid.total.sensitivity
            assert (moved > 0).sum() <= bound.l0
            assert moved.sum() <= bound.exact_l1
            assert moved.max() <= bound.exact_linf


def test_distinct_values_are_counted_once_whoever_brings_them():
    frame = protect({"id": [1, 1, 1, 2, 2, 3], "g": list("aabbab"), "x": [1, 1, 2, 1, 3, None]})
    assert frame.n_unique("x", max_rows=9).release(epsilon=CERTAIN).value == 3
    grouped = frame.group_by("g", keys=["a", "b", "c"], max_groups=2, max_rows_per_group=3)
    assert grouped.n_unique("x").release(epsilon=CERTAIN).table["x"].to_list() == [2, 2, 0]
    few = frame.n_unique("x", max_rows=1)
    assert few.sensitivity["x"].l1 == 1
    assert few.release(epsilon=CERTAIN).value <= 3


def test_candidates_are_public():
    from dpframe.plan import Bounds

    assert Candidates.between(Bounds(0, 10), whole=True) == Candidates(
        0.0, 10.0, Fraction(1), 11, True
    )
    assert Candidates.leaves(Bounds(0, 10), whole=False).count == 1024
    assert Candidates.between(Bounds(5, 5), whole=False).count == 1
    fine = Candidates.between(Bounds(0.25, 10), whole=False)
    assert (fine.step, fine.count) == (Fraction(1, 200_000), 1_950_001)
    assert fine.points(np.array([0, 1, 150_000, 1_950_000])).tolist() == [0.25, 0.250005, 1.0, 10.0]


@pytest.mark.parametrize("q", [-0.1, 1.1, "half", True, None, [0.5, 0.5], []])
def test_a_rank_that_is_none_is_refused(frame, q):
    with pytest.raises(errors.InvalidArgument):
        frame.quantile("x", q, (0, 1), max_rows=1)


def test_thresholded_groups_have_medians_too(frame):
    out = (
        frame.group_by("g", max_groups=2, max_rows=5)
        .agg(m=dp.median("x", (0, 100)))
        .release(epsilon=50, delta=1e-6)
    )
    assert out.table["g"].to_list() == ["a", "b"]
    assert out.table["m"].to_list() == pytest.approx([33, 33], abs=8)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("neighbors", "q", "keys"),
    in_turn(["add-remove", "replace"], [0.0, 0.25, 0.5, 1.0], [None, [0], [0, 1]]),
)
def test_a_unit_moves_scores_by_no_more_than_it_pays_for(neighbors, q, keys):
    """Over all tables of two units with one row each:
    2 · rate · (change of a group's scores), summed, is at most ε.
    """
    worst = 0.0
    places = [(g, x) for g in (0, 1) for x in range(4)]

    def scores(rows):
        schema = {"id": pl.Int64, "g": pl.Int64, "x": pl.Int64}
        table = pl.DataFrame([(i, *row) for i, row in enumerate(rows)], schema=schema, orient="row")
        frame = dp.protect(table, unit="id", neighbors=neighbors)
        if keys is not None:
            query = frame.group_by("g", keys=keys, max_rows=1).quantile("x", q, (0, 3))
        else:
            query = frame.quantile("x", q, (0, 3), max_rows=1)
        (drawn,) = noise_plan(question_of(query), Price(Fraction(1), Fraction(0))).noises
        rate = 1 / (Fraction(drawn.scale) * rank_terms(drawn.allotment.total.rank)[1])
        (counts,) = engine.totals(question_of(query), 1).values
        return rank_scores(drawn.allotment.total, np.asarray(counts), rate), rate

    found = {
        rows: scores(rows) for size in (1, 2) for rows in itertools.product(places, repeat=size)
    }
    for rows, (mine, rate) in found.items():
        if neighbors == "replace":
            others = (
                [(rows[0], other) for other in places]
                if len(rows) == 2
                else [(other,) for other in places]
            )
        else:
            others = [rows[:1]]
        for other in others:
            moved = np.abs(mine - found[other][0]).max(axis=1).sum()
            worst = max(worst, float(2 * rate * int(moved)))
    assert worst <= 1 + 1e-9
    assert worst >= 0.49  # and it is not paid for twice over
