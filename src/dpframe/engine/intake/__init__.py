"""Tables of pandas and PyArrow, converted through Arrow.
A cell that is not valid in its column's type becomes null.
"""

from dpframe.engine.intake.arrow import (
    partition_of,
)
from dpframe.engine.intake.buffers import (
    plain_type,
    sound,
    views_are_read,
)
from dpframe.engine.intake.cells import (
    signals,
)

__all__ = [
    "partition_of",
    "plain_type",
    "signals",
    "sound",
    "views_are_read",
]
