"""Canaries: unique values in every column, looked for in everything that
comes out but the released numbers.

Standard output and error of the process, logs, warnings, exceptions with all they hang on, repr and
HTML, what pickling leaves behind, the bytes of ledgers, temporary files; through every public call,
and through 150 errors that an engine raises with cells in its message (500 in the long tier). Of
these errors the variables of every function in the traceback are looked at too, which `%xmode
Verbose`, `pytest -l` and others print.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import logging
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.engine import compile as compiler
from dpframe.engine.backends import polars as on_polars
from dpframe.errors import DpFrameError
from dpframe.release.kinds import answers as tables
from dpframe.release.kinds.hierarchy import release as hierarchies
from dpframe.release.shown import ledger_page
from inside import numbers_of
from statistics_table import shapes
from strategies import bring

ROWS = 12
TEXTS = {
    name: [f"canary-{name}-{i:02d}-7f3ac1" for i in range(ROWS)]
    for name in ("user", "city", "shop")
}
WHOLE = [731_904_226_000_113 + 7 * i for i in range(ROWS)]
REAL = [31337.0904226 + 1.0007 * i for i in range(ROWS)]
DAYS = [dt.date(1723, 4, 5) + dt.timedelta(days=11 * i) for i in range(ROWS)]
TABLE = pl.DataFrame({**TEXTS, "n": WHOLE, "x": REAL, "day": DAYS, "yes": [True, False, None] * 4})
SIGNS = [
    *(text.encode() for texts in TEXTS.values() for text in texts),
    *(str(number).encode() for number in WHOLE + REAL),
    *(str(day).encode() for day in DAYS),
    *(struct.pack("<q", number) for number in WHOLE),
    *(struct.pack("<d", number) for number in REAL),
]


def hits(*found):
    """The canaries in texts or bytes."""
    blob = b"\n".join(f if isinstance(f, bytes) else str(f).encode(errors="replace") for f in found)
    return [sign for sign in SIGNS if sign in blob]


RAW = "rows or raw totals"


def variables(error):
    """What the functions of dpframe, and those that they call,
    hold in the traceback of an error.
    """
    shown, trace, inside = [], error.__traceback__, False
    while trace is not None:
        inside = inside or trace.tb_frame.f_globals.get("__name__", "").startswith("dpframe")
        if inside:
            held = [*trace.tb_frame.f_locals.values()]
            for value in held:
                # an object that is not made yet has nothing to show
                with contextlib.suppress(AttributeError):
                    shown.append(repr(value))
            shown += [
                RAW
                for value in held
                if isinstance(value, (engine.Totals, engine.Contingency, pl.DataFrame))
            ]
        trace = trace.tb_next
    return shown


class Ears:
    """Everything that is said while the block runs, beside what it returns."""

    def __init__(self, folder):
        self.folder, self.said = Path(folder), []

    @contextlib.contextmanager
    def listening(self):
        saved = [os.dup(1), os.dup(2)]
        logged, level = io.StringIO(), logging.getLogger().level
        handler = logging.StreamHandler(logged)
        logging.getLogger().addHandler(handler)
        logging.getLogger().setLevel(logging.DEBUG)
        with tempfile.TemporaryFile() as out, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            try:
                yield
            finally:
                for number, old in enumerate(saved, start=1):
                    os.dup2(old, number)
                    os.close(old)
                logging.getLogger().removeHandler(handler)
                logging.getLogger().setLevel(level)
                out.seek(0)
                self.said += [out.read(), logged.getvalue(), *(str(w.message) for w in caught)]
                self.said += [
                    path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
                ]

    def error(self, error):
        """An exception and everything that hangs on it."""
        while error is not None:
            self.said += [
                repr(error),
                str(error),
                *getattr(error, "__notes__", []),
                *map(repr, error.args),
            ]
            self.said.append("".join(traceback.format_exception(error)))
            self.said += variables(error)
            error = error.__cause__ or error.__context__

    def attempt(self, call):
        """What a call gives, or the error it raises."""
        try:
            return call()
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            self.error(error)
            self.said.append(
                f"was {type(error).__name__}, of dpframe: {isinstance(error, DpFrameError)}"
            )
            return None


STEPS = [
    lambda f: f,
    lambda f: f.filter(dp.col("x") > 1e4),
    lambda f: f.with_columns(x=dp.col("x") * 2, city=dp.col("city").str.to_uppercase()),
    lambda f: f.cast("shop", "int64").fill_null("shop", 3).cast("shop", "str"),
    lambda f: f.clip("n", 0, 9).fill_null("x", 0).drop_nulls(),
    lambda f: f.cut("x", [0, 31340, 99999], into="where"),
    lambda f: f.join({"city": ["nowhere"], "sea": [True]}, on="city", how="left"),
    lambda f: f.per_unit(n=dp.count(), x=dp.sum("x", bounds=(0, 1))),
    lambda f: dp.concat([f, f]),
]
SPAN = (dt.date(2000, 1, 1), dt.date(2001, 1, 1))
# a key that one unit has is released with this probability, and then shown rightly; a test asks
# hundreds
NEVER = 1e-15
TREE, YES = [("Bonn", "a"), ("Bonn", "b"), ("Kiel", "a")], {"yes": [True]}
KEYS = {"city": ["Bonn", "Kiel"], "yes": [True]}


def limited(frame, **limits):
    """Limits, where there is somebody to limit."""
    return {} if isinstance(frame.unit, dp.Rows) else limits


QUESTIONS = [
    lambda f: f.count_units(),
    lambda f: f.sum("x", (0, 1), **limited(f, max_rows=2)),
    lambda f: f.agg(
        d=dp.n_unique("shop"),
        m=dp.median("day", SPAN),
        s=dp.sum("n", (0, 5)),
        **limited(f, max_rows=2),
    ),
    lambda f: f.agg(
        q=dp.quantile("x", [0.2, 0.5, 0.8], (0, 9)),
        c=dp.cdf("day", SPAN, SPAN),
        **limited(f, max_rows=2),
    ),
    lambda f: f.group_by(
        "city", keys=KEYS["city"], **limited(f, max_groups=1, max_rows_per_group=2)
    ).std("n", (0, 5)),
    lambda f: f.agg(**shapes("x", (0, 9)), **limited(f, max_rows=2)),
    lambda f: f.group_by(
        "city", keys=KEYS["city"], **limited(f, max_groups=1, max_rows_per_group=2)
    ).agg(
        n=dp.count(**limited(f, max_rows=9)),
        m=dp.median("x", (0, 9), **limited(f, max_rows=1)),
        k=dp.count(),
    ),
    lambda f: f.describe(bounds={"x": (0, 9), "n": (0, 5)}, **limited(f, max_rows=2)),
    lambda f: f.agg(
        r=dp.corr("x", "n", {"x": (0, 9), "n": (0, 5)}),
        m=dp.mean("x", (0, 9), weights="n", weight_bounds=(0, 5)),
        s=dp.ratio(dp.sum("x", (0, 9)), dp.sum("n", (0, 5))),
        **limited(f, max_rows=2),
    ),
    lambda f: f.geometric_mean("x", (1, 9), **limited(f, max_rows=2)),
    lambda f: f.group_by("city", **limited(f, max_groups=1)).count_units(),
    lambda f: f.group_by("city").keys(),
    lambda f: f.top_k("city", 2, **limited(f, max_groups=1, max_rows_per_group=2)),
    lambda f: f.crosstab("city", "yes", keys=KEYS, margins=True, **limited(f, max_rows=2)),
    lambda f: f.histogram("x", bins=[0, 31340, 99999], **limited(f, max_rows=2)),
    lambda f: f.hierarchy(
        ["city", "shop"], TREE, "x", "sum", bounds=(0, 9), by=YES, **limited(f, max_rows=2)
    ),
]


def shown(query, ears):
    """A query and its release, in every way they can be shown."""
    said = [repr(query), query._repr_html_(), str(query.explain()), repr(dict(query.sensitivity))]
    said += [str(query.accuracy(1.0, 1e-6))]
    for how in (pickle.dumps, lambda q: pickle.dumps(q, protocol=5)):
        ears.attempt(lambda how=how: said.append(how(query)))
    out = query.release(epsilon=1.0, delta=NEVER)
    said += [
        repr(out),
        out._repr_html_(),
        str(out.report()),
        out.report().to_json(),
        out.to_csv() or "",
        str(out.noise),
    ]
    said += [
        str(out.table),
        str(out.accuracy()),
        str(out.derivation),
        repr(out.cost),
        pickle.dumps(out.to_polars()),
    ]
    ears.attempt(lambda: said.extend(_compared(query)))
    return said


def _compared(query):
    """A release whose intervals are about the population, and its groups beside
    each other, where there are any.
    """
    out = query.release(epsilon=1.0, delta=NEVER, covers="population")
    yield from (repr(out), out._repr_html_(), str(out.report()), str(out.accuracy()))
    keys = out.to_polars().row(0)[: len(numbers_of(out).by)]
    yield str(out.compare(keys))
    yield repr(out.independence())


EVERY_KIND = ("pandas", "lazy", "polars", "pyarrow")


@pytest.mark.parametrize(
    ("kind", "every"),
    [
        ("pandas", 36),
        ("lazy", 60),
        *(pytest.param(kind, 1, marks=pytest.mark.long) for kind in EVERY_KIND),
    ],
)
def test_no_public_call_shows_a_cell(kind, every, tmp_path, monkeypatch):
    """After each step every n-th question, others after the next step:
    together each step and each question.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ears = Ears(tmp_path)
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=1e6, delta=0.5)
    turn = 0
    with ears.listening():
        for unit in ("user",) if kind == "pandas" else ("user", ("user", "shop"), dp.Rows(1)):
            frame = dp.protect(
                TABLE.to_pandas() if kind == "pandas" else bring(TABLE, kind),
                unit=unit,
                budget=budget,
            )
            for make in STEPS:
                step = ears.attempt(lambda make=make, frame=frame: make(frame))
                if step is None:
                    continue
                ears.said += [repr(step), step._repr_html_(), repr(step.columns), repr(step.budget)]
                turn += 1
                for ask in QUESTIONS[turn % every :: every]:
                    query = ears.attempt(lambda ask=ask, step=step: ask(step))
                    if query is not None:
                        ears.said += ears.attempt(lambda query=query: shown(query, ears)) or []
        ears.said += [repr(budget.history()), repr(budget)]
    assert len(ears.said) > 300
    assert not hits(*ears.said)
    assert hits(TABLE.write_csv()), "the ears hear nothing"
    assert hits(pickle.dumps(TABLE)), "the ears hear nothing"


SYNTHESES = [
    lambda f: f.synthesize(
        ["city", "x", "day"], keys={"city": KEYS["city"]}, bounds=ENDS, nulls=["x"], max_rows=2
    ),
    lambda f: f.synthesize(
        ["city", "x"], keys={"city": KEYS["city"]}, bounds={"x": (0, 9)}, max_rows=2, per_unit=True
    ),
    lambda f: f.synthesize(
        ["n", "shop"], keys={"shop": ["a", None]}, bounds={"n": (0, 5)}, rows=9, max_rows=1
    ),
]
ENDS = {"x": (0, 9), "day": SPAN}


def released_rows(out):
    """Synthetic rows in every way they can be shown."""
    yield from (
        repr(out),
        out._repr_html_(),
        str(out.report()),
        out.report().to_json(),
        out.to_csv(),
    )
    yield from (
        str(out.table),
        str(out.accuracy()),
        str(out.noise),
        str(out.derivation),
        pickle.dumps(out.to_polars()),
    )
    yield from map(str, out.marginals.values())
    yield str(out.plot().to_dict())
    yield str(out.sample(5))


@pytest.mark.parametrize("kind", ["pandas", "polars", pytest.param("lazy", marks=pytest.mark.long)])
def test_no_synthetic_row_shows_a_cell(kind, tmp_path, monkeypatch):
    """Texts are also held as categories, whose list is the data's:
    it must not come back with the rows.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ears = Ears(tmp_path)
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=1e6, delta=0.5)
    held = TABLE.with_columns(pl.col("city", "shop").cast(pl.Categorical))
    with ears.listening():
        table = held.to_pandas() if kind == "pandas" else bring(held, kind)
        frame = dp.protect(table, unit="user", budget=budget)
        for make in SYNTHESES:
            query = make(frame)
            ears.said += [
                repr(query),
                query._repr_html_(),
                str(query.explain()),
                repr(query.sensitivity),
            ]
            ears.attempt(lambda query=query: ears.said.append(pickle.dumps(query)))
            for epsilon in (0.1, 100.0):
                out = query.release(epsilon=epsilon, delta=1e-6)
                ears.said += released_rows(out)
                texts = out.table["city" if "city" in out.table else "shop"]
                places = (
                    texts.cat.codes.tolist()
                    if kind == "pandas"
                    else texts.to_physical().drop_nulls().to_list()
                )
                assert max(places, default=0) < 2, (
                    "places among the listed keys, not among the data's"
                )
    assert len(ears.said) > 50
    assert not hits(*ears.said)


MATRICES = [
    lambda f: f.cov(["x", "n"], {"x": (0, 9), "n": (0, 5)}, max_rows=2),
    lambda f: f.corr(["x", "n"], {"x": (0, 9), "n": (0, 5)}, max_rows=2),
    lambda f: f.cov(["x", "n"], {"x": (0, 9), "n": (0, 5)}, max_rows=2, narrow=True),
    lambda f: f.ols(
        y="x",
        x=["n", "city"],
        bounds={"x": (0, 9), "n": (0, 5)},
        keys={"city": KEYS["city"]},
        max_rows=2,
    ),
    lambda f: f.ols(y="x", x=["n"], bounds={"x": (0, 9), "n": (0, 5)}, max_rows=2, narrow=True),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["pandas", "lazy"])
def test_no_matrix_and_no_regression_shows_a_cell(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ears = Ears(tmp_path)
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=1e6, delta=0.5)
    with ears.listening():
        frame = dp.protect(
            TABLE.to_pandas() if kind == "pandas" else bring(TABLE, kind),
            unit="user",
            budget=budget,
        )
        for make in MATRICES:
            query = make(frame)
            ears.said += [repr(query), str(query.explain())]
            ears.attempt(lambda query=query: ears.said.append(str(query.accuracy(1.0, 1e-6))))
            ears.attempt(lambda query=query: ears.said.append(repr(query.sensitivity)))
            ears.attempt(lambda query=query: ears.said.append(pickle.dumps(query)))
            for epsilon in (0.1, 100.0):
                out = query.release(epsilon=epsilon)
                ears.said += [
                    repr(out),
                    str(out.table),
                    str(out.accuracy(0.1)),
                    str(out.report()),
                    repr(out.cost),
                ]
                ears.attempt(lambda out=out: ears.said.append(str(out.plot().to_dict())))
                ears.attempt(
                    lambda out=out: ears.said.append(str(out.predict({"n": [1], "city": ["Bonn"]})))
                )
    assert len(ears.said) > 50
    assert not hits(*ears.said)


@pytest.mark.parametrize("kind", ["pandas", "lazy"])
def test_no_series_shows_a_cell(kind, tmp_path, monkeypatch):
    """Nights that are added, repeated, late, killed, failed and measured again;
    what is stored, drawn and told.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ears = Ears(tmp_path)
    with ears.listening():
        ledger = dp.Ledger(tmp_path / "study.sqlite")
        for unit in ("user", dp.Rows(1)):
            budget = ledger.budget(f"b{unit}", epsilon=1e6, delta=0.5)
            rows = TABLE.to_pandas() if kind == "pandas" else bring(TABLE, kind)
            frame = dp.protect(rows, unit=unit, budget=budget, data="a table")
            series = budget.series(
                f"s{unit}",
                every="1w",
                horizon=9,
                epsilon=1.0,
                unit_periods=1,
                on="day",
                start="1723-04-01",
            )
            query = frame.group_by(
                "city", keys=["Bonn"], **limited(frame, max_groups=1, max_rows_per_group=1)
            ).agg(n=dp.count(), s=dp.sum("x", (0, 1)))
            for turn, week in enumerate((0, 1, 1, 4, 2, 3)):
                period = dt.date(1723, 4, 1) + dt.timedelta(weeks=week)
                with monkeypatch.context() as patch:
                    if turn == 5:
                        failing = Failing(engine.totals, FAILURES[0], 1)
                        patch.setattr(engine, "totals", failing)
                    out = ears.attempt(
                        lambda query=query, period=period, to=series: to.add(query, period)
                    )
                if out is None:
                    out = series.add(query, period, on_pending="retry")
                ears.said += [
                    repr(out),
                    out._repr_html_(),
                    str(out.report()),
                    repr(out.cost),
                    repr(series),
                ]
            table = series.table("2w")
            ears.said += [
                repr(table),
                str(table.plot().to_dict()),
                series.explain(),
                repr(series.total()),
            ]
            ears.said += [
                str(budget.forecast()),
                repr(ledger_page(ledger)),
                repr(budget.allocate(nights=3, epsilon=0.1)),
            ]
        ears.said += [repr(budget.history()), ledger.export(), ledger.export("csv")]
    shown = [text for text in ears.said if not isinstance(text, bytes)]
    assert not hits(*ears.said)
    assert len(shown) > 60


# Errors

FAILURES = [
    lambda cell: pl.exceptions.ComputeError(
        f"conversion from `str` to `i64` failed for value {cell}"
    ),
    lambda cell: pl.exceptions.PanicException(f"called `unwrap` on {cell}"),
    lambda cell: pl.exceptions.ShapeError(cell),
    lambda cell: ValueError(f"could not convert {cell}"),
    lambda cell: KeyError(cell),
    lambda cell: UnicodeDecodeError("utf-8", cell.encode(), 0, 1, cell),
    lambda cell: OverflowError(cell),
    lambda cell: MemoryError(cell),
    lambda cell: RecursionError(cell),
    lambda cell: OSError(5, cell),
]


class Failing:
    """Raises the n-th time that it is called, with a cell in its message, as an engine would."""

    def __init__(self, real, make, after):
        self.real, self.make, self.left = real, make, after

    def __call__(self, *args, **said):
        self.left -= 1
        if self.left == 0:
            error = self.make(random.choice(TEXTS["city"]))
            error.add_note(TEXTS["user"][0])
            raise error from ValueError(TEXTS["shop"][1])
        return self.real(*args, **said)


SITES = [
    (compiler, "lower"),
    (compiler, "partials"),
    (on_polars.PolarsBackend, "keyed_hash"),
    (pl.LazyFrame, "collect"),
    (pl, "collect_all"),
    (pl.LazyFrame, "collect_schema"),
    (pl.DataFrame, "join"),
    (tables, "drawn_table"),
    (hierarchies, "drawn_levels"),
]


@pytest.mark.parametrize("number", [75, pytest.param(500, marks=pytest.mark.long)])
def test_errors_of_an_engine_show_no_cell(number, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng, ears, forced, foreign = random.Random(500), Ears(tmp_path), 0, []
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=1e6, delta=0.5)
    frame = dp.protect(TABLE.lazy(), unit="user", budget=budget)
    asked = [ask(frame) for ask in QUESTIONS]
    with ears.listening():
        for _ in range(3000):
            place, name = rng.choice(SITES)
            failing = Failing(getattr(place, name), rng.choice(FAILURES), rng.randint(1, 4))
            query = rng.choice(asked)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(place, name, (lambda f: lambda *a, **k: f(*a, **k))(failing))
                try:
                    query.release(epsilon=1.0, delta=NEVER)
                except BaseException as error:
                    forced += 1
                    ears.error(error)
                    if not isinstance(error, DpFrameError):
                        foreign.append((name, repr(error)))
            if forced == number:
                break
    assert forced == number
    assert not foreign, foreign[:3]
    assert not hits(*ears.said)
    assert RAW not in ears.said


@pytest.mark.parametrize(("place", "name"), [(pl.LazyFrame, "collect"), (tables, "drawn_table")])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_show_no_cell(place, name, kind, tmp_path, monkeypatch):
    """One that comes while rows are read, or noise is drawn, is raised, and
    holds neither rows nor totals.
    """
    frame = dp.protect(TABLE, unit="user", budget=dp.Budget(epsilon=100))
    query, ears, real, calls = (
        frame.sum("x", (0, 1), max_rows=2),
        Ears(tmp_path),
        getattr(place, name),
        [],
    )

    def interrupted(*args, **named):
        calls.append(real(*args, **named))  # rows are here
        raise kind(TEXTS["city"][0])

    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(kind) as raised:
        query.release(epsilon=1.0)
    ears.error(raised.value)
    assert len(calls) == 1
    assert frame.budget.spent.epsilon == 1  # the check on a table without rows came before
    assert len(ears.said) > 5
    assert not hits(*ears.said)
    assert RAW not in ears.said


_SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_cell("%xmode Verbose")
for cell in sys.argv[1:]:
    shell.run_cell(cell)
"""
_CELLS = [
    "import polars as pl, dpframe as dp; real = pl.LazyFrame.collect",
    "def told(rows):\n    if len(rows):\n        raise KeyboardInterrupt\n    return rows",
    "def ask(rows):\n    return dp.protect(rows, unit='user', "
    "budget=dp.Budget(epsilon=9)).count(max_rows=1)",
    "pl.LazyFrame.collect = lambda self, *args, **named: told(real(self, *args, **named))",
]


def test_ipython_shows_no_cell_in_its_verbose_mode(tmp_path):
    """A shell prints the variables of each function in a traceback;
    of ours, none that holds a cell.
    """
    TABLE.write_parquet(tmp_path / "t.parquet")
    read = f"ROWS = pl.read_parquet({str(tmp_path / 't.parquet')!r})"
    asked = [
        _CELLS[0],
        read,
        *_CELLS[1:],
        "asked = ask(ROWS.lazy())",
        "asked.release(epsilon=1.0)",
        "print('and without dpframe')",
        "told(ROWS)",
    ]
    shell, about = (
        [sys.executable, "-c", _SHELL, *asked],
        {**os.environ, "IPYTHONDIR": str(tmp_path)},
    )
    done = subprocess.run(shell, capture_output=True, env=about, timeout=300, check=False)
    ours, _, others = done.stdout.partition(b"and without dpframe")
    assert b"KeyboardInterrupt" in ours, done
    assert b"KeyboardInterrupt" in others
    assert hits(others)
    assert not hits(ours, done.stderr)


class Odd:
    """An object of a pandas column whose own code tells what it holds."""

    def __str__(self):
        raise ValueError(TEXTS["shop"][0])

    __repr__ = __str__


def test_errors_of_the_rows_themselves_show_no_cell(tmp_path):
    def tell(rows):
        raise ValueError(rows["city"].to_list())

    tables = [
        pd.DataFrame({"user": TEXTS["user"], "city": [Odd()] * ROWS, "x": REAL}),
        pd.DataFrame(
            {
                "user": TEXTS["user"],
                "city": [b"\xff" + text.encode() for text in TEXTS["city"]],
                "x": REAL,
            }
        ),
        pd.DataFrame(
            {
                "user": TEXTS["user"],
                "city": [*TEXTS["city"][:-1], 7],
                "x": [*TEXTS["shop"][:-1], 3.5],
            }
        ),
        TABLE.select("user", "city", "x").lazy().map_batches(tell),
        TABLE.select("user", "city", x="shop").lazy().cast({"x": pl.Float64}),
    ]
    ears = Ears(tmp_path)
    failed = 0
    with ears.listening():
        for table in tables:
            frame = dp.protect(table, unit="user", budget=dp.Budget(epsilon=100, delta=0.1))
            for ask in (
                lambda f: f.sum("x", (0, 1), max_rows=1),
                lambda f: f.cast("city", "int64").sum("city", (0, 1), max_rows=1),
                lambda f: f.group_by("city", max_groups=1).count_units(),
            ):
                before = len(ears.said)
                ears.attempt(
                    lambda ask=ask, frame=frame: ears.said.append(
                        str(ask(frame).release(1.0, 1e-9).table)
                    )
                )
                failed += any("was " in str(word) for word in ears.said[before:])
    assert failed
    assert not any("of dpframe: False" in str(word) for word in ears.said)
    assert not hits(*ears.said)
