"""Checks the certificate of a differentially private release: one file, which needs Python alone.

    python dpframe_check.py release.json [--ledger export.json] [--table table.csv]

It imports nothing of the library that made the release, and shares no formula with it. From what was asked it derives
how far one unit can move each number, from laws and scales what the noise costs, and adds this up. Exit codes:

- 0, PROVED: every claim follows, if rows were read and noise was drawn as stated. No certificate can show these two.
- 1, REFUSED: a claim does not follow. Each of these is printed.
- 3, UNKNOWN: something is of a kind that is not derived here, and all else follows. And 2: a file cannot be read.

The file is a text in six parts: numbers, laws, sensitivities, mechanisms, composition, documents. Of two neighbouring
tables one has all rows of one unit more ("add-remove"), or other rows, another unit's, instead of these ("replace").
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import math
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

Json = Any  # what json.loads gives
Exact = int | Fraction


class Refused(Exception):  # noqa: N818 - a verdict, as Unknown is
    """A claim that does not follow."""


class Unknown(Exception):  # noqa: N818
    """A kind, law or rule that is not derived here."""


def require(holds: bool, claim: str) -> None:
    """Refuse a claim that does not hold."""
    if not holds:
        raise Refused(claim)


# 1. Numbers. Everything is a fraction, or an interval of two fractions that surely holds the number that is meant.

LARGEST = Fraction(10**6)  # exponents beyond this are not computed
MANY = 10**5  # groups or keys of one unit that are gone through one by one
BITS = 320  # leading bits that the ends of an interval keep; they are rounded outwards
DOWN, UP = (Context(prec=100, rounding=way, Emin=-(10**6), Emax=10**6) for way in (ROUND_FLOOR, ROUND_CEILING))


class Interval:
    """A real number between two fractions. Every operation gives an interval that holds the exact result."""

    def __init__(self, low: Exact, high: Exact | None = None) -> None:
        self.low, self.high = cut(Fraction(low)), -cut(-Fraction(low if high is None else high))

    def __add__(self, other: Interval | Exact) -> Interval:
        other = interval(other)
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | Exact) -> Interval:
        return self + -interval(other)

    def __rsub__(self, other: Exact) -> Interval:
        return -self + other

    def __mul__(self, other: Interval | Exact) -> Interval:
        other = interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval | Exact) -> Interval:
        other = interval(other)
        require(other.low > 0 or other.high < 0, "a divisor may be zero")
        return self * Interval(1 / other.high, 1 / other.low)

    def __rtruediv__(self, other: Exact) -> Interval:
        return interval(other) / self

    __radd__, __rmul__ = __add__, __mul__


def interval(x: Interval | Exact) -> Interval:
    """The interval of one number."""
    return x if isinstance(x, Interval) else Interval(x)


def cut(x: Fraction) -> Fraction:
    """The largest fraction with BITS or one more leading bits that is at most x."""
    shift = BITS - x.numerator.bit_length() + x.denominator.bit_length()
    if shift >= 0:
        return Fraction((x.numerator << shift) // x.denominator, 1 << shift)
    return Fraction(x.numerator // (x.denominator << -shift) << -shift)


def monotone(at: Callable[[Fraction], Interval]) -> Callable[[Interval | Exact], Interval]:
    """A function of intervals, from a function of fractions that only rises or only falls."""
    at = cache(at)

    def of(x: Interval | Exact) -> Interval:
        x = interval(x)
        return Interval(min(at(x.low).low, at(x.high).low), max(at(x.low).high, at(x.high).high))

    return of


@monotone
def exp(x: Fraction) -> Interval:
    """e^x. The manual of Python's decimal says that it is rounded correctly: one step outwards encloses it."""
    if x < -LARGEST:
        return Interval(0, exp(-LARGEST).high)
    if x > LARGEST:
        raise Unknown(f"a loss or a distance of {shown(x)} is too large to be computed here")
    low, high = (way.exp(way.divide(Decimal(x.numerator), Decimal(x.denominator))) for way in (DOWN, UP))
    return Interval(Fraction(DOWN.next_minus(low)), Fraction(UP.next_plus(high)))


@monotone
def log(x: Fraction) -> Interval:
    """The natural logarithm: ln x = y + ln(1 + z) for any y and z = x·e^-y - 1, and z - z² ≤ ln(1 + z) ≤ z near 0."""
    y = Fraction(math.log(x.numerator) - math.log(x.denominator))
    z = x * exp(-y) - 1
    return y + Interval((z - z * z).low, z.high)


@monotone
def root(x: Fraction) -> Interval:
    """√x, from the whole root of a large whole number: isqrt(n) ≤ √n < isqrt(n) + 1."""
    shift = BITS + x.denominator.bit_length()
    whole = math.isqrt((x.numerator << 2 * shift) // x.denominator)
    return Interval(Fraction(whole, 1 << shift), Fraction(whole + 1, 1 << shift))


_DIGITS = "3141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067"  # of π
PI = Interval(Fraction(int(_DIGITS), 10**99), Fraction(int(_DIGITS) + 1, 10**99))


@monotone
def normal_tail(x: Fraction) -> Interval:
    """P[N ≥ x] of a standard normal number N with the density φ.

    Near 0 it is 1/2 - φ(x)·(x + x³/3 + x⁵/(3·5) + ...). Further out it is φ(x)/t(0) with t(n) = x + (n + 1)/t(n + 1).
    Each t(n) is between x and x + (n + 1)/x: begin far down with all of that. Abramowitz, Stegun 1964, 26.2.11 and 14.
    """
    if x < 0:
        return 1 - normal_tail(-x)
    density = exp(-x * x / 2) / root(2 * PI)
    if x < 4:
        total, term, odd = Interval(0), Interval(x), 1
        while term.high > Fraction(1, 2**BITS) or 2 * x * x > odd + 2:
            total, odd = total + term, odd + 2
            term = term * (x * x / odd)
        return Fraction(1, 2) - density * Interval(total.low, total.high + 2 * term.high)
    depth = 15 + BITS**2 // (10 * int(x) ** 2)
    low, high = x, x + (depth + 1) / x
    for n in range(depth, 0, -1):
        low, high = cut(x + n / high), -cut(-x - n / low)
    return density / Interval(low, high)


def power(x: Interval, n: int) -> Interval:
    """x^n for a whole n ≥ 0."""
    total = Interval(1)
    while n:
        total, x, n = total * x if n & 1 else total, x * x, n >> 1
    return total


# 2. Laws. What noise of a stated law costs, once it is known how far one unit moves what it hides. Totals are whole
# numbers, so real noise that is then rounded is the noise of the textbook, rounded together with the number.


def normal_delta(mu_squared: Exact, epsilon: Interval | Exact) -> Interval:
    """The δ at ε of normal noise, where one unit moves the mean by μ standard deviations.

    The loss is normal with mean μ²/2 and deviation μ (Balle, Wang 2018, arXiv:1805.06530, theorem 8).
    """
    if mu_squared == 0:
        return Interval(0)
    mu = root(mu_squared)
    return normal_tail(epsilon / mu - mu / 2) - exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def rho_of_pure(epsilon: Fraction, law: str) -> Interval:
    """ρ of an ε-private mechanism.

    Laplace noise has ε + e^-ε - 1. This is convex and 0 at 0, so a vector, whose entries share ε, has no more. Any
    other mechanism has at most ε·tanh(ε/2), which randomized response reaches. Source: Bun, Steinke 2016,
    arXiv:1605.02065; Harrison, Manurangsi 2025, arXiv:2510.25746.
    """
    return epsilon - 1 + exp(-epsilon) if law == "laplace" else epsilon * (1 - 2 / (1 + exp(epsilon)))


def pure_is_gaussian(epsilon: Fraction, mu_squared: Fraction) -> bool:
    """Whether ε-privacy is Gaussian privacy with this μ².

    The two errors of any test on an ε-private answer lie above two lines, from (0, 1) and (1, 0) to a corner at 1/(1 +
    e^ε) for both. The curve of μ is convex and symmetric, and both errors are P[N ≥ μ/2] in its middle: it is below the
    lines if its middle is below the corner. Source: Dong, Roth, Su 2019, arXiv:1905.02383.
    """
    return normal_tail(root(mu_squared) / 2).high <= (1 / (1 + exp(epsilon))).low


def rho_to_epsilon(rho: Exact, order: Fraction, delta: Fraction) -> Interval:
    """ε of a ρ at δ, from the Rényi divergence of one order α > 1, which is at most α·ρ.

    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, proposition 12.
    """
    require(order > 1 and 0 < delta < 1, "an order above 1 and a δ between 0 and 1 are needed")
    return order * rho + log(1 - 1 / order) - (log(delta) + log(order)) / (order - 1)


def noise_tail(law: str, scale: Fraction, least: int) -> Interval:
    """P[noise ≥ least] at most. Real noise is rounded to whole numbers, so it has to reach least - 1/2."""
    if least < 1:
        return Interval(1)
    if law == "discrete_laplace":  # a geometric series: q^least / (1 + q), where q = e^(-1/scale)
        return exp(-least / scale) / (1 + exp(-1 / scale))
    reached = (least - Fraction(1, 2)) / scale
    return normal_tail(reached) if law == "gaussian" else exp(-reached) / 2


# 3. Sensitivities. How far one unit moves a total: a vector of whole numbers, one for each group.


class Weights(NamedTuple):
    """What limits leave of one unit: at most so many groups, rows in each, rows in all. A row may weigh less than 1."""

    groups: int
    rows_per_group: int
    rows: int


class Reach(NamedTuple):
    """How far neighbours are apart: entries that differ, the sum of differences, of their squares, and the largest."""

    l0: int
    l1: Exact
    l2_squared: Exact
    linf: Exact


class Total(NamedTuple):
    """A total with its derived reach; `decides` says that keys are found by it."""

    stated: Json
    reach: Reach
    weights: Weights
    replace: bool
    decides: bool


Totals = Mapping[str, Total]
UNLIMITED = 10**100  # rows; no claim is as large
KINDS = {"rows", "values", "sum", "units", "unit_sum", "unit_products", "distinct", "choice", "tree", "merged", "rest"}
KINDS |= {"sum_of_pair", "key_weights", "histogram", "count_of_pairs", "interaction"}
RANGES = {"values": (0, 1), **dict.fromkeys(("rows", "units", "distinct", "choice", "tree"), (1, 1))}  # of counts


def few(number: Exact) -> bool:
    """Whether so many cases are gone through one by one. Errors: Unknown if not."""
    if number > MANY:
        raise Unknown(f"{shown(number)} groups or keys of one unit are too many to be gone through")
    return True


def least_of(*limits: int | None) -> int:
    """The smallest of limits, where None is no limit."""
    return min((limit for limit in limits if limit is not None), default=UNLIMITED)


def weights_of(limits: Mapping[str, int | None], rows: int | None, cells: int | None, *, enforced: bool) -> Weights:
    """What limits leave of a unit that has at most `rows` rows (None: any number).

    Limits that are enforced hold together: no more groups than rows in all, no more rows in a group than in all.
    Without an id column nothing can be enforced, and `rows` alone holds.
    """
    sound = all(limits[name] is None or is_whole(limits[name]) for name in Weights._fields)
    require(sound and (rows is None or is_whole(rows)), "a limit is no whole number of at least 1")
    groups, each, most = (limits[name] if enforced else None for name in Weights._fields)
    most = least_of(most, rows)
    groups, each = least_of(groups, most, cells), least_of(each, most)
    return Weights(groups, each, least_of(most, groups * each))


def within(entries: int, cell: Exact, whole: Exact) -> Reach:
    """The reach of vectors of so many entries that are at most `cell` each and `whole` together.

    The sum of squares grows if a smaller entry gives to a larger one, so the worst has full entries and one rest.
    """
    whole = min(whole, entries * cell)
    full, rest = divmod(whole, cell) if whole else (0, 0)
    return Reach(entries, whole, full * cell * cell + rest * rest, cell) if whole else Reach(0, 0, 0, 0)


def reach_of(stated: Json, unit: Weights, totals: Totals, *, replace: bool) -> Reach:
    """The reach of a total by its kind, in units of the total's integer.

    A row of weight w adds w·2^f times a whole number of `range`, rounded toward 0, so a unit has at most `cell` in one
    entry and `whole` in all. Of two units (replace) each may be in groups of its own: twice the entries and the whole.
    In one group they differ by at most `swing`, where one is at its top, one at its bottom.
    """
    kind, cells, most, times = stated["kind"], stated.get("cells"), stated.get("most"), 2 if replace else 1
    (low, high), (groups, k, rows) = stated.get("range", (1, 1)), unit
    wholes = [stated[name] for name in ("most", "one", "cells") if stated.get(name) is not None]
    sound = is_whole(stated["fraction"], 0) and stated["fraction"] <= BITS and type(low) is type(high) is int
    sound = sound and low <= high and all(map(is_whole, wholes)) and all(map(is_whole, stated.get("levels", ())))
    require(
        sound and (low, high) == RANGES.get(kind, (low, high)), "its range, its fraction or its cells make no sense"
    )
    fine, size, width = 2 ** stated["fraction"], max(-low, high), max(high, 0) - min(low, 0)
    if stated.get("one_row"):  # one row is exchanged for one row: what it adds goes at most from end to end of `range`
        require(kind in ("rows", "values", "sum", "unit_products"), "its kind has no rule for exactly one row")
        apart = 0 if kind == "values" else (high - low) * fine
        return within(1, apart, apart)
    if kind in ("merged", "rest"):  # all entries that a unit moves may be added up to one
        moved = totals[stated["of"]].reach
        return within(least_of(moved.l0, cells), moved.l1, moved.l1)
    if kind == "key_weights" and not replace and few(most):  # t keys get ⌊one/√t⌋ each
        shares = [math.isqrt(stated["one"] ** 2 // t) for t in range(1, most + 1)]
        sums, squares = ([t * share**n for t, share in enumerate(shares, 1)] for n in (1, 2))
        return Reach(most, max(sums), max(squares), stated["one"])
    if kind == "histogram":  # whole numbers of a unit whose sizes add up to at most `most`
        return within(cells, times * most, times * most)
    if kind == "count_of_pairs":  # down by at most what one unit brings, up by what the other brings
        return within(1, most, most)
    if kind == "interaction":
        levels, whole = stated["levels"], rows * fine
        most = times * whole  # a row adds 1 - 1/n at its own key of an axis and -1/n at others
        return Reach(math.prod(levels), most * 2 ** len(levels), interaction(levels, replace=replace) * whole**2, most)
    if kind not in KINDS or kind == "key_weights":
        raise Unknown(f"a total of kind {kind!r}")
    if kind in ("units", "unit_sum", "unit_products"):  # one number of a unit in each of its groups
        k, rows = 1, groups
        if most is not None and most < rows * size * fine:
            raise Unknown(f"{kind} that add up to less over the groups of a unit than each allows")
    cell, whole, swing = k * size * fine, rows * size * fine, k * width * fine
    if kind == "choice":  # rows that enter or leave a group: of two units, all rows of both
        swing = 2 * cell
    if kind == "sum_of_pair" and stated["fraction"]:  # S + c·V, each with the largest roundings that the format allows
        off = max(abs(end) for end in totals[stated["of"][0]].stated["range"]) + 1 + 2 * abs(stated["centre"])
        cell, whole, swing = cell + off, whole + groups * off, swing + 2 * off
    entries = least_of(times * groups, None if kind == "tree" else cells)  # blocks of a level of a tree are disjoint
    found = within(entries, swing if replace else cell, times * whole)
    return found._replace(l0=least_of(found.l0, cells))


def interaction(levels: Sequence[int], *, replace: bool) -> Fraction:
    """l2² of one row in a centred interaction, in which the means along each axis are taken off.

    On an axis of n places, the vector of a place less its mean has the square 1 - 1/n, and two places have the inner
    product -1/n. Axes multiply. Of two units the rows do most in the cells x and y that are furthest apart, |x - y|² =
    |x|² + |y|² - 2xy, or in x where the other unit has no row.
    """
    square, products = Fraction(1), {Fraction(1)}
    for n in levels:
        square *= 1 - Fraction(1, n)
        products = {p * q for p in products for q in (1 - Fraction(1, n), -Fraction(n > 1, n))}
    return max(square, 2 * (square - min(products))) if replace else square


# 4. Mechanisms. What each one costs, in its own currency.


NOISE, CHOICES = ("laplace", "discrete_laplace", "gaussian", "k_norm", "none"), ("permute_and_flip", "exponential")
NORMAL = ("gaussian", "gaussian_rounds")
DECIDED = {"optimal": "truncated_geometric", "rounds": "gaussian_rounds"}  # laws that only rules for keys draw from
LAWS = (*NOISE, *CHOICES, "truncated_geometric", "gaussian_rounds")


class Cost(NamedTuple):
    """What a mechanism costs: a pure ε, made of so many equal pieces, or a μ² of Gaussian privacy, or ρ."""

    epsilon: Fraction | None = None
    mu_squared: Fraction | None = None
    rho: Fraction | None = None
    pieces: int = 1


class Measure:
    """A vector that gets noise: multiples of totals, added up. `only`: the total, where it is one alone, else ""."""

    def __init__(self, stated: Json) -> None:
        self.stated, self.of = stated, {name: Fraction(c) for name, c in stated["of"].items()}
        self.scale, self.only = number(stated.get("scale", "1/1")), ""
        require(self.scale > 0 and all(self.of.values()), "a scale is not positive, or a total is taken 0 times")
        if list(self.of.values()) == [1]:
            (self.only,) = self.of


def cost_of(mechanism: Json, totals: Totals) -> Cost:
    """The cost of a mechanism, by its law."""
    law = mechanism["law"]
    if law == "none":
        still = not any(totals[name].reach.l1 for name in read_by(mechanism))
        require(still, "one unit moves a total that gets no noise")
        return Cost(Fraction(0))
    measures = [Measure(stated) for stated in mechanism.get("measures", ())]
    if law not in LAWS:
        raise Unknown(f"a mechanism of law {law!r}")
    fits = [(totals[name].stated["kind"] == "choice") == (law in CHOICES) for name in read_by(mechanism)]
    require(bool(fits) and all(fits), "a choice is by a law of choices, and noise is on all other totals")
    require(number(mechanism.get("scale", "1/1")) > 0, "a scale is not positive")
    if law in CHOICES:
        return choice_cost(mechanism, totals[mechanism["of"]].reach)
    if law == "truncated_geometric":  # each group is (1/scale, p)-private by itself, where its number moves by 1
        moved = totals[mechanism["of"]].reach
        require(moved.linf <= 1, "the optimal rule for keys needs a number that one unit moves by 1")
        return Cost(moved.l0 / number(mechanism["scale"]), pieces=max(moved.l0, 1))
    if law == "gaussian_rounds":
        squares = len(mechanism["thresholds"]) * totals[mechanism["of"]].reach.l2_squared
        return Cost(mu_squared=squares / number(mechanism["scale"]) ** 2)
    if law in ("laplace", "discrete_laplace"):
        return Cost(laplace_cost(measures, totals))
    if law == "gaussian":
        return Cost(mu_squared=sum(normal_costs(measures, totals), Fraction(0)))
    if law == "k_norm":
        return Cost(sum((window_cost(measure, totals) for measure in measures), Fraction(0)))
    raise Unknown(f"a mechanism of law {law!r}")


def laplace_cost(measures: Sequence[Measure], totals: Totals) -> Fraction:
    """ε of Laplace or two-sided geometric noise: at most the sum of |move|/scale.

    Noises are independent, and the density at z is at most e^(|x|/scale) times that at z + x (Dwork, McSherry, Nissim,
    Smith 2006). A sum of multiples of totals moves by at most as many times their moves.

    A rest adds up the groups that were not released. Given these, a unit moves the released groups by d in all, and the
    rest by at most l1 - d: the dearer of both counts. Where the total itself decides which groups are released, that a
    group was not released costs its own d again.
    """
    costs: dict[str, Fraction] = {}
    left = list(measures)
    for plus, minus in permutations(measures, 2):
        for total, count in permutations(plus.of, 2) if len(plus.of) == 2 and {plus, minus} <= {*left} else ():
            weight = plus.of[count]
            if plus.of[total] == 1 and minus.of == {total: -1, count: weight} and minus.scale == plus.scale:
                beside = next((m for m in left if len(m.of) == 2 and m.of.get(count) == -1 and total not in m.of), None)
                left = [m for m in left if m not in (plus, minus, beside)]
                cost = pair_cost((total, count), weight, plus.scale, beside, totals)
                costs[total] = costs.get(total, Fraction(0)) + cost
                break
    for measure in left:
        moves = sum((abs(c) * totals[name].reach.l1 for name, c in measure.of.items()), Fraction(0))
        costs[measure.only] = costs.get(measure.only, Fraction(0)) + moves / measure.scale  # "": of several totals
    rests: dict[str, Fraction] = {}  # of totals whose rests are measured: what these cost together
    for name in [name for name in costs if name in totals and totals[name].stated["kind"] == "rest"]:
        of = totals[name].stated["of"]
        if of in costs and not totals[of].decides:
            rests[of] = rests.get(of, Fraction(0)) + costs.pop(name)
    costs |= {of: max(costs[of], cost) for of, cost in rests.items()}
    return sum(costs.values(), Fraction(0))


def pair_cost(
    names: tuple[str, str], weight: Fraction, scale: Fraction, beside: Measure | None, totals: Totals
) -> Fraction:
    """ε of a sum S and the number V of its rows, measured as weight·V + S and weight·V - S with one scale.

    If V moves by n and S by d, these move by 2·max(weight·|n|, |d|) together. A row of weight w moves V by at most w
    and S by at most h·w, and weight ≤ h in units of S: so they cost 2·l1(S), where both are about the same rows.

    Beside it N - V, the rows without a value. Of a row of weight w some part u has no value: that costs at most
    u/scale' + 2·weight·(w - u)/scale, so w times the larger rate. Rounded numbers are off by less than 2 in a group.
    """
    total, count = (totals[name] for name in names)
    rest = total.stated["kind"] == count.stated["kind"] == "rest"
    of, by = (totals[x.stated["of"]] for x in (total, count)) if rest else (total, count)
    size = max(abs(end) for end in of.stated["range"]) * Fraction(2) ** (of.stated["fraction"] - by.stated["fraction"])
    same = (of.weights, of.stated["question"]) == (by.weights, by.stated["question"]) and 0 < weight <= size
    same = same and (not of.stated.get("one_row") or by.stated.get("column") in (None, of.stated.get("column")))
    kinds = of.stated["kind"] == "sum" and by.stated["kind"] in ("rows", "values")
    require(same and kinds, f"{names[0]} and {names[1]} are no sum and count of the same rows in this proportion")
    if beside is None:
        return 2 * Fraction(total.reach.l1) / scale
    name = next(name for name in beside.of if name != names[1])
    rows, fine, at = totals[name].stated, by.stated["fraction"], totals[name].stated["fraction"]
    alike = (totals[name].weights, rows["question"]) == (by.weights, by.stated["question"]) and at in (0, fine)
    alike = alike and (rows["kind"], by.stated["kind"], beside.of[name]) == ("rows", "values", 2 ** (fine - at))
    require(alike, f"{name} does not count the rows of {names[0]}")
    whole = of.weights.rows * 2**fine + (2 * of.weights.groups if fine else 0)
    return max(1 / beside.scale, 2 * weight / scale) * Fraction(whole) * (2 if of.replace else 1)


def normal_costs(measures: Sequence[Measure], totals: Totals, groups: int | None = None) -> list[Fraction]:
    """μ² of normal noise, for each measure: the largest sum of (move/scale)².

    `groups`: the most groups in which totals move, if these are fewer than limits allow; a rest has what is not
    released. A rest beside its total (see `laplace_cost`): j full entries are released, and the rest moves by what is
    left of l1. Between whole j the sum of squares is convex, so these and all of l1 are the worst.
    """
    costs = {}
    for i, measure in enumerate(measures):
        if measure.stated.get("common") is not None:
            costs[str(i)] = shared_cost(measure, totals)
            continue
        if not measure.only:
            raise Unknown("normal noise on several totals added up")
        total, name = totals[measure.only], f"{measure.only}/{measure.stated.get('level')}"
        squares, apart = total.reach.l2_squared, 2 if total.stated["kind"] == "tree" else 1  # blocks of two units
        if groups is not None and total.stated["kind"] != "rest":
            squares = min(squares, groups * apart * total.reach.linf**2)
        costs[name] = costs.get(name, Fraction(0)) + Fraction(squares) / measure.scale**2
    rests = [m for m in measures if m.only and totals[m.only].stated["kind"] == "rest"]
    for rest in rests:
        of = totals[rest.only].stated["of"]
        beside = next((m for m in measures if m.only == of), None)
        alike = [m for m in rests if totals[m.only].stated["of"] == of] + [m for m in measures if m.only == of]
        if len(alike) > 2:
            continue  # one of both is measured twice: all add up
        if beside is not None and not totals[of].decides and totals[of].reach.l1:
            l1, squares, linf = totals[of].reach[1:]
            few(l1 // linf)
            spread = [(j * linf**2, l1 - j * linf) for j in range(int(l1 // linf) + 1)]
            worst = [Fraction(x) / beside.scale**2 + Fraction(y**2) / rest.scale**2 for x, y in (*spread, (squares, 0))]
            costs[f"{of}/None"] = max(worst)
            del costs[f"{rest.only}/None"]
    return list(costs.values())


def adds_only(measure: Measure, totals: Totals) -> Total:
    """A total to which one unit adds numbers of one sign alone."""
    require(bool(measure.only), "noise that groups share, on several totals added up")
    stated = totals[measure.only].stated
    low, high = stated["range"] if stated["kind"] in ("sum", "unit_sum") else (1, 1)
    one_sign = stated["kind"] in ("rows", "values", "units", "sum", "unit_sum") and not low < 0 < high
    require(one_sign, "noise that groups share, on a total that one unit may move up here and down there")
    return totals[measure.only]


def shared_cost(measure: Measure, totals: Totals) -> Fraction:
    """μ² of normal noise with a part C that all d cells share, for moves x of one sign.

    The covariance is scale²·(I + v·J), J all ones, v = common²/scale². By its inverse μ² = (|x|² - c·(Σx)²)/scale² with
    c = v/(1 + d·v). As c·d < 1 this is convex in x: the largest is at a corner, where all entries are full or 0, but
    for one if the sum is l1. Both noises are rounded to 1/65536: the answer is a function of x - w + N and w + C for
    every such multiple w, and the one next to the best real w adds (d/scale² + 1/common²)/(2·65536)².
    """
    total, d, variance = adds_only(measure, totals), measure.stated["cells"], measure.scale**2
    v = number(measure.stated["common"]) ** 2 / variance
    if total.replace or total.stated["cells"] != d or v == 0:
        raise Unknown("shared noise under replace, or on other cells than the total has")
    c, (_, l1, _, linf) = v / (1 + d * v), total.reach
    full, rest = divmod(l1, linf) if l1 else (0, 0)
    top = min(int(1 / (2 * c)), int(full))  # of the parabola j·linf² - c·(j·linf)² in j
    corners = [(j - c * j * j) * linf**2 for j in (top, min(top + 1, int(full)))]
    corners.append(full * linf**2 + rest**2 - c * Fraction(l1) ** 2)
    return Fraction(max(corners) + (d + 1 / v) / (2 * 65536) ** 2) / variance


def window_cost(measure: Measure, totals: Totals) -> Fraction:
    """ε of K-norm noise: probabilities are proportional to e^(-N(z)/scale), N(z) = max(0, max z) + max(0, max -z).

    N is a norm, so a shift by x changes probabilities by at most e^(N(x)/scale) (Hardt, Talwar 2010, arXiv:0907.3754).
    Of a unit that only adds, N is its largest entry; of two units at most both together.
    """
    total = adds_only(measure, totals)
    return (2 if total.replace else 1) * Fraction(total.reach.linf) / measure.scale


def choice_cost(mechanism: Json, moved: Reach) -> Cost:
    """The cost of choosing candidates by scores, in every group.

    If the scores of a group move within an interval of a width D, log ratios of probabilities do within η = D·rate.
    Permute-and-flip has ε = η (McKenna, Sheldon 2020, arXiv:2010.12603), and the exponential mechanism ρ = η²/8 (Cesar,
    Rogers 2021, arXiv:2004.07223) and μ² ≤ π·η²/8: no test tells more than a coin whose log odds move by η, and in
    these a normal quantile has at most the slope √(π/8), at 1/2. Groups add up, to l1 and to l2².

    A number of rows moves by 0 to 1 with each row: D = 1. The score of a quantile a/b is how far the rows below and
    above a candidate are from their shares, in b parts of a row. A row moves that by b - a or a, up or down: D is twice
    the larger, over b. Public rows may be added, one less for each `fade` rows: if a row joins below and a part 1/fade
    of a public row leaves above, the score moves by a/fade more, or else by (b - a)/fade.
    """
    scale, many, width = number(mechanism["scale"]), mechanism["number"], Fraction(1)
    if mechanism.get("rank") is not None:
        rank = number(mechanism["rank"])
        fade = mechanism.get("fade")
        require(fade is None or is_whole(fade), "public rows do not fade")
        width = 2 * (max(rank, 1 - rank) + (min(rank, 1 - rank) / fade if fade else 0))
        require(0 <= rank <= 1, "a rank is not between 0 and 1")
    require(scale > 0 and is_whole(many), "a scale or a number is not positive")
    if mechanism["law"] == "permute_and_flip":
        return Cost(many * moved.l1 * width / scale, pieces=many)
    return Cost(rho=many * moved.l2_squared * (width / scale) ** 2 / 8)


# 5. Composition. Keys that are found in the data, and noise that decides about them.


def hidden_alone(rule: Json, mechanism: Json, total: Total, groups: int) -> list[Interval]:
    """For t = 0, 1, ... groups that a unit is alone in: the least chance that none is released, noisy ≥ threshold.

    Without the unit the number in such a group is at most `least`, and with it at most `least` + c, so the noise must
    reach threshold - least - c. A whole row adds at least 1; where weights are rounded it may add 0. -ln of the chance
    to hide is convex in c, as the noise is log-concave: it is largest where at most one c is not at an end.
    """
    measure = next((m for m in mechanism["measures"] if m["of"] == {rule["by"]: 1}), None)
    if measure is None or measure.get("common") is not None or mechanism["law"] not in NOISE[:3]:
        raise Unknown("keys by a number whose noise is not its own")
    require(is_whole(rule["threshold"]), "a threshold is no whole number of at least 1")
    scale, reached = number(measure["scale"]), rule["threshold"] - rule["least"]
    hides = cache(lambda c: 1 - noise_tail(mechanism["law"], scale, reached - c))
    rows = total.stated["kind"] in ("rows", "units", "distinct", "merged") and not total.stated["fraction"]
    most, whole, each = int(total.reach.linf), int(total.reach.l1), int(rows)
    few(min(groups, whole) if each else groups)
    chances = [Interval(1)]
    for t in range(1, groups + 1 if each == 0 else min(groups, whole) + 1):
        full, rest = divmod(whole - t * each, most - each) if most > each else (t, 0)
        hidden = power(hides(most), min(full, t)) * power(hides(each), max(t - full - 1, 0))
        chances.append(hidden * hides(each + rest) if full < t else hidden)
    return chances


def keys_delta(rule: Json, mechanism: Json, total: Total) -> Interval | Fraction:
    """The chance that a group is released which only one of two neighbouring tables has."""
    groups, own = total.reach.l0, DECIDED.get(rule["rule"])
    require(own is None or (mechanism["law"], mechanism.get("of")) == (own, rule["by"]), "another mechanism decides")
    if rule["rule"] == "threshold":
        return 1 - min(hidden_alone(rule, mechanism, total, groups), key=lambda chance: chance.low)
    if rule["rule"] == "optimal":  # a group of one unit is released with the chance `start`, each by itself
        start = number(rule["start"])
        require(0 <= start <= 1, "a chance is not between 0 and 1")
        return 1 - (1 - start) ** groups if groups < 1000 else 1 - power(interval(1 - start), groups)
    if rule["rule"] == "rounds":
        # After j rounds a key of one unit has at most j·one, and noise that is normal but for j roundings by 1/2.
        scale, one, delta = number(mechanism["scale"]), total.stated["one"], Interval(0)
        for j, threshold in enumerate(mechanism["thresholds"], 1):
            tail = normal_tail((threshold - j * one - Fraction(j, 2)) / (scale * root(j)))
            delta = delta + (1 - power(1 - tail, total.stated["most"]))
        return delta
    raise Unknown(f"keys by the rule {rule['rule']!r}")


def threshold_beside_noise(rule: Json, mechanism: Json, totals: Totals, epsilon: Fraction, claim: Fraction) -> Fraction:
    """δ at ε of normal noise on every total, of which one decides by a threshold which groups are released.

    Let a unit be alone in t groups, which all stay hidden with the chance h. With one shown: at most 1 - h. Else
    answers have P = h·Q and P' = Q', or h'·Q' where another unit is alone somewhere, with Q and Q' of the noise on the
    other groups, l0 - t at most. As Q ≤ e^x·Q' + D(x, μ) for every x, both ways round δ ≤ (1 - h) + D(ε + ln h, μ).

    For all t from a to b it is at most as large as with the least of their h and the μ of a: if that is within the
    claim, so are all between.
    """
    measures, worst = [Measure(stated) for stated in mechanism["measures"]], Fraction(0)
    most = max(totals[name].reach.l0 for measure in measures for name in measure.of)
    hidden = hidden_alone(rule, mechanism, totals[rule["by"]], most)
    parts = [(0, len(hidden) - 1)]
    while parts:
        first, last = parts.pop()
        least = min(hidden[first : last + 1], key=lambda chance: chance.low)
        left, squares = epsilon + log(least), sum(normal_costs(measures, totals, most - first), Fraction(0))
        delta = (1 - least + (normal_delta(squares, left) if left.low > 0 else 1)).high
        if delta <= claim or first == last:
            worst = max(worst, delta)
        else:
            middle = (first + last) // 2
            parts += [(first, middle), (middle + 1, last)]
    return worst


# 6. Documents. The certificate is read from top to bottom; each claim is held against what was derived.


def number(text: Json) -> Fraction:
    """A rational "n/d"."""
    require(isinstance(text, str) and "/" in text, f"{text!r} is no rational number")
    return Fraction(text)


def upper(x: Interval | Exact) -> Fraction:
    """The number, or the upper end of an interval."""
    return x.high if isinstance(x, Interval) else Fraction(x)


def is_whole(x: Json, least: int = 1) -> bool:
    """Whether something is a whole number, and not too small."""
    return type(x) is int and x >= least


def shown(x: Exact) -> str:
    """A number for people: exact if it is short, else nine digits."""
    return str(x) if len(str(x)) <= 12 else f"{float(x):.9g}" if -(10**99) < x < 10**99 else "more than 10^99"


def rows_after(unit: Json, steps: Sequence[Json]) -> tuple[int | None, bool]:
    """The most rows of one unit after some steps (None: any number), and whether it surely has one.

    Each step makes rows of a unit from rows of that unit alone, and at the source each unit has one. A row becomes
    `most` rows where a public table is joined, and meets each row of its unit where another protected table is.
    """
    most, always = unit.get("rows"), True
    require(("columns" in unit) != ("rows" in unit), "a unit has either columns that identify it, or a number of rows")
    require("rows" not in unit or is_whole(most), "the rows of a unit are no whole number of at least 1")
    for i, step in enumerate(steps):
        kind, after = step["step"], [rows_after(unit, other) for other in step.get("others", ())]
        known = "rows" not in unit or kind not in ("per_unit", "join_units", "concat")
        require(known, f"{kind}: without an id column nobody knows which rows are of one unit")
        require((kind == "source") == (i == 0), "the steps do not begin at one protected table")
        require(kind != "join_public" or is_whole(step["most"]), "a key of a public table has no rows")
        if kind == "filter":
            always = False
        elif kind == "join_public":
            most, always = most and most * step["most"], always and step["how"] == "left"
        elif kind == "join_units":
            both = step["keeps_units"] and (step["how"] == "left" or after[0][1])
            most, always = 1 if most == after[0][0] == 1 else None, always and both
        elif kind == "concat":
            most, always = None, always and all(stays for _, stays in after)
        elif kind == "per_unit":
            most = 1
        elif kind not in ("source", "rewrite"):
            raise Unknown(f"the step {kind!r}")
    return most, always


def once(pairs: Sequence[tuple[str, Json]]) -> Json:
    """An object, which has each of its names once. Errors: ValueError, as readers differ in which of two they take."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("an object has a name twice")
    return read


class Check:
    """The check of one certificate: what was derived, line by line, what does not follow, and what is not known."""

    def __init__(self, certificate: Json, ledger: Json = None, table: bytes | None = None) -> None:
        self.certificate, self.replace = certificate, certificate["relation"] == "replace"
        self.place = ""  # of what is checked
        self.derived: list[str] = []
        self.refused: list[str] = []
        self.unknown: list[str] = []
        self.totals: dict[str, Total] = {}
        self.losses: dict[str, dict[str, Interval | Exact]] = {}  # of mechanisms, in the currencies that they claim
        for parts in ("totals", "mechanisms"):
            ids = [stated["id"] for stated in certificate[parts]]
            if len({*ids}) < len(ids) or not all(isinstance(one, str) and one for one in ids):
                self.refused.append(f"{parts}: two have one id, or one has none")
        if certificate["certificate"] != 1 or certificate["relation"] not in ("add-remove", "replace"):
            self.unknown.append("the version of the certificate, or its relation of neighbours")
            return
        for name, part in (("questions", self.question), ("totals", self.total), ("mechanisms", self.mechanism)):
            for i, stated in enumerate(certificate[name]):
                self.tried(stated.get("id", f"{name}[{i}]"), part, stated)
        self.tried("totals", self.all_are_hidden, certificate["mechanisms"])
        self.tried("composition", self.composition, certificate["composition"])
        if ledger is not None:
            self.tried("ledger", self.ledger, ledger)
        if table is not None:
            self.tried("table", self.table, table)

    @property
    def verdict(self) -> str:
        """PROVED, REFUSED or UNKNOWN."""
        return "REFUSED" if self.refused else "UNKNOWN" if self.unknown else "PROVED"

    @property
    def text(self) -> str:
        """All of it, for people."""
        lines = [f"  {line}" for line in self.derived] + [f"does not follow: {line}" for line in self.refused]
        lines += [f"not known: {line}" for line in self.unknown]
        return "\n".join([*lines, self.verdict, *([ASSUMED] if self.verdict == "PROVED" else [])])

    def tried(self, where: str, part: Callable[[Json], None], stated: Json) -> None:
        """Check a part; what it refuses or does not know is a line."""
        self.place = where
        try:
            part(stated)
        except Refused as error:
            self.refused.append(f"{where}: {error}")
        except Unknown as error:
            self.unknown.append(f"{where}: {error}")
        except (*UNREADABLE, ArithmeticError, zlib.error) as error:
            self.refused.append(f"{where}: cannot be read: {type(error).__name__} {error}")

    def follows(self, what: str, derived: Interval | Exact, claimed: Json) -> None:
        """Write down a line. It does not hold if less is claimed than what was derived."""
        claim = claimed if isinstance(claimed, int) else number(claimed)
        bound = upper(derived)
        require(bound <= claim, f"{what} = {shown(claim)} is claimed, but {shown(bound)} follows")
        self.derived.append(f"{self.place}: {what} = {shown(claim)} is claimed, and {shown(bound)} follows")

    def question(self, question: Json) -> None:
        """The rows that reach a question, and its groups."""
        (most, always), claimed = rows_after(self.certificate["unit"], question["steps"]), question["contribution"]
        if claimed["rows"] is not None:
            self.follows("rows of one unit", UNLIMITED if most is None else most, claimed["rows"])
        one = always and most == 1 and self.replace
        require(one or not claimed["exactly_one"], "that every unit has exactly one row does not follow")
        place = next(i for i, one in enumerate(self.certificate["questions"]) if one is question)
        rules = sum(rule["question"] == place for rule in self.certificate["keys"])
        listed = rules == 0 if question["cells"] is not None else rules == 1
        require(listed and (question["by"] or question["cells"] == 1), "groups have to be listed, or found by one rule")

    def total(self, stated: Json) -> None:
        """The sensitivity of a total, from its kind, its limits and its range."""
        if stated["kind"] not in KINDS:
            raise Unknown(f"a total of kind {stated['kind']!r}")
        name, claims, leaves = stated["id"], stated.get("limits", {}), stated.get("leaves")
        question, enforced = self.certificate["questions"][stated["question"]], "columns" in self.certificate["unit"]
        rows = question["contribution"]["rows"]
        limits = {**question["limits"], **(stated["limits_of_leaves"] if leaves else claims)}
        unit = weights_of(limits, rows, None if leaves else question["cells"], enforced=enforced)
        if leaves:  # a node has at most so many leaves of those groups that limits are enforced in
            each = min(unit.rows_per_group * min(unit.groups, leaves), unit.rows)
            unit = Weights(unit.groups, each, min(unit.rows, unit.groups * each))
        tight = all(claim == getattr(unit, limit) and is_whole(claim) for limit, claim in claims.items())
        require(tight, f"its limits are not the tightest that follow: {unit}")
        own = stated["kind"] in ("merged", "rest", "histogram", "count_of_pairs", "interaction")
        same = own or leaves or stated.get("cells") == question["cells"]
        require(same, "it has another number of entries than there are groups")
        full = not leaves or (is_whole(leaves) and stated["cells"] * leaves >= (question["cells"] or 1))
        require(full, "its nodes have too few leaves for all groups")
        if "grid" in stated:
            centre, step = number(stated["grid"]["centre"]), number(stated["grid"]["step"])
            fits = [centre + step * end for end in stated["range"]] == [number(end) for end in stated["bounds"]]
            require(fits, "its range is not that of its bounds on its grid")
        owned = stated.get("weighted", enforced) == enforced
        require(owned, "limits are enforced by weights if and only if rows have an owner")
        filled = stated["kind"] == "rows" or stated.get("nullable") is False
        exact = question["contribution"]["exactly_one"] and not question["by"] and filled
        require(exact or not stated.get("one_row"), "the rule for exactly one row needs one row that is never missing")
        moved = reach_of(stated, unit, self.totals, replace=self.replace)
        decides = any(rule["by"] == name for rule in self.certificate["keys"])
        self.totals[name] = Total(stated, moved, unit, self.replace, decides)
        for what, claim in stated["sensitivity"].items():
            if stated["kind"] == "interaction" and what != "l2_squared":
                continue  # claimed of the rows, not of the interaction; nothing follows from it
            self.follows(f"{stated['kind']}, {what}", getattr(moved, what), claim)

    def mechanism(self, stated: Json) -> None:
        """The losses of a mechanism, from its law, its scale and the derived sensitivities."""
        law, loss = stated["law"], stated["loss"]
        if not read_by(stated) <= set(self.totals):
            raise Unknown("it reads a total of which nothing is known")
        cost = cost_of(stated, self.totals)
        if cost.epsilon is not None:
            part, squares = cost.epsilon / cost.pieces, number(loss.get("mu_squared", "0/1"))
            enough = "mu_squared" not in loss or pure_is_gaussian(part, squares / cost.pieces)
            require(enough, f"{law}, mu_squared = {shown(squares)} is claimed, which is too small for its ε")
            rho = cost.pieces * rho_of_pure(part, law)
            found: dict[str, Interval | Exact] = {"epsilon": cost.epsilon, "rho": rho, "mu_squared": squares}
        elif cost.mu_squared is not None:
            found = {"mu_squared": cost.mu_squared, "rho": cost.mu_squared / 2}
        else:  # ρ = η²/8 and μ² ≤ η²·π/8: see `choice_cost`
            found = {"rho": cost.rho or 0, "mu_squared": PI * (cost.rho or 0)}
        self.losses[stated["id"]] = {currency: found[currency] for currency in loss}
        for currency, claim in loss.items():
            self.follows(f"{law}, {currency}", found[currency], claim)

    def all_are_hidden(self, mechanisms: Json) -> None:
        """Each total that a unit can move is measured, chosen from, or computed from measured ones."""
        hidden = set()
        for mechanism in mechanisms:
            read = read_by(mechanism)
            for name in mechanism.get("gives", ()):
                stated = self.totals[name].stated
                follows = name in read or (stated["kind"] == "sum_of_pair" and read.issuperset(stated["of"]))
                require(follows, f"{mechanism['id']} gives {name}, which does not follow from what it measures")
            hidden |= read.union(mechanism.get("gives", ()))
        decided = {rule["mechanism"] for rule in self.certificate["keys"] if rule["rule"] in DECIDED}
        undecided = [m["id"] for m in mechanisms if m["law"] in DECIDED.values() and m["id"] not in decided]
        require(not undecided, f"no rule counts the keys that {', '.join(undecided)} finds")
        seen = [name for name, total in self.totals.items() if total.reach.l2_squared and name not in hidden]
        require(not seen, f"no mechanism hides {', '.join(seen)}")

    def keys(self) -> Fraction:
        """The sum of what rules for keys claim of δ, each of which follows."""
        by_id, whole = {mechanism["id"]: mechanism for mechanism in self.certificate["mechanisms"]}, Fraction(0)
        for rule in self.certificate["keys"]:
            if rule["by"] not in self.totals:
                raise Unknown("keys by a total of which nothing is known")
            require(is_whole(rule["least"], 0), "the number that no group is released with is below 0")
            about = self.totals[rule["by"]].stated["question"]
            require(about == rule["question"], "the groups of a question are found by a total of another one")
            if rule["rule"] == "threshold":  # of one unit, where it is alone
                alone, total = rule["alone"], self.totals[rule["by"]]
                require(alone["each"] <= (0 if total.stated["fraction"] else 1), "a unit may be alone with less")
                most = {"groups": total.reach.l0, "most": total.reach.linf, "total": total.reach.l1}
                for what, derived in most.items():
                    self.follows(f"keys alone: {what}", derived, alone[what])
            counted = rule["delta"] is not None or self.certificate["composition"]["rule"] == "threshold_beside_noise"
            require(counted, "the δ of keys is not counted")
            if rule["delta"] is not None:  # else it is a part of the composition
                delta = keys_delta(rule, by_id[rule["mechanism"]], self.totals[rule["by"]])
                self.follows(f"keys ({rule['rule']}) δ", delta, rule["delta"])
                whole += number(rule["delta"])
        return whole

    def summed(self, currency: str, *, normal: bool | None = None) -> Fraction:
        """The sum of the losses of mechanisms, of normal noise or of others or of all, which all have to be claimed."""
        laws = {m["id"]: m["law"] for m in self.certificate["mechanisms"] if normal in (None, m["law"] in NORMAL)}
        found = [self.losses.get(name, {}).get(currency) for name in laws]
        if any(name not in self.losses for name in laws):
            raise Unknown("the cost of a mechanism is not known")
        require(None not in found, f"a mechanism has no {currency}, in which the composition counts")
        return sum((upper(cost) for cost in found if cost is not None), Fraction(0))

    def composition(self, stated: Json) -> None:
        """The charge, from the losses of all mechanisms and the δ of keys."""
        charge, rule, keys, rules = self.certificate["charge"], stated["rule"], self.keys(), self.certificate["keys"]
        spent: dict[str, Interval | Exact] = {"delta": keys}
        require(("epsilon" in charge) != ("rho" in charge), "the charge is in ε or in ρ, and in one of them alone")
        if "mu_squared" in stated and rule != "mu_squared":
            self.follows("composed μ²", self.summed("mu_squared", normal=True), stated["mu_squared"])
        if "gaussian" in charge:
            self.follows("charge μ²", self.summed("mu_squared"), charge["gaussian"]["mu_squared"])
            counted = charge["gaussian"]["keys"] or not rules
            require(counted, "the charge counts no keys, but some are found in the data")
        if rule == "nothing":
            still = not any(total.reach.l2_squared for total in self.totals.values())
            require(still and not rules, "a unit can move what is released, but nothing is charged")
            spent |= {"epsilon": 0, "rho": 0}
        elif rule == "epsilon":
            spent["epsilon"] = self.summed("epsilon")
        elif rule in ("gaussian", "threshold_beside_noise"):
            spent["epsilon"] = number(stated["epsilon"]) + self.summed("epsilon", normal=False)
            spent["delta"] = self.normal(stated, keys)
        elif rule in ("rho", "mu_squared"):
            self.follows(f"composed {rule}", self.summed(rule), stated[rule])
            rho = spent["rho"] = number(stated[rule]) / (1 if rule == "rho" else 2)
            if "epsilon" in charge:
                spent["epsilon"] = rho_to_epsilon(rho, number(stated["order"]), number(stated["delta"]))
                spent["delta"] = keys + number(stated["delta"])
        else:
            raise Unknown(f"the composition {rule!r}")
        for term in ("epsilon" if "epsilon" in charge else "rho", "delta"):
            self.follows(f"charge {term}", spent[term], charge[term])

    def normal(self, stated: Json, keys: Fraction) -> Interval | Fraction:
        """δ of normal noise at its part of ε, with that of keys."""
        epsilon, rules = number(stated["epsilon"]), self.certificate["keys"]
        if stated["rule"] == "gaussian":
            noise = normal_delta(self.summed("mu_squared", normal=True), epsilon)
            self.follows("δ of the normal noise", noise, stated["delta"])
            return number(stated["delta"]) + keys
        normal = [mechanism for mechanism in self.certificate["mechanisms"] if mechanism["law"] in NORMAL]
        fits = [(rule["mechanism"], rule["rule"]) for rule in rules] == [(m["id"], "threshold") for m in normal]
        require(fits and len(rules) == 1, "this composition is for one threshold on the one mechanism of normal noise")
        claim = number(stated.get("delta", self.certificate["charge"]["delta"]))
        delta = threshold_beside_noise(rules[0], normal[0], self.totals, epsilon, claim)
        self.follows("δ of keys and noise", delta, f"{claim.numerator}/{claim.denominator}")
        return delta

    def ledger(self, ledger: Json) -> None:
        """The chain of hashes of an exported ledger, and the entry that the certificate names.

        The hash of an entry is that of a JSON list: the hash before it, its number, kind and time, and its body.
        """
        named, body, entries = self.certificate["ledger"], None, []
        for name, budget in ledger.items():
            before = "0" * 64
            for place, entry in enumerate(budget["entries"], 1):
                head = [before, entry["number"], entry["kind"], entry["at"]]
                text = f"{json.dumps(head, separators=(',', ':'), ensure_ascii=False)[:-1]},{entry['sealed']}]"
                sealed = (place, hashlib.sha256(text.encode()).hexdigest()) == (entry["number"], entry["hash"])
                require(sealed, f"{name!r}, entry {place}: its hash is not that of what it says")
                if (entry["hash"], before, place) == (named["hash"], named["previous"], named["number"]):
                    body, entries = json.loads(entry["sealed"]), budget["entries"]
                before = entry["hash"]
        if body is None:
            raise Refused("no entry has this number, this hash and this hash before it")
        paid, charge = body.get("price") or body["loss"], self.certificate["charge"]
        for term in ("epsilon" if "epsilon" in charge else "rho", "delta"):
            require(number(charge[term]) == number(paid[term]), f"{term} is another one than the entry is charged with")
        results = [json.loads(entry["sealed"]) for entry in entries if entry["kind"] == "result"]
        results = [result for result in results if result["about"] == named["number"]]
        answers = [None, *(result["digest"] for result in results)]  # None: the table was changed after the release
        require(self.certificate["answer"] in answers, "the result of this charge is another answer")
        for result in results:
            kept = kept_certificate(result)
            other = [name for name in kept if name != "answer" and kept[name] != self.certificate.get(name)]
            require(not other, f"the result keeps a certificate of its own, which has another {', '.join(other)}")
        self.derived.append(f"ledger: entry {named['number']} of an unbroken chain has this charge")

    def table(self, table: bytes) -> None:
        """The hash of the released table."""
        same = hashlib.sha256(table).hexdigest() == self.certificate["table"]["sha256"]
        require(same, "it is not the table whose hash the certificate has")
        self.derived.append("table: it has the hash that the certificate names")


def kept_certificate(result: Json) -> Json:
    """The certificate that is sealed in a result, as far as all its tables share it; empty if there is none."""
    packed = base64.b64decode(result.get("statement", ""))
    text = zlib.decompressobj().decompress(packed, 10**8)
    return json.loads(text or "{}", parse_float=str).get("certificate") or {}


def read_by(mechanism: Json) -> set[str]:
    """The totals that a mechanism measures, or chooses from or by."""
    if mechanism["law"] in NOISE:
        return {name for measure in mechanism["measures"] for name in measure["of"]}
    return {mechanism["of"]} if "of" in mechanism else set()


CODES = {"PROVED": 0, "REFUSED": 1, "UNKNOWN": 3}
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
ASSUMED = """It is assumed that
- rows were read and limits enforced as the steps and totals say;
- noise was drawn from the stated laws, each number's independently, and choices were made with the stated chances;
- what was released was computed from these answers, and from nothing else that depends on rows."""


def read(certificate: str, ledger: str | None = None, table: str | None = None) -> Check:
    """The check of files. What is no exact number stays a text. Errors: those of UNREADABLE."""
    texts = [Path(path).read_text("utf-8") if path else "null" for path in (certificate, ledger)]
    documents = [json.loads(text, parse_float=str, parse_constant=str, object_pairs_hook=once) for text in texts]
    if ledger and documents[1] is None:
        raise ValueError("the ledger is empty")
    return Check(documents[0], documents[1], Path(table).read_bytes() if table else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files of a command line. Output: the exit code."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dpframe_check", description=__doc__, formatter_class=raw)
    parser.add_argument("certificate", help="what release.certificate() gives, as a JSON file")
    parser.add_argument("--ledger", help="what ledger.export('json') gives, as a file")
    parser.add_argument("--table", help="the released table as a CSV file")
    asked = parser.parse_args(arguments)
    try:
        check = read(asked.certificate, asked.ledger, asked.table)
    except UNREADABLE as error:
        print(f"cannot be read: {error}", file=sys.stderr)
        return 2
    print(check.text)
    return CODES[check.verdict]


if __name__ == "__main__":
    sys.exit(main())
