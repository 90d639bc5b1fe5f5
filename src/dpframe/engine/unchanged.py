"""Facts from `dp.protect` that must still be true at a release:
the files of a table, and the types of its columns.
"""

from __future__ import annotations

import narwhals as nw
import polars as pl

from dpframe.engine.origins import check_there, versions
from dpframe.engine.tables import Data
from dpframe.engine.totals import guarded
from dpframe.errors import EngineError, EngineUnavailable, SchemaError
from dpframe.plan.steps import Step, sources_of

_AGAIN = (
    "Nothing was paid. Protect the table again, as in dp.protect(connection.table('visits'), ...)."
)


def check_unchanged(step: Step) -> None:
    """Refuse tables of which files or types changed since they were protected. No row is read.

    A column of another type would let a query fail after the charge, or answer about something
    else. With what types columns are stated does not depend on a row.

    Errors: MissingFile and EngineError for files; SchemaError that names a column that is gone or
            has another type; EngineUnavailable where the connection is lost
    """
    for source in sources_of(step):
        check_there(source.data.watched or source.data.files)
    check_files(step)
    for source in sources_of(step):
        _check_types(source.data)


def check_files(step: Step) -> None:
    """Refuse tables of files that were written since they were protected.

    A release may read its rows several times: limits, bounds and keys first, and totals then; a
    series reads those of several periods. Each reading is paid for and private by itself, but they
    would be about different rows. When files are written does not depend on a row.

    Errors: EngineError
    """
    for source in sources_of(step):
        if versions(source.data.watched or source.data.files) != source.data.versions:
            raise EngineError(
                "The files of this table were written after dp.protect(...), and parts of an "
                f"answer would be about different rows.{_other_column(source.data)} Protect the "
                "table again, as in dp.protect(pl.scan_parquet('visits.parquet'), ...)."
            )


def _other_column(data: Data) -> str:
    """The first column that a Parquet file lacks now or has in another type,
    as a sentence; no row is read.
    """
    for path in data.watched or data.files:
        try:
            now = nw.from_native(pl.DataFrame(schema=pl.read_parquet_schema(path))).schema
        except Exception:  # the file is gone, or of another format
            continue
        for name, domain in data.schema:
            if name not in now:
                return f" Column {name!r} is gone or renamed."
            if type(now[name]) is not type(domain.dtype):
                return f" Column {name!r} was {domain.dtype} and is {now[name]} now."
    return ""


def _check_types(data: Data) -> None:
    if data.stated is None:
        return
    try:
        now = guarded(data.stated, before=True)
    except EngineUnavailable:
        raise
    except EngineError:
        now = None
    if now is None:
        raise SchemaError(
            "This table was there at dp.protect(...), and its engine cannot say its columns any "
            "more: it was dropped or renamed, a step before dp.protect does not fit its columns, "
            f"or it may not be read. {_AGAIN}"
        )
    for name, dtype in data.types.items():
        if name not in now:
            raise SchemaError(
                f"Column {name!r} was there at dp.protect(...), and is gone or renamed. {_AGAIN}"
            )
        if now[name] != dtype:
            raise SchemaError(
                f"Column {name!r} was {dtype} at dp.protect(...), and is {now[name]} now. {_AGAIN}"
            )
