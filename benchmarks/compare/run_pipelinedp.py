"""PipelineDP 0.3 on its local backend: pip install -r requirements-pipelinedp.txt

Noise: Laplace, and Gaussian, for each question. Limits: max_partitions_contributed and
       max_contributions_per_partition,
or max_contributions. Keys: `select_partitions` by each of its strategies, and a count of units
whose own noise decides.

Command line: FOLDER REPETITIONS [PANEL or TASK ...]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from operator import itemgetter

import pipeline_dp
from pipeline_dp import Metrics, NoiseKind
from pipeline_dp import PartitionSelectionStrategy as Strategy
from study import DELTA, EPSILON, QUANTILE, Answer, Ask, Panel, Question, run


@functools.cache
def rows(panel: Panel) -> list[tuple[int, str, str, int]]:
    return panel.rows()


METRICS = {
    "count": Metrics.COUNT,
    "keyed_count": Metrics.COUNT,
    "keys": Metrics.PRIVACY_ID_COUNT,
    "mean": Metrics.MEAN,
    "median": Metrics.PERCENTILE(50),
    "quantile": Metrics.PERCENTILE(100 * QUANTILE["quantile"]),
}


NOISE = {
    Strategy.LAPLACE_THRESHOLDING: NoiseKind.LAPLACE,
    Strategy.GAUSSIAN_THRESHOLDING: NoiseKind.GAUSSIAN,
}


def releasing(
    question: Question, noise: NoiseKind, strategy: Strategy, *, counted: bool = False
) -> Ask:
    panel, limits, private = question.panel, question.limits, question.by == "key"
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(2 if private else 1),
        value_extractor=itemgetter(3),
    )
    if "max_rows" in limits:
        bound = {"max_contributions": limits["max_rows"]}
    else:
        bound = {
            "max_partitions_contributed": limits["max_groups"],
            "max_contributions_per_partition": limits["max_rows_per_group"],
        }

    def release() -> Answer:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        if question.task == "keys" and not counted:
            params = pipeline_dp.SelectPartitionsParams(
                max_partitions_contributed=limits["max_groups"],
                partition_selection_strategy=strategy,
            )
            found = engine.select_partitions(rows(panel), params, extractors)
            accountant.compute_budgets()
            return dict.fromkeys(found, 0.0)
        values = (
            {}
            if METRICS[question.task] == Metrics.COUNT
            else {"min_value": panel.bounds[0], "max_value": panel.bounds[1]}
        )
        params = pipeline_dp.AggregateParams(
            metrics=[METRICS[question.task]],
            noise_kind=noise,
            partition_selection_strategy=strategy,
            post_aggregation_thresholding=counted,
            **bound,
            **values,
        )
        listed = None if private else list(panel.groups)
        made = engine.aggregate(rows(panel), params, extractors, public_partitions=listed)
        accountant.compute_budgets()
        low, high = panel.bounds
        answers = {group: float(metrics[0]) for group, metrics in made}
        return {g: min(max(x, low), high) for g, x in answers.items()} if values else answers

    return release


def ask(question: Question) -> Iterator[tuple[str, Ask]]:
    if question.by == "key":
        for strategy in Strategy:
            if strategy.is_weighted_gaussian:
                # it calibrates its noise again for each key, in Python: minutes for one release
                continue
            yield strategy.value, releasing(question, NoiseKind.LAPLACE, strategy)
            if question.task == "keys" and strategy.is_thresholding:
                yield (
                    f"{strategy.value}, units counted",
                    releasing(question, NOISE[strategy], strategy, counted=True),
                )
    else:
        for noise in (NoiseKind.LAPLACE, NoiseKind.GAUSSIAN):
            yield noise.value, releasing(question, noise, Strategy.TRUNCATED_GEOMETRIC)


if __name__ == "__main__":
    run("pipelinedp", ask)
