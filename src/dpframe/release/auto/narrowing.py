"""Narrower bounds for products of columns: where the values are, from a
noisy histogram of each column.

Noise of a covariance, correlation or coefficient grows with the product of the widths of the
bounds. Typed bounds hold every value that there could be, so they are often several times wider
than the values are. A noisy histogram of equal bins between the typed bounds, in which each unit
counts once, says where most values are: see `dpframe.release.auto.heaps`. The narrower bounds have
the smallest error from clipping and noise together.

Values beyond them are clipped. So the answer is that of clipped values: the bias that clipping
brings is not in its intervals. The histograms cost the share `NARROWING` of the price in equal
parts; the moments inside the narrower bounds have the rest. These are adaptively chosen parts of
one release, so their ε (or ρ) add up.

Noisy means and mean distances from them, in place of the histograms, have noise of the size of the
typed bounds. For 500 people in a 75th of the bounds, at ε = 1, ends were 7 to 30 deviations away
from the mean; they are 2 to 3 with histograms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from dpframe import engine
from dpframe.arrays import Floats
from dpframe.plan import Bounds, Column, Question, is_whole, number
from dpframe.plan.statistics.two_columns import NARROWING, has_room
from dpframe.release.auto.heaps import Heaps
from dpframe.release.auto.noisy_histograms import Seen, noisy_histogram
from dpframe.release.pricing import Price

_BINS = 128  # values in a 300th of the bounds are in about two of them, and those in a tenth in 40
# narrower bounds have at least this part of the width on either side of their middle
_NARROWEST = 256
# how much more clipping counts than noise in a regression: it bends the line, and no interval has
# it
_OF_SLOPES = 4.0


def check_narrowing(question: Question, price: Price) -> None:
    """Price and compile all that a narrowing release may ask, on no rows, so that
    nothing fails after it is paid.

    Errors: those of a release; DeltaRequired and InvalidPrice, if the noise cannot be bought
    """
    columns, rest, narrowest = question.table.columns, price.part(1 - question.chosen_share), {}
    for name, typed in _with_room(question).items():
        engine.value_profile(
            question, columns[name], _edges(columns[name], typed)[1:-1].tolist(), empty=True
        )
        narrowest[name] = _inside(columns[name], typed, *[(typed.lower + typed.upper) / 2] * 2)
    for answer in (question, question.with_bounds(narrowest)):
        rest.plan(answer)
        engine.validate(answer)


def narrowed(question: Question, price: Price, rest: Price, seen: Seen) -> dict[str, Bounds]:
    """Narrower bounds of each column that has room; booleans keep theirs.

    Input:  a question with narrow=True; the whole price; that of the answer; seen: takes what is
            read
    Output: bounds inside the typed ones, column unit. It never fails on data: where the histogram
            of a column shows nothing beyond its noise, the column keeps its typed bounds
    Bound:  one histogram for each of d columns, for the part 1/d of the share `NARROWING`, by
            `histogram_scale`: a unit adds at most ONE to each. Bins follow from the typed bounds
            alone, and the bounds from the noisy histograms
    Source: Dwork, Rothblum, Vadhan 2010, and Bun, Steinke 2016, arXiv:1605.02065, for adaptive
            composition
    """
    typed, noise = _with_room(question), _noise(question, rest)
    part, result = price.part(NARROWING / len(typed)), dict(typed)
    weight = _OF_SLOPES if any(output.regressors for output in question.outputs) else 1.0
    for name, ends in typed.items():
        column = question.table.columns[name]
        edges = _edges(column, ends)
        counts = engine.value_profile(question, column, edges[1:-1].tolist())
        low, width = float(ends.lower), float(ends.upper - ends.lower)
        heaps = Heaps.of((edges - low) / width, *noisy_histogram(part, question, counts, seen))
        if heaps is not None:
            result[name] = _inside(
                column, ends, *(low + width * end for end in heaps.ends(noise, weight))
            )
    return result


def narrowing_words(bounds: Mapping[str, Bounds], cost: str) -> str:
    """The narrower bounds in words."""
    columns = [
        f"{name} from {number(ends.lower)} to {number(ends.upper)}" for name, ends in bounds.items()
    ]
    return (
        f"Narrower bounds, for {cost}: {'; '.join(columns)}. By noisy histograms of values, in "
        "which each unit counts once, they have the smallest error from clipping and noise "
        "together. Values beyond them are clipped; numbers that are made of them, and their "
        "intervals, are those of clipped values."
    )


def _with_room(question: Question) -> dict[str, Bounds]:
    """The columns whose bounds can be narrower, with their typed bounds."""
    columns = question.table.columns
    return {name: ends for name, ends in question.ends.items() if has_room(columns[name], ends)}


def _edges(column: Column, ends: Bounds) -> Floats:
    """Edges of equal bins between the typed bounds; of whole numbers halfway between these."""
    low, high = float(ends.lower), float(ends.upper)
    if not is_whole(column):
        return np.linspace(low, high, _BINS + 1)
    return np.unique(np.rint(np.linspace(low, high + 1, min(_BINS, int(high - low) + 1) + 1))) - 0.5


def _noise(question: Question, rest: Price) -> float:
    """The least noise of a sum of products, for columns from -1 to 1, over what a
    person with the most rows adds.
    """
    halves = [
        (
            noise.deviation,
            math.prod(float(f.bounds.upper - f.bounds.lower) / 2 for f in noise.total.factors),
        )
        for noise in rest.plan(question).noises
        if noise.total.multiplies
    ]
    return min((deviation / half for deviation, half in halves if half), default=0.0) / (
        question.limits.max_rows or 1
    )


def _inside(column: Column, typed: Bounds, low: float, high: float) -> Bounds:
    """Bounds that hold both ends, written with few digits, inside the typed ones
    and not too narrow (column unit).
    """
    least, whole = (typed.upper - typed.lower) / _NARROWEST, is_whole(column)
    low, high = min(low, (low + high) / 2 - least), max(high, (low + high) / 2 + least)
    step = Fraction(10) ** (math.floor(math.log10((high - low) / 2)) - 1)
    step, ends = max(step, Fraction(1)) if whole else step, []
    for value, towards in ((low, math.floor), (high, math.ceil)):
        end = towards(Fraction(float(np.clip(value, typed.lower, typed.upper))) / step) * step
        ends.append(typed.clamp(int(end) if whole else float(end)))
    return Bounds(*ends)
