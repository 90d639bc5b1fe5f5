"""From typed words to a command, and from what it says to text or JSON and an exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from dpframe.cli import copy_commands, file_commands, ledger_commands
from dpframe.cli.commands import DAMAGED, Said
from dpframe.errors import DpFrameError
from dpframe.safe_text import visible

CODES = (
    "Exit codes: 0 it went well; 1 refused, damaged or unusable; 2 wrongly typed; 3 below what "
    "--warn-below names, or a certificate of a kind that is not covered."
)


def entry() -> int:
    """The console script `dpframe`: a reader that goes away, as `| head` does, is no error."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # so that nothing fails when it is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Output: the exit code."""
    asked = _parser().parse_args(arguments)
    problem, said = None, Said("", None)
    try:
        said = asked.run(asked)
    except DpFrameError as error:
        problem = error
    if problem is not None:
        print(visible(str(problem), keep="\n"), file=sys.stderr)
        said = Said("", {"error": type(problem).__name__, "message": str(problem)}, DAMAGED)
    if asked.json:
        print(json.dumps(said.data, ensure_ascii=False, default=str))
    elif problem is None:
        print(visible(said.text, keep="\n"))
    return said.code


def _parser() -> argparse.ArgumentParser:
    about = "Look after the ledgers, policy files and certificates of dpframe."
    parser = argparse.ArgumentParser(prog="dpframe", description=about, epilog=CODES)
    parser.add_argument(
        "--version", action="version", version=f"dpframe {metadata.version('dpframe')}"
    )
    rooms = parser.add_subparsers(dest="room", metavar="ledger|policy|check", required=True)
    verbs = rooms.add_parser(
        "ledger", help="budgets that survive restarts", epilog=CODES
    ).add_subparsers(dest="verb", required=True)
    ledger_commands.add_to(verbs)
    copy_commands.add_to(verbs)
    room = rooms.add_parser(
        "policy", help="files of limits that no analyst may weaken", epilog=CODES
    )
    file_commands.add_policy(room.add_subparsers(dest="verb", required=True))
    file_commands.add_check(rooms)
    return parser
