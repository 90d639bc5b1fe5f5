"""Bounds of which squares are no floats: refused at the verb where noises
are added up, and released below.
"""

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidBounds

pytestmark = pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
ROWS = pl.DataFrame(
    {"u": range(40), "g": ["a", "b"] * 20, "h": ["x", "x", "y", "y"] * 10, "v": [0.5, 1.0] * 20}
)
KEYS = {"g": ["a", "b"], "h": ["x", "y"]}
ASKED = {
    "ratio": lambda f, ends: f.with_columns(w=dp.col("v")).agg(
        r=dp.ratio(dp.sum("v", ends), dp.sum("w", (1, 2)))
    ),
    "of two sums": lambda f, ends: f.with_columns(w=dp.col("v")).agg(
        r=dp.ratio(dp.sum("w", (1, 2)), dp.sum("v", ends))
    ),
    "values": lambda f, ends: f.with_columns(w=dp.col("v")).mean(
        "v", ends, weights="w", weight_bounds=(0, 1)
    ),
    "weights": lambda f, ends: f.with_columns(w=dp.col("v")).mean(
        "w", (0, 1), weights="v", weight_bounds=ends
    ),
    "margins": lambda f, ends: f.crosstab(
        "g", "h", "v", "sum", keys=KEYS, bounds=ends, margins=True
    ),
    "measured": lambda f, ends: f.crosstab(
        "g", "h", "v", "sum", keys=KEYS, bounds=ends, margins="measured"
    ),
    "hierarchy": lambda f, ends: f.hierarchy(
        ["g", "h"], [("a", "x"), ("b", "y")], "v", "sum", bounds=ends
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_bounds_of_which_squares_are_no_floats_are_refused_before_the_charge(asked):
    budget = dp.Budget(epsilon=100)
    frame = dp.protect(ROWS, unit="u", budget=budget, max_rows=1)
    for ends in ((0, 1e160), (0, 1e-160)):
        with pytest.raises(InvalidBounds, match="beyond floats"):
            ASKED[asked](frame, ends)
    assert budget.spent.epsilon == 0
    for ends in ((0, 1e120), (0, 1e-120)):
        out = ASKED[asked](frame, ends).release(epsilon=1)
        assert repr(out)
        assert out._repr_html_()
    assert budget.failures == (0, 0)
