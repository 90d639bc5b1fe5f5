"""The largest change of a number between neighbours, without trying every pair of neighbours.

Two neighbours share a common part E: one is E with r more records, the other is E with s more
records. For each E, take the largest answer among the supersets of E with r more records, and the
smallest answer among those with s more. The largest difference of these two, over all E, is the
largest change. The largest and smallest answers among the supersets of E follow from those of the
common parts with one more record. The work grows with the number of datasets, not with the number
of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from dpframe.progress import watched
from dpframe.theory.checks.universes import Counts, Universe
from dpframe.theory.formulas.sensitivity import Relation

Number = int | float | Fraction
Answer = Number | None  # None where the query is undefined
Ask = Callable[[list[Any]], object]
# of each common part: the lowest and highest rank of an answer around it
Extremes = dict[Counts, tuple[int, int]]


class NotNumbersError(Exception):
    """An answer is not a finite real number, so the largest change does
    not follow from extreme answers.
    """


def _sizes(every: Universe, distance: int, relation: Relation) -> range:
    """The sizes of the datasets for which the query is computed."""
    if relation == Relation.REPLACE:
        return range(every.size, every.size + 1)
    return range(max(0, every.size - distance), min(sum(every.limits), every.size + distance) + 1)


def common_part_work(every: Universe, distance: int, relation: Relation) -> int:
    """The number of datasets and common parts that `largest_number` visits."""
    down = range(max(0, every.size - distance), every.size)
    return sum(replace(every, size=s).datasets for s in {*_sizes(every, distance, relation), *down})


def largest_number(
    every: Universe, distance: int, relation: Relation, ask: Ask, progress: bool | None
) -> Answer:
    """The largest difference of answers between neighbours;
    None if no two neighbours both have an answer.

    Input:  every dataset, the distance and the relation as in `empirical_sensitivity`; ask: a
            dataset to a number, None where it is undefined
    Output: the difference, as exact as the answers
    Bound:  by the common part, see the module. At a distance of d, r = s <= d if records are
            replaced, and r + s <= d if records enter or leave
    Errors: NotNumbersError
    """
    sizes = _sizes(every, distance, relation)
    total = sum(replace(every, size=s).datasets for s in sizes)
    datasets = (counts for s in sizes for counts in replace(every, size=s))
    answers = (
        (counts, ask(every.records(counts)))
        for counts in watched(datasets, total, "datasets", progress)
    )
    ordered = sorted(
        ((c, _number(v)) for c, v in answers if v is not None), key=lambda answer: answer[1]
    )
    values = [value for _, value in ordered]
    ranks = {counts: rank for rank, (counts, _) in enumerate(ordered)}

    @cache
    def among(common: int, more: int) -> Extremes:
        if more == 0:
            return {counts: (rank, rank) for counts, rank in ranks.items() if sum(counts) == common}
        extremes: Extremes = {}
        for counts, (low, high) in among(common + 1, more - 1).items():
            for i, count in enumerate(counts):
                if count:
                    smaller = (*counts[:i], count - 1, *counts[i + 1 :])
                    lowest, highest = extremes.get(smaller, (low, high))
                    extremes[smaller] = min(low, lowest), max(high, highest)
        return extremes

    pairs: set[tuple[int, int]] = set()
    for out, back in _steps(every.size, distance, relation):
        own, neighbours = among(every.size - out, out), among(every.size - out, back)
        for common in own.keys() & neighbours.keys():
            (low, high), (least, most) = own[common], neighbours[common]
            pairs |= {(low, most), (least, high)}
    return max((values[high] - values[low] for low, high in pairs if low != high), default=None)


def _number(answer: object) -> Number:
    """Errors: NotNumbersError."""
    match answer:
        case int() | Fraction() if not isinstance(answer, bool):
            return answer
        case float() if math.isfinite(answer):
            return answer
    raise NotNumbersError


def _steps(size: int, distance: int, relation: Relation) -> Iterator[tuple[int, int]]:
    """Numbers of records that the dataset, and the neighbour, may have beside the common part."""
    if relation == Relation.REPLACE:
        most = min(distance, size)
        # This covers fewer replacements, whose common part is a superset of one of this size.
        yield most, most
        return
    for out in range(min(distance, size) + 1):
        for back in range(distance - out + 1):
            if out or back:
                yield out, back
