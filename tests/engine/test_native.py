"""A table has equal totals as a table of pandas, Polars and PyArrow, for all types."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.engine.totals import _nested
from dpframe.errors import DpFrameError
from inside import question_of
from strategies import KINDS, answer

INF, NAN = float("inf"), float("nan")
_INTS = {
    name: [
        *([0] if name[0] == "U" else [-(2 ** (int(name.lstrip("UInt")) - 1)), -1]),
        1,
        1,
        2,
        None,
    ]
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}
_TOP = {
    name: [*values, 2 ** (int(name.lstrip("UInt")) - (name[0] == "I")) - 1]
    for name, values in _INTS.items()
}
COLUMNS = {
    **{name: pl.Series(values, dtype=getattr(pl, name)) for name, values in _TOP.items()},
    "Float32": pl.Series([0.0, -0.0, 1.5, 1.5, INF, -INF, NAN, None], dtype=pl.Float32),
    "Float64": pl.Series(
        [0.0, -0.0, 0.1, 0.1, INF, -INF, NAN, None, 1e300, 5e-324], dtype=pl.Float64
    ),
    "Boolean": pl.Series([True, True, False, None]),
    "Decimal": pl.Series(
        [Decimal("1.50"), Decimal("1.50"), Decimal("-7.25"), None], dtype=pl.Decimal(10, 2)
    ),
    "String": pl.Series(["", "a", "a", "ü", "NaN", None]),
    "Categorical": pl.Series(["b", "a", "a", None], dtype=pl.Categorical),
    "Enum": pl.Series(["b", "a", "a", None], dtype=pl.Enum(["c", "b", "a"])),
    "Date": pl.Series(
        [dt.date(1, 1, 1), dt.date(2020, 2, 29), dt.date(2020, 2, 29), dt.date(9999, 12, 31), None]
    ),
    **{
        f"Datetime {unit}": pl.Series(
            [dt.datetime(1970, 1, 1), dt.datetime(2020, 2, 29, 1, 2, 3), None, None]
        ).cast(pl.Datetime(unit))
        for unit in ("ms", "us", "ns")
    },
    "Datetime tz": pl.Series([dt.datetime(2020, 2, 29, 1, 2, 3), None])
    .cast(pl.Datetime("us"))
    .dt.replace_time_zone("Europe/Berlin"),
}
NUMBERS = [name for name in COLUMNS if name[:3] in ("Int", "UIn", "Flo", "Boo", "Dec")]


def _brought(frame: pl.DataFrame) -> dict[str, object]:
    """One table in every form in which a user may hold it."""
    arrow = frame.to_arrow()
    forms = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pyarrow": arrow,
        "chunks": pa.concat_tables([arrow.slice(0, 1), arrow.slice(1)]),
        "pandas arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
    }
    # A missing value changes the type of a plain pandas column, and pandas has no date and no
    # decimal of its own.
    odd = any(isinstance(dtype, (pl.Date, pl.Decimal)) for dtype in frame.dtypes)
    if not odd and (frame["x"].null_count() == 0 or frame["x"].dtype.is_float()):
        forms["pandas"] = frame.to_pandas()
    return forms


def _same(frame, ask):
    """The totals, after a check that every form of the table has them."""
    found = {}
    for form, table in _brought(frame).items():
        query = ask(dp.protect(table, unit="u"))
        found[form] = [
            {tuple(_plain(part) for part in key): value for key, value in total.items()}
            for total in answer(query, 9)
        ]
    first = found["polars"]
    for form, totals in found.items():
        assert totals == first, form
    return first


def _plain(value):
    return value.isoformat() if isinstance(value, (dt.date, dt.datetime)) else value


@pytest.mark.one_in(3)
# whose type Arrow does not know
@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "Enum"])
@pytest.mark.parametrize("rows", ["all", "one", "none"])
def test_columns_of_every_type_are_keys_alike(name, rows):
    column = COLUMNS[name].head({"all": 99, "one": 1, "none": 0}[rows])
    frame = pl.DataFrame(
        {"u": [i % 3 for i in range(len(column))], "x": column}, {"u": pl.Int64, "x": column.dtype}
    )
    found = _same(frame, lambda f: f.group_by("x", max_groups=2).count_units())[0]
    known = column.fill_nan(None).drop_nulls() if column.dtype.is_float() else column.drop_nulls()
    if name != "Boolean":  # whose keys are public
        assert len(found) <= known.n_unique()


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_type_have_public_keys(name):
    column = COLUMNS[name]
    frame = pl.DataFrame({"u": range(len(column)), "x": column})
    known = column.fill_nan(None).drop_nulls() if column.dtype.is_float() else column.drop_nulls()
    keys = [
        key
        for key in known.unique(maintain_order=True).to_list()
        if not (isinstance(key, float) and abs(key) == INF)
    ]
    if name.startswith("Float"):
        keys = list(dict.fromkeys(key + 0.0 for key in keys))
    (counted,) = _same(
        frame, lambda f: f.group_by("x", keys=[*keys, None], max_groups=1).count_units()
    )
    expected = {_plain(key): sum(v == key for v in known.to_list()) for key in keys}
    if name == "Decimal":
        expected = {float(k): v for k, v in expected.items()}
    assert counted == {**{(k,): v for k, v in expected.items()}, (None,): len(column) - len(known)}


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "Decimal"])
def test_columns_of_every_type_identify_units_alike(name):
    column = COLUMNS[name]
    frame = pl.DataFrame({"u": column, "x": [1.5] * len(column)})
    known = column.fill_nan(None).drop_nulls() if column.dtype.is_float() else column.drop_nulls()
    (units, rows) = _same(frame, lambda f: f.agg(units=dp.count_units(), n=dp.count(), max_rows=9))
    assert units == {(): known.n_unique()}
    assert rows == {(): len(known)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("bounds", [(-3, 10), (0.25, 1.75), (-1e270, 1e270), (2**40, 2**41)])
def test_numbers_of_every_type_add_up_alike(name, bounds):
    column = COLUMNS[name]
    frame = pl.DataFrame({"u": range(len(column)), "x": column})
    whole = name[0] in "IU" or name == "Boolean"
    if whole and bounds == (0.25, 1.75):
        bounds = (1, 1)

    def ask(f):
        return f.agg(
            max_rows=1,
            s=dp.sum("x", bounds=bounds),
            t=dp.sum("x", unit_bounds=bounds),
            n=dp.count("x"),
        )

    totals = _same(frame, ask)
    _same(frame, lambda f: f.mean("x", bounds=bounds, max_rows=1))
    known = [v for v in column.to_list() if v is not None and v == v]
    assert totals[-1] == {(): len(known) * 2**20}
    low, high = (max(b, 0) for b in bounds) if name == "Boolean" else bounds
    exact = sum(
        min(max(float(v), low), high if name != "Boolean" else max(min(high, 1), low))
        for v in known
    )
    paid = question_of(ask(dp.protect(frame, unit="u"))).allotments[0].total
    assert float(totals[0][()] * paid.unit) == pytest.approx(
        exact, rel=1e-6, abs=1e-6 + len(known) * float(paid.grid.step)
    )


# pandas


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, None], dtype="Int8"),
        pd.Series([1, 2, None], dtype="UInt64"),
        pd.Series([1, 2, None], dtype="Float32"),
        pd.Series([1, 2, None], dtype="float64"),
        pd.Series([1, 2, None], dtype="int64[pyarrow]"),
        pd.Series([1, 2, None], dtype="double[pyarrow]"),
        pd.Series([1, 2, np.nan], dtype="float16"),
        pd.Series(pd.Categorical([1, 2, None])),
        pd.Series([Decimal(1), Decimal(2), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    ],
    ids=lambda s: str(s.dtype),
)
def test_numbers_of_pandas_types_add_up(column):
    frame = pd.DataFrame({"u": [1, 2, 3], "x": column})
    query = dp.protect(frame, unit="u").sum("x", bounds=(0, 10), max_rows=1)
    assert answer(query)[0][()] * question_of(query).allotments[0].total.unit == 3


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b", "a", None]),
        pd.Series(["a", "b", "a", None], dtype=object),
        pd.Series(["a", "b", "a", float("nan")], dtype=object),
        pd.Series(["a", "b", "a", pd.NA], dtype=object),
        pd.Series(["a", "b", "a", None], dtype="string"),
        pd.Series(["a", "b", "a", None], dtype="string[python]"),
        pd.Series(["a", "b", "a", None], dtype=pd.ArrowDtype(pa.string())),
        pd.Series(
            ["a", "b", "a", None], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
        ),
        pd.Series(pd.Categorical(["a", "b", "a", None], categories=["z", "b", "a"], ordered=True)),
        pd.Series(
            pd.Categorical(
                ["a", "b", "a", None], categories=pd.Index(["z", "b", "a"], dtype=object)
            )
        ),
    ],
    ids=lambda s: f"{s.dtype!r}"[:40],
)
def test_texts_of_pandas_types_are_keys(column):
    frame = pd.DataFrame({"u": range(4), "k": column})
    query = (
        dp.protect(frame, unit="u").group_by("k", keys=["b", "a", None], max_groups=1).count_units()
    )
    assert answer(query) == [{("b",): 1, ("a",): 2, (None,): 1}]


def test_the_codes_of_categories_do_not_matter():
    """Codes follow the order of appearance; keys are what the user sees."""
    for order in (["a", "b", "c"], ["c", "b", "a"], ["c", "x", "a", "b"]):
        frame = pd.DataFrame(
            {"u": range(3), "k": pd.Categorical(["a", "b", "a"], categories=order)}
        )
        for table in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame)):
            found = answer(
                dp.protect(table, unit="u")
                .group_by("k", keys=["b", "a"], max_groups=1)
                .count_units()
            )
            assert found == [{("b",): 1, ("a",): 2}]


# Columns that nobody asks for


class _Odd:
    def __str__(self):
        raise RuntimeError("a cell was read")

    __repr__ = __str__


_PANDAS_ODD = {
    "lists": pd.Series([[1], [2, 3], None], dtype=object),
    "dicts": pd.Series([{"a": 1}, {}, None], dtype=object),
    "mixed": pd.Series([1, "a", b"b"], dtype=object),
    "odd": pd.Series([_Odd(), _Odd(), 3], dtype=object),
    "bytes": pd.Series([b"\xff", b"", None], dtype=object),
    "period": pd.Series(pd.period_range("2020", periods=3)),
    "interval": pd.Series(pd.interval_range(0, 3)),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 0, 1])),
    "complex": pd.Series([1j, 2, 3]),
    "timedelta": pd.Series(pd.to_timedelta([1, 2, None])),
    "intervals": pd.Series(pd.cut([1, 2, 3], 2)),
    "arrow lists": pd.Series([[1], None, []], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "null": pd.Series([None] * 3, dtype=pd.ArrowDtype(pa.null())),
}


@pytest.mark.parametrize("name", _PANDAS_ODD)
def test_unused_pandas_columns_never_matter(name):
    frame = pd.DataFrame({"u": [1, 1, 2], "odd": _PANDAS_ODD[name], "x": [1, 2, 3]})
    for table in (
        frame,
        frame.set_axis(["u", "double", "x"], axis=1).assign(v=0).rename(columns={"v": "double"}),
    ):
        protected = dp.protect(table, unit="u")
        query = protected.filter(dp.col("x") > 0).agg(
            max_rows=1, s=dp.sum("x", bounds=(0, 5)), units=dp.count_units()
        )
        repr(protected)
        protected._repr_html_()
        assert answer(query)[1] == {(): 2}


_POLARS_ODD = {
    "lists": pl.Series([[1], [2, 3], None]),
    "array": pl.Series([[1, 2], [2, 3], None], dtype=pl.Array(pl.Int8, 2)),
    "structs": pl.Series([{"a": 1}, {"a": 2}, None]),
    "objects": pl.Series([_Odd(), _Odd(), _Odd()], dtype=pl.Object),
    "bytes": pl.Series([b"\xff", b"", None]),
    "time": pl.Series([dt.time(1), dt.time(2), None]),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(2), None]),
    "null": pl.Series([None, None, None]),
    "int128": pl.Series([1, 2, None], dtype=pl.Int128),
}


@pytest.mark.parametrize("name", _POLARS_ODD)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "pandas"])
def test_unused_polars_columns_never_matter(name, kind):
    frame = pl.DataFrame({"u": [1, 1, 2], "odd": _POLARS_ODD[name], "x": [1, 2, 3]})
    if name in ("objects", "int128") and kind == "pyarrow":
        pytest.skip("Arrow has no such type")
    table = {"polars": lambda: frame, "lazy": frame.lazy, "pyarrow": frame.to_arrow}[kind]()
    protected = dp.protect(table, unit="u")
    query = protected.drop_nulls("x").agg(
        max_rows=1, s=dp.sum("x", bounds=(0, 5)), units=dp.count_units()
    )
    repr(protected)
    assert answer(query)[1] == {(): 2}
    assert answer(dp.protect(table, unit=dp.Rows(1)).count()) == [{(): 3}]


def test_unused_columns_with_the_same_name_never_matter():
    arrow = pa.table([pa.array([1, 2]), pa.array([1, 2]), pa.array([3, 4])], names=["a", "a", "u"])
    for table in (arrow, pd.DataFrame([[1, 1, 3], [2, 2, 4]], columns=["a", "a", "u"])):
        assert answer(dp.protect(table, unit="u").count_units()) == [{(): 2}]
        with pytest.raises(DpFrameError, match="'a'"):
            dp.protect(table, unit="u").count("a", max_rows=1)


@pytest.mark.parametrize(
    "names",
    [("n", "N"), ("k0", "K0"), ("t0", "q0"), ("u0", "v0"), ("h", "r"), ("c", "w"), ("a", "m0")],
)
def test_no_name_of_the_user_meets_one_of_ours(kind, names):
    first, second = names
    frame = pl.DataFrame({"unit": [1, 1, 2], first: [1, 1, 2], second: [5.0, 6.0, 7.0]})
    table = {
        "pandas": frame.to_pandas,
        "polars": lambda: frame,
        "lazy": frame.lazy,
        "pyarrow": frame.to_arrow,
    }[kind]()
    query = (
        dp.protect(table, unit="unit")
        .group_by(first, keys=[1, 2], max_groups=1, max_rows_per_group=2)
        .agg(n_=dp.count(), s=dp.sum(second, bounds=(0, 8)))
    )
    rows, total = answer(query)
    assert rows == {(1,): 2, (2,): 1}
    unit = question_of(query).allotments[1].total.unit
    assert {key: value * unit for key, value in total.items()} == {(1,): 11, (2,): 7}


def test_the_limit_of_calls_is_as_it_was_found():
    """Engines that run within each other, as a reading within a release, and
    the last to end is not the first.
    """
    found = sys.getrecursionlimit()
    for order in ([1, 0], [0, 1]):
        running = [_nested(), _nested()]
        for one in running:
            one.__enter__()
        for place in order:
            running[place].__exit__(None, None, None)
        assert sys.getrecursionlimit() == found
