"""All exceptions, in one tree. Messages name columns and parameters, never cells.

```
DpFrameError
├── InvalidArgument            a parameter that is wrong for every table (also a ValueError)
│   ├── InvalidPrice           ε, δ or ρ that is not a positive finite number in its range
│   ├── InvalidBounds          L > U, NaN, or bounds of the wrong kind
│   ├── WrongCall              arguments that do not fit a method (also a TypeError)
│   ├── UnwritableFile         a file cannot be written where it was asked for (also an OSError)
│   └── MissingFile            files that rows are read from are missing (also a FileNotFoundError)
├── SchemaError                the question does not fit the table's schema
│   ├── UnknownColumn          no such column (also a KeyError)
│   └── WrongType              the column's type cannot answer this (also a TypeError)
├── UnboundedContribution      no finite noise can hide one unit; says which limit to type
│   └── MissingBounds          a sum or mean of a column without bounds
├── PolicyExceeded             what was typed, or a price, is more than a policy file allows
├── DeltaRequired              keys that are not listed, or Gaussian noise, need a δ > 0
├── BudgetError
│   ├── BudgetRequired         neither budget= nor dp.set_budget(...) names a budget
│   ├── BudgetExceeded         the release costs more than is left in the budget
│   │   └── CapExceeded        the release costs more than a cap leaves
│   ├── BudgetMismatch         the budget is bound to another unit, relation or limit
│   ├── ReleaseMismatch        another release has this name; says what differs
│   ├── ReleasePending         a release of this name was charged, and its table is not stored yet
│   ├── ReleaseLost            a release was marked as lost while it ran, so its answer is not shown
│   ├── FailuresUnacknowledged releases failed after their charge, and nobody has acknowledged it
│   └── LedgerError            the ledger cannot be trusted or used, so nothing is released
│       ├── LedgerUnavailable  missing, read-only, full, busy, on a network drive
│       └── LedgerDamaged      replaced, put back from an older copy, or changed by hand
├── FrameworkError             parts of dpframe.theory that do not fit together
│   ├── DomainMismatch
│   └── MetricMismatch
├── UnknownAttribute           no such method or attribute (also an AttributeError)
├── UnsupportedOperation       an operation that cannot be private, or that this engine lacks
└── EngineError                the engine failed; its message is withheld, since it may show cells
    └── EngineUnavailable      the database does not answer; nothing was paid

DpFrameWarning                 a consequence that is easily overlooked (a UserWarning)
└── StoredAnswerWarning        the answer is stored, and may be about other rows
```
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from dpframe.safe_text import visible

__all__ = [
    "BudgetError",
    "BudgetExceeded",
    "BudgetMismatch",
    "BudgetRequired",
    "CapExceeded",
    "DeltaRequired",
    "DomainMismatch",
    "DpFrameError",
    "DpFrameWarning",
    "EngineError",
    "EngineUnavailable",
    "FailuresUnacknowledged",
    "FrameworkError",
    "InvalidArgument",
    "InvalidBounds",
    "InvalidPrice",
    "LedgerDamaged",
    "LedgerError",
    "LedgerUnavailable",
    "MetricMismatch",
    "MissingBounds",
    "MissingFile",
    "PolicyExceeded",
    "ReleaseLost",
    "ReleaseMismatch",
    "ReleasePending",
    "SchemaError",
    "StoredAnswerWarning",
    "UnboundedContribution",
    "UnknownAttribute",
    "UnknownColumn",
    "UnsupportedOperation",
    "UnwritableFile",
    "WrongCall",
    "WrongType",
    "kind_of",
]


def kind_of(value: object) -> str:
    """The type of a value, in words for a message that does not show the value.

    >>> kind_of(3), kind_of("x"), kind_of(None)
    ('an int', 'a str', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0].lower() in "aeio" else f"a {name}"


def said(value: object) -> str:
    """A text as it was typed; of another value its type, in words.

    >>> said("monthly"), said(3)
    ("'monthly'", 'an int')
    """
    return repr(value) if isinstance(value, str) else kind_of(value)


class DpFrameError(Exception):
    """The base class of all exceptions that dpframe raises on purpose."""

    def __str__(self) -> str:
        # Names may hold control characters. KeyError would show the repr of the message, in quotes.
        return visible(Exception.__str__(self), keep="\n")


class InvalidArgument(DpFrameError, ValueError):
    """A parameter that is wrong for every table."""


class InvalidPrice(InvalidArgument):
    """A price (ε, δ or ρ) that is not a finite number in its range."""


class InvalidBounds(InvalidArgument):
    """Bounds whose lower end is above the upper one, that contain a
    NaN, or that have the wrong type.
    """


class WrongCall(InvalidArgument, TypeError):
    """Arguments that do not fit a method: one is missing, has an
    unknown name, or is one too many.
    """


class UnwritableFile(InvalidArgument, OSError):
    """A file that cannot be written where it was asked for: its folder, its rights, or the disk.
    The answer stays.
    """


class MissingFile(InvalidArgument, FileNotFoundError):
    """The files that rows are read from are not there, or not yet. Nothing was paid."""


class SchemaError(DpFrameError):
    """The question does not fit the table's schema."""


class UnknownColumn(SchemaError, KeyError):
    """The table has no column of this name."""


class WrongType(SchemaError, TypeError):
    """The question does not apply to the column's type."""


class UnboundedContribution(DpFrameError):
    """One unit could change the answer without limit; the message names the limit to type."""


class MissingBounds(UnboundedContribution):
    """The question is a sum or a mean of a column without bounds."""


class PolicyExceeded(DpFrameError):
    """An argument, or the price of a release, that is more than a policy file allows."""


class DeltaRequired(DpFrameError):
    """The release needs a δ > 0 to be private."""


class BudgetError(DpFrameError):
    """The base class of errors about budgets and charges."""


class BudgetRequired(BudgetError):
    """The release names no budget, and no default budget is set."""


class BudgetExceeded(BudgetError):
    """The release costs more than is left in the budget; nothing was spent."""


class CapExceeded(BudgetExceeded):
    """The release costs more than a cap leaves; nothing was spent.

    `cap` names the first cap in the way, `spent` is what was spent under it, and `frees` is the
    time (UTC) at which it begins anew, or None.
    """

    def __init__(
        self, message: str, *, cap: str = "", spent: Any = None, frees: dt.datetime | None = None
    ) -> None:
        super().__init__(message)
        self.cap, self.spent, self.frees = cap, spent, frees


class BudgetMismatch(BudgetError):
    """The budget belongs to another unit, neighbour relation or kind of price."""


class ReleaseMismatch(BudgetError):
    """Another release, of another plan or price, has this name; nothing was spent."""


class ReleasePending(BudgetError):
    """A release of this name was charged, and its table is not stored:
    the release still runs, or it crashed.

    `runs` is whether the process that charged it runs, or None where this machine cannot tell.
    """

    def __init__(self, message: str, *, runs: bool | None = None) -> None:
        super().__init__(message)
        self.runs = runs


class ReleaseLost(BudgetError):
    """The release was marked as lost while it ran: its answer is neither stored nor shown."""


class FailuresUnacknowledged(BudgetError):
    """Releases failed after they were charged.
    Nothing more is charged until someone acknowledges it.

    A failure may depend on a row, so it may reveal something about that row.
    """


class LedgerError(BudgetError):
    """The file or database that holds the budget cannot be used."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached, read or written:
    it is missing, read-only, full, busy, or on a network drive.
    """


class LedgerDamaged(LedgerError):
    """The ledger was replaced, restored from an older copy, or changed by hand."""


class FrameworkError(DpFrameError):
    """Parts of `dpframe.theory` that do not fit together."""


class DomainMismatch(FrameworkError):
    """The output domain of one part is not the input domain of the next."""


class MetricMismatch(FrameworkError):
    """The output metric of one part is not the input metric of the next."""


class UnknownAttribute(DpFrameError, AttributeError):
    """There is no such method or attribute.
    The message names the method to use instead, or says why there is none.
    """


class UnsupportedOperation(DpFrameError):
    """The operation cannot be private, or this engine does not have it."""


class EngineError(DpFrameError):
    """The engine failed. Its own message is withheld because it may hold cells."""


class EngineUnavailable(EngineError):
    """The database does not answer, or the connection to it is lost. Nothing was paid."""


class DpFrameWarning(UserWarning):
    """The call succeeds, but with a consequence that is easily overlooked.
    The message says what to type instead.

    Examples: a budget with weak limits, computed keys or bounds, a released table without rows, a
              change to one of
    several marginals. A warning depends on the typed arguments and on released tables, never on
    unreleased rows.
    """


class StoredAnswerWarning(DpFrameWarning):
    """The name was released before, so the stored answer is given, and nothing says
    that the rows are those of then.

    Whatever the rows are, nothing was read or charged. `data=` of `dp.protect` says which rows a
    table has: then there is no warning, and a name of other rows is refused.
    `release(..., refresh=True)` pays for a new answer. A period of a series is not refused: the
    warning has both labels, and the line that corrects it.
    """
