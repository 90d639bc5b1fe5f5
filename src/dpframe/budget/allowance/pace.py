"""The schedule of an allowance, what it costs, and what its entries say of it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpframe.budget.accountants import Accountant, accountant_named
from dpframe.budget.entries import Entry, loss_of
from dpframe.budget.losses import Loss, Terms, read_delta, read_epsilon, read_rho
from dpframe.budget.periods_of_time import Periods, later, time_of
from dpframe.budget.receipts import Page
from dpframe.errors import BudgetExceeded, InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import rho_within
from dpframe.usage import check_flags, is_integer

LONGEST = 100_000  # nights
NIGHTLY = "nightly"  # the name of an allowance that is given none


@dataclass(frozen=True)
class Pace:
    """The schedule of an allowance: its periods, which are called nights, their
    number, and an equal share for each.

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
        return cls(
            periods,
            settings["nights"],
            settings["carry"],
            accountant_named(settings["accountant"]),
            limit,
        )

    @property
    def endless(self) -> bool:
        """Whether it is one part without nights, which may be spent at any time."""
        return self.nights == 1 and self.carry

    @property
    def word(self) -> str:
        """The word for one period in a message."""
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
        """The loss that may still be spent in a night.

        Input:  losses: the charges so far, each with its night; what was received is a negative one
        """
        total = self.accountant.total
        if night < 0 or (night >= self.nights and not self.carry):
            return self.limit - self.limit
        if self.carry:
            return self.limit.share(Fraction(min(night + 1, self.nights), self.nights)) - total(
                x for _, x in losses
            )
        return self.share - total(loss for at, loss in losses if at == night)


def planned(
    terms: Terms, nights: int, *, epsilon: object, delta: object, rho: object, capped: bool = False
) -> tuple[Loss, Accountant, Loss]:
    """The cost of an allowance, the accountant that adds up its
    charges, and the limit on their sum.

    Input:  terms of the budget; the number of nights; the price that was typed; capped: whether the
            budget has caps, which count what is typed, so that ε stays ε
    Bound:  charges in ρ that add up to at most `rho_within(ε, δ)` are (ε, δ)-private together, also
            if each depends on earlier answers. So an allowance of (ε, δ) counts ρ if one night then
            has less noise on a count: σ = √(n / 2ρ) for Gaussian noise, compared with √2·n / ε for
            Laplace noise
    Source: Bun, Steinke 2016, arXiv:1605.02065; Whitehouse et al. 2023, arXiv:2203.05481, for the
            filter
    Errors: InvalidPrice
    """
    if terms is Terms.RHO:
        if rho is None or epsilon is not None:
            raise InvalidPrice(
                "This budget counts ρ, so give its allowance a ρ: budget.allocate(nights=90, "
                "rho=0.1)."
            )
        amount, slack = read_rho(rho), read_delta(delta)
        limit = Loss.limit_rho(amount, slack)
        return Loss.charged_rho(amount, slack), accountant_named("zcdp"), limit
    if epsilon is None or rho is not None:
        raise InvalidPrice(
            "Give the part of the budget that all nights may spend together: "
            "budget.allocate(nights=90, epsilon=2)."
        )
    amount, slack = read_epsilon(epsilon), read_delta(delta)
    cost = Loss.charged(amount, slack)
    rho_limit = rho_within(amount, slack) if slack and not capped else Fraction(0)
    if rho_limit and math.sqrt(nights / (2 * float(rho_limit))) < math.sqrt(2) * nights / float(
        amount
    ):
        return cost, accountant_named("zcdp"), Loss.limit_rho(rho_limit, Fraction(0))
    return cost, accountant_named("basic"), Loss.limit(amount, slack)


@dataclass(frozen=True)
class AllowanceRecord:
    """Entries of an allowance: its releases, and moves to it and from it.

    Input:  opening: the charge that opened it; entries: the charges and the transfers about it,
            oldest first
    """

    opening: Entry
    entries: Sequence[Entry]

    @classmethod
    def on(cls, page: Page, opening: Entry) -> AllowanceRecord:
        """As it stands on a locked page."""
        own = page.members(opening.number)
        return cls.of(
            opening,
            own
            + [night for one in own if one.opens is not None for night in page.members(one.number)],
        )

    @classmethod
    def of(cls, opening: Entry, entries: Sequence[Entry]) -> AllowanceRecord:
        """From the entries that are about it, and those about these:
        the periods of its series are paid from it too.
        """
        return cls(
            opening,
            [
                e
                for e in entries
                if e.about == opening.number or (e.is_charge and e.part is not None)
            ],
        )

    @cached_property
    def pace(self) -> Pace:
        """Its schedule."""
        return Pace.of(self.opening)

    @property
    def releases(self) -> list[tuple[int, Loss]]:
        """The night and the loss of each release."""
        return [_line(entry) for entry in self.entries if entry.is_charge and not entry.gives]

    @property
    def moves(self) -> list[tuple[int, Loss]]:
        """The night and the loss of each part that was given away;
        what was received is negative.
        """
        given = [_line(entry) for entry in self.entries if entry.gives]
        received = [_line(entry) for entry in self.entries if entry.receives]
        return given + [(night, loss - loss - loss) for night, loss in received]

    @property
    def spent(self) -> Loss:
        """The loss of its releases."""
        return self.pace.accountant.total(loss for _, loss in self.releases)

    @property
    def limit(self) -> Loss:
        """The largest loss of all its releases, as it is now."""
        return self.pace.limit - self.pace.accountant.total(loss for _, loss in self.moves)

    @property
    def closed(self) -> dt.datetime | None:
        """When it was closed."""
        return next((e.when for e in self.entries if e.closes), None)

    def left(self, night: int) -> Loss:
        """The loss that may still be spent in a night; after it was closed, nothing."""
        if self.closed is not None:
            return self.pace.limit - self.pace.limit
        return self.pace.left(self.releases + self.moves, night)

    def check(self, loss: Loss, night: int, what: str) -> None:
        """Check that a loss fits into a night. Errors: BudgetExceeded."""
        remaining = self.left(night)
        if not loss <= remaining:
            raise BudgetExceeded(
                f"{what} {loss}, and {self._why(night, remaining)} Nothing was spent."
            )

    def _why(self, night: int, remaining: Loss) -> str:
        """The end of the message that a night has too little left:
        when nights begin or end, and what is left.
        """
        pace = self.pace
        if self.closed is not None:
            return (
                f"this allowance was closed at {self.closed:%Y-%m-%d %H:%M} UTC. Take another part "
                "under a new name: budget.allocate(name='...', epsilon=...)."
            )
        if night < 0:
            return f"the first {pace.word} begins at {pace.begins(0):%Y-%m-%d %H:%M} UTC."
        if pace.endless:
            return (
                f"{remaining} is left of this allowance, which is {self.limit}. Ask for less; or "
                "the holder of another part moves some of it here: part.transfer('...', "
                "epsilon=...)."
            )
        if night >= pace.nights and not pace.carry:
            return (
                f"the last of {pace.nights} {pace.word}s ended at "
                f"{pace.begins(pace.nights):%Y-%m-%d %H:%M} UTC. To make up for {pace.word}s that "
                "are over, protect the table with the budget itself, budget=budget, and give each "
                f"release its {pace.word} in its name: name='visits {pace.day(0)}'."
            )
        next_begins = (
            f" The next {pace.word} begins at "
            f"{pace.begins(min(night, pace.nights) + 1):%Y-%m-%d %H:%M} UTC."
        )
        more = next_begins if night + 1 < pace.nights else ""
        return f"{remaining} is left of this {pace.word}'s part, which is {pace.share}.{more}"


def _line(entry: Entry) -> tuple[int, Loss]:
    return entry.within["night"], loss_of(entry.within["loss"])


def read_pace(
    name: str, nights: object, periods: object, carry: object, *, dated: bool
) -> tuple[int, bool]:
    """The number of periods and whether they carry over: one without end where a name stands alone.

    Input:  dated: whether a length, a start or a zone of periods was given. Errors: InvalidArgument
    """
    if nights is None and periods is None and name != NIGHTLY and not (dated or carry):
        return 1, True
    number = nights if periods is None else periods
    if not is_integer(number, 1, LONGEST):
        raise InvalidArgument(
            f"allocate: nights= is the number of nights, or of periods, from 1 to {LONGEST:,}, "
            "such as nights=90, or per='1mo', periods=12. For a part without nights give its "
            "name: budget.allocate(name='bo', epsilon=1)."
        )
    if periods is not None and nights is not None:
        raise InvalidArgument("allocate: periods= and nights= are the same; give one of them.")
    check_flags(
        "allocate: carry= is True or False: whether later nights may spend the unspent part of "
        "earlier ones.",
        carry,
    )
    return int(number), bool(carry)


def read_start(start: object, zone: dt.tzinfo) -> dt.datetime:
    """The time at which the first night begins, in UTC. Errors: InvalidArgument."""
    time = time_of(start)
    if time is None:
        raise InvalidArgument(
            "allocate: start= is the time (UTC, or of zone=) when the first night begins: "
            "start='2026-11-21'."
        )
    offset = (
        time if time.tzinfo is not None else time.replace(tzinfo=zone)
    ).utcoffset() or dt.timedelta(0)
    return later(time.replace(tzinfo=dt.UTC), -1, offset, "allocate: start=")
