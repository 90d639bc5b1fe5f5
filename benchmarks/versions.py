"""Errors of two versions of the package on made-up tables: which questions became better or worse.

    python benchmarks/versions.py OLD/src NEW/src FOLDER [--minutes 9] [--part 1/2] [--only "mean"]
    python benchmarks/versions.py OLD/src NEW/src FOLDER --again # what looked worse, with other
    noise python benchmarks/versions.py OLD/src NEW/src FOLDER --report python
    benchmarks/versions.py OLD/src NEW/src FOLDER --laws # noise of totals by its law

A cell is a question, a shape and a size of the table, a price and a relation between neighbours.
Each version answers in one process, in turns with the other, and under the same random words: where
both draw alike their errors are equal, and no chance is between them. What is measured is written
to FOLDER, so that the command goes on where it ended. Cells come in rounds that each ask all
questions, large tables last. `--part 1/2` asks every second cell, and `--repeats` multiplies
releases.

Numbers of one column or two are asked of many tables at once, as groups of which a person is in
one, so that a release gives as many errors as there are groups. Tables, matrices and chosen limits
are released again and again.

`--laws` compares what needs no release: the standard deviation of the noise of each total, and the
scale of each choice, at all prices and relations, which are exact. What a total is used for may
have changed between the versions.

The error is the root of the mean squared difference to the answer of the new version at ε = 1e9.
The ratio is new to old, and ± its standard error, from pairs. A cell is suspect where its ratio is
above 1 by two standard errors, which one in forty is by chance. `--again` measures these with fresh
words and four times the releases, and the report judges by these alone: WORSE is above 1 by three
standard errors. The last columns are processor milliseconds of a cell.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

AT_ONCE, LEAST = 20_000, 20  # people of the tables that are asked as groups, and the fewest tables
RELEASES, AUTO_RELEASES = 8, 4  # of a question that is asked of one table
EXACT = 1e9
# their noise is not that of their totals alone
PRICED_APART = ("crosstab", "hierarchy", "synthetic", "found")
NEED_DELTA = ("found keys", "synthetic rows")
BOUNDS = {"x": (0, 100), "y": (0, 100)}
KEYS = {"g": [0, 1, 2], "h": list(range(8))}
SHAPES, SIZES = ("even", "skewed", "rows"), (100, 1000, 10_000)
PRICES = tuple(itertools.product((0.1, 1.0, 4.0), (0.0, 1e-6)))


class Cell(NamedTuple):
    """What is asked of which table, at which price."""

    question: str
    shape: str
    people: int
    epsilon: float
    delta: float
    neighbors: str

    def words(self) -> str:
        price = f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        return f"{self.question}; {self.shape}, {self.people}; {price}" + (
            "; replace" * (self.neighbors == "replace")
        )


def table(shape: str, people: int, copies: int) -> pl.DataFrame:
    """Even values in three groups, skewed ones in three uneven groups, or one to
    four rows a person, in copies.
    """
    draw, number = np.random.default_rng(people), people * copies
    x, g = draw.uniform(0, 100, number), draw.integers(0, 3, number)
    if shape == "skewed":
        x, g = (
            np.minimum(draw.lognormal(2.5, 1, number), 100),
            draw.choice(3, number, p=[0.8, 0.15, 0.05]),
        )
    rows = np.repeat(np.arange(number), draw.integers(1, 5, number) if shape == "rows" else 1)
    x, g = (
        (x[rows] + (draw.normal(0, 10, len(rows)) if shape == "rows" else 0)).clip(0, 100),
        g[rows],
    )
    y = (x / 2 + draw.uniform(0, 50, len(rows))).clip(0, 100)
    made = pl.DataFrame({"id": rows, "copy": rows // people, "g": g, "x": x, "y": y})
    return made.with_columns(
        h=(pl.col("x") // 12.6).cast(pl.Int64), w=pl.col("x").round().cast(pl.Int64)
    )


def numbers() -> dict[str, Callable[[], dict[str, Any]]]:
    """Questions that are asked of each group of a table."""
    import dpframe as dp

    x, y = "x", "y"
    return {
        "count": lambda: {"n": dp.count()},
        "units": lambda: {"n": dp.count_units()},
        "different values": lambda: {"n": dp.n_unique("h")},
        "sum": lambda: {"s": dp.sum(x)},
        "mean": lambda: {"m": dp.mean(x)},
        "count, mean": lambda: {"n": dp.count(), "m": dp.mean(x)},
        "count, sum": lambda: {"n": dp.count(), "s": dp.sum(x)},
        "sum, mean": lambda: {"s": dp.sum(x), "m": dp.mean(x)},
        "two sums": lambda: {"s": dp.sum(x), "t": dp.sum(y)},
        "two means": lambda: {"m": dp.mean(x), "t": dp.mean(y)},
        "count, mean, median": lambda: {"n": dp.count(), "m": dp.mean(x), "d": dp.median(x)},
        "median": lambda: {"d": dp.median(x)},
        "median, whole numbers": lambda: {"d": dp.median("w", bounds=(0, 100))},
        "median, wide bounds": lambda: {"d": dp.median(x, bounds=(0, 20_000))},
        "9th decile": lambda: {"q": dp.quantile(x, 0.9)},
        "three quantiles": lambda: {"q": dp.quantile(x, [0.1, 0.5, 0.9])},
        "minimum": lambda: {"q": dp.min(x)},
        "maximum": lambda: {"q": dp.max(x)},
        "distribution": lambda: {"c": dp.cdf(x, [20.0, 50.0, 80.0])},
        "variance": lambda: {"v": dp.var(x)},
        "standard deviation": lambda: {"v": dp.std(x)},
        "skewness": lambda: {"v": dp.skew(x)},
        "covariance": lambda: {"v": dp.cov(x, y)},
        "correlation": lambda: {"v": dp.corr(x, y)},
        "ratio": lambda: {"r": dp.ratio(dp.sum(x), dp.sum(y))},
        "weighted mean": lambda: {"m": dp.mean(x, weights="y")},
    }


def tables(frame: Any, rows: int) -> dict[str, Callable[[], Any]]:
    """Questions that are asked of one table."""
    import dpframe as dp

    limits = {"max_groups": min(rows, 3), "max_rows": rows}
    groups, auto = frame.group_by("g", keys=KEYS["g"], **limits), {"limits": dp.Auto()}
    tree = pl.DataFrame(
        list(itertools.product(KEYS["g"], KEYS["h"])), schema=["g", "h"], orient="row"
    )
    forty = list(range(40))
    wide, large = {"g": KEYS["g"], "k": forty}, {"k": forty, "l": forty}
    whole = {"max_groups": rows, "max_rows_per_group": rows, "max_rows": rows}
    return {
        "counts by group": lambda: groups.agg(n=dp.count()),
        "counts and means by group": lambda: groups.agg(n=dp.count(), m=dp.mean("x")),
        "counts and sums in 40 groups": lambda: frame.group_by("k", keys=forty, **whole).agg(
            n=dp.count(), s=dp.sum("x")
        ),
        "sums by group": lambda: groups.agg(s=dp.sum("x")),
        "medians by group": lambda: groups.agg(d=dp.median("x")),
        "variances by group": lambda: groups.agg(v=dp.var("x")),
        "found keys": lambda: frame.group_by("h", **whole).agg(n=dp.count()),
        "crosstab": lambda: frame.crosstab("g", "h", keys=KEYS, **whole),
        "crosstab of 120 cells": lambda: frame.crosstab("g", "k", keys=wide, margins=True, **whole),
        "crosstab of 1,600 cells": lambda: frame.crosstab(
            "k", "l", keys=large, margins="measured", **whole
        ),
        "crosstab, margins": lambda: frame.crosstab("g", "h", keys=KEYS, margins=True, **whole),
        "crosstab, measured margins": lambda: frame.crosstab(
            "g", "h", keys=KEYS, margins="measured", **whole
        ),
        "hierarchy": lambda: frame.hierarchy(["g", "h"], keys=tree, **whole),
        "correlations": lambda: frame.corr(["x", "y"]),
        "covariances": lambda: frame.cov(["x", "y"]),
        "slope": lambda: frame.ols("y ~ x"),
        "description": lambda: frame.describe(["x", "y"]),
        "synthetic rows": lambda: frame.select("id", "g", "h").synthesize(keys=KEYS),
        "counts by group, chosen limits": lambda: frame.group_by("g", keys=KEYS["g"], **auto).agg(
            n=dp.count()
        ),
        "means by group, chosen limits": lambda: frame.group_by("g", keys=KEYS["g"], **auto).agg(
            m=dp.mean("x")
        ),
        "mean, chosen bounds": lambda: frame.agg(m=dp.mean("x", bounds=dp.Auto())),
        "sum, chosen bounds": lambda: frame.agg(s=dp.sum("x", bounds=dp.Auto())),
        "median, chosen bounds": lambda: frame.agg(d=dp.median("x", bounds=dp.Auto())),
    }


# One version, in a process of its own


def protected(cell: Cell, copies: int, budget: Any) -> Any:
    """The private frame; where tables are asked one by one, with limits of its own."""
    rows = 4 if cell.shape == "rows" else 1
    made = table(cell.shape, cell.people, copies).with_columns(
        k=pl.col("w") % 40, l=pl.col("y").cast(pl.Int64) % 40
    )
    limits = {} if copies > 1 or "chosen limits" in cell.question else {"max_rows": rows}
    return made.dp(unit="id", budget=budget, bounds=BOUNDS, neighbors=cell.neighbors, **limits)


def read(out: Any) -> dict[str, list[float | None]]:
    """The numbers of a release by column."""
    if hasattr(out, "coefficients"):
        return {name: [value] for name, value in out.coefficients.items()}
    if hasattr(out, "fill"):  # numbers that noise hides, which older versions show
        out = out.fill()
    shown = out.to_polars()
    if type(out).__name__ == "SyntheticRelease":
        counts = shown.group_by("g", "h").len()
        found = {(g, h): n for g, h, n in counts.iter_rows()}
        return {"count": [float(found.get(key, 0)) for key in itertools.product(*KEYS.values())]}
    if "h" in shown.columns and "n" in shown.columns:  # found keys, of which some are not there
        found = dict(zip(shown["h"], shown["n"], strict=True))
        return {"n": [float(found.get(key, 0)) for key in KEYS["h"]]}
    if "All" in shown.columns:  # a crosstab with margins
        grid = shown[:, 1:].cast(pl.Float64).to_numpy()
        parts = {
            "cells": grid[:-1, :-1],
            "sums": np.append(grid[:-1, -1], grid[-1, :-1]),
            "total": grid[-1:, -1],
        }
        return {name: part.ravel().tolist() for name, part in parts.items()}
    if shown.columns[0] == "statistic":  # a description
        return {
            f"{what} of {c}": [value]
            for c in shown.columns[1:]
            for what, value in shown.select("statistic", c).iter_rows()
        }
    floats = [
        c
        for c, kind in shown.schema.items()
        if kind.is_numeric() and c not in ("g", "copy", "h", "k", "l")
    ]
    return {name: shown[name].cast(pl.Float64).to_list() for name in floats}


def asked_of(cell: Cell, budget: Any) -> Callable[[], Any]:
    """The question of a cell."""
    rows, copies = 4 if cell.shape == "rows" else 1, max(AT_ONCE // cell.people, LEAST)
    numbers_asked = numbers().get(cell.question)
    frame = protected(cell, copies if numbers_asked else 1, budget)
    if not numbers_asked:
        return tables(frame, rows)[cell.question]
    groups = frame.group_by("copy", keys=list(range(copies)), max_groups=1, max_rows_per_group=rows)
    return lambda: groups.agg(**numbers_asked())


def laws(cell: Cell) -> dict[str, Any]:
    """The deviations of noises and the scales of choices, by the names of their totals."""
    import dpframe as dp
    from dpframe.budget import Terms
    from dpframe.release.pricing import read_price

    query = asked_of(cell, dp.Budget(epsilon=2.0, delta=0.5))()
    query = getattr(query, "_query", query)  # of a matrix
    plan = read_price(Terms.EPSILON, epsilon=cell.epsilon, delta=cell.delta).plan(query._question)
    found: dict[str, list[Any]] = {}
    for n in plan.noises:
        size = n.scale * float(n.allotment.total.unit) if n.deviation is None else n.deviation
        for name in n.allotment.names:
            times = sum(one.partition(", ")[0] == name for one in found)
            found[f"{name}, {times + 1}" if times else name] = [n.label, float(size)]
    return found


def answered(cell: Cell, seed: str, releases: int) -> dict[str, Any]:
    """The numbers of some releases of a cell, by column, and the processor time."""
    import dpframe as dp
    from dpframe.noise import bits

    words = random.Random(f"{cell}{seed}")
    bits.os = SimpleNamespace(urandom=words.randbytes)
    exact, price = cell.epsilon == EXACT, {"delta": cell.delta} if cell.delta else {}
    # A budget that all releases fit in: this measures errors, and protects nobody
    budget = dp.Budget(epsilon=2 * EXACT if exact else 1e6, delta=0.5 if cell.delta else 0)
    ask = asked_of(cell, budget)
    start, out = time.process_time(), defaultdict(list)
    for _ in range(1 if exact else releases):
        for name, found in read(ask().release(epsilon=cell.epsilon, **price)).items():
            out[name].append(found)
    return {"numbers": out, "seconds": time.process_time() - start}


def work() -> None:
    """Answer the cells that are asked on the standard input, a line each."""
    warnings.simplefilter("ignore")
    import dpframe as dp

    for line in sys.stdin:
        fields, seed, releases = json.loads(line)
        try:
            found = answered(Cell(*fields), seed, releases) if releases else laws(Cell(*fields))
        # what this version does not know
        except (dp.errors.DpFrameError, AttributeError, TypeError) as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(found), flush=True)


class Version:
    """A version of the package in a process."""

    def __init__(self, source: str) -> None:
        call, env = [sys.executable, __file__, "--work"], {**os.environ, "PYTHONPATH": source}
        self._process = subprocess.Popen(
            call, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, cell: Cell, seed: str, releases: int) -> dict[str, Any]:
        """What this version answers. Errors: EOFError if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([cell, seed, releases]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(cell.words())
        return dict(json.loads(line))


# Both versions


def cells() -> list[Cell]:
    """All cells in the order in which they are asked:
    in rounds of all questions, large tables last.
    """
    names = [*numbers(), *tables(SimpleNamespace(group_by=lambda *_, **__: None), 1)]
    grid = [
        Cell(name, shape, people, *price, relation)
        for name, shape, people, price in itertools.product(names, SHAPES, SIZES, PRICES)
        for relation in ("add-remove", "replace")
        if (relation == "add-remove" or (people == SIZES[0] and shape != "skewed"))
        and (name not in NEED_DELTA or price[1])
    ]
    turns: dict[tuple[str, bool], int] = defaultdict(int)
    place = {}
    for cell in sorted(grid, key=lambda cell: random.Random(str(cell)).random()):
        turns[cell.question, cell.people == SIZES[-1]] += 1
        place[cell] = cell.people == SIZES[-1], turns[cell.question, cell.people == SIZES[-1]]
    return sorted(place, key=place.__getitem__)


def compared(
    truth: list[float], old: list[Any], new: list[Any], *, each: bool
) -> dict[str, float] | None:
    """Both errors, their ratio and its standard error; each:
    of each group, and not the mean of a table.
    """
    true = np.array(truth, float)
    squares = [np.square(np.array(found, float) - true) for found in (old, new)]
    if any(one.shape != squares[0].shape for one in squares):
        return None
    squares = [one.ravel() if each else np.nanmean(one, axis=1) for one in squares]
    both = np.isfinite(squares[0]) & np.isfinite(squares[1])
    squares = [one[both] for one in squares]
    means = [float(one.mean()) if len(one) else math.nan for one in squares]
    if not len(squares[0]) or not all(means):
        return None
    spread = (
        np.std(squares[1] / means[1] - squares[0] / means[0], ddof=1)
        / 2
        / math.sqrt(len(squares[0]))
    )
    ratio = math.sqrt(means[1] / means[0])
    return {
        "old": math.sqrt(means[0]),
        "new": math.sqrt(means[1]),
        "ratio": ratio,
        "off": ratio * float(spread),
    }


def lines(folder: Path) -> Iterator[dict[str, Any]]:
    """What was measured."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def suspects(folder: Path) -> list[Cell]:
    """Cells that look worse in the first round."""
    found = {
        tuple(x["cell"])
        for x in lines(folder)
        if x["round"] == 1 and x["ratio"] - 1 > 2 * x["off"] + 1e-9
    }
    return [cell for cell in cells() if tuple(cell) in found]


def measure(options: argparse.Namespace) -> None:
    """Measure cells until the minutes are over, and write each to the folder."""
    start, turn = time.monotonic(), 2 if options.again else 1
    mine, parts = map(int, options.part.split("/"))
    todo = (suspects(options.folder) if options.again else cells())[mine - 1 :: parts]
    known = {(tuple(x["cell"]), x["round"]) for x in lines(options.folder) if "error" not in x}
    todo = [c for c in todo if (tuple(c), turn) not in known and options.only in c.words()]
    print(f"{len(todo)} cells to go", flush=True)
    versions, truths = [Version(source) for source in (options.old, options.new)], {}
    with (options.folder / f"part {mine} of {parts}.jsonl").open("a") as file:
        for done, cell in enumerate(todo):
            if time.monotonic() - start > 60 * options.minutes:
                print(f"{done} cells in {options.minutes:g} minutes")
                break
            of = cell._replace(epsilon=EXACT, delta=0.0)
            if cell.question in NEED_DELTA:
                of = of._replace(delta=0.4)
            if of not in truths:
                truths[of] = versions[1].ask(of, "", 1)
            number = (
                1
                if cell.question in numbers()
                else AUTO_RELEASES
                if "chosen" in cell.question
                else RELEASES
            )
            number = math.ceil(number * options.repeats * (4 if options.again else 1))
            answers = [version.ask(cell, f"round {turn}", number) for version in versions]
            for line in recorded(cell, turn, truths[of], answers):
                print(json.dumps(line), file=file, flush=True)


def recorded(
    cell: Cell, turn: int, truth: dict[str, Any], answers: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The lines of a cell: one for each column, or one for a
    question that a version does not know.
    """
    line = {"cell": cell, "round": turn, "column": None, "ratio": math.nan, "off": math.nan}
    wrong = [x["error"] for x in (truth, *answers) if "error" in x]
    if wrong:
        yield {**line, "error": wrong[0]}
        return
    spent = {
        f"{name} seconds": x["seconds"] for name, x in zip(("old", "new"), answers, strict=True)
    }
    for column, exact in truth["numbers"].items():
        found = compared(
            exact[0],
            *(x["numbers"].get(column, [[]]) for x in answers),
            each=cell.question in numbers(),
        )
        if found:
            yield {**line, **spent, "column": column, **found}


def compare_laws(options: argparse.Namespace) -> None:
    """Print the ratios of noise by question and total, for all
    prices, relations and rows a person.
    """
    versions, ratios = [Version(source) for source in (options.old, options.new)], defaultdict(list)
    some = [cell for cell in cells() if cell.people == SIZES[0] and cell.shape != "skewed"]
    some = [cell for cell in some if not cell.question.startswith(PRICED_APART)]
    for cell in (cell for cell in some if options.only in cell.words()):
        old, new = (version.ask(cell, "", 0) for version in versions)
        if "error" in old or "error" in new:
            ratios[
                cell.question, "is not compared: " + str(old.get("error", new.get("error")))[:80]
            ].append((1.0, cell))
            continue
        for name in old.keys() & new.keys():
            labels = (
                f"{old[name][0]} → {new[name][0]}" if old[name][0] != new[name][0] else old[name][0]
            )
            ratios[cell.question, f"{name} ({labels})"].append((new[name][1] / old[name][1], cell))
    print(
        "| question | total, and its noise | cells | least | largest | largest at "
        "|\n|---|---|---:|---:|---:|---|"
    )
    for (question, name), found in sorted(ratios.items(), key=lambda pair: pair[0]):
        largest, at = max(found)
        where = at.words().partition("; ")[2] if largest > 1 else ""
        print(
            f"| {question} | {name} | {len(found)} | {min(found)[0]:.3f} | {largest:.3f} | {where} "
            "|"
        )


def report(folder: Path) -> None:
    """Print each question with its ratios, and the cells that are worse."""
    best: dict[Any, dict[str, Any]] = {}
    for x in sorted(lines(folder), key=lambda x: x["round"]):
        best[*x["cell"], x["column"]] = x
    found = [x for x in best.values() if "error" not in x]
    answered_by_both = {x["cell"][0] for x in found}
    missing = {(x["cell"][0], x["error"]) for x in best.values() if "error" in x}
    missing = {pair for pair in missing if pair[0] not in answered_by_both}
    print(
        "| question | price | relation | cells | mean ratio | ± | least | largest | WORSE | ms, "
        "old | ms, new |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    groups = defaultdict(list)
    for x in found:
        cell = Cell(*x["cell"])
        groups[cell.question, x["column"], "ε, δ" if cell.delta else "ε", cell.neighbors].append(x)
    for (question, column, price, relation), some in sorted(
        groups.items(), key=lambda pair: pair[0]
    ):
        logs = [math.log(x["ratio"]) for x in some]
        off = math.sqrt(sum((x["off"] / x["ratio"]) ** 2 for x in some)) / len(some)
        worse = sum(worse_than_noise(x) for x in some)
        ends = min(x["ratio"] for x in some), max(x["ratio"] for x in some)
        spent = [
            1000 * sum(x[f"{name} seconds"] for x in some) / len(some) for name in ("old", "new")
        ]
        name = f"{question}: {column}"
        print(
            f"| {name} | {price} | {relation} | {len(some)} | "
            f"{math.exp(sum(logs) / len(logs)):.3f} | {off:.3f} | {ends[0]:.2f} | {ends[1]:.2f} | "
            f"{worse} | {spent[0]:.0f} | {spent[1]:.0f} |"
        )
    asked = len({tuple(x["cell"]) for x in found})
    print(f"\n{asked} of {len(cells())} cells, {len(found)} numbers; worse by more than noise:")
    for x in filter(worse_than_noise, found):
        again = "" if x["round"] == 2 else " (not measured again)"
        figures = f"{x['old']:.4g} → {x['new']:.4g}, {x['ratio']:.3f} ± {x['off']:.3f}{again}"
        print(f"{Cell(*x['cell']).words()}: {x['column']} {figures}")
    for question, error in sorted(missing):
        print(f"{question}: {error}")


def worse_than_noise(line: dict[str, Any]) -> bool:
    return line["ratio"] - 1 > 3 * line["off"] + 1e-9


def main() -> None:
    """Measure, or report."""
    if sys.argv[1:] == ["--work"]:
        return work()
    reader = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    reader.add_argument("old", help="a folder that holds the package")
    reader.add_argument("new")
    reader.add_argument("folder", type=Path, help="where measurements are kept")
    reader.add_argument("--minutes", type=float, default=9)
    reader.add_argument("--part", default="1/1")
    reader.add_argument("--repeats", type=Fraction, default=Fraction(1))
    reader.add_argument("--only", default="", help="a part of a cell's words")
    reader.add_argument("--again", action="store_true")
    reader.add_argument("--report", action="store_true")
    reader.add_argument("--laws", action="store_true")
    options = reader.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.report:
        return report(options.folder)
    return compare_laws(options) if options.laws else measure(options)


if __name__ == "__main__":
    main()
