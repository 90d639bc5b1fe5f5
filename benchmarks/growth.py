"""How the cost of a release grows, beside the plain query of the engine that
enforces the limits of the release.

    python benchmarks/growth.py # every case: some ten minutes on two cores python
    benchmarks/growth.py --only median keys # the cases whose name has one of these words python
    benchmarks/growth.py --doubled # a table: each size, twice and four times as large

Prints one line for each case: the processor time of the plain query and of the release, their
ratio, and the limit that the project sets itself. Both run in turns, and the least of several runs
counts. Processor time adds up all threads, so it hardly depends on what else the machine does.

The plain query is what a user of the engine writes without dpframe, and without privacy, under the
same limits: each unit keeps some of its groups, of each group some of its rows, and the rest is
added up. A query without limits is cheaper, and no bound holds for it. Where no plain query exists
(a report, a Parquet file), the limit is in seconds.

The table of growth says what the size of a question costs: see `doubled.py`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp

BOUNDS = (0, 100)
GROUPS, EACH = 3, 2  # the limits of most cases: groups of a unit, and its rows in each
DRAW = np.random.default_rng(1)


@dataclass(frozen=True)
class Case:
    """A release, and what it is held against: the most times the
    plain query, or the most seconds.
    """

    name: str
    most: float
    release: Callable[[], object]
    plain: Callable[[], object] | None = None
    runs: int = 5


# Tables and the two sides of a question


def visits(rows: int, groups: int, *, each: int = 10) -> pl.DataFrame:
    """Rows in random order: `each` of a person, every one in a random group."""
    columns = {
        "user": DRAW.integers(0, max(rows // each, 1), rows),
        "shop": DRAW.integers(0, groups, rows),
        "item": DRAW.integers(0, 5000, rows),
        "spend": DRAW.uniform(0, 150, rows),
    }
    return pl.DataFrame(columns)


def private(table: Any) -> Any:
    """The protected table, with a budget for many releases."""
    return dp.protect(table, unit="user", budget=dp.Budget(epsilon=1e6, delta=1e-3))


def by_shop(table: Any, groups: int, **limits: Any) -> Any:
    """The protected table by listed shops, under the limits of most cases."""
    limits = limits or {"max_groups": GROUPS, "max_rows_per_group": EACH}
    return private(table).group_by("shop", keys=list(range(groups)), **limits)


def limited(per_group: Any, most: int = GROUPS) -> pl.LazyFrame:
    """Rows per person and group: some `most` of them for each person."""
    kept: pl.LazyFrame = per_group.filter(pl.int_range(pl.len()).over("user") < most)
    return kept


def first_rows(table: pl.DataFrame, value: pl.Expr) -> pl.LazyFrame:
    """The first values of each person in each of the groups that the person keeps."""
    per_group = table.lazy().group_by("user", "shop").agg(value.head(EACH))
    return limited(per_group).explode(value.meta.output_name())


def sums(table: pl.DataFrame, *values: pl.Expr) -> pl.LazyFrame:
    """Count and sums by group: of each person the groups that are kept, with
    rows weighted down to the limit.
    """
    per_group = (
        table.lazy()
        .group_by("user", "shop")
        .agg(pl.len().alias("n"), *(value.sum() for value in values))
    )
    weight = pl.min_horizontal("n", EACH) / pl.col("n")
    names = [value.meta.output_name() for value in values]
    kept = limited(per_group).with_columns(pl.col("n", *names) * weight)
    return kept.group_by("shop").agg(pl.col("n", *names).sum())


# Cases


def median_cases() -> Iterator[Case]:
    """Grouped medians of 1,024 candidates."""
    for groups in (1000, 10_000):
        table = visits(10**6, groups)
        asked = by_shop(table, groups).agg(m=dp.median("spend", bounds=BOUNDS))

        def plain(table: pl.DataFrame = table) -> object:
            rows = first_rows(table, pl.col("spend").clip(*BOUNDS))
            return rows.group_by("shop").agg(pl.col("spend").median()).collect()

        yield Case(f"median, {groups:,} groups, 1e6 rows", 5, released(asked), plain)


def released(asked: Any) -> Callable[[], object]:
    """A release of a question, with its table."""
    return lambda: asked.release(epsilon=1).table


def statistic_cases() -> Iterator[Case]:
    """Variances and numbers of different values."""
    table = visits(10**6, 1000)
    value = pl.col("spend").clip(*BOUNDS)
    yield Case(
        "variance, 1,000 groups, 1e6 rows",
        3,
        released(by_shop(table, 1000).agg(v=dp.var("spend", bounds=BOUNDS))),
        lambda: sums(table, value, (value**2).alias("square")).collect(),
    )
    dense = visits(10**6, 1000, each=250)

    def different() -> object:
        rows = first_rows(dense, pl.col("item").unique())
        return rows.group_by("shop").agg(pl.col("item").n_unique()).collect()

    asked = by_shop(dense, 1000).agg(d=dp.n_unique("item"))
    yield Case("n_unique, 250 rows a unit, 1,000 groups, 1e6 rows", 3, released(asked), different)

    def all_different() -> object:
        rows = (
            dense.lazy()
            .select("user", "item")
            .unique()
            .filter(pl.int_range(pl.len()).over("user") < 100)
        )
        return rows.select(pl.col("item").n_unique()).collect()

    one = private(dense).agg(d=dp.n_unique("item"), max_rows=100)
    yield Case("n_unique, 250 rows a unit, one number, 1e6 rows", 3, released(one), all_different)


def key_cases() -> Iterator[Case]:
    """A million listed keys."""
    table = visits(10**6, 10**6)
    asked = by_shop(table, 10**6).agg(n=dp.count(), spend=dp.sum("spend", bounds=BOUNDS))
    listed = pl.LazyFrame({"shop": np.arange(10**6)})
    totals = sums(table, pl.col("spend").clip(*BOUNDS))
    yield Case(
        "1e6 listed keys, count and sum, 1e6 rows",
        2,
        released(asked),
        lambda: listed.join(totals, on="shop", how="left").fill_null(0).collect(),
    )


def crosstab_cases() -> Iterator[Case]:
    """Crosstabs with measured margins, also with every step of publication."""
    for size in (300, 1000):
        columns = {name: DRAW.integers(0, size, 10**6) for name in ("a", "b")}
        table = pl.DataFrame({"user": DRAW.integers(0, 10**5, 10**6), **columns})
        keys = {"a": list(range(size)), "b": list(range(size))}
        asked = private(table).crosstab("a", "b", keys=keys, margins="measured", max_rows=5)

        def plain(table: pl.DataFrame = table) -> object:
            rows = table.lazy().filter(pl.int_range(pl.len()).over("user") < 5)
            cells = rows.group_by("a", "b").len().collect()
            return (
                cells.pivot("b", index="a", values="len"),
                cells.group_by("a").sum(),
                cells.group_by("b").sum(),
            )

        def published(asked: Any = asked) -> None:
            out = asked.release(epsilon=1)
            whole = out.nonnegative().round()
            for one in (out, whole, whole.suppress(10, secondary=True)):
                one.table, one.accuracy(), one.report(), one._repr_html_()
            with TemporaryDirectory() as folder:
                out.to_parquet(f"{folder}/t.parquet")

        if size == 300:
            yield Case(
                "crosstab 300 × 300 with measured margins, 1e6 rows", 5, released(asked), plain
            )
        else:
            yield Case("crosstab 1,000 × 1,000, every step of publication", 10, published, runs=2)


def publication_cases() -> Iterator[Case]:
    """What is done with a released table of 100,000 groups."""
    groups = 10**5
    asked = by_shop(visits(10**6, groups), groups).agg(
        n=dp.count(), spend=dp.mean("spend", bounds=BOUNDS)
    )
    out = asked.release(epsilon=1)
    folder = TemporaryDirectory()

    def step_of(step: Callable[[Any], object]) -> Callable[[], object]:
        """A step on a release whose intervals nobody has asked for yet:
        they are kept with its numbers.
        """
        return lambda: step(replace(out, _numbers=replace(out._numbers)))

    steps = {
        "accuracy()": lambda fresh: fresh.accuracy(),
        "report()": lambda fresh: str(fresh.report()),
        "HTML": lambda fresh: fresh._repr_html_(),
        "Parquet": lambda fresh: fresh.to_parquet(f"{folder.name}/t.parquet"),
    }
    for name, step in steps.items():
        yield Case(f"{name} of 1e5 groups", 0.3, step_of(step))


def marginal_cases() -> Iterator[Case]:
    """All tables of three columns."""
    for columns, rows, most in ((10, 10**6, 1.5), (20, 10**5, 2.0)):
        names = [f"c{i}" for i in range(columns)]
        cells = {name: DRAW.integers(0, 5, rows) for name in names}
        table = pl.DataFrame({"user": DRAW.integers(0, rows // 10, rows), **cells})
        asked = private(table).marginals(
            names, keys={n: list(range(5)) for n in names}, workload="3-way", max_rows=5
        )

        def plain(table: pl.DataFrame = table, names: list[str] = names) -> object:
            rows = table.lazy().filter(pl.int_range(pl.len()).over("user") < 5).collect()
            return pl.collect_all(
                [rows.lazy().group_by(three).len() for three in combinations(names, 3)]
            )

        release = lambda asked=asked: asked.release(epsilon=1, delta=1e-9)  # noqa: E731
        yield Case(
            f"3-way marginals of {columns} columns, {rows:.0e} rows", most, release, plain, 3
        )


def limit_cases() -> Iterator[Case]:
    """Limits on rows alone, and limits that dp.Auto chooses."""
    table = visits(10**6, 1000)
    value = pl.col("spend").clip(*BOUNDS)
    totals = {"n": dp.count(), "spend": dp.sum("spend", bounds=BOUNDS)}

    def rows_only() -> object:
        rows = table.lazy().filter(pl.int_range(pl.len()).over("user") < 5)
        return rows.group_by("shop").agg(pl.len(), value.sum()).collect()

    yield Case(
        "max_rows without max_groups, 1,000 groups, 1e6 rows",
        1.5,
        released(by_shop(table, 1000, max_rows=5).agg(**totals)),
        rows_only,
    )
    large = visits(10**7, 1000).drop("item")
    auto = by_shop(large, 1000, limits=dp.Auto()).agg(**totals)
    chosen = auto.release(epsilon=1)._statement["chosen"]["limits"]
    fixed = by_shop(large, 1000, **chosen).agg(**totals)
    yield Case(
        "dp.Auto beside the limits that it chose, 1,000 groups, 1e7 rows",
        2,
        released(auto),
        released(fixed),
        3,
    )


CASES = {
    "median": median_cases,
    "statistics": statistic_cases,
    "keys": key_cases,
    "crosstab": crosstab_cases,
    "publication": publication_cases,
    "marginals": marginal_cases,
    "limits": limit_cases,
}


# Measuring


def least(case: Case) -> tuple[float, float | None]:
    """Seconds of processor time of the release, and of the plain query:
    each the least of the runs, taken in turns.
    """
    calls = [case.release, *([case.plain] if case.plain else [])]
    used = [[] for _ in calls]  # type: list[list[float]]
    for _ in range(case.runs):
        for call, times in zip(calls, used, strict=True):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    ours, *plain = (min(times) for times in used)
    return ours, plain[0] if plain else None


def line(case: Case) -> str:
    """The line that is printed of a case."""
    ours, plain = least(case)
    if plain is None:
        return (
            f"{case.name:64} {'':>10} {ours:9.3f} s {ours:7.2f} s of {case.most:g} "
            f"s{flag(ours, case.most)}"
        )
    ratio = ours / plain
    return (
        f"{case.name:64} {plain:9.3f}s {ours:9.3f} s {ratio:7.2f} × of {case.most:g} "
        f"×{flag(ratio, case.most)}"
    )


def flag(value: float, most: float) -> str:
    """A mark behind what is above its limit."""
    return "" if value <= most else "   <-- above"


def memory(entry: str) -> float:
    """Resident memory of this process on Linux, in MiB:
    now ("VmRSS") or at most since the last reset ("VmHWM").
    """
    (number,) = (
        row.split()[1]
        for row in Path("/proc/self/status").read_text().splitlines()
        if row.startswith(entry)
    )
    return int(number) / 2**10


def memory_of_medians() -> None:
    """In a process of its own: the memory that 10,000 medians take on top of
    the table and what is imported.
    """
    small = by_shop(visits(1000, 10), 10).agg(m=dp.median("spend", bounds=BOUNDS))
    small.release(epsilon=1)
    asked = by_shop(visits(10**6, 10_000), 10_000).agg(m=dp.median("spend", bounds=BOUNDS))
    Path("/proc/self/clear_refs").write_text("5")  # resets the largest so far
    before = memory("VmRSS")
    asked.release(epsilon=1)
    print(json.dumps(memory("VmHWM") - before))


def main() -> None:
    """Measure the cases that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], help="words that the names of cases contain"
    )
    parser.add_argument("--doubled", action="store_true", help="print the table of growth")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.doubled:
        from doubled import doubled  # which imports this module

        doubled(options.only)
        return
    if options.memory:
        memory_of_medians()
        return
    print(f"{'processor time':64} {'plain':>10} {'dpframe':>11} {'ratio':>9}", flush=True)
    for name, cases in CASES.items():
        if not any(word in name for word in options.only):
            continue
        for case in cases():
            print(line(case), flush=True)
    if any(word in "median" for word in options.only):
        command = [sys.executable, str(Path(__file__)), "--memory"]
        used = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(
            f"{'memory of 10,000 medians, beside the table':64} {'':>10} {used:7.0f} MiB of 150 "
            f"MiB{flag(used, 150)}"
        )


if __name__ == "__main__":
    main()
