"""What is known to differ, each with its reason and an example; an example that no longer differs fails a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dpframe as dp
from dpframe.plan.expressions import names, text

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


_2037 = (2037 - 1970) * 365 * 86_400 * 10**9  # what a list of past changes of clocks ends with

KNOWN: tuple[Known, ...] = (
    Known(
        ("polars", "pandas", "pyarrow", "dask"),
        (".dt.",),
        lambda cell: isinstance(cell, int) and cell > _2037,
        (dp.col("x").dt.hour(), "datetime_berlin", 9_223_372_036_000_000_000),
        "Polars knows changes of a zone's clock as far as its list goes; DuckDB and Python go on by the last rule.",
    ),
)
