"""Random choices: one of many candidates by score, keys above a threshold, and randomized response."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Booleans, WideIntegers
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.arguments import rational
from dpframe.noise.bernoulli import bernoulli
from dpframe.noise.certified import Ball, Number, ball, precision
from dpframe.noise.inversion import FUNCTION, UNIT, uniform_ball

__all__ = ["exponential_choice", "keep_at_least", "permute_and_flip", "randomized_response", "uniform_index"]


def permute_and_flip(scores: NDArray[np.int64], rate: Number) -> NDArray[np.int64]:
    """For each group, the index of one candidate. Candidates with higher scores are chosen more often.

    Input:  scores, integers of shape (groups, candidates), higher is better; rate, a positive int, float or Fraction,
            taken exactly: ε / (2·sensitivity of a score), or ε / sensitivity where all scores of a group move one way
    Output: int64 indices, shape (groups,)
    Law:    permute-and-flip: in random order, accept a candidate with probability exp(-rate·(best - score)), until one
            is accepted. It is drawn as the argmax of rate·score + Exp(1), which has the same law (Ding et al. 2021),
            so that one pass of numpy serves all groups
    Source: McKenna, Sheldon 2020, arXiv:2010.12603; Ding, Kifer, Steinke, Wang, Xiao, Zhang 2021, arXiv:2105.07260
    Errors: InvalidArgument for scores that are not a two-dimensional integer array with a candidate, or a bad rate

    >>> permute_and_flip(np.array([[0, 10**6], [10**6, 0]]), 1)
    array([1, 0])
    """
    return _chosen("permute_and_flip", scores, rate, _exponential, lambda u: -u.log())


def exponential_choice(scores: NDArray[np.int64], rate: Number) -> NDArray[np.int64]:
    """For each group, the index of one candidate, chosen with a probability proportional to exp(rate·score).

    Input:  as in `permute_and_flip`
    Output: int64 indices, shape (groups,)
    Law:    the exponential mechanism. It is drawn as the argmax of rate·score + G with independent G of the standard
            Gumbel law, G = -ln(-ln U)
    Source: McSherry, Talwar 2007, doi:10.1109/FOCS.2007.41; Gumbel 1954 for the argmax
    Errors: as in `permute_and_flip`

    >>> exponential_choice(np.array([[0, 10**6], [10**6, 0]]), 1)
    array([1, 0])
    """
    return _chosen("exponential_choice", scores, rate, _gumbel, lambda u: -(-u.log()).log())


def _chosen(
    name: str,
    scores: NDArray[Any],
    rate: Number,
    sample: Callable[[NDArray[np.uint64]], tuple[NDArray[Any], NDArray[Any]]],
    exact: Callable[[Ball], Ball],
) -> NDArray[np.int64]:
    """Return the argmax of x - rate·gap in each row, where the gap is the best score minus the score.

    Input:  sample(words): floats x and bounds on their errors; exact(U): x for a uniform real U, as a ball
    """
    scores = np.asarray(scores)
    factor = rational("rate", rate)
    if scores.ndim != 2 or scores.shape[1] == 0 or scores.dtype.kind not in "iu":
        raise InvalidArgument(f"{name}: scores must be integers of shape (groups, candidates >= 1).")
    if factor <= 0:
        raise InvalidArgument(f"{name}: rate={rate!r} must be positive.")
    winners = np.empty(len(scores), np.int64)
    rows = max(1, (1 << 16) // scores.shape[1])
    for start in range(0, len(scores), rows):
        winners[start : start + rows] = _best(scores[start : start + rows], factor, sample, exact)
    return winners


def _exponential(words: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Exponential draws and bounds on their errors: |y - ŷ| ≤ 16u·ŷ + 3u + 1.01·2^-63·e^ŷ; see `laplace`."""
    y = -np.log((words + 0.5) * 2.0**-64)
    off = FUNCTION * y + 3 * UNIT + 1.01 * 2.0**-63 * np.exp(np.minimum(y, 40))
    return y, np.where(y > 40, np.inf, off)


def _gumbel(words: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gumbel draws and bounds on their errors.

    Let y = -ln U, with an error of at most e as in `_exponential`. If e ≤ ŷ/8, the error of -ln ŷ is at most 1.15·e/ŷ,
    plus the error of the logarithm itself. If U is near 1, y is small, and 1 - U is known to more digits than U. Then y
    is computed as -log1p(-(1 - U)), with an error of at most 20u·ŷ + 2^-63.
    """
    near = words >= np.uint64(1 << 63)
    small = -np.log1p(-((np.where(near, ~words, 0) + 0.5) * 2.0**-64))
    y, off = _exponential(words)
    y, off = np.where(near, small, y), np.where(near, 20 * UNIT * small + 2.0**-63, off)
    gumbel = -np.log(y)
    return gumbel, np.where(off <= y / 8, 1.15 * off / y + FUNCTION * np.abs(gumbel) + UNIT, np.inf)


def _best(
    scores: NDArray[Any],
    rate: Fraction,
    sample: Callable[[NDArray[np.uint64]], tuple[NDArray[Any], NDArray[Any]]],
    exact: Callable[[Ball], Ball],
) -> NDArray[np.intp]:
    """Return the argmax of x - rate·gap in each row; see `_chosen`.

    The error of a difference is the error that `sample` states for x̂, plus at most 5u·(|x̂| + rate·gap), since rate·gap
    has three roundings and the difference one. So the best candidate is among those whose upper bound is not below the
    largest lower bound. If there are several of these, ball arithmetic decides.
    """
    best = scores.max(axis=1, keepdims=True)
    gaps = best.astype(np.uint64) - scores.astype(np.uint64)  # exact: differences of 64-bit integers, modulo 2^64
    words = bits.random_words(scores.size).reshape(scores.shape)
    x, off = sample(words)
    costs = gaps * float(min(rate, Fraction(1 << 512)))
    keys, off = x - costs, off + 5 * UNIT * (np.abs(x) + costs)
    close = keys + off >= (keys - off).max(axis=1, keepdims=True)
    winners: NDArray[np.intp] = keys.argmax(axis=1)
    for row in np.nonzero(close.sum(axis=1) > 1)[0]:
        candidates = np.nonzero(close[row])[0]
        gaps_and_words = [int(gaps[row, i]) for i in candidates], [int(words[row, i]) for i in candidates]
        winners[row] = candidates[_exact_best(*gaps_and_words, rate, exact)]
    return winners


def _exact_best(gaps: list[int], words: list[int], rate: Fraction, exact: Callable[[Ball], Ball]) -> int:
    """Return the argmax of exact(U_i) - rate·gap_i for uniform reals U_i whose first 64 bits are `words`."""
    count = 64
    while True:
        with precision(2 * count + 128):
            if all(0 < word < (1 << count) - 1 for word in words):  # for the first or last word, x may be infinite
                keys = [exact(uniform_ball(w, count)) - ball(rate * gap) for w, gap in zip(words, gaps, strict=True)]
                leader = 0
                for i, key in enumerate(keys):
                    if key.mid() > keys[leader].mid():
                        leader = i
                if all(keys[leader] > key for i, key in enumerate(keys) if i != leader):
                    return leader
        next_words = bits.random_words(len(words))
        words = [word << 64 | int(fresh) for word, fresh in zip(words, next_words, strict=True)]
        count += 64


def uniform_index(choices: int, size: int) -> NDArray[np.int64]:
    """Independent uniform integers in [0, choices).

    Input:  choices, an integer from 1 to 2^32; size draws
    Output: int64, shape (size,)
    Law:    ⌊choices·U⌋ for a uniform real U. Let w be the first 64 bits of U. Then the result is ⌊choices·w/2^64⌋,
            unless the remainder of this division is above 2^64 - choices: then more bits are drawn
    Errors: InvalidArgument for choices out of range

    >>> uniform_index(1, 3)
    array([0, 0, 0])
    """
    if not 1 <= choices <= 1 << 32:
        raise InvalidArgument(f"choices={choices!r} must lie between 1 and 2^32.")
    words = bits.random_words(size)
    factor, low = np.uint64(choices), np.uint64(0xFFFFFFFF)
    carry = (words & low) * factor
    upper = (words >> np.uint64(32)) * factor + (carry >> np.uint64(32))
    index = (upper >> np.uint64(32)).astype(np.int64)
    fraction = (upper << np.uint64(32)) | (carry & low)
    for i in np.nonzero(fraction > np.uint64((1 << 64) - choices))[0]:
        prefix, count = int(words[i]), 64
        while choices * prefix >> count != (choices * (prefix + 1) - 1) >> count:
            prefix, count = prefix << 64 | int(bits.random_words(1)[0]), count + 64
        index[i] = choices * prefix >> count
    return index


def randomized_response(values: NDArray[Any], choices: int, keep: Number) -> NDArray[np.int64]:
    """Keep each answer with probability `keep`; otherwise replace it by a uniform one of the other choices.

    Input:  values, integers (or booleans) in [0, choices); choices, at least 2; keep, an int, float or Fraction in
            [0, 1], taken exactly
    Output: int64 in [0, choices), shape of values
    Law:    exact: P[answer = value] = keep, every other answer has (1 - keep)/(choices - 1)
    Source: Warner 1965, doi:10.1080/01621459.1965.10480775; Kairouz, Oh, Viswanath 2014, arXiv:1407.1338
    Errors: InvalidArgument for values outside the choices, fewer than two choices, or keep outside [0, 1]

    >>> randomized_response(np.array([0, 1, 2]), 3, 1)
    array([0, 1, 2])
    """
    codes = np.asarray(values)
    if choices < 2 or codes.dtype.kind not in "biu":
        raise InvalidArgument("randomized_response: values must be integer codes of at least 2 choices.")
    if codes.size and not (codes.min() >= 0 and codes.max() < choices):
        raise InvalidArgument(f"randomized_response: a value lies outside the choices 0 to {choices - 1}.")
    truthful = bernoulli(keep, codes.size).reshape(codes.shape)
    step = 1 + uniform_index(choices - 1, codes.size).reshape(codes.shape)
    return np.where(truthful, codes.astype(np.int64), (codes.astype(np.int64) + step) % choices)


def keep_at_least(noisy: WideIntegers, threshold: int) -> Booleans:
    """Whether each noisy value is at least the threshold. A value equal to it is kept, and δ must account for that.

    >>> keep_at_least(np.array([4, 5, 6]), 5)
    array([False,  True,  True])
    """
    return np.asarray(noisy >= int(threshold), dtype=bool)
