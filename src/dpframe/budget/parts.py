"""Parallel composition: releases about disjoint parts of a table cost what the dearest part costs, not their sum.

A unit is in at most m parts of a partition, so whatever the other parts release says nothing of it. Its loss is at most
the sum over its own parts, and each of these is at most the largest.
Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4, for m = 1; basic composition over the m parts of a unit
for more, separately for ε, δ and ρ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpframe.budget.entries import loss_of, units_of
from dpframe.budget.losses import Loss

__all__ = ["Part", "Parts", "opened", "raised"]

Parts = Mapping[str, Any]  # by partition: "groups", "salt", and "spent" by key, as whole units


@dataclass(frozen=True)
class Part:
    """One part of a partition: the partition's fingerprint, and the part's key in words."""

    partition: str
    key: str


def opened(parts: Parts, partition: str, groups: int, salt: str) -> dict[str, Any]:
    """The parts with one partition more, of which nothing was spent."""
    return {**parts, partition: {"groups": groups, "salt": salt, "spent": {}}}


def raised(parts: Parts, part: Part, loss: Loss) -> tuple[Loss, dict[str, Any]]:
    """What a loss in one part adds to the whole budget, and the parts after it.

    >>> parts = opened({}, "p", 2, "")
    >>> first, parts = raised(parts, Part("p", "north"), Loss(5, 0))
    >>> second, parts = raised(parts, Part("p", "south"), Loss(3, 1))
    >>> third, parts = raised(parts, Part("p", "south"), Loss(3, 0))
    >>> first == Loss(10, 0), second == Loss(0, 2), third == Loss(2, 0)
    (True, True, True)
    """
    state = parts[part.partition]
    before = {key: loss_of(units) for key, units in state["spent"].items()}
    after = {**before, part.key: before.get(part.key, loss - loss) + loss}
    low, high = _largest(before.values(), loss - loss), _largest(after.values(), loss - loss)
    spent = {key: units_of(own) for key, own in after.items()}
    return _times(high - low, state["groups"]), {**parts, part.partition: {**state, "spent": spent}}


def _largest(losses: Any, nothing: Loss) -> Loss:
    """The largest ε, δ and ρ, each on its own."""
    every = [*losses, nothing]
    rho = None if nothing.rho_units is None else max(loss.rho_units or 0 for loss in every)
    return Loss(max(loss.epsilon_units for loss in every), max(loss.delta_units for loss in every), rho)


def _times(loss: Loss, factor: int) -> Loss:
    rho = None if loss.rho_units is None else loss.rho_units * factor
    return Loss(loss.epsilon_units * factor, loss.delta_units * factor, rho)
