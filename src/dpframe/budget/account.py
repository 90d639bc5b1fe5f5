"""The account of a budget, with the one function through which every charge passes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

from dpframe.budget.accountants import Accountant
from dpframe.budget.adaptive import Normal
from dpframe.budget.caps import Cap, enter, lines_of
from dpframe.budget.earlier import (
    check_failures,
    ended,
    entered,
    is_pending,
    known,
    noted,
    stored_answer,
    was_killed,
)
from dpframe.budget.entries import (
    PENDING,
    Charge,
    Entry,
    Failures,
    digest_of,
    line_of,
    packed_statement,
    texts_of,
)
from dpframe.budget.exceeded import another_subject, exceeded, is_misnamed, second_budget
from dpframe.budget.losses import Loss, Terms
from dpframe.budget.names import Payer, body_of, fingerprint, is_text, looked
from dpframe.budget.parts import PartName, opened, raised
from dpframe.budget.receipts import Book, Page, Receipt, Stored, Within
from dpframe.budget.standing import BudgetState
from dpframe.errors import (
    BudgetExceeded,
    BudgetMismatch,
    InvalidArgument,
    LedgerError,
    ReleaseLost,
    UnsupportedOperation,
)
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits
from dpframe.safe_text import visible
from dpframe.usage import check_flags, is_integer, warn

UNKNOWN_EVENT: Fields = {"class_name": "UnsupportedDpEvent", "fields": {}}


def now() -> dt.datetime:
    """The time on this machine's clock, in UTC."""
    return dt.datetime.now(dt.UTC)


class BudgetAccount(BudgetState):
    """The half of a budget that is charged.
    `Budget` adds how one is made and divided, and what is asked with it.
    """

    def _open(
        self, accountant: Accountant, limit: Loss, book: Book, payer: Payer | None = None
    ) -> None:
        self._accountant, self._limit, self._book, self._payer = (
            accountant,
            limit,
            book,
            payer or Payer(),
        )

    @classmethod
    def kept_in(cls, book: Book, accountant: Accountant, limit: Loss, payer: Payer) -> Self:
        """A budget whose entries are in another book, such as that of a ledger."""
        budget = cls.__new__(cls)
        budget._open(accountant, limit, book, payer)
        return budget

    def for_spender(self, spender: str | None, purpose: str | None = None) -> Self:
        """The same budget, where one spender spends all that is charged, for a purpose.
        Nothing proves who it is.
        """
        typed = Payer.of(spender, purpose)
        payer = Payer(typed.spender or self._payer.spender, typed.purpose or self._payer.purpose)
        return self.kept_in(self._book, self._accountant, self._limit, payer)

    @property
    def spender(self) -> str | None:
        """Who spends what is charged by this object, if that was said."""
        return self._payer.spender

    @property
    def caps(self) -> list[Cap]:
        """Each cap with what is spent of it now, and when it begins anew;
        that of spenders once for each spender.

        >>> import dpframe as dp
        >>> [
        ...     (cap.cap, cap.most, cap.spent)
        ...     for cap in dp.Budget(epsilon=5, caps={"release": 0.5}).caps
        ... ]
        [('release', 'ε = 0.5', Loss(epsilon=0.0, delta=0.0))]
        """
        state = self._book.caps()
        spenders = self.spenders if state is not None and "spender" in state["caps"] else {}
        return [] if state is None else list(lines_of(state, spenders, now()))

    # Paying

    def charge(
        self,
        loss: Loss,
        subject: str,
        query: str,
        *,
        name: str | None = None,
        plan: Fields | None = None,
        refresh: bool = False,
        retry: bool = False,
        wait: bool = False,
        batch: bool = False,
        events: Sequence[Fields] = (UNKNOWN_EVENT,),
        part: PartName | None = None,
        within: Within | None = None,
        policies: Sequence[Fields] = (),
        normal: Normal | None = None,
    ) -> Receipt:
        """Charge a release, or refuse it and change nothing; the stored answer of a name is free.

        Input:  loss: the price of one release; subject: whose privacy it is (unit and neighbour
                relation); query: the release in public words; name and plan: the release's name and
                a description of it without data; refresh: whether to pay again for a name; retry:
                for one that is pending or failed; wait: for one whose process on this machine was
                killed, see `patient`; batch: whether it is the loss of several queries, all fixed
                beforehand; events: the mechanisms, by their names in dp-accounting; part: the part
                of a partition it is about; within: the earlier charge that paid for this release,
                if there is one; policies: see `body_of`; normal: facts besides its price
        Errors: BudgetMismatch for another subject; BudgetExceeded; CapExceeded; ReleaseMismatch;
                ReleasePending; FailuresUnacknowledged; UnsupportedOperation
        """
        self._check_call(name, refresh, batch=batch)
        if self.terms is Terms.RHO and loss.exact_rho is None and within is None:
            loss = loss + Loss.none(in_rho=True)
        body = body_of(loss, subject, query, name, plan, events, policies)
        with self._book.write() as page:
            at = now()
            opening = None if within is None else within.opening.body
            body |= self._payer.described(page.role, opening)
            self._check_subject(page.subject, subject)
            earlier = known(page, body)
            retry = retry or (wait and earlier is not None and was_killed(page, earlier))
            answer = self._answered(page, earlier, loss, within, refresh=refresh, retry=retry)
            if answer is not None:
                return answer
            check_failures(page)
            price, again = loss, earlier is not None
            if within is not None:
                loss, price, again = entered(page, body, within, loss, again=again, retry=retry)
            charged = self._counted(page, price, None if within else normal, body)
            total = self._enter(page, body, charged, loss, at, part)
            page.subject = subject
            if retry and earlier is not None and is_pending(page, earlier.number):
                page.append("lost", {"about": earlier.number, "by": looked(None, page.role)}, at)
            previous, failures = page.head, page.failures
            entry = page.append("charge", body, at)
        standing = self._standing(total, loss, normal) if self.terms is Terms.EITHER else None
        paid = entry.number, entry.when, loss, self._left(total), None
        chain = entry.hash, previous, entry.spender
        return Receipt(*paid, failures, again, standing, *chain)

    def _answered(
        self,
        page: Page,
        earlier: Entry | None,
        loss: Loss,
        within: Within | None,
        *,
        refresh: bool,
        retry: bool,
    ) -> Receipt | None:
        """The stored answer of a name; None where it is paid, or paid again."""
        if earlier is None or refresh or (retry and page.result(earlier.number) is None):
            return None
        price = within.again(loss) if within else loss
        return stored_answer(page, earlier, self._left(page.spent), price)

    def _enter(
        self,
        page: Page,
        body: FieldDict,
        counted: Loss,
        price: Loss,
        at: dt.datetime,
        part: PartName | None = None,
    ) -> Loss:
        """Add a charge to the sums of the page, if the limit and the caps allow it.
        Output: the sum of losses.
        """
        if part is not None:
            body["part"] = {**vars(part), "loss": texts_of(counted)}
            counted, page.parts = raised(page.parts, part, counted)
        body["loss"] = texts_of(counted)
        total = self._within_limit(page, counted, price)
        enter(
            page, body, at, self._limit.exact_delta if self.terms is Terms.EITHER else Fraction(0)
        )
        page.spent = total
        return total

    def _counted(self, page: Page, price: Loss, normal: Normal | None, body: FieldDict) -> Loss:
        """The loss that the accountant counts for a price; the body of the entry gets both."""
        counted = self._accountant.charged(page.spent, price, self._limit, normal)
        body |= noted(price, counted, normal)
        return counted

    def open(
        self,
        loss: Loss,
        subject: str | None,
        query: str,
        *,
        name: str,
        plan: Fields,
        opens: Fields,
        policies: Sequence[Fields] = (),
        within: Within | None = None,
    ) -> Entry:
        """Charge once, in advance, for later charges.
        If the name was charged before, return that charge for free.

        Input:  loss: of all later charges together; subject: None if it is not known yet; query,
                policies: as in `charge`; name and plan: the name and description; opens: the
                settings that later charges need; within: the allowance that pays for it, if one
                does
        Output: the charge; its `body["opens"]` holds the settings of the first call
        Bound:  the later charges are one interactive mechanism of this loss. Other mechanisms are
                charged while it runs. Losses in (ε, δ) and in ρ add up in this case too, in any
                order of questions
        Source: Vadhan, Wang 2021, arXiv:2105.14427, Lyu 2022, arXiv:2207.09397, and Vadhan, Zhang
                2023, arXiv:2207.08335, for concurrent composition
        Errors: as `charge`
        """
        self._check_call(name, False, batch=False)
        body = {
            **body_of(loss, subject or "", query, name, plan, (UNKNOWN_EVENT,), policies),
            "opens": {**opens},
        }
        with self._book.write() as page:
            at, paid = now(), None if within is None else within.opening.body
            body |= self._payer.acting(page.role, paid)
            if subject is not None:
                self._check_subject(page.subject, subject)
            earlier = known(page, body)
            if earlier is not None:
                return earlier
            check_failures(page)
            price = (
                loss
                if within is None
                else entered(page, body, within, loss, again=False, retry=False)[1]
            )
            self._enter(page, body, self._counted(page, price, None, body), loss, at, None)
            page.subject = page.subject if subject is None else subject
            return page.append("charge", body, at)

    def _check_call(self, name: str | None, refresh: bool, *, batch: bool) -> None:
        """Errors: UnsupportedOperation, InvalidArgument."""
        if self._accountant.refuses_single and not batch:
            raise UnsupportedOperation(
                f"accountant={self.accountant!r}: {self._accountant.refuses_single}"
            )
        if name is not None and not is_text(name):
            raise InvalidArgument(
                "name= is a text that is not empty, such as name='visits by city, 2026-03'."
            )
        check_flags("refresh= is True or False.", refresh)
        if refresh and name is None:
            raise InvalidArgument(
                "refresh=True pays again for a named release; give its name: name='...'."
            )

    def _within_limit(self, page: Page, counted: Loss, price: Loss) -> Loss:
        """The sums after a charge. Errors: BudgetExceeded."""
        total = self._accountant.total([page.spent, counted])
        if self._accountant.allows(total, self._limit):
            return total
        raise BudgetExceeded(exceeded(price, self._limit, self._left(page.spent)))

    def partition(self, plan: Fields, groups: int) -> tuple[str, str]:
        """Record a partition of a table, unless it is recorded already.

        Input:  plan: a description of the partition without data; groups: the largest number of
                parts of one unit
        Output: the partition's fingerprint, and the salt of the hash that chooses the parts of a
                unit
        Errors: UnsupportedOperation for a budget of batches
        """
        if self._accountant.refuses_single:
            raise UnsupportedOperation(
                f"partition: not with accountant={self.accountant!r}; use 'basic' or 'zcdp'."
            )
        name = fingerprint(plan)
        with self._book.write() as page:
            if name not in page.parts:
                page.parts = opened(page.parts, name, groups, bits.random_salt())
                line = {
                    "partition": name,
                    "groups": groups,
                    "salt": page.parts[name]["salt"],
                    "plan": {**plan},
                }
                page.append("partition", line, now())
            return name, page.parts[name]["salt"]

    def store(self, receipt: Receipt, data: bytes, statement: Fields) -> Stored:
        """Store the released table with its charge. Before that, nobody may see it.

        Errors: LedgerError; ReleaseLost if the charge was marked as lost in the meantime
        """
        body = {
            "about": receipt.number,
            "statement": packed_statement(statement),
            "digest": digest_of(data),
        }
        with self._book.write() as page:
            if page.is_lost(receipt.number):
                raise ReleaseLost(
                    "This release was marked as lost while it ran, and may have been paid again "
                    "elsewhere. Its answer is not stored, and nobody sees it."
                )
            entry = page.append("result", body, now(), data)
        return Stored(data, statement, entry.when)

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge, before anybody sees the error.
        Errors: LedgerError.

        One row may cause an error, and no noise hides that. An attacker could pay 1e-9 for each of
        many questions that fail on a certain row, and learn one bit from each. So failures are in
        the history and in every later statement. After `UNACKNOWLEDGED` failures, charges are
        refused until somebody acknowledges them. Failures are counted for the whole budget, since
        it protects one unit: another file name or another copy of a table is still about these
        people. The number is read under the lock of a charge, so several processes cannot get
        around the limit.
        """
        with self._book.write() as page:
            failed, unacknowledged = page.failures
            page.failures = Failures(failed + 1, unacknowledged + 1)
            page.append("failure", {"about": receipt.number}, now())

    def resolve(self, release: str | int, by: str | None = None) -> Charge:
        """Mark a pending release as lost, so that its name may be paid again. Its charge stays.

        Input:  release: its name, or the number of its charge in `history()`; by: who marks it as
                lost
        Output: the charge
        Bound:  a release that is still running cannot store its answer after this, so nobody sees
                two answers for one charge
        Errors: InvalidArgument if there is no charge of this name or number, or if it is not
                pending

        >>> import dpframe as dp
        >>> dp.Budget(epsilon=1).resolve("visits 11")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dpframe.errors.InvalidArgument: resolve: no release 'visits 11' was charged to this ...
        """
        if not is_text(release) and not is_integer(release):
            raise InvalidArgument(
                "resolve: give the name of a release, or the number of its charge in history()."
            )
        if by is not None and not is_text(by):
            raise InvalidArgument(
                "by= is the name of whoever marks it as lost: budget.resolve('visits', by='Ada')."
            )
        if isinstance(release, str):
            sought = self._book.entries(name=release)
        else:
            sought = self._book.entries(number=int(release))
        charges = [entry for entry in sought if entry.is_release]
        earlier = charges[-1] if charges else None
        if earlier is None:
            pending = [
                line.name or line.number for line in self.history() if line.status == PENDING
            ]
            more = (
                f" Pending are {', '.join(map(repr, pending))}." if pending else " None is pending."
            )
            raise InvalidArgument(
                f"resolve: no release {release!r} was charged to this budget.{more}"
            )
        with self._book.write() as page:
            if not is_pending(page, earlier.number):
                raise InvalidArgument(
                    f"resolve: release {release!r} is not pending: {ended(page, earlier.number)}."
                )
            page.append("lost", {"about": earlier.number, "by": looked(by, page.role)}, now())
        return line_of(earlier, "lost", self._paid_by(earlier, {}))

    def acknowledge_failures(self, by: str | None = None) -> int:
        """Record that somebody looked at the releases that failed after they were
        charged, so that charges go on.

        Input:  by: who looked at them, by default the user of this machine
        Output: the number of failures that this acknowledges; if there are none, nothing is written
        Errors: InvalidArgument, LedgerError

        >>> import dpframe as dp
        >>> dp.Budget(epsilon=1).acknowledge_failures()
        0
        """
        if by is not None and not is_text(by):
            raise InvalidArgument(
                "by= is the name of whoever acknowledges: budget.acknowledge_failures(by='Ada')."
            )
        with self._book.write() as page:
            who, (failed, unacknowledged) = looked(by, page.role), page.failures
            if unacknowledged:
                page.failures = Failures(failed, 0)
                page.append(
                    "acknowledgement",
                    {"failures": unacknowledged, "failed": failed, "by": who},
                    now(),
                )
        return unacknowledged

    def kept(self, name: str) -> Receipt | None:
        """The stored answer of a name, if there is one."""
        with self._book.write() as page:
            earlier = page.latest(name)
            if earlier is None or page.result(earlier.number) is None:
                return None
            return stored_answer(page, earlier, self._left(page.spent), Loss.none())

    @property
    def protects(self) -> str | None:
        """The unit that the limit protects, such as "unit 'id', add-remove";
        None before the first release.
        """
        return self._book.subjects("")[0] or None

    def check_subject(self, subject: str) -> None:
        """Check the name of the units of a table before it is asked;
        all else that does not fit, a release refuses.

        Warns:  DpFrameWarning when another budget of the same ledger is about the same units
        Errors: BudgetMismatch
        """
        try:
            own, others = self._book.subjects(subject)
        except LedgerError:
            return
        if own is not None and is_misnamed(own, subject):
            self._check_subject(own, subject)
        if others and own is None:
            warn(second_budget(others, subject))

    def _check_subject(self, own: str | None, subject: str) -> None:
        if own is not None and own != subject:
            raise BudgetMismatch(another_subject(own, subject))

    def __repr__(self) -> str:
        caps = "".join(f"; {cap}" for cap in self.caps)
        return visible(
            f"Budget({self.limit}; spent {self.spent}; accountant {self.accountant!r}{caps})"
        )

    def __reduce__(self) -> Any:
        again = self._book.reopening()
        if again is None:
            raise UnsupportedOperation(
                "A budget in memory cannot be pickled or copied, since each copy could be spent "
                "in full. A budget in a ledger can be pickled: "
                "dp.Ledger('study.sqlite').budget('...', epsilon=...)."
            )
        return again[0], (*again[1], *self._payer)
