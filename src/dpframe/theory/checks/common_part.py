"""The largest change of a number between neighbours, without trying every pair of neighbours.

Two neighbours share a common part E: one is E with r more records, the other is E with s more records. For each E, take
the largest answer among the supersets of E with r more records, and the smallest answer among those with s more. The
largest difference of these two, over all E, is the largest change. The largest and smallest answers among the supersets
of E follow from those of the common parts with one more record. The work grows with the number of datasets, not with
the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Array, Floats, Integers
from dpframe.progress import watched
from dpframe.theory.checks.universes import Universe
from dpframe.theory.formulas.sensitivity import Relation

Answer = int | float | Fraction | None  # None where the query is undefined
Ask = Callable[[list[Any]], object]


class NotNumbersError(Exception):
    """An answer is not a finite real number, so the largest change does not follow from extreme answers."""


def _sizes(every: Universe, distance: int, relation: Relation) -> range:
    """The sizes of the datasets for which the query is computed."""
    if relation == "replace":
        return range(every.size, every.size + 1)
    return range(max(0, every.size - distance), min(sum(every.limits), every.size + distance) + 1)


def common_part_work(every: Universe, distance: int, relation: Relation) -> int:
    """The number of datasets and common parts that `largest_number` visits."""
    down = range(max(0, every.size - distance), every.size)
    return sum(replace(every, size=s).datasets for s in {*_sizes(every, distance, relation), *down})


def largest_number(every: Universe, distance: int, relation: Relation, ask: Ask, progress: bool | None) -> Answer:
    """The largest difference of answers between neighbours; None if no two neighbours both have an answer.

    Input:  every dataset, the distance and the relation as in `empirical_sensitivity`; ask: a dataset to a number, None
            where it is undefined
    Output: the difference, as exact as the answers
    Bound:  by the common part, see the module. At a distance of d, r = s <= d if records are replaced, and r + s <= d
            if records enter or leave
    Errors: NotNumbersError, also if there are too many datasets to number them
    """
    codes = _Codes(every)
    answers = _answers(every, _sizes(every, distance, relation), ask, progress)
    values = sorted({v for answered in answers.values() for v in answered if v is not None})
    ranks = {v: i for i, v in enumerate(values)}
    steps = list(_steps(every.size, distance, relation))
    ordered = {
        size: np.array([_NONE if v is None else ranks[v] for v in answered], np.int64)
        for size, answered in answers.items()
    }
    pairs: set[tuple[int, int]] = set()
    for low, high in _ends(codes, ordered, every.size, steps):
        pairs |= _widest(low, high, np.array([float(v) for v in values]))
    largest = max((values[high] - values[low] for low, high in pairs), default=None)
    if largest != 0:
        return largest
    # The largest change is 0. Return None if this is only because no dataset has a neighbour with an answer.
    numbered = {size: np.where(r == _NONE, _NONE, np.arange(len(r))) for size, r in ordered.items()}
    uneven, even = [s for s in steps if s[0] != s[1]], [s for s in steps if s[0] == s[1]]
    different = any(len(low) for low, _ in _ends(codes, numbered, every.size, uneven))
    different = different or any((low != high).any() for low, high in _ends(codes, numbered, every.size, even))
    return largest if different else None


_NONE = -1
Ranks = dict[int, Integers]


def _answers(every: Universe, sizes: range, ask: Ask, progress: bool | None) -> dict[int, list[Answer]]:
    """The answer for each dataset of each size, in the order of the universe."""
    total = sum(replace(every, size=s).datasets for s in sizes)
    datasets = ((s, counts) for s in sizes for counts in replace(every, size=s))
    answers: dict[int, list[Answer]] = {s: [] for s in sizes}
    for size, counts in watched(datasets, total, "datasets", progress):
        value = ask(every.records(counts))
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not math.isfinite(value):
                raise NotNumbersError
            try:
                float(value)
            except OverflowError:
                raise NotNumbersError from None
        answers[size].append(value)
    return answers


def _steps(size: int, distance: int, relation: Relation) -> Iterator[tuple[int, int]]:
    """How many records the dataset, and the neighbour, may have beside the common part."""
    if relation == "replace":
        most = min(distance, size)
        yield most, most  # This covers fewer replacements, whose common part is a superset of one of this size.
        return
    for out in range(min(distance, size) + 1):
        for back in range(distance - out + 1):
            if out or back:
                yield out, back


class _Codes:
    """Each dataset as one number (code), by size, to look up the datasets with one more record."""

    def __init__(self, every: Universe) -> None:
        # Each item has a digit in the base of its limit + 1. A digit that overflows yields the code of a dataset with
        # fewer records, so it never matches a dataset of the size that is looked up.
        places, value = [], 1
        for limit in every.limits:
            places.append(value)
            value *= limit + 1
        if value >= 1 << 62:
            raise NotNumbersError
        self._every = every
        self._places = np.array(places, np.int64)
        self._codes: Ranks = {}
        self._order: Ranks = {}

    def of(self, size: int) -> Integers:
        """The codes of the datasets of a size, in the order of the universe."""
        if size not in self._codes:
            counts = np.array(list(replace(self._every, size=size)), np.int64).reshape(-1, len(self._places))
            self._codes[size] = counts @ self._places
            self._order[size] = np.argsort(self._codes[size])
        return self._codes[size]

    def above(self, size: int, ranks: Array, missing: int) -> Array:
        """For each dataset of a size, the ranks of those with one more record of an item; one row for each item."""
        own, larger = self.of(size), self.of(size + 1)
        order = self._order[size + 1]
        columns = np.full((len(self._places), len(own)), missing, np.int64)
        for i, place in enumerate(self._places):
            spots = order[np.minimum(np.searchsorted(larger, own + place, sorter=order), len(order) - 1)]
            columns[i] = np.where(larger[spots] == own + place, ranks[spots], missing)
        return columns


def _ends(
    codes: _Codes, ordered: Ranks, size: int, steps: list[tuple[int, int]]
) -> Iterator[tuple[Integers, Integers]]:
    """For each step, and either order of the two, the lowest and highest rank around each common part."""
    top = 1 << 60
    extremes: dict[tuple[int, int], tuple[Integers, Integers]] = {}

    def among(common: int, more: int) -> tuple[Integers, Integers] | None:
        if common + more not in ordered:
            return None
        if (common, more) not in extremes:
            if more == 0:
                ranks = ordered[common]
                extremes[common, 0] = np.where(ranks == _NONE, top, ranks), ranks
            else:
                larger = among(common + 1, more - 1)
                assert larger is not None
                lows, highs = codes.above(common, larger[0], top), codes.above(common, larger[1], _NONE)
                extremes[common, more] = lows.min(axis=0), highs.max(axis=0)
        return extremes[common, more]

    for out, back in steps:
        own, neighbours = among(size - out, out), among(size - out, back)
        if own is None or neighbours is None:
            continue
        answered = (own[1] != _NONE) & (neighbours[1] != _NONE)
        yield neighbours[0][answered], own[1][answered]
        yield own[0][answered], neighbours[1][answered]


def _widest(low: Integers, high: Integers, values: Floats) -> set[tuple[int, int]]:
    """The pairs of ranks whose values differ most, as far as floats can tell."""
    if not len(low):
        return set()
    width = values[high] - values[low]
    close = width >= width.max() - 1e-12 * (np.abs(values).max() + 1)
    return set(zip(low[close].tolist(), high[close].tolist(), strict=True))
