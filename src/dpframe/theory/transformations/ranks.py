"""Quantile scores: the rank error of each public candidate, from which `noisy_max` selects a quantile."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument
from dpframe.theory.calls import ordered
from dpframe.theory.exact import exact
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AtomDomain, Domain, LinfDistance, Metric, VectorDomain
from dpframe.theory.vectors import as_array, dataset

__all__ = ["quantile_scores"]


@ordered
def quantile_scores(
    input_domain: Domain, input_metric: Metric, candidates: Iterable[Any], alpha: Any
) -> Transformation:
    """The negative rank error of each candidate for the alpha-quantile. The best candidate has the largest score.

    Input:  vectors of numbers without NaN; candidates, increasing numbers of the same type; alpha = a/b in [0, 1], the
            part of the records that should lie below (b at most 10^6)
    Output: vector of int (1/b of a record): -|(b-a)·(records below) - a·(records above)| for each candidate
    Bound:  in LinfDistance: d_in·max(a, b-a) where records enter or leave, since each changes one of the two terms. A
            record that changes may move from one side of the candidate to the other: d_in·b
    Source: Smith 2011, STOC, for rank scores; `statistics.rank_scores`
    Errors: InvalidArgument for candidates and alpha; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance, noisy_max
    >>> t = quantile_scores(VectorDomain(AtomDomain(int)), SymmetricDistance(), [0, 2, 4], alpha=0.5)
    >>> t([1, 2, 3]), t.map(1)
    ([-3, 0, -3], 1)
    >>> (t >> noisy_max(*t.output_space, scale=1.0)).map(1)
    2.0
    """
    domain, relation = dataset(input_domain, input_metric, "quantile_scores")
    atom = domain.element_domain
    if not (atom.is_float or atom.is_integer) or atom.nan:
        raise DomainMismatch(f"quantile_scores: the records are {atom!r}; quantiles are of numbers without NaN.")
    atoms, points = AtomDomain(atom.T), list(candidates)
    if not points or not all(atoms.member(c) for c in points) or any(x >= y for x, y in itertools.pairwise(points)):
        raise InvalidArgument(f"quantile_scores: candidates are increasing values of {atoms!r}.")
    rank = exact(alpha, "alpha")
    if not 0 <= rank <= 1 or rank.denominator > 10**6:
        raise InvalidArgument(f"quantile_scores: alpha={alpha!r} is a fraction from 0 to 1 with a short decimal.")
    a, b = rank.as_integer_ratio()
    edges = as_array(points, atoms)

    def run(values: Any) -> list[int]:
        records = np.sort(as_array(values, atom))
        below = np.searchsorted(records, edges, side="left")
        above = len(records) - np.searchsorted(records, edges, side="right")
        return [-abs((b - a) * int(low) - a * int(high)) for low, high in zip(below, above, strict=True)]

    return Transformation(
        domain,
        input_metric,
        VectorDomain(AtomDomain(int), size=len(points)),
        LinfDistance(),
        run,
        lambda d_in: Fraction(statistics.rank_scores(d_in, rank, relation, domain.size)),
    )
