"""Exact integer totals per group, as the engine computes them.
They never leave the release function.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, get_ident
from typing import Any, TypeVar
from weakref import ref

import narwhals as nw
import numpy as np
import polars as pl

from dpframe.arrays import Integers, PlaceCounts, WideIntegers
from dpframe.engine.backends import backend_of
from dpframe.engine.backends.polars import plainly
from dpframe.engine.backends.rehearsal import asked_again
from dpframe.engine.compile import (
    HIGH,
    Compiled,
    compiled,
    counted,
    influence_weights,
    is_salted,
    split_bits,
)
from dpframe.engine.forks import check_threads
from dpframe.engine.intake import signals
from dpframe.engine.origins import no_file, says_missing
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import group_names, listed_groups, public_keys
from dpframe.errors import DpFrameError, EngineError, EngineUnavailable
from dpframe.plan import Question, Total

T = TypeVar("T")
_FEW = 100  # listed keys that are looked up in less time in Python than a join takes


@dataclass(frozen=True, repr=False)
class Totals:
    """Raw totals of a question, which are not private.

    `keys` has one row per group, and `held` has these groups as the engine holds them. `values` has
    one array for each total of `question.allotments`: one integer per group for an additive total
    or a number of distinct values, and for ranks the number of rows of each group at each
    candidate, which are nearly all 0.
    """

    keys: pl.DataFrame = field(repr=False)
    values: tuple[Any, ...] = field(repr=False)  # WideIntegers; PlaceCounts for ranks
    held: pl.DataFrame = field(repr=False)


def totals(
    question: Question,
    salt: int,
    in_play: pl.DataFrame | None = None,
    weights: tuple[pl.DataFrame, Mapping[int, Integers]] | None = None,
) -> Totals:
    """Read the rows and add them up.

    Input:  the question; salt: 64 bits, for the choice of groups; in_play: in a question that is
            answered in rounds, the groups that units spread their weight over, as an earlier round
            `held` them; None for all; weights: the groups as an earlier reading `held` them, and
            the weights of influences, see `influence_weights`. Without them, influences are 0
    Errors: EngineError
    """
    table = None if weights is None else influence_weights(question, *weights)
    return guarded(lambda: _assembled(question, *_read(question, salt, in_play, table)))


def validate(question: Question) -> None:
    """Run the whole query on a table with the same columns and no row, so that
    it cannot fail after the charge.
    """
    check_threads(question.step)
    guarded(lambda: _validated(question), before=True)


def _validated(question: Question) -> None:
    """The query without rows; in rounds also that of a later round, where no key is in play."""
    first = _assembled(question, *_empty(question))
    if question.in_rounds:
        _assembled(question, *_empty(question, first.held))
    influences = {
        i: np.zeros((first.keys.height if question.by else 1, len(p.total.moment.parts)), np.int64)
        for i, p in enumerate(question.read)
        if p.total.of_influence and p.total.moment is not None
    }
    if influences:
        _assembled(
            question, *_empty(question, weights=influence_weights(question, first.held, influences))
        )


def guarded(run: Callable[[], T], *, before: bool = False) -> T:
    """Run an engine without its warnings, and replace the messages of its errors (see `sealed`).

    Input:  before: whether it reads no rows, so that nothing about them is told by a lost
            connection
    """

    def quiet() -> T:
        with warnings.catch_warnings(), _nested():
            warnings.simplefilter("ignore")
            return run()

    return sealed(quiet, before=before)


# Classes of SQLSTATE and types of exceptions that say that a connection is lost or refused.
_SQLSTATES = ("08", "57P01", "57P02", "57P03", "53300")
_LOST = frozenset(
    {
        *(
            "psycopg.OperationalError",
            "psycopg.InterfaceError",
            "psycopg2.OperationalError",
            "psycopg2.InterfaceError",
        ),
        *(
            "duckdb.ConnectionException",
            "py4j.protocol.Py4JNetworkError",
            "grpc._channel._InactiveRpcError",
        ),
        "pyspark.errors.exceptions.connect.SparkConnectGrpcException",
    }
)


def _is_lost(error: BaseException | None) -> bool:
    """Whether an error, or one that it comes from, is of a lost connection:
    by type and SQLSTATE, not by its words.

    Errors can come from each other, in a circle.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        state = getattr(error, "sqlstate", None)
        names = {
            f"{kind.__module__}.{kind.__name__}".replace("_duckdb.", "duckdb.")
            for kind in type(error).__mro__
        }
        if isinstance(state, str):
            return state.startswith(_SQLSTATES)
        if isinstance(error, ConnectionError) or names & _LOST:
            return True
        error = error.__cause__ or error.__context__
    return False


# calls within each other: what writes SQL takes nine for each subquery within a subquery
_DEEP = 10_000
_running: list[int] = []  # the thread of each engine that runs
_found = 0  # the limit of calls before the first of them ran
_lock = Lock()


def _begin_anew() -> None:
    """After a fork: another thread may have held the lock, and no other thread goes on."""
    global _lock
    _lock = Lock()
    others = [thread for thread in _running if thread != get_ident()]
    for thread in others:
        _ended(thread)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def _nested() -> Iterator[None]:
    """Let calls nest deeply enough for the longest question. The limit is that of all threads."""
    global _found
    with _lock:
        _found = _found if _running else sys.getrecursionlimit()
        _running.append(get_ident())
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEP))
    try:
        yield
    finally:
        with _lock:
            _ended(get_ident())


def _ended(thread: int) -> None:
    _running.remove(thread)
    if not _running:
        sys.setrecursionlimit(_found)


_WITHHELD = (
    "The engine could not run this query. Its own message is withheld because it may show cells; "
    "run the same steps on a few made-up rows to see it."
)
_UNAVAILABLE = (
    "The database does not answer, or the connection to it is lost. Nothing was paid. Connect "
    "again, protect the table of the new connection, and run the job again."
)


def sealed(run: Callable[[], T], *, before: bool = False) -> T:
    """Run a function, and replace an error of the engine by one with a constant
    message: the engine's may show cells.

    A lost connection, and a file that is gone, are told apart only before the charge, where no row
    is read. After it no class of errors is safe to tell: rows decide how long a query runs and how
    much memory it takes, so a time limit, a full disk and a server that is out of memory can depend
    on one unit; and a view may end its own connection where a cell says so.

    The handler catches BaseException, because Polars' PanicException is one. The new error is
    raised outside of the handler, so that it does not refer to the old one. Where the handler of a
    signal raised, as for Ctrl-C, that is what is raised, whatever the engine made of it. An error
    of dpframe's own and an interrupt are raised from here too, without their traceback: it would
    refer to the functions that read rows, whose variables are tables and raw totals, and debuggers
    and `%xmode Verbose` print variables.
    """
    failure: BaseException
    with signals() as raised:
        try:
            return run()
        except DpFrameError as error:
            failure = error
        except (KeyboardInterrupt, SystemExit) as error:
            failure = _again(error)
        except BaseException as error:
            failure = _told(error, before=before)
    failure = (_again(raised[0]) if raised else failure).with_traceback(None)
    failure.__cause__ = failure.__context__ = None
    raise failure


def _told(error: BaseException, *, before: bool) -> BaseException:
    """The error that stands for one of the engine; see `sealed`."""
    if before and _is_lost(error):
        return EngineUnavailable(_UNAVAILABLE)
    return no_file() if before and says_missing(error) else EngineError(_WITHHELD)


def _again(error: BaseException) -> BaseException:
    """An interrupt or an exit with none of its texts.
    Another exception of a signal's handler is as it was raised.
    """
    match error:
        case KeyboardInterrupt():
            return KeyboardInterrupt()
        case SystemExit():
            return SystemExit(error.code if isinstance(error.code, int) else None)
    return error


def _empty(
    question: Question, in_play: pl.DataFrame | None = None, weights: pl.DataFrame | None = None
) -> tuple[list[pl.DataFrame], dict[int, pl.DataFrame]]:
    """The tables of totals of a question, computed on its tables without their rows."""
    frames = compiled(question, 0, empty=True, in_play=in_play, weights=weights)
    tables = planned(question, [*frames.mains, *frames.apart.values()])
    if in_play is None and weights is None:
        place = id(question)
        _CHECKED[place] = ref(question, lambda _: _CHECKED.pop(place, None)), frames
    mains = len(frames.mains)
    return tables[:mains], dict(zip(frames.apart, tables[mains:], strict=True))


# the frames of questions that were checked, until they run
_CHECKED: dict[int, tuple[ref[Question], Compiled]] = {}


def _checked(question: Question, salt: int) -> Compiled | None:
    """The frames that were checked before the charge, on the rows;
    None where the engine makes them anew.
    """
    _, frames = _CHECKED.pop(id(question), (None, None))
    if frames is None:
        return None
    if backend_of(frames.parts).plans_tables:
        return None if is_salted(question) else frames
    again = asked_again([*frames.mains, *frames.apart.values(), frames.parts], salt)
    if again is None:
        return None
    *asked, parts = again
    mains = len(frames.mains)
    return replace(
        frames,
        mains=tuple(asked[:mains]),
        apart=dict(zip(frames.apart, asked[mains:], strict=True)),
        parts=parts,
    )


def _read(
    question: Question, salt: int, in_play: pl.DataFrame | None, weights: pl.DataFrame | None
) -> tuple[list[pl.DataFrame], dict[int, pl.DataFrame]]:
    """The tables of totals of a question, read at once or added up over parts of the units."""
    tables = added(question, partial(_sums, salt, in_play, weights))
    numbers = [i for i, allotment in enumerate(question.read) if not allotment.total.additive]
    mains = len(tables) - len(numbers)
    return tables[:mains], {
        i: _numbers(question, table) for i, table in zip(numbers, tables[mains:], strict=True)
    }


def _sums(
    salt: int,
    in_play: pl.DataFrame | None,
    weights: pl.DataFrame | None,
    question: Question,
    whole: bool,
) -> list[Sums]:
    """The sums of a question.
    On a part of the units, distinct values are pairs of group and value, not yet counted.
    """
    again = _checked(question, salt) if whole and in_play is None and weights is None else None
    frames = again or compiled(question, salt, whole=whole, in_play=in_play, weights=weights)
    groups = group_names(question)
    columns = [(frame, frame.collect_schema().names()) for frame in frames.apart.values()]
    apart = [Sums(frame, tuple(name for name in names if name != "t")) for frame, names in columns]
    return [*(Sums(main, tuple(groups)) for main in frames.mains), *apart]


def _numbers(question: Question, table: pl.DataFrame) -> pl.DataFrame:
    """A table with numbers "t".
    A table of pairs of group and value becomes the number of pairs in each group.
    """
    if "t" in table.columns:
        return table
    return counted(nw.from_native(table.lazy()), group_names(question)).to_native().collect()


def _assembled(
    question: Question, mains: Sequence[pl.DataFrame], apart: dict[int, pl.DataFrame]
) -> Totals:
    names = group_names(question)
    held, keys = listed_groups(question) if question.keys is not None else (None, None)
    table = _beside(names, held, mains)
    values: list[WideIntegers | PlaceCounts] = []
    for i, allotment in enumerate(question.read):
        if allotment.total.additive:
            values.append(joined(table, i, split_bits(allotment.total)))
        else:
            values.append(_placed(table.select(names), apart[i], names, allotment.total))
    if not names:
        return Totals(pl.DataFrame(), tuple(values), table.select(names))
    if held is not None and keys is not None:
        return Totals(keys, tuple(values), held)
    return Totals(public_keys(question, table), tuple(values), table.select(names))


def _beside(
    names: list[str], listed: pl.DataFrame | None, mains: Sequence[pl.DataFrame]
) -> pl.DataFrame:
    """Tables of totals under one set of limits each, beside one another:
    a row for each group, 0 where it has no unit.

    The groups are the listed ones. Where they are found in the data, they are those of the first
    table: see `compiled`.
    """
    if not names:
        return pl.concat(mains, how="horizontal") if mains else pl.DataFrame()
    table, others = (mains[0].sort(names), mains[1:]) if listed is None else (listed, mains)
    for other in others:
        sums = [name for name in other.columns if name not in names]
        if (
            listed is not None
            and len(names) == 1
            and table.height <= _FEW
            and _is_plain(table.schema[names[0]])
        ):
            table = table.hstack(_sums_of(table.get_column(names[0]), other, sums))
            continue
        beside = table.lazy().join(other.lazy(), on=names, how="left", maintain_order="left")
        table = plainly(beside.with_columns(pl.col(sums).fill_null(0)))
    return table


def _is_plain(dtype: pl.DataType) -> bool:
    """Whether equal keys are equal in Python, and no others are."""
    return dtype.is_integer() or dtype in (pl.String, pl.Boolean)


def _sums_of(keys: pl.Series, other: pl.DataFrame, sums: Sequence[str]) -> list[pl.Series]:
    """Columns of sums in the order of some keys, 0 for a key that has none:
    what a left join gives, for a few keys.
    """
    places = {key: place for place, key in enumerate(keys)}
    at = [places.get(key, -1) for key in other.get_column(keys.name)]
    columns = []
    for name in sums:
        column = other.get_column(name)
        column = column.fill_null(0) if column.null_count() else column
        values = np.zeros(len(keys) + 1, np.int64)  # the last place is for keys that are not listed
        values[at] = column.to_numpy()
        columns.append(pl.Series(name, values[:-1], dtype=column.dtype))
    return columns


def joined(table: pl.DataFrame, i: int, low: int) -> WideIntegers:
    """A total from its low and high halves: int64 where every value
    fits, otherwise Python integers.
    """
    total: WideIntegers = table.get_column(f"t{i}").to_numpy()
    if not low:
        return total
    high: WideIntegers = table.get_column(f"t{i}{HIGH}").to_numpy()
    if np.all(np.abs(high) < 2 ** (61 - low)) and np.all(np.abs(total) < 2**62):
        return np.asarray(high * 2**low + total)
    return np.asarray(high.astype(object) * 2**low + total.astype(object))


def _placed(
    keys: pl.DataFrame, numbers: pl.DataFrame, names: list[str], total: Total
) -> WideIntegers | PlaceCounts:
    """The numbers of a total that has a frame of its own, in the order of the
    groups; 0 where its frame has none.
    """
    size, width = keys.height if names else 1, total.width
    if names:
        numbers = numbers.join(keys.with_row_index("i"), on=names, how="inner").drop(names)
    else:
        numbers = numbers.with_columns(pl.lit(0).alias("i"))
    if width is not None:
        held = numbers.filter(pl.col("b") >= 0).cast(pl.Int64)
        groups, places, rows = (held.get_column(name).to_numpy() for name in ("i", "b", "t"))
        order = np.argsort(groups * width + places)
        return PlaceCounts(groups[order], places[order], rows[order], (size, width))
    values = np.zeros(size, np.int64)
    values[numbers.get_column("i").to_numpy()] = numbers.get_column("t").to_numpy()
    return values
