"""What narwhals has no word for: each engine says its own (see `backends`). Here is what the stages call.

Privacy does not rest on the hash: equal hashes only cost groups (see `limits`). Its key is drawn anew for each release.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.engine.backends import Frame, backend_of

__all__ = ["Frame", "backend_of", "keyed_hash"]


def keyed_hash(frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
    """A 64-bit hash of some columns of each row under a 64-bit key, as a new column."""
    return backend_of(frame).keyed_hash(frame, columns, salt, into)
