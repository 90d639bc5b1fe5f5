"""Which cases of a test are quick, and which are asked in the long tier only."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def in_turn(*values: Iterable[Any]) -> list[Any]:
    """Every combination of some parameters' values; every second one is long, so that each value stays quick somewhere.

    Of two parameters with values a, b and 1, 2 the cases (a, 1) and (b, 2) are quick: a bug of one value is found by
    either of its cases, and a bug of one combination in the long tier.
    """
    cases = itertools.product(*map(enumerate, values))
    return [
        pytest.param(*(value for _, value in case), marks=pytest.mark.long if sum(i for i, _ in case) % 2 else ())
        for case in cases
    ]
