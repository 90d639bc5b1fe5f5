"""What every test of tables shares: one fixture for all engines, and the random tables beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import `strategies`, the random tables and plans

from strategies import KINDS

# The same examples in each run, as Hypothesis does by itself under CI, and no clock: a loaded machine is no failure.
settings.register_profile("dpframe", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpframe")


@pytest.fixture(params=KINDS)
def kind(request):
    """The kind of table a user brings: each engine test runs once for each."""
    return request.param
