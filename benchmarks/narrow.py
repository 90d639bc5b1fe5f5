"""Correlations, covariances and ratios with narrower bounds, beside the error of sampling.

    python benchmarks/narrow.py [--releases 25] [--people 500 5000 50000] [--only corr]

Two columns inside bounds of (0, 3000), one row for each person, ε = 1 without δ. Normal values are
300 ± 40 and 500 ± 60; the logarithms of lognormal ones are 5 ± 0.6; their correlation is about a
half. Printed is the root of the mean squared error against the number of the table, over the
standard error of sampling these people from a population, with the typed bounds and with
`narrow=True`, and the ratio of both; then the same for the median error, since some releases find
no bounds. At 1 privacy costs as much as the sample does. Numbers that noise hides are counted.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import polars as pl

import dpframe as dp

BOUNDS = {"x": (0, 3000), "y": (0, 3000)}


def table(law: str, people: int, draw: np.random.Generator) -> pl.DataFrame:
    """Values of two columns."""
    x, y = draw.standard_normal((2, people))
    y = (x + np.sqrt(3) * y) / 2
    pair = (
        (300 + 40 * x, 500 + 60 * y)
        if law == "normal"
        else (np.exp(5 + 0.6 * x), np.exp(5 + 0.6 * y))
    )
    return pl.DataFrame(dict(zip("xy", (np.clip(one, 0, 3000) for one in pair), strict=True)))


NUMBERS = {
    "corr": lambda rows: np.corrcoef(rows["x"], rows["y"])[0, 1],
    "cov": lambda rows: np.cov(rows["x"], rows["y"])[0, 1],
    "ratio": lambda rows: rows["x"].sum() / rows["y"].sum(),
}


def asked(frame: dp.PrivateFrame, statistic: str, narrow: bool) -> dp.Query:
    """The query. Errors: TypeError where the statistic has no `narrow`."""
    if statistic == "ratio":
        return frame.agg(
            r=dp.ratio(dp.sum("x"), dp.sum("y"), **({"narrow": True} if narrow else {}))
        )
    return getattr(frame, statistic)(["x", "y"], narrow=narrow)


def error(
    frame: dp.PrivateFrame, statistic: str, narrow: bool, true: float, releases: int
) -> np.ndarray:
    """Root of the mean squared error of some releases, and of the median one."""
    squares = []
    for _ in range(releases):
        out = asked(frame, statistic, narrow).release(epsilon=1.0, fill=True)
        squares.append((float(out.value if statistic == "ratio" else out.values[0, 1]) - true) ** 2)
    return np.sqrt([np.mean(squares), np.median(squares)])


def main() -> None:
    """Print a table in Markdown."""
    reader = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    reader.add_argument("--releases", type=int, default=25)
    reader.add_argument("--people", type=int, nargs="*", default=[500, 5000, 50_000])
    reader.add_argument("--only", default="", help="a statistic")
    options = reader.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| statistic | values | people | typed bounds | narrow=True | ratio | median, typed | "
        "narrow=True | ratio |"
    )
    print(f"|---|---|{'---:|' * 7}")
    for statistic, number in NUMBERS.items():
        for law in ("normal", "lognormal"):
            for people in options.people if options.only in statistic else []:
                draw = np.random.default_rng(people)
                rows = table(law, people, draw)
                sampling = np.std([number(table(law, people, draw)) for _ in range(100)])
                frame = rows.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1e9), bounds=BOUNDS)
                typed = error(frame, statistic, False, number(rows), options.releases) / sampling
                try:
                    own = error(frame, statistic, True, number(rows), options.releases) / sampling
                except TypeError:
                    own = np.full(2, np.nan)
                figures = [
                    f"{a:.3g} | {b:.3g} | {b / a:.2g}" for a, b in zip(typed, own, strict=True)
                ]
                print(f"| {statistic} | {law} | {people:,} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
