"""Fingerprints of described releases, and the differences between two descriptions."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from dpframe.budget.entries import canonical, texts_of
from dpframe.budget.losses import Loss
from dpframe.errors import BudgetMismatch, InvalidArgument
from dpframe.fields import FieldDict, Fields

SHOWN = 8  # differences in a message


def fingerprint(plan: Fields) -> str:
    """A hash of a description. It does not depend on the order of keys.

    >>> fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(canonical(plan).encode()).hexdigest()


def is_text(value: object) -> TypeGuard[str]:
    r"""Whether a value is a text that is not blank and that every database can
    keep: no NUL, no lone surrogate.

    >>> is_text("visits"), is_text(" "), is_text("a\0b"), is_text("\ud800")
    (True, False, False, False)
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    return value.encode(errors="ignore").decode() == value


# Letters and marks that nobody sees, beside control and format characters (Unicode:
# Default_Ignorable_Code_Point, and the blank of Braille).
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def plain(name: str) -> str:
    r"""The one spelling of a name among those that look alike:
    composed letters, single blanks, nothing unseen.

    >>> plain("cafe\u0301 "), plain("visits\u200b"), plain("a\u00a0\tb")
    ('café', 'visits', 'a b')
    """
    blanks = "".join(
        " " if letter.isspace() or unicodedata.category(letter) == "Zs" else letter
        for letter in name
    )
    seen = (
        letter
        for letter in UNSEEN.sub("", blanks)
        if unicodedata.category(letter) not in ("Cc", "Cf")
    )
    return unicodedata.normalize("NFC", " ".join("".join(seen).split()))


def is_near(name: str, other: str) -> bool:
    """Whether one name may be a slip for the other:
    one or two letters are left out, added, wrong or exchanged.

    Letters count alike in small and large, and so do blanks, hyphens and the like. Short names are
    near in one letter from four letters on, in two from eight on. Names whose numbers differ are
    not near: "visits 2026", "visits 2027".

    >>> (
    ...     is_near("ordres", "orders"),
    ...     is_near("Orders", "orders"),
    ...     is_near("visits-2026", "visits_2026"),
    ... )
    (True, True, True)
    >>> is_near("visits 2026", "visits 2027"), is_near("a", "b"), is_near("north", "south")
    (False, False, False)
    """
    one, two = (re.sub(r"[\W_]+", " ", text.casefold()).strip() for text in (name, other))
    if re.findall(r"\d+", one) != re.findall(r"\d+", two):
        return False
    longer = max(len(one), len(two))
    return _slips(one, two) <= (2 if longer >= 8 else 1 if longer >= 4 else 0)


def _slips(one: str, two: str) -> int:
    """The fewest letters to leave out, add, replace, or exchange with the next
    one: optimal string alignment.
    """
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one):
        last, before, row = before, row, [i + 1]
        for j, other in enumerate(two):
            row.append(min(before[j] + (letter != other), before[j + 1] + 1, row[j] + 1))
            if i and j and letter == two[j - 1] and one[i - 1] == other:
                row[-1] = min(row[-1], last[j - 1] + 1)
    return row[-1]


def check_plain(name: str) -> None:
    r"""Check the name of something new that is kept under it:
    two names that look alike would pass for one.

    Errors: InvalidArgument, with the name to type
    """
    alike = plain(name)
    if name != alike:
        raise InvalidArgument(
            f"The name {name!a} looks like {alike!r}, and would be another one: it has blanks at "
            "an end or side by side, characters that nobody sees, or accents apart from their "
            "letters. Type " + (f"{alike!r}." if alike else "one with letters.")
        )


def body_of(
    loss: Loss,
    subject: str,
    query: str,
    name: str | None,
    plan: Fields | None,
    events: Sequence[Fields],
    policies: Sequence[Fields] = (),
) -> FieldDict:
    """The body of a charge's entry in the book.
    Input: policies: names and hashes of policy files, if there are any.
    """
    return {
        "loss": texts_of(loss),
        "subject": subject,
        "query": query,
        "name": name,
        "plan": plan,
        "fingerprint": None if plan is None else fingerprint(plan),
        "events": [dict(event) for event in events],
        **({"policies": [*policies]} if policies else {}),
    }


def differences(before: Any, after: Any) -> list[str]:
    """The differences between two descriptions, one line each:
    the place, the old value, the new value.

    A part may have a short text under the key "". It is then shown by this text; if both texts are
    equal, its own parts are compared. Scales follow from the price and the question, so they are
    shown only if nothing else differs.

    >>> differences(
    ...     {"price": {"epsilon": "1"}, "by": ["city"]},
    ...     {"price": {"epsilon": "0.5"}, "by": ["city"]},
    ... )
    ['price.epsilon: 1, 0.5']
    >>> differences(
    ...     {"steps": []}, {"steps": [{"": "filter((age > 1))", "condition": {"": "Call"}}]}
    ... )
    ['steps[0]: nothing, filter((age > 1))']
    """
    lines = list(_differing(before, after, ""))
    lines = [line for line in lines if not line.startswith("scales")] or lines
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]


_NOTHING: Fields = {}  # stands for a part that only the other description has


def _differing(before: Any, after: Any, place: str) -> Iterator[str]:
    """A line for each place that differs."""
    if before == after:
        return
    old, new = _parts(before), _parts(after)
    was, now = _words(before), _words(after)
    if old is None or new is None or was != now:
        yield f"{place}: {was}, {now}"
        return
    for key in [*old, *(key for key in new if key not in old)]:
        at = key if key.startswith("[") or not place else f".{key}"
        yield from _differing(old.get(key, _NOTHING), new.get(key, _NOTHING), f"{place}{at}")


def _parts(value: Any) -> Fields | None:
    """The parts of a description, by place; None for a leaf."""
    match value:
        case list():
            return {f"[{i}]": item for i, item in enumerate(value)}
        case Mapping():
            return dict(sorted(value.items()))
    return None


def _words(value: Any) -> str:
    """The short text of a description; "nothing" if it has none."""
    match value:
        case Mapping():
            return str(value.get("", "nothing"))
        case None | list():
            return "nothing"
    return str(value)


def user_name() -> str:
    """The name of the user that runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # The user has no name on this machine.
        return "unknown"


def looked(by: str | None, role: str | None) -> str:
    """Who marks a release as lost, or looked at failures, by default the user of this machine.

    Input:  by: as typed; role: who the database says is here
    Errors: BudgetMismatch for somebody else
    """
    if role is not None and by not in (None, role):
        raise BudgetMismatch(
            f"The database says that {role!r} is here, and by={by!r} was typed. Leave by= out."
        )
    return role or by or user_name()


class Payer(NamedTuple):
    """Who spends what is charged, for caps, and what for; None where nobody said it.

    Nothing proves either, but where a database says who is here: see
    `dpframe.budget.ledger.postgres`.
    """

    spender: str | None = None
    purpose: str | None = None

    @classmethod
    def of(cls, spender: object, purpose: object) -> Payer:
        """As typed. Errors: InvalidArgument."""
        examples = {"spender": (spender, "ana"), "purpose": (purpose, "the monthly report")}
        for name, (text, example) in examples.items():
            if text is None:
                continue
            if not is_text(text):
                raise InvalidArgument(
                    f"{name}= is a text that is not empty, such as {name}={example!r}."
                )
            check_plain(str(text))
        return cls(*(None if text is None else str(text) for text, _ in examples.values()))

    def described(self, role: str | None, paid: Fields | None = None) -> FieldDict:
        """Fields of a charge's entry about its payer: also the user, the
        machine and the process that charge.

        Input:  role: who the database says is here; None where it does not; paid: the body of the
                entry that paid in advance, whose spender and purpose stand where nothing else was
                said
        Errors: BudgetMismatch for a spender that is somebody else
        """
        if role is not None and self.spender not in (None, role):
            raise BudgetMismatch(
                f"The database says that {role!r} spends here, and spender={self.spender!r} was "
                "typed. Nothing was spent. Leave spender= out."
            )
        before = paid or {}
        spender = role or self.spender or before.get("spender")
        payer = Payer(spender, self.purpose or before.get("purpose"))
        typed = {name: text for name, text in payer._asdict().items() if text is not None}
        by = payer.spender or user_name()
        return {"by": by, "host": socket.gethostname(), "process": os.getpid(), **typed}

    def acting(self, role: str | None, paid: Fields | None = None) -> FieldDict:
        """The same fields, where the user may not be the spender:
        a steward takes a part for somebody else.
        """
        return self.described(role, paid) | {"by": looked(None, role)}
