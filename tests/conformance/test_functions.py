"""Logarithms and exponentials on every engine, on floats of every size:
to the last digit those of Python's floats.
"""

from __future__ import annotations

import math
import random

import narwhals as nw
import pytest
from cells import Cells
from engines import ENGINES
from suite import check
from test_operations import engines

import dpframe as dp


def floats(many):
    """Floats of every size, some near 1, some near the ends of what e^x
    can be, and those that are none.
    """
    rng = random.Random(20)
    near = [1 + rng.choice((1, -1)) * 10 ** rng.uniform(-16, 0) for _ in range(many)]
    sizes = [
        rng.choice((1, -1)) * math.ldexp(rng.uniform(1, 2), rng.randint(-1074, 1023))
        for _ in range(many)
    ]
    powers = [rng.uniform(-750, 720) for _ in range(many)]
    ends = (
        5e-324,
        math.inf,
        -math.inf,
        math.nan,
        None,
        0.0,
        -0.0,
        -1.0,
        709.78,
        709.79,
        -745.13,
        -745.14,
        1.0,
    )
    return Cells("a_float64", nw.Float64(), (*near, *sizes, *powers, *ends))


# the others compute the few expressions of `test_operations` in the quick tier
QUICK = ("polars", "duckdb")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "engine",
    [
        param
        if param.id in QUICK
        else pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.long])
        for param in engines(ENGINES)
    ],
)
@pytest.mark.parametrize("function", ["log", "log10", "log1p", "exp"])
def test_a_function_of_floats_is_that_of_python(engine, function):
    check(engine, {"a_float64": floats(100)}, [getattr(dp.col("a_float64"), function)()])
