"""Capital and small letters: one table for every engine, which replaces one letter by one letter.

Engines disagree on which letters have another case. It depends on their version of Unicode and on
their locale, and some make "SS" or "ẞ" of "ß" while others leave it. So an engine's own function is
only used for letters on which all engines agree. The table is that of Unicode in this version of
Python. A letter whose other case would be several letters stays as it is: "ß" is its own capital.
"""

from __future__ import annotations

import sys
from functools import cache

# the characters of most texts in Latin letters, as a range of a regular expression
NEAR = "\u0001-\u017f"

# Ranges of characters (both ends belong to the range) to which every engine gives the same other
# case: scripts that have been in Unicode for long and where the other case is one letter, and
# characters that have no case.
_COMMON = (
    *("\u0001\u00de", "\u00e0\u012f", "\u0132\u0148", "\u014a\u017e"),  # without ß, İ, ı, ŉ and ſ
    *(
        "\u0391\u03a1",
        "\u03a3\u03a9",
        "\u03b1\u03c1",
        "\u03c3\u03c9",
        "\u0386\u0386",
        "\u0388\u038a",
    ),
    # Greek, without ς and letters of two accents
    *("\u038c\u038c", "\u038e\u038f", "\u03ac\u03af", "\u03cc\u03ce"),
    *("\u0400\u052f", "\u0531\u0556", "\u0561\u0586"),  # Cyrillic, Armenian
    *(
        "\u0591\u0fff",
        "\u1ea0\u1eff",
        "\u2010\u203b",
        "\u20a0\u20bf",
        "\u3000\u9fff",
        "\uac00\ud7a3",
    ),
    "\U0001f300\U0001faff",
)
# A text of these characters and of ß matches this. An engine makes ẞ of ß or leaves it, and makes ẞ
# of no other letter, so that the caller can turn ẞ back into ß.
ALIKE = rf"^[\x00ß{''.join(f'{ends[0]}-{ends[1]}' for ends in _COMMON)}]*$"


@cache
def letters(*, capital: bool, most: int = sys.maxunicode) -> tuple[str, str]:
    """The letters that have another case, and the other case of each, ordered by code point.

    Input:  capital: whether the other case is the capital one; most: the last code point that is
            listed

    >>> letters(capital=True, most=0x7F)[1]
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
    >>> "ß" in letters(capital=True)[0]
    False
    """
    pairs = [(x, x.upper() if capital else x.lower()) for x in map(chr, range(most + 1))]
    changes = [(x, y) for x, y in pairs if x != y and len(y) == 1]
    return "".join(x for x, _ in changes), "".join(y for _, y in changes)
