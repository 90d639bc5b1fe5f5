"""Functions that make expressions of several others: `dp.when`, `dp.coalesce`, `dp.concat_str`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from dpframe.errors import InvalidArgument
from dpframe.plan.expressions.choices import case, coalesced
from dpframe.plan.expressions.expression import Expr, node_of
from dpframe.plan.nodes import Call, Literal, Name, Node
from dpframe.plan.scalars import check_text, real
from dpframe.usage import Hints, door, one_by_one

_LONGEST = 10**9  # numbers of a part of a duration


@dataclass(frozen=True)
class When(Hints):
    """`dp.when(condition)`: goes on with `.then(value)`."""

    _condition: Node
    _before: tuple[tuple[Node, Node], ...] = ()

    def then(self, value: object) -> Then:
        """The value where the condition holds, and no condition before it."""
        return Then((*self._before, (self._condition, node_of(value))))


class Then(Expr):
    """`dp.when(condition).then(value)`: null elsewhere, unless `.when(...)`
    or `.otherwise(value)` follows.
    """

    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[tuple[Node, Node], ...]) -> None:
        super().__init__(case(branches, Literal(None)))
        self._branches = branches

    def when(self, condition: object) -> When:
        """Another condition, which is asked where none before it holds."""
        return When(node_of(condition), self._branches)

    def otherwise(self, value: object) -> Expr:
        """The value where no condition holds, or all are null."""
        return Expr(case(self._branches, node_of(value)))


@door
def when(condition: object) -> When:
    """A choice in each row: the value of the first condition that holds.

    >>> age = Expr(Name("age"))
    >>> when(age < 6).then("infant").when(age < 18).then("child").otherwise("adult")
    dp.Expr: when((age < 6)).then('infant').when((age < 18)).then('child').otherwise('adult')
    """
    return When(node_of(condition))


@door
def coalesce(*values: object) -> Expr:
    """The first of several values that is not missing.
    A text names a column, as in Polars; `dp.lit("a")` is a text.

    >>> coalesce("mobile", Expr(Literal("none")))
    dp.Expr: when((~mobile.is_null())).then(mobile).otherwise('none')
    """
    return Expr(coalesced(_operands(values, "coalesce", "dp.coalesce('mobile', 'phone')")))


@door
def concat_str(*values: object, separator: str = "") -> Expr:
    """Texts one behind the other, with a separator between. A text names a column, as in Polars.

    Missing where one of them is missing, or where the text would have more than 2^24 characters.
    Whole numbers, dates and Booleans are written as `cast("string")` writes them.

    >>> concat_str(["street", "number"], separator=" ")
    dp.Expr: concat_str([street, number], separator=' ')
    """
    nodes = _operands(values, "concat_str", "dp.concat_str(['street', 'number'], separator=' ')")
    if not isinstance(separator, str):
        raise InvalidArgument("concat_str: separator= is a text, such as separator=' '.")
    check_text(separator, "concat_str")
    return Expr(Call("concat_str", nodes, (("separator", separator),)))


@door
def duration(
    *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> Expr:
    """A constant duration: `dp.col("out") - dp.duration(days=3)`.
    Of a column of numbers there is none.

    Input:  weeks, days, hours, minutes, seconds: numbers, which are added

    >>> duration(days=3, hours=12)
    dp.Expr: datetime.timedelta(days=3, seconds=43200)
    """
    parts = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    for name, number in parts.items():
        if (size := real(number)) is None or not abs(size) < _LONGEST:
            raise InvalidArgument(f"duration: {name}= is a number, as in dp.duration(days=3).")
    return Expr(Literal(dt.timedelta(**parts)))


def _operands(values: Iterable[object], call: str, line: str) -> tuple[Node, ...]:
    """The columns and values of a function of several; lists of them too."""
    flat = one_by_one(values)
    if not flat:
        raise InvalidArgument(f"{call}: name at least one column: {line}.")
    return tuple(Name(x) if isinstance(x, str) else node_of(x) for x in flat)
