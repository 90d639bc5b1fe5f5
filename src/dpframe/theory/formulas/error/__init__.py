"""Errors of released numbers: sums of noises, margins, selections, quantiles, marginals."""

from dpframe.theory.formulas.error.margin_estimates import (
    Source,
    chernoff_error,
    estimators,
    fitted,
    margin_shares,
    sum_error,
)
from dpframe.theory.formulas.error.marginals import (
    Attributes,
    cell_variance,
    interaction,
    marginal,
    rounding_reach,
    shares,
)
from dpframe.theory.formulas.error.noisy_variance import (
    variance_allowance,
)
from dpframe.theory.formulas.error.quantile_interval import (
    choice_error,
    distances,
    margin,
)
from dpframe.theory.formulas.error.shrinkage import (
    average_critical,
    group_spread,
    safe_moves,
    shrunk_differences,
)
from dpframe.theory.formulas.error.sums import (
    error_of_tail,
    gaussian_sum_reaches,
    laplace_sum_reaches,
    laplace_total_error,
    laplaces_error,
    laplaces_tail,
    log_concave_error,
    mixed_normal_error,
    mixed_normal_reaches,
    normal_error,
    normal_laplace_reaches,
    unimodal_error,
    whole_total_error,
)

__all__ = [
    "Attributes",
    "Source",
    "average_critical",
    "cell_variance",
    "chernoff_error",
    "choice_error",
    "distances",
    "error_of_tail",
    "estimators",
    "fitted",
    "gaussian_sum_reaches",
    "group_spread",
    "interaction",
    "laplace_sum_reaches",
    "laplace_total_error",
    "laplaces_error",
    "laplaces_tail",
    "log_concave_error",
    "margin",
    "margin_shares",
    "marginal",
    "mixed_normal_error",
    "mixed_normal_reaches",
    "normal_error",
    "normal_laplace_reaches",
    "rounding_reach",
    "safe_moves",
    "shares",
    "shrunk_differences",
    "sum_error",
    "unimodal_error",
    "variance_allowance",
    "whole_total_error",
]
