"""Errors of statistics of whole numbers and conditions, beside those of
the same column cast to float.

Each group is one draw: 2,000 groups of 1,000 rows, and of 400. A person is in one group. `one row`:
each person has one row, at ε = 0.1. `weighted`: each has four, of which a limit of three is
enforced by weights, at ε = 0.4. Printed is the root mean square error of the whole numbers over
that of the floats; 1.00 is no difference, give or take 0.05.

    python benchmarks/whole_numbers.py [GROUPS]
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import polars as pl

import dpframe as dp

BOUNDS = ((0, 1), (0, 3), (0, 5), (-3, 0), (-2, 5), (-5, -2), (0, 10), (18, 99))
SIZES = (1000, 400)  # rows of a group
STATISTICS = {
    "mean": lambda column, bounds: dp.mean(column, bounds=bounds),
    "std": lambda column, bounds: dp.std(column, bounds=bounds),
    "corr": lambda column, bounds: dp.corr(
        column, "beside", bounds={column: bounds, "beside": (0, 1)}
    ),
}


def table(bounds: tuple[int, int], groups: int, size: int, rows: int) -> pl.DataFrame:
    """Whole numbers of which small ones are the most frequent, as they are and as floats."""
    draw, number = np.random.default_rng(size), groups * size
    low, high = bounds
    values = low + draw.binomial(high - low, 0.3, number)
    return pl.DataFrame(
        {
            "person": np.arange(number) // rows,
            "group": np.repeat(np.arange(groups), size),
            "whole": pl.Series(values == high) if bounds == (0, 1) else values,
            "float": values.astype(float),
            "beside": draw.random(number),
        }
    )


def errors(
    data: pl.DataFrame,
    column: str,
    statistic: str,
    bounds: tuple[int, int],
    relation: str,
    most: int,
) -> float:
    """The root mean square error of one statistic over the groups."""
    groups = data["group"].n_unique()
    frame = data.dp(unit="person", budget=dp.Budget(epsilon=1), neighbors=relation)
    within = None if data.schema[column] == pl.Boolean and statistic != "corr" else bounds
    grouped = frame.group_by(
        "group", keys=list(range(groups)), max_groups=1, max_rows_per_group=4, max_rows=most
    )
    epsilon = 0.4 if most > 1 else 0.1
    released = (
        grouped.agg(x=STATISTICS[statistic](column, within)).release(epsilon=epsilon).to_polars()
    )
    number = pl.col(column).cast(float)
    exact = {"mean": number.mean(), "std": number.std(), "corr": pl.corr(number, "beside")}[
        statistic
    ]
    true = data.group_by("group").agg(exact.alias("true")).join(released, on="group")
    return float(np.sqrt(np.nanmean((true["x"] - true["true"]).to_numpy() ** 2)))


def main(groups: int) -> None:
    print("statistic bounds     rows  limits    relation    whole / float")
    cases = [(s, b) for s in STATISTICS for b in (BOUNDS if s == "mean" else BOUNDS[:3])]
    settings = list(itertools.product(SIZES, ((1, "one row"), (4, "weighted"))))
    for (statistic, bounds), (size, (rows, limits)) in itertools.product(cases, settings):
        data = table(bounds, groups, size, rows)
        for relation in ("add-remove", "replace"):
            asked = (statistic, bounds, relation, min(rows, 3))
            one, other = (errors(data, column, *asked) for column in ("whole", "float"))
            figures = f"{one:.4f} / {other:.4f} = {one / other:.2f}"
            print(
                f"{statistic:9} {bounds!s:10} {size:4}  {limits:8}  {relation:10}  {figures}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
