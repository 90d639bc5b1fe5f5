"""Logarithms and exponentials against balls of 300 bits:
how far from the true value, and exact where it is a float.
"""

from __future__ import annotations

import math
import random

import flint
import pytest

from dpframe.plan import Floats, exponential, log1p, logarithm

FLOATS = Floats()
# units in the last place of the true value; a wrong constant or a lost term costs thousands
LAST_PLACE = 1.5


def sizes(rng, many):
    near = [1 + rng.choice((1, -1)) * 10 ** rng.uniform(-16, -1) for _ in range(many)]
    return [
        *near,
        *(math.ldexp(rng.uniform(1, 2), rng.randint(-1074, 1022)) for _ in range(many)),
        5e-324,
        1.0,
    ]


def units(got, want):
    """How far a float is from a ball's middle, in units of its last place."""
    return abs(float(((flint.arb(got) - want) / math.ulp(float(want.mid()))).mid()))


@pytest.mark.parametrize("base", [math.e, 2.0, 10.0, 7.5, 1e9])
def test_a_logarithm_is_within_its_units(base):
    with flint.ctx.workprec(300):
        scale = 1 if base == math.e else flint.arb(base).log()
        far = [
            units(logarithm(x, base, FLOATS), flint.arb(x).log() / scale)
            for x in sizes(random.Random(1), 1000)
        ]
    assert max(far) < LAST_PLACE


def test_a_logarithm_of_one_and_a_little_is_within_its_units():
    rng = random.Random(2)
    values = [rng.choice((1, -1)) * 10 ** rng.uniform(-320, -0.01) for _ in range(1000)]
    values += [10 ** rng.uniform(0, 308) for _ in range(500)] + [5e-324, -5e-324, -1 + 2.0**-53]
    with flint.ctx.workprec(3000):
        far = [units(log1p(x), (1 + flint.arb(x)).log()) for x in values]
    assert max(far) < LAST_PLACE


def test_an_exponential_is_within_its_units():
    rng = random.Random(3)
    values = [rng.uniform(-745, 709.7) for _ in range(1000)] + [
        10 ** rng.uniform(-20, 0) for _ in range(500)
    ]
    with flint.ctx.workprec(300):
        far = [units(exponential(x, FLOATS), flint.arb(x).exp()) for x in values]
    assert max(far) < LAST_PLACE


def test_powers_of_the_base_are_exact():
    assert [logarithm(10.0**k, 10.0, FLOATS) for k in range(309)] == list(range(309))
    assert [logarithm(2.0**k, 2.0, FLOATS) for k in range(-1074, 1024)] == list(range(-1074, 1024))
    assert (exponential(0.0, FLOATS), exponential(709.79, FLOATS), exponential(-745.2, FLOATS)) == (
        1.0,
        math.inf,
        0.0,
    )
    assert (log1p(0.0), log1p(1e-300)) == (0.0, 1e-300)


def test_a_wrong_constant_is_seen():
    """A hundred units of the last place, of a constant near 1, are
    far more than what is allowed.
    """
    with flint.ctx.workprec(300):
        wrong = logarithm(3.0, math.e, FLOATS) + 100 * math.ulp(1.0)
        assert units(wrong, flint.arb(3).log()) > LAST_PLACE
