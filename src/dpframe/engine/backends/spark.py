"""Spark DataFrames, classic and Connect: every stage is a Spark query, and
only totals come to the driver.

The hash is a function of a row's values, so a task that runs again gives an identical result, on
any partition.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType
from pyspark import SparkContext, inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession, functions, types
from pyspark.sql.classic import dataframe as classic

from dpframe.arrays import ranges
from dpframe.engine.attended import attended
from dpframe.engine.automaton import Automaton, automaton
from dpframe.engine.backends.base import (
    Cased,
    CellFunction,
    Frame,
    Parsed,
    Reached,
    Selection,
    Work,
)
from dpframe.engine.backends.rehearsal import Made, Rehearsed, public, rehearsed, salted
from dpframe.engine.backends.sql import TextSqlBackend, our_names, plain_table, schema_of
from dpframe.engine.letters import letters
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, Pattern, Search, Task, integer_range, is_wide, kind

_SMALL = 100_000  # a public table of at most this many rows is copied to each worker
_MADE_UP = 2**40  # rows for a plan: so many that Spark plans no broadcast of them
_FEW = 8  # at most this many runs of whole numbers are written as ranges


def _micro(value: str) -> str:
    """Microseconds since 1970 of a time without a zone, from its parts, which do
    not depend on the session's zone.
    """
    day = f"CAST(unix_date(CAST({value} AS DATE)) AS BIGINT) * 86400000000"
    clock = f"hour({value}) * 3600000000L + minute({value}) * 60000000L"
    second = f"CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT)"
    years = "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {value} BETWEEN {years} THEN {day} + {clock} + {second} END"


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
    "offset": f"({_micro('{0}')} - {{1}}) div 1000000",
}
_NEEDED = {"spark.sql.retainGroupColumns": "true"}
_BROADCASTS = ("BroadcastExchange", "SortMergeJoin", "ShuffledHashJoin")
_TYPES = {"integer": types.LongType, "float": types.DoubleType, "boolean": types.BooleanType}


_METHODS = (
    *("distinct", "drop", "dropDuplicates", "dropna", "filter", "limit", "repartition"),
    *("sortWithinPartitions", "select", "selectExpr", "toDF", "where", "withColumn"),
    *("withColumns", "join", "union", "unionAll", "unionByName"),
)


class _Rehearsed(
    Rehearsed, classic.DataFrame, own=classic.DataFrame, grouping="groupBy", methods=_METHODS
):
    """A query of classic Spark on tables without rows, of which a column is no column of a table
    with rows.
    """

    def __getitem__(self, item: Any) -> Any:
        self.made = None
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Any:
        column = super().__getattr__(name)  # or an error, as for what another library looks for
        self.made = None
        return column


class _Spark(TextSqlBackend):
    name = "spark"
    parts = _PARTS
    whole_division = "div"
    in_numbers = "as in EXTRACT(DAY FROM x)"

    # Tables

    def adopt(self, table: Any) -> Data | None:
        if not hasattr(table, "sparkSession") or not hasattr(table, "selectExpr"):
            return None
        dtypes = dict(nw.from_native(table).collect_schema())
        dtypes |= {
            name: nw.Duration("us") for name, dtype in table.dtypes if dtype.startswith("interval")
        }
        names = our_names(table.columns)  # without columns that have one name
        _check_settings(table.sparkSession)
        zone_columns = {name for name, dtype in table.dtypes if dtype == "timestamp"}

        def scan(selection: Sequence[str], *, empty: bool = False) -> DataFrame:
            """Rename the columns first: with one setting of a session, Spark
            reads a name in SQL as a pattern.
            """
            if empty:
                _check_settings(table.sparkSession)
            rows = table.select(*map(_quoted, selection)).toDF(*(names[name] for name in selection))
            ours = [
                (names[name], _held(names[name], dtypes[name], name in zone_columns))
                for name in selection
            ]
            rows = (
                rows.selectExpr(*(f"{sql} AS {name}" for name, sql in ours))
                if ours
                else table.selectExpr("1 AS s")
            )
            return _without_rows(rows) if empty else rows

        schema = schema_of(self, {name: dtypes[name] for name in names})
        stated = _stated(table) if _is_here(table) else lambda: dict(table.select("*").dtypes)
        return Data(
            "pandas",
            schema,
            scan,
            True,
            self.name,
            names,
            stated=stated,
            watched=_local_files(table),
        )

    def reached(self, table: Callable[[], Any]) -> Reached:
        """Java, by the pipe that ends it together with the process that
        started it; Spark Connect has none.
        """
        java = getattr(SparkContext._gateway, "proc", None)
        return Reached(self.name, None if java is None else java.stdin.fileno())

    def fetch(self, table: DataFrame) -> pl.DataFrame:
        return _read(table)

    def together(self, first: DataFrame, second: DataFrame) -> bool:
        return bool(first.sparkSession == second.sparkSession)

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        table = plain_table(self, beside, table)
        fields = [
            types.StructField(name, _TYPES.get(kind(dtype), types.StringType)())
            for name, dtype in nw.from_native(table).schema.items()
        ]
        session = beside.to_native().sparkSession
        frame = session.createDataFrame(table.rows(), types.StructType(fields), verifySchema=False)
        frame = functions.broadcast(frame) if table.height <= _SMALL else frame
        return nw.from_native(public(beside.to_native(), frame))

    def rehearsed(self, frame: Frame, rows: Callable[[], DataFrame]) -> Frame:
        native = frame.to_native()
        if not _is_here(native.sparkSession):
            return frame
        return nw.from_native(rehearsed(_Rehearsed, native, Made(lambda _: rows())))

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        """Read the tables.
        On Ctrl-C, PySpark's handler asks Java to end all jobs, in the main thread.

        If that thread waited for Java's answer to a query, the two would share a connection, and
        might wait forever.
        """
        native = [frame.to_native() for frame in frames]
        session = native[0].sparkSession

        def read() -> list[pl.DataFrame]:
            return [_read(rows) for rows in native]

        with _quiet(session):
            return (
                attended(inheritable_thread_target(session)(read)) if _is_here(session) else read()
            )

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """Let Spark analyse and plan the queries. No job runs."""
        tables = []
        with _quiet(frames[0].to_native().sparkSession):
            for frame in frames:
                tables.append(pl.DataFrame(schema=dict(frame.collect_schema().to_polars())))
                # None for Connect, where the plan is on the server
                plan = getattr(frame.to_native(), "_jdf", None)
                if plan is not None:
                    plan.queryExecution().executedPlan()
        return tables

    def work(self, frames: Sequence[Frame]) -> Work:
        """The most jobs and shuffles of these queries.

        A query is one job, and each broadcast is one more. With adaptive execution each shuffle is
        a job too, after which Spark may turn a join of shuffled rows into a broadcast. Without it,
        Spark may plan a broadcast where the rows are few. So each such join counts as a broadcast.
        A plan for rows of unknown number, as here, has at least the shuffles of a plan for few
        rows.
        """
        plans = [_nodes(frame.to_native()) for frame in frames]
        shuffles = sum(plan.count("Exchange") for plan in plans)
        jobs = sum(1 + sum(plan.count(node) for node in _BROADCASTS) for plan in plans)
        adaptive = sum(plan.count("Exchange") for plan in plans if "AdaptiveSparkPlan" in plan)
        return Work(jobs + adaptive, shuffles)

    def settled(self, frame: Frame) -> Frame:
        """Each row out of an array of one row.

        A condition that is always true would not do: for the keys of a join, Spark looks through
        filters to the columns that they come from. It also moves a random condition down.
        """
        rows = frame.to_native()
        return nw.from_native(rows.selectExpr(f"inline(array(struct({', '.join(rows.columns)})))"))

    def added(
        self, frame: Frame, by: Sequence[str], sums: Mapping[str, str], rows: str = ""
    ) -> Frame:
        """One text for each sum.
        narwhals renames all columns of the result, each by several calls to Java.
        """
        texts = [f"count(1) AS {rows}"] if rows else []
        texts += [f"coalesce(sum({name}), 0L) AS {into}" for into, name in sums.items()]
        native = frame.to_native()
        return nw.from_native(
            native.groupBy(*by).agg(*map(functions.expr, texts))
            if by
            else native.selectExpr(*texts)
        )

    def gathered(self, frame: Frame, units: Sequence[str]) -> Frame:
        return nw.from_native(frame.to_native().repartition(*units))

    # Columns

    def computed(self, frame: Frame, sql: str, into: str) -> Frame:
        return nw.from_native(frame.to_native().withColumn(into, functions.expr(sql)))

    def number(self, value: float) -> str:
        return f"({value!r}D)"

    def text(self, value: str) -> str:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """The xxHash64 of the salt and the values, mixed in this order.

        The salt is written as bytes. Spark would put a number into the code that it generates for
        the query, and would compile this code again for each release.
        """

        def hashed(salt: int, rows: DataFrame) -> DataFrame:
            return rows.withColumn(
                into, functions.expr(f"xxhash64(X'{salt:016x}', {', '.join(columns)})")
            )

        return nw.from_native(salted(frame.to_native(), hashed, salt))

    def lowest(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        """The rows of rank("max") at most m.
        The rank is the number of the unit's hashes that are not higher.

        The rank is counted in a window that sorts by unit and hash, which is slow. So most rows are
        removed before, in a window that has no order. It divides the range of hashes into 64 equal
        parts, and sets one bit of a word for each part in which the unit has a hash. A row is
        removed if m bits below its own part are set: then at least m hashes are lower, and its rank
        is above m. For a row that stays, no row with a lower or equal hash is removed, so its rank
        does not change.
        """
        rows, within = frame.to_native(), f"PARTITION BY {', '.join(units)}"
        if most < 32:  # for a larger m, too few rows would be removed
            part = f"CAST(shiftright({hashes}, 58) + 32 AS INT)"
            rows = rows.withColumn(
                "r", functions.expr(f"bit_or(shiftleft(1L, {part})) OVER ({within})")
            )
            rows = rows.where(f"bit_count(r & ~shiftleft(-1L, {part})) < {most}")
        over = f"{within} ORDER BY {hashes} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        rows = rows.withColumn("r", functions.expr(f"count(1) OVER ({over})")).where(f"r <= {most}")
        return nw.from_native(rows)

    keeps_by_windows = True

    def kept_rows(self, rows: Frame, kept: Selection) -> Frame:
        """One sort by unit, hash and group. All that follows reads the rows in this order.

        The groups of a unit are numbered by hash and then by group, so the rank of a group is the
        number of the last group that has its hash. Spark removes rows of groups above number m + 1
        while it reads, so later windows hold few rows. If group m + 1 has the hash of group m, its
        number is the rank of all groups with this hash that stay, and none of them is kept.
        """
        by = [*kept.units, *([] if kept.most is None else [kept.hashes])]
        frame = rows.to_native().sortWithinPartitions(*by, *kept.groups)
        unit, order = f"PARTITION BY {', '.join(kept.units)}", ", ".join(kept.groups or kept.units)
        equal = f"PARTITION BY {', '.join(by)}"
        so_far = f"OVER ({equal} ORDER BY {order})"
        # rows up to its last, less before
        columns = [f"count(1) {so_far} - rank() {so_far} + 1 AS n"]
        columns += [f"row_number() {so_far} = rank() {so_far} AS f"]
        if kept.most is not None:
            number = f"dense_rank() OVER ({unit} ORDER BY {kept.hashes}, {order})"
            frame = frame.withColumn("r", functions.expr(number)).where(f"r <= {kept.most + 1}")
            every = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            columns.append(f"max(r) OVER ({equal} ORDER BY {order} {every}) AS m")
        frame = frame.selectExpr("*", *columns)
        if kept.most is not None:
            frame = frame.where(f"m <= {kept.most}")
        cap = f"least(n, {kept.cap}L)"
        sums = f"sum(IF(f, {cap}, 0L)) OVER ({unit}) AS a"
        return nw.from_native(frame.selectExpr("*", f"{cap} AS c", sums))

    def key_table(self, frame: Frame, keys: pl.DataFrame) -> Frame | None:
        """Numbers in few runs are written as ranges."""
        (column,) = keys.get_columns()
        few = column.dtype.is_integer() and keys.height and len(ranges(column.to_list())) <= _FEW
        return None if few else super().key_table(frame, keys)

    def membership(self, frame: Frame, column: str, values: pl.Series, into: str) -> Frame | None:
        """Write all values into one SQL text.
        For a list, Python would send each value to Java in a call of its own.

        Texts are written as their bytes.
        """
        keys = values.to_list()
        if all(type(value) is int and abs(value) < 2**63 for value in keys):
            runs = ranges(keys)
            if len(runs) <= _FEW:
                return self.computed(
                    frame,
                    " OR ".join(f"{column} BETWEEN {low}L AND {high}L" for low, high in runs),
                    into,
                )
            literals = [f"{value}L" for value in keys]
        elif all(type(value) is str for value in keys):
            literals = [self.text(value) for value in keys]
        else:
            return None
        return self.computed(frame, f"{column} IN ({', '.join(literals)})", into)

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        texts = ", ".join(f"length(CAST({c} AS STRING)), CAST({c} AS STRING)" for c in columns)
        return self.computed(frame, f"md5(concat_ws(' ', '{salt}', {texts}))", into)

    def sql_of(self, column: str, function: CellFunction) -> str:
        """Of a pattern, a table of states, which is read once for each character.

        Java's own regular expressions can take forever, and leave their stack on a long text, which
        fails the query.
        """
        match function:
            case Parsed(nw.Date()):
                return f"CAST(unix_date(try_cast({column} AS DATE)) AS BIGINT)"
            case Parsed(nw.Datetime()):
                return _micro(f"try_cast(substr({column}, 1, 26) AS TIMESTAMP_NTZ)")
            case Parsed(dtype) if kind(dtype) == Kind.FLOAT:
                return f"try_cast({column} AS DOUBLE)"
            case Parsed(dtype):
                low, high = integer_range(dtype)
                whole = f"try_cast({column} AS BIGINT)"
                return (
                    whole
                    if high == 2**63 - 1
                    else f"CASE WHEN {whole} BETWEEN {low} AND {high} THEN {whole} END"
                )
            case Cased(capital):
                have, want = letters(capital=capital)
                return f"translate({column}, '{have}', '{want}')"
            case Search(_, pattern):
                return self._found(column, automaton(pattern))
        return super().sql_of(column, function)

    def against_search(self, rows: Any, task: Task, pattern: Pattern) -> str:
        return "" if task is Task.CONTAINS else "on a text, Spark could take forever, or fail"

    def _found(self, text: str, table: Automaton) -> str:
        """SQL that begins in state 1, and puts each character's class into the row of the state.
        State 0 is a match.

        The table is one literal of three digits for each state: Spark would make an array anew for
        each character.
        """
        width = len(table.edges) + 1

        def place(first: int, last: int) -> str:
            """The class of a character c among some that follow each other."""
            if first == last:
                return str(first)
            middle = (first + last + 1) // 2
            edge = self.text(chr(table.edges[middle - 1]))
            return f"IF(c < {edge}, {place(first, middle - 1)}, {place(middle, last)})"

        rows = "".join(f"{state:03x}" for row in table.rows for state in row).encode().hex()
        found = (
            f"CAST(substring(X'{rows}', 3 * (s * {width} + {place(0, width - 1)}) + 1, 3) AS "
            "STRING)"
        )
        step = f"CASE WHEN c = '' THEN s ELSE CAST(conv({found}, 16, 10) AS INT) END"
        ends = "".join(str(int(end)) for end in table.ends).encode().hex()
        last = f"aggregate(split({text}, ''), 1, (s, c) -> {step})"
        return f"CAST(substring(X'{ends}', {last} + 1, 1) AS STRING) = '1'"

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        below = f"CASE WHEN {column} % {by} < 0 THEN 1L ELSE 0L END"
        return self.computed(frame, f"{column} div {by} - {below}", into)

    def day_of(self, column: str) -> str:
        return f"date_from_unix_date(CAST({column} AS INT))"

    def moment_of(self, column: str, zone: str | None) -> str:
        seconds = f"CAST({column} AS DECIMAL(20, 0)) / 1000000"
        time = f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}))"
        return time if zone is None else f"convert_timezone('UTC', '{zone}', {time})"

    def whole_part(self, value: nw.Expr) -> nw.Expr:
        """A cast, which in Spark rounds toward zero."""
        return value.cast(nw.Int64)

    def reason_against(self, dtype: DType) -> str:
        wide = is_wide(dtype)
        return (
            "Spark's integers have at most 64 bits with a sign: cast to 'int64'"
            if wide
            else super().reason_against(dtype)
        )


def _check_settings(session: Any) -> None:
    """Refuse a session whose settings change the columns of a query.
    Errors: UnsupportedOperation.
    """
    for name, needed in _NEEDED.items():
        if session.conf.get(name, needed).lower() != needed:
            raise UnsupportedOperation(
                f"Spark: this session has another value of {name}, with which questions by group "
                f"have no columns for their groups: spark.conf.set({name!r}, {needed!r})."
            )


def _is_here(table: Any) -> bool:
    """Whether a plan has the types of its tables, and not their names alone, as
    on the server of Spark Connect.
    """
    return "connect" not in type(table).__module__


def _stated(table: DataFrame) -> Callable[[], dict[str, str]] | None:
    """A function that asks the databases behind a table for the types of their columns.
    Spark asks them once.

    Output: None for a table of which no column comes by JDBC. Columns are called as in the
            database; the types of those of one name in several tables stand in one text
    """
    leaves = table._jdf.queryExecution().analyzed().collectLeaves()
    plans = [leaves.apply(i) for i in range(leaves.size())]
    relations = [
        plan.relation() for plan in plans if plan.getClass().getSimpleName() == "LogicalRelation"
    ]
    found = [one for one in relations if one.getClass().getSimpleName() == "JDBCRelation"]
    options = [dict(relation.jdbcOptions().asProperties()) for relation in found]
    theirs = {name for relation in found for name in relation.schema().fieldNames()}

    def now() -> dict[str, str]:
        asked = table.sparkSession.read.format("jdbc")
        with _quiet(table.sparkSession):
            behind = [column for how in options for column in asked.options(**how).load().dtypes]
        own = {
            name: ", ".join(dtype for other, dtype in behind if other == name) for name, _ in behind
        }
        return {name: dtype for name, dtype in table.dtypes if name not in theirs} | own

    return now if options else None


def _local_files(table: Any) -> tuple[Path, ...]:
    """The files of this machine that a table is read from.
    Spark lists files once, and fails where one was replaced.

    To list them Spark optimises the plan, which computes what stands on made-up rows: an error
    there may show a cell.
    """
    listed: list[str] = []
    if _is_here(table):
        with _quiet(table.sparkSession), suppress(Exception):
            listed = table.inputFiles()
    addresses = [urlsplit(address) for address in listed]
    return tuple(
        Path(unquote(address.path)) for address in addresses if address.scheme in ("", "file")
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _held(name: str, dtype: DType, has_zone: bool) -> str:
    """SQL for a column of the user's, under our name, as dpframe holds it:
    a time as its ticks, a text as text.

    Texts get a collation that compares bytes. A text that is not valid UTF-8 becomes null: Spark
    accepts such texts, but reading the totals would fail on them, after the charge.
    """
    family = kind(dtype)
    if family == Kind.DATE:
        return f"CAST(unix_date({name}) AS BIGINT)"
    if family == Kind.DATETIME:
        return f"unix_micros({name})" if has_zone else _micro(name)
    return (
        f"try_validate_utf8(CAST({name} AS STRING COLLATE UTF8_BINARY))"
        if family == Kind.STRING
        else name
    )


def _read(rows: DataFrame) -> pl.DataFrame:
    return pl.DataFrame(rows.toArrow())


def _without_rows(rows: DataFrame) -> DataFrame:
    """An empty table with the columns of `rows`.

    A query on the rows themselves must not be planned before the charge: if there are few rows,
    Spark computes with them while it plans. Spark Connect would also remove the steps after a table
    that it knows to be empty. It gets made-up rows, which nobody computes: a query on them is only
    planned.
    """
    session = rows.sparkSession
    if not _is_here(session):
        return session.range(0, _MADE_UP, 1, 2).select([_made_up(field) for field in rows.schema])
    nothing = session._jsparkSession.createDataFrame(
        session.sparkContext._jsc.emptyRDD(), rows._jdf.schema()
    )
    return type(rows)(nothing, session)


def _made_up(field: types.StructField) -> Column:
    """A column of this name and type, from the numbers of `range`, of whose
    values the planner knows nothing.
    """
    text, dtype = functions.col("id").cast("string"), field.dataType
    if isinstance(dtype, (types.ArrayType, types.MapType, types.StructType)):
        return functions.from_json(text, dtype).alias(field.name)
    return text.cast(dtype).alias(field.name)


def _nodes(rows: Any) -> list[str]:
    """The names of the nodes of a query's plan, such as "Exchange". No job runs.

    They are read from the tree at the beginning of a plan in the form "formatted": it shows no
    constant of the query.
    """
    plan = getattr(rows, "_jdf", None)  # None for Connect, where the plan is on the server
    if plan is None:
        text = rows._explain_string(mode="formatted")
    else:
        java = rows.sparkSession._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
        text = java.explainString(plan.queryExecution(), "formatted")
    tree = text.partition("\n\n")[0]
    return [name for line in tree.splitlines() for name in re.findall(r"^[\W\d]*([A-Za-z]+)", line)]


@contextmanager
def _quiet(session: SparkSession) -> Iterator[None]:
    """Switch off the logs of Java and Python inside the block, because the log
    of a failed task may show cells.

    The logs of Spark Connect are on its server. `setLogLevel` is not used: it forgets that the
    session shows warnings alone, so the session would log more afterwards.
    """
    java = getattr(session, "_jvm", None) if _is_here(session) else None
    log4j = None if java is None else java.org.apache.logging.log4j
    before, level = (
        logging.root.manager.disable,
        log4j and log4j.LogManager.getRootLogger().getLevel(),
    )
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
