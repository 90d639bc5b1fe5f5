"""What `bounds=dp.Auto()` gives up in small tables: means, sums, medians and 9th deciles of 50 to
300 people with one row each.

Each release draws a column of one of thirteen laws, and chooses its bounds by a release's own code
with fresh noise. The histograms are read once for all statistics. The error is that of the answer
by its law: for means and sums the root mean square of noise and of what clipping moves, for
quantiles the mean distance by the exponential mechanism over the intervals between the values, with
its public rows. Beside it stands the error of somebody who knows where the law has all but 2 of
1,000 values on either side, and pays nothing for it.

"Bad" is the part of the releases whose error is more than ten times that; "silently" those that do
not say that their bounds are a guess.

    python benchmarks/small_bounds.py [seed, by default 1] [releases, by default 5] [epsilon] [each]
"""

from __future__ import annotations

import math
import sys
import warnings
from fractions import Fraction
from unittest import mock

import numpy as np
import polars as pl

import dpframe as dp
from dpframe import engine
from dpframe.budget import Terms
from dpframe.engine import EXPONENTS, ONE
from dpframe.release.auto import Seen, clipping_bounds
from dpframe.release.pricing import read_price
from dpframe.theory.formulas.loss import PRIOR, fade

LAWS = {
    "heights": lambda r, n: r.normal(170, 10, n),
    "normal": lambda r, n: r.normal(0, 1, n),
    "incomes": lambda r, n: np.round(r.lognormal(10.3, 0.7, n), -2),
    "lognormal": lambda r, n: r.lognormal(3, 1.2, n),
    "uniform from 0 to 1": lambda r, n: r.uniform(0, 1, n),
    "uniform from 5 to 6": lambda r, n: r.uniform(5, 6, n),
    "ages": lambda r, n: np.clip(np.floor(r.normal(45, 15, n)), 18, 95).astype(int),
    "years": lambda r, n: r.integers(1940, 2010, n),
    "marks from 1 to 5": lambda r, n: r.integers(1, 6, n),
    "zeros and amounts": lambda r, n: np.where(r.random(n) < 0.6, 0, r.gamma(2, 40, n).round(2)),
    "two groups": lambda r, n: np.where(
        r.random(n) < 0.5, r.normal(20, 3, n), r.normal(400, 30, n)
    ),
    "both signs": lambda r, n: np.where(r.random(n) < 0.4, -1, 1) * r.lognormal(2, 0.5, n),
    "seconds": lambda r, n: r.exponential(0.02, n),
}
RANKS = {"mean": None, "sum": None, "median": Fraction(1, 2), "9th decile": Fraction(9, 10)}
PEOPLE, BAD = (50, 100, 200, 300), 10


def magnitudes(values: np.ndarray) -> np.ndarray:
    """`engine.magnitude_profile` of one row for each unit."""
    first, last = EXPONENTS[0], EXPONENTS[-1]
    with np.errstate(divide="ignore"):
        power = np.clip(np.floor(np.log2(np.abs(values))), first, last) - first + 1
    at = np.where(values == 0, 0, np.sign(values) * power).astype(int) + len(EXPONENTS)
    return np.bincount(at, minlength=2 * len(EXPONENTS) + 1) * ONE


def between(values: np.ndarray, edges: list[float]) -> np.ndarray:
    """`engine.value_profile` of one row for each unit."""
    at = np.searchsorted(edges, values, side="right")
    return np.bincount(at, minlength=len(edges) + 1) * ONE


def quantile_errors(values, rank, low, high, epsilon) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the answers that a quantile may have, and their chances."""
    n, q, truth = len(values), float(rank), np.quantile(values, float(rank))
    scale = 2 * max(q, 1 - q) / epsilon
    public = max(PRIOR * scale - n / fade(rank), 0)
    x, whole = np.clip(np.sort(values), low, high), values.dtype.kind == "i"
    step = max((high - low) / 2**21, 1.0 if whole else 1e-300, 1e-15 * max(abs(low), abs(high)))
    away = np.geomspace(step, max(2 * (high - low), 2 * step), 60)
    grid = np.unique(
        np.clip(np.concatenate([[low, high], x, truth - away, truth + away]), low, high)
    )
    points = np.append((grid[1:] + grid[:-1]) / 2, np.unique(x))  # gaps, and the values themselves
    many = np.append(np.diff(grid) / step, np.ones(len(points) - len(grid) + 1))
    below, until = (np.searchsorted(x, points, side=side) for side in ("left", "right"))
    shift = public * ((points - low) / (high - low) - q)
    worse = np.maximum(np.maximum(below - q * n + shift, q * n - until - shift), 0)
    logs = np.log(np.maximum(many, 1e-300)) - worse / scale
    chances = np.exp(logs - logs.max())
    return np.abs(np.clip(points, low, high) - truth), chances / chances.sum()


def total_error(values, verb, low, high, relative) -> float:
    """The root mean square of noise and of what clipping moves."""
    clipped = np.clip(values, low, high)
    if verb == "sum":
        return math.hypot(clipped.sum() - values.sum(), relative * max(abs(low), abs(high)))
    off = clipped.mean() - (high + low) / 2
    noise = relative / len(values) * math.hypot((high - low) / 2, off)
    return math.hypot(clipped.mean() - values.mean(), noise)


def question(values, verb):
    """The question of a statistic of such values."""
    table = pl.DataFrame({"u": [0, 1], "x": values[:2]})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1))
    if verb == "9th decile":
        return frame.quantile("x", 0.9, bounds=dp.Auto(), max_rows=1)._question
    return getattr(frame, verb)("x", bounds=dp.Auto(), max_rows=1)._question


def measured(law, values, verb, epsilon) -> tuple[float, float, bool]:
    """The error over that of typed bounds, the chance of a bad one, and whether it is no guess."""
    ask, rank = question(values, verb), RANKS[verb]
    price, share = read_price(Terms.EPSILON, epsilon=epsilon), ask.open_bounds["x"].share
    rest = price.part(1 - share)
    clipping = clipping_bounds.choose_bounds(ask, "x", price.part(share), rest, Seen())
    low, high = map(float, clipping.bounds)
    typed = [float(x) for x in np.quantile(law(np.random.default_rng(1), 20_000), [0.002, 0.998])]
    if rank is None:
        plan, column = rest.plan(ask), ask.table.columns["x"]
        (relative,) = {
            noise.deviation / float(noise.total.sensitivity.scaled(noise.total.unit).l1)
            for noise in plan.noises
            if noise.total.column is not None and noise.total.column.id == column.id
            if not noise.exact and noise.total.key != "count" and not noise.total.counts_rows
        }
        best = total_error(values, verb, *typed, relative * float(1 - share))
        ratio = total_error(values, verb, low, high, relative) / best
        return ratio, float(ratio > BAD), clipping.seen
    best = float(np.dot(*quantile_errors(values, rank, *typed, float(epsilon))))
    best = max(best, 1e-3 * (typed[1] - typed[0]))  # of whole numbers it may be none
    errors, chances = quantile_errors(values, rank, low, high, float(epsilon * (1 - share)))
    return float(errors @ chances) / best, float(chances[errors > BAD * best].sum()), clipping.seen


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "each"]
    seed, releases = (int(x) for x in [*words[:2], *(1, 5)[len(words[:2]) :]])
    epsilon, rows = Fraction(words[2] if len(words) > 2 else 1), {}
    warnings.simplefilter("ignore")
    for release in range(releases):
        for name, law in LAWS.items():
            for people in PEOPLE:
                values = law(np.random.default_rng([seed, release, people]), people)
                with (
                    mock.patch.object(
                        engine, "magnitude_profile", lambda *_, v=values: magnitudes(v)
                    ),
                    mock.patch.object(
                        engine, "value_profile", lambda _, __, e, v=values: between(v, e)
                    ),
                ):
                    for verb in RANKS:
                        found = measured(law, values, verb, epsilon)
                        for key in [(verb, people, "all"), (verb, people, name)]:
                            rows.setdefault(key, []).append(found)
    print("statistic, people: ratio, geometric mean and median; bad; silently bad; guesses")
    for (verb, people, name), found in rows.items():
        if name == "all" or "each" in sys.argv:
            ratios, bad, seen = np.array(found, float).T
            print(
                f"{verb:10} {people:4} {name:20} {np.exp(np.log(ratios).mean()):9.2f} "
                f"{np.median(ratios):8.2f} {bad.mean():6.1%} {(bad * seen).mean():6.1%} "
                f"{1 - seen.mean():6.1%}"
            )


if __name__ == "__main__":
    main()
