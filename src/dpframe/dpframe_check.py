"""Checks the certificate of a differentially private release: one file, which needs Python alone.

    python dpframe_check.py release.json [--ledger export.json] [--table table.csv]

It imports nothing of the library that made the release, and shares no formula with it. From what was asked it derives
how far one unit can move each number, from laws and scales what the noise costs, and adds this up. Exit codes:

- 0, PROVED: every claim follows, if rows were read and noise was drawn as stated. No certificate can show these two.
- 1, REFUSED: a claim does not follow. Each of these is printed.
- 3, UNKNOWN: something is of a kind that is not derived here, and all else follows. And 2: a file cannot be read.

Of two neighbouring tables one has all rows of one unit more ("add-remove"), or other rows, another unit's, instead of
these ("replace"). The page "The certificate" of the reference says what each field means.
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
from functools import cache, partial
from itertools import pairwise
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

LARGEST, MANY = 40_000, 10**5  # exponents that are computed; groups or keys of one unit that are gone through
DOWN, UP = (Context(prec=100, rounding=way, Emin=-20_000, Emax=20_000) for way in (ROUND_FLOOR, ROUND_CEILING))


def decimal(way: Context, x: Exact) -> Decimal:
    """A fraction with 100 digits, rounded down or up."""
    return way.divide(Decimal(x.numerator), Decimal(x.denominator))


class Interval:
    """A real number between two fractions. Every operation gives an interval that holds the exact result."""

    low: Fraction
    high: Fraction

    def __init__(self, low: Interval | Exact, high: Exact | None = None) -> None:
        ends = (low.low, low.high) if isinstance(low, Interval) else (low, low if high is None else high)
        self.low, self.high = (Fraction(decimal(way, end)) for way, end in zip((DOWN, UP), ends, strict=True))

    def __add__(self, other: Interval | Exact) -> Interval:
        other = Interval(other)
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | Exact) -> Interval:
        return self + -Interval(other)

    def __rsub__(self, other: Exact) -> Interval:
        return -self + other

    def __mul__(self, other: Interval | Exact) -> Interval:
        other = Interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval | Exact) -> Interval:
        other = Interval(other)
        require(other.low > 0 or other.high < 0, "a divisor may be zero")
        return self * Interval(1 / other.high, 1 / other.low)

    def __rtruediv__(self, other: Exact) -> Interval:
        return Interval(other) / self

    def __pow__(self, n: int) -> Interval:
        total, x = Interval(1), self
        while n:
            total, x, n = total * x if n & 1 else total, x * x, n >> 1
        return total

    __radd__, __rmul__ = __add__, __mul__


def monotone(at: Callable[[Fraction], Interval]) -> Callable[[Interval | Exact], Interval]:
    """A function of intervals, from a function of fractions that only rises or only falls."""
    at = cache(at)

    def of(x: Interval | Exact) -> Interval:
        x = Interval(x)
        return Interval(min(at(x.low).low, at(x.high).low), max(at(x.low).high, at(x.high).high))

    return of


def outward(function: str, x: Fraction) -> Interval:
    """A rising function of Python's decimals. Their manual says that it is rounded correctly: one step encloses it."""
    if function == "exp" and x > LARGEST:
        raise Unknown(f"a loss or a distance of {shown(x)} is too large to be computed here")
    low, high = (getattr(way, function)(decimal(way, x)) for way in (DOWN, UP))
    return Interval(Fraction(DOWN.next_minus(low)), Fraction(UP.next_plus(high)))


exp, log, root = (monotone(partial(outward, function)) for function in ("exp", "ln", "sqrt"))
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
        while term.high > Fraction(1, 10**99) or 2 * x * x > odd + 2:
            total, odd = total + term, odd + 2
            term = term * (x * x / odd)
        return Fraction(1, 2) - density * Interval(total.low, total.high + 2 * term.high)
    depth = 15 + 10**4 // int(x) ** 2
    rest = Interval(x, x + (depth + 1) / x)
    for n in range(depth, 0, -1):
        rest = x + n / rest
    return density / rest


# 2. Laws. Totals are whole numbers, so real noise that is rounded is that of the textbook, rounded with the number.


def normal_delta(mu_squared: Exact, epsilon: Interval | Exact) -> Interval:
    """δ at ε of normal noise that one unit moves by μ deviations (Balle, Wang 2018, arXiv:1805.06530, theorem 8)."""
    if mu_squared == 0:
        return Interval(0)
    mu = root(mu_squared)
    return normal_tail(epsilon / mu - mu / 2) - exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def pure_is_gaussian(epsilon: Fraction, mu_squared: Fraction) -> bool:
    """Whether ε-privacy is Gaussian privacy with this μ² (Dong, Roth, Su 2019, arXiv:1905.02383).

    The two errors of any test lie above two lines with a corner at 1/(1 + e^ε) for both. The curve of μ is convex and
    symmetric with P[N ≥ μ/2] in its middle: it is below the lines if its middle is below the corner.
    """
    require(mu_squared >= 0, "μ² is below 0")
    return epsilon == 0 or normal_tail(root(mu_squared) / 2).high <= (1 / (1 + exp(epsilon))).low


def rho_to_epsilon(rho: Exact, order: Fraction, delta: Fraction) -> Interval:
    """ε of a ρ at δ, by one order α > 1 (Canonne, Kamath, Steinke 2020, arXiv:2004.00010, proposition 12)."""
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


class Limits(NamedTuple):
    """What limits leave of one unit: at most so many groups, rows in each, rows in all. A row may weigh less than 1."""

    groups: int
    rows_per_group: int
    rows: int


class Vector(NamedTuple):
    """What one unit adds to a total: entries, sum of sizes, largest size, and how far two units' entries are apart."""

    groups: int
    total: Exact
    cell: Exact
    swing: Exact


class Reach(NamedTuple):
    """How far neighbours are apart: entries that differ, the sum of differences, of their squares, and the largest."""

    l0: int
    l1: Exact
    l2_squared: Exact
    linf: Exact


class Total(NamedTuple):
    """A total with what was derived of it."""

    stated: Json
    unit: Limits
    vector: Vector | None  # None: the reach follows otherwise
    reach: Reach
    replace: bool


Totals = Mapping[str, Total]
UNLIMITED = 10**100  # rows; no claim is as large
OF_ROWS = {"rows": (1, 1), "values": (0, 1), "distinct": (1, 1), "choice": (1, 1), "tree": (1, 1), "sum": None}
OF_UNITS = {"units": (1, 1), "unit_sum": None, "unit_products": None}  # one number of a unit in each of its groups
RANGES = {**OF_ROWS, **OF_UNITS, "sum_of_pair": None}  # of what is added up: of counts fixed, else stated
OWN_CELLS = ("merged", "histogram", "count_of_pairs", "interaction", "blocks")  # whose entries are no groups


def few(number: Exact) -> int:
    """A number of cases that are gone through one by one. Errors: Unknown if there are too many."""
    if number > MANY:
        raise Unknown(f"{shown(number)} groups or keys of one unit are too many to be gone through")
    return int(number)


def least_of(*limits: int | None) -> int:
    """The smallest of limits, where None is no limit."""
    return min(UNLIMITED if limit is None else limit for limit in limits)


def limits_of(limits: Mapping[str, int | None], rows: int | None, cells: int | None, *, enforced: bool) -> Limits:
    """What limits leave of a unit that has at most `rows` rows (None: any number).

    Limits that are enforced hold together: no more groups than rows in all, no more rows in a group than in all.
    Without an id column nothing can be enforced, and `rows` alone holds.
    """
    sound = all(limits[name] is None or is_whole(limits[name]) for name in Limits._fields)
    require(sound and (rows is None or is_whole(rows)), "a limit is no whole number of at least 1")
    groups, each, most = (limits[name] if enforced else None for name in Limits._fields)
    most = least_of(most, rows)
    groups, each = least_of(groups, most, cells), least_of(each, most)
    return Limits(groups, each, least_of(most, groups * each))


def vector_of(stated: Json, unit: Limits, totals: Totals) -> Vector:
    """What one unit adds to a total of this kind, in units of the total's integer.

    A row of weight w adds w·2^fraction times a whole number of `range`, rounded toward 0.
    """
    kind = stated["kind"]
    if kind == "histogram":  # whole numbers of a unit whose sizes add up to at most `most`
        return Vector(stated["cells"], stated["most"], stated["most"], 2 * stated["most"])
    if kind == "count_of_pairs":  # one number: down by at most what one unit brings, up by what the other brings
        return Vector(1, stated["most"], stated["most"], stated["most"])
    if kind == "blocks":
        return vector_of_blocks(stated, totals[stated["of"]])
    low, high = RANGES[kind] or stated["range"]
    groups, k, rows = (unit.groups, 1, unit.groups) if kind in OF_UNITS else unit
    fine, size, width = 2 ** stated["fraction"], max(-low, high), max(high, 0) - min(low, 0)
    whole, cell, swing = rows * size * fine, k * size * fine, k * width * fine
    if kind == "choice":  # rows that enter or leave a group: of two units, all rows of both
        swing = 2 * cell
    if kind == "sum_of_pair":
        (first, count), centre = (totals[name] for name in stated["of"]), stated["centre"]
        alike = all((one.unit, one.stated["question"]) == (unit, stated["question"]) for one in (first, count))
        kinds = first.stated["kind"] == "sum" and count.stated["kind"] in ("rows", "values")
        fits = alike and kinds and not first.stated.get("one_row") and type(centre) is int
        require(fits, "no sum and count of the same rows")
        require([low, high] == [end + centre for end in first.stated["range"]], "its range is not that of its sum")
    if kind == "sum_of_pair" and fine > 1:  # S + c·V, each with the largest roundings that the format allows
        off = max(abs(end) for end in totals[stated["of"][0]].stated["range"]) + 1 + 2 * abs(stated["centre"])
        whole, cell, swing = whole + groups * off, cell + off, swing + 2 * off
    factor = stated.get("factor")
    if kind == "unit_products" and factor:  # each is at most `times` the size of the other factor, x·`scale` + `off`
        other = totals[factor["of"]]
        alike = (other.unit, other.stated["question"]) == (unit, stated["question"]) and other.vector is not None
        sound = other.stated["kind"] in ("rows", "values", "sum") and is_whole(factor["times"], 0)
        sound = sound and is_whole(factor["off"], 0) and number(factor["scale"]) >= 0
        require(alike and sound, "its other factor is not about the same rows")
        sizes = reach_of(other.vector or Vector(0, 0, 0, 0), other.stated["cells"], replace=False).l1
        sums = math.floor(sizes * number(factor["scale"])) + factor["off"] * groups
        whole = min(whole, factor["times"] * sums)
    return Vector(groups, whole, cell, swing)


def vector_of_blocks(stated: Json, night: Total) -> Vector:
    """What one unit adds to blocks of `size` periods; in each of at most `periods` at most what is `bought`.

    With `weights`, each night adds up its period and `size` - 1 earlier ones, with weights that fall by their lag.
    """
    (size, periods), bought = (stated["size"], stated["periods"]), [number(text) for text in stated["bought"]]
    cells, own = night.stated["cells"], night.vector
    if own is None or not is_whole(size) or not is_whole(periods):
        raise Refused("periods of blocks make no sense")
    here = (least_of(own.groups, cells), reach_of(own, cells, replace=False).l1, own.cell, own.swing)
    kept = all(now <= most for now, most in zip(here, bought, strict=True))
    require(kept, f"one unit adds more to {night.stated['id']} than noise was bought for")
    (groups, total, cell, swing), weights, both = bought, stated.get("weights", [1]), min(size, periods)
    if "weights" in stated:
        falls = all(map(is_whole, weights)) and sorted(weights, reverse=True) == weights and len(weights) == size
        require(falls, "weights of periods are no falling whole numbers")
        both = sum(weights[:periods])
    entries, whole = periods * groups * len(weights), periods * total * sum(weights)
    return Vector(int(entries), whole, both * cell, both * swing)


def square_of(weights: Sequence[int], periods: int) -> int:
    """The largest sum over nights of (weights of one unit's periods)²: that of consecutive periods."""
    lags = [sum(one * two for one, two in zip(weights, weights[lag:], strict=False)) for lag in range(len(weights))]
    return sum((periods - lag) * of * (2 if lag else 1) for lag, of in enumerate(lags[:periods]))


def reach_of(own: Vector, cells: int | None, *, replace: bool) -> Reach:
    """The reach of vectors of so many cells.

    Of two units (replace) each may be in groups of its own: twice the entries and the sum of sizes. The sum of squares
    grows if a smaller entry gives to a larger one, so the worst has full entries and one rest.
    """
    times, cell = (2, own.swing) if replace else (1, own.cell)
    entries = least_of(times * own.groups, cells)
    whole = min(times * own.total, entries * cell)
    full, rest = divmod(whole, cell) if whole else (0, 0)
    return Reach(entries, whole, full * cell * cell + rest * rest, cell) if whole else Reach(0, 0, 0, 0)


def total_of(stated: Json, unit: Limits, totals: Totals, *, replace: bool) -> Total:
    """A total with its reach, by its kind."""
    kind, cells = stated["kind"], stated.get("cells")
    wholes = [stated[name] for name in ("most", "one", "cells") if stated.get(name) is not None]
    low, high = stated.get("range", (0, 0))
    sound = is_whole(stated["fraction"], 0) and stated["fraction"] <= LARGEST and type(low) is type(high) is int
    sound = sound and low <= high and all(map(is_whole, wholes)) and all(map(is_whole, stated.get("levels", ())))
    require(sound, "its range, its fraction or its cells make no sense")

    def made(reach: Reach, vector: Vector | None = None) -> Total:
        return Total(stated, unit, vector, reach, replace)

    if kind == "merged":  # all entries that a unit moves may be added up to one
        moved = totals[stated["of"]].reach
        return made(reach_of(Vector(moved.l0, moved.l1, moved.l1, 0), cells, replace=False))
    if kind == "key_weights" and not replace:  # t keys get ⌊one/√t⌋ each
        shares = [math.isqrt(stated["one"] ** 2 // t) for t in range(1, few(stated["most"]) + 1)]
        sums, squares = ([t * share**n for t, share in enumerate(shares, 1)] for n in (1, 2))
        return made(Reach(stated["most"], max(sums), max(squares), stated["one"]))
    if kind == "interaction":  # a row adds 1 - 1/n at its own key of an axis and -1/n at others
        rows = unit.rows * 2 ** stated["fraction"] * (2 if replace else 1)
        squares = interaction(stated["levels"], replace=replace) * (unit.rows * 2 ** stated["fraction"]) ** 2
        return made(Reach(math.prod(stated["levels"]), rows * 2 ** len(stated["levels"]), squares, rows))
    if kind == "key_weights":
        raise Unknown("weights of keys under replace")
    vector = vector_of(stated, unit, totals)
    if stated.get("one_row"):  # one row is exchanged for one row: what it adds goes at most from end to end of `range`
        require(kind in ("rows", "sum", "unit_products"), "its kind has no rule for exactly one row")
        apart = (high - low) * 2 ** stated["fraction"] if kind != "rows" else 0
        return made(reach_of(Vector(1, apart, apart, apart), 1, replace=False), vector)
    found = reach_of(vector, None if kind in ("tree", "blocks") else cells, replace=replace)
    if kind == "tree":  # blocks of a level are disjoint, in as many groups as there are
        found = found._replace(l0=least_of(found.l0, cells))
    if kind == "blocks":  # Σx² ≤ max|x|·Σ|x|, which grows at least as the periods do
        found = found._replace(l2_squared=found.l1 * found.linf)
    if kind == "blocks" and "weights" in stated:  # the sum over nights of (what the unit's periods weigh)² instead
        weights, periods = stated["weights"], stated["periods"]
        most = periods * sum(weights) * sum(weights[:periods])
        found = found._replace(l2_squared=found.l2_squared * square_of(weights, periods) / Fraction(most))
    return made(found, vector)


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


# 4. Mechanisms. What each one costs, in its own currency. Each reads the totals `of` it.

LAPLACE, CHOICES = ("laplace", "discrete_laplace"), ("permute_and_flip", "exponential")
NOISE = (*LAPLACE, "gaussian")  # with a number for each group by itself
JOINT = ("window", "cube")  # one noise in each group for several totals
NORMAL, KEYS = ("gaussian", "gaussian_rounds"), ("truncated_geometric", "gaussian_rounds")  # KEYS: of keys alone
LAWS = (*NOISE, *CHOICES, *KEYS, *JOINT, "k_norm", "none")


Losses = dict[str, Interval | Exact]  # by currency


def pure(epsilon: Fraction, law: str, pieces: int = 1) -> Losses:
    """The losses of an ε-private mechanism, which consists of so many pieces of equal ε.

    ρ is ε + e^-ε - 1 of Laplace noise, which is convex in ε; of any other piece it is at most ε·tanh(ε/2). Source: Bun,
    Steinke 2016, arXiv:1605.02065; Harrison, Manurangsi 2025, arXiv:2510.25746.
    """
    each = epsilon / pieces
    rho = each - 1 + exp(-each) if law == "laplace" else each * (1 - exp(-each)) / (1 + exp(-each))
    return {"epsilon": epsilon, "rho": pieces * rho, "pieces": pieces}


def normal(mu_squared: Fraction) -> Losses:
    """The losses of normal noise."""
    return {"mu_squared": mu_squared, "rho": mu_squared / 2}


def losses_of(mechanism: Json, totals: Totals) -> Losses:
    """The losses of a mechanism, by its law.

    Independent noises cost the sum of |move|/scale, or of (move/scale)². A rest adds up the groups that were not
    released: given these, a unit moves the released groups by d in all, and the rest by at most l1 - d. The dearer
    counts. Where the total itself decides which groups are released, that a group was not costs its own d again.
    """
    law, read, scale = mechanism["law"], [totals[name] for name in mechanism["of"]], number(mechanism["scale"])
    rest = number(mechanism.get("rest", mechanism["scale"]))
    if law not in LAWS:
        raise Unknown(f"a mechanism of law {law!r}")
    (total, *pair), moved = read, read[0].reach
    fits = all((one.stated["kind"] == "choice") == (law in CHOICES) for one in read)
    require(fits and min(scale, rest) > 0, "a choice is by a law of choices, noise by another, and scales are above 0")
    require(not pair or law in (*LAPLACE, *JOINT), "this law is for one total")
    require("rest" not in mechanism or law in NOISE, "this law has no noise on what is suppressed")
    require("common" not in mechanism or law == "gaussian", "this law has no noise that groups share")
    require("finds" in mechanism or law not in KEYS, "no rule counts the keys that it finds")
    require(law != "gaussian_rounds" or total.stated["kind"] == "key_weights", "rounds are about weights of keys alone")
    if law == "none":
        require(not moved.l1, "one unit moves a total that gets no noise")
        return pure(Fraction(0), law)
    if law in LAPLACE:
        far = pair_moves(mechanism, read) if pair else moved.l1
        both = "rest" in mechanism and "finds" in mechanism
        return pure(far / scale + far / rest if both else far / min(scale, rest), law)
    if law in JOINT:
        return pure(joint_cost(mechanism, read) / scale, law)
    if law == "gaussian":
        return normal(normal_cost(mechanism, total))
    if law == "gaussian_rounds":
        return normal(len(mechanism["thresholds"]) * moved.l2_squared / scale**2)
    if law == "k_norm":
        # Probabilities are proportional to e^(-N(z)/scale), N(z) = max(0, max z) + max(0, max -z), a norm: a shift by x
        # changes them by at most e^(N(x)/scale) (Hardt, Talwar 2010, arXiv:0907.3754). Of a unit that only adds, N is
        # its largest entry; of two units at most both together.
        adds_only(total)
        return pure((2 if total.replace else 1) * moved.linf / scale, law)
    if law == "truncated_geometric":  # each group is (1/scale, p)-private by itself, where its number moves by 1
        require(moved.linf <= 1, "the optimal rule for keys needs a number that one unit moves by 1")
        return pure(moved.l0 / scale, law, max(moved.l0, 1))
    return choice_cost(mechanism, moved)


def pair_moves(mechanism: Json, read: Sequence[Total]) -> Fraction:
    """How far a unit moves a pair: a sum S and the number V of its rows, measured as weight·V + S and weight·V - S.

    If V moves by n and S by d, these move by 2·max(weight·|n|, |d|) together. A row of weight w moves V by at most w
    and S by at most h·w, and weight ≤ h in units of S: so they move by 2·l1(S), where both are about the same rows.

    A third total N of all rows is measured beside it as N - V, the rows without a value, with noise of the scale
    `missing`. Of a row of weight w some part u has no value: that costs at most u/missing + 2·h·(w - u)/scale, so w
    times the larger rate; here in units of `scale`. Rounded numbers are off by less than 2 in a group.
    """
    (total, count, *rows), weight, fine = read, mechanism["weight"], read[1].stated["fraction"]
    size: Fraction = max(map(abs, total.stated["range"])) * Fraction(2) ** (total.stated["fraction"] - fine)
    same = all((one.unit, one.stated["question"]) == (total.unit, total.stated["question"]) for one in read)
    kinds = total.stated["kind"] == "sum" and count.stated["kind"] in ("rows", "values")
    counted = {*count.stated.get("present", ())} <= {*total.stated["present"]}  # V counts each row that has a part in S
    require(same and kinds and counted and is_whole(weight) and weight <= size, "no sum and count of the same rows")
    if not rows:
        return 2 * Fraction(max(total.reach.l1, weight * count.reach.l1 if total.stated.get("one_row") else 0))
    (every,), missing = rows, number(mechanism["missing"])
    is_exact = total.unit.rows >= total.unit.groups * total.unit.rows_per_group  # no row has a part of 1 for its weight
    alike = every.stated["fraction"] == fine or (is_exact and every.stated["fraction"] == 0)
    alike = alike and every.stated["kind"] == "rows" and "rest" not in mechanism
    require(alike and missing > 0, "no count of all rows beside that of the values")
    whole: Exact = total.unit.rows * 2**fine + (2 * total.unit.groups if fine else 0)
    return max(number(mechanism["scale"]) / missing, 2 * size) * whole * (2 if total.replace else 1)


def normal_cost(mechanism: Json, total: Total, groups: int | None = None) -> Fraction:
    """μ² of normal noise: the largest sum of (move/scale)², in so many groups if limits allow more.

    Beside a rest j full entries are released, and the rest moves by what is left of l1. Between whole j the sum of
    squares is convex, so these and all of l1 are the worst.
    """
    scale, (_, l1, squares, linf) = number(mechanism["scale"]), total.reach
    if "common" in mechanism:
        require("rest" not in mechanism, "no rest has noise that groups share")
        return shared_cost(mechanism, total)
    if "rest" in mechanism:
        full = few(l1 // linf) if l1 else 0
        spread = [(squares, l1 if "finds" in mechanism else 0)]
        spread += [(j * linf**2, l1 - j * linf) for j in range(full + 1)]
        return max(Fraction(x) / scale**2 + Fraction(y**2) / number(mechanism["rest"]) ** 2 for x, y in spread)
    is_grouped = total.stated["kind"] not in OWN_CELLS and total.stated.get("before") is None
    if groups is not None and is_grouped:  # blocks of a tree may be those of two units
        squares = min(squares, groups * linf**2 * (2 if total.stated["kind"] == "tree" else 1))
    return Fraction(squares) / scale**2


def adds_only(total: Total) -> None:
    """Refuse a total to which one unit may add numbers of both signs."""
    low, high = RANGES.get(total.stated["kind"]) or total.stated["range"]
    one_sign = total.stated["kind"] in ("rows", "values", "units", "sum", "unit_sum") and not low < 0 < high
    require(one_sign, "noise that groups share, on a total that one unit may move up here and down there")


def shared_cost(mechanism: Json, total: Total) -> Fraction:
    """μ² of normal noise with a part C that all d cells share, for moves x of one sign.

    The covariance is scale²·(I + v·J), J all ones, v = common²/scale². By its inverse μ² = (|x|² - c·(Σx)²)/scale² with
    c = v/(1 + d·v). As c·d < 1 this is convex in x: the largest is at a corner, where all entries are full or 0, but
    for one if the sum is l1. Both noises are rounded to 1/65536: the answer is a function of x - w + N and w + C for
    every such multiple w, and the one next to the best real w adds (d/scale² + 1/common²)/(2·65536)².
    """
    adds_only(total)
    variance, d = number(mechanism["scale"]) ** 2, total.stated["cells"]
    v = number(mechanism["common"]) ** 2 / variance
    if total.replace or d is None or v == 0:
        raise Unknown("shared noise under replace, or on groups that are not listed")
    c, (_, l1, _, linf) = v / (1 + d * v), total.reach
    full, rest = divmod(l1, linf) if l1 else (0, 0)
    top = min(int(1 / (2 * c)), int(full))  # of the parabola j·linf² - c·(j·linf)² in j
    corners = [(j - c * j * j) * linf**2 for j in (top, min(top + 1, int(full)))]
    corners.append(full * linf**2 + rest**2 - c * Fraction(l1) ** 2)
    return Fraction(max(corners) + (d + 1 / v) / (2 * 65536) ** 2) / variance


def joint_cost(mechanism: Json, read: Sequence[Total]) -> Fraction:
    """How far one unit moves several totals that share a noise, each times its factor, in the norm N of the noise.

    Vectors z of a group have probabilities ∝ e^(-N(z)/scale): of windows N is that of `k_norm`, of cubes max |z|. It
    adds up over groups. Let M be the largest size of a factor times an end of its `range`. A unit whose rows weigh w in
    a group moves each entry by at most M·w: so N is at most M·w, of windows if no entry falls, or none rises. All w are
    the rows of a unit, or of two; of numbers of units, groups. In one group entries move by at most their linf.
    """
    factors, kinds = mechanism["factors"], {one.stated["kind"] for one in read}
    require(len(factors) == len(read) == len({*mechanism["of"]}), "each total of a noise needs one factor")
    require(all(type(factor) is int and factor for factor in factors), "a factor is no whole number, or 0")
    known = {"rows", "values", "sum", "units", "unit_sum"} | ({"sum_of_pair"} if mechanism["law"] == "cube" else set())
    require(kinds <= known, "a noise is on totals of another kind")
    ranges = [RANGES[one.stated["kind"]] or one.stated["range"] for one in read]
    fines = [factor * 2 ** one.stated["fraction"] for factor, one in zip(factors, read, strict=True)]
    ends = [fine * end for fine, own in zip(fines, ranges, strict=True) for end in own]
    windows, first, cells = mechanism["law"] == "window", read[0], {one.stated["cells"] for one in read}
    require(not windows or not min(ends) < 0 < max(ends), "a window is on totals that one unit moves up and down")
    if cells == {1}:
        moves = [abs(factor) * one.reach.linf for factor, one in zip(factors, read, strict=True)]
        return Fraction(max(moves) * (2 if windows and first.replace else 1))
    of_units = bool(kinds & {"units", "unit_sum"})
    require(not of_units or kinds <= {"units", "unit_sum"}, "a noise is on numbers of rows and of units")
    alike = {(one.unit, one.stated["question"], one.stated["cells"]) for one in read}
    require(len(alike) == 1 and "sum_of_pair" not in kinds, "totals of one noise are not about the same rows")
    groups, k, rows = (first.unit.groups, 1, first.unit.groups) if of_units else first.unit
    length = reach_of(Vector(groups, rows, k, 2 * k), first.stated["cells"], replace=first.replace).l1
    return Fraction(length * max(map(abs, ends)))


def choice_cost(mechanism: Json, moved: Reach) -> Losses:
    """The cost of choosing candidates by scores, in every group; groups add up, to l1 and to l2².

    If the scores of a group move within an interval of a width D, log ratios of probabilities do within η = D·rate.
    Permute-and-flip has ε = η (McKenna, Sheldon 2020, arXiv:2010.12603), the exponential mechanism ρ = η²/8 (Cesar,
    Rogers 2021, arXiv:2004.07223) and μ² ≤ π·η²/8: in log odds a normal quantile has at most the slope √(π/8).

    A number of rows moves by 0 to 1 with each row: D = 1. The score of a quantile a/b is how far the rows below and
    above a candidate are from their shares, in b parts of a row. A row moves that by b - a or a, up or down: D is twice
    the larger, over b. Public rows may be added, one less for each `fade` rows: if a row joins below and a part 1/fade
    of a public row leaves above, the score moves by a/fade more, or else by (b - a)/fade.
    """
    scale, many, width, fade = number(mechanism["scale"]), mechanism["number"], Fraction(1), mechanism.get("fade")
    require(is_whole(many) and (fade is None or is_whole(fade)), "a number of choices or of rows makes no sense")
    if mechanism.get("rank") is not None:
        rank = number(mechanism["rank"])
        require(0 <= rank <= 1, "a rank is not between 0 and 1")
        width = 2 * (max(rank, 1 - rank) + (min(rank, 1 - rank) / fade if fade else 0))
    if mechanism["law"] == "permute_and_flip":
        return pure(many * moved.l1 * width / scale, mechanism["law"], many)
    rho = many * moved.l2_squared * (width / scale) ** 2 / 8
    return {"rho": rho, "mu_squared": PI * rho}


# 5. Composition. Keys that are found in the data, and noise that decides about them.


def hidden_alone(mechanism: Json, total: Total, groups: int) -> list[Interval]:
    """For t = 0, 1, ... groups that a unit is alone in: the least chance that none is released, noisy ≥ threshold.

    Without the unit the number in such a group is at most `least`, and with it at most `least` + c, so the noise must
    reach threshold - least - c. A whole row adds at least 1; where weights are rounded it may add 0. -ln of the chance
    to hide is convex in c, as the noise is log-concave: it is largest where at most one c is not at an end.
    """
    if "common" in mechanism or mechanism["law"] not in NOISE or len(mechanism["of"]) > 1:
        raise Unknown("keys by a number whose noise is not its own")
    rule, scale = mechanism["finds"], number(mechanism["scale"])
    require(is_whole(rule["threshold"]), "a threshold is no whole number of at least 1")
    reached = rule["threshold"] - rule["least"]
    hides = cache(lambda c: 1 - noise_tail(mechanism["law"], scale, reached - c))
    rows = total.stated["kind"] in ("rows", "units", "distinct", "merged") and not total.stated["fraction"]
    most, whole, each = int(total.reach.linf), int(total.reach.l1), int(rows)
    groups = min(groups, whole) if each else groups
    few(100 * groups)  # each takes as long as a hundred simple cases
    chances = [Interval(1)]
    for t in range(1, groups + 1):
        full, rest = divmod(whole - t * each, most - each) if most > each else (t, 0)
        hidden = hides(most) ** min(full, t) * hides(each) ** max(t - full - 1, 0)
        chances.append(hidden * hides(each + rest) if full < t else hidden)
    return chances


def keys_delta(mechanism: Json, total: Total) -> Interval | Fraction:
    """The chance that a group is released which only one of two neighbouring tables has."""
    rule, groups = mechanism["finds"], total.reach.l0
    if mechanism["law"] == "truncated_geometric":  # a group of one unit is released with the chance `start`, by itself
        start = number(rule["start"])
        require(0 <= start <= 1, "a chance is not between 0 and 1")
        return 1 - (1 - start) ** groups if groups < 1000 else 1 - Interval(1 - start) ** groups
    if mechanism["law"] == "gaussian_rounds":
        # After j rounds a key of one unit has at most j·one, and noise that is normal but for j roundings by 1/2.
        scale, one, delta = number(mechanism["scale"]), total.stated["one"] + rule["least"], Interval(0)
        for j, threshold in enumerate(mechanism["thresholds"], 1):
            tail = normal_tail((threshold - j * one - Fraction(j, 2)) / (scale * root(j)))
            delta = delta + (1 - (1 - tail) ** total.stated["most"])
        return delta
    return 1 - min(hidden_alone(mechanism, total, groups), key=lambda chance: chance.low)


def threshold_beside_noise(normal: Sequence[Json], totals: Totals, epsilon: Fraction) -> Fraction:
    """δ at ε of normal noise on totals of one question, of which one decides by a threshold which groups are released.

    Let a unit be alone in t groups, which all stay hidden with the chance h. With one shown: at most 1 - h. Else
    answers have P = h·Q and P' = Q', or h'·Q' where another unit is alone somewhere, with Q and Q' of the noise on the
    other groups, l0 - t at most. As Q ≤ e^x·Q' + D(x, μ) for every x, both ways round δ ≤ (1 - h) + D(ε + ln h, μ).
    """
    pairs, worst = [(mechanism, totals[mechanism["of"][0]]) for mechanism in normal], Fraction(0)
    most = max(total.reach.l0 for _, total in pairs)
    ((decides, total),) = [pair for pair in pairs if "finds" in pair[0]]
    for t, hidden in enumerate(hidden_alone(decides, total, most)):
        left, squares = epsilon + log(hidden), sum((normal_cost(*pair, most - t) for pair in pairs), Fraction(0))
        worst = max(worst, (1 - hidden + (normal_delta(squares, left) if left.low > 0 else 1)).high)
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
        self.losses: dict[str, Losses] = {}  # of mechanisms
        for parts in ("totals", "mechanisms"):
            ids = [stated["id"] for stated in certificate[parts]]
            if len({*ids}) < len(ids) or not all(isinstance(one, str) and one for one in ids):
                self.refused.append(f"{parts}: two have one id, or one has none")
        if certificate["certificate"] != 2 or certificate["relation"] not in ("add-remove", "replace"):
            self.unknown.append("the version of the certificate, or its relation of neighbours")
            return
        if "test" in certificate:
            self.refused.append("it was made in a test, and its noise is not random")
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
        about = {total["id"]: total["question"] for total in self.certificate["totals"]}
        finds = sum("finds" in one and about[one["of"][0]] == place for one in self.certificate["mechanisms"])
        listed = finds == 0 if question["cells"] is not None else finds == 1
        require(listed and (question["by"] or question["cells"] == 1), "groups have to be listed, or found by one rule")

    def total(self, stated: Json) -> None:
        """The sensitivity of a total, from its kind, its limits and its range."""
        name, kind, before, leaves = stated["id"], stated["kind"], stated.get("before"), stated.get("leaves")
        if kind not in (*RANGES, *OWN_CELLS, "key_weights"):
            raise Unknown(f"a total of kind {kind!r}")
        question, own = self.certificate["questions"][stated["question"]], stated.get("own_limits")
        limits, rows, cells = question["limits"], question["contribution"]["rows"], question["cells"]
        if own is not None:
            require(is_whole(own, 0), "its limits are at no place of its question's own limits")
            limits = question["own_limits"][own]["limits"]
        unit = limits_of(limits, rows, None if leaves else cells, enforced="columns" in self.certificate["unit"])
        require(leaves is None or cells is not None, "groups that are found in the data are no leaves")
        if leaves is not None:  # a node has at most so many leaves of those groups that limits are enforced in
            whole = kind in ("rows", "sum") and is_whole(leaves) and stated["cells"] * leaves >= cells
            require(whole, "its nodes have too few leaves for all groups")
            each = min(unit.rows_per_group * min(unit.groups, leaves), unit.rows)
            unit = Limits(unit.groups, each, min(unit.rows, unit.groups * each))
        elif before is not None:  # products of a group with each of those before it
            require(kind == "unit_products" and is_whole(before) and before < cells, "there is no such group")
            require(stated["cells"] == before, "it has another number of entries than there are groups before")
            unit = unit._replace(groups=max(min(unit.groups - 1, before), 1))
        else:
            same = kind in OWN_CELLS or stated["cells"] == cells
            require(same, "it has another number of entries than there are groups")
        tight = all(claim == getattr(unit, limit) for limit, claim in stated.get("limits", {}).items())
        require(tight, f"its limits are not the tightest that follow: {unit}")
        if "grid" in stated:
            centre, step = number(stated["grid"]["centre"]), number(stated["grid"]["step"])
            fits = [centre + step * end for end in stated["range"]] == [number(end) for end in stated["bounds"]]
            require(fits, "its range is not that of its bounds on its grid")
        filled = kind == "rows" or stated.get("nullable") is False
        exact = question["contribution"]["exactly_one"] and not question["by"] and filled
        require(exact or not stated.get("one_row"), "the rule for exactly one row needs one row that is never missing")
        found = self.totals[name] = total_of(stated, unit, self.totals, replace=self.replace)
        for what, claim in stated["sensitivity"].items():
            self.follows(f"{kind}, {what}", getattr(found.reach, what), claim)

    def mechanism(self, stated: Json) -> None:
        """The losses of a mechanism, from its law, its scale and the derived sensitivities."""
        law, loss = stated["law"], stated["loss"]
        if not self.totals.keys() >= {*stated["of"]}:
            raise Unknown("it reads a total of which nothing is known")
        found = self.losses[stated["id"]] = losses_of(stated, self.totals)
        if "pieces" in found and "mu_squared" in loss:
            pieces, squares = upper(found["pieces"]), number(loss["mu_squared"])
            enough = pure_is_gaussian(upper(found["epsilon"]) / pieces, squares / pieces)
            require(enough, f"{law}, mu_squared = {shown(squares)} is claimed, which is too small for its ε")
            found["mu_squared"] = squares
        for currency, claim in loss.items():
            self.follows(f"{law}, {currency}", found[currency], claim)

    def all_are_hidden(self, mechanisms: Json) -> None:
        """Each total that a unit can move is measured, chosen from, or computed from measured ones."""
        hidden = {name for mechanism in mechanisms for name in mechanism["of"]}
        stated = {name: total.stated for name, total in self.totals.items()}
        hidden |= {stated[name]["of"] for name in hidden & stated.keys() if stated[name]["kind"] == "blocks"}
        hidden |= {
            name for name, one in stated.items() if one["kind"] == "sum_of_pair" and hidden.issuperset(one["of"])
        }
        seen = [name for name, total in self.totals.items() if total.reach.l2_squared and name not in hidden]
        require(not seen, f"no mechanism hides {', '.join(seen)}")

    def keys(self) -> Fraction:
        """The sum of what rules for keys claim of δ, each of which follows."""
        whole, shared = Fraction(0), self.certificate["composition"]["rule"] == "threshold_beside_noise"
        for mechanism in (one for one in self.certificate["mechanisms"] if "finds" in one):
            finds, total = mechanism["finds"], self.totals.get(mechanism["of"][0])
            if total is None:
                raise Unknown("keys by a total of which nothing is known")
            require(is_whole(finds["least"], 0), "the number that no group is released with is below 0")
            counted = finds["delta"] is not None or (shared and mechanism["law"] == "gaussian")
            require(counted, "the δ of keys is not counted")
            if finds["delta"] is not None:  # else it is a part of the composition
                self.follows(
                    f"δ of the keys that {mechanism['id']} finds", keys_delta(mechanism, total), finds["delta"]
                )
                whole += number(finds["delta"])
        return whole

    def summed(self, currency: str, *, normal: bool | None = None) -> Fraction:
        """The sum of the losses of mechanisms: of normal noise, of others, or of all.

        Blocks of a series are of parts of its time. A unit is in so many periods of all parts together, and losses grow
        at least as its periods do: so the dearest part counts.
        """
        parts: dict[tuple[int, ...], Fraction] = {(): Fraction(0)}  # by the time that they are of; () is always
        for mechanism in self.certificate["mechanisms"]:
            if normal in (None, mechanism["law"] in NORMAL):
                if mechanism["id"] not in self.losses:
                    raise Unknown("the cost of a mechanism is not known")
                cost, stated = self.losses[mechanism["id"]].get(currency), self.totals[mechanism["of"][0]].stated
                span = tuple(stated["span"]) if stated["kind"] == "blocks" else ()
                if cost is None:
                    raise Refused(f"a mechanism has no {currency}, in which the composition counts")
                parts[span] = parts.get(span, Fraction(0)) + upper(cost)
        always, spans = parts.pop(()), sorted(filter(None, parts))
        apart = all(first < after for first, after in spans) and all(a[1] <= b[0] for a, b in pairwise(spans))
        require(apart, "parts of the series overlap")
        return always + max(parts.values(), default=Fraction(0))

    def composition(self, stated: Json) -> None:
        """The charge, from the losses of all mechanisms and the δ of keys."""
        charge, rule, keys = self.certificate["charge"], stated["rule"], self.keys()
        spent: dict[str, Interval | Exact] = {"delta": keys}
        require(("epsilon" in charge) != ("rho" in charge), "the charge is in ε or in ρ, and in one of them alone")
        if "gaussian" in charge:
            self.follows("charge μ²", self.summed("mu_squared"), charge["gaussian"]["mu_squared"])
            counted = charge["gaussian"]["keys"] or not any("finds" in one for one in self.certificate["mechanisms"])
            require(counted, "the charge counts no keys, but some are found in the data")
        if rule == "epsilon":
            spent["epsilon"] = self.summed("epsilon")
        elif rule in ("gaussian", "threshold_beside_noise"):
            require(number(stated["epsilon"]) >= 0, "a part of ε is below 0")
            spent["epsilon"] = number(stated["epsilon"]) + self.summed("epsilon", normal=False)
            self.follows("δ of the normal noise", self.normal(stated), stated["delta"])
            spent["delta"] = keys + number(stated["delta"])
        elif rule in ("rho", "mu_squared"):
            rho = spent["rho"] = self.summed(rule) / (1 if rule == "rho" else 2)
            if "epsilon" in charge:
                spent["epsilon"] = rho_to_epsilon(rho, number(stated["order"]), number(stated["delta"]))
                spent["delta"] = keys + number(stated["delta"])
        else:
            raise Unknown(f"the composition {rule!r}")
        for term in ("epsilon" if "epsilon" in charge else "rho", "delta"):
            self.follows(f"charge {term}", spent[term], charge[term])

    def normal(self, stated: Json) -> Interval | Fraction:
        """δ of normal noise at its part of ε; with that of keys, where they share it."""
        normal = [mechanism for mechanism in self.certificate["mechanisms"] if mechanism["law"] in NORMAL]
        if stated["rule"] == "gaussian":
            return normal_delta(self.summed("mu_squared", normal=True), number(stated["epsilon"]))
        about = {self.totals[name].stated["question"] for one in normal for name in one["of"]}
        fits = all(one["law"] == "gaussian" for one in normal)
        fits = fits and sum("finds" in one for one in normal) == len(about) == 1
        require(fits, "this composition is for one threshold on normal noise, all of which is about one question")
        return threshold_beside_noise(normal, self.totals, number(stated["epsilon"]))

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
        results = [result for result in results if result["about"] == named.get("line", named["number"])]
        answers = [result["digest"] for result in results]
        require(self.certificate["answer"] in answers, "the result of this charge is another answer")
        for result in results:
            packed = zlib.decompressobj().decompress(base64.b64decode(result.get("statement", "")), 10**8)
            kept = json.loads(packed or "{}", parse_float=str).get("certificate") or {}
            other = [name for name in kept if kept[name] != self.certificate.get(name)]
            require(not other, f"the result keeps a certificate of its own, which has another {', '.join(other)}")
        self.derived.append(f"ledger: entry {named['number']} of an unbroken chain has this charge")

    def table(self, table: bytes) -> None:
        """The hash of the released table."""
        same = hashlib.sha256(table).hexdigest() == self.certificate["table"]["sha256"]
        require(same, "it is not the table whose hash the certificate has")
        self.derived.append("table: it has the hash that the certificate names")


CODES = {"PROVED": 0, "REFUSED": 1, "UNKNOWN": 3}
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
ASSUMED = """It is assumed that
- rows were read and limits enforced as the steps and totals say;
- noise was drawn from the stated laws, each number's independently, and choices were made with the stated chances;
- what was released was computed from these answers, and from nothing else that depends on rows;
- each block or weighted sum of a series is measured once, and each of its periods asks for no more than was bought."""


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
