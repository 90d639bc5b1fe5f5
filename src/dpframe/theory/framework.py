"""Transformations and measurements: a function with a promise about
distances, and how two of them chain.

A transformation promises: if two inputs are at most d_in apart in its input metric, their outputs
are at most `map(d_in)` apart in its output metric. A measurement promises that its output
distributions are at most `map(d_in)` apart in its output measure. `a >> b` runs b on the output of
a. Its map applies a's map and then b's map, in exact numbers that are rounded up once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.exact import Length, limit, square
from dpframe.theory.spaces import Domain, Measure, Metric

Function = Callable[[Any], Any]


class _Map:
    """A function with an input domain and an input metric:
    the base of transformations and measurements.
    """

    def __init__(self, input_domain: Domain, input_metric: Metric, function: Function) -> None:
        if not isinstance(input_domain, Domain):
            raise InvalidArgument(f"input_domain={input_domain!r} is not a domain.")
        if not isinstance(input_metric, Metric):
            raise InvalidArgument(
                f"input_metric={input_metric!r} is not a metric, such as SymmetricDistance()."
            )
        if not callable(function):
            raise InvalidArgument(f"function={function!r} cannot be called.")
        self.input_domain = input_domain
        self.input_metric = input_metric
        self._function = function

    def invoke(self, arg: object) -> Any:
        """Run the function on a member of the input domain.
        Errors: InvalidArgument for any other argument.
        """
        if not self.input_domain.member(arg):
            raise InvalidArgument(
                f"The argument is not a member of {self.input_domain!r}; nothing is promised for "
                "it."
            )
        return self._function(arg)

    def __call__(self, arg: object) -> Any:
        return self.invoke(arg)

    @property
    def function(self) -> Function:
        """The function alone, without the check that its argument is a member."""
        return self._function

    @property
    def input_space(self) -> tuple[Domain, Metric]:
        """Input domain and metric, to be unpacked into the next constructor."""
        return self.input_domain, self.input_metric


def _fit(first: Transformation, second: Transformation | Measurement) -> None:
    """Refuse to chain two maps whose domains or metrics do not fit.
    The message shows both sides.
    """
    if not first.output_domain.within(second.input_domain):
        raise DomainMismatch(
            f"a >> b: the output domain of a is {first.output_domain!r}, the input domain of b is "
            f"{second.input_domain!r}; every output of a must be a member of b's input domain."
        )
    if first.output_metric != second.input_metric:
        raise MetricMismatch(
            f"a >> b: the output metric of a is {first.output_metric!r}, the input metric of b is "
            f"{second.input_metric!r}; they must be the same."
        )


class Transformation(_Map):
    """A function between datasets or aggregates that keeps neighbours
    near: a deterministic, stable step.

    `stability_map` takes a distance in the input metric and returns a distance in the output
    metric. Both are exact numbers (int, Fraction, or a triple of them). It may also return floats,
    which are read as decimals.

    >>> from dpframe.theory import AtomDomain, SymmetricDistance, VectorDomain
    >>> vector = VectorDomain(AtomDomain(int))
    >>> twice = Transformation(
    ...     vector,
    ...     SymmetricDistance(),
    ...     vector,
    ...     SymmetricDistance(),
    ...     lambda x: list(x) * 2,
    ...     lambda d: 2 * d,
    ... )
    >>> twice.map(3), twice([1])
    (6, [1, 1])
    """

    def __init__(
        self,
        input_domain: Domain,
        input_metric: Metric,
        output_domain: Domain,
        output_metric: Metric,
        function: Function,
        stability_map: Function,
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

    def exact_map(self, d_in: object) -> Any:
        """`map` without the last rounding: exact numbers in, exact numbers out."""
        return self.output_metric.parse(
            self._map(self.input_metric.parse(d_in)), "the map's result"
        )

    def map(self, d_in: object) -> Any:
        """An upper bound on the distance between the outputs of two
        inputs that are at most d_in apart.

        Input:  d_in: a distance of the input metric
        Output: a distance of the output metric: the exact bound, rounded up
        Errors: InvalidArgument when d_in is not such a distance
        """
        return self.output_metric.show(self.exact_map(d_in))

    def check(self, d_in: object, d_out: object) -> bool:
        """Whether map(d_in) <= d_out, part by part: inputs d_in apart then
        have outputs at most d_out apart.
        """
        bound = self.output_metric.parse(_as_limit(d_out), "d_out")
        distance = self.exact_map(d_in)
        if isinstance(bound, tuple):
            return all(_at_most(a, b) for a, b in zip(distance, bound, strict=True))
        return _at_most(distance, bound)

    def __rshift__(self, other: object) -> Any:
        match other:
            case Transformation():
                _fit(self, other)
                return Transformation(
                    self.input_domain,
                    self.input_metric,
                    other.output_domain,
                    other.output_metric,
                    _after(self.function, other.function),
                    lambda d_in: other.exact_map(self.exact_map(d_in)),
                )
            case Measurement():
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
    """A random function whose output says little about its input. Only measurements cost privacy.

    `privacy_map` takes a distance in the input metric and returns a loss in the output measure, as
    an exact number or a float. `measurement >> f` applies the function f to the released answer.
    This post-processing costs nothing.

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, laplace
    >>> laplace(AtomDomain(float), AbsoluteDistance(), scale=25.0).map(12)
    0.48
    """

    def __init__(
        self,
        input_domain: Domain,
        input_metric: Metric,
        output_measure: Measure,
        function: Function,
        privacy_map: Function,
    ) -> None:
        super().__init__(input_domain, input_metric, function)
        if not isinstance(output_measure, Measure):
            raise InvalidArgument(
                f"output_measure={output_measure!r} is not a measure, such as MaxDivergence()."
            )
        self.output_measure = output_measure
        self._map = privacy_map

    def exact_map(self, d_in: object) -> Any:
        """`map` without the last rounding."""
        return self._map(self.input_metric.parse(d_in))

    def map(self, d_in: object) -> Any:
        """An upper bound on the privacy loss between two inputs that are at most d_in apart.

        Input:  d_in: a distance of the input metric
        Output: a loss of the output measure: a float, a curve, or a pair with δ. It is the exact
                bound, rounded up
        Errors: InvalidArgument when d_in is not such a distance
        """
        return self.output_measure.show(self.exact_map(d_in))

    def check(self, d_in: object, d_out: object) -> bool:
        """Whether map(d_in) <= d_out in the measure's partial order:
        the loss is then at most d_out.
        """
        return self.output_measure.below(self.exact_map(d_in), d_out)

    def __rshift__(self, other: object) -> Measurement:
        function = other
        match other:
            case Measurement():
                raise InvalidArgument(
                    "a >> b: both are measurements. To run b on the answer that a released, write "
                    "a >> b.function. To run both on the same data, write compose([a, b])."
                )
            case Transformation():
                function = other.function
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
        return (
            f"Measurement({self.input_domain!r}, {self.input_metric!r} → {self.output_measure!r})"
        )


def _after(first: Function, second: Function) -> Function:
    return lambda arg: second(first(arg))


def _as_limit(d_out: object) -> Any:
    """Each finite float as the largest number that it may mean (`exact.limit`);
    the metric checks all other values.
    """
    match d_out:
        case tuple() | list():
            return tuple(_as_limit(part) for part in d_out)
        case float() if math.isfinite(d_out):
            return limit(d_out, "d_out")
    return d_out


def _at_most(value: Length, limit: Length) -> bool:
    """Whether an exact length is at most a limit.
    Squares are compared, since a `Root` is stored by its square.
    """
    return bool(square(value) <= square(limit))
