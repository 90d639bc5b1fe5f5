"""What the tests of other libraries ask, as one table:
figures, neighbours and refusals that must be met here too.

Figures are those that OpenDP 0.14 and dp_accounting 0.6 print for the same mechanism (`rel` says
how near), or exact facts. A figure of theirs that ours must not exceed, or not fall below, says so
by its comparison.
"""

import math

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors

S, C1, A = t.SymmetricDistance(), t.ChangeOneDistance(), t.AbsoluteDistance()
INT, FLOAT, TEXT = t.AtomDomain(int), t.AtomDomain(float), t.AtomDomain(str)
INTS, FLOATS, TEXTS = (t.VectorDomain(atom) for atom in (INT, FLOAT, TEXT))
SMOOTH, RENYI = t.SmoothedMaxDivergence(), t.RenyiDivergence()
COUNTS = t.MapDomain(TEXT, INT)


def bounded(low, high, size=None, kind=None):
    return t.VectorDomain(t.AtomDomain(kind, bounds=(low, high)), size=size)


FIGURES = {
    # OpenDP
    "laplace of a number": (lambda: t.laplace(FLOAT, A, 1.5).map(1.0), 2 / 3),
    "laplace on a coarse grid": (
        lambda: t.laplace(FLOAT, A, 1.0, granularity=2.0**-10).map(1.0),
        1.0009765625,
    ),
    "laplace on the finest grid": (
        lambda: t.laplace(FLOAT, A, 1.0, granularity=2.0**-1074).map(1.0),
        1.0,
    ),
    "laplace of a vector": (lambda: t.laplace(INTS, t.L1Distance(), 2.0).map(3), 1.5),
    "laplace of floats, length private": (
        lambda: t.laplace(FLOATS, t.L1Distance(), 2.0).map(3.0),
        1.5,
    ),
    "geometric": (lambda: t.laplace(INT, A, 3.0).map(2), 2 / 3),
    "gaussian of a number": (lambda: t.gaussian(FLOAT, A, 2.0).map(1.0), 0.125),
    "gaussian of a vector": (lambda: t.gaussian(INTS, t.L2Distance(), 2.0).map(2), 0.5),
    "laplace threshold": (
        lambda: t.laplace_threshold(COUNTS, t.L01InfDistance(), 2.0, 20).map((2, 2, 1))[1],
        -math.expm1(2 * math.log1p(-math.exp(-19 / 2) / (1 + math.exp(-0.5)))),
    ),
    "randomized response of a bit": (lambda: t.randomized_response(prob=0.75).map(1), math.log(3)),
    "randomized response of four": (
        lambda: t.randomized_response([0, 1, 2, 3], prob=0.6).map(1),
        1.5040773967762742,
    ),
    "noisy max": (lambda: t.noisy_max(INTS, t.LinfDistance(), 2.0).map(1), 1.0),
    "noisy max, monotonic": (
        lambda: t.noisy_max(INTS, t.LinfDistance(monotonic=True), 2.0).map(1),
        0.5,
    ),
    "noisy top 2": (lambda: t.noisy_top_k(INTS, t.LinfDistance(), 2, 1.0).map(1), 4.0),
    "noisy max in zcdp": (
        lambda: t.noisy_max(
            INTS, t.LinfDistance(), 2.0, output_measure=t.ZeroConcentratedDivergence()
        ).map(1),
        0.125,
    ),
    "zcdp to approximate, ε": (
        lambda: t.zcdp_to_approx(t.gaussian(FLOAT, A, 4.0)).map(1).epsilon(1e-6),
        1.1429257095713568,
    ),
    "zcdp to approximate, δ": (
        lambda: t.zcdp_to_approx(t.gaussian(FLOAT, A, 4.0)).map(1).delta(1.0),
        1.225308114739652e-05,
    ),
    "sum": (lambda: t.sum(bounded(-3, 10), S).map(2), 20),
    "sum of a public size": (lambda: t.sum(bounded(-3, 10, 5), S).map(2), 13),
    "mean": (lambda: t.mean(bounded(-3.0, 10.0, 5), S).map(2), 2.6),
    "variance": (lambda: t.variance(bounded(0.0, 10.0, 5), S).map(2), 20),
    "variance, ddof 0": (lambda: t.variance(bounded(0.0, 10.0, 5), S, ddof=0).map(2), 16),
    "count": (lambda: t.count(INTS, S).map(3), 3),
    "count of a public size": (lambda: t.count(t.VectorDomain(INT, 3), S).map(2), 0),
    "counts of categories in l2": (
        lambda: t.histogram(INTS, S, [1, 2], output_metric=t.L2Distance()).map(2),
        2,
    ),
    "count by": (lambda: t.count_by(TEXTS, S, t.L1Distance()).map(2), 2),
    "resize": (lambda: t.resize(INTS, S, 5, 0).map(2), 4),
    "cast": (lambda: t.cast(TEXTS, S, float).map(3), 3),
    "impute": (lambda: t.impute(t.VectorDomain(t.AtomDomain(float, nan=True)), S, 1.0).map(1), 1),
    "clamp": (lambda: t.clamp(FLOATS, S, (0, 1)).map(2), 2),
    "composition": (lambda: t.compose([t.laplace(FLOAT, A, 2.0)] * 2).map(1.0), 1.0),
    "the least scale": (
        lambda: t.binary_search_param(lambda s: t.laplace(FLOAT, A, s), 1.0, 0.5),
        2.0,
    ),
    "a profile of zcdp at δ = 1e-3": (
        lambda: t.zcdp_to_approx(t.gaussian(FLOAT, A, 4.0)).map(1).epsilon(1e-3),
        0.6880024554878085,
    ),
    "a profile of zcdp at ε = 0": (
        lambda: t.zcdp_to_approx(t.gaussian(FLOAT, A, 4.0)).map(1).delta(0),
        0.1508457845622862,
    ),
    "count by, with a threshold": (
        lambda: (
            t.count_by(TEXTS, S) >> t.laplace_threshold(COUNTS, t.L01InfDistance(), 2.0, 28)
        ).map(1)[0],
        0.5,
    ),
    # Tumult Core
    "sum of bounds that do not hold 0": (lambda: t.sum(bounded(5, 10), S).map(1), 10),
    "sum of replaced records": (lambda: t.sum(bounded(5, 10), C1).map(1), 5),
    "parallel composition": (
        lambda: t.parallel([t.count(INTS, S) >> t.laplace(INT, A, 2.0)] * 3).map(1),
        0.5,
    ),
    "noise of Rényi": (
        lambda: t.gaussian(FLOAT, A, 2.0, output_measure=t.RenyiDivergence(4)).map(1),
        0.5,
    ),
    # dp_accounting
    "profile of gaussian noise, ε": (
        lambda: t.gaussian(FLOAT, A, 2.0, output_measure=SMOOTH).map(1).epsilon(1e-6),
        2.2540846,
    ),
    "profile of gaussian noise, δ": (lambda: t.gaussian_delta(1, 0.5), 0.0068295949),
    "profile of laplace noise": (lambda: t.laplace_delta(0.5, 1, 1), 0.22119921692861635),
    "profile of discrete laplace noise": (
        lambda: t.discrete_laplace_delta(0.5, 3, 2),
        0.3934693402873666,
    ),
    "two gaussians": (
        lambda: (
            t.compose([t.gaussian(FLOAT, A, s, output_measure=SMOOTH) for s in (3.0, 4.0)])
            .map(1)
            .epsilon(1e-6)
        ),
        1.84608274,
    ),
    "the least gaussian": (
        lambda: t.gaussian_scale(10, 1, 1e-6) / t.gaussian_scale(1, 1, 1e-6),
        10.0,
    ),
    # PipelineDP
    # SmartNoise
    "histogram": (lambda: t.histogram(FLOATS, S, bins=[0, 1, 2]).map(1), 1),
    "histogram of replaced records": (lambda: t.histogram(FLOATS, C1, bins=[0, 1, 2]).map(1), 2),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    ask, figure = FIGURES[name]
    assert ask() == pytest.approx(figure, rel=2e-5 if "rényi" in name else 1e-7, abs=1e-300)


ANSWERS = {
    "clamp": (lambda: t.clamp(FLOATS, S, (0, 5))([10.0, -1.0]), [5.0, 0.0]),
    "sum": (lambda: t.sum(bounded(0, 10), S)([1, 2, 3]), 6),
    "a sum that leaves its type": (
        lambda: t.sum(bounded(0, 100, kind=np.int8), S)([100, 100]),
        127,
    ),
    "mean": (lambda: t.mean(bounded(0.0, 10.0, 3), S)([1.0, 2.0, 3.0]), 2.0),
    "count by categories": (lambda: t.histogram(INTS, S, [1, 2, 3])([1, 1, 4]), [2, 0, 0, 1]),
    "count by": (lambda: t.count_by(TEXTS, S)(["a", "a"]), {"a": 2}),
    "cast": (lambda: t.cast(TEXTS, S, int)(["1", "x", "2.9"]), [1, 0, 0]),
    "symmetric distance": (lambda: S.distance([1, 2, 2], [2, 3]), 3),
    "insert-delete distance": (lambda: t.InsertDeleteDistance().distance([1, 2, 3], [1, 3]), 1),
    "hamming distance of unlike sizes": (
        lambda: t.HammingDistance().distance([1], [1, 2]),
        math.inf,
    ),
    "an empty dataset": (lambda: t.sum(bounded(0, 10), S)([]), 0),
    "empty noise": (lambda: t.laplace(INTS, t.L1Distance(), 1.0)([]), []),
    "distances of 0": (lambda: t.laplace(FLOAT, A, 1.0).map(0), 0),
    "bool sum": (lambda: t.sum(t.VectorDomain(t.AtomDomain(bool)), S)([True, True, False]), 2),
    "domains by name": (lambda: t.AtomDomain(T="f64", bounds=(0, 1)).member(0.5), True),
    "bounds are inclusive": (lambda: t.AtomDomain(bounds=(0, 1)).member(1), True),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    ask, answer = ANSWERS[name]
    assert ask() == answer


REFUSALS = {
    "scale 0": lambda: t.laplace(FLOAT, A, 0.0),
    "a negative scale": lambda: t.gaussian(FLOAT, A, -1.0),
    "NaN in the domain": lambda: t.laplace(t.AtomDomain(float, nan=True), A, 1.0),
    "bounds that are turned around": lambda: t.clamp(FLOATS, S, (1, 0)),
    "infinite bounds": lambda: t.AtomDomain(bounds=(0.0, math.inf)),
    "no bounds": lambda: t.sum(FLOATS, S),
    "a mean without a size": lambda: t.mean(bounded(0.0, 1.0), S),
    "a negative distance": lambda: t.laplace(FLOAT, A, 1.0).map(-1),
    "a distance of NaN": lambda: t.laplace(FLOAT, A, 1.0).map(math.nan),
    "half a record": lambda: t.count(INTS, S).map(0.5),
    "metrics that differ": lambda: t.count(INTS, S) >> t.laplace(INT, t.L1Distance(), 1.0),
    "domains that differ": lambda: t.count(INTS, S) >> t.laplace(FLOAT, A, 1.0),
    "measures that differ": lambda: t.compose(
        [t.laplace(FLOAT, A, 1.0), t.gaussian(FLOAT, A, 1.0)]
    ),
    "repeated categories": lambda: t.histogram(INTS, S, [1, 1]),
    "a probability below 1/k": lambda: t.randomized_response(["a", "b", "c"], prob=0.2),
    "a text for a number": lambda: t.clamp(FLOATS, S, (0, 1))(["a"]),
    "a vector of the wrong size": lambda: t.mean(bounded(0.0, 1.0, 2), S)([0.5]),
    "values out of bounds": lambda: t.sum(bounded(0, 1), S)([2]),
    "noise on private keys": lambda: t.laplace(COUNTS, t.L1Distance(), 1.0),
    "a grid that is no power of two": lambda: t.laplace(FLOAT, A, 1.0, granularity=0.3),
    "replaced records in parallel": lambda: t.parallel(
        [t.count(INTS, C1) >> t.laplace(INT, A, 1.0)]
    ),
    "a square for a length": lambda: t.gaussian_scale(10, 1, 1e-6, l2_squared=100),
    "ε of 0": lambda: t.laplace_scale(1, 0),
    "δ of 1": lambda: t.gaussian_scale(1, 1, 1),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    with pytest.raises(errors.DpFrameError):
        REFUSALS[name]()
