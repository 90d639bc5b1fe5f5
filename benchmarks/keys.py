"""How many keys that nobody listed come out, at ε = 1 and δ = 1e-5, of
Zipf words and of real panels.

Printed for each table, each the mean of some releases:

- the rule with a typed limit, at the max_groups that is best in hindsight, and this limit;
- one round: each unit spreads a weight of length 1 over its keys, once (weighted Gaussian,
  arXiv:2002.09745);
- three rounds at prices 1 : 9 : 81, each with a threshold on its own noisy weights (DP-SIPS,
  arXiv:2301.01998);
- eight rounds that add up, as released without a limit: the share of the best limit's keys is
  printed behind;
- eight rounds that add up, where a unit keeps at most 2, 4, 8 and 30 keys.

The second, the third and the last are played here with floating-point noise, as a yardstick;
nothing of them is released. The last tells what a typed max_groups would bring if its keys were
found in rounds.

    python benchmarks/keys.py FOLDER     # where benchmarks/compare/panels.py wrote its tables
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.theory.formulas.loss import ROUNDS, calibration, dropped_below, round_thresholds

EPSILON, DELTA, RELEASES, MOST = 1.0, 1e-5, 5, 100
LIMITS = (1, 2, 3, 4, 6, 8, 12, 20, 30, 50, 100)
TYPED, BLOCKS, ONE = (2, 4, 8, 30), 8, 2**20


def zipf(people: int, words: float, values: int = 20_000) -> pl.DataFrame:
    """People with a Poisson number of words each, of which the r-th
    has a share proportional to 1/r.
    """
    draw = np.random.default_rng(1)
    shares = 1 / np.arange(1, values + 1)
    sizes = np.maximum(draw.poisson(words, people), 1)
    units = np.repeat(np.arange(people), sizes)
    keys = draw.choice(values, len(units), p=shares / shares.sum())
    return pl.DataFrame({"unit": units, "key": keys}).with_columns(pl.col("key").cast(pl.String))


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    named = {f"Zipf, 20,000 people, {words:g} words": zipf(20_000, words) for words in (2, 4, 10)}
    for panel in json.loads((folder / "panels.json").read_text()):
        rows = pl.read_csv(
            folder / f"{panel['name']}.csv",
            columns=["unit", "key", "grp"],
            infer_schema_length=None,
        )
        rows = rows.with_columns(pl.col("key", "grp").cast(pl.String))
        named[panel["name"]] = rows.select("unit", "key")
        named[f"{panel['name']}, grp"] = rows.select("unit", key="grp")
    return named


def released(rows: pl.DataFrame, releases: int, **limits: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = rows.dp(unit="unit", budget=dp.Budget(epsilon=10**6, delta=0.5))
        query = frame.group_by("key", **limits).keys()
        return float(
            np.mean(
                [query.release(epsilon=EPSILON, delta=DELTA).table.height for _ in range(releases)]
            )
        )


def best_limit(rows: pl.DataFrame) -> tuple[float, int]:
    limit = max(LIMITS, key=lambda m: released(rows, 2, max_groups=m))
    return released(rows, RELEASES, max_groups=limit), limit


def capped(
    rows: pl.DataFrame, most: int, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Units and keys, of which a unit keeps at most so many:
    the first in the order of its block of units.
    """
    pairs = rows.unique()
    units, keys = (pairs[name].rank("dense").to_numpy() - 1 for name in ("unit", "key"))
    orders, block = draw.random((BLOCKS, keys.max() + 1)), draw.integers(0, BLOCKS, units.max() + 1)
    order = np.lexsort((orders[block[units], keys], units))
    starts = np.searchsorted(units[order], np.arange(units.max() + 1))
    keep = order[np.arange(len(order)) - starts[units[order]] < most]
    return units[keep], keys[keep]


def added_up(rows: pl.DataFrame, most: int, draw: np.random.Generator) -> int:
    """Keys of the rounds that are released, where a unit keeps at most so many keys."""
    units, keys = capped(rows, most, draw)
    scale = calibration.gaussian_scale(l2_squared=ROUNDS * ONE**2, epsilon=EPSILON, delta=DELTA / 2)
    thresholds = round_thresholds(DELTA / 2, most, ROUNDS, scale, ONE)
    live = np.bincount(keys) > 0
    out, sums = 0, np.zeros(len(live))
    for number, threshold in enumerate(thresholds):
        stay = live[keys]
        sizes = np.bincount(units[stay], minlength=units.max() + 1)
        sums += np.bincount(keys[stay], ONE / np.sqrt(sizes[units[stay]]), minlength=len(live))
        sums += draw.normal(0, scale, len(live))
        out += int((live & (sums >= threshold)).sum())
        live &= (sums < threshold) & (sums >= dropped_below(thresholds, number))
    return out


def played(rows: pl.DataFrame, prices: tuple[int, ...], draw: np.random.Generator) -> int:
    """Keys of rounds that stand alone: the noise has half of δ, and each
    threshold its part of the other half.
    """
    units, keys = capped(rows, MOST, draw)
    live, out = np.ones(keys.max() + 1, bool), 0
    for price in prices:
        part = price / sum(prices)
        sigma = calibration.gaussian_scale(1, EPSILON, DELTA / 2) / math.sqrt(part)
        reach = max(
            1 / math.sqrt(t)
            + calibration.threshold(part * DELTA / 2, t, "gaussian", sigma * 1000) / 1000
            for t in (1, 2, 5, 20, MOST)
        )
        stay = live[keys]
        sizes = np.bincount(units[stay], minlength=units.max() + 1)
        weights = np.bincount(keys[stay], 1 / np.sqrt(sizes[units[stay]]), minlength=len(live))
        passed = live & (weights > 0) & (weights + draw.normal(0, sigma, len(live)) >= reach)
        out += int(passed.sum())
        live &= ~passed
    return out


def main() -> None:
    draw = np.random.default_rng(2)
    print(
        "table: units, keys; best limit (max_groups), one round, DP-SIPS, dpframe without a "
        "limit, ratio; typed"
    )
    for name, rows in tables(Path(sys.argv[1])).items():
        today, limit = best_limit(rows)
        once, sips = (
            np.mean([played(rows, p, draw) for _ in range(RELEASES)]) for p in ((1,), (1, 9, 81))
        )
        ours = released(rows, RELEASES)
        typed = ", ".join(
            f"{np.mean([added_up(rows, m, draw) for _ in range(RELEASES)]):g} ({m})" for m in TYPED
        )
        sizes = f"{rows['unit'].n_unique()}, {rows['key'].n_unique()}"
        figures = f"{today:g} ({limit}), {once:g}, {sips:g}, {ours:g}, {ours / today:.2f}; {typed}"
        print(f"{name}: {sizes}; {figures}", flush=True)


if __name__ == "__main__":
    main()
