"""Coverage of shares, moving averages, changes, index numbers and subtotals:
`python benchmarks/derived.py 1000`.

Each line is a kind of noise. A table of people who come on some of 14 days is released that many
times. The number is how often a 95% interval holds the same number of the table without noise: in
the middle of the days, over all repeats.
In brackets: its mean length beside the shortest that would have held 95 of 100 errors, known in
             hindsight.

The last lines are about rates of people beside their number, as they are by default: for the
population. Ten groups at a time are drawn anew, with rates of 1%, 20% and 50%. The number is how
often the interval holds the rate of the population, or the difference of two. In brackets: how
often that of the noise alone does. Rates that noise hides are not counted.

Names of kinds after the number choose some of them: `python benchmarks/derived.py 1000 gaussian
rates`.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections import defaultdict

import numpy as np
import polars as pl

import dpframe as dp

warnings.simplefilter("ignore")
DAYS, PEOPLE, MIDDLE = 14, 400, 9
COPIES = 10  # of each group with a rate
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


def rates(repeats: int) -> None:
    """Print the coverage of rates beside a count and of their differences, by
    default and of the noise alone.
    """
    rng, chances = np.random.default_rng(2), {"a": 0.01, "b": 0.2, "c": 0.5}
    keys = [(name, copy) for name in chances for copy in range(COPIES)]
    for kind, people in itertools.product(("laplace", "gaussian"), (50, 500, 5000)):
        held: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
        table = pl.DataFrame(keys, schema=["group", "copy"], orient="row")
        table = table.select(pl.all().repeat_by(people).explode())
        chance = table["group"].replace_strict(chances).to_numpy()
        for _ in range(repeats // COPIES):
            drawn = table.with_columns(yes=pl.Series(rng.random(table.height) < chance))
            frame = dp.protect(drawn, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e13, delta=0.9))
            query = frame.group_by("group", "copy", keys=keys).agg(
                n=dp.count(), rate=dp.mean("yes")
            )
            out = query.release(**KINDS[kind])
            usual, noise = (out.with_ci(covers=covers).table for covers in (None, "noise"))
            for one, other in zip(
                usual.iter_rows(named=True), noise.iter_rows(named=True), strict=True
            ):
                truth = chances[one["group"]]
                if one["rate"] is not None:
                    both = (row["rate_low"] <= truth <= row["rate_high"] for row in (one, other))
                    held[f"rate of {truth:.0%}"].append(tuple(both))
            for first, second in (("b", "a"), ("c", "b")):  # of one copy: a p-value takes long
                truth = chances[first] - chances[second]
                pair = (first, 0), (second, 0), "rate"
                rows = [o.difference(*pair) for o in (out, out.with_ci(covers="noise"))]
                held[f"{first} less {second}"].append(
                    tuple(r["lower"][0] <= truth <= r["upper"][0] for r in rows)
                )
        print(f"rates under {kind} noise, {people:,} people in a group")
        for name, each in held.items():
            print(
                "  {:16} {:.3f} ({:.3f}), of {:,}".format(name, *np.mean(each, axis=0), len(each)),
                flush=True,
            )


def main(repeats: int, kinds: list[str]) -> None:
    """Print the coverage of each number under each kind of noise."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"id": np.repeat(np.arange(PEOPLE), 5), "day": rng.integers(0, DAYS, 5 * PEOPLE)}
    ).unique()
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
            parts = people.group_by(
                "part", "day", keys=[(d // 7, d) for d in range(DAYS)], **limits
            )
            tables = {name: ask(out).table for name, ask in ASKED.items()}
            tables["share of a part"] = parts.count().release(**cost).share(within="part").table
            rows = {name: np.array(t.row(MIDDLE)[-3:], float) for name, t in tables.items()}
            if kind not in ("elliptic", "k-norm"):
                keys = [(d // 7, d, sex) for d in range(DAYS) for sex in (False, True)]
                cells = people.crosstab(
                    ["part", "day"], "sex", keys=keys, margins=True, subtotals=True, **limits
                )
                errors_of = (
                    cells.release(**cost)
                    .accuracy()
                    .filter((pl.col("part") == "1") & (pl.col("day") == "All"))
                )
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
                f"  {name:16} {np.mean(each):.3f} "
                f"({np.nanmean(lengths[name]) / max(shortest, 1e-9):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    number, chosen = (
        int(sys.argv[1]) if len(sys.argv) > 1 else 1000,
        sys.argv[2:] or [*KINDS, "rates"],
    )
    main(number, chosen)
    if "rates" in chosen:
        rates(number)
