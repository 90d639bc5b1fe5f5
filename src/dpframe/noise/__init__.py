"""Exact integer noise: integers in, integers out, and all randomness from the operating system.

Every sampler here has exactly the law it states, for the float scale as given. How: see `inversion`.
"""

from dpframe.noise.bernoulli import bernoulli, bernoulli_exp
from dpframe.noise.differences import contrasts, rounded_contrasts
from dpframe.noise.discrete_gaussian import discrete_gaussian
from dpframe.noise.gaussian import rounded_gaussian
from dpframe.noise.laplace import discrete_laplace, rounded_laplace
from dpframe.noise.partition import keep_probability, truncated_geometric_keep
from dpframe.noise.selection import (
    exponential_choice,
    keep_at_least,
    permute_and_flip,
    randomized_response,
    uniform_index,
)

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "contrasts",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "keep_at_least",
    "keep_probability",
    "permute_and_flip",
    "randomized_response",
    "rounded_contrasts",
    "rounded_gaussian",
    "rounded_laplace",
    "truncated_geometric_keep",
    "uniform_index",
]
