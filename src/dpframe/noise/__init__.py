"""Exact integer noise. All randomness comes from the operating system.

Every sampler here has exactly the distribution that its docstring states ("Law"), for the exact
value of the float scale. `inversion` explains the method.
"""

from dpframe.noise.bernoulli import bernoulli, bernoulli_exp
from dpframe.noise.certified import (
    Ball,
    Number,
    at_most,
    ball,
    first_enough,
    float_down,
    float_up,
    halved,
    precision,
    root_up,
    round_down,
    smallest_float,
    smallest_integer,
    solve,
    upper,
)
from dpframe.noise.choosing import (
    exponential_choice,
    keep_at_least,
    keep_probability,
    permute_and_flip,
    randomized_response,
    truncated_geometric_keep,
    uniform_index,
)
from dpframe.noise.correlated import (
    GRID,
    MOST_CELLS,
    contrasts,
    cube_noises,
    rounded_contrasts,
    shared_gaussian,
    window_noise,
    window_noises,
    window_tail,
)
from dpframe.noise.gaussian import rounded_gaussian
from dpframe.noise.inversion import (
    fit,
    uniform_ball,
)
from dpframe.noise.laplace import discrete_laplace, rounded_laplace
from dpframe.noise.scales import (
    positive,
    rational,
)
from dpframe.noise.shifted import shifted_gaussian, shifted_laplace
from dpframe.noise.tail_bounds import (
    TAILS,
    family_tail,
    gaussian_tail,
    laplace_tail,
    rounded_reach,
    tail_of,
    whole,
)

__all__ = [
    "GRID",
    "MOST_CELLS",
    "TAILS",
    "Ball",
    "Number",
    "at_most",
    "ball",
    "bernoulli",
    "bernoulli_exp",
    "contrasts",
    "cube_noises",
    "discrete_laplace",
    "exponential_choice",
    "family_tail",
    "first_enough",
    "fit",
    "float_down",
    "float_up",
    "gaussian_tail",
    "halved",
    "keep_at_least",
    "keep_probability",
    "laplace_tail",
    "permute_and_flip",
    "positive",
    "precision",
    "randomized_response",
    "rational",
    "root_up",
    "round_down",
    "rounded_contrasts",
    "rounded_gaussian",
    "rounded_laplace",
    "rounded_reach",
    "shared_gaussian",
    "shifted_gaussian",
    "shifted_laplace",
    "smallest_float",
    "smallest_integer",
    "solve",
    "tail_of",
    "truncated_geometric_keep",
    "uniform_ball",
    "uniform_index",
    "upper",
    "whole",
    "window_noise",
    "window_noises",
    "window_tail",
]
