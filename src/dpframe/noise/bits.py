"""The one source of randomness. Every random bit of dpframe comes from `random_words`.

The words come from the operating system (`os.urandom`), so this process holds no state of a
generator: there is nothing to seed, to copy in a fork, to pickle, or to share between threads.
Tests may record the drawn words, or replace them by chosen words. Both apply only inside the `with`
block, and only in the thread (context) that opened it.
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
_told: ContextVar[bool] = ContextVar("dpframe_fixed_noise", default=False)


def random_words(count: int) -> Words:
    """Return `count` independent uniform 64-bit words, as a read-only array of shape (count,)."""
    return _source.get()(count)


def random_word() -> int:
    """Return one uniform 64-bit word as an integer."""
    return int(random_words(1)[0])


def random_salt() -> str:
    """Return a secret of 128 bits as hexadecimal digits."""
    return random_words(2).tobytes().hex()


def are_replaced() -> bool:
    """Whether words come from anywhere but the operating system:
    no ledger but one of tests pays then.
    """
    return _source.get() is not _from_system


def are_told() -> bool:
    """Whether a privacy statement must say that its noise is fixed."""
    return _told.get()


@contextmanager
def substitute(source: Source, *, told: bool = False) -> Iterator[None]:
    """Take the words from `source(count)` inside this block.
    For tests alone: the noise is then not random.

    Input:  told: whether privacy statements say so
    """
    tokens = _source.set(source), _told.set(told or _told.get())
    try:
        yield
    finally:
        _source.reset(tokens[0])
        _told.reset(tokens[1])


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
                f"replay: {count} more random words are needed, and {len(queue) - position} of "
                f"{len(queue)} are left."
            )
        position += count
        return queue[position - count : position]

    with substitute(replaying):
        yield
