"""Counts and sums scaled up by what limits that `dp.Auto` chose leave out: post-processing, free of privacy cost.

A limit of k rows counts each row of a unit with n > k rows with weight k / n, so every group with such units has too
few. By how much is known: the histograms from which the limit was chosen say how many rows there are for each that is
counted. Numbers that are multiplied by that ratio have less bias, so limits can be lower and noise less. What is left
of the bias is that some groups have more units with many rows than others have, and that the ratio is off, by as much
in all groups: the fewer groups there are, the more it is beside the noise of each.

Bound:  none is needed, the ratio follows from noisy histograms and noisy totals. It is a guess, so it is a careful one:
        the smaller of two medians over the cases that the histograms leave open, once as likely as they were before the
        answer was seen, and once as they are where the released total of rows is near what the case makes it
Source: the ratio estimator of survey sampling, Cochran 1977, "Sampling Techniques", chapter 6
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.plan import Limits, Question, ReleasedColumn, Total, TotalKind
from dpframe.release.estimators import estimator_of, shown
from dpframe.release.pricing import NoisePlan

__all__ = ["RemainingRows", "is_scaled", "is_scaled_by", "may_be_scaled", "rounding_of", "scaled"]

_LEAST, _MOST = 1.01, 2.0  # a factor below is not worth a guess; one above rests on it more than on what was counted
_GROUPS = 12  # in fewer, what the factor is off by is more than what is left out
_GUESSED = 0.05  # how far the rows that a case makes count are off, in their number


@dataclass(frozen=True)
class RemainingRows:
    """Rows that count under limits, and those there are, in each case; and how likely each case is."""

    rows: Floats
    of_rows: Floats
    odds: Floats

    @property
    def before(self) -> float:
        """Rows there are for each that counts, by the histograms alone; 1 where numbers are better not scaled."""
        ratio = self._median(self.odds)
        return ratio if _LEAST <= ratio <= _MOST else 1.0

    def factor(self, total: float, deviation: float) -> float:
        """The same where the noisy total of the rows that count is known: at least 1, to three decimals.

        Input:  total; deviation: that of its noise (both rows)
        """
        spread = np.hypot(deviation, _GUESSED * self.rows) + 1e-9
        likely = -(((total - self.rows) / spread) ** 2) / 2 - np.log(spread)
        after = self._median(self.odds * np.exp(likely - likely.max()))
        ratio = round(min(self.before, after), 3)
        return ratio if ratio >= _LEAST else 1.0

    def _median(self, odds: Floats) -> float:
        ratios = self.of_rows / np.maximum(self.rows, 1e-9)
        order = np.argsort(ratios, kind="stable")
        cumulative = np.cumsum(odds[order])
        return float(max(ratios[order][np.searchsorted(cumulative, cumulative[-1] / 2)], 1.0))


def is_scaled_by(question: Question, limits: Limits) -> bool:
    """Whether the numbers of an ask with `dp.Auto` are scaled under limits that it may choose.

    Where rows in all are limited and nothing else: groups lose unlike parts of their rows where rows in each are.
    """
    return _scalable(question) and limits.max_groups is None and limits.max_rows_per_group is None


def may_be_scaled(question: Question) -> str:
    """What is said before a release of the numbers that may be scaled by it; nothing where that cannot be."""
    if not _scalable(question) or any(
        m.kind in (TotalKind.UNITS, TotalKind.UNIT_SUM) for o in question.outputs for _, m in o.totals
    ):
        return ""  # beside units, groups are limited
    names = ", ".join(output.name for output in question.outputs if is_scaled(output))
    return (
        f"For what the chosen limits leave out, {names} may be multiplied by one factor for all groups, at most "
        f"{_MOST:g}; dp.Auto(scaled=False) leaves numbers as they are."
    )


def _scalable(question: Question) -> bool:
    """Whether limits can be chosen by which numbers are scaled.

    In many listed groups, where the number of rows is released: what is suppressed is in no total, and a limit that was
    typed says what is meant.
    """
    if question.auto is None or not question.auto.scaled or not any(map(is_scaled, question.outputs)):
        return False
    limits = replace(question.table.limits.and_also(question.given), auto=None)
    if limits != Limits() or not question.by or (question.cells or 0) < _GROUPS:
        return False
    return _counting(question) is not None


def is_scaled(output: ReleasedColumn) -> bool:
    """Whether a column is one of those that are: counts of rows or values, and sums of rows."""
    return estimator_of(output).adds_up and output.totals[0][1].kind in (
        TotalKind.ROWS,
        TotalKind.VALUES,
        TotalKind.SUM,
    )


def rounding_of(output: ReleasedColumn) -> float:
    """How far rounding moves a number that was multiplied, at most (unit of the released column, times in ticks)."""
    return 0.5 if output.whole or output.dtype is not None else 0.0


def scaled(
    question: Question, plan: NoisePlan, remaining: RemainingRows, table: pl.DataFrame, parts: Mapping[str, Floats]
) -> tuple[pl.DataFrame, float]:
    """A released long table with its counts and sums multiplied, and the factor.

    Input:  an ask that `is_scaled_by` its limits; its noise; what the limits leave out; the table as it was drawn, and
            the noisy totals under derived columns
    """
    count = _counting(question)
    assert count is not None
    output, name, total = count
    counts = parts[name] if len(output.totals) > 1 else table.get_column(name).cast(pl.Float64).to_numpy()
    factor = remaining.factor(float(counts.sum()), plan.of(total).deviation * len(counts) ** 0.5)
    if factor == 1:
        return table, factor
    return table.with_columns(
        _product(o, table.get_column(o.name), factor) for o in question.outputs if is_scaled(o)
    ), factor


def _product(output: ReleasedColumn, column: pl.Series, factor: float) -> pl.Series:
    """Whole numbers stay whole, and times whole ticks."""
    values = column.to_physical().cast(pl.Float64).to_numpy() * factor
    if not rounding_of(output):
        return pl.Series(column.name, values)
    return pl.Series(column.name, shown(output, values)).cast(column.dtype)


def _counting(question: Question) -> tuple[ReleasedColumn, str, Total] | None:
    """The count of rows in each group: a column, or a part of one that is made of several."""
    totals = ((output, name, total) for output in question.outputs for name, total in output.totals)
    return next((one for one in totals if one[2].kind == TotalKind.ROWS), None)
