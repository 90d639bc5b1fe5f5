"""How many different values there are in all groups together, and how units share them, from noisy numbers of them.

`dp.n_unique` misses a value only where nobody brings it who counts. So what limits leave out depends on how many values
there are and on how common they are, which histograms of sizes do not say. What does is the number of values under some
limits: if it is about the number of rows that count, nearly each row has a value of its own; if it is far below, the
same values come again and again, and more rows would hardly bring new ones.

A model, as of somebody who collects coupons: each row that counts draws one of the pairs of group and value, of which
some are more common than others (lognormal). Of n pairs, R rows find Σ (1 - exp(-R·p)). It is a guess that choices are
made by; no bound rests on it.

Source: Good and Toulmin 1956, "The number of new species, and the increase in population coverage, when a sample is
increased", for the number of values as a function of the rows that count
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.auto.model import MODEL

__all__ = ["Shared", "ValuesPosterior"]


_NORMAL: Floats = np.array([NormalDist().inv_cdf((i + 0.5) / 48) for i in range(48)])
_UNEVEN: Floats = np.array([0.0, 1.0, 2.0, 3.0])  # deviations of the logarithm of how common values are
_STEPS = 2  # numbers of values that are tried, to an octave


@dataclass(frozen=True)
class Shared:
    """How many pairs of group and value there are to draw from, and how uneven they are, in each case."""

    number: Floats
    uneven: Floats

    def found(self, rows: Floats) -> Floats:
        """How many different ones so many rows bring, in each case."""
        return _distinct_values(self.number, self.uneven, rows)


@dataclass(frozen=True)
class ValuesPosterior:
    """Laws of values, and how likely each is in each case of the units (the logarithm, cases by laws)."""

    number: Floats
    uneven: Floats
    chances: Floats

    @classmethod
    def beforehand(cls, rows: Floats) -> ValuesPosterior:
        """Before any number of values is seen, where there are so many rows in each case.

        A number of values is as likely as any other of its size, from one to far more than the rows there are; and
        that each row has its own is half of it, since that is so where visits or orders are counted.
        """
        most = math.log2(MODEL.beyond_values * max(float(rows.max()), 1.0))
        numbers = 2.0 ** np.linspace(0, most, math.ceil(_STEPS * most) + 1)
        number, uneven = (x.ravel() for x in np.meshgrid(numbers, _UNEVEN, indexing="ij"))
        own = number > MODEL.own_values * np.maximum(rows, 1.0)[:, None]
        part = own.mean(axis=1, keepdims=True)
        return cls(number, uneven, -np.log(np.where(own, part, 1 - part)))

    def after(self, rows: Floats, noisy: float, scale: float) -> ValuesPosterior:
        """When a number of values is seen, of so many rows (in each case), with Laplace noise of a scale."""
        expectation = _distinct_values(self.number, self.uneven, rows[:, None])
        wide = np.hypot(scale, MODEL.values_rough * expectation)
        chances = self.chances - np.abs(noisy - expectation) / wide - np.log(wide)
        return ValuesPosterior(self.number, self.uneven, chances)

    def drawn(self, times: int) -> Shared:
        """Laws as often as each is likely: so many for each case of the units, one after the other."""
        likely = np.exp(self.chances - self.chances.max(axis=1, keepdims=True))
        cumulative = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)
        shift = (np.arange(len(cumulative)) + 0.5) * (math.sqrt(5) - 1) / 2 % 1  # the same cases for the same numbers
        at = (np.arange(times) + shift[:, None]) / times
        law = [np.searchsorted(r, x, side="right") for r, x in zip(cumulative, at, strict=True)]
        law = np.minimum(np.concatenate(law), len(self.number) - 1)
        return Shared(self.number[law], self.uneven[law])


def _distinct_values(number: Floats, uneven: Floats, rows: Floats) -> Floats:
    """How many of a number of values are among so many rows."""
    common = np.exp(uneven[..., None] * _NORMAL)
    common /= common.mean(axis=-1, keepdims=True)
    return np.asarray(number * -np.expm1(-common * (rows / number)[..., None]).mean(axis=-1))
