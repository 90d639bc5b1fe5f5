"""Prices and the noise that they buy, as tests type them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.budget import Terms
from dpframe.release.kinds import answer_kind
from dpframe.release.pricing import EpsilonPrice as Price
from dpframe.release.pricing import NoiseKind, NoisePlan, RhoPrice, read_noise
from dpframe.release.pricing import read_price as read

__all__ = ["Price", "noise_plan", "offer", "priced", "read_price"]


def read_price(epsilon: Any, delta: Any) -> Any:
    """A price in ε and δ."""
    return read(Terms.EPSILON, epsilon=epsilon, delta=delta)


def offer(terms: str, amount: Fraction, delta: Fraction, noise: str) -> Any:
    """A price in ε or ρ."""
    return {"epsilon": Price, "rho": RhoPrice}[terms](amount, delta, NoiseKind(noise))


def noise_plan(ask: Any, price: Any, noise: str = "auto") -> NoisePlan:
    """What a price buys of a kind of noise."""
    return answer_kind(ask).noise(ask, replace(price, noise=read_noise(noise)))


def priced(ask: Any, terms: str, **price: Any) -> NoisePlan:
    """What a typed price buys from a budget in these terms."""
    return answer_kind(ask).noise(ask, read(Terms(terms), **price))
