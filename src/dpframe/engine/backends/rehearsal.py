"""Queries of classic Spark on tables without rows, which remember how they were made.

PySpark builds an expression by several calls to Java for each function in it, and narwhals builds
some hundred functions for a question. A question is built for the check before the charge. The
release makes the same calls on the tables themselves, with the expressions that are there, so they
are built once, and the release runs what was checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic import dataframe as classic


@dataclass(frozen=True, eq=False, repr=False)
class Made:
    """The call that makes a query: a function of the release's
    salt and of the queries before it.
    """

    call: Callable[..., DataFrame]
    before: tuple[Made, ...] = ()

    def asked(self, salt: int, done: dict[Made, DataFrame]) -> DataFrame:
        """The query on the tables themselves.
        Input: done: queries that were made already, which are made once.
        """
        if self not in done:
            done[self] = self.call(salt, *(made.asked(salt, done) for made in self.before))
        return done[self]


class Rehearsed(classic.DataFrame):
    """A query on tables without rows.

    `made` says how it was made. It is None where some part of the query is not known: a method that
    is not listed below, a column that belongs to a table without rows, or a table of which nobody
    said that it is public.
    """

    made: Made | None = None

    def __getitem__(self, item: Any) -> Any:
        self.made = None
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Any:
        column = super().__getattr__(name)  # or an error, as for what another library looks for
        self.made = None
        return column

    def salted(self, call: Callable[[int, DataFrame], DataFrame], salt: int) -> DataFrame:
        """A query in which the salt of the release stands, here with the salt of the check."""
        return rehearsed(call(salt, self), self.made and Made(call, (self.made,)))


class _Groups:
    """Rows by group, of which sums are made."""

    def __init__(self, rows: Rehearsed, keys: tuple[Any, ...]) -> None:
        self._rows, self._keys = rows, keys

    def agg(self, *sums: Any) -> DataFrame:
        def call(_: int, rows: DataFrame) -> DataFrame:
            return _plain("groupBy")(rows, *self._keys).agg(*sums)

        return self._rows.salted(call, 0)


def rehearsed(rows: DataFrame, made: Made | None) -> Rehearsed:
    """A query with the call that makes it."""
    query = Rehearsed(rows._jdf, rows.sparkSession)
    query.made = made
    return query


def public(beside: DataFrame, table: DataFrame) -> DataFrame:
    """A public table, which is the same in the check and in the release."""
    return rehearsed(table, Made(lambda _: table)) if isinstance(beside, Rehearsed) else table


def _plain(name: str) -> Callable[..., Any]:
    """PySpark's own method of this name."""
    method: Callable[..., Any] = getattr(classic.DataFrame, name)
    return method


def _remembered(name: str) -> Callable[..., Rehearsed]:
    """A method of queries whose result knows its call."""
    method = _plain(name)

    @wraps(method)
    def called(self: Rehearsed, *given: Any, **options: Any) -> Rehearsed:
        rows = method(self, *given, **options)
        others = [one for one in (*given, *options.values()) if isinstance(one, DataFrame)]
        before = [one.made for one in (self, *others) if isinstance(one, Rehearsed)]

        def call(_: int, first: DataFrame, *tables: DataFrame) -> DataFrame:
            rest = iter(tables)
            again = [next(rest) if isinstance(one, DataFrame) else one for one in given]
            named = {
                name: next(rest) if isinstance(one, DataFrame) else one
                for name, one in options.items()
            }
            return method(first, *again, **named)

        known = tuple(made for made in before if made is not None)
        return rehearsed(rows, Made(call, known) if len(known) == 1 + len(others) else None)

    return called


_ROWS = (
    "distinct",
    "drop",
    "dropDuplicates",
    "dropna",
    "filter",
    "limit",
    "repartition",
    "sortWithinPartitions",
)
_COLUMNS = ("select", "selectExpr", "toDF", "where", "withColumn", "withColumns")
for _name in (*_ROWS, *_COLUMNS, "join", "union", "unionAll", "unionByName"):
    setattr(Rehearsed, _name, _remembered(_name))
setattr(Rehearsed, "groupBy", lambda rows, *keys: _Groups(rows, keys))  # noqa: B010
