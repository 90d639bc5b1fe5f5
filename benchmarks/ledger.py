"""What a ledger costs: spends per second, the time that it adds to a release, the
size of entries, and verification.

    python benchmarks/ledger.py [--processes 32] [--spends 1000] [--postgres URL] [--capped]
    python benchmarks/ledger.py --entries 1000000 [--postgres URL]  # what so many entries cost

Spends: every process charges one budget with mixed sizes. A spend is one locked, synced transaction
        that reads the
budget, adds an entry and moves the budget on. Beside it stand bare synced SQLite transactions, each
of which inserts a row. Releases: a grouped count and mean, in turn from a ledger and from a budget
in memory, in processor time.
"""

import argparse
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import sqlalchemy as sa

import dpframe as dp
from dpframe.budget import Loss
from dpframe.budget.entries import canonical, chained, texts_of

SPENDERS = Path(__file__).parent.parent / "tests" / "budget" / "spenders.py"
TARGET = 0.2  # of the bare rate
# milliseconds a release, characters an entry, entries a second
ADDED, SIZE, VERIFIED = 3.0, 1500, 20_000
RELEASES = 1000


def run(*arguments):
    done = subprocess.run(
        [sys.executable, SPENDERS, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def releases(path):
    """Print what a ledger adds to a release, how long its entries are,
    and how fast they are verified.
    """
    warnings.simplefilter("ignore", dp.errors.DpFrameWarning)  # of a budget that is as good as none
    random, number = np.random.default_rng(0), 10_000
    columns = {"id": random.integers(0, 2000, number), "g": random.integers(0, 5, number)}
    rows, ledger = pl.DataFrame({**columns, "x": random.uniform(0, 100, number)}), dp.Ledger(path)
    budgets = {"memory": dp.Budget(epsilon=1e6), "ledger": ledger.budget("study", epsilon=1e6)}
    queries = {
        place: dp.protect(rows, unit="id", budget=budget)
        .group_by("g", keys=range(5), max_groups=3, max_rows_per_group=2)
        .agg(n=dp.count(), m=dp.mean("x", bounds=(0, 100)))
        for place, budget in budgets.items()
    }
    times = {place: [] for place in queries}
    for _ in range(RELEASES):
        for place, query in queries.items():
            start = time.process_time()
            query.release(epsilon=0.1)
            times[place].append(1000 * (time.process_time() - start))
    added = statistics.median(times["ledger"]) - statistics.median(times["memory"])
    print(f"added to a release   {added:8.2f} ms of processor time (limit {ADDED:.0f})")
    sizes = [len(json.dumps({**entry.body})) for entry in ledger.entries("study")]
    print(
        f"an entry             {statistics.mean(sizes):8.0f} characters on average (limit {SIZE})"
    )
    start = time.process_time()
    verified = ledger.verify()["study"]
    print(
        f"verification         {verified / (time.process_time() - start):8.0f} entries/s (at least "
        f"{VERIFIED})"
    )


ROW = (
    "INSERT INTO dpframe_entries (budget, number, kind, at, body, hash, name, about) "
    "VALUES ('study', ?, ?, ?, ?, ?, ?, ?)"
)
CYCLE = 11  # entries: ten charges, each fifth with a name, and the answer of the last


def filled(path, entries):
    """A ledger of about so many entries: real ones, which are then repeated row by
    row, with other names and hashes.

    A million real charges would take a quarter of an hour.
    """
    budget = dp.Ledger(path).budget("study", epsilon=1e6)
    book, loss = budget._book, Loss.charged(Fraction(1, 100), Fraction(0))
    for place in range(10):
        name = {"name": f"night {place}", "plan": {"columns": ["x"]}} if place % 5 == 0 else {}
        receipt = budget.charge(loss, "unit 'id', add-remove", "mean('x', bounds=(0, 100))", **name)
    budget.store(receipt, b"a table" * 30, {"releases": []})
    real, number = book.entries(), CYCLE + 1
    with book._store.transaction(write=True) as connection:
        table = connection.exec_driver_sql("SELECT data FROM dpframe_data").scalar()
        head = real[-1].hash
        while number < entries:
            rows, tables = [], []
            for entry in real[1:]:
                number += 1
                body = {**entry.body}
                if entry.name is not None:
                    body["name"] = f"night {number}"
                if entry.about is not None:
                    body["about"] = number - 1
                    tables.append((number - 1, table))
                text = canonical(body)
                head = chained(head, number, entry.kind, entry.at, text)
                rows.append(
                    (number, entry.kind, entry.at, text, head, body.get("name"), body.get("about"))
                )
            connection.connection.executemany(ROW, rows)
            connection.connection.executemany(
                "INSERT INTO dpframe_data VALUES ('study', ?, ?)", tables
            )
        spent = canonical(texts_of(Loss.charged(Fraction((number - 1) // CYCLE, 10), Fraction(0))))
        state = "UPDATE dpframe_budgets SET number = ?, head = ?, at = ?, spent = ?"
        connection.exec_driver_sql(state, (number, head, real[-1].at, spent))


# What is asked of a large ledger; each in a process of its own, so that the most memory is its own
# too.
ASKED = {
    "open": "budget = ledger.budget('study')",
    "charge": "budget = ledger.budget('study'); start()\nfor _ in range(20): budget.charge(loss, "
    "unit, 'count()')",
    "charge by a name": (
        "budget = ledger.budget('study'); start()\n"
        "for i in range(20): budget.charge(loss, unit, 'count()', name=f'{i}', plan={})"
    ),
    "history": "budget = ledger.budget('study'); start(); budget.history()",
    "the answer of a name": "budget = ledger.budget('study'); start(); budget.kept('night 5')",
    "a share of an allowance": (
        "share = ledger.budget('study').allocate(name='bo', epsilon=1); start()\n"
        "for _ in range(20): share.charge(loss, unit, 'count()')"
    ),
    "forecast": "budget = ledger.budget('study'); start(); budget.forecast()",
    "export": "ledger.export('jsonl')",
    "export of what is new": (
        "budget = ledger.budget('study'); since = dt.datetime.now(dt.UTC)\n"
        "for _ in range(20): budget.charge(loss, unit, 'count()')\n"
        "start(); ledger.export('jsonl', since=since)"
    ),
    "backup": "ledger.backup(sys.argv[2] + '/backup')",
    "verify": "ledger.verify()",
    "verify, a row edited": "damaged(ledger.verify)",
    "migrate": "ledger.close(); dp.Ledger.migrate(sys.argv[1], sys.argv[2] + '/moved')",
}
CODE = """
import datetime as dt, json, resource, sys, time
from fractions import Fraction
import dpframe as dp
from dpframe.budget import Loss
from dpframe.errors import LedgerDamaged
loss, unit = Loss.charged(Fraction(1, 100), Fraction(0)), "unit 'id', add-remove"
# a server has processors of its own
clock = time.perf_counter if "://" in sys.argv[1] else time.process_time
began = 0.0
def start():
    global began
    began = clock()
def damaged(verify):
    try:
        verify()
    except LedgerDamaged:
        return
    raise SystemExit("an edited row was not noticed")
start()
ledger = dp.Ledger(sys.argv[1])
{}
print(json.dumps([clock() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def edited(path):
    """Change the price in an entry in the middle, as somebody with an editor would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        middle = connection.execute("SELECT max(number) / 2 FROM dpframe_entries").fetchone()[0]
        change = (
            "UPDATE dpframe_entries SET body = replace(body, '1/100', '1/999') WHERE number IN "
            "(?, ?)"
        )
        connection.execute(change, (int(middle), int(middle) + 1))


def growth(entries, server):
    """Print seconds and most memory of what is asked of ledgers of three sizes:
    of the processor, or with a server.
    """
    found = {}
    for size in (entries // 100, entries // 10, entries):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            place = str(Path(folder) / "study.sqlite")
            filled(place, size)
            if server:
                place, _ = server, dp.Ledger.migrate(place, server)
            for name, code in ASKED.items():
                if "edited" in name and server:
                    continue
                if "edited" in name:
                    shutil.copy(place, f"{place}.sound")
                    edited(place)
                command = [sys.executable, "-c", CODE.format(code), place, folder]
                done = subprocess.run(command, check=True, capture_output=True)
                found.setdefault(name, []).append(json.loads(done.stdout))
                if "edited" in name:
                    shutil.copy(f"{place}.sound", place)
        if server:
            with sa.create_engine(server).begin() as connection:
                connection.exec_driver_sql(
                    "DROP TABLE dpframe_ledger, dpframe_budgets, dpframe_entries, dpframe_data"
                )
    print(f"{'':24}" + "".join(f"{size:>26,}" for size in (entries // 100, entries // 10, entries)))
    for name, values in found.items():
        print(
            f"{name:24}"
            + "".join(f"{seconds:14.3f} s {memory:6.0f} MiB" for seconds, memory in values)
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--spends", type=int, default=1000)
    parser.add_argument("--postgres")
    parser.add_argument(
        "--capped", action="store_true", help="reach the cap on the way; refusals cost less"
    )
    parser.add_argument("--entries", type=int)
    asked = parser.parse_args()
    if asked.entries:
        warnings.simplefilter("ignore", dp.errors.DpFrameWarning)
        growth(asked.entries, asked.postgres)
        return
    number, size = asked.processes * asked.spends, (asked.processes, asked.spends)
    cap = number / 8 if asked.capped else 10.0**6
    with tempfile.TemporaryDirectory(dir=".") as folder:
        releases(Path(folder) / "study.sqlite")
        bare = number / run("raw", Path(folder) / "raw.sqlite", *size)["seconds"]
        places = [
            str(Path(folder) / "ledger.sqlite"),
            *([asked.postgres] if asked.postgres else []),
        ]
        print(f"bare SQLite     {bare:8.0f} transactions/s, {asked.processes} processes")
        for place in places:
            said = run("spend", place, *size, cap)
            granted = said["charges"]
            rate = number / said["seconds"]
            kind = "PostgreSQL" if "://" in place else "SQLite"
            kept = Fraction(said["spent"]) <= cap
            print(
                f"{kind:15} {rate:8.0f} spends/s, {rate / bare:.0%} of bare (target {TARGET:.0%})"
            )
            print(
                f"{'':15} {granted} granted, {said['refused']} refused, {len(said['errors'])} "
                f"errors; cap kept: {kept}"
            )


if __name__ == "__main__":
    main()
