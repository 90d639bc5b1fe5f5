"""The row operations, and the domain of each one's result.

Each operation reads a single row, so a row stays with its unit. Each operation is total: a result
that does not exist (overflow, division by zero, a text that is no number) is null, on every engine.
So no cell makes an operation fail, and no failure reveals a row. Missing means null or NaN; both
are null once a column is read.
"""

from collections.abc import Mapping

from dpframe.plan.operations.elementary import ELEMENTARY
from dpframe.plan.operations.images import at_least, imaged
from dpframe.plan.operations.numbers import DIVISIBLE, OF_NUMBERS
from dpframe.plan.operations.pattern_parts import (
    WORD,
    Chain,
    Chars,
    Group,
    Mark,
    OneOf,
    Part,
    Repeat,
)
from dpframe.plan.operations.patterns import WHITE_SPACE, Ends, Pattern, Search, Task
from dpframe.plan.operations.rules import Applied, Operation, overflows
from dpframe.plan.operations.taylor import (
    LARGEST_POWER,
    LEAST_POWER,
    Floats,
    exponential,
    log1p,
    logarithm,
)
from dpframe.plan.operations.texts_and_dates import LONGEST_TEXT, OF_PARTS, OF_PATTERNS, Form
from dpframe.plan.operations.values import OF_VALUES, cast_domain, clip_domain, fill_domain
from dpframe.plan.operations.windows import (
    OF_WINDOWS,
    TOTALS,
    Every,
    Window,
    difference_type,
    in_zone,
    is_local,
)

__all__ = [
    "DIVISIBLE",
    "LARGEST_POWER",
    "LEAST_POWER",
    "LONGEST_TEXT",
    "OPERATIONS",
    "TOTALS",
    "WHITE_SPACE",
    "WORD",
    "Applied",
    "Chain",
    "Chars",
    "Ends",
    "Every",
    "Floats",
    "Form",
    "Group",
    "Mark",
    "OneOf",
    "Operation",
    "Part",
    "Pattern",
    "Repeat",
    "Search",
    "Task",
    "Window",
    "at_least",
    "cast_domain",
    "clip_domain",
    "difference_type",
    "exponential",
    "fill_domain",
    "imaged",
    "in_zone",
    "is_local",
    "log1p",
    "logarithm",
    "overflows",
]

OPERATIONS: Mapping[str, Operation] = {
    **OF_NUMBERS,
    **ELEMENTARY,
    **OF_VALUES,
    **OF_PARTS,
    **OF_PATTERNS,
    **OF_WINDOWS,
}
