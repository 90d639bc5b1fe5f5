"""Released tables as bytes and back, by Arrow IPC:
it holds data only, and reading it runs no code.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from dpframe.noise import bits

_MARK = b"dpframe\n"


@dataclass(frozen=True)
class Answer:
    """A released table in long form, and the noisy totals under its derived columns."""

    long: pl.DataFrame
    parts: Mapping[str, np.ndarray]


def packed(answers: Sequence[Answer]) -> bytes:
    """Tables as bytes: two Arrow streams for each answer, its table and its totals,
    behind a mark and their sizes.

    Layout: `_MARK`, the number of streams, the size of each in bytes, and the streams. Numbers have
            eight bytes, the lowest first. After the streams comes a random salt
    Bound:  ledgers and certificates show the hash of these bytes. Some numbers of an answer may be
            withheld, as by `suppress`, or be those of another question of a batch. Without the
            salt, of 128 bits, nobody can check a guess of these by the hash
    """
    tables = [
        table
        for answer in answers
        for table in (
            answer.long,
            pl.DataFrame([pl.Series(name, part) for name, part in answer.parts.items()]),
        )
    ]
    streams = [
        *(table.write_ipc_stream(None).getvalue() for table in tables),
        bits.random_salt().encode(),
    ]
    numbers = [len(streams), *map(len, streams)]
    return b"".join([_MARK, np.array(numbers, "<u8").tobytes(), *streams])


def unpacked(data: bytes) -> list[Answer]:
    """Tables from bytes, also from those that earlier versions
    stored: an Arrow table of streams.
    """
    if data.startswith(_MARK):
        streams = _split(data)
    else:
        streams = [
            stream for row in pl.read_ipc_stream(io.BytesIO(data)).iter_rows() for stream in row[:2]
        ]
    answers = []
    # the salt is over; old answers have none
    for table, parts in zip(streams[::2], streams[1::2], strict=False):
        totals = pl.read_ipc_stream(io.BytesIO(parts))
        arrays = {name: totals.get_column(name).to_numpy() for name in totals.columns}
        answers.append(Answer(pl.read_ipc_stream(io.BytesIO(table)), arrays))
    return answers


def _split(data: bytes) -> list[bytes]:
    start = len(_MARK)
    (many,) = np.frombuffer(data, "<u8", 1, start).tolist()
    sizes = np.frombuffer(data, "<u8", many, start + 8).tolist()
    ends = np.cumsum([start + 8 * (many + 1), *sizes]).tolist()
    return [data[begin:end] for begin, end in pairwise(ends)]
