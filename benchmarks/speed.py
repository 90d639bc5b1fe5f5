"""dpframe beside the same two-level aggregation without privacy, OpenDP and
PipelineDP; and how its cost grows.

    python benchmarks/speed.py # without Spark: under ten minutes on two quiet cores python
    benchmarks/speed.py --large --spark # 100 million rows too, and Spark beside Spark

Prints a table, and writes it with its figures and a chart to benchmarks/results. OpenDP and
PipelineDP run in environments of their own, made from the package index on the first run (`--opendp
PYTHON`, `--pipelinedp PYTHON` take others). What is compared runs in turns, and the fastest run
counts: the others were slowed down by something else. On a machine that others use too, the
processor time says more; the table has both.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
KEYS, BOUNDS = 1000, (0.0, 100.0)
OTHERS = {"opendp": "requirements-opendp.txt", "pipelinedp": "requirements-pipelinedp.txt"}


def in_turns(runs, **calls):
    """Seconds of each call, and seconds of processor time: each the least of several runs."""
    wall, cpu = {name: [] for name in calls}, {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            start, used = time.perf_counter(), time.process_time()
            call()
            wall[name].append(time.perf_counter() - start)
            cpu[name].append(time.process_time() - used)
    return {name: {"seconds": min(wall[name]), "cpu_seconds": min(cpu[name])} for name in calls}


def columns(rows, keys=KEYS):
    """Ten rows of each person, each in a random group."""
    import numpy as np

    draw = np.random.default_rng(1)
    people = max(rows // 10, 1)
    return {
        "user": draw.integers(0, people, rows),
        "shop": draw.integers(0, keys, rows),
        "spend": draw.uniform(0, 150, rows),
    }


# What each process measures: (question, rows, groups, {what: times})


def polars_side(rows):
    import polars as pl

    import dpframe as dp

    def private(table):
        return dp.protect(table, unit="user", budget=dp.Budget(epsilon=1e6, delta=1e-3))

    def query(table, keys):
        grouped = private(table).group_by("shop", keys=keys, max_groups=3, max_rows_per_group=2)
        return grouped.agg(n=dp.count(), spend=dp.sum("spend", bounds=BOUNDS))

    def plain(table):
        per_unit = (
            table.lazy().group_by("user", "shop").agg(pl.len().alias("n"), pl.col("spend").sum())
        )
        return per_unit.group_by("shop").agg(pl.col("n").sum(), pl.col("spend").sum()).collect()

    def timed(question, rows, keys, runs):
        table = pl.DataFrame(columns(rows, keys))
        asked = query(table, list(range(keys)))
        times = in_turns(runs, plain=lambda: plain(table), dpframe=lambda: asked.release(epsilon=1))
        return question, rows, keys, times

    for size in (10**5, 10**6, 10**7):
        if size <= rows:
            yield timed("count and sum by group", size, KEYS, 7)
    yield timed("count and sum by group", min(rows, 10**6), 1, 5)
    yield timed("count and sum by group", min(rows, 10**6), 10**5, 5)
    yield timed("count and sum by group", min(rows, 10**6), 10**6, 5)
    few = pl.DataFrame(columns(10**4))
    one = {
        "dpframe": lambda: private(few).sum("spend", bounds=BOUNDS, max_rows=20).release(epsilon=1)
    }
    yield "one sum", 10**4, 1, in_turns(40, **one)


def opendp_side(rows):
    import warnings

    import opendp.prelude as odp
    import polars as pl

    odp.enable_features("contrib")
    warnings.simplefilter("ignore")

    def context(table):
        return odp.Context.compositor(
            data=table.lazy(),
            privacy_unit=odp.unit_of(contributions=1, identifier=pl.col("user")),
            privacy_loss=odp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[odp.polars.Margin(by=[], max_length=table.height)],
        )

    table = pl.DataFrame(columns(rows))
    keys = pl.LazyFrame({"shop": list(range(KEYS))}, schema={"shop": pl.Int64})

    def grouped():  # its predicate `rank < k` keeps k - 1 groups, so 4 keep 3
        limited = context(table).query().truncate_per_group(2, by=["shop"])
        limited = limited.truncate_num_groups(4, by=["shop"], keep="first")
        asked = (
            limited.group_by("shop").agg(odp.len(), pl.col("spend").dp.sum(BOUNDS)).with_keys(keys)
        )
        return asked.release().collect()

    yield "count and sum by group", rows, KEYS, in_turns(1, opendp=grouped)
    few = pl.DataFrame(columns(10**4))

    def one_sum():
        return (
            context(few)
            .query()
            .truncate_per_group(20)
            .select(pl.col("spend").dp.sum(BOUNDS))
            .release()
            .collect()
        )

    yield "one sum", 10**4, 1, in_turns(3, opendp=one_sum)


def pipelinedp_side(rows):
    from operator import itemgetter

    import pipeline_dp
    from pipeline_dp import Metrics

    table = list(zip(*(column.tolist() for column in columns(rows).values()), strict=True))
    reads = pipeline_dp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1),
        value_extractor=itemgetter(2),
    )

    def grouped():
        account = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        limits = pipeline_dp.AggregateParams(
            metrics=[Metrics.COUNT, Metrics.SUM],
            max_partitions_contributed=3,
            max_contributions_per_partition=2,
            min_value=BOUNDS[0],
            max_value=BOUNDS[1],
        )
        engine = pipeline_dp.DPEngine(account, pipeline_dp.LocalBackend())
        made = engine.aggregate(table, limits, reads, public_partitions=list(range(KEYS)))
        account.compute_budgets()
        return list(made)

    yield "count and sum by group", rows, KEYS, in_turns(1, pipelinedp=grouped)


def spark_side(rows):
    import polars as pl
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql

    import dpframe as dp

    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame(columns(rows)).write_parquet(f"{folder}/t.parquet")
        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
        builder = builder.config("spark.sql.shuffle.partitions", "8").config(
            "spark.local.dir", folder
        )
        builder = builder.config("spark.ui.showConsoleProgress", "false").config(
            "spark.ui.enabled", "false"
        )
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        table = session.read.parquet(f"{folder}/t.parquet")
        private = dp.protect(table, unit="user", budget=dp.Budget(epsilon=1e6))
        grouped = private.group_by(
            "shop", keys=list(range(KEYS)), max_groups=3, max_rows_per_group=2
        )
        asked = grouped.agg(n=dp.count(), spend=dp.sum("spend", bounds=BOUNDS))

        def plain():
            per_unit = table.groupBy("user", "shop").agg(
                sql.count("*").alias("n"), sql.sum("spend").alias("spend")
            )
            return per_unit.groupBy("shop").agg(sql.sum("n"), sql.sum("spend")).collect()

        def shuffled():
            executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
            return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))

        found = {}
        for name, call in {"plain": plain, "dpframe": lambda: asked.release(epsilon=1)}.items():
            before = shuffled()
            call()  # which also warms up
            found[name] = {"shuffled_bytes": shuffled() - before}
        times = in_turns(3, plain=plain, dpframe=lambda: asked.release(epsilon=1))
        yield (
            "count and sum by group, on Spark",
            rows,
            KEYS,
            {name: {**times[name], **found[name]} for name in times},
        )
        session.stop()


SIDES = {
    "polars": polars_side,
    "opendp": opendp_side,
    "pipelinedp": pipelinedp_side,
    "spark": spark_side,
}


# All of them


def interpreter(name, given):
    """The interpreter of another package's own environment."""
    if given or name not in OTHERS:
        return given or sys.executable
    home = Path(tempfile.gettempdir()) / f"dpframe-benchmark-speed-{name}"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        wanted = HERE / "compare" / OTHERS[name]
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "numpy", "-r", str(wanted)], check=True
        )
    return str(python)


def side(name, rows, python):
    """What one process measures; nothing where it cannot run."""
    command = [python, __file__, "--side", name, "--rows", str(rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode:
        print(f"{name}: did not run", file=sys.stderr)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def measured(options):
    from memory import measured as in_memory

    rows = int(options.rows)
    found = side("polars", rows, sys.executable)
    for name, size in (("opendp", rows), ("pipelinedp", rows // 10)):
        found += side(name, size, interpreter(name, getattr(options, name)))
    if options.spark:
        found += [
            row
            for size in (rows // 100, rows // 10, rows)
            for row in side("spark", size, sys.executable)
        ]
    (large,) = in_memory(10**8 if options.large else rows)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load": round(os.getloadavg()[0], 1),
        "large": large,
        "rows": found,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--opendp")
    parser.add_argument("--pipelinedp")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        for row in SIDES[options.side](int(options.rows)):
            print(json.dumps(row), flush=True)
        return
    from report import write

    print(write(measured(options)))


if __name__ == "__main__":
    main()
