"""Checks of the memory of Arrow tables: a cell that is not valid in its column's type becomes null.

PyArrow does not check memory when a table is made: `pyarrow.parquet.read_table` returns texts that
are not UTF-8, and other programs can hand over any memory. An engine trusts this memory, so one
invalid cell could end the process after the charge. Therefore each cell is checked. Only invalid
cells become null, so one unit's cell does not change the rows of another. No table is refused,
since a refusal would tell that it has such a cell.

These properties are checked:

- offsets and views point into their buffers;
- texts are UTF-8, also beneath a null, because functions of engines read that memory too;
- decimals have no more digits than their type allows;
- a date in milliseconds is a whole day;
- each code is one of its dictionary;
- the ends of runs increase;
- the number of nulls, which is counted again.

Whole numbers, floats, Booleans, days and ticks are valid for all bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# a piece of at most this many cells is checked cell by cell if one of them is invalid
_BLOCK = 4096


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type of the cells of a column.
    For a dictionary or runs, it is the type of their values.
    """
    return plain_type(dtype.value_type) if _encoded(dtype) else dtype


@cache
def views_are_read() -> bool:
    """Whether this version of PyArrow can make an array of string views from buffers.
    PyArrow 16 cannot.
    """
    views = pa.array(["a"], pa.string_view())
    try:
        pa.Array.from_buffers(views.type, 1, views.buffers())
    except (pa.ArrowException, ValueError):
        return False
    return True


def _encoded(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype))


def sound(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with null for each invalid cell, and without dictionaries and runs.

    Input:  an Array or ChunkedArray of numbers, Booleans, texts, dates, times or durations, or of a
            dictionary or runs of them
    Output: as many cells, of the plain type. Texts of dictionaries and runs become `large_string`,
            whose 64-bit offsets cannot overflow
    Errors: none
    """
    dtype = _roomy(column.type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([piece for chunk in chunks for piece in _sound(chunk)], type=dtype)


def _roomy(dtype: pa.DataType) -> pa.DataType:
    """The type of the column that `sound` returns."""
    if _encoded(dtype) and _is_text(plain_type(dtype)):
        return pa.large_string()
    return plain_type(dtype)


def _is_text(dtype: pa.DataType) -> bool:
    return dtype in (pa.string(), pa.large_string(), pa.string_view())


def _sound(chunk: pa.Array) -> Iterator[pa.Array]:
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


def _plain(chunk: pa.Array, *, nulls: bool = True) -> pa.Array | None:
    """An array over the memory of a chunk, with its nulls counted again;
    None where the buffers are too small.

    Input:  nulls: False to take the memory beneath nulls for cells
    """
    first, *buffers = chunk.buffers()
    count = -1 if nulls else 0
    with contextlib.suppress(pa.ArrowException, ValueError):
        return pa.Array.from_buffers(
            chunk.type, len(chunk), [first if nulls else None, *buffers], count, chunk.offset
        )
    return None


def _may_be_wrong(dtype: pa.DataType) -> bool:
    return _is_text(dtype) or pa.types.is_decimal(dtype) or pa.types.is_date64(dtype)


def _pieces(array: pa.Array, size: int) -> Iterator[pa.Array]:
    """Pieces of an array, with null for each invalid cell.
    Invalid pieces are halved, and blocks are cut into cells.
    """
    if _holds(array):
        yield array
    elif size == 1:
        yield pa.nulls(1, array.type)
    else:
        step = -(-size // 2) if size > _BLOCK else 1
        for start in range(0, size, step):
            piece = array.slice(start, step)
            yield from _pieces(piece, len(piece))


def _holds(array: pa.Array) -> bool:
    """Whether all cells are valid. For texts this includes the bytes beneath nulls."""
    bare = _plain(array, nulls=False) if _is_text(array.type) else array
    if bare is None:
        return False
    try:
        bare.validate(full=True)
    except (pa.ArrowException, ValueError):
        return False
    return True


def _decoded(chunk: pa.Array) -> Iterator[pa.Array]:
    """The cells of a dictionary; null where a code is not in the
    dictionary, or its value is invalid.
    """
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


def _unrolled(chunk: pa.Array) -> Iterator[pa.Array]:
    """The cells of runs; null where a value is invalid.
    All cells are null if the ends of the runs are invalid.
    """
    dtype, ends, values = (
        _roomy(chunk.type),
        _plain(chunk.run_ends, nulls=False),
        sound(chunk.values),
    )
    last = None if ends is None else ends.to_numpy()
    rising = (
        last is not None
        and len(last)
        and last[0] > 0
        and bool(np.all(np.diff(last.astype(np.int64)) > 0))
    )
    if (
        last is None
        or not rising
        or last[-1] < chunk.offset + len(chunk)
        or len(values) < len(last)
    ):
        yield pa.nulls(len(chunk), dtype)
        return
    values = values.cast(dtype) if values.type != dtype else values
    runs = np.searchsorted(last, np.arange(chunk.offset, chunk.offset + len(chunk)), side="right")
    yield from values.take(pa.array(runs)).chunks
