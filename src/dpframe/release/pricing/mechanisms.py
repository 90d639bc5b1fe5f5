"""The mechanisms: each adds random noise to a total, or chooses at random, at a scale.

A mechanism is a value. It computes its own error and its cost in ρ, and draws itself. Its name is
only a label for tables. Scales, deviations and errors are in units of the total's integer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpframe.arrays import Floats, WideIntegers
from dpframe.errors import UnsupportedOperation
from dpframe.noise import (
    discrete_laplace,
    rounded_gaussian,
    rounded_laplace,
)
from dpframe.theory.formulas.error import laplaces_error, laplaces_tail
from dpframe.theory.formulas.loss import (
    Family,
    Spread,
    laplace_rho,
    noise_error,
    partition_threshold,
    pure_to_gdp,
    pure_to_zcdp,
)
from dpframe.theory.formulas.sensitivity import Sensitivity, paired_error
from dpframe.theory.formulas.sensitivity import rounding as paired_rounding

Event = dict[str, Any]
Parameters = Mapping[str, Fraction | int | tuple[int, ...]]
NO_EVENT: Event = {"class_name": "NoOpDpEvent", "fields": {}}
UNNAMED: Event = {"class_name": "UnsupportedDpEvent", "fields": {}}


def gaussian_event(multiplier: float) -> Event:
    """The event of a Gaussian mechanism. Input: its scale divided by the l2 sensitivity."""
    return {"class_name": "GaussianDpEvent", "fields": {"noise_multiplier": multiplier}}


@dataclass(frozen=True)
class Mechanism(ABC):
    """A mechanism with its scale.

    `label` is its name in tables, and `law` that of its random numbers in a certificate. `exact`
    says that it is no noise at all, `paired` that a sum and a count are measured together, `joined`
    that a number follows from these, and `together` that several totals have one noise.
    """

    scale: float

    label: ClassVar[str]
    law: ClassVar[str]
    exact: ClassVar[bool] = False
    paired: ClassVar[bool] = False
    joined: ClassVar[bool] = False
    together: ClassVar[bool] = False

    @property
    def deviation(self) -> float:
        """Standard deviation before rounding; of a choice, that of Laplace noise of its scale."""
        return math.sqrt(2) * self.scale

    @property
    def parameters(self) -> Parameters:
        """Parameters of the law for a certificate, besides its name, exact."""
        return {"scale": Fraction(self.scale)}

    def epsilon(self, bound: Sensitivity) -> Fraction | None:
        """The pure ε of one number with this sensitivity, exact;
        None where there is none, or it is not known here.
        """
        return None

    @property
    def apart(self) -> float:
        """Variance of the difference of two groups' noises, over that of independent ones."""
        return 1.0

    def error(self, alpha: float, per: int = 1) -> float:
        """An error that the noise exceeds with probability at most alpha; NaN for a choice.

        Input:  per: units to a row, of a count with fraction bits that is rounded to rows after the
                noise
        Output: in units of the total's integer; with `per` in rows
        """
        return math.nan

    def length(self, bound: Sensitivity) -> float:
        """The sensitivity to which the scale is proportional at a given price."""
        return float(bound.l1)

    def rule(self, delta: Fraction, spread: Spread) -> tuple[int, Fraction | None]:
        """The threshold T for keys found in the data that costs at most delta, and
        the `start` of the optimal rule.

        Input:  spread: numbers of one unit in groups where it is alone
        """
        raise UnsupportedOperation(f"{self.label}: it finds no keys.")

    def rho(self, bound: Sensitivity) -> Fraction:
        """The cost in ρ on a total: at most ε·tanh(ε/2), that of any mechanism of its ε.

        Source: `theory.formulas.loss.loss.pure_to_zcdp`
        Errors: UnsupportedOperation if it is unknown
        """
        epsilon = self.epsilon(bound)
        if epsilon is None:
            raise UnsupportedOperation(
                f"{self.label}: what it costs in ρ is not known from its scale; use a budget in ε."
            )
        return Fraction(pure_to_zcdp(epsilon)) if epsilon else Fraction(0)

    def mu_squared(self, bound: Sensitivity) -> Fraction | None:
        """μ² of Gaussian privacy on a total, as for any mechanism of its ε; None if unknown."""
        epsilon = self.epsilon(bound)
        return pure_to_gdp(epsilon) if epsilon else epsilon

    def event(self, bound: Sensitivity) -> Event:
        """The mechanism in the words of dp-accounting; unsupported if it has no name there."""
        return UNNAMED


@dataclass(frozen=True)
class AddsNoise(Mechanism):
    """A mechanism that adds noise to a number.

    `spread` is the standard deviation of its real noise at scale 1. `rounding` is how far rounding
    to whole numbers moves that noise at most; it is 0 for a law on the integers.

    Intervals of statistics of several noisy totals ask for its `normals` and `laplaces`, never for
    its class. `discrete` says that it is discrete Laplace noise, of which sums have a law that is
    computed exactly.
    """

    family: ClassVar[Family]  # of its tail
    spread: ClassVar[float]
    rounding: ClassVar[float] = 0.5
    discrete: ClassVar[bool] = False

    @property
    @abstractmethod
    def laplaces(self) -> tuple[float, ...]:
        """Scales of Laplace noises that, with `normals`, have at least the tails of the noise."""

    @property
    def normals(self) -> tuple[float, ...]:
        """Standard deviations of independent normal noises; see `laplaces`."""
        return ()

    @property
    def normal(self) -> bool:
        """Whether it is normal noise: then weighted sums are normal, and costs add by squares."""
        return bool(self.normals)

    @property
    def deviation(self) -> float:
        """Standard deviation of the real noise, before it is rounded."""
        return self.spread * self.scale

    @property
    def step(self) -> float:
        """Largest move of the real noise by rounding."""
        return self.rounding

    @property
    def moved(self) -> float:
        """Largest distance of a drawn noise from real noise of `normals` and `laplaces`."""
        return self.step

    def error(self, alpha: float, per: int = 1) -> float:
        return float(noise_error(self.family, self.scale, alpha, per=per))

    @property
    def variance(self) -> float:
        """Variance of the drawn noise, at most: the real noise's, and a quarter for rounding."""
        return self.deviation**2 + self.step**2

    def rule(self, delta: Fraction, spread: Spread) -> tuple[int, Fraction | None]:
        return partition_threshold(delta, spread, self.family, self.scale), None

    def simulated(
        self, draw: np.random.Generator, shape: tuple[int, ...], deviation: float
    ) -> Floats:
        """Real noise with a standard deviation, not secret: it simulates, and protects nobody."""
        if self.normal:
            return np.asarray(deviation * draw.normal(size=shape))
        return np.asarray(deviation / np.sqrt(2) * draw.laplace(size=shape))

    def simulated_whole(
        self, draw: np.random.Generator, shape: tuple[int, ...], deviation: float
    ) -> Floats:
        """Simulated noise in rows, rounded to whole rows as released counts are."""
        return np.asarray(np.rint(self.simulated(draw, shape, deviation)))

    @abstractmethod
    def draw(self, size: int) -> WideIntegers:
        """Fresh noise for `size` groups, as integers."""

    @abstractmethod
    def tail(self, reach: float) -> float:
        """P[noise >= reach], for the real noise."""


@dataclass(frozen=True)
class NoNoise(AddsNoise):
    """No noise: no unit can change the total."""

    scale: float = 0.0

    label = law = "none"
    exact = True
    laplaces = ()
    spread = 0.0
    rounding = 0.0

    @property
    def parameters(self) -> Parameters:
        """Those of noise of scale 1: no certificate has a scale of 0, nothing follows from it."""
        return {"scale": Fraction(1)}

    def error(self, alpha: float, per: int = 1) -> float:
        return 0.0

    def draw(self, size: int) -> WideIntegers:
        return np.zeros(size, np.int64)

    def simulated_whole(
        self, draw: np.random.Generator, shape: tuple[int, ...], deviation: float
    ) -> Floats:
        return np.zeros(shape)

    def tail(self, reach: float) -> float:
        return float(reach <= 0)

    def epsilon(self, bound: Sensitivity) -> Fraction:
        return Fraction(0)

    def event(self, bound: Sensitivity) -> Event:
        return NO_EVENT


@dataclass(frozen=True)
class LaplaceNoise(AddsNoise):
    """Noise made of Laplace noises of its scale: real or discrete, one or the sum of two."""

    @property
    def laplaces(self) -> tuple[float, ...]:
        return (self.scale,)

    def tail(self, reach: float) -> float:
        """The tail of one real Laplace noise."""
        ratio = reach / self.scale
        return math.exp(-ratio) / 2 if ratio > 0 else 1 - math.exp(ratio) / 2

    def epsilon(self, bound: Sensitivity) -> Fraction:
        return bound.exact_l1 / Fraction(self.scale)


@dataclass(frozen=True)
class Laplace(LaplaceNoise):
    """Real Laplace noise, rounded: ε = l1 / scale."""

    label = law = family = "laplace"
    spread = math.sqrt(2)

    def draw(self, size: int) -> WideIntegers:
        return rounded_laplace(self.scale, size)

    def rho(self, bound: Sensitivity) -> Fraction:
        """ε + e^-ε - 1 with ε = l1 / scale. Source: `theory.formulas.loss.loss.laplace_rho`."""
        return Fraction(laplace_rho(bound.exact_l1, Fraction(self.scale)))

    def event(self, bound: Sensitivity) -> Event:
        noise = float(Fraction(self.scale) / bound.exact_l1)
        return {"class_name": "LaplaceDpEvent", "fields": {"noise_multiplier": noise}}


@dataclass(frozen=True)
class DiscreteLaplace(LaplaceNoise):
    """Two-sided geometric noise: the least noise for counts at a pure ε = l1 / scale."""

    label = law = family = "discrete_laplace"
    spread = math.sqrt(2)
    rounding = 0.0
    discrete = True

    @property
    def moved(self) -> float:
        """1: it is the difference of the floors of two exponential numbers."""
        return 1.0

    @property
    def variance(self) -> float:
        """Of the law on the integers: 2a / (1 - a)² with a = e^(-1/scale)."""
        return 2 * math.exp(-1 / self.scale) / math.expm1(-1 / self.scale) ** 2

    def draw(self, size: int) -> WideIntegers:
        return discrete_laplace(self.scale, size)

    def simulated_whole(
        self, draw: np.random.Generator, shape: tuple[int, ...], deviation: float
    ) -> Floats:
        chance = -np.expm1(-1 / self.scale)
        return (draw.geometric(chance, shape) - draw.geometric(chance, shape)).astype(np.float64)

    def event(self, bound: Sensitivity) -> Event:
        fields = {
            "noise_parameter": float(1 / Fraction(self.scale)),
            "sensitivity": int(bound.exact_l1),
        }
        return {"class_name": "DiscreteLaplaceDpEvent", "fields": fields}


@dataclass(frozen=True)
class PairedLaplace(LaplaceNoise):
    """The noise of a sum or of the count beside it, which are measured as a pair.

    On each of them it is the sum of two independent Laplace noises of this scale; both share the
    two noises. `weight` is the weight of the count, and 1 for the sum. See
    `theory.formulas.sensitivity.pairs`.
    """

    weight: int = 1
    of_count: bool = False
    # l1 of the sum, the count and the number of rows, if they are measured together
    joint: Fraction = Fraction(0)

    label = "paired_laplace"
    law = "laplace"
    paired = True
    spread = 2.0

    def epsilon(self, bound: Sensitivity) -> Fraction:
        """That of all that is measured together, for the sum; see `event`."""
        return (
            Fraction(0) if self.of_count else (self.joint or bound.exact_l1) / Fraction(self.scale)
        )

    @property
    def laplaces(self) -> tuple[float, ...]:
        return self.scale, self.scale

    @property
    def step(self) -> float:
        return paired_rounding(self.weight)

    def error(self, alpha: float, per: int = 1) -> float:
        return float(paired_error(self.scale, alpha, weight=self.weight, per=per))

    def draw(self, size: int) -> WideIntegers:
        """Noise for weight · count + sum, or for weight · count - sum: twice the scale on each."""
        return rounded_laplace(2 * self.scale, size)

    def event(self, bound: Sensitivity) -> Event:
        """One event, on the sum, is for both: twice l1 over twice the scale.
        The count has no event of its own.
        """
        if self.of_count:
            return NO_EVENT
        noise = float(Fraction(self.scale) / (self.joint or bound.exact_l1))
        return {"class_name": "LaplaceDpEvent", "fields": {"noise_multiplier": noise}}


@dataclass(frozen=True)
class JointLaplace(LaplaceNoise):
    """The noise of a number that follows from a pair and other numbers measured with it.

    It is the sum of independent Laplace noises of these `ratios` of the scale. `slack` is the
    largest move of that sum by rounding. The events of what it follows from are on the sum of the
    pair.
    """

    ratios: tuple[float, ...] = (1.0,)
    slack: float = 0.5

    label = "joint_laplace"
    law = "laplace"
    joined = True

    @property
    def laplaces(self) -> tuple[float, ...]:
        return tuple(self.scale * ratio for ratio in self.ratios)

    @property
    def deviation(self) -> float:
        return math.sqrt(2) * math.hypot(*self.laplaces)

    @property
    def step(self) -> float:
        return self.slack

    def tail(self, reach: float) -> float:
        return 1 - self.tail(-reach) if reach < 0 else laplaces_tail(self.laplaces, reach)

    def error(self, alpha: float, per: int = 1) -> float:
        return float(laplaces_error(self.laplaces, alpha, self.slack, per=per))

    def draw(self, size: int) -> WideIntegers:
        raise UnsupportedOperation(f"{self.label}: it is drawn with the pair that it follows from.")

    def epsilon(self, bound: Sensitivity) -> Fraction:
        return Fraction(0)

    def event(self, bound: Sensitivity) -> Event:
        return NO_EVENT


@dataclass(frozen=True)
class Gaussian(AddsNoise):
    """Real Gaussian noise, rounded; the scale is its standard deviation σ."""

    label: ClassVar[str] = "gaussian"
    law: ClassVar[str] = "gaussian"
    family = "gaussian"
    laplaces = ()
    spread = 1.0

    @property
    def normals(self) -> tuple[float, ...]:
        return (self.scale,)

    def length(self, bound: Sensitivity) -> float:
        return float(bound.l2)

    def draw(self, size: int) -> WideIntegers:
        return rounded_gaussian(self.scale, size)

    def rho(self, bound: Sensitivity) -> Fraction:
        """l2² / 2σ², exact."""
        return bound.l2_squared / (2 * Fraction(self.scale) ** 2)

    def mu_squared(self, bound: Sensitivity) -> Fraction:
        """2ρ: it is exactly a Gaussian mechanism, since real noise is rounded afterwards."""
        return 2 * self.rho(bound)

    def event(self, bound: Sensitivity) -> Event:
        return gaussian_event(float(Fraction(self.scale)) / bound.l2)

    def tail(self, reach: float) -> float:
        return math.erfc(reach / self.scale / math.sqrt(2)) / 2
