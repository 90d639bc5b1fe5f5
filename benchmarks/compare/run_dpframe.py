"""dpframe: fixed limits as everyone's, limits=dp.Auto(), and the best fixed limits in hindsight.

Command line: FOLDER REPETITIONS [PANEL or TASK ...]
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import polars as pl
from study import DELTA, EPSILON, LIMITS, QUANTILE, Answer, Ask, Panel, Question, run, truth

import dpframe as dp

GRID = [{"max_rows": round(1.3**i)} for i in range(30)] + [
    {"max_groups": m, "max_rows_per_group": k}
    for m, k in itertools.product((1, 2, 5, 12, 30), (1, 2, 5, 12, 30, 80))
]


@functools.cache
def table(panel: Panel) -> pl.DataFrame:
    return pl.read_csv(panel.path, schema_overrides={"grp": pl.String, "key": pl.String})


@functools.cache
def raw(panel: Panel, task: str) -> Answer:
    return truth(panel, task)


def query(question: Question, **limits: object) -> dp.Query:
    frame = table(question.panel).dp(unit="unit", budget=dp.Budget(epsilon=10**9, delta=0.5))
    bounds = question.panel.bounds
    if question.task in ("keys", "keyed_count"):
        groups = frame.group_by("key", **limits)
        return groups.agg(x=dp.count_units() if question.task == "keys" else dp.count())
    groups = frame.group_by("grp", keys=list(question.panel.groups), **limits)
    if question.task == "count":
        return groups.agg(x=dp.count())
    if question.task == "mean":
        return groups.agg(x=dp.mean("value", bounds=bounds))
    return groups.agg(x=dp.quantile("value", QUANTILE[question.task], bounds=bounds))


def releasing(question: Question, **limits: object) -> Ask:
    asked, by = query(question, **limits), question.by

    def release() -> Answer:
        made = asked.release(epsilon=EPSILON, delta=DELTA).table
        return dict(zip(made[by].to_list(), made["x"].to_list(), strict=True))

    return release


def keys_alone(question: Question) -> Ask:
    frame = table(question.panel).dp(unit="unit", budget=dp.Budget(epsilon=10**9, delta=0.5))
    asked = frame.group_by("key", **question.limits).keys()

    def release() -> Answer:
        return dict.fromkeys(
            asked.release(epsilon=EPSILON, delta=DELTA).table["key"].to_list(), 0.0
        )

    return release


def best_in_hindsight(question: Question) -> dict[str, int]:
    """The fixed limits of the grid with the least error;
    found with the truth, so no private choice can know them.
    """
    exact = raw(question.panel, question.task)

    def error(limits: dict[str, int]) -> float:
        release = releasing(question, **limits)
        answers = [release() for _ in range(6)]
        return math.fsum((a[g] - exact[g]) ** 2 for a in answers for g in exact)

    return min(GRID, key=error)


def ask(question: Question) -> Iterator[tuple[str, Ask]]:
    if question.task == "keys":
        yield "keys", keys_alone(question)
        yield "units counted", releasing(question, **question.limits)
        return
    yield "", releasing(question, **question.limits)
    if question.limits == LIMITS[0] and question.task not in ("keys", "keyed_count"):
        yield "auto", releasing(question, limits=dp.Auto())
        best = best_in_hindsight(question)
        yield (
            f"hindsight {' '.join(f'{name}={value}' for name, value in best.items())}",
            releasing(question, **best),
        )


if __name__ == "__main__":
    run("dpframe", ask)
