"""What every test of tables shares: one fixture for all engines,
and the random tables beside it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dpframe.testing import fixed_noise

# so that tests can import `strategies`, the random tables and plans
sys.path.insert(0, str(Path(__file__).parent))

from postgres_server import running_server, server_programs, why_not
from strategies import KINDS
from tiers import out_of_turn, thin_out

# in a module, it may come after a doctest has imported it
pytest_plugins = ["dpframe.testing.plugin", "steady_noise"]

# The same examples in each run, as Hypothesis does by itself under CI, and no clock: a loaded
# machine is no failure.
settings.register_profile(
    "dpframe", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dpframe")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before pytest looks at marks: which cases are long, and which
    of these are asked in this turn.
    """
    thin_out(items)
    turn = os.environ.get("DPFRAME_TURN", "0")
    left = out_of_turn(items, int(turn)) if turn != "all" else []
    config.hook.pytest_deselected(items=left)
    others = set(map(id, left))
    items[:] = [item for item in items if id(item) not in others]


@pytest.fixture(params=KINDS)
def kind(request):
    """The kind of table a user brings: each engine test runs once for each."""
    return request.param


@pytest.fixture
def same_noise():
    """The same noise in each run, for what is nearly always so:
    how good a choice is, which noise may lead astray.
    """
    with fixed_noise(1):
        yield


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a PostgreSQL server of its own, which lives as long as the tests."""
    if why_not() is not None:
        pytest.skip(why_not())
    with running_server(server_programs()) as url:
        yield url


@pytest.fixture
def postgres(postgres_server):
    """A URL whose tables are empty, without copies of them."""
    import sqlalchemy as sa

    engine = sa.create_engine(postgres_server)
    with engine.begin() as connection:
        for table in ("ledger", "budgets", "entries", "data"):
            connection.execute(
                sa.text(f"DROP TABLE IF EXISTS dpframe_{table}, old_dpframe_{table}")
            )
    engine.dispose()
    return postgres_server
