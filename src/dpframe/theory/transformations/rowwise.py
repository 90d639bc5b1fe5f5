"""Row-by-row transformations: clamp, cast, impute. One record that differs changes at most one record of the output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.theory.calls import ordered
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AtomDomain, Domain, Metric, VectorDomain
from dpframe.theory.vectors import as_array, dataset, like

__all__ = ["cast", "clamp", "impute"]


def _rowwise(
    domain: VectorDomain, metric: Metric, atom: AtomDomain, function: Callable[[np.ndarray[Any, Any]], Any]
) -> Transformation:
    """A transformation from a function of arrays that maps each entry by itself.

    d_out = d_in: equal records have equal images, so two outputs differ in at most as many records as their inputs.
    """

    def run(values: Any) -> Any:
        return like(function(as_array(values, domain.element_domain)), values)

    return Transformation(domain, metric, VectorDomain(atom, domain.size), metric, run, lambda d_in: d_in)


@ordered
def clamp(input_domain: Domain, input_metric: Metric, bounds: tuple[Any, Any]) -> Transformation:
    """Move every number that lies outside the bounds to the nearer bound.

    Input:  vectors of numbers; bounds (L, U) in their unit, L <= U, finite, members of T
    Output: vectors within [L, U] of equal length; NaN, if the domain admits it, stays NaN
    Bound:  d_out = d_in. The image of a record depends on that record alone, so records that are equal stay equal. The
            bound is tight, since values inside the bounds do not change
    Source: Gaboardi, Hay and Vadhan 2020, "A Programming Framework for OpenDP", on row-by-row transformations
    Errors: InvalidBounds; DomainMismatch, MetricMismatch when the input is not a dataset

    >>> from dpframe.theory import SymmetricDistance
    >>> t = clamp(VectorDomain(AtomDomain(float)), SymmetricDistance(), bounds=(0, 5))
    >>> t([10.0]), t.map(3)
    ([5.0], 3)
    """
    domain, _ = dataset(input_domain, input_metric, "clamp")
    atom = domain.element_domain
    if bounds is None:
        raise InvalidBounds("clamp: give bounds=(lower, upper).")
    bounded = AtomDomain(atom.T, bounds=bounds, nan=atom.nan)
    assert bounded.bounds is not None
    lower, upper = (atom.dtype.type(b) for b in bounded.bounds)
    return _rowwise(domain, input_metric, bounded, lambda x: np.clip(x, lower, upper))


@ordered
def impute(input_domain: Domain, input_metric: Metric, constant: Any = 0.0) -> Transformation:
    """Put a constant in the place of every NaN.

    Input:  vectors of floats that may be NaN; constant, a member of T within the domain's bounds, in their unit
    Output: vectors without NaN, of equal length
    Bound:  d_out = d_in, as for `clamp`; the constant does not depend on the data
    Source: Gaboardi, Hay and Vadhan 2020, on row-by-row transformations
    Errors: InvalidArgument for a constant outside the domain; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance
    >>> impute(VectorDomain(AtomDomain(float, nan=True)), SymmetricDistance(), 1.0)([float("nan"), 2.0])
    [1.0, 2.0]
    """
    domain, _ = dataset(input_domain, input_metric, "impute")
    atom = domain.element_domain
    atoms = AtomDomain(atom.T, bounds=atom.bounds)
    if not atoms.member(constant) or (atom.is_float and math.isinf(constant)):
        raise InvalidArgument(f"impute: constant={constant!r} is not a finite member of {atoms!r}.")
    if not atom.is_float:
        return _rowwise(domain, input_metric, atoms, lambda x: x)
    return _rowwise(domain, input_metric, atoms, lambda x: np.where(np.isnan(x), atom.dtype.type(constant), x))


@ordered
def cast(input_domain: Domain, input_metric: Metric, T: Any, default: Any = None) -> Transformation:  # noqa: N803
    """Turn every record into another type. A value that cannot be converted becomes the default.

    Input:  vectors of any type; T, the new type; default, a member of T (None: 0, False or "")
    Output: vectors of T without NaN. Numbers become integers by truncation toward zero, and bool by "is not zero"; text
            is parsed. The default replaces NaN, infinity, numbers that T cannot hold and text that is not a number. So
            no value makes the cast fail
    Bound:  d_out = d_in, as for `clamp`: the image of a record depends on that record alone
    Source: Gaboardi, Hay and Vadhan 2020, on row-by-row transformations
    Errors: InvalidArgument for a default that is not of type T; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance
    >>> cast(VectorDomain(AtomDomain(str)), SymmetricDistance(), int, default=-1)(["3", "x", "4.7"])
    [3, -1, -1]
    """
    domain, _ = dataset(input_domain, input_metric, "cast")
    target = AtomDomain(T)
    if default is None:
        default = {"b": False, "O": "", "f": 0.0}.get(target.dtype.kind, 0)
    if not target.member(default) or (target.is_float and not math.isfinite(default)):
        raise InvalidArgument(f"cast: default={default!r} is not a finite member of {target!r}.")

    def one(value: Any) -> Any:
        image = _image(value, target)
        return default if image is None or not target.member(image) else image

    def run(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return as_array([one(v) for v in values.tolist()], target)

    return _rowwise(domain, input_metric, target, run)


def _image(value: Any, target: AtomDomain) -> Any:
    """The value in the target type; None if it cannot be converted."""
    kind = target.dtype.kind
    if kind == "O":
        return None if isinstance(value, float) and math.isnan(value) else str(value)
    if isinstance(value, str):
        value = _parsed(value, kind)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return int(value)
    if abs(value) > target.limits[1]:
        return None
    return float(target.dtype.type(value))


def _parsed(text: str, kind: str) -> Any:
    """The bool, whole number or number that a text states; None if it states none."""
    text = text.strip()
    if kind == "b":
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())
    try:
        return int(text) if kind in "iu" else float(text)
    except ValueError:
        return None
