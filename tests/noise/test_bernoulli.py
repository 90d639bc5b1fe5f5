from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpframe.errors import InvalidArgument
from dpframe.noise import bernoulli, bernoulli_exp, bits

DRAWS = 400_000
TOP = (1 << 64) - 1


@pytest.mark.parametrize(
    "p", [0, 1, 0.5, 0.1, Fraction(1, 3), 1e-3, Fraction(1, 2**70), 1 - 2**-53]
)
def test_coins_fall_as_often_as_they_should(p):
    heads = int(bernoulli(p, DRAWS).sum())
    assert stats.binomtest(heads, DRAWS, float(p)).pvalue > 1e-8


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(2, 7), 0.1, Fraction(1, 2**70), Fraction(2**64 - 1, 2**64)]
)
def test_a_coin_at_its_probability_reads_on(p):
    exact = Fraction(p)
    first = exact * 2**64 // 1
    rest = (exact * 2**64 - first) * 2**64
    for more in (0, rest // 1 - 1, rest // 1, rest // 1 + 1, TOP):
        if 0 <= more <= TOP:
            with bits.replay([int(first), int(more), 1 << 63]):
                (coin,) = bernoulli(p, 1).tolist()
            u = (Fraction(int(first)) * 2**128 + int(more) * 2**64 + 2**63) / 2**192
            assert coin == (u < exact)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), "half", None])
def test_a_bias_that_is_no_probability_is_refused(p):
    with pytest.raises(InvalidArgument):
        bernoulli(p, 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("x", [0, 0.25, 1, Fraction(10, 3), 7.5])
@pytest.mark.parametrize("unit", [1, Fraction(1, 3), 0.7])
def test_exponential_coins_fall_as_often_as_they_should(x, unit):
    coins = bernoulli_exp([x] * DRAWS if isinstance(x, Fraction) else np.full(DRAWS, x), unit)
    assert stats.binomtest(int(coins.sum()), DRAWS, float(np.exp(-float(x * unit)))).pvalue > 1e-8


@pytest.mark.parametrize("x", [1, 3, 20, 30, 43, 44, 60])
@pytest.mark.parametrize("unit", [Fraction(1), Fraction(1, 3)])
def test_an_exponential_coin_at_its_probability_reads_on(x, unit):
    with ctx.workprec(300):
        p = (-arb(x) * unit.numerator / unit.denominator).exp()
        first = int((p * 2**64).floor().unique_fmpz())
        second = int(((p * 2**64 - first) * 2**64).floor().unique_fmpz())
    for more in (0, second - 1, second + 1, TOP):
        if 0 <= more <= TOP:
            with bits.replay([first, more, 1 << 63, 1 << 63]):
                coins = bernoulli_exp(np.array([x]), unit)
            assert coins.tolist() == [more < second or (more == second and bool(coins[0]))]


def test_shapes_kinds_and_extremes():
    assert bernoulli_exp(np.zeros((2, 3))).all()
    assert bernoulli_exp(np.zeros((2, 3))).shape == (2, 3)
    assert not bernoulli_exp(np.array([10**18, 2**62], np.int64), 10**300).any()
    assert bernoulli_exp(np.array([1, 2]), Fraction(1, 10**400)).all()
    assert not bernoulli_exp(np.array([1e-200]), 10**300).any()
    assert bernoulli_exp([Fraction(0), Fraction(10**6)]).tolist() == [True, False]
    assert bernoulli(0.5, 0).shape == (0,)


@pytest.mark.parametrize(
    ("x", "unit"), [([-1], 1), ([float("nan")], 1), ([1], 0), ([1], -2), (["1"], 1)]
)
def test_a_rate_that_is_no_rate_is_refused(x, unit):
    with pytest.raises(InvalidArgument):
        bernoulli_exp(x, unit)


def test_negative_values_in_an_array_are_refused():
    with pytest.raises(InvalidArgument, match="at least 0"):
        bernoulli_exp(np.array([1.0, -0.5]))
