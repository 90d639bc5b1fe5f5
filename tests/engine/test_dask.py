"""Dask dataframes: the totals of pandas for every partitioning of the rows, and no
task or log that shows a cell.
"""

from __future__ import annotations

import datetime as dt
import io
import pickle
import random
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.engine.intake.arrow import of_type
from dpframe.errors import EngineError, UnsupportedOperation
from inside import question_of
from questions import QUESTIONS, TABLE, exact, expected, protected
from strategies import answer, as_frame, bring, random_plan, random_question, random_rows

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
CANARY = "canary-91c4"


pytestmark = pytest.mark.usefixtures("dask_here")


def _partitioned(frame, partitions=3):
    return dd.from_pandas(frame, npartitions=partitions, sort=False)


def _totals(query, salt=5):
    found = engine.totals(question_of(query), salt)
    keys = found.keys.rows() if question_of(query).by else [()]
    return [dict(zip(keys, np.asarray(values).tolist(), strict=True)) for values in found.values]


@pytest.fixture
def frame():
    draw = np.random.default_rng(4)
    ids = draw.integers(0, 30, 300)
    frame = pd.DataFrame(
        {
            "u": pd.Series(ids, dtype="Int64"),
            "g": draw.choice(list("abc"), 300),
            "x": draw.normal(0, 5, 300),
        }
    )
    frame.loc[::17, "u"] = pd.NA
    frame.loc[::11, "x"] = np.nan
    return frame


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("keys", [["a", "c", None], None])
def test_every_total_is_that_of_pandas(frame, partitions, keys):
    def ask(table):
        grouped = dp.protect(table, unit="u").group_by(
            "g", keys=keys, max_groups=2, max_rows_per_group=3, max_rows=5
        )
        return grouped.agg(
            n=dp.count(), units=dp.count_units(), m=dp.mean("x", bounds=(-3, 3)),
            t=dp.sum("x", unit_bounds=(0, 9)),
            d=dp.n_unique("x"), med=dp.median("x", bounds=(-3, 3)),
        )  # fmt: skip

    assert _totals(ask(_partitioned(frame, partitions))) == _totals(ask(frame))


def test_random_questions_and_plans():
    rng, held = random.Random(6), 0
    while held < 8:
        rows, plan, question = random_rows(rng, units=9), random_plan(rng), random_question(rng)
        unit = rng.choice(["u", "w", ("w", "u"), dp.Rows(3)])
        brought = bring(as_frame(rows), "pandas")
        try:
            whole = answer(question(plan(dp.protect(brought, unit=unit))), held)
        except (dp.errors.DpFrameError, EngineError):
            continue
        assert answer(question(plan(dp.protect(_partitioned(brought), unit=unit))), held) == whole
        held += 1


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series(["1", 1, 1.0, None, "x", True] * 3, dtype=object),
        pd.Series([0.0, -0.0, 2.5, float("nan"), 1e300, 7.0] * 3),
        pd.Series(["a", "b", None, "é", "", "a"] * 3, dtype="category"),
        pd.Series([2**64 - 1, 1, 2, 2**63, 1, 2] * 3, dtype="uint64"),
        pd.Series([dt.datetime(2020, 1, 1), None, dt.datetime(1999, 9, 9)] * 6),
    ],
    ids=lambda ids: str(ids.dtype),
)
def test_no_unit_is_split_whatever_its_identifier(ids):
    table = pd.DataFrame({"id": ids, "x": range(18)})
    whole = answer(
        dp.protect(table, unit="id").agg(max_rows=2, n=dp.count(), units=dp.count_units())
    )
    # else Dask itself makes two texts of 1 and 1.0
    with dask.config.set({"dataframe.convert-string": False}):
        parts = _partitioned(table, 6)
    assert (
        answer(dp.protect(parts, unit="id").agg(max_rows=2, n=dp.count(), units=dp.count_units()))
        == whole
    )


def test_partitions_of_other_types_are_read_by_the_types_of_the_whole():
    """A partition may be all null or hold whole numbers.
    The conversion of a cell does not depend on that.
    """
    pieces = [
        pd.DataFrame({"u": ["1", "2"], "x": [1.5, 2.5], "g": ["a", None]}).astype(
            {"u": object, "g": object}
        ),
        pd.DataFrame({"u": [1, 3], "x": [1, 2], "g": [None, None]}),
        pd.DataFrame({"u": [1.0, np.nan], "x": [None, "7"], "g": [2, "a"]}),
    ]
    meta = pd.DataFrame(
        {
            "u": pd.Series(dtype=object),
            "x": pd.Series(dtype="float64"),
            "g": pd.Series(dtype=object),
        }
    )
    with dask.config.set({"dataframe.convert-string": False}):
        table = dd.from_map(lambda i: pieces[i], range(3), meta=meta)
    query = dp.protect(table, unit="u").group_by(
        "g", keys=["a", "2"], max_groups=2, max_rows_per_group=5
    )
    units, total = answer(query.agg(units=dp.count_units(), s=dp.sum("x", unit_bounds=(0, 100))))
    step = question_of(query.sum("x", unit_bounds=(0, 100))).allotments[0].total.unit
    assert units == {("a",): 1, ("2",): 1}
    assert {key: float(value * step) for key, value in total.items()} == {("a",): 1.5, ("2",): 0.0}
    everything = dp.protect(table, unit="u").agg(max_rows=9, n=dp.count(), units=dp.count_units())
    assert [total[()] for total in answer(everything)] == [5, 3]


_SOUND = pd.DataFrame({"u": [1, 2], "x": [1.5, 2.5], "g": ["a", "b"]}).astype({"g": object})
# a partition that is not as Dask says, and the rows and sums of "a" and "b" with the sound one
# beside it
_OTHER = {
    "without a column": (_SOUND[["u", "g"]], [2, 2], [1.5, 2.5]),
    "without units": (_SOUND[["x", "g"]], [1, 1], [1.5, 2.5]),
    "in another order": (_SOUND[["g", "x", "u"]], [2, 2], [3, 5]),
    "with a column twice": (pd.concat([_SOUND, _SOUND[["x"]]], axis=1), [2, 2], [1.5, 2.5]),
    "with one index twice": (_SOUND.set_axis([1, 1]), [2, 2], [3, 5]),
    "with other names": (_SOUND.set_axis([0, 1, 2], axis=1), [1, 1], [1.5, 2.5]),
    "no table": ("abc", [1, 1], [1.5, 2.5]),
    "empty": (pd.DataFrame(), [1, 1], [1.5, 2.5]),
    "of texts": (_SOUND.astype({"x": str}), [2, 2], [1.5, 2.5]),
    "of objects": (_SOUND.astype({"x": object}), [2, 2], [3, 5]),
    "of times": (_SOUND.assign(x=pd.to_datetime(["2020", "2021"])), [2, 2], [1.5, 2.5]),
    "of periods": (_SOUND.assign(x=pd.period_range("2020", periods=2)), [2, 2], [1.5, 2.5]),
    "of truths": (_SOUND.assign(x=[True, False]), [2, 2], [2.5, 2.5]),
    "of categories": (_SOUND.astype("category"), [2, 2], [3, 5]),
    "sparse": (_SOUND.assign(x=pd.arrays.SparseArray([0.0, 1.5])), [2, 2], [1.5, 4]),
    "of larger numbers": (
        _SOUND.assign(u=np.array([2**64 - 1, 2], dtype="uint64")),
        [1, 2],
        [1.5, 5],
    ),
}


@pytest.mark.parametrize("name", _OTHER)
def test_a_partition_that_is_not_as_dask_says_fails_nothing(name):
    partition, rows, sums = _OTHER[name]
    pieces, meta = [_SOUND, partition], _SOUND.head(0)
    with dask.config.set({"dataframe.convert-string": False}):
        table = dd.from_map(lambda i: pieces[i], range(2), meta=meta)
    grouped = dp.protect(table, unit="u").group_by(
        "g", keys=["a", "b"], max_groups=2, max_rows_per_group=2
    )
    query = grouped.agg(n=dp.count(), s=dp.sum("x", (0, 10)))
    counted, total = answer(query)
    step = question_of(query).allotments[1].total.unit
    assert list(counted.values()) == rows
    assert [float(value * step) for value in total.values()] == sums


_VALUES = [
    *(0, 1, 7, 2**40, -1, True, False, 0.0, 1.0, 2.5, -3.0, 1e300, float("inf"), "7", "x", b"b"),
    *(
        dt.date(2020, 1, 2),
        dt.datetime(2020, 1, 2),
        dt.datetime(2020, 1, 2, 3, 4, 5, 6),
        dt.timedelta(days=1, seconds=3),
    ),
    *(
        pd.Timestamp("2020-01-02 03:04:05.123456789"),
        pd.Timestamp("2020-01-02", tz="Europe/Berlin"),
        Decimal("1.25"),
    ),
    *(
        Decimal("1E+40"),
        Decimal("sNaN"),
        Fraction(1, 3),
        np.float32(0.5),
        np.int8(3),
        np.bool_(True),
        None,
        object(),
    ),
]
_CONTAINERS = [
    *(
        "int8",
        "int64",
        "uint64",
        "float32",
        "float64",
        "boolean",
        "Int64",
        "datetime64[s]",
        "datetime64[ns]",
    ),
    *("timedelta64[ms]", "datetime64[us, UTC]", "category"),
    *(pd.ArrowDtype(pa.date32()), pd.ArrowDtype(pa.decimal128(9, 2))),
]
_WHOLES = [*_CONTAINERS[:6], *_CONTAINERS[7:11], *_CONTAINERS[12:], object]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "whole",
    [pytest.param(one, marks=pytest.mark.long if i % 3 else ()) for i, one in enumerate(_WHOLES)],
    ids=str,
)
def test_no_cell_decides_how_another_is_read(whole):
    """One odd cell makes a column of objects of a partition.
    The other cells are read as without that cell.
    """
    dtype = pd.Series([], dtype=whole).dtype
    held = 0
    for container in _CONTAINERS:
        for value in _VALUES:
            try:
                alone = pd.Series([value], dtype=object).astype(container)
            except Exception:  # which does not hold this value
                continue
            if alone.isna().all():
                continue
            beside = pd.Series([alone[0], object()], dtype=object)
            (first,), (second, odd) = (
                of_type(column, dtype).to_physical() for column in (alone, beside)
            )
            assert first == second, (whole, container, value)
            assert isinstance(odd, str) if whole is object else odd is None
            held += first is not None
    assert held


def test_protected_tables_meet_and_others_do_not(frame):
    people = pd.DataFrame({"u": np.arange(5, 25, dtype=np.int16), "age": np.arange(20)})
    shops = pl.DataFrame({"g": ["a", "b"], "size": [1, 2]})

    def asked(visits, known):
        visits, known = dp.protect(visits, unit="u"), dp.protect(known, unit="u")
        joined = visits.join(known, on="u", how="left").join(shops, on="g")
        grouped = joined.group_by("g", max_groups=2, max_rows_per_group=2)
        both = dp.concat([visits.select("u"), known.select("u")])
        return [
            grouped.agg(
                n=dp.count(), s=dp.sum("age", bounds=(0, 20)), z=dp.sum("size", bounds=(0, 2))
            ),
            both.agg(max_rows=3, n=dp.count(), units=dp.count_units()),
            visits.per_unit(total=dp.sum("x")).mean("total", bounds=(-9, 9)),
        ]

    pairs = zip(
        asked(frame, people), asked(_partitioned(frame), _partitioned(people, 2)), strict=True
    )
    for mine, theirs in pairs:
        assert answer(mine) == answer(theirs)
    with pytest.raises(UnsupportedOperation, match="different places"):
        dp.protect(_partitioned(frame), unit="u").join(dp.protect(people, unit="u"), on="u")


def test_a_release_from_beginning_to_end(frame):
    budget = dp.Budget(epsilon=2, delta=1e-6)
    private = dp.protect(_partitioned(frame), unit="u", budget=budget)
    out = private.group_by("g", keys=["a", "b"], limits=dp.Auto()).count().release(epsilon=1)
    assert isinstance(out.table, pd.DataFrame)
    assert out.table["g"].tolist() == ["a", "b"]
    assert budget.spent.epsilon == 1
    with pytest.raises(UnsupportedOperation):
        pickle.dumps(private)


def test_what_fails_on_a_worker_says_nothing_of_a_cell(frame, capfd):
    def broken(part):
        if len(part):
            raise ValueError(f"{CANARY} {part.iloc[0].tolist()}")
        return part

    table = _partitioned(frame.assign(g=CANARY)).map_partitions(broken, meta=frame.head(0))
    query = dp.protect(table, unit="u").count(max_rows=1)
    engine.validate(question_of(query))
    with pytest.raises(EngineError) as raised:
        answer(query)
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)
    assert CANARY not in str(raised.value) + "".join(capfd.readouterr())


def test_a_plan_travels_without_rows(frame):
    from dpframe.engine.parts import shuffle
    from dpframe.engine.totals import _sums

    frame = frame.assign(g=CANARY)
    public = pl.DataFrame({"g": ["a"], "size": [1]})
    query = (
        dp.protect(_partitioned(frame), unit="u")
        .join(public, on="g")
        .sum("x", bounds=(0, 1), max_rows=2)
    )
    said = shuffle._packed(question_of(query), partial(_sums, 7, None, None))
    assert CANARY.encode() not in said
    rows = pl.from_pandas(frame.assign(g="a", u=frame["u"].astype("Int64")))
    ask, build = shuffle._Unpickler(io.BytesIO(said), [rows]).load()
    assert [one.keys for one in build(ask, False)] == [()]


def _panic(*said):
    raise pl.exceptions.PanicException(CANARY)


def test_tasks_that_cannot_read_give_nothing(monkeypatch):
    from dpframe.engine.parts import shuffle

    assert shuffle._summed(b"", [[None]]) is None
    assert shuffle._together([("k",)], [None, [pl.DataFrame({"k": [1]})]]) is None
    whole = pd.DataFrame({"x": [1]})
    about = ({"x": np.dtype("int64")}, {}, 1)
    (piece,) = shuffle._cut(whole, about)
    assert piece.rows() == [(1,)]
    for name in ("partition_of", "_Unpickler", "together"):  # a panic of Polars is no Exception
        monkeypatch.setattr(shuffle, name, _panic)
    assert shuffle._cut(whole, about) == [None]
    assert shuffle._summed(b"", [[piece]]) is None
    assert shuffle._together([("k",)], [[piece]]) is None


@pytest.fixture
def cluster(tmp_path):
    """A worker in a process of its own, without a dashboard."""
    distributed = pytest.importorskip("distributed")
    settings = {
        "n_workers": 1,
        "threads_per_worker": 2,
        "dashboard_address": None,
        "host": "127.0.0.1",
    }
    patience = {
        "distributed.comm.timeouts.connect": "300s",
        "distributed.comm.timeouts.tcp": "300s",
    }
    with (
        dask.config.set(patience),
        distributed.LocalCluster(**settings, local_directory=tmp_path) as cluster,
        distributed.Client(cluster, timeout="300s"),
    ):
        yield


@pytest.mark.long
def test_workers_in_other_processes(cluster, frame, capfd):
    for name in ("all three", "found", "distinct", "ranks", "public", "itself", "features"):
        asked = QUESTIONS[name](
            protected(_partitioned(TABLE.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)))
        )
        assert exact(asked) == expected(name)

    class Odd:
        def __str__(self):
            raise pl.exceptions.PanicException(CANARY)

    meta = frame.astype({"g": object}).head(0)
    with dask.config.set({"dataframe.convert-string": False}):  # else a task of Dask's own fails
        broken = dd.from_map(
            lambda i: frame.assign(g=[Odd() for _ in frame["u"]]), range(2), meta=meta
        )
    query = dp.protect(broken, unit="u").n_unique("g", max_rows=1)
    assert answer(query) == [{(): 0}]  # what has no text is null
    assert CANARY not in "".join(capfd.readouterr())
