"""The price of a release, its division over totals, and the noise that each part buys."""

from dpframe.release.pricing.allocation import (
    Allocation,
    PricedTotal,
    allocate_epsilon,
    allocate_rho,
    log_noise,
    moved_totals,
    parts_of,
    planned,
)
from dpframe.release.pricing.kinds import NoiseKind
from dpframe.release.pricing.levels import level_variances, log_noise_of_levels
from dpframe.release.pricing.mechanisms import (
    UNNAMED,
    AddsNoise,
    Chooses,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianRounds,
    Laplace,
    Mechanism,
    NoNoise,
    PairedLaplace,
    TableRounds,
    TruncatedGeometric,
)
from dpframe.release.pricing.noise import Noise, NoisePlan
from dpframe.release.pricing.price import (
    EpsilonFromRho,
    EpsilonPrice,
    Price,
    RhoPrice,
    described_price,
    read_noise,
    read_price,
)
from dpframe.release.pricing.shared_noise import Elliptic, KNorm, check_shared

__all__ = [
    "UNNAMED",
    "AddsNoise",
    "Allocation",
    "Chooses",
    "DiscreteLaplace",
    "Elliptic",
    "EpsilonFromRho",
    "EpsilonPrice",
    "Exponential",
    "Gaussian",
    "GaussianRounds",
    "KNorm",
    "Laplace",
    "Mechanism",
    "NoNoise",
    "Noise",
    "NoiseKind",
    "NoisePlan",
    "PairedLaplace",
    "Price",
    "PricedTotal",
    "RhoPrice",
    "TableRounds",
    "TruncatedGeometric",
    "allocate_epsilon",
    "allocate_rho",
    "check_shared",
    "described_price",
    "level_variances",
    "log_noise",
    "log_noise_of_levels",
    "moved_totals",
    "parts_of",
    "planned",
    "read_noise",
    "read_price",
]
