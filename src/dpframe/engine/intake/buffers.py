"""Arrow memory as it is brought, held against its type: a cell that does not hold in its type is null.

Nothing checks Arrow's memory when a table is made: `pyarrow.parquet.read_table` gives texts that are no UTF-8, and
other programs hand over what they like. An engine trusts such memory, so that one cell can end the process after the
charge. Each cell is therefore checked, and only the cells that are wrong are null: nobody's rows change with the cell
of somebody else, and nothing is refused, since a refusal would tell that there is such a cell.

What is checked: offsets and views point into their buffers; texts are UTF-8, also beneath a null, where kernels look
too; decimals have no more digits than their type; a date in milliseconds is a whole day; codes are those of a
dictionary; runs end one after the other; nulls are counted anew. Whole numbers, floats, Booleans, days and ticks hold
whatever their bits are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["plain_type", "sound"]

_BLOCK = 4096  # cells that are looked at one by one where one of them is wrong


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type of the cells of a column, which a dictionary or runs may hold."""
    return plain_type(dtype.value_type) if _encoded(dtype) else dtype


def _encoded(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype))


def sound(column: Any) -> pa.ChunkedArray:
    """A column without dictionaries and runs, with null for each cell that does not hold in its type.

    Input:  an Array or ChunkedArray of numbers, Booleans, texts, dates, times or durations, or of a dictionary or runs
            of them
    Output: as many cells, of the plain type; texts of dictionaries and runs as large ones, which no number of cells
            overflows
    Errors: none
    """
    dtype = _roomy(column.type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([piece for chunk in chunks for piece in _sound(chunk)], type=dtype)


def _roomy(dtype: pa.DataType) -> pa.DataType:
    """The type in which the cells of a column are given."""
    if _encoded(dtype) and _is_text(plain_type(dtype)):
        return pa.large_string()
    return plain_type(dtype)


def _is_text(dtype: pa.DataType) -> bool:
    return dtype in (pa.string(), pa.large_string(), pa.string_view())


def _sound(chunk: Any) -> Iterator[Any]:
    if not len(chunk):
        return
    if pa.types.is_dictionary(chunk.type):
        yield from _decoded(chunk)
        return
    if pa.types.is_run_end_encoded(chunk.type):
        yield from _unrolled(chunk)
        return
    plain = _plain(chunk)
    if plain is None:
        yield pa.nulls(len(chunk), chunk.type)
    elif _may_be_wrong(chunk.type):
        yield from _pieces(plain, len(chunk))
    else:
        yield plain


def _plain(chunk: Any, *, nulls: bool = True) -> Any:
    """The same cells with their nulls counted anew, or taken for cells; None where buffers are too small for them."""
    first, *buffers = chunk.buffers()
    count = -1 if nulls else 0
    with contextlib.suppress(pa.ArrowException, ValueError):
        return pa.Array.from_buffers(chunk.type, len(chunk), [first if nulls else None, *buffers], count, chunk.offset)
    return None


def _may_be_wrong(dtype: pa.DataType) -> bool:
    return _is_text(dtype) or pa.types.is_decimal(dtype) or pa.types.is_date64(dtype)


def _pieces(array: Any, size: int) -> Iterator[Any]:
    """An array in parts that hold, cut where they do not: halves, down to blocks, and those cell by cell."""
    if _holds(array):
        yield array
    elif size == 1:
        yield pa.nulls(1, array.type)
    else:
        step = -(-size // 2) if size > _BLOCK else 1
        for start in range(0, size, step):
            piece = array.slice(start, step)
            yield from _pieces(piece, len(piece))


def _holds(array: Any) -> bool:
    """Whether all cells hold in their type; of texts, the bytes beneath nulls too."""
    bare = _plain(array, nulls=False) if _is_text(array.type) else array
    if bare is None:
        return False
    try:
        bare.validate(full=True)
    except (pa.ArrowException, ValueError):
        return False
    return True


def _decoded(chunk: Any) -> Iterator[Any]:
    """The cells of a dictionary; null where a code is none of its own, or its value does not hold."""
    dtype = _roomy(chunk.type)
    codes, values = _plain(chunk.indices), sound(chunk.dictionary)
    if codes is None or not len(values):
        yield pa.nulls(len(chunk), dtype)
        return
    numbers = codes.fill_null(0).to_numpy(zero_copy_only=False)
    inside = (numbers >= 0) & (numbers < len(values))
    if not inside.all():
        codes = pc.if_else(pa.array(inside), codes, pa.scalar(None, codes.type))
    values = values.cast(dtype) if values.type != dtype else values
    yield from values.take(codes).chunks


def _unrolled(chunk: Any) -> Iterator[Any]:
    """The cells of runs; null where a value does not hold, and everywhere where the ends of the runs do not."""
    dtype, ends, values = _roomy(chunk.type), _plain(chunk.run_ends, nulls=False), sound(chunk.values)
    last = None if ends is None else ends.to_numpy()
    rising = last is not None and len(last) and last[0] > 0 and bool(np.all(np.diff(last.astype(np.int64)) > 0))
    if last is None or not rising or last[-1] < chunk.offset + len(chunk) or len(values) < len(last):
        yield pa.nulls(len(chunk), dtype)
        return
    values = values.cast(dtype) if values.type != dtype else values
    runs = np.searchsorted(last, np.arange(chunk.offset, chunk.offset + len(chunk)), side="right")
    yield from values.take(pa.array(runs)).chunks
