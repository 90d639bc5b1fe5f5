"""Arrow tables in DataFusion."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import polars as pl
import pyarrow as pa

_NUMBER = itertools.count()


def stored(context, table: pa.Table) -> str:
    """The name of a table of a DataFusion session with these rows."""
    name = f"t{next(_NUMBER)}"
    empty = pa.RecordBatch.from_arrays(
        [pa.array([], dtype) for dtype in table.schema.types], schema=table.schema
    )
    context.register_record_batches(name, [table.to_batches() or [empty]])
    return name


@functools.cache
def _session() -> tuple[Any, Any]:
    import datafusion
    import ibis

    context = datafusion.SessionContext()
    return context, ibis.datafusion.connect(context)


def brought(frame: pl.DataFrame) -> Any:
    """A table of DataFusion, through Ibis. Enums are texts there."""
    context, backend = _session()
    enums = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Enum)]
    return backend.table(stored(context, frame.cast(dict.fromkeys(enums, pl.String)).to_arrow()))
