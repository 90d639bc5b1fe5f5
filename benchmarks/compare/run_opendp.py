"""OpenDP 0.16, its Context API over Polars: pip install -r requirements-opendp.txt

Noise: Laplace at (ε, δ), and Gaussian at the largest ρ that implies (ε, δ). Limits:
       `truncate_per_group`, and
`truncate_num_groups` with keep="first", since keep="sample" fails in this version ("multiple fields
with name"); its predicate `rank < k` keeps k - 1 groups, so it is also asked for one more, and
charged for it. A relabelling of the groups that is fresh for each release stands in for "sample".
Means: `dp.mean`, and a sum around the middle of the bounds over a count, which is the better way
and needs the analyst to write it.

Command line: FOLDER REPETITIONS [PANEL or TASK ...]
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

import opendp.prelude as dp
import polars as pl
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

dp.enable_features("contrib")


@functools.cache
def table(panel: Panel) -> pl.DataFrame:
    return pl.read_csv(panel.path, schema_overrides={"grp": pl.String, "key": pl.String})


def limited(query: Any, question: Question, extra: int) -> Any:
    limits, by = question.limits, question.by
    if "max_rows" in limits:
        return query.truncate_per_group(limits["max_rows"])
    query = query.truncate_per_group(one_row_each(question), by=[by])
    return query.truncate_num_groups(limits["max_groups"] + extra, by=[by], keep="first")


def asked(question: Question, loss: Any, extra: int, way: str) -> Any:
    panel, by = question.panel, question.by
    low, high = panel.bounds
    middle = (low + high) // 2
    margin = dp.polars.Margin(by=[by], max_groups=2000, max_length=10**6)
    context = dp.Context.compositor(
        data=table(panel).lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("unit")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[margin],
    )
    value = pl.col("value").fill_null(middle)
    if question.task in ("count", "keys", "keyed_count"):
        columns = [dp.len(signed=True)]
    elif way == "centred":
        columns = [(value - middle).dp.sum((low - middle, high - middle)), dp.len(signed=True)]
    elif question.task == "mean":
        columns = [value.dp.mean((low, high))]
    else:
        columns = [value.dp.quantile(QUANTILE[question.task], panel.candidates())]
    query = limited(context.query(), question, extra).group_by(by).agg(columns)
    return query if by == "key" else query.with_keys(pl.LazyFrame({by: list(panel.groups)}))


def releasing(question: Question, loss: Any, extra: int, way: str) -> Ask:
    measurement = asked(question, loss, extra, way).resolve()
    panel, by = question.panel, question.by
    middle = (panel.bounds[0] + panel.bounds[1]) // 2

    def release() -> Answer:
        data = table(panel)
        labels = sorted(data[by].unique().to_list())
        names = dict(zip(labels, random.sample(labels, len(labels)), strict=True))
        back = {new: old for old, new in names.items()}
        made = measurement(data.with_columns(pl.col(by).replace(names)).lazy()).collect()
        if way == "centred":
            values = middle + made["value"] / made["len"].clip(1, None)
            values = values.clip(*panel.bounds)
        else:
            values = made.drop(by).to_series()
        if question.task == "mean":
            values = values.fill_nan(middle).fill_null(middle).clip(*panel.bounds)
        return {back[group]: value for group, value in zip(made[by], values, strict=True)}

    return release


def ask(question: Question) -> Iterator[tuple[str, Ask]]:
    private = question.by == "key"
    laplace = dp.loss_of(epsilon=EPSILON, delta=DELTA) if private else dp.loss_of(epsilon=EPSILON)
    losses = {"laplace": laplace}
    if question.task in ("count", "mean"):
        losses["gaussian"] = dp.loss_of(rho=gaussian_rho())
    for name, loss in losses.items():
        for extra in (0,) if "max_rows" in question.limits else (0, 1):
            for way in ("mean", "centred") if question.task == "mean" else ("",):
                label = " ".join(x for x in (name, way, "one group more" if extra else "") if x)
                yield label, releasing(question, loss, extra, way)


if __name__ == "__main__":
    run("opendp", ask)
