"""Row operations give the values of Python, null where there is no value, and fail on no value."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.engine.stages import lower
from dpframe.engine.stages.lowering import Lowering
from dpframe.plan.nodes import domain
from inside import node_of, step_of

INT = (-(2**63), 2**63 - 1)
INTEGERS = {
    name: (0, 2 ** int(name[4:]) - 1)
    if name[0] == "U"
    else (-(2 ** (int(name[3:]) - 1)), 2 ** (int(name[3:]) - 1) - 1)
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}
FLOATS = st.one_of(
    st.none(),
    st.floats(),
    st.sampled_from(
        [
            0.0,
            -0.0,
            0.5,
            -0.5,
            127.5,
            128.0,
            -128.5,
            -129.0,
            2.0**53,
            2.0**63,
            -(2.0**63),
            2.0**64,
            1.7e308,
        ]
    ),
    st.integers(-300, 300).map(float),
)


def integers(low, high):
    """Whole numbers, often near an end of the range."""
    near = st.integers(0, 3)
    ends = st.one_of(near.map(lambda i: low + i), near.map(lambda i: high - i), st.integers(-3, 3))
    return st.one_of(st.none(), ends.filter(lambda v: low <= v <= high), st.integers(low, high))


def computed(frame: pl.DataFrame, expr: dp.Expr) -> tuple[list, object]:
    """The values of an expression on each row, as the engine computes them, and
    the domain that the plan states.
    """
    protected = dp.protect(frame, unit=dp.Rows(1)).with_columns(result=expr)
    step = step_of(protected)
    column = step.table.columns["result"]
    made = lower(step, {column.id}).to_native().collect()[column.id].to_list()
    known = column.domain
    for value in made:
        assert value is not None or known.nullable
        assert not (isinstance(value, float) and math.isnan(value))
        if isinstance(value, (int, float)) and known.bounds is not None:
            assert known.bounds.lower <= value <= known.bounds.upper
    return made, known


def _same(made, expected):
    assert len(made) == len(expected)
    for got, want in zip(made, expected, strict=True):
        assert type(got) is type(want), (made, expected)
        assert got == want, (made, expected)


def _number(x):
    """A float as the engine holds it: NaN is missing."""
    return None if x is None or math.isnan(x) else x


def _float_op(op, a, b):
    if a is None or b is None:
        return None
    try:
        return _number(op(a, b))
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return None


def _int_op(op, a, b):
    if a is None or b is None or not (INT[0] <= a <= INT[1] and INT[0] <= b <= INT[1]):
        return None
    return op(a, b)


OPS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
FAST = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["Int8", "Int64", "UInt32", "UInt64"])
@FAST
@given(st.data())
def test_integer_arithmetic_is_exact_or_null(name, data):
    pairs = data.draw(
        st.lists(
            st.tuples(integers(*INTEGERS[name]), integers(*INTEGERS[name])), min_size=1, max_size=20
        )
    )
    frame = pl.DataFrame(pairs, {"a": getattr(pl, name), "b": getattr(pl, name)}, orient="row")
    for op in OPS.values():
        made, _ = computed(frame, op(dp.col("a"), dp.col("b")))
        for got, (a, b) in zip(made, pairs, strict=True):
            want = _int_op(op, a, b)
            if want is None or not INT[0] <= want <= INT[1]:
                assert got is None
            else:  # close to the end of int64 the result may be given up, never wrong
                assert got == want or (got is None and abs(want) > 9.19e18)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["Int8", "Int16", "Int64", "UInt8", "UInt64"])
@FAST
@given(st.data())
def test_operations_on_one_integer(name, data):
    values = data.draw(st.lists(integers(*INTEGERS[name]), min_size=1, max_size=20))
    by = data.draw(st.sampled_from([1, 2, 3, 7, 2**31, 2**61]))
    frame = pl.DataFrame({"a": pl.Series(values, dtype=getattr(pl, name))})
    a = dp.col("a")
    inside = [v if v is not None and INT[0] <= v <= INT[1] else None for v in values]
    _same(computed(frame, a // by)[0], [None if v is None else v // by for v in inside])
    _same(computed(frame, a % by)[0], [None if v is None else v % by for v in inside])
    _same(computed(frame, -a)[0], [None if v in (None, INT[0]) else -v for v in inside])
    _same(computed(frame, a.abs())[0], [None if v in (None, INT[0]) else abs(v) for v in inside])
    _same(computed(frame, a.is_null())[0], [v is None for v in values])
    _same(computed(frame, a.fill_null(5))[0], [5 if v is None else v for v in values])
    _same(
        computed(frame, a.is_in([0, 1, -3, 2**63 - 1, 2**64 - 1]))[0],
        [None if v is None else v in (0, 1, -3, INT[1], 2**64 - 1) for v in values],
    )
    low, high = data.draw(
        st.sampled_from(
            [(-5, 5), (0, 10**6), (-(2**63), 2**64 - 1), (None, 3), (3, None), (-0.5, 3.5)]
        )
    )
    first, last = INTEGERS[name]
    below = first if low is None else min(max(math.ceil(low), first), last)
    above = last if high is None else min(max(math.floor(high), first), last)
    _same(
        computed(frame, a.clip(low, high))[0],
        [None if v is None else min(max(v, below), above) for v in values],
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", [*INTEGERS, "Float64", "Boolean", "String"])
@FAST
@given(st.data())
def test_integers_are_cast_or_null(target, data):
    name = data.draw(st.sampled_from(sorted(INTEGERS)))
    values = data.draw(st.lists(integers(*INTEGERS[name]), min_size=1, max_size=20))
    frame = pl.DataFrame({"a": pl.Series(values, dtype=getattr(pl, name))})
    made, _ = computed(frame, dp.col("a").cast(target.lower()))
    if target in INTEGERS:
        low, high = INTEGERS[target]
        expected = [v if v is not None and low <= v <= high else None for v in values]
    else:
        kinds = {"Float64": float, "Boolean": bool, "String": str}
        expected = [None if v is None else kinds[target](v) for v in values]
    _same(made, expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", INTEGERS)
@FAST
@given(values=st.lists(FLOATS, min_size=1, max_size=20))
def test_floats_are_cut_to_integers_or_null(target, values):
    low, high = INTEGERS[target]
    frame = pl.DataFrame({"a": pl.Series(values, dtype=pl.Float64)})
    expected = []
    for v in map(_number, values):
        whole = None if v is None or math.isinf(v) else math.trunc(v)
        expected.append(whole if whole is not None and low <= whole <= high else None)
    _same(computed(frame, dp.col("a").cast(target.lower()))[0], expected)


@FAST
@given(pairs=st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=20))
def test_float_arithmetic_has_no_nan(pairs):
    frame = pl.DataFrame(pairs, {"a": pl.Float64, "b": pl.Float64}, orient="row")
    clean = [(_number(a), _number(b)) for a, b in pairs]
    a, b = dp.col("a"), dp.col("b")
    for op in OPS.values():
        _same(computed(frame, op(a, b))[0], [_float_op(op, x, y) for x, y in clean])
    divided = [
        None if x is None or not y else _float_op(lambda p, q: p / q, x, y) for x, y in clean
    ]
    _same(computed(frame, a / b)[0], divided)
    _same(computed(frame, a.abs())[0], [None if x is None else abs(x) for x, _ in clean])
    _same(
        computed(frame, a.sqrt())[0],
        [None if x is None or x < 0 else math.sqrt(x) for x, _ in clean],
    )
    _same(
        computed(frame, a.clip(-1, 2.5))[0],
        [None if x is None else min(max(x, -1.0), 2.5) for x, _ in clean],
    )
    _same(computed(frame, a.fill_null(7))[0], [7.0 if x is None else x for x, _ in clean])
    _same(computed(frame, a.is_null())[0], [x is None for x, _ in clean])
    whole = [None if x is None else x if math.isinf(x) else float(math.floor(x)) for x, _ in clean]
    _same(computed(frame, a.floor())[0], whole)


@FAST
@given(pairs=st.lists(st.tuples(FLOATS, integers(*INT)), min_size=1, max_size=20))
def test_comparisons_and_logic_know_three_values(pairs):
    frame = pl.DataFrame(pairs, {"x": pl.Float64, "i": pl.Int64}, orient="row")
    clean = [(_number(x), i) for x, i in pairs]
    x, i = dp.col("x"), dp.col("i")
    for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        made, _ = computed(frame, getattr(x, name)(0.5))
        _same(made, [None if v is None else getattr(v, name)(0.5) for v, _ in clean])
        made, _ = computed(frame, getattr(i, name)(7))
        _same(made, [None if v is None else getattr(v, name)(7) for _, v in clean])
    positive, small = (
        [None if v is None else v > 0 for v, _ in clean],
        [None if v is None else v < 5 for _, v in clean],
    )
    both = [
        False if p is False or q is False else None if p is None or q is None else True
        for p, q in zip(positive, small, strict=True)
    ]
    either = [
        True if p is True or q is True else None if p is None or q is None else False
        for p, q in zip(positive, small, strict=True)
    ]
    _same(computed(frame, (x > 0) & (i < 5))[0], both)
    _same(computed(frame, (x > 0) | (i < 5))[0], either)
    _same(computed(frame, ~(x > 0))[0], [None if p is None else not p for p in positive])
    chosen = [
        v
        if p is True and v is not None
        else None
        if p is True
        else (None if k is None else float(k))
        for p, (v, k) in zip(positive, clean, strict=True)
    ]
    _same(computed(frame, dp.when(x > 0).then(x).otherwise(i))[0], chosen)
    _same(
        computed(frame, dp.when(x > 0).then(i))[0],
        [k if p is True else None for p, (_, k) in zip(positive, clean, strict=True)],
    )


TEXTS = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.sampled_from(
        [
            "1",
            "-7",
            "+5",
            " 1",
            "1 ",
            "1_0",
            "0x1",
            "1e400",
            "-1e400",
            "nan",
            "inf",
            "128",
            "9" * 25,
            "٣",
            "",
            "2020-02-30",
        ]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.dates().map(str),
    st.datetimes().map(str),
    st.datetimes().map(dt.datetime.isoformat),
)


@settings(max_examples=20, deadline=None)
@given(values=st.lists(TEXTS, min_size=1, max_size=20))
def test_no_text_makes_a_conversion_fail(values):
    convert(values)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(values=st.lists(TEXTS, min_size=1, max_size=20))
def test_no_text_makes_a_conversion_fail_at_length(values):
    convert(values)


def convert(values):
    """Every conversion and function of texts, held against Python's."""
    frame = pl.DataFrame({"a": pl.Series(values, dtype=pl.String)})
    for name, (low, high) in INTEGERS.items():
        for got, text in zip(
            computed(frame, dp.col("a").cast(name.lower()))[0], values, strict=True
        ):
            assert got is None or (low <= got <= high and got == int(text))
    for got, text in zip(computed(frame, dp.col("a").cast("float64"))[0], values, strict=True):
        assert got is None or Fraction(float(text) if math.isfinite(got) else 0) == Fraction(
            got if math.isfinite(got) else 0
        )
    for target in (
        "float32",
        "date",
        "datetime",
        pl.Datetime("ms"),
        pl.Datetime("ns"),
        pl.Enum(["1", ""]),
    ):
        computed(frame, dp.col("a").cast(target))
    known = [v for v in values if v is not None]
    lengths = [None if v is None else len(v) for v in values]
    _same(computed(frame, dp.col("a").str.len_chars())[0], lengths)
    part = known[0][:2] if known else "x"
    contains = dp.col("a").str.contains(part, literal=True)
    _same(computed(frame, contains)[0], [None if v is None else part in v for v in values])
    _same(
        computed(frame, dp.col("a").str.starts_with(part))[0],
        [None if v is None else v.startswith(part) for v in values],
    )
    _same(
        computed(frame, dp.col("a").str.ends_with(part))[0],
        [None if v is None else v.endswith(part) for v in values],
    )
    _same(
        computed(frame, dp.col("a").str.head(3))[0], [None if v is None else v[:3] for v in values]
    )
    for made in (dp.col("a").str.to_lowercase(), dp.col("a").str.to_uppercase()):
        computed(frame, made)


@FAST
@given(
    values=st.lists(
        st.one_of(st.none(), st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))),
        max_size=20,
    )
)
def test_parts_of_a_time(values):
    frame = pl.DataFrame({"t": pl.Series(values, dtype=pl.Datetime("us"))}).with_columns(
        d=pl.col("t").dt.date()
    )
    parts = {
        "year": lambda v: v.year,
        "month": lambda v: v.month,
        "day": lambda v: v.day,
        "weekday": lambda v: v.isoweekday(),
        "ordinal_day": lambda v: v.timetuple().tm_yday,
    }
    for name, part in parts.items():
        expected = [None if v is None else part(v) for v in values]
        for column in ("t", "d"):
            _same(computed(frame, getattr(dp.col(column).dt, name)())[0], expected)
    for name in ("hour", "minute"):
        _same(
            computed(frame, getattr(dp.col("t").dt, name)())[0],
            [None if v is None else getattr(v, name) for v in values],
        )
    _same(
        computed(frame, dp.col("t").cast("date"))[0],
        [None if v is None else v.date() for v in values],
    )
    _same(
        computed(frame, dp.col("d").cast("string"))[0],
        [None if v is None else f"{v.date():%Y-%m-%d}".rjust(10, "0") for v in values],
    )


def test_facts_of_an_expression_refuse_what_is_not_row_wise():
    frame = dp.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows(1))
    assert not {"sum", "mean", "max", "shift", "cum_sum", "over", "rank", "map"} & set(
        dir(dp.col("a"))
    )
    assert domain(node_of(dp.col("a")), step_of(frame).table, "test").bounds is None


BOUNDED = {
    "log": lambda x: x.log(),
    "log10": lambda x: x.log(10),
    "log1p": lambda x: x.log1p(),
    "exp": lambda x: x.exp(),
    "round": lambda x: x.round(),
    "round to two": lambda x: x.round(2),
    "sign": lambda x: x.sign(),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "none": lambda x: x**0,
    "root": lambda x: x.sqrt(),
}


LIMITS = [(-2.5, 3.25), (1.0, 500.0), (0.001, 0.3), (0.0, 50.0), (-700.5, 709.5), (-3.0, 0.0)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("function", BOUNDED.values(), ids=BOUNDED)
@pytest.mark.parametrize("limits", LIMITS)
def test_values_lie_in_the_bounds_that_follow_from_a_clip(function, limits):
    """`computed` holds each value against them.
    Both ends are among the values, and so are floats beside them.
    """
    low, high = limits
    near = [
        math.nextafter(low, high),
        math.nextafter(high, low),
        (low + high) / 2,
        low * 0.7 + high * 0.3,
        0.125,
        1.0,
    ]
    made, domain_of_made = computed(
        pl.DataFrame({"x": [low, high, *near]}), function(dp.col("x").clip(low, high))
    )
    bounds = domain_of_made.bounds
    if bounds is not None:
        values = [value for value in made if value is not None]
        assert max(values) <= bounds.upper
        assert (
            math.isclose(max(values), bounds.upper, rel_tol=1e-12)
            or high > 0 > low
            or bounds == (-1, 1)
        )


def test_bounds_of_a_logarithm_are_those_of_its_ends():
    _, known = computed(pl.DataFrame({"x": [1.0, 500.0]}), dp.col("x").clip(0, 500).log1p())
    assert known.bounds.lower == 0
    assert known.bounds.upper == pytest.approx(math.log(501), rel=1e-15)
    assert known.bounds.upper >= math.log(501)
    _, open_ends = computed(pl.DataFrame({"x": [1.0]}), dp.col("x").clip(0, 500).log())
    assert open_ends.bounds is None  # of 0 there is no logarithm
    assert open_ends.nullable
    _, whole = computed(pl.DataFrame({"x": [1, 5]}), dp.col("x").clip(-4, 3) ** 2)
    assert whole.bounds == (0, 16)


def test_bounds_of_a_truncated_time_hold_the_start_of_its_window():
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=n) for n in range(0, 800, 13)]
    limits = dt.date(2024, 2, 10), dt.date(2025, 11, 3)
    for every in ("1w", "1mo", "1q", "1y", "10d"):
        made, known = computed(
            pl.DataFrame({"t": days}), dp.col("t").clip(*limits).dt.truncate(every)
        )
        epoch = dt.date(1970, 1, 1)
        assert all(known.bounds.lower <= (day - epoch).days <= known.bounds.upper for day in made)
        assert known.bounds.upper == (limits[1] - epoch).days


def test_many_expressions_nest_as_deep_as_the_deepest_of_them():
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [2.0]}), unit="u", budget=dp.Budget(epsilon=1))
    table = step_of(frame).table

    def depth(*exprs):
        live = {column.id for column in table.columns.values()}
        here = Lowering(table, lower(step_of(frame), live), live)
        here.exprs(node_of(expr) for expr in exprs)
        return len(here._levels)

    logs = [(dp.col("x") + i).log() for i in range(5)]
    assert depth(*logs) == depth(logs[0]) > 1
    assert depth(logs[0] + logs[1]) == depth(logs[0])
    assert depth(logs[0].exp()) > depth(logs[0])  # the exponential reads the logarithm
