import math
import subprocess
import sys
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpframe.noise import certified

fractions = st.builds(Fraction, st.integers(-(10**40), 10**40), st.integers(1, 10**40))


@given(fractions)
def test_floats_around_a_fraction_are_its_neighbours(x):
    low, high = certified.float_down(x), certified.float_up(x)
    assert Fraction(low) <= x <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))


@given(fractions)
def test_floats_around_a_ball_hold_it(x):
    with certified.precision(100):
        ball = certified.ball(x)
        low, high = certified.round_down(ball), certified.round_up(ball)
    assert Fraction(low) <= x <= Fraction(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


@given(fractions.filter(lambda x: x > 0))
def test_the_root_is_the_smallest_float_that_is_large_enough(x):
    root = certified.root_up(x)
    assert Fraction(root) ** 2 >= x > Fraction(math.nextafter(root, 0)) ** 2


def test_extremes_of_rounding():
    assert certified.float_up(Fraction(10) ** 400) == math.inf
    assert certified.float_down(Fraction(10) ** 400) == sys.float_info.max
    assert certified.float_up(Fraction(1, 10**400)) == 5e-324
    assert certified.float_up(0) == 0
    assert math.copysign(1, certified.float_up(0)) == 1
    assert certified.root_up(Fraction(0)) == 0
    with certified.precision(64):
        assert certified.round_up(certified.ball(Fraction(1, 10**400))) == 5e-324


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_the_smallest_float_is_found_from_any_guess(limit, guess):
    assert certified.smallest_float(lambda x: x >= limit, guess) == limit


def test_precision_is_given_back_even_after_an_error():
    before = ctx.prec

    def fail():
        with certified.precision(333):
            raise ZeroDivisionError(ctx.prec)

    with pytest.raises(ZeroDivisionError, match="333"):
        fail()
    assert ctx.prec == before


def test_accuracy_is_reached_through_cancellation():
    value = certified.accurate(lambda: (certified.ball(1) + certified.ball(2.0**-300)).log())
    assert value.rel_accuracy_bits() >= 60
    assert abs(float(value) / 2.0**-300 - 1) < 1e-15
    assert isinstance(value, arb)


def test_flint_is_imported_only_when_a_draw_needs_it():
    code = (
        "import sys; from dpframe.noise import rounded_laplace, rounded_gaussian, bits\nwith "
        "bits.replay([12345678901234567] * 6): rounded_laplace(3.0, 3), rounded_gaussian(3.0, "
        "2)\nassert 'flint' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
