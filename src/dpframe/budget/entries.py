"""Entries of a budget's book.
Entries are only added, never changed; each has the hash of the entry before it.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dpframe.budget.losses import Loss, number_of
from dpframe.errors import LedgerDamaged
from dpframe.fields import FieldDict, Fields

GENESIS = "0" * 64  # the hash before the first entry

# the status of a charge that has no answer yet, and of which nobody said that it failed or is lost
PENDING = "pending"


# What reading a value raises that dpframe did not write.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error)


@contextmanager
def readable(name: str | None) -> Iterator[None]:
    """Errors: LedgerDamaged in place of the error of a value that cannot be read."""
    damaged = False
    try:
        yield
    except UNREADABLE:
        damaged = True
    if damaged:
        raise LedgerDamaged(
            f"The rows of {name!r} in the ledger hold a value that dpframe does not write: they "
            "were changed. Nothing is released. ledger.verify() names what was changed."
        )


class Charge(NamedTuple):
    """One line of a budget's history: the time (UTC), the release, its price,
    and whether its table was stored.

    `status` is "released" once the table is stored with the charge. It is "failed" if an error was
    raised after the charge, "lost" if somebody marked the release as lost, and "pending" otherwise:
    the release is running, or it was interrupted or killed after it was charged. A charge that pays
    for later lines is "open", such as that of a series. A part of an allowance that was moved to
    another one, or returned to the budget, is "given". `paid_by` is the number of the line that
    paid for this one in advance, and `price` is this line's part of that. So the prices of all
    lines without `paid_by` add up to what was paid. `spender` is who spent it, if that was said,
    and `purpose` what for. `policies` are the policy files that the rows were under, each with its
    hash: "visits.toml, sha256 ...". `by` is the spender, or the user who charged; where a part is
    taken, moved or closed, which a steward may do for a spender, it is the user. `host` and
    `process` say where, so that a release that is running can be told from one that was killed.
    Lines of older ledgers lack these. `supersedes` is the name of the release that this one
    corrects.
    """

    when: dt.datetime
    query: str
    epsilon: float
    delta: float
    rho: float | None = None
    name: str | None = None
    status: str = PENDING
    number: int = 0
    paid_by: int | None = None
    price: Loss | None = None
    spender: str | None = None
    policies: tuple[str, ...] = ()
    purpose: str | None = None
    by: str | None = None
    host: str | None = None
    process: int | None = None
    supersedes: str | None = None


class Failures(NamedTuple):
    """The number of releases that failed after they were charged:
    in all, and since the last acknowledgement.
    """

    failed: int = 0
    unacknowledged: int = 0


class Line:
    """The body of an entry: of a charge that pays for later ones, and of
    one that an earlier one paid for.
    """

    body: Fields

    @property
    def opens(self) -> Fields | None:
        """The settings of the series or of the allowance that a charge pays for in advance."""
        return self.body.get("opens")

    @property
    def allowance(self) -> Fields | None:
        """The settings of the allowance that a charge pays for in advance."""
        return self.opens if "nights" in (self.opens or ()) else None

    @property
    def within(self) -> Fields:
        """The place of a charge in what was paid before, or of what an
        allowance receives; empty without one.
        """
        return self.body.get("within") or {}

    @property
    def part(self) -> Loss | None:
        """Its loss, as part of what was paid before."""
        return loss_of(self.within["loss"]) if "loss" in self.within else None

    @property
    def gives(self) -> bool:
        """Whether a part of an allowance leaves it."""
        return bool(self.body.get("gives"))

    @property
    def given_by(self) -> int | None:
        """The number of the charge that gives what an allowance or the budget receives."""
        return self.body.get("from")


@dataclass(frozen=True)
class Draft(Line):
    """The body of an entry that is not in the book yet."""

    body: Fields


@dataclass(frozen=True)
class Entry(Line):
    """One line of a book.

    `kind` is "open" (the limits), "charge", "result" (the table of a charge), "failure" (an error
    after a charge), "lost" (a pending charge whose answer nobody will see), "acknowledgement" (of
    failures: how many, and by whom), "partition", "caps" (the new ones, and who changed them), or
    "transfer" (what an allowance receives, or is returned to the budget; the charge before it is
    that of the allowance which gives it). Results, failures and losses name their charge by its
    number.
    """

    number: int
    kind: str
    at: str
    body: Fields
    hash: str

    @property
    def when(self) -> dt.datetime:
        """The time at which the entry was written, in UTC."""
        return dt.datetime.fromisoformat(self.at)

    @property
    def is_charge(self) -> bool:
        """Whether it is a charge: of a release, or of what pays for later ones in advance."""
        return self.kind == "charge"

    @property
    def is_release(self) -> bool:
        """Whether it is the charge of a release: it pays for nothing
        later, and no part is moved by it.
        """
        return self.is_charge and self.opens is None and not self.gives

    @property
    def is_transfer(self) -> bool:
        """Whether an allowance receives something, or is closed."""
        return self.kind == "transfer"

    @property
    def receives(self) -> bool:
        """Whether an allowance receives a part of another one."""
        return self.is_transfer and bool(self.within)

    @property
    def closes(self) -> bool:
        """Whether an allowance is closed."""
        return self.is_transfer and not self.within

    def is_member_of(self, opening: int) -> bool:
        """Whether it is a charge that another one paid for in
        advance, or a transfer to that one.
        """
        return self.about == opening and (self.is_charge or self.is_transfer)

    @property
    def about(self) -> int | None:
        """The number of the charge that a result or a failure belongs to, or that
        paid for this charge in advance.
        """
        return self.body.get("about")

    @property
    def price(self) -> Loss:
        """The price of a charge in its own terms, or its part of what was paid before."""
        return price_of(self.body) if self.part is None else self.part

    @property
    def pays_beside(self) -> bool:
        """Whether it is a period of a series that is measured again, at a price of its own."""
        return "period" in self.within and self.price.exact_size > 0

    @property
    def name(self) -> str | None:
        """The name of a charge's release."""
        return self.body.get("name")

    @property
    def spender(self) -> str | None:
        """Who spent a charge."""
        return self.body.get("spender")


def canonical(value: Any) -> str:
    """JSON in a unique spelling, so that equal values have equal hashes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def chained(previous: str, number: int, kind: str, at: str, body: str) -> str:
    """The hash of an entry: that of the JSON of the list of these five, where `body`
    is its own JSON as it is stored.

    So a body that is stored with other blanks or another order has another hash, although it means
    as much.
    """
    head = canonical([previous, number, kind, at])
    return hashlib.sha256(f"{head[:-1]},{body}]".encode()).hexdigest()


def sealed(previous: str, number: int, kind: str, at: str, body: Fields) -> Entry:
    """The entry that follows the entry with the hash `previous`.

    >>> first = sealed(GENESIS, 1, "open", "2026-01-01T00:00:00+00:00", {"accountant": "basic"})
    >>> sealed(first.hash, 2, "charge", first.at, {}).hash == sealed(
    ...     GENESIS, 2, "charge", first.at, {}
    ... ).hash
    False
    """
    return Entry(number, kind, at, body, chained(previous, number, kind, at, canonical(body)))


def digest_of(table: Any) -> str:
    """The digest of a stored table, which its result names; "" for a value that holds no bytes."""
    return hashlib.sha256(table).hexdigest() if isinstance(table, (bytes, memoryview)) else ""


def packed_statement(statement: Fields) -> str:
    """A privacy statement as an entry holds it: compressed, since most
    of it is equal in all releases.

    >>> statement = {"guarantee": "pure differential privacy", "trust_model": "central model"}
    >>> statement_of(
    ...     sealed(GENESIS, 3, "result", "", {"statement": packed_statement(statement)})
    ... ) == statement
    True
    """
    return base64.b64encode(zlib.compress(canonical(statement).encode())).decode()


def statement_of(entry: Entry) -> Fields:
    """The privacy statement of a result."""
    words: Fields = json.loads(zlib.decompress(base64.b64decode(entry.body["statement"])))
    return words


def loss_json(loss: Loss) -> dict[str, float]:
    """A loss as JSON: ε or ρ, and δ."""
    return {
        **({"epsilon": loss.epsilon} if loss.rho is None else {"rho": loss.rho}),
        "delta": loss.delta,
    }


def texts_of(loss: Loss) -> FieldDict:
    """A loss as a dict of texts, each an exact fraction.

    >>> texts_of(Loss.charged(Fraction(1, 3), Fraction(0)))
    {'epsilon': '1/3', 'delta': '0/1', 'rho': None}
    """
    rho = None if loss.exact_rho is None else fraction_text(loss.exact_rho)
    parts = {"mu_squared": loss.mu_squared, "split": loss.split}
    more: FieldDict = {
        name: fraction_text(part) for name, part in parts.items() if part is not None
    }
    more |= {
        name: texts_of(part)
        for name, part in (("before", loss.before), ("simple", loss.simple))
        if part
    }
    return {
        "epsilon": fraction_text(loss.exact_epsilon),
        "delta": fraction_text(loss.exact_delta),
        "rho": rho,
        **more,
    }


def fraction_text(number: Fraction) -> str:
    """An exact number as text."""
    return f"{number.numerator}/{number.denominator}"


def loss_of(texts: Fields) -> Loss:
    """A loss from its texts. Errors: ValueError for what is no fraction.

    >>> loss_of({"epsilon": "1/3", "delta": "0/1", "rho": None})
    Loss(epsilon=0.3333333333333333, delta=0.0)
    """
    rho = None if texts["rho"] is None else fraction_of(texts["rho"])
    mu_squared, split = (
        fraction_of(texts[name]) if name in texts else None for name in ("mu_squared", "split")
    )
    before, simple = (
        loss_of(texts[name]) if name in texts else None for name in ("before", "simple")
    )
    loss = Loss(fraction_of(texts["epsilon"]), fraction_of(texts["delta"]), rho)
    split = None if split == 1 else split  # as a ledger wrote it while prices added up
    return replace(loss, mu_squared=mu_squared, split=split, before=before, simple=simple)


def price_of(body: Fields) -> Loss:
    """The price of a charge in its own terms, from the body of its entry.
    An account may count another loss for it.
    """
    return loss_of(body.get("price", body["loss"]))


def fraction_of(text: str | None) -> Fraction:
    """The number of such a text; None is 0. Errors: ValueError."""
    above, below = (text or "0/1").split("/")
    return Fraction(int(above), int(below))


def as_read_now(loss: Loss) -> Loss:
    """A limit that was read as the shortest decimals of floats, as these floats are read now.

    >>> as_read_now(Loss.limit(Fraction("0.3333333333333333"), Fraction(0))) == Loss.limit(
    ...     Fraction(1, 3), Fraction(0)
    ... )
    True
    """
    rho = None if loss.exact_rho is None else number_of(float(loss.exact_rho))
    return Loss(
        number_of(float(loss.exact_epsilon)),
        number_of(float(loss.exact_delta)),
        rho,
        left=loss.left,
    )


def line_of(entry: Entry, status: str, payer: int | None) -> Charge:
    """The line of the history for a charge's entry, and the charge that paid for it beforehand."""
    body, loss = entry.body, entry.price
    return Charge(
        entry.when,
        body["query"],
        loss.epsilon,
        loss.delta,
        loss.rho,
        entry.name,
        status,
        entry.number,
        paid_by=payer,
        price=entry.part,
        spender=entry.spender,
        policies=tuple(
            f"{file['file']}, sha256 {file['sha256']}" for file in body.get("policies", ())
        ),
        supersedes=((body.get("plan") or {}).get("supersedes") or {}).get("name"),
        **{name: body.get(name) for name in ("purpose", "by", "host", "process")},
    )
