"""Counts and sums corrected for the rows that limits chosen by `dp.Auto` remove:
post-processing, free of privacy cost.

With a limit of k rows, each row of a unit with n > k rows has weight k / n, so counts of groups
with these units are too small. The histograms from which the limit was chosen estimate the ratio of
all rows to rows that count. Numbers that are multiplied by that ratio have less bias, so limits can
be lower and noise less. Two errors remain. Some groups have more units with many rows than others.
And the estimated ratio has an error, which is the same in all groups: the fewer groups there are,
the larger it is beside the noise of each.

Bound:  none is needed, since the ratio follows from noisy histograms and noisy totals. It is the
        least-squares ratio over the cases that the histograms leave open. Cases are weighted by
        their probabilities from the histograms, and by how well each case predicts the released
        total of rows
Source: the ratio estimator of survey sampling, Cochran 1977, "Sampling Techniques", chapter 6
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.plan import Limits, Question, ReleasedColumn, Total, TotalKind
from dpframe.release.answer.postprocess import floats_of
from dpframe.release.estimators import estimator_of, shown
from dpframe.release.pricing import NoisePlan

# smaller factors are not worth a sentence in the report; larger ones rest on a guess
_LEAST, _MOST = 1.01, 4.0
_GUESSED = 0.05  # relative error of the number of rows that count, as a case predicts it, at least


@dataclass(frozen=True)
class RemainingRows:
    """Rows that count under limits, and all rows, in each case; with the probability of each case.

    `unsure`: relative error of the number of units. Noise moves it in every case, and with it the
    rows that count, but hardly the part that limits remove. Without it, that one of few cases was
    believed in which noise looked like more units: of 133 units, one release in 40 was multiplied
    by 1.7 in place of 1.2.
    """

    rows: Floats
    of_rows: Floats
    odds: Floats
    unsure: float = 0.0

    @property
    def before(self) -> float:
        """Ratio of all rows to rows that count, by the histograms alone."""
        return self._ratio(self.odds)

    def factor(self, total: float, deviation: float) -> float:
        """The factor once the noisy total of the rows that count is known:
        at least 1, to three decimals.

        Input:  total; deviation: that of its noise (both rows)
        """
        spread = np.hypot(deviation, max(self.unsure, _GUESSED) * self.rows) + 1e-9
        likely = -(((total - self.rows) / spread) ** 2) / 2 - np.log(spread)
        return round(self._ratio(self.odds * np.exp(likely - likely.max())), 3)

    def _ratio(self, odds: Floats) -> float:
        """The factor f ≥ 1 with the least mean square over the cases of (1 - f
        · rows that count / all rows).

        The errors are relative, so cases in which noise looks like one unit with a billion rows
        hardly count.
        """
        parts = self.rows / np.maximum(self.of_rows, 1e-9)
        ratio = float(odds @ parts) / max(float(odds @ parts**2), 1e-9)
        return min(ratio, _MOST) if ratio >= _LEAST else 1.0


def is_scaled_by(question: Question, limits: Limits) -> bool:
    """Whether the numbers of a question with `dp.Auto` are scaled under
    some limits that it may choose.

    They are if max_rows is the only limit. Under a limit per group, groups would lose different
    parts of their rows.
    """
    return _scalable(question) and limits.max_groups is None and limits.max_rows_per_group is None


def may_be_scaled(question: Question) -> str:
    """The sentence, before a release, about numbers that it may scale; empty if it scales none."""
    if not _scalable(question) or any(m.of_units for o in question.outputs for _, m in o.totals):
        return ""  # where units are counted, groups are limited too
    names = ", ".join(output.name for output in question.outputs if is_scaled(output))
    return (
        f"To correct for rows that the chosen limits remove, {names} may be multiplied by one "
        f"factor for all groups, at most {_MOST:g}; dp.Auto(scaled=False) leaves numbers as they "
        "are."
    )


def _scalable(question: Question) -> bool:
    """Whether dp.Auto may choose limits under which numbers are scaled.

    It needs listed groups, two or more, and a released number of rows. Suppressed groups would be
    in no total, and a typed limit is a choice of the user that is not corrected.
    """
    if (
        question.auto is None
        or not question.auto.scaled
        or not any(map(is_scaled, question.outputs))
    ):
        return False
    limits = replace(question.typed_limits, auto=None)
    if limits != Limits() or not question.by or (question.cells or 0) < 2:
        return False
    return _counting(question) is not None


def is_scaled(output: ReleasedColumn) -> bool:
    """Whether a column can be scaled: counts of rows or values, and sums of
    rows, without limits of their own.
    """
    total, kinds = output.total, (TotalKind.ROWS, TotalKind.VALUES, TotalKind.SUM)
    return estimator_of(output).adds_up and total.kind in kinds and total.limits is None


def rounding_of(output: ReleasedColumn) -> float:
    """Largest distance by which rounding moves a scaled number (unit of the
    released column, times in ticks).
    """
    return 0.5 if output.whole or output.dtype is not None else 0.0


def scaled(
    question: Question,
    plan: NoisePlan,
    remaining: RemainingRows,
    table: pl.DataFrame,
    parts: Mapping[str, Floats],
) -> tuple[pl.DataFrame, float]:
    """A released long table with its counts and sums multiplied, and the factor.

    Input:  a question that `is_scaled_by` its limits; its noise; the estimated rows with and
            without limits; the table as drawn, and the noisy totals of derived columns
    """
    count = _counting(question)
    assert count is not None
    output, name, total = count
    counts = parts[name] if len(output.totals) > 1 else floats_of(table, name)
    factor = remaining.factor(float(counts.sum()), plan.of(total).deviation_of_sum(len(counts)))
    if factor == 1:
        return table, factor
    return table.with_columns(
        _product(o, table.get_column(o.name), factor) for o in question.outputs if is_scaled(o)
    ), factor


def _product(output: ReleasedColumn, column: pl.Series, factor: float) -> pl.Series:
    """A column times the factor. Whole numbers stay whole, and times whole ticks."""
    values = column.to_physical().cast(pl.Float64).to_numpy() * factor
    if not rounding_of(output):
        return pl.Series(column.name, values)
    return pl.Series(column.name, shown(output, values)).cast(column.dtype)


def _counting(question: Question) -> tuple[ReleasedColumn, str, Total] | None:
    """The count of rows in each group under the chosen limits:
    a released column, or one of the totals of a column.
    """
    totals = ((output, name, total) for output in question.outputs for name, total in output.totals)
    return next(
        (one for one in totals if one[2].kind == TotalKind.ROWS and one[2].limits is None), None
    )
