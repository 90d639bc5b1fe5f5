"""Hostile tables of Arrow and pandas: a cell that is not valid in its type
becomes null, and no query fails.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe.engine.backends.polars import unicode
from dpframe.engine.intake import arrow, sound, views_are_read
from dpframe.engine.intake.cells import each, text, value_for
from dpframe.errors import WrongType
from strategies import answer

# Memory that nothing checked


def _offsets(*numbers, code="i"):
    return struct.pack(f"<{len(numbers)}{code}", *numbers)


def _view(text, index=0, offset=0):
    if len(text) <= 12:
        return struct.pack("<i12s", len(text), text)
    return struct.pack("<i4sii", len(text), text[:4], index, offset)


def _raw(dtype, length, *buffers, **about):
    return pa.Array.from_buffers(
        dtype, length, [b if b is None else pa.py_buffer(b) for b in buffers], **about
    )


_NO_VIEWS = pytest.mark.skipif(
    not views_are_read(), reason="this version of PyArrow makes no views from buffers"
)


def _in_runs():
    """A run-end encoded column of texts, with runs of two rows."""
    return pc.run_end_encode(
        _raw(pa.string(), 6, None, _offsets(0, 1, 2, 3, 4, 5, 6), b"aa\xff\xffbb")
    )


_BAD = b"a\xff\xfeb\xc3"  # "a", no text, "b", half a letter
_LONG = b"a text that is longer than twelve bytes"
_TEXTS = {
    "string": lambda: _raw(pa.string(), 4, None, _offsets(0, 1, 3, 4, 5), _BAD),
    "large": lambda: _raw(pa.large_string(), 4, None, _offsets(0, 1, 3, 4, 5, code="q"), _BAD),
    "beneath a null": lambda: _raw(pa.string(), 4, b"\x05", _offsets(0, 1, 3, 4, 5), _BAD),
    "offset outside": lambda: _raw(pa.string(), 3, None, _offsets(0, 1, -7, 5), b"axxxx"),
    "offsets that go back": lambda: _raw(pa.string(), 3, None, _offsets(0, 1, 0, 1), b"ab"),
    "views": lambda: _raw(pa.string_view(), 3, None, b"".join(map(_view, (b"a", b"\xff", b"b")))),
    "long view": lambda: _raw(
        pa.string_view(), 2, None, _view(b"a") + _view(b"\xff" * 20), b"\xff" * 20
    ),
    "view outside": lambda: _raw(
        pa.string_view(), 2, None, _view(b"a") + _view(_LONG, 0, 9), _LONG
    ),
    "view of nothing": lambda: _raw(
        pa.string_view(), 2, None, _view(b"a") + _view(_LONG, 7, 0), _LONG
    ),
    "view beneath a null": lambda: _raw(
        pa.string_view(), 2, b"\x01", _view(b"a") + _view(_LONG, 7, 0), _LONG
    ),
    **{
        f"codes {dtype}": lambda dtype=dtype: pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 100], dtype), _TEXTS["string"]().slice(0, 3), safe=False
        )
        for dtype in (pa.int8(), pa.uint8(), pa.int32(), pa.uint64())
    },
    "code below": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, -1], pa.int8()), pa.array(["a"]), safe=False
    ),
    "runs": lambda: pc.run_end_encode(_TEXTS["string"]()),
    "runs of large ones": lambda: pc.run_end_encode(_TEXTS["large"]()),
    "a slice of runs": lambda: _in_runs().slice(1),
    "a slice": lambda: pa.concat_arrays([pa.array(["x"]), _TEXTS["string"]()]).slice(1),
}


def _arrow(array):
    return pa.table({"u": range(len(array)), "x": array})


def _chunks(array):
    table = _arrow(array)
    return pa.concat_tables([table.slice(0, 1), table.slice(1)])


def _pandas(array):
    return pd.DataFrame({"u": range(len(array))}).assign(
        x=pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
    )


def _polars(array):
    return pl.from_arrow(_arrow(array))


# what `pl.from_arrow` takes over
_IN_POLARS = ("string", "large", "beneath a null", "views", "long view", "a slice")


def _forms(name):
    forms = [_arrow, _chunks, _pandas]
    return [*forms, _polars, lambda array: _polars(array).lazy()] if name in _IN_POLARS else forms


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=_NO_VIEWS if "view" in n else ()) for n in _TEXTS]
)
def test_texts_that_are_none_are_null(name):
    array = _TEXTS[name]()
    expected = [cell for cell in sound(array).to_pylist() if cell is not None]
    assert expected[0] == "a"
    assert len(expected) < len(array)
    for form in _forms(name):
        frame = dp.protect(form(array), unit="u")
        assert answer(frame.count("x", max_rows=1)) == [{(): len(expected) * 2**20}]
        lower = frame.with_columns(x=dp.col("x").str.to_lowercase()).filter(~dp.col("x").is_null())
        assert answer(lower.count_units()) == [{(): len(expected)}]
        (there,) = answer(frame.group_by("x", keys=["a", None], max_groups=1).count_units())
        assert there == {("a",): expected.count("a"), (None,): len(array) - len(expected)}
        assert answer(dp.protect(form(array), unit="x").count_units()) == [{(): len(set(expected))}]


def test_views_that_a_version_of_pyarrow_cannot_check_are_refused_by_their_type(monkeypatch):
    """PyArrow 16 cannot make an array of views from buffers, so each text became null."""
    monkeypatch.setattr(arrow, "views_are_read", lambda: False)
    table = pa.table({"u": [1, 2], "x": pa.array(["a", "b"], pa.string_view())})
    for frame in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
        with pytest.raises(WrongType, match="bring it as string"):
            dp.protect(frame, unit="u").count("x", max_rows=1)
        assert answer(dp.protect(frame, unit="u").count_units()) == [{(): 2}]


@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_a_piece_of_nulls_alone_has_no_texts_beneath_them(pieces):
    """In a piece of nulls alone Polars checks no text, and crashed.
    A lazy frame has a piece for each processor.
    """
    column = _polars(_TEXTS["beneath a null"]())["x"]
    nulls = pl.concat([column[i : i + 1] for i in (1, 3, 1, 3)][:pieces], rechunk=False)
    assert _bytes_beneath(nulls) == {0xFF, 0xC3, 0xFE} - ({0xC3} if pieces == 1 else set())
    assert _bytes_beneath(unicode(nulls)) <= {0}
    assert unicode(nulls).str.to_lowercase().to_list() == [None] * pieces


def _bytes_beneath(column):
    """The bytes beneath the nulls of a column of short texts."""
    chunks = column.to_frame().to_arrow(compat_level=pl.CompatLevel.newest()).column(0).chunks
    views = [
        memory[i : i + 16]
        for chunk in chunks
        for memory in (_views(chunk),)
        for i in range(0, len(memory), 16)
    ]
    return {byte for view in views for byte in view[4 : 4 + struct.unpack("<i", view[:4])[0]]}


def _views(chunk):
    return chunk.buffers()[1].to_pybytes()[16 * chunk.offset :][: 16 * len(chunk)]


def test_runs_that_do_not_follow_each_other_are_null():
    """PyArrow checks the ends of runs when it makes a column, and does not see a later change."""
    for ends in ([2, 1, 3], [0, 1, 3], [1, 2, 2], [-1, 2, 3]):
        numbers = np.array([1, 2, 3], np.int32)
        column = pa.Array.from_buffers(pa.int32(), 3, [None, pa.py_buffer(numbers)])
        dtype, children = pa.run_end_encoded(pa.int32(), pa.int64()), [column, pa.array([7, 8, 9])]
        array = pa.RunEndEncodedArray.from_buffers(dtype, 3, [None], 0, 0, children)
        assert sound(array).to_pylist() == [7, 8, 9]
        numbers[:] = ends
        assert sound(array).to_pylist() == [None] * 3


def test_numbers_and_times_that_are_none_are_null():
    def raw_decimals(dtype, size):
        cells = (99_999, 100_000, -99_999, -100_000)
        return _raw(
            dtype, 4, None, b"".join(cell.to_bytes(size, "little", signed=True) for cell in cells)
        )

    days = pa.array([0, 1, 86_400_000, -1], pa.int64()).view(pa.date64())
    for array, held in [
        (raw_decimals(pa.decimal128(5, 2), 16), 2),
        (days, 2),
        # of which it says that all are null
        (_raw(pa.int64(), 2, b"\x01", struct.pack("<2q", 1, 2), null_count=2), 1),
        (pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array([3, 4]), safe=False), 1),
    ]:
        assert sound(array).null_count == len(array) - held
        for form in (_arrow, _chunks, _pandas):
            assert answer(dp.protect(form(array), unit="u").count("x", max_rows=1)) == [
                {(): held * 2**20}
            ]


def test_one_wrong_cell_of_many_is_the_only_null():
    cells = [f"cell {i}" for i in range(20_000)]
    raw = pa.array(
        [c.encode() if i != 12_345 else b"\xff" for i, c in enumerate(cells)], pa.binary()
    )
    array = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    mended = sound(array)
    assert mended.to_pylist() == [None if i == 12_345 else c for i, c in enumerate(cells)]
    assert mended.num_chunks < 20_000


def test_sound_columns_are_not_copied():
    array = pa.array(["a", None, "b" * 20])
    (chunk,) = sound(array).chunks
    assert [b.address for b in chunk.buffers()] == [b.address for b in array.buffers()]


_SCRIPT = """
import sys
import pyarrow.parquet as pq
import dpframe as dp

table = pq.read_table(sys.argv[1])
frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=10**6))
lower = frame.with_columns(x=dp.col("x").str.to_lowercase())
print(lower.n_unique("x", max_rows=1).release(epsilon=10**5).value)
"""


def test_a_file_with_texts_that_are_none_ends_no_process(tmp_path):
    """In a process of its own, because an invalid cell that is not
    repaired would end the process.
    """
    pq.write_table(_arrow(_TEXTS["string"]()), tmp_path / "t.parquet")
    quiet = ["-W", "ignore:This budget allows"]
    run = [sys.executable, *quiet, "-c", _SCRIPT, str(tmp_path / "t.parquet")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "2", "")


_UNREAD = {
    "struct": lambda: pa.array([{"a": 1}, None]),
    "list": lambda: pa.array([[1], None]),
    "map": lambda: pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "pairs": lambda: pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
    "bytes": lambda: pa.array([b"a", None]),
    "offset": lambda: pa.array([1, None], pa.timestamp("us", "+05:30")),
    "no zone": lambda: pa.array([1, None], pa.timestamp("us", "Nowhere/Land")),
    "time": lambda: pa.array([1, None], pa.time64("ns")),
    "interval": lambda: pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "long decimal": lambda: pa.array([1, None], pa.decimal256(60, 2)),
    "null": lambda: pa.nulls(2),
}


@pytest.mark.parametrize("name", _UNREAD)
def test_of_a_column_that_is_not_read_it_is_known_what_is_there(name, capfd):
    """All cells of nested Arrow columns became null, and a zone of hours and
    minutes made Polars panic and print.
    """
    array = _UNREAD[name]()
    table = pa.table({"u": [1, 2], "x": array})
    pandas = pd.DataFrame({"u": [1, 2]}).assign(
        x=pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))
    )
    for frame in (table, pandas):
        there = dp.protect(frame, unit="u").filter(~dp.col("x").is_null())
        assert answer(there.count_units()) == [{(): len(array) - array.null_count}]
    assert capfd.readouterr() == ("", "")


def test_types_that_polars_does_not_know_print_nothing(capfd):
    stamps = pa.array([1, 2], pa.timestamp("us", "+07:30"))
    spans = pa.array([(1, 2, 3), None], pa.month_day_nano_interval())
    for array in (stamps, spans):
        assert answer(dp.protect(_arrow(array), unit="u").count_units()) == [{(): 2}]
        with pytest.raises(dp.errors.WrongType):
            dp.protect(_arrow(array), unit="u").n_unique("x", max_rows=1)
    assert capfd.readouterr() == ("", "")


# Objects with code of their own


class Own(BaseException):
    pass


_NAMES = [
    "str",
    "repr",
    "eq",
    "ne",
    "hash",
    "float",
    "len",
    "bool",
    "int",
    "index",
    "iter",
    "format",
    "lt",
    "array",
]


def _raising(error, *, of_class=False):
    def fail(self, *args, **kwargs):
        raise error("canary")

    body = {f"__{name}__": fail for name in [*_NAMES, "getattr", "arrow_array"]}
    return type("Raising", (), {**body, "__class__": property(fail)} if of_class else body)()


def _posing(kind):
    return type("Posing", (), {"__class__": property(lambda self: kind)})()


def _fail(*args):
    raise Own


class Text(str):
    __slots__ = ()
    __str__ = __eq__ = __len__ = encode = _fail

    def __hash__(self):
        raise Own


class Real(float):
    __eq__ = __float__ = __str__ = as_integer_ratio = _fail

    def __hash__(self):
        raise Own


class Part(Fraction):
    denominator = property(_fail)


class GivesText:
    def __str__(self):
        return Text("x")


class GivesNumber:
    def __str__(self):
        return 5


class Loud:
    def __str__(self):
        raise RecursionError("canary")


class Mutating:
    """An object that changes its table while it is read."""

    table: pd.DataFrame

    def __str__(self):
        self.table.iloc[1, 1] = "changed"
        self.table["more"] = 1
        return "mutating"


_ERRORS = (
    ValueError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    StopIteration,
    MemoryError,
    Own,
)
_CELLS = {
    **{f"raises {error.__name__}": _raising(error) for error in _ERRORS},
    **{
        f"raises {error.__name__} as its class": _raising(error, of_class=True) for error in _ERRORS
    },
    **{
        f"poses as {kind.__name__}": _posing(kind)
        for kind in (str, float, int, Decimal, pd.Timestamp, type(pd.NaT))
    },
    "text of its own": Text("abc"),
    "number of its own": Real(1.5),
    "fraction of its own": Part(1, 3),
    "gives a text of its own": GivesText(),
    "gives no text": GivesNumber(),
    "loud": Loud(),
    "surrogate": "a\ud800",
    "long": "a" * 10**6,
    "zero": "a\0b",
    "lines": "a\nb",
    **{
        f"number {i}": n
        for i, n in enumerate(
            [np.longdouble(1) / 3, 1j, np.complex128(1j), 10**5000, Fraction(1, 3)]
        )
    },
    **{
        f"decimal {n}": Decimal(n)
        for n in ("sNaN", "NaN", "Infinity", "1e400", "1e99999", "1e999999999")
    },
    "void": np.void(b"abc"),
    "years": np.datetime64("2020", "Y"),
    **{
        type(o).__name__: o
        for o in ([1], np.array([1, 2]), pd.DataFrame({"a": [1]}), int, len, ..., b"\xff")
    },
    "date": dt.date(2020, 1, 1),
    "period": pd.Period("2020"),
    "interval": pd.Interval(0, 1),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", _CELLS)
def test_an_object_of_any_kind_ends_nothing_and_changes_nobody(name, capfd):
    column = np.empty(4, object)
    column[:] = [None, "ok", "ok", None]
    column[0] = _CELLS[name]
    for dtype in (object, "category"):
        try:
            frame = pd.DataFrame({"u": range(4)}).assign(
                x=pd.Series(column, dtype=object).astype(dtype)
            )
        except BaseException:  # which pandas itself cannot hold
            assert dtype == "category"
            continue
        table = dp.protect(frame, unit="u")
        (there,) = answer(table.group_by("x", keys=["ok", "other"], max_groups=1).count_units())
        assert there == {("ok",): 2, ("other",): 0}
        assert answer(table.count("x", max_rows=1))[0][()] >> 20 in (2, 3)
        assert answer(dp.protect(frame, unit="x").count_units())[0][()] in (1, 2)
    assert capfd.readouterr() == ("", "")


_EXPONENTS = (
    "1e999999999999",
    "-3e999999999",
    "1e-999999999999",
    "0e999999999",
    "7" * 5000,
    f"0.{'7' * 5000}",
)


@pytest.mark.parametrize("written", _EXPONENTS)
def test_no_cell_takes_long_because_of_its_exponent(written):
    """As a fraction 1e999999999 has a billion digits, so one cell used up the memory."""
    cell, started = Decimal(written), time.perf_counter()
    frame = pd.DataFrame({"u": [1, 2], "x": pd.Series([cell, Decimal(1)], dtype=object)})
    answer(dp.protect(frame, unit="u").count("x", max_rows=1))
    answer(dp.protect(frame, unit="x").count_units())
    for dtype in (pl.Int64(), pl.Boolean(), pl.Decimal(38, 2), pl.Float64()):
        (read,) = each(value_for(dtype), [cell])
        assert read == (float(written) if dtype == pl.Float64() else None if cell else 0)
    assert time.perf_counter() - started < 60  # it is some milliseconds, and was without end


def test_numbers_that_no_float_holds_are_apart():
    """As floats, 1e400 and 1e500 were one unit, "inf".
    Equal numbers of different types are one unit.
    """
    texts = [text(Decimal(n)) for n in ("1e400", "1e500", "Infinity", "1e-400", "0e400", "0")]
    assert len(set(texts)) == 5
    assert texts[-2:] == ["0", "0"]
    for same in (
        [10**400, Decimal("1e400")],
        [Fraction(1, 10**400), Decimal("1e-400")],
        [1, Decimal("1.00"), 1.0],
    ):
        assert len({text(x) for x in same}) == 1
    for long in (10**5000, Decimal("1e5000"), Fraction(1, 10**5000), Decimal("1e-5000")):
        assert each(text, [long]) == [None]
    assert text(Decimal("1" + "0" * 9000 + "e-9000")) == "1"  # the zeros at its end are no digits


def test_a_table_that_is_changed_while_it_is_read():
    frame = pd.DataFrame({"u": range(3), "x": pd.Series([Mutating(), "a", "a"], dtype=object)})
    Mutating.table = frame
    query = (
        dp.protect(frame, unit="u")
        .group_by("x", keys=["a", "mutating", "changed"], max_groups=1)
        .count_units()
    )
    assert list(answer(query)[0].values()) == [2, 1, 0]


class Interrupting:
    """An object during whose conversion somebody presses Ctrl-C."""

    def __str__(self):
        os.kill(os.getpid(), signal.SIGINT)
        return "interrupted"


@pytest.fixture
def keyboard():
    """Python's own handler of Ctrl-C.
    A process that a script has started in the background ignores it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_from_the_keyboard_stops_the_work(keyboard):
    assert threading.current_thread() is threading.main_thread()
    frame = pd.DataFrame({"u": [1, 2], "x": pd.Series([Interrupting(), "a"], dtype=object)})
    with pytest.raises(KeyboardInterrupt):
        answer(dp.protect(frame, unit="u").n_unique("x", max_rows=1))
    assert signal.getsignal(signal.SIGINT) is keyboard


class OwnType(pd.api.extensions.ExtensionDtype):
    name, type = "own", object

    @classmethod
    def construct_array_type(cls):
        return OwnArray


class OwnArray(pd.api.extensions.ExtensionArray):
    """A column that converts itself to Arrow as one of its cells says."""

    dtype = OwnType()

    def __init__(self, cells):
        self.cells = list(cells)

    @classmethod
    def _from_sequence(cls, scalars, *, dtype=None, copy=False):
        return cls(scalars)

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, at):
        if not isinstance(at, (int, np.integer)):
            return OwnArray(np.array(self.cells, object)[at])
        if self.cells[at] == "raises":
            raise KeyboardInterrupt
        return self.cells[at]

    def __arrow_array__(self, type=None):
        if "raises" in self.cells:
            raise GeneratorExit
        if "short" in self.cells:
            return pa.array([1.0])
        texts = "texts" in self.cells
        return pa.array(map(str, self.cells)) if texts else pa.array(self.cells, pa.float64())

    def copy(self):
        return OwnArray(self.cells)

    def isna(self):
        return np.array([cell is None for cell in self.cells])

    def take(self, indices, *, allow_fill=False, fill_value=None):
        return OwnArray([self.cells[i] for i in indices])


@pytest.mark.parametrize("odd", ["raises", "short", "texts", None])
def test_a_column_of_a_class_of_its_own_gives_as_many_cells_as_it_has(odd):
    frame = pd.DataFrame({"u": range(3)}).assign(x=OwnArray([1.5, odd, 2.5]))
    assert answer(dp.protect(frame, unit="u").count("x", max_rows=1)) == [{(): 2 * 2**20}]


def test_attributes_flags_and_names_of_a_table_stay_behind():
    frame = pd.DataFrame({"u": [1, 2], "g": ["a", "b"]})
    frame.attrs["canary"] = _raising(Own)  # which no copy survives
    frame.flags.allows_duplicate_labels = False
    budget = dp.Budget(epsilon=10**6)
    grouped = dp.protect(frame, unit="u", budget=budget).group_by("g", keys=["a"], max_groups=1)
    out = grouped.count_units().release(epsilon=10**5)
    assert (set(out.table.attrs), out.table.flags.allows_duplicate_labels) == ({"dpframe"}, True)
    assert "canary" not in str(out.report()) + repr(out)


class Subclass(pd.DataFrame):
    """A table whose methods return other rows, from a module that claims to be pandas."""

    __module__ = "pandas.own"

    @property
    def _constructor(self):
        return Subclass

    def __getitem__(self, key):
        raise Own

    def copy(self, deep=True):
        raise Own


def test_methods_of_a_subclass_do_not_run():
    frame = Subclass({"u": [1, 2], "x": [1.0, 2.0]})
    assert answer(dp.protect(frame, unit="u").count("x", max_rows=1)) == [{(): 2 * 2**20}]
