"""Budgets that another one pays for: for a part of a partition, or an allowance by nights."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpframe.budget import account
from dpframe.budget.allowance.forecast import Forecast, forecast
from dpframe.budget.allowance.moves import close, holder_of, move
from dpframe.budget.allowance.pace import AllowanceRecord, Pace, planned, read_pace, read_start
from dpframe.budget.entries import Charge, Entry, Failures, texts_of
from dpframe.budget.losses import Loss, Terms, written_number
from dpframe.budget.names import differences, fingerprint, is_text
from dpframe.budget.parts import PartName
from dpframe.budget.periods_of_time import Periods, read_zone
from dpframe.budget.receipts import Page, Receipt, Stored
from dpframe.budget.running_totals import PaysForSeries
from dpframe.budget.standing import INNER
from dpframe.errors import InvalidArgument, InvalidPrice, ReleaseMismatch
from dpframe.fields import Fields
from dpframe.safe_text import visible
from dpframe.usage import Hints, nearest


@dataclass(frozen=True)
class _Tonight:
    """The place of a charge within its allowance; see `dpframe.budget.receipts.Within`."""

    opening: Entry

    def again(self, loss: Loss) -> Loss:
        """The price of the release: one that is paid again costs its full price."""
        return loss

    def may_repeat(self, page: Page) -> bool:
        """No: each release has a price of its own, which is counted when a copy is adopted."""
        return False

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Fields]:
        """Errors: BudgetExceeded beyond tonight's share; BudgetMismatch for its holder."""
        holder_of(self.opening, page.role)
        record = AllowanceRecord.on(page, self.opening)
        night = record.pace.night(account.now())
        record.check(loss, night, "The release costs")
        nothing = Loss.none(in_rho=page.spent.exact_rho is not None)
        held = {} if self.opening.spender is None else {"held": True}
        return nothing, {"loss": texts_of(loss), "night": night, **held}


class PaidBy(Hints):
    """A budget that another one pays for."""

    _inner = INNER

    _budget: account.BudgetAccount

    @property
    def name(self) -> str | None:
        """The name of the whole budget in its ledger; None in memory."""
        return self._budget.name

    @property
    def spender(self) -> str | None:
        """Who spends what is charged by this object, if that was said."""
        return self._budget.spender

    def check_subject(self, subject: str) -> None:
        """Check that a table may be paid from this budget; see `Budget.check_subject`."""
        self._budget.check_subject(subject)

    def for_spender(self, spender: str | None, purpose: str | None = None) -> Self:
        """The same, where all that is charged is spent by one spender; see `Budget.for_spender`."""
        again = copy(self)
        again._budget = self._budget.for_spender(spender, purpose)
        return again

    def store(self, receipt: Receipt, data: bytes, statement: Fields) -> Stored:
        """Store the released table with its charge."""
        return self._budget.store(receipt, data, statement)

    @property
    def whole(self) -> account.BudgetAccount:
        """The budget that it is a part of."""
        return self._budget

    @property
    def failures(self) -> Failures:
        """The number of failed releases of the whole budget: see `Budget.failures`."""
        return self._budget.failures

    def entries(
        self, name: str | None = None, under: int | None = None, number: int | None = None
    ) -> list[Entry]:
        """Entries of the whole budget; see `Book.entries`."""
        return self._budget.entries(name, under, number)

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of charges that the opening paid for, by the charge's number."""
        return self._budget.tables(opening)

    def fail(self, receipt: Receipt) -> None:
        """Record an error after a charge. Failures are counted for the whole budget."""
        self._budget.fail(receipt)


class PartBudget(PaidBy):
    """A budget for one part of a partition.
    A charge costs the rise of the largest loss of a part, times `groups`.
    """

    def __init__(self, budget: account.BudgetAccount, partition: str, key: str) -> None:
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


class Allowance(PaidBy, PaysForSeries):
    """A budget for releases night by night:
    `df.dp(unit='user_id', budget=budget.allocate(nights=90, epsilon=2))`.

    Each night has an equal part, and the part of tomorrow cannot be spent today. The whole
    allowance was charged to the budget when it was made. `tonight` is the unspent part of this
    night.
    """

    _habits: ClassVar = {
        name: f"That is asked of the whole budget: budget.{name}{typed}."
        for name, typed in {
            **{
                "plan": "([query, ...], epsilon=0.1)",
                "answer": "('visits')",
                "resolve": "('visits')",
            },
            **{"allocate": "(name='...', epsilon=1)", "acknowledge_failures": "()"},
            **dict.fromkeys(("caps", "protects", "spenders"), ""),
        }.items()
    }

    def __init__(self, budget: account.BudgetAccount, opening: Entry) -> None:
        self._budget, self._opening, self._pace = budget, opening, Pace.of(opening)

    @property
    def _record(self) -> AllowanceRecord:
        number = self._opening.number
        return AllowanceRecord.of(self._opening, self._budget.entries(under=number))

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
        """The largest loss of all nights together, with what was moved to it and from it."""
        return self._record.limit

    @property
    def share(self) -> Loss:
        """The part of the limit for one night."""
        return self._pace.share

    @property
    def spent(self) -> Loss:
        """The loss of its releases so far."""
        return self._record.spent

    @property
    def remaining(self) -> Loss:
        """The loss that may still be spent in all nights together."""
        record = self._record
        return record.limit - record.spent

    @property
    def tonight(self) -> Loss:
        """The loss that may still be spent in this night."""
        return self._record.left(self._pace.night(account.now()))

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of the limit that it was made with."""
        return self._pace.limit.share(share)

    def history(self) -> list[Charge]:
        """Its charges, oldest first, with the periods of its series."""
        own = self._budget.entries(under=self._opening.number)
        series = [
            entry
            for one in own
            if one.opens is not None
            for entry in self._budget.entries(under=one.number)
        ]
        entries = {entry.number: entry for entry in own + series}
        return self._budget._lines(entries[number] for number in sorted(entries))

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Charge a release to this night's part; see `Budget.charge`.
        Errors: BudgetExceeded, also for the night.

        A period of a series has a place of its own, `within`, and this night pays for what it
        costs.
        """
        options.pop("normal", None)  # its accountant adds up prices
        place, tonight = options.pop("within", None), _Tonight(self._opening)
        within = tonight if place is None else place.paid_from(tonight)
        receipt = self._budget.charge(
            self._in_terms(loss), subject, query, within=within, **options
        )
        return replace(receipt, remaining=self.remaining)

    def open(self, loss: Loss, subject: str | None, query: str, **options: Any) -> Entry:
        """Charge once for this night's part; see `Budget.open`. Errors: BudgetExceeded."""
        return self._budget.open(
            self._in_terms(loss), subject, query, within=_Tonight(self._opening), **options
        )

    def _in_terms(self, loss: Loss) -> Loss:
        return (
            loss + Loss.none(in_rho=True)
            if self.terms is Terms.RHO and loss.exact_rho is None
            else loss
        )

    @classmethod
    def paying(cls, by: account.BudgetAccount | Allowance, series: Entry) -> Any:
        """What pays for a series: the allowance that it was opened from, or the budget.

        Input:  by: the budget, or one of its allowances; series: the charge that opened the series
        """
        whole = by.whole
        return whole if series.about is None else cls(whole, *whole.entries(number=series.about))

    def transfer(
        self, to: Allowance | str, epsilon: object = None, delta: object = None, rho: object = None
    ) -> Loss:
        """Move a part of what may be spent now to another allowance of the same budget.

        Input:  to: the allowance, or its name; epsilon and delta, or rho: the part
        Output: what was moved
        Bound:  that of the budget, which stays: see `dpframe.budget.parts.Share`
        Errors: BudgetExceeded if less may be spent now; BudgetMismatch if it is somebody else's;
                UnsupportedOperation where the parts cannot be moved

        >>> from dpframe.budget import Budget
        >>> budget = Budget(epsilon=2)
        >>> bo, ana = (budget.allocate(name=name, epsilon=1) for name in ("bo", "ana"))
        >>> bo.transfer(ana, epsilon=0.25)
        Loss(epsilon=0.25, delta=0.0)
        >>> bo.remaining, ana.remaining
        (Loss(epsilon=0.75, delta=0.0), Loss(epsilon=1.25, delta=0.0))
        """
        name = (
            to._opening.name
            if isinstance(to, Allowance)
            else f"allowance {to}"
            if is_text(to)
            else None
        )
        other = _opened(self._budget, name)
        if other is None or (isinstance(to, Allowance) and other.hash != to._opening.hash):
            raise InvalidArgument(
                "transfer: give another allowance of the same budget, or its name: "
                "bo.transfer('ana', epsilon=0.5)."
            )
        return move(self._budget, self._opening, other, epsilon=epsilon, delta=delta, rho=rho)

    def close(self) -> Loss:
        """End this allowance, and return what is left to the budget.
        Output: what the budget has back.

        Errors: UnsupportedOperation if it is closed; BudgetMismatch if it is somebody else's
        """
        return close(self._budget, self._opening)

    def forecast(self) -> Forecast:
        """Forecast of the day on which the allowance is spent; see `Budget.forecast`."""
        return forecast(self._budget)

    def __repr__(self) -> str:
        pace, record = self._pace, self._record
        end = "" if record.closed is None else f"; closed at {record.closed:%Y-%m-%d %H:%M} UTC"
        if pace.endless:
            return f"Allowance({record.limit}; spent {record.spent}{end})"
        ends = f"{pace.begins(pace.nights):%Y-%m-%d %H:%M}"
        parts = f"{pace.nights} {pace.word}s until {ends} UTC: {self.share} each"
        return f"Allowance({record.limit} over {parts}; spent {record.spent}{end})"


def _opened(budget: account.BudgetAccount, name: str | None) -> Entry | None:
    """The charge of this name that opened an allowance."""
    charges = [] if name is None else budget.entries(name)
    return next((e for e in charges if e.allowance is not None), None)


def _no_part(budget: account.BudgetAccount, name: str) -> InvalidPrice:
    """The refusal of a name alone, where the budget has no part of it."""
    names = [
        str(entry.name).removeprefix("allowance ") for entry in budget.entries() if entry.allowance
    ]
    have = f"; this budget has {', '.join(map(repr, names))}" if names else ""
    return InvalidPrice(
        f"There is no part {name!r} yet{have}.{nearest(name, names)} To make it, give what may be "
        f"spent of it: budget.allocate(name={name!r}, epsilon=1), or by night: "
        "budget.allocate(nights=90, epsilon=2)."
    )


def _other_part(stands: Allowance, name: str, plan: Fields) -> ReleaseMismatch:
    """The refusal of a name whose part has another schedule or price; plan: what was typed."""
    opening, closed, another = stands._opening, stands._record.closed, f"name={name + ' 2'!r}, ..."
    if closed is not None:
        return ReleaseMismatch(
            f"The part {name!r} was closed at {closed:%Y-%m-%d %H:%M} UTC, and a closed part is "
            "not opened again. Nothing was spent. Take another one under a new name: "
            f"budget.allocate({another})."
        )
    lines = "\n".join(f"  {line}" for line in differences(opening.body["plan"], plan))
    return ReleaseMismatch(
        f"The part {name!r} stands: {stands!r}. What was typed differs from what it was opened "
        f"with (before, now):\n{lines}\nNothing was spent. budget.allocate(name={name!r}) opens it "
        f"as it stands. For more, take another part, budget.allocate({another}); a part without "
        f"nights can move some here, part.transfer({name!r}, ...)."
    )


def _begun(per: object, start: object, zone: str | None) -> tuple[dt.datetime | None, Periods]:
    """The typed start, or None; and the periods from then on, or from today's on."""
    clock = dt.UTC if zone is None else read_zone(zone)
    if start is not None:
        begins = read_start(start, clock)
        return begins, Periods.of(begins, per, zone)
    today = (
        account.now().astimezone(clock).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    )
    pace = Periods.of(today, per, zone)
    return None, replace(
        pace, start=(today.replace(day=1) if pace.months else today).astimezone(dt.UTC)
    )


def allocate(
    budget: account.BudgetAccount,
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
        raise InvalidArgument(
            "allocate: name= is a text that is not empty, such as name='nightly'."
        )
    assert isinstance(name, str)
    typed_none = all(value is None for value in (nights, periods, start, zone, *price.values()))
    known = _opened(budget, f"allowance {name}")
    if known is not None and typed_none:
        return Allowance(budget, known)
    if typed_none:
        raise _no_part(budget, name)
    dated = not (isinstance(per, str) and per == "night") or start is not None or zone is not None
    number, carries = read_pace(name, nights, periods, carry, dated=dated)
    begins, pace = _begun(per, start, zone)
    pace.begins(number)  # the end of the last night is a time
    cost, accountant, limit = planned(budget.terms, number, capped=bool(budget.caps), **price)
    typed = {
        argument: written_number(amount, argument)
        for argument, amount in price.items()
        if amount is not None
    }
    place = {} if zone is None else {"zone": zone}
    spread = {"per": str(per), "nights": number, "carry": carries}
    plan = {"allowance": {**spread, "price": typed, **place}}
    if known is not None and known.body["fingerprint"] != fingerprint(plan):
        raise _other_part(Allowance(budget, known), name, plan)
    settings = {
        **spread,
        "start": pace.start.isoformat(),
        "accountant": accountant.name,
        "limit": texts_of(limit),
        **place,
    }
    unit = "periods" if pace.months else "nights"
    length = "no nights" if number == 1 and carries else f"{number} {unit}"
    words = f"allowance {name!r}: {length}"
    opening = budget.open(cost, None, words, name=f"allowance {name}", plan=plan, opens=settings)
    allowance = Allowance(budget, opening)
    began = allowance.pace.periods.start
    if begins is not None and began != begins:
        raise InvalidArgument(
            f"allocate: {name!r} was made before, with the start {began:%Y-%m-%d %H:%M} UTC. Leave "
            "start= out, or give another name."
        )
    return allowance
