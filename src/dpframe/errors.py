"""Every exception, in one tree. Messages name columns and parameters, never cells.

```
DpFrameError
├── InvalidArgument            a parameter that can never be right (also a ValueError)
│   ├── InvalidPrice           ε, δ or ρ that is not a positive finite number in its range
│   ├── InvalidBounds          L > U, NaN, or bounds of the wrong kind
│   └── WrongCall              arguments that do not fit a question; says what to type (also a TypeError)
├── SchemaError                the question does not fit the table's schema
│   ├── UnknownColumn          no such column (also a KeyError)
│   └── WrongType              the column's type cannot answer this (also a TypeError)
├── UnboundedContribution      no finite noise can hide one unit; says which limit to type
│   └── MissingBounds          a sum or mean of a column without bounds
├── DeltaRequired              keys nobody listed, or Gaussian noise, need a δ > 0
├── BudgetError
│   ├── BudgetRequired         neither budget= nor dp.set_budget(...)
│   ├── BudgetExceeded         the release costs more than is left
│   ├── BudgetMismatch         the budget is bound to another unit, relation or limit
│   ├── ReleaseMismatch        a name stands for another release; says what differs
│   ├── ReleasePending         a release of this name was charged and its table was never stored
│   ├── ReleaseLost            a release was marked as lost while it ran, so its answer is not shown
│   ├── FailuresUnacknowledged releases failed after they were charged, and nobody has said to go on
│   └── LedgerError            the ledger cannot be trusted or used, so nothing is released
│       ├── LedgerUnavailable  missing, read-only, full, busy, on a network drive
│       └── LedgerDamaged      replaced, put back from an older copy, or changed by hand
├── FrameworkError             dpframe.theory: parts that do not fit together
│   ├── DomainMismatch
│   └── MetricMismatch
├── UnknownAttribute           no such method or attribute; says what to type (also an AttributeError)
├── UnsupportedOperation       what cannot be done privately, or not on this engine
└── EngineError                the engine failed; its own words are withheld, they can hold cells

DpFrameWarning                 nothing is refused, and something about it is easily overlooked (a UserWarning)
```
"""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "BudgetExceeded",
    "BudgetMismatch",
    "BudgetRequired",
    "DeltaRequired",
    "DomainMismatch",
    "DpFrameError",
    "DpFrameWarning",
    "EngineError",
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
    "ReleaseLost",
    "ReleaseMismatch",
    "ReleasePending",
    "SchemaError",
    "UnboundedContribution",
    "UnknownAttribute",
    "UnknownColumn",
    "UnsupportedOperation",
    "WrongCall",
    "WrongType",
    "kind_of",
]


def kind_of(value: object) -> str:
    """What a value is, for a message that does not show it.

    >>> kind_of(3), kind_of("x"), kind_of(None)
    ('an int', 'a str', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0].lower() in "aeio" else f"a {name}"


class DpFrameError(Exception):
    """The root: everything that dpframe raises on purpose."""


class InvalidArgument(DpFrameError, ValueError):
    """A parameter that can never be right, whatever the table."""


class InvalidPrice(InvalidArgument):
    """A price (ε, δ or ρ) that is not a finite number in its range."""


class InvalidBounds(InvalidArgument):
    """Bounds with L > U, with a NaN, or of the wrong kind."""


class WrongCall(InvalidArgument, TypeError):
    """Arguments that do not fit a question: one is missing, is not known, or is one too many."""


class SchemaError(DpFrameError):
    """The question does not fit the table's schema."""


class UnknownColumn(SchemaError, KeyError):
    """No such column."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence should read as a sentence.
        return Exception.__str__(self)


class WrongType(SchemaError, TypeError):
    """The column's type cannot answer this question."""


class UnboundedContribution(DpFrameError):
    """One unit could change the answer without limit; the message names the limit to type."""


class MissingBounds(UnboundedContribution):
    """A sum or a mean was asked of a column whose values have no bounds."""


class DeltaRequired(DpFrameError):
    """The release can only be private with some δ > 0."""


class BudgetError(DpFrameError):
    """Everything about paying."""


class BudgetRequired(BudgetError):
    """No budget was named for this release."""


class BudgetExceeded(BudgetError):
    """The release costs more than the budget has left; nothing was spent."""


class BudgetMismatch(BudgetError):
    """The budget serves another unit, neighbour relation or kind of price."""


class ReleaseMismatch(BudgetError):
    """The name stands for a release of another plan or price; nothing was spent."""


class ReleasePending(BudgetError):
    """A release of this name was charged, and its table is not stored: it runs elsewhere, or it crashed."""


class ReleaseLost(BudgetError):
    """The release was marked as lost while it ran: its answer is not stored, and nobody sees it."""


class FailuresUnacknowledged(BudgetError):
    """Releases failed after they were charged, which may depend on a row; nothing more is charged until it is said."""


class LedgerError(BudgetError):
    """The ledger that keeps the budget cannot be used as it is."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached, read or written: missing, read-only, full, busy, or on a network drive."""


class LedgerDamaged(LedgerError):
    """The ledger is not the one it was: replaced, put back from an older copy, or changed by hand."""


class FrameworkError(DpFrameError):
    """Parts of `dpframe.theory` that do not fit together."""


class DomainMismatch(FrameworkError):
    """The output domain of one part is not the input domain of the next."""


class MetricMismatch(FrameworkError):
    """The output metric of one part is not the input metric of the next."""


class UnknownAttribute(DpFrameError, AttributeError):
    """No such method or attribute; what other libraries call so has another name here, or cannot be."""


class UnsupportedOperation(DpFrameError):
    """It cannot be done privately, or this engine cannot do it."""


class EngineError(DpFrameError):
    """The engine failed. Its own message is withheld because it may hold cells."""


class DpFrameWarning(UserWarning):
    """Nothing is refused, and something about it is easily overlooked; the message says what to type instead.

    Weak limits of a budget, keys and bounds that were computed, a released table without rows, one of several marginals
    that is changed by itself. It depends on what was typed and on what was released, never on rows that were not.
    """
