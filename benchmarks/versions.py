"""Errors of two versions of the package, side by side: which questions became better or worse.

    python benchmarks/versions.py OLD/src NEW/src [--releases 40] [--minutes 10] [--only mean]

Each version answers in a process of its own, in turns of five releases, on the same made-up tables. No turn begins
after the minutes. For each question and column it prints the root of the mean squared error against the totals under
the same limits, the ratio, and the ratio's standard error. A line ends with "worse" where the ratio is above 1 by more
than two standard errors, which one line in forty is by chance, and with WORSE beyond three.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

TURN = 5  # releases of one process
PANELS = {"150 people": 150, "2,000 people": 2000}


def tables(people: int) -> dict[str, pd.DataFrame]:
    """Even values in three groups, skewed ones in three uneven groups, and several rows a person."""
    draw = np.random.default_rng(people)
    even = pd.DataFrame({"id": range(people), "g": draw.integers(0, 3, people), "x": draw.uniform(0, 100, people)})
    skewed = even.assign(
        g=draw.choice(3, people, p=[0.8, 0.15, 0.05]), x=np.minimum(draw.lognormal(2.5, 1, people), 100)
    )
    rows = even.loc[even.index.repeat(draw.integers(1, 5, people))].reset_index(drop=True)
    rows["x"] = (rows["x"] + draw.normal(0, 10, len(rows))).clip(0, 100)
    made = {"even": even, "skewed": skewed, "rows": rows}
    return {
        name: table.assign(y=table["x"] / 2 + draw.uniform(0, 50, len(table)), h=(table["x"] // 12.6).astype(int))
        for name, table in made.items()
    }


def questions(frame: Any) -> dict[str, Callable[[], Any]]:
    """What is asked of each table."""
    import dpframe as dp

    groups = frame.group_by("g", keys=[0, 1, 2])
    keys = {"g": [0, 1, 2], "h": list(range(8))}
    return {
        "count": lambda: frame.agg(n=dp.count()),
        "count, mean": lambda: frame.agg(n=dp.count(), m=dp.mean("x")),
        "sum, mean": lambda: frame.agg(s=dp.sum("x"), m=dp.mean("x")),
        "two sums": lambda: frame.agg(s=dp.sum("x"), t=dp.sum("y")),
        "count, mean, median": lambda: frame.agg(n=dp.count(), m=dp.mean("x"), d=dp.median("x")),
        "quantile": lambda: frame.agg(q=dp.quantile("x", 0.9)),
        "variance": lambda: frame.agg(v=dp.var("x")),
        "correlation": lambda: frame.agg(r=dp.corr("x", "y")),
        "ratio": lambda: frame.agg(r=dp.ratio(dp.sum("x"), dp.sum("y"))),
        "count by group": lambda: groups.agg(n=dp.count()),
        "count, mean by group": lambda: groups.agg(n=dp.count(), m=dp.mean("x")),
        "median by group": lambda: groups.agg(d=dp.median("x")),
        "measured crosstab": lambda: frame.crosstab("g", "h", keys=keys, margins="measured"),
    }


def squares(releases: int, only: str) -> dict[str, list[float]]:
    """Mean squared errors of releases, by panel, question and column; of questions that this version answers."""
    import dpframe as dp

    warnings.simplefilter("ignore")
    found = defaultdict(list)
    for panel, people in PANELS.items():
        for shape, table in tables(people).items():
            budget = dp.Budget(epsilon=1e15, delta=0.5)
            rows = 4 if shape == "rows" else 1
            frame = table.dp(unit="id", budget=budget, max_rows=rows, bounds={"x": (0, 100), "y": (0, 100)})
            for question, ask in questions(frame).items():
                for price in ({}, {"delta": 1e-6, "noise": "gaussian"}):
                    name = f"{panel}, {shape}: {question}{', gaussian' if price else ''}"
                    if only not in name:
                        continue
                    try:
                        exact = ask().release(epsilon=1e9, **price).to_pandas().select_dtypes("number")
                        answers = [ask().release(epsilon=1, **price).to_pandas() for _ in range(releases)]
                    except (dp.errors.DpFrameError, AttributeError):  # what this version does not know
                        continue
                    for column in exact:
                        key = f"{name}, {column}"
                        off = [np.square((out[column] - exact[column]).to_numpy(float)) for out in answers]
                        found[key] += [float(np.nanmean(one)) for one in off if np.isfinite(one).any()]
    return dict(found)


def main() -> None:
    """Ask both versions in turns, and print their errors."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("versions", nargs="*", help="two folders that hold the package")
    reader.add_argument("--releases", type=int, default=40)
    reader.add_argument("--minutes", type=float, default=10)
    reader.add_argument("--only", default="", help="a part of the names")
    options = reader.parse_args()
    if not options.versions:  # one turn of one version, for the process that compares
        print(json.dumps(squares(options.releases, options.only)))
        return
    both: list[dict[str, list[float]]] = [defaultdict(list), defaultdict(list)]
    start = time.monotonic()
    for done in range(0, options.releases, TURN):
        if time.monotonic() - start > 60 * options.minutes:
            print(f"{done} of {options.releases} releases, in {options.minutes:g} minutes")
            break
        number = min(TURN, options.releases - done)
        for source, errors in zip(options.versions, both, strict=True):
            call = [sys.executable, __file__, "--releases", str(number), "--only", options.only]
            env = {**os.environ, "PYTHONPATH": source}
            out = subprocess.run(call, env=env, capture_output=True, text=True, check=True).stdout
            for name, some in json.loads(out).items():
                errors[name] += some
    print(f"{'question':60} {'old':>10} {'new':>10} {'ratio':>7} {'±':>6}")
    for name in [*both[0], *(name for name in both[1] if name not in both[0])]:
        if not all(errors[name] for errors in both):
            print(f"{name:60} is answered by one version only")
            continue
        means = [float(np.mean(errors[name])) for errors in both]
        if not all(means):
            print(f"{name:60} {math.sqrt(means[0]):10.4g} {math.sqrt(means[1]):10.4g}")
            continue
        ratio = math.sqrt(means[1] / means[0])
        parts = [np.std(errors[name], ddof=1) / mean / 2 for errors, mean in zip(both, means, strict=True)]
        error = ratio * math.hypot(*(part / math.sqrt(len(e[name])) for part, e in zip(parts, both, strict=True)))
        words = "  WORSE" if ratio - 1 > 3 * error else "  worse" if ratio - 1 > 2 * error else ""
        print(f"{name:60} {math.sqrt(means[0]):10.4g} {math.sqrt(means[1]):10.4g} {ratio:7.3f} {error:6.3f}{words}")


if __name__ == "__main__":
    main()
