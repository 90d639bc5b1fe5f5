"""What a budget can be asked that stands on rooms above this one: each registers its function here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Verbs", "drawn", "offered"]

_OFFERED: dict[str, Callable[..., Any]] = {}
F = TypeVar("F", bound=Callable[..., Any])


def offered(verb: str) -> Callable[[F], F]:
    """Register what a verb of a budget does, where that stands on rooms above this one."""

    def register(function: F) -> F:
        _OFFERED[verb] = function
        return function

    return register


def drawn(verb: str) -> Callable[..., Any]:
    """What was registered for a verb."""
    return _OFFERED[verb]


class Verbs:
    """The verbs of a budget whose functions are registered."""

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
    ) -> Any:
        """Totals of periods that follow one another, with running totals and windows: opened, or found again.

        Input:  name; every: the length of a period, "1d", "12h", "1w"; horizon: how many periods there will be, None
                for no end; epsilon and delta, or rho: what all periods together cost, charged with the first;
                unit_periods: in how many periods one unit may be counted, a declaration; enforce: count each unit in
                the first `unit_periods` periods in which it has rows and in no other, so that nothing rests on a
                declaration; start: when the first period begins, by default that which is added first; on: the column
                of the table that says in which period a row is; noise: "auto", "laplace" or "gaussian"; of these only
                the name, to find a series again
        Output: a series: `.add(query, period=...)`, `.total()`, `.window("7d")`, `.table()`, `.explain()`
        Bound:  everything that is ever published of the series has this loss, for one unit that is counted in at most
                `unit_periods` periods; with `enforce` for every unit
        Errors: InvalidArgument, InvalidPrice, DeltaRequired; nothing is spent here
        """
        return drawn("series")(
            self,
            name,
            every,
            horizon,
            unit_periods=unit_periods,
            enforce=enforce,
            start=start,
            on=on,
            noise=noise,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
        )

    def allocate(
        self,
        per: str = "night",
        nights: int | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        carry: bool = False,
        start: Any = None,
        name: str = "nightly",
    ) -> Any:
        """A part of this budget that is spent night by night, so that it lasts; made, or found again by its name.

        Input:  per: the length of a night, "night" (a day), "12h", "1w"; nights: how many; epsilon and delta, or rho:
                what they may spend together, charged now; carry: whether what a night leaves is there for later ones;
                start: when the first one begins (UTC), by default the day on which it is made; name
        Output: an allowance, which pays for releases like a budget: `df.dp(unit=..., budget=allowance)`; `.share` is
                the part of a night and `.tonight` what is left of this one's
        Bound:  (ε, δ) or ρ for all releases of all nights. With a δ they are counted in ρ where that gives a count of
                one night less noise: see `dpframe.budget.allowance.planned`
        Errors: InvalidArgument, InvalidPrice, BudgetExceeded; ReleaseMismatch where the name stands for another one
        """
        return drawn("allocate")(
            self, per, nights, epsilon=epsilon, delta=delta, rho=rho, carry=carry, start=start, name=name
        )

    def forecast(self) -> Any:
        """How long this budget and its allowances last, as sentences, `.table` and `.plot()`."""
        return drawn("forecast")(self)
