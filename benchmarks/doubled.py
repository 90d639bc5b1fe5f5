"""The table of growth: what the size of a question costs, beside the plain
query of Polars where there is one.

    python benchmarks/growth.py --doubled # every direction: some fifteen minutes on two cores
    python benchmarks/growth.py --doubled --only keys # the directions whose name has one of these
    words

Printed is the processor time of the release at a size, and how many times as long it takes at twice
and at four times the size. Four times the size should take four times as long at most, or as much
longer as plain Polars takes. An arrow marks what grows faster. Where answers grow faster than the
size does, as those of pairs of columns, so may the time.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from growth import BOUNDS, DRAW, Case, by_shop, least, private, released, sums, visits

import dpframe as dp

Sized = tuple[Callable[[], object], Callable[[], object] | None]
WIDE = pl.DataFrame(
    {"user": np.arange(10**4) // 2, **{f"f{i}": DRAW.normal(size=10**4) for i in range(9)}}
).with_columns(pl.col(f"f{i}").mul(9).cast(pl.Int64).alias(f"i{i}") for i in range(9))


def of_rows(rows: int, groups: int) -> Sized:
    table, totals = visits(rows, groups), {"n": dp.count(), "spend": dp.sum("spend", bounds=BOUNDS)}
    return released(by_shop(table, groups).agg(**totals)), lambda: sums(
        table, pl.col("spend").clip(*BOUNDS)
    ).collect()


def of_bins(bins: int) -> Sized:
    table, edges = visits(2 * 10**5, 10), np.linspace(0, 150, bins + 1)
    asked = private(table).histogram("spend", bins=edges.tolist(), max_rows=5)
    return released(
        asked
    ), lambda: table.lazy().group_by(pl.lit(edges).search_sorted(pl.col("spend"))).len().collect()


def of_parts(parts: int) -> Sized:
    table = visits(2 * 10**5, parts)
    made = private(table).partition("shop", keys=list(range(parts)), max_groups=1)
    asked = [part.sum("spend", bounds=BOUNDS, max_rows=2) for part in made.values()]
    plain = [
        table.lazy().filter(pl.col("shop") == k).select(pl.col("spend").sum()) for k in range(parts)
    ]
    return lambda: [one.release(epsilon=1) for one in asked], lambda: [
        one.collect() for one in plain
    ]


def of_terms(terms: int, kind: str, name: Any = dp.col) -> Sized:
    ours, plain = (
        reduce(add, [col(f"{kind}{i % 9}") for i in range(terms)]) for col in (name, pl.col)
    )
    asked = private(WIDE).with_columns(y=ours).sum("y", bounds=(-9, 9), max_rows=2)
    return released(asked), lambda: WIDE.lazy().select(plain.clip(-9, 9).sum()).collect()


def of_steps(steps: int, step: Callable[[Any, Any, int], Any], table: Any = WIDE) -> Sized:
    frame, plain = private(table), WIDE.lazy()
    for k in range(steps):
        frame, plain = step(frame, dp.col("f0"), k), step(plain, pl.col("f0"), k)
    rest = lambda: plain.select(pl.col("f0").sum()).collect()  # noqa: E731
    return released(frame.sum("f0", bounds=(-9, 9), max_rows=2)), rest


def of_columns(columns: int) -> Sized:
    names = [f"c{i}" for i in range(columns)]
    rows = 5 * 10**4
    table = pl.DataFrame(
        {"user": DRAW.integers(0, rows // 10, rows), **{c: DRAW.normal(size=rows) for c in names}}
    )
    asked = private(table).agg(**{c: dp.mean(c, bounds=(-3, 3)) for c in names}, max_rows=5)
    return released(
        asked
    ), lambda: table.lazy().group_by("user").agg(pl.col(names).sum()).sum().collect()


def of_aggregates(number: int) -> Sized:
    table = visits(5 * 10**4, 10)
    asked = private(table).agg(
        **{f"a{i}": dp.sum("spend", bounds=(0, 50 + i)) for i in range(number)}, max_rows=5
    )
    values = [pl.col("spend").clip(0, 50 + i).alias(f"a{i}").sum() for i in range(number)]
    return released(asked), lambda: table.lazy().group_by("user").agg(values).sum().collect()


def of_numbers(number: int, what: Callable[[Any], object]) -> Sized:
    table = WIDE.select("user", *(pl.col(f"f{i % 9}").alias(f"c{i}") for i in range(number)))
    asked = private(table).agg(
        **{f"c{i}": dp.mean(f"c{i}", bounds=(-3, 3)) for i in range(number)}, max_rows=2
    )
    return lambda: what(asked), None


def of_names(length: int) -> Sized:
    name = "n" * length
    asked = (
        private(WIDE.rename({"f0": name}))
        .clip(name, -3, 3)
        .agg(m=dp.mean(name), s=dp.sum(name), max_rows=2)
    )
    return lambda: (str(asked.explain()), asked.release(epsilon=1).report()), None


def of_tables(number: int) -> Sized:
    frame = private(WIDE)
    asked = dp.concat([frame.filter(dp.col("f0") > k) for k in range(number)]).sum(
        "f0", bounds=(-9, 9), max_rows=2
    )
    plain = [WIDE.lazy().filter(pl.col("f0") > k) for k in range(number)]
    return released(asked), lambda: pl.concat(plain).select(pl.col("f0").sum()).collect()


STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "with_columns": lambda f, x, k: (
        f.with_columns(f0=x + 1) if isinstance(f, dp.PrivateFrame) else f.with_columns(x + 1)
    ),
    "filter": lambda f, x, k: f.filter(x > -5 - k),
    "clip": lambda f, x, k: (
        f.clip("f0", -5 - k, 5)
        if isinstance(f, dp.PrivateFrame)
        else f.with_columns(x.clip(-5 - k, 5))
    ),
}


# Steps, keys and lists

ROWS = 5 * 10**4
COMMON: dict[str, Any] = {"bounds": (-3, 3), "max_rows": 2}
BASE = pl.DataFrame(
    {
        "user": np.arange(ROWS) // 2,
        "k": DRAW.integers(0, 1000, ROWS),
        "d": DRAW.integers(0, 50, ROWS),
        "x": DRAW.normal(size=ROWS),
    }
).with_columns(t=pl.col("k").cast(pl.String))


def typed(ask: Callable[[], Any], **price: Any) -> Callable[[], object]:
    """A question that is typed and released: what lists cost where they are read counts too."""
    return lambda: ask().release(**{"epsilon": 1, **price}).table


def of_joins(number: int) -> Sized:
    frame, plain = private(BASE), BASE.lazy()
    for i in range(number):
        table = pl.DataFrame({"k": np.arange(1000), f"j{i}": np.arange(1000.0)})
        frame, plain = frame.join(table, on="k"), plain.join(table.lazy(), on="k")
    return released(frame.sum("x", **COMMON)), lambda: plain.select(pl.col("x").sum()).collect()


def of_joined_rows(rows: int) -> Sized:
    table, brought = (
        BASE.with_columns(pl.col("k") * rows // 1000),
        pl.DataFrame({"k": np.arange(rows)}),
    )
    ask = lambda: private(table).join(brought, on="k").sum("x", **COMMON)  # noqa: E731
    return typed(
        ask
    ), lambda: table.lazy().join(brought.lazy(), on="k").select(pl.col("x").sum()).collect()


def of_crosstab(keys: int, margins: Any) -> Sized:
    table = pl.DataFrame(
        {"user": np.arange(ROWS), "a": DRAW.integers(0, keys, ROWS), "b": DRAW.integers(0, 4, ROWS)}
    )
    asked = {
        "keys": {"a": list(range(keys)), "b": list(range(4))},
        "margins": margins,
        "max_rows": 1,
    }
    plain = lambda: table.lazy().group_by("a", "b").len().collect().pivot("b", index="a")  # noqa: E731
    return typed(lambda: private(table).crosstab("a", "b", **asked)), plain


def of_tree(leaves: int, levels: int) -> Sized:
    """A hierarchy of 2**k leaves, whose levels are the first bits of a leaf."""
    bits = leaves.bit_length() - 1
    keys = [
        tuple(leaf >> bits - bits * (level + 1) // levels for level in range(levels))
        for leaf in range(leaves)
    ]
    names, rows = (
        [f"l{level}" for level in range(levels)],
        np.array(keys)[DRAW.integers(0, leaves, ROWS)],
    )
    table = pl.DataFrame(
        {"user": np.arange(ROWS), **{name: rows[:, i] for i, name in enumerate(names)}}
    )
    plain = lambda: [table.lazy().group_by(names[: i + 1]).len().collect() for i in range(levels)]  # noqa: E731
    return typed(lambda: private(table).hierarchy(names, keys=keys, max_rows=1)), plain


def of_listed_values(number: int, column: str) -> Sized:
    values = [BASE.schema[column].to_python()(value) for value in range(number)]
    ask = lambda: private(BASE).filter(dp.col(column).is_in(values)).sum("x", **COMMON)  # noqa: E731
    return typed(
        ask
    ), lambda: BASE.lazy().filter(pl.col(column).is_in(values)).select(pl.col("x").sum()).collect()


def of_replaced(values: int) -> Sized:
    said = {str(value): str(value % 7) for value in range(values)}
    seven = {"keys": sorted(set(said.values())), "max_rows": 2}
    replaced = dp.col("t").replace(said)
    ask = lambda: private(BASE).with_columns(y=replaced).group_by("y", **seven).count()  # noqa: E731
    return typed(ask), lambda: BASE.lazy().group_by(pl.col("t").replace(said)).len().collect()


def of_branches(number: int) -> Sized:
    def branches(when: Any, col: Any) -> Any:
        chain = when(col("k") == 0).then(0.0)
        for i in range(1, number):
            chain = chain.when(col("k") == i).then(float(i))
        return chain.otherwise(0.0)

    ask = lambda: private(BASE).with_columns(y=branches(dp.when, dp.col)).sum("y", **COMMON)  # noqa: E731
    return typed(ask), lambda: BASE.lazy().select(branches(pl.when, pl.col).sum()).collect()


def of_keys(number: int, columns: tuple[str, ...]) -> Sized:
    """Listed keys: whole numbers, texts, or pairs of both."""
    made = {"k": list(range(number)), "t": [str(i) for i in range(number)]}
    keys = (
        made[columns[0]]
        if len(columns) == 1
        else list(zip(*(made[name] for name in columns), strict=True))
    )
    numbers = {"n": dp.count(), "m": dp.mean("x", bounds=(-3, 3))}
    ask = lambda: private(BASE).group_by(*columns, keys=keys, max_rows=2).agg(**numbers)  # noqa: E731
    listed = pl.LazyFrame({name: made[name] for name in columns})
    totals = BASE.lazy().group_by(*columns).agg(pl.len(), pl.col("x").mean())
    return typed(ask), lambda: listed.join(totals, on=columns, how="left").collect()


# Many questions, columns and charges


def of_questions(number: int, *, tables: bool = False) -> Sized:
    """The questions of one batch, of one table or each of its own."""
    budget = dp.Budget(epsilon=1e6, delta=1e-3)
    of = [BASE.slice(1000 * i, 1000) if tables else BASE for i in range(number)]
    frames = [dp.protect(table, unit="user", budget=budget) for table in of]
    asked = [frame.filter(dp.col("k") > i).sum("x", **COMMON) for i, frame in enumerate(frames)]
    plain = [
        table.lazy().filter(pl.col("k") > i).select(pl.col("x").sum()) for i, table in enumerate(of)
    ]
    return lambda: budget.plan(asked, epsilon=1).release(), lambda: pl.collect_all(plain)


def of_unused_columns(number: int, kind: str) -> Sized:
    table = pl.DataFrame(
        {"user": np.arange(2000) // 2, **{f"c{i}": np.zeros(2000) for i in range(number)}}
    )
    brought: Any = table.to_pandas() if kind == "pandas" else table
    plain = lambda: table.lazy().filter(pl.col("c1") >= 0).select(pl.col("c0").sum()).collect()  # noqa: E731
    return typed(lambda: private(brought).filter(dp.col("c1") >= 0).sum("c0", **COMMON)), plain


def of_statistics(columns: int) -> Sized:
    """Five statistics of each column."""
    names = [f"c{i}" for i in range(columns)]
    table = pl.DataFrame(
        {"user": np.arange(2000) // 2, **{name: DRAW.normal(size=2000) for name in names}}
    )
    made: list[Callable[[str], Any]] = [
        lambda name: dp.mean(name, bounds=(-3, 3)),
        lambda name: dp.var(name, bounds=(-3, 3)),
        lambda name: dp.median(name, bounds=(-3, 3)),
        lambda name: dp.sum(name, unit_bounds=(-3, 3)),
        lambda name: dp.n_unique(name),
    ]
    asked = {f"{name}_{i}": one(name) for name in names for i, one in enumerate(made)}
    return released(private(table).agg(**asked, max_rows=2)), None


def of_features(number: int) -> Sized:
    table, sums_of = (
        WIDE.select("user", *(pl.col(f"f{i % 9}").alias(f"c{i}") for i in range(number))),
        range(number),
    )
    features = {f"c{i}": dp.sum(f"c{i}", bounds=(-3, 3)) for i in sums_of}
    asked = (
        private(table)
        .per_unit(**features)
        .agg(**{f"c{i}": dp.mean(f"c{i}", bounds=(-3, 3)) for i in sums_of})
    )
    return released(asked), None


def of_charges(number: int, *, durable: bool) -> Sized:
    def charged() -> None:
        with TemporaryDirectory() as folder:
            said: dict[str, Any] = {"epsilon": 1e6}
            budget = (
                dp.Ledger(f"{folder}/a.sqlite").budget("s", **said)
                if durable
                else dp.Budget(**said)
            )
            asked = dp.protect(WIDE, unit="user", budget=budget).count_units()
            for _ in range(number):
                asked.release(epsilon=1)
            budget.history()

    return charged, None


def of_allowances(number: int) -> Sized:
    def allocated() -> list[str]:
        budget = dp.Budget(epsilon=1e6)
        return [
            str(budget.allocate(nights=3, epsilon=1, name=f"a{i}", start="2026-01-01"))
            for i in range(number)
        ]

    return allocated, None


def of_nights(number: int) -> Sized:
    first = dt.date(2026, 1, 1)

    def added() -> None:
        budget = dp.Budget(epsilon=10)
        series = budget.series("s", every="1d", horizon=400, epsilon=1, unit_periods=1, start=first)
        for night in range(number):
            asked = dp.protect(WIDE.head(100), unit="user", budget=budget).count_units()
            series.add(asked, first + dt.timedelta(days=night))

    return added, None


def of_groups_shown(groups: int, what: Callable[[Any], object]) -> Sized:
    """What is done with a released table; intervals that are kept with
    its numbers are forgotten first.
    """
    table = pl.DataFrame({"user": np.arange(20_000), "k": DRAW.integers(0, groups, 20_000)})
    table = table.with_columns(x=pl.Series(DRAW.normal(size=20_000)))
    asked = private(table).group_by("k", keys=list(range(groups)), max_rows=1)
    out = asked.agg(n=dp.count(), m=dp.mean("x", bounds=(-3, 3))).release(epsilon=1)
    return lambda: what(replace(out, _numbers=replace(out._numbers))), None


SHOWN: dict[str, Callable[[Any], object]] = {
    "share": lambda out: out.share(column="n").table,
    "rolling": lambda out: out.rolling(7, column="n").mean().table,
    "shrink": lambda out: out.shrink("m").table,
    "suppress": lambda out: out.suppress(10).table,
    "compare": lambda out: out.compare(0, "m"),
    "to_html": lambda out: out.to_html(),
    "to_latex": lambda out: out.to_latex(),
    "to_sdmx": lambda out: out.to_sdmx(),
}


def databases() -> dict[str, Any]:
    """The wide table in DuckDB, Dask, and through Ibis in DuckDB,
    SQLite, DataFusion and PostgreSQL.

    PostgreSQL is measured where GROWTH_POSTGRES has the name of a database, for whose server PGHOST
    and PGUSER stand. Its own processor time is not counted: only that of this process.
    """
    import dask
    import dask.dataframe
    import datafusion
    import duckdb
    import ibis

    context, connection, through = (
        datafusion.SessionContext(),
        duckdb.connect(),
        ibis.duckdb.connect(),
    )
    context.register_record_batches("wide", [WIDE.to_arrow().to_batches()])
    for held in (connection, through.con):
        held.register("brought", WIDE.to_arrow())
        held.execute("CREATE TABLE wide AS SELECT * FROM brought")
    columns = ", ".join(
        f'"{name}" {"DOUBLE PRECISION" if dtype.is_float() else "BIGINT"}'
        for name, dtype in WIDE.schema.items()
    )
    sqlite = ibis.sqlite.connect()
    sqlite.con.execute(f"CREATE TABLE wide ({columns})")
    sqlite.con.executemany(f"INSERT INTO wide VALUES ({', '.join('?' * WIDE.width)})", WIDE.rows())
    tables = {"Ibis": through, "SQLite": sqlite, "DataFusion": ibis.datafusion.connect(context)}
    if "GROWTH_POSTGRES" in os.environ:
        postgres = ibis.postgres.connect(database=os.environ["GROWTH_POSTGRES"])
        postgres.con.execute(f"CREATE TEMPORARY TABLE wide ({columns})")
        with postgres.con.cursor() as cursor, cursor.copy("COPY wide FROM STDIN") as copy:
            for row in WIDE.rows():
                copy.write_row(row)
        tables["PostgreSQL"] = postgres
    dask.config.set(scheduler="synchronous")
    parts = dask.dataframe.from_pandas(WIDE.to_pandas(), npartitions=2)
    return {
        "Dask": parts,
        "DuckDB": connection.table("wide"),
        **{name: backend.table("wide") for name, backend in tables.items()},
    }


def sizes() -> Iterator[tuple[str, int, Callable[[int], Sized]]]:
    """What is doubled, its smallest size, and what is measured."""
    yield "rows", 250_000, lambda n: of_rows(n, 100)
    yield "groups, 200,000 rows", 5000, lambda n: of_rows(2 * 10**5, n)
    yield "bins, 200,000 rows", 250, of_bins
    yield "parts, 200,000 rows", 10, of_parts
    for kind, words in (("f", "float"), ("i", "int64")):
        yield f"terms, {words}", 250, partial(of_terms, kind=kind)
    yield "terms of a pl.Expr, int64", 25, partial(of_terms, kind="i", name=pl.col)
    for name, step in STEPS.items():
        yield f"steps, {name}", 50, partial(of_steps, step=step)
    yield "columns", 10, of_columns
    yield "aggregates", 10, of_aggregates
    yield "tables in a concat", 8, of_tables
    yield (
        "columns, accuracy()",
        12,
        partial(of_numbers, what=lambda asked: asked.accuracy(epsilon=1, assume_rows=10**4)),
    )
    yield "columns, explain()", 12, partial(of_numbers, what=lambda asked: str(asked.explain()))
    yield "letters of a name", 12_500, of_names
    yield "joins", 8, of_joins
    yield "rows of a joined table", 25_000, of_joined_rows
    for margins in (False, True, "measured"):
        yield f"keys of a crosstab, margins={margins}", 500, partial(of_crosstab, margins=margins)
    yield "levels of a hierarchy", 3, lambda n: of_tree(256, n)
    yield "leaves of a hierarchy", 512, lambda n: of_tree(n, 3)
    for column in ("k", "t"):
        yield (
            f"values of is_in, {BASE.schema[column]}",
            10_000,
            partial(of_listed_values, column=column),
        )
    yield "values of replace", 250, of_replaced
    yield "branches of when", 25, of_branches
    for columns in (("k",), ("t",), ("k", "t")):
        yield (
            f"listed keys, {', '.join(str(BASE.schema[c]) for c in columns)}",
            25_000,
            partial(of_keys, columns=columns),
        )
    yield "questions of a batch", 10, of_questions
    yield "tables of a batch", 10, partial(of_questions, tables=True)
    for kind in ("polars", "pandas"):
        yield f"columns that are not used, {kind}", 1000, partial(of_unused_columns, kind=kind)
    yield "columns, five statistics of each", 3, of_statistics
    yield "features of per_unit", 5, of_features
    yield "charges", 50, partial(of_charges, durable=False)
    yield "charges of a ledger", 25, partial(of_charges, durable=True)
    yield "allowances", 25, of_allowances
    yield "nights of a series", 15, of_nights
    for verb, what in SHOWN.items():
        yield (
            f"groups, {verb}",
            5 if verb == "compare" else 1000,
            partial(of_groups_shown, what=what),
        )
    for engine, table in databases().items():
        for name, step in STEPS.items():
            yield f"steps on {engine}, {name}", 25, partial(of_steps, step=step, table=table)


def doubled(words: Sequence[str]) -> None:
    """Print the table of growth."""
    print("| size | from | seconds | × at 2n | × at 4n | plain Polars: × at 2n | × at 4n |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, start, sized in sizes():
        if not any(word in name for word in words):
            continue
        measured = [least(Case("", 0, *sized(start * times), runs=3)) for times in (1, 2, 4)]
        ours, plain = ([one[side] for one in measured] for side in (0, 1))
        ratios = [
            f"{times[i] / times[0]:.1f}" if times[0] else ""
            for times in (ours, plain)
            for i in (1, 2)
        ]
        mark = (
            " ←"
            if ours[2] > 6 * ours[0]
            and (not plain[0] or ours[2] / ours[0] > 1.5 * plain[2] / plain[0])
            else ""
        )
        print(f"| {name} | {start:,} | {ours[0]:.3f} | {' | '.join(ratios)}{mark} |", flush=True)
