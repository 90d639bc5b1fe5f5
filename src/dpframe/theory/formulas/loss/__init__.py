"""What noise costs and what a price buys: privacy loss, calibration, composition, selection of keys and quantiles."""

from dpframe.theory.formulas.loss.calibration import (
    gaussian_scale,
    gaussian_scale_rho,
    laplace_scale,
    rho_within,
    rounded_error,
    threshold,
)
from dpframe.theory.formulas.loss.composition import (
    amplification_by_sampling,
    basic_composition,
    composition_delta,
    composition_epsilon,
    group_privacy,
    group_privacy_rho,
)
from dpframe.theory.formulas.loss.key_selection import (
    as_likely_as_not,
    rest_scale,
    selection_scale,
    selection_start,
    threshold_beside_noise,
)
from dpframe.theory.formulas.loss.laplace import (
    discrete_laplace_delta,
    discrete_laplace_renyi,
    laplace_delta,
    laplace_renyi,
)
from dpframe.theory.formulas.loss.loss import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from dpframe.theory.formulas.loss.quantile_selection import (
    PRIOR,
    choices_rho,
    count_scale,
    count_scale_rho,
    fewer_rows,
    rank_prior,
    rank_scale,
    rank_scale_rho,
    rank_terms,
)

__all__ = [
    "PRIOR",
    "amplification_by_sampling",
    "as_likely_as_not",
    "basic_composition",
    "choices_rho",
    "composition_delta",
    "composition_epsilon",
    "count_scale",
    "count_scale_rho",
    "discrete_laplace_delta",
    "discrete_laplace_renyi",
    "fewer_rows",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_scale",
    "gaussian_scale_rho",
    "group_privacy",
    "group_privacy_rho",
    "laplace_delta",
    "laplace_renyi",
    "laplace_scale",
    "rank_prior",
    "rank_scale",
    "rank_scale_rho",
    "rank_terms",
    "rest_scale",
    "rho_within",
    "rounded_error",
    "selection_scale",
    "selection_start",
    "threshold",
    "threshold_beside_noise",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]
