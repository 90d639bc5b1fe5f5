"""One noise of a pure ε for totals of a group that one unit moves in step: K-norm noise.

See `theory.formulas.loss.joint_scale` for the privacy, and `dpframe.noise.correlated` for the laws.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpframe.arrays import Floats, WideIntegers
from dpframe.errors import UnsupportedOperation
from dpframe.noise import cube_noises, float_up, halved, window_noises
from dpframe.plan import Allotment
from dpframe.release.pricing.mechanisms import AddsNoise, Parameters
from dpframe.release.pricing.noise import Noise
from dpframe.theory.formulas.error import error_of_tail, mixed_normal_error
from dpframe.theory.formulas.loss import cube_tail_real, joint_scale, window_tail_real
from dpframe.theory.formulas.sensitivity import Sensitivity


@dataclass(frozen=True)
class JointNoise(AddsNoise):
    """The noise of one of several totals that share it.

    In each group, integers z are drawn at the scale `steps`, one for each of the totals, whose
    number is `cells`; this total gets its own divided by `factor`. The noise is known by the
    `first` name of the first total, on which all of its ε is `paid`. Of the random length, which
    has a Gamma law, each cell is a random part.
    """

    steps: float = 1.0
    factor: int = 1
    cells: int = 1
    first: str = ""
    paid: Fraction = Fraction(0)

    # b: the order of the length is that much larger than the number of cells, d
    beyond: ClassVar[int]
    spread: ClassVar[int]  # c: see `relative`
    together = True
    rounding = 0.501  # to whole numbers, and in the step of the noise before it is divided

    @property
    def laplaces(self) -> tuple[float, ...]:
        """It is no sum of independent noises: intervals ask for its `quantile`."""
        raise UnsupportedOperation(
            f"{self.label}: numbers share this noise, so it is not added up."
        )

    @property
    def order(self) -> int:
        """The order of the Gamma law of the length."""
        return self.cells + self.beyond

    @staticmethod
    @abstractmethod
    def drawn(scale: float, cells: int, size: int) -> WideIntegers:
        """Fresh noise of all totals, before it is divided: of shape (size, cells)."""

    @staticmethod
    @abstractmethod
    def cell_tail(cells: int, reach: float) -> float:
        """The tail of one cell of the law on the reals, at scale 1."""

    @property
    def deviation(self) -> float:
        return self.scale * self.relative(self.cells)

    @classmethod
    def relative(cls, cells: int) -> float:
        """The deviation of one cell on the reals, at scale 1: √((d + b)(d + b + 1) / c)."""
        return math.sqrt((cells + cls.beyond) * (cells + cls.beyond + 1) / cls.spread)

    def quantile(self, alpha: float) -> float:
        """The size, in deviations, that a weighted sum of cells exceeds with probability alpha.

        Bound:  the length has a Gamma law. Given it, the sum has a law between that of one cell and
                a normal one of its variance. The larger of both quantiles is that of the normal one
                for small alpha, and else of one cell
        """
        return _quantile(type(self), self.cells, self.order, alpha)

    def tail(self, reach: float) -> float:
        return self.cell_tail(self.cells, reach / self.scale)

    def error(self, alpha: float, per: int = 1) -> float:
        near = math.floor(self.scale * _cell_quantile(type(self), self.cells, alpha) / per)
        return float(error_of_tail(self._whole_tail, alpha, per=per, start=near))

    def _whole_tail(self, reach: int) -> float:
        """P[noise >= reach], for the noise that is added."""
        return self.tail(max(reach - self.rounding, 0.0))

    def draw(self, size: int) -> WideIntegers:
        raise UnsupportedOperation(f"{self.label}: it is drawn for several totals at once.")

    def epsilon(self, bound: Sensitivity) -> Fraction:
        """That of all totals together, for the first of them."""
        return self.paid

    @property
    def parameters(self) -> Parameters:
        return {"scale": Fraction(self.steps)}


@dataclass(frozen=True)
class WindowNoise(JointNoise):
    """Noise from one window for totals to which each unit adds numbers of one sign."""

    label = law = "window"
    beyond, spread = 2, 6
    cell_tail = staticmethod(window_tail_real)

    @staticmethod
    def drawn(scale: float, cells: int, size: int) -> WideIntegers:
        # looked up here, since a replay puts its own in this module
        return window_noises(scale, cells, size)


@dataclass(frozen=True)
class Cube(JointNoise):
    """Noise that is uniform in a random cube, for totals that a unit may move either way."""

    label = law = "cube"
    beyond, spread = 1, 3
    cell_tail = staticmethod(cube_tail_real)

    @staticmethod
    def drawn(scale: float, cells: int, size: int) -> WideIntegers:
        # looked up here, since a replay puts its own in this module
        return cube_noises(scale, cells, size)


@lru_cache(maxsize=256)
def _quantile(law: type[JointNoise], cells: int, order: int, alpha: float) -> float:
    return max(
        _cell_quantile(law, cells, alpha) / law.relative(cells), mixed_normal_error(order, alpha)
    )


@lru_cache(maxsize=256)
def _cell_quantile(law: type[JointNoise], cells: int, alpha: float) -> float:
    """The size that one cell exceeds with probability alpha, on the reals and at scale 1."""
    return halved(lambda x: 2 * law.cell_tail(cells, x) <= alpha, 0.0, 100.0 * (cells + 3))[1]


def joint_noises(
    members: Sequence[Allotment], epsilon: Fraction, *, one_signed: bool
) -> list[Noise]:
    """One noise of ε on several totals that one unit moves in step, for each of them.

    Windows are for totals that one unit moves up alone. Those that it moves down alone get a factor
    below 0.
    """
    steps_of = [member.in_step for member in members if member.in_step is not None]
    (length,) = {step.rows * (step.vectors if one_signed else 1) for step in steps_of}
    scale, factors = joint_scale(length, [step.size for step in steps_of], epsilon)
    paid = (
        length
        * max(factor * step.size for factor, step in zip(factors, steps_of, strict=True))
        / Fraction(scale)
    )
    law, noises = WindowNoise if one_signed else Cube, list[Noise]()
    for member, step, factor in zip(members, steps_of, factors, strict=True):
        signed = -factor if one_signed and step.sign < 0 else factor
        size, loss = float_up(Fraction(scale) / factor), Fraction(0) if noises else paid
        own = law(size, scale, signed, len(members), members[0].names[0], loss)
        noises.append(Noise(member, own))
    return noises


def simulated(noises: Sequence[Noise], draw: np.random.Generator, times: int) -> list[Floats]:
    """Draws like the noise of each total (column unit), not secret: they protect nobody.

    The totals follow one statistic. Those with one noise share the radii of its cubes, others have
    independent noises.
    """
    joint = [noise.mechanism for noise in noises if isinstance(noise.mechanism, JointNoise)]
    radii = draw.gamma(joint[0].order, size=times) if joint else np.zeros(times)
    drawn = []
    for noise in noises:
        if isinstance(noise.mechanism, JointNoise):
            drawn.append(radii * draw.uniform(-1, 1, times) * noise.scale * float(noise.total.unit))
        else:
            drawn.append(noise.added.simulated(draw, (times,), noise.deviation))
    return drawn
