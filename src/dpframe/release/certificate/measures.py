"""Mechanisms as a certificate says them: what is measured or chosen with which law, and the loss of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpframe.noise import ball
from dpframe.release.certificate.rationals import certified_up, rounded_up, text
from dpframe.release.certificate.total_facts import Ids, ReadFacts
from dpframe.release.pricing import Noise, NoisePlan
from dpframe.theory.formulas.loss import FADE, pure_to_gdp, rank_terms


@dataclass
class Stated:
    """A mechanism of a certificate: its law, its own fields, and its losses.

    A `pure` one has an ε; it consists of so many `pieces` of equal ε.
    """

    law: str
    fields: dict[str, Any] = field(default_factory=dict)
    epsilon: Fraction | None = None
    rho: Fraction = Fraction(0)
    mu_squared: Fraction | None = Fraction(0)
    pieces: int = 1

    @property
    def normal(self) -> bool:
        """Whether it is a Gaussian mechanism, whose losses add up by squares."""
        return self.epsilon is None and self.law in ("gaussian", "gaussian_rounds")

    def rho_up(self) -> Fraction:
        """Its ρ, rounded up."""
        if self.epsilon is None:
            return rounded_up(self.rho)
        if not self.epsilon:
            return Fraction(0)
        if self.law == "laplace":
            epsilon = self.epsilon
            return certified_up(lambda: ball(epsilon) + (-ball(epsilon)).expm1())
        each = self.epsilon / self.pieces
        return certified_up(lambda: self.pieces * ball(each) * ball(each / 2).tanh())

    def to_json(self, name: str, *, in_rho: bool, in_squares: bool) -> dict[str, Any]:
        """The mechanism under its id, with the losses that are used of it."""
        loss = {} if self.epsilon is None else {"epsilon": text(rounded_up(self.epsilon))}
        if in_rho or self.epsilon is None:
            loss["rho"] = text(self.rho_up())
        if self.mu_squared is not None and (in_squares or self.normal):
            loss["mu_squared"] = text(rounded_up(self.mu_squared))
        return {"id": name, "law": self.law, **self.fields, "loss": loss}


def stated_mechanisms(plans: Sequence[NoisePlan], ids: Sequence[Ids]) -> tuple[list[Stated], dict[Hashable, int]]:
    """The mechanisms of several questions, and for each total (the place of its question, its key) its mechanism."""
    mechanisms: list[Stated] = []
    places: dict[Hashable, int] = {}
    normal: int | None = None
    for question, (plan, names) in enumerate(zip(plans, ids, strict=True)):
        drawn = {id(noise.allotment): noise for noise in plan.noises}
        for noise in plan.noises:
            key, together = noise.allotment.total.key, _measured_with(noise, drawn)
            if not together:
                continue
            if noise.allotment.total.collects:
                of = names[_cells_of(noise)]
                place = next(places[question, other] for other, name in names.items() if name == of)
                mechanisms[place].fields["measures"] += list(_measures(noise, drawn, names))
            elif noise.mechanism.law == "gaussian" and normal is not None:
                place = normal
                mechanisms[place].fields["measures"] += list(_measures(noise, drawn, names))
                _add(mechanisms[place], noise)
            else:
                place = len(mechanisms)
                mechanisms.append(_stated(noise, drawn, names))
                normal = place if noise.mechanism.law == "gaussian" else normal
            places[question, key] = place
            for other in together[1:]:
                places[question, other.allotment.total.key] = place
            if len(together) > 1:
                mechanisms[place].fields.setdefault("gives", []).extend(names[n.allotment.total.key] for n in together)
    return mechanisms, places


def stated_read(read: ReadFacts, total: Mapping[str, Any]) -> Stated:
    """The Laplace noise on an answer that a choice was made by, of which the total is given."""
    scale, (l1, below) = Fraction(read.scale), map(int, total["sensitivity"]["l1"].split("/"))
    fields = {"measures": [{"of": {total["id"]: 1}, "scale": text(scale)}]}
    epsilon = Fraction(l1, below) / scale
    return Stated("laplace", fields, epsilon, mu_squared=pure_to_gdp(epsilon))


def _cells_of(noise: Noise) -> Hashable:
    """The key of the total that a total of suppressed groups adds up."""
    return replace(noise.allotment.total, collects=False).key


def _measured_with(noise: Noise, drawn: Mapping[int, Noise]) -> list[Noise]:
    """A noise with those that follow from it: the count of a pair, and what is joined to it; none if it follows."""
    pair = noise.allotment
    if noise.mechanism.joined or (noise.paired and pair.beside is None):
        return []
    if not noise.paired or pair.beside is None:
        return [noise]
    joined = [drawn[id(one)] for one in (pair.rows, pair.sum) if one is not None and id(one) in drawn]
    return [noise, drawn[id(pair.beside)], *(one for one in joined if one.mechanism.joined)]


def _measures(noise: Noise, drawn: Mapping[int, Noise], names: Ids) -> Iterator[dict[str, Any]]:
    """The vectors that noise is added to."""
    pair, own = noise.allotment, names[noise.allotment.total.key]
    if noise.tree is not None:
        for level, part in enumerate(noise.tree.parts):
            if part:
                scale = text(Fraction(noise.tree.scale_of(level, noise.scale)))
                yield {"of": {own: 1}, "level": level, "scale": scale}
    elif noise.paired and pair.beside is not None:
        count, scale = names[pair.beside.total.key], text(2 * Fraction(noise.scale))
        yield {"of": {count: pair.weight, own: 1}, "scale": scale}
        yield {"of": {count: pair.weight, own: -1}, "scale": scale}
        rows = None if pair.rows is None else drawn.get(id(pair.rows))
        if rows is not None and rows.mechanism.joined:
            one = 2 ** (pair.beside.total.fraction - rows.allotment.total.fraction)
            of = {names[rows.allotment.total.key]: one, count: -1}
            yield {"of": of, "scale": text(one * Fraction(rows.scale))}
    else:
        yield {"of": {own: 1}, **_parameters(noise)}


def _parameters(noise: Noise) -> dict[str, Any]:
    """The parameters of a law, rationals as texts."""
    own = noise.mechanism.parameters.items()
    return {name: text(value) if isinstance(value, Fraction) else value for name, value in own}


def _add(mechanism: Stated, noise: Noise) -> None:
    """Add a Gaussian noise to the one Gaussian mechanism."""
    mechanism.rho += noise.rho
    mechanism.mu_squared = (mechanism.mu_squared or Fraction(0)) + 2 * noise.rho


def _stated(noise: Noise, drawn: Mapping[int, Noise], names: Ids) -> Stated:
    total, law, bound = noise.allotment.total, noise.mechanism.law, noise.allotment.total.sensitivity
    if not noise.adds or law == "gaussian_rounds":
        own = {"of": names[total.key], **_parameters(noise)}
        if total.chosen:
            return _choice(noise, own)
        if law == "truncated_geometric":
            epsilon = bound.l0 / Fraction(noise.scale)
            return Stated(law, own, epsilon, mu_squared=noise.mu_squared, pieces=bound.l0)
        return Stated(law, own, rho=noise.rho, mu_squared=noise.mu_squared)
    fields: dict[str, Any] = {"measures": list(_measures(noise, drawn, names))}
    if law == "gaussian":
        return Stated(law, fields, rho=noise.rho, mu_squared=2 * noise.rho)
    if noise.allotment.joint and len(fields["measures"]) > 2:
        fields["joint"] = text(noise.allotment.joint)
    return Stated(law, fields, noise.mechanism.epsilon(bound), mu_squared=noise.mu_squared)


def _choice(noise: Noise, fields: dict[str, Any]) -> Stated:
    """A choice among candidates; see `theory.formulas.loss.quantile_selection` for its loss."""
    total, bound = noise.allotment.total, noise.allotment.total.sensitivity
    number, scale = total.choices, Fraction(noise.scale)
    change, units = (1, 2) if total.rank is None else rank_terms(total.rank)
    reach = Fraction(change, units) / scale
    fields |= {"number": number, "rank": None if total.rank is None else text(total.rank)}
    fields |= {"fade": FADE} if total.between else {}
    if noise.choice.exponential:
        return Stated("exponential", fields, rho=number * bound.l2_squared * reach**2 / 2, mu_squared=noise.mu_squared)
    return Stated(
        noise.mechanism.law, fields, number * 2 * bound.exact_l1 * reach, mu_squared=noise.mu_squared, pieces=number
    )
