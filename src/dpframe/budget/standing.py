"""The book of a budget: its limit, the spent part, the rest, and every charge."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Self

from dpframe.budget.accountants import Accountant
from dpframe.budget.adaptive import MANY, Normal
from dpframe.budget.caps import spenders_of
from dpframe.budget.earlier import priced
from dpframe.budget.entries import Charge, Entry, Failures, line_of, price_of, readable
from dpframe.budget.losses import Loss, Terms
from dpframe.budget.receipts import Book, Standing
from dpframe.usage import Hints, read_whole

_STATUS = {"result": "released", "failure": "failed", "lost": "lost"}
_NO_RELEASE = {"opens": "open", "gives": "given"}


INNER = frozenset(  # of budgets, shares and allowances: what releases and ledgers use
    (
        *(
            "charge",
            "check_subject",
            "each",
            "entries",
            "fail",
            "failures",
            "kept",
            "kept_in",
            "one_by_one",
        ),
        *(
            "open",
            "part",
            "partition",
            "paying",
            "sizes",
            "standing",
            "store",
            "tables",
            "terms",
            "whole",
        ),
    )
)


class BudgetState(Hints):
    """The readable half of a budget: what its book says. `Budget` adds what writes into it."""

    _inner = INNER

    _accountant: Accountant
    _limit: Loss
    _book: Book

    @property
    def whole(self) -> Self:
        """The budget itself; of an allowance, the one that it is a part of."""
        return self

    @property
    def name(self) -> str | None:
        """Its name in its ledger; None for a budget in memory."""
        return self._book.name

    @property
    def accountant(self) -> str:
        """The rule by which losses add up: "basic", "gdp", "zcdp" or "pld"."""
        return self._accountant.name

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon", in "rho", or in "either"."""
        return self._accountant.terms

    @property
    def limit(self) -> Loss:
        """The largest loss of all releases together."""
        return self._limit

    @property
    def spent(self) -> Loss:
        """The loss that has been charged so far."""
        return self._accountant.shown(self._book.spent(), self._limit)

    @property
    def remaining(self) -> Loss:
        """The loss that may still be charged, if no cap is in the way.

        With "gdp" that is the largest ε of one release, and the δ for keys.
        """
        return self._left(self._book.spent())

    @property
    def standing(self) -> Standing:
        """The loss under the account, the sum of the prices, and how many releases still fit."""
        last = None
        for entry in self._book.one_by_one():
            if entry.is_charge and entry.about is None and entry.opens is None:
                last = entry
        with readable(self.name):
            price = (None, None) if last is None else priced(last.body)
        return self._standing(self._book.spent(), *price)

    def _standing(self, total: Loss, price: Loss | None, normal: Normal | None) -> Standing:
        more = None if price is None else self._accountant.more(total, price, self._limit, normal)
        shown = self._accountant.shown(total, self._limit)
        return Standing(self._limit, shown, total.simple or total, more, price)

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of the limit, in the terms in which it buys less noise on a count.

        A name charged for a share keeps its price. Shares that add up to at most 1 are accepted.
        """
        for entry in (
            self._book.entries(name) if name is not None and self.terms is Terms.EITHER else []
        ):
            typed = (entry.body.get("plan") or {}).get("price", {})
            if "share" in typed and Fraction(typed["share"]) == share:
                return price_of(entry.body)
        return self._accountant.part(self._book.spent(), share, self._limit)

    def each(self, number: int) -> Loss:
        """The price of each of so many equal releases that take all that is left; see `plan`."""
        sentence = "budget.plan: n= is the number of releases that are planned, such as n=50."
        releases = read_whole(number, 1, MANY, sentence)
        return self._accountant.each(self._book.spent(), releases, self._limit)

    def sizes(self, counted: Sequence[Loss]) -> list[float]:
        """The ε or ρ of the limit that each charge has used."""
        total = self._book.spent()
        return [float(self._accountant.size(loss, total, self._limit)) for loss in counted]

    def _left(self, spent: Loss) -> Loss:
        return self._accountant.left(spent, self._limit)

    @property
    def spenders(self) -> dict[str, Loss]:
        """The loss of each spender who was named: the simple sum of the prices of the releases."""
        with readable(self.name):
            return spenders_of(self._book.one_by_one())

    def history(self) -> list[Charge]:
        """All charges, oldest first, each with a status: "released", "failed",
        "lost", "pending", "open" or "given".

        >>> import polars as pl, dpframe as dp
        >>> budget = dp.Budget(epsilon=1.0)
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=budget)
        >>> out = frame.count(max_rows=2).release(epsilon=0.25, name="rows")
        >>> [(charge.name, charge.epsilon, charge.status) for charge in budget.history()]
        [('rows', 0.25, 'released')]
        """
        return self._lines(self._book.one_by_one())

    def _lines(self, entries: Iterable[Entry]) -> list[Charge]:
        """The charges among entries, oldest first; one without an answer is held as its line."""
        lines: dict[int | None, Charge] = {}
        with readable(self.name):
            for entry in entries:
                if entry.is_charge:
                    other = next(
                        (word for key, word in _NO_RELEASE.items() if key in entry.body), None
                    )
                    payer = self._paid_by(entry, lines)
                    lines[entry.number] = line_of(entry, other or "pending", payer)
                elif entry.kind in _STATUS and entry.about in lines:
                    line, word = lines[entry.about], _STATUS[entry.kind]
                    lines[entry.about] = (
                        line if line.status in _NO_RELEASE.values() else line._replace(status=word)
                    )
        return list(lines.values())

    def _paid_by(self, entry: Entry, lines: Mapping[int | None, Charge]) -> int | None:
        """The number of the charge that paid for this one, if another one did.

        A period of a series that is measured again is paid by what paid for the series: a part of
        the budget, or the budget itself.
        """
        if not entry.pays_beside:
            return entry.about
        opening = lines.get(entry.about)
        return (
            self._book.entries(number=entry.about)[0].about if opening is None else opening.paid_by
        )

    @property
    def failures(self) -> Failures:
        """The number of failed releases: in all, and since `acknowledge_failures`."""
        return self._book.failures()

    def entries(
        self, name: str | None = None, under: int | None = None, number: int | None = None
    ) -> list[Entry]:
        """Every entry of the book, or those that are sought; see `Book.entries`."""
        return self._book.entries(name, under, number)

    def one_by_one(self, since: dt.datetime | None = None) -> Iterator[Entry]:
        """Every entry, or those from the first one of this time on; see `Book.one_by_one`."""
        return self._book.one_by_one(since)

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of charges that the opening paid for, by the number of the charge."""
        return self._book.tables(opening)
