"""A command of the command line: its words, its function, and what it says."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from dpframe.budget import Budget, Ledger, Loss, loss_json
from dpframe.errors import InvalidArgument

DAMAGED, BELOW = 1, 3  # exit codes
T = TypeVar("T")


class Said(NamedTuple):
    """Output of a command: for people, and as data with --json; and its exit code."""

    text: str
    data: Any
    code: int = 0


def add(verbs: Any, verb: str, about: str, run: Callable[[Any], Said]) -> argparse.ArgumentParser:
    """Add a command with the options that all commands have. `run` gets what was typed."""
    command: argparse.ArgumentParser = verbs.add_parser(verb, help=about, description=about)
    command.add_argument("--json", action="store_true", help="one line of JSON for programs")
    command.set_defaults(run=run)
    return command


def add_for_ledger(
    verbs: Any, verb: str, about: str, run: Callable[[Ledger, Any], Said]
) -> argparse.ArgumentParser:
    """Add a command about an open ledger."""

    def opened(asked: Any) -> Said:
        new = getattr(asked, "new_witness", False)
        ledger = Ledger(asked.path, witness=asked.witness, create=False, new_witness=new)
        try:
            return run(ledger, asked)
        finally:
            ledger.close()

    command = add(verbs, verb, about, opened)
    command.add_argument("path", help="the ledger's file, or its postgresql+psycopg:// URL")
    add_witness(command)
    return command


def add_witness(command: argparse.ArgumentParser) -> None:
    """Add the option of the witness."""
    command.add_argument("--witness", help="the witness's file, for a ledger that has one")


def typed(read: Callable[[str], T]) -> Callable[[str], T]:
    """A type of an option: what it cannot read was typed wrongly, and the command ends with 2."""

    def reading(text: str) -> T:
        try:
            return read(text)
        except InvalidArgument as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return reading


def percent(text: str) -> float:
    """A type of an option: a number of per cent from 0 to 100, such as 10%."""
    with suppress(ValueError):
        number = float(text.removesuffix("%"))
        if 0 <= number <= 100:
            return number
    raise argparse.ArgumentTypeError("give a number of per cent, such as 10%")


def positive(read: Callable[[str], float]) -> Callable[[str], float]:
    """A type of an option whose value is above 0: a floor of 0 would check nothing."""

    def reading(text: str) -> float:
        number = read(text)
        if number > 0:
            return number
        raise argparse.ArgumentTypeError("give a number above 0")

    reading.__name__ = read.__name__
    return reading


def the_budget(ledger: Ledger, asked: Any) -> str:
    """The name of the budget that a command is about.
    Errors: InvalidArgument where there are several.
    """
    names = ledger.budgets()
    if asked.budget is None and len(names) != 1:
        raise InvalidArgument(f"Say of which budget: --budget NAME, one of {', '.join(names)}.")
    if asked.budget not in (None, *names):
        raise InvalidArgument(
            f"There is no budget {asked.budget!r} in this ledger. It has "
            f"{', '.join(map(repr, names))}."
        )
    return str(asked.budget or names[0])


def the_budgets(ledger: Ledger, asked: Any) -> dict[str, Budget]:
    """The budgets that a command is about: the one that was named, or all.
    Errors: InvalidArgument.
    """
    names = ledger.budgets() if asked.budget is None else [the_budget(ledger, asked)]
    return {name: ledger.budget(name) for name in names}


def loss_data(loss: Loss | None) -> dict[str, float] | None:
    """A loss as numbers."""
    return None if loss is None else loss_json(loss)
