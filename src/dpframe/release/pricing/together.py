"""Totals of a price in ε that are measured together, where none then has more noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpframe.plan import Allotment, TotalKind
from dpframe.release.pricing.bought_noise import (
    ALONE,
    PricedTotal,
    Together,
    joint_laplaces_of,
    laplaces_of,
)
from dpframe.release.pricing.joint_noise import joint_noises
from dpframe.release.pricing.noise import Noise


def measured_together(
    numbers: Sequence[PricedTotal],
    selections: Sequence[PricedTotal],
    epsilon: Fraction,
    one_of: Callable[[Allotment, Fraction], Noise],
    *,
    sets: bool = True,
) -> tuple[list[PricedTotal], list[PricedTotal], Together]:
    """Parts of ε where several totals share one part, if none of them has more noise then.

    Input:  the parts of ε of totals with noise and of choices; ε; `one_of` as in `laplaces_of`;
            sets: whether totals of a group may have one noise, see `joint_noises`
    Output: new parts with the same sum for each question, and `together` as for `laplaces_of`
    Bound:  first a sum, its count and numbers beside them share a part (`_joint_laplaces_of`), then
            totals that one unit moves in step. They need the part at which each has the noise that
            its own part buys, which is less than their parts together. What is left over goes to
            what then has the least for its share (`filled`), so nothing has more noise than without
            this. Second moments of people, which only intervals need, become larger by the factor
            that there is for all. All of it follows from the question and the price alone
    """
    shares = _Shares([p for p in numbers if p.epsilon], list(selections), epsilon, one_of)
    shares.join_pairs()
    if sets:
        shares.join_sets(one_signed=True)
        shares.join_sets(one_signed=False)
    return shares.priced(numbers), shares.priced(selections), shares.together


@dataclass
class _Shares:
    """The parts of ε of totals, by their ids, while totals are joined that are measured together.

    `parts` add up to the same sum for each question. `asked` are the parts at the beginning.
    `leads` has the totals whose parts are on another one, by the id of that one.
    """

    bought: list[PricedTotal]
    choices: list[PricedTotal]
    epsilon: Fraction
    one_of: Callable[[Allotment, Fraction], Noise]
    together: Together = ALONE
    parts: dict[int, Fraction] = field(default_factory=dict)
    leads: dict[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = {id(p.allotment): p.epsilon for p in (*self.bought, *self.choices)}
        self.asked = dict(self.parts)
        self.of_people = {
            id(p.allotment) for p in self.bought if p.allotment.total.kind is TotalKind.MOMENT
        }

    def priced(self, totals: Sequence[PricedTotal]) -> list[PricedTotal]:
        """The totals with their new parts."""
        return [replace(p, epsilon=self.parts.get(id(p.allotment), p.epsilon)) for p in totals]

    def _ratio(self, noises: Sequence[Noise]) -> Fraction:
        """The largest deviation of new noises over that of the total's noise at its part.

        Of other totals no noise is worked out: each of many columns asks here.
        """
        of = self._measured_with(frozenset(id(noise.allotment) for noise in noises))
        bought = [p.allotment for p in self.bought if id(p.allotment) in of]
        parts = [(one, self.epsilon * self.parts[id(one)]) for one in bought if self.parts[id(one)]]
        alone = laplaces_of(parts, self.one_of, self.together)
        deviations = {id(noise.allotment): noise.mechanism.deviation for noise in alone}
        return Fraction(max(n.mechanism.deviation / deviations[id(n.allotment)] for n in noises))

    def _measured_with(self, totals: frozenset[int]) -> frozenset[int]:
        """Totals, and all whose noise or part of the price decides theirs, by pairs and sets."""
        pairs = [p.allotment for p in self.bought if p.allotment.beside]
        groups = [frozenset((id(one), id(one.beside))) for one in pairs]
        groups += [members | {lead} for lead, members in self.together.pairs.items()]
        groups += [frozenset(map(id, members)) for members, _ in self.together.sets]
        more = totals.union(*(group for group in groups if group & totals))
        return more if more == totals else self._measured_with(more)

    def _fill(self, needed: Mapping[int, Fraction]) -> None:
        """Divide what is left over.
        Input: the parts that totals which lead others need, if these are smaller now.
        """
        least, wanted = dict(self.parts), dict(self.asked)
        for lead, members in self.leads.items():
            whole = sum((self.parts[one] for one in (lead, *members)), Fraction(0))
            least |= dict.fromkeys(members, Fraction(0)) | {lead: needed.get(lead, whole)}
            wanted[lead] = max(self.asked[one] for one in (lead, *members))
        for question in {p.question for p in self.bought}:
            of = [id(p.allotment) for p in (*self.bought, *self.choices) if p.question == question]
            whole = sum((self.parts[one] for one in of), Fraction(0))
            factor = whole / sum((least[one] for one in of), Fraction(0))
            spread = {one: factor * least[one] for one in of if one in self.of_people}
            others = [one for one in of if least[one] and one not in spread]
            rest = whole - sum(spread.values(), Fraction(0))
            spread |= filled({one: (least[one], wanted[one]) for one in others}, rest)
            self.parts |= {one: spread.get(one, Fraction(0)) for one in of}

    def join_pairs(self) -> None:
        """Join a sum and its count, and numbers beside them."""
        needed, together = dict[int, Fraction](), dict[int, frozenset[int]]()
        for allotment in (p.allotment for p in self.bought if p.allotment.beside is not None):
            lead, count = id(allotment), id(allotment.beside)
            self.leads[lead] = frozenset([count])
            more = [
                id(member) for member in (allotment.rows, allotment.sum) if id(member) in self.parts
            ]
            for members in dict.fromkeys((frozenset(more), *(frozenset([one]) for one in more))):
                whole = sum((self.parts[one] for one in (lead, count, *members)), Fraction(0))
                ratio = self._ratio(joint_laplaces_of(allotment, self.epsilon * whole, members))
                if members and ratio < 1:
                    self.leads[lead] = members | {count}
                    needed[lead], together[lead] = whole * ratio, members
                    break
        if together:
            self._fill(needed)
            self.together = Together(together)

    def join_sets(self, *, one_signed: bool) -> None:
        """Join totals that one unit moves in step: by windows if all signs are one, else cubes."""
        needed = dict[int, Fraction]()
        for members in self._sets(one_signed):
            ids = frozenset(map(id, members))
            whole = sum((self.parts[one] for one in ids), Fraction(0))
            ratio = self._ratio(joint_noises(members, self.epsilon * whole, one_signed=one_signed))
            if ratio < 1:
                lead = id(members[0])
                needed[lead] = whole * ratio
                self.leads = {one: beside for one, beside in self.leads.items() if one not in ids}
                self.leads[lead] = ids - {lead}
                pairs = {
                    one: beside for one, beside in self.together.pairs.items() if one not in ids
                }
                others = [
                    one for one in self.together.sets if not ids.intersection(map(id, one[0]))
                ]
                self.together = Together(pairs, (*others, (members, one_signed)))
        if needed:
            self._fill(needed)

    def _sets(self, one_signed: bool) -> list[tuple[Allotment, ...]]:
        """Two or more totals of a question that one unit moves in step.

        A pair with a sum that follows from it stays as it is.
        """
        steps = {id(p.allotment): p.allotment.in_step for p in self.bought}
        groups = [frozenset((lead, *members)) for lead, members in self.leads.items()]
        apart = {
            one for group in groups for one in group if one_signed or None in map(steps.get, group)
        }
        sets: dict[object, list[Allotment]] = {}
        for p in self.bought:
            step = p.allotment.in_step
            if step is not None and id(p.allotment) not in apart and (step.sign or not one_signed):
                sets.setdefault((p.question, step.under, step.rows), []).append(p.allotment)
        return [tuple(members) for members in sets.values() if len(members) > 1]


def filled(parts: Mapping[int, tuple[Fraction, Fraction]], whole: Fraction) -> dict[int, Fraction]:
    """Parts of a whole in proportion to what is wanted, but each at least what is needed.

    Input:  for each the least that it needs, which together are at most the whole, and the weight
            that is wanted
    Output: the parts, which add up to the whole, exactly

    >>> filled({1: (Fraction(1, 2), Fraction(1)), 2: (Fraction(1, 4), Fraction(1))}, Fraction(1))
    {1: Fraction(1, 2), 2: Fraction(1, 2)}
    """
    rising = dict(parts)
    while True:
        left = whole - sum(
            (least for one, (least, _) in parts.items() if one not in rising), Fraction(0)
        )
        level = left / sum((wanted for _, wanted in rising.values()), Fraction(0))
        above = [one for one, (least, wanted) in rising.items() if least > level * wanted]
        if not above:
            return {
                one: level * wanted if one in rising else least
                for one, (least, wanted) in parts.items()
            }
        rising = {one: part for one, part in rising.items() if one not in above}
