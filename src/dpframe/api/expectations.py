"""The error that a question is expected to have, before its release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Self

import polars as pl

from dpframe.api.settings import resolve_budget
from dpframe.budget import Terms
from dpframe.engine import Table_co, as_kind
from dpframe.errors import BudgetRequired, InvalidArgument, InvalidPrice, UnsupportedOperation
from dpframe.plan import (
    Question,
    real,
)
from dpframe.plan.steps import source_of
from dpframe.release import Account, bought
from dpframe.release.accuracy import check_alpha, check_column, check_rows, read_ci
from dpframe.release.auto import fewest_people
from dpframe.release.estimators import NoisyColumn, estimator_of
from dpframe.release.kinds import answer_kind
from dpframe.release.pricing import NoisePlan, Price, is_list, paid_price, read_price, read_prices
from dpframe.release.shown import priced_chart, read_look, warn_hopeless
from dpframe.usage import Hints


class Expects(Hints, Generic[Table_co]):
    """A question whose error is expected at a price, or whose price follows from an error."""

    __slots__ = ("_budget", "_question")

    def __init__(self, question: Question, budget: Account | None) -> None:
        self._question, self._budget = question, budget

    def _known_limits(self, call: str, more: str = "") -> None:
        if self._question.undecided:
            what = (
                "narrow=True chooses bounds"
                if self._question.narrowing
                else "dp.Auto() chooses limits and bounds"
            )
            raise UnsupportedOperation(
                f"{call}: {what} inside the release, so what one unit can change is "
                "not known before. The release says it: out.derivation, out.noise, out.accuracy()."
                f"{more}"
            )

    def epsilon_for(
        self,
        error: float,
        column: str | None = None,
        alpha: float = 0.05,
        *,
        delta: float | None = None,
        share: bool = False,
        noise: str = "auto",
        assume_rows: int | None = None,
        ci: float | None = None,
    ) -> float:
        """The smallest ε whose error is at most `error`, to four digits: the inverse of `accuracy`.

        Input:  error > 0 (column unit); column, by default every column; alpha, delta, noise,
                assume_rows, ci as in `accuracy`; share: True for the smallest share of the budget
                in place of ε
        Output: ε or share, rounded up
        Errors: those of `accuracy`; UnsupportedOperation when no ε below 1e9 is enough, or no
                share, or the error is not known before a release (ratios and quantiles without
                assume_rows=)

        >>> import polars as pl
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user")
        >>> query = frame.count(max_rows=2)
        >>> query.epsilon_for(error=100)  # within 100 rows, in 95 of 100 releases
        0.05962
        """
        most = real(error)
        if most is None or not 0 < most < math.inf:
            raise InvalidArgument("epsilon_for: error= is a number above 0, in the column's unit.")
        check_column(column, [output.name for output in self._question.outputs], "epsilon_for")
        self._known_limits("epsilon_for")

        def enough(size: float) -> bool:
            price = {"share": size} if share else {"epsilon": size, "delta": delta}
            rows = self._with_ci(ci)._error_rows(price, alpha, noise, assume_rows, column)
            errors = [row[-1] for row in rows]
            if not errors:
                raise UnsupportedOperation("epsilon_for: keys alone have no error.")
            if any(e is None for e in errors):
                raise UnsupportedOperation(
                    "epsilon_for: the error of a ratio or a quantile depends on the data; say "
                    "assume_rows=, a number of values per group, or name a column whose error is "
                    "known: column='n'."
                )
            return bool(max(errors) <= most)

        low, high = 1e-9, 1.0 if share else 1e9
        if not enough(high):
            lacking = "no ε below 1e9 is enough; the rounding of this column is coarser."
            lacking = "the whole budget is not enough for this error." if share else lacking
            raise UnsupportedOperation(f"epsilon_for: {lacking}")
        while high / low > 1.00001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        digits = 10.0 ** (math.floor(math.log10(high)) - 3)
        result = float(f"{math.ceil(high / digits) * digits:.4g}")
        return result if result >= high else high

    def accuracy(
        self,
        epsilon: float | Sequence[float] | None = None,
        delta: float | None = None,
        *,
        rho: float | Sequence[float] | None = None,
        share: float | None = None,
        alpha: float = 0.05,
        noise: str = "auto",
        assume_rows: int | None = None,
        ci: float | None = None,
    ) -> Table_co:
        """The error to expect of each column at a price, or at several, before anything is spent.

        Input:  epsilon, delta, rho, share, noise, ci as in `release`; a list of prices,
                epsilon=[0.1, 1], gives the errors at each; alpha: the probability of a larger
                error; assume_rows: for ratios and quantiles, a number of values per group to
                assume, since their error depends on it
        Output: one row per column: column, aggregate, mechanism, scale, error (column unit, times
                in ticks) and useful_from. "n.other" is the column n in the row that collects
                suppressed groups. The error of a mean, a variance, a standard deviation or a
                quantile is null unless rows are assumed. That of a most frequent value is a number
                of rows: how many fewer it may have than the truly most frequent one. With a list of
                prices there are these rows for each, and a first column `epsilon` (or `rho`).
                `useful_from` is a number of rows (units or distinct values, where these are
                counted). In a group with fewer, the answer is expected to err at least as much as
                one constant: 0 for a count or a sum, even of the largest values, and the middle of
                what the bounds allow elsewhere. It is null for a ratio without bounds, a
                correlation and a skewness, and where it would be above 2^50. A smaller assume_rows
                gives a DpFrameWarning
        Bound:  errors of counts and sums hold for any data. Errors of means, variances and standard
                deviations hold for that many values, wherever in their bounds they lie; so that of
                a standard deviation is large. Errors of quantiles hold if values around the
                quantile are at least as dense as values that are spread evenly between the bounds.
                With too few values the error is the width of the bounds. With ci= the error of a
                quantile is that at half the price, and not the width of its interval
        Errors: those of `release`, without touching the budget

        >>> import polars as pl
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user")
        >>> frame.count(max_rows=2).accuracy(epsilon=0.5).drop("aggregate").rows()
        [('count', 'discrete_laplace', 4.0, 12.0, 12)]
        >>> frame.count_units().accuracy(epsilon=[0.1, 1]).select(
        ...     "epsilon", "column", "scale"
        ... ).rows()
        [(0.1, 'count_units', 10.0), (1.0, 'count_units', 1.0)]
        """
        if epsilon is None and rho is None and share is None:
            ways = (
                "accuracy(epsilon=0.1), (rho=0.01) or (share=0.02); or at several: "
                "accuracy(epsilon=[0.1, 1])"
            )
            raise InvalidPrice(f"Say at what price: {ways}.")
        price = {"epsilon": epsilon, "rho": rho, "delta": delta, "share": share}
        table = self._errors(price, alpha, noise, assume_rows, ci)
        warn_hopeless(table, assume_rows)
        shown: Table_co = as_kind(table, source_of(self._question.step).data.kind)
        return shown

    def plot(
        self,
        column: str | None = None,
        *,
        epsilon: float | Sequence[float] | None = None,
        delta: float | None = None,
        rho: float | Sequence[float] | None = None,
        alpha: float = 0.05,
        noise: str = "auto",
        assume_rows: int | None = None,
        ci: float | None = None,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
    ) -> Any:
        """The error to expect against the price, before a release (Altair):
        `plot(epsilon=[0.1, 0.3, 1, 3])`.

        Input:  column: one of the columns, by default all; epsilon, delta, rho, alpha, noise,
                assume_rows, ci as in `accuracy`, whose numbers these are; title, width, height as
                in `Release.plot`
        Output: an Altair chart with a panel for each column; no row is read for it, and nothing is
                charged
        Errors: those of `accuracy`; UnsupportedOperation without the extra `charts`, and where no
                error is known before a release (ratios and quantiles without assume_rows=)
        """
        look = read_look(title, width, height, None)
        check_column(column, [output.name for output in self._question.outputs], "plot")
        if epsilon is None and rho is None:
            raise InvalidPrice(
                "Nothing is released yet. Say at what prices: plot(epsilon=[0.1, 0.3, 1, 3]) "
                "shows the errors to expect. A release has its own picture: "
                ".release(epsilon=0.1).plot()."
            )
        terms = Terms.EPSILON if rho is None else Terms.RHO
        epsilons, rhos = (x if is_list(x) or x is None else [x] for x in (epsilon, rho))
        table = self._errors(
            {"epsilon": epsilons, "rho": rhos, "delta": delta}, alpha, noise, assume_rows, ci
        )
        if column is not None:
            table = table.filter(pl.col("column").is_in([column, f"{column}.other"]))
        return priced_chart(table, self._question, terms, check_alpha(alpha), look)

    def _errors(
        self, typed: Mapping[str, Any], alpha: float, noise: str, rows: int | None, ci: float | None
    ) -> pl.DataFrame:
        """The table of `accuracy`: one row per column, and of several prices the rows of each."""
        asked = self._with_ci(ci)
        terms = Terms.EPSILON if is_list(typed["epsilon"]) or typed["rho"] is None else Terms.RHO
        listed = typed[terms.value]
        several = is_list(listed)
        lines = []
        for price in read_prices(listed, terms) if several else [listed]:
            named = {**typed, terms.value: price}
            expected = asked._error_rows(named, alpha, noise, rows)
            useful_from = asked._useful_from(named, alpha, noise)
            first_cells = (float(price),) if several else ()
            lines += [
                (*first_cells, *row, least)
                for row, least in zip(expected, useful_from, strict=True)
            ]
        schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String}
        first = {terms.value: pl.Float64} if several else {}
        numbers = {"scale": pl.Float64, "error": pl.Float64, "useful_from": pl.Int64}
        return pl.DataFrame(lines, schema={**first, **schema, **numbers}, orient="row")

    def _error_rows(
        self,
        price: Mapping[str, float | None],
        alpha: float,
        noise: str,
        rows: int | None,
        of: str | None = None,
    ) -> list[tuple[Any, ...]]:
        """One row per column, or for that of a name: name, aggregate,
        mechanism, scale, error, or None.
        """
        alpha, values = check_alpha(alpha), None if rows is None else check_rows(rows)
        errors = []
        columns = self._noisy_columns(price, noise)
        for name, output in (column for column in columns if of in (None, column[0])):
            first = output.noise(output.total)
            scale = first.scale * float(first.total.unit)
            error = estimator_of(output).expected_error(output, alpha, values)
            errors.append((name, output.formula.value, first.label, scale, error))
        return errors

    def _useful_from(
        self, price: Mapping[str, float | None], alpha: float, noise: str
    ) -> list[int | None]:
        """For each of these rows, the least group that an answer says something
        of: see `Estimator.useful_from`.
        """
        columns = self._noisy_columns(price, noise)
        return [estimator_of(output).useful_from(output, alpha) for _, output in columns]

    def _noisy_columns(
        self, price: Mapping[str, float | None], noise: str
    ) -> list[tuple[str, NoisyColumn]]:
        """Name of each column, and the column with its noise.
        The row of suppressed groups has "n.other" for n.
        """
        self._known_limits("accuracy", self._people_for_bounds(price, noise))
        plan = self._noise_plan(price, noise)
        plans = [(plan, ""), *([] if plan.collected is None else [(plan.collected, ".other")])]
        columns = [(output, part, of) for part, of in plans for output in self._question.outputs]
        return [
            (f"{output.name}{of}", NoisyColumn.of(output, part)) for output, part, of in columns
        ]

    def _with_ci(self, ci: float | None) -> Self:
        """The question with the intervals that are asked for."""
        return self if ci is None else type(self)(self._question.with_ci(read_ci(ci)), self._budget)

    def _noise_plan(self, price: Mapping[str, float | None], noise: str) -> NoisePlan:
        """The noise that a price buys from the budget.
        If there is no budget, the price decides: ε or ρ.
        """
        if price.get("share") is not None:
            return bought(self._question, paid_price(resolve_budget(self._budget), noise, **price))[
                1
            ]
        return answer_kind(self._question).noise(self._question, self._priced(price, noise))

    def _priced(self, price: Mapping[str, float | None], noise: str) -> Price:
        """A price that is no share, in the terms of the budget, or its own if there is none."""
        terms = Terms.EPSILON if price.get("rho") is None else Terms.RHO
        with suppress(BudgetRequired):
            terms = resolve_budget(self._budget).terms
        amounts = {name: amount for name, amount in price.items() if name != "share"}
        return read_price(terms, **amounts, noise=noise)

    def _people_for_bounds(self, price: Mapping[str, float | None], noise: str) -> str:
        """How many people chosen bounds need at a price, in words; none for a share."""
        if not self._question.open_bounds or price.get("share") is not None:
            return ""
        fewest = fewest_people(self._question, self._priced(price, noise))
        return (
            f" At this price {fewest:,} people have sure bounds in half of the releases; fewer "
            "mostly have a guess. If there are hardly more, give bounds=(low, high)."
        )
