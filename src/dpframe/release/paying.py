"""The account that pays for releases, and what its entries say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypedDict, TypeVar

from dpframe import engine
from dpframe.budget import (
    Allowance,
    Budget,
    Loss,
    PartBudget,
    Receipt,
    Stored,
    Terms,
    canonical,
    ending,
    patient,
    read_delta,
    read_epsilon,
    user_name,
)
from dpframe.errors import (
    DpFrameError,
    EngineError,
    InvalidArgument,
    LedgerError,
    PolicyExceeded,
    StoredAnswerWarning,
    UnsupportedOperation,
)
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Question, Table, check_choice, unit_words
from dpframe.plan.columns import Lock
from dpframe.plan.steps import source_of, sources_of
from dpframe.progress import waited
from dpframe.release.announced import announce, announce_refusal
from dpframe.theory.formulas.loss import zcdp_to_epsilon
from dpframe.usage import warn

T = TypeVar("T")
Account = Budget | PartBudget | Allowance  # what a release is paid from


# caps of a policy file that a budget holds, beside that of one release
CAPPED = ("spender", "day", "week", "month")


class Naming(TypedDict, total=False):
    """The name of a release in its budget, and whether it is paid again: see `Query.release`."""

    name: str | None
    refresh: bool
    retry: bool
    wait: bool


_PENDING: dict[str, Naming] = {"refuse": {}, "retry": {"retry": True}, "wait": {"wait": True}}


def read_pending(on_pending: object) -> Naming:
    """The rule for a name that was charged and has no answer. Errors: InvalidArgument."""
    check_choice(on_pending, tuple(_PENDING), "on_pending")
    return _PENDING[str(on_pending)]


def charged(account: Account, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
    """Charge a release as `Budget.charge` does, and tell of it if that is refused.
    Errors: those of the account.
    """
    try:
        return patient(account.charge)(loss, subject, query, **options)
    except InvalidArgument:  # a call that nobody can mean, with a name that may be anything
        raise
    except DpFrameError as error:
        announce_refusal(account, loss, options.get("name"), error)
        raise


def spent_by(account: Any, spender: str | None, purpose: str | None = None) -> Any:
    """An account, as it is spent by a spender and for a purpose, if there are.
    Errors: InvalidArgument for others'.
    """
    if spender is None and purpose is None:
        return account
    if not hasattr(account, "for_spender"):
        raise InvalidArgument(
            "spender= and purpose= are for a budget of dpframe: dp.Budget(...), or one in a ledger."
        )
    return account.for_spender(spender, purpose)


def subject_words(source: Table) -> str:
    """The subject of releases about a protected table: the unit and the neighbour relation."""
    return f"{unit_words(source)}, {source.relation}"


def subject_of(question: Question) -> str:
    """The subject of a release."""
    return subject_words(source_of(question.step).table)


def under_policy(questions: Iterable[Question], account: Account, cost: Loss) -> FieldDict:
    """Fields of a charge about the policy files of its questions, after their caps were held.

    Output: {"policies": [{"file": ..., "sha256": ...}, ...]}, in which the hashes of files of keys
            and the caps that the budget holds follow; empty without a policy
    Errors: PolicyExceeded for a price above the cap of one release
    """
    locks: list[Lock] = []
    files: list[FieldDict] = []
    for question in questions:
        locks += [lock for lock in question.table.locks if lock not in locks]
    for lock in locks:
        if "release" in lock.caps:
            _check_release(cost, lock)
        caps, keys = handed_caps(account, lock), {**lock.files}
        said = {"keys": keys, "caps": caps}
        files.append(
            {
                "file": lock.file,
                "sha256": lock.sha256,
                **{name: value for name, value in said.items() if value},
            }
        )
    return {"policies": files} if files else {}


def handed_caps(account: Account, lock: Lock) -> FieldDict:
    """The caps of a policy file that the budget takes over with a charge, by what they are for.

    See `dpframe.budget.caps.adopted`.

    Errors: UnsupportedOperation for a budget in ρ, whose prices a cap in ε does not count
    """
    caps = {name: lock.caps[name]._asdict() for name in CAPPED if name in lock.caps}
    if caps and account.terms is Terms.RHO:
        raise UnsupportedOperation(
            f"{lock.file}: [caps] of {', '.join(caps)} are in ε, and this budget counts in ρ. "
            "Nothing was spent. Pay from a budget in ε: dp.Budget(epsilon=1.0, delta=1e-6)."
        )
    return caps


def _check_release(cost: Loss, lock: Lock) -> None:
    """Refuse a release that costs more than a policy file allows for one.
    Errors: PolicyExceeded.
    """
    cap = lock.caps["release"]
    most = Loss.limit(read_epsilon(cap.epsilon), read_delta(cap.delta))
    priced, words = cost, str(cost)
    if cost.exact_rho:  # in ε, at the δ that the cap leaves
        left = float(most.exact_delta - cost.exact_delta)
        if left <= 0:
            raise PolicyExceeded(
                f"This release costs {cost}. {lock.file} allows {most} for one release, and ρ has "
                "an ε only at a δ. Nothing was spent. Pay from a budget in ε: "
                "dp.Budget(epsilon=1.0, delta=1e-6)."
            )
        epsilon = zcdp_to_epsilon(float(cost.rho or 0.0), left)
        priced = Loss.charged(Fraction(epsilon), cost.exact_delta)
        words = f"{cost}, which is ε = {epsilon:.6g} at δ = {left:.3g}"
    if not priced <= most:
        raise PolicyExceeded(
            f"This release costs {words}. {lock.file} allows {most} for one release. Nothing was "
            "spent. Type a lower price, or ask for less in one release."
        )


def described_origin(question: Question) -> FieldDict:
    """Public origin of the rows, for the name of a release; empty where it is not known."""
    origins = [
        engine.origin_of(source.origin, source.data.files) for source in sources_of(question.step)
    ]
    named = [origin for origin in origins if origin is not None]
    return {"data": named} if named else {}


def ran_by(questions: Iterable[Question]) -> FieldDict:
    """Who runs a release, and the public origins of its rows, for the manifest."""
    origins = [
        origin for question in questions for origin in described_origin(question).get("data", ())
    ]
    return {
        "by": user_name(),
        "data": list({canonical(origin): origin for origin in origins}.values()),
    }


def told(
    account: Account, receipt: Receipt, name: str | None, questions: Iterable[Question] = ()
) -> dict[str, str]:
    """Note, also logged, about an answer that came from the store.

    Input:  questions: what was asked now
    Warns:  StoredAnswerWarning where nothing says that the rows are those of the stored answer.
            Only what was typed decides: the name, and whether `data=` or files say which rows a
            table has
    """
    if receipt.stored is None:
        return {}
    words = f"Stored answer of {receipt.stored.when:%Y-%m-%d %H:%M} UTC, nothing charged."
    announce("stored", account, receipt, name, words)
    if any(
        engine.origin_of(source.origin, source.data.files) is None
        for question in questions
        for source in sources_of(question.step)
    ):
        warn(
            f"release(name={name!r}): this is a stored answer, and no row was read. If the rows "
            "are others by now, it is not about them: release(..., refresh=True) pays for a new "
            "answer. Say which rows a table has, dp.protect(..., data='2026-01'), and a name of "
            "other rows is refused.",
            StoredAnswerWarning,
        )
    return {"stored": words}


_UNRECORDED = (
    "It was charged before that, and its answer is lost. When the ledger can be written again, "
    "on_pending='wait' or 'retry' pays again for a release with a name."
)


def recorded(
    account: Account,
    receipt: Receipt,
    name: str | None,
    questions: Iterable[Question],
    answer: Callable[[], tuple[T, bytes, Fields]],
) -> tuple[T, Stored]:
    """Read the rows of questions, draw noise for a charge, and store the answer with it.

    Input:  answer: reads rows; gives the answer, and its table and statement as they are stored
    Errors: LedgerError if the answer or the failure cannot be recorded, which says that it was
            charged; else the error of `answer`, which is recorded with the charge before anybody
            sees it, with a constant message unless it is one of dpframe's own

    What `answer` does besides reading rows, such as a certificate, cannot fail without this record
    either. Files that were written meanwhile are an error too, see `engine.check_files`, which is
    also called before the charge. It is raised whether the rows were read or not: else its words
    would tell that no cell failed.

    The user's own steps before `protect` (a strict cast, a query) may raise on a cell, and running
    out of memory may depend on the rows. If the failure cannot be recorded, the ledger's error is
    raised in place of the first one. An answer that cannot be stored raises that error too, so
    nobody sees which of the two happened. An interrupt (Ctrl-C) or an exit is no failure: a person
    caused it, not a cell. The charge stays pending, as when the process is killed. The table is
    private, so a failure to store it reveals nothing.
    """
    words = "measured again, which costs" if receipt.again else "charged"
    announce("charged", account, receipt, name, f"{words} {receipt.loss}")
    problem: BaseException | None = None
    with ending(receipt):
        try:
            with waited("reading rows and drawing noise"):
                result, data, statement = engine.sealed(answer)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # also panics of Polars
            problem = error
        try:
            for question in questions:
                engine.check_files(question.step)
        except EngineError as error:
            problem = error
        how = "failed after the charge"
        try:  # outside of the handlers, so that no error is the context of another
            if problem is None:
                stored = account.store(receipt, data, statement)
            else:
                account.fail(receipt)
        except LedgerError as error:
            problem = type(error)(f"{error} {_UNRECORDED}")
            how = "charged, and its answer or failure cannot be recorded"
        if problem is not None:
            announce("failed", account, receipt, name, how)
            raise problem
    announce("released", account, receipt, name, "released")
    return result, stored
