"""A question that has not been answered: look at its derivation and its error, then release it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe import engine
from dpframe.api.settings import resolve_budget
from dpframe.budget import Terms
from dpframe.engine import as_kind
from dpframe.errors import BudgetRequired, InvalidArgument, InvalidPrice, UnsupportedOperation, kind_of
from dpframe.plan import QUERY, Derivation, Hints, Question, check_choice, derivation, real
from dpframe.plan.steps import Step, exchanged, rebased, source_of, sources_of
from dpframe.release import Account, Batch, batch_of, release, tuned
from dpframe.release.accuracy import check_alpha, check_ci, check_rows, read_ci
from dpframe.release.answer import may_be_scaled
from dpframe.release.estimators import estimator_of
from dpframe.release.pricing import NoisePlan, read_price
from dpframe.release.publish import Release
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.usage import PRICED, explained, explains

__all__ = ["Query"]


@explains(".{}({})", PRICED)
class Query(Hints):
    """A question about a protected frame. Nothing has been read and nothing paid; `release` does both, once."""

    __slots__ = ("_ask", "_budget")
    _habits = QUERY

    def __init__(self, ask: Question, budget: Account | None) -> None:
        self._ask, self._budget = ask, budget

    def explain(self) -> Derivation:
        """The derivation: every step, what one unit can have after it, the sensitivity of each noisy total."""
        return derivation(self._ask, may_be_scaled(self._ask))

    @property
    def sensitivity(self) -> Mapping[str, Sensitivity]:
        """How far one unit moves each noisy total: l0, l1, l2, linf (column unit).

        Keys: the column's name where it is one total (`n`), name and part where it is derived (`spend.sum`).
        """
        self._known_limits("sensitivity")
        return self._ask.sensitivity

    def _known_limits(self, asked: str) -> None:
        if self._ask.undecided:
            raise UnsupportedOperation(
                f"{asked}: dp.Auto() chooses limits and bounds inside the release, so what one unit can change is "
                "not known before. The release says it: out.derivation, out.noise, out.accuracy()."
            )

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that say whose row it is; empty with `dp.Rows(k)`."""
        unit = source_of(self._ask.step).unit
        return unit if isinstance(unit, tuple) else ()

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, Fraction]]:
        """What the same question adds up, without noise, on a table that you made up: to check `sensitivity` against.

        Input:  table: any kind of table that can be protected, with the columns of the protected one
        Output: for each noisy total its exact value per group (column unit); choices of ranks have none
        Errors: UnsupportedOperation for what is no table; EngineError where a column is missing

        `dpframe.theory.empirical_sensitivity(query, rows, size)` calls this on every small table there is.
        """
        ask = replace(self._ask, step=rebased(self._ask.step, engine.adopt(table)))
        totals = engine.totals(ask, 0)
        keys = [key[0] if len(key) == 1 else key for key in totals.keys.rows()] if ask.by else [()]
        sums = [(p, values) for p, values in zip(ask.read, totals.values, strict=True) if not p.measure.chosen]
        return {
            name: {key: int(value) * p.measure.unit for key, value in zip(keys, values, strict=True)}
            for p, values in sums
            for name in p.names
        }

    def epsilon_for(
        self,
        error: float,
        column: str | None = None,
        alpha: float = 0.05,
        *,
        delta: float | None = None,
        noise: str = "auto",
        assume_rows: int | None = None,
        ci: float | None = None,
    ) -> float:
        """The smallest ε whose error is within `error`, to four digits: the inverse of `accuracy`.

        Input:  error > 0 (column unit); column, by default every column; alpha, delta, noise, assume_rows, ci as in
                `accuracy`
        Output: ε, rounded up
        Errors: those of `accuracy`; UnsupportedOperation when no ε below 1e9 is enough, or the error is not known
                before a release (ratios and quantiles without assume_rows=)
        """
        most = real(error)
        if most is None or not 0 < most < math.inf:
            raise InvalidArgument("epsilon_for: error= is a number above 0, in the column's unit.")
        names = [output.name for output in self._ask.outputs]
        if column is not None and (not isinstance(column, str) or column not in names):
            said = repr(column) if isinstance(column, str) else f"that is {kind_of(column)}"
            raise InvalidArgument(f"epsilon_for: there is no column {said}; columns are {', '.join(names)}.")
        self._known_limits("epsilon_for")
        asked = self._with_ci(ci)

        def enough(epsilon: float) -> bool:
            rows = asked._expected({"epsilon": epsilon, "delta": delta}, alpha, noise, assume_rows)
            errors = [row[-1] for row in rows if column in (None, row[0])]
            if not errors:
                raise UnsupportedOperation("epsilon_for: keys alone have no error.")
            if any(e is None for e in errors):
                raise UnsupportedOperation(
                    "epsilon_for: the error of a ratio or a quantile depends on the data; say assume_rows=, a number "
                    "of values per group."
                )
            return bool(max(errors) <= most)

        low, high = 1e-9, 1e9
        if not enough(high):
            raise UnsupportedOperation("epsilon_for: no ε below 1e9 is enough; the rounding of this column is coarser.")
        while high / low > 1.00001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        digits = 10.0 ** (math.floor(math.log10(high)) - 3)
        rounded = float(f"{math.ceil(high / digits) * digits:.4g}")
        return rounded if rounded >= high else high

    def accuracy(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        alpha: float = 0.05,
        noise: str = "auto",
        assume_rows: int | None = None,
        ci: float | None = None,
    ) -> Any:
        """The error to expect of each column at a price, before anything is spent.

        Input:  epsilon, delta, rho, noise, ci as in `release`; alpha: the probability of a larger error; assume_rows:
                for ratios and quantiles, a number of values per group to assume, since their error depends on it
        Output: one row per column: column, aggregate, mechanism, scale, error (column unit, times in ticks); the error
                of a mean, a variance, a standard deviation or a quantile is null unless rows are assumed; that of a
                most frequent value is how many fewer rows than the truly most frequent one it may have; "n.other" is
                the column n in the row that collects suppressed groups
        Bound:  the errors of counts and sums hold for any data; those of means, variances and standard deviations for
                that many values, wherever in their bounds they lie, so they are large for a standard deviation, which
                is hard to know where values hardly differ; those of quantiles for values that lie around them at least
                as densely as if they were spread evenly between the bounds, and are enough of them (else it is all
                that lies between the bounds); with ci= it is that at half the price, not the width of the interval,
                which follows the values
        Errors: those of `release`, without touching the budget
        """
        if epsilon is None and rho is None:
            raise InvalidPrice("Say at what price: accuracy(epsilon=0.1), or accuracy(rho=0.01).")
        price = {"epsilon": epsilon, "delta": delta, "rho": rho}
        rows = self._with_ci(ci)._expected(price, alpha, noise, assume_rows)
        schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String}
        table = pl.DataFrame(rows, schema={**schema, "scale": pl.Float64, "error": pl.Float64}, orient="row")
        return as_kind(table, source_of(self._ask.step).data.kind)

    def _expected(
        self, price: Mapping[str, float | None], alpha: float, noise: str, assume_rows: int | None
    ) -> list[tuple[Any, ...]]:
        """One row per column: name, aggregate, mechanism, scale, error; the error is None where it is not known.

        The row that collects suppressed groups has noise of its own: "n.other".
        """
        self._known_limits("accuracy")
        alpha, known = check_alpha(alpha), None if assume_rows is None else check_rows(assume_rows)
        plan = self._priced(price, noise)
        rows = []
        plans = [(plan, ""), *([] if plan.collected is None else [(plan.collected, ".other")])]
        for part, of in plans:
            for output in self._ask.outputs:
                first = part.of(output.measures[0][1])
                scale = first.scale * float(first.paid.measure.unit)
                error = estimator_of(output).expected_error(output, part, alpha, known)
                rows.append((f"{output.name}{of}", output.formula.value, first.label, scale, error))
        return rows

    def _with_ci(self, ci: float | None) -> Query:
        """The question with the intervals that are asked for."""
        return self if ci is None else type(self)(self._ask.with_ci(read_ci(ci)), self._budget)

    def _priced(self, price: Mapping[str, float | None], noise: str) -> NoisePlan:
        """The noise that a price buys from the budget, or where none is named from one that counts what is offered."""
        terms = Terms.EPSILON if price.get("rho") is None else Terms.RHO
        with suppress(BudgetRequired):
            terms = resolve_budget(self._budget).terms
        return read_price(terms, **price, noise=noise).plan(self._ask)

    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: str = "auto",
        name: str | None = None,
        refresh: bool = False,
        on_pending: str = "refuse",
        data: Any = None,
        ci: float | None = None,
    ) -> Release:
        """Pay, read the rows, draw the noise, and give the table back: the only thing that does any of these.

        Input:  epsilon > 0 and delta >= 0, the price, or rho > 0 (and delta, for keys found in the data) from a budget
                in ρ; noise: "laplace", "gaussian", or "auto" for whichever has the smaller standard deviation. Choices
                (quantiles, most frequent values) have a mechanism of their own, which may use the δ, but not beside
                "laplace"; name: what the release is called in its budget, so that asking again gives the stored table
                for free; refresh: pay again for a name, and draw again; on_pending: "retry" pays again for a name whose
                release was charged and has no table, since it was killed; data: which rows these are, as in
                `dpframe.protect`: the name over other rows is refused; ci: with 0.95 each number has the ends of its
                95% interval beside it, see `Release.with_ci`: for free, but for a quantile, where half of its price
                buys them, so that they hold whatever the values are
        Output: Release; its table is of the kind that was protected
        Bound:  (epsilon, delta) differential privacy for the protected unit; δ that nothing uses is not charged
        Errors: InvalidPrice, DeltaRequired, BudgetRequired, BudgetExceeded, BudgetMismatch, ReleaseMismatch,
                ReleasePending, LedgerError, which spend nothing; EngineError
        """
        budget, ask = resolve_budget(self._budget), self._with_ci(ci)._ask
        if ci is not None:
            check_ci(ci, ask.by, ask.outputs, ask.layout)
        price = read_price(budget.terms, epsilon=epsilon, delta=delta, rho=rho, noise=noise)
        check_choice(on_pending, ("refuse", "retry"), "on_pending")
        if data is not None:
            ask = replace(ask, step=_labelled(ask.step, engine.read_origin(data)))
        retry = on_pending == "retry"
        answer: Release = release(ask, budget, price, name=name, refresh=refresh, retry=retry)
        return answer if ci is None else answer.with_ci(ci)

    def tune(
        self,
        grid: Mapping[str, Sequence[int | None]],
        epsilon: float | None = None,
        *,
        rho: float | None = None,
        at: float | None = None,
        delta: float | None = None,
        noise: str = "auto",
        name: str | None = None,
        refresh: bool = False,
    ) -> Any:
        """The error to expect under other limits: `query.tune({"max_rows": [1, 10, 100]}, epsilon=0.1)`.

        Input:  grid: limits to try by name, max_rows, max_groups, max_rows_per_group; every combination is tried, in
                place of the limits of this question. epsilon or rho: paid for histograms in which each unit counts
                once; at: the ε or ρ of the release that is planned, nine times as much by default, delta its δ, which
                is not charged here; noise, name, refresh as in `release`
        Output: one row for each combination: the limits, and the expected error of each column, `n_error` for `n`
                (column unit): the root mean square over the groups of what limits leave out and of the noise, as
                near to the real one as `dp.Auto` says; nothing is scaled here
        Bound:  ε (or ρ) differential privacy; the table is made of noisy histograms
        Errors: as in `release`; UnsupportedOperation with `dp.Rows(k)`, and for bounds that are not said
        """
        account = resolve_budget(self._budget)
        price = read_price(account.terms, epsilon=epsilon, rho=rho, noise=noise)
        table = tuned(self._ask, grid, account, price=price, at=at, delta=delta, name=name, refresh=refresh)
        return as_kind(table, source_of(self._ask.step).data.kind)

    @staticmethod
    def _together(queries: Sequence[Any], budget: Account, **price: Any) -> Batch:
        """Several queries as one batch of a budget: what `Budget.plan` calls."""
        for query in queries:
            if not isinstance(query, Query) or query._budget not in (None, budget):
                raise InvalidArgument("budget.plan([...]) takes queries of frames that this budget pays for.")
        return explained(batch_of, "budget.plan({1})")([query._ask for query in queries], budget, **price)

    def __repr__(self) -> str:
        columns = ", ".join(output.name for output in self._ask.outputs)
        asked = columns or f"the keys of {', '.join(map(repr, self._ask.by))}"
        return f"Query of {asked}: not released. See .explain(), .accuracy(epsilon=...), .release(epsilon=...)."

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A query cannot be pickled or copied out: the copy would hold raw rows.")


def _labelled(step: Step, origin: Any) -> Step:
    """A plan whose rows are called so."""
    made = {id(source): replace(source, origin=origin) for source in sources_of(step)}
    return exchanged(step, lambda source: made[id(source)])
