"""Hidden numbers of a release: small ones, and further ones that together with shown
numbers would reveal a small one.

Nothing here reads rows or draws noise: what is hidden follows from released numbers alone
(post-processing, Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.errors import InvalidArgument
from dpframe.plan import real
from dpframe.theory.formulas.trees import Levels

_MARK = "*"  # marks a number that is hidden to protect a small one, unless another mark was typed


@dataclass(frozen=True)
class Suppression:
    """Numbers below `below` are hidden; if `secondary`, also others from
    which these could be computed.

    `marks` stand in files for a small number and for another hidden one; None if nothing was typed.
    """

    below: float
    marks: tuple[str, str] | None = None
    secondary: bool = False

    def after(self, earlier: Suppression | None) -> Suppression:
        """Both steps together: the stricter limit, the later marks."""
        if earlier is None:
            return self
        marks = self.marks if self.marks is not None else earlier.marks
        return Suppression(
            max(self.below, earlier.below), marks, self.secondary or earlier.secondary
        )

    @property
    def sentence(self) -> str:
        """The suppression in a sentence, for the report."""
        also = (
            ", nor others from which these could be found within less than half of that"
            if self.secondary
            else "; margins count them"
        )
        return f"suppress(below={self.below:g}): groups with fewer are not shown{also}."


def read_suppression(
    below: object, marker: object, secondary: object, *, sums: bool
) -> Suppression:
    """The typed arguments of `suppress`; sums: whether sums of numbers are shown too.
    Errors: InvalidArgument.
    """
    least = real(below)
    if least is None or not 0 < least <= 1e300:
        raise InvalidArgument(
            "suppress(below=): give a number above 0, such as suppress(below=10)."
        )
    if secondary is not None and not isinstance(secondary, bool):
        raise InvalidArgument("suppress(secondary=) is True or False.")
    secondary = sums and least > 1 if secondary is None else secondary
    check_limit_of_numbers(float(least), 1, secondary=secondary)
    marks: tuple[str, str] | None = None
    match marker:
        case None:
            pass
        case str():
            marks = (marker, _MARK)
        case tuple((str(small), str(beside))):
            marks = (small, beside)
        case _:
            raise InvalidArgument(
                "suppress(marker=) is a text for small numbers, marker='<10'; or a pair, the "
                "second text for others that are hidden with them, marker=('<10', 'c')."
            )
    return Suppression(float(least), marks, secondary)


def check_limit_of_numbers(below: float, base: int, *, secondary: bool) -> None:
    """Check that small multiples of `base` are not all one number, which the limit would tell.
    Errors: InvalidArgument.

    Input:  below: the limit; base: 1 for whole and other numbers; secondary: whether hidden numbers
            are protected
    """
    if secondary and below <= base:
        which = "whole number" if base == 1 else f"multiple of {base}"
        raise InvalidArgument(
            f"suppress(): no {which} but 0 is below {below:g}, so whoever knows the limit knows "
            f"what is hidden. Type a higher limit, suppress(below={base + 1}), or secondary=False "
            "where that does no harm."
        )


# why a number is hidden: it is small, or it is hidden to protect others; 0 if it is shown
SMALL, OTHER = 1, 2


@dataclass(frozen=True)
class Reader:
    """The knowledge of a table's reader about its hidden numbers, and the promise about them.

    Input:  below: the limit; floor: the least that a number can be, 0 or minus infinity; whole:
            whether all numbers are whole. For multiples of a number see `in_base`
    """

    below: float
    floor: float
    whole: bool
    half: float | None = None  # the promised width, where it is not that of the limit

    def in_base(self, base: int) -> Reader:
        """The knowledge about multiples of `base`, counted in it: they are whole numbers.

        Bound:  the promise rests on the limit in units of 1, and is rounded up to whole multiples
        """
        if base == 1:
            return self
        half = max(math.ceil(math.floor(self.below / 2) / base), 1)
        return Reader(self.below / base, self.floor, whole=True, half=float(half))

    @property
    def width(self) -> float:
        """The promise: the largest and the smallest value that a hidden number may
        have are at least so far apart.

        It is half of the limit, rounded down for whole numbers, and at least 1 for these.
        """
        if self.half is not None:
            return self.half
        return max(math.floor(self.below / 2), 1.0) if self.whole else self.below / 2

    def room(self, values: Floats, small: Booleans, *, told: bool) -> tuple[Floats, Floats]:
        """Room of each number to rise and fall for all that is known of it
        alone, up to the promised width.

        Input:  values; small: which are below the limit; told: whether marks tell small numbers
                from others. If not, readers are still taken to know that small numbers are small
        """
        # a number that is not small is at least this
        least = math.ceil(self.below) if self.whole else self.below
        most = least - 1 if self.whole else least
        up = np.where(small, most - values, self.width)
        down = np.where(small | (not told), values - self.floor, values - least)
        return np.clip(up, 0.0, self.width), np.clip(down, 0.0, self.width)


def hidden_in_tree(tree: Levels, values: Sequence[Floats], reader: Reader) -> list[Integers]:
    """The hidden numbers of a tree.

    Input:  for each level from the root the released numbers, nodes by crossed keys; what the
            reader knows
    Output: arrays of these shapes: 0 for a shown number, else SMALL or OTHER. If no choice keeps
            the promise beside two marks, all hidden numbers are OTHER
    Bound:  what is published of a tree is that children add up to their parent. `_widths` says how
            far the values that a hidden number may have lie apart, exactly. While that is too
            little, a number is hidden in the sum that holds it: of the shown children the smallest
            that leaves room, else the parent, else in the sum above
    """
    small = [np.asarray(level) < reader.below for level in values]
    for told in (True, False):
        hidden = _widened(tree, values, small, reader, told=told)
        if hidden is not None:
            return [
                np.where(is_small & told, SMALL, np.where(h, OTHER, 0))
                for is_small, h in zip(small, hidden, strict=True)
            ]
    return [np.full(level.shape, OTHER) for level in small]


def _widened(
    tree: Levels, values: Sequence[Floats], small: Sequence[Booleans], reader: Reader, *, told: bool
) -> list[Booleans] | None:
    """The numbers of a tree that are hidden in the end;
    None if some number stays narrow whatever is hidden.
    """
    rooms = [
        reader.room(level, is_small, told=told)
        for level, is_small in zip(values, small, strict=True)
    ]
    hidden = [level.copy() for level in small]
    while True:
        needs = _needs(tree, hidden, rooms, reader.width)
        if not any(need.any() for need in needs):
            return hidden
        if not _hide_one_each(tree, values, hidden, needs, [down for _, down in rooms]):
            return None


def _needs(
    tree: Levels, hidden: Sequence[Booleans], rooms: Sequence[tuple[Floats, Floats]], width: float
) -> list[Floats]:
    """For each sum of children, how much room its hidden numbers lack.

    Bound:  by how much a number may rise or fall, for all that is known of its own subtree, is the
            least of its own room and that of its children together; then, from the root, also of
            its parent's and its siblings' together. The equations form a tree, so nothing else is
            known. Room is counted up to the promised width
    """
    own = [
        (np.where(h, up, 0.0), np.where(h, down, 0.0))
        for h, (up, down) in zip(hidden, rooms, strict=True)
    ]
    for level in reversed(range(len(tree.first))):
        up, down = (
            np.minimum(a, tree.up(b, level))
            for a, b in zip(own[level], own[level + 1], strict=True)
        )
        own[level] = up, down
    needs = []
    above = own[0]
    lacks = [np.where(hidden[0], width - above[0] - above[1], 0.0)]
    for level in range(len(tree.first)):
        up, down = own[level + 1]
        others_up, others_down = (
            tree.down(tree.up(room, level), level) - room for room in (up, down)
        )
        above = (
            np.minimum(up, tree.down(above[0], level) + others_down),
            np.minimum(down, tree.down(above[1], level) + others_up),
        )
        lacks.append(np.where(hidden[level + 1], width - above[0] - above[1], 0.0))
    tiny = width * 1e-9
    for level in range(len(tree.first)):
        up, down = own[level]
        inside = hidden[level] & (up + down < width - tiny)  # its children leave no room
        below = np.where(hidden[level + 1], lacks[level + 1], 0.0)
        if level + 1 < len(tree.first):
            below = np.where(sum(own[level + 1]) < width - tiny, 0.0, below)
        need = np.maximum(
            np.where(inside, width - up - down, 0.0),
            np.maximum.reduceat(below, tree.first[level], axis=0),
        )
        needs.append(np.where(need > tiny, need, 0.0))
    return needs


def _hide_one_each(
    tree: Levels,
    values: Sequence[Floats],
    hidden: Sequence[Booleans],
    needs: Sequence[Floats],
    down: Sequence[Floats],
) -> bool:
    """Hide one more number in each sum that lacks room, in place; whether there was one.

    Where all numbers of a sum are hidden, one in the sum above it is hidden; if there is none up to
    the root, one in every sum below.
    """
    changed = False
    for level in reversed(range(len(tree.first))):
        for cell in np.flatnonzero(needs[level].any(axis=0)).tolist():
            at, need = np.flatnonzero(needs[level][:, cell]), needs[level][:, cell]
            below = values[level + 1][:, cell], hidden[level + 1][:, cell]
            left = at[
                ~_hide_children(
                    tree, level, at, *below, down[level + 1][:, cell] < tree.down(need, level)
                )
            ]
            changed |= len(left) < len(at) or not hidden[level][left, cell].all()
            full = left[hidden[level][left, cell]]
            hidden[level][left, cell] = True
            if level:
                above = np.searchsorted(tree.first[level - 1], full, side="right") - 1
                np.maximum.at(needs[level - 1][:, cell], above, need[full])
            elif len(full):
                for lower in range(1, len(tree.first)):
                    every = np.arange(tree.sizes[lower])
                    tight = np.zeros(tree.sizes[lower + 1], np.bool_)
                    below = values[lower + 1][:, cell], hidden[lower + 1][:, cell]
                    changed |= bool(_hide_children(tree, lower, every, *below, tight).any())
    return changed


def _hide_children(
    tree: Levels, level: int, at: Integers, values: Floats, hidden: Booleans, tight: Booleans
) -> Booleans:
    """Hide a shown child of some nodes, in place: the smallest that
    is not tight, else the smallest.

    Input:  the nodes of a level; numbers of the level below, and which of them are hidden or tight
    Output: which of the nodes had one
    """
    node = tree.parents(level)
    first = np.lexsort((values, tight, hidden, node))[tree.first[level]][at]
    had = ~hidden[first]
    hidden[first] = True
    return np.asarray(had)
