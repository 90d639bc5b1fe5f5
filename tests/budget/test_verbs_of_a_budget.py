"""What a budget's methods are said to return is what they return."""

from typing import get_type_hints

import polars as pl

import dpframe as dp
from dpframe.budget.verbs import Allotted, Forecasts, PeriodNumbers, PeriodTotals, Verbs


def test_methods_of_a_budget_return_what_they_say():
    budget = dp.Budget(epsilon=5)
    frame = dp.protect(pl.DataFrame({"id": [1, 2]}), unit="id", budget=budget, max_rows=1)
    series = budget.series("daily", every="1d", epsilon=1, unit_periods=1)
    returned = {"allocate": budget.allocate(nights=2, epsilon=1), "forecast": budget.forecast(), "series": series}
    for name, value in returned.items():
        hint = get_type_hints(getattr(Verbs, name))["return"]
        assert isinstance(value, {"allocate": Allotted, "forecast": Forecasts, "series": PeriodTotals}[name])
        assert hint in (Allotted, Forecasts, PeriodTotals)
    assert isinstance(series.add(frame.count(), period="2026-01-01"), PeriodNumbers)
    assert isinstance(series.total(), PeriodNumbers)
    assert isinstance(budget.allocate(nights=2, epsilon=1).forecast(), Forecasts)
