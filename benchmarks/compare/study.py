"""What every library is asked: panels, questions and limits.
Standard library only, so that it runs in any environment.

A panel is a CSV of four columns: unit (an integer), grp (listed keys), key (keys to be found in the
data) and value (an integer inside public bounds). A question is one release at ε = 1, δ = 1e-6 for
all of it.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

EPSILON, DELTA = 1.0, 1e-6
TASKS = ("count", "mean", "median", "quantile", "keys", "keyed_count")
QUANTILE = {"median": 0.5, "quantile": 0.9}
LIMITS = (
    {"max_groups": 3, "max_rows_per_group": 8},
    {"max_groups": 20, "max_rows_per_group": 5},
    {"max_rows": 24},
    {"max_rows": 100},
)
Answer = dict[str, float]
Ask = Callable[[], Answer]


@dataclass(frozen=True)
class Panel:
    """A public table with many rows per unit; see `panels.py` for where it comes from."""

    name: str
    path: Path
    bounds: tuple[int, int]
    groups: tuple[str, ...]

    def rows(self) -> list[tuple[int, str, str, int]]:
        with self.path.open(newline="") as file:
            return [
                (int(r["unit"]), r["grp"], r["key"], int(r["value"])) for r in csv.DictReader(file)
            ]

    def candidates(self) -> list[int]:
        return list(range(self.bounds[0], self.bounds[1] + 1))


@dataclass(frozen=True)
class Question:
    """One release of one panel: what is asked, and how much one unit may count."""

    panel: Panel
    task: str
    limits: dict[str, int]

    @property
    def by(self) -> str:
        return "key" if self.task in ("keys", "keyed_count") else "grp"

    @property
    def total(self) -> int:
        """Rows that one unit may count in all."""
        return (
            self.limits.get("max_rows")
            or self.limits["max_groups"] * self.limits["max_rows_per_group"]
        )


def panels(folder: Path) -> list[Panel]:
    facts = json.loads((folder / "panels.json").read_text())
    return [
        Panel(f["name"], folder / f"{f['name']}.csv", tuple(f["bounds"]), tuple(f["groups"]))
        for f in facts
    ]


def questions(folder: Path, only: set[str]) -> Iterator[Question]:
    """Every question, panel by panel.
    Keys alone are asked with a limit on groups, which is all that matters there.
    """
    tasks = [task for task in TASKS if task in only] or TASKS
    for panel in panels(folder):
        if only - set(TASKS) and panel.name not in only:
            continue
        for task in tasks:
            for limits in LIMITS:
                if task in ("keys", "keyed_count") and "max_groups" not in limits:
                    continue
                yield Question(panel, task, limits)


def one_row_each(question: Question) -> int:
    """Rows of a unit in a group: one where only the keys are asked for, for
    libraries that find keys by their rows.
    """
    return 1 if question.task == "keys" else question.limits["max_rows_per_group"]


def truth(panel: Panel, task: str) -> Answer:
    """The raw answer, of all rows of all units, without any limit."""
    values: dict[str, list[int]] = defaultdict(list)
    for _, group, key, value in panel.rows():
        values[key if task in ("keys", "keyed_count") else group].append(value)
    if task in ("count", "keys", "keyed_count"):
        return {group: len(column) for group, column in values.items()}
    if task == "mean":
        return {group: sum(column) / len(column) for group, column in values.items()}
    at = QUANTILE[task]
    return {
        g: sorted(column)[max(math.ceil(at * len(column)) - 1, 0)] for g, column in values.items()
    }


def gaussian_rho() -> float:
    """The largest ρ whose zero-concentrated privacy implies (ε, δ), for the
    libraries that pay Gaussian noise in ρ.

    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, proposition 12
    """

    def delta(rho: float) -> float:
        logs = (
            (a - 1) * (a * rho - EPSILON) - math.log(a - 1) + a * math.log1p(-1 / a)
            for a in (1 + 10 ** (i / 200) for i in range(-200, 600))
        )
        return math.exp(min(logs))

    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) <= DELTA else (low, middle)
    return low


def run(library: str, ask: Callable[[Question], Iterator[tuple[str, Ask]]]) -> None:
    """Ask every question of a library and write one JSON line for each way of asking it.

    Command line: FOLDER REPETITIONS [PANEL or TASK ...]
    """
    folder, repetitions, only = Path(sys.argv[1]), int(sys.argv[2]), set(sys.argv[3:])
    with (folder / f"{library}.jsonl").open("a") as file:
        for question in questions(folder, only):
            head = {
                "library": library,
                "panel": question.panel.name,
                "task": question.task,
                "limits": question.limits,
            }
            try:
                for variant, release in ask(question):
                    line = head | {"variant": variant} | repeated(release, repetitions)
                    print(json.dumps(line), file=file, flush=True)
                    print(
                        library,
                        question.panel.name,
                        question.task,
                        question.limits,
                        variant,
                        line.get("error", ""),
                    )
            except Exception as error:
                print(
                    json.dumps(head | {"variant": "", "error": str(error)[:300]}),
                    file=file,
                    flush=True,
                )
                print(
                    library,
                    question.panel.name,
                    question.task,
                    question.limits,
                    "ERROR",
                    str(error)[:300],
                )


def repeated(release: Ask, repetitions: int) -> dict[str, object]:
    """Answers of fresh releases, and the seconds that one takes."""
    start = time.perf_counter()
    try:
        answers = [release() for _ in range(repetitions)]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    return {"answers": answers, "seconds": (time.perf_counter() - start) / repetitions}
