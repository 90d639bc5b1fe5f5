"""What the methods of a budget return whose classes stand in rooms above: for type checkers and editors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import polars as pl

from dpframe.budget.losses import Loss


@runtime_checkable
class Forecasts(Protocol):
    """How long a budget and its allowances last: see `dpframe.budget.Forecast`."""

    table: pl.DataFrame
    words: tuple[str, ...]
    lasts: dict[str, dt.date | None]

    def plot(self) -> Any:
        """A chart of the spent and the expected loss."""
        ...


@runtime_checkable
class Allotted(Protocol):
    """A part of a budget, divided over periods, which pays for releases: see `dpframe.budget.Allowance`."""

    @property
    def limit(self) -> Loss:
        """The largest loss of all releases of all periods together."""
        ...

    @property
    def share(self) -> Loss:
        """The part of one period."""
        ...

    @property
    def spent(self) -> Loss:
        """The loss of all releases so far."""
        ...

    @property
    def remaining(self) -> Loss:
        """What may still be spent now."""
        ...

    @property
    def tonight(self) -> Loss:
        """The unspent part of this period."""
        ...

    def for_spender(self, spender: str) -> Self:
        """The same, where one spender spends all that is charged."""
        ...

    def forecast(self) -> Forecasts:
        """How long it lasts."""
        ...


@runtime_checkable
class Numbers(Protocol):
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
class Totals(Protocol):
    """A series: totals of consecutive periods, with running totals and windows."""

    def add(self, query: Any, period: object, *, on_pending: str = "refuse") -> Numbers:
        """Measure a period."""
        ...

    def total(self, alpha: float = 0.05) -> Numbers:
        """The running total."""
        ...

    def window(self, length: str, alpha: float = 0.05) -> Numbers:
        """The total of the last periods."""
        ...

    def table(self, window: str | Sequence[str] = (), alpha: float = 0.05) -> Numbers:
        """A row for each period."""
        ...

    def reads(self, period: object) -> list[str]:
        """The periods whose rows are read if a period is added now."""
        ...

    def explain(self, query: Any = None, period: object = None) -> str:
        """The guarantee over the whole horizon."""
        ...
