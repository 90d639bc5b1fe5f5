"""Synthetic rows: noisy tables in rounds, a graphical model of them, rows of the
model, and what people read of it.
"""

from dpframe.release.kinds.synthesis.release import SyntheticRelease, synthetic_answer

__all__ = ["SyntheticRelease", "synthetic_answer"]
