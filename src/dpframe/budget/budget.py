"""A budget, as people make it: its limit, and all that is asked with it.

Batches and stored answers are declared here, and their bodies stand in the rooms that know queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dpframe.budget.account import BudgetAccount, now
from dpframe.budget.accountants import read_limit
from dpframe.budget.allowance import Allowance, Forecast, allocate, forecast
from dpframe.budget.caps import begun, read_caps
from dpframe.budget.exceeded import warn_of_weak
from dpframe.budget.memory import MemoryBook
from dpframe.budget.running_totals import PaysForSeries
from dpframe.usage import BUDGET, PLAN, declared, explains


@explains("dp.Budget({1})", BUDGET)
@explains("budget.{}({})", PLAN)
class Budget(BudgetAccount, PaysForSeries):
    """A limit on the privacy loss of all releases together.
    The budget is in memory, for this process.

    Input:  epsilon > 0 and delta in [0, 1), or rho > 0 and delta: the limit; accountant: how losses
            add up, "gdp" (the better of two sums, of ε and of the μ² of Gaussian privacy; the usual
            one with ε and a δ), "basic" (ε and δ), "zcdp" (ρ and δ), or "pld" (ε and δ, for
            batches); min_units: a public lower bound on the number of units in the tables. It is
            used only for a warning, which compares δ with 1 / min_units; caps: the most that one
            release, spender, day, week or month may cost, `dp.Caps(...)` or a dict of its arguments
    Bound:  all releases that are charged here compose to at most the limit. The first charge binds
            the budget to one unit and neighbour relation; the limit holds for these
    Warns:  DpFrameWarning for a limit that protects little; see `dpframe.budget.exceeded`
    Errors: InvalidPrice, UnsupportedOperation; at a release BudgetExceeded and BudgetMismatch,
            which spend nothing

    A charge is made before any row is read, under a lock, and is never taken back. `dp.Ledger`
    keeps budgets that survive the process.

    >>> Budget(epsilon=1.0, delta=1e-6).remaining
    Loss(epsilon=1.0, delta=1e-06)
    """

    _habits: ClassVar = dict.fromkeys(("left", "available", "balance", "rest"), "Type .remaining.")

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        accountant: str | None = None,
        *,
        min_units: int | None = None,
        caps: Any = None,
    ) -> None:
        adds_up, limit = read_limit(epsilon, delta, rho, accountant)
        warn_of_weak(limit, min_units, "dp.Budget({})")
        self._open(
            adds_up, limit, MemoryBook(adds_up, limit, now(), begun(read_caps(caps, adds_up.terms)))
        )

    @declared
    def plan(
        self, queries: Iterable[Any] | None = None, *, n: int | None = None, **price: Any
    ) -> Any:
        """Price several queries together before any of them runs, to release them as one batch.

        With `n` and no queries: the price of each of n equal releases that take all that is left,
        one after another.

        Input:  queries that this budget pays for; n: a number of releases; epsilon and delta, or
                rho and delta, for all of them together; noise and ci as in a release; shares: a
                weight for each query
        Output: with n, a price in ε or in ρ, whichever gives a count less noise. Otherwise a batch:
                `.cost`, `.noise`, and `.release(name=...)`, which charges once and returns a list
                of releases
        Bound:  the queries are fixed together, so the tightest accounting of this budget applies:
                all Gaussian noise is one mechanism; with accountant="pld" the joint distribution of
                all Laplace noise is used
        Errors: InvalidArgument, InvalidPrice, DeltaRequired; nothing is spent here

        >>> import polars as pl, dpframe as dp
        >>> budget = dp.Budget(epsilon=1.0)
        >>> frame = pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]}).dp(
        ...     unit="user", budget=budget
        ... )
        >>> queries = [frame.count(max_rows=2), frame.mean("spend", bounds=(0, 10), max_rows=2)]
        >>> plan = budget.plan(queries, epsilon=0.5, shares=[1, 3])
        >>> rows, spend = plan.release()
        >>> rows.table.columns, spend.table.columns, budget.spent
        (['count'], ['spend'], Loss(epsilon=0.5, delta=0.0))
        """
        raise NotImplementedError

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
        periods: int | None = None,
        zone: str | None = None,
    ) -> Allowance:
        """Divide a part of this budget over a number of nights, or of periods:
        `allocate("1mo", 12, epsilon=2)`.

        A name without nights is a part that may be spent at any time:
        `allocate(name="bo", epsilon=1)`. A name alone opens the allowance that it has:
        `allocate(name="bo")`.

        Input:  per: the length of a night, "night" (a day), "12h", "1w", or "1mo" for calendar
                months; nights: the number of nights; epsilon and delta, or rho: the loss of all
                nights together, charged now; carry: whether later nights may spend the unspent part
                of earlier nights; start: when the first night begins (UTC, or in the zone), by
                default today at 0:00, for months on the first of this month; name: a known one
                returns the allowance that it has; periods: another word for nights; zone: the time
                zone in whose calendar days, weeks and months begin, such as "Europe/Vienna", by
                default UTC
        Output: an allowance, which pays for releases like a budget:
                `df.dp(unit=..., budget=allowance)`; `.share` is the part of one night, and
                `.tonight` is the unspent part of this night
        Bound:  (ε, δ) or ρ for all releases of all nights. With a δ the releases are counted in ρ
                if a count of one night then has less noise: see `dpframe.budget.allowance.planned`
        Errors: InvalidArgument, InvalidPrice, BudgetExceeded; ReleaseMismatch if the name has
                another allowance
        """
        return allocate(
            self,
            per,
            nights,
            periods=periods,
            zone=zone,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            carry=carry,
            start=start,
            name=name,
        )

    @declared
    def answer(self, name: str) -> Any:
        """The stored answer of a release, by its name alone:
        for free, without the table or the question.

        Input:  name: of the release
        Output: its table with `to_csv` and the like, `when`, `cost` and `report()`; a list of these
                for a batch. The table has a row for each group. A crosstab, intervals and
                post-processing need the question: release it again under its name, which is free
        Errors: InvalidArgument if nothing was released under this name; UnsupportedOperation for a
                period of a series

        >>> import polars as pl, dpframe as dp
        >>> budget = dp.Budget(epsilon=1.0)
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=budget)
        >>> out = frame.count(max_rows=2).release(epsilon=0.25, name="rows")
        >>> budget.answer("rows").to_polars().equals(out.to_polars())
        True
        """
        raise NotImplementedError

    def forecast(self) -> Forecast:
        """Forecast of this budget and its allowances, as sentences, `.table` and `.plot()`."""
        return forecast(self)
