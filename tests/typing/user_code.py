"""Code as users write it, under strict type checkers:
what they know of a release is the kind of table it gives back.

`assert_type` is checked by mypy and pyright; the file is never run. What must not be accepted has a
`type: ignore`, and an ignore that hides no error is an error itself.
"""

from typing import Any, assert_type

import pandas as pd
import polars as pl
import polars.selectors as cs

import dpframe as dp

BUDGET = dp.Budget(epsilon=1.0, delta=1e-6, min_units=10_000)
KEYS = {"city": ["Bonn", "Kiel"], "sex": ["f", "m"]}


def from_pandas(visits: pd.DataFrame) -> pd.DataFrame:
    """pandas in, pandas out."""
    frame = dp.protect(visits, unit="user_id", budget=BUDGET)
    assert_type(frame, dp.PrivateFrame[pd.DataFrame])
    adults = (
        frame.filter(dp.col("age") >= 18)
        .with_columns(weekly=dp.col("spend") / 52)
        .clip("spend", 0, 100)
    )
    assert_type(adults, dp.PrivateFrame[pd.DataFrame])
    groups = adults.group_by("city", keys=["Bonn", "Kiel"], max_groups=1, max_rows_per_group=5)
    assert_type(groups, dp.PrivateGroupBy[pd.DataFrame])
    query = groups.agg(
        n=dp.count(),
        spend=dp.mean("spend", bounds=dp.Auto()),
        last=dp.quantile("age", 0.9, (0, 120)),
    )
    assert_type(query, dp.Query[pd.DataFrame])
    assert_type(query.accuracy(epsilon=0.5), pd.DataFrame)
    out = query.release(epsilon=0.5, ci=0.95)
    assert_type(out, dp.Release[pd.DataFrame])
    assert_type(out.shrink().nonnegative().round().suppress(below=10), dp.Release[pd.DataFrame])
    assert_type(out.accuracy(), pd.DataFrame)
    assert_type(out.noise, pd.DataFrame)
    assert_type(out.to_polars(), pl.DataFrame)
    assert_type(out.to_pandas(), pd.DataFrame)
    assert_type(frame.count_units().release(epsilon=0.1).value, Any)
    assert_type(
        frame.describe(bounds={"age": (0, 120)}, max_rows=1).release(epsilon=0.1).table,
        pd.DataFrame,
    )
    assert_type(
        frame.crosstab("city", "sex", keys=KEYS, max_rows=1).release(epsilon=0.1).table,
        pd.DataFrame,
    )
    return out.table.sort_values("n")


def from_polars(visits: pl.DataFrame, lazy: pl.LazyFrame) -> pl.DataFrame:
    """Polars in, Polars out, also for what is lazy."""
    frame = dp.protect(visits, unit=("user_id", "device"), budget=BUDGET, neighbors="replace")
    assert_type(frame, dp.PrivateFrame[pl.DataFrame])
    assert_type(dp.protect(lazy, unit=dp.Rows(3)), dp.PrivateFrame[pl.DataFrame])
    once = dp.protect(
        visits, unit="user_id", max_rows=5, bounds={"spend": (0, 9)}, keys=KEYS, min_units=20
    )
    assert_type(once.group_by("city", min_units=5).mean("spend"), dp.Query[pl.DataFrame])
    assert_type(
        frame.partition("city", keys=["Bonn", "Kiel"])["Bonn"], dp.PrivateFrame[pl.DataFrame]
    )
    assert_type(dp.concat([frame, frame]), dp.PrivateFrame[pl.DataFrame])
    assert_type(
        frame.join({"city": ["Bonn"], "sea": [False]}, on="city"), dp.PrivateFrame[pl.DataFrame]
    )
    assert_type(
        frame.per_unit(total=dp.sum("spend", bounds=(0, 100))), dp.PrivateFrame[pl.DataFrame]
    )
    tables = frame.marginals(["city", "sex"], keys=KEYS, max_rows=1).release(
        epsilon=0.1, delta=1e-7
    )
    assert_type(tables, dp.MarginalsRelease[pl.DataFrame])
    assert_type(tables["city", "sex"].table, pl.DataFrame)
    tree = frame.hierarchy(["region", "city"], [("north", "Kiel")], max_rows=1).release(epsilon=0.1)
    assert_type(tree, dp.HierarchyRelease[pl.DataFrame])
    assert_type(tree.nonnegative().round().table, pl.DataFrame)
    assert_type(tree["region"].table, pl.DataFrame)
    return (
        frame.histogram("age", bins=[0, 18, 65], max_rows=1).release(epsilon=0.1).table.sort("age")
    )


def in_words_of_polars(visits: pl.DataFrame) -> pl.DataFrame:
    """Expressions, aggregates and selectors of Polars stand where those of dpframe do."""
    frame = dp.protect(
        visits, unit="user_id", budget=BUDGET, max_rows=5, bounds={"spend": (0, 9), "age": (0, 120)}
    )
    adults = (
        frame.filter(pl.col("age") >= 18, city="Bonn")
        .with_columns(pl.col("spend") / 52)
        .drop(cs.date())
    )
    assert_type(adults, dp.PrivateFrame[pl.DataFrame])
    assert_type(
        adults.mean(["spend", "age"], bounds={"spend": (0, 9), "age": (0, 120)}),
        dp.Query[pl.DataFrame],
    )
    assert_type(adults.sum(cs.numeric()), dp.Query[pl.DataFrame])
    groups = frame.groupby("city", keys=pl.DataFrame({"city": ["Bonn"]}), max_groups=1)
    assert_type(groups, dp.PrivateGroupBy[pl.DataFrame])
    assert_type(groups.median(pl.col("spend", "age")), dp.Query[pl.DataFrame])
    return groups.agg(pl.col("spend").mean(), n=pl.len()).release(epsilon=0.1).table


def of_another_kind(relation: object) -> Any:
    """Other tables, such as relations of DuckDB, are protected alike;
    type checkers do not know what comes out.
    """
    frame = dp.protect(
        relation, unit="user_id", budget=dp.Ledger("study.sqlite").budget("visits", epsilon=1.0)
    )
    assert_type(frame, dp.PrivateFrame[Any])
    return frame.count_units().release(epsilon=0.1).table


def without_parameters(frame: dp.PrivateFrame, query: dp.Query) -> dp.Release:
    """Generic names may stand alone in strict mode too."""
    return query.release(epsilon=0.1) if frame.columns else frame.count_units().release(epsilon=0.1)


def not_accepted(visits: pd.DataFrame) -> None:
    """A price that is no number, a verb there is not, another kind of table;
    and what is registered at run time.
    """
    frame = dp.protect(visits, unit="user_id")
    frame.count_units().release(epsilon="much")  # type: ignore[arg-type]
    frame.no_such_verb()  # type: ignore[attr-defined]
    frame.mean("spend", bounds=(0, 9)) / 2  # type: ignore[operator]
    pl.from_pandas(visits).dp(unit="user_id")  # type: ignore[attr-defined]
    table: pl.DataFrame = frame.count_units().release(epsilon=0.1).table  # type: ignore[assignment]
    visits.dp(unit="user_id")  # type: ignore[operator]
    del table


def divided() -> tuple[tuple[str, ...], float, float]:
    nights = BUDGET.allocate(nights=30, epsilon=1.0)
    series = BUDGET.series("daily", every="1d", epsilon=1.0)
    return BUDGET.forecast().words, nights.share.epsilon, series.total().cost.epsilon
