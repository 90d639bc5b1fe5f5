"""A process whose threads charge while it is forked:
run by the tests, in an interpreter of its own.

python forking.py PLACE FOLDER FORKS SPENDS LIMIT  # fork, charge everywhere, kill some; print JSON

Three threads charge as three spenders all the time, so most forks come while a transaction is open,
and a lock is held. What a fork does is drawn: charge in threads of its own; fork once more; end as
a program does, which closes what it has; end at once; be killed while it charges.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

SPENDERS = ("ana", "bo", "cy")
WAYS = ("threads", "once more", "as a program", "nothing", "killed")
LONG = 240  # seconds after which a fork waits forever: the alarm ends it


def charging(budget, name, times, seen, draw):
    """Charge and store as a spender; whatever was stored is written down, each line at once."""
    from dpframe.budget import Loss
    from dpframe.errors import BudgetExceeded

    own = budget.for_spender(name)
    for _ in times:
        price = Fraction(draw.choice([1, 3, 20]), 1000)
        try:
            receipt = own.charge(
                Loss.charged(price, Fraction(0)), "unit 'id', add-remove", "count()"
            )
            own.store(receipt, b"table", {"releases": []})
            os.write(seen, f"{receipt.number} {name} {price}\n".encode())
        except BudgetExceeded:
            time.sleep(0.01)


def in_threads(budget, times, seen, errors):
    """Charge in a thread for each spender; errors are written down."""

    def work(name):
        try:
            charging(budget, name, times(), seen, random.Random())
        except BaseException as error:
            os.write(errors, f"{type(error).__name__}: {error}\n".encode())

    threads = [threading.Thread(target=work, args=(name,)) for name in SPENDERS]
    for thread in threads:
        thread.start()
    return threads


def fork(way, budget, spends, seen, errors):
    """A child that ends in one of the ways. Output: its number."""
    child = os.fork()
    if child:
        return child
    signal.alarm(LONG)
    random.seed()
    if way == "killed":
        for thread in in_threads(budget, lambda: iter(int, 1), seen, errors):
            thread.join()
    if way == "nothing":
        sys.exit(0)
    inner = (
        [fork(random.choice(WAYS[2:4]), budget, spends, seen, errors)] if way == "once more" else []
    )
    for thread in in_threads(budget, lambda: range(spends), seen, errors):
        thread.join()
    for other in inner:
        if os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]):
            os.write(errors, b"a fork of a fork failed\n")
    if way == "as a program":
        sys.exit(0)
    os._exit(0)


def main(place, folder, forks, spends, limit):
    from dpframe.budget import Ledger

    ledger = Ledger(place, witness=folder / "witness.sqlite")
    budget = ledger.budget("shared", epsilon=limit, caps={"spender": limit / 2, "day": limit})
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
    seen, errors = os.open(folder / "seen", flags), os.open(folder / "errors", flags)
    stop, draw, ends = threading.Event(), random.Random(forks), []
    threads = in_threads(budget, lambda: iter(stop.is_set, True), seen, errors)
    for turn in range(forks):
        time.sleep(draw.uniform(0, 0.05))
        way = WAYS[turn % len(WAYS)]
        child = fork(way, budget, spends, seen, errors)
        if way == "killed":
            time.sleep(draw.uniform(0.05, 0.5))
            os.kill(child, signal.SIGKILL)
        ends.append((way, child))
    statuses = [(way, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for way, child in ends]
    stop.set()
    for thread in threads:
        thread.join()
    before = None
    # a server may end the last charges of those that were killed
    while before != budget.spent.exact_epsilon:
        before = budget.spent.exact_epsilon
        time.sleep(1)
    history = budget.history()
    said = {
        "failed": [
            way for way, status in statuses if status != (-signal.SIGKILL if way == "killed" else 0)
        ],
        "errors": (folder / "errors").read_text().splitlines(),
        "killed": sum(way == "killed" for way, _ in statuses),
        "spent": str(before),
        "verified": ledger.verify()["shared"],
        "spenders": {name: str(loss.exact_epsilon) for name, loss in budget.spenders.items()},
        "history": {line.number: [line.status, line.by, repr(line.epsilon)] for line in history},
    }
    print(json.dumps(said))


if __name__ == "__main__":
    # imported beforehand, so that each child starts at once
    from dpframe.budget.ledger import sqlite_file

    assert sqlite_file
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
