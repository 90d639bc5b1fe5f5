"""Spends per second of one shared ledger, beside bare synced SQLite transactions, in one go.

    python benchmarks/ledger.py [--processes 32] [--spends 1000] [--postgres URL] [--capped]

Every process charges one budget with mixed sizes. A spend is one locked, synced
transaction that reads the budget, adds an entry and moves the budget on; a bare one inserts a row.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

SPENDERS = Path(__file__).parent.parent / "tests" / "budget" / "spenders.py"
TARGET = 0.2  # of the bare rate


def run(*arguments):
    done = subprocess.run([sys.executable, SPENDERS, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--spends", type=int, default=1000)
    parser.add_argument("--postgres")
    parser.add_argument("--capped", action="store_true", help="reach the cap on the way; refusals cost less")
    asked = parser.parse_args()
    number, size = asked.processes * asked.spends, (asked.processes, asked.spends)
    cap = number / 8 if asked.capped else 10.0**6
    with tempfile.TemporaryDirectory(dir=".") as folder:
        bare = number / run("raw", Path(folder) / "raw.sqlite", *size)["seconds"]
        places = [str(Path(folder) / "ledger.sqlite"), *([asked.postgres] if asked.postgres else [])]
        print(f"bare SQLite     {bare:8.0f} transactions/s, {asked.processes} processes")
        for place in places:
            said = run("spend", place, *size, cap)
            granted = said["charges"]
            rate = number / said["seconds"]
            kind = "PostgreSQL" if "://" in place else "SQLite"
            kept = Fraction(said["spent"]) <= cap
            print(f"{kind:15} {rate:8.0f} spends/s, {rate / bare:.0%} of bare (target {TARGET:.0%})")
            print(
                f"{'':15} {granted} granted, {said['refused']} refused, {len(said['errors'])} errors; cap kept: {kept}"
            )


if __name__ == "__main__":
    main()
