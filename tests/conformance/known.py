"""What is known to differ, each with its reason and an example; an example that no longer differs fails a test."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dpframe as dp
from dpframe.plan.nodes import names, text

__all__ = ["KNOWN", "Known"]


@dataclass(frozen=True)
class Known:
    """Cells for which operations on some engines give another value than `reference`."""

    engines: tuple[str, ...]  # how their names begin
    operations: tuple[str, ...]  # as they are written
    cells: Callable[[Any], bool]
    example: tuple[dp.Expr, str, Any]  # an expression of a column "x", the name of its type, a cell
    reason: str

    def covers(self, engine: str, expr: Any, brought: Any, row: int) -> bool:
        """Whether a difference is the known one."""
        written = text(expr._node)
        return (
            engine.startswith(self.engines)
            and any(operation in written for operation in self.operations)
            and any(self.cells(brought.cells[name].cells[row]) for name in names(expr._node))
        )


def _special(cell: Any) -> bool:
    """Whether a text has a letter whose other case is several letters, or depends on those beside it."""
    if not isinstance(cell, str):
        return False
    return any(len(x.upper()) > 1 or len(x.lower()) > 1 or x == "Σ" or unicodedata.category(x) == "Lt" for x in cell)


KNOWN: tuple[Known, ...] = (
    Known(
        ("duckdb", "ibis"),
        ("to_uppercase", "to_lowercase"),
        _special,
        (dp.col("x").str.to_uppercase(), "string", "ß"),
        "DuckDB puts one letter for one letter; Polars, Spark and Python follow Unicode, where ß becomes SS.",
    ),
)
