"""Totals that rows are added up in, made of a question's columns, bounds and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product

from dpframe.errors import InvalidArgument, InvalidBounds, MissingBounds, WrongType
from dpframe.plan.columns import Auto, Bounds, Column
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, Candidates, ValueGrid, grid_for
from dpframe.plan.scalars import Scalar, check_no_times, ticks
from dpframe.plan.totals.base import Factor, Total, TotalKind, is_power, is_whole, noun_of
from dpframe.plan.types import TIMES, Kind, cast_first, show, ticks_of_a_second
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import MOST_KEYS, key_weights
from dpframe.theory.formulas.sensitivity import grouped as maps


def row_total(unit_limits: UnitLimits) -> Total:
    """Rows per group.
    It is an integer; it has fraction bits only if the three limits can force weights.
    """
    if unit_limits.one_row_each:
        return Total(TotalKind.ROWS, None, UNIT_GRID, 0, maps.one_row_sum(1, 1))
    limits = unit_limits.contribution
    fractional = unit_limits.weighted and limits.rows < limits.groups * limits.rows_per_group
    fraction = FRACTION_BITS if fractional else 0
    bound = maps.row_counts(limits, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.ROWS, None, UNIT_GRID, fraction, bound.scaled(2**fraction))


def value_total(column: Column, unit_limits: UnitLimits, present: tuple[Column, ...] = ()) -> Total:
    """Values that are not missing, per group, in rows where the
    `present` ones are not missing either.

    If no value can be missing, these are the rows.
    """
    column, *others = [c for c in (column, *present) if c.domain.nullable] or [column]
    if not column.domain.nullable:
        return row_total(unit_limits)
    fraction = unit_limits.fraction
    bound = maps.row_counts(unit_limits.contribution, unit_limits.table.relation, unit_limits.cells)
    return Total(
        TotalKind.VALUES,
        column,
        UNIT_GRID,
        fraction,
        bound.scaled(2**fraction),
        present=tuple(others),
    )


def units_total(unit_limits: UnitLimits) -> Total:
    """Units per group.
    It counts rows if one unit has at most one row in each group, and with `dp.Rows(k)`.
    """
    if not unit_limits.table.unit or unit_limits.one_row_each or unit_limits.one_each:
        return row_total(unit_limits)
    return Total(
        TotalKind.UNITS,
        None,
        UNIT_GRID,
        0,
        maps.unit_counts(unit_limits.groups, unit_limits.table.relation, unit_limits.cells),
    )


def weights_total() -> Total:
    """Weights of the keys, where each unit spreads a weight of length 1 over its keys."""
    one = 2**FRACTION_BITS
    return Total(TotalKind.KEY_WEIGHTS, None, UNIT_GRID, FRACTION_BITS, key_weights(MOST_KEYS, one))


def readable_column(name: str, unit_limits: UnitLimits) -> Column:
    """A column of any type that dpframe reads. Errors: UnknownColumn, WrongType."""
    column = unit_limits.table.column(name, unit_limits.what)
    if column.kind == Kind.OTHER:
        raise WrongType(
            f"{unit_limits.what}: a column of type {show(column.domain.dtype)} cannot be read."
        )
    return column


def number_column(name: str, unit_limits: UnitLimits, *times: str, other: str = "") -> Column:
    """A column of numbers, or of the kinds of times that are allowed.
    Times are whole numbers of ticks.

    Input:  name; the limits of one unit; times: the kinds of times that are allowed;
            other: the aggregate that takes other times
    Errors: UnknownColumn, WrongType
    """
    column = unit_limits.table.column(name, unit_limits.what)
    family = column.kind
    if family not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN, *times):
        dtype, besides = show(column.domain.dtype), "".join(f", {time}s" for time in times)
        instead = (
            _of_time(name, family, other)
            if family in TIMES
            else cast_first(column.domain.dtype, name)
        )
        if family == Kind.STRING:
            instead += (
                " The share of rows with one text is the mean of a condition: "
                f"with_columns(yes=dp.col({name!r}) == 'yes'), then mean('yes')."
            )
        raise WrongType(
            f"{unit_limits.what}: needs numbers{besides} or true and false, not a column of type "
            f"{dtype}.{instead}"
        )
    return column


def _of_time(name: str, family: Kind, other: str) -> str:
    """A question to ask of a column of times, as the end of a message."""
    if other:
        return f" Ask for {other}({name!r})."
    if family == Kind.DURATION:
        return " Make it a number of seconds before dp.protect(...)."
    return f" Take a number out of it, with_columns(x=dp.col({name!r}).dt.year()), and ask for 'x'."


def in_ticks(bounds: Bounds, column: Column, what: str) -> Bounds:
    """Bounds in the unit in which the engine holds the column, which for times is ticks.
    Errors: WrongType.
    """
    if column.kind in TIMES:
        return Bounds(*(ticks(x, column.domain.dtype, what) for x in bounds))
    check_no_times(bounds, column.domain.dtype, what)
    return bounds


_EXAMPLES = {
    "date": ("date(2020, 1, 1)", "date(2021, 1, 1)"),
    "datetime": ("datetime(2020, 1, 1)", "datetime(2021, 1, 1)"),
    "duration": ("timedelta(0)", "timedelta(hours=1)"),
}


def without_bounds(name: str, what: str, line: str) -> MissingBounds:
    """The refusal of a column whose values may be anything;
    `line` ends its sentence with what to type.
    """
    return MissingBounds(
        f"{what}: one value of {name!r} could be anything, so no finite noise hides it. Say the "
        f"range{line}"
    )


def bounds_of(
    column: Column, bounds: Bounds | Auto | None, name: str, unit_limits: UnitLimits
) -> Bounds:
    """The bounds that values are clipped to: the typed ones, inside those of the column's domain.

    Errors: MissingBounds; InvalidArgument for bounds=dp.Auto() of a column of true and false
    """
    own = column.domain.bounds
    if isinstance(bounds, Auto):  # until they are chosen, bounds that any column could have
        if column.kind == Kind.BOOLEAN:
            raise InvalidArgument(
                f"{unit_limits.what}: true and false lie between 0 and 1; leave bounds= out."
            )
        return own or Bounds(0, 1)
    if bounds is None:
        if own is not None:
            return own
        low, high = _EXAMPLES.get(column.kind, ("0", "100"))
        raise without_bounds(
            name,
            unit_limits.what,
            f": clip({name!r}, {low}, {high}) before it, or bounds=({low}, {high}) in it, with "
            "limits you know without the data; or have them chosen privately inside the release: "
            "bounds=dp.Auto().",
        )
    bounds = in_ticks(bounds, column, unit_limits.what)
    return bounds if own is None else Bounds(bounds.clamp(own.lower), bounds.clamp(own.upper))


def sum_total(
    column: Column,
    bounds: Bounds,
    unit_limits: UnitLimits,
    *,
    centred: bool,
    present: tuple[Column, ...] = (),
) -> Total:
    """Sum of the clipped values per group.
    For means, values are measured from the middle of the bounds.

    A row in which a `present` column is missing adds 0, which is what a row with a missing value
    adds. So the bound is that of a column with missing values.
    """
    whole, present = is_whole(column), tuple(c for c in present if c.domain.nullable)
    if unit_limits.one_row_each and not column.domain.nullable and not present:
        grid = grid_for(bounds, whole=whole, centred=centred, limit=1)
        fraction = unit_limits.fraction
        return Total(
            TotalKind.SUM,
            column,
            grid,
            fraction,
            maps.one_row_sum(grid.lower, grid.upper).scaled(2**fraction),
        )
    limits = unit_limits.contribution
    grid = grid_for(bounds, whole=whole, centred=centred, limit=limits.rows_per_group)
    fraction = unit_limits.fraction
    bound = maps.row_sums(
        limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells
    )
    return Total(TotalKind.SUM, column, grid, fraction, bound.scaled(2**fraction), present=present)


def total_of_pair(total: Total, count: Total, unit_limits: UnitLimits) -> Total:
    """The sum of values measured from 0, as the sum S from the middle of the
    bounds and c times the count V.

    Input:  S and V, under the limits; c is the middle in units of S
    Output: a total with the grid of S, moved by c
    Bound:  without weights S + c·V adds up the values, so `row_sums` holds. With weights, a unit of
            row weight w in a
            group, with v of n rows that have values, adds s·w/n and v·w/n, each computed in floats
            and rounded toward
            0. By `joint_l1` they are off by at most h + 1 and 2. So S + c·V is at most h + 1 +
               2·|c| away from w times
            a number between 0 and the ends of a value. Under replace two units may be in each group
    Source: `dpframe.theory.formulas.sensitivity.grouped.change`
    """
    grid, centre = total.grid, int(total.grid.centre / total.grid.step)
    moved = ValueGrid(grid.step, Fraction(0), grid.lower + centre, grid.upper + centre)
    limits, one = unit_limits.contribution, 2**total.fraction
    off = grid.magnitude + 1 + 2 * abs(centre) if total.fraction else 0
    k, width = limits.rows_per_group, max(moved.upper, 0) - min(moved.lower, 0)
    bound = maps.change(
        groups=limits.groups,
        total=limits.rows * moved.magnitude * one + limits.groups * off,
        cell=k * moved.magnitude * one + off,
        swing=k * width * one + 2 * off,
        relation=unit_limits.table.relation,
        cells=unit_limits.cells,
    )
    return Total(
        TotalKind.SUM,
        total.column,
        moved,
        total.fraction,
        bound,
        limits=total.limits,
        follows=(total, count),
    )


def power_total(
    column: Column,
    bounds: Bounds,
    power: int,
    unit_limits: UnitLimits,
    present: tuple[Column, ...] = (),
) -> Total:
    """Sum per group of a power of the distances from the middle of
    the bounds: see `product_total`.
    """
    return product_total((from_middle(column, bounds),) * power, unit_limits, present)


_BEYOND = 270  # powers of ten that products of floats may reach
_SQUARED = 130  # powers of ten of values of whose noise squares are floats
_SMALLEST = 1e-270  # of values whose logarithm is taken: its reciprocal is a float too
_OCTAVES = 64  # between the bounds: each is two entries in a table that every engine searches


def log_total(column: Column, bounds: Bounds, unit_limits: UnitLimits) -> Total:
    """Logarithms of the values per group, each clipped to those of the bounds
    and measured from their middle.

    Input:  column; bounds (column unit), above 0
    Output: a total whose integer is worth a step of its grid, a power of two that follows from the
            bounds alone
    Bound:  whatever an engine computes as a row's logarithm, its integer is clipped to [grid.lower,
            grid.upper] afterwards. So the total is a sum of values in known bounds, and `row_sums`
            (where each unit surely has one row, `one_row_sum`) says how far one unit moves it; no
            property of the logarithm is needed
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_sums`
    Errors: InvalidBounds where the lower bound is not above 0, or the bounds are further apart than
            64 octaves
    """
    if bounds.lower <= 0:
        raise InvalidBounds(
            f"{unit_limits.what}: only numbers above 0 have a logarithm. Type bounds=(low, high) "
            "with low above 0, such as bounds=(1, 100)."
        )
    if bounds.lower < _SMALLEST or bounds.upper / bounds.lower > 2.0**_OCTAVES:
        raise InvalidBounds(
            f"{unit_limits.what}: the lower bound is at least {_SMALLEST:g}, and the upper one at "
            f"most 2^{_OCTAVES} (about 1.8e19) times the lower one. Type narrower ones."
        )
    logs = Bounds(math.log(bounds.lower), math.log(bounds.upper))
    return computed_total(column, logs, unit_limits)


def computed_total(
    column: Column,
    span: Bounds,
    unit_limits: UnitLimits,
    *,
    factors: tuple[Factor, ...] = (),
    present: tuple[Column, ...] = (),
) -> Total:
    """Sum per group of products of factors, or of logarithms, inside a
    span and measured from its middle.

    Bound:  a row's integer is clipped to its grid, whatever the engine computed. So the total is a
            sum of values in known bounds: see
            `dpframe.theory.formulas.sensitivity.grouped.row_sums`, and `one_row_sum` where each
            unit surely has one row. A row in which a value is missing adds 0
    """
    read = (column, *(factor.column for factor in factors), *present)
    if unit_limits.one_row_each and not any(c.domain.nullable for c in read):
        grid = grid_for(span, whole=False, centred=True, limit=1)
        bound = maps.one_row_sum(grid.lower, grid.upper)
    else:
        limits = unit_limits.contribution
        grid = grid_for(span, whole=False, centred=True, limit=limits.rows_per_group)
        bound = maps.row_sums(
            limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells
        )
    fraction = unit_limits.fraction
    nullable = tuple(c for c in present if c.domain.nullable)
    computed = TotalKind.PRODUCT if factors else TotalKind.LOG
    return Total(
        computed,
        column,
        grid,
        fraction,
        bound.scaled(2**fraction),
        factors=factors,
        present=nullable,
    )


def middle_of(bounds: Bounds) -> Fraction:
    """The middle of the bounds, exact (column unit)."""
    return (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2


def from_middle(column: Column, bounds: Bounds) -> Factor:
    """A column's clipped value, measured from the middle of its bounds."""
    return Factor(column, bounds, middle_of(bounds))


def check_squares(totals: Iterable[Total], call: str) -> None:
    """Refuse bounds of which squares are beyond floats, or are no longer told from 0.

    Where the noise of several numbers is added up, as in margins, levels and ratios, their
    variances are. They may have 10^24 times the size of a value for the smallest prices and largest
    limits.

    Errors: InvalidBounds
    """
    for total in totals:
        size = total.grid.magnitude * total.grid.step
        if size and not (
            size >= Fraction(1, 10**_SQUARED) and size + abs(total.grid.centre) <= 10**_SQUARED
        ):
            raise InvalidBounds(
                f"{call}: squares of values this far apart, or this close together, are beyond "
                f"floats. Give bounds of from 1e-{_SQUARED} to 1e{_SQUARED}."
            )


def product_total(
    factors: tuple[Factor, ...], unit_limits: UnitLimits, present: tuple[Column, ...] = ()
) -> Total:
    """Sum per group of the products of clipped values, each measured from its own
    place, less the middle of its range.

    Input:  the factors: two, or one repeated, for a power; present: other columns whose value must
            not be missing
    Output: a total whose integer is worth a step of its grid, a power of two that follows from the
            bounds alone
    Bound:  let two distances lie in [a, b] and [c, d]. Their product lies between the smallest and
            the largest of ac, ad, bc and bd, since it is linear in each of them. The power p of a
            distance in [-h, h] lies in [0, h^p] if p is even, else in [-h^p, h^p]; less the middle
            of that, an even power is at most h^p/2 in size. A row's integer is clipped to these
            ends, and a row in which a value is missing adds 0. Neighbouring tables differ in the
            rows of one unit. With at most k rows in each of m groups and K in all, a unit that
            joins or leaves moves a group by at most k times the larger end, and all groups together
            by at most K times that end. For distances from the middles of two bounds, with
            half-widths g and h, the larger end is g·h
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_sums`, and `one_row_sum` where a unit
            surely has one row without a missing value
    Errors: InvalidBounds where products are beyond floats, or are no longer told from 0
    """
    ends, noun, power = [factor.ends for factor in factors], noun_of(factors), len(factors)
    products = [math.prod(corner) for corner in zip(*ends, strict=True)]
    if not is_power(factors):
        products += [math.prod(corner) for corner in product(*ends)]
    elif power % 2 == 0 and ends[0][0] <= 0 <= ends[0][1]:
        products.append(Fraction(0))
    largest = max(map(abs, products))
    if largest and not Fraction(1, 10**_BEYOND) <= largest <= 10**_BEYOND:
        most = _BEYOND // power - (5 if noun == "products" else 1)
        raise InvalidBounds(
            f"{unit_limits.what}: {noun} of values this far apart, or this close together, are "
            f"beyond floats. Give bounds that are from 1e-{most} to 1e{most} apart."
        )
    span = Bounds(float(min(products)), float(max(products)))
    return computed_total(factors[0].column, span, unit_limits, factors=factors, present=present)


def unit_sum_total(column: Column, bounds: Bounds, unit_limits: UnitLimits) -> Total:
    """Each unit's total per group, clipped to the bounds and added up over the units."""
    whole = is_whole(column)
    grid = grid_for(bounds, whole=whole, centred=False, limit=1)
    bound = maps.unit_sums(
        unit_limits.groups, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells
    )
    return Total(TotalKind.UNIT_SUM, column, grid, 0, bound)


def distinct_total(column: Column, unit_limits: UnitLimits) -> Total:
    """Number of different values per group.
    One unit moves it by at most k in a group, and by K in all groups.
    """
    bound = maps.row_counts(unit_limits.contribution, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.DISTINCT, column, UNIT_GRID, 0, bound)


# Scores and trees


def candidates_of(column: Column, bounds: Bounds, unit_limits: UnitLimits) -> Candidates:
    """The candidates of a quantile.
    Errors: InvalidBounds if the distance between the bounds is too large.
    """
    _check_width(bounds, unit_limits)
    return Candidates.between(
        bounds, whole=is_whole(column), second=ticks_of_a_second(column.domain.dtype)
    )


def _check_width(bounds: Bounds, unit_limits: UnitLimits) -> None:
    if Fraction(bounds.upper) - Fraction(bounds.lower) > 10**300:
        raise InvalidBounds(
            f"{unit_limits.what}: values this far apart are beyond floats; keep bounds 1e300 apart."
        )


def rank_total(column: Column, bounds: Bounds, rank: Fraction, unit_limits: UnitLimits) -> Total:
    """The rows below and above each candidate, per group, for the choice of a quantile.

    Errors: InvalidBounds if the distance between the bounds is too large for a float
    """
    candidates = candidates_of(column, bounds, unit_limits)
    fraction = unit_limits.fraction
    bound = maps.row_places(unit_limits.contribution, unit_limits.table.relation, unit_limits.cells)
    bound, ci = bound.scaled(2**fraction), unit_limits.ci if 0 < rank < 1 else None
    return Total(
        TotalKind.RANKS, column, UNIT_GRID, fraction, bound, candidates=candidates, rank=rank, ci=ci
    )


def tree_total(column: Column, bounds: Bounds, unit_limits: UnitLimits) -> Total:
    """The rows in each block of a tree over the candidates, per group, for
    quantiles and distribution functions.

    Input:  column; bounds (column unit)
    Output: a total whose sensitivity is that of one level of the tree; see
            `theory.formulas.rank_trees.RankTree` for all of them
    Bound:  the blocks of one level are disjoint, so a group's rows are divided over them. Under
            add-remove one unit adds at most k rows to a block and K to all blocks of all groups.
            Under replace one unit's rows leave and another's enter, in other blocks of one group or
            in other groups. A block changes by at most k, and all blocks by at most 2K. l0 counts
            groups, as for ranks
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_counts`, without a number of cells
    Errors: InvalidBounds if the distance between the bounds is too large for a float
    """
    fraction = unit_limits.fraction
    bound = maps.row_counts(unit_limits.contribution, unit_limits.table.relation).scaled(
        2**fraction
    )
    bound = replace(
        bound, l0=bound.l0 if unit_limits.cells is None else min(bound.l0, unit_limits.cells)
    )
    _check_width(bounds, unit_limits)
    candidates = Candidates.leaves(bounds, whole=is_whole(column))
    return Total(TotalKind.TREE, column, UNIT_GRID, fraction, bound, candidates=candidates)


def mode_total(
    column: Column, values: tuple[Scalar | None, ...], rounds: int, unit_limits: UnitLimits
) -> Total:
    """The rows at each listed value, per group, for the choice of the most frequent ones."""
    fraction = unit_limits.fraction
    bound = maps.row_places(unit_limits.contribution, unit_limits.table.relation, unit_limits.cells)
    return Total(
        TotalKind.MODES,
        column,
        UNIT_GRID,
        fraction,
        bound.scaled(2**fraction),
        values=values,
        rounds=rounds,
    )
