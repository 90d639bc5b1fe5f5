"""Types of names, and of values by name, for annotations:
parts of a document, options, settings; fixed words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

Names = tuple[str, ...]  # of columns, say
Fields = Mapping[str, Any]
FieldDict = dict[str, Any]  # which is still being written, or belongs to whoever gets it


class Word(StrEnum):
    """One word of a fixed list; it is shown as its text."""

    def __repr__(self) -> str:
        return repr(self.value)
