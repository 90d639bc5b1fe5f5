"""Released tables as bytes and back, by Arrow IPC: it holds data only, and reading it runs no code."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

__all__ = ["Answer", "packed", "unpacked"]


@dataclass(frozen=True)
class Answer:
    """A released table in long form, and the noisy totals under its derived columns."""

    long: pl.DataFrame
    parts: Mapping[str, np.ndarray]


def packed(answers: Sequence[Answer]) -> bytes:
    """Tables as bytes: an Arrow stream with a row for each table, and in each row the streams of table and totals."""
    parts = [pl.DataFrame([pl.Series(name, part) for name, part in answer.parts.items()]) for answer in answers]
    columns = [
        pl.Series("table", [_stream(answer.long) for answer in answers], dtype=pl.Binary),
        pl.Series("parts", [_stream(table) for table in parts], dtype=pl.Binary),
        pl.Series("rows", [answer.long.height for answer in answers], dtype=pl.Int64),
    ]
    return _stream(pl.DataFrame(columns))


def unpacked(data: bytes) -> list[Answer]:
    """Tables from bytes."""
    answers = []
    for table, parts, _ in pl.read_ipc_stream(io.BytesIO(data)).iter_rows():
        totals = pl.read_ipc_stream(io.BytesIO(parts))
        arrays = {name: totals.get_column(name).to_numpy() for name in totals.columns}
        answers.append(Answer(pl.read_ipc_stream(io.BytesIO(table)), arrays))
    return answers


def _stream(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_ipc_stream(buffer)
    return buffer.getvalue()
