"""A place where nothing can be written: a typed error names it, nothing is spent,
and no part of a file is left.
"""

import contextlib
import os
import resource

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors, testing
from dpframe.__main__ import main
from dpframe.budget.ledger import check_copy


def out_of(budget):
    rows = pl.DataFrame({"id": [*range(50)], "g": ["a", "b"] * 25}).dp(unit="id", budget=budget)
    return (
        rows.group_by("g", keys=["a", "b"], max_groups=1, max_rows=1).count().release(epsilon=0.5)
    )


WRITERS = {
    "ledger": lambda path, ledger, out: dp.Ledger(path).budget("b", epsilon=1),
    "witness": lambda path, ledger, out: dp.Ledger(ledger.where, witness=path),
    "backup": lambda path, ledger, out: ledger.backup(path),
    "migrate": lambda path, ledger, out: dp.Ledger.migrate(ledger.where, path),
    "csv": lambda path, ledger, out: out.to_csv(path),
    "html": lambda path, ledger, out: out.to_html(path),
    "parquet": lambda path, ledger, out: out.to_parquet(path),
    "excel": lambda path, ledger, out: out.to_excel(path),
    "certificate": lambda path, ledger, out: out.to_csv(path.with_name("a.csv"), certificate=True),
    "report": lambda path, ledger, out: main(
        ["ledger", "report", str(ledger.where), "--html", str(path)]
    ),
}


@contextlib.contextmanager
def full_disk():
    """No file may have a byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


PLACES = [
    "no folder",
    "a file as its folder",
    "a folder in its place",
    "a system's folder",
    "full disk",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.one_in(2)
def test_where_nothing_can_be_written(writer, place, tmp_path, capsys):
    (tmp_path / "ledgers").mkdir()
    ledger = dp.Ledger(tmp_path / "ledgers" / "sound.sqlite")
    budget = ledger.budget("b", epsilon=1)
    out, before = out_of(budget), budget.entries()
    folder = tmp_path / "out"
    if place in ("a folder in its place", "full disk"):
        folder.mkdir()
    if place == "a file as its folder":
        folder.write_text("")
    name = {"excel": "a.xlsx", "certificate": "a.csv.certificate.json"}.get(writer, "a.html")
    path = (folder if place != "a system's folder" else type(folder)("/proc")) / name
    if place == "a folder in its place":
        path.mkdir()
    with full_disk() if place == "full disk" else contextlib.nullcontext():
        if writer == "report":
            assert main(["ledger", "report", str(ledger.where), "--html", str(path)]) == 1
            said = ""
        else:
            with pytest.raises((errors.LedgerError, errors.UnwritableFile)) as caught:
                WRITERS[writer](path, ledger, out)
            said = str(caught.value)
    said += capsys.readouterr().err
    assert str(path.parent) in said
    assert budget.entries() == before
    # SQLite leaves an empty witness, which is none
    assert not (path.is_file() and path.stat().st_size)
    left = sorted(os.listdir(folder)) if folder.is_dir() else []
    assert [name for name in left if name.startswith(".") or name.endswith(".new")] == []
    ledger.verify()


OPENERS = {
    "ledger that is there": lambda path, ledger, out: dp.Ledger(path, create=False),
    "ledger of tests": lambda path, ledger, out: testing.ledger(path),
    "restored": lambda path, ledger, out: dp.Ledger.restore(
        path, path, by="Ada", why="a test", lost="none"
    ),
    "adopted": lambda path, ledger, out: dp.Ledger.adopt(path, by="Ada", why="a test", lost="none"),
    "checked": lambda path, ledger, out: check_copy(path),
    "shown": lambda path, ledger, out: refused("ledger", "show", path),
    "reported": lambda path, ledger, out: refused(
        "ledger", "report", str(ledger.where), "--html", path
    ),
    "policy": lambda path, ledger, out: refused("policy", "check", path, path),
    "drafted": lambda path, ledger, out: refused("policy", "new", path),
}
URL = "postgresql+psycopg://ada:secret@{}:1/study"
ODD = {
    "a NUL": "\0",
    "no letter": "\ud800",
    "a byte that is no letter": "\udcff",
    "too long": "x" * 300,
    "a loop": "loop",
}


def refused(*words):
    if main([*words]) == 1:
        raise errors.UnwritableFile("as it said")


@pytest.mark.parametrize("odd", ODD)
def test_a_name_that_no_file_can_have(odd, tmp_path, monkeypatch):
    """Each function that takes a path refuses it with a typed error,
    and nothing is left of a file.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "ledgers").mkdir()
    ledger = dp.Ledger(tmp_path / "ledgers" / "sound.sqlite")
    out, before = out_of(ledger.budget("b", epsilon=1)), sorted(os.listdir(tmp_path))
    paths = {
        name: call
        for name, call in WRITERS.items()
        if name not in ("certificate", "excel", "report")
    } | OPENERS
    taken = []
    for name, call in paths.items():
        try:
            call(ODD[odd], ledger, out)
        except (errors.LedgerError, errors.InvalidArgument, errors.UnwritableFile):
            continue
        taken.append(name)
    assert taken == []
    assert sorted(os.listdir(tmp_path)) == before
    ledger.verify()


@pytest.mark.parametrize("host", ["\0", "\ud800", "x" * 300, "[::1", "a b", ""])
def test_an_address_that_is_none(host):
    with pytest.raises((errors.LedgerUnavailable, errors.InvalidArgument)) as caught:
        dp.Ledger(URL.format(host), timeout=1)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
