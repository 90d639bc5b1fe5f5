"""Moves of losses from an allowance: to another one of the same budget, or back
to the budget when it is closed.

A move is two entries of one transaction: a charge within the allowance that gives, and a transfer
to the one that receives or to the budget. Versions of dpframe that do not know transfers spend less
by the first and ignore the second. Only of a closed allowance with nights they would spend what
later nights have, so the page about upgrades says that all who charge a ledger have this version
before an allowance is closed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.budget import account
from dpframe.budget.allowance.pace import AllowanceRecord
from dpframe.budget.caps import enter
from dpframe.budget.entries import Entry, price_of, texts_of
from dpframe.budget.losses import Loss, Terms, read_delta, read_epsilon, read_rho
from dpframe.budget.names import body_of
from dpframe.budget.parts import Share, moved
from dpframe.budget.receipts import Page
from dpframe.errors import (
    BudgetExceeded,
    BudgetMismatch,
    InvalidArgument,
    InvalidPrice,
    UnsupportedOperation,
)


def holder_of(opening: Entry, role: str | None) -> str | None:
    """Who took an allowance, if that was said.
    Input: role: who the database says is here, if it does.

    Errors: BudgetMismatch if it is somebody else
    """
    holder = opening.spender
    if role is not None and holder is not None and holder != role:
        raise BudgetMismatch(
            f"This allowance is that of {holder!r}, and the database says that {role!r} spends "
            "here. Nothing was spent. Spend from your own one, or let its holder transfer a part: "
            "allowance.transfer('...', epsilon=0.1)."
        )
    return holder


def move(
    budget: account.BudgetAccount,
    one: Entry,
    other: Entry,
    *,
    epsilon: object,
    delta: object,
    rho: object,
) -> Loss:
    """Move a part of one allowance to another; see `Allowance.transfer`."""
    if one.number == other.number:
        raise InvalidArgument("transfer: this is the same allowance.")
    with budget._book.write() as page:
        at, giving, receiving = (
            account.now(),
            AllowanceRecord.on(page, one),
            AllowanceRecord.on(page, other),
        )
        amount = _read(giving, epsilon, delta, rho)
        giving.check(amount, giving.pace.night(at), "The transfer takes")
        night = receiving.pace.night(at)
        if (
            receiving.closed is not None
            or night < 0
            or (night >= receiving.pace.nights and not receiving.pace.carry)
        ):
            raise UnsupportedOperation(
                "transfer: nothing can be spent from the other allowance now: it is closed, has "
                "not begun, or is over."
            )
        change, _, _ = moved(_share(budget, giving), _share(budget, receiving), amount)
        if not budget._accountant.allows(page.spent + change, budget._limit):
            raise BudgetExceeded(
                "transfer: the account of this budget counts more for one large part than for two "
                "small ones, and that is not left. Nothing was moved."
            )
        held = {} if one.spender == other.spender else _held(other)
        within = {"loss": texts_of(amount), "night": night, **held}
        receives = {"about": other.number, "within": within, **_spender(other)}
        _move(budget, page, giving, amount, receives, change)
    return amount


def close(budget: account.BudgetAccount, opening: Entry) -> Loss:
    """End an allowance; see `Allowance.close`."""
    with budget._book.write() as page:
        record = AllowanceRecord.on(page, opening)
        if record.closed is not None:
            raise UnsupportedOperation(
                f"close: it was closed at {record.closed:%Y-%m-%d %H:%M} UTC."
            )
        share = _share(budget, record)
        change, amount = share.closed(page.spent), record.limit - record.spent
        counts = None
        # its spender is charged what was paid for it: ε and δ, of which spent ρ is no part
        if share.mixed:
            counts = Loss.none() if record.releases else price_of(opening.body)
        _move(budget, page, record, amount, {"about": opening.number}, change, counts)
    return replace(
        Loss.none(in_rho=budget.terms is Terms.RHO) - change, mu_squared=None, simple=None
    )


def _move(
    budget: account.BudgetAccount,
    page: Page,
    record: AllowanceRecord,
    amount: Loss,
    receives: dict[str, object],
    change: Loss,
    counts: Loss | None = None,
) -> None:
    """Add both entries.

    Input:  receives: the body of the second one; change: of what the budget counts as spent;
            counts: what is taken off the sum of the spender who gives, if it is not the amount
    """
    at, who, one = account.now(), budget._payer.acting(page.role), record.opening
    words = f"{'a transfer from' if 'within' in receives else 'the end of'} {one.name}"
    holder_of(one, page.role or budget._payer.spender)
    body = body_of(
        Loss.none(in_rho=budget.terms is Terms.RHO), page.subject or "", words, None, None, ()
    )
    # nobody's sum changes within one hand
    held = {} if one.spender == receives.get("spender") else _held(one)
    held = {"held": texts_of(counts)} if held and counts is not None else held
    within = {"loss": texts_of(amount), "night": record.pace.night(at), **held}
    body |= {"about": one.number, "within": within, "gives": True, **who, **_spender(one)}
    slack = budget._limit.exact_delta if budget.terms is Terms.EITHER else Fraction(0)
    enter(page, body, at, slack)
    receives |= {"from": 0, "loss": texts_of(change)}
    # before anything is added, since a book in memory takes no entry back
    enter(page, receives, at, slack)
    receives["from"] = page.append("charge", body, at).number
    page.spent = page.spent + change
    page.append("transfer", receives, at)


def _share(budget: account.BudgetAccount, record: AllowanceRecord) -> Share:
    """The part of a budget that is counted for an allowance."""
    share = Share.of(budget._accountant, record.opening)
    for entry in record.entries:
        share = share.after(entry)
    return share


def _held(opening: Entry) -> dict[str, Any]:
    """Whether an allowance counts for whoever took it, as the place of a charge records it."""
    return {} if opening.spender is None else {"held": True}


def _spender(opening: Entry) -> dict[str, str]:
    """The spender whose sum a move changes."""
    return {} if opening.spender is None else {"spender": opening.spender}


def _read(giving: AllowanceRecord, epsilon: object, delta: object, rho: object) -> Loss:
    """The amount of a move, in the terms of the allowance. Errors: InvalidPrice."""
    if giving.pace.accountant.terms is Terms.RHO:
        if rho is None or epsilon is not None:
            raise InvalidPrice(
                "transfer: this allowance counts ρ; give it: bo.transfer('ana', rho=0.01)."
            )
        return Loss.charged_rho(read_rho(rho), read_delta(delta))
    if epsilon is None or rho is not None:
        raise InvalidPrice("transfer: say how much: bo.transfer('ana', epsilon=0.5).")
    return Loss.charged(read_epsilon(epsilon), read_delta(delta))
