"""A progress line for long loops.
It is shown when a loop takes more than two seconds and somebody can see it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_PATIENCE = 2.0  # seconds before the line is shown
_BARS: list[str] = []  # bars that are shown now, beside which no seconds are
_EVERY = 0.2  # seconds between two updates


def _visible() -> bool:
    """Whether standard error is a terminal, or the cell of a notebook."""
    return sys.stderr.isatty() or "ipykernel.zmqshell" in sys.modules


@contextmanager
def waited(what: str) -> Iterator[None]:
    """Show on standard error how long a block has been running, once that is two
    seconds and if somebody can see it.
    """
    if not _visible():
        yield
        return
    done, began = threading.Event(), time.monotonic()

    def tell() -> None:
        shown = False
        while not done.wait(1.0 if shown else _PATIENCE):
            if not _BARS:
                print(
                    f"\r{what}, {time.monotonic() - began:.0f} s",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
                shown = True
        if shown:
            print(file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def watched(
    items: Iterable[Item], total: int, what: str, show: bool | None = None
) -> Iterator[Item]:
    """Yield the items, and show on standard error how many have been yielded.

    Input:  total: number of items; what: their name in the plural; show: True shows the line from
            the start, False never, None after two seconds if standard error is a terminal or a
            notebook
    """
    if show is False or (show is None and not _visible()):
        yield from items
        return
    due = time.monotonic() + (0.0 if show else _PATIENCE)
    line_open = False
    _BARS.append(what)
    try:
        for count, item in enumerate(items):
            if time.monotonic() >= due:
                blocks = 30 * count // max(total, 1)
                bar = "█" * blocks + "░" * (30 - blocks)
                print(f"\r{bar} {count:,} of {total:,} {what}", end="", file=sys.stderr, flush=True)
                due, line_open = time.monotonic() + _EVERY, True
            yield item
    finally:
        _BARS.remove(what)
    if line_open:
        print(f"\r{'█' * 30} {total:,} of {total:,} {what}", file=sys.stderr, flush=True)
