"""Margins: the error of sums of noisy cells, and least squares where noisy margins
are measured beside noisy cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np

from dpframe.arrays import Floats
from dpframe.noise import halved

Source = Literal["cells", "rows", "columns", "total"]
Terms = tuple[tuple[float, Source, int], ...]

_TERMS = 2**14  # of the series of a law


def chernoff_error(variance: float, laplace: Sequence[tuple[float, int]], alpha: float) -> float:
    """An e that the absolute value of a sum of independent noises exceeds
    with probability at most alpha.

    Input:  variance of the normal part; laplace: pairs (scale, number of Laplace noises with it),
            all in one unit; alpha in (0, 1)
    Output: e (same unit)
    Bound:  without Laplace noise, the normal quantile. Otherwise Chernoff's bound: E exp(sX) is
            exp(s²V/2) times Π 1 / (1 - s²b²)^n, for s below every 1/b, and P[|X| > e] <= 2 E
            exp(sX) / exp(se), at the best s. The bound also holds for a discrete Laplace noise of
            scale b: its E exp(sX) = (cosh a - 1) / (cosh a - cosh s) with a = 1/b is at most a² /
            (a² - s²), since (cosh x - 1) / x² increases in x
    Source: Chernoff 1952, doi:10.1214/aoms/1177729330
    Errors: none here

    >>> round(chernoff_error(4.0, [], 0.05), 4)
    3.9199
    >>> chernoff_error(0.0, [(1.0, 4)], 0.05) > 1.96 * 8**0.5
    True
    """
    parts = [(scale, number) for scale, number in laplace if scale > 0 and number > 0]
    if not parts:
        return math.sqrt(variance) * NormalDist().inv_cdf(1 - alpha / 2)
    s = np.geomspace(1e-4, 1 - 1e-4, 500) / max(scale for scale, _ in parts)
    grown = s**2 * variance / 2 - sum(
        number * np.log1p(-((s * scale) ** 2)) for scale, number in parts
    )
    return float(np.min((grown + math.log(2 / alpha)) / s))


def sum_error(variance: float, laplace: Sequence[tuple[float, int, float]], alpha: float) -> float:
    """The smallest e that the absolute value of a sum of independent noises exceeds with
    probability at most alpha.

    Input:  variance of the normal part; laplace: triples (scale, number of Laplace noises with it,
            step of the discrete ones or 0), all in one unit; alpha in (0, 1)
    Output: e (same unit), nearly the exact one, and never above that of `chernoff_error`
    Bound:  let f(t) = exp(-t²V/2) Π 1 / (1 + q(t)²)^n be the characteristic function of the sum X,
            with q(t) = tb, and sin(tg/2) / sinh(g/2b) for discrete noise of step g. On a circle of
            length T the interval [-e, e] is the Fourier series 2e/T + Σ_k 2 sin(2πke/T) / πk ·
            cos(2πkx/T). So Σ_m P[|X - mT| <= e] = 2e/T + Σ_k 2 sin(2πke/T) f(2πk/T) / πk. Terms
            with m other than 0 are together at most P[|X| >= T - e]. With T twice Chernoff's error
            for alpha / 1000 that is at most alpha / 1000, for every e up to T/2. The series ends at
            K, where u = 2πK/T. What is left is Σ_(k>K) 2 f / πk. With a real noise of scale b it is
            at most 1 / πu²b², and with a normal part at most 2 exp(-u²V/2) / πu²V. Both are added
            to the probability beyond e
    Source: Gil-Pelaez 1951, doi:10.1093/biomet/38.3-4.481; Abate, Whitt 1992, for the circle
    Errors: none here

    >>> round(sum_error(4.0, [], 0.05), 4), round(sum_error(0.0, [(1.0, 1, 0.0)], 0.05), 2)
    (3.9199, 3.0)
    """
    parts = [part for part in laplace if part[0] > 0 and part[1] > 0]
    pairs = [(scale, number) for scale, number, _ in parts]
    high = chernoff_error(variance, pairs, alpha)
    if not parts:
        return high
    circle = 2 * chernoff_error(variance, pairs, alpha / 1000)
    k = np.arange(1, _TERMS + 1)
    t = 2 * math.pi / circle * k
    logs = -(t**2) * variance / 2
    for scale, number, step in parts:
        q = np.sin(t * step / 2) / math.sinh(min(step / scale / 2, 700.0)) if step else t * scale
        logs -= number * np.log1p(q**2)
    far = float(t[-1]) ** 2 * max(1e-300, variance)
    real = max((scale for scale, _, step in parts if not step), default=0.0) * float(t[-1])
    rest = min(2 * math.exp(-far / 2) / far, real**-2 if real else math.inf) / math.pi
    weights = 2 / math.pi * np.exp(logs) / k

    def enough(error: float) -> bool:
        within = 2 * error / circle + float(np.sin(t * error) @ weights)
        return 1 - within + alpha / 1000 + rest <= alpha

    return halved(enough, 0.0, high, 40)[1]


@dataclass(frozen=True)
class Estimators:
    """Coefficients of the weighted least squares estimates of cells, row
    margins, column margins and the total.

    A term is (coefficient, source, how many numbers of the source have it). Sources are the noisy
    tables that were measured: "cells", "rows", "columns" and "total".
    """

    cell: Terms
    row: Terms
    column: Terms
    total: Terms

    def variances(
        self, noise_variances: Mapping[Source, float]
    ) -> tuple[float, float, float, float]:
        """Variance of a cell, a row margin, a column margin and the total."""

        def variance(terms: Terms) -> float:
            return math.fsum(
                number * weight**2 * noise_variances[source]
                for weight, source, number in terms
                if weight
            )

        return variance(self.cell), variance(self.row), variance(self.column), variance(self.total)


def estimators(rows: int, columns: int, noise_variances: Mapping[Source, float]) -> Estimators:
    """The weighted least squares table from noisy cells, row sums, column sums and
    a noisy total, in closed form.

    Input:  number of rows and columns; variance of the noise of each number of "cells", and of
            "rows", "columns", "total" where they are measured
    Output: the coefficients of each kind of published number; see `fitted` for the numbers
            themselves
    Bound:  write a table as total / RC + (row sum minus the mean row sum) / C + (column sum minus
            the mean column sum) / R + the interaction. These four parts are orthogonal. Each
            measured table estimates some parts, with one variance for all directions of a part. The
            total is estimated by the sum of the cells (variance RC·v), the sum of the rows (R·v_r),
            the sum of the columns (C·v_c) and the measured total (v_t). Row sums minus their mean
            are estimated by cells (C·v) and rows (v_r), column sums likewise, and the interaction
            by cells alone. So the normal equations separate into averages with weights 1 /
            variance. By Gauss and Markov these are the unbiased linear estimates with the smallest
            variance, for each part and so for every cell and margin
    Source: the argument is ours; consistency by least squares as in Hay et al. 2010,
            arXiv:0904.0942
    Errors: none here

    >>> estimators(2, 2, {"cells": 1.0}).variances({"cells": 1.0})
    (1.0, 2.0, 2.0, 4.0)
    """
    v, every = noise_variances["cells"], rows * columns
    by_row, by_column, by_total = (
        _precision(noise_variances, source) for source in ("rows", "columns", "total")
    )
    a = 1 / (1 + columns * v * by_row)  # the weight of cells in a row sum minus the mean row sum
    b = 1 / (1 + rows * v * by_column)
    spread = 1 / (1 / (every * v) + by_row / rows + by_column / columns + by_total)
    w, w_row, w_column, w_total = (
        spread * x for x in (1 / (every * v), by_row / rows, by_column / columns, by_total)
    )
    # what a cell takes from its own row and column, and from the other ones
    own_row, own_column = (1 - a) / columns * (1 - 1 / rows), (1 - b) / rows * (1 - 1 / columns)
    row_part, column_part, total_part = (1 - a) / every, (1 - b) / every, (1 - w) / every
    cell: Terms = (
        (1 - own_row - own_column - total_part, "cells", 1),
        (column_part - own_row - total_part, "cells", columns - 1),
        (row_part - own_column - total_part, "cells", rows - 1),
        (row_part + column_part - total_part, "cells", (rows - 1) * (columns - 1)),
        (own_row + w_row / every, "rows", 1),
        (w_row / every - row_part, "rows", rows - 1),
        (own_column + w_column / every, "columns", 1),
        (w_column / every - column_part, "columns", columns - 1),
        (w_total / every, "total", 1),
    )
    total: Terms = (
        (w, "cells", every),
        (w_row, "rows", rows),
        (w_column, "columns", columns),
        (w_total, "total", 1),
    )
    row = _margin(a, rows, columns, (w_row, "rows"), (w_column, "columns"), (w, w_total))
    column = _margin(b, columns, rows, (w_column, "columns"), (w_row, "rows"), (w, w_total))
    return Estimators(cell, row, column, total)


def _margin(
    share: float,
    number: int,
    size: int,
    along: tuple[float, Source],
    across: tuple[float, Source],
    whole: tuple[float, float],
) -> Terms:
    """One of so many sums, each of so many cells, which have this share of it beside their mean.

    The others are the weights in the total: of sums along and across, of cells and of the measured
    total.
    """
    (w_own, own), (w_other, other), (w, w_total) = along, across, whole
    return (
        (share * (1 - 1 / number) + w / number, "cells", size),
        ((w - share) / number, "cells", (number - 1) * size),
        ((1 - share) * (1 - 1 / number) + w_own / number, own, 1),
        ((w_own - (1 - share)) / number, own, number - 1),
        (w_other / number, other, size),
        (w_total / number, "total", 1),
    )


def _precision(noise_variances: Mapping[Source, float], source: Source) -> float:
    return 1 / noise_variances[source] if source in noise_variances else 0.0


def fitted(
    cells: Floats, noise_variances: Mapping[Source, float], margins: Mapping[Source, Floats]
) -> Floats:
    """The weighted least squares table: see `estimators`.

    Input:  noisy cells, rows by columns; the variance of each noisy table; the noisy "rows",
            "columns", "total"
    Output: estimated cells; their sums are the least squares estimates of the margins

    >>> fitted(
    ...     np.array([[1.0, 2.0], [3.0, 4.0]]),
    ...     {"cells": 1.0, "total": 4.0},
    ...     {"total": np.array([14.0])},
    ... ).sum()
    np.float64(12.0)
    """
    rows, columns = cells.shape
    v = noise_variances["cells"]
    down, across, total_of_cells = cells.sum(axis=1), cells.sum(axis=0), float(cells.sum())
    estimates = [(total_of_cells, 1 / (rows * columns * v))]
    table = cells - down[:, None] / columns - across / rows + total_of_cells / (rows * columns)
    down, across = down - total_of_cells / rows, across - total_of_cells / columns
    lines: list[tuple[Source, Floats, int]] = [("rows", down, columns), ("columns", across, rows)]
    for source, sums, size in lines:
        if precision := _precision(noise_variances, source):
            noisy, ratio = margins[source], size * v * precision
            sums += (noisy - noisy.mean() - sums) * ratio / (1 + ratio)
            estimates.append((float(noisy.sum()), precision / len(sums)))
    if by_total := _precision(noise_variances, "total"):
        estimates.append((float(margins["total"][0]), by_total))
    total = sum(value * weight for value, weight in estimates) / sum(
        weight for _, weight in estimates
    )
    return np.asarray(table + down[:, None] / columns + across / rows + total / (rows * columns))


def _splits(rows: int, columns: int, parts: int) -> tuple[Floats, Floats, Floats, Floats]:
    """The splits that are compared, in steps of 1/parts: shares of cells, rows, columns, total."""
    if rows * columns == 1:
        return np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1)
    steps, zero = np.arange(0, 49) / parts, np.zeros(1)
    grids = np.meshgrid(
        steps if rows > 1 else zero, steps if columns > 1 else zero, steps, indexing="ij"
    )
    by_row, by_column, by_total = (grid.ravel() for grid in grids)
    return 1 - by_row - by_column - by_total, by_row, by_column, by_total


def _fitted_variances(
    rows: int, columns: int, cell: Floats, row: Floats, column: Floats, total: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Variances of fitted cells, row sums, column sums and total, from the measured precisions.

    Each is a multiple of its variance in a table whose cells have precision 1 and no margins.
    """
    v_row, v_column = 1 / (cell + columns * row), 1 / (cell + rows * column)
    v_total = 1 / (cell + columns * row + rows * column + rows * columns * total)
    inside = (rows - 1) * (columns - 1) / cell
    cells = (inside + (rows - 1) * v_row + (columns - 1) * v_column + v_total) / (rows * columns)
    down = ((rows - 1) * v_row + v_total) / rows
    return cells, down, ((columns - 1) * v_column + v_total) / columns, v_total


@lru_cache(maxsize=256)
def margin_shares(rows: int, columns: int, ratio: Fraction, family: str) -> dict[Source, Fraction]:
    """The split of a price over cells, row sums, column sums and total.

    Input:  number of rows and columns; ratio: (l1 / l2)² of the cells, at least 1; family:
            "gaussian" splits ρ (or μ²), "laplace" splits ε
    Output: shares that add up to 1; a table with the share 0 is not measured
    Bound:  a margin merges cells, so its l1 and its l2 are the cells' l1. The split depends on the
            table's shape alone. Standard deviations are compared with those of a table whose cells
            have the whole price. The splits are in steps of 1/400 (for ε: 1/1000). Of those that
            meet the conditions below, the split with the smallest product of the margins'
            deviations is taken. In ρ no cell has more than 1.045 times its deviation (so with
            rounding it stays within 1.05), and no margin has more than the sum of its cells would
            have. In a table of one row or one column, a margin that is a single cell may have 1.045
            times as much, too. The total should have at most 0.55 times its deviation, or as little
            as possible. A share of 4% already helps sums of many cells, so measured margins pay
            from tables of 2 by 2 on. In ε the precision of a share x is x². If cells give up a part
            s of ε, row sums of C cells need a share √(2s/C) to be no worse than sums of cells, and
            column sums need √(2s/R). Together they have s, so s is at least 2 (1/√C + 1/√R)², which
            is below 4.3% only in tables of about 190 by 190 and more. So cells and margins may have
            1.05 times their deviation, and margins are measured where the total then has at most
            0.55 times its own. A share of 4.7% does that in tables of 1,100 cells and more
    Source: ours
    Errors: none here

    >>> margin_shares(1, 1, Fraction(1), "gaussian")["cells"]
    Fraction(1, 1)
    """
    parts = 400 if family == "gaussian" else 1000
    of_cells, by_row, by_column, by_total = _splits(rows, columns, parts)
    # Precisions, in units of the precision of cells that have the whole price.
    precisions = (
        (of_cells, *(x / float(ratio) for x in (by_row, by_column, by_total)))
        if family == "gaussian"
        else (of_cells**2, by_row**2, by_column**2, by_total**2)
    )
    cells, down, across, v_total = _fitted_variances(rows, columns, *precisions)
    if family == "gaussian":
        fits = (cells <= 1.045**2) & (v_total <= 1)
        fits &= (down <= (1 if columns > 1 else 1.045**2)) & (
            across <= (1 if rows > 1 else 1.045**2)
        )
    else:
        fits = (np.maximum(np.maximum(cells, down), across) <= 1.05**2) & (v_total <= 0.55**2)
        fits |= of_cells == 1
    score = (
        np.log(down) + np.log(across) + np.log(v_total) + 1e3 * np.log(np.maximum(v_total, 0.55**2))
    )
    best = int(np.argmin(np.where(fits, score, np.inf)))
    in_rows, in_columns, whole = (
        Fraction(round(x[best] * parts), parts) for x in (by_row, by_column, by_total)
    )
    return {
        "cells": 1 - in_rows - in_columns - whole,
        "rows": in_rows,
        "columns": in_columns,
        "total": whole,
    }
