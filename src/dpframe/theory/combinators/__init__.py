"""Combinators: several measurements as one, and the loss of one stated in another measure."""

from dpframe.theory.combinators.composition import (
    compose,
    parallel,
)
from dpframe.theory.combinators.conversions import (
    fix_delta,
    pure_to_approx,
    pure_to_zcdp,
    zcdp_to_approx,
)
from dpframe.theory.combinators.interactive import Odometer, Queryable, odometer, privacy_filter

__all__ = [
    "Odometer",
    "Queryable",
    "compose",
    "fix_delta",
    "odometer",
    "parallel",
    "privacy_filter",
    "pure_to_approx",
    "pure_to_zcdp",
    "zcdp_to_approx",
]
