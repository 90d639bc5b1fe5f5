"""Interactive measurements: questions chosen after earlier answers, and an
odometer and a filter for their loss.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.errors import BudgetExceeded, DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.exact import Real, exact, square
from dpframe.theory.formulas.loss import TwoSums, pure_to_gdp
from dpframe.theory.framework import Measurement
from dpframe.theory.spaces import (
    Approximate,
    Domain,
    MaxDivergence,
    Measure,
    Metric,
    PrivacyProfile,
    RenyiCurve,
    SmoothedMaxDivergence,
    probability,
)

_PROFILES = SmoothedMaxDivergence(), Approximate(SmoothedMaxDivergence())
_PAIRS = MaxDivergence(), Approximate(MaxDivergence())


class Queryable:
    """Hidden data that answers measurements, one after another.
    `odometer` and `privacy_filter` make it.

    >>> import dpframe.theory as t
    >>> space = t.AtomDomain(int), t.AbsoluteDistance()
    >>> asked = t.odometer(*space, t.MaxDivergence())(41)
    >>> answers = [asked.ask(t.laplace(*space, scale=10)) for _ in range(3)]
    >>> asked.map(1)
    0.3
    """

    def __init__(
        self, odometer: Odometer, data: object, accept: Callable[[list[Measurement]], bool]
    ) -> None:
        self._odometer, self._data, self._accept = odometer, data, accept
        self._asked: list[Measurement] = []
        self._lock = threading.Lock()

    def ask(self, measurement: Measurement) -> Any:
        """The answer of a measurement, which may itself be one that is asked further.

        Input:  a measurement that fits the odometer, chosen in any way after the answers so far
        Errors: BudgetExceeded if the filter refuses it: it is not run, and costs nothing;
                DomainMismatch, MetricMismatch
        """
        self._odometer.check(measurement)
        with self._lock:
            if not self._accept([*self._asked, measurement]):
                raise BudgetExceeded(
                    "ask: this measurement would exceed the filter's d_out. It was not run."
                )
            self._asked.append(measurement)
        return measurement.function(self._data)

    def map(self, d_in: object) -> Any:
        """The loss of all that was asked so far: the smallest d_out of a filter
        that would have accepted the same.
        """
        measure = self._odometer.output_measure
        return measure.show(measure.add([_loss(asked, measure, d_in) for asked in self._asked]))


@dataclass(frozen=True)
class Odometer:
    """Called with data, it gives a `Queryable` that adds up the losses of
    what it is asked; see `odometer`.
    """

    input_domain: Domain
    input_metric: Metric
    output_measure: Measure

    def __call__(self, data: object) -> Queryable:
        """Errors: InvalidArgument for data outside the input domain."""
        if not self.input_domain.member(data):
            raise InvalidArgument(
                f"The argument is not a member of {self.input_domain!r}; nothing is promised for "
                "it."
            )
        return Queryable(self, data, lambda asked: True)

    def check(self, measurement: object) -> None:
        """Whether a measurement may be asked.
        Errors: InvalidArgument, DomainMismatch, MetricMismatch.
        """
        if not isinstance(measurement, Measurement):
            raise InvalidArgument(f"ask: {measurement!r} is not a measurement.")
        if not self.input_domain.within(measurement.input_domain):
            raise DomainMismatch(
                f"ask: its input domain is {measurement.input_domain!r}, not {self.input_domain!r}."
            )
        if measurement.input_metric != self.input_metric:
            raise MetricMismatch(
                f"ask: its input metric is {measurement.input_metric!r}, not {self.input_metric!r}."
            )
        own, measure = measurement.output_measure, self.output_measure
        if own != measure and not (measure in _PROFILES and own in (*_PROFILES, *_PAIRS)):
            raise MetricMismatch(
                f"ask: its output measure is {own!r}, not {measure!r}; convert it first."
            )


def odometer(input_domain: Domain, input_metric: Metric, output_measure: Measure) -> Odometer:
    """Measurements that are chosen one after another, with the loss of all so
    far (fully adaptive composition).

    Input:  domain and metric of the data; the measure in which losses add up
    Output: called with data, a `Queryable`
    Bound:  ε, ρ, Rényi curves and pairs add up when measurements and their losses are chosen after
            earlier answers. A privacy profile does not, but for that of Gaussian noise, whose μ²
            add up
    Source: Rogers et al. 2016, arXiv:1605.08294; Feldman, Zrnic 2021, arXiv:2008.11193; Smith,
            Thakurta 2022, arXiv:2210.17520; Vadhan, Zhang 2023, arXiv:2207.08335, for interactive
            ones that run side by side
    Errors: InvalidArgument

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain
    >>> odometer(AtomDomain(int), AbsoluteDistance(), MaxDivergence())(3).map(1)
    0.0
    """
    if not (isinstance(input_domain, Domain) and isinstance(input_metric, Metric)):
        raise InvalidArgument(
            "odometer: give a domain, a metric and a measure: odometer(*space, MaxDivergence())."
        )
    if not isinstance(output_measure, Measure):
        raise InvalidArgument(
            f"output_measure={output_measure!r} is not a measure, such as MaxDivergence()."
        )
    return Odometer(input_domain, input_metric, output_measure)


def privacy_filter(
    odometer: Odometer, d_in: object, d_out: object, *, split: Real = Fraction(1, 4)
) -> Measurement:
    """An odometer that stops: it refuses a measurement with which all would lose more than d_out.

    Input:  an odometer; a distance of its metric; a loss of its measure, such as ε, ρ, or (ε, δ).
            For an odometer over SmoothedMaxDivergence() it is (ε, δ), and Gaussian noise, pairs and
            pure measurements may be asked; split: the part of δ, there, that is for pairs; see
            `TwoSums`
    Output: a measurement. Its answer is a `Queryable`, so it can be asked by another one too
    Bound:  d_out at d_in and below. Over profiles the rule is `TwoSums`, which has the proof;
            dataframes' budgets call the same. Otherwise losses add up and are compared with d_out
            before each measurement runs
    Source: as `odometer`; Bun, Steinke 2016, arXiv:1605.02065, lemma 8.2, for ρ with δ
    Errors: InvalidArgument

    >>> import dpframe.theory as t
    >>> space = t.AtomDomain(int), t.AbsoluteDistance()
    >>> limited = t.privacy_filter(t.odometer(*space, t.ZeroConcentratedDivergence()), 1, 0.01)
    >>> limited.map(1)
    0.01
    >>> asked = limited(41)
    >>> answers = [asked.ask(t.gaussian(*space, scale=10)) for _ in range(2)]
    >>> asked.ask(t.gaussian(*space, scale=10))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpframe.errors.BudgetExceeded: ask: this measurement would exceed the filter's d_out. ...
    """
    metric, measure = odometer.input_metric, odometer.output_measure
    if measure in _PROFILES:
        accept, measure = (
            _two_sums(d_in, d_out, exact(split, "split")),
            Approximate(MaxDivergence()),
        )
    else:

        def accept(asked: list[Measurement]) -> bool:
            return measure.below(measure.add([one.exact_map(d_in) for one in asked]), d_out)

    most, loss = metric.parse(d_in), measure.parse(d_out)
    if isinstance(loss, Mapping):
        orders = loss  # a Rényi divergence grows with its order
        loss = RenyiCurve(
            lambda alpha: min(
                (e for order, e in orders.items() if order >= alpha), default=math.inf
            )
        )

    def privacy_map(distance: Any) -> Any:
        parts = zip(distance, most, strict=True) if isinstance(most, tuple) else [(distance, most)]
        if any(square(own) > square(limit) for own, limit in parts):
            raise InvalidArgument(f"map: this filter holds up to d_in={d_in!r}.")
        return loss

    def run(data: object) -> Queryable:
        return Queryable(odometer, data, accept)

    return Measurement(odometer.input_domain, metric, measure, run, privacy_map)


def _loss(measurement: Measurement, measure: Measure, d_in: object) -> Any:
    """The loss of a measurement in the measure of its odometer. Errors: InvalidArgument."""
    if measurement.output_measure == measure:
        return measurement.exact_map(d_in)
    raise InvalidArgument(
        "map: losses of several measures have no sum; a privacy_filter has a d_out for them."
    )


def _two_sums(d_in: object, d_out: object, split: Fraction) -> Callable[[list[Measurement]], bool]:
    """Whether measurements together are within (ε, δ). Errors: InvalidArgument."""
    epsilon, delta = Approximate(MaxDivergence()).parse(d_out)
    if not (0 < split < 1 and 0 < delta < 1 and 0 < epsilon < math.inf):
        raise InvalidArgument(
            f"privacy_filter: d_out={d_out!r} is a pair (ε, δ) above 0, and split is between 0 and "
            "1."
        )
    rule = TwoSums(Fraction(epsilon), delta, split)

    def accept(asked: list[Measurement]) -> bool:
        sums = (Fraction(0), Fraction(0), Fraction(0))
        for one in asked:
            loss = one.exact_map(d_in)
            inner, own = (
                loss if isinstance(one.output_measure, Approximate) else (loss, Fraction(0))
            )
            match inner:
                case PrivacyProfile(mu_squared=Fraction() as squared):
                    more = rule.gaussian(squared, probability(own), sums)
                case PrivacyProfile():
                    raise InvalidArgument(
                        "ask: of profiles, only that of Gaussian noise has a filter; see "
                        "`odometer`."
                    )
                case math.inf:
                    return False
                case _:
                    more = Fraction(inner), probability(own), pure_to_gdp(Fraction(inner))
            sums = sums[0] + more[0], sums[1] + more[1], sums[2] + more[2]
        return rule.holds(*sums)

    return accept
