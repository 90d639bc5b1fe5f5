"""All small tables over some kinds of rows, and the pairs of neighbours among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from dpframe.audit.tables import Owner
from dpframe.theory.checks import Counts, Universe
from dpframe.theory.formulas.sensitivity import Relation

__all__ = ["multisets", "pairs"]


def multisets(kinds: int, size: int) -> list[Counts]:
    """Every table of up to `size` rows, each row of one of the kinds, as how often each kind occurs.

    >>> multisets(2, 2)
    [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    """
    tables = [(0,) * kinds]
    for rows in range(1, size + 1):
        tables += Universe.of(range(kinds), rows, replacement=True)
    return tables


def pairs(
    tables: Sequence[Counts], owners: Sequence[Owner | None], relation: Relation, max_rows: int | None = None
) -> Iterator[tuple[int, int]]:
    """Every two of the tables that are neighbours, as their numbers.

    Input:  tables: all up to some size, as `multisets` gives them; owners: the unit of each kind of row, None for a row
            without a unit; max_rows: with `dp.Rows(k)` the k, in place of owners
    Output: under add-remove (without the unit, with it); under replace two tables that each have one unit more than the
            same rest
    Bound:  complete: two neighbours have a common rest, and every rest is one of the tables

    >>> list(pairs(multisets(2, 1), [("a",), ("b",)], "replace"))
    [(1, 2)]
    """
    numbers = {counts: i for i, counts in enumerate(tables)}
    same_rest: dict[int, list[int]] = {}
    for i, counts in enumerate(tables):
        for rest in _rests(counts, owners, max_rows):
            same_rest.setdefault(numbers[rest], []).append(i)
    for rest_number, members in same_rest.items():
        yield from combinations(members, 2) if relation == "replace" else ((rest_number, i) for i in members)


def _rests(counts: Counts, owners: Sequence[Owner | None], max_rows: int | None) -> Iterator[Counts]:
    """The rest of a table without one unit, for each of its units."""
    if max_rows is not None:
        for leaving in product(*(range(count + 1) for count in counts)):
            if 1 <= sum(leaving) <= max_rows:
                yield tuple(count - less for count, less in zip(counts, leaving, strict=True))
        return
    present = dict.fromkeys(o for o, count in zip(owners, counts, strict=True) if count and o is not None)
    for owner in present:
        yield tuple(0 if whose == owner else count for count, whose in zip(counts, owners, strict=True))
