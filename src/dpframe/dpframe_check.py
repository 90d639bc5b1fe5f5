"""Checks the certificate of a differentially private release: one file, which needs Python alone.

    python dpframe_check.py release.json [--ledger export.json] [--table table.csv]

It imports nothing of the library that made the release, and shares no formula with it. From what was asked it derives
how far one unit can move each number, from laws and scales what the noise costs, and adds this up. The page "The
certificate" of the reference says what each field means, and proves the rules that are used here. Exit codes:

- 0, PROVED: every claim follows, if rows were read and noise was drawn as stated. No certificate can show these two.
- 1, REFUSED: a claim does not follow. Each of these is printed.
- 3, UNKNOWN: something is of a kind that is not derived here, and all else follows. And 2: a file cannot be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
import zlib
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, partial, reduce
from itertools import accumulate, pairwise
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


# 1. Numbers. All are exact fractions. What is no fraction is bounded by one, from below (DOWN) or from above (UP).

LARGEST, MANY = 40_000, 10**5  # exponents that are computed; simple cases that are gone through
DOWN, UP = (Context(prec=100, rounding=way, Emin=-20_000, Emax=20_000) for way in (ROUND_FLOOR, ROUND_CEILING))
PI_DOWN, PI_UP = (Fraction(3141592653589793238462643383279502884197169399375105820974944 + i, 10**60) for i in (0, 1))


def number(text: Json) -> Fraction:
    """A rational "n/d"."""
    require(isinstance(text, str) and "/" in text, f"{text!r} is no rational number")
    return Fraction(text)


def is_whole(x: Json, least: int = 1) -> bool:
    """Whether something is a whole number, and not too small."""
    return type(x) is int and x >= least


def shown(x: Exact) -> str:
    """A number for people: exact if it is short, else nine digits."""
    short = abs(x.numerator) < 10**9 and x.denominator < 10**9
    return str(x) if short else f"{float(x):.9g}" if -(10**99) < x < 10**99 else "more than 10^99"


def rounded(way: Context, x: Exact) -> Fraction:
    """A fraction of 100 digits that bounds a longer one."""
    return Fraction(way.divide(Decimal(x.numerator), Decimal(x.denominator)))


def added(x: Fraction, y: Fraction) -> Fraction:
    """A sum; from above where it has very many digits."""
    return x + y if (x + y).denominator < 10**1000 else rounded(UP, x + y)


def bound(function: str, way: Context, x: Exact) -> Fraction:
    """A rising function of Python's decimals. Their manual says that it is rounded correctly: one step bounds it."""
    if function == "exp" and x > LARGEST:
        raise Unknown(f"a loss or a distance of {shown(x)} is too large to be computed here")
    value = getattr(way, function)(way.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(way.next_minus(value) if way is DOWN else way.next_plus(value))


exp, log, root = (partial(bound, function) for function in ("exp", "ln", "sqrt"))


def power(chance: Fraction, n: int) -> Fraction:
    """The chance of n independent events together, from below."""
    half = power(chance, n // 2) if n > 1 else Fraction(1)
    return chance if n == 1 else rounded(DOWN, half * half * (chance if n % 2 else 1))


def normal_tail(way: Context, x: Fraction) -> Fraction:
    """P[N ≥ x] of a standard normal number N with the density φ.

    Near 0 it is 1/2 - φ(x)·(x + x³/3 + x⁵/(3·5) + ...). Further out it is φ(x)/t(0) with t(n) = x + (n + 1)/t(n + 1).
    Each t(n) is between x and x + (n + 1)/x: begin far down with all of that. Abramowitz, Stegun 1964, 26.2.11 and 14.
    """
    other = UP if way is DOWN else DOWN
    x = rounded(other, x)  # the tail falls
    if x < 0:
        return 1 - normal_tail(other, -x)
    at = other.divide(Decimal(x.numerator), Decimal(x.denominator))  # the same number
    side = other if x < 4 else way  # on which the density bounds the tail
    density = exp(side, -x * x / 2) / (root(DOWN, 2 * PI_DOWN) if side is UP else root(UP, 2 * PI_UP))
    if x < 4:
        total, term, odd, square = Decimal(0), at, 1, other.multiply(at, at)
        while term > Decimal("1e-99") or 2 * square > odd + 2:
            total, odd = other.add(total, term), odd + 2
            term = other.divide(other.multiply(term, square), odd)
        return Fraction(1, 2) - density * (Fraction(total) + (2 * Fraction(term) if other is UP else 0))
    depth = 15 + 3000 // int(x) ** 2
    low, high = at, UP.add(at, UP.divide(depth + 1, at))
    for n in range(depth, 0, -1):
        low, high = DOWN.add(at, DOWN.divide(n, high)), UP.add(at, UP.divide(n, low))
    return density / Fraction(high if way is DOWN else low)


# 2. Laws. Each is bounded from above. Totals are whole numbers, so to round noise is to round what is released.


@cache
def normal_delta(mu_squared: Exact, epsilon: Exact) -> Fraction:
    """δ at ε of normal noise that one unit moves by μ deviations (Balle, Wang 2018, arXiv:1805.06530, theorem 8)."""
    if mu_squared == 0:
        return Fraction(0)
    mu = root(UP, mu_squared)  # δ rises with it
    return normal_tail(UP, epsilon / mu - mu / 2) - exp(DOWN, epsilon) * normal_tail(DOWN, epsilon / mu + mu / 2)


def pure_is_gaussian(epsilon: Fraction, mu_squared: Fraction) -> bool:
    """Whether ε-privacy is Gaussian privacy with this μ² (Dong, Roth, Su 2019, arXiv:1905.02383)."""
    return epsilon == 0 <= mu_squared or normal_tail(UP, root(DOWN, mu_squared) / 2) <= 1 / (1 + exp(UP, epsilon))


def rho_to_epsilon(rho: Exact, order: Fraction, delta: Fraction) -> Fraction:
    """ε of a ρ at δ, by one order α > 1 (Canonne, Kamath, Steinke 2020, arXiv:2004.00010, proposition 12)."""
    require(order > 1 and 0 < delta < 1, "an order above 1 and a δ between 0 and 1 are needed")
    return order * rho + log(UP, 1 - 1 / order) - (log(DOWN, delta) + log(DOWN, order)) / (order - 1)


def noise_tail(law: str, scale: Fraction, least: int) -> Fraction:
    """P[noise ≥ least]. Real noise is rounded to whole numbers, so it has to reach least - 1/2."""
    if least < 1:
        return Fraction(1)
    if law == "discrete_laplace":  # a geometric series: q^least / (1 + q), where q = e^(-1/scale)
        return exp(UP, -least / scale) / (1 + exp(DOWN, -1 / scale))
    reached = (least - Fraction(1, 2)) / scale
    return normal_tail(UP, reached) if law == "gaussian" else exp(UP, -reached) / 2


# 3. Sensitivities. How far one unit moves a total: a vector of whole numbers, one for each group.


class Limits(NamedTuple):
    """Limits of one unit: at most so many groups, rows in each, rows in all. A row may weigh less than 1."""

    groups: int
    rows_per_group: int
    rows: int


class Vector(NamedTuple):
    """The part of a unit in a total: entries, sum of sizes, largest size, and distance of two units' entries."""

    groups: int
    total: Exact
    cell: Exact
    swing: Exact


class Reach(NamedTuple):
    """The distance of neighbours: entries that differ, the sum of differences, of their squares, and the largest."""

    l0: int
    l1: Exact
    l2_squared: Exact
    linf: Exact


class Total(NamedTuple):
    """A total with what was derived of it."""

    stated: Json
    unit: Limits
    vector: Vector
    reach: Reach
    replace: bool


Totals = Mapping[str, Total]
UNLIMITED = 10**100  # rows; no claim is as large
OF_UNITS = ("units", "unit_sum", "unit_products")  # which add one number of a unit in each of its groups
PLAIN = ("rows", "values", "sum", "units", "unit_sum")  # sums of numbers of rows or of units, and nothing else
NO_CELLS = ("tree", "key_weights", "blocks")  # whose number of entries is not public, or follows from nothing stated
OWN_CELLS = ("merged", "histogram", "count_of_pairs", "interaction", "blocks")  # whose entries are no groups
RANGES = {**dict.fromkeys(("rows", "distinct", "choice", "tree", "units"), (1, 1)), "values": (0, 1)}  # that are fixed
RANGES |= dict.fromkeys((*OWN_CELLS, "key_weights"), (0, 0))  # which have none
KINDS = (*RANGES, *OF_UNITS, "sum")


def least_of(*limits: int | None) -> int:
    """The smallest of limits, where None is no limit."""
    return min(UNLIMITED if limit is None else limit for limit in limits)


def unit_of(stated: Json, question: Json, *, enforced: bool) -> Limits:
    """Limits of one unit: no more groups than rows in all, and no more rows in a group than in all."""
    kind, (cells, own, leaves, before) = stated["kind"], map(stated.get, ("cells", "own_limits", "leaves", "before"))
    require(own is None or is_whole(own, 0), "its limits are at no place of its question's own limits")
    limits = question["limits"] if own is None else question["own_limits"][own]["limits"]
    known = [question["contribution"]["rows"], *(limits[name] for name in Limits._fields)]
    require(all(limit is None or is_whole(limit) for limit in known), "a limit is no whole number of at least 1")
    rows, groups, each, most = known if enforced else (known[0], None, None, None)  # by an id column, or not at all
    most = least_of(most, rows)
    groups, each = least_of(groups, most, None if leaves else question["cells"]), least_of(each, most)
    most = least_of(most, groups * each)
    if leaves is not None:  # entries are nodes; groups, in which limits are enforced, are leaves
        few_leaves = question["cells"] is None or not is_whole(leaves) or cells * leaves < question["cells"]
        require(kind in ("rows", "sum") and not few_leaves, "its nodes have too few leaves for all groups")
        each = min(each * min(groups, leaves), most)
    elif before is not None:  # products of a group with each of those before it
        fits = kind == "unit_products" and is_whole(before) and cells == before < question["cells"]
        require(fits, "it has another number of entries than there are groups before")
        groups = max(min(groups - 1, before), 1)
    else:
        same = cells is None or (kind not in NO_CELLS and (kind in OWN_CELLS or cells == question["cells"]))
        require(same, "it has another number of entries than there are groups")
    return Limits(groups, each, min(most, groups * each) if leaves else most)


def same_rows(*totals: Total) -> bool:
    """Whether totals are sums over the same rows, with the same weights, in the same groups."""
    return len({(one.unit, *map(one.stated.get, ("question", "cells", "leaves"))) for one in totals}) == 1


def reach_of(own: Vector, cells: int | None, *, replace: bool) -> Reach:
    """The distance of vectors in so many cells. The worst has full entries and one rest."""
    times, cell = (2, own.swing) if replace else (1, own.cell)
    entries = least_of(times * own.groups, cells)
    whole = min(times * own.total, entries * cell)
    full, rest = divmod(whole, cell) if whole else (0, 0)
    return Reach(entries, whole, full * cell * cell + rest * rest, cell) if whole else Reach(0, 0, 0, 0)


def total_of(stated: Json, unit: Limits, totals: Totals, *, replace: bool) -> Total:
    """A total with its reach, by its kind."""
    kind, fine, (low, high) = stated["kind"], stated["fraction"], RANGES.get(stated["kind"]) or stated["range"]
    stated = stated | {"range": (low, high), "shift": stated.get("shift") if fine else None}
    levels = stated.get("levels", [])
    wholes = [stated[name] for name in ("most", "one", "cells") if stated.get(name) is not None]
    sound = is_whole(fine, 0) and fine <= LARGEST and type(low) is type(high) is int and low <= high
    require(sound and len(levels) < 100 and all(map(is_whole, [*wholes, *levels])), "its numbers make no sense")
    own = vector_of(stated, unit, totals)
    reach = reach_of(own, stated.get("cells"), replace=replace and kind != "merged")
    if kind == "blocks":  # Σx² ≤ max|x|·Σ|x|, which grows at least as the periods do
        reach = reach._replace(l2_squared=reach.l1 * reach.linf * share_of_squares(**stated))
    elif kind == "interaction":  # two units do most in two cells that differ on the shortest axis alone
        squares = math.prod((1 - Fraction(1, n) for n in levels), start=Fraction(unit.rows * 2**fine) ** 2)
        apart = 2 * Fraction(min(levels), min(levels) - 1) if replace and levels and squares else 1
        reach = reach._replace(l2_squared=squares * apart)
    elif kind == "key_weights":  # t keys get ⌊one/√t⌋ each
        if replace:
            raise Unknown("weights of keys under replace")
        reach = reach._replace(l2_squared=stated["one"] ** 2)
    elif stated.get("one_row"):  # one row is exchanged for one row: what it adds goes at most from end to end
        apart = (high - low) * 2**fine if kind != "rows" else 0
        reach = reach_of(Vector(1, apart, apart, apart), 1, replace=False)
    return Total(stated, unit, own, reach, replace)


def share_of_squares(*, periods: int, weights: Sequence[int] = (1,), **_: Json) -> Fraction:
    """Squares of what weighted sums of consecutive periods weigh, of (the largest) times (the sum of all)."""
    sums, few = [0, *accumulate(weights)], min(periods, len(weights))
    nights = [sums[min(t, len(weights))] - sums[max(t - few, 0)] for t in range(1, len(weights) + few)]
    squares = sum(night * night for night in nights) + (periods - few) * sums[-1] ** 2
    return Fraction(squares, periods * sums[-1] * sums[few])


def vector_of(stated: Json, unit: Limits, totals: Totals) -> Vector:
    """The part of one unit in a total of this kind. A row of weight w adds w·2^fraction times a number of `range`."""
    kind, fine, most = stated["kind"], 2 ** stated["fraction"], stated.get("most")
    if kind in ("histogram", "count_of_pairs"):  # sizes of a unit's numbers add up to `most`; a count never falls by it
        return Vector(stated["cells"], most, most, 2 * most if kind == "histogram" else most)
    if kind == "interaction":  # of which squares alone are derived
        return Vector(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED)
    if kind == "key_weights":
        return Vector(most, UNLIMITED, stated["one"], stated["one"])
    if kind == "merged":  # all entries that neighbours move may be added up to one
        of, moved = totals[stated["of"]].stated["kind"], totals[stated["of"]].reach
        require(of not in NO_CELLS, f"the entries of {stated['of']} are no groups")
        return Vector(moved.l0, moved.l1, moved.l1, moved.l1)
    if kind == "blocks":  # of `size` periods; a unit is in so many `periods`, and adds in each at most what is `bought`
        night, size, periods, weights = totals[stated["of"]], stated["size"], stated["periods"], stated.get("weights")
        here = night.vector._replace(groups=least_of(night.vector.groups, night.stated["cells"]))
        entries, total, cell, swing = bought = [number(text) for text in stated["bought"]]
        kept = is_whole(size) and is_whole(periods) and all(now <= most for now, most in zip(here, bought, strict=True))
        require(kept, f"one unit adds more to {night.stated['id']} than noise was bought for")
        whole = weights is None or (len(weights) == size and all(map(is_whole, weights)))
        falls = whole and sorted(weights or (), reverse=True) == (weights or [])
        require(falls, "weights of periods are no falling whole numbers")
        sums, of, most = (1, 1, min(size, periods)) if weights is None else (size, sum(weights), sum(weights[:periods]))
        return Vector(int(periods * entries) * sums, periods * total * of, most * cell, most * swing)
    low, high = stated["range"]
    groups, each, rows = (unit.groups, 1, unit.groups) if kind in OF_UNITS else unit
    size, width = max(-low, high) * fine, (max(high, 0) - min(low, 0)) * fine
    own = Vector(groups, rows * size, each * size, each * width)
    if kind == "choice":  # rows that enter or leave a group: of two units, all rows of both
        return own._replace(swing=2 * own.cell)
    if stated["shift"]:  # a rounded sum of what is so much less, and so many times its rounded count
        off = max(abs(low - stated["shift"]), abs(high - stated["shift"])) + 1 + 2 * abs(stated["shift"])
        return Vector(groups, own.total + groups * off, own.cell + off, own.swing + 2 * off)
    if stated.get("factor"):  # products of at most `times` the other factor, which is at most x·`scale` + `off`
        other, factor = totals[stated["factor"]["of"]], stated["factor"]
        same = same_rows(other, other._replace(stated=stated, unit=unit)) and kind == "unit_products"
        sound = other.stated["kind"] in ("rows", "values", "sum") and number(factor["scale"]) >= 0
        sound = sound and is_whole(factor["times"], 0) and is_whole(factor["off"], 0)
        require(same and sound, "its other factor is not about the same rows")
        others = math.floor(other.vector.total * number(factor["scale"])) + factor["off"] * groups
        return own._replace(total=min(own.total, factor["times"] * others))
    return own


# 4. Mechanisms. What each one costs, in its own currency. Each reads the totals `of` it.

LAPLACE, CHOICES = ("laplace", "discrete_laplace"), ("permute_and_flip", "exponential")
NOISE, ROUNDS = (*LAPLACE, "gaussian"), "gaussian_rounds"  # NOISE: with a number for each group by itself
RULES = ("epsilon", "gaussian", "threshold_beside_noise", "rho", "mu_squared")
LAWS = (*NOISE, *CHOICES, ROUNDS, "truncated_geometric", "k_norm", "window", "cube", "none")
MAY_HAVE = {"rest": NOISE, "common": ("gaussian",), "finds": (*NOISE, ROUNDS, "truncated_geometric")}  # of fields
Losses = dict[str, Fraction]  # by currency: "epsilon" of a pure mechanism, "mu_squared" of any other, and "rho"


def pure(epsilon: Fraction, law: str, pieces: int = 1) -> Losses:
    """The losses of an ε-private mechanism of so many equal pieces (arXiv:1605.02065, of Laplace noise 2510.25746)."""
    each, least = epsilon / pieces, exp(DOWN, -epsilon / pieces)
    rho = each - 1 + exp(UP, -each) if law == "laplace" else each * (1 - least) / (1 + least)  # that is ε·tanh(ε/2)
    return {"epsilon": epsilon, "rho": pieces * rho, "pieces": Fraction(pieces)}


def losses_of(mechanism: Json, totals: Totals) -> Losses:
    """The losses of a mechanism, by its law."""
    law, read, scale = mechanism["law"], [totals[name] for name in mechanism["of"]], number(mechanism["scale"])
    if law not in LAWS:
        raise Unknown(f"a mechanism of law {law!r}")
    moved = read[0].reach
    fits = all((one.stated["kind"] == "choice") == (law in CHOICES) for one in read)
    require(fits and min(scale, number(mechanism.get("rest", "1/1"))) > 0, "another law fits, or a scale is 0 or less")
    require(len(read) == 1 or law in (*LAPLACE, "window", "cube"), "this law is for one total")
    require(all(law in laws for what, laws in MAY_HAVE.items() if what in mechanism), "this law has no such field")
    if law in LAPLACE:
        return pure(laplace_cost(mechanism, read), law)
    if law in ("k_norm", "window", "cube"):
        factors = mechanism.get("factors", [1])
        require(len(factors) == len(read) == len({*mechanism["of"]}), "each total of a noise needs one factor")
        return pure(joint_moves(law, [*zip(factors, read, strict=True)]) / scale, law)
    if law in CHOICES:
        return choice_cost(mechanism, moved)
    if law == "none":
        require(not moved.l1, "one unit moves a total that gets no noise")
        return pure(Fraction(0), law)
    if law == "truncated_geometric":  # each group is (1/scale, p)-private by itself, where its number moves by 1
        require("finds" in mechanism and moved.linf <= 1, "it finds keys by a number that one unit moves by 1")
        return pure(moved.l0 / scale, law, max(moved.l0, 1))
    squares = normal_cost(mechanism, read[0])
    if law == ROUNDS:
        require("finds" in mechanism and read[0].stated["kind"] == "key_weights", "rounds find keys by their weights")
        squares *= len(mechanism["thresholds"])
    return {"mu_squared": squares, "rho": squares / 2}


def laplace_cost(mechanism: Json, read: Sequence[Total]) -> Fraction:
    """ε of independent Laplace noises: the sum of |move|/scale."""
    (total, *beside), scale, moves = read, number(mechanism["scale"]), Fraction(read[0].reach.l1)
    rest = number(mechanism.get("rest", mechanism["scale"]))
    if beside:
        kinds, weight = [one.stated["kind"] for one in read], mechanism["weight"]
        present, fine = [{*one.stated.get("present", ())} for one in read], total.stated["fraction"]
        largest = Fraction(2) ** (fine - beside[0].stated["fraction"]) * max(map(abs, total.stated["range"]))
        known = kinds in (["sum", "rows"], ["sum", "values"], ["sum", "values", "rows"]) and is_whole(weight)
        require(known and weight <= largest and present[1] <= present[0], "no sum and count of the same rows")
        if len(beside) > 1:
            return pair_and_missing(mechanism, largest, *read)
        # weight·V + S and weight·V - S are measured. They move by twice the larger move of weight·V and S.
        moves = 2 * joint_moves("cube", [(1, total), (weight, beside[0])])
    # A unit moves what is released or what is suppressed; or both, where the total itself decides what is released.
    return moves / scale + moves / rest if {"rest", "finds"} <= mechanism.keys() else moves / min(scale, rest)


def pair_and_missing(mechanism: Json, largest: Fraction, total: Total, count: Total, every: Total) -> Fraction:
    """ε of a pair beside N - V, the rows without a value. A row has a value or none, so the dearer of both counts."""
    missing, fine, (groups, each, rows) = number(mechanism["missing"]), count.stated["fraction"], total.unit
    alike = every.stated["fraction"] == fine or (rows >= groups * each and every.stated["fraction"] == 0)
    fits = same_rows(total, count, every) and alike and "rest" not in mechanism and missing > 0
    require(fits and not total.stated["shift"], "no count of all rows beside that of the values")
    rate = max(1 / missing, 2 * largest / number(mechanism["scale"]))  # of S, of which V's weight is no more
    return Fraction(rate * (rows * 2**fine + (fine > 0) * 2 * groups) * (2 if total.replace else 1))  # 2 for rounding


def joint_moves(law: str, parts: Sequence[tuple[int, Total]]) -> Fraction:
    """Move of totals with one noise by one unit, in its norm: max |z|, or max(0, max z) + max(0, max -z)."""
    totals, windows = [total for _, total in parts], law != "cube"
    kinds, twice = {total.stated["kind"] for total in totals}, 2 if totals[0].replace else 1
    whole = all(type(factor) is int and factor for factor, _ in parts)
    require(whole and kinds <= {*PLAIN}, "a noise is on totals of another kind, or a factor is no whole number, or 0")
    ends = [factor * end for factor, total in parts for end in total.stated["range"]]
    shifted = any(total.stated["shift"] for total in totals)  # which is rounded up and down
    require(not windows or not (shifted or min(ends) < 0 < max(ends)), "a window is on totals of both signs")
    require(law != "k_norm" or totals[0].stated["cells"] is not None, "one noise for groups in any number")
    if law == "k_norm" or {total.stated["cells"] for total in totals} == {1}:
        return max(abs(factor) * Fraction(total.reach.linf) for factor, total in parts) * (twice if windows else 1)
    alike = same_rows(*totals) and (kinds.isdisjoint(OF_UNITS) or kinds <= {*OF_UNITS})
    require(alike and not shifted, "totals of one noise are not about the same rows")
    sizes = [[abs(factor) * size for size in total.vector[1:]] for factor, total in parts]
    worst = Vector(totals[0].vector.groups, *map(max, zip(*sizes, strict=True)))
    moves = reach_of(worst, totals[0].stated["cells"], replace=totals[0].replace and not windows).l1
    return Fraction(moves * (twice if windows else 1))


def normal_cost(mechanism: Json, total: Total, groups: int | None = None) -> Fraction:
    """μ² of normal noise: the largest sum of (move/scale)², in so many groups if limits allow more."""
    variance, (_, l1, squares, linf) = number(mechanism["scale"]) ** 2, total.reach
    if "common" not in mechanism and "rest" not in mechanism:
        is_grouped = total.stated["kind"] not in OWN_CELLS and total.stated.get("before") is None
        if groups is not None and is_grouped:  # blocks of a tree may be those of two units
            squares = min(squares, groups * linf**2 * (2 if total.stated["kind"] == "tree" else 1))
        return squares / variance
    full = int(l1 // linf) if l1 else 0
    if "rest" in mechanism:  # the cost is convex in what is released, so either all, all full entries or none is worst
        rest = number(mechanism["rest"])
        again = l1 if "finds" in mechanism else 0  # not to be released is an answer too
        require("common" not in mechanism, "noise that groups share has no rest")
        parts = [(squares, l1), (full * linf**2, full * linf), (0, 0)]
        return max(square / variance + max(l1 - moved, again) ** 2 / rest**2 for square, moved in parts)
    v, d = number(mechanism["common"]) ** 2 / variance, total.stated["cells"]
    (low, high), shifted = total.stated["range"], total.stated["kind"] not in PLAIN or total.stated["shift"]
    require(not (shifted or low < 0 < high), "noise that groups share, on a total that one unit moves up and down")
    if total.replace or d is None or v == 0:
        raise Unknown("shared noise under replace, or on groups that are not listed")
    c = v / (1 + d * v)  # in the inverse of the covariance scale²·(I + v·J), J all ones; last, two roundings to 1/65536
    few = int(1 / (2 * c))  # with j full entries it is linf²·(j - c·j²), which is largest at j = 1/(2·c)
    parts = [(squares, l1), *((j * linf**2, j * linf) for j in (0, min(few, full), min(few + 1, full)))]
    return Fraction(max(square - c * moved**2 for square, moved in parts) + (d + 1 / v) / (2 * 65536) ** 2) / variance


def choice_cost(mechanism: Json, moved: Reach) -> Losses:
    """The cost of choosing candidates by scores, in every group; groups add up, to l1 and to l2².

    If a row moves scores within η·scale, permute-and-flip has ε = η (McKenna, Sheldon 2020, arXiv:2010.12603), the
    exponential mechanism ρ = η²/8 (Cesar, Rogers 2021, arXiv:2004.07223) and μ² ≤ π·η²/8.
    """
    scale, many, width, fade = number(mechanism["scale"]), mechanism["number"], Fraction(1), mechanism.get("fade")
    require(is_whole(many) and (fade is None or is_whole(fade)), "a number of choices or of rows makes no sense")
    if mechanism.get("rank") is not None:
        rank = number(mechanism["rank"])
        require(0 <= rank <= 1, "a rank is not between 0 and 1")
        width = 2 * (max(rank, 1 - rank) + min(rank, 1 - rank) / (fade or 1))
    if mechanism["law"] == "permute_and_flip":
        return pure(many * moved.l1 * width / scale, mechanism["law"], many)
    rho = many * moved.l2_squared * (width / scale) ** 2 / 8
    return {"rho": rho, "mu_squared": PI_UP * rho}


# 5. Composition. Keys that are found in the data, and noise that decides about them.


def hidden_alone(mechanism: Json, total: Total, groups: int, beside: int = 1) -> list[Fraction]:
    """For t = 0, 1, ... groups that a unit is alone in: the least chance that none is released, noisy ≥ threshold."""
    law, rule, scale = mechanism["law"], mechanism["finds"], number(mechanism["scale"])
    own = law in NOISE and "common" not in mechanism and len(mechanism["of"]) == 1
    require(is_whole(rule["threshold"]), "a threshold is no whole number of at least 1")
    hides = cache(lambda c: rounded(DOWN, 1 - noise_tail(law, scale, rule["threshold"] - rule["least"] - c)))
    most, whole = int(total.reach.linf), int(total.reach.l1)
    groups = min(groups, whole)
    if not own or (99 + beside) * groups > MANY:  # each takes as long as a hundred simple cases
        raise Unknown("keys by a number whose noise is not its own, or that one unit moves in too many groups")
    chances = [Fraction(1)]
    for t in range(1, groups + 1):  # the noise is log-concave: at the worst, all numbers but one are `most` or 1
        full, rest = divmod(whole - t, most - 1) if most > 1 else (t, 0)
        hidden = power(hides(most), min(full, t)) * power(hides(1), max(t - full - 1, 0))
        chances.append(hidden * hides(1 + rest) if full < t else hidden)
    return chances


def keys_delta(mechanism: Json, total: Total) -> Fraction:
    """The chance that a group is released which only one of two neighbouring tables has."""
    rule, scale = mechanism["finds"], number(mechanism["scale"])
    if mechanism["law"] == "truncated_geometric":  # a group of one unit is released with the chance `start`, by itself
        start = number(rule["start"])
        require(0 <= start <= 1, "a chance is not between 0 and 1")
        return 1 - power(1 - start, total.reach.l0)
    if mechanism["law"] == ROUNDS:
        # After j rounds a key of one unit has at most j·one, and noise that is normal but for j roundings by 1/2.
        one, delta = total.stated["one"] + rule["least"], Fraction(0)
        for j, threshold in enumerate(mechanism["thresholds"], 1):
            over = threshold - j * one - Fraction(j, 2)
            size = scale * root(UP if over > 0 else DOWN, j)
            delta += 1 - power(1 - normal_tail(UP, over / size), total.stated["most"])
        return delta
    return 1 - min(hidden_alone(mechanism, total, total.reach.l0))


def threshold_beside_noise(noises: Json, finding: Json, totals: Totals, epsilon: Fraction) -> Fraction:
    """δ at ε of normal noises on totals of one question, of which one decides by a threshold what is released."""
    pairs, worst = [(mechanism, totals[mechanism["of"][0]]) for mechanism in noises], Fraction(0)
    fits = all(one["law"] == "gaussian" for one in noises) and [one for one in noises if "finds" in one] == finding
    fits = fits and len({total.stated["question"] for _, total in pairs}) == len(finding) == 1
    require(fits, "this composition is for one threshold on normal noise, all of which is about one question")
    most = max(total.reach.l0 for _, total in pairs)
    # If groups where a unit is alone stay hidden with the chance h, it is (1 - h) + D(ε + ln h, μ), μ of all others.
    for t, hidden in enumerate(hidden_alone(finding[0], totals[finding[0]["of"][0]], most, len(pairs))):
        squares = reduce(added, (normal_cost(*pair, most - t) for pair in pairs), Fraction(0))
        left = epsilon + log(DOWN, hidden)
        worst = max(worst, 1 - hidden + (normal_delta(squares, left) if left > 0 else 1))
    return worst


# 6. Documents. The certificate is read from top to bottom; each claim is held against what was derived.


def rows_after(unit: Json, steps: Sequence[Json]) -> tuple[int | None, bool]:
    """The most rows of one unit after some steps (None: any number), and whether a unit surely has one."""
    most, always = unit.get("rows"), True
    require(bool(unit.get("columns")) != is_whole(most), "a unit has either columns that identify it, or so many rows")
    for i, step in enumerate(steps):
        kind, after = step["step"], [rows_after(unit, other) for other in step.get("others", ())]
        known = "rows" not in unit or kind not in ("per_unit", "join_units", "concat")
        require(known, f"{kind}: without an id column nobody knows which rows are of one unit")
        other = is_whole(step["most"]) if kind == "join_public" else bool(after) or kind not in ("join_units", "concat")
        require(other and (kind == "source") == (i == 0), f"{kind}: not all is said of the tables that are read")
        most, always = 1 if kind == "per_unit" else most, always and kind != "filter"
        if kind == "join_public":
            most, always = most and least_of(most * step["most"]), always and step["how"] == "left"
        elif kind == "join_units":
            both = step["keeps_units"] is True and (step["how"] == "left" or all(stays for _, stays in after))
            most, always = 1 if {most, *(rows for rows, _ in after)} == {1} else None, always and both
        elif kind == "concat":
            most, always = None, always and all(stays for _, stays in after)
        elif kind not in ("source", "rewrite", "filter", "per_unit"):
            raise Unknown(f"the step {kind!r}")
    return most, always


class Check:
    """The check of one certificate: what was derived, line by line, what does not follow, and what is not known."""

    def __init__(self, certificate: Json, ledger: Json = None, table: bytes | None = None) -> None:
        self.certificate, self.replace = certificate, certificate["relation"] == "replace"
        self.derived, self.refused, self.unknown = list[str](), list[str](), list[str]()
        self.totals: dict[str, Total] = {}
        self.losses: dict[str, Losses] = {}  # of mechanisms
        self.finding = [one for one in certificate["mechanisms"] if "finds" in one]
        if certificate["certificate"] != 3 or certificate["relation"] not in ("add-remove", "replace"):
            self.unknown.append("the version of the certificate, or its relation of neighbours")
            return
        if "test" in certificate:
            self.refused.append("it was made in a test, and its noise is not random")
        for name, part in (("questions", self.question), ("totals", self.total), ("mechanisms", self.mechanism)):
            for i, stated in enumerate(certificate[name]):
                self.tried(stated.get("id", f"{name}[{i}]"), part, stated)
        self.tried("totals", self.all_are_hidden, certificate["mechanisms"])
        self.tried("composition", self.composition, certificate["composition"])
        for name, held, file in (("ledger", self.ledger, ledger), ("table", self.table, table)):
            if file is not None:
                self.tried(name, held, file)

    @property
    def verdict(self) -> str:
        """PROVED, REFUSED or UNKNOWN."""
        return "REFUSED" if self.refused else "UNKNOWN" if self.unknown else "PROVED"

    @property
    def text(self) -> str:
        """All of it, for people."""
        lines = [f"  {line}" for line in self.derived] + [f"does not follow: {line}" for line in self.refused]
        lines += [f"not known: {line}" for line in self.unknown]
        lines = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]  # ids may be any texts
        return "\n".join([*lines, self.verdict, *([ASSUMED] if self.verdict == "PROVED" else [])])

    def tried(self, where: str, part: Callable[[Json], None], stated: Json) -> None:
        """Check a part; what it refuses or does not know is a line."""
        self.place = where  # of what is checked
        try:
            part(stated)
        except Refused as error:
            self.refused.append(f"{where}: {error}")
        except Unknown as error:
            self.unknown.append(f"{where}: {error}")
        except (*UNREADABLE, ArithmeticError, zlib.error) as error:
            self.refused.append(f"{where}: cannot be read: {type(error).__name__} {error}")

    def follows(self, what: str, derived: Exact, claimed: Json) -> None:
        """Write down a line. It does not hold if less is claimed than what was derived."""
        claim = number(claimed) if isinstance(claimed, str) else claimed
        require(derived <= claim, f"{what} = {shown(claim)} is claimed, but {shown(derived)} follows")
        self.derived.append(f"{self.place}: {what} = {shown(claim)} is claimed, and {shown(derived)} follows")

    def question(self, question: Json) -> None:
        """The rows that reach a question, and its groups."""
        (most, always), claimed = rows_after(self.certificate["unit"], question["steps"]), question["contribution"]
        if claimed["rows"] is not None:
            self.follows("rows of one unit", UNLIMITED if most is None else most, claimed["rows"])
        require((always and most == 1 and self.replace) or not claimed["exactly_one"], "exactly one row is not shown")
        by, cells = question["by"], question["cells"]
        listed = (cells is None or is_whole(cells)) and (by or cells == 1)
        require(listed, "its number of groups makes no sense, or it has no columns that make groups, and not one group")

    def total(self, stated: Json) -> None:
        """The sensitivity of a total, from its kind, its limits and its range."""
        fits = type(stated["id"]) is str and stated["id"] not in self.totals and is_whole(stated["question"], 0)
        require(fits, "two totals have one id, or it is of no question")
        if stated["kind"] not in KINDS or (stated["kind"] in OF_UNITS and "columns" not in self.certificate["unit"]):
            raise Unknown(f"a total of kind {stated['kind']!r}")
        require(stated["kind"] != "tree" or "l0" not in stated["sensitivity"], "nothing is derived of blocks in a tree")
        question = self.certificate["questions"][stated["question"]]
        unit = unit_of(stated, question, enforced="rows" not in self.certificate["unit"])
        tight = all(claim == getattr(unit, limit) for limit, claim in stated.get("limits", {}).items())
        parts = {"sum": True, "values": True, "rows": math.prod(unit[:2]) > unit.rows}.get(stated["kind"], False)
        fine = stated["fraction"] or not parts or "columns" not in self.certificate["unit"]
        require(tight and fine, f"its limits are not the tightest, {unit}; or parts of rows need a fraction")
        if "grid" in stated or "bounds" in stated:
            centre, step = number(stated["grid"]["centre"]), number(stated["grid"]["step"])
            fits = [centre + step * end for end in stated["range"]] == [number(end) for end in stated["bounds"]]
            require(fits, "its range is not that of its bounds on its grid")
        present = stated["kind"] in ("sum", "unit_products") and stated.get("nullable") is False
        exact = question["contribution"]["exactly_one"] and not question["by"] and (present or stated["kind"] == "rows")
        require(exact or not stated.get("one_row"), "the rule for exactly one row needs one row that is never missing")
        found = self.totals[stated["id"]] = total_of(stated, unit, self.totals, replace=self.replace)
        for what, claim in stated["sensitivity"].items():
            self.follows(f"{stated['kind']}, {what}", getattr(found.reach, what), claim)

    def mechanism(self, stated: Json) -> None:
        """The losses of a mechanism, from its law, its scale and the derived sensitivities."""
        law, loss = stated["law"], stated["loss"]
        require(type(stated["id"]) is str and stated["id"] not in self.losses, "two mechanisms have one id")
        if not self.totals.keys() >= {*stated["of"]}:
            raise Unknown("it reads a total of which nothing is known")
        found = self.losses[stated["id"]] = losses_of(stated, self.totals)
        if "pieces" in found and "mu_squared" in loss:
            pieces, found["mu_squared"] = found["pieces"], number(loss["mu_squared"])
            enough = pure_is_gaussian(found["epsilon"] / pieces, found["mu_squared"] / pieces)
            require(enough, f"{law}, mu_squared = {loss['mu_squared']} is claimed, which is too small for its ε")
        for currency, claim in loss.items():
            self.follows(f"{law}, {currency}", found[currency], claim)

    def all_are_hidden(self, mechanisms: Json) -> None:
        """Each total that a unit can move is measured, chosen from, or added up to blocks that are measured."""
        hidden = {name for mechanism in mechanisms for name in mechanism["of"]}
        stated = {name: total.stated for name, total in self.totals.items()}
        hidden |= {one["of"] for name, one in stated.items() if name in hidden and one["kind"] == "blocks"}
        seen = [name for name, total in self.totals.items() if total.reach.l2_squared and name not in hidden]
        require(not seen, f"no mechanism hides {', '.join(seen)}")
        periods = {one["periods"] for one in stated.values() if one["kind"] == "blocks"}
        require(len(periods) <= 1, "parts of one series count a unit in different numbers of periods")

    def keys(self) -> Fraction:
        """The sum of what rules for keys claim of δ, each of which follows. Some have a part of the noise's instead."""
        about = sorted(self.totals[one["of"][0]].stated["question"] for one in self.finding)
        found = [i for i, question in enumerate(self.certificate["questions"]) if question["cells"] is None]
        require(about == found, "groups have to be listed, or found by one rule")
        if len(found) > 100 or any(len(one.get("thresholds", ())) > 100 for one in self.finding):
            raise Unknown("keys of too many questions, or in too many rounds")
        whole = Fraction(0)
        for one in self.finding:
            total, rule, of = self.totals[one["of"][0]], one["finds"], self.totals[one["of"][0]].stated
            fully = "rows" in self.certificate["unit"] or math.prod(total.unit[:2]) == total.unit.rows  # no weight < 1
            counts = of["kind"] == "units" or (of["kind"] == "rows" and fully)
            if one["law"] != ROUNDS and not (counts and of["fraction"] == 0 and of.get("own_limits") is None):
                raise Unknown("keys that are found by another number than that of the units in a group")
            require(is_whole(rule["least"], 0), "the number that no group is released with is below 0")
            if rule["delta"] is not None:
                self.follows(f"δ of the keys that {one['id']} finds", keys_delta(one, total), rule["delta"])
                whole = added(whole, number(rule["delta"]))
        return whole

    def summed(self, currency: str, mechanisms: Json) -> Fraction:
        """The sum of the losses of mechanisms. Of blocks of a series, the dearest part of its time counts."""
        parts: dict[tuple[int, ...], Fraction] = {(): Fraction(0)}  # by the time that they are of; () is always
        for mechanism in mechanisms:
            losses, stated = self.losses[mechanism["id"]], self.totals[mechanism["of"][0]].stated
            require(currency in losses, f"a mechanism has no {currency}, in which the composition counts")
            span = tuple(stated["span"]) if stated["kind"] == "blocks" else ()
            parts[span] = added(parts.get(span, Fraction(0)), losses[currency])
        always, spans = parts.pop(()), sorted(filter(None, parts))
        apart = all(is_whole(b, a + 1) for a, b in spans) and all(a[1] <= b[0] for a, b in pairwise(spans))
        require(apart, "parts of the series overlap")
        return added(always, max(parts.values(), default=Fraction(0)))

    def composition(self, stated: Json) -> None:
        """The charge. Losses add up in ρ; or pure ones in ε, and all others by squares, to δ at their part of ε."""
        charge, rule, mechanisms = self.certificate["charge"], stated["rule"], self.certificate["mechanisms"]
        if rule not in RULES or len(self.losses) < len(mechanisms):
            raise Unknown(f"the composition {rule!r} of these mechanisms")
        require(("epsilon" in charge) != ("rho" in charge), "the charge is in ε or in ρ, and in one of them alone")
        if "gaussian" in charge:
            self.follows("charge μ²", self.summed("mu_squared", mechanisms), charge["gaussian"]["mu_squared"])
            require(charge["gaussian"]["keys"] or not self.finding, "the charge counts no keys, but some are found")
        own = stated if rule in ("gaussian", "threshold_beside_noise") else {"epsilon": "0/1", "delta": "0/1"}
        part, slack = number(own["epsilon"]), number(own["delta"])
        shared = [one for one in self.finding if one["finds"]["delta"] is None]
        require(part >= 0 and bool(shared) == (rule == "threshold_beside_noise"), "δ of keys is not counted, or ε < 0")
        spent = {"delta": self.keys() + slack}
        if rule in ("rho", "mu_squared"):
            spent["rho"] = self.summed("rho", mechanisms)
            if "epsilon" in charge:
                spent["epsilon"] = rho_to_epsilon(spent["rho"], number(stated["order"]), number(stated["delta"]))
                spent["delta"] += number(stated["delta"])
        else:
            pure = [one for one in mechanisms if "epsilon" in self.losses[one["id"]]]
            others = [one for one in mechanisms if "epsilon" not in self.losses[one["id"]]]
            spent["epsilon"] = part + self.summed("epsilon", pure)
            delta = normal_delta(self.summed("mu_squared", others), part)
            if shared:
                delta = threshold_beside_noise(others, shared, self.totals, part)
            self.follows("δ of the normal noise", delta, slack)
        for term in ("epsilon" if "epsilon" in charge else "rho", "delta"):
            self.follows(f"charge {term}", spent[term], charge[term])

    def ledger(self, ledger: Json) -> None:
        """The chain of hashes of an exported ledger, and the entry that the certificate names."""
        named, charge, own, entries = self.certificate["ledger"], self.certificate["charge"], {}, []
        for name, budget in ledger.items():
            before = "0" * 64
            for place, entry in enumerate(budget["entries"], 1):
                head = [before, entry["number"], entry["kind"], entry["at"]]
                text = f"{json.dumps(head, separators=(',', ':'), ensure_ascii=False)[:-1]},{entry['sealed']}]"
                sealed = (place, hashlib.sha256(text.encode()).hexdigest()) == (entry["number"], entry["hash"])
                require(sealed, f"{name!r}, entry {place}: its hash is not that of what it says")
                if (entry["hash"], before, place) == (named["hash"], named["previous"], named["number"]):
                    own, entries = json.loads(entry["sealed"]), budget["entries"]
                before = entry["hash"]
        require(bool(own), "no entry has this number, this hash and this hash before it")
        paid = own.get("within", {}).get("loss") or own.get("price") or own.get("part", {}).get("loss") or own["loss"]
        for term in ("epsilon" if "epsilon" in charge else "rho", "delta"):
            require(number(charge[term]) == number(paid[term]), f"{term} is another one than the entry is charged with")
        results = [json.loads(entry["sealed"]) for entry in entries if entry["kind"] == "result"]
        results = [result for result in results if result["about"] == named.get("line", named["number"])]
        same = any(result["digest"] == self.certificate["answer"] for result in results)
        require(same, "the result of this charge is another answer")
        for result in results:
            packed = zlib.decompressobj().decompress(base64.b64decode(result.get("statement", "")), 10**8)
            kept = json.loads(packed or "{}", parse_float=str).get("certificate") or {}
            other = [name for name in kept if kept[name] != self.certificate.get(name)]
            require(not other, f"the result keeps a certificate of its own, which has another {', '.join(other)}")
        self.derived.append(f"ledger: entry {named['number']} of an unbroken chain has this charge")

    def table(self, table: bytes) -> None:
        """The hash of the released table."""
        require(hashlib.sha256(table).hexdigest() == self.certificate["table"]["sha256"], "it has another hash")
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

    def once(pairs: Sequence[tuple[str, Json]]) -> Json:
        if len(pairs) > len(dict(pairs)):
            raise ValueError("an object has a name twice, and readers differ in which they take")
        return dict(pairs)

    texts = [Path(path).read_text("utf-8") if path is not None else "null" for path in (certificate, ledger)]
    documents = [json.loads(text, parse_float=str, parse_constant=str, object_pairs_hook=once) for text in texts]
    if ledger is not None and documents[1] is None:
        raise ValueError("the ledger is empty")
    return Check(documents[0], documents[1], Path(table).read_bytes() if table is not None else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files of a command line. Output: the exit code."""
    parser = ArgumentParser(prog="dpframe_check", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("certificate", help="what release.certificate() gives, as a JSON file")
    parser.add_argument("--ledger", help="what ledger.export('json') gives, as a file")
    parser.add_argument("--table", help="the released table as a CSV file")
    try:
        check = read(**vars(parser.parse_args(arguments)))
    except UNREADABLE as error:
        print(f"cannot be read: {error}", file=sys.stderr)
        return 2
    print(check.text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))
    return CODES[check.verdict]


if __name__ == "__main__":
    sys.exit(main())
