"""Rounds of a synthesis: choose the table that the model fits worst,
measure it, and fit the model again.

No other module of the room sees exact tables. A round asks two private questions of them. The
exponential mechanism says which table to measure. Then that table is released with Gaussian noise.
The costs of both in ρ are added up. Everything else is computed from these answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, Integers, row_cells
from dpframe.errors import DpFrameError
from dpframe.release.kinds.synthesis.fit import Fit, MeasuredTable, fitted
from dpframe.release.kinds.synthesis.model import cells_of, drawn_rows, tree_cells
from dpframe.release.pricing import Exponential, Gaussian, Mechanism
from dpframe.theory.formulas.error import Attributes
from dpframe.theory.formulas.loss import gaussian_scale_rho
from dpframe.theory.formulas.sensitivity import Sensitivity

_NORMAL = math.sqrt(2 / math.pi)  # mean size of a standard normal number


@dataclass(frozen=True)
class TableRounds(Mechanism):
    """Tables that are chosen in rounds by the exponential mechanism,
    and measured with Gaussian noise.

    `price` is the ρ of all rounds together. The scale is the standard deviation of the noise that
    would be on one table alone at that price; tables that share it have more.
    """

    price: Fraction = Fraction(0)

    label = law = "table_rounds"

    def rho(self, bound: Sensitivity) -> Fraction:
        """The ρ that the rounds may spend; each states its part, and the parts add up."""
        return self.price


@dataclass(frozen=True)
class RoundSettings:
    """Public settings of the rounds: how the price is split, and how large the model may become."""

    first: Fraction = Fraction(1, 4)  # share of ρ for the tables of single columns
    # share for them in small data, where noise makes more than so much total variation in them
    most: Fraction = Fraction(7, 10)
    close: float = 0.025
    # share of the rest for the tables that were asked by name, together
    named: Fraction = Fraction(1, 2)
    # share of a table that is measured alone, as part of what other columns have
    hint: Fraction = Fraction(1, 4)
    choosing: Fraction = Fraction(1, 10)  # share of a round's ρ for its choice
    rounds: int = 4  # for each column, if every measured table is worth its price
    # total variation that noise may make in a pair of columns in the first round
    rough: float = 0.2
    cells: int = 300_000  # of the model's cliques together
    table: int = 60_000  # cells of the largest table that is measured
    sampled: int = 50_000  # rows that stand for the model where no clique has a candidate's columns
    sweeps: int = 6  # of the fit after a round
    last: int = 20  # of the fit after the last round


@dataclass(frozen=True, repr=False)
class Exact:
    """Exact tables by their columns, as integers in units of 2^-fraction rows.
    They are not private.

    One unit moves a table by at most `l1` in L1, and by at most the root of `l2_squared` in L2
    (units of the integer).
    """

    read: Callable[[Attributes], Integers] = field(repr=False)
    fraction: int
    l1: int
    l2_squared: int
    _tables: dict[Attributes, Integers] = field(default_factory=dict, repr=False)

    def table(self, part: Attributes) -> Integers:
        """The table of some columns, computed once."""
        if part not in self._tables:
            self._tables[part] = self.read(part)
        return self._tables[part]


@dataclass
class _Purse:
    """The part of ρ that is not spent.
    Each answer is paid before it is drawn, and never costs more than that.
    """

    left: Fraction

    def take(self, cost: Fraction) -> None:
        """Pay, or refuse: no answer is drawn that would cost more than is left."""
        if not 0 < cost <= self.left:
            raise DpFrameError("A round would cost more than is left of the price of its release.")
        self.left -= cost


def measured_and_fitted(
    exact: Exact,
    sizes: tuple[int, ...],
    weights: Mapping[Attributes, int],
    rho: Fraction,
    draw: np.random.Generator,
    settings: RoundSettings = RoundSettings(),
    hints: Attributes = (),
    named: Sequence[Attributes] = (),
) -> tuple[list[MeasuredTable], Fit]:
    """Noisy tables, and the model that fits them.

    Input:  exact: the tables of all single columns and of all candidates; sizes: the number of keys
            of each column; weights: the candidates, each with its weight of 1 or more; rho: the
            price of all rounds together; draw: random numbers for rows of the model, which tell
            nothing new about the data; hints: columns of which little is asked, and which are no
            candidates; named: tables that are measured before any is chosen, all for the same part
            of the price, as far as the model stays small enough
    Bound:  which tables are named, and which of them are too large for the model, does not depend
            on the rows. So each costs what `_measure` says, and no choice is paid. Prices of later
            tables follow from noisy ones, within the fixed sum
    """
    purse = _Purse(rho)
    parts = [settings.hint if i in hints else Fraction(1) for i in range(len(sizes))]
    each = [rho * part / sum(parts) for part in parts]
    measured = [_measure(exact, (i,), settings.first * cost, purse) for i, cost in enumerate(each)]
    if not named and (more := _needed(measured, settings) - settings.first) > 0:
        measured += [_measure(exact, (i,), more * cost, purse) for i, cost in enumerate(each)]
    for part in named:
        if _candidates(measured, sizes, {part: 1}, settings.cells):
            cost = (1 - settings.first) * rho * settings.named / len(named)
            measured.append(_measure(exact, part, cost, purse))
    fit = fitted(sizes, measured, settings.sweeps)
    model = _Model(fit, settings, draw)
    step = purse.left / (settings.rounds * (len(sizes) - len(hints)))
    step = max(step, _least_step(exact, sizes, weights, model))
    while purse.left > 0:
        step = min(step, purse.left)
        if purse.left < 2 * step:
            step = purse.left
        allowed = settings.cells * float(1 - (purse.left - step) / rho)
        chosen = _candidates(measured, sizes, weights, max(allowed, settings.cells / 20))
        if not chosen:
            break
        part = _choose(exact, chosen, weights, model, step, purse)
        before = model.rows * model.table(part)
        measured.append(
            _measure(exact, part, min(step * (1 - settings.choosing), purse.left), purse)
        )
        fit = fitted(sizes, measured, settings.sweeps)
        model = _Model(fit, settings, draw)
        moved = np.abs(model.rows * model.table(part) - before).sum()
        if moved <= _NORMAL * measured[-1].deviation * measured[-1].values.size:
            step *= 4
        if purse.left < rho / 10**6:
            break
    return measured, fitted(sizes, measured, settings.last)


def _needed(tables: Sequence[MeasuredTable], settings: RoundSettings) -> Fraction:
    """The share of ρ with which noise in the tables of single columns is small enough.

    Bound:  post-processing of noisy tables. With a share s, noise is √(first / s) of what it is
    """
    rows = max(float(np.mean([one.values.sum() for one in tables])), 1.0)
    noise = np.mean([_NORMAL * one.deviation * one.values.size / 2 for one in tables]) / rows
    share = settings.first * Fraction(max(float(noise) / settings.close, 1.0)) ** 2
    return min(share, settings.most)


def _least_step(
    exact: Exact, sizes: tuple[int, ...], weights: Mapping[Attributes, int], model: _Model
) -> Fraction:
    """The price of a round (ρ) in which a typical pair of columns is not all noise.

    Bound:  it follows from noisy tables. In a table of m cells, noise of deviation σ makes a total
            variation of √(2/π)·σ·m / 2n
    """
    cells = np.median([cells_of(part, sizes) for part in weights if len(part) == 2] or [1])
    deviation = 2 * model.settings.rough * model.rows / (_NORMAL * cells) * 2.0**exact.fraction
    measuring = exact.l2_squared / (2 * deviation**2)
    return Fraction(measuring) / (1 - model.settings.choosing)


def _measure(exact: Exact, part: Attributes, rho: Fraction, purse: _Purse) -> MeasuredTable:
    """A table with Gaussian noise of ρ on each cell.

    Bound:  a unit moves the table by at most √l2² in L2, so noise of deviation σ costs l2² / 2σ² in
            ρ
    Source: Bun, Steinke 2016, arXiv:1605.02065, Proposition 1.6
    """
    scale = gaussian_scale_rho(l2_squared=exact.l2_squared, rho=rho)
    purse.take(Fraction(exact.l2_squared) / (2 * Fraction(scale) ** 2))
    table = exact.table(part)
    noise = Gaussian(scale).draw(table.size)
    noisy = table.ravel() + noise if noise.dtype != object else table.ravel().astype(object) + noise
    unit = 0.5**exact.fraction
    return MeasuredTable(
        part, np.asarray(noisy, np.float64).reshape(table.shape) * unit, scale * unit
    )


def _candidates(
    measured: Sequence[MeasuredTable],
    sizes: tuple[int, ...],
    weights: Mapping[Attributes, int],
    allowed: float,
) -> list[Attributes]:
    """The candidates with which the model stays small enough.
    This follows from what was measured before.
    """
    sets = [one.part for one in measured]
    return [part for part in weights if tree_cells([*sets, part], sizes) <= allowed]


class _Model:
    """The tables that a model expects: exact where a clique has the columns, else
    of rows that are drawn from it.
    """

    def __init__(self, fit: Fit, settings: RoundSettings, draw: np.random.Generator) -> None:
        self._fit, self.settings, self._draw = fit, settings, draw

    @property
    def rows(self) -> float:
        return self._fit.rows

    @cached_property
    def _sample(self) -> NDArray[np.int32]:
        return drawn_rows(self._fit.beliefs, self.settings.sampled, self._draw, evenly=False)

    def table(self, part: Attributes) -> Floats:
        """Probabilities of the cells of some columns."""
        exact = self._fit.beliefs.table(part)
        return _share(self._sample, part, self._fit.beliefs.sizes) if exact is None else exact

    def doubt(self, part: Attributes) -> float:
        """The error that `table` may have (rows, in L1), since it is one of drawn rows."""
        if self._fit.beliefs.tree.home(part, self._fit.beliefs.sizes) is not None:
            return 0.0
        return (
            _NORMAL
            * float(np.sqrt(self.table(part)).sum())
            * self.rows
            / math.sqrt(self.settings.sampled)
        )


def _share(codes: NDArray[np.int32], part: Attributes, sizes: Sequence[int]) -> Floats:
    counts = np.bincount(row_cells(codes, part, sizes), minlength=cells_of(part, sizes))
    return counts.reshape([sizes[i] for i in part]) / len(codes)


def _choose(
    exact: Exact,
    candidates: Sequence[Attributes],
    weights: Mapping[Attributes, int],
    model: _Model,
    step: Fraction,
    purse: _Purse,
) -> Attributes:
    """The candidate that the model fits worst, by the exponential mechanism.

    Bound:  a score is a weight times an L1 distance of integers, less a public number. One unit
            moves it by at most w·l1, w the largest weight, so all scores of candidates move within
            a range of 2·w·l1. At a rate r the logarithms of probabilities then move within one of η
            = 2·w·l1·r, which costs η²/8 in ρ
    Source: McKenna, Mullins, Sheldon, Miklau 2022, arXiv:2201.12677, for the scores; Cesar, Rogers
            2021, arXiv:2004.07223, for the cost
    """
    settings = model.settings
    rho = step * settings.choosing
    largest = max(weights.values())
    eta = Fraction(math.isqrt(int(8 * rho * 2**120)), 2**60)
    rate = eta / (2 * largest * exact.l1)
    deviation = math.sqrt(exact.l2_squared / (2 * float(step * (1 - settings.choosing))))
    scale = 2.0**exact.fraction
    scores = []
    for part in candidates:
        table, doubt = model.table(part), model.doubt(part)
        expected = np.rint(np.minimum(table * (model.rows * scale), 2.0**61 // table.size)).astype(
            np.int64
        )
        distance = int(np.abs(exact.table(part) - expected).sum())
        penalty = round(_NORMAL * deviation * table.size + doubt * scale)
        scores.append(max(min(weights[part] * (distance - penalty), 2**61), -(2**61)))
    purse.take(eta**2 / 8)
    mechanism = Exponential(float(1 / rate))
    (place,) = mechanism.choose(np.array([scores], np.int64), rate)
    return candidates[int(place)]
