"""The questions that are asked: every aggregate with hostile bounds and keys;
random tables, steps and questions.

A random case is drawn once, on one engine, as a list of what is done to a table; so it can be done
again to the same table on another engine, and to the table without rows, whose refusals must be the
same ones.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
from cells import TYPES, Cells, pairs
from engines import Engine, Table
from expressions import TARGETS, on_one, on_two
from reference import family

import dpframe as dp
from dpframe.plan import kind
from inside import step_of
from statistics_table import shapes

__all__ = ["AFTER", "BOUNDS", "EDGES", "Side", "a_question", "a_step", "a_table", "aggregates"]

BOUNDS = {
    "integer": [(-3, 10), (0, 0), (-(2**63), 2**63), (100, 2**64 - 1), (0.5, 7.25)],
    "float": [(-3, 10), (0.5, 7.25), (-1e270, 5), (1e-300, 2e-300), (-(2**53), 2**53)],
    "date": [
        (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        (dt.date(2020, 1, 1), dt.date(2020, 12, 31)),
    ],
    "datetime": [(dt.datetime(1999, 1, 1), dt.datetime(2030, 1, 1))],
    "duration": [(dt.timedelta(hours=-1), dt.timedelta(days=400))],
}
KEYS = {
    "integer": [0, 1, 100],
    "float": [0.0, 1.0, 2.5],
    "string": ["", "a", "A", "'", "e\u0301", "\\", "%"],
    "boolean": [True, False],
    "date": [dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "datetime": [dt.datetime(1970, 1, 1), dt.datetime(2021, 3, 28, 1)],
    "duration": [dt.timedelta(0), dt.timedelta(seconds=86400)],
}


def aggregates(name: str, dtype: Any) -> list[Any]:
    """Every aggregate of a column, with bounds and keys of its kind.
    Those that its type does not have are refused.
    """
    family_of = "float" if family(dtype) == "decimal" else family(dtype)
    zoned = getattr(dtype, "time_zone", None) is not None
    utc = lambda x: x.replace(tzinfo=dt.UTC) if zoned and isinstance(x, dt.datetime) else x  # noqa: E731
    made = [dp.count(name), dp.n_unique(name)]
    for low, high in BOUNDS.get(family_of, []):
        bounds = (utc(low), utc(high))
        made += [
            dp.sum(name, bounds=bounds),
            dp.sum(name, unit_bounds=bounds),
            dp.mean(name, bounds=bounds),
        ]
        made += [
            dp.var(name, bounds=bounds),
            dp.std(name, bounds=bounds),
            dp.median(name, bounds=bounds),
        ]
        made += [
            dp.quantile(name, 0.9, bounds=bounds),
            dp.min(name, bounds=bounds),
            dp.max(name, bounds=bounds),
        ]
    made += shapes(name, (-2.5, 1000.0)).values()
    made.append(dp.ratio(dp.sum(name, bounds=(-2.5, 1000.0)), dp.sum(name, bounds=(0, 7))))
    made.append(dp.geometric_mean(name, bounds=(0.5, 1000.0)))
    for keys in (KEYS[family_of], [*KEYS[family_of], None]):
        made.append(dp.mode(name, keys=[utc(key) for key in keys]))
    for low, high in BOUNDS.get(family_of, []):
        bounds = (utc(low), utc(high))
        made += [
            dp.quantile(name, [0.25, 0.5, 0.75], bounds=bounds),
            dp.cdf(name, [bounds[0]], bounds=bounds),
        ]
    return made


# Random tables, steps and questions

FILLERS = (
    0,
    5,
    -1,
    300,
    2**63 - 1,
    0.5,
    1e200,
    "",
    "a",
    "'",
    True,
    dt.date(2020, 2, 29),
    dt.datetime(2021, 3, 28, 1),
)
# more rows and groups than a unit has in any of these tables: nothing is chosen by a hash
WIDE = 1024
PUBLIC = 5  # rows of a public table


@dataclass
class Side:
    """A table of an engine, protected; more tables are protected for the same budget."""

    engine: Engine
    table: Table
    unit: Any
    budget: dp.Budget

    def __post_init__(self) -> None:
        brought = self.engine.bring(self.table)
        self.held = brought.cells
        self.frame = dp.protect(brought.native, unit=self.unit, budget=self.budget)
        self.first = self.frame

    def without_rows(self) -> Side:
        """The same columns."""
        table = {name: replace(cells, cells=()) for name, cells in self.table.items()}
        return Side(self.engine, table, self.unit, self.budget)


Step = Callable[[Side], dp.PrivateFrame]


def a_table(rng: random.Random) -> tuple[Table, Any]:
    """Two columns of each of two types and a column for the unit, which has
    some rows each or hostile cells.
    """
    first, second = rng.sample(sorted(TYPES), 2)
    table = dict(pairs([first, second], most=rng.choice([12, 60])))
    height = len(next(iter(table.values())).cells)
    table["u"] = Cells("u", nw.Int64(), tuple(None if i == 7 else i // 3 for i in range(height)))
    unit = rng.choice(["u", "u", "u", dp.Rows(1), dp.Rows(2), f"a_{first}", ("u", f"b_{second}")])
    return table, unit


def _columns(frame: dp.PrivateFrame) -> dict[str, Any]:
    """The types of the columns that operations can read."""
    columns = {name: column.domain.dtype for name, column in step_of(frame).table.columns.items()}
    return {
        name: dtype
        for name, dtype in columns.items()
        if kind(dtype) != "other" and family(dtype) != "null"
    }


def _expression(rng: random.Random, frame: dp.PrivateFrame) -> dp.Expr:
    """An operation on columns, followed by up to three more operations."""
    columns = _columns(frame)
    name = rng.choice(list(columns))
    a, b = dp.col(name), dp.col(rng.choice(list(columns)))
    expr = rng.choice(on_two(a, b) if rng.random() < 0.3 else on_one(a, family(columns[name])))
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        expr = rng.choice(AFTER)(expr)
    return expr


AFTER = (
    *(
        lambda e: e + 1,
        lambda e: e * e,
        lambda e: 1 - e,
        lambda e: e / 3,
        lambda e: e // 7,
        lambda e: e % 1000,
    ),
    *(
        lambda e: -e,
        lambda e: e.abs(),
        lambda e: e.floor(),
        lambda e: e.sqrt(),
        lambda e: e.fill_null(5),
    ),
    *(
        lambda e: e.clip(-3, 1e200),
        lambda e: e.cast("int8"),
        lambda e: e.cast("int64"),
        lambda e: e.cast("float32"),
    ),
    *(
        lambda e: e.cast("string"),
        lambda e: e.cast("float64"),
        lambda e: e.cast("boolean"),
        lambda e: e.cast("date"),
    ),
    *(
        lambda e: e > 0,
        lambda e: ~e,
        lambda e: e.is_null(),
        lambda e: e.is_in([0, 1]),
        lambda e: e == "a",
    ),
    *(
        lambda e: dp.when(e > 0).then(e).otherwise(0.5),
        lambda e: dp.when(e).then(1),
        lambda e: e.str.head(2),
    ),
    *(
        lambda e: e.str.len_chars(),
        lambda e: e.str.contains("1"),
        lambda e: e.dt.year(),
        lambda e: e.dt.weekday(),
    ),
)


def a_step(rng: random.Random, side: Side) -> Step:
    """The next step on a table.
    It is described by the columns that it reads, so that it can be repeated on others.
    """
    return rng.choice(STEPS)(rng, side)


def _name(rng: random.Random, side: Side) -> str:
    return rng.choice(list(_columns(side.frame)) or side.frame.columns)


def _filter(rng: random.Random, side: Side) -> Step:
    expr = _expression(rng, side.frame)
    if rng.random() < 0.5:
        expr = expr.is_null() if rng.random() < 0.5 else expr == rng.choice(FILLERS)
    return lambda to: to.frame.filter(expr)


def _with_columns(rng: random.Random, side: Side) -> Step:
    named = {
        rng.choice(["x", "y", _name(rng, side)]): _expression(rng, side.frame)
        for _ in range(rng.randint(1, 3))
    }
    return lambda to: to.frame.with_columns(**named)


def _bounds(rng: random.Random, dtype: Any) -> tuple[Any, Any]:
    low, high = rng.choice(BOUNDS.get(_kind(dtype), BOUNDS["float"]))
    return (_zoned(dtype, low), _zoned(dtype, high))


def _kind(dtype: Any) -> str:
    return "float" if family(dtype) == "decimal" else family(dtype)


def _zoned(dtype: Any, value: Any) -> Any:
    """A time with a zone or without, as the columns of a type have it."""
    zoned = getattr(dtype, "time_zone", None) is not None and isinstance(value, dt.datetime)
    return value.replace(tzinfo=dt.UTC) if zoned else value


def _clip(rng: random.Random, side: Side) -> Step:
    name = _name(rng, side)
    low, high = _bounds(rng, _columns(side.frame).get(name, nw.Float64()))
    ends = rng.choice([(low, high), (low, high), (None, high), (low, None)])
    return lambda to: to.frame.clip(name, *ends)


def _cast(rng: random.Random, side: Side) -> Step:
    name, target = _name(rng, side), rng.choice(TARGETS)
    return lambda to: to.frame.cast(name, target)


EDGES = {
    "integer": [(0, 1, 10), (-(2**63), 0, 2**63 - 1), (-0.5, 2**53, 2**53 + 2, 1e30)],
    "float": [
        (0, 1, 10),
        (-1e308, 0.0, 1e308),
        (-1e270, -5e-324, 0.0, 5e-324, 1e270),
        (0.1, 0.30000000000000004, 0.5),
    ],
    "date": [(dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31))],
    "datetime": [(dt.datetime(1, 1, 1), dt.datetime(2021, 3, 28, 1), dt.datetime(9999, 12, 31))],
    "duration": [(dt.timedelta(days=-400), dt.timedelta(0), dt.timedelta(hours=1))],
}


def _edges(rng: random.Random, dtype: Any) -> list[Any]:
    return [_zoned(dtype, edge) for edge in rng.choice(EDGES.get(_kind(dtype), EDGES["float"]))]


def _cut(rng: random.Random, side: Side) -> Step:
    name = _name(rng, side)
    bins = _edges(rng, _columns(side.frame).get(name, nw.Float64()))
    options = {
        "right": rng.random() < 0.5,
        "include_lowest": rng.random() < 0.5,
        "into": rng.choice([None, "cut"]),
    }
    return lambda to: to.frame.cut(name, bins, **options)


def _fill_null(rng: random.Random, side: Side) -> Step:
    name, value = _name(rng, side), rng.choice(FILLERS)
    return lambda to: to.frame.fill_null(name, value)


def _drop_nulls(rng: random.Random, side: Side) -> Step:
    names = rng.choice([[], [_name(rng, side)]])
    return lambda to: to.frame.drop_nulls(*names)


def _select(rng: random.Random, side: Side) -> Step:
    columns = side.frame.columns
    names = rng.sample(columns, rng.randint(max(1, len(columns) - 2), len(columns)))
    return lambda to: to.frame.select(*names)


def _rename(rng: random.Random, side: Side) -> Step:
    names = {rng.choice(side.frame.columns): rng.choice(["é", "A b", 'q"u', "count", "%", "R"])}
    return lambda to: to.frame.rename(names)


def _join(rng: random.Random, side: Side) -> Step:
    """A public table of the engine with some cells of a column, perhaps
    repeated, and a column of numbers.
    """
    name = rng.choice(["u", *side.held])
    cells = side.held[name].cells
    some = tuple(rng.choice(cells) for _ in range(PUBLIC))
    twice, how = rng.random() < 0.3, rng.choice(["inner", "left"])
    public = {
        name: replace(side.held[name], cells=some if twice else tuple(dict.fromkeys(some))),
    }
    public["p"] = Cells("p", nw.Int64(), tuple(range(len(public[name].cells))))
    return lambda to: to.frame.join(to.engine.make(public)[0], on=name, how=how)


def _concat(rng: random.Random, side: Side) -> Step:
    """Below it itself, or the table as it was brought."""
    return rng.choice(
        [lambda to: dp.concat([to.frame, to.frame]), lambda to: dp.concat([to.frame, to.first])]
    )


def _per_unit(rng: random.Random, side: Side) -> Step:
    columns = _columns(side.frame)
    features = {}
    for feature in ("x", "y"):
        name = _name(rng, side)
        dtype = columns.get(name, nw.Float64())
        low, high = _bounds(rng, dtype)
        features[feature] = rng.choice(
            [
                *(dp.count(), dp.count(name), dp.n_unique(name), dp.sum(name, bounds=(low, high))),
                *(dp.sum(name, unit_bounds=(low, high)), dp.mean(name, bounds=(low, high))),
                *(dp.min(name, bounds=(low, high)), dp.max(name, bounds=(low, high))),
                *(dp.first(name, by=_name(rng, side)), dp.last(name, by=_name(rng, side))),
            ]
        )
    return lambda to: to.frame.per_unit(**features)


def _bound(rng: random.Random, side: Side) -> Step:
    most = rng.choice([1, 3, WIDE])
    return lambda to: to.frame.bound(max_rows=most)


STEPS = (
    *(
        _filter,
        _with_columns,
        _with_columns,
        _with_columns,
        _clip,
        _cast,
        _cut,
        _fill_null,
        _drop_nulls,
        _select,
    ),
    *(_rename, _join, _concat, _per_unit, _bound),
)


def a_question(rng: random.Random, side: Side, *, wide: bool) -> Callable[[Side], Any]:
    """A question about the table; with `wide`, one whose limits no unit reaches."""
    limits: dict[str, Any] = {}
    if not isinstance(side.unit, dp.Rows):
        most = [WIDE] if wide else [1, 2, 3, 16]
        limits = {"max_rows": rng.choice(most)}
    return rng.choice(QUESTIONS)(rng, side, limits)


def _keys(rng: random.Random, dtype: Any) -> list[Any] | None:
    """A list of keys, sometimes with null; or None, so that keys come from the data."""
    listed = [_zoned(dtype, key) for key in KEYS.get(_kind(dtype), KEYS["string"])]
    return rng.choice([None, listed, [*listed, None]])


def _aggregate(rng: random.Random, side: Side) -> Any:
    name = _name(rng, side)
    dtype = _columns(side.frame).get(name, nw.Float64())
    return rng.choice(
        [dp.count(), dp.count_units(), *aggregates(name, dtype), *aggregates(name, dtype)]
    )


def _several(rng: random.Random, side: Side) -> dict[str, Any]:
    return {
        f"n{i}": rng.choice([_aggregate, _aggregate, _limited, _pair])(rng, side)
        for i in range(rng.randint(1, 3))
    }


def _limited(rng: random.Random, side: Side) -> Any:
    """A statistic with limits of its own."""
    name = _name(rng, side)
    bounds: Any = (
        _bounds(rng, _columns(side.frame).get(name, nw.Float64()))
        if rng.random() < 0.8
        else dp.Auto()
    )
    limits: dict[str, Any] = {"max_rows": rng.choice([1, 3, WIDE])} if rng.random() < 0.7 else {}
    make = rng.choice([dp.sum, dp.mean, dp.var, dp.std, dp.median])
    return rng.choice(
        [dp.count(**limits), dp.count(name, **limits), make(name, bounds=bounds, **limits)]
    )


def _pair(rng: random.Random, side: Side) -> Any:
    """A statistic of two columns."""
    names, bounds = _pairs_of(rng, side, 2)
    if len(names) < 2:
        return dp.count()
    asked = [
        dp.cov,
        dp.corr,
        lambda x, y, bounds: dp.mean(x, bounds=bounds[x], weights=y, weight_bounds=(0, 7)),
    ]
    return rng.choice(asked)(*names, bounds=bounds)


def _pairs_of(rng: random.Random, side: Side, most: int) -> tuple[list[str], dict[str, Any]]:
    """Some columns, and bounds of each."""
    columns = _columns(side.frame)
    numbers = [name for name, dtype in columns.items() if _kind(dtype) in BOUNDS] or list(columns)
    names = rng.sample(numbers, min(most, len(numbers)))
    return names, {name: _bounds(rng, columns[name]) for name in names}


def _chosen(rng: random.Random, limits: dict[str, Any]) -> dict[str, Any]:
    """The limits, or sometimes dp.Auto() in their place."""
    return {"limits": dp.Auto()} if rng.random() < 0.15 else limits


def _agg(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    asked, limits = _several(rng, side), _chosen(rng, limits)
    return lambda to: to.frame.agg(**asked, **limits)


def _group_by(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    by = [_name(rng, side) for _ in range(rng.choice([1, 1, 2]))]
    columns = _columns(side.frame)
    keys: Any = _keys(rng, columns.get(by[0], nw.String()))
    if len(by) == 2 and keys is not None:
        keys = {by[0]: keys, by[1]: _keys(rng, columns.get(by[1], nw.String())) or []}
    groups = (
        {"max_groups": limits["max_rows"], "max_rows_per_group": limits["max_rows"]}
        if limits
        else {}
    )
    asked, groups = _several(rng, side), _chosen(rng, groups)
    if keys is None and rng.random() < 0.2:
        groups = groups | {"other": "else"}
    if keys is None and rng.random() < 0.2:
        groups = groups if rng.random() < 0.5 else {}
        return lambda to: to.frame.group_by(*by, **groups).keys()
    return lambda to: to.frame.group_by(*by, keys=keys, **groups).agg(**asked)


def _histogram(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    name = _name(rng, side)
    dtype = _columns(side.frame).get(name, nw.Float64())
    groups = {"max_groups": limits["max_rows"], **limits} if limits else {}
    if rng.random() < 0.4:
        keys = _keys(rng, dtype)
        return lambda to: to.frame.histogram(name, keys=keys, **groups)
    bins, outside = (
        _edges(rng, dtype),
        {"underflow": rng.random() < 0.5, "overflow": rng.random() < 0.5},
    )
    return lambda to: to.frame.histogram(name, bins, **outside, **groups)


def _quantile(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    name, q = _name(rng, side), rng.choice([0.5, [0.25, 0.75], 0, 1])
    bounds = _bounds(rng, _columns(side.frame).get(name, nw.Float64()))
    return lambda to: to.frame.quantile(name, q, bounds, **limits)


def _alone(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    name = _name(rng, side)
    keys = _keys(rng, _columns(side.frame).get(name, nw.String()))
    chosen = rng.choice(["n_unique", "mode", "top_k", "mean"])
    if chosen == "n_unique":
        return lambda to: to.frame.n_unique(name, **limits)
    if chosen == "mean":
        return lambda to: to.frame.mean(name, bounds=dp.Auto(), **limits)
    if chosen == "top_k":
        return lambda to: to.frame.top_k(name, 2, keys, **limits)
    return lambda to: to.frame.mode(name, keys, **limits)


def _crosstab(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    by = [_name(rng, side), _name(rng, side)]
    columns = _columns(side.frame)
    keys = {name: _keys(rng, columns.get(name, nw.String())) or ["a", None] for name in by}
    groups = {"max_groups": limits["max_rows"], **limits} if limits else {}
    if rng.random() < 0.2 and by[0] != by[1]:
        leaves = [
            (first, second) for first in keys[by[0]] for second in keys[by[1]] if rng.random() < 0.8
        ]
        return lambda to: to.frame.hierarchy(
            by, leaves or [(keys[by[0]][0], keys[by[1]][0])], **groups
        )
    if rng.random() < 0.3:
        return lambda to: to.frame.marginals(by, keys=keys, **limits)
    shape: dict[str, Any] = {"margins": rng.choice([False, True, "measured"])}
    shape |= {"normalize": rng.choice([False, False, "index", "all"])}
    if rng.random() < 0.3:
        values = _name(rng, side)
        bounds = _bounds(rng, columns.get(values, nw.Float64()))
        shape |= {"values": values, "aggfunc": rng.choice(["sum", "mean"]), "bounds": bounds}
    groups = _chosen(rng, groups)
    return lambda to: to.frame.crosstab(*by, keys=keys, **groups, **shape)


def _describe(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    name = _name(rng, side)
    bounds = {name: _bounds(rng, _columns(side.frame).get(name, nw.Float64()))}
    return lambda to: to.frame.describe([name], bounds, **limits)


def _matrix(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    """Matrices and regressions."""
    names, bounds = _pairs_of(rng, side, rng.choice([2, 3]))
    if rng.random() < 0.5:
        verb = rng.choice(["cov", "corr"])
        return lambda to: getattr(to.frame, verb)(names, bounds, **limits)
    category = _name(rng, side)
    keys = (
        None if rng.random() < 0.5 else _keys(rng, _columns(side.frame).get(category, nw.String()))
    )
    x = names[1:] if keys is None or category in names else [*names[1:], category]
    keys = {category: keys} if category in x and keys is not None else None
    return lambda to: to.frame.ols(y=names[0], x=x, bounds=bounds, keys=keys, **limits)


def _synthesize(rng: random.Random, side: Side, limits: dict[str, Any]) -> Callable[[Side], Any]:
    columns = _columns(side.frame)
    names = rng.sample(list(columns), min(len(columns), rng.randint(1, 3)))
    keys, bins, bounds = {}, {}, {}
    for name in names:
        if rng.random() < 0.4:
            keys[name] = _keys(rng, columns[name]) or [None]
        elif rng.random() < 0.4:
            bins[name] = _edges(rng, columns[name])
        else:
            bounds[name] = _bounds(rng, columns[name])
    rows, nulls = rng.choice(["auto", 1, 20]), [name for name in names if rng.random() < 0.3]
    said = {
        "keys": keys,
        "bins": bins,
        "bounds": bounds,
        "nulls": nulls,
        "per_unit": rng.random() < 0.2,
    }
    return lambda to: to.frame.synthesize(names, rows, **said, **limits)


QUESTIONS = (
    *(
        _agg,
        _agg,
        _agg,
        _group_by,
        _group_by,
        _group_by,
        _group_by,
        _histogram,
        _quantile,
        _alone,
        _crosstab,
    ),
    *(_describe, _matrix, _synthesize),
)
