"""What a budget's methods are said to return is what they return."""

import polars as pl

import dpframe as dp
from dpframe.budget.budget import PeriodNumbers, PeriodTotals


def test_a_series_of_a_budget_has_the_methods_that_are_said():
    budget = dp.Budget(epsilon=5)
    frame = dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=budget, max_rows=1)
    series = budget.series("daily", every="1d", epsilon=1, unit_periods=1)
    assert isinstance(series, PeriodTotals)
    assert isinstance(series.add(frame.count(), period="2026-01-01"), PeriodNumbers)
    assert isinstance(series.total(), PeriodNumbers)
