"""Values that rows of a computed column can have:
what is refused as a key is the value of no hostile cell.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import zoneinfo

import narwhals as nw
import pytest
from cells import TYPES
from expressions import of_one, of_two, on_one
from reference import Typed, family, held, value

import dpframe as dp
from dpframe.errors import DpFrameError
from dpframe.plan import Column, ColumnDomain, Table, read_keys
from dpframe.plan.nodes import domain, text
from dpframe.plan.operations import OPERATIONS
from inside import node_of


def table(*names):
    types = {f"{side}_{name}": TYPES[name].dtype for name in names for side in "ab"}
    return Table(
        {name: Column(name, ColumnDomain(dtype)) for name, dtype in types.items()}, (), "add-remove"
    )


def key_of(made: Typed):
    """A value of the reference as a key is typed; None where nobody can type it."""
    kind, x = family(made.dtype), made.value
    if x is None or (kind == "float" and not math.isfinite(x)):
        return None
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=x)
    if kind == "duration":
        return None if x % 1000 else dt.timedelta(microseconds=x // 1000)
    if kind != "datetime":
        return x
    if x % 1000:
        return None
    zone = made.dtype.time_zone
    moment = dt.datetime(1970, 1, 1, tzinfo=zone and dt.UTC) + dt.timedelta(microseconds=x // 1000)
    return moment.astimezone(zoneinfo.ZoneInfo(zone)) if zone else moment


def is_refused(expr, where, key):
    """Whether a key is refused as one that no row has."""
    found = domain(node_of(expr), where, "")
    try:
        read_keys([key], ("k",), (found,), "group_by('k')")
    except DpFrameError as refusal:
        return "no row" in str(refusal)
    return False


def hold(exprs, where, cells):
    """Hold each value of each expression against what its column can have.
    Output: how many were held.
    """
    count = 0
    for expr in exprs:
        try:
            found = domain(node_of(expr), where, "")
        except DpFrameError:
            continue
        if found.possible is None and found.bounds is None:
            continue
        for row in cells:
            key = key_of(value(node_of(expr), row))
            if key is not None:
                count += 1
                assert not is_refused(expr, where, key), (text(node_of(expr)), key, row)
    return count


def rows_of(name, step=1):
    dtype, cells = TYPES[name].dtype, TYPES[name].cells[::step]
    return [
        {f"a_{name}": held(dtype, cell), f"b_{name}": held(dtype, cells[i - 1])}
        for i, cell in enumerate(cells)
    ]


NAMES = (
    "int8",
    "int64",
    "uint64",
    "float64",
    "string",
    "boolean",
    "date",
    "datetime_us",
    "datetime_utc",
)
ZONED = (
    "datetime_ms",
    "datetime_ns",
    "datetime_berlin",
    "duration_us",
    "float32",
    "decimal38_10",
    "int128",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*NAMES, *ZONED])
def test_no_value_of_a_hostile_cell_is_refused(name):
    exprs = [*of_one(name), *of_two(name, name)]
    assert hold(exprs[::3], table(name), rows_of(name, 3)) > 5


@pytest.mark.long
@pytest.mark.parametrize("name", TYPES)
def test_no_value_of_any_cell_is_refused(name):
    assert hold([*of_one(name), *of_two(name, name)], table(name), rows_of(name)) > 5


def twice(name, few, each):
    """Expressions of two operations, chosen at random with a fixed seed
    among those with restricted values.
    """
    where, inner = table(name), []
    for expr in of_one(name):
        try:
            found = domain(node_of(expr), where, "")
        except DpFrameError:
            continue
        if found.possible is not None and node_of(expr).size < 50:
            inner.append((expr, family(found.dtype)))
    pick = random.Random(f"{name}{few}")
    return [
        made
        for expr, kind in pick.choices(inner, k=few)
        for made in pick.choices(on_one(expr, kind), k=each)
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*NAMES, "datetime_berlin"])
def test_no_value_of_two_operations_is_refused(name):
    hold(twice(name, 4, 20), table(name), rows_of(name, 5))


@pytest.mark.long
@pytest.mark.parametrize("name", [*NAMES, "datetime_berlin", "datetime_ms", "int128"])
def test_no_value_of_many_pairs_of_operations_is_refused(name):
    hold(twice(name, 60, 25), table(name), rows_of(name, 2))


CLOCKS = (
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Africa/Monrovia",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("zone", CLOCKS)
def test_no_start_of_a_window_is_refused_where_clocks_change(zone):
    """Times around changes of clocks, of an hour and of half an hour, and in a
    zone that was 44 minutes behind.
    """
    dtype = nw.Datetime("us", zone)
    where = Table({"a": Column("a", ColumnDomain(dtype))}, (), "add-remove")
    days = [
        dt.datetime(2021, 3, 28),
        dt.datetime(2021, 10, 31),
        dt.datetime(2021, 4, 3, 12),
        dt.datetime(2021, 10, 2),
    ]
    days += [dt.datetime(2021, 11, 7), dt.datetime(1972, 1, 6, 20)]
    moments = [
        day + dt.timedelta(minutes=17 * i, seconds=i) for day in days for i in range(0, 120, 8)
    ]
    ticks = [
        (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) * 1000
        for moment in moments
    ]
    cells = [{"a": held(dtype, x)} for x in ticks]
    starts = [
        dp.col("a").dt.truncate(every)
        for every in ("15m", "20m", "1h", "2h", "7m", "1d", "1w", "1mo")
    ]
    moved = [x.dt.date() for x in starts[-3:]] + [x.dt.replace_time_zone(None) for x in starts]
    moved += [x + dp.duration(days=1) for x in starts] + [
        x.dt.convert_time_zone("UTC") for x in starts
    ]
    assert hold([*starts, *moved], where, cells) > 1_000


TEXT, NUMBER, DAY, TIME = (
    dp.col("a_string"),
    dp.col("a_int64"),
    dp.col("a_date"),
    dp.col("a_datetime_us"),
)
REAL = dp.col("a_float64")
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
SUNDAY, MONDAY = dt.date(2026, 1, 4), dt.date(2026, 1, 5)
NEVER = {  # expressions by operation, with a key that a row can have and one that none has
    "str.to_lowercase": [(TEXT.str.to_lowercase(), "bonn", "Bonn")],
    "str.to_uppercase": [(TEXT.str.to_uppercase(), "BONN", "Bonn")],
    "str.head": [(TEXT.str.head(3), "abc", "abcd")],
    "str.slice": [(TEXT.str.slice(1, 2), "ab", "abc"), (TEXT.str.tail(2), "ab", "abc")],
    "str.replace": [(TEXT.str.replace_all("-", "", literal=True), "a", "a-b")],
    "str.split": [(TEXT.str.split(",").list.get(0), "a", "a,b")],
    "str.strip_chars": [
        (TEXT.str.strip_chars(), "a", "a "),
        (TEXT.str.strip_chars_start("x"), "ax", "xa"),
    ],
    "str.zfill": [(TEXT.str.zfill(5), "01234", "1234")],
    "str.extract": [(TEXT.str.extract("ward ([0-9]+)"), "12", "ward 12")],
    "str.len_chars": [(TEXT.str.len_chars(), 3, -1)],
    "str.count_matches": [(TEXT.str.count_matches("a", literal=True), 3, -1)],
    "str.to_datetime": [
        (
            TEXT.str.to_datetime("%Y-%m-%d %H"),
            dt.datetime(2026, 1, 5, 3),
            dt.datetime(2026, 1, 5, 3, 30),
        )
    ],
    "concat_str": [
        (dp.concat_str([DAY.dt.year(), DAY.dt.month()], separator="-"), "2026-1", "2026-01"),
        (dp.concat_str([DAY.dt.year(), DAY.dt.quarter()], separator="-Q"), "2026-Q1", "2026Q1"),
    ],
    "add": [
        (DAY.dt.year().cast("string") + "/" + DAY.dt.month().cast("string"), "2026/1", "2026"),
        (NUMBER // 10 * 10 + 5, 15, 10),
        (DAY.dt.truncate("1w") + dp.duration(days=6), SUNDAY, MONDAY),
    ],
    "subtract": [
        (NUMBER // 10 * 10 - 1, 9, 10),
        (DAY.dt.truncate("1w") - dp.duration(days=1), SUNDAY, MONDAY),
    ],
    "multiply": [(NUMBER // 10 * 10, 20, 25)],
    "negative": [(-(NUMBER.abs()), -3, 3)],
    "abs": [(NUMBER.abs(), 3, -3)],
    "sqrt": [(REAL.sqrt(), 1.5, -1.5)],
    "exp": [(REAL.exp(), 1.5, -1.5)],
    "power": [(NUMBER**2, 4, -4)],
    "floor": [(REAL.floor(), 1.0, 1.5)],
    "ceil": [(REAL.ceil(), 1.0, 1.5)],
    "round": [(REAL.round(1), 1.5, 1.55)],
    "sign": [(REAL.sign(), -1.0, 0.5)],
    "modulo": [(NUMBER % 7, 6, 7)],
    "case": [
        (dp.when(NUMBER > 5).then(dp.lit("high")).otherwise(dp.lit("low")), "high", "High"),
        (TEXT.replace_strict({"a": "x", "b": "y"}), "x", "a"),
        (dp.when(NUMBER > 5).then(1).otherwise(0.5), 0.5, 2.0),
    ],
    "fill_null": [(TEXT.str.to_lowercase().fill_null("None"), "None", "A")],
    "clip": [
        (NUMBER.clip(0, 5), 5, 6),
        (REAL.clip(0, 5), 5.0, 5.5),
        (DAY.clip(MONDAY, None).dt.date(), MONDAY, None),
    ],
    "cast": [
        (NUMBER.cast("string"), "7", "07"),
        ((NUMBER > 5).cast("string"), "true", "True"),
        (DAY.cast("string"), "2026-01-05", "5.1.2026"),
        ("Q" + DAY.dt.quarter().cast("string"), "Q4", "Q0"),
        (NUMBER.cast("float64"), 1.0, 1.5),
        (DAY.cast("datetime"), dt.datetime(2026, 1, 5), dt.datetime(2026, 1, 5, 12)),
    ],
    "dt.year": [(DAY.dt.year(), 2026, 20260)],
    "dt.month": [(DAY.dt.month(), 12, 13)],
    "dt.weekday": [(DAY.dt.weekday(), 7, 0)],
    "dt.hour": [(TIME.dt.hour(), 0, 24)],
    "dt.date": [(TIME.dt.truncate("1w").dt.date(), MONDAY, SUNDAY)],
    "dt.truncate": [
        (DAY.dt.truncate("1w"), MONDAY, SUNDAY),
        (DAY.dt.truncate("1mo"), dt.date(2026, 1, 1), dt.date(2026, 1, 31)),
        (DAY.dt.truncate("1q"), dt.date(2026, 4, 1), dt.date(2026, 2, 1)),
        (TIME.dt.truncate("1h"), dt.datetime(2026, 1, 5, 3), dt.datetime(2026, 1, 5, 3, 30)),
        (TIME.dt.truncate("1d"), MONDAY, dt.datetime(2026, 1, 5, 3)),
        (
            TIME.dt.convert_time_zone("Europe/Berlin").dt.truncate("1d"),
            dt.datetime(2026, 1, 5, tzinfo=BERLIN),
            dt.datetime(2026, 1, 5, tzinfo=dt.UTC),
        ),
    ],
    "dt.month_start": [(DAY.dt.month_start(), dt.date(2026, 1, 1), MONDAY)],
    "dt.month_end": [(DAY.dt.month_end(), dt.date(2026, 1, 31), MONDAY)],
    "dt.offset_by": [
        (DAY.dt.truncate("1w").dt.offset_by("-1d"), SUNDAY, MONDAY),
        (DAY.dt.truncate("1q").dt.offset_by("1mo"), dt.date(2026, 2, 1), dt.date(2026, 1, 1)),
    ],
    "dt.convert_time_zone": [
        (
            TIME.dt.truncate("1d").dt.convert_time_zone("Europe/Berlin"),
            dt.datetime(2026, 1, 5, 1, tzinfo=BERLIN),
            dt.datetime(2026, 1, 5, tzinfo=BERLIN),
        )
    ],
    "dt.replace_time_zone": [
        (
            TIME.dt.truncate("1d").dt.replace_time_zone("Europe/Berlin"),
            dt.datetime(2026, 1, 5, tzinfo=BERLIN),
            dt.datetime(2026, 1, 5, tzinfo=dt.UTC),
        )
    ],
}
EVERYWHERE = table("string", "int64", "date", "datetime_us", "float64")


@pytest.mark.parametrize("operation", NEVER)
def test_a_key_that_no_row_can_have_is_refused(operation):
    for expr, there, never in NEVER[operation]:
        assert not is_refused(expr, EVERYWHERE, there), text(node_of(expr))
        assert never is None or is_refused(expr, EVERYWHERE, never), text(node_of(expr))


def test_each_operation_has_a_case_or_gives_any_value():
    """What an operation gives is restricted, or true and false, or
    it may be any value of its type.
    """
    # as dt.month
    bounded = {
        f"dt.{part}" for part in ("day", "quarter", "week", "ordinal_day", "minute", "second")
    }
    truths = {
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "and",
        "or",
        "xor",
        "not",
    }
    truths |= {
        "is_null",
        "is_in",
        "str.contains",
        "str.starts_with",
        "str.ends_with",
        "str.matches",
    }
    free = {"divide", "floor_divide", "floor_divide_by", "modulo_by", "log", "log1p", "str.to_date"}
    free |= {"str.replace_matches", "str.strip_prefix", "str.strip_suffix"}
    free |= {f"dt.total_{unit}" for unit in ("days", "hours", "minutes", "seconds")}
    inner = {"concat", "window", "dt.clock", "ticks", "from_ticks", "later"}  # nobody types them
    assert set(OPERATIONS) == set(NEVER) | bounded | truths | free | inner
