"""The interface of an engine: every operation that dpframe needs and narwhals does
not offer alike on all engines.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.tables import Data
from dpframe.plan import Candidates, ColumnDomain, Ends, Pattern, Search, Task

Frame = nw.LazyFrame[Any]


class Work(NamedTuple):
    """The most that some queries start on a cluster:
    jobs, and shuffles, which move rows between its machines.
    """

    jobs: int
    shuffles: int


class Selection(NamedTuple):
    """The groups that each unit keeps of its rows, and what is added up in them."""

    units: Sequence[str]
    groups: Sequence[str]
    hashes: str  # the column with the hash of a row's group
    most: int | None  # groups of a unit: those with the lowest hashes; None keeps every group
    cap: int  # most rows of a unit in a group
    # for each column of the output, the Int64 column of the rows that it adds up
    sums: Mapping[str, str]


class Reached(NamedTuple):
    """The name of what answers, and the number of the open file of its connection;
    None where it is in this process.
    """

    name: str
    connection: int | None = None


# Functions of a cell that narwhals does not have, or that differ between engines. Each is total.


class _OfText:
    result: ClassVar[str] = "string"  # the type of the result, by its name in Ibis


@dataclass(frozen=True)
class Cased(_OfText):
    """A text in capital or in small letters, by the table of `dpframe.engine.letters`."""

    capital: bool


@dataclass(frozen=True)
class Replaced(_OfText):
    """A text with `new` in place of `old`, which is not empty: each time, or the first time."""

    old: str
    new: str
    every: bool


@dataclass(frozen=True)
class Piece(_OfText):
    """The piece of a text between separators, by its number from 0, or from -1
    at the end; null where none is.
    """

    by: str
    index: int


@dataclass(frozen=True)
class Stripped(_OfText):
    """A text without some characters at its ends."""

    characters: str
    ends: Ends


@dataclass(frozen=True)
class Part:
    """A part of a date or time: "year" to "minute" or "days" since 1970 as
    Int64, or the "text" of a date.

    Of a time with a zone, also the "offset": the seconds that its clock is ahead of UTC.
    """

    dtype: DType
    part: str

    @property
    def result(self) -> str:
        """The type of the result, by its name in Ibis."""
        return "string" if self.part == "text" else "int64"


@dataclass(frozen=True)
class Parsed:
    """A text converted to a number, date or time; null where it is not one."""

    dtype: DType


# Of a `Search`, the time of an engine's own regular expressions must not grow faster than the text,
# and no text makes them fail. Of matches at one place, it is the one that is tried first.
# `against_search` has been asked before.
CellFunction = Cased | Replaced | Piece | Stripped | Part | Parsed | Search


class Backend(ABC):
    """One engine.

    Every operation is total: a result that does not exist is null, and no cell makes the operation
    fail. Columns have names that dpframe chose, so no two differ in case alone. Operations that
    narwhals offers alike on all engines, such as a cast to float, are not listed here.
    """

    name: str

    # Tables

    @abstractmethod
    def adopt(self, table: object) -> Data | None:
        """A user's table as `Data`; None for a table that this engine does not take in.
        No row is read.
        """

    def fetch(self, table: Any) -> pl.DataFrame:
        """The rows of a public table of this engine."""
        raise NotImplementedError

    def together(self, first: Any, second: Any) -> bool:
        """Whether one query can use both native frames."""
        return True

    def reason_against(self, dtype: DType) -> str:
        """The reason why this engine cannot hold a column of a type; "" where it can."""
        return ""

    def reason_against_cast(self, dtype: DType) -> str:
        """The reason why this engine cannot cast to a type; "" where it can."""
        return self.reason_against(dtype)

    @abstractmethod
    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        """A small public table, as a frame that can be joined to `beside`.
        Times are in the engine's own form.
        """

    @abstractmethod
    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        """The tables of some frames of totals, computed together if the
        engine can; whole numbers are Int64.
        """

    def collect_few(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """The tables of some frames over few rows, where an engine
        spends no time on how it reads them.
        """
        return self.collect(frames)

    # whether one query reads the rows of a `shared` frame once, however often it uses the frame
    reads_once = False

    def shared(self, frame: Frame) -> Frame:
        """A frame from which several others are made: cached, on engines that can cache it."""
        return frame

    def gathered(self, frame: Frame, units: Sequence[str]) -> Frame:
        """The rows of a frame, those of a unit in one partition, on engines where
        counting within units is quicker so.

        It is for questions that move all rows anyway: where units have many rows in a group, sums
        move less.
        """
        return frame

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """The tables of some frames without their rows.
        A query that would fail after the charge fails here.

        No row is read. An engine that can plan a query without running it may give the table itself
        for `scan(empty=True)`; then only this method runs on it, and it must not compute with the
        rows.
        """
        return self.collect(frames)

    # whether `scan(empty=True)` gives the table itself, so that what was planned can run
    plans_tables = False

    def rehearsed(self, frame: Frame, rows: Callable[[], Any]) -> Frame:
        """A frame without rows that remembers how queries are made from it, where
        it takes long to make them anew.

        Input:  rows: gives the native table with its rows
        """
        return frame

    def reached(self, table: Callable[[], Any]) -> Reached:
        """The server or file that answers for a table.
        Input: table: gives the table, of which nothing is asked.
        """
        return Reached(self.name)

    def try_threads(self, data: Data) -> None:
        """A small computation in the threads of the engine, on a table without its rows."""
        names = data.columns[:1]
        self.planned([nw.from_native(data.scan(names, empty=True))])

    def work(self, frames: Sequence[Frame]) -> Work | None:
        """The work of a cluster for these queries, from their plans;
        None for an engine that is no such cluster.

        Input:  frames on tables without their rows
        """
        return None

    # Texts

    def bytewise(self, frame: Frame) -> bool:
        """Whether a frame of this engine holds texts as their bytes in UTF-8.

        Databases compare texts by a collation, which belongs to the session, the database or the
        column; a literal may have another one. Some collations take "bonn" and "BONN" for equal.
        Then the two would form one group, a public table would have more rows for a key than
        dpframe counted, and the spelling of one unit could be the released key. Bytes have no
        collation. So an engine with collations holds every text as bytes, whatever its origin, and
        turns it into a text only for functions that read letters.
        """
        return False

    def to_bytes(self, frame: Frame, column: str, into: str) -> Frame:
        """Add a column with the bytes of a column of texts.
        Only for engines that hold texts as bytes.
        """
        raise NotImplementedError

    def to_text(self, frame: Frame, column: str, into: str) -> Frame:
        """Add a column with the texts of a column of bytes.
        Only for engines that hold texts as bytes.
        """
        raise NotImplementedError

    def settled(self, frame: Frame) -> Frame:
        """The rows behind a step that the engine's planner does not look through, if it needs one.

        DuckDB, DataFusion and Spark move filters, and DuckDB aggregates too, down through computed
        columns. On the way they put the expression of a column at each place where it is used. Ten
        columns of which each reads the one before twice, as in a logarithm, became a thousand
        expressions, and the planner did not end.
        """
        return frame

    def texts(self, frame: Frame, values: Iterable[object]) -> list[object]:
        """Constants of a query: texts in the form in which the frame holds
        texts, other values as they are.
        """
        values = list(values)
        if not any(isinstance(value, str) for value in values) or not self.bytewise(frame):
            return values
        return [value.encode() if isinstance(value, str) else value for value in values]

    def is_one_of(self, frame: Frame, value: nw.Expr, values: Iterable[object]) -> nw.Expr:
        """Whether a column of a frame is equal to one of the values."""
        return value.is_in(self.texts(frame, values))

    # Columns that the engine computes itself

    @abstractmethod
    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """Add a 64-bit hash of some columns, keyed by a 64-bit salt.
        It depends on these values and the salt alone.

        Privacy does not rest on the quality of the hash: groups with equal hashes are dropped (see
        `limits`). Each release draws a new salt.
        """

    def unique(self, frame: Frame) -> Frame:
        """Distinct rows of a frame."""
        return frame.unique()

    def added(
        self, frame: Frame, by: Sequence[str], sums: Mapping[str, str], rows: str = ""
    ) -> Frame:
        """One row for each combination of the columns `by`; one row in all where there are none.

        Input:  sums: for each column of the output, the Int64 column that it adds up; rows: a
                column of the output for the number of rows, if it is wanted
        """
        columns = [nw.len().cast(nw.Int64).alias(rows)] if rows else []
        columns += [
            nw.col(name).sum().fill_null(0).cast(nw.Int64).alias(into)
            for into, name in sums.items()
        ]
        return frame.group_by(*by).agg(*columns) if by else frame.select(*columns)

    def nearest(
        self, frame: Frame, value: nw.Expr, candidates: Candidates, into: str
    ) -> Frame | None:
        """Add the number of the candidate nearest to a float, -1 where it is
        missing: see `Candidates.nearest`.

        None where expressions of narwhals are as quick, and for candidates that need more than one
        product.
        """
        return None

    sifts = False  # whether this engine has a `sifted` that removes or moves rows

    def sifted(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """The rows in any order.
        A row may be left out if the hash of its group has a rank above `most` in its unit.
        """
        return frame

    def lowest(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """The rows whose hash has rank("max") at most `most` within their unit.
        Of a tie at the border no row stays.
        """
        return self.ranked(frame, hashes, units).filter(nw.col("r") <= most)

    def ranked(self, frame: Frame, hashes: str, units: Sequence[str]) -> Frame:
        """Add the rank("max") of each row's hash within its unit as a column "r"."""
        return frame.with_columns(nw.col(hashes).rank("max").over(*units).alias("r"))

    keeps_by_sorting = False  # whether this engine has `kept_partials`

    def kept_partials(self, frame: Frame, kept: Selection) -> Frame:
        """Partials of the groups that `lowest` keeps, with sums of Int64 columns of rows.

        Input:  rows with the hash of their group
        Output: the units and groups, the number of rows "n", the unit's sum "a" of min(n, cap), and
                the sums
        """
        raise NotImplementedError

    keeps_by_windows = False  # whether this engine has `kept_rows`

    def kept_rows(self, rows: Frame, kept: Selection) -> Frame:
        """The rows of the groups that `lowest` keeps, each with what is known of its partial.

        Input:  rows, those of a unit together, with the hash of their group where not all are kept
        Output: the rows, with the number of rows "n" of the unit in the group, "c" = min(n, cap),
                and the unit's sum "a" of c over the groups that it keeps
        """
        raise NotImplementedError

    def spread(self, frame: Frame, into: str) -> Frame:
        """Add the weight ⌊d · w / n⌋ of "d" of a unit's "n" rows in a group, where
        "w" is the row weight of all n.

        The weights of disjoint sets of rows add up to at most w. With w = q·n + r the result is d·q
        + ⌊d·r / n⌋, and no product wraps: d·q <= w, and d·r < n² fits in 64 bits while a unit has
        fewer than 2^31 rows in a group.
        """
        d, w, n = nw.col("d"), nw.col("w"), nw.col("n")
        quotient = self.quotient(w, n)
        return frame.with_columns(
            (d * quotient + self.quotient(d * (w - quotient * n), n)).alias(into)
        )

    def key_table(self, frame: Frame, keys: pl.DataFrame) -> Frame | None:
        """Many different listed keys of a column as a table, so that the text of a
        query does not grow with them.

        None where the engine compares with a list as quickly, or where no table can come to it.
        """
        return None

    def membership(self, frame: Frame, column: str, values: pl.Series, into: str) -> Frame | None:
        """Add a column that says whether another one is equal to one of
        many values, which are not null.

        None where `is_one_of` is as quick.
        """
        return None

    def labelled(
        self,
        frame: Frame,
        column: str,
        edges: Sequence[float],
        right: bool,
        labels: Sequence[Any],
        into: str,
    ) -> Frame:
        """Add the label of the interval that holds a number of a column;
        any label where the number is missing.

        Input:  edges: growing, between the intervals; right: whether an edge belongs to the
                interval on its left; labels: in the form in which the engine holds texts, one more
                than edges
        """

        def label(first: int, last: int) -> nw.Expr:
            """Of one interval from the first to the last. Halving keeps the expression shallow."""
            if first == last:
                return nw.lit(labels[first])
            middle = (first + last) // 2
            beyond = nw.col(column) > edges[middle] if right else nw.col(column) >= edges[middle]
            return nw.when(beyond).then(label(middle + 1, last)).otherwise(label(first, middle))

        return frame.with_columns(label(0, len(edges)).alias(into))

    @abstractmethod
    def kept(
        self,
        pairs: Frame,
        units: Sequence[str],
        column: str,
        most: int,
        salt: str,
        hashes: dict[str, Any],
    ) -> Frame:
        """For each unit, the `most` of its distinct values of a column that have the lowest hashes.

        Of a tie at the border no value is kept. The hash does not change with the version of the
        engine. The salt is hexadecimal. An engine may keep hashes that it computed with this salt.
        """

    @abstractmethod
    def apply(self, frame: Frame, column: str, function: CellFunction, into: str) -> Frame:
        """Add what a function makes of the cells of a column."""

    def against_search(self, rows: Any, task: Task, pattern: Pattern) -> str:
        """Why a pattern is not searched here, or an empty text.
        Input: rows: the native table without its rows.
        """
        return ""

    def ending(self, frame: Frame, column: str, offset: int, length: int, into: str) -> Frame:
        """Characters of a text from a place at its end on, -1 being the last;
        places before the first one count.
        """
        return frame.with_columns(nw.col(column).str.slice(offset, length).alias(into))

    @abstractmethod
    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        """Add ⌊column / by⌋ in whole numbers, exactly, for any Int64 and 0 < by < 2^62."""

    # Expressions

    @abstractmethod
    def constant(self, value: Any, dtype: DType) -> Any:
        """A constant in the form in which a column of the type holds
        it: a time perhaps as its ticks.
        """

    def real(self, value: float) -> nw.Expr:
        """A constant of type Float64."""
        return nw.lit(value)

    @abstractmethod
    def from_ticks(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        """Whole numbers as the dates, times or durations that they stand for."""

    @abstractmethod
    def moment(self, value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
        """A time in a form that can be compared: with all times that have a
        zone, or with all that have none.
        """

    @abstractmethod
    def retimed(self, value: nw.Expr, source: DType, target: DType) -> nw.Expr:
        """A date or time cast to another type of time, in the unit of that type."""

    def whole(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        """A number that fits into a type of whole numbers, cast to this type or a wider one."""
        return value.cast(dtype)

    def single(self, value: nw.Expr) -> nw.Expr:
        """A Float64 rounded to the nearest 32-bit float, infinite where the
        float is too large for 32 bits.
        """
        return value.cast(nw.Float32).cast(nw.Float64)

    def decimal(self, frame: Frame, value: nw.Expr) -> nw.Expr:
        """A decimal as a float, by way of its text: some engines round twice in a direct cast."""
        return value.cast(nw.String).cast(nw.Float64)

    def ratio(self, top: nw.Expr, bottom: nw.Expr) -> nw.Expr:
        """The quotient of two floats, the second of which is not 0, rounded once as in IEEE 754."""
        return top / bottom

    @abstractmethod
    def quotient(self, top: nw.Expr, bottom: nw.Expr | int) -> nw.Expr:
        """⌊top / bottom⌋ in whole numbers, exactly, for 0 < bottom < 2^62
        and a result below 2^51 in size.
        """

    @abstractmethod
    def remainder(self, top: nw.Expr, by: int) -> nw.Expr:
        """The remainder top - by · ⌊top / by⌋, for whole numbers as in `quotient`."""

    @abstractmethod
    def floor(self, value: nw.Expr) -> nw.Expr:
        """A float rounded down, still a float, however large."""

    def ceil(self, value: nw.Expr) -> nw.Expr:
        """A float rounded up, still a float, however large."""
        return self.floor(value * -1.0) * -1.0

    def truncated(self, value: nw.Expr) -> nw.Expr:
        """A float rounded toward zero, still a float, however large."""
        return nw.when(value >= 0).then(self.floor(value)).otherwise(self.ceil(value))

    def whole_part(self, value: nw.Expr) -> nw.Expr:
        """A float below 2^63 in size rounded toward zero, as Int64."""
        return self.truncated(value).cast(nw.Int64)


# Digests, for engines that compute a hash in Python

Cell = bytes | str | int | float | None


def digest(size: int, salt: bytes, cells: Iterable[Cell]) -> bytes:
    """A digest that depends on the salt and the cells alone. Texts arrive as bytes.

    Each cell is written with its kind and its length, so different cells give different bytes.
    """
    total = hashlib.blake2b(digest_size=size)
    for cell in (salt, *cells):
        kind = (
            b"n"
            if cell is None
            else b"b"
            if isinstance(cell, bytes)
            else b"f"
            if isinstance(cell, float)
            else b"i"
        )
        raw = cell if isinstance(cell, bytes) else repr(cell).encode()
        total.update(b"%c%d " % (kind, len(raw)))
        total.update(raw)
    return total.digest()
