"""The part of a budget that may still be spent, with what its open parts
have left, and that of each part.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction

from dpframe.budget import account
from dpframe.budget.allowance.pace import AllowanceRecord
from dpframe.budget.entries import Entry, price_of, readable
from dpframe.budget.losses import Loss


def per_cent_left(budget: account.BudgetAccount) -> dict[str | None, float]:
    """The part of the ε or ρ that may still be spent (per cent):
    of the budget, under None, and of its parts by name.

    What an open part has left is not spent yet, so it counts for the budget too. Parts that are
    closed, that gave all away, or that are divided into nights are not named: nights have what they
    have, and end as they were planned.
    """
    at, whole = account.now(), _size(budget.remaining, budget.limit)
    parts: dict[str | None, float] = {}
    with readable(budget.name):
        for record in _records(budget):
            left = _later(record, at)
            whole += _ratio(left, record.pace.limit) * _size(
                price_of(record.opening.body), budget.limit
            )
            if record.pace.endless and record.closed is None and record.limit.exact_size:
                parts[record.opening.name] = 100 * float(_ratio(left, record.limit))
    return {None: 100 * float(whole / _size(budget.limit, budget.limit)), **parts}


def _records(budget: account.BudgetAccount) -> Iterator[AllowanceRecord]:
    """Each allowance of a budget, with its entries."""
    under: dict[int, tuple[Entry, list[Entry]]] = {}
    for entry in budget.one_by_one():
        if entry.allowance is not None:
            under[entry.number] = entry, []
        elif entry.about in under and entry.is_member_of(entry.about):
            under[entry.about][1].append(entry)
            if entry.opens is not None:  # a series, whose periods are paid from it too
                under[entry.number] = under[entry.about]
    return (AllowanceRecord.of(*own) for number, own in under.items() if own[0].number == number)


def _later(record: AllowanceRecord, at: dt.datetime) -> Loss:
    """The loss that may still be spent in this night and in all later ones."""
    pace, night = record.pace, record.pace.night(at)
    if pace.carry or record.closed is not None:
        return record.left(max(night, pace.nights - 1))
    later = max(pace.nights - max(night + 1, 0), 0)
    return record.left(night) + pace.limit.share(Fraction(later, pace.nights))


def _size(loss: Loss, limit: Loss) -> Fraction:
    """The ε or ρ of a loss, as its limit counts."""
    return loss.exact_epsilon if limit.exact_rho is None else loss.exact_size


def _ratio(loss: Loss, limit: Loss) -> Fraction:
    """The part of a limit, in its ε or ρ."""
    return loss.exact_size / limit.exact_size if limit.exact_size else Fraction(0)
