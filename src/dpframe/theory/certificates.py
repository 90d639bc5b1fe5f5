"""The chain of transformations and measurements that a certificate of a
release describes, and its map.

A release of a dataframe is priced by the tracker. Its certificate says what was added up, with
which limits and noise. Here each total is a transformation from tables of units, derived from the
certificate's limits and ranges alone; each mechanism is a measurement behind these; and all of them
are composed. So the map is a second derivation of the charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.noise import family_tail, gaussian_tail, root_up
from dpframe.theory.certificate_parts import MADE_OF_GROUPS, ends_of, finding, misfits
from dpframe.theory.combinators import compose, fix_delta, pure_to_approx, zcdp_to_approx
from dpframe.theory.exact import Root
from dpframe.theory.formulas.loss import (
    Spread,
    deltas_beside_noise,
    gaussian_mu,
    laplace_rho,
    partition_delta,
    pure_to_zcdp,
    threshold_delta,
)
from dpframe.theory.formulas.sensitivity import (
    Relation,
    Sensitivity,
    key_weights,
    merged,
    shared_noise_square,
)
from dpframe.theory.formulas.sensitivity.grouped import change
from dpframe.theory.framework import Measurement, Transformation
from dpframe.theory.measurements import gaussian, laplace, noisy_top_k
from dpframe.theory.spaces import (
    Approximate,
    AtomDomain,
    ExchangedUnitDistance,
    L1Distance,
    L2Distance,
    LinfDistance,
    MaxDivergence,
    Metric,
    SmoothedMaxDivergence,
    TupleDomain,
    UnitDistance,
    VectorDomain,
    ZeroConcentratedDivergence,
)

Facts = Mapping[str, Any]
_NORMAL = ("gaussian", "gaussian_rounds")
# of units: the first entry of a row names its unit
_TABLES = VectorDomain(TupleDomain(AtomDomain(int)))
_NUMBERS = VectorDomain(AtomDomain(int))
_REAL = VectorDomain(AtomDomain(float))


def from_certificate(certificate: Facts) -> Measurement:
    """The chain of transformations and measurements that a certificate describes.

    Input:  the certificate of a release, `release.certificate()`, or one that was read from JSON
    Output: a measurement on tables of units. Its `map(1)` is the loss for one unit, in the terms of
            the charge: ε, (ε, δ), ρ or (ρ, δ). It cannot be run, as a certificate has no rows
    Bound:  each total's sensitivity follows from its kind, limits, range and number of groups; each
            mechanism's loss from its law and scale; and they are composed
    Source: the page about certificates in the reference
    Errors: UnsupportedOperation for a kind, a law or a rule that has no chain; InvalidArgument for
            no certificate, or one whose parts do not fit each other

    >>> total = {
    ...     "id": "t0",
    ...     "kind": "rows",
    ...     "limits": {"groups": 1, "rows_per_group": 3, "rows": 3},
    ...     "cells": 1,
    ...     "fraction": 0,
    ...     "range": [1, 1],
    ...     "one_row": False,
    ... }
    >>> noise = {"law": "discrete_laplace", "of": ["t0"], "scale": "6/1"}
    >>> from_certificate(
    ...     {
    ...         "relation": "add-remove",
    ...         "totals": [total],
    ...         "mechanisms": [noise],
    ...         "composition": {"rule": "epsilon"},
    ...         "charge": {"epsilon": "1/2", "delta": "0/1"},
    ...     }
    ... ).map(1)
    0.5
    """
    try:
        misfit = next(misfits(certificate), None)
        if misfit is None:
            return _Steps(certificate).composed()
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
        misfit = None
    if misfit is not None:
        raise InvalidArgument(
            f"from_certificate: {misfit}. The parts of a certificate have to fit each other."
        )
    raise InvalidArgument(
        "from_certificate: this is no certificate; give release.certificate(), or one read from "
        "JSON."
    )


def number(text: str) -> Fraction:
    """A rational number of a certificate."""
    top, bottom = text.split("/")
    return Fraction(int(top), int(bottom))


class _Steps:
    """The parts of a certificate, and what follows from them."""

    def __init__(self, certificate: Facts) -> None:
        self._facts = certificate
        self._relation = certificate["relation"]
        self._totals = {total["id"]: total for total in certificate["totals"]}
        self._exchanges = self._relation == "replace"
        self._metric: Metric = ExchangedUnitDistance() if self._exchanges else UnitDistance()

    @property
    def _joining(self) -> _Steps:
        """The same, where a unit joins or leaves."""
        return _Steps({**self._facts, "relation": "add-remove"})

    # Sensitivities

    def sensitivity(self, name: str) -> Sensitivity:
        """The distance by which one unit moves a total (units of its integer)."""
        total = self._totals[name]
        kind = total["kind"]
        if kind not in _RULES:
            raise _unknown("kind of total", kind)
        if total.get("one_row"):
            low, high = total["range"]
            width = Fraction(high - low) * 2 ** total["fraction"]
            return change(
                groups=1,
                total=width,
                cell=width,
                swing=width,
                relation=Relation.ADD_REMOVE,
                cells=1,
            )
        return _RULES[kind](self, total)

    def limited(
        self, total: Facts, cell: int | Fraction, swing: int | Fraction, off: Fraction = Fraction(0)
    ) -> Sensitivity:
        """Sums over rows of weight 1 of integers of this size, of which
        two differ by at most `swing`.
        """
        limits, one = total["limits"], 2 ** total["fraction"]
        rows = limits["rows_per_group"]
        return change(
            groups=limits["groups"],
            total=limits["rows"] * cell * one + limits["groups"] * off,
            cell=rows * cell * one + off,
            swing=rows * swing * one + 2 * off,
            relation=self._relation,
            cells=total["cells"],
        )

    def per_unit(self, total: Facts, low: int, high: int) -> Sensitivity:
        """One integer of a range for each unit and group."""
        groups, size, most = total["limits"]["groups"], max(abs(low), abs(high)), None
        if total.get("factor"):  # a product, at most so many times the size of its other factor
            factor = total["factor"]
            sizes = math.floor(
                self._joining.sensitivity(factor["of"]).exact_l1 * number(factor["scale"])
            )
            most = factor["times"] * (sizes + factor["off"] * groups)
        whole = groups * size if most is None else min(groups * size, most)
        swing = max(high, 0) - min(low, 0)
        relation, cells = self._relation, total["cells"]
        return change(
            groups=groups, total=whole, cell=size, swing=swing, relation=relation, cells=cells
        )

    def places(self, total: Facts) -> Sensitivity:
        """Rows of each group that enter, leave or change their place."""
        return self.limited(total, 1, 2)

    def level(self, total: Facts) -> Sensitivity:
        """Rows in the disjoint blocks of one level of a tree."""
        return self.limited({**total, "cells": None}, 1, 1)

    def sums(self, total: Facts) -> Sensitivity:
        """A sum of integers of a range; with a shift, a sum and a
        multiple of its count, both rounded.
        """
        (low, high), shift, off = total["range"], total.get("shift", 0), 0
        if shift and total["fraction"]:
            off = max(abs(low - shift), abs(high - shift)) + 1 + 2 * abs(shift)
        return self.limited(
            total, max(abs(low), abs(high)), max(high, 0) - min(low, 0), Fraction(off)
        )

    def interaction(self, total: Facts) -> Sensitivity:
        """The centred interaction of a marginal. A row adds 1 - 1/n at its key
        of an axis, and -1/n at others.
        """
        levels, rows = total["levels"], total["limits"]["rows"] * 2 ** total["fraction"]
        square = math.prod((Fraction(n - 1, n) for n in levels), start=Fraction(1))
        if self._exchanges and levels:
            square *= 2 * Fraction(min(levels), min(levels) - 1)
        most = rows * (2 if self._exchanges else 1)
        return Sensitivity.of(
            l0=math.prod(levels), l1=most * 2 ** len(levels), l2_squared=rows**2 * square, linf=most
        )

    def histogram(self, total: Facts) -> Sensitivity:
        """Integers of one unit, spread over the entries."""
        times = 2 if self._exchanges and total["kind"] == "histogram" else 1
        l1 = times * total["most"]
        return Sensitivity.of(l0=total["cells"], l1=l1, l2_squared=l1**2, linf=l1)

    # Mechanisms

    def transformed(
        self, length: Fraction | Root, metric: Metric, *, real: bool = False
    ) -> Transformation:
        """The transformation from tables of units to numbers that one unit moves by this length."""
        domain = _REAL if real else _NUMBERS
        return Transformation(
            _TABLES, self._metric, domain, metric, _not_run, lambda d_in: _times(length, d_in)
        )

    def pure(
        self, length: Fraction | int, scale: Fraction | int, *, real: bool = True
    ) -> Measurement:
        """Laplace noise on numbers that one unit moves by this length in L1."""
        chain = self.transformed(Fraction(length), L1Distance(), real=real)
        return _then(chain, laplace(*chain.output_space, scale=scale))

    def mechanism(self, facts: Facts) -> Measurement:
        """The chain of one mechanism."""
        law = facts["law"]
        if law not in _LAWS:
            raise _unknown("law", law)
        return _LAWS[law](self, facts)

    def laplace(self, facts: Facts) -> Measurement:
        """Noise of scale 1 on what is measured, divided by its own scale."""
        return self.pure(self._in_scales(facts), 1, real=facts["law"] == "laplace")

    def _in_scales(self, facts: Facts) -> Fraction:
        """The distance by which one unit moves the measured number, in units of its scale.

        A unit moves what is released or the rest of it; or both, where the total itself decides
        what is released.
        """
        total, *pair = facts["of"]
        l1, scale = self.sensitivity(total).exact_l1, number(facts["scale"])
        if facts["law"] == "none":
            if l1:
                raise UnsupportedOperation(
                    "from_certificate: a total that one unit can move has no noise."
                )
            return Fraction(0)
        if "missing" not in facts:
            rest, moves = number(facts.get("rest", facts["scale"])), (2 if pair else 1) * l1
            return (
                moves / scale + moves / rest
                if {"rest", "finds"} <= facts.keys()
                else moves / min(scale, rest)
            )
        rows = self._totals[pair[0]]
        one, alone = 2 ** rows["fraction"], self._joining.limited({**rows, "fraction": 0}, 1, 1)
        rounding = Fraction(3 * alone.l0 if one > 1 else 0)
        joint = (2 if self._exchanges else 1) * (alone.exact_l1 * int(one) + rounding)
        sums = self._totals[total]
        size = max(map(abs, sums["range"])) * Fraction(2) ** (sums["fraction"] - rows["fraction"])
        most = max(Fraction(facts["weight"]), Fraction(size))
        return joint * max(1 / number(facts["missing"]), 2 * most / scale)

    def square(self, facts: Facts) -> Fraction:
        """μ² of normal noise: on a total, or on the weights of keys in several rounds."""
        (name,), scale = facts["of"], number(facts["scale"])
        bound, common = self.sensitivity(name), number(facts.get("common", "0/1"))
        cells = self._totals[name].get("cells")
        square = (
            shared_noise_square(bound, cells, (common / scale) ** 2) if common else bound.l2_squared
        )
        cost = len(facts.get("thresholds", (0,))) * square / scale**2
        if "rest" not in facts or not bound.exact_l1:
            return cost
        l1, cell, rest = bound.exact_l1, bound.exact_linf, number(facts["rest"])
        if "finds" in facts:
            return cost + (l1 / rest) ** 2
        return max(
            cost,
            *(
                (j * cell**2 / scale**2 + ((l1 - j * cell) / rest) ** 2)
                for j in range(int(l1 // cell) + 1)
            ),
        )

    def normal(self, mu_squared: Fraction) -> Measurement:
        """A Gaussian mechanism with this μ²."""
        chain = self.transformed(Root(mu_squared), L2Distance(), real=True)
        in_rho = self._rule not in ("gaussian", "threshold_beside_noise")
        measure = ZeroConcentratedDivergence() if in_rho else SmoothedMaxDivergence()
        return _then(chain, gaussian(*chain.output_space, scale=1, output_measure=measure))

    def window(self, facts: Facts) -> Measurement:
        """Noise from one window, whose norm is the largest entry of one unit."""
        cell = self._joining.sensitivity(*facts["of"]).exact_linf
        units = 2 if self._exchanges else 1
        return self.pure(units * cell, number(facts["scale"]))

    def joint(self, facts: Facts) -> Measurement:
        """Noise that several totals share: see `formulas.loss.joint_scale`."""
        parts = [
            (self._totals[name], c) for name, c in zip(facts["of"], facts["factors"], strict=True)
        ]
        if all(total["cells"] == 1 for total, _ in parts):
            moves = [abs(c) * self.sensitivity(total["id"]).exact_linf for total, c in parts]
            length = max(moves) * (2 if facts["law"] == "window" and self._exchanges else 1)
        else:
            ends = [
                c * end * 2 ** total["fraction"] for total, c in parts for end in ends_of(total)
            ]
            total = {**parts[0][0], "fraction": 0}
            of_units = total["kind"] in ("units", "unit_sum")
            rows = self.per_unit(total, -1, 1) if of_units else self.places(total)
            length = max(map(abs, ends)) * rows.exact_l1
        return self.pure(length, number(facts["scale"]))

    def choice(self, facts: Facts) -> Measurement:
        """Choices among candidates, one after the other.

        Their ε add up over groups and their ρ by squares, so one group that moves by the l1 or the
        l2 stands for all.
        """
        bound, pure, scale = (
            self.sensitivity(*facts["of"]),
            facts["law"] == "permute_and_flip",
            number(facts["scale"]),
        )
        length: Fraction | Root = bound.exact_l1 if pure else Root(bound.l2_squared)
        rank, metric = facts["rank"], LinfDistance(monotonic=facts["rank"] is None)
        if rank is not None:
            a, b = number(rank).as_integer_ratio()
            # what public rows, one less for each so many rows, add to a row's change
            fade = facts.get("fade", 1)
            moved, units = (
                (2, 2) if a in (0, b) else (fade * max(a, b - a) + min(a, b - a), fade * b)
            )
            length, scale = _times(length, moved), scale * units
        chain = self.transformed(length, metric)
        measure = MaxDivergence() if pure else ZeroConcentratedDivergence()
        return _then(
            chain,
            noisy_top_k(
                *chain.output_space, k=facts["number"], scale=scale, output_measure=measure
            ),
        )

    def optimal(self, facts: Facts) -> Measurement:
        """The decisions of the optimal rule, each of ε' = 1/scale, without their δ."""
        return self.pure(self.sensitivity(*facts["of"]).l0, number(facts["scale"]), real=False)

    # Composition

    def _pieces(self, facts: Facts) -> int:
        """Of how many mechanisms of equal ε a choice consists."""
        if facts["law"] == "truncated_geometric":
            return self.sensitivity(*facts["of"]).l0
        return int(facts.get("number", 1))

    @property
    def _rule(self) -> str:
        return str(self._facts["composition"]["rule"])

    def key_delta(self, noise: Facts) -> Fraction:
        """The probability that a group which one unit is alone in is shown."""
        (name,), finds = noise["of"], noise["finds"]
        if "start" in finds:
            return 1 - (1 - number(finds["start"])) ** self.sensitivity(name).l0
        bound, scale = self.sensitivity(name), number(noise["scale"])
        # rounds: after j of them a key of one unit has at most j·linf, but for rounding
        if "threshold" not in finds:
            reach = [
                (j, top - j * bound.exact_linf - Fraction(j, 2))
                for j, top in enumerate(noise["thresholds"], 1)
            ]
            tails = [gaussian_tail(root_up(scale**2 * j), x) for j, x in reach]
            return sum((Fraction(threshold_delta(tail, bound.l0)) for tail in tails), Fraction(0))
        above = finds["threshold"] - finds["least"]
        spread = self._alone(name, bound.l0)

        def tail(size: int) -> Fraction:
            return Fraction(family_tail(noise["law"], scale, above - size))

        return max(partition_delta(parts, tail) for parts in spread.worst())

    def _alone(self, name: str, groups: int) -> Spread:
        """The numbers of one unit in groups where it is alone."""
        bound, least = self.sensitivity(name), int(self._totals[name]["fraction"] == 0)
        return Spread(groups, int(bound.exact_linf), int(bound.exact_l1), least)

    def beside(self, parts: Sequence[Measurement]) -> Measurement:
        """Gaussian noise with a threshold on one of its numbers, which share δ,
        and pure mechanisms beside them.
        """
        part, noises = number(self._facts["composition"]["epsilon"]), self._facts["mechanisms"]
        measured = [
            (*noise["of"], number(noise["scale"])) for noise in noises if noise["law"] == "gaussian"
        ]
        kinds = [self._totals[name]["kind"] for name, _ in measured]
        times = [0 if kind in MADE_OF_GROUPS else 1 + (kind == "tree") for kind in kinds]
        bounds = [(self.sensitivity(name), n) for (name, _), n in zip(measured, times, strict=True)]
        if len({self._totals[name].get("question") for name, _ in measured}) > 1:
            raise UnsupportedOperation(
                "from_certificate: a threshold shares its δ with noise of its own question alone."
            )
        groups, scales = max(bound.l0 for bound, _ in bounds), [scale for _, scale in measured]

        def mu(moved: int) -> float:
            squares = [
                min(bound.l2_squared, moved * times * bound.exact_linf**2)
                if times
                else bound.l2_squared
                for bound, times in bounds
            ]
            return gaussian_mu(squares, scales)

        (decides,) = finding(noises)
        (name,), finds = decides["of"], decides["finds"]
        alone = self._alone(name, groups)
        above, scale = finds["threshold"] - finds["least"], number(decides["scale"])
        delta = max(deltas_beside_noise(above, part, groups, scale, mu, alone))
        pure = [one for one in parts if one.output_measure == MaxDivergence()]

        def privacy_map(d_in: int) -> tuple[Fraction, Fraction]:
            if d_in != 1:
                raise UnsupportedOperation(
                    "from_certificate: this release has a map for one unit alone."
                )
            return part + sum((Fraction(one.exact_map(d_in)) for one in pure), Fraction(0)), delta

        return Measurement(
            _TABLES, self._metric, Approximate(MaxDivergence()), _not_run, privacy_map
        )

    def composed(self) -> Measurement:
        """All mechanisms together, in the terms of the charge."""
        rule, charge = self._rule, self._facts["charge"]
        if rule not in ("epsilon", "gaussian", "threshold_beside_noise", "rho", "mu_squared"):
            raise _unknown("rule of composition", rule)
        normal = [one for one in self._facts["mechanisms"] if one["law"] in _NORMAL]
        others = [one for one in self._facts["mechanisms"] if one["law"] not in _NORMAL]
        parts = [self.mechanism(one) for one in others]
        hidden = {name for one in self._facts["mechanisms"] for name in one["of"]}
        if any(self.sensitivity(name).l2_squared for name in self._totals.keys() - hidden):
            raise UnsupportedOperation(
                "from_certificate: a total that one unit can move has no noise."
            )
        if normal:
            parts.append(self.normal(sum(map(self.square, normal), Fraction(0))))
        if rule == "threshold_beside_noise":
            return self.beside(parts)
        deciding = finding(self._facts["mechanisms"])
        delta = sum((self.key_delta(one) for one in deciding), Fraction(0))
        in_rho = rule in ("rho", "mu_squared")
        if in_rho:
            each = zip(parts, [*others, *normal[:1]], strict=True)
            together = compose(
                [_in_zcdp(part, facts["law"], self._pieces(facts)) for part, facts in each]
            )
            if "rho" not in charge:
                slack = number(self._facts["composition"]["delta"])
                together = fix_delta(zcdp_to_approx(together), slack)
        elif rule == "gaussian":
            slack = number(self._facts["composition"]["delta"])
            together = compose([_approximate(part, slack) for part in parts])
        else:
            together = compose(parts)
        return _with_delta(together, delta) if deciding else together


def _in_zcdp(part: Measurement, law: str, pieces: int) -> Measurement:
    """A mechanism in ρ.
    Rounded real Laplace noise has its own, and several pieces of equal ε less than one.
    """
    if part.output_measure == ZeroConcentratedDivergence():
        return part

    def rho(d_in: object) -> Fraction:
        epsilon = Fraction(part.exact_map(d_in))
        return (
            Fraction(laplace_rho(epsilon, 1))
            if law == "laplace"
            else pieces * Fraction(pure_to_zcdp(epsilon / pieces))
        )

    return Measurement(
        part.input_domain, part.input_metric, ZeroConcentratedDivergence(), part.function, rho
    )


def _approximate(part: Measurement, slack: Fraction) -> Measurement:
    """A mechanism in (ε, δ): Gaussian noise at this δ, all else without δ."""
    if part.output_measure == SmoothedMaxDivergence():
        fixed: Measurement = fix_delta(part, slack)
        return fixed
    return pure_to_approx(part)


def _with_delta(part: Measurement, delta: Fraction) -> Measurement:
    """A mechanism that holds but with a further probability δ, in which a key is
    shown that one unit is alone with.
    """
    inner = part.output_measure
    measure = inner if isinstance(inner, Approximate) else Approximate(inner)

    def privacy_map(d_in: object) -> tuple[Any, Fraction]:
        loss, own = (
            part.exact_map(d_in) if measure is inner else (part.exact_map(d_in), Fraction(0))
        )
        return loss, own + delta

    return Measurement(part.input_domain, part.input_metric, measure, part.function, privacy_map)


def _then(chain: Transformation, noise: Measurement) -> Measurement:
    """A measurement behind a transformation."""
    whole: Measurement = chain >> noise
    return whole


def _times(length: Fraction | Root, factor: int) -> Fraction | Root:
    return Root(length.squared * factor**2) if isinstance(length, Root) else length * factor


def _not_run(table: object) -> NoReturn:
    raise UnsupportedOperation(
        "from_certificate: a certificate has no rows; its map says what a release cost."
    )


def _unknown(what: str, name: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"from_certificate: the {what} {name!r} has no chain here.")


_RULES: Mapping[str, Callable[[_Steps, Facts], Sensitivity]] = {
    "rows": lambda chain, total: chain.limited(total, 1, 1),
    "values": lambda chain, total: chain.limited(total, 1, 1),
    "sum": _Steps.sums,
    "units": lambda chain, total: chain.per_unit(total, 0, 1),
    "unit_sum": lambda chain, total: chain.per_unit(total, *total["range"]),
    "unit_products": lambda chain, total: chain.per_unit(total, *total["range"]),
    "distinct": lambda chain, total: chain.limited({**total, "fraction": 0}, 1, 1),
    "choice": _Steps.places,
    "tree": _Steps.level,
    "merged": lambda chain, total: merged(chain.sensitivity(total["of"]), total["cells"]),
    "key_weights": lambda chain, total: key_weights(total["most"], total["one"]),
    "histogram": _Steps.histogram,
    "count_of_pairs": _Steps.histogram,
    "interaction": _Steps.interaction,
}
_LAWS: Mapping[str, Callable[[_Steps, Facts], Measurement]] = {
    "none": _Steps.laplace,
    "laplace": _Steps.laplace,
    "discrete_laplace": _Steps.laplace,
    "k_norm": _Steps.window,
    "window": _Steps.joint,
    "cube": _Steps.joint,
    "permute_and_flip": _Steps.choice,
    "exponential": _Steps.choice,
    "truncated_geometric": _Steps.optimal,
}
