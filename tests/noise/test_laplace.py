import numpy as np
import pytest
from flint import arb, ctx

from dpframe.errors import InvalidArgument
from dpframe.noise import bits, discrete_laplace, inversion, laplace, rounded_laplace

TOP = (1 << 64) - 1
LAWS = [(rounded_laplace, False), (discrete_laplace, True)]


@pytest.fixture
def decided(monkeypatch):
    """The draws that ball arithmetic decided."""
    calls = []
    exact = laplace._exact

    def spy(rule, scale, known, count):
        calls.append((scale, known))
        return exact(rule, scale, known, count)

    monkeypatch.setattr(laplace, "_exact", spy)
    return calls


@pytest.mark.parametrize(("law", "discrete"), LAWS)
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 17.5, 1e4, 2.0**30, 2.0**31])
def test_every_draw_is_the_rounded_inverse_at_its_uniform(law, discrete, scale, oracle, real_words):
    words = real_words(400)
    with bits.replay(words + [1 << 63] * 99):
        draws = law(scale, 400)
    assert [
        oracle.laplace(scale, word, 1 << 63, discrete=discrete) for word in words
    ] == draws.tolist()


@pytest.mark.parametrize(("law", "discrete"), LAWS)
@pytest.mark.parametrize("scale", [0.7, 3.0, 1e4, 2.0**20, 2.0**30])
@pytest.mark.parametrize("deviations", [0.2, 1.0, 5.0, 11.0, 20.0, 30.0])
@pytest.mark.parametrize("positive", [True, False])
def test_a_draw_at_a_rounding_boundary_is_decided_by_more_bits(
    law, discrete, scale, deviations, positive, oracle, decided
):
    with ctx.workprec(300):
        c = scale * (2 / (1 + (-1 / arb(scale)).exp())).log() if discrete else arb(0.5)
        boundary = int(max(1, scale * deviations)) - c
        word = oracle.word_for_laplace(scale, boundary)
    word = word if positive else TOP - word
    results = set()
    for more in (0, 1, 1 << 63, TOP - 1, TOP):
        with bits.replay([word, more, 1 << 63, 1 << 63]):
            (draw,) = law(scale, 1).tolist()
        assert draw == oracle.laplace(scale, word, more, 1 << 63, 1 << 63, discrete=discrete)
        results.add(draw)
    assert decided, "the boundary was not seen"
    assert all(draw >= 0 if positive else draw <= 0 for draw in results)
    assert len(results) >= 2, "the later bits must make the difference"


@pytest.mark.parametrize(("law", "discrete"), LAWS)
@pytest.mark.parametrize("scale", [1e-3, 0.4, 1.0, 1e3, 2.0**30])
@pytest.mark.parametrize("known", [0, 1, 2, 5, 1 << 20, 1 << 40, (1 << 63) - 2, (1 << 63) - 1])
def test_the_ends_of_the_uniform_are_exact(law, discrete, scale, known, oracle):
    for word in (known, TOP - known):
        for more in (1, TOP):
            with bits.replay([word, more, more, more, more]):
                draws = law(scale, 1)
            # The oracle reads as many words as the longest draw needs; the rest of U is in its
            # middle.
            assert draws.tolist() == [
                oracle.laplace(scale, word, more, more, more, more, discrete=discrete)
            ]


def test_with_no_bit_of_the_uniform_set_the_draw_goes_on(oracle):
    with bits.replay([0, 0, 0, 77, 5, 5, 5]):
        (draw,) = rounded_laplace(1000.0, 1).tolist()
    assert draw == oracle.laplace(1000.0, 0, 0, 0, 77, 5, 5)
    assert draw > 1000 * 63 * 0.69 * 2


@pytest.mark.parametrize(("law", "discrete"), LAWS)
@pytest.mark.parametrize("scale", [2.0**63 * 1.5, 2.0**70, 1e300])
def test_draws_too_large_for_64_bits_are_python_integers(law, discrete, scale, oracle, real_words):
    words = real_words(20)
    for word in words:
        with bits.replay([word] + [1 << 63] * 20):
            (draw,) = law(scale, 1).tolist()
        assert type(draw) is int
        assert draw == oracle.laplace(scale, word, *[1 << 63] * 20, discrete=discrete)


@pytest.mark.parametrize(("law", "discrete"), LAWS)
@pytest.mark.parametrize("exponent", [32, 40, 52, 62, 63])
def test_a_large_scale_is_a_cell_and_a_place_in_it(law, discrete, exponent, real_words):
    scale = 1.25 * 2.0 ** (exponent - 1)
    width = 1 << (exponent - 31)
    cells, places = real_words(200), real_words(200)
    with bits.replay(cells + places + [1 << 63] * 50):
        draws = law(scale, 200)
    for draw, cell_word, place_word in zip(draws.tolist(), cells, places, strict=True):
        known = TOP - cell_word if cell_word >= 1 << 63 else cell_word
        with ctx.workprec(700):
            v = (arb(known) + arb(0.5)) / arb(2) ** 63
            u = (arb(place_word >> 1) + arb(0.5)) / arb(2) ** 63
            rate = arb(width) / scale
            cell = (-v.log() / rate).floor()
            place = -(-u * -(-rate).expm1()).log1p() / rate
            c = scale * (2 / (1 + (-1 / arb(scale)).exp())).log() if discrete else arb(0.5)
            size = int((cell * width + (place * width + c).floor()).unique_fmpz())
        assert draw == (-size if place_word & 1 else size)


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, float("nan"), float("inf"), "1", None, True, 10**400, 2**60 + 1]
)
@pytest.mark.parametrize("law", [law for law, _ in LAWS])
def test_a_scale_that_is_no_exact_positive_float_is_refused(law, scale):
    with pytest.raises(InvalidArgument, match="scale"):
        law(scale, 3)


@pytest.mark.parametrize("size", [-1, 2.0, None, True, "3"])
def test_a_size_that_is_no_count_is_refused(size):
    with pytest.raises(InvalidArgument, match="size"):
        rounded_laplace(1.0, size)


@pytest.mark.parametrize(
    "scales",
    [
        np.ones(2),
        np.array([1, 0, 1.0]),
        np.array([1, np.nan, 1]),
        np.ones((3, 1)),
        np.array(["a"] * 3),
    ],
)
def test_scales_that_do_not_fit_the_draws_are_refused(scales):
    with pytest.raises(InvalidArgument, match="scale"):
        rounded_laplace(scales, 3)


def test_integers_and_numpy_scalars_are_scales_too():
    for scale in (3, np.float32(0.1), np.int64(7), np.array(2.0), np.float64(3)):
        assert rounded_laplace(scale, 2).shape == (2,)
    assert rounded_laplace(np.array([1, 2, 3], np.float32), 3).dtype == np.int64
    assert rounded_laplace(1.0, 0).tolist() == discrete_laplace(2.0**40, 0).tolist() == []


def test_one_scale_per_draw_of_every_size(oracle, real_words):
    scales = np.array([1e-3, 1.0, 1e6, 2.0**31, 2.0**31 * 1.01, 2.0**50, 2.0**63, 2.0**64])
    draws = rounded_laplace(scales, 8)
    assert draws.dtype in (np.int64, object)
    words = real_words(8)
    small = scales[:4]
    with bits.replay(words[:4] + [1 << 63] * 9):
        assert rounded_laplace(small, 4).tolist() == [
            oracle.laplace(scale, word, 1 << 63)
            for scale, word in zip(small.tolist(), words[:4], strict=True)
        ]


def test_the_constant_bound_covers_the_full_one():
    # The claim in the module: for ŷ up to 12 everything is below 2^-44 of the scale.
    y, u = 12.0, inversion.UNIT
    assert (inversion.FUNCTION + 2 * u) * y + 3 * u + 1.01 * 2.0**-63 * np.exp(y) < 2.0**-44
