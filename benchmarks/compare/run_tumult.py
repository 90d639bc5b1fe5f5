"""Tumult Analytics 0.21 on local Spark 3.5 (Java 17): pip install -r requirements-tumult.txt

Noise: Laplace (PureDPBudget), and Gaussian (RhoZCDPBudget at the largest ρ that implies (ε, δ)).
       Limits:
MaxGroupsPerID and MaxRowsPerGroupPerID, or MaxRowsPerID. Keys: `get_groups`; where a count is asked
too, the keys have half of ε.

Command line: FOLDER REPETITIONS [PANEL or TASK ...]
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from study import (
    DELTA,
    EPSILON,
    QUANTILE,
    Answer,
    Ask,
    Panel,
    Question,
    gaussian_rho,
    one_row_each,
    run,
)
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

os.environ["PYSPARK_PYTHON"] = sys.executable  # workers of the same environment
OPTIONS = "--add-opens=java.base/java.nio=ALL-UNNAMED -Dio.netty.tryReflectionSetAccessible=true"


@functools.cache
def spark() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config(
        "spark.driver.extraJavaOptions", OPTIONS
    )
    for name, value in {
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": str(Path(sys.argv[1]).absolute() / "spark"),
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@functools.cache
def session(panel: Panel, kind: str) -> Session:
    whole = {
        "pure": PureDPBudget(float("inf")),
        "zcdp": RhoZCDPBudget(float("inf")),
        "approx": ApproxDPBudget(float("inf"), 1),
    }[kind]
    data = (
        spark()
        .read.csv(
            str(panel.path), header=True, schema="unit long, grp string, key string, value long"
        )
        .cache()
    )
    return (
        Session.Builder()
        .with_privacy_budget(whole)
        .with_id_space("units")
        .with_private_dataframe("rows", data, protected_change=AddRowsWithID("unit", "units"))
        .build()
    )


def builder(question: Question) -> QueryBuilder:
    limits = question.limits
    rows = QueryBuilder("rows")
    if "max_rows" in limits:
        return rows.enforce(MaxRowsPerID(limits["max_rows"]))
    return rows.enforce(MaxGroupsPerID(question.by, limits["max_groups"])).enforce(
        MaxRowsPerGroupPerID(question.by, one_row_each(question))
    )


def query(question: Question) -> Any:
    low, high = question.panel.bounds
    keys = KeySet.from_dict({"grp": list(question.panel.groups)})
    groups = builder(question).groupby(keys)
    if question.task == "count":
        return groups.count(name="x")
    if question.task == "mean":
        return groups.average("value", low=low, high=high, name="x")
    return groups.quantile("value", QUANTILE[question.task], low=low, high=high, name="x")


def answered(made: Any, question: Question) -> Answer:
    frame = made.toPandas()
    low, high = (
        question.panel.bounds if question.task in ("mean", *QUANTILE) else (-math.inf, math.inf)
    )
    pairs = zip(frame[question.by], frame["x"])  # noqa: B905
    return {group: min(max(float(x), low), high) for group, x in pairs}


def ask(question: Question) -> Iterator[tuple[str, Ask]]:
    if question.by == "key":
        budget = session(question.panel, "approx")
        half = EPSILON if question.task == "keys" else EPSILON / 2

        def keys() -> Answer:
            groups = builder(question).get_groups(["key"])
            found = budget.evaluate(groups, ApproxDPBudget(half, DELTA)).toPandas()["key"]
            return dict.fromkeys(found, 0.0)

        yield "get_groups", keys
        return
    prices = {
        "laplace": ("pure", PureDPBudget(EPSILON)),
        "gaussian": ("zcdp", RhoZCDPBudget(gaussian_rho())),
    }
    for noise, (kind, price) in prices.items():
        if question.task in QUANTILE and noise == "gaussian":
            continue  # its quantiles are chosen by the exponential mechanism either way
        asked, budget = query(question), session(question.panel, kind)
        yield noise, functools.partial(_released, budget, asked, price, question)


def _released(budget: Session, asked: Any, price: Any, question: Question) -> Answer:
    return answered(budget.evaluate(asked, price), question)


if __name__ == "__main__":
    run("tumult", ask)
