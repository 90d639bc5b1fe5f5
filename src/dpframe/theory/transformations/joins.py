"""Joins of two private tables, with a limit on the rows of each key."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AtomDomain, Metric, PairDistance, SymmetricDistance, TupleDomain, VectorDomain
from dpframe.theory.vectors import plain_value

__all__ = ["join"]

Row = tuple[Any, ...]


def join(left: Any, right: Any, max_left: int, max_right: int) -> Transformation:
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
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InvalidArgument(f"join: {name}={value!r} is a whole number of at least 1.")
    most = int(max_left), int(max_right)
    salts = os.urandom(16), os.urandom(16)
    metric: Metric = PairDistance(SymmetricDistance())

    def run(pair: Any) -> list[Row]:
        tables_by_key = [_kept(rows, limit, salt) for rows, limit, salt in zip(pair, most, salts, strict=True)]
        return [(k, *a, *b) for k, rows in tables_by_key[0].items() for a in rows for b in tables_by_key[1].get(k, [])]

    return Transformation(
        TupleDomain(left, right),
        metric,
        VectorDomain(TupleDomain(*tables[0].domains, *tables[1].domains[1:])),
        SymmetricDistance(),
        run,
        lambda d_in: statistics.joined(d_in[0], d_in[1], *most),
    )


def _table(domain: Any) -> TupleDomain:
    """The domain of the rows of a table. Errors: DomainMismatch, MetricMismatch."""
    if not isinstance(domain, VectorDomain) or not isinstance(domain.element_domain, TupleDomain):
        raise DomainMismatch(f"join: {domain!r} is no table. Type VectorDomain(TupleDomain(AtomDomain(str), ...)).")
    if domain.size is not None:
        raise MetricMismatch(f"join: {domain!r} has a public size, under which rows do not enter or leave.")
    rows = domain.element_domain
    if not all(isinstance(d, AtomDomain) and not d.nan for d in rows.domains):
        raise DomainMismatch(f"join: {rows!r}: each column is an AtomDomain without NaN.")
    return rows


def _kept(rows: Any, limit: int, salt: bytes) -> dict[Any, list[Row]]:
    """For each key, the rows with the smallest hashes, without the key itself."""
    repeats: dict[bytes, int] = defaultdict(int)
    ranked: dict[Any, list[tuple[bytes, Row]]] = defaultdict(list)
    for row in rows:
        plain = tuple(map(plain_value, row))
        text = repr(plain).encode()
        repeats[text] += 1
        digest = hashlib.blake2b(b"%d:%b" % (repeats[text], text), key=salt, digest_size=16).digest()
        ranked[plain[0]].append((digest, plain[1:]))
    return {key: [row for _, row in sorted(pairs, key=lambda pair: pair[0])[:limit]] for key, pairs in ranked.items()}
