"""Synthetic rows: the columns of the question with their keys and bins, and the query."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Generic, Unpack

import narwhals as nw

from dpframe.api.arguments import (
    Options,
    read_bounds,
    read_limits,
    read_mapping,
    read_name,
    read_names,
)
from dpframe.api.marginals import workload_of
from dpframe.api.query import AskedThrough, Query
from dpframe.api.statistics.asking import AskedFrame
from dpframe.engine import Table_co
from dpframe.errors import (
    InvalidArgument,
    InvalidBounds,
    UnboundedContribution,
    UnsupportedOperation,
)
from dpframe.plan import (
    SYNTHETIC_QUERY,
    TIMES,
    Bounds,
    ColumnDomain,
    Intervals,
    Key,
    Keys,
    Kind,
    LinkedRows,
    Synthesis,
    SyntheticColumn,
    Table,
    col,
    integer_range,
    kind,
    lit,
    moment,
    read_keys,
    ticks,
    when,
)
from dpframe.plan.columns import Limits
from dpframe.plan.declared import check_fact, limits_of
from dpframe.plan.statistics import Count
from dpframe.plan.steps import Step, combine, rewrites, source_of
from dpframe.plan.steps import basic as steps
from dpframe.plan.steps.features import PerUnit
from dpframe.plan.tables.synthesis import precisions
from dpframe.release.kinds.synthesis import SyntheticRelease
from dpframe.safe_text import visible
from dpframe.usage import PRICED, explains, read_whole

_BINS = 16  # of a column with bounds alone
_SINGLE = 32  # with at most so many whole numbers between its bounds, each is a bin of its own
_MOST_COLUMNS = 40
_MOST_LINKED = 100  # rows of a unit, each number of which is a key
_MIDNIGHT = dt.datetime(2000, 1, 1)
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, *TIMES)


@explains(".{}({})", {"release": PRICED["release"].replace("0.1", "1.0, delta=1e-9")})
class SynthesisQuery(AskedThrough, Generic[Table_co]):
    """A question for synthetic rows.
    Nothing has been read and nothing paid; `release` does both, once.
    """

    __slots__ = ()
    _habits = SYNTHETIC_QUERY

    def __init__(self, query: Query[Table_co]) -> None:
        self._query = query

    def release(
        self, epsilon: float | None = None, delta: float | None = None, **options: Unpack[Options]
    ) -> SyntheticRelease[Table_co]:
        """Pay, read the rows, measure tables in rounds, and give synthetic rows:
        see `Query.release` for the options.

        Input:  epsilon and delta above 0, or rho= from a budget in ρ; name, refresh, on_pending,
                data
        Output: SyntheticRelease: `.table` has the rows, `.marginals` the noisy tables
        Bound:  (epsilon, delta) differential privacy for the protected unit: all choices and tables
                together cost the largest ρ that implies it, and rows are computed from them
        Errors: those of `Query.release`; DeltaRequired without delta
        """
        for name, typed in (
            ("ci", options.pop("ci", None)),
            ("covers", options.pop("covers", "noise")),
        ):
            if typed not in (None, "noise"):
                raise InvalidArgument(
                    f"synthesize: rows have no intervals; leave {name}= out, and see .accuracy()."
                )
        return self._query.release(epsilon, delta, **options)  # type: ignore[return-value]

    def __repr__(self) -> str:
        names = ", ".join(visible(column.name) for column in self._query._question.columns)  # type: ignore[attr-defined]
        return (
            f"Synthetic rows of {names}: not released. See .explain(), .release(epsilon=..., "
            "delta=...)."
        )

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


@explains("{}({}, max_rows=5).release(epsilon=1.0, delta=1e-9)")
class FrameSynthesis(AskedFrame[Table_co]):
    """Synthetic rows of a protected frame."""

    __slots__ = ()

    def synthesize(
        self,
        columns: Sequence[str] | None = None,
        rows: int | str = "auto",
        workload: str | Sequence[tuple[str, ...]] = "3-way",
        *,
        keys: Mapping[str, Sequence[Any]] | None = None,
        bins: Mapping[str, Sequence[Any]] | None = None,
        bounds: Mapping[str, Any] | None = None,
        nulls: Sequence[str] = (),
        for_model: str | None = None,
        max_rows: int | None = None,
        per_unit: bool | Sequence[str] = False,
    ) -> SynthesisQuery[Table_co]:
        """Synthetic rows with this table's columns and types, from noisy tables of few columns.

        Input:  columns: by default all but those of the unit. rows: how many synthetic rows, "auto"
                for the noisy number of rows. workload: the tables for which the rows should be
                right: "1-way", "2-way" or "3-way" for all tables of so many columns, or a list of
                tuples of columns. Tables of a list are measured first, for half of what single
                columns leave of the price. Each column needs one of: keys, the list of its values;
                bins, the edges of its bins; bounds, a pair that is cut into 16 bins, or into single
                values if it has at most 32 whole numbers. Boolean and Enum columns, and those with
                declared keys or bounds or those of an earlier `clip`, need none. A row whose value
                keys= does not list does not count; a value outside of bins or bounds counts in the
                nearest bin. nulls: the columns in which null is one more value, beside those whose
                keys= list None. In any other column a row with null does not count, and no
                synthetic row has null. for_model: a column that a model is to predict; its tables
                get four times the weight. max_rows: how many rows of one unit count, at most 100
                with per_unit=. per_unit: True links rows: they get the column of the unit, with
                made-up units. A noisy histogram says how many rows these have. A list names the
                columns that are the same in all rows of a unit, such as ["sex"]
        Output: a query whose release has the rows, `out.table`, and the noisy tables,
                `out.marginals`
        Bound:  tables are chosen in rounds by the exponential mechanism and measured with Gaussian
                noise. Their costs in ρ add up to that of the release: see
                `dpframe.release.kinds.synthesis.rounds`. How finely values are given, and rows per
                unit, are tables among them: see `dpframe.plan.tables.synthesis.Synthesis`
        Source: AIM: McKenna, Mullins, Sheldon, Miklau 2022, arXiv:2201.12677, for the rounds; GReM:
                Mullins et al. 2024, arXiv:2410.01091, for tables that agree
        Errors: UnsupportedOperation, with the line to add for each column that needs one;
                UnboundedContribution, InvalidArgument, InvalidBounds, UnknownColumn, WrongType

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame(
        ...     {"smokes": [True, False], "age": [31, 64], "city": ["Bonn", "Kiel"]}
        ... )
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0, delta=1e-6))
        >>> keys, bins = {"city": ["Bonn", "Kiel"]}, {"age": [0, 18, 65, 120]}
        >>> query = frame.synthesize(keys=keys, bins=bins, rows=100)
        >>> out = query.release(epsilon=1.0, delta=1e-9)
        >>> out.table.schema == people.schema, out.table.height
        (True, 100)
        """
        names = self._columns(columns)
        typed = _Typed.read(names, keys, bins, bounds, nulls).completed(self._step.table)
        same, target = _same(per_unit, names), _target(for_model, names)
        asked = _Asked(typed, same, workload, target, _read_rows(rows))
        question = _question(self._step, asked, limits_of(read_limits(max_rows), self._step.table))
        return SynthesisQuery(Query(question, self._budget))

    def _columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        table = self._step.table.columns
        if columns is None:
            names = tuple(name for name, column in table.items() if not column.is_unit)
        else:
            names = read_names([columns], "synthesize", table)
        if not 1 <= len(names) <= _MOST_COLUMNS or len(set(names)) != len(names):
            raise InvalidArgument(
                f"synthesize: name from 1 to {_MOST_COLUMNS} different columns: "
                "synthesize(['age', 'city'], keys={...})."
            )
        for name in names:
            if self._step.table.column(name, "synthesize").is_unit:
                raise UnsupportedOperation(
                    f"synthesize: {name!r} identifies the unit, and synthetic rows belong to "
                    "nobody. Name other columns: synthesize(['age', 'city'], keys={...})."
                )
        return names


@dataclass(frozen=True)
class _Typed:
    """Arguments that were typed for columns."""

    names: tuple[str, ...]
    keys: Mapping[str, Any]
    bins: Mapping[str, Any]
    bounds: Mapping[str, Any]
    nulls: tuple[str, ...]

    @classmethod
    def read(
        cls, names: tuple[str, ...], keys: object, bins: object, bounds: object, nulls: Any
    ) -> _Typed:
        """The arguments of `synthesize`, checked. Errors: InvalidArgument."""
        dicts = _mapping(keys, "keys"), _mapping(bins, "bins"), _mapping(bounds, "bounds")
        return cls(names, *dicts, read_names([nulls], "synthesize: nulls=", names))

    def completed(self, table: Table) -> _Typed:
        """The typed arguments, and the declared keys or bounds of columns without any."""
        for fact, given in (("keys", self.keys), ("bounds", self.bounds)):
            for name, typed in given.items():
                typed = (
                    read_bounds(typed, f"synthesize: bounds of {name!r}")
                    if fact == "bounds"
                    else typed
                )
                check_fact(table.columns.get(name), fact, typed, f"synthesize: {fact} of {name!r}")
        said = {*self.keys, *self.bins, *self.bounds}
        rest = {name: table.columns[name].defaults for name in self.names if name not in said}
        keys = {name: declared.keys for name, declared in rest.items() if declared.keys}
        pairs = {
            name: declared.bounds
            for name, declared in rest.items()
            if isinstance(declared.bounds, Bounds)
        }
        bounds = {name: ends for name, ends in pairs.items() if name not in keys}
        return replace(self, keys={**self.keys, **keys}, bounds={**self.bounds, **bounds})

    def __post_init__(self) -> None:
        seen: set[str] = set()
        ways = {"keys": self.keys, "bins": self.bins, "bounds": self.bounds, "nulls": self.nulls}
        for verb, named in ways.items():
            for name in named:
                _check_known(name, self.names, verb)
                if name in seen and verb != "nulls":
                    raise InvalidArgument(
                        f"synthesize: give one of keys=, bins= and bounds= for {name!r}."
                    )
                seen.add(name)


def _check_known(name: str, names: Sequence[str], argument: str) -> None:
    """Refuse a name that an argument gives and no column has. Errors: InvalidArgument."""
    if name not in names:
        raise InvalidArgument(
            f"synthesize: {argument}= names {name!r}, which is none of {', '.join(names)}."
        )


def _mapping(value: object, name: str) -> dict[str, Any]:
    return {} if value is None else read_mapping(value, f"synthesize: {name}=")


def _read_rows(rows: object) -> int | None:
    if isinstance(rows, str) and rows == "auto":
        return None
    sentence = "synthesize: rows= is 'auto' or a whole number from 1 on, such as rows=10_000."
    return read_whole(rows, 1, 2**31 - 1, sentence)


def _workload(
    workload: object, names: tuple[str, ...], target: str | None
) -> tuple[tuple[int, ...], ...]:
    """The sets of columns of the workload; with a column to predict
    also it with every two others.
    """
    if isinstance(workload, str) and workload in ("2-way", "3-way"):
        workload = f"{min(int(workload[0]), len(names))}-way"
    tables = {tuple(sorted(part)) for part in workload_of(workload, names, "synthesize")}
    if target is not None:
        place = names.index(target)
        others = [i for i in range(len(names)) if i != place]
        tables |= {
            tuple(sorted((place, *pair))) for pair in combinations(others, min(2, len(others)))
        }
    return tuple(sorted(tables | {(i,) for i in range(len(names))}))


def _named(workload: object, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """The tables of two or more columns that were typed one by one."""
    if isinstance(workload, str):
        return ()
    return tuple(part for part in workload_of(workload, names, "synthesize") if len(part) > 1)


def _same(per_unit: object, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The columns that are the same in all rows of a unit; None if rows are not linked."""
    if isinstance(per_unit, bool):
        return () if per_unit else None
    same = read_names([per_unit], "synthesize: per_unit=", names)
    for name in same:
        _check_known(name, names, "per_unit")
    return same


@dataclass(frozen=True)
class _Asked:
    """The typed question: columns, those that are the same in all rows of a unit,
    tables, a model's column, rows.
    """

    typed: _Typed
    same: tuple[str, ...] | None
    workload: str | Sequence[tuple[str, ...]]
    target: str | None
    rows: int | None


def _question(step: Step, asked: _Asked, limits: Limits) -> Synthesis:
    typed, names = asked.typed, asked.typed.names
    source, added, linked = step, dict[str, Key](), None
    if asked.same is not None:
        step, name, numbers = _with_rows_per_unit(step, typed, limits.max_rows)
        added, linked = {name: numbers}, LinkedRows(name, _ids(source), asked.same)
    step, synthetic, levels, hints = _coded(step, source, names, typed)
    return Synthesis(
        step,
        (*names, *added, *hints),
        Keys((*levels, *added.values(), *hints.values())),
        limits,
        (),
        verb=f"synthesize([{', '.join(map(repr, names))}], {{limit}})",
        workload=_workload(asked.workload, (*names, *added), asked.target),
        named=_named(asked.workload, (*names, *added)),
        columns=synthetic,
        target=asked.target,
        rows=asked.rows,
        linked=linked,
    )


def _target(for_model: str | None, names: Sequence[str]) -> str | None:
    """The column that a model is to predict.
    Errors: InvalidArgument if there is none of this name.
    """
    target = None if for_model is None else read_name(for_model, "synthesize: for_model=")
    if target is not None:
        _check_known(target, names, "for_model")
    return target


def _with_rows_per_unit(step: Step, typed: _Typed, most: int | None) -> tuple[Step, str, Key]:
    """The table with the number of rows of each row's unit, at most the limit, the
    name of this column, and its keys.

    Bound:  the number is computed from the rows of one unit, and is joined to rows of this unit by
            the identifier. See `PerUnit` and `JoinProtected`
    """
    units = tuple(name for name, column in step.table.columns.items() if column.is_unit)
    if not units:
        raise UnsupportedOperation(
            "synthesize: per_unit= needs to know which rows are one unit's. Protect the table "
            "with unit='...', and keep this column; or leave per_unit= out."
        )
    if most is None or most > _MOST_LINKED:
        raise UnboundedContribution(
            f"synthesize: per_unit= needs a limit of {_MOST_LINKED} rows of one {units[0]!r} or "
            "fewer. Say how many: synthesize(..., per_unit=True, max_rows=5)."
        )
    name = _new_name(step, f"rows of {units[0]}")
    complete = tuple(
        one for one in typed.names if one not in typed.nulls and None not in typed.keys.get(one, ())
    )
    counted = PerUnit(steps.DropNulls(step, complete) if complete else step, ((name, Count()),))
    joined = rewrites.Clip(
        combine.JoinProtected(step, counted, units, combine.How.INNER), name, 1, most
    )
    return joined, name, tuple(range(1, most + 1))


def _ids(step: Step) -> tuple[SyntheticColumn, ...]:
    """The columns of made-up units: whole numbers, or texts of them."""
    ids = []
    for name, column in step.table.columns.items():
        if column.is_unit:
            held = column.domain.dtype
            own = held == nw.String or (
                kind(held) == Kind.INTEGER and integer_range(held)[1] >= 2**31 - 1
            )
            dtype = held if own else nw.Int64()
            ids.append(SyntheticColumn(name, dtype, own=_own_type(step, name) if own else None))
    return tuple(ids)


def _new_name(step: Step, name: str) -> str:
    while name in step.table.columns:
        name = f"{name}'"
    return name


def _precision(step: Step, name: str) -> Step | None:
    """The precision of each value of a column, as a whole number;
    None for a type of which this is not asked.
    """
    value, dtype = col(name), step.table.columns[name].domain.dtype
    ways = precisions(dtype)
    if not ways:
        return None
    # whole days and hours are those of the time that is so long after a midnight
    if kind(dtype) == Kind.DURATION:
        value = lit(_MIDNIGHT) + value
    coarse = [
        value == (value.round(way) if isinstance(way, int) else value.dt.truncate(way))
        for way in ways
    ]
    choice = when(value.is_null() | coarse[0]).then(0)
    for place, given in enumerate(coarse[1:], 1):
        choice = choice.when(given).then(place)
    return rewrites.WithColumns(
        step, ((_new_name(step, f"precision of {name}"), choice.otherwise(len(ways))),)
    )


def _coded(
    step: Step, first: Step, names: tuple[str, ...], typed: _Typed
) -> tuple[Step, tuple[SyntheticColumn, ...], tuple[Key, ...], dict[str, Key]]:
    """The table with bins in place of numbers, how values are drawn from
    each column's keys, and the keys.

    Output: the last are columns that say how finely values are given, with their keys
    """
    columns, levels, missing, hints = [], [], [], dict[str, Key]()
    for name in names:
        domain = step.table.column(name, "synthesize").domain
        edges = _edges(name, domain, typed)
        if edges is None:
            level = _level(name, domain, typed)
            if level is None:
                missing.append((name, domain))
                continue
            columns.append(SyntheticColumn(name, domain.dtype, own=_own_type(first, name)))
        else:
            points, ends = edges
            intervals = Intervals.of(
                points, right=False, closed_ends=True, call=f"synthesize: bins of {name!r}"
            )
            spans = _spans(intervals, ends, domain, name)
            lows, highs = zip(*spans, strict=True)
            precise, finest = _precision(step, name), None
            if precise is not None:
                step, (*_, finest) = precise, precise.table.columns
                hints[finest] = tuple(range(len(precisions(domain.dtype)) + 1))
            columns.append(
                SyntheticColumn(name, domain.dtype, lows, highs, _own_type(first, name), finest)
            )
            step = steps.Cut(rewrites.Clip(step, name, *ends), name, intervals, name)
            level = intervals.labels
        levels.append((*level, None) if name in typed.nulls and None not in level else tuple(level))
    if missing:
        raise UnsupportedOperation(
            "synthesize: say what values columns may have, without looking at the data: "
            f"{_lines(missing)}."
        )
    return step, tuple(columns), tuple(levels), hints


def _own_type(step: Step, name: str) -> Any:
    """The type of a column in the user's table, where it was never rewritten
    and the plan's type says less.
    """
    own = source_of(step).table.columns.get(name)
    as_read = own is not None and own.id == step.table.columns[name].id
    return source_of(step).data.own_types.get(name) if as_read else None


def _lines(missing: Sequence[tuple[str, ColumnDomain]]) -> str:
    """The arguments to type for some columns: one dict for keys=, and one for bounds=."""
    keys, bounds = [], []
    for name, domain in missing:
        family = kind(domain.dtype)
        if family in (Kind.DATE, Kind.DATETIME):
            bounds.append(f"{name!r}: (datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))")
        elif family in _NUMBERS:
            bounds.append(f"{name!r}: (0, 100)")
        else:
            keys.append(f"{name!r}: [...]")
    dicts = {"keys": keys, "bounds": bounds}
    return ", ".join(
        f"{argument}={{{', '.join(lines)}}}" for argument, lines in dicts.items() if lines
    )


def _level(name: str, domain: ColumnDomain, typed: _Typed) -> Key | None:
    """The listed keys of a column, or those that its type fixes."""
    listed = {name: typed.keys[name]} if name in typed.keys else None
    read = read_keys(listed, (name,), (domain,), f"synthesize({name!r})")
    return None if read is None else read.levels[0]


def _edges(
    name: str, domain: ColumnDomain, typed: _Typed
) -> tuple[list[Any], tuple[Any, Any]] | None:
    """The edges of a column's bins, and the ends that values are clipped
    to; None for a column with keys.
    """
    if name in typed.bins:
        points = list(
            Intervals.of(typed.bins[name], right=False, call=f"synthesize: bins of {name!r}").edges
        )
        return points, (points[0], points[-1])
    if name in typed.keys or kind(domain.dtype) not in _NUMBERS or domain.keys is not None:
        return None
    own = domain.bounds
    ends = read_bounds(typed.bounds.get(name), f"synthesize: bounds of {name!r}")
    if ends is None and own is None:
        return None
    if ends is not None and not isinstance(ends, Bounds):
        raise InvalidBounds(
            f"synthesize: dp.Auto() chooses no bounds of bins. Type bounds={{{name!r}: (0, 100)}}."
        )
    dtype = domain.dtype
    if kind(dtype) in TIMES:
        low, high = (
            (ticks(x, dtype, f"synthesize: bounds of {name!r}") for x in ends)
            if ends
            else map(int, own or ())
        )
        edges = _whole_edges(low, high)
        if isinstance(
            moment(edges[-1], dtype), int | float
        ):  # there is no time beyond the last: it is in the bin before
            edges = edges[:-1] if low < high else [low - 1, high]
        return [moment(x, dtype) for x in edges], (moment(low, dtype), moment(high, dtype))
    chosen = ends or own
    assert chosen is not None
    if kind(dtype) == Kind.INTEGER:
        low, high = math.ceil(chosen.lower), math.floor(chosen.upper)
        if low > high:
            raise InvalidBounds(
                f"synthesize: there is no whole number between the bounds of {name!r}."
            )
        return _whole_edges(low, high), (low, high)
    if chosen.lower == chosen.upper:
        raise InvalidBounds(
            f"synthesize: the bounds of {name!r} are equal; give an interval, such as (0, 100)."
        )
    first, width = float(chosen.lower), float(chosen.upper) - float(chosen.lower)
    return [first + width * i / _BINS for i in range(_BINS)] + [float(chosen.upper)], (
        chosen.lower,
        chosen.upper,
    )


def _whole_edges(low: int, high: int) -> list[Any]:
    """Edges of bins of whole numbers from `low` to `high`. The last bin has its right end.

    If each number is a bin, the last edge is one beyond `high`, where no value is: values are
    clipped to the bounds.
    """
    number = high - low + 1
    if number <= _SINGLE:
        return list(range(low, high + 2))
    return [*(low + number * i // _BINS for i in range(_BINS)), high]


def _spans(
    intervals: Intervals, ends: tuple[Any, Any], domain: ColumnDomain, name: str
) -> list[tuple[float, float]]:
    """The first and the last value of each bin.
    Errors: InvalidArgument for a bin that no value of the type is in.
    """
    dtype, call = domain.dtype, f"synthesize: bins of {name!r}"
    edges = intervals.edges_of(dtype, call)
    if kind(dtype) in TIMES:
        low, high = (ticks(end, dtype, call) for end in ends)
    else:
        low, high = ends
    if kind(dtype) not in (Kind.INTEGER, *TIMES):
        inner = [(a, math.nextafter(b, a)) for a, b in pairwise(edges[:-1])]
        return [*inner, (edges[-2], edges[-1])]
    first, last = integer_range(dtype) if kind(dtype) == Kind.INTEGER else (-(2**63), 2**63 - 1)
    exact = intervals.edges if kind(dtype) == Kind.INTEGER else edges
    spans = []
    for number, (a, b) in enumerate(pairwise(exact)):
        start = max(math.ceil(a), math.ceil(low), first)
        end = min(
            math.floor(b) if number == len(exact) - 2 else math.ceil(b) - 1, math.floor(high), last
        )
        if start > end:
            raise InvalidArgument(
                f"{call}: no value of the column's type is in {intervals.labels[number]}."
            )
        spans.append((start, end))
    return spans
