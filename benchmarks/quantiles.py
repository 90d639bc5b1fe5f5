"""How far several quantiles are off, in ranks:
one choice for each, one tree, and PipelineDP's tree simulated.

10,000 values of a lognormal law (of ln x: mean 3, standard deviation 1), one for each person,
bounds 0 to 200, ε = 1 without δ. The error of a quantile is the number of values between it and its
rank; printed is the mean over the ranks i/(r + 1) and over the releases. PipelineDP's tree has 4
levels of degree 16 below its root, and a quarter of ε for each. A quantile is found from the top
down by its noisy counts alone; nodes with less than 1/200 of their siblings' rows count as empty.
It is simulated at ε alone. A second law, and prices in ε and δ, follow.

    python benchmarks/quantiles.py [RELEASES]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
import polars as pl

import dpframe as dp

ROWS, BOUNDS = 10_000, (0.0, 200.0)
NUMBERS = (1, 2, 4, 9, 19, 99)
DEGREE, HEIGHT, SMALLEST = 16, 4, 0.005
LAWS = {"lognormal, ln x about 3": (3.0, 1.0), "lognormal, ln x about 2, spread 0.5": (2.0, 0.5)}


def rank_error(values: np.ndarray, quantiles: Sequence[float], ranks: Sequence[float]) -> float:
    ordered, target = np.sort(np.clip(values, *BOUNDS)), np.array(ranks) * len(values)
    low, high = (np.searchsorted(ordered, quantiles, side=side) for side in ("left", "right"))
    return float(np.mean(np.maximum(np.maximum(low - target, target - high), 0)))


def chosen(
    values: np.ndarray, ranks: Sequence[float], price: dict[str, float], *, together: bool
) -> list[float]:
    table = pl.DataFrame({"id": np.arange(len(values)), "x": values})
    frame = table.dp(unit="id", budget=dp.Budget(epsilon=1.0, delta=1e-5))
    asked = (
        {"q": dp.quantile("x", list(ranks), bounds=BOUNDS)}
        if together
        else {f"q{i}": dp.quantile("x", rank, bounds=BOUNDS) for i, rank in enumerate(ranks)}
    )
    return list(frame.agg(**asked, max_rows=1).release(**price).to_polars().row(0))


def simulated(values: np.ndarray, ranks: Sequence[float], draw: np.random.Generator) -> list[float]:
    low, high = BOUNDS
    leaves = DEGREE**HEIGHT
    at = np.minimum((np.clip(values, low, high) - low) / (high - low) * leaves, leaves - 1).astype(
        int
    )
    levels = [np.bincount(at, minlength=leaves).astype(float)]
    for _ in range(HEIGHT - 1):
        levels.append(levels[-1].reshape(-1, DEGREE).sum(axis=1))
    noisy = [level + draw.laplace(0, HEIGHT, level.shape) for level in levels[::-1]]
    return [_descended(noisy, rank) for rank in ranks]


def _descended(noisy: list[np.ndarray], rank: float) -> float:
    node, (left, width), part = 0, (BOUNDS[0], BOUNDS[1] - BOUNDS[0]), rank
    for level in noisy:
        counts = np.maximum(level[node * DEGREE : (node + 1) * DEGREE], 0)
        counts = np.where(counts < SMALLEST * counts.sum(), 0, counts)
        total = counts.sum()
        if not total:
            break
        upto = np.cumsum(counts)
        child = min(int(np.searchsorted(upto, part * total, side="left")), DEGREE - 1)
        inside = part * total - (upto[child] - counts[child])
        part = float(np.clip(inside / counts[child], 0, 1)) if counts[child] else 0.0
        node, width = node * DEGREE + child, width / DEGREE
        left += child * width
    return left + part * width


def main() -> None:
    releases, draw = int(sys.argv[1]) if len(sys.argv) > 1 else 20, np.random.default_rng(1)
    warnings.simplefilter("ignore")
    for law, (middle, spread) in LAWS.items():
        for price in ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}):
            print(f"\n{law}, {price}: mean rank error over {releases} releases")
            print("ranks  one choice each  a list (dpframe)  PipelineDP's tree")
            for number in NUMBERS:
                ranks = [(i + 1) / (number + 1) for i in range(number)]
                errors = []
                for _ in range(releases):
                    values = draw.lognormal(middle, spread, ROWS)
                    each, tree = (
                        chosen(values, ranks, price, together=together)
                        for together in (False, True)
                    )
                    errors.append(
                        [
                            rank_error(values, q, ranks)
                            for q in (each, tree, simulated(values, ranks, draw))
                        ]
                    )
                each, tree, other = np.mean(errors, axis=0)
                print(f"{number:5}  {each:15.1f}  {tree:16.1f}  {other:17.1f}")


if __name__ == "__main__":
    main()
