"""Processes that charge one budget at once: run by the tests and the benchmark,
each in an interpreter of its own.

python spenders.py spend PLACE PROCESSES SPENDS # fork, charge, and print what was granted as JSON
python spenders.py capped PLACE PROCESSES SPENDS # the same under caps of a spender and a day python
spenders.py among PLACE PROCESSES SPENDS # the same, and every second one is killed python
spenders.py squares PLACE PROCESSES SPENDS FIT # the same, counting μ², in which so many fit python
spenders.py shares PLACE PROCESSES SPENDS # three spenders with parts, who move parts python
spenders.py raw PATH PROCESSES SPENDS # as many bare synced SQLite transactions python spenders.py
kills PATH SEEN KILLS # fork, charge, store, write down what was seen; kill; check python
spenders.py copies PATH SEEN KILLS # the same, and copy the file and journal after each kill python
spenders.py backups PATH SEEN KILLS # the same, and take a backup before each kill
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from fractions import Fraction

CAP = Fraction(1000)


def sizes(worker, spends):
    """Prices from 1e-6 to 1, mostly small, so that the cap is reached on the way."""
    draw = random.Random(worker)
    return [
        Fraction(draw.choice([1, 1, 7, 1000, 300_000, 1_000_000]), 10**6) for _ in range(spends)
    ]


def shared(place):
    """A ledger whose processes wait for each other, however busy the machine is."""
    from dpframe.budget import Ledger

    return Ledger(place, timeout=900)


def in_parallel(processes, work):
    """Fork, run `work(worker)` in each child, and gather the JSON that each gives back."""
    pipes = []
    for worker in range(processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                said = work(worker)
            except BaseException as error:
                said = {"error": f"{type(error).__name__}: {error}"}
            with os.fdopen(writing, "w") as pipe:
                pipe.write(json.dumps(said))
            os._exit(0)
        os.close(writing)
        pipes.append((child, reading))
    answers = []
    for child, reading in pipes:
        with os.fdopen(reading) as pipe:
            answers.append(json.loads(pipe.read()))
        os.waitpid(child, 0)
    return answers


def spend(place, processes, spends, cap):
    from dpframe.budget import Loss
    from dpframe.errors import BudgetExceeded

    ledger = shared(place)
    budget = ledger.budget("shared", epsilon=cap)
    _ = budget.spent  # a connection that the children inherit, and must not use

    def work(worker):
        granted, refused = Fraction(0), 0
        for i, price in enumerate(sizes(worker, spends)):
            try:
                budget.charge(
                    Loss.charged(price, Fraction(0)), "unit 'id', add-remove", f"{worker}.{i}"
                )
                granted += price
            except BudgetExceeded:
                refused += 1
        return {"granted": str(granted), "refused": refused}

    start = time.perf_counter()
    answers = in_parallel(processes, work)
    seconds = time.perf_counter() - start
    errors = [a["error"] for a in answers if "error" in a]
    granted = sum((Fraction(a["granted"]) for a in answers if "granted" in a), Fraction(0))
    refused = sum(a.get("refused", 0) for a in answers)
    said = {"errors": errors, "granted": str(granted), "refused": refused, "seconds": seconds}
    said |= {"spent": str(budget.spent.exact_epsilon), "charges": len(budget.history())}
    return said | {"entries": ledger.verify()["shared"]}


def capped(place, processes, spends):
    """Every second process spends as one of two spenders;
    what was granted, and what the caps say of it.

    Before that, as many others are killed while they spend.
    """
    from dpframe.budget import Loss
    from dpframe.errors import CapExceeded

    ledger = shared(place)
    budget = ledger.budget("shared", epsilon=100, caps={"spender": 0.5, "day": 0.9, "month": 2})
    children, killing = [], budget.for_spender("k")
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            while True:
                killing.charge(
                    Loss.charged(Fraction(1, 10**6), Fraction(0)), "unit 'id', add-remove", "?"
                )
        children.append(child)
    for child in children:
        time.sleep(random.uniform(0.01, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    killed = None
    # a server may end the last charges of those that were killed
    while killed != budget.spent.exact_epsilon:
        killed = budget.spent.exact_epsilon
        time.sleep(1)

    def work(worker):
        granted, refused, own = Fraction(0), 0, budget.for_spender(f"{worker % 2}")
        for i in range(spends):
            try:
                price = Fraction(worker % 3 + 1, 100)
                own.charge(Loss.charged(price, Fraction(0)), "unit 'id', add-remove", f"{i}")
                granted += price
            except CapExceeded:
                refused += 1
        return {"granted": str(granted), "refused": refused}

    answers = in_parallel(processes, work)
    now = {(cap.cap, cap.spender): str(cap.spent.exact_epsilon) for cap in budget.caps}
    ledger.verify()
    return {
        "errors": [a["error"] for a in answers if "error" in a],
        "granted": str(sum(Fraction(a.get("granted", 0)) for a in answers)),
        "refused": sum(a.get("refused", 0) for a in answers),
        "killed": str(killed),
        "month": now["month", None],
        "spent": str(budget.spent.exact_epsilon),
        "spenders": {spender: spent for (cap, spender), spent in now.items() if cap == "spender"},
    }


def among(place, processes, spends):
    """Under caps of two spenders and a day, processes that spend;
    every second one goes on until it is killed.
    """
    from dpframe.budget import Loss
    from dpframe.errors import CapExceeded

    ledger, draw = shared(place), random.Random(processes)
    budget = ledger.budget("shared", epsilon=100, caps={"spender": 0.1, "day": 0.15, "month": 2})

    def spending(worker, times):
        granted, refused, own = Fraction(0), 0, budget.for_spender(f"{worker % 4 // 2}")
        for _ in times:
            try:
                price = Fraction(worker % 3 + 1, 1000)
                own.charge(Loss.charged(price, Fraction(0)), "unit 'id', add-remove", f"{worker}")
                granted += price
            except CapExceeded:
                refused += 1
        return {"granted": str(granted), "refused": refused}

    victims = []
    for worker in range(1, processes, 2):
        child = os.fork()
        if child == 0:
            spending(worker, iter(int, 1))
        victims.append(child)
    killer = os.fork()
    if killer == 0:
        for victim in draw.sample(victims, len(victims)):
            time.sleep(draw.uniform(0.01, 0.2))
            os.kill(victim, signal.SIGKILL)
        os._exit(0)
    answers = in_parallel(processes // 2, lambda worker: spending(2 * worker, range(spends)))
    for child in (killer, *victims):
        os.waitpid(child, 0)
    before = None
    # a server may end the last charges of those that were killed
    while before != budget.spent.exact_epsilon:
        before = budget.spent.exact_epsilon
        time.sleep(1)
    now = {(cap.cap, cap.spender): str(cap.spent.exact_epsilon) for cap in budget.caps}
    ledger.verify()
    return {
        "errors": [a["error"] for a in answers if "error" in a],
        "kills": len(victims),
        "granted": str(sum(Fraction(a.get("granted", 0)) for a in answers)),
        "refused": sum(a.get("refused", 0) for a in answers),
        "month": now["month", None],
        "spent": str(budget.spent.exact_epsilon),
        "spenders": {spender: spent for (cap, spender), spent in now.items() if cap == "spender"},
    }


def squares(place, processes, spends, fit):
    from dpframe.budget import Loss, Normal
    from dpframe.errors import BudgetExceeded
    from dpframe.theory.formulas.loss import gdp_within

    ledger, each = shared(place), gdp_within(Fraction(1), Fraction(3, 4 * 10**6)) / fit
    budget = ledger.budget("shared", epsilon=1, delta=1e-6)
    price = Loss.charged_rho(each / 2, Fraction(0))

    def work(worker):
        granted = 0
        for _ in range(spends):
            try:
                budget.charge(
                    price,
                    "unit 'id', add-remove",
                    f"{worker}",
                    normal=Normal(each * (1 - Fraction(1, 10**9))),
                )
                granted += 1
            except BudgetExceeded:
                pass
        return {"granted": granted}

    answers = in_parallel(processes, work)
    errors = [a["error"] for a in answers if "error" in a]
    granted = sum(a.get("granted", 0) for a in answers)
    return {
        "errors": errors,
        "granted": granted,
        "entries": ledger.verify()["shared"],
        "more": budget.standing.more,
    }


def raw(path, processes, spends):
    """What a bare insert per synced transaction takes, with the journal that a ledger has."""
    first = sqlite3.connect(path, isolation_level=None)
    first.execute("CREATE TABLE raw (a INTEGER PRIMARY KEY, b TEXT)")
    first.close()

    def work(worker):
        connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        connection.execute("PRAGMA synchronous = EXTRA")
        for _ in range(spends):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO raw (b) VALUES ('x')")
            connection.execute("COMMIT")
        return {}

    start = time.perf_counter()
    answers = in_parallel(processes, work)
    return {
        "errors": [a["error"] for a in answers if "error" in a],
        "seconds": time.perf_counter() - start,
    }


def shares(place, processes, spends):
    """Three spenders with a part of the budget each, who pay from it in many
    processes and move parts to each other.
    """
    from dpframe.budget import Loss
    from dpframe.errors import BudgetExceeded

    ledger, names = shared(place), ("ana", "bo", "cy")
    budget = ledger.budget("shared", epsilon=4, caps={"spender": 2})
    parts = {name: budget.for_spender(name).allocate(name=name, epsilon=1) for name in names}

    def work(worker):
        draw, own, granted, moved = random.Random(worker), names[worker % 3], Fraction(0), 0
        for _ in range(spends):
            price = Fraction(draw.choice([1, 3, 20]), 1000)
            try:
                if draw.random() < 0.3:
                    parts[own].transfer(
                        draw.choice([name for name in names if name != own]), epsilon=price
                    )
                    moved += 1
                else:
                    parts[own].charge(
                        Loss.charged(price, Fraction(0)), "unit 'id', add-remove", f"{worker}"
                    )
                    granted += price
            except BudgetExceeded:  # also for the cap of whoever receives
                pass
        return {"granted": str(granted), "moved": moved}

    answers = in_parallel(processes, work)
    limits = sum(part.limit.exact_epsilon for part in parts.values())
    ledger.verify()
    for part in parts.values():
        part.close()
    ledger.verify()
    return {
        "errors": [a["error"] for a in answers if "error" in a],
        "granted": str(sum(Fraction(a.get("granted", 0)) for a in answers)),
        "moved": sum(a.get("moved", 0) for a in answers),
        "limits": str(limits),
        "spent": str(budget.spent.exact_epsilon),
        "spenders": {name: str(loss.exact_epsilon) for name, loss in budget.spenders.items()},
        "parts": {name: str(part.spent.exact_epsilon) for name, part in parts.items()},
    }


def until_killed(place, seen, pause=0.0):
    """Charge and store without end; what a user would have seen is written down,
    and synced, after it was stored.
    """
    from dpframe.budget import Loss

    budget = shared(place).budget("killed", epsilon=10**6, caps={"month": 10**6})
    with open(seen, "a") as book:
        while True:
            receipt = budget.charge(
                Loss.charged(Fraction(1, 1000), Fraction(0)), "unit 'id', add-remove", "count()"
            )
            budget.store(receipt, os.urandom(2000), {"releases": []})
            book.write(f"{receipt.number}\n")
            book.flush()
            os.fsync(book.fileno())
            time.sleep(random.uniform(0, pause))


def written(seen):
    """How many lines there are in a file, which may not be there yet."""
    try:
        with open(seen) as book:
            return sum(1 for _ in book)
    except FileNotFoundError:
        return 0


def integrity(path):
    """What SQLite says of its file, if it has been made."""
    if not os.path.exists(path):
        return "ok"
    connection = sqlite3.connect(path, timeout=60)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def kills(path, seen, number, copies=None, meanwhile=None, pause=0.0):
    """Kill a process that charges and stores, over and over; the file must be sound after each.

    As often as was asked, and until as many charges were seen. Where a process got nowhere the next
    one has more time: a slow machine only takes longer. A server looks after its own files.
    """
    draw, reports, patience, before = random.Random(number), [], 1.0, 0
    while len(reports) < number or before <= number:
        child = os.fork()
        if child == 0:
            until_killed(path, seen, pause)
        time.sleep(draw.uniform(0.005, 0.15) * patience)
        if meanwhile is not None:
            meanwhile(len(reports), written(seen))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = written(seen)
        if copies is not None:
            copies(len(reports), now)
        patience, before = (max(1.0, patience * 0.7) if now > before else patience * 1.5), now
        reports.append("ok" if "://" in path else integrity(path))
    return {"integrity": sorted(set(reports)), "kills": len(reports)}


def copying(path):
    """A function that copies a ledger as a kill left it, beside the number of
    charges that were seen by then.
    """

    def copy(number, seen):
        for part in (path, f"{path}-journal"):
            if os.path.exists(part):
                shutil.copy(part, f"{path}.{number}.{seen}.copy{part.removeprefix(path)}")

    return copy


def backing_up(path, folder, every):
    """A function that takes a backup of a ledger, named after the number of
    charges that were seen by then.

    Input:  every: before one kill of so many; a process charges on while the backup is taken
    """
    from dpframe.budget import Ledger

    def back_up(number, seen):
        if number % every == 0 and ("://" in path or os.path.exists(path)):
            ledger = Ledger(path)
            ledger.backup(f"{folder}/{number}.{seen}.backup")
            ledger.close()

    return back_up


if __name__ == "__main__":
    verb, place, *rest = sys.argv[1:]
    if verb == "spend":
        print(json.dumps(spend(place, int(rest[0]), int(rest[1]), float(rest[2]))))
    elif verb == "capped":
        print(json.dumps(capped(place, int(rest[0]), int(rest[1]))))
    elif verb == "among":
        print(json.dumps(among(place, int(rest[0]), int(rest[1]))))
    elif verb == "squares":
        print(json.dumps(squares(place, *map(int, rest))))
    elif verb == "shares":
        print(json.dumps(shares(place, *map(int, rest))))
    elif verb == "raw":
        print(json.dumps(raw(place, int(rest[0]), int(rest[1]))))
    else:
        from dpframe.budget.ledger import sqlite_file

        assert sqlite_file  # imported beforehand, so that each child starts at once
        copies = copying(place) if verb == "copies" else None
        number, beside = int(rest[1]), verb == "backups"
        meanwhile = (
            backing_up(place, os.path.dirname(rest[0]), 1 if number < 20 else 4) if beside else None
        )
        print(json.dumps(kills(place, rest[0], number, copies, meanwhile, 0.03 if beside else 0.0)))
