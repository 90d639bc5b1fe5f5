"""The blocks that a series has measured so far, and those that the next period
measures, from its lines in the ledger.

Where a shape has weights, a period is measured when it is added, in a weighted sum with periods
that were added before it, whatever their order in time. So a missing or a late period changes
nothing. A period whose answer is not stored yet is in no sum but its own, so all totals follow from
the stored sums. Places of periods are in the order of their charges, which never changes. So a
period has each weight at most once, as `weighted_totals` needs.

In other shapes a period is measured when it is added. A block of several periods is measured when
its last period, or a later one, is added for the first time. The block then has those of its
periods that were added by that time. So a missing period is part of no block. A late period is
measured alone, and in the blocks that are not measured yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpframe.arrays import ranges
from dpframe.budget import Entry, Loss, Page, Within
from dpframe.fields import Fields
from dpframe.release.kinds.series.shape import Shapes
from dpframe.release.shown import fixed_words


@dataclass(frozen=True)
class Block:
    """Periods that are measured together.
    `first` is the first period of the block, even if it was never added.

    For a weighted sum it is the period with which the sum was measured. `weights` are those of
    `periods`, () for ones.
    """

    part: int
    level: int
    first: int
    periods: tuple[int, ...]
    weights: tuple[int, ...] = ()

    def weight(self, period: int) -> int:
        """The weight of one of the periods."""
        return self.weights[self.periods.index(period)] if self.weights else 1

    def to_json(self) -> list[Any]:
        """The stored form of the block, with periods as ranges."""
        weights = [list(self.weights)] if self.weights else []
        return [self.part, self.level, self.first, ranges(self.periods), *weights]

    @classmethod
    def from_json(cls, fields: Sequence[Any]) -> Block:
        """The block from its stored form."""
        part, level, first, periods, *weights = fields
        return cls(part, level, first, tuple(spread(periods)), *map(tuple, weights))


def spread(pairs: Iterable[Sequence[int]]) -> list[int]:
    """Ranges as numbers in order."""
    return [period for first, last in pairs for period in range(first, last + 1)]


@dataclass(frozen=True)
class Progress:
    """The blocks that each added period measured, in the order in which periods were
    added, and the lines about them.

    `lines` has the period of each line of the series by the line's number. `asked` has for each
    period the fingerprint of its question, "" if none is stored, and `data` the labels of its rows,
    () if they have none. `answered` are the periods whose
    answer is stored. `fixed` says whether a period was added in a test, under fixed noise, and
    `copied` whether the series goes on from an older copy of its ledger, so that other periods may
    have been measured too.
    """

    blocks: Mapping[int, tuple[Block, ...]]
    lines: Mapping[int, int]
    asked: Mapping[int, str] = field(default_factory=dict)
    data: Mapping[int, Sequence[Fields]] = field(default_factory=dict)
    answered: frozenset[int] = frozenset()
    fixed: bool = False
    copied: bool = False

    @classmethod
    def of(cls, entries: Sequence[Entry], opening: int) -> Progress:
        """The progress of a series from the entries of its budget, oldest first,
        and the number of its opening.
        """
        lines = [entry for entry in entries if entry.kind == "charge" and entry.about == opening]
        places = {line.number: line.body["within"] for line in lines}
        blocks = {
            place["period"]: tuple(map(Block.from_json, place["blocks"]))
            for place in places.values()
        }
        asked = {place["period"]: place.get("asked", "") for place in places.values()}
        data = {place["period"]: place.get("data", ()) for place in places.values()}
        results = [entry.about for entry in entries if entry.kind == "result"]
        answered = frozenset(places[line]["period"] for line in results if line in places)
        periods, fixed = (
            {line: place["period"] for line, place in places.items()},
            any("test" in line.body["within"] for line in lines),
        )
        copied = any(entry.kind == "lost" and entry.about == opening for entry in entries)
        return cls(blocks, periods, asked, data, answered, fixed, copied)

    @property
    def added(self) -> frozenset[int]:
        """The periods that were added."""
        return frozenset(self.blocks)

    @property
    def line(self) -> int:
        """The number of the last line; 0 if there is none."""
        return max(self.lines, default=0)

    def before(self, period: int) -> list[int]:
        """The periods that were added before a period, in the order in which they were added."""
        order = list(self.blocks)
        return order[: order.index(period)] if period in self.blocks else order

    def measured_by(self, period: int, shapes: Shapes) -> tuple[Block, ...]:
        """The blocks that a period measures if it is added now;
        if it was added before, those that it measured then.
        """
        if period in self.blocks:
            return self.blocks[period]
        part, last = shapes.part_of(period), max(self.added, default=-1)
        if shapes.parts[part].weights:
            return (self._weighted(part, period, shapes),)
        blocks = [Block(part, 0, period, (period,))]
        added = self.added | {period}
        for of, level, first, end in shapes.closing(last, period):
            inside = tuple(number for number in range(first, end) if number in added)
            if inside:
                blocks.append(Block(of, level, first, inside))
        return tuple(blocks)

    def without(self, blocks: Sequence[Block], changed: frozenset[int]) -> tuple[Block, ...]:
        """Some blocks, as they are measured without earlier periods whose rows are others by now.

        Their answers are those of the rows of before, so estimates would subtract what was never
        added. A block of ones also goes without what a measured block has beside such a period: so
        any two blocks have no period in common, or one has all of the other.
        """
        measured = (set(one.periods) for each in self.blocks.values() for one in each)
        beside = changed.union(*(periods for periods in measured if periods & changed))
        left = []
        for block in blocks:
            out = changed if block.weights else beside if block.level else frozenset()
            inside = tuple(period for period in block.periods if period not in out)
            weights = tuple(map(block.weight, inside)) if block.weights else ()
            left += [replace(block, periods=inside, weights=weights)] if inside else []
        return tuple(left)

    def _weighted(self, part: int, period: int, shapes: Shapes) -> Block:
        """The weighted sum that a period measures: of itself, and of answered
        periods of its part by their places.
        """
        before = [past for past in self.blocks if shapes.part_of(past) == part]
        pairs = zip([period, *reversed(before)], shapes.parts[part].weights, strict=False)
        weights = {
            past: weight for past, weight in pairs if past == period or past in self.answered
        }
        return Block(
            part,
            0,
            period,
            tuple(sorted(weights)),
            tuple(weights[past] for past in sorted(weights)),
        )


class Overtaken(Exception):  # noqa: N818  - not an error: the caller reads the progress again and retries
    """Another period was added in the meantime."""


@dataclass(frozen=True)
class Place:
    """The place of a period in its series, for the charge: see `dpframe.budget.receipts.Within`.

    `asked` is the fingerprint of its question, if later periods are held to it. `data` are the
    labels of its rows.
    """

    opening: Entry
    line: int
    period: int
    blocks: tuple[Block, ...]
    cost: Loss
    hold: Callable[[Loss], None]
    asked: str = ""
    data: Sequence[Fields] = ()
    paid: Within | None = None

    def paid_from(self, allowance: Within) -> Place:
        """The same place, where an allowance pays for what the period costs."""
        return replace(self, paid=allowance)

    def again(self, loss: Loss) -> Loss:
        """The cost of measuring the blocks once more."""
        return self.cost

    def may_repeat(self, page: Page) -> bool:
        """Whether the series goes on from an older copy of its ledger;
        see `dpframe.budget.ledger.copies`.
        """
        return page.is_lost(self.opening.number)

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Mapping[str, Any]]:
        """The first measurement costs nothing more.

        Errors: PolicyExceeded for what is measured again; Overtaken if another period was added in
                the meantime
        """
        self.hold(loss)
        lines = page.members(self.opening.number)
        if (lines[-1].number if lines else 0) != self.line:
            raise Overtaken
        asked = {
            **({"asked": self.asked} if self.asked else {}),
            **({"data": [*self.data]} if self.data else {}),
        }
        loss, paid = (loss, {}) if self.paid is None else self.paid.enter(page, loss)
        return loss, {
            **paid,
            "period": self.period,
            "blocks": [block.to_json() for block in self.blocks],
            **asked,
            **fixed_words(),
        }
