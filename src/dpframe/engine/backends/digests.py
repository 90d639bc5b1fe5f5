"""Digests of cells, for engines that compute a hash in Python."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

Cell = bytes | str | int | float | None


def digest(size: int, salt: bytes, cells: Iterable[Cell]) -> bytes:
    """A digest that depends on the salt and the cells alone. Texts arrive as bytes.

    Each cell is written with its kind and its length, so different cells give different bytes.
    """
    total = hashlib.blake2b(digest_size=size)
    for cell in (salt, *cells):
        kind = b"n" if cell is None else b"b" if isinstance(cell, bytes) else b"f" if isinstance(cell, float) else b"i"
        raw = cell if isinstance(cell, bytes) else repr(cell).encode()
        total.update(b"%c%d " % (kind, len(raw)))
        total.update(raw)
    return total.digest()
