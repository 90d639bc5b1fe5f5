"""No fork of this process comes while one of its threads has a file
of SQLite open in a transaction.

SQLite keeps in memory which locks its process holds on a file. A fork gets that memory, and no
thread that would ever give the locks back. So it waits for its own file forever, or reads it
without a lock while another process writes. Between two transactions no lock is held, and a fork
has nothing wrong in its memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident

from dpframe.errors import LedgerUnavailable

# seconds that a fork waits for transactions of other threads, which may themselves wait for a lock
PATIENCE = 30.0
_turn = Condition()
_inside: Counter[int] = Counter()  # the threads in transactions, and how many each is in
_forking = _cut_off = False


@contextmanager
def unforked() -> Iterator[None]:
    """Let forks of other threads wait until the end of the block, and the block
    wait for those that wait already.

    Errors: LedgerUnavailable in a fork that came all the same while a thread was in such a block
    """
    if _cut_off:
        raise LedgerUnavailable(
            "This process is a fork of one that was in the middle of a charge, so it cannot tell "
            "who has a lock on the ledger. Nothing is released. Start processes by spawn: "
            "multiprocessing.get_context('spawn')."
        )
    me = get_ident()
    with _turn:
        _turn.wait_for(lambda: not _forking or me in _inside)
        _inside[me] += 1
    try:
        yield
    finally:
        with _turn:
            _inside[me] -= 1
            if not _inside[me]:
                del _inside[me]
            _turn.notify_all()


def _before() -> None:
    """Wait until no other thread is in a transaction, and let none
    begin one until the fork is made.
    """
    global _forking
    _turn.acquire()
    _forking = True
    _turn.wait_for(lambda: not set(_inside) - {get_ident()}, PATIENCE)


def _after() -> None:
    global _forking
    _forking = False
    _turn.notify_all()
    _turn.release()


def _after_in_child() -> None:
    """The lock and those who wait for it are threads of another process."""
    global _turn, _forking, _cut_off
    _turn, _forking, _cut_off = Condition(), False, _cut_off or bool(_inside)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
