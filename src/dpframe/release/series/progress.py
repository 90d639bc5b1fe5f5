"""What a series has measured so far, and what the next period measures: read from its lines in the ledger.

A period is measured when it is added. A block of several periods is measured when a period at its end, or after it, is
added for the first time: over those of its periods that had been added by then. So a period that is missing takes part
in nothing. One that comes late is measured by itself, and in the blocks that are still open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpframe.budget import Entry, Loss, Page
from dpframe.release.series.shape import Shapes

__all__ = ["Block", "Overtaken", "Place", "Progress", "ranges", "spread"]


@dataclass(frozen=True)
class Block:
    """Periods that are measured together. `first` is where the block begins, whether that period was added or not."""

    part: int
    level: int
    first: int
    periods: tuple[int, ...]

    def to_json(self) -> list[Any]:
        """As it is kept: periods as ranges."""
        return [self.part, self.level, self.first, ranges(self.periods)]

    @classmethod
    def from_json(cls, said: Sequence[Any]) -> Block:
        """As it was kept."""
        part, level, first, periods = said
        return cls(part, level, first, tuple(spread(periods)))


def ranges(periods: Iterable[int]) -> list[list[int]]:
    """Numbers in order as ranges.

    >>> ranges([0, 1, 2, 5])
    [[0, 2], [5, 5]]
    """
    made: list[list[int]] = []
    for period in sorted(periods):
        if made and made[-1][1] == period - 1:
            made[-1][1] = period
        else:
            made.append([period, period])
    return made


def spread(pairs: Iterable[Sequence[int]]) -> list[int]:
    """Ranges as numbers in order."""
    return [period for first, last in pairs for period in range(first, last + 1)]


@dataclass(frozen=True)
class Progress:
    """The periods that were added, the blocks that each of them measured, and the number of the last line."""

    added: frozenset[int]
    blocks: Mapping[int, tuple[Block, ...]]
    line: int

    @classmethod
    def of(cls, lines: Sequence[Entry]) -> Progress:
        """From the lines of a series, oldest first."""
        within = [entry.body["within"] for entry in lines]
        blocks = {said["period"]: tuple(map(Block.from_json, said["blocks"])) for said in within}
        return cls(frozenset(blocks), blocks, lines[-1].number if lines else 0)

    def before(self, period: int) -> list[int]:
        """The periods that were added before a period, in the order in which they were added."""
        order = list(self.blocks)
        return order[: order.index(period)] if period in self.blocks else order

    def measured_by(self, period: int, shapes: Shapes) -> tuple[Block, ...]:
        """What a period measures when it is added now; where it was added before, what it measured then."""
        if period in self.blocks:
            return self.blocks[period]
        part, last = shapes.part_of(period), max(self.added, default=-1)
        made = [Block(part, 0, period, (period,))]
        added = self.added | {period}
        for of, level, first, end in shapes.closing(last, period):
            inside = tuple(one for one in range(first, end) if one in added)
            if inside:
                made.append(Block(of, level, first, inside))
        return tuple(made)


class Overtaken(Exception):  # noqa: N818  - it is no error: whoever was overtaken looks again
    """Another period was added in the meantime."""


@dataclass(frozen=True)
class Place:
    """The place of a period in its series, for the charge: see `dpframe.budget.receipts.Within`."""

    opening: int
    line: int
    period: int
    blocks: tuple[Block, ...]
    cost: Callable[[], Loss]

    def again(self, loss: Loss) -> Loss:
        """What it costs to measure the blocks once more."""
        return self.cost()

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Mapping[str, Any]]:
        """Nothing is charged the first time. Errors: Overtaken where the series has moved on since it was looked at."""
        lines = page.members(self.opening)
        if (lines[-1].number if lines else 0) != self.line:
            raise Overtaken
        return loss, {"period": self.period, "blocks": [block.to_json() for block in self.blocks]}
