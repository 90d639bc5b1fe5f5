"""Nothing that a suppressed release shows depends on the numbers that it hides."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError
from inside import numbers_of

NUMBERS = [140, 90, 60, 4, 70, 3, 50, 40]  # of the groups below
LINES = [(a, b) for a in "stuv" for b in "pq"]
DAYS = [dt.date(2026, 1, 1 + day) for day in range(8)]
ROWS = pl.DataFrame(
    [
        (*LINES[group], DAYS[group], float((i + group) % 5))
        for group, number in enumerate(NUMBERS)
        for i in range(number)
    ],
    schema=["g", "h", "day", "x"],
    orient="row",
)
FRAME = dp.protect(ROWS, dp.Rows(1), budget=dp.Budget(epsilon=1e6))
KEYS = {"g": list("stuv"), "h": ["p", "q"]}
BOUNDS = {"bounds": (0, 5)}
QUESTIONS = {
    "cells": FRAME.crosstab("g", "h", keys=KEYS),
    "sums": FRAME.crosstab("g", "h", keys=KEYS, values="x", aggfunc="sum", **BOUNDS),
    "groups": FRAME.group_by("g", "h", keys=LINES).agg(
        n=dp.count(), m=dp.mean("x", **BOUNDS), s=dp.sum("x", **BOUNDS), v=dp.var("x", **BOUNDS)
    ),
    "means": FRAME.group_by("g", "h", keys=LINES).agg(m=dp.mean("x", **BOUNDS)),
    "days": FRAME.histogram("day", keys=DAYS),
}
HOW = [{"secondary": False}, {"secondary": True}, {"marker": ("<25", "c")}]
ARGUMENTS = {
    "compare": lambda group: (group,),
    "difference": lambda group: (group, group),
    "rebase": lambda group: (group,),
    "rolling": lambda group: (2,),
    "suppress": lambda group: (50,),
}
# They change all numbers, hidden ones too, as before `suppress`; or write what others give
LEFT_OUT = {"nonnegative", "round", "to_parquet", "to_excel", "to_sql"}


def twin(out, **how):
    """The same release, with other numbers in the groups that it hides, and these groups."""
    numbers = numbers_of(out)
    hidden = np.flatnonzero(numbers_of(out.suppress(25, **how)).hidden)
    by, parts = (
        np.arange(1.0, len(hidden) + 1),
        {name: part.copy() for name, part in numbers.parts.items()},
    )
    for part in parts.values():
        part[hidden] -= by
    columns = []
    for output in numbers.outputs:
        values = numbers.long[output.name].to_numpy().copy()
        values[hidden] -= by.astype(values.dtype)
        columns.append(pl.Series(output.name, values, dtype=numbers.long.schema[output.name]))
    return replace(
        out, _numbers=replace(numbers, long=numbers.long.with_columns(columns), parts=parts)
    ), hidden


def shown(release, name, arguments):
    """All texts of what a method gives, or its refusal. Bits that depend on
    the order of sums are left out.
    """
    try:
        found = getattr(release, name)
        found = found(*arguments) if callable(found) else found
        if name == "rolling":
            found = [found.sum(), found.mean()]
        made = [_texts(one) for one in (found if isinstance(found, list) else [found])]
    except DpFrameError as error:
        made = [f"{type(error).__name__}: {error}"]
    text = re.sub(r"[0-9a-f]{32,}|(alt|vis|chart)[\w-]*-[\w-]+", "", "\n".join(made))
    return re.sub(r"-?\d+\.\d{6,}(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def _texts(found):
    parts = [str(found)]
    for name in ("table", "_repr_html_", "report", "accuracy", "to_csv", "to_dict"):
        part = getattr(found, name, None)
        if part is not None and not isinstance(found, str):
            try:
                part = part() if callable(part) else part
            except DpFrameError as error:
                part = f"{type(error).__name__}: {error}"
            parts.append(part.write_json() if isinstance(part, pl.DataFrame) else str(part))
    return "\n".join(parts)


QUICK = [("cells", 50, 0), ("means", 4, 2)]
CASES = [
    (question, epsilon, how) for question in QUESTIONS for epsilon in (50, 4) for how in range(3)
]


@pytest.mark.parametrize(
    ("question", "epsilon", "how"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.long) for case in CASES if case not in QUICK)],
)
def test_outputs_are_equal_for_tables_that_differ_in_hidden_numbers_alone(question, epsilon, how):
    how = HOW[how]
    out = QUESTIONS[question].release(epsilon=epsilon)
    other, hidden = twin(out, **how)
    first, second = (one.suppress(25, **how) for one in (out, other))
    assert hidden.size
    assert np.array_equal(np.flatnonzero(numbers_of(second).hidden), hidden)
    there = next(i for i in range(8) if i not in hidden)
    group = DAYS[there] if question == "days" else LINES[there]
    names = {name for name in dir(type(first)) if not name.startswith("_")} - LEFT_OUT
    assert len(names) > 25
    for name in sorted({*names, "_repr_html_"}):
        arguments = ARGUMENTS.get(name, lambda group: ())(group)
        texts = [shown(one, name, arguments) for one in (first, second)]
        assert texts[0] == texts[1], name
        assert not texts[0].startswith("WrongCall"), name


def level_twin(out, level, places):
    """The same hierarchy, in which two nodes of the lowest level have
    other numbers with the same sum.
    """
    drawn = out._drawn
    first = int(np.flatnonzero((drawn["level"] == level).to_numpy())[0])
    values = drawn["value"].to_numpy().copy()
    step = (2.0 if values.dtype.kind == "f" else 2) * (2**20 if np.abs(values).max() > 1e6 else 1)
    values[first + places[0]] += step
    values[first + places[1]] -= step
    return replace(
        out, _drawn=drawn.with_columns(value=pl.Series(values, dtype=drawn.schema["value"]))
    )


def test_hierarchies_that_differ_in_hidden_numbers_alone_are_shown_alike():
    out = FRAME.hierarchy(["g", "h"], LINES).release(epsilon=50)
    hidden = np.flatnonzero(out.suppress(25)._hidden[2].ravel())
    pair = next([i, i + 1] for i in hidden if i % 2 == 0 and i + 1 in hidden)
    other = level_twin(out, 2, pair)
    assert other["h"].table["count"].to_list() != out["h"].table["count"].to_list()
    first, second = out.suppress(25), other.suppress(25)
    assert [code.tolist() for code in first._hidden] == [code.tolist() for code in second._hidden]
    names = (
        {name for name in dir(type(first)) if not name.startswith("_")} - LEFT_OUT - {*dir(Mapping)}
    )
    for name in sorted({*names, "_repr_html_"}):
        arguments = ARGUMENTS.get(name, lambda group: ())(None)
        assert shown(first, name, arguments) == shown(second, name, arguments), name
    of_level = {name for name in dir(type(first["h"])) if not name.startswith("_")} - LEFT_OUT
    group = LINES[next(i for i in range(8) if i not in hidden)]
    for name in sorted({*of_level, "_repr_html_"}):
        arguments = ARGUMENTS.get(name, lambda group: ())(group)
        assert shown(first["h"], name, arguments) == shown(second["h"], name, arguments), name
