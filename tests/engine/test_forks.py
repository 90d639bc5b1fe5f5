"""Processes that are forked answer, or refuse before the charge with the line
to type; nothing waits forever.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("forked.py")
NO_THREADS = (
    "UnsupportedOperation: {} does not answer in this process: it is a fork of one that had used {}"
)
SHARED = (
    "UnsupportedOperation: {}: this process is a fork of the one that made the connection of this "
    "table."
)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

# the engine, how the process starts, what was used before, and the name of what does not answer
CASES = [
    ("polars", "fork", "nothing", None),
    ("pandas", "pool", "asked", "Polars"),
    ("datafusion", "fork", "nothing", "datafusion"),
    ("polars", "fork", "asked", "Polars"),
    ("dask", "fork", "computed", "dask"),
    ("dask", "fork", "nothing", None),
    ("duckdb", "beside", "nothing", None),
    ("duckdb", "fork", "computed", None),
    ("duckdb", "fork", "asked", "Polars"),
    ("sqlite", "fork", "nothing", None),
    ("sqlite", "spawn", "asked", None),
]
QUICK = 2  # of these cases


def started(engine, start, used, folder, url=""):
    """What a question gives in a process that is started so, and what is spent."""
    here = {**os.environ, "TMPDIR": str(folder)} if engine == "spark" else None
    words = [sys.executable, SCRIPT, engine, start, used, folder / "ledger.sqlite", url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=here)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("kind", "start", "used", "silent"),
    [
        pytest.param(*case, marks=() if i < QUICK else pytest.mark.long)
        for i, case in enumerate(CASES)
    ],
)
def test_a_process_answers_or_refuses(kind, start, used, silent, tmp_path):
    said, spent = started(kind, start, used, tmp_path)
    if silent is None:
        assert (said, spent) == ("answered", 0.5)
    else:
        assert said.startswith(NO_THREADS.format(silent, silent))
        assert "get_context('spawn')" in said
        assert spent == 0


def test_a_fork_does_not_ask_through_the_connection_of_its_process(postgres_server, tmp_path):
    said, spent = started("postgres", "fork", "nothing", tmp_path, postgres_server)
    assert said.startswith(SHARED.format("postgres"))
    assert "Connect in this process" in said
    assert spent == 0


@pytest.mark.long
def test_a_fork_with_a_connection_of_its_own_answers(postgres_server, tmp_path):
    assert started("postgres", "fork", "its own", tmp_path, postgres_server) == ["answered", 0.5]


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_a_fork_does_not_share_a_session_of_spark(tmp_path):
    said, spent = started("spark", "fork", "nothing", tmp_path)
    assert said.startswith(SHARED.format("spark"))
    assert spent == 0
