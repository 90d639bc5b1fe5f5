"""How far quantiles and distribution functions are off, as they are, and as
they were with 1,024 candidates.

One value for each person, ε = 1 without δ, mean over up to so many groups. "1,024" is
permute-and-flip among 1,024 evenly spaced values beside 8 · scale public rows, whatever the number
of rows, simulated here. "intervals" is the exponential mechanism over the intervals between the
values (Smith 2011), which has no candidates and no public rows. "by law" is the mean over the law
of the choice in each group, which no draw of noise changes. The rank error is the number of values
between the answer and the rank; the error is in the unit of the column.

    python benchmarks/fine_quantiles.py [GROUPS]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.arrays import Integers
from dpframe.plan import question
from dpframe.plan.statistics import cut_at_points
from dpframe.release.answer import selection
from dpframe.release.pricing.choice_mechanisms import PermuteAndFlip

Law = Callable[[np.random.Generator, int], np.ndarray]
LAWS: dict[str, tuple[Law, tuple[float, float], float, tuple[int, ...]]] = {
    "lognormal, ln x about 7": (
        lambda r, n: r.lognormal(7, 0.5, n),
        (0, 20_000),
        0.5,
        (300, 2000, 20_000),
    ),
    "incomes, whole": (
        lambda r, n: np.rint(r.lognormal(10.3, 0.7, n)),
        (0, 1e6),
        0.5,
        (2000, 100_000),
    ),
    "incomes, 9th decile": (
        lambda r, n: np.rint(r.lognormal(10.3, 0.7, n)),
        (0, 1e6),
        0.9,
        (2000, 100_000),
    ),
    "incomes in thousands": (
        lambda r, n: 1000 * np.rint(r.lognormal(3.39, 0.7, n)),
        (0, 1e6),
        0.5,
        (300, 2000),
    ),
    "hours, whole": (lambda r, n: np.rint(r.normal(38, 8, n)), (0, 100), 0.5, (100, 300, 3000)),
    "normal, few": (lambda r, n: r.normal(40, 10, n), (0, 100), 0.5, (10, 30, 100)),
    "maximum of uniform values": (
        lambda r, n: r.uniform(0, 50, n),
        (-50, 100),
        1.0,
        (100, 1000, 10_000),
    ),
}


def by_candidates(
    x: np.ndarray, q: float, bounds: tuple[float, float], draw: np.random.Generator
) -> float:
    """Permute-and-flip among 1,024 values, as dpframe 0.1.0 did it before."""
    count, rows, prior = 1024, len(x), 8.0
    step = (bounds[1] - bounds[0]) / (count - 1)
    counts = np.bincount(np.rint((x - bounds[0]) / step).astype(int), minlength=count)
    upto, at = np.cumsum(counts), np.arange(count)
    below, scale = upto - counts, 2 * max(q, 1 - q)
    if q == 1:
        target = min(np.log(count + 1) * 2 * scale, rows)
        worse = np.maximum(2 * (rows - upto) - target, target - 2 * (rows - below)) / 2
    else:
        shift = prior * scale * (at / count - q)
        worse = np.maximum(
            below - q * rows + shift, q * rows - upto - shift - prior * scale / count
        )
    return float(
        bounds[0] + step * np.argmax(draw.exponential(size=count) - np.maximum(worse, 0) / scale)
    )


def by_intervals(x: np.ndarray, q: float, bounds: tuple[float, float]) -> float:
    """The expected rank error of the exponential mechanism over the intervals
    between values, each with its length.
    """
    ends = np.concatenate([[bounds[0]], np.sort(x), [bounds[1]]])
    errors = np.abs(np.arange(len(x) + 1) - q * len(x))
    with np.errstate(divide="ignore"):
        logs = np.log(np.diff(ends)) - errors / (2 * max(q, 1 - q))
    weights = np.exp(logs - logs.max())
    return float(np.sum(weights * errors) / np.sum(weights))


@dataclass
class Choices:
    """Choices of a release, as the mechanism was asked:
    scores, a rate, and how many candidates each stands for.
    """

    asked: list[tuple[np.ndarray, float, np.ndarray | None]] = field(default_factory=list)
    first: list[np.ndarray] = field(default_factory=list)

    def choose(
        self, mechanism: Any, scores: np.ndarray, rate: Fraction, *copies: Integers
    ) -> Integers:
        self.asked.append((scores, float(rate), copies[0] if copies else None))
        return CHOOSE(mechanism, scores, rate, *copies)

    def in_list(self, total: Any, first: Integers, *more: Any) -> Integers:
        self.first.append(first)
        return IN_LIST(total, first, *more)

    def errors(self, groups: list[np.ndarray], q: float, candidates: Any) -> list[float]:
        """The expected rank error in each group."""
        found, group = [], 0
        for piece, (scores, rate, copies) in enumerate(self.asked):
            for row in range(len(scores)):
                many = np.ones(scores.shape[1]) if copies is None else copies[row]
                gaps = rate * np.where(
                    many > 0,
                    scores[row].max(where=many > 0, initial=-(2**62)) - scores[row],
                    np.inf,
                )
                likely = np.flatnonzero(np.log(np.maximum(many, 1)) - gaps > -40)
                first = likely if copies is None else self.first[piece][row][likely]
                errors = [off(groups[group], q, value)[0] for value in candidates.points(first)]
                found.append(float(np.dot(errors, permute_and_flip(gaps[likely], many[likely]))))
                group += 1
        return found


CHOOSE, IN_LIST = PermuteAndFlip.choose, selection.in_list


def permute_and_flip(gaps: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Probabilities of candidates that are worse by such gaps, each with copies:
    an integral over the largest key.
    """
    keys = np.linspace(0, np.log(np.sum(many * np.exp(-gaps)) + 1) + 40, 4000)[1:, None]
    tails = np.exp(-keys - gaps)
    logs = many * np.log1p(-np.minimum(tails, 1 - 1e-16))
    density = many * tails / -np.expm1(-keys - gaps) * np.exp(logs.sum(axis=1, keepdims=True))
    chances = np.trapezoid(density, keys[:, 0], axis=0)
    return np.asarray(chances / chances.sum())


def released(
    groups: list[np.ndarray], q: float, bounds: tuple[float, float]
) -> tuple[np.ndarray, list[float]]:
    """One release of a quantile by group, where each person is in one
    group, and the expected rank errors.
    """
    keys, sizes = list(range(len(groups))), [len(x) for x in groups]
    x = np.concatenate(groups)
    table = pl.DataFrame({"id": np.arange(len(x)), "g": np.repeat(keys, sizes), "x": x})
    frame = table.dp(unit="id", budget=dp.Budget(epsilon=1.0))
    query = frame.group_by("g", keys=keys, max_groups=1, max_rows_per_group=1).quantile(
        "x", q, bounds
    )
    seen = Choices()
    with (
        mock.patch.object(PermuteAndFlip, "choose", lambda *asked: seen.choose(*asked)),
        mock.patch.object(selection, "in_list", seen.in_list),
    ):
        values = query.release(epsilon=1.0).table["x"].to_numpy()
    return values, seen.errors(groups, q, query._question.outputs[0].total.candidates)


def off(x: np.ndarray, q: float, value: float) -> tuple[float, float]:
    """The rank error and the error of a value."""
    low, high = (np.searchsorted(np.sort(x), value, side=side) for side in ("left", "right"))
    return max(low - q * len(x), q * len(x) - high, 0.0), abs(value - float(np.quantile(x, q)))


def quantiles(most: int) -> None:
    draw = np.random.default_rng(1)
    print(
        "| values | q | rows | rank error: 1,024 | now | by law | intervals, by law | error: "
        "1,024 | now | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (law, bounds, q, sizes) in LAWS.items():
        for rows in sizes:
            groups = [
                np.clip(law(draw, rows), *bounds)
                for _ in range(min(most, max(2_000_000 // rows, 20)))
            ]
            now, laws = released(groups, q, bounds)
            least = np.mean([by_intervals(x, q, bounds) for x in groups])
            errors = np.zeros((len(groups), 2, 2))
            for i, x in enumerate(groups):
                errors[i] = [
                    off(x, q, value) for value in (by_candidates(x, q, bounds, draw), now[i])
                ]
            (old_rank, old), (rank, error) = errors.mean(axis=0)
            print(
                f"| {name} | {q:g} | {rows:,} | {old_rank:.3g} | {rank:.3g} | {np.mean(laws):.3g} "
                f"| {least:.3g} | {old:.3g} | {error:.3g} | {error / old:.2g} |",
                flush=True,
            )


SHARES: dict[str, tuple[Law, tuple[float, float], list[float]]] = {
    "lognormal, ln x about 3": (lambda r, n: r.lognormal(3, 1, n), (0, 200), [10, 20, 50]),
    "ages, floats": (lambda r, n: r.integers(18, 90, n).astype(float), (0, 100), [18, 30, 65]),
    "normal, one point": (lambda r, n: r.normal(40, 10, n), (0, 100), [50]),
    "normal, ten points": (
        lambda r, n: r.normal(40, 10, n),
        (0, 100),
        [10.0 * i for i in range(1, 11)],
    ),
    "normal, 99 points": (
        lambda r, n: r.normal(40, 10, n),
        (0, 100),
        [float(i) for i in range(1, 100)],
    ),
}


def shares(releases: int, rows: int = 5000) -> None:
    """Distribution functions: cut at the points, and as without the
    cuts, from a tree of 1,024 values.
    """
    print(
        "\n| values | points | rows off: a tree of 1,024 | cut at the points | ratio "
        "|\n|---|---:|---:|---:|---:|"
    )
    for name, (law, bounds, points) in SHARES.items():
        x = np.clip(law(np.random.default_rng(1), rows), *bounds)
        true, found = np.array([np.mean(x <= point) for point in points]), []
        for cut in (lambda outputs: outputs, cut_at_points):
            with mock.patch.object(question, "cut_at_points", cut):
                frame = pl.DataFrame({"id": np.arange(rows), "x": x}).dp(
                    unit="id", budget=dp.Budget(epsilon=1e6)
                )
                query = frame.cdf("x", points, bounds, max_rows=1)
                parts = [query.release(epsilon=1.0).to_polars().row(0) for _ in range(releases)]
                found.append(rows * float(np.sqrt(np.mean((np.array(parts) - true) ** 2))))
        print(
            f"| {name} | {len(points)} | {found[0]:.3g} | {found[1]:.3g} | "
            f"{found[0] / found[1]:.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    quantiles(number)
    shares(max(number // 10, 20))
