"""Arrow tables in DataFusion."""

from __future__ import annotations

import itertools

import pyarrow as pa

_NUMBER = itertools.count()


def stored(context, table: pa.Table) -> str:
    """The name of a table of a DataFusion session with these rows."""
    name = f"t{next(_NUMBER)}"
    empty = pa.RecordBatch.from_arrays([pa.array([], dtype) for dtype in table.schema.types], schema=table.schema)
    context.register_record_batches(name, [table.to_batches() or [empty]])
    return name
