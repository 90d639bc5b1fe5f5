"""Charges before a charge: failures that nobody looked at, and the earlier charge of its name.

For a name there is the stored answer, a refusal, or the name may be paid again.
"""

from __future__ import annotations

from dpframe.budget.adaptive import Normal
from dpframe.budget.entries import (
    Entry,
    fraction_of,
    fraction_text,
    loss_of,
    price_of,
    statement_of,
    texts_of,
)
from dpframe.budget.losses import Loss
from dpframe.budget.names import check_plain, differences
from dpframe.budget.processes import at_work, runs
from dpframe.budget.receipts import Page, Receipt, Stored, Within
from dpframe.errors import FailuresUnacknowledged, ReleaseMismatch, ReleasePending
from dpframe.fields import FieldDict, Fields

UNACKNOWLEDGED = 2  # After this number of unacknowledged failures, charges are refused.


def check_failures(page: Page) -> None:
    """Errors: FailuresUnacknowledged.

    The failures of all spenders count together. Each tells one bit about a row, and the people in
    the table are the same whoever asks: counted by spender, as many names as somebody can charge
    under would have twice as many bits. In a ledger whose users have no roles a name is only typed.
    """
    number = page.failures.unacknowledged
    if number >= UNACKNOWLEDGED:
        command = "budget.acknowledge_failures()"
        if page.where is not None:
            command += f", or python -m dpframe ledger acknowledge {page.where} --by NAME,"
        raise FailuresUnacknowledged(
            f"{number} releases failed after they were paid from this budget, by whoever spends "
            "from it: see budget.history(). Whether a release fails may depend on one row, and no "
            "noise hides that. Nothing was spent. Correct the cause, such as a cast that fails for "
            f"some cells, and type {command} to go on."
        )


def noted(price: Loss, counted: Loss, normal: Normal | None) -> FieldDict:
    """Further fields in the body of a charge's entry, if the account
    counts another loss than the price.
    """
    if counted == price:
        return {}
    known = (
        {}
        if normal is None
        else {"mu_squared": fraction_text(normal.mu_squared), "keys": normal.keys}
    )
    return {"price": texts_of(price), "normal": known}


def priced(body: Fields) -> tuple[Loss, Normal | None]:
    """The price of a charge, and what was known of it besides, from the body of its entry."""
    known = body.get("normal")
    return price_of(body), Normal(
        fraction_of(known["mu_squared"]), known["keys"]
    ) if known else None


def known(page: Page, body: Fields) -> Entry | None:
    """The earlier charge of the name of a charge; None for a new name.
    Errors: ReleaseMismatch, InvalidArgument.
    """
    name = body.get("name")
    earlier = None if name is None else page.latest(name)
    if earlier is not None:
        check_same(earlier, body)
    elif name is not None:
        check_plain(name)
    return earlier


# how what is paid in advance is opened again
_OPENED = {"series": "series(", "allowance": "allocate(name="}


def check_same(earlier: Entry, body: Fields) -> None:
    """Check that a name is used for one plan, one price and one source of rows.
    Errors: ReleaseMismatch.
    """
    if earlier.body["fingerprint"] == body["fingerprint"]:
        return
    lines = differences(earlier.body["plan"] or {}, body["plan"] or {})
    places, corrects = (
        "\n".join(f"  {line}" for line in lines),
        any(line.startswith("data") for line in lines),
    )
    kind, _, own = str(earlier.name).partition(" ")
    if earlier.opens is not None:
        raise ReleaseMismatch(
            f"The {kind} {own!r} was opened at {earlier.when:%Y-%m-%d %H:%M} UTC for "
            f"{price_of(earlier.body)}, and it stands as it was opened. It differs in (before, "
            f"now):\n{places}\nNothing was spent. budget.{_OPENED[kind]}{own!r}) goes on with it. "
            f"Another one has a name of its own: budget.{_OPENED[kind]}{own + ' 2'!r}, ...)."
        )
    more = (
        f" If it corrects that one: name='...', supersedes={earlier.name!r}, because='...'. If the "
        f"files were only copied or touched, the stored answer is budget.answer({earlier.name!r})."
        if corrects
        else ""
    )
    raise ReleaseMismatch(
        f"{earlier.name!r} is the name of another release, charged at "
        f"{earlier.when:%Y-%m-%d %H:%M} UTC. They differ in (before, now):\n{places}\nNothing was "
        f"spent. Give this release another name: name='...'.{more}"
    )


def is_pending(page: Page, number: int) -> bool:
    """Whether a charge has neither an answer nor a failure, and was not marked as lost."""
    return page.result(number) is None and not page.has_failed(number) and not page.is_lost(number)


_UNSURE = (
    "{name!r}: this series goes on from an older copy of its ledger, and what was measured after "
    "the copy is lost. So this period may have been measured already, and the price of the series "
    "covers one measurement of each. Nothing was spent now. on_pending='retry' measures it and "
    "pays for it, {price}; or open another series."
)


def ended(page: Page, number: int) -> str:
    """The end of a charge that is not pending, in words."""
    if page.result(number) is not None:
        return "it was released"
    return "it failed" if page.has_failed(number) else "it was marked as lost before"


def was_killed(page: Page, earlier: Entry) -> bool:
    """Whether a charge is pending whose process has ended on this machine."""
    return is_pending(page, earlier.number) and runs(earlier) is False


def stored_answer(page: Page, earlier: Entry, remaining: Loss, price: Loss) -> Receipt | None:
    """The stored answer of a name; None if its charge was marked as
    lost, so that it may be paid again.

    Input:  remaining: what is left; price: what it costs to pay again
    Errors: ReleasePending, which says how to go on, and what that costs
    """
    result = page.result(earlier.number)
    if result is not None:
        entry, data = result
        body = earlier.body
        paid = body.get("price") or (body.get("part") or body.get("within") or body).get(
            "loss", body["loss"]
        )
        answer = Stored(data, statement_of(entry), entry.when)
        return Receipt(
            earlier.number, earlier.when, loss_of(paid), remaining, answer, spender=earlier.spender
        )
    if page.is_lost(earlier.number):
        return None
    measured = "blocks" in earlier.within  # in a series, whose `add` has no refresh=
    again = "" if measured else " release(..., refresh=True) pays again too."
    costs = f"{again} To pay again costs {price}, beside what is paid."
    if page.has_failed(earlier.number):
        raise ReleasePending(
            f"{earlier.name!r} was charged at {earlier.when:%Y-%m-%d %H:%M} UTC and failed after "
            "that, so there is no table. Nothing was spent now. on_pending='retry' pays "
            f"again.{costs}"
        )
    raise ReleasePending(
        f"{earlier.name!r} was charged at {earlier.when:%Y-%m-%d %H:%M} UTC and its table is not "
        f"stored. Nothing was spent now.{at_work(earlier, page.where)}{costs}",
        runs=runs(earlier),
    )


def entered(
    page: Page, body: FieldDict, within: Within, loss: Loss, *, again: bool, retry: bool
) -> tuple[Loss, Loss, bool]:
    """A release that an earlier charge pays for enters its place, which its body then names.

    A new name too is paid for where it may have been measured before, in a later copy of the
    ledger.
    Output: what it costs, what of that is charged to the budget, and whether it is paid for again
    Errors: those of the place; ReleasePending for such a name unless somebody says so with `retry`
    """
    if not again and within.may_repeat(page):
        again = True
        if not retry:
            raise ReleasePending(_UNSURE.format(name=body["name"], price=within.again(loss)))
    loss = within.again(loss) if again else loss
    price, place = within.enter(page, loss)
    body |= {"about": within.opening.number, "within": {**place}}
    return loss, price, again
