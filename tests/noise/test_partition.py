from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpframe.errors import InvalidArgument
from dpframe.noise import bits, keep_probability, truncated_geometric_keep
from dpframe.noise.partition import _rule

CASES = [(1, Fraction(1, 1000)), (0.1, 1e-6), (Fraction(1, 3), Fraction(1, 10**9)), (5, 0.01), (0, 0.3), (2, 0.5)]


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_the_closed_form_is_the_recursion(rate, start):
    # π(n) = min(e^ε π(n-1) + δ, 1 - e^-ε (1 - π(n-1) - δ), 1), in 400 bits.
    with ctx.workprec(400):
        grow = (arb(rate.numerator) / rate.denominator if isinstance(rate, Fraction) else arb(rate)).exp()
        first = arb(start.numerator) / start.denominator if isinstance(start, Fraction) else arb(start)
        p = arb(0)
        for count in range(1, _rule(Fraction(rate), Fraction(start)).last + 4):
            options = [grow * p + first, 1 - (1 - p - first) / grow, arb(1)]
            p = min(options, key=lambda x: float(x.mid()))
            low, high = keep_probability(count, rate, start)
            assert low - 1e-15 <= float(p.mid()) <= high + 1e-15
            assert high - low < 1e-15
        assert float(p.mid()) == 1


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_no_step_grows_faster_than_the_rate_allows(rate, start):
    # (ε, δ) for one unit: π(n+1) ≤ e^ε π(n) + δ and 1 - π(n) ≤ e^ε (1 - π(n+1)) + δ.
    for count in range(_rule(Fraction(rate), Fraction(start)).last + 2):
        (here, _), (_, more) = keep_probability(count, rate, start), keep_probability(count + 1, rate, start)
        assert more <= np.exp(float(rate)) * here + float(start) + 1e-12
        assert 1 - here <= np.exp(float(rate)) * (1 - more) + float(start) + 1e-12


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_keys_are_kept_as_often_as_they_should_be(rate, start):
    last = _rule(Fraction(rate), Fraction(start)).last
    for count in {1, 2, last // 2, last - 1, last} & set(range(1, last + 1)):
        kept = int(truncated_geometric_keep(np.full(200_000, count), rate, start).sum())
        assert stats.binomtest(kept, 200_000, keep_probability(count, rate, start)[0]).pvalue > 1e-8


def test_empty_keys_never_show_and_full_ones_always_do():
    counts = np.array([[-3, 0, 10**12], [2**62, 0, -(2**62)]])
    for _ in range(50):
        assert truncated_geometric_keep(counts, 1, 1e-3).tolist() == [[False, False, True], [True, False, False]]
    assert truncated_geometric_keep(np.array([], int), 1, 1e-3).shape == (0,)
    assert truncated_geometric_keep(np.array([2], np.uint8), 5, 0.5).all()


def test_a_key_at_its_probability_reads_more_bits():
    with ctx.workprec(300):
        first = arb(1) / 1000
        p = first * arb(1).exp() + first
        word = int((p * 2**64).floor().unique_fmpz())
        rest = p * 2**64 - word
    for more in (0, 1 << 63, (1 << 64) - 1):
        with bits.replay([word, more, 1 << 63]):
            (kept,) = truncated_geometric_keep(np.array([2]), 1, Fraction(1, 1000)).tolist()
        with ctx.workprec(300):
            assert kept == bool(arb(more) / arb(2) ** 64 < rest)


@pytest.mark.parametrize(("rate", "start"), [(-1, 0.1), (1, 0), (1, 1), (1, -0.5), (float("nan"), 0.1)])
def test_rules_that_make_no_sense_are_refused(rate, start):
    with pytest.raises(InvalidArgument):
        truncated_geometric_keep(np.array([1]), rate, start)


def test_counts_must_be_integers():
    with pytest.raises(InvalidArgument, match="integers"):
        truncated_geometric_keep(np.array([1.5]), 1, 0.1)
