"""Constants that SQLite reads exactly, and queries without nested subqueries."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache

import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.dialects import SQLite

Source = sge.Table | sge.Subquery  # what a query reads


def text_literal(text: str) -> str:
    """SQL of a text as the bytes of its UTF-8."""
    return f"x'{text.encode('utf-8', 'surrogatepass').hex()}'"


@cache
def float_literal(value: float) -> str:
    """SQL of a float, exactly.

    Some versions of SQLite read a decimal that is not the nearest float. So this version is asked
    to read it, without a table. Where it reads another float, the constant is a whole number times
    powers of two, whose products are exact.
    """
    if math.isnan(value):
        return "NULL"
    if math.isinf(value):
        return "9e999" if value > 0 else "(-9e999)"
    text = repr(value)
    if _read(text) == value:
        return f"({text})"
    mantissa, exponent = math.frexp(abs(value))
    power, factors = exponent - 53, [f"{int(mantissa * 2**53)}.0"]
    while power:
        step = max(min(power, 50), -50)
        factors.append(f"{2 ** abs(step)}.0")
        factors[-1] = ("* " if step > 0 else "/ ") + factors[-1]
        power -= step
    return f"({'-' if value < 0 else ''}{' '.join(factors)})"


def _read(text: str) -> float:
    """The number that this version of SQLite reads from a text of digits."""
    with closing(sqlite3.connect(":memory:")) as connection:
        (number,) = connection.execute(f"SELECT {text}").fetchone()
    return float(number)


def flat(query: sge.Query) -> sge.Query:
    """A query whose subqueries stand beside each other, each under a name in WITH.

    SQLite's parser has room for about a hundred unfinished brackets, and a question has more steps
    than that. The names are dpframe's: a table of the user called "t1" would otherwise be replaced
    by a subquery of that name.
    """
    names: dict[str, str] = {}
    parts: list[tuple[str, sge.Query]] = []
    for cte in query.ctes:
        names[cte.alias] = f"dpframe_{cte.alias}"
    for cte in query.ctes:
        parts.append((names[cte.alias], _flattened(cte.this, names, parts)))
    query.set("with_" if "with_" in query.args else "with", None)
    main = _flattened(query, names, parts)
    for name, part in parts:
        main = main.with_(sg.to_identifier(name, quoted=True), as_=part, copy=False, dialect=SQLite)
    return main


def _flattened(
    query: sge.Query, names: dict[str, str], parts: list[tuple[str, sge.Query]]
) -> sge.Query:
    """A query that reads tables alone.
    Its subqueries are added to `parts`, those that others read first.
    """
    for table in _sources(query):
        match table:
            case sge.Table():
                name = names.get(table.name)
                if name is not None and not table.db:
                    alias = table.alias_or_name
                    table.set("this", sg.to_identifier(name, quoted=True))
                    table.set("alias", sge.TableAlias(this=sg.to_identifier(alias, quoted=True)))
            case sge.Subquery():
                alias = table.alias
                inner = _flattened(table.this, names, parts)
                name = f"dpframe_{len(parts)}q"
                parts.append((name, inner))
                table.replace(sge.table_(name, quoted=True).as_(alias, quoted=True, table=True))
    if isinstance(query, sge.Select) and query.args.get("joins"):
        for table in _sources(query):
            table.replace(_large(table))
    return query


def _large(table: Source) -> sge.Subquery:
    """A table of a join, beside no row of itself, so that SQLite's planner takes
    it for large and makes an index.

    The planner believes that a group-by gives 100 rows at most, and subqueries of subqueries even
    fewer. Without an index, a join of n units with as many rows compares n² pairs: 20,000 rows took
    2 s, and 40,000 took 9 s.
    """
    rows = sg.select("*").from_(
        sge.Table(
            this=table.this.copy(), db=table.args.get("db"), catalog=table.args.get("catalog")
        )
    )
    none = rows.where(sge.false(), copy=True)
    # with a limit it stays a subquery
    both = sge.Union(this=rows, expression=none, distinct=False).limit(-1)
    return sge.Subquery(
        this=both, alias=sge.TableAlias(this=sg.to_identifier(table.alias_or_name, quoted=True))
    )


def _sources(query: sge.Query) -> Sequence[Source]:
    """The tables and subqueries that a query reads."""
    match query:
        case sge.Union() | sge.Intersect() | sge.Except():
            return [source for side in (query.left, query.right) for source in _sources(side)]
        case sge.Subquery():
            return _sources(query.this)
        case sge.Select():
            origin = query.args.get("from_") or query.args.get("from")
            first = [origin.this] if origin is not None else []
            return [*first, *(join.this for join in query.args.get("joins") or ())]
    return []
