"""Transformations and measurements: a function with a promise about distances, and how two of them chain.

A transformation promises that inputs within d_in (of its input metric) have outputs within `map(d_in)` (of its output
metric). A measurement promises the same of its output distributions, in its output measure. `a >> b` runs b on a's
output; its map is the one map after the other, in exact numbers that are rounded up once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.exact import limit, square
from dpframe.theory.spaces import Domain, Measure, Metric

__all__ = ["Measurement", "Transformation"]


class _Map:
    """What transformations and measurements share."""

    def __init__(self, input_domain: Domain, input_metric: Metric, function: Callable[[Any], Any]) -> None:
        if not isinstance(input_domain, Domain):
            raise InvalidArgument(f"input_domain={input_domain!r} is not a domain.")
        if not isinstance(input_metric, Metric):
            raise InvalidArgument(f"input_metric={input_metric!r} is not a metric, such as SymmetricDistance().")
        if not callable(function):
            raise InvalidArgument(f"function={function!r} cannot be called.")
        self.input_domain = input_domain
        self.input_metric = input_metric
        self._function = function

    def invoke(self, arg: Any) -> Any:
        """Run the function on a member of the input domain. Errors: InvalidArgument when it is not a member."""
        if not self.input_domain.member(arg):
            raise InvalidArgument(f"The argument is not a member of {self.input_domain!r}; nothing is promised for it.")
        return self._function(arg)

    def __call__(self, arg: Any) -> Any:
        return self.invoke(arg)

    @property
    def function(self) -> Callable[[Any], Any]:
        """The function alone, without the check that its argument is a member."""
        return self._function

    @property
    def input_space(self) -> tuple[Domain, Metric]:
        """Input domain and metric, to be unpacked into the next constructor."""
        return self.input_domain, self.input_metric


def _fit(left: Transformation, right: Transformation | Measurement) -> None:
    """Refuse to chain what does not fit, showing both sides."""
    if not left.output_domain.within(right.input_domain):
        raise DomainMismatch(
            f"a >> b: the output domain of a is {left.output_domain!r}, the input domain of b is "
            f"{right.input_domain!r}; every output of a must be a member of b's input domain."
        )
    if left.output_metric != right.input_metric:
        raise MetricMismatch(
            f"a >> b: the output metric of a is {left.output_metric!r}, the input metric of b is "
            f"{right.input_metric!r}; they must be the same."
        )


class Transformation(_Map):
    """A function between datasets or aggregates that keeps neighbours near: a deterministic, stable step.

    `stability_map` takes a distance in the input metric to one in the output metric. It is given, and returns, exact
    numbers (int, Fraction, or a triple of them); it may also return floats, which are read as decimals.

    >>> from dpframe.theory import AtomDomain, SymmetricDistance, VectorDomain
    >>> vector = VectorDomain(AtomDomain(int))
    >>> twice = Transformation(
    ...     vector, SymmetricDistance(), vector, SymmetricDistance(), lambda x: list(x) * 2, lambda d: 2 * d)
    >>> twice.map(3), twice([1])
    (6, [1, 1])
    """

    def __init__(
        self,
        input_domain: Domain,
        input_metric: Metric,
        output_domain: Domain,
        output_metric: Metric,
        function: Callable[[Any], Any],
        stability_map: Callable[[Any], Any],
    ) -> None:
        super().__init__(input_domain, input_metric, function)
        if not isinstance(output_domain, Domain):
            raise InvalidArgument(f"output_domain={output_domain!r} is not a domain.")
        if not isinstance(output_metric, Metric):
            raise InvalidArgument(f"output_metric={output_metric!r} is not a metric.")
        self.output_domain = output_domain
        self.output_metric = output_metric
        self._map = stability_map

    @property
    def output_space(self) -> tuple[Domain, Metric]:
        """Output domain and metric, to be unpacked into the next constructor."""
        return self.output_domain, self.output_metric

    def exact_map(self, d_in: Any) -> Any:
        """`map` without the last rounding: exact numbers in, exact numbers out."""
        return self.output_metric.parse(self._map(self.input_metric.parse(d_in)), "the map's result")

    def map(self, d_in: Any) -> Any:
        """The smallest distance that is proven between outputs of inputs within d_in.

        Input:  d_in: a distance of the input metric
        Output: a distance of the output metric, never below the exact one
        Errors: InvalidArgument when d_in is not such a distance
        """
        return self.output_metric.show(self.exact_map(d_in))

    def check(self, d_in: Any, d_out: Any) -> bool:
        """Whether inputs within d_in surely have outputs within d_out: map(d_in) <= d_out, part by part."""
        bound = self.output_metric.parse(_as_limit(d_out), "d_out")
        reached = self.exact_map(d_in)
        if isinstance(bound, tuple):
            return all(_at_most(a, b) for a, b in zip(reached, bound, strict=True))
        return _at_most(reached, bound)

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, Transformation):
            _fit(self, other)
            return Transformation(
                self.input_domain,
                self.input_metric,
                other.output_domain,
                other.output_metric,
                _after(self.function, other.function),
                lambda d_in: other.exact_map(self.exact_map(d_in)),
            )
        if isinstance(other, Measurement):
            _fit(self, other)
            return Measurement(
                self.input_domain,
                self.input_metric,
                other.output_measure,
                _after(self.function, other.function),
                lambda d_in: other.exact_map(self.exact_map(d_in)),
            )
        return NotImplemented

    def __repr__(self) -> str:
        return (
            f"Transformation({self.input_domain!r}, {self.input_metric!r} → "
            f"{self.output_domain!r}, {self.output_metric!r})"
        )


class Measurement(_Map):
    """A random function whose output says little about its input: where privacy is paid for.

    `privacy_map` takes a distance in the input metric to a loss in the output measure, in exact numbers or floats.
    `measurement >> f` applies a function to what was released (post-processing), which costs nothing.

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, laplace
    >>> laplace(AtomDomain(float), AbsoluteDistance(), scale=25.0).map(12)
    0.48
    """

    def __init__(
        self,
        input_domain: Domain,
        input_metric: Metric,
        output_measure: Measure,
        function: Callable[[Any], Any],
        privacy_map: Callable[[Any], Any],
    ) -> None:
        super().__init__(input_domain, input_metric, function)
        if not isinstance(output_measure, Measure):
            raise InvalidArgument(f"output_measure={output_measure!r} is not a measure, such as MaxDivergence().")
        self.output_measure = output_measure
        self._map = privacy_map

    def exact_map(self, d_in: Any) -> Any:
        """`map` without the last rounding."""
        return self._map(self.input_metric.parse(d_in))

    def map(self, d_in: Any) -> Any:
        """The smallest loss that is proven between output distributions of inputs within d_in.

        Input:  d_in: a distance of the input metric
        Output: a loss of the output measure: a float, a curve, or a pair with δ; never below the exact one
        Errors: InvalidArgument when d_in is not such a distance
        """
        return self.output_measure.show(self.exact_map(d_in))

    def check(self, d_in: Any, d_out: Any) -> bool:
        """Whether inputs within d_in surely cost at most d_out, under the measure's partial order."""
        return self.output_measure.below(self.exact_map(d_in), d_out)

    def __rshift__(self, other: Any) -> Measurement:
        if isinstance(other, Measurement):
            raise InvalidArgument(
                "a >> b: both are measurements. If b shall run on what a released, write a >> b.function, "
                "or compose([a, b]) to run both on the same data."
            )
        function = other.function if isinstance(other, Transformation) else other
        if not callable(function):
            return NotImplemented
        return Measurement(
            self.input_domain,
            self.input_metric,
            self.output_measure,
            _after(self.function, function),
            self.exact_map,
        )

    def __repr__(self) -> str:
        return f"Measurement({self.input_domain!r}, {self.input_metric!r} → {self.output_measure!r})"


def _after(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda arg: second(first(arg))


def _as_limit(d_out: Any) -> Any:
    """Floats as what they bound at most; everything else is left to the metric to judge."""
    if isinstance(d_out, tuple | list):
        return tuple(_as_limit(part) for part in d_out)
    return limit(d_out, "d_out") if isinstance(d_out, float) and math.isfinite(d_out) else d_out


def _at_most(value: Any, limit: Any) -> bool:
    """Compare exact lengths, of which some are held by their squares."""
    return bool(square(value) <= square(limit))
