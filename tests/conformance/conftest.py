"""The suite says at its end how large it was, whichever worker ran what."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that these tests can import what is beside them

from suite import TALLY


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
