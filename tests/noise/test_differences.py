"""Contrasts of a table of normals: each is the rounded difference of the real normals that the words spell."""

import math
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx

from dpframe.errors import InvalidArgument
from dpframe.noise import bits, contrasts, differences, rounded_contrasts, rounded_gaussian
from dpframe.noise.gaussian import normal_pairs

MIDDLE = 1 << 63
SHAPES = [(), (2,), (5,), (3, 4), (2, 3, 2)]


def spelled(words, shape, scale, more=8):
    """Every contrast, from words that go on as MIDDLE, MIDDLE, … for ever."""
    half = len(words) // 2
    with ctx.workprec(2000):
        pairs = []
        for radius, angle in zip(words[:half], words[half:], strict=True):
            known = (1 << 64) - 1 - radius if radius >= MIDDLE else radius
            turn = angle - (1 << 64) if angle >= MIDDLE else angle
            for _ in range(more):
                known, turn = known << 64 | MIDDLE, turn << 64 | MIDDLE
            v, w = ((arb(x) + arb(0.5)) / arb(2) ** (63 + 64 * more) for x in (known, turn))
            length = (-2 * v.log()).sqrt()
            pairs.append((length * w.cos_pi(), length * w.sin_pi()))
        normals = [first for first, _ in pairs] + [second for _, second in pairs]
        result = {}
        for at in product(*(range(m - 1) for m in shape)):
            total = arb(0)
            for corner in product((0, 1), repeat=len(shape)):
                place = 0
                for m, index, other in zip(shape, at, corner, strict=True):
                    place = place * m + (index + 1) * other
                total += (-1) ** sum(corner) * normals[place]
            result[at] = int((total * arb(scale) + arb(0.5)).floor().unique_fmpz())
    return result


def ending_in_middle(words):
    queue = list(words)

    def source(count):
        return np.array([queue.pop(0) if queue else MIDDLE for _ in range(count)], np.uint64)

    return bits.substitute(source)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.3, 1000.0, 2.0**30, 2.0**58, 2.0**90])
def test_every_contrast_is_the_rounded_difference_of_the_real_normals(scale, shape, real_words):
    words = real_words(2 * ((math.prod(shape) + 1) // 2))
    with ending_in_middle(words):
        drawn = rounded_contrasts(scale, shape)
    assert drawn.shape == tuple(m - 1 for m in shape)
    expected = spelled(words, shape, scale)
    assert {at: int(drawn[at]) for at in expected} == expected


def test_a_contrast_next_to_a_rounding_boundary_is_decided_by_ball_arithmetic(real_words, monkeypatch):
    words = real_words(4)
    first, second, _ = normal_pairs(np.array(words[:2], np.uint64), np.array(words[2:], np.uint64))
    near = abs(1000.5 / float(contrasts(np.concatenate([first, second]).reshape(2, 2))[0, 0]))
    decided = []
    exact = differences._Exact.contrast
    monkeypatch.setattr(differences._Exact, "contrast", lambda self, at: decided.append(at) or exact(self, at))
    for scale in (math.nextafter(near, 0), near, math.nextafter(near, math.inf)):
        with ending_in_middle(words):
            found = int(rounded_contrasts(scale, (2, 2))[0, 0])
        assert found == spelled(words, (2, 2), scale)[0, 0]
    assert decided == [(0, 0)] * 3


def test_bits_that_were_drawn_for_one_contrast_stay_with_its_normals(real_words):
    # Contrasts of three cells all use the first normal: at this scale each needs its further bits.
    words = real_words(4)
    with ending_in_middle(words), bits.record() as drawn:
        rounded_contrasts(2.0**90, (3,))
    assert sum(map(len, drawn)) == 4 + 4  # 64 more of each of the two pairs, once


@pytest.mark.parametrize("error", [-1.0, 0.0, math.inf, math.nan])
def test_a_scale_that_is_no_positive_number_is_refused(error):
    with pytest.raises(InvalidArgument):
        rounded_contrasts(error, (2, 2))


DRAWS = 20_000
CHANCE = 5.0  # standard deviations: a false alarm in 1.7 million


def share_of_zeros(draw):
    return sum(int(draw() == 0) for _ in range(DRAWS)) / DRAWS


def test_the_law_is_that_of_the_rounded_difference_and_not_that_of_a_difference_of_rounded_normals():
    sigma = 0.3  # of each of four normals: their contrast has twice that
    expected = math.erf(0.5 / (2 * sigma * math.sqrt(2)))
    far = CHANCE * math.sqrt(expected * (1 - expected) / DRAWS)
    assert abs(share_of_zeros(lambda: rounded_contrasts(sigma, (2, 2))[0, 0]) - expected) < far
    four = rounded_gaussian(sigma, 4 * DRAWS).reshape(DRAWS, 4) @ np.array([1, -1, -1, 1])
    assert abs((four == 0).mean() - expected) > far  # the negative control


def test_the_covariance_is_that_of_the_contrasts():
    shape, sigma, draws = (3, 3), 50.0, 4000
    table = np.array([rounded_contrasts(sigma, shape).ravel() for _ in range(draws)], float)
    one = np.array([[1, -1, 0], [1, 0, -1]])
    both = np.kron(one, one)
    expected = sigma**2 * both @ both.T
    found = table.T @ table / draws
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + expected**2)
    assert (np.abs(found - expected) < 5.5 * scale / math.sqrt(draws)).all()  # 10 entries, 5.5 deviations each
    assert (np.abs(found - np.diag(np.diag(expected))) > 5.5 * scale / math.sqrt(draws)).any()  # independence fails
