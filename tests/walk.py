"""The walk: every public question, asked of an engine by `release`, each
under a time limit that kills.

python tests/walk.py ENGINE TABLE LIMIT [URL] [--every N] [--only WORDS]  # JSON lines

It dies where a cell takes longer than LIMIT seconds. A cell is a question, an engine and a table:
one of plain rows, or one of rows that engines fail on. It is answered, or refused by an error of
dpframe with nothing spent.
"""

from __future__ import annotations

import argparse
import datetime as dt
import faulthandler
import inspect
import json
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.errors import DpFrameError, EngineError
from questions import QUESTIONS, SCHEMA, TABLE, UNITS
from statistics_table import statistics

c = dp.col
PRICE = {"epsilon": 1.0, "delta": 1e-6}
CITIES, DAYS = ["Aachen", "Bonn", "Celle"], [dt.date(2025, 1, day) for day in (1, 2, 3)]
XN = {"x": (-3, 10), "n": (0, 3)}
BY = {"max_groups": 2, "max_rows_per_group": 3}
LISTED = {"keys": {"city": CITIES, "yes": [True, False]}}
_STATISTICS = statistics("x", "n", ("yes", [True]), (0, 10), (0, 3))


def plain(units: int = 60) -> pl.DataFrame:
    """Some three hundred rows with the columns of the hostile table, and nothing odd in them."""
    rng = random.Random(5)
    rows = [
        {
            "u": unit,
            "w": f"w{unit % 7}",
            "f": float(unit % 5),
            "a": rng.randint(0, 9),
            "i": rng.randint(0, 999),
            "x": round(rng.gauss(5, 2), 3),
            "y": rng.random(),
            "d": round(rng.random(), 2),
            "yes": rng.random() < 0.4,
            "city": rng.choice(CITIES),
            "s": rng.choice(["5", "12", "a-b", "2025-01-02"]),
            "day": rng.choice(DAYS),
            "time": dt.datetime(2025, 1, rng.randint(1, 3), rng.randint(0, 23), 5),
            "milli": dt.datetime(2025, 1, 1, rng.randint(0, 23)),
            "zone": dt.datetime(2025, 1, 1, rng.randint(0, 23)),
            "nano": dt.datetime(2025, 1, 1),
            "long": dt.timedelta(hours=rng.randint(0, 9)),
            "n": rng.randint(0, 3),
            "q0": rng.randint(0, 3),
        }
        for unit in range(units)
        for _ in range(rng.randint(1, 9))
    ]
    naive = {**SCHEMA, "zone": pl.Datetime("us"), "d": pl.Float64}
    frame = pl.DataFrame(rows, naive).with_columns(
        pl.col("zone").dt.replace_time_zone("Europe/Berlin")
    )
    return frame.with_columns(pl.col("d").cast(SCHEMA["d"]))


TABLES = {"plain": plain, "hostile": lambda: TABLE}


# Cells. Each has a function that asks; it gets the protected frame, and may protect the table again
# in another way.

CELLS: dict[str, Callable[[Cell], Any]] = {}


class Cell:
    """The table of an engine, a budget of its own, and the frame that the question is about."""

    def __init__(self, table: Any, **limit: float) -> None:
        self.table, self.budget = table, dp.Budget(**{"epsilon": 1e6, "delta": 0.1, **limit})

    def frame(self, unit: Any = "u", **options: Any) -> Any:
        return dp.protect(self.table, unit=unit, budget=self.budget, **options)


def _add(topic: str, **asks: Callable[[Any], Any]) -> None:
    """Questions about the frame of unit "u"."""
    CELLS.update(
        {f"{topic}: {name}": lambda cell, ask=ask: ask(cell.frame()) for name, ask in asks.items()}
    )


def _cell(ask: Callable[[Cell], Any]) -> Callable[[Cell], Any]:
    CELLS[ask.__name__.strip("_").replace("_", " ")] = ask
    return ask


_add("questions", **QUESTIONS)
_add(
    "frames",
    **{
        label: lambda f, s=s: s.ask(f, max_rows=2)
        for label, s in _STATISTICS.items()
        if "frames" in s.asked_of
    },
)
_add(
    "groups",
    **{
        label: lambda f, s=s: s.ask(f.group_by("city", keys=CITIES, **BY))
        for label, s in _STATISTICS.items()
        if "groups" in s.asked_of
    },
)
_add(
    "aggregates",
    **{
        label: lambda f, s=s: f.agg(a=s.aggregate(), max_rows=2) for label, s in _STATISTICS.items()
    },
)
CELLS |= {
    f"units: {name}": lambda cell, unit=unit: cell.frame(unit).agg(
        n=dp.count(), u=dp.count_units(), s=dp.sum("a", (-3, 10)), max_rows=2
    )
    for name, unit in UNITS.items()
}
_WIDE = {
    "n": dp.count(),
    "distinct": dp.n_unique("n"),
    "mean": dp.mean("x", (-3, 10)),
    "low": dp.min("x", (-3, 10)),
    "spread": dp.std("x", (-3, 10)),
}
_FEATURES = {"s": dp.sum("x"), "m": dp.mean("a"), "k": dp.n_unique("city"), "last": dp.max("day")}
_add(
    "features",
    many=lambda f: f.per_unit(**_FEATURES).agg(
        k=dp.n_unique("k"),
        m=dp.mean("m", (0, 9)),
        s=dp.sum("s", (-9, 99)),
        last=dp.count("last"),
        n=dp.count(),
    ),
    grouped=lambda f: (
        f.per_unit(**_FEATURES)
        .group_by("k", keys=[1, 2, 3])
        .agg(m=dp.median("m", (0, 9)), n=dp.count())
    ),
    after=lambda f: (
        f.filter(c("x") > 0).per_unit(**_FEATURES).filter(c("k") > 1).median("s", (-9, 99))
    ),
    bounded=lambda f: (
        f.bound(max_rows=2).per_unit(s=dp.sum("x", (0, 5))).cdf("s", [1, 3], bounds=(0, 10))
    ),
)
_add(
    "expressions",
    log=lambda f: f.with_columns(y=c("x").log()).group_by("y", keys=[0.0, 1.0], **BY).agg(**_WIDE),
    found=lambda f: f.with_columns(y=c("i").log10().round(1)).group_by("y", **BY).count(),
    backwards=lambda f: f.with_columns(
        r1=1 + c("a"),
        r2=1 - c("a"),
        r3=2 * c("a"),
        r4=2 / c("x"),
        r5=True & c("yes"),
        r6=False | c("yes"),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"r{i}") for i in range(1, 7)}),
    others=lambda f: f.with_columns(
        o1=c("x").pow(2),
        o2=c("x").clip(0, 5),
        o3=c("a").is_between(0, 5),
        o4=c("x").is_not_null(),
        o5=c("x").fill_null(1.0),
        o6=c("s").str.split("-").list.first().str.len_chars(),
        o7=c("s").str.split("-").list.last().str.len_chars(),
        o8=c("s").str.replace("a", "b").str.len_chars(),
        o9=dp.when(c("yes")).then(c("a")).otherwise(0),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"o{i}") for i in range(1, 10)}),
    logic=lambda f: f.with_columns(
        l1=c("a") // c("n"),
        l2=7 % c("a"),
        l3=7 // c("a"),
        l4=c("yes") ^ (c("a") > 3),
        l5=True ^ c("yes"),
        l6=c("s").eq_missing(c("city")),
        l7=c("a").ne_missing(3),
        l8=dp.coalesce(c("a"), c("n"), 1),
        l9=dp.when(c("a") > 5).then(1).when(c("a") > 2).then(2).otherwise(3),
        l10=abs(c("a")),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"l{i}") for i in range(1, 11)}),
    texts=lambda f: f.with_columns(
        t1=dp.concat_str([c("s"), c("city")], separator="-"),
        t2=c("s").str.tail(2),
        t3=c("s").str.zfill(5),
        t4=c("s").replace({"5": "five"}),
        t5=c("s").replace_strict({"5": 5, "12": 12}, default=0),
        t6=c("s").str.to_date("%Y-%m-%d"),
        t7=c("s").str.to_datetime("%Y-%m-%d"),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"t{i}") for i in range(1, 8)}),
    found_in_texts=lambda f: f.filter(c("s").str.contains(r"^\d|b$", regex=True)).count(max_rows=2),
    ends_of_texts=lambda f: f.with_columns(
        t1=c("s").str.strip_chars("5-a"),
        t2=c("s").str.strip_chars_start("12") + c("s").str.strip_chars_end("b"),
        t3=c("s").str.strip_prefix("a") + c("s").str.strip_suffix("b"),
        t4=c("s").str.count_matches("1"),
        t5=c("a") // c("n") // c("q0") % c("i"),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"t{i}") for i in range(1, 6)}),
    matches=lambda f: f.with_columns(
        t1=c("s").str.extract("([0-9]+)-"),
        t2=c("s").str.count_matches("[0-9]", regex=True),
        t3=c("s").str.replace("[0-9]+", "#", regex=True),
        t4=c("s").str.replace_all("[0-9]", "#", regex=True),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"t{i}") for i in range(1, 5)}),
    zones=lambda f: f.with_columns(
        t1=c("time").dt.convert_time_zone("Europe/Berlin").dt.truncate("1h"),
        t2=c("time").dt.replace_time_zone("America/New_York").dt.hour(),
        t3=c("zone").dt.replace_time_zone(None),
        t4=c("zone").dt.truncate("6h"),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"t{i}") for i in range(1, 5)}),
    times=lambda f: f.with_columns(
        t1=c("day").dt.offset_by("1mo"),
        t2=c("day") + dp.duration(days=3),
        t3=c("day").dt.month_end(),
        t4=c("time").dt.second(),
        t5=(c("day") - dp.lit(DAYS[0])).dt.total_days(),
        t6=(c("time") - c("time").dt.truncate("1d")).dt.total_hours(),
        t7=(c("time") - c("time").dt.truncate("1d")).dt.total_minutes(),
        t8=(c("time") - c("time").dt.truncate("1d")).dt.total_seconds(),
    ).agg(max_rows=2, **{f"s{i}": dp.count(f"t{i}") for i in range(1, 9)}),
)
_add(
    "limits",
    **{
        "of columns": lambda f: f.group_by("city", keys=CITIES, **BY).agg(
            n=dp.count(),
            m=dp.mean("x", (-3, 10), max_rows=1),
            q=dp.quantile("x", [0.1, 0.9], (-3, 10), max_groups=1),
        ),
        "auto": lambda f: f.count(limits=dp.Auto()),
        "auto by group": lambda f: f.group_by("city", keys=CITIES, limits=dp.Auto()).agg(
            n=dp.count(), m=dp.mean("x", dp.Auto()), v=dp.var("a", (0, 9)), k=dp.n_unique("i")
        ),
        "auto of found keys": lambda f: f.group_by("city", limits=dp.Auto()).agg(
            n=dp.count(), s=dp.sum("x", dp.Auto())
        ),
        "auto of times": lambda f: f.agg(
            d=dp.mean("day", dp.Auto()), q=dp.median("time", dp.Auto()), max_rows=2
        ),
        "auto bound": lambda f: f.bound(limits=dp.Auto(0.2)).filter(c("a") > 0).mean("x", (-3, 10)),
    },
)
_add(
    "keys",
    rounds=lambda f: f.group_by("city", "yes").keys(),
    voted=lambda f: f.group_by("w", max_groups=2).keys(),
    other=lambda f: f.group_by("city", other="(other)", **BY).agg(
        n=dp.count(), s=dp.sum("x", (0, 9)), v=dp.var("x", (0, 9))
    ),
    top=lambda f: f.top_k("city", 2, keys=CITIES, max_rows=2),
    largest=lambda f: f.top_k("city", 2, max_rows=2),
    grouped=lambda f: f.group_by("yes", **BY).top_k("city", 2, keys=CITIES),
    written=lambda f: f.group_by(
        c("time").dt.date().alias("date"), (c("a") // 3).alias("third"), **BY
    ).count(),
    enum=lambda f: f.cut("x", [0, 3, 6], into="part").group_by("part", **BY).agg(**_WIDE),
)
_add(
    "tables",
    histogram=lambda f: f.histogram(
        "x", bins=list(range(0, 50)), underflow=True, overflow=True, **BY
    ),
    crosstab=lambda f: f.crosstab("city", "yes", **LISTED, margins=True, **BY),
    measured=lambda f: f.crosstab(
        "city", "yes", "x", "sum", bounds=(0, 9), **LISTED, margins="measured", **BY
    ),
    found=lambda f: f.crosstab("city", "yes", **BY),
    normalized=lambda f: f.crosstab("city", "yes", **LISTED, normalize="index", **BY),
    marginals=lambda f: f.marginals(
        ["city", "yes", "n"], keys={**LISTED["keys"], "n": [0, 1, 2, 3]}, max_rows=2
    ),
    hierarchy=lambda f: f.hierarchy(
        ["city", "n"], keys=[(a, b) for a in CITIES for b in range(3)], max_rows=2
    ),
    sums=lambda f: f.hierarchy(
        ["city", "n"], [("Bonn", 1), ("Bonn", 2)], "x", "sum", bounds=(0, 9), by=["yes"], max_rows=2
    ),
    description=lambda f: f.describe(["x", "n"], {"x": dp.Auto(), "n": (0, 3)}, max_rows=2),
)
_add(
    "models",
    cov=lambda f: f.cov(["x", "n"], XN, max_rows=2),
    corr=lambda f: f.corr(["x", "n", "yes"], XN, max_rows=2),
    ols=lambda f: f.ols(y="x", x=["n", "city"], bounds=XN, keys={"city": CITIES}, max_rows=2),
    narrow=lambda f: f.ols(
        y="x", x=["i"], bounds={"x": (-100, 100), "i": (0, 999)}, max_rows=1, narrow=True
    ),
    synthesize=lambda f: f.synthesize(
        ["city", "yes", "n"], keys={"city": CITIES}, bins={"n": [0, 1, 2, 4]}, max_rows=2
    ),
    rows=lambda f: f.synthesize(
        ["city", "x"], 50, keys={"city": [*CITIES, None]}, bounds={"x": (0, 9)}, max_rows=1
    ),
)
_add(
    "steps",
    joined=lambda f: (
        f.select("u", "a")
        .join(f.select("u", "x"), on="u", how="left")
        .agg(max_rows=2, n=dp.count("x"))
    ),
    public=lambda f: (
        f.join(pl.DataFrame({"n": [1, 1, 2], "z": ["p", "q", "r"]}), on="n")
        .group_by("z", **BY)
        .count()
    ),
    dropped=lambda f: (
        f.drop("s").rename({"a": "b"}).cast("b", "float64").mean("b", (0, 9), max_rows=2)
    ),
    concat=lambda f: (
        dp.concat([f.select("u", "x"), f.select("u", "x")])
        .with_columns(z=dp.lit(1))
        .sum("z", max_rows=2)
    ),
    first=lambda f: f.per_unit(a=dp.first("city", by="day"), b=dp.last("x", by="time")).count("a"),
)


@_cell
def k_norm(cell):
    query = cell.frame().group_by("city", keys=CITIES, max_groups=2, max_rows_per_group=1)
    return lambda: query.agg(n=dp.count(), s=dp.sum("x", (0, 5))).release(epsilon=1, noise="k-norm")


@_cell
def gaussian(cell):
    query = cell.frame().group_by("city", "yes", **LISTED, **BY).agg(**_WIDE)
    return lambda: query.release(**PRICE, noise="gaussian", ci=0.9)


@_cell
def population(cell):
    query = (
        cell.frame()
        .group_by("city", keys=CITIES, **BY)
        .agg(m=dp.mean("x", (-3, 10)), v=dp.var("x", (-3, 10)), r=dp.corr("x", "n", XN))
    )
    return lambda: query.release(**PRICE, covers="population", ci=0.9)


@_cell
def elliptic(cell):
    frame = cell.frame().group_by("city", keys=CITIES, **BY)
    return lambda: frame.agg(n=dp.count(), s=dp.sum("x", (0, 5))).release(**PRICE, noise="elliptic")


@_cell
def in_rho(cell):
    cell.budget = dp.Budget(rho=100, delta=0.1)
    query = (
        cell.frame().group_by("city", keys=CITIES, **BY).agg(n=dp.count(), q=dp.median("x", (0, 9)))
    )
    return lambda: query.release(rho=0.5)


@_cell
def neighbours_replaced(cell):
    query = cell.frame(neighbors="replace").group_by("city", keys=CITIES, **BY).agg(**_WIDE)
    return lambda: query.release(**PRICE)


@_cell
def rows_as_units(cell):
    return (
        cell.frame(dp.Rows(2))
        .group_by("city", keys=CITIES)
        .agg(n=dp.count(), m=dp.mean("x", (0, 9)))
    )


@_cell
def batch(cell):
    frame = cell.frame()
    queries = [
        frame.count_units(),
        frame.mean("x", (0, 9), max_rows=2),
        frame.group_by("city", **BY).count(),
    ]
    plan = cell.budget.plan(queries, **PRICE)
    return lambda: plan.release(name="three")


@_cell
def tune(cell):
    query = (
        cell.frame().group_by("city", keys=CITIES, **BY).agg(n=dp.count(), m=dp.mean("x", (0, 9)))
    )
    return lambda: query.tune({"max_rows_per_group": [1, 2], "max_groups": [1, 2]}, epsilon=1)


@_cell
def parts(cell):
    parts = cell.frame().partition("n", keys=[0, 1, 2], max_groups=2)
    queries = [part.group_by("yes", **BY).mean("x", (0, 9)) for part in parts.values()]
    return lambda: [query.release(**PRICE) for query in queries]


@_cell
def series(cell):
    opened = cell.budget.series("s", every="1d", horizon=4, epsilon=1, unit_periods=1)
    query = cell.frame().group_by("city", keys=CITIES, max_groups=1, max_rows_per_group=1).count()
    return lambda: [opened.add(query, day.isoformat()) for day in DAYS]


@_cell
def series_on_a_column(cell):
    opened = cell.budget.series(
        "s", every="1d", horizon=4, epsilon=1, unit_periods=1, enforce=True, on="day"
    )
    query = cell.frame().sum("x", (0, 9), max_rows=1)
    return lambda: [opened.add(query, day.isoformat()) for day in DAYS]


@_cell
def series_of_units(cell):
    opened = cell.budget.series("s", every="1d", horizon=4, epsilon=1, unit_periods=2, enforce=True)
    frame = cell.frame()
    asked = lambda night: frame.filter(c("day") == dt.date.fromisoformat(night)).count_units()  # noqa: E731
    return lambda: [opened.add(asked, day.isoformat()) for day in DAYS]


# Answers


def answer(cell: Cell, ask: Callable[[Cell], Any]) -> tuple[str, str]:
    """What comes of a cell, and why: answered, refused (where), or failed.
    A refusal spends nothing.
    """
    at, why = "the question", ""
    try:
        asked = ask(cell)
        at = "the release"
        _release(asked)
    except EngineError as error:
        return "failed", f"EngineError at {at}: {error}"
    except DpFrameError as error:
        why = f"{type(error).__name__}: {error}"
    except BaseException as error:
        return "failed", f"{type(error).__name__} at {at}: {error}"
    else:
        return "answered", ""
    charged = cell.budget.history()
    return (
        ("failed", f"after a charge, {charged[-1].query}: {why}")
        if charged
        else (f"refused at {at}", why)
    )


def _release(asked: Any) -> None:
    asked() if inspect.isfunction(asked) else asked.release(**PRICE)


def ask_all() -> None:
    """Ask every question, of Polars, and release one of each kind."""
    warnings.simplefilter("ignore")
    kinds: set[Any] = set()
    for ask in CELLS.values():
        question = ask(Cell(TABLE))
        if inspect.isfunction(question) or type(question) not in kinds:
            kinds.add(type(question))
            _release(question)


@contextmanager
def opened(engine: str, url: str) -> Iterator[Callable[[pl.DataFrame], Any]]:
    """What makes the tables of an engine."""
    from engine.conftest import _makers, spark_here
    from postgres_tables import connected, stores

    with tempfile.TemporaryDirectory() as home:
        if engine == "postgres":
            with connected(url) as backend:
                yield stores(backend)
        elif engine == "spark":
            with spark_here(Path(home)) as session:
                yield lambda frame: session.createDataFrame(frame.to_arrow())
        elif engine == "dask":
            import dask.dataframe

            with dask.config.set(scheduler="synchronous"):
                yield _makers(engine, SimpleNamespace(getfixturevalue=lambda _: dask.dataframe))
        else:
            yield _makers(engine, None)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("engine", "table", "limit", "url"):
        parser.add_argument(name, nargs="?")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    said = parser.parse_args()
    warnings.simplefilter("ignore")
    with opened(said.engine, said.url) as bring:
        table = bring(TABLES[said.table]())
        for name in list(CELLS)[:: said.every]:
            if said.only not in name:
                continue
            print(json.dumps({"begun": name}), flush=True)
            faulthandler.dump_traceback_later(float(said.limit), exit=True)
            before, wall = time.process_time(), time.monotonic()
            outcome, why = answer(Cell(table), CELLS[name])
            faulthandler.cancel_dump_traceback_later()
            seconds = round(time.process_time() - before, 2), round(time.monotonic() - wall, 2)
            print(
                json.dumps({"cell": name, "outcome": outcome, "why": why, "seconds": seconds}),
                flush=True,
            )


if __name__ == "__main__":
    main()
