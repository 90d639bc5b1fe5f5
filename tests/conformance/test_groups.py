"""Keys, units, features of units, intervals and histograms of every type on every
engine: those of plain Python.

A listed or a found key has as many rows as cells are equal to it; a column that says whose row it
is has as many units as it has different cells; a feature of a unit is made of its cells alone; an
interval holds the cells between its edges. The quick tier asks some types on some engines, the long
tier all.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import narwhals as nw
import pytest
from asking import BOUNDS, EDGES
from cells import LONG_TEXTS, TYPES, Cells, singles
from engines import ENGINES, READERS, plain_values, rows_of
from reference import DAY, GUARD, INT64, NANO, Typed, clip, family, held, literal, midnight, value
from suite import TALLY, refused

import dpframe as dp
from dpframe import engine as asked
from dpframe.errors import DpFrameError
from dpframe.plan import Intervals, kind
from dpframe.plan.bins import intervals_of
from dpframe.plan.steps import lineage
from dpframe.plan.steps.rewrites import WithColumns
from inside import question_of, step_of

ROWS = list(range(1, 200))  # of one unit
MOST = ("int64", "float64", "string", "boolean", "date", "datetime_us")
QUICK = {  # the types that are asked each time
    **{"polars": MOST, "duckdb": ("float64", "string"), "postgres": ("int64", "string")},
    **{
        "dask": ("string", "date"),
        "pandas object": ("string",),
        "pyarrow run ends": ("string", "int64"),
    },
}


def engines():
    """Engines as parameters, each with the types to test."""
    every = (*ENGINES, *READERS)
    quick = [pytest.param(e, QUICK[e.name], id=e.name) for e in every if e.name in QUICK]
    return [
        *quick,
        *(pytest.param(e, tuple(TYPES), id=f"{e.name} all", marks=_marks(e)) for e in every),
    ]


def _marks(engine):
    return [pytest.mark.long, *([pytest.mark.xdist_group("spark")] if engine.long else [])]


class Asked:
    """A table on an engine, and the questions about its columns."""

    def __init__(self, engine, names, table=None):
        self.engine, self.failures = engine, []
        self.brought = engine.bring(singles(list(names)) if table is None else table)
        self.frame = dp.protect(self.brought.native, unit=dp.Rows(1))

    def columns(self):
        """The columns that operations can read, each with its cells as
        they are held and its type there.
        """
        for name, cells in self.brought.cells.items():
            if name.startswith("a_"):
                dtype = step_of(self.frame).table.columns[name].domain.dtype
                if kind(dtype) != "other":
                    yield name, dtype, [held(cells.dtype, cell) for cell in cells.cells]

    def hold(self, operation, name, question, right):
        """The totals of a question about a column are right, or it is refused in words."""
        try:
            query = question()
            asked.validate(question_of(query))
        except DpFrameError as error:
            self.failures += refused(self.engine.name, operation, error)
            return
        totals = asked.totals(question_of(query), 1)
        TALLY.add(self.engine.name, {operation}, self.brought.height, 1)
        got, want = counted(totals), right()
        if got != want:
            unlike = {
                key: (got.get(key), want.get(key))
                for key in got.keys() | want.keys()
                if got[key] != want[key]
            }
            self.failures.append(f"{operation} {name}: {dict(list(unlike.items())[:3])!s:.300}")

    def done(self):
        """Errors: AssertionError, with what was not right."""
        assert not self.failures, f"on {self.engine.name}\n" + "\n".join(self.failures[:30])


def counted(totals):
    """Number of rows by key.
    A listed key without rows is left out, so it equals a key that is not released.
    """
    keys = [plain_values(totals.keys.get_column(name)) for name in totals.keys.columns]
    counts = totals.values[0].tolist()
    rows = zip(*keys, strict=True) if keys else [()]
    return Counter({key: many for key, many in zip(rows, counts, strict=True) if many})


def same_zero(x):
    return 0.0 if isinstance(x, float) and x == 0 else x


# Keys


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("engine", "names"), engines())
def test_keys_have_their_rows(engine, names):
    """Check keys from the data and listed keys, with null among them."""
    hold_keys(Asked(engine, names))


def hold_keys(here):
    """Errors: AssertionError, with the keys that have other rows."""
    for name, dtype, values in here.columns():
        cells = Counter((same_zero(x.value),) for x in values)
        there = Counter({key: many for key, many in cells.items() if key != (None,)})
        listed = list(dict.fromkeys(x for key in there if (x := typed(dtype, key[0])) is not None))
        among = Counter(
            {key: many for key, many in cells.items() if typed(dtype, key[0]) is not None}
        )
        among[None,] = cells[None,]
        here.hold(
            "found key",
            name,
            lambda name=name: here.frame.group_by(name).agg(n=dp.count()),
            lambda t=there: t,
        )
        question = lambda name=name, keys=listed: here.frame.histogram(name, keys=[*keys, None])  # noqa: E731
        here.hold("listed key", name, question, lambda among=among: among)
    here.done()


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("engine", "names"), engines())
def test_synthetic_rows_are_asked_of_these_rows(engine, names):
    """The weights of the rows by one column, from which every noisy
    table is added up; null is a key.
    """
    here = Asked(engine, names)
    for name, dtype, values in here.columns():
        cells = Counter(same_zero(x.value) for x in values)
        listed = list(dict.fromkeys(x for key in cells if (x := typed(dtype, key)) is not None))
        try:
            question = question_of(
                here.frame.synthesize([name], keys={name: [*listed, None]})._query
            )
            asked.validate_contingency(question)
        except DpFrameError as error:
            here.failures += refused(engine.name, "synthetic rows", error)
            continue
        among = [
            many for key, many in cells.items() if key is not None and typed(dtype, key) is not None
        ]
        counts = asked.contingency(question, 1).table((0,)).tolist()
        if counts != [*among, cells[None]]:
            here.failures.append(f"synthetic rows of {name}: {counts}, not {[*among, cells[None]]}")
    here.done()


FINE = {
    "polars": ("float64", "datetime_us", "date"),
    "duckdb": ("float64",),
    "postgres": ("float64",),
}


@pytest.mark.parametrize("engine", [pytest.param(e, id=e.name) for e in ENGINES if e.name in FINE])
def test_how_finely_values_are_given_is_that_of_plain_python(engine):
    """The added column of synthetic rows: how many cells are whole, have one
    decimal, are midnights, and so on.
    """
    fineness(Asked(engine, FINE[engine.name]))


@pytest.mark.long
@pytest.mark.parametrize("engine", [pytest.param(e, id=e.name, marks=_marks(e)) for e in ENGINES])
def test_how_finely_values_of_every_type_are_given_is_that_of_plain_python(engine):
    fineness(Asked(engine, tuple(TYPES)))


def fineness(here):
    for name, dtype, values in here.columns():
        if kind(dtype) not in ("float", "decimal", "date", "datetime"):
            continue
        ends = BOUNDS[_family(dtype)][0]
        if getattr(dtype, "time_zone", None):
            ends = tuple(end.replace(tzinfo=dt.UTC) for end in ends)
        try:
            question = question_of(
                here.frame.synthesize([name], bounds={name: ends}, nulls=[name])._query
            )
            asked.validate_contingency(question)
        except DpFrameError as error:
            here.failures += refused(here.engine.name, "precision", error)
            continue
        (node,) = (
            n
            for step in lineage(question.step)
            if isinstance(step, WithColumns)
            for _, n in step.written
        )
        counts = Counter(value(node, {name: x}).value for x in values)
        got = asked.contingency(question, 1).table((1,)).tolist()
        if got != [counts[i] for i in range(len(got))]:
            here.failures.append(f"precision of {name}: {got}, not {counts}")
    here.done()


def typed(dtype, value):
    """A cell as a user types it in a list of keys; None where there is no such Python value."""
    zone, unit = getattr(dtype, "time_zone", None), getattr(dtype, "time_unit", "us")
    if value is None or family(dtype) in ("string", "boolean"):
        return value
    if family(dtype) in ("float", "decimal"):
        return value if math.isfinite(value) else None
    if family(dtype) == "integer":
        return value if -(2**63) <= value < 2**64 else None
    if family(dtype) == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if value % 1000:
        return None
    try:
        since = dt.timedelta(microseconds=value // 1000)
        made = (
            since
            if family(dtype) == "duration"
            else dt.datetime(1970, 1, 1, tzinfo=zone and dt.UTC) + since
        )
    except OverflowError:
        return None
    years = (1678, 2261) if unit == "ns" else (2, 9998) if zone else (1, 9999)
    return made if family(dtype) == "duration" or years[0] <= made.year <= years[1] else None


# Units


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("engine", "names"), engines())
def test_units_are_told_apart_by_their_cells(engine, names):
    """The number of units, and the numbers of units with 1, 2, … rows."""
    table = {name: in_calendar(cells) for name, cells in singles(list(names)).items()}
    hold_units(Asked(engine, names, table))


def hold_units(here):
    """Errors: AssertionError, with the columns that have other units."""
    for name, cells in here.brought.cells.items():
        if not name.startswith("a_"):
            continue
        try:
            frame = dp.protect(here.brought.native, unit=name)
        except DpFrameError as error:
            here.failures += refused(here.engine.name, "unit", error)
            continue
        rows = Counter(x for cell in cells.cells if (x := identity(cells.dtype, cell)) is not None)
        here.hold(
            "unit",
            name,
            lambda f=frame: f.agg(n=dp.count_units()),
            lambda r=rows: Counter({(): len(r)}),
        )
        here.hold(
            "rows of a unit",
            name,
            lambda f=frame: (
                f.per_unit(n=dp.count())
                .group_by("n", keys=ROWS, max_groups=1)
                .agg(k=dp.count_units())
            ),
            lambda r=rows: Counter((x,) for x in r.values()),
        )
    here.done()


@pytest.mark.long
@pytest.mark.parametrize(
    "engine", [pytest.param(e, id=e.name, marks=_marks(e)) for e in (*ENGINES, *READERS)]
)
def test_texts_of_a_million_letters_are_keys_and_units(engine):
    for hold in (hold_keys, hold_units):
        hold(Asked(engine, (), {"a_string": LONG_TEXTS}))


def in_calendar(cells):
    """The cells without dates, times and durations that Python cannot hold:
    they are null for every engine.
    """
    if family(cells.dtype) not in ("date", "datetime", "duration"):
        return cells
    return replace(cells, cells=tuple(held(cells.dtype, cell).value for cell in cells.cells))


def identity(dtype, cell):
    """The unit of a row by its cell: none if the cell is missing, NaN or not Unicode."""
    if cell is None or isinstance(cell, bytes) or cell != cell:
        return None
    return Fraction(cell) if family(dtype) == "decimal" else same_zero(cell)


# Features of units


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("engine", "names"), engines())
def test_features_are_made_of_a_units_cells(engine, names):
    table = singles(list(names))
    height = len(next(iter(table.values())).cells)
    units = tuple(None if i % 17 == 5 else i // 3 for i in range(height))
    brought = engine.bring({**table, "u": Cells("u", nw.Int64(), units)})
    units = brought.cells["u"].cells  # numpy has no null
    frame, failures = dp.protect(brought.native, unit="u"), []
    for name, cells in brought.cells.items():
        if (
            not name.startswith("a_")
            or kind(step_of(frame).table.columns[name].domain.dtype) == "other"
        ):
            continue
        accepted, dtype = (
            {},
            step_of(frame).table.columns[name].domain.dtype,
        )  # databases hold milliseconds in microseconds
        for feature, rule in features(name, dtype if family(dtype) == "datetime" else cells.dtype):
            try:
                frame.per_unit(x=feature)
                accepted[f"x{len(accepted)}"] = (feature, rule)
            except DpFrameError as error:
                failures += refused(engine.name, f"feature {type(feature).__name__.lower()}", error)
        made = frame.per_unit(**{x: feature for x, (feature, _) in accepted.items()})
        got = rows_of(made, list(accepted), by="u")
        values = [held(cells.dtype, cell) for cell in cells.cells]
        of_units = [
            [values[i] for i in range(height) if units[i] == u] for u in sorted(set(units) - {None})
        ]
        for x, (feature, rule) in accepted.items():
            wrong = [i for i, own in enumerate(of_units) if not alike(got[x][i], rule(own))]
            failures += [
                f"{feature.typed}: {got[x][i]!r:.50} of {of_units[i]!r:.200}" for i in wrong[:1]
            ]
        words = {f"feature {type(feature).__name__.lower()}" for feature, _ in accepted.values()}
        TALLY.add(engine.name, words, len(of_units), len(accepted))
    assert not failures, f"on {engine.name}\n" + "\n".join(failures[:30])


def features(name, dtype):
    """Every feature of a column, with its value for the cells of a unit."""
    own = lambda row: [x.value for x in row if x.value is not None]  # noqa: E731
    yield dp.count(name), lambda row: len(own(row))
    yield dp.n_unique(name), lambda row: len({same_zero(x) for x in own(row)})
    yield dp.first(name, by="r"), lambda row: same_zero(row[0].value)
    yield dp.last(name, by="r"), lambda row: same_zero(row[-1].value)
    for low, high in BOUNDS.get(_family(dtype), []):
        ends = tuple(aware(dtype, end) for end in (low, high))
        limits = dict(zip(("lower", "upper"), ends, strict=True))
        inside = lambda row, limits=limits: own([clip([x], limits) for x in row])  # noqa: E731
        yield (
            dp.min(name, bounds=ends),
            lambda row, inside=inside: same_zero(min(inside(row), default=None)),
        )
        yield (
            dp.max(name, bounds=ends),
            lambda row, inside=inside: same_zero(max(inside(row), default=None)),
        )
        yield (
            dp.mean(name, bounds=ends),
            lambda row, inside=inside, e=ends: mean(dtype, inside(row), e),
        )
        yield (
            dp.sum(name, bounds=ends),
            lambda row, inside=inside, e=ends: added(dtype, inside(row), e),
        )
        yield (
            dp.sum(name, unit_bounds=ends),
            lambda row, e=ends: within(dtype, added(dtype, own(row), None), e),
        )


def within(dtype, total, ends):
    """A total between the bounds of a unit; where it is not quite
    one float, they are its ends too.
    """
    of = (
        nw.Int64()
        if family(dtype) == "integer"
        else dtype
        if family(dtype) == "duration"
        else nw.Float64()
    )
    clipped = [
        clip([Typed(of, x)], {"lower": ends[0], "upper": ends[1]}).value for x in ends_of(total)
    ]
    return clipped[0] if not isinstance(total, tuple) else tuple(clipped)


def ends_of(total):
    return total if isinstance(total, tuple) else (total,)


def _family(dtype):
    return "float" if family(dtype) == "decimal" else family(dtype)


def aware(dtype, value):
    zoned = getattr(dtype, "time_zone", None) is not None and isinstance(value, dt.datetime)
    return value.replace(tzinfo=dt.UTC) if zoned else value


def added(dtype, values, bounds):
    """A sum: whole numbers within 64 bits, at their end where its float is from
    9.2e18 on; of floats the two ends.

    A float is cut into limbs of 32 bits. Where there are bounds, three of them, below the power of
    two above these; else six below 2^100, within which it is held.
    """
    if _family(dtype) != "float":
        scale = NANO[dtype.time_unit] if family(dtype) == "duration" else 1
        low, high = (end * scale for end in INT64)
        total = sum(min(max(x, low), high) for x in values)
        narrow = str(dtype) in ("Int8", "Int16", "Int32", "UInt8", "UInt16")
        return total if narrow or abs(total) < GUARD * scale else high if total > 0 else low
    far = 2.0**100 if bounds is None else math.inf
    power = 100 - 192 if bounds is None else max(math.frexp(max(map(abs, bounds)))[1], -800) - 96
    exact = sum(Fraction(min(max(x, -far), far)) for x in values)
    off = len(values) * Fraction(2) ** power + abs(exact) / 2**50
    return float(exact - off), float(exact + off)


def mean(dtype, values, bounds):
    """Of numbers about a float, of times the time, rounded down to a tick;
    of dates a time, in microseconds.
    """
    if not values:
        return None
    if _family(dtype) == "float":
        return tuple(end / len(values) for end in added(dtype, values, bounds))
    if family(dtype) == "integer":
        exact = Fraction(sum(min(max(x, INT64[0]), INT64[1]) for x in values), len(values))
        return float(exact - abs(exact) / 2**50), float(exact + abs(exact) / 2**50)
    ticks, scale = (1000, DAY) if family(dtype) == "date" else (NANO[dtype.time_unit], 1)
    return sum(values) * scale // len(values) // ticks * ticks


def alike(got, want):
    """Whether a value is equal to the expected one, or lies between two ends."""
    if isinstance(want, tuple):
        return isinstance(got, float) and want[0] <= got <= want[1]
    return type(got) is type(want) and got == want


# Intervals and histograms


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("engine", "names"), engines())
def test_intervals_hold_what_is_between_their_edges(engine, names):
    here = Asked(engine, names)
    for name, dtype, values in here.columns():
        cuts, wanted = {}, {}
        for edges in EDGES.get(_family(dtype), []):
            bins = [aware(dtype, edge) for edge in edges]
            for right, ends in ((True, False), (False, True)):
                into = f"c{len(cuts)}"
                try:
                    here.frame.cut(name, bins, right=right, include_lowest=ends, into=into)
                except DpFrameError as error:
                    here.failures += refused(engine.name, "cut", error)
                    continue
                cuts[into] = (bins, right, ends)
                wanted[into] = [
                    label(Intervals.of(bins, right=right, closed_ends=ends), x) for x in values
                ]
        frame = here.frame
        for into, (bins, right, ends) in cuts.items():
            frame = frame.cut(name, bins, right=right, include_lowest=ends, into=into)
            # of numbers, what is outside is counted too
            beyond = not isinstance(bins[0], (dt.date, dt.timedelta))
            texts = [label(intervals_of(bins, beyond, beyond, ""), x) for x in values]
            here.hold(
                "histogram",
                name,
                lambda b=bins, o=beyond: here.frame.histogram(name, b, underflow=o, overflow=o),  # noqa: B023
                lambda texts=texts: Counter((text,) for text in texts if text is not None),
            )
        got = rows_of(frame, list(cuts)) if cuts else {}
        for into, labels in wanted.items():
            wrong = [i for i, (a, b) in enumerate(zip(got[into], labels, strict=True)) if a != b]
            here.failures += [
                f"cut {name} {cuts[into]}: {got[into][i]!r} of {values[i]}" for i in wrong[:1]
            ]
        TALLY.add(engine.name, {"cut"}, here.brought.height, len(cuts))
    here.done()


def comparable(x, edges):
    """A value and the edges in one unit: numbers as floats, times in nanoseconds, dates in days."""
    if family(x.dtype) in ("integer", "float", "decimal"):
        return float(x.value), [float(edge) for edge in edges]
    return x.value, [literal(midnight(edge, x.dtype)).value for edge in edges]


def label(intervals, x):
    """The label of the interval that holds a value; None outside of all."""
    if x.value is None:
        return None
    value, edges = comparable(x, intervals.edges)
    last = len(intervals.labels) - 1
    for i, text in enumerate(intervals.labels):
        low, high = edges[i], edges[i + 1]
        if intervals.right:
            inside = low < value <= high or (intervals.closed_ends and i == 0 and value == low)
        else:
            inside = low <= value < high or (intervals.closed_ends and i == last and value == high)
        if inside:
            return text
    return None
