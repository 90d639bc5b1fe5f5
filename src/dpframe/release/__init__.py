"""Releases: the only room where plan, engine, noise and budget meet."""

from dpframe.release.announced import on_release
from dpframe.release.batch import (
    Batch,
    batch_of,
)
from dpframe.release.kinds.hierarchy import HierarchyRelease
from dpframe.release.kinds.marginals import MarginalsRelease
from dpframe.release.kinds.series import Series
from dpframe.release.kinds.synthesis import SyntheticRelease
from dpframe.release.paying import Account, spent_by, subject_words
from dpframe.release.run import bought, release
from dpframe.release.shown import Release
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
    "bought",
    "on_release",
    "release",
    "spent_by",
    "subject_words",
    "tuned",
]
