"""Several processes that add nights to one series at the same time:
run by the tests, in an interpreter of its own.

python machines.py PLACE FOLDER SAID KILLS  # until each night is there, after so many kills

SAID are the arguments of the series. Each adds nights in an order of its own, late, twice, beyond
the horizon, under labels that are no night, and with more rows of a person than the series may have
been paid for. One after the other is killed by SIGKILL, and another begins. A line of
FOLDER/attempts is one attempt: the night, what came back, and the certificate of an answer.
"""

import datetime as dt
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

FIRST = dt.date(2026, 1, 1)
HORIZON = 12
PEOPLE = 40
HOSTILE = (
    "9999-12-31", "0001-01-01", "2025-12-31", "2026-02-30", "2026-13-01", "2026-01-01T25:00",
    "2026-01-02 00:00:01",
    "", " ", "2026", "٢٠٢٦-٠١-٠٢", "2026-01-02\x00", "'; DROP TABLE dpframe_entries; --",
    "infinity", "-4713-01-01",
    None, True, 0, -1, 2.5, float("nan"), float("inf"), 10**30, b"2026-01-02",
    dt.date.max, dt.date.min,
    dt.datetime.max, dt.datetime(2026, 1, 2, 0, 0, 0, 1), dt.time(0),
    dt.timedelta(1), ["2026-01-02"], {},
)  # fmt: skip


def day(night):
    return FIRST + dt.timedelta(days=night)


def opened(place, **said):
    import dpframe as dp

    budget = dp.Ledger(place).budget("job", epsilon=10_000, delta=0.1, accountant="basic")
    series = budget.series("s", every="1d", horizon=HORIZON, start=FIRST, on="day", **said)
    return budget, series


def rows():
    """Each of the people has five rows in each night."""
    import polars as pl

    people, nights = [*range(PEOPLE)] * 5, range(HORIZON)
    return pl.DataFrame(
        {"id": people * HORIZON, "day": [day(night) for night in nights for _ in people]}
    )


def attempt(place, seed, folder, said):
    import dpframe as dp
    from dpframe import errors

    draw = random.Random(seed)
    budget, series = opened(place, **said)
    frame = dp.protect(rows(), unit="id", budget=budget)
    while not (folder / "stop").exists():
        most, night = draw.choice([1, 1, 1, 5]), draw.randrange(HORIZON + 2)
        label = draw.choice(
            [day(night), day(night).isoformat(), dt.datetime.combine(day(night), dt.time())]
        )
        if draw.random() < 0.2:
            night, label = None, draw.choice(HOSTILE)
        about = {"night": night, "label": repr(label), "most": most, "process": seed}
        try:
            pending = draw.choice(["refuse", "refuse", "retry"])
            made = series.add(
                frame.bound(max_rows=most).count(), label, on_pending=pending
            ).certificate()
            about |= {"said": "answer", "certificate": made}
        except errors.DpFrameError as error:
            about |= {"said": type(error).__name__, "words": str(error)}
        except Exception as error:
            about |= {"said": f"untyped {type(error).__name__}", "words": str(error)}
        with (folder / "attempts").open("a") as book:
            book.write(json.dumps(about) + "\n")


def started(place, seed, folder, said):
    """A process that makes attempts."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            attempt(place, seed, folder, said)
            code = 0
        finally:
            os._exit(code)
    return child


def attempts(folder):
    path = folder / "attempts"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(place, folder, said, kills):
    draw, killed, seeds = random.Random(kills), 0, 3
    running = [started(place, seed, folder, said) for seed in range(seeds)]
    until = 0
    while (
        killed < kills
        or len({one["night"] for one in attempts(folder) if one["said"] == "answer"}) < HORIZON
    ):
        time.sleep(draw.uniform(0.01, 0.2))
        if len(attempts(folder)) >= until:  # the one that is killed next may be anywhere
            chosen = draw.randrange(len(running))
            os.kill(running[chosen], signal.SIGKILL)
            os.waitpid(running[chosen], 0)
            running[chosen] = started(place, seeds, folder, said)
            killed, seeds, until = (
                killed + 1,
                seeds + 1,
                len(attempts(folder)) + draw.randint(3, 12),
            )
    (folder / "stop").touch()
    for child in running:
        if os.waitpid(child, 0)[1]:
            raise SystemExit("an attempt failed by itself")


if __name__ == "__main__":
    # imported beforehand, and not used: a child starts at once
    from dpframe.budget.ledger import sqlite_file

    assert sqlite_file
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4]))
