"""A nightly job that is killed over and over: run by the tests, in an interpreter of its own.

python nights.py PLACE FOLDER NIGHTS KILLS  # add nights to a series, killed at random points

Each attempt is a process of its own. It kills itself by SIGKILL at a random one of the calls of
functions that it makes, so that every place in the code may be the last, in the middle of a
transaction too.
"""

import json
import logging
import os
import random
import signal
import sys
from pathlib import Path

CALLS = 130_000  # about what the first night takes
AFTER = 6_000  # about what reading, drawing and storing take


def opened(place):
    import dpframe as dp

    budget = dp.Ledger(place).budget("job", epsilon=10_000)
    return budget, budget.series(
        "signups", every="1d", horizon=60, epsilon=2.0, unit_periods=1, start="2026-01-01"
    )


def label(night):
    import datetime as dt

    return (dt.date(2026, 1, 1) + dt.timedelta(days=night)).isoformat()


def query_of(budget):
    """The question of a night, from the rows of that night alone: as many people as its number."""
    import polars as pl

    import dpframe as dp

    def query(night):
        number = int(night[5:7]) * 31 + int(night[8:10])
        return dp.protect(
            pl.DataFrame({"id": range(number)}), unit="id", budget=budget
        ).count_units()

    return query


def attempt(place, folder, nights, done, limit, *, inside):
    """Add the nights that are missing, and die at a random call:
    of all, or of those from the reading of rows on.
    """
    calls, left = 0, limit
    begun = not inside

    def counted(frame, event, _):
        nonlocal calls, left, begun
        calls += 1
        begun = begun or (event == "call" and frame.f_code.co_name == "measured")
        left -= begun
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    said = logging.FileHandler(folder / "said")
    logging.getLogger("dpframe").addHandler(said)
    logging.getLogger("dpframe").setLevel(logging.INFO)
    from dpframe.errors import ReleasePending

    budget, series = opened(place)
    query = query_of(budget)
    sys.setprofile(counted)
    for night in range(done, nights):
        before = calls
        try:
            series.add(query, label(night))
        except ReleasePending:
            with open(folder / "pending", "a") as book:
                book.write(f"{night}\n")
            series.add(query, label(night), on_pending="retry")
        with open(folder / "done", "a") as book:
            book.write(f"{night}\n")
        with open(folder / "calls", "a") as book:
            book.write(f"{calls - before}\n")
    sys.setprofile(None)


def written(path):
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def main(place, folder, nights, kills):
    draw, killed = random.Random(kills), 0
    while killed < kills or len(set(written(folder / "done"))) < nights:
        done = len(set(written(folder / "done")))
        # all are there: nights that are asked for again
        again = draw.randrange(nights) if done == nights else done
        taken = written(folder / "calls")[-1:] or [CALLS]
        inside = draw.random() < 0.3  # between the charge and the answer
        longest = AFTER if inside else 2 * taken[0]
        limit = draw.randint(1, longest) if killed < kills else sys.maxsize
        child = os.fork()
        if child == 0:
            code = 1
            try:
                attempt(place, folder, nights, again, limit, inside=inside)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            raise SystemExit("an attempt failed by itself")
    print(json.dumps({"killed": killed, "pending": len(written(folder / "pending"))}))


if __name__ == "__main__":
    # imported beforehand, and not used: a child starts at once
    from dpframe.budget.ledger import sqlite_file

    assert sqlite_file
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
