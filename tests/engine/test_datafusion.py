"""DataFusion through Ibis: no cell makes a query fail, and neither a setting nor a
function of the session matters.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from concurrent.futures import ThreadPoolExecutor

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from datafusion_tables import stored
from dpframe import engine as rooms
from dpframe.engine.backends import backend_of
from dpframe.engine.stages import lower
from dpframe.errors import UnsupportedOperation, WrongType
from inside import question_of, step_of

datafusion = pytest.importorskip("datafusion")
ibis = pytest.importorskip("ibis")
from dpframe.engine.backends.datafusion import DIALECT  # noqa: E402
from dpframe.engine.backends.datafusion.compiler import DataFusionTotalCompiler  # noqa: E402 - needs both
from dpframe.engine.backends.datafusion.session import answered as answered_rows  # noqa: E402
from dpframe.engine.backends.datafusion.session import opened  # noqa: E402

INF, NAN, LEAST, MOST = math.inf, math.nan, -(2**63), 2**63 - 1
c = dp.col


@pytest.fixture
def backend():
    return ibis.datafusion.connect(datafusion.SessionContext())


def held(backend, **columns):
    """A table of Arrow columns in DataFusion, with "u", the number of a row."""
    columns = {
        name: column if isinstance(column, pa.Array) else pa.array(column)
        for name, column in columns.items()
    }
    rows = pa.table({"u": pa.array(range(len(next(iter(columns.values()))))), **columns})
    return backend.table(stored(backend.con, rows))


def named(exprs):
    return {f"r{i}": expr for i, expr in enumerate(exprs)}


def values(rows, *exprs):
    """The values of row expressions on each row, in the order of the column `u`."""
    names = named(exprs)
    step = step_of(dp.protect(rows, unit=dp.Rows(1)).with_columns(**names))
    columns = [step.table.columns[name].id for name in ("u", *names)]
    frame = lower(step, frozenset(columns))
    (read,) = backend_of(frame).collect([frame])
    return [read.sort(columns[0])[name].to_list() for name in columns[1:]]


def answered(query):
    """Raw totals. Neither planning the query nor running it may fail."""
    rooms.validate(question_of(query))
    return [np.asarray(x).tolist() for x in rooms.totals(question_of(query), 1).values]


# Columns of Arrow's types

_DAY = dt.date(2020, 2, 29)
_SECONDS = pa.array(
    [1_582_934_400, -62_135_596_801, 253_402_300_800, MOST, LEAST, None], pa.int64()
)


@pytest.mark.parametrize(
    ("column", "target", "kept"),
    [
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), "string", ["a", "b", None, "a"]),
        (pa.array(["a", None], pa.large_string()), "string", ["a", None]),
        (pa.array(["a", "b" * 40], pa.string_view()), "string", ["a", "b" * 40]),
        (pa.array([1.5, NAN, INF, -0.0], pa.float32()), "float64", [1.5, None, INF, 0.0]),
        (pa.array([1, 255], pa.uint8()), "int64", [1, 255]),
        (pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)), "float64", [1.5, None]),
        (pa.array([_DAY, None]), "date", [18321, None]),
        (pa.array([decimal.Decimal("0.07"), None], pa.decimal256(15, 15)), "float64", [0.07, None]),
        (_SECONDS.cast(pa.timestamp("s")), "datetime", [1_582_934_400_000_000, *[None] * 5]),
        (pa.array([5, MOST], pa.int64()).cast(pa.timestamp("ms")), "datetime", [5000, None]),
    ],
    ids=str,
)
def test_columns_are_held_in_one_form(backend, column, target, kept):
    """A time outside of the years 1 to 9999 is null, also where its
    ticks would wrap in a finer unit.
    """
    rows = held(backend, x=column)
    got = values(rows, dp.when(c("u") >= 0).then(c("x")))[0]
    assert got == kept
    assert str(got) == str(kept)  # 0.0 has no sign


@pytest.mark.parametrize(
    ("column", "line"),
    [
        (pa.array([2**64 - 1], pa.uint64()), "table.mutate(x=table['x'].cast('string'))"),
        (
            pa.array([decimal.Decimal("1.5")], pa.decimal128(38, 2)),
            "table.mutate(x=table['x'].cast('float64'))",
        ),
        (pa.array([1], pa.duration("us")), "table.mutate(x=table['x'].cast('int64'))"),
        (
            pa.array([1], pa.timestamp("us", "Europe/Berlin")),
            "table.mutate(x=table['x'].cast('timestamp'))",
        ),
        (pa.array([1], pa.timestamp("ns")), "table.mutate(x=table['x'].cast('timestamp(6)'))"),
    ],
    ids=str,
)
def test_other_types_are_refused_with_a_line_that_works(backend, column, line):
    table = held(backend, x=column)
    with pytest.raises(WrongType, match="cast it before") as refused:
        dp.protect(table, unit="u").group_by("x", max_groups=1).count_units()
    assert line in str(refused.value)
    cast = eval(line, {"table": table})
    assert answered(dp.protect(cast, unit="u").n_unique("x", max_rows=1)) == [[1]]


def test_a_frame_of_the_session_is_refused_with_lines_that_work():
    session = datafusion.SessionContext()
    frame = session.from_arrow(pa.table({"u": [1, 2], "x": [1.0, 2.0]}))
    with pytest.raises(UnsupportedOperation) as refused:
        dp.protect(frame, unit="u")
    first, then = str(refused.value).partition("before: ")[2].split(", then dp.protect(")
    names = {"ibis": ibis, "session": session, "frame": frame}
    eval(first, names)
    assert answered(
        dp.protect(eval(then.removesuffix(", ...)."), names), unit="u").count_units()
    ) == [[2]]


def test_texts_that_are_no_unicode_are_null(backend):
    raw = pa.array([b"a\0b", b"\xff", b"", "Düren".encode()], pa.binary()).view(pa.string())
    rows = held(backend, s=raw)
    s = c("s")
    expected = [
        ["a\0b", None, "", "Düren"],
        [3, None, 0, 5],
        [True, None, False, False],
        ["A\0B", None, "", "DÜREN"],
    ]
    got = values(
        rows,
        dp.when(c("u") >= 0).then(s),
        s.str.len_chars(),
        s.is_in(["a\0b"]),
        s.str.to_uppercase(),
    )
    assert got == expected


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "text", ["it's", 'a"b', "back\\slash", "%s", "{x}", "--", "/*", "a\0b", "\n", "$1", "ü\u0301"]
)
def test_a_constant_is_the_text_itself(backend, text):
    rows = held(backend, s=[text, text + "x", None])
    assert values(rows, c("s") == text, c("s").str.starts_with(text)) == [
        [True, False, None],
        [True, True, None],
    ]
    assert answered(
        dp.protect(rows, unit="u").group_by("s", keys=[text], max_groups=1).count_units()
    ) == [[1]]


_CODES = pa.DictionaryArray.from_arrays(
    pa.array([0, 5, 1, -1, None], pa.int8()), pa.array(["a", "b"]), safe=False
)
_DECIMALS = [(10**37).to_bytes(16, "little"), (250).to_bytes(16, "little")]


@pytest.mark.parametrize(
    ("column", "kept"),
    [
        (_CODES, ["a", None, "b", None, None]),
        (
            pa.Array.from_buffers(
                pa.decimal128(10, 2), 2, [None, pa.py_buffer(b"".join(_DECIMALS))]
            ),
            [None, 2.5],
        ),
        (pa.array([86_400_000, 86_400_001], pa.int64()).view(pa.date64()), [1, None]),
    ],
    ids=["code", "decimal", "day"],
)
def test_cells_that_do_not_hold_in_their_type_are_null(backend, column, kept):
    """A session takes over memory as it is.
    A code outside of its dictionary made a query fail after the charge.
    """
    rows = held(backend, x=column)
    assert values(rows, dp.when(c("u") >= 0).then(c("x")))[0] == kept
    people = len({cell for cell in kept if cell is not None})
    assert answered(dp.protect(rows, unit="x").count_units()) == [[people]]


# Arithmetic, in which an error would reveal that some row has such a cell


def test_whole_numbers_at_the_ends_of_64_bits(backend):
    cells = [LEAST, -1, 0, 1, MOST, None]
    rows, polars = (
        held(backend, i=pa.array(cells, pa.int64())),
        pl.DataFrame({"u": range(6), "i": cells}),
    )
    i = c("i")
    exprs = [
        i + i,
        i - 1,
        i * i,
        -i,
        i.abs(),
        i // 7,
        i % 7,
        i // 2**40,
        i % 2**40,
        i / (i - 1),
        i.cast("float64") / 0,
    ]
    aggregates = {f"n{k}": dp.count(f"r{k}") for k in range(len(exprs))}
    aggregates |= {f"s{k}": dp.sum(f"r{k}", bounds=(-9, 9)) for k in range(len(exprs))}
    got, want = (
        answered(
            dp.protect(frame, unit="u").with_columns(**named(exprs)).agg(max_rows=1, **aggregates)
        )
        for frame in (rows, polars)
    )
    assert dict(zip(aggregates, got, strict=True)) == dict(zip(aggregates, want, strict=True))


def test_zeros_are_one_key_and_one_unit(backend):
    rows = held(backend, z=[0.0, -0.0, NAN, None, 1.0])
    z = c("z")
    frame = dp.protect(rows, unit="u").with_columns(p=z * -1.0, q=-z)
    for name in ("z", "p", "q"):
        assert answered(frame.group_by(name, keys=[0.0], max_groups=1).count_units()) == [[2]]
        assert answered(frame.n_unique(name, max_rows=1)) == [[2]]
        assert answered(frame.filter(c(name) == 0).count_units()) == [[2]]
    assert answered(dp.protect(rows, unit="z").count_units()) == [[2]]


def test_the_least_of_infinities_is_an_infinity(backend):
    """DataFusion's own MIN of a group of infinities is 1.8e308, and its MAX of -inf is -1.8e308."""
    cells = [INF, INF, -INF, -INF, -0.0, 5e-324, -2.5, 1.5, None, NAN]
    expected = [(INF, INF), (-INF, -INF), (0.0, 5e-324), (-2.5, 1.5), (None, None)]
    rows = opened(held(backend, g=[i // 2 for i in range(10)], x=cells))
    rows = rows.select(g=rows.g, x=DIALECT.held(rows.x, nw.Float64()))
    ends = {"low": rows.x.min(), "high": rows.x.max()}
    grouped = answered_rows(rows.group_by("g").aggregate(**ends))
    windows = answered_rows(
        rows.mutate(**{k: end.over(ibis.window(group_by="g")) for k, end in ends.items()})
    )
    assert grouped.sort("g").select("low", "high").rows() == expected
    assert windows.sort("g").select("low", "high").rows() == [
        pair for pair in expected for _ in range(2)
    ]
    people = dp.protect(held(backend, g=[1, 2, 3], x=[INF, 1e308, -INF]), unit="g").per_unit(
        x=dp.first("x", by="u")
    )
    assert answered(people.filter(c("x") / 1e200 > 1e200).count_units()) == [[1]]
    assert answered(people.filter(c("x") / 1e200 < -1e200).count_units()) == [[1]]


# The user's session

_HOSTILE = {
    "datafusion.sql_parser.parse_float_as_decimal": "true",
    "datafusion.sql_parser.enable_ident_normalization": "false",
    "datafusion.sql_parser.dialect": "MySQL",
    "datafusion.execution.batch_size": "1",
    "datafusion.execution.time_zone": "+05:00",
}


def _wrong(name, many, output):
    """A function of the user's that raises, or gives nothing."""

    def fails(*_):
        raise ValueError("this function of the user's must not be called")

    return datafusion.udf(fails, [pa.int64()] * many, output, "immutable", name)


def test_settings_and_functions_of_the_session_have_no_say():
    table = {"x": [0.5, 2.5, NAN, 7.0], "s": ["a", "b", "a", None], "day": [_DAY, _DAY, None, _DAY]}

    def ask(rows):
        frame = dp.protect(rows, unit="u")
        whole = frame.agg(
            max_rows=2, n=dp.count(), s=dp.sum("x", bounds=(0, 5)), m=dp.median("x", bounds=(0, 5))
        )
        asked = frame.filter(c("x") > 0.5).group_by("s", keys=["a", "b"], max_rows=2)
        return [*answered(whole), *answered(asked.agg(n=dp.count(), d=dp.n_unique("day")))]

    plain = ask(held(ibis.datafusion.connect(datafusion.SessionContext()), **table))
    context = datafusion.SessionContext(datafusion.SessionConfig(_HOSTILE))
    backend = ibis.datafusion.connect(context)
    for name, many in (("abs", 1), ("md5", 1), ("greatest", 2), ("coalesce", 2), ("dpframe_0", 1)):
        context.register_udf(_wrong(name, many, pa.int64()))
    assert ask(held(backend, **table)) == plain


def test_a_table_that_another_session_cannot_read_is_refused_before_the_charge(tmp_path, backend):
    from datafusion.object_store import LocalFileSystem

    pl.DataFrame({"u": [1, 2], "x": [1.0, 2.0]}).write_parquet(tmp_path / "x.parquet")
    backend.con.register_object_store("lake://", LocalFileSystem(str(tmp_path)), host="there")
    backend.con.register_parquet("t", "lake://there/x.parquet")
    budget = dp.Budget(epsilon=1)
    query = dp.protect(backend.table("t"), unit="u", budget=budget).sum(
        "x", bounds=(0, 5), max_rows=1
    )
    with pytest.raises(UnsupportedOperation, match=r"object store.*table\.to_polars\(\)"):
        query.release(epsilon=1)
    assert budget.spent.epsilon == 0


def test_nothing_of_dpframe_stays_in_the_session(backend):
    rows = held(backend, x=[1.0, 2.0], k=["a", "b"])
    before = set(backend.con.catalog().schema().names())
    public = pl.DataFrame({"k": ["a", "b"], "w": [1.0, 3.0]})
    frame = dp.protect(rows, unit="u").join(public, on="k").with_columns(y=c("x") * c("w"))
    assert answered(frame.filter(c("y") >= 1).count_units()) == [[2]]
    keys = [*(f"k{i}" for i in range(500)), "a"]
    assert (
        sum(
            answered(
                dp.protect(rows, unit="u").group_by("k", keys=keys, max_groups=1).count_units()
            )[0]
        )
        == 1
    )
    assert set(backend.con.catalog().schema().names()) == before


def test_steps_of_the_user_come_first(backend):
    rows = held(backend, x=[1, 2, 3, 4], s=["a", "b", "a", "b"])
    steps = (
        rows.filter(rows.x > 1)
        .mutate(y=rows.x * 2.5, S=rows.s.upper())
        .join(ibis.memtable({"S": ["A", "B"], "w": [1, 10]}), "S")
    )
    frame = dp.protect(steps, unit="u")
    assert answered(frame.group_by("w", keys=[1, 10], max_groups=1).count_units()) == [[1, 2]]


@pytest.mark.long
def test_two_threads_may_share_a_session(backend):
    rows = held(backend, x=[float(i % 7) for i in range(500)], g=[f"g{i % 3}" for i in range(500)])
    query = (
        dp.protect(rows, unit="u")
        .group_by("g", keys=["g0", "g1", "g2"], max_rows=1)
        .sum("x", bounds=(0, 5))
    )
    one = answered(query)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: answered(query), range(4))) == [one] * 4


def test_types_are_those_of_datafusion_where_ibis_states_others(backend):
    """Ibis states a float for i / 2, a date for the day of a time, and 10 digits
    for d + 1; DataFusion has others.

    A query failed after the charge on a whole number that is no float, and two decimals could
    become one unit.
    """
    whole, times = (
        [2**62 + 2, 2**62 + 4, None],
        pa.array([0, 86_400_000_001, None], pa.timestamp("us")),
    )
    exact = pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.25"), None], pa.decimal128(10, 2))
    rows = held(backend, i=whole, t=times, d=exact)
    steps = rows.mutate(half=rows.i / 2, day=rows.t.date(), more=rows.d + 1)
    assert [str(steps.schema()[name]) for name in ("half", "day", "more")] == [
        "float64",
        "date",
        "decimal(10, 2)",
    ]
    always = c("u") >= 0
    got = values(steps, *(dp.when(always).then(c(name)) for name in ("half", "day")))
    assert got == [[2**61 + 1, 2**61 + 2, None], [0, 86_400_000_000, None]]
    for name, people in (("half", 2), ("day", 2)):
        assert answered(dp.protect(steps, unit=name).count_units()) == [[people]]
    with pytest.raises(WrongType, match="a float does not hold more than 15 digits"):
        dp.protect(steps, unit="more")


def test_an_operation_that_could_fail_is_refused_before_the_charge(backend):
    rows = held(backend, x=[1.0, 2.0])
    with pytest.raises(
        UnsupportedOperation, match=r"DataFusion: \w+ is refused, because it could fail on a cell"
    ):
        DataFusionTotalCompiler().written(rows.mutate(y=rows.x.exp()))
