"""Synthetic rows have the types of the user's table, and categories come from
what was typed, not from the data.
"""

import datetime as dt
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpframe as dp

PRICE = {"epsilon": 5.0, "delta": 1e-6}
ZONED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def made(table, **said):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1000, delta=0.1))
    return frame.synthesize(workload="1-way", max_rows=1, rows=60, **said).release(**PRICE)


def test_pandas():
    """Every type of pandas that a column of this question can have, with and without nulls."""
    times = pd.Series(pd.to_datetime(["2026-01-02", None] * 50))
    columns = {
        "text": pd.Categorical(["a", "b"] * 50, categories=["b", "a", "hidden"]),
        "ordered": pd.Categorical(["a", None] * 50, categories=["b", "a"], ordered=True),
        "number": pd.Categorical([1, 2] * 50),
        "Int64": pd.array([1, None] * 50, dtype="Int64"),
        "int8": np.array([1, 2] * 50, np.int8),
        "Float32": pd.array([1, None] * 50, dtype="Float32"),
        "float64": np.array([1, np.nan] * 50),
        "bool": np.array([True, False] * 50),
        "boolean": pd.array([True, None] * 50, dtype="boolean"),
        "string": pd.array(["a", None] * 50, dtype="string[python]"),
        "arrow": pd.array(["a", None] * 50, dtype="string[pyarrow]"),
        "arrow_text": pd.array(["a", None] * 50, dtype=pd.ArrowDtype(pa.string())),
        "arrow_whole": pd.array([1, None] * 50, dtype="int64[pyarrow]"),
        "object": pd.Series(["a", None] * 50, dtype=object),
        "zoned": times.dt.tz_localize("Europe/Berlin"),
        "duration": pd.Series(pd.to_timedelta(["1h", None] * 50)),
    }
    table = pd.DataFrame({"u": range(100), **columns})
    texts = ("text", "ordered", "string", "arrow", "arrow_text", "object")
    numbers = ("Int64", "int8", "Float32", "float64", "arrow_whole")
    span, day = (ZONED, ZONED + dt.timedelta(9)), (dt.timedelta(0), dt.timedelta(1))
    out = made(
        table,
        keys={**{name: ["a", "b"] for name in texts}, "number": [2, 1]},
        bounds={**dict.fromkeys(numbers, (0, 100)), "zoned": span, "duration": day},
        nulls=[name for name in columns if table[name].isna().any()],
    )
    rows = out.table
    unlike = {
        name: (table[name].dtype, rows[name].dtype)
        for name in columns
        if not isinstance(table[name].dtype, pd.CategoricalDtype)
        and rows[name].dtype != table[name].dtype
    }
    assert not unlike
    assert list(rows["text"].cat.categories) == ["a", "b"], "the keys in the order they were typed"
    assert (list(rows["ordered"].cat.categories), rows["ordered"].cat.ordered) == (["a", "b"], True)
    assert rows["number"].cat.categories.dtype == table["number"].cat.categories.dtype
    assert out.to_pandas().dtypes.equals(rows.dtypes)
    assert out.to_polars().schema["text"] == pl.String
    assert out.to_arrow().num_rows == 60


def test_polars():
    """A Categorical is an Enum of the keys: all Categorical columns of a
    process share one list of texts.
    """
    table = pl.DataFrame(
        {"u": range(100), "c": ["hidden", None] * 50, "e": ["b", "a"] * 50, "t": [ZONED] * 100},
        schema_overrides={
            "c": pl.Categorical,
            "e": pl.Enum(["b", "a"]),
            "t": pl.Datetime("ms", "Asia/Tokyo"),
        },
    )
    out = made(
        table, keys={"c": ["x", "y"]}, bounds={"t": (ZONED, ZONED + dt.timedelta(9))}, nulls=["c"]
    )
    assert dict(out.table.schema) == {**table.drop("u").schema, "c": pl.Enum(["x", "y"])}
    assert made(table.select("u", "e")).table.schema == {"e": pl.Enum(["b", "a"])}


@pytest.mark.parametrize("index", [pa.int32(), pa.int8()])
def test_arrow(index):
    texts = pa.array(["a", "hidden"] * 100).dictionary_encode()
    table = pa.table(
        {
            "u": list(range(200)),
            "d": pa.DictionaryArray.from_arrays(texts.indices.cast(index), texts.dictionary),
            "s": pa.array(["a", None] * 100, pa.string()),
            "i": pa.array([1, None] * 100, pa.int32()),
        }
    )
    keys = [f"k{i}" for i in range(130)]
    rows = made(table, keys={"d": keys, "s": ["a", None]}, bounds={"i": (0, 9)}, nulls=["i"]).table
    types = [rows.schema.field(name).type for name in ("s", "i")]
    assert types == [pa.string(), pa.int32()]
    assert rows.schema.field("d").type == pa.dictionary(pa.int32(), pa.string()), (
        "130 keys do not fit into int8"
    )
    assert rows["d"].combine_chunks().dictionary.to_pylist() == keys


def test_a_rewritten_column_has_the_type_of_its_expression():
    table = pd.DataFrame({"u": range(100), "c": pd.Categorical(["a", "b"] * 50)})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1000, delta=0.1))
    changed = frame.with_columns(c=dp.col("c").str.to_uppercase())
    out = changed.synthesize(keys={"c": ["A", "B"]}, max_rows=1, rows=9).release(**PRICE)
    assert not isinstance(out.table["c"].dtype, pd.CategoricalDtype)


@pytest.mark.skipif(
    not hasattr(pl, "Int128"), reason="this Polars has no whole numbers of 128 bits"
)
def test_whole_numbers_of_128_bits_become_decimals_where_a_library_has_none():
    table = pl.DataFrame(
        {"u": range(100), "x": pl.Series([1, 10**29, None, 2] * 25, dtype=pl.Int128)}
    )
    out = made(table, bins={"x": [0, 5, 1e30]}, nulls=["x"])
    held = out.to_polars()["x"]
    assert held.dtype == pl.Int128
    assert out.to_arrow().schema.field("x").type == pa.decimal256(39, 0)
    for other in (out.to_arrow()["x"].to_pylist(), out.to_pandas()["x"].tolist()):
        assert [None if x is None else int(x) for x in other] == held.to_list()
    out.to_parquet(file := io.BytesIO())
    assert pq.read_table(file)["x"].to_pylist() == out.to_arrow()["x"].to_pylist()
