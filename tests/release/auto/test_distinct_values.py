"""How units share values, as it is read from noisy numbers of different values."""

import numpy as np
import pytest

from dpframe.release.auto.distinct_values import Shared, ValuesPosterior


def test_values_are_read_near_the_truth():
    rows = [np.array([float(n)]) for n in (2000, 20_000)]
    for number, uneven in ((50.0, 0.0), (3000.0, 1.0), (40_000.0, 2.0), (1e6, 0.0)):
        truth = Shared(np.array([number]), np.array([uneven]))
        laws = ValuesPosterior.beforehand(rows[1])
        for seen in (np.array([2000.0]), np.array([7000.0])):
            laws = laws.after(seen, float(truth.found(seen)[0]), 20.0)
        read = laws.drawn(9).found(np.repeat(rows[1], 9))
        assert np.median(read) == pytest.approx(truth.found(rows[1])[0], rel=0.25)
    assert truth.found(np.array([1e12]))[0] == pytest.approx(1e6)


def test_without_a_number_of_values_nothing_is_known_of_them():
    laws = ValuesPosterior.beforehand(np.array([1000.0, 1e6]))
    found = laws.drawn(100).found(np.repeat([1000.0, 1e6], 100)).reshape(2, 100)
    for seen, rows in zip(found, (1000, 1e6), strict=True):
        assert 0.3 < np.mean(seen > 0.8 * rows) < 0.7
        assert np.mean(seen < 0.1 * rows) > 0.2
    for noisy in (-1e15, 0.0, 1e15):
        after = laws.after(np.array([0.0, 3.0]), noisy, 1e-9).drawn(4)
        assert np.all(np.isfinite(after.found(np.repeat([0.0, 1e12], 4))))
