"""A progress line for long loops. It is shown when a loop takes more than two seconds and somebody can see it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_PATIENCE = 2.0  # seconds before the line is shown
_EVERY = 0.2  # seconds between two updates


def _visible() -> bool:
    """Whether standard error is a terminal, or the cell of a notebook."""
    return sys.stderr.isatty() or "ipykernel.zmqshell" in sys.modules


def watched(items: Iterable[Item], total: int, what: str, show: bool | None = None) -> Iterator[Item]:
    """Yield the items, and show on standard error how many have been yielded.

    Input:  total: number of items; what: their name in the plural; show: True shows the line from the start, False
            never, None after two seconds if standard error is a terminal or a notebook
    """
    if show is False or (show is None and not _visible()):
        yield from items
        return
    due = time.monotonic() + (0.0 if show else _PATIENCE)
    line_open = False
    for count, item in enumerate(items):
        if time.monotonic() >= due:
            blocks = 30 * count // max(total, 1)
            bar = "█" * blocks + "░" * (30 - blocks)
            print(f"\r{bar} {count:,} of {total:,} {what}", end="", file=sys.stderr, flush=True)
            due, line_open = time.monotonic() + _EVERY, True
        yield item
    if line_open:
        print(f"\r{'█' * 30} {total:,} of {total:,} {what}", file=sys.stderr, flush=True)
