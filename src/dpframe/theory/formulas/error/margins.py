"""Margins: how far sums of noisy cells may be off, and how margins that are measured too are reconciled with cells."""

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

__all__ = ["Estimators", "Source", "estimators", "fitted", "margin_shares", "sum_error"]

Source = Literal["cells", "rows", "columns", "total"]
Terms = tuple[tuple[float, Source, int], ...]


def sum_error(variance: float, laplace: Sequence[tuple[float, int]], alpha: float) -> float:
    """An e that a sum of independent noises exceeds with probability at most alpha.

    Input:  variance of the part that is normal; for the parts that are Laplace, each scale with how many have it (any
            one unit); alpha in (0, 1)
    Output: e (same unit)
    Bound:  normal alone: its quantile. Else Chernoff's: E exp(sX) is exp(s²V/2) times Π 1 / (1 - s²b²)^n, for s below
            every 1/b, and P[|X| > e] <= 2 E exp(sX) / exp(se), at the best s. A discrete Laplace noise of scale b has
            E exp(sX) = (cosh a - 1) / (cosh a - cosh s) with a = 1/b, which is at most a² / (a² - s²), since
            (cosh x - 1) / x² increases in x: the same bound holds
    Source: Chernoff 1952, doi:10.1214/aoms/1177729330
    Errors: none here

    >>> round(sum_error(4.0, [], 0.05), 4)
    3.9199
    >>> sum_error(0.0, [(1.0, 4)], 0.05) > 1.96 * 8**0.5
    True
    """
    parts = [(scale, number) for scale, number in laplace if scale > 0 and number > 0]
    if not parts:
        return math.sqrt(variance) * NormalDist().inv_cdf(1 - alpha / 2)
    s = np.geomspace(1e-4, 1 - 1e-4, 500) / max(scale for scale, _ in parts)
    grown = s**2 * variance / 2 - sum(number * np.log1p(-((s * scale) ** 2)) for scale, number in parts)
    return float(np.min((grown + math.log(2 / alpha)) / s))


@dataclass(frozen=True)
class Estimators:
    """What each published number is made of, by weighted least squares: terms (coefficient, source, how many).

    Sources are "cells", "rows", "columns" and "total": the noisy tables that were measured.
    """

    cell: Terms
    row: Terms
    column: Terms
    total: Terms

    def variances(self, measured: Mapping[Source, float]) -> tuple[float, float, float, float]:
        """Variance of a cell, a row margin, a column margin and the total."""
        return tuple(  # type: ignore[return-value]
            math.fsum(number * weight**2 * measured[source] for weight, source, number in terms if weight)
            for terms in (self.cell, self.row, self.column, self.total)
        )


def estimators(rows: int, columns: int, measured: Mapping[Source, float]) -> Estimators:
    """The weighted least squares table from noisy cells, row sums, column sums and a noisy total, in closed form.

    Input:  number of rows and columns; variance of the noise of each number of "cells", and of "rows", "columns",
            "total" where they are measured
    Output: the coefficients of each kind of published number; see `fitted` for the numbers themselves
    Bound:  write a table as total / RC + (row sum less its mean) / C + (column sum less its mean) / R + the rest. The
            four parts are orthogonal, and each measured table says something of some of them, with one variance for
            all directions of a part: of the total, cells say their sum (variance RC·v), rows theirs (R·v_r), columns
            theirs (C·v_c), and the total itself (v_t); of row sums less their mean, cells (C·v) and rows (v_r); of
            column sums likewise; of the rest, cells alone. So the normal equations fall apart into weighted averages
            with weights 1 / variance, and by Gauss and Markov these are the unbiased linear estimates with the least
            variance, of each part and hence of every cell and every margin
    Source: the argument is ours; consistency by least squares as in Hay et al. 2010, arXiv:0904.0942
    Errors: none here

    >>> estimators(2, 2, {"cells": 1.0}).variances({"cells": 1.0})
    (1.0, 2.0, 2.0, 4.0)
    """
    v, every = measured["cells"], rows * columns
    by_row, by_column, by_total = (_precision(measured, source) for source in ("rows", "columns", "total"))
    a = 1 / (1 + columns * v * by_row)  # the weight of cells in a row sum less its mean
    b = 1 / (1 + rows * v * by_column)
    spread = 1 / (1 / (every * v) + by_row / rows + by_column / columns + by_total)
    w, w_row, w_column, w_total = (spread * x for x in (1 / (every * v), by_row / rows, by_column / columns, by_total))
    cell: Terms = (
        (1 - (1 - a) / columns * (1 - 1 / rows) - (1 - b) / rows * (1 - 1 / columns) - (1 - w) / every, "cells", 1),
        (-(1 - a) / columns * (1 - 1 / rows) + (1 - b) / every - (1 - w) / every, "cells", columns - 1),
        (-(1 - b) / rows * (1 - 1 / columns) + (1 - a) / every - (1 - w) / every, "cells", rows - 1),
        ((1 - a) / every + (1 - b) / every - (1 - w) / every, "cells", (rows - 1) * (columns - 1)),
        ((1 - a) / columns * (1 - 1 / rows) + w_row / every, "rows", 1),
        (-(1 - a) / every + w_row / every, "rows", rows - 1),
        ((1 - b) / rows * (1 - 1 / columns) + w_column / every, "columns", 1),
        (-(1 - b) / every + w_column / every, "columns", columns - 1),
        (w_total / every, "total", 1),
    )
    row: Terms = (
        (a * (1 - 1 / rows) + w / rows, "cells", columns),
        ((w - a) / rows, "cells", (rows - 1) * columns),
        ((1 - a) * (1 - 1 / rows) + w_row / rows, "rows", 1),
        ((w_row - (1 - a)) / rows, "rows", rows - 1),
        (w_column / rows, "columns", columns),
        (w_total / rows, "total", 1),
    )
    column: Terms = (
        (b * (1 - 1 / columns) + w / columns, "cells", rows),
        ((w - b) / columns, "cells", (columns - 1) * rows),
        ((1 - b) * (1 - 1 / columns) + w_column / columns, "columns", 1),
        ((w_column - (1 - b)) / columns, "columns", columns - 1),
        (w_row / columns, "rows", rows),
        (w_total / columns, "total", 1),
    )
    total: Terms = ((w, "cells", every), (w_row, "rows", rows), (w_column, "columns", columns), (w_total, "total", 1))
    return Estimators(cell, row, column, total)


def _precision(measured: Mapping[Source, float], source: Source) -> float:
    return 1 / measured[source] if source in measured else 0.0


def fitted(cells: Floats, measured: Mapping[Source, float], margins: Mapping[Source, Floats]) -> Floats:
    """The weighted least squares table: see `estimators`.

    Input:  noisy cells, rows by columns; the variance of each noisy table; the noisy "rows", "columns", "total"
    Output: cells, whose sums are the least squares estimates of the margins

    >>> fitted(np.array([[1.0, 2.0], [3.0, 4.0]]), {"cells": 1.0, "total": 4.0}, {"total": np.array([14.0])}).sum()
    np.float64(12.0)
    """
    rows, columns = cells.shape
    v = measured["cells"]
    by_row, by_column, by_total = (_precision(measured, source) for source in ("rows", "columns", "total"))
    down, across, whole = cells.sum(axis=1), cells.sum(axis=0), float(cells.sum())
    said = [(whole, 1 / (rows * columns * v))]
    table = cells - down[:, None] / columns - across / rows + whole / (rows * columns)
    down, across = down - whole / rows, across - whole / columns
    if by_row:
        noisy = margins["rows"]
        down += (noisy - noisy.mean() - down) * (columns * v * by_row) / (1 + columns * v * by_row)
        said.append((float(noisy.sum()), by_row / rows))
    if by_column:
        noisy = margins["columns"]
        across += (noisy - noisy.mean() - across) * (rows * v * by_column) / (1 + rows * v * by_column)
        said.append((float(noisy.sum()), by_column / columns))
    if by_total:
        said.append((float(margins["total"][0]), by_total))
    total = sum(value * weight for value, weight in said) / sum(weight for _, weight in said)
    return np.asarray(table + down[:, None] / columns + across / rows + total / (rows * columns))


@lru_cache(maxsize=256)
def margin_shares(rows: int, columns: int, ratio: Fraction, family: str) -> dict[Source, Fraction]:
    """How a price is split over cells, row sums, column sums and total.

    Input:  number of rows and columns; ratio: (l1 / l2)² of the cells, at least 1; family: "gaussian" splits ρ (or μ²),
            "laplace" splits ε
    Output: shares that add up to 1; a table that is not worth measuring has 0
    Bound:  a margin merges cells, so its l1 and its l2 are the cells' l1. Among all splits in steps of 1/400 (of ε:
            1/1000) in which no cell has more than 1.045 times the standard deviation of cells that had all of the price
            (which leaves room for rounding within 1.05), and no margin more than the sum of such cells: the one whose
            total has at most 0.55 times, or as near to that as there is, and then the least product of the margins'
            deviations; in a table of one row or one column, a margin that is a cell may lose what a cell may. The split
            depends on the table's shape alone. In ρ, shares as small as 4% already tell much of sums of many cells, and
            it pays from 2 by 2 on. In ε a share x is worth x² only. When cells lose a part s of ε, rows of C cells need
            √(2s/C) in order not to lose with them, and columns √(2s/R): together at most s, so s is at least 2 (1/√C +
            1/√R)², and that is below 4.3% in tables of some 190 by 190 and more
    Source: ours
    Errors: none here

    >>> margin_shares(1, 1, Fraction(1), "gaussian")["cells"]
    Fraction(1, 1)
    """
    every = rows * columns
    parts = 400 if family == "gaussian" else 1000
    steps = np.arange(0, 49) / parts
    one = np.zeros(1)
    grids = np.meshgrid(steps if rows > 1 else one, steps if columns > 1 else one, steps, indexing="ij")
    by_row, by_column, by_total = (grid.ravel() for grid in grids)
    rest = 1 - by_row - by_column - by_total
    if every == 1:
        rest, by_row, by_column, by_total = (np.array([x]) for x in (1.0, 0.0, 0.0, 0.0))
    # Precisions, where cells that had all of the price have 1.
    cell, row, column, total = (
        (rest, *(x / float(ratio) for x in (by_row, by_column, by_total)))
        if family == "gaussian"
        else tuple(x**2 for x in (rest, by_row, by_column, by_total))
    )
    v_row, v_column = 1 / (cell + columns * row), 1 / (cell + rows * column)
    v_total = 1 / (cell + columns * row + rows * column + every * total)
    cells = ((rows - 1) * (columns - 1) / cell + (rows - 1) * v_row + (columns - 1) * v_column + v_total) / every
    down, across = ((rows - 1) * v_row + v_total) / rows, ((columns - 1) * v_column + v_total) / columns
    fits = (cells <= 1.045**2) & (v_total <= 1)
    fits &= (down <= (1 if columns > 1 else 1.045**2)) & (across <= (1 if rows > 1 else 1.045**2))
    score = np.log(down) + np.log(across) + np.log(v_total) + 1e3 * np.log(np.maximum(v_total, 0.55**2))
    best = int(np.argmin(np.where(fits, score, np.inf)))
    shares = [Fraction(round(x[best] * parts), parts) for x in (by_row, by_column, by_total)]
    return dict(zip(("cells", "rows", "columns", "total"), (1 - sum(shares), *shares), strict=True))  # type: ignore[arg-type]
