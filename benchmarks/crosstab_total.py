"""The total of a crosstab of 5,000 cells, summed from noisy cells and
bought for a part of the price.

    python benchmarks/crosstab_total.py [--releases 40]

20,000 people in 50 by 100 cells at ε = 1, without δ. Both tables are released in turns. For cells,
sums of rows and of columns, and the total: root of the mean squared error against the true table,
the stated 95% error, and how many numbers are beyond it (0.05 is stated).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

import dpframe as dp
from dpframe.release.shown.error_tables import crosstab

PARTS = {
    "cells": np.s_[:-1, :-1],
    "rows": np.s_[:-1, -1],
    "columns": np.s_[-1, :-1],
    "total": np.s_[-1, -1],
}


def main() -> None:
    """Print a line for each kind of number."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--releases", type=int, default=40)
    releases = reader.parse_args().releases
    warnings.simplefilter("ignore", dp.errors.DpFrameWarning)
    draw = np.random.default_rng(0)
    people = pd.DataFrame({"a": draw.integers(0, 50, 20_000), "b": draw.integers(0, 100, 20_000)})
    truth = pd.crosstab(people["a"], people["b"], margins=True).to_numpy()
    frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1e9))
    keys = {"a": list(range(50)), "b": list(range(100))}
    off: dict[object, list[np.ndarray]] = {True: [], "measured": []}
    stated = {}
    for _ in range(releases):
        for margins, found in off.items():
            out = frame.crosstab("a", "b", keys=keys, margins=margins).release(epsilon=1)
            grid = crosstab(out._numbers, 0.05)
            found.append(np.asarray(grid.numbers, float) - truth)
            stated[margins] = grid.errors
    print(
        f"{'number':8} {'summed':>8} {'bought':>8} {'ratio':>6} {'stated':>8} {'stated':>8} "
        f"{'missed':>7} {'missed':>7}"
    )
    for name, part in PARTS.items():
        errors, misses, ends = [], [], []
        for margins, found in off.items():
            some = np.array(found)[(slice(None), *part)]
            errors.append(float(np.sqrt((some**2).mean())))
            misses.append(float((np.abs(some) > stated[margins][part]).mean()))
            ends.append(float(np.max(stated[margins][part])))
        before, after = errors
        print(
            f"{name:8} {before:8.3g} {after:8.3g} {after / before:6.2f} {ends[0]:8.3g} "
            f"{ends[1]:8.3g} {misses[0]:7.3f} {misses[1]:7.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
