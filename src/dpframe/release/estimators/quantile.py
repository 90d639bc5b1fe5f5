"""Quantiles: the value of a chosen candidate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import FEW, ReleasedColumn, Total
from dpframe.release.estimators.base import Estimator, Interval, Noisy, bounds_of, half_width
from dpframe.release.estimators.influence import NoisyColumn
from dpframe.release.estimators.rank_tree import tree_expected_error, tree_interval, tree_values
from dpframe.theory.formulas.loss import BEYOND, PRIOR, fade

# the ends of floats that are whole numbers of 64 bits: a time may round beyond
_WHOLE = (-(2.0**63), 2.0**63 - 1024)


class QuantileEstimator(Estimator):
    """The value of the chosen candidate."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        total = output.total
        assert total.candidates is not None
        if total.is_tree:
            values = tree_values(
                total.candidates, noisy[total.key].quantiles(float(output.rank or 0))
            )
        else:
            values = total.candidates.points(noisy[total.key])
        return np.clip(np.rint(values), *_WHOLE).astype(np.int64) if output.whole else values

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The interval that was paid for, see
        `formulas.error.quantile_interval`; else that of `_choice_error`.

        The interval of a tree is free, see `FittedRanks.reach`. The interval of `_choice_error`
        holds only for values as dense as that function assumes. It is never narrower than an
        interval that was paid for at a lower confidence. If the number of values is unknown, it is
        the bounds.
        """
        (least, most), total = bounds_of(output), output.total
        if total.is_tree:
            return tree_interval(output, alpha, numbers, (least, most))
        if total.ci is None:
            return _likely(output, alpha, numbers, rows)
        low, high = (
            np.clip(output[name] * output.ticks, least, most) for name in end_names(output.name)
        )
        if total.surely(alpha):
            return low, high
        lower, upper = _likely(output, alpha, numbers, rows)
        return np.minimum(low, lower), np.maximum(high, upper)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The bounds."""
        return bounds_of(output)

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error for values as dense as `_choice_error` assumes;
        for a tree, as dense as evenly spread values.
        """
        if rows is None:
            return None
        if output.total.is_tree:
            return tree_expected_error(output, alpha, rows)
        reach = 2 * half_width(output)
        if rows <= _least_rows(output, alpha):
            return reach * output.ticks
        rank, shift = _public_shift(output, np.array(rows))
        error = _choice_error(output, alpha, rows) + max(rank, 1 - rank) * reach * float(shift)
        error = min(error, reach)
        return (float(math.ceil(error)) if output.whole else error) * output.ticks


def end_names(name: str) -> tuple[str, str]:
    """The names of the two ends of a quantile's interval among the noisy totals."""
    return f"{name}.low", f"{name}.high"


def _likely(
    output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
) -> tuple[Floats, Floats]:
    """The interval of a quantile by `_choice_error`;
    the bounds if the number of values is unknown.
    """
    least, most = bounds_of(output)
    if rows is None:
        return np.full(numbers.shape, least), np.full(numbers.shape, most)
    place = (numbers - least) / (most - least) if most > least else np.zeros_like(numbers)
    dense_rows = np.maximum(rows * _sparser(output, place), 1e-3)
    step = 10.0 ** (np.floor(np.log10(dense_rows)) - 1)
    # Round down to two digits, so that groups of about one size share a figure.
    dense_rows = np.floor(dense_rows / step) * step
    by_rows = {n: _choice_error(output, alpha, n) for n in np.unique(dense_rows)}
    errors = np.array([by_rows[n] for n in dense_rows], np.float64) * output.ticks
    rank, shift = _public_shift(output, dense_rows)
    still = least + rank * (most - least)
    lower, upper = numbers - errors, numbers + errors
    lower = lower - np.maximum(still - lower, 0) * shift
    upper = upper + np.maximum(upper - still, 0) * shift
    enough = rows > _least_rows(output, alpha)
    return np.where(enough, np.maximum(lower, least), least), np.where(
        enough, np.minimum(upper, most), most
    )


def _sparser(output: ReleasedColumn, place: Floats) -> Floats:
    """Average density of values on the sparser side of a quantile, relative to values
    spread evenly between the bounds.

    Input:  place: where the quantile is between the bounds, from 0 to 1
    Output: at most 1, since a part q of the values lies below it, and 1 - q above; 1 for an extreme
    """
    rank = float(output.total.rank or 0)
    if rank in (0.0, 1.0):
        return np.ones_like(place)
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(rank / place, (1 - rank) / (1 - place)))


def _public_shift(output: NoisyColumn, rows: Floats) -> tuple[float, Floats]:
    """The rank of a quantile, and how far public rows added to a group move it at most.

    Output: the shift is relative to the distance from the choice to the point a part `rank` of the
            way between the bounds, at which public rows move nothing
    Bound:  between two places that are a part d of the bounds apart there are w·d public rows, of w
            in all (see `rank_prior`), and at least rows·d rows of the group. So at this distance,
            the choice for both together differs by w·d rows from the choice for the group alone,
            and these rows lie within w·d/rows of it
    """
    total = output.total
    return float(total.rank or 0), _public_rows(
        total, output.noise(total).scale * float(total.unit), rows
    ) / rows


def _public_rows(total: Total, scale: float, rows: Floats) -> Floats:
    """Number of public rows of a group of this size beside its own; scale in rows.
    See `rank_prior`.
    """
    if not total.between or total.rank is None:
        return np.zeros_like(rows)
    return np.maximum(PRIOR * scale - rows / fade(total.rank), 0)


def _least_rows(output: NoisyColumn, alpha: float) -> float:
    """Number of values that a group must have so that its quantile is among them, not
    in an empty part of the bounds.

    Bound:  a candidate above all values splits them worse by 1 - q of the values, one below by q of
            them. Public rows reduce this by at most PRIOR·scale·q and PRIOR·scale·(1 - q) (see
            `rank_prior`). So such a candidate is chosen with probability at most exp(-difference /
            scale), and any of them with probability at most alpha if the group has this many
            values. Where there are many candidates, those in a gap between two values are as many
            as the values are sparse, and one of them is the best: so the candidates beyond the
            values count for no more than the number of values, in scales, which is below 1,024
            wherever this limit matters
    """
    total = output.total
    rank, scale = float(total.rank or 0), output.noise(total).scale * float(total.unit)
    candidates = 1 if total.candidates is None else total.candidates.count
    if not total.between:
        return 0.0
    beyond = math.log(min(candidates, FEW) / alpha)
    return scale * max((beyond + PRIOR * rank) / (1 - rank), (beyond + PRIOR * (1 - rank)) / rank)


def _choice_error(output: NoisyColumn, alpha: float, rows: float) -> float:
    """Error of a quantile if values around it are as dense as `rows`
    values spread evenly (column unit).

    Bound:  a mechanism's guarantee is about ranks: a candidate that splits the rows worse by
            `scale` more rows is e times less likely. If values are evenly spread, each further
            candidate is worse by an equal number of rows, and the law of the choice is known: see
            `choice_error`. If values are denser, the choice is nearer. Public rows are evenly
            spread too; `_public_shift` says how far they move the choice. An extreme is chosen with
            about as many rows beyond it as `extreme_targets` says; these are added. One step is
            added too, since values and their quantile may be between candidates. Where there are
            many candidates, the values between two places are random in number. A Poisson number N
            of the mean m has E[exp(-N / scale)] = exp(-m·(1 - exp(-1 / scale))), so a row counts
            for 1 - exp(-1 / scale) to 1 / scale. The mean of the two is taken
    """
    total = output.total
    candidates = total.candidates
    assert candidates is not None
    last = candidates.count - 1
    if not last:
        return 0.0
    scale = output.noise(total).scale * float(total.unit)  # in rows
    each = rows / last
    away = _distances(last)
    public = float(_public_rows(total, scale, np.array(rows))) / scale / last  # in scales
    beyond = 0.0
    if not total.between:  # see `extreme_targets`
        beyond = min(math.log1p(BEYOND * rows / scale / 2), math.log(candidates.copies + 1)) * scale
        beyond = min(max(beyond, 0.5), rows / 2)
    nearest = np.concatenate([[0.0], away[:-1] + 1])
    many = np.concatenate([[1.0], 2 * np.diff(away)])
    a_row = 1 / scale if candidates.count <= FEW else (1 / scale - math.expm1(-1 / scale)) / 2
    gaps = nearest * (each * a_row + public)
    steps = output.noise(total).choice.error_among(gaps, away, alpha, many) + beyond / each + 1
    error = min(steps, last) * float(candidates.step)
    return float(math.ceil(error)) if output.whole else error


def _distances(last: int) -> Floats:
    """Distances in candidates up to the `last`: all of them if they are few, else up
    to some, then each 4% farther.
    """
    if last < FEW:
        return np.arange(last + 1.0)
    farther = np.rint(64 * 1.04 ** np.arange(math.ceil(math.log(last / 64) / math.log(1.04))))
    return np.concatenate([np.arange(64.0), farther, [float(last)]])
