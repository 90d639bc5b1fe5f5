"""Series, as budgets and their parts pay for them: the declaration.
The body knows queries, and stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import polars as pl

from dpframe.budget.losses import Loss
from dpframe.usage import Hints, declared


@runtime_checkable
class PeriodNumbers(Protocol):
    """Numbers of a series, with their errors."""

    cost: Loss

    @property
    def value(self) -> Any:
        """The number, where there is one."""
        ...

    @property
    def table(self) -> Any:
        """The table, of the kind that was protected."""
        ...

    def to_polars(self) -> pl.DataFrame:
        """The table as a Polars DataFrame."""
        ...


@runtime_checkable
class PeriodTotals(Protocol):
    """A series: totals of consecutive periods, with running totals and windows."""

    def add(self, query: Any, period: object, *, on_pending: str = "refuse") -> PeriodNumbers:
        """Measure a period."""
        ...

    def total(self, alpha: float = 0.05) -> PeriodNumbers:
        """The running total."""
        ...

    def window(self, length: str, alpha: float = 0.05) -> PeriodNumbers:
        """The total of the last periods."""
        ...

    def table(self, window: str | Sequence[str] = (), alpha: float = 0.05) -> PeriodNumbers:
        """A row for each period."""
        ...

    def reads(self, period: object) -> list[str]:
        """The periods whose rows are read if a period is added now."""
        ...

    def explain(self, query: Any = None, period: object = None) -> str:
        """The guarantee over the whole horizon."""
        ...


class PaysForSeries(Hints):
    """A budget or an allowance, as it opens series and pays for them."""

    @declared
    def series(
        self,
        name: str,
        every: str | None = None,
        horizon: int | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        unit_periods: int | None = None,
        enforce: bool = False,
        start: Any = None,
        on: str | None = None,
        noise: str = "auto",
    ) -> PeriodTotals:
        """Open a series: totals of consecutive periods, with running totals and windows.
        A known name reopens it.

        Input:  name; every: the length of a period, "1d", "12h", "1w", "1mo" (of a calendar);
                horizon: the number of periods, None for no end; epsilon and delta, or rho: the loss
                of all periods together, charged with the first period; unit_periods: the largest
                number of periods in which one unit is counted, a declaration of yours; enforce:
                count each unit in the first `unit_periods` periods in which it has rows and in no
                other, so that nothing rests on a declaration about units; start: when the first
                period begins, by default the first period that is added; on: the column of the
                table with the time of a row; noise: "auto", "laplace" or "gaussian". To reopen a
                series, the name is enough. A part of a budget pays for the series that was opened
                from it, and for a period of it that is measured again, whoever reopens the series
        Output: a series: `.add(query, period=...)`, `.total()`, `.window("7d")`, `.table()`,
                `.explain()`
        Bound:  all that is ever published of the series has this loss together, for one unit that
                is counted in at most `unit_periods` periods; with `enforce`, for every unit. The
                question of each later period is held to the noise that the first one bought: one
                unit moves no total further
        Errors: InvalidArgument, InvalidPrice, DeltaRequired; nothing is spent here
        """
        raise NotImplementedError
