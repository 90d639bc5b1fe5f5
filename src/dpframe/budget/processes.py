"""Whether the process that charged a release still runs, as far as this machine can tell."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from dpframe.budget.entries import Entry
from dpframe.budget.receipts import Receipt
from dpframe.errors import ReleasePending

P = ParamSpec("P")
T = TypeVar("T")
_PAUSE = 1.0  # seconds between two looks at a release that runs
_MARGIN = dt.timedelta(seconds=10)  # how exactly the start of a process is known
_ENDED: set[tuple[int, dt.datetime]] = set()  # charges of this process whose work ended by an error


@contextmanager
def ending(receipt: Receipt) -> Iterator[None]:
    """Remember that the work of a charge has ended, if an error ends it.

    An interrupt, or a ledger that cannot be written any more, leaves the charge without an answer
    and without a failure. This process then knows what others cannot: nobody is at work on it.
    """
    try:
        yield
    except BaseException:
        _ENDED.add((receipt.number, receipt.when))
        raise


def runs(charge: Entry) -> bool | None:
    """Whether the process of a charge runs: False if it has ended.
    None if this machine cannot tell.

    It cannot tell of another machine, or of a charge that an earlier version wrote. Of a charge of
    its own it knows whether an error ended the work. A process that began after the charge has its
    number by chance. A wrong answer, as in containers that share the name of a machine and not its
    processes, costs a second price and no privacy: each is charged.
    """
    host, process = charge.body.get("host"), charge.body.get("process")
    if process is None or host != socket.gethostname() or os.name != "posix":
        return None
    if process == os.getpid():
        return False if (charge.number, charge.when) in _ENDED else None
    try:
        os.kill(process, 0)  # asks, and sends no signal
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's process
        pass
    began = _began(process)
    return began is None or began < charge.when + _MARGIN


def _began(process: int) -> dt.datetime | None:
    """When a process began; None where the system does not say it."""
    try:
        boot = next(
            line
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime ")
        )
        ticks = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
        seconds = int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def at_work(charge: Entry, where: str | None) -> str:
    """Who charged a release that is pending, and what to do about it.
    Input: where: the ledger and its budget.
    """
    host, process = charge.body.get("host"), charge.body.get("process")
    own = process == os.getpid() and host == socket.gethostname()
    who = (
        ""
        if process is None
        else " This process charged it."
        if own
        else f" Process {process} on {host!r} charged it."
    )
    alive = runs(charge)
    if alive:
        return f"{who} That process runs: on_pending='wait' waits for its answer."
    if alive is False:
        how = "Its work was stopped here" if own else "That process runs no more, so it was killed"
        return f"{who} {how}: on_pending='wait' or 'retry' pays again."
    name = charge.name or "..."
    command = f"budget.resolve({name!r})"
    if where is not None:
        command = f"python -m dpframe ledger resolve {where} {shlex.quote(name)} --by NAME"
    return (
        f"{who} It is running elsewhere, or it was killed. If it is not running, "
        f"on_pending='retry' pays again; or mark it as lost, {command}, and run again."
    )


def patient(charge: Callable[P, T]) -> Callable[P, T]:
    """With `wait=True`, charge again as long as another process of this
    machine is at work on the release.
    """

    def waiting(*args: P.args, **options: P.kwargs) -> T:
        while True:
            try:
                return charge(*args, **options)
            except ReleasePending as pending:
                if not (options.get("wait") and pending.runs):
                    raise
            time.sleep(_PAUSE)

    return waiting
