"""A model of different values: how many there are in all groups together, and how units share them.

`dp.n_unique` misses a value only if it is in no row that counts. So the effect of limits depends on
the number of values and on how common they are, which histograms of sizes do not tell. The number
of values under some limits tells it. If that number is near the number of rows that count, nearly
each row has a value of its own. If it is far below, values repeat, and more rows would hardly bring
new ones.

The model is that of a coupon collector. Each row that counts draws one of the n pairs of group and
value, with lognormal probabilities p. R rows find Σ (1 - exp(-R·p)) different pairs. The model is a
guess that only choices rest on; no bound rests on it.

Source: Good and Toulmin 1956, "The number of new species, and the increase in population coverage,
        when a sample is
increased", for the number of values as a function of the rows that count
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.auto.model import MODEL

_NORMAL: Floats = np.array([NormalDist().inv_cdf((i + 0.5) / 48) for i in range(48)])
# deviations of the logarithm of how common values are
_UNEVEN: Floats = np.array([0.0, 1.0, 2.0, 3.0])
_STEPS = 2  # numbers of values to try, per octave


@dataclass(frozen=True)
class Shared:
    """The number of pairs of group and value, and how uneven their
    probabilities are, in each case.
    """

    number: Floats
    uneven: Floats

    def found(self, rows: Floats) -> Floats:
        """Expected number of different pairs among so many rows, in each case."""
        return _distinct_values(self.number, self.uneven, rows)


@dataclass(frozen=True)
class ValuesPosterior:
    """Laws of values, with the log probability of each law in each
    case of the units (cases by laws).
    """

    number: Floats
    uneven: Floats
    chances: Floats

    @classmethod
    def beforehand(cls, rows: Floats) -> ValuesPosterior:
        """The prior, before any number of values is seen.
        `rows` is the number of rows in each case.

        The logarithm of the number of values is uniform, from one value to far more values than
        rows. Half of the probability is for laws in which each row has its own value, as
        identifiers of visits or orders have.
        """
        most = math.log2(MODEL.beyond_values * max(float(rows.max()), 1.0))
        numbers = 2.0 ** np.linspace(0, most, math.ceil(_STEPS * most) + 1)
        number, uneven = (x.ravel() for x in np.meshgrid(numbers, _UNEVEN, indexing="ij"))
        own = number > MODEL.own_values * np.maximum(rows, 1.0)[:, None]
        part = own.mean(axis=1, keepdims=True)
        return cls(number, uneven, -np.log(np.where(own, part, 1 - part)))

    def after(self, rows: Floats, noisy: float, scale: float) -> ValuesPosterior:
        """The posterior after a number of values among `rows` rows (in each case),
        with Laplace noise of this scale.
        """
        expectation = _distinct_values(self.number, self.uneven, rows[:, None])
        wide = np.hypot(scale, MODEL.values_rough * expectation)
        chances = self.chances - np.abs(noisy - expectation) / wide - np.log(wide)
        return ValuesPosterior(self.number, self.uneven, chances)

    def drawn(self, times: int) -> Shared:
        """Laws drawn by their probabilities: `times` for each case of the
        units, one case after the other.
        """
        likely = np.exp(self.chances - self.chances.max(axis=1, keepdims=True))
        cumulative = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)
        # the same cases for the same numbers
        shift = (np.arange(len(cumulative)) + 0.5) * (math.sqrt(5) - 1) / 2 % 1
        at = (np.arange(times) + shift[:, None]) / times
        law = [np.searchsorted(r, x, side="right") for r, x in zip(cumulative, at, strict=True)]
        law = np.minimum(np.concatenate(law), len(self.number) - 1)
        return Shared(self.number[law], self.uneven[law])


def _distinct_values(number: Floats, uneven: Floats, rows: Floats) -> Floats:
    """Expected number of different values among so many rows."""
    common = np.exp(uneven[..., None] * _NORMAL)
    common /= common.mean(axis=-1, keepdims=True)
    return np.asarray(number * -np.expm1(-common * (rows / number)[..., None]).mean(axis=-1))
