"""Checks: divergences, brute force over small universes, and plots, which
hold a claim against the truth.
"""

from dpframe.theory.checks.brute_force import (
    TableQuery,
    distances,
    empirical_sensitivity,
)
from dpframe.theory.checks.divergence import (
    event_mass,
    hockey_stick_divergence,
    max_divergence,
    renyi_divergence,
)
from dpframe.theory.checks.plots import (
    histograms,
)
from dpframe.theory.checks.universes import (
    Counts,
    Universe,
)

__all__ = [
    "Counts",
    "TableQuery",
    "Universe",
    "distances",
    "empirical_sensitivity",
    "event_mass",
    "histograms",
    "hockey_stick_divergence",
    "max_divergence",
    "renyi_divergence",
]
