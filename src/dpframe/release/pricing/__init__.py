"""The price of a release, its division over totals, and the noise that each part buys."""

from dpframe.release.pricing.allocation import (
    Allocation,
    delta_of_keys,
    log_noise,
    moved_totals,
    parts_of,
    planned,
)
from dpframe.release.pricing.choice_mechanisms import Exponential, TruncatedGeometric
from dpframe.release.pricing.joint_noise import JointNoise, simulated
from dpframe.release.pricing.keys import spread_of
from dpframe.release.pricing.mechanisms import (
    UNNAMED,
    AddsNoise,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Mechanism,
    NoNoise,
    Parameters,
)
from dpframe.release.pricing.noise import Fitted, Noise, NoiseKind, NoisePlan, Rule
from dpframe.release.pricing.price import (
    EpsilonFromRho,
    EpsilonPrice,
    GaussianPrice,
    Price,
    RhoPrice,
    described_price,
    is_list,
    paid_price,
    read_noise,
    read_price,
    read_prices,
)
from dpframe.release.pricing.shared_noise import (
    KNorm,
    check_shared,
    may_share,
    shared_part,
)

__all__ = [
    "UNNAMED",
    "AddsNoise",
    "Allocation",
    "DiscreteLaplace",
    "EpsilonFromRho",
    "EpsilonPrice",
    "Event",
    "Exponential",
    "Fitted",
    "Gaussian",
    "GaussianPrice",
    "JointNoise",
    "KNorm",
    "Laplace",
    "Mechanism",
    "NoNoise",
    "Noise",
    "NoiseKind",
    "NoisePlan",
    "Parameters",
    "Price",
    "RhoPrice",
    "Rule",
    "TruncatedGeometric",
    "check_shared",
    "delta_of_keys",
    "described_price",
    "is_list",
    "log_noise",
    "may_share",
    "moved_totals",
    "paid_price",
    "parts_of",
    "planned",
    "read_noise",
    "read_price",
    "read_prices",
    "shared_part",
    "simulated",
    "spread_of",
]
