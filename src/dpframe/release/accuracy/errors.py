"""How far a released number may be from what it stands for, at a confidence, before and after the release.

A number stands for the one that the same release would have without its noise: of the rows under the stated limits and
bounds. What limits and bounds leave out is not in the error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.plan import Output, real
from dpframe.release.answer import end_names, error_of_part
from dpframe.release.estimators import expected_ratio_error, ratio_interval
from dpframe.release.pricing import NoisePlan
from dpframe.theory.formulas.error import choice_error, laplace_total_error, sum_error, whole_total_error
from dpframe.theory.formulas.loss import PRIOR, fewer_rows, rounded_error
from dpframe.theory.formulas.sensitivity import paired_error

__all__ = ["check_alpha", "check_rows", "error_of_sum", "expected_error", "interval_of", "rows_fewer"]

Floats = NDArray[np.float64]
Parts = Mapping[str, Floats]


def check_alpha(alpha: object) -> float:
    """A probability of missing, strictly between 0 and 1. Errors: InvalidArgument."""
    missing = real(alpha)
    if missing is None or not 0 < missing < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(missing)


def check_rows(rows: object) -> float:
    """A number of rows per group to assume. Errors: InvalidArgument."""
    assumed = real(rows)
    if assumed is None or not 0 < assumed <= 2**63:
        raise InvalidArgument("assume_rows= is a number of rows above 0.")
    return float(assumed)


def interval_of(
    output: Output, noise: NoisePlan, alpha: float, drawn: Floats, parts: Parts, rows: Floats | None
) -> tuple[Floats, Floats]:
    """Where the number without noise is with probability 1 - alpha, for each group of a release.

    Input:  drawn: the released numbers; parts: the noisy totals under a derived column, by name (column unit); rows:
            how many values each group is taken to have, None where nothing says so
    Output: the two ends, arrays of one number per group, in the unit of `drawn`: for a time its ticks
    Bound:  a count or a sum: the tails of its noise, exactly; a mean, a variance or a standard deviation: see
            `release.estimators.fieller`; a quantile: `theory.formulas.error.quantile_interval.margin` where its ends were paid for, and else that of
            `_choice_error`, for values that lie as it says, and no less than ends that were paid for at a lower
            confidence; its bounds where no number of values is known
    Source: the identities are ours
    """
    if output.formula in ("count", "sum"):
        error = _direct_error(output, noise, alpha) * output.ticks
        return drawn - error, drawn + error
    if output.formula in ("mean", "var", "std"):
        low, high = (end * output.ticks for end in ratio_interval(output, noise, alpha, parts))
        return np.minimum(low, drawn), np.maximum(high, drawn)  # a spread around a mean that was moved into its bounds
    if output.formula != "quantile":
        return np.full(drawn.shape, math.nan), np.full(drawn.shape, math.nan)
    assert output.bounds is not None
    least, most = (float(end) * output.ticks for end in output.bounds)
    measure = output.measures[0][1]
    if measure.ci is None:
        return _likely(output, noise, alpha, drawn, rows)
    low, high = (np.clip(parts[name] * output.ticks, least, most) for name in end_names(output.name))
    if measure.surely(alpha):
        return low, high
    lower, upper = _likely(output, noise, alpha, drawn, rows)
    return np.minimum(low, lower), np.maximum(high, upper)


def _likely(
    output: Output, noise: NoisePlan, alpha: float, drawn: Floats, rows: Floats | None
) -> tuple[Floats, Floats]:
    """The interval of a quantile by `_choice_error`, for values that lie as it says; its bounds without rows."""
    assert output.bounds is not None
    least, most = (float(end) * output.ticks for end in output.bounds)
    if rows is None:
        return np.full(drawn.shape, least), np.full(drawn.shape, most)
    place = (drawn - least) / (most - least) if most > least else np.zeros_like(drawn)
    counted = np.maximum(rows * _sparser(output, place), 1e-3)
    step = 10.0 ** (np.floor(np.log10(counted)) - 1)
    counted = np.floor(counted / step) * step  # to two digits, downward, so that groups of one size share a figure
    found = {n: _choice_error(output, noise, alpha, n) for n in np.unique(counted)}
    errors = np.array([found[n] for n in counted], np.float64) * output.ticks
    rank, moved = _moved(output, noise, counted)
    still = least + rank * (most - least)
    lower, upper = drawn - errors, drawn + errors
    lower, upper = lower - np.maximum(still - lower, 0) * moved, upper + np.maximum(upper - still, 0) * moved
    enough = rows > _rows_needed(output, noise, alpha)
    return np.where(enough, np.maximum(lower, least), least), np.where(enough, np.minimum(upper, most), most)


def _sparser(output: Output, place: Floats) -> Floats:
    """How densely values lie on the sparser side of a quantile, on average, as a part of that between the bounds.

    Input:  place: where the quantile is between the bounds, from 0 to 1
    Output: at most 1, since a part q of the values lies below it, and 1 - q above; 1 for an extreme
    """
    rank = float(output.measures[0][1].rank or 0)
    if rank in (0.0, 1.0):
        return np.ones_like(place)
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(rank / place, (1 - rank) / (1 - place)))


def _moved(output: Output, noise: NoisePlan, rows: Floats) -> tuple[float, Floats]:
    """The rank of a quantile, and how far the public rows beside a group's own move it, at most.

    Output: the second as a part of the distance between where the choice is made and the part `rank` of the way
            between the bounds, at which they move nothing
    Bound:  between two places that are a part d of the bounds apart there are PRIOR·scale·d public rows (see
            `rank_prior`), and at least rows·d of the group. So a choice that is right for both together at such a
            distance is PRIOR·scale·d rows from that for the rows alone, and they lie within PRIOR·scale·d/rows of it
    """
    ((_, measure),) = output.measures
    rank = float(measure.rank or 0)
    public = PRIOR * noise.of(measure).scale * float(measure.unit) if 0 < rank < 1 else 0.0
    return rank, public / rows


def expected_error(output: Output, noise: NoisePlan, alpha: float, rows: float | None) -> float | None:
    """An error that is exceeded with probability at most alpha, before a release (unit of the released column).

    Input:  rows: how many values each group is assumed to have; without it the error of a ratio or quantile is None
    Bound:  as in `interval_of`; that of a ratio holds whatever the values are: see `expected_ratio_error`; of a most
            frequent value, `rows_fewer`
    """
    if output.formula in ("count", "sum"):
        return _direct_error(output, noise, alpha) * output.ticks
    if output.formula == "mode":
        return rows_fewer(output, noise, alpha)
    if rows is None:
        return None
    if output.formula in ("mean", "var", "std"):
        return expected_ratio_error(output, noise, alpha, rows) * output.ticks
    assert output.bounds is not None
    if rows <= _rows_needed(output, noise, alpha):
        return float(output.bounds.upper - output.bounds.lower) * output.ticks
    rank, moved = _moved(output, noise, np.array(rows))
    reach = float(output.bounds.upper - output.bounds.lower)
    error = _choice_error(output, noise, alpha, rows) + max(rank, 1 - rank) * reach * float(moved)
    error = min(error, reach)
    return (float(math.ceil(error)) if output.whole else error) * output.ticks


def rows_fewer(output: Output, noise: NoisePlan, alpha: float) -> float:
    """How many fewer rows than the most frequent value (of those that are left) a released value may have: rows.

    Bound:  exceeded with probability at most alpha, whatever the data: see `fewer_rows`
    """
    ((_, measure),) = output.measures
    drawn = noise.of(measure)
    scale, exponential = drawn.scale * float(measure.unit), drawn.family == "exponential"
    return fewer_rows(scale, len(measure.values), alpha, exponential=exponential)


def _direct_error(output: Output, noise: NoisePlan, alpha: float) -> float:
    """Of a count or sum (column unit). One that carries fraction bits is rounded after the noise."""
    ((_, measure),) = output.measures
    if noise.reconciled:
        return error_of_part(output, noise, "cell", alpha)
    drawn = noise.of(measure)
    if drawn.family == "paired_laplace" and output.whole and measure.fraction:
        return float(paired_error(drawn.scale, alpha, weight=drawn.weight, per=2**measure.fraction))
    if drawn.family in ("laplace", "discrete_laplace", "gaussian") and output.whole and measure.fraction:
        return float(rounded_error(drawn.family, drawn.scale, 2**measure.fraction, alpha))
    return drawn.error(alpha)


def _rows_needed(output: Output, noise: NoisePlan, alpha: float) -> float:
    """How many values a group must have for its quantile to be among them, and not in an empty part of the bounds.

    Bound:  a candidate above all values splits them worse by 1 - q of them, one below by q of them, each less what
            public rows say (see `rank_prior`): at most PRIOR·scale·q and PRIOR·scale·(1 - q). So it is taken with
            probability at most e to minus these over the scale, and any of them with at most alpha where there are
            this many
    """
    ((_, measure),) = output.measures
    rank, scale = float(measure.rank or 0), noise.of(measure).scale * float(measure.unit)
    candidates = 1 if measure.candidates is None else measure.candidates.count
    if not 0 < rank < 1:
        return 0.0
    beyond = math.log(candidates / alpha)
    return scale * max((beyond + PRIOR * rank) / (1 - rank), (beyond + PRIOR * (1 - rank)) / rank)


def _choice_error(output: Output, noise: NoisePlan, alpha: float, rows: float) -> float:
    """Error of a quantile around which values lie as densely as this many do, spread evenly (column unit).

    Bound:  what is promised of the choice is about ranks: a candidate that splits the rows worse than the best by
            `scale` more rows is e times rarer. Where values lie evenly, each further candidate is worse by the same
            number of rows, and the law of the choice among candidates on both sides is known: see `choice_error`.
            Where they lie more densely, the choice is nearer. Public rows lie evenly too; how far they move it is in
            `_moved`. An extreme is chosen with about ln(candidates) · scale rows beyond it, which is added; so is a
            step, for where the values and their quantile are between candidates
    """
    ((_, measure),) = output.measures
    candidates = measure.candidates
    assert candidates is not None
    last = candidates.count - 1
    if not last:
        return 0.0
    scale = noise.of(measure).scale * float(measure.unit)  # in rows
    each = rows / last
    away = np.abs(np.arange(-last, last + 1.0))
    public = 0.0 if measure.rank in (0, 1) else PRIOR / last  # in scales
    beyond = min(max(math.log(last + 2) * scale, 0.5), rows / 2) if measure.rank in (0, 1) else 0.0
    exponential = noise.of(measure).family == "exponential"
    steps = choice_error(away * (each / scale + public), away, alpha, exponential=exponential) + beyond / each + 1
    error = min(steps, last) * candidates.step
    return float(math.ceil(error)) if output.whole else error


def error_of_sum(output: Output, noise: NoisePlan, alpha: float, number: int) -> float:
    """Error of a margin: of the sum of several released counts or sums of one column, all with the same noise.

    What it stands for is the sum of the totals. Groups whose limits leave fractions in a count add less than rounding.

    Bound:  of whole numbers the law of the sum, exactly: see `whole_total_error`; of others that of the real noises,
            see `laplace_total_error`, with half a step of the grid for rounding each. A sum of normal noises is normal,
            and rounding each counts as a part of variance 1/4 step², three times what a uniform error of that size has
    """
    ((_, measure),) = output.measures
    drawn = noise.of(measure)
    if drawn.family == "none":
        return 0.0
    unit = float(measure.unit)
    rounded = 1.0 if output.whole and measure.fraction else 0.0
    if drawn.family == "gaussian":
        error = sum_error(number * ((drawn.scale * unit) ** 2 + (unit**2 + rounded) / 4), [], alpha)
        return float(math.floor(error)) if output.whole and not measure.fraction else error
    if output.whole:
        whole = whole_total_error(drawn.scale * unit, number, alpha, discrete=drawn.family == "discrete_laplace")
        if whole is not None:
            return float(whole)
    return laplace_total_error(drawn.scale * unit, number, alpha) + number * (unit + rounded) / 2
