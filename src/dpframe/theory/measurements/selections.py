"""Measurements that select: a category, or the best of many scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import bernoulli_exp, exponential_choice, permute_and_flip, uniform_index
from dpframe.noise import randomized_response as drawn_response
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector
from dpframe.theory.exact import Length, Real, exact
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.framework import Measurement
from dpframe.theory.measurements.additive_noise import number_domain
from dpframe.theory.measurements.grid_noise import checked_scale
from dpframe.theory.spaces import (
    AtomDomain,
    DiscreteDistance,
    Domain,
    LinfDistance,
    MaxDivergence,
    Measure,
    Metric,
    VectorDomain,
    ZeroConcentratedDivergence,
)
from dpframe.usage import read_whole


def _answers(domain: Domain | None, categories: Any) -> tuple[AtomDomain, list[Any]]:
    """The domain of the values that randomized response answers for,
    and the answers that there are.
    """
    options = _options(domain, categories)
    domain = domain or AtomDomain(type(options[0]))
    if not isinstance(domain, AtomDomain) or domain.nan:
        raise DomainMismatch(
            f"randomized_response: the input domain is {domain!r}; it answers for one value, not "
            "NaN."
        )
    if not all(domain.member(o) for o in options):
        raise DomainMismatch(
            f"randomized_response: the categories are not all members of {domain!r}."
        )
    return domain, options


def randomized_response(
    input_domain: Domain | Iterable[object] | None = None,
    input_metric: Metric | None = None,
    prob: Real | None = None,
    categories: Iterable[object] | None = None,
) -> Measurement:
    """Answer with the true category with probability `prob`, else with one of the others at random.

    Input:  one value under DiscreteDistance(); `categories`, at least two distinct values (True and
            False for the bool domain); prob in [1/k, 1) for k categories. The categories may stand
            in the place of the domain: `randomized_response(["a", "b"], prob=0.75)`. A value that
            is none of them is answered uniformly
    Output: one of the categories
    Bound:  ε = ln(prob·(k - 1)/(1 - prob)) for d_in = 1: the log ratio of the true answer's
            probability to another's
    Source: Warner 1965; Kairouz, Oh and Viswanath 2014, arXiv:1407.1338, for k categories;
            `privacy.response_epsilon`
    Errors: InvalidArgument for prob and categories; DomainMismatch, MetricMismatch

    >>> m = randomized_response(AtomDomain(bool), DiscreteDistance(), prob=0.75)
    >>> m.map(1) == math.log(3)
    True
    """
    if input_domain is not None and not isinstance(input_domain, Domain):
        if not isinstance(input_metric, Metric | None):
            input_metric, prob = None, input_metric
        if isinstance(input_domain, int | float | str):
            raise InvalidArgument(
                f"randomized_response: {input_domain!r} is no list of categories. A probability is "
                "prob=..., by name."
            )
        categories, input_domain = list(input_domain), None
    if isinstance(prob, Iterable) and not isinstance(prob, str):
        # The order (domain, metric, categories, prob) is accepted too.
        categories, prob = prob, categories
    domain, options = _answers(input_domain, categories)
    metric = DiscreteDistance() if input_metric is None else input_metric
    if metric != DiscreteDistance():
        raise MetricMismatch(
            f"randomized_response: the input metric is {metric!r}; it is DiscreteDistance()."
        )
    k = len(options)
    keep = _probability_of_truth(prob, k)
    places = {o: i for i, o in enumerate(options)}

    def run(value: Any) -> object:
        place = places.get(value.item() if hasattr(value, "item") else value)
        if place is None:
            return options[int(uniform_index(k, 1)[0])]
        return options[int(drawn_response(np.array([place]), k, keep)[0])]

    return Measurement(
        domain,
        metric,
        MaxDivergence(),
        run,
        lambda d_in: privacy.response_epsilon(keep, k) if d_in else 0.0,
    )


def _probability_of_truth(prob: Real | None, categories: int) -> Fraction:
    if prob is None:
        raise InvalidArgument(
            "randomized_response: give prob=..., the probability of the true answer."
        )
    keep = exact(prob, "prob")
    if not Fraction(1, categories) <= keep < 1:
        raise InvalidArgument(
            f"randomized_response: prob={prob!r} is at least 1/{categories} (no information) and "
            "below 1."
        )
    return keep


def _options(domain: Domain | None, categories: object) -> list[object]:
    if categories is None:
        if domain is None or (isinstance(domain, AtomDomain) and domain.dtype.kind == "b"):
            return [False, True]
        raise InvalidArgument(
            f"randomized_response: give categories=[...], the possible answers, for {domain!r}."
        )
    options = list(categories) if isinstance(categories, Iterable) else []
    if len(options) < 2 or len(set(options)) != len(options):
        raise InvalidArgument("randomized_response: categories are at least two distinct values.")
    return options


@ordered
def noisy_max(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    negate: bool = False,
    output_measure: Measure | None = None,
) -> Measurement:
    """Select the index of a large entry of a vector of scores (of a small one with `negate=True`).

    Input:  vectors of numbers under LinfDistance(), or LinfDistance(monotonic=True) if all scores
            change in one direction between neighbours; scale > 0 in the unit of the scores
    Output: int, an index from 0: that of the largest score after exponential noise of this scale
            (permute-and-flip), or, with output_measure=ZeroConcentratedDivergence(), after Gumbel
            noise (the exponential mechanism)
    Bound:  ε = 2·d_in/scale; d_in/scale if monotonic. As ρ it is ε²/8, by the bounded range of the
            exponential mechanism. Permute-and-flip has smaller errors but no bounded range. Float
            scores are used as exact fractions, so nothing is rounded
    Source: McKenna and Sheldon 2020, arXiv:2010.12603, theorem 1; McSherry and Talwar 2007, theorem
            6; `privacy.bounded_range_rho`
    Errors: InvalidArgument for the scale; DomainMismatch, MetricMismatch

    >>> m = noisy_max(VectorDomain(AtomDomain(int)), LinfDistance(), scale=1.0)
    >>> m.map(1)
    2.0
    """
    if isinstance(scale, Measure):
        raise InvalidArgument(
            "noisy_max: scale is a number. Pass the measure by name: output_measure=..."
        )
    if not isinstance(input_domain, VectorDomain):
        raise DomainMismatch(
            f"noisy_max: the input domain is {input_domain!r}; it chooses from a VectorDomain."
        )
    atom = number_domain(input_domain, "noisy_max")
    if not isinstance(input_metric, LinfDistance):
        raise MetricMismatch(
            f"noisy_max: the input metric is {input_metric!r}; scores are measured by "
            "LinfDistance()."
        )
    width = checked_scale(scale)
    measure = MaxDivergence() if output_measure is None else output_measure
    factor = 1 if input_metric.monotonic else 2
    flips = measure == MaxDivergence()
    if not flips and measure != ZeroConcentratedDivergence():
        raise InvalidArgument(
            f"noisy_max: output_measure={measure!r}; it is MaxDivergence() or "
            "ZeroConcentratedDivergence()."
        )

    def privacy_map(d_in: Length) -> object:
        epsilon = factor * privacy.laplace_loss(d_in, width)
        return epsilon if flips else privacy.bounded_range_rho(epsilon)

    return Measurement(
        input_domain,
        input_metric,
        measure,
        lambda scores: _choose(scores, atom, width, negate, flips),
        privacy_map,
    )


@ordered
def noisy_top_k(
    input_domain: Domain,
    input_metric: Metric,
    k: int,
    scale: Real,
    negate: bool = False,
    output_measure: Measure | None = None,
) -> Measurement:
    """Select the indices of k large entries of a vector of scores, one
    after the other, the largest first.

    Input:  as in `noisy_max`; k (count, at least 1)
    Output: list of k int (fewer if there are fewer entries): each round selects by `noisy_max`
            among the remaining entries
    Bound:  k times the loss of `noisy_max`: given the earlier selections, a round is one selection
            among the remaining entries, whose scores change by no more
    Source: as `noisy_max`; Dwork et al. 2006, for the rounds one after the other
    Errors: as `noisy_max`; InvalidArgument for k

    >>> noisy_top_k(VectorDomain(AtomDomain(int)), LinfDistance(), k=2, scale=1.0).map(1)
    4.0
    """
    rounds = read_whole(k, 1, math.inf, f"noisy_top_k: k={k!r} is a whole number of at least 1.")
    single = noisy_max(input_domain, input_metric, scale, negate, output_measure)

    def run(scores: Vector) -> list[int]:
        entries = scores.tolist() if hasattr(scores, "tolist") else list(scores)
        places = list(range(len(entries)))
        return [
            places.pop(single.function([entries[i] for i in places]))
            for _ in range(min(rounds, len(entries)))
        ]

    def privacy_map(d_in: Length) -> object:
        return rounds * single.output_measure.parse(single.exact_map(d_in), "loss")

    return Measurement(input_domain, input_metric, single.output_measure, run, privacy_map)


def _choose(scores: Vector, atom: AtomDomain, scale: Fraction, negate: bool, flips: bool) -> int:
    """Select by permute-and-flip or the exponential mechanism.
    `dpframe.noise` has both, but for integers only.
    """
    entries = scores.tolist() if hasattr(scores, "tolist") else list(scores)
    if len(entries) == 0:
        raise InvalidArgument("noisy_max: there is no score to choose from.")
    if not atom.is_float:
        integers = np.array([entries], dtype=atom.dtype)
        if negate:
            # This reverses the order of integers, keeps distances, and cannot overflow.
            integers = ~integers
        return int((permute_and_flip if flips else exponential_choice)(integers, 1 / scale)[0])
    numbers = [-float(v) if negate else float(v) for v in entries]
    return (_flipped if flips else _exponential)(numbers, scale)


def _accepted(score: float, best: float, scale: Fraction) -> bool:
    """A coin with probability exp(-(best - score)/scale)."""
    if score == best:
        return True
    if not (math.isfinite(score) and math.isfinite(best)):
        return False
    return bool(bernoulli_exp([(Fraction(best) - Fraction(score)) / scale])[0])


def _exponential(scores: list[float], scale: Fraction) -> int:
    """The exponential mechanism: propose uniformly random candidates until one is accepted."""
    best = max(scores)
    while True:
        for i in uniform_index(len(scores), min(len(scores), 1024)).tolist():
            if _accepted(scores[i], best, scale):
                return int(i)


def _flipped(scores: list[float], scale: Fraction) -> int:
    """Permute-and-flip: candidates in random order, each accepted
    with probability exp(-gap/scale).
    """
    best = max(scores)
    order = list(range(len(scores)))
    while True:
        for last in range(len(order) - 1, 0, -1):
            partner = int(uniform_index(last + 1, 1)[0])
            order[last], order[partner] = order[partner], order[last]
        for i in order:
            if _accepted(scores[i], best, scale):
                return i
