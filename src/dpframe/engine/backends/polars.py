"""Polars, eager and lazy.
It also runs queries on pandas and PyArrow tables, which are converted through Arrow.
"""

from __future__ import annotations

import calendar
import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Literal

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.attended import attended
from dpframe.engine.backends import lowest as sorting
from dpframe.engine.backends.base import (
    Backend,
    Cased,
    CellFunction,
    Frame,
    Parsed,
    Part,
    Piece,
    Replaced,
    Selection,
    Stripped,
)
from dpframe.engine.backends.rehearsal import Made, Rehearsed, public, rehearsed, salted
from dpframe.engine.backends.runs import kept_partials
from dpframe.engine.letters import letters
from dpframe.engine.origins import files_of, is_lake, no_file, types_of_lake, versions
from dpframe.engine.tables import Data, domain_of, polars_dtype, polars_types
from dpframe.fields import FieldDict
from dpframe.plan import ColumnDomain, Kind, Search, Task, Unread, has_zone, kind, zone_of

_METHODS = (
    "cache",
    "drop",
    "drop_nulls",
    "filter",
    "join",
    "map_batches",
    "rename",
    "select",
    "unique",
    "with_columns",
)


class _Rehearsed(Rehearsed, pl.LazyFrame, own=pl.LazyFrame, grouping="group_by", methods=_METHODS):
    """A query on tables without rows, which remembers how it was made."""


class PolarsBackend(Backend):
    """Polars, for tables of Polars, pandas, Modin and PyArrow."""

    name = "polars"

    # Tables

    def adopt(self, table: object) -> Data | None:
        match table:
            case pl.DataFrame():
                return _data(table.lazy(), table)
            case pl.LazyFrame():
                return _data(table)
        family = type(table).__module__.partition(".")[0]
        if family not in ("pandas", "modin", "pyarrow"):
            return None
        from dpframe.engine.intake import arrow  # imports PyArrow, which Polars tables do not need

        takers = {
            "pandas": arrow.from_pandas,
            "modin": arrow.from_modin,
            "pyarrow": arrow.from_pyarrow,
        }
        return takers[family](table)

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        return nw.from_native(public(beside.to_native(), table.lazy()))

    def rehearsed(self, frame: Frame, rows: Callable[[], pl.LazyFrame]) -> Frame:
        return nw.from_native(rehearsed(_Rehearsed, frame.to_native(), Made(lambda _: rows())))

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        native: list[pl.LazyFrame] = [frame.to_native() for frame in frames]
        engine: Literal["streaming", "auto"] = "streaming" if streaming else "auto"
        if len(native) == 1:
            return [attended(lambda: native[0].collect(engine=engine))]
        return attended(lambda: pl.collect_all(native, engine=engine))

    def collect_few(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        native: list[pl.LazyFrame] = [frame.to_native() for frame in frames]
        return [plainly(native[0])] if len(native) == 1 else pl.collect_all(native, **_PLAINLY)

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """In this thread: a query without rows ends at once."""
        return pl.collect_all([frame.to_native() for frame in frames])

    reads_once = True  # `shared` caches the frame

    def shared(self, frame: Frame) -> Frame:
        """Cache the frame.
        Without this, Polars reads it twice unless the frames that use it are alike in all steps.
        """
        native: pl.LazyFrame = frame.to_native()
        return nw.from_native(native.cache())

    # Texts

    def texts(self, frame: Frame, values: Iterable[object]) -> list[object]:
        return list(values)

    # Columns

    def membership(self, frame: Frame, column: str, values: pl.Series, into: str) -> Frame | None:
        native: pl.LazyFrame = frame.to_native()
        return nw.from_native(
            native.with_columns(pl.col(column).is_in(pl.lit(values).implode()).alias(into))
        )

    def labelled(
        self,
        frame: Frame,
        column: str,
        edges: Sequence[float],
        right: bool,
        labels: Sequence[Any],
        into: str,
    ) -> Frame:
        """By a search: Polars computes every branch of a CASE for every row."""
        if not edges:
            return super().labelled(frame, column, edges, right, labels, into)
        native: pl.LazyFrame = frame.to_native()
        ends = pl.Series(edges, dtype=pl.Int64 if isinstance(edges[0], int) else pl.Float64)
        place = pl.lit(ends).search_sorted(
            pl.col(column).fill_null(ends[0]), side="left" if right else "right"
        )
        return nw.from_native(
            native.with_columns(pl.lit(pl.Series(list(labels))).gather(place).alias(into))
        )

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """Hash twice: before Polars 2, a single hash of several columns gives
        some keys low values more often.
        """

        def hashed(salt: int, rows: pl.LazyFrame) -> pl.LazyFrame:
            return rows.with_columns(hash_of(columns, salt).alias(into))

        native: pl.LazyFrame = frame.to_native()
        return nw.from_native(salted(native, hashed, salt))

    sifts = True

    def sifted(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        return _applied(frame, lambda table: sorting.sifted(table, list(units), hashes, most))

    def lowest(self, frame: Frame, hashes: str, units: Sequence[str], most: int) -> Frame:
        return _applied(frame, lambda table: sorting.lowest(table, list(units), hashes, most))

    keeps_by_sorting = True

    def kept_partials(self, frame: Frame, kept: Selection) -> Frame:
        native: pl.LazyFrame = frame.to_native()
        rows = native.select(*kept.units, *kept.groups, kept.hashes, *kept.sums.values())
        names = {name: rows.collect_schema()[name] for name in (*kept.units, *kept.groups)}
        schema = names | dict.fromkeys(["n", "a", *kept.sums], pl.Int64())
        return nw.from_native(
            rows.map_batches(partial(kept_partials, kept=kept), schema=schema, **_AS_A_WHOLE)
        )

    def kept(
        self,
        pairs: Frame,
        units: Sequence[str],
        column: str,
        most: int,
        salt: str,
        hashes: FieldDict,
    ) -> Frame:
        native: pl.LazyFrame = pairs.to_native()

        def keep(table: pl.DataFrame) -> pl.DataFrame:
            many = pl.len().over(units) > most
            # Only units with more than `most` values need hashes.
            candidates = table.filter(many)
            with_hashes = _hashed(candidates, [*units, column], salt, hashes)
            lowest = with_hashes.filter(pl.col("h").rank("max").over(units) <= most).select(
                table.columns
            )
            return pl.concat([table.filter(~many), lowest])

        return nw.from_native(native.map_batches(keep, schema=native.collect_schema()))

    def apply(self, frame: Frame, column: str, function: CellFunction, into: str) -> Frame:
        native: pl.LazyFrame = frame.to_native()
        return nw.from_native(native.with_columns(applied(pl.col(column), function).alias(into)))

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        return frame.with_columns((nw.col(column) // by).alias(into))

    # Expressions

    def constant(self, value: Any, dtype: DType) -> Any:
        """The constant itself; a time with a zone is converted to UTC."""
        return value.astimezone(dt.UTC) if has_zone(value) else value

    def from_ticks(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        return value.cast(dtype)

    def moment(self, value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
        zone, unit = (getattr(domain.dtype, name, None) for name in ("time_zone", "time_unit"))
        value = value if zone is None else value.dt.convert_time_zone("UTC")
        coarse = kind(domain.dtype) == Kind.DATETIME and unit in (
            "s",
            "ms",
        )  # Polars would round the other time to this unit
        return value.cast(nw.Datetime("us", None if zone is None else "UTC")) if coarse else value

    def retimed(self, value: nw.Expr, source: DType, target: DType) -> nw.Expr:
        return value.cast(target)

    def ratio(self, top: nw.Expr, bottom: nw.Expr) -> nw.Expr:
        """Divide by a column, even where the divisor is one number for all rows.

        With one number as divisor, Polars divides a short column, but multiplies a long one by the
        reciprocal, which rounds twice. So the quotient in one unit's row would depend on the number
        of rows of other units.
        """
        return top / (bottom + top.is_null().cast(nw.Float64) * 0.0)

    def quotient(self, top: nw.Expr, bottom: nw.Expr | int) -> nw.Expr:
        return top // bottom

    def remainder(self, top: nw.Expr, by: int) -> nw.Expr:
        return top - top // by * by

    def floor(self, value: nw.Expr) -> nw.Expr:
        return value.floor()

    def ceil(self, value: nw.Expr) -> nw.Expr:
        return value.ceil()

    def whole_part(self, value: nw.Expr) -> nw.Expr:
        return value.cast(nw.Int64)  # which rounds toward zero


# For few rows, Polars' optimizer takes longer than it saves. It changes how a table is computed,
# and no value in it.
_PLAINLY: dict[str, Any] = {"engine": "in-memory", "optimizations": pl.QueryOptFlags.none()}


def applied(value: pl.Expr, function: CellFunction) -> pl.Expr:
    """The result of a function of the cells of a column."""
    text = value.str
    match function:
        case Cased(capital):
            return text.replace_many(*map(list, letters(capital=capital)))
        case Replaced(old, new, every):
            return (
                text.replace_all(old, new, literal=True)
                if every
                else text.replace(old, new, literal=True)
            )
        case Piece(by, index):
            return text.split(by).list.get(index, null_on_oob=True)
        case Stripped(characters, ends):
            stripped: pl.Expr = getattr(text, f"strip_chars{ends}")(characters)
            return stripped
        case Part(dtype, part):
            return _part(value, zone_of(dtype), part)
        case Parsed(dtype):
            return _parsed(value, dtype)
        case Search(task, pattern, group, new):
            return _searched(value, task, pattern.written(r"(?-u:\b)"), group, new)


def _part(value: pl.Expr, zone: str | None, part: str) -> pl.Expr:
    local = value if zone is None else _clock(value, zone)
    match part:
        case "offset":
            moment = value.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            return (local - moment).dt.total_seconds()
        case "text":
            return value.cast(pl.String)
        case "days":
            return local.cast(pl.Date).cast(pl.Int64)
    number: pl.Expr = getattr(local.dt, part)()
    return number.cast(pl.Int64)


def _parsed(text: pl.Expr, dtype: DType) -> pl.Expr:
    match dtype:
        case nw.Date():
            return text.str.to_date("%Y-%m-%d", strict=False)
        case nw.Datetime():
            unit = polars_dtype(dtype).time_unit
            return pl.coalesce(
                text.str.to_datetime(form, time_unit=unit, strict=False)
                for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f")
            )
    return text.cast(polars_dtype(dtype), strict=False)


def _searched(value: pl.Expr, task: Task, pattern: str, group: int, new: str) -> pl.Expr:
    match task:
        case Task.CONTAINS:
            return value.str.contains(pattern)
        case Task.EXTRACT:
            return value.str.extract(pattern, group)
        case Task.COUNT:
            return value.str.count_matches(pattern).cast(pl.Int64)
        case Task.REPLACE:
            return value.str.replace(pattern, new)
        case Task.REPLACE_ALL:
            return value.str.replace_all(pattern, new)


def plainly(frame: pl.LazyFrame) -> pl.DataFrame:
    """The table of a frame over few rows, computed step by step as it was written."""
    return frame.collect(**_PLAINLY)


# A choice that depends on all rows: the optimiser must not remove any before it.
_AS_A_WHOLE: FieldDict = {
    "predicate_pushdown": False,
    "projection_pushdown": False,
    "slice_pushdown": False,
}
_PATHS = re.compile(r'inner: "([^"]*)"')  # in the words of Polars about a scan without files
_LISTED = 2100  # the first year for which Polars has no list of clock changes


def _same_years() -> list[int]:
    """For each of the 400 years from 2100 on, the number of days since the start
    of an earlier year of its kind.

    The earlier year is one for which Polars lists clock changes. There are 14 kinds of years, by
    the day of the week on which they begin and by whether they are leap years. The 28 years before
    2100 contain all 14.
    """
    kinds = {_kind_of_year(year): year for year in range(_LISTED - 28, _LISTED)}
    years = range(_LISTED, _LISTED + 400)
    return [(dt.date(y, 1, 1) - dt.date(kinds[_kind_of_year(y)], 1, 1)).days for y in years]


def _kind_of_year(year: int) -> tuple[int, bool]:
    return dt.date(year, 1, 1).weekday(), calendar.isleap(year)


def _clock(time: pl.Expr, zone: str) -> pl.Expr:
    """The local time of a zone, as a time without a zone.
    From 2100 on, clocks change as in an earlier, similar year.

    A zone's rule for future years names a month and a day of the week on which clocks change. So
    clocks change on the same days in all years of a kind. The kinds repeat after 400 years, which
    are a whole number of weeks.
    """
    moment = time.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    later = (moment.dt.year() - _LISTED).clip(0)
    days = (later % 400).replace_strict(
        list(range(400)), _same_years(), return_dtype=pl.Int64
    ) + later // 400 * 146_097
    shift = (
        pl.when(moment.dt.year() >= _LISTED)
        .then(pl.duration(days=days))
        .otherwise(pl.duration(days=0))
    )
    clock = (moment - shift).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return clock.dt.replace_time_zone(None) + shift


def hash_of(columns: Sequence[str], salt: int) -> pl.Expr:
    """A 64-bit hash of some columns, keyed by a salt."""
    return pl.struct(list(columns)).hash(salt).hash(salt)


def _applied(frame: Frame, step: Callable[[pl.DataFrame], pl.DataFrame]) -> Frame:
    """A frame after a function of all its rows, which keeps its columns."""
    native: pl.LazyFrame = frame.to_native()
    return nw.from_native(native.map_batches(step, **_AS_A_WHOLE))


_MOST_HASHES = 10**7  # that are kept with a partition


def _hashed(table: pl.DataFrame, columns: list[str], salt: str, hashes: FieldDict) -> pl.DataFrame:
    """A table with the hash "h" of each row.
    Every part needs those of all units, so they are kept.
    """
    names = {name: str(i) for i, name in enumerate(columns)}
    rows = table.select(columns).rename(names)
    schema = {**rows.schema, "h": pl.UInt64()}
    known: pl.DataFrame = hashes.get(str(schema), pl.DataFrame(schema=schema))
    new = rows.unique().join(known, on=list(rows.columns), how="anti", nulls_equal=True)
    if new.height:
        numbers = [_hash(row, bytes.fromhex(salt)) for row in new.iter_rows()]
        known = pl.concat([known, new.with_columns(pl.Series("h", numbers, dtype=pl.UInt64))])
        if known.height <= _MOST_HASHES:
            hashes[str(schema)] = known
    hashed = known.rename({i: name for name, i in names.items()})
    return table.join(hashed, on=columns, how="left", nulls_equal=True)


def _hash(row: tuple[object, ...], salt: bytes) -> int:
    """A keyed hash that does not depend on the version of an engine."""
    text = "\x1f".join(f"{type(value).__name__}:{value}" for value in row)
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8, key=salt).digest(), "little"
    )


def _schema(frame: pl.LazyFrame) -> pl.Schema:
    """Names and types of a lazy frame.
    Errors: MissingFile, with the path; those of a step of the frame's own.
    """
    try:
        return frame.collect_schema()
    except FileNotFoundError as error:
        path = str(error).rpartition("): ")[2]
    except pl.exceptions.ComputeError as error:
        if "expanded paths were empty" not in str(error):
            raise
        path = ", ".join(_PATHS.findall(str(error)))
    raise no_file(path)


def _data(frame: pl.LazyFrame, rows: pl.DataFrame | None = None) -> Data:
    """A lazy frame as `Data`. Input: rows: its table, where it is in memory."""
    schema = _schema(frame)
    types = nw.from_native(pl.DataFrame(schema=_readable(schema))).schema
    domain = tuple(
        (name, _domain(types[name]) if name in types else ColumnDomain(nw.Unknown()))
        for name in schema
    )
    # text columns checked so far: the repaired column, or None if it was valid
    wrong: dict[str, pl.Series | None] = {}

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        if empty:
            return pl.LazyFrame(schema={name: schema[name] for name in names})
        texts = [name for name in names if schema[name] in (pl.String, pl.Categorical)]
        if rows is None:
            return frame.select(names).with_columns(_unicode_of(name) for name in texts)
        for name in texts:
            if name not in wrong:
                column = rows.get_column(name)
                whole = unicode(column)
                wrong[name] = None if whole is column else whole
        repairs = [repair for name in texts if (repair := wrong[name]) is not None]
        return rows.with_columns(repairs).lazy().select(names) if repairs else frame.select(names)

    own_types = polars_types(schema)
    if rows is None:
        files, lake = tuple(files_of(frame)), is_lake(frame)
        stated = (lambda: types_of_lake(frame)) if lake else None
        found = versions(files)
        return Data(
            "polars",
            domain,
            scan,
            True,
            files=files,
            versions=found,
            own_types=own_types,
            stated=stated,
        )
    return Data("polars", domain, scan, height=rows.height, own_types=own_types)


def _domain(dtype: DType) -> ColumnDomain:
    """The domain of a type.
    Integers of 128 bits are not read where Polars could take two of them for equal.
    """
    if dtype in (nw.Int128, nw.UInt128) and not _wide_are_apart():
        return ColumnDomain(
            Unread(f"{dtype} (Polars {pl.__version__} confuses some of its values: cast it before)")
        )
    return domain_of(dtype)


@cache
def _wide_are_apart() -> bool:
    """Whether this version of Polars groups integers of 128 bits by all of their bits.
    Polars 1.30 uses 64 of them.
    """
    return pl.Series([0, 2**64], dtype=pl.Int128).to_frame("x").group_by("x").len().height == 2


def _unicode_of(name: str) -> pl.Expr:
    return (
        pl.col(name)
        .cast(pl.String)
        .map_batches(unicode, return_dtype=pl.String, is_elementwise=True)
    )


def unicode(column: pl.Series) -> pl.Series:
    """A column of texts, with null where the bytes are not UTF-8:
    Polars' own code crashes on such bytes.

    Polars trusts the memory that `pl.from_arrow` takes over, and PyArrow does not check the texts
    that it reads from a file. A column in which all texts are valid is returned unchanged, except
    that the memory beneath its nulls is cleared, since Polars' operations read that memory too. For
    a column of categories, the categories are checked.
    """
    if column.null_count() and column.dtype == pl.String:
        column = column.fill_null("").set(column.is_null(), None)
    raw = column.cast(pl.String).cast(pl.Binary)
    try:
        raw.cast(pl.String)
    except pl.exceptions.PolarsError:
        pass
    else:
        return column
    return pl.Series(column.name, [_decoded(cell) for cell in raw.to_list()], dtype=pl.String)


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _readable(schema: pl.Schema) -> dict[str, pl.DataType]:
    """The columns of a schema whose types narwhals has."""
    return {
        name: dtype
        for name, dtype in schema.items()
        if not isinstance(dtype, (pl.Object, pl.Unknown, pl.Null))
    }


BACKEND = PolarsBackend()
