"""Noise of which the cells of a table share a part, for totals to which each
unit adds numbers of one sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.arrays import WideIntegers
from dpframe.errors import UnsupportedOperation
from dpframe.noise import GRID, MOST_CELLS, float_up, root_up, shared_gaussian, window_noise
from dpframe.plan import Allotment, Question
from dpframe.release.pricing.mechanisms import (
    AddsNoise,
    Event,
    Gaussian,
    Parameters,
    gaussian_event,
)
from dpframe.release.pricing.noise import Noise, NoiseKind
from dpframe.theory.formulas.loss import window_error, window_scale, window_tail_real
from dpframe.theory.formulas.sensitivity import (
    Sensitivity,
    SharedNoise,
    best_shared_noise,
    shared_noise_square,
)

# of the deviation of independent noise: shared noise that is chosen has at most this part
_GAIN = Fraction(95, 100)
# how much wider a normal law is that covers noise rounded twice to the grid
_WIDER = Fraction(GRID, GRID - 2)


@dataclass(frozen=True)
class Elliptic(Gaussian):
    """Normal noise of which all cells share a part (elliptic noise).

    `own` is the deviation of each cell's own noise and `common` that of the noise that all of the
    `cells` share. The scale is the deviation of a normal law that covers the noise of one cell. See
    `theory.formulas.sensitivity.one_signed` for the privacy.
    """

    own: float = 0.0
    common: float = 0.0
    cells: int = 1

    label = "elliptic"

    @property
    def parameters(self) -> Parameters:
        """The deviations of the own and the common part."""
        return {"scale": Fraction(self.own), "common": Fraction(self.common)}

    @classmethod
    def of(cls, own: float, ratio: Fraction, cells: int) -> Elliptic:
        """The mechanism with own noise of this deviation, and at least
        `ratio` times its variance in common.

        Bound:  own and common noise are rounded to 1/65536, which moves their sum by at most that.
                For whole e, the rounded sum is above e only if the real noise is at least e + 1/2 -
                1/65536, which is at least (e + 1/2) · (1 - 2/65536). A normal law that is wider by
                this factor has at least the same tails
        """
        common = root_up(ratio * Fraction(own) ** 2)
        scale = root_up(Fraction(own) ** 2 + Fraction(common) ** 2)
        return cls(float_up(Fraction(scale) * _WIDER), own, common, cells)

    @property
    def apart(self) -> float:
        """The part of the variance that is each group's own:
        the shared part cancels in a difference.

        Bound:  two groups differ by D = X - X', their own noises, after (X + C) and (X' + C) are
                rounded to whole numbers. The place of C between these is about uniform, so the
                difference is as D with uniform noise between -1/2 and 1/2, rounded: its variance is
                2·own² + 1/12. Uniform noise has lighter tails than the normal noise that stands for
                it here
        """
        return min(1.0, (self.own**2 + 1 / 24) / self.scale**2)

    def draw(self, size: int) -> WideIntegers:
        """Fresh noise for `size` groups, of which all share a part."""
        return shared_gaussian(self.own, self.common, size)

    def _square(self, bound: Sensitivity) -> Fraction:
        """μ² of the mechanism, at most."""
        ratio = (Fraction(self.common) / Fraction(self.own)) ** 2
        return shared_noise_square(bound, self.cells, ratio) / Fraction(self.own) ** 2

    def rho(self, bound: Sensitivity) -> Fraction:
        """μ² / 2. Source: `theory.formulas.sensitivity.one_signed.shared_noise_square`."""
        return self._square(bound) / 2

    def event(self, bound: Sensitivity) -> Event:
        """It is no worse than a Gaussian mechanism of its μ."""
        return gaussian_event(1 / math.sqrt(self._square(bound)))


@dataclass(frozen=True)
class KNorm(AddsNoise):
    """Noise from one random window for all cells (K-norm noise):
    pure ε with the scale `vectors` · linf / ε.

    See `theory.formulas.loss.window` for the privacy, and `dpframe.noise.correlated` for the law.
    """

    cells: int = 1
    vectors: int = 1

    label = law = "k_norm"
    rounding = 0.0

    @property
    def laplaces(self) -> tuple[float, ...]:
        """It is bought for totals that are released as they are: its groups are not independent."""
        raise UnsupportedOperation(
            "noise='k-norm': groups share their noise, so it is not added up."
        )

    @property
    def deviation(self) -> float:
        """Of one cell of the law on the reals: √((d + 2)(d + 3) / 6) scales for d cells."""
        return self.scale * math.sqrt((self.cells + 2) * (self.cells + 3) / 6)

    @property
    def apart(self) -> float:
        """1/2: a cell is R - V_g, with R and V_g independent and uniform
        on the same number of integers.
        """
        return 0.5

    def error(self, alpha: float, per: int = 1) -> float:
        """By the exact law of one cell.
        The difference of two cells, V_h - V_g, has that law too.
        """
        return float(window_error(self.cells, self.scale, alpha, per=per))

    def draw(self, size: int) -> WideIntegers:
        """Fresh noise for `size` groups, of which all share the window."""
        return window_noise(self.scale, self.cells)[:size]

    def tail(self, reach: float) -> float:
        """The tail of one cell of the law on the reals."""
        return window_tail_real(self.cells, reach / self.scale)

    def epsilon(self, bound: Sensitivity) -> Fraction:
        """See `theory.formulas.loss.window_scale`."""
        return self.vectors * bound.exact_linf / Fraction(self.scale)


def k_norm_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """K-norm noise of ε on one total; see `window_scale`."""
    vector = allotment.one_signed
    assert vector is not None
    scale = window_scale(allotment.total.sensitivity.exact_linf, epsilon, vectors=vector.vectors)
    return Noise(allotment, KNorm(scale, vector.cells, vector.vectors))


def may_share_window(allotment: Allotment) -> bool:
    """Whether a total can have K-norm noise."""
    return allotment.one_signed is not None and allotment.one_signed.cells <= MOST_CELLS


def may_share(question: Question, noise: NoiseKind) -> bool:
    """Whether groups may have noise of a pure ε that they share, under some limits."""
    return noise in (NoiseKind.AUTO, NoiseKind.K_NORM) and any(
        map(may_share_window, question.allotments)
    )


def smaller_of(alone: Noise, epsilon: Fraction) -> Noise:
    """Laplace noise of ε that is given, or K-norm noise of ε if that has
    at most 0.95 of its deviation.
    """
    if not may_share_window(alone.allotment):
        return alone
    shared = k_norm_of(alone.allotment, epsilon)
    return shared if shared.deviation <= float(_GAIN) * alone.deviation else alone


def shared_normal(allotment: Allotment, noise: NoiseKind) -> SharedNoise | None:
    """Best division of the normal noise of a total; None where cells have independent noise.

    Shared noise that was not typed must have at most 0.95 of the deviation of independent noise,
    since sums over groups have more noise with it.
    """
    vector, bound = allotment.one_signed, allotment.total.sensitivity
    typed = noise is NoiseKind.ELLIPTIC
    if vector is None or vector.vectors > 1 or not (typed or noise is NoiseKind.AUTO):
        return None
    shared = best_shared_noise(bound, vector.cells)
    most = 1 if typed else _GAIN**2
    return shared if shared.ratio and shared.variance <= most * bound.l2_squared else None


def shared_part(
    allotment: Allotment, bound: Sensitivity, *, normal: bool, noise: NoiseKind
) -> float:
    """The deviation of a cell's noise where cells may share noise, over that of
    independent noise of the same price.

    Input:  a total; its sensitivity, under some limits; normal: whether the noise is normal, or of
            a pure ε; noise: the kind that was typed
    Output: 1 where cells have independent noise
    """
    here = replace(allotment, total=replace(allotment.total, sensitivity=bound))
    if normal:
        shared = shared_normal(here, noise)
        return math.sqrt(shared.variance / bound.l2_squared) if shared else 1.0
    if not may_share_window(here) or noise not in (NoiseKind.AUTO, NoiseKind.K_NORM):
        return 1.0
    part = k_norm_of(here, Fraction(1)).mechanism.deviation / (math.sqrt(2) * float(bound.l1))
    return part if noise is NoiseKind.K_NORM or part <= _GAIN else 1.0


def elliptic_of(allotment: Allotment, own: float, shared: SharedNoise) -> Noise:
    """Elliptic noise on one total, with own noise of this deviation."""
    assert allotment.one_signed is not None
    return Noise(allotment, Elliptic.of(own, shared.ratio, allotment.one_signed.cells))


def check_shared(question: Question, noise: NoiseKind) -> None:
    """Refuse noise that cells share, if it was typed and a total cannot have it.
    Errors: UnsupportedOperation.
    """
    totals = [
        allotment.one_signed for allotment in question.allotments if allotment.total.sensitivity.l0
    ]
    if noise is NoiseKind.ELLIPTIC and any(
        vector is not None and vector.vectors > 1 for vector in totals
    ):
        raise UnsupportedOperation(
            "noise='elliptic': where one unit replaces another, shared noise hides no more than "
            "noise='gaussian' does."
        )
    if noise is NoiseKind.K_NORM and any(
        vector is not None and vector.cells > MOST_CELLS for vector in totals
    ):
        raise UnsupportedOperation(
            f"noise='k-norm': it is for at most {MOST_CELLS:,} listed groups. Leave noise= out."
        )
    if noise.shared and not all(totals):
        raise UnsupportedOperation(
            f"noise={noise.value!r}: groups share a part of this noise. It is for counts, and for "
            "sums with bounds of one sign, of two or more listed groups with typed bounds: "
            "group_by('day', keys=[...], max_groups=24). Leave noise= out, or ask for other "
            "columns in a release of their own."
        )
