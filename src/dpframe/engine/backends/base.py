"""What an engine must be able to do besides what narwhals does: the one place that lists it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.tables import Data
from dpframe.plan import ColumnDomain

__all__ = ["Backend", "Frame"]

Frame = nw.LazyFrame[Any]


class Backend(ABC):
    """One engine.

    Every operation is total: what does not exist is null, and no cell makes it fail. Columns are called by names of
    ours, which differ in more than case. `to_float` and the like need no word here, since narwhals has them.
    """

    name: str

    # Tables

    @abstractmethod
    def adopt(self, table: Any) -> Data | None:
        """A table that the user brought, None for what this engine does not take in. Nothing is read."""

    def fetch(self, table: Any) -> pl.DataFrame:
        """A public table of this engine, read."""
        raise NotImplementedError

    def together(self, first: Any, second: Any) -> bool:
        """Whether two native frames can meet in one query."""
        return True

    def reason_against(self, dtype: DType) -> str:
        """Why a column of a type cannot be held here; "" where it can."""
        return ""

    def reason_against_cast(self, dtype: DType) -> str:
        """Why nothing is cast to a type here; "" where it is."""
        return self.reason_against(dtype)

    @abstractmethod
    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        """A small public table, as a frame that can be joined to another. Times come as this engine holds them."""

    @abstractmethod
    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        """Frames of totals, computed together if the engine can; whole numbers as Int64."""

    reads_once = False  # whether a frame has the same rows wherever it stands in one query, whatever its source is

    def shared(self, frame: Frame) -> Frame:
        """A frame that several others are made of, said so that they read and compute it once; as it is elsewhere."""
        return frame

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """Frames as they are without a row: whatever could fail after the charge fails here, and no row is read.

        Where an engine plans a query as a whole, `scan(empty=True)` may be the table itself: this alone runs on it.
        """
        return self.collect(frames)

    # Texts

    def bytewise(self, frame: Frame) -> bool:
        """Whether a frame of this engine holds texts as their bytes in UTF-8.

        Databases compare texts by a collation: of a session, a database or a column, and by another rule a literal.
        By some of them "bonn" and "BONN" are one text. Then they would make one group, a public table would have more
        rows for a key than were counted, and the spelling of one unit could be the key that is shown. No collation
        says how bytes compare. So an engine that has collations holds every text as bytes, wherever it is from, and
        makes it a text again only for the functions that read letters; the type alone says how it is compared.
        """
        return False

    def to_bytes(self, frame: Frame, column: str, into: str) -> Frame:
        """A column of texts that the engine made as one of texts as they are held, where that is as bytes."""
        raise NotImplementedError

    def to_text(self, frame: Frame, column: str, into: str) -> Frame:
        """A column of texts as they are held, where that is as bytes, as one that functions of texts can read."""
        raise NotImplementedError

    def texts(self, frame: Frame, values: Iterable[Any]) -> list[Any]:
        """Values that stand in a query beside a frame: texts as it holds them, anything else as it is."""
        values = list(values)
        if not any(isinstance(value, str) for value in values) or not self.bytewise(frame):
            return values
        return [value.encode() if isinstance(value, str) else value for value in values]

    def is_one_of(self, frame: Frame, value: nw.Expr, values: Iterable[Any]) -> nw.Expr:
        """Whether a column of a frame holds one of some values."""
        return value.is_in(self.texts(frame, values))

    # Columns that the engine computes itself

    @abstractmethod
    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """A 64-bit hash of some columns of each row under a 64-bit key: of these values only, at every retry.

        Privacy does not rest on it: equal hashes only cost groups (see `limits`). Each release draws its key anew.
        """

    sifts = False  # whether `sifted` does anything

    def sifted(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """The rows in any order, where any may be left out whose group has a rank above m by its hash in its unit."""
        return frame

    def lowest(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """The rows whose hash has rank("max") at most m within their unit: none of a tie beyond."""
        return frame.with_columns(nw.col(hashes).rank("max").over(*units).alias("r")).filter(nw.col("r") <= most)

    def membership(self, frame: Frame, column: str, values: Sequence[Any], into: str) -> Frame | None:
        """Whether a column holds one of many values, as a new column, where `is_in` would take long to write."""
        return None

    @abstractmethod
    def kept(self, pairs: Frame, units: Sequence[str], column: str, most: int, salt: str) -> Frame:
        """Of each unit's different values of a column, the `most` with the lowest hashes; ties beyond all go.

        The hash is one that no version of the engine changes; the salt is hexadecimal.
        """

    @abstractmethod
    def parsed(self, frame: Frame, column: str, dtype: DType, into: str) -> Frame:
        """Text as a number, a date or a time; null where the text is none."""

    @abstractmethod
    def part(self, frame: Frame, column: str, dtype: DType, part: str, into: str) -> Frame:
        """A part of a date or time, "year" to "minute", as Int64; its "days" since 1970; the "text" of a date."""

    @abstractmethod
    def cased(self, frame: Frame, column: str, capital: bool, into: str) -> Frame:
        """Text in capital or in small letters, by the table of `dpframe.engine.letters`."""

    @abstractmethod
    def replaced(self, frame: Frame, column: str, change: tuple[str, str], every: bool, into: str) -> Frame:
        """Text with the second of two texts in place of the first, each time or the first time; the first is not ""."""

    @abstractmethod
    def piece(self, frame: Frame, column: str, by: str, index: int, into: str) -> Frame:
        """The piece of a text between separators, by its number from 0, or from -1 at the end; null where none is."""

    @abstractmethod
    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        """⌊column / by⌋ in whole numbers, exactly, for any Int64 and 0 < by < 2^62."""

    # Expressions

    @abstractmethod
    def constant(self, value: Any, dtype: DType) -> Any:
        """A value as it stands in a column of a type: as it is, or as its ticks."""

    def real(self, value: float) -> nw.Expr:
        """A float, as a Float64."""
        return nw.lit(value)

    @abstractmethod
    def from_ticks(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        """Whole numbers as the dates, times or durations that they stand for."""

    @abstractmethod
    def moment(self, value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
        """A time so that it compares with any other that has a zone, or none, just as it does."""

    @abstractmethod
    def retimed(self, value: nw.Expr, source: DType, target: DType) -> nw.Expr:
        """A date or time as another time of the same moment, in the target's unit."""

    def whole(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        """A number that fits as a whole number of a type, or of a wider one."""
        return value.cast(dtype)

    def single(self, value: nw.Expr) -> nw.Expr:
        """A Float64 rounded to 32 bits, and infinite beyond them."""
        return value.cast(nw.Float32).cast(nw.Float64)

    def decimal(self, frame: Frame, value: nw.Expr) -> nw.Expr:
        """A decimal as a float, by way of its text: from its integer, some engines round twice."""
        return value.cast(nw.String).cast(nw.Float64)

    def ratio(self, top: nw.Expr, bottom: nw.Expr) -> nw.Expr:
        """One float divided by another that is not 0, rounded once, as IEEE 754 has it."""
        return top / bottom

    @abstractmethod
    def quotient(self, top: nw.Expr, bottom: nw.Expr | int) -> nw.Expr:
        """⌊top / bottom⌋ in whole numbers, exactly, for 0 < bottom < 2^62 and a result below 2^51 in size."""

    @abstractmethod
    def remainder(self, top: nw.Expr, by: int) -> nw.Expr:
        """What ⌊top / by⌋ leaves, for the same numbers."""

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
