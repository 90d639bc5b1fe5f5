"""`dpframe ledger backup|restore|adopt|migrate`: copies of a ledger."""

from __future__ import annotations

from typing import Any

from dpframe.budget import Ledger
from dpframe.budget.ledger import check_copy
from dpframe.cli.commands import Said, add, add_for_ledger, add_witness, loss_data, typed
from dpframe.errors import InvalidArgument
from dpframe.safe_text import visible


def add_to(verbs: Any) -> None:
    """Add the commands of this file."""
    about = "copy a ledger while it is used, and verify the copy; nothing is charged to a backup"
    backup = add_for_ledger(verbs, "backup", about, _backup)
    backup.add_argument("target", help="a new file, or the URL of an empty database")
    check = add(verbs, "check", "verify a backup, or a ledger that was moved", _check)
    check.add_argument("path", help="its file or URL")
    restore = add(
        verbs, "restore", "put a backup where there is no ledger, and go on from it", _restore
    )
    restore.add_argument("backup", help="its file or URL")
    restore.add_argument("target", help="a new file, or the URL of an empty database")
    adopt = add(
        verbs,
        "adopt",
        "go on from a copy that is not the latest one, in the place where it is",
        _adopt,
    )
    adopt.add_argument("path", help="the copy's file or URL")
    for command in (restore, adopt):
        command.add_argument("--by", required=True, help="who decides it")
        command.add_argument("--why", required=True, help="why; the ledger records it")
        command.add_argument(
            "--lost",
            action="append",
            type=_lost_of,
            metavar="BUDGET=EPSILON[,DELTA[,RHO]]|all|none",
            help="what the releases since that copy cost (ρ for a budget in ρ), once for each "
            "budget",
        )
        add_witness(command)
    about = "move a ledger to another place, such as from a file to PostgreSQL, while it is used"
    migrate = add(verbs, "migrate", about, _migrate)
    migrate.add_argument("source", help="the ledger's file or URL")
    migrate.add_argument("target", help="a new file, or the URL of an empty database")
    add_witness(migrate)


def _numbers(words: str, numbers: dict[str, int]) -> Said:
    lines = [f"{visible(name)}: {number} entries" for name, number in numbers.items()]
    return Said("\n".join([words, *lines]), {"entries": numbers})


def _backup(ledger: Ledger, asked: Any) -> Said:
    return _numbers("Copied and verified.", ledger.backup(asked.target))


def _check(asked: Any) -> Said:
    return _numbers("All as it was written.", check_copy(asked.path))


def _migrate(asked: Any) -> Said:
    numbers = Ledger.migrate(asked.source, asked.target, witness=asked.witness)
    return _numbers("Moved and verified. The old ledger is set aside; open the new one.", numbers)


def _restore(asked: Any) -> Said:
    said = {"by": asked.by, "why": asked.why, "lost": _lost(asked.lost), "witness": asked.witness}
    return _adopted(Ledger.restore(asked.backup, asked.target, **said))


def _adopt(asked: Any) -> Said:
    said = {"by": asked.by, "why": asked.why, "lost": _lost(asked.lost), "witness": asked.witness}
    return _adopted(Ledger.adopt(asked.path, **said))


def _adopted(ledger: Ledger) -> Said:
    budgets = {name: ledger.budget(name) for name in ledger.budgets()}
    ledger.close()
    lines = [
        f"{visible(name)}: {budget.spent} spent, {budget.remaining} left"
        for name, budget in budgets.items()
    ]
    data = {
        name: {"spent": loss_data(b.spent), "remaining": loss_data(b.remaining)}
        for name, b in budgets.items()
    }
    return Said("\n".join(["The ledger goes on.", *lines]), {"budgets": data})


@typed
def _lost_of(text: str) -> tuple[str, Any]:
    """The typed losses: "all" or "none", or the name of a budget and its numbers.
    Errors: InvalidArgument.
    """
    if text in ("all", "none"):
        return text, None
    name, _, numbers = text.rpartition("=")
    try:
        lost = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        lost, name = (), ""
    if not name:
        raise InvalidArgument(
            "type --lost BUDGET=EPSILON once for each budget, --lost all or --lost none"
        )
    return name, lost


def _lost(items: list[tuple[str, Any]] | None) -> Any:
    """Nothing, "all", "none", or numbers by the names of budgets. Errors: InvalidArgument."""
    if items is None or (len(items) == 1 and items[0][1] is None):
        return None if items is None else items[0][0]
    lost = dict(items)
    if len(lost) < len(items) or None in lost.values():
        raise InvalidArgument(
            "--lost: type --lost BUDGET=EPSILON once for each budget, --lost all or --lost none."
        )
    return lost
