"""The common parts of the rules of all row operations:
an operation, its refusals, and bounds of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import WrongType
from dpframe.plan.columns import Bounds, ColumnDomain, Possible
from dpframe.plan.types import Kind, cast_first, cast_to, show

Options = Mapping[str, Any]

NUMBERS = ("integer", "float", "decimal")
# integers below this in absolute value stay inside int64, even where bounds are rounded floats
_SAFE = 2.0**62


@dataclass(frozen=True)
class Applied:
    """An operation on its arguments: the call that a refusal names, the domains of
    the arguments, and the options.
    """

    call: str
    args: Sequence[ColumnDomain]
    options: Options

    def __getitem__(self, option: str) -> Any:
        """An option."""
        return self.options[option]

    @property
    def on(self) -> ColumnDomain:
        """The first argument, or the only one."""
        return self.args[0]

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of the first argument."""
        return self.on.bounds

    @property
    def dtype(self) -> DType:
        """The type of the first argument."""
        return self.on.dtype

    @property
    def types(self) -> str:
        """The types of the arguments, in words."""
        return " with ".join(show(a.dtype) for a in self.args)

    @property
    def nullable(self) -> bool:
        """Whether one of the arguments can be missing."""
        return any(a.nullable for a in self.args)

    def need(self, *kinds: str) -> None:
        """Refuse arguments of another kind. Errors: WrongType."""
        for domain in self.args:
            need(self.call, domain, *kinds)


Rule = Callable[[Applied], ColumnDomain]
Image = Callable[[Applied, ColumnDomain], Possible | None]


@dataclass(frozen=True)
class Operation:
    """A written operation, and the rule that gives the domain of its
    result or refuses its arguments.
    """

    text: str  # a format string over the arguments' texts ({0}, {1}, {all}, {last}) and the options
    rule: Rule
    more: str = ""  # for each two arguments after the first two, in place of {more}
    depth: int = 1  # operations within each other that an engine computes it by
    size: int = 1  # all of these operations

    def written(self, args: Sequence[str], options: Options) -> str:
        """The operation as the user would type it.
        Input: the texts of its arguments, its options.
        """
        more = (
            "".join(self.more.format(*args[i : i + 2]) for i in range(2, len(args) - 1, 2))
            if self.more
            else ""
        )
        return self.text.format(*args, all=", ".join(args), last=args[-1], more=more, **options)


def need(call: str, domain: ColumnDomain, *kinds: str) -> None:
    """Refuse an argument of another kind. Errors: WrongType."""
    if domain.kind not in kinds:
        number = cast_first(domain.dtype) if Kind.FLOAT in kinds else ""
        typed = number or cast_to(domain.dtype, *kinds)
        raise WrongType(
            f"{call}: needs {' or '.join(kinds)}, not a column of type {show(domain.dtype)}.{typed}"
        )


def overflows(bounds: Bounds | None) -> bool:
    """Whether an integer result with these bounds could leave int64 (and then
    has to be checked row by row).
    """
    return bounds is None or not bounds.magnitude < _SAFE


def finite(lower: float, upper: float) -> Bounds | None:
    """Bounds of two ends; None where one of them is infinite."""
    return Bounds(lower, upper) if math.isfinite(lower) and math.isfinite(upper) else None


def as_floats(bounds: Bounds | None) -> Bounds | None:
    """Bounds of a value that was converted to float.
    The conversion rounds values, so the bounds are rounded too.
    """
    return bounds and Bounds(float(bounds.lower), float(bounds.upper))


def corner_bounds(
    op: Callable[[Any, Any], Any], a: Bounds | None, b: Bounds | None
) -> Bounds | None:
    """Bounds of +, -, · and /.
    The extremes are at the corners; rounding is monotone, so they stay the extremes.
    """
    if a is None or b is None:
        return None
    try:
        corners = [op(x, y) for x in a for y in b]
    except OverflowError:
        return None
    return finite(min(corners), max(corners))
