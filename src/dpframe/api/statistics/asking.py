"""What the methods of statistics stand on: a protected frame, its groups, and tables that release at once.

Each statistic is a function and three methods, which stand in one file of this folder. The methods of a frame take the
limit on rows, those of groups take none, and those of a table take whose privacy it is and the price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, Self, TypedDict

from dpframe import engine
from dpframe.api.arguments import read_limits, read_name
from dpframe.api.query import Query
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument
from dpframe.plan import Aggregate, Auto, Hints, Key, Keys, Layout, Limits, Question
from dpframe.plan.steps import Step
from dpframe.release import Account, Release

__all__ = ["AskedFrame", "AskedGroups", "AskedTable", "Once"]


class AskedFrame(Hints, Generic[Table_co]):
    """A protected frame: a plan step and what pays."""

    __slots__ = ("_budget", "_step")

    def __init__(self, step: Step, budget: Account | None) -> None:
        _ = step.table  # refuse now what cannot be
        engine.check_supported(step)
        self._step, self._budget = step, budget

    def _then(self, step: Step) -> Self:
        return type(self)(step, self._budget)

    def _only(self, column: str | None, verb: str) -> str:
        if column is not None:
            return read_name(column, verb)
        names = [name for name, c in self._step.table.columns.items() if not c.is_unit]
        if len(names) != 1:
            raise InvalidArgument(f"{verb}: name a column; there are {', '.join(map(repr, names))}.")
        return names[0]

    def _one(
        self, name: str, aggregate: Aggregate, max_rows: int | None = None, limits: Auto | None = None
    ) -> Query[Table_co]:
        verb = f"{aggregate.typed[:-1]}{'' if aggregate.typed.endswith('()') else ', '}{{limit}})"
        return self._query(((name, aggregate),), read_limits(max_rows, limits=limits), verb=verb)

    def _query(
        self,
        aggregates: tuple[tuple[str, Aggregate], ...],
        limits: Limits,
        *,
        by: tuple[str, ...] = (),
        keys: Keys | None = None,
        verb: str,
        layout: Layout | None = None,
        other: Key | None = None,
    ) -> Query[Table_co]:
        aggregates = tuple(part for name, aggregate in aggregates for part in aggregate.columns(name))
        asked = Question(self._step, by, keys, limits, aggregates, layout or Layout(), verb=verb, other=other)
        return Query(asked, self._budget)


class AskedGroups(Hints, Generic[Table_co]):
    """Groups of a protected frame: a question without aggregates, what pays, and which columns are keys now."""

    __slots__ = ("_budget", "_groups", "_written")

    def __init__(self, groups: Question, budget: Account | None, written: frozenset[str] = frozenset()) -> None:
        """`groups` is a question without aggregates; `written` are columns whose values a key has replaced."""
        groups.unit_limits.groups("groups")  # columns, keys and the limit are checked as soon as they are named
        self._groups, self._budget, self._written = groups, budget, written

    def _query(self, aggregates: tuple[tuple[str, Aggregate], ...]) -> Query[Table_co]:
        for _, aggregate in aggregates:
            name = getattr(aggregate, "column", None)
            if name in self._written:
                raise InvalidArgument(
                    f"{aggregate.typed}: the keys are written into {name!r}, in place of its values. Give the keys "
                    f"another name: group_by((...).alias('{name}_key'), ...)."
                )
        columns = tuple(part for name, aggregate in aggregates for part in aggregate.columns(name))
        return Query(replace(self._groups, aggregates=columns), self._budget)


class _Whose(TypedDict, total=False):
    """Whose privacy, and what pays."""

    unit: Any
    budget: Any
    neighbors: str
    data: Any


class _Price(TypedDict, total=False):
    """What `Query.release` takes."""

    epsilon: float
    delta: float
    rho: float
    noise: str
    name: str
    refresh: bool
    on_pending: str
    ci: float
    covers: str


class Once(_Whose, _Price, total=False):
    """What a one-liner takes besides the question: whose privacy, the price, and the limit on rows, or `dp.Auto()`."""

    max_rows: int
    limits: Any


class AskedTable(Hints):
    """A table that is protected, asked and released in one line, through verbs that are those of `PrivateFrame`."""

    def __call__(self, unit: Any = None, budget: Any = None, neighbors: str = "add-remove", data: Any = None) -> Any:
        """The protected frame."""
        raise NotImplementedError

    def _once(self, verb: str, *args: Any, **options: Any) -> Release:
        whose, price = (
            {name: options.pop(name) for name in kind.__annotations__ if name in options} for kind in (_Whose, _Price)
        )
        question: Callable[..., Any] = getattr(self(**whose), verb)
        return question(*args, **options).release(**price)  # type: ignore[no-any-return]
