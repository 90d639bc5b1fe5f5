"""How far one quantile is off: among 1,024 candidates, as it was, as it is, and by the mechanism over intervals.

One value for each person, ε = 1 without δ, mean over releases. "1,024" is permute-and-flip among 1,024 evenly spaced
values beside 8 · scale public rows, whatever the number of rows. "intervals" is the exponential mechanism over the
intervals between the values (Smith 2011), which has no candidates and no public rows. Both are simulated here. The
rank error is the number of values between the answer and the rank; the error is in the unit of the column.

    python benchmarks/fine_quantiles.py [RELEASES]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl

import dpframe as dp

Law = Callable[[np.random.Generator, int], np.ndarray]
LAWS: dict[str, tuple[Law, tuple[float, float], float, tuple[int, ...]]] = {
    "lognormal, ln x about 7": (lambda r, n: r.lognormal(7, 0.5, n), (0, 20_000), 0.5, (300, 2000, 20_000)),
    "incomes, whole": (lambda r, n: np.rint(r.lognormal(10.3, 0.7, n)), (0, 1e6), 0.5, (2000, 100_000)),
    "incomes, 9th decile": (lambda r, n: np.rint(r.lognormal(10.3, 0.7, n)), (0, 1e6), 0.9, (2000, 100_000)),
    "hours, whole": (lambda r, n: np.rint(r.normal(38, 8, n)), (0, 100), 0.5, (100, 300, 3000)),
    "normal, few": (lambda r, n: r.normal(40, 10, n), (0, 100), 0.5, (10, 30, 100)),
    "maximum of uniform values": (lambda r, n: r.uniform(0, 50, n), (-50, 100), 1.0, (100, 1000, 10_000)),
}


def by_candidates(x: np.ndarray, q: float, bounds: tuple[float, float], draw: np.random.Generator) -> float:
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
        worse = np.maximum(below - q * rows + shift, q * rows - upto - shift - prior * scale / count)
    return float(bounds[0] + step * np.argmax(draw.exponential(size=count) - np.maximum(worse, 0) / scale))


def by_intervals(x: np.ndarray, q: float, bounds: tuple[float, float], draw: np.random.Generator) -> float:
    """The exponential mechanism over the intervals between values, each with its length."""
    ends = np.concatenate([[bounds[0]], np.sort(x), [bounds[1]]])
    gaps = -np.abs(np.arange(len(x) + 1) - q * len(x)) / (2 * max(q, 1 - q))
    with np.errstate(divide="ignore"):
        keys = np.log(np.diff(ends)) + gaps + draw.gumbel(size=len(gaps))
    first = int(np.argmax(keys))
    return float(draw.uniform(ends[first], ends[first + 1]))


def released(x: np.ndarray, q: float, bounds: tuple[float, float]) -> float:
    frame = pl.DataFrame({"id": np.arange(len(x)), "x": x}).dp(unit="id", budget=dp.Budget(epsilon=1.0))
    return float(frame.quantile("x", q, bounds, max_rows=1).release(epsilon=1.0).value)


def off(x: np.ndarray, q: float, value: float) -> tuple[float, float]:
    """The rank error and the error of a value."""
    low, high = (np.searchsorted(np.sort(x), value, side=side) for side in ("left", "right"))
    return max(low - q * len(x), q * len(x) - high, 0.0), abs(value - float(np.quantile(x, q)))


def main(releases: int) -> None:
    warnings.simplefilter("ignore")
    draw = np.random.default_rng(1)
    print("| values | q | rows | rank error: 1,024 | now | ratio | intervals | error: 1,024 | now | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (law, bounds, q, sizes) in LAWS.items():
        for rows in sizes:
            errors = np.zeros((releases, 3, 2))
            for trial in range(releases):
                x = np.clip(law(draw, rows), *bounds)
                old, limit = by_candidates(x, q, bounds, draw), by_intervals(x, q, bounds, draw)
                errors[trial] = [off(x, q, value) for value in (old, released(x, q, bounds), limit)]
            (old_rank, old), (rank, error), (least, _) = errors.mean(axis=0)
            print(
                f"| {name} | {q:g} | {rows:,} | {old_rank:.3g} | {rank:.3g} | {old_rank / max(rank, 1e-9):.3g} | "
                f"{least:.3g} | {old:.3g} | {error:.3g} | {old / max(error, 1e-9):.3g} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
