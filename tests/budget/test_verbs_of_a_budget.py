"""What a budget's methods are said to return is what they return, and what a part
of it lacks says what to type.
"""

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget import Allowance
from dpframe.budget.running_totals import PeriodNumbers, PeriodTotals


@pytest.mark.parametrize(
    "account", [dp.Budget(epsilon=5), dp.Budget(epsilon=5).allocate(name="bo", epsilon=2)]
)
def test_a_series_of_a_budget_has_the_methods_that_are_said(account):
    frame = dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=account, max_rows=1)
    series = account.series("daily", every="1d", epsilon=1, unit_periods=1)
    assert isinstance(series, PeriodTotals)
    assert isinstance(series.add(frame.count(), period="2026-01-01"), PeriodNumbers)
    assert isinstance(series.total(), PeriodNumbers)


ABSENT = [
    name
    for name in dir(dp.Budget(epsilon=1))
    if not name.startswith("_") and not hasattr(Allowance, name)
]


@pytest.mark.parametrize("name", ABSENT)
def test_what_a_part_cannot_be_asked_is_asked_of_the_budget(name):
    with pytest.raises(dp.errors.UnknownAttribute, match=rf"of the whole budget: budget\.{name}"):
        getattr(dp.Budget(epsilon=1).allocate(name="bo", epsilon=0.5), name)
