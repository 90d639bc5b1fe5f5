"""How often comparisons reject where nothing differs: `python benchmarks/nulls.py [PAIRS] [WORDS]`.

Each of 2,000 pairs of groups is one repeat: two samples of one law, in one release of all groups.
Printed are the parts of the p-values that are at most 0.05 and at most 0.01: a right test has these
at most, but for chance. In brackets, of means and rates, those of the test that people use without
noise, by both variances. More than chance explains is marked where that test has no more either.
The last lines are the same of `compare` with one group, whose corrected p-values reject in that
part of the releases.

Words choose statistics ("mean", "rate", "count", "sum", "std", "ratio", "compare"), shapes, sizes
such as 30/1000, and prices such as e=1.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import polars as pl
from coverage import SHAPES

import dpframe as dp
from dpframe.release.accuracy.group_differences import Differences

warnings.simplefilter("ignore")
RATES = {"rate 0.2%": 0.002, "rate 2%": 0.02, "rate 20%": 0.2, "rate 50%": 0.5}
LAWS = {f"mean of {shape}": made for shape, made in SHAPES.items()}
SIZES = ((10, 10), (30, 30), (30, 1000), (300, 300), (1000, 3000))
PRICES = (0.1, 1, 10)


def values(statistic, draw, number):
    """Bounds and values of a column y of independent rows."""
    if statistic in RATES:
        return None, draw.random(number) < RATES[statistic]
    shape = statistic.partition(" of ")[2] or "lognormal"
    bounds, made = SHAPES[shape]
    return bounds, np.clip(made(draw, number), *bounds)


def aggregate(statistic, bounds):
    """What is asked of the column y."""
    if statistic == "count":
        return dp.count()
    if statistic == "ratio":
        return dp.ratio(dp.sum("y", bounds=bounds), dp.sum("w", bounds=(0, 1)))
    if statistic in ("sum", "std"):
        return {"sum": dp.sum, "std": dp.std}[statistic]("y", bounds=bounds)
    return dp.mean("y", bounds=bounds)


def table_of(statistic, sizes, groups, draw):
    """A table of groups of these sizes in turns, with the bounds of its column;
    numbers of people vary with a count.
    """
    people = np.resize(sizes, groups)
    if statistic in ("count", "sum"):
        people = draw.poisson(people)
    g = np.repeat(np.arange(groups), people)
    bounds, y = values(statistic, draw, len(g))
    return bounds, pl.DataFrame({"g": g, "y": y, "w": draw.random(len(g))})


def of_pairs(statistic, sizes, epsilon, found, pairs, draw):
    """The p-values of pairs of groups that do not differ."""
    bounds, table = table_of(statistic, sizes, 2 * pairs, draw)
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=epsilon, delta=1e-3))
    by = frame.group_by("g", keys=None if found else list(range(2 * pairs)))
    out = by.agg(v=aggregate(statistic, bounds)).release(
        epsilon=epsilon, **({"delta": 1e-4} if found else {}), covers="population"
    )
    numbers, groups = out._numbers, out.table["g"].to_numpy()
    at = {int(group): place for place, group in enumerate(groups)}
    both = [k for k in range(0, 2 * pairs, 2) if k in at and k + 1 in at]
    if len(both) < 100:
        return None
    first, second = ([at[k + i] for k in both] for i in (0, 1))
    p = Differences(numbers, numbers.outputs[0], first, second, apart=True).p_values
    usual = without_noise(table, np.array(both)) if statistic.startswith(("mean", "rate")) else None
    return p[~np.isnan(p)], usual


def without_noise(table, groups):
    """How many standard errors apart the exact means of each group and the next are."""
    by = (
        table.group_by("g")
        .agg(pl.len(), m=pl.col("y").cast(float).mean(), v=pl.col("y").cast(float).var())
        .sort("g")
    )
    number, mean, variance = (by[name].to_numpy() for name in ("len", "m", "v"))
    spread = np.sqrt(variance[groups] / number[groups] + variance[groups + 1] / number[groups + 1])
    apart = np.abs(mean[groups] - mean[groups + 1])
    return np.divide(apart, spread, out=np.zeros(len(groups)), where=spread > 0)


def compared(statistic, size, epsilon, releases, draw):
    """The least corrected p-value of five groups that do not differ, in each release."""
    least = []
    for _ in range(releases):
        bounds, table = table_of(statistic, (size,), 5, draw)
        frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=epsilon))
        asked = frame.group_by("g", keys=list(range(5))).agg(v=aggregate(statistic, bounds))
        out = asked.release(epsilon=epsilon, covers="population").compare(0)
        least.append(out["p_holm"].min())
    return np.array([1.0 if one is None else one for one in least])


def line(words, p, usual=None):
    parts = []
    for level, errors in ((0.05, 1.96), (0.01, 2.576)):
        most = level + 4 * np.sqrt(level * (1 - level) / len(p))
        part, other = np.mean(p <= level), 0.0 if usual is None else np.mean(usual > errors)
        beside = "" if usual is None else f" ({other:.4f})"
        parts.append(f"{part:.4f}{'!' if part > most and other <= most else ' '}{beside}")
    print(f"{words:40} {len(p):5}  {'  '.join(parts)}", flush=True)


def main(pairs: int = 2000, *words: str) -> None:
    draw, statistics = np.random.default_rng(11), [*RATES, *LAWS, "count", "sum", "std", "ratio"]
    chosen = [s for s in statistics if any(s.startswith(w) for w in words)] or (
        [] if "compare" in words else statistics
    )
    sizes = [s for s in SIZES if f"{s[0]}/{s[1]}" in words] or SIZES
    prices = [float(w[2:]) for w in words if w.startswith("e=")] or PRICES
    print("statistic, sizes, ε, keys                  pairs  p<=0.05  p<=0.01")
    for statistic in chosen:
        for size in sizes:
            if statistic in ("count", "sum") and size[0] != size[1]:
                continue
            for epsilon in prices:
                for found in (
                    (False, True)
                    if min(size) >= 300 or (min(size) >= 30 and epsilon >= 1)
                    else (False,)
                ):
                    tested = of_pairs(statistic, size, epsilon, found, pairs, draw)
                    if tested is not None:
                        keys = "found" if found else "listed"
                        line(f"{statistic}, {size[0]}/{size[1]}, {epsilon:g}, {keys}", *tested)
    if not words or "compare" in words:
        for statistic in ("rate 20%", "mean of normal", "mean of lognormal", "count"):
            for size, epsilon in ((30, 1), (300, 1), (300, 10)):
                line(
                    f"compare: {statistic}, {size}, {epsilon}",
                    compared(statistic, size, epsilon, pairs // 4, draw),
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
