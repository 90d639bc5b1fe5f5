"""What each row operation gives, in plain Python, from its documented rule:
no engine computes anything here.

A value is a Python int, float, str, bool or None. A date is its number of days since 1970, a time
or a duration its nanoseconds, both as int, since Python's own calendar has neither all years nor
nanoseconds. Null and NaN are None.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
import struct
import zoneinfo
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw

from dpframe.plan import Call, Literal, Name, Pattern
from dpframe.plan.operations import taylor

__all__ = ["Typed", "family", "held", "value", "whole_range"]

INT64 = (-(2**63), 2**63 - 1)
GUARD = 9.2e18  # whole-number arithmetic gives up where its result in floats is this large
DAY = 86_400 * 10**9
NANO = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = dt.date(1970, 1, 1)
FIRST, LAST = (
    dt.date(1, 1, 1).toordinal() - EPOCH.toordinal(),
    dt.date(9999, 12, 31).toordinal() - EPOCH.toordinal(),
)
NUMBERS = ("integer", "float", "decimal")


@dataclass(frozen=True)
class Typed:
    """A value and its type."""

    dtype: Any
    value: Any


def family(dtype: Any) -> str:
    """The kind of a type, as a word."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "float"
    if dtype.is_decimal():
        return "decimal"
    words = {
        nw.Boolean: "boolean",
        nw.String: "string",
        nw.Enum: "string",
        nw.Categorical: "string",
        nw.Date: "date",
        nw.Datetime: "datetime",
        nw.Duration: "duration",
    }
    return next((word for kind, word in words.items() if isinstance(dtype, kind)), "null")


def whole_range(dtype: Any) -> tuple[int, int]:
    """Smallest and largest whole number of a type."""
    name = str(dtype)
    bits = int(re.sub("[^0-9]", "", name))
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def held(dtype: Any, cell: Any) -> Typed:
    """A cell of a table as operations see it: NaN, odd years and texts that are no Unicode are
    missing, and so are durations that Python does not have.

    A decimal is the nearest float.
    """
    if cell is None or isinstance(cell, bytes):
        return Typed(dtype, None)
    kind = family(dtype)
    if kind in ("float", "decimal"):
        return Typed(dtype, number(cell))
    if kind == "date":
        return Typed(dtype, cell if FIRST <= cell <= LAST else None)
    if kind == "datetime":
        spare = 0 if dtype.time_zone is None else 1  # a zone's clock needs a day at either end
        inside = (FIRST + spare) * DAY <= cell < (LAST + 1 - spare) * DAY
        last = cell == 2**63 - 1 and dtype.time_unit == "ns"  # no limit can be typed for this one
        return Typed(dtype, cell if inside and not last else None)
    if kind == "duration":
        return Typed(dtype, cell if abs(cell) <= dt.timedelta.max.days * DAY else None)
    return Typed(dtype, cell)


def number(cell: Any) -> float | None:
    """The float nearest to a number; None for NaN."""
    made = float(Fraction(cell)) if isinstance(cell, (Decimal, int)) else cell
    return None if math.isnan(made) else made


def value(node: Any, row: Mapping[str, Typed]) -> Typed:
    """The value of an expression in a row of cells with their types."""
    match node:
        case Name(name):
            return row[name]
        case Literal(written):
            return literal(written)
        case Call(operation, args, options):
            return RULES[operation]([value(arg, row) for arg in args], dict(options))
    raise AssertionError(node)


def literal(written: Any) -> Typed:
    """A value as typed in an expression."""
    if written is None:
        return Typed(nw.Unknown(), None)
    if isinstance(written, dt.datetime):
        zoned = written.tzinfo is not None
        since = written - dt.datetime(1970, 1, 1, tzinfo=dt.UTC if zoned else None)
        return Typed(
            nw.Datetime("us", "UTC") if zoned else nw.Datetime("us"),
            since // dt.timedelta(microseconds=1) * 1000,
        )
    if isinstance(written, dt.date):
        return Typed(nw.Date(), written.toordinal() - EPOCH.toordinal())
    if isinstance(written, dt.timedelta):
        return Typed(nw.Duration("us"), written // dt.timedelta(microseconds=1) * 1000)
    types = {bool: nw.Boolean(), int: nw.Int64(), float: nw.Float64(), str: nw.String()}
    return Typed(types[type(written)], written)


# Arithmetic


def int64(x: Typed) -> int | None:
    """A whole number, None outside of 64 bits."""
    return x.value if x.value is not None and INT64[0] <= x.value <= INT64[1] else None


def float64(x: Typed) -> float | None:
    """A number as a float."""
    return None if x.value is None else number(x.value)


def ieee(op: Callable[[float, float], float], a: float | None, b: float | None) -> float | None:
    """A float operation. A result of NaN is None, and a result beyond the floats is infinite."""
    if a is None or b is None:
        return None
    try:
        made = op(a, b)
    except OverflowError:
        made = math.inf
    return None if math.isnan(made) else made


def arithmetic(op: Callable[[Any, Any], Any]) -> Callable[..., Typed]:
    def rule(args, options):
        if any(family(x.dtype) != "integer" for x in args):
            return Typed(nw.Float64(), ieee(op, *map(float64, args)))
        a, b = map(int64, args)
        if a is None or b is None or not abs(op(float(a), float(b))) < GUARD:
            return Typed(nw.Int64(), None)
        return Typed(nw.Int64(), op(a, b))

    return rule


def divide(args, options):
    top, bottom = map(float64, args)
    if not bottom:
        return Typed(nw.Float64(), None)
    return Typed(nw.Float64(), ieee(operator.truediv, top, bottom))


def by_constant(op):
    def rule(args, options):
        top = int64(args[0])
        return Typed(nw.Int64(), None if top is None else op(top, options["by"]))

    return rule


def by_column(op):
    """Of whole numbers below 9e18 in size; null where the divisor is 0."""

    def rule(args, options):
        a, b = (x.value for x in args)
        found = a is not None and b is not None and b != 0 and max(abs(a), abs(b)) < 9 * 10**18
        return Typed(nw.Int64(), op(a, b) if found else None)

    return rule


def summed(args, options):
    if family(args[0].dtype) == "string":
        return concatenated(args, options)
    return (moved(1) if set(map(kind_of, args)) & TIMED else arithmetic(operator.add))(
        args, options
    )


def subtracted(args, options):
    return (moved(-1) if set(map(kind_of, args)) & TIMED else arithmetic(operator.sub))(
        args, options
    )


TIMED = {"date", "datetime", "duration"}


def kind_of(x: Typed) -> str:
    return family(x.dtype)


def moved(sign):
    """Sums and differences of times and durations, in ticks of the result.
    Null outside of 64 bits or the calendar.
    """

    def rule(args, options):
        kinds = [kind_of(x) for x in args]
        if kinds[0] == kinds[1]:
            units = {getattr(x.dtype, "time_unit", "us") for x in args}
            dtype = nw.Duration(units.pop() if len(units) == 1 and units != {"s"} else "us")
        else:
            dtype = args[kinds[0] == "duration"].dtype
        a, b = (in_ticks(x, dtype) for x in args)
        if a is None or b is None:
            return Typed(dtype, None)
        if kind_of(Typed(dtype, 0)) != "duration":
            by, start = (a, b) if kinds[0] == "duration" else (sign * b, a)
            least = sign == -1 and b == INT64[0]
            return (
                Typed(dtype, None) if least else time_or_none((start + by) * nano_of(dtype), dtype)
            )
        made = a + sign * b
        inside = (
            abs(float(a) + sign * float(b)) < GUARD
            and abs(made * nano_of(dtype)) <= dt.timedelta.max.days * DAY
        )
        return Typed(dtype, made * nano_of(dtype) if inside else None)

    return rule


def nano_of(dtype: Any) -> int:
    return DAY if isinstance(dtype, nw.Date) else NANO[dtype.time_unit]


def in_ticks(x: Typed, dtype: Any) -> int | None:
    """A time or duration in ticks of another type, rounded down."""
    if x.value is None:
        return None
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    ticks = nano // nano_of(dtype)
    return None if nano_of(x.dtype) > nano_of(dtype) and not abs(float(ticks)) < GUARD else ticks


def negative(args, options):
    if family(args[0].dtype) != "integer":
        x = float64(args[0])
        return Typed(nw.Float64(), None if x is None else -x)
    x = int64(args[0])
    return Typed(nw.Int64(), None if x is None or x == INT64[0] else -x)


def absolute(args, options):
    if family(args[0].dtype) != "integer":
        x = float64(args[0])
        return Typed(nw.Float64(), None if x is None else abs(x))
    x = int64(args[0])
    return Typed(nw.Int64(), None if x is None or x == INT64[0] else abs(x))


def of_float(function):
    def rule(args, options):
        x = float64(args[0])
        return Typed(
            nw.Float64(), None if x is None else x if math.isinf(x) else float(function(x))
        )

    return rule


def root(args, options):
    x = float64(args[0])
    return Typed(nw.Float64(), None if x is None or x < 0 else math.sqrt(x))


def power(args, options):
    """Products in a fixed order; of whole numbers, one that is too large
    makes all that follows missing.
    """
    whole = family(args[0].dtype) == "integer"
    x = int64(args[0]) if whole else float64(args[0])

    def made(exponent):
        if x is None or exponent < 2:
            return x if x is None or exponent else type(x)(1)
        half = made(exponent // 2)
        square = product(half, half)
        return product(square, x) if exponent % 2 else square

    def product(a, b):
        if a is None or (whole and not abs(float(a) * float(b)) < GUARD):
            return None
        return a * b

    return Typed(nw.Int64() if whole else nw.Float64(), made(options["exponent"]))


def sign(args, options):
    x = args[0].value if family(args[0].dtype) == "integer" else float64(args[0])
    made = None if x is None else (x > 0) - (x < 0)
    return (
        Typed(nw.Int64(), made)
        if isinstance(x, int)
        else Typed(nw.Float64(), None if made is None else float(made))
    )


def rounded(args, options):
    if family(args[0].dtype) == "integer":
        return args[0]
    x, scale = float64(args[0]), 10.0 ** options["decimals"]
    whole = x is not None and abs(x * scale) < 2.0**52
    return Typed(nw.Float64(), round(x * scale) / scale if whole else x)


def logarithm(args, options):
    """The algorithm of the library on Python's floats;
    how far it is from the logarithm is held elsewhere.
    """
    x, base = float64(args[0]), options.get("base")
    if x is None or not x > (-1.0 if base is None else 0.0):
        return Typed(nw.Float64(), None)
    if math.isinf(x):
        return Typed(nw.Float64(), x)
    return Typed(
        nw.Float64(),
        taylor.log1p(x) if base is None else taylor.logarithm(x, base, taylor.Floats()),
    )


def exponential(args, options):
    x = float64(args[0])
    if x is None or not taylor.LEAST_POWER <= x <= taylor.LARGEST_POWER:
        return Typed(nw.Float64(), None if x is None else math.inf if x > 0 else 0.0)
    return Typed(nw.Float64(), taylor.exponential(x, taylor.Floats()))


# Comparison and logic


def compare(op):
    """Whole numbers exactly; where one of the two is no whole number, both as floats.
    A date is its midnight.
    """

    def rule(args, options):
        if {family(x.dtype) for x in args} == {"date", "datetime"}:
            args = [
                cast([x], {"dtype": nw.Datetime()}) if family(x.dtype) == "date" else x
                for x in args
            ]
        a, b = (x.value for x in args)
        if a is None or b is None:
            return Typed(nw.Boolean(), None)
        kinds = {family(x.dtype) for x in args}
        if kinds <= set(NUMBERS) and kinds != {"integer"}:
            a, b = map(float64, args)
        if kinds == {"string"}:
            a, b = a.encode(), b.encode()
        return Typed(nw.Boolean(), op(a, b))

    return rule


def logic(absorbing):
    def rule(args, options):
        a, b = (x.value for x in args)
        if absorbing in (a, b):
            return Typed(nw.Boolean(), absorbing)
        return Typed(nw.Boolean(), None if a is None or b is None else not absorbing)

    return rule


def opposite(args, options):
    x = args[0].value
    return Typed(nw.Boolean(), None if x is None else not x)


def is_null(args, options):
    return Typed(nw.Boolean(), args[0].value is None)


def is_in(args, options):
    x, kind = args[0], family(args[0].dtype)
    if x.value is None:
        return Typed(nw.Boolean(), None)
    if kind in ("float", "decimal"):
        return Typed(nw.Boolean(), x.value in [float(v) for v in options["values"]])
    if kind == "integer":
        return Typed(nw.Boolean(), x.value in [Fraction(v) for v in options["values"]])
    listed = [literal(midnight(v, x.dtype)).value for v in options["values"]]
    return Typed(nw.Boolean(), x.value in listed)


def midnight(written: Any, dtype: Any) -> Any:
    """A date beside a column of times is its midnight, a midnight beside dates its date."""
    if isinstance(written, dt.datetime):
        return written.date() if isinstance(dtype, nw.Date) else written
    if isinstance(written, dt.date) and isinstance(dtype, nw.Datetime):
        zone = dtype.time_zone and zoneinfo.ZoneInfo(dtype.time_zone)
        return dt.datetime(written.year, written.month, written.day, tzinfo=zone)
    return written


def fill_null(args, options):
    x, kind = args[0], family(args[0].dtype)
    dtype = nw.Float64() if kind in ("float", "decimal") else x.dtype
    filled = options["value"] if x.value is None else x.value
    if x.value is None and kind in ("date", "datetime", "duration"):
        filled = literal(midnight(filled, x.dtype)).value
    return Typed(dtype, float(filled) if kind in ("float", "decimal") else filled)


def clip(args, options):
    x, kind = args[0], family(args[0].dtype)
    low, high = options["lower"], options["upper"]
    if kind in ("date", "datetime", "duration"):
        low, high = (
            None if end is None else literal(midnight(end, x.dtype)).value for end in (low, high)
        )
        dtype = x.dtype
    elif kind == "integer":
        first, last = whole_range(x.dtype)
        low = first if low is None else min(max(math.ceil(low), first), last)
        high = last if high is None else min(max(math.floor(high), first), last)
        dtype = x.dtype
    else:
        dtype = nw.Float64()
    if x.value is None:
        return Typed(dtype, None)
    made = x.value if kind != "decimal" else float64(x)
    made = made if low is None or made >= low else low
    made = made if high is None or made <= high else high
    return Typed(dtype, float(made) if isinstance(dtype, nw.Float64) else made)


def exclusive(args, options):
    a, b = (x.value for x in args)
    return Typed(nw.Boolean(), None if a is None or b is None else a != b)


def case(args, options):
    branches = [*args[1::2], args[-1]]
    kinds = {family(x.dtype) for x in branches} - {"null"}
    holds = (
        branch
        for condition, branch in zip(args[:-1:2], branches, strict=False)
        if condition.value is True
    )
    chosen = next(holds, branches[-1])
    if kinds == {"integer"}:
        return Typed(nw.Int64(), None if chosen.value is None else int64(chosen))
    if kinds <= set(NUMBERS):
        return Typed(nw.Float64(), None if chosen.value is None else float64(chosen))
    typed = next(x.dtype for x in branches if family(x.dtype) != "null")
    return Typed(nw.String() if kinds == {"string"} else typed, chosen.value)


# Casts

CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
FORMS = {
    "integer": r"[+-]?[0-9]+",
    "float": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?",
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "datetime": rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}",
}


def cast(args, options):
    x, target = args[0], options["dtype"]
    have, want = family(x.dtype), family(target)
    made = None if x.value is None else CASTS[have, want](x, target)
    if isinstance(target, nw.Enum) and made not in target.categories:
        made = None
    return Typed(target, made)


def to_whole(x: Typed, target: Any) -> int | None:
    if isinstance(x.value, float) and math.isinf(x.value):
        return None
    whole = math.trunc(x.value)
    low, high = whole_range(target)
    return whole if low <= whole <= high else None


def single(x: float) -> float:
    """The nearest float of 32 bits; beyond them infinite."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def to_number(x: Typed, target: Any) -> float | None:
    made = float64(x)
    return made if made is None or isinstance(target, nw.Float64) else single(made)


def from_text(x: Typed, target: Any) -> Any:
    want = family(target)
    form = r"\+?[0-9]+" if target.is_unsigned_integer() else FORMS[want]
    if not re.fullmatch(form, x.value):
        return None
    if want == "integer":
        return to_whole(Typed(nw.Int128(), parsed_whole(x.value)), target)
    if want == "float":
        return to_number(Typed(nw.Float64(), float(x.value)), target)
    return from_calendar(x.value, target)


def parsed_whole(text: str) -> int:
    """Python's own reading of digits, which stops at 4,300 of them:
    beyond those it fits in no type.
    """
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 60:
        return 2**200
    return int(text[0] + (digits or "0")) if text[0] in "+-" else int(digits or "0")


def from_calendar(text: str, target: Any) -> int | None:
    try:
        day = dt.date.fromisoformat(text[:10])
    except ValueError:
        return None
    days = day.toordinal() - EPOCH.toordinal()
    if isinstance(target, nw.Date):
        return days
    hours, minutes, seconds = text[11:19].split(":")
    fraction = int(text[20:29].ljust(9, "0")[:6].ljust(9, "0")) if len(text) > 19 else 0
    nano = days * DAY + (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**9 + fraction
    return retimed(Typed(nw.Datetime("us"), nano), target)


def retimed(x: Typed, target: Any) -> int | None:
    """A time in the unit of another type, rounded down;
    None where its 64 bits do not reach (years 1678 to 2261).

    A time that gets a zone needs a day at either end of the calendar.
    """
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    if isinstance(target, nw.Date):
        return nano // DAY
    short = target.time_unit == "ns" and getattr(x.dtype, "time_unit", "") != "ns"
    if short or target.time_zone is not None:
        spare = 0 if getattr(x.dtype, "time_zone", None) is None and target.time_zone is None else 1
        years = (1678, 2261) if short else (1, 9999)
        low, high = (
            dt.date(year, *day).toordinal() - EPOCH.toordinal()
            for year, day in zip(years, ((1, 1), (12, 31)), strict=True)
        )
        if not (low + spare) * DAY <= nano < (high + 1 - spare) * DAY:
            return None
    return nano // NANO[target.time_unit] * NANO[target.time_unit]


def day_text(x: Typed, target: Any) -> str:
    day = dt.date.fromordinal(x.value + EPOCH.toordinal())
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


CASTS: dict[tuple[str, str], Callable[[Typed, Any], Any]] = {
    **{(have, "integer"): to_whole for have in (*NUMBERS, "boolean")},
    **{(have, "float"): to_number for have in (*NUMBERS, "boolean")},
    **{("string", want): from_text for want in ("integer", "float", "date", "datetime")},
    **{(have, want): retimed for have in ("date", "datetime") for want in ("date", "datetime")},
    ("integer", "boolean"): lambda x, _: x.value != 0,
    ("boolean", "boolean"): lambda x, _: x.value,
    ("integer", "string"): lambda x, _: str(x.value),
    ("boolean", "string"): lambda x, _: str(x.value).lower(),
    ("string", "string"): lambda x, _: x.value,
    ("date", "string"): day_text,
}


# Text and calendar


def text(dtype, function):
    def rule(args, options):
        x = args[0].value
        return Typed(dtype, None if x is None else function(x, options))

    return rule


def replaced(x: str, options: dict[str, Any]) -> str | None:
    """Null where a text that grows could become longer than 2^24 characters."""
    old, new = options["old"], options["new"]
    growth = math.ceil(Fraction(len(new), len(old)))
    if growth > 1 and len(x) > 2**24 // growth:
        return None
    return x.replace(old, new, -1 if options["every"] else 1)


def sliced(x: str, options: dict[str, Any]) -> str:
    """From the end, places before the first letter count too."""
    first = options["offset"] + (len(x) if options["offset"] < 0 else 0)
    last = len(x) if options["length"] is None else first + options["length"]
    return x[max(first, 0) : max(last, 0)]


def concatenated(args, options):
    """Null where one is, or where the text would have more than 2^24 letters."""
    parts = [written(x) for x in args]
    joined = None if None in parts else options.get("separator", "").join(parts)
    return Typed(nw.String(), None if joined is None or len(joined) > 2**24 else joined)


def written(x: Typed) -> str | None:
    return None if x.value is None else CASTS[family(x.dtype), "string"](x, nw.String())


def named(dtype):
    """A text with each part of a date or time at its place, in digits."""
    digits = {
        "%Y": "(?P<Y>[0-9]{4})",
        **{f"%{code}": f"(?P<{code}>[0-9]{{2}})" for code in "mdHMS"},
    }

    def rule(args, options):
        form = "".join(
            digits.get(x, re.escape(x)) for x in re.findall("%.|[^%]+", options["format"])
        )
        found = None if args[0].value is None else re.fullmatch(form, args[0].value)
        if found is None:
            return Typed(dtype, None)
        have = {**dict.fromkeys("HMS", "00"), **found.groupdict()}
        day = f"{have['Y']}-{have['m']}-{have['d']}"
        text = day if isinstance(dtype, nw.Date) else f"{day}T{have['H']}:{have['M']}:{have['S']}"
        return Typed(dtype, from_text(Typed(nw.String(), text), dtype))

    return rule


def python(pattern: str) -> re.Pattern[str]:
    """A pattern as Python has it: sets of ASCII, but the white space of Unicode,
    and an end that is none of lines.
    """
    listed = (
        pattern.replace(r"\S", f"[^{WHITE}]")
        .replace(r"\s", f"[{WHITE}]")
        .replace("[[", "[")
        .replace("$", r"\Z")
    )
    return re.compile(listed, re.ASCII)


WHITE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def extracted(x: str, options: dict[str, Any]) -> str | None:
    found = python(options["pattern"]).search(x)
    return None if found is None else found[options["group"]]


def counted(x: str, options: dict[str, Any]) -> int:
    pattern = options["pattern"]
    return (
        len(list(python(pattern).finditer(x))) if isinstance(pattern, Pattern) else x.count(pattern)
    )


def replaced_matches(x: str, options: dict[str, Any]) -> str | None:
    pattern, new = options["pattern"], options["new"]
    growth = math.ceil(Fraction(len(new), pattern.least))
    if growth > 1 and len(x) > 2**24 // growth:
        return None
    return python(pattern).sub(lambda _: new, x, count=0 if options["every"] else 1)


def stripped(x: str, options: dict[str, Any]) -> str:
    strip = {"": str.strip, "_start": str.lstrip, "_end": str.rstrip}[options["ends"]]
    return strip(x, options["characters"])


def filled(x: str, options: dict[str, Any]) -> str:
    zeros = "0" * max(0, options["length"] - len(x))
    return x[0] + zeros + x[1:] if x[:1] in ("-", "+") and x else zeros + x


def piece(x: str, options: dict[str, Any]) -> str | None:
    pieces, index = x.split(options["by"]), options["index"]
    return pieces[index] if -len(pieces) <= index < len(pieces) else None


def cased(written: str, other: Callable[[str], str]) -> str:
    """Replace a letter by its other case; a letter whose other case is several letters stays."""
    return "".join(y if len(y := other(x)) == 1 else x for x in written)


def part(function):
    def rule(args, options):
        x = args[0]
        return Typed(nw.Int64(), None if x.value is None else function(clock(x)))

    return rule


def clock(x: Typed) -> dt.datetime:
    """A day or time as a calendar shows it, on the clock of its zone."""
    if isinstance(x.dtype, nw.Date):
        return dt.datetime.combine(dt.date.fromordinal(x.value + EPOCH.toordinal()), dt.time())
    shown = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=x.value // 1000)
    return shown.astimezone(zoneinfo.ZoneInfo(x.dtype.time_zone)) if x.dtype.time_zone else shown


def date(args, options):
    x = args[0]
    return Typed(
        nw.Date(), None if x.value is None else clock(x).date().toordinal() - EPOCH.toordinal()
    )


def local(x: Typed) -> Typed:
    """The time that the clock of a zone shows, without a zone."""
    ahead = (clock(x).utcoffset() or dt.timedelta(0)) // dt.timedelta(seconds=1) * 10**9
    return time_or_none(x.value + ahead, nw.Datetime(x.dtype.time_unit))


def localized(x: Typed, zone: str) -> Typed:
    """The moment at which a zone's clock shows a time:
    of two that Python gives, those whose clock shows it, if one.
    """
    target = nw.Datetime(x.dtype.time_unit, zone)
    if any(time_or_none(x.value + by * DAY, target).value is None for by in (1, -1)):
        return Typed(target, None)
    shown, found = clock(x).replace(tzinfo=zoneinfo.ZoneInfo(zone)), set()
    for fold in (0, 1):
        ahead = shown.replace(fold=fold).utcoffset() // dt.timedelta(seconds=1) * 10**9
        moment = Typed(target, x.value - ahead)
        found |= {moment} if local(moment).value == x.value else set()
    return found.pop() if len(found) == 1 else Typed(target, None)


def rezoned(args, options):
    x = args[0]
    target = nw.Datetime(x.dtype.time_unit, options["zone"])
    return Typed(target, None) if x.value is None else time_or_none(x.value, target)


def relabelled(args, options):
    x, zone = args[0], options["zone"]
    if x.value is None:
        return Typed(nw.Datetime(x.dtype.time_unit, zone), None)
    shown = local(x) if x.dtype.time_zone else x
    if shown.value is None:
        return Typed(nw.Datetime(x.dtype.time_unit, zone), None)
    return shown if zone is None else localized(shown, zone)


def truncated(args, options):
    """In a zone, by its clock; windows within an hour begin as long ago as the clock says."""
    x = args[0]
    if x.value is None or getattr(x.dtype, "time_zone", None) in (None, "UTC"):
        return window(x, options)
    number, unit = re.fullmatch("([0-9]+)([a-z]+)", options["every"]).groups()
    seconds = int(number) * SECONDS.get(unit, 3601)
    if local(x).value is None:
        return Typed(x.dtype, None)
    if 3600 % seconds == 0:
        return time_or_none(x.value - local(x).value % (seconds * 10**9), x.dtype)
    start = window(local(x), options)
    return Typed(x.dtype, None) if start.value is None else localized(start, x.dtype.time_zone)


def window(x: Typed, options: dict[str, Any]) -> Typed:
    """Months are counted from January 1970, weeks from its first Monday, other
    windows from its first second.
    """
    if x.value is None:
        return Typed(x.dtype, None)
    number, unit = re.fullmatch("([0-9]+)([a-z]+)", options["every"]).groups()
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    if unit in SECONDS:
        origin = 4 * DAY if unit == "w" else 0
        return time_or_none(nano - (nano - origin) % (int(number) * SECONDS[unit] * 10**9), x.dtype)
    day = clock(x).date()
    month = (day.year - 1970) * 12 + day.month - 1
    start = month - month % (int(number) * MONTHS[unit])
    return time_or_none(first_of(start) * DAY if start >= -1969 * 12 else FIRST * DAY - 1, x.dtype)


SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MONTHS = {"mo": 1, "q": 3, "y": 12}


def first_of(month: int) -> int:
    """The first day of a month that is counted from January 1970."""
    if month == 8030 * 12:
        return LAST + 1
    return dt.date(1970 + month // 12, month % 12 + 1, 1).toordinal() - EPOCH.toordinal()


def offset_by(args, options):
    x, sign = args[0], -1 if options["by"].startswith("-") else 1
    if x.value is None:
        return Typed(x.dtype, None)
    number, unit = re.fullmatch("-?([0-9]+)([a-z]+)", options["by"]).groups()
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    if unit in SECONDS:
        return time_or_none(nano + sign * int(number) * SECONDS[unit] * 10**9, x.dtype)
    day = clock(x).date()
    month = (day.year - 1970) * 12 + day.month - 1 + sign * int(number) * MONTHS[unit]
    if not -1969 * 12 <= month < 8030 * 12:
        return Typed(x.dtype, None)
    last = first_of(month + 1) - first_of(month)
    return time_or_none((first_of(month) + min(day.day, last) - 1) * DAY + nano % DAY, x.dtype)


def month_end(args, options):
    x = args[0]
    if x.value is None:
        return Typed(x.dtype, None)
    day = clock(x).date()
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    return time_or_none(
        (first_of((day.year - 1970) * 12 + day.month) - 1) * DAY + nano % DAY, x.dtype
    )


def second(args, options):
    x = args[0]
    shown = None if x.value is None else local(x).value
    return Typed(nw.Int64(), None if shown is None else shown // 10**9 % 60)


def total(args, options):
    """Rounded toward zero; null for a duration without its opposite."""
    x, unit = args[0], SECONDS[options["unit"]] * 10**9
    if x.value is None or x.value // nano_of(x.dtype) == INT64[0]:
        return Typed(nw.Int64(), None)
    return Typed(nw.Int64(), abs(x.value) // unit * (1 if x.value > 0 else -1))


def month_start(args, options):
    x = args[0]
    if x.value is None:
        return Typed(x.dtype, None)
    nano = x.value * DAY if isinstance(x.dtype, nw.Date) else x.value
    return time_or_none(nano - (clock(x).day - 1) * DAY, x.dtype)


def time_or_none(nano: int, dtype: Any) -> Typed:
    """A time, where there is one: in the years 1 to 9999, and where 64 bits are
    nanoseconds, one that they hold.

    The clock of a zone needs a day at either end.
    """
    spare = 0 if getattr(dtype, "time_zone", None) is None else 1
    low, high = (FIRST + spare) * DAY, (LAST + 1 - spare) * DAY
    if getattr(dtype, "time_unit", "") == "ns":
        low, high = max(low, -(2**63)), min(high, 2**63 - 1)
    made = nano // DAY if isinstance(dtype, nw.Date) else nano
    return Typed(dtype, made if low <= nano < high else None)


RULES: dict[str, Callable[..., Typed]] = {
    "add": summed,
    "floor_divide_by": by_column(operator.floordiv),
    "modulo_by": by_column(operator.mod),
    "subtract": subtracted,
    "multiply": arithmetic(operator.mul),
    "divide": divide,
    "floor_divide": by_constant(operator.floordiv),
    "modulo": by_constant(operator.mod),
    "negative": negative,
    "abs": absolute,
    "floor": of_float(math.floor),
    "ceil": of_float(math.ceil),
    "sqrt": root,
    "power": power,
    "log": logarithm,
    "log1p": logarithm,
    "exp": exponential,
    "sign": sign,
    "round": rounded,
    "equal": compare(operator.eq),
    "not_equal": compare(operator.ne),
    "less": compare(operator.lt),
    "less_equal": compare(operator.le),
    "greater": compare(operator.gt),
    "greater_equal": compare(operator.ge),
    "and": logic(False),
    "or": logic(True),
    "xor": exclusive,
    "not": opposite,
    "is_null": is_null,
    "is_in": is_in,
    "fill_null": fill_null,
    "clip": clip,
    "cast": cast,
    "case": case,
    "str.to_lowercase": text(nw.String(), lambda x, _: cased(x, str.lower)),
    "str.to_uppercase": text(nw.String(), lambda x, _: cased(x, str.upper)),
    "str.len_chars": text(nw.Int64(), lambda x, _: len(x)),
    "str.contains": text(nw.Boolean(), lambda x, o: o["literal"] in x),
    "str.starts_with": text(nw.Boolean(), lambda x, o: x.startswith(o["literal"])),
    "str.ends_with": text(nw.Boolean(), lambda x, o: x.endswith(o["literal"])),
    "str.head": text(nw.String(), lambda x, o: x[: o["n"]]),
    "str.slice": text(nw.String(), sliced),
    "str.to_date": named(nw.Date()),
    "str.to_datetime": named(nw.Datetime("us")),
    "str.zfill": text(nw.String(), filled),
    "concat_str": concatenated,
    "str.replace": text(nw.String(), replaced),
    "str.split": text(nw.String(), piece),
    "str.matches": text(nw.Boolean(), lambda x, o: python(o["pattern"]).search(x) is not None),
    "str.extract": text(nw.String(), extracted),
    "str.count_matches": text(nw.Int64(), counted),
    "str.replace_matches": text(nw.String(), replaced_matches),
    "str.strip_chars": text(nw.String(), stripped),
    "str.strip_prefix": text(nw.String(), lambda x, o: x.removeprefix(o["literal"])),
    "str.strip_suffix": text(nw.String(), lambda x, o: x.removesuffix(o["literal"])),
    "dt.year": part(lambda t: t.year),
    "dt.month": part(lambda t: t.month),
    "dt.day": part(lambda t: t.day),
    "dt.date": date,
    "dt.week": part(lambda t: t.isocalendar().week),
    "dt.quarter": part(lambda t: (t.month + 2) // 3),
    "dt.month_start": month_start,
    "dt.truncate": truncated,
    "dt.offset_by": offset_by,
    "dt.month_end": month_end,
    "dt.second": second,
    "dt.convert_time_zone": rezoned,
    "dt.replace_time_zone": relabelled,
    **dict.fromkeys(
        ("dt.total_days", "dt.total_hours", "dt.total_minutes", "dt.total_seconds"), total
    ),
    "dt.weekday": part(lambda t: t.isoweekday()),
    "dt.ordinal_day": part(lambda t: t.timetuple().tm_yday),
    "dt.hour": part(lambda t: t.hour),
    "dt.minute": part(lambda t: t.minute),
}
