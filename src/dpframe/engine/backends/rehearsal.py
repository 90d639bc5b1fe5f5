"""Queries on tables without rows, which remember how they were made.

narwhals checks each of the some hundred functions of a question, and PySpark makes several calls to
Java for each. A question is built for the check before the charge. The release makes the same calls
on the tables themselves, with the expressions that are there, so they are built once, and the
release runs what was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import narwhals as nw

from dpframe.engine.backends.base import Frame


@dataclass(frozen=True, eq=False, repr=False)
class Made:
    """The call that makes a query: a function of the release's
    salt and of the queries before it.
    """

    call: Callable[..., Any]
    before: tuple[Made, ...] = ()

    def asked(self, salt: int, done: dict[Made, Any]) -> Any:
        """The query on the tables themselves.
        Input: done: queries that were made already, which are made once.
        """
        if self not in done:
            done[self] = self.call(salt, *(made.asked(salt, done) for made in self.before))
        return done[self]


class Rehearsed:
    """A query on tables without rows, beside the engine's own class of queries as a base.

    `made` says how it was made. It is None where some part of the query is not known: a method that
    the subclass does not list, a column that belongs to a table without rows, or a table of which
    nobody said that it is public.
    """

    made: Made | None = None

    def __init_subclass__(cls, *, own: type, grouping: str, methods: Sequence[str]) -> None:
        """Input: own: the engine's class; the names of its method that groups
        rows, and of those that give a query.
        """
        for name in methods:
            setattr(cls, name, _remembered(cls, own, getattr(own, name)))
        grouped = getattr(own, grouping)
        setattr(cls, grouping, lambda rows, *keys: _Groups(rows, grouped, _lasting(keys)))


class _Groups:
    """Rows by group, of which sums are made."""

    def __init__(self, rows: Rehearsed, grouped: Callable[..., Any], keys: Sequence[Any]) -> None:
        self._rows, self._grouped, self._keys = rows, grouped, keys

    def agg(self, *sums: Any) -> Any:
        lasting = _lasting(sums)

        def call(_: int, rows: Any) -> Any:
            return self._grouped(rows, *self._keys).agg(*lasting)

        return salted(self._rows, call, 0)


def rehearsed(cls: type[Rehearsed], rows: Any, made: Made | None) -> Any:
    """A query of the engine with the call that makes it."""
    query = object.__new__(cls)
    vars(query).update(vars(rows), made=made)
    return query


def made_of(query: object) -> Made | None:
    """How a query was made; None where it is not known."""
    return query.made if isinstance(query, Rehearsed) else None


def salted(rows: Any, call: Callable[[int, Any], Any], salt: int) -> Any:
    """A query in which the salt of the release stands, here with the salt of the check."""
    query, made = call(salt, rows), made_of(rows)
    return query if made is None else rehearsed(type(rows), query, Made(call, (made,)))


def public(beside: Any, table: Any) -> Any:
    """A public table, which is the same in the check and in the release."""
    if made_of(beside) is None:
        return table
    return rehearsed(type(beside), table, Made(lambda _: table))


def asked_again(frames: Sequence[Frame], salt: int) -> list[Frame] | None:
    """Frames on tables without their rows, as queries on the tables
    themselves, under another salt; None where it is not known how one was made.
    """
    known = [made for frame in frames if (made := made_of(frame.to_native())) is not None]
    done: dict[Made, Any] = {}
    if len(known) < len(frames):
        return None
    return [nw.from_native(made.asked(salt, done)) for made in known]


def _remembered(cls: type[Rehearsed], own: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of queries whose result knows its call."""

    @wraps(method)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        given = _lasting(arguments)
        rows = method(self, *given, **options)
        others = [one for one in (*given, *options.values()) if isinstance(one, own)]
        before = [made for one in (self, *others) if (made := made_of(one)) is not None]

        def call(_: int, first: Any, *tables: Any) -> Any:
            rest = iter(tables)
            again = [next(rest) if isinstance(one, own) else one for one in given]
            named = {
                name: next(rest) if isinstance(one, own) else one for name, one in options.items()
            }
            return method(first, *again, **named)

        known = len(before) == 1 + len(others)
        return rehearsed(cls, rows, Made(call, tuple(before)) if known else None)

    return called


def _lasting(arguments: Sequence[Any]) -> list[Any]:
    """Arguments that can be read a second time, which generators cannot."""
    return [list(one) if hasattr(one, "__next__") else one for one in arguments]
