"""Coverage of shares, moving averages, changes, index numbers and subtotals: `python benchmarks/derived.py 1000`.

Each line is a kind of noise. A table of people who come on some of 14 days is released that many times. The number is
how often a 95% interval holds the same number of the table without noise: in the middle of the days, over all repeats.
In brackets: its mean length beside the shortest that would have held 95 of 100 errors, known in hindsight.

The last lines are about rates of people, as they are by default: for the population. In each repeat 600 other people
are drawn, of three groups with rates of 2%, 20% and 50%, and released at a price. The number is how often the interval
holds the rate of the population, or the difference of two. In brackets: how often that of the noise alone does.

Names of kinds after the number choose some of them: `python benchmarks/derived.py 1000 gaussian rates`.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl

import dpframe as dp

warnings.simplefilter("ignore")
DAYS, PEOPLE, MIDDLE = 14, 400, 9
KINDS = {
    "laplace": {"epsilon": 0.7, "noise": "laplace"},
    "little laplace": {"epsilon": 8.0, "noise": "laplace"},
    "gaussian": {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    "elliptic": {"epsilon": 1.0, "delta": 1e-6, "noise": "elliptic"},
    "k-norm": {"epsilon": 0.7, "noise": "k-norm"},
}
ASKED = {
    "share": lambda out: out.share(),
    "rolling mean": lambda out: out.rolling(7).mean(),
    "rolling sum": lambda out: out.rolling(7).sum(),
    "diff": lambda out: out.diff(),
    "pct_change": lambda out: out.pct_change(),
    "index": lambda out: out.rebase(3),
}


def rates(repeats: int, prices: Sequence[float] = (0.3, 1.0, 8.0)) -> None:
    """Print the coverage of rates and their differences, by default and by intervals of the noise alone."""
    rng, groups, chances = np.random.default_rng(2), ["a", "b", "c"], {"a": 0.02, "b": 0.2, "c": 0.5}
    for epsilon in prices:
        held: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
        for _ in range(repeats):
            group = rng.choice(groups, 600)
            yes = rng.random(600) < [chances[name] for name in group]
            people = dp.protect(
                pl.DataFrame({"group": group, "yes": yes}), unit=dp.Rows(1), budget=dp.Budget(epsilon=epsilon)
            )
            out = people.group_by("group", keys=groups).mean("yes").release(epsilon=epsilon)
            usual, noise = (out.with_ci(covers=covers).table for covers in (None, "noise"))
            for one, other in zip(usual.iter_rows(), noise.iter_rows(), strict=True):
                truth = chances[one[0]]
                if one[1] is not None:
                    held[f"rate of {truth:.0%}"].append((one[2] <= truth <= one[3], other[2] <= truth <= other[3]))
            for first, second in (("b", "a"), ("c", "b")):
                truth = chances[first] - chances[second]
                rows = [o.difference(first, second) for o in (out, out.with_ci(covers="noise"))]
                both = [row["lower"][0] <= truth <= row["upper"][0] for row in rows]
                held[f"{first} less {second}"].append((both[0], both[1]))
        print(f"rates at ε = {epsilon}")
        for name, each in held.items():
            print("  {:16} {:.3f} ({:.3f})".format(name, *np.mean(each, axis=0)), flush=True)


def main(repeats: int, kinds: list[str]) -> None:
    """Print the coverage of each number under each kind of noise."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"id": np.repeat(np.arange(PEOPLE), 5), "day": rng.integers(0, DAYS, 5 * PEOPLE)}).unique()
    table = table.with_columns(part=pl.col("day") // 7, sex=(pl.col("id") % 2).cast(pl.Boolean))
    for kind, price in KINDS.items():
        if kind not in kinds:
            continue
        held, lengths, errors = (defaultdict(list) for _ in range(3))
        for number in range(repeats + 1):  # the first without noise
            budget = dp.Budget(epsilon=1e13, delta=0.9)
            people = dp.protect(table, unit="id", budget=budget)
            cost = price if number else {"epsilon": 1e9, "noise": "laplace"}
            limits = {"max_groups": 5, "max_rows_per_group": 1}
            out = people.group_by("day", keys=range(DAYS), **limits).count().release(**cost)
            parts = people.group_by("part", "day", keys=[(d // 7, d) for d in range(DAYS)], **limits)
            tables = {name: ask(out).table for name, ask in ASKED.items()}
            tables["share of a part"] = parts.count().release(**cost).share(within="part").table
            rows = {name: np.array(t.row(MIDDLE)[-3:], float) for name, t in tables.items()}
            if kind not in ("elliptic", "k-norm"):
                keys = [(d // 7, d, sex) for d in range(DAYS) for sex in (False, True)]
                cells = people.crosstab(["part", "day"], "sex", keys=keys, margins=True, subtotals=True, **limits)
                errors_of = cells.release(**cost).accuracy().filter((pl.col("part") == "1") & (pl.col("day") == "All"))
                rows["subtotal"] = errors_of.select("value", "lower", "upper").to_numpy()[0]
            if not number:
                truth = {name: row[0] for name, row in rows.items()}
                continue
            for name, (value, low, high) in rows.items():
                held[name].append(low - 1e-9 <= truth[name] <= high + 1e-9)
                lengths[name].append(high - low)
                errors[name].append(abs(value - truth[name]))
        print(kind)
        for name, each in held.items():
            shortest = 2 * np.quantile(errors[name], 0.95)
            print(
                f"  {name:16} {np.mean(each):.3f} ({np.nanmean(lengths[name]) / max(shortest, 1e-9):.2f})", flush=True
            )


if __name__ == "__main__":
    number, chosen = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:] or [*KINDS, "rates"]
    main(number, chosen)
    if "rates" in chosen:
        rates(number)
