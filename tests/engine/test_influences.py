"""Influences under public weights are the same integers on every
engine, and those of plain Python.
"""

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as room
from dpframe.api import Query
from dpframe.plan import Covers
from inside import question_of

BOUNDS = {"x": (-4, 4), "y": (0, 9)}


def _rows():
    rng = np.random.default_rng(3)
    size = 60
    return pl.DataFrame(
        {
            "u": rng.integers(0, 20, size),
            "g": rng.choice(["a", "b", "c", None], size).tolist(),
            "x": rng.normal(size=size) * 3,
            "y": rng.integers(-2, 12, size),
        },
        schema_overrides={"g": pl.String},
    )


ROWS = _rows()


def _totals(table, keys):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1.0))
    aggregates = {"c": dp.cov("x", "y", bounds=BOUNDS), "r": dp.corr("x", "y", bounds=BOUNDS)}
    aggregates |= {
        "m": dp.mean("x", bounds=(-4, 4)),
        "s": dp.std("x", bounds=(-4, 4)),
        "n": dp.count_units(),
    }
    limits = {"max_rows": 4}
    groups = frame if keys is None else frame.group_by("g", keys=keys, max_groups=4, **limits)
    query = groups.agg(**aggregates, **(limits if keys is None else {}))
    question = question_of(Query(question_of(query).covering(Covers.POPULATION), query._budget))
    room.validate(question)
    raw, rng = room.totals(question, 7), np.random.default_rng(1)
    places = {i: p.total for i, p in enumerate(question.read) if p.total.of_influence}
    size = 2**13  # of weights; a number of units has small partials
    weights = {
        i: rng.integers(-size, size, (len(keys or [0]), len(total.moment.parts)))
        for i, total in places.items()
    }
    again = room.totals(question, 7, None, (raw.held, weights))
    return question, raw, weights, {i: again.values[i].tolist() for i in weights}


@pytest.mark.spark
@pytest.mark.one_in(4)
@pytest.mark.parametrize("keys", [None, ["a", "b"], ["b", None, "zz"]])
def test_every_engine_has_the_same_influences(engine, keys):
    *_, expected = _totals(ROWS, keys)
    # products with the group without rows, of three statistics
    empty = 3 * (keys is not None and "zz" in keys)
    assert sum(not any(values) for values in expected.values()) == empty
    *_, numbers = _totals(engine(ROWS), keys)
    assert numbers == expected


def test_influences_are_those_of_plain_python():
    """A unit with one row has the partials of that row:
    its influence is their weighted sum, clipped and squared.

    Less half of the largest square for each row, and clipped to that.
    """
    rows = ROWS.unique("u", keep="first", maintain_order=True).drop_nulls()[:6]
    question, _, weights, numbers = _totals(rows, None)
    for i, values in numbers.items():
        total = question.read[i].total
        by_key = {p.total.key: n for n, p in enumerate(question.read)}
        expected = 0
        for row in rows.iter_slices(1):
            _, alone, _, _ = _totals(row, None)
            parts = [int(alone.values[by_key[key]][0]) for key in total.moment.parts]
            lifted = [
                part * 2**lift if lift >= 0 else part // 2**-lift
                for part, lift in zip(parts, total.moment.lifts, strict=True)
            ]
            value = (
                sum(int(w) * part for w, part in zip(weights[i][0], lifted, strict=True)) // 2**24
            )
            square, moment = (
                min(max(value, -total.moment.most), total.moment.most) ** 2,
                total.moment,
            )
            if moment.counts is not None:
                count = int(alone.values[by_key[moment.counts]][0]) // 2**moment.rows_shift
                square = min(
                    max(square - count * moment.slope, -count * moment.cap), count * moment.cap
                )
            expected += square
        assert values[0] == expected


@pytest.mark.one_in(12)
@pytest.mark.parametrize("keys", [None, ["a", "b"], "found"])
@pytest.mark.parametrize("limited", ["v", "n"])
def test_influences_beside_columns_with_limits_of_their_own(engine, keys, limited):
    """The variance has influences and the count has none. One of the two has limits of its own."""
    own = {name: {"max_rows": 2} if name == limited else {} for name in ("v", "n")}
    columns = {"v": dp.var("x", bounds=(-4, 4), **own["v"]), "n": dp.count(**own["n"])}
    frame = dp.protect(engine(ROWS), unit="u", budget=dp.Budget(epsilon=20.0, delta=0.1))
    options = {} if keys in (None, "found") else {"keys": keys}
    groups = frame if keys is None else frame.group_by("g", max_groups=4, max_rows=4, **options)
    limits = {"max_rows": 4} if keys is None else {}
    query = groups.agg(**columns, **limits)
    query.release(epsilon=18, delta=1e-2, covers="population")
    alone = (
        frame
        if keys is None
        else frame.group_by("g", **{"max_groups": 4, "max_rows": 4, **own["v"], **options})
    )
    alone = alone.agg(
        v=dp.var("x", bounds=(-4, 4)), **{**limits, **(own["v"] if keys is None else {})}
    )
    influences = _influences(query)
    assert any(map(any, influences))
    assert influences == _influences(alone)


def _influences(query):
    """The totals of influences under fixed weights."""
    question = question_of(query).covering(Covers.POPULATION)
    raw = room.totals(question, 7)
    totals = {i: paid.total for i, paid in enumerate(question.read) if paid.total.of_influence}
    weights = {
        i: np.full((raw.held.height or 1, len(t.moment.parts)), 2**12) for i, t in totals.items()
    }
    again = room.totals(question, 7, None, (raw.held, weights))
    return [
        again.values[i].tolist()
        for i in weights
        if any(n.startswith("v.") for n in question.read[i].names)
    ]
