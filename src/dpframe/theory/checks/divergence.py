"""Divergences between two output distributions, computed to test what a map promises.

A distribution is a mapping {outcome: probability}, a sequence of probabilities (outcomes 0, 1, …),
or a frozen scipy distribution, discrete or continuous. A set S of outcomes is a collection, or a
function from an outcome to bool; for a continuous distribution it is an interval (lower, upper) or
a list of disjoint intervals.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpframe.arrays import Array
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.noise import smallest_integer

# probabilities (a sequence or a mapping), or a distribution of scipy.stats, which has no types
Distribution = Any
Finite = dict[Any, float]


def max_divergence(p: Distribution, q: Distribution, over: Any = None) -> float:
    """The largest log ratio of the probabilities that two distributions
    give to an event: ln P[S]/Q[S].

    Input:  p and q, distributions of one kind (see the module); over: one event S, or None for the
            largest over all
    Output: float (nats): for one S its signed log ratio, otherwise the supremum over S, which is at
            least 0. Infinite if p gives probability to an event and q does not. ε-DP bounds both
            max_divergence(p, q) and max_divergence(q, p)
    Source: Dwork, Rothblum and Vadhan 2010, definition of D∞; over all events it is the largest
            ratio of the densities
    Errors: InvalidArgument for an argument that is not a distribution, or if only one of the two is
            continuous

    >>> max_divergence({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.75}, over={"a"}) == math.log(2)
    True
    >>> max_divergence([0.5, 0.5], [0.25, 0.75]) == math.log(2)
    True
    """
    if _continuous(p) != _continuous(q):
        raise InvalidArgument(
            "max_divergence: one distribution is continuous and the other is not."
        )
    if _continuous(p):
        if over is not None:
            return _log_ratio(event_mass(p, over), event_mass(q, over))
        return _continuous_supremum(p, q)
    p_table, q_table = _aligned(p, q)
    if over is not None:
        inside = _membership(over, p_table)
        return _log_ratio(
            math.fsum(v for k, v in p_table.items() if inside(k)),
            math.fsum(v for k, v in q_table.items() if inside(k)),
        )
    return max(0.0, max(_log_ratio(v, q_table[k]) for k, v in p_table.items() if v > 0))


def hockey_stick_divergence(p: Distribution, q: Distribution, epsilon: float) -> float:
    """The δ of (ε, δ)-DP in one direction: the mass by which p exceeds e^ε·q,
    sup over S of P[S] - e^ε·Q[S].

    Input:  p and q as in `max_divergence`; epsilon >= 0
    Output: float in [0, 1]; for continuous distributions from the masses of the intervals where p's
            density is above e^ε·q's, which are found on a fine grid of quantiles
    Source: Balle, Barthe and Gaboardi 2018, arXiv:1807.01647
    Errors: InvalidArgument

    >>> hockey_stick_divergence([0.5, 0.5], [0.25, 0.75], epsilon=0.0)
    0.25
    """
    if not epsilon >= 0:
        raise InvalidArgument(f"epsilon={epsilon!r}: ε is at least 0.")
    factor = math.exp(epsilon)
    if _continuous(p):
        above = _above(p, q, epsilon)
        return max(0.0, event_mass(p, above) - factor * event_mass(q, above)) if above else 0.0
    p_table, q_table = _aligned(p, q)
    return math.fsum(max(0.0, v - factor * q_table[k]) for k, v in p_table.items())


def renyi_divergence(p: Distribution, q: Distribution, alpha: float) -> float:
    """The Rényi divergence of order alpha > 1: ln(E_q[(p/q)^alpha]) / (alpha - 1).

    Input:  p and q as in `max_divergence`
    Output: float (nats); for continuous distributions by quadrature
    Source: Mironov 2017, arXiv:1702.07476, definition 3
    Errors: InvalidArgument

    >>> round(renyi_divergence([0.5, 0.5], [0.25, 0.75], alpha=2), 12) == round(math.log(4 / 3), 12)
    True
    """
    if not alpha > 1:
        raise InvalidArgument(f"alpha={alpha!r}: a Rényi order is above 1.")
    if _continuous(p):

        def term(x: float) -> float:
            return math.exp(
                min(700.0, alpha * float(p.logpdf(x)) + (1 - alpha) * float(q.logpdf(x)))
            )

        return math.log(_integral(p, q, term)) / (alpha - 1)
    p_table, q_table = _aligned(p, q)
    if any(v > 0 and q_table[k] == 0 for k, v in p_table.items()):
        return math.inf
    terms = [
        alpha * math.log(v) + (1 - alpha) * math.log(q_table[k])
        for k, v in p_table.items()
        if v > 0
    ]
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(x - top) for x in terms))) / (alpha - 1)


# Kinds of distributions


def _continuous(p: Distribution) -> bool:
    return hasattr(p, "logpdf") and not (hasattr(p, "dist") and hasattr(p.dist, "logpmf"))


def _finite(p: Distribution, others: tuple[Distribution, ...] = ()) -> Finite:
    """A discrete distribution as a table; for scipy's infinite ones without tails
    that are negligible in floats.
    """
    if hasattr(p, "logpmf"):
        low, high = _range([p, *others])
        outcomes = np.arange(low, high + 1)
        return dict(zip(outcomes.tolist(), np.exp(p.logpmf(outcomes)).tolist(), strict=True))
    match p:
        case Mapping():
            table = {k: _probability(v) for k, v in p.items()}
        case np.ndarray() | Sequence() if not isinstance(p, str):
            table = {i: _probability(v) for i, v in enumerate(p)}
        case _:
            raise InvalidArgument(
                f"{type(p).__name__} is no distribution; give {{outcome: probability}}, a list of "
                "probabilities, or a distribution of scipy."
            )
    if not table or abs(math.fsum(table.values()) - 1) > 1e-9:
        raise InvalidArgument(f"The probabilities add up to {math.fsum(table.values())}, not to 1.")
    return table


def _probability(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= 1:
        raise InvalidArgument(f"{value!r} is not a probability.")
    return number


def _range(distributions: Sequence[Distribution]) -> tuple[int, int]:
    """The integers to compare on: a finite support in full, an infinite one as
    far as floats do not underflow.
    """
    supports = [d.support() for d in distributions]
    lows = [int(s[0]) for s in supports if math.isfinite(s[0])]
    highs = [int(s[1]) for s in supports if math.isfinite(s[1])]
    # An infinite tail is cut where the lighter of the two ends; beyond that there is next to no
    # probability.
    starts = [
        _outward(d.cdf, -1, d)
        for d, s in zip(distributions, supports, strict=True)
        if not math.isfinite(s[0])
    ]
    ends = [
        _outward(d.sf, 1, d)
        for d, s in zip(distributions, supports, strict=True)
        if not math.isfinite(s[1])
    ]
    low = min(lows + ([max(starts)] if starts else []))
    high = max(highs + ([min(ends)] if ends else []))
    if high - low > 10_000_000:
        raise InvalidArgument("The distribution is spread over more than ten million outcomes.")
    return low, high


def _outward(tail: Callable[[Any], Any], sign: int, p: Distribution) -> int:
    """Approximately the last integer on this side with probability above
    10^-290, or with a tail above 10^-200.
    """

    def matters(steps: int) -> bool:
        at = middle + sign * steps
        # scipy's tails may lose their digits, its masses do not
        return bool(p.pmf(at) > 1e-290 or tail(at) > 1e-200)

    middle = int(p.median())
    return middle + sign * (smallest_integer(lambda steps: steps > 0 and not matters(steps), 1) - 1)


def _aligned(p: Distribution, q: Distribution) -> tuple[Finite, Finite]:
    p_table = _finite(p, (q,) if hasattr(q, "logpmf") else ())
    q_table = _finite(q, (p,) if hasattr(p, "logpmf") else ())
    return {**dict.fromkeys(q_table, 0.0), **p_table}, {**dict.fromkeys(p_table, 0.0), **q_table}


def _membership(over: Any, table: Finite) -> Callable[[Any], bool]:
    if callable(over):
        return lambda k: bool(over(k))
    members = set(over) if isinstance(over, Iterable) and not isinstance(over, str) else {over}
    return lambda k: k in members


def _log_ratio(top: float, bottom: float) -> float:
    if top == bottom:
        return 0.0
    if bottom == 0:
        return math.inf
    return math.log(top) - math.log(bottom) if top > 0 else -math.inf


# Continuous ones


def _intervals(over: Any) -> list[tuple[float, float]]:
    pairs = (
        [over]
        if isinstance(over, tuple) and len(over) == 2 and np.ndim(over[0]) == 0
        else list(over)
    )
    if not pairs or any(len(pair) != 2 or not pair[0] <= pair[1] for pair in pairs):
        raise InvalidArgument("over: give an interval (lower, upper), or a list of disjoint ones.")
    pairs = sorted((float(a), float(b)) for a, b in pairs)
    if any(a[1] > b[0] for a, b in itertools.pairwise(pairs)):
        raise InvalidArgument("over: the intervals must be disjoint.")
    return pairs


def event_mass(p: Distribution, over: Any) -> float:
    """P[S]; for a continuous distribution computed from the tail in which no digits are lost.

    Input:  p and over as in `max_divergence`
    Output: float in [0, 1]
    Errors: InvalidArgument for an argument that is not a distribution or a set

    >>> event_mass({"a": 0.5, "b": 0.25, "c": 0.25}, {"a", "b"})
    0.75
    """
    if not _continuous(p):
        table = _finite(p)
        inside = _membership(over, table)
        return math.fsum(v for k, v in table.items() if inside(k))
    middle = float(p.median())
    return math.fsum(
        float(p.sf(a) - p.sf(b)) if a > middle else float(p.cdf(b) - p.cdf(a))
        for a, b in _intervals(over)
    )


def _scipy(part: str) -> Any:
    """A module of scipy. Errors: UnsupportedOperation where it is not installed."""
    try:
        return importlib.import_module(f"scipy.{part}")
    except ImportError as problem:
        message = "Continuous distributions need SciPy. Install it with: pip install scipy"
        raise UnsupportedOperation(message) from problem


def _above(p: Distribution, q: Distribution, level: float) -> list[tuple[float, float]]:
    """The intervals where the log ratio of the densities is above a level."""
    brentq = _scipy("optimize").brentq

    def excess(x: float) -> float:
        return float(_ratio(p, q, np.array([x]))[0]) - level

    points = _quantiles(p)
    inside = _ratio(p, q, points) > level
    ends: list[float] = []
    for a in np.flatnonzero(inside[1:] != inside[:-1]).tolist():
        low, high = float(points[a]), float(points[a + 1])
        finite = all(math.isfinite(excess(x)) for x in (low, high))
        ends.append(brentq(excess, low, high, xtol=1e-15 * max(1.0, abs(low))) if finite else high)
    starts = ([-math.inf] if inside[0] else []) + ends + ([math.inf] if inside[-1] else [])
    return list(zip(starts[::2], starts[1::2], strict=True))


def _quantiles(p: Distribution) -> Array:
    """Quantiles from far in one tail to far in the other."""
    levels = np.concatenate([10.0 ** -np.arange(300, 3, -4.0), np.linspace(1e-3, 0.5, 2000)])
    points = np.concatenate([p.ppf(levels), p.isf(levels[::-1])])
    return np.unique(points[np.isfinite(points)])


def _integral(p: Distribution, q: Distribution, function: Callable[[float], float]) -> float:
    quad = _scipy("integrate").quad

    cuts = [float(d.median()) for d in (p, q)]  # where a density may have a corner
    cuts += [float(p.ppf(u)) for u in (1e-300, 1e-30, 1e-9, 1e-3, 0.1, 0.5)]
    cuts += [float(p.isf(u)) for u in (0.1, 1e-3, 1e-9, 1e-30, 1e-300)]
    cuts = sorted({c for c in cuts if math.isfinite(c)})
    return math.fsum(
        quad(function, a, b, limit=500, epsabs=0, epsrel=1e-10)[0]
        for a, b in itertools.pairwise(cuts)
    )


def _continuous_supremum(p: Distribution, q: Distribution) -> float:
    closed_form = _known_family(p, q)
    return closed_form if closed_form is not None else _searched_supremum(p, q)


def _known_family(p: Distribution, q: Distribution) -> float | None:
    """The supremum in closed form, for two Laplace or two normal distributions; None for others."""
    names = {getattr(getattr(d, "dist", None), "name", "") for d in (p, q)}
    if names not in ({"laplace"}, {"norm"}):
        return None
    (_, a, s), (_, b, t) = (d.dist._parse_args(*d.args, **d.kwds) for d in (p, q))
    gap = abs(float(a) - float(b))
    if s > t:
        return math.inf
    if names == {"laplace"}:
        return math.log(t / s) + gap / float(t)
    if s == t:
        return 0.0 if gap == 0 else math.inf
    return math.log(t / s) + gap**2 / (2 * float(t * t - s * s))


def _searched_supremum(p: Distribution, q: Distribution) -> float:
    """The largest difference of log densities: on quantiles far into both tails,
    then refined around the best ones.
    """
    points = _quantiles(p)
    ratio = _ratio(p, q, points)
    if np.isposinf(ratio).any():
        return math.inf
    points, ratio = _numbers_only(p, points, ratio)
    best = int(np.argmax(ratio))
    tails = [
        _tail_supremum(p, q, float(quantile(1e-100)))
        for quantile, end in ((p.ppf, p.support()[0]), (p.isf, p.support()[1]))
        if math.isinf(end)
    ]
    if math.inf in tails:
        return math.inf
    around = _refined(p, q, points[max(0, best - 1)], points[min(len(points) - 1, best + 1)])
    return max(0.0, float(ratio[best]), around, *tails)


def _numbers_only(p: Distribution, points: Array, ratio: Array) -> tuple[Any, Any]:
    """The points at which both densities are numbers.
    Errors: UnsupportedOperation where that leaves too much open.

    A density may be NaN far out in the tails. The largest ratio can still be computed if the ratios
    decrease toward the outermost points at which both densities are numbers.
    """
    numbers = ~np.isnan(ratio)
    if numbers.all():
        return points, ratio
    inner = np.flatnonzero(numbers)
    holes = len(inner) == 0 or not numbers[inner[0] : inner[-1] + 1].all()
    mass = 0.0 if holes else float(p.cdf(points[inner[-1]]) - p.cdf(points[inner[0]]))
    rises = mass < 1 - 1e-6 or not math.isfinite(mass)
    if not rises:
        left_end, right_end = ratio[inner[:3]], ratio[inner[-3:]]
        cut_left, cut_right = not numbers[0], not numbers[-1]
        rises = bool(
            (cut_left and left_end[0] >= left_end.max())
            or (cut_right and right_end[-1] >= right_end.max())
        )
        rises = rises and not (np.ptp(left_end) == 0 and np.ptp(right_end) == 0)
    if holes or rises:
        raise UnsupportedOperation(
            "max_divergence: a density is NaN where the largest ratio may lie. Give distributions "
            "whose logpdf is a number there, or an interval: over=(lower, upper), which needs cdf "
            "and sf only."
        )
    return points[inner], ratio[inner]


def _refined(p: Distribution, q: Distribution, low: float, high: float) -> float:
    """The largest log ratio between two points around a maximum."""
    minimize_scalar = _scipy("optimize").minimize_scalar

    minimum = minimize_scalar(
        lambda x: -float(_ratio(p, q, np.array([x]))[0]),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return -float(minimum.fun)


def _tail_supremum(p: Distribution, q: Distribution, start: float) -> float:
    """The largest log ratio from a far quantile outward, in doubling steps;
    infinite when it does not settle.
    """
    middle = float(p.median())
    with np.errstate(over="ignore"):
        points = middle + (start - middle) * 2.0 ** np.arange(400)
    with np.errstate(all="ignore"):
        usable = (
            np.isfinite(points)
            & np.isfinite(_log_density(p, points))
            & ~np.isnan(_log_density(q, points))
        )
    points = points[: int(np.argmin(usable)) if not usable.all() else len(points)]
    if len(points) < 3:
        return 0.0  # The search over quantiles already covers this tail.
    ratio = _ratio(p, q, points)
    best = int(np.argmax(ratio))
    if math.isinf(ratio[best]) or best < len(points) - 1:
        return (
            float(ratio[best])
            if best in (0, len(points) - 1)
            else _refined(p, q, *sorted(points[[best - 1, best + 1]]))
        )
    last, before = ratio[-1] - ratio[-2], ratio[-2] - ratio[-3]
    return math.inf if last > 1e-9 and last > 0.5 * before else float(ratio[-1])


def _log_density(p: Distribution, points: Array) -> Array:
    """The log density; of a Laplace distribution from its formula, since scipy's underflows."""
    if getattr(getattr(p, "dist", None), "name", "") == "laplace":
        _, loc, scale = p.dist._parse_args(*p.args, **p.kwds)
        result: Array = -np.abs(points - loc) / scale - math.log(2 * scale)
        return result
    return np.asarray(p.logpdf(points))


def _ratio(p: Distribution, q: Distribution, points: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        top, bottom = _log_density(p, points), _log_density(q, points)
        return np.where(np.isneginf(top), -np.inf, top - bottom)
