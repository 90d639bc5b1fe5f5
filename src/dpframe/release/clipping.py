"""Clipping bounds chosen privately: a narrow range clips values away, a wide one costs noise.

Two histograms in which each unit counts once. The first has a bin for each sign and power of two, the same for every
column, and says on what scale the values are; the second has bins over that range, narrow where there are many values.
Bounds are then the pair of its edges with the smallest expected error of what is asked of the column, clipping and
noise together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from narwhals.dtypes import DType
from numpy.typing import NDArray

from dpframe import engine
from dpframe.engine import EXPONENTS
from dpframe.plan.ask import Ask
from dpframe.plan.columns import Bounds, Column
from dpframe.plan.types import TIMES, integer_range, kind, moment
from dpframe.release.calibrate import NoisePlan
from dpframe.release.oldsizes import nats, reached, read_spread

__all__ = ["as_typed", "choose_bounds"]

Floats = NDArray[np.float64]
_FEWEST, _BINS = 4, 64  # of one power of two
_NOBODY = 5.0  # how likely it is beforehand that no value is beyond those seen, relative to some being there
_MORE = 4.0  # the same, for bins in a range that is known to have values
_EACH = 4.0  # units in a bin, beside the scale of its noise
_POWERS = [2.0**e for e in (*EXPONENTS, EXPONENTS[-1] + 1)]
_DEFAULT = Bounds(0, 1)  # where nobody is seen
_START = 10.0  # how unlikely noise must be where values are first seen, in nats
_GROUPS = 10.0  # of those that nobody listed
_WHOLE = 2**62  # in size, whatever the type: what is released is an Int64
_TAIL = 0.005  # of the units outside of the candidates of a quantile, on either side


class Offered(Protocol):
    """A price, and what it buys: see `dpframe.release.auto.Offer`."""

    def part(self, share: Fraction) -> Offered:
        """A part of it."""
        ...

    def noisy(self, ask: Ask, counts: NDArray[np.int64]) -> tuple[Floats, float]:
        """A histogram with noise, and its scale."""
        ...

    def plan(self, ask: Ask) -> NoisePlan:
        """The noise that it buys."""
        ...


def choose_bounds(ask: Ask, name: str, offer: Offered, rest: Offered) -> Bounds:
    """Bounds of a column (as the engine holds it) for what is asked of it.

    Input:  an ask with its limits; the price of the choice, and that of the answer
    Output: Bounds; it never fails on data, and is (0, 1) where no value is seen
    Bound:  each of the two histograms costs half of the price; their bins follow from the type, and from the first
    """
    column, half = ask.table.columns[name], offer.part(Fraction(1, 2))
    edges = _edges(*half.noisy(ask, engine.magnitude_profile(ask, column)))
    masses = _told(*half.noisy(ask, engine.value_profile(ask, column, edges)))
    if masses is None:
        return _inside(Bounds(edges[0], edges[-1]), column)
    low, high = _best(ask, name, np.array(edges), masses, rest)
    return _inside(_rounded(low, high, edges), column)


# The scale of values


def _edges(counts: Floats, scale: float) -> list[float]:
    """Edges of bins that hold about as many units each, over the powers of two in which values are seen."""
    wide = len(EXPONENTS)
    up, down = _ends(counts[wide + 1 :], scale), [-x for x in _ends(counts[wide - 1 :: -1], scale)[::-1]]
    if not up and not down:
        return [float(x) for x in _DEFAULT]
    zero = nats(counts[wide], 1, scale) > _START
    return [*down, *([0.0] if zero and not (up and down) else []), *up] if not (zero and up) else [*down, 0.0, *up]


def _ends(counts: Floats, scale: float) -> list[float]:
    """The same, of positive values; none where nobody is seen."""
    end = reached(counts, scale, start=_START, per_bin=0.0)
    if not end:
        return []
    first = len(counts) - reached(counts[::-1], scale, start=_START, per_bin=0.0)
    seen = range(max(min(first, end - 1) - 1, 0), min(end + 1, len(counts)))
    edges = [_POWERS[seen[0]]]
    for i in seen:
        fewest = _FEWEST if i >= seen[-1] - 1 else 1  # an end is among the largest
        parts = int(min(max(counts[i] / (_EACH * scale), fewest), _BINS))
        edges += [_POWERS[i] * (1 + j / parts) for j in range(1, parts + 1)]
    return edges


# The range


def _told(counts: Floats, scale: float) -> Floats | None:
    """Units in each bin, the first below and the last above the range: the tails as `read_spread` sees them."""
    right, left = (
        read_spread(x, scale, start=_MORE, per_bin=0.0, more=_MORE, nobody=_NOBODY) for x in (counts, counts[::-1])
    )
    if not right.seen or not left.seen:
        return None
    ahead, behind = right.odds @ right.masses, (left.odds @ left.masses)[::-1]
    middle = (right.seen + len(counts) - left.seen) // 2  # of the bins that are seen from both sides
    masses = np.concatenate([behind[:middle], ahead[middle:]])
    return masses if masses.sum() > 0 else None


def _best(ask: Ask, name: str, edges: Floats, masses: Floats, rest: Offered) -> tuple[float, float]:
    """The pair of edges with the smallest expected error; the geometric mean where several columns ask."""
    widths = np.diff(edges)
    middles = np.concatenate([[edges[0] - widths[0] / 2], (edges[1:] + edges[:-1]) / 2, [edges[-1] + widths[-1] / 2]])
    share = masses / masses.sum()
    groups = float(ask.cells) if ask.cells is not None else _GROUPS
    noise = _relative_noise(ask, name, rest) * groups / float(max(masses.sum(), 1.0))
    first, last = np.triu_indices(len(edges), 1)
    low, high = edges[first], edges[last]
    total = np.zeros(low.shape)
    for output in ask.outputs:
        if not any(m.column is not None and m.column.id == ask.table.columns[name].id for _, m in output.measures):
            continue
        made = _ERRORS.get(output.formula)
        if made is not None:
            total += np.log(made(low, high, middles, share, noise) + 1e-300)
        elif output.formula == "quantile":
            total += np.log(high - low) + 1e3 * _outside(low, high, middles, share)
    at = int(np.argmin(total))
    return float(low[at]), float(high[at])


def _clipped_away(ends: Floats, middles: Floats, share: Floats, sign: int) -> Floats:
    """How far values are beyond an end, on average."""
    flat = np.unique(ends)
    away = np.array([float(share @ np.maximum(sign * (middles - end), 0.0)) for end in flat])
    return away[np.searchsorted(flat, ends)]


def _of_mean(low: Floats, high: Floats, middles: Floats, share: Floats, noise: float) -> Floats:
    bias = _clipped_away(high, middles, share, 1) + _clipped_away(low, middles, share, -1)
    return np.hypot(bias, noise * (high - low) / 2)


def _of_sum(low: Floats, high: Floats, middles: Floats, share: Floats, noise: float) -> Floats:
    bias = _clipped_away(high, middles, share, 1) + _clipped_away(low, middles, share, -1)
    return np.hypot(bias, noise * np.maximum(np.abs(low), np.abs(high)))


def _of_variance(low: Floats, high: Floats, middles: Floats, share: Floats, noise: float) -> Floats:
    centre = float(share @ middles)

    def lost(ends: Floats, sign: int) -> Floats:  # of the second moment
        flat = np.unique(ends)
        beyond = [share * (sign * (middles - end) > 0) for end in flat]
        away = [
            float(p @ np.abs((middles - centre) ** 2 - (end - centre) ** 2))
            for p, end in zip(beyond, flat, strict=True)
        ]
        return np.asarray(away)[np.searchsorted(flat, ends)]

    return np.hypot(lost(high, 1) + lost(low, -1), noise * ((high - low) / 2) ** 2 / 2)


_ERRORS: dict[str, Callable[[Floats, Floats, Floats, Floats, float], Floats]] = {
    "mean": _of_mean,
    "sum": _of_sum,
    "var": _of_variance,
    "std": _of_variance,
}


def _outside(low: Floats, high: Floats, middles: Floats, share: Floats) -> Floats:
    """The part of the units beyond the candidates on either side that is more than few."""
    flat_low, flat_high = np.unique(low), np.unique(high)
    below = np.array([float(share[middles < end].sum()) for end in flat_low])[np.searchsorted(flat_low, low)]
    above = np.array([float(share[middles > end].sum()) for end in flat_high])[np.searchsorted(flat_high, high)]
    return np.maximum(below - _TAIL, 0) + np.maximum(above - _TAIL, 0)


def _relative_noise(ask: Ask, name: str, rest: Offered) -> float:
    """Standard deviation of the column's sum for each value of size one that one unit may add to a group."""
    held = ask.table.columns[name].id
    found = [
        d.deviation / float(d.paid.measure.sensitivity.scaled(d.paid.measure.unit).l1)
        for d in rest.plan(ask).drawn
        if d.paid.measure.column is not None and d.paid.measure.column.id == held and d.family != "none"
    ]
    return max(found, default=0.0)


# As a bound is typed


def _inside(bounds: Bounds, column: Column) -> Bounds:
    """Bounds that a column of the type can have, within those known of it; never of no width."""
    low, high = bounds.lower, bounds.upper
    family, known = kind(column.facts.dtype), column.facts.bounds
    if family == "integer" or family in TIMES:
        least, most = integer_range(column.facts.dtype) if family == "integer" else _tick_range(column.facts.dtype)
        least, most = max(least, -_WHOLE), min(most, _WHOLE)
        low, high = (min(max(x, least), most) for x in (math.floor(low), math.ceil(high)))
    if known is not None:
        low, high = known.clamp(low), known.clamp(high)
        if low == high:
            return known
    return Bounds(low, high) if low < high else Bounds(low, low + 1 if family != "float" else low + max(abs(low), 1))


def _rounded(low: float, high: float, edges: list[float]) -> Bounds:
    """The same a little wider, with as few digits as the bins at either end allow."""
    ends = []
    for value, outward in ((low, -1), (high, 1)):
        at = edges.index(value)
        near = min(abs(x - value) for x in edges[max(at - 1, 0) : at + 2] if x != value)
        digits = 1 - math.floor(math.log10(near))
        step = Fraction(10) ** -digits
        ends.append(float((math.floor if outward < 0 else math.ceil)(Fraction(value) / step) * step))
    return Bounds(*ends)


def _tick_range(dtype: DType) -> tuple[int, int]:
    """The ticks of the times that Python can write, a few days inside; with a zone, those of the years 2 to 9998."""
    days = {"date": (-719_100, 2_932_800), "datetime": (-719_100, 2_932_800), "duration": (-999_999_000, 999_999_000)}
    low, high = days[kind(dtype)] if getattr(dtype, "time_zone", None) is None else (-718_700, 2_932_500)
    if kind(dtype) == "date":
        return low, high
    per_day = 86_400 * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[getattr(dtype, "time_unit", "us")]
    return low * per_day, high * per_day


def as_typed(bounds: Bounds, column: Column) -> Bounds:
    """Bounds as a user types them: times as times."""
    if kind(column.facts.dtype) not in TIMES:
        return bounds
    return Bounds(*(moment(x, column.facts.dtype) for x in bounds))  # type: ignore[arg-type]
