"""One row per unit: compared with Python, for several orders of
rows, and with neighbouring tables.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.stages import lower
from dpframe.errors import (
    DpFrameError,
    EngineError,
    InvalidArgument,
    UnsupportedOperation,
    WrongType,
)
from inside import question_of, step_of
from strategies import (
    answer,
    as_frame,
    bring,
    check_claims,
    random_plan,
    random_question,
    random_rows,
    rows_of_unit,
)

HARD = [
    0.0,
    -0.0,
    0.1,
    -0.1,
    1e-20,
    1e16,
    -1e16,
    1e9 + 0.25,
    3.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e300,
    None,
]


def table_of(frame: dp.PrivateFrame) -> pl.DataFrame:
    """The rows of a protected frame that the test made, under the names that its user sees."""
    table = step_of(frame).table
    ids = {column.id: name for name, column in table.columns.items()}
    made = lower(step_of(frame), set(ids)).to_native().collect()
    for name, column in table.columns.items():  # what the plan says of every value is true
        values, known = made[column.id], column.domain
        assert known.nullable or values.null_count() == 0, name
        if known.bounds is not None and len(values.drop_nulls()):
            least, most = values.to_physical().min(), values.to_physical().max()
            assert known.bounds.lower <= least <= most <= known.bounds.upper, name
    return made.select(pl.col(i).alias(n) for i, n in ids.items())


def _clean(values):
    return [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]


def _exact(values):
    return sum((Fraction(min(max(v, -(2.0**100)), 2.0**100)) for v in values), Fraction(0))


def _extreme(rows, by, last):
    """The smallest value among the first or last rows by a column;
    None if all of these are missing.
    """
    ordered = [row for row in rows if row[by] is not None]
    if not ordered:
        return None
    end = (max if last else min)(row[by] for row in ordered)
    return min(_clean(row["x"] for row in ordered if row[by] == end), default=None)


def _reference(rows):
    """Features of each unit, in exact arithmetic until the last step."""
    made = {}
    for unit in sorted({row["u"] for row in rows if row["u"] is not None}):
        mine = [row for row in rows if row["u"] == unit]
        x, i = _clean(row["x"] for row in mine), _clean(row["i"] for row in mine)
        whole = sum(i)
        made[unit] = {
            "n": len(mine),
            "nx": len(x),
            "distinct": len(set(x)),
            "sum": float(_exact(x)),
            "near": float(sum((Fraction(min(max(v, -3.0), 10.5)) for v in x), Fraction(0))),
            "whole": whole if abs(whole) < 9.2e18 else math.copysign(1, whole),
            "mean": float(_exact(x) / len(x)) if x else None,
            "min": min(x, default=None),
            "max": max(x, default=None),
            "first": _extreme(mine, "t", last=False),
            "last": _extreme(mine, "t", last=True),
            "ever": max((int(row["b"]) for row in mine if row["b"] is not None), default=None),
            "always": min((int(row["b"]) for row in mine if row["b"] is not None), default=None),
        }
    return made


def _drawn(rng):
    return [
        {
            "u": rng.choice([1, 2, 3, None]),
            "x": rng.choice([*HARD, rng.gauss(0, 1), rng.gauss(0, 1e6)]),
            "i": rng.choice(
                [None, rng.randint(-5, 5), rng.randint(-(2**63), 2**63 - 1), 2**62, -(2**62)]
            ),
            "t": rng.choice([None, 1, 2, 2, 3]),
            "b": rng.choice([None, True, False]),
        }
        for _ in range(rng.randint(1, 30))
    ]


FEATURES = {
    "n": dp.count(),
    "nx": dp.count("x"),
    "distinct": dp.n_unique("x"),
    "sum": dp.sum("x"),
    "near": dp.sum("x", bounds=(-3, 10.5)),
    "whole": dp.sum("i"),
    "mean": dp.mean("x"),
    "min": dp.min("x"),
    "max": dp.max("x"),
    "first": dp.first("x", by="t"),
    "last": dp.last("x", by="t"),
    "ever": dp.max("b"),
    "always": dp.min("b"),
}
TYPES = {"u": pl.Int64, "x": pl.Float64, "i": pl.Int64, "t": pl.Int64, "b": pl.Boolean}


@pytest.mark.parametrize("seed", range(15))
def test_features_are_those_of_python(seed):
    rng = random.Random(seed)
    rows = _drawn(rng)
    made = table_of(dp.protect(pl.DataFrame(rows, TYPES), unit="u").per_unit(**FEATURES))
    expected = _reference(rows)
    assert made.height == len(expected)
    for row in made.rows(named=True):
        for name, want in expected[row["u"]].items():
            got = row[name]
            if name in ("sum", "near", "mean"):
                assert (got is None) == (want is None), name
                assert got is None or got == pytest.approx(
                    want, rel=1e-15, abs=1e-26 if name != "near" else 1e-15
                ), name
            elif name == "whole" and isinstance(want, float):
                assert abs(got) > 9.19e18, name
                assert (got > 0) == (want > 0), name
            else:
                assert got == want, name


@pytest.mark.one_in(2)
def test_the_order_of_rows_never_matters_to_the_last_bit(kind):
    rng = random.Random(kind)
    for _ in range(3):
        frame = pl.DataFrame([{**row, "u": row["u"] or 1} for row in _drawn(rng)], TYPES)
        made = []
        for rows in (frame, frame.reverse(), frame.sample(fraction=1, shuffle=True)):
            brought = {"pandas": lambda r: r.to_arrow().to_pandas(types_mapper=_nullable)}.get(kind)
            native = brought(rows) if brought else bring(rows, kind)
            made.append(table_of(dp.protect(native, unit="u").per_unit(**FEATURES)).sort("u"))
        for other in made[1:]:
            assert other.rows() == made[0].rows()


def _nullable(dtype):
    import pandas as pd

    return pd.ArrowDtype(dtype)


def test_a_unit_s_row_does_not_depend_on_other_units():
    """The table is so large that the engine splits it.
    A unit's total must not depend on other units.
    """
    rng = random.Random(3)
    mine = [(0, rng.gauss(0, 1) * 10.0 ** rng.randint(-12, 12)) for _ in range(5000)]
    others = [(1 + rng.randrange(5000), rng.gauss(0, 1)) for _ in range(200_000)]
    totals = set()
    for rows in (mine, mine + others, others[:100_000] + mine):
        frame = pl.DataFrame(rows, {"u": pl.Int64, "x": pl.Float64}, orient="row")
        for table in (frame, frame.lazy()):
            made = table_of(dp.protect(table, unit="u").per_unit(s=dp.sum("x"), m=dp.mean("x")))
            totals.add(made.filter(pl.col("u") == 0).select("s", "m").row(0))
    assert len(totals) == 1


# Neighbours


def _per_unit(frame):
    """Features under the names that random questions use."""
    offered = {
        "a": dp.sum("a"),
        "x": dp.sum("x"),
        "city": dp.first("city", by="x"),
        "level": dp.last("level", by="a"),
        "yes": dp.first("yes", by="a"),
        "day": dp.max("day"),
    }
    return frame.per_unit(
        **{name: made for name, made in offered.items() if _possible(frame, name, made)},
        n=dp.count(),
    )


def _possible(frame, name, made):
    try:
        frame.per_unit(**{name: made})
    except DpFrameError:
        return False
    return True


def _asked(frame, plan, question, **whose):
    try:
        return question(_per_unit(plan(dp.protect(frame, **whose))))
    except DpFrameError:
        return None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_unit_moves_totals_of_features_by_no_more_than_claimed(kind, relation):
    rng, held, drawn = random.Random(f"{kind} {relation}"), 0, 0
    while held < 6:
        drawn += 1
        assert drawn < 150
        rows, plan, question = (
            random_rows(rng, most=4),
            random_plan(rng),
            random_question(rng, limited=rng.random() < 0.5),
        )
        query = _asked(bring(as_frame(rows), kind), plan, question, unit="u", neighbors=relation)
        try:
            if query is None:
                continue
            answer(query)
        except EngineError:
            continue
        other = [row for row in rows if row[0] != 2]
        if relation == "replace":
            other += rows_of_unit(rng, rng.choice([2, 77]), rng.randint(1, 9))
        rng.shuffle(other)
        neighbour = _asked(
            bring(as_frame(other), kind), plan, question, unit="u", neighbors=relation
        )
        for measured, _ in check_claims(query, neighbour, salt=rng.getrandbits(64)):
            assert measured.l0 <= 2
        held += 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("before", ["nothing", "filter", "drop_nulls", "filter after"])
def test_bounded_dp_tightens_only_while_no_unit_can_vanish(before):
    rng = random.Random(before)
    reached = {"n": 0, "s": 0}
    for _ in range(12):
        rows = random_rows(rng, units=3, most=3)
        other = [row for row in rows if row[0] != 0] + rows_of_unit(rng, 9, rng.randint(1, 3))
        queries = []
        for table in (rows, other):
            frame = dp.protect(as_frame(table), unit="u", neighbors="replace")
            frame = frame.filter(dp.col("yes")) if before == "filter" else frame
            frame = frame.drop_nulls("x") if before == "drop_nulls" else frame
            frame = frame.per_unit(
                s=dp.sum("x"), f=dp.last("x", by="a"), yes=dp.last("yes", by="a")
            )
            frame = frame.filter(dp.col("yes")) if before == "filter after" else frame
            queries.append(
                frame.agg(
                    n=dp.count(),
                    s=dp.sum("s", bounds=(3, 10)),
                    f=dp.sum("f", bounds=(3, 10)),
                    v=dp.var("s", bounds=(3, 10)),
                )
            )
        held = check_claims(*queries)
        reached["n"] += held[0][0].linf == 1
        reached["s"] += (
            held[1][0].linf == 7 * held[1][1].exact_linf / queries[0].sensitivity["s"].exact_linf
        )
    known = queries[0].sensitivity
    assert known["n"].l1 == (0 if before == "nothing" else 1)
    assert known["s"].l1 == (7 if before == "nothing" else 10)
    assert known["f"].l1 == 10  # it may be missing
    assert before == "drop_nulls" or reached["s" if before == "nothing" else "n"]


def test_totals_of_one_row_each_never_wrap():
    units = 70_000
    frame = pl.DataFrame({"u": range(units), "x": pl.Series([2**26] * units, dtype=pl.Int64)})
    units_of = dp.protect(frame, unit="u", neighbors="replace").per_unit(x=dp.sum("x"))
    query = units_of.sum("x", bounds=(2**26 - 1, 2**26))
    assert query.sensitivity["x"].l1 == 1
    assert answer(query)[0][()] * question_of(query).allotments[0].total.unit == units * 2**26


# What is known


def test_one_unit_counts_once_without_any_limit(kind):
    frame = bring(pl.DataFrame({"u": [1, 1, 1, 2, 3], "x": [1.0, 2.0, None, 5.0, 7.0]}), "polars")
    private = dp.protect(bring(frame, kind) if kind != "pandas" else frame.to_pandas(), unit="u")
    features = private.per_unit(total=dp.sum("x", unit_bounds=(0, 6)), n=dp.count())
    query = features.agg(n=dp.count(), s=dp.sum("total"), big=dp.mean("n", bounds=(1, 9)))
    assert answer(query)[0] == {(): 3}
    assert answer(query)[1][()] * question_of(query).allotments[1].total.unit == 3 + 5 + 6
    assert {name: s.l1 for name, s in query.sensitivity.items()} == {
        "n": 1,
        "s": 6,
        "big.sum": 4,
        "big.count": 1,
    }
    by = features.group_by("n", keys=[1, 2, 3]).count()
    assert answer(by)[0] == {(1,): 2, (2,): 0, (3,): 1}
    assert by.sensitivity["count"].l2 == 1


def test_features_carry_what_is_known_of_them():
    frame = dp.protect(as_frame([]), unit="u").clip("a", 0, 5).fill_null("x", 1.0).clip("x", -2, 2)
    made = frame.per_unit(
        s=dp.sum("x"),
        m=dp.mean("x"),
        lo=dp.min("a"),
        k=dp.last("level", by="x"),
        c=dp.sum("x", unit_bounds=(0, 9)),
    )
    facts = {name: column.domain for name, column in step_of(made).table.columns.items()}
    assert (facts["s"].nullable, facts["s"].bounds) == (False, None)
    assert (facts["m"].nullable, facts["m"].bounds) == (False, (-2, 2))
    assert (facts["lo"].nullable, facts["lo"].bounds) == (True, (0, 5))
    assert facts["k"].keys == ("low", "mid", "high")
    assert facts["c"].bounds == (0, 9)
    assert "at most 1 row, by per_unit" in str(made.count().explain())


def test_refusals_say_what_to_do_instead():
    frame = as_frame([])
    private = dp.protect(frame, unit="u")
    with pytest.raises(UnsupportedOperation, match=r"dp\.Rows"):
        dp.protect(frame, unit=dp.Rows(2)).per_unit(n=dp.count())
    for made in (dp.median("x"), dp.var("x"), dp.count_units(), dp.quantile("x", 0.1)):
        with pytest.raises(UnsupportedOperation, match="after per_unit"):
            private.per_unit(f=made)
    wrong = (dp.sum("city"), dp.min("city"), dp.first("x", by="yes"), dp.last("x", by="level"))
    for made in (*wrong, dp.sum("yes", bounds=(0, 1))):
        with pytest.raises(WrongType):
            private.per_unit(f=made)
    with pytest.raises(UnsupportedOperation, match="one person's"):
        private.agg(f=dp.first("x", by="a"), max_rows=1)
    for features in ({}, {"f": "x"}, {"f": dp.count(share=2)}, {"u": dp.count()}):
        with pytest.raises(InvalidArgument):
            private.per_unit(**features)
    with pytest.raises(UnsupportedOperation, match="one unit"):
        private.per_unit(n=dp.count()).group_by("u", max_groups=1)


def test_a_composite_or_hidden_unit_has_one_row_too():
    rows = random_rows(random.Random(8))
    private = dp.protect(as_frame(rows), unit=("u", "w"))
    hidden = private.drop("u", "w").per_unit(n=dp.count())
    assert hidden.columns == ["n"]
    pairs = {(row[0], row[1]) for row in rows if row[0] is not None}
    assert answer(hidden.count())[0] == {(): len(pairs)}
    assert answer(private.per_unit(n=dp.count()).per_unit(m=dp.sum("n")).count_units())[0] == {
        (): len(pairs)
    }


def _times(rng):
    """Rows (unit, time, date, duration): some times far apart, some nearly equal, some missing."""
    rows = []
    for _ in range(rng.randint(1, 40)):
        day = dt.date(rng.choice([1, 1969, 2020, 9999]), rng.choice([2, 12]), rng.randint(1, 28))
        time = dt.datetime.combine(day, dt.time(23, 59, 59, 1000 * rng.randrange(1000)))
        gap = dt.timedelta(
            milliseconds=rng.choice([rng.randint(-(10**12), 10**12), rng.randrange(3)])
        )
        rows.append((rng.randint(1, 4), *(rng.choice([None, x, x]) for x in (time, day, gap))))
    return pl.DataFrame(
        rows, {"u": pl.Int64, "t": pl.Datetime, "d": pl.Date, "l": pl.Duration}, orient="row"
    )


def _mean_ticks(values):
    ticks = [int(x) for x in values.to_physical().drop_nulls()]
    return sum(ticks) // len(ticks) if ticks else None


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("seed", range(8))
def test_means_of_times_are_exact_and_of_the_type_of_means_over_rows(seed, unit):
    drawn = _times(random.Random(seed)).with_columns(pl.col("t", "l").dt.cast_time_unit(unit))
    first, last = dt.date(1990, 1, 1), dt.date(2000, 1, 1)
    features = {name: dp.mean(name) for name in ("t", "d", "l")}
    made = table_of(
        dp.protect(drawn, unit="u").per_unit(**features, near=dp.mean("d", bounds=(first, last)))
    )
    assert made.schema == {
        "u": pl.Int64(),
        "t": pl.Datetime(unit),
        "d": pl.Datetime("us"),
        "l": pl.Duration(unit),
        "near": pl.Datetime("us"),
    }
    for row in made.with_columns(pl.exclude("u").to_physical()).rows(named=True):
        mine = drawn.filter(pl.col("u") == row["u"])
        assert row["t"] == _mean_ticks(mine["t"])
        assert row["l"] == _mean_ticks(mine["l"])
        assert row["d"] == _mean_ticks(mine["d"].cast(pl.Datetime("us")))
        assert row["near"] == _mean_ticks(mine["d"].clip(first, last).cast(pl.Datetime("us")))


@pytest.mark.one_in(2)
def test_means_of_times_are_the_same_on_every_engine(engine):
    days = [
        dt.date(2020, 1, 1),
        dt.date(2020, 1, 2),
        dt.date(2020, 1, 5),
        dt.date(1969, 1, 1),
        None,
    ]
    times = [day and dt.datetime(day.year, day.month, day.day, 7) for day in days]
    frame = pl.DataFrame({"u": [1, 1, 1, 2, 3], "d": days, "t": times})
    units = dp.protect(engine(frame), unit="u", budget=dp.Budget(epsilon=1e9)).per_unit(
        d=dp.mean("d"), t=dp.mean("t")
    )
    keys = {
        "d": [dt.datetime(2020, 1, 2, 16), dt.date(1969, 1, 1)],
        "t": [dt.datetime(2020, 1, 2, 23)],
    }
    for name, expected in (("d", [1, 1]), ("t", [1])):
        query = units.group_by(name, keys=keys[name], max_groups=1, max_rows_per_group=1).count()
        assert list(answer(query)[0].values()) == expected
