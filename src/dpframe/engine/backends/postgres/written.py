"""SQL of an operation with its operands: each operand is written once, in brackets where it needs them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler

from dpframe.errors import UnsupportedOperation

_SHORT = 80  # an operand of at most this many characters may be repeated
_OPERANDS = re.compile(r"(?<![\w'\"])([abc])(?![\w'\"])")


@cache
def _pieces(text: str) -> Sequence[str]:
    """SQL in pieces: text, the name of an operand, text, …."""
    return _OPERANDS.split(" ".join(text.split()))


def once(text: str, **operands: Any) -> Any:
    """SQL of an operation with its operands. Each operand is computed once, however often the SQL names it."""
    texts = {name: sql_of(operand) for name, operand in operands.items() if operand is not None}
    pieces = _pieces(text)
    names = pieces[1::2]
    if any(len(texts[name]) > _SHORT and names.count(name) > 1 for name in texts):
        inner = ", ".join(f"{operand} AS {name}" for name, operand in texts.items())
        return raw(f"(SELECT {''.join(pieces)} FROM (SELECT {inner} OFFSET 0) AS o)")
    return raw("(" + "".join(texts[x] if i % 2 else x for i, x in enumerate(pieces)) + ")")


def raw(text: str) -> Any:
    """SQL text as a node of sqlglot, which writes it unchanged."""
    return sge.Var(this=text)


def sql_of(value: Any) -> str:
    """The SQL of an operand, in brackets unless it is a name or a cast."""
    text: str = value.sql(PostgresCompiler.dialect, copy=False)
    return text if isinstance(value, (sge.Column, sge.Var, sge.Cast)) else f"({text})"


def bytewise(text: Any) -> Any:
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
