"""Arguments that users type, read and checked once: names, limits, bounds, shares.
A refusal names the parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import compress
from operator import and_, or_
from types import MappingProxyType
from typing import Any, TypedDict

import polars as pl
from narwhals.dtypes import DType

from dpframe import engine
from dpframe.errors import InvalidArgument, InvalidBounds, UnknownColumn, WrongCall, kind_of
from dpframe.plan import (
    Aggregate,
    Auto,
    Bounds,
    Expr,
    Kind,
    Limits,
    Name,
    Schema,
    check_interval,
    col,
    in_order,
    kind,
    lit,
    output_name,
    plain,
    read_polars,
    selected,
    warn_of_computed_bounds,
    warn_of_computed_keys,
    when,
)
from dpframe.plan.columns import Column
from dpframe.plan.keys import Key, Keys
from dpframe.plan.statistics.base import Named
from dpframe.plan.steps import Step, check_limit
from dpframe.plan.steps.rewrites import WithColumns
from dpframe.usage import STEPS, is_list, nearest, one_by_one, read_whole

_RANKS = 10**6  # the largest denominator of a rank
_MISSPELT = 2  # with more unknown names than this, they are taken for values of a column
Pair = tuple[Any, Any] | Auto  # two numbers, dates, times or timedeltas; or dp.Auto()
Pairs = Pair | Mapping[str, Pair]  # for several columns, those of each
# one column, or several: a list of names, or a selector of Polars
Columns = str | Sequence[str] | pl.Expr


def read_name(value: object, call: str) -> str:
    """The name of a column."""
    match value:
        case Expr() | pl.Expr():
            raise InvalidArgument(
                f"{call}: give the name of a column, not an expression. Write the expression as a "
                f"column, and name that: with_columns(y=...).{call.partition('(')[0]}('y'). An "
                "aggregate of Polars goes into agg(pl.len())."
            )
        case Aggregate() | Named():
            raise InvalidArgument(
                f"{call}: give the name of a column. A statistic is asked by agg({value!r})."
            )
        case list() | tuple() if value and all(isinstance(name, str) for name in value):
            verb = call.partition("(")[0]
            raise InvalidArgument(
                f"{call}: name one column here. A method of the frame or its groups takes several: "
                f"frame.{verb}(['x', 'y']). In agg type each: agg(dp.{verb}('x'), dp.{verb}('y'))."
            )
        case str():
            return value
    raise InvalidArgument(f"{call}: give the name of a column, not {kind_of(value)}.")


def read_names(
    values: Iterable[object], call: str, columns: Sequence[str] | Mapping[str, Column]
) -> tuple[str, ...]:
    """Names of columns, one by one or as a list.
    If many are not in `columns`, the message shows none of them.

    Input:  columns: those there are; of a mapping, `polars.selectors` and `pl.col("x", "y")` name
            some
    Errors: InvalidArgument; UnknownColumn for names that seem to be values of a column. A few
            unknown names may be misspelt; the table refuses these
    """
    flat: list[object] = []
    for one in one_by_one(values):
        selector = isinstance(one, pl.Expr) and isinstance(columns, Mapping)
        flat.extend((read_several(one, call, columns) if selector else None) or [one])  # type: ignore[arg-type]
    names = tuple(read_name(value, call) for value in flat)
    if sum(name not in columns for name in names) > _MISSPELT:
        raise UnknownColumn(
            f"{call}: give names of columns; these seem to be values, and are not shown. Columns: "
            f"{', '.join(columns)}."
        )
    return names


def read_several(
    value: object, call: str, columns: Mapping[str, Column], but: Collection[str] = ()
) -> list[str] | None:
    """The columns of a list, of `pl.col("x", "y")` or of a selector of Polars;
    None for one name or anything else.

    A selector means columns by their public names and types, and none that identifies the unit or
    is in `but`: the keys of a grouping, as in Polars.

    Errors: UnknownColumn for a selector that means no column
    """
    match value:
        case list() | tuple():
            parts = [
                read_several(one, call, columns, but) or [read_name(one, call)] for one in value
            ]
            return list(dict.fromkeys(name for part in parts for name in part))
        case pl.Expr():
            names = selected(value, public_schema(columns, but))
            if names == []:
                raise UnknownColumn(
                    f"{call}: the selector means no column. Columns: {', '.join(columns)}."
                )
            return names
    return None


def public_schema(columns: Mapping[str, Column], but: Collection[str] = ()) -> Schema:
    """The columns that a selector is resolved on, as Polars has their types: see `read_several`."""

    def held(dtype: DType) -> Any:
        if dtype.is_decimal():
            return pl.Decimal
        known = hasattr(pl, type(dtype).__name__)  # Polars 1.30 has no UInt128, which DuckDB has
        return engine.polars_dtype(dtype) if known and kind(dtype) != Kind.OTHER else pl.Object

    units = {name for name, column in columns.items() if column.is_unit}
    return Schema(
        {name: held(column.domain.dtype) for name, column in columns.items()},
        frozenset({*units, *but}),
    )


def typed_too(**given: object) -> str:
    """Other typed arguments of a call, for a line to type again: `keys=..., `."""
    return "".join(f"{name}=..., " for name, value in given.items() if value is not None)


def read_mapping(value: object, call: str) -> dict[str, Any]:
    """A dict from columns to something."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidArgument(f"{call}: give a dict of columns, such as {{'spend': ...}}.")
    return {read_name(key, call): item for key, item in value.items()}


def read_limits(
    max_rows: object = None,
    max_groups: object = None,
    max_rows_per_group: object = None,
    limits: object = None,
) -> Limits:
    """Limits of one unit, each a whole number of at least 1 or None;
    `limits` is None or dp.Auto().
    """
    if limits is not None and not isinstance(limits, Auto):
        raise InvalidArgument("limits= takes dp.Auto(), which chooses them inside the release.")
    if any(isinstance(limit, Auto) for limit in (max_rows, max_groups, max_rows_per_group)):
        raise InvalidArgument(
            "A limit is a whole number; to have limits chosen inside the release: limits=dp.Auto()."
        )
    by_name = {
        "max_rows": max_rows,
        "max_groups": max_groups,
        "max_rows_per_group": max_rows_per_group,
    }
    read = {
        name: None if value is None else check_limit(value, name) for name, value in by_name.items()
    }
    return Limits(**read, auto=limits)


def read_min_units(value: object) -> int | None:
    """The fewest units of a group: a whole number of at least 1, or None.
    Errors: InvalidArgument.
    """
    return None if value is None else check_limit(value, "min_units")


class OwnLimits(TypedDict, total=False):
    """Limits on one unit for one column of a question:
    at most so many rows, groups, and rows in each group.
    """

    max_rows: int | None
    max_groups: int | None
    max_rows_per_group: int | None


class RowLimits(TypedDict, total=False):
    """Limits on one unit for a question about the whole table:
    at most so many rows; or dp.Auto() chooses.
    """

    max_rows: int | None
    limits: Auto | None


class GroupLimits(OwnLimits, total=False):
    """Limits on one unit for a question about groups;
    or dp.Auto() chooses those that are not typed.
    """

    limits: Auto | None


class Options(TypedDict, total=False):
    """Arguments of a release beside its price in ε and δ: see `Query.release`."""

    rho: float | None
    share: float | None
    noise: str
    name: str | None
    refresh: bool
    on_pending: str
    data: Any
    ci: float | None
    covers: str | None
    fill: bool
    spender: str | None
    purpose: str | None
    supersedes: str | None
    because: str | None


def read_row_limits(max_rows: object = None, limits: object = None) -> Limits:
    """The limit on one unit's rows, or dp.Auto(); see `read_limits`."""
    return read_limits(max_rows, limits=limits)


def read_own(limits: Mapping[str, object]) -> Limits:
    """Limits of one column, by name.
    Errors: TypeError for other names, which `statistic` words; InvalidArgument.
    """
    for name in limits:
        if name not in OwnLimits.__annotations__:
            raise TypeError(name)
    if any(isinstance(limit, Auto) for limit in limits.values()):
        raise InvalidArgument(
            "A limit of a column is a whole number; to have limits chosen for every column inside "
            "the release, type limits=dp.Auto() in group_by(...) or agg(...)."
        )
    return read_limits(**limits)


def read_bounds(value: object, call: str) -> Bounds | Auto | None:
    """A pair (lower, upper) of finite numbers or of times, in order; or dp.Auto(); or None."""
    match value:
        case Auto() if not value.scaled:
            raise InvalidBounds(
                f"{call}: scaled= is about limits, which leave rows out, and says nothing of "
                f"bounds. Type bounds={replace(value, scaled=True)} here, and "
                "limits=dp.Auto(scaled=False) where limits are chosen."
            )
        case None | Auto():
            return value
        case str() if value.lower() == "auto":
            raise InvalidBounds(f"{call}: bounds=dp.Auto() chooses them inside the release.")
        case str():
            raise InvalidBounds(
                f"{call}: bounds are a pair, such as (0, 100), or dp.Auto(). Several columns are a "
                f"list: {call.partition('(')[0]}(['x', {value!r}])."
            )
    if not is_list(value) or len(pair := tuple(value)) != 2:
        raise InvalidBounds(f"{call}: bounds are a pair, such as (0, 100), or dp.Auto().")
    lower, upper = pair
    if lower is None or upper is None:
        raise InvalidBounds(f"{call}: give both bounds, such as (0, 100).")
    read = Bounds(*check_interval(lower, upper, call))
    warn_of_computed_bounds(value, call)
    return read


def read_values(values: object, call: str) -> tuple[Any, ...] | None:
    """Values of a column in a list, or None."""
    if values is None:
        return None
    if not is_list(values):
        raise InvalidArgument(f"{call}: keys= is a list of values.")
    read = tuple(plain(value) for value in in_order(values))
    warn_of_computed_keys(values, call)
    return read


def read_share(value: object, such_as: str = "2 for twice the part of the price") -> Fraction:
    """A number above 0: the weight of an aggregate when the price is
    split, or a part of the price.
    """
    match plain(value):
        case float() as number if 1e-9 < number < 1e9:
            return Fraction(repr(number))
        case int() | Fraction() as number if 1e-9 < number < 1e9 and not isinstance(number, bool):
            return Fraction(number)
    raise InvalidArgument(f"share= is a number above 0, such as {such_as}.")


def read_ddof(value: object, call: str) -> int:
    """0 or 1, which is taken off the number of values that a variance divides by.
    Errors: InvalidArgument.
    """
    return read_whole(value, 0, 1, f"{call}: ddof= is 0 or 1.")


def read_rank(value: object) -> Fraction:
    """A quantile's rank: a number in [0, 1], to six decimals.

    Errors: InvalidArgument; also for a rank that would be rounded to 0 or 1, which is a minimum or
            maximum
    """
    value = plain(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, Fraction))
        or not 0 <= value <= 1
    ):
        raise InvalidArgument("q= is a number from 0 to 1, such as 0.5 for the median.")
    rank = Fraction(value).limit_denominator(_RANKS)
    if rank in (0, 1) and rank != value:
        verb, word = ("max", "maximum") if rank else ("min", "minimum")
        raise InvalidArgument(
            f"q={float(value)!r}: ranks are held to six decimals, and this one would be the "
            f"{word}. Type {verb}('x', bounds=(0, 100)), or a q from 0.000001 to 0.999999."
        )
    return rank


def read_columns(
    call: str,
    unnamed: Iterable[object],
    columns: Mapping[str, object],
    before: Collection[str] = (),
) -> tuple[tuple[str, Expr], ...]:
    """Expressions with the names of the columns that they write:
    keywords, aliases, or the name of their own column.

    Input:  before: names of the columns that are there. A text among them is refused: Polars takes
            it for the column
    """
    for name, value in columns.items():
        if isinstance(value, str) and value in before:
            raise InvalidArgument(
                f"{call}({name}={value!r}): is this the column, or a text? Type "
                f"{name}=dp.col({value!r}) for the values of the column, {name}=dp.lit({value!r}) "
                "for a text that is the same in all rows."
            )
    flat = one_by_one(unnamed)
    if wrong := [value for value in flat if not isinstance(value, (Expr, pl.Expr))]:
        raise WrongCall(
            f"{call}: what has no name is an expression, such as (dp.col('x') * "
            f"2).alias('double'), not {kind_of(wrong[0])}. Type {call}({STEPS[call]})."
        )
    exprs = [read_expr(value, call) for value in flat]
    named = [(output_name(expr, call), expr) for expr in exprs]
    named += [(name, _written(value)) for name, value in columns.items()]
    if len({name for name, _ in named}) < len(named):
        raise InvalidArgument(
            f"{call}: two expressions have one name; give one of them another: .alias('y')."
        )
    return tuple(named)


def _written(value: object) -> Expr:
    return read_expr(value, "") if isinstance(value, (Expr, pl.Expr)) else lit(value)


def read_by(
    step: Step, by: Iterable[object], named: Mapping[str, object] = MappingProxyType({})
) -> tuple[Step, tuple[str, ...], frozenset[str]]:
    """The columns of a grouping, some of them expressions of the row, which are written first.

    Input:  by: columns and expressions; named: expressions, or columns, by the names of their keys
    Output: the step that writes them; the names of all; the names of columns that are keys now, and
            were others before
    """
    flat = one_by_one(by)
    for name, value in named.items():
        if not isinstance(value, (Expr, pl.Expr, str)):
            near = nearest(
                name, ("keys", "other", "min_units", "limits", *OwnLimits.__annotations__)
            )
            raise WrongCall(
                f"group_by: got an unexpected keyword argument {name!r}.{near} Type "
                f"group_by({STEPS['group_by']})."
            )
        flat.append(read_expr(value, "group_by").alias(name))
    if not flat:
        raise InvalidArgument("group_by: name at least one column: group_by('city', keys=[...]).")
    written = [isinstance(x, (Expr, pl.Expr)) for x in flat]
    computed = dict(read_columns("group_by", compress(flat, written), {}))
    typed = [x for x, whole in zip(flat, written, strict=True) if not whole]
    texts = iter(read_names([typed], "group_by", list(step.table.columns)))
    wholes = iter(computed)
    names = tuple(next(wholes if whole else texts) for whole in written)
    new = {name: expr for name, expr in computed.items() if expr._node != Name(name)}
    over = frozenset(new) & frozenset(step.table.columns)
    return (WithColumns(step, tuple(new.items())) if new else step), names, over


def gathered(
    step: Step, by: tuple[str, ...], keys: Keys, label: Key, call: str
) -> tuple[Step, Keys]:
    """Listed keys and one more, under which all other rows count: `other=`.

    Input:  label: the key of these rows, a value for each column; keys: of every column, without
            this one
    Output: the step that writes the label into each row whose key is not listed or missing; the
            keys with it, the last
    Bound:  that of the groups of the new columns, which follow from each row by itself: one unit
            has as many rows as before, and its limits are enforced on the new keys, of which this
            is one
    Errors: InvalidArgument if the label is listed; WrongType if the column has no room for it
    """
    rows = tuple(keys) if len(by) > 1 else ()
    if label in (rows or {(level,) for level in keys.levels[0]}):
        raise InvalidArgument(
            f"{call}: other= is the key of rows that no listed key has; take it out of keys=."
        )
    is_listed, columns = _is_listed(by, keys), []
    for name, level, part in zip(by, keys.levels, label, strict=True):
        # so that it is never missing
        own = col(name) if part is None or None in level else col(name).fill_null(part)
        columns.append((name, when(is_listed).then(own).otherwise(part)))
    written = WithColumns(step, tuple(columns))
    return written, Keys.of_rows((*rows, label)) if rows else Keys(((*keys.levels[0], *label),))


def _is_listed(by: Sequence[str], keys: Keys) -> Expr:
    """Whether the key of a row is listed."""
    if keys.rows is None:
        return reduce(
            and_, (_is_one_of(name, level) for name, level in zip(by, keys.levels, strict=True))
        )
    last: dict[Key, list[Any]] = {}
    for row in keys.rows:
        last.setdefault(row[:-1], []).append(row[-1])
    parts = [
        reduce(
            and_,
            [_is_one_of(name, [part]) for name, part in zip(by, first, strict=False)]
            + [_is_one_of(by[-1], ends)],
        )
        for first, ends in last.items()
    ]
    while len(parts) > 1:  # side by side, so that the expression is not deep
        parts = [reduce(or_, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def _is_one_of(name: str, values: Iterable[Any]) -> Expr:
    """Whether a value is one of these; a missing one if None is."""
    known = [value for value in values if value is not None]
    tests = [col(name).is_in(known)] * bool(known) + [col(name).is_null()] * (None in values)
    return reduce(or_, tests)


def read_points(values: object, call: str) -> list[tuple[str, Any]]:
    """Different numbers or times in a list, each with its label: `50`, `2.5`, `2024-01-31`.
    Errors: InvalidArgument.
    """
    if not is_list(values):
        raise InvalidArgument(f"{call}: points= is a list of values, such as points=[10, 20, 50].")
    points = [plain(value) for value in in_order(values)]
    if not points:
        raise InvalidArgument(f"{call}: list at least one point, such as points=[10, 20, 50].")
    if any(isinstance(point, bool) for point in points) or None in points:
        raise InvalidArgument(f"{call}: points= are numbers or times, such as points=[10, 20, 50].")
    for point in points:
        check_interval(point, point, call)
    labels = [f"{point:g}" if isinstance(point, (int, float)) else str(point) for point in points]
    if len(set(labels)) != len(labels):
        raise InvalidArgument(
            f"{call}: points= are different values, and differ in their first six digits."
        )
    warn_of_computed_bounds(values, call)
    return list(zip(labels, points, strict=True))


def read_expr(value: object, call: str) -> Expr:
    """A row expression, of Polars too; a name stands for its column."""
    match value:
        case pl.Expr():
            return read_polars(value)
        case Expr():
            return value
        case str():
            return col(value)
        case bool():
            return lit(value)
    raise InvalidArgument(f"{call}: give a condition on the row, such as dp.col('age') >= 18.")
