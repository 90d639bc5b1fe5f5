"""Margins that are measured: the closed form against linear algebra, and what the shares promise for every shape."""

from fractions import Fraction

import numpy as np
import pytest

from dpframe.theory.formulas.error.margin_estimates import estimators, fitted, margin_shares, sum_error

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
    direct = [(lines[s] @ covariance @ lines[s].T)[0, 0] for s in ("cells", "rows", "columns", "total")]
    np.testing.assert_allclose(closed, direct, rtol=1e-10)
    draw = np.random.default_rng(5)
    noisy = {source: draw.normal(size=len(lines[source])) for source in measured}
    solved = covariance @ matrix.T @ (weights * np.concatenate(list(noisy.values())))
    margins = {source: values for source, values in noisy.items() if source != "cells"}
    np.testing.assert_allclose(fitted(noisy["cells"].reshape(shape), measured, margins).ravel(), solved, atol=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(2), Fraction(9)])
def test_shares_keep_what_they_promise_for_every_shape(ratio, family):
    for shape in [*SHAPES, (3, 40), (200, 2), (60, 60), (400, 300)]:
        shares = margin_shares(*shape, ratio, family)
        assert sum(shares.values()) == 1
        assert shares["cells"] > 0
        power, factor = (1, ratio) if family == "gaussian" else (2, 1)
        measured = {s: float((1 if s == "cells" else factor) / x**power) for s, x in shares.items() if x}
        variances = estimators(*shape, measured).variances(measured)
        derived = (1, shape[1], shape[0], shape[0] * shape[1])
        cell, row, column, total = (np.sqrt(v / d) for v, d in zip(variances, derived, strict=True))
        assert cell <= 1.05
        assert total <= 1 + 1e-9
        assert row <= (1 + 1e-9 if shape[1] > 1 else 1.05)  # the margin of one cell is a cell
        assert column <= (1 + 1e-9 if shape[0] > 1 else 1.05)
        if family == "gaussian" and ratio == 1 and shape[0] * shape[1] >= 20 and min(shape) > 1:
            assert total <= 0.6
    assert margin_shares(1, 1, ratio, family)["cells"] == 1


def test_the_error_of_a_sum_of_laplace_noises_holds():
    """A million sums each: at 5%, more than 51,100 beyond the error have a chance below 1e-6 if it holds."""
    draw = np.random.default_rng(5)
    for number in (1, 4, 30):
        sums = np.abs(draw.laplace(0, 2.0, (number, 1_000_000)).sum(axis=0)) if number < 30 else None
        if sums is not None:
            assert (sums > sum_error(0.0, [(2.0, number)], 0.05)).sum() <= 51_100
    assert sum_error(1.0, [(1.0, 3)], 0.05) > sum_error(0.0, [(1.0, 3)], 0.05)
    assert sum_error(0.0, [(2.0, 100)], 0.05) < 100 * 2 * np.log(20)
