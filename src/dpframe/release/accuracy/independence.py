"""A test of independence for a noisy crosstab, whose level holds whatever
the noise is: post-processing.

The usual χ² test takes noise for dependence. Here the law of the statistic under independence is
simulated: tables of people whose keys are independent, with fresh noise of the mechanism that was
used. Nothing is read, and these draws protect nobody. So they come from an ordinary generator with
a fixed seed, and a release always gives one p-value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.pricing import Noise

_TABLES = 1999
_CUTS = (0.0, 1.0, 2.0)  # standard deviations of noise below which a margin is taken for 0
_MORE = (0.0, 2.0)  # standard deviations of noise that are added to the number of people
_TURNS = 6  # of fitting rows, then columns
_LEAST = 1e-9


@dataclass(frozen=True)
class Independence:
    """A test of independence: the statistic, its p-value, and the
    tables that were simulated for it.

    The p-value counts noise and the sampling of people.
    """

    statistic: float
    p_value: float
    degrees: int
    tables: int

    def __repr__(self) -> str:
        return (
            f"Independence(statistic={self.statistic:.4g}, p_value={self.p_value:.4g}, "
            f"degrees={self.degrees}, tables={self.tables}): noise and sampling of people"
        )


def independence(table: Floats, noise: Noise) -> Independence:
    """Test whether the keys down and across are independent, from noisy counts of people.

    Input:  table: noisy counts, rows by columns; noise: of each cell
    Output: the statistic, the smallest Σ w·(X - u·v)² over numbers u of rows and v of columns that
            are not negative, with w = 1 / (E + σ²), E from the noisy margins and σ² the variance of
            the noise; a p-value of at least 1/2000
    Bound:  parametric bootstrap: 1,999 tables are drawn from the fitted null, with fresh noise, and
            fitted again. The fitted null is itself noisy, so six are tried, and the largest p-value
            is given. Margins are taken as they are (none below 0), and with all that are below one
            and two standard deviations of their noise as 0; the number of people as it is, and two
            standard deviations of its noise larger. So a few people among much noise are covered
            too. With σ² in the weights, cells without people do not dominate there
    Source: Gaboardi, Lim, Rogers, Vadhan 2016, arXiv:1602.03090, Monte Carlo tests with the law of
            the noise; Wang, Lee, Kifer 2015, arXiv:1511.03376, for σ² in the statistic's scale.
            Tests: `tests/release/accuracy`
    Errors: none here
    """
    draw = np.random.default_rng(1)  # not noise: the p-value follows from released numbers
    variance = noise.deviation**2
    statistic = float(_statistic(table[None], variance)[0])
    p_value = 0.0
    for number, chances in _nulls(table, variance):
        people = draw.multinomial(number, chances.ravel(), size=_TABLES).reshape(-1, *table.shape)
        drawn = people + noise.added.simulated_whole(draw, people.shape, noise.deviation)
        reached = int((_statistic(drawn, variance) >= statistic * (1 - 1e-12)).sum())
        p_value = max(p_value, (1 + reached) / (1 + _TABLES))
    rows, columns = table.shape
    return Independence(statistic, p_value, (rows - 1) * (columns - 1), _TABLES)


def _nulls(table: Floats, variance: float) -> Iterator[tuple[int, Floats]]:
    """Numbers of people with the chances of their cells under independence."""
    numbers = [
        max(float(table.sum()) + more * np.sqrt(variance * table.size), 1.0) for more in _MORE
    ]
    deviations = np.sqrt(variance * table.shape[1]), np.sqrt(variance * table.shape[0])
    for cut in _CUTS:
        sides = []
        for axis, deviation in zip((1, 0), deviations, strict=True):
            margin = table.sum(axis=axis)
            kept = np.where(margin >= cut * deviation, np.maximum(margin, 0.0), 0.0)
            sides.append(kept + (_LEAST if cut == 0 else 0.0))
        if sides[0].sum() > 0 and sides[1].sum() > 0:
            chances = np.outer(sides[0] / sides[0].sum(), sides[1] / sides[1].sum())
            for number in numbers:
                yield round(number), chances / chances.sum()


def _statistic(tables: Floats, variance: float) -> Floats:
    """The statistic of each table, of shape (tables, rows, columns)."""
    number = np.maximum(tables.sum(axis=(1, 2)), 1.0)
    down, across = (np.maximum(tables.sum(axis=axis), 0.0) + _LEAST for axis in (2, 1))
    shares = (
        down[:, :, None]
        / down.sum(axis=1)[:, None, None]
        * (across / across.sum(axis=1, keepdims=True))[:, None]
    )
    weights = 1 / (number[:, None, None] * shares + max(variance, _LEAST))
    v = across / across.sum(axis=1, keepdims=True)
    for _ in range(_TURNS):
        u = _fitted(weights, tables, v)
        v = _fitted(weights.swapaxes(1, 2), tables.swapaxes(1, 2), u)
    return np.asarray((weights * (tables - u[:, :, None] * v[:, None, :]) ** 2).sum(axis=(1, 2)))


def _fitted(weights: Floats, tables: Floats, v: Floats) -> Floats:
    """The numbers u >= 0 of rows with the smallest Σ w·(X - u·v)²,
    for given numbers v of columns.
    """
    top = (weights * tables * v[:, None, :]).sum(axis=2)
    return np.asarray(
        np.maximum(top / np.maximum((weights * v[:, None, :] ** 2).sum(axis=2), _LEAST), 0.0)
    )
