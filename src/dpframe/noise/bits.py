"""The one source of randomness. Every random bit of dpframe comes from `random_words`.

The words come from the operating system (`os.urandom`), so this process holds no state of a generator: there is nothing
to seed, to copy in a fork, to pickle, or to share between threads. Tests may record the drawn words, or replace them by
chosen words. Both apply only inside the `with` block, and only in the thread (context) that opened it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dpframe.arrays import Words
from dpframe.errors import DpFrameError

Source = Callable[[int], Words]


def _from_system(count: int) -> Words:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


_source: ContextVar[Source] = ContextVar("dpframe_random_source", default=_from_system)


def random_words(count: int) -> Words:
    """Return `count` independent uniform 64-bit words, as a read-only array of shape (count,)."""
    return _source.get()(count)


@contextmanager
def substitute(source: Source) -> Iterator[None]:
    """Take the words from `source(count)` inside this block. For tests alone: the noise is then not random."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


@contextmanager
def record() -> Iterator[list[Words]]:
    """Collect the words that are drawn inside this block, one array per request."""
    inner = _source.get()
    arrays: list[Words] = []

    def recording(count: int) -> Words:
        words = inner(count)
        arrays.append(words)
        return words

    with substitute(recording):
        yield arrays


@contextmanager
def replay(words: Iterable[int] | Words | list[Words]) -> Iterator[None]:
    """Return the given words inside this block, in order.

    Input:  words: the list that `record` collected, one array, or integers in [0, 2^64)
    Errors: DpFrameError, inside the block, when more words are drawn than there are
    """
    parts = [np.atleast_1d(np.asarray(part, dtype=np.uint64)) for part in words]
    queue = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    position = 0

    def replaying(count: int) -> Words:
        nonlocal position
        if position + count > len(queue):
            raise DpFrameError(
                f"replay: {count} more random words are needed, and {len(queue) - position} of {len(queue)} are left."
            )
        position += count
        return queue[position - count : position]

    with substitute(replaying):
        yield
