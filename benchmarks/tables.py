"""Coverage of the numbers of whole tables: `python benchmarks/tables.py [RELEASES] [WORDS]`.

Crosstabs, also of several columns with subtotals, whose margins are summed or measured; marginals;
and means of groups that were shrunk. Each is released that many times. Printed is how often a 95%
interval holds the number without noise, by kind of number: cells, sums over a column, the total.
Behind it the share of the numbers whose own intervals hold in fewer than 0.95 of the releases by
more than chance explains: 4 standard deviations.

Words choose tables ("crosstab", "subtotals", "marginals", "shrunk") and prices such as e=0.1.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import polars as pl
from shrink import SHAPES

import dpframe as dp

warnings.simplefilter("ignore")
EXACT = {"epsilon": 1e9}
PRICES = (0.1, 1.0)
GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
PEOPLE = 20_000


def people(draw):
    """Rows with three nested columns of a place, and two others;
    some pairs have nobody, and some have many.
    """
    place = np.minimum(draw.geometric(0.05, PEOPLE), 50) - 1
    columns = {"region": place // 10, "town": place // 2, "place": place}
    return pl.DataFrame(
        {**columns, "kind": draw.integers(0, 60, PEOPLE), "sex": draw.integers(0, 2, PEOPLE)}
    )


def private(table):
    return dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e15, delta=0.99))


def crosstabs(draw):
    """Name, question and price of each crosstab and of the marginals."""
    frame = private(people(draw))
    towns = [(town // 5, town) for town in range(25)]
    tall = [(*town, kind) for town in towns for kind in range(60)]
    for noise, price in (("laplace", {"noise": "laplace"}), ("gaussian", GAUSSIAN)):
        for margins in (True, "measured"):
            keys = {"place": list(range(50)), "kind": list(range(60))}
            yield (
                f"crosstab, {margins}, {noise}",
                frame.crosstab("place", "kind", keys=keys, margins=margins),
                price,
            )
        nested = frame.crosstab(["region", "town"], "kind", keys=tall, margins=True, subtotals=True)
        yield f"subtotals, {noise}", nested, price
    keys = {"region": list(range(5)), "kind": list(range(60)), "sex": [0, 1]}
    for workload in ("2-way", "3-way"):
        yield (
            f"marginals, {workload}",
            frame.marginals(list(keys), workload, keys=keys),
            {"delta": 1e-6},
        )


def numbers(out):
    """Value and ends of all numbers of a release, and of how many keys each is a sum."""
    tables = [out] if hasattr(out, "table") else [out[names] for names in out]
    found = []
    for one in tables:
        rows = (
            one.accuracy().filter(pl.col("lower").is_not_null())
            if hasattr(one, "accuracy")
            else one
        )
        keys = [
            name
            for name in rows.columns
            if name not in ("column", "value", "error", "lower", "upper")
        ]
        sums = (
            sum((rows[name].cast(pl.String) == "All").cast(pl.Int64) for name in keys)
            if keys
            else pl.Series([9])
        )
        found.append(
            np.column_stack([rows.select("value", "lower", "upper").to_numpy(), sums.to_numpy()])
        )
    return np.concatenate(found)


def line(words, kinds, held):
    """Print the coverage of each kind of number.
    Input: held: a row for each release, a column for each number.
    """
    least = 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(held))
    parts = []
    for kind in np.unique(kinds):
        own = held[:, kinds == kind].mean(axis=0)
        parts.append(f"{kind:g}: {own.mean():.3f} ({np.mean(own < least):.3f} of {len(own):,})")
    print(f"{words:38} {'; '.join(parts)}", flush=True)


def of_tables(releases, words, prices):
    print(
        "table, price: sums over so many columns: coverage (share of numbers surely below, of all)"
    )
    for name, asked, said in crosstabs(np.random.default_rng(4)):
        if words and not any(name.startswith(word) for word in words):
            continue
        truth = numbers(asked.release(**{**said, **EXACT}))
        for epsilon in prices:
            held = []
            for _ in range(releases):
                found = numbers(asked.release(**said, epsilon=epsilon))
                held.append(
                    (found[:, 1] - 1e-9 <= truth[:, 0]) & (truth[:, 0] <= found[:, 2] + 1e-9)
                )
            line(f"{name}, {epsilon:g}", truth[:, 3], np.array(held))


def of_shrunk(releases, prices):
    """Of means and rates of 30 groups: with and without shrinking,
    over all groups of many panels.
    """
    draw, asked = (
        np.random.default_rng(6),
        {"mean": dp.mean("x", bounds=(0, 1)), "rate": dp.mean("b")},
    )
    print("shrunk: of intervals of the noise, how many hold, with shrinking (without)")
    for shape in SHAPES:
        for epsilon in prices:
            held = {name: [] for name in asked}
            for _ in range(releases):
                sizes = np.maximum(np.rint(draw.lognormal(4.5, 1, 30)), 2) + 1e-9 * np.arange(30)
                rates = np.clip(
                    0.4 + SHAPES[shape](draw, sizes, np.exp(draw.uniform(-4.5, -1))), 0, 1
                )
                g = np.repeat(np.arange(30), sizes.astype(int))
                b = draw.random(len(g)) < rates[g]
                x = np.clip(rates[g] + draw.normal(0, 0.1, len(g)), 0, 1)
                by = private(pl.DataFrame({"g": g, "x": x, "b": b})).group_by(
                    "g", keys=list(range(30))
                )
                for name, aggregate in asked.items():
                    truth = by.agg(v=aggregate).release(**EXACT).table["v"].to_numpy()
                    out = by.agg(v=aggregate).release(epsilon=epsilon, covers="noise")
                    for one in (out.shrink(), out):
                        ends = one.accuracy().select("lower", "upper").to_numpy().T
                        held[name].append((ends[0] - 1e-6 <= truth) & (truth <= ends[1] + 1e-6))
            for name, found in held.items():
                after, before = np.mean(found[::2]), np.mean(found[1::2])
                print(f"{shape:22} ε={epsilon:g} {name:5} {after:.3f} ({before:.3f})", flush=True)


def main(releases: int = 200, *words: str) -> None:
    prices = [float(word[2:]) for word in words if word.startswith("e=")] or PRICES
    words = [word for word in words if not word.startswith("e=")]
    if not words or words != ["shrunk"]:
        of_tables(releases, words, prices)
    if not words or "shrunk" in words:
        of_shrunk(releases, prices)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
