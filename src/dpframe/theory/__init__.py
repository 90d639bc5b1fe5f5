"""Differential privacy as domains, metrics, measures and maps between
them, and the formulas behind it.

    import dpframe.theory as t

    space = t.VectorDomain(t.AtomDomain(T=int)), t.SymmetricDistance()
    clamp = t.clamp(*space, bounds=(0, 12))
    total = t.sum(*clamp.output_space)
    noisy = clamp >> total >> t.laplace(*total.output_space, scale=25.0)
    noisy.map(1)                 # 0.48: what one record more or less costs
    noisy([12, 10, 8, 7])        # one draw

A `Transformation` or `Measurement` makes a promise: if two inputs are at most d_in apart, their
outputs are at most `map(d_in)` apart. `max_divergence` and `empirical_sensitivity` compute the true
distance, which tests a promise; `plots` draws it.

Which part calls which:

- `formulas` holds each formula once: how far one unit moves a total, what noise costs, how far off
  a number may be. Protected dataframes call these formulas and nothing else of `dpframe.theory`. A
  question about a dataframe builds no `Transformation` and no `Measurement`; the proofs of its
  steps are in `dpframe.plan`. `from_certificate` builds both from the certificate of a release, and
  its map is a second derivation of what was charged.
- The framework is everything else: spaces, transformations, measurements, combinators, and searches
  over them. It is for analyses that are written as maps, and for learning. It calls the formulas
  too.
- Both call four kinds of formulas: the ρ of Laplace noise, the conversion from ρ to ε, thresholds,
  and the error that noise causes. Only the framework calls the formulas of whole vectors
  (`formulas.sensitivity.vectors`) and the profiles of Laplace noise (`formulas.loss.curves`). Only
  dataframes call the formulas of rows and units in groups (`formulas.sensitivity.grouped`), of
  selections by the exponential mechanism, of keys that are read from the data, and of marginals.
- `checks` compares both with true distances, which it computes by enumeration. `dpframe.audit` uses
  these enumerations for dataframes.

A mistake in a map of the framework therefore does not affect a release of a dataframe. A mistake in
a formula that both call affects both.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from dpframe.theory.calls import unknown_name as _unknown_name
from dpframe.theory.certificates import from_certificate
from dpframe.theory.checks import (
    TableQuery,
    empirical_sensitivity,
    event_mass,
    hockey_stick_divergence,
    max_divergence,
    plots,
    renyi_divergence,
)
from dpframe.theory.combinators import (
    Odometer,
    Queryable,
    compose,
    fix_delta,
    odometer,
    parallel,
    privacy_filter,
    pure_to_approx,
    pure_to_zcdp,
    zcdp_to_approx,
)
from dpframe.theory.exact import Joint
from dpframe.theory.formulas.loss import (
    discrete_laplace_delta,
    discrete_laplace_renyi,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_scale,
    gaussian_scale_rho,
    laplace_delta,
    laplace_renyi,
    laplace_scale,
    rho_within,
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
    noisy_top_k,
    randomized_response,
)
from dpframe.theory.search import binary_search, binary_search_param
from dpframe.theory.spaces import (
    AbsoluteDistance,
    Approximate,
    AtomDomain,
    ChangeOneDistance,
    DiscreteDistance,
    Domain,
    ExchangedUnitDistance,
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
    UnitDistance,
    VectorDomain,
    ZeroConcentratedDivergence,
)
from dpframe.theory.transformations import (
    cast,
    clamp,
    count,
    count_by,
    histogram,
    impute,
    mean,
    resize,
    sum,
    variance,
)

__all__ = [
    "AbsoluteDistance",
    "Approximate",
    "AtomDomain",
    "ChangeOneDistance",
    "DiscreteDistance",
    "Domain",
    "ExchangedUnitDistance",
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
    "Odometer",
    "PrivacyProfile",
    "Queryable",
    "RenyiCurve",
    "RenyiDivergence",
    "SmoothedMaxDivergence",
    "SymmetricDistance",
    "TableQuery",
    "Transformation",
    "TupleDomain",
    "UnitDistance",
    "VectorDomain",
    "ZeroConcentratedDivergence",
    "binary_search",
    "binary_search_param",
    "cast",
    "clamp",
    "compose",
    "count",
    "count_by",
    "discrete_laplace_delta",
    "discrete_laplace_renyi",
    "empirical_sensitivity",
    "event_mass",
    "fix_delta",
    "from_certificate",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_scale",
    "gaussian_scale_rho",
    "gaussian_threshold",
    "histogram",
    "hockey_stick_divergence",
    "impute",
    "laplace",
    "laplace_delta",
    "laplace_renyi",
    "laplace_scale",
    "laplace_threshold",
    "max_divergence",
    "mean",
    "noisy_max",
    "noisy_top_k",
    "odometer",
    "parallel",
    "plots",
    "privacy_filter",
    "pure_to_approx",
    "pure_to_zcdp",
    "randomized_response",
    "renyi_divergence",
    "resize",
    "rho_within",
    "sum",
    "threshold",
    "variance",
    "zcdp_to_approx",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Answer a name of another library, or a misspelt name, with the name to type."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(_unknown_name(name, __all__))
