"""Vectors: any sequence becomes an array of the domain's type, and a result becomes the kind of the caller's input."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, MetricMismatch
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.theory.spaces import (
    AtomDomain,
    ChangeOneDistance,
    Domain,
    HammingDistance,
    InsertDeleteDistance,
    Metric,
    SymmetricDistance,
    VectorDomain,
)

__all__ = ["as_array", "dataset", "like", "plain_value", "relation_of"]

_RELATIONS: dict[type[Metric], Relation] = {
    SymmetricDistance: "add-remove",
    InsertDeleteDistance: "add-remove",
    ChangeOneDistance: "replace",
    HammingDistance: "replace",
}


def relation_of(metric: Metric, name: str) -> Relation:
    """Whether a dataset metric counts records that enter or leave, or records that change. Errors: MetricMismatch."""
    relation = _RELATIONS.get(type(metric))
    if relation is None:
        raise MetricMismatch(
            f"{name}: the input metric is {metric!r}; a dataset is compared by SymmetricDistance(), "
            "InsertDeleteDistance(), ChangeOneDistance() or HammingDistance()."
        )
    return relation


def dataset(domain: Domain, metric: Metric, name: str) -> tuple[VectorDomain, Relation]:
    """Check that a transformation's input is a dataset; return its domain and relation.

    Errors: DomainMismatch, MetricMismatch
    """
    if not isinstance(domain, VectorDomain):
        raise DomainMismatch(f"{name}: the input domain is {domain!r}; it works on a VectorDomain.")
    if not isinstance(domain.element_domain, AtomDomain) and name != "count":
        raise DomainMismatch(f"{name}: the input domain is {domain!r}; it works on a vector of single values.")
    return domain, relation_of(metric, name)


def as_array(values: Any, atom: AtomDomain) -> np.ndarray[Any, Any]:
    """A vector of members as an array of the domain's type; strings as Python objects."""
    if atom.dtype.kind == "O":
        array = np.empty(len(values), dtype=object)
        array[:] = [str(v) for v in values]
        return array
    return np.asarray(values if hasattr(values, "__array__") else list(values), dtype=atom.dtype)


def like(array: np.ndarray[Any, Any], original: Any) -> Any:
    """The result as an array if the caller passed an array or a Series, otherwise as a list of Python values."""
    if isinstance(original, np.ndarray) or (hasattr(original, "__array__") and not isinstance(original, list | tuple)):
        return array
    return array.tolist()


def plain_value(value: Any) -> Any:
    """The value that is hashed in place of this one. Equal values of different types (2 and 2.0) have one such value.

    >>> plain_value(np.float64(2.0)), plain_value(-0.0), plain_value("a")
    (2, 0, 'a')
    """
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
