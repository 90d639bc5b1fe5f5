"""A user's settings of DuckDB change no total, and under none of
them may a cell make a query fail.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.errors import UnsupportedOperation
from inside import question_of

duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")

SETTINGS = {
    "none": (),
    "floats": ("SET ieee_floating_point_ops = false",),
    "integers": ("SET integer_division = true",),
    "casts": ("SET old_implicit_casting = true",),
    "order": ("SET default_order = 'DESC'", "SET default_null_order = 'nulls_first'"),
    "rows": ("SET preserve_insertion_order = false", "SET threads = 2"),
    "zone": ("SET TimeZone = 'Asia/Kathmandu'", "SET Calendar = 'japanese'"),
    "subqueries": ("SET scalar_subquery_error_on_multiple_rows = false",),
    "lossless": ("SET arrow_lossless_conversion = true",),
    "large": ("SET arrow_large_buffer_size = true", "SET produce_arrow_string_view = true"),
}
_FLOATS = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    1e-200,
    1e200,
    2.0**63,
    -(2.0**63),
    math.inf,
    -math.inf,
]
_WHOLE = [
    0,
    1,
    -1,
    7,
    2**31,
    -(2**31),
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
    3037000500,
    -3037000500,
    None,
    5,
]
_TEXTS = [
    "1",
    "1e308",
    "1e309",
    "-0",
    "9223372036854775808",
    "inf",
    "",
    " 1",
    "\u0661",
    "2020-02-30",
    "a",
    "A",
    None,
    "1.5",
]
_DAYS = [
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2020, 2, 29),
    None,
] * 2 + [None] * 4
_TABLE = pl.DataFrame(
    {
        "u": range(14 * 14),
        "x": [x for x in _FLOATS for _ in _FLOATS],
        "y": [y for _ in _FLOATS for y in _FLOATS],
        "i": [i for i in _WHOLE for _ in _WHOLE],
        "j": [j for _ in _WHOLE for j in _WHOLE],
        "s": _TEXTS * 14,
        "d": _DAYS * 14,
        "t": [None if d is None else dt.datetime(d.year, d.month, d.day, 23, 59, 59) for d in _DAYS]
        * 14,
    }
)


def _sources(settings):
    connection, backend = duckdb.connect(), ibis.duckdb.connect()
    for database in (connection, backend.con):
        for line in settings:
            try:
                database.execute(line)
            except duckdb.Error:
                pytest.skip(f"this version has no such setting: {line}")
        database.register("brought", _TABLE.to_arrow())
        database.execute("CREATE TABLE held AS SELECT * FROM brought")
    return {"duckdb": connection.table("held"), "ibis": backend.table("held")}, (
        connection,
        backend,
    )


_X, _Y, _I, _J, _S, _D, _T = (dp.col(name) for name in "xyijsdt")
_COMPUTED = {
    **{
        f"float {op}": made
        for op, made in (("+", _X + _Y), ("-", _X - _Y), ("*", _X * _Y), ("/", _X / _Y))
    },
    **{
        f"whole {op}": made
        for op, made in (("+", _I + _J), ("-", _I - _J), ("*", _I * _J), ("/", _I / _J))
    },
    "mixed": _X * _I - _J / _Y,
    "floor": _X.floor() + _Y.ceil() + _X.abs() - _Y.sqrt(),
    "functions": _X.log() + _Y.log1p() * _X.exp(),
    "powers": _X**3 - _Y.round(1) + _X.sign() + _I**2,
    "windows": _T.dt.truncate("1q").dt.ordinal_day()
    + _T.dt.week()
    + _D.dt.month_start().dt.quarter(),
    "pieces": _S.str.split("1").list.get(-1).str.len_chars()
    + _S.str.replace_all("a", "bb").str.len_chars(),
    "replaced": _S.str.replace("1", "-").str.slice(1, 2).str.len_chars(),
    "by": _I // 7 + _J % 7 + (_I // 3) % 5,
    "signs": _I.abs() - _J + (-_I),
    "float32": (_X * _Y).cast("float32"),
    "narrow": (_X * 3).cast("int8"),
    "wide": (_X / 3).cast("uint64"),
    "text": _S.cast("float64") * _X,
    "number": _S.cast("int64"),
    "moment": _S.cast("date").dt.year(),
    "parts": _D.dt.year() * 400
    + _D.dt.weekday()
    + _T.dt.hour() * _T.dt.minute()
    + _T.dt.ordinal_day(),
    "case": dp.when(_X / _Y > 1).then(_X).otherwise(_Y / _X),
    "clip": (_X * _Y).clip(-1e9, 1e250),
    "letters": _S.str.len_chars() + _I,
}


def _asked(frame):
    """Questions that cover all operations, as pairs of name and query."""
    yield (
        "groups",
        frame.group_by("s", max_groups=1, max_rows=1).agg(
            n=dp.count_units(), a=dp.sum("x", bounds=(-5, 5))
        ),
    )
    yield (
        "days",
        frame.group_by("d", max_groups=1, max_rows=1).agg(
            n=dp.count_units(), m=dp.mean("i", bounds=(-9, 2**40))
        ),
    )
    yield (
        "parts",
        frame.with_columns(k=_T.dt.hour(), z=_X > _Y)
        .group_by("k", "z", max_groups=1)
        .count_units(),
    )
    yield (
        "truth",
        frame.filter((_X / _Y > _I) | (_I * _J == 0) | _S.is_in(["a", "1"])).count_units(),
    )
    each = frame.per_unit(
        a=dp.sum("x"), b=dp.mean("i"), c=dp.first("s", by="i"), e=dp.n_unique("j"), f=dp.max("t")
    )
    yield (
        "features",
        each.agg(
            a=dp.sum("a", bounds=(-9, 9)),
            b=dp.mean("b", bounds=(-9, 9)),
            e=dp.sum("e", bounds=(0, 9)),
        ),
    )
    for name, made in _COMPUTED.items():
        question = frame.with_columns(v=made).agg(
            n=dp.count("v"),
            s=dp.sum("v", bounds=(-(2**30), 2**30)),
            q=dp.median("v", bounds=(-100, 100)),
            max_rows=1,
        )
        yield name, question


def _answers(table, every=1):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1))
    for name, query in itertools.islice(_asked(frame), 0, None, every):
        raw = rooms.totals(question_of(query), 1)
        yield (
            name,
            raw.keys.rows() if raw.keys.width else [],
            [np.asarray(value).tolist() for value in raw.values],
        )


@pytest.fixture(scope="module")
def right():
    return list(_answers(_TABLE))


@pytest.mark.parametrize(
    "setting", ["all", *(pytest.param(name, marks=pytest.mark.long) for name in SETTINGS)]
)
def test_settings_change_no_total(setting, right):
    lines = (
        [line for said in SETTINGS.values() for line in said]
        if setting == "all"
        else SETTINGS[setting]
    )
    tables, held = _sources(lines)
    for place, table in tables.items():
        # the rest is in the long tier
        every = 1 if setting != "all" else {"duckdb": 3, "ibis": 9}[place]
        for expected, answer in itertools.zip_longest(right[::every], _answers(table, every)):
            assert answer == expected, (place, answer[0])
    del held


# Functions

_MACROS = ("least(a, b) AS a", "SUM(x) AS 10", "hash(a, b := 0) AS 0::UBIGINT", "floor(x) AS 5")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("temporary", "macro"),
    [
        *(("", macro) for macro in _MACROS),
        ("TEMP ", _MACROS[0]),
        *(pytest.param("TEMP ", macro, marks=pytest.mark.long) for macro in _MACROS[1:]),
    ],
)
@pytest.mark.parametrize("place", ["duckdb", "ibis"])
def test_a_macro_with_the_name_of_a_function_is_refused_before_the_charge(place, temporary, macro):
    """The macro replaces the function.
    Without the true `least`, no sum is clipped, and the claim is false.
    """
    connection = ibis.duckdb.connect() if place == "ibis" else duckdb.connect()
    run = connection.raw_sql if place == "ibis" else connection.execute
    run("CREATE TABLE t AS SELECT 1 AS u, 5.0 AS x")
    run("CREATE MACRO of_my_own(x) AS x + 1")
    budget = dp.Budget(epsilon=1)
    query = dp.protect(connection.table("t"), unit="u", budget=budget).sum(
        "x", bounds=(0, 3), max_rows=1
    )
    rooms.validate(question_of(query))
    run(f"CREATE {temporary}MACRO {macro}")
    for asked in (
        lambda: query.release(epsilon=1),
        lambda: dp.protect(connection.table("t"), unit="u"),
    ):
        with pytest.raises(UnsupportedOperation, match=f"{macro.partition('(')[0]}.*DROP MACRO"):
            asked()
    assert budget.spent.epsilon == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", ["duckdb", "ibis"])
def test_random_numbers_of_a_view_exceed_no_claim(place):
    """A question reads its table more than once, and such a view gives another table each time."""
    connection = ibis.duckdb.connect() if place == "ibis" else duckdb.connect()
    run = connection.raw_sql if place == "ibis" else connection.execute
    run(
        "CREATE VIEW v AS SELECT 1 AS u, CAST(floor(random() * 20) AS INT) AS g, random() AS x "
        "FROM range(200)"
    )
    frame = dp.protect(connection.table("v"), unit="u")
    groups = frame.group_by(
        "g", keys=list(range(20)), max_groups=2, max_rows_per_group=1, max_rows=2
    )
    asked = (
        groups.agg(m=dp.median("x", bounds=(0, 1))),
        groups.agg(n=dp.count(), d=dp.n_unique("x"), s=dp.sum("x", bounds=(0, 1))),
        frame.mode("g", keys=list(range(20)), max_rows=2),
        frame.n_unique("g", max_rows=2),
    )
    for query in asked:
        for salt in (1, 2):
            values = rooms.totals(question_of(query), salt).values
            for paid, raw in zip(question_of(query).allotments, values, strict=True):
                assert np.abs(np.array(raw, float)).sum() <= float(paid.total.sensitivity.exact_l1)
