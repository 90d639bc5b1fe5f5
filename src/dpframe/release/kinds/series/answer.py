"""The answer that is published when a period is added:
the noisy totals of its blocks, and their stored form.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.noise import bits
from dpframe.plan import Question
from dpframe.release.answer import plus
from dpframe.release.kinds.series.noise import SeriesNoise
from dpframe.release.kinds.series.progress import Block

_NODE = "block"


@dataclass(frozen=True)
class Measured:
    """Noisy totals: `values[block][total]` is an array of integers, one for
    each group; `keys` are the groups.
    """

    keys: pl.DataFrame
    values: tuple[tuple[np.ndarray, ...], ...]


@dataclass(frozen=True)
class Reading:
    """Periods that are read in one pass, in order, and the question that reads them.

    The question of several periods has their label as its first key, and the groups of the first
    period come first.
    """

    question: Question
    periods: Sequence[int]

    def totals(self) -> tuple[pl.DataFrame, Iterator[tuple[int, Sequence[Any]]]]:
        """The groups of one period, and for each period the exact totals of these groups."""
        totals = engine.totals(self.question, bits.random_word())
        groups = len(totals.values[0]) // len(self.periods)
        keys = totals.keys
        if len(self.periods) > 1:
            keys = keys.head(groups).select(keys.columns[1:]) if keys.width > 1 else pl.DataFrame()
        places = (
            (period, slice(i * groups, (i + 1) * groups)) for i, period in enumerate(self.periods)
        )
        return keys, (
            (period, [values[place] for values in totals.values]) for period, place in places
        )


def measured(readings: Sequence[Reading], blocks: Sequence[Block], noise: SeriesNoise) -> Measured:
    """Read the rows of the periods of some blocks, add up their totals,
    and draw the noise of each block.

    Input:  readings: of the periods of the blocks, each period in one of them; blocks; the noise of
            the series
    Bound:  the totals of a block are sums of integers over its periods, with integer weights. One
            unit moves them by at most `UnitChange.over`, or `UnitChange.weighted`. Each block gets
            independent integer noise with the scale of its level. The raw totals do not leave this
            function
    """
    raw: dict[int, list[np.ndarray]] = {}
    keys = pl.DataFrame()
    for reading in readings:
        keys, each = reading.totals()
        for period, totals in each:
            for place, block in enumerate(blocks):
                if period in block.periods:
                    weighted = [values.astype(object) * block.weight(period) for values in totals]
                    sums = raw.get(place, [np.zeros_like(values) for values in weighted])
                    raw[place] = [have + more for have, more in zip(sums, weighted, strict=True)]
    published = []
    for place, block in enumerate(blocks):
        mechanisms = noise.mechanisms[block.part][block.level]
        pairs = zip(map(_narrow, raw[place]), mechanisms, strict=True)
        published.append(
            tuple(plus(values, mechanism.draw(len(values))) for values, mechanism in pairs)
        )
    return Measured(keys, tuple(published))


def _narrow(values: np.ndarray) -> np.ndarray:
    """Integers as int64 if they fit with room for noise; otherwise unchanged."""
    return (
        values.astype(np.int64) if all(abs(value) < 2**61 for value in values.tolist()) else values
    )


def packed_blocks(answer: Measured) -> bytes:
    """Noisy totals as bytes: an Arrow stream with two streams, the keys, and the
    integers as texts of any length.
    """
    groups = len(answer.values[0][0])
    columns = {
        _NODE: [block for block in range(len(answer.values)) for _ in range(groups)],
        **{
            str(total): [str(value) for block in answer.values for value in block[total].tolist()]
            for total in range(len(answer.values[0]))
        },
    }
    both = {"keys": answer.keys, "blocks": pl.DataFrame(columns)}
    streams = {name: [table.write_ipc_stream(None).getvalue()] for name, table in both.items()}
    return (
        pl.DataFrame(streams, dict.fromkeys(streams, pl.Binary)).write_ipc_stream(None).getvalue()
    )


def unpacked_blocks(data: bytes) -> Measured:
    """Noisy totals from bytes."""
    ((keys, blocks),) = pl.read_ipc_stream(io.BytesIO(data)).iter_rows()
    table = pl.read_ipc_stream(io.BytesIO(blocks))
    number = table.get_column(_NODE).max()
    assert isinstance(number, int)
    values = [
        np.array([int(text) for text in table.get_column(name).to_list()], dtype=object).reshape(
            number + 1, -1
        )
        for name in table.columns[1:]
    ]
    by_block = tuple(tuple(total[block] for total in values) for block in range(number + 1))
    return Measured(pl.read_ipc_stream(io.BytesIO(keys)), by_block)
