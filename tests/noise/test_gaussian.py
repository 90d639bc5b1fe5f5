"""Gaussian noise of real numbers, rounded, and discrete Gaussian noise."""

import numpy as np
import pytest
from flint import arb, ctx

from dpframe.errors import InvalidArgument
from dpframe.noise import bits, gaussian, inversion, rounded_gaussian

TOP = (1 << 64) - 1
MIDDLE = 1 << 63


@pytest.fixture
def decided(monkeypatch):
    """The pairs that ball arithmetic decided."""
    calls = []
    exact = gaussian._exact

    def spy(scales, shift, radius, angle):
        calls.append((scales, radius, angle))
        return exact(scales, shift, radius, angle)

    monkeypatch.setattr(gaussian, "_exact", spy)
    return calls


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 17.5, 1e4, 2.0**30, 2.0**31])
@pytest.mark.parametrize("size", [1, 2, 401])
def test_every_draw_is_the_rounded_normal_of_its_uniforms(scale, size, oracle, real_words):
    half = (size + 1) // 2
    words = real_words(2 * half)
    with bits.replay(words + [MIDDLE] * 98):
        draws = rounded_gaussian(scale, size)
    pairs = [
        oracle.gaussian(scale, words[i], words[half + i], ((MIDDLE, MIDDLE),)) for i in range(half)
    ]
    assert draws.tolist() == ([pair[0] for pair in pairs] + [pair[1] for pair in pairs])[:size]


@pytest.mark.parametrize("scale", [0.7, 5.0, 1e4, 2.0**20, 2.0**30])
@pytest.mark.parametrize("turn", [0.07, 0.13, 0.249, 0.5, 0.75, 0.93])
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("part", [0, 1])
def test_a_draw_at_a_rounding_boundary_is_decided_by_more_bits(
    scale, turn, negative, part, oracle, decided
):
    # An angle of turn · 90° (plus a half turn), and the V at which cosine (or sine) times the
    # radius is at a boundary.
    angle = int(turn * 2**62) + (MIDDLE if negative else 0)
    with ctx.workprec(300):
        w = (arb(angle - (1 << 64) if negative else angle) + arb(0.5)) / arb(2) ** 63
        direction = abs(w.sin_pi() if part else w.cos_pi())
        boundary = arb(int(max(1, 0.8 * scale * float(direction))) - 0.5)
        v = (-((boundary / scale / direction) ** 2) / 2).exp()
        radius = int((v * 2**63).floor().unique_fmpz())
    assert 0 < radius < MIDDLE
    results = set()
    for more in (0, 1, MIDDLE, TOP - 1, TOP):
        with bits.replay([radius, angle, more, MIDDLE, MIDDLE, MIDDLE]):
            draws = rounded_gaussian(scale, 2).tolist()
        assert draws == oracle.gaussian(scale, radius, angle, ((more, MIDDLE), (MIDDLE, MIDDLE)))
        results.add(draws[part])
    assert decided
    assert len(results) == 2, "the later bits must make the difference"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scale", [1e-3, 0.4, 1.0, 1e3, 2.0**30])
@pytest.mark.parametrize("known", [0, 1, 2, 5, 1 << 20, 1 << 45, (1 << 63) - 2, (1 << 63) - 1])
@pytest.mark.parametrize(
    "angle", [0, 1, 1 << 61, 1 << 62, MIDDLE - 1, MIDDLE, MIDDLE + 1, 3 << 62, TOP]
)
def test_the_ends_of_both_uniforms_are_exact(scale, known, angle, oracle):
    for radius in (known, TOP - known):
        for more in ((MIDDLE + 5, MIDDLE + 9), (7, TOP)):
            with bits.replay([radius, angle, *more * 4]):
                draws = rounded_gaussian(scale, 2)
            assert draws.tolist() == oracle.gaussian(scale, radius, angle, (more,) * 4)


def test_the_second_draw_of_an_odd_block_is_left_out(real_words):
    words = real_words(4)
    with bits.replay(words):
        three = rounded_gaussian(50.0, 3).tolist()
    with bits.replay(words):
        four = rounded_gaussian(50.0, 4).tolist()
    assert three == four[:3]


@pytest.mark.parametrize("scale", [2.0**63 * 1.5, 2.0**70, 2.0**100])
def test_draws_too_large_for_64_bits_are_python_integers(scale, oracle, real_words):
    for radius, angle in zip(real_words(20), real_words(20), strict=True):
        with bits.replay([radius, angle] + [MIDDLE] * 20):
            (draw,) = rounded_gaussian(scale, 1).tolist()
        assert type(draw) is int
        assert draw == oracle.gaussian(scale, radius, angle, ((MIDDLE, MIDDLE),) * 10)[0]


@pytest.mark.parametrize("exponent", [32, 40, 52, 62, 63])
def test_a_large_scale_is_a_cell_and_a_place_in_it(exponent, oracle, real_words):
    scale = 1.25 * 2.0 ** (exponent - 1)
    width = 1 << (exponent - 31)
    radii, angles, places = real_words(100), real_words(100), real_words(200)
    with bits.replay(radii + angles + places + [MIDDLE] * 50):
        draws = rounded_gaussian(scale, 200)
    with ctx.workprec(300):
        sigma = arb(scale) / width

        def mass(cell, x):
            root = sigma * arb(2).sqrt()
            return (arb(cell) / root).erfc() - ((cell + x) / root).erfc()

        for i, draw in enumerate(draws.tolist()):
            pair = i % 100
            v = (arb(TOP - radii[pair] if radii[pair] >= MIDDLE else radii[pair]) + arb(0.5)) / arb(
                2
            ) ** 63
            w = (
                arb(angles[pair] - (1 << 64) if angles[pair] >= MIDDLE else angles[pair]) + arb(0.5)
            ) / arb(2) ** 63
            part = w.cos_pi() if i < 100 else w.sin_pi()
            cell = int((sigma * (-2 * v.log()).sqrt() * part).floor().unique_fmpz())
            u = (arb(places[i] >> 1) + arb(0.5)) / arb(2) ** 63
            inside = draw - cell * width
            # F(left boundary) < U < F(right boundary)
            left = mass(cell, (arb(inside) - arb(0.5)) / width) / mass(cell, arb(1))
            right = mass(cell, (arb(inside) + arb(0.5)) / width) / mass(cell, arb(1))
            assert left < u < right


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), "1", None, True])
def test_a_scale_that_is_no_exact_positive_float_is_refused(scale):
    with pytest.raises(InvalidArgument, match="scale"):
        rounded_gaussian(scale, 3)


def test_one_scale_per_draw_of_every_size(oracle, real_words):
    scales = np.array([1e-3, 1.0, 1e6, 2.0**31, 2.0**31 * 1.01, 2.0**50, 2.0**63, 2.0**64])
    assert rounded_gaussian(scales, 8).shape == (8,)
    words = real_words(4)
    with bits.replay(words + [MIDDLE] * 9):
        draws = rounded_gaussian(scales[:3], 3).tolist()
    first = oracle.gaussian(scales[0], words[0], words[2], ((MIDDLE, MIDDLE),))
    assert draws == [
        first[0],
        oracle.gaussian(scales[1], words[1], words[3], ((MIDDLE, MIDDLE),))[0],
        oracle.gaussian(scales[2], words[0], words[2], ((MIDDLE, MIDDLE),))[1],
    ]


def test_the_constant_bound_covers_the_full_one():
    # The claim in the module, which is convex in R: enough to look at both ends.
    u = inversion.UNIT
    for radius in (2.0**-8, 24**0.5):
        full = 44 * u * radius + (6 * u + 2.02 * 2.0**-63 * np.exp(radius**2 / 2)) / radius
        assert full < 2.0**-42
