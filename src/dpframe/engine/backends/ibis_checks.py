"""What a database of Ibis without a module of its own must be able to do. It is asked when a table is protected."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import ibis
import ibis.expr.operations as ops

from dpframe.errors import UnsupportedOperation

__all__ = ["check_numbers", "check_operations"]

# Numbers whose sums, products and quotients are too large or too small for a float, and one ordinary number.
_EXTREME = (1.7e308, -1.7e308, 1e-200, 5e-324, 3.0)


_RELIABLE: WeakSet[Any] = WeakSet()  # connections to databases that computed with these numbers and did not fail

_NEEDED = (ops.Hash, ops.Floor, ops.IsNan, ops.Modulus, ops.Clip, ops.MinRank, ops.CountDistinct, ops.SearchedCase)


def check_operations(table: Any) -> None:
    """Refuse a database for which Ibis has no SQL for an operation that questions need. Errors: UnsupportedOperation.

    What one question lacks would otherwise be refused by that question alone, without the name of the operation.
    """
    backends, _ = table._find_backends()
    lacking = [op.__name__ for op in _NEEDED if backends and not backends[0].has_operation(op)]
    if lacking:
        raise UnsupportedOperation(
            f"dp.protect: Ibis cannot write {', '.join(lacking)} in the SQL of {backends[0].name}. Protect a Polars "
            "table: dp.protect(table.to_polars(), ...)."
        )


def check_numbers(table: Any) -> None:
    """Refuse a database that fails where a number overflows. The check computes with numbers of ours.

    Such a database could fail on a cell, after the charge, and the failure would tell that this cell exists.
    Errors: UnsupportedOperation.
    """
    backends, _ = table._find_backends()
    if not backends or backends[0] in _RELIABLE:  # a table without a database cannot be read
        return
    numbers = ibis.memtable({"x": list(_EXTREME)})
    pairs = numbers.cross_join(numbers.view().rename(y="x"))
    x, y = pairs.x, pairs.y
    results = pairs.select(a=x + y, b=x - y, c=x * y, d=x / y, e=ibis.cases((x.abs() < 1, x)).cast("float32"))
    for rows, failure in ((pairs, "takes in no table of numbers"), (results, "fails where a number overflows")):
        if not _runs(backends[0], rows):
            raise UnsupportedOperation(
                f"dp.protect: {backends[0].name} {failure}, so one cell could make a query fail. Protect a Polars "
                "table: dp.protect(table.to_polars(), ...)."
            )
    _RELIABLE.add(backends[0])


def _runs(backend: Any, rows: Any) -> bool:
    """Whether a database runs a query without an error."""
    try:
        backend.to_pyarrow(rows)
    except Exception:
        return False
    return True
