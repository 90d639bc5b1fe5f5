"""Where ledgers are kept in tests, and spenders in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# What undoes the conversion of a ledger to this format from each earlier one.
TO_FORMAT_4 = (
    "DROP INDEX dpframe_entries_spender",
    "ALTER TABLE dpframe_entries DROP COLUMN spender",
    "ALTER TABLE dpframe_budgets DROP COLUMN caps",
)
EARLIER = {4: TO_FORMAT_4, 3: (*TO_FORMAT_4, "ALTER TABLE dpframe_ledger DROP COLUMN witness")}


@pytest.fixture
def as_of_format():
    """The statements that leave a ledger as an earlier format wrote it."""

    def statements(number):
        return *EARLIER.get(number, EARLIER[3]), f"UPDATE dpframe_ledger SET format = {number}"

    return statements


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a ledger is kept, for tests that hold wherever it is."""
    return (
        str(tmp_path / "study.sqlite")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )


@pytest.fixture
def spenders():
    """Run `spenders.py` in an interpreter of its own; gives what it printed."""
    import json

    def run(*arguments, timeout=1200):
        command = [sys.executable, str(HERE / "spenders.py"), *map(str, arguments)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
        return json.loads(done.stdout)

    return run
