"""What `shrink()` does to means by group, on real panels, beside the best fixed limit in hindsight without it.

For each panel, grouping and ε: means are released under max_rows = 1, 2, 4, ..., 64. The error is the root mean square,
over groups and releases, of the released mean less the mean of all rows, so it holds noise and what limits leave out.
Printed: the least error without shrinking, and at the same limit the error with it, as a ratio; the largest such ratio
over all limits; and the share of groups whose 95% interval holds the mean of the rows that the limit leaves.

    python benchmarks/shrink.py FOLDER [δ]     # where benchmarks/compare/panels.py wrote its tables

With a δ the least error is that of releases with this δ, whose noise may be Gaussian.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import polars as pl

import dpframe as dp

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
        squares.append([np.mean((one.table["m"].to_numpy() - truth) ** 2) for one in (out, moved)])
        ends = moved.accuracy()
        held.append(np.mean((ends["lower"].to_numpy() <= limited) & (limited <= ends["upper"].to_numpy())))
    before, after = np.sqrt(np.mean(squares, axis=0))
    return float(before), float(after), float(np.mean(held))


def main() -> None:
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
