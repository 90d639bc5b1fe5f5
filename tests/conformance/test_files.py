"""Hostile cells in Parquet files of several writers, on every engine that scans files.

What a file tells of its cells must not change an answer: see `files`.
"""

from __future__ import annotations

import math

import narwhals as nw
import numpy as np
import pytest
from cells import FAMILIES, Cells, singles
from engines import polars
from expressions import of_one, on_one
from files import LONG_SCANNERS, SCANNERS, WRITERS
from suite import TALLY, check, refused, wanted
from test_groups import Asked, hold_keys, hold_units, in_calendar
from test_operations import some

import dpframe as dp
from dpframe import engine as asked
from dpframe.errors import DpFrameError
from inside import question_of

# Dask writes a warning of pandas when it reads parts of a file.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The inplace keyword in DataFrame.reset_index:Warning"
)

NAN, INF = math.nan, math.inf
FLOATS = {  # cells of one file, of which statistics say less or other things
    "between": (1.0, NAN, 2.0),
    "one number": (1.0, NAN, 1.0),
    "alone": (NAN, NAN),
    "beside null": (None, NAN, 1.0),
    "zeros": (0.0, -0.0, NAN),
    "negative zero": (-0.0, -0.0, 1.0),
    "infinite": (INF, NAN, -INF),
    "below": (-3.0, NAN, -2.0, -INF),
    "parts": (1.0, 2.0, 1.0, 2.0, NAN, NAN, NAN, NAN, None, None, None, None, 5.0, 7.0, NAN, 6.0),
}
LONG = "x" * 100
TEXTS = {
    "long": (
        LONG,
        LONG + "a",
        LONG + "b",
        LONG + "\U0010ffff" * 50,
        LONG + "\U0010ffff" * 51,
        LONG + "é" * 99,
        None,
    ),
    "ends": ("", "\x00", "\x7f", "\u0080", "\ud7ff", "\ue000", "\U0010ffff"),
    "one text": ("a", "a", "a", "a", "A"),
}


def cases(*often):
    """Scanners, each with two of six writers, as parameters.
    The quick tier has one for each scanner in `often`.
    """
    made = []
    for i, (name, of) in enumerate({**SCANNERS, **LONG_SCANNERS}.items()):
        for j, writer in enumerate(WRITERS):
            if (i + j) % 3:
                continue
            engine = of(writer)
            marks = [pytest.mark.xdist_group(engine.needs)] if engine.needs else []
            marks += [] if name in often and (i + j) % len(WRITERS) == 0 else [pytest.mark.long]
            made.append(pytest.param(engine, id=engine.name, marks=marks))
    return made


def floats(dtype):
    name = f"a_{str(dtype).lower()}"
    return {case: Cells(name, dtype, cells) for case, cells in FLOATS.items()}


def truths(exprs, frame):
    """The expressions that are true or false."""
    made = []
    for expr in exprs:
        try:
            frame.filter(expr)
        except DpFrameError:
            continue
        made.append(expr)
    return made


def hold_filters(engine, table, exprs):
    """Each filter keeps the rows for which `reference` says so.
    A filter can be handed to the reader of a file.
    """
    brought = engine.bring(table)
    frame, failures = dp.protect(brought.native, unit=dp.Rows(1)), []
    for expr in truths(exprs, frame):
        question = question_of(frame.filter(expr).agg(n=dp.count()))
        try:
            asked.validate(question)
        except DpFrameError as error:
            failures += refused(engine.name, "filter", error)
            continue
        kept = np.asarray(asked.totals(question, 1).values[0]).tolist()
        right = [sum(value is True for value in wanted(expr, brought.cells, frame))]
        failures += [f"filter({expr}): {kept}, not {right}"] if kept != right else []
        TALLY.add(engine.name, {"filter"}, brought.height, 1)
    assert not failures, f"on {engine.name}\n" + "\n".join(failures[:30])


def guesses(x):
    """Expressions of a float that are something else for a number, for NaN, and for
    an engine that knows of no NaN.
    """
    return [
        *(
            x > 5,
            x <= 2,
            ~(x < 2),
            x == 1,
            x.is_in([1, 2]),
            x.is_null(),
            x * 2 > 3,
            x.clip(0, 5) >= 5,
        ),
        *(dp.when(x > 5).then(1).otherwise(0) == 1, x.cast("int64") >= 2),
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", cases(*SCANNERS))
@pytest.mark.parametrize(
    "dtype", [nw.Float64(), pytest.param(nw.Float32(), marks=pytest.mark.long)], ids=str
)
def test_floats_that_statistics_leave_out(engine, dtype):
    for case in ("between", "one number", "parts"):
        cells = floats(dtype)[case]
        exprs = guesses(dp.col(cells.name))
        check(engine, {cells.name: cells}, [*exprs, *(expr.is_null() for expr in exprs)])
        hold_filters(engine, {cells.name: cells}, exprs)


@pytest.mark.parametrize("engine", cases())
def test_every_operation_on_floats_that_statistics_leave_out(engine):
    for case, cells in floats(nw.Float64()).items():
        x = dp.col(cells.name)
        exprs = some([*on_one(x, "float"), *guesses(x)], 1, len(case))
        check(engine, {cells.name: cells}, exprs)
        hold_filters(engine, {cells.name: cells}, exprs)


def _listed(totals):
    return [np.asarray(numbers).tolist() for numbers in totals]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", cases("polars", "duckdb"))
def test_totals_of_floats_that_statistics_leave_out(engine):
    """Sums, quantiles, histograms, keys and units: those of the cells in memory, on Polars."""
    for case, cells in floats(nw.Float64()).items():
        name, table = cells.name, {cells.name: cells}
        brought = engine.bring(table)
        numbered = {"r": brought.cells["r"], **table}
        here, there = (
            dp.protect(native, unit=dp.Rows(1)) for native in (brought.native, polars(numbered)[0])
        )
        units = [dp.protect(native, unit=name) for native in (brought.native, polars(numbered)[0])]
        for question in (
            lambda f, n: f.agg(
                a=dp.count(n), b=dp.sum(n, (0, 5)), c=dp.mean(n, (-2, 3)), d=dp.var(n, (0, 1))
            ),
            lambda f, n: f.agg(a=dp.min(n, (0, 5)), b=dp.max(n, (0, 5)), c=dp.median(n, (-9, 9))),
            lambda f, n: f.histogram(n, [-5, 0, 2, 5], underflow=True, overflow=True),
            lambda f, n: f.histogram(n, keys=[0, 1, 2, 5, None]),
            lambda f, n: f.n_unique(n),
        ):
            got, want = (
                asked.totals(question_of(question(frame, name)), 1).values
                for frame in (here, there)
            )
            assert _listed(got) == _listed(want), (engine.name, case)
        got, want = (
            asked.totals(question_of(frame.agg(n=dp.count_units())), 1).values for frame in units
        )
        assert _listed(got) == _listed(want), (engine.name, case, "units")
        hold_keys(Asked(engine, (), table))


@pytest.mark.parametrize("engine", cases("polars"))
def test_texts_of_which_statistics_have_the_beginning(engine):
    for texts in TEXTS.values():
        cells = Cells("a_string", nw.String(), texts)
        x = dp.col("a_string")
        exprs = [
            x < LONG[:64],
            x >= LONG + "y",
            x.is_in([LONG + "b", "\x7f", "A"]),
            x.str.len_chars() > 99,
        ]
        for text in (*texts[:2], texts[-2]):
            exprs += [x == text, x < text]
        check(engine, {"a_string": cells}, exprs)
        hold_filters(engine, {"a_string": cells}, exprs)
        hold_keys(Asked(engine, (), {"a_string": cells}))
        hold_units(Asked(engine, (), {"a_string": cells}))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", cases("polars", "duckdb"))
@pytest.mark.parametrize("names", FAMILIES.values(), ids=FAMILIES)
def test_cells_of_files(engine, names):
    """Operations, filters, keys and units on all types that a file has, with all their cells."""
    table = {name: in_calendar(cells) for name, cells in singles(list(names)).items()}
    exprs = [expr for name in names for expr in of_one(name)]
    asked_of = some(exprs, 1, len(engine.name))
    check(engine, table, asked_of[::6])
    hold_filters(engine, table, asked_of[::9])
    here = Asked(engine, (), table)
    hold_keys(here)
    hold_units(here)
