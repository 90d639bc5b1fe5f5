"""A question that has not been answered: look at its derivation and its error, then release it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from dpframe.api.settings import resolve_budget
from dpframe.engine.native import as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.ask import Ask
from dpframe.plan.explain import Derivation, derivation
from dpframe.plan.steps import source_of
from dpframe.release.accuracy import check_alpha, error_of
from dpframe.release.calibrate import noise_plan, read_price
from dpframe.release.result import Release
from dpframe.release.run import Account, release
from dpframe.theory.maps.sensitivity import Sensitivity

__all__ = ["Query"]


class Query:
    """A question about a protected frame. Nothing has been read and nothing paid; `release` does both, once."""

    __slots__ = ("_ask", "_budget")

    def __init__(self, ask: Ask, budget: Account | None) -> None:
        self._ask, self._budget = ask, budget

    def explain(self) -> Derivation:
        """The derivation: every step, what one unit can have after it, the sensitivity of each noisy total."""
        return derivation(self._ask)

    @property
    def sensitivity(self) -> Mapping[str, Sensitivity]:
        """How far one unit moves each noisy total: l0, l1, l2, linf (column unit).

        Keys: the column's name where it is one total (`n`), name and part where it is derived (`spend.sum`).
        """
        return self._ask.sensitivity

    def accuracy(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        alpha: float = 0.05,
        noise: str = "auto",
        assume_rows: int | None = None,
    ) -> Any:
        """The error to expect of each column at a price, before anything is spent.

        Input:  epsilon, delta, noise as in `release`; alpha: the probability of a larger error; assume_rows: for
                ratios, a number of values per group to assume, since their error depends on it
        Output: one row per column: column, aggregate, mechanism, scale, error (column unit); the error of a mean, a
                variance or a standard deviation is null unless rows are assumed
        Errors: those of `release`, without touching the budget
        """
        alpha = check_alpha(alpha)
        plan = noise_plan(self._ask, read_price(epsilon, delta), noise)
        rows = []
        for output in self._ask.outputs:
            drawn = plan.of(output.measures[0][1])
            scale = drawn.scale * float(drawn.paid.measure.unit)
            error = None
            if len(output.measures) == 1 or assume_rows is not None:
                count = np.array([_positive(1 if assume_rows is None else assume_rows)])
                error = float(error_of(output, plan, alpha, 1, {output.measures[-1][0]: count})[0])
            rows.append((output.name, output.formula, drawn.family, scale, error))
        schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String}
        table = pl.DataFrame(rows, schema={**schema, "scale": pl.Float64, "error": pl.Float64}, orient="row")
        return as_kind(table, source_of(self._ask.step).data.kind)

    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: str = "auto",
        name: str | None = None,
        refresh: bool = False,
    ) -> Release:
        """Pay, read the rows, draw the noise, and give the table back: the only thing that does any of these.

        Input:  epsilon > 0 and delta >= 0, the price, or rho > 0 (and delta, for keys found in the data) from a budget
                in ρ; noise: "laplace", "gaussian", or "auto" for whichever has the smaller standard deviation; name:
                what the release is called in its budget, so that asking again gives the stored table for free;
                refresh: pay again for a name, and draw again
        Output: Release; its table is of the kind that was protected
        Bound:  (epsilon, delta) differential privacy for the protected unit; δ that nothing uses is not charged
        Errors: InvalidPrice, DeltaRequired, BudgetRequired, BudgetExceeded, BudgetMismatch, ReleaseMismatch,
                ReleasePending, LedgerError, which spend nothing; EngineError
        """
        budget = resolve_budget(self._budget)
        price = {"epsilon": epsilon, "delta": delta, "rho": rho}
        return release(self._ask, budget, **price, noise=noise, name=name, refresh=refresh)

    def __repr__(self) -> str:
        columns = ", ".join(output.name for output in self._ask.outputs)
        return f"Query of {columns}: not released. See .explain(), .accuracy(epsilon=...), .release(epsilon=...)."

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A query cannot be pickled or copied out: the copy would hold raw rows.")


def _positive(rows: object) -> float:
    if isinstance(rows, bool) or not isinstance(rows, (int, float)) or not 0 < rows < float("inf"):
        raise InvalidArgument("assume_rows= is a number of rows above 0.")
    return float(rows)
