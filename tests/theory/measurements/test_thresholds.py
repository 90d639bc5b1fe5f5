"""Thresholded releases: the documented figures, what is true where they are
not, and that the rule is kept.
"""

import math

import numpy as np
import pytest
from scipy import stats

import dpframe.theory as t
from dpframe import errors

ABSOLUTE = t.AbsoluteDistance()
L01, L02 = t.L01InfDistance(ABSOLUTE), t.L02InfDistance(ABSOLUTE)
INTEGERS = [int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def make(constructor, kind, scale, threshold, **options):
    metric = L01 if constructor is t.laplace_threshold else L02
    return constructor(
        t.MapDomain(t.AtomDomain(str), t.AtomDomain(kind)), metric, scale, threshold, **options
    )


def approx_dp(m, delta):
    return t.fix_delta(t.zcdp_to_approx(m), delta)


# The table of the source document. Its figures are in the comments; ours are the exact ones.


def test_laplace_float():
    # Document: 2.801398224505647e-09, above the exact exp(-19)/2 by 2e-9 of it (float arithmetic of
    #           1 - (1 - x)).
    epsilon, delta = make(t.laplace_threshold, float, 1, 20).map((1, 1, 1))
    assert epsilon == 1.0
    assert delta == pytest.approx(math.exp(-19) / 2, rel=1e-15)
    assert delta <= 2.801398224505647e-09 <= delta * (1 + 1e-8)


def test_gaussian_float():
    # Document: δ = 1.11e-16, which is the spacing of floats below 1 and not a tail.
    rho, delta = make(t.gaussian_threshold, float, 1, 20).map((1, 1, 1))
    assert rho == 0.5
    assert delta == pytest.approx(stats.norm.sf(19), rel=1e-9)
    assert delta == pytest.approx(8.527223952630977e-81, rel=1e-12)


@pytest.mark.parametrize(
    ("d_in", "document"),
    [((1, 1, 1), 6.3035767282855915), ((100, 10.0, 0.001), 0.049969691134438526)],
)
def test_gaussian_float_converted(d_in, document):
    # The document's ε is that of δ - 1.11e-16; with the true tail a little more of δ is left for
    # the conversion.
    m = make(t.gaussian_threshold, float, 1, 20)
    epsilon, delta = approx_dp(m, 2.801398224505647e-09).map(d_in)
    assert delta == 2.801398224505647e-09
    assert epsilon <= document <= epsilon * (1 + 1e-6)
    artefact, _ = approx_dp(m, 2.801398224505647e-09 - 1.11e-16 * d_in[0]).map(d_in)
    assert artefact == pytest.approx(document, rel=3e-9)


def test_laplace_float_with_redundant_sensitivities():
    # Document: (0.1, 1.0316078580263621e-07), again with the rounding of 1 - (1 - x)^100.
    epsilon, delta = make(t.laplace_threshold, float, 1, 20).map((100, 10.0, 0.001))
    assert epsilon == 0.1
    assert delta == pytest.approx(-math.expm1(100 * math.log1p(-math.exp(-19.999) / 2)), rel=1e-13)
    assert delta <= 1.0316078580263621e-07 <= delta * (1 + 1e-8)


def test_laplace_integer():
    # Document: 3.319000812207484e-05 is P[noise > 9]; a noisy value equal to the threshold is kept,
    #           so it is P[>= 9].
    a = math.exp(-1)
    for threshold in (10, -10):
        epsilon, delta = make(t.laplace_threshold, int, 1, threshold).map((1, 1, 1))
        assert epsilon == 1.0
        assert delta == pytest.approx(a**9 / (1 + a), rel=1e-13)
        assert delta == pytest.approx(9.021979596461533e-05, rel=1e-13)
        assert delta * a == pytest.approx(3.319000812207484e-05, rel=1e-9)


@pytest.mark.parametrize("kind", INTEGERS)
def test_every_integer_type(kind):
    signs = (1, -1) if np.dtype(kind).kind == "i" else (1,)
    for sign in signs:
        m = make(t.laplace_threshold, kind, 1, sign * 10)
        assert m.map((1, 1, 1)) == make(t.laplace_threshold, int, 1, 10).map((1, 1, 1))
        out = m({"a": sign * 100, "b": sign * 1, "c": 0})
        assert set(out) <= {"a", "b"}
        assert "a" in out
        g = make(t.gaussian_threshold, kind, 1, sign * 10)
        assert g.map((1, 1, 1)) == (0.5, pytest.approx(stats.norm.sf(8.5), rel=1e-9))
        assert "a" in g({"a": sign * 100})


@pytest.mark.parametrize("kind", [float, np.float32])
@pytest.mark.parametrize("constructor", [t.laplace_threshold, t.gaussian_threshold])
def test_every_float_type_and_sign(kind, constructor):
    for sign in (1, -1):
        m = make(constructor, kind, 1, sign * 20.0)
        assert m.map((1, 1, 1)) == make(constructor, float, 1, 20.0).map((1, 1, 1))
        out = m({"a": sign * 100.0, "b": -sign * 100.0, "c": sign * 1.0})
        assert set(out) == {"a"}
        assert t.AtomDomain(kind).member(out["a"])


def test_figures_of_other_test_suites():
    # Keys are kept when noisy >= T there too; where their δ leaves out equality, ours is larger by
    # e^(1/scale).
    epsilon, delta = make(t.laplace_threshold, int, 2, 28).map((1, 10, 10))
    assert (epsilon, delta * math.exp(-0.5)) == (
        5.0,
        pytest.approx(4.659221997116436e-05, rel=1e-9),
    )
    assert make(t.laplace_threshold, float, 2, 28).map((1, 10, 10)) == (
        5.0,
        pytest.approx(6.17049020433802e-05, rel=1e-9),
    )
    assert make(t.gaussian_threshold, float, 2, 28).map((1, 10, 10)) == (
        12.5,
        pytest.approx(stats.norm.sf(9), rel=1e-9),
    )
    counted = t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance())
    epsilon, delta = (counted >> make(t.laplace_threshold, int, 2, 28)).map(1)
    assert (epsilon, delta * math.exp(-0.5)) == (
        0.5,
        pytest.approx(5.175928103895444e-07, rel=1e-9),
    )


def test_granularity():
    step = 2.0**-10
    epsilon, delta = make(t.laplace_threshold, float, 1, 20, granularity=step).map((3, 3, 1))
    assert epsilon == 3 * (1 + step)
    assert delta == pytest.approx(
        -math.expm1(3 * math.log1p(-math.exp(-(19 - step)) / 2)), rel=1e-12
    )
    rho, delta = make(t.gaussian_threshold, float, 1, 20, granularity=step).map((4, 2, 1))
    assert rho == (2 + 2 * step) ** 2 / 2
    assert delta == pytest.approx(4 * stats.norm.sf(19 - step), rel=1e-9)
    coarse = make(t.laplace_threshold, int, 8, 40, granularity=4)
    assert coarse.map((1, 4, 4)) == (
        1.0,
        pytest.approx(math.exp(-4) / (1 + math.exp(-0.5)), rel=1e-12),
    )
    assert all(v % 4 == 0 and v >= 40 for v in coarse({"a": 61, "b": 40}).values())


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("sign", [1, -1])
def test_delta_is_the_chance_that_a_lone_key_shows(kind, sign):
    """A key at distance Δ∞ = 3 from absence, threshold 5, scale 2:
    20,000 draws, 6 standard deviations.
    """
    m = make(t.laplace_threshold, kind, 2, sign * 5)
    _, delta = m.map((1, 3, 3))
    keys = {str(i): kind(sign * 3) for i in range(20_000)}
    shown = len(m(keys))
    assert abs(shown - 20_000 * delta) < 6 * math.sqrt(20_000 * delta * (1 - delta))


def test_delta_is_joint_over_the_keys():
    one = make(t.laplace_threshold, int, 2, 12).map((1, 1, 1))[1]
    assert make(t.laplace_threshold, int, 2, 12).map((7, 7, 1))[1] == pytest.approx(
        1 - (1 - one) ** 7, rel=1e-12
    )


def test_the_rule_includes_equality_and_what_is_released_obeys_it():
    m = make(t.laplace_threshold, int, 1, 10)
    drawn = [v for _ in range(200) for v in m({str(i): 9 for i in range(20)}).values()]
    assert min(drawn) == 10
    f = make(t.laplace_threshold, float, 1, 9.5)
    drawn = [v for _ in range(50) for v in f({str(i): 9.0 for i in range(20)}).values()]
    assert min(drawn) >= 9.5


def test_an_absent_key_and_a_zero_are_the_same():
    m = make(t.laplace_threshold, int, 5, 1)
    assert m({"a": 0, "b": 0}) == {}
    assert m({}) == {}


def test_the_order_of_the_data_does_not_show():
    m = make(t.laplace_threshold, int, 1, 10)
    assert list(m({"b": 100, "a": 100, "c": 100})) == ["a", "b", "c"]


def test_infinite_values():
    m = make(t.laplace_threshold, float, 1, 10)
    assert m({"a": math.inf, "b": -math.inf}) == {"a": math.inf}


def test_a_low_threshold_says_so():
    assert make(t.laplace_threshold, int, 1, 0).map((1, 1, 1))[1] > 0.5
    assert make(t.laplace_threshold, float, 1, 1).map((1, 1, 1))[1] == 0.5


@pytest.mark.parametrize("constructor", [t.laplace_threshold, t.gaussian_threshold])
def test_what_is_refused(constructor):
    with pytest.raises(errors.DomainMismatch):
        constructor(t.VectorDomain(t.AtomDomain(int)), L01, 1, 10)
    with pytest.raises(errors.DomainMismatch):
        make(constructor, str, 1, 10)
    with pytest.raises(errors.DomainMismatch):
        constructor(
            t.MapDomain(t.AtomDomain(float, nan=True), t.AtomDomain(int)),
            L01 if constructor is t.laplace_threshold else L02,
            1,
            10,
        )
    wrong = L02 if constructor is t.laplace_threshold else L01
    with pytest.raises(errors.MetricMismatch):
        constructor(t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), wrong, 1, 10)
    for scale in (0, -1, math.inf, math.nan):
        with pytest.raises(errors.InvalidArgument):
            make(constructor, float, scale, 10)
    for threshold in (math.nan, math.inf, "10", None):
        with pytest.raises(errors.InvalidArgument):
            make(constructor, float, 1, threshold)
