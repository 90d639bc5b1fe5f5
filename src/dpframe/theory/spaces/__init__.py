"""Where values live and how they are compared: domains, metrics between values, and privacy measures."""

from dpframe.theory.spaces.domains import (
    AtomDomain,
    Domain,
    MapDomain,
    TupleDomain,
    VectorDomain,
)
from dpframe.theory.spaces.lengths import (
    AbsoluteDistance,
    L01InfDistance,
    L02InfDistance,
    L1Distance,
    L2Distance,
    LinfDistance,
)
from dpframe.theory.spaces.measures import (
    Approximate,
    MaxDivergence,
    Measure,
    RenyiCurve,
    RenyiDivergence,
    SmoothedMaxDivergence,
    ZeroConcentratedDivergence,
)
from dpframe.theory.spaces.metrics import (
    ChangeOneDistance,
    DiscreteDistance,
    HammingDistance,
    InsertDeleteDistance,
    Metric,
    PairDistance,
    SymmetricDistance,
    UnitDistance,
)
from dpframe.theory.spaces.profiles import (
    PrivacyProfile,
    gaussian_profile,
    grouped,
    probability,
)

__all__ = [
    "AbsoluteDistance",
    "Approximate",
    "AtomDomain",
    "ChangeOneDistance",
    "DiscreteDistance",
    "Domain",
    "HammingDistance",
    "InsertDeleteDistance",
    "L01InfDistance",
    "L02InfDistance",
    "L1Distance",
    "L2Distance",
    "LinfDistance",
    "MapDomain",
    "MaxDivergence",
    "Measure",
    "Metric",
    "PairDistance",
    "PrivacyProfile",
    "RenyiCurve",
    "RenyiDivergence",
    "SmoothedMaxDivergence",
    "SymmetricDistance",
    "TupleDomain",
    "UnitDistance",
    "VectorDomain",
    "ZeroConcentratedDivergence",
    "gaussian_profile",
    "grouped",
    "probability",
]
