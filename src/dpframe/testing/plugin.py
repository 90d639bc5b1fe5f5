"""Fixtures for pytest: `pytest_plugins = ["dpframe.testing.plugin"]` in
the `conftest.py` of your tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpframe.budget import Budget, Ledger
from dpframe.testing.comparing import assert_golden
from dpframe.testing.fixed_noise import Words, fixed_noise
from dpframe.testing.throwaway import budget, ledger


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes golden files anew."""
    parser.addoption(
        "--dpframe-rewrite", action="store_true", help="write the golden files of dpframe anew"
    )


@pytest.fixture
def dp_noise(request: pytest.FixtureRequest) -> Iterator[Words]:
    """The same noise in each run of this test, other noise in each test."""
    with fixed_noise(request.node.nodeid) as words:
        yield words


@pytest.fixture
def dp_budget() -> Budget:
    """A budget that is thrown away."""
    return budget()


@pytest.fixture
def dp_ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A test ledger in the test's own folder."""
    made = ledger(tmp_path / "dpframe-tests.sqlite")
    yield made
    made.close()


@pytest.fixture
def dp_golden(request: pytest.FixtureRequest) -> Callable[[Any, str], None]:
    """A function that compares a release with a file beside the test:
    `dp_golden(out, "visits.csv")`.
    """
    rewrite = bool(request.config.getoption("--dpframe-rewrite"))
    return lambda out, name: assert_golden(out, request.path.parent / name, rewrite=rewrite or None)
