"""The law of permute-and-flip, against brute force over all orders and against draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpframe.noise import permute_and_flip
from dpframe.theory.formulas.error import choice_error
from dpframe.theory.formulas.error.quantile_interval import choice_chances


def by_orders(gaps):
    """Every order of the candidates alike, each accepted with
    probability e^-gap, again where none is.
    """
    accept = np.exp(-np.asarray(gaps))
    chances, rounds = np.zeros(len(gaps)), 0
    for order in permutations(range(len(gaps))):
        left = 1.0
        for i in order:
            chances[i] += left * accept[i]
            left *= 1 - accept[i]
        rounds += 1
    return chances / rounds  # the best one has gap 0, so a round always ends


@pytest.mark.parametrize(
    "gaps", [[0.0, 1.0], [0.0, 0.0, 3.0], [0.0, 0.2, 0.4, 5.0, 9.0], [0.0, 40.0]]
)
def test_chances_are_those_of_all_orders(gaps):
    assert np.abs(choice_chances(np.array(gaps)) - by_orders(gaps)).max() < 1e-9


def test_a_thousand_candidates_that_are_alike():
    assert np.abs(choice_chances(np.zeros(1024)) * 1024 - 1).max() < 1e-6


def test_errors_are_those_of_draws():
    """20,000 draws: a stated chance of 0.05 is off by more than 5 standard
    errors with probability below 1e-6.
    """
    scores = -np.abs(np.arange(200) - 80)
    error = choice_error(-scores * 0.1, np.abs(np.arange(200) - 80.0), 0.05)
    drawn = permute_and_flip(np.tile(scores, (20_000, 1)), Fraction(1, 10))
    spread = 5 * (0.05 * 0.95 / 20_000) ** 0.5
    assert (np.abs(drawn - 80) > error).mean() <= 0.05 + spread
    assert (np.abs(drawn - 80) > error - 1).mean() > 0.05 - spread
    assert (np.abs(drawn - 80) > error / 2).mean() > 0.05 + spread  # half of it is not enough
