"""Random choices: one of many candidates, keys above a threshold, randomized response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import WHOLE, WHOLE_OR_FLAG, Array, Booleans, Integers, WideIntegers, Words
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.bernoulli import bernoulli
from dpframe.noise.certified import Ball, Number, ball, precision, round_down, round_up
from dpframe.noise.inversion import FUNCTION, UNIT, uniform_ball, uniform_below
from dpframe.noise.scales import rational


def permute_and_flip(scores: Integers, rate: Number, copies: Integers | None = None) -> Integers:
    """For each group, the index of one candidate.
    Candidates with higher scores are chosen more often.

    Input:  scores, integers of shape (groups, candidates), higher is better; rate, a positive int,
            float or Fraction, taken exactly: ε / (2·sensitivity of a score), or ε / sensitivity
            where all scores of a group move one way; copies: integers of that shape, from 0 to
            2^31: how many candidates with this score an index stands for. In each group some are
            above 0
    Output: int64 indices, shape (groups,)
    Law:  permute-and-flip: in random order, accept a candidate with probability exp(-rate·(best -
            score)), until one is accepted. It is drawn as the argmax of rate·score + Exp(1), which
            has the same law (Ding et al. 2021), so that one pass of numpy serves all groups. Of m
            candidates with one score, the largest has P[Exp(1) <= x]^m = (1 - e^-x)^m, so it is
            drawn as -ln(1 - (1 - U)^(1/m)): one draw for all of them
    Source: McKenna, Sheldon 2020, arXiv:2010.12603; Ding, Kifer, Steinke, Wang, Xiao, Zhang 2021,
            arXiv:2105.07260
    Errors: InvalidArgument for scores that are not a two-dimensional integer array with a
            candidate, or a bad rate

    >>> permute_and_flip(np.array([[0, 10**6], [10**6, 0]]), 1)
    array([1, 0])
    """
    return _chosen("permute_and_flip", scores, rate, _EXPONENTIAL, copies)


def exponential_choice(scores: Integers, rate: Number, copies: Integers | None = None) -> Integers:
    """For each group, the index of one candidate, chosen with a probability
    proportional to exp(rate·score).

    Input:  as in `permute_and_flip`
    Output: int64 indices, shape (groups,)
    Law:  the exponential mechanism. It is drawn as the argmax of rate·score + G with independent G
            of the standard Gumbel law, G = -ln(-ln U). The largest of m of them has the law of G +
            ln m
    Source: McSherry, Talwar 2007, doi:10.1109/FOCS.2007.41; Gumbel 1954 for the argmax
    Errors: as in `permute_and_flip`

    >>> exponential_choice(np.array([[0, 10**6], [10**6, 0]]), 1)
    array([1, 0])
    """
    return _chosen("exponential_choice", scores, rate, _GUMBEL, copies)


@dataclass(frozen=True)
class _Law:
    """Noise of the scores: `drawn` of words as floats with bounds on their
    errors, `exact` of a real as a ball.

    `most` and `exact_most` are of the largest of so many draws, for some words, and for one real
    number.
    """

    drawn: Callable[[Words], tuple[Array, Array]]
    exact: Callable[[Ball], Ball]
    most: Callable[[Words, Array], tuple[Array, Array]]
    exact_most: Callable[[Ball, int], Ball]


def _chosen(name: str, scores: Array, rate: Number, law: _Law, copies: Array | None) -> Integers:
    """Return the argmax of x - rate·gap in each row, where the gap is
    the best score minus the score.
    """
    scores = np.asarray(scores)
    factor = rational("rate", rate)
    if scores.ndim != 2 or scores.shape[1] == 0 or scores.dtype.kind not in WHOLE:
        raise InvalidArgument(
            f"{name}: scores must be integers of shape (groups, candidates >= 1)."
        )
    if factor <= 0:
        raise InvalidArgument(f"{name}: rate={rate!r} must be positive.")
    winners = np.empty(len(scores), np.int64)
    rows = max(1, (1 << 16) // scores.shape[1])
    for start in range(0, len(scores), rows):
        at = slice(start, start + rows)
        winners[at] = _best(scores[at], factor, law, None if copies is None else copies[at])
    return winners


def _exponential(words: Words) -> tuple[Array, Array]:
    """Exponential draws; errors are |y - ŷ| ≤ 16u·ŷ + 3u + 1.01·2^-63·e^ŷ; see `laplace`."""
    y = -np.log((words + 0.5) * 2.0**-64)
    off = FUNCTION * y + 3 * UNIT + 1.01 * 2.0**-63 * np.exp(np.minimum(y, 40))
    return y, np.where(y > 40, np.inf, off)


def _most_exponential(words: Words, copies: Array) -> tuple[Array, Array]:
    """The largest of some exponential draws, and bounds on the errors.

    Let z = -ln(1 - U) and t = z/m. The draw is -ln(1 - e^-t). A part e of t changes it by at most
    e, since its derivative is -1/(e^t - 1), which is at least -1/t. For the word w, z is computed
    from U or from 1 - U, whichever is smaller, s. The word leaves s open by 2^-65, so z by a part
    of at most 2^-64/s: z is at least U, and, near U = 1, ln 2. To this come 16u for each of the
    logarithm, the division, e^-t - 1 and the last logarithm, which is of a number with an error of
    a part, and so has this as its error, beside 16u of itself.
    """
    near = words < np.uint64(1 << 63)
    small = (np.where(near, words, ~words) + 0.5) * 2.0**-64
    z = np.where(near, -np.log1p(-small), -np.log(small))
    largest = -np.log(-np.expm1(-z / np.maximum(copies, 1)))
    off = 2.0**-64 / small + 4 * FUNCTION + FUNCTION * np.abs(largest)
    return largest, np.where(small < 2.0**-40, np.inf, off)


def _gumbel(words: Words) -> tuple[Array, Array]:
    """Gumbel draws and bounds on their errors.

    Let y = -ln U, with an error of at most e as in `_exponential`. If e ≤ ŷ/8, the error of -ln ŷ
    is at most 1.15·e/ŷ, plus the error of the logarithm itself. If U is near 1, y is small, and 1 -
    U is known to more digits than U. Then y is computed as -log1p(-(1 - U)), with an error of at
    most 20u·ŷ + 2^-63.
    """
    near = words >= np.uint64(1 << 63)
    small = -np.log1p(-((np.where(near, ~words, 0) + 0.5) * 2.0**-64))
    y, off = _exponential(words)
    y, off = np.where(near, small, y), np.where(near, 20 * UNIT * small + 2.0**-63, off)
    gumbel = -np.log(y)
    return gumbel, np.where(off <= y / 8, 1.15 * off / y + FUNCTION * np.abs(gumbel) + UNIT, np.inf)


def _most_gumbel(words: Words, copies: Array) -> tuple[Array, Array]:
    """The largest of some Gumbel draws, and bounds on the errors:
    one draw, and the logarithm of their number.
    """
    gumbel, off = _gumbel(words)
    more = np.log(np.maximum(copies, 1))
    largest = gumbel + more
    return largest, off + FUNCTION * more + UNIT * np.abs(largest)


_EXPONENTIAL = _Law(
    _exponential,
    lambda u: -u.log(),
    _most_exponential,
    lambda u, m: -(-((1 - u).log() / m).expm1()).log(),
)
_GUMBEL = _Law(
    _gumbel,
    lambda u: -(-u.log()).log(),
    _most_gumbel,
    lambda u, m: ball(m).log() - (-u.log()).log(),
)


def _best(scores: Array, rate: Fraction, law: _Law, copies: Array | None) -> NDArray[np.intp]:
    """Return the argmax of x - rate·gap in each row; see `_chosen`.

    The error of a difference is the error that the law states for x̂, plus at most 5u·(|x̂| +
    rate·gap), since rate·gap has three roundings and the difference one. So the best candidate is
    among those whose upper bound is not below the largest lower bound. If there are several of
    these, ball arithmetic decides.
    """
    there = None if copies is None else copies > 0
    best = (
        scores.max(axis=1, keepdims=True)
        if there is None
        else scores.max(axis=1, keepdims=True, where=there, initial=np.iinfo(scores.dtype).min)
    )
    # exact: differences of 64-bit integers, modulo 2^64
    gaps = best.astype(np.uint64) - scores.astype(np.uint64)
    words = bits.random_words(scores.size).reshape(scores.shape)
    x, off = law.drawn(words) if copies is None else law.most(words, copies)
    costs = gaps * float(min(rate, Fraction(1 << 512)))
    keys, off = x - costs, off + 5 * UNIT * (np.abs(x) + costs)
    if there is not None:
        keys, off = np.where(there, keys, -np.inf), np.where(there, off, 0.0)
    close = keys + off >= (keys - off).max(axis=1, keepdims=True)
    close = close if there is None else close & there
    winners: NDArray[np.intp] = keys.argmax(axis=1)
    for row in np.nonzero(close.sum(axis=1) > 1)[0]:
        rivals = np.nonzero(close[row])[0]
        costs_and_words = (
            [rate * int(gaps[row, i]) for i in rivals],
            [int(words[row, i]) for i in rivals],
        )
        exact = (
            [law.exact] * len(rivals)
            if copies is None
            else [_of_most(law, int(copies[row, i])) for i in rivals]
        )
        winners[row] = rivals[_exact_best(*costs_and_words, exact)]
    return winners


def _of_most(law: _Law, copies: int) -> Callable[[Ball], Ball]:
    return lambda u: law.exact_most(u, copies)


def _exact_best(
    costs: list[Fraction], words: list[int], exact: Sequence[Callable[[Ball], Ball]]
) -> int:
    """The argmax of exact_i(U_i) - cost_i for uniform U_i whose first 64 bits are `words`."""
    count = 64
    while True:
        with precision(2 * count + 128):
            # for the first or last word, x may be infinite
            if all(0 < word < (1 << count) - 1 for word in words):
                keys = [
                    x(uniform_ball(w, count)) - ball(cost)
                    for cost, w, x in zip(costs, words, exact, strict=True)
                ]
                leader = 0
                for i, key in enumerate(keys):
                    if key.mid() > keys[leader].mid():
                        leader = i
                if all(keys[leader] > key for i, key in enumerate(keys) if i != leader):
                    return leader
        next_words = bits.random_words(len(words))
        words = [word << 64 | int(fresh) for word, fresh in zip(words, next_words, strict=True)]
        count += 64


def uniform_index(choices: int | Integers, size: int) -> Integers:
    """Independent uniform integers in [0, choices).

    Input:  choices, an integer from 1 to 2^32, or one for each draw; size draws
    Output: int64, shape (size,)
    Law:  ⌊choices·U⌋ for a uniform real U. Let w be the first 64 bits of U. Then the result is
            ⌊choices·w/2^64⌋, unless the remainder of this division is above 2^64 - choices: then
            more bits are drawn
    Errors: InvalidArgument for choices out of range

    >>> uniform_index(1, 3)
    array([0, 0, 0])
    """
    each = np.broadcast_to(np.asarray(choices, np.int64), size)
    if not np.all((each >= 1) & (each <= 1 << 32)):
        raise InvalidArgument(f"choices={choices!r} must lie between 1 and 2^32.")
    words = bits.random_words(size)
    factor, low = each.astype(np.uint64), np.uint64(0xFFFFFFFF)
    carry = (words & low) * factor
    upper = (words >> np.uint64(32)) * factor + (carry >> np.uint64(32))
    index = (upper >> np.uint64(32)).astype(np.int64)
    fraction = (upper << np.uint64(32)) | (carry & low)
    for i in np.nonzero(fraction > ~factor + np.uint64(1))[0]:
        index[i] = index_at(int(each[i]), int(words[i]), 64)
    return index


def index_at(choices: int, prefix: int, count: int) -> int:
    """The index that a uniform point in [0, 1) picks:
    `prefix` has its first bits, and more are drawn if needed.
    """
    while choices * prefix >> count != (choices * (prefix + 1) - 1) >> count:
        prefix, count = prefix << 64 | bits.random_word(), count + 64
    return choices * prefix >> count


def randomized_response(values: Array, choices: int, keep: Number) -> Integers:
    """Keep each answer with probability `keep`; otherwise replace it by a
    uniform one of the other choices.

    Input:  values, integers (or booleans) in [0, choices); choices, at least 2; keep, an int, float
            or Fraction in [0, 1], taken exactly
    Output: int64 in [0, choices), shape of values
    Law:    exact: P[answer = value] = keep, every other answer has (1 - keep)/(choices - 1)
    Source: Warner 1965, doi:10.1080/01621459.1965.10480775; Kairouz, Oh, Viswanath 2014,
            arXiv:1407.1338
    Errors: InvalidArgument for values outside the choices, fewer than two choices, or keep outside
            [0, 1]

    >>> randomized_response(np.array([0, 1, 2]), 3, 1)
    array([0, 1, 2])
    """
    codes = np.asarray(values)
    if choices < 2 or codes.dtype.kind not in WHOLE_OR_FLAG:
        raise InvalidArgument(
            "randomized_response: values must be integer codes of at least 2 choices."
        )
    if codes.size and not (codes.min() >= 0 and codes.max() < choices):
        raise InvalidArgument(
            f"randomized_response: a value lies outside the choices 0 to {choices - 1}."
        )
    truthful = bernoulli(keep, codes.size).reshape(codes.shape)
    step = 1 + uniform_index(choices - 1, codes.size).reshape(codes.shape)
    return np.where(truthful, codes.astype(np.int64), (codes.astype(np.int64) + step) % choices)


def keep_at_least(noisy: WideIntegers, threshold: int) -> Booleans:
    """Whether each noisy value is at least the threshold.
    A value equal to it is kept, and δ must account for that.

    >>> keep_at_least(np.array([4, 5, 6]), 5)
    array([False,  True,  True])
    """
    return np.asarray(noisy >= int(threshold), dtype=bool)


def truncated_geometric_keep(counts: Array, rate: Number, start: Number) -> Booleans:
    """Keep each key with the largest probability that privacy allows for its count.

    Input:  counts, integers (units per key), any shape; rate ≥ 0 and start in (0, 1), ints, floats
            or Fractions, taken exactly. With rate = ε and start = δ the result is (ε, δ)-private
            for units that have one key each
    Output: booleans, shape of counts; a count of 0 or less is never kept
    Law:    True with probability exactly π(count), see `keep_probability`
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1
    Errors: InvalidArgument for counts that are not integers, a negative rate, or start outside (0,
            1)

    >>> truncated_geometric_keep(np.array([0, 10**9]), 1, 1e-6)
    array([False,  True])
    """
    counts = np.asarray(counts)
    if counts.dtype.kind not in WHOLE:
        raise InvalidArgument("truncated_geometric_keep: counts must be integers.")
    rule = _rule(*_checked(rate, start))
    words = bits.random_words(counts.size).reshape(counts.shape)
    uniform = (words + 0.5) * 2.0**-64
    distinct, position = np.unique(np.clip(counts, 0, rule.last), return_inverse=True)
    chance = np.array([rule.approximate(count) for count in distinct.tolist()])[
        position.reshape(counts.shape)
    ]
    certain = counts > rule.last
    keep = (uniform < chance) | certain
    # `chance` is within 2^-52 of π, and `uniform` within 2^-52 of U.
    for index in zip(
        *np.nonzero((np.abs(uniform - chance) < 2.0**-49) & ~certain & (counts > 0)), strict=True
    ):
        keep[index] = uniform_below(int(words[index]), 64, rule.probability(int(counts[index])))
    return keep & (counts > 0)


def keep_probability(count: int, rate: Number, start: Number) -> tuple[float, float]:
    """Lower and upper bounds, as floats, of π(count), the largest probability of keeping a key.

    Input:  as for `truncated_geometric_keep`
    Output: (lower, upper), within about 1e-15 of each other
    Bound:  π(0) = 0 and π(n) = min(e^rate·π(n-1) + start, 1 - e^-rate·(1 - π(n-1) - start), 1)
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1
    Errors: InvalidArgument for a negative rate or start outside (0, 1)

    >>> low, high = keep_probability(1, 1, 0.125)
    >>> low <= 0.125 <= high < low + 1e-15
    True
    """
    rule = _rule(*_checked(rate, start))
    if count <= 0 or count > rule.last:
        return (0.0, 0.0) if count <= 0 else (1.0, 1.0)
    return rule.bounds(count)


def _checked(rate: Number, start: Number) -> tuple[Fraction, Fraction]:
    growth, first = rational("rate", rate), rational("start", start)
    if growth < 0:
        raise InvalidArgument(f"rate={rate!r} must be at least 0.")
    if not 0 < first < 1:
        raise InvalidArgument(f"start={start!r} must lie strictly between 0 and 1.")
    return growth, first


@dataclass(frozen=True)
class _Rule:
    """The function π.
    Up to `turn`, π + step grows by the factor e^rate per unit; then 1 - π + step shrinks by it.

    The step is start/(e^rate - 1). From `last` + 1 on, π is 1. With rate 0, π(n) = n·start up to
    `last`.
    """

    rate: Fraction
    start: Fraction
    turn: int
    last: int

    def probability(self, count: int) -> Callable[[], Ball]:
        """π(count) at the current precision, for counts from 1 to `last`."""
        return lambda: _probability(self.rate, self.start, self.turn, count)

    def approximate(self, count: int) -> float:
        """π(count) within 2^-52."""
        return sum(self.bounds(count)) / 2 if count else 0.0

    def bounds(self, count: int) -> tuple[float, float]:
        """The two floats next to π(count), at most 2^-52 apart."""
        with precision(128):
            value = _probability(self.rate, self.start, self.turn, count)
            return round_down(value), round_up(value)


def _probability(rate: Fraction, start: Fraction, turn: int, count: int) -> Ball:
    if rate == 0:
        return ball(count * start)
    growth, first = ball(rate), ball(start)
    step = first / growth.expm1()
    below = (growth * min(count, turn)).expm1() * step
    if count <= turn:
        return below
    return 1 + step - (1 - below + step) * (-growth * (count - turn)).exp()


@lru_cache(maxsize=64)
def _rule(rate: Fraction, start: Fraction) -> _Rule:
    """The counts `turn` and `last` of π.

    The first term of the minimum in `keep_probability` is the smallest while π(n-1) ≤
    (1-start)/(e^rate+1). Both counts are floors of real numbers, and ball arithmetic decides a
    floor only if the number is not an integer. Neither number is one: e^rate is transcendental, so
    an equation between polynomials in e^rate would have to be an identity. The only identity is
    start = 1/2, where π(2) = 1, and it is handled apart.
    """
    if rate == 0:
        last = -(-start.denominator // start.numerator) - 1
        return _Rule(rate, start, last, last)

    def turn() -> Ball:
        growth = ball(rate)
        return (
            (1 - ball(start)) * growth.expm1() / (ball(start) * (growth.exp() + 1))
        ).log1p() / growth

    bend = _floor(turn) + 1

    def length() -> Ball:
        growth = ball(rate)
        step = ball(start) / growth.expm1()
        return ((1 - _probability(rate, start, bend, bend) + step) / step).log() / growth

    return _Rule(rate, start, bend, 1 if start == Fraction(1, 2) else bend + _floor(length))


def _floor(value: Callable[[], Ball]) -> int:
    precision_bits = 128
    while True:
        with precision(precision_bits):
            whole = value().floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        precision_bits *= 2
