"""Compiling an expression to columns: each operation is computed once,
and is stated once in a query.

An engine's query is a tree. Where an operation reads its operand twice, the operand's whole
expression would stand there twice, and that of its operand four times. So such an operand becomes a
column of its own, and so does an expression that is large. Columns of one level read those of lower
levels. A column that nothing reads any more is left out.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import narwhals as nw

from dpframe.engine.backends import Frame
from dpframe.engine.stages.coerced import WITHIN, int64, not_nan, to_float
from dpframe.engine.stages.expressions import LOWERED, SIGNS
from dpframe.engine.stages.operands import Columns, Operands
from dpframe.plan import Call, ColumnDomain, Literal, Name, Node, Table, composed, nodes, overflows

_LARGE = 32  # operations and operands of an expression that need not be a column
# Operations that state each operand once. Any other may state it several times, so its operands are
# columns.
_ONCE = frozenset(
    {
        "and",
        "or",
        "xor",
        "is_null",
        "case",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    }
)
_TRIED = 8  # operations of a chain of whole numbers whose results are tried together


@dataclass
class _Value:
    """A compiled node."""

    expr: nw.Expr
    domain: ColumnDomain
    level: int  # it reads columns of lower levels
    reads: frozenset[str] = frozenset()  # the columns that it reads, and perhaps others
    rough: bool = False  # whether it may be NaN
    size: int = 1  # operations and operands in the expression

    @property
    def clean(self) -> nw.Expr:
        """The value, null where it is NaN."""
        return not_nan(self.expr) if self.rough else self.expr


class Lowering(Columns):
    """Expressions on one table.
    An operation that narwhals lacks adds a column to `frame`, computed by the engine.

    Input:  a table and its rows; keep: the columns that are needed of the rows besides what the
            expressions read
    """

    def __init__(self, table: Table, frame: Frame, keep: Iterable[str]) -> None:
        super().__init__(frame, keep)
        self.table = table
        # what was compiled, by the identity of its node
        self._done: dict[int, tuple[Node, _Value]] = {}
        self._domains: dict[int, tuple[Node, ColumnDomain]] = {}
        # for each node, by identity: how many readers it has yet to have
        self._uses: Counter[int] = Counter()
        # columns that steps on the way have written, by their version
        self._written: dict[str, _Value] = {}

    def exprs(self, several: Iterable[Node]) -> list[nw.Expr]:
        """Several nodes, none of which reads another.
        They share levels, so a query of many nodes nests no deeper.
        """
        return [value.clean for value in self._roots(several)]

    def _roots(self, several: Iterable[Node]) -> list[_Value]:
        roots = [composed(node, self.table) for node in several]
        self._done = {}
        self._count(roots)
        return self._values(roots)

    def write(self, table: Table, columns: Mapping[str, Node], needed: Container[str]) -> None:
        """Compile the columns that a step writes.
        Those of the next step may read them: it has the same frame.

        Input:  the table before the step; an expression for each new version; needed: the versions
                that are read later
        """
        self.table, self._domains = table, {}
        self._written.update(zip(columns, self._roots(columns.values()), strict=True))
        before = {id(value): value for value in self._written.values()}
        self._written = {
            version: value for version, value in self._written.items() if version in needed
        }
        for gone in before.keys() - set(map(id, self._written.values())):
            self._readers.subtract(before[gone].reads)

    @property
    def written(self) -> dict[str, nw.Expr]:
        """The columns that steps have written and that are still needed."""
        return {version: value.clean for version, value in self._written.items()}

    def expr(self, node: Node) -> nw.Expr:
        """The narwhals expression that computes a node."""
        return self.exprs([node])[0]

    def _count(self, roots: Sequence[Node]) -> None:
        """Count the readers of each node and column.
        A root is read by the caller, who is never done with it.
        """
        self._uses = Counter(map(id, roots))
        seen, pending = set(self._uses), list(roots)
        while pending:
            node = pending.pop()
            if node.column is not None:
                name = self.table.columns[node.column].id
                if name in self._written:
                    self._uses[id(node)] += 1  # a step that comes later: see `write`
                else:
                    self._readers[name] += 1
                    self._names[name] = None
            for arg in node.args:
                self._uses[id(arg)] += 1
                if id(arg) not in seen:
                    seen.add(id(arg))
                    pending.append(arg)

    def _value(self, node: Node) -> _Value:
        """A compiled node. One that stands in several places is compiled once."""
        if id(node) not in self._done:
            self._done[id(node)] = (node, self._compiled(node))
        value = self._done[id(node)][1]
        self._level = max(self._level, value.level)
        return value

    def _compiled(self, node: Node) -> _Value:
        domain = nodes.domain(node, self.table, "", self._domains)
        match node:
            case Name(name):
                column = self.table.columns[name].id
                if column in self._written:
                    return self._written[column]
                return _Value(self._column(column), domain, self._level, frozenset({column}))
            case Literal(scalar):
                if isinstance(scalar, float):
                    return _Value(self.engine.real(scalar), domain, self._level)
                constant = self.constant(self.engine.constant(scalar, domain.dtype))
                return _Value(nw.lit(constant), domain, self._level)
            case Call(operation, args, options):
                calls = self._chain(node) if operation in SIGNS and domain.dtype == nw.Int64 else []
                args = (calls[0].args[0], *(call.args[1] for call in calls)) if calls else args
                values = self._values(args)
                made = len(self._made)
                if calls:
                    value = self._whole(calls, values)
                else:
                    rough = operation in SIGNS
                    once = rough or operation in _ONCE
                    self._hold(
                        [value for value in values if not once or value.size > _LARGE], rough=rough
                    )
                    operands = [value.expr if rough else value.clean for value in values]
                    domains = [value.domain for value in values]
                    expr = LOWERED[operation](self, Operands(operands, domains, dict(options)))
                    size = 1 + sum(value.size for value in values)
                    value = _Value(expr, domain, self._level, rough=rough, size=size)
                self._read(value, args, values, made)
                return value

    def _read(
        self, value: _Value, args: Sequence[Node], values: Sequence[_Value], made: int
    ) -> None:
        """Note the columns that a new value reads: those of its operands,
        and those that were made for it.
        """
        value.reads = frozenset(self._made[made:]).union(*(operand.reads for operand in values))
        self._readers.update(value.reads)
        for arg, operand in zip(args, values, strict=True):
            self._uses[id(arg)] -= 1
            if not self._uses[id(arg)]:
                self._readers.subtract(operand.reads)

    def _chain(self, node: Call) -> list[Call]:
        """An operation on whole numbers, after those that come before it in a chain
        of its kind, the first at first.
        """
        calls = [node]
        while len(calls) < _TRIED:
            inner = calls[0].args[0]
            if (
                not isinstance(inner, Call)
                or not nodes.alike(inner, node.operation)
                or self._uses[id(inner)] > 1
            ):
                break
            calls.insert(0, inner)
        return calls

    def _whole(self, calls: Sequence[Call], values: Sequence[_Value]) -> _Value:
        """Sums, differences and products of whole numbers, null where one on
        the way does not fit in 64 bits.

        Those that may not fit are computed as floats before. Where one of these is too large, the
        first number is null, so that no engine fails.
        """
        domains = [nodes.domain(call, self.table, "", self._domains) for call in calls]
        tried = any(overflows(domain.bounds) for domain in domains)
        self._hold([value for value in values if tried or value.size > _LARGE], rough=False)
        total, *others = (int64(value.clean, value.domain) for value in values)
        signs = [SIGNS[call.operation] for call in calls]
        number, tests = to_float(total), []
        for sign, other, domain in zip(signs, others, domains, strict=True):
            number = sign(number, to_float(other))
            if overflows(domain.bounds):
                tests.append(number.abs() < WITHIN)
        if tests:
            total = nw.when(reduce(operator.and_, tests)).then(total)
        for sign, other in zip(signs, others, strict=True):
            total = sign(total, other)
        size = _LARGE + 1 if tried else len(calls) + sum(value.size for value in values)
        return _Value(total, domains[-1], self._level, size=size)

    def _values(self, args: Iterable[Node]) -> list[_Value]:
        start = end = self._level
        values = []
        for node in args:
            self._level = start
            values.append(self._value(node))
            end = max(end, self._level)
        self._level = end
        return values

    def _hold(self, values: Iterable[_Value], *, rough: bool) -> None:
        """Make columns of the values that are computed.
        Input: rough: whether these columns may have NaN.
        """
        held = [
            v for v in {id(v): v for v in values}.values() if v.size > 1 or (v.rough and not rough)
        ]
        columns = self.held_all([value.expr if rough else value.clean for value in held])
        for value, column in zip(held, columns, strict=True):
            self._readers.subtract(value.reads)
            self._last.update(
                {name: max(self._last.get(name, 0), self._level - 1) for name in value.reads}
            )
            value.expr, value.rough, value.size, value.level = (
                column,
                value.rough and rough,
                1,
                self._level,
            )
            value.reads = frozenset({self._columns[id(column)][1]})
            self._readers.update(value.reads)
