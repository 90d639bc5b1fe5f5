"""One way to ask: many expressions in one query on one table, each value held against `reference`.

What was held is counted, and so is what was refused. A refusal must name what to type: a call, a
type, an argument.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cells import Cells
from engines import Brought, Engine, rows_of
from reference import NANO, Typed, family, held, value

import dpframe as dp
from dpframe import engine as asked
from dpframe.errors import DpFrameError, EngineError
from dpframe.plan import Call, kind
from dpframe.plan.nodes import names, text
from inside import node_of, question_of, step_of

__all__ = ["TALLY", "Tally", "check", "refused", "takes_steps", "wanted"]

# What to type: a call, an argument, a type, a word of SQL, a column; or which values or names to
# give.
_CALLS, _TYPES = r"[a-z_]\w*\(|\b[a-z_]+=|[a-z]\w*\.[a-z]\w+|\['", r"'(u?int|float)\d+'"
_TYPED = re.compile(
    rf"{_CALLS}|{_TYPES}|\b(CAST|SET|CREATE|AT TIME ZONE|Give|Compare with|such as) "
)


@dataclass
class Tally:
    """Numbers of checked operations, cells and combinations of both, and
    the refusals, for each engine.
    """

    operations: dict[str, set[str]] = field(default_factory=dict)
    cells: Counter[str] = field(default_factory=Counter)
    combinations: Counter[str] = field(default_factory=Counter)
    # by operation, error and engine, with a tab between
    refusals: Counter[str] = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)  # one of each operation and error

    def add(self, engine: str, operations: set[str], rows: int, many: int) -> None:
        """Add `many` expressions, with their operations, on a
        table of `rows` rows to the counts.
        """
        self.operations.setdefault(engine, set()).update(operations)
        self.cells[engine] += rows
        self.combinations[engine] += rows * many

    def refuse(self, engine: str, operation: str, error: DpFrameError) -> None:
        """What an engine refuses before the charge."""
        key = f"{operation}: {type(error).__name__}"
        self.refusals[f"{key}\t{engine}"] += 1
        self.messages.setdefault(key, str(error))

    def plain(self) -> dict[str, Any]:
        """The counts as JSON, for the way from a worker to the controller."""
        operations = {name: sorted(words) for name, words in self.operations.items()}
        return {
            "operations": operations,
            "cells": dict(self.cells),
            "combinations": dict(self.combinations),
            "refusals": dict(self.refusals),
            "messages": self.messages,
        }

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add the counts of a worker."""
        for name, words in other["operations"].items():
            self.operations.setdefault(name, set()).update(words)
        self.cells.update(other["cells"])
        self.combinations.update(other["combinations"])
        self.refusals.update(other["refusals"])
        self.messages = {**other["messages"], **self.messages}

    def lines(self) -> list[str]:
        """The counts as a text for people."""
        rows = [
            f"{name}: {len(words)} operations, {self.cells[name]:,} rows, "
            f"{self.combinations[name]:,} combinations"
            for name, words in sorted(self.operations.items())
        ]
        operations, rows_held = set().union(*self.operations.values()), sum(self.cells.values())
        size = (
            f"{len(operations)} operations x {rows_held:,} rows of cells x {len(self.operations)} "
            f"engines or settings: {sum(self.combinations.values()):,} values held"
        )
        refusals = (
            f"{self.refusals.total():,} refusals before the charge, each naming what to type:"
        )
        return [size, *rows, refusals, *self._refusals()]

    def _refusals(self) -> list[str]:
        """One line for each operation and error, with one of its messages."""
        by_key: dict[str, Counter[str]] = {}
        for name, many in self.refusals.items():
            key, engine = name.split("\t")
            by_key.setdefault(key, Counter())[engine] += many
        return [
            f"  {key}, {engines.total():,} times on {len(engines)} engines, as: "
            f"{self.messages[key]:.240}"
            for key, engines in sorted(by_key.items())
        ]


TALLY = Tally()


def refused(engine: str, operation: str, error: DpFrameError, question: str = "") -> list[str]:
    """Count a refusal. Return a complaint if its message, without the words of the
    question, names nothing to type.
    """
    TALLY.refuse(engine, operation, error)
    words = str(error).replace(question, "") if question else str(error).split(": ", 1)[-1]
    words = words.replace("with_columns(x=...)", "").replace("with_columns(x=)", "")
    return [] if _TYPED.search(words) else [f"a refusal names nothing to type: {error}"]


_WANTED: dict[Any, list[Typed]] = {}
_HELD: dict[Any, tuple[Cells, list[Typed]]] = {}


def _held(cells: Cells, *, readable: bool) -> list[Typed]:
    """The cells of a column as operations see them;
    for a column that is not read, whether each cell is null.
    """
    key = (id(cells), readable)
    if key not in _HELD:
        typed = [
            held(cells.dtype, cell) if readable else Typed(cells.dtype, cell)
            for cell in cells.cells
        ]
        _HELD[key] = (cells, typed)
    return _HELD[key][1]


def wanted(expr: dp.Expr, table: Mapping[str, Cells], frame: dp.PrivateFrame) -> list[Any]:
    """What an expression is in each row of a table, from `reference`;
    computed once for all engines.
    """
    read = sorted(names(node_of(expr)))
    readable = [kind(step_of(frame).table.columns[name].domain.dtype) != "other" for name in read]
    key = (text(node_of(expr)), *(id(table[name]) for name in read), *readable)
    if key not in _WANTED:
        columns = [
            _held(table[name], readable=can) for name, can in zip(read, readable, strict=True)
        ]
        rows = (
            zip(*columns, strict=True) if columns else [()] * len(next(iter(table.values())).cells)
        )
        _WANTED[key] = [
            value(node_of(expr), dict(zip(read, row, strict=True))).value for row in rows
        ]
    return _WANTED[key]


def same(got: Any, want: Any) -> bool:
    """Whether two values are of one kind and equal; 0.0 and -0.0 are equal."""
    return type(got) is type(want) and got == want


def check(
    engine: Engine, table: Mapping[str, Cells], exprs: Sequence[dp.Expr], *, most: int = 40
) -> None:
    """Hold expressions on an engine: a typed refusal that does not depend on
    rows, or the values of `reference`.

    An expression is refused from the types of a table alone, which are those of the table without
    rows.
    """
    brought = engine.bring(table)
    empty = engine.bring({name: replace(cells, cells=()) for name, cells in table.items()})
    frame, nothing = (dp.protect(side.native, unit=dp.Rows(1)) for side in (brought, empty))
    assert step_of(frame).table.columns == step_of(nothing).table.columns, (
        "the types of a table depend on its rows"
    )
    failures: list[str] = []
    accepted = []
    for expr in exprs:
        if names(node_of(expr)) <= brought.cells.keys():
            try:
                frame.with_columns(x=expr)
                accepted.append(expr)
            except DpFrameError as error:
                failures += refused(engine.name, _operation(expr), error, text(node_of(expr)))
    for batch in _batches(accepted, engine.batch):
        failures += _values(engine, brought, frame, nothing, batch)
    operations = {word for expr in accepted for word in _operations(node_of(expr))}
    TALLY.add(engine.name, operations, brought.height, len(accepted))
    assert not failures, f"{len(failures)} failures on {engine.name}\n" + "\n".join(failures[:most])


_LONG = {
    "log",
    "log1p",
    "exp",
    "power",
    "round",
    "dt.truncate",
    "dt.month_start",
    "dt.week",
    "str.replace",
    "str.split",
}
_FEW, _DATAFRAMES = 4, 100


def takes_steps(expr: dp.Expr) -> bool:
    """Whether an expression is computed in several steps."""
    return bool(_operations(node_of(expr)) & _LONG)


def _batches(exprs: Sequence[dp.Expr], most: int) -> list[list[dp.Expr]]:
    """Expressions that one query asks: few of those that are computed in several
    steps, each a query in a query.
    """
    long = [expr for expr in exprs if takes_steps(expr)]
    short = [expr for expr in exprs if not takes_steps(expr)]
    sizes = ((short, most), (long, most if most >= _DATAFRAMES else _FEW))
    return [list(part[i : i + size]) for part, size in sizes for i in range(0, len(part), size)]


def _operation(expr: dp.Expr) -> str:
    return node_of(expr).operation if isinstance(node_of(expr), Call) else "column"


def _operations(node: Any) -> set[str]:
    return {node.operation}.union(*map(_operations, node.args)) if isinstance(node, Call) else set()


def _values(
    engine: Engine,
    brought: Brought,
    frame: dp.PrivateFrame,
    nothing: dp.PrivateFrame,
    exprs: Sequence[dp.Expr],
) -> list[str]:
    """The differences between the values and totals of one query and those of `reference`."""
    named = {f"e{i}": expr for i, expr in enumerate(exprs)}
    made = frame.with_columns(**named)
    try:
        values, totals = rows_of(made, list(named)), _totals(made, list(named))
    except BaseException as error:
        if len(exprs) > 1:
            middle = len(exprs) // 2
            halves = (exprs[:middle], exprs[middle:])
            return [x for half in halves for x in _values(engine, brought, frame, nothing, half)]
        return _raised(engine, nothing, exprs[0], error)
    failures = []
    for name, expr in named.items():
        failures += _unlike(
            engine, brought, made, name, expr, values[name], wanted(expr, brought.cells, frame)
        )
        if totals[name] != sum(x is not None for x in values[name]):
            failures.append(f"{expr}: counted {totals[name]} values")
    return failures


def _raised(
    engine: Engine, nothing: dp.PrivateFrame, expr: dp.Expr, error: BaseException
) -> list[str]:
    """A refusal if the query on the table without rows is refused with a typed
    error too; otherwise a failure.
    """
    made = nothing.with_columns(x=expr)
    try:
        asked.validate(question_of(made.agg(n=dp.count("x"))))
        rows_of(made, ["x"])  # whether there is a value may be known without it
    except EngineError:
        return [f"{expr}: no query of it runs, and nothing says what to do"]
    except DpFrameError as refusal:
        return refused(engine.name, _operation(expr), refusal, text(node_of(expr)))
    return [f"{expr}: raised {type(error).__name__}: {error}"[:600]]


def _unlike(
    engine: Engine,
    brought: Brought,
    made: dp.PrivateFrame,
    name: str,
    expr: dp.Expr,
    got: list[Any],
    want: list[Any],
) -> list[str]:
    """The rows whose value differs from the expected one, or is outside of
    the domain that the plan states.
    """
    facts, failures = step_of(made).table.columns[name].domain, []
    scale = NANO[facts.dtype.time_unit] if family(facts.dtype) in ("datetime", "duration") else 1
    low, high = (end * scale for end in facts.bounds) if facts.bounds else (-math.inf, math.inf)
    for row, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        if mine is None and not facts.nullable:
            failures.append(f"null, and the plan says there is none{_cells(expr, brought, row)}")
        if isinstance(mine, (int, float)) and not low <= mine <= high:
            failures.append(f"{mine!r} is outside of {facts.bounds}{_cells(expr, brought, row)}")
        if not same(mine, theirs):
            failures.append(f"{mine!r:.60}, not {theirs!r:.60}{_cells(expr, brought, row)}")
    return [f"{expr}: in {len(failures)} rows: {failures[0]}"] if failures else []


def _cells(expr: dp.Expr, brought: Brought, row: int) -> str:
    read = {name: brought.cells[name].cells[row] for name in sorted(names(node_of(expr)))}
    return f", for {read!r:.120} in row {row}"


def _totals(made: dp.PrivateFrame, columns: Sequence[str]) -> dict[str, int]:
    """How many values each column has, by one query as a release asks it."""
    ask = question_of(made.agg(**{f"n_{name}": dp.count(name) for name in columns}))
    totals = asked.totals(ask, 1)
    read = {name: i for i, paid in enumerate(ask.read) for name in paid.names}
    return {name: int(totals.values[read[f"n_{name}"]][0]) for name in columns}
