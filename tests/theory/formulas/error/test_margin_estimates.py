"""Margins that are measured: the closed form against linear algebra, and what the
shares promise for every shape.
"""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from dpframe.theory.formulas.error import (
    chernoff_error,
    estimators,
    fitted,
    margin_shares,
    sum_error,
)

SHAPES = [(1, 1), (1, 6), (6, 1), (2, 2), (2, 3), (5, 4), (7, 8)]
MEASURED = [
    {"cells": 2.0},
    {"cells": 2.0, "total": 4.0},
    {"cells": 1.5, "rows": 3.0, "total": 0.7},
    {"cells": 2.0, "rows": 3.0, "columns": 5.0, "total": 4.0},
]


def design(rows, columns, measured):
    """The least squares problem, written out: one line per measured number, and its weight."""
    lines = {
        "cells": np.eye(rows * columns),
        "rows": np.kron(np.eye(rows), np.ones(columns)),
        "columns": np.kron(np.ones(rows), np.eye(columns)),
        "total": np.ones((1, rows * columns)),
    }
    weights = [np.full(len(lines[source]), 1 / v) for source, v in measured.items()]
    return lines, np.vstack([lines[source] for source in measured]), np.concatenate(weights)


@pytest.mark.parametrize("measured", MEASURED)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_closed_form_solves_the_normal_equations(shape, measured):
    lines, matrix, weights = design(*shape, measured)
    covariance = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    closed = estimators(*shape, measured).variances(measured)
    direct = [
        (lines[s] @ covariance @ lines[s].T)[0, 0] for s in ("cells", "rows", "columns", "total")
    ]
    np.testing.assert_allclose(closed, direct, rtol=1e-10)
    draw = np.random.default_rng(5)
    noisy = {source: draw.normal(size=len(lines[source])) for source in measured}
    solved = covariance @ matrix.T @ (weights * np.concatenate(list(noisy.values())))
    margins = {source: values for source, values in noisy.items() if source != "cells"}
    np.testing.assert_allclose(
        fitted(noisy["cells"].reshape(shape), measured, margins).ravel(), solved, atol=1e-10
    )


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(2), Fraction(9)])
def test_shares_keep_what_they_promise_for_every_shape(ratio, family):
    for shape in [*SHAPES, (3, 40), (200, 2), (60, 60), (400, 300)]:
        shares = margin_shares(*shape, ratio, family)
        assert sum(shares.values()) == 1
        assert shares["cells"] > 0
        power, factor = (1, ratio) if family == "gaussian" else (2, 1)
        measured = {
            s: float((1 if s == "cells" else factor) / x**power) for s, x in shares.items() if x
        }
        variances = estimators(*shape, measured).variances(measured)
        derived = (1, shape[1], shape[0], shape[0] * shape[1])
        cell, row, column, total = (np.sqrt(v / d) for v, d in zip(variances, derived, strict=True))
        assert cell <= 1.05
        assert total <= 1 + 1e-9
        # in ε the total is paid by cells and their sums
        one = 1 + 1e-9 if family == "gaussian" else 1.05
        assert row <= (one if shape[1] > 1 else 1.05)  # the margin of one cell is a cell
        assert column <= (one if shape[0] > 1 else 1.05)
        if family == "laplace":
            assert total <= 0.55 or shares["cells"] == 1
            assert (shares["cells"] < 1) == (shape[0] * shape[1] >= 1100)
        if family == "gaussian" and ratio == 1 and shape[0] * shape[1] >= 20 and min(shape) > 1:
            assert total <= 0.6
    assert margin_shares(1, 1, ratio, family)["cells"] == 1


def test_the_error_of_a_sum_of_laplace_noises_holds_and_is_sharp():
    """A million sums each: at 5%, more than 51,100 beyond the error, or fewer than
    48,900, have a chance below 1e-6.
    """
    draw = np.random.default_rng(5)
    for normal, parts in [
        (0.0, [(2.0, 1)]),
        (0.0, [(2.0, 4)]),
        (0.0, [(1.0, 1), (0.1, 6)]),
        (4.0, [(1.0, 2)]),
    ]:
        sums = math.sqrt(normal) * draw.normal(size=1_000_000)
        for scale, number in parts:
            sums += draw.laplace(0, scale, (number, 1_000_000)).sum(axis=0)
        triples = [(scale, number, 0.0) for scale, number in parts]
        error = sum_error(normal, triples, 0.05)
        assert 48_900 < (np.abs(sums) > error).sum() <= 51_100
        assert error < chernoff_error(normal, parts, 0.05)
        assert (np.abs(sums) > chernoff_error(normal, parts, 0.05)).sum() < 48_900


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-3, 1e-5])
def test_the_law_of_one_noise_is_exact_and_thousands_of_small_ones_hardly_widen_it(alpha):
    alone = sum_error(0.0, [(3.0, 1, 0.0)], alpha)
    assert alone == pytest.approx(3 * math.log(1 / alpha), rel=2e-3)
    small = [(3.0, 1, 0.0), (3 / 5000, 4999, 0.0), (60 / 5000, 1, 0.0)]
    assert alone <= sum_error(0.0, small, alpha) <= 1.01 * alone


def test_steps_of_discrete_noise_keep_their_own_law():
    """Discrete noise of scale 1 and a normal number:
    its distribution is a sum of normal ones over whole numbers.
    """
    near, deviation, a = NormalDist(), math.sqrt(1 / 3), math.exp(-1)
    error = sum_error(1 / 3, [(1.0, 1, 1.0)], 0.05)
    beyond = sum(
        math.tanh(0.5) * a ** abs(k) * 2 * near.cdf((k - error) / deviation) for k in range(-60, 61)
    )
    assert beyond == pytest.approx(0.05, rel=2e-3)
    assert beyond <= 0.05
