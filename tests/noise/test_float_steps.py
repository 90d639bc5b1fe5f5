"""The stated error of each float step, held against ball arithmetic on a million points.
Runs on every platform.
"""

import numpy as np
import pytest
from flint import arb, ctx

from dpframe.noise import bits
from dpframe.noise.gaussian import _HALF_TURN
from dpframe.noise.inversion import FUNCTION, UNIT
from dpframe.noise.laplace import _discrete_shift

POINTS = 250_000


def worst_relative(function, exact, points):
    """The largest |function(x)/exact(x) - 1| over the points, in units of 2^-53."""
    values = function(points).tolist()
    worst = 0.0
    with ctx.workprec(200):
        for x, value in zip(points.tolist(), values, strict=True):
            truth = exact(arb(x))
            error = arb(value) - truth
            if error != 0:
                worst = max(worst, abs(float((error / truth).mid())))
    return worst / UNIT


def words(count):
    return np.array(bits.random_words(count))


def logarithm_points():
    """Uniform, near 1, and small numbers as they occur: (m + 1/2)/2^63, and every leading digit."""
    m = np.abs(words(POINTS).view(np.int64) + 0.5) * 2.0**-63
    near_one = 1 - np.ldexp(words(POINTS // 4) * 2.0**-64, -(np.arange(POINTS // 4) % 40))
    small = np.ldexp(0.5 + words(POINTS // 4) * 2.0**-65, -(np.arange(POINTS // 4) % 64))
    return np.concatenate([m[: POINTS // 2], near_one[near_one < 1], small])


def test_logarithm():
    # Granted: 16 units. Vector code in numpy states 4 ulp (8 units), C libraries 1 ulp.
    assert worst_relative(np.log, lambda x: x.log(), logarithm_points()) < FUNCTION / UNIT / 2


def test_tangent():
    angle = words(POINTS).view(np.int64) * _HALF_TURN
    edge = np.ldexp(words(1000).view(np.int64) * _HALF_TURN, -(np.arange(1000) % 60))
    poles = np.nextafter(np.pi / 2, 0) * (1 - np.ldexp(1.0, -np.arange(1, 54)))
    assert np.abs(angle).max() <= np.pi / 2
    assert (
        worst_relative(
            np.tan, lambda x: x.tan(), np.concatenate([angle, edge, poles, [np.pi / 2, -np.pi / 2]])
        )
        < 8
    )


def test_square_root_and_exponential():
    # The root is rounded correctly by IEEE 754; the exponential only widens an error bound by 1%.
    assert worst_relative(np.sqrt, lambda x: x.sqrt(), words(POINTS // 5) * 2.0**-60) <= 1
    assert worst_relative(np.exp, lambda x: x.exp(), words(POINTS // 5) * 2.0**-58) < 16


@pytest.mark.parametrize("scale", [1.0, 12_345.6])
def test_the_whole_laplace_step_is_within_its_bound(scale):
    sample = words(POINTS // 2)
    signed = sample.view(np.int64) + 0.5
    y = -np.log(np.abs(signed) * 2.0**-63)
    value = scale * y
    bound = scale * ((FUNCTION + 2 * UNIT) * y + 3 * UNIT + 1.01 * 2.0**-63 * np.exp(y))
    used = 0.0
    with ctx.workprec(200):
        for word, got, allowed in zip(sample.tolist(), value.tolist(), bound.tolist(), strict=True):
            m = (1 << 64) - 1 - word if word >= 1 << 63 else word
            for end in (m, m + 1):
                if end:
                    truth = -scale * (arb(end) / arb(2) ** 63).log()
                    used = max(used, abs(float((truth - got).mid())) / allowed)
    assert used < 0.9


def test_the_whole_gaussian_step_is_within_its_bound():
    radii, angles = words(POINTS // 2), words(POINTS // 2)
    length = np.abs(np.log(np.abs(radii.view(np.int64) + 0.5) * 2.0**-63))
    radius = np.sqrt(2 * length)
    tangent = np.tan(angles.view(np.int64) * _HALF_TURN)
    quotient = radius / (1 + tangent * tangent)
    cosine, sine = quotient * (1 - tangent * tangent), 2 * (quotient * tangent)
    bound = 44 * UNIT * radius + (6 * UNIT + 2.02 * 2.0**-63 * np.exp(length)) / radius
    used = 0.0
    rows = zip(*(part.tolist() for part in (radii, angles, cosine, sine, bound)), strict=True)
    with ctx.workprec(200):
        for word, angle, first, second, allowed in rows:
            m = (1 << 64) - 1 - word if word >= 1 << 63 else word
            v = arb(m).union(arb(m + 1)) / arb(2) ** 63
            turn = angle - (1 << 64) if angle >= 1 << 63 else angle
            w = arb(turn).union(arb(turn + 1)) / arb(2) ** 63
            r = (-2 * v.log()).sqrt()
            for got, truth in ((first, r * w.cos_pi()), (second, r * w.sin_pi())):
                used = max(used, float(abs(truth - got).upper()) / allowed)
    assert used < 0.9


def test_the_offset_of_the_discrete_law_is_within_its_bound():
    # c - 1/2 with c = scale·ln(2/(1+exp(-1/scale))) is used as if within 2^-48.
    scales = np.exp(np.linspace(np.log(1e-300), np.log(2.0**62), 20_000))
    worst = 0.0
    with ctx.workprec(300):
        for scale, shift in zip(scales.tolist(), _discrete_shift(scales).tolist(), strict=True):
            truth = -scale * ((-1 / arb(scale)).expm1() / 2).log1p() - arb(0.5)
            worst = max(worst, abs(float((truth - shift).mid())))
    assert worst < 2.0**-48
