"""How many 95% intervals for the population say nothing:
of a ratio, a slope and a correlation of few people.

    python benchmarks/infinite.py [--releases 50] [--people 40 100 300]

One row for each person, values from 0 to 1 inside bounds of (0, 1), ε = 1 and 4 without δ; the
correlation is 0.7. "infinite" are intervals with an infinite or a missing end, "wide" those that
are no narrower than what bounds say by themselves: a correlation from -1 to 1, and a ratio or slope
of any size. Numbers that noise hides are missing, and so are their intervals: they are counted
apart.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import polars as pl

import dpframe as dp

BOUNDS = {"x": (0, 1), "y": (0, 1)}


def intervals(
    frame: dp.PrivateFrame, statistic: str, epsilon: float
) -> tuple[float | None, float | None, float | None]:
    """The number of a release and its interval."""
    if statistic == "slope":
        out = frame.ols("y ~ x").release(epsilon=epsilon)
        row = next(row for row in out.to_polars().iter_rows(named=True) if row["term"] == "x")
        return row["coefficient"], row["low"], row["high"]
    asked = {
        "ratio": lambda: dp.ratio(dp.sum("x"), dp.sum("y")),
        "correlation": lambda: dp.corr("x", "y"),
    }[statistic]()
    row = (
        frame.agg(r=asked)
        .release(epsilon=epsilon, ci=0.95, covers="population")
        .to_polars()
        .row(0, named=True)
    )
    return row["r"], row["r_population_low"], row["r_population_high"]


def main() -> None:
    """Print a table in Markdown."""
    reader = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    reader.add_argument("--releases", type=int, default=50)
    reader.add_argument("--people", type=int, nargs="*", default=[40, 100, 300])
    options = reader.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| statistic | people | ε | infinite | as wide as the bounds | missing "
        "|\n|---|---:|---:|---:|---:|---:|"
    )
    for statistic in ("ratio", "correlation", "slope"):
        for people in options.people:
            draw = np.random.default_rng(people)
            x, y = draw.uniform(0, 1, (2, people))
            rows = pl.DataFrame({"x": x, "y": (x + y) / 2})
            frame = rows.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6), bounds=BOUNDS)
            for epsilon in (1.0, 4.0):
                found = [intervals(frame, statistic, epsilon) for _ in range(options.releases)]
                missing = [number is None or not np.isfinite(number) for number, *_ in found]
                ends = [pair for (_, *pair), gone in zip(found, missing, strict=True) if not gone]
                infinite = sum(None in pair or not np.all(np.isfinite(pair)) for pair in ends)
                wide = sum(
                    statistic == "correlation" and None not in pair and pair[1] - pair[0] >= 2
                    for pair in ends
                )
                parts = (f"{some / len(found):.0%}" for some in (infinite, wide, sum(missing)))
                print(f"| {statistic} | {people} | {epsilon:g} | {' | '.join(parts)} |", flush=True)


if __name__ == "__main__":
    main()
