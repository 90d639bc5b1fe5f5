"""Numbers of numpy are numbers wherever Python's are; True and False, of either, are none."""

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError
from dpframe.plan import real

ROWS = pl.DataFrame({"id": [1, 2, 3], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "n": [1, 2, 3]})


def frame():
    return ROWS.dp(unit="id", budget=dp.Budget(epsilon=1000, delta=1e-3))


def counted():
    return frame().count(max_rows=3)


def planned(ci):
    budget = dp.Budget(epsilon=1)
    return budget.plan([ROWS.dp(unit="id", budget=budget).count(max_rows=3)], epsilon=1, ci=ci)


def grouped():
    return frame().group_by("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1).count()


TYPED = {
    "budget": (lambda x: dp.Budget(epsilon=x), 0.5),
    "epsilon": (lambda x: counted().release(epsilon=x), 0.5),
    "delta": (lambda x: counted().release(epsilon=1, delta=x), 2.0**-20),
    "max_rows": (lambda x: frame().count(max_rows=x), 3),
    "Rows": (dp.Rows, 3),
    "ci": (lambda x: counted().release(epsilon=1, ci=x), 0.75),
    "with_ci": (lambda x: counted().release(epsilon=1).with_ci(x), 0.75),
    "plan ci": (planned, 0.75),
    "alpha": (lambda x: counted().accuracy(epsilon=1, alpha=x), 0.25),
    "alpha after": (lambda x: counted().release(epsilon=1).accuracy(alpha=x), 0.25),
    "assume_rows": (
        lambda x: frame().mean("x", (0, 1), max_rows=3).accuracy(epsilon=10, assume_rows=x),
        100,
    ),
    "error": (lambda x: counted().epsilon_for(error=x), 10),
    "below": (lambda x: grouped().release(epsilon=1).suppress(below=x), 3),
    "bounds": (lambda x: frame().sum("x", bounds=(0, x), max_rows=3).release(epsilon=1), 2.5),
    "clip": (lambda x: frame().clip("x", 0, x), 2.5),
    "share": (lambda x: dp.count(share=x), 2.5),
    "q": (lambda x: dp.quantile("x", x, bounds=(0, 1)), 0.25),
    "ddof": (lambda x: dp.var("x", ddof=x), 1),
    "Auto": (dp.Auto, 0.25),
    "divisor": (lambda x: dp.col("n") % x, 2),
    "head": (lambda x: dp.col("g").str.head(x), 2),
    "trials": (lambda x: dp.audit.audit(lambda rows: rows.height, ROWS, ROWS, 1, trials=x), 8),
    "claim": (lambda x: dp.audit.audit(lambda rows: rows.height, ROWS, ROWS, x, trials=8), 0.5),
    "size": (
        lambda x: dp.audit.check_query(lambda rows: rows.count(max_rows=1), ROWS[:1], "id", size=x),
        1,
    ),
}


@pytest.mark.parametrize("place", TYPED)
# which is what this is about
@pytest.mark.filterwarnings("ignore:.*the bounds hold a number of NumPy")
def test_a_number_of_numpy_is_read_as_python_s(place):
    ask, number = TYPED[place]
    whole = isinstance(number, int)
    for kind in (np.int8, np.uint64, np.int64) if whole else (np.float16, np.float32, np.float64):
        ask(kind(number))  # each of these holds the number exactly
    for wrong in (
        True,
        np.True_,
        "2",
        np.str_("2"),
        np.array([number, number]),
        np.float32("nan"),
        np.complex64(1),
    ):
        with pytest.raises(DpFrameError):
            ask(wrong)


def test_the_value_is_the_one_that_the_scalar_holds():
    assert [real(x) for x in (np.float32(0.1), np.uint64(2**63), np.array(7))] == [
        float(np.float32(0.1)),
        2**63,
        7,
    ]
    assert [type(real(x)) for x in (np.float16(1), np.int16(1))] == [float, int]
    said = counted().release(epsilon=1, ci=np.float32(0.5)).to_polars()
    assert said.columns == ["count", "count_low", "count_high"]
