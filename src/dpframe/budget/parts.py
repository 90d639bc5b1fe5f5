"""Losses that a budget counts for its parts: those of a table that share nobody, and
those that are paid in advance.

Parallel composition: releases about disjoint parts of a table cost as much as the most expensive
                      part.

A unit is in at most m parts of a partition. The releases about the other parts do not depend on its
rows. So its loss is at most the sum over its own parts, which is at most m times the largest loss
of a part.
Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4, for m = 1; basic composition over the
        m parts of a unit
for more, separately for ε, δ and ρ.

The account "gdp" holds if one of two sums holds: that of ε or that of μ². The loss of a unit is a
vector of both, and grows only with releases about the whole table and about its own parts. Here the
parts' vectors are replaced by their largest ε, δ and μ², each by itself. So whatever a sum of these
says, it says of every part: the filter of every unit holds as long as this one does. The squares μ²
of m parts add up too, adaptively, to at most m times the largest.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from dpframe.budget.accountants import Accountant, accountant_named
from dpframe.budget.entries import Entry, loss_of, texts_of
from dpframe.budget.losses import Loss, Terms
from dpframe.errors import UnsupportedOperation
from dpframe.fields import FieldDict, Fields

Parts = Fields  # {partition: {"groups", "salt", "spent": {key: loss as texts of exact fractions}}}


@dataclass(frozen=True)
class PartName:
    """One part of a partition: the partition's fingerprint, and the part's key as text."""

    partition: str
    key: str


def opened(parts: Parts, partition: str, groups: int, salt: str) -> FieldDict:
    """The parts with one more partition, for which nothing was spent yet."""
    return {**parts, partition: {"groups": groups, "salt": salt, "spent": {}}}


def raised(parts: Parts, part: PartName, loss: Loss) -> tuple[Loss, FieldDict]:
    """The loss that a release about one part adds to the whole budget,
    and the parts after this release.

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


def compared(parts: Parts) -> FieldDict:
    """The parts with exact losses, so that equal parts compare as
    equal however they were written.
    """
    return {
        partition: {
            **state,
            "spent": {key: loss_of(texts) for key, texts in state["spent"].items()},
        }
        for partition, state in parts.items()
    }


@dataclass(frozen=True)
class Share:
    """The loss that a budget counts for one of its allowances, before
    and after parts of it are moved.

    Input:  accountant: of the budget; opening: what it counted for the allowance when it was paid;
            counted: what it counts for it now; limit: of all releases of the allowance, in its own
            terms; used: what the budget would count for its releases, had each been charged to the
            budget itself; mixed: whether the allowance adds up ρ up to an (ε, δ) of the budget
    Bound:  while allowances are open, reduced, enlarged and closed, in any order that follows from
            the answers, all
            releases together are private at the limit of the budget.
            Neighbours: tables that differ in one unit. What can change: the answers, and so all
                        that is asked later.
            Proof. Compare with the plain account, to which each release of an allowance is charged
            by itself and which nobody pays in advance. Each of its sums is at any time at most that
            of this account: an allowance counts W(l) for its limit l, its releases add up to at
            most l, and so the W of its releases to at most W(l). For ε, δ and ρ, W is the amount
            itself. For the μ² of two sums it is f(ε), `pure_to_gdp`. f is convex and f(0) = 0, so
            f(a) + f(b) <= f(a + b): with μ = 2u and ε = ln Φ(u) - ln Φ(-u), its slope is
            8·u·m(u)·Φ(u), where m = Φ(-u)/φ(u), and u·m(u) has the slope (1 + u²)·m(u) - u > 0
            (Gordon). What all sums within the limit accept, smaller sums accept. So whoever asks
            here asks the plain account, and is only refused more often. A series is one release, at
            its whole price, and each period that is measured again is another one. A transfer
            changes both limits, and both W. A closed allowance keeps the W of its releases, one by
            one. What was paid before the two sums began is part of the limit that they began with,
            which is fixed from then on. So it is not returned later, and it moves only to an
            allowance that was paid then too. Where an allowance adds up ρ up to an (ε, δ), its
            spent ρ is no part of ε that is fixed beforehand. So it is returned as a whole, if
            nothing was released from it, or not at all, and no part of it is moved
    Source: Rogers et al. 2016, arXiv:1605.08294, for filters; Haney et al. 2023, arXiv:2309.05901,
            for filters of mechanisms that run side by side; Gordon 1941,
            doi:10.1214/aoms/1177731721, for m(u) > u / (1 + u²)
    Errors: UnsupportedOperation where no part can be moved
    """

    accountant: Accountant
    opening: Loss
    counted: Loss
    limit: Loss
    used: Loss
    mixed: bool

    @classmethod
    def of(cls, accountant: Accountant, opening: Entry) -> Share:
        """As it was paid."""
        counted, settings = loss_of(opening.body["loss"]), opening.body["opens"]
        counted = replace(counted, split=None, before=None)
        mixed = (
            accountant_named(settings["accountant"]).terms is Terms.RHO
            and accountant.terms is not Terms.RHO
        )
        return cls(
            accountant, counted, counted, loss_of(settings["limit"]), counted - counted, mixed
        )

    def after(self, entry: Entry) -> Share:
        """After a release, or after a part was given away or received."""
        loss = entry.part
        if loss is None:  # it was closed
            return self
        if entry.receives:
            return self.moved(loss)
        if entry.gives:
            return self.moved(loss - loss - loss)
        own = self.opening if self.mixed else self.accountant.reserved(self.opening, loss)
        return replace(self, used=self.used + own)

    def moved(self, amount: Loss) -> Share:
        """With an amount more, which may be negative."""
        limit = self.limit + amount
        return replace(self, limit=limit, counted=self.accountant.reserved(self.opening, limit))

    def closed(self, spent: Loss) -> Loss:
        """The change of the budget's sums when it is closed: nothing, or less than nothing.
        Input: these sums.
        """
        began = spent.split is not None and not self.opening.mu_squared
        kept = self.counted if began else self.used.joined(self.counted, min)
        return kept - self.counted


def moved(one: Share, other: Share, amount: Loss) -> tuple[Loss, Share, Share]:
    """A part of one allowance moves to another.
    Output: what that adds to the sums of the budget, and both after it.

    Errors: UnsupportedOperation
    """
    if one.mixed or other.mixed:
        raise UnsupportedOperation(
            "transfer: this allowance adds up ρ to an ε at its δ, so no part of it is a part of "
            "ε. Close it, or give it no δ: allocate(nights=90, epsilon=2)."
        )
    if bool(one.opening.mu_squared) != bool(other.opening.mu_squared):
        raise UnsupportedOperation(
            "transfer: one of the two was paid before this budget began to count squares, and the "
            "other one after it. Nothing was moved."
        )
    after = one.moved(amount - amount - amount), other.moved(amount)
    change = after[0].counted + after[1].counted - one.counted - other.counted
    return replace(change, left=False), *after


def _largest(losses: Any, nothing: Loss) -> Loss:
    """The largest ε, the largest δ, the largest ρ and the largest μ² of some losses."""
    return functools.reduce(lambda one, other: one.joined(other, max), losses, nothing)


def _times(loss: Loss, factor: int) -> Loss:
    return loss.joined(loss, lambda number, _: number * factor)
