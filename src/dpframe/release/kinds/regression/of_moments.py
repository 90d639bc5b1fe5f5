"""The moments of a release, and the base of the matrices and regressions that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpframe.plan import Bounds
from dpframe.release.answer import Moments, Numbers
from dpframe.release.shown import Release, Released, Report


def moments_of(numbers: Numbers, bounds: Mapping[str, Bounds], same: Sequence[tuple[str, ...]]) -> Moments:
    """The moments of released numbers, see `Moments.read`."""
    return Moments.read(numbers.long, numbers.outputs, numbers.noise, bounds, same)


@dataclass(frozen=True, eq=False, repr=False)
class OfMoments(Released[Any]):
    """A matrix or regression that follows from noisy moments. `release` has these moments."""

    release: Release[Any]
    _moments: Moments

    def report(self) -> Report:
        """The report of the release of moments."""
        return self.release.report()
