"""Totals over candidates: scores by which one is chosen, and trees of rows over all of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpframe.errors import InvalidBounds
from dpframe.plan.columns import Bounds, Column
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, Candidates
from dpframe.plan.totals.base import Total, TotalKind, is_whole
from dpframe.plan.types import Scalar
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import grouped as maps


def candidates_of(column: Column, bounds: Bounds, what: str) -> Candidates:
    """The candidates of a quantile. Errors: InvalidBounds if the distance between the bounds is too large."""
    if Fraction(bounds.upper) - Fraction(bounds.lower) > 10**300:
        raise InvalidBounds(f"{what}: values this far apart are beyond floats; keep bounds 1e300 apart.")
    return Candidates.between(bounds, whole=is_whole(column))


def rank_total(column: Column, bounds: Bounds, rank: Fraction, unit_limits: UnitLimits, what: str) -> Total:
    """The rows below and above each candidate, per group, for the choice of a quantile.

    Errors: InvalidBounds if the distance between the bounds is too large for a float
    """
    candidates = candidates_of(column, bounds, what)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_places(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    bound, ci = bound.scaled(2**fraction), unit_limits.ci if 0 < rank < 1 else None
    return Total(TotalKind.RANKS, column, UNIT_GRID, fraction, bound, candidates=candidates, rank=rank, ci=ci)


def tree_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """The rows in each block of a tree over the candidates, per group, for quantiles and distribution functions.

    Input:  column; bounds (column unit); what was asked
    Output: a total whose sensitivity is that of one level of the tree; see `theory.formulas.rank_trees.RankTree` for
            all of them
    Bound:  the blocks of one level are disjoint, so a group's rows are divided over them. Under add-remove one unit
            adds at most k rows to a block and K to all blocks of all groups. Under replace one unit's rows leave and
            another's enter, in other blocks of one group or in other groups. A block changes by at most k, and all
            blocks by at most 2K. l0 counts groups, as for ranks
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_counts`, without a number of cells
    Errors: InvalidBounds if the distance between the bounds is too large for a float
    """
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_counts(unit_limits.contribution(what), unit_limits.table.relation).scaled(2**fraction)
    bound = replace(bound, l0=bound.l0 if unit_limits.cells is None else min(bound.l0, unit_limits.cells))
    candidates = candidates_of(column, bounds, what)
    return Total(TotalKind.TREE, column, UNIT_GRID, fraction, bound, candidates=candidates)


def mode_total(
    column: Column, values: tuple[Scalar | None, ...], rounds: int, unit_limits: UnitLimits, what: str
) -> Total:
    """The rows at each listed value, per group, for the choice of the most frequent ones."""
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_places(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.MODES, column, UNIT_GRID, fraction, bound.scaled(2**fraction), values=values, rounds=rounds)
