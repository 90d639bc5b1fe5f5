"""The script that engineers copy: 30 generated days, a kill in the
middle, and a budget that refuses.
"""

import datetime as dt
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp

SCRIPT = Path(__file__).parents[1] / "demo" / "nightly.py"
SPEC = importlib.util.spec_from_file_location("nightly_demo", SCRIPT)
MODULE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODULE)
DAYS = [str(dt.date(2026, 11, 1) + dt.timedelta(days=night)) for night in range(30)]


@pytest.fixture
def folders(tmp_path):
    """Thirty days of sign-ups, and an empty folder."""
    rng, days = random.Random(1), tmp_path / "days"
    days.mkdir()
    for place, day in enumerate(DAYS):
        users = [f"{place}-{n}" for n in range(rng.randint(50, 90))]
        countries = [rng.choice(["de", "fr", "other", "xx"]) for _ in users]
        pl.DataFrame({"user_id": users, "country": countries}).write_parquet(
            days / f"{day}.parquet"
        )
    out = tmp_path / "out"
    out.mkdir()
    return days, out


def command(day, folders, *more):
    days, out = folders
    return [
        sys.executable,
        "-W",
        "error",
        str(SCRIPT),
        day,
        "--days",
        str(days),
        "--out",
        str(out),
        *more,
    ]


def run(day, folders, *more):
    return subprocess.run(command(day, folders, *more), capture_output=True, text=True, timeout=300)


def killed(day, folders):
    """Kill the job once it has paid for its night and before the answer is stored."""
    ledger = folders[1] / "signups.sqlite"
    slow = (
        "import sys, time, runpy; from dpframe.release.kinds.series import series as s; drawn = "
        "s.measured\ndef slow(*arguments): time.sleep(60); return drawn(*arguments)\ns.measured = "
        f"slow; sys.argv = {command(day, folders)[3:]!r}\nrunpy.run_path({str(SCRIPT)!r}, "
        "run_name='__main__')"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", slow], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    patience = time.monotonic() + 120
    while time.monotonic() < patience:
        lines = dp.Ledger(ledger).budget("signups").history()
        if lines[-1].name == f"signups {day}":
            break
        time.sleep(0.05)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()


def calm(day, folders, monkeypatch, *more):
    """The script's own `main`, in this process: for nights on which nothing happens."""
    monkeypatch.setattr(sys, "argv", command(day, folders, *more)[3:])
    return MODULE.main()


def test_the_script_is_short_enough_to_read():
    assert len(SCRIPT.read_text().splitlines()) <= 60


@pytest.mark.long
def test_thirty_nights_with_a_kill_in_the_middle(folders, monkeypatch, capsys):
    days, out = folders
    assert calm(DAYS[0], folders, monkeypatch, "--limit", "0.1") == 0
    for day in DAYS[1:14]:
        assert calm(day, folders, monkeypatch) == 0
    killed(DAYS[14], folders)
    refused = run(DAYS[14], folders)
    assert refused.returncode == 1
    assert "'retry' pays again" in refused.stderr
    again = run(DAYS[14], folders, "--retry")
    assert again.returncode == 0, again.stderr
    assert "measured again, which costs ρ = " in again.stderr
    for day in DAYS[15:]:
        assert calm(day, folders, monkeypatch) == 0
    capsys.readouterr()
    assert calm(DAYS[0], folders, monkeypatch) == 0
    assert "Stored answer of" in capsys.readouterr().out
    table = pl.read_csv(out / "signups.csv")
    assert table.height == 3 * 30
    exact = sum(
        pl.read_parquet(days / f"{day}.parquet").filter(pl.col("country") == "de").height
        for day in DAYS
    )
    last = table.filter((pl.col("country") == "de") & (pl.col("period") == DAYS[-1]))
    error = last["count_units_total_error"][0] / 1.96 * 6  # of six standard deviations
    assert abs(last["count_units_total"][0] - exact) < error
    assert "Privacy statement" in (out / "signups.html").read_text()
    dp.Ledger(out / "signups.sqlite").verify()


def test_the_script_makes_no_ledger_in_another_folder(folders, monkeypatch, caplog):
    """Without --limit it opens what is there: in a folder without the ledger nothing
    is made, and nothing is spent.
    """
    assert calm(DAYS[0], folders, monkeypatch) == 1
    assert "There is no ledger" in caplog.text
    assert list(folders[1].iterdir()) == []


def test_the_script_exits_with_an_error_where_the_budget_refuses(folders):
    out = folders[1]
    budget = dp.Ledger(out / "signups.sqlite").budget("signups", rho=0.1)
    dp.protect(
        pl.DataFrame({"user_id": ["a"]}), unit="user_id", budget=budget
    ).count_units().release(rho=0.09)
    done = run(DAYS[0], folders)
    assert done.returncode == 1
    assert "Nothing was spent" in done.stderr
    assert not (out / "signups.csv").exists()
