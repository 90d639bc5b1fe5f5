"""The price of a release, its division over totals, and the noise that each part buys."""

from dpframe.release.pricing.allocation import (
    Allocation,
    NoiseKind,
    PricedTotal,
    allocate_epsilon,
    allocate_rho,
    log_noise,
    moved_totals,
    parts_of,
    planned,
)
from dpframe.release.pricing.mechanisms import (
    UNNAMED,
    AddsNoise,
    Chooses,
    DiscreteLaplace,
    Gaussian,
    Mechanism,
    NoNoise,
    PairedLaplace,
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

__all__ = [
    "UNNAMED",
    "AddsNoise",
    "Allocation",
    "Chooses",
    "DiscreteLaplace",
    "EpsilonFromRho",
    "EpsilonPrice",
    "Gaussian",
    "Mechanism",
    "NoNoise",
    "Noise",
    "NoiseKind",
    "NoisePlan",
    "PairedLaplace",
    "Price",
    "PricedTotal",
    "RhoPrice",
    "TruncatedGeometric",
    "allocate_epsilon",
    "allocate_rho",
    "described_price",
    "log_noise",
    "moved_totals",
    "parts_of",
    "planned",
    "read_noise",
    "read_price",
]
