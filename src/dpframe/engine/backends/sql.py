"""The part that DuckDB, Ibis and Spark have in common: engines on SQL.

Inside, a column has one of four types: whole numbers, Float64, text, Boolean. A text is held as its
bytes on an engine with collations, since a collation would compare it by another rule: see
`Backend.bytewise`. A date or time is held as its ticks, because no two of these engines agree on
how times are read, compared or written, and all agree on integers. SQL ignores the case of names,
so the user's names are not used: columns are scanned under names that dpframe chooses.

Whole numbers are divided through floats, exactly: see `quotient`. An engine's own `//` rounds
toward zero on one engine and loses digits on another.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends.base import (
    Backend,
    CellFunction,
    Frame,
    Part,
    Piece,
    Replaced,
    Stripped,
)
from dpframe.engine.tables import domain_of
from dpframe.errors import UnsupportedOperation
from dpframe.plan import (
    TIMES,
    Candidates,
    ColumnDomain,
    Ends,
    Kind,
    kind,
    show,
    ticks,
    time_unit,
    zone_of,
)

_LIMB, _WHOLE = 2**32, 2.0**52  # from 2^52 on, every float is a whole number
MOST_ROWS = 2**62  # more than any table has
MOST_CONSTANTS = 200  # largest number of keys that are constants of a query
_DAY = 86_400_000_000  # microseconds
_ONE_PRODUCT = 1000  # powers of two up to this one are one factor of a product, which is a float
_SINGLE = 3.4028235677973366e38  # from this number on, the nearest 32-bit float is infinite
# Microseconds in one tick of a unit; a column in seconds is held in milliseconds.
_MICRO: Mapping[str, int] = {"ms": 1000, "s": 1000, "us": 1}


def microseconds_in(dtype: DType) -> int:
    """Microseconds in one tick of a type of times."""
    return _MICRO[time_unit(dtype)]


# Texts in SQL. What is looked for, of {size} characters, and what comes in its place are literals:
# {old}, {by}, {new}. A piece is there if the text has enough separators before it, which are
# counted by what is lost without them.
REPLACED = """CASE WHEN {find}({text}, {old}) > 0
THEN left({text}, {find}({text}, {old}) - 1) || {new}
|| substr({text}, {find}({text}, {old}) + {size}) ELSE {text} END"""
_LOST = "(length({text}) - length(replace({text}, {by}, '')))"
PIECE = (
    f"CASE WHEN {_LOST} >= {{least}} * {{size}} THEN split_part({{text}}, {{by}}, {{number}}) END"
)
FROM_END = f"CAST({_LOST} {{div}} {{size}} AS INTEGER) + {{place}}"


def piece_of(text: str, by: str, size: int, index: int, div: str) -> str:
    """SQL for a piece of a text between separators, by its number from 0, or from -1 at the end.

    Input:  text, by: SQL for the text and the separator; size: characters of the separator; div:
            whole division
    """
    place = {"text": text, "by": by, "size": size}
    number = str(index + 1) if index >= 0 else FROM_END.format(**place, div=div, place=index + 2)
    return PIECE.format(**place, least=index if index >= 0 else -index - 1, number=number)


_TRIMMED = {Ends.BOTH: "BOTH", Ends.START: "LEADING", Ends.END: "TRAILING"}


def stripped_of(text: str, characters: str, ends: Ends) -> str:
    """SQL for a text without some characters at its ends.
    Input: SQL for the text and the characters.
    """
    return f"TRIM({_TRIMMED[ends]} {characters} FROM {text})"


class SqlBackend(Backend):
    """An engine on SQL.
    A subclass has the SQL of its engine; this class has the operations that need only integers.
    """

    # Expressions

    def constant(self, value: Any, dtype: DType) -> Any:
        return value if value is None or kind(dtype) not in TIMES else ticks(value, dtype, "")

    def from_ticks(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        return value

    def moment(self, value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
        return (
            self._microseconds(value, domain.dtype)
            if kind(domain.dtype) == Kind.DATETIME
            else value
        )

    def _microseconds(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        scale = microseconds_in(dtype)
        return value if scale == 1 else value * scale

    def retimed(self, value: nw.Expr, source: DType, target: DType) -> nw.Expr:
        if kind(target) == Kind.DATE:
            return (
                value
                if kind(source) == Kind.DATE
                else self.quotient(self._microseconds(value, source), _DAY)
            )
        micro = value * _DAY if kind(source) == Kind.DATE else self._microseconds(value, source)
        scale = microseconds_in(target)
        return micro if scale == 1 else self.quotient(micro, scale)

    def whole(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        return value.cast(dtype if dtype == nw.UInt64 else nw.Int64)

    def single(self, value: nw.Expr) -> nw.Expr:
        inside = nw.when((value > -_SINGLE) & (value < _SINGLE)).then(value)
        infinite = nw.when(value >= _SINGLE).then(nw.lit(math.inf)).otherwise(nw.lit(-math.inf))
        beyond = nw.when(~value.is_null()).then(infinite)
        return nw.coalesce(inside.cast(nw.Float32).cast(nw.Float64), beyond)

    def quotient(self, top: nw.Expr, bottom: nw.Expr | int) -> nw.Expr:
        """Divide the largest multiple of `bottom` that is at most `top`, as floats,
        and round to the nearest integer.

        Bound:  the exact quotient q is a whole number below 2^51, and a rounding has a relative
                error of at most 2^-53. If `bottom` is at most 2^53, its float is exact. Converting
                the multiple and dividing are two roundings, so the error is below 2·2^-53·2^51 =
                1/2. Otherwise q is below 2^10, and the error of three roundings is far below 1/2
        """
        below = top - top % bottom
        divisor = float(bottom) if isinstance(bottom, int) else bottom.cast(nw.Float64)
        return (below.cast(nw.Float64) / divisor + 0.5).floor().cast(nw.Int64)

    def remainder(self, top: nw.Expr, by: int) -> nw.Expr:
        return top % by

    def floor(self, value: nw.Expr) -> nw.Expr:
        inside = nw.when((value > -_WHOLE) & (value < _WHOLE)).then(value)
        return nw.coalesce(inside.floor().cast(nw.Float64), value)

    # Columns

    def key_table(self, frame: Frame, keys: pl.DataFrame) -> Frame | None:
        if keys.height <= MOST_CONSTANTS or not self.brings_keys(frame):
            return None
        with suppress(UnsupportedOperation):  # then the keys are constants of the query
            return self.bring(frame, keys)
        return None

    def unique(self, frame: Frame) -> Frame:
        """SELECT DISTINCT.
        narwhals numbers the rows of each group in a window instead, which sorts all rows.
        """
        return nw.from_native(frame.to_native().distinct())

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        """Divide numbers that are not negative: for x < 0, ⌊x / by⌋ = -1 - ⌊(-1
        - x) / by⌋, and nothing wraps.

        With a small divisor the quotient has more than 51 bits. Then it is computed in two limbs of
        32 bits.
        """
        top, size = nw.col(column), nw.col(into)
        frame = frame.with_columns(nw.when(top >= 0).then(top).otherwise(-1 - top).alias(into))
        if by >= 2**20:
            frame = frame.with_columns(self.quotient(size, by).alias(into))
        else:
            high, upper = nw.col(f"{into}h"), nw.col(f"{into}u")
            frame = frame.with_columns(self.quotient(size, _LIMB).alias(f"{into}h"))
            frame = frame.with_columns(self.quotient(high, by).alias(f"{into}u"))
            remainder = (high - upper * by) * _LIMB + (size - high * _LIMB)
            frame = frame.with_columns((upper * _LIMB + self.quotient(remainder, by)).alias(into))
        return frame.with_columns(nw.when(top >= 0).then(size).otherwise(-1 - size).alias(into))

    def kept(
        self,
        pairs: Frame,
        units: Sequence[str],
        column: str,
        most: int,
        salt: str,
        hashes: dict[str, Any],
    ) -> Frame:
        hashed = self.stable_hash(pairs, [*units, column], salt, "h")
        return self.ranked(hashed, "h", units).filter(nw.col("r") <= most).select(*units, column)

    # For subclasses

    def brings_keys(self, frame: Frame) -> bool:
        """Whether a public table comes to this database in another
        way than as constants of a query.
        """
        return True

    in_numbers = "as in EXTRACT(EPOCH FROM x)"  # the SQL that makes a number of a duration

    @abstractmethod
    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        """Add a keyed hash of some columns, one that does not change
        with the version of the engine.
        """

    def reason_against(self, dtype: DType) -> str:
        if getattr(dtype, "time_unit", "") == "ns":
            return (
                "times are held in microseconds there: CAST(x AS TIMESTAMP) before dp.protect(...)"
            )
        if kind(dtype) == Kind.DURATION:
            return (
                "a duration has no fixed length there: make it a number before dp.protect(...), "
                f"{self.in_numbers}"
            )
        return ""

    def reason_against_cast(self, dtype: DType) -> str:
        """Refuse integers of 128 bits too: databases use them for large sums, and
        differ in how they return them.
        """
        if dtype in (nw.Int128, nw.UInt128):
            return "whole numbers have 64 bits there: cast to 'int64', or to 'float64'"
        if getattr(dtype, "time_unit", "") == "ns":
            return "times are held in microseconds there: cast to 'datetime'"
        return self.reason_against(dtype)


class TextSqlBackend(SqlBackend):
    """An engine whose columns are given as texts of SQL, DuckDB or Spark."""

    parts: Mapping[str, str]  # SQL of the parts of a date or time
    whole_division: str  # the sign of a division of whole numbers

    @abstractmethod
    def computed(self, frame: Frame, sql: str, into: str) -> Frame:
        """A frame with one more column."""

    @abstractmethod
    def text(self, value: str) -> str:
        """SQL of a text constant, by its bytes."""

    @abstractmethod
    def number(self, value: float) -> str:
        """SQL of a finite float, exactly."""

    @abstractmethod
    def moment_of(self, column: str, zone: str | None) -> str:
        """SQL of a time from its microseconds, on the clock of a zone."""

    @abstractmethod
    def day_of(self, column: str) -> str:
        """SQL of a date from its days since 1970."""

    def ranked(self, frame: Frame, hashes: str, units: Sequence[str]) -> Frame:
        """The rank is the number of the unit's hashes that are not higher:
        one window, where narwhals has two.
        """
        return self.computed(
            frame, f"count(*) OVER (PARTITION BY {', '.join(units)} ORDER BY {hashes})", "r"
        )

    def spread(self, frame: Frame, into: str) -> Frame:
        """By the engine's own division: it rounds toward zero, and no
        number here is negative, nor n zero.
        """
        div = self.whole_division
        return self.computed(frame, f"d * (w {div} n) + ((d * (w % n)) {div} n)", into)

    def nearest(
        self, frame: Frame, value: nw.Expr, candidates: Candidates, into: str
    ) -> Frame | None:
        """The operations of `stages.candidate_number`, in this order,
        with the engine's own division.
        """
        if not candidates.extent or not 0 <= candidates.power <= _ONE_PRODUCT:
            return None
        lower, upper = self.number(candidates.lower), self.number(candidates.upper)
        inside = f"least(greatest({into}, {lower}), {upper}) - {lower}"
        place = f"CAST(floor(({inside}) * {self.number(2.0**candidates.power)}) AS BIGINT)"
        times, add, whole = candidates.quotient
        number = f"({place} * {times} + {add}) {self.whole_division} {whole}"
        clipped = f"least(greatest({number}, 0), {candidates.count - 1})"
        sql = f"CASE WHEN {into} IS NULL THEN -1 ELSE {clipped} END"
        return self.computed(frame.with_columns(value.alias(into)), f"CAST({sql} AS BIGINT)", into)

    def apply(self, frame: Frame, column: str, function: CellFunction, into: str) -> Frame:
        return self.computed(frame, self.sql_of(column, function), into)

    def sql_of(self, column: str, function: CellFunction) -> str:
        """SQL of what a function makes of the cells of a column."""
        match function:
            case Replaced(old, new, every):
                have, want = self.text(old), self.text(new)
                if every:
                    return f"replace({column}, {have}, {want})"
                return REPLACED.format(text=column, old=have, new=want, size=len(old), find="instr")
            case Piece(by, index):
                return piece_of(column, self.text(by), len(by), index, self.whole_division)
            case Stripped(characters, ends):
                return stripped_of(column, self.text(characters), ends)
            case Part(dtype, part):
                return self._part_of(column, dtype, part)
        raise NotImplementedError

    def _part_of(self, column: str, dtype: DType, part: str) -> str:
        if kind(dtype) == Kind.DATE:
            value = self.day_of(column)
        else:
            scale = microseconds_in(dtype)
            column = column if scale == 1 else f"({column} * {scale})"
            value = self.moment_of(column, zone_of(dtype))
        sql = self.parts[part].format(value, column)
        return sql if part == "text" else f"CAST({sql} AS BIGINT)"


def our_names(names: Iterable[str]) -> dict[str, str]:
    """The name under which each column is scanned.
    Columns whose names differ in case alone are left out.
    """
    names = list(names)
    spellings = Counter(name.casefold() for name in names)
    return {name: f"s{i}" for i, name in enumerate(names) if spellings[name.casefold()] == 1}


def schema_of(
    engine: SqlBackend, types: Mapping[str, DType], against: Mapping[str, str] | None = None
) -> tuple[tuple[str, ColumnDomain], ...]:
    """The schema of a table, from its types alone. Times are held in microseconds.

    Input:  the engine; the types; against: for columns that cannot be held for another reason than
            their type, that reason
    """
    domain = []
    for name, dtype in types.items():
        coarse = isinstance(dtype, nw.Datetime) and dtype.time_unit in ("s", "ms")
        inner = nw.Datetime("us", zone_of(dtype)) if coarse else dtype
        why = (against or {}).get(name) or engine.reason_against(inner)
        domain.append(
            (
                name,
                ColumnDomain(_Unheld(f"{show(inner)} (in {engine.name} {why})"))
                if why
                else domain_of(inner),
            )
        )
    return tuple(domain)


class _Unheld(nw.Unknown):
    """A type that an engine cannot hold, with the words in which a question
    about such a column is refused.
    """

    __slots__ = ("words",)

    def __init__(self, words: str) -> None:
        self.words = words

    def __repr__(self) -> str:
        return self.words


def plain_table(engine: SqlBackend, beside: Frame, table: pl.DataFrame) -> pl.DataFrame:
    """A public table in the types that SQL engines hold, with its texts in
    the form of the texts of a frame.

    Errors: UnsupportedOperation for a column whose type the engine cannot hold
    """
    types = nw.from_native(table).schema
    for dtype in types.values():
        why = engine.reason_against(dtype)
        if why:
            raise UnsupportedOperation(
                f"join: a public column of type {show(dtype)} cannot go to {engine.name}: {why}."
            )
        if dtype in (nw.Int128, nw.UInt128):  # Arrow has no such type
            raise UnsupportedOperation(
                f"join: a public column of type {show(dtype)} cannot go to {engine.name}: cast it "
                "to Int64 before."
            )
    families = {name: kind(dtype) for name, dtype in types.items()}
    text = pl.Binary if Kind.STRING in families.values() and engine.bytewise(beside) else pl.String
    engine_types = {
        "integer": None,
        "boolean": None,
        "string": text,
        "date": pl.Int64,
        "datetime": pl.Int64,
    }
    casts = {name: engine_types.get(family, pl.Float64) for name, family in families.items()}
    table = table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return table.with_columns(
        pl.col(name).cast(dtype) for name, dtype in casts.items() if dtype is not None
    )


def texts_read(table: pl.DataFrame) -> pl.DataFrame:
    """A table of totals with its columns of bytes, in which some engines hold texts, as texts."""
    return table.with_columns(pl.col(pl.Binary).cast(pl.String))
