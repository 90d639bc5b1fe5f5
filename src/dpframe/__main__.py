"""`python -m dpframe ledger show|verify|export PATH`: a ledger on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from dpframe.budget import Budget, Ledger
from dpframe.errors import DpFrameError
from dpframe.plan import render_text

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when it went well, 1 when the ledger is damaged or cannot be opened."""
    asked = _parser().parse_args(arguments)
    try:
        ledger = Ledger(asked.path, witness=asked.witness, create=False)
        text = {"show": _show, "verify": _verify, "export": _export}[asked.verb](ledger, asked)
        ledger.close()
    except DpFrameError as error:
        print(error, file=sys.stderr)
        return 1
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dpframe", description="Look after the ledgers of dpframe.")
    rooms = parser.add_subparsers(dest="room", metavar="ledger", required=True)
    room = rooms.add_parser("ledger", help="budgets that survive restarts")
    verbs = room.add_subparsers(dest="verb", metavar="show|verify|export", required=True)
    for verb, about in (
        ("show", "budgets, what was spent and what is left, and every charge"),
        ("verify", "go over every entry: hashes, sums, limits, stored tables, the witness"),
        ("export", "everything as JSON, CSV or dp-accounting events"),
    ):
        command = verbs.add_parser(verb, help=about, description=about)
        command.add_argument("path", help="the ledger's file, or its postgresql+psycopg:// URL")
        command.add_argument("--witness", help="the witness's file, for a ledger that has one")
        if verb == "export":
            command.add_argument("--format", choices=["json", "csv", "dp_accounting"], default="json")
    return parser


def _show(ledger: Ledger, _: Any) -> str:
    parts = [_budget(name, ledger.budget(name)) for name in ledger.budgets()]
    return "\n\n".join(parts) if parts else "No budget has been made in this ledger."


def _budget(name: str, budget: Budget) -> str:
    title = f"{name}: {budget.spent} spent of {budget.limit}, {budget.remaining} left; accountant {budget.accountant}"
    failed, unacknowledged = budget.failures
    if failed:
        title += f"\n{failed} failed after the charge, {unacknowledged} not acknowledged"
    rows = [
        (str(c.number), f"{c.when:%Y-%m-%d %H:%M:%S}", _price(c), c.status, c.name or "", c.query)
        for c in budget.history()
    ]
    return f"{title}\n{render_text(('#', 'when (UTC)', 'price', 'status', 'name', 'release'), rows)}" if rows else title


def _price(charge: Any) -> str:
    main = f"ε = {charge.epsilon:g}" if charge.rho is None else f"ρ = {charge.rho:g}"
    return main + (f", δ = {charge.delta:g}" if charge.delta else "")


def _verify(ledger: Ledger, _: Any) -> str:
    lines = [f"{name}: {count} entries, all as they were written" for name, count in ledger.verify().items()]
    return "\n".join(lines) or "No budget has been made in this ledger."


def _export(ledger: Ledger, asked: Any) -> str:
    return ledger.export(asked.format).rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
