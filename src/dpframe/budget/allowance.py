"""Budgets that another one pays for: for one part of a partition, and an allowance, which is divided over nights."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from dpframe.budget import account
from dpframe.budget.accountants import Accountant, accountant_named
from dpframe.budget.entries import Charge, Entry, loss_of, texts_of
from dpframe.budget.lengths import Periods, later, read_zone
from dpframe.budget.losses import Loss, Terms, read_delta, read_epsilon, read_rho, written_number
from dpframe.budget.names import is_text
from dpframe.budget.parts import PartName
from dpframe.budget.receipts import Page, Receipt, Stored
from dpframe.budget.verbs import Forecasts, offered
from dpframe.errors import BudgetExceeded, InvalidArgument, InvalidPrice
from dpframe.safe_text import visible
from dpframe.theory.formulas.loss import rho_within
from dpframe.usage import Hints, check_flags, is_integer

LONGEST = 100_000  # nights
NIGHTLY = "nightly"  # the name of an allowance that is given none


@dataclass(frozen=True)
class Pace:
    """The schedule of an allowance: its periods, which are called nights, their number, and an equal share for each.

    With `carry`, later nights may also spend the unspent part of earlier nights.
    """

    periods: Periods
    nights: int
    carry: bool
    accountant: Accountant
    limit: Loss

    @classmethod
    def of(cls, opening: Entry) -> Pace:
        """The schedule from the entry of the charge that opened the allowance."""
        settings = opening.body["opens"]
        start = dt.datetime.fromisoformat(settings["start"])
        periods = Periods.of(start, settings["per"], settings.get("zone"))
        limit = replace(loss_of(settings["limit"]), left=True)
        return cls(periods, settings["nights"], settings["carry"], accountant_named(settings["accountant"]), limit)

    @property
    def endless(self) -> bool:
        """Whether it is one part without nights, which may be spent at any time."""
        return self.nights == 1 and self.carry

    @property
    def word(self) -> str:
        """What one period is called in a message."""
        return "month" if self.periods.months == 1 else "period" if self.periods.months else "night"

    @property
    def share(self) -> Loss:
        """The part of the limit for one night."""
        return self.limit.share(Fraction(1, self.nights))

    def night(self, when: dt.datetime) -> int:
        """The number of the night at a time, from 0; negative before the first night."""
        return self.periods.number(when)

    def begins(self, night: int) -> dt.datetime:
        """The time at which a night begins."""
        return self.periods.begins(night)

    def day(self, night: int) -> dt.date:
        """The day on which a night begins, in the time zone of the allowance."""
        return self.begins(night).astimezone(self.periods.zone or dt.UTC).date()

    def left(self, losses: list[tuple[int, Loss]], night: int) -> Loss:
        """The loss that may still be spent in a night. `losses` are the charges so far, each with its night."""
        total = self.accountant.total
        if night < 0 or (night >= self.nights and not self.carry):
            return self.limit - self.limit
        if self.carry:
            return self.limit.share(Fraction(min(night + 1, self.nights), self.nights)) - total(x for _, x in losses)
        return self.share - total(loss for at, loss in losses if at == night)


def planned(
    terms: Terms, nights: int, *, epsilon: object, delta: object, rho: object, capped: bool = False
) -> tuple[Loss, Accountant, Loss]:
    """The cost of an allowance, the accountant that adds up its charges, and the limit on their sum.

    Input:  terms of the budget; the number of nights; the price that was typed; capped: whether the budget has caps,
            which count what is typed, so that ε stays ε
    Bound:  charges in ρ that add up to at most `rho_within(ε, δ)` are (ε, δ)-private together, also if each depends on
            earlier answers. So an allowance of (ε, δ) counts ρ if one night then has less noise on a count: σ =
            √(n / 2ρ) for Gaussian noise, compared with √2·n / ε for Laplace noise
    Source: Bun, Steinke 2016, arXiv:1605.02065; Whitehouse et al. 2023, arXiv:2203.05481, for the filter
    Errors: InvalidPrice
    """
    if terms is Terms.RHO:
        if rho is None or epsilon is not None:
            raise InvalidPrice("This budget counts ρ, so give its allowance a ρ: budget.allocate(nights=90, rho=0.1).")
        amount, slack = read_rho(rho), read_delta(delta)
        limit = Loss.limit_rho(amount, slack)
        return Loss.charged_rho(amount, slack), accountant_named("zcdp"), limit
    if epsilon is None or rho is not None:
        raise InvalidPrice(
            "Give the part of the budget that all nights may spend together: budget.allocate(nights=90, epsilon=2)."
        )
    amount, slack = read_epsilon(epsilon), read_delta(delta)
    cost = Loss.charged(amount, slack)
    rho_limit = rho_within(amount, slack) if slack and not capped else Fraction(0)
    if rho_limit and math.sqrt(nights / (2 * float(rho_limit))) < math.sqrt(2) * nights / float(amount):
        return cost, accountant_named("zcdp"), Loss.limit_rho(rho_limit, Fraction(0))
    return cost, accountant_named("basic"), Loss.limit(amount, slack)


@dataclass(frozen=True)
class _Tonight:
    """The place of a charge within its allowance; see `dpframe.budget.receipts.Within`."""

    opening: int
    pace: Pace
    held: bool  # whether the allowance counts for the spender who took it

    def again(self, loss: Loss) -> Loss:
        """The price of the release: one that is paid again costs its full price."""
        return loss

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Mapping[str, Any]]:
        """Errors: BudgetExceeded if the loss is more than tonight's share has left."""
        pace, now = self.pace, account.now()
        night = pace.night(now)
        losses = losses_of(page.members(self.opening))
        remaining = pace.left(losses, night)
        if not loss <= remaining:
            raise BudgetExceeded(f"The release costs {loss}, and {_why(pace, night, remaining)} Nothing was spent.")
        nothing = Loss.none(in_rho=page.spent.exact_rho is not None)
        return nothing, {"loss": texts_of(loss), "night": night, **({"held": True} if self.held else {})}


def losses_of(lines: list[Entry]) -> list[tuple[int, Loss]]:
    """The night and the loss of each charge of an allowance."""
    return [(line.body["within"]["night"], loss_of(line.body["within"]["loss"])) for line in lines]


def _why(pace: Pace, night: int, remaining: Loss) -> str:
    """The end of the message that a night has too little left: when nights begin or end, and what is left."""
    if night < 0:
        return f"the first {pace.word} begins at {pace.begins(0):%Y-%m-%d %H:%M} UTC."
    if pace.endless:
        return f"{remaining} is left of this allowance, which is {pace.limit}."
    if night >= pace.nights and not pace.carry:
        return f"the last of {pace.nights} {pace.word}s ended at {pace.begins(pace.nights):%Y-%m-%d %H:%M} UTC."
    next_begins = f" The next {pace.word} begins at {pace.begins(min(night, pace.nights) + 1):%Y-%m-%d %H:%M} UTC."
    more = next_begins if night + 1 < pace.nights else ""
    return f"{remaining} is left of this {pace.word}'s part, which is {pace.share}.{more}"


class PaidBy(Hints):
    """A budget that another one pays for."""

    _budget: account.Budget

    @property
    def name(self) -> str | None:
        """The name of the whole budget in its ledger; None in memory."""
        return self._budget.name

    def check_subject(self, subject: str) -> None:
        """Check that a table may be paid from this budget; see `Budget.check_subject`."""
        self._budget.check_subject(subject)

    def for_spender(self, spender: str, purpose: str | None = None) -> Self:
        """The same, where all that is charged is spent by one spender; see `Budget.for_spender`."""
        again = copy(self)
        again._budget = self._budget.for_spender(spender, purpose)
        return again

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Store the released table with its charge."""
        return self._budget.store(receipt, data, statement)

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge. Failures are counted for the whole budget."""
        self._budget.fail(receipt)


class PartBudget(PaidBy):
    """A budget for one part of a partition. A charge costs the rise of the largest loss of a part, times `groups`."""

    def __init__(self, budget: account.Budget, partition: str, key: str) -> None:
        self._budget, self._part = budget, PartName(partition, key)

    @property
    def accountant(self) -> str:
        """The name of the accountant that adds up losses."""
        return self._budget.accountant

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon" or in "rho"."""
        return self._budget.terms

    @property
    def limit(self) -> Loss:
        """The largest loss of all releases of the whole budget together."""
        return self._budget.limit

    @property
    def spent(self) -> Loss:
        """The loss that has been charged to the whole budget."""
        return self._budget.spent

    @property
    def remaining(self) -> Loss:
        """The loss that may still be charged to the whole budget."""
        return self._budget.remaining

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of the whole budget; see `Budget.part`."""
        return self._budget.part(share, name)

    def history(self) -> Sequence[Any]:
        """Every charge of the whole budget."""
        return self._budget.history()

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Charge a release about this part; see `Budget.charge`."""
        return self._budget.charge(loss, subject, query, part=self._part, **options)

    def __repr__(self) -> str:
        return visible(f"part {self._part.key} of {self._budget!r}")


class Allowance(PaidBy):
    """A budget for releases night by night: `df.dp(unit='user_id', budget=budget.allocate(nights=90, epsilon=2))`.

    Each night has an equal part, and the part of tomorrow cannot be spent today. The whole allowance was charged to the
    budget when it was made. `tonight` is the unspent part of this night.
    """

    def __init__(self, budget: account.Budget, opening: Entry) -> None:
        self._budget, self._opening, self._pace = budget, opening, Pace.of(opening)

    @property
    def pace(self) -> Pace:
        """The schedule of nights."""
        return self._pace

    @property
    def accountant(self) -> str:
        """The name of the accountant that adds up the losses of its releases."""
        return self._pace.accountant.name

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon" or in "rho"."""
        return self._pace.accountant.terms

    @property
    def limit(self) -> Loss:
        """The largest loss of all releases of all nights together."""
        return self._pace.limit

    @property
    def share(self) -> Loss:
        """The part of the limit for one night."""
        return self._pace.share

    @property
    def spent(self) -> Loss:
        """The loss of its releases so far."""
        return self._pace.accountant.total(loss for _, loss in self._losses)

    @property
    def remaining(self) -> Loss:
        """The loss that may still be spent in all nights together."""
        return self.limit - self.spent

    @property
    def tonight(self) -> Loss:
        """The loss that may still be spent in this night."""
        return self._pace.left(self._losses, self._pace.night(account.now()))

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of its limit."""
        return self.limit.share(share)

    @property
    def _losses(self) -> list[tuple[int, Loss]]:
        number = self._opening.number
        return losses_of([e for e in self._budget.entries() if e.kind == "charge" and e.about == number])

    def history(self) -> list[Charge]:
        """Its charges, oldest first."""
        return [line for line in self._budget.history() if line.paid_by == self._opening.number]

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Charge a release to this night's part; see `Budget.charge`. Errors: BudgetExceeded, also for the night."""
        options.pop("normal", None)  # its accountant adds up prices
        if self.terms is Terms.RHO and loss.exact_rho is None:
            loss = loss + Loss.none(in_rho=True)
        place = _Tonight(self._opening.number, self._pace, "by_spender" in self._opening.body)
        receipt = self._budget.charge(loss, subject, query, within=place, **options)
        return replace(receipt, remaining=self.remaining)

    def forecast(self) -> Forecasts:
        """How long the budget lasts; see `Budget.forecast`."""
        return self._budget.forecast()

    def __repr__(self) -> str:
        pace = self._pace
        if pace.endless:
            return f"Allowance({self.limit}; spent {self.spent})"
        ends = f"{pace.begins(pace.nights):%Y-%m-%d %H:%M}"
        parts = f"{pace.nights} {pace.word}s until {ends} UTC: {self.share} each"
        return f"Allowance({self.limit} over {parts}; spent {self.spent})"


def read_pace(name: str, nights: object, periods: object, carry: object) -> tuple[int, bool]:
    """The number of periods and whether they carry over: one without end where a name stands alone.

    Errors: InvalidArgument
    """
    if nights is None and periods is None and name != NIGHTLY:
        return 1, True
    number = nights if periods is None else periods
    if not is_integer(number, 1, LONGEST):
        raise InvalidArgument(
            f"allocate: nights= is the number of nights, or of periods, from 1 to {LONGEST:,}, such as nights=90, or "
            "per='1mo', periods=12. For a part without nights give its name: budget.allocate(name='bo', epsilon=1)."
        )
    if periods is not None and nights is not None:
        raise InvalidArgument("allocate: periods= and nights= are the same; give one of them.")
    check_flags(
        "allocate: carry= is True or False: whether later nights may spend the unspent part of earlier ones.", carry
    )
    return int(number), bool(carry)


def _start(start: object, zone: dt.tzinfo) -> dt.datetime:
    """The time at which the first night begins, in UTC. Errors: InvalidArgument."""
    if isinstance(start, str):
        try:
            start = dt.datetime.fromisoformat(start)
        except ValueError:
            start = None
    if isinstance(start, dt.date) and not isinstance(start, dt.datetime):
        start = dt.datetime(start.year, start.month, start.day)
    if not isinstance(start, dt.datetime) or start != start:  # the NaT of pandas is a datetime
        raise InvalidArgument(
            "allocate: start= is the time (UTC, or of zone=) when the first night begins: start='2026-11-21'."
        )
    offset = (start if start.tzinfo is not None else start.replace(tzinfo=zone)).utcoffset() or dt.timedelta(0)
    return later(start.replace(tzinfo=dt.UTC), -1, offset, "allocate: start=")


def _opened(budget: account.Budget, name: str) -> Entry | None:
    """The charge that opened the allowance of a name."""
    charges = [e for e in budget.entries() if e.kind == "charge" and e.name == f"allowance {name}"]
    return next((e for e in charges if "nights" in e.body.get("opens", {})), None)


@offered("allocate")
def allocate(
    budget: account.Budget,
    per: object,
    nights: object,
    *,
    periods: object,
    zone: str | None,
    carry: object,
    start: object,
    name: object,
    **price: object,
) -> Allowance:
    """An allowance of a budget; see `Budget.allocate`."""
    if not is_text(name):
        raise InvalidArgument("allocate: name= is a text that is not empty, such as name='nightly'.")
    assert isinstance(name, str)
    typed_none = all(value is None for value in (nights, periods, start, zone, *price.values()))
    known = _opened(budget, name) if typed_none else None
    if known is not None:
        return Allowance(budget, known)
    number, carries = read_pace(name, nights, periods, carry)
    clock = dt.UTC if zone is None else read_zone(zone)
    today = account.now().astimezone(clock).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    begins = None if start is None else _start(start, clock)
    pace = Periods.of(today if begins is None else begins, per, zone)
    if begins is None:
        pace = replace(pace, start=(today.replace(day=1) if pace.months else today).astimezone(dt.UTC))
    pace.begins(number)  # the end of the last night is a time
    cost, accountant, limit = planned(budget.terms, number, capped=bool(budget.caps), **price)
    typed = {argument: written_number(amount, argument) for argument, amount in price.items() if amount is not None}
    place = {} if zone is None else {"zone": zone}
    plan = {"allowance": {"per": str(per), "nights": number, "carry": carries, "price": typed, **place}}
    settings = {
        "per": str(per),
        "nights": number,
        "carry": carries,
        "start": pace.start.isoformat(),
        "accountant": accountant.name,
        "limit": texts_of(limit),
        **place,
    }
    length = "no nights" if number == 1 and carries else f"{number} {'periods' if pace.months else 'nights'}"
    words = f"allowance {name!r}: {length}"
    opening = budget.open(cost, None, words, name=f"allowance {name}", plan=plan, opens=settings)
    allowance = Allowance(budget, opening)
    began = allowance.pace.periods.start
    if begins is not None and began != begins:
        raise InvalidArgument(
            f"allocate: {name!r} was made before, with the start {began:%Y-%m-%d %H:%M} UTC. Leave start= out, or "
            "give another name."
        )
    return allowance
