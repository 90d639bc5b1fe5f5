"""Combinators: several measurements as one, and the loss of one stated in another measure."""

from dpframe.theory.combinators.composition import (
    compose,
    optimal_compose,
    parallel,
)
from dpframe.theory.combinators.conversions import (
    fix_delta,
    pure_to_approx,
    pure_to_zcdp,
    sample,
    zcdp_to_approx,
)

__all__ = [
    "compose",
    "fix_delta",
    "optimal_compose",
    "parallel",
    "pure_to_approx",
    "pure_to_zcdp",
    "sample",
    "zcdp_to_approx",
]
