"""Tests of a claimed (ε, δ) on the outcomes of a release for two neighbouring tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dpframe.audit.outcomes import Outcome, OutcomeCells, best_event, outcomes_of
from dpframe.errors import InvalidArgument
from dpframe.noise import ball, precision
from dpframe.plan import real
from dpframe.progress import watched
from dpframe.theory.checks import histograms
from dpframe.usage import in_tuple, read_whole

_CLOSE = 1e-12  # how near the bound comes to the largest p


def at_least(hits: int, trials: int, alpha: float) -> float:
    """A lower confidence bound for a probability, wrong with probability at most alpha.

    Input:  hits of trials (counts); alpha in (0, 1)
    Output: the largest p, to 1e-12, at which P[hits or more] is surely at most alpha, or 0
    Bound:  that tail is the regularised incomplete beta function I_p(hits, trials - hits + 1),
            taken in ball arithmetic; it grows with p
    Source: Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404. The logarithm of the tail is
            concave in p, so that Newton's steps from below stay below; each p is first held against
            alpha in ball arithmetic
    Errors: InvalidArgument

    >>> round(at_least(10, 10, 0.5), 6)
    0.933033
    """
    if not 0 <= hits <= trials or not 0 < alpha < 1:
        raise InvalidArgument("at_least: hits are from 0 to trials, and alpha is between 0 and 1.")
    if hits == 0:
        return 0.0
    low, high, rate = 0.0, 1.0, hits / trials
    guess = rate - math.sqrt(2 * math.log(1 / alpha) * rate * (1 - rate) / trials)
    with precision(128):
        while high - low > _CLOSE:
            p = guess if low < guess < high else (low + high) / 2
            tail = ball(p).beta_lower(ball(hits), ball(trials - hits + 1), 1)
            if tail <= alpha:
                low = p
                guess = p + max(_step(hits, trials, alpha, p, float(tail.mid())), 0.9 * _CLOSE)
            else:
                high, guess = p, 0.0
    return low


def _step(hits: int, trials: int, alpha: float, p: float, tail: float) -> float:
    """Step of Newton's method from p, by the logarithm of the tail; 1 where floats fail."""
    ways = math.lgamma(trials + 1) - math.lgamma(hits) - math.lgamma(trials - hits + 1)
    density = math.exp(ways + (hits - 1) * math.log(p) + (trials - hits) * math.log1p(-p))
    return math.log(alpha / tail) * tail / density if tail > 0 and density > 0 else 1.0


def at_most(hits: int, trials: int, alpha: float) -> float:
    """An upper confidence bound for a probability, wrong as rarely: see `at_least`.

    >>> at_most(0, 10, 0.5) == 1 - at_least(10, 10, 0.5)
    True
    """
    return 1 - at_least(trials - hits, trials, alpha)


ALPHA = 1e-6
MOST = 10**8  # outcomes, which are kept


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit. `lower` bounds ε with confidence 1 - 1e-6; 0 says nothing.

    `claimed` is (ε, δ), and `trials` the number of outcomes of each table. `counted` is the number
    of them in the counted half. `seen` says how often the chosen event occurred in that half, under
    the table where it is likelier and under the other.
    """

    lower: float
    claimed: tuple[float, float]
    trials: int
    seen: tuple[int, int]
    counted: int
    _outcomes: tuple[list[Outcome], list[Outcome]] = field(repr=False)
    _cells: OutcomeCells = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether the claim was not refuted."""
        return self.lower <= self.claimed[0]

    @property
    def verdict(self) -> str:
        """The finding in words."""
        epsilon, delta = self.claimed
        claim = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
        hits, misses = self.seen
        finding = (
            f"an event seen {hits:,} and {misses:,} times in {self.counted:,} releases of each "
            f"table shows that ε is at least {self.lower:.4g} (confidence 1 - 1e-6)"
        )
        if self.holds:
            return (
                f"The claim {claim} stands: {finding}. An audit can refute a claim; it cannot "
                "prove one."
            )
        return f"The claim {claim} is false: {finding}."

    def __repr__(self) -> str:
        return f"Audit. {self.verdict}"

    def plot(self) -> Any:
        """The outcomes of both tables, as histograms (Altair; needs `dpframe[charts]`)."""
        scores: list[list[Any]] = [
            [self._cells.score(outcome) for outcome in side] for side in self._outcomes
        ]
        if any(score is None for side in scores for score in side):
            scores = [[_words(outcome) for outcome in side] for side in self._outcomes]
        return histograms(scores[0], scores[1], title=self._title)

    @property
    def _title(self) -> str:
        return f"What is released: ε is at least {self.lower:.3g}, claimed {self.claimed[0]:g}"


def _words(outcome: Outcome) -> str:
    label, numbers = outcome
    return ", ".join([*map(str, in_tuple(label)), *(f"{x:g}" for x in numbers)])


def audit(
    release: Callable[[Any], object],
    table: object,
    neighbour: object,
    epsilon: float,
    delta: float = 0.0,
    trials: int = 1000,
    *,
    progress: bool | None = None,
) -> Audit:
    """Release two neighbouring tables many times, and measure how well outcomes tell them apart.

    Input:  release: a function of a table that releases it once and gives the `Release`, a number,
            a text or a tuple of these; or a list or array of several independent outcomes of it;
            table, neighbour: made up, different in one unit; epsilon, delta: the claim; trials:
            outcomes of each table; progress: True, False, or None for a line on standard error when
            it takes long and somebody sees it
    Output: Audit. Every release is charged, so give it a budget that suffices
    Bound:  every second outcome chooses an event S; the others are counted. If P[S] >= p and Q[S]
            <= q, by Clopper and Pearson at 5e-7 each, then every ε with P[S] <= e^ε·Q[S] + δ is at
            least log((p - δ) / q). The choice does not depend on the counted outcomes, so the bound
            is wrong with probability at most 1e-6
    Source: Ding et al. 2018, arXiv:1805.10559; Jagielski et al. 2020, arXiv:2006.07709
    Errors: InvalidArgument; those of the release

    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"user": range(20)})
    >>> def release(frame):  # a release that forgets its noise
    ...     return frame.height
    >>> audit(release, rows, rows[1:], epsilon=1.0, trials=200).holds
    False
    """
    claim = _claim(epsilon, delta)
    if not callable(release):
        raise InvalidArgument(
            "audit: release is a function that takes a table and releases it once."
        )
    number = read_whole(trials, 4, MOST, f"audit: trials= is a whole number from 4 to {MOST}.")
    sides: tuple[list[Outcome], list[Outcome]] = ([], [])
    for _ in watched(_until(sides, number), number, "releases", progress):
        for side, data in zip(sides, (table, neighbour), strict=True):
            outcomes = outcomes_of(release(data))
            if not outcomes:
                raise InvalidArgument("audit: the release function gave an empty list.")
            side += outcomes
    first, second = (side[:number] for side in sides)
    cells = OutcomeCells.learnt(first[::2], second[::2])
    counts = [cells.counts(side[::2]) for side in (first, second)]
    event = best_event(counts[0], counts[1], len(first[::2]), claim[1])
    hits = [event.hits(cells.counts(side[1::2])) for side in (first, second)]
    likely, rare = hits if event.first else hits[::-1]
    size = len(first[1::2])
    surely, at_worst = at_least(likely, size, ALPHA / 2), at_most(rare, size, ALPHA / 2)
    lower = max(0.0, math.log((surely - claim[1]) / at_worst)) if surely > claim[1] else 0.0
    return Audit(lower, claim, number, (likely, rare), size, (first[1::2], second[1::2]), cells)


def _until(sides: tuple[list[Outcome], list[Outcome]], trials: int) -> Iterator[int]:
    """One step for each missing outcome. A call that gives several passes several steps."""
    number = 0
    while number < trials:
        yield number
        number = max(number + 1, min(map(len, sides)))


def _claim(epsilon: object, delta: object) -> tuple[float, float]:
    claim = real(epsilon), real(delta)
    if claim[0] is None or claim[1] is None or not 0 <= claim[0] <= 1e300 or not 0 <= claim[1] < 1:
        raise InvalidArgument(
            "audit: the claim is epsilon=, a number of at least 0, and delta=, in [0, 1)."
        )
    return float(claim[0]), float(claim[1])
