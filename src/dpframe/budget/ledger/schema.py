"""The tables of a ledger as SQLAlchemy tables, for SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

# The version of these tables and of the numbers in them. A ledger of a later format is refused, and
# of an earlier one than EARLIEST. 4: SQLite without a write-ahead log, the id of the witness, the
# time of the last entry. 5: caps and spenders. A negative format is that of a ledger that is set
# aside, a backup or one that was moved: nothing is charged to it, and versions of dpframe that do
# not know this refuse it too.
FORMAT, EARLIEST = 5, 3

# In an entry of a copy that was adopted without a witness: budgets that were made after it are not
# known here.
UNWATCHED = {"unwatched": True}

METADATA = sa.MetaData()


def _needed(
    name: str, kind: type[sa.types.TypeEngine[Any]] = sa.Text, **more: str
) -> sa.Column[Any]:
    """A column that every row has a value in."""
    return sa.Column(name, kind, nullable=False, **more)  # type: ignore[arg-type]


LEDGER = sa.Table(
    "dpframe_ledger",
    METADATA,
    sa.Column("one", sa.Integer, primary_key=True),  # a single row
    _needed("id"),
    _needed("format", sa.Integer),
    _needed("witnessed", sa.Boolean),
    sa.Column("witness", sa.Text),  # the id of its witness
)

# The current state of each budget. It follows from the budget's entries; its row is locked while an
# entry is added.
BUDGETS = sa.Table(
    "dpframe_budgets",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    _needed("accountant"),
    _needed("allowed"),  # exact fractions, as JSON
    _needed("spent"),
    sa.Column("subject", sa.Text),
    _needed("parts"),  # of partitions, as JSON
    _needed("number", sa.Integer),
    _needed("head"),
    _needed("at"),
    _needed("failures", sa.Integer, server_default="0"),  # releases that failed after the charge
    _needed("acknowledged", sa.Integer, server_default="0"),  # failures that were acknowledged
    sa.Column("caps", sa.Text),  # caps and what is spent of them, as JSON
)

ENTRIES = sa.Table(
    "dpframe_entries",
    METADATA,
    sa.Column("budget", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    _needed("kind"),
    _needed("at"),
    _needed("body"),  # canonical JSON
    _needed("hash"),
    sa.Column("name", sa.Text),  # of a charge, for look-up
    sa.Column("about", sa.Integer),  # the charge of a result or a failure, for look-up
    sa.Column("spender", sa.Text),  # of a charge, for look-up
    sa.Index("dpframe_entries_name", "budget", "name"),
    sa.Index("dpframe_entries_about", "budget", "about"),
    sa.Index("dpframe_entries_spender", "budget", "spender", "number"),
)

# Kinds of entries that queries look for
RESULTS, MOVED = (ENTRIES.c.kind == kind for kind in ("result", "moved"))

DATA = sa.Table(
    "dpframe_data",
    METADATA,
    sa.Column("budget", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    _needed("data", sa.LargeBinary),  # Arrow IPC
)
