"""Quantiles: the value of a chosen candidate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import Estimator, Interval, Noisy, Parts
from dpframe.release.pricing import Chooses, NoisePlan
from dpframe.theory.formulas.loss import PRIOR

__all__ = ["QuantileEstimator", "end_names"]

_WHOLE = (-(2.0**63), 2.0**63 - 1024)  # the ends of floats that are whole numbers of 64 bits: a time may round beyond


class QuantileEstimator(Estimator):
    """The value of the chosen candidate."""

    def value(self, output: ReleasedColumn, noisy: Noisy, plan: NoisePlan) -> Any:
        ((_, total),) = output.totals
        assert total.candidates is not None
        values = total.candidates.lower + noisy[total.key] * total.candidates.step
        return np.clip(np.rint(values), *_WHOLE).astype(np.int64) if output.whole else values

    def interval(
        self, output: ReleasedColumn, plan: NoisePlan, alpha: float, numbers: Floats, parts: Parts, rows: Floats | None
    ) -> Interval:
        """The ends that were paid for, see `formulas.error.quantile_interval`; else that of `_choice_error`.

        The latter is for values that lie as it says, and no less than ends that were paid for at a lower confidence; it
        is the bounds where no number of values is known.
        """
        assert output.bounds is not None
        least, most = (float(end) * output.ticks for end in output.bounds)
        total = output.totals[0][1]
        if total.ci is None:
            return _likely(output, plan, alpha, numbers, rows)
        low, high = (np.clip(parts[name] * output.ticks, least, most) for name in end_names(output.name))
        if total.surely(alpha):
            return low, high
        lower, upper = _likely(output, plan, alpha, numbers, rows)
        return np.minimum(low, lower), np.maximum(high, upper)

    def expected_error(self, output: ReleasedColumn, plan: NoisePlan, alpha: float, rows: float | None) -> float | None:
        """For values that lie as `_choice_error` says."""
        if rows is None:
            return None
        assert output.bounds is not None
        reach = float(output.bounds.upper - output.bounds.lower)
        if rows <= _least_rows(output, plan, alpha):
            return reach * output.ticks
        rank, shift = _public_shift(output, plan, np.array(rows))
        error = _choice_error(output, plan, alpha, rows) + max(rank, 1 - rank) * reach * float(shift)
        error = min(error, reach)
        return (float(math.ceil(error)) if output.whole else error) * output.ticks


def end_names(name: str) -> tuple[str, str]:
    """What the two ends between which a quantile is are called beside it."""
    return f"{name}.low", f"{name}.high"


def _likely(
    output: ReleasedColumn, plan: NoisePlan, alpha: float, numbers: Floats, rows: Floats | None
) -> tuple[Floats, Floats]:
    """The interval of a quantile by `_choice_error`, for values that lie as it says; its bounds without rows."""
    assert output.bounds is not None
    least, most = (float(end) * output.ticks for end in output.bounds)
    if rows is None:
        return np.full(numbers.shape, least), np.full(numbers.shape, most)
    place = (numbers - least) / (most - least) if most > least else np.zeros_like(numbers)
    dense_rows = np.maximum(rows * _sparser(output, place), 1e-3)
    step = 10.0 ** (np.floor(np.log10(dense_rows)) - 1)
    # Round down to two digits, so that groups of about one size share a figure.
    dense_rows = np.floor(dense_rows / step) * step
    by_rows = {n: _choice_error(output, plan, alpha, n) for n in np.unique(dense_rows)}
    errors = np.array([by_rows[n] for n in dense_rows], np.float64) * output.ticks
    rank, shift = _public_shift(output, plan, dense_rows)
    still = least + rank * (most - least)
    lower, upper = numbers - errors, numbers + errors
    lower, upper = lower - np.maximum(still - lower, 0) * shift, upper + np.maximum(upper - still, 0) * shift
    enough = rows > _least_rows(output, plan, alpha)
    return np.where(enough, np.maximum(lower, least), least), np.where(enough, np.minimum(upper, most), most)


def _sparser(output: ReleasedColumn, place: Floats) -> Floats:
    """How densely values lie on the sparser side of a quantile, on average, as a part of that between the bounds.

    Input:  place: where the quantile is between the bounds, from 0 to 1
    Output: at most 1, since a part q of the values lies below it, and 1 - q above; 1 for an extreme
    """
    rank = float(output.totals[0][1].rank or 0)
    if rank in (0.0, 1.0):
        return np.ones_like(place)
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(rank / place, (1 - rank) / (1 - place)))


def _public_shift(output: ReleasedColumn, plan: NoisePlan, rows: Floats) -> tuple[float, Floats]:
    """The rank of a quantile, and how far the public rows beside a group's own move it, at most.

    Output: the second as a part of the distance between where the choice is made and the part `rank` of the way
            between the bounds, at which they move nothing
    Bound:  between two places that are a part d of the bounds apart there are PRIOR·scale·d public rows (see
            `rank_prior`), and at least rows·d of the group. So a choice that is right for both together at such a
            distance is PRIOR·scale·d rows from that for the rows alone, and they lie within PRIOR·scale·d/rows of it
    """
    ((_, total),) = output.totals
    rank = float(total.rank or 0)
    public = PRIOR * plan.of(total).scale * float(total.unit) if 0 < rank < 1 else 0.0
    return rank, public / rows


def _least_rows(output: ReleasedColumn, plan: NoisePlan, alpha: float) -> float:
    """How many values a group must have for its quantile to be among them, and not in an empty part of the bounds.

    Bound:  a candidate above all values splits them worse by 1 - q of them, one below by q of them, each less what
            public rows say (see `rank_prior`): at most PRIOR·scale·q and PRIOR·scale·(1 - q). So it is taken with
            probability at most e to minus these over the scale, and any of them with at most alpha where there are
            this many
    """
    ((_, total),) = output.totals
    rank, scale = float(total.rank or 0), plan.of(total).scale * float(total.unit)
    candidates = 1 if total.candidates is None else total.candidates.count
    if not 0 < rank < 1:
        return 0.0
    beyond = math.log(candidates / alpha)
    return scale * max((beyond + PRIOR * rank) / (1 - rank), (beyond + PRIOR * (1 - rank)) / rank)


def _choice_error(output: ReleasedColumn, plan: NoisePlan, alpha: float, rows: float) -> float:
    """Error of a quantile around which values lie as densely as this many do, spread evenly (column unit).

    Bound:  what is promised of the choice is about ranks: a candidate that splits the rows worse than the best by
            `scale` more rows is e times rarer. Where values lie evenly, each further candidate is worse by the same
            number of rows, and the law of the choice among candidates on both sides is known: see `choice_error`.
            Where they lie more densely, the choice is nearer. Public rows lie evenly too; how far they move it is in
            `_moved`. An extreme is chosen with about ln(candidates) · scale rows beyond it, which is added; so is a
            step, for where the values and their quantile are between candidates
    """
    ((_, total),) = output.totals
    candidates = total.candidates
    assert candidates is not None
    last = candidates.count - 1
    if not last:
        return 0.0
    scale = plan.of(total).scale * float(total.unit)  # in rows
    each = rows / last
    away = np.abs(np.arange(-last, last + 1.0))
    public = 0.0 if total.rank in (0, 1) else PRIOR / last  # in scales
    beyond = min(max(math.log(last + 2) * scale, 0.5), rows / 2) if total.rank in (0, 1) else 0.0
    mechanism = plan.of(total).mechanism
    assert isinstance(mechanism, Chooses)
    steps = mechanism.error_among(away * (each / scale + public), away, alpha) + beyond / each + 1
    error = min(steps, last) * candidates.step
    return float(math.ceil(error)) if output.whole else error
