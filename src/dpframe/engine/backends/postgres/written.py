"""SQL of an operation with its operands: each operand is written once, in brackets where it needs them."""

from __future__ import annotations

import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from dpframe.engine.backends.ibis_compiler import Sql, pieces, raw
from dpframe.errors import UnsupportedOperation

_SHORT = 80  # an operand of at most this many characters may be repeated


def once(text: str, **operands: Sql | None) -> Sql:
    """SQL of an operation with its operands. Each operand is computed once, however often the SQL names it."""
    texts = {name: sql_of(operand) for name, operand in operands.items() if operand is not None}
    parts = pieces(text)
    names = parts[1::2]
    if any(len(texts[name]) > _SHORT and names.count(name) > 1 for name in texts):
        inner = ", ".join(f"{operand} AS {name}" for name, operand in texts.items())
        return raw(f"(SELECT {''.join(parts)} FROM (SELECT {inner} OFFSET 0) AS o)")
    return raw("(" + "".join(texts[x] if i % 2 else x for i, x in enumerate(parts)) + ")")


def sql_of(value: Sql) -> str:
    """The SQL of an operand, in brackets unless it is a name or a cast."""
    text = value.sql(PostgresCompiler.dialect, copy=False)
    return text if isinstance(value, (sge.Column, sge.Var, sge.Cast)) else f"({text})"


def bytewise(text: Sql) -> Sql:
    """A text that is compared by its bytes."""
    return raw(f'({sql_of(text)} COLLATE "C")')


def sendable(text: str) -> str:
    """A text that PostgreSQL can hold."""
    if "\0" in text or text.encode("utf-8", "replace").decode() != text:
        raise UnsupportedOperation(
            "PostgreSQL cannot hold a text with a zero byte, or one that is not Unicode: change it, as with "
            r"text.replace('\0', '')."
        )
    return text
