"""At its end the suite reports how many cases it covered, over all workers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that these tests can import what is beside them

from engines import STARTED
from suite import TALLY

from engine.conftest import dask_here, in_postgres, spark_session

__all__ = ["dask_here", "in_postgres", "spark_session"]


@pytest.fixture(autouse=True)
def started(request):
    """The server of an engine is started by the first test that needs it."""
    engine = getattr(request.node, "callspec", None) and request.node.callspec.params.get("engine")
    if engine is not None and engine.needs:
        STARTED[engine.needs] = request.getfixturevalue(engine.needs)


@pytest.fixture(autouse=True)
def silent(started, capfd):
    """No engine may print anything: its output could show cells."""
    yield
    out, err = capfd.readouterr()
    assert not out + err


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["conformance"] = TALLY.plain()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    TALLY.merge(getattr(node, "workeroutput", {}).get("conformance") or {})


def pytest_terminal_summary(terminalreporter):
    if TALLY.operations:
        terminalreporter.section("conformance of engines")
        for line in TALLY.lines():
            terminalreporter.write_line(line)
        failed = len(terminalreporter.stats.get("failed", ()))
        terminalreporter.write_line(
            f"{failed} tests failed: by other values, or by an error where nothing was refused"
        )
