"""Quantiles and distribution functions from a tree of noisy counts,
with intervals that cost nothing.
"""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import Candidates, Formula, ReleasedColumn, Total
from dpframe.release.estimators.base import Estimator, Interval, Noisy, half_width
from dpframe.release.estimators.influence import NoisyColumn
from dpframe.theory.formulas.error import normal_error, unimodal_error
from dpframe.theory.formulas.rank_trees import FittedRanks

# intervals that are kept: a release holds their ends, not the tree
_ALPHAS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)


class CdfEstimator(Estimator):
    """The part of the values that are at most a point."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        assert output.point is not None
        low, high = output.ends
        even = (output.point - low) / (high - low) if high > low else 1.0
        return noisy[output.total.key].shares(_place(output.total, output.point), even)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        return tree_interval(output, alpha, numbers, (0.0, 1.0))

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """A share is between 0 and 1."""
        return 0.0, 1.0

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error of a share for this many values, at most 1."""
        return None if rows is None else min(_rank_error(output, alpha) / rows, 1.0)

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """That of one half, since a share lies between 0 and 1."""
        return 0.5

    def reach(self, output: ReleasedColumn) -> float:
        return 1.0


def tree_values(candidates: Candidates, places: Floats) -> Floats:
    """The values (column unit) at places among the borders of candidates.

    The values of a candidate are spread evenly up to half a step on either side of it, inside the
    bounds. In a column of whole numbers with a candidate for each of them, it is the candidate
    itself.
    """
    if candidates.whole and candidates.step == 1:
        return np.asarray(candidates.points(np.clip(np.ceil(places) - 1, 0, candidates.count - 1)))
    edges = _edges(candidates)
    return np.asarray(np.interp(places, np.arange(len(edges)), edges))


def tree_ends(output: ReleasedColumn, noisy: Noisy) -> dict[str, Floats]:
    """The ends of a column's intervals at the confidences that are kept, by name
    (column unit; for shares a part).
    """
    total = output.total
    fit = noisy[total.key]
    assert isinstance(fit, FittedRanks)
    ends: dict[str, Floats] = {}
    for alpha in _ALPHAS:
        if output.formula is Formula.CDF:
            low, high = fit.share_reach(*_borders(total, output.point or 0.0), alpha)
        else:
            assert total.candidates is not None
            low, high = total.candidates.around(*fit.reach(float(output.rank or 0), alpha))
        ends |= dict(zip(_names(output, alpha), (low, high), strict=True))
    return ends


def tree_interval(
    output: NoisyColumn, alpha: float, numbers: Floats, ends: tuple[float, float]
) -> Interval:
    """The kept interval of at least this confidence, inside the ends;
    all between these beyond the confidences kept.

    It is widened to the released number, which may be beside it, since that follows from other
    estimates too.
    """
    least, most = ends
    kept = [tried for tried in _ALPHAS if tried <= alpha * (1 + 1e-9)]
    if kept:
        low, high = (
            np.clip(output[name] * output.ticks, least, most) for name in _names(output, kept[0])
        )
        return np.minimum(low, numbers), np.maximum(high, numbers)
    return np.full(numbers.shape, least), np.full(numbers.shape, most)


def tree_expected_error(output: NoisyColumn, alpha: float, rows: float) -> float:
    """Error of a quantile for values that are at least as dense as `rows` values
    spread evenly (released unit).

    Bound:  a rank that is off by e rows is e/rows of the bounds away. One step of the candidates is
            added
    """
    total = output.total
    assert total.candidates is not None
    reach = 2 * half_width(output)
    error = min(_rank_error(output, alpha) / rows * reach + float(total.candidates.step), reach)
    return (float(math.ceil(error)) if output.whole else error) * output.ticks


def _rank_error(output: NoisyColumn, alpha: float) -> float:
    """Number of rows that a rank is off with probability at most alpha, at the
    places where it is off the most.

    Bound:  the fit is off by this much at one border. The quantile is where the fit crosses its
            rank, so this is an expected error; intervals after the release do not stand on it
    """
    noise = output.noise(output.total)
    tree = noise.tree
    assert tree is not None
    deviation = noise.mechanism.deviation * float(noise.total.unit)
    ranks, borders = ([0.0, 0.5, 1.0] if output.rank is None else [float(output.rank)]), slice(None)
    if output.point is not None:
        before, until = _borders(output.total, output.point)
        borders = slice(before, until + 1)
    worst = max(float(np.sqrt(tree.relative_squares(rank)[borders]).max()) for rank in ranks)
    return (normal_error if tree.normal else unimodal_error)(deviation * worst, alpha)


def _names(output: ReleasedColumn, alpha: float) -> tuple[str, str]:
    """The names of the two ends of an interval among the noisy totals."""
    return f"{output.name}.low.{alpha:g}", f"{output.name}.high.{alpha:g}"


def _edges(candidates: Candidates) -> Floats:
    """The borders between candidates, inside the bounds (column unit)."""
    steps = np.clip(np.arange(candidates.count + 1) - 0.5, 0.0, candidates.count - 1)
    return np.asarray(candidates.points(steps))


def _place(total: Total, point: float) -> float:
    """The end of the values up to a point, among the borders of
    candidates, or of the parts between cuts.
    """
    candidates = total.candidates
    if candidates is None:
        return float(bisect.bisect_left(total.cuts, point) + 1)
    if candidates.whole and candidates.step == 1:
        return math.floor(point - candidates.lower) + 1.0
    if point >= candidates.upper:
        return float(candidates.count)
    edges = _edges(candidates)
    return float(np.interp(point, edges, np.arange(len(edges))))


def _borders(total: Total, point: float) -> tuple[int, int]:
    """The last border that surely has only values up to a point below it, and
    the first that has all of them.
    """
    place, candidates = _place(total, point), total.candidates
    if (
        candidates is None
        or place == candidates.count
        or (candidates.whole and candidates.step == 1)
    ):
        return int(place), int(place)
    return max(math.floor(place - 1e-6), 0), min(math.floor(place + 1e-6) + 1, candidates.count)
