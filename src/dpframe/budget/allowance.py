"""A part of a budget that is paid beforehand and spent night by night, so that it lasts."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpframe.budget import account
from dpframe.budget.accountants import Accountant, accountant_named
from dpframe.budget.entries import Charge, Entry, loss_of, texts_of
from dpframe.budget.lengths import read_length
from dpframe.budget.losses import Loss, Terms, read_delta, read_epsilon, read_rho, written_number
from dpframe.budget.names import is_text
from dpframe.budget.receipts import Page, Receipt, Stored
from dpframe.budget.verbs import offered
from dpframe.errors import BudgetExceeded, InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import rho_within

__all__ = ["Allowance", "Pace", "planned"]

LONGEST = 100_000  # nights


@dataclass(frozen=True)
class Pace:
    """How an allowance is spent: so many nights of one length from a start, with an equal part of the limit for each.

    With `carry`, what a night leaves is there for the nights after it.
    """

    start: dt.datetime
    per: dt.timedelta
    nights: int
    carry: bool
    accountant: Accountant
    limit: Loss

    @classmethod
    def of(cls, opened: Entry) -> Pace:
        """As it was kept."""
        said = opened.body["opens"]
        start, per = dt.datetime.fromisoformat(said["start"]), read_length(said["per"], "per")
        limit = replace(loss_of(said["limit"]), left=True)
        return cls(start, per, said["nights"], said["carry"], accountant_named(said["accountant"]), limit)

    @property
    def share(self) -> Loss:
        """The part of one night."""
        return _part(self.limit, Fraction(1, self.nights))

    def night(self, when: dt.datetime) -> int:
        """The number of the night that a time is in: negative before the first."""
        return math.floor((when - self.start) / self.per)

    def begins(self, night: int) -> dt.datetime:
        """When a night begins."""
        return self.start + night * self.per

    def left(self, losses: list[tuple[int, Loss]], night: int) -> Loss:
        """What may still be spent in a night, of which the charges so far are known with their nights."""
        total = self.accountant.total
        if night < 0 or (night >= self.nights and not self.carry):
            return self.limit - self.limit
        if self.carry:
            return _part(self.limit, Fraction(min(night + 1, self.nights), self.nights)) - total(x for _, x in losses)
        return self.share - total(loss for at, loss in losses if at == night)


def _part(loss: Loss, part: Fraction) -> Loss:
    """A part of a limit, rounded down."""
    if loss.exact_rho is not None:
        return Loss.limit_rho(loss.exact_rho * part, loss.exact_delta * part)
    return Loss.limit(loss.exact_epsilon * part, loss.exact_delta * part)


def planned(terms: Terms, nights: int, *, epsilon: object, delta: object, rho: object) -> tuple[Loss, Accountant, Loss]:
    """What an allowance costs the budget, how its charges add up, and what they may come to.

    Input:  terms of the budget; the number of nights; the price that was typed
    Bound:  charges in ρ that add up to at most `rho_within(ε, δ)` are (ε, δ)-private together, however they follow from
            one another. So an allowance of (ε, δ) is counted in ρ where that gives one night less noise on a count:
            σ = √(n / 2ρ) against √2·n / ε of Laplace noise
    Source: Bun, Steinke 2016, arXiv:1605.02065; Whitehouse et al. 2023, arXiv:2203.05481, for the filter
    Errors: InvalidPrice
    """
    if terms is Terms.RHO:
        if rho is None or epsilon is not None:
            raise InvalidPrice("This budget counts ρ, and so does its allowance: budget.allocate(nights=90, rho=0.1).")
        amount, slack = read_rho(rho), read_delta(delta)
        limit = Loss.limit_rho(amount, slack)
        return Loss.charged_rho(amount, slack), accountant_named("zcdp"), limit
    if epsilon is None or rho is not None:
        raise InvalidPrice(
            "Say how much of the budget the nights may spend together: budget.allocate(nights=90, epsilon=2)."
        )
    amount, slack = read_epsilon(epsilon), read_delta(delta)
    cost = Loss.charged(amount, slack)
    whole = rho_within(amount, slack) if slack else Fraction(0)
    if whole and math.sqrt(nights / (2 * float(whole))) < math.sqrt(2) * nights / float(amount):
        return cost, accountant_named("zcdp"), Loss.limit_rho(whole, Fraction(0))
    return cost, accountant_named("basic"), Loss.limit(amount, slack)


@dataclass(frozen=True)
class _Tonight:
    """The place of a charge under its allowance; see `dpframe.budget.receipts.Within`."""

    opening: int
    pace: Pace

    def again(self, loss: Loss) -> Loss:
        """A release that is paid again costs its own price."""
        return loss

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Mapping[str, Any]]:
        """Errors: BudgetExceeded where it is more than tonight's part has left."""
        pace, now = self.pace, account.now()
        night = pace.night(now)
        losses = losses_of(page.members(self.opening))
        left = pace.left(losses, night)
        if not loss <= left:
            raise BudgetExceeded(f"The release costs {loss}, and {_why(pace, night, left)} Nothing was spent.")
        nothing = Loss.none(in_rho=page.spent.exact_rho is not None)
        return nothing, {"loss": texts_of(loss), "night": night}


def losses_of(lines: list[Entry]) -> list[tuple[int, Loss]]:
    """The nights and the losses of an allowance's charges."""
    return [(line.body["within"]["night"], loss_of(line.body["within"]["loss"])) for line in lines]


def _why(pace: Pace, night: int, left: Loss) -> str:
    """Why a night has no more, in words."""
    if night < 0:
        return f"the first night begins at {pace.begins(0):%Y-%m-%d %H:%M} UTC."
    if night >= pace.nights and not pace.carry:
        return f"the last of {pace.nights} nights ended at {pace.begins(pace.nights):%Y-%m-%d %H:%M} UTC."
    more = f" The next night begins at {pace.begins(night + 1):%Y-%m-%d %H:%M} UTC." if night + 1 < pace.nights else ""
    return f"{left} is left of this night's part, which is {pace.share}.{more}"


class Allowance:
    """What pays for releases night by night: `df.dp(unit='user_id', budget=budget.allocate(nights=90, epsilon=2))`.

    Each night has an equal part, and tomorrow's cannot be spent today. All of it was charged to the budget when it was
    made. `tonight` is what is left of this night's part.
    """

    def __init__(self, budget: account.Budget, opened: Entry) -> None:
        self._budget, self._opened, self._pace = budget, opened, Pace.of(opened)

    @property
    def pace(self) -> Pace:
        """The nights and their parts."""
        return self._pace

    @property
    def accountant(self) -> str:
        """How the losses of its releases add up."""
        return self._pace.accountant.name

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon" or in "rho"."""
        return self._pace.accountant.terms

    @property
    def limit(self) -> Loss:
        """What all releases of all nights may cost together."""
        return self._pace.limit

    @property
    def share(self) -> Loss:
        """The part of one night."""
        return self._pace.share

    @property
    def spent(self) -> Loss:
        """What its releases have cost so far."""
        return self._pace.accountant.total(loss for _, loss in self._losses)

    @property
    def remaining(self) -> Loss:
        """What is left for all nights to come."""
        return self.limit - self.spent

    @property
    def tonight(self) -> Loss:
        """What is left of this night's part."""
        return self._pace.left(self._losses, self._pace.night(account.now()))

    @property
    def _losses(self) -> list[tuple[int, Loss]]:
        number = self._opened.number
        return losses_of([e for e in self._budget.entries() if e.kind == "charge" and e.about == number])

    def history(self) -> list[Charge]:
        """Its charges, oldest first."""
        return [line for line in self._budget.history() if line.paid_by == self._opened.number]

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Pay for a release out of this night's part; see `Budget.charge`. Errors: BudgetExceeded for the night too."""
        if self.terms is Terms.RHO and loss.exact_rho is None:
            loss = loss + Loss.none(in_rho=True)
        place = _Tonight(self._opened.number, self._pace)
        receipt = self._budget.charge(loss, subject, query, within=place, **options)
        return replace(receipt, remaining=self.remaining)

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Keep the released table with its charge."""
        return self._budget.store(receipt, data, statement)

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge; failures are those of the whole budget."""
        self._budget.fail(receipt)

    def forecast(self) -> Any:
        """How long it lasts; see `Budget.forecast`."""
        return self._budget.forecast()

    def __repr__(self) -> str:
        pace = self._pace
        ends = f"{pace.begins(pace.nights):%Y-%m-%d %H:%M}"
        return (
            f"Allowance({self.limit} over {pace.nights} nights until {ends} UTC: {self.share} each; spent {self.spent})"
        )


def read_pace(per: object, nights: object, carry: object, start: object) -> tuple[str, int, bool, Any]:
    """The schedule that was typed. Errors: InvalidArgument."""
    read_length(per, "per")
    if not isinstance(nights, int) or isinstance(nights, bool) or not 1 <= nights <= LONGEST:
        raise InvalidArgument(f"allocate: nights= is how many there are, from 1 to {LONGEST:,}: nights=90.")
    if not isinstance(carry, bool):
        raise InvalidArgument("allocate: carry= is True or False: whether what a night leaves is there for later ones.")
    return str(per), nights, carry, None if start is None else _start(start)


def _start(start: object) -> dt.datetime:
    """When the first night begins, in UTC."""
    if isinstance(start, str):
        try:
            start = dt.datetime.fromisoformat(start)
        except ValueError:
            start = None
    if isinstance(start, dt.date) and not isinstance(start, dt.datetime):
        start = dt.datetime(start.year, start.month, start.day)
    if not isinstance(start, dt.datetime):
        raise InvalidArgument("allocate: start= is when the first night begins, in UTC: start='2026-11-21'.")
    return start.replace(tzinfo=dt.UTC) if start.tzinfo is None else start.astimezone(dt.UTC)


@offered("allocate")
def allocate(
    budget: account.Budget, per: object, nights: object, *, carry: object, start: object, name: object, **price: object
) -> Allowance:
    """An allowance of a budget; see `Budget.allocate`."""
    if not is_text(name):
        raise InvalidArgument("allocate: name= is a text that is not empty, such as name='nightly'.")
    length, number, carries, begins = read_pace(per, nights, carry, start)
    cost, accountant, limit = planned(budget.terms, number, **price)
    typed = {what: written_number(amount, what) for what, amount in price.items() if amount is not None}
    plan = {"allowance": {"per": length, "nights": number, "carry": carries, "price": typed}}
    midnight = account.now().replace(hour=0, minute=0, second=0, microsecond=0)
    kept = {
        "per": length,
        "nights": number,
        "carry": carries,
        "start": (midnight if begins is None else begins).isoformat(),
        "accountant": accountant.name,
        "limit": texts_of(limit),
    }
    words = f"allowance {name!r}: {number} nights"
    opened = budget.open(cost, None, words, name=f"allowance {name}", plan=plan, opens=kept)
    allowance = Allowance(budget, opened)
    if begins is not None and allowance.pace.start != begins:
        raise InvalidArgument(f"allocate: {name!r} began at {allowance.pace.start:%Y-%m-%d %H:%M} UTC.")
    return allowance
