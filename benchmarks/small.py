"""Processor time of small releases, beside the plain query of Polars that
enforces the limits of the release.

    python benchmarks/small.py [--repeats 300]

A table in memory with 10,000 rows of 2,000 people, and two questions: a sum, and a count and a mean
in five listed groups. Each is typed anew and released again and again, as a dashboard does, from a
budget in memory. The column "first" has the time of the first release of a question, which also
compiles it, and in the first row loads libraries.

Prints for each question and each kind of table the median time of a release and of the plain query
in milliseconds of processor time, their ratio, and the limit that the project sets itself for
Polars tables. Both run in turns. Each time is the mean of ten runs, since the clock of a process
may have steps of ten milliseconds. Processor time adds up all threads, so it hardly depends on what
else the machine does; the clock of a busy machine would.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl

import dpframe as dp

ROWS, PEOPLE, GROUPS = 10_000, 2_000, 5
RUNS = 10  # in a row, for one time
BOUNDS = (0, 100)
ROW = "{:26} {:9} {:>9} {:>11} {:>10} {:>7} {:>9}"


def table() -> pl.DataFrame:
    """The rows: a person, a group, and a number inside its bounds or above."""
    import numpy as np

    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "id": draw.integers(0, PEOPLE, ROWS),
            "g": draw.integers(0, GROUPS, ROWS),
            "x": draw.uniform(0, 150, ROWS),
        }
    )


def ask_sum(frame: Any) -> Any:
    return frame.sum("x", bounds=BOUNDS, max_rows=5)


def ask_groups(frame: Any) -> Any:
    groups = frame.group_by("g", keys=list(range(GROUPS)), max_groups=2, max_rows=5)
    return groups.agg(n=dp.count(), m=dp.mean("x", bounds=BOUNDS))


def plain_sum(rows: pl.DataFrame) -> pl.DataFrame:
    """Sums of clipped values in which no person counts for more than five rows."""
    people = rows.lazy().group_by("id").agg(pl.len().alias("n"), pl.col("x").clip(*BOUNDS).sum())
    return people.select(
        (pl.col("x") * pl.min_horizontal(pl.col("n"), 5) / pl.col("n")).sum()
    ).collect()


def plain_groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Counts and means in which a person counts in two groups chosen by a
    hash, and for five rows in all.
    """
    cells = rows.lazy().filter(pl.col("g").is_in(list(range(GROUPS)))).group_by("id", "g")
    cells = cells.agg(pl.len().alias("n"), pl.col("x").clip(*BOUNDS).sum())
    cells = cells.filter(pl.struct("id", "g").hash(1).rank("ordinal").over("id") <= 2)
    all_rows = pl.col("n").sum().over("id")
    cells = cells.with_columns((pl.min_horizontal(all_rows, 5) / all_rows).alias("w"))
    totals = cells.group_by("g").agg(
        (pl.col("n") * pl.col("w")).sum(), (pl.col("x") * pl.col("w")).sum()
    )
    return totals.with_columns(pl.col("x") / pl.col("n")).sort("g").collect()


QUESTIONS: list[tuple[str, Callable[[Any], Any], Callable[[pl.DataFrame], pl.DataFrame], float]] = [
    ("sum", ask_sum, plain_sum, 10.0),
    ("count and mean, 5 groups", ask_groups, plain_groups, 10.0),
]


def milliseconds(call: Callable[[], Any], runs: int = RUNS) -> float:
    """Processor time of one run, as the mean of several in a row (ms)."""
    start = time.process_time()
    for _ in range(runs):
        call()
    return (time.process_time() - start) / runs * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=300, help="releases of each question")
    repeats = max(1, parser.parse_args().repeats // RUNS)
    warnings.simplefilter("ignore")  # the budget is as large as the releases are many
    rows = table()
    print(
        f"{ROWS:,} rows of {PEOPLE:,} people; medians of {repeats} times of {RUNS} runs each, in "
        "ms of processor time"
    )
    print(ROW.format("question", "table", "first", "release", "plain", "ratio", "limit"))
    for name, ask, plain, limit in QUESTIONS:
        for kind, convert in (("Polars", lambda rows: rows), ("pandas", pl.DataFrame.to_pandas)):
            frame = dp.protect(convert(rows), unit="id", budget=dp.Budget(epsilon=1e6))

            def release(frame: Any = frame, ask: Callable[[Any], Any] = ask) -> Any:
                return ask(frame).release(epsilon=1.0)

            first = milliseconds(release, 1)
            plain(rows)
            times = [
                (milliseconds(release), milliseconds(lambda plain=plain: plain(rows)))
                for _ in range(repeats)
            ]
            mine, other = (statistics.median(column) for column in zip(*times, strict=True))
            words = f"{limit:.0f} ms" if kind == "Polars" else ""
            figures = f"{first:.1f}", f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.1f}", words
            print(ROW.format(name, kind, *figures), flush=True)


if __name__ == "__main__":
    main()
