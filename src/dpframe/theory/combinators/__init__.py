"""Combinators: several measurements as one, and the loss of one stated in another measure."""

from dpframe.theory.combinators.composition import (
    compose,
    optimal_compose,
    parallel,
)
from dpframe.theory.combinators.conversions import (
    fix_delta,
    for_several_units,
    poisson_sample,
    pure_to_approx,
    pure_to_zcdp,
    renyi_to_approx,
    sample,
    zcdp_to_approx,
)
from dpframe.theory.combinators.interactive import Odometer, Queryable, odometer, privacy_filter

__all__ = [
    "Odometer",
    "Queryable",
    "compose",
    "fix_delta",
    "for_several_units",
    "odometer",
    "optimal_compose",
    "parallel",
    "poisson_sample",
    "privacy_filter",
    "pure_to_approx",
    "pure_to_zcdp",
    "renyi_to_approx",
    "sample",
    "zcdp_to_approx",
]
