"""Caps: the most that one release, one spender, a day, a week or a month may
cost, beside a budget's limit.

A cap only refuses, so it makes no guarantee weaker. What is added up is the simple sum of the
releases' own prices, whatever the accountant makes of them together: ε with ε, δ with δ, ρ with ρ.
In a budget that takes both, a price in ρ counts under a cap of ε as the ε that it implies at the δ
of the whole budget. A release about one part of a partition and one within an allowance count at
their own price. A series counts once, when it is paid. An allowance is no release: it counts for
the spender who takes it, in full and at once, since nobody else can spend that part any more, and
what it pays for counts for no spender again; what is moved to another's or returned is taken off
again. A stored answer is free and counts for nobody.

Sums are kept in the row and the entries of a budget, and are read and written in the transaction of
the charge. Periods are those of a calendar in a time zone. A sum belongs to the latest period that
was seen: a clock that is set back does not begin a period anew.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from dpframe.budget.entries import Draft, Entry, Line, loss_of, price_of, texts_of
from dpframe.budget.losses import Loss, Terms, kept, read_delta, read_epsilon, read_rho
from dpframe.budget.periods_of_time import read_zone
from dpframe.errors import CapExceeded, InvalidArgument, UnsupportedOperation, kind_of
from dpframe.fields import FieldDict, Fields
from dpframe.theory.formulas.loss import zcdp_to_epsilon
from dpframe.usage import Hints

if TYPE_CHECKING:
    from dpframe.budget.receipts import Page

PERIODS = ("day", "week", "month")
_RELEASE, _SPENDER = "release", "spender"  # caps that are not about a period
NAMES = (_RELEASE, _SPENDER, *PERIODS)
_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
_READ = {"epsilon": read_epsilon, "delta": read_delta, "rho": read_rho}
Recorded = Fields  # {"zone": "UTC", "day": {"epsilon": "1/2"}, ...}: caps as an entry records them
State = Fields  # {"caps": Recorded, "periods": {"day": {"of": "2026-11-23", "spent": texts}, ...}}


class Caps(Hints):
    """The most that releases may cost:
    `ledger.budget("orders", epsilon=10, caps=dp.Caps(release=0.5, day=1))`.

    Input:  release: one release; spender: all releases of one spender, see `Ledger.budget`; day,
            week, month: all releases of a calendar day, of a week from Monday on, of a calendar
            month. Each is a number, ε in a budget of ε and ρ in one of ρ, or a dict such as
            {"epsilon": 1, "delta": 1e-7}, also with "rho". An amount that is not named has no cap,
            but for ε and ρ: a cap of ρ refuses prices in ε, and a cap of ε counts the ε that a ρ
            implies, or refuses it where the budget has no δ for that. zone: the time zone of the
            calendar, such as "Europe/Vienna"
    Bound:  the prices of the releases add up to at most each cap, by simple addition; caps refuse
            and do nothing else
    Errors: InvalidArgument, InvalidPrice

    >>> Caps(release=0.5, day={"epsilon": 1, "delta": 1e-7})
    Caps(release=0.5, day={'epsilon': 1, 'delta': 1e-07})
    """

    def __init__(
        self,
        *,
        release: object = None,
        spender: object = None,
        day: object = None,
        week: object = None,
        month: object = None,
        zone: str = "UTC",
    ) -> None:
        typed = zip(NAMES, (release, spender, day, week, month), strict=True)
        self._typed = {name: amount for name, amount in typed if amount is not None}
        self._zone = zone
        if not self._typed:
            raise InvalidArgument(
                "Caps: name at least one, such as dp.Caps(release=0.5) or dp.Caps(day=1)."
            )
        read_zone(zone)
        self.recorded(Terms.EPSILON)  # so that a wrong amount is refused here

    def recorded(self, terms: Terms) -> FieldDict:
        """The caps as an entry records them, in exact fractions;
        a number is counted in the terms of the budget.
        """
        return {
            "zone": self._zone,
            **{name: _amounts(name, typed, terms) for name, typed in self._typed.items()},
        }

    def __repr__(self) -> str:
        zone = "" if self._zone == "UTC" else f", zone={self._zone!r}"
        return (
            f"Caps({', '.join(f'{name}={amount!r}' for name, amount in self._typed.items())}{zone})"
        )


def read_caps(typed: object, terms: Terms) -> FieldDict | None:
    """Caps as they were typed: `dp.Caps(...)`, or a mapping of the same arguments.
    Errors: InvalidArgument.
    """
    match typed:
        case None:
            return None
        case Mapping():
            unknown = [name for name in typed if name not in (*NAMES, "zone")]
            if unknown:
                raise InvalidArgument(
                    f"caps: there is no cap {unknown[0]!r}; there are {', '.join(NAMES)}, and zone."
                )
            return Caps(**typed).recorded(terms)
        case Caps():
            return typed.recorded(terms)
    raise InvalidArgument(
        f"caps= takes dp.Caps(release=0.5, day=1), or a dict of these, not {kind_of(typed)}."
    )


def _amounts(name: str, typed: object, terms: Terms) -> dict[str, str]:
    """The amounts of one cap, as exact fractions. Errors: InvalidArgument, InvalidPrice."""
    parts = (
        typed if isinstance(typed, Mapping) else {"rho" if terms is Terms.RHO else "epsilon": typed}
    )
    if not parts or not set(parts) <= set(_READ) or set(parts) == {"delta"}:
        raise InvalidArgument(
            f"caps: {name}= is a number, or a dict such as {{'epsilon': 1, 'delta': 1e-7}}."
        )
    amounts = {part: _READ[part](amount) for part, amount in parts.items()}
    return {part: f"{amount.numerator}/{amount.denominator}" for part, amount in amounts.items()}


# Periods of the calendar, each by the local date of its first day


def _first_day(period: str, day: dt.date) -> dt.date:
    match period:
        case "week":
            return day - dt.timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
    return day


def _frees(period: str, first: dt.date, zone: zoneinfo.ZoneInfo) -> dt.datetime:
    """When the period after the one of a first day begins, in UTC:
    at midnight there, or when that night is skipped.
    """
    following = _first_day(
        period, first + dt.timedelta(days={"day": 1, "week": 7, "month": 32}[period])
    )
    return dt.datetime.combine(following, dt.time(), zone).astimezone(dt.UTC)


# Sums


def begun(recorded: Recorded | None) -> State | None:
    """The state of a budget with these caps, of which nothing was spent yet."""
    return None if recorded is None else {"caps": {**recorded}, "periods": {}}


def changed(state: State | None, recorded: Recorded, at: dt.datetime | None) -> State:
    """The state after a change of the caps. Sums are kept.

    Input:  at: the time of a change by whoever runs the ledger. A period that lies ahead of this
            clock, since a clock was once too far ahead, ends here; its sum is kept too. None for a
            change by a release, which ends none
    Errors: UnsupportedOperation for another time zone
    """
    if state is not None and state["caps"]["zone"] != recorded["zone"]:
        raise UnsupportedOperation(
            f"change_caps: the time zone of these caps stays {state['caps']['zone']!r}."
        )
    zone, periods = read_zone(recorded["zone"]), {} if state is None else state["periods"]
    return {
        "caps": {**recorded},
        "periods": {
            name: sums
            if at is None
            else {
                **sums,
                "of": min(sums["of"], _first_day(name, at.astimezone(zone).date()).isoformat()),
            }
            for name, sums in periods.items()
        },
    }


def replaced(state: State | None, recorded: Recorded) -> Recorded:
    """The caps of a state, of which some amounts are others from now on; the time zone stays."""
    if state is None:
        return recorded
    named = {
        name: {**state["caps"].get(name, {}), **recorded[name]}
        for name in NAMES
        if name in recorded
    }
    return {**state["caps"], **named}


def own_price(line: Line) -> Loss:
    """The loss of a charge under the caps of a release and of periods.
    An allowance counts when it is spent.
    """
    if line.allowance is not None or line.gives or line.given_by is not None:
        return Loss.none()
    if "capped" in line.body:
        return loss_of(line.body["capped"])
    return line.part or loss_of(line.body.get("price") or line.body.get("part", line.body)["loss"])


def spender_price(line: Line) -> Loss:
    """The loss of a charge for its spender: an allowance once, when it is
    taken; all else as under other caps.

    What moves from the allowance of one spender to that of another is taken off the first one's sum
    and counts for the second one.
    """
    held = line.within.get("held")
    if line.allowance is not None:
        return price_of(line.body)
    if held and (line.gives or line.given_by is not None):
        amount = loss_of(line.within["loss"] if held is True else held)
        return Loss.none() - amount if line.gives else amount
    return Loss.none() if held else own_price(line)


class Cap(NamedTuple):
    """One cap of a budget now: the most, what is spent of it, and when the period ends (UTC).

    `cap` is "release", "spender", "day", "week" or "month"; `spender` is whose sum it is, for the
    cap of a spender. `frees` is None for what does not begin anew.
    """

    cap: str
    spender: str | None
    most: str
    spent: Loss
    frees: dt.datetime | None

    def __str__(self) -> str:
        if self.cap == _RELEASE:
            return f"{self.most} at most for one release"
        whose = f"a {self.cap}" if self.spender is None else f"the spender {self.spender!r}"
        anew = f"; begins anew at {self.frees:%Y-%m-%d %H:%M} UTC" if self.frees else ""
        return f"{self.most} at most of {whose}: {self.spent} spent{anew}"


@dataclass(frozen=True)
class CapSums:
    """The losses under each cap before a charge."""

    caps: Recorded
    spent: Mapping[str, Loss]
    first: Mapping[str, dt.date]

    @classmethod
    def of(cls, state: State, by_spender: Loss, at: dt.datetime) -> CapSums:
        """The sums before a charge at a time, by a spender who has spent this much."""
        zone, nothing = read_zone(state["caps"]["zone"]), Loss.none()
        spent, first = {_RELEASE: nothing, _SPENDER: by_spender}, {}
        for name in PERIODS:
            now, sums = _first_day(name, at.astimezone(zone).date()), state["periods"].get(name)
            before = now if sums is None else dt.date.fromisoformat(sums["of"])
            first[name] = max(now, before)  # a clock that is set back begins no period
            spent[name] = loss_of(sums["spent"]) if sums is not None and before >= now else nothing
        return cls(state["caps"], spent, first)

    def after(self, price: Loss) -> State:
        """The state after a charge."""
        periods = {
            name: {"of": self.first[name].isoformat(), "spent": texts_of(self.spent[name] + price)}
            for name in PERIODS
        }
        return {"caps": self.caps, "periods": periods}

    def exceeded(self, price: Loss, by_spender: Loss) -> list[str]:
        """The names of the caps that a charge would exceed.
        Input: its price, and what counts for its spender.
        """
        prices = {
            name: by_spender if name == _SPENDER else price for name in NAMES if name in self.caps
        }
        return [
            name
            for name, own in prices.items()
            if _parts(own, positive=True)
            and not _within(self.spent[name] + own, own, _most(self.caps, name))
        ]

    def frees(self, name: str) -> dt.datetime | None:
        """When a cap begins anew."""
        return (
            _frees(name, self.first[name], read_zone(self.caps["zone"]))
            if name in PERIODS
            else None
        )

    def fits(self) -> str:
        """The largest price that fits under every cap, as it is typed."""
        left: dict[str, list[Fraction]] = {}
        for name in NAMES:
            for part, amount in _most(self.caps, name).items():
                spent = _parts(self.spent[name]).get(part, Fraction(0))
                left.setdefault(part, []).append(max(amount - spent, Fraction(0)))
        if not any(min(amounts) for amounts in left.values()):
            return "nothing"
        return ", ".join(f"{part}={_shown(min(amounts))}" for part, amounts in left.items())


def _most(caps: Recorded, name: str) -> dict[str, Fraction]:
    amounts = caps.get(name, {})
    return {part: Fraction(amounts[part]) for part in _SIGNS if part in amounts}


def _parts(loss: Loss, *, positive: bool = False) -> dict[str, Fraction]:
    parts = {
        "epsilon": loss.exact_epsilon,
        "delta": loss.exact_delta,
        "rho": loss.exact_rho or Fraction(0),
    }
    return {part: amount for part, amount in parts.items() if amount > 0 or not positive}


def _within(total: Loss, price: Loss, most: Mapping[str, Fraction]) -> bool:
    """Whether a sum is within a cap that counts each amount of the price, δ only if it is named."""
    sums = _parts(total)
    return not _uncounted(price, most) and all(
        sums[part] <= amount for part, amount in most.items()
    )


def _shown(amount: Fraction) -> str:
    return repr(Loss.limit(amount, Fraction(0)).epsilon)


def _words(amounts: Mapping[str, Fraction]) -> str:
    return ", ".join(
        f"{_SIGNS[part]} = {_shown(amount).removesuffix('.0')}" for part, amount in amounts.items()
    )


def needs_spender(state: State, price: Loss) -> bool:
    """Whether a charge must say who spends: it costs something, and spenders have a cap."""
    return _SPENDER in state["caps"] and bool(_parts(price, positive=True))


def tightened(state: State | None, more: Fields) -> Recorded:
    """The caps of a budget and others together: of each amount the smaller one.

    A cap that names ε alone refuses prices in ρ, and the other way round. So of two caps, ε and ρ
    are allowed where both name them; where they have none in common, nothing is.
    """
    now: Recorded = {"zone": "UTC"} if state is None else state["caps"]
    both = {name: {**now.get(name, {})} for name in NAMES}
    for name, typed in more.items():
        theirs, own = _amounts(name, typed, Terms.EPSILON), both[name]
        named = (
            (set(own) & set(theirs)) | ({"delta"} & (set(own) | set(theirs)))
            if own
            else set(theirs)
        )
        both[name] = {
            part: min(own.get(part, amount), amount, key=Fraction)
            for part in sorted(named)
            for amount in [theirs.get(part) or own[part]]
        }
        if not named - {"delta"}:
            both[name]["epsilon"] = "0/1"
    return {"zone": now["zone"], **{name: parts for name, parts in both.items() if parts}}


def adopted(page: Page, policies: Iterable[Fields]) -> list[FieldDict]:
    """Take over the caps of the policy files that a charge is under;
    those of the budget stay where they are stricter.

    Output: the entries that record it, for a charge that is not refused
    Bound:  caps only become stricter by this, for all who charge the budget
    """
    entries = []
    for policy in policies:
        recorded = tightened(page.caps, policy.get("caps", {}))
        if policy.get("caps") and (page.caps is None or recorded != page.caps["caps"]):
            page.caps = changed(page.caps, recorded, None)
            entries.append({"caps": recorded, "by": policy["file"], "adopted": True})
    return entries


def enter(page: Page, body: FieldDict, at: dt.datetime, slack: Fraction) -> None:
    """Hold a charge against the caps, and add its own price to the sums of the
    page and to the body of its entry.

    Input:  slack: the δ at which a price in ρ has an ε; 0 where it has none
    Errors: CapExceeded; InvalidArgument without a spender where spenders have a cap
    """
    entries = adopted(page, body.get("policies", ()))
    line, spender = Draft(body), body.get("spender")
    price = own_price(line)
    if price.exact_rho and slack:
        price = replace(
            price, exact_epsilon=kept(Fraction(zcdp_to_epsilon(price.exact_rho, slack)), ceil)
        )
        body["capped"] = texts_of(price)
    by_spender, held = Loss.none(), spender_price(line)
    if spender is not None:
        latest = page.latest_of(spender)
        by_spender = by_spender if latest is None else loss_of(latest.body["by_spender"])
        body["by_spender"] = texts_of(by_spender + held)
    if page.caps is None:
        return
    if spender is None and needs_spender(page.caps, held):
        raise InvalidArgument(
            "This budget has a cap for each spender, so a release says who spends, and an "
            "allowance who takes it. Nothing was spent. Type release(..., spender='ana'), or for "
            "all that follows ledger.budget(..., spender='ana') or budget.for_spender('ana')."
        )
    sums = CapSums.of(page.caps, by_spender, at)
    over = sums.exceeded(price, held)
    if over:
        refuse(sums, over, held if over == [_SPENDER] else price, spender)
    for entry in entries:
        page.append("caps", entry, at)
    page.caps = sums.after(price)


def refuse(sums: CapSums, over: list[str], price: Loss, spender: str | None) -> None:
    """Errors: CapExceeded, which says which caps are in the way, and what fits."""
    lines = []
    for name in over:
        most, whose = _most(sums.caps, name), f" {spender!r}" if name == _SPENDER else ""
        uncounted = _uncounted(price, most)
        frees = sums.frees(name)
        spent = "" if name == _RELEASE else f", of which {_named(sums.spent[name], most)} is spent"
        lines.append(
            f"The cap of {'one' if name == 'release' else 'a' if name in PERIODS else 'the'} "
            f"{name}{whose} is {_words(most)}{spent}."
            + (f" It counts no price in {_SIGNS[uncounted.pop()]}." if uncounted else "")
            + (f" It begins anew at {frees:%Y-%m-%d %H:%M} UTC." if frees else "")
        )
    raise CapExceeded(
        f"This costs {price}. {' '.join(lines)} Nothing was spent. What fits under every cap now: "
        f"{sums.fits()}.",
        cap=over[0],
        spent=sums.spent[over[0]],
        frees=sums.frees(over[0]),
    )


def lines_of(state: State, spenders: Mapping[str, Loss], at: dt.datetime) -> Iterator[Cap]:
    """Every cap with what is spent of it now; that of spenders has a line for each of them."""
    sums = CapSums.of(state, Loss.none(), at)
    for name in (name for name in NAMES if name in sums.caps):
        most = _most(sums.caps, name)
        if name == _SPENDER:
            yield from (
                Cap(name, who, _words(most), _named(spent, most), None)
                for who, spent in spenders.items()
            )
        if name != _SPENDER or not spenders:
            yield Cap(name, None, _words(most), _named(sums.spent[name], most), sums.frees(name))


def _named(spent: Loss, most: Mapping[str, Fraction]) -> Loss:
    """The spent part of the amounts that a cap counts, and of δ."""
    epsilon = spent.exact_epsilon if "epsilon" in most else Fraction(0)
    return replace(
        spent, exact_epsilon=epsilon, exact_rho=spent.exact_rho if "rho" in most else None
    )


def _uncounted(price: Loss, most: Mapping[str, Fraction]) -> set[str]:
    """The amounts of a price, but for δ, if a cap names none of them."""
    amounts = set(_parts(price, positive=True)) - {"delta"}
    return set() if amounts & set(most) else amounts


def spenders_of(entries: Iterable[Entry]) -> dict[str, Loss]:
    """The loss of each spender, by simple addition of the prices."""
    last = {
        entry.spender or "": entry.body["by_spender"]
        for entry in entries
        if "by_spender" in entry.body
    }
    return {spender: loss_of(texts) for spender, texts in last.items()}
