"""Most frequent values, chosen among listed values."""

from __future__ import annotations

from typing import Any

from dpframe.release.estimators.base import Estimator, Noisy
from dpframe.release.estimators.influence import NoisyColumn


class ModeEstimator(Estimator):
    """The chosen value, by its place among the listed ones."""

    is_number = False

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        total = output.total
        return noisy[total.key]

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """In rows: see `rows_fewer`."""
        return rows_fewer(output, alpha)


def rows_fewer(output: NoisyColumn, alpha: float) -> float:
    """Rows (count) that a released value may lack beside the most
    frequent value not released before it.

    Bound:  exceeded with probability at most alpha, whatever the data: see `fewer_rows`
    """
    total = output.total
    noise = output.noise(total)
    return (
        0.0 if noise.exact else noise.choice.rows_fewer(len(total.values), alpha, float(total.unit))
    )
