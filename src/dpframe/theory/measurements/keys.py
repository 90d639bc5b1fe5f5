"""Rules that show private keys by their numbers of units, and the probability with which each rule shows a key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import keep_probability as rule_probability
from dpframe.noise import truncated_geometric_keep
from dpframe.theory.calls import ordered
from dpframe.theory.exact import exact
from dpframe.theory.formulas.loss import group_privacy
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.formulas.loss.key_selection import selection_start
from dpframe.theory.framework import Measurement
from dpframe.theory.spaces import (
    Approximate,
    Domain,
    L01InfDistance,
    MapDomain,
    MaxDivergence,
    Metric,
    probability,
)

__all__ = ["KeySelection", "select_keys", "threshold_keep_probability"]


@dataclass(frozen=True)
class KeySelection:
    """The optimal rule for showing keys at (ε, δ), for units with at most `groups` keys, and its probabilities.

    >>> KeySelection(1.0, 1e-6).keep_probability(0)
    0.0
    """

    epsilon: Any
    delta: Any
    groups: int = 1
    pre_threshold: int = 1

    def __post_init__(self) -> None:
        price = exact(self.epsilon, "epsilon")
        if price <= 0 or not 0 < probability(self.delta) < 1:
            raise InvalidArgument(f"epsilon={self.epsilon!r}, delta={self.delta!r}: ε > 0 and 0 < δ < 1.")
        for name, value in (("groups", self.groups), ("pre_threshold", self.pre_threshold)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InvalidArgument(f"{name}={value!r} is a whole number of at least 1.")

    @property
    def rate(self) -> Fraction:
        """ε of one key."""
        return exact(self.epsilon, "epsilon") / self.groups

    @property
    def start(self) -> Fraction:
        """δ of one key, rounded down."""
        return selection_start(exact(self.delta, "delta"), self.groups)

    def keep_probability(self, units: int) -> float:
        """The probability that a key with this number of units is shown, as the nearest float."""
        low, high = rule_probability(self._counted(int(units)), self.rate, self.start)
        return (low + high) / 2

    def keep(self, units: Any) -> Any:
        """A random decision for each key, from an array of numbers of units; each call decides anew."""
        counts = np.maximum(np.asarray(units).astype(np.int64) - (self.pre_threshold - 1), 0)
        return truncated_geometric_keep(counts, self.rate, self.start)

    def _counted(self, units: int) -> int:
        return max(0, units - (self.pre_threshold - 1))


@ordered
def select_keys(
    input_domain: Domain, input_metric: Metric, epsilon: Any, delta: Any, groups: int = 1, pre_threshold: int = 1
) -> Measurement:
    """Show the keys of a mapping to numbers of units, each with the largest probability that (ε, δ) allows.

    Input:  mappings from private keys to integers (units per key) under L01InfDistance(); epsilon > 0 and delta in
            (0, 1) for inputs at (groups, groups, 1): one unit in at most `groups` keys; pre_threshold: keys with fewer
            units are never shown (count, at least 1)
    Output: list of the shown keys, sorted by type and value, so the order of the mapping is not shown
    Bound:  at (l0, l1, 1) with l0 <= groups the loss is (l0·ε/groups, 1 - (1 - δ')^l0), where δ' is the δ of one key.
            For a larger l∞ the bound is group privacy over k = l∞ units: (l1·ε/groups,
            1 - (1 - δ'·(e^kε' - 1)/(e^ε' - 1))^l0) with ε' = ε/groups. Subtracting pre_threshold - 1 from a count, down
            to 0, never increases its change, and a key with the count 0 is never shown
    Source: Desfontaines, Voss, Gipson and Mandayam 2020, arXiv:2006.03684, theorem 1; `selection_scale`,
            `composition.group_privacy`
    Errors: InvalidArgument; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import AtomDomain
    >>> m = select_keys(MapDomain(AtomDomain(str), AtomDomain(int)), L01InfDistance(), epsilon=1.0, delta=1e-6)
    >>> m({"a": 10**6}), m.check((1, 1, 1), (1.0, 1e-6))
    (['a'], True)
    """
    if not isinstance(input_domain, MapDomain) or not input_domain.value_domain.is_integer:
        raise DomainMismatch(f"select_keys: the input domain is {input_domain!r}; it works on a MapDomain to integers.")
    if input_domain.key_domain.nan:
        raise DomainMismatch(f"select_keys: keys may be NaN ({input_domain.key_domain!r}), and NaN cannot be a key.")
    if input_metric != L01InfDistance():
        raise MetricMismatch(f"select_keys: the input metric is {input_metric!r}; it is L01InfDistance().")
    rule = KeySelection(epsilon, delta, groups, pre_threshold)

    def run(mapping: Any) -> list[Any]:
        keys = sorted((k for k, v in mapping.items() if v > 0), key=lambda k: (str(type(k)), k))
        decisions = rule.keep(np.array([min(int(mapping[k]), 2**62) for k in keys], np.int64))
        return [k for k, decision in zip(keys, decisions.tolist(), strict=True) if decision]

    def privacy_map(d_in: Any) -> tuple[Any, Any]:
        l0, l1, linf = d_in
        if l0 == 0 or linf == 0:
            return Fraction(0), 0.0
        units, total = math.floor(linf), math.floor(l1)
        delta_of_key = group_privacy(rule.rate, rule.start, units)[1]
        return total * rule.rate, privacy.threshold_delta(delta_of_key, l0)

    return Measurement(input_domain, input_metric, Approximate(MaxDivergence()), run, privacy_map)


def threshold_keep_probability(
    units: Any, scale: Any, threshold: Any, law: str = "laplace", pre_threshold: int = 1
) -> float:
    """The probability that the noisy count of a key with this number of units reaches a threshold.

    Input:  units (count); scale and threshold (units) of laplace_threshold or gaussian_threshold on integers; law:
            "laplace" (discrete) or "gaussian" (rounded); pre_threshold: keys with fewer units are never shown, and
            the others are counted from pre_threshold - 1 on
    Output: float, rounded up
    Bound:  P[noise >= threshold - units], 0 for a key without units
    Source: the tails in `dpframe.noise.tails`
    Errors: InvalidArgument

    >>> threshold_keep_probability(0, 1.0, 10), 0.5 < threshold_keep_probability(10, 1.0, 10) < 0.74
    (0.0, True)
    """
    tails = {"laplace": privacy.discrete_laplace_tail, "gaussian": privacy.rounded_gaussian_tail}
    if law not in tails:
        raise InvalidArgument(f'law={law!r} is "laplace" or "gaussian".')
    count = int(exact(units, "units")) - (int(pre_threshold) - 1)
    if count <= 0:
        return 0.0
    return tails[law](exact(scale, "scale"), math.ceil(exact(threshold, "threshold") - count))
