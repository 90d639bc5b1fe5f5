"""Series: totals of consecutive periods, with running totals and windows by least
squares over published blocks.
"""

from dpframe.release.kinds.series.series import Series

__all__ = ["Series"]
