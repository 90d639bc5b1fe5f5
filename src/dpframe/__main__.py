"""`dpframe ledger show|verify|export|report|forecast|resolve PATH`, `dpframe policy check|new`: the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from dpframe.audit.steward import check, draft, read_table
from dpframe.budget import Budget, Ledger, Terms
from dpframe.errors import DpFrameError, InvalidArgument
from dpframe.plan import render_text
from dpframe.plan.policy import Policy
from dpframe.release.shown import cap_words, charge_rows, ledger_page
from dpframe.safe_text import visible


def entry() -> int:
    """The console script `dpframe`: a reader that goes away, as `| head` does, is no error."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that nothing fails when it is closed
        return 0
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it went well, 1 when the ledger is damaged or cannot be opened."""
    asked = _parser().parse_args(arguments)
    if asked.room == "policy":
        return _policy(asked)
    verbs = {
        "show": _show,
        "verify": _verify,
        "export": _export,
        "report": _report,
        "forecast": _forecast,
        "resolve": _resolve,
    }
    try:
        ledger = Ledger(asked.path, witness=asked.witness, create=False)
        text = verbs[asked.verb](ledger, asked)
        ledger.close()
    except DpFrameError as error:
        print(error, file=sys.stderr)
        return 1
    print(visible(text, keep="\n"))
    return 0


def _policy(asked: Any) -> int:
    """What the data do beyond a policy file, or a draft of one; 1 if the file cannot be used with the table."""
    try:
        table, usable = Path(asked.table), True
        if asked.verb == "new":
            text = draft(table.name, read_table(table, rows=False)).rstrip("\n")
        else:
            lines, usable = check(Policy(asked.policy), read_table(table))
            text = "\n".join(lines)
    except DpFrameError as error:
        print(error, file=sys.stderr)
        return 1
    print(visible(text, keep="\n"))
    return 0 if usable else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dpframe", description="Look after the ledgers and policy files of dpframe.")
    parser.add_argument("--version", action="version", version=f"dpframe {metadata.version('dpframe')}")
    rooms = parser.add_subparsers(dest="room", metavar="ledger|policy", required=True)
    room = rooms.add_parser("ledger", help="budgets that survive restarts")
    verbs = room.add_subparsers(dest="verb", metavar="show|verify|export|report|forecast|resolve", required=True)
    for verb, about in (
        ("show", "budgets, what was spent and what is left, and every charge"),
        ("verify", "go over every entry: hashes, sums, limits, stored tables, the witness"),
        ("export", "everything as JSON, CSV or dp-accounting events"),
        ("report", "one HTML page: budgets, what was spent when and on what, what is left, forecasts"),
        ("forecast", "how long each budget lasts"),
        ("resolve", "mark a release that was killed as lost, so that its name may be paid again"),
    ):
        command = verbs.add_parser(verb, help=about, description=about)
        command.add_argument("path", help="the ledger's file, or its postgresql+psycopg:// URL")
        command.add_argument("--witness", help="the witness's file, for a ledger that has one")
        if verb == "export":
            command.add_argument("--format", choices=["json", "csv", "dp_accounting"], default="json")
        if verb == "report":
            command.add_argument("--html", metavar="FILE", help="where the page is written; by default it is printed")
        if verb == "resolve":
            command.add_argument("release", help="the name of the release, or the number of its charge")
            command.add_argument("--budget", help="the name of the budget, where the ledger has several")
            command.add_argument("--by", help="who marks it as lost; by default the user of this machine")
    _add_policy(rooms.add_parser("policy", help="files of limits that no analyst may weaken"))
    return parser


def _add_policy(room: argparse.ArgumentParser) -> None:
    verbs = room.add_subparsers(dest="verb", metavar="check|new", required=True)
    about = "for the steward alone, without noise: what the data do beyond a policy file"
    check_it = verbs.add_parser("check", help=about, description=about)
    check_it.add_argument("policy", help="the policy file, TOML")
    about = "a first draft of a policy file, from the names and types of a table's columns; no value is read"
    for command in (check_it, verbs.add_parser("new", help=about, description=about)):
        command.add_argument("table", help="a CSV or Parquet file")


def _show(ledger: Ledger, _: Any) -> str:
    parts = [_budget(name, ledger.budget(name)) for name in ledger.budgets()]
    return "\n\n".join(parts) if parts else "No budget has been made in this ledger."


def _budget(name: str, budget: Budget) -> str:
    title = f"{visible(name)}: {budget.spent} spent of {budget.limit}, {budget.remaining} left"
    title += f"; accountant {budget.accountant}"
    title += f"\n{budget.standing.words}" if budget.terms is Terms.EITHER else ""
    failed, unacknowledged = budget.failures
    if failed:
        title += f"\n{failed} failed after the charge, {unacknowledged} not acknowledged"
    title = "\n".join([title, *cap_words(budget)])
    header, rows = charge_rows(budget.history())
    return f"{title}\n{render_text(header, rows)}" if rows else title


def _verify(ledger: Ledger, _: Any) -> str:
    lines = [f"{visible(name)}: {count} entries, all as they were written" for name, count in ledger.verify().items()]
    return "\n".join(lines) or "No budget has been made in this ledger."


def _export(ledger: Ledger, asked: Any) -> str:
    return ledger.export(asked.format).rstrip("\n")


def _report(ledger: Ledger, asked: Any) -> str:
    page = ledger_page(ledger)
    if asked.html is None:
        return page.rstrip("\n")
    Path(asked.html).write_text(page, encoding="utf-8")
    return f"{asked.html}: {', '.join(map(visible, ledger.budgets())) or 'no budget'}"


def _forecast(ledger: Ledger, _: Any) -> str:
    return "\n\n".join(f"{visible(name)}\n{ledger.budget(name).forecast()!r}" for name in ledger.budgets())


def _resolve(ledger: Ledger, asked: Any) -> str:
    names = ledger.budgets()
    if asked.budget is None and len(names) != 1:
        raise InvalidArgument(f"Say of which budget: --budget NAME, one of {', '.join(names)}.")
    release = int(asked.release) if asked.release.isdecimal() else asked.release
    line = ledger.resolve(asked.budget or names[0], release, asked.by)
    title = f"#{line.number} {visible(line.name or line.query)}"
    return f"{title} is marked as lost; its charge stays, and its name may be paid again."


if __name__ == "__main__":
    sys.exit(entry())
