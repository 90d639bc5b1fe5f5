"""A type that a plan accepts can be released.
Other types are refused before anything is charged.
"""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.backends import polars as on_polars
from dpframe.errors import DpFrameError, WrongType
from strategies import answer

WIDE = {
    "HUGEINT": ("Int128", [2**63, -(2**127), 2**127 - 1]),
    "UHUGEINT": ("UInt128", [2**63, 2**127, 2**128 - 1]),
}

_HELD = []


def _table(place, name, cells):
    """Units 0 to 59 with the number 5. Three of them have the given cells instead."""
    values = [*cells, *([5] * (60 - len(cells)))]
    if place == "polars":
        dtype = getattr(pl, WIDE[name][0], None)
        if dtype is None:
            pytest.skip("this version of Polars has no such type")
        if not on_polars._wide_are_apart():
            pytest.skip("this version of Polars does not tell all such numbers apart")
        return pl.DataFrame({"u": range(60), "k": pl.Series(values, dtype=dtype)})
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    _HELD.append(connection)  # in DuckDB 1 a relation does not hold its own
    connection.execute(f"CREATE TABLE t (u BIGINT, k {name})")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?)", [[u, str(value)] for u, value in enumerate(values)]
    )
    return connection.table("t")


def _protected(table, unit="u"):
    return dp.protect(table, unit=unit, budget=dp.Budget(epsilon=10**6, delta=0.1))


_KEYS = {
    "found": lambda f: f.group_by("k", max_groups=1).count_units(),
    "listed": lambda f: f.group_by("k", keys=[5], max_groups=1).count_units(),
    "keys alone": lambda f: f.group_by("k", max_groups=1).agg(),
    "crosstab": lambda f: f.crosstab("k", "u", keys={"k": [5], "u": [1]}, max_groups=1),
    "mode": lambda f: f.mode("k", keys=[5, 6], max_rows=1),
    "top": lambda f: f.top_k("k", 1, keys=[5, 6], max_rows=1),
    "feature": lambda f: f.per_unit(k=dp.min("k")).group_by("k", max_groups=1).count_units(),
    "filled": lambda f: (
        f.fill_null("k", 7).clip("k", 0, 9).group_by("k", max_groups=1).count_units()
    ),
}
_NUMBERS = {
    "sum": (lambda f: f.sum("k", bounds=(0, 10), max_rows=1), 315),
    "mean": (lambda f: f.agg(a=dp.mean("k", bounds=(0, 10)), max_rows=1), None),
    "median": (lambda f: f.median("k", bounds=(0, 10), max_rows=1), None),
    "n_unique": (lambda f: f.n_unique("k", max_rows=1), 4),
    "filter": (lambda f: f.filter(dp.col("k") == 5).count_units(), 57),
    "is_in": (lambda f: f.filter(dp.col("k").is_in([5, 6])).count_units(), 57),
    "plus": (
        lambda f: f.with_columns(z=dp.col("k") * 2 + 1).sum("z", bounds=(0, 10), max_rows=1),
        None,
    ),
    "per unit": (
        lambda f: f.per_unit(a=dp.sum("k"), b=dp.mean("k"), c=dp.max("k")).count_units(),
        60,
    ),
    "join": (
        lambda f: f.join({"k": [5], "w": [1]}, on="k").sum("w", bounds=(0, 1), max_rows=1),
        57,
    ),
    "auto": (lambda f: f.sum("k", bounds=dp.Auto(), max_rows=1), None),
}


@pytest.mark.parametrize("place", ["polars", "duckdb"])
@pytest.mark.parametrize("name", WIDE)
def test_wide_whole_numbers_are_no_keys_whatever_the_cells(place, name):
    """One cell of 2^63 made DuckDB raise after the charge;
    a key of the type was paid for, and its table was lost.
    """
    for cells in ([], WIDE[name][1]):
        frame = _protected(_table(place, name, cells))
        for say, ask in _KEYS.items():
            with pytest.raises(WrongType, match=r"cast\('k', 'int64'\)"):
                ask(frame).release(epsilon=1, delta=1e-3)
            assert frame.budget.spent.epsilon == 0, say


@pytest.mark.parametrize("place", ["polars", "duckdb"])
def test_numbers_without_a_sign_of_128_bits_have_no_common_type_with_one_below_0(place):
    """Polars takes numbers from 2^127 on for missing there."""
    frame = _protected(_table(place, "UHUGEINT", [2**128 - 1]))
    with pytest.raises(WrongType, match="no common type"):
        frame.filter(dp.col("k") >= -1)
    assert answer(frame.filter(dp.col("k") >= 0).count_units()) == [{(): 60}]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", ["polars", "duckdb"])
@pytest.mark.parametrize("name", WIDE)
def test_wide_whole_numbers_are_values_units_and_keys_once_cast(place, name):
    table = _table(place, name, WIDE[name][1])
    frame = _protected(table)
    for say, (ask, expected) in _NUMBERS.items():
        out = ask(frame).release(epsilon=5000)
        assert len(out.to_pandas()) == 1, say
        if expected is not None and (name, say) != ("HUGEINT", "sum"):
            assert abs(out.value - expected) < 1, say
    out = (
        frame.cast("k", "int64")
        .group_by("k", max_groups=1)
        .count_units()
        .release(epsilon=100, delta=1e-3)
    )
    for made in (out.table, out.to_pandas(), out.to_polars(), out.to_arrow()):
        assert len(made) == 1
    assert (out.to_csv(), "<table" in out.to_html()) == (out.to_polars().write_csv(), True)
    assert abs(_protected(table, unit="k").count_units().release(epsilon=1000).value - 4) < 1


def _cells(duckdb):
    connection = duckdb.connect()
    connection.execute("CREATE TYPE size AS ENUM ('a', 'b')")
    typed = {
        "TINYINT": "1",
        "UBIGINT": "18446744073709551615",
        "HUGEINT": "170141183460469231731687303715884105727",
        "DECIMAL(38, 0)": "99999999999999999999999999999999999999",
        "DECIMAL(38, 10)": "1.5",
        "FLOAT": "'inf'",
        "DOUBLE": "'nan'",
        "BOOLEAN": "true",
        "VARCHAR": "'a'",
        "JSON": "'{}'",
        "UUID": "'00000000-0000-0000-0000-000000000001'",
        "size": "'a'",
        "DATE": "'infinity'",
        "TIMESTAMP": "'-infinity'",
        "TIMESTAMP_S": "'290000-01-01'",
        "TIMESTAMP_MS": "'290000-01-01'",
        "TIMESTAMP_NS": "'2020-01-01'",
        "TIMESTAMPTZ": "'infinity'",
        "TIME": "'10:00:00'",
        "TIMETZ": "'10:00:00+01'",
        "INTERVAL": "'1 day'",
        "BLOB": "'ab'",
        "BIT": "'101'",
        "INTEGER[]": "[1]",
        "INTEGER[2]": "[1, 2]",
        "STRUCT(a INTEGER)": "{'a': 1}",
        "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
    }
    for name, cell in typed.items():
        connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT i AS u, CAST({cell} AS {name}) AS k FROM "
            "range(60) r(i)"
        )
        yield name, connection.table("t")


_ASKED = {
    "found": lambda f: f.group_by("k", max_groups=1).count_units(),
    "n_unique": lambda f: f.n_unique("k", max_rows=1),
    "sum": lambda f: f.sum("k", bounds=(0, 10), max_rows=1),
    "filter": lambda f: f.filter(dp.col("k") > 0).count_units(),
    "null": lambda f: f.filter(dp.col("k").is_null()).count_units(),
    "number": lambda f: f.cast("k", "int8").group_by("k", max_groups=1).count_units(),
    "text": lambda f: f.cast("k", "str").group_by("k", max_groups=1).count_units(),
}


@pytest.mark.filterwarnings("ignore:The released table is empty")  # three units: it is about types
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_every_type_of_duckdb_comes_out_or_is_refused_before_the_charge(tmp_path, every):
    """The hardest cell of each type: a charged release returns a table in every form.
    Quick is each seventh.
    """
    for number, (name, table) in enumerate(_cells(pytest.importorskip("duckdb"))):
        for say, ask in list({**_ASKED, "unit": None}.items())[number % every :: every]:
            spent = 0
            try:
                frame = _protected(table, unit="k" if ask is None else "u")
                spent = frame.budget
                query = frame.count_units() if ask is None else ask(frame)
                out = query.release(
                    epsilon=100, delta=1e-3 if say in ("found", "number", "text") else 0
                )
            except DpFrameError:
                assert spent == 0 or spent.spent.epsilon == 0, (name, say)
                continue
            assert out.table is not None, (name, say)
            assert len(out.to_pandas()) == len(out.to_arrow()) == len(out.to_polars())
            assert out.to_csv() is not None
            out.to_html()
            out.to_parquet(tmp_path / "out.parquet")


def test_numbers_that_a_version_of_polars_takes_for_one_are_not_read(monkeypatch):
    """Polars 1.30 groups whole numbers of 128 bits by 64 of them,
    so that two people could be one.
    """
    frame = pl.DataFrame({"u": [1, 2], "k": pl.Series([0, 2**64], dtype=pl.Int128)})
    monkeypatch.setattr(on_polars, "_wide_are_apart", lambda: False)
    with pytest.raises(WrongType, match="cast it before"):
        _protected(frame, unit="k")
    with pytest.raises(WrongType, match="cast it before"):
        _protected(frame).n_unique("k", max_rows=1)
    monkeypatch.undo()
    if on_polars._wide_are_apart():
        assert answer(_protected(frame, unit="k").count_units()) == [{(): 2}]


_UNSIGNED = [2**63, 2**64 - 1, 2**63 - 1, 5, None, 2**63]


def _unsigned(place):
    frame = pl.DataFrame({"u": range(6), "k": pl.Series(_UNSIGNED, dtype=pl.UInt64)})
    if place == "polars":
        return frame
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    other = ibis.duckdb.connect()
    connection = duckdb.connect() if place == "duckdb" else other.con
    _HELD.append(connection)
    connection.register("brought", frame.to_arrow())
    connection.execute("CREATE TABLE t AS SELECT * FROM brought")
    return connection.table("t") if place == "duckdb" else other.table("t")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", ["polars", "duckdb", "ibis"])
@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        ([5], [1]),
        ([2**63], [2]),
        ([2**63, 5, 2**64 - 1], [2, 1, 1]),
        ([2**63, None], [2, 1]),
        ([None, 5], [1, 1]),
    ],
)
def test_whole_numbers_without_a_sign_are_listed_keys_to_the_last(place, keys, counts):
    """Ibis took each number of a list for an int64, and failed on 2^63."""
    frame = _protected(_unsigned(place))
    listed = frame.group_by("k", keys=keys, max_groups=1).count_units().release(epsilon=10**5).table
    assert pl.DataFrame(listed)["count_units"].to_list() == counts
    rows = pl.DataFrame({"k": pl.Series(keys, dtype=pl.UInt64)})
    assert answer(frame.group_by("k", keys=rows, max_groups=1).count_units()) == [
        {(key,): count for key, count in zip(keys, counts, strict=True)}
    ]


@pytest.mark.parametrize("place", ["polars", "duckdb", "ibis"])
def test_a_whole_number_without_a_sign_takes_the_place_of_null(place):
    frame = _protected(_unsigned(place)).fill_null("k", 2**63)
    assert answer(frame.group_by("k", keys=[2**63], max_groups=1).count_units()) == [{(2**63,): 3}]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", ["polars", "duckdb", "ibis"])
@pytest.mark.parametrize(
    ("listed", "inside"),
    [
        ([2**63], 2),
        ([2**63 - 1, 2**63], 3),
        ([2**64 - 1, 5, -1, 0.5], 2),
        ([2.0**63, 1e300], 2),
        ([], 0),
        ([-1], 0),
    ],
)
def test_whole_numbers_without_a_sign_are_in_a_list_to_the_last(place, listed, inside):
    """What is beyond 64 bits with a sign was in no list, and neither in it nor not in it."""
    frame = _protected(_unsigned(place)).with_columns(y=dp.col("k").is_in(listed))
    assert answer(frame.group_by("y", keys=[True, False, None], max_groups=1).count_units()) == [
        {(True,): inside, (False,): 5 - inside, (None,): 1}
    ]
