"""Fingerprints of described releases, and the differences between two descriptions."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from dpframe.budget.entries import canonical
from dpframe.errors import InvalidArgument

SHOWN = 8  # differences in a message


def fingerprint(plan: Mapping[str, Any]) -> str:
    """A hash of a description. It does not depend on the order of keys.

    >>> fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(canonical(plan).encode()).hexdigest()


def is_text(value: object) -> bool:
    r"""Whether a value is a text that is not blank and that every database can keep: no NUL, no lone surrogate.

    >>> is_text("visits"), is_text(" "), is_text("a\0b"), is_text("\ud800")
    (True, False, False, False)
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    return value.encode(errors="ignore").decode() == value


# Letters and marks that nobody sees, beside control and format characters (Unicode: Default_Ignorable_Code_Point, and
# the blank of Braille).
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


def plain(name: str) -> str:
    r"""The one spelling of a name among those that look alike: composed letters, single blanks, nothing unseen.

    >>> plain("cafe\u0301 "), plain("visits\u200b"), plain("a\u00a0\tb")
    ('café', 'visits', 'a b')
    """
    blanks = "".join(" " if letter.isspace() or unicodedata.category(letter) == "Zs" else letter for letter in name)
    seen = (letter for letter in UNSEEN.sub("", blanks) if unicodedata.category(letter) not in ("Cc", "Cf"))
    return unicodedata.normalize("NFC", " ".join("".join(seen).split()))


def check_plain(name: str) -> None:
    r"""Check the name of something new that is kept under it: two names that look alike would pass for one.

    Errors: InvalidArgument, with the name to type
    """
    alike = plain(name)
    if name != alike:
        raise InvalidArgument(
            f"The name {name!a} looks like {alike!r}, and would be another one: it has blanks at an end or side "
            "by side, characters that nobody sees, or accents apart from their letters. Type "
            + (f"{alike!r}." if alike else "one with letters.")
        )


def differences(before: Any, after: Any) -> list[str]:
    """The differences between two descriptions, one line each: the place, the old value, the new value.

    A part may have a short text under the key "". It is then shown by this text; if both texts are equal, its own parts
    are compared. Scales follow from the price and the question, so they are shown only if nothing else differs.

    >>> differences({"price": {"epsilon": "1"}, "by": ["city"]}, {"price": {"epsilon": "0.5"}, "by": ["city"]})
    ['price.epsilon: 1, 0.5']
    >>> differences({"steps": []}, {"steps": [{"": "filter((age > 1))", "condition": {"": "Call"}}]})
    ['steps[0]: nothing, filter((age > 1))']
    """
    lines = list(_differing(before, after, ""))
    lines = [line for line in lines if not line.startswith("scales")] or lines
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]


_NOTHING: Mapping[str, Any] = {}  # stands for a part that only the other description has


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


def _parts(value: Any) -> Mapping[str, Any] | None:
    """The parts of a description, by place; None for a leaf."""
    if isinstance(value, list):
        return {f"[{i}]": item for i, item in enumerate(value)}
    return dict(sorted(value.items())) if isinstance(value, Mapping) else None


def _words(value: Any) -> str:
    """The short text of a description; "nothing" if it has none."""
    if isinstance(value, Mapping):
        return str(value.get("", "nothing"))
    return "nothing" if value is None or isinstance(value, list) else str(value)
