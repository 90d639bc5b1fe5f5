"""The tree of a row expression: columns, constants and operations, as they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import narwhals as nw

from dpframe.errors import DpFrameError, InvalidArgument
from dpframe.plan.columns import Bounds, ColumnDomain, Possible, Table
from dpframe.plan.operations import OPERATIONS, Applied, imaged
from dpframe.plan.scalars import Scalar, has_zone, kind_of_scalar, listed
from dpframe.plan.types import Null


class Leaf:
    """A node without operands."""

    operation: ClassVar[str] = ""
    args: ClassVar[tuple[Node, ...]] = ()
    options: ClassVar[tuple[tuple[str, Any], ...]] = ()
    depth: ClassVar[int] = 0
    size: ClassVar[int] = 0
    terms: ClassVar[int] = 1
    column: str | None = None


@dataclass(frozen=True)
class Name(Leaf):
    """A column, by the name it has where the expression is used."""

    name: str

    @property
    def column(self) -> str:  # type: ignore[override]
        """The column that stands here by itself."""
        return self.name


@dataclass(frozen=True)
class Literal(Leaf):
    """A value that the user typed."""

    value: Scalar | None


@dataclass(frozen=True)
class Call:
    """An operation of `OPERATIONS` on expressions."""

    operation: str
    args: tuple[Node, ...]
    options: tuple[tuple[str, Any], ...] = field(default=())
    column: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        """Refuse what would take too long to work out. Errors: InvalidArgument."""
        if not UNLIMITED.get() and (self.depth > DEEPEST or self.size > LARGEST):
            deep = (
                f"nests operations {DEEPEST} deep at most, of which a logarithm or an exponential "
                f"counts for {OPERATIONS['log'].depth}"
            )
            most = deep if self.depth > DEEPEST else f"has {LARGEST:,} operations at most"
            raise InvalidArgument(
                f"{self.operation}: an expression {most}. Write a part of it to a column before, "
                "as in with_columns(part=...), and go on with dp.col('part')."
            )

    @cached_property
    def depth(self) -> int:
        """The longest chain of operations, each an operand of the next."""
        inner = max((arg.depth for arg in self.args), default=0)
        return inner + OPERATIONS[self.operation].depth

    @cached_property
    def size(self) -> int:
        """The number of operations, each as often as it stands in the tree."""
        return OPERATIONS[self.operation].size + sum(arg.size for arg in self.args)

    @cached_property
    def terms(self) -> int:
        """The number of terms of a sum, product or condition, through the brackets of its parts."""
        return sum(_terms(arg, self.operation) for arg in self.args)


Node = Name | Literal | Call

# Whether expressions are made of others whose size was tried. A node may stand in them many times:
# it is computed once.
UNLIMITED: ContextVar[bool] = ContextVar("UNLIMITED", default=False)
DEEPEST, LARGEST = 64, 20_000  # limits of one expression: operations within each other, and in all
_BLOCK = 8  # terms that are put together one by one, from left to right
_CHAINS = {"add": "sum", "subtract": "sum", "multiply": "product", "and": "all", "or": "any"}


def alike(node: Node, operation: str) -> bool:
    """Whether a node continues a chain of an operation:
    of sums and differences, products, or conditions.
    """
    return _CHAINS.get(node.operation) == _CHAINS.get(operation, "")


def _terms(node: Node, operation: str) -> int:
    return node.terms if alike(node, operation) else 1


def joined(operation: str, left: Node, right: Node) -> Call:
    """An operation on two expressions; a long chain of one operation as a tree that stays shallow.

    The first 8 terms of a chain, and each 8 after them, are put together from left to right. The
    blocks of terms are put together in pairs, the pairs in pairs, and so on. What is subtracted
    from a sum becomes a part of the block that is added or subtracted last, with its sign.

    >>> chain = Name("x")
    >>> for _ in range(999):
    ...     chain = joined("add", chain, Name("x"))
    >>> chain.terms, chain.depth
    (1000, 14)
    """
    terms = _terms(left, operation)
    blocks, rest = divmod(terms, _BLOCK)
    if terms < _BLOCK or (not rest and not blocks & (blocks - 1)):
        return Call(operation, (left, right))
    if left.operation == "subtract":
        operation = "add" if operation == "subtract" else "subtract"
    return Call(left.operation, (left.args[0], joined(operation, left.args[1], right)))


_LITERAL_TYPES: Mapping[str, nw.dtypes.DType] = {
    "null": Null(),
    "boolean": nw.Boolean(),
    "integer": nw.Int64(),
    "float": nw.Float64(),
    "decimal": nw.Float64(),
    "string": nw.String(),
    "date": nw.Date(),
    "datetime": nw.Datetime(),
    "duration": nw.Duration(),
}


def text(node: Node, *, short: bool = False) -> str:
    """An expression as the user would type it; with `short`, long
    lists are cut, for people to read.
    """
    match node:
        case Name(name):
            return name
        case Literal(value):
            return repr(value)
        case Call(operation, args, options):
            parts = {
                name: listed(o) if short and isinstance(o, Listed) else o for name, o in options
            }
            return OPERATIONS[operation].written([text(a, short=short) for a in args], parts)


def domain(
    node: Node, table: Table, call: str, known: dict[int, tuple[Node, ColumnDomain]] | None = None
) -> ColumnDomain:
    """The domain of an expression's values on a table.

    Input:  known: domains that were worked out before, by the identity of their nodes
    Errors: UnknownColumn, WrongType
    """
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = (node, _domain(node, table, call, known))
    return known[id(node)][1]


def _domain(
    node: Node, table: Table, call: str, known: dict[int, tuple[Node, ColumnDomain]]
) -> ColumnDomain:
    match node:
        case Name(name):
            return table.column(name, call).domain
        case Literal(value):
            family = kind_of_scalar(value)
            bounds = Bounds(value, value) if isinstance(value, (bool, int, float)) else None
            dtype = nw.Datetime("us", "UTC") if has_zone(value) else _LITERAL_TYPES[family]
            possible = Possible.listed([] if value is None else [value])
            return ColumnDomain(dtype, value is None, bounds, possible=possible)
        case Call(operation, args, options):
            rule = OPERATIONS[operation].rule
            asked = Applied(call, [domain(a, table, call, known) for a in args], dict(options))
            # the text of a large expression is only written where it is refused
            with suppress(DpFrameError):
                return imaged(operation, asked, rule(asked))
            return rule(replace(asked, call=f"{call}: {text(node, short=True)}"))


def stated(node: Node) -> Counter[str]:
    """The columns that an expression reads, with how often each stands there."""
    found, pending = Counter[str](), [node]
    while pending:
        node = pending.pop()
        pending += node.args
        if node.column is not None:
            found[node.column] += 1
    return found


def names(node: Node) -> frozenset[str]:
    """The columns an expression reads."""
    return frozenset(stated(node))


class Listed(tuple[Any, ...]):
    """Values of `is_in`, written as a list."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return repr(list(self))
