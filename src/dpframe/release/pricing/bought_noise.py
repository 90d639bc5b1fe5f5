"""The noise that a part of a price buys: for one total, for a pair, for totals of
one mechanism; and the choices.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.noise import float_up, halved
from dpframe.plan import Allotment
from dpframe.release.pricing.choice_mechanisms import (
    Exponential,
    PermuteAndFlip,
    TruncatedGeometric,
)
from dpframe.release.pricing.joint_noise import joint_noises
from dpframe.release.pricing.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    JointLaplace,
    Laplace,
    PairedLaplace,
)
from dpframe.release.pricing.noise import Noise, NoiseKind
from dpframe.release.pricing.shared_noise import elliptic_of, k_norm_of, shared_normal, smaller_of
from dpframe.theory.formulas.loss import (
    calibration,
    choices_rho,
    count_scale,
    count_scale_rho,
    gdp_to_pure,
    pure_to_gdp,
    range_to_gdp,
    rank_scale,
    rank_scale_rho,
    selection_scale,
)
from dpframe.theory.formulas.sensitivity import SharedNoise, pair_scale
from dpframe.theory.formulas.sensitivity import rounding as paired_rounding


@dataclass(frozen=True)
class Together:
    """The totals that are measured together: by the id of each sum in a pair those
    beside it; and totals of one noise.

    A set of totals of one noise says whether a unit adds numbers of one sign to them.
    """

    pairs: Mapping[int, frozenset[int]] = field(default_factory=dict)
    sets: tuple[tuple[tuple[Allotment, ...], bool], ...] = ()


ALONE = Together()


@dataclass(frozen=True)
class PricedTotal:
    """A total, with its part of a price.

    `epsilon` is its part where ε is divided over Laplace noise and choices. `weight` is its part
    where ρ, or the μ² of one Gaussian mechanism, is divided. The parts of a release add up to 1 in
    either. `question` tells the questions of a batch apart.
    """

    allotment: Allotment
    epsilon: Fraction
    weight: Fraction
    question: int = 0


def pieces(allotment: Allotment) -> int:
    """Number of choices of equal price that a total pays for; see `choices_rho`."""
    return allotment.total.sensitivity.l0 if allotment.hidden else allotment.total.choices


def laplace_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """Laplace noise of ε on one total; on the unit grid it is discrete,
    which is the least noise there.
    """
    scale = calibration.laplace_scale(allotment.total.sensitivity.exact_l1, epsilon)
    return Noise(allotment, DiscreteLaplace(scale) if allotment.total.unit == 1 else Laplace(scale))


def pure_of(noise: NoiseKind, allotment: Allotment, epsilon: Fraction) -> Noise:
    """Noise of a pure ε on one total: Laplace noise, or noise that groups
    share if it is typed or smaller.
    """
    if noise is NoiseKind.K_NORM:
        return k_norm_of(allotment, epsilon)
    alone = laplace_of(allotment, epsilon)
    return smaller_of(alone, epsilon) if noise is NoiseKind.AUTO else alone


def rounded_laplace_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """Rounded real Laplace noise of ε on one total.

    If losses are not counted in ε, it is used on the unit grid too. The discrete law costs more in
    ρ: as much as any mechanism of its ε, since its privacy loss is that of randomized response.
    """
    return Noise(
        allotment, Laplace(calibration.laplace_scale(allotment.total.sensitivity.exact_l1, epsilon))
    )


def pure_paid_in_rho(noise: NoiseKind, allotment: Allotment, epsilon: Fraction) -> Noise:
    """Noise of a pure ε whose losses are counted in ρ:
    rounded Laplace noise, or K-norm noise if that is typed.
    """
    return (
        k_norm_of(allotment, epsilon)
        if noise is NoiseKind.K_NORM
        else rounded_laplace_of(allotment, epsilon)
    )


def laplace_for_rho(allotment: Allotment, rho: Fraction, noise: NoiseKind) -> Noise:
    """Rounded Laplace noise of ρ on one total, or K-norm noise if that is typed."""
    if noise is NoiseKind.K_NORM:
        return k_norm_of(allotment, epsilon_for_rho(rho))
    return Noise(
        allotment, Laplace(calibration.laplace_scale_rho(allotment.total.sensitivity.exact_l1, rho))
    )


def gaussian_for_rho(allotment: Allotment, rho: Fraction, noise: NoiseKind) -> Noise:
    """Gaussian noise of ρ on one total: σ² >= l2² / 2ρ, or in place of l2²
    the square of `shared_normal`.
    """
    shared = shared_normal(allotment, noise)
    square = shared.own_square if shared else allotment.total.sensitivity.l2_squared
    return _normal(allotment, calibration.gaussian_scale_rho(l2_squared=square, rho=rho), shared)


def gaussians_of(
    parts: Sequence[tuple[Allotment, Fraction]],
    epsilon: Fraction,
    delta: Fraction,
    noise: NoiseKind,
) -> list[Noise]:
    """Gaussian noise on several totals, one mechanism of (ε, δ)
    together; each with its weight in μ².

    Bound:  see `calibration.gaussian_scales`. Noise that cells share is no worse than a Gaussian
            mechanism whose μ² is `own_square` over the variance of the own noise, so that square
            stands for l2² there
    """
    shares = [shared_normal(allotment, noise) for allotment, _ in parts]
    squares = [
        shared.own_square if shared else allotment.total.sensitivity.l2_squared
        for (allotment, _), shared in zip(parts, shares, strict=True)
    ]
    scales = calibration.gaussian_scales(squares, [weight for _, weight in parts], epsilon, delta)
    return [
        _normal(allotment, scale, shared)
        for (allotment, _), scale, shared in zip(parts, scales, shares, strict=True)
    ]


def _normal(allotment: Allotment, scale: float, shared: SharedNoise | None) -> Noise:
    """Normal noise whose own part has this deviation."""
    return (
        Noise(allotment, Gaussian(scale))
        if shared is None
        else elliptic_of(allotment, scale, shared)
    )


def join_pairs(parts: Sequence[tuple[Allotment, Fraction]]) -> list[tuple[Allotment, Fraction]]:
    """Parts of a price for Laplace noise. The sum of a pair also has the part of its count."""
    by_id = {id(allotment): part for allotment, part in parts}
    beside = {
        id(allotment.beside): id(allotment)
        for allotment, _ in parts
        if allotment.beside is not None and id(allotment.beside) in by_id
    }
    extra = {of: by_id[count] for count, of in beside.items()}
    return [
        (allotment, part + extra.get(id(allotment), 0))
        for allotment, part in parts
        if id(allotment) not in beside
    ]


def laplaces_of(
    parts: Sequence[tuple[Allotment, Fraction]],
    one_of: Callable[[Allotment, Fraction], Noise],
    together: Together = ALONE,
) -> list[Noise]:
    """Laplace noise on several totals, each for its part of ε, by
    `one_of`; see `pair_scale` for pairs.

    Input:  together: the totals that are measured together; only one total of a set needs to have a
            part
    """
    noises, bought = list[Noise](), {id(allotment): part for allotment, part in parts}
    for members, one_signed in together.sets:
        whole = sum((bought.pop(id(member), Fraction(0)) for member in members), Fraction(0))
        noises += joint_noises(members, whole, one_signed=one_signed) if whole else []
    for allotment, part in join_pairs([(p, part) for p, part in parts if id(p) in bought]):
        if id(allotment) in together.pairs:
            noises += joint_laplaces_of(allotment, part, together.pairs[id(allotment)])
        elif allotment.beside is None:
            noises.append(one_of(allotment, part))
        else:
            noises += _pair_of(allotment, one_of(allotment, part).scale)
    return noises


def _pair_of(allotment: Allotment, scale: float, joint: Fraction = Fraction(0)) -> list[Noise]:
    """The noise of a sum and of the count beside it; see `pair_scale`."""
    assert allotment.beside is not None
    of_sum, of_count = pair_scale(scale, allotment.weight)
    count = PairedLaplace(of_count, allotment.weight, of_count=True)
    return [Noise(allotment, PairedLaplace(of_sum, joint=joint)), Noise(allotment.beside, count)]


def joint_laplaces_of(
    allotment: Allotment, epsilon: Fraction, members: Container[int]
) -> list[Noise]:
    """The noise of ε on a sum, the count beside it, and those of its rows and its
    sum from 0 that are `members`.

    Bound:  let J be `joint_l1`, and h the weight of the pair. The missing values, and h·V + S and
            h·V - S divided by 2h, move by at most J together. Each gets Laplace noise of scale J/ε,
            drawn for the pair as noise of scale 2h·J/ε. The rows are the count and the missing
            values, so they have the noise of the count and one more. Rounding moves the number of
            missing values by half a unit, and the rows once more where they are whole. A sum S +
            c·V from 0 is half of (c/h + 1) times the first of the pair and (c/h - 1) times the
            second, so it costs nothing; for bounds that begin at 0, c = h and it is the first
            alone. Without the rows, J is the l1 of the count: see `paired_l1`
    Source: Dwork, McSherry, Nissim, Smith 2006; `theory.formulas.sensitivity.joint_l1`
    """
    rows, total, count = allotment.rows, allotment.sum, allotment.beside
    assert count is not None
    with_rows, weight = rows is not None and id(rows) in members, allotment.weight
    joint = allotment.joint * weight if with_rows else allotment.total.sensitivity.exact_l1
    scale = calibration.laplace_scale(joint, epsilon)
    noises = _pair_of(allotment, scale, joint)
    if rows is not None and with_rows:
        one = 2.0 ** (rows.total.fraction - count.total.fraction)
        slack = one * (paired_rounding(weight) + 0.5) + (0.5 if one < 1 else 0.0)
        law = JointLaplace(float_up(Fraction(scale) / weight) * one, (1.0, 1.0, 1.0), slack)
        noises.append(Noise(rows, law))
    if total is not None and id(total) in members:
        centre = abs(Fraction(total.total.added_up(0, 1), weight))
        larger, smaller = centre + 1, abs(centre - 1)
        slack = float(larger + smaller) / 4 + (0.5 if smaller else 0.0)
        ratios = (1.0, float(smaller / larger)) if smaller else (1.0,)
        noises.append(Noise(total, JointLaplace(scale * float(larger), ratios, slack)))
    return noises


def epsilon_for_rho(rho: Fraction, count: int = 1) -> Fraction:
    """An ε such that every mechanism of `count` choices of ε/count costs at
    most ρ: just below the largest.

    >>> 0.999999 < choices_rho(1, epsilon_for_rho(Fraction(1, 10))) * 10 <= 1
    True
    """
    most = count + 2 * rho  # (1 + 2ρ)·tanh(1/2 + ρ) > ρ, for each of them
    return halved(lambda x: choices_rho(count, x) > rho, Fraction(0), most)[0]


def choice_for_rho(allotment: Allotment, rho: Fraction) -> Noise:
    """A choice of ρ by the exponential mechanism, see `rank_scale_rho` and `count_scale_rho`."""
    total = allotment.total
    if total.rank is None:
        scale = count_scale_rho(total.sensitivity, total.rounds, rho)
    else:
        scale = rank_scale_rho(total.rank, total.sensitivity, rho / total.choices)
    return Noise(allotment, Exponential(calibration.laplace_scale(scale, 1)), range_to_gdp(rho))


def choice_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """A choice of ε: by permute-and-flip, see `rank_scale` and `count_scale`;
    of keys, see `selection_scale`.
    """
    total, count = allotment.total, pieces(allotment)
    mu_squared = count * pure_to_gdp(epsilon / count)
    if allotment.hidden:
        mechanism = TruncatedGeometric(selection_scale(total.sensitivity.l0, epsilon))
        return Noise(allotment, mechanism, mu_squared)
    if total.rank is None:
        scale = count_scale(total.sensitivity, total.rounds, epsilon)
    else:
        scale = rank_scale(total.rank, total.sensitivity, epsilon / total.choices)
    return Noise(allotment, PermuteAndFlip(calibration.laplace_scale(scale, 1)), mu_squared)


def best_choice_for_rho(allotment: Allotment, rho: Fraction) -> Noise:
    """The better choice of ρ. For keys there is only one; for large ρ it is permute-and-flip."""
    pure = choice_of(allotment, epsilon_for_rho(rho, pieces(allotment)))
    return (
        pure
        if allotment.hidden
        else min(pure, choice_for_rho(allotment, rho), key=lambda noise: noise.miss)
    )


def best_choice_for_gdp(allotment: Allotment, mu_squared: Fraction) -> Noise:
    """The better choice of a μ².
    For keys there is only one; for large μ² it is permute-and-flip.
    """
    count = pieces(allotment)
    pure = choice_of(allotment, count * gdp_to_pure(mu_squared / count))
    exponential = choice_for_rho(allotment, mu_squared / range_to_gdp(Fraction(1)))
    return pure if allotment.hidden else min(pure, exponential, key=lambda noise: noise.miss)
