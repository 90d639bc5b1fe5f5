"""Backups of a ledger, its move to another place, and copies that are
adopted when the latest one is lost.

Entries are only added. So all entries up to the number that a budget's row names are a state of the
ledger that once was, and they are read without a lock, while others go on charging.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from dpframe.budget import account
from dpframe.budget.accountants import accountant_named
from dpframe.budget.allowance import AllowanceRecord, Pace
from dpframe.budget.entries import Entry, loss_of, price_of, texts_of
from dpframe.budget.ledger.book import HASH, Known, LedgerPage, check_known, entry_of, known_of
from dpframe.budget.ledger.schema import (
    BUDGETS,
    DATA,
    ENTRIES,
    FORMAT,
    LEDGER,
    MOVED,
    RESULTS,
    UNWATCHED,
)
from dpframe.budget.ledger.store import Store, set_aside
from dpframe.budget.ledger.verify import verified
from dpframe.budget.ledger.witness import State, Witness, check_forward
from dpframe.budget.losses import Loss, read_delta, read_epsilon, read_rho
from dpframe.budget.names import body_of, is_text, user_name
from dpframe.budget.parts import Share
from dpframe.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable
from dpframe.fields import FieldDict, Fields
from dpframe.theory.formulas.loss import zcdp_to_epsilon

AT_ONCE = 200  # entries, with their tables
NOTHING: Known = []
Lost = Fields | str | None
_ALL, _NONE = "all", "none"  # what was lost, without a price
SKEW = dt.timedelta(minutes=10)  # how far this machine's clock may be behind the last entry


def backup(source: Store, target: Store, witness: Witness | None) -> dict[str, int]:
    """Copy a ledger, set aside, to a place where there is none.
    Output: the number of entries, by budget.
    """
    known = known_of(source, witness)
    with source.transaction() as connection:
        source.check_charged_here(connection)
    with target.building() as connection:
        _copy(source, connection, known)
    return checked(target)


def checked(store: Store) -> dict[str, int]:
    """Verify a ledger without its witness, also if it is set aside.
    Output: the number of entries, by budget.

    Errors: LedgerDamaged, which lists every problem
    """
    with store.transaction() as connection:
        store._find_tables(connection)
    return verified(store, None)


def migrate(source: Store, target: Store, witness: Witness | None) -> dict[str, int]:
    """Move a ledger. Output: the number of entries, by budget.

    Most is copied while others charge. Then they wait: the last entries are copied, the copy is
    verified, and the old ledger is set aside, with an entry in each budget that says where it went.
    Only then the new one is opened to charges. If the move is stopped before that, nobody can
    charge both; the same call goes on where it stopped.

    Errors: LedgerUnavailable if the target is anything but the beginning of this move;
            LedgerDamaged
    """
    if source.place == target.place or not _is_free(target):
        raise _another(target)
    if not _is_there(target):
        with target.building() as connection:
            _copy(source, connection)
    with source.transaction(write=True) as old:
        if is_moved := source.lock(old) < 0:
            _check_moved(old, source, target)
        elif witness is not None and _missing(old, source, witness) != {}:
            raise LedgerDamaged(
                f"The ledger {source.place} is an older copy than its witness knows. It is not "
                "moved."
            )
        with target.transaction(write=True) as new:
            if target.lock(new) > 0 or target.id != source.id:
                raise _another(target)
            _check_begun(old, new)
            if not is_moved:
                _copy_rows(old, new)
        numbers = checked(target)
        if not is_moved:
            for name in numbers:
                LedgerPage(old, name, SKEW).append(
                    "moved", {"to": target.place, "by": user_name()}, account.now()
                )
            old.execute(LEDGER.update().values(format=-FORMAT))
    with target.transaction(write=True) as new:
        new.execute(LEDGER.update().values(format=FORMAT))
    return numbers


def restore(
    source: Store, target: Store, witness: Witness | None, lost: Lost, by: str, why: str
) -> dict[str, Loss]:
    """Put a backup where there is no ledger, and adopt it; see `adopt`."""
    checked(source)
    with source.transaction() as connection:
        _losses(connection, _missing(connection, source, witness), lost)
    with target.building() as connection:
        _copy(source, connection)
    checked(target)
    return adopt(target, witness, lost, by, why)


def adopt(store: Store, witness: Witness | None, lost: Lost, by: str, why: str) -> dict[str, Loss]:
    """Go on from a copy, and count what was spent after it was made; each budget records it.

    Input:  witness: that of the ledger, or a new one; lost: what the releases that are missing
            cost, for each budget by its name, ε, (ε, δ), ρ, (ρ, δ) or (ε, δ, ρ); "all": the budget
            is spent; "none"; None only where the witness shows that no entry is missing; by: who
            adopts it; why
    Output: what was counted for each budget of which entries may be missing
    Bound:  with L at least the sum of the prices of the releases that are missing, also of those
            from allowances and series, all releases together lose at most what this ledger says:
            the missing ones compose with all others to their loss and L. "all" counts twice the
            limit, so no sum of any accountant is within the limit again, and neither releases nor
            allowances, series or parts are paid. A budget that was made after the copy is not in
            it, and only a witness knows its name. So where there was none, later a new budget is
            only made with create=True. Two prices are no part of L. A night of a series has none:
            the series was paid for once, with one measurement of each period, and nobody knows
            which were measured after the copy. So each series of a budget whose entries may be
            missing is marked as lost. A period that it does not have is then measured for the price
            of one that is measured again, and never for nothing. With those prices the new
            measurements compose with the whole series, of which the lost ones are a part. And where
            an allowance of a budget in ε adds up ρ, prices in ρ are no ε. What may be spent of it
            now is counted as spent, so all that was lost of it and all that is spent of it later
            add up to what was paid for it. Failures that nobody has acknowledged in the copy go on
            counting: an adoption acknowledges none. Whether a missing release failed is not known.
            Charges were refused after as many failures as they are now, and whoever adopts is named
            with a reason, as who acknowledges is. So between two entries that name somebody no more
            releases fail than without a loss, and the numbers of failures are those of the entries
            that are left. A ledger that was moved goes on in the new place. Without a witness,
            which then opens one of the two alone, something is counted as lost for each of its
            budgets
    Errors: LedgerDamaged for a copy that does not add up, or if entries are missing and lost says
            nothing of them
    """
    if not is_text(by) or not is_text(why):
        raise InvalidArgument(
            "by= and why= say who adopts the copy, and why: by='Ada', why='the disk broke'."
        )
    if not checked(store):
        raise LedgerUnavailable(
            f"The ledger {store.place} has no budget, so there is nothing to go on from."
        )
    with store.transaction(write=True) as connection:
        earlier = abs(store.lock(connection))
        missing = _missing(connection, store, witness)
        counted = _losses(connection, missing, lost)
        if earlier < FORMAT:
            store._bring_forward(connection, earlier)
        connection.execute(LEDGER.update().values(format=FORMAT))
        reason, watched = f"adopted by {by}: {why}", missing is not None
        unsure = () if lost == _NONE else _limits(connection) if missing is None else missing
        for name, loss in counted.items():
            _count(connection, name, loss, reason, watched=watched, repeats=name in unsure)
        if witness is not None:
            own = witness.adopt(store.id, _states(connection))
            connection.execute(LEDGER.update().values(witnessed=True, witness=own))
    return counted


def _count(
    connection: sa.Connection, name: str, loss: Loss, words: str, *, watched: bool, repeats: bool
) -> None:
    """Charge what was lost, whatever the limit and the caps say.

    Input:  watched: whether a witness knew what it was; repeats: whether what was released then may
            be released again
    """
    page = LedgerPage(connection, name, SKEW)
    row = connection.execute(
        sa.select(BUDGETS.c.accountant, BUDGETS.c.allowed).where(BUDGETS.c.name == name)
    ).one()
    accountant, limit = accountant_named(row.accountant), loss_of(json.loads(row.allowed))
    counted = accountant.charged(page.spent, loss, limit)
    more = {} if watched else UNWATCHED
    _charge_lost(page, words, {"loss": texts_of(counted), "price": texts_of(loss)}, counted, **more)
    for opening in _openings(connection, name) if repeats else ():
        if opening.allowance is None and not page.is_lost(opening.number):
            page.append("lost", {"about": opening.number, "by": words}, account.now())
        elif opening.allowance is not None and Share.of(accountant, opening).mixed:
            night, nothing = Pace.of(opening).night(account.now()), accountant.total([])
            if (left := AllowanceRecord.on(page, opening).left(night)).exact_rho:
                within = {"loss": texts_of(left), "night": night}
                line = {"loss": texts_of(nothing), "about": opening.number, "within": within}
                _charge_lost(page, words, line, nothing)


def _charge_lost(page: LedgerPage, words: str, line: Fields, counted: Loss, **more: Any) -> None:
    """Add a charge and the mark that its answer is lost.
    Input: line, more: what the two entries say besides.
    """
    events = (account.UNKNOWN_EVENT,)
    body = body_of(
        counted, page.subject or "", f"lost with a later copy, {words}", None, None, events
    )
    page.spent = page.spent + counted
    entry = page.append("charge", {**body, **line, "adopted": True}, account.now())
    page.append("lost", {"about": entry.number, "by": words, **more}, account.now())


def _openings(connection: sa.Connection, name: str) -> list[Entry]:
    """The charges that opened the series and the allowances of a budget."""
    charges = sa.select(ENTRIES).where(ENTRIES.c.budget == name, ENTRIES.c.kind == "charge")
    named = sa.or_(*(ENTRIES.c.name.startswith(kind) for kind in ("series ", "allowance ")))
    entries = map(entry_of, connection.execute(charges.where(named).order_by(ENTRIES.c.number)))
    return [entry for entry in entries if entry.opens is not None]


# What is missing


def _missing(
    connection: sa.Connection, store: Store, witness: Witness | None
) -> dict[str, str] | None:
    """A sentence for each budget of which a copy lacks entries;
    None if no witness of the ledger knows.
    """
    recorded = connection.execute(sa.select(LEDGER.c.id, LEDGER.c.witness)).one()
    states = None if witness is None else witness.states(recorded.id, recorded.witness)
    if states is None:
        return None
    own = {name: (number, head) for name, number, head in _states(connection)}
    sentences = {}
    for name, last in states.items():
        number, head = own.get(name, (0, ""))

        def hash_at(place: int, name: str = name) -> str | None:
            return connection.execute(HASH, {"b": name, "n": place}).scalar()

        try:
            check_forward(name, last, (number, head), hash_at)
        except LedgerDamaged:
            sentences[name] = (
                f"the witness knows {last[0]} entries of {name!r}, and this copy has {number}"
            )
    return sentences


def _limits(connection: sa.Connection) -> dict[str, Loss]:
    rows = connection.execute(sa.select(BUDGETS.c.name, BUDGETS.c.allowed).order_by(BUDGETS.c.name))
    return {row.name: loss_of(json.loads(row.allowed)) for row in rows}


def _losses(
    connection: sa.Connection, missing: dict[str, str] | None, lost: Lost
) -> dict[str, Loss]:
    """The loss that is counted as lost for each budget. Errors: LedgerDamaged, InvalidArgument."""
    limits, went = _limits(connection), _moved(connection)
    unsure = list(limits) if missing is None else [name for name in limits if name in missing]
    if lost is None and (missing or missing is None):
        known = (
            "no witness says whether this is the latest copy"
            if missing is None
            else "; ".join(missing.values())
        )
        raise LedgerDamaged(
            f"{known[0].upper()}{known[1:]}. What was released since is not known here. Say what "
            "it cost: --lost BUDGET=EPSILON for each budget, from the logs of the jobs; --lost "
            "all if nobody knows, and the budgets are spent; --lost none if nothing was released. "
            "In Python it is lost={'visits': 0.5}, 'all' or 'none'."
        )
    if isinstance(lost, Mapping):
        named = set(lost)
        if unknown := sorted(named - set(limits)) or sorted(set(unsure) - named):
            words = ", ".join(map(repr, unsure or limits))
            raise InvalidArgument(f"lost= names each of {words}: {unknown[0]!r} does not fit.")
        counted = {
            n: _read(n, lost[n], limits[n], both=_in_both(connection, n, limits[n]))
            for n in limits
            if n in lost
        }
    elif lost in (None, _ALL, _NONE):
        counted = {
            name: _twice(limits[name]) if lost == _ALL else _nothing(limits[name])
            for name in unsure
        }
    else:
        raise InvalidArgument(
            "lost= is 'all', 'none', or what each budget lost: lost={'visits': 0.5}."
        )
    if (
        went
        and missing is None
        and not all(loss.exact_epsilon or loss.exact_rho for loss in counted.values())
    ):
        raise LedgerDamaged(
            f"This ledger was moved to {next(iter(went.values()))}, which goes on without it, so "
            "both would be charged. Say what each budget has spent there and may still spend: "
            "--lost all, or its ε or ρ."
        )
    return {name: _nothing(limits[name]) for name in went} | counted


def _read(name: str, typed: Any, limit: Loss, *, both: bool) -> Loss:
    """A loss as it was typed: ε or ρ, alone or with a δ; or ε, δ and ρ.
    Errors: InvalidArgument, InvalidPrice.

    Input:  name: of the budget; both: whether its releases have prices in ρ beside ε, which no
            number of ε tells
    Bound:  all that has a price in ρ is together ρ-zero-concentrated, so it is (ε', δ')-private at
            an eighth of the budget's δ, and adds that to what has a price in ε
    """
    numbers = list(typed) if isinstance(typed, (tuple, list)) else [typed]
    if len(numbers) not in ((1, 2, 3) if limit.exact_rho is None and limit.exact_delta else (1, 2)):
        raise InvalidArgument(
            "lost= has ε, (ε, δ), ρ or (ρ, δ) for each budget, lost={'visits': (0.5, 1e-7)}; or "
            "(ε, δ, ρ) for one in ε and δ with prices in ρ."
        )
    if both and len(numbers) < 3:
        raise InvalidArgument(
            f"lost=: releases from {name!r} have prices in ε and in ρ, and a ρ is no ε. Add up "
            f"each of them, with 0 where there is none: lost={{{name!r}: (0.5, 1e-7, 0.01)}} is ε, "
            "δ and ρ."
        )
    size, delta, rho = [*numbers, 0, 0, 0][:3]
    if limit.exact_rho is not None:
        return Loss.charged_rho(_number(size, read_rho), read_delta(delta))
    more, slack = _number(rho, read_rho), limit.exact_delta / 8
    beside = Loss.charged(Fraction(zcdp_to_epsilon(more, slack)), slack) if more else Loss.none()
    return Loss.charged(_number(size, read_epsilon), read_delta(delta)) + beside


def _number(typed: Any, read: Callable[[Any], Fraction]) -> Fraction:
    """A price that may be 0. What is missing, as None or "", is no number."""
    return Fraction(0) if typed == 0 and type(typed) is not bool else read(typed)


def _nothing(limit: Loss) -> Loss:
    return Loss.none(in_rho=limit.exact_rho is not None)


def _in_both(connection: sa.Connection, name: str, limit: Loss) -> bool:
    """Whether a budget in ε was charged a price in ρ."""
    charges = sa.select(ENTRIES.c.body).where(ENTRIES.c.budget == name, ENTRIES.c.kind == "charge")
    bodies = connection.execute(charges).scalars() if limit.exact_rho is None else ()
    return any(price_of(json.loads(body)).exact_rho for body in bodies)


def _twice(limit: Loss) -> Loss:
    if limit.exact_rho is None:
        return Loss.charged(2 * limit.exact_epsilon, 2 * limit.exact_delta)
    return Loss.charged_rho(2 * limit.exact_rho, 2 * limit.exact_delta)


# Rows


def _states(connection: sa.Connection) -> list[State]:
    rows = connection.execute(
        sa.select(BUDGETS.c.name, BUDGETS.c.number, BUDGETS.c.head).order_by(BUDGETS.c.name)
    )
    return [(row.name, row.number, row.head) for row in rows]


def _copy(source: Store, new: sa.Connection, known: Known = NOTHING) -> None:
    """Copy a ledger into empty tables, set aside. Each part is read in a transaction of its own."""
    with source.transaction() as old:
        check_known(old, known)
        ledger, budgets = (
            _rows(old, sa.select(*_there(old, table))) for table in (LEDGER, BUDGETS)
        )
    new.execute(LEDGER.insert(), [{**row, "format": -FORMAT} for row in ledger])
    for state in budgets:
        new.execute(BUDGETS.insert(), [state])
        place = 0
        while place < state["number"]:
            with source.transaction() as old:
                place = _copy_part(old, new, state, place)


def _copy_rows(old: sa.Connection, new: sa.Connection) -> None:
    """Copy what was added since, under the lock."""
    before = {name: number for name, number, _ in _states(new)}
    for state in _rows(old, sa.select(*_there(old, BUDGETS))):
        new.execute(BUDGETS.delete().where(BUDGETS.c.name == state["name"]))
        new.execute(BUDGETS.insert(), [state])
        place = before.get(state["name"], 0)
        while place < state["number"]:
            place = _copy_part(old, new, state, place)


def _copy_part(old: sa.Connection, new: sa.Connection, state: Fields, place: int) -> int:
    """Copy the next entries of a budget, with the tables of its results.
    Output: the number of the last one.
    """
    until = min(place + AT_ONCE, int(state["number"]))
    here = (ENTRIES.c.budget == state["name"], ENTRIES.c.number > place, ENTRIES.c.number <= until)
    entries = _rows(old, sa.select(*_there(old, ENTRIES)).where(*here))
    if len(entries) != until - place:
        raise LedgerDamaged(
            f"Entries of {state['name']!r} are missing, so the ledger is not copied."
        )
    new.execute(ENTRIES.insert(), entries)
    results = sa.select(ENTRIES.c.about).where(*here, RESULTS)
    tables = _rows(
        old, sa.select(DATA).where(DATA.c.budget == state["name"], DATA.c.number.in_(results))
    )
    if tables:
        new.execute(DATA.insert(), tables)
    return until


def _there(connection: sa.Connection, table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that a table has; a ledger of an earlier format lacks
    some, which are null in later ones.
    """
    names = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    return [column for column in table.c if column.name in names]


def _rows(connection: sa.Connection, query: Any) -> list[FieldDict]:
    return [dict(row._mapping) for row in connection.execute(query)]


# A move


def _another(target: Store) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"There is a ledger in {target.place} already. If this one was moved there, open that one. "
        "Else choose another place."
    )


def _is_free(target: Store) -> bool:
    """Whether a place has no ledger that is charged or was moved, such as the one
    that is to move, by another name.

    This is asked before anything is locked: nobody waits for a lock that is held for this move
    itself.
    """
    if not _is_there(target):
        return True
    with target.transaction() as connection:
        return connection.execute(sa.select(LEDGER.c.format)).scalar_one() < 0 and not _moved(
            connection
        )


def _moved(connection: sa.Connection) -> dict[str, str]:
    """The new place of each budget of a ledger, if its last entry says that it was moved."""
    last = sa.and_(BUDGETS.c.name == ENTRIES.c.budget, BUDGETS.c.number == ENTRIES.c.number)
    query = sa.select(ENTRIES.c.budget, ENTRIES.c.body).join(BUDGETS, last).where(MOVED)
    return {row.budget: str(json.loads(row.body)["to"]) for row in connection.execute(query)}


def _is_there(target: Store) -> bool:
    """Whether a place has a ledger; a file that is missing has none."""
    try:
        with target.transaction() as connection:
            return sa.inspect(connection).has_table(LEDGER.name)
    except LedgerUnavailable:
        return False


def _check_moved(old: sa.Connection, source: Store, target: Store) -> None:
    """Check that a ledger that is set aside was being moved to this place.
    Errors: LedgerUnavailable.
    """
    moved = sa.select(ENTRIES.c.body).where(MOVED).order_by(ENTRIES.c.at.desc()).limit(1)
    body = old.execute(moved).scalar()
    if body is None or json.loads(body)["to"] != target.place:
        raise set_aside(old, source.place)


def _check_begun(old: sa.Connection, new: sa.Connection) -> None:
    """Check that all that is in the new place is the beginning of the old ledger.
    Errors: LedgerUnavailable.
    """
    for name, number, head in _states(new):
        if old.execute(HASH, {"b": name, "n": number}).scalar() != head:
            raise LedgerUnavailable(
                f"What is in the new place is no beginning of {name!r}. Choose another place."
            )
