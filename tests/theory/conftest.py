"""Random datasets and neighbours, and the question whether a
transformation kept its promise on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpframe.theory as t


def values(rng: np.random.Generator, atom: t.AtomDomain, count: int) -> list[Any]:
    """Members of a domain, often at its ends and often equal."""
    kind = atom.dtype.kind
    if kind == "O":
        return rng.choice(["a", "b", "c", "dd", ""], count).tolist()
    if kind == "b":
        return rng.choice([True, False], count).tolist()
    low, high = atom.bounds or (-40, 40)
    if kind == "u":
        low = max(low, 0)
    if kind in "iu":
        inner = [int(v) for v in rng.integers(low, high, count, endpoint=True, dtype=atom.dtype)]
    else:
        inner = [float(atom.dtype.type(low + (high - low) * u)) for u in rng.random(count)]
        inner = [min(max(v, low), high) for v in inner]
    ends = rng.choice(3, count)
    drawn = [low if e == 0 else high if e == 1 else v for e, v in zip(ends, inner, strict=True)]
    if atom.nan:
        drawn = [
            float("nan") if u < 0.2 else v for u, v in zip(rng.random(count), drawn, strict=True)
        ]
    return [float(v) for v in drawn] if kind == "f" else drawn


def pair(
    rng: np.random.Generator, domain: t.VectorDomain, metric: t.Metric, distance: int
) -> tuple[list[Any], list[Any]]:
    """Two members of the domain within the distance."""
    atom = domain.element_domain
    size = domain.size or int(rng.integers(0, 12))
    left = values(rng, atom, size)
    right = list(left)
    ordered = isinstance(metric, t.InsertDeleteDistance | t.HammingDistance)
    replace = isinstance(metric, t.ChangeOneDistance | t.HammingDistance)
    if replace or domain.size is not None:
        steps = min(distance if replace else distance // 2, size)
        for place in rng.permutation(size)[:steps]:
            right[place] = values(rng, atom, 1)[0]
    else:
        for _ in range(distance):
            if right and rng.random() < 0.5:
                right.pop(int(rng.integers(len(right))))
            else:
                right.insert(int(rng.integers(len(right) + 1)), values(rng, atom, 1)[0])
    if not ordered:
        right = [right[i] for i in rng.permutation(len(right))]
    return left, right


def _kept(transformation: t.Transformation, left: Any, right: Any) -> tuple[Any, Any]:
    """(measured, promised) distance of the two outputs."""
    d_in = transformation.input_metric.distance(left, right)
    measured = transformation.output_metric.distance(transformation(left), transformation(right))
    return measured, transformation.map(d_in)


def _holds(transformation: t.Transformation, rng: np.random.Generator, rounds: int = 150) -> bool:
    """Run random neighbours at distances up to 4 and compare;
    the outputs must be members of the output domain.
    """
    for i in range(rounds):
        left, right = pair(rng, transformation.input_domain, transformation.input_metric, i % 5)
        measured, promised = _kept(transformation, left, right)
        assert transformation.output_domain.member(transformation(left)), (transformation, left)
        assert measured <= promised, (transformation, left, right, measured, promised)
    return True


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


@pytest.fixture
def kept() -> Any:
    return _kept


@pytest.fixture
def holds(rng: np.random.Generator) -> Any:
    return lambda transformation, rounds=150: _holds(transformation, rng, rounds)
