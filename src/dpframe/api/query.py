"""A question before its release: its derivation, its expected error, and the release itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic

import polars as pl

from dpframe import engine
from dpframe.api.settings import resolve_budget
from dpframe.budget import Terms
from dpframe.engine import Table_co, as_kind
from dpframe.errors import BudgetRequired, InvalidArgument, InvalidPrice, UnknownColumn, UnsupportedOperation, WrongType
from dpframe.plan import (
    NOT_RELEASED,
    QUERY,
    Derivation,
    Question,
    ReleasedColumn,
    check_choice,
    derivation,
    read_covers,
    real,
)
from dpframe.plan.steps import exchanged, rebased, source_of
from dpframe.plan.types import show
from dpframe.release import Account, bought, release, tuned
from dpframe.release.accuracy import check_alpha, check_ci, check_column, check_rows, read_ci
from dpframe.release.answer import may_be_scaled
from dpframe.release.estimators import estimator_of
from dpframe.release.kept_answers import read_correction
from dpframe.release.kinds import answer_kind
from dpframe.release.pricing import NoisePlan, is_list, paid_price, read_price, read_prices
from dpframe.release.shown import Release, priced_chart, read_look, warn_hopeless
from dpframe.safe_text import visible
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.usage import PRICED, Hints, NoNumber, check_flags, explains


@explains(".{}({})", PRICED)
class Query(NoNumber, Hints, Generic[Table_co]):
    """A question about a protected frame. Nothing has been read and nothing paid; `release` does both, once."""

    __slots__ = ("_budget", "_question")
    _habits = QUERY
    _instead = NOT_RELEASED

    def __init__(self, question: Question, budget: Account | None) -> None:
        self._question, self._budget = question, budget

    def explain(self) -> Derivation:
        """The derivation: every step, what one unit can have after it, the sensitivity of each noisy total.

        On Spark it ends with the most jobs and shuffles of a release, which are counted in its plan. No row is read.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.clip("spend", 0, 10).sum("spend", max_rows=2)
        >>> print(str(query.explain()).splitlines()[0])
        Neighbouring tables: one unit 'user' joins or leaves (add-remove).
        """
        why = derivation(self._question, may_be_scaled(self._question))
        return replace(why, work=engine.work_in_words(self._question, answer_kind(self._question).queries))

    @property
    def sensitivity(self) -> Mapping[str, Sensitivity]:
        """How far one unit moves each noisy total: l0, l1, l2, linf (column unit).

        Keys: the column's name where it is one total (`n`), name and part where it is derived (`spend.sum`).
        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 10)), max_rows=2)
        >>> query.sensitivity["n"]
        Sensitivity(l0=1, l1=2, l2=2, linf=2)
        >>> list(query.sensitivity)
        ['n', 'spend.sum', 'spend.count']
        """
        self._known_limits("sensitivity")
        return self._question.sensitivity

    def _known_limits(self, call: str) -> None:
        if self._question.undecided:
            what = "narrow=True chooses bounds" if self._question.narrowing else "dp.Auto() chooses limits and bounds"
            raise UnsupportedOperation(
                f"{call}: {what} inside the release, so what one unit can change is "
                "not known before. The release says it: out.derivation, out.noise, out.accuracy()."
            )

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that identify the unit; empty with `dp.Rows(k)`."""
        return unit if isinstance(unit := source_of(self._question.step).unit, tuple) else ()

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, Fraction]]:
        """The totals of this question, without noise, on a made-up table: to check `sensitivity`.

        Input:  table: any kind of table that can be protected, with the columns of the protected one
        Output: for each noisy total its exact value per group (column unit); choices of ranks and trees have none
        Errors: UnsupportedOperation for what is no table; EngineError where a column is missing
        """
        question = replace(self._question, step=rebased(self._question.step, engine.adopt(table)))
        totals = engine.totals(question, 0)
        keys = [key[0] if len(key) == 1 else key for key in totals.keys.rows()] if question.by else [()]
        return {
            name: {key: int(value) * p.total.unit for key, value in zip(keys, values, strict=True)}
            for p, values in question.with_followed(totals.values)
            if p.total.width is None
            for name in p.names
        }

    def check(self, table: Any) -> None:
        """Check that this question can be asked of another table, such as tonight's, by names and types alone.

        A column whose type has changed is named, the unit above all: identifiers that became texts would be other
        units. No row is read, nothing is charged.

        Input:  table: any kind of table that can be protected
        Errors: UnknownColumn, WrongType; those of a release before it is paid

        >>> import polars as pl, dpframe as dp
        >>> query = pl.DataFrame({"user": [1, 2]}).dp(unit="user").count(max_rows=1)
        >>> query.check(pl.DataFrame({"user": ["1", "2"]}))
        Traceback (most recent call last):
        dpframe.errors.WrongType: check: 'user' has the type String here, and had Int64. Read it as before.
        """
        data, source = engine.adopt(table), source_of(self._question.step)
        types = dict(data.schema)
        for name, domain in source.data.schema:
            if name not in types:
                raise UnknownColumn(f"check: the table has no column {name!r}, which the protected one has.")
            if types[name].dtype != domain.dtype:
                now, before = show(types[name].dtype), show(domain.dtype)
                raise WrongType(f"check: {name!r} has the type {now} here, and had {before}. Read it as before.")
        question = replace(self._question, step=rebased(self._question.step, data))
        answer_kind(question).validate(question)

    @property
    def only_in_both(self) -> frozenset[str]:
        """The totals whose sensitivity is about groups that both tables have; see `Question.only_in_both`."""
        return self._question.only_in_both

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

        Input:  error > 0 (column unit); column, by default every column; alpha, delta, noise, assume_rows, ci as in
                `accuracy`; share: True for the smallest share of the budget in place of ε
        Output: ε or share, rounded up
        Errors: those of `accuracy`; UnsupportedOperation when no ε below 1e9 is enough, or no share, or the error is
                not known before a release (ratios and quantiles without assume_rows=)

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
                    "epsilon_for: the error of a ratio or a quantile depends on the data; say assume_rows=, a number "
                    "of values per group, or name a column whose error is known: column='n'."
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

        Input:  epsilon, delta, rho, share, noise, ci as in `release`; a list of prices, epsilon=[0.1, 1], gives the
                errors at each; alpha: the probability of a larger error; assume_rows: for ratios and quantiles, a
                number of values per group to assume, since their error depends on it
        Output: one row per column: column, aggregate, mechanism, scale, error (column unit, times in ticks) and
                useful_from. "n.other" is the column n in the row that collects suppressed groups. The error of a mean,
                a variance, a standard deviation or a quantile is null unless rows are assumed. That of a most frequent
                value is a number of rows: how many fewer it may have than the truly most frequent one. With a list of
                prices there are these rows for each, and a first column `epsilon` (or `rho`).
                `useful_from` is a number of rows (units or distinct values, where these are counted). In a group with
                fewer, the answer is expected to err at least as much as one constant: 0 for a count or a sum, even of
                the largest values, and the middle of what the bounds allow elsewhere. It is null for a ratio without
                bounds, a correlation and a skewness, and where it would be above 2^50. A smaller assume_rows gives a
                DpFrameWarning
        Bound:  errors of counts and sums hold for any data. Errors of means, variances and standard deviations hold for
                that many values, wherever in their bounds they lie; so that of a standard deviation is large. Errors of
                quantiles hold if values around the quantile are at least as dense as values that are spread evenly
                between the bounds. With too few values the error is the width of the bounds. With ci= the error of a
                quantile is that at half the price, and not the width of its interval
        Errors: those of `release`, without touching the budget

        >>> import polars as pl
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user")
        >>> frame.count(max_rows=2).accuracy(epsilon=0.5).drop("aggregate").rows()
        [('count', 'discrete_laplace', 4.0, 12.0, 12)]
        >>> frame.count_units().accuracy(epsilon=[0.1, 1]).select("epsilon", "column", "scale").rows()
        [(0.1, 'count_units', 10.0), (1.0, 'count_units', 1.0)]
        """
        if epsilon is None and rho is None and share is None:
            ways = "accuracy(epsilon=0.1), (rho=0.01) or (share=0.02); or at several: accuracy(epsilon=[0.1, 1])"
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
        """The error to expect against the price, before a release (Altair): `plot(epsilon=[0.1, 0.3, 1, 3])`.

        Input:  column: one of the columns, by default all; epsilon, delta, rho, alpha, noise, assume_rows, ci as in
                `accuracy`, whose numbers these are; title, width, height as in `Release.plot`
        Output: an Altair chart with a panel for each column; no row is read for it, and nothing is charged
        Errors: those of `accuracy`; UnsupportedOperation without the extra `charts`, and where no error is known
                before a release (ratios and quantiles without assume_rows=)
        """
        look = read_look(title, width, height, None)
        check_column(column, [output.name for output in self._question.outputs], "plot")
        if epsilon is None and rho is None:
            raise InvalidPrice(
                "Nothing is released yet. Say at what prices: plot(epsilon=[0.1, 0.3, 1, 3]) shows the errors to "
                "expect. A release has its own picture: .release(epsilon=0.1).plot()."
            )
        terms = Terms.EPSILON if rho is None else Terms.RHO
        epsilons, rhos = (x if is_list(x) or x is None else [x] for x in (epsilon, rho))
        table = self._errors({"epsilon": epsilons, "rho": rhos, "delta": delta}, alpha, noise, assume_rows, ci)
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
            lines += [(*first_cells, *row, least) for row, least in zip(expected, useful_from, strict=True)]
        schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String}
        first = {terms.value: pl.Float64} if several else {}
        numbers = {"scale": pl.Float64, "error": pl.Float64, "useful_from": pl.Int64}
        return pl.DataFrame(lines, schema={**first, **schema, **numbers}, orient="row")

    def _error_rows(
        self, price: Mapping[str, float | None], alpha: float, noise: str, rows: int | None, of: str | None = None
    ) -> list[tuple[Any, ...]]:
        """One row per column, or for that of a name: name, aggregate, mechanism, scale, error, or None."""
        alpha, values = check_alpha(alpha), None if rows is None else check_rows(rows)
        errors = []
        columns = self._noisy_columns(price, noise)
        for name, output, part in (column for column in columns if of in (None, column[0])):
            first = part.of(output.totals[0][1])
            scale = first.scale * float(first.allotment.total.unit)
            error = estimator_of(output).expected_error(output, part, alpha, values)
            errors.append((name, output.formula.value, first.label, scale, error))
        return errors

    def _useful_from(self, price: Mapping[str, float | None], alpha: float, noise: str) -> list[int | None]:
        """For each of these rows, the least group that an answer says something of: see `Estimator.useful_from`."""
        columns = self._noisy_columns(price, noise)
        return [estimator_of(output).useful_from(output, part, alpha) for _, output, part in columns]

    def _noisy_columns(
        self, price: Mapping[str, float | None], noise: str
    ) -> list[tuple[str, ReleasedColumn, NoisePlan]]:
        """Name, column and noise of each column. The row that collects suppressed groups has "n.other" for n."""
        self._known_limits("accuracy")
        plan = self._noise_plan(price, noise)
        plans = [(plan, ""), *([] if plan.collected is None else [(plan.collected, ".other")])]
        return [(f"{output.name}{of}", output, part) for part, of in plans for output in self._question.outputs]

    def _with_ci(self, ci: float | None) -> Query[Table_co]:
        """The question with the intervals that are asked for."""
        return self if ci is None else type(self)(self._question.with_ci(read_ci(ci)), self._budget)

    def _covering(self, ci: float | None, covers: str, data: Any) -> Question:
        """The question with the intervals that are asked for, about the rows that were named."""
        question = self._with_ci(ci)._question.covering(read_covers(covers))
        if ci is not None:
            check_ci(ci, question.by, question.outputs, question.layout, question.covers)
        if data is None:
            return question
        origin = engine.read_origin(data)
        return replace(question, step=exchanged(question.step, lambda source: replace(source, origin=origin)))

    def _noise_plan(self, price: Mapping[str, float | None], noise: str) -> NoisePlan:
        """The noise that a price buys from the budget. If there is no budget, the price decides: ε or ρ."""
        if price.get("share") is not None:
            return bought(self._question, paid_price(resolve_budget(self._budget), noise, **price))[1]
        terms = Terms.EPSILON if price.get("rho") is None else Terms.RHO
        with suppress(BudgetRequired):
            terms = resolve_budget(self._budget).terms
        amounts = {name: amount for name, amount in price.items() if name != "share"}
        return answer_kind(self._question).noise(self._question, read_price(terms, **amounts, noise=noise))

    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        share: float | None = None,
        noise: str = "auto",
        name: str | None = None,
        refresh: bool = False,
        on_pending: str = "refuse",
        data: Any = None,
        ci: float | None = None,
        covers: str = "noise",
        fill: bool = False,
        spender: str | None = None,
        purpose: str | None = None,
        supersedes: str | None = None,
        because: str | None = None,
    ) -> Release[Table_co]:
        """Pay, read the rows, draw the noise, and give the table back: the only thing that does any of these.

        Input:  epsilon > 0 and delta >= 0, the price; or rho > 0 (and delta, for keys found in the data) from a budget
                in ρ or with accountant="gdp"; or share: a part of the whole budget, 0.02 for two per cent, in the terms
                in which it buys less noise; noise: "laplace", "gaussian", or "auto" for the one with the smaller
                standard deviation. For counts of listed groups, and sums with bounds of one sign, there is also noise
                of which groups share a part, which "auto" may take: "k-norm" for ε alone, "elliptic" with δ or in ρ. A
                sum over groups of such numbers has a larger error. Choices (quantiles, most frequent values) have a
                mechanism of their own, which may use the δ, but not with noise="laplace"; name: of the release in its
                budget, so that a second call with this name returns the stored table for free; refresh: pay again for a
                name, and draw again; on_pending: "retry" pays again for a name whose charged release was killed; data:
                which rows these are, as in `dpframe.protect`: the name over other rows is refused; ci: with 0.95 each
                number has the ends of its 95% interval beside it, see `Release.with_ci`. Intervals are free, but for
                quantiles: half of a quantile's price pays for its interval, which then holds whatever the values are;
                covers: "noise" for intervals of the number without noise, or "population" for the number of the
                population that these people are drawn from at random. Counts, sums, means, ratios, variances,
                covariances and correlations have the second. Where people may have several rows or values other than 0
                and 1, a part of the price pays for how far they differ: a ninth to a fifth, and 1/13 for a correlation;
                fill: with True, numbers that noise hides altogether are shown and not missing, see `Release.fill`;
                spender, purpose: who pays and what for, for caps and history; supersedes: the name of a release that
                this one corrects, which stays paid; because: the reason, which the statement has
        Output: Release; its table is of the kind that was protected
        Bound:  (epsilon, delta) differential privacy for the protected unit; if no mechanism uses δ, it is not charged
        Errors: InvalidPrice, DeltaRequired and each BudgetError, which spend nothing; EngineError

        >>> import polars as pl, dpframe as dp
        >>> query = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=dp.Budget(epsilon=1.0)).count_units()
        >>> out = query.release(epsilon=0.5, name="users")
        >>> out.table.shape, out.cost
        ((1, 1), Loss(epsilon=0.5, delta=0.0))
        >>> again = query.release(epsilon=0.5, name="users")  # the stored table, for free
        >>> again.table.equals(out.table)
        True
        """
        budget, question = resolve_budget(self._budget, spender, purpose), self._covering(ci, covers, data)
        price = paid_price(budget, noise, name, share=share, epsilon=epsilon, delta=delta, rho=rho)
        check_flags("fill= is True or False: whether numbers that noise hides altogether are shown.", fill)
        corrects, retry = read_correction(name, supersedes, because), _read_retry(on_pending)
        answer: Release[Table_co] = release(question, budget, price, corrects, name=name, refresh=refresh, retry=retry)
        answer = answer if ci is None else answer.with_ci(ci)
        return answer.fill() if fill and isinstance(answer, Release) else answer  # other kinds hide no number

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
    ) -> Table_co:
        """The error to expect under other limits: `query.tune({"max_rows": [1, 10, 100]}, epsilon=0.1)`.

        Input:  grid: lists of limits to try, by name: max_rows, max_groups, max_rows_per_group. Every combination is
                tried, in place of the limits of this question. epsilon or rho: the price of histograms in which each
                unit counts once; at: the ε or ρ of the planned release, by default nine times that price; delta: its δ,
                which is not charged here; noise, name, refresh as in `release`
        Output: one row for each combination: the limits, and the expected error of each column, `n_error` for `n`
                (column unit). It is the root mean square error over the groups, from removed rows and from noise, as
                precise as `dp.Auto` says. Numbers are not scaled here
        Bound:  ε (or ρ) differential privacy; the table is made of noisy histograms
        Errors: as in `release`; UnsupportedOperation with `dp.Rows(k)`, and for bounds that are not said

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_rows=2).count()
        >>> query.tune({"max_rows": [1, 2, 5]}, epsilon=0.1).columns
        ['max_rows', 'count_error']
        """
        account = resolve_budget(self._budget)
        price = read_price(account.terms, epsilon=epsilon, rho=rho, noise=noise)
        table = tuned(self._question, grid, account, price=price, at=at, delta=delta, name=name, refresh=refresh)
        shown: Table_co = as_kind(table, source_of(self._question.step).data.kind)
        return shown

    def __repr__(self) -> str:
        names = [output.name for output in self._question.outputs]
        subject = visible(", ".join(names)) or f"the keys of {', '.join(map(repr, self._question.by))}"
        return f"Query of {subject}: not released. See .explain(), .accuracy(epsilon=...), .release(epsilon=...)."

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A query cannot be pickled or copied out: the copy would hold raw rows.")


def _read_retry(on_pending: object) -> bool:
    """Whether a name is paid again whose charged release was killed. Errors: InvalidArgument."""
    check_choice(on_pending, ("refuse", "retry"), "on_pending")
    return on_pending == "retry"


class AskedThrough(NoNumber, Hints):
    """A question whose answer is made of that of a `Query`. Nothing has been read and nothing paid."""

    __slots__ = ("_query",)
    _instead = NOT_RELEASED
    _query: Query[Any]

    def explain(self) -> Derivation:
        """The derivation: every step, and how far one unit moves each total."""
        return self._query.explain()

    @property
    def sensitivity(self) -> Any:
        """How far one unit moves each total; see `Query.sensitivity`."""
        return self._query.sensitivity

    def __repr__(self) -> str:
        return repr(self._query)

    def __reduce__(self) -> Any:
        return self._query.__reduce__()
