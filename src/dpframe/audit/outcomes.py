"""Outcomes of releases, counted in cells, and the event that tells two tables apart best."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import NUMERIC, Floats
from dpframe.errors import InvalidArgument
from dpframe.release import Release

# a label (all parts that are no numbers) and the numbers
Outcome = tuple[Hashable, tuple[float, ...]]

_MIDDLE = np.linspace(0.02, 0.98, 49)
_TAIL = np.geomspace(1e-4, 0.015, 8)
_AT = np.concatenate([_TAIL, _MIDDLE, 1 - _TAIL[::-1]])
_SURE = 5.0  # standard deviations by which estimates are cautious when an event is chosen


def outcomes_of(answer: object) -> list[Outcome]:
    """The result of one call of a release function, as one or several independent outcomes.

    Input:  a `Release`, a number, a text or None: one outcome; an array or list: as many outcomes
            as it has rows
    Errors: InvalidArgument
    """
    if isinstance(answer, Release):
        table = answer.to_polars()
        numbers = [name for name, dtype in table.schema.items() if dtype.is_numeric()]
        label = tuple(table.drop(numbers).rows())
        return [_outcome([label, *table.select(numbers).to_numpy().ravel().tolist()])]
    if hasattr(answer, "to_numpy"):
        answer = answer.to_numpy()
    match answer:
        case np.ndarray() if (
            answer.ndim == 1 and answer.dtype.kind in NUMERIC and not np.isnan(answer).any()
        ):
            return [((), (number,)) for number in answer.astype(np.float64).tolist()]
        case np.ndarray() if answer.ndim in (1, 2):
            answer = answer.tolist()
    match answer:
        case list():
            return [_outcome(row if isinstance(row, (list, tuple)) else [row]) for row in answer]
        case tuple():
            return [_outcome(answer)]
    return [_outcome([answer])]


def _outcome(parts: Iterable[object]) -> Outcome:
    labels: list[Hashable] = []
    numbers: list[float] = []
    for part in parts:
        match part:
            case int() | float() | np.number() if part == part and not isinstance(part, bool):
                numbers.append(float(part))
            case float():
                labels.append(None)
            case _:
                labels.append(part)
    if not all(isinstance(label, Hashable) for label in labels):
        raise InvalidArgument(
            "audit: the release function gives releases, numbers, texts, or a list of them."
        )
    return tuple(labels), tuple(numbers)


@dataclass(frozen=True)
class OutcomeCells:
    """A partition of all outcomes by label and by a score of the numbers.
    Draws that are not counted later fix it.

    A single number is its own score. For several numbers the score is a weighted sum: the weight of
    a number is the difference of the two tables' medians of it, divided by its squared
    interquartile range.
    """

    weights: dict[tuple[Hashable, int], Floats]
    edges: dict[tuple[Hashable, int], Floats]

    @classmethod
    def learnt(cls, first: Sequence[Outcome], second: Sequence[Outcome]) -> OutcomeCells:
        """Cells from draws of two tables, about as many in each, finer in the tails."""
        sides = [_by_kind(first), _by_kind(second)]
        weights, edges = {}, {}
        for kind in sides[0] | sides[1]:
            both = [side.get(kind, np.empty((0, kind[1]))) for side in sides]
            if not kind[1]:
                continue
            weights[kind] = _weights(*both)
            scores = np.concatenate(both) @ weights[kind]
            at = (
                _AT
                if len(scores) > 20_000
                else np.linspace(0, 1, max(2, min(40, len(scores) // 100)) + 1)[1:-1]
            )
            edges[kind] = np.unique(np.quantile(scores, at, method="lower"))
        return cls(weights, edges)

    def score(self, outcome: Outcome) -> float | None:
        """The score of an outcome's numbers; None without numbers, or for a kind
        that the learnt draws do not have.
        """
        label, numbers = outcome
        weights = self.weights.get((label, len(numbers)))
        return None if weights is None else float(np.asarray(numbers) @ weights)

    def counts(self, outcomes: Sequence[Outcome]) -> dict[tuple[Hashable, int, int], int]:
        """Number of outcomes in each cell: kind (label and number of
        numbers), and number of the interval.
        """
        cells: dict[tuple[Hashable, int, int], int] = {}
        for kind, values in _by_kind(outcomes).items():
            if kind not in self.weights:
                cells[*kind, 0] = len(values)
                continue
            places = np.searchsorted(self.edges[kind], values @ self.weights[kind], side="left")
            for place, count in zip(*np.unique(places, return_counts=True), strict=True):
                cells[*kind, int(place)] = int(count)
        return cells


def _by_kind(outcomes: Sequence[Outcome]) -> dict[tuple[Hashable, int], Floats]:
    rows: dict[tuple[Hashable, int], list[tuple[float, ...]]] = {}
    for label, numbers in outcomes:
        rows.setdefault((label, len(numbers)), []).append(numbers)
    return {
        kind: np.array(values, np.float64).reshape(len(values), kind[1])
        for kind, values in rows.items()
    }


def _weights(first: Floats, second: Floats) -> Floats:
    size = first.shape[1]
    if size == 1 or not len(first) or not len(second):
        return np.ones(size)
    both = np.concatenate([first, second])
    wide = np.subtract(*np.quantile(both, [0.75, 0.25], axis=0))
    apart = np.median(first, axis=0) - np.median(second, axis=0)
    apart = np.where(apart == 0, first.mean(axis=0) - second.mean(axis=0), apart)
    weights = apart / np.where(wide > 0, wide, 1.0) ** 2
    return weights if np.any(weights) else np.ones(size)


@dataclass(frozen=True)
class OutcomeSet:
    """A set of cells that is likelier under one table;
    `first` says whether that is the first table.
    """

    cells: frozenset[tuple[Hashable, int, int]]
    first: bool

    def hits(self, counts: dict[tuple[Hashable, int, int], int]) -> int:
        """Number of counted outcomes that are in the event."""
        return sum(count for cell, count in counts.items() if cell in self.cells)


def best_event(
    first: dict[tuple[Hashable, int, int], int],
    second: dict[tuple[Hashable, int, int], int],
    trials: int,
    delta: float,
) -> OutcomeSet:
    """The event whose cautious estimate of ε is largest:
    unions of the likeliest cells, and one-sided intervals.
    """
    cells = sorted(first.keys() | second.keys(), key=repr)
    best = (-np.inf, OutcomeSet(frozenset(), True))
    for is_first, (likely, rare) in ((True, (first, second)), (False, (second, first))):
        p = np.array([likely.get(cell, 0) for cell in cells], np.float64)
        q = np.array([rare.get(cell, 0) for cell in cells], np.float64)
        orders = [np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")]
        kinds: dict[object, list[int]] = {}
        for i, cell in enumerate(cells):
            kinds.setdefault(cell[:2], []).append(i)
        for places in kinds.values():
            along = np.array(sorted(places, key=lambda i: cells[i][2]))
            orders += [along, along[::-1]]
        for order in orders:
            hits, misses = np.cumsum(p[order]) / trials, np.cumsum(q[order]) / trials
            sure = hits - _SURE * np.sqrt(hits / trials) - delta
            rarely = misses + _SURE * np.sqrt(misses / trials) + _SURE**2 / trials
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.where(sure > 0, np.log(np.maximum(sure, 1e-300) / rarely), -np.inf)
            at = int(np.argmax(values))
            if values[at] > best[0]:
                best = (
                    float(values[at]),
                    OutcomeSet(frozenset(cells[i] for i in order[: at + 1]), is_first),
                )
    return best[1]
