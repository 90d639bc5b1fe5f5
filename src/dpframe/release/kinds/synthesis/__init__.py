"""Synthetic rows: noisy tables in rounds, a graphical model of them, rows of the
model, and what people read of it.
"""

from dpframe.release.kinds.synthesis.release import SyntheticRelease

__all__ = ["SyntheticRelease"]
