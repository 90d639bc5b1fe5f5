"""Ties and last digits: candidates, quotients, constants and decimals agree on all engines."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.plan import FEW, Bounds, Candidates
from inside import question_of
from questions import exact


def places(query):
    """The rows at each candidate of a quantile, as they are read."""
    (values,) = rooms.totals(question_of(query), 1).values
    return dict(zip(values.places.tolist(), values.numbers.tolist(), strict=True))


def asked(table, bounds):
    return dp.protect(table, unit=dp.Rows(1)).quantile("x", 0.5, bounds=bounds)


def expected(candidates, values):
    return Counter(
        candidates.nearest(value) for value in values if value is not None and not math.isnan(value)
    )


def exact_place(candidates, value):
    """The nearest candidate, in fractions, from the rounded distance;
    of two nearest ones, the greater.
    """
    if candidates.count == 1 or not candidates.step:
        return 0
    value = min(max(value, candidates.lower), candidates.upper)
    place = math.floor(
        (Fraction(value - candidates.lower) + first_to_lower(candidates)) / candidates.step
        + Fraction(1, 2)
    )
    return min(place, candidates.count - 1)


def first_to_lower(candidates):
    """How far the lower bound is above the multiple of the step that
    the first candidate stands for.
    """
    return (
        Fraction(0)
        if candidates.start is None
        else Fraction(candidates.lower) - candidates.start * candidates.step
    )


def midpoints(candidates, rng, many):
    """Values at and beside the middles between candidates."""
    values = []
    for _ in range(many):
        number = rng.randrange(max(candidates.count - 1, 1))
        first = Fraction(candidates.lower) - first_to_lower(candidates)
        middle = float(first + (number + Fraction(1, 2)) * candidates.step)
        values += [middle, math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf)]
    return values


RANGES = [
    (0, 1023),
    (0, 1000),
    (-1, 2),
    (0.1, 0.7),
    (-(1e300**0.5), 3),
    (1e15, 1e15 + 512),
    (-(2**60), 2**60 + 12345),
    (1e17, 1e17 + 4096),
    (0, 1e-300),
    (-3e-308, 1e-308),
    (0, 5e-324),
    (0, 3e-321),
    (-1e270, 1e270),
    (1e-300, 1e270),
    (-7e-5, -6e-5),
    (5, 5),
]


@pytest.mark.one_in(3)
@pytest.mark.spark
@pytest.mark.parametrize("bounds", RANGES[:10:3])
def test_the_nearest_candidate_is_one_everywhere(engine, bounds):
    _hold(engine, bounds)


@pytest.mark.long
@pytest.mark.parametrize("bounds", RANGES)
def test_the_nearest_candidate_is_one_everywhere_in_every_range(engine, bounds):
    _hold(engine, bounds)


def _hold(engine, bounds):
    rng = random.Random(repr(bounds))
    candidates = Candidates.between(Bounds(*bounds), whole=False)
    width = float(bounds[1]) - float(bounds[0])
    values = midpoints(candidates, rng, 100) + [
        bounds[0] + rng.random() * width for _ in range(100)
    ]
    values += [
        math.inf,
        -math.inf,
        math.nan,
        None,
        -0.0,
        0.0,
        5e-324,
        -5e-324,
        1.7e308,
        -1.7e308,
        *map(float, bounds),
    ]
    table = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    assert places(asked(engine(table), bounds)) == expected(candidates, values)


@pytest.mark.one_in(3)
@pytest.mark.spark
def test_the_nearest_time_whole_number_and_decimal(engine):
    rng = random.Random(7)
    whole = [rng.randrange(-(2**63), 2**63) for _ in range(200)] + [-(2**63), 2**63 - 1, None]
    far = (-(2**62) - 1, 2**62 + 3)
    table = pl.DataFrame({"x": pl.Series(whole, dtype=pl.Int64)})
    held = [None if x is None else float(x) for x in whole]
    assert places(asked(engine(table), far)) == expected(
        Candidates.between(Bounds(*far), whole=True), held
    )
    few = pl.DataFrame({"x": pl.Series([*range(-5, 30), None], dtype=pl.Int16)})
    assert places(asked(engine(few), (0, 20))) == dict(enumerate([6, *[1] * 19, 10]))

    start, end = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 2, 46)
    times = [start + (end - start) * rng.random() for _ in range(300)] + [
        start - (end - start),
        None,
    ]
    table = pl.DataFrame({"x": pl.Series(times, dtype=pl.Datetime("us"))})
    ticks = [
        (t - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        for t in (start, end, *times[:-1])
    ]
    candidates = Candidates.between(Bounds(*ticks[:2]), whole=True)
    assert places(asked(engine(table), (start, end))) == expected(
        candidates, [float(t) for t in ticks[2:]]
    )

    digits = 15 if engine.name == "datafusion" else 18  # which refuses more digits
    wide = [
        Decimal(rng.randrange(-(10**digits), 10**digits)).scaleb(3 - digits) for _ in range(300)
    ]
    table = pl.DataFrame({"x": pl.Series([*wide, None], dtype=pl.Decimal(digits, digits - 3))})
    candidates = Candidates.between(Bounds(-1, 1), whole=False)
    assert places(asked(engine(table), (-1, 1))) == expected(candidates, [float(x) for x in wide])


@pytest.mark.parametrize("bounds", RANGES)
def test_the_nearest_candidate_is_that_of_fractions(bounds):
    rng = random.Random(3)
    made = itertools.product((Candidates.between, Candidates.leaves), (False, True))
    for candidates in (make(Bounds(*bounds), whole=whole) for make, whole in made):
        close = Fraction(1, 2**38 if candidates.count <= FEW else 2**14)
        for value in [*midpoints(candidates, rng, 300), *map(float, bounds)]:
            near = candidates.nearest(value)
            # nearer than this part of a step to the middle of two
            if near != exact_place(candidates, value):
                inside = (
                    Fraction(value - candidates.lower) + first_to_lower(candidates)
                ) / candidates.step
                assert abs(abs(inside - near) - Fraction(1, 2)) < close


@pytest.mark.parametrize("bounds", RANGES)
def test_candidates_reach_from_bound_to_bound_and_numbers_stay_in_64_bits(bounds):
    for whole, second in ((False, None), (True, None), (True, 0), (True, 10**6)):
        if second is not None and bounds[1] - bounds[0] > 2**64:
            continue  # no time
        candidates = Candidates.between(Bounds(*bounds), whole=whole, second=second)
        last, (times, add, parts) = candidates.count - 1, candidates.quotient
        ends = np.array(
            [math.ceil(bounds[0]), math.floor(bounds[1])] if whole else bounds, np.float64
        )
        assert candidates.start is None or (candidates.points(np.array([0, last])) == ends).all()
        assert times * 2 * candidates.extent + 2 * add + parts < 2**64
        assert candidates.count <= 2**22
        assert all(more % few == 0 for few, more in itertools.pairwise(candidates.rounder))


@pytest.mark.parametrize("bounds", [(0, 100), (-3, 20_000), (0.3, 7.1), (-1e-7, 5e-7)])
def test_rounder_numbers_stand_in_the_list_more_often(bounds):
    """Beside the definition, for a part of the list that holds numbers of all kinds."""
    candidates = Candidates.between(Bounds(*bounds), whole=False)
    middle = (
        candidates.count // 2 // candidates.rounder[-1] * candidates.rounder[-1]
        - candidates.start
        - 50
    )
    middle %= candidates.count - 200
    listed = []
    for number in range(middle, middle + 100):
        listed += [
            number
            for times in candidates.rounder
            if (candidates.start + number) % times == 0
            for _ in range(4 if times == 1 else times)
        ]
    first, after = np.array([middle]), np.array([middle + 100])
    assert candidates.listed(first, after).tolist() == [len(listed)]
    many = np.arange(len(listed))
    picked = candidates.picked(np.full_like(many, middle), np.full_like(many, middle + 100), many)
    assert sorted(picked.tolist()) == sorted(listed)
    assert candidates.copies == candidates.listed(np.array([0]), np.array([candidates.count]))[0]


def test_whole_numbers_are_their_own_candidates():
    for count in (2, 3, 1000, 1024):
        candidates = Candidates.between(Bounds(-7, count - 8), whole=True)
        assert [candidates.nearest(x - 7) for x in range(count)] == list(range(count))
        assert [candidates.nearest(x - 7.5) for x in range(count)] == list(range(count))


def quotients(table, divisor):
    """How many rows have the quotient that they are listed with."""
    made = dp.protect(table, unit=dp.Rows(1)).with_columns(same=divisor == dp.col("q"))
    return exact(made.filter(dp.col("same")).count())


@pytest.mark.one_in(4)
@pytest.mark.spark
def test_a_quotient_is_rounded_once(engine):
    """By one number or by a column, and of any number of rows.

    Polars multiplies a long column by the reciprocal of a number: what a row counts as would depend
    on other rows.
    """
    rng = np.random.default_rng(4)
    for rows in (1, 2, 3, 5, 3000) if engine.name == "polars" else (1, 3000):
        for by in (3.0, -7.3e-5):
            tops = rng.uniform(-1000, 1000, rows)
            table = pl.DataFrame({"x": tops, "q": tops / by, "by": [by] * rows})
            held = engine(table)
            assert quotients(held, dp.col("x") / by) == quotients(held, dp.col("x") / dp.col("by"))
            assert quotients(held, dp.col("x") / by) == exact(
                dp.protect(held, unit=dp.Rows(1)).count()
            )


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_constants_have_all_their_digits(engine):
    """A comparison with a number of many digits is true of that number only."""
    rng, x = random.Random(6), dp.col("x")
    values = [math.ldexp(rng.random(), rng.randint(-40, 40)) for _ in range(20)]
    table = pl.DataFrame(
        {"x": [math.nextafter(v, end) for v in values for end in (-math.inf, v, math.inf)]}
    )
    same = {f"s{i}": x == value for i, value in enumerate(values)} | {"listed": x.is_in(values)}
    made = dp.protect(engine(table), unit=dp.Rows(1)).with_columns(**same)
    counts = exact(made.agg(**{name: dp.sum(name) for name in same}))
    assert [list(count.values()) for count in counts.values()] == [[1]] * 20 + [[20]]


@pytest.mark.one_in(3)
@pytest.mark.spark
@pytest.mark.parametrize(("digits", "scale"), [(18, 6), (18, 18), (38, 10), (38, 2)])
def test_decimals_are_rounded_once(engine, digits, scale):
    if engine.name == "datafusion":  # which refuses more digits
        digits, scale = 15, min(scale, 15)
    rng = random.Random(8)
    whole = [
        rng.randrange(-(10 ** rng.randint(1, digits)) + 1, 10 ** rng.randint(1, digits))
        for _ in range(500)
    ]
    values = [Decimal(f"{x}e-{scale}") for x in whole]
    table = pl.DataFrame(
        {"x": pl.Series(values, dtype=pl.Decimal(digits, scale)), "q": [float(x) for x in values]}
    )
    frame = dp.protect(engine(table), unit=dp.Rows(1))
    assert exact(frame.filter(dp.col("x") == dp.col("q")).count()) == exact(frame.count())


@pytest.mark.spark
@pytest.mark.one_in(8)
@pytest.mark.parametrize("first", [0.0, -0.0])
@pytest.mark.parametrize("question", ["count", "two keys", "top_k", "lists"])
def test_the_sign_of_zero_in_one_cell_is_not_released(engine, first, question):
    """Polars left -0.0 as it was, so that the key of a group was released as it
    stood in the group's first row.
    """
    rows = pl.DataFrame({"u": range(300), "x": [first] + [0.0] * 298 + [-0.0], "g": ["a"] * 300})
    frame = dp.protect(engine(rows), unit="u", budget=dp.Budget(epsilon=1000, delta=0.1))
    limits = {"max_groups": 1, "max_rows_per_group": 1}
    asked = {
        "count": lambda: frame.group_by("x", **limits).count(),
        "two keys": lambda: frame.group_by("g", "x", **limits).count(),
        "top_k": lambda: frame.top_k("x", 3, max_rows=1),
        "lists": lambda: frame.group_by("x", keys=[-0.0, 1.0], **limits).count(),
    }
    keys = asked[question]().release(epsilon=100, delta=1e-3).to_polars()["x"].to_list()
    assert [math.copysign(1, key) for key in keys if key == 0] == [1.0]
