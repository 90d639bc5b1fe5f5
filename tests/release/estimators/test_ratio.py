"""The ratios that bounds allow, which intervals of a ratio are cut to."""

import math
import random

import polars as pl
import pytest

import dpframe as dp
from dpframe.release.estimators.ratio import _possible
from inside import question_of

BOUNDS = [(0, 100), (2, 9), (-5, 7), (-8, -2), (-4, 0)]
UNDER = [(0, 10), (1, 10), (3, 3)]
TABLE = pl.DataFrame({"u": range(40), "s": [1.5, 4.0] * 20, "t": [2.0, 0.5] * 20, "w": [1, 3] * 20})


def query(above, under, *, missing, column="t"):
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=10)).bound(max_rows=1)
    frame = frame if missing else frame.fill_null({"s": 1.5}).fill_null({column: 2})
    return frame.agg(r=dp.ratio(dp.sum("s", above), dp.sum(column, under)))


def possible(*args, **options):
    return _possible(question_of(query(*args, **options)).outputs[0])


@pytest.mark.parametrize("under", UNDER)
@pytest.mark.parametrize("above", BOUNDS)
@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("column", ["t", "w"])
def test_no_rows_within_bounds_have_another_ratio(above, under, missing, column):
    low, high = possible(above, under, missing=missing, column=column)
    rng, seen = random.Random(1), []
    for _ in range(2000):
        rows = [
            (rng.choice([*above, rng.uniform(*above)]), rng.choice([*under, sum(under) // 2]))
            for _ in range(3)
        ]
        rows = rows[: rng.randint(1, 3)]
        over = sum(s for s, _ in rows if not (missing and rng.random() < 0.3))
        whole = sum(t for _, t in rows if not (missing and rng.random() < 0.3))
        if whole > 0:
            seen.append(over / whole)
    assert low <= min(seen)
    assert max(seen) <= high
    if not missing:  # and the ends are reached, or there is none
        assert low == -math.inf or min(seen) == pytest.approx(low, rel=1e-3, abs=1e-3)
        assert high == math.inf or max(seen) == pytest.approx(high, rel=1e-3, abs=1e-3)


def test_missing_values_leave_only_the_sign():
    assert possible((2, 9), (1, 10), missing=True) == (0.0, math.inf)
    assert possible((-8, -2), (1, 10), missing=True) == (-math.inf, 0.0)
    assert possible((-5, 7), (1, 10), missing=True) == (-math.inf, math.inf)


@pytest.mark.parametrize("covers", ["noise", "population"])
def test_an_interval_without_an_end_is_cut_to_them(covers):
    out = (
        query((2, 9), (1, 10), missing=False)
        .release(epsilon=0.01, ci=0.95, covers=covers)
        .to_polars()
    )
    low, high = out.row(0)[1:3]
    assert -math.inf < min(0.2, out["r"][0]) - 1e-3 <= low
    assert high <= max(9, out["r"][0]) + 1e-3
