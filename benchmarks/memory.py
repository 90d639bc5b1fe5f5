"""The most memory that a release holds on a Parquet file larger than it, and how long it takes.

    python benchmarks/memory.py       # 100 million rows of 10 million people: 1.5 GB of disk
    python benchmarks/memory.py --rows 1e7 --ids text
    python benchmarks/memory.py --questions sums median

The file is made in pieces, in one process. Each question is asked in a process of its own, which
says its peak of resident memory. "plain" is the sums under these limits without noise, as a user
would write them in Polars. Where it is asked, each processor time is held against its own, with the
limit that the project sets itself.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

GROUPS, EACH, PIECE = 1000, 10, 5_000_000
QUESTIONS = ["plain", "sums", "median", "auto"]
MOST_GIB, MOST_TIMES = 3, 1.5  # of memory, and times the plain query


def make(path: Path, rows: int, ids: str) -> None:
    """Rows in random order: ten of each person, in three groups of theirs."""
    import numpy as np
    import polars as pl
    import pyarrow.parquet as pq

    draw, people = np.random.default_rng(1), max(rows // EACH, 1)
    writer = None
    for start in range(0, rows, PIECE):
        many = min(PIECE, rows - start)
        person = draw.integers(0, people, many)
        group = (person * 7 + 311 * draw.integers(0, 3, many)) % GROUPS
        piece = pl.DataFrame({"user": person, "shop": group, "spend": draw.uniform(0, 150, many)})
        if ids == "text":
            piece = piece.with_columns(pl.format("user-{}", "user").alias("user"))
        table = piece.to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def ask(path: Path, question: str) -> dict[str, float]:
    """One release, or the plain query, in this process."""
    import polars as pl

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, used = time.perf_counter(), time.process_time()
    table = plain(path) if question == "plain" else released(pl.scan_parquet(path), question)
    assert table.height == GROUPS
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - used,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,  # KiB on Linux
        "import_gib": before / 2**20,
    }


def released(rows: Any, question: str) -> Any:
    """The table of one release."""
    import dpframe as dp

    frame = dp.protect(rows, unit="user", budget=dp.Budget(epsilon=10))
    limits = (
        {"limits": dp.Auto()} if question == "auto" else {"max_groups": 3, "max_rows_per_group": 4}
    )
    median = {"middle": dp.median("spend", bounds=(0, 100))}
    sums = {"n": dp.count(), "spend": dp.sum("spend", bounds=(0, 100))}
    grouped = frame.group_by("shop", keys=list(range(GROUPS)), **limits)
    return grouped.agg(**(median if question == "median" else sums)).release(epsilon=1).table


def plain(path: Path) -> Any:
    """Three groups of each person and four rows in each, without
    noise, on Polars' streaming engine.
    """
    import polars as pl

    spend = pl.col("spend").clip(0, 100)
    pairs = (
        pl.scan_parquet(path)
        .group_by("user", "shop")
        .agg(n=pl.len().clip(0, 4), spend=spend.head(4).sum())
    )
    kept = pairs.group_by("user").agg(pl.all().head(3)).explode("shop", "n", "spend")
    return kept.group_by("shop").agg(pl.col("n", "spend").sum()).collect(engine="streaming")


def run(*arguments: str) -> str:
    """This script in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def measured(
    rows: int, ids: str = "numbers", folder: str | None = None, questions: Sequence[str] = ("sums",)
) -> Iterator[dict[str, Any]]:
    """Seconds and peak memory of each question on so many rows."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "visits.parquet"
        run("--make", str(path), "--rows", str(rows), "--ids", ids)
        size = path.stat().st_size / 2**30
        for question in questions:
            found = json.loads(run("--ask", str(path), "--questions", question))
            yield {"question": question, "rows": rows, "file_gib": size, **found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--ids", choices=["numbers", "text"], default="numbers")
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=QUESTIONS)
    parser.add_argument("--folder", help="where the file is made, and removed after")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.make, int(given.rows), given.ids)
    elif given.ask:
        print(json.dumps(ask(given.ask, *given.questions)))
    else:
        print(
            f"{given.rows:.0e} rows of {given.rows / EACH:.0e} people, from Parquet; "
            "processor time",
            flush=True,
        )
        plain_time = None
        for found in measured(int(given.rows), given.ids, given.folder, given.questions):
            seconds = found["cpu_seconds"]
            ratio = f"{seconds / plain_time:6.2f} × of {MOST_TIMES} ×" if plain_time else ""
            most = f"of {MOST_GIB} GiB" if found["question"] != "plain" else ""
            plain_time = seconds if found["question"] == "plain" else plain_time
            print(
                f"{found['question']:8} {seconds:8.1f} s {ratio:18} {found['peak_gib']:6.2f} GiB "
                f"{most}",
                flush=True,
            )


if __name__ == "__main__":
    main()
