"""Noise that is the same in each run of a test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dpframe.arrays import Words as Array
from dpframe.errors import InvalidArgument
from dpframe.noise import bits

_BLOCK = 1024  # words


class Words:
    """Random words that follow from a name, whatever the sizes in which they
    are asked for, on every machine.

    >>> first, again = Words("visits"), Words("visits")
    >>> [*first(2), *first(3)] == [*again(5)]
    True
    """

    def __init__(self, name: str) -> None:
        self.name, self.drawn = name, 0

    def __call__(self, count: int) -> Array:
        """The next `count` words."""
        first, last = self.drawn // _BLOCK, (self.drawn + count) // _BLOCK
        blocks = [
            hashlib.shake_256(f"{self.name}, block {number}".encode()).digest(8 * _BLOCK)
            for number in range(first, last + 1)
        ]
        at = self.drawn - first * _BLOCK
        self.drawn += count
        return np.frombuffer(b"".join(blocks), dtype="<u8").astype(np.uint64)[at : at + count]


@contextmanager
def fixed_noise(seed: int | str = 0) -> Iterator[Words]:
    """Draw the same noise in each run of the block, in this thread.

    Parameters
    ----------
    seed : int or str
        Other seeds give other noise.

    Raises
    ------
    UnsupportedOperation
        At a release that a ledger pays for, unless it is one of `dpframe.testing.ledger`. Nothing
        is spent.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"user": [1, 1, 2]})
    >>> def visits():
    ...     return (
    ...         rows.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    ...         .count(max_rows=2)
    ...         .release(epsilon=0.5)
    ...         .value
    ...     )
    >>> with fixed_noise(7):
    ...     first = visits()
    >>> with fixed_noise(7):
    ...     first == visits()
    True
    """
    if not isinstance(seed, (int, str)):
        raise InvalidArgument("fixed_noise: the seed is a number or a text, fixed_noise(7).")
    words = Words(f"dpframe.testing {seed}")
    with bits.substitute(words, told=True):
        yield words
