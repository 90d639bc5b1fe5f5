"""`dpframe check`: the checker of certificates, which is the file `dpframe/dpframe_check.py` itself."""

from __future__ import annotations

from typing import Any

from dpframe import dpframe_check
from dpframe.cli.commands import Said, add


def add_to(rooms: Any) -> None:
    """Add the command of this file."""
    command = add(rooms, "check", "a certificate, by the checker that shares no code with dpframe", _check)
    command.add_argument("certificate", help="what release.certificate() gives, as a JSON file")
    command.add_argument("--ledger", help="what ledger.export('json') gives, as a file")
    command.add_argument("--table", help="the released table as a CSV file")


def _check(asked: Any) -> Said:
    """The verdict, and the exit code of the checker; 2 if a file cannot be read."""
    try:
        check = dpframe_check.read(asked.certificate, asked.ledger, asked.table)
    except dpframe_check.UNREADABLE as error:
        return Said(f"cannot be read: {error}", {"verdict": None, "message": str(error)}, 2)
    data = {"verdict": check.verdict, "refused": check.refused, "unknown": check.unknown, "derived": check.derived}
    return Said(check.text, data, dpframe_check.CODES[check.verdict])
