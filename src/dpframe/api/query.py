"""A question before its release: its derivation, and the release itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe import engine
from dpframe.api.expectations import Expects
from dpframe.api.settings import resolve_budget
from dpframe.engine import Table_co, as_kind
from dpframe.errors import UnknownColumn, UnsupportedOperation, WrongType
from dpframe.plan import (
    NOT_RELEASED,
    QUERY,
    Covers,
    Derivation,
    Question,
    derivation,
    read_covers,
)
from dpframe.plan.steps import exchanged, rebased, source_of
from dpframe.plan.types import show
from dpframe.release import release, tuned
from dpframe.release.accuracy import check_ci
from dpframe.release.answer import may_be_scaled
from dpframe.release.kept_answers import read_correction
from dpframe.release.kinds import answer_kind
from dpframe.release.paying import Naming, read_pending
from dpframe.release.pricing import paid_price, read_price
from dpframe.release.shown import Release
from dpframe.safe_text import visible
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.usage import PRICED, Hints, NoNumber, check_flags, explains


@explains(".{}({})", PRICED)
class Query(NoNumber, Expects[Table_co]):
    """A question about a protected frame.
    Nothing has been read and nothing paid; `release` does both, once.
    """

    __slots__ = ()
    _habits = QUERY
    _instead = NOT_RELEASED

    def explain(self) -> Derivation:
        """The derivation: every step, what one unit can have after it, the
        sensitivity of each noisy total.

        On Spark it ends with the most jobs and shuffles of a release, which are counted in its
        plan. No row is read.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame(
        ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
        ... )
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.clip("spend", 0, 10).sum("spend", max_rows=2)
        >>> print(str(query.explain()).partition(".")[0])
        Neighbouring tables: one unit 'user' joins or leaves (add-remove)
        """
        why = derivation(self._question, may_be_scaled(self._question))
        return replace(
            why, work=engine.work_in_words(self._question, answer_kind(self._question).queries)
        )

    @property
    def sensitivity(self) -> Mapping[str, Sensitivity]:
        """The distance by which one unit moves each noisy total: l0, l1, l2, linf (column unit).

        Keys: the column's name where it is one total (`n`), name and part where it is
        derived (`spend.sum`).
        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame(
        ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
        ... )
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 10)), max_rows=2)
        >>> query.sensitivity["n"]
        Sensitivity(l0=1, l1=2, l2=2, linf=2)
        >>> list(query.sensitivity)
        ['n', 'spend.sum', 'spend.count']
        """
        self._known_limits("sensitivity")
        return self._question.sensitivity

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that identify the unit; empty with `dp.Rows(k)`."""
        return source_of(self._question.step).ids

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, Fraction]]:
        """The totals of this question, without noise, on a made-up table: to check `sensitivity`.

        Input:  table: any kind of table that can be protected, with the columns of the protected
                one
        Output: for each noisy total its exact value per group (column unit); choices of ranks and
                trees have none
        Errors: UnsupportedOperation for what is no table; EngineError where a column is missing
        """
        question = self._asked_of(engine.adopt(table))
        totals = engine.totals(question, 0)
        keys = (
            [key[0] if len(key) == 1 else key for key in totals.keys.rows()]
            if question.by
            else [()]
        )
        return {
            name: {key: int(value) * p.total.unit for key, value in zip(keys, values, strict=True)}
            for p, values in question.with_followed(totals.values)
            if p.total.width is None
            for name in p.names
        }

    def _asked_of(self, data: Any) -> Any:
        """The question, of other rows. Input: data: as the engine adopts it."""
        return replace(self._question, step=rebased(self._question.step, data))

    def check(self, table: Any) -> None:
        """Check that this question can be asked of another table, such as
        tonight's, by names and types alone.

        A column whose type has changed is named, the unit above all: identifiers that became texts
        would be other units. No row is read, nothing is charged.

        Input:  table: any kind of table that can be protected
        Errors: UnknownColumn, WrongType; those of a release before it is paid

        >>> import polars as pl, dpframe as dp
        >>> query = pl.DataFrame({"user": [1, 2]}).dp(unit="user").count(max_rows=1)
        >>> query.check(pl.DataFrame({"user": ["1", "2"]}))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dpframe.errors.WrongType: check: 'user' has the type String here, and had Int64. Read ...
        """
        data, source = engine.adopt(table), source_of(self._question.step)
        types = dict(data.schema)
        for name, domain in source.data.schema:
            if name not in types:
                raise UnknownColumn(
                    f"check: the table has no column {name!r}, which the protected one has."
                )
            if types[name].dtype != domain.dtype:
                now, before = show(types[name].dtype), show(domain.dtype)
                raise WrongType(
                    f"check: {name!r} has the type {now} here, and had {before}. Read it as before."
                )
        question = self._asked_of(data)
        answer_kind(question).validate(question)

    @property
    def only_in_both(self) -> frozenset[str]:
        """The totals whose sensitivity is about groups that both tables
        have; see `Question.only_in_both`.
        """
        return self._question.only_in_both

    def _covering(self, ci: float | None, covers: str | None, data: Any) -> Question:
        """The question with the intervals that are asked for, about the rows that were named."""
        question = self._with_ci(ci)._question.covering(
            read_covers("noise" if covers is None else covers)
        )
        if ci is not None:
            check_ci(ci, question.by, question.outputs, question.layout, question.covers)
        if data is None:
            return question
        origin = engine.read_origin(data)
        return replace(
            question, step=exchanged(question.step, lambda source: replace(source, origin=origin))
        )

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
        covers: str | None = None,
        fill: bool = False,
        spender: str | None = None,
        purpose: str | None = None,
        supersedes: str | None = None,
        because: str | None = None,
    ) -> Release[Table_co]:
        """Pay, read the rows, draw the noise, and give the table back: nothing else does.

        Input:  epsilon > 0 and delta >= 0, the price; or rho > 0 (and delta, for keys found in the
                data) from a budget in ρ or with accountant="gdp"; or share: a part of the budget in
                the terms in which it buys less noise; noise: "laplace", "gaussian", or "auto" for
                the smallest standard deviation. Then counts and sums of listed groups may share a
                part of their noise ("k-norm" for ε alone, "elliptic" with δ or in ρ), which makes
                sums over groups worse. Choices, such as quantiles, use the δ unless
                noise="laplace"; name: in its budget, so that a second call gives the stored table
                for free; refresh: pay and draw again; on_pending: "retry" pays again for a name
                whose charged release was killed; "wait" first waits for a process of this machine
                that is at work on it; data: which rows these are, see `dpframe.protect`; ci: with
                0.95 each number has the ends of its 95% interval beside it, see `Release.with_ci`.
                Intervals are free, but a quantile pays half its price for one; covers: "noise" for
                intervals of the number without noise, or "population" for that of the population
                that these people are drawn from: of counts, sums, means, ratios, variances,
                covariances and correlations, and the default of rates of people with one row in a
                group. Elsewhere it costs 1/13 to 1/5 of the price; fill: with True, numbers that
                noise hides are not missing, see `Release.fill`; spender, purpose: who pays, and
                what for; supersedes: a release that this one corrects; because: the reason
        Output: Release; its table is of the kind that was protected
        Bound:  (epsilon, delta) differential privacy for the unit; unused δ is not charged
        Errors: InvalidPrice, DeltaRequired and each BudgetError, which spend nothing; EngineError

        >>> import polars as pl, dpframe as dp
        >>> users = pl.DataFrame({"user": [1, 1, 2]})
        >>> query = users.dp(unit="user", budget=dp.Budget(epsilon=1.0)).count_units()
        >>> out = query.release(epsilon=0.5, name="users")
        >>> out.table.shape, out.cost
        ((1, 1), Loss(epsilon=0.5, delta=0.0))
        >>> query.release(epsilon=0.5, name="users").table.equals(out.table)  # stored, for free
        True
        """
        budget = resolve_budget(self._budget, spender, purpose)
        question = self._covering(ci, covers, data)
        price = paid_price(budget, noise, name, share=share, epsilon=epsilon, delta=delta, rho=rho)
        check_flags("fill= is True or False: whether numbers that noise hides are shown.", fill)
        naming: Naming = {"name": name, "refresh": refresh, **read_pending(on_pending)}
        corrects = read_correction(name, supersedes, because)
        return _as_asked(release(question, budget, price, corrects, **naming), ci, covers, fill)

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
        """The error to expect under other limits:
        `query.tune({"max_rows": [1, 10, 100]}, epsilon=0.1)`.

        Input:  grid: lists of limits to try, by name: max_rows, max_groups, max_rows_per_group.
                Every combination is tried, in place of the limits of this question. epsilon or rho:
                the price of histograms in which each unit counts once; at: the ε or ρ of the
                planned release, by default nine times that price; delta: its δ, which is not
                charged here; noise, name, refresh as in `release`
        Output: one row for each combination: the limits, and the expected error of each column,
                `n_error` for `n` (column unit). It is the root mean square error over the groups,
                from removed rows and from noise, as precise as `dp.Auto` says. Numbers are not
                scaled here
        Bound:  ε (or ρ) differential privacy; the table is made of noisy histograms
        Errors: as in `release`; UnsupportedOperation with `dp.Rows(k)`, and for bounds that are not
                said

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame(
        ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
        ... )
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_rows=2).count()
        >>> query.tune({"max_rows": [1, 2, 5]}, epsilon=0.1).columns
        ['max_rows', 'count_error']
        """
        account = resolve_budget(self._budget)
        price = read_price(account.terms, epsilon=epsilon, rho=rho, noise=noise)
        table = tuned(
            self._question,
            grid,
            account,
            price=price,
            at=at,
            delta=delta,
            name=name,
            refresh=refresh,
        )
        shown: Table_co = as_kind(table, source_of(self._question.step).data.kind)
        return shown

    def __repr__(self) -> str:
        names = [output.name for output in self._question.outputs]
        subject = (
            visible(", ".join(names)) or f"the keys of {', '.join(map(repr, self._question.by))}"
        )
        return (
            f"Query of {subject}: not released. See .explain(), .accuracy(epsilon=...), "
            ".release(epsilon=...)."
        )

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A query cannot be pickled or copied out: the copy would hold raw rows."
        )


def _as_asked(
    answer: Release[Table_co], ci: float | None, covers: str | None, fill: bool
) -> Release[Table_co]:
    """The answer with intervals and with numbers that noise hides, where these
    were asked; other kinds hide none.
    """
    if not isinstance(answer, Release):
        return answer if ci is None else answer.with_ci(ci)
    if covers is not None and read_covers(covers) is Covers.NOISE:
        answer = answer._of_noise_alone()
    if ci is not None:
        answer = answer.with_ci(ci, covers)
    return answer.fill() if fill else answer


class AskedThrough(NoNumber, Hints):
    """A question whose answer is made of that of a `Query`.
    Nothing has been read and nothing paid.
    """

    __slots__ = ("_query",)
    _instead = NOT_RELEASED
    _query: Query[Any]

    def explain(self) -> Derivation:
        """The derivation: every step, and how far one unit moves each total."""
        return self._query.explain()

    @property
    def sensitivity(self) -> Any:
        """The distance by which one unit moves each total; see `Query.sensitivity`."""
        return self._query.sensitivity

    def __repr__(self) -> str:
        return repr(self._query)

    def __reduce__(self) -> Any:
        return self._query.__reduce__()
