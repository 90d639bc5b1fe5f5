"""Narrower bounds for moments of columns: where the values are, from noisy means and mean distances.

Noise of a covariance, correlation or coefficient grows with the product of the widths of the bounds. Typed bounds hold
every value that there could be, so they are often several times wider than the values are. Two noisy answers say where
most values are:

1. the mean of each column, inside the typed bounds
2. the mean distance from that mean, on the side where the typed bounds are nearer. Values below a mean are as far from
   it, in sum, as values above it, so twice this is the mean distance on both sides

The narrower bounds are some mean distances on either side of the mean, and inside the typed bounds. Values beyond them
are clipped. So the answer is that of clipped values: the bias that clipping brings is not in its intervals.

Both answers are sums under bounds that are public when they are computed: the typed ones, then those that follow from
the first answer. Together they cost the share `NARROWING` of the price; the moments inside the narrower bounds have
the rest. These are adaptively chosen parts of one release, so their ε (or ρ) add up.

A design with a histogram of each column in place of step 2 had larger errors with 600 people at ε = 1: a quantile of a
histogram has the noise of many bins, and a mean distance that of one sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.arrays import Floats
from dpframe.noise import bits
from dpframe.plan import Bounds, Column, Kind, Question, is_whole, number
from dpframe.plan.statistics.two_columns import NARROWING, Moment
from dpframe.release.answer import Moments, drawn_table
from dpframe.release.pricing import NoiseKind, NoisePlan, Price

PricedQuestion = tuple[Question, NoisePlan]
_MEANS = Fraction(13, 20)  # of the share, for the means; the rest is for mean distances. A distance needs its mean too
_DEVIATIONS = 3.2  # fewest standard deviations on either side: a normal value is beyond in one of 700 cases
_PER_DISTANCE = 1.25  # standard deviation over mean distance of a normal law: √(π/2)
_OF_SAMPLING = 0.5  # noise of a coefficient over its sampling error, below which bounds need not be narrower
_FURTHER = 1.1  # inputs are clipped further out than the outcome: a clipped input bends the line; so are pairs alike
_DOUBT = 0.5  # standard deviations of the noise that are added to a mean distance
_INSIDE = 50  # a mean is at least this part of the width from either end
_CLOSE = 1e-9  # width over size of bounds, below which floats hardly tell numbers between them apart
_NARROWEST = 100  # narrower bounds have at least this part of the width on either side of the mean


@dataclass(frozen=True)
class _OfMoments:
    """The question of moments, with its typed bounds, the columns whose bounds can be narrower, and the outcome."""

    question: Question
    among: dict[str, Bounds]
    narrow: tuple[str, ...]
    outcome: str | None  # of a regression

    @classmethod
    def of(cls, question: Question) -> _OfMoments:
        (rows,) = (a for _, a in question.aggregates if isinstance(a, Moment) and a.narrow)
        among = dict(rows.among)
        columns = question.table.columns
        narrow = tuple(name for name, ends in among.items() if has_room(columns[name], ends))
        return cls(question, among, narrow, list(among)[-1] if rows.terms else None)

    def sums(self, among: Mapping[str, Bounds], *, count: bool) -> Question:
        """The question for the sums of all columns inside some bounds, over the rows of the moments."""
        pairs = tuple(among.items())
        rows = (("rows", Moment(Fraction(1, 2), (), pairs)),) if count else ()
        sums = tuple((name, Moment(Fraction(1), (name,), pairs)) for name in self.narrow)
        return replace(self.question, aggregates=(*rows, *sums))

    def sides(self, means: Mapping[str, float]) -> dict[str, Bounds]:
        """Bounds from each mean to the nearer of its typed bounds."""
        sides = {}
        for name in self.narrow:
            (low, high), mean = self.among[name], means[name]
            sides[name] = Bounds(low, mean) if mean - low <= high - mean else Bounds(mean, high)
        return self.among | sides

    def within(self, name: str, value: float, part: int) -> float:
        """A value that is at least a part of the width inside the typed bounds; a whole number for whole columns."""
        low, high = self.among[name]
        edge = (high - low) / part
        if is_whole(self.question.table.columns[name]):
            return int(min(max(round(value), low + 1), high - 1))
        return float(min(max(value, low + edge), high - edge))


def has_room(column: Column, ends: Bounds) -> bool:
    """Whether bounds can be narrower: not those of true and false, of few whole numbers, or close beside their size."""
    if column.kind == Kind.BOOLEAN or ends.upper - ends.lower <= _CLOSE * ends.magnitude:
        return False
    return not is_whole(column) or (ends.upper - ends.lower >= 4 and all(float(end).is_integer() for end in ends))


def check_narrowing(question: Question, price: Price) -> None:
    """Price and compile all that a narrowing release may ask, on no rows, so that nothing fails after it is paid.

    Errors: those of a release; DeltaRequired and InvalidPrice, if the noise cannot be bought
    """
    moments = _OfMoments.of(question)
    middles = {name: (ends.lower + ends.upper) / 2 for name, ends in moments.among.items()}
    means = {name: moments.within(name, middle, _INSIDE) for name, middle in middles.items()}
    narrowest = {
        name: _around(moments, name, means[name], (ends.upper - ends.lower) / _NARROWEST)
        for name, ends in moments.among.items()
        if name in moments.narrow
    }
    rest = price.part(1 - question.chosen_share)
    for answer in (question, question.with_bounds(narrowest)):
        rest.plan(answer)
        engine.validate(answer)
    first, second = (
        moments.sums(moments.among, count=True),
        moments.sums(moments.sides(means), count=False),
    )
    for sums, part in ((first, _MEANS), (second, 1 - _MEANS)):
        _bought(price, part).plan(sums)
        engine.validate(sums)


def narrowed(question: Question, price: Price, rest: Price, asked: list[PricedQuestion]) -> dict[str, Bounds]:
    """Narrower bounds of each column that has room; booleans keep theirs.

    Input:  a question of moments with narrow=True; the whole price; that of the answer; asked: takes the two
            questions with their noise
    Output: bounds inside the typed ones, column unit. It never fails on data: a mean is kept inside the typed bounds,
            and a distance is at least a hundredth of their width
    Bound:  two questions with plans of their own, for 65% and 35% of the share `NARROWING`. Their totals and
            sensitivities are those of sums of a release (`dpframe.plan.totals.sum_total`), under the same limits. The
            bounds of the second follow from the first noisy answer alone. Noise is Laplace noise, so δ is not used here
    Source: Dwork, Rothblum, Vadhan 2010, and Bun, Steinke 2016, arXiv:1605.02065, for adaptive composition
    """
    moments = _OfMoments.of(question)
    first = moments.sums(moments.among, count=True)
    read, table = _read(first, _bought(price, _MEANS), moments.among, None, asked)
    rows = read.rows
    means, doubts = _means(read, rows, moments.narrow)
    means = {name: moments.within(name, mean, _INSIDE) for name, mean in means.items()}
    sides = moments.sides(means)
    second = moments.sums(sides, count=False)
    read, _ = _read(second, _bought(price, 1 - _MEANS), sides, table, asked)
    ends, more_doubts = _means(read, rows, moments.narrow)
    deviations = _deviations(moments, rest.plan(question), rows)
    result = {}
    for name in moments.narrow:
        distance = 2 * max((ends[name] - means[name]) * (1 if sides[name].lower == means[name] else -1), 0.0)
        doubt = 2 * more_doubts[name] + doubts[name]
        times = deviations * _PER_DISTANCE * (1.0 if name == moments.outcome else _FURTHER)
        result[name] = _around(moments, name, means[name], times * (distance + _DOUBT * doubt))
    return result


def narrowing_words(bounds: Mapping[str, Bounds], question: Question, cost: str) -> str:
    """The narrower bounds in words."""
    columns = [f"{name} from {number(ends.lower)} to {number(ends.upper)}" for name, ends in bounds.items()]
    return (
        f"Narrower bounds, for {cost}: {'; '.join(columns)}. They are noisy mean "
        "distances on either side of noisy means, inside the typed bounds. Values beyond them are clipped, and all "
        "numbers and intervals are those of clipped values."
    )


def _bought(price: Price, part: Fraction) -> Price:
    """A part of the price of narrowing, for Laplace noise: it needs no δ, which the answer may use."""
    return replace(price.part(NARROWING * part), noise=NoiseKind.LAPLACE)


def _read(
    question: Question,
    price: Price,
    bounds: Mapping[str, Bounds],
    first: pl.DataFrame | None,
    asked: list[PricedQuestion],
) -> tuple[Moments, pl.DataFrame]:
    """Noisy sums, read as moments, and their table; first: the table that has the number of rows."""
    plan = price.plan(question)
    asked.append((question, plan))
    table, _ = drawn_table(question, plan, engine.totals(question, int(bits.random_words(1)[0])))
    if first is not None:
        table = table.with_columns(first["rows"])
    return Moments.read(table, question.outputs, plan, bounds, ()), table


def _means(moments: Moments, rows: float, names: Iterable[str]) -> tuple[dict[str, float], dict[str, float]]:
    """The mean of each column, and the standard deviation of its noise (column unit)."""
    means: Floats = moments.middles + moments.halves * moments.matrix[0, 1:] / rows
    doubts: Floats = math.sqrt(2) * moments.halves * moments.scales[0, 1:] / rows
    places = {name: moments.names.index(name) for name in names}
    return {name: float(means[i]) for name, i in places.items()}, {name: float(doubts[i]) for name, i in places.items()}


def _deviations(moments: _OfMoments, plan: NoisePlan, rows: float) -> float:
    """Number of standard deviations that bounds reach on either side, so that the noise is no longer what matters.

    With n people, and columns clipped at c deviations, a standardised coefficient has noise of about c²·λ/n, where λ is
    the noise of a product relative to the widths. Its sampling error is about 1/√n. So the noise is a part κ of the
    sampling error at c² = κ·√n/λ: many people have wide bounds, and clipping disappears as they become more.
    """
    each = moments.question.limits.max_rows or 1
    halves = [
        (noise.deviation, math.prod(float(f.bounds.upper - f.bounds.lower) / 2 for f in noise.total.factors))
        for noise in plan.noises
        if noise.total.multiplies
    ]
    noise = min((deviation / half for deviation, half in halves if half), default=0.0) / each
    wide = math.sqrt(_OF_SAMPLING * math.sqrt(max(rows / each, 1.0)) / max(noise, 1e-9))
    return max(_DEVIATIONS, wide)


def _around(moments: _OfMoments, name: str, mean: float, distance: float) -> Bounds:
    """Bounds at a distance from a mean, written with few digits, inside the typed ones (column unit)."""
    typed = moments.among[name]
    distance = max(distance, (typed.upper - typed.lower) / _NARROWEST)
    whole = is_whole(moments.question.table.columns[name])
    step = Fraction(10) ** (math.floor(math.log10(distance)) - 1)
    step = max(step, Fraction(1)) if whole else step
    ends = []
    for value, towards in ((mean - distance, math.floor), (mean + distance, math.ceil)):
        end = towards(Fraction(float(np.clip(value, typed.lower, typed.upper))) / step) * step
        ends.append(typed.clamp(int(end) if whole else float(end)))
    return Bounds(*ends)
