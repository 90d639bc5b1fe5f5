"""The framework that dpframe stands on, usable on its own: domains, metrics, measures, and maps between them.

    import dpframe.theory as t

    space = t.VectorDomain(t.AtomDomain(T=int)), t.SymmetricDistance()
    clamp = t.clamp(*space, bounds=(0, 12))
    total = t.sum(*clamp.output_space)
    noisy = clamp >> total >> t.laplace(*total.output_space, scale=25.0)
    noisy.map(1)                 # 0.48: what one record more or less costs
    noisy([12, 10, 8, 7])        # one draw

A `Transformation` or `Measurement` promises that inputs within d_in have outputs within `map(d_in)`. Lower down:
`max_divergence` and `empirical_sensitivity` measure what a map promises, and `plots` draws it; `laplace_error` and its
like say how far off a release may be.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from dpframe.theory.accuracy import gaussian_error, gaussian_scale_for_error, laplace_error, laplace_scale_for_error
from dpframe.theory.calls import unknown_name as _unknown_name
from dpframe.theory.checks import (
    TableQuery,
    empirical_sensitivity,
    hockey_stick_divergence,
    max_divergence,
    plots,
    renyi_divergence,
)
from dpframe.theory.combinators import (
    compose,
    fix_delta,
    optimal_compose,
    parallel,
    pure_to_approx,
    pure_to_zcdp,
    sample,
    zcdp_to_approx,
)
from dpframe.theory.exact import Joint
from dpframe.theory.formulas.loss import (
    amplification_by_sampling,
    basic_composition,
    composition_delta,
    composition_epsilon,
    discrete_laplace_delta,
    discrete_laplace_renyi,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_scale,
    gaussian_scale_rho,
    group_privacy,
    group_privacy_rho,
    laplace_delta,
    laplace_renyi,
    laplace_scale,
    threshold,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from dpframe.theory.framework import Measurement, Transformation
from dpframe.theory.measurements import (
    gaussian,
    gaussian_threshold,
    laplace,
    laplace_threshold,
    noisy_max,
    randomized_response,
)
from dpframe.theory.search import binary_search, binary_search_chain, binary_search_param
from dpframe.theory.spaces import (
    AbsoluteDistance,
    Approximate,
    AtomDomain,
    ChangeOneDistance,
    DiscreteDistance,
    Domain,
    HammingDistance,
    InsertDeleteDistance,
    L01InfDistance,
    L02InfDistance,
    L1Distance,
    L2Distance,
    LinfDistance,
    MapDomain,
    MaxDivergence,
    Measure,
    Metric,
    PrivacyProfile,
    RenyiCurve,
    RenyiDivergence,
    SmoothedMaxDivergence,
    SymmetricDistance,
    TupleDomain,
    VectorDomain,
    ZeroConcentratedDivergence,
)
from dpframe.theory.transformations import cast, clamp, count, count_by, histogram, impute, mean, resize, sum, variance

__all__ = [
    "AbsoluteDistance",
    "Approximate",
    "AtomDomain",
    "ChangeOneDistance",
    "DiscreteDistance",
    "Domain",
    "HammingDistance",
    "InsertDeleteDistance",
    "Joint",
    "L01InfDistance",
    "L02InfDistance",
    "L1Distance",
    "L2Distance",
    "LinfDistance",
    "MapDomain",
    "MaxDivergence",
    "Measure",
    "Measurement",
    "Metric",
    "PrivacyProfile",
    "RenyiCurve",
    "RenyiDivergence",
    "SmoothedMaxDivergence",
    "SymmetricDistance",
    "TableQuery",
    "Transformation",
    "TupleDomain",
    "VectorDomain",
    "ZeroConcentratedDivergence",
    "amplification_by_sampling",
    "basic_composition",
    "binary_search",
    "binary_search_chain",
    "binary_search_param",
    "cast",
    "clamp",
    "compose",
    "composition_delta",
    "composition_epsilon",
    "count",
    "count_by",
    "discrete_laplace_delta",
    "discrete_laplace_renyi",
    "empirical_sensitivity",
    "fix_delta",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_error",
    "gaussian_scale",
    "gaussian_scale_for_error",
    "gaussian_scale_rho",
    "gaussian_threshold",
    "group_privacy",
    "group_privacy_rho",
    "histogram",
    "hockey_stick_divergence",
    "impute",
    "laplace",
    "laplace_delta",
    "laplace_error",
    "laplace_renyi",
    "laplace_scale",
    "laplace_scale_for_error",
    "laplace_threshold",
    "max_divergence",
    "mean",
    "noisy_max",
    "optimal_compose",
    "parallel",
    "plots",
    "pure_to_approx",
    "pure_to_zcdp",
    "randomized_response",
    "renyi_divergence",
    "resize",
    "sample",
    "sum",
    "threshold",
    "variance",
    "zcdp_to_approx",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Names of other libraries, and misspelt ones, say what to type."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(_unknown_name(name, __all__))
