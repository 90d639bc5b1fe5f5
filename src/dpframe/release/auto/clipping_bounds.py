"""Private choice of clipping bounds: a narrow range clips values, a wide range needs more noise.

Two noisy histograms in which each unit counts once describe the values: see
`dpframe.release.auto.value_histograms`. The bounds are the pair of edges with the smallest expected
error of the column's statistics, from clipping and noise together. A noisy count then tells whether
most units lie between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from narwhals.dtypes import DType

from dpframe import engine
from dpframe.arrays import Floats, Integers
from dpframe.engine import ONE
from dpframe.plan import (
    FEW,
    TIMES,
    Bounds,
    Column,
    Kind,
    Question,
    integer_range,
    is_whole,
    kind,
    moment,
    ticks_of_a_day,
    zone_of,
)
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.noisy_histograms import Seen, histogram_scale, noisy_histogram
from dpframe.release.auto.value_histograms import (
    between,
    edges_around,
    in_octaves,
    most_values,
    near,
    powers_of_eight,
    powers_of_two,
    read_values,
    where_zero_is,
)
from dpframe.release.estimators import BinnedValues, estimator_of
from dpframe.release.pricing import Noise, NoisePlan, Price
from dpframe.theory.formulas.loss import BEYOND

_ZEROS = Bounds(0, 1)  # bounds if all seen values are zeros
_DEFAULT = 1_000_000  # largest absolute value, if no unit is seen
_SMALL = 2**16  # an integer type with at most this many values is its own default
_DEFAULT_DAYS = {
    "date": (-25_567, 47_482),
    "datetime": (-25_567, 47_482),
    "duration": (-36_525, 36_525),
}
_NOTHING = 1e-6  # of the width
_WHOLE = 2**62  # largest absolute value for any type, since a released number is an Int64
_CANDIDATES = 2**20  # of a quantile alone, at least: see `Candidates.between`
# added to errors, so that their ratios are finite: the largest are squares of 2^101 times noise
_NO_ERROR = 1e-200


@dataclass(frozen=True)
class Clipping:
    """Bounds, and whether most values surely lie between them.

    `values` are the values as the noisy histograms show them; None where they show zeros alone, or
    nothing. Where they show nothing, the bounds are the default of the column's type.
    """

    bounds: Bounds
    seen: bool
    values: BinnedValues | None = None

    @property
    def hidden(self) -> int:
        """Number of units that may be in one bin far away and still be taken for noise."""
        scale = 0.0 if self.values is None else self.values.scale
        return math.ceil((MODEL.clear_bin + MODEL.hidden_scales) * scale)


def choose_bounds(question: Question, name: str, price: Price, rest: Price, told: Seen) -> Clipping:
    """Bounds of a column (as the engine holds it) for its statistics in a question.

    Input:  a question with its limits; the price of the choice, and that of the answer; told: takes
            what is read
    Output: the bounds. It never fails on data: if the noisy histograms show no values, the bounds
            are `_default`, which is fixed in advance
    Bound:  the two histograms and the count cost their parts of the price, which add up; each unit
            counts once in each. Which bins the second histogram has follows from the type and the
            first. So all that is chosen is post-processing of paid answers
    """
    column, whole = question.table.columns[name], is_whole(question.table.columns[name])
    first, second, third = (
        price.part(Fraction(part, sum(MODEL.parts_of_bounds))) for part in MODEL.parts_of_bounds
    )
    magnitudes = engine.magnitude_profile(question, column)
    octaves = powers_of_two(*noisy_histogram(first, question, magnitudes, told), whole=whole)
    most = most_values(octaves, doubt=MODEL.sure_first)
    if most is None:
        edges = powers_of_eight(whole=whole)
    else:  # the second histogram has less noise
        finer = float(octaves.scales[0]) / histogram_scale(second, question.table.relation) * ONE
        edges = edges_around(*most[:2], most[2] * finer, whole=whole)
    counts = noisy_histogram(
        second, question, engine.value_profile(question, column, edges.tolist()), told
    )
    bins, values = between(edges, *counts), None
    if most is None:
        most = most_values(bins, doubt=MODEL.empty_side)
        bins = bins if most is None else in_octaves(near(bins, *most[:2]), octaves, *most[:2])
    if most is not None:
        values = read_values(octaves, bins, *most[:2], whole=whole)
    if values is None and not where_zero_is(octaves):
        return Clipping(_inside(_default(column), column), seen=False)
    bounds = _inside(_ZEROS if values is None else _best(question, column, values, rest), column)
    seen = _most_inside(question, column, third, bounds, values, told) and (
        most is None or _are_many(*most)
    )
    return Clipping(
        bounds if seen or values is not None else _inside(_default(column), column), seen, values
    )


def fewest_people(question: Question, price: Price) -> int:
    """People of whom half of the releases are sure of bounds that hold all of them; fewer have a
    guess more often. It follows from the price alone.

    Bound:  see `_most_inside`: the number inside less that outside is then at its threshold
    """
    count = Fraction(MODEL.parts_of_bounds[2], sum(MODEL.parts_of_bounds))
    scales = [
        histogram_scale(price.part(auto.share * count), question.table.relation)
        for auto in question.open_bounds.values()
    ]
    return math.ceil(-math.log(2 * MODEL.false_alarm) * max(scales) / ONE)


def _most_inside(
    question: Question,
    column: Column,
    price: Price,
    bounds: Bounds,
    values: BinnedValues | None,
    told: Seen,
) -> bool:
    """Whether a noisy count shows that most units lie between the bounds.

    Bounds of quantiles alone are narrow around these, and hold few units. The histogram says where
    the quantile is, so the count tells whether the histogram is right: its range holds all units
    but a part `MODEL.outside_central` on either side.

    Output: true with a probability of at most `MODEL.false_alarm` where at most half of the units
            are in the range
    Bound:  a unit has a weight of at most ONE in all, so when it joins, the weight inside less that
            outside moves by at most ONE; when one is exchanged, by twice that. If at most half is
            inside, the difference is at most 0, and Laplace noise of scale b exceeds b · ln(1 / 2a)
            with probability a
    """
    low, high = float(bounds.lower), float(bounds.upper)
    ranks = [o.rank for o in question.outputs if any(t.reads(column) for _, t in o.totals)]
    if values is not None and None not in ranks:
        cumulative, part = np.cumsum(values.parts.mean(axis=0)), MODEL.outside_central
        first, last = np.minimum(np.searchsorted(cumulative, [part, 1 - part]), len(cumulative) - 1)
        low, high = min(low, float(values.ends[first])), max(high, float(values.ends[last + 1]))
    edges = [low, math.nextafter(high, math.inf)]  # a bin does not contain its upper edge
    below, inside, above = engine.value_profile(question, column, edges)
    (difference,), scale = noisy_histogram(
        price, question, np.array([inside - below - above]), told
    )
    return bool(difference > -scale * math.log(2 * MODEL.false_alarm))


def _are_many(low: float, high: float, scales: float) -> bool:
    """Whether so many units, in scales of the noise, show that most values need so wide a range.

    Noise in a far bin, beside few units, widens a range by many octaves. So more units are needed
    the wider it is. Of 2,500 releases of 100 units, three had ends more than 1000 times too wide
    without a word, with 5.8 to 6.5 scales. With 300 units at ε = 0.3 there were two in one run,
    with 8 scales over 45 octaves and 16 over 27.
    """
    ends = [abs(end) for end in (low, high) if end]
    return scales > max(MODEL.clear_bin, math.log2(max(ends) / min(ends)))


def _default(column: Column) -> Bounds:
    """Bounds if no choice is possible, by the type alone.

    They are the bounds known of the column, or all values of an integer type of at most 16 bits;
    the years from 1900 to 2099; a century either way for durations; and a million either way for
    every other number.
    """
    family, own = column.kind, column.domain.bounds
    if own is not None:
        return own
    if family in TIMES:
        ticks = ticks_of_a_day(column.domain.dtype)
        first, last = _DEFAULT_DAYS[family]
        return Bounds(first * ticks, last * ticks - 1)
    if family == Kind.INTEGER:
        least, most = integer_range(column.domain.dtype)
        if most - least < _SMALL:
            return Bounds(least, most)
    return Bounds(-_DEFAULT, _DEFAULT)


# The range


def _best(question: Question, column: Column, values: BinnedValues, rest: Price) -> Bounds:
    """The pair of edges with the smallest expected error beside the best in hindsight.

    The best pair depends on the values, and the histograms leave several cases open. If the column
    has several statistics, the geometric mean of their errors decides. The median lies between the
    two, save for quantiles: the variance of equal values is 0 by bounds beside them too.
    """
    first, last = np.triu_indices(len(values.edges), 1)
    around = (first < max(values.middle, 1)) & (last >= min(values.middle, len(values.edges) - 1))
    plan = rest.plan(question)
    groups = float(question.cells) if question.cells is not None else MODEL.groups_unlisted
    noise = _relative_noise(plan, column) * groups / values.units
    total = np.zeros(len(first))
    for output in question.outputs:
        if not any(m.reads(column) for _, m in output.totals):
            continue
        rank = output.rank
        errors = estimator_of(output).clipping_error(values, first, last, noise[:, None])
        if rank is not None and question.cells == 1:
            rows = question.unit_limits.contribution.rows
            errors = _of_choice(values, (first, last), plan.of(output.total), rows)
            errors = np.hypot(_misplaced(values, first, last, float(rank)), errors)
        elif rank is not None:
            errors = _of_all(values, first, last)
        if errors is None:
            continue
        errors = (errors if rank is not None else np.where(around, errors, math.inf)) + _NO_ERROR
        total += np.log(np.mean(errors / errors.min(axis=1, keepdims=True), axis=0))
    at = int(np.argmin(total))
    return _rounded(values, first[at], last[at])


def _rounded(values: BinnedValues, low: int, high: int) -> Bounds:
    """A pair of edges as bounds, widened a little to numbers with few digits,
    as the bins at either end allow.

    An end that is tiny beside the width is set to zero.
    """
    ends, nothing = [], _NOTHING * float(values.highs[high] - values.edges[low])
    for at, value, outward in ((low, values.edges[low], -1), (high, values.highs[high], 1)):
        near = np.diff(values.edges[max(at - 1, 0) : at + 2]).min()
        step = Fraction(10) ** (math.floor(math.log10(near)) - 1)
        value = 0.0 if abs(value) < nothing else float(value)
        ends.append(
            float((math.floor if outward < 0 else math.ceil)(Fraction(value) / step) * step)
        )
    return Bounds(*ends)


def _misplaced(values: BinnedValues, low: Integers, high: Integers, rank: float) -> Floats:
    """How far a quantile may be beyond two edges.

    What noise leaves open of the quantile in the histogram is added, whatever the bounds.
    """
    bins, fewest = len(values.middles), MODEL.beyond_extreme / values.units
    at = np.clip(rank, fewest, 1 - fewest)
    near = min(int(np.searchsorted(np.cumsum(values.parts.mean(axis=0)), rank)), bins)
    noise = values.scale * math.sqrt(2 * min(near, bins - near))  # of the bins up to it
    doubt = MODEL.quantile_doubt * noise / values.units
    cumulative = np.cumsum(values.parts, axis=1)
    least, most = (
        np.minimum(
            (cumulative < np.clip(x, fewest / 2, 1 - fewest / 2)[:, None]).sum(axis=1), bins - 1
        )
        for x in (at - doubt, at + doubt)
    )
    below = np.maximum(values.edges[low] - values.ends[least][:, None], 0)
    above = np.maximum(values.ends[most + 1][:, None] - values.edges[high], 0)
    open_still = (values.ends[most + 1] - values.ends[least])[:, None] / (2 * MODEL.quantile_doubt)
    return np.asarray(np.hypot(below + above, open_still))


def _of_choice(
    values: BinnedValues, pair: tuple[Integers, Integers], choice: Noise, each: int
) -> Floats:
    """Error of a quantile between two edges, from its choice:
    wide bounds have many values that no unit has.

    Candidates are apart, and a tree of many quantiles has noise in place of a choice. Its
    candidates are farther apart. An extreme is looked for some units from the end, see
    `theory.formulas.loss.extreme_targets`.

    Input:  pair: edges, low and high; choice: its noise; each: rows of a unit, as many as limits
            allow
    """
    low, high = pair
    total, width = choice.total, values.edges[high] - values.edges[low]
    if total.is_tree or total.rank is None:
        return np.asarray(width / FEW / math.sqrt(12))
    scale, units = float(choice.scale) * float(total.unit) / each, values.units
    rows = float(total.rank) * units
    if not total.between:
        away = np.minimum(np.log1p(BEYOND * units / scale / 2) * scale, units / 2)
        rows = np.clip(rows, away, units - away)
    return np.hypot(values.chosen_away(low, high, rows, scale), width / _CANDIDATES)


def _of_all(values: BinnedValues, low: Integers, high: Integers) -> Floats:
    """Error of quantiles of many groups, for which most values matter:
    the width, with a penalty for values outside.

    A histogram of few units does not show a smaller part of them than its noise is. Such parts are
    no reason for wide bounds, which spoil other statistics of the column.
    """
    cumulative = np.cumsum(values.parts, axis=1)[:, :-1]
    noise = (values.scale / values.units)[:, None]
    tail = np.maximum(MODEL.outside_tail, MODEL.outside_scales * noise)
    cost = np.minimum(MODEL.outside_cost, 1 / noise)
    outside = (
        np.maximum(cumulative - tail, 0)[:, low] + np.maximum(1 - cumulative - tail, 0)[:, high]
    )
    return np.asarray(
        (values.edges[high] - values.edges[low]) * np.exp(cost * np.minimum(outside, 0.5))
    )


def _relative_noise(plan: NoisePlan, column: Column) -> float:
    """Standard deviation of the noise of the column's total, divided by its l1 sensitivity."""
    deviations = [
        noise.deviation / float(noise.total.sensitivity.scaled(noise.total.unit).l1)
        for noise in plan.noises
        if noise.total.reads(column) and not noise.exact
    ]
    return max(deviations, default=0.0)


# As a bound is typed


def _inside(bounds: Bounds, column: Column) -> Bounds:
    """Bounds inside the column's type and domain, with a width above 0."""
    low, high = bounds.lower, bounds.upper
    family, own = column.kind, column.domain.bounds
    if family == Kind.INTEGER or family in TIMES:
        least, most = (
            integer_range(column.domain.dtype)
            if family == Kind.INTEGER
            else _tick_range(column.domain.dtype)
        )
        least, most = max(least, -_WHOLE), min(most, _WHOLE)
        low, high = (min(max(x, least), most) for x in (math.floor(low), math.ceil(high)))
    if own is not None:
        low, high = own.clamp(low), own.clamp(high)
        if low == high:
            return own
    return (
        Bounds(low, high)
        if low < high
        else Bounds(low, low + 1 if family != Kind.FLOAT else low + max(abs(low), 1))
    )


def _tick_range(dtype: DType) -> tuple[int, int]:
    """The ticks of the times that Python can write, a few days inside;
    with a zone, those of the years 2 to 9998.
    """
    days = {
        "date": (-719_100, 2_932_800),
        "datetime": (-719_100, 2_932_800),
        "duration": (-999_999_000, 999_999_000),
    }
    low, high = days[kind(dtype)] if zone_of(dtype) is None else (-718_700, 2_932_500)
    return low * ticks_of_a_day(dtype), high * ticks_of_a_day(dtype)


def as_typed(bounds: Bounds, column: Column) -> Bounds:
    """Bounds as a user types them: times as times."""
    if column.kind not in TIMES:
        return bounds
    return Bounds(*(moment(x, column.domain.dtype) for x in bounds))  # type: ignore[arg-type]
