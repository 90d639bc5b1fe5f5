"""Mechanisms as a certificate says them: which total is measured or chosen from with
which law, and what that costs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpframe.fields import FieldDict, Fields
from dpframe.noise import ball
from dpframe.release.certificate.key_rules import key_rule
from dpframe.release.certificate.rationals import certified_up, rounded_up, text
from dpframe.release.certificate.total_facts import Ids, Read
from dpframe.release.pricing import AddsNoise, JointNoise, Noise, NoisePlan
from dpframe.theory.formulas.loss import fade, pure_to_gdp, rank_terms
from dpframe.theory.formulas.sensitivity import Sensitivity

_NORMAL = frozenset({"gaussian", "gaussian_rounds"})


@dataclass
class Stated:
    """A mechanism of a certificate: its law, its own fields, and its losses.

    A `pure` one has an ε; it consists of so many `pieces` of equal ε.
    """

    law: str
    fields: FieldDict = field(default_factory=dict)
    epsilon: Fraction | None = None
    mu_squared: Fraction | None = Fraction(0)
    pieces: int = 1
    rho: Fraction = Fraction(0)  # of a choice that is not pure
    key_delta: Fraction = Fraction(0)

    @property
    def normal(self) -> bool:
        """Whether it is a Gaussian mechanism, whose losses add up by squares."""
        return self.epsilon is None and self.law in _NORMAL

    def rho_up(self) -> Fraction:
        """Its ρ, rounded up."""
        if self.epsilon is None:
            return rounded_up((self.mu_squared or Fraction(0)) / 2 if self.normal else self.rho)
        if not self.epsilon:
            return Fraction(0)
        if self.law == "laplace":
            epsilon = self.epsilon
            return certified_up(lambda: ball(epsilon) + (-ball(epsilon)).expm1())
        each = self.epsilon / self.pieces
        return certified_up(lambda: self.pieces * ball(each) * ball(each / 2).tanh())

    def to_json(self, name: str, *, in_rho: bool, in_squares: bool) -> FieldDict:
        """The mechanism under its id, with the losses that are used of it."""
        loss = {} if self.epsilon is None else {"epsilon": text(rounded_up(self.epsilon))}
        if in_rho or self.epsilon is None:
            loss["rho"] = text(self.rho_up())
        if self.mu_squared is not None and (in_squares or self.normal):
            loss["mu_squared"] = text(rounded_up(self.mu_squared))
        return {"id": name, "law": self.law, **self.fields, "loss": loss}


def stated_mechanisms(plan: NoisePlan, names: Ids) -> Iterator[Stated]:
    """The mechanisms of a question. Input: names: the ids of its totals, by their keys."""
    drawn = {id(noise.allotment): noise for noise in plan.noises}
    rests = {_cells_of(noise): noise for noise in plan.noises if noise.total.collects}
    for noise in plan.noises:
        total = noise.total
        if (
            total.collects
            or noise.mechanism.joined
            or (noise.paired and noise.allotment.beside is None)
        ):
            continue  # it stands with the total that it adds up, or follows from a pair
        if (
            isinstance(noise.mechanism, JointNoise)
            and noise.mechanism.first != noise.allotment.names[0]
        ):
            continue  # it stands with the first total of its noise
        first, *others = _stated(noise, drawn, names)
        if total.key in rests and not noise.exact:
            first.fields["rest"] = _parameters(rests[total.key])["scale"]
        if plan.decided_by is not None and plan.decided_by.total.key == total.key:
            first.fields["finds"], first.key_delta = key_rule(plan)
        yield from (first, *others)


def noisy(
    name: str, mechanism: AddsNoise, bound: Sensitivity, scale: Fraction, **fields: Any
) -> Stated:
    """Laplace or normal noise of a scale on one total, or none.

    Input:  name: the id of the total; scale (units of its integer), which is that of the mechanism
            but for a level of a tree; fields: what else is said of it
    """
    own = {"of": [name], "scale": text(scale), **fields}
    if mechanism.normal:
        return Stated(mechanism.law, own, mu_squared=bound.l2_squared / scale**2)
    epsilon = Fraction(0) if mechanism.exact else bound.exact_l1 / scale
    return Stated(mechanism.law, own, epsilon, pure_to_gdp(epsilon) if epsilon else Fraction(0))


def stated_read(read: Read, total: Fields) -> Stated:
    """The Laplace noise on an answer that a choice was made by, of which the total is given."""
    scale, (l1, below) = Fraction(read.scale), map(int, total["sensitivity"]["l1"].split("/"))
    epsilon = Fraction(l1, below) / scale
    return Stated(
        "laplace", {"of": [total["id"]], "scale": text(scale)}, epsilon, pure_to_gdp(epsilon)
    )


def _cells_of(noise: Noise) -> Hashable:
    """The key of the total that a total of suppressed groups adds up."""
    return replace(noise.total, collects=False).key


def _parameters(noise: Noise) -> FieldDict:
    """The parameters of a law, rationals as texts.
    Noise on a pair is drawn with twice the scale of each number.
    """
    own = {
        **noise.mechanism.parameters,
        **({"scale": 2 * Fraction(noise.scale)} if noise.paired else {}),
    }
    return {
        name: text(value) if isinstance(value, Fraction) else value for name, value in own.items()
    }


def _stated(noise: Noise, drawn: Mapping[int, Noise], names: Ids) -> Sequence[Stated]:
    """The mechanisms of a noise: one, or one for each level of a tree."""
    pair, total = noise.allotment, noise.total
    law, bound, own = noise.mechanism.law, total.sensitivity, names[total.key]
    if noise.tree is not None:
        scales = [
            (i, Fraction(noise.tree.scale_of(i, noise.scale)))
            for i, part in enumerate(noise.tree.parts)
            if part
        ]
        return [noisy(own, noise.added, bound, scale, level=i) for i, scale in scales]
    fields: FieldDict = {"of": [own], **_parameters(noise)}
    if total.chosen:
        return [_choice(noise, fields)]
    if noise.paired and pair.beside is not None:
        fields |= {"of": [own, names[pair.beside.total.key]], "weight": pair.weight}
        rows = None if pair.rows is None else drawn.get(id(pair.rows))
        if rows is not None and rows.mechanism.joined:
            one = 2 ** (pair.beside.total.fraction - rows.total.fraction)
            fields["of"].append(names[rows.total.key])
            fields["missing"] = text(one * Fraction(rows.scale))
    if isinstance(noise.mechanism, JointNoise):
        shared = [
            (one, one.mechanism) for one in drawn.values() if isinstance(one.mechanism, JointNoise)
        ]
        shared = [(one, joint) for one, joint in shared if joint.first == noise.mechanism.first]
        fields["of"] = [names[one.total.key] for one, _ in shared]
        fields["factors"] = [joint.factor for _, joint in shared]
    if law in _NORMAL:
        return [Stated(law, fields, mu_squared=2 * noise.rho)]
    if law == "truncated_geometric":
        return [Stated(law, fields, bound.l0 / Fraction(noise.scale), noise.mu_squared, bound.l0)]
    epsilon = noise.mechanism.epsilon(bound)
    return [
        Stated(
            law,
            fields,
            epsilon,
            noise.mu_squared,
            rho=noise.rho if epsilon is None else Fraction(0),
        )
    ]


def _choice(noise: Noise, fields: FieldDict) -> Stated:
    """A choice among candidates; see `theory.formulas.loss.quantile_selection` for its loss."""
    total, bound = noise.total, noise.total.sensitivity
    number, scale = total.choices, Fraction(noise.scale)
    change, units = (1, 2) if total.rank is None else rank_terms(total.rank)
    reach = Fraction(change, units) / scale
    fields |= {"number": number, "rank": None if total.rank is None else text(total.rank)}
    fields |= {"fade": fade(total.rank)} if total.between and total.rank is not None else {}
    if noise.choice.exponential:
        return Stated(
            "exponential",
            fields,
            None,
            noise.mu_squared,
            rho=number * bound.l2_squared * reach**2 / 2,
        )
    return Stated(
        noise.mechanism.law, fields, number * 2 * bound.exact_l1 * reach, noise.mu_squared, number
    )
