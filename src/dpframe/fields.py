"""Types of names, and of values by name, for annotations:
parts of a document, options, settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Names = tuple[str, ...]  # of columns, say
Fields = Mapping[str, Any]
FieldDict = dict[str, Any]  # which is still being written, or belongs to whoever gets it
