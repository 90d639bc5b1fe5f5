"""An oracle: what each law gives for known uniform reals, in arithmetic far
more precise than any draw needs.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

from dpframe.noise import bits

BITS = 400


class Oracle:
    """Rounded draws from the real numbers that the words spell."""

    @staticmethod
    def uniform(*words: int, first: int = 64):
        """U = 0.words in binary, with the last bit's half added so
        that U is inside the interval.
        """
        value = words[0]
        for word in words[1:]:
            value = value << 64 | word
        return (arb(value) + arb(0.5)) / arb(2) ** (first + 64 * (len(words) - 1))

    def laplace(self, scale: float, word: int, *more: int, discrete: bool = False) -> int:
        with ctx.workprec(BITS + 64 * len(more) + max(0, math.frexp(scale)[1])):
            negative = word >= 1 << 63
            known = (1 << 64) - 1 - word if negative else word
            v = self.uniform(known, *more, first=63)
            c = scale * (2 / (1 + (-1 / arb(scale)).exp())).log() if discrete else arb(0.5)
            size = int((c - scale * v.log()).floor().unique_fmpz())
        return -size if negative else size

    def gaussian(
        self, scale: float, radius: int, angle: int, more: tuple[tuple[int, int], ...] = ()
    ) -> list[int]:
        with ctx.workprec(BITS + 64 * len(more) + max(0, math.frexp(scale)[1])):
            known = (1 << 64) - 1 - radius if radius >= 1 << 63 else radius
            turn = angle - (1 << 64) if angle >= 1 << 63 else angle
            v = self.uniform(known, *(pair[0] for pair in more), first=63)
            w = self.uniform(turn, *(pair[1] for pair in more), first=63)
            length = scale * (-2 * v.log()).sqrt()
            return [
                int((length * part + arb(0.5)).floor().unique_fmpz())
                for part in (w.cos_pi(), w.sin_pi())
            ]

    @staticmethod
    def word_for_laplace(scale: float, boundary) -> int:
        """The 63 bits of V at which scale·(-ln V) is the boundary."""
        with ctx.workprec(BITS):
            return int(((-arb(boundary) / scale).exp() * 2**63).floor().unique_fmpz())


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def real_words():
    """Words of the operating system, as Python integers."""
    return lambda count: [int(word) for word in bits.random_words(count)]


@pytest.fixture
def chi_square():
    """The p-value of counts against probabilities, bins of small
    expectation merged into the last.
    """
    from scipy import stats

    def p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
        counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
        expected = counts.sum() * probabilities
        small = expected < 20
        observed = np.append(counts[~small], counts[small].sum())
        hoped = np.append(expected[~small], expected[small].sum())
        if hoped[-1] < 20:
            observed = np.append(observed[:-2], observed[-2:].sum())
            hoped = np.append(hoped[:-2], hoped[-2:].sum())
        return float(stats.chi2.sf(((observed - hoped) ** 2 / hoped).sum(), len(hoped) - 1))

    return p_value
