"""The most memory that a release holds on a Parquet file larger than it, and how long it takes.

    python benchmarks/memory.py       # 100 million rows, 10 million people, three groups each: 1.5 GB of disk
    python benchmarks/memory.py --rows 1e7 --ids text

The file is made in pieces, in one process; another one asks, and says its peak of resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GROUPS, EACH, PIECE = 1000, 10, 5_000_000


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


def ask(path: Path) -> dict[str, float]:
    """One release in this process."""
    import polars as pl

    import dpframe as dp

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, used = time.perf_counter(), time.process_time()
    frame = dp.protect(pl.scan_parquet(path), unit="user", budget=dp.Budget(epsilon=10))
    grouped = frame.group_by("shop", keys=list(range(GROUPS)), max_groups=3, max_rows_per_group=4)
    out = grouped.agg(n=dp.count(), spend=dp.sum("spend", bounds=(0, 100))).release(epsilon=1)
    assert out.table.height == GROUPS
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - used,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,  # KiB on Linux
        "import_gib": before / 2**20,
    }


def run(*arguments: str) -> str:
    """This script in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def measured(rows: int, ids: str = "numbers", folder: str | None = None) -> dict[str, float]:
    """Seconds and peak memory of a release on so many rows."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "visits.parquet"
        run("--make", str(path), "--rows", str(rows), "--ids", ids)
        size = path.stat().st_size / 2**30
        return {"rows": rows, "file_gib": size, **json.loads(run("--ask", str(path)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--ids", choices=["numbers", "text"], default="numbers")
    parser.add_argument("--folder", help="where the file is made, and removed after")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.make, int(given.rows), given.ids)
    elif given.ask:
        print(json.dumps(ask(given.ask)))
    else:
        found = measured(int(given.rows), given.ids, given.folder)
        print(", ".join(f"{name} {value:.2f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
