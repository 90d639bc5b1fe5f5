"""Tables through Arrow and pandas: what does not hold in its type becomes null, whatever the cell is."""

from dpframe.engine.intake.arrow import (
    partition_of,
)

__all__ = [
    "partition_of",
]
