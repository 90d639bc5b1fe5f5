"""Parallel composition: releases about disjoint parts of a table cost as much as the most expensive part.

A unit is in at most m parts of a partition. The releases about the other parts do not depend on its rows. So its loss
is at most the sum over its own parts, which is at most m times the largest loss of a part.
Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4, for m = 1; basic composition over the m parts of a unit
for more, separately for ε, δ and ρ.

The account "gdp" holds if one of two sums holds: that of ε or that of μ². The loss of a unit is a vector of both, and
grows only with releases about the whole table and about its own parts. Here the parts' vectors are replaced by their
largest ε, δ and μ², each by itself. So whatever a sum of these says, it says of every part: the filter of every unit
holds as long as this one does. The squares μ² of m parts add up too, adaptively, to at most m times the largest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.budget.entries import loss_of, texts_of
from dpframe.budget.losses import Loss

Parts = Mapping[str, Any]  # {partition: {"groups", "salt", "spent": {key: loss as texts of exact fractions}}}


@dataclass(frozen=True)
class PartName:
    """One part of a partition: the partition's fingerprint, and the part's key as text."""

    partition: str
    key: str


def opened(parts: Parts, partition: str, groups: int, salt: str) -> dict[str, Any]:
    """The parts with one more partition, for which nothing was spent yet."""
    return {**parts, partition: {"groups": groups, "salt": salt, "spent": {}}}


def raised(parts: Parts, part: PartName, loss: Loss) -> tuple[Loss, dict[str, Any]]:
    """The loss that a release about one part adds to the whole budget, and the parts after this release.

    >>> from fractions import Fraction
    >>> parts = opened({}, "p", 2, "")
    >>> first, parts = raised(parts, PartName("p", "north"), Loss(Fraction(5), Fraction(0)))
    >>> second, parts = raised(parts, PartName("p", "south"), Loss(Fraction(3), Fraction(1)))
    >>> third, parts = raised(parts, PartName("p", "south"), Loss(Fraction(3), Fraction(0)))
    >>> first, second, third
    (Loss(epsilon=10.0, delta=0.0), Loss(epsilon=0.0, delta=2.0), Loss(epsilon=2.0, delta=0.0))
    """
    state = parts[part.partition]
    before = {key: loss_of(texts) for key, texts in state["spent"].items()}
    after = {**before, part.key: before.get(part.key, loss - loss) + loss}
    low, high = _largest(before.values(), loss - loss), _largest(after.values(), loss - loss)
    texts = {key: texts_of(own) for key, own in after.items()}
    return _times(high - low, state["groups"]), {**parts, part.partition: {**state, "spent": texts}}


def compared(parts: Parts) -> dict[str, Any]:
    """The parts with exact losses, so that equal parts compare as equal however they were written."""
    return {
        partition: {**state, "spent": {key: loss_of(texts) for key, texts in state["spent"].items()}}
        for partition, state in parts.items()
    }


def _largest(losses: Any, nothing: Loss) -> Loss:
    """The largest ε, the largest δ, the largest ρ and the largest μ² of some losses."""
    return functools.reduce(lambda one, other: one.joined(other, max), losses, nothing)


def _times(loss: Loss, factor: int) -> Loss:
    return loss.joined(loss, lambda number, _: number * factor)
