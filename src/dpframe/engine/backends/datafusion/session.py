"""Run a query in a session of dpframe's own, in which the user's tables are the only tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import datafusion
import ibis
import ibis.expr.operations as ops
import polars as pl
import pyarrow as pa
from ibis.formats.pyarrow import PyArrowType

from dpframe.engine.backends.datafusion.compiler import DataFusionTotalCompiler, Function, Opened
from dpframe.engine.backends.datafusion.functions import FUNCTIONS, as_held, series
from dpframe.engine.backends.ibis_checks import database_of
from dpframe.engine.intake import plain_type
from dpframe.errors import UnsupportedOperation

_SETTINGS = {
    "datafusion.execution.batch_size": "65536",  # rows of a call
    "datafusion.sql_parser.recursion_limit": "100000",  # a question has many steps
    # columns of dpframe have Arrow's large texts
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
}


def opened(table: ibis.Table) -> ibis.Table:
    """The user's table, with the user's own steps, as a query in the user's session."""
    backend = database_of(table)
    if backend is None:
        return table
    backend._run_pre_execute_hooks(table)
    query = str(backend.compile(table))
    types = tuple((field.name, field.type) for field in backend.con.sql(query).schema())
    return Opened(query, table.schema(), backend, types).to_expr()


def schema_of(table: ibis.Table) -> ibis.Value:
    """The schema of the user's table, with the types that DataFusion has for its columns."""
    source = opened(table).op()
    if not isinstance(source, Opened):
        return source.schema
    return ibis.schema({name: PyArrowType.to_ibis(_plain(dtype)) for name, dtype in source.types})


def _plain(dtype: pa.DataType) -> pa.DataType:
    """The type of the cells; texts in the one form of Arrow's that Ibis knows."""
    dtype = plain_type(dtype)
    return pa.string() if dtype == pa.string_view() else dtype


def planned(rows: ibis.Table) -> pl.DataFrame:
    """The table of the whole query on tables without their rows:
    what DataFusion plans and calls is that of the answer.

    Errors: UnsupportedOperation for a table that dpframe's session cannot read, such as one of an
            object store
    """
    compiler = DataFusionTotalCompiler()
    query = compiler.written(rows)
    _check(_session(compiler), compiler.tables.values())
    return _collected(_session(compiler, empty=True), compiler, query)


def answered(rows: ibis.Table) -> pl.DataFrame:
    """The rows of a query."""
    compiler = DataFusionTotalCompiler()
    query = compiler.written(rows)
    return _collected(_session(compiler), compiler, query)


def _check(session: datafusion.SessionContext, tables: Iterable[str]) -> None:
    """Plan to read each table of a query. No row is read."""
    try:
        for name in tables:
            session.table(name).execution_plan()
    except Exception:
        unreadable = True  # the error is raised outside of the handler, without DataFusion's own
    else:
        return
    assert unreadable
    raise UnsupportedOperation(
        "DataFusion: a session of dpframe's own cannot read a table of this question, as it "
        "happens with an object store that is registered in your session. Protect its rows: "
        "dp.protect(table.to_polars(), ...)."
    )


def _collected(
    session: datafusion.SessionContext, compiler: DataFusionTotalCompiler, query: str
) -> pl.DataFrame:
    """The rows of a query in a session."""
    for function, name in compiler.calls.items():
        changes = "volatile" if function.name == "same" else "immutable"
        call = datafusion.udf(
            _caller(function), list(function.inputs), function.output, changes, name
        )
        session.register_udf(call)
    result = session.sql(query)
    # One batch may have another Arrow type of text than the next.
    batches = [pl.DataFrame(batch) for batch in (result.schema().empty_table(), *result.collect())]
    return pl.concat(batches, how="vertical_relaxed")


def _session(compiler: DataFusionTotalCompiler, *, empty: bool = False) -> ibis.Value:
    """A session with the tables of a query; empty: the user's tables without their rows."""
    session = datafusion.SessionContext(datafusion.SessionConfig(_SETTINGS))
    for table, name in compiler.tables.items():
        if empty and isinstance(table, Opened):
            session.register_record_batches(name, [[_empty(pa.schema(table.types))]])
        else:
            _register(session, name, table)
    return session


def try_threads() -> None:
    """A query that DataFusion divides between its threads."""
    datafusion.SessionContext().sql(
        "SELECT sum(x) FROM (SELECT 1 AS x UNION ALL SELECT 2)"
    ).collect()


def _register(session: datafusion.SessionContext, name: str, table: ops.Relation) -> None:
    if isinstance(table, Opened):
        session.register_view(name, table.source.con.sql(table.query))
        return
    public = pl.DataFrame(table.data.to_pyarrow(table.schema))
    held = pl.DataFrame(
        [as_held(column.to_arrow()).alias(column.name) for column in public]
    ).to_arrow()
    session.register_record_batches(name, [held.to_batches() or [_empty(held.schema)]])


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows: DataFusion takes the types of a table from its first batch."""
    return pa.RecordBatch.from_arrays(
        [pa.array([], dtype) for dtype in schema.types], schema=schema
    )


def _caller(function: Function) -> Callable[..., pa.Array]:
    """A function of arrays, as DataFusion calls it."""

    def call(*arrays: pa.Array) -> pa.Array:
        if function.name == "same":
            column = series(arrays[0])
        elif function.name == "held":
            column = as_held(arrays[0])
        else:
            frame = pl.DataFrame([series(array).alias(f"a{i}") for i, array in enumerate(arrays)])
            column = FUNCTIONS[function.name](frame, *function.options)
        array: pa.Array = column.to_arrow()
        return array.cast(function.output)

    return call
