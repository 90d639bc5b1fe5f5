"""Every aggregate on every engine, one cell in each group, so that what a cell
adds is seen: that of `reference`.
"""

from __future__ import annotations

import bisect
import datetime as dt
import math
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest
from asking import aggregates
from cells import TYPES, singles
from engines import ENGINES, READERS
from reference import NANO, family, held, number
from suite import TALLY, refused

import dpframe as dp
from dpframe import engine as asked
from dpframe.errors import DpFrameError, UnsupportedOperation
from dpframe.plan import grid, kind
from inside import question_of, step_of


@pytest.fixture(autouse=True, scope="module")
def fewer_candidates():
    """Each cell is a group here, and millions of counts for each of them do not fit into memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "_MOST", 2**10)
        yield


MOST = (
    "int8",
    "int64",
    "uint64",
    "int128",
    "float64",
    "decimal38_10",
    "string",
    "boolean",
    "date",
    "datetime_us",
)
QUICK = {  # the types that are asked each time
    **{
        "polars": ("int64", "int128", "float64", "string", "date"),
        "duckdb": ("float64",),
        "postgres": ("float64",),
    },
    **{"dask": ("int64", "string"), "pandas nullable": ("uint64", "boolean")},
}


def _marks(engine, *, quick):
    shared = [pytest.mark.xdist_group(engine.needs)] if engine.needs else []
    return shared if quick else [*shared, pytest.mark.long]


EVERY = (*ENGINES, *READERS)
SOME = [pytest.param(e, id=e.name, marks=_marks(e, quick=e.name in QUICK)) for e in EVERY]
LONG = [pytest.param(e, id=e.name, marks=_marks(e, quick=False)) for e in EVERY]


def ticks(dtype, cell):
    """The number that is added up for a cell: for a time its ticks."""
    if cell is None or family(dtype) in ("string", "boolean", "date", "integer"):
        return cell
    if family(dtype) in ("datetime", "duration"):
        return cell // NANO[dtype.time_unit]
    return number(cell)


def integer(measure, x):
    """A value on the grid of a measure: whole numbers exactly, floats
    by ⌊x / step + 1/2⌋ in floats.
    """
    grid, low, high = measure.grid, measure.grid.lower, measure.grid.upper
    if measure.kind == "unit_sum":
        low, high = -(2**10) * grid.magnitude, 2**10 * grid.magnitude
    if x is None:
        return min(max(0, grid.lower), grid.upper) if measure.kind == "unit_sum" else 0
    centre = int(grid.centre) if grid.step == 1 else 0
    fits = centre + low >= -(2**63) and centre + high < 2**63
    if not isinstance(x, float) and grid.step == 1 and fits and not measure.factors:
        made = min(max(x, low + centre), high + centre) - centre
    else:
        ends = [float(grid.centre + end * grid.step) for end in (low, high)]
        x = float(x)
        if measure.factors:  # powers of distances
            reach = float(max(map(abs, measure.factors[0].ends))) * (1 + 1e-9)
            reach = float(max(map(abs, measure.factors[0].ends))) * (1 + 1e-9)
            x = math.prod(
                [min(max(x - float(measure.about), -reach), reach)] * len(measure.factors)
            )
        x = min(max(x, ends[0]), ends[1]) - float(grid.centre)
        made = math.floor(x * float(1 / grid.step) + 0.5)
    made = min(max(made, low), high)
    return min(max(made, grid.lower), grid.upper)


def unlike(measure, totals, column):
    """The rows whose totals are wrong. Input: `column`: the cell of each row."""
    dtype, cells = column
    values = [ticks(dtype, cell) for cell in cells]
    if measure.kind in ("ranks", "tree", "modes"):
        return [
            row
            for row, (x, many) in enumerate(zip(values, totals, strict=True))
            if not _chosen(measure, dtype, x, many)
        ]
    if measure.kind == "log":
        rows = enumerate(zip(values, totals, strict=True))
        return [
            row for row, (x, got) in rows if not _is_logarithm(measure, x, int(got) * measure.unit)
        ]
    if measure.kind in ("values", "distinct"):
        right = [Fraction(x is not None) for x in values]
    elif measure.kind in ("rows", "units"):
        right = [Fraction(1)] * len(values)
    else:
        right = [integer(measure, x) * measure.grid.step for x in values]
    return [
        row
        for row, (got, want) in enumerate(zip(totals, right, strict=True))
        if int(got) * measure.unit != want
    ]


def _is_logarithm(measure, x, got):
    """Whether a total is the logarithm on the grid;
    see `release/estimators` for what is said of its digits.
    """
    grid = measure.grid
    if x is None:
        return got == 0
    low, high = (float(grid.centre + end * grid.step) for end in (grid.lower, grid.upper))
    want = math.log(min(max(float(x), math.exp(low)), math.exp(high))) - float(grid.centre)
    return abs(float(got) - want) <= 0.5000001 * float(grid.step) + 4e-8


def _chosen(measure, dtype, x, many):
    """Whether a row counts at the nearest candidate alone, and at no
    candidate if its value is missing.
    """
    at = np.flatnonzero(many).tolist()
    if measure.kind == "modes":
        return len(at) == any(_equal(dtype, x, key) for key in measure.values) and all(
            _equal(dtype, x, measure.values[i]) for i in at
        )
    if x is None or len(at) != 1:
        return x is None and not at
    listed = measure.candidates
    if listed is None:  # the parts between some points, each of which belongs to the part before it
        return at[0] == bisect.bisect_left(measure.cuts, float(x))
    inside = min(max(float(x), listed.lower), listed.upper)
    # see `Candidates.nearest`
    return abs(inside - listed.points(at[0])) <= listed.step * (0.5 + 1e-4)


def _equal(dtype, x, key):
    if x is None or key is None:
        return x is None and key is None
    if isinstance(key, dt.timedelta):
        return x == key // dt.timedelta(microseconds=1) * 1000 // NANO[dtype.time_unit]
    if isinstance(key, dt.datetime):
        since = key.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        return x == since // dt.timedelta(microseconds=1) * 1000 // NANO[dtype.time_unit]
    if isinstance(key, dt.date):
        return x == (key - dt.date(1970, 1, 1)).days
    return type(x) is type(key) and x == key if not isinstance(x, float) else x == key


def hold(engine, names, unit, *, each):
    """Hold aggregates on columns of some types; `each` of how many is
    taken, so that a quick run is one.
    """
    brought = engine.bring(singles(names))
    frame = dp.protect(brought.native, unit=unit).with_columns(key=dp.col("r") + 0)
    many, failures = brought.height, []
    grouped = frame.group_by(
        "key",
        keys=list(range(many)),
        **({} if isinstance(unit, dp.Rows) else {"max_groups": 1, "max_rows_per_group": 1}),
    )
    accepted = []
    for name in names:
        column = f"a_{name}"
        if (
            column not in brought.cells
            or kind(step_of(frame).table.columns[column].domain.dtype) == "other"
        ):
            continue
        for i, aggregate in enumerate(aggregates(column, TYPES[name].dtype)):
            if (i + len(name)) % each:
                continue
            try:
                grouped.agg(x=aggregate)
                accepted.append(aggregate)
            except DpFrameError as error:
                failures += refused(
                    engine.name, f"aggregate {type(aggregate).__name__.lower()}", error
                )
    at_once = 1 if engine.name.startswith("sqlite") else 30  # its parser has no room for many
    for start in range(0, len(accepted), at_once):
        ask = question_of(
            grouped.agg(**{f"x{i}": one for i, one in enumerate(accepted[start : start + at_once])})
        )
        try:
            asked.validate(ask)
        except UnsupportedOperation as error:
            failures += refused(
                engine.name, f"aggregate {type(accepted[start]).__name__.lower()}", error
            )
            continue
        totals = asked.totals(ask, 1)
        assert totals.keys["key"].to_list() == list(range(many))
        for paid, values in zip(ask.read, map(np.asarray, totals.values), strict=True):
            measure = paid.total
            at = [
                n
                for n, c in step_of(frame).table.columns.items()
                if measure.column is not None and c.id == measure.column.id
            ]
            cells = brought.cells[at[0] if at else "r"]
            dtype = step_of(frame).table.columns[at[0]].domain.dtype if at else nw.Int64()
            read = [held(cells.dtype, x).value for x in cells.cells]
            wrong = unlike(measure, values, (dtype, read))
            failures += [
                f"{paid.names} {measure.kind} of {at}: {values[r]}, for {cells.cells[r]!r:.80}"
                for r in wrong[:2]
            ]
    TALLY.add(
        engine.name,
        {f"aggregate {type(a).__name__.lower()}" for a in accepted},
        many,
        len(accepted),
    )
    assert not failures, f"{len(failures)} failures on {engine.name}\n" + "\n".join(failures[:20])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("engine", SOME)
def test_every_aggregate_sees_each_cell(engine):
    hold(engine, QUICK.get(engine.name, MOST), "r", each=5)


@pytest.mark.parametrize("unit", ["r", dp.Rows(1)], ids=["unit", "rows"])
@pytest.mark.parametrize("engine", LONG)
def test_every_aggregate_of_every_type_sees_each_cell(engine, unit):
    """Half of the types with an identifier and half without, and the
    other way round on the next engine.
    """
    turn = EVERY.index(engine) + (unit == "r")
    hold(engine, list(TYPES)[turn % 2 :: 2], unit, each=3)
