"""Made-up panels: people with many rows each, in groups, with a value."""

import numpy as np
import polars as pl

import dpframe as dp


def panel(seed, units=2000, groups=10, spread=1.2):
    draw = np.random.default_rng(seed)
    rows = np.ceil(draw.lognormal(2.0, spread, units)).astype(int)
    ids = np.repeat(np.arange(units), rows)
    return pl.DataFrame(
        {"id": ids, "g": draw.integers(0, groups, len(ids)), "x": draw.uniform(1, 5, len(ids))}
    )


def protect(table, epsilon=1e6, **options):
    budget = dp.Budget(epsilon=epsilon, delta=0.9, accountant="basic")
    return dp.protect(table, unit="id", budget=budget, **options)


def error(frame, truth, **limits):
    """Root mean square error of the counts of ten listed groups, over 15 releases."""
    query = frame.group_by("g", keys=list(range(10)), **limits).count()
    squares = [
        np.mean((query.release(epsilon=1).table["count"].to_numpy() - truth) ** 2)
        for _ in range(15)
    ]
    return float(np.sqrt(np.mean(squares)))
