"""Transformations from datasets to a dataset: clamp, cast and impute each
record, resize to a public size.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dpframe.arrays import WHOLE, Array
from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector, as_array, dataset, like
from dpframe.theory.exact import Real
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import (
    AtomDomain,
    Domain,
    Metric,
    VectorDomain,
)


def _rowwise(
    domain: VectorDomain, metric: Metric, atom: AtomDomain, function: Callable[[Array], Array]
) -> Transformation:
    """A transformation from a function of arrays that maps each entry by itself.

    d_out = d_in: equal records have equal images, so two outputs differ in at most as many records
    as their inputs.
    """

    def run(values: Vector) -> object:
        return like(function(as_array(values, domain.element_domain)), values)

    return Transformation(
        domain, metric, VectorDomain(atom, domain.size), metric, run, lambda d_in: d_in
    )


@ordered
def clamp(input_domain: Domain, input_metric: Metric, bounds: tuple[Real, Real]) -> Transformation:
    """Move every number that lies outside the bounds to the nearer bound.

    Input:  vectors of numbers; bounds (L, U) in their unit, L <= U, finite, members of T
    Output: vectors within [L, U] of equal length; NaN, if the domain admits it, stays NaN
    Bound:  d_out = d_in. The image of a record depends on that record alone, so records that are
            equal stay equal. The bound is tight, since values inside the bounds do not change
    Source: Gaboardi, Hay and Vadhan 2020, "A Programming Framework for OpenDP", on row-by-row
            transformations
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

    Input:  vectors of floats that may be NaN; constant, a member of T within the domain's bounds,
            in their unit
    Output: vectors without NaN, of equal length
    Bound:  d_out = d_in, as for `clamp`; the constant does not depend on the data
    Source: Gaboardi, Hay and Vadhan 2020, on row-by-row transformations
    Errors: InvalidArgument for a constant outside the domain; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance
    >>> impute(VectorDomain(AtomDomain(float, nan=True)), SymmetricDistance(), 1.0)(
    ...     [float("nan"), 2.0]
    ... )
    [1.0, 2.0]
    """
    domain, _ = dataset(input_domain, input_metric, "impute")
    atom = domain.element_domain
    atoms = AtomDomain(atom.T, bounds=atom.bounds)
    if not atoms.member(constant) or (atom.is_float and math.isinf(constant)):
        raise InvalidArgument(f"impute: constant={constant!r} is not a finite member of {atoms!r}.")
    if not atom.is_float:
        return _rowwise(domain, input_metric, atoms, lambda x: x)
    return _rowwise(
        domain, input_metric, atoms, lambda x: np.where(np.isnan(x), atom.dtype.type(constant), x)
    )


@ordered
def cast(
    input_domain: Domain, input_metric: Metric, T: DTypeLike, default: Any = None
) -> Transformation:
    """Turn every record into another type. A value that cannot be converted becomes the default.

    Input:  vectors of any type; T, the new type; default, a member of T (None: 0, False or "")
    Output: vectors of T without NaN. Numbers become integers by truncation toward zero, and bool by
            "is not zero"; text is parsed. The default replaces NaN, infinity, numbers that T cannot
            hold and text that is not a number. So no value makes the cast fail
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

    def one(value: object) -> object:
        image = _image(value, target)
        return default if image is None or not target.member(image) else image

    def run(values: Array) -> Array:
        return as_array([one(v) for v in values.tolist()], target)

    return _rowwise(domain, input_metric, target, run)


def _image(value: Any, target: AtomDomain) -> object:
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
    if kind in WHOLE:
        return int(value)
    if abs(value) > target.limits[1]:
        return None
    return float(target.dtype.type(value))


def _parsed(text: str, kind: str) -> float | None:
    """The bool, whole number or number that a text states; None if it states none."""
    text = text.strip()
    if kind == "b":
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())
    try:
        return int(text) if kind in WHOLE else float(text)
    except ValueError:
        return None


@ordered
def resize(
    input_domain: Domain, input_metric: Metric, size: int, constant: object
) -> Transformation:
    """Cut a dataset down, or fill it up with a constant, to a public size.

    Input:  vectors of any type; size (count, at least 1); constant: a member of the element domain
    Output: vectors of exactly `size` records. Under a metric that ignores order, the records with
            the smallest hashes are kept. The hash is of a secret of this transformation, the value,
            and the number of equal values before it, so the other records and their order have no
            influence. Under an ordered metric the first `size` records are kept
    Bound:  2·d_in where records enter or leave: one additional record pushes out at most one other
            record, or replaces one constant, and a replacement counts as two. d_in where records
            change. Never more than a replacement of all records
    Source: `statistics.resized`
    Errors: InvalidArgument for a size below 1 or a constant outside the domain; DomainMismatch,
            MetricMismatch

    >>> from dpframe.theory import AtomDomain, SymmetricDistance
    >>> t = resize(VectorDomain(AtomDomain(int)), SymmetricDistance(), size=4, constant=0)
    >>> t([-1, 2, 5]), t.map(1)
    ([-1, 2, 5, 0], 2)
    """
    domain, relation = dataset(input_domain, input_metric, "resize")
    atom = domain.element_domain
    if not atom.member(constant):
        raise InvalidArgument(f"resize: constant={constant!r} is not a member of {atom!r}.")
    output = VectorDomain(atom, size=size)
    length = output.size
    assert length is not None
    salt = os.urandom(16)

    def run(values: Vector) -> object:
        array = as_array(values, atom)
        if len(array) > length:
            array = (
                array[:length]
                if input_metric.ordered
                else array[_kept(array.tolist(), length, salt)]
            )
        filler = as_array([constant] * (length - len(array)), atom)
        return like(np.concatenate([array, filler]), values)

    return Transformation(
        domain,
        input_metric,
        output,
        input_metric,
        run,
        lambda d_in: statistics.resized(d_in, relation, domain.size, length),
    )


def _kept(values: list[object], length: int, salt: bytes) -> list[int]:
    """Positions, in order, of the records with the smallest hashes."""
    repeats: dict[bytes, int] = {}
    ranks = []
    for position, value in enumerate(values):
        text = repr(0.0 if value == 0 and isinstance(value, float) else value).encode()
        repeats[text] = repeats.get(text, 0) + 1
        digest = hashlib.blake2b(
            b"%d:%b" % (repeats[text], text), key=salt, digest_size=16
        ).digest()
        ranks.append((digest, position))
    return sorted(position for _, position in sorted(ranks)[:length])
