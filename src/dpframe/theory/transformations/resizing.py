"""The transformation that makes the size of a dataset public: resize."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument
from dpframe.theory.calls import ordered
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import Domain, HammingDistance, InsertDeleteDistance, Metric, VectorDomain
from dpframe.theory.vectors import as_array, dataset, like

__all__ = ["resize"]


@ordered
def resize(input_domain: Domain, input_metric: Metric, size: int, constant: Any) -> Transformation:
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

    def run(values: Any) -> Any:
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


def _kept(values: list[Any], length: int, salt: bytes) -> list[int]:
    """Positions, in order, of the records with the smallest hashes."""
    repeats: dict[bytes, int] = {}
    ranks = []
    for position, value in enumerate(values):
        text = repr(0.0 if value == 0 and isinstance(value, float) else value).encode()
        repeats[text] = repeats.get(text, 0) + 1
        digest = hashlib.blake2b(b"%d:%b" % (repeats[text], text), key=salt, digest_size=16).digest()
        ranks.append((digest, position))
    return sorted(position for _, position in sorted(ranks)[:length])
