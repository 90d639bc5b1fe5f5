"""Row expressions such as `dp.col("age") >= 18`.
An expression holds what was written; only the engine computes it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from functools import update_wrapper
from typing import Any, NoReturn

import polars as pl

from dpframe.errors import InvalidArgument, InvalidBounds, UnsupportedOperation, WrongType, kind_of
from dpframe.plan.bins import check_bound, check_interval
from dpframe.plan.expressions.choices import Closed, between, mapped, same
from dpframe.plan.expressions.foreign import PolarsReader
from dpframe.plan.expressions.namespaces import CalendarNamespace, TextNamespace
from dpframe.plan.hints import EXPRESSION
from dpframe.plan.nodes import Call, Listed, Literal, Name, Node, joined, text
from dpframe.plan.scalars import check_years, in_order, is_finite, kind_of_scalar, plain, real
from dpframe.plan.types import Kind, as_dtype
from dpframe.safe_text import visible
from dpframe.usage import Hints, door, is_list, read_whole

_EXPONENTS = 64  # a larger power is null or infinite for nearly every number
_SQUARE_ROOT = 0.5
_LARGEST_BASE = 1e9  # of a logarithm
_DECIMALS = 15  # floats have no more


class Expr(Hints):
    """A computation on one row: columns, numbers and texts, combined as in Polars.

    Comparison and arithmetic use the ordinary signs; `&`, `|` and `~` combine conditions. A result
    that does not exist is null: division by zero, overflow, a text that is no number.

    >>> col("age") >= 18
    dp.Expr: (age >= 18)
    >>> col("wage") / col("weeks")
    dp.Expr: (wage / weeks)
    """

    __slots__ = ("_name", "_node")
    _habits = EXPRESSION
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, node: Node, name: str | None = None) -> None:
        self._node, self._name = node, name

    def __repr__(self) -> str:
        return visible(f"dp.Expr: {text(self._node, short=True)}")

    def __bool__(self) -> bool:
        raise UnsupportedOperation(
            "An expression has no truth value before it meets a row: combine conditions with & | "
            "~ and brackets, as in (dp.col('age') >= 18) & (dp.col('age') < 65), and use "
            "is_in([...]) for membership."
        )

    def __getitem__(self, *_: object) -> NoReturn:
        raise UnsupportedOperation(
            "An expression stands for one value in each row. Of texts, type .str.slice(0, 1). "
            "Rows are kept by frame.filter(dp.col('x') > 0)."
        )

    __round__ = __getitem__

    def __abs__(self) -> Expr:
        return self.abs()

    def __iter__(self) -> Any:
        raise UnsupportedOperation(
            "An expression cannot be looped over; it stands for one value in each row."
        )

    def _call(self, operation: str, *others: object, **options: Any) -> Expr:
        args = (self._node, *(node_of(o) for o in others))
        return Expr(Call(operation, args, tuple(options.items())), self._name)

    def _chain(self, operation: str, other: object) -> Expr:
        return Expr(joined(operation, self._node, node_of(other)), self._name)

    def alias(self, name: str) -> Expr:
        """A name for the column that it writes:
        `with_columns((dp.col("wage") / 52).alias("weekly"))`.
        """
        if not isinstance(name, str) or not name:
            raise InvalidArgument(
                "alias takes a name that is not empty, as in (dp.col('wage') / 52).alias('weekly')."
            )
        return Expr(self._node, name)

    # Arithmetic

    def __add__(self, other: object) -> Expr:
        return self._chain("add", other)

    def __radd__(self, other: object) -> Expr:
        return Expr(node_of(other)) + self

    def __sub__(self, other: object) -> Expr:
        return self._chain("subtract", other)

    def __rsub__(self, other: object) -> Expr:
        return Expr(node_of(other)) - self

    def __mul__(self, other: object) -> Expr:
        return self._chain("multiply", other)

    def __rmul__(self, other: object) -> Expr:
        return Expr(node_of(other)) * self

    def __truediv__(self, other: object) -> Expr:
        return self._call("divide", other)

    def __rtruediv__(self, other: object) -> Expr:
        return Expr(node_of(other)) / self

    def __floordiv__(self, by: object) -> Expr:
        return self._divided("floor_divide", by)

    def __rfloordiv__(self, top: object) -> Expr:
        return Expr(node_of(top)) // self

    def __mod__(self, by: object) -> Expr:
        return self._divided("modulo", by)

    def __rmod__(self, top: object) -> Expr:
        return Expr(node_of(top)) % self

    def _divided(self, operation: str, by: object) -> Expr:
        if isinstance(by, (Expr, pl.Expr)):
            return self._call(f"{operation}_by", by)
        return self._call(operation, by=_whole(by, "a divisor"))

    def __neg__(self) -> Expr:
        return self._call("negative")

    def __pow__(self, exponent: int) -> Expr:
        return self.pow(exponent)

    def __rpow__(self, base: object) -> Expr:
        raise InvalidArgument(
            "A power of a number: type (dp.col('x') * math.log(2)).exp() for 2 ** dp.col('x')."
        )

    def pow(self, exponent: int) -> Expr:
        """A power with a whole exponent from 0 to 64: `dp.col("x") ** 2`.
        An exponent of 0.5 is a square root.

        It is made of products in a fixed order, x³ as (x·x)·x, so its last digit may be another
        than that of numpy. A whole number that does not fit in 64 bits is null.
        """
        times = real(exponent)
        if times == _SQUARE_ROOT:
            return self.sqrt()
        if times is None or times != times // 1 or not 0 <= times <= _EXPONENTS:
            raise InvalidArgument(
                f"An exponent is a whole number from 0 to {_EXPONENTS}, or 0.5. For 1.5 type "
                "(dp.col('x').log() * 1.5).exp(), and for -2 type 1 / dp.col('x') ** 2."
            )
        return self._call("power", exponent=int(times))

    def abs(self) -> Expr:
        """Absolute value."""
        return self._call("abs")

    def floor(self) -> Expr:
        """Largest whole number that is not above the value, as a float."""
        return self._call("floor")

    def ceil(self) -> Expr:
        """Smallest whole number that is not below the value, as a float."""
        return self._call("ceil")

    def sqrt(self) -> Expr:
        """Square root; null below zero."""
        return self._call("sqrt")

    def log(self, base: float = math.e) -> Expr:
        """Logarithm, natural by default; null at zero and below. `log(10)` of 1000 is 3.

        It is within 1.5 units of the last place, and the same on every engine. Input: base, e or
        from 2 to 1e9.
        """
        to = real(base)
        if to is None or not (to == math.e or 2 <= to <= _LARGEST_BASE):
            raise InvalidArgument(
                "log takes a base from 2 to 1e9, such as log(10); without one it is natural."
            )
        return self._call("log", base=float(to))

    def log10(self) -> Expr:
        """Logarithm to the base 10; null at zero and below."""
        return self.log(10)

    def log1p(self) -> Expr:
        """Natural logarithm of 1 + x, exact for small x too; null at -1 and below.
        It is made as `log` is.
        """
        return self._call("log1p")

    def exp(self) -> Expr:
        """E to the power of x, within 1.5 units of the last place, and the same on every engine.

        Infinite above 709.79, as a float is.
        """
        return self._call("exp")

    def round(self, decimals: int = 0) -> Expr:
        """The nearest number of so many decimals, from 0 to 15, as numpy has
        it; a half goes to the even one.

        Whole numbers stay as they are. The product with 10^decimals is rounded, and divided again.
        """
        sentence = (
            f"round takes a number of decimals from 0 to {_DECIMALS}. To hundreds, type "
            "(dp.col('x') // 100) * 100."
        )
        return self._call("round", decimals=read_whole(decimals, 0, _DECIMALS, sentence))

    def sign(self) -> Expr:
        """-1 below zero, 0 at zero, 1 above."""
        return self._call("sign")

    def clip(self, lower: float | None = None, upper: float | None = None) -> Expr:
        """Values moved into [lower, upper]; missing stays missing."""
        lower, upper = check_interval(lower, upper, "clip")
        return self._call("clip", lower=lower, upper=upper)

    # Comparison

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._call("equal", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._call("not_equal", other)

    def __lt__(self, other: object) -> Expr:
        return self._call("less", other)

    def __le__(self, other: object) -> Expr:
        return self._call("less_equal", other)

    def __gt__(self, other: object) -> Expr:
        return self._call("greater", other)

    def __ge__(self, other: object) -> Expr:
        return self._call("greater_equal", other)

    def eq_missing(self, other: object) -> Expr:
        """Whether two values are equal, or both missing; never missing itself.
        Input: other, a value or expression.
        """
        return Expr(same(self._node, node_of(other)), self._name)

    def ne_missing(self, other: object) -> Expr:
        """Whether two values differ, where missing is a value too; never missing itself.
        Input: other, as above.
        """
        return ~self.eq_missing(other)

    def is_between(self, lower: object, upper: object, closed: str = "both") -> Expr:
        """Whether a value lies between two others.

        Input:  lower, upper: the ends, expressions or values; closed: the ends that count, "both",
                "left", "right" or "none"
        """
        ends = node_of(lower), node_of(upper)
        return Expr(between(self._node, *ends, Closed.read(closed)), self._name)

    def is_in(self, values: Iterable[object]) -> Expr:
        """Whether a value is one of those listed. Input: values, a list of them."""
        if not is_list(values):
            raise InvalidArgument("is_in takes a list of values.")
        scalars = [plain(v) for v in in_order(values)]
        for value in scalars:
            kind_of_scalar(value)
        return self._call("is_in", values=Listed(scalars))

    # Logic

    def __and__(self, other: object) -> Expr:
        return self._chain("and", other)

    def __rand__(self, other: object) -> Expr:
        return Expr(node_of(other)) & self

    def __or__(self, other: object) -> Expr:
        return self._chain("or", other)

    def __ror__(self, other: object) -> Expr:
        return Expr(node_of(other)) | self

    def __xor__(self, other: object) -> Expr:
        return self._call("xor", other)

    def __rxor__(self, other: object) -> Expr:
        return Expr(node_of(other)) ^ self

    def __invert__(self) -> Expr:
        return self._call("not")

    # Missing values and types

    def is_null(self) -> Expr:
        """Whether the value is missing (null or NaN)."""
        return self._call("is_null")

    def is_not_null(self) -> Expr:
        """Whether there is a value."""
        return ~self.is_null()

    def fill_null(self, value: object) -> Expr:
        """A constant in place of missing values (null or NaN).
        Input: value, of the type of the column.
        """
        return self._call("fill_null", value=plain(value))

    def replace(self, mapping: Mapping[Any, object]) -> Expr:
        """Other values in place of those that a mapping lists:
        `dp.col("sex").replace({"m": "male"})`.

        A null that is listed is a value too. Values that are not listed stay.
        """
        return Expr(
            mapped(self._node, _nodes(mapping, "replace"), self._node, "replace"), _name_of(self)
        )

    def replace_strict(self, mapping: Mapping[Any, object], *, default: object = None) -> Expr:
        """The values that a mapping lists, and a default for all others;
        without a default they are missing.
        """
        call = "replace_strict"
        return Expr(
            mapped(self._node, _nodes(mapping, call), node_of(default), call), _name_of(self)
        )

    def cast(self, dtype: object) -> Expr:
        """Another type; a value that does not convert is null.
        Input: dtype, as in `PrivateFrame.cast`.
        """
        return self._call("cast", dtype=as_dtype(dtype))

    # Namespaces

    @property
    def str(self) -> TextNamespace[Expr]:
        """Operations on text."""
        return TextNamespace(self)

    @property
    def dt(self) -> CalendarNamespace[Expr]:
        """Parts of a date or a time."""
        return CalendarNamespace(self)


def _whole(value: object, what: str) -> int:
    whole = real(value)
    if not isinstance(whole, int):
        raise WrongType(f"{what}: give a whole number, not {kind_of(value)}.")
    return whole


def _nodes(mapping: object, call: str) -> Mapping[Node, Node]:
    if not isinstance(mapping, Mapping):
        raise InvalidArgument(
            f"{call} takes a mapping of old to new values, as in {call}({{'a': 'b'}})."
        )
    return {node_of(old): node_of(new) for old, new in mapping.items()}


def node_of(value: object) -> Node:
    """An expression's node, or a literal of a plain value."""
    match value:
        case pl.Expr():
            return read_polars(value)._node
        case Expr():
            return value._node
    if callable(value):
        raise InvalidArgument(
            f"An expression is made of columns and values, not of {kind_of(value)}. A method has "
            "brackets: dp.col('when').dt.month(). A computation names its columns: dp.col('wage') "
            "/ dp.col('weeks')."
        )
    value = plain(value)
    family = kind_of_scalar(value)
    if isinstance(value, dt.datetime):
        check_years(value, "An expression")
    if not is_finite(value):
        raise InvalidBounds("A number in an expression must be finite.")
    if family in (Kind.INTEGER, Kind.FLOAT):
        check_bound(value, "A number in an expression")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidArgument(
            "A whole number in an expression is below 2**63 in size; is_in([...]) takes those "
            "below 2**64."
        )
    return Literal(float(value) if family == Kind.DECIMAL else value)  # type: ignore[arg-type]


def output_name(expr: Expr, call: str) -> str:
    """The name of the column that an expression writes:
    its alias, or that of its first column, as in Polars.

    Errors: InvalidArgument where it begins with a constant
    """
    name = _name_of(expr)
    if name is None:
        raise InvalidArgument(
            f"{call}: name the new column, as in (1 + dp.col('x')).alias('more')."
        )
    return name


def _name_of(expr: Expr) -> str | None:
    """The alias of an expression, or the name of its first column;
    None where it begins with a constant.
    """
    node: Node = expr._node
    while node.args:
        node = node.args[1 if node.operation == "case" else 0]
    return expr._name or node.column


@door
def col(name: str) -> Expr:
    """A column of the row, by name: `dp.col("age")`, or `dp.col.age` as in Polars.

    >>> (col("age") >= 18) & col("city").is_in(["Aachen", "Bonn"])
    dp.Expr: ((age >= 18) & city.is_in(['Aachen', 'Bonn']))
    """
    if not isinstance(name, str):
        raise InvalidArgument("dp.col takes the name of a column.")
    return Expr(Name(name))


class _Columns:
    """`col("x")`, and `col.x` as in Polars."""

    __call__ = staticmethod(col)

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):
            raise AttributeError(f"dp.col has no attribute {name!r}")
        return col(name)


columns = update_wrapper(_Columns(), col)


@door
def lit(value: object) -> Expr:
    """A constant, where an expression is needed.
    Input: value, a number, text, date or time, or None.

    >>> lit(1) + col("visits")
    dp.Expr: (1 + visits)
    """
    return Expr(node_of(value))


POLARS = PolarsReader(col, lit, Expr)


def read_polars(expr: pl.Expr) -> Expr:
    """An expression of ours that is written like one of Polars, with its name.
    Errors: UnsupportedOperation.
    """
    result: Expr = POLARS.read(expr)
    return result
