"""The moments of a release, read once for matrices and regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpframe.plan import Bounds
from dpframe.release.answer import Moments, Numbers

__all__ = ["moments_of"]


def moments_of(numbers: Numbers, bounds: Mapping[str, Bounds], same: Sequence[tuple[str, ...]]) -> Moments:
    """The moments of released numbers, see `Moments.read`."""
    return Moments.read(numbers.long, numbers.outputs, numbers.noise, bounds, same)
