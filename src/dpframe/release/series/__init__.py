"""Totals of periods that follow one another, kept for years: nodes of a tree that are published, and least squares."""

from dpframe.release.series.opening import (
    open_series,
)
from dpframe.release.series.series import (
    Series,
)

__all__ = [
    "Series",
    "open_series",
]
