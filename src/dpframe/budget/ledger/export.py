"""Export of a ledger as text: JSON, lines of JSON, CSV, and the
events of Google's dp-accounting.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dpframe.budget.budget import Budget
from dpframe.budget.entries import Entry, canonical, loss_json, readable, statement_of
from dpframe.errors import InvalidArgument
from dpframe.fields import FieldDict, Fields
from dpframe.safe_text import for_spreadsheets

EVENTS = "dp_accounting.dp_event"
SAID = ("paid_by", "by", "purpose", "host", "process")
COLUMNS = (
    "budget",
    "number",
    "when",
    "name",
    "query",
    "epsilon",
    "delta",
    "rho",
    "status",
    "subject",
    "hash",
    *SAID,
)


def exported(books: Mapping[str, tuple[Budget, Sequence[Entry]]], form: str) -> str:
    """Budgets with their entries as text.

    Input:  books: by name, the budget and its entries; form: "json", "jsonl", "csv" or
            "dp_accounting"
    Errors: InvalidArgument for another form
    """
    match form:
        case "jsonl":
            lines = [
                {"budget": name, **line} for name, book in books.items() for line in _lines(*book)
            ]
            return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        case "json":
            return json.dumps(
                {name: _as_json(*book) for name, book in books.items()},
                indent=2,
                ensure_ascii=False,
            )
        case "csv":
            return _as_csv(books)
        case "dp_accounting":
            events = {name: _composed(*book) for name, book in books.items()}
            return json.dumps(events, indent=2, ensure_ascii=False)
    raise InvalidArgument(f"export({form!r}): choose 'json', 'jsonl', 'csv' or 'dp_accounting'.")


def read_since(typed: object) -> dt.datetime | None:
    """A time in UTC, which it is in where it has no zone; None for none.
    Errors: InvalidArgument.
    """
    if typed is None:
        return None
    with suppress(ValueError, OverflowError):
        time = dt.datetime.fromisoformat(typed) if isinstance(typed, str) else typed
        if isinstance(time, dt.datetime):
            return time.replace(tzinfo=time.tzinfo or dt.UTC).astimezone(dt.UTC)
    raise InvalidArgument(
        "export: since= is a time, in UTC where it has no zone: since='2026-01-31 06:00'."
    )


def _charges(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.is_charge]


def _as_json(budget: Budget, entries: Sequence[Entry]) -> FieldDict:
    return {
        "accountant": budget.accountant,
        "limit": loss_json(budget.limit),
        "spent": loss_json(budget.spent),
        "remaining": loss_json(budget.remaining),
        "entries": _lines(budget, entries),
    }


def _lines(budget: Budget, entries: Sequence[Entry]) -> list[FieldDict]:
    with readable(budget.name):
        return [_line(entry) for entry in entries]


def _line(entry: Entry) -> FieldDict:
    """An entry with the words of its statement, and its body as it is `sealed` by its hash."""
    statement = {"statement": statement_of(entry)} if "statement" in entry.body else {}
    return {
        "number": entry.number,
        "kind": entry.kind,
        "at": entry.at,
        **entry.body,
        **statement,
        "hash": entry.hash,
        "sealed": canonical(entry.body),
    }


def _as_csv(books: Mapping[str, tuple[Budget, Sequence[Entry]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, (budget, entries) in books.items():
        numbers = {entry.number: entry for entry in _charges(entries)}
        for charge in budget._lines(entries):
            entry = numbers[charge.number]
            cells = (
                charge.epsilon,
                charge.delta,
                "" if charge.rho is None else charge.rho,
                charge.status,
            )
            texts = (for_spreadsheets(charge.name or ""), for_spreadsheets(charge.query))
            row = (for_spreadsheets(name), charge.number, charge.when.isoformat(), *texts, *cells)
            said = (getattr(charge, name) for name in SAID)
            last = ("" if text is None else for_spreadsheets(str(text)) for text in said)
            writer.writerow(
                (*row, for_spreadsheets(entry.body.get("subject", "")), entry.hash, *last)
            )
    return text.getvalue()


def _composed(budget: Budget, entries: Sequence[Entry]) -> FieldDict:
    """Charges as one composed event, in the fields of dp-accounting's own named tuples."""
    with readable(budget.name):
        events = [event for charge in _charges(entries) for event in charge.body["events"]]
        return _event(
            "ComposedDpEvent", {"events": [_event(e["class_name"], e["fields"]) for e in events]}
        )


def _event(class_name: str, fields: Fields) -> FieldDict:
    return {"module_name": EVENTS, "class_name": class_name, **fields}
