"""`dpframe policy check|new`, files of limits, and `dpframe check`, certificates.

The checker of certificates is the file `dpframe/dpframe_check.py` itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpframe import dpframe_check
from dpframe.audit.steward import check, described, draft, drifted, read_table, rows_of
from dpframe.cli.commands import DAMAGED, Said, add, percent, positive
from dpframe.plan import render_text
from dpframe.plan.policy import Policy
from dpframe.safe_text import visible


def add_policy(verbs: Any) -> None:
    """Add the commands about policy files."""
    about = "for the steward alone, without noise: what the data do beyond a policy file"
    check_it = add(verbs, "check", about, _check)
    check_it.add_argument("policy", help="the policy file, TOML")
    about = "end with 1 if fewer rows than this have a unit"
    check_it.add_argument("--min-rows", type=positive(int), default=0, metavar="ROWS", help=about)
    for what, words in (
        ("unlisted", "keys are not listed"),
        ("clipped", "values are beyond its bounds"),
    ):
        about = f"end with 1 if more of a column's {words}, such as 5%%"
        check_it.add_argument(f"--max-{what}", type=percent, metavar="PERCENT", help=about)
    about = (
        "an earlier table: end with 1 if one of its columns is missing or has another type, as a "
        "unit that became text"
    )
    check_it.add_argument("--like", metavar="TABLE", help=about)
    show_it = add(
        verbs,
        "show",
        "what policy files say, entry by entry: for people, or with --json for a catalogue",
        _show,
    )
    show_it.add_argument("policies", nargs="+", metavar="policy", help="policy files, TOML")
    about = (
        "a first draft of a policy file, from the names and types of a table's columns; no value "
        "is read"
    )
    for command in (check_it, add(verbs, "new", about, _new)):
        command.add_argument("table", help="a CSV or Parquet file")


def _check(asked: Any) -> Said:
    """Findings about data beside a policy file; 1 if the table cannot be used
    with it, or is too far from it.
    """
    table = read_table(Path(asked.table))
    policy = Policy(asked.policy)
    lines, usable = check(
        policy, table, {"unlisted": asked.max_unlisted, "clipped": asked.max_clipped}
    )
    errors = (
        list(drifted(table, read_table(Path(asked.like)).schema)) if asked.like is not None else []
    )
    rows = rows_of(policy, table)
    if rows < asked.min_rows:
        errors.append(f"ERROR {rows:,} rows have a unit, fewer than --min-rows {asked.min_rows:,}")
    lines, usable = [*lines, *errors], usable and not errors
    return Said("\n".join(lines), {"lines": lines, "usable": usable}, 0 if usable else DAMAGED)


def _show(asked: Any) -> Said:
    """The content of each file, entry by entry."""
    data, texts = [], []
    for policy in map(Policy, asked.policies):
        said = [line._asdict() for line in described(policy)]
        data.append({"file": policy.name, "sha256": policy.sha256, "entries": said})
        rows = [[visible(str(cell)) for cell in line] for line in described(policy)]
        table = render_text(["entry", "value", "a call may", "because"], rows)
        texts.append(f"{visible(policy.name)}, sha256 {policy.sha256[:12]}\n{table}")
    return Said("\n\n".join(texts), {"policies": data})


def _new(asked: Any) -> Said:
    table = Path(asked.table)
    text = draft(table.name, read_table(table, rows=False)).rstrip("\n")
    return Said(text, {"policy": text})


def add_check(rooms: Any) -> None:
    """Add the checker of certificates."""
    command = add(
        rooms, "check", "a certificate, by the checker that shares no code with dpframe", _checked
    )
    command.add_argument("certificate", help="what release.certificate() gives, as a JSON file")
    command.add_argument("--ledger", help="what ledger.export('json') gives, as a file")
    command.add_argument("--table", help="the released table as a CSV file")


def _checked(asked: Any) -> Said:
    """The verdict, and the exit code of the checker; 2 if a file cannot be read."""
    try:
        check = dpframe_check.read(asked.certificate, asked.ledger, asked.table)
    except dpframe_check.UNREADABLE as error:
        return Said(f"cannot be read: {error}", {"verdict": None, "message": str(error)}, 2)
    data = {
        "verdict": check.verdict,
        "refused": check.refused,
        "unknown": check.unknown,
        "derived": check.derived,
    }
    return Said(check.text, data, dpframe_check.CODES[check.verdict])
