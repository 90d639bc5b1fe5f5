"""Releases: the only room where plan, engine, noise and budget meet."""

from dpframe.release.batch import (
    Batch,
    batch_of,
)
from dpframe.release.hierarchy import HierarchyRelease
from dpframe.release.narrowing import has_room
from dpframe.release.publish import MarginalsRelease, Release
from dpframe.release.run import (
    Account,
    release,
)
from dpframe.release.series import Series
from dpframe.release.synthesis import SyntheticRelease
from dpframe.release.tune import (
    tuned,
)

__all__ = [
    "Account",
    "Batch",
    "HierarchyRelease",
    "MarginalsRelease",
    "Release",
    "Series",
    "SyntheticRelease",
    "batch_of",
    "has_room",
    "release",
    "tuned",
]
