"""Real noise on real numbers, rounded once: held against the real
numbers that the random words spell.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpframe import errors
from dpframe.noise import ball, bits, shifted_gaussian, shifted_laplace, uniform_ball

SCALES = [2.0**32, 1.5 * 2.0**40, 1.999 * 2.0**61, 2.0**62, 2.0**63]
HALF = Fraction(1, 2)


def drawn(draw, scale, shift, seed=1):
    """(results, the words of the cells, the words of the places) under a fixed generator."""
    rng = np.random.default_rng(seed)
    asked = []

    def source(count):
        words = rng.integers(0, 2**64, count, dtype=np.uint64)
        asked.append(words)
        return words

    with bits.substitute(source):
        high, low, exponent = draw(scale, np.array([float(s) for s in shift]), lambda i: shift[i])
    whole = [int(h) * 2**exponent + int(v) for h, v in zip(high, low, strict=True)]
    return whole, high, low, exponent, asked


def laplace_reference(scale, exponent, high, place, shift):
    """Round Z + shift, from the cell and the word of the place, in 400 bits;
    None where the word leaves it open.
    """
    with ctx.workprec(400):
        rate, negative = arb(scale) / 2**exponent, place & 1
        tail = (-1 / rate).exp()
        inside = -rate * (1 - uniform_ball(place >> 1, 63) * (1 - tail)).log()
        size = (abs(int(high)) + inside) * 2**exponent
        value = -size if negative else size
        return (value + ball(HALF + shift)).floor().unique_fmpz()


def gaussian_reference(scale, exponent, high, place, shift):
    with ctx.workprec(400):
        root = arb(scale) / 2**exponent * arb(2).sqrt()
        start = arb(int(abs(high) if high >= 0 else -high - 1))
        near, far = (start / root).erfc(), ((start + 1) / root).erfc()
        u = uniform_ball(place >> 1, 63)
        if high < 0:
            u = 1 - u  # the mirror image of the cell
        inside = root * (near - u * (near - far)).erfcinv() - start
        if high < 0:
            inside = 1 - inside
        return ((int(high) + inside) * 2**exponent + ball(HALF + shift)).floor().unique_fmpz()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("draw", "reference"),
    [(shifted_laplace, laplace_reference), (shifted_gaussian, gaussian_reference)],
)
def test_draws_are_those_of_the_real_numbers(draw, reference, scale):
    rng = np.random.default_rng(5)
    shift = [HALF, -HALF, Fraction(0), Fraction(1, 2**60), Fraction(-1, 2**1100)]
    shift += [Fraction(float(v)) for v in rng.random(195) - 0.5]
    whole, high, _, exponent, asked = drawn(draw, scale, shift)
    places = next(words for words in asked[1:] if len(words) == len(shift)).tolist()
    wanted = [
        reference(scale, exponent, h, p, s) for h, p, s in zip(high, places, shift, strict=True)
    ]
    decided = [i for i, w in enumerate(wanted) if w is not None]
    assert len(decided) > 190
    assert all(whole[i] == int(wanted[i]) for i in decided)
    # Negative control: without its shift every fourth draw is another one.
    wrong = [
        reference(scale, exponent, h, p, Fraction(0)) for h, p in zip(high, places, strict=True)
    ]
    assert sum(whole[i] != int(wrong[i]) for i in decided if wrong[i] is not None) > 20


@pytest.mark.parametrize(
    ("draw", "law"), [(shifted_laplace, stats.laplace), (shifted_gaussian, stats.norm)]
)
def test_the_law_of_the_whole(draw, law):
    """Kolmogorov-Smirnov at 100,000 draws and a chi-square test of the
    low bits; false alarm 1e-7 each.
    """
    scale, count = 2.0**61, 100_000
    high, low, exponent = draw(scale, np.zeros(count), lambda i: Fraction(0))
    values = (high + low * 2.0**-exponent) * 2.0**exponent / scale
    assert stats.kstest(values, law.cdf).pvalue > 1e-7
    assert stats.kstest(values * 1.1, law.cdf).pvalue < 1e-7
    last = np.abs(low).astype(np.int64) & 63
    assert stats.chisquare(np.bincount(last, minlength=64)).pvalue > 1e-7
    assert stats.chisquare(np.bincount(np.where(last < 8, 0, last), minlength=64)).pvalue < 1e-7


@pytest.mark.parametrize("draw", [shifted_laplace, shifted_gaussian])
@pytest.mark.parametrize("scale", [1.0, 2.0**31, 2.0**64, math.nan, 0.0])
def test_scales_that_are_not_cut_into_cells(draw, scale):
    with pytest.raises(errors.InvalidArgument):
        draw(scale, np.zeros(1), lambda i: Fraction(0))
