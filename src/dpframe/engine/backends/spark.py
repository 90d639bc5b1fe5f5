"""Spark DataFrames, classic and Connect: every stage is a Spark query, and only totals come to the driver.

The hash is a function of a row's values, so a task that runs again, on any partition, finds the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType
from pyspark.sql import functions, types

from dpframe.engine.backends.base import Frame
from dpframe.engine.backends.sql import REPLACED, SqlBackend, our_names, piece_of, plain_table, schema_of
from dpframe.engine.letters import letters
from dpframe.engine.tables import Data
from dpframe.plan import Kind, integer_range, kind

__all__ = ["BACKEND"]

_SMALL = 100_000  # rows of a public table that each worker is given a copy of
_FEW = 8  # runs of whole numbers that are told by their ends
_PARTS = {
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "weekday": "(dayofweek({0}) + 5) % 7 + 1",
    "ordinal_day": "dayofyear({0})",
    "hour": "hour({0})",
    "minute": "minute({0})",
    "days": "unix_date(CAST({0} AS DATE))",
    "text": "CAST({0} AS STRING)",
}
_TYPES = {"integer": types.LongType, "float": types.DoubleType, "boolean": types.BooleanType}


class _Spark(SqlBackend):
    name = "spark"

    # Tables

    def adopt(self, table: Any) -> Data | None:
        if not hasattr(table, "sparkSession") or not hasattr(table, "selectExpr"):
            return None
        held = dict(nw.from_native(table).collect_schema())
        held |= {name: nw.Duration("us") for name, dtype in table.dtypes if dtype.startswith("interval")}
        names = our_names(table.columns)  # of which two may be one name
        zoned = {name for name, dtype in table.dtypes if dtype == "timestamp"}

        def scan(wanted: Sequence[str], *, empty: bool = False) -> Any:
            """By names of ours first: a setting of the session may take a name within SQL for a pattern."""
            columns = [functions.col(_quoted(name)).alias(names[name]) for name in wanted]
            rows = table.select(*(columns or [functions.lit(1).alias("s")]))
            ours = [(names[name], _held(names[name], held[name], name in zoned)) for name in wanted]
            rows = rows.select(*(functions.expr(made).alias(name) for name, made in ours)) if ours else rows
            return _without_rows(rows) if empty else rows

        return Data("pandas", schema_of(self, {name: held[name] for name in names}), scan, True, self.name, names)

    def fetch(self, table: Any) -> pl.DataFrame:
        return _read(table)

    def together(self, first: Any, second: Any) -> bool:
        return bool(first.sparkSession == second.sparkSession)

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        public = plain_table(self, beside, table)
        fields = [
            types.StructField(name, _TYPES.get(kind(dtype), types.StringType)())
            for name, dtype in nw.from_native(public).schema.items()
        ]
        session = beside.to_native().sparkSession
        made = session.createDataFrame(public.rows(), types.StructType(fields), verifySchema=False)
        return nw.from_native(functions.broadcast(made) if public.height <= _SMALL else made)

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        native = [frame.to_native() for frame in frames]
        with _quiet(native[0].sparkSession):
            return [_read(rows) for rows in native]

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """Analysed and planned, without a job."""
        tables = []
        with _quiet(frames[0].to_native().sparkSession):
            for frame in frames:
                tables.append(pl.DataFrame(schema=dict(frame.collect_schema().to_polars())))
                plan = getattr(frame.to_native(), "_jdf", None)  # which Connect keeps on the server
                if plan is not None:
                    plan.queryExecution().executedPlan()
        return tables

    # Columns

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """xxHash64, which mixes one value after the other, the salt first.

        The salt is bytes: a number would stand in the code that Spark makes of the query, which would be compiled again
        for each release.
        """
        return _with(frame, f"xxhash64(X'{salt:016x}', {', '.join(columns)})", into)

    sifts = True

    def sifted(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """All rows, those of a unit in one place: adding up and ranking them then moves none of them again."""
        rows: Frame = nw.from_native(frame.drop(hashes).to_native().repartition(*units))
        return rows

    def lowest(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """How many hashes of the unit are no higher is rank("max"), in a window that sorts by unit and hash.

        That sort is dear; one by a unit alone is not. So most rows go before it, by a window without an order, which
        notes in one word in which 64ths of all hashes a unit has some. A row goes when m of these are below its own:
        then m hashes are lower, and its rank is above m. With a row that stays, all stay that are not above it, so its
        rank is what it was.
        """
        rows, within = frame.to_native(), f"PARTITION BY {', '.join(units)}"
        if most < 32:  # with more, too few would go
            part = f"CAST(shiftright({hashes}, 58) + 32 AS INT)"
            rows = rows.withColumn("r", functions.expr(f"bit_or(shiftleft(1L, {part})) OVER ({within})"))
            rows = rows.where(f"bit_count(r & ~shiftleft(-1L, {part})) < {most}")
        over = f"{within} ORDER BY {hashes} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        rows = rows.withColumn("r", functions.expr(f"count(1) OVER ({over})")).where(f"r <= {most}")
        found: Frame = nw.from_native(rows)
        return found

    def membership(self, frame: Frame, column: str, values: Sequence[Any], into: str) -> Frame | None:
        """One text for all values: Python sends each value of a list to Java by itself. Texts go as their bytes."""
        if all(type(value) is int and abs(value) < 2**63 for value in values):
            runs = _runs(values)
            if len(runs) <= _FEW:
                return _with(frame, " OR ".join(f"{column} BETWEEN {low}L AND {high}L" for low, high in runs), into)
            written = [f"{value}L" for value in values]
        elif all(type(value) is str for value in values):
            written = [_text(value) for value in values]
        else:
            return None
        return _with(frame, f"{column} IN ({', '.join(written)})", into)

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        texts = ", ".join(f"length(CAST({c} AS STRING)), CAST({c} AS STRING)" for c in columns)
        return _with(frame, f"md5(concat_ws(' ', '{salt}', {texts}))", into)

    def parsed(self, frame: Frame, column: str, dtype: DType, into: str) -> Frame:
        if isinstance(dtype, nw.Date):
            return _with(frame, f"CAST(unix_date(try_cast({column} AS DATE)) AS BIGINT)", into)
        if isinstance(dtype, nw.Datetime):
            return _with(frame, _micro(f"try_cast(substr({column}, 1, 26) AS TIMESTAMP_NTZ)"), into)
        if kind(dtype) == Kind.FLOAT:
            return _with(frame, f"try_cast({column} AS DOUBLE)", into)
        low, high = integer_range(dtype)
        whole = f"try_cast({column} AS BIGINT)"
        inside = whole if high == 2**63 - 1 else f"CASE WHEN {whole} BETWEEN {low} AND {high} THEN {whole} END"
        return _with(frame, inside, into)

    def cased(self, frame: Frame, column: str, capital: bool, into: str) -> Frame:
        have, want = letters(capital=capital)
        return _with(frame, f"translate({column}, '{have}', '{want}')", into)

    def replaced(self, frame: Frame, column: str, change: tuple[str, str], every: bool, into: str) -> Frame:
        old, new = map(_text, change)
        if every:
            return _with(frame, f"replace({column}, {old}, {new})", into)
        first = REPLACED.format(text=column, old=old, new=new, size=len(change[0]), find="instr")
        return _with(frame, first, into)

    def piece(self, frame: Frame, column: str, by: str, index: int, into: str) -> Frame:
        return _with(frame, piece_of(column, _text(by), len(by), index, "div"), into)

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        return _with(frame, f"{column} div {by} - CASE WHEN {column} % {by} < 0 THEN 1L ELSE 0L END", into)

    def part(self, frame: Frame, column: str, dtype: DType, part: str, into: str) -> Frame:
        if kind(dtype) == Kind.DATE:
            value = f"date_from_unix_date(CAST({column} AS INT))"
        else:
            frame = frame.with_columns(self._microseconds(nw.col(column), dtype).alias(column))
            seconds = f"CAST({column} AS DECIMAL(20, 0)) / 1000000"
            value = f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}))"
            zone = getattr(dtype, "time_zone", None)
            if zone is not None:
                value = f"convert_timezone('UTC', '{zone}', {value})"
        made = _PARTS[part].format(value)
        return _with(frame, made if part == "text" else f"CAST({made} AS BIGINT)", into)

    def whole_part(self, value: nw.Expr) -> nw.Expr:
        """A cast does it."""
        return value.cast(nw.Int64)

    def reason_against(self, dtype: DType) -> str:
        wide = isinstance(dtype, (nw.UInt64, nw.Int128, nw.UInt128))
        return (
            "Spark has no whole numbers beyond 64 bits with a sign: cast to 'int64'"
            if wide
            else super().reason_against(dtype)
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    """A text that stands in SQL, by its bytes."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _held(name: str, dtype: DType, zoned: bool) -> str:
    """A column of the user's, by our name, as it is held: a time as its ticks, a text as text.

    Texts are compared by their bytes, whatever collation the column has. Bytes that are no UTF-8 are no text: Spark
    holds them all the same, and what reads the totals fails on them, after they are paid for.
    """
    family = kind(dtype)
    if family == Kind.DATE:
        return f"CAST(unix_date({name}) AS BIGINT)"
    if family == Kind.DATETIME:
        return f"unix_micros({name})" if zoned else _micro(name)
    return f"try_validate_utf8(CAST({name} AS STRING COLLATE UTF8_BINARY))" if family == Kind.STRING else name


def _micro(value: str) -> str:
    """Microseconds since 1970 of a time without a zone, from its parts, in which no session's zone has a say."""
    day = f"CAST(unix_date(CAST({value} AS DATE)) AS BIGINT) * 86400000000"
    clock = f"hour({value}) * 3600000000L + minute({value}) * 60000000L"
    second = f"CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT)"
    years = "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {value} BETWEEN {years} THEN {day} + {clock} + {second} END"


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Whole numbers as the first and last of each run without a gap."""
    ordered = sorted(values)
    starts = [i for i, value in enumerate(ordered) if not i or value > ordered[i - 1] + 1]
    return [(ordered[i], ordered[j - 1]) for i, j in zip(starts, [*starts[1:], len(ordered)], strict=True)]


def _with(frame: Frame, made: str, into: str) -> Frame:
    """A frame with a column that Spark computes."""
    rows: Frame = nw.from_native(frame.to_native().withColumn(into, functions.expr(made)))
    return rows


def _read(rows: Any) -> pl.DataFrame:
    found = pl.from_arrow(rows.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found


def _without_rows(rows: Any) -> Any:
    """The same columns without a row, of which Spark knows nothing else.

    A plan on the rows themselves would not do: where they are few, Spark computes with them while it plans, before
    anything is paid. Connect analyses only.
    """
    session = rows.sparkSession
    if "connect" in type(session).__module__:
        return rows
    nothing = session._jsparkSession.createDataFrame(session.sparkContext._jsc.emptyRDD(), rows._jdf.schema())
    return type(rows)(nothing, session)


@contextmanager
def _quiet(session: Any) -> Iterator[None]:
    """No log lines meanwhile, of Java or Python: those of a task that fails may show cells. Connect's are its server's.

    Not by `setLogLevel`, which forgets that a session shows warnings only, so that it would tell everything after.
    """
    java = getattr(session, "_jvm", None) if "connect" not in type(session).__module__ else None
    log4j = None if java is None else java.org.apache.logging.log4j
    before, level = logging.root.manager.disable, log4j and log4j.LogManager.getRootLogger().getLevel()
    logging.disable(logging.CRITICAL)
    if log4j is not None:
        log4j.core.config.Configurator.setRootLevel(log4j.Level.OFF)
    try:
        yield
    finally:
        logging.disable(before)
        if log4j is not None:
            log4j.core.config.Configurator.setRootLevel(level)


BACKEND = _Spark()
