"""Transformations from datasets to a dataset: clamp, cast and impute each record, resize to a public size, join."""

from __future__ import annotations

import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dpframe.arrays import Array
from dpframe.errors import DomainMismatch, InvalidArgument, InvalidBounds, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector, as_array, dataset, like, plain_value
from dpframe.theory.exact import Real, is_whole
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import (
    AtomDomain,
    Domain,
    HammingDistance,
    InsertDeleteDistance,
    Metric,
    PairDistance,
    SymmetricDistance,
    TupleDomain,
    VectorDomain,
)


def _rowwise(
    domain: VectorDomain, metric: Metric, atom: AtomDomain, function: Callable[[Array], Array]
) -> Transformation:
    """A transformation from a function of arrays that maps each entry by itself.

    d_out = d_in: equal records have equal images, so two outputs differ in at most as many records as their inputs.
    """

    def run(values: Vector) -> object:
        return like(function(as_array(values, domain.element_domain)), values)

    return Transformation(domain, metric, VectorDomain(atom, domain.size), metric, run, lambda d_in: d_in)


@ordered
def clamp(input_domain: Domain, input_metric: Metric, bounds: tuple[Real, Real]) -> Transformation:
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
def cast(input_domain: Domain, input_metric: Metric, T: DTypeLike, default: Any = None) -> Transformation:
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
    if kind in "iu":
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
        return int(text) if kind in "iu" else float(text)
    except ValueError:
        return None


@ordered
def resize(input_domain: Domain, input_metric: Metric, size: int, constant: object) -> Transformation:
    """Cut a dataset down, or fill it up with a constant, to a public size.

    Input:  vectors of any type; size (count, at least 1); constant: a member of the element domain
    Output: vectors of exactly `size` records. Under a metric that ignores order, the records with the smallest hashes
            are kept. The hash is of a secret of this transformation, the value, and the number of equal values before
            it, so the other records and their order have no influence. Under an ordered metric the first `size` records
            are kept
    Bound:  2·d_in where records enter or leave: one additional record pushes out at most one other record, or replaces
            one constant, and a replacement counts as two. d_in where records change. Never more than a replacement of
            all records
    Source: `statistics.resized`
    Errors: InvalidArgument for a size below 1 or a constant outside the domain; DomainMismatch, MetricMismatch

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
    ordered = isinstance(input_metric, InsertDeleteDistance | HammingDistance)
    salt = os.urandom(16)

    def run(values: Vector) -> object:
        array = as_array(values, atom)
        if len(array) > length:
            array = array[:length] if ordered else array[_kept(array.tolist(), length, salt)]
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
        digest = hashlib.blake2b(b"%d:%b" % (repeats[text], text), key=salt, digest_size=16).digest()
        ranks.append((digest, position))
    return sorted(position for _, position in sorted(ranks)[:length])


Row = tuple[object, ...]


def join(left: VectorDomain, right: VectorDomain, max_left: int, max_right: int) -> Transformation:
    """Every pair of rows of two private tables that agree in their first column, with a limit on each key's rows.

    Input:  a pair of tables (left, right), each a vector of rows (tuples) whose first entry is the key:
            `VectorDomain(TupleDomain(AtomDomain(str), AtomDomain(int)))`; max_left, max_right: how many rows of a key
            are kept in each table (counts, at least 1). A secret hash of the row chooses them; the other rows and the
            order of rows have no influence. The metric is PairDistance(): rows that enter or leave (left, right)
    Output: vector of rows (key, rest of the left row, rest of the right row), under SymmetricDistance()
    Bound:  2·max_right·d_left + 2·max_left·d_right: a row that enters on the left takes the place of at most one other
            row of its key. So two rows change, and each is paired with at most max_right rows of the right table;
            likewise on the right. The bound also holds where no row is left out
    Source: Tumult Core's private join (Berghel et al. 2022, arXiv:2212.04133) for the limits; `statistics.joined`
    Errors: InvalidArgument for the limits; DomainMismatch where a table is not of rows or the keys differ in type

    >>> table = VectorDomain(TupleDomain(AtomDomain(str), AtomDomain(int)))
    >>> t = join(table, table, max_left=1, max_right=2)
    >>> sorted(t(([("a", 1), ("b", 2)], [("a", 5), ("a", 6)]))), t.map((1, 0)), t.map((1, 1))
    ([('a', 1, 5), ('a', 1, 6)], 4, 6)
    """
    tables = [_table(domain) for domain in (left, right)]
    if tables[0].domains[0] != tables[1].domains[0]:
        raise DomainMismatch(f"join: the keys are {tables[0].domains[0]!r} and {tables[1].domains[0]!r}.")
    for name, value in (("max_left", max_left), ("max_right", max_right)):
        if not is_whole(value, 1):
            raise InvalidArgument(f"join: {name}={value!r} is a whole number of at least 1.")
    most = int(max_left), int(max_right)
    salts = os.urandom(16), os.urandom(16)
    metric: Metric = PairDistance(SymmetricDistance())

    def run(pair: tuple[Iterable[Row], Iterable[Row]]) -> list[Row]:
        tables_by_key = [_rows_kept(rows, limit, salt) for rows, limit, salt in zip(pair, most, salts, strict=True)]
        return [(k, *a, *b) for k, rows in tables_by_key[0].items() for a in rows for b in tables_by_key[1].get(k, [])]

    return Transformation(
        TupleDomain(left, right),
        metric,
        VectorDomain(TupleDomain(*tables[0].domains, *tables[1].domains[1:])),
        SymmetricDistance(),
        run,
        lambda d_in: statistics.joined(d_in[0], d_in[1], *most),
    )


def _table(domain: object) -> TupleDomain:
    """The domain of the rows of a table. Errors: DomainMismatch, MetricMismatch."""
    if not isinstance(domain, VectorDomain) or not isinstance(domain.element_domain, TupleDomain):
        raise DomainMismatch(f"join: {domain!r} is no table. Type VectorDomain(TupleDomain(AtomDomain(str), ...)).")
    if domain.size is not None:
        raise MetricMismatch(f"join: {domain!r} has a public size, under which rows do not enter or leave.")
    rows = domain.element_domain
    if not all(isinstance(d, AtomDomain) and not d.nan for d in rows.domains):
        raise DomainMismatch(f"join: {rows!r}: each column is an AtomDomain without NaN.")
    return rows


def _rows_kept(rows: Iterable[Row], limit: int, salt: bytes) -> dict[object, list[Row]]:
    """For each key, the rows with the smallest hashes, without the key itself."""
    repeats: dict[bytes, int] = defaultdict(int)
    ranked: dict[object, list[tuple[bytes, Row]]] = defaultdict(list)
    for row in rows:
        plain = tuple(map(plain_value, row))
        text = repr(plain).encode()
        repeats[text] += 1
        digest = hashlib.blake2b(b"%d:%b" % (repeats[text], text), key=salt, digest_size=16).digest()
        ranked[plain[0]].append((digest, plain[1:]))
    return {key: [row for _, row in sorted(pairs, key=lambda pair: pair[0])[:limit]] for key, pairs in ranked.items()}
