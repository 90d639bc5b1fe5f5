"""Medians by group on Polars, DuckDB and Spark:
time of a release, and the least that each engine takes for its shape.

Four groups for each person at most, 1,000 listed groups, bounds, ε = 1. "plain" is the bare query
of the same engine without privacy: rows counted by group and candidate, which every answer of this
kind needs. Printed are the best of several runs: seconds of the clock, seconds of all processors
(with Java's), and the clock as a ratio to the release on Polars. The plain median of Polars is
there for comparison.

    python benchmarks/medians.py [ROWS] [--runs 5] [--engines polars duckdb spark]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import dpframe as dp

GROUPS, HIGH, CANDIDATES = 1000, 200.0, 1024


def visits(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "user": draw.integers(0, rows // 10, rows),
            "shop": draw.integers(0, GROUPS, rows),
            "spend": draw.gamma(2, 20, rows),
        }
    )


def release(table: object) -> Callable[[], object]:
    def run() -> object:
        frame = dp.protect(table, unit="user", budget=dp.Budget(epsilon=1.0))
        grouped = frame.group_by(
            "shop", keys=list(range(GROUPS)), max_groups=4, max_rows_per_group=2
        )
        return grouped.agg(m=dp.median("spend", bounds=(0, HIGH))).release(epsilon=1.0).to_polars()

    return run


BIN = f"CAST(least(greatest(spend, 0), {HIGH}) / {HIGH / CANDIDATES} AS INT)"
PLAIN = f"SELECT shop, {BIN} AS b, count(*) AS n FROM visits GROUP BY 1, 2"


def on_polars(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    table = pl.read_parquet(file)
    yield "release", release(table)
    place = (pl.col("spend").clip(0, HIGH) / (HIGH / CANDIDATES)).cast(pl.Int32)
    yield "plain", lambda: table.lazy().group_by("shop", place.alias("b")).len().collect()
    yield "median", lambda: table.lazy().group_by("shop").agg(pl.col("spend").median()).collect()


def on_duckdb(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM '{file}'")
        yield "release", release(connection.table("visits"))
        yield "plain", lambda: connection.sql(PLAIN).pl()


def on_spark(file: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    from pyspark.sql import SparkSession

    with TemporaryDirectory() as folder:
        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config(
            "spark.local.dir", folder
        )
        builder = builder.config("spark.ui.showConsoleProgress", "false").config(
            "spark.ui.enabled", "false"
        )
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        table = session.read.parquet(str(file)).cache()
        table.count()
        table.createOrReplaceTempView("visits")
        yield "release", release(table)
        yield "plain", lambda: session.sql(PLAIN).toArrow()
        yield "plain by person first", lambda: session.sql(TWICE).toArrow()
        session.stop()


TWICE = (
    f"SELECT shop, b, count(*) AS n FROM (SELECT user, shop, {BIN} AS b FROM visits GROUP BY 1, 2, "
    "3) GROUP BY 1, 2"
)
ENGINES = {"polars": on_polars, "duckdb": on_duckdb, "spark": on_spark}


def processor_time() -> float:
    """Seconds of the processors, of this process and of Java."""
    ticks = os.sysconf("SC_CLK_TCK")
    java = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if name == "java" and int(fields[1]) == os.getpid():
            java += (int(fields[11]) + int(fields[12])) / ticks
    return time.process_time() + java


def best(run: Callable[[], object], runs: int) -> tuple[float, float]:
    """The least seconds of the clock and of the processors, after two runs to warm up."""
    found = []
    for _ in range(runs + 2):
        clock, work = time.perf_counter(), processor_time()
        run()
        found.append((time.perf_counter() - clock, processor_time() - work))
    clocks, works = zip(*found[2:], strict=True)
    return min(clocks), min(works)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    first: tuple[float, float] | None = None
    with TemporaryDirectory() as folder:
        file = Path(folder) / "visits.parquet"
        visits(options.rows).write_parquet(file)
        print(
            f"{options.rows:,} rows, {GROUPS:,} groups\n{'':32}clock   ratio   processors   ratio"
        )
        for engine in options.engines:
            for name, run in ENGINES[engine](file):
                clock, work = best(run, options.runs)
                first = first or (clock, work)
                ratios = clock / first[0], work / first[1]
                print(
                    f"{engine + ', ' + name:30}{clock:7.3f} {ratios[0]:7.2f} {work:12.3f} "
                    f"{ratios[1]:7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
